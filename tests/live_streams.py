"""Neighbouring streams of votes for live boards: what one voter says in three updates, and what it costs."""

import itertools
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa

from rankdp.mechanisms.votes.running_totals import RunningTotals
from rankdp.publish.live import LiveBoard

ITEMS = ["a", "b", "c"]


def frame(rows):
    """Of (voter, winner, loser)."""
    return pa.table([[*map(str, column)] for column in zip(*rows, strict=True)], names=["voter", "winner", "loser"])


OTHERS = [
    frame([("x1", "a", "b"), ("x2", "b", "c")]),
    frame([("x1", "c", "a"), ("x3", "a", "c")]),
    frame([("x2", "a", "b"), ("x2", "b", "a"), ("x2", "c", "b")]),
]


def silent(self, items, bits):
    return np.zeros(1 + 2 * items, dtype=np.int64)


def nodes_of(path, batches, epsilon=1, boards=3, forget=False):
    """The nodes without noise, through files, bounding and counting; ``forget`` forgets what voters have used."""
    path.unlink(missing_ok=True)
    with mock.patch.object(RunningTotals, "noise", silent):
        live = LiveBoard.create(path, ITEMS, epsilon, max_per_voter=2, boards=boards)
        for batch in batches:
            live.add(batch)
            if forget:
                live._store.write(lambda writing: writing.run("DELETE FROM voters"))
        events = live._store.read(lambda writing: [body["node"] for body in writing.walk() if body["kind"] == "board"])
        law = live.totals
        live.close()
    return law, events


def loss(law, first, second):
    scales = [law.scale("count"), *(law.scale(kind) for kind in ("differences", "degrees") * len(ITEMS))]
    return sum(
        (
            abs(a - b) / scale
            for one, other in zip(first, second, strict=True)
            for a, b, scale in zip(one, other, scales, strict=True)
        ),
        Fraction(0),
    )


def batches_with(said):
    """The others' votes, and what one voter says in each of the three updates."""
    return [
        pa.concat_tables([other, frame([("v", *pair) for pair in pairs])]) if pairs else other
        for other, pairs in zip(OTHERS, said, strict=True)
    ]


SAID = [
    ((), (), ()),
    ((("a", "b"),) * 5, (("a", "b"),) * 5, (("a", "b"),) * 5),
    ((("b", "a"),) * 2, (("b", "a"),) * 3, ()),
    ((), (("c", "b"),), (("c", "b"), ("c", "a"))),
    ((("b", "c"),), (("b", "a"),), (("b", "a"),)),
    ((), (), (("b", "a"),) * 9),
]


def worst_loss(directory, forget=False):
    """The largest cost, at epsilon 1, of anything that a voter with at most 2 comparisons may say instead."""
    found = [nodes_of(directory / "live.db", batches_with(said), forget=forget) for said in SAID]
    return max(loss(law, one, other) for (law, one), (_, other) in itertools.combinations(found, 2))
