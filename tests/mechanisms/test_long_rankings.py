"""Rankings that cannot be enumerated: validity, marginals in closed form, and distance laws."""

import math

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, assert_law, seeded

import rankdp
from rankdp.mechanisms.rankings import sampling_kernels as kernels
from rankdp.mechanisms.rankings.ulam import _Shapes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kendall", "reinsertion"])
@pytest.mark.parametrize("epsilon", [1, 100])
def test_a_ranking_of_a_hundred_thousand_items(name, epsilon, request):
    items = 10**5
    mechanism = rankdp.mechanism(name, items, epsilon)
    order = np.random.default_rng(0).permutation(items).astype(np.int32)
    out = mechanism.sample(order[None], seeded(request))
    assert np.array_equal(np.sort(out[0]), np.arange(items))
    places = np.empty(items, dtype=np.int64)
    places[order] = np.arange(items)
    discordant = int(kernels.count_inversions(places[out[0]][None].astype(np.int32))[0])
    kept = 1 - discordant / math.comb(items, 2)
    # one ranking has so many pairs that the share it keeps is its expectation to three digits, for Kendall;
    # for reinsertion the number of items taken out decides, which varies little as well
    assert kept == pytest.approx(mechanism.expected_concordance(), abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("items", [17, 65, 300, 1500])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_kendall_distance_of_long_rankings(items, share, request):
    """Discordant pairs are a sum of independent stages: mean and variance of Theorem 1(3)."""
    from rankdp.theory import mallows as theory

    epsilon = round(share * items * 4, 3)
    rows = 400
    mechanism = rankdp.mechanism("kendall", items, epsilon)
    out = mechanism.sample(np.tile(np.arange(items), (rows, 1)), seeded(request))
    assert np.array_equal(np.sort(out, axis=1), np.tile(np.arange(items), (rows, 1)))
    kept = math.comb(items, 2) - kernels.count_inversions(out)
    mean = math.fsum(theory.stage_mean(items, epsilon, t) for t in range(1, items + 1))
    variance = math.fsum(theory.stage_variance(items, epsilon, t) for t in range(1, items + 1))
    z = (kept.mean() - mean) / math.sqrt(variance / rows)
    assert 2 * stats.norm.sf(abs(z)) > LEVEL
    spread = (rows - 1) * kept.var(ddof=1) / variance
    assert LEVEL < stats.chi2.sf(spread, rows - 1) < 1 - LEVEL
    matrix = mechanism.position_matrix() if items <= 300 else None
    if matrix is not None:
        for a in (0, items // 2, items - 1):
            assert_law(np.argwhere(out == a)[:, 1], matrix[a])


@pytest.mark.parametrize("items", [6, 17, 200])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_reinsertion_of_long_rankings(items, epsilon, request):
    mechanism = rankdp.mechanism("reinsertion", items, epsilon)
    out = mechanism.sample(np.tile(np.arange(items), (8000, 1)), seeded(request))
    matrix = mechanism.position_matrix()
    places = np.argsort(out, axis=1)
    for a in (0, items // 3, items - 1):
        assert_law(places[:, a], matrix[a])
    for i, j in ((0, 1), (0, items - 1), (items // 2, items // 2 + 1)):
        hits = int((places[:, i] < places[:, j]).sum())
        assert stats.binomtest(hits, 8000, mechanism.keep_probability(i, j)).pvalue > LEVEL


@pytest.mark.parametrize("items", [6, 300])
@pytest.mark.parametrize("epsilon", ["0.01", "5"])
def test_reinsertion_takes_out_as_many_as_it_should(items, epsilon, request):
    """The table of d against its weights C(m,d) m!/(m-d)! w^-d."""
    mechanism = rankdp.mechanism("reinsertion", items, epsilon)
    taken = mechanism._taken.sample(50_000, seeded(request))
    assert taken.min() >= 0
    assert taken.max() <= items
    if epsilon == "40":
        assert not taken.any()
    elif np.max(mechanism._law) < 1 - 1e-4:
        assert_law(taken, mechanism._law[:-1])


@pytest.mark.parametrize("items", [32, pytest.param(50, marks=pytest.mark.long)])
def test_ulam_samples_long_rankings(items, request):
    epsilon, rows = 2, 4000
    mechanism = rankdp.mechanism("ulam", items, epsilon)
    out = mechanism.sample(np.tile(np.arange(items), (rows, 1)), seeded(request))
    assert np.array_equal(np.sort(out, axis=1), np.tile(np.arange(items), (rows, 1)))
    counts = [_Shapes.of(items, length).total for length in range(1, items + 1)]
    assert sum(counts) == math.factorial(items)
    logs = np.array([math.log(count) for count in counts]) + epsilon * np.arange(1, items + 1)
    law = np.exp(logs - logs.max())
    assert_law(kernels.longest_rising_lengths(out) - 1, law[:-1] / law.sum())
    assert np.isfinite(mechanism.log_prob(out[:5], np.arange(items))).all()


@pytest.mark.slow
@pytest.mark.parametrize("items", [11, 15])
def test_ulam_public_numbers_beyond_enumeration_are_close(items, request):
    """Estimated from seeded draws: against fresh draws, and against the exact law for ten items."""
    mechanism = rankdp.mechanism("ulam", items, 2)
    rows = 60_000
    out = mechanism.sample(np.tile(np.arange(items), (rows, 1)), seeded(request))
    places = np.argsort(out, axis=1)
    for i, j in ((0, 1), (0, items - 1), (4, 7)):
        fresh = (places[:, i] < places[:, j]).mean()
        assert mechanism.keep_probability(i, j) == pytest.approx(
            fresh, abs=4 * math.sqrt(0.25 / rows + 0.25 / (1 << 17))
        )
    kept = 1 - kernels.count_inversions(out).mean() / math.comb(items, 2)
    assert mechanism.expected_concordance() == pytest.approx(kept, abs=0.003)
    np.testing.assert_allclose(mechanism.position_matrix().sum(axis=0), 1, rtol=1e-12)


def test_ulam_estimates_agree_with_the_exact_numbers(monkeypatch):
    from rankdp.mechanisms.rankings import ulam

    exact = ulam.Ulam(7, 2)
    landed, kept = exact._public
    monkeypatch.setattr(ulam, "EXACT_UP_TO", 6)
    estimated = ulam.Ulam(7, 2)
    np.testing.assert_allclose(estimated.position_matrix(), landed, atol=5 * 0.0014)
    np.testing.assert_allclose(np.triu(estimated._public[1], 1), np.triu(kept, 1), atol=5 * 0.0014)
    assert estimated.expected_concordance() == pytest.approx(exact.expected_concordance(), abs=5 * 0.0005)
