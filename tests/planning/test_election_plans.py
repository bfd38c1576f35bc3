"""Plans for elections: the predicted winner against the mechanisms' own noise, the search for voters, refusals."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp import cli
from rankdp.data.ballots import SHARES
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.planning.election_plans import (
    LAST_MARGIN,
    SPREAD_OF_MARGINS,
    SPREAD_OF_VOTES,
    ManyBallots,
    voters_needed,
)
from rankdp.planning.situation import PAIRS, RIGHT_WINNER, Request
from rankdp.privacy.bits import SeededBits
from rankdp.publish.ballot_rules import RULES, borda_noise, margin_noise, vote_noise
from rankdp.publish.election_draws import ORDERS

EPSILON = 0.2


def by_margins(rule, m, voters, count=1000):
    """How often the rule finds the first of assumed true scores in noisy margins."""
    spread = SPREAD_OF_MARGINS * voters * m / np.sqrt(2)
    true = spread * np.random.default_rng(1).standard_normal((count, m))
    noise = margin_noise(m, BallotProtection("ballot"), Fraction(EPSILON), Fraction(0)).noise(count, SeededBits(2))
    tables = (true[:, :, None] - true[:, None, :]) / m + noise
    if rule == "condorcet":
        return np.mean(
            [(table[scores.argmax()] > 0).sum() == m - 1 for table, scores in zip(tables, true, strict=True)]
        )
    return np.mean([ORDERS[rule](table)[0] == scores.argmax() for table, scores in zip(tables, true, strict=True)])


def simulated(option, m, voters, count=4000):
    """How often noise of the mechanism leaves the first of assumed true scores the first."""
    protection, random = BallotProtection("ballot"), np.random.default_rng(1)
    public = m, protection, Fraction(EPSILON), Fraction(0)
    if option == "plurality":
        noise = vote_noise(*public).noise(count * m, SeededBits(2)).reshape(count, m) / SHARES
        spread = SPREAD_OF_VOTES * voters / m
    elif option == "irv":
        votes = vote_noise(*public, rounds=m - 1)
        noise = votes.noise(count * 2, SeededBits(2), m - 2).reshape(count, 2) / SHARES
        spread, m = LAST_MARGIN * voters / np.sqrt(2), 2
    else:
        noise = borda_noise(*public).noise(count, SeededBits(2))
        spread = SPREAD_OF_MARGINS * voters * m / np.sqrt(2)
    true = spread * random.standard_normal((count, m))
    return np.mean((true + noise).argmax(axis=1) == true.argmax(axis=1))


@pytest.mark.parametrize("option", ["borda", "plurality", "irv"])
@pytest.mark.parametrize(("m", "voters"), [(3, 150), (10, 1000)])
def test_the_predicted_winner_is_that_of_the_noise(option, m, voters):
    told = ManyBallots(m, voters, option).accuracy(option, RIGHT_WINNER, EPSILON, Request(1))
    assert told == pytest.approx(simulated(option, m, voters), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["kemeny", "copeland", "ranked-pairs", "schulze", "condorcet"])
@pytest.mark.parametrize(("m", "voters"), [(3, 240), (10, 4800)])
def test_the_predicted_winner_by_margins_is_about_that_of_the_noise(rule, m, voters):
    told = ManyBallots(m, voters, rule).accuracy(rule, RIGHT_WINNER, EPSILON, Request(1))
    assert -0.05 <= by_margins(rule, m, voters) - told <= 0.07


def test_more_epsilon_more_voters_and_more_delta_do_not_hurt():
    def told(voters=500, epsilon=0.5, measure=RIGHT_WINNER, **public):
        return ManyBallots(8, voters, "borda", **public).accuracy("borda", measure, epsilon, Request(1))

    assert told(epsilon=0.1) < told() < told(epsilon=2)
    assert told(voters=100) < told() < told(voters=5000)
    assert told(measure=PAIRS, epsilon=0.1) < told(measure=PAIRS)
    assert told() < told(protect="voter")
    assert told(delta="1e-6") >= told()


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "protect"), [*((rule, "ballot") for rule in RULES), ("borda", "voter")])
def test_the_voters_that_are_needed_are_just_enough(rule, protect):
    def right(voters):
        return ManyBallots(10, voters, rule, protect).accuracy(rule, RIGHT_WINNER, 1, Request(1))

    voters = voters_needed(10, 1, 0.95, rule=rule, protect=protect)
    assert right(int(0.98 * voters)) < 0.95 <= right(voters)


def test_the_plan_of_the_readme():
    plan = rankdp.plan("election", voters=5000, items=10, rule="borda", right_winner=0.95)
    assert plan.recommended.accuracy["right_winner"] == pytest.approx(0.95, abs=0.002)
    assert 0.05 < plan.epsilon < 0.3
    assert "the right winner with probability 95.0% needs an epsilon of about" in plan.explain()


def test_the_command():
    def run(*arguments):
        return CliRunner().invoke(cli.cli, ["plan", "election", "--items", "10", *arguments])

    told = json.loads(run("--rule", "schulze", "--voters", "5000", "--right-winner", "0.95", "--json").stdout)
    assert (told["measure"], told["recommended"]) == ("right_winner", "schulze")
    voters = json.loads(run("--rule", "irv", "--epsilon", "1", "--right-winner", "0.95", "--json").stdout)
    assert (voters["rule"], voters["voters"]) == ("irv", voters_needed(10, 1, 0.95, rule="irv"))
    assert run("--rule", "irv", "--epsilon", "1").exit_code == 2
    for more in (("--voters", "5000"), ("--epsilon", "1")):
        assert "--rule is required: choose plurality" in str(run(*more, "--right-winner", "0.95").exception)
        assert "--rule pairs was removed" in str(run(*more, "--right-winner", "0.95", "--rule", "pairs").exception)
    with pytest.raises(InputError, match="right_winner must be"):
        voters_needed(10, 1, 1.5, rule="irv")


@pytest.mark.slow
@pytest.mark.parametrize(("option", "rounds"), [("plurality", 1), ("irv", 4), ("stv", 4)])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_tallies_are_as_wide_as_their_noise(option, rounds, delta):
    """Of 20,000 draws of the round with the most noise, 90% lie within what the plan says, give or take 1%."""
    found = rankdp.plan("election", tally=40, items=5, voters=500, rule=option, protect="voter", delta=delta, level=0.9)
    (chosen,) = found.choices
    unit = BallotProtection("voter")
    noise = vote_noise(5, unit, Fraction(chosen.epsilon), Fraction(delta), rounds=rounds)
    drawn = np.abs(noise.noise(20_000, SeededBits(1), rounds - 1)) / SHARES
    assert np.mean(drawn <= 40) == pytest.approx(0.9, abs=0.01)
    with pytest.raises(InputError, match="can be asked for right_winner, pairs, exact, overlap, got tally"):
        rankdp.plan("election", tally=40, items=5, voters=500, rule="kemeny")


def test_a_runoff_that_needs_too_much_says_no_more_than_it_knows():
    told = rankdp.plan("election", right_winner=0.999, items=10, voters=50, rule="irv").explain()
    assert "almost no protection" in told
    assert "–" not in told


@pytest.mark.slow
def test_win_rates_need_as_many_voters_as_the_aggregate_says():
    found = rankdp.plan("ranking", win_rate=0.05, items=5, voters=2000)
    for one in found.choices:
        if one.name in ("kendall", "ulam", "reinsertion"):
            enough, less = (rankdp.required_voters(5, share * one.epsilon, 0.05, one.name) for share in (1, 0.98))
            assert enough <= 2000 <= less
    with pytest.raises(InputError, match="can be asked for"):
        rankdp.plan("ranking", win_rate=0.05, items=5)
