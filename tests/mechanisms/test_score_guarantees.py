"""What noise on scores promises: exact audits over every shift, delta and Rényi sums, and mutants they catch."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_cases import EXAMPLES, DoubleRate, built
from support import decimal_exp

from rankdp.errors import InputError
from rankdp.mechanisms.scores import tails as score_tails
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS
from rankdp.mechanisms.scores.grid import Asked, Grid
from rankdp.mechanisms.scores.grid_noises import GaussianScores, GeneralizedNormalScores, LaplaceScores, StaircaseScores
from rankdp.privacy.exact import exp_enclosure
from rankdp.privacy.powers import PowerLaw
from rankdp.privacy.zcdp import rho_of

pytestmark = pytest.mark.slow

PRECISE = 320
TINY = Fraction(1, 1 << 300)


# -- pure epsilon: the worst log-ratio over all outputs and all shifts ------------------------------------------------

PURE = {
    "laplace": ("laplace", {}),
    "staircase": ("staircase", {}),
    "staircase, gamma=0": ("staircase", {"gamma": 0}),
    "staircase, gamma=1": ("staircase", {"gamma": 1}),
    "staircase, gamma=0.3": ("staircase", {"gamma": "0.3"}),
    "p=1": ("generalized-normal", {"p": 1}),
    "p=0.5": ("generalized-normal", {"p": "0.5"}),
    "p=0.3": ("generalized-normal", {"p": "0.3"}),
    "p=2/7": ("generalized-normal", {"p": "2/7"}),
}


def worst_log_ratio(mechanism, window=12):
    """Bounds of the largest log P(j)/P(j+s) over all outputs within ``window`` ranges and every shift s = 1..K."""
    steps = mechanism.grid.steps
    reach = window * steps
    bounds = {j: mechanism.exponent(j, PRECISE) for j in range(-reach - steps, reach + steps + 1)}
    low = high = Fraction(0)
    for j, shift in itertools.product(range(-reach, reach + 1), range(1, steps + 1)):
        for other in (j - shift, j + shift):
            low = max(low, bounds[other][0] - bounds[j][1])
            high = max(high, bounds[other][1] - bounds[j][0])
    return low, high


def audit_pure(mechanism):
    """Fail unless the worst log-ratio is the promised epsilon, no more and no less."""
    low, high = worst_log_ratio(mechanism)
    assert high <= mechanism.guarantee.epsilon + TINY, "two neighbours differ by more than e^epsilon"
    assert low >= mechanism.guarantee.epsilon - TINY, "the noise is larger than epsilon asks for"


@pytest.mark.parametrize("which", PURE)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(5, 2)], ids=str)
@pytest.mark.parametrize("steps", [4])
def test_the_worst_log_ratio_is_exactly_epsilon(which, epsilon, steps):
    noise, asked = PURE[which]
    mechanism = built(noise, steps, epsilon=epsilon, **asked)
    audit_pure(mechanism)
    assert (mechanism.guarantee.delta, mechanism.guarantee.idealized) == (0, False)


class HalfLaplace(LaplaceScores):
    scale = property(lambda self: super().scale / 2)


class NarrowLaplace(LaplaceScores):
    """Noise for K-1 steps."""

    scale = property(lambda self: (self.grid.steps - 1) / self.epsilon)


class HalfStairs(StaircaseScores):
    """Stairs of K/2 steps."""

    def level(self, j):
        return super().level(2 * j)


class NarrowStairs(StaircaseScores):
    def level(self, j):
        return super().level(j * self.grid.steps // (self.grid.steps - 1))


class NarrowPower(GeneralizedNormalScores):
    law = property(lambda self: PowerLaw(self.p, self.epsilon, Fraction(self.grid.steps - 1)))


class ScaleForPower(GeneralizedNormalScores):
    """``exp(-|j|^p/a)`` instead of ``exp(-(|j|/a)^p)`` with a = K/eps^(1/p)."""

    @property
    def law(self):
        a = Fraction(self.grid.steps) / Fraction(float(self.epsilon) ** (1 / float(self.p)))
        return PowerLaw(self.p, 1 / a, Fraction(1))


class EpsilonForScale(GeneralizedNormalScores):
    """a = K/eps, as for Laplace noise, whatever p."""

    law = property(lambda self: PowerLaw(self.p, Fraction(1), self.grid.steps / self.epsilon))


@pytest.mark.parametrize(
    ("mutant", "asked"),
    [
        (HalfLaplace, {}),
        (NarrowLaplace, {}),
        (HalfStairs, {}),
        (NarrowStairs, {"gamma": Fraction(1, 2)}),
        (DoubleRate, {"p": Fraction(1, 2)}),
        (NarrowPower, {"p": Fraction(1, 2)}),
        (ScaleForPower, {"p": Fraction(1, 2)}),
        (EpsilonForScale, {"p": Fraction(1, 2)}),
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)], ids=str)
def test_the_exact_audit_catches_mutants(mutant, asked, epsilon):
    mechanism = mutant(Grid(Fraction(0), Fraction(1), 6), Asked(epsilon=epsilon, **asked))
    with pytest.raises(AssertionError, match="epsilon"):
        audit_pure(mechanism)


@given(
    st.sampled_from(["laplace", "staircase", "generalized-normal"]),
    st.fractions(Fraction(1, 20), 8, max_denominator=50),
    st.fractions(Fraction(1, 8), 1, max_denominator=20),
    st.integers(1, 6),
)
@settings(max_examples=30)
def test_the_log_ratio_never_exceeds_epsilon(noise, epsilon, share, steps):
    asked = {"staircase": {"gamma": share}, "generalized-normal": {"p": share}}.get(noise, {})
    assert worst_log_ratio(built(noise, steps, epsilon=epsilon, **asked), 6)[1] <= epsilon + TINY


# -- epsilon and delta --------------------------------------------------------------------------------------------

APPROXIMATE = {
    "gaussian": ("gaussian", {}),
    "p=1.5": ("generalized-normal", {"p": "1.5"}),
    "p=2": ("generalized-normal", {"p": 2}),
    "p=3": ("generalized-normal", {"p": 3}),
    "p=1.05": ("generalized-normal", {"p": "1.05"}),
    "p=12": ("generalized-normal", {"p": 12}),
}


def exact_deltas(mechanism, bits=128):
    """Upper bounds, from exact arithmetic, of the hockey-stick delta of every shift 1..K."""
    steps, epsilon = mechanism.grid.steps, mechanism.guarantee.epsilon
    lows, highs = [], []
    while not highs or highs[-1] > 1:  # down to 2^-128; what is left out is below the last times the standard deviation
        low, high = exp_enclosure(*mechanism.exponent(len(lows), bits), bits)
        lows.append(low)
        highs.append(high)
    reach = len(lows)
    low = dict(enumerate(lows)) | {-j: value for j, value in enumerate(lows)}
    whole = 2 * sum(lows) - lows[0]
    factor = Fraction(decimal_exp(epsilon, 90)) * (1 - Fraction(1, 10**80))
    return [
        sum(max(Fraction(0), highs[abs(j)] - factor * low.get(j + shift, 0)) for j in range(1 - reach, reach)) / whole
        for shift in range(1, steps + 1)
    ]


@pytest.mark.parametrize("which", APPROXIMATE)
@pytest.mark.parametrize(("epsilon", "delta"), [("4", "1e-6"), ("1/7", "0.2")])
def test_the_exact_delta_is_at_most_what_is_stated_and_close_to_it(which, epsilon, delta):
    noise, asked = APPROXIMATE[which]
    for steps in (2, 5):
        mechanism = built(noise, steps, epsilon=epsilon, delta=delta, **asked)
        assert mechanism.guarantee.epsilon == Fraction(epsilon)
        assert mechanism.guarantee.delta == Fraction(delta)
        deltas = exact_deltas(mechanism)
        assert max(deltas) == deltas[-1], "the largest shift is not the worst"
        assert 0.999 * Fraction(delta) < deltas[-1] <= Fraction(delta)


class HalfSigma(GaussianScores):
    sigma = property(lambda self: GaussianScores(self.grid, self.asked).sigma / 2)


class NarrowSigma(GaussianScores):
    sigma = property(lambda self: GaussianScores(self.grid, self.asked).sigma * (self.grid.steps - 1) / self.grid.steps)


class HalfScale(GeneralizedNormalScores):
    @property
    def law(self):
        honest = GeneralizedNormalScores(self.grid, self.asked).law
        return PowerLaw(honest.p, honest.rate, honest.scale / 2)


@pytest.mark.parametrize(
    ("mutant", "p"), [(HalfSigma, None), (NarrowSigma, None), (HalfScale, Fraction(3, 2)), (HalfScale, Fraction(3))]
)
def test_the_exact_delta_catches_mutants(mutant, p):
    asked = Asked(epsilon=Fraction(1), delta=Fraction(1, 1000), p=p)
    mechanism = mutant(Grid(Fraction(0), Fraction(1), 5), asked)
    assert max(exact_deltas(mechanism)) > Fraction(1, 1000)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("8", "1e-5"), ("0.01", "0.001")])
def test_sigma_is_below_what_zcdp_needs_and_not_below_the_continuous_optimum(epsilon, delta):
    """Balle and Wang's analytic Gaussian: the smallest sigma of all, which the grid approaches from above."""
    mechanism = built("gaussian", epsilon=epsilon, delta=delta)
    sigma = float(mechanism.sigma) / mechanism.grid.steps
    assert sigma < 1 / math.sqrt(2 * float(rho_of(Fraction(epsilon), Fraction(delta))))
    with mpmath.workdps(30):
        eps = mpmath.mpf(epsilon)

        def excess(s):
            return (
                mpmath.ncdf(1 / (2 * s) - eps * s)
                - mpmath.exp(eps) * mpmath.ncdf(-1 / (2 * s) - eps * s)
                - mpmath.mpf(delta)
            )

        best = mpmath.findroot(excess, (sigma * 0.9, sigma * 1.1), solver="anderson", tol=1e-20)
    assert float(best) * (1 - 1e-9) <= sigma <= float(best) * (1 + 1e-5)
    guarantee = mechanism.guarantee
    assert guarantee.rho >= 1 / (2 * sigma**2)
    assert guarantee.rho == pytest.approx(1 / (2 * sigma**2))


