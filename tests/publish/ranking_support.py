"""What the tests of rank() share: made-up votes, and every combination of method and unit."""

import numpy as np
import pyarrow as pa
import pytest
from support import generator

from rankdp.publish import rank as ranking
from rankdp.rankers.links import link as known_link

COMBINATIONS = [(method, protect) for method in ranking.METHODS for protect in ("comparison", "outcome", "voter")]
combinations = pytest.mark.parametrize(("method", "protect"), COMBINATIONS)
ITEMS = tuple("abcdef")


def votes(random, count, strengths, per_voter=None, link="logistic", items=None):
    """Comparisons of random pairs; voter v casts rows v c to v c + c - 1."""
    items = np.array([f"i{k}" for k in range(len(strengths))] if items is None else items)
    left = random.integers(0, len(items), count)
    right = (left + random.integers(1, len(items), count)) % len(items)
    won = random.random(count) < known_link(link).cdf(strengths[left] - strengths[right])
    table = {"winner": items[np.where(won, left, right)], "loser": items[np.where(won, right, left)]}
    if per_voter:
        table["voter"] = [f"v{row // per_voter}" for row in range(count)]
    return pa.table(table)


def flipped(table, row=0):
    """The same comparisons with another outcome in one row."""
    winner, loser = table["winner"].to_pylist(), table["loser"].to_pylist()
    winner[row], loser[row] = loser[row], winner[row]
    return pa.table({"winner": winner, "loser": loser, "voter": table["voter"]})


def options(protect, **others):
    return {"protect": protect, "items": ITEMS, **({"max_per_voter": 5} if protect == "voter" else {}), **others}


def some_votes(request):
    """300 of them, seeded by the test's name."""
    return votes(generator(request), 300, np.linspace(-1, 1, 6), 5, items=ITEMS)
