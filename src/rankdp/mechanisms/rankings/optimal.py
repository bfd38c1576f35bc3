"""The optimal mechanism for short rankings: the largest concordance that eps-ranking DP allows, by a linear programme.

Among right-invariant mechanisms (and averaging over relabellings makes any mechanism right-invariant without
loss) the law is one distribution P on the m! relative permutations. Maximise the expected concordance subject
to P(s) <= e^eps P(c s) for every move c.

A solver's answer is only nearly feasible, so it is corrected. In integers, with E >= e^-eps, the weights are
raised to

    N(s) = max(N(s), ceil(E N(c s)))  over all moves c, until nothing changes;

then N(c s) <= e^eps N(s) holds exactly for every neighbour, whatever the solver did, which proves eps. The
correction changes the 6th digit of the concordance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import EnclosedLaw, TableMechanism
from rankdp.privacy.exact import exp_bounds
from rankdp.theory.permutations import concordance, neighbour_places, places
from rankdp.types import Floats

# Raising the weights from the identity alone gives the Ulam law, the optimum for large eps (equal to the
# programme's to 7 digits at eps = 10); there the programme's coefficients e^eps are too large for a floating-point
# solver.
_ULAM_FROM = 10
# Above this epsilon the guarantee is stronger than asked for: e^-200 is below any probability that could be noticed.
_EPSILON_USED = Fraction(200)


class Optimal(TableMechanism):
    """The best possible expected concordance, for rankings of up to six items."""

    name: str = "optimal"
    colour: ClassVar[str] = "#000000"
    slow: ClassVar[bool] = True  # a linear programme for each epsilon

    @cached_property
    def weights(self) -> list[int]:
        """Integer weights of all permutations in lexicographic order, certified."""
        solved = self._solve()
        epsilon = min(self.epsilon, _EPSILON_USED)
        scale = 160 + math.ceil(3 * epsilon * self.items)
        weights = [max(int(math.ldexp(max(p, 0.0), 60)) << (scale - 60), 0) for p in solved.tolist()]
        weights[0] = max(weights[0], 1)
        _, shrink = exp_bounds(epsilon, scale)
        neighbours = neighbour_places(self.items).tolist()
        waiting = list(range(len(weights)))
        while waiting:  # raise weights that are too low, then check the neighbours of raised ones
            raised = set()
            for s in waiting:
                least = -(-shrink * weights[s] >> scale)
                for other in neighbours[s]:
                    if weights[other] < least:
                        weights[other] = least
                        raised.add(other)
            waiting = sorted(raised)
        return weights

    def _solve(self) -> Floats:
        if self.epsilon > _ULAM_FROM:
            return np.eye(1, len(self._permutations)).ravel()
        import highspy

        neighbours = neighbour_places(self.items)
        count, degree = neighbours.shape
        # Reversing a ranking and its copy changes nothing, so mirror images share a variable.
        mirror = places((self.items - 1 - self._permutations)[:, ::-1])
        of = np.unique(np.minimum(mirror, np.arange(count)), return_inverse=True)[1]
        left, right = np.repeat(of, degree), of[neighbours.ravel()]
        pairs = np.unique(np.stack([left, right], axis=1)[left != right], axis=0).astype(np.int32)
        size = np.bincount(of).astype(np.float64)
        gain = np.bincount(of, weights=concordance(self._permutations)).astype(np.float64)
        zeros, free = np.zeros(len(size)), np.full(len(pairs), -np.inf)
        none, every = np.empty(0, dtype=np.int32), np.arange(len(size), dtype=np.int32)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.addCols(len(size), -gain, zeros, zeros + np.inf, 0, none, none, np.empty(0))
        solver.addRow(1.0, 1.0, len(size), every, size)
        entries = np.tile([1.0, -math.exp(float(self.epsilon))], len(pairs))
        starts = np.arange(0, 2 * len(pairs), 2, dtype=np.int32)
        solver.addRows(len(pairs), free, np.zeros(len(pairs)), 2 * len(pairs), starts, pairs.ravel(), entries)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise Unsupported(
                f"the linear programme for {self.items} items at epsilon {self.epsilon} failed: "
                f"{solver.modelStatusToString(solver.getModelStatus())}"
            )
        return np.array(solver.getSolution().col_value)[of]

    def exact_law(self, bits: int) -> EnclosedLaw:
        """The weights themselves."""
        return [(weight, weight) for weight in self.weights]
