"""The papers' algorithms by one call: their parameters are the printed ones, and their laws are."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import rankdp
from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits
from rankdp.theory.noises import Gaussian, GeneralizedNormal, Laplace, noise
from rankdp.theory.score_laws import Uniform
from rankdp_papers import cai, jeong, xu
from rankdp_papers.cai import as_printed

WINS = np.array([[0, 7, 9, 4], [3, 0, 8, 6], [1, 2, 0, 5], [6, 4.5, 4.5, 0]])


def test_xu_draws_from_the_mallows_model():
    """Lemma 2 by a chi-squared test over all rankings of three items, in the paper's notation of ranks."""
    ranks, epsilon, draws = np.array([2, 3, 1]), 1.5, 20_000
    release = xu.algorithm1(np.tile(ranks, (draws, 1)), epsilon, bits=SeededBits(1))
    found = Counter(map(tuple, release.value.tolist()))
    every = list(itertools.permutations((1, 2, 3)))
    pairs = list(itertools.combinations(range(3), 2))
    agree = [sum((one[i] - one[j]) * (ranks[i] - ranks[j]) > 0 for i, j in pairs) for one in every]
    law = np.exp(epsilon / 2 * np.array(agree))  # exp(eps/(m-1)) for each pair in order
    assert stats.chisquare([found[one] for one in every], draws * law / law.sum()).pvalue > 1e-3


def test_xu_takes_rankings_and_one_epsilon_per_user():
    rankings = rankdp.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]])
    release = xu.algorithm1(rankings, [1, 2])
    assert release.value.items == ("a", "b", "c")
    assert release.guarantee.personal
    assert (release.guarantee.epsilon, release.guarantee.idealized) == (2, False)
    assert xu.algorithm1([1, 3, 2], 1).value.shape == (3,)


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_cai_algorithm_1_has_exactly_the_printed_noise_and_ridge(epsilon: float, monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(as_printed, "fit", lambda counts, **options: asked.append(options) or _Fit(len(counts.items)))
    release = cai.algorithm1(WINS, epsilon)
    facts = release.provenance.parameters
    assert facts["lambda"] == 8 / epsilon  # kappa_1 = 1 for the logistic link
    ridge = math.sqrt(2 * facts["comparisons"] / 4 * math.log(4))
    assert asked[0]["ridge"] == facts["gamma"] == pytest.approx(ridge)
    assert release.guarantee.idealized
    assert cai.algorithm1(WINS, epsilon, c0=2).provenance.parameters["gamma"] == pytest.approx(2 * ridge)
    assert cai.algorithm1(WINS, epsilon, gamma=30, lam=20).provenance.parameters["lambda"] == 20


class _Fit:
    def __init__(self, items: int) -> None:
        self.theta = np.zeros(items)


@pytest.mark.slow
def test_cai_algorithm_1_minimises_the_printed_objective():
    """At the released scores the gradient of (2.2) is minus the noise: Laplace of scale 8/eps over many releases."""
    gamma, epsilon, found = 3.0, 2.0, []
    met = WINS + WINS.T
    for seed in range(400):
        theta = np.array(list(cai.algorithm1(WINS, epsilon, gamma=gamma, bits=SeededBits(seed)).value.values()))
        share = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        found.extend(WINS.sum(axis=1) - (met * share).sum(axis=1) - gamma * theta)
    assert stats.kstest(found, stats.laplace(scale=8 / epsilon).cdf).pvalue > 1e-3
    assert stats.kstest(found, stats.laplace(scale=4 / epsilon).cdf).pvalue < 1e-6  # half the noise is noticed


@pytest.mark.slow
def test_cai_algorithm_2_has_the_printed_noise():
    """How often item 0 is first, against wins plus continuous noise of scale 2/eps."""
    epsilon, draws, wins = 0.4, 4_000, WINS.sum(axis=1)
    first = Counter(cai.algorithm2(WINS, epsilon, 1, bits=SeededBits(seed)).value[0] for seed in range(draws))
    noise = np.random.default_rng(1).laplace(scale=2 / epsilon, size=(200_000, 4))
    expected = np.bincount((wins + noise).argmax(axis=1), minlength=4) / 200_000
    assert stats.chisquare([first[str(item)] for item in range(4)], draws * expected).pvalue > 1e-3
    release = cai.algorithm2(WINS, epsilon, 2)
    assert len(release.value) == 2
    assert (float(release.guarantee.epsilon), release.guarantee.idealized) == (0.4, False)


def test_cai_takes_comparisons_and_counts():
    votes = rankdp.Comparisons.from_pairs(["a", "a", "b"], ["b", "c", "c"], items=["a", "b", "c"])
    assert set(cai.algorithm1(votes, 1).value) == {"a", "b", "c"}
    assert cai.algorithm2(votes.count(), 1000, 2, bits=SeededBits(1)).value == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cai.algorithm1(WINS, 1, lam=7.9), "lam must be at least 8 kappa_1/epsilon = 8"),
        (lambda: cai.algorithm1(WINS, 0.1, gamma=9), "gamma must be at least 4 kappa_2/epsilon = 10"),
        (lambda: cai.algorithm1(WINS, math.nan), "epsilon must be a finite number above 0"),
        (lambda: cai.algorithm1(WINS[:2], 1), "wins must be a square table"),
        (lambda: cai.algorithm2(WINS, 1, 5), "k must be"),
        (lambda: jeong.mechanism([0, 2], l=1, sigma=1), "interval of length l = 1, got scores 2 apart"),
        (lambda: jeong.mechanism([0, 1], l=1), "either sigma or both alpha and epsilon"),
        (lambda: jeong.mechanism([0, 1], l=1, sigma=1, noise="staircase"), "noise must be laplace, gaussian or one"),
        (lambda: jeong.mechanism([0, 1], l=1, epsilon=1), "either sigma or both alpha and epsilon"),
        (lambda: jeong.mechanism([0, 1], l=1, alpha=math.inf, epsilon=1, noise="gaussian"), "no finite sigma"),
        (lambda: jeong.decode([1, 2], A=[[1]]), "A must have 2 rows and columns"),
        (lambda: jeong.decode([1, 2], b=[1]), "b must have 2 numbers"),
        (lambda: jeong.decode([1, math.nan]), "y must be one row of finite numbers"),
        (lambda: xu.algorithm1([[1, 2, 3], [0, 1, 2]], 1), "each rank from 1 to 3 once per row, .* in row 2"),
    ],
)
def test_refusals(call, words: str):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("family", [Laplace(), Gaussian(), GeneralizedNormal(0.5), noise("staircase", epsilon=2.0)])
def test_jeong_adds_sigma_times_noise_of_variance_one(family):
    release = jeong.mechanism(np.zeros(20_000), l=1, sigma=3, noise=family, bits=SeededBits(2))
    assert stats.kstest(release.value / 3, family.cdf).pvalue > 1e-3
    assert stats.kstest(release.value / 1.5, family.cdf).pvalue < 1e-6


