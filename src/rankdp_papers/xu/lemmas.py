"""Lemmas of Xu, Sun and Cheng that no figure shows, checked by enumeration.

``algorithm`` follows Algorithm 1 as it is printed, position by position, to the probability of every output (Lemma 2),
and has the mean and variance of each stage (Theorem 1(3)); neighbours' ranks are at most 2(m-1) apart in l1 (Lemma 3).

``population`` takes the 70:30 population of ``counterexamples`` for Lemma 7, all ways in which five people can rank
three items for Lemma 5 (true without a cycle; Section 2.2 supposes that majorities follow quality), and two kinds of
users for the step E[Psi X] <= E[Psi] E[X] in the proof of Corollary 1. Psi = coth(eps/(2(m-1))) is above 1 for every
epsilon, so the condition E(Psi^gamma) = O(delta_n) of Theorem 3 allows no delta_n that goes to 0.

Lemma 8 bounds a variance by a power of the excess risk. The psi loss min(1, (1 - x)+), which Section 5.1 names, costs
nothing from a gap of 1 on. Where noise turns a clear majority of the 70:30 population into a tie, the scores with the
two items exchanged have the same risk, and their loss differs in every synthetic ranking. (The logistic loss is
strictly convex and has no such pair of functions.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from rankdp.theory.permutations import all_permutations, concordance
from rankdp.types import Floats
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.xu.counterexamples import camps, leads
from rankdp_papers.xu.rivals import built

_GAMMA = 8  # of Assumption 4, for Lemma 7
_LEAST = 0.1  # the epsilon of the other half of the users
_TIED = 5  # items, for Lemma 8
_PAIRS = list(itertools.combinations(range(3), 2))


def algorithm(cell: Cell) -> list[Row]:
    """Lemmas 2 and 3 and Theorem 1(3) at one length and epsilon."""
    items, epsilon = cell["items"], float(cell["epsilon"])
    every = all_permutations(items)
    mallows = np.exp(epsilon * items / 2 * concordance(every))  # T as a share of the ordered pairs
    stages = np.array([_as_printed(order, epsilon) for order in every.tolist()])
    q, worst = math.exp(epsilon / (items - 1)), [0.0, 0.0]
    for t in range(2, items + 1):
        places = np.arange(t)
        law = q**places / np.sum(q**places)
        mean = (t - 1) * q**t / (q**t - 1) - (q**t - q) / ((q - 1) * (q**t - 1))
        variance = (t - 1) ** 2 * q**t / (q**t - 1) - 2 * mean / (q - 1) + (q**t - q) / ((q**t - 1) * (q - 1)) - mean**2
        exact = float(law @ places), float(law @ places**2 - (law @ places) ** 2)
        worst = [max(worst[0], abs(mean - exact[0])), max(worst[1], abs(variance - exact[1]))]
    return [
        exact_row("Algorithm 1", "distance from Mallows' model", np.abs(stages - mallows / mallows.sum()).max()),
        exact_row("formula", "distance from the mean of a stage", worst[0]),
        exact_row("formula", "distance from the variance of a stage", worst[1]),
        exact_row("Laplace", "neighbours' distance over 2(m-1)", _farthest(items) / (2 * (items - 1))),
    ]


def _as_printed(order: list[int], epsilon: float) -> float:
    """The probability that Algorithm 1 turns 0, 1, ... into ``order``, by its steps 2 to 8."""
    items, chance = len(order), 1.0
    for t in range(2, items + 1):
        here = [item for item in order if item < t]  # the synthetic ranking of the first t items
        tau = [sum(k + 0.5 > rank for rank in range(1, t)) for k in range(t)]  # concordant pairs at position k
        weights = [math.exp(epsilon / (items - 1) * one) for one in tau]
        chance *= weights[here.index(t - 1)] / sum(weights)
    return chance


def _farthest(items: int) -> int:
    """The largest l1 distance between the ranks of neighbours."""
    moves = itertools.product(range(items), repeat=2)
    orders = ([*(rest := [i for i in range(items) if i != a])[:b], a, *rest[b:]] for a, b in moves)
    return max(sum(abs(place - item) for place, item in enumerate(order)) for order in orders)


def population(cell: Cell) -> list[Row]:
    """Lemmas 5, 7 and 8, the condition of Theorem 3 and the proof of Corollary 1 at one length and epsilon."""
    items, epsilon = cell["items"], float(cell["epsilon"])
    psi, other = (1 / math.tanh(one / (2 * (items - 1))) for one in (epsilon, _LEAST))
    # f is right for the users at ``epsilon`` and wrong for those at 0.1, so X > 0 for the latter only
    return [
        exact_row("five people, no cycle", "majorities that the best ranking keeps", _kept_without_cycles()),
        exact_row("three rotations", "majorities that the best ranking keeps", _kept_by_the_best((1, 0, 0, 1, 1, 0))),
        exact_row("70:30", "bound of Lemma 7 over the probability", _lemma_7(items, epsilon, psi)),
        exact_row("all users", "E(Psi^gamma), gamma = 1", psi),
        exact_row("two kinds of users", "E[Psi X] over E[Psi] E[X]", other / ((psi + other) / 2)),
        exact_row("70:30, psi loss", "variance where the excess risk is 0", _lemma_8()[1]),
    ]


_ABOVE = np.array([[one.index(i) < one.index(j) for i, j in _PAIRS] for one in itertools.permutations(range(3))])


def _kept_by_the_best(people: Sequence[int]) -> float:
    """The least share of majorities that a ranking of least risk agrees with, for so many people per ranking."""
    leads = np.array(people) @ np.where(_ABOVE, 1, -1)
    agreement = np.where(_ABOVE, 1, -1) @ leads
    best = _ABOVE[agreement == agreement.max()]
    return float((best == (leads > 0)).mean(axis=1).min())


def _kept_without_cycles(people: int = 5) -> float:
    """The least of it over all ways to divide this odd number of people, where no majorities form a cycle."""
    ways = (one for one in itertools.product(range(people + 1), repeat=6) if sum(one) == people)
    majorities = ((one, np.array(one) @ np.where(_ABOVE, 1, -1) > 0) for one in ways)
    return min(_kept_by_the_best(one) for one, wins in majorities if (wins == _ABOVE).all(axis=1).any())


def _lemma_7(items: int, epsilon: float, psi: float) -> float:
    """C2 Psi^gamma beta^gamma over P(|2 eta~ - 1| <= beta), the least over beta, with the least C2 of Assumption 4."""
    raw, synthetic = np.abs(leads(built("kendall", items, epsilon), camps(items))).T.tolist()
    constant = max(_share_below(raw, beta) / beta**_GAMMA for beta in raw)
    return float(min(constant * (psi * beta) ** _GAMMA / _share_below(synthetic, beta) for beta in synthetic))


def _share_below(leads: list[float], beta: float) -> float:
    return sum(lead <= beta + 1e-12 for lead in leads) / len(leads)


def _lemma_8() -> tuple[float, float]:
    """Excess risk and variance of G_f - G_f* with the psi loss, for f that has the first two items the other way round.

    At an epsilon where half of the synthetic rankings have item 1 above item 2, both functions are optimal.
    """
    from scipy.optimize import brentq

    every = all_permutations(_TIED)
    places = np.argsort(every, axis=1)

    def law(epsilon: float) -> Floats:
        one = built("kendall", _TIED, epsilon)
        shares = (np.exp(one.log_prob(every, order)) * share for share, order in camps(_TIED))
        return np.asarray(sum(shares))

    def losses(order: list[int]) -> Floats:
        """Whole scores in this order: a pair costs 1 where the synthetic ranking has it the other way, else 0."""
        pairs = itertools.combinations(order, 2)
        return np.asarray(sum(places[:, i] > places[:, j] for i, j in pairs) / math.perm(_TIED, 2))

    half = brentq(lambda epsilon: law(epsilon) @ (places[:, 0] < places[:, 1]) - 0.5, 1, 6, xtol=1e-13)
    chances, best = law(half), list(range(_TIED))
    difference = losses([1, 0, *best[2:]]) - losses(best)
    excess = float(chances @ difference)
    return excess, float(chances @ (difference - excess) ** 2)
