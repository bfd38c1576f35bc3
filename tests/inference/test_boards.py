"""The posterior of strengths: against its formulas, a sampler of the exact posterior, and votes drawn anew."""

import numpy as np
import pytest
from scipy.special import expit
from support import generator
from threadpoolctl import threadpool_info, threadpool_limits

from rankdp.inference.boards import Look, by_table, by_wins, laplacian, mode, strengths
from rankdp.inference.degrees import Design, expected_design, hidden_design, likely_degrees
from rankdp.inference.exchangeable import exchangeable
from rankdp.inference.normal import normal_draws, posterior


def votes(random, truth, comparisons, weights=None):
    """Wins of the row's item over the column's."""
    items = len(truth)
    pairs = np.triu(np.ones((items, items)) if weights is None else weights, 1)
    met = random.multinomial(comparisons, (pairs / pairs.sum()).ravel()).reshape(items, items)
    won = random.binomial(met, expit(truth[:, None] - truth))
    return (won + (met - won).T).astype(float)


def residual_weights(start):
    """What a win of the row's item over the column's adds to a residual at these strengths."""
    return np.minimum(1, np.exp(start[None, :] - start[:, None])) / 2


def covered(draws, truth, level=0.95):
    low, high = draws.interval(level)
    return ((low <= truth) & (truth <= high)).mean()


