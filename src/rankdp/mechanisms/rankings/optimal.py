"""The optimal mechanism for short rankings: the most concordance that eps-ranking DP allows, by a linear programme.

Among right-invariant mechanisms (and averaging over relabellings makes any mechanism right-invariant without
loss) the law is one distribution P on the m! relative permutations. Maximise the expected concordance subject
to P(s) <= e^eps P(c s) for every move c.

A solver's answer is only nearly feasible, so it is not released as it is. In integers, with E >= e^-eps, the
weights are raised to

    N(s) = max(N(s), ceil(E N(c s)))  over all moves c, until nothing changes;

then N(c s) <= e^eps N(s) holds exactly for every neighbour, whatever the solver did, and that is the proof.
The price is in the 6th digit of the concordance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism, moves
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, integer_weights
from rankdp.privacy.exact import exp_bounds, upwards

# Raising the weights from the identity alone gives the Ulam law, the optimum for large eps (equal to the
# programme's to 7 digits at eps = 10); there the programme's coefficients e^eps outgrow what a floating-point
# solver can tell from zero.
_ULAM_FROM = 10
# A stronger guarantee than asked for above: e^-200 is below any probability that could be noticed.
_EPSILON_USED = Fraction(200)


class Optimal(RankingMechanism):
    """The best possible expected concordance, for rankings of up to six items."""

    name: ClassVar[str] = "optimal"
    most_items: ClassVar[int | None] = 6

    @cached_property
    def _neighbours(self) -> NDArray[np.int64]:
        """Row s lists the indices of c s for every move c."""
        table = np.stack([move[self._permutations] for move in moves(self.items)], axis=1)
        return self._index(table.reshape(-1, self.items)).reshape(table.shape[:2])

    def _index(self, relative: Orders) -> NDArray[np.int64]:
        """The place of each permutation in lexicographic order."""
        digits = self.items ** np.arange(self.items - 1, -1, -1)
        return np.searchsorted(self._permutations @ digits, relative @ digits)

    @cached_property
    def weights(self) -> list[int]:
        """Integer weights of all permutations in lexicographic order, certified."""
        solved = self._solve()
        epsilon = min(self.epsilon, _EPSILON_USED)
        scale = 160 + math.ceil(3 * epsilon * self.items)
        weights = [max(int(math.ldexp(max(p, 0.0), 60)) << (scale - 60), 0) for p in solved.tolist()]
        weights[0] = max(weights[0], 1)
        _, shrink = exp_bounds(epsilon, scale)
        neighbours = self._neighbours.tolist()
        waiting = list(range(len(weights)))
        while waiting:  # raise what is too low, then look at the neighbours of what was raised
            raised = set()
            for s in waiting:
                least = -(-shrink * weights[s] >> scale)
                for other in neighbours[s]:
                    if weights[other] < least:
                        weights[other] = least
                        raised.add(other)
            waiting = sorted(raised)
        return weights

    def _solve(self) -> NDArray[np.float64]:
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        if self.epsilon > _ULAM_FROM:
            return np.eye(1, len(self._permutations)).ravel()
        count, degree = self._neighbours.shape
        # Turning a ranking and its copy upside down changes nothing, so mirror images share a variable.
        mirror = self._index((self.items - 1 - self._permutations)[:, ::-1])
        variable, of = np.unique(np.minimum(mirror, np.arange(count)), return_inverse=True)
        left, right = np.repeat(of, degree), of[self._neighbours.ravel()]
        pairs = np.unique(np.stack([left, right], axis=1)[left != right], axis=0)
        rows = np.arange(len(pairs))
        entries = np.concatenate([np.ones(len(pairs)), np.full(len(pairs), -math.exp(float(self.epsilon)))])
        constraint = coo_array(
            (entries, (np.concatenate([rows, rows]), np.concatenate([pairs[:, 0], pairs[:, 1]]))),
            shape=(len(pairs), len(variable)),
        )
        size = np.bincount(of)
        gain = np.bincount(of, weights=_concordance(self._permutations))
        result = linprog(
            -gain,
            A_ub=constraint.tocsr(),
            b_ub=np.zeros(len(pairs)),
            A_eq=size[None, :],
            b_eq=[1.0],
            method="highs",
        )
        if result.x is None:
            raise Unsupported(
                f"the linear programme for {self.items} items at epsilon {self.epsilon} failed: {result.message}"
            )
        return np.asarray(result.x)[of]

    @cached_property
    def _law(self) -> NDArray[np.float64]:
        total = sum(self.weights)
        return np.array([weight / total for weight in self.weights])

    @cached_property
    def _outputs(self) -> CutTable:
        return CutTable(integer_weights(self.weights))

    def local_epsilon(self) -> float:
        """log of the largest over the smallest weight, rounded up."""
        smallest, spread = min(self.weights), max(self.weights) - min(self.weights)
        if spread < smallest << 64:  # log1p is exact to rounding also where the weights are nearly equal
            return upwards(math.log1p(spread / smallest))
        return upwards(math.log(smallest + spread) - math.log(smallest))

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        self._draw_outputs(self._outputs, orders, out, bits)

    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        log_total = math.log(sum(self.weights))
        logs = np.array([math.log(weight) - log_total for weight in self.weights])
        return logs[self._index(relative)]

    def keep_probability(self, i: int, j: int) -> float:
        """From the law itself."""
        i, j = self._positions(i, j)
        place = np.argsort(self._permutations, axis=1)
        return float(self._law @ (place[:, i] < place[:, j]))

    def position_matrix(self) -> NDArray[np.float64]:
        """From the law itself."""
        matrix = np.zeros((self.items, self.items))
        for b in range(self.items):
            matrix[:, b] = np.bincount(self._permutations[:, b], weights=self._law, minlength=self.items)
        return matrix

    def expected_concordance(self) -> float:
        """From the law itself."""
        return float(self._law @ _concordance(self._permutations))


def _concordance(permutations: Orders) -> NDArray[np.float64]:
    """The share of pairs in order of each permutation."""
    items = permutations.shape[1]
    first, second = np.triu_indices(items, 1)
    return np.asarray((permutations[:, first] < permutations[:, second]).mean(axis=1))
