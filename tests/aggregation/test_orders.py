"""Orders from unbiased statistics, and what people see of an aggregate."""

import contextlib
import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.aggregation.aggregate_report import aggregate_report
from rankdp.aggregation.methods import METHODS
from rankdp.aggregation.respondents import compare, compare_report, required_voters
from rankdp.cli import cli
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.kemeny import kemeny

pytestmark = pytest.mark.slow

ITEMS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def found():
    """Clear preferences at a large epsilon: a, b, c, d."""
    random = np.random.default_rng(3)
    noisy = np.arange(4) + random.normal(0, 1.2, (4000, 4))
    poll = rankdp.Rankings.from_orders([[ITEMS[i] for i in row] for row in np.argsort(noisy, axis=1)], ITEMS)
    return rankdp.aggregate(rankdp.privatize(poll, 6, mechanism="reinsertion", bits=rankdp.SeededBits(2)))


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_finds_the_order(found, method):
    assert found.order(method) == ITEMS
    assert np.all(np.diff(found.scores(method)) < 0)


def test_kemeny_is_that_of_the_win_rates(found):
    best = kemeny(found.win_rates.values)
    assert found.order("kemeny") == tuple(ITEMS[place] for place in best.order)


def test_bradley_terry_is_the_fit_to_the_wins(found):
    """Away from the edges a ridge of one comparison in thousands hardly moves the maximum likelihood."""
    strengths = found.scores("bradley-terry")
    assert strengths.mean() == pytest.approx(0, abs=1e-9)
    wins = np.rint(found.win_rates.values * found.pair_voters) * (1 - np.eye(4))
    plain = fit(rankdp.data.counts.PairCounts.from_dense(wins, ITEMS), ridge=1.0).theta
    np.testing.assert_allclose(strengths, plain - plain.mean(), atol=1e-3)


def test_copeland_counts_majorities(found):
    assert found.scores("copeland").tolist() == [3, 2, 1, 0]


def test_pairs_that_nobody_lists_follow_the_others():
    poll = rankdp.Rankings.from_orders([["a", "b"], ["c", "d"]] * 20, ITEMS)
    table = rankdp.aggregate(poll, "reinsertion", 5)
    found = table.scores("copeland")
    assert found[[0, 2]] == pytest.approx(3 - found[[1, 3]], abs=0.1)  # a and c alike, before b and d
    assert found[0] > found[1] + 0.5
    notes = table.board("copeland").leaderboard.warnings
    assert "4 of 6 pairs of items are listed together by nobody; the others stand for them." in notes


def test_rows_have_the_naive_numbers_beside_them(found):
    report = aggregate_report(found, "borda", 0.9)
    rows = report.records
    assert [row["item"] for row in rows] == list(ITEMS)
    assert [row["place"] for row in rows] == [1, 2, 3, 4]
    for row in rows:
        assert row["low"] < row["mean_rank"] < row["high"]
        assert abs(row["naive"] - 2.5) < abs(row["mean_rank"] - 2.5)  # drawn to the middle
    assert report.headline


@pytest.mark.parametrize("ending", [".csv", ".json", ".html", ".png"])
def test_files(found, tmp_path, ending):
    path = tmp_path / f"result{ending}"
    aggregate_report(found, title="Drinks & <b>more</b>").write(path)
    content = path.read_bytes()
    if ending == ".csv":
        assert (
            content.decode()
            .splitlines()[0]
            .startswith("item,place,mean_rank,low,high,rank,rank_low,rank_high,naive,naive_place")
        )
    elif ending == ".json":
        said = json.loads(content)
        assert np.shape(said["win_rates"]["values"]) == (4, 4)
        assert said["mechanisms"] == [{"mechanism": "reinsertion", "items": 4, "epsilon": "6"}]
    elif ending == ".html":
        assert b"Drinks &amp; &lt;b&gt;more&lt;/b&gt;</h1>" in content
    else:
        assert content.startswith(b"\x89PNG")


def test_long_rankings_have_win_rates_that_say_what_is_unknown():
    poll = rankdp.Rankings.from_orders(np.tile(np.arange(60, dtype=np.int32), (50, 1)), [str(n) for n in range(60)])
    said = json.loads(aggregate_report(rankdp.aggregate(poll, "kendall", 30)).json())
    assert not said["win_rates"]["unbiased"]
    assert said["win_rates"]["bias"][0][1] == 0.5
    notes = rankdp.aggregate(poll, "kendall", 30).board("copeland").leaderboard.warnings
    assert any(note.startswith("How the noise moves two items together is not known") for note in notes)
    assert len(said["items"]) == 60


