"""Guarantees add up exactly, do not mix, and never state less than they cost."""

import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import decimal_exp

from rankdp.errors import InputError
from rankdp.privacy.guarantee import ITEM_POSITION, ONE_SCORE, WHOLE_RANKING, Guarantee, odds_factor

EPSILONS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**12),
    st.floats(1e-9, 1e4).map(Fraction),
    st.integers(1, 10**6).map(Fraction),
)


def test_ten_tenths_are_exactly_one():
    tenth = Guarantee(ITEM_POSITION, Fraction(1, 10), whole_ranking_epsilon=Fraction(1, 4))
    together = tenth.times(10)
    assert together.epsilon == 1
    assert together.whole_ranking_epsilon == Fraction(5, 2)
    assert together.releases == 10
    assert together == tenth.compose(*[tenth] * 9)
    assert tenth.times(1) == tenth


@pytest.mark.parametrize("releases", [2, 7, 10**9])
def test_many_releases_cost_what_they_add_up_to(releases):
    one = Guarantee(ITEM_POSITION, Fraction(1, 3), Fraction(1, 10**12), True, 0.1, rho=0.3, renyi=((2.0, 0.7),))
    many = one.times(releases)
    assert (many.epsilon, many.delta, many.releases) == (Fraction(releases, 3), Fraction(releases, 10**12), releases)
    for stated, each in ((many.whole_ranking_epsilon, 0.1), (many.rho, 0.3), (many.renyi[0][1], 0.7)):
        exact = releases * Fraction(each)
        assert exact <= stated <= exact * (1 + Fraction(1, 10**15))


@pytest.mark.slow
@given(st.lists(EPSILONS, min_size=2, max_size=6))
def test_epsilons_and_deltas_add_up(epsilons):
    parts = [Guarantee(ITEM_POSITION, e, delta=Fraction(1, 100)) for e in epsilons]
    total = parts[0].compose(*parts[1:])
    assert total.epsilon == sum(epsilons)
    assert total.delta == Fraction(len(parts), 100)
    assert total.releases == len(parts)


@pytest.mark.slow
@given(st.lists(st.one_of(EPSILONS, st.floats(1e-9, 1e6)), min_size=2, max_size=8))
def test_a_sum_with_rounded_parts_is_never_below_the_true_sum(wholes):
    parts = [Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=whole) for whole in wholes]
    total = parts[0].compose(*parts[1:]).whole_ranking_epsilon
    true = sum(Fraction(whole) for whole in wholes)
    assert true <= Fraction(total) <= true * (1 + Fraction(1, 10**14))


def test_an_unknown_whole_ranking_epsilon_stays_unknown():
    known, unknown = (Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=w) for w in (Fraction(2), None))
    assert known.compose(unknown).whole_ranking_epsilon is None
    assert unknown.compose(known).whole_ranking_epsilon is None


def test_marks_survive_composition():
    plain = Guarantee(ITEM_POSITION, Fraction(1))
    marked = Guarantee(ITEM_POSITION, Fraction(1), personal=True, listed_items_public=True)
    for both in (plain.compose(marked), marked.compose(plain)):
        assert both.personal
        assert both.listed_items_public


@pytest.mark.parametrize(
    "other",
    [Guarantee(WHOLE_RANKING, Fraction(1)), Guarantee(ITEM_POSITION, Fraction(1), local=False)],
)
def test_units_do_not_mix(other):
    with pytest.raises(InputError, match="guarantees compose only for the same unit of protection, got"):
        Guarantee(ITEM_POSITION, Fraction(1)).compose(other)


@pytest.mark.parametrize("releases", [0, -1, 1.0, True, "2", None])
def test_times_wants_a_count(releases):
    with pytest.raises(InputError, match="releases must be an integer of at least 1, got"):
        Guarantee(ITEM_POSITION, Fraction(1)).times(releases)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (-1, 0), (1, -1), (1, 1), (1, 2)])
def test_impossible_numbers_are_refused(epsilon, delta):
    with pytest.raises(InputError, match="must be"):
        Guarantee(ITEM_POSITION, Fraction(epsilon), delta=Fraction(delta))


def test_a_guarantee_is_frozen():
    guarantee = Guarantee(ITEM_POSITION, Fraction(1))
    with pytest.raises((AttributeError, TypeError)):
        guarantee.epsilon = Fraction(1, 2)


