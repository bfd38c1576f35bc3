"""rank(): every combination, what it promises, what it may not depend on, and how well its intervals cover."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from ranking_support import ITEMS, combinations, flipped, options, some_votes, votes
from support import generator

from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyCounts,
    NoisyWins,
)
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.publish import board_estimators
from rankdp.publish import rank as ranking
from rankdp.publish.board_estimators import HiddenDesign
from rankdp.publish.rank import rank
from rankdp.rankers.bradley_terry import fit


@pytest.fixture
def table(request):
    return some_votes(request)


# -- what it promises --------------------------------------------------------------------------------------------


@pytest.mark.slow
@combinations
def test_every_combination_promises_what_was_asked(table, method, protect):
    release = rank(table, "0.7", method=method, **options(protect))
    assert not release.rehearsal
    assert release.guarantee.epsilon == Fraction(7, 10)
    assert (release.guarantee.delta, release.guarantee.local) == (0, False)
    assert release.guarantee.protects == Protection.of(protect, 5 if protect == "voter" else None).protects
    assert release.provenance.mechanism == method
    shown = release.to_dict()["parameters"]
    assert (shown["protect"], shown["epsilon"], shown["items"]) == (protect, "7/10", 6)
    board = release.value
    assert sorted(board.items) == sorted(ITEMS)
    assert (np.diff(board.scores) <= 0).all()
    assert (board.low <= board.scores).all()
    assert (board.scores <= board.high).all()
    assert (board.rank_low <= board.ranks).all()
    assert (board.ranks <= board.rank_high).all()
    assert board.best_probability.sum() == pytest.approx(1)
    assert board.score_name == {"bradley-terry": "score", "wins": "wins", "copeland": "majorities"}[method]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "residuals", "objective"])
@combinations
def test_the_mechanisms_get_the_whole_budget_and_no_more(table, method, protect, kind, monkeypatch):
    """What all mechanisms get adds up to epsilon; and the noise is for the unit asked for."""
    seen = []

    def counted(self, data, bits, real=NoisyCounts.sample):
        assert self.scale == self.l1 * self.protection.steps / (self.epsilon * self.share)
        seen.append((self.epsilon * self.share, self.protection))
        return real(self, data, bits)

    def fitted(self, data, bits, real=ObjectivePerturbation.sample):
        seen.append((self.epsilon, self.protection))
        return real(self, data, bits)

    monkeypatch.setattr(NoisyCounts, "sample", counted)
    monkeypatch.setattr(ObjectivePerturbation, "sample", fitted)
    monkeypatch.setattr(HiddenDesign, "kind", lambda *_: kind)
    rank(table, 2, method=method, **options(protect))
    assert {protection for _, protection in seen} == {Protection.of(protect, 5 if protect == "voter" else None)}
    assert sum(epsilon for epsilon, _ in seen) == 2


@pytest.mark.slow
@pytest.mark.parametrize("protect", ["comparison", "voter"])
@pytest.mark.parametrize("kind", ["table", "residuals"])
def test_gaussian_noise_on_hidden_designs(table, protect, kind, monkeypatch):
    """Rhos of all that is released add up to what the guarantee states."""
    seen = []

    def counted(self, data, bits, real=NoisyCounts.sample):
        pure, steps = self.rho is None, self.protection.steps
        seen.append((self.epsilon * self.share) ** 2 / 2 if pure else self.l2_squared * steps**2 / (2 * self.sigma**2))
        return real(self, data, bits)

    monkeypatch.setattr(NoisyCounts, "sample", counted)
    monkeypatch.setattr(HiddenDesign, "kind", lambda *_: kind)
    release = rank(table, 1, delta="1e-6", **options(protect))
    assert release.provenance.parameters["mechanism"] == kind
    assert len(seen) == {"table": 1, "residuals": 3}[kind]
    assert release.guarantee.delta == Fraction(1, 10**6)
    assert sum(seen) <= release.guarantee.rho <= float(sum(seen)) * 1.001


@pytest.mark.parametrize("protect", ["outcome", "comparison", "voter"])
def test_gaussian_noise_on_wins(table, protect):
    release = rank(table, 1, method="wins", delta="1e-6", **options(protect))
    assert release.guarantee.delta == Fraction(1, 10**6)
    assert "except with probability 1e-06" in release.explain()


@pytest.mark.slow
@combinations
def test_a_seed_repeats_and_carries_no_guarantee(table, method, protect):
    first, again, other = (
        rank(table, 1, method=method, top=2, bits=SeededBits(seed), **options(protect)) for seed in (3, 3, 4)
    )
    assert first.guarantee is None
    assert "NOT PRIVATE" in first.explain()
    assert first.value.rows() == again.value.rows()
    assert first.value.rows() != other.value.rows()


def majorities(wins):
    """Against how many others each item won more often than it lost, an even score as a half."""
    return (np.sign(wins - wins.T) + 1).sum(axis=1) / 2 - 0.5


@pytest.mark.slow
@combinations
def test_much_epsilon_gives_the_answer_without_privacy(table, method, protect):
    board = rank(table, 100_000, method=method, **options(protect)).value
    counts = Comparisons.of(table, items=ITEMS).count()
    plain = {"wins": lambda: counts.half_wins / 2, "copeland": lambda: majorities(counts.dense())}
    exact = plain.get(method, lambda: fit(counts, ridge=0.25).theta)()
    finely = (method, protect) == ("copeland", "voter")  # a noise of a few steps decides majorities that are ties
    assert finely or board.items == tuple(ITEMS[k] for k in np.argsort(-exact, kind="stable"))
    scores, exact = board.scores, np.sort(exact)[::-1]
    if method == "bradley-terry":  # whose zero is the average opponent
        scores, exact = np.diff(scores), np.diff(exact)
    assert scores == pytest.approx(exact, abs=0.51 if finely else 3e-2)


def test_voters_are_bounded(table, monkeypatch):
    """One voter with 1000 rows moves nothing beyond max_per_voter comparisons."""
    loud = pa.concat_tables(
        [table, pa.table({"winner": ["f"] * 1000, "loser": ["a"] * 1000, "voter": ["loud"] * 1000})]
    )
    seen = []

    def plain(self, data, bits):
        seen.append(data if isinstance(data, np.ndarray) else data.half_wins)
        return seen[-1]

    monkeypatch.setattr(NoisyWins, "sample", plain)
    for one in (table, loud):
        rank(one, 1, method="wins", **options("voter"))
    assert np.abs(seen[1] - seen[0]).sum() == 2 * 1000 * (5 * STEPS // 1000) <= 2 * 5 * STEPS


def test_votes_that_are_open_already(table):
    opened = Comparisons.of(table, items=ITEMS)
    assert len(rank(opened, 1, protect="outcome").value.items) == 6
    with pytest.raises(InputError, match="these votes are open already"):
        rank(opened, 1, protect="outcome", items=ITEMS)


# -- what it may not depend on -----------------------------------------------------------------------------------


def everything(release):
    shown = release.to_dict()
    del shown["when"]
    return shown, release.value.rows(), release.value.warnings


def other_data(table, protect, random):
    """Another data set with the same public numbers: other outcomes, and where it is secret another design."""
    if protect == "outcome":
        for row in random.choice(table.num_rows, 100, replace=False):
            table = flipped(table, row)
        return table
    rows = table.num_rows if protect == "comparison" else table.num_rows // 2
    return votes(random, rows, np.linspace(2, -2, 6), 5, items=ITEMS)


@pytest.mark.slow
@combinations
def test_the_release_depends_on_the_data_through_the_mechanism_only(table, method, protect, monkeypatch, request):
    """With mechanisms that always say the same, two data sets with the same public numbers have the same release."""
    monkeypatch.setattr(NoisyCounts, "sample", lambda self, data, bits: np.resize([50, 41, 80, 3, -12, 60], len(data)))
    monkeypatch.setattr(ObjectivePerturbation, "sample", lambda self, data, bits: np.linspace(-1, 1, 6) ** 3)
    first, second = (
        everything(rank(data, 1, method=method, top=2, bits=SeededBits(1), **options(protect)))
        for data in (table, other_data(table, protect, generator(request)))
    )
    assert first == second


def test_that_test_catches_a_leak(table, monkeypatch, request):
    """Warnings that look at who won."""
    monkeypatch.setattr(board_estimators, "design_warnings", lambda public: [str(public.design.half_wins)])
    with pytest.raises(AssertionError):
        test_the_release_depends_on_the_data_through_the_mechanism_only(table, "wins", "outcome", monkeypatch, request)


@pytest.mark.parametrize("protect", ["comparison", "outcome"])
def test_ridge_tolerance_and_scales_come_from_public_numbers(table, protect, monkeypatch, request):
    seen = []

    def watched(self, data, bits):
        seen.append((self.ridge, self.tolerance, self.scale, self.noise_step, self.output_scale))
        return np.zeros(6)

    monkeypatch.setattr(ObjectivePerturbation, "sample", watched)
    monkeypatch.setattr(HiddenDesign, "kind", lambda *_: "objective")
    releases = [
        rank(data, 1, bits=SeededBits(1), **options(protect))
        for data in (table, other_data(table, protect, generator(request)))
    ]
    assert releases[0].provenance.parameters == releases[1].provenance.parameters
    if protect == "comparison":
        assert len(seen) == 2
        assert seen[0] == seen[1]


# -- scales, top, warnings ---------------------------------------------------------------------------------------


def test_elo(table):
    plain, elo = (
        rank(table, 1, scale=scale, bits=SeededBits(2), **options("outcome")).value for scale in ranking.SCALES
    )
    assert elo.scores == pytest.approx(1000 + plain.scores * 400 / math.log(10))
    assert elo.score_name == "elo"


def test_top(table):
    rows = rank(table, 5, top=2, **options("comparison")).value.rows()
    assert [row["in_top"] for row in rows] == [True, True, False, False, False, False]
    assert sum(row["top_probability"] for row in rows) == pytest.approx(2)


def test_warnings_of_the_public_design():
    table = pa.table({"winner": ["a", "c"] * 50, "loser": ["b", "d"] * 50})
    warnings = rank(table, 1, **options("outcome", items=(*ITEMS[:5], "zz"))).value.warnings
    assert warnings[0] == "Never compared: e and zz."
    assert warnings[1].startswith("The comparisons fall into 4 parts with nothing between them")


@pytest.mark.slow
def test_no_word_about_a_secret_design():
    table = pa.table({"winner": ["a", "c"] * 50, "loser": ["b", "d"] * 50, "voter": [str(row) for row in range(100)]})
    for protect in ("comparison", "voter"):
        for method in ranking.METHODS:
            warnings = rank(table, 1, method=method, bits=SeededBits(3), **options(protect)).value.warnings
            said = "Perhaps never compared" if method == "bradley-terry" else "Who was compared with whom is secret"
            assert [one.startswith(said) for one in warnings] == [True]  # the table of pairs assumes nothing


@pytest.mark.parametrize("kind", ["table", "residuals"])
def test_items_that_were_perhaps_never_compared_are_named(kind, request):
    """From the released numbers alone: nobody met the last one."""
    random, items = generator(request), 8 if kind == "table" else 60
    names = [f"i{place:02}" for place in range(items)]
    first = random.integers(0, items - 1, 400 * items)
    second = (first + random.integers(1, items - 1, len(first))) % (items - 1)
    table = pa.table({"winner": [names[item] for item in first], "loser": [names[item] for item in second]})
    made = rank(table, 1, protect="comparison", items=names, bits=SeededBits(4))
    assert made.provenance.parameters["mechanism"] == kind
    found = [one for one in made.value.warnings if one.startswith("Perhaps never compared")]
    assert found == [f"Perhaps never compared (noise hides it), so do not trust their places: {names[-1]}."]


def test_warnings_of_unbeaten_items():
    table = pa.table({"winner": ["a"] * 900 + ["b"] * 30, "loser": (["b"] * 30 + ["c"] * 30) * 15 + ["c"] * 30})
    warnings = rank(table, 1, protect="outcome", items=("a", "b", "c"), bits=SeededBits(5)).value.warnings
    counts = Comparisons.of(table, items=("a", "b", "c")).count()
    noisy = NoisyWins(Protection("outcome"), 1).sample(counts.half_wins, SeededBits(5))
    most = counts.half_wins + counts.half_losses
    extreme = [item for item, wins, halves in zip("abc", noisy, most, strict=True) if wins >= halves or wins <= 0]
    assert extreme
    assert (
        f"Won or lost almost every comparison, so the score is mostly the prior: {' and '.join(extreme)}." in warnings
    )


def test_items_that_cannot_be_told_apart_are_named(table):
    board = rank(table, "0.01", bits=SeededBits(2), **options("outcome")).value
    assert "may be first" in board.headline() or "cannot be told apart" in board.headline()


@pytest.mark.slow
@combinations
def test_no_votes_at_all(table, method, protect):
    board = rank(table.slice(0, 0), 1, method=method, top=1, **options(protect)).value
    assert np.isfinite(board.scores).all()
    assert not np.isnan([*board.low, *board.high]).any()


@pytest.mark.parametrize(("epsilon", "most"), [("1e-6", 1), ("0.01", 10**6), ("1000", 1)])
def test_extreme_budgets(table, epsilon, most):
    for protect in ("comparison", "outcome", "voter"):
        kept = {"max_per_voter": most} if protect == "voter" else {}
        board = rank(table, epsilon, **{**options(protect), **kept}).value
        assert np.isfinite(board.scores).all()


# -- coverage ----------------------------------------------------------------------------------------------------


def simulate(random, repetitions, count, epsilon, protect, items=25, top=5, per_voter=None, link="logistic"):
    """Coverage of score and rank intervals at 95%, and said and found membership in the top, over random truths."""
    covered, ranked, said, found = [], [], [], []
    names = [f"i{k}" for k in range(items)]
    for _ in range(repetitions):
        truth = random.uniform(-1, 1, items)
        truth -= truth.mean()
        board = rank(
            votes(random, count, truth, per_voter, link),
            epsilon,
            protect=protect,
            max_per_voter=per_voter,
            items=names,
            top=top,
            link=link,
            bits=SeededBits(int(random.integers(2**40))),
        ).value
        order = np.array([int(name[1:]) for name in board.items])
        places = (1 + (truth[None, :] > truth[:, None]).sum(axis=1))[order]
        covered.append((board.low <= truth[order]) & (truth[order] <= board.high))
        ranked.append((board.rank_low <= places) & (places <= board.rank_high))
        said.append(board.top_probability)
        found.append(places <= top)
    return np.mean(covered), np.mean(ranked), np.concatenate(said), np.concatenate(found)


REPETITIONS = 200
COVERAGE = [
    ("outcome", 3000, 1, None, "logistic"),
    ("outcome", 400, "0.5", None, "logistic"),
    ("comparison", 3000, 1, None, "logistic"),
    ("comparison", 600, "0.5", None, "logistic"),
    ("voter", 6000, 2, 5, "logistic"),
    ("voter", 1000, 2, 5, "logistic"),
]


@pytest.mark.long
@pytest.mark.parametrize(("protect", "count", "epsilon", "per_voter", "link"), COVERAGE)
def test_coverage(protect, count, epsilon, per_voter, link, request):
    scores, ranks, said, found = simulate(
        generator(request), REPETITIONS, count, epsilon, protect, per_voter=per_voter, link=link
    )
    # 25 intervals a repetition, correlated within it: standard error below 0.01 for 200
    assert 0.92 <= scores <= 1.0
    assert ranks >= 0.92
    assert said.mean() == pytest.approx(5 / 25)
    for low, high in [(0, 0.1), (0.1, 0.5), (0.5, 1.01)]:
        here = (said >= low) & (said < high)
        error = 4 * math.sqrt(0.25 / max(1, here.sum()))
        assert found[here].mean() == pytest.approx(said[here].mean(), abs=0.1 + error)


@pytest.mark.slow
def test_coverage_of_wins():
    """The interval holds the wins in these very votes."""
    covered = []
    for repetition in range(150):
        half_wins, noisy = np.arange(20) * 10, NoisyWins(Protection("outcome"), 1)
        public = board_estimators.Public(tuple(map(str, range(20))), None)
        drawn = board_estimators.by_own_wins(half_wins, public, noisy, SeededBits(repetition)).draws
        low, high = drawn.interval(0.95)
        covered.append((low <= half_wins / 2) & (half_wins / 2 <= high))
    assert 0.93 <= np.mean(covered) <= 0.97


def test_copeland_counts_majorities_where_wins_count_comparisons():
    """An item that was compared most often has most wins, and loses to every other."""
    pairs = [("busy", other, 45, 55) for other in "abc"] + [("a", "b", 6, 4), ("a", "c", 6, 4), ("b", "c", 6, 4)]
    rows = [(one, two) if k < won else (two, one) for one, two, won, lost in pairs for k in range(won + lost)]
    table = pa.table({"winner": [row[0] for row in rows], "loser": [row[1] for row in rows]})
    asked = {"protect": "outcome", "items": ("busy", "a", "b", "c"), "bits": SeededBits(3)}
    assert rank(table, 1000, method="wins", **asked).value.items[0] == "busy"
    board = rank(table, 1000, method="copeland", **asked).value
    assert dict(zip(board.items, board.scores.tolist(), strict=True)) == {"a": 3, "b": 2, "c": 1, "busy": 0}
