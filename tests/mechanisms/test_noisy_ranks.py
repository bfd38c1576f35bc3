"""Noisy ranks: why a scale of m/eps is enough and not much smaller would do, on the grid too; and where items land."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, seeded

import rankdp
from rankdp.audit import audit_exact
from rankdp.mechanisms.rankings.noisy_ranks import NoisyRanks
from rankdp.theory.permutations import all_permutations, moves, neighbour_places
from rankdp.theory.permutations import places as lexicographic_places
from rankdp.theory.rank_noise import position_matrix, top_block


def worst_over_neighbours(logs, items):
    return float((logs[:, None] - logs[neighbour_places(items)]).max())


# -- the guarantee -----------------------------------------------------------------------------------------------


def distance(order):
    """The l1 distance of the ranks from the identity's, after the best common shift."""
    items = len(order)
    moved = np.argsort(order) - np.arange(items)
    return min(int(np.abs(moved - shift).sum()) for shift in range(-items, items + 1))


@pytest.mark.parametrize("items", range(2, 12))
def test_one_item_moves_at_most_m_ranks_after_a_common_shift(items):
    farthest = max(distance(move) for move in moves(items))
    assert farthest == items
    assert Fraction(farthest) / NoisyRanks(items, "1/3").scale == Fraction(1, 3)


@pytest.mark.parametrize("items", [5, 6, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1)], ids=str)
def test_the_realised_epsilon_is_nearly_the_promised_one(items, epsilon):
    """Over all neighbours and outputs; so the scale could be smaller by 6% at most."""
    worst = worst_over_neighbours(NoisyRanks(items, epsilon).log_prob(all_permutations(items), np.arange(items)), items)
    assert 0.94 * float(epsilon) < worst <= float(epsilon)


@pytest.mark.parametrize("items", [2, 3, 4, 5, 6])
def test_the_realised_epsilon_of_little_epsilon(items):
    """The last of m noisy values is above its centre with probability 1 - 2^-m: (1 - 2^(1-m)) eps."""
    logs = NoisyRanks(items, "1e-4").log_prob(all_permutations(items), np.arange(items))
    assert worst_over_neighbours(logs, items) == pytest.approx(1e-4 * (1 - 2.0 ** (1 - items)), rel=1e-3)


def grid_law(order, scale, steps):
    """P(output) of three items, summed over a grid so coarse that ties are common; they are shared out evenly."""
    value = np.arange(-60 * steps, 63 * steps)
    ranks = np.argsort(order) * steps
    equal = np.exp(-np.abs(value - ranks[:, None]) / float(scale * steps)) * math.tanh(0.5 / (scale * steps))
    below, above = np.cumsum(equal, axis=1) - equal, np.cumsum(equal[:, ::-1], axis=1)[:, ::-1] - equal
    return np.array(
        [
            equal[j] @ (below[i] * above[k] + (equal[i] * above[k] + below[i] * equal[k]) / 2 + equal[i] * equal[k] / 6)
            for i, j, k in itertools.permutations(range(3))
        ]
    )


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("epsilon", [2, 5, 12])
def test_eps_is_exact_on_the_coarsest_grids(epsilon, steps):
    """Continuous noise is not what is drawn: with discrete noise and fair ties the ratio is within eps all the same."""
    scale = NoisyRanks(3, epsilon).scale
    here = grid_law((0, 1, 2), scale, steps)
    assert here.argmax() == 0
    assert math.fsum(here) == pytest.approx(1, abs=1e-12)
    worst = max(float(np.log(here / grid_law(move, scale, steps)).max()) for move in moves(3))
    assert 0.6 * epsilon < worst <= epsilon


def test_the_noise_is_asked_for_in_exact_numbers(monkeypatch):
    from rankdp.mechanisms.rankings import noisy_ranks

    asked = []
    monkeypatch.setattr(
        noisy_ranks, "discrete_laplace", lambda scale, count, bits: asked.append(scale) or np.zeros(count, np.int64)
    )
    for items, epsilon in itertools.product((2, 5, 100), ("0.1", "1/3", "7")):
        NoisyRanks(items, epsilon).sample([list(range(items))])
        assert asked[-1] == Fraction(items) / Fraction(epsilon) * (1 << 24)


