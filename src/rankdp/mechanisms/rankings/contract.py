"""The contract of every mechanism that releases a synthetic ranking, and the shared code.

A mechanism maps a ranking x of m items to a random ranking y. All of ours are *right-invariant*: the law
depends only on the relative permutation s, y[j] = x[s[j]] (s[j] is the original position of the item now
at j), and not on which items these are. A neighbour of x moves one item; that turns s into c s, where c moves
one element, and eps-ranking DP (Xu, Definition 3) says

    P(s) <= e^eps P(c s)    for every permutation s and every move c.

To write a new one, copy the skeleton in CONTRIBUTING.md. One method is enough for short rankings: a ``TableMechanism``
gives the weight of every output in ``exact_law``, and the rest follows. For long rankings a ``RankingMechanism``
defines how to sample and how likely an output is (``_draw``, ``_log_prob``). Everything else has a default by
enumeration; override it where a closed form is known. ``register`` makes the mechanism available to the command line,
the planner, the audits and the figures, and the tests in ``tests/contracts`` run on every registered mechanism.
"""

from __future__ import annotations

import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.checks import whole
from rankdp.errors import InputError, Unsupported
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import Real, positive, upwards
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.theory.pair_laws import Moments, PairLaw, of_permutations
from rankdp.theory.permutations import all_permutations, places
from rankdp.types import Flags, Floats, Ints, Longs

Orders = Ints
#: for every relative order in lexicographic order a lower and an upper bound of its weight
EnclosedLaw: TypeAlias = Sequence[tuple[Fraction | int, Fraction | int]]

ENUMERATED_UP_TO = 8  # items: all m! outputs can be listed
TABLE_UP_TO = 5  # items: a table of all outputs is faster than any other sampler
FEW_CELLS = 1 << 15  # too few for the second that loading compiled code takes
_SMALLEST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**100), Fraction(10**100)  # floats hold all that follows
_CELLS_PER_CHUNK = 1 << 16  # of one worker: its words and draws stay in cache
_LAW_UP_TO = 6  # items: the enclosed law gives ``local_epsilon``
MOST_BITS = 1 << 16  # of an enclosed law in an exact audit
_LOG_BITS = 1 << 13  # of an enclosed law that is computed for every mechanism that is built
_LOG2_E = 1.4427
_SHARP = 40  # correct bits of a weight before its logarithm is used


