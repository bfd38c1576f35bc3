"""Elect: the count behind every rule, what is promised and charged, how sure the result says it is, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import rankdp
from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import BudgetExceeded, InputError
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.cube import ChosenMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.mechanisms.ballots.shaped import ShapedNoise
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import BALLOT, VOTERS_BALLOT
from rankdp.privacy.ledger import Ledger
from rankdp.publish import elections
from rankdp.publish.ballot_rules import borda_noise, margin_noise, vote_noise
from rankdp.publish.close_pairs import share_of_scores
from rankdp.publish.elections import ElectionRequest, elect
from rankdp.rankers.kemeny import kemeny
from rankdp.rankers.runoff import Piles, run

NAMES = list("abcdef")
RULES = ["borda", "pairs", "plurality", "irv", "stv"]
HUGE = 10**5


def electorate(voters=3000, seed=3):
    """Six candidates of two camps; ballots list two to six of them, some with weights."""
    random = np.random.default_rng(seed)
    camp = random.integers(0, 2, voters)
    appeal = np.array([[2, 1.5, 1, 0, -0.5, -1], [-1, 0, -0.5, 1.5, 2, 1]])[camp]
    orders = np.argsort(-(appeal + random.gumbel(size=appeal.shape)), axis=1)
    lengths = random.integers(2, 7, voters)
    lists = [[NAMES[item] for item in order[:length]] for order, length in zip(orders, lengths, strict=True)]
    return Ballots.from_orders(lists, items=NAMES, weights=[1] * voters)


BALLOTS = electorate()


def words(**changed):
    given = {
        "epsilon": 1,
        "rule": "borda",
        "protect": "ballot",
        "delta": 0,
        "seats": 1,
        "first": 1,
        "pairs_by": "kemeny",
        "announce": "everything",
        "level": 0.95,
    }
    return ElectionRequest.of(**{**given, **changed})


@pytest.mark.parametrize("delta", [0, "1e-9"])
@pytest.mark.parametrize("protect", ["ballot", "voter"])
def test_with_hardly_any_noise_every_rule_gives_the_true_count(protect, delta):
    def result(rule, **more):
        return elect(BALLOTS, HUGE, rule=rule, protect=protect, delta=delta, bits=SeededBits(1), **more).value

    borda = BALLOTS.centred_borda()
    found = result("borda", seats=2)
    assert found.items == tuple(NAMES[item] for item in np.argsort(-borda))
    assert found.winners == found.items[:2]
    assert found.scores == pytest.approx(sorted(borda, reverse=True), abs=1)
    assert found.winners_probability == 1
    votes = result("plurality")
    assert votes.scores == pytest.approx(sorted(BALLOTS.first_preferences() / SHARES, reverse=True), abs=0.1)
    approval = result("plurality", first=3)
    assert approval.scores == pytest.approx(sorted(BALLOTS.first_k(3) / SHARES, reverse=True), abs=0.1)
    pairs = result("pairs")
    order = kemeny(np.maximum(BALLOTS.margins(), 0)).order
    assert pairs.items == tuple(NAMES[item] for item in order)
    assert pairs.margins == pytest.approx(BALLOTS.margins()[order][:, order], abs=1)
    for rule, seats in (("irv", 1), ("stv", 3)):
        true = run(6, Piles(BALLOTS).count, seats=seats, quota=rule == "stv", votes=BALLOTS.count)
        found = result(rule, seats=seats)
        assert found.items == tuple(NAMES[item] for item in true.order)
        assert found.quota == true.quota or (protect == "voter" and abs(found.quota - true.quota) == 1)
        assert len(found.rounds) == len(true.rounds)
        for ours, theirs in zip(found.rounds, true.rounds, strict=True):
            assert ours.eliminated == (None if theirs.eliminated is None else NAMES[theirs.eliminated])
            assert set(ours.elected) == {NAMES[item] for item in theirs.elected}
            for name, votes_now in ours.tallies.items():
                assert votes_now == pytest.approx(theirs.tallies[NAMES.index(name)] / SHARES, abs=1)


@pytest.mark.parametrize("pairs_by", ["kemeny", "copeland", "ranked-pairs", "schulze"])
def test_a_condorcet_winner_is_first_by_every_rule_of_pairs(pairs_by):
    cycle = [list("abcd")] * 40 + [list("acdb")] * 30 + [list("adbc")] * 30
    found = elect(cycle, 200, rule="pairs", pairs_by=pairs_by, items=list("abcd"), bits=SeededBits(2)).value
    assert found.items[0] == found.condorcet_winner == "a"
    assert found.condorcet_probability == pytest.approx(1, abs=0.01)


def test_a_cycle_has_no_sure_condorcet_winner_and_no_sure_winner():
    cycle = [list("abc"), list("bca"), list("cab")] * 100
    found = elect(cycle, 50, rule="pairs", items=list("abc"), bits=SeededBits(2)).value
    assert found.condorcet_probability < 0.05
    assert found.winners_probability < 0.05
    assert any("doubt about the winner" in warning for warning in found.warnings)


@pytest.mark.parametrize("protect", ["ballot", "voter"])
@pytest.mark.parametrize("rule", ["auto", *RULES])
def test_the_guarantee_is_what_was_asked_for(rule, protect):
    release = elect(BALLOTS, "0.5", rule=rule, protect=protect)
    assert release.guarantee.protects == (BALLOT if protect == "ballot" else VOTERS_BALLOT)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (Fraction(1, 2), 0)
    assert (release.value.ballots == BALLOTS.count) == (protect == "ballot")
    if protect == "voter" and rule != "auto":
        assert release.value.ballots is None
        assert str(BALLOTS.count) not in str(release.provenance.parameters)


def test_auto_pays_for_a_noisy_number_of_ballots_out_of_epsilon(monkeypatch):
    asked = words(rule="auto", protect="voter", epsilon=1, delta="1e-6").count(BALLOTS)
    assert asked.counting == Fraction(1, 20)
    assert asked.mechanism.epsilon == Fraction(19, 20)
    assert asked.guarantee.epsilon == 1
    seen = []
    monkeypatch.setattr(
        elections, "discrete_laplace", lambda scale, count, bits: seen.append(scale) or np.zeros(count, np.int64)
    )
    assert asked.draw(SeededBits(1)).value.ballots == BALLOTS.count
    assert seen == [20]
    assert words(rule="auto", protect="ballot").count(BALLOTS).counting == 0


def test_the_rho_of_both_parts_adds_up():
    many = Ballots.from_orders([[str(item) for item in range(40)]] * 9)
    asked = words(rule="auto", protect="voter", delta="1e-6").count(many)
    assert asked.guarantee.rho == pytest.approx(asked.mechanism.guarantee.rho + 0.05**2 / 2)
    assert asked.guarantee.delta == Fraction(1, 10**6)


def test_gaussian_noise_only_where_it_is_smaller():
    protection, epsilon, delta = BallotProtection("ballot"), Fraction(1), Fraction(1, 10**6)
    for m in (3, 10, 40):
        for make in (borda_noise, margin_noise):
            pure, either = make(m, protection, epsilon, Fraction(0)), make(m, protection, epsilon, delta)
            assert either.noise_variance <= pure.noise_variance
            assert either.guarantee.delta <= delta
    assert borda_noise(10, protection, epsilon, delta).delta == 0
    assert borda_noise(40, protection, epsilon, delta).delta == delta
    assert vote_noise(40, protection, epsilon, delta, rounds=39).delta == delta
    assert vote_noise(3, protection, epsilon, delta, rounds=2).delta == 0


def test_auto_asks_about_pairs_from_some_number_of_ballots_on():
    protection = BallotProtection("ballot")

    def share(m, n):
        return share_of_scores(m, n, borda_noise(m, protection, Fraction(1), Fraction(0)))

    assert [share(10, n) for n in (5, 100, 500)] == [1, 1, 1]
    falling = [share(10, n) for n in (600, 1000, 5000, 10**6)]
    assert falling[0] <= Fraction(1, 2)
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == Fraction(1, 10)
    assert share(2, 10**6) == 1
    assert elect(BALLOTS, "0.01", bits=SeededBits(1)).value.rule == "borda"
    assert elect(BALLOTS, 10, bits=SeededBits(1)).value.rule == "close-pairs"


@pytest.mark.parametrize(("protect", "delta"), [("ballot", 0), ("voter", 0), ("ballot", "1e-6")])
def test_scores_and_questions_together_cost_what_was_asked_for(protect, delta, monkeypatch):
    """The shares of one release add up to 1, and each question has the noise for as many pairs as it names."""
    paid, many = [], Ballots.from_orders([[str(item) for item in range(40)]] * 999)

    def watched(cls):
        def sample(self, counts, bits):
            paid.append((self.share, self.items, len(counts), self.epsilon, self.delta, self.rho))
            return ShapedNoise.sample(self, counts, bits)

        monkeypatch.setattr(cls, "sample", sample)

    watched(NoisyBorda)
    watched(ChosenMargins)
    asked = words(rule="auto", protect=protect, epsilon=60, delta=delta).count(many)
    release = asked.draw(SeededBits(1))
    assert release.value.rule == "close-pairs"
    assert len(paid) == 3
    assert sum(share for share, *_ in paid) == 1
    assert all(items == counts for _, items, counts, *_ in paid)
    assert {epsilon for _, _, _, epsilon, _, _ in paid} == {60 - asked.counting}
    assert {kind for *_, kind, _ in paid} == {asked.guarantee.delta}
    assert len(release.value.asked) >= max(items for _, items, *_ in paid[1:])


@pytest.mark.parametrize("pairs_by", ["kemeny", "copeland", "ranked-pairs", "schulze"])
def test_auto_finds_the_order_that_borda_misses(pairs_by):
    """b has more points, a beats b and everyone else: with enough ballots the pair is asked for, and a is first."""
    cast = [list("abcd")] * 520 + [list("bcda")] * 480
    found = elect(cast, 2, items=list("abcd"), pairs_by=pairs_by, bits=SeededBits(3)).value
    assert elect(cast, 2, rule="borda", items=list("abcd"), bits=SeededBits(3)).value.items[0] == "b"
    assert found.items[0] == found.condorcet_winner == "a"
    asked = {(pair.first, pair.second): pair for pair in found.asked}
    assert asked["a", "b"].margin == pytest.approx(40, abs=asked["a", "b"].half_width)


def test_intervals_of_asked_pairs_hold_their_level():
    true = dict(zip(NAMES, range(6), strict=True))
    asked = words(rule="auto", epsilon="0.2", level=0.9).count(BALLOTS)
    margins, held = BALLOTS.margins(), []
    for seed in range(60):
        for pair in asked.draw(SeededBits(seed)).value.asked:
            held.append(abs(pair.margin - margins[true[pair.first], true[pair.second]]) <= pair.half_width)
    assert len(held) > 150
    assert np.mean(held) == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize("rule", ["borda", "plurality", "pairs"])
def test_intervals_hold_their_level(rule):
    """Of every score, and of the ranks of all candidates; the winners' probability is no boast."""
    true = elect(BALLOTS, HUGE, rule=rule, bits=SeededBits(0)).value
    asked = words(rule=rule, epsilon="0.03", level=0.9).count(BALLOTS)
    held, ranked, said, right = [], [], [], []
    for seed in range(40):
        result = asked.draw(SeededBits(seed)).value
        for row, name in enumerate(result.items):
            place = true.items.index(name)
            held.append(result.low[row] <= true.scores[place] <= result.high[row])
            ranked.append(result.rank_low[row] <= place + 1 <= result.rank_high[row])
        said.append(result.winners_probability)
        right.append(result.winners == true.winners)
    assert np.mean(held) == pytest.approx(0.9, abs=0.07)  # 240 of them, in correlated sixes
    assert np.mean(ranked) >= 0.9
    assert np.mean(said) <= np.mean(right) + 0.05


