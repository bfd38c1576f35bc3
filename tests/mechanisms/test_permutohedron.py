"""K-norm noise on the permutohedron and Borda scores with it: tiles, law, epsilon, variance, by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, generator, seeded

from rankdp.errors import InputError
from rankdp.mechanisms.ballots import permutohedron
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.permutohedron import PermutohedronNoise, dilation_of, tile_points
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy import cube_noise
from rankdp.privacy.cube_noise import draw_dilations

BALLOT, VOTER = BallotProtection("ballot"), BallotProtection("voter")
units = pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)


def all_tiles(m, t):
    """Every point of every tile: one row for each tree and each choice inside its tile."""
    codes = np.array(list(itertools.product(range(m), repeat=m - 2)), dtype=np.int64).reshape(m ** (m - 2), m - 2)
    inside = np.array(list(itertools.product(range(2 * t), repeat=m - 1)), dtype=np.int64)
    trees, points = np.repeat(codes, len(inside), axis=0), np.tile(inside, (len(codes), 1))
    return tile_points(np.full(len(trees), t), trees, points)


def lattice(m, reach):
    """Every integer vector of sum 0 with entries up to ``reach``."""
    free = np.array(list(itertools.product(range(-reach, reach + 1), repeat=m - 1)))
    points = np.column_stack([free, -free.sum(axis=1)])
    return points[np.abs(points[:, -1]) <= reach]


def half_open(m, t):
    """Z_t by its definition: x + h v strictly inside every half-space of t K, one for each set of items."""
    direction = np.array([1] * (m - 1) + [1 - m])
    return {
        tuple(x)
        for x in lattice(m, t * (m - 1)).tolist()
        if all(
            2 * m * sum(x[i] for i in chosen) + sum(direction[list(chosen)]) < 2 * m * t * size * (m - size)
            for size in range(1, m)
            for chosen in itertools.combinations(range(m), size)
        )
    }


@pytest.mark.parametrize(("m", "dilations"), [(2, 4), (3, 4), (4, 2), (5, 1)])
def test_tiles_are_disjoint_fill_the_half_open_zonotope_and_nest(m, dilations):
    inner = set()
    for t in range(1, dilations + 1):
        drawn = all_tiles(m, t)
        points = set(map(tuple, drawn.tolist()))
        assert len(points) == len(drawn) == m ** (m - 2) * (2 * t) ** (m - 1)
        assert points == half_open(m, t)
        assert inner < points
        assert set(dilation_of(np.array(list(points - inner))).tolist()) == {t}
        inner = points


def test_the_highest_edge_decides_as_heights_and_potentials_do(request):
    """The same point from potentials in long integers, for random trees of 9 items."""
    m, t, rng = 9, 2, generator(request)
    for _ in range(200):
        code = rng.integers(0, m, m - 2)
        point = tile_points(np.array([t]), code[None], np.zeros((1, m - 1), np.int64))[0]
        parents = {}
        left, rest = list(range(m)), code.tolist()
        while len(left) > 2:
            leaf = min(set(left) - set(rest))
            parents[leaf] = rest.pop(0)
            left.remove(leaf)
        parents[left[0]] = left[1]
        potentials = {m - 1: 0}
        while len(potentials) < m:
            for child, parent in parents.items():
                if parent in potentials:
                    height = 2 ** (min(child, parent) * m + max(child, parent))
                    potentials[child] = potentials[parent] + (height if child < parent else -height)
        expected = np.array([-t * (m - 1 - 2 * item) for item in range(m)])
        for i, j in itertools.combinations(range(m), 2):
            edge = np.eye(m, dtype=int)[i] - np.eye(m, dtype=int)[j]
            if parents.get(i) == j or parents.get(j) == i:
                expected += edge * (parents.get(i) != j)  # from {0..}, or from {1..} where the child is the second
            else:
                assert 2 ** (i * m + j) != potentials[i] - potentials[j]
                expected += 2 * t * edge * (2 ** (i * m + j) < potentials[i] - potentials[j])
        assert point.tolist() == expected.tolist()


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_eulerian_numbers_turn_powers_into_binomials(n):
    """Worpitzky: t^n is the sum of A(n, k) C(t + n - 1 - k, n)."""
    row = cube_noise._eulerian_numbers(n)
    assert sum(row) == math.factorial(n)
    for t in range(20):
        assert t**n == sum(number * math.comb(t + n - 1 - k, n) for k, number in enumerate(row))


@pytest.mark.parametrize(("m", "rate"), [(2, "1/3"), (4, 1), (9, 3), (40, "1/2")])
def test_the_dilation_has_its_law(m, rate, request):
    noise = PermutohedronNoise(m, rate)
    weights = [t ** (m - 1) * math.exp(-float(noise.rate) * t) for t in range(1, 40 * m)]
    assert_law(
        draw_dilations(noise.items - 1, noise.rate, 20_000, seeded(request)) - 1, np.array(weights) / sum(weights)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("m", "rate", "reach"), [(2, Fraction(1, 2), 30), (3, Fraction(1), 24), (4, Fraction(2), 15)])
def test_the_sampler_draws_the_law_of_the_least_dilation(m, rate, reach, request):
    points = lattice(m, reach)
    law = np.exp(-float(rate) * dilation_of(points)) + np.exp(-float(rate) * dilation_of(-points))
    whole = (
        2
        * m ** (m - 2)
        * sum(((2 * t) ** (m - 1) - (2 * t - 2) ** (m - 1)) * math.exp(-rate * t) for t in range(1, 400))
    )
    index = {tuple(x): cell for cell, x in enumerate(points.tolist())}
    drawn = PermutohedronNoise(m, rate).sample(40_000, seeded(request))
    assert (drawn.sum(axis=1) == 0).all()
    assert_law([index.get(tuple(x), len(points)) for x in drawn.tolist()], law / whole)


def ballot_scores(m):
    """What one ballot can add: all full ballots, and those that tie items."""
    levels = itertools.product(range(m), repeat=m)
    return np.unique([[sum(np.sign(b - a) for b in level) for a in level] for level in levels], axis=0)


def worst_log_ratio(mechanism, changes):
    """max of log P(x)/P(x + d) over outputs x around 0 and changes d of the scores."""
    rate = float(mechanism.rate)

    def log_law(points):
        return np.logaddexp(-rate * dilation_of(points), -rate * dilation_of(-points))

    points = lattice(mechanism.items, mechanism.items + 2)
    here = log_law(points)
    return max((here - log_law(points + mechanism.grid * change)).max() for change in changes)


@pytest.mark.slow
@units
@pytest.mark.parametrize(("m", "epsilon"), [(3, 1), (3, Fraction(1, 3)), (4, 1)])
def test_epsilon_over_all_neighbouring_elections(protection, m, epsilon):
    scores = ballot_scores(m)
    changes = scores if protection is VOTER else np.unique((scores[:, None] - scores).reshape(-1, m), axis=0)
    mechanism = NoisyBorda(m, protection, epsilon)
    worst = worst_log_ratio(mechanism, changes)
    assert 0.75 * epsilon < worst <= epsilon + 1e-9
    taken_for_removal = NoisyBorda(m, VOTER, epsilon)
    assert (worst_log_ratio(taken_for_removal, changes) > epsilon + 1e-9) == (protection is BALLOT)


def test_every_ballot_lies_in_the_permutohedron():
    """The corner of the l2 sensitivity, too."""
    for m in (2, 3, 4, 5):
        scores = ballot_scores(m)
        assert all(max(np.cumsum(np.sort(x)[::-1]) - np.cumsum(np.arange(m - 1, -m, -2))) == 0 for x in scores)
        assert (scores**2).sum(axis=1).max() == VOTER.borda_l2_squared(m)
        assert 4 * (scores**2).sum(axis=1).max() == BALLOT.borda_l2_squared(m)


def uncentred_scores(m):
    """Items below, 0 to m-1: what the sensitivity of centred scores does not cover."""
    return np.array(list(itertools.permutations(range(0, 2 * m, 2))))


def test_scores_that_are_not_centred_break_the_sensitivity():
    for m in (3, 4, 6):
        assert (uncentred_scores(m) ** 2).sum(axis=1).max() > VOTER.borda_l2_squared(m)


@units
@pytest.mark.parametrize("epsilon", ["0.5", "4", "60"])
@pytest.mark.parametrize("m", [2, 5, 40])
def test_gaussian_noise_has_the_deviation_that_zcdp_asks_for(protection, epsilon, m):
    mechanism = NoisyBorda(m, protection, epsilon, "1e-6")
    realised = protection.borda_l2_squared(m) * mechanism.grid**2 / (2 * mechanism.sigma**2)
    assert mechanism.rho * Fraction(9999, 10000) < realised <= mechanism.rho
    assert mechanism.guarantee.rho == float(mechanism.rho)
    assert mechanism.guarantee.delta == Fraction(1, 10**6)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_mean_square_is_a_square_of_the_dilation_plus_a_constant(m):
    squares = [Fraction(int((all_tiles(m, t) ** 2).sum()), m ** (m - 2) * (2 * t) ** (m - 1)) for t in (1, 2, 3)]
    assert squares[2] - squares[1] == Fraction(5, 3) * (squares[1] - squares[0])
    assert float(squares[1] - squares[0]) / 3 == pytest.approx(permutohedron.size(m))


@pytest.mark.slow
@units
@pytest.mark.parametrize(("m", "epsilon", "delta"), [(2, 1, 0), (3, 8, 0), (10, 1, 0), (60, "0.1", 0), (5, 2, "1e-5")])
def test_the_variance_is_what_is_drawn(protection, m, epsilon, delta, request):
    mechanism = NoisyBorda(m, protection, epsilon, delta)
    drawn = mechanism.noise(6000, seeded(request))
    squares = ((drawn - drawn.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (m - 1)
    error = squares.std() / math.sqrt(len(squares))
    assert squares.mean() == pytest.approx(mechanism.noise_variance, abs=4.5 * error)
    assert np.abs(drawn.mean(axis=0)).max() < 5 * math.sqrt(mechanism.noise_variance / len(drawn))
    assert mechanism.parameters["noise_variance"] == mechanism.noise_variance


@units
def test_less_noise_than_laplace_and_than_the_norm_that_is_not_centred(protection):
    """Joseph and Yu dilate a cylinder over K in m dimensions: the mean of t^2 is (m+1)(m+2)/eps^2."""
    for m, laplace_share, cylinder_share in ((5, 0.55, 0.72), (10, 0.54, 0.84), (20, 0.55, 0.92)):
        variance = NoisyBorda(m, protection, 1).noise_variance
        assert variance <= laplace_share * 2 * (protection.moved * (m * m // 2)) ** 2  # which is l1
        cylinder = permutohedron.size(m) / (m - 1) * (m + 1) * (m + 2) * protection.moved**2
        assert variance <= cylinder_share * cylinder


def test_500_items(request):
    mechanism = NoisyBorda(500, BALLOT, 1)
    scores = np.arange(499, -500, -2) * 1000
    noisy = mechanism.sample(scores, seeded(request))
    assert noisy.shape == (500,)
    assert noisy.sum() == 0
    assert (noisy * mechanism.grid == np.round(noisy * mechanism.grid)).all()
    assert 0.5 < ((noisy - scores) ** 2).sum() / 499 / mechanism.noise_variance < 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, BALLOT, 1), "items must be an integer from 2 to 500, got 1"),
        ((501, BALLOT, 1), "items must be an integer from 2 to 500, got 501"),
        ((3, BALLOT, 0), "epsilon must be a finite number above 0, got 0"),
        ((3, BALLOT, 1, 1), "delta must be at least 0 and below 1, got 1"),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        NoisyBorda(*arguments)
    with pytest.raises(InputError, match="epsilon is too small for 100 items"):
        PermutohedronNoise(100, "1e-13")
