"""Leaderboards from released numbers: ranks, intervals, top-k probabilities, what is not known, the Elo scale."""

import math

import numpy as np
import pytest
from support import generator

from rankdp.errors import InputError
from rankdp.publish.leaderboard import build, check_request
from rankdp.publish.score_errors import (
    DEVIATION,
    DRAWS,
    drawn_spreads,
    held_spreads,
    information_of,
    plausible_strengths,
    spread_chances,
)

NAMES = ("a", "b", "c", "d")


def board(scores, deviation, *, level=0.95, top=None, shift=0.0, known=True, draws=4001):
    """A leaderboard whose errors are normal quantiles, so that intervals are known in closed form."""
    from scipy.stats import norm

    scores = np.array(scores, dtype=float)
    quantiles = norm.ppf(np.linspace(0, 1, draws + 2)[1:-1])
    errors = np.outer(np.broadcast_to(deviation, len(scores)), quantiles) + np.reshape(shift, (-1, 1))
    errors[~np.broadcast_to(known, len(scores))] = math.inf
    names = tuple("abcdefghijklmn"[: len(scores)])
    return build(names, scores, errors, level=level, score_name="score", top=top, warnings=["first"], spread=1 / 3)


def test_best_first_with_intervals():
    made = board([0.0, 2.0, -1.0, 1.0], 0.1)
    assert made.items == ("b", "d", "a", "c")
    assert made.scores.tolist() == [2, 1, 0, -1]
    step = 1 / (4001 * 0.0584)  # between neighbouring quantiles at 1.96, where the normal density is 0.0584
    assert made.high - made.low == pytest.approx(np.full(4, 2 * 1.96 * 0.1), abs=2 * step * 0.1)
    assert made.ranks.tolist() == made.rank_low.tolist() == made.rank_high.tolist() == [1, 2, 3, 4]
    assert made.warnings == ("first",)


def test_a_rank_is_one_plus_the_items_surely_above():
    made = board([3.0, 2.9, 1.0, 0.0], 0.1)
    assert made.ranks.tolist() == [1, 1, 3, 4]
    assert made.rank_low.tolist() == [1, 1, 3, 4]
    assert made.rank_high.tolist() == [2, 2, 3, 4]
    assert made.warnings == ("first", "At this epsilon places 1 to 2 cannot be told apart.")
    pairs = [board(np.repeat(np.arange(n), 2), 0.1).warnings[1].split(" places ")[1] for n in (2, 3, 7)]
    assert [said.removesuffix(" cannot be told apart.") for said in pairs] == [
        "1 to 2 and 3 to 4",
        "1 to 2, 3 to 4 and 5 to 6",
        "1 to 2, 3 to 4, 5 to 6, 7 to 8, 9 to 10 and 2 more runs",
    ]


def test_ranks_by_brute_force(request):
    random = generator(request)
    for _ in range(50):
        made = board(random.normal(size=6), random.uniform(0.05, 0.6, 6))
        for i in range(6):
            assert made.rank_low[i] == 1 + sum(made.low[j] > made.high[i] for j in range(6))
            assert made.rank_high[i] == 6 - sum(made.high[j] < made.low[i] for j in range(6))
            assert made.low[i] <= made.scores[i] <= made.high[i]
            assert made.rank_low[i] <= made.rank_high[i]


def test_a_wider_level_is_a_wider_interval():
    half, nearly = board([0, 1], 0.3, level=0.5), board([0, 1], 0.3, level=0.99)
    assert half.high[0] - half.low[0] == pytest.approx(2 * 0.6745 * 0.3, rel=1e-3)
    assert nearly.high[0] - nearly.low[0] == pytest.approx(2 * 2.5758 * 0.3, rel=1e-2)


def test_intervals_are_where_the_errors_say_and_hold_the_score():
    made = board([1.0, -1.0], 0.1, shift=[-1.0, 1.0])
    assert made.low[0] == 1.0  # stretched down to the score
    assert made.high[0] == pytest.approx(2 + 0.196, rel=1e-2)


def test_top_probability_of_items_far_apart_and_of_twins():
    sure = board([5.0, 3.0, 0.0, -4.0], 0.01, top=2)
    assert sure.top_probability.tolist() == [1, 1, 0, 0]
    assert [row["in_top"] for row in sure.rows()] == [True, True, False, False]