def test_jeong_finds_the_sigma_of_an_epsilon():
    pure = jeong.mechanism([0, 1, 4], l=5, alpha=math.inf, epsilon=2)
    assert pure.provenance.parameters["sigma"] == pytest.approx(math.sqrt(2) * 5 / 2)  # (30) at alpha = inf
    assert float(pure.guarantee.epsilon) == pytest.approx(2)
    normal = jeong.mechanism([0, 1, 4], l=5, alpha=3, epsilon=2, noise="gaussian")
    assert normal.provenance.parameters["sigma"] == pytest.approx(math.sqrt(3 * 25 / 4))  # (31)
    shift = 5 / normal.provenance.parameters["sigma"]
    assert Gaussian().delta(float(normal.guarantee.epsilon), shift) == pytest.approx(1e-6, rel=1e-3)
    assert pure.guarantee.idealized
    assert normal.guarantee.idealized


def test_jeong_decoders():
    assert jeong.decode([0.2, 0.9, 0.5]).tolist() == [1, 2, 0]
    assert jeong.decode([0.2, 0.9, 0.5], A=-np.eye(3), b=[0, 0, 1]).tolist() == [2, 0, 1]
    law = Uniform(0, 1)
    order, chance = jeong.map_decode([0.2, 0.9, 0.5], Gaussian(), 0.1, law)
    assert order.tolist() == [1, 2, 0]
    assert 0.9 < chance < 1
