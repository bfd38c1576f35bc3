"""rank() where who met whom is secret: what is released of it, what is assumed and said."""

import math
from fractions import Fraction

import numpy as np
import pytest
from ranking_support import ITEMS, options, some_votes, votes
from support import generator

from rankdp.data.comparisons import Comparisons
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyDegrees,
    NoisyDifferences,
    NoisyResiduals,
    NoisyTable,
)
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.publish.board_estimators import HiddenDesign
from rankdp.publish.rank import rank
from rankdp.rankers.links import link as known_link


@pytest.fixture
def table(request):
    return some_votes(request)


def test_few_items_have_a_table_and_many_have_residuals():
    """By public numbers: with noise alone up to 8 items, with many comparisons beside it more."""
    voter, one = HiddenDesign(Protection("voter", 10), Fraction(1)), HiddenDesign(Protection("comparison"), Fraction(1))
    assert [voter.kind(items) for items in (2, 8, 9, 50)] == ["table", "table", "residuals", "residuals"]
    assert [one.kind(50, comparisons) for comparisons in (1000, 10**6)] == ["residuals", "table"]
    matched = HiddenDesign(Protection("comparison"), Fraction(1), pairing="matched")
    assert [matched.kind(items) for items in (8, 9)] == ["table", "objective"]
    assert HiddenDesign(Protection("comparison"), Fraction(1), link=known_link("secant")).kind(4) == "objective"


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_degrees_that_show_many_comparisons_lead_to_the_table(delta, request):
    """Where their number is secret: a tenth of epsilon for degrees, the rest for the table, nothing twice."""
    hidden, random = HiddenDesign(Protection("voter", 1), Fraction(1), Fraction(delta)), generator(request)
    assert hidden.kind(12) == "residuals"
    for many, kinds in ((10, [NoisyDegrees, NoisyDifferences, NoisyResiduals]), (4000, [NoisyDegrees, NoisyTable])):
        seen = []

        def release(noisy, many=many, seen=seen):
            seen.append(noisy)
            counts = {NoisyDegrees: 11 * many, NoisyTable: many, NoisyDifferences: 0, NoisyResiduals: 0}[type(noisy)]
            numbers = np.full(132 if isinstance(noisy, NoisyTable) else 12, float(counts))
            return numbers + random.laplace(0, 1, len(numbers))

        found = hidden.estimate("residuals", 12, None, release)
        assert [type(noisy) for noisy in seen] == kinds
        assert sum(noisy.share for noisy in seen) == 1
        assert (found.table is not None) == (many == 4000)
        assert found.parameters["mechanism"] == ("table" if many == 4000 else "residuals")
    assert seen[1].count_variance > hidden.table().count_variance  # noise for nine tenths of epsilon


@pytest.mark.parametrize(("items", "epsilon", "moved"), [(5, "0.01", 1), (50, 1, 10), (300, 100, 1)])
def test_the_ridge_of_objective_perturbation_costs_a_tenth(items, epsilon, moved):
    mechanism = HiddenDesign(Protection("voter", moved), Fraction(epsilon), pairing="matched").objective(items)
    mechanism.check()
    spent = moved * math.log1p(0.5 / float(mechanism.ridge))
    assert spent <= 0.1 * float(Fraction(epsilon)) * (1 + 1e-9)
    assert mechanism.noise_variance**0.5 / float(mechanism.ridge) < 1.35


def many(random, pairing="unknown", **changes):
    names = [f"i{k}" for k in range(12)]
    asked = {"protect": "comparison", "items": names, "bits": SeededBits(1), "pairing": pairing, **changes}
    return rank(votes(random, 300, np.linspace(-1, 1, 12)), 1, **asked)


def test_what_is_assumed_is_said(request):
    random = generator(request)
    said = {pairing: many(random, pairing) for pairing in ("unknown", "random", "matched")}
    mechanisms = {name: release.provenance.parameters["mechanism"] for name, release in said.items()}
    assert mechanisms == {"unknown": "residuals", "random": "residuals", "matched": "objective"}
    warnings = {name: " ".join(release.value.warnings) for name, release in said.items()}
    assert "assumes that who met whom depended neither on strength nor on groups" in warnings["unknown"]
    assert "it was stated that pairs were drawn at random" in warnings["random"]
    assert "No intervals: who was compared with whom is secret" in warnings["matched"]


def test_no_interval_where_none_can_be_given(request):
    for asked in ({"pairing": "matched"}, {"link": "secant"}):
        board = many(generator(request), top=3, **asked).value
        assert np.isfinite(board.scores).all()
        assert np.isnan([*board.low, *board.high]).all()
        assert board.best_probability is None
        assert board.top_probability is None
        rows = board.rows()
        assert [row["in_top"] for row in rows] == [True] * 3 + [False] * 9
        assert "top_probability" not in rows[0]


@pytest.mark.slow
def test_random_pairs_pull_noise_together(request):
    """Where noise rules, integrating the spread leaves scores closer to the truth than the fixed prior."""
    random, errors = generator(request), {"unknown": [], "random": []}
    for seed in range(8):
        truth = 0.3 * np.linspace(-1, 1, 12)
        table = votes(random, 400, truth)
        for pairing in errors:
            asked = {"protect": "comparison", "items": [f"i{k}" for k in range(12)], "bits": SeededBits(seed)}
            board = rank(table, "0.5", pairing=pairing, **asked).value
            errors[pairing] += np.square(board.scores - [truth[int(name[1:])] for name in board.items]).tolist()
    assert np.mean(errors["random"]) < 0.7 * np.mean(errors["unknown"])


def test_the_table_shows_who_beats_whom(table):
    release = rank(table, 1000, **options("comparison"))
    board = release.value
    wins = Comparisons.of(table, items=ITEMS).count().dense()
    order = [ITEMS.index(item) for item in board.items]
    assert release.provenance.parameters["mechanism"] == "table"
    assert board.table == pytest.approx(wins[np.ix_(order, order)], abs=0.51)
    assert rank(table, 1, **options("outcome")).value.table is None


@pytest.mark.slow
@pytest.mark.parametrize("pairing", ["unknown", "random", "matched"])
def test_an_item_nobody_compared_never_leads(table, pairing):
    """It has the prior's interval, whatever the others did."""
    for seed in range(5):
        asked = options("outcome", items=(*ITEMS, "idle"), pairing=pairing, bits=SeededBits(seed))
        board = rank(table, "0.2", **asked).value
        place = board.items.index("idle")
        assert place > 0
        if pairing != "random":
            half = (board.high[place] - board.low[place]) / 2
            assert half == pytest.approx(1.96 * 2 * math.sqrt(1 + 1 / 6), rel=0.1)


def test_a_prior_of_ones_own(table):
    calm, wide = (
        np.ptp(rank(table, 50, prior=prior, bits=SeededBits(1), **options("outcome")).value.scores)
        for prior in (0.01, 2)
    )
    assert calm < wide / 20
