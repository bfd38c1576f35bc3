"""Audits of mechanisms for ballots: honest ones hold, and what is wrong is named."""

from fractions import Fraction

import numpy as np
import pytest
from audit_mutants import SmallRemoval, SmallRho, UnpaidRound, not_centred
from support import seeded

from rankdp.audit import audit_election, audit_exact, audit_samples
from rankdp.audit.electorates import audit_electorates
from rankdp.data.ballots import Ballots
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.mechanisms.ballots.selection import PermuteAndFlip, TopSet
from rankdp.publish import election_draws
from rankdp.publish.elections import ElectionRequest
from rankdp.rankers.runoff import Piles

BALLOT, VOTER = BallotProtection("ballot"), BallotProtection("voter")


@pytest.mark.slow
@pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)
def test_honest_mechanisms_hold_and_use_their_epsilon(protection, request):
    moved = protection.moved
    for mechanism in (
        NoisyBorda(3, protection, "1/2"),
        NoisyBorda(4, VOTER, 1),
        NoisyMargins(3, protection, 1),
        PermuteAndFlip(protection, moved, 1),
    ):
        audit = audit_exact(mechanism, draws=2000, bits=seeded(request))
        assert audit.holds, audit.explain()
        assert audit.epsilon_low > 0.9 * float(mechanism.guarantee.epsilon)
        assert audit.epsilon_high <= mechanism.guarantee.epsilon + Fraction(2e-9) * isinstance(
            mechanism, PermuteAndFlip
        )
    top = TopSet(protection, moved, 1, 2)
    assert audit_exact(top, draws=500, bits=seeded(request)).holds
    top.spread = Fraction(moved, 4)  # less than half the noise
    assert not audit_exact(top, draws=0).holds


@pytest.mark.slow
@pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)
@pytest.mark.parametrize(("m", "rounds", "unit"), [(3, 2, 720_720), (3, 2, 100_000), (4, 3, 720_720), (3, 1, 720_720)])
def test_the_rounds_of_a_runoff_cost_what_they_claim_to_the_last_digit(protection, m, rounds, unit, request):
    """A ballot that lists all candidates moves every round; exact rationals, so equality.

    Every ballot, also one that ranks nobody, along every course: candidates go out, or are elected and their ballots
    handed on at once (gregory) or a round later (scottish).
    """
    mechanism = NoisyVotes(m, protection, "1/2", rounds=rounds, unit=unit)
    audit = audit_exact(mechanism, draws=2000, bits=seeded(request))
    assert audit.holds, audit.explain()
    assert audit.epsilon_low == audit.epsilon_high == Fraction(1, 2)


@pytest.mark.slow
def test_a_round_that_was_not_paid_for_is_found(request):
    audit = audit_exact(UnpaidRound(4, BALLOT, 1, rounds=3), draws=0)
    assert not audit.holds
    assert audit.epsilon_low == 1 + UnpaidRound(4, BALLOT, 1, rounds=3).shares[-1]
    assert audit_election(NoisyVotes(3, VOTER, 1, "1e-5", rounds=2), draws=3000, bits=seeded(request)).holds


@pytest.mark.parametrize("mutant", ["all exhausted", "noise in other units"])
def test_a_count_in_which_a_ballot_is_worth_more_than_a_vote_is_found(mutant, monkeypatch):
    class Wrong(Piles):
        def __init__(self, ballots, unit):
            super().__init__(ballots, 720_720 if mutant == "noise in other units" else unit)
            self.all = ballots.count * unit

        def count(self, standing, transfers, held=None):
            tallies = super().count(standing, transfers, held)
            return np.append(tallies[:-1], self.all) if mutant == "all exhausted" else tallies

    monkeypatch.setattr("rankdp.audit.electorates.Piles", Wrong)
    audit = audit_exact(NoisyVotes(3, VOTER, 1, rounds=2, unit=100_000), draws=0)
    assert not audit.holds
    assert audit.epsilon_low > Fraction(13, 10)


