"""Advice on how many comparisons of each voter to use."""

import math

import pytest
from click.testing import CliRunner

from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.planning.plan import plan
from rankdp.planning.voter_bounds import voter_bounds

pytestmark = pytest.mark.slow

GUESS = {1: 5000, 5: 2000, 50: 200, 1000: 10}


def test_the_best_bound_is_the_best_of_the_plans():
    bounds = voter_bounds(20, GUESS, 1)
    for bound in bounds:
        kept = sum(voters * min(votes, bound.most) for votes, voters in GUESS.items())
        assert bound.comparisons == kept
        made = plan("comparisons", items=20, comparisons=kept, protect="voter", max_per_voter=bound.most, epsilon=1)
        (choice,) = (one for one in made.choices if one.name == "bradley-terry")
        assert math.isclose(choice.accuracy["half_width"], bound.half_width)
        assert math.isclose(choice.accuracy["pairs"], bound.pairs)
    assert bounds[0].half_width < 1.03 * min(bound.half_width for bound in bounds)
    assert bounds[0].most == 2


def test_more_privacy_asks_for_smaller_bounds():
    best = [voter_bounds(10, {1: 100, 3: 100, 30: 100}, epsilon)[0].most for epsilon in (0.05, 1, 1000)]
    assert best == sorted(best)
    assert best[-1] == 30


def test_everyone_alike_is_used_in_full():
    assert voter_bounds(5, {7: 300}, 2)[0].most == 7


def test_refusals_and_the_command():
    with pytest.raises(InputError, match="votes_per_voter must say how many"):
        voter_bounds(5, {}, 1)
    with pytest.raises(InputError, match="votes_per_voter must be an integer of at least 1, got 0"):
        voter_bounds(5, {0: 3}, 1)
    words = ["plan", "voters", "--items", "20", "-e", "1", "--votes-per-voter"]
    shown = CliRunner().invoke(cli, [*words, "1:5000,5:2000,50:200,1000:10"])
    assert "--max-per-voter 2" in shown.output
    assert CliRunner().invoke(cli, [*words, "1-5"]).exit_code == 2
