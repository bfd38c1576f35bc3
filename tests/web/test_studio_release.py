"""A release of the studio is made and charged once: pressed again, in two tabs, killed, with a full disk, by script."""

from __future__ import annotations

import contextlib
import csv
import json
import runpy
import subprocess
import sys
import threading
import time
from dataclasses import replace

import httpx
import pytest
from studio_support import (
    FILES,
    ITEMS,
    entries,
    name_of,
    post,
    prepare,
    press,
    seen_on,
    studio_client,
)

from rankdp.data.atomic import read_sidecar
from rankdp.errors import InputError
from rankdp.privacy.ledger import Ledger
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_release import FOLDER, Releases

pytestmark = pytest.mark.slow

KINDS = tuple(FILES)


def test_pressing_again_going_back_and_reloading_spend_nothing_more(desk, client):
    draft = prepare(client, desk, "ballots")
    seen = seen_on(client, draft)
    first = press(client, draft).text
    for _ in range(2):
        assert post(client, f"/w/{draft}/release", seen=seen).text == first
    assert client.get(f"/w/{draft}/release").text == first
    post(client, f"/w/{draft}/protect", protect="ballot")  # back, and forward again with the same settings
    assert len(entries(desk)) == 1
    moved = post(client, f"/w/{draft}/choose", epsilon="2", option="borda")  # other settings: another one
    assert name_of(moved) != draft
    assert client.get(f"/w/{draft}/release").text == first
    press(client, name_of(moved))
    assert [str(entry.guarantee.epsilon) for entry in entries(desk)] == ["1", "2"]


def test_what_was_on_the_page_is_released_or_nothing(desk, client):
    draft = prepare(client, desk, "ballots")
    seen = seen_on(client, draft)
    post(client, f"/w/{draft}/choose", epsilon="3", option="borda")  # in another tab
    assert "changed in another tab" in post(client, f"/w/{draft}/release", 422, seen=seen).text
    assert entries(desk) == []


