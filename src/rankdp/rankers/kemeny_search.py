"""Kemeny orders by branch and bound, each bound from a relaxation over triples that is solved without an LP solver.

Write u_ij = 1 if i stands above j and -1 if not, and D_ij for what i above j costs, less what j above i costs. An
order's excess over the sum of the cheaper sides is 1/2 sum over pairs of (``|D_ij| + u_ij D_ij``), and u is an order
exactly if it has no 3-cycle: ``|u_ij + u_jk + u_ki| <= 1`` for every triple (Grötschel, Jünger and Reinelt 1984).
Relaxing u to [-1, 1] and giving each triple a multiplier s, its flow, of either sign,

    excess >= 1/2 ( ``||D||_1 - ||D + A s||_1 - ||s||_1`` )      for *every* s,

where A sends the flow of a triple around its three pairs. (The term s (u_ij + u_jk + u_ki) that is added to the cost is
at most ``|s|``, and the least of u g over u in [-1, 1] is ``-|g|``.) Its maximum over s is the value of the LP with all
triangle inequalities. It is approached by primal-dual steps (Chambolle and Pock 2011),

    s <- shrink(s + tau A'u, tau),    u <- clip(u - sigma (D + A (2 s - old s)), -1, 1),

which converge while sigma tau ``||A||^2 <= 1``; on complete graphs ``||A||^2`` = m, and all other singular values of A
are 0 (Hodge decomposition), so that nothing is badly conditioned. A step takes a nanosecond or two for each triple.

Since any s proves its bound, rounding inside the steps does no harm. With g = D + A s a pair costs ``|g_ij|`` more on
its worse side, so if bound + ``|g_ij|`` reaches the best order known, the pair is fixed, with what follows by
transitivity. A triple with two pairs fixed says nothing more: either it fixed the third as well, or its inequality
holds whatever the third is; its flow only weakens the bound (``s a - |s| <= 0`` for its a = u_ij + u_jk + u_ki) and is
dropped. What is left is small, and is branched on. Whole costs have bounds that round up; for real ones (and whole ones
that add up to more than 10^10) an order counts as proven when no other is better by more than 1e-10 of the sum of all
``|D_ij|``.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankdp.rankers import kemeny_kernels as kernels

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]

MOST_RELAXED = 500
"""Items up to which the flows of all triples are kept: 166 MB."""

_TINY, _MOST_WHOLE = 1e-3, 1e10  # doubles add whole numbers up to here and miss less than this
_STEPS, _MOST_STEPS = 40, 20_000  # between two looks at the bound, and in one node, at most
_CHUNK = 20  # first items of cycles that are packed between two looks at the clock
_WIDE = 256  # open nodes; beyond, subtrees are searched depth first
_SHORT_SEARCH, _LONG_SEARCH = 3e7, 1e9  # before and after the relaxation, in pairs of items passed
_CONTESTED = 0.2  # the quantile of the leads that sets the scale of the flows
_PATIENCE, _LONG_PATIENCE = 6.0, 50.0  # more looks than this to close a node at the last one's pace: branch


@dataclass
class Limits:
    """When to stop: at a time on the clock, or after so much work, in triples looked at."""

    deadline: float = math.inf
    work: float = math.inf

    def spend(self, work: float) -> None:
        """Count work done."""
        self.work -= work

    def reached(self) -> bool:
        """Whether it is time to stop."""
        return self.work <= 0 or time.perf_counter() >= self.deadline


@dataclass
class Found:
    """The best order so far, its excess, and a proven lower bound of every order's excess."""

    order: Int64
    excess: float
    bound: float

    @property
    def proven(self) -> bool:
        """Whether nothing is left open."""
        return self.bound >= self.excess


@dataclass
class _Node:
    """Orders that agree with ``fixed``, and how far their relaxation is solved."""

    fixed: NDArray[np.int8]
    above: Float
    triples: NDArray[np.int32]
    flows: Float
    free: NDArray[np.int32]
    gains: Float
    bound: float
    """The best bound so far."""
    last: float = 0.0
    """The bound that goes with ``gains``: the steps do not always raise it."""


@dataclass(order=True)
class _Branch:
    """Orders yet to be looked at: those of a node in which one free pair is fixed."""

    bound: float
    number: int
    parent: _Node = field(compare=False)
    high: int = field(compare=False)
    low: int = field(compare=False)


