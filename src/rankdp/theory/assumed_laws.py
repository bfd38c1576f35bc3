"""What is publicly assumed about the scores, in the words people have: a name, a scipy distribution, a public sample.

What has no closed form is integrated (``Tabulated``). From a sample (``Sampled``) it is a Gaussian kernel estimate,
but for ``||f||^2``: half the density of ``|X - X'|`` at 0+, estimated from the differences of all pairs with the
boundary kernel K(u) = 4 - 6u on (0, 1), which integrates to 1 and has no first moment, so that the bias is of the
second order in the bandwidth even where f jumps (there the density of the difference has a slope at 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import positive
from rankdp.errors import InputError, Unsupported
from rankdp.theory.quadrature import unit_rule
from rankdp.theory.score_laws import Exponential, Jump, Normal, ScoreLaw, Uniform
from rankdp.types import Floats

KEPT = 2000  # scores of a sample that the kernel estimate is made of
CELLS = 2048  # of its grid
_LEAST = 1e-30  # some of scipy's quantile functions warn further out


def score_law(law: Any, low: float = 0.0, high: float = 1.0, **shape: float) -> ScoreLaw:
    """The law of the scores: a ``ScoreLaw``, a frozen scipy distribution, a public sample, or a name on (low, high).

    The names: "uniform"; "normal" with (low, high) three standard deviations around its middle; "exponential" from low
    on, five means long; "beta" with shapes a and b (2 and 2 unless told). They are plain descriptions of scores that
    are declared to lie in (low, high); the tails beyond it are kept, as the closed forms want.
    """
    if isinstance(law, ScoreLaw):
        return law
    if hasattr(law, "ppf") and hasattr(law, "pdf"):
        return Tabulated(law)
    if not isinstance(law, str) and hasattr(law, "__len__"):
        return Sampled(law)
    uniform = Uniform(float(low), float(high))  # checks the range
    if law == "uniform":
        return uniform
    if law == "normal":
        return Normal((uniform.low + uniform.high) / 2, uniform.width / 6)
    if law == "exponential":
        return Exponential(5 / uniform.width, uniform.low)
    if law == "beta":
        a, b = (positive(key, shape.get(key, 2.0)) for key in ("a", "b"))
        return Tabulated(Beta(a, b, uniform.low, uniform.width))
    raise InputError(
        "law must be one of uniform, normal, exponential, beta, a frozen scipy distribution or a public sample, "
        f"got {law!r}"
    )


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

    def cdf(self, x: ArrayLike) -> Floats:
        """The regularised incomplete beta function."""
        return np.asarray(scipy.special.betainc(self.a, self.b, np.clip(self._share(x), 0, 1)))

    def pdf(self, x: ArrayLike) -> Floats:
        """u^(a-1) (1-u)^(b-1) / (width B(a, b)), u = (x - low)/width."""
        u = self._share(x)
        inside = np.clip(u, 0, 1)
        log = scipy.special.xlogy(self.a - 1, inside) + scipy.special.xlog1py(self.b - 1, -inside)
        return np.where(u == inside, np.exp(log - scipy.special.betaln(self.a, self.b)), 0) / self.width

    def ppf(self, q: ArrayLike) -> Floats:
        """The inverse of the cdf."""
        return np.asarray(self.low + self.width * scipy.special.betaincinv(self.a, self.b, q))

    def rvs(self, size: int | tuple[int, ...], random_state: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(self.low + self.width * random_state.beta(self.a, self.b, size))

    def _share(self, x: ArrayLike) -> Floats:
        return np.asarray((np.asarray(x, dtype=float) - self.low) / self.width)


class Tabulated(ScoreLaw):
    """A frozen scipy distribution with a density; integrals by quadrature, jumps only at the ends of its support."""

    def __init__(self, frozen: Any) -> None:
        self.frozen = frozen
        low, high = frozen.support()
        self.support = float(low), float(high)
        self.spread = float(self.quantile(0.84) - self.quantile(0.16))

    def cdf(self, x: ArrayLike) -> Floats:
        """As scipy says."""
        return np.asarray(self.frozen.cdf(x))

    def density(self, x: ArrayLike) -> Floats:
        """As scipy says."""
        return np.asarray(self.frozen.pdf(x))

    def quantile(self, u: ArrayLike) -> Floats:
        """As scipy says."""
        u = np.asarray(u, dtype=float)
        return np.asarray(self.frozen.ppf(np.where(u > 0, np.maximum(u, _LEAST), u)))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(self.frozen.rvs(size=shape, random_state=rng))

    @cached_property
    def _rule(self) -> tuple[Floats, Floats]:
        """Nodes x and weights dx on the support: tanh-sinh in t, x rational in t where an end is infinite."""
        t, rest, weights = unit_rule(1 / 48)
        low, high = self.support
        center, scale = float(self.quantile(0.5)), self.spread / 2
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

    def _slope(self, x: Floats, inward: float = 0.0) -> Floats:
        """f' by differences: central, or one-sided (inward = 1 or -1) at an end."""
        step = 1e-5 * self.spread
        f = self.density
        if inward:
            a, b, c = (f(x + inward * step * m) for m in (1e-6, 1, 2))
            return inward * (-3 * a + 4 * b - c) / (2 * step)
        return (f(x + step) - f(x - step)) / (2 * step)

    @cached_property
    def jumps(self) -> tuple[Jump, ...]:  # type: ignore[override]
        """At ends of the support where the density does not vanish."""
        jumps = []
        for end, inward in zip(self.support, (1.0, -1.0), strict=True):
            if math.isfinite(end):
                value = float(self.density(end + inward * 1e-11 * self.spread)) if self._pole(end) == 0 else math.inf
                if value > 1e-6 * float(self.density(self.quantile(0.5))):
                    slope = float(self._slope(np.asarray(end), inward))
                    jumps.append(Jump(0.0, value, 0.0, slope) if inward > 0 else Jump(value, 0.0, slope, 0.0))
        return tuple(jumps)

    def slope_integral(self) -> float:
        """By quadrature over the inside of the support."""
        x, weights = self._rule
        low, high = self.support
        step = 2e-5 * self.spread
        inside = (x > low + step) & (x < high - step)
        terms = weights[inside] * np.square(self._slope(x[inside]))
        total = float(np.sum(terms))
        return math.inf if max(float(terms[0]), float(terms[-1])) > 1e-3 * total else total

    def difference_density(self, d: ArrayLike) -> Floats:
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


