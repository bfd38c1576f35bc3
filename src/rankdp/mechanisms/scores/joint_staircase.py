"""Staircase noise on the l1 norm of the whole vector (Geng, Kairouz, Oh, Viswanath 2015; Jeong, Example 2.5 and A.4).

On the integers of a public grid of K steps, P(j) is proportional to ``exp(-eps level(|j|_1))`` for a vector j of n
integers, with the level of ``StaircaseScores``: i for i K <= m < i K + r, and i + 1 from there to (i+1) K.

*eps-DP.* A neighbour shifts one coordinate by s, |s| <= K, so the norm changes by at most K. The level never falls and
level(m + K) = level(m) + 1, so it changes by at most 1. The normaliser is the same for all inputs.

*Exact draw.* Draw n independent discrete Laplace numbers of scale K/eps: their law is exp(-eps m/K) up to a constant,
m = |j|_1. Accept with probability exp(-eps (level(m) - m/K + (r-1)/K)), else draw again. The exponent is a rational of
at least 0, because level(m) - m/K is at least -(r-1)/K. So the accepted law is the one above, without any rounding, and
the number of trials depends on the noise alone. In the limit of a fine grid a trial is accepted with probability

    exp(-eps gamma) (1 - e^-eps) eps^n/n! S_0,    S_k = sum over i of e^(-eps i) (i + gamma)^(n+k),  gamma = r/K,

as the law is a mixture of uniform laws on l1 balls of radius (i + gamma) K with weights e^(-eps i) (i + gamma)^n. From
the same mixture the mean norm is K n/(n+1) S_1/S_0, which the default gamma minimises, and the variance of a coordinate
is 2 K^2/((n+1)(n+2)) S_2/S_0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.grid_noises import StaircaseScores
from rankdp.privacy.bits import Bits
from rankdp.privacy.noise import bernoulli_exp, discrete_laplace
from rankdp.theory import noises
from rankdp.types import Floats, Longs

_MOST_TRIALS = 10_000  # on average: a thousand scores then take about a second


class JointStaircaseScores(StaircaseScores):
    """Staircase noise on the l1 norm of all scores together."""

    name: ClassVar[str] = "joint-staircase"
    colour: ClassVar[str] = "#009E73"
    needs: ClassVar[tuple[str, ...]] = ("epsilon", "count")

    def __post_init__(self) -> None:
        """Refuse noise that would take too many trials."""
        super().__post_init__()
        trials = 1 / _accepted(float(self.epsilon), self.count, self.first / self.grid.steps)
        if trials > _MOST_TRIALS:
            raise InputError(
                f"epsilon must be smaller for joint-staircase noise on {self.count} scores, got "
                f"{float(self.epsilon):g}: it would take {trials:.0e} trials on average; staircase noise has no such "
                "limit"
            )

    @classmethod
    def planned(cls, epsilon: float, delta: float) -> tuple[noises.ScoreNoise, float]:
        """Not for plans: its coordinates depend on each other."""
        raise Unsupported("plans need independent noise, and joint-staircase noise is not")

    @property
    def count(self) -> int:
        """How many scores there are."""
        assert self.asked.count is not None
        return self.asked.count

    @cached_property
    def first(self) -> int:
        """r, the number of norms on the first stair."""
        if self.asked.gamma is not None:
            return round(self.asked.gamma * self.grid.steps)
        return max(1, round(_best_gamma(float(self.epsilon), self.count) * self.grid.steps))

    @property
    def deviation(self) -> float:
        """Of one coordinate, by the mixture of balls."""
        epsilon, n, gamma = float(self.epsilon), self.count, self.first / self.grid.steps
        log = _log_sum(epsilon, n, gamma, 2) - _log_sum(epsilon, n, gamma, 0)
        return self.grid.steps * math.sqrt(2 / ((n + 1) * (n + 2))) * math.exp(log / 2)

    def log_prob(self, j: ArrayLike) -> Floats:
        """log P(noise = j) of whole vectors, one per row."""
        vectors = np.asarray(j, dtype=np.int64)
        if vectors.shape[-1:] != (self.count,):
            raise InputError(f"j must be vectors of {self.count} integers, got shape {vectors.shape}")
        stairs, rest = np.divmod(np.abs(vectors).sum(axis=-1), self.grid.steps)
        return np.asarray(-float(self.epsilon) * (stairs + (rest >= self.first)) - self._log_whole)

    @cached_property
    def _log_whole(self) -> float:
        """The logarithm of the normaliser: balls of radius i K + r - 1 with weights e^(-eps i) (1 - e^-eps)."""
        epsilon, logs = float(self.epsilon), list[float]()
        for stair in _stairs(epsilon, self.count).tolist():
            radius = int(stair) * self.grid.steps + self.first - 1
            logs.append(-epsilon * stair + (math.log(ball_points(self.count, radius)) if radius >= 0 else -math.inf))
        return float(np.logaddexp.reduce(logs)) + math.log(-math.expm1(-epsilon))

    def noise(self, count: int, bits: Bits) -> Longs:
        """One draw of the whole vector, exact."""
        if count != self.count:
            raise InputError(f"count must be {self.count}, the number of scores of this noise, got {count}")
        steps, first = self.grid.steps, self.first
        while True:
            drawn = discrete_laplace(steps / self.epsilon, count, bits)
            norm = sum(map(abs, drawn.tolist()))
            if bernoulli_exp(self.epsilon * (self.level(norm) + Fraction(first - 1 - norm, steps)), 1, bits)[0]:
                return drawn

    @property
    def parameters(self) -> dict[str, Any]:
        """With the number of scores."""
        return {**super().parameters, "count": self.count}


def ball_points(n: int, radius: int) -> int:
    """The number of vectors of n integers with an l1 norm of at most ``radius``, summed over the k nonzero entries."""
    return sum(2**k * math.comb(n, k) * math.comb(radius, k) for k in range(min(n, radius) + 1))


def _stairs(epsilon: float, n: int) -> Floats:
    """The stairs that matter: the weights peak at n/eps and fall like e^(-eps i) from there."""
    return np.arange(math.ceil((n + 12 * math.sqrt(n) + 60) / epsilon) + 2, dtype=float)


def _log_sum(epsilon: float, n: int, gamma: float, power: int) -> float:
    """log S_power."""
    stairs = _stairs(epsilon, n)
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(-epsilon * stairs + (n + power) * np.log(stairs + gamma)))


def _accepted(epsilon: float, n: int, gamma: float) -> float:
    """The share of trials that are accepted."""
    log = n * math.log(epsilon) - math.lgamma(n + 1) + _log_sum(epsilon, n, gamma, 0)
    return math.exp(log - epsilon * gamma) * -math.expm1(-epsilon)


@lru_cache(maxsize=256)
def _best_gamma(epsilon: float, n: int) -> float:
    """The gamma of the smallest mean norm."""
    from scipy.optimize import minimize_scalar

    def mean(gamma: float) -> float:
        return _log_sum(epsilon, n, gamma, 1) - _log_sum(epsilon, n, gamma, 0)

    return float(minimize_scalar(mean, bounds=(1e-9, 1.0), method="bounded", options={"xatol": 1e-9}).x)