def test_top_probabilities_sum_to_k_and_follow_the_scores(request):
    random = generator(request)
    scores = np.sort(random.normal(size=30))[::-1]
    errors = 0.3 * random.normal(size=(30, 4000))
    made = build(
        tuple(map(str, range(30))), scores, errors, level=0.9, score_name="score", top=7, warnings=[], spread=1 / 3
    )
    assert made.top_probability.sum() == pytest.approx(7)
    assert made.top_probability[0] > 0.9
    assert made.top_probability[-1] < 0.1


def test_where_noise_is_all_every_item_is_in_the_top_as_likely(request):
    """Released scores that spread no more than their noise say nothing: k/n each, and not the luck of the draw."""
    random = generator(request)
    scores, errors = 100 * random.normal(size=20), 100 * random.normal(size=(20, 4000))
    made = build(
        tuple(map(str, range(20))), scores, errors, level=0.9, score_name="score", top=5, warnings=[], spread=1 / 3
    )
    # of scores of 250 at most, at most (3/100^2) is kept: 0.08 where the truth has a deviation of 1.7, 0.05 of it, and
    # the chance of 0.25 moves by 0.32 a deviation: 0.016; about as much for a smaller spread; then 4.5 standard errors
    assert np.abs(made.top_probability - 0.25).max() < 0.03 + 4.5 * math.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.slow
def test_top_probabilities_are_calibrated(request):
    """Truths of variance 1 with noise of variance 1: of the items given 60-80%, about as many are in the top."""
    random = generator(request)
    said, found = [], []
    for _ in range(300):
        truth = random.normal(size=25)
        scores, errors = truth + random.normal(size=25), random.normal(size=(25, 1000))
        names = tuple(map(str, range(25)))
        made = build(names, scores, errors, level=0.9, score_name="score", top=8, warnings=[], spread=1 / 3)
        best = set(np.argsort(-truth)[:8].tolist())
        said.append(made.top_probability)
        found.append([int(name) in best for name in made.items])
    said, found = np.concatenate(said), np.concatenate(found)
    for low, high in [(0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01)]:
        here = (said >= low) & (said < high)
        count = here.sum()
        assert count > 100
        # four standard errors of the share, and what estimating the spread from 25 items costs
        assert found[here].mean() == pytest.approx(said[here].mean(), abs=4 * 0.5 / math.sqrt(count) + 0.05)


def test_items_of_which_nothing_is_known():
    made = board([1.0, 0.0, -1.0], 0.05, known=[True, True, False], top=1)
    assert (made.low[2], made.high[2]) == (-math.inf, math.inf)
    assert (made.rank_low[2], made.rank_high[2]) == (1, 3)
    assert made.rank_high.tolist() == [2, 3, 3]
    assert np.isfinite(made.low[:2]).all()
    assert 0 < made.top_probability[2] < 1
    assert made.top_probability.sum() == pytest.approx(1)


def test_nothing_known_of_any_item():
    made = board([1.0, 0.0], 1.0, known=False, top=1)
    assert np.isinf(made.low).all()
    assert made.top_probability == pytest.approx([0.5, 0.5], abs=0.05)


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


# -- errors ------------------------------------------------------------------------------------------------------


def laplacian(random, items):
    """A weighted Laplacian, as information matrices are."""
    weight = np.triu(random.uniform(1, 3, (items, items)), 1)
    return information_of(weight + weight.T, np.ones((items, items)))


def test_information_is_a_weighted_laplacian(request):
    random = generator(request)
    weight = np.triu(random.uniform(size=(5, 5)), 1)
    expected = np.zeros((5, 5))
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        unit = np.eye(5)[i] - np.eye(5)[j]
        expected += 2 * weight[i, j] * np.outer(unit, unit)
    assert information_of(weight + weight.T, np.full((5, 5), 2.0)) == pytest.approx(expected)


def test_plausible_strengths_are_those_of_the_normal_model(request):
    """Much is known: the mean is that of H (t - r) + z + w = q solved for t, the covariance H^+ + v (H^+)^2."""
    random = generator(request)
    matrix, noise = 400 * laplacian(random, 5), 15 * random.standard_normal((5, DRAWS))
    scores, rest = random.normal(size=5), random.normal(size=5)
    scores -= scores.mean()
    truths = plausible_strengths(scores, [rest] * 4, [matrix] * 4, noise)
    pseudo = np.linalg.pinv(matrix)
    expected = pseudo + 15**2 * pseudo @ pseudo
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / DRAWS)
    assert (np.abs(np.cov(truths) - expected) <= 5 * spread).all()
    assert truths.mean(axis=1) == pytest.approx(scores + pseudo @ rest, abs=0.02 * np.abs(scores).max())


