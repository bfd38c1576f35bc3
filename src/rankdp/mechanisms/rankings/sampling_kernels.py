"""Compiled loops that turn exact draws into rankings, and counts for log-probabilities. They draw nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel
from rankdp.types import Ints, Longs

_FOUR = np.uint64(4)
_ONE = np.uint64(1)
_NIBBLE = np.uint64(15)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_BYTES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
# _SELECT_IN_BYTE[256 k + byte]: the position of the k-th set bit of a byte
_SELECT_IN_BYTE = np.zeros(8 * 256, dtype=np.uint8)
for _byte in range(256):
    for _k, _bit in enumerate(bit for bit in range(8) if _byte >> bit & 1):
        _SELECT_IN_BYTE[256 * _k + _byte] = _bit
_LOW = np.uint64(0xFFFFFFFF)
_RANGE = np.uint64(1 << 32)
_THIRTY_TWO = np.uint64(32)


@kernel(effort=0.5)
def insert_short(orders: Ints, behind: Ints, out: Ints) -> None:
    """Rebuild rows of at most 16 items; the t-th item leaves behind[t-1] of the earlier ones behind it.

    The ranking under construction is one word of 4-bit digits, so an insertion is five operations without a branch.
    """
    rows, items = orders.shape
    for u in range(rows):
        built = np.uint64(0)
        for t in range(1, items):
            place = np.uint64(4 * (t - behind[u, t - 1]))
            before = built & ((_ONE << place) - _ONE)
            built = before | (np.uint64(t) << place) | ((built ^ before) << _FOUR)
        for j in range(items):
            out[u, j] = orders[u, built & _NIBBLE]
            built >>= _FOUR


@kernel
def _select(word: Any, index: Any) -> Any:
    """The position of the set bit with this index (from 0) in a word, by sums over its bytes, without branches."""
    sums = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    sums = (sums & np.uint64(0x3333333333333333)) + ((sums >> np.uint64(2)) & np.uint64(0x3333333333333333))
    sums = ((sums + (sums >> _FOUR)) & np.uint64(0x0F0F0F0F0F0F0F0F)) * _BYTES  # bits in this byte and those below
    passed = (((index * _BYTES) | _TOPS) - sums) & _TOPS  # a mark in each byte that ends before the bit
    byte = (((passed >> np.uint64(7)) * _BYTES) >> np.uint64(56)) << np.uint64(3)
    left = index - (((sums << np.uint64(8)) >> byte) & np.uint64(255))
    return byte + np.uint64(_SELECT_IN_BYTE[(left << np.uint64(8)) | ((word >> byte) & np.uint64(255))])


@kernel(effort=3)
def insert_long(orders: Ints, behind: Ints, out: Ints) -> None:
    """As ``insert_short``, for any length, in O(m log m): from the last item on, each takes one of the free places.

    Words of free places are the leaves of a tree that counts them.
    """
    rows, items = orders.shape
    leaves = 1
    while 64 * leaves < items:
        leaves *= 2
    full = np.zeros(2 * leaves, dtype=np.int32)
    for leaf in range(leaves):
        full[leaves + leaf] = min(64, max(0, items - 64 * leaf))
    for node in range(leaves - 1, 0, -1):
        full[node] = full[2 * node] + full[2 * node + 1]
    free = np.empty(2 * leaves, dtype=np.int32)
    words = np.empty(leaves, dtype=np.uint64)
    for u in range(rows):
        free[:] = full
        for leaf in range(leaves):
            size = full[leaves + leaf]
            words[leaf] = _ALL if size == 64 else (_ONE << np.uint64(size)) - _ONE
        for t in range(items - 1, -1, -1):
            ahead: Any = t - (behind[u, t - 1] if t > 0 else 0)
            at: Any = 1
            while at < leaves:  # one descent finds the word and updates the counts
                at *= 2
                left = free[at]
                beyond = np.int32(ahead >= left)
                ahead -= left * beyond
                free[at] = left - (1 - beyond)
                at += beyond
            bit = _select(words[at - leaves], np.uint64(ahead))
            words[at - leaves] ^= _ONE << bit
            out[u, 64 * (at - leaves) + np.int64(bit)] = orders[u, t]


@kernel(effort=0.3)
def permute(orders: Ints, permutations: Ints, cells: Longs, out: Ints) -> None:
    """out[u, j] = orders[u, permutations[cells[u], j]]."""
    rows, items = orders.shape
    for u in range(rows):
        for j in range(items):
            out[u, j] = orders[u, permutations[cells[u], j]]


@kernel
def _uniform(halves: NDArray[np.uint32], cursor: int, bound: int) -> tuple[Any, int]:
    """A uniform integer below ``bound`` and the next cursor; -1 if the halves are used up.

    The upper half of half * bound, drawn again where the lower half lies below 2^32 mod bound (Lemire 2019): exact.
    """
    wide = np.uint64(bound)
    while cursor < len(halves):
        product = np.uint64(halves[cursor]) * wide
        cursor += 1
        rest = product & _LOW
        if rest >= wide or rest >= (_RANGE - wide) % wide:
            return np.int64(product >> _THIRTY_TWO), cursor
    return -1, cursor


@kernel(effort=0.5)
def reinsert(orders: Ints, taken: Longs, halves: NDArray[np.uint32], out: Ints) -> tuple[int, int]:
    """Take ``taken[u]`` random items out of row u and put them back one by one at random places, in O(m).

    A random sequence of items leaves and fills a random set of places. The loops over them use arithmetic instead of
    unpredictable branches. Returns the rows done and the halves used: a row that runs out of halves starts again in the
    next call, with the same halves in front.
    """
    rows, items = orders.shape
    leaving = np.empty(items + 1, dtype=np.int32)  # its first ``size`` entries leave, in this order
    staying = np.empty(items + 1, dtype=np.int32)
    gone = np.empty(items, dtype=np.int32)
    given = np.empty(items, dtype=np.int32)
    cursor = 0 * rows  # a bare 0 would have the called kernels compiled twice
    for u in range(rows):
        begun = cursor
        size = taken[u]
        few = min(size, items - size)
        rare = np.int32(few == size)
        for i in range(items):
            leaving[i] = i
            gone[i] = 0
            given[i] = 1 - rare
        for i in range(size):
            drawn, cursor = _uniform(halves, cursor, items - i)
            if drawn < 0:
                return u, begun
            item = leaving[i + drawn]
            leaving[i + drawn] = leaving[i]
            leaving[i] = item
            gone[item] = 1
        for last in range(items - few, items):  # Floyd's sample of a set, marked by the rarer value
            drawn, cursor = _uniform(halves, cursor, last + 1)
            if drawn < 0:
                return u, begun
            again = np.int64(given[drawn] == rare)
            given[drawn + (last - drawn) * again] = rare
        kept = 0
        for i in range(items):
            staying[kept] = i
            kept += 1 - gone[i]
        left, kept = 0, 0
        for j in range(items):
            back = given[j]
            out[u, j] = orders[u, staying[kept] + (leaving[left] - staying[kept]) * back]
            left += back
            kept += 1 - back
    return rows, cursor


@kernel
def _random_tableau(shape: Ints, halves: NDArray[np.uint32], cursor: int, rows: Ints, tall: Ints) -> int:
    """A uniform standard Young tableau of ``shape`` by the hook walk (Greene, Nijenhuis, Wilf 1979).

    rows[k] becomes the row of entry k. Returns the next cursor, or -1 if the halves are used up. Overwrites ``shape``.
    """
    items = len(rows)
    for column in range(items):
        tall[column] = 0
    for row in range(len(shape)):
        for column in range(shape[row]):
            tall[column] += 1
    for entry in range(items - 1, -1, -1):
        place, cursor = _uniform(halves, cursor, entry + 1)
        if place < 0:
            return -1
        row = 0
        while place >= shape[row]:
            place -= shape[row]
            row += 1
        column = place
        while True:
            arm = shape[row] - column - 1
            hook = arm + tall[column] - row - 1
            if hook == 0:
                break
            step, cursor = _uniform(halves, cursor, hook)
            if step < 0:
                return -1
            if step < arm:
                column += step + 1
            else:
                row += step - arm + 1
        rows[entry] = row
        shape[row] -= 1
        tall[column] -= 1
    return cursor


@kernel(effort=2)
def permutations_of_shapes(orders: Ints, shapes: Ints, halves: NDArray[np.uint32], out: Ints) -> tuple[int, int]:
    """Permute each row of ``orders`` by a uniform permutation whose Robinson-Schensted shape is that row of ``shapes``.

    Two uniform tableaux of the shape, then the correspondence backwards. Returns rows done and halves used, as
    ``reinsert`` does.
    """
    rows, items = orders.shape
    height = shapes.shape[1]
    shape = np.empty(height, dtype=np.int32)
    tall = np.empty(items, dtype=np.int32)
    first, second = np.empty(items, dtype=np.int32), np.empty(items, dtype=np.int32)
    tableau = np.empty((height, items), dtype=np.int32)
    cursor = 0 * rows  # a bare 0 would have the called kernels compiled twice
    for u in range(rows):
        begun = cursor
        for row in range(height):
            shape[row] = shapes[u, row]
        cursor = _random_tableau(shape, halves, cursor, first, tall)
        if cursor < 0:
            return u, begun
        for row in range(height):
            shape[row] = shapes[u, row]
        cursor = _random_tableau(shape, halves, cursor, second, tall)
        if cursor < 0:
            return u, begun
        for row in range(height):
            shape[row] = 0
        for entry in range(items):
            tableau[first[entry], shape[first[entry]]] = entry
            shape[first[entry]] += 1
        for j in range(items - 1, -1, -1):
            row = second[j]
            shape[row] -= 1
            value = tableau[row, shape[row]]
            for above in range(row - 1, -1, -1):
                column = shape[above] - 1
                while tableau[above, column] > value:
                    column -= 1
                value, tableau[above, column] = tableau[above, column], value
            out[u, j] = orders[u, value]
    return rows, cursor


@kernel(effort=3)
def count_inversions(relative: Ints) -> Longs:
    """Discordant pairs of each permutation, by a Fenwick tree."""
    rows, items = relative.shape
    counts = np.zeros(rows, dtype=np.int64)
    tree = np.empty(items + 1, dtype=np.int32)
    for u in range(rows):
        tree[:] = 0
        for seen in range(items):
            position = relative[u, seen] + 1
            smaller = 0
            i = position
            while i > 0:
                smaller += tree[i]
                i -= i & -i
            counts[u] += seen - smaller
            i = position
            while i <= items:
                tree[i] += 1
                i += i & -i
    return counts


@kernel(effort=1)
def longest_rising_lengths(permutations: Ints) -> Longs:
    """Length of the longest increasing subsequence of each row (patience sorting)."""
    rows, items = permutations.shape
    lengths = np.zeros(rows, dtype=np.int64)
    tops = np.empty(items, dtype=np.int32)
    for u in range(rows):
        piles = 0
        for j in range(items):
            low, high = 0, piles
            while low < high:
                middle = (low + high) // 2
                if tops[middle] < permutations[u, j]:
                    low = middle + 1
                else:
                    high = middle
            tops[low] = permutations[u, j]
            if low == piles:
                piles += 1
        lengths[u] = piles
    return lengths
