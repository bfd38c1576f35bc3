"""One raw row changes what is counted by no more than what the release is charged for; from the rows of a file on.

Every format and engine reads two tables that differ in the rows of one person (or in one ballot, or in one row). What
is counted of the two must be as close as the mechanisms suppose, and where a table is refused, the refusal names a row
that is refused alone too. `RANKDP_CASES` sets how many tables each test draws, and makes them new ones each time.
"""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_rows import ENGINES, FILES, FRAMES, NAMES, VOTERS, arrow, comments, padded, place

from rankdp.data.ballots import SHARES, Ballots
from rankdp.data.cleaning import Cleaning
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.data.formats import csv as guarded
from rankdp.data.rankings import Rankings
from rankdp.data.score_files import read_scores, scores_of_frame
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.permutohedron import dilation_of
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyDegrees,
    NoisyDifferences,
    NoisyLeads,
    NoisyResiduals,
    NoisyTable,
    NoisyWins,
)
from rankdp.mechanisms.votes.protection import Protection
from rankdp.publish.voter_bound import NoisyVoters
from rankdp.rankers.runoff import METHODS, Piles, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CASES = int(os.environ.get("RANKDP_CASES", "20"))
EXPLORES = "RANKDP_CASES" in os.environ
draws = settings(max_examples=CASES, derandomize=not EXPLORES, suppress_health_check=list(HealthCheck))
few_draws = settings(draws, max_examples=max(4, CASES // 10))
TABLES = FILES | FRAMES
MECHANISMS = (NoisyWins, NoisyDifferences, NoisyDegrees, NoisyLeads, NoisyTable)
VOTES = ("voter", "left", "right", "winner", "weight", "comment")


def written(write, header, rows, use):
    """What ``use`` makes of the rows once they are written, or the refusal."""
    with TemporaryDirectory() as folder:
        source, options = write(Path(folder), header, rows)
        try:
            return use(source, **options)
        except InputError as refusal:
            return refusal


def check_refusal(name, write, header, rows, use, refusal):
    """A refusal must lie in one row alone, and files and frames must say in which."""
    alone = [number for number, row in enumerate(rows) if isinstance(written(write, header, [row], use), InputError)]
    assert alone, f"no row is refused alone, but all together: {refusal}"
    if name in TABLES:
        assert any(f"{place(name, rows, number)}:" in str(refusal) for number in alone), str(refusal)


def both(name, write, header, before, after, use):
    """What two tables give; None if one is refused, by a row of its own."""
    results = []
    for rows in (before, after):
        result = written(write, header, rows, use)
        if isinstance(result, InputError):
            check_refusal(name, write, header, rows, use, result)
            return None
        results.append(result)
    return results


def near(one, other, l1=None, l2_squared=None):
    """Two vectors are as close as that."""
    moved = [abs(a - b) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert l1 is None or sum(moved) <= l1
    assert l2_squared is None or sum(step * step for step in moved) <= l2_squared


# -- comparisons -------------------------------------------------------------------------------------------------


@st.composite
def votes(draw, items, voter, sound=False):
    """One row of votes; some break a rule unless they are to be sound."""
    left, right = draw(st.permutations(items))[:2]
    cells = [voter, left, right, draw(st.sampled_from(["left", "right", "tie"])), draw(st.sampled_from("1123"))]
    if not sound and draw(st.integers(0, 3)) == 0:
        at, cell = draw(
            st.sampled_from([(1, "nobody"), (1, right), (3, ""), (3, "both"), (4, "x"), (4, "-1"), (0, " ")])
        )
        cells[at] = cell
    return (*(draw(padded(cell)) for cell in cells), draw(comments()))


@st.composite
def neighbouring_votes(draw):
    """Items, and two tables that differ in what one voter says; one row more or less, or all of them."""
    items = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
    person, *others = draw(st.permutations(VOTERS))[:4]
    table = [draw(votes(items, draw(st.sampled_from(others)), sound=True)) for _ in range(draw(st.integers(1, 6)))]
    own = [[draw(votes(items, person)) for _ in range(draw(st.integers(0, 5)))] for _ in range(2)]
    tables = []
    for rows in own:
        mixed = list(table)
        for row in rows:
            mixed.insert(draw(st.integers(0, len(mixed))), row)
        tables.append(mixed)
    return items, *tables


def mechanisms(items):
    """All noisy counts; residuals at strengths of which two are equal."""
    return (*MECHANISMS, partial(NoisyResiduals, np.append(np.linspace(1, -1, len(items) - 1), 1.0)))


def check_voters(name, write, case, bound, drop):
    items, before, after = case

    def open_votes(source, **options):
        options |= {"items": items, "on_problem": "drop" if drop else "refuse"}
        return Comparisons.of(source, **options).bound(bound)

    def use(source, **options):
        opened = open_votes(source, **options)
        return opened.count(), opened.load_counts()

    results = both(name, write, VOTES, before, after, use)
    if results is None:
        return
    unit = Protection.of("voter", bound)
    (one, loads), (other, loads_too) = results
    for mechanism in mechanisms(items):
        of = mechanism(unit, 1)
        near(of.counted(one), of.counted(other), of.l1 * STEPS, of.l2_squared * STEPS**2)
    near(loads, loads_too, NoisyVoters(unit, 1).l1)


@pytest.mark.parametrize("name", [*TABLES, *ENGINES])
def test_a_voter_moves_the_counts_as_far_as_is_charged(name):
    @(draws if name in ("csv", "arrow") else few_draws)  # every format ends as the same columns of text
    @given(case=neighbouring_votes(), bound=st.integers(1, 3), drop=st.booleans())
    def check(case, bound, drop):
        check_voters(name, (TABLES | ENGINES)[name], case, bound, drop)

    check()


@pytest.mark.xdist_group("spark")
def test_a_voter_moves_the_counts_on_spark_as_far_as_is_charged(spark):
    def write(_, header, rows):
        return spark.createDataFrame([tuple(row) for row in rows], list(header)), {}

    @few_draws
    @given(case=neighbouring_votes(), bound=st.integers(1, 3))
    def check(case, bound):
        check_voters("spark", write, case, bound, drop=True)

    check()


@pytest.mark.parametrize("name", [*TABLES, *ENGINES])
def test_one_row_moves_the_counts_as_far_as_is_charged(name):
    @(few_draws if name in ENGINES else draws)
    @given(data=st.data())
    def check(data):
        items = data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
        header = ("left", "right", "winner", "comment")

        def row(sound):
            _, left, right, winner, _, comment = data.draw(votes(items, "v", sound=sound))
            return left, right, winner, comment

        rows = [row(sound=True) for _ in range(data.draw(st.integers(2, 6)))]
        at = data.draw(st.integers(0, len(rows) - 1))
        changed = [*rows[:at], row(sound=False), *rows[at + 1 :]]

        def use(source, **options):
            return Comparisons.of(source, items=items, on_problem="drop", **options).count()

        results = both(name, (TABLES | ENGINES)[name], header, rows, changed, use)
        if results is not None:
            for mechanism in mechanisms(items):
                of = mechanism(Protection.of("comparison", None), 1)
                near(*map(of.counted, results), of.l1, of.l2_squared)

    check()


# -- ballots -----------------------------------------------------------------------------------------------------


@st.composite
def ballot_rows(draw, items, sound=False):
    """One ballot of a wide table: some of the items, best first; some break a rule unless they are to be sound."""
    listed = draw(st.permutations(items))[: draw(st.integers(1, len(items)))]
    if not sound and draw(st.integers(0, 3)) == 0:
        words = [["nobody"], [listed[0]] * 2, ["", listed[0]], ["overvote", listed[0]], [listed[0], "skipped"], []]
        listed = draw(st.sampled_from(words))[: len(items)]
    cells = [draw(padded(cell)) for cell in listed] + [draw(st.sampled_from(["", " "])) for _ in items[len(listed) :]]
    return (*cells, draw(comments()))


def check_ballots(results, unit):
    before, after = results
    protection, m = BallotProtection(unit), len(before.items)
    assert abs(before.count - after.count) <= (unit == "voter")
    for k in range(1, m + 1):
        moved = protection.votes(k, m)
        near(before.first_k(k), after.first_k(k), moved * SHARES, moved * SHARES**2)
    scores = before.centred_borda() - after.centred_borda()
    assert (scores**2).sum() <= protection.borda_l2_squared(m)
    # inside of `moved` times the permutohedron: every k scores add up to at most moved * k (m - k)
    largest = np.cumsum(np.sort(scores)[::-1])[:-1]
    assert (largest <= protection.moved * np.arange(1, m) * np.arange(m - 1, 0, -1)).all()
    assert dilation_of(scores) <= protection.moved + 1
    pairs = np.triu_indices(m, 1)
    margins = before.margins() - after.margins()
    cycles = m * margins[pairs] - (scores[pairs[0]] - scores[pairs[1]])
    near(cycles, 0 * cycles, protection.cyclic_l1(m), protection.cyclic_l2_squared(m))
    for seed, method in enumerate((None, *METHODS)):
        check_rounds(before, after, unit, method, seed)


def check_rounds(before, after, unit, method, seed, piles=Piles):
    """After the same stated tallies, a round of neighbours differs by one vote (voter) or two (ballot) at most."""
    m, units, draws = len(before.items), METHODS.get(method, SHARES), np.random.default_rng(seed)
    sides, rounds = [], []

    def stated(*asked):
        one, other = (side.count(*asked) for side in sides)
        near(one, other, BallotProtection(unit).moved * units)
        rounds.append(one)
        return one + draws.integers(-2 * units, 2 * units, m + 1)

    cast = before.count if unit == "ballot" else None
    for seats in (1,) if method is None else range(1, m):
        sides[:], rounds[:] = [piles(ballots, units) for ballots in (before, after)], []
        run(m, stated, seats=seats, method=method, cast=cast)
        assert len(rounds) < m


class TrueTransfers(Piles):
    """A mutant: what lies above the quota of the true number of ballots goes on, and one ballot moves that for all."""

    def count(self, standing, transfers, held=None):
        quota, own = int(self._weights.sum()) // 3 + 1, {}
        for item in transfers:
            votes = int(self._weights[self._pile[item]].sum())
            own[item] = Fraction(max(votes - quota, 0), max(votes, 1))
        return super().count(standing, own, held)


def test_transfer_values_from_the_true_tallies_break_the_contract():
    rows = [["a", "c", "b"]] * 9 + [["b", "c", "a"]] * 2
    one, other = (Ballots.from_orders(more, items=list("abcd")) for more in (rows, [*rows, ["b", "d"]]))
    check_rounds(one, other, "voter", "gregory", 0)
    with pytest.raises(AssertionError):
        check_rounds(one, other, "voter", "gregory", 0, TrueTransfers)


def neighbouring_ballots(data, items, sound=False):
    """Two lists of ballots of which one ballot is replaced (ballot), or there in one of them only (voter)."""
    rows = [data.draw(ballot_rows(items, sound=True)) for _ in range(data.draw(st.integers(2, 5)))]
    at, new = data.draw(st.integers(0, len(rows) - 1)), data.draw(ballot_rows(items, sound=sound))
    unit = data.draw(st.sampled_from(["ballot", "voter"]))
    return unit, rows, [*rows[:at], new, *rows[at + (unit == "ballot") :]]


@pytest.mark.parametrize("name", [*TABLES, *ENGINES])
def test_one_ballot_moves_the_counts_as_far_as_is_charged(name):
    @(few_draws if name in ENGINES else draws)
    @given(data=st.data())
    def check(data):
        items = data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
        unit, before, after = neighbouring_ballots(data, items)
        header = (*(f"rank_{place + 1}" for place in range(len(items))), "comment")
        words = ("next", "two", "exhaust"), ("exhaust", "skip"), ("next", "exhaust"), ("together", "keep", "drop")
        rule = Cleaning(*(data.draw(st.sampled_from(word)) for word in words))

        def use(source, **options):
            return Ballots.of(source, items=items, cleaning=rule, **options)

        results = both(name, (TABLES | ENGINES)[name], header, before, after, use)
        if results is not None:
            check_ballots(results, unit)

    check()


@draws
@given(data=st.data())
def test_one_ballot_of_a_table_of_ranks_moves_the_counts_as_far_as_is_charged(data):
    items, cells = ["a", "b", "c", "d"], st.sampled_from(["", "1", "2", "3", "5", "skipped", "1st"])
    ballot = st.lists(cells, min_size=4, max_size=4).map(tuple)
    rows, new = data.draw(st.lists(ballot, min_size=2, max_size=5)), data.draw(ballot)
    unit, at = data.draw(st.sampled_from(["ballot", "voter"])), data.draw(st.integers(0, len(rows) - 1))
    rule = Cleaning(data.draw(st.sampled_from(["next", "two", "exhaust"])))
    after = [*rows[:at], *[new] * (unit == "ballot"), *rows[at + 1 :]]
    check_ballots(
        [Ballots.of(arrow(items, held), items=items, layout="ranks", cleaning=rule) for held in (rows, after)], unit
    )


def preflib(rows, items):
    lines = [f"# NUMBER ALTERNATIVES: {len(items)}", f"# NUMBER VOTERS: {len(rows)}"]
    lines += [f"# ALTERNATIVE NAME {number}: {name}" for number, name in enumerate(items, 1)]
    return "\n".join([*lines, *(f"1: {','.join(str(items.index(name) + 1) for name in row)}" for row in rows)]) + "\n"


def blt(rows, items):
    lines = [f"{len(items)} 1", *(" ".join(["1", *(str(items.index(name) + 1) for name in row), "0"]) for row in rows)]
    return "\n".join([*lines, "0", *(f'"{name}"' for name in items), '"Title"']) + "\n"


def dominion(rows, items):
    contest, ranks = "Mayor (Number of positions=1, Number of ranks=4)", range(1, 5)
    heads = [
        ["Election", "5.1"],
        ["", *[contest] * 4 * len(items)],
        ["", *(f"{name}({r})" for r in ranks for name in items)],
    ]
    heads.append(["CvrNumber", *[""] * 4 * len(items)])
    marks = [
        [str(number), *(str(int(len(row) >= r and row[r - 1] == name)) for r in ranks for name in items)]
        for number, row in enumerate(rows, 1)
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*heads, *marks])
    return text.getvalue()


def clear_ballot(rows, items):
    ranks = range(1, 5)
    heads = [f"Choice_{at}_1:Mayor:{r}:Vote For 1:{name}:" for r in ranks for at, name in enumerate(items)]
    marks = [[int(len(row) >= r and row[r - 1] == name) for r in ranks for name in items] for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["RowNumber", *heads], *([1, *row] for row in marks)])
    return text.getvalue()


def common_data(rows, items):
    def chosen(row):
        marks = [{"ContestSelectionId": f"s{items.index(name)}", "Rank": r} for r, name in enumerate(row, 1)]
        return [{**mark, "SelectionPosition": [{"HasIndication": "yes"}]} for mark in marks]

    held = [[{"CVRContest": [{"ContestId": "m", "CVRContestSelection": chosen(row)}]}] for row in rows]
    choices = [{"@id": f"s{at}", "Selection": name} for at, name in enumerate(items)]
    election = {"Contest": [{"@id": "m", "ContestSelection": choices}]}
    return json.dumps(
        {"@type": "CastVoteRecordReport", "CVR": [{"CVRSnapshot": one} for one in held], "Election": [election]}
    )


def hart(rows, items):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number, row in enumerate(rows):
            marks = "".join(
                f"<Option><Name>{name}</Name><Value>{'0' * rank}1{'0' * (3 - rank)}</Value></Option>"
                for rank, name in enumerate(row)
            )
            contest = f"<Contest><Name>Mayor</Name><Id>m</Id><Options>{marks}</Options></Contest>"
            archive.writestr(f"{number}.xml", f"<Cvr><Contests>{contest}</Contests></Cvr>")
    return held.getvalue()


@pytest.mark.parametrize(
    ("ending", "write"),
    [("soi", preflib), ("blt", blt), ("csv", dominion), ("csv", clear_ballot), ("json", common_data), ("zip", hart)],
)
@draws
@given(data=st.data())
def test_one_ballot_of_an_election_file_moves_the_counts_as_far_as_is_charged(tmp_path_factory, ending, write, data):
    items = ["plain", "it's", "#x", "🦊"]
    unit, *lists = neighbouring_ballots(data, items, sound=True)
    results = []
    for rows in lists:
        path = tmp_path_factory.mktemp("election") / f"ballots.{ending}"
        held = write([[cell.strip() for cell in row[:-1] if cell.strip()] for row in rows], items)
        path.write_bytes(held if isinstance(held, bytes) else held.encode())
        results.append(Ballots.read(path, items=items))
    check_ballots(results, unit)


# -- rankings and scores -----------------------------------------------------------------------------------------


def said_by(rankings):
    """The rankings one by one, with their voters."""
    return list(zip(map(str, rankings.voters), map(tuple, rankings), strict=True))


@pytest.mark.parametrize("name", TABLES)
@draws
@given(data=st.data())
def test_one_row_changes_one_ranking(name, data):
    items = data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
    header = ("voter", *(f"rank_{place + 1}" for place in range(len(items))), "comment")
    voters = data.draw(st.lists(st.sampled_from(VOTERS), min_size=2, max_size=5, unique=True))
    before = [(data.draw(padded(voter)), *data.draw(ballot_rows(items, sound=True))) for voter in voters]
    at = data.draw(st.integers(0, len(voters) - 1))
    after = [*before[:at], (before[at][0], *data.draw(ballot_rows(items))), *before[at + 1 :]]

    def use(source, **options):
        return said_by(
            Rankings.of(source, items=items, **options) if name in FRAMES else Rankings.read(source, items=items)
        )

    results = both(name, TABLES[name], header, before, after, use)
    if results is not None:
        one, other = results
        assert [voter for voter, _ in one] == voters
        assert [row for number, row in enumerate(one) if number != at] == [
            row for number, row in enumerate(other) if number != at
        ]


@pytest.mark.parametrize("name", ["csv", "tsv", "parquet"])
@draws
@given(data=st.data())
def test_one_voters_rows_of_a_long_table_change_one_ranking(name, data):
    items = data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=4, unique=True))
    voters = data.draw(st.lists(st.sampled_from(VOTERS), min_size=2, max_size=4, unique=True))
    orders = {voter: data.draw(st.permutations(items)) for voter in voters}
    person = data.draw(st.sampled_from(voters))

    def rows(said):
        long = [(voter, item, str(rank), "") for voter in said for rank, item in enumerate(said[voter], 1)]
        return [(data.draw(padded(voter)), *rest) for voter, *rest in data.draw(st.permutations(long))]

    def use(source, **_):
        return dict(said_by(Rankings.read(source, items=items)))

    tables = rows(orders), rows(orders | {person: data.draw(st.permutations(items))})
    results = both(name, FILES[name], ("voter", "item", "rank", "comment"), *tables, use)
    assert results is not None
    one, other = results
    assert {voter: order for voter, order in one.items() if voter != person} == {
        voter: order for voter, order in other.items() if voter != person
    }


