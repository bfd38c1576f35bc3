"""What the paper says and enumeration contradicts: exact numbers, few simulated.

The population of ``majority``: 70% rank 1, 2, …, m; 30% rank 2, …, m, 1. So 70% put item 1 above item 2, by one place;
the others put it below, by m-1 places, and far pairs keep their order more often than near ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.estimators import pair_estimator
from rankdp.theory.mallows import preference_bounds, reversal_tail, theorem_2_bound
from rankdp.theory.permutations import all_permutations, concordance
from rankdp.types import Ints
from rankdp_papers.experiment import Cell, Row, exact_row, exact_rows, mean_row
from rankdp_papers.xu.rivals import built, worst_ratio

MAJORITY = 0.7
_CLOSE_RACE = 0.501
_TIE = 1e-9  # log-likelihoods closer than this are equal


def majority(cell: Cell) -> list[Row]:
    """Theorem 1(1) and (2) for a random and for a fixed ranking, and the unbiased estimate that repairs them."""
    items, epsilon = cell["items"], cell["epsilon"]
    rows = [exact_row("not private", "share", MAJORITY)]
    for method in ("kendall", "ulam", "reinsertion"):
        one = built(method, items, epsilon)
        raw, debiased, variance = _first_above_second(one)
        worst = pair_estimator(one).largest_variance
        repaired = {"share": debiased, "variance of one respondent": variance, "largest variance": worst}
        rows += exact_rows({method: {"share": raw}, f"{method} + debiased": repaired})
        if method == "kendall":
            rows += _theorem_1(one, raw)
    return rows


def _first_above_second(one: RankingMechanism, majority: float = MAJORITY) -> tuple[float, float, float]:
    """Over the population and all outputs: the share in synthetic rankings, the unbiased estimate and its variance."""
    outputs = all_permutations(one.items)
    places = np.argsort(outputs, axis=1)
    above = places[:, 0] < places[:, 1]
    estimate = pair_estimator(one).values[places[:, 0], places[:, 1]]
    law = np.zeros(len(outputs))
    for share, order in camps(one.items, majority):
        law += share * np.exp(one.log_prob(outputs, order))
    mean = float(law @ estimate)
    return float(law @ above), mean, float(law @ (estimate - mean) ** 2)


def camps(items: int, majority: float = MAJORITY) -> tuple[tuple[float, Ints], tuple[float, Ints]]:
    """The two rankings, each with its share of the people."""
    order = np.arange(items, dtype=np.int32)
    return (majority, order), (1 - majority, np.roll(order, -1))


def _excess_of_best(one: RankingMechanism, majority: float) -> float:
    """R~(f*) - R~*, f* the order of the raw majorities: where (7) says 0, as R(f*) is R*.

    It is the share of pairs whose majority is turned, each weighed by the lead it has then.
    """
    lost = 0.0
    for i, j in itertools.combinations(range(one.items), 2):
        raw = synthetic = 0.0
        for share, order in camps(one.items, majority):
            a, b = int(np.argsort(order)[i]), int(np.argsort(order)[j])
            kept = one.keep_probability(min(a, b), max(a, b))
            raw += share * (a < b)
            synthetic += share * (kept if a < b else 1 - kept)
        lost += abs(2 * synthetic - 1) * ((raw > 0.5) != (synthetic > 0.5))
    return lost / math.comb(one.items, 2)


def _theorem_1(one: RankingMechanism, raw: float) -> list[Row]:
    """The ratio of leads that Theorem 1(2) bounds, in this population and for one fixed ranking."""
    low, high = preference_bounds(one.items, float(one.epsilon))
    kept = [one.keep_probability(i, j) for i, j in itertools.combinations(range(one.items), 2)]
    rows = [
        exact_row("kendall", "least kept pair of a fixed ranking", min(kept)),
        exact_row("kendall", "synthetic excess risk of the best ranking", _excess_of_best(one, _CLOSE_RACE)),
    ]
    leads = {
        "ratio of leads": abs(2 * raw - 1) / (2 * MAJORITY - 1),
        "ratio of leads, close race": abs(2 * _first_above_second(one, _CLOSE_RACE)[0] - 1) / (2 * _CLOSE_RACE - 1),
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