def test_a_linear_model_has_its_textbook_posterior(request):
    random = generator(request)
    slope, y = random.normal(size=(6, 3)), random.normal(size=6)
    spread, prior = np.diag(random.uniform(0.5, 2, 6)), np.array([0.5, 1.0, 3.0])
    theta, pull, precision = posterior(lambda t: (y - slope @ t, slope, spread.copy()), prior)
    inverse = np.linalg.inv(spread)
    exact = slope.T @ inverse @ slope
    assert precision == pytest.approx(exact, rel=1e-6)
    assert pull == pytest.approx(slope.T @ inverse @ y, rel=1e-6)
    assert theta == pytest.approx(np.linalg.solve(exact + np.diag(1 / prior**2), slope.T @ inverse @ y), abs=1e-6)
    drawn = normal_draws(theta, precision, prior)
    assert drawn.mean(axis=0) == pytest.approx(theta)
    assert np.cov(drawn.T) == pytest.approx(np.linalg.inv(exact + np.diag(1 / prior**2)), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("look", ["wins", "residuals"])
def test_slopes_and_covariances_are_those_of_simulated_votes(look, request):
    """E y, its slope and its covariance for two looks at the same votes, the design hidden."""
    from rankdp.inference.boards import _linear

    random, truth, start = generator(request), np.array([0.8, 0.1, -0.4, -0.5]), np.array([0.3, 0.3, 0.0, -0.6])
    weights = np.full((4, 4), 0.5) if look == "wins" else residual_weights(start)
    met = expected_design(np.array([60.0, 40.0, 50.0, 90.0]))
    looks = [Look(np.zeros(4), weights, 0.0), Look(np.zeros(4), np.full((4, 4), 0.5), 0.0)]
    off, slope, spread = _linear(lambda _: looks, Design(met, np.ones((4, 1))))(truth)
    drawn = []
    for _ in range(6000):
        played = np.triu(random.poisson(met), 1)
        won = random.binomial(played, expit(truth[:, None] - truth))
        wins = won + (played - won).T
        drawn.append(np.concatenate([(wins * u - (wins * u).T).sum(axis=1) for u in (weights, np.full((4, 4), 0.5))]))
    assert np.mean(drawn, axis=0) == pytest.approx(-off, abs=0.3)
    assert np.cov(np.transpose(drawn)) == pytest.approx(spread, abs=0.06 * spread.max())
    nearby = truth + np.array([1e-5, 0, 0, 0])
    moved = (off - _linear(lambda _: looks, Design(met, np.ones((4, 1))))(nearby)[0]) / 1e-5
    assert moved == pytest.approx(slope[:, 0], abs=1e-3)


def test_residuals_have_mean_zero_where_their_strengths_are_right(request):
    truth = generator(request).normal(size=6)
    wins = expit(truth[:, None] - truth) * residual_weights(truth)
    assert wins == pytest.approx(wins.T)


@pytest.mark.slow
def test_the_normal_posterior_is_near_the_exact_one(request):
    """Few votes, noisy wins: against a random walk over the posterior without approximation."""
    random, truth = generator(request), np.array([1.0, 0.2, -0.3, -0.9])
    wins = votes(random, truth, 400)
    met, noise = wins + wins.T, 8.0
    released = wins.sum(axis=1) + random.normal(0, np.sqrt(noise), 4)
    draws = by_wins(released, met, noise)

    def log_density(t):
        chance = expit(t[:, None] - t)
        spread = laplacian(met * chance * (1 - chance)) + noise * np.eye(4)
        off = released - (met * chance).sum(axis=1)
        return -off @ np.linalg.solve(spread, off) / 2 - np.linalg.slogdet(spread)[1] / 2 - (t @ t) / 8

    walk, point, here = [], truth.copy(), log_density(truth)
    for step in range(30_000):
        tried = point + 0.2 * random.standard_normal(4)
        there = log_density(tried)
        if np.log(random.random()) < there - here:
            point, here = tried, there
        if step > 2000:
            walk.append(point - point.mean())
    assert draws.estimate == pytest.approx(np.mean(walk, axis=0), abs=0.08)
    assert draws.values.std(axis=0) == pytest.approx(np.std(walk, axis=0), rel=0.15)


def test_without_noise_the_looks_agree_with_maximum_likelihood(request):
    """A table, wins and residuals of many votes have the same estimate."""
    random, truth = generator(request), np.linspace(-1, 1, 6)
    wins = votes(random, truth, 20_000)
    met = wins + wins.T
    by = by_wins(wins.sum(axis=1), met, 1e-6).estimate
    assert by_table(wins, 1e-6).estimate == pytest.approx(by, abs=0.01)
    weights = residual_weights(by)
    look = Look((wins * weights - (wins * weights).T).sum(axis=1), weights, 1e-6)
    assert strengths(lambda _: [look], Design(met, np.ones((6, 1)))).estimate == pytest.approx(by, abs=0.05)
    assert mode([look], Design(met, np.ones((6, 1)))) == pytest.approx(by, abs=0.05)


def test_a_second_look_repairs_a_wrong_design(request):
    """Degrees of three quarters of the size: the first look alone is too wide, and each further one errs by less."""
    random, truth = generator(request), np.linspace(-1, 1, 10)
    wins = votes(random, truth, 200_000)
    wrong = Design(0.75 * (wins + wins.T), np.ones((10, 1)))
    half = np.full((10, 10), 0.5)
    first = Look((wins * half - (wins * half).T).sum(axis=1), half, 100.0)
    start = mode([first], wrong)
    assert np.ptp(start) > 1.25 * np.ptp(truth)
    for _ in range(3):
        weights = residual_weights(start)
        second = Look((wins * weights - (wins * weights).T).sum(axis=1), weights, 100.0)
        start = mode([second], wrong)
    assert start == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("prior", [0.5, 2.0, 5.0])
def test_an_item_nobody_compared_has_the_prior(prior, request):
    random = generator(request)
    wins = votes(random, np.array([1.0, 0.0, -1.0]), 500)
    wins = np.pad(wins, (0, 1))
    draws = by_wins(wins.sum(axis=1) + random.normal(0, 3, 4), wins + wins.T, 9.0, prior)
    assert draws.places[3] > 1
    low, high = draws.interval(0.95)
    assert (high - low)[3] / 2 == pytest.approx(1.96 * prior * np.sqrt(4 / 3), rel=0.15)  # beside three others


@pytest.mark.parametrize("met", [{(1, 2): 50}, {(1, 2): 6, (2, 3): 900, (3, 4): 500}])
def test_an_item_nobody_compared_never_leads(met, request):
    """A public design and much noise, which may tell of more wins, or of fewer, than there were comparisons."""
    random, table = generator(request), np.zeros((6, 6))
    for (one, other), times in met.items():
        table[one, other] = table[other, one] = times / 2
    for _ in range(20):
        draws = by_wins(table.sum(axis=1) + random.laplace(0, 4, 6), table + table.T, 32.0)
        assert draws.places[0] > 1


@pytest.mark.parametrize("prior", [0.01, 0.05, 0.2])
def test_votes_far_from_a_narrow_prior_still_have_draws(prior):
    """Their probability under the prior is too small for a float; it was 0, and every score NaN."""
    draws = by_table(np.array([[0.0, 1e10], [0.0, 0.0]]), 8.0, prior)
    low, high = draws.interval(0.95)
    assert (low < draws.estimate).all()
    assert (draws.estimate < high).all()
    assert low[0] > 10 * prior


def test_draws_are_made_again(request):
    wins = votes(generator(request), np.linspace(-1, 1, 5), 300)
    one, two = (by_table(wins, 4.0).values for _ in range(2))
    assert (one == two).all()


def test_few_votes_are_known_from_one_side(request):
    """An item that lost everything: against the exact posterior on a grid, all other strengths known."""
    random = generator(request)
    wins = np.zeros((6, 6))
    wins[:5, :5] = 4000 * (1 - np.eye(5))
    met = wins + wins.T
    met[5, :5] = met[:5, 5] = 2.0
    noise = 4.0
    released = wins.sum(axis=1) + np.array([2.0, 2, 2, 2, 2, 0]) + random.normal(0, 0.1, 6)
    draws = by_wins(released, met, noise)
    grid = np.linspace(-12, 8, 4001)
    off = released[5] - 10 * expit(grid)
    logs = -(grid**2) / 8 - off**2 / (noise + 10 * expit(draws.estimate[5]) * expit(-draws.estimate[5])) / 2
    law = np.cumsum(np.exp(logs)) / np.exp(logs).sum()
    low, high = np.interp([0.025, 0.975], law, grid)
    assert [end[5] for end in draws.interval(0.95)] == pytest.approx([low, high], abs=0.35)
    middle = draws.estimate[5]
    assert middle - low > 1.1 * (high - middle)  # which no normal law has


def test_an_item_that_may_never_have_been_compared_keeps_the_prior():
    """A hidden degree around 0: what its sums say is worth little, whatever the expected degree."""
    degrees = np.array([400.0, 400, 400, 400, 40])
    known = np.ones((5, 1))
    hidden = np.ones((5, 3))
    hidden[4] = [0.0, 0.5, 2.5]
    look = Look(np.zeros(5), np.full((5, 5), 0.5), 1.0)
    sure, doubtful = (
        strengths(lambda _: [look], Design(expected_design(degrees), likely)).interval(0.95)
        for likely in (known, hidden)
    )
    assert (doubtful[1] - doubtful[0])[4] > 2 * (sure[1] - sure[0])[4]
    assert (doubtful[1] - doubtful[0])[0] == pytest.approx((sure[1] - sure[0])[0], rel=0.25)


def test_a_table_doubts_an_item_whose_cells_may_be_noise(request, monkeypatch):
    """Beside a table whose degrees are taken for certain: nearer to the prior; the items that met are as they were."""
    random = generator(request)
    table = np.pad(votes(random, np.array([0.8, 0.2, -0.3, -0.7]), 400), (0, 1))
    table[4, :4] += 3.0  # noise
    doubtful = by_table(table, 8.0)
    monkeypatch.setattr("rankdp.inference.boards.Design", lambda met, degrees=None: Design(met))
    sure = by_table(table, 8.0)
    assert 0 < doubtful.estimate[4] < 0.95 * sure.estimate[4]
    assert doubtful.values.std(axis=0)[4] > 1.02 * sure.values.std(axis=0)[4]
    assert doubtful.values.std(axis=0)[:4] == pytest.approx(sure.values.std(axis=0)[:4], rel=0.05)


# -- the spread --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_integrated_spread_is_found(request):
    random = generator(request)
    for true in (0.2, 1.0, 3.0):
        z = true * random.standard_normal(300) + 0.3 * random.standard_normal(300)
        drawn, spread = exchangeable(z / 0.09, np.eye(300) / 0.09, 1.0)
        assert drawn == pytest.approx(exchangeable(z / 0.09, np.full(300, 1 / 0.09), 1.0)[0])  # the diagonal alone
        assert spread == pytest.approx(true, rel=0.2)
        kept = true**2 / (true**2 + 0.09)
        assert drawn.mean(axis=0) == pytest.approx(kept * z, abs=0.15)
        assert drawn.std(axis=0).mean() == pytest.approx(np.sqrt(kept) * 0.3, rel=0.15)


def test_where_noise_is_all_everything_is_in_the_middle(request):
    z = 100 * generator(request).standard_normal(30)
    drawn, spread = exchangeable(z / 1e4, np.eye(30) / 1e4, 1.0)
    assert spread < 5
    assert np.abs(drawn.mean(axis=0)).max() < 2


# -- degrees -----------------------------------------------------------------------------------------------------


def test_degrees_have_their_posterior_under_a_flat_prior():
    """In closed form for Laplace noise of scale b; far from 0 a noisy degree is as it is."""
    b, noisy = 40.0, np.array([-300.0, 0.0, 30.0, 4000.0])
    z = np.maximum(noisy, 0) / b
    exact = np.where(noisy > 0, noisy + b * np.exp(-z) * (1 + z) / (2 - np.exp(-z)), b)
    likely = likely_degrees(noisy, 2 * b**2)
    mean = likely.mean(axis=1)
    assert mean == pytest.approx(exact, rel=0.02)
    assert likely.var(axis=1)[[0, 3]] == pytest.approx([b**2, 2 * b**2], rel=0.12)
    likely = likely_degrees(np.array([0.0, 4000.0]), 100.0, gaussian=True)
    mean = likely.mean(axis=1)
    assert mean == pytest.approx([10 * np.sqrt(2 / np.pi), 4000], rel=0.02)
    assert likely.var(axis=1) == pytest.approx([100 * (1 - 2 / np.pi), 100], rel=0.06)


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e5, 1e10])
def test_any_noise_has_degrees(noise):
    noisy = noise * np.array([-0.02, 0.14, 0.2, -1.1, -1.9, -0.8]) + 2
    for total in (None, 12.0, 0.0):
        design = hidden_design(noisy, noise**2, total=total)
        assert np.isfinite(design.met).all()
        assert np.isfinite(design.doubt).all()
        assert (design.degrees >= 0).all()
        assert (design.met >= 0).all()
        if total:
            assert design.met.sum() == pytest.approx(12, rel=0.1)


def test_degrees_make_a_design(request):
    degrees = generator(request).uniform(1, 50, 9)
    expected = expected_design(degrees)
    assert expected.sum(axis=1) == pytest.approx(degrees, rel=1e-4)
    assert (expected == expected.T).all()
    assert expected_design(np.full(9, 16.0)) == pytest.approx(2 * (1 - np.eye(9)), rel=1e-4)
    assert np.isfinite(expected_design(np.array([100.0, 1, 1, 1]))).all()  # more than the others have together


def test_linear_algebra_runs_on_one_thread_and_others_get_theirs_back():
    before, seen = [one["num_threads"] for one in threadpool_info()], []

    def looks(_):
        seen.append({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
        return [Look(np.zeros(3), np.full((3, 3), 0.5), 1.0)]

    with threadpool_limits(2, user_api="blas"):
        strengths(looks, Design(1 - np.eye(3)))
        assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {2}
    assert seen[0] == {1}
    assert [one["num_threads"] for one in threadpool_info()] == before
