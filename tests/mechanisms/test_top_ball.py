"""The ball on lists of the best items: exact counts, exact draws, the best there is at its distance, mutants."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from scipy.stats import chisquare

from rankdp.audit import audit_exact
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms import candidates, describe, mechanism
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.top_ball import TopBall, completed
from rankdp.mechanisms.registry import respondents_for_one
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.cut_tables import CutTable, integer_weights
from rankdp.theory.estimators import rank_estimator
from rankdp.theory.permutations import all_permutations
from rankdp.theory.top_balls import TopLists

SMALL = [(3, 1), (4, 2), (5, 3), (5, 4), (6, 2), (6, 3)]


def distance(one, other):
    return len(set(one) - set(other)) + sum(a != b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("items", "length"), SMALL)
def test_counts_are_those_of_all_lists(items, length):
    lists, known = list(itertools.permutations(range(items), length)), TopLists(items, length)
    distances = [distance(range(length), other) for other in lists]
    assert known.up_to == np.cumsum(np.bincount(distances)).tolist()
    cells = Counter((len({*one} & {*range(length)}), sum(a == b for a, b in enumerate(one))) for one in lists)
    assert known.cells == dict(cells)


def test_the_distance_is_one():
    lists = list(itertools.permutations(range(4), 2))
    for one, other, third in itertools.product(lists, repeat=3):
        assert distance(one, third) <= distance(one, other) + distance(other, third)
        assert (distance(one, other) == 0) == (one == other)


@pytest.mark.parametrize(("items", "length", "radius"), [(3, 1, 0), (5, 2, 1), (5, 3, 3), (6, 3, 4), (6, 5, 4)])
def test_public_numbers_are_those_of_the_enumerated_law(items, length, radius):
    ball = TopBall(items, Fraction(3, 2), length, radius)
    logs = ball._log_prob(all_permutations(items))
    near = np.array([distance(range(length), order[:length]) <= radius for order in all_permutations(items).tolist()])
    assert np.exp(logs).sum() == pytest.approx(1)
    assert np.ptp(logs[near]) == np.ptp(logs[~near]) == 0
    assert logs[near][0] - logs[~near][0] == pytest.approx(1.5)
    np.testing.assert_allclose(ball.position_matrix(), RankingMechanism.position_matrix(ball), atol=1e-12)


@pytest.mark.parametrize(("items", "length", "radius"), [(4, 2, 2), (5, 3, 3)])
def test_the_tables_that_are_drawn_from_have_the_stated_law(items, length, radius):
    ball = TopBall(items, 2, length, radius)
    law = ball.exact_law(200)
    total = sum(low for low, _ in law)
    stated = np.exp(ball._log_prob(all_permutations(items)))
    np.testing.assert_allclose([float(low / total) for low, _ in law], stated, rtol=1e-12)
    assert audit_exact(ball).holds
    assert ball.local_epsilon() == ball.guarantee.whole_ranking_epsilon == 2


@pytest.mark.slow
@pytest.mark.parametrize(("items", "length", "radius"), [(4, 1, 0), (5, 2, 2), (5, 4, 4), (7, 3, 3)])
def test_draws_have_the_stated_law(items, length, radius):
    ball = TopBall(items, 2, length, radius)
    rows = 40_000
    drawn = ball.sample(np.tile(np.arange(items), (rows, 1)), SeededBits(length))
    lists = list(itertools.permutations(range(items), length))
    counts = Counter(map(tuple, drawn[:, :length].tolist()))
    near = np.array([distance(range(length), one) <= radius for one in lists])
    weights = np.where(near, math.e**2, 1.0)
    assert chisquare([counts[one] for one in lists], rows * weights / weights.sum()).pvalue > 1e-4
    last = drawn[:, length:].max(axis=1)  # the others come in any order
    assert abs(np.mean(drawn[:, -1] == last) - 1 / (items - length)) < 5 / math.sqrt(rows)


def test_what_follows_the_list_is_not_used():
    rng = np.random.default_rng(3)
    lists = np.array([rng.permutation(30)[:5] for _ in range(200)])
    one = completed(lists, 30)
    other = np.concatenate([lists, one[:, :4:-1]], axis=1)
    assert (np.sort(one, axis=1) == np.arange(30)).all()
    ball = TopBall(30, 4, 5)
    outputs = ball.sample(one, SeededBits(1))
    np.testing.assert_allclose(ball.log_prob(outputs, one), ball.log_prob(outputs, other))


def test_no_law_with_the_same_promise_keeps_lists_closer():
    """The linear program over *all* mechanisms for two of three items, without any symmetry, has the ball's value."""
    from scipy.optimize import linprog

    lists, epsilon = list(itertools.permutations(range(3), 2)), 1.3
    n = len(lists)
    cost = [distance(a, b) / n for a in lists for b in lists]  # of P(b | a), over all a alike
    bounds, norms = [], []
    for a, other, b in itertools.product(range(n), repeat=3):
        if a != other:
            row = np.zeros((n, n))
            row[a, b], row[other, b] = 1, -math.exp(epsilon)
            bounds.append(row.ravel())
    for a in range(n):
        row = np.zeros((n, n))
        row[a] = 1
        norms.append(row.ravel())
    best = linprog(cost, A_ub=bounds, b_ub=np.zeros(len(bounds)), A_eq=norms, b_eq=np.ones(n))
    law = np.exp(TopBall(3, epsilon, 2).log_prob([[*b, 3 - sum(b)] for b in lists], [0, 1, 2]))
    assert law @ [distance((0, 1), b) for b in lists] == pytest.approx(best.fun)


