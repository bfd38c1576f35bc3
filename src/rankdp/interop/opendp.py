"""The verbs as OpenDP measurements, for programs that compose with OpenDP.

An OpenDP measurement has a domain, a metric, a function and a privacy map from distances to losses. Ours are

- domain: a table of rankings, ballots or comparisons whose list of items is the stated one and public;
- metric: how many changes of the protected unit lead from one table to the other ("one ballot": how many ballots were
  replaced). The unit is in the metric's name, so that measurements of different units do not compose;
- privacy map: one change costs (eps, delta) by the verb's own proof, d of them by group privacy d eps and
  delta (e^(d eps) - 1)/(e^eps - 1), rounded up.

Every call compares the release's guarantee with the promise that the map was made from, and fails if it is weaker.

OpenDP asks whoever builds such measurements to enable "contrib" and "honest-but-curious"; so does this module, by
leaving the question to OpenDP: ``opendp.prelude.enable_features("contrib", "honest-but-curious")``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rankdp.checks import whole
from rankdp.data.ballots import Ballots
from rankdp.data.comparisons import Comparisons
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.interop.accounting import replaced_unit
from rankdp.privacy.exact import Real, positive, rational, upwards
from rankdp.privacy.guarantee import Guarantee, unit_of
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import Entry
from rankdp.privacy.release import Release
from rankdp.publish.elections import elect
from rankdp.publish.privatize import privatize
from rankdp.publish.rank import rank


@dataclass(eq=False)
class Answer:
    """What a measurement returns: OpenDP writes on its answers, and a release cannot be written on."""

    release: Release[Any]

    @property
    def value(self) -> Any:
        """What was released."""
        return self.release.value


def make_privatize(items: Iterable[str], epsilon: Real, *, protect: str = "position", **options: Any) -> Any:
    """``rankdp.privatize`` of complete rankings as a measurement.

    Parameters
    ----------
    items
        The public list of items, in the order of the rankings' ``items``.
    epsilon, protect
        As in ``rankdp.privatize``; one epsilon for all.
    **options
        Further options of ``rankdp.privatize``, such as ``mechanism``.

    Returns
    -------
    opendp.Measurement
        From ``Rankings`` to an ``Answer`` with synthetic ``Rankings``.
    """
    promise = Guarantee(unit_of(protect), positive(epsilon))
    return make_measurement(
        lambda rankings: privatize(rankings, epsilon, protect=protect, **options),  # type: ignore[arg-type]
        promise,
        "rankings",
        Rankings,
        items,
    )


def make_elect(
    items: Iterable[str], epsilon: Real, *, rule: str, protect: str = "ballot", delta: Real = 0, **options: Any
) -> Any:
    """``rankdp.elect`` as a measurement.

    Parameters
    ----------
    items
        The public list of candidates, in the order of the ballots' ``items``.
    epsilon, rule, protect, delta
        As in ``rankdp.elect``.
    **options
        Further options of ``rankdp.elect``, such as ``seats``.

    Returns
    -------
    opendp.Measurement
        From ``Ballots`` to an ``Answer`` with an ``Election``.
    """
    promise = Guarantee(unit_of(protect), positive(epsilon), rational(delta, "delta"), local=False)
    return make_measurement(
        lambda ballots: elect(ballots, epsilon, rule=rule, protect=protect, delta=delta, **options),
        promise,
        "ballots",
        Ballots,
        items,
    )


def make_rank(items: Iterable[str], epsilon: Real, *, protect: str, delta: Real = 0, **options: Any) -> Any:
    """``rankdp.rank`` as a measurement.

    Parameters
    ----------
    items
        The public list of items, in the order of the comparisons' ``items``.
    epsilon, protect, delta
        As in ``rankdp.rank``.
    **options
        Further options of ``rankdp.rank``, such as ``method``.

    Returns
    -------
    opendp.Measurement
        From ``Comparisons`` to an ``Answer`` with a ``Leaderboard``.
    """
    promise = Guarantee(unit_of(protect), positive(epsilon), rational(delta, "delta"), local=False)
    return make_measurement(
        lambda votes: rank(votes, epsilon, protect=protect, delta=delta, **options),
        promise,
        "comparisons",
        Comparisons,
        items,
    )


def make_measurement(
    release: Callable[[Any], Release[Any]], promise: Guarantee, what: str, kind: type, items: Iterable[str]
) -> Any:
    """Anything that returns a ``Release`` as a measurement; it returns an ``Answer``.

    Parameters
    ----------
    release
        From data to a release, without a ledger: OpenDP keeps the account.
    promise
        The guarantee that every release of it will have, or a better one.
    what
        The data in one word, for the domain's name.
    kind
        The class of the data: ``Rankings``, ``Ballots`` or ``Comparisons``.
    items
        The public list of items.
    """
    dp, names = _opendp(), tuple(items)

    def member(data: Any) -> bool:
        held: Any = data
        return isinstance(data, kind) and held.items == names and not getattr(held, "items_from_data", False)

    def function(data: Any) -> Answer:
        if not member(data):
            raise InputError(f"data must be {what} of the items {', '.join(names)}, given as a public list")
        made = release(data)
        if not _keeps(made.guarantee, promise):
            raise InputError(f"a release must promise what the measurement does ({promise.explain()})")
        return Answer(made)

    return dp.m.make_user_measurement(
        input_domain=dp.user_domain(f"rankdp: {what} of {list(names)!r}", member),
        input_metric=unit_distance(promise.protects),
        output_measure=dp.approximate(dp.max_divergence()) if promise.delta else dp.max_divergence(),
        function=function,
        privacy_map=lambda changes: _loss(promise, changes),
    )


def unit_distance(protect: str) -> Any:
    """The metric that counts changes of one unit, for a context's ``privacy_unit``.

    Parameters
    ----------
    protect
        A value of ``--protect``, or a guarantee's ``protects``.
    """
    return _opendp().user_distance(f"rankdp: changes of {unit_of(protect)}")


def spend(ledger: Ledger, measurement: Any, what: str, *, protect: str, changes: Any = 1, delta: Real = 0) -> Entry:
    """Charge a ledger for a release that an OpenDP measurement is about to make, whoever wrote it.

    Parameters
    ----------
    ledger
        The budget.
    measurement
        With max divergence (eps), approximate max divergence (eps, delta) or zero-concentrated divergence (rho).
    what
        The release in a few words.
    protect
        What one change by ``changes`` protects, a word of ``--protect``: OpenDP does not know the ledger's units.
    changes
        The distance, in the measurement's own metric, that one change of ``protect`` can make. Where OpenDP counts rows
        that are added and removed, a replaced one ("ballot", "comparison") is two.
    delta
        With zero-concentrated divergence, the delta at which rho is stated as an epsilon. A budget that counts by
        Rényi divergences uses rho itself.
    """
    dp, loss = _opendp(), measurement.map(changes)
    measure, unit = measurement.output_measure, unit_of(protect)
    rows = measurement.input_metric in (dp.symmetric_distance(), dp.insert_delete_distance())
    if rows and changes < 2 and (replaced := replaced_unit(ledger, unit)):
        raise InputError(f"changes must be at least 2, because {replaced} is replaced: one comes and one goes")
    if measure == dp.zero_concentrated_divergence():
        loss, failing = upwards(loss), positive(delta, "delta")
        epsilon = upwards(loss + 2 * math.sqrt(loss * -math.log(failing)))  # Bun and Steinke 2016, Proposition 1.3
        guarantee = Guarantee(unit, Fraction(epsilon), failing, local=False, rho=loss)
    elif measure == dp.max_divergence():
        guarantee = Guarantee(unit, Fraction(loss), local=False)
    elif measure == dp.approximate(dp.max_divergence()):
        guarantee = Guarantee(unit, Fraction(loss[0]), Fraction(loss[1]), local=False)
    else:
        raise InputError(f"no guarantee is known for the output measure {measure}")
    return ledger.spend(guarantee, what)


def _keeps(kept: Guarantee | None, promise: Guarantee) -> bool:
    """Whether a release (a rehearsal has no guarantee) promises as much."""
    return (
        kept is not None
        and (kept.protects, kept.local) == (promise.protects, promise.local)
        and not kept.listed_items_public
        and kept.epsilon <= promise.epsilon
        and kept.delta <= promise.delta
    )


def _loss(promise: Guarantee, changes: Any) -> float | tuple[float, float]:
    """Group privacy, rounded up."""
    d = whole("changes", changes, 0)
    if d == 0:
        return (0.0, 0.0) if promise.delta else 0.0
    epsilon = upwards(float(d * promise.epsilon))
    if not promise.delta:
        return epsilon
    if d == 1:
        return epsilon, upwards(float(promise.delta))
    grown = math.expm1(epsilon) / math.expm1(float(promise.epsilon)) * float(promise.delta)
    return epsilon, min(1.0, grown * (1 + 1e-12))


def _opendp() -> Any:
    try:
        import opendp.prelude
    except ImportError:
        raise Unsupported("OpenDP's measurements need the package opendp: pip install opendp") from None
    return opendp.prelude
