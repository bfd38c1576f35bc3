"""Compiled loops of Kemeny aggregation: subsets, insertion search, and the relaxation over triples.

Throughout, ``lead[i, j]`` is what it costs to put i above j, less what it costs the other way round; it is
antisymmetric, and an order's excess is the sum of its positive leads. Pairs i < j are cells of a flat m x m table.
Inner loops run over unsigned indices and along memory, which lets the compiler use vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Float = NDArray[np.float64]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Leads = NDArray[Any]  # whole numbers or float64

_BLOCK = 12  # bits of a block of subsets whose cost tables stay in the cache
_LINE = 4  # bits of a run of subsets that is worked through as one vector


@kernel
def excess(lead: Leads, order: Int64) -> Any:
    """The sum of the positive leads of an order."""
    total = lead[0, 0]
    for above in range(len(order)):
        row = lead[order[above]]
        for below in range(above + 1, len(order)):
            total += max(row[order[below]], lead[0, 0])
    return total


@kernel
def _add_low(toll: Leads, low: Leads) -> None:
    """low[j, A] = the tolls of putting j above every item of A, for the sets A of the lowest items."""
    for j in range(len(low)):
        for subset in range(1, low.shape[1]):
            bit = 0
            while not subset >> bit & 1:
                bit += 1
            low[j, subset] = low[j, subset & (subset - 1)] + toll[j, bit]


@kernel
def _relax_run(best: Leads, here: Any, there: Any, table: Leads, at: Any, count: Any, step: Any) -> None:
    """best[here + l] = min(itself, best[there + l] + table[at + l] + step)."""
    for place in range(count):
        value = best.dtype.type(best[there + place] + table[at + place] + step)
        old = best[here + place]
        best[here + place] = value if value < old else old


@kernel
def fill_subsets(toll: Leads, best: Leads) -> None:
    """best[S] = the least cost of ordering the items of S: min over j in S of best[S - j] + tolls of j above S - j.

    Sets are worked through in blocks that share their high items. A high item j = first of S leads from one whole block
    to another, a middle one from one line of 2^4 sets to another; only the lowest four items are taken one by one.
    """
    m = len(toll)
    block, line = min(_BLOCK, m), min(_LINE, m)
    low = np.zeros((m, 1 << block), best.dtype)
    _add_low(toll, low)
    step = np.zeros(m, best.dtype)
    size, width = np.uint64(1 << block), np.uint64(1 << line)
    largest = best[0]
    best[1:] = largest
    best[0] = 0
    for high in range(1 << (m - block)):
        start = np.uint64(high) << np.uint64(block)
        for j in range(m):
            total = best.dtype.type(0)
            for i in range(block, m):
                if high >> (i - block) & 1:
                    total += toll[j, i]
            step[j] = total
        for j in range(block, m):
            if high >> (j - block) & 1:
                other = np.uint64(high ^ 1 << (j - block)) << np.uint64(block)
                _relax_run(best, start, other, low[j], np.uint64(0), size, step[j])
        for middle in range(1 << (block - line)):
            at = np.uint64(middle) << np.uint64(line)
            for j in range(line, block):
                if middle >> (j - line) & 1:
                    other = np.uint64(middle ^ 1 << (j - line)) << np.uint64(line)
                    _relax_run(best, start + at, start + other, low[j], at, width, step[j])
            for subset in range(np.int64(width)):
                for j in range(line):
                    if subset >> j & 1:
                        there = at + np.uint64(subset ^ 1 << j)
                        value = best.dtype.type(best[start + there] + low[j, at + np.uint64(subset)] + step[j])
                        if value < best[start + at + np.uint64(subset)]:
                            best[start + at + np.uint64(subset)] = value


@kernel
def read_subsets(toll: Leads, best: Leads) -> Int64:
    """The optimal order, at each place the first item that can stand there."""
    m = len(toll)
    order = np.empty(m, np.int64)
    left = (1 << m) - 1
    for place in range(m):
        chosen, least = -1, best[0]
        for j in range(m):
            if left >> j & 1:
                value = best[left ^ 1 << j]
                for i in range(m):
                    if left >> i & 1:
                        value += toll[j, i]
                if chosen < 0 or value < least:
                    chosen, least = j, value
        order[place] = chosen
        left ^= 1 << chosen
    return order


@kernel
def _reinsert(lead: Leads, order: Int64, place: int, least: Any) -> bool:
    """Move the item at ``place`` to where it costs least, if that saves more than ``least``."""
    item = order[place]
    row = lead[item]
    best, target = -least, place
    run = lead[0, 0]
    for other in range(place - 1, -1, -1):
        run += row[order[other]]
        if run < best:
            best, target = run, other
    run = lead[0, 0]
    for other in range(place + 1, len(order)):
        run -= row[order[other]]
        if run < best:
            best, target = run, other
    _shift(order, place, target)
    return target != place


@kernel
def _shift(order: Int64, place: int, target: int) -> None:
    """Take the item at ``place`` out and put it in at ``target``."""
    item = order[place]
    for other in range(place, target, -1):
        order[other] = order[other - 1]
    for other in range(place, target):
        order[other] = order[other + 1]
    order[target] = item


@kernel
def improve(lead: Leads, order: Int64, least: Any) -> None:
    """Reinsert items one after the other until no reinsertion saves more than ``least``."""
    m = len(order)
    quiet, place = 0, 0
    while quiet < m:
        if _reinsert(lead, order, place, least):
            quiet = 0
        else:
            quiet += 1
            place += 1
        if place >= m:
            place = 0


@kernel
def _draw(state: NDArray[np.uint64], bound: int) -> Any:
    """A number below ``bound`` (splitmix64; the bias of the remainder does not matter to a search)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) % np.uint64(bound))


