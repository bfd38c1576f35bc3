"""Tiers: the output cut into tiers of fixed public sizes, and how much of an order survives that.

Read the items in the input's order and write down the tier in which each lands: a word w over 1..B with mu_b letters b.
Inside a tier the order is uniformly random. A mechanism keeps a random set S of j items whose letters never fall, j_b
of them in tier b, and deals the others out at random over the mu_b - j_b = r_b places that are left. Counting both,

    P(r_1..r_B) is proportional to z^j / (j! r_1! … r_B!),    j = m - r_1 - … - r_B.

So j and the r_b are independent Poisson variables, of means q and q/z for any q > 0, the r_b cut off at mu_b, given
that they add up to m. This is how the law is drawn, and how it is summed here, with q near the mean of j.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from rankdp.theory.concordance import _log_factorials, log_choose
from rankdp.types import Floats, Longs

Law: TypeAlias = tuple[int, Floats]  # of a whole number: the first value and the probabilities from there on
_NEGLIGIBLE = 1e-18
_FINALISTS = 4  # divisions whose concordance is computed exactly, of all that were estimated
_LARGER = (1.0, 1.15, 1.3)  # how much larger than the others the tiers at both ends may be
_MOST_TIERS = 200  # that the search tries


class TierLaw:
    """The law of how many are kept, for tiers of these sizes and log z."""

    def __init__(self, sizes: Sequence[int], log_weight: float) -> None:
        self.sizes, self.items, self.log_weight = tuple(sizes), sum(sizes), log_weight

    def _log_poisson(self, size: int, kept: int) -> Floats:
        """log of (kept/z)^r / r! for r = 0..size."""
        r = np.arange(size + 1)
        return np.asarray(r * (math.log(kept) - self.log_weight) - _log_factorials(size))

    @cached_property
    def typical(self) -> int:
        """q: the whole number at which m minus the mean of all r_b is q itself, at least 1."""
        low, high = 1, self.items
        while low < high:
            middle = (low + high + 1) // 2
            filled = sum(float(left @ np.arange(len(left))) for left in self.left(middle))
            low, high = (middle, high) if self.items - filled >= middle else (low, middle - 1)
        return low

    def left(self, kept: int) -> list[Floats]:
        """The law of each r_b when the means are kept/z."""
        by_size = {}
        for size in set(self.sizes):
            log = self._log_poisson(size, kept)
            weights = np.exp(log - log.max())
            by_size[size] = weights / weights.sum()
        return [by_size[size] for size in self.sizes]

    @cached_property
    def _staying(self) -> list[Law]:
        """The law of j_b = mu_b - r_b of each tier."""
        return [_trimmed(0, law[::-1]) for law in self.left(self.typical)]

    @cached_property
    def _before(self) -> list[Law]:
        """The law of j_1 + … + j_b for b = 0..B."""
        return list(accumulate(self._staying, _sum, initial=(0, np.ones(1))))

    @cached_property
    def _after(self) -> list[Law]:
        """The law of j_(b+1) + … + j_B for b = 0..B."""
        return list(accumulate(self._staying[::-1], _sum, initial=(0, np.ones(1))))[::-1]

    @cached_property
    def _accepted(self) -> Floats:
        """By j: its Poisson probability over that of q, the factor that conditions on a sum of m."""
        j, log_factorial = np.arange(self.items + 1), _log_factorials(self.items)
        log = (j - self.typical) * math.log(self.typical) - log_factorial + log_factorial[self.typical]
        return np.asarray(np.exp(log))

    @cached_property
    def acceptance(self) -> float:
        """The share of draws of the r_b that are accepted."""
        first, law = self._before[-1]
        return float(law @ self._accepted[first : first + len(law)])

    @cached_property
    def log_normaliser(self) -> float:
        """log of the sum over all words of the sum over their sets S of z^|S|."""
        q, m = self.typical, self.items
        sums = {size: float(np.logaddexp.reduce(self._log_poisson(size, q))) for size in set(self.sizes)}
        constant = math.lgamma(m + 1) + m * (self.log_weight - math.log(q)) + q * math.log(q) - math.lgamma(q + 1)
        return constant + sum(sums[size] for size in self.sizes) + math.log(self.acceptance)

    def concordance(self) -> float:
        """The expected share of pairs in order, a pair within a tier counting half.

        Both kept: in order, or in one tier. None kept: half. One kept: the other falls into tier b with probability r_b
        over all r, and stands in any of the j+1 gaps between kept ones. With x kept in the tiers before b, y in those
        after it and s = x + y, summing over the kept one and the gap gives (s j + s/2 - (x^2 + y^2)/2 + j_b (j+1)/2) /
        (j (j+1)).
        """
        m = self.items
        total = 0.0
        for size, staying, before, after in zip(self.sizes, self._staying, self._before, self._after[1:], strict=False):
            first, law = before[0] + after[0], np.convolve(before[1], after[1])
            both = np.convolve(before[1] * _values(before), after[1] * _values(after))  # of x y
            s, j_b = np.arange(first, first + len(law))[:, None], _values(staying)[None, :]
            j, r = s + j_b, size - j_b
            accepted = self._accepted[j] * staying[1]
            aside = (s * j + s / 2 + j_b * (j + 1) / 2 - s * s / 2) * law[:, None] + both[:, None]
            total += float(np.sum(accepted * (2 * r * aside / (j + 1) - j_b * (j_b - 1) / 2 * law[:, None])))
        first, law = self._before[-1]
        j = np.arange(first, first + len(law))
        total += float((law * self._accepted[j]) @ (j * (j - 1) + (m - j) * (m - j - 1) / 2))
        return total / self.acceptance / (m * (m - 1))

    def _shares(self) -> Iterator[tuple[int, float]]:
        """Every j that is likely at all, and its probability."""
        first, law = self._before[-1]
        law = law * self._accepted[first : first + len(law)] / self.acceptance
        return ((j, float(share)) for j, share in enumerate(law, first) if share > _NEGLIGIBLE)

    def _split(self, before: Law, after: Law, j: int) -> Floats:
        """P(j are kept, x of them before a cut) by x = 0..j, given the laws of both sides."""
        law = np.zeros(j + 1)
        x = _values(before)
        rest = j - x - after[0]
        fits = (rest >= 0) & (rest < len(after[1]))
        law[x[fits]] = before[1][fits] * after[1][rest[fits]]
        return law * float(self._accepted[j] / self.acceptance)

    def tier_matrix(self, first: int | None = None) -> Floats:
        """T[a, b] = P(the item at position a lands in tier b), both from 0; for the ``first`` positions or all."""
        return tier_matrices([self], first)[0]

    def keep(self, first: int, second: int) -> float:
        """The probability that the items at two positions (first < second) keep their order, by which are kept.

        Both, as the q1-th and the q2-th: unless they are in one tier. One, as the q-th: by the tier of the other.
        None: half.
        """
        m, log_factorial = self.items, _log_factorials(self.items)
        total = 0.0
        for j, share in self._shares():
            d, q = m - j, np.arange(j)
            whole = log_factorial[m] - log_factorial[j] - log_factorial[d]

            def alone(before: int, j: int = j, q: Longs = q, whole: float = whole) -> Floats:
                log = log_choose(before, q)
                return np.asarray(np.exp(log + log_choose(m - 2 - before, j - 1 - q) - whole))

            total += share * d * (d - 1) / (2 * m * (m - 1))
            if d and j:
                above = self._other_after(j)
                total += float(alone(first) @ above + alone(second - 1) @ (share - above))
            if j > 1:
                q1, q2 = q[:, None], q[None, :]
                log = log_choose(first, q1)
                log = log + log_choose(second - first - 1, q2 - q1 - 1)
                both = np.exp(log + log_choose(m - 1 - second, j - 1 - q2) - whole)
                within = np.zeros((j + 1, j + 1))  # [x, y]: the probability of x <= q1 and q2 < y
                within[:j, 1:] = np.cumsum(np.cumsum(both[::-1], axis=0)[::-1], axis=1)
                total += share * float(both.sum()) - self._in_one_tier(j, within) / 2
        return total

    def _other_after(self, j: int) -> Floats:
        """By q: P(j kept, and one that is not kept is in a tier after that of the q-th kept, or half in the same)."""
        above = np.zeros(j + 1)
        for size, (least, law), before, after in zip(
            self.sizes, self._staying, self._before, self._after[1:], strict=False
        ):
            left = (least, law * (size - np.arange(least, least + len(law))) / (self.items - j))
            for one, other in ((before, _sum(left, after)), (_sum(before, left), after)):
                above += self._split(one, other, j) / 2
        return np.cumsum(above[::-1])[::-1][1:]

    def _in_one_tier(self, j: int, within: Floats) -> float:
        """The sum over tiers of P(j kept, x before the tier and y up to its end) within[x, y]."""
        total = 0.0
        for (least, law), before, after in zip(self._staying, self._before, self._after[1:], strict=False):
            x, here = _values(before)[:, None], np.arange(least, least + len(law))[None, :]
            rest = j - x - here - after[0]
            fits = (rest >= 0) & (rest < len(after[1]))
            weights = before[1][:, None] * law * np.where(fits, after[1][np.where(fits, rest, 0)], 0)
            total += float(np.sum(weights * within[np.minimum(x, j), np.minimum(x + here, j)]))
        return total * float(self._accepted[j] / self.acceptance)


def tier_matrices(laws: Sequence[TierLaw], first: int | None = None) -> list[Floats]:
    """``TierLaw.tier_matrix`` of several divisions of one ranking, with what they share computed once."""
    m, cuts = laws[0].items, [np.cumsum(law.sizes)[:-1] for law in laws]
    sides = [(law, *side) for law in laws for side in zip(law._before[1:-1], law._after[1:-1], strict=True)]
    shares = np.zeros((m + 1, len(laws)))
    for number, law in enumerate(laws):
        for j, share in law._shares():
            shares[j, number] = share

    def standing() -> Iterator[tuple[int, Floats, Floats]]:
        for j in np.flatnonzero(shares.any(axis=1)).tolist():
            kept = np.stack([law._split(before, after, j) for law, before, after in sides], axis=1)
            places = np.concatenate([share * cut for share, cut in zip(shares[j], cuts, strict=True)])
            yield j, places, np.cumsum(kept[::-1], axis=0)[::-1][1:]

    parts = np.split(landing(m, first, standing()), np.cumsum([len(cut) for cut in cuts])[:-1], axis=1)
    return [np.diff(part, axis=1, prepend=0.0, append=1.0) for part in parts]


def landing(items: int, first: int | None, standing: Iterable[tuple[int, Floats, Floats]]) -> Floats:
    """P(the item at a position lands before a cut), for the ``first`` positions or all.

    ``standing`` lists for every j that is likely the number j itself, P(j are kept) times the places before each cut,
    and by q and cut P(j are kept, the q-th of them before the cut). Among j kept ones the item at a is the q-th (from
    0) with probability C(a, q) C(m-1-a, j-1-q) / C(m, j); an item that was not kept lands before a cut with the share
    of places left there.
    """
    position, log_factorial = np.arange(items if first is None else first)[:, None], _log_factorials(items)
    below = 0.0
    for j, places, kept in standing:
        q = np.arange(min(j, len(position)))[None, :]
        log = log_choose(position, q) + log_choose(items - 1 - position, j - 1 - q)
        share = np.exp(log + log_factorial[j] + log_factorial[items - j] - log_factorial[items])
        below = below + (places - kept.sum(axis=0)) / items + share @ kept[: q.size]
    return np.asarray(below)


def position_matrix(sizes: Sequence[int], tiers: Floats) -> Floats:
    """From the law of tiers, T[a, b]: the places of a tier are equally likely."""
    return np.repeat(tiers / np.array(sizes), sizes, axis=1)


def top_overlap(sizes: Sequence[int], tiers: Floats, k: int) -> float:
    """The expected share of the first k items that land on the first k places."""
    inside = np.clip(k - np.cumsum([0, *sizes[:-1]]), 0, sizes)
    return float((tiers[:k] @ (inside / np.array(sizes))).sum() / k)


def _values(law: Law) -> Longs:
    return np.arange(law[0], law[0] + len(law[1]))


def _trimmed(first: int, law: Floats) -> Law:
    likely = np.flatnonzero(law > _NEGLIGIBLE * law.max())
    return first + int(likely[0]), law[likely[0] : likely[-1] + 1]


def _sum(one: Law, other: Law) -> Law:
    """The law of the sum of two independent whole numbers."""
    return _trimmed(one[0] + other[0], np.convolve(one[1], other[1]))


def calibrated(epsilon: float, reach: int) -> float:
    """log z of the mechanism's own calibration (1+z)/(1 + z (1+z)^-reach) = e^eps, in floating point."""
    low, high = -800.0, epsilon + 1
    for _ in range(80):
        middle = (low + high) / 2
        more = float(np.logaddexp(0, middle))
        less = float(np.logaddexp(0, middle - reach * more))
        low, high = (middle, high) if more - less <= epsilon else (low, middle)
    return low


