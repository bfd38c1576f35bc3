"""A rehearsal: what a reader would see, from invented rows of the same shape and a seeded draw.

Only public numbers go in: the names, the stated number of rows, the bounds. Strengths lie evenly between -1
and 1, in an order that the seed decides and no row of the file; rankings follow Plackett and Luce, comparisons Bradley
and Terry, scores are uniform. The noise is drawn from the seed, so the result is marked as a rehearsal everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rankdp.aggregation.aggregate_report import aggregate_report
from rankdp.aggregation.estimates import aggregate
from rankdp.data.rankings import Rankings
from rankdp.privacy.bits import SeededBits
from rankdp.publish.board_report import board_report
from rankdp.publish.election_report import election_report
from rankdp.publish.elections import elect
from rankdp.publish.privatize import privatize
from rankdp.publish.rank import rank
from rankdp.publish.scores import privatize_scores
from rankdp.report.document import Report
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_reports import scores_report

_MOST_ROWS = {"ballots": 50_000, "rankings": 20_000, "comparisons": 200_000}
_USUAL = 1000


def rehearse(draft: Draft) -> tuple[Report, int]:
    """The report of invented rows, and how many there were."""
    random, bits = np.random.default_rng(draft.seed), SeededBits(draft.seed)
    called = draft.call[1]

    def chosen(*names: str) -> dict[str, Any]:
        return {name: called[name] for name in names if name in called}

    count, items = min(draft.number or _USUAL, _MOST_ROWS.get(draft.kind, _USUAL)), list(draft.items)
    strength = random.permutation(np.linspace(1, -1, len(items)))
    if draft.kind == "scores":
        low, high = draft.numeric_bounds
        invented = dict(zip(items, random.uniform(low, high, len(items)).tolist(), strict=True))
        noisy = privatize_scores(invented, draft.epsilon, bits=bits, **chosen("bounds", "noise", "p"))
        return scores_report(noisy, draft), len(items)
    if draft.kind == "comparisons":
        table = _votes(strength, count, draft, random)
        asked = chosen("protect", "method", "max_per_voter")
        return board_report(rank(table, draft.epsilon, items=items, bits=bits, **asked), draft.heading), count
    orders = np.argsort(-(strength + random.gumbel(size=(count, len(items)))), axis=1)[:, : draft.ranked]
    rankings = Rankings.from_orders(np.array(items, dtype=object)[orders].tolist(), items=items)
    if draft.kind == "ballots":
        result = elect(rankings, draft.epsilon, bits=bits, **chosen("rule", "protect"))
        return election_report(result, draft.heading), count
    release = privatize(
        rankings, draft.epsilon, bits=bits, **chosen("protect", "mechanism", "tiers", "listed_items_public")
    )
    return aggregate_report(aggregate(release), title=draft.heading), count


def _votes(strength: Any, count: int, draft: Draft, random: np.random.Generator) -> pa.Table:
    """Invented comparisons; where voters are protected, each has half as many as may count, or one."""
    left = random.integers(0, len(strength), count)
    right = (left + random.integers(1, len(strength), count)) % len(strength)
    first = random.random(count) < 1 / (1 + np.exp(strength[right] - strength[left]))
    names = pa.array(draft.items)
    each = max(1, draft.max_per_voter // 2)
    return pa.table(
        {
            "winner": names.take(pa.array(np.where(first, left, right))),
            "loser": names.take(pa.array(np.where(first, right, left))),
            "voter": pa.array(np.arange(count) // each),
        }
    )
