"""Win counting and mean ranks."""

from __future__ import annotations

import numpy as np
import pytest

from rankdp import Rankings
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.rankers import simple


def test_wins_count_a_tie_as_a_half():
    counts = PairCounts.from_pairs([0, 0, 1, 0], [1, 1, 2, 2], [2, 1, 0, 1], items=["a", "b", "c", "d"])
    assert simple.wins(counts).tolist() == [2, 0.5, 1.5, 0]
    assert simple.majorities(counts).tolist() == [1.5, 0, 1.5, 0]


def test_wins_of_complete_rankings_are_borda_scores():
    generator = np.random.default_rng(1)
    rankings = Rankings.from_orders(np.array([generator.permutation(7) for _ in range(50)]))
    means = simple.mean_ranks(rankings)
    np.testing.assert_allclose(means, rankings.ranks().mean(axis=0))
    np.testing.assert_allclose(simple.mean_ranks(rankings, unlisted="left out"), means)
    np.testing.assert_allclose(simple.wins(PairCounts.from_rankings(rankings)), 50 * (7 - means))


def test_partial_rankings():
    rankings = Rankings.from_orders([["a", "b"], ["c"], ["b", "a", "c"]], items=["a", "b", "c", "d"])
    # unlisted: c and d share 3 and 4; a, b and d share 2, 3 and 4; d has 4
    assert simple.mean_ranks(rankings).tolist() == pytest.approx([6 / 3, 6 / 3, 7.5 / 3, 10.5 / 3])
    alone = simple.mean_ranks(rankings, unlisted="left out")
    assert alone[:3].tolist() == [1.5, 1.5, 2]
    assert np.isnan(alone[3])
    with pytest.raises(InputError, match="unlisted must be"):
        simple.mean_ranks(rankings, unlisted="last")


def test_mean_ranks_of_every_voter_add_up():
    generator = np.random.default_rng(2)
    orders = [generator.permutation(9)[: generator.integers(1, 10)].tolist() for _ in range(40)]
    rankings = Rankings.from_orders([[f"i{item}" for item in row] for row in orders], items=[f"i{i}" for i in range(9)])
    assert simple.mean_ranks(rankings).sum() == pytest.approx(45)
