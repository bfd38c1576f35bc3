"""How many comparisons of each voter to use: advice from a public guess of how many each voter gives.

With at most c of each voter, n(c) = sum over voters of min(votes, c) comparisons are used, and the noise grows with c:
the squared error of a score has a sampling part ~ 1/n(c) and a privacy part ~ (c / (epsilon n(c)))^2
(`comparison_plans`). A small c discards votes, a large one adds noise to protect voters with many. The guess must not
come from the secret votes: c is published and would reveal something about them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rankdp.checks import share, whole
from rankdp.errors import InputError, Setting
from rankdp.planning.comparison_plans import ManyComparisons
from rankdp.planning.situation import HALF_WIDTH, PAIRS, Request
from rankdp.privacy.exact import Real, positive
from rankdp.report.document import Report
from rankdp.report.results import Table


@dataclass(frozen=True, slots=True)
class VoterBound:
    """A leaderboard with at most this many comparisons per voter."""

    most: int
    comparisons: int
    pairs: float
    """The expected share of pairs in order."""
    half_width: float
    """Of the interval of a score, to either side."""


def voter_bounds(
    items: int, votes_per_voter: Mapping[int, int], epsilon: Real, *, level: float = 0.95, spread: float = 1.0
) -> list[VoterBound]:
    """Every bound worth considering, sorted by the length of intervals (to two digits), then by the bound.

    Parameters
    ----------
    items
        How many items are compared.
    votes_per_voter
        A public guess: how many voters give how many comparisons, such as ``{1: 500, 20: 40}``.
    epsilon
        The privacy of all comparisons of a voter.
    level
        The confidence of the intervals.
    spread
        Log-strengths are assumed to lie within plus or minus this number.
    """
    name = "votes_per_voter"
    guess = {whole(name, votes, 1): whole(name, voters, 1) for votes, voters in votes_per_voter.items()}
    if not guess:
        raise InputError(Setting("votes_per_voter"), " must say how many voters give how many comparisons, got nothing")
    exact, request = float(positive(epsilon)), Request(1, share("level", level))
    bounds = []
    for most in _candidates(max(guess)):
        kept = sum(voters * min(votes, most) for votes, voters in guess.items())
        situation = ManyComparisons(items, kept, "voter", most, spread=spread)
        pairs, half = (situation.accuracy("bradley-terry", measure, exact, request) for measure in (PAIRS, HALF_WIDTH))
        bounds.append(VoterBound(most, kept, pairs, half))
    return sorted(bounds, key=lambda bound: (float(f"{bound.half_width:.2g}"), bound.most))


def _candidates(largest: int) -> list[int]:
    """1, 2, 3, 5, 10, 20, 30, 50, …, and the largest number of votes itself."""
    steps = {digit * 10**power for power in range(math.ceil(math.log10(largest)) + 1) for digit in (1, 2, 3, 5)}
    return sorted({step for step in steps if step < largest} | {largest})


def voter_bounds_report(
    items: int, votes_per_voter: Mapping[int, int], epsilon: Real, level: float, spread: float
) -> Report:
    """The report of that advice.

    Parameters
    ----------
    items, votes_per_voter, epsilon, level, spread
        As in ``voter_bounds``.
    """
    bounds = voter_bounds(items, votes_per_voter, epsilon, level=level, spread=spread)
    best, given = bounds[0], sum(votes * voters for votes, voters in votes_per_voter.items())
    records = [
        {
            "max_per_voter": bound.most,
            "comparisons": bound.comparisons,
            "pairs": bound.pairs,
            "half_width": bound.half_width,
            "recommended": bound is best,
        }
        for bound in sorted(bounds, key=lambda bound: bound.most)
    ]
    heads = ["at most", "comparisons used", "share", "pairs in order", f"{level:.0%} interval of a score"]
    rows = [
        [
            f"{bound.most:,}{' *' * (bound is best)}",
            f"{bound.comparisons:,}",
            f"{bound.comparisons / given:.0%}",
            f"{bound.pairs:.1%}",
            f"± {bound.half_width:.3g}",
        ]
        for bound in sorted(bounds, key=lambda bound: bound.most)
    ]
    return Report(
        title=f"Comparisons to use of each voter, for {items} items at epsilon {epsilon}",
        records=records,
        facts=lambda: {"bounds": records, "recommended": best.most},
        tables=[Table(heads, rows)],
        headline=f"Use at most {best.most:,} comparison{'s' * (best.most > 1)} of each voter.",
        command=f"rankdp rank VOTES --epsilon {epsilon} --protect voter --max-per-voter {best.most}",
        computed=["The guess must not come from the votes: the bound is published and would reveal them in part."],
    )