@pytest.mark.parametrize("p", ["1.1", "3", "64"])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("5", "1e-9")])
def test_on_a_fine_grid_the_continuous_delta_is_met_and_hardly_more(p, epsilon, delta):
    """The hockey stick of the continuous law with the calibrated scale, from mpmath's incomplete gamma function."""
    mechanism = built("generalized-normal", epsilon=epsilon, delta=delta, p=p)
    with mpmath.workdps(40):
        a = mpmath.mpf(mechanism.law.scale.numerator) / mechanism.law.scale.denominator / mechanism.grid.steps
        shape, eps = mpmath.mpf(p), mpmath.mpf(epsilon)

        def tail(t):
            upper = mpmath.gammainc(1 / shape, (abs(t) / a) ** shape, regularized=True) / 2
            return upper if t > 0 else 1 - upper

        low, high = mpmath.mpf(-0.5), a * 800 ** (1 / shape)
        for _ in range(120):
            middle = (low + high) / 2
            above = (abs(middle + 1) / a) ** shape - (abs(middle) / a) ** shape > eps
            low, high = (low, middle) if above else (middle, high)
        exact = tail(high) - mpmath.exp(eps) * tail(high + 1)
    assert 0.999 < exact / float(delta) <= 1 + 1e-12


def test_shape_two_is_gaussian_and_shape_one_laplace(request):
    gaussian = built("gaussian", epsilon=1, delta="1e-6")
    as_power = built("generalized-normal", epsilon=1, delta="1e-6", p=2)
    assert as_power.standard_deviation == pytest.approx(gaussian.standard_deviation, rel=1e-6)
    for order, epsilon in gaussian.guarantee.renyi:
        assert as_power.renyi(order) == pytest.approx(epsilon, rel=2e-3)
    laplace = built("laplace", 64, epsilon=1)
    as_power = built("generalized-normal", 64, epsilon=1, p=1)
    assert as_power.standard_deviation == pytest.approx(laplace.standard_deviation, rel=1e-9)
    assert [as_power.exponent(j, 10) for j in range(9)] == [laplace.exponent(j, 10) for j in range(9)]
    assert as_power.guarantee == laplace.guarantee


