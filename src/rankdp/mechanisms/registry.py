"""The one place where a mechanism is chosen: by name, or the best one for the public numbers (items, epsilon)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import cast

from rankdp.errors import InputError
from rankdp.mechanisms.base import RankingMechanism
from rankdp.mechanisms.kendall import Kendall
from rankdp.mechanisms.optimal import Optimal
from rankdp.mechanisms.personal import Personal
from rankdp.mechanisms.rank_laplace import RankLaplace
from rankdp.mechanisms.reinsertion import Reinsertion
from rankdp.mechanisms.ulam import EXACT_UP_TO, Ulam
from rankdp.privacy.exact import Real, one_each, positive

MECHANISMS: Mapping[str, type[RankingMechanism]] = {
    cls.name: cls for cls in (Kendall, RankLaplace, Ulam, Reinsertion, Optimal)
}


def mechanism(name: str, items: int, epsilon: Real | Iterable[Real]) -> RankingMechanism | Personal:
    """The mechanism called ``name`` (or the best one, for "auto") for rankings of ``items`` items at ``epsilon``.

    One epsilon for everyone gives a ``RankingMechanism``. An array with each voter's own gives a ``Personal``
    mechanism, whose rows are the voters in that order.
    """
    if name != "auto" and name not in MECHANISMS:
        raise InputError(f"mechanism must be auto or one of {', '.join(MECHANISMS)}, got {name!r}")
    if one_each(epsilon):
        return Personal(partial(_build, name, items), epsilon)
    return _build(name, items, positive(cast(Real, epsilon)))


@lru_cache(maxsize=256, typed=True)
def _build(name: str, items: int, epsilon: Fraction) -> RankingMechanism:
    if name == "auto":
        return candidates(items, epsilon)[0]
    return MECHANISMS[name](items, epsilon)


def candidates(items: int, epsilon: Real) -> list[RankingMechanism]:
    """The mechanisms that can serve (items, epsilon), most expected concordance first: public numbers only.

    Those that agree to nine digits keep the order of the registry, simple ones first.

    Ulam takes part up to 10 items, where its concordance is known exactly. There it leads reinsertion by
    0.002; for 12 to 50 items it was measured within 0.002 of it at eps = 4 and up to 0.008 behind it at eps =
    1.
    """
    exact = positive(epsilon)
    built = [
        _build(cls.name, items, exact)
        for cls in MECHANISMS.values()
        if (most := EXACT_UP_TO if cls is Ulam else cls.most_items) is None or items <= most
    ]
    return sorted(built, key=lambda one: -round(one.expected_concordance(), 9))


def why(chosen: RankingMechanism) -> str:
    """One sentence: what the choice keeps of the order, and what the others would."""
    others = [one for one in candidates(chosen.items, chosen.epsilon) if one.name != chosen.name]
    listed = ", ".join(f"{one.name} {one.expected_concordance():.1%}" for one in others)
    return (
        f"{chosen.name} keeps {chosen.expected_concordance():.1%} of all pairs in order on average for {chosen.items} "
        f"items at epsilon {float(chosen.epsilon):g} ({listed})"
    )
