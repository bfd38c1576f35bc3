"""The signature attack: against counting by hand, against brute force, and on public ballots."""

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankdp.attack.signature import CURATOR, signature_attack
from rankdp.cli import cli
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError


def by_hand(ballots, items, places, demanded):
    """Unique ballots and free signatures, by listing every order."""
    shown = [ballot[:places] for ballot in ballots]
    unique = sum(shown.count(ballot) == 1 for ballot in shown)

    def free(first):
        orders = [order for order in itertools.permutations(items, places) if order[: len(first)] == first]
        return sum(order not in shown for order in orders) if places > len(first) else 0

    fewest = free(tuple(demanded)) if demanded else min(free((name,)) for name in items)
    return unique, min(fewest, len(ballots))


@pytest.mark.parametrize("demanded", [(), ("c",), ("b", "d")])
@pytest.mark.parametrize("shortest", [1, 5])
def test_brute_force_agrees(demanded, shortest):
    random = np.random.default_rng(7)
    items = "abcde"
    ballots = [tuple(random.permutation(list(items))[: random.integers(shortest, 6)].tolist()) for _ in range(60)]
    attack = signature_attack(Rankings.from_orders(ballots, items=list(items)), demanded)
    assert [(row.unique, row.bound) for row in attack.shown] == [
        by_hand(ballots, items, places, demanded) for places in range(1, 6)
    ]


def test_the_truncation_that_helps_stays_below_the_limit():
    ballots = Rankings.from_orders([["a", "b", "c"], ["a", "b", "c"], ["a", "c", "b"], ["a", "b"]], items=list("abc"))
    assert [row.unique for row in signature_attack(ballots).shown] == [0, 1, 2]
    assert [signature_attack(ballots, limit=limit).safe_places for limit in (0.25, 0.26, 0.51)] == [1, 2, 3]
    single = signature_attack(ballots[3:])
    assert single.safe_places == 0
    assert "Even first preferences alone leave 1% of the ballots unique" in single.explain()


@pytest.mark.parametrize("demanded", [["x"], ["a", "a"]])
def test_unknown_and_repeated_demands_are_refused(demanded):
    with pytest.raises(InputError, match="demanded must be different items of the ballots"):
        signature_attack(Rankings.from_orders([["a", "b"]]), demanded)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "share", "safe"),
    [
        ("preflib_irish2002/dublin_north_2002.csv", 0.366, 3),
        ("preflib_debian/debian_2007_leader.csv", 0.838, 1),
        ("sushi/sushi3a_rankings.csv", 0.972, 2),
    ],
)
def test_public_ballots(data_directory, file, share, safe):
    attack = signature_attack(Rankings.read(data_directory / file))
    assert attack.shown[-1].unique / attack.voters == pytest.approx(share, abs=0.0005)
    assert attack.safe_places == safe


@pytest.mark.slow
def test_every_format_says_that_it_is_for_the_curator(tmp_path):
    source = tmp_path / "ballots.csv"
    Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]]).write(source)
    command = ["attack", "signature", str(source), "--demand", "a"]
    told = CliRunner().invoke(cli, command)
    assert told.exit_code == 0
    assert CURATOR in " ".join(told.output.split())
    for ending in ("csv", "json", "html"):
        path = tmp_path / f"signature.{ending}"
        assert CliRunner().invoke(cli, [*command, "-o", str(path)]).exit_code == 0
        assert "curator's eyes only" in path.read_text().replace("&#x27;", "'")
    assert json.loads((tmp_path / "signature.json").read_text())["shown"][2] == {"places": 3, "unique": 3, "bound": 0}
    report = signature_attack(Rankings.read(source)).report()
    assert CURATOR in report.warnings  # which stand below a picture
    assert report.figure is not None
    assert "curator's eyes only" in report.figure().axes[0].get_title()