@pytest.mark.parametrize("name", TABLES)
@draws
@given(data=st.data())
def test_one_row_changes_one_score(name, data):
    items = data.draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    numbers = st.sampled_from(["0", "1", "0.1", "0.10", "1e-3", "9007199254740993", "-7"])
    before = [(data.draw(padded(item)), data.draw(padded(data.draw(numbers))), data.draw(comments())) for item in items]
    at = data.draw(st.integers(0, len(items) - 1))
    new = (items[at], data.draw(st.one_of(numbers, st.sampled_from(["", "x", "nan"]))), data.draw(comments()))

    def use(source, **_):
        table = scores_of_frame(source) if name in FRAMES else read_scores(source)
        return list(zip(table.names, table.scores.tolist(), strict=True))

    results = both(
        name, TABLES[name], ("item", "score", "comment"), before, [*before[:at], new, *before[at + 1 :]], use
    )
    if results is not None:
        one, other = results
        assert [item for item, _ in one] == items
        del one[at], other[at]
        assert one == other


# -- the contract itself -----------------------------------------------------------------------------------------


def test_a_reader_whose_quotes_depend_on_the_rows_breaks_the_contract(monkeypatch):
    """A mutant that guesses, as sniffers do: where two cells begin with an apostrophe, that is the quote."""
    checked = guarded.Guard._checked

    def guessing(self, data):
        data = checked(self, data)
        if data.count(b",'") + data.count(b"\n'") < 2:
            return data
        lines, inside, out = data.split(b"\n"), False, []
        for line in lines:
            out.append(b" ".join([out.pop(), line]) if inside else line)
            inside ^= line.count(b"'") % 2 == 1
        self.records -= len(lines) - len(out)
        return b"\n".join(out).replace(b"'", b"")

    items = ["a", "b"]
    header = ("left", "right", "winner", "comment")
    before = [("a", "b", "left", "'t is"), *[("b", "a", "left", "")] * 5]
    after = [*before[:-1], ("b", "a", "left", "'so")]

    def use(source, **options):
        return Comparisons.of(source, items=items, **options).count().half_wins

    one, other = both("csv", FILES["csv"], header, before, after, use)
    assert abs(one - other).sum() == 0
    monkeypatch.setattr(guarded.Guard, "_checked", guessing)
    results = [written(FILES["csv"], header, rows, use) for rows in (before, after)]
    refused = [isinstance(result, InputError) for result in results]
    assert any(refused) or abs(results[0] - results[1]).sum() > 4


