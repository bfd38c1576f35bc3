"""Objective perturbation (Cai, Algorithm 1), calibrated tightly and with the solver's gap closed.

Ideal mechanism: with L the negative log-likelihood of a link F, w a vector of independent Laplace noise of scale b and
gamma > 0, release the exact minimiser of

    L(t) + gamma/2 t.t + w . t.

Proof of eps_1. The minimiser t and w determine each other, w = -grad(t), so the density of t is that of w times the
determinant of the Hessian. Between neighbours k comparisons leave and k come. Each moves the gradient by at most 2
kappa_1 in l1 (kappa_1 bounds F'/(F(1-F))), 4 kappa_1 k in all; and each that comes adds a matrix of rank one and norm
at most 2 kappa_2 to a Hessian of at least gamma (kappa_2 bounds (-log F)''), a factor of at most 1 + 2 kappa_2/gamma on
the determinant. So

    eps_1 = 4 kappa_1 k / b + k log(1 + 2 kappa_2/gamma).

``calibration="tight"`` solves this for b; ``"paper"`` takes Proposition 2.1's sufficient b = 8 kappa_1 k/eps_1, gamma
>= 4 kappa_2 k/eps_1.

Closing the gap. A computer has neither real-valued noise nor exact minimisers. Let w be the *rounding* of real Laplace
noise to a grid of step g (drawn exactly, as an integer), and let the solver return a point whose gradient has a proven
l2 norm of at most T. The objective is gamma-strongly convex, so that point is within D = (T + g sqrt(n)/2)/gamma of the
ideal minimiser for the unrounded noise. Round it to a public grid of step h: the two differ by at most sqrt(n) D + n h
in l1. Add discrete Laplace noise of scale (sqrt(n) D + n h)/eps_2 on that grid: given the noise w, the law of the
output is within a factor e^eps_2 of what it would be from the ideal minimiser. Hence the release is eps-DP with eps =
eps_1 + 2 eps_2. T, g, h and eps_2 depend on public numbers only, and the extra noise is far below the statistical
error. Should the solver fail to prove T, nothing is released.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import bernoulli, bernoulli_exp, discrete_laplace, geometric
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import Link
from rankdp.rankers.links import link as known_link

_GAP_SHARE = Fraction(1, 500)  # eps_2 as a share of eps
_NOISE_STEP = Fraction(1, 1 << 32)  # g, while the noise is below 2^10
_SCORE_STEP = Fraction(1, 1 << 44)  # h
_LARGEST_SCORE = 1 << 16  # so that scores and their noise fit 64-bit integers on that grid
CALIBRATIONS = ("tight", "paper")


class ObjectivePerturbation:
    """Releases Bradley-Terry scores while who was compared with whom is secret too.

    ``items`` is n, ``comparisons`` a public idea of how many comparisons there are (it sets the solver's tolerance, not
    the privacy), ``ridge`` is gamma.
    """

    def __init__(
        self,
        items: int,
        comparisons: int,
        protection: Protection,
        epsilon: Real,
        ridge: Real,
        link: str | Link = "logistic",
        calibration: str = "tight",
    ) -> None:
        if calibration not in CALIBRATIONS:
            raise InputError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {calibration!r}")
        self.items, self.protection, self.link, self.calibration = items, protection, known_link(link), calibration
        self.epsilon, self.ridge = positive(epsilon), positive(ridge, "ridge")
        self.gap_epsilon = self.epsilon * _GAP_SHARE
        self.comparisons = comparisons

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP for the unit of protection."""
        return Guarantee(self.protection.protects, self.epsilon, local=False)

    @property
    def scale(self) -> Fraction:
        """b, the scale of the noise in the objective, rounded up."""
        ideal, moved = self.epsilon - 2 * self.gap_epsilon, self.protection.moved
        steepest, curved = Fraction(self.link.kappa_1), Fraction(self.link.kappa_2)
        if self.calibration == "paper":
            if self.ridge < 4 * curved * moved / ideal:
                least = float(4 * curved * moved / ideal)
                raise InputError(
                    f"ridge must be at least {least:g} at this epsilon with the paper's calibration, got {self.ridge}"
                )
            return 8 * steepest * moved / ideal
        determinant = Fraction(moved * math.log1p(float(2 * curved / self.ridge)) * (1 + 1e-12))
        if determinant >= ideal:
            raise InputError(
                f"ridge is too small for epsilon {self.epsilon}: the Hessian alone would spend {float(determinant):g}"
            )
        return 4 * steepest * moved / (ideal - determinant)

    @property
    def tolerance(self) -> float:
        """T: hundreds of times what rounding costs with so many comparisons and so much noise."""
        return 1e-7 + 1e-12 * (self.comparisons + math.sqrt(self.items) * float(self.scale))

    @property
    def noise_step(self) -> Fraction:
        """g, so coarse that noise of practical probability (2000 scales) is a 53-bit multiple of it."""
        return _NOISE_STEP * (1 << max(0, math.ceil(self.scale).bit_length() - 10))

    @property
    def noise_variance(self) -> float:
        """The variance of the noise on one coordinate of the gradient."""
        return 2 * float(self.scale) ** 2

    @property
    def output_scale(self) -> Fraction:
        """The scale of the noise added to the scores, in steps of h."""
        distance = (self.tolerance + float(self.noise_step) * math.sqrt(self.items) / 2) / float(self.ridge)
        apart = Fraction(math.sqrt(self.items) * distance * (1 + 1e-12)) + self.items * _SCORE_STEP
        return apart / _SCORE_STEP / self.gap_epsilon

    def sample(self, counts: PairCounts, bits: Bits) -> NDArray[np.float64]:
        """Private scores, on the grid of step h."""
        noise = rounded_laplace(self.scale / self.noise_step, self.items, bits) * float(self.noise_step)
        solved = fit(
            counts,
            ridge=float(self.ridge),
            link=self.link,
            linear=noise,
            tolerance=self.tolerance / (4 * math.sqrt(self.items)),
        )
        if not solved.gradient_bound <= self.tolerance:
            raise Unsupported(
                f"the solver could not prove a gradient below {self.tolerance:g}, which the guarantee needs; "
                "nothing was released"
            )
        bounded = np.clip(solved.theta, -_LARGEST_SCORE, _LARGEST_SCORE)  # brings no two points further apart
        steps = np.rint(bounded / float(_SCORE_STEP)).astype(np.int64)
        noisy = steps + discrete_laplace(self.output_scale, self.items, bits)
        return np.asarray(noisy * float(_SCORE_STEP), dtype=np.float64)


def rounded_laplace(scale: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """Real Laplace noise of this scale rounded to the nearest integer, drawn exactly.

    Its absolute value is exponential: below 1/2, rounded to 0, with probability 1 - exp(-1/(2 scale)); else 1 plus the
    whole part of what is left, again exponential, hence geometric.
    """
    magnitude = np.where(bernoulli_exp(1 / (2 * scale), count, bits), 1 + geometric(1 / scale, count, bits), 0)
    return np.where(bernoulli(Fraction(1, 2), count, bits), magnitude, -magnitude)
