"""Compiled loops of the position matrix under noise on ranks (see ``rank_noise``)."""

from __future__ import annotations

import math

import numpy as np

from rankdp.jit import kernel
from rankdp.types import Floats


@kernel
def landed(x: Floats, weight: Floats, items: int, scale: float, never: float, far: float) -> Floats:
    """The integral over these nodes."""
    found = np.zeros((items, items))
    counts, ahead, tails = np.zeros(items + 2), np.zeros(items + 2), np.empty(items)
    for node in range(len(x)):
        first = int(max(0.0, np.ceil(x[node] - far * scale)))
        last = int(min(items - 1.0, np.floor(x[node] + far * scale)))
        low = high = first
        counts[low] = 1.0
        for i in range(first, last + 1):
            tails[i] = 0.5 * math.exp(-abs(x[node] - i) / scale)
            p, q = (tails[i], 1.0 - tails[i]) if i > x[node] else (1.0 - tails[i], tails[i])
            _step(counts, ahead, low, high, p, q)
            high += 1
            while ahead[low] < never:
                low += 1
            while ahead[high] < never:
                high -= 1
            counts, ahead = ahead, counts
        for a in range(first, last + 1):
            p, q = (tails[a], 1.0 - tails[a]) if a > x[node] else (1.0 - tails[a], tails[a])
            _leave_out(counts, low, high, p, q, weight[node] * tails[a] / scale, found[a])
    return found


@kernel
def _step(counts: Floats, ahead: Floats, low: int, high: int, p: float, q: float) -> None:
    """One more item: the counts from low to high become ``ahead``, from low to high + 1."""
    ahead[low], ahead[high + 1] = counts[low] * q, counts[high] * p
    here, before, new = counts[low + 1 : high + 1], counts[low:high], ahead[low + 1 : high + 1]
    for k in range(len(new)):
        new[k] = here[k] * q + before[k] * p


@kernel
def _leave_out(counts: Floats, low: int, high: int, p: float, q: float, share: float, found: Floats) -> None:
    """Add ``share`` times the law of the counts from low to high without an item, which lies below with p = 1 - q."""
    weight, ratio, part, k = share / q, p / q, 0.0, low
    while k <= high and k < len(found):
        before = ratio * part
        part = weight * counts[k] - before
        if part < before:
            break
        found[k] += part
        k += 1
    stop, weight, ratio, part = k, share / p, q / p, 0.0
    for k in range(high, stop, -1):
        part = weight * counts[k] - ratio * part
        found[k - 1] += part