@pytest.mark.parametrize("rule", ["borda", "pairs", "plurality", "auto"])
@pytest.mark.parametrize("lead", [0, 15])
def test_in_a_close_race_no_more_is_said_than_is_true(rule, lead):
    """Two are level, or nearly, far ahead of the others, as plausible truths do not expect."""
    cast = [list("abcde")] * (300 + lead) + [list("bacde")] * 300 + [list("abced")] * 100 + [list("baced")] * 100
    asked = words(rule=rule, epsilon="0.4" if rule == "auto" else "0.1")
    counted = asked.count(Ballots.from_orders(cast, items=list("abcde")))
    results = [counted.draw(SeededBits(seed)).value for seed in range(60)]
    assert {result.rule for result in results} == {"close-pairs" if rule == "auto" else rule}
    right = np.mean([result.winners == ("a",) for result in results])
    said = np.mean([result.winners_probability for result in results])
    assert said <= (0.5 if lead == 0 else right) + 0.1


def test_noise_alone_does_not_make_a_winner_sure():
    """All candidates level: each is first as often, and no result may claim to know."""
    level = [list("abcde"), list("edcba")] * 200
    said = [
        elect(level, "0.02", rule="borda", items=list("abcde"), bits=SeededBits(seed)).value.winners_probability
        for seed in range(40)
    ]
    assert np.mean(said) < 0.35  # 0.2 is right; a flat prior would say 0.54, plausible truths alone 0.4
    assert np.mean([value > 0.9 for value in said]) <= 0.05


