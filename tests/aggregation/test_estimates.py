"""Aggregating privatized rankings: unbiased, with standard errors that hold, for tables, releases and files."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from support import generator, seeded

import rankdp
from rankdp.aggregation.estimates import Aggregate, _towards_exchangeable, aggregate, aggregate_file
from rankdp.aggregation.respondents import required_voters
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms import mechanism
from rankdp.publish.privatize import privatize, privatize_file
from rankdp.theory.estimators import pair_estimator

pytestmark = pytest.mark.slow

ITEMS = ("a", "b", "c", "d", "e")
# ranks (1,2,3,4,5) for most, (5,1,2,3,4) for the others: the counterexample of NOTES, Xu 5, as orders
MAJORITY, MINORITY = (0, 1, 2, 3, 4), (1, 2, 3, 4, 0)


def town(rows, share, draw):
    """Voters of the counterexample, and a third kind that mixes the pairs further."""
    kinds = np.array([MAJORITY, MINORITY, (4, 2, 0, 3, 1)], dtype=np.int32)
    return kinds[draw.choice(3, size=rows, p=[share, 0.9 - share, 0.1])]


def truth(orders):
    """Win rates, mean ranks and shares of the rows."""
    places = np.argsort(orders, axis=1)
    wins = (places[:, :, None] < places[:, None, :]).mean(axis=0) + 0.5 * np.eye(orders.shape[1])
    shares = (places[:, :, None] == np.arange(orders.shape[1])).mean(axis=0)
    return wins, 1 + places.mean(axis=0), shares


# -- the counterexample ------------------------------------------------------------------------------------------


def test_counterexample_in_expectation():
    """70% rank item 1 above item 2; the synthetic rankings of the Kendall mechanism say 49%; h says 70% again."""
    built = mechanism("kendall", 5, 1)
    naive = 0.7 * built.keep_probability(0, 1) + 0.3 * (1 - built.keep_probability(0, 4))
    assert naive == pytest.approx(0.49, abs=0.005)
    law, values = built.pair_law(), pair_estimator(built).values
    first, second = np.triu_indices(5, 1)
    ahead = law.same @ values[first, second] + law.crossed @ values[second, first]
    behind = law.same @ values[second, first] + law.crossed @ values[first, second]
    number = {pair: place for place, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))}
    assert 0.7 * ahead[number[0, 1]] + 0.3 * behind[number[0, 4]] == pytest.approx(0.7, abs=1e-10)


def test_counterexample_sampled(request):
    rows = np.where(generator(request).random(400_000)[:, None] < 0.7, MAJORITY, MINORITY)
    poll = rankdp.Rankings.from_orders(rows.astype(np.int32), ITEMS)
    found = aggregate(privatize(poll, 1, mechanism="kendall", bits=seeded(request))).win_rates
    assert found.naive[0, 1] == pytest.approx(0.49, abs=0.01)
    assert found.standard_errors[0, 1] < 0.012
    assert found.values[0, 1] == pytest.approx(0.7, abs=4 * found.standard_errors[0, 1])
    low, high = found.interval()
    assert low[0, 1] < 0.7 < high[0, 1]
    assert low[0, 1] > 0.5  # the majority is found again


# -- one group ---------------------------------------------------------------------------------------------------


def pooled_errors(found, wanted):
    """Deviations in standard errors where there is an error to speak of."""
    known = found.standard_errors > 0
    return (found.values - wanted)[known] / found.standard_errors[known]


@pytest.mark.parametrize("name", ["kendall", "ulam", "reinsertion", "optimal"])
def test_all_statistics_are_near_the_truth(name, request):
    rows = town(60_000, 0.6, generator(request))
    out = mechanism(name, 5, 3).sample(rows, seeded(request))
    found = aggregate(rankdp.Rankings.from_orders(out, ITEMS), name, 3)
    assert (found.voters, found.items) == (60_000, ITEMS)
    wins, ranks, shares = truth(rows)
    counted = truth(out)
    for estimate, wanted, naive in zip(
        (found.win_rates, found.mean_ranks, found.shares), (wins, ranks, shares), counted, strict=True
    ):
        assert np.abs(pooled_errors(estimate, wanted)).max() < 4.5
        np.testing.assert_allclose(estimate.naive, naive, rtol=1e-12)
        assert np.abs(estimate.naive - wanted).max() > 0.02
        assert estimate.unbiased
        assert estimate.bias.max() < 1e-10
    np.testing.assert_allclose(found.win_rates.values + found.win_rates.values.T, 1, atol=1e-12)
    np.testing.assert_array_equal(np.diag(found.win_rates.values), 0.5)
    np.testing.assert_allclose(found.shares.values.sum(axis=0), 1, rtol=1e-9)
    assert found.order() == tuple(np.array(ITEMS)[np.argsort(found.mean_ranks.values)])


def test_sums_are_those_of_a_plain_loop(request):
    built = mechanism("kendall", 5, 2)
    out = built.sample(town(300, 0.6, generator(request)), seeded(request))
    found = aggregate(rankdp.Rankings.from_orders(out, ITEMS), "kendall", 2)
    places, values = np.argsort(out, axis=1), pair_estimator(built).values
    for i in range(5):
        for j in range(5):
            drawn = values[places[:, i], places[:, j]]
            assert found.win_rates.values[i, j] == pytest.approx(drawn.mean(), abs=1e-12)
            error = drawn.std(ddof=1) / 300**0.5 if i != j else 0
            assert found.win_rates.standard_errors[i, j] == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("mutant", ["naive", "wrong epsilon", "wrong mechanism"])
def test_mutants_are_told_from_the_truth(mutant, request):
    rows = town(200_000, 0.6, generator(request))
    out = rankdp.Rankings.from_orders(mechanism("reinsertion", 5, 2).sample(rows, seeded(request)), ITEMS)
    wins = truth(rows)[0]
    right = aggregate(out, "reinsertion", 2).win_rates
    assert np.abs(pooled_errors(right, wins)).max() < 4.5
    if mutant == "naive":
        wrong = right.naive
    else:
        said = ("reinsertion", "2.4") if mutant == "wrong epsilon" else ("kendall", 2)
        wrong = aggregate(out, *said).win_rates.values
    worst = np.abs(wrong - wins) / np.where(right.standard_errors > 0, right.standard_errors, 1)
    assert worst.max() > 6


# -- coverage ----------------------------------------------------------------------------------------------------


def coverage(found, wanted):
    low, high = found.interval(0.95)
    known = found.standard_errors > 0
    return ((low <= wanted) & (wanted <= high))[known].mean()


@pytest.mark.parametrize("name", ["kendall", "reinsertion"])
def test_intervals_of_one_group_cover(name, request):
    runs, rows = 300, 500
    people = np.array([MAJORITY, MINORITY, (4, 2, 0, 3, 1)], dtype=np.int32)
    wanted = [
        sum(share * part for share, part in zip((0.6, 0.3, 0.1), parts, strict=True))
        for parts in zip(*(truth(kind[None]) for kind in people), strict=True)
    ]
    out = mechanism(name, 5, 2).sample(town(runs * rows, 0.6, generator(request)), seeded(request))
    covered = []
    for start in range(0, runs * rows, rows):
        poll = rankdp.Rankings.from_orders(out[start : start + rows], ITEMS)
        found = aggregate(poll, name, 2)
        statistics = (found.win_rates, found.mean_ranks, found.shares)
        covered.append([coverage(one, value) for one, value in zip(statistics, wanted, strict=True)])
    rates = np.mean(covered, axis=0)
    assert (rates > 0.92).all(), rates
    assert (rates < 0.98).all(), rates


@pytest.mark.parametrize("combine", ["precision", "voters"])
def test_intervals_over_personal_epsilons_cover(combine, request):
    runs, rows = 300, 600
    own = np.tile([1.0, 2.0, 4.0], rows // 3)
    kinds = town(runs * rows, 0.6, generator(request))
    people = np.array([MAJORITY, MINORITY, (4, 2, 0, 3, 1)], dtype=np.int32)
    wanted = sum(share * truth(kind[None])[0] for share, kind in zip((0.6, 0.3, 0.1), people, strict=True))
    everyone = rankdp.Rankings.from_orders(kinds, ITEMS, epsilons=np.tile(own, runs))
    out = rankdp.privatize(everyone, mechanism="kendall", bits=seeded(request)).value.orders
    covered, errors = [], []
    for start in range(0, runs * rows, rows):
        poll = rankdp.Rankings.from_orders(out[start : start + rows], ITEMS, epsilons=own)
        found = aggregate(poll, "kendall", combine=combine).win_rates
        covered.append(coverage(found, wanted))
        errors.append(found.standard_errors[0, 1])
    assert 0.92 < np.mean(covered) < 0.98
    # most of the precision comes from those who asked for little noise
    assert np.mean(errors) == pytest.approx(0.07 if combine == "precision" else 0.17, rel=0.15)


# -- groups ------------------------------------------------------------------------------------------------------


def test_groups_are_inverted_each_with_its_own_law(request):
    rows = town(90_000, 0.6, generator(request))
    names = np.array(["kendall", "reinsertion", "ulam"])[np.arange(90_000) % 3]
    own = np.array([2.0, 4.0])[np.arange(90_000) // 3 % 2]
    out, bits = np.empty_like(rows), seeded(request)
    for name in np.unique(names):
        for epsilon in (2, 4):
            chosen = (names == name) & (own == epsilon)
            out[chosen] = mechanism(str(name), 5, epsilon).sample(rows[chosen], bits)
    poll = rankdp.Rankings.from_orders(out, ITEMS)
    found = aggregate(poll, names.tolist(), own)
    assert {(one.name, one.epsilon) for one in found.mechanisms} == {
        (name, Fraction(epsilon)) for name in ("kendall", "reinsertion", "ulam") for epsilon in (2, 4)
    }
    wins, ranks, _ = truth(rows)
    assert np.abs(pooled_errors(found.win_rates, wins)).max() < 4.5
    assert np.abs(pooled_errors(found.mean_ranks, ranks)).max() < 4.5
    equal = aggregate(poll, names.tolist(), own, combine="voters")
    assert (equal.win_rates.standard_errors >= found.win_rates.standard_errors).all()


def test_groups_of_one_voter_have_standard_errors(request, monkeypatch):
    """Everyone with an epsilon of their own: the error comes from how voters differ, not from within a group."""
    rows, own = town(200, 0.6, generator(request)), 2 + np.arange(200) / 500
    true = rankdp.Rankings.from_orders(rows, ITEMS, epsilons=own)
    poll = rankdp.privatize(true, mechanism="reinsertion", bits=seeded(request)).value
    found = aggregate(poll, "reinsertion")
    assert len(found.mechanisms) == 200
    usual = (pair_estimator(mechanism("reinsertion", 5, "2.2")).mean_variance + 0.2) / 200
    assert found.win_rates.standard_errors[0, 1] == pytest.approx(usual**0.5, rel=0.2)
    monkeypatch.setattr("rankdp.aggregation.origin._MOST_GROUPS", 150)
    with pytest.raises(Unsupported, match="voters must share at most 150 different lengths and epsilons"):
        aggregate(poll, "reinsertion")


def test_partial_rankings(request):
    """Win rates among those who list both; mean ranks of lists of different lengths are refused."""
    rows = [["a", "b", "c", "d"], ["d", "b"], ["c"], ["b", "a", "d"]] * 10_000
    poll = rankdp.Rankings.from_orders(rows, items=["a", "b", "c", "d"])
    release = privatize(poll, 3, mechanism="reinsertion", listed_items_public=True, bits=seeded(request))
    found = aggregate(release)
    assert found.voters == 30_000
    rates = found.win_rates
    nan = np.nan
    wanted = np.array([[nan, 0.5, 1, 1], [0.5, nan, 1, 2 / 3], [0, 0, nan, 1], [0, 1 / 3, 0, nan]])
    known = ~np.isnan(wanted)
    assert np.abs((rates.values - wanted)[known] / rates.standard_errors[known]).max() < 4.5
    for statistic, words in (("mean_ranks", "mean ranks"), ("shares", "shares of positions")):
        with pytest.raises(Unsupported) as refusal:
            getattr(found, statistic)
        assert str(refusal.value) == (
            f"{words} need rankings of one length, got 2 to 4 items listed: use win shares or win rates"
        )


def test_pairs_that_nobody_lists_together_are_unknown(request):
    rows = [["a", "b"], ["c", "d"], ["a", "b"], ["c", "d"]]
    release = privatize(rankdp.Rankings.from_orders(rows), 1, listed_items_public=True, bits=seeded(request))
    rates = aggregate(release).win_rates
    assert np.isnan(rates.values[0, 2])
    assert np.isnan(rates.naive[0, 2])
    assert np.isfinite(rates.values[0, 1])
    one = aggregate(rankdp.Rankings.from_orders([["a", "b"]]), "kendall", 1).win_rates
    assert np.isfinite(one.values[0, 1])
    assert one.standard_errors[0, 1] == pytest.approx(abs(one.values[0, 1] - 0.5), rel=1e-9)  # the public law's


def test_long_rankings_have_win_rates_only_where_they_can():
    poll = rankdp.Rankings.from_orders(np.tile(np.arange(60, dtype=np.int32), (50, 1)), [str(n) for n in range(60)])
    found = aggregate(poll, "kendall", 30)
    assert found.mean_ranks.values.shape == (60,)
    rates = found.win_rates  # counted and stretched: the law of two positions is out of reach
    assert not rates.unbiased
    assert rates.bias[0, 1] == 0.5
    assert aggregate(poll, "reinsertion", 30).win_rates.values[3, 7] == pytest.approx(1, abs=0.01)


# -- releases and files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("personal", [False, True])
def test_files_say_what_their_release_says(ending, personal, tmp_path, request):
    rows = town(3000, 0.6, generator(request))
    own = np.array([2.0, 4.0])[np.arange(3000) % 2]
    poll = rankdp.Rankings.from_orders(rows, ITEMS, epsilons=own if personal else None)
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    poll.write(source)
    how = {"epsilon_column": "epsilon"} if personal else {"epsilon": 2}
    privatize_file(source, target, mechanism="ulam", bits=seeded(request), **how)
    found = aggregate_file(target)
    again = rankdp.Rankings.read(target, **({"epsilon_column": "epsilon"} if personal else {}))
    table = aggregate(again, "ulam", None if personal else 2)
    assert found.items == ITEMS
    assert found.voters == 3000
    np.testing.assert_allclose(found.win_rates.values, table.win_rates.values, rtol=1e-12)
    np.testing.assert_allclose(found.mean_ranks.values, table.mean_ranks.values, rtol=1e-12)
    said = aggregate_file(target, "ulam", **how)
    np.testing.assert_allclose(said.win_rates.values, found.win_rates.values, rtol=1e-12)


def test_items_that_a_stream_meets_later(tmp_path, monkeypatch):
    from rankdp.aggregation import estimates

    lines = ["voter,rank_1,rank_2,rank_3", "1,z,b,", "2,b,z,", "3,z,b,a", "4,b,a,z"]
    path = tmp_path / "out.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    whole = aggregate_file(path, "kendall", 2)
    opened = estimates.open_rankings
    monkeypatch.setattr(estimates, "open_rankings", lambda *args, **options: opened(*args, **options, batch_rows=1))
    found = aggregate_file(path, "kendall", 2)
    assert found.items == whole.items == ("a", "b", "z")
    np.testing.assert_allclose(found.win_rates.values, whole.win_rates.values, rtol=1e-12)
    np.testing.assert_allclose(found.win_rates.naive[2], [0.5, 0.5, 0.5])
    np.testing.assert_allclose(found.win_rates.naive[1], [1, 0.5, 0.5])


def test_releases_of_auto(request):
    rows = town(20_000, 0.6, generator(request))
    poll = rankdp.Rankings.from_orders(rows, ITEMS)
    release = privatize(poll, 4, bits=seeded(request))
    found, named = aggregate(release), aggregate(release.value, "auto", 4)
    # by name: a cache may have dropped the object meanwhile
    assert repr(found.mechanisms) == repr(named.mechanisms) == repr((mechanism("auto", 5, 4),))
    np.testing.assert_array_equal(found.win_rates.values, named.win_rates.values)
    assert np.abs(pooled_errors(found.win_rates, truth(rows)[0])).max() < 4.5


# -- refusals ----------------------------------------------------------------------------------------------------

TABLE = rankdp.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: aggregate([[0, 1]], "kendall", 1),
            "rankings must be a rankdp.Rankings, a path or a table",
        ),
        (lambda: aggregate(TABLE), "mechanism must be given: rankings alone do not say what they went through"),
        (lambda: aggregate(TABLE, "kendal", 1), "mechanism must be auto or one of kendall, laplace"),
        (lambda: aggregate(TABLE, "kendall"), "epsilon must be given: the rankings carry no epsilon"),
        (lambda: aggregate(TABLE, "kendall", 0), "epsilon must be a finite number above 0, got 0"),
        (lambda: aggregate(TABLE, "kendall", [1, -1]), "epsilon of row 2 must be a finite number above 0, got -1"),
        (
            lambda: aggregate(TABLE, ["kendall"], 1),
            "mechanism must be one name or one for each of the 2 rankings, got 1",
        ),
        (
            lambda: aggregate(TABLE, "kendall", 1, combine="best"),
            "combine must be one of precision, voters, got 'best'",
        ),
        (lambda: aggregate(privatize(TABLE, 1), "kendall"), "a release knows its mechanism and epsilon: give neither"),
        (
            lambda: aggregate(TABLE, "kendall", 1).order("median"),
            "method must be one of borda, copeland, bradley-terry, kemeny, got 'median'",
        ),
        (
            lambda: aggregate(TABLE, "kendall", 1).win_rates.interval(1),
            "level must be a number above 0 and below 1, got 1",
        ),
        (
            lambda: aggregate(rankdp.Rankings.from_orders([["a"]]), "kendall", 1),
            "no ranking lists two items or more: there is nothing to aggregate",
        ),
        (lambda: aggregate_file("x.csv"), "x.csv: there is no such file"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(InputError) as refusal:
        call()
    assert sentence in str(refusal.value)


def test_release_files_that_do_not_fit(tmp_path, request):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    rankdp.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], epsilons=[1.0, 2.0]).write(source)
    privatize_file(source, target, epsilon_column="epsilon", bits=seeded(request))
    sidecar = tmp_path / "out.csv.release.json"
    facts = json.loads(sidecar.read_text("utf-8"))
    assert aggregate_file(target).voters == 2
    facts["parameters"]["choices"] = facts["parameters"]["choices"][:1]
    sidecar.write_text(json.dumps(facts), "utf-8")
    with pytest.raises(InputError, match=r"out\.csv\.release\.json names no mechanism for 3 items at epsilon 2"):
        aggregate_file(target)
    for text, sentence in (
        ("{}", r"out\.csv\.release\.json does not say which mechanism made its rankings"),
        ("[]", r"is not the JSON of a release"),
        ('{"parameters": {"choices": [{"items": "x"}], "epsilon": "1"}}', "does not say which mechanism"),
        ("{", r"out\.csv\.release\.json cannot be read"),
    ):
        sidecar.write_text(text, "utf-8")
        with pytest.raises(InputError, match=sentence):
            aggregate_file(target)
    sidecar.unlink()
    with pytest.raises(InputError, match=r"out\.csv\.release\.json is missing: give mechanism and epsilon"):
        aggregate_file(target)


def test_repr():
    found = aggregate(TABLE, "kendall", 1)
    assert isinstance(found, Aggregate)
    assert repr(found).startswith(found.headline())


# -- how many voters ---------------------------------------------------------------------------------------------


def test_required_voters_follow_their_formula():
    largest = pair_estimator(mechanism("kendall", 5, 1)).largest_variance
    assert required_voters(5, 1, 0.05, "kendall") == int(np.ceil(1.959964**2 * (largest + 0.25) / 0.05**2))
    assert required_voters(5, 1, 0.05) < required_voters(5, 1, 0.05, "kendall") / 6  # ulam's best
    assert required_voters(5, 1, 0.05, every=True) > required_voters(5, 1, 0.05)
    assert required_voters(5, 1, 0.025) == pytest.approx(4 * required_voters(5, 1, 0.05), rel=1e-3)


def test_required_voters_are_enough(request):
    """Everyone at the worst pair of positions: the interval's half width is what was asked for."""
    built, half_width = mechanism("kendall", 5, 2), 0.1
    rows = required_voters(5, 2, half_width, "kendall")
    found = pair_estimator(built)
    first, second = (part[np.argmax(found.variances)] for part in np.triu_indices(5, 1))
    out = built.sample(np.tile(np.arange(5, dtype=np.int32), (rows, 1)), seeded(request))
    rates = aggregate(rankdp.Rankings.from_orders(out, ITEMS), "kendall", 2).win_rates
    low, high = rates.interval()
    assert (high - low)[first, second] / 2 < half_width * 1.03


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((5, 1, 0), "half_width must be a number above 0 and below 1, got 0"),
        ((5, 1, 0.1, "auto", 1), "level must be a number above 0 and below 1, got 1"),
        ((5, 1, 0.1, "best"), "mechanism must be auto or one of"),
        ((1, 1, 0.1), "items must be an integer of at least 2, got 1"),
    ],
)
def test_required_voters_refuse(arguments, sentence):
    with pytest.raises(InputError) as refusal:
        required_voters(*arguments)
    assert sentence in str(refusal.value)


