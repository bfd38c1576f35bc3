"""Audits of mechanisms for ballots on small electorates.

*Exact*, for noise on scores and margins: what all other voters said is the same on both sides and falls
out of the difference. So every ballot of three or four items, complete or truncated, is counted by the library's own
counting and compared with every other (ballot), or with no ballot (voter). For a change d of the counts the largest
log P(x)/P(x + d) is looked for over outputs x of the K-norm noise around 0; the cyclic part of margins adds the l1 norm
of its change over the scale. The upper end of the interval leaves out the random sign, which can only help, and is a
rational.

*Exact*, for selections: the law of every electorate of up to five first places of three items against its neighbours,
in floating point, and the largest Rényi divergence over its order against the claimed rho of zCDP.

*Exact*, for the rounds of a runoff: given the tallies stated before, a round has Laplace noise on what each ballot adds
to it, so that its largest log-ratio is the l1 distance of that over the scale. Every ballot of three or four candidates
against every other, or none, along every way in which candidates can leave one after the other (put out, or of three
also elected with a third of the worth going on): the sum over the rounds, in rationals.

*Statistical*: releases from six ballots and one more, against its reverse (ballot) or without it (voter).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.audit.findings import ExactAudit, StatisticalAudit
from rankdp.audit.noise_laws import chi_squared, name_of
from rankdp.audit.statistical import audit_samples
from rankdp.checks import whole
from rankdp.data.ballots import SHARES, Ballots
from rankdp.errors import Unsupported
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.permutohedron import dilation_of
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.mechanisms.ballots.selection import PermuteAndFlip, TopSet
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.rankers.runoff import Piles
from rankdp.types import Floats, Longs

BallotMechanism = NoisyBorda | NoisyMargins | NoisyVotes | PermuteAndFlip | TopSet
Count = Callable[[Ballots], Longs]
"""What is counted from ballots before the noise: Borda scores, margins or votes."""

_TOLERANCE = 1e-9
_MOST_VOTES = 5
_ORDERS = (1.001, 1.1, 1.5, 2.0, 4.0, 16.0, 64.0)
_OTHERS = ("abc", "bca", "cab", "acb", "ba", "c")


def audit_electorates(
    mechanism: BallotMechanism, claimed: Fraction, draws: int, bits: Bits, count: Count | None = None
) -> ExactAudit:
    """The exact audit of a mechanism for ballots; ``count`` in the place of the counting that it is made for."""
    if isinstance(mechanism, (PermuteAndFlip, TopSet)):
        return _audit_selection(mechanism, claimed, draws, bits)
    if isinstance(mechanism, NoisyVotes) and not mechanism.delta:
        return _audit_rounds(mechanism, claimed, draws, bits)
    if mechanism.delta:
        raise Unsupported("Gaussian noise on ballots is audited by its samples: there is no exact audit of its delta")
    assert isinstance(mechanism, (NoisyBorda, NoisyMargins))
    scores = mechanism.scores if isinstance(mechanism, NoisyMargins) else mechanism
    m = whole("items", mechanism.items, 2, 4)
    outputs = _lattice(m, m + 2)
    here, turned = dilation_of(outputs), dilation_of(-outputs)
    log_here = np.logaddexp(-float(scores.rate) * here, -float(scores.rate) * turned)
    low, high, worst, changes = 0.0, Fraction(0), "", set()
    said = {ballots: _counted(mechanism, ballots, m, count) for ballots in [(), *_single_ballots(m)]}
    for one, other in itertools.product(said, repeat=2):
        if () not in (one, other) if mechanism.protection.unit == "voter" else () in (one, other):
            continue
        change = said[one] - said[other]
        if change.tobytes() in changes:
            continue
        changes.add(change.tobytes())
        cyclic = Fraction(0)
        if isinstance(mechanism, NoisyMargins):
            cyclic = _cyclic_change(change) / mechanism.scale if m > 2 else cyclic
            change = change.sum(axis=1)
        if change.sum():  # the noise adds up to 0: such a change is seen for certain
            return ExactAudit(name_of(mechanism), claimed, math.inf, math.inf, _against(one, other), "sums", 1)
        moved = outputs + scores.grid * change
        there, there_turned = dilation_of(moved), dilation_of(-moved)
        log_there = np.logaddexp(-float(scores.rate) * there, -float(scores.rate) * there_turned)
        steps = max(int((there - here).max()), int((there_turned - turned).max()))
        high = max(high, scores.rate * steps + cyclic)
        if (realised := float((log_here - log_there).max() + cyclic)) > low:
            low, worst = realised, _against(one, other)
    return ExactAudit(
        name_of(mechanism),
        claimed,
        Fraction(low) - Fraction(_TOLERANCE),
        high,
        worst,
        "the least dilations of its noise and counted ballots",
        len(changes) * len(outputs),
        _TOLERANCE,
        sampler_p_value=_noise_p_value(mechanism, scores, outputs, draws, bits) if draws else None,
    )


def audit_election(
    mechanism: BallotMechanism,
    *,
    claimed_epsilon: Real | None = None,
    draws: int = 30_000,
    confidence: float = 0.99,
    count: Count | None = None,
    bits: Bits | None = None,
) -> StatisticalAudit:
    """A statistical audit of a mechanism for ballots of three items.

    Parameters
    ----------
    mechanism
        Of ``rankdp.mechanisms.ballots``: for three items where it states their number, in whole votes for selections.
    claimed_epsilon
        What is claimed; the guarantee's if not given.
    draws
        The total number of draws.
    confidence
        Of the lower bound.
    count
        What is counted from ballots, in the place of the counting that the mechanism is made for.
    bits
        Where draws take their randomness from; secure bits if not given.
    """
    claimed = mechanism.guarantee.epsilon if claimed_epsilon is None else positive(claimed_epsilon, "claimed_epsilon")
    source, m = bits or SecureBits(), whole("items", _candidates(mechanism), 3, 3)

    def release(ballots: Sequence[str], size: int) -> Any:
        if isinstance(mechanism, NoisyVotes):
            return _stated(mechanism, ballots, size, source)
        counted = _counted(mechanism, ballots, m, count)
        if isinstance(mechanism, (PermuteAndFlip, TopSet)):
            return np.array([mechanism.sample(counted, source) for _ in range(size)])
        drawn: Any = mechanism.samples(counted, size, source)
        return drawn[(slice(None), *np.triu_indices(m, 1))] if isinstance(mechanism, NoisyMargins) else drawn

    turned = () if mechanism.protection.unit == "voter" else ("cba",)
    return audit_samples(
        release,
        [((*_OTHERS, "abc"), (*_OTHERS, *turned))],
        draws=draws,
        claimed_epsilon=claimed,
        delta=mechanism.guarantee.delta,
        confidence=confidence,
        name=name_of(mechanism),
        describe=" ".join,
    )


def _candidates(mechanism: BallotMechanism) -> int:
    if isinstance(mechanism, NoisyVotes):
        return mechanism.candidates
    return getattr(mechanism, "items", 3)


def _stated(mechanism: NoisyVotes, ballots: Sequence[str], size: int, bits: Bits) -> Floats:
    """What instant runoffs of three candidates state, one a row: tallies and exhausted votes, round after round."""
    table, stated = _table(ballots, 3), np.zeros((size, 4 * mechanism.rounds))

    def count(rows: Any, standing: Any, number: int) -> None:
        if number == mechanism.rounds or not len(rows):
            return
        noise = mechanism.noise(4 * len(rows), bits, number).reshape(-1, 4)
        # without transfers only the continuing candidates matter
        tallies = Piles(table, mechanism.unit).count(standing, {}) + noise
        stated[rows, 4 * number : 4 * number + 4] = np.where(np.append(standing, True), tallies / mechanism.unit, 0)
        last = 2 - np.where(standing, tallies[:, :3], np.iinfo(np.int64).max)[:, ::-1].argmin(axis=1)
        for item in np.flatnonzero(standing):
            count(rows[last == item], standing & (np.arange(3) != item), number + 1)

    count(np.arange(size), np.ones(3, np.bool_), 0)
    return stated


def _audit_rounds(mechanism: NoisyVotes, claimed: Fraction, draws: int, bits: Bits) -> ExactAudit:
    m, rounds = whole("items", mechanism.candidates, 2, 4), mechanism.rounds
    cast: list[tuple[str, ...]] = [(), ("",), *_single_ballots(m)]
    third = Fraction(1, 3)
    ways: tuple[_Leaving, ...] = ((None, False), (third, False), (third, True)) if m == 3 else ((None, False),)
    high, worst, cases = Fraction(0), "", 0
    for order in itertools.permutations(range(m), rounds - 1):
        for leaving in itertools.product(ways, repeat=rounds - 1):
            said = {ballot: _votes_along(mechanism.unit, ballot, m, order, leaving) for ballot in cast}
            for one, other in itertools.product(said, repeat=2):
                if () not in (one, other) if mechanism.protection.unit == "voter" else () in (one, other):
                    continue
                cases += 1
                moved = np.abs(said[one] - said[other]).sum(axis=1).tolist()
                loss = sum((Fraction(units) / mechanism.scale(r) for r, units in enumerate(moved)), Fraction(0))
                if loss > high:
                    high, worst = loss, _against(one, other)
    return ExactAudit(
        name_of(mechanism),
        claimed,
        high,
        high,
        worst,
        "the scales of its noise and counted ballots",
        cases,
        sampler_p_value=min(_votes_p_value(mechanism, r, draws, bits) for r in range(rounds)) if draws else None,
    )


_Leaving = tuple[Fraction | None, bool]
"""How a candidate leaves: out (None) or elected with a transfer value, and whether the transfer waits for a round."""


def _votes_along(unit: int, ballot: Sequence[str], m: int, order: Sequence[int], leaving: Sequence[_Leaving]) -> Longs:
    """What a ballot adds to each round, in units, while candidates leave in this order."""
    piles, standing, held = Piles(_table(ballot, m), unit), np.ones(m, np.bool_), np.zeros(m, np.bool_)
    rounds, waiting, transfers = [], dict[int, Fraction](), dict[int, Fraction]()
    for item, (value, later) in [*zip(order, leaving, strict=True), (None, (None, False))]:
        counted = piles.count(standing.copy(), transfers, held.copy())
        rounds.append(counted if ballot else np.zeros(m + 1, np.int64))
        transfers, waiting = waiting, {}
        held[list(transfers)] = False
        if item is not None:
            standing[item] = False
            if value is not None and later:
                waiting, held[item] = {item: value}, True
            elif value is not None:
                transfers[item] = value
    return np.array(rounds)


def _votes_p_value(mechanism: NoisyVotes, number: int, draws: int, bits: Bits) -> float:
    """Of fresh noise of a round in cells of half a scale; units are too fine for their grid to matter."""
    edges = np.arange(-8, 9) / 2
    cells = np.searchsorted(edges, mechanism.noise(draws, bits, number) / float(mechanism.scale(number)))
    below = np.where(edges < 0, np.exp(-np.abs(edges)) / 2, 1 - np.exp(-np.abs(edges)) / 2)
    return chi_squared(np.bincount(cells, minlength=len(edges) + 1), np.diff(below, prepend=0, append=1))


def _table(ballots: Sequence[str], m: int) -> Ballots:
    if tuple(ballots) == ("",):  # a ballot that ranks nobody
        nobody = np.full((1, m), -1, np.int32)
        return Ballots(tuple("abcd"[:m]), nobody, nobody >= 0, np.ones(1, np.int64))
    return Ballots.from_orders([list(ballot) for ballot in ballots] or [["a"]], items=list("abcd"[:m]))


def _counted(mechanism: BallotMechanism, ballots: Sequence[str], m: int, count: Count | None) -> Longs:
    """By the library's own counting; whole votes for selections, none where there is no ballot."""
    table = _table(ballots, m)
    if count is None and isinstance(mechanism, NoisyMargins):
        counted = table.margins()
    elif count is None and isinstance(mechanism, NoisyBorda):
        counted = table.centred_borda()
    elif count is None:
        counted = table.first_preferences() // SHARES
    else:
        counted = count(table)
    return counted if ballots else np.zeros_like(counted)


