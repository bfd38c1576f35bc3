"""A value and its promise: whatever fails, and wherever a kill comes, no value stands beside another's sidecar."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rankdp
from rankdp.data.atomic import SIDECAR, NewFile, fingerprint, new_directory, read_sidecar, write_whole
from rankdp.errors import InputError, SystemProblem
from rankdp.privacy.bits import SeededBits

CALLS = ("replace", "fsync", "unlink", "open")
VOTES = pa.table({"winner": ["a", "b", "a", "c"], "loser": ["b", "c", "c", "a"]})


def failing(monkeypatch, at: int, error: BaseException) -> list[str]:
    """Let the system call number ``at`` fail, of those that name, save or remove files; the calls made so far."""
    made: list[str] = []

    def wrapped(name):
        original = getattr(os, name)

        def call(*arguments, **options):
            made.append(name)
            if len(made) == at:
                raise error
            return original(*arguments, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrapped(name))
    return made


def check_pair(path: Path, values: dict[bytes, str]) -> None:
    """The value is one of those written, and its sidecar is its own or there is none."""
    content = path.read_bytes()
    assert content in values
    facts = read_sidecar(path)
    assert facts is None or facts["mechanism"] == values[content]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_whatever_call_fails_no_value_stands_beside_another_promise(tmp_path, monkeypatch, error):
    path, at = tmp_path / "board.csv", 0
    while True:
        at += 1
        write_whole(path, b"old", {"mechanism": "first"})
        with monkeypatch.context() as patched:
            made = failing(patched, at, error)
            with contextlib.suppress(SystemProblem, KeyboardInterrupt):
                write_whole(path, b"new", {"mechanism": "second"})
        check_pair(path, {b"old": "first", b"new": "second"})
        if path.read_bytes() == b"old":
            assert read_sidecar(path) is not None, "a failure before the value is in place changes nothing"
        if len(made) < at:
            break
        for leftover in tmp_path.glob(".*.tmp"):
            assert made[at - 1] == "unlink"
            leftover.unlink()
    assert at > 8
    assert path.read_bytes() == b"new"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["board.csv", "board.csv.release.json"]


KILLED = """
import os, signal, sys
from pathlib import Path
from rankdp.data.atomic import read_sidecar, write_whole

path = Path(sys.argv[1])
calls = 0

def dying(original, at, before):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == at and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call

def attempt(at, before):
    write_whole(path, b"old", {"mechanism": "first"})
    child = os.fork()
    if child == 0:
        for name in ("replace", "fsync", "unlink", "open", "close"):
            setattr(os, name, dying(getattr(os, name), at, before))
        write_whole(path, b"new", {"mechanism": "second"})
        os._exit(0)
    _, status = os.waitpid(child, 0)
    content, facts = path.read_bytes(), read_sidecar(path)
    assert content in (b"old", b"new"), content
    assert facts is None or facts["mechanism"] == {b"old": "first", b"new": "second"}[content], (at, facts)
    return os.WIFSIGNALED(status)

for before in (True, False):
    at = 1
    while attempt(at, before):
        at += 1
    print(at)
