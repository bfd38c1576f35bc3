"""The studio without a browser: who may talk to it, and what its pages say (``test_studio_release``: what it makes)."""

from __future__ import annotations

import ast
import csv
import html
import json
import os
import re
import runpy
import shlex
import socket
import stat
from dataclasses import replace

import pytest
from studio_support import (
    FILES,
    ITEMS,
    KEY,
    PORT,
    entries,
    make_files,
    name_of,
    post,
    prepare,
    press,
    seen_on,
    studio_client,
    write,
)

import rankdp
from rankdp.cli import cli
from rankdp.data.atomic import read_sidecar
from rankdp.errors import InputError
from rankdp.privacy.ledger import Ledger
from rankdp.progress import tell
from rankdp.publish.ballot_rules import RULES
from rankdp_web.studio_draft import Draft
from rankdp_web.studio_pages import DRAFTS
from rankdp_web.studio_plan import answer, certainty, rounded_up
from rankdp_web.studio_progress import Progress
from rankdp_web.studio_release import FOLDER, Releases

pytestmark = pytest.mark.slow

KINDS = tuple(FILES)
one_kind = pytest.mark.parametrize(
    "kind", ["comparisons", *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS if kind != "comparisons")]
)


# who may talk to it


def test_without_the_key_there_is_nothing(desk, client):
    client.cookies.clear()
    for address in ("/", "/w/abc/release", "/static/studio.js"):
        assert client.get(address).status_code == 403
    assert client.get("/", params={"key": "wrong"}).status_code == 403
    client.cookies.set(f"rankdp-studio-{PORT}", "wrong")
    assert client.post("/open", data={"path": str(desk / "votes.csv")}).status_code == 403


def test_the_key_becomes_a_cookie_that_only_this_site_sends(client):
    reply = client.get("/", params={"key": KEY}, follow_redirects=False)
    assert reply.headers["location"] == "/"
    assert "HttpOnly" in reply.headers["set-cookie"]
    assert "SameSite=strict" in reply.headers["set-cookie"]


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", "", f"127.0.0.1:{PORT}.evil"])
def test_another_name_is_not_answered(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 421


def test_a_form_from_elsewhere_changes_nothing(desk, client):
    draft = prepare(client, desk, "scores")
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"http://localhost:{PORT}", ""):
        assert client.post(f"/w/{draft}/release", headers={"Origin": origin}).status_code == 403
    assert entries(desk) == []


def test_pages_load_nothing_from_elsewhere(client):
    reply = client.get("/")
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", reply.text)
    assert " style=" not in reply.text


# from file to release


@pytest.mark.parametrize("kind", KINDS)
def test_from_file_to_release(desk, client, kind):
    draft = prepare(client, desk, kind)
    assert "REHEARSAL" in client.get(f"/w/{draft}/rehearse").text
    assert entries(desk) == []
    page = press(client, draft).text
    assert "Charged once: epsilon 1 of data set &#39;people&#39; stays spent" in page
    (entry,) = entries(desk)
    assert entry.state == "committed"
    for name in re.findall(r'href="(files/[^"]+)"', page):
        assert client.get(f"/w/{draft}/{name}").content
    place = desk / FOLDER / draft
    assert read_sidecar(place / "result.csv")["guarantee"]["epsilon"] == "1"
    assert json.loads((place / "result.json").read_text())["guarantee"]["protects"] == entry.guarantee.protects
    assert (place / "result.png").read_bytes().startswith(b"\x89PNG")
    promised = Releases(desk, desk / "budget.db").find(draft).draft.promise.explain()
    assert read_sidecar(place / "result.csv")["guarantee"]["explanation"] == promised  # what was said before


