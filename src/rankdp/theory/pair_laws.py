"""Where a pair of positions lands, the law behind unbiased win rates (docs/theory.md); and a closed form without it.

A mechanism moves the items at original positions a1 < a2 to b1 and b2. ``PairLaw`` holds, for all pairs in
lexicographic order, P(they land on a pair in order) and P(they land on it crossed); by right-invariance this is all
there is to know about two items.

Kendall: follow two items through the insertion process; O(m^5) additions in total, half a second for 50 items.

Reinsertion: with s of m items kept, (a1, a2) are the q1-th and q2-th kept ones with probability

    A_s[a, q] = C(a1, q1) C(a2-a1-1, q2-q1-1) C(m-1-a2, s-1-q2) / C(m, s)

and go to (b1, b2) with A_s[b, q]. If only the item at a1 is kept, as the q-th, the other one takes any of the m-s free
places: K_s[a, q] K_s[b, q] / (m-s), where K_s depends on a1 and on which side a2 is. If none is kept, all places are
alike.

Better still, under reinsertion the span of sgn(b2-b1) and b2-b1 is invariant. With the gap g = a2-a1,

    E sgn(b2-b1) = alpha + beta g,    E (b2-b1) = lambda g,

because q2-q1 is hypergeometric and spacings of a random set have mean (m+1)/(s+1). So

    h = 1/2 + (sgn(b2-b1) - (beta/lambda) (b2-b1)) / (2 alpha),    E h = 1 if a1 < a2, else 0,

is unbiased for every m and eps, and (b - (m-1)/2)/lambda + (m-1)/2 is unbiased for the position. (Derived here; the
tests compare both with the solution of the linear system.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankdp.theory import mallows
from rankdp.theory.concordance import NEGLIGIBLE, log_choose
from rankdp.types import Floats, Ints, Longs


class PairLaw(NamedTuple):
    """Row: the pair of original positions a1 < a2. Column: the pair b1 < b2 that it lands on, in order or crossed."""

    same: Floats
    crossed: Floats

    def signed(self) -> Floats:
        """What it does to functions that change sign when the pair is reversed."""
        return self.same - self.crossed

    def unsigned(self) -> Floats:
        """What it does to functions that do not care which of the pair comes first."""
        return self.same + self.crossed


class Moments(NamedTuple):
    """An unbiased estimate: its value by synthetic position(s), and its variance by original position(s)."""

    values: Floats
    variances: Floats


def pairs(items: int) -> tuple[Longs, Longs]:
    """All pairs of positions, the smaller and the larger, in lexicographic order."""
    first, second = np.triu_indices(items, 1)
    return first, second


def mirrored(items: int) -> Longs:
    """By pair of positions: the number of the pair that it becomes when rankings are turned upside down."""
    first, second = pairs(items)
    number = np.zeros((items, items), dtype=np.int64)
    number[first, second] = np.arange(len(first))
    return number[items - 1 - second, items - 1 - first]


def of_permutations(permutations: Ints, probabilities: Floats) -> PairLaw:
    """The law of an explicit distribution over relative permutations (s[j]: the original position of what is at j)."""
    items = permutations.shape[1]
    law = np.zeros((items, items, items * items))
    for b1, b2 in zip(*pairs(items), strict=True):
        cells = permutations[:, b1].astype(np.int64) * items + permutations[:, b2]
        law[b1, b2] = np.bincount(cells, probabilities, items * items)
    return from_cells(law.reshape((items,) * 4))


def from_cells(law: Floats) -> PairLaw:
    """From law[b1, b2, a1, a2], filled for b1 < b2."""
    first, second = pairs(len(law))
    landed = law[first, second]
    return PairLaw(landed[:, first, second].T.copy(), landed[:, second, first].T.copy())


def kendall_pair_law(items: int, epsilon: float) -> PairLaw:
    """Follow all pairs at once: item t joins t others at place x with weight r^(t-x) and pushes those from x on."""
    rate = mallows.rate(items, epsilon)
    begun = [t * (t - 1) // 2 for t in range(items + 1)]  # pairs with both items before t, in order of the second
    law = np.zeros((begun[items], items, items))
    single = np.zeros((items, items))
    single[0, 0] = 1
    for t in range(1, items):
        landing = np.exp(-rate * np.arange(t, -1, -1))
        landing /= landing.sum()
        pushed = np.cumsum(landing)[:t]
        _join(law[: begun[t], : t + 1, : t + 1], pushed)
        starting = law[begun[t] : begun[t + 1]]
        for place in range(t + 1):
            starting[:, :place, place] = single[:t, :place] * landing[place]
            starting[:, place + 1 : t + 1, place] = single[:t, place:t] * landing[place]
        moving = single[:t, :t] * pushed
        single[:t, :t] -= moving
        single[:t, 1 : t + 1] += moving
        single[t, : t + 1] = landing
    first, second = pairs(items)
    by_start = law[second * (second - 1) // 2 + first]
    return PairLaw(by_start[:, first, second], by_start[:, second, first])


def _join(law: Floats, pushed: Floats) -> None:
    """One more item joins: law[pair, p1, p2] with p1, p2 up to t-1 becomes the law up to t, in place."""
    t = len(pushed)
    near, far = (choose.outer(np.arange(t), np.arange(t)) for choose in (np.minimum, np.maximum))
    between = pushed[far] - pushed[near]
    old = law[:, :t, :t].copy()
    law[:, :t, :t] *= 1 - pushed[far]
    law[:, 1:, 1:] += old * pushed[near]
    law[:, :t, 1:] += old * np.triu(between, 1)
    law[:, 1:, :t] += old * np.tril(between, -1)


def reinsertion_pair_law(items: int, law: Floats) -> PairLaw:
    """By whether both, one or none of the pair is kept, given law[d] = P(d items are taken out)."""
    first, second = pairs(items)
    place = np.arange(items)[:, None]
    both = np.zeros((len(first), len(first)))
    one = np.zeros((2 * items, 2 * items))  # kept position, twice: the other item before it, the other item after it
    none = 0.0
    for s in np.flatnonzero(law[::-1] >= NEGLIGIBLE).tolist():
        d, share, everything = items - s, float(law[items - s]), log_choose(items, s)
        none += share * d * (d - 1) / (items * (items - 1)) ** 2
        q = np.arange(s)
        if s > 1:
            q1, q2 = pairs(s)
            a1, a2 = first[:, None], second[:, None]
            log = log_choose(a1, q1) + log_choose(a2 - a1 - 1, q2 - q1 - 1) + log_choose(items - 1 - a2, s - 1 - q2)
            kept = np.exp(log - everything)
            both += share * kept @ kept.T
        if s and d:
            before = log_choose(np.maximum(place - 1, 0), q) + log_choose(items - 1 - place, s - 1 - q)
            after = log_choose(place, q) + log_choose(np.maximum(items - 2 - place, 0), s - 1 - q)
            before[0] = after[-1] = -np.inf  # nothing is before the first or after the last
            sides = np.exp(np.concatenate([before, after]) - everything)
            one += share / d * sides @ sides.T
    late_first, early_second = items + first, second  # the first of a pair has the other after it, the second before it
    ahead = one[np.ix_(late_first, late_first)] + one[np.ix_(early_second, early_second)]
    turned = one[np.ix_(late_first, early_second)] + one[np.ix_(early_second, late_first)]
    return PairLaw(both + ahead + none, turned + none)


def reinsertion_slopes(items: int, law: Floats) -> tuple[float, float, float]:
    """alpha, beta and lambda of the module's formula; alpha and lambda are above 0 for every eps."""
    m, s = items, np.arange(items, -1, -1)
    stay = s * (s - 1) / (m * (m - 1))
    alone = 2 * (m - s) / ((s + 1) * max(m - 2, 1))
    alpha = float(np.dot(law, stay * (1 - alone)))
    beta = float(np.dot(law, stay * alone))
    return alpha, beta, float(np.dot(law, stay * (m + 1) / (s + 1)))


