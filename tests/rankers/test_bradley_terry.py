"""Bradley-Terry fits against other people's solvers, published numbers, and the mathematics itself."""

from __future__ import annotations

import csv
import math
from fractions import Fraction

import choix
import evalica
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.rankers import newton_kernels as kernels
from rankdp.rankers.bradley_terry import compensated_sum, fit, fit_wins
from rankdp.rankers.links import LINKS, LOGISTIC, Link


def table(items: int, comparisons: int, seed: int, spread: float = 0.7, ties: float = 0.1) -> PairCounts:
    """Random pairs with logistic outcomes and some ties."""
    generator = np.random.default_rng(seed)
    strengths = generator.normal(0, spread, items)
    left = generator.integers(0, items, comparisons)
    right = (left + generator.integers(1, items, comparisons)) % items
    won = generator.random(comparisons) < 1 / (1 + np.exp(strengths[right] - strengths[left]))
    return PairCounts.from_pairs(left, right, np.where(generator.random(comparisons) < ties, 1, 2 * won), items=items)


def objective(counts, theta, link=LOGISTIC, ridge=0.0, linear=0.0):
    gap = theta[counts.first] - theta[counts.second]
    ahead, behind = counts.half_wins_first / 2, counts.half_wins_second / 2
    loss = -(ahead * np.log(link.cdf(gap)) + behind * np.log(link.cdf(-gap))).sum()
    return loss + ridge / 2 * (theta @ theta) + (linear * theta).sum()


def read(path):
    """The common pairwise format: item_1, item_2 and an outcome of 1, 0, 0.5 or blank."""
    with path.open(encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["outcome"]]
    names = sorted({line[side] for line in lines for side in ("item_1", "item_2")})
    place = {name: i for i, name in enumerate(names)}
    columns = ([place[line[side]] for line in lines] for side in ("item_1", "item_2"))
    return PairCounts.from_pairs(*columns, [int(2 * float(line["outcome"])) for line in lines], items=names)


