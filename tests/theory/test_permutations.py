"""Permutations of a few items, against plain loops."""

import itertools

import numpy as np
import pytest
from support import increasing_counts, longest_increasing

from rankdp.theory import permutations

sizes = pytest.mark.parametrize("items", [2, 3, 4, 5])


@sizes
def test_places_and_neighbours(items):
    listed = list(itertools.permutations(range(items)))
    assert permutations.all_permutations(items).tolist() == [list(s) for s in listed]
    shuffled = np.random.default_rng(items).permutation(len(listed))
    assert permutations.places(np.array(listed)[shuffled]).tolist() == shuffled.tolist()
    table = permutations.neighbour_places(items)
    assert table.shape == (len(listed), (items - 1) ** 2)
    for s, others in zip(listed, table.tolist(), strict=True):
        moved = {tuple(int(c[value]) for value in s) for c in permutations.moves(items)}
        assert {listed[other] for other in others} == moved
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


@sizes
def test_what_increases(items):
    for s in itertools.permutations(range(items)):
        assert permutations.longest_rising(s) == longest_increasing(s)
        assert permutations.increasing_subsequences(s) == increasing_counts(s)
        shape = permutations.tableau_shape(s)
        assert sum(shape) == items
        assert list(shape) == sorted(shape, reverse=True)
        assert shape[0] == longest_increasing(s)
        assert len(shape) == longest_increasing(s[::-1])  # Schensted: the longest decreasing one


def test_concordance():
    assert permutations.concordance(np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])).tolist() == pytest.approx(
        [1, 0, 2 / 3]
    )
