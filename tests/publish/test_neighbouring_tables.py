"""Every neighbour of every small table: what is public is the same, the secret moves no further than the noise is for.

`rank` is stopped where it would draw the first noise, so that nothing of it is left out: reading, dropping, bounding
and counting are what the library does with a user's table.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.publish import board_estimators
from rankdp.publish import rank as module

pytestmark = pytest.mark.slow

ITEMS = ("a", "b", "c")
PAIRS = (("a", "b"), ("b", "c"), ("a", "c"))
OUTCOMES = ("model_a", "model_b", "tie")
DROPPED = (("a", "a", "model_a"), ("a", "z", "tie"), ("b", None, "model_a"), ("a", "b", ""))
VALID = [(*pair, outcome) for pair in PAIRS for outcome in OUTCOMES]
BAD = [(*pair, "both_bad") for pair in PAIRS]


@dataclass(frozen=True)
class Seen:
    """What stands before the noise: the half-wins, how many comparisons, what is public, and what the noise is for."""

    half_wins: tuple[int, ...]
    total: int
    comparisons: int | None
    design: tuple[tuple[int, ...], ...] | None
    protection: Protection
    warnings: tuple[str, ...]


class Stop(Exception):
    pass


@pytest.fixture
def look(monkeypatch):
    """What `rank` sees of a table, or the sentence of its refusal."""

    def stopped(half_wins, public, noisy, bits):
        design = public.design
        paired = None if design is None else tuple(map(tuple, (design.first, design.second, design.halves)))
        warnings = () if design is None else tuple(board_estimators.design_warnings(public))
        total = int(half_wins.sum()) // 2
        seen = Seen(tuple(half_wins.tolist()), total, public.comparisons, paired, noisy.protection, warnings)
        raise Stop(seen)

    monkeypatch.setattr(board_estimators, "by_own_wins", stopped)

    def look(rows, bound=None, weighted=False, **options):
        names = ("voter", "model_a", "model_b", "winner")
        cells = {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)}
        if weighted:
            cells["weight"] = pa.array([row[4] for row in rows], pa.int64())
        reading = {name: options.pop(name) for name in ("on_problem", "both_bad") if name in options}
        votes = Comparisons.of(pa.table(cells), items=ITEMS, **reading)
        try:
            module.rank(votes if bound is None else votes.bound(bound), 1, method="wins", **options)
        except Stop as stop:
            return stop.args[0]
        except InputError as refusal:
            return str(refusal)
        raise AssertionError("rank did not stop")

    return look


def rows_of(contents, voters="xy"):
    return [(voter, *content) for voter in voters for content in contents]


def tables(rows, size=2):
    return list(itertools.combinations_with_replacement(rows, size))


def check(one, other):
    """Two neighbours that are both accepted."""
    assert one.comparisons == other.comparisons  # the number, where it is used as public
    assert one.design == other.design
    assert one.warnings == other.warnings
    if one.comparisons is None:
        assert abs(one.total - other.total) <= one.protection.moved * one.protection.steps
    change = np.subtract(one.half_wins, other.half_wins) / one.protection.steps
    assert np.abs(change).sum() <= NoisyWins(one.protection, 1).l1
    assert np.square(change).sum() <= NoisyWins(one.protection, 1).l2_squared


def check_all(seen, neighbours):
    """All pairs of neighbours: accepted both or refused both, and close."""
    compared = 0
    for one, other in neighbours:
        left, right = seen[tuple(sorted(one, key=str))], seen[tuple(sorted(other, key=str))]
        assert isinstance(left, Seen) == isinstance(right, Seen), (one, other, left, right)
        if isinstance(left, Seen):
            check(left, right)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("contents", "options"),
    [
        ([*VALID, *BAD], {}),
        ([*VALID, *BAD, *DROPPED], {"both_bad": "drop", "on_problem": "drop"}),
    ],
)
def test_one_comparison(look, contents, options):
    """One row replaced by any other, of this voter or of another, counted or not."""
    rows = sorted(rows_of(contents), key=str)
    seen = {table: look(table, protect="comparison", **options) for table in tables(rows)}
    check_all(seen, (((rest, one), (rest, other)) for rest in rows for one, other in itertools.combinations(rows, 2)))


@pytest.mark.parametrize("on_problem", ["refuse", "drop"])
def test_one_outcome(look, on_problem):
    """One outcome changed, in tables with and without rows that the design alone leaves out."""
    said = [*VALID, *BAD, *(DROPPED[:3] if on_problem == "drop" else ())]
    rows = sorted(rows_of(said, "x"), key=str)
    others = sorted({*rows, *((*row[:3], outcome) for row in rows for outcome in (*OUTCOMES, "both_bad"))}, key=str)
    seen = {table: look(table, protect="outcome", on_problem=on_problem) for table in tables(others)}
    flips = [(one, other) for one, other in itertools.combinations(others, 2) if one[:3] == other[:3]]
    check_all(seen, (((rest, one), (rest, other)) for rest in others for one, other in flips))


def test_a_missing_outcome_is_never_dropped_where_outcomes_are_protected(look):
    rows = [("x", "a", "b", "model_a"), ("x", "b", "c", "")]
    assert "would make public which outcomes are missing" in look(rows, protect="outcome", on_problem="drop")
    assert isinstance(look(rows, protect="comparison", on_problem="drop"), Seen)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("bound", [None, 1])
def test_one_voter(look, most, bound):
    """All rows of one voter replaced by any others, more than may count or none, beside another voter's."""
    contents = [VALID[0], VALID[4], VALID[8], BAD[0], DROPPED[0]]
    rows = rows_of(contents, "x")
    others = [(), (("y", *VALID[1]), ("y", *VALID[5]), ("y", *VALID[0]))]
    options = {"protect": "voter", "max_per_voter": most, "on_problem": "drop", "both_bad": "drop", "bound": bound}
    mine = [said for size in range(4) for said in itertools.combinations_with_replacement(rows, size)]
    for other in others:
        seen = [look((*said, *other), **options) for said in mine]
        for one, two in itertools.combinations(seen, 2):
            check(one, two)


def test_weights_are_so_many_comparisons(look):
    """One of the three comparisons that a row of weight 3 stands for is replaced; a voter's are bounded as three."""
    for new in VALID:
        before = [("x", *VALID[0], 3), ("y", *VALID[4], 2)]
        after = [("x", *VALID[0], 2), ("x", *new, 1), ("y", *VALID[4], 2)]
        check(*(look(rows, weighted=True, protect="comparison") for rows in (before, after)))
    for weight in range(6):
        rows = [("x", *VALID[0], weight), ("y", *VALID[4], 2)]
        seen = look(rows, weighted=True, protect="voter", max_per_voter=2)
        assert seen.total == 2 * STEPS + weight * min(STEPS, 2 * STEPS // max(weight, 1))


@pytest.mark.parametrize("protect", ["comparison", "outcome"])
def test_bounded_tables_are_refused_whatever_they_hold(look, protect):
    """They have neighbours that are too far apart, in their design and in their half-wins."""
    rows = rows_of(VALID, "xy")
    refusals = {look(table, bound=1, protect=protect) for table in tables(rows)}
    assert len(refusals) == 1
    assert "votes are bounded to 1 per voter" in refusals.pop()
