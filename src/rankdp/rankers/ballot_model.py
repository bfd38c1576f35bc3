"""A table of ballots that agrees with noisy counts of prefixes, lengths and margins.

Everything here follows from released numbers. In three steps:

1. *Draw* a pool of ballots, place by place. The first three places follow the noisy prefixes: a cell y with noise of
   variance v is shrunk to mu + (y - mu) mu/(mu + v), where mu is the count of the prefix before it times the share of
   candidates who follow its last candidate in the same place on any ballot. Later places take the last of these shares
   for all places, and end as often as the noisy lengths say.
2. *Weigh* the pool: the weights w > 0 minimise

       sum of w log(w/w_0) - w  +  TRUST/2 sum over counts j of (a_j w - y_j)^2/v_j,

   w_0 being equal weights for all draws, a_j w the count that the table gives and y_j the noisy one. The solution is
   w_0 exp(sum of lambda_j a_j), found by L-BFGS in lambda, which is the dual problem (maximum entropy, with counts
   that are trusted only within their noise). TRUST = 1 would treat the model's error as that of a sample.
3. *Round*: put the ballots in order and let every one have the whole numbers that the running sum of weights passes,
   from a random start. Ballots that begin alike are adjacent, so every prefix is rounded by less than 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from rankdp.types import Floats, Ints, Longs

LEVELS = ("first", "second", "third")
MOST_BALLOTS = 10_000_000
"""In a table; noise on a secret number of ballots cannot make it longer."""
TRUST = 100.0
_DRAWS = 20_000, 100_000
_MOST_PAIRS = 12_000_000  # ordered pairs times ballots, for the memory
_ROUNDS = 200
_FARTHEST = 30.0  # the largest logarithm of a change of weight

Uniform = Callable[[int], Floats]
"""uniform(count): ``count`` numbers from 0 to 1."""


def synthetic_table(
    counts: Mapping[str, Longs | Floats], variances: Mapping[str, float], uniform: Uniform
) -> tuple[Ints, Longs]:
    """Distinct ballots in order, -1 after the last candidate of each, and how often each one occurs.

    Parameters
    ----------
    counts
        Noisy counts: "first", "second" and "third", tables of prefixes with a dimension for each place, in which the
        last index stands for a ballot's end; "lengths"; and "margins", an antisymmetric table.
    variances
        Of the noise in each of them.
    uniform
        Gives numbers from 0 to 1.
    """
    m, total = len(counts["first"]) - 1, _total(counts, variances)
    draws = min(max(2 * total, _DRAWS[0]), _DRAWS[1], _MOST_PAIRS // (m * m))
    pool, drawn = np.unique(_pool(counts, variances, draws, uniform), axis=0, return_counts=True)
    orders = np.where(pool == m, -1, pool).astype(np.int32)
    weights = _weigh(orders, drawn.astype(np.float64) * (total / draws), counts, variances)
    passed = np.floor(np.append(0.0, np.cumsum(weights)) * (total / weights.sum()) + uniform(1))
    cast = np.diff(passed).astype(np.int64)
    return orders[cast > 0], cast[cast > 0]


def _total(counts: Mapping[str, Longs | Floats], variances: Mapping[str, float]) -> int:
    """How many ballots rank someone: the sum of each histogram is an estimate, more precise with fewer cells."""
    sums = {part: int(cells.sum()) for part, cells in counts.items() if part != "margins"}
    surety = {part: 1 / (variances[part] * counts[part].size) for part in sums}
    estimate = sum(surety[part] * sums[part] for part in sums) / sum(surety.values())
    return min(max(1, round(estimate)), MOST_BALLOTS)


def prefix_cells(orders: Ints, candidates: int, depth: int) -> Longs:
    """The cell of every ballot's prefix, counted through the table of all prefixes of this depth."""
    ends = np.where(orders[:, :depth] < 0, candidates, orders[:, :depth]).astype(np.int64)
    cells: Longs = ends @ (candidates + 1) ** np.arange(depth - 1, -1, -1)
    return cells


