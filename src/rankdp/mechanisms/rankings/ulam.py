"""The Ulam mechanism, and Ulam tiers: the exponential mechanism in the metric that ranking DP itself is made of.

Neighbouring rankings differ by moving one item, which is distance 1 in Ulam's metric, m minus the longest common
subsequence. With tiers (``tiers``) one looks at the word of tiers alone, and the order inside a tier is random:

    P(w) proportional to exp(-eps (m - L(w))),    L the longest non-decreasing subsequence.

Ulam's is the case of a tier for each item. Proof of eps: a neighbour moves one letter of the word, and L changes by at
most 1. Moving the first letter of the sorted word to the end attains it. The sorted word and its reverse (L = the
largest mu_b) differ by eps (m - max mu_b): the classical local-DP epsilon.

Exact sampling: by the Robinson-Schensted-Knuth correspondence a word is a standard tableau and a semistandard one (mu_b
entries b) of one shape, whose first row is L long. Hook lengths count the first kind (f of each shape). The entries b
of the second kind are a strip with no two in a column; without it a tableau with one letter less is left, which gives
their number K by recursion. Draw L with weight e^(eps L) sum f K, the shape with weight f K (big integers), the
standard tableau by the hook walk, the other one strip by strip (by the hook walk too where all mu_b are 1), and go back
through the correspondence. Up to 5 items a table of all outputs is faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import ClassVar

import numpy as np

from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import TABLE_UP_TO, EnclosedLaw, Orders, rows_from_halves
from rankdp.mechanisms.rankings.tiers import Tiered, Worded
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.privacy.cut_tables import CutTable, Weights, integer_weights
from rankdp.privacy.exact import Real, exp_bounds
from rankdp.theory.pair_laws import PairLaw, from_cells
from rankdp.theory.permutations import longest_rising, pair_tallies, tableau_shape, tallies
from rankdp.theory.tier_laws import divisions
from rankdp.theory.tier_laws import position_matrix as tier_positions
from rankdp.theory.tier_laws import top_overlap as tier_overlap
from rankdp.types import Floats, Ints

EXACT_UP_TO = 10
_SIMULATED_ROWS = 1 << 17
_MOST_STATES = 100_000  # of the counts behind the public numbers of Ulam tiers: seconds


class Ulam(Worded):
    """Close to the best possible for short rankings.

    Up to 10 items ``keep_probability``, ``position_matrix`` and ``expected_concordance`` are exact, from all
    m! permutations. No closed form is known above; there they are estimated from 131,072 seeded draws
    (standard error below 0.0014 for a probability, below 0.0005 for the concordance), which costs no privacy.
    """

    name: str = "ulam"
    colour: ClassVar[str] = "#0072B2"
    most_items: ClassVar[int | None] = 60
    compared_up_to: ClassVar[int | None] = EXACT_UP_TO
    position_law_up_to: ClassVar[int | None] = EXACT_UP_TO
    pair_law_up_to: ClassVar[int] = EXACT_UP_TO

    def local_epsilon(self) -> Fraction:
        """eps (m - max mu_b), exactly."""
        return self.epsilon * self._farthest

    @property
    def _farthest(self) -> int:
        """The largest m - L."""
        return self.items - max(self.sizes)

    def _shrinking(self, bits: int) -> list[tuple[int, int]]:
        """Enclosures of e^(-eps j) for every m - L = j, good to so many bits also after a sum over all permutations."""
        scale = bits + math.factorial(self.items).bit_length() + 8
        return [exp_bounds(self.epsilon * j, scale) for j in range(self._farthest + 1)]

    def exact_law(self, bits: int) -> EnclosedLaw:
        """Very short rankings have a cell each, of weight e^(-eps (m - L)).

        Others are drawn by m - L, then by shape; then every standard tableau is equally likely (a theorem on the hook
        walk), and the other one is drawn strip by strip. The shapes of a word, and of what is left without its largest
        letters, are found here by Schensted's insertion.
        """
        m, words = self.items, self._words(self._permutations).tolist()
        if m <= TABLE_UP_TO:
            bounds = self._shrinking(bits)
            return [bounds[m - longest_rising(word)] for word in words]
        moved = self._moved.weights(bits)

        @cache
        def enclosed(*word: int) -> tuple[Fraction, Fraction]:
            outer = [tableau_shape([letter for letter in word if letter < b]) for b in range(len(self.sizes) + 1)]
            shape = outer[-1]
            family = self._shapes(shape[0])
            shapes, cell = family.table.weights(bits), family.parts.index(shape)
            even = Fraction(1, _tableaux(shape))
            even *= even if max(self.sizes) == 1 else self._chance(outer)
            low, high = moved.low[m - shape[0]] * shapes.low[cell], moved.high[m - shape[0]] * shapes.high[cell]
            return low * even / sum(shapes.high), high * even / sum(shapes.low)

        return [enclosed(*word) for word in words]

    def _chance(self, outer: Sequence[tuple[int, ...]]) -> Fraction:
        """The probability that strips are drawn which leave these shapes."""
        chance = Fraction(1)
        for b, (inner, shape) in enumerate(itertools.pairwise(outer), 1):
            strips = _Strips.of(shape, self.sizes[:b])
            weights = strips.table.weights(0).low
            chance *= Fraction(weights[strips.inner.index(inner)], sum(weights))
        return chance

    def _shapes(self, first: int) -> _Shapes:
        return _Shapes.of(self.sizes, first)

    @cached_property
    def _moved(self) -> CutTable:
        """The law of m - L: weights e^(-eps j) times the number of words with L = m - j."""
        counts = [self._shapes(self.items - j).total for j in range(self._farthest + 1)]

        def weights(bits: int) -> Weights:
            bounds = self._shrinking(bits)
            return Weights(
                [count * low for count, (low, _) in zip(counts, bounds, strict=True)],
                [count * high for count, (_, high) in zip(counts, bounds, strict=True)],
            )

        return CutTable(weights)

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        if self.items <= TABLE_UP_TO:
            self._draw_outputs(orders, out, bits)
            return
        from rankdp.mechanisms.rankings.sampling_kernels import permutations_of_shapes

        moved = self._moved.sample(len(orders), bits)
        shapes = np.zeros((len(orders), len(self.sizes)), dtype=np.int32)
        for j in np.unique(moved):
            rows = np.flatnonzero(moved == j)
            family = self._shapes(self.items - int(j))
            shapes[rows] = family.rows[family.table.sample(len(rows), bits)]
        if max(self.sizes) > 1:
            shapes = np.concatenate([shapes, self._fill(shapes, bits)], axis=1)
        rows_from_halves(permutations_of_shapes, orders, shapes, out, bits, 3 * self.items, np.array(self.sizes))

    def _fill(self, shapes: Ints, bits: Bits) -> Ints:
        """Uniform semistandard tableaux of these shapes: the row of each entry, equal ones from left to right."""
        filled = np.empty((len(shapes), self.items), dtype=np.int32)
        downwards = np.tile(np.arange(shapes.shape[1], dtype=np.int32)[::-1], len(shapes))
        end = self.items
        for b in range(len(self.sizes), 0, -1):
            inner = np.zeros_like(shapes)
            kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
            for k, shape in enumerate(kinds.tolist()):
                rows = np.flatnonzero(kind.ravel() == k)
                strips = _Strips.of(tuple(filter(None, shape)), self.sizes[:b])
                inner[rows, : strips.rows.shape[1]] = strips.rows[strips.table.sample(len(rows), bits)]
            start = end - self.sizes[b - 1]
            filled[:, start:end] = np.repeat(downwards, (shapes - inner)[:, ::-1].ravel()).reshape(len(shapes), -1)
            shapes, end = inner, start
        return filled

    def _log_prob(self, relative: Orders) -> Floats:
        from rankdp.mechanisms.rankings.sampling_kernels import longest_rising_lengths

        moved = self.items - longest_rising_lengths(self._words(relative))
        return np.asarray(self.log_prob_of_no_change() - float(self.epsilon) * moved, dtype=np.float64)

    def log_prob_of_no_change(self) -> float:
        """-log of the sum over L of e^(-eps (m - L)) times the number of words with that L, and orders inside tiers."""
        moved = np.arange(self._farthest + 1)
        log_counts = np.array([math.log(self._shapes(self.items - int(j)).total) for j in moved])
        return -float(np.logaddexp.reduce(log_counts - float(self.epsilon) * moved)) - self._log_inside

    def _share(self, counts: Floats) -> Floats:
        """The mean of what was counted by L, given a count of all words by L."""
        weights = np.exp(-float(self.epsilon) * (self.items - np.arange(1, self.items + 1)))
        words = tallies(self.sizes)[0][1:, 0].sum(axis=1)
        return np.tensordot(weights / np.dot(weights, words), counts[1:], 1)

    @cached_property
    def _public(self) -> tuple[Floats, Floats]:
        """The law of tiers by position, and the mean number of pairs of an item in tier b and a later one in tier c."""
        if _states(self.sizes) > _MOST_STATES:
            return _from_draws(self.sample(np.tile(np.arange(self.items), (_SIMULATED_ROWS, 1)), SeededBits(0)))
        landed, kept = tallies(self.sizes)
        return self._share(landed), self._share(kept)

    def _keep(self, i: int, j: int) -> float:
        """Depends on both positions, not only on the gap. (A permutation and its inverse have the same L.)"""
        return float(self._public[1][i, j])

    def position_matrix(self) -> Floats:
        """Exact up to 10 items, estimated above."""
        return tier_positions(self.sizes, self._public[0])

    def _pair_law(self) -> PairLaw:
        """From all m! permutations, counted by their longest increasing subsequence."""
        return from_cells(self._share(pair_tallies(self.sizes)))

    def expected_concordance(self) -> float:
        """Exact up to 10 items, estimated above."""
        kept = self._public[1]
        return float((np.triu(kept, 1).sum() + np.trace(kept) / 2) / math.comb(self.items, 2))


class UlamTiers(Tiered, Ulam):
    """The best of the tiers for short rankings; all its numbers are exact.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking.
    tiers
        How many items of the output each tier holds, the top first; by default the sizes that keep most pairs in order.
        Two tiers serve up to 100 items, more tiers shorter rankings.
    """

    name: str = "ulam-tiers"
    colour: ClassVar[str] = "#332288"
    most_items: ClassVar[int | None] = 100
    compared_up_to: ClassVar[int | None] = 20
    position_law_up_to: ClassVar[int | None] = None
    pair_law_up_to: ClassVar[int] = 7

    def __init__(self, items: int, epsilon: Real, tiers: Iterable[int] | None = None) -> None:
        super().__init__(items, epsilon, tiers)
        if _states(self.sizes) > _MOST_STATES:
            raise InputError(
                f"tiers of the {type(self).name} mechanism must be few enough to be counted, two for up to "
                f"{self.most_items} items, got {list(self.sizes)}"
            )

    def _best_sizes(self) -> tuple[int, ...]:
        kept = {}
        for count in range(2, self.items + 1):
            for sizes in divisions(self.items, count):
                if _states(sizes) <= _MOST_STATES:
                    kept[sizes] = UlamTiers(self.items, self.epsilon, sizes).expected_concordance()
        return max(kept, key=lambda sizes: (round(kept[sizes], 9), -len(sizes)))

    @cached_property
    def _pairs(self) -> Floats:
        """By two positions and two tiers: the probability that they land there."""
        return self._share(pair_tallies(self.sizes))

    def _keep(self, i: int, j: int) -> float:
        law = self._pairs[i, j]
        return float(np.triu(law, 1).sum() + np.trace(law) / 2)

    def _pair_law(self) -> PairLaw:
        """Inside a tier, and inside a pair of tiers, all places are equally likely."""
        size, tier = np.array(self.sizes), np.repeat(np.arange(len(self.sizes)), self.sizes)
        ways = np.outer(size, size) - np.diag(size)
        share = self._pairs / np.maximum(ways, 1)
        share = share + share.transpose(1, 0, 3, 2)
        return from_cells(np.moveaxis(share[:, :, tier[:, None], tier[None, :]], (0, 1), (2, 3)))

    def top_overlap(self, k: int) -> float:
        """From the law of tiers."""
        return tier_overlap(self.sizes, self._public[0], k)


def _states(sizes: Sequence[int]) -> int:
    """How many states ``theory.permutations`` goes through at most: letters read and, but for the first, tops."""
    return math.prod((size + 1) * (size + 2) // 2 for size in sizes[1:]) * (sizes[0] + 1)


class _Shapes:
    """All partitions of m with a given first part, and how many words with mu_b letters b have each as their shape."""

    def __init__(self, sizes: tuple[int, ...], first: int) -> None:
        weights = {
            shape: _tableaux(shape) * _fillings(shape, sizes) for shape in _partitions(sum(sizes), first, len(sizes))
        }
        self.parts = [shape for shape, weight in weights.items() if weight]
        self.weights = [weights[shape] for shape in self.parts]
        self.total, self.rows = sum(self.weights), _padded(self.parts, len(sizes))

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, sizes: tuple[int, ...], first: int) -> _Shapes:
        return cls(sizes, first)

    @cached_property
    def table(self) -> CutTable:
        return CutTable(integer_weights(self.weights))


class _Strips:
    """What may be left of a shape without the largest letter, and the number of tableaux of each."""

    def __init__(self, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        fillings = {inner: _fillings(inner, sizes[:-1]) for inner in _without_strip(shape, sizes[-1])}
        self.inner = [inner for inner, count in fillings.items() if count]
        self.rows = _padded(self.inner, len(sizes))
        self.table = CutTable(integer_weights([fillings[inner] for inner in self.inner]))

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, shape: tuple[int, ...], sizes: tuple[int, ...]) -> _Strips:
        return cls(shape, sizes)


def _padded(parts: Sequence[tuple[int, ...]], width: int) -> Ints:
    """One partition a row, zeros behind it."""
    rows = np.zeros((len(parts), width), dtype=np.int32)
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part
    return rows


def _partitions(total: int, first: int, most: int) -> Iterator[tuple[int, ...]]:
    """The partitions of ``total`` into at most so many parts whose first one is ``first``."""
    rest = total - first
    if rest == 0:
        yield (first,)
    if rest <= first * (most - 1):
        for second in range(min(first, rest), 0, -1):
            for tail in _partitions(rest, second, most - 1):
                yield (first, *tail)


def _tableaux(shape: tuple[int, ...]) -> int:
    """The number of standard tableaux of a shape: m! over the product of the hook lengths.

    In Frobenius' form with l_i = part_i + (rows - 1 - i): m! times the product of (l_i - l_j) over i < j,
    over that of l_i!.
    """
    ends = [part + len(shape) - 1 - i for i, part in enumerate(shape)]
    spread = math.prod(a - b for i, a in enumerate(ends) for b in ends[i + 1 :])
    return math.factorial(sum(shape)) * spread // math.prod(map(math.factorial, ends))


@lru_cache(maxsize=1 << 16)
def _fillings(shape: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """The Kostka number: how many semistandard tableaux of a shape have mu_b entries b."""
    if len(shape) > len(sizes):
        return 0
    if max(sizes, default=1) == 1:
        return _tableaux(shape)
    return sum(_fillings(inner, sizes[:-1]) for inner in _without_strip(shape, sizes[-1]))


def _without_strip(shape: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """What is left of a shape without ``size`` cells of which no two stand in a column."""
    if not shape:
        if size == 0:
            yield ()
        return
    below = shape[1] if len(shape) > 1 else 0
    for taken in range(min(shape[0] - below, size) + 1):
        for rest in _without_strip(shape[1:], size - taken):
            yield (shape[0] - taken, *rest) if shape[0] > taken else ()


def _from_draws(draws: Orders) -> tuple[Floats, Floats]:
    """Relative frequencies of landing and keeping in rows of relative permutations."""
    rows, m = draws.shape
    landed = np.zeros((m, m))
    for b in range(m):
        landed[:, b] = np.bincount(draws[:, b], minlength=m)
    places = np.argsort(draws, axis=1)
    kept = np.array([(places[:, i : i + 1] < places).sum(axis=0) for i in range(m)])
    return landed / rows, kept / rows
