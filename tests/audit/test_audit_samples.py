"""Statistical audits: bounds, views, power, coverage, a peer's mechanism, independence."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import UNSEEDED, generator, half_noise, seeded

import rankdp
from rankdp.audit import (
    audit_independence,
    audit_samples,
    epsilon_bound,
    equation_8,
    ranking_neighbours,
    ranking_sampler,
)
from rankdp.audit import statistical as statistical_module
from rankdp.audit.views import fitting_views, lowest_bits, ranking_views
from rankdp.errors import InputError
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.theory.permutations import all_permutations

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("name", list(MECHANISMS))


def audit(mechanism, draws, seed, claimed=1, **options):
    sampler, pairs = ranking_sampler(mechanism, SeededBits(seed)), ranking_neighbours(range(mechanism.items))
    return audit_samples(sampler, pairs, draws=draws, claimed_epsilon=claimed, **options)


# -- bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [1, 7, 30])
@pytest.mark.parametrize("alpha", [0.005, 0.1])
def test_clopper_pearson_covers_every_probability(draws, alpha):
    """Exactly, by summing the binomial law: each bound fails with probability at most alpha."""
    hits = np.arange(draws + 1)
    lows, highs, _ = np.transpose([epsilon_bound((h, h), (draws, draws), 2 * alpha) for h in hits])
    for p in np.linspace(0, 1, 201):
        law = stats.binom.pmf(hits, draws, p)
        assert law[lows > p + 1e-12].sum() <= alpha + 1e-12
        assert law[highs < p - 1e-12].sum() <= alpha + 1e-12


def test_epsilon_bound_by_its_definition():
    low, high, epsilon = epsilon_bound((60, 20), (100, 100), 0.02)
    assert stats.binom.sf(59, 100, low) == pytest.approx(0.01)
    assert stats.binom.cdf(20, 100, high) == pytest.approx(0.01)
    assert epsilon == pytest.approx(math.log(low / high))
    assert epsilon_bound((60, 20), (100, 100), 0.02, delta=0.1)[2] == pytest.approx(math.log((low - 0.1) / high))
    assert epsilon_bound((0, 20), (100, 100), 0.02)[2] == -math.inf
    assert epsilon_bound((100, 100), (100, 100), 0.02)[1] == 1


def test_equation_8():
    assert equation_8(np.array([40, 10, 0]), np.array([10, 40, 5])) == pytest.approx(math.log(55 / 50 * 4))
    assert equation_8(np.array([20, 80]), np.array([1, 4])) == pytest.approx(0)
    assert math.isnan(equation_8(np.array([1, 0]), np.array([0, 1])))


@pytest.mark.parametrize("items", [3, 4])
def test_equation_8_matches_the_epsilon_asked_for(items):
    """The paper's Figure 4, with fewer draws."""
    mechanism = rankdp.mechanism("kendall", items, 1)
    assert audit(mechanism, 2_000_000, 1).plain_estimate == pytest.approx(1, abs=0.05)


# -- views -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [2, 3, 5])
def test_ranking_views_count_what_they_say(items, request):
    labels = np.arange(items) * 3 + 5
    draws = labels[np.array([generator(request).permutation(items) for _ in range(200)])]
    draws = np.concatenate([draws, labels[all_permutations(items)[:7]]])
    views = fitting_views([draws])
    tallies = views.tally(draws)
    assert [len(tally) for tally in tallies] == [view.cells for view in views.views]
    assert all(tally.sum() == len(draws) for tally in tallies)
    for place, order in enumerate(all_permutations(items)):
        assert tallies[0][place] == (draws == labels[order]).all(axis=1).sum()
    for item, place in itertools.product(range(items), repeat=2):
        assert tallies[1 + item][place] == (draws[:, place] == labels[item]).sum()
    for tally, (i, j) in zip(tallies[1 + items :], itertools.combinations(range(items), 2), strict=True):
        before = [list(row).index(labels[i]) < list(row).index(labels[j]) for row in draws]
        assert tally.tolist() == [sum(before), len(before) - sum(before), 0]


def test_what_is_no_ranking_has_a_cell_of_its_own():
    views = ranking_views(np.arange(3))
    tally = views.tally(np.array([[0, 1, 2], [0, 0, 2], [0, 1, 7], [-1, 1, 2]]))[0]
    assert tally.tolist() == [1, 0, 0, 0, 0, 0, 3]
    assert views.views[0].words(np.array([6])) == "the output is no ranking"
    with pytest.raises(InputError, match="outputs must be rankings of 3 items"):
        views.tally(np.zeros((4, 2), dtype=int))


