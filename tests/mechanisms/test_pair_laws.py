"""Where pairs of positions land, and what can be estimated from it: enumeration, known tables, draws, mutants."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, seeded

import rankdp
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms import MECHANISMS, candidates, mechanism
from rankdp.theory.estimators import pair_estimator, rank_estimator
from rankdp.theory.pair_laws import of_permutations, pairs
from rankdp.theory.permutations import all_permutations

pytestmark = pytest.mark.slow

EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(4)]
# vertices of the linear programme where the law forgets something about pairs for good
SINGULAR = [
    ("optimal", 4, Fraction(1, 4)),
    ("optimal", 5, 1),
    ("optimal", 5, Fraction(3, 2)),
    ("kendall-ball-2", 5, 4),
]

WHOLE = [name for name, kind in MECHANISMS.items() if kind(4, 1).lists is None]  # lists say nothing about most pairs
every = pytest.mark.parametrize("name", WHOLE)
epsilons = pytest.mark.parametrize("epsilon", EPSILONS, ids=str)


def outputs(built):
    """All relative permutations, where each original position lands, and their probabilities."""
    permutations = all_permutations(built.items)
    return np.argsort(permutations, axis=1), np.exp(built.log_prob(permutations, np.arange(built.items)))


def means(built, values):
    """E h(b1, b2) for all ordered pairs of original positions, output by output."""
    places, probabilities = outputs(built)
    return np.tensordot(probabilities, values[places[:, :, None], places[:, None, :]], 1)


def biases(built, values):
    """The bias of an estimate of "the first stands before the second", for a1 < a2 and for a1 > a2."""
    first, second = pairs(built.items)
    mean = means(built, values)
    return np.abs(np.concatenate([mean[first, second] - 1, mean[second, first]])).max()


# -- the laws ----------------------------------------------------------------------------------------------------


@every
@epsilons
@pytest.mark.parametrize("items", [3, 5])
def test_pair_law_is_that_of_all_outputs(name, items, epsilon):
    built = mechanism(name, items, epsilon)
    places, probabilities = outputs(built)
    table = np.zeros((items,) * 4)
    for a1 in range(items):
        for a2 in range(items):
            np.add.at(table, (a1, a2, places[:, a1], places[:, a2]), probabilities)
    first, second = pairs(items)
    law = built.pair_law()
    np.testing.assert_allclose(law.same, table[first, second][:, first, second], rtol=0, atol=1e-10)
    np.testing.assert_allclose(law.crossed, table[first, second][:, second, first], rtol=0, atol=1e-10)
    ordered = np.concatenate([first, second]), np.concatenate([second, first])
    matrix = np.block([[law.same, law.crossed], [law.crossed, law.same]])
    np.testing.assert_allclose(matrix, table[ordered][:, ordered[0], ordered[1]], rtol=0, atol=1e-10)
    enumerated = of_permutations(all_permutations(items), probabilities)
    np.testing.assert_allclose(law.signed(), enumerated.signed(), rtol=0, atol=1e-10)


def assert_consistent(built, tolerance=1e-10):
    """Every pair lands once and is landed on once; each of the two lands as it does alone; order is kept as stated."""
    items, law = built.items, built.pair_law()
    first, second = pairs(items)
    np.testing.assert_allclose(law.unsigned().sum(axis=0), 1, rtol=tolerance)
    np.testing.assert_allclose(law.unsigned().sum(axis=1), 1, rtol=tolerance)
    assert min(law.same.min(), law.crossed.min()) > -1e-15
    kept = [built.keep_probability(int(i), int(j)) for i, j in zip(first, second, strict=True)]
    np.testing.assert_allclose(law.same.sum(axis=1), kept, rtol=tolerance)
    alone = np.zeros((len(first), items))
    for b in range(items):
        alone[:, b] = law.same[:, first == b].sum(axis=1) + law.crossed[:, second == b].sum(axis=1)
    np.testing.assert_allclose(alone, built.position_matrix()[first], rtol=0, atol=tolerance)
    if built.name not in ("laplace", "noisy-ranks"):  # P(s) = P(inverse of s)
        np.testing.assert_allclose(law.signed(), law.signed().T, rtol=0, atol=tolerance)
    mirror = np.lexsort((items - 1 - first, items - 1 - second))  # upside down, the pairs come in this order
    np.testing.assert_allclose(law.same[np.ix_(mirror, mirror)], law.same, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "items"), [("kendall", 50), ("reinsertion", 50), ("ulam", 10), ("laplace", 7), ("noisy-ranks", 7)]
)
def test_pair_law_of_the_longest_rankings_is_consistent(name, items):
    assert_consistent(mechanism(name, items, 2))


@pytest.mark.parametrize("name", ["kendall", "reinsertion"])
def test_draws_follow_the_pair_law(name, request):
    items = 12
    built = mechanism(name, items, 4)
    out = built.sample(np.tile(np.arange(items), (100_000, 1)), seeded(request))
    places = np.argsort(out, axis=1)
    first, second = pairs(items)
    law = built.pair_law()
    number = np.zeros((items, items), dtype=np.int64)
    number[first, second] = np.arange(len(first))
    number[second, first] = np.arange(len(first)) + len(first)
    for a1, a2 in ((0, 1), (0, items - 1), (items // 3, items // 2)):
        row = number[a1, a2]
        assert_law(number[places[:, a1], places[:, a2]], np.concatenate([law.same[row], law.crossed[row]]))


@pytest.mark.parametrize(
    ("name", "items", "most"),
    [("kendall", 51, 50), ("reinsertion", 51, 50), ("ulam", 11, 10), ("laplace", 8, 7), ("noisy-ranks", 8, 7)],
)
def test_pair_law_out_of_reach(name, items, most):
    with pytest.raises(Unsupported) as refusal:
        mechanism(name, items, 1).pair_law()
    assert str(refusal.value) == (
        f"the law of two positions of the {name} mechanism is known for up to {most} items, got {items}"
    )


# -- unbiased estimates ------------------------------------------------------------------------------------------


UNDOABLE = [name for name, kind in MECHANISMS.items() if kind.debiasable and name in WHOLE]
INVERTIBLE = [
    case for case in itertools.product(UNDOABLE, [3, 5], EPSILONS) if case not in [*SINGULAR, ("kendall-ball", 5, 4)]
]


@pytest.mark.parametrize(("name", "items", "epsilon"), INVERTIBLE)
def test_estimates_are_unbiased_output_by_output(name, items, epsilon):
    built = mechanism(name, items, epsilon)
    found = pair_estimator(built)
    assert biases(built, found.values) < 1e-8
    assert found.bias < 1e-8
    np.testing.assert_allclose(found.values + found.values.T, 1, atol=1e-9)
    first, second = pairs(items)
    variances = means(built, found.values**2)[first, second] - 1
    np.testing.assert_allclose(found.variances, variances, rtol=1e-6, atol=1e-8)
    assert found.mean_variance == pytest.approx(variances.mean(), rel=1e-6)
    assert found.largest_variance == pytest.approx(variances.max(), rel=1e-6)

    places, probabilities = outputs(built)
    ranks = rank_estimator(built)
    np.testing.assert_allclose(probabilities @ ranks.values[places], np.arange(1, items + 1), atol=1e-8)
    spread = probabilities @ ranks.values[places] ** 2 - np.arange(1, items + 1) ** 2
    np.testing.assert_allclose(ranks.variances, spread, rtol=1e-6, atol=1e-8)


@every
@pytest.mark.parametrize("items", [3, 4])
def test_the_check_of_unbiasedness_catches_mutants(name, items):
    built, wrong = mechanism(name, items, 2), mechanism(name, items, "2.2")
    naive = np.triu(np.ones((items, items)), 1)
    assert biases(built, naive) > 0.05
    assert biases(built, pair_estimator(wrong).values) > 1e-3
    right = pair_estimator(built).values
    assert biases(built, right.T) > 0.5
    assert biases(built, right) < 1e-8


@pytest.mark.parametrize(("name", "items", "epsilon"), SINGULAR)
def test_a_singular_law_is_refused(name, items, epsilon):
    built = mechanism(name, items, epsilon)
    matrix = built.pair_law().signed()
    assert np.linalg.svd(matrix, compute_uv=False)[-1] < 1e-12
    half = np.full(len(matrix), 0.5)
    closest = np.linalg.lstsq(matrix, half, rcond=1e-9)[0]
    assert np.abs(matrix @ closest - half).max() > 0.1  # no solution, not only a difficult one
    with pytest.raises(Unsupported, match=f"the noise of the {name} mechanism on {items} items at epsilon"):
        pair_estimator(built)


@epsilons
@pytest.mark.parametrize("items", [3, 9])
def test_closed_form_of_reinsertion_solves_the_linear_system(items, epsilon):
    built = mechanism("reinsertion", items, epsilon)
    first, second = pairs(items)
    law, found = built.pair_law(), pair_estimator(built)
    score = found.values[first, second] - 0.5
    np.testing.assert_allclose(law.signed() @ score, 0.5, rtol=1e-11)
    np.testing.assert_allclose(law.unsigned() @ score**2 - 0.25, found.variances, rtol=1e-9)
    if items < 9:
        np.testing.assert_allclose(score, np.linalg.solve(law.signed(), np.full(len(score), 0.5)), rtol=1e-7)
    matrix, ranks = built.position_matrix(), rank_estimator(built)
    np.testing.assert_allclose(matrix @ ranks.values, np.arange(1, items + 1), rtol=1e-11)
    spread = matrix @ ranks.values**2 - np.arange(1, items + 1) ** 2
    np.testing.assert_allclose(ranks.variances, spread, rtol=1e-8, atol=1e-10)


def test_closed_form_of_reinsertion_for_long_rankings():
    built = mechanism("reinsertion", 50, 1)
    first, second = pairs(50)
    law, found = built.pair_law(), pair_estimator(built)
    score = found.values[first, second] - 0.5
    np.testing.assert_allclose(law.signed() @ score, 0.5, rtol=1e-9)
    np.testing.assert_allclose(law.unsigned() @ score**2 - 0.25, found.variances, rtol=1e-8)


def test_reinsertion_needs_no_law_for_very_long_rankings(request):
    items, rows = 1000, 20_000
    built = mechanism("reinsertion", items, 8)
    found, ranks = pair_estimator(built), rank_estimator(built)
    places = np.argsort(built.sample(np.tile(np.arange(items), (rows, 1)), seeded(request)), axis=1)
    first, second = pairs(items)
    for a1, a2 in ((0, 1), (10, 900), (499, 500)):
        drawn = found.values[places[:, a1], places[:, a2]]
        variance = found.variances[(first == a1) & (second == a2)][0]
        assert drawn.mean() == pytest.approx(1, abs=4.5 * (variance / rows) ** 0.5)
        assert drawn.var() == pytest.approx(variance, rel=0.06)
        drawn = ranks.values[places[:, a1]]
        assert drawn.mean() == pytest.approx(a1 + 1, abs=4.5 * (ranks.variances[a1] / rows) ** 0.5)
        assert drawn.var() == pytest.approx(ranks.variances[a1], rel=0.06)


@pytest.mark.parametrize(
    ("items", "epsilon", "kendall", "ulam", "reinsertion"),
    [
        (4, 1, 16.6, 3.8, 5.7),
        (6, 1, 102, 16.9, 10.6),
        (6, 2, 16.3, 0.92, 1.14),
        (7, 1, 247, 4073, 12.9),
        (7, 2, 34.5, 1.11, 1.32),
        (7, 4, 3.3, 0.10, 0.11),
    ],
)
def test_table_of_the_notes(items, epsilon, kendall, ulam, reinsertion):
    """NOTES, Xu 7: mean variances, to the digits printed there; reinsertion's at eps 1 with its tight weight."""
    for name, printed in (("kendall", kendall), ("ulam", ulam), ("reinsertion", reinsertion)):
        variance = pair_estimator(mechanism(name, items, epsilon)).mean_variance
        digits = len(str(printed).partition(".")[2])
        assert variance == pytest.approx(printed, abs=0.5 * 10**-digits + 1e-9)


