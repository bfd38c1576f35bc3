"""The local rivals: the promise of every message by enumeration, and estimates without bias."""

import itertools
import math

import numpy as np
import pytest
from benchmarks.rivals import local

POINTS = [np.array(points, float) for points in itertools.permutations(range(4))]


def worst(laws):
    return float(max(np.log(one / other).max() for one, other in itertools.permutations(laws, 2)))


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_additive_mechanism_uses_exactly_its_epsilon(epsilon):
    for k in (1, 2, 3):
        assert worst([local.additive_law(points, k, epsilon) for points in POINTS]) == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_weighted_sampling_keeps_its_promise(epsilon):
    """The law of the released subset, over every ranking."""
    k = local.subset_size(4, epsilon)
    held, _, _ = local._told(4, k, epsilon)
    every = list(itertools.combinations(range(4), k))

    def law(points):
        share = points / points.sum()
        inside = np.array([share[list(subset)].sum() for subset in every])
        return inside * held / math.comb(3, k - 1) + (1 - inside) * (1 - held) / math.comb(3, k)

    laws = [law(points) for points in POINTS]
    assert laws[0].sum() == pytest.approx(1)
    assert 0.3 * epsilon < worst(laws) <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_pairs_keep_their_promise(epsilon):
    """Whole ranking: K answers at eps/K. One position: answers at eps, of which moving an item changes at most one."""
    asked = local.pairs_asked(4, epsilon)
    assert asked * (epsilon / asked) == pytest.approx(epsilon)
    for order in itertools.permutations(range(5)):
        for item, place in itertools.product(range(5), repeat=2):
            moved = [other for other in order if other != item]
            moved.insert(place, item)
            matching = [(0, 3), (1, 2)]
            changed = [
                pair for pair in matching
                if (order.index(pair[0]) < order.index(pair[1])) != (moved.index(pair[0]) < moved.index(pair[1]))
            ]  # fmt: skip
            assert len(changed) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("protect", ["ranking", "position"])
@pytest.mark.parametrize("name", list(local.RIVALS))
def test_estimates_have_no_bias(name, protect):
    random = np.random.default_rng(7)
    ranks = np.array(random.permuted(np.tile([0, 1, 2, 3], (20, 1)), axis=1))
    ranks[:12] = [0, 1, 2, 3]
    drawn = [local.RIVALS[name](np.repeat(ranks, 50, axis=0), 3.0, random, protect) for _ in range(40)]
    assert all(sorted(order) == [0, 1, 2, 3] for order, _ in drawn)
    if drawn[0][1] is not None:
        means = np.array([mean for _, mean in drawn])
        errors = means.std(axis=0, ddof=1) / math.sqrt(len(means))
        assert (np.abs(means.mean(axis=0) - ranks.mean(axis=0) - 1) < 4.5 * errors).all()


def test_the_sizes_that_the_papers_state():
    """Subset selection takes about m/(1 + e^eps) (Wang et al. 2016); one pair is best at small epsilon."""
    assert local.subset_size(20, 1.0) == pytest.approx(20 / (1 + math.e), abs=1)
    assert local.pairs_asked(10, 1.0) == 1
