"""Kemeny orders against every permutation and against subsets, and their bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.errors import InputError
from rankdp.rankers import kemeny as module
from rankdp.rankers.kemeny import components, kemeny
from rankdp.theory.permutations import all_permutations

ROUNDS = (60, 0)  # with the programme, and by search alone


def cost(weights, order):
    return sum(weights[low][high] for high, low in itertools.combinations(order, 2))


def best_cost(weights):
    """The least cost over all permutations."""
    weights = np.asarray(weights)
    orders = all_permutations(len(weights))
    first, second = np.triu_indices(len(weights), 1)
    return weights[orders[:, second], orders[:, first]].sum(axis=1).min()


def voters(m, count, seed):
    generator = np.random.default_rng(seed)
    ranks = np.array([generator.permutation(m) for _ in range(count)])
    return (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)


def tournament(m, seed):
    """Every pair decided by a coin: the hardest weights there are."""
    upper = np.triu(np.random.default_rng(seed).integers(0, 2, (m, m)), 1)
    return upper + np.tril(1 - upper.T, -1)


def leads(weights):
    return np.ascontiguousarray(np.transpose(weights) - weights)


def check(weights, found, optimum, tolerance=0.0):
    assert sorted(found.order.tolist()) == list(range(len(weights)))
    assert found.cost == pytest.approx(cost(weights, found.order), abs=tolerance)
    assert found.lower_bound <= optimum + tolerance
    assert optimum <= found.cost + tolerance
    assert found.gap >= 0
    if found.exact:
        assert found.gap == 0
        assert found.cost == pytest.approx(optimum, abs=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_permutation(rounds, seed):
    generator = np.random.default_rng(seed)
    for m in range(1, 8):
        for weights in (
            voters(m, 5, seed),
            generator.integers(0, 3, (m, m)),
            generator.integers(-4, 2, (m, m)) * 6,
            generator.normal(size=(m, m)),
            generator.normal(size=(m, m)) * 1e-200,
        ):
            tolerance = 0 if weights.dtype.kind == "i" else 1e-9 * np.abs(weights).sum()
            found = kemeny(weights, rounds=rounds)
            check(weights, found, best_cost(weights), tolerance)
            assert found.exact or not rounds


@settings(max_examples=60)
@given(st.integers(1, 6).flatmap(lambda m: st.lists(st.integers(-3, 3), min_size=m * m, max_size=m * m)))
def test_any_small_whole_weights(entries):
    m = round(len(entries) ** 0.5)
    weights = np.array(entries).reshape(m, m)
    optimum = best_cost(weights)
    for rounds in ROUNDS:
        found = kemeny(weights, rounds=rounds)
        check(weights, found, optimum)
        assert isinstance(found.cost, int)


@settings(max_examples=40)
@given(
    st.integers(1, 6).flatmap(
        lambda m: st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=m * m, max_size=m * m)
    )
)
def test_any_small_real_weights(entries):
    m = round(len(entries) ** 0.5)
    weights = np.array(entries).reshape(m, m)
    optimum = best_cost(weights)
    for rounds in ROUNDS:
        check(weights, kemeny(weights, rounds=rounds), optimum, 1e-8 * (1e-30 + np.abs(weights).sum()))


def best_by_subsets(lead):
    """The least excess by dynamic programming over subsets: best[S] = min over j in S of best[S - j] + tolls of j."""
    m, tolls = len(lead), np.maximum(lead, 0)
    members = [[j for j in range(m) if subset >> j & 1] for subset in range(1 << m)]
    best = [0] * (1 << m)
    for subset in range(1, 1 << m):
        best[subset] = min(best[subset ^ 1 << j] + tolls[j, members[subset]].sum() for j in members[subset])
    return best[-1]


def excess(lead, order):
    return np.triu(np.maximum(lead, 0)[np.ix_(order, order)], 1).sum()


@pytest.fixture
def no_enumeration(monkeypatch):
    """Lets small components take the path of large ones."""
    monkeypatch.setattr(module, "_MOST_ENUMERATED", 1)


@pytest.mark.slow
@pytest.mark.parametrize("m", [8, 9, 10])
def test_the_programme_finds_what_subsets_find(m):
    generator = np.random.default_rng(m)
    for weights in (voters(m, 4, m), voters(m, 21, m), tournament(m, m), generator.normal(size=(m, m))):
        optimum = best_by_subsets(leads(weights))
        found = kemeny(weights)
        assert found.exact
        assert excess(leads(weights), found.order) == pytest.approx(optimum, rel=1e-9)
        rough = kemeny(weights, rounds=0)
        assert rough.lower_bound <= found.cost + 1e-9
        assert found.cost <= rough.cost + 1e-9
        assert module._Search(leads(weights), False).packing() <= optimum + 1e-9


@pytest.mark.slow
def test_lines_of_components_cost_no_more_than_the_whole():
    for seed in range(30):
        generator = np.random.default_rng(seed)
        weights = generator.integers(0, 2 + seed % 3, (7, 7))  # many ties
        lead = leads(weights)
        assert excess(lead, kemeny(weights).order) == best_by_subsets(lead)
        assert excess(lead, module._enumerate(lead)) == best_by_subsets(lead)


@pytest.mark.slow
@pytest.mark.usefixtures("no_enumeration")
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_programme_against_every_permutation(rounds, seed):
    generator = np.random.default_rng(seed)
    for m in range(3, 8):
        for weights in (voters(m, 5, seed), tournament(m, seed), generator.normal(size=(m, m))):
            tolerance = 0 if weights.dtype.kind == "i" else 1e-8 * np.abs(weights).sum()
            found = kemeny(weights, rounds=rounds)
            check(weights, found, best_cost(weights), tolerance)
            assert found.exact or not rounds


def test_the_programme_goes_on_in_whole_numbers(monkeypatch):
    """A table whose relaxation is no order."""
    weights = tournament(14, 6) + 1e-4 * np.random.default_rng(1).random((14, 14))
    found = kemeny(weights)
    assert found.exact
    assert excess(leads(weights), found.order) == pytest.approx(26, abs=0.02)
    monkeypatch.setattr(module, "_MOST_WHOLE", 10)
    relaxed = kemeny(weights)
    assert not relaxed.exact
    assert 0.5 < relaxed.gap < 0.8


def test_any_prices_prove_a_bound():
    lead = leads(np.random.default_rng(5).normal(size=(7, 7)))
    programme = module._Programme(module._Search(lead, False), 0.0)  # as if no cycles were packed
    programme.run(3)
    generator, optimum = np.random.default_rng(6), best_by_subsets(lead)

    class AnyPrices:
        def getSolution(self):
            return self

        @property
        def row_dual(self):
            return generator.normal(size=len(programme.cuts)) * generator.choice([0, 0.01, 0.1, 1])

    programme.solver = AnyPrices()
    assert len(programme.cuts) > 0
    assert max(programme._dual_bound() for _ in range(200)) <= optimum


def test_components():
    # 3 beats all; 0, 1, 2 form a cycle; 4 ties with everyone but 3
    lead = np.zeros((5, 5), np.int64)
    for high, low in ((3, 0), (3, 1), (3, 2), (3, 4), (0, 1), (1, 2), (2, 0)):
        lead[high, low], lead[low, high] = -1, 1
    assert [part.tolist() for part in components(lead)] == [[3], [0, 1, 2], [4]]
    assert [part.tolist() for part in components(np.zeros((3, 3)))] == [[0], [1], [2]]


def test_condorcet_cycle():
    # 4 voters a b c, 3 voters b c a, 2 voters c a b: the weakest majority, c over a by 5 to 4, gives way
    weights = [[0, 6, 4], [3, 0, 7], [5, 2, 0]]
    for rounds in ROUNDS:
        found = kemeny(weights, rounds=rounds)
        assert (found.order.tolist(), found.cost, found.exact) == ([0, 1, 2], 10, True)
    assert kemeny(weights).method == "enumeration"
    assert kemeny(tournament(12, 1)).method == "programme"
    assert kemeny([[0, 6], [3, 0]]).method == "majorities"


def test_ties_stand_by_their_items():
    assert kemeny(np.ones((5, 5))).order.tolist() == [0, 1, 2, 3, 4]
    # a cycle of equal majorities: three optimal orders, of which the first is taken
    cycle = [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    assert kemeny(cycle).order.tolist() == [0, 1, 2]
    assert kemeny([[7]]).order.tolist() == [0]


def test_the_first_of_all_optimal_orders():
    for seed in range(10):
        lead = leads(tournament(6, seed))
        orders = all_permutations(6)
        costs = np.array([excess(lead, order) for order in orders])
        first = min(map(tuple, orders[costs == costs.min()].tolist()))
        assert tuple(module._enumerate(lead).tolist()) == first


def test_whole_weights_are_added_exactly():
    big = 2**50
    weights = np.array([[0, big + 1, 0], [0, 0, big + 2], [big + 3, 0, 0]])
    assert (kemeny(weights).cost, kemeny(weights).order.tolist()) == (big + 1, [1, 2, 0])
    assert kemeny(weights.astype(np.uint64)).cost == big + 1
    assert isinstance(kemeny(np.array([[0.0, 3.0], [1.0, 0.0]])).cost, int)


def test_only_differences_matter():
    generator = np.random.default_rng(4)
    weights = voters(12, 7, 4)
    shift = generator.integers(-50, 50, (12, 12))
    shift = np.triu(shift, 1) + np.triu(shift, 1).T
    moved = kemeny(weights + shift)
    assert moved.order.tolist() == kemeny(weights).order.tolist()
    assert moved.cost == kemeny(weights).cost + np.triu(shift, 1).sum()
    assert moved.exact


@pytest.mark.parametrize("rounds", ROUNDS)
def test_same_arguments_same_order(rounds):
    weights = voters(24, 6, 1)
    found = [kemeny(weights, rounds=rounds) for _ in range(2)]
    assert found[0].order.tolist() == found[1].order.tolist()
    assert found[0].lower_bound == found[1].lower_bound


@pytest.mark.slow
def test_few_rounds_leave_a_proven_gap():
    found = [kemeny(tournament(45, 2), rounds=rounds) for rounds in (0, 2, 4)]
    assert not any(part.exact for part in found)
    assert found[0].lower_bound <= found[1].lower_bound < found[2].lower_bound
    assert 0 < found[2].gap < 0.5 * found[2].cost
    assert found[2].gap_share == found[2].gap / found[2].cost
    assert isinstance(found[2].lower_bound, int)


@pytest.mark.slow
def test_long_lists():
    generator = np.random.default_rng(7)
    strengths = np.linspace(0, 3, 300)
    chances = 1 / (1 + np.exp(strengths[:, None] - strengths))  # item 0 is the weakest
    weights = np.triu(generator.binomial(9, chances), 1)
    weights = weights + np.tril(9 - weights.T, -1)
    found = kemeny(weights)
    assert found.method == "heuristic"
    assert not found.exact
    assert found.lower_bound < found.cost <= cost(weights, np.arange(300))
    assert np.corrcoef(found.order, np.arange(300))[0, 1] > 0.9


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([[1, 2]], r"weights must be a square table of one item or more, got the shape \(1, 2\)"),
        ([1, 2], r"weights must be a square table of one item or more, got the shape \(2,\)"),
        (np.empty((0, 0)), r"weights must be a square table of one item or more, got the shape \(0, 0\)"),
        ([[0, np.nan], [1, 0]], "weights must be finite numbers, got nan for items 0 and 1"),
        ([[0, 1], [-np.inf, 0]], "weights must be finite numbers, got -inf for items 1 and 0"),
        ([["a", "b"], ["c", "d"]], "weights must be a square table of numbers, got"),
        ([[1, 2], [3]], "weights must be a square table of numbers, got"),
        ([[0, 2**61], [0, 0]], r"weights must be whole numbers below 2\^62 / m\^2, got one of 2305843009213693952"),
        ([[0, 1e300], [0.5, 0]], r"weights must be below 1e300 / m\^2, got one of 1e\+300"),
    ],
)
def test_bad_weights(weights, sentence):
    with pytest.raises(InputError, match=sentence):
        kemeny(weights)


def test_bad_options():
    for rounds in (-1, 1.5, True):
        with pytest.raises(InputError, match="rounds must be an integer of at least 0"):
            kemeny([[0, 1], [2, 0]], rounds=rounds)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "gap"), [(50, 0), (51, 1)])
def test_sixty_items(count, gap):
    weights = voters(60, count, 3)
    found, rough = kemeny(weights), kemeny(weights, rounds=0)
    assert found.gap <= gap  # of the second table the relaxation is no order
    assert rough.lower_bound <= found.lower_bound <= found.cost <= rough.cost