def test_to_local_dp():
    ranking = Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=Fraction(5, 2))
    local = ranking.to_local_dp()
    assert (local.protects, local.epsilon) == (WHOLE_RANKING, Fraction(5, 2))
    assert local.to_local_dp() == local
    rounded = Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=0.1).to_local_dp()
    assert rounded.epsilon == Fraction(0.1)  # the float itself, which is the upper bound, and not a tenth
    with pytest.raises(InputError, match="no local-DP epsilon is known"):
        Guarantee(ITEM_POSITION, Fraction(1)).to_local_dp()


@pytest.mark.parametrize(("unit", "fact"), [("one voter", "how that voter voted"), ("one ballot", "it")])
def test_what_a_reader_was_unsure_of_fits_the_unit(unit, fact):
    assert f"50:50 about {fact} can become at most 73.2% sure" in Guarantee(unit, Fraction(1), local=False).explain()


def numbers(text):
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?", text)]


def stated(text, before, after=""):
    """The number (or e^number) between two words."""
    found = re.search(re.escape(before) + r"(e\^)?([\d.,e+-]*\d)" + re.escape(after), text)
    assert found, text
    return bool(found[1]), Fraction(found[2].replace(",", ""))


@pytest.mark.slow
@given(EPSILONS, EPSILONS)
@settings(max_examples=300)
def test_stated_numbers_are_never_below_the_true_ones_nor_far_above(epsilon, whole):
    text = Guarantee(ITEM_POSITION, epsilon, whole_ranking_epsilon=whole).explain()
    assert not re.search(r"nan|inf|None|\b0\.0+\b", text)
    for true, number in (
        (epsilon, stated(text, "(epsilon ", ")")[1]),
        (whole, stated(text, "(epsilon ", " in local")[1]),
    ):
        assert true <= number <= true * (1 + Fraction(12, 10**4))
    for true, before in ((epsilon, "50:50 about it"), (whole, "two whole rankings they")):
        found = re.search(re.escape(before) + r" can become (?:at most ([\d.]+)% sure|all but certain)", text)
        assert found
        if found[1]:
            doubt, said = 1 / (1 + Fraction(decimal_exp(true, 60))), 1 - Fraction(found[1]) / 100
            assert said <= doubt
            assert doubt - said <= max(Fraction(1, 1000), doubt / 10)
        else:
            assert true > 14


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.5, 2, 3, 20, 999, 1.001, 12345])
def test_a_factor_just_above_a_round_number_is_rounded_up(factor):
    """The hardest case: exp(epsilon) exceeds a round number by less than a float can see."""
    exact = Fraction(str(factor))
    epsilon = Fraction(math.log(factor))
    while Fraction(decimal_exp(epsilon, 60)) <= exact:
        epsilon += Fraction(1, 10**19)
    while Fraction(decimal_exp(epsilon - Fraction(1, 10**19), 60)) > exact:
        epsilon -= Fraction(1, 10**19)
    assert Fraction(odds_factor(epsilon).replace(",", "")) > exact


def test_explanations_say_what_they_must():
    text = Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=Fraction(5, 2), releases=3).explain()
    assert ITEM_POSITION in text
    assert "after all 3 releases" in text
    assert "at most 73.2% sure" in text  # 1/(1 + 1/e) = 73.106…%, rounded up
    assert "at most 92.5% sure" in text  # 1/(1 + e^-2.5) = 92.414…%
    assert "(epsilon 1)" in text
    assert "NOT protected" not in text
    assert "NOT protected" in Guarantee(ITEM_POSITION, Fraction(1), listed_items_public=True).explain()
    assert "each person's own epsilon, at most 2" in Guarantee(ITEM_POSITION, Fraction(2), personal=True).explain()
    assert "except with probability 1e-06" in Guarantee(ITEM_POSITION, Fraction(1), Fraction(1, 10**6)).explain()
    assert "epsilon 0.3334" in Guarantee(ITEM_POSITION, Fraction(1, 3)).explain()


@pytest.mark.slow
@given(
    EPSILONS,
    st.fractions(min_value=0, max_value=Fraction(1, 2)),
    st.one_of(st.none(), EPSILONS, st.floats(1e-9, 1e6)),
    st.booleans(),
    st.integers(1, 50),
    st.booleans(),
    st.booleans(),
    st.sampled_from([ITEM_POSITION, WHOLE_RANKING, "one comparison"]),
)
def test_to_dict_and_back_through_json(epsilon, delta, whole, local, releases, personal, public, protects):
    guarantee = Guarantee(protects, epsilon, delta, local, whole, releases, personal, public)
    data = json.loads(json.dumps(guarantee.to_dict()))
    assert Guarantee.from_dict(data) == guarantee
    assert data["explanation"] == guarantee.explain()
    assert numbers(data["epsilon"])


