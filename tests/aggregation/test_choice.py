"""Aggregates that cannot be ruined: what is chosen, how well it does, what it says of itself; partial ballots."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import kendalltau
from support import generator, seeded

import rankdp
from rankdp.aggregation.aggregate_report import aggregate_report, how
from rankdp.aggregation.methods import METHODS
from rankdp.cli import cli
from rankdp.data.synthetic import town_poll
from rankdp.mechanisms import MECHANISMS, mechanism
from rankdp.mechanisms.registry import describe, respondents_for_one
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.kemeny import kemeny

pytestmark = pytest.mark.slow


def cities(draw, voters=392, items=60, length=6):
    """Lists of a few cities each, popular ones more often; Plackett and Luce."""
    strength, fame = draw.normal(0, 1.2, items), np.exp(draw.normal(0, 1, items))
    rows = np.array([draw.choice(items, length, replace=False, p=fame / fame.sum()) for _ in range(voters)])
    rows = np.take_along_axis(rows, np.argsort(-(strength[rows] + draw.gumbel(size=rows.shape)), axis=1), axis=1)
    padded = np.full((voters, items), -1, dtype=np.int32)
    padded[:, :length] = rows
    return rankdp.Rankings.from_orders(padded, [f"City {number}" for number in range(items)])


def true_mean_ranks(poll):
    ranks = np.where(poll.ranks() > 0, poll.ranks(), np.nan).astype(float)
    return np.nanmean(ranks, axis=0)


# -- the two ruined cases ----------------------------------------------------------------------------------------


def test_lists_of_six_cities_at_epsilon_two(request):
    """Mean ranks ran from -19 to 32 here, with Kendall's tau between 0.0 and 0.07 where naive counting has 0.6."""
    poll = cities(generator(request))
    truth = true_mean_ranks(poll)
    taus, errors = [], []
    bits = seeded(request)
    for _ in range(5):
        release = rankdp.privatize(poll, 2, listed_items_public=True, bits=bits)
        found = rankdp.aggregate(release)
        board = found.board().leaderboard
        assert board.low.min() >= 1
        assert board.high.max() <= 6
        ways = (-found.scores(), found.mean_ranks.naive)
        taus.append([kendalltau(one, truth).statistic for one in ways])
        errors.append([np.mean((one - truth) ** 2) for one in ways])
    chosen, naive = np.mean(taus, axis=0)
    assert chosen > 0.5
    assert chosen > naive - 0.05
    ours, counted = np.mean(errors, axis=0)
    assert ours < counted


def test_five_items_at_epsilon_one(request):
    """The choice was a mechanism from which nothing could be aggregated once epsilon was spent."""
    poll = rankdp.Rankings.from_orders(_five(3000, generator(request)), list("abcde"))
    release = rankdp.privatize(poll, 1, bits=seeded(request))
    found = rankdp.aggregate(release)
    truth = true_mean_ranks(poll)
    assert np.abs(found.mean_ranks.values - truth).max() < 0.6
    assert found.order("borda")[0] == poll.items[int(truth.argmin())]
    # and the mechanism that was taken then says something now, with its bias
    unhappy = rankdp.aggregate(rankdp.privatize(poll, 1, mechanism="optimal", bits=seeded(request)))
    assert unhappy.win_rates.bias.max() < 0.5
    assert np.isfinite(unhappy.win_rates.values).all()


def _five(voters, draw):
    orders = np.argsort(-(np.array([1.5, 0.7, 0.0, -0.6, -1.5]) + draw.gumbel(size=(voters, 5))), axis=1)
    return [["abcde"[place] for place in row] for row in orders]


@pytest.mark.parametrize(("items", "epsilon"), [(6, 2), (5, 1), (10, 2), (40, 2)])
def test_the_choice_says_both_numbers(items, epsilon):
    chosen = mechanism("auto", items, epsilon)
    needed = respondents_for_one(chosen)
    shown = f"{needed:.1f}" if needed < 5 else f"{needed:.0f}"
    assert describe(chosen) == (
        f"{chosen.name} ({items} items, epsilon {epsilon}): keeps {chosen.expected_concordance():.0%} of pairs; "
        f"{shown} answers tell as much as one true ranking"
    )


# -- how well it does --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "epsilon", "voters"),
    [("reinsertion", 1, 100), ("reinsertion", 2, 1000), ("kendall", 1, 1000), ("ulam", 1, 400), ("ulam", 4, 100)],
)
def test_the_board_is_as_good_as_counting_and_debiasing(name, epsilon, voters, request):
    """Root mean squared errors of mean ranks: with the spread integrated, of naive ones and of debiased ones."""
    poll, draw, bits, squares = town_poll(3000), generator(request), seeded(request), []
    for _ in range(10):
        rows = poll.orders[draw.choice(len(poll.orders), voters, replace=False)]
        truth = 1 + np.argsort(rows, axis=1).mean(axis=0)
        out = mechanism(name, rows.shape[1], epsilon).sample(rows, bits)
        found = rankdp.aggregate(rankdp.Rankings.from_orders(out, poll.items), name, epsilon)
        ways = (found.mean_ranks.naive, found.mean_ranks.values, -found.scores("borda"))
        squares.append([np.mean((way - truth) ** 2) for way in ways])
    naive, debiased, board = np.sqrt(np.mean(squares, axis=0))
    assert board <= 1.15 * min(naive, debiased)