def test_a_runoff_is_sure_of_its_winner_though_not_of_who_goes_out_first():
    """d and e are level and nobody's rivals: the order in which they go out does not matter."""
    votes = [["a"]] * 600 + [["b"]] * 300 + [["c"]] * 200 + [["d"]] * 20 + [["e"]] * 20
    found = elect(votes, 2, rule="irv", items=list("abcde"), bits=SeededBits(5)).value
    assert found.winners_probability > 0.999
    assert found.ranks[3:] == (4, 4)
    assert found.rank_high[3:] == (5, 5)


def test_shared_ranks_are_those_of_candidates_that_cannot_be_told_apart():
    votes = [["a"]] * 1000 + [["b"]] * 500 + [["c"]] * 498 + [["d"]] * 10
    found = elect(votes, "0.5", rule="plurality", items=list("abcd"), bits=SeededBits(1)).value
    assert found.ranks == (1, 2, 2, 4)
    assert found.rank_high == (1, 3, 3, 4)
    assert any("places 2 to 3 cannot be told apart" in warning for warning in found.warnings)


@pytest.mark.parametrize(("rule", "seats"), [("borda", 1), ("borda", 3), ("plurality", 1), ("plurality", 2)])
def test_winners_alone(rule, seats):
    found = elect(BALLOTS, 50, rule=rule, announce="winners", seats=seats)
    scores = BALLOTS.centred_borda() if rule == "borda" else BALLOTS.first_preferences()
    assert found.value.winners == tuple(NAMES[item] for item in np.argsort(-scores)[:seats])
    assert found.value.scores == ()
    assert found.value.winners_probability is None
    assert "noise_variance" not in found.provenance.parameters


