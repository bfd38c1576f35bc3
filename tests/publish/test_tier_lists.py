"""Tier lists: the release without the noise inside the tiers, in every format, and ties that count as ties."""

import numpy as np
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.cli import cli
from rankdp.errors import InputError
from rankdp.learn.labels import labels_of
from rankdp.privacy.bits import SeededBits

NAMES = [f"item {number}" for number in range(12)]
MADE_BY = ["tiers-3-4-5", "offset-tiers-5"]
made_by = pytest.mark.parametrize("name", MADE_BY)


@pytest.fixture(scope="module")
def poll():
    orders = np.argsort(np.arange(12) + np.random.default_rng(1).normal(0, 4, (800, 12)), axis=1)
    return rankdp.Rankings.from_orders(orders, NAMES, [f"voter {number}" for number in range(800)])


@made_by
def test_tier_lists_are_the_same_draws_without_the_order_inside(poll, name):
    plain = rankdp.privatize(poll, 2, mechanism=name, bits=SeededBits(2)).value
    release = rankdp.privatize(poll, 2, mechanism=name, as_tiers=True, bits=SeededBits(2))
    lists, ties = release.value, rankdp.mechanism(name, 12, 2).ties
    assert release.provenance.parameters["as_tiers"]
    assert lists.offsets is None
    offsets = np.zeros(800, dtype=int) if plain.offsets is None else plain.offsets
    assert np.array_equal(lists.tied, ties[offsets])
    tier = np.cumsum(~lists.tied, axis=1)
    for row in range(0, 800, 37):
        for number in set(tier[row].tolist()):
            listed = lists.orders[row, tier[row] == number].tolist()
            assert listed == sorted(plain.orders[row, tier[row] == number].tolist())


@pytest.mark.slow
@made_by
@pytest.mark.parametrize("ending", ["csv", "parquet", "toc"])
def test_files_of_tier_lists_come_back(poll, name, ending, tmp_path):
    poll.write(tmp_path / "poll.csv")
    target = tmp_path / f"tiers.{ending}"
    rankdp.privatize_file(tmp_path / "poll.csv", target, 2, mechanism=name, as_tiers=True, bits=SeededBits(3))
    again = rankdp.Rankings.read(target, NAMES, ties="keep")
    if ending == "toc":
        assert len(again) == 800
    else:
        assert again.voters.tolist() == poll.voters.tolist()
    with pytest.raises(InputError, match="are tied at rank"):
        rankdp.Rankings.read(target, NAMES)
    found, counted = rankdp.aggregate_file(target, items=NAMES).mean_ranks, again.ranks()
    tier = np.cumsum(~again.tied, axis=1)
    middle = np.zeros_like(again.orders, dtype=float)
    for row in range(len(again)):
        places = np.arange(1, 13)
        middle[row, again.orders[row]] = [places[tier[row] == here].mean() for here in tier[row]]
    np.testing.assert_allclose(found.naive, middle.mean(axis=0), rtol=1e-9)
    assert counted.max() == tier.max()


def test_ties_are_worth_half_a_win(poll):
    lists = rankdp.privatize(poll, 2, mechanism="tiers-3-4-5", as_tiers=True, bits=SeededBits(5))
    rates = rankdp.aggregate(lists).win_rates.naive
    ranks = lists.value.ranks()
    before = (ranks[:, :, None] < ranks[:, None, :]) + 0.5 * (ranks[:, :, None] == ranks[:, None, :])
    np.testing.assert_allclose(rates, before.mean(axis=0), rtol=1e-9)


def test_mean_ranks_of_offset_tiers_are_undone_from_tier_lists(poll):
    kept = {"mechanism": "offset-tiers-5", "bits": SeededBits(6)}
    plain = rankdp.aggregate(rankdp.privatize(poll, 2, **kept)).mean_ranks
    lists = rankdp.aggregate(rankdp.privatize(poll, 2, as_tiers=True, **kept | {"bits": SeededBits(6)})).mean_ranks
    np.testing.assert_allclose(plain.values, lists.values, rtol=1e-6)
    np.testing.assert_allclose(plain.standard_errors, lists.standard_errors, rtol=1e-6)


def test_learners_take_ties_as_ties(poll):
    lists = rankdp.privatize(poll, 2, mechanism="tiers-3-4-5", as_tiers=True, bits=SeededBits(7)).value
    told = labels_of(lists)
    table = told.tables[0]
    assert table[0, 1] == table[1, 0] == 0.5
    assert table[0, 3] == 1
    np.testing.assert_allclose(told.wins[0], [10, 10, 10, 6.5, 6.5, 6.5, 6.5, 2, 2, 2, 2, 2])


def test_refusals(poll, tmp_path):
    with pytest.raises(InputError, match=r"needs a mechanism with tiers \(tiers, offset-tiers\)"):
        rankdp.privatize(poll, 2, mechanism="reinsertion", as_tiers=True)
    lists = rankdp.privatize(poll, 2, mechanism="tiers-3-4-5", as_tiers=True).value
    with pytest.raises(InputError, match=r"a tier list has ties; use the ending .toc"):
        lists.write(tmp_path / "out.soc")
    with pytest.raises(InputError, match="must be broken before rankings are privatized"):
        rankdp.privatize(lists, 2)
    with pytest.raises(
        InputError, match="the ties of some rankings of 12 items are not those of the tiers-2x6 mechanism"
    ):
        rankdp.aggregate(lists, "tiers-6-6", 2)


def test_command(poll, tmp_path):
    poll.write(tmp_path / "poll.csv")
    asked = ["privatize", str(tmp_path / "poll.csv"), str(tmp_path / "out.csv"), "-e", "4", "--tiers", "3,9"]
    done = CliRunner().invoke(cli, [*asked, "--as-tiers"])
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert lines[0] == "voter,item,tier"
    assert len(lines) == 1 + 12 * 800
    assert {line.rsplit(",", 1)[1] for line in lines[1:13]} == {"1", "2"}
    aggregated = CliRunner().invoke(cli, ["aggregate", str(tmp_path / "out.csv")])
    assert aggregated.exit_code == 0, aggregated.output
    refused = CliRunner().invoke(cli, [*asked[:-2], "--mechanism", "kendall", "--as-tiers", "--force"])
    assert refused.exit_code == 1
    assert "needs a mechanism with tiers" in str(refused.exception)
