"""Models trained on private rankings (Xu, Sections 6.3 and 6.4): how well they rank the items of users they never saw.

The accuracy is the share of pairs in the order of the new users' *true* rankings: twice the paper's (11), so that 1 is
perfect. Training and validation users' rankings all go through the mechanism; features are taken as they are.

A method is a mechanism, perhaps with " + debiased": then the labels are debiased, on the same draws. Methods share
users, splits and starting weights, so that nothing but the method differs.

Neither model of the paper can tell users apart. What it adds for a user, a . x_u, is in all scores of that user and
drops out of every comparison: so Section 6.3 gives all users one ranking, and Section 6.4 fits one ranking to all.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankdp.data.rankings import Rankings
from rankdp.errors import Unsupported
from rankdp.learn.labels import Labels, labels_of
from rankdp.learn.linear import Objective, fit_linear
from rankdp.learn.towers import TwoTowerRanker
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.types import Floats, Ints
from rankdp_papers.experiment import Cell, Row, data_home, mean_row
from rankdp_papers.xu.populations import Setting, simulated, sushi
from rankdp_papers.xu.rivals import built

NOT_PRIVATE = "not private"
DEBIASED = " + debiased"


def towers(cell: Cell) -> list[Row]:
    """Figure 7: accuracy of two towers on new users, for each of the methods.

    ``preference`` is "paper" (all users prefer alike) or "personal" (a term x_u' W y_i is added, so that they differ).
    """
    found: dict[str, list[float]] = {method: [] for method in cell["methods"]}
    for repetition in range(cell.repetitions):
        place = (cell["preference"], cell["items"], cell["users"], repetition)
        one = simulated(
            cell["users"],
            cell["items"],
            cell.stream("people", *place),
            test_users=cell["test_users"],
            personal=cell["preference"] == "personal",
        )
        for method, accuracies in found.items():
            accuracies.append(_towers_accuracy(cell, one, method, place))
    return [mean_row(accuracies, method=method) for method, accuracies in found.items()]


def _towers_accuracy(cell: Cell, one: Setting, method: str, place: tuple[object, ...]) -> float:
    """Train on the rankings that this method lets through, 100 users to stop by, and test on true ones."""
    ranker = TwoTowerRanker(
        hidden=cell["hidden"],
        debias="always" if method.endswith(DEBIASED) else False,
        validation_fraction=cell["validation_users"] / cell["users"],
        random_state=cell.stream("weights", *place) % 2**32,
    )
    if method == NOT_PRIVATE:
        ranker.fit(one.users, one.items, one.orders)
    else:
        name = method.removesuffix(DEBIASED)
        noisy = built(name, cell["items"], cell["epsilon"])
        synthetic = noisy.sample(one.orders, cell.bits("noise", name, cell["epsilon"], *place))
        ranker.fit(one.users, one.items, synthetic, mechanism=noisy.name, epsilon=noisy.epsilon)
    return ranker.score(one.test_users, one.test_orders)


def sushi_utility(cell: Cell) -> list[Row]:
    """Figure 8: L / L*, the accuracy of the linear model next to that of the one trained on the true rankings.

    Both are means over repetitions, each with a new split and new noise. The labels of the pairs are the synthetic
    orders as released, or debiased.
    """
    home = str(data_home("sushi"))
    mechanisms = [built(name, len(_plates(home)[0]), cell["epsilon"]) for name in cell["mechanisms"]]
    best: list[float] = []
    found: dict[tuple[str, str], list[float]] = {}
    for repetition in range(cell.repetitions):
        items, orders = _plates(home)
        shuffled = orders[cell.generator("split", repetition).permutation(len(orders))]
        train, test = np.split(shuffled, [cell["train_users"]])
        judge = _objective(items, _labels(test))
        best.append(judge.accuracy(_one_ranking(items, _labels(train))))
        for name, noisy in zip(cell["mechanisms"], mechanisms, strict=True):
            synthetic = noisy.sample(train, cell.bits("noise", name, cell["epsilon"], repetition))
            for how, mechanism in (("as released", None), ("debiased", noisy)):
                try:
                    model = _one_ranking(items, _labels(synthetic, mechanism))
                except Unsupported:  # tiers say nothing of pairs within a tier, which no labels can debias
                    continue
                found.setdefault((name, how), []).append(judge.accuracy(model))
    return [_ratio_row(values, best, method=name, labels=how) for (name, how), values in found.items()]


@lru_cache(maxsize=2)
def _plates(home: str) -> tuple[Floats, Ints]:
    """The five kinds of sushi of Section 6.4: their features, scaled, and everybody's order of them."""
    everyone = sushi(home, seed=0, train=5000)
    spread = everyone.items.std(axis=0)
    return (everyone.items - everyone.items.mean(axis=0)) / np.where(spread > 0, spread, 1.0), everyone.orders


def _labels(orders: Ints, mechanism: RankingMechanism | None = None) -> Labels:
    """What the orders say of each pair; without the noise of the mechanism, if it is given."""
    table = Rankings.from_orders(orders)
    if mechanism is None:
        return labels_of(table)
    return labels_of(table, mechanism.name, mechanism.epsilon, pairs=False)


def _objective(items: Floats, labels: Labels) -> Objective:
    """Of f(u, i) = b . y_i, where users have no features."""
    return Objective(labels, np.zeros((len(labels), 0)), items)


def _one_ranking(items: Floats, labels: Labels) -> Floats:
    """b of f(u, i) = b . y_i: LinearPairwiseRanker(interaction=False), without the scikit-learn around it."""
    return fit_linear(_objective(items, labels), None, "logistic")[0]


def _ratio_row(values: list[float], best: list[float], **columns: str) -> Row:
    """The ratio of two means over the same repetitions; its error is that of the mean of value - ratio * best."""
    ratio = float(np.mean(values) / np.mean(best))
    rest = (np.asarray(values) - ratio * np.asarray(best)) / np.mean(best)
    return {**columns, "value": ratio, "error": float(rest.std(ddof=1) / np.sqrt(len(rest)))}
