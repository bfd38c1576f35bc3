"""The contents of a ledger's file: budgets, charges and how they ended, and how to check all of it.

Five kinds of event: *budget* (a data set, a unit, its terms), *reserve* (a charge with its cost to every budget of the
data set), *commit* and *cancel* (how a charge ended), *answers* (how far a file of answers has come). An account is the
sum of its events. It is stored with them so that a charge need not read them all, and ``verify`` computes it again.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rankdp.errors import InputError, Setting
from rankdp.privacy.composition import Account, Cost, Standing, Terms, to_text
from rankdp.privacy.exact import shown
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Provenance
from rankdp.privacy.store import LedgerBroken, Writing, canonical

_STATES = {"commit": "committed", "cancel": "cancelled"}
_PLAIN = ("number", "when", "dataset", "what", "partition", "part")  # in an entry as in its event


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget and how much of it is spent."""

    number: int
    dataset: str
    protects: str
    account: Account

    @property
    def terms(self) -> Terms:
        """What it allows."""
        return self.account.terms

    @property
    def standing(self) -> Standing:
        """What is spent, and how that was counted."""
        return self.account.standing()

    @property
    def remaining(self) -> Fraction:
        """The largest epsilon of a release without a delta that still fits."""
        pure = Guarantee(self.protects, self.terms.epsilon)
        return max(self.terms.epsilon - self.standing.epsilon, self.account.largest_fit(pure, None))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; exact numbers as text."""
        terms, standing = self.terms, self.standing
        return {
            "dataset": self.dataset,
            "protects": self.protects,
            "epsilon": to_text(terms.epsilon),
            "delta": to_text(terms.delta),
            "accounting": terms.accounting,
            "spent_epsilon": to_text(standing.epsilon),
            "spent_delta": to_text(standing.delta),
            "counted_by": standing.method,
            "remaining_epsilon": to_text(self.remaining),
            "releases": self.account.whole.releases
            + sum(sums.releases for parts in self.account.parts.values() for sums in parts.values()),
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge. ``charged`` are its costs, one for each budget of the data set in the order of ``budgets``.

    ``state`` is reserved, committed or cancelled; reserved counts as spent. ``counted_by`` and ``spent`` are the state
    of each budget afterwards.
    """

    number: int
    when: str
    dataset: str
    what: str
    state: str
    guarantee: Guarantee
    budgets: tuple[int, ...]
    charged: tuple[Cost, ...]
    converted: tuple[str | None, ...]
    counted_by: tuple[str, ...]
    spent: tuple[Fraction, ...]
    partition: str | None = None
    part: str | None = None
    release: Mapping[str, Any] | None = None
    because: str | None = None

    @property
    def summary(self) -> str:
        """How much of the budget the charge spends, in one sentence."""
        costs = [
            f"epsilon {shown(cost.epsilon)}" + (f" with delta {shown(cost.delta)}" if cost.delta else "")
            for cost in self.charged
        ]
        fate = "was given back" if self.state == "cancelled" else "stays spent"
        return f"{' and '.join(dict.fromkeys(costs))} of data set {self.dataset!r} {fate} (entry {self.number})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; exact numbers as text."""
        return {
            **{name: getattr(self, name) for name in (*_PLAIN, "state", "release", "because")},
            "protects": self.guarantee.protects,
            "epsilon": to_text(self.guarantee.epsilon),
            "delta": to_text(self.guarantee.delta),
            "idealized": self.guarantee.idealized,
            "charges": [
                {
                    "budget": budget,
                    "charged_epsilon": to_text(cost.epsilon),
                    "charged_delta": to_text(cost.delta),
                    "converted": converted,
                    "counted_by": method,
                    "spent_epsilon": to_text(spent),
                }
                for budget, cost, converted, method, spent in zip(
                    self.budgets, self.charged, self.converted, self.counted_by, self.spent, strict=True
                )
            ],
        }


@dataclass(frozen=True, slots=True)
class Verified:
    """A valid chain: its number of entries and its last hash. Keep the head elsewhere, and pass it to a later check."""

    entries: int
    head: str