@pytest.mark.parametrize("protect", ["ballot", "voter"])
@pytest.mark.parametrize(("rule", "first"), [("borda", 1), ("plurality", 1), ("plurality", 2)])
def test_the_spread_of_a_selection_is_as_large_as_one_ballot_makes_it(rule, first, protect):
    """By enumeration: how much further one score moves than another, over all ballots of three candidates."""
    import itertools

    cast = [list(order) for length in (1, 2, 3) for order in itertools.permutations("abc", length)]
    tables = [Ballots.from_orders([ballot], items=list("abc")) for ballot in cast]
    scores = [table.first_k(first) if rule == "plurality" else table.centred_borda() for table in tables]
    others = scores if protect == "ballot" else [np.zeros(3, np.int64)]
    moved = [one - other for one in scores for other in others]
    widest = max(int(change.max() - change.min()) for change in moved)
    asked = words(rule=rule, first=first, protect=protect, announce="winners").count(tables[0])
    assert asked.mechanism.spread == widest


@pytest.mark.parametrize(("rule", "seats"), [("irv", 1), ("stv", 3)])
def test_every_round_takes_the_noise_that_was_paid_for_it(rule, seats, monkeypatch):
    used = []

    class Watched(NoisyVotes):
        def sample(self, units, bits, number=0):
            used.append((number, self.shares[number]))
            return super().sample(units, bits, number)

    monkeypatch.setattr(elections, "vote_noise", lambda *public, rounds=1: Watched(*public, rounds=rounds))
    result = elect(BALLOTS, 5, rule=rule, seats=seats, bits=SeededBits(1)).value
    assert [number for number, _ in used] == list(range(len(result.rounds)))
    assert sum(part for _, part in used) <= 1


def test_a_ledger_is_charged_before_and_refuses_what_does_not_fit(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "poll", protects=BALLOT, epsilon=1)
    elect(BALLOTS, "0.6", rule="borda", ledger=ledger)
    with pytest.raises(BudgetExceeded):
        elect(BALLOTS, "0.6", rule="irv", ledger=ledger)
    assert [entry.what for entry in ledger.history()] == ["elect by borda"]
    with pytest.raises(InputError, match="rehearsal"):
        elect(BALLOTS, "0.1", ledger=ledger, bits=SeededBits(1))