@pytest.mark.parametrize("kind", KINDS)
def test_without_data(client, kind):
    reply = post(client, "/without", kind=kind, count="6")
    draft = name_of(reply)
    post(client, f"/w/{draft}/protect", protect="")
    if kind == "ballots":
        assert str(client.get(f"/w/{draft}/goal").url).endswith("/rule")
        assert "choose one of" in post(client, f"/w/{draft}/rule", 422, option="magic").text.lower()
        post(client, f"/w/{draft}/rule", option="schulze")
    found = post(client, f"/w/{draft}/goal", **{"goal": "pairs", "target-pairs": "80", "number": "500"})
    assert found.text.count('name="card"') == 4
    option = re.search(r'name="option" value="([\w-]+)" checked', found.text)[1]
    post(client, f"/w/{draft}/choose", epsilon="1", option=option)
    assert "REHEARSAL" in client.get(f"/w/{draft}/rehearse").text
    assert "There are no data yet" in client.get(f"/w/{draft}/release").text
    post(client, f"/w/{draft}/release", 422, seen=seen_on(client, draft))


def test_refusals_are_shown_above_the_form_and_charge_nothing(desk, client):
    for path, words in ((desk / "none.csv", "there is no such file"), (desk, "there is no such file")):
        assert words in post(client, "/open", 422, path=str(path)).text
    write(desk / "odd.csv", ["Q1", "Q2"], [["Tea", "Water"]])
    assert "Say below which column is which" in post(client, "/open", 422, path=str(desk / "odd.csv")).text
    assert "/file" in str(post(client, "/open", path=str(desk / "odd.csv"), columns="rank_1=Q1, rank_2=Q2").url)
    assert "must be NAME=COLUMN" in post(client, "/open", 422, path=str(desk / "odd.csv"), columns="rank_1").text
    draft = prepare(client, desk, "comparisons")
    assert "above 0" in post(client, f"/w/{draft}/choose", 422, epsilon="-1", option="wins").text
    assert "choose one of" in post(client, f"/w/{draft}/choose", 422, epsilon="1", option="magic").text.lower()
    assert "no budget for" in post(client, f"/w/{draft}/budget", 422, dataset="x").text
    assert "below 100%" in post(client, f"/w/{draft}/goal", 422, goal="pairs", **{"target-pairs": "100"}).text
    page = post(client, f"/w/{draft}/choose", epsilon="30", option="wins").text
    assert '<button class="main" disabled>' in page
    assert "does not fit" in post(client, f"/w/{draft}/budget", 422, dataset="people").text
    assert "short by" in press(client, draft, 422).text
    assert client.get("/w/none/goal").status_code == 404
    (desk / "votes.csv").write_text("voter,left,right,winner\nann,Tea,Tea,left\n")
    post(client, f"/w/{draft}/choose", epsilon="1", option="wins")
    assert "the box about damaged rows" in press(client, draft, 422).text
    assert entries(desk) == []
    assert Releases(desk, desk / "budget.db").find(draft) is None


def test_a_budget_for_another_unit_is_charged_only_by_conversion(desk, client):
    Ledger.create(desk / "budget.db", "people", "one comparison's outcome", 5).close()
    draft = prepare(client, desk, "comparisons")
    assert "must not pay for" in press(client, draft, 422).text
    post(client, f"/w/{draft}/budget", dataset="people", convert="on")
    assert "Released" in press(client, draft).text


# hostile names

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://evil")',
    "'; DROP TABLE items; --\"",
    "{{ 7 * 7 }}{% raw %}",
    "</script><script>alert(1)</script>",
    "../../etc/passwd",
)


@one_kind
def test_hostile_names(tmp_path, kind, monkeypatch, capsys):
    desk = tmp_path / '<b onclick="x">$(id)'
    desk.mkdir()
    make_files(desk, HOSTILE)
    hostile = desk / f"\"'><svg onload=alert(1)> `id` {FILES[kind]}"
    (desk / FILES[kind]).rename(hostile)
    client = studio_client(desk)
    monkeypatch.chdir(tmp_path)
    draft = prepare(client, desk, kind, items=HOSTILE, title="<script>alert(2)</script>{{ 7*7 }}", file=hostile.name)
    press(client, draft)
    for step in ("file", "protect", "goal", "rehearse", "release"):
        page = client.get(f"/w/{draft}/{step}").text
        assert not re.search(r"<(?:img src=x|svg onload|b onclick|script>alert)", page)
    assert "{{ 7*7 }}" in client.get(f"/w/{draft}/release").text  # shown, not computed
    start = client.get("/").text
    assert not re.search(r"<(?:svg onload|b onclick|script>alert)", start)
    place = desk / FOLDER / draft
    ast.parse((place / "release.py").read_text())
    runpy.run_path(str(place / "release.py"))
    assert "Charged once" in capsys.readouterr().out
    with (place / "result.csv").open(newline="") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert not any(cell.startswith(("=", "@")) for cell in cells)


