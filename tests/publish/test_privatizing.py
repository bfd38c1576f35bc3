"""Privatize: tables and files, complete and partial, one epsilon or everyone's own; and what is never left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rankdp
from rankdp.data.atomic import fingerprint
from rankdp.data.files import open_rankings
from rankdp.data.synthetic import town_poll
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.publish import privatize as privatizing
from rankdp.publish.privatize import privatize, privatize_file


@pytest.fixture
def poll() -> rankdp.Rankings:
    return town_poll(voters=300)


@pytest.fixture
def partial_poll() -> rankdp.Rankings:
    rows = [["a", "b", "c", "d"], ["d", "b"], ["c"], ["b", "a", "d"]] * 50
    return rankdp.Rankings.from_orders(rows, items=["a", "b", "c", "d"])


def test_keeps_everything_but_the_order(poll: rankdp.Rankings) -> None:
    release = privatize(poll, 1)
    assert release.value.items == poll.items
    assert np.array_equal(release.value.voters, poll.voters)
    assert np.array_equal(np.sort(release.value.orders, axis=1), np.sort(poll.orders, axis=1))
    assert not np.array_equal(release.value.orders, poll.orders)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_row_is_permuted(name: str) -> None:
    """The released orders are not checked again, so they are checked here; there are enough for several threads."""
    items = min(17, MECHANISMS[name].most_items or 17)
    orders = np.random.default_rng(items).random((150_000 // items, items)).argsort(axis=1)
    release = privatize(rankdp.Rankings.from_orders(orders), 1, mechanism=name)
    assert (np.sort(release.value.orders, axis=1) == np.arange(items)).all()


def test_the_guarantee_is_the_mechanisms(poll: rankdp.Rankings) -> None:
    for name in ("kendall", "ulam", "reinsertion", "noisy-ranks", "laplace"):
        release = privatize(poll, "0.3", mechanism=name)
        assert release.guarantee == rankdp.mechanism(name, items=8, epsilon="0.3").guarantee
        assert release.provenance.mechanism == name
        assert release.provenance.parameters["choices"] == [{"mechanism": name, "items": 8, "epsilon": "3/10"}]


def test_auto_takes_the_best(poll: rankdp.Rankings) -> None:
    assert privatize(poll, 2).provenance.mechanism == rankdp.mechanism("auto", 8, 2).name


def test_partial_rankings_are_refused_until_their_items_are_public(partial_poll: rankdp.Rankings) -> None:
    with pytest.raises(
        rankdp.InputError, match="which items they list cannot; state that this is public with listed_items_public=True"
    ):
        privatize(partial_poll, 1)
    release = privatize(partial_poll, 1, listed_items_public=True)
    assert release.guarantee is not None
    assert release.guarantee.listed_items_public
    assert "NOT protected" in release.explain()


def test_partial_rankings_keep_their_items_and_are_permuted_among_themselves(partial_poll: rankdp.Rankings) -> None:
    value = privatize(partial_poll, 1, listed_items_public=True, mechanism="kendall").value
    assert np.array_equal(np.sort(value.orders, axis=1), np.sort(partial_poll.orders, axis=1))
    assert np.array_equal(value.lengths, partial_poll.lengths)
    assert np.array_equal(value.orders[2::4], partial_poll.orders[2::4])
    for start in (0, 1, 3):
        assert not np.array_equal(value.orders[start::4], partial_poll.orders[start::4])


def test_a_partial_row_follows_the_law_of_its_own_length() -> None:
    rows = 40_000
    pairs = rankdp.Rankings.from_orders([["x", "y"]] * rows + [["x", "y", "z"]], items=["x", "y", "z"])
    value = privatize(pairs, 1, mechanism="kendall", listed_items_public=True, bits=rankdp.SeededBits(3)).value
    kept = np.mean(value.orders[:rows, 0] == 0)
    expected = np.e / (1 + np.e)
    assert abs(kept - expected) < 5 * np.sqrt(expected * (1 - expected) / rows)


def test_complete_rankings_do_not_claim_public_lists(poll: rankdp.Rankings) -> None:
    guarantee = privatize(poll, 1, listed_items_public=True).guarantee
    assert guarantee is not None
    assert not guarantee.listed_items_public


def test_everyones_own_epsilon_from_an_array_or_from_the_rankings(poll: rankdp.Rankings) -> None:
    own = np.resize([0.25, 50.0], len(poll))
    held = rankdp.Rankings.from_orders(poll.orders, poll.items, poll.voters, own)
    for release in (privatize(poll, own, mechanism="kendall"), privatize(held, mechanism="kendall")):
        assert release.guarantee is not None
        assert release.guarantee.personal
        assert release.guarantee.epsilon == 50
        same = (release.value.orders == poll.orders).all(axis=1)
        assert same[1::2].mean() > 0.9
        assert same[::2].mean() < 0.1
        assert np.array_equal(release.value.epsilons, own)


def test_an_epsilon_is_needed(poll: rankdp.Rankings) -> None:
    with pytest.raises(rankdp.InputError, match="epsilon must be given"):
        privatize(poll)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much", None])
def test_bad_epsilons(poll: rankdp.Rankings, epsilon: object) -> None:
    with pytest.raises(rankdp.InputError, match="epsilon"):
        privatize(poll, epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("own", [[1.0], [1.0] * 299 + [float("nan")], [1.0] * 299 + [-2.0]])
def test_bad_own_epsilons(poll: rankdp.Rankings, own: list[float]) -> None:
    with pytest.raises(rankdp.InputError, match="epsilon"):
        privatize(poll, own)


def test_other_refusals(poll: rankdp.Rankings) -> None:
    with pytest.raises(rankdp.InputError, match="mechanism must be auto or one of"):
        privatize(poll, 1, mechanism="mallows")
    with pytest.raises(rankdp.InputError, match=r"rankings must be a rankdp\.Rankings"):
        privatize(poll.orders, 1)  # type: ignore[arg-type]
    with pytest.raises(rankdp.InputError, match="no order to protect"):
        privatize(rankdp.Rankings.from_orders([["only"]]), 1)


@pytest.mark.parametrize("ids", [["ann", "bob", "ann ", "eve", "ann"], [7, 8, 7, 9, 7], [b"a", 1, b"a", 2, b"a"]])
def test_a_voter_in_several_rows_is_refused_or_counted(tmp_path: Path, ids: list[object]) -> None:
    orders = np.tile(np.arange(4), (5, 1))
    table = rankdp.Rankings.from_orders(orders, voters=ids)
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 3)
    told = re.escape(f"voter {str(ids[0])!r} has 3 rows (1, 3, 5, counted from 1)")
    with pytest.raises(rankdp.InputError, match=f"{told}.*repeated_voters=True,"):
        privatize(table, 1, ledger=ledger)
    assert not ledger.history()
    release = privatize(table, 1, mechanism="kendall", repeated_voters=True, ledger=ledger)
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.rows_per_voter) == (3, 3)
    assert release.guarantee.whole_ranking_epsilon == 3 * 2
    assert "up to 3 rows" in release.explain()
    assert Guarantee.from_dict(release.to_dict()["guarantee"]) == release.guarantee
    assert [entry.guarantee.epsilon for entry in ledger.history()] == [3]
    assert release.provenance.parameters["epsilon"] == "1"  # of each row: what an aggregate undoes
    once = privatize(table[:2], 1, mechanism="kendall", repeated_voters=True)
    assert once.guarantee == rankdp.mechanism("kendall", 4, 1).guarantee


def test_answers_are_for_voters_with_one_row(tmp_path: Path) -> None:
    store = rankdp.AnswerStore(tmp_path / "answers.db")
    table = rankdp.Rankings.from_orders(np.tile(np.arange(4), (3, 1)), voters=["ann", "bob", " ann"])
    with pytest.raises(rankdp.InputError, match="voter 'ann' has 2 rows"):
        privatize(table, 1, answers=store)
    with pytest.raises(rankdp.Unsupported, match="repeated_voters must not be given with answers"):
        privatize(table, 1, answers=store, repeated_voters=True)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_voter_in_several_rows_of_a_file(tmp_path: Path, ending: str) -> None:
    rows = 150_000  # more than a batch
    ids = np.arange(rows)
    ids[-1] = 4
    orders = np.tile(np.arange(3), (rows, 1))
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    rankdp.Rankings.from_orders(orders, items=["a", "b", "c"], voters=ids).write(source)
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 4)
    for pays in (None, ledger):
        with pytest.raises(rankdp.InputError, match=r"voter '4' has 2 rows \(5, 150000, counted from 1\)"):
            privatize_file(source, target, 1, mechanism="kendall", ledger=pays)
        assert not target.exists()
    assert not ledger.history()
    for pays in (None, ledger):
        release = privatize_file(source, target, 1, mechanism="kendall", ledger=pays, repeated_voters=True)
        assert release.guarantee is not None
        assert (release.guarantee.epsilon, release.guarantee.rows_per_voter) == (2, 2)
    assert [entry.guarantee.epsilon for entry in ledger.history()] == [2]


def test_what_refuses_a_file_does_so_before_the_charge(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("voter,rank_1,rank_2\nann,a,b\nbob,a,a\n")
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 1)
    with pytest.raises(rankdp.InputError, match="line 3"):
        privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1, ledger=ledger)
    assert not ledger.history()


def test_a_file_that_changes_after_the_charge_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_text("voter,rank_1,rank_2\nann,a,b\nbob,a,b\n")
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "poll", ITEM_POSITION, 3)
    look = privatizing._guarantee_of

    def changed(request: object, file: object) -> Guarantee:
        promise = look(request, file)  # type: ignore[arg-type]
        with (tmp_path / "in.csv").open("a") as file:
            file.write("ann,b,a\n")
        return promise

    monkeypatch.setattr(privatizing, "_guarantee_of", changed)
    with pytest.raises(rankdp.InputError, match="the file changed while it was read") as refusal:
        privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1, ledger=ledger, repeated_voters=True)
    assert any("spent" in told for told in refusal.value.__notes__)
    assert not (tmp_path / "out.csv").exists()
    assert ledger.budgets[0].standing.epsilon == 1


def test_a_rehearsal_repeats_and_promises_nothing(poll: rankdp.Rankings) -> None:
    first, second = (privatize(poll, 1, bits=rankdp.SeededBits(11)) for _ in range(2))
    assert first.value == second.value
    assert first.guarantee is None
    assert first.rehearsal
    assert "NOT PRIVATE" in first.explain()
    assert "NOT PRIVATE" in repr(first)
    assert first.to_dict()["guarantee"] is None


def test_two_releases_differ(poll: rankdp.Rankings) -> None:
    assert privatize(poll, 1).value != privatize(poll, 1).value


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".soc"])
def test_files_of_every_format(tmp_path: Path, poll: rankdp.Rankings, ending: str) -> None:
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    poll.write(source)
    calls: list[tuple[int, int | None]] = []
    release = privatize_file(source, target, 2, progress=lambda rows, total: calls.append((rows, total)))
    value = rankdp.Rankings.read(target)
    assert sorted(value.items) == sorted(poll.items)
    assert len(value) == len(poll)
    assert calls[-1][0] == len(poll)
    if ending != ".soc":
        assert [str(voter) for voter in value.voters] == [str(voter) for voter in poll.voters]
    sidecar = json.loads((tmp_path / f"out{ending}.release.json").read_text())
    assert Guarantee.from_dict(sidecar["guarantee"]) == release.guarantee
    assert sidecar["mechanism"] == release.provenance.mechanism
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"in{ending}", f"out{ending}", f"out{ending}.release.json"]
    )


def test_the_sidecar_says_nothing_about_the_data(tmp_path: Path) -> None:
    sidecars = []
    for voters in (40, 300):
        town_poll(voters=voters, seed=voters).write(tmp_path / "in.csv")
        privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 2)
        sidecar = json.loads((tmp_path / "out.csv.release.json").read_text())
        assert sidecar.pop("value") == fingerprint(tmp_path / "out.csv")  # of what is released, and of nothing else
        sidecar.pop("when")
        sidecars.append(sidecar)
    assert sidecars[0] == sidecars[1]


@pytest.mark.slow
def test_streaming_keeps_the_order_of_rows(tmp_path: Path) -> None:
    voters = 300_000
    rng = np.random.default_rng(5)
    orders = np.argsort(rng.random((voters, 4)), axis=1)
    rankdp.Rankings.from_orders(orders, items=list("abcd"), voters=np.arange(voters)).write(tmp_path / "in.parquet")
    privatize_file(tmp_path / "in.parquet", tmp_path / "out.parquet", 60, mechanism="kendall")
    value = rankdp.Rankings.read(tmp_path / "out.parquet")
    assert np.array_equal(value.voters, np.arange(voters))
    assert (value.orders == orders).all(axis=1).mean() > 0.999


def test_a_rehearsal_of_a_file_repeats(tmp_path: Path, poll: rankdp.Rankings) -> None:
    poll.write(tmp_path / "in.csv")
    for name in ("one.csv", "two.csv"):
        privatize_file(tmp_path / "in.csv", tmp_path / name, 1, bits=rankdp.SeededBits(4))
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert json.loads((tmp_path / "one.csv.release.json").read_text())["rehearsal"]["seed"] == 4


def test_an_epsilon_column(tmp_path: Path) -> None:
    lines = ["voter,rank_1,rank_2,rank_3,mine", *(f"{u},a,b,c,{0.1 if u % 2 else 40}" for u in range(400))]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    release = privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", epsilon_column="mine", mechanism="kendall")
    assert release.guarantee is not None
    assert release.guarantee.personal
    assert release.guarantee.epsilon == 40
    choices = release.provenance.parameters["choices"]
    assert [Fraction(choice["epsilon"]) for choice in choices] == [Fraction(1, 10), 40]
    value = rankdp.Rankings.read(tmp_path / "out.csv", epsilon_column="mine")
    kept = (value.orders == [0, 1, 2]).all(axis=1)
    assert kept[::2].all()
    assert kept[1::2].mean() < 0.5
    sidecar = json.loads((tmp_path / "out.csv.release.json").read_text())
    assert sidecar["parameters"]["epsilon_column"] == "mine"


@pytest.mark.slow
def test_a_late_partial_row_refuses_the_whole_file(tmp_path: Path) -> None:
    rows = [f"{u},a,b,c" for u in range(200_000)]
    for last in ("200000,b,a,", "200000,a,b,d"):
        (tmp_path / "in.csv").write_text("\n".join(["voter,rank_1,rank_2,rank_3", *rows, last]) + "\n")
        with pytest.raises(rankdp.InputError, match="listed_items_public"):
            privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1)
        assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty"),
        ("voter,rank_1,rank_2\n", "no row"),
        ("voter,rank_1,rank_2\n1,a,b\n2,a,a\n", "line 3"),
        ("voter,name,score\n1,a,2\n", "column"),
        ("voter,rank_1,rank_2\n1,a,b\n2,a\n", "line 3"),
    ],
)
def test_bad_files_leave_nothing_behind(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    (tmp_path / "out.csv").write_text("the old one")
    with pytest.raises(rankdp.InputError, match=sentence):
        privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1)
    assert (tmp_path / "out.csv").read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_a_truncated_parquet_file(tmp_path: Path, poll: rankdp.Rankings) -> None:
    poll.write(tmp_path / "in.parquet")
    whole = (tmp_path / "in.parquet").read_bytes()
    (tmp_path / "in.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(rankdp.InputError, match=r"in\.parquet"):
        privatize_file(tmp_path / "in.parquet", tmp_path / "out.parquet", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_no_guarantee_stands_beside_data_it_was_not_made_for(
    tmp_path: Path, poll: rankdp.Rankings, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll.write(tmp_path / "in.csv")
    privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1)
    old = (tmp_path / "out.csv").read_text()

    def fail(self: Path, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 5)
    assert (tmp_path / "out.csv").read_text() == old
    assert json.loads((tmp_path / "out.csv.release.json").read_text())["guarantee"]["epsilon"] == "1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv", "out.csv.release.json"]


STOPPED = """
import os, sys
from rankdp.cli import main
from rankdp.publish import privatize
streamed = privatize._streamed

