"""Cut points against exact fractions, and the one word in 2^64 that they leave open."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Scripted, assert_law, generator, precise, seeded

from rankdp.privacy.cut_tables import LAST, CutTable, Weights, geometric_weights, integer_weights
from rankdp.privacy.noise import _find, guide, look_up_stages

WORD = 1 << 64
RATES = [
    Fraction(1, 10**40),
    Fraction(1, 10**6),
    Fraction(1, 7),
    Fraction(1),
    Fraction(13, 3),
    Fraction(50),
    Fraction(10**9),
]


def geometric_function(rate, k, size=None, digits=250):
    """F(k) of the (truncated) geometric law, as a fraction good to hundreds of digits."""
    with localcontext(precise(digits)):
        x = Decimal(rate.numerator) / Decimal(rate.denominator)
        value = 1 - (-x * (k + 1)).exp()
        return Fraction(value if size is None else value / (1 - (-x * size).exp()))


def assert_cuts(table, function):
    """c <= 2^64 F(k) <= c + 1 for every cut but those at the end, where nothing is left to cut."""
    slack = Fraction(1, 10**100)
    assert table.cuts[-1] == LAST
    assert np.all(table.cuts[:-1] <= table.cuts[1:])
    for k, cut in enumerate(table.cuts.tolist(), table.first):
        value = WORD * function(k)
        assert cut <= value + slack
        assert value <= cut + 1 + slack


@pytest.mark.parametrize("weights", [[1], [1, 1], [1, 2, 3], [5, 0, 0, 7], [0, 1], [1, 0], [10**50, 1], [1, 10**50, 1]])
def test_integer_cuts(weights):
    total = sum(weights)
    assert_cuts(CutTable(integer_weights(weights)), lambda k: Fraction(sum(weights[: k + 1]), total))


@given(st.lists(st.integers(0, 10**25), min_size=1, max_size=30).filter(any))
@settings(max_examples=100)
def test_integer_cuts_of_any_weights(weights):
    total = sum(weights)
    assert_cuts(CutTable(integer_weights(weights)), lambda k: Fraction(sum(weights[: k + 1]), total))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 17, 100])
@pytest.mark.parametrize("rate", RATES)
def test_truncated_geometric_cuts(rate, size):
    table = CutTable(geometric_weights(rate, size))
    assert_cuts(table, lambda k: geometric_function(rate, k, size) if k < size - 1 else Fraction(1))
    assert len(table.cuts) <= size


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 7), Fraction(1), Fraction(50), Fraction(10**9)])
def test_geometric_cuts(rate):
    assert_cuts(CutTable(geometric_weights(rate)), lambda k: geometric_function(rate, k))


def test_cuts_with_unlisted_cells_on_both_sides():
    """Weights 2^-|k| on all integers, of which only some are listed."""

    def weights(bits):
        last = bits + 5
        listed = [1 << (2 * last - abs(k)) for k in range(-last, last + 1)]
        return Weights(listed, listed, first=-last, below=1 << last, above=1 << last)

    def function(k):
        return Fraction(1, 3) * Fraction(2) ** (k + 1) if k < 0 else 1 - Fraction(1, 3) / 2**k

    table = CutTable(weights)
    assert table.first < -60
    assert_cuts(table, function)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 50)), min_size=1, max_size=8),
    st.integers(0, 100),
    st.integers(0, 100),
    st.data(),
)
@settings(max_examples=300)
def test_cumulative_bounds_enclose_every_law_inside_the_weights(cells, below, above, data):
    """Whatever weights lie within their enclosures, F lies within the bounds."""
    lows, highs = [low for low, _ in cells], [low + wide for low, wide in cells]
    true = [data.draw(st.integers(low, high)) for low, high in zip(lows, highs, strict=True)]
    under, over = data.draw(st.integers(0, below)), data.draw(st.integers(0, above))
    total = under + sum(true) + over
    if total == 0:
        return
    bounds = Weights(lows, highs, 0, below, above).cumulative(20)
    until = under
    for k, (low, high) in enumerate(bounds, -1):
        until += true[k] if k >= 0 else 0
        assert low <= Fraction(until << 20, total) <= high


@pytest.mark.parametrize("size", [2, 5, None])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2)])
def test_the_undecided_word_is_settled_as_the_real_numbers_say(rate, size):
    """Words that equal a cut, then digits just below, at and just above 2^128 F: the answer is U < F(k), exactly."""
    table = CutTable(geometric_weights(rate, size))
    for k, cut in enumerate(table.cuts.tolist()[:4]):
        if cut == LAST:
            break
        value = geometric_function(rate, k, size)
        floor = int(value * WORD**2)
        rest = floor - cut * WORD
        assert 0 < rest < WORD - 1
        for second, expected in ((0, k), (rest - 1, k), (rest + 1, k + 1), (WORD - 1, k + 1)):
            script = Scripted([cut, second])
            assert table.sample(1, script).tolist() == [expected]
            assert script.used == 2
        third = int(value * WORD**3) - floor * WORD
        for last, expected in ((third - 1, k), (third + 1, k + 1)):
            script = Scripted([cut, rest, last])
            assert table.sample(1, script).tolist() == [expected]
            assert script.used == 3


def test_undecided_words_leave_the_others_alone():
    table = CutTable(integer_weights([1, 2]))  # F(0) = 1/3 = 0.555…5555… in digits of 2^-64
    cut = int(table.cuts[0])
    assert cut == (WORD - 1) // 3
    script = Scripted([0, cut, cut + 1, cut, cut - 1, cut - 1, cut + 1])
    assert table.sample(5, script).tolist() == [0, 0, 1, 1, 0]


def test_a_third_is_settled_only_by_a_digit_that_differs():
    table = CutTable(integer_weights([1, 2]))
    cut = int(table.cuts[0])
    for more, expected in ((cut - 1, 0), (cut + 1, 1)):
        script = Scripted([cut] * 6 + [more])
        assert table.sample(1, script).tolist() == [expected]
        assert script.used == 7


def test_the_last_word_reaches_the_far_tail():
    """The word 2^64 - 1 stands for the whole tail: the more ones follow, the farther out the draw."""
    table = CutTable(geometric_weights(Fraction(1)))
    draws = [int(table.sample(1, Scripted([LAST, second]))[0]) for second in (0, WORD // 2, LAST - 1)]
    expected = [
        next(k for k in range(300) if (LAST << 64 | second) < WORD**2 * geometric_function(Fraction(1), k))
        for second in (0, WORD // 2, LAST - 1)
    ]
    assert draws == expected
    assert draws[0] < draws[1] < draws[2]
    deep = table.sample(1, Scripted([LAST, LAST, LAST, 0]))[0]
    assert deep == int(3 * 64 * np.log(2))


@pytest.mark.parametrize("weights", [[3], [0, 0, 3], [3, 0, 0], [0, 3, 0]])
def test_all_mass_in_one_cell(weights, request):
    table = CutTable(integer_weights(weights))
    only = weights.index(3)
    assert set(table.sample(1000, seeded(request)).tolist()) == {only}
    for word in (0, 1, LAST - 1, LAST):
        assert table.sample(1, Scripted([word, LAST, 0])).tolist() == [only]
        assert table.sample(1, Scripted([word, 0, 0])).tolist() == [only]


def test_a_cell_without_weight_is_never_drawn_even_at_the_edge():
    table = CutTable(integer_weights([1, 0, 0, 1]))
    half = 1 << 63
    assert table.sample(1, Scripted([half - 1])).tolist() == [0]
    assert table.sample(1, Scripted([half, 0])).tolist() == [3]
    assert table.sample(1, Scripted([half + 1])).tolist() == [3]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 7, 300, 5000, 70_000])
def test_look_up_is_a_binary_search(size, request):
    rng = generator(request)
    cuts = np.append(np.sort(rng.integers(0, LAST, size - 1, dtype=np.uint64)), np.uint64(LAST))
    if size > 2:
        cuts[: size // 3] >>= np.uint64(40)  # crowd some of them into one slice
        cuts.sort()
    near = np.repeat(cuts, 3) + np.tile(np.array([-1, 0, 1]), size).astype(np.uint64)
    words = np.concatenate([rng.integers(0, LAST, 20_000, dtype=np.uint64, endpoint=True), near])
    words = words[words <= LAST]
    guides = guide(cuts)
    cells = [_find(word, 0, size, cuts, guides) for word in words]
    expected = np.searchsorted(cuts, words, side="right")
    expected[np.isin(words, cuts)] = -1
    assert np.array_equal(cells, expected)
    assert np.count_nonzero(expected < 0) > 0


def test_look_up_of_stages_reads_each_stage_in_its_own_table(request):
    rng = generator(request)
    sizes = np.array([2, 3, 5, 8])
    tables = [np.append(np.sort(rng.integers(0, LAST, n - 1, dtype=np.uint64)), np.uint64(LAST)) for n in sizes]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    words = rng.integers(0, LAST, 4000, dtype=np.uint64)
    words[1000:1040:2] = tables[1][0]
    draws = np.full(8000, -1, dtype=np.int32)
    arrays = 1024, 0, starts, sizes, np.concatenate(tables), np.concatenate([guide(table) for table in tables])
    expected, cursor, done, settled = [], 0, 0, 0
    while cursor < len(words):
        done, used, undecided = look_up_stages(words[cursor:], draws, done, *arrays)
        for word in words[cursor : cursor + used]:
            stage = len(expected) % 4
            cell = np.searchsorted(tables[stage], word, side="right")
            if cell <= stage + 1:
                expected.append(cell)
        cursor += used
        assert done == len(expected)
        if undecided:  # the word is left to the caller
            assert words[cursor] in tables[done % 4]
            cursor += 1
            settled += 1
    assert draws[:done].tolist() == expected
    assert (draws[done:] == -1).all()
    assert settled > 0


def test_decide_is_sample_for_one_word(request):
    table = CutTable(geometric_weights(Fraction(1, 3), 12))
    words = [*seeded(request).words(500).tolist(), 0, LAST - 1]
    decided = table.decide(np.array(words, dtype=np.uint64), Scripted([]))
    assert decided.tolist() == table.sample(len(words), Scripted(words)).tolist()


@pytest.mark.parametrize("weights", [[1, 2, 3, 4], [10**30, 3 * 10**30, 1, 10**29]])
def test_draws_follow_integer_weights(weights, request):
    total = sum(weights)
    assert_law(CutTable(integer_weights(weights)).sample(100_000, seeded(request)), [w / total for w in weights])
