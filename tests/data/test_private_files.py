"""Only the owner can read a database and its log, whatever the umask is."""

import os
import stat
import subprocess
import sys

import pytest

from rankdp import AnswerStore, Ledger
from rankdp.errors import InputError
from rankdp.privacy.store import Store
from rankdp_web.survey_database import SurveyDatabase

MAKERS = {
    "ledger": lambda path: Ledger.create(path, "poll", "one comparison", 1),
    "answers": AnswerStore,
    "survey": lambda path: SurveyDatabase(path, create=True),
    "survey address": lambda path: SurveyDatabase(f"sqlite:///{path}", create=True),
}


@pytest.fixture(autouse=True)
def umask():
    old = os.umask(0o022)
    yield
    os.umask(old)


def modes(directory):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_database_and_its_log_are_private_from_their_first_moment(maker, tmp_path, monkeypatch):
    monkeypatch.setattr("rankdp.privacy.store.tighten", lambda path: None)
    monkeypatch.setattr("rankdp_web.survey_database.tighten", lambda path: None)
    made = MAKERS[maker](tmp_path / "file.db")
    found = modes(tmp_path)
    assert {"file.db", "file.db-wal", "file.db-shm"} <= set(found)
    assert set(found.values()) == {0o600}
    made.close()


def test_a_kill_leaves_a_private_log(tmp_path):
    script = (
        "import os, sys; from rankdp import Ledger; os.umask(0o022)\n"
        "ledger = Ledger.create(sys.argv[1], 'poll', 'one comparison', 1); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "file.db")], check=False).returncode == 9
    found = modes(tmp_path)
    assert "file.db-wal" in found
    assert set(found.values()) == {0o600}


@pytest.mark.parametrize("maker", ["ledger", "survey"])
def test_opening_tightens_a_file_of_ours_and_its_log(maker, tmp_path):
    path = tmp_path / "file.db"
    MAKERS[maker](path).close()
    path.chmod(0o644)
    opened = Ledger.open(path) if maker == "ledger" else SurveyDatabase(path)
    if maker == "survey":
        opened.surveys()
    found = modes(tmp_path)
    assert "file.db-wal" in found
    assert set(found.values()) == {0o600}
    opened.close()


def test_a_file_of_another_kind_keeps_its_mode(tmp_path):
    path = tmp_path / "file.db"
    AnswerStore(path).close()
    path.chmod(0o644)
    with pytest.raises(InputError, match="this is not a ledger"):
        Store(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "file.db")
    ledger = MAKERS["ledger"](tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert set(modes(tmp_path).values()) == {0o600}
    ledger.close()