def now() -> str:
    """The time, as text that sorts."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def all_budgets(writing: Writing, dataset: str | None = None) -> list[Budget]:
    """Every budget in the file, or of one data set, with its account."""
    rows = writing.rows(
        "SELECT a.budget, e.body, a.state FROM accounts a JOIN events e ON e.number = a.budget ORDER BY 1"
    )
    budgets = []
    for number, body, state in rows:
        try:
            event = json.loads(body)
            account = Account.from_dict(Terms.from_dict(event), json.loads(state))
            budgets.append(Budget(number, event["dataset"], event["protects"], account))
        except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError):
            raise LedgerBroken(f"the budget of entry {number} cannot be read: rankdp budget verify says more") from None
    return [budget for budget in budgets if dataset in (None, budget.dataset)]


def end(writing: Writing, number: int, kind: str, facts: dict[str, Any]) -> None:
    """Append the commit or the cancellation of a charge; a cancellation gives back exactly what was taken."""
    if not writing.rows("SELECT 1 FROM unfinished WHERE charge = ?", number):
        raise InputError(f"entry {number} must be a charge that is not finished yet, and it is not")
    if kind == "cancel":
        event = writing.event(number)
        assert event is not None
        costs = {charge["budget"]: Cost.from_dict(charge["cost"]) for charge in event["charges"]}
        for budget in all_budgets(writing, event["dataset"]):
            state = canonical(budget.account.plus(costs[budget.number], _where(event), -1).to_dict())
            writing.run("UPDATE accounts SET state = ? WHERE budget = ?", state, budget.number)
    writing.run("DELETE FROM unfinished WHERE charge = ?", number)
    writing.append({"kind": kind, "when": now(), "charge": number, **facts})


def _where(event: Mapping[str, Any]) -> tuple[str, str] | None:
    return None if event["partition"] is None else (event["partition"], event["part"])


def place_of(budget: Budget, names: tuple[str | None, str | None]) -> tuple[str, str] | None:
    """The part of a partition, or None for everybody; a part belongs to one partition only."""
    partition, part = names
    if partition is None and part is None:
        return None
    if not partition or not part:
        raise InputError(
            Setting("partition"), " and ", Setting("part"), f" need each other, got {partition or part!r} alone"
        )
    for other, parts in budget.account.parts.items():
        if other != partition and part in parts:
            raise InputError(f"part {part!r} belongs to the partition {other!r} already, got {partition!r}")
    return partition, part


def _entry_of(event: Mapping[str, Any], ending: Mapping[str, Any]) -> Entry:
    """A charge from its event and, if it has ended, from the event of its end."""
    charges = event["charges"]
    return Entry(
        **{name: event[name] for name in _PLAIN},
        state=_STATES.get(ending.get("kind", ""), "reserved"),
        guarantee=Guarantee.from_dict(event["guarantee"]),
        budgets=tuple(charge["budget"] for charge in charges),
        charged=tuple(Cost.from_dict(charge["cost"]) for charge in charges),
        converted=tuple(charge["converted"] for charge in charges),
        counted_by=tuple(charge["counted_by"] for charge in charges),
        spent=tuple(Fraction(charge["spent"]) for charge in charges),
        release=ending.get("release"),
        because=ending.get("because"),
    )


def one_entry(writing: Writing, number: int) -> Entry:
    """One charge with how it ended."""
    event = writing.event(number)
    assert event is not None
    ended = "SELECT body FROM events WHERE number > ? AND json_extract(body, '$.charge') = ?"
    ending: dict[str, Any] = next((json.loads(body) for (body,) in writing.rows(ended, number, number)), {})
    return _entry_of(event, ending)


def all_entries(writing: Writing) -> list[Entry]:
    """All charges, each with how it ended."""
    events = [json.loads(body) for (body,) in writing.rows("SELECT body FROM events ORDER BY number")]
    endings = {event["charge"]: event for event in events if event["kind"] in _STATES}
    return [_entry_of(event, endings.get(event["number"], {})) for event in events if event["kind"] == "reserve"]


def verify(writing: Writing, head: str | None) -> Verified:
    """Walk the chain and recompute everything that is derived from it."""
    accounts: dict[int, Account] = {}
    unfinished: dict[int, Mapping[str, Any]] = {}
    count = 0
    for event in writing.walk():
        count = event["number"]
        try:
            _replay(event, accounts, unfinished)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError) as problem:
            raise LedgerBroken(
                f"entry {count} is broken: it does not follow from earlier entries ({problem!r})"
            ) from None
    kept = {number: json.loads(state) for number, state in writing.rows("SELECT budget, state FROM accounts")}
    for number in sorted(kept.keys() | accounts.keys()):
        if number not in accounts or kept.get(number) != accounts[number].to_dict():
            raise LedgerBroken(f"the total of the budget of entry {number} is not the sum of its entries")
    if {charge for (charge,) in writing.rows("SELECT charge FROM unfinished")} != unfinished.keys():
        raise LedgerBroken("the list of unfinished charges is not what the entries say")
    hashes = {row[0] for row in writing.rows("SELECT hash FROM events")}
    if head is not None and head not in hashes:
        raise LedgerBroken(
            f"the head {head[:12]}… that was noted is not in this chain: it was rewritten, or is an older copy"
        )
    ((last,),) = writing.rows("SELECT hash FROM head")
    return Verified(count, last)


def _replay(event: Mapping[str, Any], accounts: dict[int, Account], unfinished: dict[int, Mapping[str, Any]]) -> None:
    """Apply an event to the accounts; an error if it cannot follow from earlier ones."""
    kind, number = event["kind"], event["number"]
    if kind == "budget":
        accounts[number] = Account.opened(Terms.from_dict(event))
    elif kind == "reserve":
        for charge in event["charges"]:
            account = replace(accounts[charge["budget"]], mode=charge["mode"])
            accounts[charge["budget"]] = after = account.plus(Cost.from_dict(charge["cost"]), _where(event))
            if not after.standing().holds:
                raise ValueError("it exceeds its budget")
        unfinished[number] = event
    elif kind in _STATES:
        reserved = unfinished.pop(event["charge"])
        if kind == "cancel":
            for charge in reserved["charges"]:
                cost = Cost.from_dict(charge["cost"])
                accounts[charge["budget"]] = accounts[charge["budget"]].plus(cost, _where(reserved), -1)
    elif kind != "answers":  # a note of ``rankdp.privacy.answers``, which costs nothing
        raise ValueError(f"unknown kind {kind!r}")


def facts_of(provenance: Provenance | None) -> dict[str, Any] | None:
    """The public facts of a release; values that JSON cannot hold become text."""
    if provenance is None:
        return None
    if provenance.seed is not None:
        raise InputError("a rehearsal carries no guarantee: it must not be committed to a ledger")
    parameters = json.dumps(dict(provenance.parameters), default=str)
    return {
        "mechanism": provenance.mechanism,
        "parameters": json.loads(parameters, parse_constant=lambda infinite: str(float(infinite))),
        "version": provenance.version,
        "when": provenance.when,
    }
