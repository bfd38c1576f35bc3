"""Tiers against plain enumeration: all words, all sets, all moves of one letter."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, Scripted, assert_law, decimal_exp, seeded

import rankdp
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.tier_kernels import log_kept_sum
from rankdp.mechanisms.rankings.tiers import calibrated, read_name, spelled
from rankdp.theory import tier_laws

DIVISIONS = [(1, 1), (2, 3), (3, 1), (1, 2, 3), (2, 2, 2), (3, 1, 2), (1, 1, 1, 1, 1), (2, 1, 1, 2)]
WEIGHTS = [Fraction(1, 10), Fraction(7, 4), Fraction(20)]
divisions = pytest.mark.parametrize("sizes", DIVISIONS, ids=str)
weights = pytest.mark.parametrize("weight", WEIGHTS, ids=str)


def all_words(sizes):
    letters = [tier for tier, size in enumerate(sizes) for _ in range(size)]
    return sorted(set(itertools.permutations(letters)))


def plain_sum(word, weight):
    """The sum of weight^|S| over all sets of letters that never fall."""
    return sum(
        weight ** len(chosen)
        for size in range(len(word) + 1)
        for chosen in itertools.combinations(word, size)
        if all(later >= earlier for earlier, later in itertools.combinations(chosen, 2))
    )


def moved(word):
    """All words that differ by moving one letter."""
    for taken, place in itertools.product(range(len(word)), repeat=2):
        rest = word[:taken] + word[taken + 1 :]
        yield (*rest[:place], word[taken], *rest[place:])


@pytest.mark.slow
@divisions
@weights
def test_worst_ratio_over_moves_is_the_formula_exactly(sizes, weight):
    sums = {word: plain_sum(word, weight) for word in all_words(sizes)}
    worst = max(total / sums[other] for word, total in sums.items() for other in moved(word))
    more = 1 + weight
    assert worst == more / (1 + weight / more ** tier_laws.reach(sizes))


@pytest.mark.parametrize("epsilon", ["1e-30", "0.01", "0.5", "1", "4", "50"])
@pytest.mark.parametrize("reach", [1, 3, 50])
def test_calibration_is_below_epsilon_and_nearly_reaches_it(epsilon, reach):
    weight, growth = calibrated(Fraction(epsilon), reach), Fraction(decimal_exp(Fraction(epsilon), 150))
    ratio = (1 + weight) / (1 + weight / (1 + weight) ** reach)
    assert ratio <= growth * (1 + Fraction(1, 10**140))
    assert ratio - 1 >= (growth - 1) * (1 - Fraction(1, 10**25))
    assert math.exp(tier_laws.calibrated(float(epsilon), reach)) == pytest.approx(float(weight), rel=1e-6)


def test_a_huge_epsilon_is_calibrated_as_a_large_one():
    assert calibrated(Fraction(10**100), 3) == calibrated(Fraction(4096), 3)


@divisions
@weights
def test_sums_in_logarithms(sizes, weight):
    words = all_words(sizes)
    sums = [math.log(plain_sum(word, weight)) for word in words]
    found = log_kept_sum(np.array(words, dtype=np.int32), len(sizes), math.log(weight))
    np.testing.assert_allclose(found, sums, rtol=1e-12)


@pytest.mark.slow
@divisions
@weights
def test_public_numbers_equal_enumeration(sizes, weight):
    words, law, items = all_words(sizes), tier_laws.TierLaw(sizes, math.log(weight)), sum(sizes)
    sums = np.array([float(plain_sum(word, weight)) for word in words])
    share, letters = sums / sums.sum(), np.array(words)
    matrix = np.stack([share @ (letters == tier) for tier in range(len(sizes))], axis=1)
    assert law.log_normaliser == pytest.approx(math.log(sums.sum()), rel=1e-12)
    np.testing.assert_allclose(law.tier_matrix(), matrix, atol=1e-12)
    np.testing.assert_allclose(law.tier_matrix(first=2), matrix[:2], atol=1e-12)
    kept = []
    for i, j in itertools.combinations(range(items), 2):
        kept.append(share @ ((letters[:, i] < letters[:, j]) + 0.5 * (letters[:, i] == letters[:, j])))
        assert law.keep(i, j) == pytest.approx(kept[-1], abs=1e-12)
    assert law.concordance() == pytest.approx(np.mean(kept), abs=1e-12)


@pytest.mark.parametrize("sizes", [(2, 4), (1, 2, 2), (1, 1, 1, 1)], ids=str)
def test_table_of_the_sampler_holds_the_sums_of_its_weight(sizes):
    mechanism = rankdp.mechanism("tiers", sum(sizes), 1, tiers=sizes)
    words = [tuple(word) for word in mechanism._words(mechanism._permutations).tolist()]
    exact = {word: plain_sum(word, mechanism.weight) for word in set(words)}
    law = mechanism.exact_law(600)
    scale = law[0][0] / exact[words[0]]
    for word, (low, high) in zip(words, law, strict=True):
        assert abs(low / scale - exact[word]) < exact[word] / 10**100
        assert low <= high <= low * (1 + Fraction(1, 10**100))


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), [(20, "0.01"), (20, 4), (100, 1), (100, 6), (300, 2)])
def test_long_draws_follow_the_public_numbers(items, epsilon, request):
    mechanism = rankdp.mechanism("tiers", items, epsilon)
    rows = 4000
    out = mechanism.sample(np.tile(np.arange(items), (rows, 1)), seeded(request))
    places, matrix = np.argsort(out, axis=1), mechanism.position_matrix()
    np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=1e-9)
    tier = np.repeat(np.arange(len(mechanism.sizes)), mechanism.sizes)
    for a in (0, items // 3, items - 1):
        law = np.bincount(tier, matrix[a])
        assert_law(tier[places[:, a]], law[:-1])
    for i, j in ((0, 1), (0, items - 1), (items // 2, items // 2 + 1)):
        hits = int((places[:, i] < places[:, j]).sum())
        assert stats.binomtest(hits, rows, mechanism.keep_probability(i, j)).pvalue > LEVEL
    upper = np.triu_indices(items, 1)
    some = places[:: 1 + items // 100]
    share = (some[:, upper[0]] < some[:, upper[1]]).mean(axis=1)
    error = share.std() / math.sqrt(len(some))
    assert abs(share.mean() - mechanism.expected_concordance()) < 4.5 * error
    inside = (out[:, :3] < 3).mean(axis=1)
    assert abs(inside.mean() - mechanism.top_overlap(3)) < 4.5 * inside.std() / math.sqrt(rows) + 1e-9


@pytest.mark.parametrize(
    ("items", "epsilon", "least"),
    [(10, 2, 0.720), (20, 2, 0.714), (100, 0.5, 0.552), (100, 1, 0.611), (100, 8, 0.983), (1000, 4, 0.867)],
)
def test_default_tiers_keep_as_much_as_is_known_to_be_possible(items, epsilon, least):
    assert rankdp.mechanism("tiers", items, epsilon).expected_concordance() >= least


@pytest.mark.parametrize(("items", "epsilon", "top", "least"), [(100, 4, 10, 0.83), (10, 2, 3, 0.68)])
def test_a_tier_for_the_top_finds_it(items, epsilon, top, least):
    assert rankdp.mechanism("tiers", items, epsilon, tiers=[top, items - top]).top_overlap(top) >= least


@pytest.mark.parametrize("items", [2, 3, 7, 30])
@pytest.mark.parametrize("epsilon", ["1e-50", "0.1", "3", "5000"])
def test_default_sizes_are_tiers(items, epsilon):
    sizes = rankdp.mechanism("tiers", items, epsilon).sizes
    assert sum(sizes) == items
    assert min(sizes) > 0
    assert len(sizes) > 1


def test_a_draw_that_its_first_digits_do_not_settle_is_settled_by_the_next():
    mechanism = rankdp.mechanism("tiers", 4, 1, tiers=[2, 2])
    mean = mechanism._law.typical
    accepting = mechanism._tables.tables[0].accepting
    assert accepting.accepts(mean, (1 << 64) - 1, Scripted([]))  # the mean itself is always accepted
    kept = mean + 1  # with probability mean / (mean + 1)
    chance = Fraction(mean, mean + 1)
    word = math.floor(chance * 2**64)
    rest = math.floor((chance * 2**64 - word) * 2**64)
    assert accepting.accepts(kept, word, Scripted([max(rest - 1, 0)])) == (rest > 0)
    assert not accepting.accepts(kept, word, Scripted([rest + 1]))


@pytest.mark.parametrize("sizes", [(10, 90), (3, 2, 2, 2, 3), (1, 1, 1), (12,)])
def test_names_carry_the_sizes(sizes):
    assert read_name(f"tiers-{spelled(sizes)}") == ("tiers", sizes)


def test_a_name_without_sizes_has_none():
    assert read_name("noisy-ranks") == ("noisy-ranks", None)


def test_a_recorded_name_builds_the_same_mechanism():
    chosen = rankdp.mechanism("tiers", 12, 2)
    again = rankdp.mechanism(chosen.name, 12, 2)
    assert again.sizes == chosen.sizes
    assert chosen.parameters["tiers"] == list(chosen.sizes)
    assert rankdp.mechanism("auto", 12, 2, tiers=(4, 8)).sizes == (4, 8)


@pytest.mark.parametrize("sizes", [[12], [4, 7], [0, 12], [13, -1], [6.0, 6.0], [True, 11], []])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(InputError, match="tiers must be at least two whole numbers above 0 that add up to"):
        rankdp.mechanism("tiers", 12, 1, tiers=sizes)


def test_sizes_for_a_mechanism_without_tiers_are_refused():
    with pytest.raises(InputError, match="tiers can be given with tiers and offset-tiers, got mechanism 'kendall'"):
        rankdp.mechanism("kendall", 12, 1, tiers=[6, 6])
    with pytest.raises(InputError, match="mechanism must be auto or one of"):
        rankdp.mechanism("kendall-6-6", 12, 1)


def test_orders_inside_a_tier_are_uniform(request):
    out = rankdp.mechanism("tiers", 6, 2, tiers=[3, 3]).sample(np.tile(np.arange(6), (6000, 1)), seeded(request))
    ranks = Counter(tuple(np.argsort(np.argsort(row[:3])).tolist()) for row in out)
    orders = sorted(itertools.permutations(range(3)))
    assert_law(np.repeat(np.arange(6), [ranks[order] for order in orders]), [1 / 6] * 5)


def test_a_release_records_its_tiers():
    table = rankdp.Rankings.from_orders([[0, 1, 2, 3]] * 3)
    release = rankdp.privatize(table, 1, tiers=[1, 3])
    assert release.provenance.mechanism == "tiers"
    assert release.provenance.parameters["choices"][0]["mechanism"] == "tiers-1-3"
    with pytest.raises(InputError, match="tiers must be at least two whole numbers above 0 that add up to 4"):
        rankdp.privatize(table, 1, tiers=[1, 4])
