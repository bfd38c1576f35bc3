"""What each correction of the paper's constants is worth, on the votes of Figure 3.

The noise of Algorithm 1 (scale 8/eps), that of its proof (a little over 4/eps), and that of wins where only outcomes
are secret (2/eps); the ridges of Proposition 2.2 and Theorem 2.2, and the one that minimises the expected error. And
what becomes of Algorithm 1 if kappa_2 has to obey both halves of (2.4).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.wins import NoisyWins
from rankdp.rankers.links import Link
from rankdp.rankers.links import link as known_link
from rankdp_papers.cai import algorithms, drawn_votes
from rankdp_papers.experiment import Cell, Row

OUTCOME, PAPER = "only outcomes secret", "the paper's noise, ridge sqrt(np log n)"
_REACH = 4.0  # of the interval in (2.4)


def worth(cell: Cell) -> list[Row]:
    """Errors with one correction after the other; "noise" is the scale as a share of the paper's 8/eps."""
    items, comparisons, epsilon = cell["items"], drawn_votes.expected_comparisons(cell), cell["epsilon"]
    rates = algorithms.paper_ridge(items, comparisons)
    mechanisms = {
        "the paper's noise, ridge sqrt(np)": algorithms.paper(
            items, comparisons, epsilon, algorithms.paper_ridge(items, comparisons, logarithm=False)
        ),
        PAPER: algorithms.paper(items, comparisons, epsilon),
        "the proof's noise, ridge sqrt(np log n)": algorithms.tight(items, comparisons, epsilon, rates),
        "the proof's noise, our ridge": algorithms.tight(items, comparisons, epsilon),
    }
    noise = algorithms.noisy_wins(epsilon)
    scales = {name: float(one.scale) for name, one in mechanisms.items()} | {OUTCOME: float(noise.scale) / 2}
    shares = [_exact(name, "noise", scale * epsilon / 8) for name, scale in scales.items()]
    return _errors(cell, mechanisms, noise) + shares


def one_constant(cell: Cell) -> list[Row]:
    """Algorithm 1 with kappa_2 the largest curvature, and with the least kappa_2 that satisfies all of (2.4)."""
    items, comparisons, epsilon = cell["items"], drawn_votes.expected_comparisons(cell), cell["epsilon"]
    constants = dict(zip(("for privacy alone", "for all of (2.4)"), curvatures(known_link("logistic")), strict=True))
    mechanisms = {name: algorithms.paper(items, comparisons, epsilon, kappa_2=one) for name, one in constants.items()}
    exact = [_exact(name, "kappa_2", value) for name, value in constants.items()]
    exact += [_exact(name, "least ridge", 4 * value / epsilon) for name, value in constants.items()]
    return _errors(cell, mechanisms) + exact


def curvatures(link: Link) -> tuple[float, float]:
    """The largest (-log F)'', and the least kappa_2 above it with 1/kappa_2 below the curvature where |x| <= 4."""
    near = link.curvature(np.linspace(-_REACH, _REACH, 8001))
    far = link.curvature(np.linspace(-30.0, 30.0, 60001))
    largest = float(far.max())
    return largest, max(largest, 1 / float(near.min()))


def _errors(cell: Cell, mechanisms: dict[str, ObjectivePerturbation], noise: NoisyWins | None = None) -> list[Row]:
    """The errors of each mechanism, and of a fit to noisy wins."""
    found: drawn_votes.Measured = defaultdict(lambda: defaultdict(list))
    for repetition in range(cell.repetitions):
        votes = drawn_votes.poll(cell, repetition)
        streams = (cell["items"], cell["p"], cell["epsilon"], repetition)
        scores = {
            name: algorithms.perturbed(mechanism, votes.counts, cell.bits(name, *streams))
            for name, mechanism in mechanisms.items()
        }
        if noise is not None:
            wins = noise.sample(votes.counts.half_wins, cell.bits(OUTCOME, *streams))
            scores[OUTCOME] = algorithms.from_wins(votes.counts, wins, noise.noise_variance)
        for name, released in scores.items():
            for measure, value in votes.relative_errors(released).items():
                found[name][measure].append(value)
    return drawn_votes.mean_rows(found)


def _exact(method: str, measure: str, value: float) -> Row:
    return {"method": method, "measure": measure, "value": value, "error": 0.0}
