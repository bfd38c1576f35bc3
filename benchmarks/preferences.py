"""A linear reward model from private preference labels: its error by pairs and epsilon, with other ways.

Two answers with ten features each, uniform in [-1, 1]; the first is preferred with the log-odds w.(x - y), |w| = 1. The
error is the distance of the weights found from w, the mean of five tables.

*Debiased* and *naive* are fitted to labels that were swapped one by one, with and without undoing the swaps. *Curator*
is ``rank --covariates`` with the differences as public covariates: all labels are in one hand, and noise is added once.
The *rate* is sqrt(d/n) (e^eps + 1)/(e^eps - 1), of the order that Chowdhury, Zhou and Natarajan (2023) give for labels
that are swapped one by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import rankdp
from benchmarks.report import Table, digits
from rankdp.learn import LinearRewardModel
from rankdp.mechanisms.votes.labels import SwappedLabels
from rankdp.privacy.bits import SeededBits

_PAIRS, _EPSILONS = (1_000, 10_000, 100_000), ("0.5", "1", "2", "4")
_FEATURES, _TABLES = 10, 5

Floats = NDArray[np.float64]


def table() -> Table:
    """A row for each number of pairs and epsilon."""
    rows = []
    for size in _PAIRS:
        for epsilon in _EPSILONS:
            debiased, naive, curator = np.mean([_errors(size, epsilon, seed) for seed in range(_TABLES)], axis=0)
            rate = math.sqrt(_FEATURES / size) / math.tanh(float(epsilon) / 2)
            shown = (digits(error) if error >= 0.1 else f"{error:.3f}" for error in (debiased, naive, curator, rate))
            rows.append((f"{size:,}", epsilon, *shown))
    return Table(("pairs", "epsilon", "debiased", "naive", "curator", "rate"), rows)


def _errors(size: int, epsilon: str, seed: int) -> tuple[float, float, float]:
    """Of one table: debiased, naive and in a curator's hands."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=_FEATURES)
    weights /= np.linalg.norm(weights)
    one, other = random.uniform(-1, 1, (2, size, _FEATURES))
    first = random.random(size) < 1 / (1 + np.exp(-(one - other) @ weights))
    swaps = SwappedLabels(epsilon)
    told = (first ^ swaps.swapped(size, SeededBits(seed)))[:, None]
    chosen, rejected = np.where(told, one, other), np.where(told, other, one)
    found = [LinearRewardModel(flip).fit(chosen, rejected).coef_ for flip in (swaps.flip_probability, 0)]
    found.append(_by_curator(one - other, first, epsilon, seed))
    debiased, naive, curator = (float(np.linalg.norm(each - weights)) for each in found)
    return debiased, naive, curator


def _by_curator(differences: Floats, first: NDArray[np.bool_], epsilon: str, seed: int) -> Floats:
    columns: dict[str, Any] = {"left": ["a"] * len(first), "right": ["b"] * len(first)}
    columns |= {"winner": np.where(first, "left", "right").tolist()}
    frame = pa.table(columns | {f"z{k}": column for k, column in enumerate(differences.T)})
    release = rankdp.rank(
        frame,
        epsilon,
        protect="outcome",
        covariates=[f"z{k}:2" for k in range(_FEATURES)],
        items=["a", "b"],
        bits=SeededBits(seed),
    )
    return np.array([effect.effect / 2 for effect in release.value.effects])  # effects are those at the bound
