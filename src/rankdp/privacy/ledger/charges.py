"""The ledger: a budget of epsilon and delta for a data set, kept in a file, charged before anything is released.

    reserve (on disk) -> draw -> let the value out -> commit

A reservation is spent from the moment it is on disk, and only then may noise be drawn. Commit adds what was released
and costs nothing. So at every moment the charges on disk cover every release that was ever begun: the ledger may count
too much, never too little. A kill leaves the reservation spent. After an exception ``spending`` gives it back only if
both of these hold:

1. *Nothing of the value has left the process.* It has left as soon as its first byte is handed to anything outside: a
   file under any name, a stream, the caller. A temporary file counts, because others may read it on a shared disk
   before it is removed. A failed write counts too, because it may have failed half-way. Noise that was drawn and thrown
   away reveals nothing: a promise is about what is seen, and the same secret bits are never used again.
2. *The failure says nothing about the data*: an interrupt, or an error of the operating system (a full disk, a missing
   directory). Any other failure might depend on the data or on the noisy value, and seeing it reveals a fact about
   them; if it were given back, such facts would be free, in any number. All refusals of data are made before the
   charge.

``cancel`` gives a charge back by hand; it is only for failures before any secret was read.

A budget is for one data set and one unit of protection. A data set may have several budgets, and a release is charged
to all of them at once or to none, so that the total of each is complete. Units do not mix: a release must protect what
the budget protects, or be converted on request and visibly (``units``).

The ledger cannot know that two names mean the same people: nothing ties the name of a data set to its rows.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, Protocol, Self, TypeVar

from rankdp.errors import BudgetExceeded as BudgetExceeded
from rankdp.errors import InputError, RankdpError, Setting, SystemProblem
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.composition import Account, Accounting, Terms, to_text
from rankdp.privacy.exact import Real, positive, rational, shown
from rankdp.privacy.guarantee import Guarantee, unit_of
from rankdp.privacy.ledger.entries import (
    Budget,
    Entry,
    Verified,
    all_budgets,
    all_entries,
    end,
    facts_of,
    now,
    one_entry,
    place_of,
    verify,
)
from rankdp.privacy.ledger.units import converted as in_unit
from rankdp.privacy.release import Provenance, Release
from rankdp.privacy.store import LedgerBroken as LedgerBroken
from rankdp.privacy.store import Store, Writing, canonical

_MOST_EPSILON = 10**9


class Charge:
    """A reservation on disk. Leaving the block commits it; an exception leaves it spent and says so in a note."""

    def __init__(self, ledger: Ledger, number: int) -> None:
        self._ledger, self.number, self._finished = ledger, number, False

    @property
    def entry(self) -> Entry:
        """The charge as the ledger has it."""
        return self._ledger._store.read(lambda writing: one_entry(writing, self.number))

    def commit(self, provenance: Provenance | None = None) -> None:
        """Record what was released. It is paid for already: if this cannot be written, a warning says so."""
        facts = facts_of(provenance)
        try:
            self._finish("commit", release=facts)
        except InputError as problem:
            if self._finished:
                raise
            self._finished = True
            warnings.warn(
                f"entry {self.number} stays reserved, which counts as spent: {problem}", UserWarning, stacklevel=2
            )

    def cancel(self, because: str) -> None:
        """Give the charge back. Only for failures before any secret was read; when in doubt, do not."""
        if not because.strip():
            raise InputError("because must say why no secret was read, got nothing")
        self._finish("cancel", because=because)

    def _finish(self, kind: str, **facts: Any) -> None:
        if self._finished:
            raise InputError(f"entry {self.number} must be committed or cancelled once, and it was")
        self._ledger._store.write(lambda writing: end(writing, self.number, kind, facts), durable=False)
        self._finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.add_note(self.told())
        elif not self._finished:
            self.commit()

    def told(self) -> str:
        """What the charge has spent by now, in one sentence, read from the file."""
        try:
            return self.entry.summary
        except InputError:
            return f"entry {self.number} counts as spent: {self._ledger.path} cannot be read just now"


class Spending:
    """A charge around a draw, or nothing where there is no ledger; see ``spending``."""

    def __init__(self, charge: Charge | None = None) -> None:
        self._charge, self.left = charge, False

    def leaves(self) -> None:
        """Declare that the value is about to leave the process: from now on it is paid for, whatever happens."""
        self.left = True

    def commit(self, provenance: Provenance) -> None:
        """Record what was released; the value may be handed out now."""
        self.left = True
        if self._charge is not None:
            self._charge.commit(provenance)


class Ledger:
    """The budgets of one data set in a file; serves threads and processes at once.

    Use ``create`` and ``open``; the constructor is for them.

    Parameters
    ----------
    store
        The open file.
    dataset
        The name of the data set.
    """

    def __init__(self, store: Store, dataset: str) -> None:
        self._store, self.dataset = store, dataset
        self._place: tuple[str | None, str | None] = (None, None)
        self._convert, self._note = False, ""
        self._made: list[int] = []

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        protect: str,
        epsilon: Real,
        delta: Real = 0,
        *,
        max_per_voter: int | None = None,
        accounting: Accounting = "auto",
        wait: float = 60.0,
    ) -> Self:
        """Add a budget to a file, which is created if it does not exist, and open the data set's ledger.

        Parameters
        ----------
        path
            The file, on a disk of this machine.
        dataset
            The name of the data set; one name for the same people.
        protect
            What is protected, as in ``rank``, ``elect`` and the others: "comparison", "outcome", "voter", "ballot",
            "position", "ranking" or "score"; or a guarantee's ``protects``.
        epsilon, delta
            What all releases together may cost.
        max_per_voter
            With "voter", the largest number of comparisons of one voter.
        accounting
            "auto", "basic" or "renyi"; see ``rankdp.privacy.composition``.
        wait
            How many seconds to wait for a lock of other processes.
        """
        if not isinstance(dataset, str) or not dataset.strip():
            raise InputError(f"dataset must be a text, got {dataset!r}")
        protects = unit_of(protect, max_per_voter)
        total = positive(epsilon)
        if total > _MOST_EPSILON:
            raise InputError(Setting("epsilon"), f" must be at most {_MOST_EPSILON:,} for a budget, got {epsilon!s}")
        terms = Terms.of(total, rational(delta, "delta"), accounting)
        store = Store(path, wait, create=True)

        def work(writing: Writing) -> None:
            for budget in all_budgets(writing, dataset):
                if budget.protects == protects:
                    raise InputError(f"{path}: the data set {dataset!r} has a budget for {protects!r} already")
                if budget.account != Account.opened(budget.account.terms):
                    raise InputError(
                        f"{path}: {dataset!r} has releases that a new budget would not include; create all budgets of "
                        "a data set before its first release"
                    )
            facts = {"kind": "budget", "when": now(), "dataset": dataset, "protects": protects}
            # the hash of its first event names a file: a random text in it makes the name unique
            number = writing.append(facts | {"salt": secrets.token_hex(16)} | terms.to_dict())
            writing.run("INSERT INTO accounts VALUES (?, ?)", number, canonical(Account.opened(terms).to_dict()))

        store.write(work)
        return cls(store, dataset)

    @classmethod
    def open(cls, path: str | os.PathLike[str], dataset: str | None = None, *, wait: float = 60.0) -> Self:
        """The ledger of a data set.

        Parameters
        ----------
        path
            The file.
        dataset
            The name of the data set; it may be left out if the file has only one.
        wait
            How many seconds to wait for a lock of other processes.
        """
        store = Store(path, wait)
        names = sorted({budget.dataset for budget in store.read(all_budgets)})
        if dataset is None and len(names) == 1:
            dataset = names[0]
        if dataset not in names:
            known = ", ".join(map(repr, names)) or "none"
            got = "nothing" if dataset is None else repr(dataset)
            raise InputError(
                f"{path}: ", Setting("dataset"), f" must be one that has a budget here ({known}), got {got}"
            )
        assert dataset is not None
        return cls(store, dataset)

    def using(
        self, *, partition: str | None = None, part: str | None = None, convert: bool = False, note: str = ""
    ) -> Self:
        """The same ledger for releases about one part of the voters, or for another unit.

        Pass it to a function that takes ``ledger=``: ``rank(votes, 1, ledger=ledger.using(convert=True), …)``.

        Parameters
        ----------
        partition
            The name of a partition of the voters, fixed beforehand and public; it needs ``part``.
        part
            The part that the releases are about: they do not affect voters of other parts.
        convert
            Accept a release that protects another unit, at the price of its conversion, which the entry shows.
        note
            Added to the description of every entry, so that it can be found again.
        """
        other = type(self)(self._store, self.dataset)
        other._place, other._convert, other._made = (partition, part), convert, self._made
        other._note = note or self._note
        return other

    def told(self) -> str:
        """How much of the budget was spent through this object, in one sentence."""
        if not self._made:
            return "nothing was charged"
        return "; ".join(Charge(self, number).told() for number in self._made)

    @property
    def path(self) -> str:
        """Where the file is."""
        return str(self._store.path)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """All budgets of the data set, with what is spent now."""
        return tuple(self._store.read(lambda writing: all_budgets(writing, self.dataset)))

    def charge(
        self,
        guarantee: Guarantee,
        what: str = "",
        *,
        partition: str | None = None,
        part: str | None = None,
        convert: bool = False,
    ) -> Charge:
        """Reserve what a release costs, on disk, or refuse with ``BudgetExceeded``; use it as a context manager.

        Parameters
        ----------
        guarantee
            The guarantee of the release, which is its cost.
        what
            A description for the entry.
        partition, part, convert
            As in ``using``; by default the ones this ledger was made with.
        """
        chosen = self.using(partition=partition, part=part, convert=convert) if partition or part or convert else self
        number = self._store.write(lambda writing: chosen._reserve(writing, guarantee, what))
        self._made.append(number)
        return Charge(self, number)

    def spend(
        self,
        guarantee: Guarantee,
        what: str = "",
        *,
        partition: str | None = None,
        part: str | None = None,
        convert: bool = False,
    ) -> Entry:
        """Reserve and commit at once, for a release that is made right after.

        Parameters
        ----------
        guarantee, what, partition, part, convert
            As in ``charge``.
        """
        charge = self.charge(guarantee, what, partition=partition, part=part, convert=convert)
        charge.commit()
        return charge.entry

    def history(self) -> list[Entry]:
        """Every charge of the data set, oldest first."""
        return [entry for entry in self._store.read(all_entries) if entry.dataset == self.dataset]

    def verify(self, head: str | None = None) -> Verified:
        """Check the whole file, entry by entry; ``LedgerBroken`` names the first that is wrong.

        Parameters
        ----------
        head
            A head that an earlier check returned: it must be in the chain, which an older copy or a rewritten file
            does not have.
        """
        return self._store.read(lambda writing: verify(writing, head))

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        self._store.close()

    def _reserve(self, writing: Writing, guarantee: Guarantee, what: str) -> int:
        """Charge every budget of the data set inside a transaction."""
        if not isinstance(guarantee, Guarantee):
            raise InputError(f"guarantee must be a rankdp.Guarantee, got {type(guarantee).__name__}")
        budgets = all_budgets(writing, self.dataset)
        if not budgets:
            raise LedgerBroken(f"{self.path}: the budget of {self.dataset!r} is gone from the file")
        for value in (guarantee.epsilon, guarantee.delta):
            to_text(value)  # refuses numbers that are too long
        facts = guarantee.to_dict()
        del facts["limits"], facts["explanation"]
        event = {
            "kind": "reserve",
            "when": now(),
            "dataset": self.dataset,
            "what": f"{what}, {self._note}" if self._note else str(what),
            "guarantee": facts,
            "partition": self._place[0],
            "part": self._place[1],
            "charges": [self._take(writing, budget, guarantee) for budget in budgets],
        }
        number = writing.append(event)
        writing.run("INSERT INTO unfinished VALUES (?)", number)
        return number

    def _take(self, writing: Writing, budget: Budget, guarantee: Guarantee) -> dict[str, Any]:
        """Charge one budget, or refuse; return what the entry records about it."""
        place = place_of(budget, self._place)
        converted, words = in_unit(guarantee, budget.protects, self._convert)
        after, cost = budget.account.charged(converted, place)
        standing = after.standing()
        if not standing.holds:
            raise _exceeded(budget, converted, place, words)
        writing.run("UPDATE accounts SET state = ? WHERE budget = ?", canonical(after.to_dict()), budget.number)
        return {
            "budget": budget.number,
            "cost": cost.to_dict(),
            "converted": words,
            "mode": after.mode,
            "counted_by": standing.method,
            "spent": to_text(standing.epsilon),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.path!r}, dataset={self.dataset!r})"


def _exceeded(budget: Budget, asked: Guarantee, place: tuple[str, str] | None, words: str | None) -> BudgetExceeded:
    """The refusal: requested, spent, remaining, the shortfall, and what would still fit.

    Spent amounts are rounded up and remaining ones down; ``words`` say how the release was converted.
    """
    account = budget.account
    after, _ = account.charged(asked, place)
    terms, before, then = account.terms, account.standing(), after.standing()
    fits = account.largest_fit(asked, place)
    remaining = max(terms.epsilon - before.epsilon, Fraction(0))
    short_by = max(then.epsilon - terms.epsilon, Fraction(0))
    lines = [
        f"{budget.dataset!r} ({budget.protects}) has a budget of epsilon {shown(terms.epsilon)}",
        f"requested {shown(asked.epsilon)}" + (f" ({words})" if words else ""),
        f"spent {shown(before.epsilon)} (counted by {before.method})",
        f"remaining {shown(remaining, up=False)}",
        f"short by {shown(short_by)}",
    ]
    if asked.delta and not short_by:
        allowed = terms.delta / 2 if after.mode == "split" else terms.delta
        lines.append(f"delta: requested {shown(asked.delta)}, spent {shown(account.total().delta)} of {shown(allowed)}")
    lines.append(
        f"an epsilon of {shown(fits, up=False)}{f' for {budget.protects}' if words else ''} would still fit"
        + (f" with delta {shown(asked.delta)}" if asked.delta else "")
        if fits
        else "nothing of this kind fits any more"
    )
    return BudgetExceeded("; ".join(lines), asked.epsilon, before.epsilon, remaining, short_by, fits)


def verify_file(path: str | os.PathLike[str], head: str | None = None) -> Verified:
    """``Ledger.verify`` for a file whose budgets may be unreadable."""
    store = Store(path)
    try:
        return store.read(lambda writing: verify(writing, head))
    finally:
        store.close()


T = TypeVar("T")
Deliver = Callable[[Release[T], Callable[[], None]], None]
"""Takes a release out of the process; it calls the function, its second argument, before the first byte leaves."""


class Counted(Protocol[T]):
    """Secret data, counted and ready to be released."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release will promise."""

    @property
    def what(self) -> str:
        """The release in a few words, for the ledger."""

    def draw(self, bits: Bits) -> Release[T]:
        """The release."""


