"""Kemeny's rule: the order that contradicts the voters least often, exactly where possible, else with a proven gap.

With weights w_ij, the number or share of voters who put i above j, an order costs

    cost(order) = sum over pairs with i above j of w_ji                                              (Kemeny 1959)

which is its summed Kendall distance to the voters. Debiased estimates may be negative or above 1: only the leads
D_ij = w_ji - w_ij matter, since cost = sum over pairs of min(w_ij, w_ji) + sum over i above j of max(D_ij, 0), of which
the second sum is called the order's excess.

Cycles alone are hard. Draw an edge from i to j if w_ij > w_ji, and no edge for a tie. The strong components of this
graph can be lined up so that every edge between two of them points down the line. Put the components in such a line
and solve each alone: this is optimal. Proof: any order costs at least the sum of the components' optima plus
min(w_ij, w_ji) for every pair across components; this one costs just that, because a pair across two components either
has its edge pointing down, and then costs the smaller weight, or is tied, and then both sides cost the same. (Truchon
1998 has it without ties.)

A component, never of two items, is solved by one of

- ``enumeration``: all its orders, up to 7 items;
- ``programme``: iterated insertion search (Schiavinotto and Stützle 2004) finds an order, and a linear programme shows
  how far from the best it can be. With x_ij = 1 where i is above j, it is over 0 <= x_ij + x_jk - x_ik <= 1 for all
  triples i < j < k, of which the violated ones are added round by round (Grötschel, Jünger and Reinelt 1984); up
  to 40 items, if its optimum is not yet an order, the same is solved in whole numbers. HiGHS solves both;
- ``heuristic``, above 150 items: the same search, with the bound of a packing of 3-cycles: what is taken from each
  cycle, at most its smallest lead, some pair of it has to pay in every order, and no lead is used twice.

A bound of the linear programme is computed from its dual prices y >= 0 alone: sum of y b + sum over pairs of
min(0, D - A'y) is below every order's excess whatever the y, so the solver's tolerances do not matter to it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.types import Floats, Longs

MOST_PROGRAMME = 150
"""Items of a component up to which the linear programme is tried."""

_MOST_ENUMERATED = 7
_MOST_CUTS = 3_000  # triples added at a time
_MOST_WHOLE, _MOST_NODES = 40, 2_000  # items up to which the programme in whole numbers is tried, and its nodes
_VIOLATED = 1e-6
_SHAKES = 5
_LARGEST = 2**62
_HARDEST = ("majorities", "enumeration", "programme", "heuristic")


@dataclass(frozen=True, eq=False)
class Kemeny:
    """An order, best item first, its cost, and what is proven about it."""

    order: NDArray[np.int32]
    cost: float
    """An int for whole weights."""
    lower_bound: float
    """No order costs less."""
    exact: bool
    """No order costs less than this one; for real weights, or huge ones, by more than 1e-9 of the sum of all leads."""
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


def kemeny(weights: ArrayLike, *, rounds: int = 60) -> Kemeny:
    """The order with the least sum of ``weights[j, i]`` over all pairs with i above j.

    The same arguments always give the same order. Among several optimal orders, components that could change places
    are sorted by their first items; a component of up to 7 items takes the first order, compared item by item, and a
    larger one the order that is found first.

    Parameters
    ----------
    weights
        A square table: ``weights[i, j]`` says how many voters, or which share of them, put i above j. Any real numbers
        will do, and whole ones are added exactly. The diagonal is ignored.
    rounds
        How many times violated triples are added to the linear programme of a component, at the most: more prove the
        best order of longer lists, at their price in time; 0 searches only.

    Returns
    -------
    Kemeny
        The order, its cost, and what is proven about it.
    """
    table = _weights(weights)
    whole("rounds", rounds, 0)
    difference = table.T - table
    unit = int(np.gcd.reduce(difference, axis=None)) or 1 if table.dtype.kind == "i" else _power_of_two(difference)
    lead = difference / unit
    # excesses are whole numbers, and so small that the programme's tolerance does not matter
    counts = table.dtype.kind == "i" and float(np.maximum(lead, 0).sum()) < 2**24
    order, gap, used = list[int](), 0.0, 0
    for items in components(lead):
        solved = _solve(lead[np.ix_(items, items)], counts, rounds)
        order.extend(items[solved.order].tolist())
        gap += solved.gap
        used = max(used, _HARDEST.index(solved.method))
    best = np.array(order, np.int32)
    cost = _cost(table, best)
    return Kemeny(best, cost, cost - (round(gap) if counts else gap) * unit if gap else cost, not gap, _HARDEST[used])


def _power_of_two(values: Floats) -> float:
    """One near the largest."""
    return 2.0 ** math.frexp(float(np.abs(values).max()))[1]


def components(lead: Floats) -> list[Longs]:
    """The strong components of the strict majorities, from the top of the line to its bottom.

    Of several that could come next, the one with the first item does.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(csr_array(lead < 0), directed=True, connection="strong")
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(first))[labels]  # by their first items
    between = np.zeros((count, count), bool)
    between[tuple(labels[side] for side in np.nonzero(lead < 0))] = True
    np.fill_diagonal(between, False)
    waits, line = between.sum(axis=0), list[Longs]()
    for _ in range(count):
        label = int(np.argmin(waits))
        line.append(np.flatnonzero(labels == label))
        waits -= between[label]
        waits[label] = count
    return line