def reach(sizes: Sequence[int]) -> int:
    """The most kept items that a moved item can come into conflict with: all except the tier at one end."""
    return sum(sizes) - min(sizes[0], sizes[-1])


@lru_cache(maxsize=1024)
def best_sizes(items: int, epsilon: float) -> tuple[int, ...]:
    """The tiers that keep most pairs, among those with two equal ends and equal tiers between them (up to rounding).

    Long rankings lose nothing when every number is replaced by its mean, so all are compared by that estimate and the
    best few exactly.
    """
    known: dict[tuple[int, ...], float] = {}
    count, most = 2, min(items, _MOST_TIERS)
    while count <= most:
        tried = divisions(items, count)
        known |= {sizes: _estimate(sizes, calibrated(epsilon, reach(sizes))) for sizes in tried}
        if max(known.values()) - 0.5 > 1.05 * (max(known[sizes] for sizes in tried) - 0.5):
            break
        count = max(count + 1, math.floor(1.1 * count))
    finalists = sorted(known, key=lambda sizes: -known[sizes])[:_FINALISTS]
    exact = {sizes: TierLaw(sizes, calibrated(epsilon, reach(sizes))).concordance() for sizes in finalists}
    return max(exact, key=lambda sizes: (round(exact[sizes], 9), -len(sizes)))


