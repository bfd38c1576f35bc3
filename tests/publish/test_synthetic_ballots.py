"""Synthetic ballots: what they reproduce, what they promise, and that only released counts shape them."""

import numpy as np
import pytest

import rankdp
from rankdp.data.ballots import Ballots
from rankdp.data.rankings import Rankings
from rankdp.errors import BudgetExceeded, InputError, Unsupported
from rankdp.mechanisms.ballots.prefixes import NoisyPrefixes
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish.synthetic_ballots import synthetic_ballots
from rankdp.rankers.ballot_model import synthetic_table


def electorate(voters=4000, seed=3):
    """Six candidates of two camps; ballots list two to six of them."""
    random = np.random.default_rng(seed)
    camp = random.integers(0, 2, voters)
    appeal = np.array([[2, 1.5, 1, 0, -0.5, -1], [-1, 0, -0.5, 1.5, 2, 1]])[camp]
    orders = np.argsort(-(appeal + random.gumbel(size=appeal.shape)), axis=1)
    orders[np.arange(6) >= random.integers(2, 7, voters)[:, None]] = -1
    return Rankings.from_orders(orders, items=list("abcdef"))


def statistics(table):
    ballots = Ballots.of(table)
    first = np.bincount(ballots.orders[:, 0], ballots.weights, minlength=len(ballots.items))
    return first, ballots.margins()


def test_exact_counts_give_a_table_that_has_them():
    """Almost no noise: prefixes come back whole, lengths and margins nearly."""
    true = Ballots.of(electorate())
    mechanism = NoisyPrefixes(6, BallotProtection("ballot"), 1)
    counts = mechanism.count(true)
    orders, cast = synthetic_table(counts, dict.fromkeys(counts, 0.05), np.random.default_rng(1).random)
    made = mechanism.count(Ballots.of(Rankings.from_orders(np.repeat(orders, cast, axis=0), true.items)))
    assert cast.sum() == 4000
    assert (cast > 0).all()
    assert np.abs(made["first"] - counts["first"]).max() <= 2
    assert np.abs(made["second"] - counts["second"]).max() <= 3
    assert np.abs(made["lengths"] - counts["lengths"]).max() <= 40
    assert np.abs(made["margins"] - counts["margins"]).mean() <= 20


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 7])
def test_counts_that_are_all_noise_still_give_ballots(m):
    mechanism = NoisyPrefixes(m, BallotProtection("voter"), "0.01")
    single = mechanism.count(Ballots.from_orders([["0"]], items=[str(item) for item in range(m)]))
    for seed in range(4):
        seen = mechanism.sample(single, SeededBits(seed))
        orders, cast = synthetic_table(seen, mechanism.noise_variances, np.random.default_rng(seed).random)
        Ballots.of(Rankings.from_orders(orders, items=[str(item) for item in range(m)]))  # refuses what is no ballot
        assert cast.sum() >= 1


@pytest.mark.parametrize("protect", ["ballot", "voter"])
def test_a_release_keeps_first_preferences_and_margins(protect):
    poll = electorate()
    first, margins = statistics(poll)
    release = synthetic_ballots(poll, 2, protect=protect, bits=SeededBits(4))
    seen, pairs = statistics(release.value)
    assert release.value.items == poll.items
    assert np.abs(seen - first).max() < 0.01 * len(poll)
    assert np.abs(pairs - margins).mean() < 0.03 * len(poll)
    assert len(release.value) == pytest.approx(len(poll), abs=40)
    assert release.rehearsal


def test_the_table_is_made_of_released_counts_alone(monkeypatch):
    """Two elections with the same noisy counts have the same table."""
    poll, other = electorate(500, 1), electorate(500, 2)
    noisy = NoisyPrefixes(6, BallotProtection("ballot"), 1)
    seen = noisy.sample(noisy.count(Ballots.of(poll)), SeededBits(1))
    monkeypatch.setattr(NoisyPrefixes, "sample", lambda *_: seen)
    tables = [synthetic_ballots(ballots, 1, bits=SeededBits(9)).value for ballots in (poll, other)]
    assert tables[0] == tables[1]


def test_the_promise_and_the_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.ledger", "poll", epsilon=1, protect="ballot")
    poll = electorate(200)
    release = synthetic_ballots(poll, "0.75", ledger=ledger)
    assert release.guarantee.protects == "one ballot"
    assert str(release.guarantee.epsilon) == "3/4"
    assert set(release.provenance.parameters["noise_variances"]) == {"first", "second", "third", "lengths", "margins"}
    with pytest.raises(BudgetExceeded):
        synthetic_ballots(poll, "0.75", ledger=ledger)
    voter = synthetic_ballots(poll, 1, protect="voter", delta="1e-6")
    assert voter.guarantee.protects == "one voter"
    assert voter.guarantee.rho is not None


def test_refusals(tmp_path):
    tied = tmp_path / "tied.toi"
    tied.write_text("# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n2: {1,2}\n1: 1\n")
    with pytest.raises(Unsupported, match="strict orders"):
        synthetic_ballots(tied, 1)
    with pytest.raises(InputError, match="protect must be one of ballot, voter, got 'comparison'"):
        synthetic_ballots(electorate(10), 1, protect="comparison")
    with pytest.raises(InputError, match="at most 10,000,000 rows, got 10,000,001 ballots"):
        synthetic_ballots(Ballots.from_orders([["a", "b"], ["b"]], weights=[10_000_000, 1]), 1)


@pytest.mark.slow
def test_dublin_north(data_directory):
    """First preferences within 0.2% and margins within 1.5% of n; a prefix tree alone gave 2.95%."""
    true = Ballots.read(data_directory / "preflib_irish2002" / "dublin_north_2002.csv")
    first, margins = statistics(true)
    above = np.triu_indices(12, 1)
    seen, pairs = statistics(rankdp.synthetic_ballots(true, 1, bits=SeededBits(0)).value)
    assert np.abs(seen - first).max() < 0.002 * true.count
    assert np.abs(pairs - margins)[above].mean() < 0.007 * true.count