def test_long_rankings_are_seen_by_places(request):
    draws = np.array([generator(request).permutation(12) for _ in range(50)])
    views = fitting_views([draws])
    tallies = views.tally(draws)
    assert len(tallies) == 12
    assert tallies[3][5] == (draws[:, 5] == 3).sum()
    assert views.views[3].words(np.array([0, 1, 4])) == "item 4 is at place 1 to 2, 5"


def test_number_views_are_functions_of_the_output(request):
    rng = generator(request)
    samples = [rng.normal(shift, 1, (500, 3)) for shift in (0, 1)]
    views = fitting_views(samples)
    tallies = views.tally(samples[0])
    assert [len(tally) for tally in tallies] == [view.cells for view in views.views]
    assert all(tally.sum() == 500 for tally in tallies)
    assert sum("lowest bit" in view.words(np.array([0])) for view in views.views) == 3
    with pytest.raises(InputError, match="outputs must have 3 numbers a row"):
        views.tally(samples[0][:, :2])
    whole = fitting_views([rng.integers(0, 5, 300)])
    assert [view.cells for view in whole.views] == [5]
    assert whole.views[0].words(np.array([1, 2])) == "the number is from 1 to below 3"
    assert whole.views[0].words(np.array([1, 3])) == "the number is in one of 2 slices"


def test_texts_are_told_apart_by_value():
    views = fitting_views([np.array(["a", "b", "a"])])
    assert views.tally(np.array(["b", "c", "b"]))[0].tolist() == [0, 2, 1]
    assert views.views[0].words(np.array([0, 2])) == "the output is 'a' or anything else"
    with pytest.raises(InputError, match="outputs must be rankings, numbers"):
        fitting_views([np.array([object()])])


def test_lowest_bits():
    values = [0.75, 1.0, -6.0, 3.5, 1e-300, 2.0**-1074, 0.1]

    def expected(value):
        exact = Fraction(value)
        return next(e for e in range(1100, -1200, -1) if (exact / Fraction(2) ** e).denominator == 1)

    assert lowest_bits(np.array(values)).tolist() == [expected(value) for value in values]
    assert lowest_bits(np.array([0.0, np.inf, np.nan])).tolist() == [1024] * 3


# -- the audit ---------------------------------------------------------------------------------------------------


@every
def test_every_mechanism_survives_and_half_the_noise_does_not(name):
    honest = rankdp.mechanism(name, 5, 1)
    found = audit(honest, 100_000, 1)
    assert found.holds
    assert found.epsilon_low > 0.3
    caught = audit(half_noise(honest), 400_000, 2)
    assert not caught.holds
    assert caught.explain().startswith("VIOLATION: with 99% confidence epsilon is at least 1.")
    assert "claimed 1." in found.explain()


@pytest.mark.parametrize("draws", [100, 1001, 30_000])
def test_no_more_draws_than_allowed(draws):
    counted = []
    sampler = ranking_sampler(rankdp.mechanism("kendall", 4, 1), SeededBits(1))

    def counting(order, count):
        counted.append(count)
        return sampler(order, count)

    found = audit_samples(counting, ranking_neighbours(range(4)), draws=draws, claimed_epsilon=1)
    assert sum(counted) == found.draws <= draws
    assert found.draws >= 0.99 * draws
    assert sum(found.worst.draws) >= 0.55 * draws


def test_chunks_add_up(monkeypatch):
    monkeypatch.setattr(statistical_module, "_CHUNK", 700)
    found = audit(rankdp.mechanism("kendall", 3, 1), 30_000, 1)
    assert 0.99 * 30_000 <= found.draws <= 30_000
    assert sum(found.worst.draws) >= 0.55 * 30_000
    assert 0.8 < found.epsilon_low < 1


def test_choosing_among_many_events_is_not_cheating(request):
    """Uniform noise over 5040 rankings: the plain estimate is fooled, the bound is not."""
    rng = generator(request)

    def sampler(order, count):
        return rng.permuted(np.tile(np.arange(7), (count, 1)), axis=1)

    found = audit_samples(sampler, [(0, 1), (0, 2)], draws=40_000, claimed_epsilon="0.05")
    assert found.plain_estimate > 1
    assert found.epsilon_low < 0.05


