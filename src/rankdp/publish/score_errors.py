"""What the true strengths may be, given released and public numbers: draws, for intervals and chances of the top.

A released score r obeys, to first order in t - r,

    J (t - r) + z + w = q,

with t the true strengths, z ~ N(0, H) the luck of outcomes, H the Fisher information of the true design, and w the
privacy noise. In maximum likelihood and objective perturbation with a ridge gamma, J is H and q is gamma r; where
differences D were fitted to an expected design, q = (D - sum_j N_ij tanh((r_i - r_j)/2))/2 with N the true one; where
the design depends on the strengths, so does J (``possible_designs``). Draws of t are had from draws t0 of a law of
covariance P held before, and of z and w, by Matheron's rule

    t = t0 + G (q + J r - J t0 - z - w),  G = P J' (J P J' + H + var w)^-1.

It is exact where all laws are normal; and whatever they are, q + J r - J t0 - z - w is then a draw of what the best
linear estimate leaves open, so that an interval holds as often as is stated, over boards. Held before is an even law
around 0 for each item, P = s^2 I. s^2 is itself drawn from what the released numbers leave possible, with log s^2 held
to be normal of deviation log 1.5, and s^2 to have the mean 1/3: where they say little, strengths are spread like the
even law on [-1, 1], give or take a fifth.

A design may know of the strengths: whom an item met says which items were about as strong, though not how far apart all
of them are. If that is a share c of their variance, along a shape v with sum v_i^2 = c n, then t0 is s (1 +- f) v and
an even law of variance (1 - c) s^2 for each item; P = s^2 ((1 - c) I + f^2 v v'), f = 0.3.

*What an interval means.* Over boards whose strengths are spread like that, and over the items of a board, the stated
share of the intervals hold the true strength, relative to the mean of all. Where the noise is small beside the spread
this is so for each item too. Where it is large, intervals are pulled to the middle: those of the best and the worst
items hold less often then, those of items in the middle more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from rankdp.types import Flags, Floats, Ints

SPREAD = 1 / 3
"""The variance that true log-strengths are expected to have: that of the even law on [-1, 1]."""
DRAWS = 4000
SPREADS = SPREAD * 1.5 ** np.linspace(-4, 12, 33)
"""Variances that true log-strengths may have."""
DEVIATION = math.log(1.5)
"""How far the logarithm of their variance is open."""
_FACTOR = 0.3  # f, how far a shape's size is open
_WHOLE_UP_TO = 400  # items: above, the spread is found from the information's diagonal


def plausible_strengths(
    scores: Floats,
    rests: Sequence[Floats],
    informations: Sequence[Floats],
    noise: Floats,
    luck: float = 1.0,
    slopes: Sequence[Floats] | None = None,
    shapes: Sequence[Floats] | None = None,
    spreads: Floats | None = None,
) -> Floats:
    """Draws of the true strengths, one row an item; NaN where nothing is known of an item.

    Parameters
    ----------
    scores
        The released scores r.
    rests, informations
        q and H for designs that the true one may be; for long lists the diagonals of H alone. Each is used for as many
        draws.
    noise
        Draws of the noise w on wins, one row an item.
    luck
        The variance of z, as a share of H.
    slopes
        J for each design; H if not given.
    shapes
        v for each design; 0 if not given.
    spreads
        s^2 for each design; drawn from what the first design leaves possible if not given.
    """
    random, variance = np.random.default_rng(0), noise.var(axis=1)
    groups, slopes = np.array_split(np.arange(noise.shape[1]), len(informations)), slopes or informations
    shapes = shapes or [np.zeros(len(scores))] * len(informations)
    if spreads is None:
        possible = spread_chances(scores, rests[0], slopes[0], informations[0], variance, luck)
        spreads = drawn_spreads(held_spreads(DEVIATION) + possible, len(groups), random)
    truths = np.empty(noise.shape)
    designs = zip(groups, rests, slopes, informations, shapes, spreads.tolist(), strict=True)
    for columns, rest, slope, information, shape, spread in designs:
        before = math.sqrt(3 * _free(shape)) * random.uniform(-1, 1, (len(scores), len(columns)))
        before = math.sqrt(spread) * (before + shape[:, None] * random.choice([1 - _FACTOR, 1 + _FACTOR], len(columns)))
        chance = _sampled(information, math.sqrt(luck) * random.standard_normal(before.shape))
        right = rest[:, None] + _times(slope, scores[:, None] - before) - chance - noise[:, columns]
        truths[:, columns] = before + spread * _gained(slope, spread, shape, luck * information, variance, right)
    truths += scores.mean() - truths.mean(axis=0)
    truths[~largest_part(informations[0])] = math.nan
    return truths


def held_spreads(deviation: float) -> Floats:
    """The logarithm of how likely each of ``SPREADS`` is held to be before: log-normal, of mean 1/3.

    Parameters
    ----------
    deviation
        That of log s^2.
    """
    logs = -np.square(np.log(SPREADS / SPREAD) / deviation + deviation / 2) / 2
    return np.asarray(logs - np.logaddexp.reduce(logs))


def spread_chances(
    scores: Floats, rest: Floats, slope: Floats, information: Floats, noise: Floats, luck: float
) -> Floats:
    """The logarithm of how likely each of ``SPREADS`` makes what was released, for one design.

    With J whole, J r + q ~ N(0, s^2 J J' + luck H + V) is whitened for all s at once.

    Parameters
    ----------
    scores, rest, slope, information, luck
        As in ``plausible_strengths``.
    noise
        The variance of the noise on each item's wins.
    """
    diagonal = information if information.ndim == 1 else np.diag(information)
    floor = 1e-9 * (1 + float(diagonal.max()))
    if information.ndim == 2 and len(scores) <= _WHOLE_UP_TO:
        signals, basis = eigh(slope @ slope.T, luck * information + np.diag(noise + floor))
        target = np.square(basis.T @ (slope @ scores + rest))
    else:
        variance = luck * diagonal + noise + floor
        signals, target = diagonal**2 / variance, np.square(diagonal * scores + rest) / variance
    total = 1 + SPREADS[:, None] * np.maximum(signals, 0)
    return np.asarray(-(np.log(total) + target / total).sum(axis=1) / 2)


def drawn_spreads(chances: Floats, count: int, random: np.random.Generator) -> Floats:
    """So many of ``SPREADS``, in random order: one from each of as many parts that are equally likely.

    Parameters
    ----------
    chances
        The logarithm of how likely each is.
    count
        How many.
    random
        Where the order comes from.
    """
    below = np.cumsum(np.exp(chances - chances.max()))
    parts = (random.permutation(count) + 0.5) / count
    return np.asarray(SPREADS[np.searchsorted(below, parts * below[-1])])


def design_count(items: int) -> int:
    """How many designs are drawn: fewer for long lists, whose matrices take their time."""
    return int(min(max(1e8 / items**3, 16 if items <= 300 else 2), 60))


def information_of(expected: Floats, curved: Floats) -> Floats:
    """The Fisher information of a symmetric table of comparisons, each of which is worth ``curved``.

    Parameters
    ----------
    expected
        How often each pair met.
    curved
        F'^2/(F (1 - F)) at the gap of each pair.
    """
    matrix = -expected * curved
    np.fill_diagonal(matrix, 0)
    matrix[np.diag_indices(len(matrix))] = -matrix.sum(axis=1)
    return np.asarray(matrix)


def largest_part(information: Floats) -> Flags:
    """The items of the largest part of a design with nothing between its parts; none where all are alone."""
    if information.ndim == 1:
        return np.asarray(information > 0)
    parts, part = _parts(information)
    return part == np.bincount(part).argmax() if parts < len(part) else np.zeros(len(part), dtype=np.bool_)


def _sampled(information: Floats, standard: Floats) -> Floats:
    """Draws of N(0, H) from standard normal ones."""
    if information.ndim == 1:
        return np.asarray(np.sqrt(information)[:, None] * standard)
    scale = 1e-10 * (1 + float(np.diag(information).max()))
    return np.asarray(np.linalg.cholesky(information + scale * np.eye(len(information))) @ standard)


def _times(information: Floats, right: Floats) -> Floats:
    return np.asarray(information[:, None] * right if information.ndim == 1 else information @ right)


def _gained(slope: Floats, spread: float, shape: Floats, luck: Floats, noise: Floats, right: Floats) -> Floats:
    """G/s^2 times the right-hand sides; a diagonal knows no shape."""
    if slope.ndim == 1:
        return np.asarray((slope / np.maximum(spread * slope**2 + luck + noise, 1e-300))[:, None] * right)
    free, open_ = _free(shape), _FACTOR * shape
    along = slope @ open_
    whole = spread * (free * slope @ slope.T + np.outer(along, along)) + luck + np.diag(noise)
    floor = 1e-12 * (1 + float(np.diag(whole).max()))
    solved = slope.T @ cho_solve(cho_factor(whole + floor * np.eye(len(whole))), right)
    return np.asarray(free * solved + np.outer(open_, open_ @ solved))


def _free(shape: Floats) -> float:
    """1 - c, the share of the variance that is along no shape."""
    return 1 - float(shape @ shape) / len(shape)


def _parts(matrix: Floats) -> tuple[int, Ints]:
    """How many parts with nothing between them the items fall into, and the part of each."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    parts, part = connected_components(csr_array(matrix != 0), directed=False)
    return int(parts), part