@dataclass(frozen=True, slots=True)
class _Solved:
    """An order of one component, and by how much another could be cheaper: 0 once it is proven."""

    order: Longs
    gap: float
    method: str


def _solve(lead: Floats, counts: bool, rounds: int) -> _Solved:
    m = len(lead)
    if m == 1:
        return _Solved(np.zeros(1, np.int64), 0.0, "majorities")
    if m <= _MOST_ENUMERATED:
        return _Solved(_enumerate(lead), 0.0, "enumeration")
    search, method = _Search(lead, counts), "heuristic"
    bound = search.packing()
    if m <= MOST_PROGRAMME:
        bound, method = _Programme(search, bound).run(rounds), "programme"
    if bound > search.excess - search.slack:
        return _Solved(search.order, 0.0, method)
    bound = max(math.ceil(bound - 1e-4) if counts else bound, 0)
    return _Solved(search.order, search.excess - bound, method)


def _enumerate(lead: Floats) -> Longs:
    """The first of the best orders."""
    orders = np.array(list(itertools.permutations(range(len(lead)))))
    above, below = np.triu_indices(len(lead), 1)
    return np.asarray(orders[np.argmin(np.maximum(lead, 0)[orders[:, above], orders[:, below]].sum(axis=1))])


class _Search:
    """The best order met so far, and the search for better ones by moving one item at a time."""

    def __init__(self, lead: Floats, counts: bool) -> None:
        self.lead = lead
        self.slack = 1 - 1e-4 if counts else 1e-9 * float(np.maximum(lead, 0).sum())
        self.order, self.excess = np.arange(len(lead)), math.inf
        generator = np.random.default_rng(0)
        for scores in (lead.sum(axis=1), np.sign(lead).sum(axis=1)):  # Borda's order, and Copeland's
            self.improve(np.argsort(scores, kind="stable"))
        for _ in range(_SHAKES if len(lead) <= MOST_PROGRAMME else 1):
            shaken = self.order.copy()
            for place in generator.integers(0, len(lead), 3):
                block = slice(max(place - 4, 0), place + 5)
                shaken[block] = generator.permutation(shaken[block])
            self.improve(shaken)

    def improve(self, order: Longs) -> None:
        """Move items to where they cost least until none moves; keep the order if it is the best so far."""
        lead, moved = self.lead, True
        least = 1e-13 * float(np.abs(lead).max())
        while moved:
            moved = False
            for item in order.copy():
                place = int(np.flatnonzero(order == item)[0])
                # what it costs to put the item before each of the order and all that follow, 0 at the end
                costs = np.append(np.cumsum(lead[item, order][::-1])[::-1], 0.0)
                best = int(np.argmin(costs))
                if costs[best] < costs[place] - least:
                    order = np.insert(np.delete(order, place), best - (best > place), item)
                    moved = True
        excess = float(np.triu(np.maximum(lead, 0)[np.ix_(order, order)], 1).sum())
        if excess < self.excess:
            self.order, self.excess = order, excess

    def packing(self) -> float:
        """The bound of 3-cycles i > j > k > i that share no lead."""
        left = np.maximum(-self.lead, 0).astype(np.float64)
        bound = 0.0
        for i in range(len(left)):
            beaten = np.flatnonzero(left[i])
            for j in beaten[np.minimum(left[beaten], left[:, i]).any(axis=1)]:  # the others close no cycle
                share = np.minimum(left[j], left[:, i])
                share = np.clip(left[i, j] - (np.cumsum(share) - share), 0, share)
                taken = share.sum()
                left[i, j] -= taken
                left[j] -= share
                left[:, i] -= share
                bound += taken
        return bound * (1 - 1e-9)


