"""Choosing a mechanism: by name, or the best one, with a reason; and refusals in one sentence."""

import math
from fractions import Fraction

import numpy as np
import pytest

import rankdp
from rankdp.errors import InputError, RankdpError
from rankdp.mechanisms import MECHANISMS, Personal, candidates, mechanism, why


@pytest.mark.parametrize(
    ("items", "epsilon"), [(2, 1), (5, 1), (6, 4), (8, 2), (12, 1), (50, 1), (50, 4), (100, 2), (300, 9)]
)
def test_auto_keeps_the_most_of_the_order(items, epsilon):
    chosen = mechanism("auto", items, epsilon)
    ranked = candidates(items, epsilon)
    best = next(one for one in ranked if one.taken_by_auto)
    assert (chosen.name, chosen.items, chosen.epsilon) == (best.name, items, epsilon)
    kept = [round(one.expected_concordance(), 9) for one in ranked]  # ties keep the order of the registry
    assert kept == sorted(kept, reverse=True)
    for name, cls in MECHANISMS.items():
        if not cls.serves(items):
            assert name not in [type(one).name for one in ranked]
            continue
        assert round(mechanism(name, items, epsilon).expected_concordance(), 9) <= kept[0]
    said = why(chosen)
    assert said.startswith(f"{chosen.name} keeps {best.expected_concordance():.1%} of all pairs")
    assert f"{items} items at epsilon {epsilon}" in said
    for one in ranked:
        assert one.name == chosen.name or f"{type(one).name} {one.expected_concordance():.1%}" in said


def test_auto_is_not_always_the_same():
    assert {mechanism("auto", *case).name for case in [(5, 1), (8, 1), (100, 1), (100, 6)]} == {
        "optimal",
        "ulam",
        "noisy-ranks",
        "reinsertion",
    }


@pytest.mark.parametrize("items", [8, 20, 60])
def test_auto_takes_nothing_that_an_aggregate_refuses(items):
    best = rankdp.candidates(items, 2)[0]
    assert type(best).name in ("tiers", "ulam-tiers")  # it keeps more, and is asked for by name
    assert mechanism("auto", items, 2).taken_by_auto


def test_optimal_is_the_best_where_it_exists():
    for items in range(2, 6):
        for epsilon in (0.5, 1, 4):
            best = mechanism("optimal", items, epsilon).expected_concordance()
            assert best >= max(one.expected_concordance() for one in candidates(items, epsilon)) - 1e-6


def test_names():
    assert list(MECHANISMS) == [
        "kendall",
        "laplace",
        "noisy-ranks",
        "ulam",
        "reinsertion",
        "tiers",
        "ulam-tiers",
        "sliding-tiers",
        "optimal",
    ]
    assert rankdp.mechanism is mechanism
    for name, cls in MECHANISMS.items():
        built = mechanism(name, 4, "1/3")
        assert type(built) is cls
        assert (built.items, built.epsilon) == (4, Fraction(1, 3))
        assert built.name.startswith(name)  # sizes of tiers follow
        assert repr(built) == f"{cls.__name__}(items=4, epsilon=1/3)"


@pytest.mark.parametrize("name", ["mallows", "", "Kendall", None, 3])
def test_unknown_names(name):
    with pytest.raises(InputError) as refusal:
        mechanism(name, 4, 1)
    assert str(refusal.value) == (
        "mechanism must be auto or one of kendall, laplace, noisy-ranks, ulam, reinsertion, tiers, "
        f"ulam-tiers, sliding-tiers, optimal, got {name!r}"
    )


@pytest.mark.parametrize("name", [*MECHANISMS, "auto"])
@pytest.mark.parametrize("items", [1, 0, -3, 2.0, 2.5, True, "4", None])
def test_items(name, items):
    mechanism(name, 2, 1)  # what was built before must not excuse what is asked now
    with pytest.raises(InputError) as refusal:
        mechanism(name, items, 1)
    assert str(refusal.value) == f"items must be an integer of at least 2, got {items!r}"


def test_items_may_be_a_numpy_integer():
    assert mechanism("kendall", np.int64(4), 1).items == 4


