"""How fast learning from synthetic rankings converges (Xu, Theorem 3 and Corollary 1), and where it does not.

``types``, where every assumption holds. Users are of known types; type g draws their rankings of m items from
Mallows' model around 1, ..., m, whose epsilon theta_g is spread evenly over (0, 1]: pairs with little agreement are as
frequent as others, so gamma = 1 in Assumption 4. F has a score for each type and item, so it holds every function of
the features (Assumption 2). With all pairs of each ranking the logistic fit sorts by wins. Excess risks are exact given
the fitted order, the sums of ``|2 eta - 1|`` over the pairs it has wrong; the draws are counts of whole rankings.

``linear``, where tastes and F are linear, x' W y. Synthetic pairs follow no logistic model, so the best function of the
logistic loss need not be in F, though the best ranking function is: Assumption 2 fails.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rankdp.learn.labels import Debias
from rankdp.learn.linear import LinearPairwiseRanker
from rankdp.theory.permutations import all_permutations
from rankdp.types import Floats, Ints
from rankdp_papers.experiment import Cell, Repeated, Row
from rankdp_papers.xu.populations import simulated
from rankdp_papers.xu.rivals import built

ONE, MIXED = "one epsilon", "half of the users at epsilon 0.1"
_LEAST = 0.1  # the epsilon of the other half


def types(cell: Cell) -> list[Row]:
    """Excess risks at one number of users a type and one epsilon, and as multiples of the bounds with constant 1."""
    items, kinds, users, epsilon = cell["items"], cell["types"], cell["users"], float(cell["epsilon"])
    size = (items * math.log(users / items) / users) ** (2 / 3)  # of |Theta| log(n/|Theta|)/n, gamma = alpha = 1
    rows = []
    for method, epsilons in ((ONE, (epsilon,)), (MIXED, (epsilon, _LEAST))):
        psi = float(np.mean([1 / math.tanh(one / (2 * (items - 1))) for one in epsilons]))
        theorem, corollary = psi ** (1 / 3) * size, psi ** (4 / 3) * size
        repeated = Repeated()
        for repetition in range(cell.repetitions):
            random = cell.generator(method, users, epsilon, repetition)
            drawn = [_excess(items, (kind + 1) / kinds, epsilons, users, random) for kind in range(kinds)]
            true, synthetic = np.mean(drawn, axis=0)
            repeated.add({"excess risk": true, "synthetic excess risk": synthetic}, method=method)
            repeated.add({"over Corollary 1": true / corollary, "over Theorem 3": synthetic / theorem}, method=method)
        rows += repeated.rows()
    return rows


def _excess(
    items: int, theta: float, epsilons: tuple[float, ...], users: int, random: np.random.Generator
) -> tuple[float, float]:
    """R(f) - R* and the same on synthetic rankings, f the order by wins of that many users of one type."""
    above, true = _above(items), _law(items, theta)
    laws = [true @ _channel(items, one) for one in epsilons]
    counts = np.sum([random.multinomial(users // len(laws), law) for law in laws], axis=0)
    wins = np.tensordot(counts, above, 1).sum(axis=1) + random.random(items) / 2  # ties by lot
    wrong = np.triu(wins[:, None] < wins, 1)
    risks = [np.abs(2 * np.tensordot(law, above, 1) - 1) * wrong for law in (true, np.mean(laws, axis=0))]
    return float(risks[0].sum() / math.perm(items, 2)), float(risks[1].sum() / math.perm(items, 2))


@lru_cache
def _above(items: int) -> Floats:
    """[order, i, j]: whether item i is above item j."""
    places = np.argsort(all_permutations(items), axis=1)
    return np.asarray(places[:, :, None] < places[:, None, :], dtype=float)


@lru_cache(maxsize=1024)
def _law(items: int, epsilon: float) -> Floats:
    """Mallows' model around 1, ..., m."""
    every = all_permutations(items)
    law = np.exp(built("kendall", items, epsilon).log_prob(every, every[0]))
    return np.asarray(law / law.sum())


@lru_cache
def _channel(items: int, epsilon: float) -> Floats:
    """[input, output]: Algorithm 1 on every ranking."""
    every, law = all_permutations(items), _law(items, epsilon)
    weights = np.array([items**place for place in range(items)])
    number = {int(order @ weights): row for row, order in enumerate(every)}
    relative = np.argsort(every, axis=1)[:, every]  # [input, output, place]: the output as the input sees it
    return law[np.vectorize(number.__getitem__)(relative @ weights)]


def linear(cell: Cell) -> list[Row]:
    """The share of pairs of new users that linear models rank wrongly, at one number of users and one epsilon."""
    repeated = Repeated()
    for repetition in range(cell.repetitions):
        place = (cell["items"], cell["users"], repetition)
        one = simulated(cell["users"], cell["items"], cell.stream("people", *place), test_users=2000, personal=True)
        noisy = built("kendall", cell["items"], cell["epsilon"])
        synthetic = noisy.sample(one.orders, cell.bits("noise", cell["epsilon"], *place))
        kinds: dict[str, tuple[Ints, Debias, str | None]] = {
            "kendall": (synthetic, False, noisy.name),
            "kendall + debiased": (synthetic, "always", noisy.name),
            "not private": (one.orders, False, None),
        }
        for method, (orders, debias, name) in kinds.items():
            model = LinearPairwiseRanker(debias=debias, l2=1e-5)
            model.fit(one.users, one.items, orders, mechanism=name, epsilon=noisy.epsilon if name else None)
            repeated.add({"pairs wrong": 1 - model.score(one.test_users, one.test_orders)}, method=method)
    return repeated.rows()
