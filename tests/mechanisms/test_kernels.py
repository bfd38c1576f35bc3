"""Every compiled loop against a plain Python reference."""

import itertools
import math

import numpy as np
import pytest
from support import Scripted, assert_law, generator, inversions, longest_increasing, seeded

from rankdp import jit
from rankdp.mechanisms.rankings import sampling_kernels as kernels
from rankdp.mechanisms.rankings.contract import rows_from_halves
from rankdp.mechanisms.rankings.ulam import _partitions, _Shapes, _tableaux
from rankdp.theory.permutations import all_permutations
from rankdp.theory.permutations import places as lexicographic_places


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """However small the work: tests/test_jit.py shows that the interpreted loops do the same."""
    monkeypatch.setattr(jit, "PATIENCE", -1)


def insert_plainly(orders, behind):
    """The t-th item leaves behind[t-1] of the earlier ones behind it."""
    out = []
    for order, stay in zip(orders.tolist(), behind.tolist(), strict=True):
        built = [order[0]]
        for t in range(1, len(order)):
            built.insert(t - stay[t - 1], order[t])
        out.append(built)
    return out


def random_insertions(rng, rows, items):
    orders = np.array([rng.permutation(items) for _ in range(rows)], dtype=np.int32)
    behind = np.stack([rng.integers(0, t + 1, rows) for t in range(1, items)], axis=1).astype(np.int32)
    behind[0], behind[1] = 0, np.arange(1, items)  # nothing moves; everything is turned round
    return orders, behind


@pytest.mark.slow
@pytest.mark.parametrize("items", [2, 3, 4, 7, 15, 16, 17, 33, 63, 64, 65, 129, 500, 4097])
def test_insertions_agree_with_plain_python(items, request):
    orders, behind = random_insertions(generator(request), 30, items)
    expected = insert_plainly(orders, behind)
    assert expected[0] == orders[0].tolist()
    assert expected[1] == orders[1].tolist()[::-1]
    loops = [kernels.insert_long] + [kernels.insert_short] * (items <= 16)
    for loop in loops:
        out = np.full_like(orders, -1)
        loop(orders, behind, out)
        assert out.tolist() == expected


def test_select_finds_every_set_bit(request):
    words = [1, 1 << 63, (1 << 64) - 1, 0x8000000000000001, *generator(request).integers(0, 1 << 63, 200).tolist()]
    for word in words:
        places = [place for place in range(64) if word >> place & 1]
        found = [int(kernels._select(np.uint64(word), np.uint64(index))) for index in range(len(places))]
        assert found == places


