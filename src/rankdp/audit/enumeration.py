"""Exact audits: the realised epsilon of a discrete mechanism as an interval of rationals, by enumeration.

For a ranking mechanism of m <= 6 items every output s and every move c is tried,

    eps = max over s and c of log P(s)/P(c s),

(where rows are released with a public offset: for each offset, with the law given it)
with P between rationals that the mechanism reads off its sampler's own tables (``exact_law``): a table of cut points
decides a draw by enclosures of the weights of its cells, as sharp as is asked for, so the enclosures *are* the sampler.
Your own mechanism can offer the same by a method ``exact_law(bits)``: a pair (low, high) of rationals for every
relative order s in lexicographic order, ``output[j] = input[s[j]]``, up to a common factor. For noise on integers with
sensitivity K it is the largest ``x(j + t) - x(j)`` over ``|t| <= K``, where exp(-x) is the law; where a delta is
claimed, the delta realised at the claimed epsilon, sum over j of max(0, P(j) - e^eps P(j + t)), is enclosed instead.
For swapped labels it is the log-ratio of the two weights, kept and swapped.

Why it is valid: every rounding goes outwards, so the true epsilon of that law lies in the interval; a lower end above
the claim *proves* a violation. That the sampler draws that law at all is tested separately, by chi-squared on fresh
draws: a mechanism whose tables are right and whose draws are not is caught there. A mechanism that offers nothing but
``log_prob`` is audited from it, over all inputs, with a stated tolerance for floating point.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rankdp.audit.electorates import BallotMechanism, audit_electorates
from rankdp.audit.findings import ExactAudit
from rankdp.audit.noise_laws import audit_noise, chi_squared
from rankdp.checks import one_of, whole
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.rankings.contract import MOST_BITS, EnclosedLaw, RankingMechanism, relative_orders
from rankdp.mechanisms.registry import Protect
from rankdp.mechanisms.scores.grid import ScoreMechanism
from rankdp.mechanisms.votes.labels import SwappedLabels
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive
from rankdp.theory.permutations import all_permutations, moves, neighbour_places, places
from rankdp.types import Floats, Longs

MOST_ITEMS = 6
_BITS = 512
_DIGITS = 180


def audit_exact(
    mechanism: Any,
    *,
    items: int | None = None,
    claimed_epsilon: Real | None = None,
    protect: Protect = "position",
    tolerance: float = 1e-9,
    draws: int = 20_000,
    bits: Bits | None = None,
) -> ExactAudit:
    """Enumerate every output and every neighbour of a discrete mechanism.

    Parameters
    ----------
    mechanism
        A ranking mechanism of at most 6 items (ours, or any object with ``sample`` and either ``exact_law`` or
        ``log_prob``), a score mechanism on a grid of few steps, ``NoisyCounts``, ``SwappedLabels``, or a mechanism for
        ballots of at most 4 items.
    items
        How many items are ranked, where the mechanism has no such attribute.
    claimed_epsilon
        What is claimed; read from the mechanism's ``guarantee`` if not given.
    protect
        What a ranking mechanism's claim is about: with "position", rankings that differ by one moved item are
        neighbours; with "ranking", any two.
    tolerance
        For laws that are stated in floating point alone.
    draws
        Fresh draws that test whether the sampler follows the law; 0 leaves that out.
    bits
        Where those draws take their randomness from; secure bits if not given.
    """
    draws = whole("draws", draws, 0)
    one_of("protect", protect, get_args(Protect))
    claimed = claim_of(mechanism, claimed_epsilon, protect)
    source = bits or SecureBits()
    if isinstance(mechanism, (ScoreMechanism, NoisyCounts)):
        return audit_noise(mechanism, claimed, draws, source, 3 if items is None else items)
    if isinstance(mechanism, SwappedLabels):
        return _audit_labels(mechanism, claimed, draws, source)
    if isinstance(mechanism, BallotMechanism):
        return audit_electorates(mechanism, claimed, draws, source)
    count = whole("items", getattr(mechanism, "items", None) if items is None else items, 2, MOST_ITEMS)
    return _audit_rankings(mechanism, count, claimed, protect, tolerance, draws, source)


def claim_of(mechanism: Any, claimed_epsilon: Real | None, protect: Protect = "position") -> Fraction:
    """The epsilon that is claimed: said by the caller, or by the mechanism's guarantee."""
    if claimed_epsilon is not None:
        return positive(claimed_epsilon, "claimed_epsilon")
    guarantee = getattr(mechanism, "guarantee", None)
    if guarantee is None:
        raise InputError(Setting("claimed_epsilon"), " must be given for a mechanism without a guarantee")
    return Fraction((guarantee.to_local_dp() if protect == "ranking" else guarantee).epsilon)