@pytest.mark.parametrize(("epsilon", "answers"), [(2, 56.0), (4, 13.3), (8, 4.0)])
def test_answers_for_one_of_five_out_of_thirty(epsilon, answers):
    ball = mechanism("auto", 30, epsilon, protect="ranking", top=5)
    assert respondents_for_one(ball, "ranking") == pytest.approx(answers, abs=0.05)
    others = [rank_estimator(TopBall(30, epsilon, 5, radius)).mean_variance for radius in range(1, 9)]
    assert rank_estimator(ball).mean_variance <= min(others) * (1 + 1e-6)


@pytest.mark.parametrize(("items", "length", "epsilon"), [(8, 3, 4), (20, 5, 2), (30, 5, 8)])
def test_nothing_keeps_more_of_the_top_of_whole_rankings(items, length, epsilon):
    best, *others = candidates(items, epsilon, purpose="top", top=length, protect="ranking")
    assert isinstance(best, TopBall)
    assert best.lists == length
    others += [TopBall(items, epsilon, length, radius) for radius in range(2 * length)]
    assert best.top_overlap(length) >= max(other.top_overlap(length) for other in others) - 1e-12
    assert mechanism(f"top-ball-{length}", items, epsilon).radius == best.radius


def test_words_of_the_registry():
    ball = mechanism("auto", 30, 4, protect="ranking", top=5)
    assert ball.name == "top-ball-5-7"
    assert candidates(30, 4, protect="ranking", top=5) == [ball]
    assert mechanism("top-ball-5-6", 30, 4, protect="ranking", top=5).radius == 6
    assert mechanism("top-ball-5", 30, 4, protect="ranking", top=5).radius == 7
    assert (
        "the first 5 of 30 items, epsilon 4 for the whole ranking): keeps 40% of the items of a list; 13 answers"
        in (describe(ball, 5, "ranking"))
    )
    assert mechanism("top-ball-5-7", 30, 4).name == ball.name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"top": 5}, "top needs purpose='top', or protect='ranking'"),
        ({"top": 30, "protect": "ranking"}, "the length of a list must be at most 29 for 30 items, got 30"),
        ({"top": 0, "protect": "ranking"}, "top must be an integer of at least 1, got 0"),
        ({"top": 5, "protect": "ranking", "name": "kendall"}, "mechanism must be auto or top-ball"),
        (
            {"top": 5, "protect": "ranking", "name": "top-ball-4"},
            "top must be 4, the length in top-ball-4, got 5",
        ),
        ({"name": "top-ball-1-2-3"}, "one or two numbers, the length and the radius"),
        ({"name": "top-ball-5-10"}, "radius must be below 10, the largest distance between two lists of 5 out of 30"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        mechanism(options.pop("name", "auto"), 30, 4, **options)


def test_pairs_are_out_of_reach():
    with pytest.raises(Unsupported, match="lists of the first 5 of 30 items say too little about pairs"):
        TopBall(30, 4, 5).expected_concordance()


class TwiceTheLevel(TopBall):
    """Levels 1 and e^(2 eps)."""

    @property
    def _mixture(self):
        return TopBall(self.items, 2 * self.epsilon, self.length, self.radius)._mixture


class LargerBall(TopBall):
    """Draws from a ball that is one larger, with the mixture of the stated one."""

    @cached_property
    def _tables(self):
        larger = TopBall(self.items, self.epsilon, self.length, self.radius + 1)
        return tuple(CutTable(integer_weights(ways)) for ways in (self._ways(0), larger._ways(1)))


class ComingBack(TopBall):
    """Counts moved items as if they could come back to their own place."""

    def _ways(self, inside):
        k, n = self.length, self.items
        return [
            math.comb(k, h) * math.comb(k - h, z - h) ** 2 * math.factorial(z - h) * math.perm(n - k, k - z)
            if not inside or 2 * k - z - h <= self.radius
            else 0
            for z, h in self._lists.cells
        ]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [TwiceTheLevel, ComingBack])
def test_mutants_break_the_promise(mutant):
    assert audit_exact(TopBall(5, 1, 3, 2)).holds
    assert not audit_exact(mutant(5, 1, 3, 2)).holds


def test_a_sampler_with_another_radius_is_not_the_stated_law():
    assert LargerBall(5, 1, 3, 2).exact_law(100) != TopBall(5, 1, 3, 2).exact_law(100)