def test_respondents_are_compared():
    needed = compare(6, 2, 0.03)
    assert [count for _, count in needed] == sorted(count for _, count in needed)
    assert dict(needed)["kendall"] > 10 * needed[0][1]
    assert needed[0][1] == required_voters(6, 2, 0.03, needed[0][0])
    assert [name for name, _ in compare(60, 2, 0.03)] == ["reinsertion"]
    assert dict(compare(6, 2, 0.03, every=True))["ulam"] > dict(needed)["ulam"]


def test_respondents_for_whole_rankings():
    whole = dict(compare(5, 2, 0.05, protect="ranking"))
    one = dict(compare(5, 2, 0.05))
    radii = {}
    for radius in range(10):
        with contextlib.suppress(rankdp.errors.Unsupported):
            radii[f"kendall-ball-{radius}"] = required_voters(5, 2, 0.05, f"kendall-ball-{radius}")
    best = min(radii, key=radii.__getitem__)
    assert whole[best] == radii[best] < one["kendall-ball"]  # the radius for mean ranks
    assert [name for name in whole if name.startswith("kendall-ball")] == [best]
    assert whole["kendall"] == required_voters(5, Fraction(4, 5), 0.05, "kendall")  # 5/2 times that of a position
    assert whole["ulam"] == required_voters(5, Fraction(1, 2), 0.05, "ulam")  # 4 times
    with pytest.raises(rankdp.InputError, match="protect must be one of position, ranking, got"):
        required_voters(5, 2, 0.05, protect="ballot")
    told = CliRunner().invoke(
        cli, ["plan", "respondents", "--items", "5", "-e", "2", "--half-width", "0.05", "--protect", "ranking"]
    )
    best = min(whole, key=whole.__getitem__)
    assert f"{whole[best]:,} respondents suffice with {best}" in told.output
    assert f"--mechanism {best} --protect ranking" in " ".join(told.output.split())


def test_mechanisms_that_cannot_well_be_debiased_are_named(tmp_path):
    words = compare_report(7, 1, 0.05).words[0]  # ulam is nearly singular there, and not at epsilon 2
    assert words.startswith("Over 10 times as many are needed at this epsilon with kendall, kendall-ball, ulam,")
    assert "reinsertion" not in words
    assert "ulam" not in compare_report(7, 2, 0.05).words[0]
    poll = tmp_path / "poll.csv"
    poll.write_text("rank_1,rank_2,rank_3,rank_4,rank_5,rank_6,rank_7\na,b,c,d,e,f,g\n")

    def told(*options):
        done = CliRunner().invoke(cli, ["privatize", str(poll), str(tmp_path / "out.csv"), "--force", *options])
        assert done.exit_code == 0, done.output
        return done.output

    warning = "times as many answers from"
    told_at_1 = told("-e", "1", "--mechanism", "ulam")
    assert f"note: at this epsilon an unbiased aggregate needs 311 {warning} ulam as from reinsertion" in told_at_1
    assert f"{warning} ulam as from kendall-ball-9" in told("-e", "1", "--mechanism", "ulam", "--protect", "ranking")
    assert warning not in told("-e", "1", "--mechanism", "kendall-ball", "--protect", "ranking")
    assert warning not in told("-e", "1", "--mechanism", "ulam", "--purpose", "order")
    assert warning not in told("-e", "2", "--mechanism", "ulam")
    assert warning not in told("-e", "1")


def test_on_the_command_line(tmp_path):
    poll, private = tmp_path / "poll.csv", tmp_path / "private.csv"
    poll.write_text("voter,rank_1,rank_2,rank_3\n" + "".join(f"{voter},x,y,z\n" for voter in range(300)))
    run = CliRunner()
    told = run.invoke(cli, ["privatize", str(poll), str(private), "-e", "3", "--purpose", "aggregate"])
    assert told.exit_code == 0, told.output
    assert "mechanism: ulam (3 items, epsilon 3): keeps 92% of pairs; 1.5 answers tell as much" in told.output
    told = run.invoke(cli, ["aggregate", str(private), "--json"])
    assert [row["item"] for row in json.loads(told.output)["items"]] == ["x", "y", "z"]
    told = run.invoke(cli, ["aggregate", str(private), "-o", str(tmp_path / "out.csv")])
    assert "300 privatized rankings" in told.output
    assert (tmp_path / "out.csv").exists()
    told = run.invoke(cli, ["plan", "respondents", "--items", "5", "-e", "2", "--half-width", "0.05"])
    assert "respondents suffice with" in told.output
    told = run.invoke(cli, ["plan", "respondents", "--items", "5", "-e", "2", "--half-width", "0.05", "--json"])
    assert json.loads(told.output)["recommended"] in rankdp.mechanisms.MECHANISMS
