"""How well effects of public covariates are found, beside randomised response: agreement with the true preference.

10,000 comparisons with 20 covariates, uniform in [-1, 1], and effects of a standard normal law. Of fresh pairs, the
share in which the effects found prefer the same side as the true ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

import rankdp
from benchmarks.report import Table, verdict
from rankdp.inference.normal import posterior
from rankdp.privacy.bits import SeededBits

SIZE, COVARIATES, TABLES = 10_000, 20, 20
BARS = {"0.1": 0.91, "1": 0.975}


def table() -> Table:
    """Both ways at both epsilons."""
    lines = []
    for epsilon, bar in BARS.items():
        found = np.array([agreements(epsilon, seed) for seed in range(TABLES)]).mean(axis=0)
        lines.append((epsilon, f"{found[0]:.3f}", f"{found[1]:.3f}", f"at least {bar}", verdict(found[0] >= bar)))
    return Table(("epsilon", "rank with covariates", "randomised response", "target", "met"), lines)


def agreements(epsilon: str, seed: int) -> tuple[float, float]:
    """Of one table: that of ``rank``, and that of randomised response."""
    random = np.random.default_rng(seed)
    values, effects = random.uniform(-1, 1, (SIZE, COVARIATES)), random.normal(size=COVARIATES)
    outcomes = np.where(random.random(SIZE) < 1 / (1 + np.exp(-values @ effects)), 1, -1)
    fresh = random.uniform(-1, 1, (20_000, COVARIATES))
    ways = _ranked(values, outcomes, epsilon, seed), _flipped(values, outcomes, float(epsilon), random)
    ours, theirs = (float(np.mean((fresh @ effects > 0) == (fresh @ found > 0))) for found in ways)
    return ours, theirs


def _ranked(values: Any, outcomes: Any, epsilon: str, seed: int) -> Any:
    columns = {"left": ["a"] * len(values), "right": ["b"] * len(values)}
    columns |= {"winner": np.where(outcomes > 0, "left", "right").tolist()}
    frame = pa.table(columns | {f"z{k}": column for k, column in enumerate(values.T)})
    said = [f"z{k}:1" for k in range(COVARIATES)]
    release = rankdp.rank(frame, epsilon, protect="outcome", covariates=said, items=["a", "b"], bits=SeededBits(seed))
    return np.array([effect.effect for effect in release.value.effects])


def _flipped(values: Any, outcomes: Any, epsilon: float, random: np.random.Generator) -> Any:
    """Every outcome is flipped with probability 1/(1 + e^eps), the flips' mean is taken out, and effects are fitted."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    seen = np.where(random.random(len(outcomes)) < keep, outcomes, -outcomes) / (2 * keep - 1)

    def linear(effects: Any) -> tuple[Any, Any, Any]:
        bent = np.tanh(values @ effects / 2)
        slope = values.T @ (values * ((1 - bent**2) / 2)[:, None])
        return values.T @ (seen - bent), slope, values.T @ values * ((2 * keep - 1) ** -2)

    return posterior(linear, np.ones(COVARIATES))[0]
