"""Bootstrap refits: the right laws, the right spread, the same numbers for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from rankdp.data.counts import PairCounts, win_components
from rankdp.errors import InputError
from rankdp.rankers import bootstrap as bootstrapping
from rankdp.rankers.bootstrap import bootstrap
from rankdp.rankers.bradley_terry import fit


@pytest.fixture(scope="module")
def counts() -> PairCounts:
    generator = np.random.default_rng(1)
    strengths = np.linspace(-1, 1, 10)
    left = generator.integers(0, 10, 6_000)
    right = (left + generator.integers(1, 10, 6_000)) % 10
    won = generator.random(6_000) < 1 / (1 + np.exp(strengths[right] - strengths[left]))
    return PairCounts.from_pairs(left, right, 2 * won, items=10)


def covariance(counts: PairCounts, theta: np.ndarray) -> np.ndarray:
    """The inverse of the Fisher information, on centred strengths."""
    share = 1 / (1 + np.exp(theta[counts.second] - theta[counts.first]))
    weights = counts.comparisons * share * (1 - share)
    table = np.zeros((len(theta), len(theta)))
    table[counts.first, counts.second] = table[counts.second, counts.first] = -weights
    return np.linalg.pinv(table - np.diag(table.sum(axis=1)))


@pytest.mark.parametrize("resample", ["comparisons", "outcomes"])
def test_mean_and_spread_are_those_of_the_likelihood(counts, resample):
    draws = 2_000
    thetas, theta = bootstrap(counts, draws, 3, resample=resample), fit(counts).theta
    expected = covariance(counts, theta)
    error = 5 * np.sqrt(np.diagonal(expected) / draws)
    assert (np.abs(thetas.mean(axis=0) - theta) < error + 0.004).all()  # and a bias of the order of one over n
    # the pairs' own shares are drawn, not the model's: the laws differ by the lack of fit of 45 pairs
    assert (np.abs(thetas.std(axis=0) / np.sqrt(np.diagonal(expected)) - 1) < 0.15).all()
    centred = thetas - thetas.mean(axis=0)
    spread = np.einsum("di,ij,dj->d", centred, np.linalg.pinv(expected), centred).mean()
    assert spread == pytest.approx(9, rel=0.15)


def test_each_row_solves_its_own_table(counts):
    redraw = bootstrapping._resampler(counts, "comparisons")
    thetas = bootstrap(counts, 4, 5, tolerance=1e-10)
    for generator, theta in zip(np.random.default_rng(5).spawn(4), thetas, strict=True):
        drawn = PairCounts.from_pairs(counts.first, counts.second, *(2 * redraw(generator)), items=10)
        np.testing.assert_allclose(theta, fit(drawn).theta, atol=1e-9)


def test_comparisons_have_the_multinomial_law(counts):
    draws = 4_000
    redraw, generator = bootstrapping._resampler(counts, "comparisons"), np.random.default_rng(7)
    won = np.array([redraw(generator) for _ in range(draws)])
    total = counts.halves.sum() // 2
    assert (won.sum(axis=(1, 2)) == total).all()
    share = np.stack([counts.half_wins_first, counts.half_wins_second]) / (2 * total)
    variance = total * share * (1 - share)
    used = share > 0
    assert (won[:, ~used] == 0).all()
    assert (np.abs(won.mean(axis=0) - total * share)[used] < 5 * np.sqrt(variance[used] / draws)).all()
    ratio = won.var(axis=0)[used] / variance[used]
    assert (np.abs(ratio - 1) < 6 * np.sqrt(2 / draws) + 0.05).all()


def test_outcomes_keep_the_design(counts):
    redraw, generator = bootstrapping._resampler(counts, "outcomes"), np.random.default_rng(8)
    assert all((redraw(generator).sum(axis=0) == counts.halves // 2).all() for _ in range(50))


def test_the_seed_decides_and_the_threads_do_not(counts):
    one = bootstrap(counts, 150, 9, threads=1)
    np.testing.assert_array_equal(one, bootstrap(counts, 150, 9, threads=3))
    np.testing.assert_array_equal(one, bootstrap(counts, 150, np.random.default_rng(9)))
    assert (one != bootstrap(counts, 150, 10)).any()
    np.testing.assert_allclose(one.sum(axis=1), 0, atol=1e-12)


def test_tables_without_a_maximum_ask_for_a_ridge():
    """Every one of them is noticed: at strengths of 25 the gradient of an unbeaten item is as good as 0."""
    counts = PairCounts.from_pairs([0, 0, 0, 1, 1, 2], [1, 1, 2, 0, 2, 0], [2] * 6, items=["a", "b", "c"])
    redraw = bootstrapping._resampler(counts, "comparisons")
    drawn = [redraw(generator) for generator in np.random.default_rng(1).spawn(50)]
    tables = [PairCounts.from_pairs(counts.first, counts.second, *won, items=3) for won in drawn]
    lost = sum(win_components(table).max() > 0 for table in tables)
    assert 5 < lost < 45
    with pytest.raises(InputError, match=rf"in {lost} of 50 resampled tables .* give a ridge above 0"):
        bootstrap(counts, 50, 1)
    assert np.isfinite(bootstrap(counts, 50, 1, ridge=0.1)).all()


def test_huge_counts_are_resampled_as_far_as_doubles_go():
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [2**44, 2**42, 2**43], [2**42, 2**40, 2**44], items=3)
    np.testing.assert_allclose(bootstrap(counts, 20, 1), np.tile(fit(counts).theta, (20, 1)), atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 1), "draws must be"), ((2.5, 1), "draws must be"), ((5, 1, "votes"), "resample must be")],
)
def test_bad_arguments_are_refused(counts, arguments, message):
    draws, seed, *resample = arguments
    with pytest.raises(InputError, match=message):
        bootstrap(counts, draws, seed, **({"resample": resample[0]} if resample else {}))
