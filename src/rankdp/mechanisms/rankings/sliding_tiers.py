"""Sliding tiers: neighbouring tiers may mix, tiers further apart may not.

As ``tiers``, but a set S may be kept when no letter of its word falls by more than one tier: all of tier b stands
before all of tier b+2, windows of two tiers that slide by one. Finer tiers then lose less than they cost:

    P(w) proportional to the sum of z^|S| over the sets S on which w never falls by more than 1.

Proof of eps: that of ``tiers``, where only letters at least two tiers away come into conflict with a moved one, at most
d = m - min(mu_1 + mu_2, mu_(B-1) + mu_B).

Drawn tier by tier, with t = how many letters of the last tier stand after the last one of the tiers before it. The
letters of the next tier come after everything but those t. From t = 0 its j letters follow in one way, and t' = j. From
t >= 1 there are C(t-1+j-t', j-t') ways for each t' in 0..j: t-1 old letters and j-t' new ones in any order, one old
letter, t' new ones. With r = mu - j a step weighs rho^r / r! times the ways, and a whole draw is accepted with the
Poisson probability of the number of kept items for the mean z rho, over the largest: together a word of kept letters
weighs z^j / (j! r_1! … r_B!), for any rho > 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.mechanisms.rankings.contract import ENUMERATED_UP_TO, Orders, RankingMechanism, rows_from_halves
from rankdp.mechanisms.rankings.tier_tables import Acceptance, bounds
from rankdp.mechanisms.rankings.tiers import Bounds, Tiers
from rankdp.mechanisms.rankings.ulam import _from_draws
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.privacy.cut_tables import CutTable, integer_weights
from rankdp.theory import tier_laws as theory
from rankdp.theory.sliding_laws import SlidingLaw
from rankdp.types import Longs

_SIMULATED_ROWS = 1 << 14
_MEAN_BITS = 12  # of rho: any number serves, a short one is quicker


class SlidingTiers(Tiers):
    """Tiers of which two neighbours may mix, at every epsilon: for a very large one, plain tiers are better.

    Its numbers are exact (``theory.sliding_laws``) but for ``keep_probability`` above 8 items, which is estimated from
    16,384 seeded draws (standard error below 0.004), at no cost of privacy.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking.
    tiers
        How many items of the output each tier holds, the top first; by default twice as many tiers as ``tiers`` takes.
    """

    name: str = "sliding-tiers"
    colour: ClassVar[str] = "#56B4E9"
    drop: ClassVar[int] = 1
    most_items: ClassVar[int | None] = 150  # 150! is a float
    compared_up_to: ClassVar[int | None] = 1  # by name only: its numbers take seconds, and nothing undoes its noise

    def _best_sizes(self) -> tuple[int, ...]:
        return theory.shape(self.items, min(self.items, 2 * len(super()._best_sizes())))

    @cached_property
    def _kept_counts(self) -> NDArray[np.float64]:
        """By j: log of the sum of the weights of all words of j kept letters, without z^j / j!."""
        return theory.log_sliding_counts(self.sizes)

    @cached_property
    def _log_kept(self) -> NDArray[np.float64]:
        """By j: log of the weight that j items are kept."""
        j = np.arange(self.items + 1)
        return np.asarray(self._kept_counts + j * self._log_weight - [math.lgamma(k + 1) for k in j])

    @property
    def _log_normaliser(self) -> float:
        return math.lgamma(self.items + 1) + float(np.logaddexp.reduce(self._log_kept))

    @cached_property
    def _mean_left(self) -> Fraction:
        """rho: about the mean number of kept items over z."""
        law = np.exp(self._log_kept - np.logaddexp.reduce(self._log_kept))
        mean = Fraction(max(1, round(float(law @ np.arange(self.items + 1))))) / self.weight
        unit = Fraction(2) ** (_MEAN_BITS + mean.denominator.bit_length() - mean.numerator.bit_length())
        return math.ceil(mean * unit) / unit

    @cached_property
    def _accepting(self) -> Acceptance:
        return Acceptance(self.items, self.weight * self._mean_left)

    @cached_property
    def _acceptance(self) -> float:
        mean = self._mean_left
        log_mean = math.log(mean.numerator) - math.log(mean.denominator)
        proposed = self._kept_counts - np.arange(self.items + 1) * log_mean
        mode = min(self.items, math.floor(self._accepting.mean))
        log = self._log_kept - self._log_kept[mode] + proposed[mode]
        return math.exp(np.logaddexp.reduce(log) - np.logaddexp.reduce(proposed))

    @cached_property
    def _to_come(self) -> list[list[int]]:
        """By tier and t: the sum of the weights of everything that may follow, in whole numbers."""
        sums = [[1] * (self.sizes[-1] + 1)]
        for tier in range(len(self.sizes) - 1, -1, -1):
            before = self.sizes[tier - 1] if tier else 0
            after = sums[0]
            sums.insert(
                0, [sum(weight * after[t] for _, t, weight in self._steps(tier, held)) for held in range(before + 1)]
            )
        return sums

    def _steps(self, tier: int, held: int) -> list[tuple[int, int, int]]:
        """All (j, t', weight) from t = ``held``: rho^r / r! times the ways, in units that depend on the tier alone."""
        size, mean = self.sizes[tier], self._mean_left
        steps = []
        for j in range(size + 1):
            r = size - j
            weight = mean.numerator**r * mean.denominator**j * math.factorial(size) // math.factorial(r)
            if held == 0:
                steps.append((j, j, weight))
            else:
                steps += [(j, t, weight * math.comb(held - 1 + j - t, j - t)) for t in range(j + 1)]
        return steps

    @cached_property
    def _step_tables(self) -> dict[tuple[int, int], tuple[NDArray[np.int64], CutTable]]:
        """By tier and t, as they are needed: the steps (j, t') and their law."""
        return {}

    def _table(self, tier: int, held: int) -> tuple[NDArray[np.int64], CutTable]:
        if (tier, held) not in self._step_tables:
            steps, after = self._steps(tier, held), self._to_come[tier + 1]
            law = CutTable(integer_weights([weight * after[t] for _, t, weight in steps]))
            self._step_tables[tier, held] = np.array([(j, t) for j, t, _ in steps]), law
        return self._step_tables[tier, held]

    def _propose(self, count: int, bits: Bits) -> Longs:
        """Rows of (j_1..j_B, t_1..t_B), before they are accepted."""
        tiers = len(self.sizes)
        rows = np.zeros((count, 2 * tiers), dtype=np.int64)
        held = np.zeros(count, dtype=np.int64)
        for tier in range(tiers):
            for t in np.unique(held).tolist():
                alike = np.flatnonzero(held == t)
                steps, law = self._table(tier, t)
                rows[alike, tier], rows[alike, tiers + tier] = steps[law.sample(len(alike), bits)].T
            held = rows[:, tiers + tier]
        return rows

    def _draw_kept(self, count: int, bits: Bits) -> Longs:
        """``count`` proposals, accepted by how many items they keep."""
        accepted = [self._propose(0, bits)]
        missing = count
        sure, unsure = self._accepting.cuts
        while missing > 0:
            proposals = self._propose(math.ceil(1.1 * missing / self._acceptance) + 2, bits)
            kept, words = proposals[:, : len(self.sizes)].sum(axis=1), bits.words(len(proposals))
            good = words < sure[kept]
            for row in np.flatnonzero(~good & (words <= unsure[kept])):
                good[row] = self._accepting.accepts(int(kept[row]), int(words[row]), bits)
            accepted.append(proposals[good][:missing])
            missing -= len(accepted[-1])
        return np.concatenate(accepted)

    def _draw_shapes(self, orders: Orders, out: Orders, which: Longs, bits: Bits) -> None:
        from rankdp.mechanisms.rankings.tier_kernels import mix

        steps = self._draw_kept(len(orders), bits)
        labels = np.full((len(steps), self.items), -1, dtype=np.int32)
        rows_from_halves(mix, labels, steps, labels, bits, self.items // 2 + 1)
        turns = np.argsort(np.argsort(labels % (len(self.sizes) + 1), axis=1, kind="stable"), axis=1)  # the -1 last
        self._deal(orders, out, np.column_stack([which, steps[:, : len(self.sizes)], turns]), bits)

    def _kept_law(self, shape: int, bits: int) -> Callable[[tuple[int, ...], tuple[int, ...]], Bounds]:
        """The product of the steps' probabilities over the number of ways of each, from the integers of the tables."""
        accepted = self._accepting.weights(bits)

        def enclosed(letters: tuple[int, ...], left: tuple[int, ...]) -> Bounds:
            chance, held = Fraction(1), 0
            for tier, (size, r) in enumerate(zip(self.sizes, left, strict=True)):
                j = size - r
                earlier = max((place for place, letter in enumerate(letters) if letter < tier), default=-1)
                t = sum(letter == tier for letter in letters[earlier + 1 :])
                steps, law = self._table(tier, held)
                (cell,) = np.flatnonzero((steps == (j, t)).all(axis=1))
                weights = law.weights(bits)
                ways = math.comb(held - 1 + j - t, j - t) if held else 1
                chance *= Fraction(weights.low[cell], sum(weights.low) * ways)
                held = t
            low, high = bounds(accepted, len(letters))
            return chance * low, chance * high

        return enclosed

    @cached_property
    def _law(self) -> SlidingLaw:  # type: ignore[override]
        mean = self._mean_left
        return SlidingLaw(self.sizes, self._log_weight, math.log(mean.numerator) - math.log(mean.denominator))

    @cached_property
    def _kept_pairs(self) -> NDArray[np.float64]:
        """The matrix of keep probabilities (upper triangle), from draws."""
        return _from_draws(self.sample(np.tile(np.arange(self.items), (_SIMULATED_ROWS, 1)), SeededBits(0)))[1]

    def _keep(self, i: int, j: int) -> float:
        return RankingMechanism._keep(self, i, j) if self.items <= ENUMERATED_UP_TO else float(self._kept_pairs[i, j])
