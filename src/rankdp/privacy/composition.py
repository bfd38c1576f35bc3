"""The cost of several releases together, when each may be chosen after seeing the results of the earlier ones.

A ledger admits one release after another, and the next may depend on the results before. That rules out taking the best
of many bounds after the fact; *filters* are used here, which hold whatever the order and the choices:

- basic: the epsilons add up to at most E and the deltas to at most D (Rogers, Roth, Ullman, Vadhan 2016);
- Rényi at an order a fixed in advance: if the divergences of order a add up to at most t, all releases together are
  (a, t)-RDP (Feldman, Zrnic 2021, Theorem 3.1), which is (eps, delta)-DP with eps = t + log(1 - 1/a)
  - log(a delta)/(a - 1) (Canonne, Kamath, Steinke 2020, Proposition 12).

Using *whichever filter fits*, each with the whole delta, is not a filter: on the outcomes that end under filter f the
excess over e^E is at most that filter's delta, and these add up over the filters. So delta is split: half for basic
composition, and a quarter of the other half for each of four orders (1, 2, 4 and 8 times the one that is best for
Gaussian noise that fills the whole budget; the larger ones serve mixtures with pure releases). Releases without a delta
do not use basic's half. The split costs about a tenth of epsilon on the Rényi side.

``accounting`` says when delta is split. *basic*: never. *renyi*: from the start. *auto*: pure releases add up, and the
first release with a delta decides: the split if it fits there, else basic composition with all of delta. This is sound
because earlier releases are charged their whole epsilon under every filter: given any history of pure releases that
cost e, what follows is (E - e, D)-DP either way, and may be chosen. A budget without a delta uses basic composition
only.

A divergence that a guarantee does not state is bounded by what it states: of a pure epsilon by min(eps, a eps^2/2), of
rho-zCDP by a rho, and since (a - 1) D_a is convex in a, by the chord between two points of a curve.

Parallel composition: voters in different parts of a partition are affected by releases of their own part only, so a
partition costs the largest of its parts, for each sum separately. Everything is a sum of rationals, so the order of
additions does not matter and giving back is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Literal

from rankdp.checks import one_of
from rankdp.errors import InputError, Setting
from rankdp.privacy.exact import sixth_digit
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.zcdp import rho_of

Accounting = Literal["auto", "basic", "renyi"]
Mode = Literal["open", "basic", "split"]
BASIC = "basic"
_OPENING: dict[str, Mode] = {"auto": "open", "basic": "basic", "renyi": "split"}  # how a new account counts
_STEPS = (1, 2, 4, 8)
_GRID = 1 << 40  # divergences are rounded up to multiples of its inverse
_LONGEST = 4000  # digits that Python still turns into text


@dataclass(frozen=True, slots=True)
class Cost:
    """What one release adds: epsilon, delta, and its divergence at each order (None where nothing bounds it)."""

    epsilon: Fraction
    delta: Fraction
    renyi: tuple[Fraction | None, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; rationals as text."""
        return dict(_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cost:
        """The cost that ``to_dict`` wrote."""
        curve = tuple(None if value is None else Fraction(value) for value in data["renyi"])
        return cls(Fraction(data["epsilon"]), Fraction(data["delta"]), curve)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a budget allows and how it counts. ``orders``: the orders of its Rényi filters; empty without a delta."""

    epsilon: Fraction
    delta: Fraction
    accounting: Accounting
    orders: tuple[int, ...] = ()

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, accounting: Accounting) -> Terms:
        """The terms with their orders chosen, from public numbers."""
        one_of("accounting", accounting, _OPENING)
        if not 0 <= delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {delta}")
        if delta == 0:
            if accounting == "renyi":
                raise InputError(Setting("accounting", "renyi"), " needs a budget with a delta above 0, got delta 0")
            return cls(epsilon, delta, "basic")
        if accounting == "basic":
            return cls(epsilon, delta, accounting)
        candidates = sorted({math.ceil(2 * 1.02**step) for step in range(700)})
        share, total = delta / (2 * len(_STEPS)), float(epsilon)
        best = max(candidates, key=lambda order: (total - float(conversion(order, share))) / order)
        return cls(epsilon, delta, accounting, tuple(best * step for step in _STEPS))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; rationals as text."""
        return dict(_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Terms:
        """The terms that ``to_dict`` wrote."""
        return cls(Fraction(data["epsilon"]), Fraction(data["delta"]), data["accounting"], tuple(data["orders"]))

    @property
    def share(self) -> Fraction:
        """The part of delta that each order has after the split."""
        return self.delta / (2 * len(self.orders))

    def cost(self, guarantee: Guarantee, mode: Mode) -> Cost:
        """What the release costs while the account counts by ``mode``: before the split, epsilon at every order."""
        if mode == "open":
            curve = tuple(guarantee.epsilon if guarantee.delta == 0 else None for _ in self.orders)
        else:
            curve = tuple(divergence(guarantee, order) for order in self.orders)
        return Cost(guarantee.epsilon, guarantee.delta, curve)


@dataclass(frozen=True, slots=True)
class Sums:
    """The costs of some releases, added up; ``unbounded`` counts the releases for which an order has no bound."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    renyi: tuple[Fraction, ...] = ()
    unbounded: tuple[int, ...] = ()
    releases: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Sums:
        """The sums of one release."""
        bounds = tuple(value or Fraction(0) for value in cost.renyi)
        return cls(cost.epsilon, cost.delta, bounds, tuple(value is None for value in cost.renyi), 1)

    def plus(self, other: Sums, sign: int = 1) -> Sums:
        """The sum of both, or for ``sign`` -1 the difference; empty sums have no orders yet."""
        curves = zip_longest(self.renyi, other.renyi, fillvalue=Fraction(0))
        counts = zip_longest(self.unbounded, other.unbounded, fillvalue=0)
        return Sums(
            self.epsilon + sign * other.epsilon,
            self.delta + sign * other.delta,
            tuple(own + sign * more for own, more in curves),
            tuple(own + sign * more for own, more in counts),
            self.releases + sign * other.releases,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sums:
        """The sums that ``to_dict`` wrote."""
        return cls(
            Fraction(data["epsilon"]),
            Fraction(data["delta"]),
            tuple(Fraction(value) for value in data["renyi"]),
            tuple(data["unbounded"]),
            int(data["releases"]),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """How much of a budget is spent by the tightest filter that still holds, and which filter that is.

    ``holds`` is False when the releases exceed the budget by every filter; ``epsilon`` is then the smallest one, or
    that of basic composition if only a delta is exceeded.
    """

    epsilon: Fraction
    delta: Fraction
    method: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Account:
    """Everything spent from one budget. ``parts[partition][part]`` are separate sums, kept next to ``whole``."""

    terms: Terms
    mode: Mode
    whole: Sums = Sums()
    parts: Mapping[str, Mapping[str, Sums]] = field(default_factory=dict)

    @classmethod
    def opened(cls, terms: Terms) -> Account:
        """A new account, from which nothing was spent."""
        return cls(terms, _OPENING[terms.accounting])

    def charged(self, guarantee: Guarantee, place: tuple[str, str] | None) -> tuple[Account, Cost]:
        """The account after the release, and its cost; the caller checks whether it still holds."""
        if self.mode == "open" and guarantee.delta > 0:
            cost = self.terms.cost(guarantee, "split")
            after = replace(self, mode="split").plus(cost, place)
            return (after if after.standing().holds else replace(after, mode="basic")), cost
        cost = self.terms.cost(guarantee, self.mode)
        return self.plus(cost, place), cost

    def plus(self, cost: Cost, place: tuple[str, str] | None, sign: int = 1) -> Account:
        """The account with a cost added for everybody, or for the voters of a part; ``sign`` -1 takes it back."""
        if place is None:
            return replace(self, whole=self.whole.plus(Sums.of(cost), sign))
        partition, part = place
        known = self.parts.get(partition, {})
        changed = {**known, part: known.get(part, Sums()).plus(Sums.of(cost), sign)}
        return replace(self, parts={**self.parts, partition: changed})

    def total(self) -> Sums:
        """The sums for a voter who is, in every partition, in its most expensive part."""
        total = self.whole
        for parts in self.parts.values():
            total = total.plus(_largest(list(parts.values())))
        return total

    def standing(self) -> Standing:
        """What is spent, by the filter with the smallest epsilon."""
        terms, total = self.terms, self.total()
        allowed = terms.delta / 2 if self.mode == "split" else terms.delta
        within = total.delta <= allowed
        basic = Standing(total.epsilon, total.delta, BASIC, within and total.epsilon <= terms.epsilon)
        if self.mode != "split" or not total.releases:
            return basic
        standings = [basic] if within else []
        for order, spent, unbounded in zip(terms.orders, total.renyi, total.unbounded, strict=True):
            if not unbounded:
                epsilon = max(spent + conversion(order, terms.share), Fraction(0))
                standings.append(Standing(epsilon, terms.delta, f"Rényi of order {order}", epsilon <= terms.epsilon))
        return min(standings, key=lambda standing: standing.epsilon, default=basic)

    def largest_fit(self, asked: Guarantee, place: tuple[str, str] | None) -> Fraction:
        """The largest epsilon that fits in place of the one asked for, with the same delta and kind of noise."""

        def fits(epsilon: Fraction) -> bool:
            if epsilon == 0:
                return True
            try:
                rho = float(rho_of(epsilon, asked.delta)) if asked.rho is not None and asked.delta else None
            except InputError:
                return False  # too small for any Gaussian noise
            return self.charged(replace(asked, epsilon=epsilon, rho=rho, renyi=()), place)[0].standing().holds

        basic = max(self.terms.epsilon - self._others(place), Fraction(0))
        low = basic if fits(basic) else Fraction(0)
        if self.mode == "basic" or not self.terms.delta or (self.mode == "open" and not asked.delta):
            return low
        high = self.terms.epsilon
        for _ in range(30 if asked.rho is None else 14):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low if low in (0, basic) else math.floor(low / (unit := sixth_digit(low))) * unit

    def _others(self, place: tuple[str, str] | None) -> Fraction:
        """The epsilons that basic composition adds to one more release: within a partition, only its own part."""
        if place is None:
            return self.total().epsilon
        partition, part = place
        own = self.parts.get(partition, {}).get(part, Sums())
        return replace(self, parts={**self.parts, partition: {part: own}}).total().epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the terms."""
        return {"mode": self.mode, "whole": _plain(self.whole), "parts": _plain(self.parts)}

    @classmethod
    def from_dict(cls, terms: Terms, data: Mapping[str, Any]) -> Account:
        """The account that ``to_dict`` wrote."""
        parts = {
            partition: {part: Sums.from_dict(sums) for part, sums in parts.items()}
            for partition, parts in data["parts"].items()
        }
        return cls(terms, data["mode"], Sums.from_dict(data["whole"]), parts)


def _largest(parts: list[Sums]) -> Sums:
    """The largest of each sum separately."""
    used = [part for part in parts if part.releases] or [Sums()]
    return Sums(
        max(part.epsilon for part in used),
        max(part.delta for part in used),
        tuple(map(max, zip(*(part.renyi for part in used), strict=True))),
        tuple(map(max, zip(*(part.unbounded for part in used), strict=True))),
        max(part.releases for part in used),
    )


def divergence(guarantee: Guarantee, order: float) -> Fraction | None:
    """A bound on the Rényi divergence of this order, rounded up: the best one that follows from the guarantee."""
    bounds: list[Fraction] = []
    if guarantee.delta == 0:
        bounds += [guarantee.epsilon, _rounded(Fraction(order) * guarantee.epsilon**2 / 2)]
    if guarantee.rho is not None:
        bounds.append(_rounded(Fraction(order) * Fraction(guarantee.rho)))
    below = max((point for point in guarantee.renyi if point[0] <= order), default=None)
    above = min((point for point in guarantee.renyi if point[0] >= order), default=None)
    if above is not None:
        bounds.append(_rounded(Fraction(above[1])))
        if below is not None and below[0] < above[0]:
            bounds.append(_chord(below, above, order))
    return min(bounds, default=None)


def _chord(below: tuple[float, float], above: tuple[float, float], order: float) -> Fraction:
    """The divergence between two known orders: (a - 1) D_a is convex, so the chord bounds it."""
    (low, first), (high, second), middle = map(Fraction, below), map(Fraction, above), Fraction(order)
    weight = (middle - low) / (high - low)
    return _rounded(((1 - weight) * (low - 1) * first + weight * (high - 1) * second) / (middle - 1))


def conversion(order: float, delta: Fraction) -> Fraction:
    """What (order, t)-RDP adds to t to become an epsilon with this delta, rounded up; it may be negative."""
    log_inverse = math.log(delta.denominator) - math.log(delta.numerator)  # of a delta of any size
    terms = math.log1p(-1 / order), (log_inverse - math.log(order)) / (order - 1)
    return _rounded(Fraction(sum(terms) + 1e-12 * sum(map(abs, terms))))  # terms may cancel, their errors do not


def _rounded(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * _GRID), _GRID)


def to_text(value: Fraction) -> str:
    """A rational as text, numerator/denominator; refused if it has thousands of digits."""
    if max(abs(value.numerator), value.denominator).bit_length() > 3.3 * _LONGEST:
        raise InputError(f"epsilon must keep the exact total below {_LONGEST:,} digits: round it to a decimal")
    return str(value)


def _plain(value: Any) -> Any:
    """Plain data: rationals as text, sums and mappings of them as dictionaries."""
    if isinstance(value, Fraction):
        return to_text(value)
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in sorted(value.items())}
    return [*map(_plain, value)] if isinstance(value, tuple) else value