def test_only_a_release_s_own_files_are_given_away(desk, client):
    draft = prepare(client, desk, "scores")
    press(client, draft)
    for name in ("..%2F..%2Fbudget.db", "%2e%2e%2fwork.json", "draft.json", "..", "none"):
        assert client.get(f"/w/{draft}/files/{name}").status_code == 404
    assert client.get(f"/w/..%2F{draft}/release").status_code == 404


STRANGE = (
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "1e-400",
    "1/3",
    "0x1",
    "9" * 5000,
    "\0",
    "é\ud7ff",
    "a,b=c",
    "~nobody/x",
)


@one_kind
def test_strange_values_get_a_sentence(desk, client, kind):
    """Whatever a form says, the answer is a page or a refusal, and nothing is charged."""
    draft = prepare(client, desk, kind)
    for value in STRANGE:
        forms = {
            "/open": {"path": value, "columns": value},
            "/without": {"kind": value, "count": value},
            f"/w/{draft}/file": {"kind": kind, "items": value, "confirmed": "on", "low": value, "high": "5"},
            f"/w/{draft}/protect": {"protect": value, "max_per_voter": value},
            f"/w/{draft}/goal": {"goal": value, "target-pairs": value, "target-winner": value, "number": value},
            f"/w/{draft}/rule": {"option": value},
            f"/w/{draft}/choose": {"card": value, "epsilon": value, "option": "auto"},
            f"/w/{draft}/keep": {"name": value, "total": value},
            f"/w/{draft}/budget": {"dataset": value},
            f"/w/{draft}/release": {"seen": value},
        }
        for address, form in forms.items():
            assert client.post(address, data=form).status_code in (200, 422)
        assert client.get("/", params={"at": value}).status_code in (200, 422)
        for step in ("goal", "budget", "rehearse"):
            assert client.get(f"/w/{draft}/{step}").status_code in (200, 422)
    assert entries(desk) == []


def test_names_that_are_not_text_are_left_out(desk, client):
    (desk / os.fsdecode(b"bad\xff.csv")).write_text("a,b\n")
    assert client.get("/").status_code == 200


# what is secret stays on the first page


def test_no_page_but_the_first_tells_anything_of_the_rows(tmp_path):
    pages = []
    for seed in (1, 2):
        desk = tmp_path / str(seed)
        desk.mkdir()
        make_files(desk, seed=seed)
        client = studio_client(desk)
        shown = {}
        for kind in KINDS:
            draft = prepare(client, desk, kind, budget="")
            file = client.get(f"/w/{draft}/file").text
            assert "NOT PRIVATE" in file
            for step in ("protect", "goal", "budget", "rehearse", "release"):
                text = client.get(f"/w/{draft}/{step}").text
                assert "NOT PRIVATE: counted" not in text
                text = text.replace(str(desk), "DESK").replace(draft, "WORK")
                shown[kind, step] = re.sub(r'name="seen" value="\w+"', "", text)
        pages.append(shown)
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("kind", "unit", "more", "shown"),
    [
        ("comparisons", "comparison", {}, "300"),
        ("comparisons", "comparison", {"drop": "on"}, ""),  # how many are left out may be a secret
        ("comparisons", "outcome", {"drop": "on"}, "300"),
        ("comparisons", "voter", {}, ""),
        ("ballots", "ballot", {}, "120"),
        ("ballots", "voter", {}, ""),
    ],
)
def test_a_secret_number_of_rows_is_asked_for_and_not_told(desk, client, kind, unit, more, shown):
    draft = name_of(post(client, "/open", path=str(desk / FILES[kind])))
    post(client, f"/w/{draft}/file", items="\n".join(ITEMS), confirmed="on", kind=kind, **more)
    page = post(client, f"/w/{draft}/protect", protect=unit).text
    if kind == "ballots":
        page = post(client, f"/w/{draft}/rule", option="borda").text
    assert re.search(r'name="number"[^>]* value="(\d*)"', page)[1] == shown


