"""Choosing a mechanism: by name, or the best one, with a reason; and refusals in one sentence."""

import math
from fractions import Fraction

import numpy as np
import pytest

import rankdp
from rankdp.errors import InputError, RankdpError
from rankdp.mechanisms import MECHANISMS, candidates, describe, mechanism
from rankdp.mechanisms.registry import respondents_for_one

SETTINGS = [(2, 1), (5, 1), (6, 4), (8, 2), (12, 1), (50, 1), (50, 4), (100, 2), (300, 9)]


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), SETTINGS)
def test_auto_keeps_the_most_of_the_order(items, epsilon):
    chosen = mechanism("auto", items, epsilon, purpose="order")
    ranked = candidates(items, epsilon, purpose="order")
    assert (chosen.name, chosen.items, chosen.epsilon) == (ranked[0].name, items, epsilon)
    kept = [round(one.expected_concordance(), 9) for one in ranked]  # ties keep the order of the registry
    assert kept == sorted(kept, reverse=True)
    for name, cls in MECHANISMS.items():
        if not cls.serves(items):
            assert name not in [type(one).name for one in ranked]
            continue
        assert round(mechanism(name, items, epsilon).expected_concordance(), 9) <= kept[0]


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), SETTINGS)
def test_by_default_auto_needs_the_fewest_respondents(items, epsilon):
    cost = {one.name: respondents_for_one(one) for one in candidates(items, epsilon, purpose="order")}
    chosen = mechanism("auto", items, epsilon)
    assert cost[chosen.name] == min(needed for needed in cost.values() if needed is not None)


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), [(5, 1), (6, 2), (8, 2), (20, 2), (60, 2)])
def test_the_default_can_be_aggregated(items, epsilon):
    best = candidates(items, epsilon, purpose="order")[0]
    assert respondents_for_one(best) is None or respondents_for_one(best) > 1000  # optimal or tiers keep more
    votes = rankdp.Rankings.from_orders(np.tile(np.arange(items), (50, 1)))
    ranks = rankdp.aggregate(rankdp.privatize(votes, epsilon)).mean_ranks
    assert np.isfinite(ranks.values).all()
    assert respondents_for_one(mechanism("auto", items, epsilon)) < 50


def test_auto_is_not_always_the_same():
    cases = [(2, 1), (5, 1), (6, 1), (100, "0.25"), (100, 6)]
    assert [type(mechanism("auto", *case)).name for case in cases] == [
        "kendall",
        "ulam",
        "reinsertion",
        "noisy-ranks",
        "offset-tiers",
    ]


def test_the_cost_of_noise_in_respondents():
    assert respondents_for_one(mechanism("kendall", 2, 1)) == pytest.approx(1 / (2 / (1 + math.exp(-1)) - 1) ** 2)
    long, longer = (respondents_for_one(mechanism("noisy-ranks", items, 2)) for items in (100, 900))
    assert longer == pytest.approx(long, rel=0.03)
    assert respondents_for_one(mechanism("noisy-ranks", 1001, 2)) is None
    assert respondents_for_one(mechanism("reinsertion", 5000, 8)) > 1


@pytest.mark.parametrize(("items", "epsilon", "top", "kept"), [(10, 2, 3, 0.68), (100, 4, 10, 0.83)])
def test_auto_for_a_top_list_has_a_tier_for_it(items, epsilon, top, kept):
    chosen = mechanism("auto", items, epsilon, purpose="top", top=top)
    assert chosen.top_overlap(top) > kept
    others = candidates(items, epsilon, purpose="top", top=top)[1:]
    assert all(chosen.top_overlap(top) >= other.top_overlap(top) for other in others)
    assert describe(chosen, top).endswith(
        f": keeps {chosen.top_overlap(top):.0%} of the top {top}; no aggregate can debias it"
    )
    assert mechanism("auto", 3, epsilon, purpose="top", top=top).items == 3  # of shorter lists, all but the last