@pytest.mark.slow
@pytest.mark.parametrize("items", [2, 5])
def test_insertions_reach_every_permutation_once_with_the_sum_of_draws_as_inversions(items):
    """Exactly: P(s) = prod of r^behind = r^inversions, nothing missing and nothing twice."""
    behind = np.array(list(itertools.product(*[range(t + 1) for t in range(1, items)])), dtype=np.int32)
    orders = np.tile(np.arange(items, dtype=np.int32), (len(behind), 1))
    out = np.empty_like(orders)
    kernels.insert_short(orders, behind, out)
    assert len(np.unique(lexicographic_places(out))) == len(out) == math.factorial(items)
    assert [inversions(row) for row in out.tolist()] == behind.sum(axis=1).tolist()
    assert kernels.count_inversions(out).tolist() == behind.sum(axis=1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("items", [2, 7, 60])
def test_counting_kernels(items, request):
    rng = generator(request)
    rows = np.array([rng.permutation(items) for _ in range(50)], dtype=np.int32)
    rows[0], rows[1] = np.arange(items), np.arange(items)[::-1]
    assert kernels.count_inversions(rows).tolist() == [inversions(row) for row in rows.tolist()]
    assert kernels.longest_rising_lengths(rows).tolist() == [longest_increasing(row) for row in rows.tolist()]


# -- uniform integers from halves --------------------------------------------------------------------------------


def test_uniform_rejects_exactly_the_surplus():
    """Bound 3: of the 2^32 halves one is surplus, the half 0; each outcome has (2^32 - 1)/3 others."""
    for bound in (3, 5, 7, 12, 1000, 12870, (1 << 31) + 1):
        surplus = (1 << 32) % bound
        rejected = 0
        edges = {0, 1, (1 << 32) - 1}
        for outcome in {0, 1, 2, bound // 2, bound - 1}:
            first = -(-(outcome << 32) // bound)  # the smallest half whose product reaches the outcome
            edges |= {max(0, first + shift) for shift in (-1, 0, 1)}
        for half in sorted(edge for edge in edges if edge < 1 << 32):
            drawn, cursor = kernels._uniform(np.array([half], dtype=np.uint32), 0, bound)
            product = half * bound
            assert cursor == 1
            if product % (1 << 32) < surplus:
                rejected += 1
                assert drawn == -1
            else:
                assert drawn == product >> 32
        assert rejected > 0
    for bound in (1, 2, 64, 1 << 31):  # no surplus, nothing rejected
        assert kernels._uniform(np.array([0], dtype=np.uint32), 0, bound) == (0, 1)


# -- rows that run out of halves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reinsert", "permutations_of_shapes"])
def test_running_out_of_halves_changes_nothing(name, request):
    """Tiny buffers or one big one: the same rows from the same halves."""
    rng, words = generator(request), seeded(request).words(4000)
    items, rows = 7, 60
    orders = np.array([rng.permutation(items) for _ in range(rows)], dtype=np.int32)
    kernel = getattr(kernels, name)
    if name == "permutations_of_shapes":
        shapes = list(itertools.chain(*[_partitions(items, first) for first in range(1, items + 1)]))
        given = np.zeros((rows, items), dtype=np.int32)
        for row, choice in zip(given, rng.integers(0, len(shapes), rows), strict=True):
            row[: len(shapes[choice])] = shapes[choice]
    else:
        given = rng.integers(0, items + 1, rows)
    whole = np.empty_like(orders)
    halves = words.view(np.uint32)
    assert kernel(orders, given, halves, whole)[0] == rows
    for step in (1, 2, 3, 11):
        out, done, start, stop = np.full_like(orders, -1), 0, 0, step
        stops = 0
        while done < rows:
            finished, used = kernel(orders[done:], given[done:], halves[start:stop], out[done:])
            done, start = done + finished, start + used
            stop += step
            stops += done < rows
        assert np.array_equal(out, whole)
        assert stops > 0
    out = np.empty_like(orders)
    rows_from_halves(kernel, orders, given, out, Scripted(words.tolist()), 1)
    assert np.array_equal(out, whole)


@pytest.mark.parametrize("rows", [1, 2, 500])
def test_rows_from_halves_asks_again_until_done(rows, request):
    """A kernel that gets a pitifully small ration still finishes, and reads the same stream."""
    bits, again = seeded(request), seeded(request)
    orders = np.tile(np.arange(200, dtype=np.int32), (rows, 1))
    given = np.full(rows, 150)
    small, large = np.empty_like(orders), np.empty_like(orders)
    rows_from_halves(kernels.reinsert, orders, given, small, bits, 0)
    kernels.reinsert(orders, given, again.words(rows * 300 + 500).view(np.uint32), large)
    assert np.array_equal(small, large)


# -- laws --------------------------------------------------------------------------------------------------------


def reinsertion_law(items, removed):
    law = np.zeros(math.factorial(items))
    for out in itertools.permutations(range(items), removed):
        stays = [item for item in range(items) if item not in out]
        for places in itertools.combinations(range(items), removed):
            returning, staying = iter(out), iter(stays)
            s = [next(returning) if j in places else next(staying) for j in range(items)]
            law[lexicographic_places(np.array([s]))[0]] += 1
    return law / law.sum()


@pytest.mark.parametrize("removed", range(5))
def test_reinsertion_puts_back_anywhere(removed, request):
    items, rows = 4, 40_000
    orders = np.tile(np.arange(items, dtype=np.int32), (rows, 1))
    out = np.empty_like(orders)
    rows_from_halves(kernels.reinsert, orders, np.full(rows, removed), out, seeded(request), 4)
    if removed == 0:
        assert np.array_equal(out, orders)
    else:
        assert_law(lexicographic_places(out), reinsertion_law(items, removed))


def shape_of(s):
    """The Robinson-Schensted shape of a permutation, by row insertion."""
    rows = []
    for value in s:
        for row in rows:
            bumped = next((k for k, entry in enumerate(row) if entry > value), None)
            if bumped is None:
                row.append(value)
                break
            row[bumped], value = value, row[bumped]
        else:
            rows.append([value])
    return tuple(map(len, rows))


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_permutations_of_a_shape_are_uniform(items, request):
    bits = seeded(request)
    of_shape = {}
    for index, s in enumerate(itertools.permutations(range(items))):
        of_shape.setdefault(shape_of(s), []).append(index)
    shapes = list(itertools.chain(*[_partitions(items, first) for first in range(1, items + 1)]))
    assert sorted(of_shape) == sorted(shapes)
    for shape, members in of_shape.items():
        assert len(members) == _tableaux(shape) ** 2
        rows = 400 * len(members)
        given = np.tile(np.array(shape + (0,) * (items - len(shape)), dtype=np.int32), (rows, 1))
        orders = np.tile(np.arange(items, dtype=np.int32), (rows, 1))
        out = np.empty_like(orders)
        rows_from_halves(kernels.permutations_of_shapes, orders, given, out, bits, 3 * items)
        drawn = lexicographic_places(out)
        assert set(drawn.tolist()) == set(members)
        if len(members) > 1:
            assert_law(np.searchsorted(members, drawn), np.full(len(members), 1 / len(members)))


@pytest.mark.parametrize("items", range(1, 8))
def test_counts_by_longest_increasing_subsequence(items):
    totals = [_Shapes.of(items, length).total for length in range(1, items + 1)]
    assert sum(totals) == math.factorial(items)
    lengths = [longest_increasing(s) for s in itertools.permutations(range(items))]
    assert totals == [lengths.count(length) for length in range(1, items + 1)]


@pytest.mark.parametrize("items", [12, 25])
def test_counts_sum_to_a_factorial(items):
    assert sum(_Shapes.of(items, length).total for length in range(1, items + 1)) == math.factorial(items)


def test_permute():
    orders = np.array([[7, 8, 9], [9, 7, 8]], dtype=np.int32)
    out = np.empty_like(orders)
    kernels.permute(orders, all_permutations(3), np.array([5, 1]), out)
    assert out.tolist() == [[9, 8, 7], [9, 8, 7]]
