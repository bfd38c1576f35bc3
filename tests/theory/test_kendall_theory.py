"""Closed forms of the Kendall mechanism against enumeration with 80 digits, for tiny, everyday and huge epsilon."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from support import inversions, precise

from rankdp.theory import mallows

EPSILONS = [1e-12, 1e-4, 3e-4, 1e-3, 0.05, 1, 50, 3000, 1e6]
SIZES = (2, 3, 6)


@cache
def by_inversions(items):
    """All permutations with their numbers of discordant pairs, once per test run."""
    return [(s, inversions(s)) for s in itertools.permutations(range(items))]


def expectation(items, epsilon, value):
    """E[value(s)] under P proportional to exp(-eps inv(s) / (m-1)), to 70 digits."""
    sums = {}
    for s, count in by_inversions(items):
        here = sums.setdefault(count, [0, 0])
        here[0] += 1
        here[1] += value(s)
    with localcontext(precise()):
        x = Decimal(repr(epsilon)) / (items - 1)
        weights = {count: (-x * count).exp() for count in sums}
        total = sum(weights[count] * here[0] for count, here in sums.items())
        return sum(weights[count] * here[1] for count, here in sums.items()) / total


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", SIZES)
def test_keep_probability_by_gap(items, epsilon):
    for gap in range(1, items):
        kept = {
            start: expectation(items, epsilon, lambda s, a=start, b=start + gap: s.index(a) < s.index(b))
            for start in range(items - gap)
        }
        for exact in kept.values():  # the same wherever the pair stands
            assert abs(exact - kept[0]) < Decimal("1e-60")
            assert mallows.keep_probability(items, epsilon, gap) == pytest.approx(float(exact), rel=1e-10)
            # and what is kept beyond one half, which is all that matters for tiny epsilon
            advantage = mallows.keep_probability(items, epsilon, gap) - 0.5
            assert advantage == pytest.approx(float(exact - Decimal("0.5")), rel=1e-6, abs=1e-11)


def test_keep_probability_stays_accurate_for_long_rankings():
    """h(g+1) - h(g), whose terms reach 10^9, against 80 digits at gaps of up to 10^5 and rates down to 10^-12."""
    for items, gap in itertools.product([10, 1000, 10**5], [1, 7, 900, 99_000]):
        for epsilon in (1e-6, 2e-4, 0.01, 1, 30, 1000):
            if gap >= items:
                continue
            with localcontext(precise()):
                x = Decimal(repr(epsilon)) / (items - 1)
                exact = (gap + 1) / (1 - (-x * (gap + 1)).exp()) - gap / (1 - (-x * gap).exp())
            assert mallows.keep_probability(items, epsilon, gap) == pytest.approx(float(exact), abs=1e-11)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", SIZES)
def test_expected_concordance(items, epsilon):
    exact = expectation(items, epsilon, lambda s: math.comb(items, 2) - inversions(s)) / math.comb(items, 2)
    assert mallows.expected_concordance(items, epsilon) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", [2, 3, 6, 40])
def test_theorem_1_3_mean_and_variance_of_a_stage(items, epsilon):
    for stage in range(1, items + 1):
        with localcontext(precise()):
            x = Decimal(repr(epsilon)) / (items - 1)
            weights = [(x * (k - stage)).exp() for k in range(stage)]
            mean = sum(k * w for k, w in enumerate(weights)) / sum(weights)
            variance = sum((k - mean) ** 2 * w for k, w in enumerate(weights)) / sum(weights)
        assert mallows.stage_mean(items, epsilon, stage) == pytest.approx(float(mean), rel=1e-9, abs=1e-15)
        assert mallows.stage_variance(items, epsilon, stage) == pytest.approx(float(variance), rel=1e-8, abs=1e-11)


def test_theorem_1_3_as_the_paper_prints_it():
    """E = t - 1 + t/(q^t - 1) - 1/(q - 1); the limit for large epsilon is t - 1."""
    q = math.exp(1.7 / 4)
    for t in range(1, 6):
        assert mallows.stage_mean(5, 1.7, t) == pytest.approx(t - 1 + t / (q**t - 1) - 1 / (q - 1))
        assert mallows.stage_mean(5, 1e5, t) == t - 1
        assert mallows.stage_variance(5, 1e5, t) == 0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", SIZES)
def test_normaliser(items, epsilon):
    with localcontext(precise()):
        x = Decimal(repr(epsilon)) / (items - 1)
        exact = sum((-x * count).exp() for _, count in by_inversions(items)).ln()
    assert mallows.log_normaliser(items, epsilon) == pytest.approx(float(exact), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1, 4, 50, 3000])
@pytest.mark.parametrize("items", SIZES)
def test_position_matrix(items, epsilon):
    matrix = mallows.position_matrix(items, epsilon)
    for a, b in itertools.product(range(items), repeat=2):
        exact = expectation(items, epsilon, lambda s, a=a, b=b: s[b] == a)
        assert matrix[a, b] == pytest.approx(float(exact), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("items", "epsilon"), [(30, 1), (200, 5)])
def test_position_matrix_is_doubly_stochastic_and_symmetric(items, epsilon):
    matrix = mallows.position_matrix(items, epsilon)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9)  # a permutation and its inverse have as many inversions
    np.testing.assert_allclose(matrix, matrix[::-1, ::-1], rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1, 4, 50])
@pytest.mark.parametrize("items", [2, 3, 6, 20])
def test_theorem_1_2_for_a_fixed_ranking(items, epsilon):
    """Bounds of 2 P(keep) - 1; the lower one is attained by adjacent items."""
    low, high = mallows.preference_bounds(items, epsilon)
    q = math.exp(epsilon / (items - 1))
    assert low == pytest.approx((q - 1) / (q + 1))
    assert high == pytest.approx((q ** (2 * items - 3) - 1) / (q ** (2 * items - 3) + 1))
    advantages = [2 * mallows.keep_probability(items, epsilon, gap) - 1 for gap in range(1, items)]
    assert advantages[0] == pytest.approx(low, rel=1e-6)
    assert all(low * (1 - 1e-6) <= advantage <= high * (1 + 1e-6) for advantage in advantages)
    assert all(near <= far for near, far in itertools.pairwise(advantages))


def share_above(first, second, mixture, epsilon):
    """P(first stands above second) after the mechanism, for a random ranking of five items, in exact enumeration."""
    total = Decimal(0)
    for order, weight in mixture:
        i, j = order.index(first), order.index(second)
        here = expectation(5, epsilon, lambda s, i=i, j=j: s.index(i) < s.index(j))
        total += Decimal(weight.numerator) / Decimal(weight.denominator) * here
    return total


def test_theorem_1_1_fails_for_a_random_ranking():
    """Ranks (1,2,3,4,5) with 70%, (5,1,2,3,4) with 30%: 70% rank item 1 above item 2, after the mechanism 49% do."""
    mixture = [((1, 2, 3, 4, 5), Fraction(7, 10)), ((2, 3, 4, 5, 1), Fraction(3, 10))]
    before = sum(weight for order, weight in mixture if order.index(1) < order.index(2))
    assert before == Fraction(7, 10)
    after = share_above(1, 2, mixture, 1)
    assert after < Decimal("0.5")
    assert round(after, 2) == Decimal("0.49")
    # Theorem 1(2)'s ratio |2 eta~ - 1| / |2 eta - 1| falls below its lower bound as well.
    assert abs(2 * float(after) - 1) / 0.4 < mallows.preference_bounds(5, 1)[0]
    near = mallows.keep_probability(5, 1, 1)
    far = mallows.keep_probability(5, 1, 4)
    assert float(after) == pytest.approx(0.7 * near + 0.3 * (1 - far), rel=1e-12)


def test_theorem_1_1_holds_for_a_fixed_ranking():
    for first, second in itertools.combinations(range(1, 6), 2):
        assert share_above(first, second, [((1, 2, 3, 4, 5), Fraction(1))], 1) > Decimal("0.5")
