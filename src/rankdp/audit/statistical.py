"""Statistical audits of any sampler: a lower confidence bound of its epsilon, from its outputs alone.

The draws are spent in two parts that share nothing. The *search* (two fifths) looks for the pair of neighbours and the
event that tell them apart best: first all pairs a little, then the most promising four more closely. Events are sets of
cells of a view (see ``views``): single cells, everything up to or from a cell on, and the first k cells by likelihood
ratio. Ratios that are high by luck are not believed: the cells are put in order by one half of the draws and judged by
the other, and the other way round. What is maximised is the bound that the held-out draws would give.

The *held-out* draws of that pair are then counted for at most three events, and the bound below is taken at a
third of 1 - confidence each (Bonferroni). How the events were chosen does not matter, since these draws had no part in
it: whatever the sampler, the bound is above its true epsilon with probability at most 1 - confidence, provided that its
draws are independent (``independence`` checks that).

**The bound.** Clopper and Pearson (1934): from h hits in n draws, the probability p of an event is at least the
alpha-quantile of Beta(h, n - h + 1) and at most the (1 - alpha)-quantile of Beta(h + 1, n - h), each with confidence
1 - alpha, for every p and n alike. (eps, delta)-DP says p_1 <= e^eps p_2 + delta for every event. So with p_1 bounded
below and p_2 bounded above, each at half of alpha,

    eps >= log((p_1_low - delta) / p_2_high)    with confidence 1 - alpha,

provided that the event was chosen without looking at these draws.

Equation (8) of Xu is the plain estimate: the largest absolute log-ratio of frequencies over all outputs. It chooses the
output by the draws that it then counts, so it errs upwards; it comes without a confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.audit.findings import EventBound, StatisticalAudit
from rankdp.audit.views import View, Views, counted_from_one, fitting_views, named_views
from rankdp.checks import share, whole
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.registry import Protect
from rankdp.privacy.exact import Real, rational
from rankdp.progress import tell
from rankdp.theory.permutations import moves
from rankdp.types import Ints, Longs

Sampler = Callable[[Any, int], Any]
"""sampler(input, count): that many independent outputs for one input."""

_SEARCH = 0.4
_PROMISING = 3
_FINALISTS = 3
_SMOOTH = 4.0
_DOUBT = 2.0
_FEWEST = 100
_CHUNK = 1 << 20


def audit_samples(
    sampler: Sampler,
    neighbours: Iterable[tuple[Any, Any]],
    *,
    draws: int,
    claimed_epsilon: Real,
    delta: Real = 0,
    confidence: float = 0.99,
    events: Mapping[str, Callable[[Any], Any]] | None = None,
    name: str = "the sampler",
    describe: Callable[[Any], str] | None = None,
) -> StatisticalAudit:
    """Try to prove that a sampler is less private than claimed.

    Parameters
    ----------
    sampler
        ``sampler(input, count)`` gives ``count`` independent outputs for one input: rows of rankings, numbers, rows of
        numbers or texts.
    neighbours
        Pairs of inputs that the claim is about.
    draws
        The total number of draws.
    claimed_epsilon
        What is claimed.
    delta
        With what probability the claim may fail.
    confidence
        Of the lower bound.
    events
        Named events to try in addition to the built-in ones: functions that say for each output whether it happened.
    name
        What the report calls the sampler.
    describe
        Puts an input into words.
    """
    claimed, loss = _check(draws, claimed_epsilon, delta, confidence)
    pairs = list(neighbours)
    if not pairs:
        raise InputError("neighbours must list at least one pair of inputs, got none")
    search = _Search(sampler, pairs, draws, float(loss), events, confidence)
    first, second, chosen = search.run()
    held = search.held_out(first, second, chosen)
    words = describe or _in_words
    inputs = words(search.inputs[first]), words(search.inputs[second])
    found = []
    for event in chosen:
        one, other = (1, 0) if event.turned else (0, 1)
        hits = int(held[one][event.view][event.cells].sum()), int(held[other][event.view][event.cells].sum())
        sizes = int(held[one][event.view].sum()), int(held[other][event.view].sum())
        bounds = epsilon_bound(hits, sizes, (1 - confidence) / len(chosen), float(loss))
        said = search.views[event.view].words(event.cells)
        found.append(EventBound(said, (inputs[one], inputs[other]), hits, sizes, *bounds))
    return StatisticalAudit(name, claimed, loss, confidence, tuple(found), search.plain(), search.spent, len(pairs))


def _check(draws: int, claimed: Real, delta: Real, confidence: float) -> tuple[Fraction, Fraction]:
    whole("draws", draws, _FEWEST)
    share("confidence", confidence)
    epsilon, loss = rational(claimed, "claimed_epsilon"), rational(delta, "delta")
    if epsilon < 0:
        raise InputError(Setting("claimed_epsilon"), f" must be at least 0, got {claimed!s}")
    if not 0 <= loss < 1:
        raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
    return epsilon, loss


def epsilon_bound(
    hits: tuple[int, int], draws: tuple[int, int], alpha: float, delta: float = 0.0
) -> tuple[float, float, float]:
    """What counts of one event prove: (p_1 at least, p_2 at most, epsilon at least); -inf where nothing is shown.

    Parameters
    ----------
    hits
        How often the event happened for either input.
    draws
        Of how many draws.
    alpha
        One minus the confidence.
    delta
        With what probability the claim may fail.
    """
    from scipy.stats import beta

    low = float(beta.ppf(alpha / 2, hits[0], draws[0] - hits[0] + 1)) if hits[0] else 0.0
    high = float(beta.isf(alpha / 2, hits[1] + 1, draws[1] - hits[1])) if hits[1] < draws[1] else 1.0
    return low, high, math.log((low - delta) / high) if low > delta else -math.inf


def equation_8(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The largest absolute log-ratio of the frequencies of an output, over the outputs that both inputs have shown.

    Parameters
    ----------
    first
        How often each output came for one input.
    second
        The same for the other input.
    """
    both = (first > 0) & (second > 0)
    if not both.any():
        return math.nan
    shift = math.log(second.sum() / first.sum())
    return float(np.abs(np.log(first[both] / second[both]) + shift).max())