# the planner


def test_what_is_proposed_meets_the_goal():
    """The epsilon is that of the option that is proposed, not of the planner's best."""
    names = tuple(f"item {number}" for number in range(12))
    draft = Draft(kind="rankings", items=names, protect="position", goal="pairs", target=0.8)
    found = answer(draft)
    assert found.option == "auto"
    assert [card.name for card in found.cards] == ["Strict", "Balanced", "Loose"]
    taken = rankdp.mechanism("auto", 12, found.cards[1].epsilon)
    assert 0.8 <= taken.expected_concordance() < 0.81
    draft = Draft(kind="comparisons", items=names, protect="comparison", goal="pairs", target=0.9, number=3000)
    found = answer(draft)
    assert found.option == "bradley-terry"
    epsilon = found.cards[1].epsilon
    made = rankdp.plan("comparisons", items=12, comparisons=3000, protect="comparison", epsilon=epsilon)
    predicted = {one.name: one for one in made.choices}[found.option].accuracy["pairs"]
    assert predicted == pytest.approx(0.9, abs=0.01)  # both are simulated, with an error of about a point


def test_a_goal_that_cannot_be_reached_is_called_so_and_no_epsilon_is_recommended_that_buys_nothing():
    names = tuple(f"item {number}" for number in range(12))
    draft = Draft(kind="comparisons", items=names, protect="comparison", goal="winner", target=0.95, number=100)
    found = answer(draft)
    assert found.said.startswith("No epsilon reaches this goal: ")
    strict, balanced, loose = (float(card.epsilon) for card in found.cards)
    assert strict < balanced < loose
    values = {curve.name: curve.values for curve in found.curves}["bradley-terry"]
    knee = next(e for e, value in zip(found.epsilons, values, strict=True) if value >= max(values) - 0.01)
    assert balanced == pytest.approx(knee, rel=0.01)
    assert balanced < found.epsilons[-1]


def test_progress_names_the_pass(monkeypatch):
    clock = iter([0.0, 0.0, 20.0, 21.0, 22.0, 23.0]).__next__
    monkeypatch.setattr("rankdp_web.studio_progress.time.monotonic", clock)
    progress = Progress()
    with progress.of("Opening"):
        tell("reading", 90, 100)
        tell("reading", 89, 100)
        tell("reading", 40, 100)
        assert progress.words() == "Opening, pass 2: 40%, about 3 s more."
    assert progress.words() == ""


def test_what_protects_almost_nothing_is_not_recommended():
    names = tuple(f"item {number}" for number in range(12))
    draft = Draft(kind="ballots", items=names, protect="ballot", option="schulze", goal="winner", number=100)
    found = answer(draft)
    assert float(found.cards[1].epsilon) > 5
    assert not any(card.recommended for card in found.cards)
    assert "lower the goal, or collect more data" in found.said
    found = answer(replace(draft, number=100_000))
    assert [card.recommended for card in found.cards] == [False, True, False]


def test_a_curve_never_falls_where_epsilon_grows():
    names = tuple(f"item {number}" for number in range(60))
    found = answer(Draft(kind="comparisons", items=names, protect="comparison", goal="winner", number=9000))
    assert all(list(curve.values) == sorted(curve.values) for curve in found.curves)


def test_names_that_rows_use_are_taken_out_only_with_their_rows(desk, client):
    draft = name_of(post(client, "/open", path=str(desk / "votes.csv")))
    form = {"kind": "comparisons", "items": "\n".join(ITEMS[1:]), "confirmed": "on"}
    assert f"Some comparisons name {ITEMS[0]}: skip them" in post(client, f"/w/{draft}/file", 422, **form).text
    assert str(post(client, f"/w/{draft}/file", drop="on", **form).url).endswith("/protect")
    draft = name_of(post(client, "/open", path=str(desk / "ballots.csv")))
    form["kind"] = "ballots"
    assert f"The ballots name {ITEMS[0]}: put back" in post(client, f"/w/{draft}/file", 422, drop="on", **form).text


