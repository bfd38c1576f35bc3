"""Debiased scores: functions of synthetic positions whose mean over the noise is the truth, and how much they vary.

Let A be the law of the noise on functions of positions (or of pairs of positions; A f(a) = E f(b)), t the truth as a
function of the original positions, minus its mean, and h = s(b) what one voter's row says. With N positions and n
voters who agree, which is the worst case for a bias,

    mean over items of (estimate - truth)^2 = (norm(As - t)^2 + (norm(s)^2 - norm(As)^2) / n) / N,

because over all items together every position is taken equally often: the second term, the variance of the noise, needs
no data. The best s is

    s = (A'A + lambda (1 - A'A))^-1 A' t,    lambda = 1/n.

lambda -> 0 is the unbiased estimate of least mean variance. It is taken wherever it exists. Where the law is not known
completely, or is singular, lambda = 1/n is taken, and the largest bias abs(As - t) is stated.

Groups of voters with different public laws (own epsilons, own tiers) and shares f_g of the voters are debiased
together. Information adds up: with R_g = 1 - A_g'A_g and B = sum of f_g A_g R_g^-1 A_g',

    s_g = R_g^-1 A_g' (lambda + B)^-1 t,

and no single A_g needs an inverse. (Derived here.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rankdp.errors import Unsupported
from rankdp.theory.estimators import PublicLaw, out_of_reach, symmetric_basis
from rankdp.theory.pair_laws import mirrored, pairs
from rankdp.types import Floats, Longs

_WORTH = 1.02  # times the least expected squared error: up to here the unbiased estimate is taken
_EXACT = 1e-6  # of the target: the largest bias that is called none
_LEAST_NOISE = 1e-6  # of a variance: any positive number leaves an estimate unbiased
_SINGULAR = 1e-11  # times the largest singular value: of directions that are not heard
_NOTHING = 1e-300
_UNHEARD = 1e-9  # times the mean slope: a row that says nothing
_DEAR = 1.25  # times V: unbiased estimates below it are drawn to the middle, above it directions are weighed
MATRICES_UP_TO = 1000  # items: a law of m x m numbers is taken apart


@dataclass(frozen=True, slots=True, eq=False)
class Debiasing:
    """What the rows of each group say: public numbers only."""

    scores: list[Floats]
    """By group: s, a function of the synthetic position(s)."""
    weights: Floats
    """By group: how much a row counts, 1 on average."""
    bias: float
    """The largest bias over all original positions, whatever the voters prefer."""
    unbiased: bool
    """Whether the bias is 0 up to rounding."""
    error: float
    """The expected root mean squared error."""
    spread: float
    """The root mean squared distance that true values are expected to have from their middle."""


class Family:
    """The estimates of one target from groups of voters, by how much evidence there is.

    Parameters
    ----------
    basis
        The functions of positions that matter, in orthonormal columns.
    laws
        By group: the law of the noise on them; rows are original positions, columns synthetic ones.
    shares
        By group: its share of the voters.
    target
        The truth as a function of the original position(s), minus its middle; one column for each number asked for.
    unknown
        Why the laws do not say all there is to know, if they do not: then any bias is possible.
    """

    def __init__(
        self, basis: Floats, laws: Sequence[Floats], shares: Sequence[float], target: Floats, *, unknown: str = ""
    ) -> None:
        self._basis, self._laws, self._shares, self.unknown, self.target = basis, laws, shares, unknown, target
        self._largest, self._coordinates = float(np.abs(target).max()), basis.T @ target
        self._svds = [np.linalg.svd(law) for law in laws]
        self._known: dict[float, Debiasing] = {}

    def debiased(self, voters: float) -> Debiasing:
        """The unbiased estimate of least mean variance; if there is none, the best for this many voters who agree."""
        if self._unbiased is None:
            return self.pulled(voters)
        return self._debiasing(self._unbiased, True, voters)

    def only_unbiased(self) -> Debiasing:
        """The unbiased estimate; refused where there is none."""
        if self._unbiased is None:
            raise Unsupported(
                self.unknown or "the noise cannot be debiased: no function of synthetic positions has the right mean"
            )
        return self._debiasing(self._unbiased, True, 1.0)

    def pulled(self, voters: float) -> Debiasing:
        """The estimate of least expected squared error for this many voters who agree: it is pulled to the middle."""
        if voters not in self._known:
            if self._unbiased is not None and self.price < _DEAR:
                share = voters / (voters + self.price * (1 / self.slope**2 - 1))
                whole = 1 / share <= _WORTH
                scores = self._unbiased if whole else [share * score for score in self._unbiased]
            else:
                scores, whole = self._solve(1 / voters), False
            self._known[voters] = self._debiasing(scores, whole, voters)
        return self._known[voters]

    @cached_property
    def slope(self) -> float:
        """How much of the target's size is left when the synthetic rankings are counted without debiasing."""
        means = (law @ self._coordinates for law in self._laws)
        sizes = [share * float(np.linalg.norm(mean)) for share, mean in zip(self._shares, means, strict=True)]
        return sum(sizes) / float(np.linalg.norm(self._coordinates))

    @cached_property
    def price(self) -> float:
        """The variance of the unbiased estimate over V, what it is if the noise is nothing but this slope."""
        if self._unbiased is None:
            return math.inf
        least = (1 / self.slope**2 - 1) * float((self._coordinates**2).sum()) / len(self._basis)
        return self._error(self._unbiased, 1.0) / max(least, _UNHEARD)

    @cached_property
    def _unbiased(self) -> list[Floats] | None:
        if self.unknown:
            return None
        found = self._solve(0.0)
        if len(found) > 1:  # once more for what rounding left
            more = self._solve(0.0, -self._residual(found))
            found = [one + other for one, other in zip(found, more, strict=True)]
        left = np.abs(self._basis @ self._residual(found)).max()
        return found if left <= _EXACT * self._largest else None

    def _solve(self, ridge: float, target: Floats | None = None) -> list[Floats]:
        """The module's formula for each group."""
        target = self._coordinates if target is None else target
        if len(self._svds) == 1:
            left, sizes, right = self._svds[0]
            gains = sizes / np.maximum(
                sizes**2 + ridge * np.maximum(1 - sizes**2, 0) + (_SINGULAR * sizes[0]) ** 2, _NOTHING
            )
            return [right.T @ (gains[:, None] * (left.T @ target))]
        gains_of = [sizes / np.maximum(1 - sizes**2, _LEAST_NOISE) for _, sizes, _ in self._svds]
        information = np.zeros((len(target), len(target)))
        for (left, sizes, _), gains, share in zip(self._svds, gains_of, self._shares, strict=True):
            information += share * (left * (sizes * gains)) @ left.T
        values, vectors = np.linalg.eigh(information)
        heard = np.maximum(ridge + np.maximum(values, _SINGULAR * values[-1]), _NOTHING)
        pulled = vectors @ ((vectors.T @ target) / heard[:, None])
        return [
            right.T @ (gains[:, None] * (left.T @ pulled))
            for (left, _, right), gains in zip(self._svds, gains_of, strict=True)
        ]

    def _means(self, scores: Sequence[Floats]) -> list[Floats]:
        return [law @ score for law, score in zip(self._laws, scores, strict=True)]

    def _residual(self, scores: Sequence[Floats]) -> Floats:
        parts = [share * mean for share, mean in zip(self._shares, self._means(scores), strict=True)]
        return np.asarray(np.sum(parts, axis=0) - self._coordinates)

    def _error(self, scores: Sequence[Floats], voters: float) -> float:
        """The expected squared error: the bias where voters agree, and the variance of the noise."""
        noise = sum(
            share * float((score**2).sum() - (mean**2).sum())
            for share, score, mean in zip(self._shares, scores, self._means(scores), strict=True)
        )
        bias = float((self._residual(scores) ** 2).sum())
        return (bias + max(noise, 0.0) / voters) / len(self._basis)

    def _debiasing(self, scores: list[Floats], unbiased: bool, voters: float) -> Debiasing:
        """Each group's s scaled to one slope against the truth, so that rows of all groups can be averaged."""
        size = float((self._coordinates**2).sum())
        slopes = np.array([float((mean * self._coordinates).sum()) / size for mean in self._means(scores)])
        slope = float(np.dot(self._shares, slopes))
        heard = slopes > _UNHEARD * slope
        factors = np.divide(slope, slopes, out=np.zeros_like(slopes), where=heard)
        left = float(np.abs(self._basis @ self._residual(scores)).max()) if not self.unknown else self._largest
        return Debiasing(
            [self._basis @ score * factor for score, factor in zip(scores, factors, strict=True)],
            np.where(heard, slopes, 0.0) / slope if slope > 0 else np.ones_like(slopes),  # or nothing is heard at all
            left,
            unbiased,
            math.sqrt(self._error(scores, voters)),
            math.sqrt(size / len(self._basis)),
        )


