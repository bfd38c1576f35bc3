"""Tiers: keep the tiers in order, and nothing inside them.

Cut the output into tiers of fixed public sizes mu_1..mu_B. The items in the input's order land in tiers: a word w.
Inside a tier the order is uniformly random, and

    P(w) proportional to the sum of z^|S| over the sets S on which w never falls.

Drawn as in ``theory.tier_laws``. Reinsertion is the case of a tier for each item.

Proof of eps: a neighbour moves one letter b of the word. Let A be the sum over the sets without it, the same for both
words, and z C and z C' the sums over the sets with it, before and after. C <= A. A set that counts in C counts in C'
once those of its letters that now stand on the wrong side are left out: letters above b if b moves to the right, which
are at most m - mu_1, below b if it moves to the left, at most m - mu_B. So C <= C' (1+z)^d with d = m - min(mu_1, mu_B)
and

    P(w)/P(w') = (A + z C) / (A + z C') <= (1+z) / (1 + z (1+z)^-d).

The first item of a sorted word, moved to the end (or the last to the front), attains it. The right side grows with z;
z is the largest number, to 100 bits and rounded down, at which it is at most e^eps.

The most likely word, sorted, has the sum (1+z)^m. Every word has the sets within one tier, the reverse no others: the
classical local-DP epsilon is the log-ratio of the two.
"""

from __future__ import annotations

import decimal
import itertools
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders, RankingMechanism, rows_from_halves
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import WORD, CutTable, Weights, log_concave_weights
from rankdp.privacy.exact import Real, upwards
from rankdp.theory import tier_laws as theory

_LARGEST_CALIBRATED = Fraction(4096)  # epsilon; above it the weight of this one is taken, which is more private
_GOOD_BITS = 100  # of the weight z


@lru_cache(maxsize=1024)
def calibrated(epsilon: Fraction, reach: int) -> Fraction:
    """The largest z, to 100 bits and rounded down, with (1+z) / (1 + z (1+z)^-reach) <= e^epsilon.

    Halved between e^epsilon - 1 and twice e^epsilon, every operation rounded so that the test is on the safe side.
    """
    exact = min(epsilon, _LARGEST_CALIBRATED)
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


class Worded(RankingMechanism):
    """A mechanism whose law depends on the word of tiers alone."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """A tier for each item, unless they are given."""
        return (1,) * self.items

    def _words(self, relative: Orders) -> NDArray[np.int32]:
        """By original position: the tier (from 0) in which the item lands."""
        tiers = np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)
        words = np.empty_like(relative)
        np.put_along_axis(words, relative, np.broadcast_to(tiers, relative.shape), axis=1)
        return words

    @property
    def _log_inside(self) -> float:
        """log of the number of orders inside the tiers."""
        return math.fsum(math.lgamma(size + 1) for size in self.sizes)


class TierSums(Worded):
    """What all mechanisms share whose word weighs the sum of z^|S| over sets that do not fall by more than ``drop``."""

    drop: ClassVar[int] = 0

    @cached_property
    def weight(self) -> Fraction:
        """z, exactly."""
        return calibrated(self.epsilon, theory.reach(self.sizes, self.drop))

    @property
    def _log_weight(self) -> float:
        return math.log(self.weight.numerator) - math.log(self.weight.denominator)

    @property
    @abstractmethod
    def _log_normaliser(self) -> float:
        """log of the sum over all words of their sums."""

    def local_epsilon(self) -> float:
        """m log(1+z) less the log of the sum over the sets within ``drop`` + 1 neighbouring tiers, rounded up."""
        digits = 60 + 2 * math.ceil(1 / self.weight).bit_length() + len(str(self.items)) + 4 * len(str(self.epsilon))
        with decimal.localcontext(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
            more = 1 + Decimal(self.weight.numerator) / Decimal(self.weight.denominator)
            following = [sum(self.sizes[b + 1 : b + 1 + self.drop]) for b in range(len(self.sizes))]
            kinds = Counter(zip(self.sizes, following, strict=True))
            least = Decimal(1)
            least += sum(count * (more**size - 1) * more**others for (size, others), count in kinds.items())
            return upwards(max(0.0, float(self.items * more.ln() - least.ln())))

    def _allowed(self, letters: Sequence[int]) -> bool:
        """Whether a set of items with these tiers, in the input's order, may be kept."""
        largest = itertools.accumulate(letters, max)
        return all(letter >= most - self.drop for letter, most in zip(letters, largest, strict=True))

    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        from rankdp.mechanisms.rankings.tier_kernels import log_kept_sum

        sums = log_kept_sum(self._words(relative), len(self.sizes), self.drop, self._log_weight)
        return sums - self._log_normaliser - self._log_inside

    def log_prob_of_no_change(self) -> float:
        """From the sum of the sorted word, (1+z)^m."""
        return self.items * float(np.logaddexp(0, self._log_weight)) - self._log_normaliser - self._log_inside