def test_a_refused_form_about_a_file_keeps_what_was_typed(desk, client):
    draft = name_of(post(client, "/open", path=str(desk / "votes.csv")))
    form = {"kind": "comparisons", "items": "Coffee\nWater\nNectar", "confirmed": "on"}
    refused = post(client, f"/w/{draft}/file", 422, **form).text
    assert "Coffee\nWater\nNectar</textarea>" in refused
    assert 'name="confirmed" required checked' in refused
    assert "Nectar" not in client.get(f"/w/{draft}/file").text
    draft = name_of(post(client, "/open", path=str(desk / "scores.csv")))
    refused = post(client, f"/w/{draft}/file", 422, kind="scores", low="6", high="1", clip="on").text
    assert 'name="low" value="6"' in refused
    assert 'name="clip" checked' in refused
    assert "cannot be read as poems" in post(client, f"/w/{draft}/file", 422, kind="poems").text


def test_which_outcomes_are_missing_stays_secret(desk, client):
    rows = [["ann", "Tea", "Coffee", "left"], ["bob", "Tea", "Juice", ""], ["eve", "Water", "Juice", "right"]]
    write(desk / "odd.csv", ["voter", "left", "right", "winner"], rows)
    draft = name_of(post(client, "/open", path=str(desk / "odd.csv")))
    post(client, f"/w/{draft}/file", kind="comparisons", items="\n".join(ITEMS), confirmed="on", drop="on")
    assert "would tell which" in post(client, f"/w/{draft}/protect", 422, protect="outcome").text
    post(client, f"/w/{draft}/protect", protect="comparison")


