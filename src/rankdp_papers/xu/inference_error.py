"""The inference attack (Xu, Sections 4 and 6.2; Figures 5 and 6): how often N releases do *not* give the secret away.

The attacker takes the ranking under which the N synthetic rankings are most likely; equally likely ones are told apart
by chance. With the simulated error comes the basis of the proof of Theorem 2: if more than half of the releases
reverse the two best items, the attacker errs, so the error is at least this binomial tail.
"""

from __future__ import annotations

import math

from rankdp.attack.inference import success_probability
from rankdp.theory.mallows import adaptive_epsilon, reversal_tail
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.xu.rivals import built

_METHODS = ("kendall", "ulam", "tiers", "reinsertion", "laplace")
_TAIL = "kendall + binomial bound"
_NORMAL_95 = 1.959964  # half a Wilson interval is this many standard errors; unlike them it is never 0


def fixed_epsilon(cell: Cell) -> list[Row]:
    """Figure 5: the attacker's error against N at one epsilon."""
    return [row for count in cell["releases"] for row in _errors(cell, count, cell["epsilon"])]


def adaptive(cell: Cell) -> list[Row]:
    """Figure 6: the same with an epsilon that falls with N, (m-1)/sqrt(N), or (m-1) log(N)/sqrt(N) "with log"."""
    rows = []
    for count in cell["releases"]:
        factor = math.log(count) if cell["schedule"] == "with log" else 1.0
        rows += _errors(cell, count, factor * adaptive_epsilon(count, cell["items"]))
    return rows


def _errors(cell: Cell, releases: int, epsilon: float) -> list[Row]:
    items, rows = cell["items"], []
    for method in _METHODS:
        bits = cell.bits(items, epsilon, releases, method)
        found = success_probability(built(method, items, epsilon), releases, cell.repetitions, bits)
        error = (found.high - found.low) / (2 * _NORMAL_95)
        rows.append({"releases": releases, "method": method, "value": 1 - found.probability, "error": error})
    tail = reversal_tail(releases, items, epsilon)
    return [*rows, {"releases": releases, "method": _TAIL, "value": tail, "error": 0.0}]
