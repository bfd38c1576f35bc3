"""Attacks: against enumeration, against their bounds, and on what has no protection."""

import itertools
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.attack.inference import infer, position_attack, success_curve, success_probability
from rankdp.attack.membership import Membership, membership_experiment, score_attack
from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits
from rankdp.theory.permutations import all_permutations

pytestmark = pytest.mark.slow

names = pytest.mark.parametrize("name", ["kendall", "ulam", "reinsertion", "optimal", "laplace", "noisy-ranks"])


# -- the inference attack ---------------------------------------------------------------------------------------------


def exact_success(mechanism, releases):
    """P(the attacker finds the secret), over all sequences of releases; ties by lot."""
    every = all_permutations(mechanism.items)
    logs = np.array([mechanism.log_prob(every, secret) for secret in every])
    total = 0.0
    for seen in itertools.product(range(len(every)), repeat=releases):
        likelihood = logs[:, list(seen)].sum(axis=1)
        top = likelihood >= likelihood.max() - 1e-9
        total += math.exp(logs[0, list(seen)].sum()) * top[0] / top.sum()
    return total


@names
@pytest.mark.parametrize("releases", [1, 2, 3])
def test_success_equals_enumeration(name, releases):
    mechanism = rankdp.mechanism(name, 3, 2)
    found = success_probability(mechanism, releases, 20_000, SeededBits(5))
    assert found.probability == pytest.approx(exact_success(mechanism, releases), abs=0.018)
    assert found.low < found.probability < found.high


def test_more_releases_help_the_attacker_and_the_bound_holds():
    curve = success_curve("kendall", 4, [1, 10, 100], 2, 2000)
    shares = [one.probability for one in curve]
    assert shares[0] < shares[1] < shares[2]
    for one in curve:
        assert 1 - one.low >= one.error_bound  # the attacker fails at least as often as the binomial tail says


def test_an_adaptive_epsilon_keeps_the_attacker_out():
    """Theorem 2: (m-1)/sqrt(N) keeps the error away from 0, a further log N does not."""
    kept = success_curve("kendall", 4, [10, 1000], "adaptive", 2000)
    lost = success_curve("kendall", 4, [10, 1000], "adaptive-log", 2000)
    assert kept[1].probability < 0.4
    assert lost[1].probability > 0.95
    assert kept[1].epsilon == pytest.approx(3 / math.sqrt(1000))


@names
def test_the_most_likely_secret_is_found(name, request):
    mechanism, secret = rankdp.mechanism(name, 5, 12), [3, 1, 4, 0, 2]
    drawn = mechanism.sample(np.tile(secret, (60, 1)), SeededBits(1))
    found = infer(drawn, mechanism)
    assert found.exact
    assert found.gap == 0
    assert found.order.tolist() == secret
    every = [mechanism.log_prob(drawn, one).sum() for one in all_permutations(5)]
    assert found.log_likelihood == pytest.approx(max(every))


def test_long_rankings_are_climbed_to():
    mechanism, secret = rankdp.mechanism("reinsertion", 12, 5), np.random.default_rng(1).permutation(12)
    drawn = mechanism.sample(np.tile(secret, (40, 1)), SeededBits(1))
    found = infer(drawn, mechanism)
    assert not found.exact
    assert found.order.tolist() == secret.tolist()
    identity = mechanism.log_prob(np.arange(12), np.arange(12))[0]
    assert found.gap == pytest.approx(40 * identity - found.log_likelihood)
    assert found.gap > 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: success_probability(rankdp.mechanism("kendall", 7, 1), 3), "for up to 6 items, got 7"),
        (
            lambda: success_probability(rankdp.mechanism("kendall", 3, 1), 0),
            "releases must be an integer of at least 1",
        ),
        (lambda: infer(np.empty((0, 3), int), rankdp.mechanism("kendall", 3, 1)), "releases must hold at least one"),
        (lambda: position_attack(rankdp.mechanism("kendall", 3, 1), 4), "landed must be an integer from 1 to 3, got 4"),
        (lambda: position_attack(rankdp.mechanism("kendall", 3, 1), 1, [1, -1, 1]), "prior must be 3 numbers"),
        (
            lambda: membership_experiment(1, method="elo"),
            "method must be one of bradley-terry, wins, copeland, got 'elo'",
        ),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(InputError) as refusal:
        call()
    assert sentence in str(refusal.value)


# -- the position attack ----------------------------------------------------------------------------------------------


