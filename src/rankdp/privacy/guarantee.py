"""What a release promises, as frozen data: who or what is protected, how strongly, and in plain words.

Units of protection do not mix: guarantees compose only when they protect the same thing. Numbers are exact
rationals where the mathematics gives rationals; a bound that is not rational is a float rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from rankdp.checks import whole
from rankdp.errors import InputError, Setting
from rankdp.privacy.exact import upwards

#: the unit of eps-ranking DP (Xu, Definition 2): two rankings are neighbours when they differ by moving one item
ITEM_POSITION = "one item's position in one ranking"
WHOLE_RANKING = "one whole ranking"
#: the unit of a vector of scores (Jeong, Definition 2.1): two vectors are neighbours when they differ in one score
ONE_SCORE = "one score"
#: the units of a table of comparisons (``mechanisms.votes.protection``)
COMPARISON, OUTCOME = "one comparison", "one comparison's outcome"
#: all comparisons of one voter, whatever their number; and of a voter who is known to have no more than this
VOTER, VOTER_OF = "one voter", re.compile(r"one voter with at most ([1-9]\d*) comparisons")
#: the units of an election (``mechanisms.ballots.protection``): a ballot is replaced, or added or removed
BALLOT, VOTERS_BALLOT = "one ballot", "one voter's ballot"  # the latter in old files only

UNITS = {
    "comparison": COMPARISON,
    "outcome": OUTCOME,
    "voter": VOTER,
    "ballot": BALLOT,
    "position": ITEM_POSITION,
    "ranking": WHOLE_RANKING,
    "score": ONE_SCORE,
}
"""The values of ``protect``, and what a guarantee calls the unit."""

WEAK_EPSILON = 10
"""From this epsilon on, a guarantee says that it offers almost no protection: 50:50 becomes 99.996%."""
_LARGEST_FACTOR = 14  # e^14 is about a million


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A differential-privacy guarantee.

    Parameters
    ----------
    protects
        The unit of protection, in words: "one comparison", for example. epsilon holds for one change of it.
    epsilon
        The largest change of the log-odds. It may be 0 only if delta is above 0: the release is then the same whatever
        the secret is, except with probability delta.
    delta
        The probability with which the promise may fail, at least 0 and below 1.
    local
        Whether every person's data are protected before anyone else sees them; if not, a trusted curator holds them.
    whole_ranking_epsilon
        For ranking DP, the classical local-DP epsilon of the same release: the worst case over *any* two rankings,
        not only neighbours. None if unknown or not applicable.
    releases
        How many releases the guarantee covers.
    personal
        Whether every person has their own epsilon; ``epsilon`` is then the largest.
    listed_items_public
        Whether the set of items that a person ranked is published as it is.
    rho
        The parameter of zero-concentrated DP, rounded up, if known.
    renyi
        Points (order, epsilon) of the Rényi curve, rounded up.
    idealized
        Whether the noise was drawn in floating point, so that the promise is proved for the real numbers behind it.
    rows_per_voter
        How many rows of the release a voter may have; epsilon is for all of them together.
    """

    protects: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    local: bool = True
    whole_ranking_epsilon: Fraction | float | None = None
    releases: int = 1
    personal: bool = False
    listed_items_public: bool = False
    rho: float | None = None
    renyi: tuple[tuple[float, float], ...] = ()
    idealized: bool = False
    rows_per_voter: int = 1

    def __post_init__(self) -> None:
        if self.epsilon < 0 or (self.epsilon == 0 and self.delta == 0):
            raise InputError(f"epsilon must be a finite number above 0, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {self.delta}")

    def compose(self, *others: Guarantee) -> Guarantee:
        """The guarantee of publishing all of these about the same data: epsilons and deltas add up.

        Parameters
        ----------
        *others
            Guarantees for the same unit of protection and of the same model, local or central; others are refused.
        """
        total = self
        for other in others:
            if (other.protects, other.local) != (total.protects, total.local):
                raise InputError(
                    "guarantees compose only for the same unit of protection, "
                    f"got {total.protects!r} and {other.protects!r}"
                )
            both = (total.whole_ranking_epsilon, other.whole_ranking_epsilon)
            total = replace(
                total,
                epsilon=total.epsilon + other.epsilon,
                delta=total.delta + other.delta,
                whole_ranking_epsilon=None if both[0] is None or both[1] is None else _add_up(both[0], both[1]),
                releases=total.releases + other.releases,
                personal=total.personal or other.personal,
                listed_items_public=total.listed_items_public or other.listed_items_public,
                rho=None if total.rho is None or other.rho is None else math.nextafter(total.rho + other.rho, math.inf),
                renyi=_add_curves(total.renyi, other.renyi),
                idealized=total.idealized or other.idealized,
                rows_per_voter=max(total.rows_per_voter, other.rows_per_voter),
            )
        return total

    def times(self, releases: int) -> Guarantee:
        """The guarantee of several independent releases of the same data.

        Parameters
        ----------
        releases
            How many, at least 1.
        """
        count = whole("releases", releases, 1)
        if count == 1:
            return self
        return replace(
            self,
            epsilon=count * self.epsilon,
            delta=count * self.delta,
            whole_ranking_epsilon=None
            if self.whole_ranking_epsilon is None
            else _times(count, self.whole_ranking_epsilon),
            releases=count * self.releases,
            rho=None if self.rho is None else math.nextafter(count * self.rho, math.inf),
            renyi=tuple((order, math.nextafter(count * epsilon, math.inf)) for order, epsilon in self.renyi),
        )

    def for_rows_of_a_voter(self, rows: int) -> Guarantee:
        """The guarantee for a voter with several rows in one release, each drawn on its own.

        Parameters
        ----------
        rows
            The most rows of one voter, at least 1.
        """
        return replace(self.times(rows), releases=self.releases, rows_per_voter=rows)

    def to_local_dp(self) -> Guarantee:
        """The same release as classical local DP: any two rankings, not only neighbours (one moved item)."""
        if self.protects == WHOLE_RANKING:
            return self
        if self.whole_ranking_epsilon is None:
            raise InputError(f"no local-DP epsilon is known for a guarantee that protects {self.protects!r}")
        return replace(self, protects=WHOLE_RANKING, epsilon=Fraction(self.whole_ranking_epsilon))

    @property
    def limits(self) -> tuple[str, ...]:
        """What is *not* protected, or only weakly, one sentence each: a release must say it."""
        sentences = []
        if self.protects in (COMPARISON, OUTCOME) and self.rows_per_voter == 1:
            sentences.append(
                "A person with k votes is protected less: about all of them together the release can give away up to "
                "k times this epsilon."
            )
        if self.protects == OUTCOME:
            sentences.append("Who was compared with whom, and how often, is NOT protected.")
        if is_voter(self.protects):
            sentences.append("A person who votes under several names is protected less.")
        if self.protects == BALLOT:
            sentences.append("How many ballots there are, and so that a person voted at all, is NOT protected.")
            sentences.append("A person who casts several ballots is protected less.")
        if self.listed_items_public:
            sentences.append("Which items a person listed, and how many, is NOT protected: only their order is.")
        if self.epsilon >= WEAK_EPSILON:
            sentences.append(f"An epsilon of {WEAK_EPSILON} or more offers almost no protection.")
        return tuple(sentences)

    def explain(self) -> str:
        """What is promised and what is not, in a few sentences for a person outside the field."""
        many = "" if self.releases == 1 else f" after all {self.releases} releases"
        sentences = [f"Protects {self.protects}{many}: {self._odds()}"]
        if self.protects == ITEM_POSITION and self.whole_ranking_epsilon is not None:
            sentences.append(
                f"Between two whole rankings they {certainty(self.whole_ranking_epsilon)} "
                f"(epsilon {_number(self.whole_ranking_epsilon)} in local differential privacy)."
            )
        if self.rows_per_voter > 1:
            sentences.append(
                f"A voter may have up to {self.rows_per_voter} rows, each drawn on its own: epsilon is for all of "
                "them together."
            )
        sentences += self.limits
        if self.idealized:
            sentences.append(
                "Idealized: the noise was drawn with floating-point numbers, and the promise is proved for the real "
                "numbers that they stand for."
            )
        return " ".join(sentences)

    def _odds(self) -> str:
        """The end of the sentence: what an observer can and cannot do."""
        if self.epsilon == 0:
            return (
                f"nobody learns anything about it (epsilon 0), except with probability at most {_number(self.delta)}: "
                "then the release can rule some of its values out with certainty."
            )
        whose = "each person's own epsilon, at most " if self.personal else "epsilon "
        fact = "how that voter voted" if self.protects.startswith(VOTER) else "it"
        return (
            f"someone who was 50:50 about {fact} {certainty(self.epsilon)}, whatever else they know "
            f"({whose}{_number(self.epsilon)}"
            + (f", except with probability {_number(self.delta)}" if self.delta else "")
            + ")."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON sidecar: exact epsilons as text, and the words."""
        data = {name: str(value) if isinstance(value, Fraction) else value for name, value in asdict(self).items()}
        model = "local" if data.pop("local") else "central"
        curve = [list(point) for point in self.renyi]
        return {**data, "model": model, "renyi": curve, "limits": list(self.limits), "explanation": self.explain()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The guarantee that a sidecar states.

        Parameters
        ----------
        data
            What ``to_dict`` returned, for example the "guarantee" of a .release.json file.
        """
        try:
            local_dp = data["whole_ranking_epsilon"]
            return cls(
                protects=str(data["protects"]),
                epsilon=Fraction(data["epsilon"]),
                delta=Fraction(data["delta"]),
                local=data["model"] == "local",
                whole_ranking_epsilon=Fraction(local_dp) if isinstance(local_dp, str) else local_dp,
                releases=int(data["releases"]),
                personal=bool(data["personal"]),
                listed_items_public=bool(data["listed_items_public"]),
                rho=data.get("rho"),
                renyi=tuple((float(order), float(epsilon)) for order, epsilon in data.get("renyi", ())),
                idealized=bool(data.get("idealized", False)),
                rows_per_voter=int(data.get("rows_per_voter", 1)),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
            raise InputError(f"a guarantee must state protects, epsilon, delta and model: {problem!r}") from None


def is_voter(protects: str) -> bool:
    """Whether a guarantee protects all data of one voter.

    Parameters
    ----------
    protects
        The guarantee's ``protects``.
    """
    return protects in (VOTER, VOTERS_BALLOT) or VOTER_OF.fullmatch(protects) is not None


def unit_of(protect: str, max_per_voter: int | None = None) -> str:
    """What a guarantee calls the unit ``protect``.

    Parameters
    ----------
    protect
        A key of ``UNITS``, or already a guarantee's ``protects``.
    max_per_voter
        With "voter", the largest number of comparisons of one voter, if it is known; a guarantee for single comparisons
        then protects a voter, at that many times the cost.
    """
    if max_per_voter is not None:
        if protect != "voter":
            raise InputError(
                Setting("max_per_voter"),
                " needs ",
                Setting("protect", "voter"),
                ", got ",
                Setting("protect", protect),
            )
        return f"one voter with at most {whole('max_per_voter', max_per_voter, 1)} comparisons"
    if protect in (*UNITS.values(), VOTERS_BALLOT) or (isinstance(protect, str) and VOTER_OF.fullmatch(protect)):
        return protect
    if protect not in UNITS:
        raise InputError(
            Setting("protect"),
            f" must be one of {', '.join(UNITS)}, or the text of a guarantee's protects, got {protect!r}",
        )
    return UNITS[protect]


def _add_up(first: Fraction | float, second: Fraction | float) -> Fraction | float:
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first + second
    return math.nextafter(float(first) + float(second), math.inf)


def _times(count: int, value: Fraction | float) -> Fraction | float:
    return count * value if isinstance(value, Fraction) else math.nextafter(count * value, math.inf)


def _add_curves(
    first: tuple[tuple[float, float], ...], second: tuple[tuple[float, float], ...]
) -> tuple[tuple[float, float], ...]:
    """The sum of two Rényi curves at the orders that both have."""
    known = dict(second)
    return tuple(
        (order, math.nextafter(epsilon + known[order], math.inf)) for order, epsilon in first if order in known
    )


def _number(value: Fraction | float) -> str:
    """At most four significant digits, rounded up: a stated epsilon is never below the true one."""
    exact = Fraction(value)
    if exact == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(exact)) - 3)
    return f"{float(math.ceil(exact / unit) * unit):.4g}"


def certainty(epsilon: Fraction | float) -> str:
    """How sure someone who was 50:50 can become: 1/(1 + e^-epsilon), rounded up."""
    if epsilon > _LARGEST_FACTOR:
        return "can become all but certain"
    doubt = 100 / (1 + math.exp(epsilon)) * (1 - 1e-12)
    digits = max(1, 1 - math.floor(math.log10(doubt)))
    return f"can become at most {100 - math.floor(doubt * 10**digits) / 10**digits:.{digits}f}% sure"


def odds_factor(epsilon: Fraction | float) -> str:
    """exp(epsilon), rounded up; as a power if the number is too large to mean anything to a reader."""
    if epsilon > _LARGEST_FACTOR:
        return f"e^{_number(epsilon)}"
    factor = upwards(math.exp(epsilon))
    return f"{math.ceil(factor):,}" if factor > 1000 else _number(factor)
