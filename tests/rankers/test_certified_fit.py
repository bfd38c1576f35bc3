"""Gradients proven in fixed point: against a hundred digits, from bad starts, down to norms beyond any double."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.rankers import certified_fit, fixed_point
from rankdp.rankers.bradley_terry import Fit
from rankdp.rankers.certified_fit import fit_within
from rankdp.rankers.fixed_point import ERROR, ONE
from rankdp.rankers.links import LINKS, LOGISTIC

links = pytest.mark.parametrize("name", LINKS)


def points(count, seed):
    """Fixed-point numbers of all sizes, 0 and 1 among them."""
    generator = np.random.default_rng(seed)
    sizes = [0.0, 1.0, *generator.uniform(0, 150, count), *10 ** generator.uniform(-60, 6, count)]
    return [fixed_point.from_float(size) for size in sizes]


def slope(name, x):
    """(log F)'."""
    if name == "logistic":
        return 1 / (1 + mpmath.exp(x))
    if name == "secant":
        z = mpmath.pi * x / 2
        return mpmath.sech(z) / 2 / (2 / mpmath.pi * mpmath.atan(mpmath.exp(z)))
    t = 1 / (1 + mpmath.exp(x))
    return 6 * t * t / (1 + 2 * t)


def exact_norm(counts, theta, name, ridge, linear):
    """The l2 norm of the exact gradient, with 120 digits."""
    with mpmath.workdps(120):
        t = [mpmath.mpf(value.numerator) / value.denominator for value in theta]
        gradient = [
            mpmath.mpf(ridge) * value + mpmath.mpf(float(shift)) for value, shift in zip(t, linear, strict=True)
        ]
        columns = (counts.first, counts.second, counts.half_wins_first, counts.half_wins_second)
        for i, j, a, b in zip(*(column.tolist() for column in columns), strict=True):
            pull = (b * slope(name, t[j] - t[i]) - a * slope(name, t[i] - t[j])) / 2
            gradient[i] += pull
            gradient[j] -= pull
        return mpmath.sqrt(sum(value * value for value in gradient))


def test_exponentials_and_arctangents_are_within_their_error():
    with mpmath.workdps(120):
        for x in points(150, 1):
            assert abs(mpmath.mpf(fixed_point.exp(x)) / ONE - mpmath.exp(-mpmath.mpf(x) / ONE)) < ERROR
            w = min(x, ONE)
            share = mpmath.atan(mpmath.mpf(w) / ONE) * ONE / w if w else 1
            assert abs(mpmath.mpf(fixed_point.arctan_share(w)) / ONE - share) < ERROR
        assert abs(mpmath.mpf(fixed_point.pi()) / ONE - mpmath.pi) < ERROR


@links
def test_exact_slopes_are_within_their_error(name):
    with mpmath.workdps(120):
        for size in points(100, 2):
            for x in (size, -size):
                down, up = LINKS[name].exact_slopes(x)
                assert abs(mpmath.mpf(down) / ONE - slope(name, mpmath.mpf(x) / ONE)) < ERROR
                assert abs(mpmath.mpf(up) / ONE - slope(name, -mpmath.mpf(x) / ONE)) < ERROR


@links
def test_the_third_derivative_is_at_most_four_times_the_second(name):
    x = np.linspace(-60, 60, 240_001)
    assert np.abs(np.gradient(np.log(LINKS[name].curvature(x)), x)).max() < 4


@links
@pytest.mark.parametrize("target", [1e-3, 1e-9, 1e-20, 2.0**-100])
def test_the_norm_is_met_by_the_exact_gradient(name, target):
    generator = np.random.default_rng(3)
    left, right = generator.integers(0, 7, 40), generator.integers(1, 7, 40)
    ahead, behind = generator.integers(0, 10**6, (2, 40))
    counts = PairCounts.from_pairs(left, (left + right) % 7, ahead, behind, items=7)
    linear = generator.normal(size=7) * 300
    theta = fit_within(counts, target, ridge=0.003, link=LINKS[name], linear=linear)
    assert exact_norm(counts, theta, name, 0.003, linear) <= target


@links
@pytest.mark.parametrize("start", [[0.0] * 4, [1e5, -1e5, 1e5, 3.0], [math.nan, math.inf, 0.0, 1.0]])
def test_every_start_leads_there(name, start, monkeypatch):
    """As if double precision had failed altogether."""
    useless = Fit(np.array(start), math.nan, math.nan, 200, False)
    monkeypatch.setattr(certified_fit, "newton", lambda *_: useless)
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [2**40, 2**41, 3], [2**40, 0, 2**30], items=4)
    linear = np.array([3.0, -700.0, 2.0, 5.0])
    theta = fit_within(counts, 1e-9, ridge=0.01, link=LINKS[name], linear=linear)
    assert exact_norm(counts, theta, name, 0.01, linear) <= 1e-9


def test_a_useless_newton_step_is_replaced_by_a_careful_one(monkeypatch):
    """The proof that the method ends does not lean on the linear solver."""
    monkeypatch.setattr(certified_fit.Solver, "solve", lambda self, gradient, aim: np.full(len(gradient), math.nan))
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [8, 9, 3], [7, 5, 6], items=3)
    linear = np.array([0.5, -0.25, 1.0])
    theta = fit_within(counts, 1e-18, ridge=1.0, link=LOGISTIC, linear=linear)
    assert exact_norm(counts, theta, "logistic", 1.0, linear) <= 1e-18


def test_doubles_and_fixed_point_agree(monkeypatch):
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [80, 90, 30], [70, 50, 60], items=3)
    options = {"ridge": 0.5, "link": LOGISTIC, "linear": np.array([1.0, 0.0, -2.0])}
    easy = fit_within(counts, 1e-9, **options)
    assert all(float(strength) == strength for strength in easy)
    fine = fit_within(counts, 1e-25, **options)
    np.testing.assert_allclose(np.array(easy, float), np.array(fine, float), atol=1e-9)


def test_bad_arguments_are_refused():
    counts, linear = PairCounts.from_pairs([0], [1], [1], [1], items=2), np.zeros(2)
    for ridge, target in ((0.0, 1e-9), (1.0, 2.0**-101), (1.0, math.nan), (math.inf, 1.0)):
        with pytest.raises(InputError, match="a proof needs a ridge above 0"):
            fit_within(counts, target, ridge=ridge, link=LOGISTIC, linear=linear)
    with pytest.raises(Unsupported, match="no gradient can be proven for the own link"):
        fit_within(counts, 1.0, ridge=1.0, link=replace(LOGISTIC, name="own", exact_slopes=None), linear=linear)
