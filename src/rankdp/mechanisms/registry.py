"""The one place where a mechanism is chosen: by name, or the best one for the public numbers (items, epsilon)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Literal, cast, get_args

from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.kendall import Kendall
from rankdp.mechanisms.rankings.noisy_ranks import NoisyRanks, RankLaplace
from rankdp.mechanisms.rankings.optimal import Optimal
from rankdp.mechanisms.rankings.personal import Personal
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.ulam import EXACT_UP_TO, Ulam
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.theory.estimators import pair_estimator, rank_estimator

Objective = Literal["concordance", "aggregate"]
"""What the best mechanism is best at: keeping each ranking's order, or estimating what all rankings say together."""

_PAIRS_UP_TO = 50  # items up to which mechanisms are compared by their win rates

MECHANISMS: Mapping[str, type[RankingMechanism]] = {
    cls.name: cls for cls in (Kendall, RankLaplace, NoisyRanks, Ulam, Reinsertion, Optimal)
}


def mechanism(
    name: str, items: int, epsilon: Real | Iterable[Real], *, objective: Objective = "concordance"
) -> RankingMechanism | Personal:
    """The mechanism called ``name`` (or the best one, for "auto") for rankings of ``items`` items at ``epsilon``.

    One epsilon for everyone gives a ``RankingMechanism``. An array with each voter's own gives a ``Personal``
    mechanism, whose rows are the voters in that order. ``objective`` says what "auto" is best at (see ``candidates``).
    """
    check_choice(name, objective)
    wanted = objective if name == "auto" else name
    if one_each(epsilon):
        return Personal(partial(_build, wanted, items), epsilon)
    return _build(wanted, items, positive(cast(Real, epsilon)))


def check_choice(name: str, objective: str) -> None:
    """Refuse a name or an objective that nobody knows."""
    if name != "auto" and name not in MECHANISMS:
        raise InputError(f"mechanism must be auto or one of {', '.join(MECHANISMS)}, got {name!r}")
    _check_objective(objective)


@lru_cache(maxsize=256, typed=True)
def _build(wanted: str, items: int, epsilon: Fraction) -> RankingMechanism:
    """The mechanism of this name, or the best one for this objective."""
    if wanted in MECHANISMS:
        return MECHANISMS[wanted](items, epsilon)
    return candidates(items, epsilon, objective=cast(Objective, wanted))[0]


def candidates(items: int, epsilon: Real, *, objective: Objective = "concordance") -> list[RankingMechanism]:
    """The mechanisms that can serve (items, epsilon), the best first: public numbers only.

    With ``objective="concordance"`` that is the one that keeps most pairs in order: noisy-ranks for long rankings at
    small epsilon (up to 1 for 10 items, 2.2 for 20, 4.7 for 100), else optimal up to 6 items, ulam up to 10 and
    reinsertion above. Those that agree to nine digits keep the order of the registry, simple ones first. Ulam takes
    part up to 10 items, where its concordance is known exactly. There it leads reinsertion by 0.002; for 12 to 50 items
    it was measured within 0.002 of it at eps = 4 and up to 0.008 behind it at eps = 1.

    With ``objective="aggregate"`` it is the one whose unbiased win rates (above 50 items: mean ranks) have the
    smallest mean variance, so that the fewest respondents are needed. Those whose noise cannot be undone are left out.
    """
    _check_objective(objective)
    exact = positive(epsilon)
    built = [_build(cls.name, items, exact) for cls in MECHANISMS.values() if _serves(cls, items)]
    if objective == "concordance":
        return sorted(built, key=lambda one: -round(one.expected_concordance(), 9))
    cost = {one: found for one in built if (found := _variance(one)) is not None}
    if not cost:
        raise Unsupported(
            f"no mechanism for {items} items at epsilon {float(exact):g} has noise that an aggregate can undo"
        )
    return sorted(cost, key=lambda one: cost[one])


def serving(items: int) -> tuple[str, ...]:
    """The mechanisms that can serve rankings of this length, simple ones first."""
    return tuple(cls.name for cls in MECHANISMS.values() if _serves(cls, items))


def _serves(cls: type[RankingMechanism], items: int) -> bool:
    most = EXACT_UP_TO if cls is Ulam else cls.most_items
    return most is None or items <= most


def _variance(one: RankingMechanism) -> float | None:
    """The mean variance of one voter's unbiased estimate to nine digits, None where there is none."""
    estimator = pair_estimator if one.items <= _PAIRS_UP_TO else rank_estimator
    try:
        return float(f"{estimator(one).mean_variance:.9g}")
    except Unsupported:
        return None


def _check_objective(objective: str) -> None:
    if objective not in get_args(Objective):
        raise InputError(f"objective must be one of {', '.join(get_args(Objective))}, got {objective!r}")


def why(chosen: RankingMechanism, objective: Objective = "concordance") -> str:
    """One sentence: what the choice keeps of the order, or what it costs an aggregate, and what the others would."""
    others = [one for one in candidates(chosen.items, chosen.epsilon, objective=objective) if one.name != chosen.name]
    if objective == "aggregate":
        listed = ", ".join(f"{one.name} {_variance(one):.3g}" for one in others)
        what = "win rate" if chosen.items <= _PAIRS_UP_TO else "mean rank"
        return (
            f"{chosen.name} needs the fewest respondents for {chosen.items} items at epsilon "
            f"{float(chosen.epsilon):g}: one of them adds {_variance(chosen):.3g} to the variance of an unbiased "
            f"{what} ({listed})"
        )
    listed = ", ".join(f"{one.name} {one.expected_concordance():.1%}" for one in others)
    return (
        f"{chosen.name} keeps {chosen.expected_concordance():.1%} of all pairs in order on average for {chosen.items} "
        f"items at epsilon {float(chosen.epsilon):g} ({listed})"
    )
