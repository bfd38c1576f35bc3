"""Which mechanism is best at the same epsilon: exact numbers before any data are seen."""

from __future__ import annotations

from typing import cast

import numpy as np

from rankdp.mechanisms.rankings.noisy_ranks import RankLaplace
from rankdp.theory.estimators import pair_estimator
from rankdp_papers.experiment import Cell, Row
from rankdp_papers.xu.rivals import (
    ENUMERATED_UP_TO,
    EQUAL_REALISED,
    built,
    realised_epsilon,
    rivals,
)

_VARIANCES_UP_TO = 10  # items; above, the noise of Kendall and Ulam cannot be undone in floating point


def _row(method: str, measure: str, value: float) -> Row:
    return {"method": method, "measure": measure, "value": float(value), "error": 0.0}


def laplace(cell: Cell) -> list[Row]:
    """The comparison of Lemma 4 at the paper's scale 2(m-1)/eps, at scale m/eps and at equal realised epsilon.

    The realised epsilon is enumerated for short rankings. For any length it is at least the log-ratio of one pair of
    neighbours (the first item moved to the end, and the input itself as the output) and at most m/b (see ``rivals``).
    """
    items, epsilon = cell["items"], cell["epsilon"]
    short = items <= ENUMERATED_UP_TO
    rows = [_row(name, "concordance", built(name, items, epsilon).expected_concordance()) for name in rivals(items)]
    realised = "realised epsilon divided by epsilon"
    for name in ("laplace", "noisy-ranks", *([EQUAL_REALISED] if short else [])):
        one = cast(RankLaplace, built(name, items, epsilon))
        identity = np.arange(items)
        here, there = one.log_prob(np.stack([identity, np.roll(identity, -1)]), identity)
        rows.append(_row(name, f"{realised}, at least", (here - there) / epsilon))
        rows.append(_row(name, f"{realised}, at most", items / float(one.scale) / epsilon))
        if short:
            rows.append(_row(name, realised, realised_epsilon(one) / epsilon))
    return rows


def best(cell: Cell) -> list[Row]:
    """The share of pairs kept, and the variance of an unbiased pairwise estimate from one person (mean over pairs)."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = []
    for name in rivals(items):
        one = built(name, items, epsilon)
        rows.append(_row(name, "concordance", one.expected_concordance()))
        if name in ("kendall", "ulam", "reinsertion") and items <= _VARIANCES_UP_TO:
            rows.append(_row(name, "variance", pair_estimator(one).mean_variance))
    return rows
