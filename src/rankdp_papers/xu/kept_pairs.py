"""What a synthetic ranking keeps and what it costs (Xu, Sections 3.2 and 6.1; Figures 2 and 4).

Figure 2 is the share of pairs that a synthetic ranking has in the order of the input,

    T(phi, A(phi)) = (pairs in the same order) / (m(m-1)/2),

where the paper counts both (i, j) and (j, i) and writes a plain sum. Figure 4 is equation (8), the
largest log-ratio of frequencies over all neighbours phi' of phi and all outputs: the plain estimate of epsilon.
"""

from __future__ import annotations

import math

import numpy as np

from rankdp.audit.statistical import audit_samples, ranking_neighbours, ranking_sampler
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism
from rankdp.privacy.bits import Bits
from rankdp.theory.permutations import concordance as shares_in_order
from rankdp.theory.permutations import moves, places
from rankdp.types import Longs
from rankdp_papers.experiment import Cell, Row, exact_row, mean_row
from rankdp_papers.xu.rivals import built, realised_epsilon, rivals

_ROWS_AT_A_TIME = 1 << 20
_CONFIDENCE = 0.9999  # so high that all bounds of the figure hold together


def concordance(cell: Cell) -> list[Row]:
    """Figure 2: simulated shares of pairs in order, what they miss the exact ones by, and Kendall's lead on Laplace."""
    items, epsilon = cell["items"], cell["epsilon"]
    identity = np.tile(np.arange(items, dtype=np.int32), (cell.repetitions, 1))
    rows, exact = [], {}
    for method in rivals(items):
        one = built(method, items, epsilon)
        kept = shares_in_order(one.sample(identity, cell.bits(items, epsilon, method), workers=1))
        exact[method] = one.expected_concordance()
        row = mean_row(kept, method=method, measure="simulated")
        rows += [row, {**row, "measure": "simulated minus exact", "value": row["value"] - exact[method]}]
        rows.append(exact_row(method, "exact", exact[method]))
    lead = exact["kendall"] - exact["laplace"]
    for measure, pairs in (("lead, share of pairs", 1), ("lead, number of pairs", math.comb(items, 2))):
        rows.append(exact_row("kendall - laplace", measure, lead * pairs))
    return rows


def privacy(cell: Cell) -> list[Row]:
    """Figure 4: equation (8), a held-out lower confidence bound, and the exact epsilon by enumeration.

    The estimate is the largest of many noisy ratios, so it errs upwards. The bound chooses its event by some draws and
    is computed from others: epsilon is at least that with 99.99% confidence.
    """
    items, epsilon, method = cell["items"], cell["epsilon"], cell["method"]
    draws = cell["draws"] if method == "kendall" else cell["draws_of_others"]
    one = built(method, items, epsilon)
    estimate, error = _equation_8(one, draws, cell.bits(items, epsilon, method, "estimate"))
    audit = audit_samples(
        ranking_sampler(one, cell.bits(items, epsilon, method, "audit")),
        ranking_neighbours(range(items)),
        draws=draws,
        claimed_epsilon=epsilon,
        confidence=_CONFIDENCE,
    )
    return [
        {"measure": "estimate (8)", "value": estimate, "error": error},
        {"measure": "held-out lower bound", "value": audit.epsilon_low, "error": 0.0},
        {"measure": "exact", "value": realised_epsilon(one), "error": 0.0},
    ]


def _equation_8(one: RankingMechanism, draws: int, bits: Bits) -> tuple[float, float]:
    """The largest log-ratio, and its standard error there by the delta method: sqrt(1/a + 1/b) for the counts a and b.

    An output that one of two inputs never showed has no ratio; it is left out.
    """
    identity = np.arange(one.items, dtype=np.int32)
    here = _counts(one, identity, draws, bits)
    best = (0.0, 0.0)
    for move in moves(one.items):
        there = _counts(one, identity[move], draws, bits)
        both = (here > 0) & (there > 0)
        a, b = here[both], there[both]
        ratios = np.abs(np.log(a / b))
        at = int(np.argmax(ratios))
        best = max(best, (float(ratios[at]), math.sqrt(1 / a[at] + 1 / b[at])))
    return best


def _counts(one: RankingMechanism, order: Orders, draws: int, bits: Bits) -> Longs:
    """How often each of the m! outputs came, in lexicographic order."""
    counts = np.zeros(math.factorial(one.items), dtype=np.int64)
    for start in range(0, draws, _ROWS_AT_A_TIME):
        rows = np.broadcast_to(order, (min(_ROWS_AT_A_TIME, draws - start), one.items))
        counts += np.bincount(places(one.sample(rows, bits, workers=1)), minlength=len(counts))
    return counts