def reinsertion_pairs(items: int, law: Floats) -> Moments:
    """h(b1, b2) of the module's formula (1/2 where b1 = b2), and its variance for a1 < a2 (0 elsewhere)."""
    alpha, beta, slope = reinsertion_slopes(items, law)
    place = np.arange(items)
    gap = place[None, :] - place[:, None]
    values = 0.5 + (np.sign(gap) - beta / slope * gap) / (2 * alpha)
    distance, square = _gap_moments(items, law)
    spread = (1 - 2 * beta / slope * distance + (beta / slope) ** 2 * square) / (4 * alpha**2) - 0.25
    return Moments(values, np.triu(np.maximum(spread, 0), 1))


def reinsertion_ranks(items: int, law: Floats) -> Moments:
    """The unbiased rank (from 1) by synthetic position, and its variance by original position.

    A kept item is the (q+1)-th of s, q hypergeometric, and E (b+1)(b+2) = (q+1)(q+2) (m+1)(m+2) / ((s+1)(s+2)).
    """
    m, s = items, np.arange(items, -1, -1)
    slope = reinsertion_slopes(items, law)[2]
    place, middle = np.arange(items), (items - 1) / 2
    kept = law * s / m * (m + 1) * (m + 2) / ((s + 1) * (s + 2))
    rising = sum(
        factor * float(np.dot(kept, _falling_share(s - 1, m - 1, r))) * _falling(place, r)
        for r, factor in ((0, 2), (1, 4), (2, 1))
    )
    removed = float(np.dot(law, 1 - s / m))
    # rising = E (b+1)(b+2) on the kept part; E b overall is affine
    mean = middle + slope * (place - middle)
    second = rising - 3 * (mean - removed * middle) - 2 * (1 - removed) + removed * (m - 1) * (2 * m - 1) / 6
    values = np.asarray(1 + middle + (place - middle) / slope, dtype=np.float64)
    return Moments(values, np.asarray(np.maximum(second - mean**2, 0) / slope**2, dtype=np.float64))


