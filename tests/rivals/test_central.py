"""The central rivals: what a replaced ballot can move, exact laws of small elections, and what their papers state."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from benchmarks.rivals import condorcet, exponential, footrule, pairs, scores, top_sets, votes

from rankdp.data.ballots import Ballots
from rankdp.rankers.kemeny import kemeny

EPSILON = 1.2
ORDERS = [np.array(order) for order in itertools.permutations(range(3))]


def counted(rows, items=3):
    return votes.Votes(
        "small", Ballots.from_orders([[str(i) for i in row] for row in rows], [str(i) for i in range(items)])
    )


@cache
def neighbours():
    """Elections that differ in one of three ballots."""
    found = []
    for first, second in itertools.combinations_with_replacement(ORDERS, 2):
        found += itertools.permutations([counted([first, second, order]) for order in ORDERS], 2)
    return found


def worst(law):
    return max(float(np.log(law(one) / law(other)).max()) for one, other in neighbours())


@pytest.mark.parametrize("items", [3, 4, 5])
def test_no_ballot_moves_more_than_the_noise_is_made_for(items):
    """l1 over all pairs of complete ballots: pairs 2M, centred points 2 floor(m^2/2), places 2m at each level."""
    every = [counted([order], items) for order in itertools.permutations(range(items))]

    def moved(count):
        return max(np.abs(count(every[0]) - count(other)).sum() for other in every)

    upper = np.triu_indices(items, 1)
    assert moved(lambda one: one.margins[upper]) == items * (items - 1)
    assert moved(lambda one: one.ballots.centred_borda()) == 2 * (items * items // 2)
    for tree in (False, True):
        intervals, levels = footrule._intervals(items, tree)
        found = moved(lambda one, intervals=intervals: one.positions @ intervals.T)
        assert found <= 2 * items * levels + 1e-9
        assert levels > 1 or found == 2 * items


def law_of_orders(one):
    rate = exponential.rate(3, EPSILON)
    weights = np.array([np.exp(rate / 2 * votes._agreed(one.margins, order)) for order in ORDERS])
    return weights / weights.sum()


def test_the_exponential_mechanism_keeps_its_promise_and_draws_its_law():
    assert 0.9 * EPSILON / 2 < worst(law_of_orders) <= EPSILON + 1e-9
    one = counted([ORDERS[0], ORDERS[0], ORDERS[1], ORDERS[4]])
    drawn = exponential.exponential_kemeny(one, EPSILON, 4000, np.random.default_rng(1))
    cells = {tuple(order): cell for cell, order in enumerate(ORDERS)}
    share = np.bincount([cells[tuple(order)] for order in drawn], minlength=6) / 4000
    assert share == pytest.approx(law_of_orders(one), abs=4 * math.sqrt(0.25 / 4000))


@pytest.mark.parametrize("kind", condorcet.KINDS)
def test_the_condorcet_methods_keep_their_promise(kind):
    realised = worst(lambda one: condorcet.elected(condorcet.win_probabilities(one.margins, EPSILON, kind)))
    assert 0.1 < realised <= EPSILON + 1e-9
    doubled = worst(lambda one: condorcet.elected(condorcet.win_probabilities(one.margins, 4 * EPSILON, kind)))
    assert doubled > EPSILON  # the check can fail


@pytest.mark.parametrize("m", [3, 4])
def test_what_the_condorcet_winner_tells_is_bounded_as_proven(m):
    """The steps of the proof for random tables: each sum over pairs, with all tournaments enumerated."""
    random = np.random.default_rng(m)
    first, second = np.triu_indices(m, 1)
    reached = 0.0
    for _ in range(40):
        chance = random.uniform(size=len(first)) ** random.choice([0.1, 1, 5])
        alone, slopes = np.zeros(m + 1), np.zeros((m + 1, len(first)))  # the last row: nobody beats all
        for outcome in itertools.product((True, False), repeat=len(first)):
            each = np.where(outcome, chance, 1 - chance)
            losses = np.bincount(np.where(outcome, second, first), minlength=m)
            who = int(losses.argmin()) if losses.min() == 0 else m
            alone[who] += each.prod()
            slopes[who] += each.prod() / each * np.where(outcome, 1, -1)
        weight = np.minimum(chance, 1 - chance)
        odds = np.zeros((m, m))
        odds[first, second], odds[second, first] = (1 - chance) / chance, chance / (1 - chance)
        told = np.minimum(odds, 1).sum(axis=1)
        moved = np.abs(slopes) @ weight
        assert moved[:m] == pytest.approx(alone[:m] * told)
        assert moved[m] <= 3 * alone[m] + 1e-12
        assert (alone[m] >= alone[:m] * (2 ** (told - 1) - 1) - 1e-12).all()
        elected = alone[:m] + alone[m] / m
        reached = max(reached, (np.abs(slopes[:m] + slopes[m] / m) @ weight / elected).max())
    assert 1 < reached <= condorcet.cost(m)


def test_one_shot_noise_for_one_item_is_the_exponential_mechanism():
    """Scores that move within an interval of length D: odds e^(eps/D) for each point of lead."""
    drawn = top_sets.one_shot(np.array([3.0, 0.0]), 1, 2, EPSILON, 20_000, np.random.default_rng(8))
    assert (drawn == 0).mean() == pytest.approx(1 / (1 + math.exp(-EPSILON * 3 / 2)), abs=0.01)


def test_randomised_response_satisfies_the_probabilistic_condorcet_criterion():
    """Li et al. 2023: a Condorcet winner has the largest probability, whatever the noise."""
    one = counted([(1, 0, 2), (1, 2, 0), (0, 1, 2)])
    for epsilon in (0.01, 1, 20):
        assert condorcet.elected(condorcet.win_probabilities(one.margins, epsilon, "response")).argmax() == 1


@pytest.mark.parametrize("flip", [False, True])
def test_sets_keep_their_promise(flip):
    """Votes for first places: D = 2 where a ballot is replaced."""

    def law(one):
        return top_sets.canonical_probabilities(one.positions[:, 0], 2, 2, EPSILON, flip)

    assert 0.2 * EPSILON < worst(law) <= EPSILON + 1e-9
    assert worst(lambda one: top_sets.joint_probabilities(one.positions[:, 0], 2, 2, EPSILON)) <= EPSILON + 1e-9


def test_permute_and_flip_of_sets_is_never_worse_than_the_exponential_mechanism():
    """McKenna and Sheldon 2020, Theorem 2, for the canonical loss."""
    for found in np.random.default_rng(2).integers(0, 50, (20, 6)):
        losses = top_sets.canonical_losses(found, 3)
        flip, plain = (top_sets.canonical_probabilities(found, 3, 2, 0.3, flip) for flip in (True, False))
        assert flip.sum() == pytest.approx(1)
        assert flip @ losses <= plain @ losses + 1e-12


def test_the_footrule_order_costs_at_most_twice_the_best():
    """Diaconis and Graham 1977; with a huge epsilon nothing but the footrule is left of the rival."""
    random = np.random.default_rng(3)
    for _ in range(10):
        one = counted([random.permutation(6) for _ in range(7)], 6)
        order = footrule.footrule(one, 1e9, 1, random)[0]
        cost = {name: 7 * 15 - votes._agreed(one.margins, held) for name, held in (("foot", order), ("best", one.best))}
        assert cost["foot"] <= 2 * cost["best"]


def test_kemeny_by_subsets_is_ours():
    random = np.random.default_rng(4)
    tables = random.normal(size=(5, 7, 7))
    tables -= tables.transpose(0, 2, 1)
    for table, order in zip(tables, votes.kemeny(tables), strict=True):
        assert votes._agreed(table, order) == pytest.approx(
            votes._agreed(table, np.array(kemeny(np.maximum(table, 0)).order))
        )


def test_kwiksort_without_noise_sorts_a_transitive_table():
    table = np.arange(6)[None] - np.arange(6)[:, None]
    assert pairs.sort(table.astype(float), [3, 1, 5, 0, 2, 4], np.random.default_rng(5)) == [0, 1, 2, 3, 4, 5]


def test_the_cylinder_has_the_variance_of_its_law():
    """Three items: a hexagon of radius sqrt(8), 5/24 of the squared radius in each of two directions, shared by three
    items; times the second moment of a gamma number with four degrees of freedom, 20/eps^2."""
    random = np.random.default_rng(6)
    for epsilon in (1.0, 0.5):
        drawn = scores.cylinder(3, epsilon, 8000, random)
        assert drawn.var() == pytest.approx(2 / 3 * 5 / 24 * 8 * 20 / epsilon**2, rel=0.06)