@dataclass(frozen=True)
class _Event:
    """Cells of a view that are likelier for the first input, or (turned) for the second."""

    view: int
    cells: Longs
    turned: bool
    score: float
    shares: tuple[float, float]


class _Search:
    """The draws that look for the pair and the events."""

    def __init__(
        self,
        sampler: Sampler,
        pairs: Sequence[tuple[Any, Any]],
        draws: int,
        delta: float,
        events: Mapping[str, Callable[[Any], Any]] | None,
        confidence: float,
    ) -> None:
        self.sampler, self.delta, self.draws, self.spent = sampler, delta, int(draws), 0
        self.inputs: list[Any] = []
        self.pairs = [(self._index(one), self._index(other)) for one, other in pairs]
        self.held_each = int(self.draws * (1 - _SEARCH) / 2)
        self.z = -NormalDist().inv_cdf((1 - confidence) / (2 * _FINALISTS))
        self.kinds: list[Views] = [named_views(events)] if events else []
        self.named = len(events or ())
        self.halves: list[list[list[Longs]]] = []  # input, half, view

    def _index(self, given: Any) -> int:
        """The index of an input among the inputs seen so far; the next free one if it is new."""
        for index, known in enumerate(self.inputs):
            rows = isinstance(given, (list, tuple, np.ndarray)) and type(known) is type(given)
            if known is given or (rows and np.array_equal(known, given)):
                return index
        self.inputs.append(given)
        return len(self.inputs) - 1

    @property
    def views(self) -> list[View]:
        """All events, the caller's first."""
        return [view for kind in self.kinds for view in kind.views]

    def run(self) -> tuple[int, int, list[_Event]]:
        """Search, and give the pair and its events."""
        few = len(self.pairs) <= 1
        budget = int(self.draws * _SEARCH)
        self._begin(max(2, (budget if few else budget // 2) // len(self.inputs)))
        ranked = sorted(self.pairs, key=self._promise, reverse=True)
        if not few:
            ranked = ranked[:_PROMISING]
            again = sorted({index for pair in ranked for index in pair})
            for index in again:
                self._more(index, max(2, (budget - budget // 2) // len(again)))
            ranked = sorted(ranked, key=self._promise, reverse=True)
        best = sorted(self._events(*ranked[0]), key=lambda event: -event.score)
        return *ranked[0], best[:_FINALISTS]

    def _draw(self, index: int, count: int) -> Any:
        outputs = self.sampler(self.inputs[index], count)
        if len(outputs) != count:
            raise InputError(f"sampler must give as many outputs as it is asked for, {count}, got {len(outputs)}")
        self.spent += count
        tell("drawing", self.spent, self.draws)
        return outputs

    def _begin(self, each: int) -> None:
        """Learn the views from the first draws."""
        first = min(each, _CHUNK)
        samples = [self._draw(index, first) for index in range(len(self.inputs))]
        self.kinds.append(fitting_views(samples))
        for index, sample in enumerate(samples):
            self.halves.append(self._in_halves(sample))
            self._more(index, each - first)

    def _more(self, index: int, count: int) -> None:
        for size in _chunks(count):
            fresh = self._in_halves(self._draw(index, size))
            self.halves[index] = [_sum(old, new) for old, new in zip(self.halves[index], fresh, strict=True)]

    def _in_halves(self, outputs: Any) -> list[list[Longs]]:
        middle = len(outputs) // 2
        return [self._tally(outputs[:middle]), self._tally(outputs[middle:])]

    def _tally(self, outputs: Any) -> list[Longs]:
        return [counts for kind in self.kinds for counts in kind.tally(outputs)]

    def held_out(self, first: int, second: int, chosen: list[_Event]) -> list[list[Longs]]:
        """Fresh draws of both inputs, more of the one whose probability is harder to bound."""
        left = max(2, self.draws - self.spent)
        shares = chosen[0].shares[::-1] if chosen[0].turned else chosen[0].shares
        weight = [math.cbrt((1 - share) / share) for share in shares]
        part = min(0.75, max(0.25, weight[0] / (weight[0] + weight[1]))) if sum(weight) else 0.5
        sizes = max(1, round(left * part)), max(1, left - round(left * part))
        return [
            reduce(_sum, (self._tally(self._draw(index, chunk)) for chunk in _chunks(size)))
            for index, size in zip((first, second), sizes, strict=True)
        ]

    def _promise(self, pair: tuple[int, int]) -> float:
        return max(event.score for event in self._events(*pair))

    def _events(self, first: int, second: int) -> list[_Event]:
        """The best event of every view, in either direction."""
        sides = ((self.halves[first], self.halves[second], False), (self.halves[second], self.halves[first], True))
        return [self._best(view, *side) for side in sides for view in range(len(self.views))]

    def _best(self, view: int, one: list[list[Longs]], other: list[list[Longs]], turned: bool) -> _Event:
        """The event of this view whose expected bound is the largest."""
        a, b = [half[view] for half in one], [half[view] for half in other]
        whole_a, whole_b = a[0] + a[1], b[0] + b[1]
        totals = int(whole_a.sum()), int(whole_b.sum())
        candidates: list[tuple[float, Longs, tuple[float, float]]] = []

        def consider(hits: Any, others: Any, cells: Callable[[int], Longs]) -> None:
            scores, shares = self._score(hits, others, totals)
            best = int(np.argmax(scores))
            candidates.append((float(scores[best]), cells(best), (float(shares[0][best]), float(shares[1][best]))))

        orders = [_by_ratio(a[half], b[half]) for half in (0, 1)]
        crossed = [np.cumsum(c[1][orders[0]]) + np.cumsum(c[0][orders[1]]) for c in (a, b)]
        together = _by_ratio(whole_a, whole_b)
        proper = slice(max(1, len(together) - 1))  # all cells together are no event, unless there is but one
        consider(crossed[0][proper], crossed[1][proper], lambda k: np.sort(together[: k + 1]))
        if self.views[view].ordered:
            consider(whole_a, whole_b, lambda k: np.array([k]))
            up_a, up_b = np.cumsum(whole_a)[proper], np.cumsum(whole_b)[proper]
            consider(up_a, up_b, lambda k: np.arange(k + 1))
            consider(totals[0] - up_a, totals[1] - up_b, lambda k: np.arange(k + 1, len(whole_a)))
        score, cells_of, shares = max(candidates, key=lambda candidate: candidate[0])
        return _Event(view, cells_of, turned, score, shares)

    def _score(self, hits: Any, others: Any, totals: tuple[int, int]) -> Any:
        """About the bound that the held-out draws will give, less a standard error of this very guess."""
        p, q = (hits + 0.5) / (totals[0] + 1), (others + 0.5) / (totals[1] + 1)
        sure = np.maximum(p - self.delta, 1e-12)
        first, second = (1 - p) * p / sure**2, (1 - q) / q
        held = self.z * (np.sqrt(first / self.held_each) + np.sqrt(second / self.held_each))
        doubt = _DOUBT * np.sqrt(first / totals[0] + second / totals[1])
        return np.log(sure / q) - held - doubt, (p, q)

    def plain(self) -> float:
        """Equation (8) over all pairs, from the search draws in the view that shows most, the first that was learnt."""
        counts = [half[0][self.named] + half[1][self.named] for half in self.halves]
        estimates = [equation_8(counts[one], counts[other]) for one, other in self.pairs]
        return max((value for value in estimates if not math.isnan(value)), default=math.nan)


def _by_ratio(first: Longs, second: Longs) -> Longs:
    """The cells, ordered by how much they favour the first input."""
    share = max(1, int(first.sum())) / max(1, int(second.sum()))
    return np.argsort(-(first + _SMOOTH * share) / (second * share + _SMOOTH * share), kind="stable")


def _chunks(count: int) -> list[int]:
    return [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]


def _sum(one: list[Longs], other: list[Longs]) -> list[Longs]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _in_words(given: Any) -> str:
    if isinstance(given, (list, tuple, np.ndarray)):
        return " ".join(str(part) for part in counted_from_one(np.asarray(given).ravel()).tolist())
    return str(given)


def ranking_neighbours(order: Iterable[int], protect: Protect = "position") -> list[tuple[Ints, Ints]]:
    """A ranking with each of its (m-1)^2 neighbours, which differ by one moved item.

    Parameters
    ----------
    order
        The items, best first.
    protect
        With "ranking", where any two rankings are neighbours: also with its reverse, the farthest one.
    """
    given = np.asarray(list(order), dtype=np.int32)
    moved = [(given, given[move]) for move in moves(len(given))]
    return [(given, given[::-1]), *moved] if protect == "ranking" and len(given) > 2 else moved


def ranking_sampler(mechanism: Any, bits: Any = None) -> Sampler:
    """The sampler of a mechanism, for ``audit_samples``.

    Parameters
    ----------
    mechanism
        Anything with the ``sample`` of ``RankingMechanism``.
    bits
        Where its draws take their randomness from; secure bits if not given.
    """

    def sampler(order: Any, count: int) -> Any:
        return mechanism.sample(np.broadcast_to(np.asarray(order, dtype=np.int32), (count, len(order))), bits)

    return sampler
