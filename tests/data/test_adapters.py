"""Profiles of other libraries, in and out: the real classes where installed, else stand-ins with their attributes."""

import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankdp
from rankdp.data.ballots import Ballots
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.publish.election_result import CANDIDATES_FROM_BALLOTS

NAMES = ("Ann", "Bob", "Eve", "Zoe")
TIED = [(3, [[0], [1, 2]]), (1, [[2]]), (2, [[1], [0], [2], [3]])]
"""Ballots with counts; Zoe is listed once."""
MARGINS = Ballots.from_orders([["Bob", "Ann", "Eve", "Zoe"]], items=NAMES, weights=[2]).margins()
MARGINS = MARGINS + 3 * np.array([[0, 1, 1, 1], [-1, 0, 0, 1], [-1, 0, 0, 1], [-1, -1, -1, 0]])
MARGINS = MARGINS + np.array([[0, 0, -1, 0], [0, 0, -1, 0], [1, 1, 0, 1], [0, 0, -1, 0]])


@dataclass
class Ballot:
    ranking: Any = None
    weight: float = 1.0


@dataclass
class RankProfile:
    ballots: tuple = ()
    candidates: tuple = ()
    max_ranking_length: int = 0


@dataclass
class Ranking:
    rmap: dict


@dataclass
class Profile:
    rankings: Any
    rcounts: Any
    cmap: dict
    candidates: Any = None

    def __post_init__(self):
        self.candidates = list(self.cmap)

    @property
    def rankings_counts(self):
        return self.rankings, self.rcounts


@dataclass
class OrdinalInstance:
    orders: list
    multiplicity: dict
    alternatives_name: dict = field(default_factory=dict)


def votekit():
    ranked = [tuple(frozenset(NAMES[item] for item in group) for group in groups) for _, groups in TIED]
    ranked[1] = (frozenset("~"), *ranked[1])  # a place left blank
    ballots = [Ballot(ranking, float(count)) for (count, _), ranking in zip(TIED, ranked, strict=True)]
    return RankProfile((*ballots, Ballot(None, 5.0)), NAMES, 4)


def pref_voting():
    rankings = [Ranking({item: rank for rank, group in enumerate(groups, 2) for item in group}) for _, groups in TIED]
    return Profile(rankings, [count for count, _ in TIED], dict(enumerate(NAMES)))


def preflib():
    orders = [tuple(map(tuple, groups)) for _, groups in TIED]
    counts = {order: count for (count, _), order in zip(TIED, orders, strict=True)}
    return OrdinalInstance(orders, counts, dict(enumerate(NAMES)))


@pytest.mark.parametrize("profile", [votekit, pref_voting, preflib])
def test_profiles_are_ballots_and_rankings(profile):
    ballots = Ballots.of(profile())
    blank = 5 if profile is votekit else 0  # a ballot that ranks nobody is a ballot, and no ranking
    found = profile is not preflib  # whose list is in the header of a file
    assert (ballots.items, ballots.count, ballots.items_from_data) == (NAMES, 6 + blank, found)
    assert (ballots.margins() == MARGINS).all()
    with pytest.raises(InputError, match="are tied"):
        Rankings.of(profile())
    rankings = Rankings.of(profile(), ties="keep")
    assert (len(rankings), rankings.items, rankings.items_from_data) == (6, NAMES, found)
    assert (Ballots.of(rankings).margins() == MARGINS).all()
    turned = Ballots.of(profile(), items=NAMES[::-1])
    assert (turned.items, turned.margins().tolist()) == (NAMES[::-1], MARGINS[::-1, ::-1].tolist())
    assert not turned.items_from_data
    with pytest.raises(InputError, match="'Zoe' is not one of the 3 items given"):
        Ballots.of(profile(), items=NAMES[:3])
    with pytest.raises(InputError, match="weight_column cannot be given"):
        Ballots.of(profile(), weight_column="x")


@pytest.mark.parametrize("first", [("Zoe", "Ann", "Bob"), ("Bob", "Zoe", "Ann")])
def test_candidates_that_votekit_finds_do_not_show_the_first_ballot(first):
    """Without a list of candidates VoteKit takes the ones on the ballots, in the order in which it meets them."""
    ballots = tuple(Ballot(tuple(frozenset([name]) for name in order)) for order in (first, ("Ann", "Bob", "Zoe")))
    profile = RankProfile(ballots, first, 3)
    released = rankdp.privatize(profile, 1, seed=1).value
    assert released.items == ("Ann", "Bob", "Zoe")
    assert CANDIDATES_FROM_BALLOTS in rankdp.elect(profile, 1, rule="borda", seed=1).value.warnings
    assert not rankdp.elect(profile, 1, rule="borda", seed=1, items=["Zoe", "Ann", "Bob"]).value.warnings


def test_a_ballot_that_ranks_nobody_does_not_change_the_public_number_of_ballots():
    """Else one replaced ballot would be seen, where the number of ballots is public."""
    one, nobody, left_blank = (frozenset("a"),), None, (frozenset("~"), frozenset("~"))
    counts = [Ballots.of(RankProfile((Ballot(one, 2.0), Ballot(said)), ("a", "b"), 2)).count for said in (one, nobody)]
    assert counts == [3, 3]
    assert Ballots.of(RankProfile((Ballot(left_blank), Ballot(nobody)), ("a", "b"), 2)).first_k(1).tolist() == [0, 0]
    unranked = Profile([Ranking({0: 1}), Ranking({0: None, 1: None})], [1, 1], {0: "x", 1: "y"})
    assert (Ballots.of(unranked).count, len(Rankings.of(unranked))) == (2, 1)