# other solvers


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_choix_finds_the_same_strengths(ridge):
    counts = table(12, 900, seed=1, ties=0)
    data = [
        (int(i), int(j))
        for i, j, a, b in zip(
            np.r_[counts.first, counts.second],
            np.r_[counts.second, counts.first],
            np.r_[counts.half_wins_first, counts.half_wins_second],
            np.zeros(2 * len(counts)),
            strict=True,
        )
        for _ in range(a // 2)
    ]
    theirs = choix.opt_pairwise(12, data, alpha=ridge / 2, tol=1e-12)  # its penalty is alpha |t|^2
    np.testing.assert_allclose(fit(counts, ridge=ridge).theta, theirs, atol=1e-6)


def test_evalica_finds_the_same_strengths_with_ties():
    generator = np.random.default_rng(2)
    left, right = generator.integers(0, 15, 2_000), generator.integers(1, 15, 2_000)
    right = (left + right) % 15
    halves = generator.integers(0, 3, 2_000)
    winners = [(evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X)[half] for half in halves]
    result = evalica.bradley_terry(left.tolist(), right.tolist(), winners, tolerance=1e-12, limit=10_000)
    theirs = np.log(result.scores.sort_index().to_numpy())
    ours = fit(PairCounts.from_pairs(left, right, halves, items=15))
    np.testing.assert_allclose(ours.theta, theirs - theirs.mean(), atol=1e-7)


# published numbers


def worths(theta):
    """exp(theta), scaled to sum 1."""
    return np.exp(theta) / np.exp(theta).sum()


def test_cems_worths(data_directory):
    counts = read(data_directory / "cems" / "comparisons.csv")
    expected = {"London": 0.372, "Paris": 0.186, "Barcelona": 0.129, "St.Gallen": 0.127, "Milano": 0.111}
    expected["Stockholm"] = 0.075
    found = dict(zip(counts.items, worths(fit(counts).theta), strict=True))
    assert {name: round(worth, 3) for name, worth in found.items()} == expected


def test_immigration_worths(data_directory):
    counts = read(data_directory / "immigration" / "comparisons.csv")
    found = dict(zip(counts.items, worths(fit(counts).theta), strict=True))
    expected = {"crimRate": 0.355, "socBurd": 0.344, "position": 0.165, "culture": 0.136}
    assert {name: round(worth, 3) for name, worth in found.items()} == expected


# the mathematics


def test_two_items_have_a_closed_form():
    fitted = fit(PairCounts(("a", "b"), [0], [1], [2 * 7], [2 * 3]))
    np.testing.assert_allclose(fitted.theta, [math.log(7 / 3) / 2, -math.log(7 / 3) / 2], atol=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_gradient_is_the_derivative_of_the_objective(name):
    """At the solution of a tilted objective the untilted gradient is minus the tilt: finite differences see it."""
    counts, linear = table(7, 120, seed=3), np.array([3.0, -1, 0.5, 2, -2, 0, 1])
    fitted = fit(counts, ridge=0.7, link=name, linear=linear)
    step = 1e-5
    for i, direction in enumerate(np.eye(7)):
        ahead, behind = (
            objective(counts, fitted.theta + sign * step * direction, LINKS[name], ridge=0.7) for sign in (1, -1)
        )
        assert (ahead - behind) / (2 * step) == pytest.approx(-linear[i], abs=1e-6)


@pytest.mark.parametrize("name", LINKS)
def test_nothing_near_the_solution_is_better(name):
    counts, generator = table(9, 300, seed=4), np.random.default_rng(4)
    fitted = fit(counts, link=name)
    best = objective(counts, fitted.theta, LINKS[name])
    for size in (1e-3, 1e-1, 1):
        assert objective(counts, fitted.theta + size * generator.normal(size=9), LINKS[name]) > best
    assert abs(fitted.theta.sum()) < 1e-12
    assert fitted.gradient_residual <= 1e-10


def test_a_link_of_ones_own_rescales_the_strengths():
    steep = Link(
        "steep",
        lambda x: LOGISTIC.cdf(2 * x),
        lambda x: 2 * LOGISTIC.slope(2 * x),
        lambda x: 4 * LOGISTIC.curvature(2 * x),
        2.0,
        1.0,
    )
    counts = table(9, 300, seed=5)
    np.testing.assert_allclose(2 * fit(counts, link=steep).theta, fit(counts).theta, atol=1e-9)
    assert math.isinf(fit(counts, link=steep).gradient_bound)  # nothing is known about its rounding


@settings(max_examples=40)
@given(st.permutations(range(8)), st.sampled_from([*LINKS]), st.sampled_from([0.0, 0.5]))
def test_names_and_their_order_do_not_matter(places, name, ridge):
    counts, place = table(8, 200, seed=6), np.array(places)
    moved = PairCounts.from_pairs(
        place[counts.first], place[counts.second], counts.half_wins_first, counts.half_wins_second, items=8
    )
    np.testing.assert_allclose(
        fit(moved, ridge=ridge, link=name).theta[place], fit(counts, ridge=ridge, link=name).theta, atol=1e-9
    )


@settings(max_examples=60)
@given(
    wins=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 10**6)), max_size=25),
    ridge=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]),
    linear=st.lists(st.integers(-50, 50), min_size=6, max_size=6),
    name=st.sampled_from([*LINKS]),
)
def test_with_a_ridge_every_table_has_a_solution(wins, ridge, linear, name):
    left = [i for i, _, _ in wins]
    right = [(i + d) % 6 for i, d, _ in wins]
    counts = PairCounts.from_pairs(left, right, [w for *_, w in wins], [0] * len(wins), items=6)
    fitted = fit(counts, ridge=ridge, linear=linear, link=name)
    size = 1 + counts.halves.sum() + np.abs(ridge * fitted.theta).max() + np.abs(linear).max()
    assert fitted.gradient_residual <= 1e-10 + 1e-13 * size + 1e-15 * size * np.abs(fitted.theta).max()
    assert fitted.theta.sum() == pytest.approx(-sum(linear) / ridge, abs=1e-6 * (1 + sum(map(abs, linear)) / ridge))


