"""What the paper says of populations and enumeration contradicts, and what epsilon bounds: exact numbers.

The population of ``camps``: 70% rank 1, 2, …, m; 30% rank 2, …, m, 1. So 70% put item 1 above item 2, by one place;
the others put it below, by m-1 places, and far pairs keep their order more often than near ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.estimators import pair_estimator
from rankdp.theory.mallows import preference_bounds
from rankdp.theory.permutations import all_permutations
from rankdp.types import Ints
from rankdp_papers.experiment import Cell, Row, exact_row, exact_rows
from rankdp_papers.xu.rivals import built, worst_ratio

MAJORITY = 0.7
_CLOSE_RACE = 0.501


def majority(cell: Cell) -> list[Row]:
    """Theorem 1(1) and (2) for a random and for a fixed ranking, and the unbiased estimate that repairs them."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = [exact_row("not private", "share", MAJORITY)]
    for method in ("kendall", "ulam", "reinsertion"):
        one = built(method, items, epsilon)
        lead = leads(one, camps(items))[0][1]
        repaired = {"share": _debiased(one), "largest variance": pair_estimator(one).largest_variance}
        rows += exact_rows({method: {"share": (1 + lead) / 2}, f"{method} + debiased": repaired})
        if method == "kendall":
            rows += _theorem_1(one, lead)
    return rows


def _debiased(one: RankingMechanism) -> float:
    """The mean of the unbiased estimate that item 1 is above item 2, over the population and all outputs."""
    outputs = all_permutations(one.items)
    places = np.argsort(outputs, axis=1)
    estimate = pair_estimator(one).values[places[:, 0], places[:, 1]]
    laws = (share * np.exp(one.log_prob(outputs, order)) for share, order in camps(one.items))
    return float(sum(laws) @ estimate)


def camps(items: int, majority: float = MAJORITY) -> tuple[tuple[float, Ints], tuple[float, Ints]]:
    """The two rankings, each with its share of the people."""
    order = np.arange(items, dtype=np.int32)
    return (majority, order), (1 - majority, np.roll(order, -1))


def leads(one: RankingMechanism, people: Iterable[tuple[float, Ints]]) -> list[tuple[float, float]]:
    """For each pair by how much more often the item with the smaller number is ahead, before and after the noise."""
    found = []
    for i, j in itertools.combinations(range(one.items), 2):
        raw = synthetic = 0.0
        for share, order in people:
            a, b = int(np.argsort(order)[i]), int(np.argsort(order)[j])
            ahead = share if a < b else -share
            raw += ahead
            synthetic += ahead * (2 * one.keep_probability(min(a, b), max(a, b)) - 1)
        found.append((raw, synthetic))
    return found


def _theorem_1(one: RankingMechanism, lead: float) -> list[Row]:
    """The ratio of leads that Theorem 1(2) bounds, in this population and for one fixed ranking.

    And R~(f*) - R~*, f* the order of the raw majorities, where (7) says 0, as R(f*) is R*: the leads of the pairs whose
    majority is turned, over m(m-1).
    """
    low, high = preference_bounds(one.items, float(one.epsilon))
    kept = [one.keep_probability(i, j) for i, j in itertools.combinations(range(one.items), 2)]
    close = leads(one, camps(one.items, _CLOSE_RACE))
    lost = sum(abs(after) for before, after in close if (before > 0) != (after > 0)) / math.perm(one.items, 2)
    rows = [
        exact_row("kendall", "least kept pair of a fixed ranking", min(kept)),
        exact_row("kendall", "synthetic excess risk of the best ranking", lost),
    ]
    ratios = {
        "ratio of leads": abs(lead) / (2 * MAJORITY - 1),
        "ratio of leads, close race": abs(close[0][1] / close[0][0]),
        "ratio of leads, fixed ranking, smallest": 2 * min(kept) - 1,
        "ratio of leads, fixed ranking, largest": 2 * max(kept) - 1,
    }
    for measure, value in ratios.items():
        methods = {"kendall": value, "kendall + lower bound": low, "kendall + upper bound": high}
        rows += [exact_row(method, measure, number) for method, number in methods.items()]
    return rows


def worst_case(cell: Cell) -> list[Row]:
    """The largest log-ratios over neighbours and over any two rankings, the count of neighbours, Lemma 7's bound."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = []
    for method in ("kendall", "ulam", "reinsertion"):
        one = built(method, items, epsilon)
        logs = one.log_prob(all_permutations(items), np.arange(items))
        farthest = float(logs.max() - logs.min())
        ratios = {
            "worst log-ratio over neighbours": worst_ratio(logs, items),
            "worst log-ratio over any two rankings": farthest,
            "the same divided by m epsilon / 2": farthest / (epsilon * items / 2),
        }
        rows += exact_rows({method: ratios})
    kept = built("kendall", items, epsilon).keep_probability(0, items - 1)
    quoted, theorem = math.tanh(epsilon / 2), preference_bounds(items, epsilon)[1]  # (e^eps - 1)/(e^eps + 1)
    lead = "largest ratio of leads"
    literal = _neighbours_by_the_letter(items) / ((items - 1) * (items - 2))
    others: dict[str, dict[str, float]] = {
        "only one item": {"neighbours divided by (m-1)(m-2)": literal},
        "kendall": {lead: 2 * kept - 1},
        "kendall + proof of Lemma 7": {
            lead: quoted,
            "divided by Theorem 1(2)": quoted / theorem,
        },
    }
    return rows + exact_rows(others)


def _neighbours_by_the_letter(items: int) -> int:
    """Rankings that agree with 1, …, m once an item is taken out, and only one item will do."""
    orders = all_permutations(items)[1:].tolist()
    return sum(
        sum((rest := [item for item in order if item != out]) == sorted(rest) for out in range(items)) == 1
        for order in orders
    )
