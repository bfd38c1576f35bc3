"""What can be estimated without bias from synthetic positions, and at which public variance (docs/theory.md).

An item at original position a lands at b with the public law M[a, b]; a pair (a1, a2) lands on (b1, b2) with a public
law P. So the mean of a function h of synthetic positions is linear in the original ones, and an h with

    sum over b of P[(a1, a2), b] h(b) = 1 if a1 < a2, else 0        (pairs)
    sum over b of M[a, b] h(b) = a + 1                              (ranks)

(where a mechanism releases public offsets, b is a cell: an offset and a tier)

averages over voters to the true win rate or mean rank. As h(b1, b2) + h(b2, b1) = 1, pairs need only the
operator on functions that change sign, m(m-1)/2 wide. Every pair of positions is hit by one pair, so the mean variance
over original pairs is the mean of (h - 1/2)^2, less 1/4, and the h of least norm has the least mean variance.

Where the operator is too close to singular for floating point, h is the one to

    minimise ``||A h - target||^2 + ridge ||h||^2``    with the largest ridge that keeps every bias within the limit.

A bias of 1e-8 is far below any standard error and, next to a singular operator, can save most of the variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from rankdp.errors import Unsupported
from rankdp.theory.pair_laws import Moments, PairLaw, mirrored, pairs
from rankdp.theory.quadrature import boundary
from rankdp.types import Floats, Longs

_EXACT_CONDITION = 1e12  # above, an exact solution would be rounding errors
_NO_BIAS = 1e-8  # what "unbiased" means there, for a target of size 1
_MOST_RANK_BIAS = 0.01  # of a rank, where the cuts of tiers leave no less
_RIDGES = 10.0 ** np.arange(-32, 2, 2)  # next to squared singular values
_SMALLEST_SCALE = 1e-200
_PAIRS_UP_TO = 1000  # tables of m x m numbers


class PublicLaw(Protocol):
    """What is public of a ranking mechanism."""

    items: int
    epsilon: Fraction

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def has_offsets(self) -> bool:
        """Whether a row is released with a public offset."""

    @property
    def position_law_up_to(self) -> int | None:
        """The longest ranking whose position matrix is exact and in reach."""

    @property
    def rank_targets(self) -> Floats:
        """The rank of each original position, from 0; positions that nothing tells apart share their mean."""

    def position_matrix(self) -> Floats:
        """P(the item at original position a lands at b)."""

    def cell_law(self) -> Floats:
        """P(the item at original position a lands in cell c); cells are positions where there are no offsets."""

    def pair_law(self) -> PairLaw:
        """The same for two positions; refused where it is out of reach."""

    def expected_concordance(self) -> float:
        """The expected share of pairs that keep their order."""

    def pair_slopes(self) -> Floats | None:
        """What it does to the order and the distance of two positions, where that is all that matters."""

    def unbiased_pairs(self) -> Moments | None:
        """A closed form, if one is known."""

    def unbiased_ranks(self) -> Moments | None:
        """A closed form, if one is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """A function of synthetic positions, what it costs and how exact it is: public numbers only."""

    values: Floats
    """h, by synthetic position(s); by cell where the mechanism has offsets."""
    variances: Floats
    """The variance of one voter's h, by original position (ranks) or pair of them (a list, a1 < a2)."""
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
def pair_estimator(mechanism: PublicLaw) -> Estimator:
    """h(b1, b2) for "the first is preferred to the second", as an m x m table (1/2 on the diagonal)."""
    m = mechanism.items
    if m > _PAIRS_UP_TO:
        raise Unsupported(f"win rates are estimated for up to {_PAIRS_UP_TO} items, got {m}")
    first, second = pairs(m)
    with np.errstate(all="ignore"):
        closed = mechanism.unbiased_pairs()
    if closed is not None:
        return _closed(mechanism, Moments(closed.values, closed.variances[first, second]))
    law = mechanism.pair_law()
    signed = law.signed()
    basis = symmetric_basis(signed, mirrored(m), 1)
    score, bias, condition = _solve(signed, np.full(len(first), 0.5), mechanism, basis)
    values = np.full((m, m), 0.5)
    values[first, second] += score
    values[second, first] -= score
    return Estimator(values, _variances(law.unsigned(), score, signed @ score), bias, condition)


