"""What can be estimated without bias from synthetic positions, and at which public variance (docs/theory.md).

An item at original position a lands at b with the public law M[a, b]; a pair (a1, a2) lands on (b1, b2) with a public
law P. So the mean of a function h of synthetic positions is linear in the original ones, and an h with

    sum over b of P[(a1, a2), b] h(b) = 1 if a1 < a2, else 0        (pairs)
    sum over b of M[a, b] h(b) = a + 1                              (ranks)
    sum over b of M[a, b] h(b, p) = 1 if a = p, else 0              (shares)

averages over voters to the true win rate, mean rank or share. As h(b1, b2) + h(b2, b1) = 1, pairs need only the
operator on functions that change sign, m(m-1)/2 wide. Every pair of positions is hit by one pair, so the mean variance
over original pairs is the mean of (h - 1/2)^2, less 1/4, and the h of least norm has the least mean variance.

Where the operator is too close to singular for floating point, or where the caller allows some bias, h is the one to

    minimise ``||A h - target||^2 + ridge ||h||^2``    with the largest ridge that keeps every bias within the limit.

A bias of 1e-8 is far below any standard error and, next to a singular operator, can save most of the variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.theory.pair_laws import Floats, Moments, PairLaw, pairs

_EXACT_CONDITION = 1e12  # above, an exact solution would be rounding errors
_NO_BIAS = 1e-8  # what "unbiased" means there, for a target of size 1
_LEAST_RIDGE, _SMALLEST_SCALE = 1e-32, 1e-200  # a ridge is next to a squared singular value
_PAIRS_UP_TO = 1000  # tables of m x m numbers


class PublicLaw(Protocol):
    """What is public of a ranking mechanism."""

    items: int
    epsilon: Fraction

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def position_law_up_to(self) -> int | None:
        """The longest ranking whose position matrix is exact and in reach."""

    def position_matrix(self) -> Floats:
        """P(the item at original position a lands at b)."""

    def pair_law(self) -> PairLaw:
        """The same for two positions; refused where it is out of reach."""

    def unbiased_pairs(self) -> Moments | None:
        """A closed form, if one is known."""

    def unbiased_ranks(self) -> Moments | None:
        """A closed form, if one is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """A function of synthetic positions, what it costs and how exact it is: public numbers only."""

    values: Floats
    """h, by synthetic position(s)."""
    variances: Floats
    """The variance of one voter's h, by original position (ranks, shares) or pair of them (a list, a1 < a2)."""
    bias: float
    """The largest bias over all original positions; rounding apart, 0 where the linear system could be solved."""
    condition: float
    """The condition number of the linear system; 1 for a closed form."""

    @property
    def mean_variance(self) -> float:
        """Over all original positions or pairs: what the number of respondents must be proportional to."""
        return float(self.variances.mean())

    @property
    def largest_variance(self) -> float:
        """The worst case over all populations, without the variance between voters."""
        return float(self.variances.max())


@lru_cache(maxsize=256)
def pair_estimator(mechanism: PublicLaw, bias: float = 0.0) -> Estimator:
    """h(b1, b2) for "the first is preferred to the second", as an m x m table (1/2 on the diagonal).

    ``bias`` is the largest bias that is allowed, in exchange for variance; a closed form has none.
    """
    m, bias = mechanism.items, _checked(bias)
    if m > _PAIRS_UP_TO:
        raise Unsupported(f"win rates are estimated for up to {_PAIRS_UP_TO} items, got {m}")
    first, second = pairs(m)
    with np.errstate(all="ignore"):
        closed = mechanism.unbiased_pairs()
    if closed is not None:
        return _closed(mechanism, Moments(closed.values, closed.variances[first, second]))
    law = mechanism.pair_law()
    at = np.zeros((m, m), dtype=np.int64)
    at[first, second] = np.arange(len(first))
    fold = _Fold.of(law.signed(), at[m - 1 - second, m - 1 - first], 1)
    found = _solve(fold, np.full((len(first), 1), 0.5), bias, mechanism)
    score = found.solution[:, 0]
    mean = law.signed() @ score
    values = np.full((m, m), 0.5)
    values[first, second] += score
    values[second, first] -= score
    return Estimator(values, _positive(law.unsigned() @ score**2 - mean**2), found.bias, found.condition)


@lru_cache(maxsize=256)
def rank_estimator(mechanism: PublicLaw, bias: float = 0.0) -> Estimator:
    """h(b) for the rank, 1 for the best; ``bias`` is a share of the ranks' range m - 1."""
    m, bias = mechanism.items, _checked(bias)
    with np.errstate(all="ignore"):
        closed = mechanism.unbiased_ranks()
    if closed is not None:
        return _closed(mechanism, closed)
    law, middle = _position_law(mechanism), (m - 1) / 2
    fold = _Fold.of(law, np.arange(m)[::-1], -1)
    found = _solve(fold, (np.arange(m)[:, None] - middle) / (m - 1), bias, mechanism)
    score = found.solution[:, 0] * (m - 1)
    variances = _positive(law @ score**2 - (law @ score) ** 2)
    return Estimator(1 + middle + score, variances, found.bias * (m - 1), found.condition)


