"""A ball: the most accurate mechanism when a *whole* answer is protected, for any measure of distance.

Law: P(output) is proportional to e^eps if its distance from the truth is at most t, and to 1 otherwise.

Proof of eps: two outputs, or two inputs, differ by a factor of at most e^eps, whatever they are. That is local DP for
the whole answer, and eps-ranking DP for one item's position as a special case.

Why no mechanism with the same epsilon is closer: renaming the items maps any answer to any other and preserves
distances. Average any eps-LDP mechanism over all renamings. That changes neither eps nor the mean expected distance,
and makes the law a function f of the relative position of input and output. For a fixed output, the inputs have every
possible relative position, so eps-LDP says max f <= e^eps min f. Under this constraint the expected distance is
smallest if f is e^eps times larger on the smallest distances: a ball. Its radius t is public; by default it minimises
that distance.

Sampling: the law is a mixture. With weight |everything| it is any output, with weight (e^eps - 1)|ball| a uniform one
in the ball. Both are drawn with integer arithmetic.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism
from rankdp.privacy.cut_tables import CutTable, Weights
from rankdp.privacy.exact import exp_bounds
from rankdp.types import Floats

_UNBIASED = 1e-6  # of a rank: the largest bias that counts as none
_SMALLEST = 1e-8  # of the largest singular value: smaller ones would only amplify the rounding of the laws (1e-12)


class Ball(RankingMechanism):
    """Uniform in a ball around the truth, or with some probability anywhere; subclasses define the distance."""

    numbered: ClassVar[bool] = True
    #: by radius, how many outputs the ball holds; the last is all of them
    sizes: Sequence[int]
    #: by radius, the mean distance of the outputs in the ball
    mean_distances: Floats
    radius: int

    def _take_radius(self, radius: int | None, outputs: str) -> None:
        """Check the radius, or choose the one with the smallest expected distance."""
        largest = len(self.sizes) - 1
        gain = self._inside_by_radius * (self.mean_distances[-1] - self.mean_distances[:-1])
        self.radius = int(np.argmax(gain)) if radius is None else whole("radius", radius, 0)
        if self.radius >= largest:
            raise InputError(
                f"radius must be below {largest}, the largest distance between two {outputs}, got {self.radius}"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """With the radius."""
        return {**super().parameters, "radius": self.radius}

    def local_epsilon(self) -> Fraction:
        """Epsilon, exactly, because the whole answer is protected."""
        return self.epsilon

    def total_variation(self) -> float:
        """Of two balls that overlap as little as their sizes allow: exact for Kendall's distance, else a bound."""
        ball = self.sizes[self.radius]
        return self._inside * min(1.0, (self.sizes[-1] - ball) / ball)

    @cached_property
    def _mixture(self) -> CutTable:
        """0 selects any output, 1 an output in the ball."""
        everything, ball = self.sizes[-1], self.sizes[self.radius]

        def weights(bits: int) -> Weights:
            scale = bits + (everything // ball).bit_length() + 8
            low, high = exp_bounds(self.epsilon, scale)  # around 2^scale e^-eps
            one = 1 << scale
            return Weights([everything * low, ball * (one - high)], [everything * high, ball * (one - low)])

        return CutTable(weights)

    def _mixed(self, mixture: Weights, anywhere: Fraction, inside: Fraction) -> tuple[Fraction, Fraction]:
        """Bounds of the weight of an output that has these probabilities in the two parts."""
        return (
            mixture.low[0] * anywhere + mixture.low[1] * inside,
            mixture.high[0] * anywhere + mixture.high[1] * inside,
        )

    @cached_property
    def _inside_by_radius(self) -> Floats:
        """By radius: the weight of the part that is uniform in the ball, (e^eps - 1)|B| / ((e^eps - 1)|B| + |all|)."""
        shares = np.array([size / self.sizes[-1] for size in self.sizes[:-1]])
        shrunk = -math.expm1(-float(self.epsilon))
        return np.asarray(shrunk * shares / (shrunk * shares + math.exp(-float(self.epsilon))))

    @property
    def _inside(self) -> float:
        return float(self._inside_by_radius[self.radius])

    @abstractmethod
    def _distances(self, relative: Orders) -> NDArray[Any]:
        """The distance from the truth, by row."""

    def _log_prob(self, relative: Orders) -> Floats:
        inside = self.log_prob_of_no_change()
        return np.where(self._distances(relative) <= self.radius, inside, inside - float(self.epsilon))

    def log_prob_of_no_change(self) -> float:
        """-log(|B| + (|all| - |B|) e^-eps)."""
        ball = self.sizes[self.radius]
        return -math.log(ball) - math.log1p((self.sizes[-1] - ball) / ball * math.exp(-float(self.epsilon)))

    def radius_for_mean_ranks(self, balls: Floats, anywhere: Floats | float, ranks: Floats, share: Floats) -> int:
        """The radius whose debiased mean ranks have the smallest variance.

        With M the law of the place where an item lands, x solves M x = ranks, and one answer has the variance
        E[x(landed)^2 | a] - ranks(a)^2, averaged over the places a.

        Parameters
        ----------
        balls
            [t, a, b]: the law of places in the ball of radius t.
        anywhere
            The law of places of any output.
        ranks
            The values to estimate, by place, minus their mean.
        share
            The share of items at each place.
        """
        inside = self._inside_by_radius[:, None, None]
        laws = inside * balls + (1 - inside) * anywhere
        values = np.linalg.pinv(laws, _SMALLEST) @ ranks
        unbiased = np.abs(laws @ values[..., None] - ranks[:, None]).max(axis=(1, 2)) < _UNBIASED
        variances = np.einsum("a,tab,tb->t", share, laws, values**2) - share @ ranks**2
        return int(np.argmin(np.where(unbiased, variances, np.inf)))
