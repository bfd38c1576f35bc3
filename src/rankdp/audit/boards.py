"""Audits of leaderboards: every method of ``rank`` under every unit of protection.

A leaderboard is a function of what one mechanism drew from the counted votes: noisy wins (with Bradley-Terry scores
computed from them where only outcomes are secret), noisy differences and degrees, or the minimiser of a perturbed
objective, and, where voters are protected, a noisy number of comparisons. What is audited is that draw, made thousands
of times from tables of votes that are neighbours; reading, bounding each voter's contribution and counting are the
library's own and part of what is audited. ``through="rank"`` calls ``rank`` itself for every draw instead: slower, and
nothing is left out.

The neighbouring tables are the extremes of each unit: a vote reversed or replaced; all votes of a voter, four times
as many as may count, reversed or removed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from rankdp.audit.findings import StatisticalAudit
from rankdp.audit.statistical import Sampler, audit_samples
from rankdp.checks import one_of
from rankdp.data.comparisons import Comparisons
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyLeads, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.noise import discrete_laplace
from rankdp.publish.rank import METHODS, rank
from rankdp.publish.secret_designs import SecretDesign
from rankdp.publish.vote_scores import count_cost, objective
from rankdp.types import Floats, Longs

ITEMS = ("a", "b", "c")
_OTHERS = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("b", "a"), ("c", "b"))
_TOO_MANY = 4


def audit_board(
    method: str,
    protect: str,
    epsilon: Real,
    *,
    max_per_voter: int | None = None,
    delta: Real = 0,
    design: str = "chance",
    draws: int = 30_000,
    confidence: float = 0.99,
    through: str = "mechanism",
    release: Sampler | None = None,
    bits: Bits | None = None,
) -> StatisticalAudit:
    """Audit what ``rank`` releases by this method for this unit of protection.

    Parameters
    ----------
    method
        "bradley-terry", "wins" or "copeland".
    protect
        "comparison", "outcome" or "voter".
    epsilon
        What is claimed.
    max_per_voter
        How many comparisons of a voter count, where voters are protected.
    delta, draws, confidence
        As in ``audit_samples``.
    design
        As in ``rank``: with "any" the mechanism that is audited for secret designs is objective perturbation, else
        differences with what is released of the design.
    through
        "mechanism" draws from what ``rank`` draws from; "rank" calls ``rank`` itself for every draw.
    release
        Another implementation to audit on the same tables: a table of votes (winner, loser, voter) and a count in, so
        many rows of numbers out.
    bits
        Where draws take their randomness from; secure bits if not given.
    """
    one_of("method", method, METHODS)
    one_of("through", through, ("mechanism", "rank"))
    protection, source = Protection.of(protect, max_per_voter), bits or SecureBits()
    exact, loss = positive(epsilon), rational(delta, "delta")
    if release is None:
        build = board_draws if through == "mechanism" else board_calls
        release = build(method, protection, exact, loss, source, design)
    return audit_samples(
        release,
        neighbouring_votes(protection),
        draws=draws,
        claimed_epsilon=exact,
        delta=loss,
        confidence=confidence,
        name=f"{method} protecting {protection.protects}",
        describe=_described,
    )


def neighbouring_votes(protection: Protection) -> list[tuple[Any, Any]]:
    """Pairs of tables of votes (winner, loser, voter) that differ in one protected unit."""
    if protection.unit == "outcome":
        changes = [([("a", "b")], [("b", "a")])]
    elif protection.unit == "comparison":
        changes = [([("a", "b")], [("b", "a")]), ([("a", "b")], [("c", "b")])]
    else:
        many = _TOO_MANY * protection.moved
        changes = [([("a", "b")] * many, [("b", "a")] * many), ([("a", "b")] * many, [])]
    return [(_table(before), _table(after)) for before, after in changes]


def _table(said: list[tuple[str, str]]) -> Any:
    rows = [*_OTHERS, *said]
    voters = [f"other {number}" for number in range(len(_OTHERS))] + ["the one"] * len(said)
    return pa.table([*map(list, zip(*rows, strict=True)), voters], names=["winner", "loser", "voter"])


def _described(table: Any) -> str:
    said = [row for row in table.to_pylist() if row["voter"] == "the one"]
    if not said:
        return "votes without one voter"
    times = "" if len(said) == 1 else f" {len(said)} times"
    return f"votes with {said[0]['winner']} over {said[0]['loser']}{times}"


def board_draws(
    method: str, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits, design: str = "chance"
) -> Sampler:
    """What the mechanism behind ``rank`` draws from a table: [noisy number of comparisons,] noisy counts or scores."""
    spent = count_cost(protection, epsilon)

    def sampler(table: Any, count: int) -> Floats:
        votes = Comparisons.of(table, items=ITEMS)
        if protection.unit == "voter":
            votes = votes.bound(protection.moved)
        counts = votes.count()
        total = int(counts.halves.sum()) // 2
        if method == "copeland":
            leads = NoisyLeads(protection, epsilon - spent, delta)
            drawn = _many([(leads, leads.counted(counts))], count, bits)
        elif method == "wins" or protection.design_public:
            parts: list[tuple[NoisyCounts, Longs]] = [(NoisyWins(protection, epsilon - spent, delta), counts.half_wins)]
            drawn = _many(parts, count, bits)
        elif design != "any":
            parts, _ = SecretDesign(protection, epsilon - spent, delta, design).parts(counts, len(_OTHERS))
            drawn = _many(parts, count, bits)
        else:
            # A public idea of how many comparisons there are: here that of the other voters, the same on both sides.
            chosen = objective(len(ITEMS), len(_OTHERS), protection, epsilon - spent)
            drawn = np.stack([chosen.sample(counts, bits) for _ in range(count)])
        if spent:
            sizes = total + discrete_laplace(protection.moved * protection.steps / spent, count, bits)
            drawn = np.column_stack([sizes, drawn])
        return drawn

    return sampler


def _many(parts: list[tuple[NoisyCounts, Longs]], count: int, bits: Bits) -> Floats:
    """So many draws of all noisy counts together, one a row."""
    drawn = [noisy.sample(np.tile(counted, count), bits).reshape(count, -1) for noisy, counted in parts]
    return np.column_stack(drawn).astype(np.float64)


def board_calls(
    method: str, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits, design: str = "chance"
) -> Sampler:
    """One call of ``rank`` for every draw: the released scores in the order of the items, and the noisy number."""
    options: dict[str, Any] = {"protect": protection.unit, "method": method, "delta": delta, "design": design}
    if protection.unit == "voter":
        options["max_per_voter"] = protection.moved

    def scores_of(table: Any) -> list[float]:
        released = rank(table, epsilon, bits=bits, items=ITEMS, **options)
        scores = dict(zip(released.value.items, released.value.scores.tolist(), strict=True))
        size = released.provenance.parameters.get("noisy_comparisons")
        return [*([] if size is None else [float(size)]), *(scores[item] for item in ITEMS)]

    return lambda table, count: np.array([scores_of(table) for _ in range(count)])
