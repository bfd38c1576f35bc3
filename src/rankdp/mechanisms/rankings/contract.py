"""The contract of every mechanism that releases a synthetic ranking, and what they all share.

A mechanism maps a ranking x of m items to a random ranking y. All of ours are *right-invariant*: the law
depends only on the relative permutation s, y[j] = x[s[j]] (s[j] is the original position of what now stands
at j), so it never looks at what the items are. A neighbour of x moves one item; that turns s into c s, where
c moves one element, and eps-ranking DP (Xu, Definition 3) says

    P(s) <= e^eps P(c s)    for every permutation s and every move c.

To write a new one, copy the skeleton in CONTRIBUTING.md: a subclass states its law in ``_draw`` and
``_log_prob``, the public numbers in ``position_matrix`` and ``keep_probability``, its proof in the docstring,
and is entered in ``MECHANISMS``. The tests in ``tests/contracts`` then run on it without further ado.
"""

from __future__ import annotations

import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.cut_tables import CutTable
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.theory.pair_laws import Moments, PairLaw, of_permutations

Orders = NDArray[np.int32]

_SMALLEST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**100), Fraction(10**100)  # floats hold what follows from it
TABLE_UP_TO = 5  # items up to which a table of all outputs is faster than any other way to draw one
FEW_CELLS = 1 << 15  # not worth the second that loading compiled code takes
_CELLS_PER_CHUNK = 1 << 16  # one worker's share at a time: small enough for its words and draws to stay in cache