def stopped(*arguments):
    batches = streamed(*arguments)
    yield next(batches)
    assert any(name.endswith(".tmp") and os.path.getsize(name) for name in os.listdir())
    os.kill(os.getpid(), stop)
    yield from batches

stop = int(sys.argv.pop(1))
privatize._streamed = stopped
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_output(tmp_path: Path, stop: signal.Signals) -> None:
    """Also in the background of a script, where an interrupt from the keyboard is ignored."""
    orders = np.tile(np.arange(6, dtype=np.int32), (200_000, 1))
    rankdp.Rankings.from_orders(orders, items=list("abcdef")).write(tmp_path / "in.parquet")
    command = [sys.executable, "-c", STOPPED, str(int(stop)), "privatize", "in.parquet", "out.csv", "--epsilon", "1"]
    if stop == signal.SIGTERM:
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    run = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr.strip()) == (1, "rankdp: interrupted; nothing was written")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that fills up."""
    town_poll(voters=200_000).write(tmp_path / "in.parquet")
    limited = (
        "import resource, signal, runpy, sys;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2);"
        "sys.argv = ['rankdp', 'privatize', 'in.parquet', 'out.csv', '-e', '1'];"
        "runpy.run_module('rankdp', run_name='__main__')"
    )
    run = subprocess.run([sys.executable, "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("rankdp: out.csv: the file could not be written")
    assert run.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("rows", "with_voters", "most"),
    # of every voter a number is kept
    [((600_000, 2_400_000), False, 1.2), pytest.param((1_000_000, 6_000_000), True, 1.3, marks=pytest.mark.long)],
)
def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, rows: tuple[int, int], with_voters: bool, most: float
) -> None:
    measure = (  # the process's own high-water mark: ru_maxrss would count its parent's
        "import pathlib, re, sys, rankdp;"
        "rankdp.privatize_file(sys.argv[1], sys.argv[2], 1, mechanism='kendall');"
        "print(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    for count in rows:
        orders = np.tile(np.arange(10, dtype=np.int32), (count, 1))
        table = rankdp.Rankings.from_orders(orders, voters=np.arange(count) if with_voters else None)
        table.write(tmp_path / f"{count}.parquet")

    def peak(count: int) -> int:
        command = [sys.executable, "-c", measure, f"{count}.parquet", f"{len(list(tmp_path.iterdir()))}.parquet"]
        return int(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    few, many = peak(rows[0]), peak(rows[1])
    if many >= most * few:  # a busy machine lets batches wait for each other
        many = min(peak(rows[1]) for _ in range(3))
    assert many < most * few
    assert many < 1_500_000


def test_every_real_ranking_file_can_be_privatized(tmp_path: Path, data_directory: Path) -> None:
    for name in ("sushi/sushi3a_rankings.csv", "preflib_debian/debian_2002_leader.csv", "nascar2002/rankings.csv"):
        target = tmp_path / "out.csv"
        release = privatize_file(data_directory / name, target, 2, mechanism="reinsertion", listed_items_public=True)
        assert release.guarantee is not None
        assert release.guarantee.protects == ITEM_POSITION
        with open_rankings(data_directory / name) as before, open_rankings(target) as after:
            assert sum(map(len, before)) == sum(map(len, after))


def test_a_top_list_is_what_a_release_was_made_for():
    table = rankdp.Rankings.from_orders([list(range(10))] * 5)
    release = rankdp.privatize(table, 2, purpose="top", top=3)
    facts = release.provenance.parameters
    assert (facts["purpose"], facts["top"], facts["choices"][0]["tiers"]) == ("top", 3, [3, 7])
    assert "top" not in rankdp.privatize(table, 2).provenance.parameters
    with pytest.raises(rankdp.InputError, match=r"top needs purpose='top', .*, got 3 with purpose aggregate"):
        rankdp.privatize(table, 2, top=3)
