"""Ours and the rivals on the same votes at the same promise: who errs least where.

Every number is a mean over runs with its standard error. A result is called best when it beats the best of the other
side by more than two standard errors of the difference; otherwise they are called even.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import Table
from benchmarks.rivals import local
from benchmarks.rivals.condorcet import KINDS, condorcet_method
from benchmarks.rivals.exponential import exponential_kemeny
from benchmarks.rivals.footrule import footrule
from benchmarks.rivals.pairs import kwiksort, noisy_pairs, pairs_kemeny
from benchmarks.rivals.scores import knorm_borda, laplace_borda
from benchmarks.rivals.top_sets import canonical_probabilities, joint_probabilities, one_shot, subsets
from benchmarks.rivals.votes import Floats, Orders, Random, Votes, by_scores, kemeny, populations, real
from rankdp.mechanisms import candidates, mechanism
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.selection import PermuteAndFlip
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.condorcet import condorcet_winner
from rankdp.theory.estimators import rank_estimator

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
_DELTA = 1e-6
_RUNS, _LOCAL_RUNS, _SEATS = 400, 80, 3
_BALLOT = BallotProtection("ballot")


class Mean(NamedTuple):
    """Of runs, with its standard error; less is better."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """From one value for each run."""
        held = np.asarray(list(values), float)
        mean, runs = float(held.mean()), len(held)
        if np.isin(held, (0, 1)).all():  # a share: never having erred is not to be without doubt
            some = (mean * runs + 1) / (runs + 2)
            return cls(mean, math.sqrt(some * (1 - some) / runs))
        return cls(mean, float(held.std(ddof=1) / math.sqrt(runs)))


class Result(NamedTuple):
    """One method on one set of votes at one epsilon."""

    promise: str
    measure: str
    votes: str
    epsilon: float
    method: str
    ours: bool
    mean: Mean


def central(votes: Votes, epsilon: float, delta: float = 0) -> Iterable[Result]:
    """Orders and points of complete results."""
    m, text = votes.items, f"{epsilon:g}"
    random = _random(votes.name, text, delta)
    bits = SeededBits(int(random.integers(2**31)))
    margins, points = votes.ballots.margins(), votes.ballots.centred_borda()
    public = m, _BALLOT, text, f"{delta:.6f}" if delta else 0
    ours = NoisyBorda(*public).samples(points, _RUNS, bits)
    orders: dict[str, Orders] = {
        "ours: elect by borda": by_scores(ours),
        "ours: elect by kemeny": kemeny(NoisyMargins(*public).samples(margins, _RUNS, bits)),
        "noise on pairs + Kemeny": pairs_kemeny(votes, epsilon, _RUNS, random, delta),
        "KwikSort (Hay 2017, Alabi 2022)": kwiksort(votes, epsilon, _RUNS, random, delta),
    }
    scores: dict[str, Floats] = {"ours: elect by borda": ours}
    if not delta:
        scores["Laplace Borda (Hay 2017)"] = laplace_borda(points, epsilon, _RUNS, random)
        scores["K-norm Borda (Joseph and Yu 2023)"] = knorm_borda(points, epsilon, _RUNS, random)
        orders |= {name: by_scores(noisy) for name, noisy in scores.items() if not name.startswith("ours")}
        orders["exponential Kemeny (Hay 2017)"] = exponential_kemeny(votes, epsilon, _RUNS, random)
        orders["footrule (Hillebrand 2025)"] = footrule(votes, epsilon, _RUNS, random)
    scores["noise on pairs, summed"] = noisy_pairs(votes.margins, epsilon, delta, _RUNS, random).sum(axis=2)
    promise = "delta" if delta else "ballot"
    for name, drawn in orders.items():
        yield _result(promise, "order", votes, epsilon, name, votes.excess(drawn))
        yield _result(promise, "winner", votes, epsilon, name, drawn[:, 0] != votes.best[0])
    for name, noisy in scores.items():
        centred = noisy - noisy.mean(axis=1, keepdims=True)
        errors = np.abs(centred - points).mean(axis=1) / (2 * votes.count)  # two points are one rank
        yield _result(promise, "ranks", votes, epsilon, name, errors)


def announced(votes: Votes, epsilon: float) -> Iterable[Result]:
    """Winners alone: who beats everyone, and the first three by Borda's points."""
    text, m = f"{epsilon:g}", votes.items
    random = _random(votes.name, text, "announced")
    points, first = votes.ballots.centred_borda(), condorcet_winner(votes.margins)
    spread = 4 * (m - 1)
    if first is not None:
        seed = int(random.integers(2**31))
        tables = NoisyMargins(m, _BALLOT, text).samples(votes.ballots.margins(), _RUNS, SeededBits(seed))
        beats = (tables[:, first] > 0).sum(axis=1) == m - 1
        yield _result("ballot", "condorcet", votes, epsilon, "ours: elect by condorcet", ~beats)
        best = by_scores(NoisyBorda(m, _BALLOT, text).samples(points, _RUNS, SeededBits(seed)))[:, 0]
        yield _result("ballot", "condorcet", votes, epsilon, "ours: elect by borda", best != first)
        chance = float(PermuteAndFlip(_BALLOT, spread, text).probabilities(points)[first])
        name = "ours: elect by borda, winners alone"
        yield Result("ballot", "condorcet", votes.name, epsilon, name, True, Mean(max(0.0, 1 - chance), 0.0))
        for kind in KINDS:
            drawn = condorcet_method(votes.margins, epsilon, kind, _RUNS, random)
            yield _result("ballot", "condorcet", votes, epsilon, f"Condorcet by {kind} (Li 2023)", drawn != first)
    if m > _SEATS:
        true = np.sort(np.argsort(-points, kind="stable")[:_SEATS])
        bits = SeededBits(int(random.integers(2**31)))
        scores = by_scores(NoisyBorda(m, _BALLOT, text).samples(points, _RUNS, bits))[:, :_SEATS]
        yield _result("ballot", "top", votes, epsilon, "ours: elect by borda", _wrong(np.sort(scores, axis=1), true))
        right = int((subsets(m, _SEATS) == true).all(axis=1).argmax())
        for name, law in (
            (
                "ours: elect by borda, winners alone",
                canonical_probabilities(points, _SEATS, spread, epsilon, flip=False),
            ),
            (
                "canonical sets, permute-and-flip (Shekelyan 2022)",
                canonical_probabilities(points, _SEATS, spread, epsilon),
            ),
            ("joint top k (Gillenwater 2022)", joint_probabilities(points, _SEATS, spread, epsilon)),
        ):
            missed = Mean(max(0.0, 1 - float(law[right])), 0.0)
            yield Result("ballot", "top", votes.name, epsilon, name, name.startswith("ours"), missed)
        drawn = one_shot(points, _SEATS, spread, epsilon, _RUNS, random)
        yield _result("ballot", "top", votes, epsilon, "one-shot exponential noise", _wrong(drawn, true))


