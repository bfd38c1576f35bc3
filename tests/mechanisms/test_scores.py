"""What noise on scores draws: the samplers' laws, balls, the grid, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from score_cases import DRAWS, EXAMPLES, DoubleRate, built
from support import LEVEL, assert_law, seeded

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS, score_mechanism
from rankdp.mechanisms.scores.grid import Grid, fitting_steps
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import ONE_SCORE

pytestmark = pytest.mark.slow

# -- the samplers draw the audited laws ----------------------------------------------------------------------------

LAWS = [
    *((noise, asked) for noise, asked in EXAMPLES.items() if noise != "joint-staircase"),  # test_joint_staircase
    ("generalized-normal", {"epsilon": 2, "p": "0.3"}),
    ("generalized-normal", {"epsilon": 1, "p": "1.5", "delta": "0.01"}),
    ("generalized-normal", {"epsilon": 1, "p": 3, "delta": "0.01"}),
    ("staircase", {"epsilon": 3, "gamma": 0}),
    ("staircase", {"epsilon": "0.5", "gamma": 1}),
    ("laplace", {"epsilon": 9}),
]


@pytest.mark.parametrize(("noise", "asked"), LAWS, ids=str)
@pytest.mark.parametrize("steps", [1, 4])
def test_the_sampler_draws_the_law(noise, asked, steps, request):
    mechanism = built(noise, steps, **asked)
    cells = np.arange(2 * math.ceil(60 * mechanism.deviation) + 120)
    law = np.exp(mechanism.log_prob(np.where(cells % 2, cells // 2 + 1, -(cells // 2))))  # 0, 1, -1, 2, -2, …
    assert law.sum() == pytest.approx(1, abs=2e-4)  # all but the far tail of p = 0.3
    drawn = mechanism.noise(DRAWS, seeded(request))
    assert_law(np.where(drawn > 0, 2 * drawn - 1, -2 * drawn), law)


@pytest.mark.parametrize(("noise", "asked"), LAWS, ids=str)
def test_log_prob_is_the_audited_exponent(noise, asked):
    mechanism = built(noise, 4, **asked)
    reach = [0, 1, 2, 3, 4, 5, 9, -3, -4, -8]
    logs = mechanism.log_prob(reach)
    exponents = [float(mechanism.exponent(j, 100)[0]) for j in reach]
    assert logs[0] - logs == pytest.approx(np.array(exponents) - exponents[0], abs=1e-9)
    for j in reach:
        low, high = mechanism.exponent(j, 100)
        assert 0 <= high - low <= Fraction(1, 1 << 100)
        assert mechanism.exponent(-j, 100) == (low, high)


def test_the_chi_squared_catches_half_the_noise(request):
    honest = built("generalized-normal", 8, epsilon=1, p="0.5")
    mutant = DoubleRate(honest.grid, honest.asked)
    law = np.exp(honest.log_prob(np.arange(-2000, 2001)))
    with pytest.raises(AssertionError, match="p = "):
        assert_law(mutant.noise(4000, seeded(request)) + 2000, law)


@pytest.mark.parametrize("p", ["0.5", "1", "3"])
def test_generalized_normal_on_a_fine_grid_is_the_continuous_law(p, request):
    delta = "1e-5" if Fraction(p) > 1 else 0
    mechanism = built("generalized-normal", epsilon=2, p=p, delta=delta)
    noise = mechanism.sample(np.full(DRAWS, 0.25), seeded(request)) - 0.25
    shape = float(Fraction(p))  # up to 1, (33) says eps = (l/a)^p
    a = 2 ** (-1 / shape) if shape <= 1 else float(mechanism.law.scale) / mechanism.grid.steps
    law = stats.gennorm(shape, scale=a)
    assert stats.kstest(noise, law.cdf).pvalue > LEVEL
    assert mechanism.standard_deviation == pytest.approx(law.std(), rel=1e-4)


def staircase_cdf(epsilon, gamma):
    """The distribution function of continuous staircase noise of sensitivity 1."""
    b = math.exp(-epsilon)
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))

    def upper(x):
        stairs, rest = np.divmod(x, 1)
        part = np.minimum(rest, gamma) + b * np.maximum(rest - gamma, 0)
        return height * ((gamma + b * (1 - gamma)) * (1 - b**stairs) / (1 - b) + b**stairs * part)

    return lambda x: 0.5 + np.sign(x) * upper(np.abs(x))


def test_fine_grids_are_the_continuous_laws(request):
    bits = seeded(request)
    gaussian = built("gaussian", epsilon=1, delta="1e-6")
    for mechanism, cdf in [
        (built("laplace", epsilon=3), stats.laplace(scale=1 / 3).cdf),
        (gaussian, stats.norm(scale=gaussian.standard_deviation).cdf),
        (built("staircase", epsilon=1), staircase_cdf(1, 1 / (1 + math.exp(0.5)))),
        (built("staircase", epsilon=4, gamma="0.3"), staircase_cdf(4, 0.3)),
        (built("ball", delta="0.05", count=DRAWS), stats.uniform(-10, 20).cdf),
    ]:
        noise = mechanism.sample(np.full(DRAWS, 0.5), bits) - 0.5
        assert stats.kstest(noise, cdf).pvalue > LEVEL
        assert noise.std() == pytest.approx(mechanism.standard_deviation, rel=0.05)


@pytest.mark.parametrize("noise", ["laplace", "staircase", "generalized-normal"])
@pytest.mark.parametrize("epsilon", ["1e-8", "25", "1000"])
def test_extreme_epsilons(noise, epsilon, request):
    asked = {"p": "0.9"} if noise == "generalized-normal" else {}
    mechanism = built(noise, epsilon=epsilon, **asked)
    drawn = mechanism.sample(np.full(DRAWS, 0.5), seeded(request)) - 0.5
    assert np.isfinite(drawn).all()
    if epsilon == "1e-8" or noise != "staircase":  # rare far draws make up a staircase's deviation
        assert drawn.std() == pytest.approx(mechanism.standard_deviation, rel=0.1)


def test_staircase_is_never_noisier_than_laplace_in_the_mean():
    """What the staircase is for: the smallest mean magnitude."""
    for epsilon in (1, 3, 6, 10):
        laplace, stairs = built("laplace", 256, epsilon=epsilon), built("staircase", 256, epsilon=epsilon)
        j = np.arange(-256 * 60, 256 * 60 + 1)
        means = [float(np.abs(j) @ np.exp(one.log_prob(j))) for one in (laplace, stairs)]
        assert means[1] < means[0] * 1.0001


# -- balls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "steps"), [("0.1", 4), ("1/3", 5), ("0.001", 8), ("0.9", 3)])
def test_the_cube_has_exactly_its_delta(delta, steps):
    mechanism = built("ball", steps, delta=delta, count=3)
    points = 2 * mechanism.reach + 1
    assert Fraction(steps, points) <= Fraction(delta)
    assert Fraction(steps, points - 2) > Fraction(delta) or points < steps + 2
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (0, Fraction(delta))
    assert not mechanism.guarantee.idealized
    assert mechanism.guarantee.renyi == ()
    law = np.exp(mechanism.log_prob(np.arange(-mechanism.reach - steps, mechanism.reach + steps + 1)))
    distances = [np.abs(law[shift:] - law[: len(law) - shift]).sum() / 2 + 0 for shift in range(1, steps + 1)]
    assert max(distances) <= float(Fraction(delta)) + 1e-12


@pytest.mark.parametrize("p", ["0.5", "2", "7"])
@pytest.mark.parametrize("count", [1, 20])
def test_balls_have_the_stated_delta_and_deviation(p, count, request):
    """Overlap and deviation by drawing many balls; the marginal against its beta law."""
    delta = 0.2
    mechanism = built("ball", delta=str(delta), count=count, p=p)
    bits, size = seeded(request), 1500
    points = np.stack([mechanism.sample(np.zeros(count), bits) for _ in range(size)])
    radius, shape = mechanism.parameters["radius"], float(p)
    assert (np.abs(points) ** shape).sum(axis=1).max() <= (radius * (1 + 1e-4)) ** shape
    law = stats.beta(1 / shape, (count - 1) / shape + 1)
    assert stats.kstest((np.abs(points[:, 0]) / radius) ** shape, law.cdf).pvalue > LEVEL
    assert law.cdf((0.5 / radius) ** shape) == pytest.approx(delta, rel=1e-6)
    assert law.cdf((0.5 / radius) ** shape) <= delta
    moved = points.copy()
    moved[:, 0] += 1  # a neighbour's output: outside the ball with probability delta
    outside = ((np.abs(moved) ** shape).sum(axis=1) > radius**shape).sum()
    assert stats.binomtest(int(outside), size, delta).pvalue > LEVEL
    assert mechanism.standard_deviation == pytest.approx(points[:, 0].std(), rel=0.08)
    assert mechanism.guarantee.idealized


def test_a_small_delta_of_a_large_p_still_has_a_radius():
    mechanism = built("ball", delta="1e-9", count=5, p=64)
    assert 4e8 < mechanism.parameters["radius"] < 6e8
    assert built("ball", delta="1e-9", count=5).parameters["radius"] == pytest.approx(5e8, rel=1e-6)


def test_a_ball_is_drawn_whole():
    mechanism = built("ball", delta="0.1", count=5, p=2)
    with pytest.raises(InputError, match="count must be 5, the number of scores of this ball, got 4"):
        mechanism.noise(4, SeededBits(1))
    with pytest.raises(Unsupported, match="p = inf"):
        mechanism.log_prob([0])
    with pytest.raises(Unsupported, match="p = inf"):
        mechanism.exponent(0, 64)


# -- grid and contract ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", SCORE_MECHANISMS)
def test_the_contract(noise):
    mechanism = built(noise, **EXAMPLES[noise])
    assert mechanism.guarantee.protects == ONE_SCORE
    assert not mechanism.guarantee.local
    assert mechanism.parameters["noise"] == noise == mechanism.name
    assert mechanism.parameters["standard_deviation"] == mechanism.standard_deviation > 0
    assert mechanism == built(noise, **EXAMPLES[noise])
    with pytest.raises((AttributeError, TypeError)):
        mechanism.grid = None
    wide = score_mechanism(noise, bounds=(-10, 30), **EXAMPLES[noise])
    assert wide.standard_deviation == pytest.approx(40 * mechanism.standard_deviation, rel=1e-9)
    steps = mechanism.grid.steps
    assert steps >= 1 << 20
    assert steps & (steps - 1) == 0


def test_scores_land_on_the_nearest_step_and_never_beyond_the_bounds():
    grid = Grid(Fraction(-1), Fraction(3), 8)
    scores = np.array([-1, -0.8, -0.7, 0, 2.9, 3, 99, -1e300, 1e300])
    assert grid.integers(scores).tolist() == [0, 0, 1, 2, 8, 8, 8, 0, 8]
    assert grid.scores(np.array([-2, 0, 8, 9])).tolist() == [-2, -1, 3, 3.5]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_every_finite_score_becomes_one_of_the_steps(low, width, scores):
    grid = Grid(Fraction(low), Fraction(low + width), 1 << 20)
    integers = grid.integers(np.array(scores))
    assert (integers >= 0).all()
    assert (integers <= grid.steps).all()


@pytest.mark.parametrize(("spread", "log"), [(1, 20), (1000, 20), (2.0**29, 20), (2.0**40, 10), (2.0**50, 0)])
def test_steps_fit_the_noise(spread, log):
    assert fitting_steps(spread) == 1 << log


@pytest.mark.parametrize(("spread", "log"), [(0.5, 21), (2.0**-10, 30), (2.0**-60, 40)])
def test_small_noise_gets_a_finer_grid(spread, log):
    assert fitting_steps(spread) == 1 << log


@pytest.mark.parametrize(
    ("noise", "asked", "sentence"),
    [
        (
            "cauchy",
            {},
            "noise must be one of laplace, gaussian, generalized-normal, staircase, joint-staircase, ball, got 'cau",
        ),
        ("laplace", {}, "epsilon must be a finite number above 0 for laplace noise, got nothing"),
        ("laplace", {"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ("laplace", {"epsilon": "nan"}, "epsilon must be a finite number above 0, got nan"),
        ("laplace", {"epsilon": 1, "delta": "1e-6"}, "delta must be 0 for laplace noise, which needs none, got"),
        ("laplace", {"epsilon": 1, "p": 2}, "p must not be given for laplace noise, got 2"),
        ("staircase", {"epsilon": 1, "gamma": 2}, "gamma must be between 0 and 1, got 2"),
        ("gaussian", {"epsilon": 1}, "delta must be above 0 and below 1 for gaussian noise"),
        ("gaussian", {"epsilon": 1, "delta": 1}, "delta must be at least 0 and below 1, got 1"),
        ("gaussian", {"epsilon": 1, "delta": "0.1", "gamma": 1}, "gamma must not be given for gaussian noise, got 1"),
        ("generalized-normal", {"epsilon": 1}, "p must be above 0 and at most 64 for generalized-normal noise, got"),
        ("generalized-normal", {"epsilon": 1, "p": "inf"}, "p must be above 0 and at most 64"),
        ("generalized-normal", {"epsilon": 1, "p": -1}, "p must be above 0 and at most 64"),
        ("generalized-normal", {"epsilon": 1, "p": 3}, "delta must be above 0 for generalized-normal noise with p"),
        ("generalized-normal", {"epsilon": 1, "p": "0.5", "delta": "0.1"}, "delta must be 0 for generalized-normal"),
        ("generalized-normal", {"epsilon": 1, "p": "0.01"}, "this privacy needs noise of 2^"),
        ("ball", {"epsilon": 1, "delta": "0.1", "count": 2}, "epsilon must not be given for ball noise"),
        ("ball", {"count": 2}, "delta must be above 0 and below 1 for ball noise, which has no finite epsilon, got 0"),
        ("ball", {"delta": "0.1"}, "count must be an integer of at least 1, got nothing"),
        ("ball", {"delta": "0.1", "count": 2, "p": 0}, "p must be above 0 and at most 64, or inf, for ball noise"),
        ("laplace", {"epsilon": "1e-20"}, "this privacy needs noise of 2^"),
        ("gaussian", {"epsilon": "1e-9", "delta": "1e-305"}, "no noise of shape p = 2 gives epsilon"),
    ],
)
def test_what_cannot_be_promised_is_refused(noise, asked, sentence):
    with pytest.raises(InputError) as refusal:
        built(noise, **asked)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (0, math.inf), (math.nan, 1), (0,), (0, 1, 2), 5, "01", ("a", "b"), ("-1e400", "1e400")]
)
def test_bounds_are_two_numbers(bounds):
    with pytest.raises(InputError, match="bounds must be two finite numbers, the lower below the upper, got"):
        score_mechanism("laplace", bounds=bounds, epsilon=1)


@pytest.mark.parametrize("bounds", [(0, 5e-324), (1.0, "1.00000000000000000001")])
def test_bounds_that_floats_cannot_tell_apart_are_refused(bounds):
    with pytest.raises(InputError, match="bounds must be far enough apart for floating-point numbers"):
        score_mechanism("laplace", bounds=bounds, epsilon=1)
