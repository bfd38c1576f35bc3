"""What a year of weekly boards costs, against one board with the same epsilon and against a year of separate boards.

Ten items with strengths 0.2 apart, 400 votes between random pairs each week, one comparison protected. The number is
the root mean squared error of the centred strengths, with its standard error over the repetitions: of the live board
after that week, of a single board of all votes until then that had all of epsilon, and of one of 52 boards that share
it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import expit

from benchmarks.report import Table
from rankdp.inference.boards import by_table, by_wins
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyTable, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.running_counts import RunningCounts
from rankdp.privacy.bits import SeededBits
from rankdp.types import Floats, Longs

_ITEMS, _WEEKLY, _WEEKS, _REPETITIONS = 10, 400, 52, 12
_SHOWN = (4, 13, 52)
_TRUE = 0.2 * (np.arange(_ITEMS) - (_ITEMS - 1) / 2)


def table() -> Table:
    """By what is protected, delta, epsilon and week."""
    rows = []
    for protect, delta in (("outcome", Fraction(0)), ("comparison", Fraction(0)), ("comparison", Fraction(1, 10**6))):
        for epsilon in (Fraction(1), Fraction(4)):
            errors = np.array([_year(protect, epsilon, delta, seed) for seed in range(_REPETITIONS)])
            mean = np.sqrt((errors**2).mean(axis=0))
            spread = (errors**2).std(axis=0, ddof=1) / math.sqrt(_REPETITIONS) / (2 * mean)
            for at, week in enumerate(_SHOWN):
                cells = (f"{mean[at, way]:.2f} ± {spread[at, way]:.2f}" for way in range(3))
                rows.append((f"{protect}, delta {float(delta):g}", str(epsilon), str(week), *cells))
    return Table(("protected", "epsilon", "week", "live", "one board", "52 boards"), rows)


def _year(protect: str, epsilon: Fraction, delta: Fraction, seed: int) -> list[list[float]]:
    """The errors of the three ways after each shown week."""
    random, bits, unit = np.random.default_rng(seed), SeededBits(seed), Protection.of(protect, None)
    law = RunningCounts.of(unit, epsilon, delta, _WEEKS)
    kind = type(law.counts)
    votes, met, nodes, errors = np.zeros((_ITEMS, _ITEMS), np.int64), np.zeros((_ITEMS, _ITEMS)), [], []
    open_sums = np.zeros((law.levels, len(_vector(kind, votes))), np.int64)
    for week in range(1, _WEEKS + 1):
        new = _votes(random)
        votes, met = votes + new, met + new + new.T
        node, open_sums = law.step(week, _vector(kind, new), open_sums, bits)
        nodes.append(node)
        if week in _SHOWN:
            held = law.nodes(week)
            total = np.sum([nodes[at - 1] for at in held], axis=0)
            found = [_error(kind, total, met, law.counts.noise_variance * len(held))]
            for share in (Fraction(1), Fraction(1, _WEEKS)):
                one = kind(unit, epsilon, delta, share)
                found.append(_error(kind, one.sample(_vector(kind, votes), bits), met, one.noise_variance))
            errors.append(found)
    return errors


def _votes(random: np.random.Generator) -> Longs:
    """How often each item beat each other one this week."""
    one = random.integers(_ITEMS, size=_WEEKLY)
    two = (one + random.integers(1, _ITEMS, size=_WEEKLY)) % _ITEMS
    won = random.random(_WEEKLY) < expit(_TRUE[one] - _TRUE[two])
    wins = np.zeros((_ITEMS, _ITEMS), np.int64)
    np.add.at(wins, (np.where(won, one, two), np.where(won, two, one)), 1)
    return wins


def _vector(kind: type[NoisyCounts], wins: Longs) -> Longs:
    """Half-wins, as the mechanism counts them."""
    return 2 * (wins.sum(axis=1) if kind is NoisyWins else wins[~np.eye(_ITEMS, dtype=bool)])


def _error(kind: type[NoisyCounts], half_wins: Longs, met: Floats, noise: float) -> float:
    if kind is NoisyTable:
        wins = np.zeros((_ITEMS, _ITEMS))
        wins[~np.eye(_ITEMS, dtype=bool)] = half_wins / 2
        draws = by_table(wins, noise)
    else:
        draws = by_wins(half_wins / 2, met, noise)
    return float(np.sqrt(((draws.estimate - _TRUE) ** 2).mean()))