class _Programme:
    """The linear ordering programme of one component, with the triples that were violated so far."""

    def __init__(self, search: _Search, bound: float) -> None:
        import highspy

        self.search, self.bound, m = search, bound, len(search.lead)
        self.first, self.second = np.triu_indices(m, 1)
        column = np.zeros((m, m), np.int32)
        column[self.first, self.second] = np.arange(len(self.first))
        i, j, k = np.array(list(itertools.combinations(range(m), 3))).T
        self.triples = np.column_stack([column[i, j], column[j, k], column[i, k]])
        leads = search.lead[self.first, self.second]
        self.scale = float(np.abs(leads).max())
        self.costs, self.constant = leads / self.scale, float(np.maximum(-leads, 0).sum())
        self.cuts, self.solver = np.empty((0, 3), np.int32), highspy.Highs()  # type: ignore[no-untyped-call]
        tight = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance")
        options: dict[str, Any] = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "presolve": "off"}
        options |= {"mip_heuristic_effort": 0.0}  # the search has found the order, most likely
        options |= {"mip_abs_gap": 0.9 * search.slack / self.scale, "mip_max_nodes": _MOST_NODES}
        for name, value in {**options, **dict.fromkeys(tight, 1e-9)}.items():
            self.solver.setOptionValue(name, value)
        none = np.empty(0)
        ends = np.zeros(len(leads)), np.ones(len(leads))
        self.solver.addCols(len(leads), self.costs, *ends, 0, none.astype(np.int32), none.astype(np.int32), none)

    def run(self, rounds: int) -> float:
        """The bound once the best order is proven, or the rounds are used up."""
        for _ in range(rounds):
            if not self._open():
                return self.bound
            self.solver.run()
            self.bound = max(self.bound, self._dual_bound())
            sums = self._suggested()[self.triples] @ [1.0, 1.0, -1.0]
            beyond = np.maximum(-sums, sums - 1)
            worst = np.argsort(-beyond, kind="stable")[:_MOST_CUTS]
            if not (violated := worst[beyond[worst] > _VIOLATED]).size:
                break
            self._add(self.triples[violated])
        if rounds and self._open() and len(self.search.lead) <= _MOST_WHOLE:
            self._in_whole_numbers()
        return self.bound

    def _open(self) -> bool:
        return self.bound <= self.search.excess - self.search.slack

    def _suggested(self) -> Floats:
        """The solution, after the search has tried the order that it suggests."""
        values, m = np.array(self.solver.getSolution().col_value), len(self.search.lead)
        above = np.bincount(self.first, values, m) + np.bincount(self.second, 1 - values, m)
        self.search.improve(np.argsort(-above, kind="stable"))
        return values

    def _dual_bound(self) -> float:
        """From the prices of the rows alone, whatever their rounding."""
        prices = np.array(self.solver.getSolution().row_dual)
        reduced = self.costs.copy()
        for position, sign in ((0, 1), (1, 1), (2, -1)):
            np.subtract.at(reduced, self.cuts[:, position], sign * prices)
        # a row between 0 and 1 gives 0 for a price above 0 and the price itself below
        bound = np.minimum(reduced, 0).sum() + np.minimum(prices, 0).sum()
        return self.constant + float(bound) * self.scale - 1e-13 * self.scale * len(reduced)

    def _add(self, triples: NDArray[np.int32]) -> None:
        self.cuts = np.concatenate([self.cuts, triples])
        count, signs = len(triples), np.tile([1.0, 1.0, -1.0], len(triples))
        starts = np.arange(0, 3 * count, 3, dtype=np.int32)
        self.solver.addRows(count, np.zeros(count), np.ones(count), 3 * count, starts, triples.ravel(), signs)

    def _in_whole_numbers(self) -> None:
        """With all triples at once, from the best order on."""
        import highspy

        columns = np.arange(len(self.costs), dtype=np.int32)
        kinds = np.full(len(columns), int(highspy.HighsVarType.kInteger), np.uint8)
        self.solver.changeColsIntegrality(len(columns), columns, kinds)
        self._add(self.triples)
        places = np.argsort(self.search.order)
        self.solver.setSolution(len(columns), columns, (places[self.first] < places[self.second]).astype(np.float64))
        self.solver.run()
        self._suggested()
        bound = self.constant + self.solver.getInfo().mip_dual_bound * self.scale - 0.05 * self.search.slack
        if bound <= self.search.excess:  # an order costs as much, so it cannot be above
            self.bound = max(self.bound, bound)


def _weights(weights: ArrayLike) -> NDArray[Any]:
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
            largest = float(np.abs(table).max())
            if largest > 1e300 / table.size:
                raise InputError(f"weights must be below 1e300 / m^2, got one of {largest:g}")
            return table
    size = max(abs(int(table.max())), abs(int(table.min()))) * table.size
    if size >= _LARGEST:
        raise InputError(f"weights must be whole numbers below 2^62 / m^2, got one of {size // table.size}")
    return table.astype(np.int64)


def _cost(table: NDArray[Any], order: NDArray[np.int32]) -> float:
    """The weights below the diagonal of the table in this order, added exactly."""
    below = table[np.ix_(order, order)][np.tril_indices(len(order), -1)]
    return int(below.sum()) if table.dtype.kind == "i" else math.fsum(below)
