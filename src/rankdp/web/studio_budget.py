"""The budget as a bar: what is spent, what this release would take, what is left. The ledger is read, never changed."""

from __future__ import annotations

from dataclasses import dataclass

from rankdp.errors import InputError
from rankdp.privacy.exact import positive, shown
from rankdp.web.studio_release import Releases
from rankdp.web.studio_work import Work


@dataclass(frozen=True, slots=True)
class Bar:
    """One budget."""

    dataset: str
    protects: str
    same_unit: bool
    """Whether it is for what the work protects; else a charge must be converted."""
    total: float
    spent: float
    this: float
    words: str


def bars(releases: Releases, work: Work) -> list[Bar]:
    """Every budget of the ledger.

    Parameters
    ----------
    releases
        Whose ledger is read.
    work
        Whose epsilon would be charged.
    """
    asked = float(positive(work.epsilon)) if work.epsilon else 0.0
    found = []
    for ledger in releases.ledgers():
        with ledger:
            for budget in ledger.budgets:
                total, spent = budget.terms.epsilon, budget.standing.epsilon
                words = f"spent {shown(spent)} of {shown(total)}, left {shown(budget.remaining, up=False)}"
                same = budget.protects == work.protects
                found.append(Bar(ledger.dataset, budget.protects, same, float(total), float(spent), asked, words))
    return sorted(found, key=lambda bar: not bar.same_unit)


def chosen_ledger(releases: Releases, name: str) -> str:
    """The data set whose budget is charged; empty for none."""
    known = {ledger.dataset for ledger in releases.ledgers()}
    if name and name not in known:
        raise InputError(f"there is no budget for {name!r}")
    return name
