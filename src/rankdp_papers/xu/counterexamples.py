"""What the paper says and enumeration contradicts: exact numbers, few simulated.

The population of ``majority``: 70% rank 1, 2, …, m; 30% rank 2, …, m, 1. So 70% put item 1 above item 2, by one place;
the others put it below, by m-1 places, and far pairs keep their order more often than near ones.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.estimators import pair_estimator
from rankdp.theory.mallows import preference_bounds, reversal_tail
from rankdp.theory.permutations import all_permutations, concordance
from rankdp_papers.experiment import Cell, Row, exact_row, exact_rows, mean_row
from rankdp_papers.xu.rivals import built, worst_ratio

_MAJORITY = 0.7
_TIE = 1e-9  # log-likelihoods closer than this are equal


def majority(cell: Cell) -> list[Row]:
    """Theorem 1(1) and (2) for a random and for a fixed ranking, and the unbiased estimate that repairs them."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = [exact_row("not private", "share", _MAJORITY)]
    for method in ("kendall", "ulam", "reinsertion"):
        one = built(method, items, epsilon)
        raw, debiased, variance = _first_above_second(one)
        worst = pair_estimator(one).largest_variance
        repaired = {"share": debiased, "variance of one respondent": variance, "largest variance": worst}
        rows += exact_rows({method: {"share": raw}, f"{method} + debiased": repaired})
        if method == "kendall":
            rows += _theorem_1(one, raw)
    return rows


def _first_above_second(one: RankingMechanism) -> tuple[float, float, float]:
    """Over the population and all outputs: the share in synthetic rankings, the unbiased estimate and its variance."""
    outputs, secret = all_permutations(one.items), np.arange(one.items)
    places = np.argsort(outputs, axis=1)
    above = places[:, 0] < places[:, 1]
    estimate = pair_estimator(one).values[places[:, 0], places[:, 1]]
    law = np.zeros(len(outputs))
    for share, order in ((_MAJORITY, secret), (1 - _MAJORITY, np.roll(secret, -1))):
        law += share * np.exp(one.log_prob(outputs, order))
    mean = float(law @ estimate)
    return float(law @ above), mean, float(law @ (estimate - mean) ** 2)


def _theorem_1(one: RankingMechanism, raw: float) -> list[Row]:
    """The ratio of leads that Theorem 1(2) bounds, in this population and for one fixed ranking."""
    low, high = preference_bounds(one.items, float(one.epsilon))
    kept = [one.keep_probability(i, j) for i, j in itertools.combinations(range(one.items), 2)]
    rows = [exact_row("kendall", "least kept pair of a fixed ranking", min(kept))]
    leads = {
        "ratio of leads": abs(2 * raw - 1) / (2 * _MAJORITY - 1),
        "ratio of leads, fixed ranking, smallest": 2 * min(kept) - 1,
        "ratio of leads, fixed ranking, largest": 2 * max(kept) - 1,
    }
    for measure, value in leads.items():
        methods = {"kendall": value, "kendall + lower bound": low, "kendall + upper bound": high}
        rows += [exact_row(method, measure, number) for method, number in methods.items()]
    return rows


def worst_case(cell: Cell) -> list[Row]:
    """The largest log-ratios over neighbours and over any two rankings, the count of neighbours, Lemma 7's bound."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = []
    for method in ("kendall", "ulam", "reinsertion", "laplace"):
        one = built(method, items, epsilon)
        logs = one.log_prob(all_permutations(items), np.arange(items))
        farthest = float(logs.max() - logs.min())
        ratios = {
            "worst log-ratio over neighbours": worst_ratio(logs, items),
            "worst log-ratio over any two rankings": farthest,
            "the same divided by m epsilon / 2": farthest / (epsilon * items / 2),
        }
        rows += exact_rows({method: ratios})
    some, only = _neighbours_of_definition_2(items)
    kept = built("kendall", items, epsilon).keep_probability(0, items - 1)
    theorem = preference_bounds(items, epsilon)[1]
    quoted = math.tanh(epsilon / 2)  # (e^eps - 1)/(e^eps + 1)
    lead = "largest ratio of leads"
    others: dict[str, dict[str, float]] = {
        "some item": {"neighbours divided by (m-1)^2": some / (items - 1) ** 2},
        "only one item": {"neighbours divided by (m-1)(m-2)": only / ((items - 1) * (items - 2))},
        "kendall": {lead: 2 * kept - 1},
        "kendall + Theorem 1(2)": {lead: theorem},
        "kendall + proof of Lemma 7": {lead: quoted, "divided by Theorem 1(2)": quoted / theorem},
    }
    return rows + exact_rows(others)


def _neighbours_of_definition_2(items: int) -> tuple[int, int]:
    """Rankings that agree with 1, …, m once some item is taken out, and those for which only one item will do."""
    some = only = 0
    for order in all_permutations(items)[1:].tolist():
        fitting = sum((rest := [item for item in order if item != out]) == sorted(rest) for out in range(items))
        some, only = some + (fitting >= 1), only + (fitting == 1)
    return some, only


def notation(cell: Cell) -> list[Row]:
    """Formulas taken as they are printed, beside what they must mean."""
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