@pytest.mark.parametrize("votes_of_eve", [2**31 - 1, 2**32, 2**32 + 1, 3_100_000_000, 60 * 10**9])
def test_a_voter_with_billions_of_votes_counts_for_no_more_than_the_bound(votes_of_eve):
    items = ["a", "b", "c", "d"]
    rows = [("ann", "a", "b", "1"), ("eve", "c", "d", "1")]
    while votes_of_eve:
        rows.append(("eve", "a", "b", str(part := min(votes_of_eve, 10**9))))
        votes_of_eve -= part
    table = arrow(("voter", "winner", "loser", "weight"), rows)
    without = table.slice(0, 1)
    for bound in (1, 256, 10**6, 2**40):
        one, other = (Comparisons.of(votes, items=items).bound(bound).count() for votes in (without, table))
        of = NoisyTable(Protection.of("voter", bound), 1)
        near(of.counted(one), of.counted(other), of.l1 * STEPS, of.l2_squared * STEPS**2)


def test_more_comparisons_than_can_be_counted_exactly_are_refused():
    rows = [("eve", "a", "b", str(10**9))] * 69
    votes = Comparisons.of(arrow(("voter", "winner", "loser", "weight"), rows), items=["a", "b"])
    assert votes.count().halves.sum() == 2 * 69 * 10**9
    with pytest.raises(InputError, match="at most 68,719,476,736 comparisons are counted, got 69,000,000,000"):
        votes.bound(1).count()