@lru_cache(maxsize=256)
def rank_estimator(mechanism: PublicLaw) -> Estimator:
    """h(b) for the rank, 1 for the best."""
    m = mechanism.items
    with np.errstate(all="ignore"):
        closed = mechanism.unbiased_ranks()
    if closed is not None:
        return _closed(mechanism, closed)
    if reason := out_of_reach(mechanism):
        raise Unsupported(reason)
    law, middle = mechanism.cell_law(), (m - 1) / 2
    size = np.sqrt(m * law.mean(axis=0))
    basis = symmetric_basis((law / size**2) @ law.T, np.arange(m)[::-1], -1)
    target = (mechanism.rank_targets - middle) / (m - 1)
    least = _MOST_RANK_BIAS / (m - 1)
    share, bias, condition = _solve(
        law / size, target, mechanism, basis, cells=mechanism.has_offsets, most=least if mechanism.has_offsets else 0.0
    )
    score = share / size * (m - 1)
    return Estimator(1 + middle + score, _variances(law, score, law @ score), bias * (m - 1), condition)


def out_of_reach(mechanism: PublicLaw) -> str:
    """Why the law of a position is not exact, if it is not."""
    most = mechanism.position_law_up_to
    if most is None or mechanism.items <= most:
        return ""
    return (
        f"the exact law of a position of the {mechanism.name} mechanism is in reach for up to {most} items, "
        f"got {mechanism.items}"
    )


def _closed(mechanism: PublicLaw, moments: Moments) -> Estimator:
    if not (np.isfinite(moments.values).all() and np.isfinite(moments.variances).all()):
        raise _hopeless(mechanism)
    return Estimator(moments.values, moments.variances, 0.0, 1.0)


def _hopeless(mechanism: PublicLaw) -> Unsupported:
    return Unsupported(
        f"the noise of the {mechanism.name} mechanism on {mechanism.items} items at epsilon "
        f"{float(mechanism.epsilon):g} cannot be debiased: no function of synthetic positions has the right mean"
    )


def _variances(law: Floats, values: Floats, mean: Floats) -> Floats:
    return np.maximum(law @ values**2 - mean**2, 0)


def symmetric_basis(matrix: Floats, mirror: Longs, sign: int) -> Floats:
    """An orthonormal basis (columns) of what stays the same upside down (sign 1) or changes sign (sign -1).

    Turning rankings upside down changes no law of ours, so a target of one kind has a solution of the same kind.
    """
    here, whole = np.arange(len(matrix)), np.eye(len(matrix))
    if not np.allclose(matrix[np.ix_(mirror, mirror)], matrix, rtol=0, atol=1e-13):
        return whole
    basis = (whole + sign * whole[mirror])[:, here <= mirror if sign > 0 else here < mirror]
    return np.asarray(basis / np.linalg.norm(basis, axis=0))


def _solve(
    matrix: Floats, target: Floats, mechanism: PublicLaw, basis: Floats, *, cells: bool = False, most: float = 0.0
) -> tuple[Floats, float, float]:
    """The smallest solution whose every bias is within the limit, its largest bias, and the condition.

    ``basis`` spans what the target may be and, unless the columns are ``cells``, what the solution may be. Where no
    bias below 1e-8 of the target is possible, ``most`` is allowed.
    """
    within = np.eye(matrix.shape[1]) if cells else basis
    left, sizes, right = np.linalg.svd(basis.T @ matrix @ within, full_matrices=False)
    condition = float(sizes[0] / sizes[-1]) if sizes[-1] > 0 and len(sizes) == basis.shape[1] else math.inf
    parts = left.T @ (basis.T @ target)

    def ridged(ridge: float) -> Floats:
        return np.asarray(within @ (right.T @ (parts.T * (sizes / (sizes**2 + ridge))).T))

    def worst(ridge: float) -> float:
        return float(np.abs(matrix @ ridged(ridge) - target).max())

    ridge = 0.0
    if condition > _EXACT_CONDITION:
        scale, limit = float(sizes[0]) ** 2, _NO_BIAS * float(np.abs(target).max())
        ridges = scale * _RIDGES if scale >= _SMALLEST_SCALE else np.empty(0)
        found = [worst(low) for low in ridges]  # below, rounding errors outweigh what a smaller ridge gains
        least = min(found, default=math.inf)
        limit = limit if least <= limit else most
        if least > limit:
            raise _hopeless(mechanism)
        low = ridges[max(place for place, bias in enumerate(found) if bias <= limit)]
        ridge = math.exp(boundary(lambda log: worst(math.exp(log)) <= limit, np.log(low), np.log(100 * low), steps=14))
    return ridged(ridge), worst(ridge), condition
