"""Compiled loops of the exact samplers: words in, cells out. They decide nothing that the words leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.jit import kernel

_HALF = np.uint64(32)
_BUCKETS = 8  # rankdp.privacy.cut_tables.BUCKETS, frozen into the machine code


@kernel
def look_up(
    words: NDArray[np.uint64], cuts: NDArray[np.uint64], guide: NDArray[np.uint16], cells: NDArray[np.int64]
) -> int:
    """Write each word's cell into ``cells``, -1 where the word equals a cut point; return how many those are."""
    slices = np.uint64(len(guide))
    undecided = 0
    for i in range(len(words)):
        word = words[i]
        cell = np.int64(guide[((word >> _HALF) * slices) >> _HALF])
        while word >= cuts[cell]:
            if word == cuts[cell]:
                cell = np.int64(-1)
                undecided += 1
                break
            cell += 1
        cells[i] = cell
    return undecided


@kernel
def _find(word: Any, start: int, size: int, cuts: NDArray[np.uint64], guide: NDArray[np.uint16]) -> Any:
    """The cell of a word in the table of ``size`` cuts at ``start``, -1 where it equals a cut."""
    bucket = ((word >> _HALF) * np.uint64(_BUCKETS * size)) >> _HALF
    cell = np.int64(guide[_BUCKETS * start + np.int64(bucket)])
    while word >= cuts[start + cell]:
        if word == cuts[start + cell]:
            return -1
        cell += 1
    return cell


@kernel
def look_up_stages(
    words: NDArray[np.uint64],
    draws: NDArray[np.int32],
    done: int,
    base: int,
    low_size: int,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    cuts: NDArray[np.uint64],
    guide: NDArray[np.uint16],
) -> tuple[int, int, bool]:
    """Fill ``draws`` from index ``done`` on: draw i belongs to stage i modulo the stages and is at most stage + 1.

    The table of stage s starts at ``starts[s]`` and has ``sizes[s]`` cuts. A stage of more than ``base`` outcomes draws
    two digits: the low one from the table of ``low_size`` cuts at the very beginning (fewer than ``base`` where large
    digits are out of reach), the high one from its own. What exceeds s + 1 is drawn again. Returns the next index, the
    words used before its draw, and whether that draw needs a word that equals a cut point.
    """
    stages = len(starts)
    stage = done % stages
    cursor = 0
    while done < len(draws) and cursor < len(words):
        cell = _find(words[cursor], starts[stage], sizes[stage], cuts, guide)
        used = 1
        if stage + 2 > base:
            if cursor + 2 > len(words):
                break
            low = _find(words[cursor + 1], 0, low_size, cuts, guide)
            cell = -1 if low < 0 or cell < 0 else cell * base + low
            used = 2
        if cell < 0:
            return done, cursor, True
        cursor += used
        if cell <= stage + 1:
            draws[done] = cell
            done += 1
            stage += 1
            if stage == stages:
                stage = 0
    return done, cursor, False
