"""Rules that look at margins: Copeland, ranked pairs, Schulze, and the Condorcet winner.

The margin y_ij of a pair is how many more voters put i above j than j above i, or an estimate of it. An item that beats
every other, y_ij > 0 for all j, is the Condorcet winner; all three rules put it first. Items that a rule cannot tell
apart keep the order in which they came (by Copeland's rule, which often cannot, the larger sum of margins goes first).
"""

from __future__ import annotations

import numpy as np

from rankdp.errors import InputError
from rankdp.types import Floats, Ints, Longs


def _checked(margins: Floats | Longs) -> Floats | Longs:
    if margins.ndim != 2 or (margins != -margins.T).any():
        raise InputError("margins must be a square matrix with y_ij = -y_ji")
    return margins


def copeland(margins: Floats | Longs) -> Ints:
    """Items by how many others they beat less how many they lose to, best first (Copeland 1951).

    Parameters
    ----------
    margins
        y_ij, antisymmetric.
    """
    balance = np.sign(_checked(margins)).sum(axis=1)
    return np.lexsort((-margins.sum(axis=1), -balance)).astype(np.int32)


def ranked_pairs(margins: Floats | Longs) -> Ints:
    """Pairs are fixed from the largest margin down, skipping any that contradict earlier ones (Tideman 1987).

    Parameters
    ----------
    margins
        y_ij, antisymmetric.
    """
    m = len(_checked(margins))
    winners, losers = np.nonzero(margins > 0)
    largest_first = np.argsort(-margins[winners, losers], kind="stable")
    above = np.eye(m, dtype=np.bool_)  # above[i, j]: i is fixed above j, or is j
    for winner, loser in zip(winners[largest_first].tolist(), losers[largest_first].tolist(), strict=True):
        if not above[loser, winner] and not above[winner, loser]:
            above |= np.outer(above[:, winner], above[loser])
    return np.argsort(-above.sum(axis=1), kind="stable").astype(np.int32)


def schulze(margins: Floats | Longs) -> Ints:
    """Items by their strongest chains of majorities, a chain being as strong as its weakest margin (Schulze 2011).

    Parameters
    ----------
    margins
        y_ij, antisymmetric.
    """
    strength = np.maximum(_checked(margins), 0)
    for middle in range(len(strength)):
        strength = np.maximum(strength, np.minimum(strength[:, middle, None], strength[middle]))
    beaten = (strength > strength.T).sum(axis=1)  # the relation is transitive, so counting sorts it
    return np.argsort(-beaten, kind="stable").astype(np.int32)


def condorcet_winner(margins: Floats | Longs) -> int | None:
    """The item that beats every other, None if there is none.

    Parameters
    ----------
    margins
        y_ij, antisymmetric.
    """
    beats = (_checked(margins) > 0).sum(axis=1)
    best = int(beats.argmax())
    return best if beats[best] == len(margins) - 1 else None