@pytest.mark.parametrize(("items", "largest"), [(5, (45, 8.7, 1.3)), (7, (260, 41, 5.2))])
def test_largest_variances_of_the_notes(items, largest):
    """NOTES, Xu 6: the Kendall mechanism at eps 1, 2, 4, to two digits."""
    for epsilon, printed in zip((1, 2, 4), largest, strict=True):
        assert float(f"{pair_estimator(mechanism('kendall', items, epsilon)).largest_variance:.2g}") == printed


@pytest.mark.parametrize(("name", "items", "epsilon"), [("kendall", 7, 1), ("ulam", 6, 1), ("optimal", 4, 1)])
def test_half_the_system_has_the_same_solution(name, items, epsilon):
    """The solver uses that rankings may be turned upside down."""
    built = mechanism(name, items, epsilon)
    first, second = pairs(items)
    law = built.pair_law()
    plain = np.linalg.solve(law.signed(), np.full(len(first), 0.5))
    np.testing.assert_allclose(pair_estimator(built).values[first, second] - 0.5, plain, rtol=1e-6, atol=1e-8)
    ranks = np.linalg.solve(built.position_matrix(), np.arange(1.0, items + 1))
    np.testing.assert_allclose(rank_estimator(built).values, ranks, rtol=1e-6)