def test_intervals_of_boards_hold_and_points_lie_inside(request):
    poll, draw, bits, held, ranked = town_poll(3000), generator(request), seeded(request), [], []
    truth = dict(zip(poll.items, 1 + np.argsort(poll.orders, axis=1).mean(axis=0), strict=True))
    places = {item: place for place, item in enumerate(sorted(truth, key=truth.get), 1)}
    for _ in range(25):
        rows = poll.orders[draw.integers(0, len(poll.orders), 300)]
        release = rankdp.privatize(rankdp.Rankings.from_orders(rows, poll.items), 2, bits=bits)
        for row in rankdp.aggregate(release).rows():
            assert row["low"] <= row["mean rank"] <= row["high"]
            assert row["rank_low"] <= row["rank"] <= row["rank_high"]
            held.append(row["low"] <= truth[row["item"]] <= row["high"])
            ranked.append(row["rank_low"] <= places[row["item"]] <= row["rank_high"])
    assert 0.9 < np.mean(held) <= 1
    assert np.mean(ranked) > 0.93


@pytest.mark.parametrize("method", ["bradley-terry", "copeland", "kemeny"])
def test_other_boards_hold_too(method, request):
    """With few answers under much noise, where win rates that are drawn pair by pair would be full of cycles."""
    poll, draw, bits, held, ranked = town_poll(3000), generator(request), seeded(request), [], []
    places = np.argsort(poll.orders, axis=1)
    rates = np.array([[(one < other).mean() + (one is other) / 2 for other in places.T] for one in places.T])
    np.fill_diagonal(rates, 0.5)
    wins = np.rint(len(places) * rates * (1 - np.eye(len(rates))))
    strengths = fit(rankdp.data.counts.PairCounts.from_dense(wins, poll.items), ridge=1e-6).theta
    orders = {"copeland": (rates > 0.5).sum(axis=1), "kemeny": np.argsort(kemeny(rates).order) + 1}
    truth = dict(zip(poll.items, orders.get(method, strengths - strengths.mean()), strict=True))
    best = sorted(truth, key=truth.get, reverse=method != "kemeny")
    for _ in range(10):
        rows = poll.orders[draw.integers(0, len(poll.orders), 300)]
        release = rankdp.privatize(rankdp.Rankings.from_orders(rows, poll.items), 1, bits=bits)
        board = rankdp.aggregate(release).board(method).leaderboard
        for row in board.rows():
            assert row["low"] <= row[board.score_name] <= row["high"]
            held.append(row["low"] <= truth[row["item"]] <= row["high"])
            ranked.append(row["rank_low"] <= best.index(row["item"]) + 1 <= row["rank_high"])
    assert np.mean(held) > 0.88
    assert np.mean(ranked) > 0.9


def test_intervals_hold_for_strong_minorities_too(request):
    """The population that naive counting gets wrong."""
    wanted = 0.7
    kinds = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]], dtype=np.int32)
    rows = kinds[(generator(request).random(200 * 100) > wanted).astype(int)]
    out = mechanism("kendall", 5, 1).sample(rows, seeded(request))
    covered = []
    for start in range(0, len(rows), 100):
        poll = rankdp.Rankings.from_orders(out[start : start + 100], list("abcde"))
        rates = rankdp.aggregate(poll, "kendall", 1).win_rates
        low, high = rates.interval()
        assert low.min() >= 0
        assert high.max() <= 1
        assert rates.unbiased
        covered.append(low[0, 1] <= wanted <= high[0, 1])
    assert np.mean(covered) >= 0.92


def test_what_was_done_is_said(request):
    poll = town_poll(2000)
    few = rankdp.Rankings.from_orders(poll.orders[:40], poll.items)
    bits = seeded(request)
    plenty = aggregate_report(rankdp.aggregate(rankdp.privatize(poll, 8, bits=bits)))
    scarce = aggregate_report(rankdp.aggregate(rankdp.privatize(few, "1/2", bits=bits)))
    assert plenty.sure[1].startswith("The public law of the noise is taken out of the numbers")
    assert any("answers to be told apart" in words for words in scarce.warnings)
    optimal = rankdp.aggregate(rankdp.privatize(few, 1, mechanism="tiers-3-5", bits=bits))
    assert "a bias of at most" in how(optimal.mean_ranks)


