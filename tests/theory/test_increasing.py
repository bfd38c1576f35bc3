"""Counts over all permutations, against listing the permutations."""

import itertools
import math

import numpy as np
import pytest
from support import longest_increasing

from rankdp.mechanisms.rankings.ulam import _Shapes
from rankdp.theory import permutations


@pytest.mark.parametrize("items", [2, 3, 4, 5, 6, 7])
def test_counts_are_those_of_the_permutations(items):
    landed, kept = np.zeros((2, items + 1, items, items))
    counts = np.zeros((items + 1,) + (items,) * 4)
    for s in itertools.permutations(range(items)):
        length = longest_increasing(s)
        landed[length, s, range(items)] += 1
        for b1, b2 in itertools.combinations(range(items), 2):
            counts[length, b1, b2, s[b1], s[b2]] += 1
            kept[length, s[b1], s[b2]] += s[b1] < s[b2]
    assert np.array_equal(permutations.tallies(items), (landed, kept))
    assert np.array_equal(permutations.pair_tallies(items), counts)


@pytest.mark.parametrize("items", [8, 10, 12])
def test_longer_permutations_are_as_many_as_tableaux_say(items):
    """Whichever value or position is looked at, the permutations by l are the squares of the tableaux by first row."""
    landed, kept = permutations.tallies(items)
    by_length = [0, *(_Shapes.of(items, first).total for first in range(1, items + 1))]
    assert sum(by_length) == math.factorial(items)
    for total in (landed.sum(axis=1), landed.sum(axis=2)):
        assert np.array_equal(total, np.tile(np.array(by_length)[:, None], (1, items)))
    assert np.array_equal(kept, kept[:, ::-1, ::-1].transpose(0, 2, 1))  # upside down


@pytest.mark.parametrize("items", [8, 10])
def test_counts_of_pairs_sum_to_those_of_single_items(items):
    landed, kept = permutations.tallies(items)
    counts = permutations.pair_tallies(items)
    for b1, b2 in itertools.combinations(range(items), 2):
        assert np.array_equal(counts[:, b1, b2].sum(axis=2), landed[:, :, b1])
        assert np.array_equal(counts[:, b1, b2].sum(axis=1), landed[:, :, b2])
    assert np.array_equal(np.triu(counts.sum(axis=(1, 2)), 1), kept)
