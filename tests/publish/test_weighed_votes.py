"""Voters bounded by weights: norms by enumeration, engines alike, the choice of the bound, and what it costs."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support import generator, seeded

from rankdp.audit import audit_samples
from rankdp.data.comparisons import Comparisons
from rankdp.data.voter_loads import STEPS, VoterLoads, weight_of
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyCounts,
    NoisyDegrees,
    NoisyDifferences,
    NoisyLeads,
    NoisyPairs,
    NoisyWins,
)
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish import weighed_votes
from rankdp.publish.rank import rank
from rankdp.publish.weighed_votes import MOST, NoisyVoters, histogram_of, weigh

ITEMS = tuple("abcd")
CONTENTS = [i * 4 + j for i in range(4) for j in range(4) if i != j] + [16 + 1, 16 + 11]  # wins, and two ties
SAID = [said for size in range(4) for said in itertools.combinations_with_replacement(CONTENTS, size)]
SAID += [(one,) * 7 + (two,) * 5 for one in CONTENTS[:4] for two in CONTENTS[:4]]


def loads_of(said, spread):
    contents = np.array(said, np.int64)
    return VoterLoads.of(ITEMS, np.zeros(len(said), np.int32), contents, np.ones(len(said), np.int64), spread)


def vectors(kind, bound, spread):
    """What one voter adds to the counts, in steps, whatever the voter says."""
    return np.unique([kind.counted(loads_of(said, spread).weighed(bound)) for said in SAID], axis=0)


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("kind", [NoisyDifferences, NoisyDegrees, NoisyPairs, NoisyLeads, NoisyWins])
def test_a_weighed_voter_moves_counts_as_so_many_comparisons_do(kind, bound):
    mechanism = kind(Protection("voter", bound, steps=STEPS), 1)
    said = vectors(kind, bound, spread=False)
    l1 = max(int(np.abs(said - one).sum(axis=1).max()) for one in said)
    l2_squared = max(int(np.square(said - one).sum(axis=1).max()) for one in said)
    assert 0.99 * mechanism.l1 * STEPS <= l1 <= mechanism.l1 * STEPS
    assert 0.99 * mechanism.l2_squared * STEPS**2 <= l2_squared <= mechanism.l2_squared * STEPS**2


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("kind", [NoisyDifferences, NoisyDegrees, NoisyPairs])
def test_votes_weighed_by_their_spread_keep_the_l2_norm(kind, bound):
    mechanism = kind(Protection("voter", bound, steps=STEPS, spread_items=4), 1, "1e-6")
    said = vectors(kind, bound, spread=True)
    l2_squared = max(int(np.square(said - one).sum(axis=1).max()) for one in said)
    assert 0.99 * mechanism.l2_squared * STEPS**2 <= l2_squared <= mechanism.l2_squared * STEPS**2


@pytest.mark.parametrize("spread", [False, True])
def test_weights_are_rounded_down(spread):
    for load, bound in itertools.product(range(1, 60), (1, 3, 10**6)):
        weight = weight_of(load, bound, spread)
        used = weight**2 * load if spread else weight * load
        assert used <= (2 * bound**2 * STEPS**2 if spread else bound * STEPS)
        assert weight <= STEPS


def table(random, voters=40, most=12):
    rows = [
        (f"v{v}", *random.permutation(list(ITEMS))[:2]) for v in range(voters) for _ in range(random.integers(1, most))
    ]
    return pa.table(dict(zip(("voter", "winner", "loser"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("spread", [False, True])
def test_engines_weigh_alike(spread, request):
    votes = table(generator(request))
    plain, duck = (Comparisons.from_frame(votes, items=ITEMS, engine=engine) for engine in ("process", "duckdb"))
    one, two = plain.bound(3).loads(spread), duck.bound(3).loads(spread)
    assert one.weighed(3) == two.weighed(3)
    assert dict(zip(one.loads.tolist(), one.voters.tolist(), strict=True)) == dict(
        zip(two.loads.tolist(), two.voters.tolist(), strict=True)
    )
    everyone = one.weighed(10**6)  # nobody is cut: the plain counts
    assert (everyone.half_wins == STEPS * plain.count().half_wins).all()


def test_the_histogram_moves_by_two_when_a_voter_is_replaced():
    cells = np.unique([histogram_of(loads_of(said, spread)) for said in SAID for spread in (False, True)], axis=0)
    assert (
        max(int(np.abs(cells - one).sum(axis=1).max()) for one in cells) == 2 == NoisyVoters(Protection("voter"), 1).l1
    )


# -- the choice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_the_bound_suits_how_much_voters_vote(delta, request):
    """With more epsilon, more of the votes of those who vote much are worth their noise."""
    random, found = generator(request), {}
    for votes, epsilon in ((1, 1), (100, "0.05"), (100, 20)):
        voters = np.repeat(np.arange(3000, dtype=np.int32), np.repeat([1, votes], 1500))
        said = random.choice(CONTENTS[:12], len(voters))
        loads = VoterLoads.of(ITEMS, voters, said, np.ones(len(said), np.int64), bool(delta))
        chosen = weigh(loads, Protection("voter", MOST), Fraction(epsilon), Fraction(delta), seeded(request))
        found[votes, epsilon] = chosen.protection.moved
        assert chosen.protection.steps == STEPS
        assert 0 < chosen.sampling <= 1
    assert found[1, 1] == 1
    assert found[100, "0.05"] < found[100, 20]


def test_few_voters_get_a_bound_too():
    assert (
        weigh(loads_of(SAID[5], False), Protection("voter", MOST), Fraction(1), 0, SeededBits(1)).protection.moved == 4
    )


def asked(**others):
    return {"protect": "voter", "max_per_voter": "auto", "items": ITEMS, **others}


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

    monkeypatch.setattr(NoisyCounts, "sample", counted)
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", f"one voter with at most {MOST} comparisons", 5, "1e-3")
    release = rank(table(generator(request)), 2, method=method, delta=delta, ledger=ledger, **asked())
    assert (ledger.budgets[0].remaining == 3) if not delta else (3 <= ledger.budgets[0].remaining < 4)
    if delta:
        assert spent == [Fraction(1, 10)]
        total = sum(rhos) + Fraction(1, 10) ** 2 / 2
        assert total <= release.guarantee.rho <= float(total) * 1.001
    else:
        assert sum(spent) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("careless", "draws"), [(False, 1500), (True, 1500)])
def test_the_audit_catches_weights_without_a_bound(careless, draws, request, monkeypatch):
    """One voter with forty votes for one item, or with none, among others."""
    if careless:
        monkeypatch.setattr("rankdp.data.voter_loads.weight_of", lambda load, bound, spread: STEPS)
    bits = seeded(request)

    def release(said, count):
        loads = loads_of(said, False)
        noisy = [weigh(loads, Protection("voter", MOST), Fraction(2), Fraction(0), bits) for _ in range(count)]
        mechanisms = [NoisyDifferences(one.protection, 2, 0, "0.9") for one in noisy]
        return np.array([m.released(m.counted(one.counts), bits) for m, one in zip(mechanisms, noisy, strict=True)])

    pairs = [((CONTENTS[0],) * 40, ())]
    assert audit_samples(release, pairs, draws=draws, claimed_epsilon=2).holds is not careless


def test_refusals(tmp_path, request):
    votes = table(generator(request))
    with pytest.raises(Unsupported, match="weighs votes, which objective perturbation cannot take"):
        rank(votes, 1, **asked(link="secant"))
    with pytest.raises(InputError, match="max_per_voter goes with protect='voter' only"):
        rank(votes, 1, **asked(protect="comparison"))
    with pytest.raises(InputError, match="max_per_voter must be an integer of at least 1, got 'many'"):
        rank(votes, 1, **asked(max_per_voter="many"))
    with pytest.raises(InputError, match="the votes are bounded to 3 per voter already"):
        rank(Comparisons.from_frame(votes, items=ITEMS).bound(3), 1, protect="voter", max_per_voter="auto")


def test_no_votes_at_all():
    empty = pa.table(
        {"voter": pa.array([], pa.string()), "winner": pa.array([], pa.string()), "loser": pa.array([], pa.string())}
    )
    for delta in (0, "1e-6"):
        assert np.isfinite(rank(empty, 1, delta=delta, **asked()).value.scores).all()
    assert weighed_votes.histogram_of(loads_of((), True)).sum() == 0
