"""How often intervals and ranges of ranks hold the truth, and how well the probability to be best is calibrated.

Votes are drawn anew, from the Bradley-Terry model, on designs that chose nothing in this library.

- *Real designs* (``RANKDP_DATA``): who met whom is as in the data; the true strengths are the fit to the real votes.
  Rankings count as all of their pairs. A voter with more comparisons than is said has less weight on each.
- *Synthetic designs*: 200 comparisons per item (voters: 2,000), strengths uniform on [-1, 1]. *popular*: the share of
  an item falls like one over its rank; *late*: half of the items joined one by one; *matched*: pairs have the weight
  exp(-2 gap); *idle*: a tenth of the items was never compared; *wide*: strengths uniform on [-3, 3].

Zero is the strength of the average opponent, by the true degrees.

``python -m benchmarks coverage --boards N`` draws N boards per cell; a tenth of that for 300 items, at least 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Table
from rankdp.data.counts import PairCounts
from rankdp.privacy.bits import SeededBits
from rankdp.publish.rank import BoardRequest, CountedVotes
from rankdp.rankers.bradley_terry import fit
from rankdp_papers.experiment import data_home

BOARDS = 100
EPSILONS = ("0.5", "1", "4")
SIZES = (25, 100, 300)
DESIGNS = ("even", "popular", "late", "matched", "idle", "wide")
_PER_ITEM, _MOST = 200, 10
_REAL = {
    "arena140k_votes": None,
    "llmfao_votes": 50,
    "nascar2002": 903,
    "cems": 15,
    "immigration": 6,
    "sushi": 45,
    "carconf": 15,
    "preflib_agh_courses": 36,
    "preflib_debian": 21,
    "preflib_irish2002": 66,
}
"""By data set: the most comparisons of a voter, None where the votes have no voters."""
_FILES = {
    "arena140k_votes": "votes",
    "nascar2002": "rankings",
    "sushi": "sushi3a_rankings",
    "carconf": "rankings",
    "preflib_agh_courses": "agh_2003",
    "preflib_debian": "debian_2005_leader",
    "preflib_irish2002": "dublin_north_2002",
}
_NAMES = {"immigration": "item", "cems": "item", "llmfao_votes": "item", "arena140k_votes": "model"}

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Votes:
    """Who met whom, row by row, and the truth."""

    truth: Floats
    first: Ints
    second: Ints
    weights: Floats | None = None
    """Of each row, at most 1; None where all have 1."""

    def drawn(self, random: np.random.Generator, steps: int) -> PairCounts:
        """Counts of outcomes that are drawn anew, a comparison in so many steps."""
        won = random.random(len(self.first)) < 1 / (1 + np.exp(self.truth[self.second] - self.truth[self.first]))
        each = np.full(len(won), steps) if self.weights is None else (steps * self.weights).astype(np.int64)
        sides = 2 * each * won, 2 * each * ~won
        return PairCounts.from_pairs(self.first, self.second, *sides, items=len(self.truth), steps=steps)

    def centred(self) -> Floats:
        """The true strengths, 0 for the average opponent."""
        degrees = sum(np.bincount(end, self.weights, len(self.truth)) for end in (self.first, self.second))
        return np.asarray(self.truth - self.truth @ degrees / degrees.sum())


@dataclass(frozen=True)
class Cell:
    """What is released of what."""

    design: str
    items: int
    comparisons: int
    unit: str
    most: int | None
    epsilon: str
    pairing: str = "unknown"


@dataclass(frozen=True)
class Found:
    """Shares over all boards of a cell."""

    cell: Cell
    boards: int
    covered: float
    error: float
    ranks: float
    width: float
    rms: float
    said: float
    right: float


def table(boards: int = BOARDS) -> Table:
    """A line for every design, unit and statement about pairs; the last columns are means over the epsilons."""
    header = (
        "design",
        "items",
        "comparisons",
        "protect",
        "pairing",
        "boards",
        *(f"eps {epsilon}" for epsilon in EPSILONS),
    )
    found = (measured(cell, votes, _boards(cell, boards)) for cell, votes in cells())
    groups = itertools.groupby(found, lambda one: replace(one.cell, epsilon=""))
    lines = [line(list(group)) for _, group in groups]
    return Table((*header, "ranks hold", "half-width", "rms error", "best: stated / right"), lines)


def line(found: list[Found]) -> tuple[str, ...]:
    """The cells of a line: one design at every epsilon.

    Parameters
    ----------
    found
        By epsilon.
    """
    cell, known = found[0].cell, [one for one in found if not math.isnan(one.covered)]
    unit = cell.unit if cell.most is None else f"{cell.unit}, {cell.most}"
    left = (cell.design, str(cell.items), f"{cell.comparisons:,}", unit, cell.pairing, str(found[0].boards))
    held = ["none given" if math.isnan(one.covered) else f"{one.covered:.1%} ± {one.error:.1%}" for one in found]
    rms = " / ".join(f"{one.rms:.3g}" for one in found)
    if not known:
        return (*left, *held, "", "", rms, "")
    ranks, said, right = (np.mean([getattr(one, name) for one in known]) for name in ("ranks", "said", "right"))
    widths = " / ".join("–" if math.isnan(one.covered) else f"{one.width / 2:.3g}" for one in found)
    return (*left, *held, f"{ranks:.1%}", widths, rms, f"{said:.0%} / {right:.0%}")


def _boards(cell: Cell, boards: int) -> int:
    return boards if cell.items <= 100 else max(3, boards // 10)


def cells() -> Iterator[tuple[Cell, Callable[[np.random.Generator], Votes]]]:
    """Every cell with what draws its design."""
    for name, most in _REAL.items():
        for unit in ("outcome", "comparison", *(["voter"] if most else [])):
            bound = most if unit == "voter" else None
            real = _real(name, bound)
            for epsilon in EPSILONS:
                cell = Cell(name, len(real.truth), len(real.first), unit, bound, epsilon)
                yield cell, lambda _, real=real: real
    for items, design, unit in itertools.product(SIZES, DESIGNS, ("outcome", "comparison", "voter")):
        if items == SIZES[-1] and unit != "comparison":
            continue  # it would take hours
        bound = _MOST if unit == "voter" else None
        comparisons = _PER_ITEM * items * (_MOST if bound else 1)
        said = ("matched", "unknown") if design == "matched" and unit != "outcome" else ("unknown",)
        for pairing in (*said, *(["random"] if design == "even" else [])):
            for epsilon in EPSILONS:
                cell = Cell(design, items, comparisons, unit, bound, epsilon, pairing)
                yield cell, lambda random, cell=cell: synthetic(random, cell.design, cell.items, cell.comparisons)


def measured(cell: Cell, votes: Callable[[np.random.Generator], Votes], boards: int) -> Found:
    """The shares over so many boards; the same cell is drawn alike in every run."""
    words = f"coverage {cell.design} {cell.items} {cell.unit} {cell.epsilon}"
    random = np.random.default_rng(list(words.encode()))
    request = BoardRequest.of(cell.epsilon, cell.unit, max_per_voter=cell.most, pairing=cell.pairing)
    held, ranked, widths, errors, said, right = [], [], [], [], [], []
    for _ in range(boards):
        drawn = votes(random)
        truth = drawn.centred()
        counts, bits = drawn.drawn(random, request.protection.steps), SeededBits(int(random.integers(2**40)))
        board = CountedVotes(request, counts, []).draw(bits).value
        order = np.array(board.items, np.int64)
        true, places = truth[order], (-truth).argsort().argsort()[order] + 1
        errors.append(np.square(board.scores - true).mean())
        held.append(_by_item((board.low <= true) & (true <= board.high), order))
        ranked.append(((board.rank_low <= places) & (places <= board.rank_high)).mean())
        widths.append((board.high - board.low).mean())
        if board.best_probability is not None:
            said.append(float(board.best_probability[0]))
            right.append(places[0] == 1)
    known = bool(said)
    shares = np.mean(held, axis=1)
    return Found(
        cell,
        boards,
        float(shares.mean()) if known else math.nan,
        float(shares.std() / math.sqrt(boards)),
        float(np.mean(ranked)),
        float(np.mean(widths)),
        math.sqrt(np.mean(errors)),
        float(np.mean(said)) if known else math.nan,
        float(np.mean(right)) if known else math.nan,
    )


def _by_item(held: Any, order: Ints) -> Any:
    found = np.empty(len(order), np.bool_)
    found[order] = held
    return found


def synthetic(random: np.random.Generator, design: str, items: int, comparisons: int) -> Votes:
    """Strengths and pairs, drawn together."""
    truth = (3.0 if design == "wide" else 1.0) * random.uniform(-1, 1, items)
    weights = np.ones((items, items))
    if design == "popular":
        popularity = 1 / random.permutation(np.arange(1, items + 1))
        weights = np.outer(popularity, popularity)
    elif design == "matched":
        weights = np.exp(-2 * np.abs(truth[:, None] - truth))
    elif design == "idle":
        here = np.arange(items) >= math.ceil(items / 10)
        weights = np.outer(here, here).astype(float)
    elif design == "late":
        joined = np.where(random.random(items) < 0.5, 0, 0.9 * random.random(items))
        weights = np.zeros((items, items))
        for start, end in itertools.pairwise(np.append(np.unique(joined), 1.0)):
            here = joined <= start
            if (count := here.sum()) > 1:
                weights[np.ix_(here, here)] += (end - start) / (count * (count - 1))
    weights = np.triu(weights, 1).ravel()
    pairs = np.repeat(np.arange(items**2), random.multinomial(comparisons, weights / weights.sum()))
    first, second = np.divmod(pairs, items)
    return Votes(truth, first, second)


@cache
def _real(name: str, most: int | None) -> Votes:
    """The design of a data set, its voters weighed, and the strengths that fit its votes."""
    import pyarrow.csv as pc

    columns = pc.read_csv(data_home(name) / name / f"{_FILES.get(name, 'comparisons')}.csv").to_pydict()
    if name in _NAMES:
        ends = ("model_a", "model_b") if name == "arena140k_votes" else ("item_1", "item_2")
        won = {"model_a": 2, "model_b": 0, 1.0: 2, 0.0: 0}
        said = columns["winner" if name == "arena140k_votes" else "outcome"]
        voters = columns.get("user_id", range(len(said)))
        rows = [
            (voter, one, other, won.get(outcome, 1))
            for voter, one, other, outcome in zip(voters, columns[ends[0]], columns[ends[1]], said, strict=True)
            if one != other and outcome is not None
        ]
    else:
        ids, *places = columns.values()
        rows = [
            (voter, one, other, 2)
            for voter, *order in zip(ids, *places, strict=True)
            for one, other in itertools.combinations([item for item in order if item], 2)
        ]
    names = sorted({item for row in rows for item in row[1:3]})
    at = {item: place for place, item in enumerate(names)}
    first, second = (np.array([at[row[end]] for row in rows], np.int64) for end in (1, 2))
    halves = np.array([row[3] for row in rows], np.int64)
    truth = np.asarray(fit(PairCounts.from_pairs(first, second, halves, items=len(names)), ridge=0.25).theta)
    if most is None:
        return Votes(truth, first, second)
    _, voter = np.unique([str(row[0]) for row in rows], return_inverse=True)
    return Votes(truth, first, second, np.minimum(1, most / np.bincount(voter)[voter]))