def _single_ballots(m: int) -> Iterator[tuple[str]]:
    """Every ballot, complete or truncated."""
    for length in range(1, m + 1):
        for order in itertools.permutations("abcd"[:m], length):
            yield ("".join(order),)


def _against(one: Sequence[str], other: Sequence[str]) -> str:
    return f"{' '.join(one) or 'no ballot'} against {' '.join(other) or 'no ballot'}"


def _cyclic_change(change: Longs) -> int:
    """The l1 norm of the cyclic part of a change of margins, times m, each pair once."""
    scores = change.sum(axis=1)
    return int(np.abs(len(change) * change - (scores[:, None] - scores)).sum()) // 2


def _lattice(m: int, reach: int) -> Longs:
    """Every integer vector of sum 0 with entries up to ``reach``."""
    free = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * (m - 1), indexing="ij"), axis=-1).reshape(-1, m - 1)
    points = np.column_stack([free, -free.sum(axis=1)])
    return np.asarray(points[np.abs(points[:, -1]) <= reach])


def _noise_p_value(
    mechanism: NoisyBorda | NoisyMargins, scores: NoisyBorda, outputs: Longs, draws: int, bits: Bits
) -> float:
    """Chi-squared of fresh noise on the outputs, and of the cyclic part, against their laws there."""
    reach = int(outputs.max())
    drawn = np.rint(scores.noise(draws, bits) * scores.grid).astype(np.int64)
    inside = drawn[np.abs(drawn).max(axis=1) <= reach]
    base = (2 * reach + 1) ** np.arange(mechanism.items)
    cells = np.searchsorted(np.sort(keys := (outputs + reach) @ base), (inside + reach) @ base)
    law = np.exp(-float(scores.rate) * dilation_of(outputs)) + np.exp(-float(scores.rate) * dilation_of(-outputs))
    p_value = chi_squared(np.bincount(cells, minlength=len(outputs)), law[np.argsort(keys)])
    if isinstance(mechanism, NoisyMargins) and mechanism.scale:
        far = math.ceil(8 * mechanism.scale)
        cyclic = mechanism.cyclic_noise(draws, bits)[:, 0, 1:].ravel()
        cyclic = cyclic[np.abs(cyclic) <= far]
        weights = np.exp(-np.abs(np.arange(-far, far + 1)) / float(mechanism.scale))
        p_value = min(p_value, chi_squared(np.bincount(cyclic + far, minlength=2 * far + 1), weights))
    return p_value


