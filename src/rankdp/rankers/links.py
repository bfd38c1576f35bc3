"""Links: with what probability F(x) an item wins when its strength exceeds the other's by x.

Cai's conditions, under which objective perturbation has a guarantee:

    (A0)  F is strictly increasing and F(-x) = 1 - F(x)
    (A1)  kappa_1 = sup F'/(F (1 - F)) is finite
    (A2)  -log F has a second derivative above 0 everywhere and a finite kappa_2 = sup (-log F)''

Privacy needs the two suprema and nothing else; the lower bound on the curvature for |x| <= 4 in (2.4) serves the
rates only. Everything here is accurate for |x| up to 700 and beyond: no tail is a difference of nearly equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rankdp.errors import InputError, Unsupported
from rankdp.rankers import fixed_point
from rankdp.rankers.fixed_point import ONE, product, quotient
from rankdp.types import Floats

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Link:
    """F, the first two derivatives of -log F, and the constants that a guarantee needs."""

    name: str
    cdf: Function
    slope: Function
    """(-log F)' = -F'/F, below 0."""
    curvature: Function
    """(-log F)'', above 0."""
    kappa_1: float
    """An upper bound on F'/(F (1 - F)), rounded up."""
    kappa_2: float
    """An upper bound on (-log F)'', rounded up."""
    slope_error: float = math.inf
    """How many units of roundoff (2^-53) the computed slope is off at most, relative to itself …"""
    argument_error: float = 0.0
    """… and by how many units, relative to x, the x may be off for which it is computed (where x is scaled first)."""
    exact_slopes: Callable[[int], tuple[int, int]] | None = None
    """(log F)' at x and at -x in fixed point, each within `fixed_point.ERROR`; None where it is not implemented."""


def _expit(x: Floats) -> Floats:
    """1/(1 + exp(-x)), without overflow and with a small relative error on both sides."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def _logistic_curvature(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.asarray(small / (1.0 + small) ** 2)


def _by_sign(x: int, near: int, far: int) -> tuple[int, int]:
    """``far`` belongs to the larger of x and -x."""
    return (far, near) if x >= 0 else (near, far)


def _exact_shares(x: int) -> tuple[int, int]:
    """1/(1 + e^x) and 1/(1 + e^-x), which is (log F)' of the logistic link."""
    small = fixed_point.exp(abs(x))
    far = quotient(small, ONE + small)
    return _by_sign(x, ONE - far, far)


LOGISTIC = Link(
    "logistic",
    cdf=_expit,
    slope=lambda x: -_expit(-x),
    curvature=_logistic_curvature,
    kappa_1=1.0,
    kappa_2=0.25,
    slope_error=16,
    exact_slopes=_exact_shares,
)
"""Bradley-Terry-Luce: F = s(x) = 1/(1 + e^-x).

F' = s (1 - s), so F'/(F (1 - F)) is 1 everywhere; (-log F)'' = s (1 - s), at most 1/4, at x = 0.
"""


def _secant_parts(x: Floats) -> tuple[Floats, Floats, Floats]:
    """w = exp(-|z|) for z = pi x/2, atan(w)/w, and the smaller tail (2/pi) atan(w)."""
    w = np.exp(-np.abs(x) * (math.pi / 2))
    tail = np.arctan(w)
    over = np.divide(tail, w, out=np.ones_like(w), where=w > 0)
    return w, over, tail * (2 / math.pi)


def _secant_cdf(x: Floats) -> Floats:
    tail = _secant_parts(x)[2]
    return np.where(x < 0, tail, 1.0 - tail)


def _secant_slope(x: Floats) -> Floats:
    w, over, tail = _secant_parts(x)
    round_ = 1.0 + w * w
    return np.where(x < 0, -(math.pi / 2) / (round_ * over), -w / (round_ * (1.0 - tail)))


def _secant_curvature(x: Floats) -> Floats:
    # With y = pi F and S = sin(y)/y the curvature is (pi/2)^2 S (S - cos y); sin y = sech z and cos y = -tanh z.
    # S - cos y cancels for small y: there it is y^2/3 - y^4/30 + y^6/840 - y^8/45360 + …
    y = math.pi * _secant_cdf(x)
    w = np.exp(-np.abs(x) * (math.pi / 2))
    share = -_secant_slope(x) * (2 / math.pi)
    cosine = -np.sign(x) * (1.0 - w * w) / (1.0 + w * w)
    square = y * y
    series = square / 3 * (1 - square / 10 * (1 - square / 28 * (1 - square / 54 * (1 - square / 88))))
    return (math.pi / 2) ** 2 * share * np.where(y < 0.3, series, share - cosine)