def test_what_is_wrong_is_found(request):
    wrong = audit_exact(NoisyBorda(3, SmallRemoval("ballot"), 1), draws=0)
    assert not wrong.holds
    assert wrong.epsilon_low > 1.9
    assert "VIOLATION" in wrong.explain()
    seen = audit_electorates(NoisyBorda(3, VOTER, 1), Fraction(1), 0, seeded(request), not_centred)
    assert seen.epsilon_low == np.inf
    small = audit_exact(SmallRho(BALLOT, 2, 1), draws=0)
    assert not small.holds
    assert small.epsilon_low <= 1
    assert "rho is at least 0.28" in small.explain()


def test_samples(request):
    for mechanism in (NoisyBorda(3, BALLOT, 1), NoisyBorda(3, VOTER, 2, "1e-5"), NoisyMargins(3, VOTER, 1)):
        assert audit_election(mechanism, draws=4000, bits=seeded(request)).holds
    small = audit_election(NoisyBorda(3, SmallRemoval("ballot"), 1), draws=20_000, bits=seeded(request))
    assert not small.holds


def test_refusals():
    with pytest.raises(Unsupported, match="Gaussian noise on ballots is audited by its samples"):
        audit_exact(NoisyBorda(3, BALLOT, 1, "1e-6"))
    with pytest.raises(InputError, match="items must be an integer from 2 to 4, got 5"):
        audit_exact(NoisyBorda(5, BALLOT, 1))
    with pytest.raises(InputError, match="items must be an integer from 3 to 3, got 4"):
        audit_election(NoisyBorda(4, BALLOT, 1))


@pytest.fixture
def quick(monkeypatch):
    """Results with rough intervals, which follow from what is released anyway."""
    monkeypatch.setattr(election_draws, "_DRAWS", 20)
    monkeypatch.setattr(election_draws, "_FEWEST", 20)


def through_elect(rule, protection, request, draws, epsilon=1):
    """A statistical audit of what ``elect`` itself publishes from six ballots and one more."""
    bits = seeded(request)

    def release(ballots, size):
        table = Ballots.from_orders([list(ballot) for ballot in ballots], items=list("abc"))
        asked = ElectionRequest.of(epsilon, rule, protection.unit, 0, 1, 1, "everything", 0.95)
        return np.array([published(asked.count(table).draw(bits).value) for _ in range(size)])

    def published(result):
        # points rest on the noisy number of ballots too; what was drawn for them is their differences
        scores = np.array(result.scores) - np.mean(result.scores) if rule == "borda" else result.scores
        first = result.rounds[0].tallies if result.rounds else dict(zip(result.items, scores, strict=True))
        last = list(result.rounds[-1].tallies.values()) if result.rounds else []
        return [*(first[name] for name in "abc"), *last, "abc".index(result.items[0])]

    others = ("abc", "bca", "cab", "acb", "ba", "c")
    turned = () if protection.unit == "voter" else ("cba",)
    pair = ((*others, "abc"), (*others, *turned))
    return audit_samples(release, [pair], draws=draws, claimed_epsilon=1, confidence=0.99, describe=" ".join)


@pytest.mark.long
@pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)
@pytest.mark.parametrize("rule", ["plurality", "borda", "irv", "kemeny", "condorcet"])
def test_what_elect_publishes_holds(rule, protection, request, quick):
    assert through_elect(rule, protection, request, 4000).holds


@pytest.mark.slow
def test_elect_with_too_little_noise_is_caught(request, quick):
    assert through_elect("borda", VOTER, request, 600).holds
    assert not through_elect("borda", VOTER, request, 600, epsilon=4).holds


def test_outputs_of_which_one_part_never_changes_are_audited(request):
    """A column with one value has one cell, and no event in it tells anything."""
    found = audit_samples(
        lambda value, size: np.array([[1, 7]] * size), [("one", "other")], draws=400, claimed_epsilon=1
    )
    assert found.holds