class _Open:
    """The branches yet to be looked at: the least bound first, and depth first once there are many."""

    def __init__(self) -> None:
        self.heap: list[_Branch] = []
        self.stack: list[_Branch] = []
        self.number = 0

    def push(self, bound: float, node: _Node, high: int, low: int) -> None:
        self.number += 1
        branch = _Branch(bound, self.number, node, high, low)
        if len(self.heap) < _WIDE:
            heapq.heappush(self.heap, branch)
        else:
            self.stack.append(branch)

    def pop(self) -> _Branch | None:
        if self.stack:
            return self.stack.pop()
        return heapq.heappop(self.heap) if self.heap else None

    def bound(self) -> float:
        return min((branch.bound for branch in self.heap + self.stack), default=math.inf)


def _steps(work: int) -> int:
    """How many steps of so much work to take between two looks, so that the clock is seen at least twice a second."""
    return int(min(max(2e8 / max(work, 1), 3), _STEPS))


class Search:
    """Branch and bound on the leads of one component, whole numbers (with a gcd of 1) or real."""

    def __init__(self, lead: NDArray[np.int64] | Float, seed: int, limits: Limits) -> None:
        self.lead, self.limits, self.m = lead, limits, len(lead)
        sizes = np.abs(lead[np.triu_indices(self.m, 1)])
        size = float(sizes.sum())
        self.whole = lead.dtype.kind == "i" and size < _MOST_WHOLE
        self.least = lead.dtype.type(0 if lead.dtype.kind == "i" else 1e-13 * size)
        self.slack = 1 - _TINY if self.whole else 1e-10 * size
        self.upper = np.triu(lead, 1).astype(np.float64)
        scale = float(np.quantile(sizes[sizes > 0], _CONTESTED))
        self.tau, self.sigma = 0.99 * scale / math.sqrt(self.m), 0.99 / (scale * math.sqrt(self.m))
        self.seed, self.excess = seed, math.inf
        for scores in (lead.sum(axis=1), np.sign(lead).sum(axis=1)):  # Borda's order, and Copeland's
            self._search(np.argsort(scores, kind="stable").astype(np.int64), _SHORT_SEARCH)

    def _search(self, order: Int64, work: float) -> None:
        """Iterated local search from an order."""
        excess = kernels.search(self.lead, order, int(min(max(work / self.m**3, 2), 1000)), self.seed, self.least)
        if excess < self.excess:
            self.order, self.excess = order, excess

    @property
    def limit(self) -> float:
        """Where a bound is above this, there is no better order than the best."""
        return float(self.excess) - self.slack

    def packing(self) -> Found:
        """The order of a search, and the bound of a packing of 3-cycles, of as many as there is time for."""
        if not self.limits.reached():
            self._search(self.order.copy(), _LONG_SEARCH)
        rest, bound = self.lead.copy(), 0.0
        for start in range(0, self.m, _CHUNK):
            if self.limits.reached():
                break
            bound += kernels.pack_cycles(rest, start, start + _CHUNK)
        return self._found(bound)

    def relaxation(self) -> Found:
        """The best order met while solving the relaxation, and its bound."""
        return self._found(self._root().bound)

    def run(self) -> Found:
        """Search until the best order is proven or a limit is reached."""
        root, waiting = self._root(), _Open()
        if self.limits.reached() or not self._is_open(root):
            return self._found(root.bound)
        self._split(root, waiting)
        while not self.limits.reached() and (branch := waiting.pop()):
            node = self._enter(branch)
            if node is not None and self._solve(node, _PATIENCE):
                self._split(node, waiting)
        return self._found(waiting.bound())

    def _found(self, bound: float) -> Found:
        if bound > self.limit:
            return Found(self.order, self.excess, self.excess)
        return Found(self.order, self.excess, max(math.ceil(bound - _TINY) if self.whole else bound, 0))

    def _root(self) -> _Node:
        """All orders: the flows of all triples until half of the pairs are fixed, then the listed ones."""
        m = self.m
        fixed, above, flows = np.zeros((m, m), np.int8), np.zeros((m, m)), np.zeros(m * (m - 1) * (m - 2) // 6)
        none, free = np.empty((0, 3), np.int32), kernels.settle(fixed, above)
        node = _Node(fixed, above, none, flows, free, np.zeros((m, m)), 0.0)
        few = self._approach(node, self._steps_all, _LONG_PATIENCE, fewest=len(free) // 2)
        if self._is_open(node) and not self.limits.reached():
            node.triples, node.flows = kernels.list_open(flows, fixed)
            if few:
                self._solve(node, _LONG_PATIENCE)
        if self._is_open(node) and time.perf_counter() < self.limits.deadline:
            self._search(self.order.copy(), _LONG_SEARCH)
        return node

    def _solve(self, node: _Node, patience: float) -> bool:
        """Approach the relaxation of a node whose triples are listed; True if it stays open."""
        self._approach(node, self._steps_listed, patience)
        return self._is_open(node)

    def _approach(self, node: _Node, take: Callable[[_Node], int], patience: float, fewest: int = 0) -> bool:
        """Take steps until the node is closed or its bound hardly moves; True if ``fewest`` free pairs ended it."""
        taken, mark, before, free = 0, _STEPS, node.bound, len(node.free)
        while self._is_open(node) and not (taken and self.limits.reached()):
            taken += take(node)
            if len(node.free) < fewest:
                return True
            if taken >= mark:
                gained, left = node.bound - before, self.limit - node.bound
                # a first bound may be below 0, which says nothing about the pace
                if before > 0 and gained * patience < left and len(node.free) > 0.9 * free:
                    break
                mark, before, free = taken + _STEPS, node.bound, len(node.free)
            if taken > _MOST_STEPS:
                break
        return False

    def _steps_all(self, node: _Node) -> int:
        """Steps over the flows of all triples, and a look at the bound."""
        steps = _steps(len(node.flows))
        kernels.relax_all(node.flows, node.above, self.upper, node.fixed, self.tau, self.sigma, steps)
        self.limits.spend(steps * len(node.flows))
        self._look(node, kernels.bound_all(node.flows, self.upper, node.fixed, node.gains))
        return steps

    def _steps_listed(self, node: _Node) -> int:
        """Steps over the listed triples, those that have become idle left out, and a look at the bound."""
        node.triples, node.flows = kernels.still_open(node.triples, node.flows, node.fixed)
        steps = _steps(3 * len(node.flows))
        tables = (node.triples, node.flows, node.above.reshape(-1), self.upper.reshape(-1), node.free)
        kernels.relax_listed(*tables, self.tau, self.sigma, steps)
        self.limits.spend(steps * (3 * len(node.flows) + self.m))
        self._look(node, kernels.bound_listed(node.triples, node.flows, self.upper, node.fixed, node.gains))
        return steps

    def _look(self, node: _Node, bound: float) -> None:
        """Take note of a bound: round u to an order, and fix pairs."""
        node.bound, node.last = max(node.bound, bound), bound
        self._round(node.above)
        if node.bound > self.limit:
            return
        if not kernels.fix_costly(node.gains, self.limit - bound, node.fixed):
            node.bound = math.inf
            return
        node.free = kernels.settle(node.fixed, node.above)
        if not len(node.free):
            self._round(node.above)
            node.bound = math.inf

    def _round(self, above: Float) -> None:
        """The order of the items' sums of u, improved, if it is better than the best."""
        order = np.argsort(above.sum(axis=0) - above.sum(axis=1), kind="stable").astype(np.int64)
        kernels.improve(self.lead, order, self.least)
        excess = kernels.excess(self.lead, order)
        if excess < self.excess:
            self.order, self.excess = order, excess

    def _is_open(self, node: _Node) -> bool:
        return node.bound <= self.limit

    def _split(self, node: _Node, waiting: _Open) -> None:
        """The two branches of the pair that the relaxation is least sure of."""
        u, gains = node.above.reshape(-1)[node.free], node.gains.reshape(-1)[node.free]
        chosen = int(np.argmax((1.001 - np.abs(u)) * np.abs(self.upper.reshape(-1)[node.free])))
        i, j = divmod(int(node.free[chosen]), self.m)
        gain = float(gains[chosen])
        for raised, high, low in sorted([(max(gain, 0.0), i, j), (max(-gain, 0.0), j, i)], reverse=True):
            waiting.push(max(node.bound, node.last + raised), node, high, low)

    def _enter(self, branch: _Branch) -> _Node | None:
        """The node of a branch, or None if nothing in it can be better than the best order."""
        parent, fixed = branch.parent, branch.parent.fixed.copy()
        if branch.bound > self.limit or not kernels.put_above(fixed, branch.high, branch.low):
            return None
        above = parent.above.copy()
        free = kernels.settle(fixed, above)
        node = _Node(fixed, above, parent.triples, parent.flows.copy(), free, parent.gains.copy(), branch.bound)
        if not len(free):
            self._look(node, branch.bound)
        return node
