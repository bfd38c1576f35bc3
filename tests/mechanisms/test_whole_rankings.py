"""Mechanisms at an epsilon for the whole ranking: never above it, closed forms exactly, and the ball the best."""

from fractions import Fraction

import pytest

from rankdp.audit import audit_exact, audit_mechanism
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms import MECHANISMS, candidates, describe, mechanism, registry
from rankdp.mechanisms.registry import respondents_for_one
from rankdp.privacy.bits import SeededBits

CLOSE = 1 - Fraction(1, 1 << 16)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MECHANISMS))
@pytest.mark.parametrize(("items", "epsilon"), [(2, "1"), (4, "1/3"), (5, "4"), (6, "12"), (40, "2"), (70, "1")])
def test_the_whole_ranking_has_the_epsilon_that_was_asked_for(name, items, epsilon):
    if not MECHANISMS[name].serves(items) or (name, items) == ("optimal", 6):
        pytest.skip("too long for it")
    built, asked = mechanism(name, items, epsilon, protect="ranking"), Fraction(epsilon)
    assert type(built).name == name
    least = asked * (CLOSE if name != "optimal" else Fraction(1, 2))  # the solution of its linear programme jumps
    assert least <= Fraction(built.local_epsilon()) <= asked
    if items < 6:
        assert audit_exact(built, claimed_epsilon=asked, protect="ranking", draws=0).holds


@pytest.mark.slow
@pytest.mark.parametrize("purpose", ["aggregate", "order", "top"])
@pytest.mark.parametrize(("items", "epsilon"), [(2, 1), (6, 4), (12, "1/2"), (61, 2)])
def test_every_candidate_for_every_purpose_keeps_the_promise(purpose, items, epsilon):
    top = 2 if purpose == "top" else None
    for one in candidates(items, epsilon, purpose=purpose, top=top, protect="ranking"):
        assert Fraction(one.local_epsilon()) <= Fraction(epsilon), one.name
    chosen = mechanism("auto", items, epsilon, purpose=purpose, top=top, protect="ranking")
    assert Fraction(chosen.local_epsilon()) <= Fraction(epsilon)


def test_a_choice_that_breaks_the_promise_is_never_handed_out(monkeypatch):
    monkeypatch.setattr(registry, "_protecting", lambda name, items, epsilon, *_: MECHANISMS[name](items, epsilon))
    with pytest.raises(Unsupported, match="kendall keeps an epsilon of 4 for one ranking, not 2"):
        mechanism("kendall", 4, 2, protect="ranking")


def test_closed_forms_are_exact():
    asked = Fraction(7, 3)
    for name, own in (("kendall", 2 * asked / 9), ("ulam", asked / 8), ("kendall-ball", asked)):
        built = mechanism(name, 9, asked, protect="ranking")
        assert built.epsilon == own
        assert built.local_epsilon() == asked


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), [(3, 1), (5, 4), (8, 2), (20, 4)])
def test_nothing_keeps_more_pairs_than_the_ball(items, epsilon):
    best, *others = candidates(items, epsilon, purpose="order", protect="ranking")
    assert type(best).name == "kendall-ball"
    assert all(other.expected_concordance() < best.expected_concordance() for other in others)


@pytest.mark.parametrize(("items", "cost"), [(8, 3.6), (10, 4.5)])
def test_answers_that_are_worth_a_true_one(items, cost):
    """The whole answer at epsilon 4 is cheaper for mean ranks than one position at epsilon 2."""
    chosen = mechanism("auto", items, 4, protect="ranking")
    assert type(chosen).name == "kendall-ball"
    assert respondents_for_one(chosen, "ranking") == pytest.approx(cost, abs=0.05)
    assert f"{items} items, epsilon 4 for the whole ranking" in describe(chosen, protect="ranking")
    for name in ("ulam", "reinsertion"):
        assert respondents_for_one(mechanism(name, items, 2), "ranking") > cost


def test_the_audit_of_whole_rankings_finds_what_neighbours_do_not_show():
    kendall = mechanism("kendall", 4, 1)
    assert audit_exact(kendall, draws=0).holds
    assert not audit_exact(kendall, claimed_epsilon=1, protect="ranking", draws=0).holds
    assert audit_exact(kendall, protect="ranking", draws=0).claimed == 2
    found = audit_mechanism(kendall, claimed_epsilon="0.5", protect="ranking", exact=False, bits=SeededBits(3))
    assert not found.holds


def test_unknown_words_are_refused_with_the_list():
    with pytest.raises(InputError, match=r"protect must be one of position, ranking, got 'answer'"):
        mechanism("auto", 5, 1, protect="answer")
    with pytest.raises(InputError, match="protect must be"):
        audit_exact(mechanism("kendall", 3, 1), protect="voter")