def test_equal_answers_keep_their_order_and_are_not_certain():
    """The empirical covariance of a few answers that are all the same is 0, which says nothing about the truth."""
    poll = rankdp.Rankings.from_orders(np.tile([0, 1, 2, 3, 4], (32, 1)), ITEMS)
    board = aggregate(poll, "reinsertion", epsilon=2).board().leaderboard
    assert list(board.items) == list(ITEMS)
    assert (board.low < board.high).all()


def test_few_answers_about_many_items_stay_possible(request):
    """The inverse of an empirical covariance of 120 answers about 100 items would be about six times too certain."""
    orders = np.argsort(generator(request).gumbel(size=(120, 100)) - np.arange(100) / 30, axis=1)
    release = rankdp.privatize(rankdp.Rankings.from_orders(orders, range(100)), 2, protect="ranking", seed=5)
    board = rankdp.aggregate(release).board().leaderboard
    assert ((board.scores > 1) & (board.scores < 100)).all()


def test_covariances_of_exchangeable_items_are_kept_and_others_keep_their_trace(request):
    even = 3 * (np.eye(6) - 1 / 6)
    assert np.allclose(_towards_exchangeable(even, 10), even)
    draws = generator(request).normal(size=(40, 6)) * [1, 1, 1, 1, 1, 9]
    rough = np.cov(draws - draws.mean(axis=1, keepdims=True), rowvar=False)
    pulled = [_towards_exchangeable(rough, answers) for answers in (10, 100, 1e9)]
    assert np.allclose([np.trace(one) for one in pulled], np.trace(rough))
    assert np.allclose(pulled[2], rough)
    assert np.linalg.cond(pulled[0] + 1 / 6) < np.linalg.cond(pulled[1] + 1 / 6) < np.linalg.cond(rough + 1 / 6)