REFUSED = [
    ({"epsilon": 0}, "epsilon must be a finite number above 0"),
    ({"epsilon": 10**7}, "epsilon must be at most 1,000,000"),
    ({"epsilon": "1e-17"}, "too small|2\\^56"),
    ({"rule": "range"}, "rule must be one of auto, borda"),
    ({"protect": "item"}, "protect must be one of ballot, voter"),
    ({"delta": 1}, "delta must be at least 0 and below 1"),
    ({"seats": 6}, "seats must be an integer from 1 to 5, got 6"),
    ({"seats": 0}, "seats must be an integer of at least 1"),
    ({"rule": "irv", "seats": 2}, "seats goes with rule auto, borda, pairs, plurality or stv, got irv"),
    ({"rule": "plurality", "first": 7}, "first must be an integer from 1 to 6"),
    ({"rule": "borda", "first": 2}, "first goes with rule plurality, got borda"),
    ({"rule": "irv", "pairs_by": "schulze"}, "pairs_by goes with rule pairs or auto, got irv"),
    ({"rule": "irv", "announce": "winners"}, "announce goes with rule borda or plurality, got irv"),
    ({"level": 1}, "level must be a number above 0 and below 1"),
    ({"ballots": []}, "there are no ballots"),
    ({"ballots": [["a"]], "items": ["a"]}, "at least 2 candidates, got 1"),
    ({"ballots": [["a", "x"]], "items": NAMES}, "'x'"),
    ({"ballots": [["a", "a"]], "items": NAMES}, "'a'"),
    ({"ballots": [["a", "b"]], "weights": [1.5]}, "a weight must be a whole number"),
    ({"ballots": [["a", "b"]], "weights": [0]}, "there are no ballots"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_is_refused_costs_nothing(tmp_path, asked, words):
    ledger = Ledger.create(tmp_path / "budget.db", "poll", protects=BALLOT, epsilon=HUGE)
    given = {"ballots": BALLOTS, "epsilon": 1, "rule": "borda", **asked}
    with pytest.raises(InputError, match=words) as refusal:
        elect(given.pop("ballots"), given.pop("epsilon"), ledger=ledger, **given)
    assert "\n" not in str(refusal.value)
    assert not ledger.history()


def test_candidates_taken_from_the_ballots_are_said_to_be_public():
    told = [warning for warning in elect([["a", "b"], ["b"]], 1).value.warnings if "not protected" in warning]
    assert len(told) == 1
    assert not [w for w in elect([["a", "b"]], 1, items=["a", "b", "c"]).value.warnings if "not protected" in w]


@pytest.mark.parametrize("rule", ["auto", *RULES])
def test_the_smallest_elections(rule):
    for ballots in ([["a"]], [["b", "a"]], [["a", "b"], ["b"]]):
        result = elect(ballots, 1, rule=rule, items=["a", "b"]).value
        assert set(result.items) == {"a", "b"}
        assert all(math.isfinite(value) for value in (*result.scores, *result.low, *result.high))


@pytest.mark.long
@pytest.mark.parametrize(("protect", "least", "error"), [("voter", 0.95, 15), ("ballot", 0.85, 30)])
def test_dublin_north_as_an_instant_runoff(data_directory, protect, least, error):
    """The whole order of elimination right in so many of 200 rehearsals, and the mean error of a tally."""
    ballots = rankdp.Ballots.read(data_directory / "preflib_irish2002" / "dublin_north_2002.csv")
    true = run(12, Piles(ballots).count, quota=False)
    asked = words(rule="irv", protect=protect).count(ballots)
    right, errors, held = 0, [], []
    for seed in range(200):
        result = asked.draw(SeededBits(seed)).value
        right += result.items == tuple(ballots.items[item] for item in true.order)
        for ours, theirs in zip(result.rounds, true.rounds, strict=True):
            if not np.array_equal(sorted(ours.tallies), sorted(np.array(ballots.items)[theirs.standing])):
                break  # another order: another count
            true_votes = {ballots.items[item]: units / SHARES for item, units in enumerate(theirs.tallies.tolist())}
            off = [abs(votes - true_votes[name]) for name, votes in ours.tallies.items()]
            errors += off
            held += [error <= ours.half_width for error in off]
    assert right / 200 >= least
    assert np.mean(errors) <= error
    assert np.mean(held) == pytest.approx(0.95, abs=0.01)
