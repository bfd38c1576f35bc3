"""Strengths from wins less losses, with the expected design in the place of the true one.

With N_ij the expected number of comparisons of i and j, the differences D_i = wins - losses have the mean sum_j N_ij
tanh((t_i - t_j)/2) in the Bradley-Terry model, and `fit_differences` solves

    sum_j N_ij tanh((t_i - t_j)/2) + 2 ridge t_i = D_i,

the gradient of a strictly convex function, by Newton's method. (It is twice the equation of `bradley_terry.fit_wins`:
there D and N belong together, here they need not.) D may be any numbers, as noise makes them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import positive
from rankdp.errors import InputError, Unsupported
from rankdp.types import Floats, Ints

_STEPS = 200
CLOSENESS = np.linspace(0, 6, 13)
"""Values of b in K_ij = exp(-b |t_i - t_j|) that are held for possible."""
_UNEVEN = np.append(0, 4 / 2.0 ** np.arange(8))  # v, the variance of degrees beyond that of chance, over their mean^2
_SHAPE = 0.02  # of a bucket's number: no kernel has exactly the shape that is supposed


def design_of_degrees(degrees: ArrayLike, kernel: Floats | None = None, tolerance: float = 1e-6) -> Floats:
    """The expected design of items that meet in proportion to how often each is compared: N_ij = a_i a_j K_ij.

    The popularities a are those for which the rows add up to the degrees, sum_(j != i) N_ij = d_i, as far as that is
    possible: an item cannot be compared more often than all others together.

    Parameters
    ----------
    degrees
        How many comparisons each item is expected to have, above 0.
    kernel
        How much more often than by chance each pair meets, K; 1 for all if not given.
    tolerance
        By what share of itself a row may add up to another number.
    """
    wanted = np.asarray(degrees, dtype=np.float64)
    wanted = np.minimum(wanted, 0.98 * (wanted.sum() - wanted))
    popularity = wanted / np.sqrt(wanted.sum())
    factor = np.ones((len(wanted), len(wanted))) if kernel is None else kernel.copy()
    np.fill_diagonal(factor, 0)
    for _ in range(100):
        reached = popularity * (factor @ popularity)
        popularity = popularity * np.sqrt(wanted / reached)  # halfway, in logarithms
        if (np.abs(reached - wanted) <= tolerance * wanted).all():
            break
    return np.asarray(factor * np.outer(popularity, popularity))


def buckets_of_gaps(expected: Floats, scores: Floats, buckets: int) -> Ints:
    """Of every pair, in the order of ``numpy.triu_indices``, its bucket by how close its scores are.

    Every bucket is expected to hold about the same number of comparisons.

    Parameters
    ----------
    expected
        The expected design.
    scores
        The strengths.
    buckets
        How many there are.
    """
    pairs = np.triu_indices(len(scores), 1)
    weights = expected[pairs] + 1e-12
    order = np.argsort(np.abs(scores[pairs[0]] - scores[pairs[1]]), kind="stable")
    bucket = np.empty(len(order), np.int32)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    bucket[order] = np.minimum(below * buckets, buckets - 1).astype(np.int32)
    return bucket


def closeness_by_gaps(
    degrees: Floats, truths: Floats, bucket: Ints, found: Floats, variance: float, comparisons: float
) -> Floats:
    """How likely noisy numbers of comparisons in buckets are, taken for normal, for each closeness: logarithms.

    Parameters
    ----------
    degrees
        How many comparisons each item is expected to have.
    truths
        Strengths that the items may have, in columns; what is expected of them is averaged.
    bucket
        The bucket of each pair, in the order of ``numpy.triu_indices``.
    found
        How many comparisons each of the first buckets seems to have.
    variance
        The variance of the noise on that.
    comparisons
        How many there are in all; those between the given items are taken for like the others.
    """
    pairs, logs = np.triu_indices(len(degrees), 1), np.zeros(len(CLOSENESS))
    for step, strength in enumerate(CLOSENESS):
        due = np.zeros(max(int(bucket.max()) + 1, len(found)))
        for truth in truths.T:
            design = design_of_degrees(degrees, kernel_of_gaps(truth, strength), _SHAPE / 20)
            due += np.bincount(bucket, design[pairs], len(due))
        due = due[: len(found)] * comparisons / max(due.sum(), 1e-12)
        spread = variance + due + np.square(_SHAPE * due)
        logs[step] -= (np.square(found - due) / spread + np.log(spread)).sum() / 2
    return logs


def closeness_by_size(differences: Floats, squares: Floats, noise: Floats, spreads: Floats) -> Floats:
    """How likely wins less losses are for each closeness and each spread of the strengths: logarithms.

    Items that met their equals win and lose about as often whatever their strengths, so that differences are smaller
    than the strengths' spread lets expect. D_i is taken for normal, of variance d_i^2 k(b, s^2) plus that of its noise;
    k is that of the even law of variance s^2.

    Parameters
    ----------
    differences
        Wins less losses of each item, with noise.
    squares
        The expected square of each item's degree.
    noise
        The variance of what is added to the expected differences: luck, and noise for privacy.
    spreads
        Variances that true strengths may have.
    """
    ratios = _mean_squares(tuple(spreads.tolist()))
    variances = ratios[..., None] * squares + noise
    return np.asarray(-(np.square(differences) / variances + np.log(variances)).sum(axis=2) / 2)


@cache
def _mean_squares(spreads: tuple[float, ...]) -> Floats:
    """(D_i/d_i)^2 by closeness and spread, on average over items of equal degrees and evenly spread strengths."""
    even, found = np.linspace(-1, 1, 41) * np.sqrt(3), np.empty((len(CLOSENESS), len(spreads)))
    for row, closeness in enumerate(CLOSENESS):
        for column, spread in enumerate(spreads):
            strengths = even * np.sqrt(spread)
            design = design_of_degrees(np.ones(len(even)), kernel_of_gaps(strengths, closeness))
            bent = np.tanh((strengths[:, None] - strengths) / 2)
            found[row, column] = np.square((design * bent).sum(axis=1)).mean()
    return found


def kernel_of_gaps(strengths: Floats, closeness: float) -> Floats:
    """K_ij = exp(-b |t_i - t_j|): how much more often than by chance items meet that are preferred when close.

    Parameters
    ----------
    strengths
        The strengths t.
    closeness
        b, 0 for no preference.
    """
    return np.asarray(np.exp(-closeness * np.abs(strengths[:, None] - strengths)))


def likely_degrees(noisy: ArrayLike, variance: float, comparisons: float) -> tuple[Floats, Floats]:
    """What noisy degrees say of the true ones: possible degrees, and for each item the chance of each.

    Degrees are taken for draws of a log-normal law, which has items that were compared far more than others, or of a
    power of an even one, which has items that joined late. All have the mean 2M/n, and a variance of v times its square
    beyond the 2M/n that mere chance gives, v = 0 or 1/32, 1/16, ..., 4, held to be 1/(1 + 4v) as likely as none. These
    18 laws are weighted by how likely each makes the noisy degrees. Small differences of noisy degrees are shrunk away
    in this manner, and none becomes negative.

    Parameters
    ----------
    noisy
        Degrees with noise.
    variance
        The variance of the noise.
    comparisons
        How many comparisons there are in all, M.
    """
    seen = np.asarray(noisy, dtype=np.float64)
    mean = max(2 * comparisons / len(seen), 1e-3)
    most = max(float(seen.max()), mean) + 2 * np.sqrt(variance) + 3 * np.sqrt(mean)
    grid = np.concatenate([np.geomspace(1e-3 * mean, 0.2 * mean, 40), np.linspace(0.2 * mean, most, 400)[1:]])
    logs = -np.abs(seen[:, None] - grid) * np.sqrt(2 / max(variance, 1.0))
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    laws = np.concatenate([_degree_laws(grid / mean, 1 / mean + uneven) for uneven in _UNEVEN.tolist()])
    laws *= np.gradient(grid)
    laws /= laws.sum(axis=1, keepdims=True)
    sums = np.maximum(likelihood @ laws.T, 1e-300)
    fits = np.log(sums).sum(axis=0) - np.repeat(np.log1p(4 * _UNEVEN), 2)
    weights = np.exp(fits - fits.max())
    chances = likelihood * ((weights / sums) @ laws)
    return grid, np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _degree_laws(ratios: Floats, spread: float) -> Floats:
    """The densities of degrees over their mean, up to a factor, by two laws of mean 1 and this variance."""
    shape, width, logs = 1 / spread, np.log1p(spread), np.log(ratios)
    power = shape / (np.sqrt(1 + shape) + 1)  # sqrt(1 + shape) - 1, above 0 also for the smallest shapes
    normal = -logs - np.square(logs + width / 2) / (2 * width)
    late = np.where(ratios <= 1 + 1 / power, (power - 1) * logs, -np.inf)
    return np.array([np.exp(law - law.max()) for law in (normal, late)])


def fit_differences(expected: Floats, differences: ArrayLike, ridge: ArrayLike, tolerance: float = 1e-9) -> Floats:
    """Strengths, higher is better, with mean 0.

    Parameters
    ----------
    expected
        The symmetric table N of expected comparisons, 0 on its diagonal.
    differences
        Wins less losses of each item.
    ridge
        The weight of t_i^2, above 0, which makes the solution exist and unique: one for all, or one for each item.
    tolerance
        No entry of the gradient exceeds this share of the sizes that are added up in it.
    """
    target = np.asarray(differences, dtype=np.float64)
    pull = np.broadcast_to(np.asarray(ridge, dtype=np.float64), target.shape)
    positive("ridge", float(pull.min()))
    if expected.shape != (len(target), len(target)):
        raise InputError(f"expected must be a table of {len(target)} rows and columns, got shape {expected.shape}")
    target = target - target.mean()  # the sum of true differences is 0: what noise adds to it says nothing
    close = tolerance * (1 + np.abs(target) + expected.sum(axis=1))
    theta, radius = np.zeros(len(target)), 4.0
    gradient, hessian = _slopes(expected, theta, pull, target)
    for _ in range(_STEPS):
        if (np.abs(gradient) <= close).all():
            return np.asarray(theta - theta.mean())
        move = -np.linalg.solve(hessian, gradient)
        longest = float(np.abs(move).max())
        length = min(1.0, radius / longest)
        slope, before = float(gradient @ move), theta
        for _ in range(60):  # the function is convex: its slope along the move says whether that was too long
            theta = before + length * move
            gradient, hessian = _slopes(expected, theta, pull, target)
            if float(gradient @ move) <= -0.5 * slope:
                break
            length /= 2
        radius = max(4.0, 4 * length * longest)
    raise Unsupported(f"the strengths did not settle within {_STEPS} Newton steps")


def _slopes(expected: Floats, theta: Floats, ridge: Floats, target: Floats) -> tuple[Floats, Floats]:
    """The gradient and the Hessian."""
    bent = np.tanh((theta[:, None] - theta) / 2)
    hessian = -expected * (1 - bent * bent) / 2
    hessian[np.diag_indices(len(theta))] = 2 * ridge - hessian.sum(axis=1)
    return (expected * bent).sum(axis=1) + 2 * ridge * theta - target, hessian
