"""The loops of counting in process: cells to item numbers and outcomes, rows to counts.

Compiled on first use, free of the GIL. Item numbers below `items` are known items, others unknown ones, and -1 is a
blank. `problems[k]` counts the rows with problem k (see `comparisons.PROBLEMS`) and `firsts[k]` keeps the first.
`outcome` is empty when the left item always wins, and `weights` when every row counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

NAMED = 16
_NO_OUTCOME, _STRANGE_OUTCOME, _LEFT_OUT = 3, 4, 5


@kernel
def look_up(codes: Int32, table: Int32, out: Int32) -> None:
    """out = table[code + 1]; the first entry of the table is for a blank."""
    for row in range(len(codes)):
        out[row] = table[codes[row] + 1]


@kernel
def look_up_numbers(values: Any, base: int, table: Int32, out: Int32) -> bool:
    """out = table[value - base]; False as soon as a value is not in the table."""
    size = np.uint64(len(table))
    for row in range(len(values)):
        place = np.uint64(np.int64(values[row]) - base)
        if place >= size:
            return False
        item = table[place]
        if item < 0:
            return False
        out[row] = item
    return True


@kernel
def judge(left: Int32, right: Int32, codes: Int32, table: Int32, outcome: Int8) -> None:
    """What each outcome cell means: a word's meaning, or from NAMED on an item that must be one of the two."""
    for row in range(len(codes)):
        meaning = table[codes[row] + 1]
        if meaning >= NAMED:
            item = meaning - NAMED
            meaning = 0 if item == left[row] else 1 if item == right[row] else _STRANGE_OUTCOME
        outcome[row] = meaning


@kernel
def judge_numbers(values: NDArray[np.float64], outcome: Int8) -> None:
    """1, 0 and 0.5 as outcomes; NaN is a missing one."""
    for row in range(len(values)):
        value = values[row]
        if value == 1.0:
            outcome[row] = 0
        elif value == 0.0:
            outcome[row] = 1
        elif value == 0.5:
            outcome[row] = 2
        else:
            outcome[row] = _NO_OUTCOME if value != value else _STRANGE_OUTCOME


@kernel
def check_weights(values: NDArray[np.float64], most: int, out: Int64) -> None:
    """Whole numbers from 0 to `most` as they are, everything else as -1."""
    for row in range(len(values)):
        value = values[row]
        out[row] = np.int64(value) if 0 <= value <= most and value == np.floor(value) else -1


@kernel
def _problem(left: Any, right: Any, outcome: Any, weight: Any, voter: Any, items: int) -> int:
    """The number of the first problem that a row has; 0 if it has none."""
    if outcome == _STRANGE_OUTCOME:
        return 1
    if weight < 0:
        return 2
    if voter < 0:
        return 3
    if left < 0 or right < 0:
        return 4
    if left >= items or right >= items:
        return 5
    if outcome == _NO_OUTCOME:
        return 6
    if left == right:
        return 7
    return 8 if outcome == _LEFT_OUT else 0


@kernel
def _note(problem: int, row: int, problems: Int64, firsts: Int64) -> None:
    if problems[problem] == 0:
        firsts[problem] = row
    problems[problem] += 1


@kernel
def _all_fine(left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int) -> bool:
    """Whether no row has a problem: one pass without branches, which most batches need and no more."""
    end, bad = np.uint32(items), 0
    for row in range(len(left)):
        i, j = left[row], right[row]
        bad |= int((np.uint32(i) >= end) | (np.uint32(j) >= end) | (i == j))
    for row in range(len(outcome)):
        bad |= int(outcome[row] > 2)
    for row in range(len(weights)):
        bad |= int(weights[row] < 0)
    return bad == 0