# -- Rényi ----------------------------------------------------------------------------------------------------------


def exact_renyi(mechanism, order, shift):
    """By adding up every term within 200,000 steps; the rest makes the sum larger by a part in 10^4 at most."""
    j = np.arange(-200_000, 200_001)
    here, there = mechanism.log_prob(j), mechanism.log_prob(j + shift)
    h = order * here - (order - 1) * there
    return (h.max() + math.log(np.exp(h - h.max()).sum())) / (order - 1)


@pytest.mark.parametrize("which", [*PURE, *APPROXIMATE])
def test_the_renyi_curve_is_never_below_the_truth(which):
    noise, asked = (PURE | APPROXIMATE)[which]
    extra = {"delta": "0.01"} if which in APPROXIMATE else {}
    mechanism = built(noise, 3, epsilon=1, **asked, **extra)
    closed = which in ("laplace", "p=1")  # the others are bounds, summed or general
    for order in (1.5, 3.0):
        exact = [exact_renyi(mechanism, order, shift) for shift in (1, 2, 3)]
        stated = mechanism.renyi(order)
        assert max(exact) <= stated + 1e-12
        if closed or which in APPROXIMATE:
            assert stated <= exact[-1] * (1 + 1e-9) + 1e-9
            assert exact == sorted(exact)
        assert stated <= (1 if which in PURE else math.inf)


