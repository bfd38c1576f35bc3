"""What rank() refuses, and that a refusal costs nothing."""

import math

import pyarrow as pa
import pytest
from ranking_support import ITEMS, options, some_votes

from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.errors import InputError, RankdpError, Unsupported
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.ledger import Ledger
from rankdp.publish import rank as ranking
from rankdp.publish.rank import rank


@pytest.fixture
def table(request):
    return some_votes(request)


def test_protect_must_be_said(table):
    with pytest.raises(TypeError, match="protect"):
        rank(table, 1, items=ITEMS)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"protect": "nobody"}, "protect must be one of comparison, outcome, voter, got 'nobody'"),
        ({"max_per_voter": 3}, "max_per_voter needs protect='voter', got protect='outcome'"),
        ({"method": "elo"}, "method must be one of bradley-terry, wins, copeland, got 'elo'"),
        ({"scale": "chess"}, "scale must be log-strength, or elo with bradley-terry, got 'chess' with bradley-terry"),
        (
            {"method": "wins", "scale": "elo"},
            "scale must be log-strength, or elo with bradley-terry, got 'elo' with",
        ),
        ({"method": "wins", "prior": 1}, "prior, link and pairing need method='bradley-terry'"),
        ({"method": "wins", "link": "secant"}, "prior, link and pairing need method='bradley-terry'"),
        ({"method": "copeland", "pairing": "random"}, "prior, link and pairing need method='bradley-terry'"),
        ({"pairing": "even"}, "pairing must be one of unknown, random, matched, got 'even'"),
        ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ({"epsilon": "nan"}, "epsilon must be a finite number above 0, got nan"),
        ({"epsilon": "1e400"}, "epsilon must be at most 1,000,000"),
        ({"delta": 1}, "delta must be at least 0 and below 1, got 1"),
        ({"delta": -0.1}, "delta must be at least 0 and below 1, got -0.1"),
        ({"delta": "some"}, "delta must be a finite number, got some"),
        ({"prior": 0}, "prior must be a finite number above 0, got 0"),
        ({"prior": math.inf}, "prior must be a finite number above 0, got inf"),
        ({"prior": 11}, "prior must lie between 0.01 and 10, got 11"),
        ({"link": "loglog"}, "link must be one of logistic, secant, best-of-three, got 'loglog'"),
        ({"level": 95}, "level must be a number above 0 and below 1, got 95"),
        ({"top": 7}, "top must be an integer from 1 to 6, got 7"),
        ({"items": None}, "items must list the public items, or items_from_data=True must say"),
        ({"items": ["a"]}, "a leaderboard needs at least 2 items, got 1"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(table, changes, sentence):
    arguments = {"epsilon": 1, **options("outcome"), **changes}
    with pytest.raises(InputError) as refusal:
        rank(table, arguments.pop("epsilon"), **arguments)
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("protect", ["comparison", "voter"])
@pytest.mark.parametrize("changes", [{"pairing": "matched", "items": [*"abcdefghijkl"]}, {"link": "secant"}])
def test_gaussian_noise_is_refused_for_objective_perturbation(table, protect, changes):
    with pytest.raises(Unsupported, match="objective perturbation has no Gaussian noise"):
        rank(table, 1, delta="1e-6", **{**options(protect), **changes})


@pytest.mark.parametrize("protect", ["comparison", "outcome", "voter"])
def test_probit_is_refused_with_the_reason(table, protect):
    with pytest.raises(Unsupported, match=r"for the probit link: .* no bounded influence"):
        rank(table, 1, link="probit", **options(protect))


def test_other_links_need_the_pairs(table):
    with pytest.raises(Unsupported, match="wins are sufficient for the logistic link only"):
        rank(table, 1, link="secant", **options("outcome"))


@pytest.mark.parametrize(
    ("protect", "changes"),
    [
        ("outcome", {"link": "secant"}),
        ("comparison", {"prior": 100}),
        ("voter", {"delta": "1e-6", "link": "secant"}),
        ("comparison", {"delta": "1e-6", "link": "secant"}),
    ],
)
def test_a_refused_model_costs_no_budget(table, tmp_path, protect, changes):
    unit = Protection.of(protect, options(protect).get("max_per_voter")).protects
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", unit, 5)
    with pytest.raises(RankdpError):
        rank(table, 1, ledger=ledger, **options(protect), **changes)
    assert ledger.budgets[0].remaining == 5
    rank(table, 1, ledger=ledger, **options(protect))
    assert ledger.budgets[0].remaining == 4


def test_dropping_both_bad_would_publish_outcomes():
    """Which votes are dropped is an outcome, and the design would no longer be public."""
    table = pa.table(
        {"model_a": ["a", "b"], "model_b": ["b", "a"], "winner": ["model_a", "both_bad"], "voter": ["x", "y"]}
    )
    with pytest.raises(InputError, match="both_bad='drop' makes public which votes were both bad"):
        rank(table, 1, protect="outcome", items=("a", "b"), both_bad="drop")
    assert rank(table, 1, protect="outcome", items=("a", "b")).guarantee.epsilon == 1
    for kept in ({"protect": "comparison"}, {"protect": "voter", "max_per_voter": 1}):
        release = rank(table, 1, items=("a", "b"), both_bad="drop", **kept)
        assert release.guarantee.epsilon == 1


@pytest.mark.parametrize("protect", ["comparison", "outcome"])
def test_bounded_votes_are_for_voters_only(table, protect, tmp_path):
    bounded = Comparisons.of(table, items=ITEMS).bound(2)
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", Protection.of(protect, None).protects, 5)
    with pytest.raises(InputError, match=f"votes are bounded to 2 per voter, .* got protect='{protect}'"):
        rank(bounded, 1, protect=protect, ledger=ledger)
    assert ledger.budgets[0].remaining == 5


@pytest.mark.parametrize(("bound", "max_per_voter"), [(1, 3), (3, 1)])
def test_of_two_bounds_the_smaller_one_holds(bound, max_per_voter):
    table = pa.table({"winner": ["a"] * 9, "loser": ["b"] * 9, "voter": ["x"] * 9})
    votes = Comparisons.of(table, items=("a", "b")).bound(bound)
    release = rank(votes, 10**6, protect="voter", max_per_voter=max_per_voter, method="wins", bits=SeededBits(1))
    assert release.value.scores.sum() == pytest.approx(9 * (STEPS // 9) / STEPS, abs=1e-3)
    assert release.provenance.parameters["max_per_voter"] == max_per_voter


def test_items_taken_from_secret_votes_are_said_to_be_public():
    table = pa.table({"winner": ["a", "b"], "loser": ["b", "c"], "voter": ["x", "y"]})
    for protect in ("comparison", "outcome", "voter"):
        kept = {"max_per_voter": 1} if protect == "voter" else {}
        warnings = rank(table, 1, protect=protect, items_from_data=True, **kept).value.warnings
        assert ("which items occur is not protected" in " ".join(warnings)) == (protect != "outcome")


def test_majorities_of_many_items_are_refused(monkeypatch):
    monkeypatch.setattr(ranking, "DENSE_UP_TO", 5)
    table = pa.table({"winner": ["a"], "loser": ["b"]})
    with pytest.raises(Unsupported, match="majorities are counted for all pairs of at most 5 items"):
        rank(table, 1, method="copeland", **options("outcome"))
