"""Rates of the errors: how they scale, where privacy is free, and that one formula serves both (2.8) and (3.1)."""

import math

import pytest

from rankdp.theory.rates import largest_error, privacy_share, separation, squared_error

SETTINGS = [(50, 1.0, 0.5), (300, 0.25, 1.0), (1000, 0.05, 2.5)]
settings = pytest.mark.parametrize(("n", "p", "eps"), SETTINGS)


@settings
def test_by_hand(n, p, eps):
    log = math.log(n)
    assert squared_error(n, p, eps) == pytest.approx(1 / p + 1 / (n * p * p * eps * eps))
    assert largest_error(n, p, eps) == pytest.approx(math.sqrt(log / (n * p)) + log / (n * p * eps))
    assert separation(n, p, eps) == largest_error(n, p, eps)
    assert privacy_share(n, p, eps) == pytest.approx(1 / (1 + eps * math.sqrt(n * p / log)))


@settings
def test_privacy_and_sampling_scale_as_the_theorems_say(n, p, eps):
    """A tenth of epsilon makes the privacy part of the squared error 100 times and that of the separation 10 times."""
    floor = squared_error(n, p, 1e12), separation(n, p, 1e12)
    assert squared_error(n, p, eps / 10) - floor[0] == pytest.approx(100 * (squared_error(n, p, eps) - floor[0]))
    assert separation(n, p, eps / 10) - floor[1] == pytest.approx(10 * (separation(n, p, eps) - floor[1]))
    assert floor[0] == pytest.approx(1 / p)
    assert floor[1] == pytest.approx(math.sqrt(math.log(n) / (n * p)))


@settings
def test_more_privacy_fewer_comparisons_and_constants_only_raise_them(n, p, eps):
    for rate in (squared_error, largest_error, separation):
        assert rate(n, p, eps / 2) > rate(n, p, eps)
        assert rate(n, p / 2, eps) > rate(n, p, eps)
        assert rate(n, p, eps, constant=3.0) == pytest.approx(3 * rate(n, p, eps))


def test_the_share_of_privacy_runs_from_all_to_nothing():
    shares = [privacy_share(300, 1.0, eps) for eps in (1e-6, 0.1, 1, 10, 1e6)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9999
    assert shares[-1] < 1e-4
