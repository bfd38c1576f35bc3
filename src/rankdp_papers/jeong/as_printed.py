"""The mechanism and the decoders of Jeong, Dytso and Cardone by one call, with the paper's parameters.

The mechanism (2) is Y = X + sigma N: n scores, each known to lie in an interval of length l, and noise N whose
coordinates have variance one. Neighbours differ in one score (Definition 2.1).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import positive, whole
from rankdp.errors import InputError
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import upwards
from rankdp.privacy.guarantee import ONE_SCORE, Guarantee
from rankdp.privacy.release import Release, released
from rankdp.theory.noises import ScoreNoise, rdp_inverse
from rankdp.theory.noises import noise as find_noise
from rankdp.theory.noises.score_noise import check_independent
from rankdp.theory.score_laws import ScoreLaw
from rankdp.types import Floats, Longs
from rankdp_papers.jeong.decoders import order_posterior, sort_decoder


def mechanism(
    scores: ArrayLike,
    *,
    l: float,  # noqa: E741 - the paper's letter
    sigma: float | None = None,
    alpha: float | None = None,
    epsilon: float | None = None,
    noise: str | ScoreNoise = "laplace",
    delta: float = 1e-6,
    bits: Bits | None = None,
) -> Release[Floats]:
    """X + sigma N for a given sigma, or for the least sigma with (alpha, epsilon)-Rényi DP, (24).

    Guaranteed: Rényi DP of order alpha for one score, or pure epsilon-DP where the noise has it (alpha = inf: Laplace,
    generalised normal with p <= 1, staircase). The guarantee of the release is stated as epsilon-DP, or as (epsilon,
    delta)-DP with the given delta where no pure epsilon exists. The noise is drawn in floating point by its quantile
    function, so the guarantee is marked ``idealized``; ``rankdp.privatize_scores`` draws the same noises exactly.

    Not guaranteed: that the order survives; ``rankdp plan scores`` says how likely that is.

    Parameters
    ----------
    scores
        One number per item.
    l
        The length of the interval that every score lies in, known beforehand.
    sigma
        The standard deviation of the noise.
    alpha, epsilon
        Instead of sigma: the order, at least 1 and perhaps ``inf``, and the Rényi epsilon.
    noise
        "laplace", "gaussian", or one with parameters: ``rankdp.theory.noises.noise("staircase", epsilon=1)``.
    delta
        For the stated guarantee where no pure epsilon exists.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.

    Returns
    -------
    Release
        The noisy scores.
    """
    values, bits = np.asarray(scores, dtype=float), bits or SecureBits()
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError("scores must be one row of finite numbers")
    if np.ptp(values) > positive("l", l):
        raise InputError(f"scores must lie in an interval of length l = {l:g}, got scores {np.ptp(values):g} apart")
    if isinstance(noise, str) and noise not in ("laplace", "gaussian"):
        raise InputError(f"noise must be laplace, gaussian or one made by rankdp.theory.noises.noise, got {noise!r}")
    family = find_noise(noise) if isinstance(noise, str) else noise
    check_independent(family)
    if (sigma is None) == (epsilon is None) or (alpha is None) != (epsilon is None):
        raise InputError("either sigma or both alpha and epsilon must be given")
    if sigma is None:
        assert alpha is not None
        assert epsilon is not None
        sigma = rdp_inverse(family, alpha, epsilon, l)
    if not math.isfinite(sigma):
        raise InputError(f"the {family.name} noise has no finite sigma for alpha {alpha} and epsilon {epsilon}")
    guarantee = _guarantee(family, l / positive("sigma", sigma), delta)
    noisy = values + sigma * _drawn(family, len(values), bits)
    facts = {"noise": repr(family), "sigma": float(sigma), "l": l, "alpha": alpha, "renyi_epsilon": epsilon}
    return released(noisy, guarantee, "Jeong, X + sigma N", facts, bits)


def decode(y: ArrayLike, A: ArrayLike | None = None, b: ArrayLike | None = None) -> Longs:
    """The linear decoder of Section 3.1: the items sorted by A y + b, the highest first; without A and b, by y.

    Guaranteed: by Theorem 3.3 no decoder recovers the order of exchangeable scores more often than sorting y, where
    the noise has a density that falls with its l_p norm, p >= 1. Not guaranteed: the same for p < 1 or for noise with
    memory, where an A may do better. It adds no privacy, since it looks at y only. The paper lists the lowest
    first.

    Parameters
    ----------
    y
        Noisy scores.
    A
        A square matrix; the identity if not given.
    b
        A vector; 0 if not given.
    """
    values = np.asarray(y, dtype=float)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"y must be one row of finite numbers, got {y!r}")
    if A is not None:
        matrix = np.asarray(A, dtype=float)
        if matrix.shape != (len(values), len(values)):
            raise InputError(f"A must have {len(values)} rows and columns, one per score, got shape {matrix.shape}")
        values = matrix @ values
    if b is not None:
        shift = np.asarray(b, dtype=float)
        if shift.shape != values.shape:
            raise InputError(f"b must have {len(values)} numbers, one per score, got shape {shift.shape}")
        values = values + shift
    return sort_decoder(values)


def map_decode(y: ArrayLike, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> tuple[Longs, float]:
    """The decoder (11) of least error: the likeliest order given y, the best item first, and its probability.

    Guaranteed: no decoder errs less often, for independent scores of this law and independent noise coordinates; the
    probabilities are integrals on about 600 cells, not closed forms. It tries all orders, so it takes at most 7 scores.

    Parameters
    ----------
    y
        2 to 7 noisy scores.
    noise, sigma
        The noise and its standard deviation.
    law
        The law of one score, from ``rankdp.theory.score_laws``.
    """
    orders, chances = order_posterior(y, noise, sigma, law)
    best = int(np.argmax(chances))
    return orders[best], float(chances[best])


def _guarantee(family: ScoreNoise, shift: float, delta: float) -> Guarantee:
    pure = family.renyi(math.inf, shift)
    if math.isfinite(pure):
        return Guarantee(ONE_SCORE, Fraction(upwards(pure)), local=False, idealized=True)
    if not 0 < delta < 1:
        raise InputError(f"delta must be above 0 and below 1, got {delta}")
    low, high = 0.0, 1.0
    while family.delta(high, shift) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if family.delta(middle, shift) <= delta else (middle, high)
    return Guarantee(ONE_SCORE, Fraction(upwards(high)), Fraction(delta), local=False, idealized=True)


def _drawn(family: ScoreNoise, count: int, bits: Bits) -> Floats:
    """Draws by the quantile function: a sign, and a tail probability of 63 digits."""
    words = bits.words(whole("count", count, 1))
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    tail = ((words >> np.uint64(1)).astype(float) + 0.5) / 2**64
    return np.asarray(-sign * family.quantile(tail))
