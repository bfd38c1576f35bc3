"""The mean loss over all pairs of all users, as a function of a linear model's parameters.

With item features Y (m x q) and user features X (n x p) the scores are

    F = 1 b' Y' + X W Y'        (b in R^q, W in R^(p x q)),

and if G is the derivative by every score, those by b and W are Y' G' 1 and X' G Y. So one pass computes chunks of F,
their G in a kernel, and two small products: O(users x pairs), no pair is stored, and all cores work.

Without W every user has the same scores, and the data collapse to what the users say together: A[i, j], the sum of the
labels for "i above j". Then a pass is O(m^2), whatever the number of users.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from rankdp.errors import Unsupported
from rankdp.learn.labels import Labels
from rankdp.learn.losses import Loss
from rankdp.types import Floats

Part = tuple[float, Floats, Floats]

CURVE_USERS = 20_000  # whose accuracy is looked at after every epoch
_CELLS = 1 << 17  # scores in one chunk


class Objective(Protocol):
    """What training needs to know."""

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """The mean loss over pairs and its gradient."""
        ...

    def accuracy(self, parameters: Floats) -> float:
        """The share of pairs in order by the labels; NaN where pairs are out of reach."""
        ...

    def spread(self, parameters: Floats) -> float:
        """The largest difference between two scores of one user."""
        ...


def score_pass(scores: Floats, labels: Labels, loss: Loss, gradient: Floats) -> float:
    """The weighted sum of the loss over the pairs of these users; writes its derivative by every score."""
    from rankdp.learn.training_kernels import labelled_pass, logistic_pass

    shared = (scores, labels.orders, labels.groups, labels.lengths, labels.weights)
    if loss.name == "logistic":
        return logistic_pass(*shared, labels.wins, gradient)
    if labels.tables is None:
        raise Unsupported(f"the {loss.name} loss needs labels of pairs, which are out of reach here: use logistic")
    return labelled_pass(loss.code, *shared, labels.tables, gradient)


def score_accuracy(scores: Floats, labels: Labels) -> float:
    """The share of pairs in order by the labels; unbiased for the true order where the labels are."""
    from rankdp.learn.training_kernels import accuracy_pass

    if labels.tables is None:
        return float("nan")
    right = accuracy_pass(scores, labels.orders, labels.groups, labels.lengths, labels.weights, labels.tables)
    return float(right / labels.total)


class PerUser:
    """Scores that differ from user to user."""

    def __init__(self, labels: Labels, users: Floats, items: Floats, loss: Loss) -> None:
        self.labels, self.users, self.items, self.loss = labels, users, items, loss
        self.total = labels.total
        rows = max(1, _CELLS // max(len(items), users.shape[1], 1))
        self.chunks = [slice(start, start + rows) for start in range(0, len(users), rows)]

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Chunk by chunk; the sums do not depend on how many threads there are."""
        common, own = self._split(parameters)
        parts = self._over_chunks(lambda chunk: self._part(chunk, common, own))
        value = sum(part[0] for part in parts) / self.total
        gradient = np.concatenate([sum(p[1] for p in parts), sum(p[2] for p in parts)], axis=None) / self.total
        return float(value), gradient

    def _part(self, chunk: slice, common: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        users, labels = self.users[chunk], self._labels(chunk)
        scores = np.ascontiguousarray((users @ own + common) @ self.items.T)
        gradient = np.empty_like(scores)
        value = score_pass(scores, labels, self.loss, gradient)
        by_feature = gradient @ self.items
        return value, by_feature.sum(axis=0), users.T @ by_feature

    def accuracy(self, parameters: Floats) -> float:
        """Of the first users: a curve needs no more."""
        common, own = self._split(parameters)
        first = slice(0, CURVE_USERS)
        return score_accuracy((self.users[first] @ own + common) @ self.items.T, self._labels(first))

    def spread(self, parameters: Floats) -> float:
        """Over the same chunks."""
        common, own = self._split(parameters)
        return float(max(np.ptp((self.users[c] @ own + common) @ self.items.T, axis=1).max() for c in self.chunks))

    def _split(self, parameters: Floats) -> tuple[Floats, Floats]:
        width = self.items.shape[1]
        return parameters[:width], parameters[width:].reshape(-1, width)

    def _labels(self, chunk: slice) -> Labels:
        every = self.labels
        return Labels(every.orders[chunk], every.groups[chunk], every.lengths, every.weights, every.wins, every.tables)

    def _over_chunks(self, work: Callable[[slice], Part]) -> list[Part]:
        """Each thread multiplies its own small matrices: with threads of their own they would wait for each other."""
        if len(self.chunks) == 1:
            return [work(self.chunks[0])]
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(work, self.chunks))


class Pooled:
    """One list of scores for everybody: the users' labels are summed once."""

    def __init__(self, labels: Labels, items: Floats, loss: Loss) -> None:
        from rankdp.aggregation.tally_rankings import tally_pairs, tally_positions

        m = len(items)
        self.items, self.loss, self.total = items, loss, labels.total
        self.together, self.wins, self.above = np.zeros((m, m)), np.zeros(m), np.zeros((m, m))
        self.known = labels.tables is not None
        if loss.name != "logistic" and not self.known:
            raise Unsupported(f"the {loss.name} loss needs labels of pairs, which are out of reach here: use logistic")
        for group, length in enumerate(labels.lengths.tolist()):
            orders = np.ascontiguousarray(labels.orders[labels.groups == group, :length])
            table = np.ones((length, length)) if labels.tables is None else labels.tables[group, :length, :length]
            landed, cells = np.zeros((m, length), dtype=np.int64), np.zeros((m, m, 3))
            tally_positions(orders, landed)
            tally_pairs(orders, np.ascontiguousarray(table), cells)
            count, score, weight = cells[:, :, 0], cells[:, :, 1], labels.weights[group]
            self.wins += weight * landed @ labels.wins[group, :length]
            self.together += weight * (count + count.T)
            self.above += weight * (score + (count - score).T)

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """The same numbers as user by user, from the sums."""
        scores = self.items @ parameters
        gaps = scores[:, None] - scores
        if self.loss.name == "logistic":
            value = (self.together * np.logaddexp(scores[:, None], scores)).sum() / 2 - self.wins @ scores
            slope = (self.together * (1 + np.tanh(gaps / 2)) / 2).sum(axis=1) - self.wins
        else:
            value = (self.above * self.loss.value(gaps)).sum()
            by_gap = self.above * self.loss.slope(gaps)
            slope = by_gap.sum(axis=1) - by_gap.sum(axis=0)
        return float(value / self.total), np.asarray(self.items.T @ slope / self.total)

    def accuracy(self, parameters: Floats) -> float:
        """Ties are errors."""
        scores = self.items @ parameters
        right = (self.above * (scores[:, None] > scores)).sum() / self.total
        return float(right) if self.known else float("nan")

    def spread(self, parameters: Floats) -> float:
        """One user stands for all."""
        return float(np.ptp(self.items @ parameters))
