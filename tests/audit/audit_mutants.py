"""Mutants as data: ways to get a mechanism wrong, and for each the checks that are put to it.

A check is a function that says whether the mutant was caught. ``python tests/audit/audit_mutants.py`` prints the
table for the documents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pyarrow as pa

import rankdp
from rankdp.audit import (
    audit_board,
    audit_election,
    audit_exact,
    audit_independence,
    audit_samples,
    ranking_neighbours,
    ranking_sampler,
)
from rankdp.audit.boards import ITEMS
from rankdp.audit.electorates import audit_electorates
from rankdp.data.comparisons import Comparisons
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.mechanisms.ballots.selection import PermuteAndFlip
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.offset_tiers import OffsetTiers
from rankdp.mechanisms.rankings.tiers import Tiers, calibrated
from rankdp.mechanisms.rankings.ulam import Ulam, _Shapes
from rankdp.mechanisms.votes.labels import SwappedLabels
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyCounts,
    NoisyDegrees,
    NoisyDifferences,
    NoisyResiduals,
    NoisyTable,
    NoisyWins,
)
from rankdp.mechanisms.votes.noisy_covariates import STEPS, NoisyCovariates
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.answers import Question
from rankdp.privacy.bits import SecureBits, SeededBits
from rankdp.privacy.cube_noise import CubeNoise
from rankdp.publish.board_estimators import HiddenDesign
from rankdp.theory.permutations import all_permutations
from rankdp.theory.tier_laws import reach

DRAWS = 30_000  # in all, for a statistical audit
SEED = 20_231


@dataclass(frozen=True)
class Mutant:
    """Its name, the checks by name, and whether it is a mutant at all: an honest one must pass them."""

    name: str
    checks: dict[str, Callable[[], bool]]
    honest: bool = False

    def catches(self, check: str) -> bool:
        """Whether a check catches it; each is made once."""
        return _caught(self.name, self.checks[check])


@cache
def _caught(name: str, check: Callable[[], bool]) -> bool:
    return check()


def half_noise(mechanism: RankingMechanism) -> RankingMechanism:
    """The same mechanism at twice the epsilon, with the old guarantee."""
    cls = type(mechanism)
    mutant = type(f"Half{cls.__name__}", (cls,), {"guarantee": property(lambda self: mechanism.guarantee)})
    return mutant(mechanism.items, 2 * mechanism.epsilon)


class LyingSampler(Kendall):
    """Right tables and log-probabilities; the draws are made with half the noise."""

    def _draw(self, orders, out, bits):
        Kendall(self.items, 2 * self.epsilon)._draw(orders, out, bits)


class FloatKendall(Kendall):
    """The law as a row of 53-bit cut points, drawn with 53-bit uniforms: what is rarer than 2^-53 cannot happen."""

    def _cuts(self):
        weights = np.exp(super()._log_prob(all_permutations(self.items)))
        return np.append(0.0, np.cumsum(weights / weights.sum()))

    def exact_law(self, bits):
        cuts = [Fraction(math.ceil(cut * 2**53)) for cut in np.minimum(self._cuts(), 1.0).tolist()]
        return [(high - low, high - low) for low, high in itertools.pairwise(cuts)]

    def _draw(self, orders, out, bits):
        uniform = (bits.words(len(orders)) >> np.uint64(11)) * 2.0**-53
        cells = np.searchsorted(self._cuts()[1:-1], uniform, side="right")
        out[:] = np.take_along_axis(orders, all_permutations(self.items)[cells], axis=1)


class DoubledWeight(Tiers):
    """Twice the weight z of a kept item."""

    @property
    def weight(self):
        return 2 * super().weight


class TierOffByOne(Tiers):
    """The weight is calibrated for a first tier that is larger by one than the tier that is drawn."""

    @property
    def weight(self):
        first, second, *others = self.sizes
        return calibrated(self.epsilon, reach((first + 1, second - 1, *others)))


class DoubledOffsetWeight(OffsetTiers):
    """Twice the weight z of a kept item."""

    @property
    def weight(self):
        return 2 * super().weight


class TellingOffset(OffsetTiers):
    """The offset is that of the item in the first place, not drawn: it tells who is first."""

    def _draw_released(self, orders, out, offsets, bits):
        offsets[:] = orders[:, 0] % self.offsets
        self._draw_shapes(orders, out, offsets.astype(np.int64), bits)


class CutsOffByOne(OffsetTiers):
    """The offset that is released is the next one."""

    def _draw_released(self, orders, out, offsets, bits):
        super()._draw_released(orders, out, offsets, bits)
        offsets[:] = (offsets + 1) % self.offsets


class StrictTiers(Tiers):
    """The law is stated as if a kept item's tier had to be above (<) those before it, not at least equal (<=)."""

    def _allowed(self, letters):
        return all(before < after for before, after in itertools.pairwise(letters))


