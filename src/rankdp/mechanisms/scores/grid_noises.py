"""Five kinds of noise for scores, on the integers of a public grid of K steps; neighbours shift one of them by s <= K.

*Laplace*: P(j) proportional to ``exp(-|j| eps/K)``. eps-DP: ``|j + s| <= |j| + K``.

*Staircase* (Geng, Kairouz, Oh, Viswanath 2015): P(j) proportional to ``exp(-eps level(|j|))``, where the level of m is
i for i K <= m < i K + r and i + 1 from there to (i+1) K. eps-DP: level is non-decreasing and level(m + K) = level(m) +
1, so ``level(|j + s|) <= level(|j| + K) = level(|j|) + 1``. gamma = r/K; 1/(1 + e^(eps/2)) makes the mean magnitude
smallest.

*Generalised normal* (Jeong, Section 4.4): P(j) proportional to ``exp(-eps (|j|/K)^p)`` for p <= 1. eps-DP: t^p is
subadditive, ``|j + s|^p <= |j|^p + K^p``, which is (33) on the grid, with a = K/eps^(1/p). For p > 1 the log-ratio is
unbounded; P(j) proportional to ``exp(-(|j|/a)^p)`` is (eps, delta)-DP with the smallest a that ``tails`` proves.

*Gaussian*: P(j) proportional to exp(-j^2/(2 sigma^2)), (eps, delta)-DP in the same way, and zCDP with rho = K^2/(2
sigma^2) (Canonne, Kamath, Steinke 2020), so that D_a <= a rho, (31).

*Ball* (Jeong, Example 2.5): the noise vector is uniform in a ball of l_p. There is no finite epsilon, because the
release rules out scores that are too far away. Two balls shifted by l along one axis overlap except for a share delta
of their volume: the slice at fixed other coordinates is an interval of length 2c, of which min(2c, l) lies outside the
other ball, as much as lies within l/2 of its middle. So delta = ``P(|X_1| <= l/2)`` = I_y(1/p, (n-1)/p + 1) with y =
(l/(2 radius))^p, whatever eps is: (0, delta)-DP. For p infinite the coordinates are independent and uniform on
{-M..M}, in integers, with delta = K/(2M + 1) exactly. For other p the vector is drawn with gamma variables in
floating point (Barthe, Guédon, Mendelson, Naor 2005) and rounded to the grid, and the guarantee is marked idealized.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.grid import ScoreMechanism
from rankdp.mechanisms.scores.tails import PowerTails, calibrate, laplace_renyi
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import exp_bounds, upwards
from rankdp.privacy.guarantee import ONE_SCORE, Guarantee
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace, geometric, uniform_below
from rankdp.privacy.powers import PowerLaw
from rankdp.theory import noises
from rankdp.types import Floats, Longs

_LARGEST_P = 64
_LARGEST_PLANNED = 500.0  # the epsilon above which a first stair is too narrow for floating point
_calibrate = lru_cache(maxsize=256)(calibrate)


class _PowerScores(ScoreMechanism):
    """Noise of the law ``exp(-rate (|j|/scale)^p)``."""

    @property
    def law(self) -> PowerLaw:
        """p, rate and scale."""
        raise NotImplementedError

    @cached_property
    def tails(self) -> PowerTails:
        """The law in floating point."""
        return PowerTails(float(self.law.p), float(self.law.rate), float(self.law.scale))

    @property
    def deviation(self) -> float:
        """The root of the variance on the grid."""
        return math.sqrt(self.tails.variance)

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """``rate (|j|/scale)^p``."""
        return self.law.exponent(abs(j), bits)

    def log_prob(self, j: ArrayLike) -> Floats:
        """The same, normalised."""
        law = self.tails
        magnitudes = np.abs(np.asarray(j, dtype=np.float64))
        return np.asarray(-law.rate * (magnitudes / law.scale) ** law.p - math.log(sum(law.whole) / 2))

    def noise(self, count: int, bits: Bits) -> Longs:
        """Exact."""
        return self.law.sample(count, bits)


class LaplaceScores(_PowerScores):
    """Discrete Laplace noise of scale K/eps."""

    name: ClassVar[str] = "laplace"
    colour: ClassVar[str] = "#CC79A7"
    needs: ClassVar[tuple[str, ...]] = ("epsilon",)

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """sqrt(2)/eps."""
        return noises.Laplace(), math.sqrt(2) / epsilon

    @property
    def scale(self) -> Fraction:
        """In steps."""
        return self.grid.steps / self.epsilon

    @property
    def law(self) -> PowerLaw:
        """p = 1."""
        return PowerLaw(Fraction(1), Fraction(1), self.scale)

    @property
    def deviation(self) -> float:
        """sqrt(2r)/(1-r) with r = exp(-1/scale)."""
        rate = float(1 / self.scale)
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    def _renyi(self, order: float) -> float:
        """The discrete form of (27)."""
        return laplace_renyi(float(self.epsilon), self.grid.steps, order)

    def noise(self, count: int, bits: Bits) -> Longs:
        """Exact."""
        return discrete_laplace(self.scale, count, bits)


class GaussianScores(_PowerScores):
    """Discrete Gaussian noise with the smallest sigma that delta allows."""

    name: ClassVar[str] = "gaussian"
    colour: ClassVar[str] = "#E69F00"
    needs: ClassVar[tuple[str, ...]] = ("epsilon", "delta")

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """The smallest sigma."""
        return noises.Gaussian(), noises.delta_inverse(noises.Gaussian(), epsilon, delta, 1.0)

    @cached_property
    def sigma(self) -> Fraction:
        """In steps, rounded up."""
        return _calibrate(Fraction(2), Fraction(1, 2), self.grid.steps, self.epsilon, self.delta)

    @property
    def law(self) -> PowerLaw:
        """p = 2 and rate = 1/2."""
        return PowerLaw(Fraction(2), Fraction(1, 2), self.sigma)

    @property
    def rho(self) -> float:
        """K^2/(2 sigma^2), rounded up."""
        return upwards(float(self.grid.steps**2 / (2 * self.sigma**2)))

    @property
    def guarantee(self) -> Guarantee:
        """(eps, delta)-DP, and rho-zCDP."""
        return replace(super().guarantee, rho=self.rho)

    @property
    def parameters(self) -> dict[str, Any]:
        """With rho."""
        return {**super().parameters, "rho": self.rho}

    def _renyi(self, order: float) -> float:
        """alpha rho."""
        return upwards(order * self.rho)

    def noise(self, count: int, bits: Bits) -> Longs:
        """Exact."""
        return discrete_gaussian(self.sigma, count, bits)


class GeneralizedNormalScores(_PowerScores):
    """Generalised normal noise of shape p: pure eps-DP up to p = 1, (eps, delta)-DP above."""

    name: ClassVar[str] = "generalized-normal"
    colour: ClassVar[str] = "#D55E00"
    needs: ClassVar[tuple[str, ...]] = ("epsilon", "p")
    takes: ClassVar[tuple[str, ...]] = ("delta",)

    def __post_init__(self) -> None:
        """Refuse a delta of 0 with p above 1, and any other delta with p up to 1."""
        super().__post_init__()
        p, delta = self.asked.p, self.delta
        if not isinstance(p, Fraction) or not 0 < p <= _LARGEST_P:
            raise InputError(f"p must be above 0 and at most {_LARGEST_P} for {self.name} noise, got {p}")
        if p <= 1 and delta:
            raise InputError(f"delta must be 0 for {self.name} noise with p of at most 1, got {delta}")
        if p > 1 and not delta:
            raise InputError(f"delta must be above 0 for {self.name} noise with p above 1 (no finite epsilon), got 0")

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """With the shape of a pure epsilon that makes the first-order error (35) smallest."""
        sigmas = [(noise, noises.rdp_inverse(noise, math.inf, epsilon, 1.0)) for noise in _shapes()]
        return min(sigmas, key=lambda pair: pair[0].mean_difference * pair[1])

    @property
    def p(self) -> Fraction:
        """The shape."""
        assert isinstance(self.asked.p, Fraction)
        return self.asked.p

    @cached_property
    def law(self) -> PowerLaw:
        """Up to p = 1 the rate is eps and the scale K; above, the rate is 1 and the scale calibrated."""
        if self.p <= 1:
            return PowerLaw(self.p, self.epsilon, Fraction(self.grid.steps))
        scale = _calibrate(self.p, Fraction(1), self.grid.steps, self.epsilon, self.delta)
        return PowerLaw(self.p, Fraction(1), scale)

    @property
    def parameters(self) -> dict[str, Any]:
        """With p."""
        return {**super().parameters, "p": str(self.p)}

    def _renyi(self, order: float) -> float:
        """Summed for p > 1; for p = 1 that of Laplace noise; for p < 1 the curve of pure eps-DP."""
        if self.p > 1:
            return self.tails.renyi(order, self.grid.steps)
        return laplace_renyi(float(self.epsilon), self.grid.steps, order) if self.p == 1 else super()._renyi(order)


@lru_cache
def _shapes() -> tuple[noises.ScoreNoise, ...]:
    """The generalised normals on a grid of shapes: the minimum is flat, and the tables of each shape are cached."""
    return (noises.Laplace(), *(noises.GeneralizedNormal(step / 20) for step in range(19, 0, -1)))


class StaircaseScores(ScoreMechanism):
    """Staircase noise: flat over steps of a stair, each e^-eps times as likely as the one before."""

    name: ClassVar[str] = "staircase"
    colour: ClassVar[str] = "#0072B2"
    needs: ClassVar[tuple[str, ...]] = ("epsilon",)
    takes: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        """Refuse a gamma that is not a share."""
        super().__post_init__()
        if self.asked.gamma is not None and not 0 <= self.asked.gamma <= 1:
            raise InputError(f"gamma must be between 0 and 1, got {self.asked.gamma}")

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """With the best gamma."""
        noise = noises.Staircase(min(epsilon, _LARGEST_PLANNED))
        return noise, noises.rdp_inverse(noise, math.inf, noise.epsilon, 1.0)

    @cached_property
    def first(self) -> int:
        """r, the number of magnitudes on the first stair."""
        gamma = self.asked.gamma
        if gamma is None:
            best = self.grid.steps / (1 + math.exp(min(float(self.epsilon) / 2, 700.0)))
            return max(1, round(best))
        return round(gamma * self.grid.steps)

    def level(self, j: int) -> int:
        """The stair of an integer."""
        stairs, rest = divmod(abs(j), self.grid.steps)
        return stairs + (rest >= self.first)

    @property
    def parameters(self) -> dict[str, Any]:
        """With gamma as it is on the grid."""
        return {**super().parameters, "gamma": self.first / self.grid.steps}

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The sums of exp(-eps level) and of j^2 exp(-eps level) over all j.

        Let a_m be the sum of rest^m over K magnitudes, with the weights of the first stairs. Then the sum over stairs i
        of e^(-i eps) (i K + rest)^m follows from the sums of i^m e^(-i eps).
        """
        steps, first, ratio = self.grid.steps, self.first, math.exp(-self.epsilon)
        sums = [_power_sum(first, m) + ratio * (_power_sum(steps, m) - _power_sum(first, m)) for m in range(3)]
        rest = -math.expm1(-self.epsilon)
        stairs = [1 / rest, ratio / rest**2, ratio * (1 + ratio) / rest**3]
        second = steps * steps * stairs[2] * sums[0] + 2 * steps * stairs[1] * sums[1] + stairs[0] * sums[2]
        return 2 * stairs[0] * sums[0] - (1 if first else ratio), 2 * second

    @property
    def deviation(self) -> float:
        """From the moments."""
        whole, second = self._moments
        return math.sqrt(second / whole)

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """eps level, which is rational."""
        return self.epsilon * self.level(j), self.epsilon * self.level(j)

    def log_prob(self, j: ArrayLike) -> Floats:
        """The same, normalised."""
        stairs, rest = np.divmod(np.abs(np.asarray(j, dtype=np.int64)), self.grid.steps)
        return np.asarray(-float(self.epsilon) * (stairs + (rest >= self.first)) - math.log(self._moments[0]))

    def noise(self, count: int, bits: Bits) -> Longs:
        """Exact: the stair pair, which of the two, the place on it and the sign; a negative zero is drawn again."""
        steps, first = self.grid.steps, self.first
        drawn = np.empty(count, dtype=np.int64)
        pending = np.arange(count)
        second = _second_stair(self.epsilon, first, steps - first)
        while len(pending):
            pairs = geometric(self.epsilon, len(pending), bits)
            upper = second.sample(len(pending), bits) == 1
            places = np.empty(len(pending), dtype=np.int64)
            for stair, size, start in ((~upper, first, 0), (upper, steps - first, first)):
                if stair.any():
                    places[stair] = start + uniform_below(size, int(stair.sum()), bits)
            magnitudes = pairs * steps + places
            negative = uniform_below(2, len(pending), bits) == 1
            kept = ~(negative & (magnitudes == 0))
            drawn[pending[kept]] = np.where(negative, -magnitudes, magnitudes)[kept]
            pending = pending[~kept]
        return drawn


