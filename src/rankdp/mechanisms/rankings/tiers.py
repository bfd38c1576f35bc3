"""Tiers: keep the tiers in order, and no order inside them.

Cut the output into tiers of fixed public sizes mu_1..mu_B. The tiers of the items, in the input's order, are a word w.
Inside a tier the order is uniformly random, and

    P(w) proportional to the sum of z^|S| over the sets S on which w never falls.

``theory.tier_laws`` has the sampler. Reinsertion is the case of one tier per item.

Proof of eps: a neighbour moves one letter b of the word. Let A be the sum over the sets without it, the same for both
words, and z C and z C' the sums over the sets with it, before and after. C <= A. A set that counts in C counts in C'
after removing its letters that are now on the wrong side of b: letters above b if b moves to the right, at most
m - mu_1; letters below b if it moves to the left, at most m - mu_B. So C <= C' (1+z)^d with d = m - min(mu_1, mu_B),
and

    P(w)/P(w') = (A + z C) / (A + z C') <= (1+z) / (1 + z (1+z)^-d).

The first item of a sorted word, moved to the end (or the last to the front), attains it. The right side grows with z;
z is the largest number, to 100 bits and rounded down, at which it is at most e^eps.

The most likely word, the sorted one, has the sum (1+z)^m. Every word has the sets within one tier, and the reversed
word has no others: the classical local-DP epsilon is the log-ratio of the two.
"""

from __future__ import annotations

import decimal
import itertools
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankdp.checks import is_whole
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders, RankingMechanism, rows_from_halves
from rankdp.mechanisms.rankings.tier_tables import KeptTables, PackedTables
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, upwards
from rankdp.theory import tier_laws as theory
from rankdp.types import Flags, Longs

Bounds: TypeAlias = tuple[Fraction, Fraction]

LARGEST_CALIBRATED = Fraction(4096)  # epsilon; larger ones use its weight, which is more private
_GOOD_BITS = 100  # of the weight z


@lru_cache(maxsize=1024)
def calibrated(epsilon: Fraction, reach: int) -> Fraction:
    """The largest z, to 100 bits and rounded down, with (1+z) / (1 + z (1+z)^-reach) <= e^epsilon.

    Found by bisection between e^epsilon - 1 and twice e^epsilon; every operation rounds to the safe side.
    """
    exact = min(epsilon, LARGEST_CALIBRATED)
    digits = 60 + 2 * len(str(math.ceil(1 / exact)))
    with decimal.localcontext(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN) as context:
        context.rounding = decimal.ROUND_FLOOR
        growth = (Decimal(exact.numerator) / Decimal(exact.denominator)).exp().next_minus()
        generous = 1 + Decimal(10) ** (10 - digits)  # integer powers are good to a unit of the last digit

        def private(weight: Decimal) -> bool:
            context.rounding = decimal.ROUND_CEILING
            more = 1 + weight
            power = more**reach * generous
            context.rounding = decimal.ROUND_FLOOR
            return more <= growth * (1 + weight / power)

        low, high = growth - 1, 2 * growth
        while high - low > low / 2 ** (_GOOD_BITS + 2):
            middle = (low + high) / 2
            low, high = (middle, high) if private(middle) else (low, middle)
    weight = Fraction(low)
    shift = _GOOD_BITS + weight.denominator.bit_length() - weight.numerator.bit_length()
    unit = Fraction(2) ** shift
    return math.floor(weight * unit) / unit


def words_of(relative: Orders, sizes: Sequence[int]) -> NDArray[np.int32]:
    """By original position: the tier (from 0) in which the item lands."""
    tiers = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    words = np.empty_like(relative)
    np.put_along_axis(words, relative, np.broadcast_to(tiers, relative.shape), axis=1)
    return words


