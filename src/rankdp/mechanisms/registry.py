"""The registry of ranking mechanisms: chosen by name, or the best one for the public numbers.

``register`` makes a mechanism available everywhere: to ``privatize``, the command line, the planner, the audits and the
figures. Simple mechanisms come first, and win ties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeVar, cast, get_args

from rankdp.checks import one_of, whole
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.kendall_ball import KendallBall
from rankdp.mechanisms.rankings.noisy_ranks import NoisyRanks, RankLaplace
from rankdp.mechanisms.rankings.offset_tiers import OffsetTiers
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.tiers import Tiered, Tiers, read_name, spelled
from rankdp.mechanisms.rankings.top_ball import MOST_LISTED, TopBall
from rankdp.mechanisms.rankings.ulam import Ulam
from rankdp.mechanisms.whole_rankings import protecting_rankings
from rankdp.privacy.exact import Real, positive
from rankdp.theory.estimators import pair_estimator, rank_estimator

Purpose = Literal["aggregate", "order", "top"]
"""What the rankings are for: to be aggregated; to keep each one's order; to keep the first k of each."""

Protect = Literal["position", "ranking"]
"""What epsilon protects: one item's position in a ranking (ranking DP), or the whole ranking (local DP)."""

_PAIRS_UP_TO = 10  # items: mechanisms are compared by win rates, as ballots are this short; above, by mean ranks
_RANKS_UP_TO = 200  # items: laws of positions are computed to choose; for longer rankings the relative cost is the same
COSTLY = 10  # times the respondents of the best mechanism: above, a warning is given
_DROPPED = {"ulam-tiers": "0.1.0", "sliding-tiers": "0.1.0"}  # with the last version that has them
_registered: dict[str, type[RankingMechanism]] = {}
MECHANISMS: Mapping[str, type[RankingMechanism]] = MappingProxyType(_registered)
"""All ranking mechanisms by name, simple ones first."""

Kind = TypeVar("Kind", bound=type[RankingMechanism])


