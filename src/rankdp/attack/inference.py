"""The inference attack (Xu, Section 4): N synthetic rankings of one secret ranking, and the most likely secret.

The attacker knows the mechanism and takes the ranking x that makes the releases y_1, …, y_N most likely,

    argmax over x of sum over i of log P(y_i | x).

For the Kendall mechanism this is Kemeny's ranking of the releases (docs/theory.md). For the others it is searched among
all rankings of up to seven items, where it is exact, and above by moving one item at a time from Kemeny's ranking for
as long as that helps, where it is not known to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism, as_orders
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.rankers.kemeny import kemeny
from rankdp.theory import kendall as theory
from rankdp.theory.kendall import rate
from rankdp.theory.permutations import all_permutations, moves

EXACT_UP_TO = 7
_TABLE_UP_TO = 6  # items up to which all pairs of rankings fit a table
_ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class Inference:
    """The ranking that the attacker takes for the secret one.

    No other is more likely by more than ``gap`` in log-likelihood: 0 where the search is ``exact``; else from Kemeny's
    bound, or from what the releases would have if each were the most likely output.
    """

    order: Orders
    log_likelihood: float
    exact: bool
    gap: float = 0.0


def infer(releases: ArrayLike, mechanism: RankingMechanism) -> Inference:
    """The most likely secret ranking behind several releases of it.

    Parameters
    ----------
    releases
        A row for each release: an order of the items 0, …, m-1, best first.
    mechanism
        The mechanism that drew all of them, with its epsilon; the attacker knows it.
    """
    orders = as_orders(np.atleast_2d(np.asarray(releases)), mechanism.items, "releases")
    if not len(orders):
        raise InputError("releases must hold at least one ranking, got none")
    seen, counts = np.unique(orders, axis=0, return_counts=True)
    cost = mechanism.disagreement_cost()
    if cost is not None or mechanism.items > EXACT_UP_TO:
        start = kemeny(_preferences(orders))
        if cost is not None:
            gap = 0.0 if start.exact else float(start.gap) * cost
            return Inference(start.order, _likelihood(mechanism, seen, counts, start.order), start.exact, gap)
        return _climb(mechanism, seen, counts, start.order)
    candidates = all_permutations(mechanism.items)
    likelihood = np.array([_likelihood(mechanism, seen, counts, secret) for secret in candidates])
    best = int(np.argmax(likelihood))
    return Inference(candidates[best], float(likelihood[best]), True)


def _likelihood(mechanism: RankingMechanism, seen: Orders, counts: NDArray[np.int64], secret: Orders) -> float:
    return float(counts @ mechanism.log_prob(seen, secret))


def _preferences(orders: Orders) -> NDArray[np.int64]:
    """How often i stands before j."""
    positions = np.argsort(orders, axis=1)
    return np.asarray((positions[:, :, None] < positions[:, None, :]).sum(axis=0))


def _climb(mechanism: RankingMechanism, seen: Orders, counts: NDArray[np.int64], start: Orders) -> Inference:
    """Move one item at a time, always the best move, while it helps."""
    best, value = np.asarray(start, dtype=np.int32), _likelihood(mechanism, seen, counts, start)
    steps = moves(mechanism.items)
    while True:
        values = [_likelihood(mechanism, seen, counts, best[step]) for step in steps]
        if max(values) <= value:
            itself = np.arange(mechanism.items)
            most = int(counts.sum()) * float(mechanism.log_prob(itself, itself)[0])
            return Inference(best, value, False, most - value)
        best, value = best[steps[int(np.argmax(values))]], max(values)


@dataclass(frozen=True, slots=True)
class Success:
    """How often the attacker found the whole secret, with a Wilson interval."""

    releases: int
    epsilon: float
    probability: float
    low: float
    high: float
    error_bound: float
    """The exact binomial tail behind Theorem 2, for Kendall: the attacker fails at least so often (NaN: unknown)."""
    paper_bound: float
    """Theorem 2 as it is printed, with its unknown constant taken as 1."""


def success_probability(
    mechanism: RankingMechanism, releases: int, repetitions: int = 1000, bits: Bits | None = None, level: float = 0.95
) -> Success:
    """How often the attack finds the secret, over fresh releases of it.

    The secret is 0, 1, …, m-1; by symmetry it does not matter which. Where k secrets are equally likely, a repetition
    counts 1/k if the right one is among them.

    Parameters
    ----------
    mechanism
        What draws the releases; for up to six items, because all rankings are tabulated.
    releases
        How many releases of the secret the attacker sees in each repetition.
    repetitions
        How many independent attacks are simulated.
    bits
        Where the draws come from; ``SeededBits(0)`` if not given, so that the result can be repeated.
    level
        Confidence of the Wilson interval, between 0 and 1.
    """
    m = mechanism.items
    if m > _TABLE_UP_TO:
        raise InputError(f"the attack is repeated for up to {_TABLE_UP_TO} items, got {m}")
    for name, value in (("releases", releases), ("repetitions", repetitions)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be an integer of at least 1, got {value!r}")
    table = _log_table(mechanism)
    bits, hits, done = bits or SeededBits(0), 0.0, 0
    while done < repetitions:
        some = min(repetitions - done, max(1, _ROWS_AT_A_TIME // releases))
        drawn = mechanism.sample(np.tile(np.arange(m, dtype=np.int32), (some * releases, 1)), bits)
        codes = _codes(drawn).reshape(some, releases) + math.factorial(m) * np.arange(some)[:, None]
        counts = np.bincount(codes.ravel(), minlength=some * math.factorial(m)).reshape(some, -1)
        likelihood = counts @ table.T
        top = likelihood >= likelihood.max(axis=1, keepdims=True) - 1e-9 * releases
        hits += float((top[:, 0] / top.sum(axis=1)).sum())
        done += some
    low, high = _wilson(hits / repetitions, repetitions, level)
    known = mechanism.disagreement_cost() == rate(m, float(mechanism.epsilon))  # the law that Theorem 2 is about
    eps = float(mechanism.epsilon)
    return Success(
        releases,
        eps,
        hits / repetitions,
        low,
        high,
        theory.reversal_tail(releases, m, eps) if known else math.nan,
        theory.theorem_2_bound(releases, m, eps) if known else math.nan,
    )


def success_curve(
    name: str,
    items: int,
    releases: Sequence[int],
    epsilon: float | str,
    repetitions: int = 1000,
    bits: Bits | None = None,
) -> list[Success]:
    """How often the attack finds the secret, for several numbers of releases.

    Parameters
    ----------
    name
        The mechanism, by its registered name.
    items
        The number m of ranked items, from 2 to 6.
    releases
        The numbers N of releases that the attacker sees.
    epsilon
        A number for every release; or "adaptive" for (m-1)/sqrt(N), or "adaptive-log" for (m-1) log(N)/sqrt(N), as in
        Figures 5 and 6 of Xu.
    repetitions
        How many independent attacks are simulated for each N.
    bits
        Where the draws come from; ``SeededBits(0)`` if not given.
    """
    curve, bits = [], bits or SeededBits(0)
    for count in releases:
        built = build(name, items, _epsilon(epsilon, items, count))
        assert isinstance(built, RankingMechanism)
        curve.append(success_probability(built, count, repetitions, bits.spawn()))
    return curve


def _epsilon(epsilon: float | str, items: int, releases: int) -> Any:
    if epsilon == "adaptive":
        return theory.adaptive_epsilon(releases, items)
    if epsilon == "adaptive-log":
        return theory.adaptive_epsilon(releases, items) * math.log(max(releases, 2))
    return epsilon


def _wilson(share: float, trials: int, level: float) -> tuple[float, float]:
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / (1 + z**2 / trials)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _log_table(mechanism: RankingMechanism) -> NDArray[np.float64]:
    """Row x, column y: log P(y | x), all rankings in lexicographic order."""
    m = mechanism.items
    logs = mechanism.log_prob(all_permutations(m), np.arange(m))
    return np.asarray(logs[_relative_codes(m)])


@lru_cache(maxsize=8)
def _relative_codes(items: int) -> NDArray[np.int64]:
    """Row x, column y: the code of the relative permutation s, y[j] = x[s[j]]."""
    every = all_permutations(items)
    inverse = np.argsort(every, axis=1).astype(np.int32)
    return np.stack([_codes(relabelling[every]) for relabelling in inverse])


def _codes(orders: NDArray[Any]) -> NDArray[np.int64]:
    """The index of each permutation in lexicographic order (Lehmer code)."""
    rows, m = orders.shape
    code = np.zeros(rows, dtype=np.int64)
    for position in range(m - 1):
        smaller = (orders[:, position + 1 :] < orders[:, position : position + 1]).sum(axis=1)
        code += smaller * math.factorial(m - 1 - position)
    return code