@pytest.mark.parametrize(("name", "most"), [("optimal", 6), ("ulam", 60)])
def test_too_many_items(name, most):
    with pytest.raises(InputError) as refusal:
        mechanism(name, most + 1, 1)
    assert str(refusal.value) == f"the {name} mechanism takes at most {most} items, got {most + 1}"


@pytest.mark.parametrize(
    "orders",
    [
        [0, 1, 2, 3],
        [[0, 1, 2]],
        [[0, 1, 2, 3, 4]],
        [[0.0, 1.0, 2.0, 3.0]],
        [["a", "b", "c", "d"]],
        [[[0, 1, 2, 3]]],
        5,
        np.array([[True, False, True, False]]),
    ],
)
@pytest.mark.parametrize("name", [*MECHANISMS, "auto"])
def test_bad_orders(name, orders):
    built = mechanism(name, 4, 1)
    with pytest.raises(InputError, match=r"^orders must be an n x 4 array of integers, got"):
        built.sample(orders)


def test_items_that_do_not_fit_are_refused_and_not_wrapped():
    built = mechanism("kendall", 3, 1)
    for wide in (
        np.array([[0, 1, 1 << 32]]),
        np.array([[0, 1, 1 << 31]], dtype=np.uint32),
        np.array([[0, 1, -(1 << 40)]]),
    ):
        with pytest.raises(InputError, match=r"^orders must hold 32-bit integers, got"):
            built.sample(wide)
    largest = np.array([[0, -(1 << 31), (1 << 31) - 1]])
    assert sorted(built.sample(largest)[0].tolist()) == sorted(largest[0].tolist())


@pytest.mark.parametrize(
    ("outputs", "orders"),
    [
        ([[0, 1, 2]], [[0, 1, 3]]),
        ([[0, 1, 1]], [[0, 1, 1]]),
        ([[0, 1, 1]], [[0, 1, 2]]),
    ],
)
def test_log_prob_wants_the_same_items(outputs, orders):
    with pytest.raises(InputError, match="outputs and orders must list the same items, each once, in every row"):
        mechanism("kendall", 3, 1).log_prob(outputs, orders)


def test_log_prob_takes_one_ranking_or_as_many_rows():
    built = mechanism("kendall", 3, 1)
    both = [[0, 1, 2], [2, 1, 0]]
    assert built.log_prob(both, [0, 1, 2]).shape == built.log_prob([0, 1, 2], both).shape == (2,)
    assert built.log_prob([0, 1, 2], [0, 1, 2]).shape == (1,)
    with pytest.raises(InputError, match="must have as many rows as each other, got 2 and 3"):
        built.log_prob(both, [[0, 1, 2]] * 3)


# -- everyone's own epsilon --------------------------------------------------------------------------------------


def test_personal_takes_any_iterable():
    for epsilons in ([1, 2, 1], (1, 2, 1), np.array([1.0, 2.0, 1.0]), iter(["1", "2", "1"])):
        personal = mechanism("kendall", 4, epsilons)
        assert isinstance(personal, Personal)
        assert [part.epsilon for part in personal.parts] == [1, 2]
        assert personal.sample(np.tile(np.arange(4), (3, 1))).shape == (3, 4)


@pytest.mark.parametrize(
    ("epsilons", "row"),
    [([1, 2, 0], 3), ([math.nan], 1), ([1, -1], 2), (["x", 1], 1), ([1.0, math.inf], 2), ([2, None], 2)],
)
def test_a_bad_personal_epsilon_is_named_by_its_row(epsilons, row):
    with pytest.raises(InputError, match=f"^epsilon of row {row} must be a finite number above 0, got"):
        mechanism("kendall", 4, epsilons)


def test_no_personal_epsilons():
    with pytest.raises(InputError, match="epsilon must have one value for each row, got none"):
        mechanism("kendall", 4, [])


def test_as_many_rows_as_epsilons():
    personal = mechanism("kendall", 4, [1, 2])
    for rows in (1, 3):
        with pytest.raises(InputError, match="orders must have one row for each of the 2 epsilons, got"):
            personal.sample(np.tile(np.arange(4), (rows, 1)))


def test_refusals_are_both_ours_and_value_errors():
    with pytest.raises(RankdpError):
        mechanism("kendall", 1, 1)
    with pytest.raises(ValueError, match="items"):
        mechanism("kendall", 1, 1)
