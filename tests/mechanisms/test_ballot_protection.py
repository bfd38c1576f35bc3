"""How far neighbouring elections' counts can be apart, by trying all ballots."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection


def every_ballot(m: int):
    return [order[:length] for order in permutations(range(m)) for length in range(1, m + 1)]


def distances(vectors: np.ndarray, unit: str) -> tuple[float, float]:
    """The largest l1 and squared l2 distance between neighbours."""
    moves = vectors if unit == "voter" else (vectors[:, None] - vectors[None]).reshape(-1, vectors.shape[1])
    return np.abs(moves).sum(axis=1).max(), (moves**2).sum(axis=1).max()


@pytest.mark.parametrize("unit", ["ballot", "voter"])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_sensitivities_are_reached_and_never_passed(m, unit):
    protection = BallotProtection(unit)
    names = [str(item) for item in range(m)]
    cast = [Ballots.from_orders([[names[item] for item in order]], items=names) for order in every_ballot(m)]
    borda = distances(np.array([ballots.centred_borda() for ballots in cast]), unit)
    assert borda[1] == protection.borda_l2_squared(m)
    for k in range(1, m + 1):
        votes = distances(np.array([ballots.first_k(k) // SHARES for ballots in cast]), unit)
        bound = protection.votes(k, m)
        assert votes == (bound, bound)


def test_units_say_what_they_protect():
    assert BallotProtection("ballot").protects == "one ballot"
    assert BallotProtection("voter").protects == "one voter"
    assert [BallotProtection(unit).count_public for unit in ("ballot", "voter")] == [True, False]
    with pytest.raises(InputError, match="protect must be one of ballot, voter, got 'comparison'"):
        BallotProtection("comparison")