"""


@pytest.mark.slow
def test_a_kill_between_any_two_calls_leaves_no_wrong_promise(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "board.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert min(map(int, done.stdout.split())) > 10


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 12))
def test_a_rehearsed_board_never_stands_beside_a_real_guarantee(tmp_path, monkeypatch, at):
    path, asked = tmp_path / "board.csv", {"items": ["a", "b", "c"], "protect": "outcome", "method": "wins"}
    rehearsal = rankdp.rank(VOTES, 1, bits=SeededBits(1), **asked)
    rankdp.write_board(rehearsal, path)
    table = path.read_bytes()
    release = rankdp.rank(VOTES, 1, **asked)
    with monkeypatch.context() as patched:
        failing(patched, at, OSError(errno.ENOSPC, "full"))
        with contextlib.suppress(InputError):
            rankdp.write_board(release, path)
    if path.read_bytes() == table and (tmp_path / "board.csv.release.json").exists():
        assert json.loads((tmp_path / "board.csv.release.json").read_text())["rehearsal"] is not None


def test_true_rankings_do_not_inherit_the_promise_of_the_file_they_replace(tmp_path):
    rankings = rankdp.Rankings.from_orders([[0, 1, 2]] * 5, ["a", "b", "c"])
    rankings.write(tmp_path / "in.csv")
    rankdp.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1)
    assert read_sidecar(tmp_path / "out.csv") is not None
    rankings.write(tmp_path / "out.csv")
    assert not (tmp_path / "out.csv.release.json").exists()


def test_a_sidecar_knows_its_value(tmp_path):
    path = tmp_path / "out.csv"
    write_whole(path, b"value", {"mechanism": "kendall"})
    facts = read_sidecar(path)
    assert facts is not None
    assert (
        facts["value"]
        == fingerprint(path)
        == {
            "bytes": 5,
            "sha256": "cd42404d52ad55ccfa9aca4adc828aa5800ad9d385a0671fbcbf724118320619",
        }
    )
    path.write_bytes(b"other")
    with pytest.raises(InputError, match="was made for another content"):
        read_sidecar(path)
    (tmp_path / f"out.csv{SIDECAR}").write_text('{"mechanism": "kendall"}')  # as version 0.1 wrote it
    assert read_sidecar(path) == {"mechanism": "kendall"}
    (tmp_path / f"out.csv{SIDECAR}").write_text("[]")
    with pytest.raises(InputError, match="is not the JSON of a release"):
        read_sidecar(path)
    (tmp_path / f"out.csv{SIDECAR}").unlink()
    assert read_sidecar(path) is None
    with pytest.raises(InputError, match="there is no such file"):
        read_sidecar(tmp_path / "missing.csv")


def test_aggregate_and_learn_refuse_a_promise_about_another_content(tmp_path):
    path = tmp_path / "out.csv"
    rankdp.Rankings.from_orders([[0, 1, 2]] * 5, ["a", "b", "c"]).write(tmp_path / "in.csv")
    rankdp.privatize_file(tmp_path / "in.csv", path, 1)
    path.write_text(path.read_text() + "".join(path.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(InputError, match="was made for another content"):
        rankdp.aggregate_file(path)


def test_a_link_is_followed_and_no_old_promise_stays_at_either_name(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    write_whole(real, b"old", {"mechanism": "first"})
    link.symlink_to(real)
    write_whole(link, b"new", {"mechanism": "second"})
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert read_sidecar(real) is None
    assert read_sidecar(link) is not None


def test_what_cannot_be_written_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "file.csv").write_text("1")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "beside.csv.release.json").mkdir()
    for path, words in [
        (tmp_path, "this is a directory"),
        (tmp_path / "missing" / "file.csv", "could not be written"),
        (tmp_path / "pipe.csv", "not a regular file"),
        (tmp_path / "beside.csv", "this is a directory"),
    ]:
        with pytest.raises(InputError, match=words):
            NewFile(path)
    with pytest.raises(InputError, match="the file being read"):
        NewFile(tmp_path / "file.csv", source=tmp_path / "file.csv")


def test_a_directory_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(SystemProblem, match="Is a directory"), new_directory(tmp_path / "model") as directory:
        directory.write_text("1")
    assert list(tmp_path.iterdir()) == []
    with new_directory(tmp_path / "model") as directory:
        (directory / "a").write_text("1")
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    with pytest.raises(SystemProblem, match="could not be written"), new_directory(tmp_path / "model") as directory:
        (directory / "b").write_text("1")
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["a"]


def test_files_are_put_in_place_where_systems_differ(tmp_path, monkeypatch):
    """Windows opens no directory and syncs no handle that is only for reading."""
    read_only, real_open, real_sync = set(), os.open, os.fsync

    def opened(path, flags, *more, **options):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        handle = real_open(path, flags, *more, **options)
        (read_only.discard if flags & (os.O_WRONLY | os.O_RDWR) else read_only.add)(handle)
        return handle

    def synced(handle):
        if handle in read_only:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_sync(handle)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", synced)
    write_whole(tmp_path / "value.csv", b"a\n", {"epsilon": 1})
    assert (tmp_path / "value.csv").read_bytes() == b"a\n"
    assert read_sidecar(tmp_path / "value.csv")["epsilon"] == 1
