"""Runoffs against a count written out ballot by ballot, and what one ballot can add to a round."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.data.ballots import SHARES, Ballots
from rankdp.rankers import runoff

pytestmark = pytest.mark.slow


def scottish_by_hand(ballots: list[list[int]], m: int, seats: int):
    """Elected, and the votes of each round, in fractions and ballot by ballot, after the Order of 2011."""
    value = [Fraction(1)] * len(ballots)
    holder = [ballot[0] if ballot else None for ballot in ballots]
    continuing, elected, waiting, rounds = set(range(m)), [], {}, []
    quota = sum(one is not None for one in holder) // (seats + 1) + 1

    def votes(item):
        return sum((worth for worth, one in zip(value, holder, strict=True) if one == item), Fraction(0))

    def last_first(item):
        return [rounds[at].get(item, 0) for at in range(len(rounds) - 1, -1, -1)]

    def hand_on(item):
        for row, ballot in enumerate(ballots):
            if holder[row] == item:
                holder[row] = next((one for one in ballot if one in continuing), None)

    while len(elected) < seats < len(elected) + len(continuing):
        rounds.append({item: votes(item) for item in continuing})
        order = sorted(continuing, key=lambda item: (last_first(item), -item), reverse=True)
        for item in [one for one in order if rounds[-1][one] >= quota][: seats - len(elected)]:
            elected.append(item)
            continuing.discard(item)
            if rounds[-1][item] > quota:
                waiting[item] = rounds[-1][item]
        if not len(elected) < seats < len(elected) + len(continuing):
            break
        if waiting:
            item = max(waiting, key=lambda one: waiting[one])
            total = waiting.pop(item)
            for row in range(len(ballots)):
                if holder[row] == item:
                    value[row] = Fraction(int((total - quota) * value[row] / total * 10**5), 10**5)
            hand_on(item)
        else:
            out = [one for one in order if one in continuing][-1]
            continuing.discard(out)
            hand_on(out)
    left = sorted(continuing, key=lambda item: (last_first(item), -item), reverse=True)
    return [*elected, *left][:seats], rounds


def by_hand(ballots: list[list[int]], m: int, seats: int, quota: bool):
    """Elected, put out and the tallies of each round, one ballot after the other."""
    worth = [SHARES] * len(ballots)
    standing, elected, out, rounds, needed = set(range(m)), [], [], [], None
    while len(elected) < seats and len(standing) > seats - len(elected):
        choice = [next((item for item in ballot if item in standing), None) for ballot in ballots]
        tally = {item: sum(w for w, c in zip(worth, choice, strict=True) if c == item) for item in standing}
        rounds.append(tally)
        if quota and needed is None:
            needed = (sum(tally.values()) // SHARES // (seats + 1) + 1) * SHARES
        order = sorted(standing, key=lambda item: ([before[item] for before in rounds[::-1]], -item))
        winners = [item for item in order[::-1] if quota and tally[item] >= needed][: seats - len(elected)]
        for item in winners:
            for row, held in enumerate(choice):
                if held == item:
                    worth[row] = worth[row] * (tally[item] - needed) // tally[item]
        if winners:
            elected += winners
            standing -= set(winners)
        else:
            out.append(order[0])
            standing.remove(order[0])
    left = sorted(standing, key=lambda item: ([before[item] for before in rounds[::-1]], -item), reverse=True)
    return [*elected, *left[: seats - len(elected)]], out, rounds


@st.composite
def elections(draw):
    m = draw(st.integers(2, 6))
    orders = draw(st.lists(st.permutations(range(m)), min_size=1, max_size=12))
    return m, [order[: draw(st.integers(1, m))] for order in orders]


@given(election=elections(), data=st.data(), quota=st.booleans())
def test_runoffs_count_as_by_hand(election, data, quota):
    m, orders = election
    names = [str(item) for item in range(m)]
    seats = data.draw(st.integers(1, m - 1)) if quota else 1
    cast = Ballots.from_orders([[names[item] for item in order] for order in orders], items=names)
    counted = runoff.run(m, runoff.Piles(cast).count, seats=seats, method="gregory" if quota else None)
    elected, out, rounds = by_hand(orders, m, seats, quota)
    assert list(counted.elected) == elected
    for held in counted.rounds[:1]:
        assert held.exhausted == 0
    assert [item.eliminated for item in counted.rounds if item.eliminated is not None] == out
    for ours, theirs in zip(counted.rounds, rounds, strict=True):
        assert {item: int(ours.tallies[item]) for item in np.flatnonzero(ours.standing)} == theirs
    assert sorted(counted.order) == list(range(m))


@given(election=elections(), data=st.data())
def test_the_scottish_rule_counts_as_by_hand(election, data):
    m, orders = election
    names = [str(item) for item in range(m)]
    seats = data.draw(st.integers(1, m - 1))
    cast = Ballots.from_orders([[names[item] for item in order] for order in orders], items=names)
    piles = runoff.Piles(cast, runoff.METHODS["scottish"])
    counted = runoff.run(m, piles.count, seats=seats, method="scottish", cast=cast.count)
    elected, rounds = scottish_by_hand(orders, m, seats)
    assert list(counted.elected) == elected
    for ours, theirs in zip(counted.rounds, rounds, strict=True):
        assert {item: Fraction(int(ours.tallies[item]), 10**5) for item in np.flatnonzero(ours.standing)} == theirs


def test_wards_count_as_by_hand(data_directory):
    paths = sorted((data_directory / "scottish_stv").glob("*.blt"))
    if not paths:
        pytest.skip("no Scottish wards here")
    for path in paths[::12]:
        cast, seats = Ballots.read(path), int(path.read_text("utf-8-sig").split()[1])
        each = np.repeat(cast.orders, cast.weights, axis=0).tolist()
        counted = runoff.run(len(cast.items), runoff.Piles(cast, 10**5).count, seats=seats, method="scottish")
        orders = [[item for item in one if item >= 0] for one in each]
        elected, rounds = scottish_by_hand(orders, len(cast.items), seats)
        assert list(counted.elected) == elected, path.name
        for ours, theirs in zip(counted.rounds, rounds, strict=True):
            assert {item: Fraction(int(ours.tallies[item]), 10**5) for item in np.flatnonzero(ours.standing)} == theirs


def test_a_majority_ends_an_instant_runoff():
    cast = Ballots.from_orders([["a"], ["b", "a"], ["c", "b"]], items=list("abc"), weights=[6, 3, 2])
    assert len(runoff.run(3, runoff.Piles(cast).count, until="majority").rounds) == 1
    counted = runoff.run(3, runoff.Piles(cast).count)
    assert [held.exhausted // SHARES for held in counted.rounds] == [0, 0]
    assert (len(counted.rounds), counted.order[0]) == (2, 0)


@given(m=st.integers(2, 8), data=st.data(), method=st.sampled_from([None, "gregory", "scottish"]))
def test_there_are_at_most_m_minus_1_rounds_whatever_the_tallies(m, data, method):
    seats = data.draw(st.integers(1, m - 1)) if method else 1

    def count(standing, transfers, held):
        assert not (standing & held).any()
        assert all(0 <= value < 1 for value in transfers.values())
        return np.array(data.draw(st.lists(st.integers(-3 * SHARES, 9 * SHARES), min_size=m + 1, max_size=m + 1)))

    counted = runoff.run(m, count, seats=seats, method=method, cast=data.draw(st.sampled_from([None, 20])))
    assert len(counted.rounds) <= m - 1
    assert len(counted.elected) == seats


def test_tied_candidates_share_a_ballot_and_nothing_is_lost_on_the_way(tmp_path):
    path = tmp_path / "x.toi"
    names = "".join(f"# ALTERNATIVE NAME {item}: {item}\n" for item in (1, 2, 3, 4))
    path.write_text(names + "4: {1,2},3\n1: 3\n")
    piles = runoff.Piles(Ballots.read(path))
    everyone = np.ones(4, np.bool_)
    assert (piles.count(everyone, {}) / SHARES).tolist() == [2, 2, 1, 0, 0]
    without_first = np.array([False, True, True, True])
    assert (piles.count(without_first, {0: Fraction(1, 2)}) / SHARES).tolist() == [0, 3, 1, 0, 0]


@given(data=st.data(), m=st.integers(2, 5))
def test_one_ballot_adds_at_most_one_vote_to_a_round(data, m, tmp_path_factory):
    """Given any public course of the count: the premise of the proof in ``mechanisms.ballots.rounds``."""
    order = data.draw(st.permutations(range(1, m + 1)))[: data.draw(st.integers(1, m))]
    groups, start = [], 0
    while start < len(order):
        size = data.draw(st.integers(1, len(order) - start))
        groups.append("{" + ",".join(map(str, order[start : start + size])) + "}")
        start += size
    path = tmp_path_factory.mktemp("one") / "x.toi"
    names = "".join(f"# ALTERNATIVE NAME {item}: {item}\n" for item in range(1, m + 1))
    path.write_text(f"{names}1: {','.join(groups)}\n")
    unit = data.draw(st.sampled_from(list(runoff.METHODS.values())))
    piles, standing, transfers = runoff.Piles(Ballots.read(path), unit), np.ones(m, np.bool_), {}
    held = np.zeros(m, np.bool_)
    while standing.any():
        tallies = piles.count(standing, transfers, held)
        assert tallies.min() >= 0
        assert tallies.sum() <= unit
        gone = data.draw(st.lists(st.sampled_from(np.flatnonzero(standing).tolist()), min_size=1, unique=True))
        way = data.draw(st.sampled_from(["out", "elected", "waiting"]))
        moving = [item for item in np.flatnonzero(held).tolist() if data.draw(st.booleans())]
        moving += gone if way == "elected" else []
        transfers = {item: data.draw(st.fractions(0, 1)) for item in moving}
        standing[gone] = False
        held[gone] = way == "waiting"
        held[moving] = False


def test_dublin_north_elects_the_four_that_it_elected(data_directory):
    cast = Ballots.read(data_directory / "preflib_irish2002" / "dublin_north_2002.csv")
    counted = runoff.run(12, runoff.Piles(cast).count, seats=4, method="gregory")
    assert counted.quota == 8789
    assert [cast.items[item] for item in counted.elected] == [
        "Trevor Sargent G.P.",
        "Sean Ryan Lab",
        "Jim Glennon F.F.",
        "G.V. Wright F.F.",
    ]


@pytest.mark.parametrize(("cast", "quota"), [(110, 34), (None, 27)])
def test_the_quota_is_of_the_ballots_that_are_not_exhausted_or_of_the_first_tallies(cast, quota):
    tallies = np.array([20, 30, 29, 10]) * SHARES
    counted = runoff.run(3, lambda *_: tallies, seats=2, method="gregory", cast=cast)
    assert counted.quota == quota


@pytest.mark.long
def test_scottish_wards_as_votekit_counts_them(data_directory):
    """The seats of every ward, all surpluses of a round together, against VoteKit, where that is installed.

    It is not in the lock: it needs an older Numba.
    """
    votekit = pytest.importorskip("votekit.elections")
    paths = sorted((data_directory / "scottish_stv").glob("*.blt"))
    if not paths:
        pytest.skip("no Scottish wards here")
    for path in paths:
        cast, seats = Ballots.read(path), int(path.read_text("utf-8-sig").split()[1])
        counted = runoff.run(len(cast.items), runoff.Piles(cast).count, seats=seats, method="gregory")
        theirs = votekit.STV(cast.to_votekit(), n_seats=seats, simultaneous=True, tiebreak="lex").get_elected()
        assert {cast.items[item] for item in counted.elected} == {name for group in theirs for name in group}, path.name