def test_linear_profiles_and_bad_counts():
    linear = Profile(np.array([[0, 1, 2], [2, 0, 1]]), np.array([3, 2]), {0: "x", 1: "y", 2: "z"})
    assert list(Rankings.of(linear)) == [("x", "y", "z")] * 3 + [("z", "x", "y")] * 2
    half = RankProfile((Ballot((frozenset("a"),), 0.5),), ("a", "b"), 2)
    with pytest.raises(InputError, match="ballot 1: it must have been cast a whole number of times, got"):
        Ballots.of(half)
    negative = Profile(np.array([[0, 1], [1, 0]]), np.array([3, -2]), {0: "x", 1: "y"})
    with pytest.raises(InputError, match="ballot 2: it must have been cast a whole number of times, got -2"):
        Ballots.of(negative)
    with pytest.raises(InputError, match="there are no ballots"):
        Ballots.of(RankProfile((), ("a", "b"), 2))


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string())])
def test_a_column_of_lists(kind):
    lists = pa.array([["b", "a"], ["c"], ["a", "b", "c"]], kind)
    table = pa.table({"voter": ["1", "2", "3"], "ranking": lists}).slice(1)
    rankings = Rankings.of(table)
    assert (list(rankings), rankings.voters.tolist()) == ([("c",), ("a", "b", "c")], ["2", "3"])
    assert Ballots.of(table.to_pandas()).count == Ballots.of(polars.from_arrow(table)).count == 2
    empty = pa.table({"ranking": pa.array([["b"], None, []], kind)})
    with pytest.raises(InputError, match="row 2: no item is listed"):
        Rankings.of(empty)
    with pytest.raises(InputError, match="rankings need the columns"):
        Rankings.of(pa.table({"voter": ["1"], "else": pa.array([["b"]], kind)}))


def test_columns_of_lists_in_files_and_on_engines(tmp_path):
    table = pa.table({"voter": ["1", "2"], "ranking": [["b", "a"], ["c"]]})
    pq.write_table(table, tmp_path / "lists.parquet", row_group_size=1)
    relation = duckdb.connect().from_arrow(table)
    for held in (tmp_path / "lists.parquet", relation, polars.from_arrow(table).lazy()):
        assert (list(Rankings.of(held)), Ballots.of(held).count) == ([("b", "a"), ("c",)], 2)
    pairs = pa.table({"ranking": pa.array([["b", "a"]], pa.list_(pa.string(), 2))})
    assert list(Rankings.of(pairs)) == [("b", "a")]
    pq.write_table(pa.table({"ranking": [["a"], ["b", "b"]]}), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=r"bad.parquet, row 2: 'b' is listed twice"):
        Rankings.of(tmp_path / "bad.parquet")


def test_ranks_in_a_frame_keep_the_names_of_its_columns():
    frame = polars.DataFrame({"tea": [1, 2], "milk": [2, 1]})
    for ranks in (frame, frame.to_pandas()):
        assert list(Rankings.from_ranks(ranks)) == [("tea", "milk"), ("milk", "tea")]


def test_ballots_become_frames_that_are_read_again():
    for ballots in (Ballots.of(votekit()), Ballots.from_orders([["a", "b"], ["b"]], weights=[2, 3])):
        again = Ballots.of(ballots.to_frame("arrow"), items=ballots.items)
        assert (again.margins() == ballots.margins()).all()
        assert again.count == ballots.count


@pytest.fixture
def libraries(monkeypatch):
    """The real libraries, or modules with stand-ins for their classes."""
    stand_ins = {
        "votekit.ballot": {"RankBallot": Ballot},
        "votekit.pref_profile": {"RankProfile": RankProfile},
        "pref_voting.profiles": {"Profile": lambda rankings, rcounts, cmap: Profile(np.array(rankings), rcounts, cmap)},
        "pref_voting.profiles_with_ties": {
            "ProfileWithTies": lambda ranks, rcounts, candidates, cmap: Profile(
                list(map(Ranking, ranks)), rcounts, cmap
            )
        },
    }
    for name, members in stand_ins.items():
        try:
            __import__(name)
        except ImportError:
            module = ModuleType(name)
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, name, module)
            monkeypatch.setitem(sys.modules, name.partition(".")[0], ModuleType(name.partition(".")[0]))


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("way", ["to_votekit", "to_pref_voting"])
def test_there_and_back(way):
    for ballots in (Ballots.of(votekit()), Ballots.from_orders([["a", "b"], ["b", "a"]], weights=[2, 3])):
        again = Ballots.of(getattr(ballots, way)())
        assert (again.items, again.count) == (ballots.items, ballots.count)
        assert (again.margins() == ballots.margins()).all()
    rankings = Rankings.from_orders([["a", "b", "c"], ["c"]])
    assert sorted(Rankings.of(getattr(rankings, way)())) == sorted(rankings)


def test_a_library_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "votekit.ballot", None)
    with pytest.raises(Unsupported, match="votekit must be installed"):
        Ballots.from_orders([["a", "b"]]).to_votekit()
