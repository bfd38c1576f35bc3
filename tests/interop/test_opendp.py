"""OpenDP: measurements compose in a context, the map is the promise, and what is wrong is refused."""

import itertools
import math

import numpy as np
import pytest

import rankdp
from rankdp.errors import InputError
from rankdp.interop import opendp
from rankdp.mechanisms import mechanism
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger

dp = pytest.importorskip("opendp.prelude")
ITEMS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


def ballots(*orders):
    return rankdp.Ballots.from_orders([list(order) for order in orders], ITEMS)


def test_two_elections_in_a_context():
    """A context of epsilon 3 for one ballot: 2 and 1 fit, nothing else does."""
    one, two = (opendp.make_elect(ITEMS, epsilon, rule=rule) for epsilon, rule in ((2, "borda"), (1, "condorcet")))
    context = dp.Context.compositor(
        data=ballots("abc", "abc", "cab", "bac"),
        privacy_unit=(opendp.unit_distance("ballot"), 1),
        privacy_loss=dp.loss_of(epsilon=3.001),
        split_by_weights=[2, 1],
        domain=one.input_domain,
    )
    assert set(context(one).value.items) == set(ITEMS)
    assert context(two).value.rule == "condorcet"
    with pytest.raises(Exception, match="out of queries"):
        context(two)


def test_a_unit_does_not_compose_with_another():
    context = dp.Context.compositor(
        data=ballots("abc", "cab"),
        privacy_unit=(opendp.unit_distance("voter"), 1),
        privacy_loss=dp.loss_of(epsilon=9.0),
        split_evenly_over=1,
        domain=opendp.make_elect(ITEMS, 1, rule="borda", protect="voter").input_domain,
    )
    with pytest.raises(Exception, match=r"(?i)metric"):
        context(opendp.make_elect(ITEMS, 1, rule="borda", protect="ballot"))


def test_the_map_is_group_privacy_rounded_up():
    pure = opendp.make_elect(ITEMS, "0.1", rule="borda")
    assert [pure.map(d) for d in (0, 1, 3)] == pytest.approx([0, 0.1, 0.3])
    assert pure.map(3) >= 3 * 0.1
    approximate = opendp.make_elect(ITEMS, 1, rule="borda", delta="1e-6")
    epsilon, delta = approximate.map(2)
    assert epsilon == pytest.approx(2)
    assert delta == pytest.approx(1e-6 * (1 + math.e))
    with pytest.raises(Exception, match="changes must be an integer"):
        pure.map(0.5)


def test_privatized_rankings_keep_the_map_exactly():
    """Over all pairs of rankings: log-ratios are at most the map of the number of moved items."""
    measured = opendp.make_privatize(ITEMS, 1, mechanism="kendall")
    held = rankdp.Rankings.from_orders([["a", "b", "c"], ["c", "a", "b"]], ITEMS)
    assert measured(held).value.orders.shape == (2, 3)
    law, every = mechanism("kendall", 3, 1), [np.array([order]) for order in itertools.permutations(range(3))]
    for one, other in itertools.permutations(every, 2):
        moved = 3 - longest_common(one[0].tolist(), other[0].tolist())
        ratio = max(float((law.log_prob(out, one) - law.log_prob(out, other))[0]) for out in every)
        assert ratio <= measured.map(moved) + 1e-9


def test_whole_rankings_and_lists():
    held = rankdp.Rankings.from_orders([["a", "b", "c"], ["c", "a", "b"]], ITEMS)
    context = dp.Context.compositor(
        data=held,
        privacy_unit=(opendp.unit_distance("ranking"), 1),
        privacy_loss=dp.loss_of(epsilon=3.001),
        split_by_weights=[1, 2],
        domain=opendp.make_privatize(ITEMS, 1, protect="ranking").input_domain,
    )
    assert context(opendp.make_privatize(ITEMS, 1, protect="ranking", top=1)).value.orders.shape == (2, 1)
    with pytest.raises(Exception, match=r"(?i)metric"):
        context(opendp.make_privatize(ITEMS, 1))
    assert context(opendp.make_privatize(ITEMS, 2, protect="ranking")).value.orders.shape == (2, 3)


def longest_common(one, other):
    places = [other.index(item) for item in one]
    return max(
        len(chosen)
        for size in range(1, 4)
        for chosen in itertools.combinations(places, size)
        if list(chosen) == sorted(chosen)
    )


def test_leaderboards():
    votes = rankdp.Comparisons.from_pairs(["a"] * 40 + ["b"] * 20, ["b"] * 30 + ["c"] * 30, items=ITEMS)
    board = opendp.make_rank(ITEMS, 1, protect="comparison")(votes).value
    assert set(board.items) == set(ITEMS)


def test_a_weaker_release_and_other_items_are_refused():
    def weaker(data):
        return rankdp.elect(data, 2, rule="borda")

    promised = Guarantee("one ballot", rankdp.elect(ballots("abc"), 1, rule="borda").guarantee.epsilon, local=False)
    measured = opendp.make_measurement(weaker, promised, "ballots", rankdp.Ballots, ITEMS)
    with pytest.raises(Exception, match="must promise what the measurement does"):
        measured(ballots("abc"))
    rehearsed = opendp.make_elect(ITEMS, 1, rule="borda", bits=SeededBits(1))
    with pytest.raises(Exception, match="must promise what the measurement does"):
        rehearsed(ballots("abc"))
    fair = opendp.make_elect(("a", "b", "z"), 1, rule="borda")
    with pytest.raises(Exception, match=r"data must be ballots of the items a, b, z|member"):
        fair(ballots("abc"))


def test_a_ledger_pays_for_opendp(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "vote", "ballot", 3, "1e-5")
    mean = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(float)) >> dp.m.then_laplace(2.0)
    assert opendp.spend(ledger, mean, "a mean", protect="ballot", changes=1.0).charged[0].epsilon == 0.5
    gaussian = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(float)) >> dp.m.then_gaussian(10.0)
    entry = opendp.spend(ledger, gaussian, "another", protect="ballot", changes=1.0, delta="1e-6")
    assert entry.guarantee.rho == pytest.approx(0.005)
    assert entry.guarantee.epsilon == pytest.approx(0.005 + 2 * math.sqrt(0.005 * math.log(1e6)))
    with pytest.raises(InputError, match="delta must be"):
        opendp.spend(ledger, gaussian, "another", protect="ballot", changes=1.0)
    with pytest.raises(rankdp.BudgetExceeded):
        opendp.spend(ledger, mean, "too much", protect="ballot", changes=9.0)


def test_a_replaced_row_is_two_changes_where_rows_are_added_and_removed(tmp_path):
    counted = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    count = counted >> dp.m.then_laplace(1.0)
    ledger = Ledger.create(tmp_path / "ballots.db", "vote", "ballot", 9)
    with pytest.raises(InputError, match="changes must be at least 2, because one ballot is replaced"):
        opendp.spend(ledger, count, "how many", protect="ballot")
    assert opendp.spend(ledger, count, "how many", protect="ballot", changes=2).charged[0].epsilon == 2
    voters = Ledger.create(tmp_path / "voters.db", "vote", "voter", 9)
    assert opendp.spend(voters, count, "how many", protect="voter").charged[0].epsilon == 1
    votes = Ledger.create(tmp_path / "votes.db", "vote", "comparison", 9).using(convert=True)
    with pytest.raises(InputError, match="changes must be at least 2, because one comparison is replaced"):
        opendp.spend(votes, count, "how many", protect="voter")