def sampler_laws(mechanism: Any, items: int) -> list[EnclosedLaw]:
    """The enclosed laws of a right-invariant mechanism, one for each public offset, sharp for the smallest weight.

    None where there are none.
    """
    if not hasattr(mechanism, "exact_law"):
        return []
    bits = _BITS
    if isinstance(mechanism, RankingMechanism) and (bits := mechanism.bits_for(_BITS)) == MOST_BITS:
        raise Unsupported(
            f"an exact audit reads tables of up to {MOST_BITS} bits, too few for epsilon {float(mechanism.epsilon):g} "
            f"and {items} items"
        )
    laws = mechanism.exact_laws(bits) if _has_offsets(mechanism) else [mechanism.exact_law(bits)]
    if laws == [None]:
        return []
    for law in laws:
        if len(law) != math.factorial(items) or any(not 0 <= low <= high for low, high in law):
            raise InputError(
                f"exact_law must give a pair 0 <= low <= high for each of {math.factorial(items)} orders, "
                f"got {len(law)}"
            )
    return [[(Fraction(low), Fraction(high)) for low, high in law] for law in laws]


def _has_offsets(mechanism: Any) -> bool:
    return isinstance(mechanism, RankingMechanism) and mechanism.has_offsets


def _audit_rankings(
    mechanism: Any, items: int, claimed: Fraction, protect: Protect, tolerance: float, draws: int, bits: Bits
) -> ExactAudit:
    orders, neighbours = all_permutations(items), neighbour_places(items)
    cases, slack, basis = neighbours.size, 0.0, "the exact law of its sampler"
    if protect == "ranking":
        cases = len(orders) * (len(orders) - 1)
    low: Fraction | float
    high: Fraction | float
    laws = sampler_laws(mechanism, items)
    if not laws:
        if not hasattr(mechanism, "log_prob"):
            raise InputError(
                f"mechanism must have exact_law, log_prob or tables of its own for an exact audit, got {mechanism!r}"
            )
        basis, slack = f"its log-probabilities, to within {tolerance:g}", tolerance
        if isinstance(mechanism, RankingMechanism):  # the same law for every input
            stated = np.exp(_stated(mechanism, orders[:1], orders)[0]).tolist()
            laws = [[(Fraction(p * math.exp(-slack / 2)), Fraction(p * math.exp(slack / 2))) for p in stated]]
    offset = ""
    if laws:
        found = [worst_ratio(law, neighbours if protect == "position" else _least_likely(law)) for law in laws]
        worst_at = max(range(len(found)), key=lambda number: found[number][0])
        low, high, (output, other) = found[worst_at][0], max(high for _, high, _ in found), found[worst_at][2]
        expected = np.concatenate([_normalised(law) for law in laws]) / len(laws)
        inputs = orders[0], _input_of(orders[output], orders[other])
        offset = f" at offset {worst_at}" if len(laws) > 1 else ""
        cases *= len(laws)
    else:
        logs = _stated(mechanism, orders, orders)
        worst, first, second, output = _worst_stated(logs, items, protect)
        low, high, expected = max(0.0, worst - slack), worst + slack, np.exp(logs[0])
        inputs = orders[first], orders[second]
        cases *= len(logs)
    names = [" ".join(str(item + 1) for item in order) for order in (*inputs, orders[output])]
    words = f"inputs {names[0]} and {names[1]}, output {names[2]}{offset}"
    p_value = _sampler_p_value(mechanism, items, expected, draws, bits) if draws else None
    return ExactAudit(
        f"{mechanism!r}", claimed, low, high, words, basis, cases, tolerance=slack, sampler_p_value=p_value
    )


def _audit_labels(mechanism: SwappedLabels, claimed: Fraction, draws: int, bits: Bits) -> ExactAudit:
    """A released label is the true one kept or the other one swapped: the two weights against each other."""
    weights = mechanism.exact_law(min(MOST_BITS, _BITS + 2 * math.ceil(mechanism.epsilon)))
    law = [(Fraction(low), Fraction(high)) for low, high in zip(weights.low, weights.high, strict=True)]
    low, high, (output, _) = worst_ratio(law, np.array([[1], [0]]))
    p_value = None
    if draws:
        p_value = chi_squared(np.bincount(mechanism.swapped(draws, bits), minlength=2), _normalised(law))
    return ExactAudit(
        f"{type(mechanism).__name__}(epsilon={mechanism.epsilon})",
        claimed,
        low,
        high,
        f"a label that was {('kept', 'swapped')[output]}",
        "the exact law of its sampler",
        len(law),
        sampler_p_value=p_value,
    )