def divisions(items: int, count: int) -> set[tuple[int, ...]]:
    """What is tried with ``count`` tiers: both ends are as large as the others, or a little larger."""
    return {shape(items, count, larger) for larger in _LARGER}


def shape(items: int, count: int, larger: float = 1.0) -> tuple[int, ...]:
    """``count`` tiers that are as equal as they can be, but for both ends, which are ``larger`` times as large."""
    cuts = np.cumsum([0.0, larger, *[1.0] * (count - 2), larger][: count + 1])
    places = np.floor(cuts / cuts[-1] * items + 0.5).astype(int)
    places[count - np.arange(count // 2)] = items - places[: count // 2]  # the same from both ends
    sizes = tuple(int(size) for size in np.diff(places))
    return sizes if min(sizes) > 0 else shape(items, count - 1, larger)


def _estimate(sizes: Sequence[int], log_weight: float) -> float:
    """The concordance with every r_b at its mean."""
    law = TierLaw(sizes, log_weight)
    left = np.array([part @ np.arange(len(part)) for part in law.left(law.typical)])
    kept, m = np.array(sizes) - left, law.items
    j = float(kept.sum())
    x = np.cumsum(kept) - kept
    y = j - x - kept
    aside = (x + y) * j + (x + y) / 2 - (x * x + y * y) / 2 + kept * (j + 1) / 2
    pairs = j * (j - 1) - (kept * (kept - 1)).sum() / 2 + (m - j) * (m - j - 1) / 2 + 2 * (left @ aside) / (j + 1)
    return float(pairs / (m * (m - 1)))
