"""privatize(protect="ranking", top=k): lists whose items are secret, their sidecar, and their aggregate."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.errors import InputError, Unsupported
from rankdp.privacy.answers import AnswerStore
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import WHOLE_RANKING

ITEMS = [f"film {number}" for number in range(12)]


def favourites(rows=6000, length=4):
    rng = np.random.default_rng(8)
    strengths = np.linspace(2, -2, len(ITEMS))
    return np.argsort(-(strengths + rng.gumbel(size=(rows, len(ITEMS)))), axis=1)[:, :length].astype(np.int32)


def lists(rows=6000, length=4):
    return rankdp.Rankings.from_orders(favourites(rows, length), ITEMS)


def test_lists_are_released_with_a_promise_about_the_whole_ranking():
    release = rankdp.privatize(lists(), 4, protect="ranking", top=3)
    assert release.value.orders.shape == (6000, 3)
    assert (release.guarantee.protects, release.guarantee.epsilon) == (WHOLE_RANKING, 4)
    assert not release.guarantee.listed_items_public
    assert release.provenance.mechanism == "top-ball"
    assert release.provenance.parameters["lists"] == {"length": 3, "items": ITEMS}


def test_unlisted_items_count_and_the_noise_is_undone():
    truth = favourites(length=3)
    listed = (truth[:, :, None] == np.arange(12)).any(axis=1)
    places = np.where(listed, (truth[:, :, None] == np.arange(12)).argmax(axis=1) + 1, (4 + 12) / 2)
    release = rankdp.privatize(lists(length=3), 5, protect="ranking", top=3, bits=SeededBits(4))
    found = rankdp.aggregate(release)
    for estimate, true in ((found.in_top(3), listed.mean(axis=0)), (found.mean_ranks, places.mean(axis=0))):
        assert estimate.unbiased
        errors = (estimate.values - true) / estimate.standard_errors
        assert np.abs(errors).max() < 4
        assert np.abs(estimate.naive - true).max() > 5 * estimate.standard_errors.max()  # counting is biased
    assert found.order()[:2] == ("film 0", "film 1")


def test_a_file_its_sidecar_and_its_aggregate(tmp_path):
    source, target = tmp_path / "films.csv", tmp_path / "private.csv"
    lists().write(source)
    (tmp_path / "films.txt").write_text("\n".join(ITEMS))
    command = ["privatize", source, target, "--epsilon", 4, "--protect", "ranking", "--top", 3]
    run = CliRunner().invoke(cli, [*map(str, command), "--items", str(tmp_path / "films.txt")])
    assert run.exit_code == 0, run.output
    assert "of the items of a list" in " ".join(run.output.split())
    assert target.read_text().splitlines()[0] == "rank_1,rank_2,rank_3"
    sidecar = json.loads((tmp_path / "private.csv.release.json").read_text())
    assert sidecar["parameters"]["choices"][0]["items"] == 12
    found = rankdp.aggregate_file(target)
    assert (found.voters, found.items) == (6000, tuple(ITEMS))
    shown = CliRunner().invoke(cli, ["aggregate", str(target)])
    assert shown.exit_code == 0, shown.output
    assert "Among the first 3" in shown.output
    assert f"{found.in_top(3).values[found.items.index('film 4')]:.1%}" in shown.output
    assert "share the average of the places that are left, 8." in shown.output


def test_a_list_of_items_must_not_come_from_the_secret_lists(tmp_path):
    source = tmp_path / "films.csv"
    lists().write(source)
    run = CliRunner().invoke(
        cli, ["privatize", str(source), str(tmp_path / "out.csv"), "-e", "4", "--protect", "ranking", "--top", "3"]
    )
    assert run.exit_code == 1
    assert "must name all items that could be listed" in str(run.exception)
    assert list(tmp_path.iterdir()) == [source]
    rows = [[ITEMS[item] for item in row] for row in favourites(50)]
    with pytest.raises(InputError, match="items must name all items"):
        rankdp.privatize(rankdp.Rankings.from_orders(rows), 4, protect="ranking", top=3)


def test_one_row_that_lists_another_item_changes_nothing_but_its_own_draw(tmp_path):
    """The raw-row check: the mechanism, the promise and the charge of a file do not depend on what one row lists."""
    found = []
    for change in (0, 11):
        orders = favourites(40)
        orders[7] = [change, 5, 6, 7]
        source, target = tmp_path / f"{change}.csv", tmp_path / f"{change}-private.csv"
        rankdp.Rankings.from_orders(orders, ITEMS).write(source)
        release = rankdp.privatize_file(source, target, 2, protect="ranking", top=4, items=ITEMS, bits=SeededBits(5))
        facts = {**release.provenance.parameters}
        found.append((facts, [row for number, row in enumerate(target.read_text().splitlines()) if number != 8]))
    assert found[0] == found[1]


def test_own_epsilons_and_longer_rankings():
    epsilons = [2, 4] * 100
    release = rankdp.privatize(lists(200), epsilons, protect="ranking", top=2)
    assert release.guarantee.personal
    assert {choice["mechanism"].rsplit("-", 1)[0] for choice in release.provenance.parameters["choices"]} == {
        "top-ball-2"
    }
    assert rankdp.aggregate(release).mean_ranks.values.shape == (12,)


def test_what_is_refused(tmp_path):
    with pytest.raises(InputError, match="top=5 needs 5 items or more in every ranking, got one that lists 4"):
        rankdp.privatize(lists(20), 4, protect="ranking", top=5)
    with pytest.raises(InputError, match="top needs purpose='top', or protect='ranking'"):
        rankdp.privatize(lists(20), 4, top=3)
    store = AnswerStore(tmp_path / "answers.db")
    voters = rankdp.Rankings.from_orders(favourites(20), ITEMS, voters=range(20))
    with pytest.raises(Unsupported, match="answers keep whole rankings"):
        rankdp.privatize(voters, 4, protect="ranking", top=3, answers=store)
