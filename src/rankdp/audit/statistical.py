"""Statistical audits of any sampler: a lower confidence bound of its epsilon, from its outputs alone.

The draws are spent in two parts that share nothing. The *search* (two fifths) looks for the pair of neighbours and the
event that tell them apart best: first all pairs a little, then the most promising four more closely. Events are sets of
cells of a view (see ``views``): single cells, everything up to or from a cell on, and the first k cells by likelihood
ratio. Ratios that are high by luck are not believed: the cells are put in order by one half of the draws and judged by
the other, and the other way round. What is maximised is the bound that the held-out draws would give.

The *held-out* draws of that pair are then counted for at most three events, and the bound of ``bounds`` is taken at a
third of 1 - confidence each (Bonferroni). How the events were chosen does not matter, since these draws had no part in
it: whatever the sampler, the bound is above its true epsilon with probability at most 1 - confidence, provided that its
draws are independent (``independence`` checks that). Equation (8) of Xu stands beside it, without confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.audit.bounds import epsilon_bound, equation_8
from rankdp.audit.exact_audit import show
from rankdp.audit.views import Counts, GivenViews, Together, Views, fitting_views
from rankdp.errors import InputError
from rankdp.privacy.exact import Real, rational
from rankdp.theory.permutations import moves

Sampler = Callable[[Any, int], Any]
"""sampler(input, count): that many independent outputs for one input."""

_SEARCH = 0.4
_PROMISING = 3
_FINALISTS = 3
_SMOOTH = 4.0
_DOUBT = 2.0
_FEWEST = 100
_CHUNK = 1 << 20


@dataclass(frozen=True)
class EventBound:
    """One event on the held-out draws: how often it happened for either input, and what that proves.

    Parameters
    ----------
    event
        The event, in words.
    inputs
        The two neighbouring inputs, in words; the event is likelier for the first.
    hits
        How often the event happened for each.
    draws
        How many draws of each there were.
    probability_low
        A lower confidence bound of the event's probability for the first input.
    probability_high
        An upper confidence bound of it for the second.
    epsilon_low
        The lower bound of epsilon that follows.
    """

    event: str
    inputs: tuple[str, str]
    hits: tuple[int, int]
    draws: tuple[int, int]
    probability_low: float
    probability_high: float
    epsilon_low: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "event": self.event,
            "inputs": list(self.inputs),
            "hits": list(self.hits),
            "draws": list(self.draws),
            "probability_low": self.probability_low,
            "probability_high": self.probability_high,
            "epsilon_low": None if math.isinf(self.epsilon_low) else self.epsilon_low,
        }


@dataclass(frozen=True)
class StatisticalAudit:
    """What samples show: with this confidence, epsilon is at least ``epsilon_low``.

    Parameters
    ----------
    subject
        What was audited, in words.
    claimed
        The claimed epsilon.
    delta
        The claimed delta.
    confidence
        The confidence of ``epsilon_low``, over all events together.
    events
        The events that were counted on the held-out draws.
    plain_estimate
        The largest log-ratio of observed frequencies (Xu, equation (8)): no bound; NaN if there is none.
    draws
        How many draws were made in all.
    pairs
        How many pairs of neighbours were searched.
    """

    subject: str
    claimed: Fraction
    delta: Fraction
    confidence: float
    events: tuple[EventBound, ...]
    plain_estimate: float
    draws: int
    pairs: int

    kind = "statistical"

    @property
    def epsilon_low(self) -> float:
        """The best bound of all events, at least 0."""
        return max(0.0, *(one.epsilon_low for one in self.events))

    @property
    def worst(self) -> EventBound:
        """The event that shows most."""
        return max(self.events, key=lambda one: one.epsilon_low)

    @property
    def holds(self) -> bool:
        """Whether the claim survives."""
        return self.epsilon_low <= self.claimed

    def explain(self) -> str:
        """The verdict in plain words."""
        start = "No violation found" if self.holds else "VIOLATION"
        loss = f" with delta {show(self.delta)}" if self.delta else ""
        best = self.worst
        return (
            f"{start}: with {100 * self.confidence:.4g}% confidence epsilon is at least {_down(self.epsilon_low)}; "
            f"claimed {show(self.claimed)}{loss}. Told apart by: {best.event}, which happened in {best.hits[0]:,} of "
            f"{best.draws[0]:,} draws from {best.inputs[0]} and {best.hits[1]:,} of {best.draws[1]:,} from "
            f"{best.inputs[1]}. Plain estimate, equation (8): {show(self.plain_estimate)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "claimed_epsilon": str(self.claimed),
            "delta": str(self.delta),
            "confidence": self.confidence,
            "epsilon_low": self.epsilon_low,
            "plain_estimate": None if math.isnan(self.plain_estimate) else self.plain_estimate,
            "draws": self.draws,
            "pairs": self.pairs,
            "events": [one.to_dict() for one in self.events],
            "holds": self.holds,
            "explanation": self.explain(),
        }


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
        The number of draws in all.
    claimed_epsilon
        What is claimed.
    delta
        With what probability the claim may fail.
    confidence
        Of the lower bound.
    events
        Named events beside those that are tried: functions that say for each output whether it happened.
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
        said = search.views.views[event.view].words(event.cells)
        found.append(EventBound(said, (inputs[one], inputs[other]), hits, sizes, *bounds))
    return StatisticalAudit(name, claimed, loss, confidence, tuple(found), search.plain(), search.spent, len(pairs))


def _check(draws: int, claimed: Real, delta: Real, confidence: float) -> tuple[Fraction, Fraction]:
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < _FEWEST:
        raise InputError(f"draws must be an integer of at least {_FEWEST}, got {draws!r}")
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence must be above 0 and below 1, got {confidence!r}")
    epsilon, loss = rational(claimed, "claimed_epsilon"), rational(delta, "delta")
    if epsilon < 0:
        raise InputError(f"claimed_epsilon must be at least 0, got {claimed!s}")
    if not 0 <= loss < 1:
        raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
    return epsilon, loss


@dataclass(frozen=True)
class _Event:
    """Cells of a view that are likelier for the first input, or (turned) for the second."""

    view: int
    cells: NDArray[np.int64]
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
        self.sampler, self.delta, self.draws = sampler, delta, int(draws)
        self.inputs: list[Any] = []
        places: dict[Any, int] = {}
        self.pairs = [(self._place(one, places), self._place(other, places)) for one, other in pairs]
        self.spent = 0
        self.held_each = int(self.draws * (1 - _SEARCH) / 2)
        self.z = _normal_quantile((1 - confidence) / (2 * _FINALISTS))
        self.given = GivenViews(events) if events else None
        self.views: Views
        self.halves: list[list[list[Counts]]] = []  # input, half, view
        self.whole = 0  # the view that shows most, for the plain estimate

    def _place(self, given: Any, places: dict[Any, int]) -> int:
        key = (type(given), np.asarray(given).tobytes()) if isinstance(given, (list, tuple, np.ndarray)) else id(given)
        if key not in places:
            places[key] = len(self.inputs)
            self.inputs.append(given)
        return places[key]

    def run(self) -> tuple[int, int, list[_Event]]:
        """Search, and give the pair and its events."""
        few = len(self.pairs) <= 1
        budget = int(self.draws * _SEARCH)
        self._begin(max(2, (budget if few else budget // 2) // len(self.inputs)))
        ranked = sorted(self.pairs, key=self._promise, reverse=True)
        if not few:
            ranked = ranked[:_PROMISING]
            again = sorted({place for pair in ranked for place in pair})
            for place in again:
                self._more(place, max(2, (budget - budget // 2) // len(again)))
            ranked = sorted(ranked, key=self._promise, reverse=True)
        first, second = ranked[0]
        best = sorted(self._events(first, second), key=lambda event: -event.score)
        return first, second, best[:_FINALISTS]

    def _draw(self, place: int, count: int) -> Any:
        outputs = self.sampler(self.inputs[place], count)
        if len(outputs) != count:
            raise InputError(f"sampler must give as many outputs as it is asked for, {count}, got {len(outputs)}")
        self.spent += count
        return outputs

    def _begin(self, each: int) -> None:
        """Learn the views from the first draws."""
        first = min(each, _CHUNK)
        samples = [self._draw(place, first) for place in range(len(self.inputs))]
        fitted = fitting_views(samples)
        self.views = Together([self.given, fitted]) if self.given else fitted
        self.whole = len(self.given.views) if self.given else 0
        for place, sample in enumerate(samples):
            self.halves.append(self._in_halves(sample))
            self._more(place, each - first)

    def _more(self, place: int, count: int) -> None:
        for size in _chunks(count):
            fresh = self._in_halves(self._draw(place, size))
            self.halves[place] = [_sum(old, new) for old, new in zip(self.halves[place], fresh, strict=True)]

    def _in_halves(self, outputs: Any) -> list[list[Counts]]:
        middle = len(outputs) // 2
        return [self.views.tally(outputs[:middle]), self.views.tally(outputs[middle:])]

    def _tally(self, place: int, count: int) -> list[Counts]:
        total = [np.zeros(view.cells, dtype=np.int64) for view in self.views.views]
        for size in _chunks(count):
            total = _sum(total, self.views.tally(self._draw(place, size)))
        return total

    def held_out(self, first: int, second: int, chosen: list[_Event]) -> list[list[Counts]]:
        """Fresh draws of both inputs, more of the one whose probability is harder to bound."""
        left = max(2, self.draws - self.spent)
        shares = chosen[0].shares[::-1] if chosen[0].turned else chosen[0].shares
        weight = [math.cbrt((1 - share) / share) for share in shares]
        part = min(0.75, max(0.25, weight[0] / (weight[0] + weight[1]))) if sum(weight) else 0.5
        sizes = max(1, round(left * part)), max(1, left - round(left * part))
        return [self._tally(place, size) for place, size in zip((first, second), sizes, strict=True)]

    def _promise(self, pair: tuple[int, int]) -> float:
        return max(event.score for event in self._events(*pair))

    def _events(self, first: int, second: int) -> list[_Event]:
        """The best event of every view, in either direction."""
        sides = ((self.halves[first], self.halves[second], False), (self.halves[second], self.halves[first], True))
        return [self._best(view, *side) for side in sides for view in range(len(self.views.views))]

    def _best(self, view: int, one: list[list[Counts]], other: list[list[Counts]], turned: bool) -> _Event:
        """The event of this view whose expected bound is the largest."""
        a, b = [half[view] for half in one], [half[view] for half in other]
        whole_a, whole_b = a[0] + a[1], b[0] + b[1]
        totals = int(whole_a.sum()), int(whole_b.sum())
        candidates: list[tuple[float, NDArray[np.int64], tuple[float, float]]] = []

        def consider(hits: Any, others: Any, cells: Callable[[int], NDArray[np.int64]]) -> None:
            scores, shares = self._score(hits, others, totals)
            best = int(np.argmax(scores))
            candidates.append((float(scores[best]), cells(best), (float(shares[0][best]), float(shares[1][best]))))

        orders = [_by_ratio(a[half], b[half]) for half in (0, 1)]
        crossed = [np.cumsum(c[1][orders[0]]) + np.cumsum(c[0][orders[1]]) for c in (a, b)]
        together = _by_ratio(whole_a, whole_b)
        consider(crossed[0][:-1], crossed[1][:-1], lambda k: np.sort(together[: k + 1]))
        if self.views.views[view].ordered:
            consider(whole_a, whole_b, lambda k: np.array([k]))
            up_a, up_b = np.cumsum(whole_a)[:-1], np.cumsum(whole_b)[:-1]
            cells = len(whole_a)
            consider(up_a, up_b, lambda k: np.arange(k + 1))
            consider(totals[0] - up_a, totals[1] - up_b, lambda k: np.arange(k + 1, cells))
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
        """Equation (8) over all pairs, from the search draws."""
        counts = [half[0][self.whole] + half[1][self.whole] for half in self.halves]
        found = [equation_8(counts[one], counts[other]) for one, other in self.pairs]
        return max((value for value in found if not math.isnan(value)), default=math.nan)


def _by_ratio(first: Counts, second: Counts) -> NDArray[np.int64]:
    """The cells, those that speak most for the first input before the others."""
    share = max(1, int(first.sum())) / max(1, int(second.sum()))
    return np.argsort(-(first + _SMOOTH * share) / (second * share + _SMOOTH * share), kind="stable")


def _chunks(count: int) -> list[int]:
    return [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]


def _sum(one: list[Counts], other: list[Counts]) -> list[Counts]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _normal_quantile(alpha: float) -> float:
    from statistics import NormalDist

    return -NormalDist().inv_cdf(alpha)


def _in_words(given: Any) -> str:
    if isinstance(given, (list, tuple, np.ndarray)):
        return " ".join(str(part) for part in np.asarray(given).ravel().tolist())
    return str(given)


def _down(value: float) -> str:
    """Three digits after the point, rounded down: a bound is never overstated."""
    return f"{math.floor(value * 1000) / 1000:g}"


def ranking_neighbours(order: Iterable[int]) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """A ranking with each of its (m-1)^2 neighbours: those that differ by one moved item.

    Parameters
    ----------
    order
        The items, best first.
    """
    given = np.asarray(list(order), dtype=np.int32)
    return [(given, given[move]) for move in moves(len(given))]


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
