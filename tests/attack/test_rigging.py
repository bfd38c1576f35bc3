"""Rigging: the number of votes is the least that does it, accounts follow from the bound, and epsilon sets a floor."""

import math

import numpy as np
import pytest
from support import generator

from rankdp.attack import least_accounts, rigging
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.rankers.bradley_terry import fit


@pytest.fixture
def counts(request):
    random, truth = generator(request), np.linspace(1, -1, 6)
    first, second = np.triu_indices(6, 1)
    won = random.binomial(60, 1 / (1 + np.exp(truth[second] - truth[first])))
    return PairCounts(tuple("abcdef"), first, second, 2 * won, 2 * (60 - won))


def leads(counts, item, above, votes):
    more = counts.dense()
    more[item, above] += votes
    theta = fit(PairCounts.from_dense(more), ridge=1.0).theta
    return theta[item] > theta[above]


@pytest.mark.slow
def test_the_votes_are_the_least_that_change_places(counts):
    found = rigging(counts)
    place = {name: number for number, name in enumerate(counts.items)}
    assert found.comparisons == 15 * 60
    for (above, below), votes in zip(zip(found.items, found.items[1:], strict=False), found.votes, strict=True):
        assert leads(counts, place[below], place[above], int(votes))
        assert votes == 0 or not leads(counts, place[below], place[above], int(votes) - 1)


def test_accounts_follow_from_the_bound(counts):
    found = rigging(counts)
    assert (found.accounts(1) == found.votes).all()
    assert (found.accounts(10) == np.ceil(found.votes / 10)).all()
    assert f"{int(np.sort(found.votes)[2]):,} invented votes" in found.explain()
    with pytest.raises(InputError, match="max_per_voter must be an integer of at least 1, got 0"):
        found.accounts(0)


def test_more_votes_are_harder_to_rig(counts):
    larger = PairCounts(
        *(getattr(counts, name) for name in ("items", "first", "second")),
        10 * counts.half_wins_first,
        10 * counts.half_wins_second,
    )
    assert (rigging(larger).votes > 4 * rigging(counts).votes).all()


@pytest.mark.parametrize(
    ("before", "after", "epsilon", "least"), [(0.05, 0.95, 1, 3), (0.05, 0.95, 0.1, 30), (0.5, 0.6, 1, 1)]
)
def test_epsilon_sets_a_floor(before, after, epsilon, least):
    """Fewer accounts could not: the chance, or that of the opposite, would have to change by more than e^(a eps)."""
    assert least_accounts(before, after, epsilon) == least
    assert (
        math.exp((least - 1) * epsilon) < max(after / before, (1 - before) / (1 - after)) <= math.exp(least * epsilon)
    )


def test_the_picture_has_a_line_for_each_bound(counts):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    rigging(counts).draw(axes, (1, 5))
    assert [line.get_label() for line in axes.lines][:2] == ["voter, c = 1", "voter, c = 5"]
    assert axes.lines[0].get_ydata().tolist() == rigging(counts).accounts(1).tolist()
