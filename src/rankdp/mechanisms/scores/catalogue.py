"""The noises for scores by name, and the one place that builds them.

    >>> score_mechanism("laplace", bounds=(0, 1), epsilon=1).guarantee.epsilon
    Fraction(1, 1)

The grid is chosen from public numbers only: the bounds, what is asked for and, for a ball, how many scores there are.
"""

from __future__ import annotations

from typing import Any

from rankdp.errors import InputError
from rankdp.mechanisms.scores.grid import Asked, Grid, ScoreMechanism, check_bounds, fitting_steps
from rankdp.mechanisms.scores.grid_noises import (
    BallScores,
    GaussianScores,
    GeneralizedNormalScores,
    LaplaceScores,
    StaircaseScores,
)
from rankdp.privacy.exact import Real

SCORE_MECHANISMS: dict[str, type[ScoreMechanism]] = {
    one.name: one for one in (LaplaceScores, GaussianScores, GeneralizedNormalScores, StaircaseScores, BallScores)
}


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
        One of ``SCORE_MECHANISMS``: "laplace", "gaussian", "generalized-normal", "staircase" or "ball".
    bounds
        Two public numbers that every score lies between.
    epsilon
        The privacy of one score; every noise but "ball" needs it.
    delta
        With what probability epsilon may fail: needed by "gaussian", "ball" and "generalized-normal" with p above 1.
    p
        The shape: needed by "generalized-normal", taken by "ball".
    gamma
        The share of the first stair of "staircase"; the best one if not given.
    count
        How many scores there are, for "ball".
    steps
        The number of grid steps between the bounds; chosen from public numbers if not given.
    """
    if noise not in SCORE_MECHANISMS:
        raise InputError(f"noise must be one of {', '.join(SCORE_MECHANISMS)}, got {noise!r}")
    kind = SCORE_MECHANISMS[noise]
    low, high = check_bounds(bounds)
    asked = Asked.read(epsilon, delta, p, gamma, count if "count" in kind.takes else None)
    kind.check(asked)
    return kind(Grid(low, high, fitting_steps(kind.spread(asked)) if steps is None else steps), asked)
