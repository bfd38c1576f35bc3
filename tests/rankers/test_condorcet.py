"""Copeland, ranked pairs, Schulze and the Condorcet winner, against their definitions and worked examples."""

import itertools

import numpy as np
import pytest
from support import generator

from rankdp.errors import InputError
from rankdp.rankers.condorcet import condorcet_winner, copeland, ranked_pairs, schulze


def margins_of(ballots):
    """From a table of orders, as text, with their numbers."""
    items = sorted(next(iter(ballots)))
    table = np.zeros((len(items), len(items)), dtype=np.int64)
    for order, count in ballots.items():
        for above, below in itertools.combinations(order, 2):
            table[items.index(above), items.index(below)] += count
    return table - table.T


def named(order):
    return "".join("ABCDE"[item] for item in order)


def random_margins(rng, m):
    upper = np.triu(rng.permutation(m * m).reshape(m, m) * rng.choice([-1, 1], (m, m)), 1)
    return upper - upper.T


def test_schulze_on_his_own_example():
    """Schulze 2011, Section 3.1: 45 voters, E A C B D."""
    said = {"ACBED": 5, "ADECB": 5, "BEDAC": 8, "CABED": 3, "CAEBD": 7, "CBADE": 2, "DCEBA": 7, "EBADC": 8}
    assert named(schulze(margins_of(said))) == "EACBD"


def test_tennessee():
    """Memphis, Nashville, Chattanooga, Knoxville: all rules elect the Condorcet winner."""
    said = {"ABCD": 42, "BCDA": 26, "CDBA": 15, "DCBA": 17}
    margins = margins_of(said)
    assert condorcet_winner(margins) == 1
    assert named(ranked_pairs(margins)) == named(schulze(margins)) == named(copeland(margins)) == "BCDA"


def strongest_chain(margins, start, end):
    others = [item for item in range(len(margins)) if item not in (start, end)]
    chains = (
        [start, *middle, end] for size in range(len(others) + 1) for middle in itertools.permutations(others, size)
    )
    return max(min(max(margins[a, b], 0) for a, b in itertools.pairwise(chain)) for chain in chains)


def test_schulze_is_the_order_by_strongest_chains(request):
    rng = generator(request)
    for _ in range(40):
        margins = random_margins(rng, 5)
        order = schulze(margins)
        for above, below in itertools.combinations(order.tolist(), 2):
            assert strongest_chain(margins, above, below) >= strongest_chain(margins, below, above)


def test_ranked_pairs_is_the_first_order_by_its_list_of_pairs(request):
    """Of all orders the one that keeps the largest margin, then the next where it can, and so on."""
    rng = generator(request)
    for _ in range(40):
        margins = random_margins(rng, 5)
        beaten = [(i, j) for i, j in itertools.permutations(range(5), 2) if margins[i, j] > 0]
        pairs = sorted(beaten, key=lambda pair: -margins[pair])
        kept = {
            order: [order.index(i) < order.index(j) for i, j in pairs] for order in itertools.permutations(range(5))
        }
        best = max(kept, key=lambda order: kept[order])
        assert ranked_pairs(margins).tolist() == list(best)


def test_a_condorcet_winner_comes_first_and_may_not_exist(request):
    rng = generator(request)
    existed = 0
    for _ in range(200):
        margins = random_margins(rng, 4)
        winner = condorcet_winner(margins)
        beats_all = [i for i in range(4) if all(margins[i, j] > 0 for j in range(4) if j != i)]
        assert [winner] == (beats_all or [None])
        if winner is not None:
            existed += 1
            assert winner == copeland(margins)[0] == ranked_pairs(margins)[0] == schulze(margins)[0]
    assert 50 < existed < 150


def test_ties_keep_the_order_in_which_items_came():
    level = np.zeros((4, 4), dtype=np.int64)
    assert condorcet_winner(level) is None
    for rule in (copeland, ranked_pairs, schulze):
        assert rule(level).tolist() == [0, 1, 2, 3]


def test_copeland_breaks_ties_by_the_sum_of_margins():
    cycle = np.array([[0, 1, -5], [-1, 0, 4], [5, -4, 0]])
    assert copeland(cycle).tolist() == [1, 2, 0]


def test_margins_must_be_antisymmetric():
    for rule in (copeland, ranked_pairs, schulze, condorcet_winner):
        with pytest.raises(InputError, match="margins must be a square matrix"):
            rule(np.ones((3, 3)))