@pytest.mark.parametrize("p", ["1.2", "3"])
@pytest.mark.parametrize("order", [1.5, 32.0])
def test_blocks_of_integers_bound_the_renyi_sum_closely(p, order):
    """A scale of 20,000 steps, in blocks, against every term."""
    law = score_tails.PowerTails(float(p), 1.0, 20_000.0)
    steps = 10_000
    t = np.arange(-400_000, 1_600_000, dtype=float)
    h = -order * (np.abs(t) / law.scale) ** law.p + (order - 1) * (np.abs(t + steps) / law.scale) ** law.p
    exact = (h.max() + math.log(np.exp(h - h.max()).sum() / law.whole[1])) / (order - 1)
    assert exact <= law.renyi(order, steps) <= exact * 1.002 + 2e-5


def test_the_laplace_curve_is_the_papers_on_a_fine_grid():
    mechanism = built("laplace", epsilon="0.7")
    for order, stated in mechanism.guarantee.renyi:
        paper = math.log(
            (order * math.exp((order - 1) * 0.7) - (1 - order) * math.exp(-order * 0.7)) / (2 * order - 1)
        ) / (order - 1)
        assert stated == pytest.approx(paper, rel=1e-6)


@pytest.mark.parametrize("noise", ["laplace", "staircase"])
@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "30", "2000"])
def test_curves_of_extreme_epsilons_are_finite_and_at_most_epsilon(noise, epsilon):
    for order, stated in built(noise, epsilon=epsilon).guarantee.renyi:
        assert 0 < stated <= float(epsilon) * (1 + 1e-12)
        if noise == "staircase":
            assert stated >= _response(Fraction(epsilon), Fraction(order)) * (1 - 1e-15)


def _response(epsilon, order):
    with mpmath.workdps(60):
        eps, a = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, order))
        return float(mpmath.log((mpmath.exp(a * eps) + mpmath.exp((1 - a) * eps)) / (1 + mpmath.exp(eps))) / (a - 1))