@pytest.mark.parametrize(
    "broken", [{"epsilon": None}, {"epsilon": "x"}, {"epsilon": "-1"}, {"epsilon": "1/0"}, {"delta": "2"}]
)
def test_a_broken_sidecar_is_refused(broken):
    data = Guarantee(ITEM_POSITION, Fraction(1)).to_dict()
    with pytest.raises(InputError, match="must"):
        Guarantee.from_dict({**data, **broken})
    with pytest.raises(InputError, match="must"):
        Guarantee.from_dict({key: value for key, value in data.items() if key != "protects"})


# -- scores: no epsilon, Rényi curves, idealized noise ---------------------------------------------------------------


def test_epsilon_zero_goes_with_delta_only():
    ball = Guarantee(ONE_SCORE, Fraction(0), Fraction(1, 100), local=False)
    text = ball.explain()
    assert "nobody learns anything about it (epsilon 0), except with probability at most 0.01" in text
    assert "rule some of its values out with certainty" in text
    assert "factor" not in text
    assert Guarantee.from_dict(json.loads(json.dumps(ball.to_dict()))) == ball
    together = ball.compose(Guarantee(ONE_SCORE, Fraction(1), local=False))
    assert (together.epsilon, together.delta) == (1, Fraction(1, 100))
    with pytest.raises(InputError, match="epsilon must be a finite number above 0, got 0"):
        Guarantee(ONE_SCORE, Fraction(0))


def test_an_idealized_guarantee_says_so_and_stays_so():
    ideal = Guarantee(ONE_SCORE, Fraction(1), local=False, idealized=True)
    plain = Guarantee(ONE_SCORE, Fraction(1), local=False)
    assert "Idealized: the noise was drawn with floating-point numbers" in ideal.explain()
    assert "dealized" not in plain.explain()
    assert plain.compose(ideal).idealized
    assert ideal.compose(plain).idealized
    assert Guarantee.from_dict(ideal.to_dict()).idealized


def test_renyi_curves_add_up_at_common_orders():
    first = Guarantee(ONE_SCORE, Fraction(1), local=False, renyi=((2.0, 0.1), (4.0, 0.3)))
    second = Guarantee(ONE_SCORE, Fraction(1), local=False, renyi=((4.0, 0.2), (8.0, 0.5)))
    ((order, total),) = first.compose(second).renyi
    assert order == 4
    assert Fraction(0.3) + Fraction(0.2) <= Fraction(total) < Fraction(0.5) + Fraction(1, 10**9)
    assert first.compose(Guarantee(ONE_SCORE, Fraction(1), local=False)).renyi == ()
    assert Guarantee.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    older = {key: value for key, value in first.to_dict().items() if key not in ("renyi", "idealized")}
    assert Guarantee.from_dict(older).renyi == ()
    with pytest.raises(InputError, match="must"):
        Guarantee.from_dict({**first.to_dict(), "renyi": [[2.0]]})


# -- what is not protected ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protects", "words"),
    [
        ("one comparison", ["A person with k votes is protected less", "up to k times this epsilon"]),
        (
            "one comparison's outcome",
            ["up to k times this epsilon", "Who was compared with whom, and how often, is NOT"],
        ),
        (
            "one voter",
            ["A person who votes under several names is protected less."],
        ),
        ("one ballot", ["that a person voted at all, is NOT", "several ballots is protected less"]),
    ],
)
def test_a_guarantee_for_votes_says_what_it_does_not_protect(protects, words):
    guarantee = Guarantee(protects, Fraction(1), local=False)
    for said in (guarantee.explain(), " ".join(guarantee.limits), " ".join(guarantee.to_dict()["limits"])):
        for word in words:
            assert word in said
    assert "hardly" not in guarantee.explain()
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


@pytest.mark.parametrize(
    "protects", [ITEM_POSITION, ONE_SCORE, "one comparison", "one voter with at most 2 comparisons"]
)
def test_a_large_epsilon_protects_hardly_at_all(protects):
    sentence = "An epsilon of 10 or more offers almost no protection."
    assert sentence in Guarantee(protects, Fraction(10)).explain()
    assert sentence in Guarantee(protects, Fraction(4)).times(3).limits
    assert sentence not in Guarantee(protects, Fraction(999, 100)).explain()
