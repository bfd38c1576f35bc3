"""The Kendall ball: exact counts, exact draws, the best there is for whole rankings, and mutants that are caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rankdp.audit import audit_exact
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.kendall_ball import KendallBall
from rankdp.privacy.bits import SeededBits
from rankdp.theory import kendall_balls as theory
from rankdp.theory.estimators import rank_estimator
from rankdp.theory.pair_laws import of_permutations
from rankdp.theory.permutations import all_permutations


def inversions(order: tuple[int, ...]) -> int:
    return sum(a > b for a, b in itertools.combinations(order, 2))


@pytest.mark.parametrize("items", range(1, 8))
def test_counts_are_those_of_all_rankings(items):
    found = np.bincount([inversions(order) for order in itertools.permutations(range(items))])
    assert theory.counts_up_to(items) == tuple(np.cumsum(found).tolist())


@pytest.mark.parametrize(("items", "radius"), [(3, 0), (4, 2), (5, 4), (5, 9), (6, 7)])
def test_public_numbers_are_those_of_the_enumerated_law(items, radius):
    ball = KendallBall(items, Fraction(3, 2), radius)
    law = np.exp(ball._log_prob(all_permutations(items)))
    assert law.sum() == pytest.approx(1)
    assert ball.expected_concordance() == pytest.approx(RankingMechanism.expected_concordance(ball))
    assert np.allclose(ball.position_matrix(), RankingMechanism.position_matrix(ball))
    for i, j in itertools.combinations(range(items), 2):
        assert ball.keep_probability(i, j) == pytest.approx(RankingMechanism._keep(ball, i, j))
    for ours, listed in zip(ball.pair_law(), of_permutations(ball._permutations, law), strict=True):
        assert np.allclose(ours, listed)


@pytest.mark.parametrize(("items", "radius"), [(3, 1), (4, 3)])
def test_the_tables_that_are_drawn_from_have_two_levels_whose_ratio_is_at_most_the_promise(items, radius):
    ball = KendallBall(items, 2, radius)
    law = ball.exact_law(200)
    inside = [low for (low, _), order in zip(law, all_permutations(items), strict=True) if inversions(order) <= radius]
    outside = [
        high for (_, high), order in zip(law, all_permutations(items), strict=True) if inversions(order) > radius
    ]
    assert len(set(inside)) == len(set(outside)) == 1
    assert float(inside[0] / outside[0]) == pytest.approx(math.e**2)
    assert audit_exact(ball).holds


def test_both_promises_are_epsilon_exactly():
    ball = KendallBall(5, Fraction(7, 3))
    assert ball.local_epsilon() == ball.guarantee.epsilon == ball.guarantee.whole_ranking_epsilon == Fraction(7, 3)


class Words:
    """Bits that give fixed words first."""

    def __init__(self, *words: int) -> None:
        self.given = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.given = self.given[:count], self.given[count:]
        return np.array(taken, dtype=np.uint64)


def test_a_word_on_a_cut_point_is_settled_by_more_digits():
    ball = KendallBall(3, 1, 1)
    (cut, *_), ways = ball._cuts[3][1].tolist(), ball._ways(3, 1)
    assert ways == [2, 1, 0]  # two thirds of the ball do not move the last item
    share = Fraction(2, 3) * 2**64 - cut
    below, above = (int(share * 2**64) + shift for shift in (-1, 1))
    drawn = [int(ball._overtaken(np.array([1]), Words(cut, more, 0))[0, 1]) for more in (below, above)]
    assert drawn == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("items", "radius"), [(4, 2), (18, 40)])
def test_draws_have_the_stated_law(items, radius):
    ball = KendallBall(items, 2, radius)
    orders = np.tile(np.arange(items, dtype=np.int32), (40_000, 1))
    drawn = ball.sample(orders, SeededBits(11))
    first, second = np.triu_indices(items, 1)
    inside = np.mean((drawn[:, first] > drawn[:, second]).sum(axis=1) <= radius)
    share = ball.sizes[radius] / ball.sizes[-1]
    stated = ball._inside + (1 - ball._inside) * share
    assert abs(inside - stated) < 5 * math.sqrt(stated * (1 - stated) / len(orders))
    landed = np.mean(drawn == 0, axis=0)
    spread = np.sqrt(ball.position_matrix()[0] * (1 - ball.position_matrix()[0]) / len(orders))
    assert (np.abs(landed - ball.position_matrix()[0]) < 5 * spread).all()


@pytest.mark.parametrize(
    ("items", "kept"), [(4, (0.602, 0.693, 0.845, 0.996)), (10, (0.550, 0.598, 0.686, 0.819)), (20, (0.532, 0.564))]
)
def test_pairs_kept_at_the_best_radius(items, kept):
    """Against Mallows' model at the same whole-ranking epsilon, and all radii."""
    for epsilon, share in zip((1, 2, 4, 8), kept, strict=False):
        ball = KendallBall(items, epsilon)
        assert ball.expected_concordance() == pytest.approx(share, abs=6e-4)
        assert ball.expected_concordance() > Kendall(items, Fraction(2 * epsilon, items)).expected_concordance()
        others = [KendallBall(items, epsilon, radius) for radius in range(math.comb(items, 2))]
        assert ball.expected_concordance() == max(other.expected_concordance() for other in others)


