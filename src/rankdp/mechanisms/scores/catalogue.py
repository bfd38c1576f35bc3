"""The noises for scores by name, and the function that builds them.

    >>> score_mechanism("laplace", bounds=(0, 1), epsilon=1).guarantee.epsilon
    Fraction(1, 1)

The grid is chosen from public numbers only: the bounds, the request and, for a ball, the number of scores.
"""

from __future__ import annotations

import math
from typing import Any

from rankdp.checks import one_of
from rankdp.mechanisms.scores.grid import Asked, Grid, ScoreMechanism, check_bounds, fitting_steps
from rankdp.mechanisms.scores.grid_noises import (
    BallScores,
    GaussianScores,
    GeneralizedNormalScores,
    LaplaceScores,
    StaircaseScores,
)
from rankdp.mechanisms.scores.joint_staircase import JointStaircaseScores
from rankdp.privacy.exact import Real

_TRIAL_STEPS = 1 << 20  # of a grid on which the noise is measured
SCORE_MECHANISMS: dict[str, type[ScoreMechanism]] = {
    kind.name: kind
    for kind in (
        LaplaceScores,
        GaussianScores,
        GeneralizedNormalScores,
        StaircaseScores,
        JointStaircaseScores,
        BallScores,
    )
}
"""All noises for scores by name, simple ones first."""


def score_mechanism(
    noise: str = "laplace",
    *,
    bounds: Any,
    epsilon: Real | None = None,
    delta: Real = 0,
    p: Real | None = None,
    gamma: Real | None = None,
    count: int | None = None,
    steps: int | None = None,
) -> ScoreMechanism:
    """A noise for scores by name.

    Parameters
    ----------
    noise
        One of ``SCORE_MECHANISMS``: "laplace", "gaussian", "generalized-normal", "staircase", "joint-staircase" or
        "ball".
    bounds
        Two public numbers that every score lies between.
    epsilon
        The privacy of one score; every noise but "ball" needs it.
    delta
        The probability that epsilon may fail: needed by "gaussian", "ball" and "generalized-normal" with p above 1.
    p
        The shape: needed by "generalized-normal", taken by "ball".
    gamma
        The share of the first stair of "staircase" and "joint-staircase"; the best one if not given.
    count
        How many scores there are, for "joint-staircase" and "ball".
    steps
        The number of grid steps between the bounds; by default chosen from public numbers.
    """
    one_of("noise", noise, SCORE_MECHANISMS)
    kind = SCORE_MECHANISMS[noise]
    low, high = check_bounds(bounds)
    asked = Asked.read(epsilon, delta, p, gamma, count if "count" in kind.needs else None)
    if steps is None:
        try:
            spread = kind(Grid(low, high, _TRIAL_STEPS), asked).deviation / _TRIAL_STEPS
        except (OverflowError, ZeroDivisionError):  # more noise than a float can hold
            spread = math.inf
        steps = fitting_steps(spread)
    return kind(Grid(low, high, steps), asked)
