"""Draws: every statement is counted in them, and none contradicts another."""

import numpy as np
import pytest
from support import generator

from rankdp.inference.draws import Draws, opposite


@pytest.fixture
def draws(request):
    random = generator(request)
    centre, spread = random.normal(size=7), random.uniform(0.1, 2, 7)
    return Draws(centre + opposite(spread * random.standard_normal((1000, 7))))


def test_statements_do_not_contradict_each_other(draws):
    for level in (0.01, 0.5, 0.95):
        low, high = draws.interval(level)
        first, last = draws.rank_range(level)
        assert ((low <= draws.estimate) & (draws.estimate <= high)).all()
        assert ((first <= draws.places) & (draws.places <= last)).all()
    assert draws.best.sum() == pytest.approx(1)
    for k in range(1, 8):
        assert draws.top(k).sum() == pytest.approx(k)
        assert (draws.top(k) >= draws.top(k - 1)).all()
    for i in range(7):
        for j in range(7):
            assert draws.beats(i, j) + draws.beats(j, i) == pytest.approx(float(i != j))
            assert draws.beats(i, j) >= draws.best[i] - 1e-12 or i == j


def test_contenders_are_the_items_whose_ranks_begin_at_one(draws):
    for level in (0.5, 0.9, 0.99):
        found, first = draws.contenders(level), draws.rank_range(level)[0]
        assert found[0] == np.argmin(draws.places)
        assert set(found) == set(np.flatnonzero(first == 1)) >= set(np.flatnonzero(draws.best > (1 - level) / 2))
        assert (np.diff(draws.places[found]) > 0).all()
    assert Draws(np.tile([0.0, 3.0, 1.0], (100, 1))).contenders(0.95).tolist() == [1]


def test_quantiles_are_those_of_the_normal_law():
    values = opposite(np.random.default_rng(1).standard_normal((20_000, 2))) * [1, 2] + [0, 5]
    low, high = Draws(values).interval(0.95)
    assert low == pytest.approx([-1.96, 5 - 3.92], abs=0.06)
    assert high == pytest.approx([1.96, 5 + 3.92], abs=0.06)
    assert Draws(values).estimate == pytest.approx([0, 5])


def test_equals_are_ordered_by_lot_and_ranks_are_permutations():
    tied = Draws(np.repeat([[1.0, 1.0, 0.0, 1.0]], 4000, axis=0))
    assert (np.sort(tied.ranks, axis=1) == [1, 2, 3, 4]).all()
    assert tied.best == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3], abs=0.04)
    assert (tied.ranks == Draws(tied.values).ranks).all()  # from a public seed
