"""What is promised about elections, measured: noise against other noise, and results on published ballots.

Variances are those of draws, of score differences (Borda) or of all margins together. Joseph and Yu (2023)
are in ``rivals.scores``. The results need the data sets in
$RANKDP_DATA: the ballots of Dublin North 2002, Debian's leader elections, AGH course choices (PrefLib) and sushi.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankdp
from benchmarks.report import Table, verdict
from benchmarks.rivals.scores import cylinder
from rankdp.data.ballots import SHARES, Ballots
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.selection import PermuteAndFlip
from rankdp.privacy.bits import SeededBits
from rankdp.publish.elections import ElectionRequest
from rankdp.rankers.runoff import Piles, run

_DRAWS, _RUNS, _TABLES = 20_000, 200, 10
_VOTER = BallotProtection("voter")
_IRISH = "preflib_irish2002/dublin_north_2002.csv"
_CHOICES = {
    "sushi": "sushi/sushi3a_rankings.csv",
    "AGH 2003": "preflib_agh_courses/agh_2003.csv",
    "AGH 2004": "preflib_agh_courses/agh_2004.csv",
    **{
        f"Debian {year}": f"preflib_debian/debian_{year}_leader.csv"
        for year in (2002, 2003, 2005, 2006, 2007, 2010, 2012)
    },
    "Debian's logo": "preflib_debian/debian_logo.csv",
}

Row = tuple[str, str, str, str]
Numbers = NDArray[Any]


def table() -> Table:
    """Every promise with its bar."""
    rows = [*_noise(), *_on_data(_IRISH, _irish)]
    for name, path in _CHOICES.items():
        rows += _on_data(path, lambda ballots, name=name: _sureness(name, ballots))
    return Table(("what", "measured", "target", "met"), rows)


def _on_data(path: str, measure: Callable[[Ballots], Iterator[Row]]) -> Iterator[Row]:
    held = Path(os.environ.get("RANKDP_DATA", "../shared/data")) / path
    if held.is_file():
        yield from measure(Ballots.read(held))


def _at_most(what: str, value: float, bar: float, show: str = ".2f") -> Row:
    return what, format(value, show), f"at most {format(bar, show)}", verdict(value <= bar)


def _at_least(what: str, value: float, bar: float) -> Row:
    return what, f"{value:.1%}", f"at least {bar:.0%}", verdict(value >= bar)


def _noise() -> Iterator[Row]:
    random = np.random.default_rng(1)
    for m, laplace_bar, cylinder_bar in ((5, 0.55, 0.72), (10, 0.54, 0.84), (20, 0.55, 0.92)):
        ours = _differences(NoisyBorda(m, _VOTER, "0.1").noise(_DRAWS, SeededBits(m)))
        laplace = _differences(random.laplace(scale=m * m // 2 / 0.1, size=(_DRAWS, m)))
        yield _at_most(f"Borda, {m} candidates: variance over centred Laplace noise", ours / laplace, laplace_bar)
        theirs = _differences(cylinder(m, 0.1, _DRAWS, random))
        yield _at_most(f"Borda, {m} candidates: variance over Joseph and Yu's", ours / theirs, cylinder_bar)
    for m, bar in ((10, 0.72), (50, 0.53)):
        mechanism = NoisyMargins(m, _VOTER, 1, "1e-6")
        drawn = mechanism.noise(_DRAWS // m, SeededBits(m))[:, *np.triu_indices(m, 1)]
        assert mechanism.scores.rho is not None
        alone = m * (m - 1) / 2 / (2 * float(mechanism.scores.rho))
        yield _at_most(f"margins, {m} candidates: variance over Gaussian noise on pairs", drawn.var() / alone, bar)
    votes = np.round(100 / np.arange(1, 11) / sum(1 / np.arange(1, 11))).astype(np.int64)
    gaps = votes.max() - votes
    flip = float(PermuteAndFlip(_VOTER, 1, "0.2").probabilities(votes) @ gaps)
    exponential = float(np.exp(-0.2 * gaps) / np.exp(-0.2 * gaps).sum() @ gaps)
    yield _at_most("one winner of 100 votes, epsilon 0.2: regret over the exponential one's", flip / exponential, 0.6)


def _differences(noise: Numbers) -> float:
    """Half the mean variance of a difference of two scores."""
    centred = noise - noise.mean(axis=1, keepdims=True)
    return float((centred**2).sum(axis=1).mean() / (noise.shape[1] - 1))


def _request(rule: str, protect: str, seats: int = 1, epsilon: Fraction | int = 1) -> ElectionRequest:
    return ElectionRequest.of(epsilon, rule, protect, seats=seats)


def _irish(ballots: Ballots) -> Iterator[Row]:
    true = run(12, Piles(ballots).count)
    order = tuple(ballots.items[item] for item in true.order)
    elected = run(12, Piles(ballots).count, seats=4, method="gregory").elected
    four = {ballots.items[item] for item in elected}
    for protect, right_bar, error_bar in (("voter", 0.95, 15.0), ("ballot", 0.8, 30.0)):
        counted, right, errors = _request("irv", protect).count(ballots), 0, []
        for seed in range(_RUNS):
            result = counted.draw(SeededBits(seed)).value
            right += result.items == order
            for ours, theirs in zip(result.rounds, true.rounds, strict=True):
                if set(ours.tallies) != {ballots.items[item] for item in np.flatnonzero(theirs.standing)}:
                    continue  # others stand: there is no true tally to compare with
                exact = {ballots.items[i]: units / SHARES for i, units in enumerate(theirs.tallies.tolist())}
                errors += [abs(votes - exact[name]) for name, votes in ours.tallies.items()]
        yield _at_least(f"Dublin North, instant runoff, {protect}: whole order right", right / _RUNS, right_bar)
        yield _at_most(f"Dublin North, instant runoff, {protect}: mean error, votes", float(np.mean(errors)), error_bar)
        counted = _request("stv", protect, 4).count(ballots)
        same = sum(set(counted.draw(SeededBits(seed)).value.winners) == four for seed in range(_RUNS))
        yield _at_least(f"Dublin North, four seats, {protect}: the right four", same / _RUNS, 0.95)
    yield from _synthetic(ballots, order)


def _synthetic(ballots: Ballots, order: tuple[str, ...]) -> Iterator[Row]:
    n, upper = ballots.count, np.triu_indices(12, 1)
    first, margins = ballots.first_preferences() / SHARES, ballots.margins()[upper]
    worst, errors, same = [], [], 0
    for seed in range(_TABLES):
        made = Ballots.of(rankdp.synthetic_ballots(ballots, 1, bits=SeededBits(seed)).value)
        worst.append(float(np.abs(made.first_preferences() / SHARES - first).max()))
        errors.append(float(np.abs(made.margins()[upper] - margins).mean()))
        counted = run(12, Piles(made).count)
        same += tuple(made.items[item] for item in counted.order) == order
    yield _at_most("synthetic ballots: largest error of first places, of n, %", 100 * float(np.mean(worst)) / n, 0.2)
    yield _at_most("synthetic ballots: mean error of margins, of n, %", 100 * float(np.mean(errors)) / n, 1.5)
    yield _at_least("synthetic ballots: same order of an instant runoff", same / _TABLES, 0.5)
    lists = [[ballots.items[item] for item in row if item >= 0] for row in ballots.orders]
    short = Ballots.from_orders([row[:3] for row in lists], ballots.items, ballots.weights.tolist())
    cut = float(np.abs(short.margins()[upper] - margins).mean())
    yield ("three places shown, no promise: mean error of margins, of n, %", f"{100 * cut / n:.2f}", "", "")
    each = rankdp.Rankings.from_orders(np.repeat(ballots.orders, ballots.weights, axis=0), ballots.items)
    local = Ballots.of(rankdp.privatize(each, 1, listed_items_public=True, bits=SeededBits(1)).value)
    off = float(np.abs(local.margins()[upper] - margins).mean())
    yield ("privatize, epsilon 1 for a position: mean error of margins, of n, %", f"{100 * off / n:.2f}", "", "")


def _sureness(name: str, ballots: Ballots) -> Iterator[Row]:
    """Whether intervals hold the exact scores and ranks, and whether the probability of the winner is true."""
    held, ranked, said, right = [], [], [], []
    for rule in ("borda", "kemeny", "plurality"):
        true = _request(rule, "ballot", epsilon=10**5).count(ballots).draw(SeededBits(0)).value
        places = {item: place for place, item in enumerate(true.items, 1)}
        for size in (50, 200, 1000):
            counted = _request(rule, "ballot", epsilon=Fraction(size) / ballots.count).count(ballots)
            for seed in range(_RUNS // 5):
                result = counted.draw(SeededBits(seed)).value
                for row, item in enumerate(result.items):
                    held.append(result.low[row] <= true.scores[places[item] - 1] <= result.high[row])
                    ranked.append(result.rank_low[row] <= places[item] <= result.rank_high[row])
                said.append(result.winners_probability)
                right.append(result.winners == true.winners)
    yield _at_least(f"{name}: exact scores inside their 95% intervals", float(np.mean(held)), 0.94)
    yield _at_least(f"{name}: exact ranks inside their 95% intervals", float(np.mean(ranked)), 0.95)
    yield (
        f"{name}: mean probability of the winner, and how often right",
        f"{np.mean(said):.1%}, {np.mean(right):.1%}",
        "",
        "",
    )