@kernel
def search(lead: Leads, order: Int64, rounds: int, seed: int, least: Any) -> Any:
    """Iterated local search in place: shift some items at random, improve, keep what is not worse. The excess."""
    m = len(order)
    state = np.array([seed], np.uint64)
    improve(lead, order, least)
    best = excess(lead, order)
    trial = order.copy()
    for _ in range(rounds if m > 2 else 0):
        trial[:] = order
        for _ in range(2 + _draw(state, 4)):
            place = _draw(state, m)
            reach = 1 + _draw(state, min(m - 1, 30))
            target = place + reach if _draw(state, 2) == 0 else place - reach
            _shift(trial, place, min(max(target, 0), m - 1))
        improve(lead, trial, least)
        value = excess(lead, trial)
        if value <= best:
            best = value
            order[:] = trial
    return best


@kernel
def pack_cycles(rest: Leads, start: int, stop: int) -> Any:
    """Pack 3-cycles of majorities: take from each cycle's leads the smallest of the three. Returns the sum taken.

    Only cycles whose first item is from ``start`` to ``stop`` are taken; between calls the clock can be read.

    ``rest`` starts as the leads and is used up. What is taken is a lower bound of every order's excess.
    """
    m, none = len(rest), rest[0, 0]
    total = none
    for i in range(start, min(stop, m)):
        for j in range(i + 1, m):
            for k in range(i + 1, m):  # i is the first item of its cycle i, j, k
                if not rest[i, j] < none:
                    break
                if rest[j, k] < none and rest[i, k] > none:
                    least = min(-rest[i, j], -rest[j, k], rest[i, k])
                    total += least
                    rest[i, j] += least
                    rest[j, i] -= least
                    rest[j, k] += least
                    rest[k, j] -= least
                    rest[i, k] -= least
                    rest[k, i] += least
    return total


@kernel
def sweep(flows: Float, above: Float, gains: Float, tau: float, buffer: Float) -> None:
    """One step of the flows of all triples, s += tau curl(u) shrunk by tau; gains += A (2 s - old s)."""
    m, start = len(above), 0
    for i in range(m - 2):
        u_i, g_i = above[i], gains[i]
        for j in range(i + 1, m - 1):
            u_j, g_j, u_ij = above[j], gains[j], above[i, j]
            count, at, k0 = np.uint64(m - j - 1), np.uint64(start), np.uint64(j + 1)
            for k in range(count):
                old = flows[at + k]
                moved = old + tau * (u_ij + u_j[k0 + k] - u_i[k0 + k])
                clipped = moved if moved > -tau else -tau
                clipped = clipped if clipped < tau else tau
                flows[at + k] = moved - clipped
                buffer[k] = 2 * (moved - clipped) - old
            for k in range(count):
                g_j[k0 + k] += buffer[k]
                g_i[k0 + k] -= buffer[k]
            g_i[j] += _sum(buffer, count)
            start += m - j - 1


@kernel
def _sum(values: Float, count: Any) -> Any:
    """The sum of the first values, in four strands."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = count // np.uint64(4)
    for k in range(whole):
        at = np.uint64(4) * k
        one += values[at]
        two += values[at + np.uint64(1)]
        three += values[at + np.uint64(2)]
        four += values[at + np.uint64(3)]
    for k in range(np.uint64(4) * whole, count):
        one += values[k]
    return (one + two) + (three + four)


@kernel
def relax_all(flows: Float, above: Float, lead: Float, fixed: Int8, tau: float, sigma: float, steps: int) -> None:
    """Primal-dual steps over every triple: flows from u, then u from the extrapolated flows."""
    m = len(above)
    gains, buffer = np.empty((m, m)), np.empty(m)
    for _ in range(steps):
        gains[:] = lead
        sweep(flows, above, gains, tau, buffer)
        for i in range(m):
            for j in range(i + 1, m):
                if fixed[i, j] == 0:
                    above[i, j] = min(max(above[i, j] - sigma * gains[i, j], -1.0), 1.0)


@kernel
def relax_listed(
    triples: Int32, flows: Float, u: Float, lead: Float, free: Int32, tau: float, sigma: float, steps: int
) -> None:
    """The same steps over the listed triples and the free pairs alone; ``u`` and ``lead`` are flat."""
    gains = np.empty(len(u))
    for _ in range(steps):
        for f in range(len(free)):
            pair = np.uint32(free[f])
            gains[pair] = lead[pair]
        for t in range(len(flows)):
            ij, jk, ik = np.uint32(triples[t, 0]), np.uint32(triples[t, 1]), np.uint32(triples[t, 2])
            old = flows[t]
            moved = old + tau * (u[ij] + u[jk] - u[ik])
            clipped = moved if moved > -tau else -tau
            clipped = clipped if clipped < tau else tau
            flows[t] = moved - clipped
            value = 2 * (moved - clipped) - old
            gains[ij] += value
            gains[jk] += value
            gains[ik] -= value
        for f in range(len(free)):
            pair = np.uint32(free[f])
            u[pair] = min(max(u[pair] - sigma * gains[pair], -1.0), 1.0)


@kernel
def bound_all(flows: Float, lead: Float, fixed: Int8, gains: Float) -> Any:
    """The lower bound that these flows prove, and the pairs' gains lead + A s."""
    m, start, size = len(lead), 0, 0.0
    gains[:] = lead
    for i in range(m - 2):
        for j in range(i + 1, m - 1):
            for k in range(j + 1, m):
                flow = flows[start]
                gains[i, j] += flow
                gains[j, k] += flow
                gains[i, k] -= flow
                size += abs(flow)
                start += 1
    return _bound(size, lead, fixed, gains)


