"""What the constants of Algorithm 1 cost, on the votes of Figure 3.

The noise of Algorithm 1 (scale 8/eps), the least that our proof of Proposition 2.1 allows (a little over 4/eps), and
that of wins where only outcomes are secret (2/eps); the ridge of Theorem 2.2 at c0 = 1 and at its best c0, and the one
that minimises the expected error. And what becomes of Algorithm 1 if kappa_2 has to obey both halves of (2.4).
"""

from __future__ import annotations

import numpy as np

from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.rankers.links import LOGISTIC, Link
from rankdp_papers.cai import algorithms, drawn_votes, ridge_constant
from rankdp_papers.experiment import Cell, Repeated, Row, exact_row

OUTCOME, PAPER = "only outcomes secret", "the paper's noise, its best c0"
_REACH = 4.0  # of the interval in (2.4)


def worth(cell: Cell) -> list[Row]:
    """Errors with one correction after the other."""
    items, comparisons, epsilon = cell["items"], drawn_votes.expected_comparisons(cell), cell["epsilon"]
    size = (items, comparisons)
    best = algorithms.paper_ridge(*size, ridge_constant.best_constant(*size, epsilon))
    mechanisms = {
        "the paper's noise, c0 = 1": algorithms.paper(*size, epsilon),
        PAPER: algorithms.paper(*size, epsilon, best),
        "the least noise, the paper's best c0": algorithms.tight(*size, epsilon, best),
        "the least noise, our ridge": algorithms.tight(items, comparisons, epsilon),
    }
    return _errors(cell, mechanisms, NoisyWins(algorithms.COMPARISON, epsilon))


def sensitivity(cell: Cell) -> list[Row]:
    """The paper's error against c0 on the votes of Figure 3, with and without noise, and ours, which has no c0."""
    items, comparisons, epsilon = cell["items"], drawn_votes.expected_comparisons(cell), cell["epsilon"]
    ours, repeated = algorithms.tight(items, comparisons, epsilon), Repeated()
    mechanisms = {
        constant: algorithms.paper(items, comparisons, epsilon, algorithms.paper_ridge(items, comparisons, constant))
        for constant in ridge_constant.CONSTANTS
    }
    for repetition in range(cell.repetitions):
        votes, streams = drawn_votes.poll(cell, repetition), (items, cell["p"], epsilon, repetition)
        our_error = votes.relative_errors(algorithms.perturbed(ours, votes.counts, cell.bits("ours", *streams)))["l2"]
        for constant, mechanism in mechanisms.items():
            noisy = algorithms.perturbed(mechanism, votes.counts, cell.bits("paper", *streams))
            plain = algorithms.penalized(votes.counts, algorithms.paper_ridge(items, comparisons, constant))
            for method, error in (
                ("bradley-terry + paper", votes.relative_errors(noisy)["l2"]),
                ("bradley-terry + paper, no noise", votes.relative_errors(plain)["l2"]),
                ("bradley-terry + tight", our_error),
            ):
                repeated.add({"l2": error}, method=method, c0=f"{constant:g}")
    return [{**row, "c0": float(row["c0"])} for row in repeated.rows()]


def one_constant(cell: Cell) -> list[Row]:
    """Algorithm 1 with kappa_2 the largest curvature, and with the least kappa_2 that satisfies all of (2.4)."""
    items, comparisons, epsilon = cell["items"], drawn_votes.expected_comparisons(cell), cell["epsilon"]
    constants = dict(zip(("for privacy alone", "for all of (2.4)"), curvatures(LOGISTIC), strict=True))
    mechanisms = {name: algorithms.paper(items, comparisons, epsilon, kappa_2=one) for name, one in constants.items()}
    exact = [exact_row(name, "kappa_2", value) for name, value in constants.items()]
    return _errors(cell, mechanisms) + exact


def curvatures(link: Link) -> tuple[float, float]:
    """The largest (-log F)'', and the least kappa_2 above it with 1/kappa_2 below the curvature where |x| <= 4."""
    near = link.curvature(np.linspace(-_REACH, _REACH, 8001))
    largest = float(link.curvature(np.linspace(-30.0, 30.0, 60001)).max())
    return largest, max(largest, 1 / float(near.min()))


def _errors(cell: Cell, mechanisms: dict[str, ObjectivePerturbation], noise: NoisyWins | None = None) -> list[Row]:
    """The errors of each mechanism, and of a fit to noisy wins."""
    repeated = Repeated()
    for votes, streams in drawn_votes.perturbed_polls(cell, mechanisms, repeated):
        if noise is not None:
            wins = noise.sample(votes.counts.half_wins, cell.bits(OUTCOME, *streams))
            fitted = algorithms.from_wins(votes.counts, wins, noise.noise_variance)
            repeated.add(votes.relative_errors(fitted), method=OUTCOME)
    return repeated.rows()