@lru_cache(maxsize=64)
def pair_family(mechanisms: tuple[PublicLaw, ...], shares: tuple[float, ...]) -> Family:
    """Of "the first of a pair is preferred", less 1/2: functions of b1 < b2, in the order of ``pairs``.

    Where the law of two positions is out of reach, the share of pairs kept in order is all that is used of it.
    """
    first, second = pairs(mechanisms[0].items)
    target = np.full((len(first), 1), 0.5)
    planes = [plane for mechanism in mechanisms if (plane := mechanism.pair_slopes()) is not None]
    if len(planes) == len(mechanisms) and len(first) > 1:
        basis, corner = np.linalg.qr(np.stack([np.ones(len(first)), second - first], axis=1))
        return Family(basis, [corner @ plane @ np.linalg.inv(corner) for plane in planes], shares, target)
    try:
        matrices = [mechanism.pair_law().signed() for mechanism in mechanisms]
    except Unsupported as reason:
        basis, _ = np.linalg.qr(np.stack([np.ones(len(first)), second - first], axis=1))
        return Family(basis, [_summary(mechanism) for mechanism in mechanisms], shares, target, unknown=str(reason))
    return _family(matrices, "", mirrored(mechanisms[0].items), 1, shares, target)


def _summary(mechanism: PublicLaw) -> Floats:
    """What happens to the order of a pair: it keeps this share of its size on average, with this variance.

    Far pairs keep their order more often than near ones, about in proportion to the distance, whose standard deviation
    is 0.7 times its mean.
    """
    kept = 2 * mechanism.expected_concordance() - 1
    return np.array([[kept, 0.0], [min(0.7 * kept, 1 - kept), 0.0]])