@kernel
def bound_listed(triples: Int32, flows: Float, lead: Float, fixed: Int8, gains: Float) -> Any:
    """The same for listed triples, the others' flows being 0."""
    gains[:] = lead
    flat = gains.ravel()
    size = 0.0
    for t in range(len(flows)):
        flat[triples[t, 0]] += flows[t]
        flat[triples[t, 1]] += flows[t]
        flat[triples[t, 2]] -= flows[t]
        size += abs(flows[t])
    return _bound(size, lead, fixed, gains)


@kernel
def _bound(size: float, lead: Float, fixed: Int8, gains: Float) -> Any:
    total = -size
    for i in range(len(lead)):
        for j in range(i + 1, len(lead)):
            total += abs(lead[i, j])
            total += fixed[i, j] * gains[i, j] if fixed[i, j] != 0 else -abs(gains[i, j])
    return total / 2


@kernel
def put_above(fixed: Int8, high: int, low: int) -> bool:
    """Fix that ``high`` stands above ``low``, and all that follows by transitivity; False if it contradicts."""
    m = len(fixed)
    if fixed[high, low] != 0:
        return bool(fixed[high, low] == 1)
    for i in range(m):
        if i != high and fixed[i, high] != 1:
            continue
        for j in range(m):
            if j == low or fixed[low, j] == 1:
                if i == j or fixed[i, j] == -1:
                    return False
                fixed[i, j], fixed[j, i] = 1, -1
    return True


@kernel
def fix_costly(gains: Float, room: float, fixed: Int8) -> bool:
    """Fix every pair that costs more than ``room`` the other way round; False if no order is left."""
    m = len(fixed)
    for i in range(m):
        for j in range(i + 1, m):
            if fixed[i, j] == 0 and abs(gains[i, j]) > room:
                high, low = (j, i) if gains[i, j] > 0 else (i, j)
                if not put_above(fixed, high, low):
                    return False
    return True


@kernel
def settle(fixed: Int8, above: Float) -> Int32:
    """Write the fixed pairs into u; returns the flat places of the free ones."""
    m = len(fixed)
    free, count = np.empty(m * (m - 1) // 2, np.int32), 0
    for i in range(m):
        for j in range(i + 1, m):
            if fixed[i, j] != 0:
                above[i, j] = fixed[i, j]
            else:
                free[count] = i * m + j
                count += 1
    return free[:count].copy()


@kernel
def list_open(flows: Float, fixed: Int8) -> tuple[Any, Any]:
    """The triples with two free pairs or more, as flat places of their pairs ij, jk, ik, with their flows."""
    m = len(fixed)
    triples, kept = np.empty((0, 3), np.int32), np.empty(0)
    for turn in range(2):  # count, then fill
        count, start = 0, 0
        for i in range(m - 2):
            for j in range(i + 1, m - 1):
                for k in range(j + 1, m):
                    if (fixed[i, j] == 0) + (fixed[j, k] == 0) + (fixed[i, k] == 0) >= 2:
                        if turn == 1:
                            triples[count, 0], triples[count, 1], triples[count, 2] = i * m + j, j * m + k, i * m + k
                            kept[count] = flows[start]
                        count += 1
                    start += 1
        if turn == 0:
            triples, kept = np.empty((count, 3), np.int32), np.empty(count)
    return triples, kept


@kernel
def still_open(triples: Int32, flows: Float, fixed: Int8) -> tuple[Any, Any]:
    """Those of the listed triples that still have two free pairs or more, with their flows."""
    flat = fixed.ravel()
    kept, count = np.empty(len(triples), np.int64), 0
    for t in range(len(triples)):
        if (flat[triples[t, 0]] == 0) + (flat[triples[t, 1]] == 0) + (flat[triples[t, 2]] == 0) >= 2:
            kept[count] = t
            count += 1
    return triples[kept[:count]], flows[kept[:count]]
