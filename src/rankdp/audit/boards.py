"""Audits of leaderboards: every method of ``rank`` under every unit of protection.

A leaderboard is a function of what its mechanisms drew from the counted votes: noisy wins, a noisy table of pairs,
degrees, differences and residuals, or the minimiser of a perturbed objective. What is audited is that draw, made
thousands of times from tables of votes that are neighbours; reading, bounding each voter's contribution and counting
are the library's own and part of what is audited. ``through="rank"`` calls ``rank`` itself for every draw instead:
slower, and nothing is left out.

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
from rankdp.publish.board_estimators import HiddenDesign
from rankdp.publish.rank import METHODS, rank
from rankdp.types import Floats

ITEMS = ("a", "b", "c")
_OTHERS = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("b", "a"), ("c", "b"))
_TOO_MANY = 4
_STRENGTHS = np.array([0.5, 0.5, -1.0])  # of a, b and c: what residuals are taken at


def audit_board(
    method: str,
    protect: str,
    epsilon: Real,
    *,
    max_per_voter: int | None = None,
    delta: Real = 0,
    pairing: str = "unknown",
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
    pairing
        "unknown" audits what ``rank`` releases of three items with a hidden design, the table of pairs; "residuals"
        what it releases of many items, at fixed public strengths; "matched" objective perturbation.
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
        release = build(method, protection, exact, loss, source, pairing)
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
    method: str, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits, pairing: str = "unknown"
) -> Sampler:
    """What the mechanism behind ``rank`` draws from a table: noisy counts or scores."""
    hidden = HiddenDesign(protection, epsilon, delta, "matched" if pairing == "matched" else "unknown")

    def sampler(table: Any, count: int) -> Floats:
        votes = Comparisons.of(table, items=ITEMS)
        if protection.unit == "voter":
            votes = votes.bound(protection.moved)
        counts = votes.count()
        if method == "bradley-terry" and not protection.design_public and pairing == "matched":
            # A public idea of how many comparisons there are: here that of the other voters, the same on both sides.
            chosen = hidden.objective(len(ITEMS), len(_OTHERS))
            return np.stack([chosen.sample(counts, bits) for _ in range(count)])
        kinds: list[NoisyCounts] = [NoisyWins(protection, epsilon, delta)]
        if method == "copeland":
            kinds = [NoisyLeads(protection, epsilon, delta)]
        elif method == "bradley-terry" and not protection.design_public:
            kinds = hidden.residual_parts(_STRENGTHS) if pairing == "residuals" else [hidden.table()]
        drawn = [
            noisy.sample(np.tile(noisy.counted(counts), count), bits).reshape(count, -1) / noisy.noise_deviation
            for noisy in kinds
        ]
        return np.column_stack(drawn)

    return sampler


def board_calls(
    method: str, protection: Protection, epsilon: Fraction, delta: Fraction, bits: Bits, pairing: str = "unknown"
) -> Sampler:
    """One call of ``rank`` for every draw: the released scores in the order of the items."""
    options: dict[str, Any] = {"protect": protection.unit, "method": method, "delta": delta}
    if method == "bradley-terry":
        options["pairing"] = pairing
    if protection.unit == "voter":
        options["max_per_voter"] = protection.moved

    def scores_of(table: Any) -> list[float]:
        released = rank(table, epsilon, bits=bits, items=ITEMS, **options)
        scores = dict(zip(released.value.items, released.value.scores.tolist(), strict=True))
        return [scores[item] for item in ITEMS]

    return lambda table, count: np.array([scores_of(table) for _ in range(count)])
