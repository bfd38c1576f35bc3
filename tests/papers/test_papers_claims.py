"""Verdicts: each check says holds, does not hold and undecided where it should, and shows the number that decides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rankdp.errors import InputError
from rankdp_papers.specification import Claim
from rankdp_papers.verdicts import judge, select

pytestmark = pytest.mark.slow


def claim(check: str, select: dict | None = None, **options: object) -> Claim:
    return Claim("A claim", "paper", check, "Figure 1", select=select or {}, options=options)


def rows(values: dict[str, list[float]], error: float = 0.0, x: str = "n") -> list[dict]:
    return [
        {x: place + 1, "method": method, "value": value, "error": error}
        for method, line in values.items()
        for place, value in enumerate(line)
    ]


ABOVE = {"column": "method", "first": "ours", "second": "theirs"}


@pytest.mark.parametrize(
    ("ours", "error", "answer", "number"),
    [
        ([0.9, 0.8], 0.01, "holds", 0.1),
        ([0.9, 0.6], 0.01, "does not hold", -0.1),
        ([0.9, 0.6], 0.2, "undecided", -0.1),  # the one that points the wrong way is within its error
        ([0.9, 0.71], 0.01, "undecided", 0.01),  # the worst place has no support of its own, however clear the mean
        ([0.7, 0.7], 0.0, "undecided", 0.0),  # equal is not above
    ],
)
def test_above(ours: list[float], error: float, answer: str, number: float):
    verdict = judge(claim("above", **ABOVE), rows({"ours": ours, "theirs": [0.7, 0.7]}, error))
    assert verdict.answer == answer
    assert verdict.number == pytest.approx(number)
    assert verdict.error == pytest.approx(error * math.sqrt(2))
    assert "difference" in verdict.explain()


@pytest.mark.parametrize(("ours", "answer"), [(0.7 - 1e-16, "holds"), (0.7 - 1e-9, "does not hold")])
def test_exact_numbers_that_rounding_separates_are_equal(ours: float, answer: str):
    table = rows({"ours": [0.9, ours], "theirs": [0.7, 0.7]})
    verdict = judge(claim("not below", **ABOVE), table)
    assert verdict.answer == answer
    assert verdict.explain().startswith("smallest difference " + ("0 " if answer == "holds" else "-1e-09 "))
    assert judge(claim("not below", **ABOVE), rows({"ours": [0.7], "theirs": [0.7]}, 0.1)).answer == "undecided"


def test_above_takes_a_margin_and_says_where():
    table = rows({"ours": [0.9, 0.8], "theirs": [0.7, 0.7]}, 0.001)
    verdict = judge(claim("above", **ABOVE, margin=0.15), table)
    assert (verdict.answer, verdict.place, verdict.mean) == ("does not hold", "n 2", pytest.approx(0.15))
    assert verdict.explain() == "smallest difference 0.1 ± 0.0014 at n 2 (mean 0.15)"


def test_one_wild_place_among_many_is_no_contradiction():
    """With 200 places of no difference, the largest is about 2.8 standard errors: an alarm at 2 would be false."""
    draw = np.random.default_rng(4)
    table = rows({"ours": list(1.0 + 0.1 * draw.normal(size=200)), "theirs": [0.95] * 200})
    for row in table:
        row["error"] = 0.1 if row["method"] == "ours" else 0.0
    assert judge(claim("above", **ABOVE), table).answer == "undecided"


@pytest.mark.parametrize(
    ("ours", "theirs", "answer"),
    [([0.5, 1.0], [0.3, 1.0], "holds"), ([0.0, 0.0], [0.0, 0.0], "undecided"), ([0.5, 0.7], [0.3, 0.7], "undecided")],
)
def test_saturated_places_neither_support_nor_contradict(ours: list[float], theirs: list[float], answer: str):
    verdict = judge(claim("above", **ABOVE), rows({"ours": ours, "theirs": theirs}, 0.01))
    assert verdict.answer == answer


def test_a_trend_needs_support_on_its_worst_line():
    table = rows({"clear": [3.0, 2.0, 1.0], "flat": [3.0, 2.99, 2.99]}, 0.01)
    verdict = judge(claim("trend", along="n", direction="down"), table)
    assert (verdict.answer, verdict.place) == ("undecided", "flat")
    stuck = rows({"clear": [3.0, 2.0, 1.0], "stuck": [0.0, 0.0, 0.0]}, 0.01)
    assert judge(claim("trend", along="n", direction="down"), stuck).answer == "holds"


@pytest.mark.parametrize(
    ("line", "error", "answer"),
    [
        ([3.0, 2.0, 1.0], 0.0, "holds"),
        ([3.0, 2.0, 2.5], 0.01, "does not hold"),
        ([3.0, 2.0, 2.02], 0.01, "holds"),  # a step back within its error
        ([3.0, 2.99, 2.98], 0.1, "undecided"),
        ([3.0, 1.0, 1.03, 1.06, 1.09], 0.01, "does not hold"),  # each step back is within its error, all together not
    ],
)
def test_trend(line: list[float], error: float, answer: str):
    table = rows({"a": line}, error)
    assert judge(claim("trend", along="n", direction="down"), table).answer == answer
    opposite = [{**row, "value": -row["value"]} for row in table]
    assert judge(claim("trend", along="n", direction="up"), opposite).answer == answer


def test_trend_names_the_worst_reversal():
    verdict = judge(claim("trend", along="n", direction="down"), rows({"a": [3.0, 2.0, 1.0], "b": [3.0, 1.0, 2.0]}))
    assert (verdict.number, verdict.place) == (1.0, "b, n 2 to 3")


@pytest.mark.parametrize(
    ("value", "error", "answer"),
    [
        (1.004, 0.001, "holds"),
        (1.008, 0.0011, "undecided"),  # inside the tolerance, by less than two standard errors
        (1.1, 0.001, "does not hold"),
        (1.1, 0.046, "undecided"),
        (1.1, 0.044, "does not hold"),
        (1.0, 0.006, "undecided"),  # cannot be inside by two standard errors
    ],
)
def test_equals(value: float, error: float, answer: str):
    table = [{"aim": 1.0, "value": value, "error": error}]
    for target in (1.0, "aim"):
        assert judge(claim("equals", target=target, tolerance=0.01), table).answer == answer
    assert judge(claim("equals", target="aim", relative=0.01), table).answer == answer


@pytest.mark.parametrize(
    ("value", "error", "answer"),
    [
        (0.5, 0.0, "holds"),
        (0.4, 0.05, "holds"),
        (0.4, 0.051, "undecided"),  # inside, by less than two standard errors
        (0.51, 0.1, "undecided"),
        (0.6, 0.051, "undecided"),  # outside, by less than two
        (0.6, 0.049, "does not hold"),
    ],
)
def test_bounds(value: float, error: float, answer: str):
    assert judge(claim("at most", bound=0.5), [{"value": value, "error": error}]).answer == answer
    assert judge(claim("at least", bound=-0.5), [{"value": -value, "error": error}]).answer == answer


def test_slope():
    table = [{"x": x, "value": 3 / x**2, "error": 0.001 / x**2} for x in (1.0, 2.0, 5.0, 9.0)]
    verdict = judge(claim("slope", along="x", target=-2, tolerance=0.01), table)
    assert (verdict.answer, round(verdict.number, 9)) == ("holds", -2)
    assert 0 < verdict.error < 0.001
    assert judge(claim("slope", along="x", target=-1, tolerance=0.1), table).answer == "does not hold"
    assert judge(claim("slope", along="x", target=-2, tolerance=1e-6), table).answer == "undecided"


@pytest.mark.parametrize(("slope", "answer"), [(-1.0, "holds"), (-1.14, "undecided"), (-1.3, "does not hold")])
def test_a_slope_near_the_edge_of_its_tolerance_is_undecided(slope: float, answer: str):
    table = [{"x": x, "value": x**slope, "error": 0.03 * x**slope} for x in (1.0, 2.0, 4.0)]
    assert judge(claim("slope", along="x", target=-1, tolerance=0.15), table).answer == answer


def test_the_limit_for_several_places_is_wider_than_for_one():
    """2.1 standard errors outside: a contradiction at one place, not at one of ten."""
    one = [{"n": 0, "value": 1.21, "error": 0.1}]
    others = [{"n": n, "value": 0.5, "error": 0.1} for n in range(1, 10)]
    assert judge(claim("at most", bound=1.0), one).answer == "does not hold"
    assert judge(claim("at most", bound=1.0), [*one, *others]).answer == "undecided"


def test_slope_error_is_that_of_repeated_tables():
    draw, x = np.random.default_rng(5), np.array([1.0, 2.0, 4.0, 8.0])
    found = []
    for _ in range(2000):
        noisy = 1 / x * (1 + 0.02 * draw.normal(size=4))
        table = [{"x": a, "value": b, "error": 0.02 / a} for a, b in zip(x, noisy, strict=True)]
        verdict = judge(claim("slope", along="x", target=-1, tolerance=0.1), table)
        found.append(verdict.number)
    assert np.std(found) == pytest.approx(verdict.error, rel=0.06)


@pytest.mark.parametrize(
    ("second", "answer"), [([3.0, 2.0], "holds"), ([2.0, 3.0], "undecided"), ([2.9, 2.99], "undecided")]
)
def test_readings_that_disagree_leave_a_claim_undecided(second: list[float], answer: str):
    one = claim("trend", along="n", direction="down")
    both = replace(one, readings=[{"method": "a"}, {"method": "b"}])
    verdict = judge(both, rows({"a": [3.0, 1.0], "b": second}, 0.001))
    assert verdict.answer == answer
    if answer == "undecided":
        assert verdict.explain().startswith("holds in 1 of 2 readings; otherwise worst reversal")
    assert judge(both, rows({"a": [1.0, 3.0], "b": [1.0, 2.0]}, 0.001)).answer == "does not hold"


def test_selection():
    table = rows({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert [row["value"] for row in select(table, {"method": "b", "n": "largest"})] == [4.0]
    assert [row["value"] for row in select(table, {"method": ["a", "b"], "n": "smallest"})] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (claim("guess"), "check must be one of"),
        (claim("above", **{**ABOVE, "first": "nobody"}), "no rows have both sides"),
        (claim("above", **ABOVE, selection=3), "unexpected keyword argument"),
        (claim("trend", along="n", direction="sideways"), "direction must be one of up, down"),
        (claim("trend", along="m", direction="up"), "no column 'm'"),
        (claim("at most", {"method": "nobody"}, bound=1), "selects no rows"),
        (claim("at most", {"colour": "red"}, bound=1), "no column 'colour'"),
    ],
)
def test_refusals(wrong: Claim, words: str):
    with pytest.raises(InputError, match=words):
        judge(wrong, rows({"ours": [1.0, 2.0], "theirs": [1.0, 2.0]}))
