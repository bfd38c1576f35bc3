"""Guarantees as dp_accounting's events and privacy loss distributions, and ledgers that exchange with accountants.

- An event is a ``ZCDpEvent``: of the stated rho, or of eps^2/2 for a pure guarantee, which is what eps-DP implies (Bun
  and Steinke 2016, Proposition 3.3). Rényi accountants take it, alone, repeated and composed.
  ``RandomizedResponseDpEvent`` would be tighter for one pure release, but the PLD
  accountant of dp_accounting 0.6 counts a repeated one once.
- Every guarantee has a privacy loss distribution, the largest that (eps, delta) allows (Kairouz, Oh and Viswanath
  2015).

Rounding goes against us: an event never promises more than the guarantee.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from rankdp.errors import InputError, Unsupported
from rankdp.privacy.exact import Real, positive, upwards
from rankdp.privacy.guarantee import BALLOT, Guarantee, is_voter, unit_of
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import Entry


def event(guarantee: Guarantee) -> Any:
    """The dp_accounting event of a release.

    Parameters
    ----------
    guarantee
        Of the release. One with a delta and no rho has no event; use ``loss_distribution``.

    Returns
    -------
    dp_accounting.ZCDpEvent
    """
    accounting = _library()
    pure = [] if guarantee.delta else [guarantee.epsilon**2 / 2]
    bounds = [float(bound) for bound in (*pure, guarantee.rho) if bound is not None]
    if not bounds:
        raise Unsupported(f"no event is known for epsilon {guarantee.epsilon} with delta {guarantee.delta}")
    return accounting.ZCDpEvent(upwards(min(bounds)))


def loss_distribution(guarantee: Guarantee, interval: float = 1e-4) -> Any:
    """The privacy loss distribution of a release, to be composed with others of the same unit.

    Parameters
    ----------
    guarantee
        Of the release.
    interval
        The width of the grid of losses, which are rounded up to it.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """
    _library()
    from dp_accounting.pld import common, privacy_loss_distribution

    parameters = common.DifferentialPrivacyParameters(upwards(float(guarantee.epsilon)), float(guarantee.delta))
    return privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=interval)


def ledger_event(ledger: Ledger) -> Any:
    """What a ledger's data set has spent, as one event: everything that was reserved or committed.

    Parameters
    ----------
    ledger
        Whose charges are all in one unit of protection; parts of a partition are refused, since events add up.

    Returns
    -------
    dp_accounting.ComposedDpEvent
    """
    held = [entry for entry in ledger.history() if entry.state != "cancelled"]
    units = {entry.guarantee.protects for entry in held}
    if len(units) > 1:
        raise InputError(f"a ledger must have charges of one unit of protection, got {', '.join(sorted(units))}")
    if any(entry.partition is not None for entry in held):
        raise Unsupported("charges of a partition's parts cost the largest of them, which no event states")
    return _library().ComposedDpEvent([event(entry.guarantee) for entry in held])


def spend(ledger: Ledger, accountant: Any, what: str, *, protect: str, delta: Real) -> Entry:
    """Charge a ledger for all that an accountant of dp_accounting has composed.

    Parameters
    ----------
    ledger
        The budget.
    accountant
        A ``PrivacyAccountant`` with events: its epsilon at ``delta`` is charged. Units that are replaced, which are all
        but "voter", need one for ``NeighboringRelation.REPLACE_ONE``: what is promised for adding or removing one holds
        for replacing one at about twice the epsilon only.
    what
        What was released, in a few words.
    protect
        The unit that the accountant's neighbouring relation protects, a word of ``--protect``.
    delta
        Above 0.
    """
    failing, unit = positive(delta, "delta"), unit_of(protect)
    relation, replaced = accountant.neighboring_relation.name, replaced_unit(ledger, unit)
    if replaced and relation != "REPLACE_ONE":
        raise InputError(f"the accountant must be for REPLACE_ONE, because {replaced} is replaced, got {relation}")
    epsilon = accountant.get_epsilon(float(failing))
    if not math.isfinite(epsilon):
        raise InputError(f"the accountant must have a finite epsilon at delta {delta}, got {epsilon}")
    return ledger.spend(Guarantee(unit, Fraction(upwards(epsilon)), failing, local=False), what)


def replaced_unit(ledger: Ledger, unit: str) -> str | None:
    """What must be protected against being replaced; None if a voter or ballot who comes or goes is all there is.

    Conversions to comparisons and outcomes need more: they change rows of a voter who stays.

    Parameters
    ----------
    ledger
        The budgets that pay.
    unit
        What the release protects.
    """
    if not is_voter(unit):
        return unit
    budgets = (budget.protects for budget in ledger.budgets)
    return next((protects for protects in budgets if not is_voter(protects) and protects != BALLOT), None)


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError:
        raise Unsupported("events need the package dp_accounting: pip install dp-accounting") from None
    return dp_accounting