def test_several_comparisons_add_up_and_a_tie_is_half_a_win_each():
    twice = PairCounts.from_pairs([0, 0, 1, 2, 0], [1, 1, 2, 0, 1], [2, 1, 2, 2, 0], items=3)
    added = PairCounts.from_dense([[0, 1.5, 0], [1.5, 0, 1], [1, 0, 0]])
    assert twice == added
    np.testing.assert_allclose(fit(twice).theta, fit(added).theta)
    double = PairCounts.from_dense(2 * added.dense())
    np.testing.assert_allclose(fit(double).theta, fit(added).theta, atol=1e-9)


def test_win_totals_and_design_are_sufficient():
    counts = table(20, 2_000, seed=7)
    mixed = PairCounts(counts.items, counts.first, counts.second, counts.halves, np.zeros(len(counts), np.int64))
    fitted, wins = fit(counts, ridge=0.4), fit_wins(mixed, counts.half_wins, ridge=0.4)
    np.testing.assert_allclose(wins.theta, fitted.theta, atol=1e-10)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 30.0])
def test_impossible_win_totals_are_fitted(ridge):
    counts = table(10, 300, seed=8)
    totals = np.array([-500, 900, 0, 3, 1, 77, 200, -1, 10, 60])
    fitted = fit_wins(counts, totals, ridge=ridge)
    share = LOGISTIC.cdf(fitted.theta[:, None] - fitted.theta)
    met = counts.dense() + counts.dense().T
    gradient = (met * share).sum(axis=1) - totals / 2 + ridge * fitted.theta
    assert np.abs(gradient).max() < 1e-9
    assert fitted.gradient_residual <= 1e-10


def test_a_warm_start_saves_steps():
    counts = table(30, 3_000, seed=9)
    cold = fit(counts)
    warm = fit(counts, start=cold.theta)
    assert warm.iterations == 0 < cold.iterations
    far = fit(counts, start=np.linspace(-40, 40, 30))
    np.testing.assert_allclose(far.theta, cold.theta, atol=1e-8)


# hard tables


@pytest.mark.parametrize("items", [40, 1_200, 3_000])
def test_long_chains_are_solved_by_elimination(items):
    i = np.arange(items - 1)
    generator = np.random.default_rng(items)
    ahead, behind = generator.integers(1, 9, (2, items - 1))
    fitted = fit(PairCounts.from_pairs(i, i + 1, 2 * ahead, 2 * behind, items=items))
    np.testing.assert_allclose(-np.diff(fitted.theta), np.log(ahead / behind), atol=1e-8)
    pulled = fit(PairCounts.from_pairs(i, i + 1, 2 * ahead, 2 * behind, items=items), ridge=1e-3)
    assert pulled.gradient_residual <= 1e-10


def test_strengths_far_apart():
    strengths = np.linspace(-30, 30, 120)
    i, j = np.triu_indices(120, 1)
    ahead = np.random.default_rng(11).binomial(9, 1 / (1 + np.exp(strengths[j] - strengths[i])))
    counts = PairCounts.from_pairs(i, j, 2 * ahead, 18 - 2 * ahead, items=120)
    fitted = fit(counts, ridge=1e-4)
    assert fitted.gradient_residual <= 1e-10


def test_huge_counts_are_solved_as_far_as_doubles_go():
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [2**50, 2**40, 2**50], [2**30, 2, 2**50], items=3)
    fitted = fit(counts)
    assert fitted.gradient_residual < 16 * 2.0**-53 * counts.half_wins.max()
    assert fitted.gradient_bound >= fitted.gradient_residual


def test_strengths_beyond_the_range_of_exp():
    counts = PairCounts(("a", "b", "c"), [0, 1], [1, 2], [2, 2], [2, 2])
    fitted = fit(counts, ridge=1e-3, linear=[3.0, -5.0, 2.0])
    assert np.abs(fitted.theta).max() > 700
    assert fitted.gradient_residual <= 1e-10