def _wrong(drawn: Any, true: Any) -> Any:
    return (drawn != true).any(axis=1)


def local_results(votes: Votes, epsilon: float, protect: str) -> Iterable[Result]:
    """Orders and mean ranks from people's own noise."""
    rows = votes.complete()
    ranks, m = np.argsort(rows, axis=1), votes.items
    random = _random(votes.name, epsilon, protect)
    rivals: dict[str, Callable[[Any, float, Random, str], Any]] = dict(local.RIVALS)
    if protect == "position":  # the other two protect a whole ranking, which is more
        rivals = {name: rival for name, rival in rivals.items() if "Wang" not in name}
    text = f"{epsilon:g}"
    best = candidates(m, text, purpose="aggregate", protect=protect)[0]  # type: ignore[arg-type]
    ours = {f"ours: {'auto' if protect == 'position' else 'kendall-ball'}": best}
    if protect == "position":
        ours["Kendall mechanism (Xu 2023), debiased"] = mechanism("kendall", m, text)
    means: dict[str, list[Any]] = {name: [] for name in (*ours, *rivals)}
    orders: dict[str, list[Any]] = {name: [] for name in means}
    for _ in range(_LOCAL_RUNS):
        for name, one in ours.items():
            estimate = _released(one, rows, SeededBits(int(random.integers(2**31))))
            means[name].append(estimate)
            orders[name].append(np.argsort(estimate, kind="stable"))
        for name, rival in rivals.items():
            order, estimate = rival(ranks, epsilon, random, protect)
            orders[name].append(order)
            if estimate is not None:
                means[name].append(estimate)
    true = ranks.mean(axis=0) + 1
    for name in means:
        drawn = np.array(orders[name])
        yield _result(protect, "order", votes, epsilon, name, votes.excess(drawn))
        yield _result(protect, "winner", votes, epsilon, name, drawn[:, 0] != votes.best[0])
        if means[name]:
            errors = np.abs(np.array(means[name]) - true).mean(axis=1)
            yield _result(protect, "ranks", votes, epsilon, name, errors)


def _released(one: Any, rows: Any, bits: SeededBits) -> Floats:
    """Unbiased mean ranks from synthetic rankings."""
    values = rank_estimator(one).values
    if one.has_offsets:
        out, offsets = one.sample_with_offsets(rows, bits)
        cells = one.cells[offsets][np.arange(len(out))[:, None], np.argsort(out, axis=1)]
        return np.asarray(values[cells].mean(axis=0))
    return np.asarray(values[np.argsort(one.sample(rows, bits), axis=1)].mean(axis=0))


