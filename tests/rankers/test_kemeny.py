"""Kemeny orders: every method against every permutation, the methods against each other, and the bounds."""

from __future__ import annotations

import itertools
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.errors import InputError, Unsupported
from rankdp.rankers import kemeny_kernels as kernels
from rankdp.rankers.kemeny import components, kemeny, subsets
from rankdp.rankers.kemeny_search import Limits, Search
from rankdp.theory.permutations import all_permutations

pytestmark = pytest.mark.slow

METHODS = ("auto", "subsets", "programme", "heuristic")


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_every_permutation(method, seed):
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
            found = kemeny(weights, method=method)
            check(weights, found, best_cost(weights), tolerance)
            assert found.exact or method == "heuristic"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6).flatmap(lambda m: st.lists(st.integers(-3, 3), min_size=m * m, max_size=m * m)))
def test_any_small_whole_weights(entries):
    m = round(len(entries) ** 0.5)
    weights = np.array(entries).reshape(m, m)
    optimum = best_cost(weights)
    for method in METHODS:
        found = kemeny(weights, method=method)
        check(weights, found, optimum)
        assert isinstance(found.cost, int)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda m: st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=m * m, max_size=m * m)
    )
)
def test_any_small_real_weights(entries):
    m = round(len(entries) ** 0.5)
    weights = np.array(entries).reshape(m, m)
    optimum = best_cost(weights)
    for method in METHODS:
        check(weights, kemeny(weights, method=method), optimum, 1e-8 * (1e-30 + np.abs(weights).sum()))


@pytest.mark.parametrize("m", range(8, 16))
def test_subsets_and_programme_agree(m):
    generator = np.random.default_rng(m)
    for weights in (voters(m, 4, m), voters(m, 21, m), tournament(m, m), generator.normal(size=(m, m))):
        one, other = kemeny(weights, method="subsets"), kemeny(weights, method="programme")
        assert one.exact
        assert other.exact
        assert one.cost == pytest.approx(other.cost, rel=1e-12)
        rough = kemeny(weights, method="heuristic")
        assert rough.lower_bound <= one.cost + 1e-9
        assert one.cost <= rough.cost + 1e-9
        assert kernels.pack_cycles(leads(weights), 0, m) <= subsets(leads(weights)).excess + 1e-9


def test_lines_of_components_cost_no_more_than_the_whole():
    for seed in range(30):
        generator = np.random.default_rng(seed)
        weights = generator.integers(0, 2 + seed % 3, (9, 9))  # many ties
        lead = leads(weights)
        found = kemeny(weights)
        whole = subsets(lead).excess
        assert kernels.excess(lead, found.order.astype(np.int64)) == whole
        if np.any(lead):
            assert Search(lead, 0, Limits()).run().excess == whole


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
    for method in METHODS:
        found = kemeny(weights, method=method)
        assert (found.order.tolist(), found.cost, found.exact) == ([0, 1, 2], 10, True)
    assert kemeny(weights).method == "subsets"
    assert kemeny([[0, 6], [3, 0]]).method == "majorities"


