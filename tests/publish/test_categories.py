"""Leaderboards by category: one guarantee for all of them, whatever a neighbour moves between categories."""

import itertools
import json
import string
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support import seeded

import rankdp
from rankdp.audit.statistical import audit_samples
from rankdp.cli import cli
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.privacy.bits import SeededBits
from rankdp.publish import categories
from rankdp.publish.board_report import boards_report
from rankdp.publish.categories import CountedBoards, combined_loss, split
from rankdp.publish.rank import BoardRequest, CountedVotes

ITEMS = ("a", "b", "c")
CONTENTS = [(*pair, winner) for pair in (("a", "b"), ("b", "c")) for winner in ("left", "right", "tie")]
ROWS = [(category, *content) for category in "xyz" for content in CONTENTS]
UNITS = {"comparison": None, "outcome": None, "voter": 2}


def table(rows):
    """Rows of (category, left, right, winner), perhaps with a voter at the end."""
    names = ("category", "left", "right", "winner", "voter")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names) if at < len(rows[0])})


def counted(rows, protect, given="xyz", epsilon=1, **options):
    request = BoardRequest.of(epsilon, protect, "wins", UNITS[protect])
    votes = Comparisons.of(table(rows), items=ITEMS, **options)
    return CountedBoards.of(request, votes, "category", given if isinstance(given, dict) else list(given))


def loss(one, other):
    """The exact privacy loss of noisy wins between two tables: independent Laplace noise on each."""
    total = Fraction(0)
    for name in one.parts:
        left, right = one.parts[name], other.parts[name]
        protection, epsilon = left.request.protection, left.request.epsilon
        moved = int(abs(left.votes.half_wins - right.votes.half_wins).sum())
        total += epsilon * moved / (NoisyWins(protection, 1).l1 * protection.steps)
        compared = abs(int(left.votes.half_wins.sum()) - int(right.votes.half_wins.sum())) // 2
        public = protection.count_public
        assert compared == 0 or not public, "the number of comparisons is taken as public, and neighbours differ in it"
    return total


def neighbours(protect):
    """Tables of two or three rows that differ in one unit."""
    if protect == "voter":
        fixed = [("x", "a", "b", "left", "other")]
        mine = [(*row, "one") for row in (ROWS[0], ROWS[7], ROWS[14], ROWS[3], ROWS[9])]
        sets = [said for size in range(4) for said in itertools.combinations_with_replacement(mine, size)]
        return [([*fixed, *one], [*fixed, *other]) for one, other in itertools.combinations(sets, 2)]
    pairs = itertools.combinations(ROWS, 2)
    if protect == "outcome":
        pairs = [(one, other) for one, other in pairs if one[:3] == other[:3]]
    return [([rest, one], [rest, other]) for rest in ROWS[::5] for one, other in pairs]


def worst(protect, given):
    seen = {}

    def look(rows):
        key = tuple(rows)
        if key not in seen:
            seen[key] = counted(rows, protect, given)
        return seen[key]

    return max(loss(look(one), look(other)) for one, other in neighbours(protect))


SHARES = {"x": 5, "y": 1, "z": Fraction(1, 3)}


@pytest.mark.parametrize(
    ("protect", "given"),
    [
        ("comparison", "xyz"),
        ("comparison", SHARES),
        *(pytest.param(unit, "xyz", marks=pytest.mark.slow) for unit in ("outcome", "voter")),
        *(pytest.param(unit, SHARES, marks=pytest.mark.long) for unit in ("outcome", "voter")),
    ],
)
def test_every_neighbour_of_small_tables_stays_within_epsilon(protect, given):
    assert counted([(*ROWS[0], "one")], protect, given).guarantee.epsilon == 1
    assert worst(protect, given) <= 1


@pytest.mark.slow
def test_boards_that_all_get_the_whole_epsilon_are_caught(monkeypatch):
    """For voters; a row that leaves one board and comes to another moves the wins of each by half of the charge."""
    monkeypatch.setattr(categories, "combined_loss", lambda losses, unit: max(losses))
    assert worst("voter", "xyz") > 1


@pytest.mark.slow
def test_counts_that_are_taken_as_public_are_caught(monkeypatch):
    """A row that moves to another category changes how many comparisons two boards have."""
    monkeypatch.setattr(Comparisons, "drops", False)
    with pytest.raises(AssertionError, match="taken as public"):
        worst("comparison", "xyz")