class Sampled(ScoreLaw):
    """The law behind a public sample of at least 10 different scores."""

    def __init__(self, scores: ArrayLike) -> None:
        x = np.sort(np.asarray(scores, dtype=float))
        if x.ndim != 1 or len(x) < 10 or not np.all(np.isfinite(x)) or x[0] == x[-1]:
            raise InputError(
                "a public sample must be a list of at least 10 finite scores that are not all equal, "
                f"got shape {x.shape}"
            )
        self.scores = x
        low, high = np.quantile(x, [0.25, 0.75])
        self.spread = min(float(np.std(x)), float(high - low) / 1.349) or float(np.std(x))
        self.bandwidth = 0.9 * self.spread * len(x) ** -0.2

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        """(x, F, f) of the kernel estimate on a grid; samples above KEPT are thinned to as many quantiles."""
        points = self.scores
        if len(points) > KEPT:
            points = np.quantile(points, (np.arange(KEPT) + 0.5) / KEPT)
        reach = 6 * self.bandwidth
        x = np.linspace(points[0] - reach, points[-1] + reach, CELLS + 1)
        cdf = np.zeros_like(x)
        for block in np.array_split(points, max(1, len(points) // 200)):
            cdf += scipy.special.ndtr((x[:, None] - block) / self.bandwidth).sum(axis=1)
        cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
        return x, cdf, np.gradient(cdf, x)

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override]
        """Where the kernel estimate is not negligible."""
        return float(self._table[0][0]), float(self._table[0][-1])

    def cdf(self, x: ArrayLike) -> Floats:
        """The kernel estimate's."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), self._table[0], self._table[1]))

    def density(self, x: ArrayLike) -> Floats:
        """The kernel estimate's."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), self._table[0], self._table[2], left=0.0, right=0.0))

    def quantile(self, u: ArrayLike) -> Floats:
        """The kernel estimate's."""
        return np.asarray(np.interp(np.asarray(u, dtype=float), self._table[1], self._table[0]))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """The smoothed bootstrap: a score of the sample, moved by the kernel."""
        return np.asarray(rng.choice(self.scores, shape) + self.bandwidth * rng.standard_normal(shape))

    def power_integral(self, k: int) -> float:
        """From pairs for k = 2 (see the module), from the kernel estimate for k > 2."""
        if k == 2:
            return self._norm
        x, _, f = self._table
        return float(np.trapezoid(f**k, x))

    def slope_integral(self) -> float:
        """The kernel estimate's."""
        x, _, f = self._table
        return float(np.trapezoid(np.gradient(f, x) ** 2, x))

    @cached_property
    def _norm(self) -> float:
        x, n = self.scores, len(self.scores)
        width = 1.5 * self.spread * n ** (-1 / 3)
        last = np.searchsorted(x, x + width, side="left")
        # sum over j > i of 4 - 6 (x_j - x_i)/width, by prefix sums
        total = np.concatenate([[0.0], np.cumsum(x)])
        index = np.arange(n)
        ahead = (4 + 6 * x / width) * (last - index - 1) - 6 / width * (total[last] - total[index + 1])
        mean = float(np.sum(ahead)) / (width * n * (n - 1))
        # a few scores may be far apart
        return mean if mean > 0 else float(np.trapezoid(self._table[2] ** 2, self._table[0]))

    def difference_density(self, d: ArrayLike) -> Floats:
        """2 times the integral of f(x) f(x+d) of the kernel estimate, by one Fourier transform."""
        x, _, f = self._table
        size = 2 * len(f)
        transform = np.fft.rfft(f, size)
        correlation = np.fft.irfft(transform * np.conj(transform), size)[: len(f)] * (x[1] - x[0])
        return np.asarray(np.interp(np.asarray(d, dtype=float), x - x[0], 2 * correlation, right=0.0))
