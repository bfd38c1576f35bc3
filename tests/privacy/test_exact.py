"""Rationals as their author wrote them, and enclosures of exp(-x)."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import decimal_exp

from rankdp.errors import InputError
from rankdp.privacy.exact import exp_bounds, positive, rational, upwards


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (Decimal("0.3"), Fraction(3, 10)),
        (Decimal("1E+2"), Fraction(100)),
        (Fraction(2, 7), Fraction(2, 7)),
        (7, Fraction(7)),
        ("1e-300", Fraction(1, 10**300)),
        (5e-324, Fraction(5, 10**324)),
    ],
)
def test_numbers_mean_what_was_written(value, meant):
    assert rational(value) == positive(value) == meant


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        np.float64("nan"),
        Decimal("NaN"),
        Decimal("Infinity"),
        True,
        False,
        np.True_,
        "two",
        "",
        "1/0",
        None,
        [1],
        1j,
        "1e999999999",
        Decimal("1e999999999"),
    ],
)
def test_what_is_no_number_is_refused_with_a_sentence(value):
    with pytest.raises(InputError) as refusal:
        rational(value, "rate")
    assert str(refusal.value) == f"rate must be a finite number, got {value}"
    with pytest.raises(InputError) as refusal:
        positive(value, "rate")
    assert str(refusal.value) == f"rate must be a finite number above 0, got {value}"


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, "-1/3", Decimal(0), np.float64(-2.5), Fraction(-1, 9)])
def test_zero_and_negatives_are_not_positive(value):
    assert rational(value) <= 0
    with pytest.raises(InputError, match=r"^epsilon must be a finite number above 0, got"):
        positive(value)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 8, 64, 128, 700])
@pytest.mark.parametrize(
    "x",
    [
        Fraction(0),
        Fraction(1, 10**400),
        Fraction(1, 10**30),
        Fraction(1, 3),
        Fraction(1),
        Fraction(6931471805599453, 10**16),
        Fraction(22, 7),
        Fraction(44),
        Fraction(88, 1) + Fraction(1, 10**25),
        Fraction(485),
        Fraction(10**6),
        Fraction(10**400),
    ],
)
def test_exp_bounds_enclose(x, bits):
    low, high = exp_bounds(x, bits)
    assert 0 <= low <= high <= 1 << bits
    assert high - low <= 2
    if x > 10**5:
        assert (low, high) == (0, 1)
        return
    value = Fraction(decimal_exp(-x, 700)) * (1 << bits)  # off by less than one part in 10^690
    assert low <= value * (1 + Fraction(1, 10**690))
    assert value * (1 - Fraction(1, 10**690)) <= high


@pytest.mark.slow
@given(st.fractions(min_value=0, max_value=200, max_denominator=10**12), st.integers(1, 300))
@settings(max_examples=200)
def test_exp_bounds_enclose_any_rational(x, bits):
    low, high = exp_bounds(x, bits)
    value = Fraction(decimal_exp(-x, 250)) * (1 << bits)
    assert low <= value * (1 + Fraction(1, 10**240))
    assert value * (1 - Fraction(1, 10**240)) <= high
    assert 0 <= high - low <= 2


def test_exp_bounds_sharpen():
    """The enclosure of the same number at more bits lies inside the one at fewer (rescaled)."""
    for x in (Fraction(1, 7), Fraction(5), Fraction(1, 10**20)):
        coarse, fine = exp_bounds(x, 64), exp_bounds(x, 192)
        assert coarse[0] << 128 <= fine[1]
        assert fine[0] <= coarse[1] << 128


@pytest.mark.slow
@given(st.floats(1e-300, 1e300))
def test_upwards_is_above_whatever_the_error_was(value):
    assert upwards(value * (1 - 1e-12)) >= value
    assert upwards(value) <= value * (1 + 3e-12)