def _exact_secant(x: int) -> tuple[int, int]:
    """As `_secant_slope`: (pi/2)/((1 + w^2) atan(w)/w) on the lower side, w/((1 + w^2)(1 - tail)) on the upper."""
    pi = fixed_point.pi()
    w = fixed_point.exp(product(abs(x), pi) // 2)
    over, round_ = fixed_point.arctan_share(w), ONE + product(w, w)
    tail = quotient(2 * product(w, over), pi)
    return _by_sign(x, quotient(pi // 2, product(round_, over)), quotient(w, product(round_, ONE - tail)))


SECANT = Link(
    "secant",
    cdf=_secant_cdf,
    slope=_secant_slope,
    curvature=_secant_curvature,
    kappa_1=2.0,
    kappa_2=1.0274,
    slope_error=32,
    argument_error=3,
    exact_slopes=_exact_secant,
)
"""The hyperbolic secant law: F = (2/pi) atan(exp(pi x/2)), with density F' = sech(pi x/2)/2.

kappa_1: with u = F - 1/2, sech(pi x/2) = cos(pi u), so F'/(F (1 - F)) = 2 cos(pi u)/(1 - 4 u^2). By the product
cos(pi u) = prod (1 - 4 u^2/(2k-1)^2) this is at most 2, with equality at x = 0.

kappa_2: (-log F)'' = (pi/2)^2 S (S - cos y) with y = pi F in (0, pi) and S = sin(y)/y. It is above 0 (tan y > y below
pi/2, and cos y <= 0 from there on). |S| <= 1, |S'| <= 1/2 and |S - cos y| <= 2 bound its derivative in y by
(pi/2)^2 5/2 < 6.2, so its maximum over a grid of y plus 3.1 times the grid's step is a rigorous bound (the tests
compute it).
"""


def _majority_cdf(x: Floats) -> Floats:
    s = _expit(x)
    t = _expit(-x)
    return np.where(x < 0, s * s * (1.0 + 2.0 * t), 1.0 - t * t * (1.0 + 2.0 * s))


def _majority_slope(x: Floats) -> Floats:
    t = _expit(-x)
    return -6.0 * t * t / (1.0 + 2.0 * t)


def _majority_curvature(x: Floats) -> Floats:
    s, t = _expit(x), _expit(-x)
    return 12.0 * s * t * t * (1.0 + t) / (1.0 + 2.0 * t) ** 2


def _exact_majority(x: int) -> tuple[int, int]:
    """6 t^2/(1 + 2 t) for t = 1/(1 + e^x) and for 1 - t."""
    down, up = (quotient(6 * product(t, t), ONE + 2 * t) for t in _exact_shares(x))
    return down, up


BEST_OF_THREE = Link(
    "best-of-three",
    cdf=_majority_cdf,
    slope=_majority_slope,
    curvature=_majority_curvature,
    kappa_1=2.0,
    kappa_2=0.5749,
    slope_error=48,
    exact_slopes=_exact_majority,
)
"""The majority of three logistic duels: F = s^2 (3 - 2s), s = 1/(1 + e^-x), the smoothstep of the logistic function.

F' = 6 s^2 (1-s)^2 and 1 - F = (1-s)^2 (1 + 2s).
kappa_1: F'/(F (1 - F)) = 6/((3 - 2s)(1 + 2s)), and (3 - 2s)(1 + 2s) = 3 + 4 s (1 - s) lies between 3 and 4: at most 2.
kappa_2: (-log F)'' = 12 (1 - t) t^2 (1 + t)/(1 + 2t)^2 with t = 1 - s, above 0. Its derivative in t is at most
12 (2 + 4 + 1 + 8) = 180 in size, so its maximum over a grid of t plus 90 times the grid's step is a rigorous bound (the
tests compute it).
"""

LINKS: Mapping[str, Link] = {one.name: one for one in (LOGISTIC, SECANT, BEST_OF_THREE)}

REFUSED: Mapping[str, str] = {
    "probit": "F'/(F (1 - F)) grows like |x|, so one comparison has no bounded influence (A1)",
    "laplace": "-log F is a straight line for x < 0, so it is not strictly convex (A2)",
    "cauchy": "-log F grows like log |x| for x < 0, so it is not convex (A2)",
}


def link(name: str | Link) -> Link:
    """The link of that name, or the link itself. Other links serve `bradley_terry.fit` only: nothing is proven."""
    known = LINKS.get(name.name if isinstance(name, Link) else name)
    if name is known or (known is not None and isinstance(name, str)):
        return known
    if isinstance(name, Link):
        raise Unsupported(f"no guarantee is known for the {name.name} link, whose constants are not proven")
    if name in REFUSED:
        raise Unsupported(f"no guarantee is known for the {name} link: {REFUSED[name]}")
    raise InputError(f"link must be one of {', '.join(LINKS)}, got {name!r}")
