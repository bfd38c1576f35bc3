"""Are the draws independent? A guarantee is for one draw; noise that comes back undoes it.

With the same noise on every row the difference of two rows is the difference of two secrets; with the same noise in two
calls the second release tells what the first hid. Four questions are put to the sampler, each a chi-squared test whose
answer under independence is known, plus a count of coincidences:

- do neighbouring *rows* of one call have to do with each other?
- do row i of one *call* and row i of the next? And are they equal more often than rows that stand apart (Fisher)?
- do several calls have the *same law*? (Noise drawn once for a call makes each call different from the next.)
- does row i for one input have to do with row i for its *neighbour*?

The smallest p-value is multiplied by the number of questions (Bonferroni) and compared with ``level``, 1e-6, so that an
honest sampler is accused once in a million audits. Where every single draw is the same nothing can be told: at a huge
epsilon that is honest, and where it is not, a statistical audit sees two inputs that are never confused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError

_LEVEL = 1e-6
_CALLS = 4
_CELLS = 6
_FEWEST = 200


@dataclass(frozen=True)
class IndependenceAudit:
    """Whether draws are independent, question by question.

    Parameters
    ----------
    subject
        What was audited, in words.
    p_values
        The p-value of each question, by its name.
    constant
        Whether all draws were the same, so that nothing can be told.
    level
        The smallest corrected p-value that passes.
    """

    subject: str
    p_values: dict[str, float]
    constant: bool
    level: float = _LEVEL

    kind = "independence"

    @property
    def p_value(self) -> float:
        """The smallest, corrected for how many there are."""
        return min(1.0, len(self.p_values) * min(self.p_values.values(), default=1.0))

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against independent draws."""
        return self.constant or self.p_value >= self.level

    def explain(self) -> str:
        """The verdict in plain words."""
        if self.constant:
            return "Inconclusive: every draw is the same, by a huge epsilon, no randomness or one seed for all."
        if self.holds:
            return f"The draws look independent (smallest p-value {self.p_value:.2g} after correction)."
        worst = min(self.p_values, key=lambda name: self.p_values[name])
        return f"VIOLATION: the draws are not independent, see {worst} (p = {self.p_value:.2g}): is a seed used twice?"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "p_values": self.p_values,
            "constant": self.constant,
            "level": self.level,
            "holds": self.holds,
            "explanation": self.explain(),
        }


def audit_independence(
    sampler: Callable[[Any, int], Any],
    given: Any,
    neighbour: Any = None,
    *,
    draws: int = 4000,
    name: str = "the sampler",
) -> IndependenceAudit:
    """Test whether draws are independent, in four calls and one for a neighbour.

    Parameters
    ----------
    sampler
        ``sampler(input, count)`` gives ``count`` outputs.
    given
        The input of the four calls.
    neighbour
        Another input, for one more call; left out if None.
    draws
        The number of draws in each call.
    name
        What the report calls the sampler.
    """
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < _FEWEST:
        raise InputError(f"draws must be an integer of at least {_FEWEST}, got {draws!r}")
    calls = [_numbers(sampler(given, draws)) for _ in range(_CALLS)]
    other = None if neighbour is None else _numbers(sampler(neighbour, draws))
    pooled = np.concatenate(calls)
    if (pooled == pooled[0]).all() and (other is None or (other == other[0]).all()):
        return IndependenceAudit(name, {}, constant=True)
    cells = [_cells(call, pooled) for call in calls]
    found = {
        "neighbouring rows": _dependence(np.concatenate([c[:-1:2] for c in cells]), _after(cells)),
        "two calls": _dependence(cells[0], cells[1]),
        "coincidences of two calls": _coincidences(calls[0], calls[1]),
        "the law of several calls": _dependence(np.concatenate(cells), np.repeat(np.arange(_CALLS), draws)),
    }
    if other is not None:
        found["neighbouring inputs"] = _dependence(cells[2], _cells(other, other))
    return IndependenceAudit(name, found, constant=False)


def _after(cells: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([c[1::2][: len(c[:-1:2])] for c in cells])


def _numbers(outputs: Any) -> NDArray[np.float64]:
    """One number for each output, almost surely different where the outputs are."""
    array = np.asarray(outputs)
    if array.dtype.kind not in "iufb":
        array = np.unique(array, return_inverse=True)[1]
    rows = array.reshape(len(array), -1).astype(np.float64)
    return np.asarray(rows @ np.sqrt(np.arange(2.0, rows.shape[1] + 2)))


def _cells(numbers: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.int64]:
    edges = np.unique(np.quantile(like, np.linspace(0, 1, _CELLS + 1)[1:-1], method="lower"))
    return np.searchsorted(edges, numbers, side="right").astype(np.int64)


def _dependence(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The p-value of the chi-squared test of independence; 1 where one of the two never changes."""
    from scipy.stats import chi2_contingency

    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0


def _coincidences(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The p-value of rows in the same place being equal more often than rows half a call apart."""
    from scipy.stats import fisher_exact

    same, apart = int((first == second).sum()), int((first == np.roll(second, len(second) // 2)).sum())
    table = [[same, len(first) - same], [apart, len(first) - apart]]
    return float(fisher_exact(table, alternative="greater").pvalue)