# -- partial ballots on the command line -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """Lists of one to three of a, b, c, and lists of x and y, which nothing connects with them."""
    folder = tmp_path_factory.mktemp("partial")
    poll, private = folder / "poll.csv", folder / "private.csv"
    lists = ["a,b,c", "a,c,", "b,c,", "a,,", "x,y,"]
    lines = [f"{voter},{lists[voter % 5]}" for voter in range(1000)]
    poll.write_text("voter,rank_1,rank_2,rank_3\n" + "\n".join(lines) + "\n")
    told = CliRunner().invoke(
        cli, ["privatize", str(poll), str(private), "-e", "4", "--listed-items-public", "--rehearse", "3"]
    )
    assert told.exit_code == 0, told.output
    return private


@pytest.mark.parametrize(
    ("method", "score", "order"),
    [
        ("borda", "win_share", ("ax", "b", "cy")),
        ("copeland", "majorities", ("a", "bx", "yc")),
        ("bradley-terry", "log_strength", ("ax", "b", "cy")),
        ("kemeny", "kemeny_place", ("a", "b", "c")),
    ],
)
def test_partial_ballots(partial, method, score, order):
    told = CliRunner().invoke(cli, ["aggregate", str(partial), "--method", method, "--json"])
    assert told.exit_code == 0, told.output
    said = json.loads(told.stdout)
    assert (said["voters"], said["left_out"]) == (800, 200)
    assert "200 lists of one item are left out: one item has no order." in said["warnings"]
    rows = {row["item"]: row for row in said["items"]}
    assert sorted(rows) == list("abcxy")
    best = [min(rows[item]["place"] for item in items) for items in order]
    assert best == sorted(best)
    for row in rows.values():
        assert row["low"] <= row[score] <= row["high"]
        assert 1 <= row["rank_low"] <= row["rank_high"] <= 5
    words = " ".join(said["warnings"])
    if method == "bradley-terry":
        assert (
            "No list connects these 2 parts, only the prior compares strengths of different parts: a, b, c |" in words
        )
        assert rows["x"]["rank_low"] == 1
    elif method != "borda":
        assert "6 of 10 pairs of items are listed together by nobody; the others stand for them." in words
    shown = CliRunner().invoke(cli, ["aggregate", str(partial), "--method", method])
    assert shown.exit_code == 0, shown.output
    assert "rank" in shown.stdout


def test_bradley_terry_intervals_cover(request):
    """Strengths of items that partial lists compare, through noise that is undone."""
    strength, draw, bits, covered = np.array([1.0, 0.3, -0.3, -1.0]), generator(request), seeded(request), []
    for _ in range(60):
        rows = np.argsort(-(strength + draw.gumbel(size=(900, 4))), axis=1)
        lists = [[f"item {item}" for item in row if item != voter % 4] for voter, row in enumerate(rows.tolist())]
        poll = rankdp.Rankings.from_orders(lists, [f"item {item}" for item in range(4)])
        release = rankdp.privatize(poll, 4, mechanism="reinsertion", listed_items_public=True, bits=bits)
        board = rankdp.aggregate(release).board("bradley-terry").leaderboard
        place = [int(item[-1]) for item in board.items]
        covered.append((board.low <= strength[place]) & (strength[place] <= board.high))
    assert 0.9 < np.mean(covered) < 0.995


def test_an_item_that_stands_alone_has_the_prior():
    poll = rankdp.Rankings.from_orders([["a", "b"], ["b", "a"], ["c"]] * 5, list("abc"))
    found = rankdp.aggregate(poll, "reinsertion", 1)
    assert found.scores("borda")[2] == pytest.approx(found.scores("borda")[:2].mean(), abs=0.1)
    low, high = found.draws("bradley-terry").interval(0.95)
    assert (high - low)[2] > (high - low)[:2].max()
    board = found.board().leaderboard
    place = board.items.index("c")
    assert place > 0
    assert (board.rank_low[place], board.rank_high[place]) == (1, 3)


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_nothing_that_was_released_is_refused(name, request):
    """Whatever the mechanism, the epsilon and the lengths of the lists."""
    draw, bits = generator(request), seeded(request)
    for lengths, epsilon in (((2,), 1), ((4,), "1/1000"), ((5,), 40), ((2, 3, 6), 1)):
        items = max(lengths) + 1
        lists = [[f"item {i}" for i in draw.permutation(items)[: lengths[u % len(lengths)]]] for u in range(12)]
        poll = rankdp.Rankings.from_orders(lists)
        release = rankdp.privatize(poll, epsilon, mechanism=name, listed_items_public=True, bits=bits)
        found = rankdp.aggregate(release)
        for method in METHODS:
            report = aggregate_report(found, method)
            assert len(report.records) == len(poll.items)
            assert json.loads(report.json())["method"] == method