class Tiered(Worded):
    """A mechanism with tiers: their sizes are public parameters, and part of the name under which it is recorded."""

    undoable: ClassVar[tuple[str, ...]] = ()
    # The sizes change in steps with epsilon, and these two with them: a curve over epsilon says nothing.
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({"exact": 1, "overlap": 1})

    def __init__(self, items: int, epsilon: Real, tiers: Iterable[int] | None = None) -> None:
        super().__init__(items, epsilon)
        self.sizes = self._best_sizes() if tiers is None else check_tiers(tiers, self.items)
        self.name = f"{type(self).name}-{spelled(self.sizes)}"

    @abstractmethod
    def _best_sizes(self) -> tuple[int, ...]:
        """The sizes that keep most pairs, from the number of items and epsilon."""

    @property
    def parameters(self) -> dict[str, Any]:
        """With the sizes of the tiers."""
        return {**super().parameters, "tiers": list(self.sizes)}


class Tiers(Tiered, TierSums):
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
        return theory.best_sizes(self.items, float(min(self.epsilon, _LARGEST_CALIBRATED)))

    @cached_property
    def _law(self) -> theory.TierLaw:
        return theory.TierLaw(self.sizes, self._log_weight)

    @property
    def _log_normaliser(self) -> float:
        return self._law.log_normaliser

    @cached_property
    def _left(self) -> dict[int, CutTable]:
        """By size of a tier: how many places are left to items that were not kept, Poisson of mean q/z, cut off."""
        mean = self._law.typical / self.weight

        def table(size: int) -> CutTable:
            mode = min(size, math.floor(mean))
            return CutTable(log_concave_weights(size, mode, lambda r: (mean.numerator, mean.denominator * (r + 1))))

        return {size: table(size) for size in set(self.sizes)}

    @cached_property
    def _kept(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """By the number of items kept: below which word a draw is surely accepted, and above which it is not."""
        weights = self._kept_weights(2 * WORD)
        whole = max(weights.low)
        cuts = np.zeros((2, self.items + 1), dtype=np.uint64)
        for j in range(self.items + 1):
            inside = weights.first <= j < weights.first + len(weights.low)
            low, high = (side[j - weights.first] if inside else 0 for side in (weights.low, weights.high))
            last = (1 << WORD) - 1
            cuts[0, j] = min((low << WORD) // whole, last)
            cuts[1, j] = min((high << WORD) // whole, last)
        return cuts[0], cuts[1]

    @property
    def _mean_kept(self) -> Fraction:
        """q, the mean of the Poisson law by which a draw is accepted."""
        return Fraction(self._law.typical)

    @property
    def _acceptance(self) -> float:
        """The share of proposals that are accepted."""
        return self._law.acceptance

    @property
    def _kept_weights(self) -> Callable[[int], Weights]:
        """Enclosures of the Poisson probabilities of the number of kept items, in units of the largest."""
        mean = self._mean_kept
        mode = min(self.items, math.floor(mean))
        return log_concave_weights(self.items, mode, lambda j: (mean.numerator, mean.denominator * (j + 1)))

    def _accepts(self, kept: int, word: int, bits: Bits) -> bool:
        """Whether a uniform number that begins with ``word`` is below the Poisson probability over the largest."""
        mode = min(self.items, math.floor(self._mean_kept))
        chance = Fraction(math.factorial(mode), math.factorial(kept)) * self._mean_kept ** (kept - mode)
        digits, length = word, WORD
        while True:
            bound = chance * 2**length
            if digits + 1 <= bound or digits >= bound:
                return bool(digits < bound)
            digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD

    def _propose(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """``count`` rows that begin with (j_1..j_B), how many items of each tier are kept, before they are accepted."""
        sizes = np.array(self.sizes)
        left = np.empty((count, len(sizes)), dtype=np.int64)
        for size, table in self._left.items():
            alike = np.flatnonzero(sizes == size)
            left[:, alike] = table.sample(count * len(alike), bits).reshape(count, len(alike))
        return sizes - left

    def proposals(self, missing: int) -> int:
        """How many proposals are drawn at once while so many are missing: mostly enough."""
        return math.ceil(1.1 * missing / self._acceptance) + 2

    def _draw_kept(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """``count`` proposals, accepted by how many items they keep."""
        accepted = [self._propose(0, bits)]
        missing = count
        sure, unsure = self._kept
        while missing > 0:
            proposals = self._propose(self.proposals(missing), bits)
            kept, words = proposals[:, : len(self.sizes)].sum(axis=1), bits.words(len(proposals))
            good = words < sure[kept]
            for row in np.flatnonzero(~good & (words <= unsure[kept])):
                good[row] = self._accepts(int(kept[row]), int(words[row]), bits)
            accepted.append(proposals[good][:missing])
            missing -= len(accepted[-1])
        return np.concatenate(accepted)

    def _labels(self, staying: NDArray[np.int64], bits: Bits) -> NDArray[np.int32]:
        """The tiers of the kept items in the input's order, row after row."""
        tiers = np.tile(np.arange(len(self.sizes), dtype=np.int32), len(staying))
        return np.repeat(tiers, staying.ravel())

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        from rankdp.mechanisms.rankings.tier_kernels import deal

        proposals = self._draw_kept(len(orders), bits)
        labels = self._labels(proposals, bits)
        kept = proposals[:, : len(self.sizes)].sum(axis=1)
        ends = np.cumsum(kept)
        spans = np.stack([ends - kept, ends], axis=1)
        words = self.items - int(kept.min(initial=0)) // 2 + 1
        rows_from_halves(deal, orders, spans, out, bits, words, labels, np.array(self.sizes))

    def _kept_law(self, bits: int) -> Callable[[tuple[int, ...], tuple[int, ...]], tuple[Fraction, Fraction]]:
        """Bounds of the weight of a proposal, given the tiers of the kept items and the r_b."""
        tables = {size: table.weights(bits) for size, table in self._left.items()}

        def enclosed(_: tuple[int, ...], left: tuple[int, ...]) -> tuple[Fraction, Fraction]:
            parts = [_enclosed(tables[size], r) for size, r in zip(self.sizes, left, strict=True)]
            return Fraction(math.prod(low for low, _ in parts)), Fraction(math.prod(high for _, high in parts))

        return enclosed

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the tables: what is kept, accepted, with S and the dealing uniform.

        A set S that may be kept has the r_b of the letters outside it, and contributes P(its letters) / C(m, j) times
        r_1! … r_B! / (m-j)!.
        """
        proposed, accepted = self._kept_law(bits), self._kept_weights(bits)
        sets = list(itertools.product((False, True), repeat=self.items))

        @cache
        def drawn(letters: tuple[int, ...], left: tuple[int, ...]) -> tuple[Fraction, Fraction]:
            d = sum(left)
            share = Fraction(math.prod(map(math.factorial, left)), math.comb(self.items, d) * math.factorial(d))
            low, high = proposed(letters, left)
            least, most = _enclosed(accepted, self.items - d)
            return share * low * least, share * high * most

        @cache
        def enclosed(word: tuple[int, ...]) -> tuple[Fraction, Fraction]:
            low = high = Fraction(0)
            for inside in sets:
                letters = tuple(itertools.compress(word, inside))
                if self._allowed(letters):
                    outside = Counter(letter for letter, kept in zip(word, inside, strict=True) if not kept)
                    least, most = drawn(letters, tuple(outside[tier] for tier in range(len(self.sizes))))
                    low, high = low + least, high + most
            return low, high

        return [enclosed(tuple(word)) for word in self._words(self._permutations).tolist()]

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
        """The same for the first k positions alone."""
        return theory.top_overlap(self.sizes, self._law.tier_matrix(first=k), k)


def _enclosed(weights: Weights, value: int) -> tuple[int, int]:
    """The bounds of one weight, also outside the cells that are listed."""
    cell = value - weights.first
    if 0 <= cell < len(weights.low):
        return weights.low[cell], weights.high[cell]
    return 0, weights.below if cell < 0 else weights.above


def check_tiers(tiers: Iterable[int], items: int) -> tuple[int, ...]:
    """The sizes of at least two tiers, each at least 1, that add up to the number of items."""
    sizes = tuple(tiers)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size > 0 for size in sizes)
    if not whole or len(sizes) < 2 or sum(sizes) != items:
        raise InputError(f"tiers must be at least two whole numbers above 0 that add up to {items}, got {list(sizes)}")
    return tuple(int(size) for size in sizes)


def spelled(sizes: Sequence[int]) -> str:
    """Sizes as part of a name: 3-2-2-3 is 3-2x2-3, two tiers of two between two of three."""
    runs = [(size, len(list(run))) for size, run in itertools.groupby(sizes)]
    return "-".join(str(size) if count == 1 else f"{count}x{size}" for size, count in runs)


def read_name(name: str) -> tuple[str, tuple[int, ...] | None]:
    """The name of a mechanism and the sizes that are part of it, None where there are none."""
    match = re.fullmatch(r"(.+?)-((?:\d{1,6}x)?\d{1,9}(?:-(?:\d{1,6}x)?\d{1,9})*)", name)
    if not match:
        return name, None
    runs = [run.rpartition("x") for run in match[2].split("-")]
    return match[1], tuple(int(size) for count, _, size in runs for _ in range(int(count or 1)))
