"""Counts over all words of a content, permutations among them, against listing the words."""

import itertools
import math

import numpy as np
import pytest

from rankdp.mechanisms.rankings.ulam import _Shapes
from rankdp.theory import permutations

CONTENTS = [(1, 1), (1,) * 4, (1,) * 6, (3, 4), (5, 1), (2, 1, 2), (3, 2, 2), (1, 3, 1, 2)]
contents = pytest.mark.parametrize("sizes", CONTENTS, ids=str)


def words(sizes):
    return sorted(set(itertools.permutations([letter for letter, size in enumerate(sizes) for _ in range(size)])))


def rising(word):
    """The longest non-decreasing subsequence, by trying every set of letters."""
    sets = (chosen for size in range(len(word), 0, -1) for chosen in itertools.combinations(word, size))
    return len(next(chosen for chosen in sets if list(chosen) == sorted(chosen)))


@contents
def test_counts_are_those_of_the_words(sizes):
    items, letters = sum(sizes), len(sizes)
    landed, kept = np.zeros((items + 1, items, letters)), np.zeros((items + 1, letters, letters))
    counts = np.zeros((items + 1, items, items, letters, letters))
    for word in words(sizes):
        length = rising(word)
        assert permutations.longest_rising(word) == permutations.tableau_shape(word)[0] == length
        landed[length, range(items), word] += 1
        for i, j in itertools.combinations(range(items), 2):
            counts[length, i, j, word[i], word[j]] += 1
            kept[length, word[i], word[j]] += 1
    assert np.array_equal(permutations.tallies(sizes)[0], landed)
    assert np.array_equal(permutations.tallies(sizes)[1], kept)
    assert np.array_equal(permutations.pair_tallies(sizes), counts)


@pytest.mark.parametrize("sizes", [*CONTENTS, (1,) * 10, (30, 30), (7, 6, 7), (4, 1, 5)], ids=str)
def test_words_are_as_many_as_tableaux_say(sizes):
    """At whichever position one looks, the words by l are the pairs of tableaux by first row."""
    items = sum(sizes)
    by_length = [0, *(_Shapes.of(sizes, first).total for first in range(1, items + 1))]
    assert sum(by_length) == math.factorial(items) // math.prod(map(math.factorial, sizes))
    landed, kept = permutations.tallies(sizes)
    np.testing.assert_allclose(landed.sum(axis=2), np.tile(np.array(by_length, float)[:, None], (1, items)), rtol=1e-12)
    counts = permutations.pair_tallies(sizes)
    np.testing.assert_allclose(counts.sum(axis=(1, 2)), kept, rtol=1e-12)
    np.testing.assert_allclose(counts[:, 0, 1].sum(axis=1), landed[:, 1], rtol=1e-12)
    np.testing.assert_allclose(counts[:, 0, 1].sum(axis=2), landed[:, 0], rtol=1e-12)


@pytest.mark.parametrize("sizes", [(5, 5), (3, 7), (30, 30)], ids=str)
def test_two_tiers_are_counted_by_reflection(sizes):
    """L is mu_2 plus the maximum of a walk, +1 for the first tier, -1 for the second; at least L: C(m, L) walks."""
    m = sum(sizes)
    for length in range(max(sizes), m + 1):
        assert _Shapes.of(sizes, length).total == math.comb(m, length) - math.comb(m, length + 1)
