"""Kemeny's rule: the order that contradicts the voters least often, exactly where possible, else with a proven gap.

With weights w_ij, the number or share of voters who put i above j, an order costs

    cost(order) = sum over pairs with i above j of w_ji                                              (Kemeny 1959)

which is its summed Kendall distance to the voters. Debiased estimates may be negative or above 1: only the leads
D_ij = w_ji - w_ij matter, since cost = sum over pairs of min(w_ij, w_ji) + sum over i above j of max(D_ij, 0).

Cycles alone are hard. Draw an edge from i to j if w_ij > w_ji, and no edge for a tie. The strong components of this
graph can be lined up so that every edge between two of them points down the line. Put the components in such a line
and solve each alone: this is optimal. Proof: any order costs at least the sum of the components' optima plus
min(w_ij, w_ji) for every pair across components; this one costs just that, because a pair across two components either
has its edge pointing down, and then costs the smaller weight, or is tied, and then both sides cost the same. (Truchon
1998 has it without ties.)

A component, never of two items, is solved by one of

- ``subsets``: dynamic programming over its subsets, in 2^m m steps, exact in whole numbers; up to 26 items;
- ``programme``: the integer programme with all 3-cycle inequalities (`kemeny_search`); up to 500 items;
- ``heuristic``: iterated insertion search (Schiavinotto and Stützle 2004), with the bound of the same relaxation cut
  short or, above 500 items, of a packing of 3-cycles: what is taken from each cycle, at most its smallest lead, some
  pair of it has to pay in every order, and no lead is used twice.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError, Unsupported
from rankdp.rankers.kemeny_search import MOST_RELAXED, Found, Limits, Search

Method = Literal["auto", "subsets", "programme", "heuristic"]

MOST_SUBSETS = 26
"""Items of a component up to which ``subsets`` works: a table of 2^26 numbers, 256 or 512 MB."""

_QUICK_SUBSETS = 18  # up to here subsets are always the quickest
_WORK = {"short": 3e8, "heuristic": 1e9, "auto": 5e9}  # triples, a nanosecond or a few each: no clock, no chance
_SUBSET_SECONDS = 1e-9  # for each subset and item
_LARGEST = 2**62
_HARDEST = ("majorities", "subsets", "programme", "heuristic")
_Leads = NDArray[Any]  # int64, divided by their gcd, or float64


@dataclass(frozen=True, eq=False)
class Kemeny:
    """An order, best item first, its cost, and what is proven about it."""

    order: NDArray[np.int32]
    cost: float
    """An int for whole weights."""
    lower_bound: float
    """No order costs less."""
    exact: bool
    """No order costs less than this one; for real weights, or huge ones, by more than 1e-10 of the sum of all leads."""
    method: str
    """What the hardest component took; ``majorities`` if there was no cycle to break."""

    @property
    def gap(self) -> float:
        """By how much an optimal order could be cheaper, at most."""
        return self.cost - self.lower_bound

    @property
    def gap_share(self) -> float:
        """The gap as a share of the cost."""
        return self.gap / abs(self.cost) if self.cost else math.copysign(math.inf, self.gap) if self.gap else 0.0


def kemeny(weights: ArrayLike, *, method: Method = "auto", time_limit: float | None = None, seed: int = 0) -> Kemeny:
    """The order with the least sum of ``weights[j, i]`` over all pairs with i above j.

    ``weights[i, j]`` says how many voters, or which share of them, put i above j; any real numbers will do, and whole
    ones are added exactly. The diagonal is ignored. ``auto`` picks what is quickest for each component and gives up on
    a proof after some ten seconds of work; ``programme`` goes on until ``time_limit`` (seconds; ``subsets`` has no use
    for it), which lets the best order stand with ``exact=False`` and the bound proven so far.

    The same arguments always give the same order, unless a time limit cuts the search short. Among several optimal
    orders, components that could change places stand by their first items, and ``subsets`` takes the first order of a
    component, compared item by item; the other methods take the one they meet first.
    """
    table = _weights(weights)
    _check_options(method, time_limit, seed)
    limits = Limits(math.inf if time_limit is None else time.perf_counter() + time_limit)
    lead, unit = _leads(table)
    order, exact, used = list[int](), True, 0
    gap: float = 0
    for items in components(lead):
        found, how = _solve(lead[np.ix_(items, items)], method, limits, seed)
        order.extend(items[found.order].tolist())
        gap += found.excess - found.bound
        exact &= found.proven
        used = max(used, _HARDEST.index(how))
    best = np.array(order, np.int32)
    cost = _cost(table, best)
    return Kemeny(best, cost, cost if exact else cost - gap * unit, exact, _HARDEST[used])


def components(lead: _Leads) -> list[NDArray[np.int64]]:
    """The strong components of the strict majorities, from the top of the line to its bottom.

    Of several that could come next, the one with the first item does.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    edges = lead < 0
    count, labels = connected_components(csr_array(edges), directed=True, connection="strong")
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    between = np.zeros((count, count), bool)
    above, below = np.nonzero(edges)
    between[labels[above], labels[below]] = True
    np.fill_diagonal(between, False)
    waits = between.sum(axis=0)
    ready = [(int(members[label][0]), int(label)) for label in np.flatnonzero(waits == 0)]
    heapq.heapify(ready)
    line = []
    while ready:
        _, label = heapq.heappop(ready)
        line.append(members[label])
        waits -= between[label]
        for freed in np.flatnonzero(between[label] & (waits == 0)):
            heapq.heappush(ready, (int(members[freed][0]), int(freed)))
    return line


