"""The file of a live board: its public terms, its released nodes, its open block, and what is secret in it.

``live`` says what each part is for, and what may be known of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rankdp.data.comparisons import Comparisons
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.running_totals import RunningTotals
from rankdp.privacy.bits import Bits, SecureBits, SeededBits
from rankdp.privacy.store import Store, Writing
from rankdp.publish import leaderboard
from rankdp.publish.live_scores import Totals
from rankdp.types import Longs


class LiveStates(Store):
    """The file."""

    application, what = 0x524B444C, "live board"  # "RKDL"
    tables = """
    CREATE TABLE IF NOT EXISTS open_block (one INTEGER PRIMARY KEY CHECK (one = 1), sums BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS voters (voter BLOB PRIMARY KEY, counted INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS batches (batch BLOB PRIMARY KEY, step INTEGER NOT NULL) WITHOUT ROWID
    """
    unwritten = "no vote is counted and nothing is released"


@dataclass(frozen=True, slots=True)
class LiveTerms:
    """What was agreed when the state was made, and how far it has come; all of it is public."""

    totals: RunningTotals
    seed: int | None
    payer: Mapping[str, Any] | None
    items: tuple[str, ...]
    since: tuple[int, ...]
    """The step at which each item joined."""
    step: int

    def bits(self, step: int) -> Bits:
        """Where the noise of a step comes from: the operating system, or the seed of a rehearsal."""
        return SecureBits() if self.seed is None else SeededBits(self.seed, f"/board {step}")


def check_number(items: tuple[str, ...]) -> None:
    """Refuse more items than a table of all pairs is made for."""
    leaderboard.check_request(len(items), 0.5, None)
    if len(items) > leaderboard.DENSE_UP_TO:
        raise Unsupported(f"a live board takes at most {leaderboard.DENSE_UP_TO:,} items, got {len(items):,}")


def check_joining(before: tuple[str, ...], now: tuple[str, ...], votes: Comparisons) -> None:
    """Items stay, in their order; others join behind them."""
    if now[: len(before)] != before or votes.items != now:
        gone = [name for name in before if name not in now]
        raise InputError(
            Setting("items"),
            " must begin with those of the live board so far, in their order, and may go on with new ones, "
            + (f"got a list without {gone[0]!r}" if gone else "got them in another order"),
        )


def updates(writing: Writing) -> list[dict[str, Any]]:
    """The updates, in order."""
    return [body for body in writing.walk() if body["kind"] == "board"]


def nodes_of(writing: Writing) -> list[Longs]:
    """The released node of every update."""
    return [np.array(body["node"], dtype=np.int64) for body in updates(writing)]


def totals_of(terms: LiveTerms, nodes: list[Longs]) -> Totals:
    """The noisy totals: the nodes that they consist of, added up; an item has none before it joined."""
    law = terms.totals

    def after(step: int) -> Longs:
        totals = np.zeros(1 + 2 * len(terms.items), dtype=np.int64)
        for node in law.nodes(step):
            totals[: len(nodes[node - 1])] += nodes[node - 1]
        return totals

    starts = sorted(set(terms.since))
    counts = [int(after(start - 1)[0]) for start in starts] + [int(after(terms.step)[0])]
    phases = {start: later - before for start, (before, later) in zip(starts, pairwise(counts), strict=True)}
    totals, since = after(terms.step), np.array(terms.since)
    draws = np.array([law.draws(terms.step, first) for first in terms.since])
    return Totals(law, terms.items, phases, totals[1::2], totals[2::2], since, draws)


def open_block_of(writing: Writing) -> Longs:
    """The noisy sum of the open block, empty where there are no blocks."""
    rows = writing.rows("SELECT sums FROM open_block")
    return np.frombuffer(rows[0][0], dtype="<i8").astype(np.int64) if rows else np.empty(0, np.int64)


def keep_open(writing: Writing, sums: Longs) -> None:
    """Put another sum in the place of the one that is kept."""
    writing.run("INSERT OR REPLACE INTO open_block VALUES (1, ?)", sums.astype("<i8").tobytes())