class RankingMechanism(ABC):
    """An eps-ranking-DP mechanism for rankings of ``items`` items."""

    #: the name in the registry
    name: ClassVar[str]
    #: the longest ranking it can release, None for any
    most_items: ClassVar[int | None] = None
    #: the longest ranking whose ``position_matrix`` is exact and in reach, None for any
    position_law_up_to: ClassVar[int | None] = None
    #: the longest ranking whose ``pair_law`` is in reach; without a method of its own, that of all m! outputs
    pair_law_up_to: ClassVar[int] = 7

    def __init__(self, items: int, epsilon: Real) -> None:
        if isinstance(items, bool) or not isinstance(items, (int, np.integer)) or items < 2:
            raise InputError(f"items must be an integer of at least 2, got {items!r}")
        if self.most_items is not None and items > self.most_items:
            raise InputError(f"the {self.name} mechanism takes at most {self.most_items} items, got {items}")
        self.items = int(items)
        self.epsilon = positive(epsilon)
        if not _SMALLEST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            raise InputError(f"epsilon must be between 1e-100 and 1e100, got {epsilon!s}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(items={self.items}, epsilon={self.epsilon})"

    # -- what it promises
    # ------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """eps-ranking DP, and the classical local-DP epsilon that comes with it."""
        return Guarantee(ITEM_POSITION, self.epsilon, whole_ranking_epsilon=self.local_epsilon())

    @abstractmethod
    def local_epsilon(self) -> Fraction | float:
        """The worst log-ratio over *any* two rankings: log P(most likely s) - log P(least likely s)."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters, for the provenance of a release."""
        return {"items": self.items, "epsilon": str(self.epsilon)}

    # -- what it does
    # ----------------------------------------------------------------------------------------------

    def sample(self, orders: ArrayLike, bits: Bits | None = None, workers: int | None = None) -> Orders:
        """One synthetic order per row of ``orders`` (n x m integers), independently, from secure bits by default.

        Long tables are cut into chunks with bits of their own for ``workers`` threads (all cores by default);
        how many there are does not change what a rehearsal draws.
        """
        array = as_orders(orders, self.items, "orders")
        bits = bits or SecureBits()
        out = np.empty_like(array)
        rows = max(1, _CELLS_PER_CHUNK // self.items)
        if len(array) <= rows:
            self._draw(array, out, bits)
            return out
        chunks = [slice(start, start + rows) for start in range(0, len(array), rows)]
        parts = [(array[chunk], out[chunk], bits.spawn()) for chunk in chunks]
        if workers == 1:
            for part in parts:
                self._draw(*part)
            return out
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            for job in [pool.submit(self._draw, *part) for part in parts]:
                job.result()
        return out

    @abstractmethod
    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        """Write synthetic orders for a validated chunk of rows into ``out``."""

    @cached_property
    def _permutations(self) -> Orders:
        return all_permutations(self.items)

    def _draw_outputs(self, table: CutTable, orders: Orders, out: Orders, bits: Bits) -> None:
        """Permute each row by a draw from a table whose cells are all permutations in lexicographic order."""
        cells = table.sample(len(orders), bits)
        if orders.size < FEW_CELLS:
            out[:] = np.take_along_axis(orders, self._permutations[cells], axis=1)
            return
        from rankdp.mechanisms.rankings.sampling_kernels import permute

        permute(orders, self._permutations, cells, out)

    def log_prob(self, outputs: ArrayLike, orders: ArrayLike) -> NDArray[np.float64]:
        """log P(output | order), row by row; either argument may be a single ranking."""
        relative = relative_orders(
            as_orders(np.atleast_2d(np.asarray(outputs)), self.items, "outputs"),
            as_orders(np.atleast_2d(np.asarray(orders)), self.items, "orders"),
        )
        return self._log_prob(relative)

    @abstractmethod
    def _log_prob(self, relative: Orders) -> NDArray[np.float64]:
        """log P(s) for each row s of ``relative``."""

    def log_prob_of_no_change(self) -> float:
        """log P(the ranking comes back as it was)."""
        return float(self._log_prob(np.arange(self.items, dtype=np.int32)[None])[0])

    # -- what can be said before any data are seen
    # -------------------------------------------------------------------

    @abstractmethod
    def keep_probability(self, i: int, j: int) -> float:
        """The probability that the items at original positions i < j (from 0) keep their order."""

    @abstractmethod
    def position_matrix(self) -> NDArray[np.float64]:
        """M[a, b] = P(the item at original position a lands at position b), both from 0."""

    def top_block(self, k: int) -> NDArray[np.float64]:
        """The corner of ``position_matrix`` for the first k positions: which of the top k stay there."""
        return self.position_matrix()[:k, :k]

    def top_overlap(self, k: int) -> float:
        """The expected share of the first k items that are among the first k of the release."""
        return float(self.top_block(k).sum() / k)

    def pair_law(self) -> PairLaw:
        """Where every pair of original positions lands, exactly; refused where that is out of reach."""
        if self.items > self.pair_law_up_to:
            raise Unsupported(
                f"the law of two positions of the {self.name} mechanism is known for up to {self.pair_law_up_to} "
                f"items, got {self.items}"
            )
        return self._pair_law()

    def _pair_law(self) -> PairLaw:
        """From the probabilities of all m! outputs."""
        return of_permutations(all_permutations(self.items), np.exp(self._log_prob(all_permutations(self.items))))

    def pair_matrix(self) -> NDArray[np.float64]:
        """P((a1, a2) lands on (b1, b2)), m(m-1) x m(m-1): first the pairs with a1 < a2 in order, then those turned."""
        return self.pair_law().matrix()

    def unbiased_pairs(self) -> Moments | None:
        """The unbiased estimate of "the first stands before the second" in closed form, None where none is known."""
        return None

    def unbiased_ranks(self) -> Moments | None:
        """The unbiased estimate of a rank in closed form, None where none is known."""
        return None

    def expected_concordance(self) -> float:
        """The expected share of pairs that keep their order: 1 is perfect, 1/2 is noise."""
        pairs = itertools.combinations(range(self.items), 2)
        return math.fsum(self.keep_probability(i, j) for i, j in pairs) / math.comb(self.items, 2)

    def _positions(self, i: int, j: int) -> tuple[int, int]:
        """Check a pair of positions."""
        if not (isinstance(i, (int, np.integer)) and isinstance(j, (int, np.integer)) and 0 <= i < j < self.items):
            raise InputError(f"positions must be integers with 0 <= i < j < {self.items}, got {i!r} and {j!r}")
        return int(i), int(j)


def as_orders(orders: ArrayLike, items: int, name: str) -> Orders:
    """An n x m int32 array with contiguous rows; what the items are is none of a mechanism's business."""
    array = np.asarray(orders)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != items:
        shape = " x ".join(map(str, array.shape)) or "scalar"
        raise InputError(f"{name} must be an n x {items} array of integers, got {shape} of {array.dtype}")
    if not np.can_cast(array.dtype, np.int32) and array.size and not -(1 << 31) <= array.min() <= array.max() < 1 << 31:
        raise InputError(f"{name} must hold 32-bit integers, got {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype=np.int32)


def relative_orders(outputs: Orders, orders: Orders) -> Orders:
    """s with outputs[j] = orders[s[j]]: the original position of what now stands at j."""
    if len(outputs) != len(orders) and 1 not in (len(outputs), len(orders)):
        raise InputError(
            f"outputs and orders must have as many rows as each other, got {len(outputs)} and {len(orders)}"
        )
    outputs, orders = np.broadcast_arrays(outputs, orders)
    by_output, by_order = (
        np.argsort(outputs, axis=1, kind="stable"),
        np.argsort(orders, axis=1, kind="stable"),
    )
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

    The kernel stops before a row it has too few halves for. That row is begun again with *the same* halves in
    front and fresh ones behind: throwing them away would favour rows that need few.
    """
    done, halves = 0, np.empty(0, dtype=np.uint32)
    while done < len(orders):
        fresh = bits.words((len(orders) - done) * words_per_row + 64).view(np.uint32)
        halves = np.concatenate([halves, fresh]) if len(halves) else fresh
        rows, used = kernel(orders[done:], given[done:], halves, out[done:], *tables)
        done, halves = done + rows, halves[used:]


def all_permutations(items: int) -> Orders:
    """All permutations of 0..m-1 in lexicographic order, one a row."""
    return np.array(list(itertools.permutations(range(items))), dtype=np.int32)


def moves(items: int) -> Orders:
    """The (m-1)^2 permutations that move one element: what a neighbour does to a ranking."""
    identity = list(range(items))
    found = set()
    for taken in range(items):
        rest = identity[:taken] + identity[taken + 1 :]
        found |= {(*rest[:place], taken, *rest[place:]) for place in range(items)}
    return np.array(sorted(found - {tuple(identity)}), dtype=np.int32)
