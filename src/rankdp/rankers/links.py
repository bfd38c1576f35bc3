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
from rankdp.types import Flags, Floats

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Link:
    """F, its logarithm, the first two derivatives of -log F, and the constants that a guarantee needs."""

    name: str
    cdf: Function
    log_cdf: Function
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


def _logistic_log(x: Floats) -> Floats:
    return np.asarray(np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x))))


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
    log_cdf=_logistic_log,
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


def _secant_log(x: Floats) -> Floats:
    _, over, tail = _secant_parts(x)
    return np.where(x < 0, math.log(2 / math.pi) + x * (math.pi / 2) + np.log(over), np.log1p(-tail))


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
    log_cdf=_secant_log,
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


def _majority_log(x: Floats) -> Floats:
    t = _expit(-x)
    tail = np.minimum(t, 0.5)  # t itself where it is used
    return np.where(x < 0, 2.0 * _logistic_log(x) + np.log1p(2.0 * t), np.log1p(-tail * tail * (3.0 - 2.0 * tail)))


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
    log_cdf=_majority_log,
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
    """The link of that name; a `Link` of one's own is returned as it is once `check_link` has accepted it."""
    if isinstance(name, Link):
        if name not in LINKS.values():
            check_link(name)
        return name
    if name in REFUSED:
        raise Unsupported(f"no guarantee is known for the {name} link: {REFUSED[name]}")
    if name not in LINKS:
        raise InputError(f"link must be one of {', '.join(LINKS)}, got {name!r}")
    return LINKS[name]


_GRID = np.linspace(-30.0, 0.0, 30_001)
_TAIL = -np.geomspace(30.1, 700.0, 400)[::-1]


def check_link(one: Link) -> None:
    """Refuse a link that breaks (A0), (A1) or (A2) on a fine grid or in the tails, with the reason.

    It can find a fault but cannot prove that there is none: the constants of a link need a proof. They are compared
    with the largest values found.
    """
    x = np.concatenate([_TAIL, _GRID])
    both, body = np.concatenate([x, -x]), np.linspace(-12.0, 12.0, 2401)
    with np.errstate(all="ignore"):
        cdf, above, log, slope = one.cdf(x), one.cdf(-x), one.log_cdf(x), one.slope(x)
        curvature = one.curvature(both)
    for what, values in {"F": cdf, "log F": log, "(-log F)'": slope, "(-log F)''": curvature[: len(x)]}.items():
        _refuse(one, ~np.isfinite(values), f"{what} is not a finite number at x = {{:g}}", x)
    _refuse(one, np.abs(cdf + above - 1.0) > 1e-12, "F(x) + F(-x) is not 1 at x = {:g} (A0)", x)
    _refuse(one, np.diff(log) <= 0, "F is not strictly increasing near x = {:g} (A0)", x)
    large = cdf > 1e-280
    off = np.abs(np.log(cdf[large]) - log[large]) > 1e-9 * np.maximum(1.0, np.abs(log[large]))
    _refuse(one, off, "log_cdf is not the logarithm of cdf")
    # F'/(F (1 - F)) is even, and a bounded one has settled long before x = -700
    influence = -slope / above
    halfway, end = influence[np.searchsorted(x, -350.0)], influence[0]
    growth = f"F'/(F (1 - F)) keeps growing, from {halfway:.4g} at x = -350 to {end:.4g} at x = -700 (A1)"
    _refuse(one, np.array([end > 1.05 * halfway and end > 1.05 * influence[-1]]), growth)
    steep = f"F'/(F (1 - F)) is {influence.max():.9g} at x = {{:g}}, above kappa_1 = {one.kappa_1:.9g} (A1)"
    _refuse(one, influence > one.kappa_1 * (1 + 1e-12), steep, x, influence)
    bent = f"(-log F)'' is {curvature.min():.4g} at x = {{:g}}: -log F is not convex (A2)"
    _refuse(one, curvature < 0, bent, both, -curvature)
    flat = (curvature == 0) & (np.abs(both) <= 30.0)
    _refuse(one, flat, "(-log F)'' is 0 at x = {:g}: -log F is not strictly convex (A2)", both)
    curved = f"(-log F)'' is {curvature.max():.9g} at x = {{:g}}, above kappa_2 = {one.kappa_2:.9g} (A2)"
    _refuse(one, curvature > one.kappa_2 * (1 + 1e-12), curved, both, curvature)
    # central differences, where they are accurate
    for derivative, function, reason in (
        (one.slope, lambda at: -one.log_cdf(at), "slope is not the derivative of -log_cdf"),
        (one.curvature, one.slope, "curvature is not the derivative of slope (is F twice differentiable?)"),
    ):
        difference = (function(body + 1e-4) - function(body - 1e-4)) / 2e-4
        _refuse(one, np.abs(difference - derivative(body)) > 1e-6, reason)


def _refuse(one: Link, wrong: Flags, reason: str, x: Floats | None = None, size: Floats | None = None) -> None:
    """Refuse a link that is wrong somewhere; the reason names the first such x, or the one of the largest ``size``."""
    if wrong.any():
        at = "" if x is None else x[np.argmax(wrong if size is None else size)]
        raise Unsupported(f"no guarantee is known for the {one.name} link: {reason.format(at)}")
