"""A survey from its opening to its export, by the commands; and how far liars get."""

from __future__ import annotations

import json
import re
import shlex
import stat
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.data.atomic import read_sidecar
from rankdp.errors import BudgetExceeded, InputError
from rankdp.mechanisms import mechanism
from rankdp.mechanisms.shuffled import epsilon_outside
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import ITEM_POSITION, WHOLE_RANKING
from rankdp.privacy.ledger import Ledger
from rankdp.report.results import rank_span
from rankdp.theory.estimators import rank_estimator
from rankdp_web.browser_tables import NAMES, browser_tables, survey_mechanism
from rankdp_web.pages import all_texts
from rankdp_web.survey_database import SurveyDatabase
from rankdp_web.survey_results import survey_results
from rankdp_web.surveys import collected, create_survey, guarantee_of, mechanism_of, promised, read_answer

ITEMS = ("Tea", "Coffee", "Water", "Juice", "Milk", "Soda")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.txt").write_text("\n".join(ITEMS), "utf-8")

    def invoke(*words, refused=None):
        result = CliRunner().invoke(cli, [str(word) for word in words])
        if refused is None:
            assert result.exit_code == 0, (result.output, result.exception)
        else:
            assert re.search(refused, f"{result.exception} {result.output}"), (result.output, result.exception)
        return result

    return invoke


def create(run, *more, database="survey.db"):
    result = run(
        "survey", "create", database, "--title", "Drinks", "--items", "items.txt", "--epsilon", "2", *more
    )  # fmt: skip
    return re.search(r"survey +(\w+)", result.output)[1]