def test_one_item_alone():
    assert fit(PairCounts(("a",), [], [], [], [])).theta.tolist() == [0]
    assert fit(PairCounts(("a",), [], [], [], []), ridge=2, linear=[1]).theta.tolist() == [-0.5]


@pytest.mark.parametrize(
    ("columns", "items", "reason"),
    [
        (([0, 0, 1, 2], [1, 2, 2, 1], [2, 2, 2, 2]), "abc", "never beaten: a"),
        (([1, 2, 1, 2], [0, 0, 2, 1], [2, 2, 2, 2]), "abc", "always beaten: a"),
        (([0, 1, 2, 3], [1, 0, 3, 2], [2, 2, 2, 2]), "abcd", r"2 groups of items that never met \(one of them: a, b\)"),
        (([0, 1, 2, 3, 0], [1, 0, 3, 2, 2], [2, 2, 2, 2, 2]), "abcd", "2 groups of which one always beats another"),
        (([0, 1], [1, 0], [2, 2]), "abc", r"2 groups of items that never met \(one of them: c\)"),
        (([0] * 8, range(1, 9), [0] * 8), "abcdefghi", "never beaten: b, c, d, e, f and 3 more"),
    ],
)
def test_without_a_maximum_the_items_are_named_and_a_ridge_helps(columns, items, reason):
    counts = PairCounts.from_pairs(*map(list, columns), items=list(items))
    with pytest.raises(InputError, match=f"no maximum without a ridge: .*{reason}.*give a ridge above 0"):
        fit(counts)
    fitted = fit(counts, ridge=0.01)
    assert fitted.gradient_residual <= 1e-10
    assert np.isfinite(fitted.theta).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": -1}, "ridge must be a finite number of at least 0, got -1"),
        ({"ridge": math.nan}, "ridge must be"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"linear": [1, 2, 3]}, "linear needs a ridge above 0"),
        ({"linear": [1, 2], "ridge": 1}, "linear must be one finite number for each of the 3 items"),
        ({"start": [1, 2, math.inf]}, "start must be one finite number"),
        ({"link": "cloglog"}, "link must be one of"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        fit(table(3, 60, seed=12), **arguments)


def test_probit_is_refused():
    with pytest.raises(Unsupported, match="probit"):
        fit(table(3, 60, seed=12), link="probit")


@pytest.mark.parametrize(
    ("half_wins", "ridge", "message"),
    [
        ([1, 2], 1, "half_wins must be one whole number for each of the 3 items"),
        ([1.0, 2.0, 3.0], 1, "half_wins must be one whole number"),
        ([1, 2, 2**60], 1, r"between -2\^53 and 2\^53"),
        ([1, 2, 3], 0, "ridge must be above 0"),
    ],
)
def test_bad_win_totals_are_refused(half_wins, ridge, message):
    with pytest.raises(InputError, match=message):
        fit_wins(table(3, 60, seed=12), half_wins, ridge=ridge)


# the bound on the gradient


def exact_norm(counts, theta, wins, ridge, linear):
    """The l2 norm of the exact gradient at the given doubles, with 60 digits."""
    with mpmath.workdps(60):
        t = [mpmath.mpf(float(value)) for value in theta]
        gradient = [mpmath.mpf(ridge) * t[i] + mpmath.mpf(float(linear[i])) - wins[i] for i in range(len(t))]
        for i, j, halves in zip(counts.first.tolist(), counts.second.tolist(), counts.halves.tolist(), strict=True):
            share = 1 / (1 + mpmath.exp(t[j] - t[i]))
            gradient[i] += mpmath.mpf(halves) / 2 * share
            gradient[j] += mpmath.mpf(halves) / 2 * (1 - share)
        return mpmath.sqrt(sum(value * value for value in gradient))


@pytest.mark.parametrize("ridge", [0.3, 1e-3])
@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_bound_bounds_the_exact_gradient(seed, ridge):
    generator = np.random.default_rng(seed)
    counts = table(9, 400, seed=seed, spread=3)
    counts = PairCounts.from_dense(counts.dense() * 10.0 ** generator.integers(0, 6))
    linear = generator.normal(size=9) * 10.0 ** generator.integers(-2, 3)
    fitted = fit(counts, ridge=ridge, linear=linear)
    wins = [mpmath.mpf(int(half)) / 2 for half in counts.half_wins]
    true = exact_norm(counts, fitted.theta, wins, ridge, linear)
    assert true <= fitted.gradient_bound
    size = float(counts.half_wins.max()) + np.abs(linear).max() + 1
    assert fitted.gradient_bound < true + 1e-10 * 3 + 200 * 2.0**-53 * size * 3


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_the_gradient_bound_holds_far_from_the_solution_too(tolerance):
    counts, linear = table(9, 400, seed=20), np.zeros(9)
    fitted = fit(counts, ridge=0.1, tolerance=tolerance)
    wins = [mpmath.mpf(int(half)) / 2 for half in counts.half_wins]
    true = exact_norm(counts, fitted.theta, wins, 0.1, linear)
    assert true <= fitted.gradient_bound <= true * 1.0001 + 1e-10


def test_the_gradient_bound_holds_beyond_the_range_of_exp():
    counts, linear = table(5, 60, seed=21), np.array([40.0, -70, 3, 1, 0])
    fitted = fit(counts, ridge=1e-3, linear=linear)
    assert np.abs(fitted.theta).max() > 700
    wins = [mpmath.mpf(int(half)) / 2 for half in counts.half_wins]
    assert exact_norm(counts, fitted.theta, wins, 1e-3, linear) <= fitted.gradient_bound < 1e-9


@pytest.mark.parametrize("name", ["secant", "best-of-three"])
def test_the_gradient_bound_of_other_links(name):
    counts, ridge = table(7, 200, seed=22, spread=2), 0.25
    fitted = fit(counts, ridge=ridge, link=name)

    def slope(x):
        if name == "secant":
            z = mpmath.pi * x / 2
            return -mpmath.sech(z) / 2 / (2 / mpmath.pi * mpmath.atan(mpmath.exp(z)))
        t = 1 / (1 + mpmath.exp(x))
        return -6 * t * t / (1 + 2 * t)

    with mpmath.workdps(60):
        t = [mpmath.mpf(float(value)) for value in fitted.theta]
        gradient = [mpmath.mpf(ridge) * value for value in t]
        columns = (counts.first, counts.second, counts.half_wins_first, counts.half_wins_second)
        for i, j, a, b in zip(*(column.tolist() for column in columns), strict=True):
            pull = (a * slope(t[i] - t[j]) - b * slope(t[j] - t[i])) / 2
            gradient[i] += pull
            gradient[j] -= pull
        true = mpmath.sqrt(sum(value * value for value in gradient))
    assert true <= fitted.gradient_bound < true + 1e-10


def test_compensated_sums_are_exact_where_plain_ones_are_not():
    terms = [np.array([value]) for value in (1e16, 1.0, -1e16, 1e-3, 1.0)]
    exact = sum(Fraction(float(term[0])) for term in terms)
    assert compensated_sum(terms)[0] == float(exact)


@pytest.mark.slow
def test_a_huge_term_does_not_swallow_the_small_ones_of_an_item():
    many = 1_000
    starts = np.array([0, many + 1, *[many + 1] * (many + 1)])
    comparisons = np.r_[1e16, np.ones(many)]
    second = np.arange(1, many + 2, dtype=np.int32)
    sums, rests, _ = kernels.careful_wins(starts, second, comparisons, np.zeros(many + 2))
    assert sums[0] != 5e15 + many / 2  # a plain sum loses every half
    assert sums[0] + rests[0] == 5e15 + many / 2


@pytest.mark.slow
def test_a_large_table_meets_the_tolerance():
    counts = table(3_000, 2_000_000, seed=23)
    fitted = fit(counts)
    assert fitted.gradient_residual <= 1e-10
    assert fitted.gradient_bound < 1e-8