@lru_cache(maxsize=64)
def rank_family(mechanisms: tuple[PublicLaw, ...], shares: tuple[float, ...]) -> Family:
    """For the rank minus the middle one; functions of the position.

    Above 1,000 items the slope of the mean position is all that is used of a law, where no closed form says that it is
    all there is.
    """
    items = mechanisms[0].items
    target: Floats = (mechanisms[0].rank_targets - (items - 1) / 2)[:, None]
    closed = [moments.values for mechanism in mechanisms if (moments := mechanism.unbiased_ranks()) is not None]
    if len(closed) == len(mechanisms):
        slopes = [1 / float(values[1] - values[0]) for values in closed]
    elif items > MATRICES_UP_TO:
        slopes = [2 * mechanism.expected_concordance() - 1 for mechanism in mechanisms]
    else:
        return _family(*_position_laws(mechanisms), np.arange(items)[::-1], -1, shares, target)
    laws = [np.array([[slope]]) for slope in slopes]
    unknown = "" if closed else _too_long(mechanisms)
    return Family(target / np.linalg.norm(target), laws, shares, target, unknown=unknown)


def top_family(top: int) -> Callable[[tuple[PublicLaw, ...], tuple[float, ...]], Family]:
    """For "is among the first ``top``", minus top/m."""

    def family(mechanisms: tuple[PublicLaw, ...], shares: tuple[float, ...]) -> Family:
        items = mechanisms[0].items
        target = ((np.arange(items) < top) - top / items)[:, None].astype(np.float64)
        return _family(*_position_laws(mechanisms), np.arange(items), 0, shares, target)

    return family


@lru_cache(maxsize=64)
def share_family(mechanisms: tuple[PublicLaw, ...], shares: tuple[float, ...]) -> Family:
    """For "is at position p", minus 1/m, a column for each p."""
    items = mechanisms[0].items
    if items > MATRICES_UP_TO:
        raise Unsupported(f"shares of positions are estimated for up to {MATRICES_UP_TO} items, got {items}")
    return _family(*_position_laws(mechanisms), np.arange(items), 0, shares, np.eye(items) - 1 / items)


def _position_laws(mechanisms: Sequence[PublicLaw]) -> tuple[list[Floats], str]:
    """The laws of a position, and why they are not exact, if they are not."""
    return [mechanism.position_matrix() for mechanism in mechanisms], _too_long(mechanisms)


def _too_long(mechanisms: Sequence[PublicLaw]) -> str:
    return next(filter(None, map(out_of_reach, mechanisms)), "")


def _without_constants(items: int) -> Floats:
    """An orthonormal basis of what sums to 0: the noise leaves a constant alone, and no target of positions has one."""
    whole, _ = np.linalg.qr(np.column_stack([np.ones(items), np.eye(items)[:, 1:]]))
    return np.ascontiguousarray(whole[:, 1:])


def _family(
    matrices: Sequence[Floats], unknown: str, mirror: Longs, sign: int, shares: Sequence[float], target: Floats
) -> Family:
    """In the basis of what turning rankings upside down leaves alone (sign 1) or turns round (-1), if it does."""
    bases = [symmetric_basis(matrix, mirror, sign) for matrix in matrices] if sign else []
    small = bool(bases) and all(basis.shape[1] < len(mirror) for basis in bases)
    basis = bases[0] if small else np.eye(len(mirror)) if sign > 0 else _without_constants(len(mirror))
    return Family(basis, [basis.T @ matrix @ basis for matrix in matrices], shares, target, unknown=unknown)
