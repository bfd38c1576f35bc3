"""The compiled loop of ``TruncatedGeometrics``: words in, cells out. It decides nothing that the words leave open."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Ints, Longs, Words

_HALF = np.uint64(32)
_BUCKETS = 8  # slices of the guide per cut: most hold no cut, so a look-up is one load that the processor can foresee


def guide(cuts: Words) -> Ints:
    """For each of _BUCKETS * len(cuts) equal slices of the words, how many cuts lie below all of it."""
    size = np.uint64(_BUCKETS * len(cuts))
    smallest = ((np.arange(size, dtype=np.uint64) << _HALF) + size - np.uint64(1)) // size << _HALF
    return np.searchsorted(cuts, smallest).astype(np.int32)


@kernel
def _find(word: Any, start: int, size: int, cuts: Words, guides: Ints) -> Any:
    """The cell of a word in the table of ``size`` cuts at ``start``, -1 where it equals a cut."""
    bucket = ((word >> _HALF) * np.uint64(_BUCKETS * size)) >> _HALF
    cell = np.int64(guides[_BUCKETS * start + np.int64(bucket)])
    while word >= cuts[start + cell]:
        if word == cuts[start + cell]:
            return -1
        cell += 1
    return cell


@kernel
def look_up_stages(
    words: Words,
    draws: Ints,
    done: int,
    base: int,
    low_size: int,
    starts: Longs,
    sizes: Longs,
    cuts: Words,
    guides: Ints,
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
        cell = _find(words[cursor], starts[stage], sizes[stage], cuts, guides)
        used = 1
        if stage + 2 > base:
            if cursor + 2 > len(words):
                break
            low = _find(words[cursor + 1], 0, low_size, cuts, guides)
            cell = -1 if low < 0 or cell < 0 else cell * base + low
            used = 2
        if cell < 0:
            return done, cursor, True
        cursor += used
        if cell <= stage + 1:
            draws[done] = cell
            done += 1
            stage = stage + 1 if stage + 1 < stages else 0
    return done, cursor, False