def answer(address, survey_id, count=300, first=0):
    """Answers as browsers would draw them, of people who agree about the first."""
    database = SurveyDatabase(address)
    survey = database.find(survey_id)[0]
    made = mechanism(survey.mechanism, len(ITEMS), survey.epsilon)
    truth = np.array([[0, 1, 2, 3, 4, 5], [0, 2, 1, 3, 5, 4]] * (count // 2), dtype=np.int32)
    drawn = made.sample(truth, SeededBits(count))
    database.store(survey, [(str(row), bytes(order)) for row, order in enumerate(drawn.tolist(), first)])
    database.close()


def test_commands_show_an_open_survey_in_batches_only(run, tmp_path):
    survey_id = create(run)
    answer("survey.db", survey_id, 40)
    for command in (["results"], ["export"]):
        target = ["out.csv"] * (command == ["export"])
        run("survey", *command, "survey.db", *target, refused="results from 64 answers on, survey .* has 40")
    assert not (tmp_path / "out.csv").exists()
    answer("survey.db", survey_id, 90, first=40)
    run("survey", "export", "survey.db", "out.csv")
    assert len((tmp_path / "out.csv").read_text("utf-8").splitlines()) == 1 + 96
    assert "The survey is open" in run("survey", "results", "survey.db", "-o", "open.json").output
    assert json.loads((tmp_path / "open.json").read_text("utf-8"))["answers"] == 96
    run("survey", "close", "survey.db")
    assert "The survey is open" not in run("survey", "results", "survey.db", "-o", "closed.json").output
    assert json.loads((tmp_path / "closed.json").read_text("utf-8"))["answers"] == 130


def test_a_small_survey_has_no_results_but_an_export_once_it_is_closed(run, tmp_path):
    answer("survey.db", create(run), 10)
    assert "leave out 10" in run("survey", "close", "survey.db").output
    run("survey", "results", "survey.db", refused="results from 32 answers on, survey .* has 10; rankdp survey export")
    run("survey", "export", "survey.db", "out.csv")
    assert len((tmp_path / "out.csv").read_text("utf-8").splitlines()) == 1 + 10


@pytest.mark.slow
def test_an_organiser_from_opening_to_deleting(run, tmp_path):
    survey_id = create(run)
    answer("survey.db", survey_id)
    shown = run("survey", "results", "survey.db", "-o", "board.csv", "-o", "board.json", "-o", "board.html").output
    assert "768 more answers would make the intervals half as long." in shown
    facts = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert facts["items"][0]["item"] == "Tea"
    assert facts["items"][0]["rank"] == 1 < facts["items"][-1]["rank"]
    assert read_sidecar("board.csv")["guarantee"]["epsilon"] == "2"
    run("survey", "export", "survey.db", "out.csv")
    sidecar = read_sidecar("out.csv")
    assert sidecar["guarantee"]["protects"] == WHOLE_RANKING
    assert sidecar["parameters"]["choices"][0]["mechanism"].startswith("kendall-ball-")
    assert sidecar["parameters"]["drawn_by"] == "the respondents' browsers"
    run("survey", "close", "survey.db")
    run("survey", "export", "survey.db", "again.csv")
    first, again = (Counter((tmp_path / name).read_text("utf-8").splitlines()) for name in ("out.csv", "again.csv"))
    assert first < again
    assert (first.total(), again.total()) == (1 + 256, 1 + 300)
    run("survey", "delete", "survey.db", "--yes")
    run("survey", "results", "survey.db", refused="there are: none")


@pytest.mark.slow
def test_answers_of_a_closed_survey_hide_each_other(run):
    survey_id = create(run)
    answer("survey.db", survey_id, 1000)

    def promise(language):
        database = SurveyDatabase("survey.db")
        survey = database.find(survey_id)[0]
        shown = survey_results(survey, collected(database, survey)).page(language)["folded"]
        database.close()
        return " ".join(shown[all_texts()[language]["what_promised"]])

    assert "hides among" not in promise("en")  # open: results can be subtracted
    run("survey", "close", "survey.db")
    database = SurveyDatabase("survey.db")
    outside = f"{epsilon_outside(mechanism_of(database.find(survey_id)[0]), 1000):.3f}"
    database.close()
    assert float(outside) < 1
    assert "sees only these results, no earlier ones and no single answers, learns even less" in promise("en")
    assert f"hides among all 1,000, with epsilon {outside} and delta 0.000001." in promise("en")
    assert f"unter allen 1.000, mit Epsilon {outside.replace('.', ',')} und Delta 0,000001." in promise("de")


@pytest.mark.parametrize(("count", "options"), [(40, ()), (1000, ("--protect", "position"))])
def test_too_few_answers_hide_nothing(run, count, options):
    survey_id = create(run, *options)
    answer("survey.db", survey_id, count)
    run("survey", "close", "survey.db")
    database = SurveyDatabase("survey.db")
    survey = database.find(survey_id)[0]
    assert survey_results(survey, collected(database, survey)).outside is None
    database.close()


@pytest.mark.slow
def test_an_export_is_read_by_the_other_commands(run, tmp_path):
    survey_id = create(run)
    answer("survey.db", survey_id)
    for name in ("out.csv", "out.parquet", "out.soc"):
        run("survey", "export", "survey.db", name)
        board = json.loads(run("aggregate", name, "--json").stdout)
        assert board["items"][0]["item"] == "Tea"
        assert board["guarantee"]["epsilon"] == "2"
    signature = json.loads(run("attack", "signature", "out.csv", "--json").stdout)
    assert signature
    choice = read_sidecar("out.csv")["parameters"]["choices"][0]
    promise = ("--epsilon", choice["ranking_epsilon"], "--protect", "ranking")
    run("audit", "kendall-ball", "--items", choice["items"], *promise, "--draws", 2000)
    release = rankdp.aggregate_file("out.csv").release
    assert release.guarantee.epsilon == 2


@pytest.mark.long
def test_an_export_trains_a_model(run, tmp_path):
    survey_id = create(run)
    answer("survey.db", survey_id)
    run("survey", "close", "survey.db")
    run("survey", "export", "survey.db", "out.csv")
    features = [f"{item},{place},{place % 2}" for place, item in enumerate(ITEMS)]
    (tmp_path / "items.csv").write_text("\n".join(["item,a,b", *features]), "utf-8")
    (tmp_path / "users.csv").write_text("\n".join(["user,x", *(f"{row},1" for row in range(300))]), "utf-8")
    learned = json.loads(run("learn", "users.csv", "items.csv", "out.csv", "-o", "model", "--common", "--json").stdout)
    assert learned["guarantee"]["epsilon"] == "2"


def test_links_are_private_files_and_cannot_be_shown_again(run, tmp_path):
    survey_id = create(run, "--invited", "--private-results", "--address", "https://vote.example/")
    run("survey", "invite", "survey.db", "--number", 20, "-o", "links.txt", "--address", "https://vote.example")
    links = (tmp_path / "links.txt").read_text("utf-8").split()
    assert len(set(links)) == 20
    assert all(re.fullmatch(rf"https://vote\.example/s/{survey_id}#[\w-]{{22}}", link) for link in links)
    assert stat.S_IMODE((tmp_path / "links.txt").stat().st_mode) == 0o600
    assert not any(link.split("#")[1].encode() in (tmp_path / "survey.db").read_bytes() for link in links)
    run("survey", "invite", "survey.db", "--number", 0, refused="number")


def test_a_survey_is_named_where_there_are_several(run):
    first, second = create(run), create(run)
    run("survey", "export", "survey.db", "out.csv", refused=f"{first}|{second}")
    run("survey", "results", "survey.db", "--id", second, refused="no answers yet")
    run("survey", "close", "missing.db", refused="no such file")


def test_a_ledger_is_charged_once_when_a_survey_opens(run, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "respondents", WHOLE_RANKING, 3)
    create(run, "--ledger", "budget.db")
    assert [(entry.state, entry.spent) for entry in ledger.history()] == [("committed", (2,))]
    command = "survey create other.db --title D --items items.txt -e 2 --ledger budget.db"
    result = CliRunner().invoke(cli, shlex.split(command))
    assert isinstance(result.exception, BudgetExceeded)
    assert result.exception.remaining == 1
    assert SurveyDatabase("other.db").surveys() == []


def test_what_does_not_fit_a_budget_opens_nothing(tmp_path):
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    ledger = Ledger.create(tmp_path / "budget.db", "respondents", WHOLE_RANKING, 1)
    with pytest.raises(BudgetExceeded):
        create_survey(database, "Drinks", ITEMS, 2, ledger=ledger)
    assert database.surveys() == []


def test_without_the_extra_one_sentence_says_so(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    for module in [name for name in sys.modules if name.startswith("rankdp_web")]:
        monkeypatch.delitem(sys.modules, module)
    run("survey", "close", "survey.db", refused=r"pip install 'rankdp\[web\]'")


# -- choices and promises ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "epsilon"), [(2, 1), (3, "1/2"), (5, 2), (6, 4), (12, 1)])
def test_auto_takes_the_most_precise_that_a_browser_can_draw(items, epsilon):
    chosen = survey_mechanism("auto", items, epsilon)
    browser_tables(chosen)
    assert chosen.has_offsets == (items > 10)
    others = [mechanism(name, items, epsilon) for name in NAMES if name != "optimal" or items <= 5]
    others = [other for other in others if items > 10 or not other.has_offsets]
    for other in others:
        try:
            needed = rank_estimator(other).mean_variance
        except NotImplementedError:
            continue
        assert rank_estimator(chosen).mean_variance <= needed * (1 + 1e-8)


def test_a_weak_promise_must_be_accepted(run):
    words = ("survey", "create", "weak.db", "--title", "Drinks", "--items", "items.txt", "--epsilon", "11")
    run(*words, refused="epsilon must be at most 10, got 11.*weak.promise.accepted")
    assert not Path("weak.db").exists()
    run(*words, "--weak-promise-accepted")
    assert [survey.epsilon for survey in SurveyDatabase("weak.db").surveys()] == ["11"]


def test_the_odds_sentence_is_that_of_epsilon(tmp_path):
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    numbers = promised(create_survey(database, "Drinks", ITEMS, "1.5"))
    assert (numbers["factor"], numbers["sure"]) == ("4.482", "81.8")  # e^1.5 and e^1.5 / (1 + e^1.5), rounded up


def test_either_promise_and_no_other(run, tmp_path):
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    whole = create_survey(database, "Drinks", ITEMS, "2")
    assert (whole.protect, mechanism_of(whole).local_epsilon(), guarantee_of(whole).protects) == (
        "ranking",
        2,
        WHOLE_RANKING,
    )
    place = create_survey(database, "Drinks", ITEMS, "2", protect="position")
    assert (place.protect, guarantee_of(place).protects, mechanism_of(place).epsilon) == ("position", ITEM_POSITION, 2)
    with pytest.raises(InputError, match="protect must be one of position, ranking, got 'voter'"):
        create_survey(database, "Drinks", ITEMS, 2, protect="voter")
    assert database.surveys() == [whole, place] or database.surveys() == [place, whole]


def test_lists_longer_than_the_ball_reaches_say_what_is_used(run, tmp_path):
    (tmp_path / "long.txt").write_text("\n".join(f"item {number}" for number in range(61)), "utf-8")
    made = run("survey", "create", "long.db", "--title", "Long", "--items", "long.txt", "-e", 4)
    (survey,) = SurveyDatabase("long.db").surveys()
    assert mechanism_of(survey).local_epsilon() <= 4
    assert f"{survey.mechanism} protects the whole answer by an epsilon of" in " ".join(made.output.split())
    assert "Protects one whole ranking" in made.output


# -- liars -------------------------------------------------------------------------------------------------------------


def test_answers_with_offsets_go_all_the_way(run, tmp_path):
    names = [f"item {number}" for number in range(20)]
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    survey = create_survey(database, "Long", names, 2, protect="position")
    made = mechanism_of(survey)
    assert made.has_offsets
    drawn, offsets = made.sample_with_offsets(np.tile(np.arange(20, dtype=np.int32), (400, 1)), SeededBits(2))
    pairs = list(zip(drawn.tolist(), offsets.tolist(), strict=True))
    sent = [{"token": str(row), "ranking": order, "offset": offset} for row, (order, offset) in enumerate(pairs)]
    database.store(survey, [read_answer(survey, content) for content in sent])
    database.finish(survey.id)
    value = collected(database, survey).value
    assert sorted(zip(value.orders.tolist(), value.offsets.tolist(), strict=True)) == sorted(pairs)
    for offset in (made.offsets, -1, 1.0, True, None):
        with pytest.raises(InputError, match=f"offset must be a whole number from 0 to {made.offsets - 1}"):
            read_answer(survey, {**sent[0], "offset": offset})
    with pytest.raises(InputError, match="token, ranking, offset and nothing else"):
        read_answer(survey, {"token": "x", "ranking": drawn[0].tolist()})
    database.close()
    for name in ("out.csv", "out.parquet", "out.soc"):
        run("survey", "export", "survey.db", name)
        board = json.loads(run("aggregate", name, "--json").stdout)
        first = min(board["items"], key=lambda record: record["mean_rank"])
        assert names.index(first["item"]) < 4
    assert "# RANKDP OFFSETS: " in (tmp_path / "out.soc").read_text("utf-8")
    shown = run("survey", "results", "survey.db", "-o", "board.json").output
    assert "1,200 more answers" in shown
    records = json.loads((tmp_path / "board.json").read_text("utf-8"))["items"]
    spans = [rank_span(record["rank_low"], record["rank_high"]) for record in records]
    assert re.findall(r"│ (\d+(?:–\d+)?) +│", shown)[: len(spans)] == spans


LIES = [("optimal", 5, 2), ("reinsertion", 5, 1), ("reinsertion", 20, 2), ("offset-tiers", 12, 2)]


@pytest.mark.parametrize(("name", "items", "epsilon"), LIES)
def test_liars_shift_a_result_as_far_as_stated(name, items, epsilon):
    """20 of 400: the item that all others rank third is put wherever it can be, with any offset."""
    made = mechanism(name, items, epsilon)
    honest, offsets = made.sample_with_offsets(np.tile(np.arange(items, dtype=np.int32), (380, 1)), SeededBits(1))

    def estimated(cell):
        offset, place = np.argwhere(made.cells == cell)[0]
        lie = np.insert(np.delete(np.arange(items, dtype=np.int32), 2), place, 2)
        table = rankdp.Rankings.from_orders(
            np.concatenate([honest, np.tile(lie, (20, 1))]),
            [str(item) for item in range(items)],
            offsets=np.append(offsets, [offset] * 20) if made.has_offsets else None,
        )
        return rankdp.aggregate(table, name, epsilon).mean_ranks.values[2]

    shift = np.ptp([estimated(cell) for cell in np.unique(made.cells)])
    stated = np.ptp(rank_estimator(made).values) * 20 / 400
    if made.has_offsets:  # an aggregate averages over each offset first, which bounds what one of them can do
        assert shift <= stated
    else:
        assert shift == pytest.approx(stated, rel=1e-9)
    assert shift > 20 / 400 * (items - 1)  # further than liars about a true ranking could


def test_answers_come_back_as_rankings(tmp_path):
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    survey = create_survey(database, "Drinks", ITEMS, 1)
    database.store(survey, [("a", bytes([5, 4, 3, 2, 1, 0]))])
    release = collected(database, survey, shown=False)
    assert release.value.orders.tolist() == [[5, 4, 3, 2, 1, 0]]
    assert release.value.items == ITEMS
    assert release.guarantee.epsilon == 1
    assert not release.rehearsal


# -- the best few ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lists_of_the_best_go_all_the_way(run, tmp_path):
    """Thirty items, the best five: what is stored, exported and aggregated; who is listed is protected too."""
    (tmp_path / "films.txt").write_text("\n".join(f"film {number}" for number in range(30)), "utf-8")
    shown = run("survey", "create", "s.db", "--title", "Films", "--items", "films.txt", "-e", 4, "--rank-top", 5).output
    assert "Protects one whole ranking" in shown
    database = SurveyDatabase("s.db")
    (survey,) = database.surveys()
    made = mechanism_of(survey)
    assert (survey.rank_top, made.lists, made.local_epsilon()) == (5, 5, 4)
    rng = np.random.default_rng(3)
    strengths = np.linspace(3, -3, 30)
    truth = np.argsort(-(strengths + rng.gumbel(size=(3000, 30))), axis=1).astype(np.int32)
    drawn = made.sample(truth, SeededBits(5))[:, :5].tolist()
    sent = [{"token": str(row), "ranking": order} for row, order in enumerate(drawn)]
    database.store(survey, [read_answer(survey, content) for content in sent])
    for wrong in ([0, 1, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 30], [0, 1, 2, 3, 4, 5], [-1, 1, 2, 3, 4]):
        with pytest.raises(InputError, match="ranking must have 5 different numbers from 0 to 29"):
            read_answer(survey, {"token": "x", "ranking": wrong})
    database.finish(survey.id)
    value = collected(database, survey).value
    assert sorted(value.orders.tolist()) == sorted(drawn)
    database.close()
    run("survey", "export", "s.db", "out.csv")
    assert read_sidecar("out.csv")["parameters"]["lists"]["length"] == 5
    board = json.loads(run("aggregate", "out.csv", "--json").stdout)
    assert {record["item"] for record in board["items"][:3]} == {"film 0", "film 1", "film 2"}
    run("survey", "results", "s.db", "-o", "board.json")
    items = json.loads((tmp_path / "board.json").read_text("utf-8"))["items"]
    assert [item["item"] for item in items] == [record["item"] for record in board["items"]]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rank_top": 6}, "rank_top must be .* from 0 to 5, got 6"),
        ({"rank_top": -1}, "rank_top must be .* from 0 to 5, got -1"),
        ({"rank_top": 2, "protect": "position"}, "rank_top needs protect='ranking', got position"),
        ({"rank_top": 2, "mechanism": "reinsertion"}, "mechanism must be auto or top-ball"),
    ],
)
def test_lists_that_cannot_be_asked_for(tmp_path, asked, words):
    database = SurveyDatabase(tmp_path / "survey.db", create=True)
    with pytest.raises(InputError, match=words):
        create_survey(database, "Drinks", ITEMS, 2, **asked)
    assert database.surveys() == []
