"""Pair counts: exact, in order, refused with a reason; their graphs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp import Rankings
from rankdp.data.counts import (
    PairCounts,
    always_beaten,
    components,
    never_beaten,
    win_components,
)
from rankdp.errors import InputError


def plain(left, right, halves, items):
    """The half-wins of each pair, counted one by one."""
    table = np.zeros((items, items), np.int64)
    for i, j, half in zip(left, right, halves, strict=True):
        table[i, j] += half
        table[j, i] += 2 - half
    return table


@st.composite
def rows(draw):
    items = draw(st.integers(2, 9))
    one = st.tuples(st.integers(0, items - 1), st.integers(1, items - 1), st.integers(0, 2))
    drawn = draw(st.lists(one, max_size=40))
    left = [i for i, _, _ in drawn]
    return items, left, [(i + d) % items for i, d, _ in drawn], [half for *_, half in drawn]


@pytest.mark.slow
@given(data=rows())
def test_counting_agrees_with_the_plain_loop(data):
    items, left, right, halves = data
    counts = PairCounts.from_pairs(left, right, halves, items=items)
    table = plain(left, right, halves, items)
    np.testing.assert_array_equal(counts.dense() * 2, table)
    assert counts == PairCounts.from_dense(table / 2)
    assert counts == PairCounts.from_pairs(left, right, halves, [2 - half for half in halves], items=items)
    assert counts == PairCounts(*(getattr(counts, name) for name in PairCounts.__slots__))
    np.testing.assert_array_equal(counts.half_wins, table.sum(axis=1))
    np.testing.assert_array_equal(counts.half_losses, table.sum(axis=0))
    np.testing.assert_array_equal(counts.degree, ((table + table.T) > 0).sum(axis=1))
    np.testing.assert_array_equal(counts.comparisons, (table + table.T)[counts.first, counts.second] / 2)


@pytest.mark.slow
@given(rows())
def test_graphs_agree_with_transitive_closures(data):
    items, left, right, halves = data
    counts = PairCounts.from_pairs(left, right, halves, items=items)
    beats = np.eye(items, dtype=bool) | (plain(left, right, halves, items) > 0)
    met = beats | beats.T
    for _ in range(4):
        beats, met = beats @ beats, met @ met
    both = beats & beats.T
    np.testing.assert_array_equal(components(counts)[:, None] == components(counts), met)
    np.testing.assert_array_equal(win_components(counts)[:, None] == win_components(counts), both)
    assert components(counts)[0] == win_components(counts)[0] == 0


def test_many_items_are_counted_without_a_square_table():
    generator = np.random.default_rng(3)
    items, rows = 5_000, 200_000
    left = generator.integers(0, items, rows)
    right = (left + generator.integers(1, 40, rows)) % items
    halves = generator.integers(0, 3, rows)
    counts = PairCounts.from_pairs(left, right, halves, items=items)
    assert counts == PairCounts.from_pairs(left, right, halves, 2 - halves, items=items)
    assert counts.halves.sum() == 2 * rows


def test_a_long_chain_is_one_component_only_if_it_closes():
    n = 500
    place = np.random.default_rng(1).permutation(n)
    cycle = PairCounts.from_pairs(place, np.roll(place, 1), np.full(n, 2), items=n)
    chain = PairCounts.from_pairs(place[1:], place[:-1], np.full(n - 1, 2), items=n)
    assert (win_components(cycle).max(), win_components(chain).max()) == (0, n - 1)


def test_rankings_compare_every_pair_they_list():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a"], ["c"]], items=["a", "b", "c", "d"])
    counts = PairCounts.from_rankings(rankings)
    assert counts.items == ("a", "b", "c", "d")
    assert list(zip(counts.first, counts.second, counts.half_wins_first, counts.half_wins_second, strict=True)) == [
        (0, 1, 2, 2),
        (0, 2, 2, 0),
        (1, 2, 2, 0),
    ]


def test_unbeaten_and_beaten_items():
    counts = PairCounts.from_pairs([0, 0, 1, 3], [1, 2, 2, 4], [2, 2, 1, 1], items=6)
    assert never_beaten(counts).tolist() == [0]
    assert always_beaten(counts).tolist() == []
    assert components(counts).tolist() == [0, 0, 0, 1, 1, 2]
    assert win_components(counts).tolist() == [0, 1, 1, 2, 2, 3]


def test_ties_and_odd_halves_stay_exact():
    counts = PairCounts.from_dense([[0, 1.5], [0, 0]], items=["x", "y"])
    assert counts.halves.tolist() == [3]
    assert counts.comparisons.tolist() == [1.5]
    huge = PairCounts.from_pairs([1, 0], [0, 1], [2**51, 1], [2**51, 0], items=2)
    assert (huge.half_wins_first[0], huge.half_wins_second[0]) == (2**51 + 1, 2**51)


def test_counts_are_frozen_and_independent_of_what_they_came_from():
    first = np.array([0], np.int32)
    counts = PairCounts(("a", "b"), first, [1], [2], [0])
    first[0] = 7
    assert counts.first.tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        counts.half_wins_first[0] = 3
    with pytest.raises(AttributeError):
        counts.first = first
    assert pickle.loads(pickle.dumps(counts)) == counts
    assert repr(counts) == "PairCounts(1 comparisons of 1 pairs of 2 items: a, b)"


def test_input_arrays_stay_writable():
    left, halves = np.array([0, 1], np.int32), np.array([2, 0], np.int8)
    PairCounts.from_pairs(left, np.array([1, 2], np.int32), halves, items=3)
    PairCounts.from_pairs(left, [1, 2], [2, 2], [0, 0], items=3)
    assert left.flags.writeable
    assert halves.flags.writeable


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [0], [2]), "row 1: item 0 is compared with itself"),
        (([0, 1], [1, 1], [2, 2]), "row 2: item 1 is compared with itself"),
        (([0, 0], [1, 3], [2, 2]), "row 2: right must be an item's index from 0 to 2, got 3"),
        (([0, -1], [1, 0], [2, 2]), "row 2: left must be an item's index from 0 to 2, got -1"),
        (([0, 1, 2], [1, 2, 0], [2, 1, 3]), "row 3: half_wins_left must be 0, 1 or 2 for one comparison, got 3"),
        (([0], [1], [-1]), "row 1: half_wins_left must be 0, 1 or 2 for one comparison, got -1"),
        (([0], [1], [1, 1]), "equal lengths, got left 1, right 1, half_wins_left 2"),
        (([0.0], [1], [1]), "left must be whole numbers, got dtype float64"),
        (([2**40], [1], [1]), "left holds a number beyond 32 bits"),
        (([0], [1], [300]), "half_wins_left holds a number beyond 8 bits"),
        (([[0]], [1], [1]), "left must be a list of whole numbers, got 2 dimension"),
        (([0], [1], [-2], [0]), "row 1: half_wins_left must be at least 0, got -2"),
        (([0], [1], [2**53], [1]), r"at most 2\^53"),
    ],
)
def test_bad_rows_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        PairCounts.from_pairs(*columns, items=3)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((["a", "b"], [1], [0], [2], [0]), "first < second"),
        ((["a", "b"], [0, 0], [1, 1], [2, 2], [0, 0]), "given once"),
        ((["a", "b"], [0], [1], [0], [0]), "every pair must have been compared"),
        ((["a", "a"], [0], [1], [2], [0]), "items must be different"),
        ((["a", "b"], [0], [1], [-2], [4]), "must be at least 0"),
    ],
)
def test_bad_counts_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        PairCounts(*parts)


@pytest.mark.parametrize(
    ("wins", "message"),
    [
        ([[0, 1]], "square"),
        ([[0, 0.3], [1, 0]], "whole or half"),
        ([[0, -1], [1, 0]], "whole or half"),
        ([[0, np.nan], [1, 0]], "whole or half"),
        ([[1, 1], [1, 0]], "'0' is compared with itself"),
        ([[0, 2.0**52], [1, 0]], r"at most 2\^52"),
        ([["a", "b"], ["c", "d"]], "numbers"),
    ],
)
def test_bad_tables_are_refused(wins, message):
    with pytest.raises(InputError, match=message):
        PairCounts.from_dense(wins)
    with pytest.raises(InputError, match="must name the 2 rows"):
        PairCounts.from_dense([[0, 1], [1, 0]], items=["a"])
