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

- ``enumeration``: all its orders, in whole numbers, up to 7 items;
- ``programme``: with x_ij = 1 where i stands above j, the linear programme over 0 <= x_ij + x_jk - x_ik <= 1 for all
  triples i < j < k, of which those that are violated are added until none is (Grötschel, Jünger and Reinelt 1984); if
  its optimum is not yet an order, the same in whole numbers. HiGHS solves both;
- ``heuristic``: iterated insertion search (Schiavinotto and Stützle 2004), with the bound of a few rounds of the same
  programme or, above 150 items, of a packing of 3-cycles: what is taken from each cycle, at most its smallest lead,
  some pair of it has to pay in every order, and no lead is used twice.

A bound of the linear programme is computed from its dual prices y >= 0 alone: sum of y b + sum over pairs of
min(0, D - A'y) is below every order's excess whatever the y, so the solver's tolerances do not matter to it.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.checks import one_of, positive, whole
from rankdp.errors import InputError, Unsupported

Method = Literal["auto", "programme", "heuristic"]

MOST_PROGRAMME = 150
"""Items of a component up to which the linear programme is tried."""

_MOST_ENUMERATED = 7
_AUTO_NODES, _AUTO_ROUNDS, _HEURISTIC_ROUNDS = 2_000, 60, 12
_MOST_CUTS = 3_000  # triples added at a time
_MOST_COMPLETE = 40  # items up to which the programme in whole numbers gets all triples at once, and auto tries it
_VIOLATED = 1e-6
_SHAKES = 5
_LARGEST = 2**62
_HARDEST = ("majorities", "enumeration", "programme", "heuristic")
_Leads = NDArray[Any]  # int64, divided by their gcd, or float64
_Order = NDArray[np.int64]


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


def kemeny(weights: ArrayLike, *, method: Method = "auto", time_limit: float | None = None, seed: int = 0) -> Kemeny:
    """The order with the least sum of ``weights[j, i]`` over all pairs with i above j.

    The same arguments always give the same order, unless a time limit cuts the search short. Among several optimal
    orders, components that could change places stand by their first items, and up to 7 items the first order of a
    component is taken, compared item by item; larger ones keep the order that is met first.

    Parameters
    ----------
    weights
        A square table: ``weights[i, j]`` says how many voters, or which share of them, put i above j. Any real numbers
        will do, and whole ones are added exactly. The diagonal is ignored.
    method
        ``"auto"`` takes what is quickest for each component and gives up on a proof after a fixed amount of work;
        ``"programme"`` runs until the time limit, for components of up to 150 items; ``"heuristic"`` searches only.
    time_limit
        Seconds after which the best order stands with ``exact=False`` and the bound proven so far.
    seed
        Decides the random moves of the search.

    Returns
    -------
    Kemeny
        The order, its cost, and what is proven about it.
    """
    table = _weights(weights)
    one_of("method", method, get_args(Method))
    whole("seed", seed, 0, 2**63 - 1)
    deadline = math.inf if time_limit is None else time.perf_counter() + positive("time_limit", time_limit)
    lead, unit = _leads(table)
    order, exact, used = list[int](), True, 0
    gap: float = 0
    for items in components(lead):
        solved = _solve(np.ascontiguousarray(lead[np.ix_(items, items)]), method, deadline, seed)
        order.extend(items[solved.order].tolist())
        gap += solved.excess - solved.bound
        exact &= solved.proven
        used = max(used, _HARDEST.index(solved.method))
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


@dataclass(frozen=True, slots=True)
class _Solved:
    """An order of one component, its excess, and a bound on every order's excess (the excess itself once proven)."""

    order: _Order
    excess: float
    bound: float
    method: str

    @property
    def proven(self) -> bool:
        return self.bound == self.excess


def _solve(lead: _Leads, method: Method, deadline: float, seed: int) -> _Solved:
    m = len(lead)
    if m == 1:
        return _Solved(np.zeros(1, np.int64), 0, 0, "majorities")
    if m <= _MOST_ENUMERATED:
        return _enumerate(lead)
    if method == "programme" and m > MOST_PROGRAMME:
        raise Unsupported(f"method programme takes components of at most {MOST_PROGRAMME} items, got one of {m}")
    search = _Search(lead, deadline, seed)
    if m > MOST_PROGRAMME:
        return search.solved(search.packing(), "heuristic")
    programme = _Programme(search, deadline, seed)
    if method == "heuristic":
        return search.solved(programme.relaxation(_HEURISTIC_ROUNDS), "heuristic")
    return search.solved(programme.run(auto=method == "auto"), "programme")


def _enumerate(lead: _Leads) -> _Solved:
    """The first of the best orders."""
    orders = np.array(list(itertools.permutations(range(len(lead)))))
    above, below = np.triu_indices(len(lead), 1)
    excess = np.maximum(lead, 0)[orders[:, above], orders[:, below]].sum(axis=1)
    best = int(np.argmin(excess))
    return _Solved(orders[best], excess[best].item(), excess[best].item(), "enumeration")


class _Search:
    """The best order met so far, and the search for better ones by moving one item at a time."""

    def __init__(self, lead: _Leads, deadline: float, seed: int) -> None:
        self.lead, self.deadline = lead, deadline
        total = float(np.maximum(lead, 0).sum())
        self.whole = lead.dtype.kind == "i" and total < 2**24
        self.slack = 1 - 1e-4 if self.whole else 1e-9 * total
        self.order, self.excess = np.arange(len(lead)), np.inf
        generator = np.random.default_rng(seed)
        for scores in (lead.sum(axis=1), np.sign(lead).sum(axis=1)):  # Borda's order, and Copeland's
            self.improve(np.argsort(scores, kind="stable"))
        for _ in range(_SHAKES if len(lead) <= MOST_PROGRAMME else 1):
            if time.perf_counter() > deadline:
                break
            shaken = self.order.copy()
            for place in generator.integers(0, len(lead), 3):
                block = slice(max(place - 4, 0), place + 5)
                shaken[block] = generator.permutation(shaken[block])
            self.improve(shaken)

    def improve(self, order: _Order) -> None:
        """Move items to where they cost least until none moves; keep the order if it is the best so far."""
        lead, moved = self.lead, True
        least = 0 if lead.dtype.kind == "i" else 1e-13 * float(np.abs(lead).max())
        while moved and time.perf_counter() < self.deadline:
            moved = False
            for item in order.copy():
                row = lead[item, order]
                place = int(np.flatnonzero(order == item)[0])
                # what it costs the item to stand before each of the order and all that follow, 0 at the end
                costs = np.zeros(len(order) + 1, lead.dtype)
                costs[:-1] = np.cumsum(row[::-1])[::-1]
                best = int(np.argmin(costs))
                if costs[best] < costs[place] - least:
                    order = np.insert(np.delete(order, place), best - (best > place), item)
                    moved = True
        excess = np.triu(np.maximum(lead, 0)[np.ix_(order, order)], 1).sum().item()
        if excess < self.excess:
            self.order, self.excess = order.astype(np.int64), excess

    def solved(self, bound: float, method: str) -> _Solved:
        """The best order with this bound, which whole excesses round up."""
        if bound > self.excess - self.slack:
            return _Solved(self.order, self.excess, self.excess, method)
        return _Solved(self.order, self.excess, max(math.ceil(bound - 1e-4) if self.whole else bound, 0), method)

    def packing(self) -> float:
        """The bound of 3-cycles i > j > k > i that share no lead."""
        left = np.maximum(-self.lead, 0).astype(np.float64)
        bound = 0.0
        for i in range(len(left)):
            if time.perf_counter() > self.deadline:
                break
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

    def __init__(self, search: _Search, deadline: float, seed: int) -> None:
        import highspy

        self.search, self.deadline, self.m = search, deadline, len(search.lead)
        self.first, self.second = np.triu_indices(self.m, 1)
        self.column = np.zeros((self.m, self.m), np.int32)
        self.column[self.first, self.second] = np.arange(len(self.first))
        leads = search.lead[self.first, self.second].astype(np.float64)
        self.scale = float(np.abs(leads).max())
        self.costs, self.constant = leads / self.scale, float(np.maximum(-leads, 0).sum())
        self.cuts = np.empty((0, 3), np.int32)
        self.bound, self.solver = search.packing(), highspy.Highs()  # type: ignore[no-untyped-call]
        tight = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance")
        options: dict[str, Any] = {"output_flag": False, "threads": 1, "random_seed": seed % 2**31, "mip_rel_gap": 0.0}
        options |= {"presolve": "off", "mip_heuristic_effort": 0.0}  # the search has found the order, most likely
        for name, value in {**options, **dict.fromkeys(tight, 1e-9)}.items():
            self.solver.setOptionValue(name, value)
        self.solver.setOptionValue("mip_abs_gap", 0.9 * search.slack / self.scale)
        none = np.empty(0)
        ends = np.zeros(len(leads)), np.ones(len(leads))
        self.solver.addCols(len(leads), self.costs, *ends, 0, none.astype(np.int32), none.astype(np.int32), none)

    def run(self, auto: bool) -> float:
        """The bound once the best order is proven, or the work or the time is used up."""
        self.relaxation(_AUTO_ROUNDS if auto else None)
        if not self._open() or (auto and self.m > _MOST_COMPLETE):
            return self.bound
        import highspy

        columns = np.arange(len(self.costs), dtype=np.int32)
        kinds = np.full(len(columns), int(highspy.HighsVarType.kInteger), np.uint8)
        self.solver.changeColsIntegrality(len(columns), columns, kinds)
        if self.m <= _MOST_COMPLETE:
            self._cut(all_triples=True)
        if auto:
            self.solver.setOptionValue("mip_max_nodes", _AUTO_NODES)
        more = True
        while more and self._open():
            places = np.argsort(self.search.order)
            above = (places[self.first] < places[self.second]).astype(np.float64)
            self.solver.setSolution(len(columns), columns, above)
            before = self.solver.getRunTime()
            more = self._optimise()
            info = self.solver.getInfo()
            if self.solver.getRunTime() == before or info.mip_node_count < 0:
                break  # stopped before there was a bound
            bound = self.constant + info.mip_dual_bound * self.scale - 0.05 * self.search.slack
            if bound <= self.search.excess:  # an order costs as much, so it cannot be above
                self.bound = max(self.bound, bound)
            more = more and self._cut()
        return self.bound

    def relaxation(self, rounds: int | None) -> float:
        """The bound of the linear programme after so many rounds of cuts, or all that it takes."""
        for _ in itertools.count() if rounds is None else range(rounds):
            if not (self._open() and self._optimise()):
                break
            self.bound = max(self.bound, self._dual_bound())
            if not self._cut():
                break
        return self.bound

    def _open(self) -> bool:
        return self.bound <= self.search.excess - self.search.slack

    def _optimise(self) -> bool:
        """Solve the programme as it stands; False if the time limit cut it short."""
        import highspy

        left = self.deadline - time.perf_counter()
        if left <= 0:
            return False
        if left < math.inf:
            self.solver.setOptionValue("time_limit", self.solver.getRunTime() + left)
        self.solver.run()
        return bool(self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def _dual_bound(self) -> float:
        """From the prices of the rows alone, whatever their rounding."""
        prices = np.array(self.solver.getSolution().row_dual)
        reduced = self.costs.copy()
        for position, sign in ((0, 1), (1, 1), (2, -1)):
            np.subtract.at(reduced, self.cuts[:, position], sign * prices)
        # a row between 0 and 1 gives 0 for a price above 0 and the price itself below
        bound = np.minimum(reduced, 0).sum() + np.minimum(prices, 0).sum()
        return self.constant + float(bound) * self.scale - 1e-13 * self.scale * len(reduced)

    def _cut(self, all_triples: bool = False) -> bool:
        """Try the order that the solution suggests, and add triples that it violates; False if there are none."""
        values = np.array(self.solver.getSolution().col_value)
        above = np.zeros((self.m, self.m))
        above[self.first, self.second] = values
        above[self.second, self.first] = 1 - values
        self.search.improve(np.argsort(-above.sum(axis=1), kind="stable"))
        violated, triples = [], []
        for i in range(self.m - 2):
            j, k = np.triu_indices(self.m - i - 1, 1)
            j, k = j + i + 1, k + i + 1
            sums = above[i, j] + above[j, k] - above[i, k]
            beyond = np.maximum(-sums, sums - 1)
            kept = np.flatnonzero((beyond > _VIOLATED) | all_triples)
            violated.append(beyond[kept])
            triples.append(
                np.column_stack([self.column[i, j[kept]], self.column[j[kept], k[kept]], self.column[i, k[kept]]])
            )
        worst = np.argsort(-np.concatenate(violated), kind="stable")[: None if all_triples else _MOST_CUTS]
        rows = np.concatenate(triples)[worst].astype(np.int32)
        if not len(rows):
            return False
        self.cuts = np.concatenate([self.cuts, rows])
        signs, starts = np.tile([1.0, 1.0, -1.0], len(rows)), np.arange(0, 3 * len(rows), 3, dtype=np.int32)
        ends = np.zeros(len(rows)), np.ones(len(rows))
        self.solver.addRows(len(rows), *ends, 3 * len(rows), starts, rows.ravel(), signs)
        return True


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
            largest = float(np.abs(table).max())
            if largest > 1e300 / table.size:
                raise InputError(f"weights must be below 1e300 / m^2, got one of {largest:g}")
            return table
    size = max(abs(int(table.max())), abs(int(table.min()))) * table.size
    if size >= _LARGEST:
        raise InputError(f"weights must be whole numbers below 2^62 / m^2, got one of {size // table.size}")
    return table.astype(np.int64)


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