@pytest.mark.parametrize("items", range(2, 8))
def test_no_two_rankings_are_farther_apart_than_the_bound(items):
    """floor(m^2/2), of the reversal: no common shift helps it, so the bound of local_epsilon is valid."""
    assert max(distance(order) for order in all_permutations(items)) == items**2 // 2
    assert distance(np.arange(items)[::-1]) == items**2 // 2


@pytest.mark.parametrize("items", [41, 100, 1001])
def test_local_epsilon_of_long_rankings(items):
    """No more than Kendall's."""
    stated = NoisyRanks(items, 2).local_epsilon()
    assert stated == Fraction(items**2 // 2 * 2, items)
    assert stated <= rankdp.mechanism("kendall", items, 2).local_epsilon()


# -- where items land --------------------------------------------------------------------------------------------


def direct(items, scale, nodes=16):
    """The same integral with every item left out by never putting it in."""
    x, weight = np.polynomial.legendre.leggauss(nodes)
    edges = np.concatenate([np.arange(-30, 0) * scale, np.arange(items), items - 1 + np.arange(1, 31) * scale])
    half = np.diff(edges)[:, None] / 2
    at, weight = (edges[:-1, None] + half * (x + 1)).ravel(), (half * weight).ravel()
    tail = 0.5 * np.exp(-np.abs(at[:, None] - np.arange(items)) / scale)
    below = np.where(at[:, None] < np.arange(items), tail, 1 - tail)
    matrix = np.empty((items, items))
    for a in range(items):
        counts = np.zeros((len(at), items))
        counts[:, 0] = 1
        for other in set(range(items)) - {a}:
            p = below[:, other, None]
            counts[:, 1:], counts[:, :1] = counts[:, 1:] * (1 - p) + counts[:, :-1] * p, counts[:, :1] * (1 - p)
        matrix[a] = (weight * tail[:, a] / scale) @ counts
    return matrix


@pytest.mark.slow
@pytest.mark.parametrize(("items", "scale"), [(2, 2.0), (7, 0.8), (30, 15.0), (50, 50.0), (51, 13.0)])
def test_position_matrix_against_the_direct_integral(items, scale):
    np.testing.assert_allclose(position_matrix(items, scale, math.ceil(1 / scale)), direct(items, scale), atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "epsilon"),
    [
        *itertools.product([2, 3, 20, 50, 51, 200], ["1e-100", "0.01", "1", "20", "300"]),
        pytest.param(1000, "2", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("name", ["laplace", "noisy-ranks"])
def test_position_matrix_against_closed_forms(name, items, epsilon):
    """Doubly stochastic, the same upside down; and a mean position is how many are expected before the item."""
    mechanism = rankdp.mechanism(name, items, epsilon)
    matrix = mechanism.position_matrix()
    assert matrix.min() >= 0
    np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=1e-11)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-11)
    np.testing.assert_allclose(matrix, matrix[::-1, ::-1], atol=1e-15)
    kept = np.array([0.5, *(mechanism.keep_probability(0, gap) for gap in range(1, items))])
    gaps = np.arange(items)[:, None] - np.arange(items)  # of the item and one that may stand before it
    before = np.where(gaps > 0, kept[np.abs(gaps)], 1 - kept[np.abs(gaps)]).sum(axis=1) - 0.5
    np.testing.assert_allclose(matrix @ np.arange(items), before, atol=1e-10 * items)


@pytest.mark.parametrize("epsilon", [20, 100, 500])
def test_small_probabilities_of_short_rankings_are_right_too(epsilon):
    """Odds are taken of them: an end-to-end swap of two items, by the closed form."""
    mechanism = NoisyRanks(2, epsilon)
    a = 1 / float(mechanism.scale)
    assert mechanism.position_matrix()[0, 1] == pytest.approx((0.5 + a / 4) * math.exp(-a), rel=1e-12)
    odds = NoisyRanks(6, epsilon).position_matrix()
    assert np.log(odds.max(axis=0) / odds.min(axis=0)).max() <= epsilon


@pytest.mark.slow
def test_draws_land_where_they_should(request):
    mechanism = NoisyRanks(100, 4)
    drawn = mechanism.sample(np.tile(np.arange(100), (20_000, 1)), seeded(request))
    for a in (0, 50):
        assert_law(np.argsort(drawn, axis=1)[:, a], mechanism.position_matrix()[a])
    short = NoisyRanks(4, 3).sample(np.tile(np.arange(4), (20_000, 1)), seeded(request))
    assert_law(lexicographic_places(short), np.exp(NoisyRanks(4, 3).log_prob(all_permutations(4), np.arange(4))))


# -- what it is good for -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), [(10, 1), (20, 2), (50, 2), (100, 4), (300, 4), (1000, 1)])
def test_it_keeps_more_than_the_others_of_long_rankings_at_small_epsilon(items, epsilon):
    ranked = rankdp.candidates(items, epsilon, purpose="order")
    debiasable = [one for one in ranked if one.debiasable and not one.has_offsets]
    kept = {one.name: one.expected_concordance() for one in debiasable}
    best = kept.pop("noisy-ranks")
    assert best > max(kept.values())
    assert kept["kendall"] > kept["laplace"]


@pytest.mark.parametrize("items", [3, 5, 20, 1000])
def test_it_keeps_more_than_the_paper_s_laplace_mechanism(items):
    for epsilon in (0.1, 1, 10):
        noisy, plain = (rankdp.mechanism(name, items, epsilon) for name in ("noisy-ranks", "laplace"))
        assert plain.scale / noisy.scale == 2 - Fraction(2, items)
        assert noisy.expected_concordance() > plain.expected_concordance()


def test_mean_ranks_of_long_rankings_are_estimated_without_bias(request):
    items, voters = 60, 4000
    rng = np.random.default_rng(seeded(request).seed)
    orders = np.argsort(np.arange(items) + rng.normal(0, 10, (voters, items)), axis=1)
    poll = rankdp.Rankings.from_orders(orders, [f"item {i}" for i in range(items)])
    found = rankdp.aggregate(rankdp.privatize(poll, 40, mechanism="noisy-ranks", bits=seeded(request)))
    truth = (np.argsort(orders, axis=1) + 1).mean(axis=0)
    errors = (found.mean_ranks.values - truth) / found.mean_ranks.standard_errors
    assert np.abs(errors).max() < 4.5
    assert found.mean_ranks.bias.max() < 1e-5
    assert np.abs(found.mean_ranks.naive - truth).max() > 2 * found.mean_ranks.standard_errors.max()
    assert not found.win_rates.unbiased  # no law of two positions is known at this length


def test_labels_for_learning_have_the_right_mean():
    from rankdp.learn.labels import labels_of

    mechanism = NoisyRanks(12, 8)
    labels = labels_of(rankdp.Rankings.from_orders([list("abcdefghijkl")]), "noisy-ranks", 8, pairs=False)
    np.testing.assert_allclose(mechanism.position_matrix() @ labels.wins[0], np.arange(11, -1, -1), atol=1e-6)
    with pytest.raises(rankdp.errors.Unsupported, match="is known for up to 7 items, got 12"):
        labels_of(rankdp.Rankings.from_orders([list("abcdefghijkl")]), "noisy-ranks", 8)


def test_an_exact_audit_finds_what_is_realised(request):
    found = audit_exact(NoisyRanks(5, 1), bits=seeded(request))
    assert found.holds
    assert found.epsilon_low == pytest.approx(0.9456, abs=1e-4)
    assert not audit_exact(NoisyRanks(5, 2), claimed_epsilon=1, draws=0).holds


@pytest.mark.slow
@pytest.mark.parametrize("items", [2, 7, 20, 51, 90])
@pytest.mark.parametrize("factor", ["1/1000", "1/4", 2, 11, 20, 30, 40, 60, 150, 400, 750, 900])
def test_where_items_land_is_known_for_every_amount_of_noise(items, factor):
    """One way undoes an item's step and leaves unlikely counts out, the other one does neither."""
    one = NoisyRanks(items, items * Fraction(factor))
    found, k = one.position_matrix(), min(items, 3)
    np.testing.assert_allclose(found.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    corner = top_block(items, float(one.scale), math.ceil(1 / one.scale), k)
    np.testing.assert_allclose(corner, found[:k, :k], atol=1e-12)
    np.testing.assert_allclose(corner, one.top_block(k), atol=1e-12)
