"""From an epsilon for the whole ranking to the epsilon of one item's position.

A mechanism is calibrated by the epsilon of one position, and states its whole-ranking epsilon: ``local_epsilon``, the
worst log-ratio over *any* two rankings. To protect whole rankings, it is used at the largest position epsilon whose
``local_epsilon`` is at most the epsilon asked for.

If the two are proportional (kendall 2 eps/m, ulam eps/(m-1), the Kendall ball eps), one proportional step is exact. For
other mechanisms it is repeated until the whole-ranking epsilon is within a share 2^-16 below the target, and never
above: the position epsilon is a rational, and ``local_epsilon`` is rounded up. Where that jumps (the linear programme
of ``optimal``), the last position epsilon below the jump is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism

_CLOSE = Fraction(1, 1 << 16)  # the share of epsilon that may stay unused; no reader sees the fifth digit
_GRID = 1 << 40  # position epsilons are multiples of epsilon over this, so that they stay short
_STEPS, _BISECTED_FROM = 26, 8
_FREE_STEPS = 2  # after them the sizes of tiers are fixed, because they change in steps with epsilon


def protecting_rankings(
    build: Callable[[str, Fraction], RankingMechanism], name: str, epsilon: Fraction
) -> RankingMechanism:
    """The mechanism of this name with the largest position epsilon that protects the whole ranking with ``epsilon``.

    Parameters
    ----------
    build
        Makes a mechanism from its name and the epsilon of one position.
    name
        The name; numbers after it stay fixed.
    epsilon
        The privacy of the whole ranking.

    Returns
    -------
    RankingMechanism
        The mechanism; its ``epsilon`` is the position epsilon that was found.
    """
    low, high, at = Fraction(0), _GRID * epsilon, epsilon
    best: RankingMechanism | None = None
    for step in range(_STEPS):
        found = build(name, at)
        stated = Fraction(found.local_epsilon())
        if stated <= epsilon:
            low, best = at, found
            if stated >= epsilon * (1 - _CLOSE):
                break
        else:
            high = at
        if step == _FREE_STEPS and found.numbered:
            name, low, high, best = found.name, Fraction(0), _GRID * epsilon, None
        exact = at * epsilon / stated
        at = exact if exact.denominator < _GRID else _rounded(exact * (1 - _CLOSE / 2), epsilon)
        if step >= _BISECTED_FROM or not low < at < high:
            at = _rounded((low + high) / 2, epsilon)
    if best is None:
        raise Unsupported(f"no epsilon of the {name} mechanism was found that protects whole rankings with {epsilon}")
    return best


def _rounded(value: Fraction, unit: Fraction) -> Fraction:
    return Fraction(math.floor(value / unit * _GRID), _GRID) * unit
