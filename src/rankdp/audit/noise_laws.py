"""Exact audits of noise on integers: score mechanisms on a small grid, and noisy wins.

The release is an integer (or a vector of them) plus noise of the law exp(-x(j)), of which ``x`` is rational or enclosed
by rationals. Neighbours shift the integer by t with ``|t| <= K``.

*Pure* claims: eps = max of x(j + t) - x(j) over ``|j| <= 4 K``. Nothing worse lies beyond: for Laplace noise the
difference is constant there, staircases repeat every K steps, and x is concave for generalised normal noise with
p <= 1.

*Claims with a delta*: delta(t) = sum over j of max(0, P(j) - e^eps P(j + t)) is summed between whole numbers up to
where weights are below 2^-200; x is convex (p >= 1), so beyond that the weights fall faster than a geometric series,
which bounds the rest.

*Noisy wins*: coordinates are independent and the difference of ``|y - g| - |y - h|`` is at most ``|g - h|``, so eps is
the largest l1 distance of neighbouring half-wins over the scale. The distance is found by counting every pair of
neighbouring tables of a few comparisons with the library's own counting.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.audit.findings import ExactAudit
from rankdp.checks import whole
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.grid import ScoreMechanism
from rankdp.mechanisms.scores.grid_noises import BallScores
from rankdp.mechanisms.scores.joint_staircase import JointStaircaseScores, ball_points
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import exp_bounds, exp_enclosure
from rankdp.types import Floats, Longs

_MOST_STEPS = 64
_BITS = 256
_NEGLIGIBLE = 140  # e^-140 < 2^-200
_FARTHEST = 1 << 15
_FEWEST_EXPECTED = 5


def audit_noise(
    mechanism: ScoreMechanism | NoisyCounts, claimed: Fraction, draws: int, bits: Bits, items: int
) -> ExactAudit:
    """The audit of either kind."""
    if isinstance(mechanism, NoisyCounts):
        return _audit_counts(mechanism, claimed, draws, bits, items)
    if mechanism.grid.steps > _MOST_STEPS:
        raise InputError(
            f"steps must be at most {_MOST_STEPS} for an exact audit (the law on a coarse grid is of the same family), "
            f"got {mechanism.grid.steps}"
        )
    return (_audit_delta if mechanism.delta else _audit_pure)(mechanism, claimed, draws, bits)


def _audit_pure(mechanism: ScoreMechanism, claimed: Fraction, draws: int, bits: Bits) -> ExactAudit:
    steps = mechanism.grid.steps
    reach = 4 * steps
    exponents = {j: mechanism.exponent(j, _BITS) for j in range(-reach - steps, reach + steps + 1)}
    low, high, where = Fraction(0), Fraction(0), (0, 0)
    for j, shift in itertools.product(range(-reach, reach + 1), range(-steps, steps + 1)):
        here, there = exponents[j], exponents[j + shift]
        high = max(high, there[1] - here[0])
        if there[0] - here[1] > low:
            low, where = there[0] - here[1], (j, shift)
    return ExactAudit(
        name_of(mechanism),
        claimed,
        low,
        high,
        f"noise of {where[0]} steps against {where[0] + where[1]}",
        "the exponents of its law",
        (2 * reach + 1) * (2 * steps + 1),
        sampler_p_value=_noise_p_value(mechanism, draws, bits),
    )


def _audit_delta(mechanism: ScoreMechanism, claimed: Fraction, draws: int, bits: Bits) -> ExactAudit:
    steps = mechanism.grid.steps
    low, high, rest = _weights(mechanism)
    shrink_low, shrink_high = exp_bounds(claimed, _BITS)  # e^-eps: compare e^-eps P(j) with P(j + t)
    one = 1 << _BITS
    least_whole, most_whole = sum(low), sum(high) + rest
    worst, delta_low, delta_high = 0, Fraction(0), Fraction(0)
    for shift in range(1, steps + 1):
        other_low, other_high = [0] * shift + low[:-shift], [0] * shift + high[:-shift]
        sure = sum(max(0, a * shrink_low - b * one) for a, b in zip(low, other_high, strict=True)) - rest * one
        most = sum(max(0, a * shrink_high - b * one) for a, b in zip(high, other_low, strict=True)) + rest * one
        found = Fraction(max(sure, 0), shrink_high * most_whole)
        if found > delta_low:
            delta_low, worst = found, shift
        delta_high = max(delta_high, Fraction(most, shrink_low * least_whole))
    return ExactAudit(
        name_of(mechanism),
        claimed,
        claimed,
        claimed,
        f"a shift of {worst} steps",
        "the exponents of its law",
        steps * len(low),
        delta=mechanism.delta,
        delta_low=delta_low,
        delta_high=min(delta_high, Fraction(1)),
        sampler_p_value=_noise_p_value(mechanism, draws, bits),
    )


def _weights(mechanism: ScoreMechanism) -> tuple[list[int], list[int], int]:
    """Enclosures of the weights of -W..W in units of 2^-256, and a bound of all that lies beyond."""
    if isinstance(mechanism, BallScores):
        if not mechanism.cube:
            raise Unsupported("a ball of finite p is drawn in floating point and has no exact law: audit its samples")
        inside = [1] * (2 * mechanism.reach + 1)
        return inside, inside, 0
    one_side = []
    for j in itertools.count():
        ends = mechanism.exponent(j, _BITS)
        one_side.append(exp_enclosure(*ends, _BITS))
        if ends[0] > _NEGLIGIBLE:
            break
        if j > _FARTHEST:
            raise Unsupported(f"an exact audit follows noise up to {_FARTHEST} steps: take fewer steps")
    _, last = one_side[-1]
    gap = mechanism.exponent(j + 1, _BITS)[0] - mechanism.exponent(j, _BITS)[1]  # x is convex: later gaps are larger
    ratio = exp_bounds(max(gap, Fraction(0)), _BITS)[1]
    rest = -(-2 * last * ratio // ((1 << _BITS) - ratio))
    both = one_side[:0:-1] + one_side
    return [low for low, _ in both], [high for _, high in both], rest


def _noise_p_value(mechanism: ScoreMechanism, draws: int, bits: Bits) -> float | None:
    """Chi-squared of fresh noise within some deviations against the law there."""
    if not draws:
        return None
    if isinstance(mechanism, BallScores):
        calls = -(-draws // (10 * mechanism.count))
        drawn, reach = np.concatenate([mechanism.noise(mechanism.count, bits) for _ in range(calls)]), mechanism.reach
    elif isinstance(mechanism, JointStaircaseScores):
        return _norm_p_value(mechanism, draws, bits)
    else:
        drawn, reach = mechanism.noise(draws, bits), min(_FARTHEST, math.ceil(5 * mechanism.deviation))
    logs = [-float(sum(mechanism.exponent(j, 53)) / 2) for j in range(-reach, reach + 1)]
    return _within(drawn, reach, np.exp(np.array(logs)))


def _norm_p_value(mechanism: JointStaircaseScores, draws: int, bits: Bits) -> float:
    """Chi-squared of the l1 norm of fresh noise: all vectors of one norm are equally likely."""
    calls = -(-draws // (10 * mechanism.count))
    norms = np.array([np.abs(mechanism.noise(mechanism.count, bits)).sum() for _ in range(calls)])
    reach = int(norms.max()) + 1
    balls = [0, *(ball_points(mechanism.count, radius) for radius in range(reach + 1))]
    logs = [math.log(b - a) - float(mechanism.exponent(m, 53)[0]) for m, (a, b) in enumerate(itertools.pairwise(balls))]
    return chi_squared(np.bincount(norms, minlength=reach + 1), np.exp(np.array(logs) - max(logs)))


def _within(drawn: Longs, reach: int, weights: Floats) -> float:
    inside = drawn[np.abs(drawn) <= reach] + reach
    return chi_squared(np.bincount(inside, minlength=2 * reach + 1), weights)


def chi_squared(observed: NDArray[Any], law: Floats) -> float:
    """The p-value of counts against a law, rare cells pooled; 0 where something impossible was seen."""
    from scipy.stats import chisquare

    if observed[law == 0].sum():
        return 0.0
    expected = law * (float(observed.sum()) / law.sum())
    pools = [np.zeros(2)]  # how many were seen and how many are due
    for cell in np.argsort(expected, kind="stable"):  # rare ones together until five are expected
        if pools[-1][1] >= _FEWEST_EXPECTED:
            pools.append(np.zeros(2))
        pools[-1] += observed[cell], expected[cell]
    if len(pools) > 1 and pools[-1][1] < _FEWEST_EXPECTED:
        pools[-2:] = [pools[-2] + pools[-1]]
    seen, due = np.transpose(pools)
    return float(chisquare(seen, due * (seen.sum() / due.sum())).pvalue) if len(pools) > 1 else 1.0


def _audit_counts(mechanism: NoisyCounts, claimed: Fraction, draws: int, bits: Bits, items: int) -> ExactAudit:
    if mechanism.delta:
        raise Unsupported("Gaussian noise on counts is audited by its samples: there is no exact audit of its delta")
    items = whole("items", items, 2, 4)
    farthest, tables, cases = 0, ("", ""), 0
    counted = cache(lambda rows: mechanism.counted(_pairs(rows, items)))
    for one, other in neighbouring_tables(mechanism.protection, items):
        change = counted(one) - counted(other)
        cases += 1
        if (distance := int(np.abs(change).sum())) > farthest:
            farthest, tables = distance, (_said(one), _said(other))
    realised = Fraction(farthest) / mechanism.scale
    reach = math.ceil(8 * mechanism.scale)
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(mechanism.scale))
    p_value = _within(mechanism.sample(np.zeros(draws, np.int64), bits), reach, weights) if draws else None
    return ExactAudit(
        name_of(mechanism),
        claimed,
        realised,
        realised,
        f"{tables[0]} against {tables[1]}",
        "the exponents of its law and counted tables",
        cases,
        sampler_p_value=p_value,
    )


_Table = tuple[tuple[int, int, int], ...]


def neighbouring_tables(protection: Protection, items: int) -> Iterator[tuple[_Table, _Table]]:
    """Every pair of what the protected unit can have said: rows (left, right, half-wins of the left).

    What all others said is the same on both sides and falls out of the difference.
    """
    rows = [(i, j, half) for i, j in itertools.combinations(range(items), 2) for half in (0, 1, 2)]
    if protection.unit == "voter":
        most = min(protection.moved, 2)  # beyond two, the extremes: the same row again and again
        said: list[_Table] = [
            part for size in range(most + 1) for part in itertools.combinations_with_replacement(rows, size)
        ]
        said += [(row,) * protection.moved for row in rows if protection.moved > 2]
        yield from itertools.product(said, said)
        return
    for one, other in itertools.product(rows, rows):
        if protection.unit == "comparison" or one[:2] == other[:2]:
            yield (one,), (other,)


def _pairs(rows: _Table, items: int) -> PairCounts:
    left, right, halves = zip(*rows, strict=True) if rows else ((), (), ())
    return PairCounts.from_pairs(left, right, halves, items=items)


def _said(rows: _Table) -> str:
    """In words: "1 beats 2"."""
    words: list[str] = []
    for (left, right, half), same in itertools.groupby(rows):
        count = len(list(same))
        verb = {2: "beats", 1: "ties with", 0: "loses to"}[half]
        words.append(f"{left + 1} {verb} {right + 1}{f' ({count} times)' if count > 1 else ''}")
    return ", ".join(words) or "nothing"


def name_of(mechanism: Any) -> str:
    """In words, for the report."""
    if isinstance(mechanism, ScoreMechanism):
        return f"{type(mechanism).__name__}({mechanism.grid.steps} steps)"
    return f"{type(mechanism).__name__}({mechanism.protection.protects}, epsilon={mechanism.guarantee.epsilon})"
