"""What is publicly assumed about the scores: independent draws from one law with density f.

Everything that the expansion of the error probability (Theorem 3.6) needs of the n - 1 spacings of n such draws
collapses, by binomial identities, to integrals of f. With (n)_k = n (n-1) ... (n-k+1):

* sum of f_Wi(w) = (n)_2 times the integral of (1 - F(x+w) + F(x))^(n-2) f(x) f(x+w); at 0 it is (n)_2 I2,
  Proposition 3.14, and its slope there is (n)_2 (q' - (n-2) I3);
* sum over neighbours of f_Wi,Wi+1(0, 0) = (n)_3 I3; over the other pairs, (n)_4 I2^2 / 2.

I_k is the integral of f^k, and q' the slope at 0+ of q(w), the integral of f(x) f(x+w): minus half the sum of the
squared jumps of f (where a density starts or ends abruptly). The sums over i are binomial (trinomial) expansions of
(F + 1 - F)^(n-2), once the order statistics' densities n!/((i-1)! (n-i-1)!) F^(i-1) (1-F)^(n-i-1) f f are written out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rankdp.checks import positive
from rankdp.errors import InputError
from rankdp.types import Floats


class Jump(NamedTuple):
    """A point where the density jumps: its values, and its slopes, on the left and on the right."""

    left: float
    right: float
    left_slope: float
    right_slope: float


class ScoreLaw(ABC):
    """A law of one score; scores are independent draws from it."""

    support: tuple[float, float]
    """The smallest interval that holds the law, perhaps infinite."""
    jumps: tuple[Jump, ...] = ()
    """Where f jumps."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """F(x)."""

    @abstractmethod
    def density(self, x: ArrayLike) -> Floats:
        """f(x)."""

    @abstractmethod
    def quantile(self, u: ArrayLike) -> Floats:
        """The x with F(x) = u."""

    @abstractmethod
    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws, for simulations."""

    @abstractmethod
    def power_integral(self, k: int) -> float:
        """I_k, the integral of f^k; inf where it diverges."""

    @abstractmethod
    def slope_integral(self) -> float:
        """The integral of f'^2 between the jumps; inf where it diverges."""

    @abstractmethod
    def difference_density(self, d: ArrayLike) -> Floats:
        """The density of ``|X - X'|`` at d >= 0: 2 q(d)."""

    @property
    def squared_norm(self) -> float:
        """I_2 = ``||f||^2``, all that the first-order error asks of the law (Proposition 3.14)."""
        return self.power_integral(2)

    def spacing_density(self, n: int) -> float:
        """The sum of f_Wi(0+), C_X of (20): (n)_2 I2."""
        return n * (n - 1) * self.squared_norm

    def spacing_slope(self, n: int) -> float:
        """The sum of f'_Wi(0+): (n)_2 (q' - (n-2) I3)."""
        return n * (n - 1) * (self.correlation_slope - (n - 2) * self.power_integral(3))

    def neighbour_density(self, n: int) -> float:
        """The sum over i of f_Wi,Wi+1(0, 0): (n)_3 I3."""
        return n * (n - 1) * (n - 2) * self.power_integral(3)

    def far_density(self, n: int) -> float:
        """The sum over j > i + 1 of f_Wi,Wj(0, 0): (n)_4 I2^2 / 2."""
        return n * (n - 1) * (n - 2) * (n - 3) * self.squared_norm**2 / 2

    @property
    def correlation_slope(self) -> float:
        """q'(0+) = -1/2 sum of (f+ - f-)^2 over the jumps."""
        return -sum((jump.right - jump.left) ** 2 for jump in self.jumps) / 2

    @property
    def correlation_curvature(self) -> float:
        """q''(0+) = -integral of f'^2 - sum over the jumps of (f+ - f-) (f'- + f'+)."""
        steps = sum((jump.right - jump.left) * (jump.left_slope + jump.right_slope) for jump in self.jumps)
        return -self.slope_integral() - steps

    @property
    def triple_slope(self) -> float:
        """The slopes of the integral of f(x) f(x+u) f(x+u+v) in u and in v, added: -sum (f+ - f-)^2 (f+ + f-)."""
        return -sum((jump.right - jump.left) ** 2 * (jump.right + jump.left) for jump in self.jumps)

    def edges(self, cells: int, least: float = 1e-10) -> Floats:
        """Edges of cells of about equal probability, finer towards infinite ends, which are cut off at ``least``."""
        u = np.linspace(0, 1, cells + 1)
        low, high = self.support
        u[0], u[-1] = (0.0 if math.isfinite(low) else least), (1.0 if math.isfinite(high) else 1 - least)
        more = np.geomspace(least, u[1], 24)[:-1]
        u = np.concatenate([u, more if math.isinf(low) else [], 1 - more if math.isinf(high) else []])
        return np.unique(self.quantile(np.sort(u)))