def test_named_events_and_words(request):
    """A leak that only its name finds: the last binary digit of a large number."""
    rng = generator(request)

    def sampler(secret, count):
        return rng.integers(0, 1 << 40, count) * 2 + np.where(rng.random(count) < 0.9, secret, 1 - secret)

    options = {"draws": 20_000, "claimed_epsilon": 1, "describe": lambda secret: f"<{secret}>", "name": "digits"}
    assert audit_samples(sampler, [(0, 1)], **options).holds
    found = audit_samples(sampler, [(0, 1)], events={"an odd number": lambda out: out % 2 == 1}, **options)
    assert not found.holds
    assert found.worst.event in ("an odd number", "not: an odd number")
    assert found.worst.inputs in (("<1>", "<0>"), ("<0>", "<1>"))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["subject"] == "digits"
    assert data["holds"] is False
    assert len(data["events"]) == len(found.events) == 3


SCORES = [
    ({"noise": "laplace", "epsilon": 1}, {"epsilon": 2}),
    ({"noise": "staircase", "epsilon": 1}, {"epsilon": 2}),
    ({"noise": "generalized-normal", "epsilon": 1, "p": "0.5"}, {"epsilon": 2}),
    ({"noise": "gaussian", "epsilon": 1, "delta": "0.01"}, {"epsilon": 3}),
    ({"noise": "joint-staircase", "epsilon": 1, "count": 1}, {"epsilon": 2}),
    ({"noise": "ball", "p": "inf", "delta": "0.05", "count": 1}, {"delta": "0.1"}),
]


@pytest.mark.parametrize(("options", "looser"), SCORES, ids=[options["noise"] for options, _ in SCORES])
def test_score_mechanisms(options, looser, request):
    def sampler(mechanism, bits):
        if mechanism.asked.count:
            return lambda x, count: np.concatenate([mechanism.sample([x], bits) for _ in range(count)])
        return lambda x, count: mechanism.sample(np.full(count, x), bits)

    claim = {"claimed_epsilon": options.get("epsilon", 0), "delta": options.get("delta", 0)}
    for asked, holds in ((options, True), (options | looser, False)):
        mechanism = score_mechanism(bounds=(0, 1), **asked)
        draws = 3000 if mechanism.asked.count else 12_000  # one call for each vector
        found = audit_samples(sampler(mechanism, seeded(request)), [(0.0, 1.0)], draws=draws, **claim)
        assert found.holds is holds, found.explain()
    if options.get("delta"):
        assert "with delta 0.0" in found.explain()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 99}, "draws must be an integer of at least 100, got 99"),
        ({"draws": True}, "draws must be an integer"),
        ({"confidence": 1}, "confidence must be a number above 0 and below 1, got 1"),
        ({"claimed_epsilon": -1}, "claimed_epsilon must be at least 0, got -1"),
        ({"claimed_epsilon": "much"}, "claimed_epsilon must be a finite number, got much"),
        ({"delta": 1}, "delta must be at least 0 and below 1, got 1"),
        ({"neighbours": []}, "neighbours must list at least one pair"),
        ({"sampler": lambda given, count: np.zeros(3)}, "sampler must give as many outputs as it is asked for"),
    ],
)
def test_refusals(options, words):
    usual = {"sampler": lambda given, count: np.zeros(count), "neighbours": [(0, 1)], "draws": 1000}
    with pytest.raises(InputError, match=words):
        audit_samples(**{**usual, "claimed_epsilon": 1, **options})


# -- power and coverage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kendall", "ulam", "optimal"])
def test_a_quarter_too_loose_is_caught_with_30000_draws_in_all(name):
    caught = [not audit(rankdp.mechanism(name, 4, "1.25"), 30_000, seed).holds for seed in range(12)]
    assert sum(caught) >= 11


@pytest.mark.long
@pytest.mark.parametrize("name", ["kendall", "ulam", "optimal"])
@pytest.mark.parametrize("items", [3, 5])
def test_power(name, items):
    mechanism = rankdp.mechanism(name, items, "1.25")
    caught = sum(not audit(mechanism, 30_000, seed).holds for seed in range(200))
    assert caught >= 190


@pytest.mark.parametrize(
    ("name", "draws", "confidence", "runs"),
    [
        ("kendall", 1000, 0.9, 60),
        *(
            pytest.param(name, draws, confidence, 500, marks=pytest.mark.long)
            for name, draws in (("kendall", 1000), ("optimal", 6000))
            for confidence in (0.9, 0.99)
        ),
    ],
)
def test_coverage(name, draws, confidence, runs):
    """Both realise exactly what they claim, so every bound above it is a false alarm."""
    mechanism = rankdp.mechanism(name, 3, 1)
    alarms = sum(not audit(mechanism, draws, 1000 + seed, confidence=confidence).holds for seed in range(runs))
    assert alarms <= runs * (1 - confidence)


