"""Sliding tiers: where items land and how many pairs keep their order, exactly, by dynamic programming.

The kept letters are written tier by tier (``mechanisms.rankings.sliding_tiers``): after tier b there are J of them, the
last t of which stand after everything of the tiers before. The letters of tier b+1 come among those t, e of them before
the last one and t' after it; the letters of tier b+2 come after all of tier b. So once tier b+1 is written, the places
of the letters up to b among all kept ones are known: the first J - t, t - 1 of the next t - 1 + e, every choice alike,
and the one after those. (From t = 0 nothing mixes.)

f_b[J, t] sums the weights of everything up to tier b, g_b[t, k] of everything after it that keeps k more, a step
weighing rho^-j mu!/(mu-j)! times its number of ways; a word that keeps j letters in all weighs (z rho)^j / j! more. Any
rho > 0 gives the same law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from rankdp.theory.concordance import _log_factorials
from rankdp.theory.tier_laws import _NEGLIGIBLE, landing
from rankdp.types import Floats

_LARGEST_LOG = 400.0  # of a weight

Factor = Callable[[int], float]


class SlidingLaw:
    """The law of what is kept, for tiers of these sizes and log z; log rho is near the best."""

    def __init__(self, sizes: Sequence[int], log_weight: float, log_mean_left: float) -> None:
        self.sizes, self.items = tuple(sizes), sum(sizes)
        self._log_mean = max(log_mean_left, -_LARGEST_LOG / self.items)
        log = np.arange(self.items + 1) * (log_weight + self._log_mean) - _log_factorials(self.items)
        self._whole: Floats = np.exp(log - log.max())

    def _steps(self, tier: int, held: int) -> list[tuple[int, int, float]]:
        """All (j, t', weight) of a tier from t = ``held``."""
        size, factorial = self.sizes[tier], _log_factorials(self.sizes[tier])
        steps = []
        for j in range(size + 1):
            weight = math.exp(factorial[size] - factorial[size - j] - j * self._log_mean)
            if held == 0:
                steps.append((j, j, weight))
            else:
                steps += [(j, t, weight * math.comb(held - 1 + j - t, j - t)) for t in range(j + 1)]
        return steps

    def _reached(self, tier: int, before: Floats, factor: Factor = lambda _: 1.0) -> Floats:
        """f after a tier from f before it, each step times ``factor`` of how many it keeps."""
        after = np.zeros((self.items + 1, self.sizes[tier] + 1))
        for held in range(before.shape[1]):
            for j, t, weight in self._steps(tier, held):
                after[j:, t] += weight * factor(j) * before[: self.items + 1 - j, held]
        return after

    @cached_property
    def _before(self) -> list[Floats]:
        """f_0..f_B, each in units of its largest value."""
        parts = [np.zeros((self.items + 1, 1))]
        parts[0][0, 0] = 1.0
        for tier in range(len(self.sizes)):
            reached = self._reached(tier, parts[-1])
            parts.append(reached / reached.max())
        return parts

    @cached_property
    def _after(self) -> list[Floats]:
        """g_0..g_B, each in units of its largest value."""
        last = np.zeros((self.sizes[-1] + 1, self.items + 1))
        last[:, 0] = 1.0
        parts = [last]
        for tier in range(len(self.sizes) - 1, -1, -1):
            held = self.sizes[tier - 1] if tier else 0
            mixed = np.stack([sum(self._following(tier, t, parts[0]).values()) for t in range(held + 1)])
            parts.insert(0, mixed / mixed.max())
        return parts

    def _following(self, tier: int, held: int, after: Floats, factor: Factor = lambda _: 1.0) -> dict[int, Floats]:
        """By e: the sum over the steps of a tier, and all that follows, by how many more letters are kept."""
        found: dict[int, Floats] = {}
        for j, t, weight in self._steps(tier, held):
            e = j - t if held else 0
            part = found.setdefault(e, np.zeros(self.items + 1))
            part[j:] += weight * factor(j) * after[t, : self.items + 1 - j]
        return found

    def _totals(self, before: Floats, more: Floats) -> Floats:
        """[J, j]: the weight of J letters so far and j in all, given those of J and of how many more."""
        kept = np.arange(self.items + 1)
        further = kept[None, :] - kept[:, None]
        return np.asarray(before[:, None] * np.where(further >= 0, more[further], 0.0) * self._whole)

    def _cut(self, tier: int, factor: Factor = lambda _: 1.0) -> Iterator[tuple[int, Floats, Floats]]:
        """All (t, [J, j], [J, j] times e) for the letters before a tier (from 0) and the step into it, unnormalised."""
        before, after = self._before[tier], self._after[tier + 1]
        for held in range(before.shape[1]):
            yield held, *self._mixed(before[:, held], self._following(tier, held, after, factor))

    def _mixed(self, before: Floats, following: dict[int, Floats]) -> tuple[Floats, Floats]:
        """The weights of J letters so far and j in all, and the same times e."""
        more, times = sum(following.values()), sum(e * part for e, part in following.items())
        return self._totals(before, np.asarray(more)), self._totals(before, np.asarray(times))

    @cached_property
    def _kept(self) -> Floats:
        """P(j letters are kept)."""
        law = self._before[-1].sum(axis=1) * self._whole
        return np.asarray(law / law.sum())

    def tier_matrix(self, first: int | None = None) -> Floats:
        """T[a, b] = P(the item at position a lands in tier b), both from 0; for the ``first`` positions or all."""
        m = self.items
        standing = np.zeros((m + 1, m + 2, len(self.sizes) - 1))  # [j, q, cut]: the q-th kept one is before the cut
        for cut in range(1, len(self.sizes)):
            change, total = np.zeros((2 * m + 3, m + 1)), 0.0
            before, after = self._before[cut], self._after[cut + 1]
            for held in range(before.shape[1]):
                for e, more in self._following(cut, held, after).items():
                    weights = self._totals(before[:, held], more)[held:]  # the first J - held are before the cut
                    rows, mixed = m + 1 - held, max(held - 1, 0) + e
                    share = (held - 1) / mixed if held and mixed else 0.0
                    total += float(weights.sum())
                    change[0] += weights.sum(axis=0)
                    change[:rows] += (share - 1) * weights
                    if held:
                        change[mixed : mixed + rows] += (1 - share) * weights
                        change[mixed + 1 : mixed + 1 + rows] -= weights
            standing[:, :, cut - 1] = np.cumsum(change, axis=0)[: m + 2].T / total
        cuts, likely = np.cumsum(self.sizes)[:-1], np.flatnonzero(self._kept > _NEGLIGIBLE).tolist()
        below = landing(m, first, ((j, self._kept[j] * cuts, standing[j, :j]) for j in likely))
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def concordance(self) -> float:
        """The expected share of pairs in order, a pair within a tier counting half.

        Both kept: all but those that the mixing turns round, and half of those within a tier. One kept, as the q-th of
        j: the other, of tier c, stands in any of the j + 1 gaps, q + 1 of which are before it. None kept: half.
        """
        m, j = self.items, np.arange(self.items + 1)
        expected = float(self._kept @ (j * (j - 1) / 2 + (m - j) * (m - j - 1) / 4))
        for tier, size in enumerate(self.sizes):
            total = turned = alike = ahead = 0.0
            for held, weights, times in self._cut(tier):
                total += float(weights.sum())
                turned += float(times.sum()) * (held + 1) / 2
            for _, weights, _ in self._cut(tier, lambda kept, size=size: kept * (2 * size - 3 * kept + 1) / 4):  # type: ignore[misc]
                alike += float(weights.sum())  # in one tier: both kept, less half of them; one kept, half of them
            for held, weights, times in self._cut(tier, lambda kept, size=size: size - kept):  # type: ignore[misc]
                ahead += float((weights * j[:, None]).sum()) - self._places(held, weights, times)
            expected += (alike - turned + ahead) / total + self._after_this(tier, size)
        return expected / (m * (m - 1) / 2)

    def _places(self, held: int, weights: Floats, times: Floats) -> float:
        """The sum of the weights times the expected sum of (q + 1) / (j + 1) over the letters before a cut."""
        start, j = np.maximum(np.arange(self.items + 1) - held, 0), np.arange(self.items + 1)
        mean = start * (start + 1) / 2 + (held * start + held * (held + 1) / 2 if held else 0)
        return float(((weights * mean[:, None] + times * ((held + 1) / 2 if held else 0)) / (j + 1)).sum())

    def _after_this(self, tier: int, size: int) -> float:
        """E of the sum over kept letters of later tiers of (q + 1) / (j + 1), times the places left in this tier."""
        if tier == len(self.sizes) - 1:
            return 0.0
        half = np.arange(self.items + 1) / 2
        before = self._reached(tier, self._before[tier], lambda kept: size - kept)
        scale, every, found = self._reached(tier, self._before[tier]).max(), 0.0, 0.0
        for held in range(size + 1):
            following = self._following(tier + 1, held, self._after[tier + 2])
            every += float(self._mixed(self._before[tier + 1][:, held], following)[0].sum())
            weights, times = self._mixed(before[:, held] / scale, following)
            found += float((weights * half).sum()) - self._places(held, weights, times)
        return found / every
