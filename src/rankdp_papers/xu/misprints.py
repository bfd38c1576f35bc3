"""Formulas of the paper as printed, compared with what they must mean; and what Theorem 2 can say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.mallows import reversal_tail, theorem_2_bound
from rankdp.theory.permutations import all_permutations, concordance
from rankdp_papers.experiment import Cell, Row, exact_row, mean_row
from rankdp_papers.xu.rivals import built, worst_ratio

_TIE = 1e-9  # log-likelihoods closer than this are equal


def notation(cell: Cell) -> list[Row]:
    """Formulas as printed, compared with what they must mean."""
    return [*_plain_sum(cell), *_argmin(cell), *_orientation(cell["items"]), *_ties(cell)]


def _plain_sum(cell: Cell) -> list[Row]:
    """Lemma 1: weights exp(T eps m/2), T the plain sum of Section 2.2 or, as in the proofs, divided by m(m-1)."""
    items, epsilon = cell["items"], cell["epsilon"]
    concordant = concordance(all_permutations(items)) * items * (items - 1)  # (i, j) and (j, i) both count
    rows = []
    for method, scale in (("T a sum, as printed", 1), ("T a share", items * (items - 1))):
        logs = epsilon * items / 2 * concordant / scale
        rows.append(exact_row(method, "worst log-ratio divided by epsilon", worst_ratio(logs, items) / epsilon))
    return rows


def _argmin(cell: Cell) -> list[Row]:
    """Equation (1): the ranking that minimises the printed L, and the one that maximises the likelihood (Kemeny's)."""
    items, epsilon, releases = cell["items"], cell["epsilon"], cell["releases"]
    one = built("kendall", items, epsilon)
    identity = np.tile(np.arange(items, dtype=np.int32), (cell.repetitions * releases, 1))
    drawn = one.sample(identity, cell.bits(items, epsilon), workers=1).reshape(cell.repetitions, releases, items)
    places = np.argsort(drawn, axis=2)
    wins = (places[..., :, None] < places[..., None, :]).sum(axis=1).reshape(cell.repetitions, -1)
    candidates = np.argsort(all_permutations(items), axis=1)
    agree = (candidates[:, :, None] < candidates[:, None, :]).reshape(len(candidates), -1)
    concordance = wins @ agree.T  # sum over releases of the concordant pairs, a column for each candidate
    rows = []
    for method, sign in (("argmin, as printed", -1), ("argmax", 1)):
        best = sign * concordance == (sign * concordance).max(axis=1, keepdims=True)
        rows.append(mean_row((best[:, 0] / best.sum(axis=1)).tolist(), method=method, measure="secret found"))
    return rows


def _orientation(items: int) -> list[Row]:
    """The accuracy (11) of the scores that minimise the risk (2), as printed and with a higher score for a better item.

    Both divide by m(m-1) where only half of the ordered pairs can count, so (11) is at most 1/2; it is shown doubled.
    """
    ranks = np.arange(1, items + 1)
    worse = ranks[:, None] > ranks[None, :]
    scores = np.array(list(itertools.permutations(range(items))))
    higher = scores[:, :, None] > scores[:, None, :]
    not_higher = ~higher & ~np.eye(items, dtype=bool)
    rows = []
    for method, first_of_pair in (("f higher for worse, as printed", worse), ("f higher for better", worse.T)):
        risk = (first_of_pair & not_higher).sum(axis=(1, 2))
        best = int(np.argmin(risk))
        accuracy = 2 * (worse.T & higher[best]).sum() / (items * (items - 1))
        rows.append(exact_row(method, "twice the accuracy (11)", accuracy))
    return rows


def _ties(cell: Cell) -> list[Row]:
    """Proof of Theorem 2 with two releases: it counts a tie as if most releases reversed the two best items."""
    items, epsilon = cell["items"], cell["epsilon"]
    measure = "attacker's error with two releases"
    return [
        exact_row("exact", measure, _error_of_two(built("kendall", items, epsilon))),
        exact_row("tail with ties, as in the proof", measure, reversal_tail(2, items, epsilon, ties=True)),
        exact_row("tail without ties", measure, reversal_tail(2, items, epsilon)),
    ]


def _error_of_two(one: RankingMechanism) -> float:
    """The attacker's error over all pairs of outputs; equally likely secrets are told apart by chance."""
    every = all_permutations(one.items)
    logs = np.stack([one.log_prob(every, secret) for secret in every])  # row: secret, column: output
    likelihood = logs[:, :, None] + logs[:, None, :]
    best = likelihood >= likelihood.max(axis=0) - _TIE
    right = best[0] / best.sum(axis=0)
    return 1 - float(np.exp(logs[0]) @ right @ np.exp(logs[0]))


def theorem_2(cell: Cell) -> list[Row]:
    """What Theorem 2's constant can be at one epsilon, and what its proof's event means for the attack.

    The bound is C0 times a factor that grows like 1/epsilon, and it bounds a probability: C0 is at most 1/factor. With
    ``releases`` of three items all sequences of releases are enumerated.
    """
    epsilon, releases = cell["epsilon"], cell["releases"]
    factor = theorem_2_bound(releases, 3, epsilon)
    rows = [exact_row("theorem 2", "largest C0 allowed", 1 / factor)]
    rows.append(exact_row("theorem 2", "bound with C0 = 1", factor))
    rows.append(exact_row("binomial tail", "bound with C0 = 1", reversal_tail(releases, 3, epsilon)))
    chances = dict.fromkeys(("the attack errs", "the attack puts the second item above the first"), 0.0)
    most = 0.0
    for chance, reversed_by_most, optimal in _attacks(built("kendall", 3, epsilon), releases):
        if reversed_by_most:
            most += chance
            chances["the attack errs"] += chance * all(order != (0, 1, 2) for order in optimal)
            turned = sum(order.index(1) < order.index(0) for order in optimal) / len(optimal)
            chances["the attack puts the second item above the first"] += chance * turned
    return rows + [exact_row("given that most reverse", measure, chance / most) for measure, chance in chances.items()]


def _attacks(one: RankingMechanism, releases: int) -> Iterator[tuple[float, bool, list[tuple[int, ...]]]]:
    """Every multiset of releases: its probability, whether most reverse the two best items, and the likeliest secrets.

    The likeliest secrets of Algorithm 1 are Kemeny's orders: those with the most pairs as in the releases.
    """
    every = [tuple(order) for order in all_permutations(one.items).tolist()]
    law = np.exp(one.log_prob(all_permutations(one.items), np.arange(one.items)))
    pairs = list(itertools.permutations(range(one.items), 2))
    above = np.array([[order.index(i) < order.index(j) for i, j in pairs] for order in every], dtype=int)
    for chosen in itertools.combinations_with_replacement(range(len(every)), releases):
        counts = np.bincount(chosen, minlength=len(every))
        ways = math.factorial(releases) / math.prod(math.factorial(int(count)) for count in counts)
        agree = above @ (counts @ above)
        optimal = [every[place] for place in np.flatnonzero(agree == agree.max())]
        reversed_by_most = bool(2 * (counts @ above)[pairs.index((1, 0))] > releases)
        yield float(ways * np.prod(law**counts)), reversed_by_most, optimal
