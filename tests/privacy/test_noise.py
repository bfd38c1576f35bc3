"""Every sampler against its closed form, against OpenDP's, at the edges of its range, and in its rarest branch."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, UNSEEDED, Scripted, assert_law, assert_same_law, decimal_exp, seeded

from rankdp.errors import InputError
from rankdp.privacy import noise
from rankdp.privacy.bits import SecureBits
from rankdp.privacy.noise import (
    TruncatedGeometrics,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    uniform_below,
)

DRAWS = 200_000
WORD = 1 << 64


def zigzag(draws):
    """0, -1, 1, -2, 2, … -> 0, 1, 2, 3, 4, …"""
    return np.where(draws >= 0, 2 * draws, -2 * draws - 1)


def gaussian_law(sigma, reach):
    log = -(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2)
    return np.exp(log) / np.exp(log).sum()


# -- against the closed form -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), "0.9", Fraction(1, 1000), 1 - Fraction(1, 1000)])
def test_bernoulli(p, request):
    drawn = bernoulli(p, DRAWS, seeded(request))
    assert drawn.dtype == np.bool_
    assert_law(drawn.astype(int), [1 - float(Fraction(p)), float(Fraction(p))])


def test_bernoulli_at_the_ends(request):
    bits = seeded(request)
    assert not bernoulli(0, 1000, bits).any()
    assert bernoulli(1, 1000, bits).all()
    assert not bernoulli(Fraction(1, 10**100), 1000, bits).any()
    assert bernoulli(1 - Fraction(1, 10**100), 1000, bits).all()


def test_bernoulli_of_a_probability_below_every_word():
    tiny = Fraction(1, 1 << 100)
    assert bernoulli(tiny, 1, Scripted([WORD - 1, WORD - 1])).tolist() == [True]
    assert bernoulli(tiny, 1, Scripted([WORD - 1, WORD - 2 - (1 << 28)])).tolist() == [False]
    assert bernoulli(tiny, 1, Scripted([WORD - 1, WORD - (1 << 28)])).tolist() == [True]
    assert bernoulli(tiny, 1, Scripted([WORD - 1, WORD - (1 << 28) - 1])).tolist() == [False]


@pytest.mark.parametrize("x", [Fraction(1, 100), Fraction(1, 2), 1, Fraction(7, 2), 6])
def test_bernoulli_exp(x, request):
    drawn = bernoulli_exp(x, DRAWS, seeded(request))
    assert_law(drawn.astype(int), [-math.expm1(-x), math.exp(-x)])


@pytest.mark.parametrize("x", [0, Fraction(1, 10**300), Fraction(1, 10**100)])
def test_bernoulli_exp_of_next_to_nothing_is_certain(x, request):
    assert bernoulli_exp(x, 1000, seeded(request)).all()


@pytest.mark.parametrize("x", [100, 10**6, 10**300])
def test_bernoulli_exp_of_much_never_happens(x, request):
    assert not bernoulli_exp(x, 1000, seeded(request)).any()


def test_bernoulli_exp_is_exact_at_the_edge():
    edge = int(Fraction(decimal_exp(Fraction(-3, 2), 100)) * WORD**2)
    first, second = divmod(edge, WORD)
    assert bernoulli_exp(Fraction(3, 2), 1, Scripted([first, second - 1])).tolist() == [True]
    assert bernoulli_exp(Fraction(3, 2), 1, Scripted([first, second + 1])).tolist() == [False]


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64, 97, 1000])
def test_uniform_below(bound, request):
    drawn = uniform_below(bound, DRAWS, seeded(request))
    if bound == 1:
        assert not drawn.any()
    else:
        assert_law(drawn, np.full(bound, 1 / bound))


@pytest.mark.parametrize("bound", [(1 << 62) + 1, (1 << 63) - 25, 1 << 63, 3 << 40])
def test_uniform_below_large_bounds(bound, request):
    drawn = uniform_below(bound, DRAWS, seeded(request))
    assert drawn.min() >= 0
    assert int(drawn.max()) < bound
    assert stats.kstest(drawn / bound, "uniform").pvalue > LEVEL
    assert_law(drawn & 63, np.full(64, 1 / 64))


@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(1, 3), 1, Fraction(7, 3)])
def test_geometric(rate, request):
    drawn = geometric(rate, DRAWS, seeded(request))
    ratio = math.exp(-rate)
    assert_law(drawn, [(1 - ratio) * ratio**k for k in range(400)])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [10**3, 10**6, 10**9, 1 << 40, 1 << 56])
def test_geometric_of_a_large_scale(scale, request):
    """The distribution function as a whole, the low digits alone, and their independence of the high ones."""
    drawn = geometric(Fraction(1, scale), DRAWS, seeded(request))
    assert drawn.min() >= 0
    uniform = -np.expm1(-(drawn + 0.5) / scale)
    assert stats.kstest(uniform, "uniform").pvalue > LEVEL
    low = np.exp(-np.arange(1024) / scale)
    digits = drawn % 1024
    assert_law(digits, low / low.sum())
    if scale >= 10**6:  # where they are uniform for all practical purposes, within halves of the high ones
        high = drawn // 1024 > np.median(drawn // 1024)
        assert_same_law(digits[high], digits[~high])


@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, Fraction(10, 3), 20])
def test_discrete_laplace(scale, request):
    drawn = discrete_laplace(scale, DRAWS, seeded(request))
    ratio = math.exp(-1 / scale)
    law = [(1 - ratio) / (1 + ratio) * ratio ** ((k + 1) // 2) for k in range(800)]
    assert_law(zigzag(drawn), law)


@pytest.mark.parametrize("scale", [10**4, Fraction(10**9, 7), 1 << 50])
def test_discrete_laplace_of_a_large_scale(scale, request):
    drawn = discrete_laplace(scale, DRAWS, seeded(request))
    assert stats.kstest(drawn / float(scale), "laplace").pvalue > LEVEL
    assert_law((drawn < 0).astype(int), [0.5, 0.5])


@pytest.mark.parametrize("sigma", [Fraction(1, 3), 1, Fraction(7, 2), 20, 63, 64, Fraction(641, 10), 65])
def test_discrete_gaussian(sigma, request):
    reach = math.ceil(12 * sigma)
    drawn = discrete_gaussian(sigma, DRAWS // 2, seeded(request))
    assert_law(drawn + reach, gaussian_law(float(sigma), reach))


@pytest.mark.parametrize("sigma", [10**4, Fraction(10**12, 3), 1 << 56])
def test_discrete_gaussian_of_a_large_sigma(sigma, request):
    drawn = discrete_gaussian(sigma, DRAWS // 2, seeded(request))
    assert stats.kstest(drawn / float(sigma), "norm").pvalue > LEVEL
    assert_law(drawn % 16, np.full(16, 1 / 16))


@pytest.mark.parametrize(("rate", "stages"), [(Fraction(1, 2), 9), (Fraction(1, 30), 40), (Fraction(5), 3), (1, 1)])
def test_truncated_geometrics(rate, stages, request):
    draws = TruncatedGeometrics(Fraction(rate), stages).sample(40_000, seeded(request))
    assert draws.shape == (40_000, stages)
    for stage in {0, 1, stages // 2, stages - 1} & set(range(stages)):
        weights = np.exp(-float(rate) * np.arange(stage + 2))
        assert draws[:, stage].max() <= stage + 1
        assert_law(draws[:, stage], weights / weights.sum())


def test_truncated_geometrics_of_one_row_are_independent(request):
    draws = TruncatedGeometrics(Fraction(1, 4), 3).sample(100_000, seeded(request))
    weights = [np.exp(-np.arange(t + 1) / 4) for t in (1, 2, 3)]
    joint = np.einsum("i,j,k->ijk", *[w / w.sum() for w in weights]).ravel()
    assert_law(np.ravel_multi_index(tuple(draws.T), (2, 3, 4)), joint)


def test_truncated_geometrics_settle_an_undecided_word():
    stages = TruncatedGeometrics(Fraction(1, 2), 2)
    cut = int(stages.tables[0].cuts[0])
    edge = int(WORD**2 / (1 + Fraction(decimal_exp(Fraction(-1, 2), 100)))) - cut * WORD
    first = [cut, 0, *[1] * 16]
    assert stages.sample(1, Scripted([*first, edge - 1])).tolist() == [[0, 0]]
    assert stages.sample(1, Scripted([*first, edge + 1])).tolist() == [[1, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 10**5), Fraction(1, 700), Fraction(1, 10), Fraction(3)])
def test_truncated_geometrics_of_two_digits(rate, request):
    """Stages on both sides of 1024 outcomes, at rates where the table of low digits is full and where it is short."""
    stages = 3000
    draws = TruncatedGeometrics(rate, stages).sample(1500, seeded(request))
    assert (draws <= np.arange(1, stages + 1)).all()
    weights = np.exp(-float(rate) * np.arange(stages + 1))
    for near in ([40, 60], [450, 600], [1015, 1022], [1023, 1030], [2040, 2055], [2980, 3000]):
        # several stages of nearly the same size together: through each one's own distribution function
        columns = range(*near)
        uniform = []
        for column in columns:
            upto = np.cumsum(weights[: column + 2]) / weights[: column + 2].sum()
            below = np.concatenate([[0], upto])[draws[:, column]]
            spread = np.random.default_rng(column).random(len(draws))
            uniform.append(below + spread * (upto[draws[:, column]] - below))
        assert stats.kstest(np.concatenate(uniform), "uniform").pvalue > LEVEL


def test_truncated_geometrics_settle_an_undecided_word_of_either_digit():
    """A stage of 1025 outcomes: a high or a low word that equals a cut is settled by further digits."""
    geometrics = TruncatedGeometrics(Fraction(1, 500), 1024)
    high, low = geometrics.tables[-1], geometrics._low
    plain = [1 << 40] * 1023  # well inside the first cell of every shorter stage
    padding = [1] * 2000
    cut_high, cut_low = int(high.cuts[0]), int(low.cuts[6])
    for word_high, word_low, more, expected in [
        (0, 0, [], 0),
        (0, cut_low + 1, [], 7),
        (0, cut_low, [0], 6),
        (0, cut_low, [WORD - 1], 7),
        (cut_high + 1, 0, [], 1024),
        (cut_high, 0, [0], 0),
        (cut_high, 0, [WORD - 1], 1024),
        (cut_high, cut_low, [0, WORD - 1], 7),
    ]:
        asked = 2 * 1024 + 2 * 1024 // 16 + 16
        script = Scripted([*plain, word_high, word_low, *padding][:asked] + more)
        assert geometrics.sample(1, script)[0, -1] == expected
        assert script.used == asked + len(more)


def test_every_stage_is_served_by_a_table_that_is_large_enough():
    for size in range(2, 3000):
        assert size <= noise._stage_size(size) <= size * 9 / 8
    assert [noise._stage_size(size) for size in range(2, 18)] == [*range(2, 17), 18]


# -- against OpenDP ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opendp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


@pytest.mark.slow
def test_discrete_laplace_against_opendp(opendp, request):
    scale, count = 3.0, 30_000
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    oracle = opendp.m.make_laplace(*space, scale=scale)
    theirs = np.array(oracle([0] * count))
    assert_same_law(theirs, discrete_laplace(scale, count, seeded(request)), level=UNSEEDED)


@pytest.mark.slow
def test_discrete_gaussian_against_opendp(opendp, request):
    scale, count = 3.0, 30_000
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T=float)
    oracle = opendp.m.make_gaussian(*space, scale=scale)
    theirs = np.array(oracle([0] * count))
    assert_same_law(theirs, discrete_gaussian(scale, count, seeded(request)), level=UNSEEDED)


# -- edges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [0, 0.0, Fraction(1, 10**6), Fraction(1, 10**400), "1e-50"])
def test_no_noise_to_speak_of(sampler, scale, request):
    assert not sampler(scale, 1000, seeded(request)).any()


@pytest.mark.parametrize("rate", [100, 10**6, 10**400])
def test_geometric_of_a_huge_rate_is_zero(rate, request):
    assert not geometric(rate, 1000, seeded(request)).any()


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_the_largest_scale_fits_and_the_next_does_not(sampler):
    assert sampler(1 << 56, 100, SecureBits()).dtype == np.int64
    for scale in ((1 << 56) + 1, 10**30, 10**400, "1e300"):
        with pytest.raises(InputError, match=r"(scale|sigma) must be at most 2\^56 so that draws fit"):
            sampler(scale, 1, SecureBits())
    with pytest.raises(InputError, match="1/rate must be at most"):
        geometric("1e-400", 1, SecureBits())


def test_the_farthest_draw_of_the_largest_scale_does_not_overflow():
    """All words as large as can be while still decided: the largest digit everywhere."""
    tables = noise._geometric_digits(Fraction(1, 1 << 56))
    largest = sum(int(table.first + len(table.cuts) - 1) << 10 * place for place, table in enumerate(tables))
    assert largest < 1 << 63
    words = [max(set(range(WORD - 3000, WORD)) - set(table.cuts.tolist())) for table in tables]
    drawn = geometric(Fraction(1, 1 << 56), 1, Scripted(words))
    assert 0 < int(drawn[0]) <= largest


@pytest.mark.parametrize(
    ("sampler", "first"),
    [
        (bernoulli, Fraction(1, 3)),
        (bernoulli_exp, 1),
        (uniform_below, 5),
        (geometric, 1),
        (discrete_laplace, 2),
        (discrete_gaussian, 2),
    ],
)
def test_counts(sampler, first):
    assert sampler(first, 0, SecureBits()).shape == (0,)
    assert sampler(first, np.int64(3), SecureBits()).shape == (3,)
    for count in (-1, 1.0, True, None, "2"):
        with pytest.raises(InputError, match="count must be an integer of at least 0, got"):
            sampler(first, count, SecureBits())


@pytest.mark.parametrize(
    ("sampler", "values", "sentence"),
    [
        (bernoulli, [-0.1, 1.1, "3/2"], "probability must be between 0 and 1, got"),
        (bernoulli, [math.nan, "x", True], "probability must be a finite number, got"),
        (bernoulli_exp, [-1, "-1/9"], "x must be a finite number of at least 0, got"),
        (bernoulli_exp, [math.inf, None], "x must be a finite number, got"),
        (uniform_below, [0, -1, 1.5, True, (1 << 63) + 1, "3"], "bound must be an integer from 1 to"),
        (geometric, [0, -1, math.nan, math.inf, True], "rate must be a finite number above 0, got"),
        (discrete_laplace, [-1, "-1/2"], "scale must be a finite number of at least 0, got"),
        (discrete_laplace, [math.nan, math.inf, "wide"], "scale must be a finite number, got"),
        (discrete_gaussian, [-1], "sigma must be a finite number of at least 0, got"),
        (discrete_gaussian, [math.nan, -math.inf], "sigma must be a finite number, got"),
    ],
)
def test_bad_arguments_are_refused(sampler, values, sentence):
    for value in values:
        with pytest.raises(InputError) as refusal:
            sampler(value, 1, SecureBits())
        assert str(refusal.value).startswith(sentence)