def test_shares():
    weights = {"x": Fraction(2), "y": Fraction(1), "z": Fraction(1)}
    assert split(weights, "outcome") == {"x": 1, "y": Fraction(1, 2), "z": Fraction(1, 2)}
    assert split(weights, "comparison") == {"x": Fraction(2, 3), "y": Fraction(1, 3), "z": Fraction(1, 3)}
    assert split(weights, "voter") == {"x": Fraction(1, 2), "y": Fraction(1, 4), "z": Fraction(1, 4)}
    for unit in UNITS:
        assert combined_loss(list(split(weights, unit).values()), unit) == 1
        assert split({"x": Fraction(7)}, unit) == {"x": 1}


def test_delta_and_rho_add_up_where_epsilon_does():
    request = BoardRequest.of(1, "voter", "wins", 3, delta="1e-6")
    votes = Comparisons.of(table([(*row, "one") for row in ROWS]), items=ITEMS)
    promised = CountedBoards.of(request, votes, "category", ["x", "y", "z"]).guarantee
    assert (promised.epsilon, promised.delta) == (1, Fraction(1, 10**6))
    assert promised.protects == "one voter"
    single = CountedBoards.of(request, votes, "category", ["x", "y", "z"]).parts["x"].guarantee
    assert promised.rho == pytest.approx(3 * single.rho)


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_an_audit_of_whole_releases_tells_right_from_wrong_shares(full, request, monkeypatch):
    """A voter who reverses all comparisons in every category; the mutant gives every board the whole epsilon."""
    if full:
        monkeypatch.setattr(categories, "combined_loss", lambda losses, unit: max(losses))
    monkeypatch.setattr("rankdp.publish.board_estimators.COUNT", 2)
    monkeypatch.setattr(CountedVotes, "_board", lambda self, public, drawn: drawn.scores)  # their order is no news
    monkeypatch.setattr(CountedBoards, "_warned", lambda self, board: board)
    bits, names = seeded(request), string.ascii_lowercase[:12]

    def sampler(winner, draws):
        found = counted([(name, "a", "b", winner, "one") for name in names] * 2, "voter", names)
        wins = [np.sum(list(found.draw(bits).value.boards.values()), axis=0) for _ in range(draws)]
        return np.array([[a - b] for a, b, _ in wins])

    found = audit_samples(sampler, [("left", "right")], draws=600, claimed_epsilon=1, name="by category")
    assert found.holds is not full, found.explain()


def test_a_board_is_that_of_its_rows():
    rows = [*ROWS, *ROWS[:4], ("", "a", "b", "left"), ("w", "b", "a", "left"), (None, "b", "a", "left")]
    parts = counted(rows, "comparison", on_problem="drop").parts
    for name, part in parts.items():
        own = Comparisons.of(table([row for row in rows if row[0] == name]), items=ITEMS)
        assert part.votes.half_wins.tolist() == own.count().half_wins.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [False, True])
def test_engines_count_categories_alike(bounded):
    rows = [(*row, voter) for row in ROWS for voter in "uv"]
    for name in "xyz":
        both = [
            Comparisons.of(put(table(rows)), items=ITEMS).within("category", name)
            for put in (lambda here: here, duckdb.connect().from_arrow)
        ]
        counts = [(votes.bound(3) if bounded else votes).count().half_wins for votes in both]
        assert counts[0].sum() == (4 * 6 * (3 * STEPS // 6) if bounded else 24)
        assert counts[0].tolist() == counts[1].tolist()
        assert both[0].diagnostics().dropped == both[1].diagnostics().dropped == {"another category": 24}
        assert both[0].categories("category") == both[1].categories("category") == set("xyz")


def test_one_charge_for_all_boards(tmp_path):
    ledger = rankdp.Ledger.create(tmp_path / "ledger", "votes", "one comparison", 3)
    release = rankdp.rank_by(
        table(ROWS),
        2,
        by="category",
        categories=["x", "y"],
        on_problem="drop",
        protect="comparison",
        items=ITEMS,
        ledger=ledger,
    )
    assert list(release.value.boards) == ["x", "y"]
    assert release.value.epsilons == {"x": 1, "y": 1}
    (entry,) = ledger.history()
    assert (entry.state, entry.what, entry.spent) == ("committed", "rank by bradley-terry, 2 categories", (2,))
    assert release.guarantee.epsilon == 2
    assert [row["category"] for row in release.value.rows()] == ["x"] * 3 + ["y"] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "categories must list the public categories, or categories_from_data=True .* got neither"),
        ({"categories": ["x"], "categories_from_data": True}, "got both"),
        ({"categories": []}, "at least one category"),
        ({"categories": ["x", "y"]}, "in the column 'category' 'z' is not one of the 2 categories given"),
        ({"categories": {"x": 0, "y": 1, "z": 1}}, "the weight of the category 'x' must be"),
        ({"categories": ["x"], "by": "winner"}, "by is 'winner', which is used for something else"),
        ({"categories": ["x"], "by": "nothing"}, "by is 'nothing', but the columns are"),
    ],
)
def test_refusals(options, words):
    options = {"by": "category"} | options
    with pytest.raises(InputError, match=words):
        rankdp.rank_by(table(ROWS), 1, protect="comparison", items=ITEMS, **options)