def paid(
    counted: Counted[T], ledger: Ledger | None, bits: Bits | None = None, deliver: Deliver[T] | None = None
) -> Release[T]:
    """Charge for what was counted, draw it, and deliver it while the charge is held.

    Parameters
    ----------
    counted
        What is released.
    ledger, bits
        As in ``spending``; the operating system's bits if not given.
    deliver
        Takes the release out of the process, if the caller does not.
    """
    bits = bits or SecureBits()
    with spending(ledger, counted.guarantee, counted.what, bits) as charge:
        release = counted.draw(bits)
        if deliver is not None:
            deliver(release, charge.leaves)
        charge.commit(release.provenance)
    return release


@contextmanager
def spending(ledger: Ledger | None, guarantee: Guarantee, what: str, bits: Bits) -> Iterator[Spending]:
    """The charge of a release, held from the draw until its value is out; every failure states what is spent.

    ::

        with NewFile(path) as file, spending(ledger, guarantee, "board", bits) as charge:
            value = draw()
            charge.leaves()  # before the first byte is written
            file.write(value)
            file.keep()
            charge.commit(provenance)

    Make sure before the block that the target can be written (``NewFile`` does), and refuse nothing inside it that
    depends on the data. The module says when a failed release is given back. A note of the exception (``__notes__``)
    states what is spent; tracebacks show it and the command line prints it.

    Parameters
    ----------
    ledger
        The ledger to charge; with None nothing is charged or reported.
    guarantee
        The guarantee of the release, which is its cost.
    what
        The entry's description.
    bits
        Where the noise comes from; a rehearsal has no guarantee and must not be paid for.
    """
    if ledger is None:
        yield Spending()
        return
    if bits.seed is not None:
        raise InputError("ledger must not be given with a rehearsal, which carries no guarantee to pay for")
    try:
        charge = ledger.charge(guarantee, what)
    except RankdpError:
        raise
    except BaseException as problem:
        problem.add_note(f"it is not known whether this was charged: see rankdp budget show {ledger.path}")
        raise
    with charge:
        current = Spending(charge)
        try:
            yield current
        except (KeyboardInterrupt, OSError, SystemProblem) as problem:
            if not current.left:
                with suppress(InputError):  # if it cannot be given back, it stays spent
                    charge.cancel(f"nothing of it has left the process: {str(problem) or type(problem).__name__}")
            raise
