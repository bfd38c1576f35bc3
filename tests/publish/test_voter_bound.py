"""Voters bounded by weights: norms by enumeration, the choice of the bound, and what it costs."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support import generator, seeded

from rankdp.audit import audit_samples
from rankdp.data import votes as votes_module
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import LOADS, STEPS, PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyCounts,
    NoisyDegrees,
    NoisyDifferences,
    NoisyLeads,
    NoisyResiduals,
    NoisyTable,
    NoisyWins,
)
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish.rank import rank
from rankdp.publish.voter_bound import BOUNDS, SHARE, NoisyVoters, UnboundedVotes

ITEMS = tuple("abcd")
WINS = [(one, two) for one in ITEMS for two in ITEMS if one != two]
SAID = [said for size in range(4) for said in itertools.combinations_with_replacement(WINS, size)]
SAID += [(one,) * 7 + (two,) * 5 for one in WINS[:4] for two in WINS[:4]]
UNIT = Protection.of("voter", 1)
KINDS = (NoisyDifferences, NoisyDegrees, NoisyTable, NoisyLeads, NoisyWins)


def votes_of(said, voter=lambda at: "eve"):
    columns = {"winner": [one for one, _ in said], "loser": [two for _, two in said]}
    columns["voter"] = [voter(at) for at in range(len(said))]
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    return Comparisons.of(table, items=ITEMS)


@pytest.fixture(scope="module")
def everything_one_voter_can_say():
    """The weighed counts for the bounds 1 and 2 of every list in SAID."""
    return [votes_of(said).count_for([1, 2]) for said in SAID]


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_weighed_voter_moves_counts_as_so_many_comparisons_do(kind, bound, everything_one_voter_can_say):
    mechanism = kind(Protection.of("voter", bound), 1)
    said = np.unique([mechanism.counted(counts[bound]) for counts in everything_one_voter_can_say], axis=0)
    l1 = max(int(np.abs(said - one).sum(axis=1).max()) for one in said)
    l2_squared = max(int(np.square(said - one).sum(axis=1).max()) for one in said)
    assert 0.99 * mechanism.l1 * STEPS <= l1 <= mechanism.l1 * STEPS
    assert 0.99 * mechanism.l2_squared * STEPS**2 <= l2_squared <= mechanism.l2_squared * STEPS**2


def test_weights_are_rounded_down():
    for load, bound in itertools.product((1, 2, 3, 7, 12, 59), (1, 3, 10**6)):
        total = int(votes_of([("a", "b")] * load).bound(bound).count().halves.sum()) // 2
        assert total == load * min(STEPS, bound * STEPS // load) <= bound * STEPS


def test_the_histogram_moves_by_two_when_a_voter_is_replaced():
    cells = [votes_of([("a", "b")] * load).load_counts() for load in (0, 1, 2, 3, 4, 900, 1024, 5000)]
    assert [int(cell.argmax()) for cell in cells] == [0, 0, 1, 1, 2, 9, 10, 10]
    assert [int(cell.sum()) for cell in cells] == [0, 1, 1, 1, 1, 1, 1, 1]
    farthest = max(int(np.abs(one - other).sum()) for one, other in itertools.combinations(cells, 2))
    assert farthest == 2 == NoisyVoters(Protection.of("voter", 99), 1).l1


# -- the choice --------------------------------------------------------------------------------------------------


def unbounded(loads):
    """Votes whose counts do not matter, with so many voters of each load."""
    none = PairCounts.from_pairs([], [], [], [], items=ITEMS)
    cells = np.zeros(LOADS, np.int64)
    for load, voters in loads.items():
        cells[min(load.bit_length() - 1, LOADS - 1)] += voters
    return UnboundedVotes(dict.fromkeys(BOUNDS, none), cells)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_the_bound_suits_how_much_voters_vote(delta, request):
    """With more epsilon, more of the votes of those who vote much are worth their noise."""
    found = {}
    for votes, epsilon in ((1, 1), (100, "0.2"), (100, 20)):
        loads = unbounded({1: 1500} | {votes: 3000 if votes == 1 else 1500})
        chosen = loads.bounded(UNIT, Fraction(epsilon), Fraction(delta), seeded(request))
        found[votes, epsilon] = chosen.protection.moved
        assert chosen.protection.steps == STEPS
    assert found[1, 1] == 1
    assert found[100, "0.2"] < found[100, 20]


def test_where_the_histogram_shows_nothing_the_bound_is_one():
    chosen = unbounded({64: 3}).bounded(UNIT, Fraction(1), Fraction(0), SeededBits(1))
    assert chosen.protection.moved == 1
    assert (
        chosen.description
        == "At most 1 comparison of each voter counts fully; with more, each of them has less weight."
    )


def test_empty_cells_seldom_count(request):
    """Noise alone lifts a cell so high that it counts in at most one histogram in twenty."""
    bits, nobody = seeded(request), unbounded({})
    alarms = sum(nobody.bounded(UNIT, Fraction(1), Fraction(0), bits).protection.moved != 1 for _ in range(400))
    assert alarms <= 38  # of 400; above 20 by more than four standard deviations


def table(random, voters=40, most=12):
    rows = [
        (f"v{v}", *random.permutation(list(ITEMS))[:2]) for v in range(voters) for _ in range(random.integers(1, most))
    ]
    return pa.table(dict(zip(("voter", "winner", "loser"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bradley-terry", "wins", "copeland"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_all_that_is_drawn_costs_what_is_promised(method, delta, monkeypatch, tmp_path, request):
    spent, rhos = [], []

    def counted(self, data, bits, real=NoisyCounts.sample):
        if self.rho is None:
            spent.append(self.l1 * self.protection.steps / self.scale)
        else:
            rhos.append(self.l2_squared * self.protection.steps**2 / (2 * self.sigma**2))
        return real(self, data, bits)

    def solved(self, counts, bits, real=ObjectivePerturbation.sample):
        spent.append(self.epsilon)
        return real(self, counts, bits)

    monkeypatch.setattr(NoisyCounts, "sample", counted)
    monkeypatch.setattr(ObjectivePerturbation, "sample", solved)
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", "voter", 5, "1e-3")
    release = rank(
        table(generator(request)), 2, method=method, delta=delta, ledger=ledger, protect="voter", items=ITEMS
    )
    assert (ledger.budgets[0].remaining == 3) if not delta else (3 <= ledger.budgets[0].remaining < 4)
    assert spent[0] == 2 * SHARE
    used = release.provenance.parameters["max_per_voter"]
    assert used in BOUNDS
    assert any(f"{used} comparison" in warning for warning in release.value.warnings)
    if delta:
        total = sum(rhos) + sum(cost**2 / 2 for cost in spent)
        assert total <= release.guarantee.rho <= float(total) * 1.001
    else:
        assert sum(spent) == 2


@pytest.mark.slow
@pytest.mark.parametrize("careless", [False, True])
def test_the_audit_catches_weights_without_a_bound(careless, request, monkeypatch):
    """One voter with forty votes for one item, or with none."""
    if careless:
        monkeypatch.setattr("rankdp.data.votes._weighed", lambda bound: votes_module.nw.col("rd_amount") * STEPS)
    bits = seeded(request)
    said = {"forty": votes_of([("a", "b")] * 40), "none": votes_of([])}
    secret = {name: UnboundedVotes(votes.count_for(BOUNDS), votes.load_counts()) for name, votes in said.items()}

    def release(name, count):
        chosen = [secret[name].bounded(UNIT, Fraction(2), Fraction(0), bits) for _ in range(count)]
        mechanisms = [NoisyDifferences(one.protection, 2, 0, 1 - SHARE) for one in chosen]
        return np.array([m.released(m.counted(one.counts), bits) for m, one in zip(mechanisms, chosen, strict=True)])

    found = audit_samples(release, [("forty", "none")], draws=1500, claimed_epsilon=2)
    assert found.holds is not careless


def test_refusals(request):
    votes = table(generator(request))
    asked = {"protect": "voter", "items": ITEMS}
    with pytest.raises(InputError, match="max_per_voter needs protect='voter'"):
        rank(votes, 1, protect="comparison", max_per_voter=3, items=ITEMS)
    with pytest.raises(InputError, match="max_per_voter must be an integer of at least 1, got 'auto'"):
        rank(votes, 1, max_per_voter="auto", **asked)
    bounded = rank(Comparisons.of(votes, items=ITEMS).bound(3), 1, protect="voter")
    assert bounded.provenance.parameters["max_per_voter"] == 3
    assert rank(votes, 1, pairing="matched", **asked).provenance.parameters["max_per_voter"] in BOUNDS


def test_bounds_that_a_small_ridge_does_not_allow_are_not_chosen(request):
    votes = table(generator(request), voters=400)
    release = rank(votes, 20, protect="voter", items=ITEMS, pairing="matched")
    assert release.provenance.parameters["max_per_voter"] < max(BOUNDS)


@pytest.mark.slow
def test_no_votes_at_all():
    empty = pa.table({name: pa.array([], pa.string()) for name in ("voter", "winner", "loser")})
    for delta in (0, "1e-6"):
        assert np.isfinite(rank(empty, 1, delta=delta, protect="voter", items=ITEMS).value.scores).all()


BY_HAND = Protection("voter", 2)


@pytest.mark.parametrize(
    "add_noise",
    [
        *(lambda counts, unit, kind=kind: kind(unit, 1).counted(counts) for kind in KINDS),
        lambda counts, unit: NoisyResiduals(np.zeros(4), unit, 1).counted(counts),
        lambda counts, unit: ObjectivePerturbation(4, 10, unit, 1, 50).sample(counts, SeededBits(1)),
    ],
)
def test_noise_for_other_steps_than_those_of_the_counts_is_refused(add_noise):
    """Steps of a protection made by hand are 1: its noise would be 65,536 times too small for weighed votes."""
    votes = votes_of(SAID[-1])
    weighed, plain = votes.bound(2).count(), votes.count()
    assert (weighed.steps, plain.steps, Protection.of("voter", 2).steps) == (STEPS, 1, STEPS)
    for counts, unit in ((weighed, BY_HAND), (plain, Protection.of("voter", 2))):
        with pytest.raises(InputError, match=f"as the noise does, got {counts.steps:,}"):
            add_noise(counts, unit)
    for counts, unit in ((weighed, Protection.of("voter", 2)), (plain, BY_HAND)):
        add_noise(counts, unit)


def test_counts_keep_their_steps():
    weighed = votes_of(SAID[-1]).bound(2).count()
    assert weighed.comparisons.sum() == pytest.approx(2, abs=1e-3)
    assert pickle.loads(pickle.dumps(weighed)) == weighed
    assert weighed != PairCounts(*(getattr(weighed, name) for name in PairCounts.__slots__[:-1]))
