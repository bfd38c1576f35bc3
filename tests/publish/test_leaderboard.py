"""Leaderboards from draws of the truth: order, intervals, ranks, the top, and what cannot be told apart."""

import math

import numpy as np
import pytest
from support import generator

from rankdp.errors import InputError
from rankdp.inference.draws import Draws, opposite
from rankdp.publish.leaderboard import build, check_request, without_intervals


def board(scores, deviation, *, level=0.95, top=None, seed=1):
    scores = np.array(scores, dtype=float)
    noise = np.random.default_rng(seed).standard_normal((2000, len(scores))) * deviation
    names = tuple("abcdefghijklmnopqrst"[: len(scores)])
    return build(names, Draws(scores + opposite(noise)), level=level, score_name="score", top=top, warnings=["first"])


def test_best_first_with_intervals():
    made = board([0.0, 2.0, -1.0, 1.0], 0.1)
    assert made.items == ("b", "d", "a", "c")
    assert made.scores == pytest.approx([2, 1, 0, -1])
    assert made.high - made.low == pytest.approx(np.full(4, 2 * 1.96 * 0.1), rel=0.06)
    assert made.ranks.tolist() == made.rank_low.tolist() == made.rank_high.tolist() == [1, 2, 3, 4]
    assert made.best_probability.tolist() == [1, 0, 0, 0]
    assert made.headline() == "b ranks first (probability over 99%)."
    assert made.warnings == ("first",)


def test_items_that_cannot_be_told_apart():
    made = board([3.0, 2.95, 1.0, 0.0], 0.1)
    assert made.rank_low.tolist() == [1, 1, 3, 4]
    assert made.rank_high.tolist() == [2, 2, 3, 4]
    assert made.headline().startswith("a is ahead (probability 6")
    assert made.headline().endswith("%), but cannot be told apart from b.")
    assert made.warnings == ("first",)
    assert "but any of the 20 items may be first." in board(np.zeros(20), 1.0, level=0.99).headline()


def test_points_lie_inside_at_every_level(request):
    random = generator(request)
    for level in (0.001, 0.5, 0.95, 0.999):
        made = board(random.normal(size=8), random.uniform(0.05, 2, 8), level=level, top=3)
        assert (made.low <= made.scores).all()
        assert (made.scores <= made.high).all()
        assert (made.rank_low <= made.ranks).all()
        assert (made.ranks <= made.rank_high).all()
        assert made.top_probability.sum() == pytest.approx(3)
        assert made.best_probability.sum() == pytest.approx(1)
        assert (made.best_probability <= made.top_probability).all()


def test_top():
    sure = board([5.0, 3.0, 0.0, -4.0], 0.01, top=2)
    assert sure.top_probability.tolist() == [1, 1, 0, 0]
    assert [row["in_top"] for row in sure.rows()] == [True, True, False, False]
    assert [row.cells for row in sure.results().rows] == [("over 99%",), ("over 99%",), ("below 1%",), ("below 1%",)]


def test_without_intervals():
    made = without_intervals("abc", np.array([0.0, 2.0, 1.0]), level=0.9, score_name="score", top=1, warnings=["why"])
    assert made.items == ("b", "c", "a")
    assert np.isnan(made.low).all()
    assert (made.rank_low.tolist(), made.rank_high.tolist()) == ([1, 1, 1], [3, 3, 3])
    assert made.warnings == ("why",)
    assert [row.ranks for row in made.results().rows] == [(1, 1), (2, 2), (3, 3)]  # places, for want of ranges
    assert [row.cells for row in made.results().rows] == [("yes",), ("no",), ("no",)]
    assert "interval" not in made.results().html()
    assert made.headline() == "b has the highest score."


def test_elo():
    made = board([0.0, math.log(10)], 0.1)
    elo = made.as_elo()
    assert elo.score_name == "elo"
    assert elo.scores.tolist() == pytest.approx([1400, 1000])
    assert elo.high - elo.low == pytest.approx((made.high - made.low) * 400 / math.log(10))
    assert elo.ranks.tolist() == made.ranks.tolist()


@pytest.mark.parametrize(
    ("items", "level", "top", "sentence"),
    [
        (1, 0.95, None, "a leaderboard needs at least 2 items, got 1"),
        (3, 0, None, "level must be a number above 0 and below 1, got 0"),
        (3, 1.0, None, "level must be a number above 0 and below 1, got 1.0"),
        (3, math.nan, None, "level must be a number above 0 and below 1, got nan"),
        (3, "high", None, "level must be a number above 0 and below 1, got 'high'"),
        (3, 0.95, 0, "top must be an integer from 1 to 3, got 0"),
        (3, 0.95, 4, "top must be an integer from 1 to 3, got 4"),
        (3, 0.95, 1.5, "top must be an integer from 1 to 3, got 1.5"),
        (3, 0.95, True, "top must be an integer from 1 to 3, got True"),
    ],
)
def test_refusals(items, level, top, sentence):
    with pytest.raises(InputError) as refusal:
        check_request(items, level, top)
    assert str(refusal.value) == sentence