def test_coverage_of_numbers():
    """Randomised response with four values, of exactly epsilon 1."""
    law = np.array([math.e, 1, 1, 1]) / (math.e + 3)
    alarms = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        found = audit_samples(
            lambda x, count, rng=rng: rng.choice(4, count, p=np.roll(law, x)),
            list(itertools.combinations(range(4), 2)),
            draws=2000,
            claimed_epsilon=1,
            confidence=0.9,
        )
        alarms += not found.holds
    assert alarms <= 15


# -- a peer, as its user would audit it --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy_counts():
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    laplace = opendp.m.make_laplace(*space, scale=1.0)
    assert laplace.map(1) == 1
    return lambda counts, draws: np.array([laplace(list(counts)) for _ in range(draws)])


def test_opendp_counts_sorted_into_a_ranking(noisy_counts):
    """One person adds one to one count; sorting is post-processing and loses some of it."""

    def ranking(counts, draws):
        return np.argsort(-noisy_counts(counts, draws), axis=1, kind="stable")

    one_person = [((10, 10, 10), (11, 10, 10)), ((10, 10, 10), (10, 10, 9))]
    found = audit_samples(ranking, one_person, draws=8000, claimed_epsilon=1)
    assert found.holds
    assert found.epsilon_low > 0.1  # OpenDP takes no seed; most often it is above 0.5
    five_votes = [((10, 10, 10), (15, 10, 10))]  # who forgets to bound a person's votes
    assert not audit_samples(ranking, five_votes, draws=4000, claimed_epsilon=1).holds


def test_opendp_counts_when_a_person_changes_two(noisy_counts):
    found = audit_samples(noisy_counts, [((10, 10, 10), (11, 9, 10))], draws=6000, claimed_epsilon=1)
    assert not found.holds
    two = [((10, 10, 10), (11, 9, 10))]
    assert audit_samples(noisy_counts, two, draws=6000, claimed_epsilon=2, confidence=1 - UNSEEDED).holds


# -- independence ------------------------------------------------------------------------------------------------


@every
def test_every_mechanism_draws_independently(name, request):
    pair = ranking_neighbours(range(4))[0]
    found = audit_independence(ranking_sampler(rankdp.mechanism(name, 4, 1), seeded(request)), *pair)
    assert found.holds, found.explain()
    assert set(found.p_values) >= {"neighbouring rows", "two calls", "neighbouring inputs"}
    assert json.loads(json.dumps(found.to_dict()))["holds"]


FRESH = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("sampler", "where"),
    [
        (lambda x, n: x + np.random.default_rng(0).laplace(0, 1, n), "two calls"),
        (lambda x, n: np.repeat(FRESH.integers(0, 9, -(-n // 2)), 2)[:n], "neighbouring rows"),
        (lambda x, n: np.full(n, FRESH.laplace()), "the law of several calls"),
    ],
)
def test_noise_that_comes_back_is_noticed(sampler, where):
    found = audit_independence(sampler, 0.0, 1.0)
    assert not found.holds
    assert "VIOLATION" in found.explain()
    assert len(found.p_values) * found.p_values[where] < found.level


def test_the_same_noise_for_neighbours_is_noticed():
    calls = iter([1, 2, 3, 4, 3])
    found = audit_independence(lambda x, n: np.random.default_rng(next(calls)).normal(x, 1, n), 0.0, 1.0)
    assert min(found.p_values, key=found.p_values.get) == "neighbouring inputs"
    assert not found.holds


def test_constant_draws_say_nothing():
    found = audit_independence(lambda x, n: np.full(n, x), 1.0)
    assert found.holds
    assert found.constant
    assert "Inconclusive" in found.explain()
    rng = np.random.default_rng(1)
    assert audit_independence(lambda x, n: rng.choice(["a", "b"], n), "a").holds
    with pytest.raises(InputError, match="draws must be an integer of at least 200"):
        audit_independence(lambda x, n: np.zeros(n), 0, draws=10)


def test_honest_samplers_are_rarely_accused():
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        p_values.append(audit_independence(lambda x, n, rng=rng: rng.choice(5, n), 0, 1, draws=1000).p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.08
