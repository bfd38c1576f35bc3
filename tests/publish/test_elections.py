"""Elect: the count behind every rule, what is promised and charged, how sure the result says it is, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import rankdp
from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import BudgetExceeded, InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import BALLOT, VOTER
from rankdp.privacy.ledger import Ledger
from rankdp.publish import elections
from rankdp.publish.ballot_rules import PAIR_RULES, RULES, borda_noise, margin_noise, vote_noise
from rankdp.publish.election_draws import ORDERS, _not_negative
from rankdp.publish.election_result import CountedRound, Election
from rankdp.publish.elections import ElectionRequest, elect
from rankdp.rankers.kemeny import kemeny
from rankdp.rankers.runoff import Piles, run

NAMES = list("abcdef")
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
        "announce": "everything",
        "level": 0.95,
    }
    return ElectionRequest.of(**{**given, **changed})


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, "1e-9"])
@pytest.mark.parametrize("protect", ["ballot", "voter"])
def test_with_hardly_any_noise_every_rule_gives_the_true_count(protect, delta):
    def result(rule, **more):
        return elect(BALLOTS, HUGE, rule=rule, protect=protect, delta=delta, bits=SeededBits(1), **more).value

    borda = BALLOTS.centred_borda()
    found = result("borda", seats=2)
    assert found.items == tuple(NAMES[item] for item in np.argsort(-borda))
    assert found.winners == found.items[:2]
    assert found.scores == pytest.approx(sorted((borda + 5 * BALLOTS.count) / 2, reverse=True), abs=5)
    assert found.ballots == pytest.approx(BALLOTS.count, abs=1)
    assert found.winners_probability == 1
    votes = result("plurality")
    assert votes.scores == pytest.approx(sorted(BALLOTS.first_preferences() / SHARES, reverse=True), abs=0.1)
    approval = result("plurality", first=3)
    assert approval.scores == pytest.approx(sorted(BALLOTS.first_k(3) / SHARES, reverse=True), abs=0.1)
    pairs = result("kemeny")
    order = kemeny(np.maximum(BALLOTS.margins(), 0)).order
    assert pairs.items == tuple(NAMES[item] for item in order)
    assert pairs.margins == pytest.approx(BALLOTS.margins()[order][:, order], abs=1)
    for rule, seats in (("irv", 1), ("stv", 3)):
        true = run(6, Piles(BALLOTS).count, seats=seats, method="gregory" if rule == "stv" else None)
        found = result(rule, seats=seats)
        assert found.items == tuple(NAMES[item] for item in true.order)
        assert found.quota == true.quota or (protect == "voter" and abs(found.quota - true.quota) == 1)
        assert len(found.rounds) == len(true.rounds)
        for ours, theirs in zip(found.rounds, true.rounds, strict=True):
            assert ours.eliminated == (None if theirs.eliminated is None else NAMES[theirs.eliminated])
            assert set(ours.elected) == {NAMES[item] for item in theirs.elected}
            for name, votes_now in ours.tallies.items():
                assert votes_now == pytest.approx(theirs.tallies[NAMES.index(name)] / SHARES, abs=1)


@pytest.mark.parametrize("rule", PAIR_RULES)
def test_a_condorcet_winner_is_first_by_every_rule_of_pairs(rule):
    cycle = [list("abcd")] * 40 + [list("acdb")] * 30 + [list("adbc")] * 30
    found = elect(cycle, 200, rule=rule, items=list("abcd"), bits=SeededBits(2)).value
    assert (found.items[0], found.condorcet_winner, found.winners) == ("a", "a", ("a",))
    assert found.winners_probability == pytest.approx(1, abs=0.01)


CYCLE = [list("abc"), list("bca"), list("cab")] * 100
"""Each beats the next one, 200 ballots to 100."""


def test_in_a_cycle_nobody_wins_by_condorcet_and_other_rules_are_not_sure():
    found = elect(CYCLE, 50, rule="condorcet", items=list("abc"), bits=SeededBits(2)).value
    assert found.winners == ()
    assert found.condorcet_winner is None
    assert found.winners_probability > 0.999
    for rule in ("kemeny", "schulze"):
        found = elect(CYCLE, 50, rule=rule, items=list("abc"), bits=SeededBits(2)).value
        assert len(found.winners) == 1
        assert found.winners_probability < 0.95


def test_in_a_cycle_every_rank_is_open():
    found = elect(CYCLE, 50, rule="kemeny", items=list("abc"), bits=SeededBits(2)).value
    assert found.rank_low == (1, 1, 1)
    assert found.rank_high == (3, 3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("rule", PAIR_RULES)
def test_the_order_is_that_of_the_released_margins(rule):
    """Whoever has the published table finds the published order, however large the noise is."""
    for seed in range(5 if rule == "kemeny" else 20):
        found = elect(BALLOTS, "0.01", rule=rule, bits=SeededBits(seed)).value
        again = np.asarray(ORDERS[rule](found.margins))
        assert again.tolist() == list(range(6))
        beats_all = [name for name, row in zip(found.items, found.margins, strict=True) if (row > 0).sum() == 5]
        assert [found.condorcet_winner] == (beats_all or [None])


@pytest.mark.slow
@pytest.mark.parametrize("protect", ["ballot", "voter"])
@pytest.mark.parametrize("rule", RULES)
def test_the_guarantee_is_what_was_asked_for(rule, protect):
    release = elect(BALLOTS, "0.5", rule=rule, protect=protect)
    assert release.guarantee.protects == (BALLOT if protect == "ballot" else VOTER)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (Fraction(1, 2), 0)
    assert (release.value.ballots == BALLOTS.count) == (protect == "ballot")
    if protect == "voter":
        assert release.value.ballots_low < release.value.ballots < release.value.ballots_high
        assert str(BALLOTS.count) not in str(release.provenance.parameters)


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


KEMENY = pytest.param("kemeny", marks=pytest.mark.long)  # solved again for every draw


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["borda", "plurality", KEMENY, "copeland"])
def test_intervals_hold_their_level(rule):
    """Of every score, and of the ranks of all candidates."""
    true = elect(BALLOTS, HUGE, rule=rule, bits=SeededBits(0)).value
    asked = words(rule=rule, epsilon="0.03", level=0.9).count(BALLOTS)
    held, ranked = [], []
    for seed in range(40):
        result = asked.draw(SeededBits(seed)).value
        for row, name in enumerate(result.items):
            place = true.items.index(name)
            held.append(result.low[row] <= true.scores[place] <= result.high[row])
            ranked.append(result.rank_low[row] <= place + 1 <= result.rank_high[row])
    assert np.mean(held) == pytest.approx(0.9, abs=0.07)  # 240 of them, in correlated sixes
    assert np.mean(ranked) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["borda", KEMENY, "plurality", "irv"])
def test_the_probability_of_the_winner_is_how_often_it_is_right(rule):
    """Where leads are spread evenly, as far as the noise reaches; an instant runoff of two candidates is exact too."""
    said, right = [], []
    for lead in range(-48, 49, 4):
        cast = Ballots.from_orders([["a", "b"], ["b", "a"]], items=["a", "b"], weights=[500 + lead, 500 - lead + 1])
        counted = words(rule=rule, epsilon="0.1").count(cast)
        for seed in range(12):
            result = counted.draw(SeededBits(seed)).value
            said.append(result.winners_probability)
            right.append(result.winners == (("a",) if lead > 0 else ("b",)))
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.08)
    sure = np.array(said) > 0.8
    assert np.mean(np.array(said)[sure]) == pytest.approx(np.mean(np.array(right)[sure]), abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_a_count_without_noise_is_exact_and_says_that_it_is_not_private(rule, tmp_path):
    release = elect(BALLOTS, None, rule=rule)
    assert release.guarantee is None
    assert release.value.low == release.value.scores == release.value.high
    assert release.value.winners_probability == 1
    assert "NOT PRIVATE" in release.explain()
    for ending in ("html", "json", "csv"):
        rankdp.write_election(release, tmp_path / f"x.{ending}")
        assert "NOT PRIVATE" in (tmp_path / f"x.{ending}").read_text()
    ledger = Ledger.create(tmp_path / "budget.db", "poll", protect=BALLOT, epsilon=1)
    with pytest.raises(InputError, match="ledger cannot be combined with a count without noise"):
        elect(BALLOTS, None, rule=rule, ledger=ledger)
    assert not ledger.history()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["borda", "schulze", "irv", "stv", "plurality"])
def test_the_noisy_number_of_ballots_has_an_honest_interval_and_is_checked(rule):
    wrong = 0 if rule == "plurality" else BALLOTS.count + 100_000
    asked = words(rule=rule, protect="voter", epsilon="0.5", turnout=wrong).count(BALLOTS)
    results = [asked.draw(SeededBits(seed)).value for seed in range(60)]
    held = [result.ballots_low <= BALLOTS.count <= result.ballots_high for result in results]
    assert np.mean(held) >= 0.86  # 95% of 60
    assert all(any("contradicts these ballots" in said for said in result.warnings) for result in results)
    honest = words(rule=rule, protect="voter", epsilon="0.5", turnout=BALLOTS.count).count(BALLOTS)
    warned = [any("contradicts" in said for said in honest.draw(SeededBits(s)).value.warnings) for s in range(30)]
    assert sum(warned) <= 1


@pytest.mark.parametrize(("turnout", "said"), [(BALLOTS.count, False), (BALLOTS.count + 1, True)])
def test_a_public_number_of_ballots_is_compared_with_the_published_one(turnout, said):
    for epsilon in (1, None):
        warnings = elect(BALLOTS, epsilon, rule="irv", turnout=turnout).value.warnings
        assert any("contradicts these ballots" in one for one in warnings) == said


def test_blank_ballots_are_missing_in_the_sum_of_the_votes(tmp_path):
    """A turnout with the blank ballots is right, one below the votes is wrong; by other rules all ballots count."""
    file = tmp_path / "ballots.csv"
    file.write_text("count,rank_1,rank_2\n3000,a,b\n2000,b,\n4000,blank,\n")
    cast = Ballots.read(file, items=["a", "b"])
    for rule, turnout, contradicts in (
        ("plurality", 9000, False),
        ("plurality", 4000, True),
        ("borda", 9000, False),
        ("borda", 5000, True),
        ("irv", 9000, False),
    ):
        found = elect(cast, 1, rule=rule, protect="voter", turnout=turnout, bits=SeededBits(3)).value
        assert any("contradicts" in said for said in found.warnings) == contradicts, rule
        voting = "ballots that vote for somebody: " in found.headline()
        assert voting == (rule == "plurality")
        assert found.ballots == pytest.approx(5000 if voting else 9000, abs=50)
    said = elect(cast, 1, rule="plurality", protect="voter", turnout=4000, bits=SeededBits(3)).value.warnings
    assert any(one.endswith(" that vote for somebody.") for one in said)
    assert "for somebody" not in elect(cast, 1, rule="plurality", bits=SeededBits(3)).value.headline()


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


@pytest.mark.parametrize(("rule", "seats"), [("borda", 1), ("borda", 3), ("plurality", 1), ("plurality", 2)])
def test_winners_alone(rule, seats):
    found = elect(BALLOTS, 50, rule=rule, announce="winners", seats=seats)
    scores = BALLOTS.centred_borda() if rule == "borda" else BALLOTS.first_preferences()
    assert set(found.value.winners) == {NAMES[item] for item in np.argsort(-scores)[:seats]}
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

    monkeypatch.setattr(
        elections, "vote_noise", lambda *public, rounds=1, unit: Watched(*public, rounds=rounds, unit=unit)
    )
    result = elect(BALLOTS, 5, rule=rule, seats=seats, bits=SeededBits(1)).value
    assert [number for number, _ in used] == list(range(len(result.rounds)))
    assert sum(part for _, part in used) <= 1


def test_a_ledger_is_charged_before_and_refuses_what_does_not_fit(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "poll", protect=BALLOT, epsilon=1)
    elect(BALLOTS, "0.6", rule="borda", ledger=ledger)
    with pytest.raises(BudgetExceeded):
        elect(BALLOTS, "0.6", rule="irv", ledger=ledger)
    assert [entry.what for entry in ledger.history()] == ["elect by borda"]
    with pytest.raises(InputError, match="rehearsal"):
        elect(BALLOTS, "0.1", rule="borda", ledger=ledger, bits=SeededBits(1))


REFUSED = [
    ({"epsilon": 0}, "epsilon must be a finite number above 0"),
    ({"epsilon": 10**7}, "epsilon must be at most 1,000,000"),
    ({"epsilon": "1e-17"}, "too small|2\\^56"),
    ({"rule": "range"}, "rule 'range' is unknown: choose plurality \\(most first places\\), borda"),
    ({"rule": None}, "rule is required: choose plurality .*, stv \\(single transferable vote\\), .* or condorcet"),
    ({"rule": "auto"}, "rule='auto' was removed, .* depended on epsilon: choose plurality"),
    ({"rule": "pairs"}, "rule='pairs' was removed: name the rule itself, kemeny, copeland, ranked-pairs or schulze"),
    ({"protect": "item"}, "protect must be one of ballot, voter"),
    ({"delta": 1}, "delta must be at least 0 and below 1"),
    ({"seats": 6}, "seats must be an integer from 1 to 5, got 6"),
    ({"seats": 0}, "seats must be an integer of at least 1"),
    ({"rule": "irv", "seats": 2}, "seats needs rule plurality, borda, stv, .* or schulze, got irv"),
    ({"rule": "plurality", "first": 7}, "first must be an integer from 1 to 6"),
    ({"rule": "borda", "first": 2}, "first needs rule plurality, got borda"),
    ({"rule": "condorcet", "seats": 2}, "seats needs rule plurality, .* or schulze, got condorcet"),
    ({"rule": "irv", "announce": "winners"}, "announce needs rule borda or plurality, got irv"),
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
    ledger = Ledger.create(tmp_path / "budget.db", "poll", protect=BALLOT, epsilon=HUGE)
    given = {"ballots": BALLOTS, "epsilon": 1, "rule": "borda", **asked}
    with pytest.raises(InputError, match=words) as refusal:
        elect(given.pop("ballots"), given.pop("epsilon"), ledger=ledger, **given)
    assert "\n" not in str(refusal.value)
    assert not ledger.history()


def test_candidates_taken_from_the_ballots_are_said_to_be_public():
    def told(ballots, **reading):
        return [said for said in elect(ballots, 1, rule="borda", **reading).value.warnings if "not protected" in said]

    assert len(told([["a", "b"], ["b"]])) == 1
    assert not told([["a", "b"]], items=["a", "b", "c"])


def test_the_rule_is_required_and_named():
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'rule'"):
        elect(BALLOTS, 1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
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
    true = run(12, Piles(ballots).count)
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


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["plurality", "irv", "borda"])
def test_no_count_is_shown_as_negative(rule):
    """Thirty candidates whom hardly anyone votes for: most released tallies of theirs are about half negative."""
    names = [f"c{number:02}" for number in range(32)]
    ballots = rankdp.Ballots.from_orders([["c00", "c01"], ["c01", "c00"], ["c02"]], items=names, weights=[500, 300, 3])
    result = rankdp.elect(ballots, "0.2", rule=rule, seed=5).value
    assert all(
        0 <= low <= score <= high for low, score, high in zip(result.low, result.scores, result.high, strict=True)
    )
    assert all(high > 0 for high in result.high)
    assert rule == "irv" or list(result.scores) == sorted(result.scores, reverse=True)


def test_a_count_near_zero_covers_the_truth_and_is_unbiased_far_from_it():
    """Draws of a tally that was released as -1 with Gaussian noise of 1 follow the normal law cut off at 0."""
    drawn = np.random.default_rng(3).normal(-1, 1, (200_000, 1))
    kept = _not_negative(drawn)[:, 0]
    cut = scipy.stats.truncnorm(1, np.inf, loc=-1, scale=1)
    assert kept.min() >= 0
    assert kept.mean() == pytest.approx(cut.mean(), abs=0.01)
    assert np.quantile(kept, [0.025, 0.975]) == pytest.approx(cut.ppf([0.025, 0.975]), abs=0.02)
    assert (_not_negative(np.full((5, 1), -3.0)) == 0).all()


@pytest.mark.parametrize("tallies", [{"b": 1204.4, "a": 1306.1, "c": 99}, {"a": 1306.1}])
def test_a_runoff_that_cannot_say_how_sure_it_is_gives_its_last_round(tallies):
    last = CountedRound(tallies, 5.0, (), None, {}, 30.0, {}, 40.0)
    made = Election("irv", ("a", "b", "c"), ("a",), 0.3, True, 2600, rounds=(last,))
    assert ("The last round ended a 1,306, b 1,204." in made.headline()) == (len(tallies) > 1)
    assert "Some rounds are too close" in made.headline()
    sure = replace(made, winners_probability=0.6)
    assert "last round" not in sure.headline()
