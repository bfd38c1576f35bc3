"""A list of items that was found in the rows is said to be found, on whatever way the data come to a release."""

import pickle

import pytest

import rankdp
from rankdp import Ballots, Rankings

ORDERS = [["a", "b"]] * 50 + [["secret-write-in", "a"]]
GIVEN = ["a", "b", "secret-write-in"]
WARNING = "The list of candidates was taken from the ballots: who is listed at all is not protected."


def written(rankings, path):
    rankings.write(path)
    return path


WAYS = {
    "rankings": lambda rankings, _: rankings,
    "ballots": lambda rankings, _: Ballots.of(rankings),
    "some rows": lambda rankings, _: rankings[:51],
    "rows by number": lambda rankings, _: rankings.take(range(len(rankings))),
    "no voters": lambda rankings, _: rankings.without_voters(),
    "own epsilons": lambda rankings, _: rankings.with_epsilons([1.0] * len(rankings)),
    "other orders": lambda rankings, _: rankings.with_orders(rankings.orders.copy()),
    "together": lambda rankings, _: Rankings.concatenate([rankings, rankings]),
    "pickle": lambda rankings, _: pickle.loads(pickle.dumps(rankings)),
    "arrow": lambda rankings, _: rankings.to_arrow(),
    "read arrow": lambda rankings, _: Rankings.from_frame(rankings.to_arrow()),
    "parquet": lambda rankings, directory: written(rankings, directory / "file.parquet"),
    "read parquet": lambda rankings, directory: Rankings.read(written(rankings, directory / "file.parquet")),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_found_list_of_candidates_is_said_to_be_found(way, tmp_path):
    found = rankdp.elect(WAYS[way](Rankings.from_orders(ORDERS), tmp_path), 1, protect="voter", rule="borda").value
    assert found.items == tuple(GIVEN)
    assert WARNING in found.warnings


@pytest.mark.parametrize("way", WAYS)
def test_a_given_list_needs_no_warning(way, tmp_path):
    given = Rankings.from_orders(ORDERS, GIVEN)
    assert WARNING not in rankdp.elect(WAYS[way](given, tmp_path), 1, protect="voter", rule="borda").value.warnings


def test_lists_and_files_without_a_list_are_found(tmp_path):
    Rankings.from_orders(ORDERS, GIVEN).write(tmp_path / "file.csv")
    for source in (ORDERS, tmp_path / "file.csv", Rankings.read(tmp_path / "file.csv")):
        assert WARNING in rankdp.elect(source, 1, protect="voter", rule="borda").value.warnings
    read = Rankings.read(tmp_path / "file.csv", items=GIVEN)
    assert WARNING not in rankdp.elect(read, 1, protect="voter", rule="borda").value.warnings


def test_an_item_beyond_the_list_that_a_file_carries_is_found():
    table = Rankings.from_orders([["a", "b"]] * 2, ["a", "b"]).to_arrow()
    more = table.set_column(0, "rank_1", [["a", "write-in"]]).replace_schema_metadata(table.schema.metadata)
    assert not Rankings.from_frame(table).items_from_data
    assert Rankings.from_frame(more).items_from_data
