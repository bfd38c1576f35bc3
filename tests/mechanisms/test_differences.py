"""Counts where the design is hidden: sensitivities by enumeration, exact audits, mutants."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support import seeded
from test_units import flipped, replaced, voters

from rankdp.audit import audit_exact
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyDegrees,
    NoisyDifferences,
    NoisyLeads,
    NoisyResiduals,
    NoisyTable,
)
from rankdp.mechanisms.votes.protection import Protection

STRENGTHS = np.array([0.7, -1.3, 0.7, 0.1])


class Residuals(NoisyResiduals):
    """At strengths of which two are equal."""

    def __init__(self, protection, *budget):
        super().__init__(STRENGTHS, protection, *budget)


KINDS = (NoisyDifferences, NoisyDegrees, NoisyLeads, NoisyTable, Residuals)
kinds = pytest.mark.parametrize("kind", KINDS)
CASES = [
    (Protection("comparison"), 4, replaced(4, 1)),
    (Protection("comparison"), 3, replaced(3, 2)),
    (Protection("voter", 1), 4, voters(4, 1)),
    (Protection("voter", 2), 4, voters(4, 2)),
    (Protection("voter", 3), 3, voters(3, 3)),
]


def counted(mechanism, data, items):
    left, right, halves = zip(*data, strict=True) if data else ((), (), ())
    return mechanism.counted(PairCounts.from_pairs(left, right, halves, items=items))


def farthest(mechanism, neighbours, items):
    vectors = {data: counted(mechanism, data, items) for data in set(itertools.chain.from_iterable(neighbours))}
    changes = np.array([vectors[one] - vectors[other] for one, other in neighbours])
    return int(np.abs(changes).sum(axis=1).max()), int(np.square(changes).sum(axis=1).max())


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(("protection", "items", "neighbours"), CASES, ids=[f"{p.unit}-{p.moved}" for p, *_ in CASES])
def test_sensitivities_by_brute_force(kind, protection, items, neighbours):
    """Never exceeded, and reached where there are four items, so that two pairs need not share one."""
    mechanism = kind(protection, 1)
    l1, l2_squared = farthest(mechanism, neighbours, items)
    assert l1 <= mechanism.l1
    assert l2_squared <= mechanism.l2_squared
    if items == 4 or kind is not NoisyDegrees:
        assert (l1, l2_squared) == (mechanism.l1, mechanism.l2_squared)


def test_an_outcome_moves_differences_by_four_and_the_design_not_at_all():
    unit = Protection("outcome")
    assert farthest(NoisyDifferences(unit, 1), flipped(3, 2), 3) == (4, 8)
    assert farthest(NoisyDegrees(unit, 1), flipped(3, 2), 3) == (0, 0)


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("protection", [Protection("comparison"), Protection("voter", 2)], ids=str)
def test_the_exact_audit_finds_epsilon(kind, protection, request):
    audit = audit_exact(kind(protection, "0.7"), items=4, bits=seeded(request))
    assert audit.holds
    assert audit.epsilon_low == audit.epsilon_high == Fraction(7, 10)


@pytest.mark.slow
@kinds
def test_half_the_sensitivity_is_caught(kind):
    class Careless(kind):
        @property
        def l1(self):
            return super().l1 // 2

    for protection in (Protection("comparison"), Protection("voter", 2)):
        assert not audit_exact(Careless(protection, 1), items=4, draws=0).holds


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_shares_add_up(delta):
    """Residuals at nine tenths and the design at one cost what all of it costs alone."""
    protection = Protection("voter", 3)
    parts = [kind(protection, 2, delta, share) for kind, share in ((Residuals, "0.9"), (NoisyDegrees, "0.1"))]
    if delta:
        spent = sum(part.l2_squared / (2 * part.sigma**2) for part in parts)
        assert parts[0].rho * Fraction(9999, 10000) < spent <= parts[0].rho
    else:
        assert sum(part.l1 / part.scale for part in parts) == 2
    assert parts[0].guarantee == parts[1].guarantee == NoisyDifferences(protection, 2, delta).guarantee


@pytest.mark.parametrize("share", [0, "1.01", -1])
def test_a_share_is_a_share(share):
    with pytest.raises(InputError, match="share must be"):
        NoisyDifferences(Protection("comparison"), 1, 0, share)


def test_residuals_of_any_strengths_stay_within_their_sensitivity():
    """Of strengths far apart, equal, tiny and huge; the grid is coarser where the noise would not fit."""
    neighbours = replaced(4, 1)
    for scale in (0.0, 1e-9, 1.0, 40.0, 1e300):
        mechanism = NoisyResiduals(scale * STRENGTHS, Protection("comparison"), 1)
        l1, l2_squared = farthest(mechanism, neighbours, 4)
        assert l1 <= mechanism.l1
        assert l2_squared <= mechanism.l2_squared
    with np.errstate(invalid="ignore"):
        broken = NoisyResiduals(np.array([np.nan, np.inf, np.inf, -1e308]), Protection("comparison"), 1)
    assert (broken.credit.min(), broken.credit.max()) == (0, broken.grid)  # whatever was fitted before
    assert NoisyResiduals(STRENGTHS, Protection("voter", 1 << 31, steps=1 << 16), 1).grid == 1
    assert NoisyResiduals(STRENGTHS, Protection("voter", 1 << 31, steps=1 << 16), 1).scale < 1 << 56


def test_residuals_that_round_up_are_caught():
    """An upset would then count for more than the grid."""

    class RoundsUp(Residuals):
        def __init__(self, protection, *budget):
            super().__init__(protection, *budget)
            self.credit = self.credit + 1

    assert not audit_exact(RoundsUp(Protection("comparison"), 1), items=4, draws=0).holds


def test_residuals_are_those_of_their_formula():
    counts = PairCounts.from_pairs([0, 1, 0, 2], [1, 0, 3, 1], [2, 2, 1, 2], items=4)
    mechanism = Residuals(Protection("comparison"), 1)
    wins, weights = counts.dense(), np.minimum(1, np.exp(STRENGTHS[None, :] - STRENGTHS[:, None])) / 2
    expected = (wins * weights - (wins * weights).T).sum(axis=1)
    assert mechanism.counted(counts) / (4 * mechanism.grid) == pytest.approx(expected, abs=2 / mechanism.grid)
    assert mechanism.weights == pytest.approx(weights, abs=1 / mechanism.grid)


def test_the_table_is_that_of_its_pairs():
    counts = PairCounts.from_pairs([0, 1, 0, 2], [1, 0, 3, 1], [2, 2, 1, 2], items=4)
    assert (NoisyTable(Protection("comparison"), 1).counted(counts) == 2 * counts.dense()[~np.eye(4, dtype=bool)]).all()
