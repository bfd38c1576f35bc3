"""Objective perturbation (Cai, Algorithm 1), with a tight calibration and an inexact solver accounted for.

Ideal mechanism: with L the negative log-likelihood of a link F, w a vector of independent Laplace noise of scale b and
gamma > 0, release the exact minimiser of

    L(t) + gamma/2 t.t + w . t.

Proof of eps_1. The minimiser t and w determine each other, w = -grad(t), so the density of t is that of w times the
determinant of the Hessian. Between neighbours k comparisons are removed and k added. Each moves the gradient by at most
2 kappa_1 in l1 (kappa_1 bounds F'/(F(1-F))), 4 kappa_1 k in total. Each added one adds a matrix of rank one and norm at
most 2 kappa_2 to a Hessian of at least gamma (kappa_2 bounds (-log F)''), a factor of at most 1 + 2 kappa_2/gamma on
the determinant. So

    eps_1 = 4 kappa_1 k / b + k log(1 + 2 kappa_2/gamma).

*Weights.* If a voter's comparisons have weights w_i <= 1 that add up to at most c (``data.votes``), the gradient
moves by at most 4 kappa_1 c, and the determinant by a factor of at most prod(1 + 2 kappa_2 w_i/gamma). The logarithm is
concave: the same sum spread over more and smaller weights makes that product larger, up to exp(2 kappa_2 c/gamma). So

    eps_1 = 4 kappa_1 c / b + 2 kappa_2 c/gamma.

The likelihood of weights W_i in steps of 1/s is fitted as it is, with s times the ridge, the noise and the tolerance:
that objective is s times the one above and has the same minimiser. s is a power of 2, so nothing is rounded.

``calibration="tight"`` solves this for b; ``"paper"`` uses the sufficient b = 8 kappa_1 k/eps_1, gamma >= 4 kappa_2
k/eps_1 of Proposition 2.1.

Inexact arithmetic. A computer has neither real-valued noise nor exact minimisers. Let w be the *rounding* of real
Laplace noise to a grid of step g (drawn exactly, as an integer), and let the solver return a point whose gradient has a
proven l2 norm of at most T. The objective is gamma-strongly convex, so that point is within D = (T + g sqrt(n)/2)/gamma
of the ideal minimiser for the unrounded noise. Round it to a public grid of step h: the two differ by at most sqrt(n) D
+ n h in l1. Add discrete Laplace noise of scale (sqrt(n) D + n h)/eps_2 on that grid: given the noise w, the law of the
output is within a factor e^eps_2 of what it would be from the ideal minimiser. Hence the release is eps-DP with eps =
eps_1 + 2 eps_2. T, g, h and eps_2 depend on public numbers only, and T is so small that the extra noise is at most a
tenth of the statistical error.

No refusal depends on the data. `certified_fit.fit_within` reaches every T >= 2^-100 for every table of comparisons (its
module has the proof). So everything is refused by `check`, before anything is drawn or charged, and depends on public
numbers only, or on a noisy count of comparisons that the guarantee pays for. If the solver ever raises an error here,
its proof is wrong and so is the guarantee: that is a bug to report, not a table to change. The solver's running time
does depend on the data; time is not protected.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rankdp.checks import one_of
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.noise import bernoulli, bernoulli_exp, discrete_laplace, geometric
from rankdp.rankers.certified_fit import SMALLEST_NORM, fit_within
from rankdp.rankers.links import Link
from rankdp.rankers.links import link as known_link
from rankdp.types import Floats, Longs

_GAP_SHARE = Fraction(1, 500)  # eps_2 as a share of eps
_NOISE_STEP = Fraction(1, 1 << 32)  # g, while the noise is below 2^10
_SCORE_STEP = Fraction(1, 1 << 44)  # h
_LARGEST_SCORE = 1 << 16  # so that scores and their noise fit 64-bit integers on that grid
_LARGEST_NOISE = 1 << 54  # in steps of h, the same
_EXTRA = 0.1  # the scale of the output noise that T aims at, as a share of a score's expected error
_CALIBRATIONS = ("tight", "paper")


class ObjectivePerturbation:
    """Releases Bradley-Terry scores; who was compared with whom is secret too.

    Parameters
    ----------
    items
        The number of items n.
    comparisons
        A public guess of the number of comparisons. It sets the solver's tolerance, not the privacy.
    protection
        What is protected.
    epsilon
        The guarantee's.
    ridge
        gamma; rounded up to a double.
    link
        F, or its name.
    calibration
        ``"tight"`` or ``"paper"`` (see the module).
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
        one_of("calibration", calibration, _CALIBRATIONS)
        self.items, self.protection, self.link, self.calibration = items, protection, known_link(link), calibration
        self.epsilon, self.ridge = positive(epsilon), _double_above(positive(ridge, "ridge"))
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
        determinant = 2 * curved * moved / self.ridge
        if self.protection.steps == 1:  # whole comparisons
            determinant = Fraction(moved * math.log1p(float(2 * curved / self.ridge)) * (1 + 1e-12))
        if determinant >= ideal:
            raise InputError(
                f"ridge is too small for epsilon {self.epsilon}: the Hessian alone would spend {float(determinant):g}"
            )
        return 4 * steepest * moved / (ideal - determinant)

    @property
    def tolerance(self) -> float:
        """T, chosen so that its noise is small compared to the expected error sqrt(i + v)/(i + gamma) of a score.

        i is the Fisher information of an item and v the variance of the noise in the objective. T is at most 10^-7 plus
        10^-12 of the sum of all terms, which the solver reaches at no extra cost.
        """
        information = 2 * self.comparisons / self.items * float(self.link.slope(np.zeros(1))[0]) ** 2
        error = math.sqrt(information + self.noise_variance) / (information + float(self.ridge))
        useful = _EXTRA * error * float(self.gap_epsilon * self.ridge) / math.sqrt(self.items)
        easy = 1e-7 + 1e-12 * (self.comparisons + math.sqrt(self.items) * float(self.scale))
        most = float(self.gap_epsilon * self.ridge * _LARGEST_NOISE * _SCORE_STEP) / math.sqrt(self.items)
        return max(min(useful, easy, most), SMALLEST_NORM)

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
        return self._covering(self.tolerance)

    def _covering(self, tolerance: float) -> Fraction:
        """(sqrt(n) D + n h)/(h eps_2)."""
        distance = (tolerance + float(self.noise_step) * math.sqrt(self.items) / 2) / float(self.ridge)
        apart = Fraction(math.sqrt(self.items) * distance * (1 + 1e-12)) / _SCORE_STEP + self.items
        return apart / self.gap_epsilon

    def check(self) -> None:
        """Refuse what cannot be released, by public numbers other than ``comparisons``."""
        if self._covering(SMALLEST_NORM) > _LARGEST_NOISE:
            raise InputError(
                f"ridge is too small for epsilon {self.epsilon} and {self.items} items: the noise that covers rounding "
                f"would not fit 64-bit integers, got {float(self.ridge):g}"
            )

    def sample(self, counts: PairCounts, bits: Bits) -> Floats:
        """Private scores, on the grid of step h."""
        self.check()
        self.protection.check(counts)
        times = self.protection.steps
        noise = rounded_laplace(self.scale / self.noise_step, self.items, bits) * np.float64(self.noise_step)
        solved = fit_within(
            counts, times * self.tolerance, ridge=times * float(self.ridge), link=self.link, linear=times * noise
        )
        most = _LARGEST_SCORE / _SCORE_STEP  # clipping never increases a distance
        steps = np.array([round(min(max(score / _SCORE_STEP, -most), most)) for score in solved], dtype=np.int64)
        return np.asarray((steps + discrete_laplace(self.output_scale, self.items, bits)) * float(_SCORE_STEP))


def _double_above(value: Fraction) -> Fraction:
    """The smallest double of at least this value, for the solver."""
    double = float(value)
    return Fraction(double if double >= value else math.nextafter(double, math.inf))


def rounded_laplace(scale: Fraction, count: int, bits: Bits) -> Longs:
    """Real Laplace noise of this scale rounded to the nearest integer, drawn exactly.

    Its absolute value is exponential: below 1/2, rounded to 0, with probability 1 - exp(-1/(2 scale)); else 1 plus the
    integer part of the remainder, which is again exponential, so geometric.
    """
    magnitude = np.where(bernoulli_exp(1 / (2 * scale), count, bits), 1 + geometric(1 / scale, count, bits), 0)
    return np.where(bernoulli(Fraction(1, 2), count, bits), magnitude, -magnitude)
