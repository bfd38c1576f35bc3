"""Counts over all permutations by their longest increasing subsequence, against listing them."""

import itertools
import math

import numpy as np
import pytest

from rankdp.mechanisms.rankings.ulam import _Shapes
from rankdp.theory import permutations


def rising(s):
    """The longest increasing subsequence, by trying every set of letters."""
    sets = (chosen for size in range(len(s), 0, -1) for chosen in itertools.combinations(s, size))
    return len(next(chosen for chosen in sets if list(chosen) == sorted(chosen)))


@pytest.mark.parametrize("items", [2, 4, 6])
def test_counts_are_those_of_the_permutations(items):
    landed, kept = np.zeros((items + 1, items, items)), np.zeros((items + 1, items, items))
    counts = np.zeros((items + 1, items, items, items, items))
    for s in itertools.permutations(range(items)):
        length = rising(s)
        assert permutations.longest_rising(s) == permutations.tableau_shape(s)[0] == length
        landed[length, range(items), s] += 1
        for i, j in itertools.combinations(range(items), 2):
            counts[length, i, j, s[i], s[j]] += 1
            kept[length, s[i], s[j]] += 1
    assert np.array_equal(permutations.tallies(items)[0], landed)
    assert np.array_equal(permutations.tallies(items)[1], kept)
    assert np.array_equal(permutations.pair_tallies(items), counts)


@pytest.mark.parametrize("items", [2, 5, 10])
def test_permutations_are_as_many_as_tableaux_say(items):
    """At whichever position one looks, the permutations by l are the pairs of tableaux by first row."""
    by_length = [0, *(_Shapes.of(items, first).total for first in range(1, items + 1))]
    assert sum(by_length) == math.factorial(items)
    landed, kept = permutations.tallies(items)
    np.testing.assert_allclose(landed.sum(axis=2), np.tile(np.array(by_length, float)[:, None], (1, items)), rtol=1e-12)
    counts = permutations.pair_tallies(items)
    np.testing.assert_allclose(counts.sum(axis=(1, 2)), kept, rtol=1e-12)
    np.testing.assert_allclose(counts[:, 0, 1].sum(axis=1), landed[:, 1], rtol=1e-12)
    np.testing.assert_allclose(counts[:, 0, 1].sum(axis=2), landed[:, 0], rtol=1e-12)
