"""Links: derivatives, tails, constants with their rigorous bounds, and the refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.publish.rank import rank
from rankdp.rankers.links import BEST_OF_THREE, LINKS, LOGISTIC, REFUSED, SECANT, link

POINTS = [-700.0, -100.0, -30.0, -8.0, -2.5, -1.0, -0.3, -1e-8, 0.0, 1e-8, 0.2, 1.0, 3.0, 12.0, 40.0, 300.0, 700.0]
ROUNDOFF = 2.0**-53


def exact(name, x):
    """F at x, with many digits."""
    x = mpmath.mpf(x)
    s = 1 / (1 + mpmath.exp(-x))
    return {
        "logistic": lambda: s,
        "secant": lambda: 2 / mpmath.pi * mpmath.atan(mpmath.exp(mpmath.pi * x / 2)),
        "best-of-three": lambda: s * s * (3 - 2 * s),
    }[name]()


@pytest.mark.parametrize("x", POINTS)
@pytest.mark.parametrize("one", LINKS.values(), ids=LINKS)
def test_values_and_derivatives_agree_with_many_digits(one, x):
    def loss(y):
        return -mpmath.log(exact(one.name, y))

    at = np.array([x])
    digits = 160 if abs(x) <= 40 else 700  # enough for 10^-300 in the second difference
    with mpmath.workdps(digits):
        cdf, log = exact(one.name, x), -loss(x)
        step = mpmath.mpf(10) ** -(digits // 5)
        ahead, behind = loss(x + step), loss(x - step)
        slope, curvature = (ahead - behind) / (2 * step), (ahead + behind + 2 * log) / step**2
        tiny = mpmath.mpf(10) ** -300  # below this, double precision thins out
        near = 1e-13 + 8 * ROUNDOFF * abs(x)  # a tail like exp(-c x) magnifies the rounding of c x
        assert abs(mpmath.mpf(one.cdf(at)[0]) - cdf) <= near * cdf + tiny
        assert abs(mpmath.mpf(one.slope(at)[0]) - slope) <= slope_bound(one, x, slope, curvature) + tiny
        assert abs(mpmath.mpf(one.curvature(at)[0]) - curvature) <= 100 * near * abs(curvature) + tiny


def slope_bound(one, x, slope, curvature):
    """What `slope_error` and `argument_error` promise."""
    return ROUNDOFF * (one.slope_error * abs(slope) + 1.01 * one.argument_error * abs(x) * abs(curvature))


@pytest.mark.slow
@pytest.mark.parametrize("one", LINKS.values(), ids=LINKS)
def test_slope_error_holds_on_a_grid(one):
    x = np.random.default_rng(5).uniform(-40, 40, 2_000)
    slopes = one.slope(x)
    curvatures = one.curvature(x)
    with mpmath.workdps(60):
        for value, computed, curvature in zip(x, slopes, curvatures, strict=True):
            if one.name == "secant":
                true = -mpmath.sech(mpmath.pi * mpmath.mpf(value) / 2) / 2 / exact("secant", value)
            else:
                t = 1 / (1 + mpmath.exp(mpmath.mpf(value)))
                true = -t if one.name == "logistic" else -6 * t * t / (1 + 2 * t)
            assert abs(mpmath.mpf(computed) - true) <= slope_bound(one, value, true, curvature)


@pytest.mark.parametrize("one", LINKS.values(), ids=LINKS)
def test_every_registered_link_is_known_by_its_name(one):
    assert link(one.name) is one
    assert link(one) is one


def test_constants_have_rigorous_bounds():
    """The largest value on a grid plus half a step times a bound on the derivative: see the links' docstrings."""
    assert (LOGISTIC.kappa_1, LOGISTIC.kappa_2) == (1, 0.25)
    cells = 2_000_000
    y = np.linspace(math.pi / cells / 2, math.pi * (1 - 0.5 / cells), cells)
    share = np.sin(y) / y
    largest = float(((math.pi / 2) ** 2 * share * (share - np.cos(y))).max())
    assert largest + 3.1 * math.pi / cells + 1e-12 < SECANT.kappa_2 < largest + 1e-4
    t = np.linspace(0, 1, cells + 1)
    largest = float((12 * (1 - t) * t**2 * (1 + t) / (1 + 2 * t) ** 2).max())
    assert largest + 90 / cells + 1e-12 < BEST_OF_THREE.kappa_2 < largest + 2e-4


@pytest.mark.parametrize("one", LINKS.values(), ids=LINKS)
def test_kappa_1_is_a_sharp_bound(one):
    x = np.linspace(-40, 0, 40_001)
    influence = -one.slope(x) / one.cdf(-x)
    assert influence.max() <= one.kappa_1 * (1 + 1e-14)
    assert influence.max() > one.kappa_1 * (1 - 1e-9)


@pytest.mark.parametrize(("name", "reason"), [("probit", r"\(A1\)"), ("laplace", r"\(A2\)"), ("cauchy", r"\(A2\)")])
def test_links_without_a_guarantee_are_refused_by_name(name, reason):
    assert name in REFUSED
    with pytest.raises(Unsupported, match=f"no guarantee is known for the {name} link.*{reason}"):
        link(name)


@pytest.mark.parametrize("change", [{}, {"kappa_1": 0.9}, {"kappa_2": 0.2}, {"name": "mine"}])
def test_constants_that_nobody_proved_carry_no_guarantee(change):
    """Nor do those that a look at a few points would not contradict."""
    mine = replace(LOGISTIC, **{"cdf": lambda x: LOGISTIC.cdf(x), **change})
    with pytest.raises(Unsupported, match=r"no guarantee is known for the \w+ link, whose constants"):
        ObjectivePerturbation(3, 10, Protection("comparison"), 1, 5, link=mine)
    with pytest.raises(Unsupported, match=r"no guarantee is known for the \w+ link, whose constants"):
        rank([("a", "b")], 1, protect="comparison", link=mine, items=["a", "b"])


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="link must be one of logistic, secant, best-of-three, got 'logit'"):
        link("logit")