def register(kind: Kind) -> Kind:
    """Register a mechanism under its name; also a decorator.

    Parameters
    ----------
    kind
        A subclass of ``RankingMechanism`` with a ``name`` of lower-case letters, digits and hyphens. Names are unique;
        only a later version of the same class (run again in a notebook) may replace it.

    Returns
    -------
    type
        The class itself.
    """
    name = getattr(kind, "name", None)
    if not (isinstance(kind, type) and issubclass(kind, RankingMechanism)):
        raise InputError(f"kind must be a subclass of RankingMechanism, got {kind!r}")
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]*", name) or name in ("auto", *get_args(Purpose)):
        raise InputError(f"name must be lower-case letters, digits and hyphens, and not auto, got {name!r}")
    known = _registered.get(name, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InputError(f"name must not be taken by another mechanism, got {name!r}, which is {known.__qualname__}")
    _registered[name] = kind
    for cached in (_build, _protecting, _best, _listing):
        cached.cache_clear()
    return kind


def mechanism(
    name: str,
    items: int,
    epsilon: Real,
    *,
    purpose: Purpose = "aggregate",
    top: int | None = None,
    tiers: Sequence[int] | None = None,
    protect: Protect = "position",
) -> RankingMechanism:
    """A ranking mechanism by name, or the best one.

    Parameters
    ----------
    name
        One of ``MECHANISMS``, or "auto" for the best one. Sizes of tiers or a radius may follow: "tiers-10-90" (see
        ``named``), "kendall-ball-14".
    items
        How many items each ranking has.
    epsilon
        The privacy of what ``protect`` names.
    purpose
        The goal by which "auto" chooses, and "kendall-ball" chooses its radius: "aggregate", "order" or "top" (see
        ``candidates``).
    top
        With ``purpose="top"``, the length of the top list. With ``protect="ranking"`` and another purpose, the number
        of items that are released at all: the mechanism is then "top-ball".
    tiers
        The sizes of the tiers, the top first, for a mechanism that has tiers ("auto" is "tiers" then); chosen by
        default.
    protect
        "position" for one item's position; "ranking" for the whole ranking: the mechanism then has the largest
        epsilon of a position at which ``local_epsilon()`` is at most ``epsilon``.
    """
    name = named(name, tiers)
    check_choice(name, purpose, top, protect)
    exact = positive(epsilon)
    if releases_lists(purpose, top, protect):
        chosen: RankingMechanism = _listing(name, items, exact, purpose, cast(int, top))
    elif name == "auto":
        chosen = _best(items, exact, purpose, top, protect)
    else:
        chosen = _protecting(name, items, exact, purpose, protect)
    stated = chosen.local_epsilon() if protect == "ranking" else chosen.epsilon
    if stated > exact:  # whatever was chosen must keep the promise
        raise Unsupported(f"{chosen.name} keeps an epsilon of {float(stated):g} for one {protect}, not {exact}")
    return chosen


def check_choice(name: str, purpose: str = "aggregate", top: int | None = None, protect: str = "position") -> None:
    """Refuse an unknown name, purpose or protection, and a ``top`` that is missing or has no use."""
    base, numbers = read_name(str(name))
    if name != "auto" and name not in MECHANISMS and (numbers is None or not _numbered(base)):
        raise InputError(f"mechanism must be auto or one of {', '.join(MECHANISMS)}, got {name!r}")
    one_of("purpose", purpose, get_args(Purpose))
    one_of("protect", protect, get_args(Protect))
    if top is None and purpose == "top":
        raise InputError(Setting("top"), ", the length of the top list, must be given for purpose top")
    if top is None:
        return
    whole("top", top, 1)
    if purpose != "top" and protect != "ranking":
        raise InputError(
            Setting("top"),
            " needs ",
            Setting("purpose", "top"),
            ", or ",
            Setting("protect", "ranking"),
            f" to release lists of the first items, got {top} with purpose {purpose} and protect {protect}",
        )
    if releases_lists(purpose, top, protect) and base not in ("auto", TopBall.name):
        raise InputError(f"mechanism must be auto or {TopBall.name} to release lists of {top} items, got {name!r}")


def releases_lists(purpose: str, top: int | None, protect: str) -> bool:
    """Whether lists of the first ``top`` items are released instead of rankings."""
    return top is not None and protect == "ranking" and purpose != "top"


def last_version_with(name: str) -> str | None:
    """The last version with a mechanism that was removed; None for all others."""
    return _DROPPED.get(read_name(name)[0])


def named(name: str, tiers: Sequence[int] | None) -> str:
    """The name of a mechanism with these sizes of its tiers, in the spelling that releases record.

    Parameters
    ----------
    name
        The name of a mechanism that has tiers, or "auto" for "tiers".
    tiers
        The sizes of the tiers, or None to let the mechanism choose.
    """
    if tiers is None:
        return name
    base = "tiers" if name == "auto" else name
    if not _tiered(base):
        *others, last = filter(_tiered, MECHANISMS)
        raise InputError(f"tiers can be given with {', '.join(others)} and {last}, got mechanism {name!r}")
    return f"{base}-{spelled(cast(type[Tiered], MECHANISMS[base]).check_sizes(tiers))}"


def may_have_offsets(name: str, items: int = 0, purpose: Purpose = "top", protect: Protect = "position") -> bool:
    """Whether a mechanism has offsets, or "auto" may choose one that has for at most this many items."""
    if name == "auto":
        return (items > _PAIRS_UP_TO or protect == "ranking") and purpose != "top"
    return MECHANISMS[name if name in MECHANISMS else read_name(name)[0]].has_offsets


def _tiered(name: str) -> bool:
    return name in MECHANISMS and issubclass(MECHANISMS[name], Tiered)


def _numbered(name: str) -> bool:
    return name in MECHANISMS and MECHANISMS[name].numbered


@lru_cache(maxsize=256, typed=True)
def _build(name: str, items: int, epsilon: Fraction, purpose: Purpose) -> RankingMechanism:
    """The mechanism of this name; if no numbers follow it, with the best ones for the purpose."""
    if name in MECHANISMS:
        return MECHANISMS[name].for_purpose(items, epsilon, purpose)
    base, numbers = read_name(name)
    return MECHANISMS[base].with_numbers(items, epsilon, cast(tuple[int, ...], numbers))


@lru_cache(maxsize=256, typed=True)
def _listing(name: str, items: int, epsilon: Fraction, purpose: Purpose, top: int) -> TopBall:
    """The ball on lists of the first ``top`` items; a length that follows the name must be this one."""
    numbers = read_name(name)[1]
    chosen = TopBall.with_numbers(items, epsilon, numbers) if numbers else None
    if chosen is not None and chosen.lists != top:
        raise InputError(f"top must be {chosen.lists}, the length in {name}, got {top}")
    if chosen is None or len(numbers or ()) == 1:
        return TopBall.for_lists(items, epsilon, top, purpose)
    return chosen


@lru_cache(maxsize=256, typed=True)
def _protecting(name: str, items: int, epsilon: Fraction, purpose: Purpose, protect: Protect) -> RankingMechanism:
    """The mechanism whose epsilon protects one position, or the whole ranking."""
    if protect == "position":
        return _build(name, items, epsilon, purpose)
    return protecting_rankings(lambda base, exact: _build(base, items, exact, purpose), name, epsilon)


@lru_cache(maxsize=256, typed=True)
def _best(items: int, epsilon: Fraction, purpose: Purpose, top: int | None, protect: Protect) -> RankingMechanism:
    return candidates(items, epsilon, purpose=purpose, top=top, protect=protect)[0]


def candidates(
    items: int,
    epsilon: Real,
    *,
    purpose: Purpose = "aggregate",
    top: int | None = None,
    protect: Protect = "position",
) -> list[RankingMechanism]:
    """The mechanisms that can serve rankings of this length, the best first. Uses public numbers only.

    Parameters
    ----------
    items
        How many items each ranking has.
    epsilon
        The privacy of what ``protect`` names.
    purpose
        "aggregate" sorts by how few respondents unbiased estimates need (``respondents_for_one``). Mechanisms that
        cannot be debiased are left out; if that leaves none, it means "order".
        "order" sorts by how many pairs stay in order: optimal up to 6 items, mostly tiers above. Ulam is included up to
        10 items, where its concordance is known exactly.
        "top" sorts by how many of the first ``top`` items stay among the first. Tiers are the top list and the rest;
        with ``protect="ranking"``, "top-ball" is compared too (what follows the list is in random order).
    top
        With ``purpose="top"``, the length of the top list; of shorter rankings, all but the last. With
        ``protect="ranking"`` and another purpose, the only candidate is "top-ball" on lists of this length.
    protect
        "position" or "ranking" (see ``mechanism``). For whole rankings "kendall-ball" keeps the most pairs.

    Returns
    -------
    list of RankingMechanism
        The candidates, the best first; ties to nine digits keep the order of the registry.
    """
    check_choice("auto", purpose, top, protect)
    exact = positive(epsilon)
    if releases_lists(purpose, top, protect):
        return [_listing("auto", items, exact, purpose, cast(int, top))]
    if purpose == "top":
        k = min(cast(int, top), items - 1)
        names = [name for name in serving(items) if not MECHANISMS[name].has_offsets]  # offsets move the cuts
        built = [
            _protecting(named(name, [k, items - k] if _tiered(name) else None), items, exact, purpose, protect)
            for name in names
        ]
        if protect == "ranking" and k <= MOST_LISTED:
            built.append(TopBall.for_lists(items, exact, k, purpose))
        kept = {candidate: share for candidate in built if (share := _top_kept(candidate, k)) is not None}
        return sorted(kept, key=lambda candidate: -kept[candidate])
    built = [_protecting(name, items, exact, purpose, protect) for name in serving(items)]
    if purpose == "aggregate":
        cost = {
            candidate: needed for candidate in built if (needed := respondents_for_one(candidate, protect)) is not None
        }
        if cost:
            return sorted(cost, key=lambda candidate: cost[candidate])
    return sorted(built, key=lambda candidate: -round(candidate.expected_concordance(), 9))


def serving(items: int) -> tuple[str, ...]:
    """The names of the mechanisms that can serve rankings of this length, simple ones first."""
    whole("items", items, 2)
    return tuple(name for name, kind in MECHANISMS.items() if kind.serves(items))


def compared_by(items: int, protect: Protect) -> str:
    """In which statistic ``respondents_for_one`` counts."""
    return "win rates" if items <= _PAIRS_UP_TO and protect == "position" else "mean ranks"


def respondents_for_one(candidate: RankingMechanism, protect: Protect = "position") -> float | None:
    """How many respondents are worth one true ranking to an unbiased aggregate.

    1 + V/B to nine digits. V is the mean variance that the noise adds to one respondent's unbiased win rate (above 10
    items, and if whole rankings are protected: mean rank). B is the variance between respondents who order the items
    at random, 1/4 (or (m^2 - 1)/12; less for lists, whose unlisted items share a rank). Above 200 items, if no closed
    form is known, the value for 200 is used: it barely depends on the length there. Single win rates cost far more if
    whole rankings are protected, for every mechanism.

    Parameters
    ----------
    candidate
        The mechanism.
    protect
        What is to be protected.

    Returns
    -------
    float or None
        None if its noise cannot be debiased.
    """
    items, most = candidate.items, candidate.position_law_up_to
    pairs = compared_by(items, protect) == "win rates"
    if ("pairs" if pairs else "ranks") not in candidate.debiasable or (
        most is not None and items > most and candidate.unbiased_ranks() is None
    ):
        return None
    try:
        if items > _RANKS_UP_TO and candidate.unbiased_ranks() is None:
            candidate = _build(type(candidate).name, _RANKS_UP_TO, candidate.epsilon, "aggregate")
        noise = (pair_estimator if pairs else rank_estimator)(candidate).mean_variance
    except Unsupported:
        return None
    return float(f"{1 + noise / (0.25 if pairs else candidate.rank_targets.var()):.9g}")


def _top_kept(candidate: RankingMechanism, k: int) -> float | None:
    """The share of the first k that stay among the first k, None if it is too slow to compute."""
    sized = isinstance(candidate, Tiered)
    if not sized and candidate.items > candidate.planned_up_to.get("overlap", candidate.items):
        return None
    try:
        return round(candidate.top_overlap(k), 9)
    except Unsupported:
        return None


def describe(chosen: RankingMechanism, top: int | None = None, protect: Protect = "position") -> str:
    """One line: what a mechanism keeps of a ranking, and how many answers are worth one true ranking.

    Parameters
    ----------
    chosen
        The mechanism.
    top
        The length of the top list, to describe that instead of all pairs.
    protect
        What is protected.
    """
    own = f"epsilon {float(chosen.epsilon):g}"
    if protect == "ranking":
        own = f"epsilon {float(chosen.local_epsilon()):.4g} for the whole ranking"
    count = f"{chosen.items} items" if chosen.lists is None else f"the first {chosen.lists} of {chosen.items} items"
    line = f"{chosen.name} ({count}, {own})"
    if chosen.lists is None and not chosen.serves(chosen.items):  # its public numbers are estimates, or slow
        return line
    if chosen.lists is not None:
        kept = f"keeps {chosen.top_overlap(chosen.lists):.0%} of the items of a list"
    elif top is None:
        kept = f"keeps {chosen.expected_concordance():.0%} of pairs"
    else:
        k = min(top, chosen.items - 1)
        kept = f"keeps {chosen.top_overlap(k):.0%} of the top {k}"
    needed = respondents_for_one(chosen, protect)
    if needed is None:
        return f"{line}: {kept}; no aggregate can debias it"
    shown = f"{needed:.1f}" if needed < 5 else f"{needed:,.0f}" if needed < 1e6 else f"{needed:.1e}"
    answers = "1 answer tells" if shown == "1.0" else f"{shown} answers tell"
    return f"{line}: {kept}; {answers} as much as one true {'ranking' if chosen.lists is None else 'list'}"


def costly(chosen: RankingMechanism, epsilon: Real, protect: Protect = "position") -> str:
    """A warning if a mechanism needs over ten times the respondents of what "auto" chooses; else nothing.

    One cause is an epsilon at which its law is nearly singular: debiasing then multiplies the noise.

    Parameters
    ----------
    chosen
        The mechanism.
    epsilon
        The privacy of what ``protect`` names.
    protect
        What is protected.
    """
    if chosen.lists is not None or not chosen.serves(chosen.items):
        return ""
    needed = respondents_for_one(chosen, protect)
    if needed is None or needed <= COSTLY:
        return ""
    best = mechanism("auto", chosen.items, epsilon, protect=protect)
    fewest = respondents_for_one(best, protect)
    if fewest is None or needed <= COSTLY * fewest:
        return ""
    times = needed / fewest
    shown = f"{times:,.0f}" if times < 1e6 else f"{times:.1e}"
    return (
        f"at this epsilon an unbiased aggregate needs {shown} times as many answers from {chosen.name} as from "
        f"{best.name}, which auto would use"
    )


for _kind in (
    Kendall,
    RankLaplace,
    NoisyRanks,
    Ulam,
    Reinsertion,
    Tiers,
    OffsetTiers,
    KendallBall,
    TopBall,
    Optimal,
):
    register(_kind)
