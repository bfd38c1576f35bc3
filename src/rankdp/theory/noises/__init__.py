"""The noises that privatize a vector of scores (Jeong, Example 2.5), by name, and the sigma that a privacy asks for.

All have variance one in each coordinate; the mechanism is X + sigma N. ``NOISES`` is the one place where a name
becomes a family.
"""

from __future__ import annotations

from typing import Any

from rankdp.errors import InputError
from rankdp.theory.noises.ball import Ball
from rankdp.theory.noises.contract import ScoreNoise, check_alpha, check_epsilon, check_number, grow
from rankdp.theory.noises.families import Gaussian, Laplace
from rankdp.theory.noises.radial import GeneralizedNormal
from rankdp.theory.noises.staircase import Staircase

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
    if name not in NOISES:
        raise InputError(f"noise must be one of {', '.join(NOISES)}, got {name!r}")
    try:
        return NOISES[name](**parameters)
    except TypeError:
        takes = {"generalized-normal": "p", "staircase": "epsilon and perhaps gamma", "ball": "p and n"}
        got = ", ".join(sorted(parameters)) or "none"
        raise InputError(f"the {name} noise takes {takes.get(name, 'no parameters')}, got {got}") from None


def rdp_inverse(noise: ScoreNoise, alpha: float, epsilon: float, span: float) -> float:
    """(24): the smallest sigma with ``renyi(alpha, span/sigma) <= epsilon``, inf if there is none.

    ``span`` is l, the largest change of one score; alpha = inf is pure epsilon-DP.
    """
    alpha = check_alpha(alpha)
    epsilon = check_number(epsilon, "epsilon", "a finite number above 0", 0.0)
    return _sigma(noise.largest_shift(alpha, check_epsilon(epsilon)), span)


def delta_inverse(noise: ScoreNoise, epsilon: float, delta: float, span: float) -> float:
    """The smallest sigma with ``delta(epsilon, span/sigma) <= delta``: (epsilon, delta)-DP for one score."""
    epsilon = check_epsilon(epsilon)
    delta = check_number(delta, "delta", "a number from 0 to 1", 0.0, least=True)
    if delta >= 1:
        raise InputError(f"delta must be below 1, got {delta!r}")
    return _sigma(grow(lambda shift: noise.delta(epsilon, shift) <= delta), span)


def _sigma(shift: float, span: float) -> float:
    span = check_number(span, "span", "a finite number above 0", 0.0)
    return span / shift if shift > 0 else float("inf")