def test_one_line_says_what_a_mechanism_keeps():
    told = describe(mechanism("ulam", 8, 2))
    assert told == "ulam (8 items, epsilon 2): keeps 71% of pairs; 6 answers tell as much as one true ranking"
    assert describe(mechanism("kendall", 3, 200)).endswith("; 1 answer tells as much as one true ranking")
    assert describe(mechanism("kendall", 2, "1e-5")).endswith("; 4.0e+10 answers tell as much as one true ranking")
    assert describe(mechanism("ulam", 20, 2)) == "ulam (20 items, epsilon 2)"  # its numbers would be estimates


def test_a_top_list_goes_with_its_purpose():
    for options in ({"top": 3}, {"purpose": "top"}, {"purpose": "top", "top": 0}):
        with pytest.raises(InputError, match=r"^top"):
            mechanism("auto", 10, 1, **options)


def test_optimal_is_the_best_where_it_exists():
    for items in range(2, 6):
        for epsilon in (0.5, 1, 4):
            best = mechanism("optimal", items, epsilon).expected_concordance()
            assert best >= max(one.expected_concordance() for one in candidates(items, epsilon, purpose="order")) - 1e-6


def test_names():
    assert list(MECHANISMS) == [
        "kendall",
        "laplace",
        "noisy-ranks",
        "ulam",
        "reinsertion",
        "tiers",
        "offset-tiers",
        "kendall-ball",
        "top-ball",
        "optimal",
    ]
    assert rankdp.mechanism is mechanism
    for name, cls in MECHANISMS.items():
        built = mechanism(name, 4, "1/3")
        assert type(built) is cls
        assert (built.items, built.epsilon) == (4, Fraction(1, 3))
        assert built.name.startswith(name)  # sizes of tiers, or a radius, follow
        assert repr(built) == f"{cls.__name__}(items=4, epsilon=1/3)"


@pytest.mark.parametrize("name", ["mallows", "", "Kendall", "kendall-3", None, 3])
def test_unknown_names(name):
    with pytest.raises(InputError) as refusal:
        mechanism(name, 4, 1)
    assert str(refusal.value) == (
        "mechanism must be auto or one of kendall, laplace, noisy-ranks, ulam, reinsertion, tiers, "
        f"offset-tiers, kendall-ball, top-ball, optimal, got {name!r}"
    )


def test_the_radius_of_a_ball_follows_its_name_or_its_purpose():
    assert mechanism("kendall-ball-3", 6, 2).radius == 3
    for items, epsilon in ((9, 4), (20, 4), (30, 1)):
        one, other = (mechanism("kendall-ball", items, epsilon, purpose=word) for word in ("order", "aggregate"))
        assert one.expected_concordance() >= other.expected_concordance()
        assert respondents_for_one(one, "ranking") * (1 + 1e-6) >= respondents_for_one(other, "ranking")
        assert (one.radius == other.radius) == (items == 30)
    assert mechanism("kendall-ball", 31, 4).radius == mechanism("kendall-ball", 31, 4, purpose="order").radius
    for name, words in (("kendall-ball-15", "radius must be below 15"), ("kendall-ball-1-2", "one number, the radius")):
        with pytest.raises(InputError, match=words):
            mechanism(name, 6, 2)


@pytest.mark.parametrize("name", [*MECHANISMS, "auto"])
@pytest.mark.parametrize("items", [1, 0, -3, 2.0, 2.5, True, "4", None])
def test_items(name, items):
    mechanism(name, 2, 1)  # what was built before must not excuse what is asked now
    with pytest.raises(InputError) as refusal:
        mechanism(name, items, 1)
    told = "nothing" if items is None else repr(items)
    assert str(refusal.value) == f"items must be an integer of at least 2, got {told}"


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
    with pytest.raises(InputError, match="must have the same number of rows, got 2 and 3"):
        built.log_prob(both, [[0, 1, 2]] * 3)


@pytest.mark.parametrize("epsilon", [[1, 2], [], np.array([1.0, 2.0]), math.nan, -1, None])
def test_one_epsilon(epsilon):
    with pytest.raises(InputError, match=r"^epsilon must be a finite number above 0, got"):
        mechanism("kendall", 4, epsilon)


def test_refusals_are_both_ours_and_value_errors():
    with pytest.raises(RankdpError):
        mechanism("kendall", 1, 1)
    with pytest.raises(ValueError, match="items"):
        mechanism("kendall", 1, 1)