def _result(promise: str, measure: str, votes: Votes, epsilon: float, name: str, values: Any) -> Result:
    return Result(promise, measure, votes.name, epsilon, name, name.startswith("ours"), Mean.of(values))


def _random(*key: object) -> Random:
    """The generator of one cell, the same in every run."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def measured() -> list[Result]:
    """Everything, in about five minutes of one core."""
    found: list[Result] = []
    for votes in [*real(), *populations()]:
        for epsilon in EPSILONS:
            found += [*central(votes, epsilon), *central(votes, epsilon, _DELTA), *announced(votes, epsilon)]
            if len(votes.complete()) == votes.count:
                for protect in ("ranking", "position"):
                    found += local_results(votes, epsilon, protect)
    return found


PROMISES = {
    "ballot": "central, epsilon for one ballot replaced",
    "delta": "central, (epsilon, 1e-6) for one ballot replaced",
    "ranking": "local, epsilon for a whole ranking",
    "position": "local, epsilon for the position of one item",
}
MEASURES = {
    "order": "order",
    "winner": "winner",
    "ranks": "mean ranks",
    "condorcet": "Condorcet winner",
    "top": "top three",
}
CODES = {
    "noise on pairs + Kemeny": "P",
    "noise on pairs, summed": "P",
    "KwikSort (Hay 2017, Alabi 2022)": "Q",
    "Laplace Borda (Hay 2017)": "L",
    "K-norm Borda (Joseph and Yu 2023)": "J",
    "exponential Kemeny (Hay 2017)": "E",
    "footrule (Hillebrand 2025)": "F",
    "Condorcet by laplace (Li 2023)": "C",
    "Condorcet by exponential (Li 2023)": "C",
    "Condorcet by response (Li 2023)": "C",
    "canonical sets, permute-and-flip (Shekelyan 2022)": "S",
    "joint top k (Gillenwater 2022)": "G",
    "one-shot exponential noise": "O",
    "KwikSort by randomised response (Yan 2020)": "Y",
    "debiased pairs, Bradley-Terry (Xu 2024)": "X",
    "weighted sampling (Wang 2019)": "W",
    "additive mechanism (Wang 2019)": "A",
    "Kendall mechanism (Xu 2023), debiased": "M",
}
"""The letter of a rival where it is best."""


@dataclass(frozen=True)
class Comparison:
    """A table for each promise."""

    tables: dict[str, Table]

    def __str__(self) -> str:
        return "\n\n".join(f"**{PROMISES[promise]}**\n\n{held}" for promise, held in self.tables.items())

    def count(self, _: str) -> int:
        """No row has a target."""
        return 0


def table() -> Comparison:
    """Everything, measured now."""
    return compared(measured())


def compared(found: list[Result]) -> Comparison:
    """For each promise and measure: on how many votes each side is better at each epsilon, and the median ratio."""
    tables = {}
    for promise in PROMISES:
        rows = []
        for measure, words in MEASURES.items():
            if held := [one for one in found if (one.promise, one.measure) == (promise, measure)]:
                rows.append((words, *(_cell([one for one in held if one.epsilon == each]) for each in EPSILONS)))
        tables[promise] = Table(("error", *(f"{epsilon:g}" for epsilon in EPSILONS)), rows)
    return Comparison(tables)


def _cell(held: list[Result]) -> str:
    """On how many sets of votes ours / the best rival errs less, by two standard errors, and who that rival is.

    Then, for errors that are no shares of wrong answers, the median of our error over the rival's.
    """
    better, codes, ratios = 0, list[str](), list[float]()
    for votes in dict.fromkeys(one.votes for one in held):
        ours, rival = (
            min((one for one in held if one.votes == votes and one.ours is side), key=lambda one: one.mean.value)
            for side in (True, False)
        )
        if abs(ours.mean.value - rival.mean.value) > 2 * math.hypot(ours.mean.error, rival.mean.error):
            better += ours.mean.value < rival.mean.value
            codes += [CODES[rival.method]] if rival.mean.value < ours.mean.value else []
        if ours.measure in ("order", "ranks") and ours.mean.value > 0 and rival.mean.value > 0:
            ratios.append(ours.mean.value / rival.mean.value)
    letters = f" {''.join(dict.fromkeys(codes))}" if codes else ""
    ratio = f", {np.median(ratios):.2f}" if ratios else ""
    return f"{better} / {len(codes)}{letters}{ratio}"