class DoubledRate(Ulam):
    """Twice the epsilon for every item that must be moved back."""

    def _shrinking(self, bits):
        return Ulam(self.items, 2 * self.epsilon)._shrinking(bits)


class OneTableau(Ulam):
    """Shapes are drawn by the number of their tableaux, not of pairs of them."""

    def _shapes(self, first):
        shapes = _Shapes(self.items, first)
        shapes.weights = [math.isqrt(weight) for weight in shapes.weights]
        shapes.total = sum(shapes.weights)
        return shapes


class DecreasingUlam(Ulam):
    """The law is stated for the longest decreasing subsequence, drawn for the longest increasing one."""

    def exact_law(self, bits):
        return super().exact_law(bits)[::-1]


class SmallSensitivity(NoisyWins):
    """A turned vote moves two items' wins; the noise is for one."""

    @property
    def scale(self):
        return super().scale / 2


class SmallRemoval(BallotProtection):
    """A ballot that is replaced moves counts as far as one that is removed."""

    __slots__ = ()

    @property
    def moved(self):
        return 1


class UnpaidRound(NoisyVotes):
    """The budget is split over all rounds but the last, which gets noise as if it had been paid for."""

    def __init__(self, candidates, protection, epsilon, *, rounds):
        super().__init__(candidates, protection, epsilon, rounds=rounds - 1)
        self.rounds, self.shares = rounds, (*self.shares, self.shares[-1])


class SmallRho(PermuteAndFlip):
    """The zCDP of the exponential mechanism, eps^2/8."""

    _concentrated = 8


class RoundedMargins(NoisyMargins):
    """Noise in floating point is added to the margins."""

    def samples(self, margins, count, bits):
        return margins + self.noise(count, bits)


def not_centred(table):
    """Twice the items below each: the scores of a ballot do not add up to 0."""
    return table.centred_borda() + table.count * (len(table.items) - 1)


def elections(mechanism, count=None, statistical: bool = True) -> dict[str, Callable[[], bool]]:
    """The checks of a mechanism for ballots."""

    def exact(draws):
        return audit_electorates(mechanism, mechanism.guarantee.epsilon, draws, SeededBits(SEED), count)

    checks = {"exact: law": lambda: not exact(0).law_holds, "exact: sampler": lambda: not exact(4000).sampler_agrees}
    if statistical:
        checks["statistical"] = lambda: (
            not audit_election(mechanism, draws=DRAWS, count=count, bits=SeededBits(SEED)).holds
        )
    return checks


def rankings(mechanism: RankingMechanism, statistical: bool = True) -> dict[str, Callable[[], bool]]:
    """The checks of a ranking mechanism."""
    items, claimed = mechanism.items, mechanism.guarantee.epsilon
    pairs = ranking_neighbours(range(items))

    def sampler():
        return ranking_sampler(mechanism, SeededBits(SEED))

    exact = {
        "exact: law": lambda: not audit_exact(mechanism, draws=0).holds,
        "exact: sampler": lambda: not audit_exact(mechanism, bits=SeededBits(SEED)).sampler_agrees,
    }
    if not statistical:
        return exact
    return exact | {
        "statistical": lambda: not audit_samples(sampler(), pairs, draws=DRAWS, claimed_epsilon=claimed).holds,
        "independence": lambda: not audit_independence(sampler(), *pairs[0]).holds,
    }


def samples(build: Callable[[], Callable], pair: tuple, claimed: float = 1) -> dict[str, Callable[[], bool]]:
    """The checks of a black box."""
    return {
        "statistical": lambda: not audit_samples(build(), [pair], draws=DRAWS, claimed_epsilon=claimed).holds,
        "independence": lambda: not audit_independence(build(), *pair).holds,
    }