def test_no_law_with_the_same_promise_keeps_more_pairs():
    """The linear program over all right-invariant laws of four items has the ball as its solution."""
    from scipy.optimize import linprog

    orders, epsilon = all_permutations(4), 1.5
    distance = np.array([inversions(order) for order in orders])
    n = len(orders)
    between = np.hstack([np.eye(n), -math.exp(epsilon) * np.ones((n, 1))])  # f <= e^eps x lowest
    above = np.hstack([-np.eye(n), np.ones((n, 1))])  # lowest <= f
    best = linprog(
        np.append(distance, 0),
        A_ub=np.vstack([between, above]),
        b_ub=np.zeros(2 * n),
        A_eq=[np.append(np.ones(n), 0)],
        b_eq=[1],
    )
    assert 1 - best.fun / 6 == pytest.approx(KendallBall(4, epsilon).expected_concordance())


def test_the_radius_for_mean_ranks_avoids_what_cannot_be_undone():
    best, usual = KendallBall.for_purpose(9, 4, "aggregate").radius, KendallBall(9, 4).radius
    variance = {radius: rank_estimator(KendallBall(9, 4, radius)).mean_variance for radius in (best, usual)}
    assert variance[best] == pytest.approx(20.4, abs=0.1)
    assert variance[usual] == pytest.approx(45.1, abs=0.1)


class RadiusOffByOne(KendallBall):
    """Draws from a ball that is one larger than the stated one, with the stated mixture."""

    def _path(self, behind, left):
        return super()._path(behind, left + 1 if left == self.radius and sum(behind) <= self.radius + 1 else left)


class TwiceTheLevel(KendallBall):
    """Levels 1 and e^(2 eps)."""

    @property
    def _mixture(self):
        return KendallBall(self.items, 2 * self.epsilon, self.radius)._mixture


class OneDirection(KendallBall):
    """Counts inversions of the first item only: what is drawn is no ball."""

    @staticmethod
    def _ways(size, left):
        return [math.factorial(size - 1) if v <= left else 0 for v in range(size)]


@pytest.mark.parametrize("mutant", [TwiceTheLevel, OneDirection])
def test_mutants_break_the_promise(mutant):
    assert not audit_exact(mutant(4, 1, 2)).holds
    assert audit_exact(KendallBall(4, 1, 2)).holds


def test_a_sampler_with_another_radius_is_not_the_stated_law():
    mutant, law = RadiusOffByOne(4, 1, 2), KendallBall(4, 1, 2).exact_law(100)
    assert mutant.exact_law(100) != law


@pytest.mark.parametrize(("radius", "words"), [(-1, "radius must be"), (6, "radius must be below 6"), (1.5, "radius")])
def test_a_radius_that_is_none(radius, words):
    with pytest.raises(InputError, match=words):
        KendallBall(4, 1, radius)