def test_blank_categories_are_refused():
    with pytest.raises(InputError, match="in the column 'category' a cell is blank"):
        rankdp.rank_by(
            table([*ROWS, (None, "a", "b", "left")]),
            1,
            by="category",
            categories=list("xyz"),
            protect="outcome",
            items=ITEMS,
        )


@pytest.mark.slow
def test_the_command_line_writes_one_page(tmp_path):
    votes, page, facts = tmp_path / "votes.csv", tmp_path / "boards.html", tmp_path / "boards.json"
    lines = [",".join(row) for row in ROWS * 20]
    votes.write_text("\n".join(["category,left,right,winner", *lines]) + "\n")
    common = ["rank", str(votes), "--epsilon", "3", "--protect", "comparison", "--items-from-data", "--rehearse", "1"]
    asked = [
        "--by",
        "category",
        "--category",
        "x=2",
        "--category",
        "y",
        "--category",
        "z",
        "-o",
        str(page),
        "-o",
        str(facts),
    ]
    done = CliRunner().invoke(cli, [*common, *asked])
    assert done.exit_code == 0, done.output
    assert "Epsilon of each board: x 2, y 1, z 1." in " ".join(done.output.split())
    text = page.read_text()
    assert [text.count(f"<h2>{name}</h2>") for name in "xyz"] == [1, 1, 1]
    assert text.count("<svg") == 3 * (1 + 3)  # an axis and three items on each board
    assert "'category' is the category" in done.output
    assert "ignored" not in done.output
    assert "was taken from the votes" not in text  # a rehearsal promises nothing, so nothing is left out of it
    assert text.count("REHEARSAL") > 0
    told = json.loads(facts.read_text())
    assert {name: board["epsilon"] for name, board in told["boards"].items()} == {"x": "2", "y": "1", "z": "1"}
    alone = CliRunner().invoke(cli, [*common, "--category", "x"])
    assert alone.exit_code == 2
    assert "need --by" in alone.output
    unlisted = CliRunner().invoke(cli, [*common, "--by", "category"])
    assert "--category must list the public categories, or --categories-from-data" in str(unlisted.exception)


def test_rehearsals_repeat():
    options = {"by": "category", "categories_from_data": True, "protect": "voter", "max_per_voter": 2, "items": ITEMS}
    rows = table([(*row, "one") for row in ROWS])
    one, other = (rankdp.rank_by(rows, 1, bits=SeededBits(5), **options).value.rows() for _ in range(2))
    assert one == other
    assert len(one) == 9


@pytest.mark.parametrize(("protect", "words"), [("outcome", "is public, as who was"), ("comparison", "was taken from")])
def test_what_is_not_protected_is_said(protect, words):
    release = rankdp.rank_by(table(ROWS), 1, by="category", categories_from_data=True, protect=protect, items=ITEMS)
    report = boards_report(release)
    assert any(words in said for said in report.limits)
    assert report.html().count(next(said for said in report.limits if words in said)) == 1  # for all boards
    assert not any(words in said for one in (report, *report.parts) for said in one.warnings)
    assert "Epsilon of each board: " + ("1." if protect == "outcome" else "0.5.") in report.computed[-1]