@dataclass(frozen=True)
class Uniform(ScoreLaw):
    """Uniform on (low, high)."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(f"a uniform law needs finite low < high, got low={self.low!r} and high={self.high!r}")

    @property
    def width(self) -> float:
        """high - low."""
        return self.high - self.low

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override]
        """(low, high)."""
        return self.low, self.high

    @property
    def jumps(self) -> tuple[Jump, ...]:  # type: ignore[override]
        """At both ends."""
        return (Jump(0.0, 1 / self.width, 0.0, 0.0), Jump(1 / self.width, 0.0, 0.0, 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """Linear."""
        return np.clip((np.asarray(x, dtype=float) - self.low) / self.width, 0, 1)

    def density(self, x: ArrayLike) -> Floats:
        """Constant."""
        x = np.asarray(x, dtype=float)
        return np.where((x >= self.low) & (x <= self.high), 1 / self.width, 0.0)

    def quantile(self, u: ArrayLike) -> Floats:
        """Linear."""
        return np.asarray(self.low + self.width * np.asarray(u, dtype=float))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return self.low + self.width * rng.random(shape)

    def power_integral(self, k: int) -> float:
        """width^(1-k)."""
        return float(self.width ** (1 - k))

    def slope_integral(self) -> float:
        """0."""
        return 0.0

    def difference_density(self, d: ArrayLike) -> Floats:
        """2 (width - d)/width^2."""
        return np.maximum(2 * (self.width - np.asarray(d, dtype=float)) / self.width**2, 0)


@dataclass(frozen=True)
class Normal(ScoreLaw):
    """Normal with this mean and standard deviation."""

    mean: float = 0.0
    deviation: float = 1.0
    support = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        positive("deviation", self.deviation)

    def cdf(self, x: ArrayLike) -> Floats:
        """Phi."""
        return np.asarray(scipy.special.ndtr((np.asarray(x, dtype=float) - self.mean) / self.deviation))

    def density(self, x: ArrayLike) -> Floats:
        """The bell."""
        z = (np.asarray(x, dtype=float) - self.mean) / self.deviation
        return np.asarray(np.exp(-np.square(z) / 2) / (self.deviation * math.sqrt(2 * math.pi)))

    def quantile(self, u: ArrayLike) -> Floats:
        """The probit."""
        return np.asarray(self.mean + self.deviation * scipy.special.ndtri(u))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(rng.normal(self.mean, self.deviation, shape))

    def power_integral(self, k: int) -> float:
        """(2 pi s^2)^((1-k)/2) / sqrt(k); k = 2: 1/(2 s sqrt(pi)), Remark 3.15."""
        return float((2 * math.pi * self.deviation**2) ** ((1 - k) / 2) / math.sqrt(k))

    def slope_integral(self) -> float:
        """1/(4 sqrt(pi) s^3)."""
        return 1 / (4 * math.sqrt(math.pi) * self.deviation**3)

    def difference_density(self, d: ArrayLike) -> Floats:
        """The half-normal of variance 2 s^2."""
        z = np.asarray(d, dtype=float) / self.deviation
        return np.asarray(np.exp(-np.square(z) / 4) / (self.deviation * math.sqrt(math.pi)))


@dataclass(frozen=True)
class Exponential(ScoreLaw):
    """Exponential with this rate lambda, starting at ``low``."""

    rate: float = 1.0
    low: float = 0.0

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override]
        """(low, inf)."""
        return self.low, math.inf

    @property
    def jumps(self) -> tuple[Jump, ...]:  # type: ignore[override]
        """At its start."""
        return (Jump(0.0, self.rate, 0.0, -(self.rate**2)),)

    def cdf(self, x: ArrayLike) -> Floats:
        """1 - exp(-lambda x)."""
        return -np.expm1(-self.rate * np.maximum(np.asarray(x, dtype=float) - self.low, 0))

    def density(self, x: ArrayLike) -> Floats:
        """lambda exp(-lambda x)."""
        x = np.asarray(x, dtype=float) - self.low
        return np.where(x >= 0, self.rate * np.exp(-self.rate * np.maximum(x, 0)), 0.0)

    def quantile(self, u: ArrayLike) -> Floats:
        """-log(1-u)/lambda."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.low - np.log1p(-np.asarray(u, dtype=float)) / self.rate)

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return self.low + rng.standard_exponential(shape) / self.rate

    def power_integral(self, k: int) -> float:
        """lambda^(k-1)/k."""
        return self.rate ** (k - 1) / k

    def slope_integral(self) -> float:
        """lambda^3/2."""
        return self.rate**3 / 2

    def difference_density(self, d: ArrayLike) -> Floats:
        """Exponential again, without memory."""
        return np.asarray(self.rate * np.exp(-self.rate * np.asarray(d, dtype=float)))