def wins(cls: type[NoisyWins]) -> dict[str, Callable[[], bool]]:
    """The checks of noisy wins, on real neighbouring tables."""
    mechanism = cls(Protection("outcome"), 1)

    def release(table, count):
        wins = Comparisons.of(table, items=ITEMS).count().half_wins
        return mechanism.sample(np.tile(wins, count), bits).reshape(count, -1)

    bits = SeededBits(SEED)
    return {
        "exact: law": lambda: not audit_exact(mechanism, draws=0).holds,
        "exact: sampler": lambda: not audit_exact(mechanism, bits=SeededBits(SEED)).sampler_agrees,
        "statistical": lambda: not audit_board("wins", "outcome", 1, draws=DRAWS, release=release).holds,
    }


class HalfSwapped(SwappedLabels):
    """Half the noise: the law of twice the epsilon, with the old guarantee."""

    def exact_law(self, bits):
        return SwappedLabels(2 * self.epsilon).exact_law(bits)


class LyingLabels(SwappedLabels):
    """The right law; the labels are drawn with half the noise."""

    def swapped(self, count, bits):
        return SwappedLabels(2 * self.epsilon).swapped(count, bits)


def labels(mechanism: SwappedLabels) -> dict[str, Callable[[], bool]]:
    """The checks of swapped labels."""
    return {
        "exact: law": lambda: not audit_exact(mechanism, draws=0).holds,
        "exact: sampler": lambda: not audit_exact(mechanism, bits=SeededBits(SEED)).sampler_agrees,
        **raters(lambda epsilon, most: type(mechanism)(Fraction(epsilon) / most)),
    }


def raters(job: Callable[[float, int], SwappedLabels]) -> dict[str, Callable[[], bool]]:
    """Both labels of a rater turned round, in tables that are read, bounded and released."""

    def release(said, count):
        sides = [("good", "bad") if one else ("bad", "good") for one in said] * count
        voters = np.repeat(np.arange(count), len(said))
        chosen, rejected = zip(*sides, strict=True)
        table = pa.table({"chosen": chosen, "rejected": rejected, "voter": voters})
        with mock.patch("rankdp.publish.preferences._job", job):
            released = rankdp.privatize_preferences(table, 1, max_per_voter=2, bits=bits).value
        return np.array([text == "good" for text in released["chosen"].to_pylist()], int).reshape(count, -1)

    bits = SeededBits(SEED)
    pair = ((True, True), (False, False))
    return {"statistical": lambda: not audit_samples(release, [pair], draws=DRAWS, claimed_epsilon=1).holds}


def voters(bounded: bool) -> dict[str, Callable[[], bool]]:
    """Noisy wins for voters with at most two comparisons; the one that is protected has eight."""
    mechanism, bits = NoisyWins(Protection.of("voter", 2), 1), SeededBits(SEED)

    def release(table, count):
        votes = Comparisons.of(table, items=ITEMS)
        half_wins = votes.bound(2 if bounded else 1000).count().half_wins
        return mechanism.sample(np.tile(half_wins, count), bits).reshape(count, -1)

    def caught():
        return not audit_board("wins", "voter", 1, max_per_voter=2, draws=DRAWS, release=release).holds

    return {"statistical": caught}


class Residuals(NoisyResiduals):
    """Residuals at fixed strengths."""

    def __init__(self, protection, *budget):
        super().__init__(np.array([0.7, -1.3, 0.7, 0.1]), protection, *budget)