@kernel
def _tally_winners(winners: Int32, items: int, wins: Int64) -> None:
    """wins[i] += 2 for every time that i occurs.

    Four counters for each item, if they fit beside the rows: a counter that grows in every turn waits for itself.
    """
    counters = np.zeros((4 if items <= len(winners) // 16 else 0, items), np.int32)
    fours = len(winners) & ~3 if len(counters) else 0
    for row in range(0, fours, 4):
        for lane in range(4):
            counters[lane, winners[row + lane]] += 1
    for lane in range(len(counters)):
        for item in range(items):
            wins[item] += 2 * counters[lane, item]
    for row in range(fours, len(winners)):
        wins[winners[row]] += 2


@kernel
def tally_wins(
    left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int, wins: Int64, problems: Int64, firsts: Int64
) -> None:
    """wins[i] += half-wins of item i."""
    fine = _all_fine(left, right, outcome, weights, items)
    judged, weighted = len(outcome) > 0, len(weights) > 0
    if fine and not judged and not weighted:
        _tally_winners(left, items, wins)
        return
    for row in range(len(left)):
        i, j, verdict = left[row], right[row], outcome[row] if judged else np.int8(0)
        weight = weights[row] if weighted else np.int64(1)
        if not fine:
            problem = _problem(i, j, verdict, weight, 0, items)
            if problem:
                _note(problem, row, problems, firsts)
                continue
        half = 2 - 2 * (verdict & 1) - (verdict >> 1)
        wins[i] += half * weight
        wins[j] += (2 - half) * weight


@kernel
def tally_pairs(
    left: Int32, right: Int32, outcome: Int8, weights: Int64, items: int, table: Int64, problems: Int64, firsts: Int64
) -> None:
    """table[i * items + j] += half-wins of item i over item j."""
    fine = _all_fine(left, right, outcome, weights, items)
    judged, weighted = len(outcome) > 0, len(weights) > 0
    for row in range(len(left)):
        i, j, verdict = np.int64(left[row]), np.int64(right[row]), outcome[row] if judged else np.int8(0)
        weight = weights[row] if weighted else np.int64(1)
        if not fine:
            problem = _problem(i, j, verdict, weight, 0, items)
            if problem:
                _note(problem, row, problems, firsts)
                continue
        tie = verdict >> 1
        ahead, behind = (j, i) if verdict == 1 else (i, j)
        table[ahead * items + behind] += (2 - tie) * weight
        if tie:
            table[behind * items + ahead] += weight


@kernel
def sort_out(
    left: Int32,
    right: Int32,
    outcome: Int8,
    weights: Int64,
    voters: Int32,
    items: int,
    contents: Any,
    kept_weights: Int64,
    kept_voters: Int32,
    problems: Int64,
    firsts: Int64,
) -> int:
    """Write the rows without a problem one after the other; how many there are.

    A row's content is `winner * items + loser`, or `items^2 + low * items + high` for a tie.
    """
    judged, weighted, known_voters = len(outcome) > 0, len(weights) > 0, len(voters) > 0
    kept = 0
    for row in range(len(left)):
        i, j, verdict = np.int64(left[row]), np.int64(right[row]), outcome[row] if judged else np.int8(0)
        weight = weights[row] if weighted else np.int64(1)
        voter = voters[row] if known_voters else np.int32(0)
        problem = _problem(i, j, verdict, weight, voter, items)
        if problem:
            _note(problem, row, problems, firsts)
            continue
        if verdict == 2:
            contents[kept] = items * items + min(i, j) * items + max(i, j)
        else:
            contents[kept] = i * items + j if verdict == 0 else j * items + i
        if weighted:
            kept_weights[kept] = weight
        if known_voters:
            kept_voters[kept] = voter
        kept += 1
    return kept


@kernel
def tally_contents(contents: Any, items: int, table: Int64) -> None:
    """table[i * items + j] += half-wins of item i over item j, from contents."""
    square = items * items
    for row in range(len(contents)):
        content = np.int64(contents[row])
        if content < square:
            table[content] += 2
        else:
            low, high = (content - square) // items, (content - square) % items
            table[low * items + high] += 1
            table[high * items + low] += 1


@kernel
def split_contents(contents: Any, items: int, left: Int32, right: Int32, halves: Int8) -> None:
    """The two items of each content and the half-wins of the left one."""
    square = items * items
    for row in range(len(contents)):
        content = np.int64(contents[row])
        tie = content >= square
        pair = content - square if tie else content
        left[row], right[row] = pair // items, pair % items
        halves[row] = 1 if tie else 2
