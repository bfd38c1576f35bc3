"""The noises that privatize a vector of scores (Jeong, Example 2.5), by name, and the sigma that a privacy asks for.

All have variance one in each coordinate; the mechanism is X + sigma N. ``NOISES`` is the one place where a name
becomes a family.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rankdp.checks import number, one_of, positive
from rankdp.errors import InputError
from rankdp.theory.noises.families import Gaussian, Laplace, Staircase
from rankdp.theory.noises.radial import Ball, GeneralizedNormal
from rankdp.theory.noises.score_noise import ScoreNoise, check_alpha, grow

__all__ = [
    "NOISES",
    "Ball",
    "Gaussian",
    "GeneralizedNormal",
    "Laplace",
    "ScoreNoise",
    "Staircase",
    "delta_inverse",
    "noise",
    "rdp_inverse",
]

NOISES: dict[str, type[ScoreNoise]] = {
    family.name: family for family in (Laplace, Gaussian, GeneralizedNormal, Staircase, Ball)
}


def noise(name: str, **parameters: Any) -> ScoreNoise:
    """The noise of this name: ``noise("generalized-normal", p=0.5)``."""
    one_of("noise", name, NOISES)
    try:
        return NOISES[name](**parameters)
    except TypeError:
        takes = ", ".join(field.name for field in fields(NOISES[name])) or "no parameters"  # type: ignore[arg-type]
        got = ", ".join(sorted(parameters)) or "none"
        raise InputError(f"the {name} noise takes {takes}, got {got}") from None


def rdp_inverse(noise: ScoreNoise, alpha: float, epsilon: float, span: float) -> float:
    """(24): the smallest sigma with ``renyi(alpha, span/sigma) <= epsilon``, inf if there is none.

    ``span`` is l, the largest change of one score; alpha = inf is pure epsilon-DP.
    """
    return _sigma(noise.largest_shift(check_alpha(alpha), positive("epsilon", epsilon)), span)


def delta_inverse(noise: ScoreNoise, epsilon: float, delta: float, span: float) -> float:
    """The smallest sigma with ``delta(epsilon, span/sigma) <= delta``: (epsilon, delta)-DP for one score."""
    most = number("delta", delta, 0, 1)
    return _sigma(grow(lambda shift: noise.delta(epsilon, shift) <= most), span)


def _sigma(shift: float, span: float) -> float:
    return positive("span", span) / shift if shift > 0 else float("inf")