class TierSums(RankingMechanism):
    """Shared by mechanisms in which a word of tiers has the weight sum of z^|S| over sets on which it never falls."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the tiers; by default one tier per item."""
        return (1,) * self.items

    def _words(self, relative: Orders) -> NDArray[np.int32]:
        return words_of(relative, self.sizes)

    @property
    def _log_inside(self) -> float:
        """log of the number of orders inside the tiers."""
        return math.fsum(math.lgamma(size + 1) for size in self.sizes)

    @cached_property
    def weight(self) -> Fraction:
        """z, exactly."""
        return calibrated(self.epsilon, theory.reach(self.sizes))

    @property
    def _log_weight(self) -> float:
        return math.log(self.weight.numerator) - math.log(self.weight.denominator)

    @property
    @abstractmethod
    def _log_normaliser(self) -> float:
        """log of the sum over all words of their sums."""

    def local_epsilon(self) -> float:
        """m log(1+z) minus the log of the sum over the sets within one tier, rounded up."""
        digits = 60 + 2 * math.ceil(1 / self.weight).bit_length() + len(str(self.items)) + 4 * len(str(self.epsilon))
        with decimal.localcontext(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
            more = 1 + Decimal(self.weight.numerator) / Decimal(self.weight.denominator)
            least = 1 + sum((count * (more**size - 1) for size, count in Counter(self.sizes).items()), Decimal(0))
            return upwards(max(0.0, float(self.items * more.ln() - least.ln())))

    def _allowed(self, letters: Sequence[int]) -> bool:
        """Whether a set of items with these tiers, in the input's order, may be kept."""
        return all(before <= after for before, after in itertools.pairwise(letters))

    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        from rankdp.mechanisms.rankings.tier_kernels import log_kept_sum

        sums = log_kept_sum(self._words(relative), len(self.sizes), self._log_weight)
        return sums - self._log_normaliser - self._log_inside

    def log_prob_of_no_change(self) -> float:
        """From the sum of the sorted word, (1+z)^m."""
        return self.items * float(np.logaddexp(0, self._log_weight)) - self._log_normaliser - self._log_inside


class Tiered(TierSums):
    """A mechanism with tiers; their sizes are public parameters and part of its recorded name."""

    numbered: ClassVar[bool] = True
    debiasable: ClassVar[tuple[str, ...]] = ()
    # The sizes change in steps with epsilon, and so do these two measures: a curve over epsilon is meaningless.
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({"exact": 1, "overlap": 1})

    def __init__(self, items: int, epsilon: Real, tiers: Iterable[int] | None = None) -> None:
        super().__init__(items, epsilon)
        self.sizes = self._best_sizes() if tiers is None else self.check_sizes(tiers, self.items)
        self.name = f"{type(self).name}-{spelled(self.sizes)}"

    @classmethod
    def with_numbers(cls, items: int, epsilon: Real, numbers: tuple[int, ...]) -> Tiered:
        """With tiers of these sizes."""
        return cls(items, epsilon, numbers)

    @staticmethod
    def check_sizes(tiers: Iterable[int], items: int | None = None) -> tuple[int, ...]:
        """The sizes of at least two tiers, each at least 1; they add up to ``items`` if given."""
        sizes = tuple(tiers)
        if not whole_sizes(sizes) or len(sizes) < 2 or sum(sizes) != (items or sum(sizes)):
            length = f"{items}" if items else "the number of items"
            raise InputError(
                f"tiers must be at least two whole numbers above 0 that add up to {length}, got {list(sizes)}"
            )
        return tuple(int(size) for size in sizes)

    @cached_property
    def ties(self) -> Flags:
        """From the sizes of the tiers."""
        return tied_places([self.sizes])

    @abstractmethod
    def _best_sizes(self) -> tuple[int, ...]:
        """The sizes that keep most pairs, from the number of items and epsilon."""

    @property
    def parameters(self) -> dict[str, Any]:
        """With the sizes of the tiers."""
        return {**super().parameters, "tiers": list(self.sizes)}


class Tiers(Tiered):
    """Keep a random set of items in order of tiers, deal the others out. O(m) per ranking for every m.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking.
    tiers
        How many items of the output each tier holds, the top first; by default the sizes that keep most pairs in order.
    """

    name: str = "tiers"
    colour: ClassVar[str] = "#8C510A"
    position_law_up_to: ClassVar[int | None] = 500

    def _best_sizes(self) -> tuple[int, ...]:
        return theory.best_sizes(self.items, float(min(self.epsilon, LARGEST_CALIBRATED)))

    @cached_property
    def _law(self) -> theory.TierLaw:
        return theory.TierLaw(self.sizes, self._log_weight)

    @property
    def _log_normaliser(self) -> float:
        return self._law.log_normaliser

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of the tiers for each public offset, here one; a tier may be empty."""
        return [self.sizes]

    @cached_property
    def _tables(self) -> PackedTables:
        """The sampling tables for each offset."""
        laws = [theory.TierLaw([size for size in sizes if size], self._log_weight) for sizes in self.shapes]
        pairs = zip(self.shapes, laws, strict=True)
        tables = [KeptTables(sizes, self.weight, law.typical) for sizes, law in pairs]
        return PackedTables(tables, min(law.acceptance for law in laws))

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        self._draw_shapes(orders, out, np.zeros(len(orders), dtype=np.int64), bits)

    def _draw_shapes(self, orders: Orders, out: Orders, which: Longs, bits: Bits) -> None:
        """Write a synthetic order for each row, with tiers of its shape."""
        from rankdp.mechanisms.rankings.tier_kernels import deal

        kept = self._tables.sample(which, bits)
        rows_from_halves(deal, orders, kept, out, bits, self.items // 2 + 1, np.array(self.shapes))

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the tables."""
        return self._shape_law(0, bits)

    def _shape_law(self, shape: int, bits: int) -> EnclosedLaw:
        """The law for the tiers of one shape, from the numbers kept and accepted, with S and the dealing uniform.

        A set S that may be kept has the r_b of the letters outside it, and contributes P(r_1..r_B) / C(m, j) times
        r_1! … r_B! / (m-j)!.
        """
        sizes, proposed = self.shapes[shape], self._tables.tables[shape].law(bits)
        sets = list(itertools.product((False, True), repeat=self.items))

        @cache
        def drawn(left: tuple[int, ...]) -> Bounds:
            d = sum(left)
            share = Fraction(math.prod(map(math.factorial, left)), math.comb(self.items, d) * math.factorial(d))
            low, high = proposed(left)
            return share * low, share * high

        @cache
        def enclosed(word: tuple[int, ...]) -> Bounds:
            low = high = Fraction(0)
            for inside in sets:
                letters = tuple(itertools.compress(word, inside))
                if self._allowed(letters):
                    outside = Counter(letter for letter, kept in zip(word, inside, strict=True) if not kept)
                    least, most = drawn(tuple(outside[tier] for tier in range(len(sizes))))
                    low, high = low + least, high + most
            return low, high

        return [enclosed(tuple(word)) for word in words_of(self._permutations, sizes).tolist()]

    def _keep(self, i: int, j: int) -> float:
        return self._law.keep(i, j)

    def expected_concordance(self) -> float:
        """From the numbers of items kept in each tier, for every length."""
        return self._law.concordance()

    @cached_property
    def _tier_matrix(self) -> NDArray[np.float64]:
        return self._law.tier_matrix()

    def position_matrix(self) -> NDArray[np.float64]:
        """From the law of the tier in which an item lands; inside a tier every place is equally likely."""
        return theory.position_matrix(self.sizes, self._tier_matrix)

    def top_overlap(self, k: int) -> float:
        """From the tiers of the first k positions."""
        return theory.top_overlap(self.sizes, self._law.tier_matrix(first=k), k)


def tied_places(divisions: Sequence[Sequence[int]]) -> Flags:
    """For each division, one row: whether each place is in the tier of the place before."""
    places = [[bool(place) for size in sizes for place in range(size)] for sizes in divisions]
    return np.array(places, dtype=np.bool_)


def whole_sizes(sizes: Sequence[Any]) -> bool:
    """Whether all are whole numbers above 0."""
    return all(is_whole(size) and size > 0 for size in sizes)


def spelled(sizes: Sequence[int]) -> str:
    """Sizes as part of a name: 3-2-2-3 is 3-2x2-3, two tiers of two between two of three."""
    runs = [(size, len(list(run))) for size, run in itertools.groupby(sizes)]
    return "-".join(str(size) if count == 1 else f"{count}x{size}" for size, count in runs)


def read_name(name: str) -> tuple[str, tuple[int, ...] | None]:
    """The name of a mechanism and the numbers after it, such as sizes of tiers; None if there are none."""
    match = re.fullmatch(r"(.+?)-((?:\d{1,6}x)?\d{1,9}(?:-(?:\d{1,6}x)?\d{1,9})*)", name)
    if not match:
        return name, None
    runs = [run.rpartition("x") for run in match[2].split("-")]
    return match[1], tuple(int(size) for count, _, size in runs for _ in range(int(count or 1)))