def test_a_law_that_is_not_its_own_mirror_image_is_solved_whole():
    class Lopsided(MECHANISMS["kendall"]):
        """Mallows' model, and one ranking that is likelier than it should be."""

        def _log_prob(self, relative):
            likelier = (relative == [1, 2, 0, 3]).all(axis=1)
            return np.log(0.9 * np.exp(super()._log_prob(relative)) + 0.1 * likelier)

        def _pair_law(self):
            return of_permutations(all_permutations(4), np.exp(self._log_prob(all_permutations(4))))

        def position_matrix(self):
            places, probabilities = outputs(self)
            return np.array([np.bincount(places[:, a], probabilities, 4) for a in range(4)])

    built = Lopsided(4, 2)
    assert biases(built, pair_estimator(built).values) < 1e-8
    places, probabilities = outputs(built)
    np.testing.assert_allclose(probabilities @ rank_estimator(built).values[places], [1, 2, 3, 4], atol=1e-8)


def test_next_to_a_singular_law_the_bias_is_below_every_standard_error():
    built = mechanism("kendall", 20, 1)
    found = pair_estimator(built)
    assert found.condition > 1e12
    assert 0 < found.bias <= 1e-8
    ranks = rank_estimator(mechanism("kendall", 60, 1))
    assert ranks.bias <= 1e-8 * 60
    assert ranks.mean_variance / 60**2 == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(
    ("estimator", "name", "items", "epsilon", "sentence"),
    [
        (rank_estimator, "ulam", 11, 1, "the exact law of a position of the ulam mechanism is in reach for up to 10"),
        (rank_estimator, "kendall", 1001, 1, "the kendall mechanism is in reach for up to 1000 items, got 1001"),
        (pair_estimator, "reinsertion", 1001, 1, "win rates are estimated for up to 1000 items, got 1001"),
        (
            pair_estimator,
            "kendall",
            3,
            "1e-90",
            "the noise of the kendall mechanism on 3 items at epsilon 1e-90 cannot",
        ),
    ],
)
def test_refusals(estimator, name, items, epsilon, sentence):
    with pytest.raises(Unsupported) as refusal:
        estimator(mechanism(name, items, epsilon))
    assert sentence in str(refusal.value)


