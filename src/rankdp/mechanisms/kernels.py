"""Compiled loops that turn exact draws into rankings and count what log-probabilities need. None of them draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankdp.jit import kernel

_FOUR = np.uint64(4)
_ONE = np.uint64(1)
_NIBBLE = np.uint64(15)
_LOW = np.uint64(0xFFFFFFFF)
_RANGE = np.uint64(1 << 32)
_THIRTY_TWO = np.uint64(32)


@intrinsic
def _shift_back(typing: Any, row: Any, start: Any, stop: Any) -> Any:
    """row[start+1 : stop+1] = row[start : stop], as one memmove."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        source = builder.gep(data, [arguments[1]])
        target = builder.gep(source, [arguments[1].type(1)])
        count = builder.sub(arguments[2], arguments[1])
        size = signature.args[0].dtype.bitwidth // 8
        cgutils.raw_memmove(builder, target, source, count, size)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(row, types.int64, types.int64), generate


@kernel
def insert_short(orders: NDArray[np.int32], behind: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Rebuild rows of at most 16 items; the t-th item leaves behind[t-1] of the earlier ones behind it.

    The ranking under construction is one word of 4-bit digits, so an insertion is five operations without a
    branch.
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
def insert_shifting(orders: NDArray[np.int32], behind: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """The same for any length, shifting what stays behind: cost proportional to the number of inversions."""
    rows, items = orders.shape
    for u in range(rows):
        row = out[u]
        row[0] = orders[u, 0]
        for t in range(1, items):
            place = t - behind[u, t - 1]
            _shift_back(row, place, t)  # type: ignore[call-arg]
            row[place] = orders[u, t]


@kernel
def insert_by_tree(orders: NDArray[np.int32], behind: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """The same in O(m log m): from the last item to the first, each takes its place among the free ones.

    A complete binary tree counts the free places; one descent finds the place and updates the counts.
    """
    rows, items = orders.shape
    leaves = 1
    while leaves < items:
        leaves *= 2
    free = np.empty(2 * leaves, dtype=np.int32)
    for u in range(rows):
        for i in range(leaves):
            free[leaves + i] = i < items
        for node in range(leaves - 1, 0, -1):
            free[node] = free[2 * node] + free[2 * node + 1]
        for t in range(items - 1, -1, -1):
            ahead = t - (behind[u, t - 1] if t > 0 else 0)
            node = 1
            while node < leaves:
                node *= 2
                left = free[node]
                if ahead >= left:
                    ahead -= left
                    node += 1
                free[node] -= 1
            out[u, node - leaves] = orders[u, t]


@kernel
def permute(
    orders: NDArray[np.int32],
    permutations: NDArray[np.int32],
    cells: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """out[u, j] = orders[u, permutations[cells[u], j]]."""
    rows, items = orders.shape
    for u in range(rows):
        for j in range(items):
            out[u, j] = orders[u, permutations[cells[u], j]]


@kernel
def _uniform(halves: NDArray[np.uint32], cursor: int, bound: int) -> tuple[Any, int]:
    """A uniform integer below ``bound`` and the next cursor; -1 where the halves are used up.

    The upper half of half * bound, drawn again where the lower half lies below 2^32 mod bound (Lemire 2019):
    exact.
    """
    wide = np.uint64(bound)
    while cursor < len(halves):
        product = np.uint64(halves[cursor]) * wide
        cursor += 1
        rest = product & _LOW
        if rest >= wide or rest >= (_RANGE - wide) % wide:
            return np.int64(product >> _THIRTY_TWO), cursor
    return -1, cursor


@kernel
def _four_uniform(halves: NDArray[np.uint32], cursor: int, bound: int) -> tuple[Any, int]:
    """Uniform integers below bound, bound+1, bound+2 and bound+3 from one half, in four bytes; -1 where none are left.

    With P the product of the bounds, the four are the mixed-radix digits of the upper half of half * P, and
    the rejection is the one of ``_uniform`` with P for the bound (Brackett-Rozinsky and Lemire 2024): exact,
    for bounds of up to about 200.
    """
    while cursor < len(halves):
        rest, product, digits = np.uint64(halves[cursor]), _ONE, np.uint64(0)
        cursor += 1
        for i in range(4):
            wide = np.uint64(bound + i)
            rest *= wide
            product *= wide
            digits |= (rest >> _THIRTY_TWO) << np.uint64(8 * i)
            rest &= _LOW
        if rest >= product or rest >= (_RANGE - product) % product:
            return np.int64(digits), cursor
    return -1, cursor


@kernel
def reinsert_short(
    orders: NDArray[np.int32],
    taken: NDArray[np.int64],
    halves: NDArray[np.uint32],
    out: NDArray[np.int32],
    sequences: NDArray[np.uint64],
    starts: NDArray[np.int64],
) -> tuple[int, int]:
    """Take ``taken[u]`` random items out of row u (at most 16 items) and put them back one by one at random places.

    sequences[starts[d] : starts[d+1]] lists, for every set of d items, first the positions that stay and then
    those that leave, as a word of 4-bit digits; what stays joins at the end and what leaves anywhere, as in
    ``insert_short``. Returns the rows done and the halves they used: a row that runs out of halves is begun
    anew by the next call, with the same halves in front.
    """
    rows, items = orders.shape
    cursor = 0
    for u in range(rows):
        begun = cursor
        size = taken[u]
        drawn, cursor = _uniform(halves, cursor, starts[size + 1] - starts[size])
        if drawn < 0:
            return u, begun
        sequence = sequences[starts[size] + drawn]
        built = np.uint64(0)
        for start in range(0, items, 4):
            digits, cursor = _four_uniform(halves, cursor, start + 1)
            if digits < 0:
                return u, begun
            for t in range(start, min(start + 4, items)):
                place = np.uint64(4 * (t if t < items - size else digits & 255))
                before = built & ((_ONE << place) - _ONE)
                built = before | ((sequence & _NIBBLE) << place) | ((built ^ before) << _FOUR)
                sequence >>= _FOUR
                digits >>= 8
        for j in range(items):
            out[u, j] = orders[u, built & _NIBBLE]
            built >>= _FOUR
    return rows, cursor


@kernel
def reinsert(
    orders: NDArray[np.int32], taken: NDArray[np.int64], halves: NDArray[np.uint32], out: NDArray[np.int32]
) -> tuple[int, int]:
    """The same for any length in O(m): a random sequence of items leaves, a random set of places takes it up."""
    rows, items = orders.shape
    pool = np.empty(items, dtype=np.int32)
    gone = np.empty(items, dtype=np.bool_)
    given = np.empty(items, dtype=np.bool_)
    cursor = 0
    for u in range(rows):
        begun = cursor
        size = taken[u]
        for i in range(items):
            pool[i] = i
            gone[i] = False
        for i in range(size):
            drawn, cursor = _uniform(halves, cursor, items - i)
            if drawn < 0:
                return u, begun
            item = pool[i + drawn]
            pool[i + drawn] = pool[i]
            pool[i] = item
            gone[item] = True
        few = min(size, items - size)
        for i in range(items):
            given[i] = few != size
        for last in range(items - few, items):  # Floyd's sample of a set, marked by the rarer value
            drawn, cursor = _uniform(halves, cursor, last + 1)
            if drawn < 0:
                return u, begun
            if given[drawn] == (few == size):
                drawn = last
            given[drawn] = few == size
        returning, staying = 0, 0
        for j in range(items):
            if given[j]:
                out[u, j] = orders[u, pool[returning]]
                returning += 1
            else:
                while gone[staying]:
                    staying += 1
                out[u, j] = orders[u, staying]
                staying += 1
    return rows, cursor


@kernel
def _random_tableau(
    shape: NDArray[np.int32],
    halves: NDArray[np.uint32],
    cursor: int,
    rows: NDArray[np.int32],
    tall: NDArray[np.int32],
) -> int:
    """A uniform standard Young tableau of ``shape`` by the hook walk (Greene, Nijenhuis, Wilf 1979).

    rows[k] becomes the row of entry k. Returns the next cursor, or -1 where the halves are used up. Uses
    ``shape`` up.
    """
    items = len(rows)
    tall[:] = 0
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


@kernel
def permutations_of_shapes(
    orders: NDArray[np.int32], shapes: NDArray[np.int32], halves: NDArray[np.uint32], out: NDArray[np.int32]
) -> tuple[int, int]:
    """Permute each row of ``orders`` by a uniform permutation whose Robinson-Schensted shape is that row of ``shapes``.

    Two uniform tableaux of the shape, then the correspondence backwards. Returns rows done and halves used,
    as ``reinsert`` does.
    """
    rows, items = orders.shape
    height = shapes.shape[1]
    shape = np.empty(height, dtype=np.int32)
    tall = np.empty(items, dtype=np.int32)
    first, second = np.empty(items, dtype=np.int32), np.empty(items, dtype=np.int32)
    tableau = np.empty((height, items), dtype=np.int32)
    cursor = 0
    for u in range(rows):
        begun = cursor
        shape[:] = shapes[u]
        cursor = _random_tableau(shape, halves, cursor, first, tall)
        if cursor < 0:
            return u, begun
        shape[:] = shapes[u]
        cursor = _random_tableau(shape, halves, cursor, second, tall)
        if cursor < 0:
            return u, begun
        shape[:] = 0
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


@kernel
def tally_by_longest_increasing(items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Over all permutations with longest increasing subsequence l: how often a lands at b, and i stays before j.

    Returns landed[l, a, b] and kept[l, i, j]. Goes through the permutations in lexicographic order.
    """
    landed = np.zeros((items + 1, items, items), dtype=np.int64)
    kept = np.zeros((items + 1, items, items), dtype=np.int64)
    s = np.arange(items)
    tops = np.empty(items, dtype=np.int64)
    while True:
        piles = 0
        for j in range(items):
            pile = 0
            while pile < piles and tops[pile] < s[j]:
                pile += 1
            tops[pile] = s[j]
            piles = max(piles, pile + 1)
        for j in range(items):
            landed[piles, s[j], j] += 1
            for later in range(j + 1, items):
                if s[j] < s[later]:
                    kept[piles, s[j], s[later]] += 1
        i = items - 2
        while i >= 0 and s[i] > s[i + 1]:
            i -= 1
        if i < 0:
            return landed, kept
        j = items - 1
        while s[j] < s[i]:
            j -= 1
        s[i], s[j] = s[j], s[i]
        s[i + 1 :] = s[i + 1 :][::-1].copy()


@kernel
def count_inversions(relative: NDArray[np.int32]) -> NDArray[np.int64]:
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


@kernel
def longest_increasing(relative: NDArray[np.int32]) -> NDArray[np.int64]:
    """Length of the longest increasing subsequence of each permutation (patience sorting)."""
    rows, items = relative.shape
    lengths = np.zeros(rows, dtype=np.int64)
    tops = np.empty(items, dtype=np.int32)
    for u in range(rows):
        piles = 0
        for j in range(items):
            low, high = 0, piles
            while low < high:
                middle = (low + high) // 2
                if tops[middle] < relative[u, j]:
                    low = middle + 1
                else:
                    high = middle
            tops[low] = relative[u, j]
            if low == piles:
                piles += 1
        lengths[u] = piles
    return lengths


@kernel
def log_increasing_sum(relative: NDArray[np.int32], log_weight: float) -> NDArray[np.float64]:
    """log of the sum of w^|S| over all increasing subsequences S (the empty one too) of each permutation.

    f[j] = w (1 + sum of f[i] over i < j with a smaller value) sums over those that end at j; kept in
    logarithms, O(m^2).
    """
    rows, items = relative.shape
    sums = np.empty(rows, dtype=np.float64)
    ending = np.empty(items, dtype=np.float64)
    for u in range(rows):
        total = 0.0
        for j in range(items):
            inside = 0.0
            for i in range(j):
                if relative[u, i] < relative[u, j]:
                    high, low = max(inside, ending[i]), min(inside, ending[i])
                    inside = high + np.log1p(np.exp(low - high))
            ending[j] = inside + log_weight
            high, low = max(total, ending[j]), min(total, ending[j])
            total = high + np.log1p(np.exp(low - high))
        sums[u] = total
    return sums
