"""Are the draws independent? A guarantee is for one draw; repeated noise breaks it.

With the same noise on every row the difference of two rows is the difference of two secrets; with the same noise in two
calls the second release tells what the first hid. Four questions are put to the sampler, each a chi-squared test whose
answer under independence is known, plus a count of coincidences:

- do neighbouring *rows* of one call have to do with each other?
- do row i of one *call* and row i of the next? And are they equal more often than rows that are far apart (Fisher)?
- do several calls have the *same law*? (Noise drawn once for a call makes each call different from the next.)
- does row i for one input have to do with row i for its *neighbour*?

The smallest p-value is multiplied by the number of questions (Bonferroni) and compared with ``level``, 1e-6, so that an
honest sampler is accused once in a million audits. Where every single draw is the same nothing can be told: at a huge
epsilon that is honest, and where it is not, a statistical audit sees two inputs that are never confused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankdp.audit.findings import IndependenceAudit
from rankdp.checks import whole
from rankdp.types import Floats, Longs

_CALLS = 4
_CELLS = 6
_FEWEST = 200


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
    draws = whole("draws", draws, _FEWEST)
    calls = [_numbers(sampler(given, draws)) for _ in range(_CALLS)]
    other = None if neighbour is None else _numbers(sampler(neighbour, draws))
    pooled = np.concatenate(calls)
    if (pooled == pooled[0]).all() and (other is None or (other == other[0]).all()):
        return IndependenceAudit(name, {}, constant=True)
    cells = [_cells(call, pooled) for call in calls]
    even = draws - draws % 2
    p_values = {
        "neighbouring rows": _dependence(
            np.concatenate([call[:even:2] for call in cells]), np.concatenate([call[1:even:2] for call in cells])
        ),
        "two calls": _dependence(cells[0], cells[1]),
        "coincidences of two calls": _coincidences(calls[0], calls[1]),
        "the law of several calls": _dependence(np.concatenate(cells), np.repeat(np.arange(_CALLS), draws)),
    }
    if other is not None:
        p_values["neighbouring inputs"] = _dependence(cells[2], _cells(other, other))
    return IndependenceAudit(name, p_values, constant=False)


def _numbers(outputs: Any) -> Floats:
    """One number for each output, almost surely different where the outputs are."""
    array = np.asarray(outputs)
    if array.dtype.kind not in "iufb":
        array = np.unique(array, return_inverse=True)[1]
    rows = array.reshape(len(array), -1).astype(np.float64)
    return np.asarray(rows @ np.sqrt(np.arange(2.0, rows.shape[1] + 2)))


def _cells(numbers: Floats, like: Floats) -> Longs:
    edges = np.unique(np.quantile(like, np.linspace(0, 1, _CELLS + 1)[1:-1], method="lower"))
    return np.searchsorted(edges, numbers, side="right").astype(np.int64)


def _dependence(first: Longs, second: Longs) -> float:
    """The p-value of the chi-squared test of independence; 1 where one of the two never changes."""
    from scipy.stats import chi2_contingency

    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0


def _coincidences(first: Floats, second: Floats) -> float:
    """The p-value of rows in the same place being equal more often than rows half a call apart."""
    from scipy.stats import fisher_exact

    same, apart = int((first == second).sum()), int((first == np.roll(second, len(second) // 2)).sum())
    table = [[same, len(first) - same], [apart, len(first) - apart]]
    return float(fisher_exact(table, alternative="greater").pvalue)