# -- choosing by it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "epsilon", "best"),
    [
        (5, 1, "ulam"),
        (6, 1, "reinsertion"),
        (6, 2, "ulam"),
        (7, 1, "reinsertion"),
        (7, 2, "ulam"),
        (10, 1, "reinsertion"),
    ],
)
def test_auto_for_aggregates_has_the_smallest_variance(items, epsilon, best):
    ranked = candidates(items, epsilon)
    costs = [pair_estimator(one).mean_variance for one in ranked]
    assert costs == sorted(costs)
    assert mechanism("auto", items, epsilon).name == ranked[0].name == best


def test_auto_for_aggregates_of_long_rankings_looks_at_mean_ranks():
    ranked = candidates(100, 1)
    assert [type(one).name for one in ranked] == ["offset-tiers", "noisy-ranks", "kendall", "laplace", "reinsertion"]
    costs = [rank_estimator(one).mean_variance for one in ranked]
    assert costs == sorted(costs)
    assert [one.name for one in candidates(1500, 1)] == ["reinsertion"]


def test_what_cannot_be_undone_is_no_candidate(monkeypatch):
    assert "optimal" in [one.name for one in candidates(5, 1, purpose="order")]
    assert "optimal" not in [one.name for one in candidates(5, 1)]
    monkeypatch.setattr("rankdp.mechanisms.registry.serving", lambda items: ("tiers",))
    assert [type(one).name for one in candidates(8, 1)] == ["tiers"]  # where nothing can be undone, the order counts


def test_an_unknown_purpose_is_refused():
    for call in (candidates, lambda *args, **options: rankdp.mechanism("auto", *args, **options)):
        with pytest.raises(InputError) as refusal:
            call(4, 1, purpose="speed")
        assert str(refusal.value) == "purpose must be one of aggregate, order, top, got 'speed'"