def _audit_selection(mechanism: PermuteAndFlip | TopSet, claimed: Fraction, draws: int, bits: Bits) -> ExactAudit:
    electorates = [
        np.array(votes) for votes in itertools.product(range(_MOST_VOTES + 1), repeat=3) if sum(votes) <= _MOST_VOTES
    ]
    laws = {tuple(votes.tolist()): _selection_law(mechanism, votes) for votes in electorates}
    low, rho, worst, cases = 0.0, 0.0, "", 0
    for one, other in itertools.product(laws, repeat=2):
        changes = sorted(b - a for a, b in zip(one, other, strict=True))
        if changes not in ([[0, 0, 1], [-1, 0, 0]] if mechanism.protection.unit == "voter" else [[-1, 0, 1]]):
            continue
        cases += len(laws[one])
        ratios = np.log(laws[one] / laws[other])
        if (largest := float(ratios.max())) > low:
            low, worst = largest, f"votes {one} against {other}"
        for order in _ORDERS:
            divergence = math.log(float((laws[other] * np.exp(order * ratios)).sum())) / (order - 1)
            rho = max(rho, divergence / order)
    p_value = None
    if draws:
        votes = np.array([2, 1, 0])
        outcomes = {outcome: cell for cell, outcome in enumerate(_outcomes(mechanism))}
        cells = [outcomes[tuple(np.ravel(mechanism.sample(votes, bits)).tolist())] for _ in range(draws)]
        p_value = chi_squared(np.bincount(cells, minlength=len(outcomes)), laws[2, 1, 0])
    return ExactAudit(
        name_of(mechanism),
        claimed,
        Fraction(low) - Fraction(_TOLERANCE),
        Fraction(low) + Fraction(_TOLERANCE),
        worst,
        "its formula",
        cases,
        _TOLERANCE,
        sampler_p_value=p_value,
        rho=float(mechanism.rho),
        rho_low=rho - _TOLERANCE,
    )


def _outcomes(mechanism: PermuteAndFlip | TopSet) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(3), mechanism.k if isinstance(mechanism, TopSet) else 1))


def _selection_law(mechanism: PermuteAndFlip | TopSet, votes: Longs) -> Floats:
    if isinstance(mechanism, PermuteAndFlip):
        return mechanism.probabilities(votes)
    held = np.array([np.isin(range(3), outcome) for outcome in _outcomes(mechanism)])
    losses = np.maximum(np.where(held, 0, votes).max(axis=1) - np.where(held, votes, _MOST_VOTES).min(axis=1), 0)
    weights = np.exp(-losses * float(mechanism.epsilon / (2 * mechanism.spread)))
    return np.asarray(weights / weights.sum())