def together(guarantees: Sequence[Guarantee], delta: Fraction) -> tuple[Guarantee, str]:
    """The guarantee of a list of releases that is fixed before the first of them is seen, and the bound that gave it.

    A fixed list needs no filter: the best of basic composition and of all Rényi orders holds with the whole delta.
    Charge the result once. Later changes of the list are not covered.

    Parameters
    ----------
    guarantees
        One for each release, all for the same unit of protection.
    delta
        The delta allowed for all of them together.

    Returns
    -------
    tuple[Guarantee, str]
        The guarantee of all of them together, and the bound that gave it.
    """
    if not guarantees:
        raise InputError("guarantees must hold at least one release, got none")
    basic = replace(guarantees[0].compose(*guarantees[1:]), rho=None, renyi=())
    bounds = [(basic.epsilon, basic.delta, BASIC)] if basic.delta <= delta else []
    if delta > 0:
        for order in sorted({1 + 0.1 * 1.05**step for step in range(300)}):
            curve = [divergence(guarantee, order) for guarantee in guarantees]
            if None not in curve:
                epsilon = sum(filter(None, curve), conversion(order, delta))
                bounds.append((max(epsilon, Fraction(0)), delta, f"Rényi of order {order:.4g}"))
    if not bounds:
        raise InputError(f"delta must be at least {basic.delta}, the sum over the releases, got {delta}")
    epsilon, spent, method = min(bounds)
    return replace(basic, epsilon=epsilon, delta=spent), method