def test_ties_stand_by_their_items():
    assert kemeny(np.ones((5, 5))).order.tolist() == [0, 1, 2, 3, 4]
    # a cycle of equal majorities: three optimal orders, of which subsets take the first
    cycle = [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    assert kemeny(cycle, method="subsets").order.tolist() == [0, 1, 2]
    assert kemeny([[7]]).order.tolist() == [0]


def test_the_first_of_all_optimal_orders():
    for seed in range(10):
        lead = leads(tournament(6, seed))
        orders = all_permutations(6)
        costs = np.array([kernels.excess(lead, order.astype(np.int64)) for order in orders])
        first = min(map(tuple, orders[costs == costs.min()].tolist()))
        assert tuple(subsets(lead).order.tolist()) == first


def test_whole_weights_are_added_exactly():
    big = 2**50
    weights = np.array([[0, big + 1, 0], [0, 0, big + 2], [big + 3, 0, 0]])
    for method in ("auto", "subsets"):
        found = kemeny(weights, method=method)
        assert (found.cost, found.order.tolist()) == (big + 1, [1, 2, 0])
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


@pytest.mark.parametrize("method", ["auto", "programme", "heuristic"])
def test_same_arguments_same_order(method):
    weights = voters(32, 6, 1)
    found = [kemeny(weights, method=method, seed=3) for _ in range(2)]
    assert found[0].order.tolist() == found[1].order.tolist()
    assert found[0].lower_bound == found[1].lower_bound
    assert kemeny(weights, method=method, seed=4).cost <= found[0].cost * 1.02


def test_a_time_limit_leaves_a_proven_gap():
    weights = tournament(45, 2)
    start = time.perf_counter()
    found = kemeny(weights, method="programme", time_limit=0.2)
    assert time.perf_counter() - start < 20  # the clock is looked at, on a busy machine and while compiling too
    assert not found.exact
    assert found.method == "programme"
    assert 0 < found.gap < 0.2 * found.cost
    assert found.gap_share == found.gap / found.cost
    assert isinstance(found.lower_bound, int)


def test_the_flows_of_any_triples_prove_a_bound():
    generator = np.random.default_rng(5)
    lead = leads(generator.normal(size=(7, 7)))
    optimum = subsets(lead).excess
    none = np.zeros((7, 7), np.int8)
    for _ in range(50):
        flows = generator.normal(size=35) * generator.choice([0, 0.01, 0.1, 1])
        assert kernels.bound_all(flows, np.triu(lead, 1), none, np.empty((7, 7))) <= optimum


def test_dropping_triples_with_two_fixed_pairs_never_weakens_the_bound():
    generator = np.random.default_rng(6)
    lead = np.triu(leads(generator.normal(size=(8, 8))), 1)
    for _ in range(30):
        fixed = np.zeros((8, 8), np.int8)
        for high, low in generator.integers(0, 8, (4, 2)):
            if high != low and fixed[high, low] == 0:
                assert kernels.put_above(fixed, high, low)
        flows = generator.normal(size=56) * 0.2
        triples, kept = kernels.list_open(flows, fixed)
        gains = np.empty((8, 8))
        fewer = kernels.bound_listed(triples, kept, lead, fixed, gains)
        assert fewer >= kernels.bound_all(flows, lead, fixed, gains) - 1e-12


class Watched(Search):
    """A search that knows the best order, pretends to know only a worse one, and checks what is said of the best."""

    def __init__(self, lead, order, pretended):
        self.best, self.places = order, np.argsort(order)
        self.optimum, self.pretended = kernels.excess(lead, order), pretended
        self.checked = 0
        super().__init__(lead, 0, Limits(work=2e8))

    def _search(self, order, work):
        self.order, self.excess = self.best[::-1].copy(), self.pretended

    def _round(self, above):
        pass

    def _holds_the_best(self, fixed):
        return not ((fixed == -1) & (self.places[:, None] < self.places)).any()

    def _look(self, node, bound):
        held = self._holds_the_best(node.fixed)
        super()._look(node, bound)
        if held:
            self.checked += 1
            assert bound <= self.optimum + 1e-9
            assert self._holds_the_best(node.fixed)  # no pair of a better order than the known one is fixed wrongly

    def _enter(self, branch):
        fixed = branch.parent.fixed.copy()
        if kernels.put_above(fixed, branch.high, branch.low) and self._holds_the_best(fixed):
            self.checked += 1
            assert branch.bound <= self.optimum + 1e-9
        return super()._enter(branch)


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_is_above_the_best_order_it_covers(seed):
    weights = (tournament(17, seed), voters(17, 5, seed), np.random.default_rng(seed).normal(size=(17, 17)))[seed % 3]
    lead = leads(weights)
    lead = lead // np.gcd.reduce(lead, axis=None) if lead.dtype.kind == "i" else lead
    order = subsets(lead).order
    optimum = kernels.excess(lead, order)
    watched = Watched(lead, order, optimum + (2 if lead.dtype.kind == "i" else 0.05 * optimum))
    watched.run()
    assert watched.checked > 3


def test_fixed_pairs_are_closed():
    fixed = np.zeros((4, 4), np.int8)
    assert kernels.put_above(fixed, 0, 1)
    assert kernels.put_above(fixed, 2, 3)
    assert kernels.put_above(fixed, 1, 2)
    assert np.array_equal(fixed, np.triu(np.ones((4, 4)), 1) - np.tril(np.ones((4, 4)), -1))
    assert not kernels.put_above(fixed, 3, 0)


def test_long_lists():
    generator = np.random.default_rng(7)
    strengths = np.linspace(0, 3, 600)
    chances = 1 / (1 + np.exp(strengths[:, None] - strengths))  # item 0 is the weakest
    weights = np.triu(generator.binomial(9, chances), 1)
    weights = weights + np.tril(9 - weights.T, -1)
    found = kemeny(weights)
    assert found.method == "heuristic"
    assert not found.exact
    assert found.lower_bound < found.cost <= cost(weights, np.arange(600))
    assert np.corrcoef(found.order, np.arange(600))[0, 1] > 0.9
    hurried = kemeny(weights, time_limit=1e-6)
    assert hurried.lower_bound <= found.lower_bound
    assert hurried.cost <= cost(weights, np.arange(600))


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
    call = partial(kemeny, [[0, 1], [2, 0]])
    with pytest.raises(InputError, match="method must be one of auto, subsets, programme, heuristic, got 'fast'"):
        call(method="fast")
    for limit in (0, -1, float("nan"), "1", True):
        with pytest.raises(InputError, match="time_limit must be None or a number of seconds above 0, got"):
            call(time_limit=limit)
    for seed in (-1, 1.5, True):
        with pytest.raises(InputError, match="seed must be a whole number"):
            call(seed=seed)
    with pytest.raises(Unsupported, match="at most 26 items, got one of 30"):
        kemeny(tournament(30, 1), method="subsets")
    with pytest.raises(Unsupported, match="at most 500 items, got one of 501"):
        kemeny(tournament(501, 1), method="programme")


@pytest.mark.parametrize("m", [19, 20, 21, 22])
def test_larger_components(m):
    for weights in (voters(m, 11, m), tournament(m, m), np.random.default_rng(m).normal(size=(m, m))):
        exact = kemeny(weights, method="subsets").cost
        assert kemeny(weights, method="programme").cost == pytest.approx(exact, rel=1e-12)
        assert kemeny(weights).cost == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("count", [50, 51])
def test_sixty_items(count):
    weights = voters(60, count, 3)
    found = kemeny(weights, method="programme", time_limit=60)
    rough = kemeny(weights, method="heuristic")
    assert found.exact
    assert rough.lower_bound <= found.cost <= rough.cost
