"""The one place where mechanisms are known and chosen: by name, or the best one for the public numbers.

What is entered here by ``register`` is known everywhere: to ``privatize``, the command line, the planner, the audits
and the figures. The order is that of simplicity, which decides between equals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Literal, TypeVar, cast, get_args

from rankdp.checks import one_of, whole
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.noisy_ranks import NoisyRanks, RankLaplace
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.personal import Personal
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.sliding_tiers import SlidingTiers
from rankdp.mechanisms.rankings.tiers import Tiered, Tiers, check_tiers, read_name, spelled
from rankdp.mechanisms.rankings.ulam import Ulam, UlamTiers
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.theory.estimators import pair_estimator, rank_estimator

Objective = Literal["concordance", "aggregate"]
"""What the best mechanism is best at: keeping each ranking's order, or estimating what all rankings say together."""

_PAIRS_UP_TO = 50  # items up to which mechanisms are compared by their win rates
_registered: dict[str, type[RankingMechanism]] = {}
MECHANISMS: Mapping[str, type[RankingMechanism]] = MappingProxyType(_registered)
"""All ranking mechanisms by name, simple ones first."""

Kind = TypeVar("Kind", bound=type[RankingMechanism])


def register(kind: Kind) -> Kind:
    """Make a mechanism known by its name; also a decorator.

    Parameters
    ----------
    kind
        A subclass of ``RankingMechanism`` with a ``name`` of lower-case letters, digits and hyphens. A name is taken
        once; only a later version of the same class (run again in a notebook) may replace it.

    Returns
    -------
    type
        The class itself.
    """
    name = getattr(kind, "name", None)
    if not (isinstance(kind, type) and issubclass(kind, RankingMechanism)):
        raise InputError(f"kind must be a subclass of RankingMechanism, got {kind!r}")
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]*", name) or name in ("auto", *get_args(Objective)):
        raise InputError(f"name must be lower-case letters, digits and hyphens, and not auto, got {name!r}")
    known = _registered.get(name, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InputError(f"name must not be taken by another mechanism, got {name!r}, which is {known.__qualname__}")
    _registered[name] = kind
    _build.cache_clear()
    return kind


def mechanism(
    name: str,
    items: int,
    epsilon: Real | Iterable[Real],
    *,
    objective: Objective = "concordance",
    tiers: Sequence[int] | None = None,
) -> RankingMechanism | Personal:
    """A ranking mechanism by name, or the best one.

    Parameters
    ----------
    name
        One of ``MECHANISMS``, or "auto" for the best one. Sizes of tiers may follow: "tiers-10-90" (see ``named``).
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking: a number for everyone, or one for each voter.
    objective
        What "auto" is best at: "concordance" or "aggregate" (see ``candidates``).
    tiers
        How many items of the output each tier holds, the top first, for a mechanism that has tiers ("auto" is "tiers"
        then); by default it chooses them.

    Returns
    -------
    RankingMechanism or Personal
        ``Personal`` where every voter has an own epsilon; its rows are the voters in that order.
    """
    name = named(name, tiers)
    check_choice(name, objective)
    wanted = objective if name == "auto" else name
    if one_each(epsilon):
        return Personal(partial(_build, wanted, items), epsilon)
    return _build(wanted, items, positive(cast(Real, epsilon)))


def check_choice(name: str, objective: str) -> None:
    """Refuse an unknown name or objective."""
    base, sizes = read_name(str(name))
    if name != "auto" and name not in MECHANISMS and (sizes is None or not _tiered(base)):
        raise InputError(f"mechanism must be auto or one of {', '.join(MECHANISMS)}, got {name!r}")
    one_of("objective", objective, get_args(Objective))


def named(name: str, tiers: Sequence[int] | None) -> str:
    """The name of a mechanism with these sizes of its tiers, in the spelling that releases record.

    Parameters
    ----------
    name
        The name of a mechanism that has tiers, or "auto" for "tiers".
    tiers
        How many items of the output each tier holds, or None for what the mechanism chooses.
    """
    if tiers is None:
        return name
    base = "tiers" if name == "auto" else name
    if not _tiered(base):
        *others, last = filter(_tiered, MECHANISMS)
        raise InputError(f"tiers can be given with {', '.join(others)} and {last}, got mechanism {name!r}")
    sizes = list(tiers)
    return f"{base}-{spelled(check_tiers(sizes, sum(sizes)))}"


def _tiered(name: str) -> bool:
    return name in MECHANISMS and issubclass(MECHANISMS[name], Tiered)


@lru_cache(maxsize=256, typed=True)
def _build(wanted: str, items: int, epsilon: Fraction) -> RankingMechanism:
    """The mechanism of this name, or the best one for this objective."""
    if wanted in MECHANISMS:
        return MECHANISMS[wanted](items, epsilon)
    base, sizes = read_name(wanted)
    if sizes is not None:
        return cast(type[Tiered], MECHANISMS[base])(items, epsilon, sizes)
    ranked = candidates(items, epsilon, objective=cast(Objective, wanted))
    return next(candidate for candidate in ranked if candidate.taken_by_auto)


def candidates(items: int, epsilon: Real, *, objective: Objective = "concordance") -> list[RankingMechanism]:
    """The mechanisms that can serve rankings of this length, the best first. Uses public numbers only.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of one item's position in one ranking.
    objective
        "concordance" puts the one first that keeps most pairs in order: optimal up to 6 items, mostly tiers above.
        Ulam takes part up to 10 items, where its concordance is known exactly.
        "auto" takes the first that is not tiers, whose noise no aggregate can undo.
        "aggregate" puts the one first whose unbiased win rates (above 50 items: mean ranks) have the smallest mean
        variance, so that the fewest respondents are needed. Those whose noise cannot be undone are left out.

    Returns
    -------
    list of RankingMechanism
        Those that agree to nine digits keep the order of the registry.
    """
    one_of("objective", objective, get_args(Objective))
    exact = positive(epsilon)
    built = [_build(name, items, exact) for name in serving(items)]
    if objective == "concordance":
        return sorted(built, key=lambda candidate: -round(candidate.expected_concordance(), 9))
    cost = {candidate: variance for candidate in built if (variance := _variance(candidate)) is not None}
    if not cost:
        raise Unsupported(
            f"no mechanism for {items} items at epsilon {float(exact):g} has noise that an aggregate can undo"
        )
    return sorted(cost, key=lambda candidate: cost[candidate])


def serving(items: int) -> tuple[str, ...]:
    """The names of the mechanisms that can serve rankings of this length, simple ones first."""
    whole("items", items, 2)
    return tuple(name for name, kind in MECHANISMS.items() if kind.serves(items))


def _variance(candidate: RankingMechanism) -> float | None:
    """The mean variance of one voter's unbiased estimate to nine digits, None where there is none."""
    estimator = pair_estimator if candidate.items <= _PAIRS_UP_TO else rank_estimator
    try:
        return float(f"{estimator(candidate).mean_variance:.9g}")
    except Unsupported:
        return None


def why(chosen: RankingMechanism, objective: Objective = "concordance") -> str:
    """One sentence: what the choice keeps of the order, or what it costs an aggregate, and what the others would.

    Parameters
    ----------
    chosen
        The mechanism that was chosen.
    objective
        What it was chosen for (see ``candidates``).
    """
    ranked = candidates(chosen.items, chosen.epsilon, objective=objective)
    others = [other for other in ranked if other.name != chosen.name]
    if objective == "aggregate":
        listed = ", ".join(f"{other.name} {_variance(other):.3g}" for other in others)
        what = "win rate" if chosen.items <= _PAIRS_UP_TO else "mean rank"
        return (
            f"{chosen.name} needs the fewest respondents for {chosen.items} items at epsilon "
            f"{float(chosen.epsilon):g}: one of them adds {_variance(chosen):.3g} to the variance of an unbiased "
            f"{what} ({listed})"
        )
    listed = ", ".join(f"{type(other).name} {other.expected_concordance():.1%}" for other in others)
    return (
        f"{chosen.name} keeps {chosen.expected_concordance():.1%} of all pairs in order on average for {chosen.items} "
        f"items at epsilon {float(chosen.epsilon):g} ({listed})"
    )


for _kind in (Kendall, RankLaplace, NoisyRanks, Ulam, Reinsertion, Tiers, UlamTiers, SlidingTiers, Optimal):
    register(_kind)
