"""Answers in random order: the bound against the exact divergence of all multisets, and against a mutant."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from rankdp.mechanisms import mechanism
from rankdp.mechanisms.shuffled import epsilon_outside, outside_sentence
from rankdp.theory.permutations import all_permutations
from rankdp.theory.shuffling import _more_than, shuffled_delta


def multisets(laws):
    """The law of the answers in no order."""
    found = Counter({(): 1.0})
    for law in laws:
        grown = Counter()
        for answers, chance in found.items():
            for answer, own in enumerate(law):
                grown[tuple(sorted((*answers, answer)))] += chance * own
        found = grown
    return found


def laws_of(made):
    """The law of the output, by true ranking."""
    orders = all_permutations(made.items)
    return [np.exp(made.log_prob(orders, order)) for order in orders]


def worst_delta(made, answers, outside):
    """The largest divergence over pairs of true rankings, with the others at any fixed ranking."""
    laws = laws_of(made)
    orders, worst = range(len(laws)), 0.0
    for x, other, rest in itertools.product(range(1), range(1, len(orders)), range(len(orders))):
        one, two = (multisets([laws[first], *[laws[rest]] * (answers - 1)]) for first in (x, other))
        worst = max(worst, sum(max(0.0, one[key] - math.exp(outside) * two[key]) for key in one))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kendall-ball-0", "kendall-ball-1", "top-ball-1-0", "kendall", "reinsertion"])
def test_no_set_of_answers_is_told_apart_better_than_stated(name):
    made = mechanism(name, 3, 1.5, protect="ranking")
    for answers, outside in itertools.product((1, 2, 4), (0.0, 0.3, 0.8)):
        stated = shuffled_delta(float(made.local_epsilon()), answers, outside, made.total_variation())
        assert worst_delta(made, answers, outside) <= stated
        assert stated < 1


def test_the_total_variation_is_that_of_the_laws_or_more():
    for name in ("kendall-ball-0", "kendall-ball-3", "kendall-ball-4", "top-ball-1-0", "top-ball-2-2", "kendall"):
        made = mechanism(name, 4, 1.5, protect="ranking")
        first, *others = laws_of(made)
        exact = max(np.maximum(0, first - other).sum() for other in others)
        assert made.total_variation() >= exact * (1 - 1e-9)
        assert "kendall-ball" not in name or made.total_variation() == pytest.approx(exact), name


def test_the_bound_is_exact_at_outside_zero_and_needs_the_whole_total_variation():
    """One answer, and two: the divergence at eps' = 0 is the total variation of what is seen."""
    made = mechanism("kendall-ball-0", 3, 1.5, protect="ranking")
    for answers in (1, 2):
        exact = worst_delta(made, answers, 0)
        assert shuffled_delta(1.5, answers, 0, made.total_variation()) == pytest.approx(exact, rel=1e-5)
        assert exact > shuffled_delta(1.5, answers, 0, made.total_variation() * 0.99)


@pytest.mark.parametrize(("epsilon", "variation"), [(1.2, 1), (1.2, 0.3), (3, 0.7)])
def test_the_bound_is_the_mean_of_the_spread_law(epsilon, variation):
    """E max(0, X_1 + … + X_n)/n, all numbers of values at both ends written down."""
    answers, p, factor = 9, math.exp(epsilon), math.exp(0.4)
    alpha = min(variation / (p - 1), 1 / (p + 1))
    beta = (factor - 1 + alpha * (p - factor)) / (p * factor - 1)
    exact = 0.0
    for tops in range(answers + 1):
        for bottoms in range(answers - tops + 1):
            rest = answers - tops - bottoms
            ways = math.comb(answers, tops) * math.comb(answers - tops, bottoms)
            chance = ways * alpha**tops * beta**bottoms * (1 - alpha - beta) ** rest
            exact += chance * max(0, tops * (p - factor) - bottoms * (p * factor - 1)) / answers
    assert shuffled_delta(epsilon, answers, 0.4, variation) == pytest.approx(exact, rel=1e-5)
    assert shuffled_delta(epsilon, answers, 0.4, variation) >= exact


def test_tails_of_many_answers_are_exact():
    """Of an odd number of tosses, heads are the larger half with probability 1/2."""
    sizes = np.array([8_000_001.0])
    assert _more_than((sizes - 1) / 2, sizes, 0.5) == pytest.approx(0.5, rel=1e-11)


def test_one_answer_keeps_its_own_epsilon_and_many_hide_it():
    ball = mechanism("kendall-ball", 8, 4, protect="ranking")
    assert epsilon_outside(ball, 1) == pytest.approx(4)
    assert epsilon_outside(mechanism("kendall-ball", 8, 1000), 1000) == pytest.approx(1000)
    found = [epsilon_outside(ball, answers) for answers in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.3
    assert outside_sentence(ball, 1000) == (
        f"For everyone who does not receive single answers: epsilon {found[1]:g} at delta 1e-6 with 1,000 whole "
        "answers at epsilon 4, if names, order and time are deleted and results are published once."
    )


def test_what_variation_ratio_reduction_says_for_a_known_total_variation_is_not_enough():
    """Randomised response over six values: the counts (a, b) of both values alone, and all that is seen."""
    p, factor = math.exp(0.5), math.exp(0.4)
    alpha = 1 / (p + 5)  # the probability of every other value
    counts = {  # of one other answer and this one: the chances for x and for x'
        (2, 0): (alpha * p * alpha, alpha * alpha),
        (1, 1): (alpha * (p + 1) * alpha, alpha * (p + 1) * alpha),
        (0, 2): (alpha * alpha, alpha * p * alpha),
        (1, 0): (4 * alpha * alpha + (1 - 2 * alpha) * p * alpha, 4 * alpha * alpha + (1 - 2 * alpha) * alpha),
        (0, 1): (4 * alpha * alpha + (1 - 2 * alpha) * alpha, 4 * alpha * alpha + (1 - 2 * alpha) * p * alpha),
        (0, 0): ((1 - 2 * alpha) * 4 * alpha,) * 2,
    }
    said = sum(max(0.0, one - factor * two) for one, two in counts.values())
    made = mechanism("kendall-ball-0", 3, 0.5, protect="ranking")
    found = worst_delta(made, 2, 0.4)
    assert said == pytest.approx(0.00355, abs=1e-5)
    assert found == pytest.approx(0.00585, abs=1e-5)
    assert found <= shuffled_delta(0.5, 2, 0.4)


def test_too_many_clones_are_caught():
    """A bound for more answers than there are is broken by enumeration."""
    made = mechanism("kendall-ball-1", 3, 1.5, protect="ranking")
    assert worst_delta(made, 2, 0.3) > shuffled_delta(1.5, 40, 0.3)
