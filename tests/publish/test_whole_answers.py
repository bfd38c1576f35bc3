"""privatize(protect="ranking"): the promise, the sidecar, what reads it, budgets of both units, kept answers."""

from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.errors import InputError, RankdpError
from rankdp.learn import LinearPairwiseRanker
from rankdp.privacy.answers import AnswerStore
from rankdp.privacy.guarantee import ITEM_POSITION, WHOLE_RANKING

ITEMS = list("abcdef")


def poll(rows=400, voters=None):
    orders = np.tile(np.arange(6), (rows, 1))
    return rankdp.Rankings.from_orders(orders, ITEMS, voters=voters)


def spent(ledger):
    (budget,) = ledger.budgets
    return budget.standing.epsilon


def test_the_guarantee_is_for_the_whole_ranking_with_the_epsilon_asked_for():
    release = rankdp.privatize(poll(), "4", protect="ranking")
    assert (release.guarantee.protects, release.guarantee.epsilon, release.guarantee.local) == (WHOLE_RANKING, 4, True)
    assert (
        "Protects one whole ranking: someone who was 50:50 about it can become at most 98.3% sure" in release.explain()
    )
    assert release.provenance.mechanism == "kendall-ball"
    assert release.provenance.parameters["protect"] == "ranking"


@pytest.mark.parametrize("mechanism", ["auto", "kendall", "reinsertion", "tiers-2-2-2", "kendall-ball-2"])
def test_what_reads_a_release_knows_the_mechanism_at_its_own_epsilon(mechanism):
    release = rankdp.privatize(poll(), 4, protect="ranking", mechanism=mechanism)
    (made_by,) = rankdp.aggregate(release).mechanisms
    assert made_by.local_epsilon() <= 4
    assert made_by.epsilon == Fraction(release.provenance.parameters["choices"][0]["epsilon"])
    assert release.guarantee.epsilon == 4


def test_own_epsilons_are_those_of_whole_rankings(tmp_path):
    epsilons = [1, 4] * 100
    release = rankdp.privatize(poll(200), epsilons, protect="ranking", mechanism="kendall")
    assert release.guarantee.personal
    assert (release.guarantee.protects, release.guarantee.epsilon) == (WHOLE_RANKING, 4)
    choices = release.provenance.parameters["choices"]
    assert [(choice["ranking_epsilon"], choice["epsilon"]) for choice in choices] == [("1", "1/3"), ("4", "4/3")]
    assert sorted(one.epsilon for one in rankdp.aggregate(release).mechanisms) == [Fraction(1, 3), Fraction(4, 3)]


def test_budgets_of_either_unit_pay_at_the_epsilon_of_theirs(tmp_path):
    ranking = rankdp.Ledger.create(tmp_path / "ranking.db", "poll", WHOLE_RANKING, 10)
    rankdp.privatize(poll(), 4, protect="ranking", ledger=ranking)
    assert spent(ranking) == 4
    rankdp.privatize(poll(), 1, mechanism="kendall", ledger=ranking.using(convert=True))
    assert spent(ranking) == 4 + 3
    with pytest.raises(rankdp.BudgetExceeded, match="an epsilon of 3 for one whole ranking would still fit"):
        rankdp.privatize(poll(), 2, mechanism="kendall", ledger=ranking.using(convert=True))
    position = rankdp.Ledger.create(tmp_path / "position.db", "poll", ITEM_POSITION, 10)
    rankdp.privatize(poll(), 4, protect="ranking", ledger=position.using(convert=True))
    assert spent(position) == 4
    with pytest.raises(RankdpError, match="must not pay"):
        rankdp.privatize(poll(), 1, protect="ranking", ledger=position)
    assert spent(position) == 4


def test_kept_answers_tell_the_promises_apart(tmp_path):
    """kendall at 3 for the whole ranking is kendall at 1 for a position, and not at 3."""
    store, voters = AnswerStore(tmp_path / "answers.db"), [f"v{number}" for number in range(400)]
    whole = rankdp.privatize(poll(voters=voters), 3, protect="ranking", mechanism="kendall", answers=store)
    same = rankdp.privatize(poll(voters=voters), 1, mechanism="kendall", answers=store)
    assert np.array_equal(whole.value.orders, same.value.orders)
    with pytest.raises(InputError, match="stored with kendall at epsilon 1, got kendall at epsilon 3"):
        rankdp.privatize(poll(voters=voters), 3, mechanism="kendall", answers=store)


def test_learning_reads_the_release(tmp_path):
    features = np.eye(6)
    release = rankdp.privatize(poll(300), 4, protect="ranking")
    model = LinearPairwiseRanker(random_state=0).fit(np.ones((300, 1)), features, release)
    assert model.rank(np.ones((1, 1))).orders.shape == (1, 6)


def test_an_unknown_word_is_refused_with_the_list_and_nothing_charged(tmp_path):
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", WHOLE_RANKING, 10)
    with pytest.raises(InputError, match="protect must be one of position, ranking, got 'answer'"):
        rankdp.privatize(poll(), 4, protect="answer", ledger=ledger)
    assert spent(ledger) == 0


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_on_the_command_line(tmp_path):
    source, target = tmp_path / "poll.csv", tmp_path / "private.csv"
    poll(50).write(source)
    made = run("privatize", source, target, "--epsilon", 4, "--protect", "ranking")
    assert made.exit_code == 0, made.output
    assert "kendall-ball-3 (6 items, epsilon 4 for the whole ranking)" in " ".join(made.output.split())
    assert "Protects one whole ranking" in made.output
    assert "Protects one whole ranking" in run("aggregate", target).output
    named = ("--epsilon", 4, "--protect", "ranking", "--force", "--mechanism")
    assert "kendall-ball-2 (6 items, epsilon 4" in run("privatize", source, target, *named, "kendall-ball-2").output
    assert run("privatize", source, target, *named, "kendall-2").exit_code == 2
    assert run("privatize", source, target, *named, "kendall").exit_code == 0
    assert "(kendall at epsilon 4)" in " ".join(run("aggregate", target).output.split())
    assert run("privatize", source, target, "--epsilon", 4, "--protect", "answer").exit_code == 2
    audited = run("audit", "kendall", "--items", 4, "--epsilon", 2, "--protect", "ranking", "--exact")
    assert audited.exit_code == 0, audited.output
    attacked = run("attack", "position", "--items", 6, "--epsilon", 4, "--protect", "ranking")
    assert attacked.exit_code == 0, attacked.output
    found = run(
        "attack", "inference", "--items", 4, "-e", 2, "--protect", "ranking", "--releases", "1", "--repetitions", 50
    )
    assert found.exit_code == 0, found.output
    assert "for the whole ranking" in " ".join(found.output.split())