def test_two_tabs_and_two_servers_at_once(desk, client):
    draft = Draft(
        path=str(desk / "ballots.csv"), kind="ballots", items=ITEMS, items_confirmed=True,
        protect="ballot", option="borda", epsilon="1",
        dataset="people",
    )  # fmt: skip
    Ledger.create(desk / "budget.db", "people", "one ballot", 20).close()
    servers = [Releases(desk, desk / "budget.db") for _ in range(2)]
    start, made, refused = threading.Barrier(6), [], []

    def go(number):
        start.wait()
        try:
            made.append(servers[number % 2].make(draft))
        except InputError as refusal:
            refused.append(str(refusal))

    threads = [threading.Thread(target=go, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries(desk)) == 1
    assert made
    assert all("another studio" in words for words in refused)
    assert {one.state for one in made} <= {"finished", "begun"}
    assert servers[1].make(draft).state == "finished"


KILL = """
import os, signal, sys
from pathlib import Path
import rankdp.data.atomic, rankdp.privacy.ledger.charges as charges
from rankdp_web.studio_release import Releases
from rankdp_web.studio_draft import Draft
import json
where, desk = sys.argv[1], Path(sys.argv[2])
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "before the charge":
    charges.Ledger.charge = die
elif where == "after the charge":
    charges.Spending.leaves = die
elif where == "between two files":
    kept = rankdp.data.atomic.NewFile.keep
    def keep(self):
        if self.path.endswith("result.json"):
            die()
        kept(self)
    rankdp.data.atomic.NewFile.keep = keep
else:
    Releases._say = die
Releases(desk, desk / "budget.db").make(Draft.from_dict(json.loads(sys.argv[3])))
"""


@pytest.mark.parametrize(
    ("where", "charged", "complete"),
    [
        pytest.param("before the charge", False, [], marks=pytest.mark.long),
        ("after the charge", True, []),
        ("between two files", True, ["result.html"]),
        pytest.param(
            "before it is finished", True, ["result.csv", "result.html", "result.json"], marks=pytest.mark.long
        ),
    ],
)
def test_killed(desk, where, charged, complete):
    """The ledger never counts too little, no file is half there, and nothing is drawn again under the same name."""
    draft = Draft(
        path=str(desk / "ballots.csv"), kind="ballots", items=ITEMS, items_confirmed=True,
        protect="ballot", option="borda", epsilon="1",
        dataset="people",
    )  # fmt: skip
    Ledger.create(desk / "budget.db", "people", "one ballot", 20).close()
    killed = subprocess.run([sys.executable, "-c", KILL, where, str(desk), json.dumps(draft.to_dict())])
    assert killed.returncode == -9
    client = studio_client(desk)
    found = [entry.state for entry in entries(desk)]
    assert found == ["committed" if where == "before it is finished" else "reserved"] * charged
    assert Ledger.open(desk / "budget.db").verify().entries
    place = desk / FOLDER / draft.id
    files = Releases(desk, desk / "budget.db").find(draft.id).files
    assert [name for name in files if name in ("result.csv", "result.json", "result.html")] == complete
    if "result.html" in complete:
        assert "</html>" in (place / "result.html").read_text()
    if "result.csv" in complete:
        assert read_sidecar(place / "result.csv")
        assert len(list(csv.reader((place / "result.csv").open()))) == 1 + len(ITEMS)
    page = client.get(f"/w/{draft.id}/release").text
    assert "This release was interrupted" in page
    assert ("stays spent" if charged else "Nothing was charged for it") in page
    assert "interrupted" in post(client, f"/w/{draft.id}/release").text
    assert len(entries(desk)) == charged
    again = post(client, f"/w/{draft.id}/again")
    assert name_of(again) != draft.id
    press(client, name_of(again))
    assert len(entries(desk)) == charged + 1


def test_a_full_disk_gives_the_charge_back_and_the_button_works_again(desk, client, monkeypatch):
    draft = prepare(client, desk, "comparisons")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("rankdp.publish.leaderboard.Leaderboard.results", full)
        page = press(client, draft, 422).text
        assert "No space left on device" in page
        assert "was given back" in page
    assert [entry.state for entry in entries(desk)] == ["cancelled"]
    assert "Released" in press(client, draft).text
    assert [entry.state for entry in entries(desk)] == ["cancelled", "committed"]


def test_a_failure_after_the_charge_is_told_and_not_repeated(desk, client, monkeypatch):
    draft = prepare(client, desk, "ballots")

    def broken(*_):
        raise InputError("the report cannot be made")

    with monkeypatch.context() as patched:
        patched.setattr("rankdp.publish.election_result.Election.rows", broken)
        press(client, draft, 422)
    page = press(client, draft).text
    assert "This release failed" in page
    assert "stays spent" in page
    assert len(entries(desk)) == 1


# the same as a script


def _facts(place, kind):
    sidecar = {"rankings": "private.csv", "scores": "noisy.csv"}.get(kind)
    facts = read_sidecar(place / sidecar) if sidecar else json.loads((place / "result.json").read_text())
    # these follow from released numbers, such as the noisy degrees by which rank chooses
    noisy = ("noisy_ballots", "noisy_comparisons", "ridge", "noise_variance", "mechanism", "link")
    parameters = {name: value for name, value in facts["parameters"].items() if name not in noisy}
    return facts["mechanism"], facts["guarantee"], json.dumps(parameters, sort_keys=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_script_makes_the_same_release(desk, client, kind, monkeypatch, capsys):
    draft = prepare(client, desk, kind, title="Result of 'it' $HOME")
    press(client, draft)
    place, here = desk / FOLDER / draft, desk / "again"
    made = _facts(place, kind)
    here.mkdir()
    monkeypatch.chdir(here)
    for _ in range(2):
        runpy.run_path(str(place / "release.py"))
        assert len(entries(desk)) == 2
        assert _facts(here, kind) == made
    said = capsys.readouterr().out
    assert "Charged once: epsilon 1 of data set 'people' stays spent" in said
    assert "nothing was drawn and nothing was charged" in said


@pytest.mark.long
def test_the_server_killed_while_it_releases(desk, tmp_path_factory):
    """Eight times, at moments spread over a release: what is charged covers what was begun, and files are whole."""
    Ledger.create(desk / "budget.db", "people", "one ballot", 100).close()
    command = [sys.executable, "-m", "rankdp", "studio", "--no-browser", "--directory", str(desk)]
    states = []
    for turn in range(8):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        address, _, key = server.stdout.readline().strip().partition("/?key=")
        with httpx.Client(base_url=address, headers={"Origin": address}, timeout=60, follow_redirects=True) as browser:
            until = time.monotonic() + 60
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if browser.get("/", params={"key": key}).status_code == 200:
                        break
                assert time.monotonic() < until
                time.sleep(0.05)
            if turn % 2:  # a server that has released before is quicker
                press(browser, prepare(browser, desk, "ballots"))
            draft = prepare(browser, desk, "ballots")
            seen, before = seen_on(browser, draft), len(entries(desk))
            killer = threading.Timer(0.02 + turn * (0.04 if turn % 2 else 0.15), server.kill)
            killer.start()
            with contextlib.suppress(httpx.TransportError):
                browser.post(f"/w/{draft}/release", data={"seen": seen})
            killer.join()
            server.wait()
        charged = len(entries(desk)) - before
        made = Releases(desk, desk / "budget.db").find(draft)
        states.append((made.state if made else None, charged))
        if made and made.state == "finished":
            assert charged == 1
        if made is None:
            assert charged == 0
        for name in made.files if made else ():
            if name == "result.csv":
                assert charged == 1
                assert read_sidecar(made.place / name) is None or len(read_sidecar(made.place / name)) > 3
            if name == "result.html":
                assert charged == 1
                assert (made.place / name).read_text().rstrip().endswith("</html>")
        Ledger.open(desk / "budget.db").verify()
    print(states)


def test_nothing_is_released_before_the_list_of_names_is_confirmed(desk, client):
    draft = name_of(post(client, "/open", path=str(desk / "votes.csv")))
    assert str(post(client, f"/w/{draft}/protect", protect="comparison").url).endswith("/file")
    page = post(client, f"/w/{draft}/file", 422, kind="comparisons", items="\n".join(ITEMS)).text
    assert "Confirm the list of names first" in page
    assert all(item in page for item in ITEMS)
    unconfirmed = Draft(
        path=str(desk / "votes.csv"), kind="comparisons", items=ITEMS, protect="comparison",
        option="wins", epsilon="1", dataset="people",
    )  # fmt: skip
    Ledger.create(desk / "budget.db", "people", "one comparison", 20).close()
    releases = Releases(desk, desk / "budget.db")
    with pytest.raises(InputError, match="nobody has confirmed"):
        releases.make(unconfirmed)
    assert entries(desk) == []
    assert releases.make(replace(unconfirmed, items_confirmed=True)).state == "finished"