def test_drafts_survive_the_studio(desk):
    draft = prepare(studio_client(desk), desk, "comparisons", epsilon="0.7")
    again = studio_client(desk)
    assert "Not finished yet" in again.get("/").text
    assert "votes.csv" in again.get("/").text
    assert "<dd>0.7</dd>" in again.get(f"/w/{draft}/release").text
    assert "Released" in press(again, draft).text
    assert "Not finished yet" not in again.get("/").text


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_drafts_name_items_of_the_file_and_are_for_their_owner_alone(desk, client):
    name = name_of(post(client, "/open", path=str(desk / FILES["comparisons"])))
    place = desk / FOLDER / DRAFTS
    assert json.loads((place / f"{name}.json").read_text())["items"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    place.chmod(0o755)  # as an earlier version left it
    name_of(post(client, "/open", path=str(desk / FILES["comparisons"])))
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_damaged_rows_are_decided_first(desk, client):
    rows = [["ann", "Tea", "Coffee", "left"], ["bob", "Tea", "Tea", "left"], ["eve", "Water", "Juice", "right"]]
    write(desk / "odd.csv", ["voter", "left", "right", "winner"], rows)
    draft = name_of(post(client, "/open", path=str(desk / "odd.csv")))
    assert "Skip the damaged rows (1 of 3)" in client.get(f"/w/{draft}/file").text
    form = {"kind": "comparisons", "items": "\n".join(ITEMS), "confirmed": "on"}
    assert "damaged rows: skip them" in post(client, f"/w/{draft}/file", 422, **form).text
    assert str(post(client, f"/w/{draft}/file", drop="on", **form).url).endswith("/protect")


def test_whole_rankings_are_protected_too(desk, client):
    draft = name_of(post(client, "/open", path=str(desk / "rankings.csv")))
    post(client, f"/w/{draft}/file", kind="rankings", items="\n".join(ITEMS), confirmed="on")
    post(client, f"/w/{draft}/protect", protect="ranking")
    post(client, f"/w/{draft}/goal", goal="pairs", **{"target-pairs": "80", "number": "120"})
    post(client, f"/w/{draft}/choose", epsilon="2", option="auto")
    post(client, f"/w/{draft}/budget", dataset="")
    assert "REHEARSAL" in client.get(f"/w/{draft}/rehearse").text
    page = press(client, draft).text
    assert "--protect ranking" in page
    promised = read_sidecar(desk / FOLDER / draft / "private.csv")["guarantee"]
    assert (promised["protects"], promised["epsilon"]) == ("one whole ranking", "2")
    assert promised["explanation"] == Releases(desk, desk / "x").find(draft).draft.promise.explain()


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_on_the_last_page_is_one_that_the_program_knows(desk, client, kind):
    draft = prepare(client, desk, kind)
    press(client, draft)
    page = client.get(f"/w/{draft}/release").text
    words = shlex.split(html.unescape(re.search(r'<pre id="command">(.*?)</pre>', page, re.S)[1]))
    assert words[0] == "rankdp"
    command = cli.commands[words[1]] if hasattr(cli, "commands") else cli.get_command(None, words[1])
    made = command.make_context(words[1], words[2:])
    assert made.params["epsilon"] == "1"


def test_partial_rankings_are_planned_and_promised_for_their_length(desk, client):
    names = [f"item {number}" for number in range(8)]
    write(desk / "partial.csv", ["rank_1", "rank_2", "rank_3"], [[*names[row % 6 :][:3]] for row in range(60)])
    draft = name_of(post(client, "/open", path=str(desk / "partial.csv")))
    post(client, f"/w/{draft}/file", kind="rankings", items="\n".join(names), confirmed="on", listed_items_public="on")
    post(client, f"/w/{draft}/protect", protect="position")
    page = post(client, f"/w/{draft}/goal", goal="pairs", **{"target-pairs": "80", "number": "60"}).text
    assert "for a ranking of 3 items" in page
    post(client, f"/w/{draft}/choose", epsilon="2", option="auto")
    assert "which items a person listed" in client.get(f"/w/{draft}/release").text.lower()
    assert "REHEARSAL" in client.get(f"/w/{draft}/rehearse").text
    page = press(client, draft).text
    assert "Released" in page
    promised = read_sidecar(desk / FOLDER / draft / "private.csv")["guarantee"]
    assert promised["explanation"] == Releases(desk, desk / "x").find(draft).draft.promise.explain()


def test_certainty():
    assert certainty(1) == "A snooper who was 50:50 can become at most 73.2% sure."
    assert certainty(20) == "A snooper who was 50:50 can become all but certain."
    assert [rounded_up(value) for value in (0.35111, 1.0, 12.341, 0.02)] == ["0.352", "1", "12.4", "0.02"]


# the command


def test_the_command_refuses_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(InputError, match="cannot be listened on"):
            cli.main(["studio", "--no-browser", "--port", port], standalone_mode=False)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_is_asked_for_goals_that_it_has_a_plan_for(desk, client, rule):
    draft = name_of(post(client, "/open", path=str(desk / "ballots.csv")))
    post(client, f"/w/{draft}/file", items="\n".join(ITEMS), confirmed="on", kind="ballots")
    post(client, f"/w/{draft}/protect", protect="ballot")
    post(client, f"/w/{draft}/rule", option=rule)
    offered = re.findall(r'name="goal" value="([\w-]+)"', client.get(f"/w/{draft}/goal").text)
    assert offered[0] == "winner"
    assert ("pairs" in offered) == (rule not in ("irv", "stv"))
    for goal in offered:
        asked = {f"target-{goal}": "25" if goal == "tally" else "80"}
        assert "Balanced" in post(client, f"/w/{draft}/goal", goal=goal, number="300", **asked).text


def test_the_ends_of_what_a_budget_may_be_are_allowed(desk, client):
    draft = prepare(client, desk, "scores", budget="")
    page = post(client, f"/w/{draft}/keep", 422, name="less", total="0.0005").text
    assert "The total epsilon must be between 0.001 and 1,000,000, got 0.0005." in page
    for total in ("0.001", "1000000"):
        post(client, f"/w/{draft}/keep", name=f"a budget of {total}", total=total)


def test_scores_outside_the_bounds_are_decided_before_anything_else(desk, client):
    draft = name_of(post(client, "/open", path=str(desk / FILES["scores"])))
    bounds = {"kind": "scores", "low": "2", "high": "3"}
    assert "Some scores are not between 2 and 3: " in post(client, f"/w/{draft}/file", 422, **bounds).text
    assert str(post(client, f"/w/{draft}/file", **bounds, clip="on").url).endswith("/protect")