def test_strengths_are_as_held_before_where_nothing_is_known(request):
    """Noise that drowns all: strengths of an even law, whose variance is 1/3 on average."""
    random = generator(request)
    noise = 1e4 * random.standard_normal((30, DRAWS))
    truths = plausible_strengths(np.zeros(30), [np.zeros(30)] * 100, [laplacian(random, 30)] * 100, noise)
    assert truths.var() * 30 / 29 == pytest.approx(1 / 3, rel=0.02)
    assert np.abs(truths.mean()) < 0.01


def test_a_shape_and_a_slope_of_its_own(request):
    """The best linear estimate around v/sqrt(3) for P = ((1 - c) I + 0.09 v v')/3, c a half, J not H but for luck."""
    random = generator(request)
    matrix, noise, shape = laplacian(random, 8), 6 * random.standard_normal((8, DRAWS)), np.linspace(-1, 1, 8)
    shape *= math.sqrt(0.5 * 8 / float(shape @ shape))
    slope = matrix + np.outer(shape, random.normal(size=8))
    slope -= slope.mean(axis=0)
    scores, held = 0.3 * shape, (0.5 * np.eye(8) + 0.3**2 * np.outer(shape, shape)) / 3
    middle = shape / math.sqrt(3)
    options = {"slopes": [slope] * 4, "shapes": [shape] * 4, "spreads": np.full(4, 1 / 3)}
    truths = plausible_strengths(scores, [np.zeros(8)] * 4, [matrix] * 4, noise, **options)
    gain = held @ slope.T @ np.linalg.inv(slope @ held @ slope.T + matrix + np.diag(noise.var(axis=1)))
    left = held - gain @ slope @ held
    centred = np.eye(8) - 1 / 8
    expected = centred @ (middle + gain @ slope @ (scores - middle))
    assert truths.mean(axis=1) == pytest.approx(expected, abs=5 * math.sqrt(left.max() / DRAWS))
    assert np.cov(truths) == pytest.approx(centred @ left @ centred, abs=8 * left.max() / math.sqrt(DRAWS))


@pytest.mark.parametrize("wide", [0.5, 1.0, 3.0])
def test_the_spread_of_strengths_is_found(wide, request):
    """200 items of which much is known; with noise as large as the strengths it is between that and what was held."""
    random, medians = generator(request), []
    truth, known = wide * random.uniform(-1, 1, 200), np.full(200, 30.0)
    found = truth + random.normal(size=200) / math.sqrt(30)
    for noise in (0.0, 30 * wide / math.sqrt(3)):
        rest = noise * random.standard_normal(200)
        chances = held_spreads(DEVIATION) + spread_chances(found, rest, known, known, np.full(200, noise**2), 1.0)
        medians.append(math.log(np.median(drawn_spreads(chances, 51, random)) * 3))
    assert medians[0] == pytest.approx(2 * math.log(wide), abs=0.3)
    assert abs(medians[1]) <= abs(medians[0]) + 0.3
    assert medians[1] * medians[0] >= 0 or wide == 1


def test_strengths_of_a_disconnected_design(request):
    """Of what is outside the largest part nothing is known."""
    random = generator(request)
    matrix = np.zeros((6, 6))
    matrix[np.ix_([0, 2, 4], [0, 2, 4])] = laplacian(random, 3)
    matrix[np.ix_([1, 3], [1, 3])] = [[1, -1], [-1, 1]]
    truths = plausible_strengths(np.zeros(6), [np.zeros(6)], [matrix], np.zeros((6, 100)))
    assert np.isfinite(truths[[0, 2, 4]]).all()
    assert np.isnan(truths[[1, 3, 5]]).all()
    assert np.isnan(plausible_strengths(np.zeros(3), [np.zeros(3)], [np.zeros((3, 3))], np.zeros((3, 100)))).all()


def test_a_long_list_uses_the_diagonal():
    truths = plausible_strengths(np.zeros(3), [np.zeros(3)], [np.array([400.0, 0.0, 100.0])], np.zeros((3, DRAWS)))
    assert np.isnan(truths[1]).all()
    assert (truths[0] - truths[2]).var() == pytest.approx(1 / 400 + 1 / 100, rel=0.15)