@lru_cache(maxsize=64)
def share_estimator(mechanism: PublicLaw, bias: float = 0.0) -> Estimator:
    """h(b, p) for "stands at position p", one column each: the inverse of the position matrix, if it has one."""
    m, law, bias = mechanism.items, _position_law(mechanism), _checked(bias)
    found = _solve(_Fold.none(law), np.eye(m), bias, mechanism, exact=bias == 0)
    variances = _positive(law @ found.solution**2 - (law @ found.solution) ** 2)
    return Estimator(found.solution, variances, found.bias, found.condition)


def _checked(bias: float) -> float:
    if isinstance(bias, bool) or not isinstance(bias, (int, float)) or not 0 <= bias < 0.5:
        raise InputError(f"bias must be a number from 0 to below 0.5, got {bias!r}")
    return float(bias)


def _position_law(mechanism: PublicLaw) -> Floats:
    most = mechanism.position_law_up_to
    if most is not None and mechanism.items > most:
        raise Unsupported(
            f"the exact law of a position of the {mechanism.name} mechanism is in reach for up to {most} items, "
            f"got {mechanism.items}"
        )
    return mechanism.position_matrix()


def _closed(mechanism: PublicLaw, found: Moments) -> Estimator:
    if not (np.isfinite(found.values).all() and np.isfinite(found.variances).all()):
        raise _hopeless(mechanism)
    return Estimator(found.values, found.variances, 0.0, 1.0)


def _hopeless(mechanism: PublicLaw) -> Unsupported:
    return Unsupported(
        f"the noise of the {mechanism.name} mechanism on {mechanism.items} items at epsilon "
        f"{float(mechanism.epsilon):g} cannot be undone: no function of synthetic positions has the right mean"
    )


def _positive(variances: Floats) -> Floats:
    return np.maximum(variances, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """A system that looks the same upside down, reduced to half its size, with norms kept.

    Turning rankings upside down changes no law of ours, so a target that is mirror-symmetric (sign 1) or changes sign
    (sign -1) has a solution of the same kind. Unknowns that are not alone count twice: hence the square roots.
    """

    matrix: Floats
    mirror: NDArray[np.int64]
    kept: NDArray[np.int64]
    roots: Floats
    sign: int

    @classmethod
    def of(cls, matrix: Floats, mirror: NDArray[np.int64], sign: int) -> _Fold:
        here = np.arange(len(matrix))
        if not np.allclose(matrix[np.ix_(mirror, mirror)], matrix, rtol=0, atol=1e-13):
            return cls.none(matrix)
        kept = np.flatnonzero(here <= mirror if sign > 0 else here < mirror)
        alone = mirror[kept] == kept
        folded = matrix[np.ix_(kept, kept)] + sign * matrix[np.ix_(kept, mirror[kept])] * ~alone
        roots = np.sqrt(2.0 - alone)[:, None]
        return cls(folded * roots / roots.T, mirror, kept, roots, sign)

    @classmethod
    def none(cls, matrix: Floats) -> _Fold:
        here = np.arange(len(matrix))
        return cls(matrix, here, here, np.ones((len(matrix), 1)), 1)

    def up(self, solution: Floats) -> Floats:
        whole = np.zeros((len(self.mirror), solution.shape[1]))
        whole[self.mirror[self.kept]] = self.sign * solution / self.roots
        whole[self.kept] = solution / self.roots
        return whole


@dataclass(frozen=True, slots=True)
class _Solved:
    solution: Floats
    bias: float
    condition: float


def _solve(fold: _Fold, target: Floats, bias: float, mechanism: PublicLaw, *, exact: bool = False) -> _Solved:
    """The smallest solution whose every bias is within the limit, column by column with one ridge."""
    left, sizes, right = np.linalg.svd(fold.matrix)
    condition = float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else math.inf
    if exact and condition > _EXACT_CONDITION:
        raise Unsupported(
            f"shares of positions cannot be told from {mechanism.name} rankings of {mechanism.items} items at epsilon "
            f"{float(mechanism.epsilon):g}: the condition number of their law is {condition:.0e}, above "
            f"{_EXACT_CONDITION:.0e}; allow some bias, or use mean ranks"
        )
    parts = left.T @ (target[fold.kept] * fold.roots)

    def ridged(ridge: float) -> Floats:
        return np.asarray(right.T @ ((sizes / (sizes**2 + ridge))[:, None] * parts))

    def worst(solution: Floats) -> float:
        return float(np.abs(fold.matrix @ solution / fold.roots - target[fold.kept]).max())

    if bias == 0 and condition <= _EXACT_CONDITION:
        solution = ridged(0.0)
    else:
        limit = max(bias, _NO_BIAS * float(np.abs(target).max()))
        solution = ridged(_largest(lambda ridge: worst(ridged(ridge)) <= limit, float(sizes[0]) ** 2, mechanism))
    return _Solved(fold.up(solution), worst(solution), condition)


def _largest(fits: Callable[[float], bool], scale: float, mechanism: PublicLaw) -> float:
    """The largest ridge that fits, by halving its logarithm; the bias grows with the ridge."""
    if scale < _SMALLEST_SCALE or not fits(scale * _LEAST_RIDGE):
        raise _hopeless(mechanism)
    low, high = math.log(scale * _LEAST_RIDGE), math.log(scale) + 2
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(math.exp(middle)) else (low, middle)
    return math.exp(low)
