"""What private single transferable votes cost a country: the Scottish council wards that RANKDP_DATA holds.

Every contest (``scottish_stv/*.blt``, with the seats of its first line) is counted exactly by the Scottish rule, and
with noise. A seated set is right if it is that of the exact count. How close a contest is: the smallest lead by which
its exact count put someone out or elected someone. Calibration: what results said about their winners beside how often
these were right, by rule, in five bins, on the same contests with one seat (runoffs say a lower bound). Synthetic
ballots: whether they seat the same, how far their margins are off, and how many ballots nobody else has cast.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Table
from rankdp.data.ballots import Ballots
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import SeededBits
from rankdp.publish.ballot_rules import vote_noise
from rankdp.publish.elections import ElectionRequest
from rankdp.publish.synthetic_ballots import synthetic_ballots
from rankdp.rankers.runoff import METHODS, Piles, Runoff, run

EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2))
_CALIBRATION = (Fraction(1, 50), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2))
_BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.000001)
_RULES = ("plurality", "borda", "schulze", "irv")


def table() -> Table:
    """The rows of `docs/scottish.md`."""
    start = time.perf_counter()
    rows = [*_seats(), *_synthetic(), *_calibration()]
    rows.append(("all", "", "seconds for all of it", f"{time.perf_counter() - start:.0f}"))
    return Table(("what", "setting", "measured", "value"), rows)


@cache
def contests() -> tuple[tuple[str, int, Ballots], ...]:
    """Name, seats and ballots of every contest that is there."""
    paths = sorted(Path(os.environ.get("RANKDP_DATA", ""), "scottish_stv").glob("*.blt"))
    return tuple(
        (path.stem, int(path.read_text("utf-8-sig").split()[1].strip(",")), Ballots.read(path)) for path in paths
    )


def runs() -> int:
    """How often each contest is drawn at each setting: once where there are hundreds."""
    return max(1, 180 // len(contests()))


def scottish(ballots: Ballots, seats: int, noise: Any = None, bits: Any = None) -> Runoff:
    """The count by the Scottish rule, exact or with noise."""
    piles, rounds = Piles(ballots, METHODS["scottish"]), iter(range(len(ballots.items)))

    def count(standing: Any, transfers: Any, held: Any) -> Any:
        tallies, number = piles.count(standing, transfers, held), next(rounds)
        return tallies if noise is None else noise.sample(tallies, bits, number)

    cast = ballots.count if noise is None or noise.protection.count_public else None
    return run(len(ballots.items), count, seats=seats, method="scottish", cast=cast)


def lead(counted: Runoff) -> float:
    """The smallest lead, in votes, that decided a round of an exact count."""
    leads = []
    for held in counted.rounds:
        votes = held.tallies / counted.unit
        standing = np.flatnonzero(held.standing)
        leads += [abs(float(votes[item]) - (counted.quota or 0)) for item in standing]
        if held.eliminated is not None:
            others = [item for item in standing if item != held.eliminated and item not in held.elected]
            leads.append(float(min(votes[others]) - votes[held.eliminated]))
    return min(leads)


def shares() -> dict[tuple[str, Fraction], tuple[float, float, list[float]]]:
    """By unit and epsilon: the share of right seats, the mean error of first preferences, leads where seats differ."""
    exact = [scottish(ballots, seats) for _, seats, ballots in contests()]
    found = {}
    for protect in ("ballot", "voter"):
        for epsilon in EPSILONS:
            right, errors, close = [], [], []
            for (_, seats, ballots), true in zip(contests(), exact, strict=True):
                public = len(ballots.items), BallotProtection(protect), epsilon, Fraction(0)
                noise = vote_noise(*public, rounds=len(ballots.items) - 1, unit=METHODS["scottish"])
                for seed in range(runs()):
                    made = scottish(ballots, seats, noise, SeededBits(seed))
                    same = set(made.elected) == set(true.elected)
                    right.append(same)
                    close += [] if same else [lead(true)]
                    off = made.rounds[0].tallies - true.rounds[0].tallies
                    errors.append(float(np.abs(off).mean() / true.unit))
            found[protect, epsilon] = float(np.mean(right)), float(np.mean(errors)), close
    return found


def _seats() -> Iterator[tuple[str, ...]]:
    typical = float(np.median([lead(scottish(ballots, seats)) for _, seats, ballots in contests()]))
    yield f"{len(contests())} contests", "exact", "smallest lead of a contest, median, votes", f"{typical:.1f}"
    for (protect, epsilon), (right, error, close) in shares().items():
        setting = f"{protect}, epsilon {float(epsilon):g}"
        yield "seats", setting, f"same set as the exact count, {runs()} x each", f"{right:.1%}"
        yield "first preferences", setting, "mean error, votes", f"{error:.1f}"
        if close:
            yield (
                "where seats differ",
                setting,
                "smallest lead of the contest, median, votes",
                f"{np.median(close):.1f}",
            )


def _synthetic() -> Iterator[tuple[str, ...]]:
    for protect in ("ballot", "voter"):
        right, errors, alone = [], [], []
        for _, seats, ballots in contests():
            table = Ballots.of(synthetic_ballots(ballots, 1, protect=protect, bits=SeededBits(1)).value)
            elected = [{one.items[item] for item in scottish(one, seats).elected} for one in (ballots, table)]
            right.append(elected[0] == elected[1])
            place = [table.items.index(name) for name in ballots.items]
            off = np.abs(table.margins()[place][:, place] - ballots.margins())[np.triu_indices(len(place), 1)]
            errors.append(off.mean() / ballots.count)
            alone.append([(one.weights == 1).sum() / one.count for one in (ballots, table)])
        setting, (before, after) = f"{protect}, epsilon 1", np.mean(alone, axis=0)
        yield "synthetic ballots", setting, "same seats as the exact count", f"{np.mean(right):.1%}"
        yield "synthetic ballots", setting, "mean error of a margin, of all ballots", f"{np.mean(errors):.2%}"
        yield "synthetic ballots", setting, "unique ballots before, and after", f"{before:.1%}, {after:.1%}"


def _calibration() -> Iterator[tuple[str, ...]]:
    for rule in _RULES:
        said, right = [], []
        for _, _, ballots in contests():
            true = ElectionRequest.of(None, rule).count(ballots).exact().value.winners
            for epsilon in _CALIBRATION:
                counted = ElectionRequest.of(epsilon, rule).count(ballots)
                for seed in range(runs()):
                    result = counted.draw(SeededBits(seed)).value
                    said.append(result.winners_probability or 0.0)
                    right.append(result.winners == true)
        for low, high in pairwise(_BINS):
            inside = [at for at, value in enumerate(said) if low <= value < high]
            if inside:
                told, held = np.mean([said[at] for at in inside]), np.mean([right[at] for at in inside])
                yield "calibration", f"{rule}, {len(inside)} results", "said, and right", f"{told:.0%}, {held:.0%}"


def picture(path: str) -> None:
    """The share of contests with the right seats, by epsilon and unit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    found = shares()
    for protect, colour in (("voter", "#0072B2"), ("ballot", "#D55E00")):
        values = [100 * found[protect, epsilon][0] for epsilon in EPSILONS]
        axes.plot([float(epsilon) for epsilon in EPSILONS], values, "o-", color=colour, label=f"--protect {protect}")
    axes.set(xscale="log", xlabel="epsilon", ylabel="% with the exact count's seats", ylim=(0, 102))
    axes.set_xticks([float(epsilon) for epsilon in EPSILONS], [f"{float(epsilon):g}" for epsilon in EPSILONS])
    axes.set_title(f"Private STV in {len(contests())} Scottish council wards")
    axes.legend(loc="lower right")
    figure.savefig(path)
