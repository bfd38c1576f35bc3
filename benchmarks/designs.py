"""What a word about a secret design is worth: how exact Bradley-Terry scores are with comparisons or voters protected.

Comparisons: the paper's simulation of ``accuracy``. Voters: 10 comparisons each, all pairs equally likely, strengths
even on [-1, 1]. Beside what ``rank`` publishes for ``design="chance"`` and ``"even"`` there are objective perturbation
with all of epsilon, and *untested*: differences with all of epsilon, fitted to the even design, with the number of
comparisons known. That is what noisy degrees, tests and a noisy number cost.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import poll_of_the_paper
from benchmarks.report import Table
from rankdp.data.counts import PairCounts
from rankdp.mechanisms.votes.noisy_counts import NoisyDifferences
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.publish.rank import BoardRequest, CountedVotes
from rankdp.publish.vote_scores import choose_ridge, objective
from rankdp.rankers.expected_design import even_design, fit_differences

_SETS = 10
_PER_VOTER = 10
_COMPARISONS = [(share, epsilon) for share in (1.0, 0.25) for epsilon in ("0.5", "1", "2.5")]
_VOTERS = [(50, 2_000), (50, 20_000), (300, 10_000)]
_WAYS = ("objective", "chance", "even", "untested")

FloatArray = NDArray[np.float64]


def table() -> Table:
    """Relative l2 errors, each a mean with its standard error."""
    lines = []
    for share, epsilon in _COMPARISONS:
        polls = [poll_of_the_paper(share, seed) for seed in range(_SETS)]
        lines.append((f"300 items, p = {share:g}", "comparison", epsilon, *_errors(polls, epsilon, None)))
    for items, voters in _VOTERS:
        polls = [_voters_poll(items, voters, seed) for seed in range(_SETS)]
        lines.append((f"{items} items, {voters:,} voters", "voter", "1", *_errors(polls, "1", _PER_VOTER)))
    return Table(("votes", "protected", "epsilon", *_WAYS), lines)


def _voters_poll(items: int, voters: int, seed: int) -> tuple[FloatArray, PairCounts]:
    random = np.random.default_rng(seed)
    truth = random.uniform(-1, 1, items)
    left, right = np.triu_indices(items, 1)
    played = random.multinomial(_PER_VOTER * voters, np.full(len(left), 1 / len(left)))
    won = random.binomial(played, 1 / (1 + np.exp(truth[right] - truth[left])))
    return truth - truth.mean(), PairCounts.from_pairs(left, right, 2 * won, 2 * (played - won), items=items)


def _errors(polls: list[tuple[FloatArray, PairCounts]], epsilon: str, per_voter: int | None) -> list[str]:
    cells = []
    for way in _WAYS:
        errors = []
        for seed, (truth, counts) in enumerate(polls):
            off = _scores(way, counts, epsilon, per_voter, SeededBits(seed)) - truth
            errors.append(float(np.linalg.norm(off) / np.linalg.norm(truth)))
        cells.append(f"{np.mean(errors):.3f} ± {np.std(errors, ddof=1) / math.sqrt(len(errors)):.3f}")
    return cells


def _scores(way: str, counts: PairCounts, epsilon: str, per_voter: int | None, bits: Bits) -> FloatArray:
    """Centred, in the order of the items."""
    unit, items, total = "voter" if per_voter else "comparison", len(counts.items), int(counts.halves.sum()) // 2
    protection = Protection.of(unit, per_voter)
    if way == "objective":
        scores = objective(items, total, protection, Fraction(epsilon)).sample(counts, bits)
    elif way == "untested":
        noisy = NoisyDifferences(protection, epsilon)
        ridge = choose_ridge(2 * total / items, noisy.count_variance / 4)
        scores = fit_differences(even_design(items, total), noisy.released(noisy.counted(counts), bits), ridge)
    else:
        request = BoardRequest.of(epsilon, unit, max_per_voter=per_voter, design=way)
        board = CountedVotes(request, counts, []).draw(bits).value
        scores = board.scores[np.argsort(np.array(board.items, np.int64))]
    return np.asarray(scores - scores.mean())
