"""Any scipy distribution with a density as the law of the scores: what has no closed form is integrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import Unsupported
from rankdp.theory.quadrature import unit_rule
from rankdp.theory.score_laws import FloatArray, Jump, ScoreLaw

_LEAST = 1e-30  # some of scipy's quantile functions warn further out


@dataclass(frozen=True)
class Beta:
    """A beta distribution with the methods of a frozen scipy one, without scipy.stats, which takes long to import."""

    a: float
    b: float
    low: float
    width: float

    def support(self) -> tuple[float, float]:
        """Its ends."""
        return self.low, self.low + self.width

    def cdf(self, x: ArrayLike) -> FloatArray:
        """The regularised incomplete beta function."""
        from scipy.special import betainc

        return np.asarray(betainc(self.a, self.b, np.clip(self._share(x), 0, 1)))

    def pdf(self, x: ArrayLike) -> FloatArray:
        """u^(a-1) (1-u)^(b-1) / (width B(a, b)), u = (x - low)/width."""
        from scipy.special import betaln, xlog1py, xlogy

        u = self._share(x)
        inside = np.clip(u, 0, 1)
        log = xlogy(self.a - 1, inside) + xlog1py(self.b - 1, -inside) - betaln(self.a, self.b)
        return np.where(u == inside, np.exp(log), 0) / self.width

    def ppf(self, q: ArrayLike) -> FloatArray:
        """The inverse of the cdf."""
        from scipy.special import betaincinv

        return np.asarray(self.low + self.width * betaincinv(self.a, self.b, q))

    def rvs(self, size: int | tuple[int, ...], random_state: np.random.Generator) -> FloatArray:
        """Independent draws."""
        return np.asarray(self.low + self.width * random_state.beta(self.a, self.b, size))

    def _share(self, x: ArrayLike) -> FloatArray:
        return np.asarray((np.asarray(x, dtype=float) - self.low) / self.width)


class Tabulated(ScoreLaw):
    """A frozen scipy distribution with a density; integrals by quadrature, jumps only at the ends of its support."""

    def __init__(self, frozen: Any) -> None:
        self.frozen = frozen
        low, high = frozen.support()
        self._support = (float(low), float(high))

    @property
    def support(self) -> tuple[float, float]:
        """As scipy says."""
        return self._support

    def cdf(self, x: ArrayLike) -> FloatArray:
        """As scipy says."""
        return np.asarray(self.frozen.cdf(x))

    def density(self, x: ArrayLike) -> FloatArray:
        """As scipy says."""
        return np.asarray(self.frozen.pdf(x))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """As scipy says."""
        u = np.asarray(u, dtype=float)
        return np.asarray(self.frozen.ppf(np.where(u > 0, np.maximum(u, _LEAST), u)))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws."""
        return np.asarray(self.frozen.rvs(size=shape, random_state=rng))

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes x and weights dx on the support: tanh-sinh in t, x rational in t where an end is infinite."""
        t, rest, weights = unit_rule(1 / 48)
        low, high = self.support
        center, scale = float(self.quantile(0.5)), float(self.quantile(0.84) - self.quantile(0.16)) / 2
        if math.isfinite(low) and math.isfinite(high):
            x = np.where(t < 0.5, low + (high - low) * t, high - (high - low) * rest)
            slope = np.full_like(t, high - low)
        elif math.isfinite(low):
            x, slope = low + scale * t / rest, scale / rest**2
        elif math.isfinite(high):
            x, slope = high - scale * t / rest, scale / rest**2
        else:
            odds = t / rest
            x, slope = center + scale * (odds - 1 / odds) / 2, scale * (1 + odds**-2) / 2 / rest**2
        inside = np.isfinite(x) & np.isfinite(slope) & (self.density(x) < math.inf)
        return x[inside], (weights * slope)[inside]

    def power_integral(self, k: int) -> float:
        """By quadrature; inf where the density has a pole of that strength."""
        x, weights = self._rule
        f = self.density(x)
        if not math.isclose(float(np.sum(weights * f)), 1, abs_tol=1e-4):
            raise Unsupported(
                "the law's density does not integrate to 1 by quadrature: give a smoother law or a sample"
            )
        total = float(np.sum(weights * f**k))
        for end, last in zip(self.support, (x[0], x[-1]), strict=True):
            power = k * self._pole(end) + 1
            if power <= 0:
                return math.inf
            if power < 1:  # f^k grows like distance^(power - 1): what is left beyond the last node
                gap = max(abs(end - last), 1e-300)
                total += gap * float(self.density(last)) ** k / power
        return total

    def _pole(self, end: float) -> float:
        """The exponent s with f ~ distance^s at an end of the support, if negative; else 0."""
        if math.isinf(end):
            return 0.0
        inward = float(self.quantile(0.5)) - end
        near, nearer = (float(self.density(end + inward * distance)) for distance in (1e-6, 1e-9))
        if near <= 0 or nearer <= 0:
            return 0.0
        power = (math.log(near) - math.log(nearer)) / math.log(1e3)
        return power if power < -1e-3 else 0.0

    def _slope(self, x: FloatArray, inward: float = 0.0) -> FloatArray:
        """f' by differences: central, or one-sided (inward = 1 or -1) at an end."""
        step = 1e-5 * float(self.quantile(0.84) - self.quantile(0.16))
        f = self.density
        if inward:
            a, b, c = (f(x + inward * step * m) for m in (1e-6, 1, 2))
            return inward * (-3 * a + 4 * b - c) / (2 * step)
        return (f(x + step) - f(x - step)) / (2 * step)

    @cached_property
    def _jumps(self) -> tuple[Jump, ...]:
        found = []
        for end, inward in zip(self.support, (1.0, -1.0), strict=True):
            if math.isfinite(end):
                near = end + inward * 1e-11 * float(self.quantile(0.84) - self.quantile(0.16))
                value = float(self.density(near))
                if self._pole(end) < 0:
                    value = math.inf
                if value > 1e-6 * float(self.density(self.quantile(0.5))):
                    slope = float(self._slope(np.asarray(end), inward))
                    found.append(Jump(0.0, value, 0.0, slope) if inward > 0 else Jump(value, 0.0, slope, 0.0))
        return tuple(found)

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """At ends of the support where the density does not vanish."""
        return self._jumps

    def slope_integral(self) -> float:
        """By quadrature over the inside of the support."""
        x, weights = self._rule
        low, high = self.support
        step = 2e-5 * float(self.quantile(0.84) - self.quantile(0.16))
        inside = (x > low + step) & (x < high - step)
        terms = weights[inside] * np.square(self._slope(x[inside]))
        total = float(np.sum(terms))
        return math.inf if max(float(terms[0]), float(terms[-1])) > 1e-3 * total else total

    def difference_density(self, d: ArrayLike) -> FloatArray:
        """2 times the integral of f(x) f(x + d), x from one end of the support to the other less d."""
        d = np.asarray(d, dtype=float)
        low, high = self.support
        flat = d.ravel()
        if math.isfinite(low) and math.isfinite(high):
            t, _, weights = unit_rule()
            width = np.maximum(high - low - flat, 0)
            x = low + width[:, None] * t
            values = np.nan_to_num(self.density(x) * self.density(x + flat[:, None]), posinf=0.0) @ weights * width
        else:
            x, weights = self._rule
            values = (self.density(x) * self.density(x + flat[:, None])) @ weights
            if math.isfinite(high):
                values = (self.density(x) * self.density(x - flat[:, None])) @ weights
        return np.asarray(2 * values).reshape(d.shape)
