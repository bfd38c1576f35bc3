"""Files for the studio's tests, and a client that has its key."""

from __future__ import annotations

import csv
import random
import re
import warnings

from rankdp.privacy.ledger import Ledger
from rankdp_web.studio_app import studio_app
from rankdp_web.studio_pages import Studio

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Using `httpx`")  # still right for the oldest Starlette that we support
    from starlette.testclient import TestClient

ITEMS = ("Tea", "Coffee", "Water", "Juice")
KEY, PORT = "k" * 43, 8123
FILES = {"ballots": "ballots.csv", "comparisons": "votes.csv", "rankings": "rankings.csv", "scores": "scores.csv"}


def write(path, head, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def make_files(directory, items=ITEMS, seed=1):
    """One file of each kind, of made-up people."""
    draw = random.Random(seed)
    ranks = [f"rank_{place}" for place in range(1, len(items) + 1)]
    orders = [draw.sample(items, len(items)) for _ in range(120)]
    write(directory / "ballots.csv", ranks, orders)
    write(directory / "rankings.csv", ["voter", *ranks], [[f"v{row}", *order] for row, order in enumerate(orders)])
    votes = [[f"v{row % 40}", *draw.sample(items, 2), draw.choice(["left", "right"])] for row in range(300)]
    write(directory / "votes.csv", ["voter", "left", "right", "winner"], votes)
    write(directory / "scores.csv", ["name", "score"], [[item, draw.randint(2, 5)] for item in items])


def studio_client(directory):
    """A browser with the key, without a browser."""
    app = studio_app(Studio(directory, directory / "budget.db"), KEY, PORT)
    origin = f"http://127.0.0.1:{PORT}"
    client = TestClient(app, base_url=origin, headers={"Origin": origin}, raise_server_exceptions=True)
    assert client.get("/", params={"key": KEY}).status_code == 200
    return client


def post(client, address, status=200, **form):
    reply = client.post(address, data=form)
    assert reply.status_code == status, reply.text
    return reply


def name_of(reply):
    """The draft that an address is about."""
    return re.search(r"/w/(\w+)/", str(reply.url))[1]


SAID = {
    "ballots": {"kind": "ballots"},
    "comparisons": {"kind": "comparisons"},
    "rankings": {"kind": "rankings"},
    "scores": {"kind": "scores", "low": "1", "high": "6"},
}
PROTECT = {"ballots": "ballot", "comparisons": "comparison", "rankings": "position", "scores": "score"}
OPTION = {"ballots": "borda", "comparisons": "bradley-terry", "rankings": "auto", "scores": "laplace"}


def prepare(client, directory, kind, *, epsilon="1", items=ITEMS, budget="people", title="", option=None, file=None):
    """Go from a file to the page with the button; the name of the draft."""
    opened = post(client, "/open", path=str(directory / (file or FILES[kind])))
    draft = name_of(opened)
    post(client, f"/w/{draft}/file", items="\n".join(items), confirmed="on", **SAID[kind])
    post(client, f"/w/{draft}/protect", protect=PROTECT[kind])
    if kind == "ballots":
        post(client, f"/w/{draft}/rule", option=option or OPTION[kind])
    post(client, f"/w/{draft}/goal", goal="pairs", **{"target-pairs": "80", "number": "300"})
    post(client, f"/w/{draft}/choose", epsilon=epsilon, option=option or OPTION[kind], title=title)
    if budget and f'value="{budget}"' not in client.get(f"/w/{draft}/budget").text:
        client.post(f"/w/{draft}/keep", data={"name": budget, "total": "20"})
    post(client, f"/w/{draft}/budget", dataset=budget)
    return draft


def press(client, draft, status=200):
    """The button, as the page shows it."""
    seen = re.search(r'name="seen" value="(\w+)"', client.get(f"/w/{draft}/release").text)
    return post(client, f"/w/{draft}/release", status, seen=seen[1] if seen else "")


def entries(directory):
    """The charges of the budget that drafts are charged to."""
    return Ledger.open(directory / "budget.db", "people").history()


def seen_on(client, draft):
    found = re.search(r'name="seen" value="(\w+)"', client.get(f"/w/{draft}/release").text)
    return found[1] if found else ""
