"""Tiers that can be debiased: each row has its own public offset for the cuts, which is released with it.

Fixed tiers lose the order inside a tier for good. Here every row draws a number k, uniform on 0..K-1 and independent of
the ranking. With the step s, its output is cut after k s places and then after every w places (the first and last tiers
are what is left), and goes through ``tiers`` with that division. The row is released with its k.

Proof of eps: P(k, y | x) = P_k(y | x) / K, where P_k is the law of ``tiers`` for that division with a z that is small
enough for all of them. So for each k and y the log-ratio of two neighbours is that of P_k, at most eps, given the
offset and jointly with it. (Without the offset the law is a mixture, whose log-ratio is even smaller.)

An item at place a lands in the tier b of a row with offset k with the public probability A[a, (k, b)], from
``TierLaw.tier_matrix``. Over all offsets the cuts are everywhere (or, for widths above 64, at most w/32 places apart,
where the law is smooth), so there are numbers h(k, b) with sum over (k, b) of A[a, (k, b)] h(k, b) = a + 1, and the
mean of h over voters is an unbiased mean rank (``rank_estimator``). Its variance relative to m^2 does not grow with m,
and is the smallest known for more than 10 items.

Win rates have no such numbers: two places in one tier are indistinguishable, so there are at most K C(m/w + 2, 2)
unknowns, one per pair of tiers, for m (m-1) / 2 equations, one per pair of places. These are more for w >= 2 and
m >= 9 (and for fewer items, by enumeration).

The default width keeps the most pairs among all widths whose variance is within 10% of the smallest. It is proportional
to the length and depends little on epsilon: it is computed for at most 24 items and the nearest epsilon among 1,
2^(1/4), 2^(1/2), …
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders
from rankdp.mechanisms.rankings.tiers import LARGEST_CALIBRATED, Tiers, calibrated, tied_places, whole_sizes
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, integer_weights
from rankdp.privacy.exact import Real
from rankdp.theory import tier_laws as theory
from rankdp.theory.estimators import rank_estimator
from rankdp.types import Flags, Floats, Ints, Longs

_MOST_OFFSETS = 64
_COMPARED_UP_TO = 24  # items: widths are compared; longer rankings use the same share of their length
_WIDEST = 0.6  # of the ranking
_MORE_VARIANCE = 1.1  # accepted, relative to the smallest, to keep more pairs


class OffsetTiers(Tiers):
    """Tiers whose cuts are drawn for each row and released with it: unbiased mean ranks. O(m) per ranking.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking.
    tiers
        One number, the size of all tiers but the first and last; by default it is chosen from items and epsilon.
    """

    name: str = "offset-tiers"
    colour: ClassVar[str] = "#117733"
    debiasable: ClassVar[tuple[str, ...]] = ("ranks",)
    has_offsets: ClassVar[bool] = True

    def __init__(self, items: int, epsilon: Real, tiers: Iterable[int] | None = None) -> None:
        super().__init__(items, epsilon, tiers)
        self.offsets = len(self.shapes)

    @staticmethod
    def check_sizes(tiers: Iterable[int], items: int | None = None) -> tuple[int, ...]:
        """The width of the tiers, below the number of items where that is known."""
        sizes = tuple(tiers)
        if not whole_sizes(sizes) or len(sizes) != 1 or (items is not None and sizes[0] >= items):
            most = "" if items is None else f" to {items - 1}"
            raise InputError(f"tiers of offset-tiers must be one whole number, their width, from 1{most}, got {sizes}")
        return (int(sizes[0]),)

    def _best_sizes(self) -> tuple[int, ...]:
        length = min(self.items, _COMPARED_UP_TO)
        octaves = round(4 * math.log2(min(self.epsilon, LARGEST_CALIBRATED)))
        width = round(_best_width(length, Fraction(2 ** (octaves / 4))) * self.items / length)
        step = _step(width)
        return (max(step, width // step * step),)

    @property
    def width(self) -> int:
        """The size of all tiers but the first and last."""
        return self.sizes[0]

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of the tiers by offset, always the same number of tiers; the first or last may be empty."""
        starts = np.arange(0, self.width, _step(self.width))[:, None]
        edges = starts + self.width * np.arange(-(-self.items // self.width) + 1)
        return [tuple(row) for row in np.diff(np.minimum(edges, self.items), axis=1, prepend=0).tolist()]

    @cached_property
    def divisions(self) -> list[tuple[int, ...]]:
        """The sizes of the tiers by offset, without empty ones."""
        return [tuple(size for size in shape if size) for shape in self.shapes]

    @cached_property
    def ties(self) -> Flags:
        """From the sizes of the tiers by offset."""
        return tied_places(self.divisions)

    @cached_property
    def weight(self) -> Fraction:
        """z, exactly, for the worst offset."""
        return calibrated(self.epsilon, max(map(theory.reach, self.divisions)))

    @cached_property
    def parts(self) -> list[Tiers]:
        """By offset: the law of a row given its offset."""
        return [_AtOffset(self, offset) for offset in range(self.offsets)]

    def at(self, offset: int) -> Tiers:
        """The law of a row given its offset."""
        super().at(offset)
        return self.parts[offset]

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters with the step between offsets."""
        return {**super().parameters, "step": _step(self.width)}

    @cached_property
    def _laws(self) -> list[theory.TierLaw]:
        return [part._law for part in self.parts]

    @cached_property
    def _offset_table(self) -> CutTable:
        return CutTable(integer_weights([1] * self.offsets))

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        self._draw_released(orders, out, np.empty(len(orders), dtype=np.int32), bits)

    def _draw_released(self, orders: Orders, out: Orders, offsets: Ints, bits: Bits) -> None:
        which = self._offset_table.sample(len(orders), bits)
        offsets[:] = which
        self._draw_shapes(orders, out, which, bits)

    def exact_law(self, bits: int) -> EnclosedLaw:
        """The law of the order alone, without its offset; ``exact_laws`` are the laws of what is released."""
        laws = self.exact_laws(bits)
        return [tuple(sum(side) for side in zip(*cells, strict=True)) for cells in zip(*laws, strict=True)]

    def exact_laws(self, bits: int) -> list[EnclosedLaw]:
        """By offset, from the tables of the sampler: the law of the order given the offset, of sum 1."""
        laws: list[EnclosedLaw] = []
        for shape in range(self.offsets):
            law = self._shape_law(shape, bits)
            least, most = (sum(side) for side in zip(*law, strict=True))
            laws.append([(low / most, high / least) for low, high in law])
        return laws

    def _log_prob(self, relative: Orders) -> Floats:
        return np.asarray(_log_mean([part._log_prob(relative) for part in self.parts]))

    def log_prob_of_no_change(self) -> float:
        """The mean over all offsets, in logarithms."""
        return float(_log_mean([part.log_prob_of_no_change() for part in self.parts]))

    def local_epsilon(self) -> float:
        """The largest over the offsets."""
        return max(part.local_epsilon() for part in self.parts)

    def _keep(self, i: int, j: int) -> float:
        return float(np.mean([law.keep(i, j) for law in self._laws]))

    def expected_concordance(self) -> float:
        """The mean over the offsets."""
        return float(np.mean([law.concordance() for law in self._laws]))

    @cached_property
    def _tier_matrices(self) -> list[Floats]:
        return theory.tier_matrices(self._laws)

    def position_matrix(self) -> NDArray[np.float64]:
        """The mean over the offsets."""
        parts = zip(self.divisions, self._tier_matrices, strict=True)
        return np.asarray(np.mean([theory.position_matrix(sizes, tiers) for sizes, tiers in parts], axis=0))

    @cached_property
    def cells(self) -> Longs:
        """By offset and position: the tier, counted over all offsets."""
        sizes = [size for division in self.divisions for size in division]
        return np.repeat(np.arange(len(sizes)), sizes).reshape(self.offsets, self.items)

    def cell_law(self) -> Floats:
        """From the law of the tier for each offset."""
        return np.concatenate(self._tier_matrices, axis=1) / self.offsets

    def top_overlap(self, k: int) -> float:
        """The mean over the offsets."""
        parts = zip(self.divisions, theory.tier_matrices(self._laws, first=k), strict=True)
        return float(np.mean([theory.top_overlap(sizes, tiers, k) for sizes, tiers in parts]))


class _AtOffset(Tiers):
    """The tiers of one offset, with the z of all of them."""

    def __init__(self, whole: OffsetTiers, offset: int) -> None:
        super().__init__(whole.items, whole.epsilon, whole.divisions[offset])
        self.weight, self.name = whole.weight, whole.name
        self._whole, self._offset = whole, offset

    @cached_property
    def _tier_matrix(self) -> Floats:
        return self._whole._tier_matrices[self._offset]


def _step(width: int) -> int:
    return -(-width // _MOST_OFFSETS)


def _log_mean(logs: Sequence[Any]) -> Any:
    return np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))


@lru_cache(maxsize=256)
def _best_width(items: int, epsilon: Fraction) -> int:
    variance = {}
    for width in range(1, max(1, math.floor(_WIDEST * items)) + 1):
        try:
            variance[width] = rank_estimator(OffsetTiers(items, epsilon, [width])).mean_variance
        except Unsupported:
            continue
    least = min(variance.values(), default=math.inf)
    good = [width for width, found in variance.items() if found <= _MORE_VARIANCE * least] or [1]
    kept = {width: round(OffsetTiers(items, epsilon, [width]).expected_concordance(), 9) for width in good}
    return max(good, key=lambda width: (kept[width], -width))