@pytest.mark.parametrize("alpha", [1, 0, -2, math.inf, math.nan, "x", None])
@pytest.mark.parametrize("noise", SCORE_MECHANISMS)
def test_orders_are_above_one(noise, alpha):
    with pytest.raises(InputError, match="alpha must be a finite number above 1, got"):
        built(noise, **EXAMPLES[noise]).renyi(alpha)


# -- sums of the law --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "scale"),
    [
        *[(0.7, 0.4), (0.7, 3.7), (1.0, 0.4), (1.0, 90.0), (1.3, 0.4), (1.3, 90.0), (2.0, 3.7), (2.0, 900.0)],
        *[(5.0, 0.4), (5.0, 900.0), (40.0, 3.7), (40.0, 900.0), (64.0, 9e3)],
    ],
)
def test_tails_enclose_every_sum(p, scale, monkeypatch):
    monkeypatch.setattr(score_tails, "_TERMS", 16)  # most of the sum through the integral
    law = score_tails.PowerTails(p, 1.0, scale)
    with mpmath.workdps(40):
        reach = int(scale * 100 ** (1 / p)) + 60  # beyond, the sum is below 1e-40
        f = [mpmath.exp(-((mpmath.mpf(j) / scale) ** p)) for j in range(reach)]
        suffix = [mpmath.mpf(0)]
        for value in reversed(f):
            suffix.append(suffix[-1] + value)
        suffix.reverse()
        whole = 2 * suffix[0] - 1
        for start in (-7, -1, 0, 1, 2, 9, 17, reach // 9, reach // 4):
            exact = suffix[start] if start > 0 else whole - suffix[1 - start]
            low, high = law.tail(start)
            assert low <= exact <= high
        assert law.whole[0] <= whole <= law.whole[1]
        second = 2 * mpmath.fsum(mpmath.mpf(j) ** 2 * value for j, value in enumerate(f)) / whole
    monkeypatch.undo()
    assert score_tails.PowerTails(p, 1.0, scale).variance == pytest.approx(float(second), rel=1e-6)


@pytest.mark.parametrize("shape", [1.0, 0.9, 2 / 3, 0.5, 0.2, 1 / 64])
def test_the_incomplete_gamma_function_is_far_better_than_its_slack(shape):
    from scipy.special import gammaincc

    for x in [score_tails._FLAT, 1e-20, 1e-15, 1e-9, 1e-3, 0.3, 0.9, 1.0, 1.1, 2.0, 5.0, 17.0, 60.0, 200.0, 500.0]:
        with mpmath.workdps(40):
            exact = mpmath.gammainc(shape, x, regularized=True)
            assert abs(gammaincc(shape, x) / exact - 1) < score_tails._SLACK / 50


@given(
    st.floats(1.02, 40),
    st.floats(0.05, 60),
    st.floats(1e-3, 12),
    st.integers(1, 40),
)
@settings(max_examples=60)
def test_delta_is_never_below_the_best_event(p, scale, epsilon, steps):
    """Against the sum of positive parts, in floats: a float's error is far below the slack."""
    law = score_tails.PowerTails(p, 1.0, scale)
    j = np.arange(-6000, 6001)
    with np.errstate(over="ignore"):
        f = np.exp(-((np.abs(j) / scale) ** p))
        shifted = np.exp(-((np.abs(j + steps) / scale) ** p))
    exact = np.maximum(f - math.exp(epsilon) * shifted, 0).sum() / f.sum()
    stated = law.delta(epsilon, steps)
    assert exact * (1 - 1e-12) <= stated
    assert stated <= exact * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("p", [1.01, 2.0, 30.0, 64.0])
def test_delta_of_vanishing_noise_is_one(p):
    for scale in (1e-6, 1e-3, 0.05):
        assert score_tails.PowerTails(p, 1.0, scale).delta(1.0, 5) == pytest.approx(1)
