"""Five kinds of noise for scores, on the integers of a public grid of K steps; neighbours shift one of them by s <= K.

*Laplace*: P(j) proportional to ``exp(-|j| eps/K)``. eps-DP: ``|j + s| <= |j| + K``.

*Staircase* (Geng, Kairouz, Oh, Viswanath 2015): P(j) proportional to ``exp(-eps level(|j|))``, where the level of m is
i for i K <= m < i K + r and i + 1 from there to (i+1) K. eps-DP: level is non-decreasing and level(m + K) = level(m) +
1, so ``level(|j + s|) <= level(|j| + K) = level(|j|) + 1``. gamma = r/K; 1/(1 + e^(eps/2)) makes the mean magnitude
smallest.

*Generalised normal* (Jeong, Section 4.4): P(j) proportional to ``exp(-eps (|j|/K)^p)`` for p <= 1. eps-DP: t^p is
subadditive, ``|j + s|^p <= |j|^p + K^p``, which is (33) on the grid, with a = K/eps^(1/p). For p > 1 the log-ratio is
unbounded; P(j) proportional to ``exp(-(|j|/a)^p)`` is (eps, delta)-DP with the smallest a that ``score_tails`` proves.

*Gaussian*: P(j) proportional to exp(-j^2/(2 sigma^2)), (eps, delta)-DP in the same way, and zCDP with rho = K^2/(2
sigma^2) (Canonne, Kamath, Steinke 2020), so that D_a <= a rho, (31).

*Ball* (Jeong, Example 2.5): the noise vector is uniform in a ball of l_p. There is no finite epsilon, since the release
rules out what is too far away. Two balls shifted by l along one axis overlap in all but a share delta of their volume:
the slice at fixed other coordinates is an interval of length 2c, of which min(2c, l) lies outside the other one, just
as long as its part within l/2 of the middle. So delta = ``P(|X_1| <= l/2)`` = I_y(1/p, (n-1)/p + 1) with y = (l/(2
radius))^p, for every eps alike: (0, delta)-DP. For p infinite the coordinates are independent and uniform on
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
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.grid import Asked, Floats, Integers, ScoreMechanism, check_order
from rankdp.mechanisms.scores.tails import PowerTails, calibrate, laplace_renyi, pure_renyi
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import exp_bounds, upwards
from rankdp.privacy.guarantee import ONE_SCORE, Guarantee
from rankdp.privacy.noise import discrete_gaussian, discrete_laplace, geometric, uniform_below
from rankdp.privacy.powers import PowerLaw

_TRIAL_STEPS = 1 << 20
_LARGEST_P = 64
_calibrate = lru_cache(maxsize=256)(calibrate)


class LaplaceScores(ScoreMechanism):
    """Discrete Laplace noise of scale K/eps."""

    name: ClassVar[str] = "laplace"
    colour: ClassVar[str] = "#CC79A7"
    takes: ClassVar[tuple[str, ...]] = ("epsilon",)

    @classmethod
    def spread(cls, asked: Asked) -> float:
        """sqrt(2)/eps."""
        assert asked.epsilon is not None
        return math.sqrt(2) / float(asked.epsilon)

    @property
    def scale(self) -> Fraction:
        """In steps."""
        return self.grid.steps / self.epsilon

    @property
    def deviation(self) -> float:
        """sqrt(2r)/(1-r) with r = exp(-1/scale)."""
        rate = float(1 / self.scale)
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    def renyi(self, alpha: float) -> float:
        """The discrete form of (27)."""
        return laplace_renyi(float(self.epsilon), self.grid.steps, check_order(alpha))

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """``|j|/scale``, which is rational."""
        return abs(j) / self.scale, abs(j) / self.scale

    def log_prob(self, j: ArrayLike) -> Floats:
        """``log((1-r)/(1+r)) - |j|/scale``."""
        rate = float(1 / self.scale)
        return math.log(math.tanh(rate / 2)) - np.abs(np.asarray(j, dtype=np.float64)) * rate

    def noise(self, count: int, bits: Bits) -> Integers:
        """Exact."""
        return discrete_laplace(self.scale, count, bits)


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

    @cached_property
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

    def noise(self, count: int, bits: Bits) -> Integers:
        """Exact."""
        return self.law.sample(count, bits)


class GaussianScores(_PowerScores):
    """Discrete Gaussian noise with the smallest sigma that delta allows."""

    name: ClassVar[str] = "gaussian"
    colour: ClassVar[str] = "#E69F00"
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "delta")

    @classmethod
    def check(cls, asked: Asked) -> None:
        """delta must be above 0."""
        super().check(asked)
        if asked.delta == 0:
            raise InputError("delta must be above 0 and below 1 for gaussian noise, which has no finite epsilon, got 0")

    @classmethod
    def spread(cls, asked: Asked) -> float:
        """sigma on a trial grid."""
        assert asked.epsilon is not None
        return float(_calibrate(Fraction(2), Fraction(1, 2), _TRIAL_STEPS, asked.epsilon, asked.delta)) / _TRIAL_STEPS

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

    def renyi(self, alpha: float) -> float:
        """alpha rho."""
        return upwards(check_order(alpha) * self.rho)

    def noise(self, count: int, bits: Bits) -> Integers:
        """Exact."""
        return discrete_gaussian(self.sigma, count, bits)


class GeneralizedNormalScores(_PowerScores):
    """Generalised normal noise of shape p: pure eps-DP up to p = 1, (eps, delta)-DP above."""

    name: ClassVar[str] = "generalized-normal"
    colour: ClassVar[str] = "#D55E00"
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "p")

    @classmethod
    def check(cls, asked: Asked) -> None:
        """delta goes with p above 1, and only there."""
        super().check(asked)
        if not isinstance(asked.p, Fraction) or not 0 < asked.p <= _LARGEST_P:
            raise InputError(f"p must be above 0 and at most {_LARGEST_P} for {cls.name} noise, got {asked.p}")
        if asked.p <= 1 and asked.delta:
            raise InputError(f"delta must be 0 for {cls.name} noise with p of at most 1, got {asked.delta}")
        if asked.p > 1 and not asked.delta:
            raise InputError(f"delta must be above 0 for {cls.name} noise with p above 1 (no finite epsilon), got 0")

    @classmethod
    def spread(cls, asked: Asked) -> float:
        """h(p)/eps^(1/p), or that of the scale on a trial grid."""
        assert isinstance(asked.p, Fraction)
        assert asked.epsilon is not None
        p = float(asked.p)
        if asked.p > 1:
            size = math.log(_calibrate(asked.p, Fraction(1), _TRIAL_STEPS, asked.epsilon, asked.delta) / _TRIAL_STEPS)
        else:
            size = -math.log(asked.epsilon) / p
        size += (math.lgamma(3 / p) - math.lgamma(1 / p)) / 2
        return math.exp(min(max(size, -700.0), 700.0))

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

    def renyi(self, alpha: float) -> float:
        """Summed for p > 1; up to 1, the curve that all of pure eps-DP obeys, and at 1 that of Laplace noise."""
        order = check_order(alpha)
        if self.p > 1:
            return self.tails.renyi(order, self.grid.steps)
        if self.p == 1:
            return laplace_renyi(float(self.epsilon), self.grid.steps, order)
        return pure_renyi(float(self.epsilon), order)


class StaircaseScores(ScoreMechanism):
    """Staircase noise: flat over steps of a stair, each e^-eps times as likely as the one before."""

    name: ClassVar[str] = "staircase"
    colour: ClassVar[str] = "#0072B2"
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "gamma")

    @classmethod
    def check(cls, asked: Asked) -> None:
        """gamma is a share."""
        super().check(asked)
        if asked.gamma is not None and not 0 <= asked.gamma <= 1:
            raise InputError(f"gamma must be between 0 and 1, got {asked.gamma}")

    @classmethod
    def spread(cls, asked: Asked) -> float:
        """About 1/eps while that is large, else the width of the first stair."""
        assert asked.epsilon is not None
        eps = float(asked.epsilon)
        return max(math.sqrt(2) / eps if eps < 2 else 0.0, float(asked.gamma or 0) or math.exp(-min(eps, 80.0) / 2) / 2)

    @cached_property
    def first(self) -> int:
        """r, the number of magnitudes on the first stair."""
        gamma = self.asked.gamma
        if gamma is None:
            best = self.grid.steps / (1 + math.exp(min(float(self.epsilon) / 2, 700.0)))
            return max(1, round(best))
        return round(gamma * self.grid.steps)

    def level(self, j: int) -> int:
        """Which stair an integer is on."""
        stairs, rest = divmod(abs(j), self.grid.steps)
        return stairs + (rest >= self.first)

    @property
    def parameters(self) -> dict[str, Any]:
        """With gamma as it is on the grid."""
        return {**super().parameters, "gamma": self.first / self.grid.steps}

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The sums of exp(-eps level) and of j^2 exp(-eps level) over all j.

        Of K magnitudes with the weights of the first stairs let a_m be the sum of rest^m. Then the sum over stairs i of
        e^(-i eps) (i K + rest)^m follows from the sums of i^m e^(-i eps).
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

    def renyi(self, alpha: float) -> float:
        """The curve that all of pure eps-DP obeys."""
        return pure_renyi(float(self.epsilon), check_order(alpha))

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """eps level, which is rational."""
        return self.epsilon * self.level(j), self.epsilon * self.level(j)

    def log_prob(self, j: ArrayLike) -> Floats:
        """The same, normalised."""
        stairs, rest = np.divmod(np.abs(np.asarray(j, dtype=np.int64)), self.grid.steps)
        return np.asarray(-float(self.epsilon) * (stairs + (rest >= self.first)) - math.log(self._moments[0]))

    def noise(self, count: int, bits: Bits) -> Integers:
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
    takes: ClassVar[tuple[str, ...]] = ("delta", "p", "count")

    @classmethod
    def check(cls, asked: Asked) -> None:
        """delta instead of epsilon."""
        super().check(asked)
        if asked.epsilon is not None:
            raise InputError(
                f"epsilon must not be given for ball noise, which has no finite one: give delta alone, "
                f"got epsilon {asked.epsilon}"
            )
        if asked.delta == 0:
            raise InputError("delta must be above 0 and below 1 for ball noise, got 0")
        if asked.p is not None and asked.p != math.inf and not 0 < asked.p <= _LARGEST_P:
            raise InputError(f"p must be above 0 and at most {_LARGEST_P}, or inf, for ball noise, got {asked.p}")
        if asked.count is None or asked.count < 1:
            raise InputError(f"count must be the number of scores, at least 1, for ball noise, got {asked.count}")

    @property
    def cube(self) -> bool:
        """Whether p is infinite, which it is unless asked for otherwise."""
        return self.asked.p in (None, math.inf)

    @classmethod
    def spread(cls, asked: Asked) -> float:
        """From the radius."""
        if asked.p in (None, math.inf):
            return 1 / (2 * math.sqrt(3) * float(asked.delta))
        assert asked.p is not None
        assert asked.count is not None
        return _ball_radius(float(asked.p), asked.count, float(asked.delta)) * _ball_deviation(
            float(asked.p), asked.count
        )

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
        assert self.asked.count is not None
        assert self.asked.p is not None
        return self.grid.steps * _ball_radius(float(self.asked.p), self.asked.count, float(self.delta))

    @property
    def deviation(self) -> float:
        """Of one coordinate."""
        if self.cube:
            return math.sqrt(self.reach * (self.reach + 1) / 3)
        assert self.asked.count is not None
        assert self.asked.p is not None
        return self.radius * _ball_deviation(float(self.asked.p), self.asked.count)

    @property
    def parameters(self) -> dict[str, Any]:
        """With p and the radius."""
        shape = "inf" if self.cube else str(self.asked.p)
        return {**super().parameters, "p": shape, "radius": self.radius * float(self.grid.step)}

    def renyi(self, alpha: float) -> float:
        """Infinite: neighbours do not even have the same possible outputs."""
        check_order(alpha)
        return math.inf

    def exponent(self, j: int, bits: int) -> tuple[Fraction, Fraction]:
        """0 inside."""
        if not self.cube or abs(j) > self.reach:
            raise Unsupported("exponents of ball noise are known for p = inf and inside the ball only")
        return Fraction(0), Fraction(0)

    def log_prob(self, j: ArrayLike) -> Floats:
        """Of one coordinate, for p infinite."""
        if not self.cube:
            raise Unsupported(f"probabilities of ball noise are stated for p = inf only, got p = {self.asked.p}")
        inside = np.abs(np.asarray(j)) <= self.reach
        return np.where(inside, -math.log(2 * self.reach + 1), -math.inf)

    def noise(self, count: int, bits: Bits) -> Integers:
        """One draw of the whole vector: exact for p infinite, else rounded from floating point."""
        if count != self.asked.count:
            raise InputError(f"count must be {self.asked.count}, the number of scores of this ball, got {count}")
        if self.cube:
            return uniform_below(2 * self.reach + 1, count, bits) - self.reach
        return np.rint(self.radius * _ball_point(float(self.asked.p or 1), count, bits)).astype(np.int64)


def _ball_radius(p: float, count: int, delta: float) -> float:
    """The radius in units of l, rounded up, whose delta is at most ``delta``.

    The density of ``|X_1|/radius`` is largest at 0, where it is p/B(1/p, b): l/(2 radius) = delta B/p is always enough,
    and all there is for small deltas. From there the incomplete beta function leads on.
    """
    from scipy.special import betainc, betaln

    shape = 1 / p, (count - 1) / p + 1
    low, high = delta * math.exp(betaln(*shape)) / p, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        power = middle**p
        enough = power > 1e-250 and float(betainc(*shape, power)) * (1 + 1e-9) <= delta
        low, high = (middle, high) if enough else (low, middle)
    return upwards(1 / (2 * low))


def _ball_deviation(p: float, count: int) -> float:
    """The standard deviation of one coordinate for radius 1: the root of E B^(2/p), B ~ Beta(1/p, (n-1)/p + 1)."""
    from math import lgamma

    log = lgamma(3 / p) - lgamma(1 / p) + lgamma(count / p + 1) - lgamma((count + 2) / p + 1)
    return math.exp(log / 2)


def _ball_point(p: float, count: int, bits: Bits) -> NDArray[np.float64]:
    """A uniform point of the unit ball: ``(G_i/(E + sum G))^(1/p)`` with signs, G_i ~ Gamma(1/p), E exponential."""
    from scipy.special import gammaincinv

    words = bits.words(count + 1)
    uniform = ((words >> np.uint64(11)) + 0.5) * 2.0**-53
    gammas = gammaincinv(1 / p, uniform[:count])
    whole = gammas.sum() - math.log(uniform[count])
    signs = np.where(words[:count] & np.uint64(1), -1.0, 1.0)
    return np.asarray(signs * (gammas / whole) ** (1 / p))