@names
def test_the_posterior_is_bayes_over_all_rankings(name):
    """Item 0, a prior over its position, all orders of the others equally likely: by enumeration."""
    mechanism, prior = rankdp.mechanism(name, 4, 1.5), np.array([0.5, 0.2, 0.2, 0.1])
    every = all_permutations(4)
    release = np.array([[1, 2, 0, 3]])
    weight = np.zeros(4)
    for secret in every:
        place = int(np.flatnonzero(secret == 0)[0])
        weight[place] += prior[place] / 6 * math.exp(mechanism.log_prob(release, secret)[0])
    found = position_attack(mechanism, 3, prior)
    np.testing.assert_allclose(found.posterior, weight / weight.sum(), atol=1e-7)
    assert found.odds_factor <= math.exp(1.5) * (1 + 1e-9)


def test_the_posterior_in_words():
    said = position_attack(rankdp.mechanism("reinsertion", 6, 2), 1).explain()
    assert "position 1: 47% likely, 17% before" in said
    assert "epsilon 2 allows 7.39" in said


def test_the_posterior_where_no_number_shows_the_noise():
    certain = rankdp.mechanism("kendall", 3, 1_000_000)
    found = position_attack(certain, 1)
    assert found.odds_factor == math.inf
    assert "changed by a factor that no number shows; epsilon 1e+06 allows e^1e+06." in found.explain()
    with pytest.raises(InputError, match=r"prior must leave a position .* position 1, got .* leaves no noise"):
        position_attack(certain, 1, [0, 1, 1])


# -- the score attack -------------------------------------------------------------------------------------------------


def test_the_statistic_is_the_papers():
    released, truth = np.array([0.5, 0.1, -0.6]), np.array([0.3, 0.2, -0.5])
    won, lost = np.array([0, 2]), np.array([1, 0])
    for place, (i, j) in enumerate(zip(won, lost, strict=True)):
        f = 1 / (1 + math.exp(truth[j] - truth[i]))
        direction = np.zeros(3)
        direction[i], direction[j] = 1, -1
        expected = (released - truth) @ direction * (1 - f)  # F'/(F(1-F)) is 1
        assert score_attack(released, truth, won, lost)[place] == pytest.approx(expected)


def test_rates_of_known_values():
    found = Membership(np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.0, -1.0]), 1.0)
    false, true = found.curve
    assert true.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1, 1])
    assert false.tolist() == pytest.approx([0, 0, 1 / 3, 1 / 3, 2 / 3, 1])
    assert found.area == pytest.approx(7.5 / 9)
    assert found.advantage == pytest.approx(2 / 3)
    assert found.advantage_bound == pytest.approx((math.e - 1) / (math.e + 1))


def test_the_plain_fit_is_caught_and_the_private_one_is_not():
    """A few votes among few items: without noise each one shows. The statistic itself has the advantage it should."""
    plain = membership_experiment(None, items=4, comparisons=8, repetitions=1500)
    assert plain.advantage > 2 * plain.advantage_error
    private = membership_experiment(0.2, items=4, comparisons=8, repetitions=600, method="wins")
    assert private.advantage < private.advantage_bound + 1.5 * private.advantage_error


def test_on_the_command_line(tmp_path):
    run = CliRunner()
    told = run.invoke(cli, ["attack", "inference", "--repetitions", "50", "--releases", "1,5", "--json"])
    assert [one["releases"] for one in json.loads(told.output)["kendall"]] == [1, 5]
    assert json.loads(told.output)["reinsertion"][0]["error_bound"] is None
    for ending, arguments in {
        "html": ["inference", "--repetitions", "50", "--releases", "1,5"],
        "png": ["position", "-e", "2"],
        "csv": ["votes", "-e", "1", "--repetitions", "5"],
    }.items():
        path = tmp_path / f"attack.{ending}"
        told = run.invoke(cli, ["attack", *arguments, "-o", str(path)])
        assert told.exit_code == 0, told.output
        assert path.stat().st_size > 50
    assert run.invoke(cli, ["attack", "inference", "--releases", "many"]).exit_code == 2
    assert run.invoke(cli, ["attack", "position", "--prior", "a,b"]).exit_code == 2


def test_attackers_use_the_offset_of_a_release():
    mechanism = rankdp.mechanism("offset-tiers", 5, 3, tiers=[2])
    secret = np.array([3, 1, 0, 4, 2])
    releases, offsets = mechanism.sample_with_offsets(np.tile(secret, (200, 1)), SeededBits(7))
    found = infer(releases, mechanism, offsets)
    assert found.order.tolist() == secret.tolist()
    assert found.log_likelihood == pytest.approx(mechanism.log_prob(releases, secret, offsets).sum())
    with pytest.raises(InputError, match="offsets must be given for each of the 200 releases of the offset-tiers-2"):
        infer(releases, mechanism)
    seen = position_attack(mechanism, 1, offset=1)
    expected = mechanism.at(1).position_matrix()[:, 0]
    np.testing.assert_allclose(seen.posterior, expected / expected.sum(), rtol=1e-12)
    assert success_probability(mechanism, 3, 300).probability > success_probability(mechanism, 1, 300).probability
