"""Keep probabilities of Laplace and reinsertion against enumeration, and Lemma 4."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.theory import concordance, mallows


@pytest.mark.parametrize("a", [1e-9, 0.01, 0.3, 1, 5, 40, 2000])
def test_laplace_keep_against_integration(a):
    """P(X + gap > Y) for two Laplace variables, by integrating over one of them."""
    closed = float(concordance.laplace_keep(np.array([1]), 1 / a)[0])
    # P(Y - X < a) with Y, X standard Laplace: the integral of f(x) F(x + a), F by cases
    pieces = [(-60, -a), (-a, 0), (0, 60)] if a < 60 else [(-60, 0), (0, 60)]

    def integrand(x):
        below = math.exp(x + a) / 2 if x + a < 0 else 1 - math.exp(-(x + a)) / 2
        return math.exp(-abs(x)) / 2 * below

    assert closed == pytest.approx(sum(quad(integrand, *piece, epsabs=1e-13)[0] for piece in pieces), abs=1e-10)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 4, 10, 30, 100])
@pytest.mark.parametrize("items", [2, 3, 4, 5, 6, 10, 50, 500])
def test_lemma_4_kendall_keeps_more_than_laplace(items, epsilon):
    scale = 2 * (items - 1) / epsilon
    laplace = concordance.average_over_gaps(items, lambda gaps: concordance.laplace_keep(gaps, scale))
    ours = mallows.expected_concordance(items, epsilon)
    assert ours > laplace or (ours == pytest.approx(1) and laplace == pytest.approx(1))


def exact_reinsertion(items, removed):
    """For a fixed number of removed items: every (set, places, order), with equal weight, as fractions."""
    kept_pairs = np.zeros((items, items), dtype=int)
    landed = np.zeros((items, items), dtype=int)
    count = 0
    for out in itertools.permutations(range(items), removed):  # a set and the order in which it returns to its places
        stays = [item for item in range(items) if item not in out]
        for places in itertools.combinations(range(items), removed):
            s, returning, staying = [], iter(out), iter(stays)
            for j in range(items):
                s.append(next(returning) if j in places else next(staying))
            count += 1
            where = [s.index(item) for item in range(items)]
            for i, j in itertools.combinations(range(items), 2):
                kept_pairs[i, j] += where[i] < where[j]
            for a in range(items):
                landed[a, where[a]] += 1
    return kept_pairs, landed, count


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_reinsertion_against_every_way_to_take_out_and_put_back(items):
    for removed in range(items + 1):
        kept, landed, count = exact_reinsertion(items, removed)
        law = np.eye(items + 1)[removed]
        matrix = concordance.reinsertion_position_matrix(items, law)
        np.testing.assert_allclose(matrix, landed / count, atol=1e-13)
        gaps = np.arange(1, items)
        keep = concordance.reinsertion_keep(gaps, items, law)
        for i, j in itertools.combinations(range(items), 2):
            assert keep[j - i - 1] == pytest.approx(float(Fraction(int(kept[i, j]), count)), abs=1e-13)


@pytest.mark.parametrize("weight", [1e-9, 0.1, 1.7, 50, 1e30])
@pytest.mark.parametrize("items", [2, 5, 30])
def test_law_of_the_number_taken_out(items, weight):
    exact = [Fraction(math.comb(items, d) * math.perm(items, d)) / Fraction(weight) ** d for d in range(items + 1)]
    law = np.exp(concordance.reinsertion_log_law(items, math.log(weight)))
    assert law.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(law, [float(part / sum(exact)) for part in exact], rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize(("items", "epsilon"), [(40, 3), (100, 6)])
def test_reinsertion_position_matrix_is_doubly_stochastic(items, epsilon):
    law = np.exp(concordance.reinsertion_log_law(items, math.log(math.expm1(epsilon))))
    matrix = concordance.reinsertion_position_matrix(items, law)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-10)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9)


def test_average_over_gaps_weighs_each_pair_once():
    def keep(gaps):
        return 1 / (1.0 + gaps)

    for items in (2, 3, 9):
        pairs = [1 / (1 + j - i) for i, j in itertools.combinations(range(items), 2)]
        assert concordance.average_over_gaps(items, keep) == pytest.approx(sum(pairs) / len(pairs), rel=1e-14)


@pytest.mark.parametrize(("items", "epsilon", "k"), [(12, 1e-3, 5), (60, 2.0, 7), (300, 6.0, 40), (300, 1e5, 299)])
def test_the_overlap_of_a_top_list_is_its_corner_of_the_position_matrix(items, epsilon, k):
    one = Reinsertion(items, epsilon)
    assert one.top_overlap(k) == pytest.approx(one.top_block(k).sum() / k, rel=1e-10)
