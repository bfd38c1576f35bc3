"""Synthetic rankings for demonstrations and tests, of no real people."""

from __future__ import annotations

import numpy as np

from rankdp.data.rankings import Rankings

#: what the voters of the built-in poll order: "What should our town build next?"
POLL = {
    "library": (1.6, 0.4),
    "park": (1.3, 1.1),
    "cycle paths": (1.0, 0.2),
    "swimming pool": (0.6, 1.5),
    "playground": (0.1, 1.8),
    "market hall": (0.2, 0.0),
    "youth centre": (-0.4, 0.3),
    "car park": (-1.2, -0.9),
}


def town_poll(voters: int = 2000, seed: int = 2024) -> Rankings:
    """Complete rankings of eight projects by two groups of people, two thirds and one third of them.

    Each voter's utility is the group's plus Gumbel noise, so within a group the rankings follow Plackett and Luce.
    """
    random = np.random.default_rng(seed)
    group = (random.random(voters) < 1 / 3).astype(int)
    utility = np.array(list(POLL.values())).T[group] + random.gumbel(size=(voters, len(POLL)))
    return Rankings.from_orders(np.argsort(-utility, axis=1), items=list(POLL), voters=np.arange(1, voters + 1))