def _least_likely(law: EnclosedLaw) -> Longs:
    """For every order, the candidates for the least likely one: the worst ratio of any two involves one of them."""
    ends = [min(range(len(law)), key=lambda place: law[place][end]) for end in (0, 1)]
    return np.tile(np.array(ends), (len(law), 1))


def _input_of(output: NDArray[Any], relative: NDArray[Any]) -> NDArray[Any]:
    """The input x of which ``output`` has this relative order: output[j] = x[relative[j]]."""
    order = np.empty_like(output)
    order[relative] = output
    return order


def worst_ratio(law: EnclosedLaw, neighbours: Longs) -> tuple[Fraction | float, Fraction | float, tuple[int, int]]:
    """Bounds of the largest log-ratio of neighbouring probabilities, and where it is."""
    least: Fraction | float = Fraction(1)
    most: Fraction | float = Fraction(1)
    where = (0, 0)
    for s, others in enumerate(neighbours.tolist()):
        low, high = law[s]
        for other in others:
            other_low, other_high = law[other]
            if least != math.inf and low > least * other_high:
                least, where = Fraction(low) / other_high if other_high else math.inf, (s, other)
            if most != math.inf and high > most * other_low:
                most = Fraction(high) / other_low if other_low else math.inf
    ends = (
        bound if bound == math.inf else log_bounds(Fraction(bound))[end] if bound > 1 else Fraction(0)
        for end, bound in enumerate((least, most))
    )
    return *ends, where  # type: ignore[return-value]


def log_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around log(value), for value > 0, at most 1e-170 (1 + log) apart.

    The quotient is off by a relative 10^-179, so its logarithm by as much, and rounding that by a unit in its last
    place: a hundred such units outwards are enough, also where the logarithm is 0.
    """
    with decimal.localcontext(decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)) as context:
        logarithm = (Decimal(value.numerator) / Decimal(value.denominator)).ln(context)
    unit = Fraction(10) ** (max(logarithm.adjusted(), 0) + 3 - _DIGITS)
    return Fraction(logarithm) - unit, Fraction(logarithm) + unit


def _stated(mechanism: Any, inputs: NDArray[Any], outputs: NDArray[Any]) -> Floats:
    """log P(output | input), a row for each input."""
    logs = np.stack([np.asarray(mechanism.log_prob(outputs, order), dtype=np.float64) for order in inputs])
    if logs.shape != (len(inputs), len(outputs)) or np.isnan(logs).any():
        raise InputError(f"log_prob must give a number for each of {len(outputs)} outputs, got {logs.shape[1:]} or nan")
    return logs


def _worst_stated(logs: Floats, items: int, protect: Protect) -> tuple[float, int, int, int]:
    """The largest log P(y | x)/P(y | x'), x' being x after a move or any ranking, and the x, x' and y it is at."""
    if protect == "ranking":
        gaps = logs.max(axis=0) - logs.min(axis=0)
        output = int(np.argmax(gaps))
        return float(gaps[output]), int(np.argmax(logs[:, output])), int(np.argmin(logs[:, output])), output
    orders = all_permutations(items)
    best = (-math.inf, 0, 0, 0)
    for move in moves(items):
        others = places(orders[:, move])
        with np.errstate(invalid="ignore"):
            gaps = logs - logs[others]
        gaps[np.isnan(gaps)] = -math.inf  # an output that neither of two inputs can have says nothing
        first, output = (int(place) for place in np.unravel_index(int(np.argmax(gaps)), gaps.shape))
        best = max(best, (float(gaps[first, output]), first, int(others[first]), output))
    return best


def _normalised(law: EnclosedLaw) -> Floats:
    total = sum(low + high for low, high in law)
    return np.array([float((low + high) / total) for low, high in law])


def _sampler_p_value(mechanism: Any, items: int, law: Floats, draws: int, bits: Bits) -> float:
    """Chi-squared of draws (with their offsets) from two inputs against the law, the smaller p-value doubled."""
    found = []
    invariant = isinstance(mechanism, RankingMechanism) or hasattr(mechanism, "exact_law")
    for order in (np.arange(items), np.arange(items)[::-1])[: 2 if invariant else 1]:
        given = np.tile(order, (draws, 1))
        offsets: Any = 0
        if _has_offsets(mechanism):
            drawn, offsets = mechanism.sample_with_offsets(given, bits)
        else:
            drawn = np.asarray(mechanism.sample(given, bits))
        cells = places(relative_orders(drawn.astype(np.int32), given.astype(np.int32)))
        cells += offsets * math.factorial(items)
        found.append(chi_squared(np.bincount(cells, minlength=len(law)), law))
    return min(1.0, len(found) * min(found))