def _gap_moments(items: int, law: Floats) -> tuple[Floats, Floats]:
    """E of the distance of b1 and b2 and of its square, for every a1 < a2.

    k steps apart among s random places of m: the distance Y has mean k (m+1)/(s+1), and Y(Y+1) has k(k+1) (m+1)(m+2) /
    ((s+1)(s+2)). Both kept: k-1 is hypergeometric in the gap. One kept, as the q-th: it and the other are two of s+1
    places, and k is 1..q+1 or 1..s-q, each with probability 1/(s+1). None kept: two places at random.
    """
    m, s = items, np.arange(items, -1, -1)
    d = m - s
    place = np.arange(m)
    two, single, gone = (law * part / (m * (m - 1)) for part in (s * (s - 1), s * d, d * (d - 1)))

    def once(t: Longs) -> Floats:
        return np.asarray((m + 1) / (t + 1))

    def twice(t: Longs) -> Floats:
        return np.asarray((m + 1) * (m + 2) / ((t + 1) * (t + 2)))

    def mixed(weights: Floats, kept: Longs, at: Longs, *factors: float) -> Floats:
        terms = [
            factor * float(np.dot(weights, _falling_share(kept, m - 2, r))) * _falling(at, r)
            for r, factor in enumerate(factors)
        ]
        return np.asarray(sum(terms), dtype=np.float64)

    between = np.maximum(place - 1, 0)  # by gap: the items in between
    kept_once, kept_twice = mixed(two * once(s), s - 2, between, 1, 1), mixed(two * twice(s), s - 2, between, 2, 4, 1)
    # by how many of the other m-2 items are on one side of the kept one
    side_once = mixed(single * once(s + 1) / (s + 1), s - 1, place, 1, 2, 0.5)
    side_twice = mixed(single * twice(s + 1) / (s + 1), s - 1, place, 2, 6, 3, 1 / 3)
    apart = float(gone.sum())
    first, second = place[:, None], place[None, :]
    gap = np.abs(second - first)

    def over_pairs(by_gap: Floats, by_side: Floats) -> Floats:
        by_kept = by_side + np.roll(by_side[::-1], -1)  # both sides of the first: a1 before it, m-2-a1 after it
        return np.asarray(by_gap[gap] + by_kept[first] + by_kept[::-1][second])

    distance = over_pairs(kept_once, side_once) + apart * (m + 1) / 3
    rising = over_pairs(kept_twice, side_twice) + apart * (m + 1) * (m + 2) / 6
    return distance, rising - distance


def _falling(x: Longs, r: int) -> Floats:
    """x (x-1) … (x-r+1)."""
    product = np.ones(len(x))
    for k in range(r):
        product *= np.maximum(x - k, 0)
    return product


def _falling_share(x: Longs, of: int, r: int) -> Floats:
    """The same over of (of-1) …: a factorial moment of a hypergeometric variable, but for the other side's factor."""
    whole = float(np.prod([of - k for k in range(r)], dtype=np.float64))
    return _falling(x, r) / whole if of >= r else np.zeros(len(x))