def _solve(lead: _Leads, method: Method, limits: Limits, seed: int) -> tuple[Found, str]:
    """The order of one component, and the method that found it."""
    m = len(lead)
    if m == 1:
        return Found(np.zeros(1, np.int64), 0, 0), "majorities"
    if method == "subsets" or (method == "auto" and m <= _QUICK_SUBSETS):
        return subsets(lead), "subsets"
    if method == "heuristic" or (method == "auto" and m > MOST_RELAXED):
        search = Search(lead, seed, Limits(limits.deadline, _WORK["heuristic"]))
        return (search.relaxation() if m <= MOST_RELAXED else search.packing()), "heuristic"
    if method == "programme":
        if m > MOST_RELAXED:
            raise Unsupported(f"method programme takes components of at most {MOST_RELAXED} items, got one of {m}")
        return Search(lead, seed, Limits(limits.deadline)).run(), "programme"
    small = m <= MOST_SUBSETS
    found = Search(lead, seed, Limits(limits.deadline, _WORK["short" if small else "auto"])).run()
    left = limits.deadline - time.perf_counter()
    if small and not found.proven and _SUBSET_SECONDS * m * 2**m < left:
        return subsets(lead), "subsets"
    return found, "programme"


def subsets(lead: _Leads) -> Found:
    """An optimal order by dynamic programming over subsets."""
    from rankdp.rankers import kemeny_kernels as kernels

    m = len(lead)
    if m > MOST_SUBSETS:
        raise Unsupported(f"method subsets takes components of at most {MOST_SUBSETS} items, got one of {m}")
    tolls = np.maximum(lead, 0)
    kind: Any = lead.dtype
    if kind.kind == "i" and tolls.sum() < 2**31 - 1:
        kind = np.dtype(np.int32)
    best = np.empty(1 << m, kind)
    best[0] = np.iinfo(kind).max if kind.kind == "i" else np.inf
    tolls = tolls.astype(kind)
    kernels.fill_subsets(tolls, best)
    excess = best[-1].item()
    return Found(kernels.read_subsets(tolls, best), excess, excess)


def _weights(weights: ArrayLike) -> _Leads:
    """A square table of int64 if all weights are whole, else of float64."""
    try:
        table = np.asarray(weights)
        if table.dtype.kind not in "biuf":
            table = table.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights must be a square table of numbers, got {weights!r:.60}") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise InputError(f"weights must be a square table of one item or more, got the shape {table.shape}")
    if table.dtype.kind == "f":
        table = table.astype(np.float64)
        if not np.isfinite(table).all():
            i, j = np.argwhere(~np.isfinite(table))[0]
            raise InputError(f"weights must be finite numbers, got {table[i, j]} for items {i} and {j}")
        if (table != np.rint(table)).any() or np.abs(table).max() >= 2**53 / table.size:
            return _small_enough(table)
    size = max(abs(int(table.max())), abs(int(table.min()))) * table.size
    if size >= _LARGEST:
        raise InputError(f"weights must be whole numbers below 2^62 / m^2, got one of {size // table.size}")
    return table.astype(np.int64)


def _small_enough(table: _Leads) -> _Leads:
    largest = float(np.abs(table).max())
    if largest > 1e300 / table.size:
        raise InputError(f"weights must be below 1e300 / m^2, got one of {largest:g}")
    return table


def _check_options(method: str, time_limit: float | None, seed: int) -> None:
    if method not in get_args(Method):
        raise InputError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    number = isinstance(time_limit, (int, float, np.integer, np.floating)) and not isinstance(time_limit, bool)
    if time_limit is not None and not (number and time_limit > 0):
        raise InputError(f"time_limit must be None or a number of seconds above 0, got {time_limit!r}")
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be a whole number from 0 to 2^63 - 1, got {seed!r}")


def _leads(table: _Leads) -> tuple[_Leads, float]:
    """The leads in a unit that makes them small, and the unit: their gcd, or a power of two near the largest."""
    lead = np.ascontiguousarray(table.T - table)
    if lead.dtype.kind == "i":
        unit = int(np.gcd.reduce(lead, axis=None)) or 1
        return lead // unit, unit
    scale = 2.0 ** math.frexp(float(np.abs(lead).max()))[1]
    return lead / scale, scale


def _cost(table: _Leads, order: NDArray[np.int32]) -> float:
    """The weights below the diagonal of the table in this order, added exactly."""
    below = table[np.ix_(order, order)][np.tril_indices(len(order), -1)]
    return int(below.sum()) if table.dtype.kind == "i" else math.fsum(below)
