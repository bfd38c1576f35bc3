"""Theorem 2: the binomial tail behind it, its bound, its erratum, and the rate that defeats the attacker."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, decimal_exp, seeded

import rankdp
from rankdp.theory import mallows as theory


def exact_tail(releases, items, epsilon, ties):
    reverse = 1 / (1 + Fraction(decimal_exp(Fraction(epsilon) / (items - 1), 50)))
    return sum(
        math.comb(releases, k) * reverse**k * (1 - reverse) ** (releases - k)
        for k in range(releases + 1)
        if 2 * k > releases or (ties and 2 * k == releases)
    )


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("releases", [1, 2, 3, 10, 11, 60])
@pytest.mark.parametrize(
    ("items", "epsilon"), [(2, Fraction(1)), (5, Fraction(1, 1000)), (5, Fraction(2)), (4, Fraction(20))]
)
def test_reversal_tail_against_the_binomial_sum(releases, items, epsilon, ties):
    exact = float(exact_tail(releases, items, epsilon, ties))
    assert theory.reversal_tail(releases, items, float(epsilon), ties=ties) == pytest.approx(exact, rel=1e-10)


def test_reversal_tail_at_the_ends():
    assert theory.reversal_tail(3, 5, 0.0) == pytest.approx(0.5)
    assert theory.reversal_tail(3, 5, 1e5) == 0.0
    assert theory.theorem_2_bound(3, 5, 1e5) == 0.0


@pytest.mark.parametrize(("releases", "items", "epsilon"), [(1, 3, 1), (4, 4, 2), (5, 5, 3), (10, 3, 1)])
def test_reversal_tail_against_simulation(releases, items, epsilon, request):
    """N private copies of a ranking from the Kendall sampler itself: how often do most of them reverse the two best?"""
    trials = 20_000
    kendall = rankdp.mechanism("kendall", items, epsilon)
    drawn = kendall.sample(np.tile(np.arange(items), (trials * releases, 1)), seeded(request))
    places = np.argsort(drawn, axis=1)
    reversals = (places[:, 0] > places[:, 1]).reshape(trials, releases).sum(axis=1)
    for ties, seen in ((False, 2 * reversals > releases), (True, 2 * reversals >= releases)):
        tail = theory.reversal_tail(releases, items, epsilon, ties=ties)
        assert stats.binomtest(int(seen.sum()), trials, tail).pvalue > LEVEL


def test_a_majority_of_reversals_misleads_the_maximum_likelihood_estimate():
    """The step of the proof: if more than half reverse items 0 and 1, the identity is not the most likely ranking."""
    items, releases = 3, 3
    rankings = list(itertools.permutations(range(items)))

    def distance(s, t):
        return sum(
            (s.index(a) < s.index(b)) != (t.index(a) < t.index(b)) for a, b in itertools.combinations(range(items), 2)
        )

    misled = 0
    for seen in itertools.product(rankings, repeat=releases):
        reversing = sum(s.index(0) > s.index(1) for s in seen)
        if 2 * reversing > releases:
            misled += 1
            costs = {t: sum(distance(s, t) for s in seen) for t in rankings}
            assert costs[(0, 1, 2)] > min(costs.values())
    assert misled == len(rankings) ** releases / 2


@pytest.mark.parametrize("items", [3, 5, 20])
def test_theorem_2_bound_holds_with_a_constant(items):
    """For each (eps, m) some C0 works for every N; with the strict tail, C0 = 1/8 does here, but C0 = 10 does not."""
    for epsilon in (0.5, 1, 4):
        for releases in [*range(1, 40), 100, 400]:
            bound = theory.theorem_2_bound(releases, items, epsilon)
            tail = theory.reversal_tail(releases, items, epsilon)
            assert theory.theorem_2_bound(releases, items, epsilon, 2.0) == pytest.approx(2 * bound)
            q = math.exp(epsilon / (items - 1))
            formula = (q + 1) / (q - 1) * math.sqrt(2 / (math.pi * releases)) * math.exp(-releases * (q - 1) ** 2)
            assert bound == pytest.approx(formula, rel=1e-9)
            smallest = math.tanh(epsilon / (items - 1) / 2) / 8
            assert theory.theorem_2_bound(releases, items, epsilon, smallest) <= tail or bound < 1e-300
    assert theory.theorem_2_bound(1, 3, 0.5, 10.0) > theory.reversal_tail(1, 3, 0.5)


def test_the_erratum_with_ties_the_bound_claims_too_much():
    """N = 2 and tiny epsilon: the tail with ties is 3/4, the strict tail, which is what misleads, 1/4."""
    assert theory.reversal_tail(2, 5, 1e-9, ties=True) == pytest.approx(3 / 4)
    assert theory.reversal_tail(2, 5, 1e-9) == pytest.approx(1 / 4)
    for releases in (1, 3, 5, 51):  # for odd N the two are the same event
        assert theory.reversal_tail(releases, 4, 1.0) == theory.reversal_tail(releases, 4, 1.0, ties=True)


@pytest.mark.parametrize("items", [3, 4, 5, 30])
def test_the_adaptive_epsilon_keeps_the_attacker_guessing(items):
    """eps = (m-1)/sqrt(N): the tail never falls below 0.1; with a factor log N, or a fixed eps, it vanishes."""
    sizes = [1, 2, 3, 10, 100, 10_000, 10**6]
    tails = [theory.reversal_tail(n, items, theory.adaptive_epsilon(n, items)) for n in sizes]
    assert min(tails) > 0.05
    assert tails[-1] == pytest.approx(stats.norm.sf(0.5), abs=1e-3)  # its limit
    faster = [theory.reversal_tail(n, items, theory.adaptive_epsilon(n, items) * math.log(n)) for n in sizes[3:]]
    assert faster[-1] < 1e-10 < faster[0]
    assert theory.reversal_tail(10**6, items, 1.0) < 1e-20
