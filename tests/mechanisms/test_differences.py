"""Differences and the design: sensitivities by enumeration, exact audits, mutants; the fit with an expected design."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import generator, seeded
from test_units import flipped, replaced, voters

from rankdp.audit import audit_exact
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyDegrees, NoisyDifferences, NoisyLeads, NoisyPairs
from rankdp.mechanisms.votes.protection import Protection
from rankdp.publish.secret_designs import SecretDesign
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.rankers.expected_design import design_of_degrees, fit_differences, likely_degrees

KINDS = (NoisyDifferences, NoisyDegrees, NoisyPairs, NoisyLeads)
kinds = pytest.mark.parametrize("kind", KINDS)
CASES = [
    (Protection("comparison"), 4, replaced(4, 1)),
    (Protection("comparison"), 3, replaced(3, 2)),
    (Protection("voter", 1), 4, voters(4, 1)),
    (Protection("voter", 2), 4, voters(4, 2)),
    (Protection("voter", 3), 3, voters(3, 3)),
]


def counted(kind, data, items):
    left, right, halves = zip(*data, strict=True) if data else ((), (), ())
    return kind.counted(PairCounts.from_pairs(left, right, halves, items=items))


def farthest(kind, neighbours, items):
    vectors = {data: counted(kind, data, items) for data in set(itertools.chain.from_iterable(neighbours))}
    changes = np.array([vectors[one] - vectors[other] for one, other in neighbours])
    return int(np.abs(changes).sum(axis=1).max()), int(np.square(changes).sum(axis=1).max())


@kinds
@pytest.mark.parametrize(("protection", "items", "neighbours"), CASES, ids=[f"{p.unit}-{p.moved}" for p, *_ in CASES])
def test_sensitivities_by_brute_force(kind, protection, items, neighbours):
    """Never exceeded, and reached where there are four items, so that two pairs need not share one."""
    l1, l2_squared = farthest(kind, neighbours, items)
    mechanism = kind(protection, 1)
    assert l1 <= mechanism.l1
    assert l2_squared <= mechanism.l2_squared
    if items == 4 or kind is not NoisyDegrees:
        assert (l1, l2_squared) == (mechanism.l1, mechanism.l2_squared)


def test_an_outcome_moves_differences_by_four_and_the_design_not_at_all():
    assert farthest(NoisyDifferences, flipped(3, 2), 3) == (4, 8)
    assert farthest(NoisyDegrees, flipped(3, 2), 3) == farthest(NoisyPairs, flipped(3, 2), 3) == (0, 0)


@kinds
@pytest.mark.parametrize("protection", [Protection("comparison"), Protection("voter", 2)], ids=str)
def test_the_exact_audit_finds_epsilon(kind, protection, request):
    audit = audit_exact(kind(protection, "0.7"), items=4, bits=seeded(request))
    assert audit.holds
    assert audit.epsilon_low == audit.epsilon_high == Fraction(7, 10)


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
    """Differences at nine tenths and the design at one cost what all of it costs alone."""
    protection = Protection("voter", 3)
    parts = [kind(protection, 2, delta, share) for kind, share in ((NoisyDifferences, "0.9"), (NoisyDegrees, "0.1"))]
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


# -- the fit -----------------------------------------------------------------------------------------------------


def laplace_law(scale, far=4000):
    """P(k) for abs(k) up to ``far``."""
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(np.arange(-far, far + 1))


def rough_law(noisy, share, kept=None):
    """The law of a rough look, by convolution; ``kept`` replaces the chance that nothing is added."""
    fine, scale = laplace_law(float(noisy.scale)), float(noisy.scale * noisy.share / Fraction(share))
    if kept is None:
        kept = (math.sinh(1 / (2 * scale)) / math.sinh(1 / (2 * float(noisy.scale)))) ** 2
    added = (1 - kept) * laplace_law(scale)
    added[len(added) // 2] += kept
    middle = slice(len(fine) // 2, -(len(fine) // 2))
    return np.convolve(fine, added)[middle], scale


@pytest.mark.parametrize("share", ["1/20", "3/10", "1/2"])
def test_a_rough_look_alone_costs_its_share(share):
    """Its law is that of noise of the larger scale, so no shift by one changes it by more; with mutants it does."""
    noisy = NoisyDifferences(Protection("comparison"), 1, share="0.88")
    law, scale = rough_law(noisy, share)
    near = slice(3800, 4201)
    assert law[near] == pytest.approx(laplace_law(scale)[near], rel=1e-9)

    def steepest(law):
        return np.abs(np.diff(np.log(law[near]))).max() * noisy.l1

    assert steepest(law) == pytest.approx(float(Fraction(share)), rel=1e-6)
    assert steepest(rough_law(noisy, share, kept=1)[0]) > 1.5 * float(Fraction(share))  # the fine one shown
    assert steepest(rough_law(noisy, share, kept=0)[0]) <= float(Fraction(share)) * (1 + 1e-9)  # more noise than due


def test_rough_looks_follow_their_law(request):
    noisy = NoisyDifferences(Protection("comparison"), 1, share="0.88")
    bits = seeded(request)
    fine = noisy.noise(40_000, bits)
    rough = noisy.rougher(fine, "0.3", bits)
    assert rough.var() == pytest.approx(2 * float(noisy.scale * noisy.share / Fraction("0.3")) ** 2, rel=0.06)
    kept, again = (0.3 / 0.88) ** 2, math.tanh(0.3 / 8)
    assert (rough == fine).mean() == pytest.approx(kept + (1 - kept) * again, abs=0.02)
    with pytest.raises(InputError, match="at most a share of 22/25, got 9/10"):
        noisy.rougher(fine, "0.9", bits)
    assert not NoisyDifferences(Protection("comparison"), 10**5).rougher(np.zeros(9, np.int64), "0.5", bits).any()


@pytest.mark.parametrize("design", ["chance", "even"])
@pytest.mark.parametrize(
    ("protection", "comparisons"), [(Protection("comparison"), 5000), (Protection("voter", 10), 300)]
)
def test_what_is_spent_is_all_of_epsilon_and_not_more(design, protection, comparisons):
    counts = PairCounts.from_pairs([0, 1], [1, 2], [2, 2], items=4)
    asked = SecretDesign(protection, Fraction(1), Fraction(0), design)
    for switched in (False, True):
        parts, objective = asked.parts(counts, comparisons, switched)
        assert sum(noisy.share for noisy, _ in parts) + (objective.epsilon if objective else 0) == 1


def test_the_fit_is_that_of_wins_where_the_design_is_the_true_one(request):
    random = generator(request)
    first, second = np.triu_indices(12, 1)
    played, won = (table := random.integers(1, 9, len(first))), random.binomial(table, 0.4)
    counts = PairCounts(tuple(map(str, range(12))), first, second, 2 * won, 2 * (played - won))
    expected = counts.dense() + counts.dense().T
    found = fit_differences(expected, NoisyDifferences.counted(counts), 0.7)
    assert found == pytest.approx(fit_wins(counts, counts.half_wins, ridge=0.7).theta, abs=1e-7)


@pytest.mark.parametrize("size", [0.0, 3.0, 1e6])
def test_the_fit_solves_its_equation_for_any_differences(size, request):
    random = generator(request)
    wanted, expected = size * random.standard_normal(30), design_of_degrees(random.pareto(1, 30) + 1)
    theta = fit_differences(expected, wanted, 0.01)
    left = (expected * np.tanh((theta[:, None] - theta) / 2)).sum(axis=1) + 0.02 * theta
    assert left == pytest.approx(wanted - wanted.mean(), abs=1e-8 * (1 + size + expected.sum()))
    assert theta.mean() == pytest.approx(0, abs=1e-9 * (1 + size))


def test_degrees_make_a_design(request):
    degrees = generator(request).uniform(1, 50, 9)
    expected = design_of_degrees(degrees)
    assert expected.sum(axis=1) == pytest.approx(degrees)
    assert (expected == expected.T).all()
    assert design_of_degrees(np.full(9, 16.0)) == pytest.approx(2 * (1 - np.eye(9)))
    beyond = design_of_degrees(np.array([100.0, 1, 1, 1]))  # more than the others have together
    assert np.isfinite(beyond).all()


def test_a_ridge_and_a_square_table_are_needed():
    with pytest.raises(InputError, match="ridge must be"):
        fit_differences(1 - np.eye(3), [0, 0, 0], 0)
    with pytest.raises(InputError, match="expected must be a table of 3 rows"):
        fit_differences(1 - np.eye(2), [0, 0, 0], 1)


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e10, 1e40])
def test_degrees_that_noise_drowns_are_still_chances(noise):
    noisy = noise * np.array([-0.02, 0.14, 0.2, -1.1, -1.9, -0.8]) + 2
    grid, chances = likely_degrees(noisy, noise**2 / 3, 6)
    assert (grid > 0).all()
    assert np.isfinite(grid).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