def half_sensitivity(kind: type[NoisyCounts]) -> type[NoisyCounts]:
    """The same counts with half their sensitivity."""
    return type(f"Half{kind.__name__}", (kind,), {"l1": property(lambda self: kind.l1.fget(self) // 2)})


class RoundedUp(Residuals):
    """Weights of residuals that are rounded up, so that an upset counts for more than the grid."""

    def __init__(self, protection, *budget):
        super().__init__(protection, *budget)
        self.credit = self.credit + 1


def count_laws(kind: type[NoisyCounts]) -> dict[str, Callable[[], bool]]:
    """The checks of noisy counts on every pair of neighbouring tables of four items."""
    mechanism = kind(Protection("voter", 2), 1)
    return {
        "exact: law": lambda: not audit_exact(mechanism, items=4, draws=0).holds,
        "exact: sampler": lambda: not audit_exact(mechanism, items=4, bits=SeededBits(SEED)).sampler_agrees,
    }


def hidden_designs(free: bool) -> dict[str, Callable[[], bool]]:
    """All that is released for residuals, or with the degrees as they are, as if they cost nothing."""
    bits = SeededBits(SEED)
    parts = HiddenDesign(Protection("comparison"), Fraction(1)).residual_parts(np.array([0.5, 0.5, -1.0]))

    def release(table, count):
        counts = Comparisons.of(table, items=ITEMS).count()
        drawn = [
            np.tile(noisy.counted(counts), (count, 1))
            if free and isinstance(noisy, NoisyDegrees)
            else noisy.sample(np.tile(noisy.counted(counts), count), bits).reshape(count, -1) / float(noisy.scale)
            for noisy in parts
        ]
        return np.column_stack(drawn)

    return {
        "statistical": lambda: not audit_board("bradley-terry", "comparison", 1, draws=DRAWS, release=release).holds
    }


def bounded_comparisons() -> dict[str, Callable[[], bool]]:
    """Comparisons protected after weighing: one that goes to another voter changes the weights of two voters."""
    most, bits = 50, SeededBits(SEED)
    mechanism = NoisyTable(replace(Protection.of("voter", 1), unit="comparison"), 2)

    def counted(one):
        said = [one, *[("ann", "a", "c")] * most, *[("bob", "b", "d")] * most]
        table = pa.table(dict(zip(("voter", "winner", "loser"), map(list, zip(*said, strict=True)), strict=True)))
        return mechanism.counted(Comparisons.of(table, items=(*ITEMS, "d")).bound(most).count())

    before, after = counted(("ann", "a", "b")), counted(("bob", "b", "c"))

    def release(counts, count):
        noisy = mechanism.sample(np.tile(counts, count), bits).reshape(count, -1)
        ratio = (np.abs(noisy - before) - np.abs(noisy - after)).sum(axis=1) / float(mechanism.scale)
        return ratio[:, None]  # the likelihood ratio, computed from what is released

    def caught():
        return not audit_samples(release, [(after, before)], draws=DRAWS, claimed_epsilon=2).holds

    return {"statistical": caught}


def twice(release: Callable, rule: str | None) -> dict[str, Callable[[], bool]]:
    """Two draws about one voter, held against what the library says that they cost; a mutant lacks the ``rule``."""

    def caught():
        with mock.patch(rule, return_value=True) if rule else nullcontext():
            claimed = release([0, 1, 2], 2, SecureBits())[1]
        bits = SeededBits(SEED)
        pairs = ranking_neighbours(range(3))
        audited = audit_samples(
            lambda order, count: release(order, count, bits)[0], pairs, draws=DRAWS, claimed_epsilon=claimed
        )
        return not audited.holds

    return {"statistical": caught}


def unpaid_answers(order, count, bits):
    """Answers that were drawn without a ledger and are released under one, then a plain release of the same voters."""
    kendall, orders = rankdp.mechanism("kendall", 3, 1), np.tile(np.array(order, dtype=np.int32), (count, 1))
    with TemporaryDirectory() as directory:
        store, question = rankdp.AnswerStore(Path(directory, "answers")), Question(1, "kendall", ("a", "b", "c"))
        ledger = rankdp.Ledger.create(Path(directory, "ledger"), "poll", kendall.guarantee.protects, 10)
        store.answers(question, range(count), lambda rows: kendall.sample(orders[rows], bits))
        stored = store.answers(question, range(count), kendall.sample, ledger, kendall.guarantee)
        ledger.spend(kendall.guarantee)
        total = ledger.budgets[0].standing.epsilon
        store.close()
        ledger.close()
    return np.hstack([stored, kendall.sample(orders, bits)]), total


def repeated_voters(order, count, bits):
    """Every voter has two rows with the same ranking."""
    table = rankdp.Rankings.from_orders([order] * (2 * count), voters=np.repeat(np.arange(count), 2))
    release = rankdp.privatize(table, 1, mechanism="kendall", repeated_voters=True, bits=bits)
    return release.value.orders.reshape(count, -1), release.guarantee and release.guarantee.epsilon


def covariates(scale: int) -> dict[str, Callable[[], bool]]:
    """One outcome of two comparisons with two covariates is changed, with cube noise of this scale."""
    law = NoisyCovariates(np.array([[1.0, -1.0], [0.2, 0.4]]), np.ones(2, np.int64), Fraction(1))
    instruments, bits = law.instruments(), SeededBits(SEED)
    shift = np.abs(instruments.T @ np.array([2, 0])).max()

    def sampler(outcomes, count):
        true = instruments.T @ np.array(outcomes)
        return (true + CubeNoise(2, Fraction(1, scale)).sample(count, bits)) / STEPS

    def seen():
        return not audit_samples(sampler, [((1, 1), (-1, 1))], draws=DRAWS // 5, claimed_epsilon=1).holds

    return {"exact: law": lambda: bool(shift > scale), "statistical": seen}


def same_seed_for_rows():
    def sampler(order, count):
        seed = next(seeds)
        return np.concatenate([_KENDALL.sample([order], SeededBits(seed)) for _ in range(count)])

    seeds = iter(range(1000))
    return sampler


def same_seed_for_calls():
    return lambda order, count: ranking_sampler(_KENDALL, SeededBits(7))(order, count)


def float_scores():
    generator = np.random.default_rng(SEED)
    return lambda score, count: score + generator.laplace(0, 1, count)


def exact_scores():
    mechanism, bits = rankdp.score_mechanism("laplace", bounds=(0, 1), epsilon=1), SeededBits(SEED)
    return lambda score, count: mechanism.sample(np.full(count, score), bits)


_KENDALL = rankdp.mechanism("kendall", 4, 1)
_BALLOT, _VOTER = BallotProtection("ballot"), BallotProtection("voter")
_PAIR = ranking_neighbours(range(4))[0]

MUTANTS = [
    Mutant("Kendall as it is", rankings(_KENDALL), honest=True),
    Mutant("half the noise", rankings(half_noise(_KENDALL))),
    Mutant("half the noise in the draws alone", rankings(LyingSampler(4, 1))),
    Mutant("NumPy floats, epsilon 200", rankings(FloatKendall(4, 200))),
    Mutant("exact integers, epsilon 200", rankings(rankdp.mechanism("kendall", 4, 200)), honest=True),
    Mutant("tiers as they are", rankings(Tiers(4, 1, (1, 3))), honest=True),
    Mutant("tiers with twice the weight", rankings(DoubledWeight(4, 1, (1, 3)))),
    Mutant("tiers with a size off by one", rankings(TierOffByOne(4, 1, (1, 3)))),
    Mutant("tiers compared by < instead of <=", rankings(StrictTiers(4, 1, (1, 3)))),
    Mutant("offset tiers as they are", rankings(OffsetTiers(4, 1, [2]), statistical=False), honest=True),
    Mutant("offset tiers with twice the weight", rankings(DoubledOffsetWeight(4, 1, [2]), statistical=False)),
    Mutant("offsets that follow the ranking", rankings(TellingOffset(4, 1, [2]), statistical=False)),
    Mutant("offsets off by one", rankings(CutsOffByOne(4, 1, [2]), statistical=False)),
    Mutant("Ulam as it is", rankings(Ulam(6, 1), statistical=False), honest=True),
    Mutant("Ulam with twice the rate", rankings(DoubledRate(4, 1))),
    Mutant("Ulam with tableaux instead of pairs", rankings(OneTableau(6, 1), statistical=False)),
    Mutant("Ulam with its order turned round", rankings(DecreasingUlam(6, 1), statistical=False)),
    Mutant("a seed reused for every row", samples(same_seed_for_rows, _PAIR)),
    Mutant("a seed reused for every call", samples(same_seed_for_calls, _PAIR)),
    Mutant("noisy wins as they are", wins(NoisyWins), honest=True),
    *(
        mutant
        for name, kind in {
            "differences": NoisyDifferences,
            "table of pairs": NoisyTable,
            "residuals": Residuals,
        }.items()
        for mutant in (
            Mutant(
                f"{name} as they are" if name != "table of pairs" else f"{name} as it is", count_laws(kind), honest=True
            ),
            Mutant(f"{name}: half the sensitivity", count_laws(half_sensitivity(kind))),
        )
    ),
    Mutant("residuals: weights rounded up", count_laws(RoundedUp)),
    Mutant("a hidden design as it is released", hidden_designs(free=False), honest=True),
    Mutant("a hidden design whose degrees are not paid for", hidden_designs(free=True)),
    Mutant("sensitivity 1 instead of 2", wins(SmallSensitivity)),
    Mutant("swapped labels as they are", labels(SwappedLabels(1)), honest=True),
    Mutant("labels: half the noise", labels(HalfSwapped(1))),
    Mutant("labels: half the noise in the draws alone", labels(LyingLabels(1))),
    Mutant("labels: the whole epsilon for each of a rater", raters(lambda epsilon, _: SwappedLabels(epsilon))),
    Mutant("contribution bounding", voters(bounded=True), honest=True),
    Mutant("contribution bounding skipped", voters(bounded=False)),
    Mutant("bounded comparisons", bounded_comparisons()),
    Mutant("answers paid by every ledger", twice(unpaid_answers, None), honest=True),
    Mutant("unpaid answers", twice(unpaid_answers, "rankdp.privacy.answers._paid")),
    Mutant("rows of a voter counted", twice(repeated_voters, None), honest=True),
    Mutant("repeated voters", twice(repeated_voters, "rankdp.publish.privatize_job.PrivatizeJob.check_voters")),
    Mutant("covariates as they are", covariates(2 * STEPS), honest=True),
    Mutant("covariates: an outcome taken to change by 1", covariates(STEPS)),
    Mutant("noisy Borda as it is", elections(NoisyBorda(3, _BALLOT, 1)), honest=True),
    Mutant("noisy Borda of four items", elections(NoisyBorda(4, _VOTER, 1), statistical=False), honest=True),
    Mutant("noisy margins as they are", elections(NoisyMargins(3, _VOTER, 1)), honest=True),
    Mutant("rounds of a runoff as they are", elections(NoisyVotes(3, _VOTER, 1, rounds=2)), honest=True),
    Mutant("a round not paid for", elections(UnpaidRound(3, _VOTER, 1, rounds=2))),
    Mutant("permute-and-flip as it is", elections(PermuteAndFlip(_BALLOT, 2, 1)), honest=True),
    Mutant("centring forgotten in the sensitivity", elections(NoisyBorda(3, _VOTER, 1), not_centred)),
    Mutant("replacement taken for removal", elections(NoisyBorda(3, SmallRemoval("ballot"), 1))),
    Mutant("margins: replacement taken for removal", elections(NoisyMargins(3, SmallRemoval("ballot"), 1))),
    Mutant("permute-and-flip: replacement taken for removal", elections(PermuteAndFlip(_BALLOT, 1, 1))),
    Mutant("permute-and-flip's zCDP at eps^2/8", elections(SmallRho(_BALLOT, 2, 1), statistical=False)),
    Mutant("margins with floats for noise", elections(RoundedMargins(3, _VOTER, 1))),
    Mutant("scores on the integer grid", samples(exact_scores, (0.0, 1.0)), honest=True),
    Mutant("scores with NumPy's Laplace noise", samples(float_scores, (0.0, 1.0))),
]


def results(mutants: list[Mutant] = MUTANTS) -> list[tuple[str, dict[str, bool]]]:
    """Every check of every mutant: caught or not."""
    return [(mutant.name, {name: check() for name, check in mutant.checks.items()}) for mutant in mutants]


def mutant_table(rows: list[tuple[str, dict[str, bool]]]) -> str:
    """A Markdown table: which check caught which mutant.

    Parameters
    ----------
    rows
        For each mutant its name and, by the name of a check, whether that check caught it; the checks become columns.
    """
    checks = list(dict.fromkeys(check for _, caught in rows for check in caught))
    lines = [f"| mutant | {' | '.join(checks)} |", f"|---|{'---|' * len(checks)}"]
    for name, caught in rows:
        cells = ({True: "caught", False: "–", None: ""}[caught.get(check)] for check in checks)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(mutant_table(results()))