class RankingMechanism(ABC):
    """An eps-ranking-DP mechanism for rankings of ``items`` items."""

    #: the name in the registry, on the command line and in figures
    name: str
    #: its colour in figures
    colour: ClassVar[str] = "#5B5B5B"
    #: the longest ranking it can release, None for any
    most_items: ClassVar[int | None] = None
    #: the longest ranking for which ``auto`` and plans compare it with the others (its public numbers are exact)
    compared_up_to: ClassVar[int | None] = None
    #: the longest ranking whose ``position_matrix`` is exact and in reach, None for any
    position_law_up_to: ClassVar[int | None] = None
    #: the longest ranking whose ``pair_law`` is in reach; without its own method, all m! outputs are enumerated
    pair_law_up_to: ClassVar[int] = 7
    #: by measure of a plan, the longest ranking for which the measure is quick enough
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({})
    #: which of "pairs" and "ranks" an aggregate can debias at a reasonable cost
    debiasable: ClassVar[tuple[str, ...]] = ("pairs", "ranks")
    #: whether numbers follow the name: the sizes of tiers in "tiers-10-90", the radius in "kendall-ball-14"
    numbered: ClassVar[bool] = False
    #: whether building it is slow, so that a plan tries few epsilons
    slow: ClassVar[bool] = False
    #: whether released rows come with a public offset, and how many different offsets there are
    has_offsets: ClassVar[bool] = False
    offsets: int = 1
    #: the length of lists that are released instead of rankings; None for rankings
    lists: int | None = None

    def __init__(self, items: int, epsilon: Real) -> None:
        items = whole("items", items, 2)
        if self.most_items is not None and items > self.most_items:
            raise InputError(f"the {self.name} mechanism takes at most {self.most_items} items, got {items}")
        self.items = items
        self.epsilon = positive(epsilon)
        if not _SMALLEST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            raise InputError(f"epsilon must be between 1e-100 and 1e100, got {epsilon!s}")

    @classmethod
    def serves(cls, items: int) -> bool:
        """Whether ``auto`` and plans consider it for rankings of this length."""
        return all(most is None or items <= most for most in (cls.most_items, cls.compared_up_to))

    @classmethod
    def with_numbers(cls, items: int, epsilon: Real, numbers: tuple[int, ...]) -> RankingMechanism:
        """The mechanism with these numbers after its name; for ``numbered`` mechanisms."""
        raise InputError(f"no number may follow the name of the {cls.name} mechanism, got {numbers}")

    @classmethod
    def for_purpose(cls, items: int, epsilon: Real, purpose: str) -> RankingMechanism:
        """The mechanism with the best numbers for a purpose, if it chooses them by purpose."""
        return cls(items, epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(items={self.items}, epsilon={self.epsilon})"

    # -- what it promises ----------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """eps-ranking DP, and the classical local-DP epsilon that comes with it."""
        return Guarantee(ITEM_POSITION, self.epsilon, whole_ranking_epsilon=self.local_epsilon())

    def local_epsilon(self) -> Fraction | float:
        """The worst log-ratio over *any* two rankings: log P(most likely s) - log P(least likely s), or a bound.

        By default from the enclosed law, rounded up; override it where the exact value is known. Without that law it is
        (m-1) eps, because at most m-1 moves lead from any ranking to any other.
        """
        bound = (self.items - 1) * self.epsilon
        law = self.exact_law(min(_LOG_BITS, self.bits_for(2 * _SHARP))) if self.items <= _LAW_UP_TO else None
        smallest = min(low for low, _ in law) if law else 0
        if not law or smallest == 0:
            return bound
        spread = max(high for _, high in law) - smallest
        if spread < smallest * 2**64:  # log1p is exact to rounding also where the weights are nearly equal
            computed = upwards(math.log1p(spread / smallest))
        else:
            computed = upwards(_log(smallest + spread) - _log(smallest))
        return computed if computed < bound else bound

    def total_variation(self) -> float:
        """An upper bound of the total variation between the laws for any two rankings; by default from local DP."""
        return math.tanh(float(self.local_epsilon()) / 2)

    def exact_law(self, bits: int) -> EnclosedLaw | None:
        """The law that the sampler draws from, for the exact audit: bounds of the weight of every relative order.

        The weights are in lexicographic order of s, ``output[j] = input[s[j]]``, up to a common factor, and no weight
        is uncertain by more than about 2^-bits of the largest. They must come from the same tables that ``_draw`` uses.
        None if there are no tables: the audit then uses ``log_prob``, with a tolerance.
        """
        return None

    def bits_for(self, good: int) -> int:
        """The bits for ``exact_law`` such that the smallest weight, at least e^-((m-1) eps), has ``good`` bits."""
        return min(MOST_BITS, good + math.ceil(_LOG2_E * self.epsilon * self.items))

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters, for the provenance of a release."""
        return {"items": self.items, "epsilon": str(self.epsilon)}

    # -- what it does --------------------------------------------------------------------------------------------

    def sample(self, orders: ArrayLike, bits: Bits | None = None, workers: int | None = None) -> Orders:
        """One synthetic order per row of ``orders`` (n x m integers), independently, from secure bits by default.

        Long tables are cut into chunks, each with its own bits, for ``workers`` threads (all cores by default);
        how many there are does not change what a rehearsal draws.
        """
        return self.sample_with_offsets(orders, bits, workers)[0]

    def sample_with_offsets(
        self, orders: ArrayLike, bits: Bits | None = None, workers: int | None = None
    ) -> tuple[Orders, Ints]:
        """As ``sample``, with the public offset of each row, 0 if the mechanism has none."""
        array = as_orders(orders, self.items, "orders")
        bits = bits or SecureBits()
        out, offsets = np.empty_like(array), np.zeros(len(array), dtype=np.int32)
        rows = max(1, _CELLS_PER_CHUNK // self.items)
        if len(array) <= rows:
            self._draw_released(array, out, offsets, bits)
            return out, offsets
        chunks = [slice(start, start + rows) for start in range(0, len(array), rows)]
        parts = [(array[chunk], out[chunk], offsets[chunk], bits.spawn()) for chunk in chunks]
        if workers == 1:
            for part in parts:
                self._draw_released(*part)
            return out, offsets
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            list(pool.map(self._draw_released, *zip(*parts, strict=True)))  # raises what a worker raised
        return out, offsets

    def _draw_released(self, orders: Orders, out: Orders, offsets: Ints, bits: Bits) -> None:
        """Write synthetic orders, and their offsets if there are any."""
        self._draw(orders, out, bits)

    @abstractmethod
    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        """Write synthetic orders for a validated chunk of rows into ``out``."""

    @cached_property
    def _permutations(self) -> Orders:
        return all_permutations(self.items)

    @cached_property
    def _outputs(self) -> CutTable:
        """The law of the output, one cell per permutation in lexicographic order."""

        def weights(bits: int) -> Weights:
            law = self.exact_law(bits)
            assert law is not None
            return Weights([int(low) for low, _ in law], [int(high) for _, high in law])

        return CutTable(weights)

    def _draw_outputs(self, orders: Orders, out: Orders, bits: Bits) -> None:
        """Permute each row by a draw from the table of all outputs."""
        cells = self._outputs.sample(len(orders), bits)
        if orders.size < FEW_CELLS:
            out[:] = np.take_along_axis(orders, self._permutations[cells], axis=1)
            return
        from rankdp.mechanisms.rankings.sampling_kernels import permute

        permute(orders, self._permutations, cells, out)

    def log_prob(self, outputs: ArrayLike, orders: ArrayLike, offsets: ArrayLike | None = None) -> Floats:
        """log P(output | order), row by row; either argument may be a single ranking.

        With ``offsets``, the public offsets of the outputs, the probability is conditional on them. Without them it is
        the probability of the order alone.
        """
        relative = relative_orders(
            as_orders(np.atleast_2d(np.asarray(outputs)), self.items, "outputs"),
            as_orders(np.atleast_2d(np.asarray(orders)), self.items, "orders"),
        )
        if offsets is None or self.offsets == 1:
            return self._log_prob(relative)
        rows = np.broadcast_to(np.asarray(offsets), len(relative))
        logs = np.empty(len(relative))
        for offset in np.unique(rows).tolist():
            logs[rows == offset] = self.at(offset)._log_prob(relative[rows == offset])
        return logs

    def at(self, offset: int) -> RankingMechanism:
        """The mechanism given the public offset of a row."""
        if not 0 <= offset < self.offsets:
            raise InputError(
                f"an offset of the {self.name} mechanism for {self.items} items must be a whole number from 0 to "
                f"{self.offsets - 1}, got {offset}"
            )
        return self

    @abstractmethod
    def _log_prob(self, relative: Orders) -> Floats:
        """log P(s) for each row s of ``relative``."""

    def log_prob_of_no_change(self) -> float:
        """log P(the output equals the input)."""
        return float(self._log_prob(np.arange(self.items, dtype=np.int32)[None])[0])

    # -- public numbers ------------------------------------------------------------------------------------------

    @cached_property
    def _output_law(self) -> Floats:
        """The probabilities of all m! outputs in lexicographic order."""
        if self.items > ENUMERATED_UP_TO:
            raise Unsupported(
                f"the public numbers of the {self.name} mechanism are enumerated for up to {ENUMERATED_UP_TO} items, "
                f"got {self.items}"
            )
        return np.exp(self._log_prob(self._permutations))

    def keep_probability(self, i: int, j: int) -> float:
        """The probability that the items at original positions i < j (from 0) keep their order."""
        if not (isinstance(i, (int, np.integer)) and isinstance(j, (int, np.integer)) and 0 <= i < j < self.items):
            raise InputError(f"positions must be integers with 0 <= i < j < {self.items}, got {i!r} and {j!r}")
        return self._keep(int(i), int(j))

    def _keep(self, i: int, j: int) -> float:
        """``keep_probability`` for checked positions, by default from the probabilities of all m! outputs."""
        return float(self._output_law @ (self._landing[:, i] < self._landing[:, j]))

    @cached_property
    def _landing(self) -> Longs:
        """Row s: where each original position lands."""
        return np.argsort(self._permutations, axis=1)

    def position_matrix(self) -> Floats:
        """M[a, b] = P(the item at original position a lands at position b), both from 0."""
        columns = [np.bincount(column, self._output_law, self.items) for column in self._permutations.T]
        return np.stack(columns, axis=1)

    @cached_property
    def cells(self) -> Longs:
        """The cell of each position, by offset. Indistinguishable positions, as within a tier, share a cell."""
        return np.arange(self.items)[None]

    @property
    def rank_targets(self) -> Floats:
        """By original position: the rank, from 0, whose mean an aggregate estimates."""
        return np.arange(self.items, dtype=np.float64)

    def cell_law(self) -> Floats:
        """A[a, c] = P(the item at original position a lands in cell c), over the offsets too."""
        return self.position_matrix()

    @property
    def ties(self) -> Flags | None:
        """Whether each position is in the tier of the position before it, by offset; None without tiers."""
        return None

    def top_block(self, k: int) -> Floats:
        """The corner of ``position_matrix`` for the first k positions: which of the top k stay there."""
        return self.position_matrix()[:k, :k]

    def top_overlap(self, k: int) -> float:
        """The expected share of the first k items that are among the first k of the release."""
        return float(self.top_block(k).sum() / k)

    def pair_law(self) -> PairLaw:
        """The exact law of where every pair of original positions lands; refused for rankings that are too long."""
        if self.items > self.pair_law_up_to:
            raise Unsupported(
                f"the law of two positions of the {self.name} mechanism is known for up to {self.pair_law_up_to} "
                f"items, got {self.items}"
            )
        return self._pair_law()

    def _pair_law(self) -> PairLaw:
        """From the probabilities of all m! outputs."""
        return of_permutations(self._permutations, self._output_law)

    def pair_slopes(self) -> Floats | None:
        """A 2 x 2 table, if known: the expected order (1) and distance of two items as sums of their true values.

        Column by column: E sgn(b2-b1) = alpha + beta (a2-a1) and E (b2-b1) = 0 + lambda (a2-a1), for a1 < a2.
        """
        return None

    def unbiased_pairs(self) -> Moments | None:
        """The unbiased estimate of "the first is before the second" in closed form, or None."""
        return None

    def unbiased_ranks(self) -> Moments | None:
        """The unbiased estimate of a rank in closed form, or None."""
        return None

    def disagreement_cost(self) -> float | None:
        """How much each discordant pair lowers log P(s), if only their number matters; None for other laws."""
        return None

    def expected_concordance(self) -> float:
        """The expected share of pairs that keep their order: 1 is perfect, 1/2 is noise."""
        pairs = itertools.combinations(range(self.items), 2)
        return math.fsum(self._keep(i, j) for i, j in pairs) / math.comb(self.items, 2)


class TableMechanism(RankingMechanism):
    """A mechanism for short rankings that ``exact_law`` defines: it is drawn from a table of all outputs."""

    most_items: ClassVar[int | None] = 6

    @abstractmethod
    def exact_law(self, bits: int) -> EnclosedLaw:
        """Whole numbers around the weight of every relative order: see ``RankingMechanism.exact_law``."""

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        self._draw_outputs(orders, out, bits)

    @cached_property
    def _output_law(self) -> Floats:
        law = self.exact_law(2 * _SHARP)
        total = sum(low + high for low, high in law)
        return np.array([float((low + high) / total) for low, high in law])

    def _log_prob(self, relative: Orders) -> Floats:
        return self._output_logs[places(relative)]

    @cached_property
    def _output_logs(self) -> Floats:
        law = self.exact_law(min(_LOG_BITS, self.bits_for(2 * _SHARP)))
        if any((high - low) * (1 << _SHARP) > low or low == 0 for low, high in law):
            raise Unsupported(
                f"probabilities of the {self.name} mechanism are computed for a smaller epsilon than "
                f"{float(self.epsilon):g}: some are below 2^-{_LOG_BITS}"
            )
        total = _log(sum(low for low, _ in law))
        return np.array([_log(low) - total for low, _ in law])


def _log(weight: Fraction | int) -> float:
    """The log of a number that may be too large or too small for a float."""
    exact = Fraction(weight)
    return math.log(exact.numerator) - math.log(exact.denominator)


def as_orders(orders: ArrayLike, items: int, name: str) -> Orders:
    """An n x m int32 array with contiguous rows; a mechanism sees indices, not names."""
    array = np.asarray(orders)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != items:
        shape = " x ".join(map(str, array.shape)) or "scalar"
        raise InputError(f"{name} must be an n x {items} array of integers, got {shape} of {array.dtype}")
    if not np.can_cast(array.dtype, np.int32) and array.size and not -(1 << 31) <= array.min() <= array.max() < 1 << 31:
        raise InputError(f"{name} must hold 32-bit integers, got {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype=np.int32)


def relative_orders(outputs: Orders, orders: Orders) -> Orders:
    """s with outputs[j] = orders[s[j]]: the original position of the item now at j."""
    if len(outputs) != len(orders) and 1 not in (len(outputs), len(orders)):
        raise InputError(f"outputs and orders must have the same number of rows, got {len(outputs)} and {len(orders)}")
    outputs, orders = np.broadcast_arrays(outputs, orders)
    by_output, by_order = (np.argsort(rows, axis=1, kind="stable") for rows in (outputs, orders))
    labels = np.take_along_axis(orders, by_order, axis=1)
    same = np.array_equal(np.take_along_axis(outputs, by_output, axis=1), labels)
    if not same or np.any(labels[:, 1:] == labels[:, :-1]):
        raise InputError("outputs and orders must list the same items, each once, in every row")
    relative = np.empty(outputs.shape, dtype=np.int32)
    np.put_along_axis(relative, by_output, by_order.astype(np.int32), axis=1)
    return relative


def rows_from_halves(
    kernel: Callable[..., tuple[int, int]],
    orders: Orders,
    given: NDArray[Any],
    out: Orders,
    bits: Bits,
    words_per_row: int,
    *tables: NDArray[Any],
) -> None:
    """Run a kernel that reads 32-bit halves of random words until every row is done.

    The kernel stops before a row for which too few halves are left. That row starts again with *the same* halves,
    followed by fresh ones: discarding them would favour rows that need few.
    """
    done, halves = 0, np.empty(0, dtype=np.uint32)
    while done < len(orders):
        fresh = bits.words((len(orders) - done) * words_per_row + 64).view(np.uint32)
        halves = np.concatenate([halves, fresh]) if len(halves) else fresh
        rows, used = kernel(orders[done:], given[done:], halves, out[done:], *tables)
        done, halves = done + rows, halves[used:]
