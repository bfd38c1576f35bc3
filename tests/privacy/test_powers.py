"""The generalised normal law on the integers: enclosures of powers, an envelope of bins, exact decisions, far draws."""

import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaincc
from support import LEVEL, Scripted, assert_law, decimal_exp, seeded

from rankdp.privacy import powers
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.powers import LARGEST, PowerLaw, bin_start, bin_weights, power_bounds

pytestmark = pytest.mark.slow

WORD = 1 << 64
DRAWS = 60_000


def exact(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@given(
    st.fractions(Fraction(1, 10**15), 10**15),
    st.fractions(Fraction(1, 50), 60, max_denominator=10**6),
    st.integers(1, 700),
)
@settings(max_examples=150)
def test_powers_are_enclosed(x, p, bits):
    low, high = power_bounds(x, p, bits)
    assert 0 <= low <= high
    assert high - low <= Fraction(1, 1 << bits)
    with mpmath.workdps(400 + bits + math.ceil(60 * 15)):
        true = exact(x) ** exact(p)
        assert exact(low) <= true * (1 + mpmath.mpf(10) ** -300)
        assert true * (1 - mpmath.mpf(10) ** -300) <= exact(high)


def test_rational_powers_are_exact():
    assert power_bounds(Fraction(7, 3), Fraction(3), 8) == (Fraction(343, 27), Fraction(343, 27))
    assert power_bounds(Fraction(1), Fraction(1, 3), 8) == (1, 1)
    assert power_bounds(Fraction(0), Fraction(1, 3), 8) == (0, 0)
    low, high = power_bounds(Fraction(9, 4), Fraction(1, 2), 300)
    assert low <= Fraction(3, 2) <= high


def test_bins_cut_the_magnitudes_without_gap_or_overlap():
    expected = 0
    for cell in range(600):
        start, shift = bin_start(cell)
        assert start == expected
        expected = start + (1 << shift)
    assert bin_start(powers._FAR)[0] == LARGEST


@pytest.mark.parametrize(("p", "scale"), [("0.3", 5), ("0.5", "7/2"), ("1", 20), ("1.5", 9), ("2", 30), ("13", 40)])
def test_the_envelope_and_its_tail_are_enclosed(p, scale):
    law = PowerLaw(Fraction(p), Fraction(4, 3), Fraction(scale))
    weights = bin_weights(law)(128)
    assert weights.first == weights.below == 0
    unit = 1 << 128 + powers._GUARD
    with mpmath.workdps(80):

        def envelope(cell):
            start, shift = bin_start(cell)
            w = mpmath.mpf(4) / 3 * (start / exact(law.scale)) ** exact(law.p)
            return unit * (2 << shift) * mpmath.exp(-w) if cell else mpmath.mpf(unit)

        for cell, (low, high) in enumerate(zip(weights.low, weights.high, strict=True)):
            assert low <= envelope(cell) * (1 + mpmath.mpf(10) ** -70)
            assert envelope(cell) * (1 - mpmath.mpf(10) ** -70) <= high <= low + 3
        beyond = mpmath.fsum(envelope(cell) for cell in range(len(weights.low), len(weights.low) + 400))
        assert beyond <= weights.above <= sum(weights.low) >> 128


@pytest.mark.parametrize(
    ("p", "rate", "scale"),
    [
        ("0.5", 1, 3),
        ("0.8", 2, 50),
        ("1", 1, "10/3"),
        ("1.5", "1/2", 40),
        ("2", "1/2", 15),
        ("3", 1, 70),
        ("20", 1, 33),
    ],
)
def test_draws_follow_the_law(p, rate, scale, request):
    law = PowerLaw(Fraction(p), Fraction(rate), Fraction(scale))
    j = np.arange(4000)
    with np.errstate(over="ignore"):
        weights = np.exp(-float(law.rate) * (((j + 1) // 2) / float(law.scale)) ** float(law.p))
    drawn = law.sample(DRAWS, seeded(request))
    assert_law(np.where(drawn > 0, 2 * drawn - 1, -2 * drawn), weights / weights.sum())


@pytest.mark.parametrize("p", ["0.3", "1", "2", "40"])
def test_most_draws_are_kept(p):
    law = PowerLaw(Fraction(p), Fraction(1), Fraction(1 << 20))
    weights = bin_weights(law)(64)
    envelope = sum(weights.low) / (1 << 64 + powers._GUARD)
    shape = float(law.p)
    assert 2 * float(law.scale) * math.gamma(1 + 1 / shape) / envelope > 0.8


def test_every_decision_by_exact_arithmetic(request, monkeypatch):
    """Where each float proposal is in doubt the law is the same."""
    honest = powers.below_exp
    monkeypatch.setattr(powers, "below_exp", lambda proposed, doubt, *more: honest(proposed, doubt + 2, *more))
    law = PowerLaw(Fraction(7, 10), Fraction(1), Fraction(30))
    drawn = law.sample(3000, seeded(request))
    j = np.arange(40_000)
    weights = np.exp(-((((j + 1) // 2) / 30) ** 0.7))
    assert_law(np.where(drawn > 0, 2 * drawn - 1, -2 * drawn), weights / weights.sum())


@pytest.mark.parametrize(
    ("p", "scale"),
    [("0.3", 1 << 20), ("0.5", 1000), ("1.5", 1 << 30), ("2", 65), ("2", 1000), ("2", 1 << 56), ("63/2", 1 << 40)],
)
def test_the_float_proposal_is_far_closer_than_the_doubt(p, scale):
    law = PowerLaw(Fraction(p), Fraction(3, 7), Fraction(scale))
    for w in (1e-3, 0.5, 1.0, 7.0, 40.0, 200.0):
        magnitude = math.ceil(scale * (w * 7 / 3) ** (1 / float(law.p)))
        start = bin_start(next(cell for cell in range(480) if bin_start(cell + 1)[0] > magnitude))[0]
        proposed = float(np.diff(law._float_exponents(np.array([start, magnitude])))[0])
        low, high = law.exponent(magnitude, 100)
        low_start, high_start = law.exponent(start, 100)
        error = max(abs(proposed - (high - low_start)), abs(proposed - (low - high_start)))
        doubt = 2.0**-36 + float(high) * (float(law.p) + 1) * 2.0**-44
        assert error < doubt / 16


@pytest.mark.parametrize(
    ("x", "p"), [("2", "1/2"), ("1/2", "1"), ("17/3", "1"), ("40", "1"), ("1/1000000000000", "1"), ("3", "2")]
)
def test_below_exp_asks_the_exact_exponent_where_the_float_is_in_doubt(x, p):
    """Words one unit from exp(-x^p) in the 64th and in the 128th digit, where a float cannot tell."""
    with mpmath.workdps(80):
        exponent = exact(Fraction(x)) ** exact(Fraction(p))
        edge = int(mpmath.floor(mpmath.exp(-exponent) * WORD**2))
    first, second = divmod(edge, WORD)
    enclosure = partial(power_bounds, Fraction(x), Fraction(p))
    for script, expected in [
        ([first - 1], True),
        ([first + 1], False),
        ([first, second - 1], True),
        ([first, second + 1], False),
    ]:
        bits = Scripted(script)
        kept = powers.below_exp(np.array([float(exponent)]), np.array([1e-9]), lambda _: enclosure, bits)
        assert kept.tolist() == [expected]
        assert bits.used == len(script)


def test_below_exp_overrules_a_proposal_that_is_off():
    """A float wrong by less than the doubt never decides."""
    edge = int(Fraction(decimal_exp(Fraction(-1, 2), 60)) * WORD)
    for error in (-1e-12, 1e-12):
        for word, expected in ((edge - 1000, True), (edge + 1000, False)):
            proposed, doubt = np.array([0.5 + error]), np.array([2.0**-36])
            kept = powers.below_exp(proposed, doubt, lambda _: lambda _: (Fraction(1, 2),) * 2, Scripted([word]))
            assert kept.tolist() == [expected]


def test_a_member_at_the_start_of_its_bin_is_always_kept():
    law = PowerLaw(Fraction(1, 2), Fraction(1), Fraction(100))
    assert law._excess(64, 64)(64) == (0, 0)
    assert powers.settle_below_exp(WORD - 1, law._excess(64, 64), Scripted([]))


def test_far_draws_are_cut_after_an_exact_decision(request):
    """Noise so wide that one draw in a hundred exceeds 2^62."""
    law = PowerLaw(Fraction(1, 10), Fraction(1), Fraction(1 << 20))
    drawn = law.sample(20_000, seeded(request))
    far = np.abs(drawn) == LARGEST
    expected = float(gammaincc(10, (2.0**42) ** 0.1))
    assert stats.binomtest(int(far.sum()), len(drawn), expected).pvalue > LEVEL
    assert np.abs(drawn).max() == LARGEST
    near = np.abs(drawn[~far]) / 2.0**20
    inside = 1 - expected
    assert stats.kstest(near, lambda t: (1 - gammaincc(10, np.asarray(t) ** 0.1)) / inside).pvalue > LEVEL
    assert_law((drawn > 0).astype(int), [0.5, 0.5])


def test_nothing_to_draw():
    assert PowerLaw(Fraction(1, 2), Fraction(1), Fraction(5)).sample(0, SeededBits(1)).shape == (0,)