@lru_cache(maxsize=64)
def _second_stair(epsilon: Fraction, first: int, second: int) -> CutTable:
    """0 and 1 with weights r and (K - r) e^-eps."""

    def weights(precision: int) -> Weights:
        low, high = exp_bounds(epsilon, precision)
        return Weights([first << precision, second * low], [first << precision, second * high])

    return CutTable(weights)


def _power_sum(end: int, power: int) -> int:
    """The sum of k^power over 0 <= k < end, for powers up to 2."""
    return (end, end * (end - 1) // 2, end * (end - 1) * (2 * end - 1) // 6)[power]


class BallScores(ScoreMechanism):
    """Noise spread evenly over a ball of l_p: no finite epsilon, but (0, delta)-DP."""

    name: ClassVar[str] = "ball"
    colour: ClassVar[str] = "#56B4E9"
    needs: ClassVar[tuple[str, ...]] = ("delta", "count")
    takes: ClassVar[tuple[str, ...]] = ("p",)

    def __post_init__(self) -> None:
        """Refuse shapes out of range; p is infinite by default."""
        super().__post_init__()
        if not self.cube and not 0 < self.p <= _LARGEST_P:
            raise InputError(f"p must be above 0 and at most {_LARGEST_P}, or inf, for ball noise, got {self.asked.p}")

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """Not for plans, which compare by epsilon."""
        raise Unsupported("plans compare noises by their epsilon, and ball noise has no finite one")

    @property
    def p(self) -> float:
        """The shape."""
        return math.inf if self.asked.p is None else float(self.asked.p)

    @property
    def cube(self) -> bool:
        """Whether the coordinates are independent."""
        return self.p == math.inf

    @property
    def count(self) -> int:
        """How many scores there are."""
        assert self.asked.count is not None
        return self.asked.count

    @property
    def guarantee(self) -> Guarantee:
        """(0, delta)-DP; idealized unless p is infinite."""
        return Guarantee(ONE_SCORE, Fraction(0), self.delta, local=False, idealized=not self.cube)

    @property
    def reach(self) -> int:
        """M, for p infinite: the smallest integer with K/(2M + 1) <= delta."""
        return math.ceil((self.grid.steps / self.delta - 1) / 2)

    @property
    def radius(self) -> float:
        """In steps."""
        if self.cube:
            return float(self.reach)
        return self.grid.steps * _ball_radius(self.p, self.count, float(self.delta))

    @property
    def deviation(self) -> float:
        """Of one coordinate: the root of E B^(2/p), B ~ Beta(1/p, (n-1)/p + 1), for radius 1 and p finite."""
        if self.cube:
            return math.sqrt(self.reach * (self.reach + 1) / 3)
        p, gamma = self.p, math.lgamma
        log = gamma(3 / p) - gamma(1 / p) + gamma(self.count / p + 1) - gamma((self.count + 2) / p + 1)
        return self.radius * math.exp(log / 2)

    @property
    def parameters(self) -> dict[str, Any]:
        """With p and the radius."""
        shape = "inf" if self.cube else str(self.asked.p)
        return {**super().parameters, "p": shape, "radius": self.radius * float(self.grid.step)}

    def _renyi(self, order: float) -> float:
        """Infinite: neighbours do not have the same possible outputs."""
        return math.inf

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """0 inside the cube."""
        if not self.cube or abs(j) > self.reach:
            raise Unsupported("exponents of ball noise are known for p = inf and inside the ball only")
        return Fraction(0), Fraction(0)

    def log_prob(self, j: ArrayLike) -> Floats:
        """log P of one coordinate, for p infinite."""
        if not self.cube:
            raise Unsupported(f"probabilities of ball noise are stated for p = inf only, got p = {self.asked.p}")
        inside = np.abs(np.asarray(j)) <= self.reach
        return np.where(inside, -math.log(2 * self.reach + 1), -math.inf)

    def noise(self, count: int, bits: Bits) -> Longs:
        """One draw of the whole vector: exact for p infinite, else rounded from floating point."""
        if count != self.count:
            raise InputError(f"count must be {self.count}, the number of scores of this ball, got {count}")
        if self.cube:
            return uniform_below(2 * self.reach + 1, count, bits) - self.reach
        return np.rint(self.radius * _ball_point(self.p, count, bits)).astype(np.int64)


def _ball_radius(p: float, count: int, delta: float) -> float:
    """The radius in units of l, rounded up, whose delta is at most ``delta``.

    The density of ``|X_1|/radius`` is largest at 0, where it is p/B(1/p, b): l/(2 radius) = delta B/p is always safe,
    and is used for small deltas. The inverse of the incomplete beta function allows a larger ratio; the function
    itself, with a slack, checks it.
    """
    from scipy.special import betainc, betaincinv, betaln

    shape = 1 / p, (count - 1) / p + 1
    share = delta * math.exp(betaln(*shape)) / p
    larger = float(betaincinv(*shape, delta * (1 - 2e-9))) ** (1 / p)
    if larger**p > 1e-250 and float(betainc(*shape, larger**p)) * (1 + 1e-9) <= delta:
        share = max(share, larger)
    return upwards(1 / (2 * share))


def _ball_point(p: float, count: int, bits: Bits) -> Floats:
    """A uniform point of the unit ball: ``(G_i/(E + sum G))^(1/p)`` with signs, G_i ~ Gamma(1/p), E exponential."""
    from scipy.special import gammaincinv

    words = bits.words(count + 1)
    uniform = ((words >> np.uint64(11)) + 0.5) * 2.0**-53
    gammas = gammaincinv(1 / p, uniform[:count])
    whole = gammas.sum() - math.log(uniform[count])
    signs = np.where(words[:count] & np.uint64(1), -1.0, 1.0)
    return np.asarray(signs * (gammas / whole) ** (1 / p))