def ballot_margins(orders: Ints, candidates: int) -> Longs:
    """What every ballot adds to each pair: 1 where the first candidate is ahead of the second, -1 if behind, or 0."""
    places = np.full((len(orders), candidates + 1), candidates)
    np.put_along_axis(places, orders.astype(np.int64), np.arange(orders.shape[1])[None, :], axis=1)
    first, second = np.triu_indices(candidates, 1)
    margins: Longs = np.sign(places[:, second] - places[:, first])  # the last column took the padding
    return margins


def _pool(counts: Mapping[str, Longs | Floats], variances: Mapping[str, float], draws: int, uniform: Uniform) -> Longs:
    """Ballots drawn place by place; m stands for the end."""
    levels = [counts[level].astype(np.float64) for level in LEVELS if level in counts]
    m = len(levels[0]) - 1
    lengths = np.maximum(counts["lengths"], 0) + 1.0
    ending = lengths / np.cumsum(lengths[::-1])[::-1]
    pool = np.full((draws, m), m, np.int64)
    free = np.ones((draws, m + 1), np.bool_)
    pool[:, 0] = _choose(np.tile(np.maximum(levels[0], 0.5) * (np.arange(m + 1) < m), (draws, 1)), uniform)
    for place in range(1, m):
        rows = np.flatnonzero(pool[:, place - 1] < m)
        free[rows, pool[rows, place - 1]] = False
        level = levels[min(place, len(levels) - 1)]
        follows = np.maximum(level.sum(axis=tuple(range(level.ndim - 2))), 1.0)
        shares = follows[pool[rows, place - 1]] * free[rows]
        if place >= len(levels):
            shares[:, m] = 0
            shares *= (1 - ending[place]) / shares.sum(axis=1, keepdims=True)
            shares[:, m] = ending[place]
        elif place > 1:
            before = tuple(pool[rows, :place].T)
            shares *= np.maximum(levels[place - 1][before], 1.0)[:, None] / shares.sum(axis=1, keepdims=True)
            seen = shares + (level[before] - shares) * shares / (shares + variances[LEVELS[place]])
            shares = np.maximum(seen, shares / 50)
        pool[rows, place] = _choose(shares, uniform)
    return pool


def _choose(shares: Floats, uniform: Uniform) -> Longs:
    """A column of each row, with probabilities in the proportion of its entries."""
    sums = shares.cumsum(axis=1)
    chosen: Longs = (sums <= uniform(len(shares))[:, None] * sums[:, -1:]).sum(axis=1)
    return chosen.clip(max=shares.shape[1] - 1)


def _weigh(pool: Ints, start: Floats, counts: Mapping[str, Longs | Floats], variances: Mapping[str, float]) -> Floats:
    """The weights of the second step."""
    m = len(counts["first"]) - 1
    blocks, observed, noise = [], [], []
    for part, seen in counts.items():
        if part == "margins":
            blocks.append(sparse.csr_matrix(ballot_margins(pool, m).astype(np.float64)))
            observed.append(seen[np.triu_indices(m, 1)])
        else:
            cells = (pool >= 0).sum(axis=1) if part == "lengths" else prefix_cells(pool, m, LEVELS.index(part) + 1)
            hit, column = np.unique(cells, return_inverse=True)
            ones = np.ones(len(pool))
            blocks.append(sparse.csr_matrix((ones, (np.arange(len(pool)), column)), shape=(len(pool), len(hit))))
            observed.append(seen.ravel()[hit])
        noise.append(np.full(len(observed[-1]), variances[part] / TRUST))
    features, target, variance = sparse.hstack(blocks, "csr"), np.concatenate(observed), np.concatenate(noise)
    across = features.T.tocsr()
    scale = 1 / np.sqrt(variance + abs(across) @ start)

    def weights(solution: Floats) -> Floats:
        moved: Floats = start * np.exp(np.clip(features @ (scale * solution), -_FARTHEST, _FARTHEST))
        return moved

    def dual(solution: Floats) -> tuple[float, Floats]:
        lam, table = scale * solution, weights(solution)
        return table.sum() - target @ lam + (variance * lam**2).sum() / 2, scale * (
            across @ table - target + variance * lam
        )

    options = {"maxiter": _ROUNDS, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-3}
    return weights(minimize(dual, np.zeros(len(target)), jac=True, method="L-BFGS-B", options=options).x)
