"""What made a table of synthetic rankings, and what is promised about it, as its release or the caller states both.

Everything that is computed from privatized rankings alone carries their guarantee (post-processing), so a function
that reads such a file reads PATH.release.json through `Origin.of_file`. What the caller says about the file must
agree with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.atomic import SIDECAR, read_sidecar
from rankdp.data.frames import OFFSET
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.top_ball import completed
from rankdp.mechanisms.registry import check_choice, last_version_with, may_have_offsets
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.exact import Real, one_each, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Provenance, Release
from rankdp.types import Flags, Longs

_MOST_GROUPS = 10_000
_OWN = "each voter's own"


@dataclass(frozen=True, slots=True)
class Origin:
    """How synthetic rankings were made.

    Parameters
    ----------
    asked_for
        The mechanism that was asked for, perhaps "auto".
    choices
        The mechanism and its exact epsilon that rankings of (items, stated epsilon) went through; None where only the
        caller says what made them, so that it is ``asked_for`` for all.
    epsilon
        The one epsilon of all rankings; None where every voter had their own.
    epsilon_column
        The column of the file that holds each voter's own epsilon.
    where
        The name of what states all this, for messages.
    offset_column
        The column of the file that holds the public offsets that rows were released with.
    lists
        The names of all items where lists of the first ones were released: unlisted items count then.
    """

    asked_for: str
    choices: Mapping[tuple[int, float], tuple[str, Fraction]] | None
    epsilon: Fraction | None
    epsilon_column: str | None
    where: str
    offset_column: str | None = None
    lists: tuple[str, ...] | None = None

    @classmethod
    def said(cls, mechanism: str, epsilon: Fraction | None, epsilon_column: str | None = None) -> Origin:
        """The origin that a caller states; an unknown mechanism is refused."""
        check_choice(mechanism)
        offset = OFFSET if may_have_offsets(mechanism) else None
        return cls(mechanism, None, epsilon, epsilon_column, "the caller", offset)

    @classmethod
    def stated(cls, parameters: Any, where: str = "the release") -> Origin:
        """The origin that ``release.provenance.parameters`` state; ``where`` names the release in messages."""
        try:
            choices = {}
            for choice in parameters["choices"]:
                exact = positive(str(choice["epsilon"]))
                name = str(choice["mechanism"])
                if version := last_version_with(name):
                    raise Unsupported(
                        f"{where} names the mechanism {name}, which was dropped: rankdp {version} reads it"
                    )
                stated = positive(str(choice.get("ranking_epsilon", exact)))  # where whole rankings are protected
                choices[int(choice["items"]), float(stated)] = name, exact
            common = str(parameters["epsilon"])
            column = parameters.get("epsilon_column") or "epsilon"  # version 0.1 did not state it
            return cls(
                str(parameters.get("asked_for", "")),
                choices,
                None if common == _OWN else positive(common),
                str(column) if common == _OWN else None,
                where,
                parameters.get("offset_column"),
                tuple(map(str, parameters["lists"]["items"])) if "lists" in parameters else None,
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{where} does not say which mechanism made its rankings") from None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> tuple[Origin, Release[None]] | None:
        """What PATH.release.json states: the origin of the rankings and their promise; None without such a file."""
        facts, name = read_sidecar(path), os.fspath(path) + SIDECAR
        if facts is None:
            return None
        origin = cls.stated(facts.get("parameters"), name)
        try:
            rehearsal, guarantee = facts.get("rehearsal"), facts.get("guarantee")
            seed = None if rehearsal is None else int(rehearsal["seed"])
            source = Provenance(
                str(facts["mechanism"]), dict(facts["parameters"]), seed, str(facts["rankdp"]), str(facts["when"])
            )
            return origin, Release(None, None if guarantee is None else Guarantee.from_dict(guarantee), source)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{name} states neither a guarantee nor that its file is a rehearsal") from None

    def part(self, length: int, epsilon: Fraction, offset: int | None) -> RankingMechanism:
        """The same given the public offset of the row, None where the rows have none."""
        chosen = self.choose(length, epsilon)
        if chosen.has_offsets and offset is None:
            raise InputError(f"rankings of the {chosen.name} mechanism come with public offsets, and these have none")
        return chosen.at(offset) if chosen.has_offsets and offset is not None else chosen

    def offsets(self, length: int, epsilon: Fraction, tied: Flags) -> Longs:
        """The offsets of tier lists, which their ties show; ties that the mechanism cannot have made are refused."""
        chosen = self.choose(length, epsilon)
        found = np.full(len(tied), -1)
        for offset, ties in enumerate([] if chosen.ties is None else chosen.ties):
            found[(tied == ties).all(axis=1)] = offset
        if (found < 0).any():
            raise InputError(
                f"the ties of some rankings of {length} items are not those of the {chosen.name} mechanism"
            )
        return found

    def choose(self, length: int, epsilon: Fraction) -> RankingMechanism:
        """The mechanism that a voter's ranking of ``length`` items went through at their epsilon."""
        if self.choices is None:
            return build(self.asked_for, length, epsilon)
        if (length, float(epsilon)) not in self.choices:
            raise InputError(f"{self.where} names no mechanism for {length} items at epsilon {float(epsilon):g}")
        name, exact = self.choices[length, float(epsilon)]
        return build(name, length, exact)

    def check(self, mechanism: str | None, epsilon: Real | None, epsilon_column: str | None) -> None:
        """Refuse what the caller says about the rankings (None for nothing) where the release says otherwise."""
        names = sorted({name for name, _ in (self.choices or {}).values()})
        if mechanism is not None and mechanism != self.asked_for and [mechanism] != names:
            raise InputError(f"{self.where} says that {' and '.join(names)} made the rankings, got {mechanism!r}")
        said = _OWN if self.epsilon is None else str(self.epsilon)
        if epsilon is not None and positive(epsilon) != self.epsilon:
            raise InputError(f"{self.where} says that the epsilon is {said}, got {epsilon}")
        if epsilon_column is not None and epsilon_column != self.epsilon_column:
            raise InputError(
                f"{self.where} says that the epsilon is {said}"
                + (f", in column {self.epsilon_column!r}" if self.epsilon is None else "")
                + ", got ",
                Setting("epsilon_column", epsilon_column),
            )


def known_origin(rankings: Any, mechanism: Any, epsilon: Any) -> tuple[Rankings, Origin | None]:
    """The table of ``Rankings``, and what made it: None where the caller says nothing and there is no release.

    ``mechanism`` may be a name or the parameters of a release; ``epsilon`` is one for all, or one per row, or None for
    ``rankings.epsilons``.
    """
    if isinstance(rankings, Release):
        if mechanism is not None or epsilon is not None:
            raise InputError("a release knows its mechanism and epsilon: give neither")
        rankings, mechanism = rankings.value, rankings.provenance.parameters
        if not isinstance(rankings, Rankings):
            raise InputError(f"the release must hold a rankdp.Rankings, got {type(rankings).__name__}")
    rankings = Rankings.of(rankings)
    if isinstance(mechanism, Mapping):
        if epsilon is not None:
            raise InputError("the parameters of a release know its epsilon: give none")
        return rankings, Origin.stated(mechanism)
    if mechanism is None:
        if epsilon is not None:
            raise InputError("mechanism must be given with epsilon: which mechanism made the rankings?")
        return rankings, None
    if one_each(epsilon):
        if not isinstance(epsilon, np.ndarray):
            epsilon = [float(positive(value, f"epsilon of row {row}")) for row, value in enumerate(epsilon, 1)]
        rankings = rankings.with_epsilons(epsilon)
        epsilon = None
    return rankings, Origin.said(mechanism, None if epsilon is None else positive(epsilon))


def with_offsets(rankings: Rankings, origins: Sequence[Origin], codes: Longs | None = None) -> Rankings:
    """Tier lists with the offsets that their ties show; other rankings as they are."""
    if rankings.tied is None or rankings.offsets is not None:
        return rankings
    kinds, rows = groups_of(rankings, origins[0].epsilon, codes)
    offsets = np.zeros(len(rankings), dtype=np.int32)
    for number, (length, epsilon, code, _) in enumerate(kinds):
        if length > 1:
            mine = rows == number
            offsets[mine] = origins[code].offsets(length, epsilon, rankings.tied[mine, :length])
    parts = (rankings._voters, rankings.epsilons, offsets, rankings.tied, rankings.items_from_data)
    return Rankings._of(rankings.orders, rankings.items, *parts)


def with_unlisted(rankings: Rankings, origin: Origin) -> Rankings:
    """Lists of the first items, completed: nothing tells apart what is unlisted, so its order does not matter."""
    if origin.lists is None or rankings.complete:
        return rankings
    names = {name: item for item, name in enumerate(origin.lists)}
    unknown = [name for name in rankings.items if name not in names]
    if unknown:
        raise InputError(f"{origin.where} does not name the item {unknown[0]!r}")
    numbers = np.array([names[name] for name in rankings.items], dtype=np.int32)
    width = int(rankings.lengths.max(initial=0))
    if (rankings.lengths != width).any():
        raise InputError(
            f"{origin.where} is about lists of one length, got lists of {rankings.lengths.min()} and {width}"
        )
    orders = completed(numbers[rankings.orders[:, :width]], len(names))
    return Rankings._of(orders, origin.lists, rankings._voters, rankings.epsilons)


def groups_of(
    rankings: Rankings, epsilon: Fraction | None, codes: Longs | None = None
) -> tuple[list[tuple[int, Fraction, int, int | None]], Longs]:
    """The different (length, epsilon, code, offset) among rankings, and which of them each row has.

    ``epsilon`` is that of all rows, or None where each has its own; ``codes`` tell rows apart further.
    """
    column = rankings.epsilons if epsilon is None else np.zeros(len(rankings))
    if column is None:
        raise InputError("epsilon must be given: the rankings carry no epsilon")
    own, own_codes = np.unique(column, return_inverse=True)
    width, offsets = rankings.orders.shape[1] + 1, rankings.offsets
    most = 1 if offsets is None else int(offsets.max()) + 1
    key = ((0 if codes is None else codes) * len(own) + own_codes) * most + (0 if offsets is None else offsets)
    kinds, rows = np.unique(key * width + rankings.lengths, return_inverse=True)
    shape = (len(kinds) if codes is None else int(codes.max()) + 1, len(own), most, width)
    splits = zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    return [
        (length, epsilon or positive(float(own[which])), code, None if offsets is None else offset)
        for code, which, offset, length in splits
    ], rows


def check_groups(count: int) -> None:
    """Refuse a mix of lengths and epsilons that would take too long to debias."""
    if count > _MOST_GROUPS:
        raise Unsupported(
            f"voters must share at most {_MOST_GROUPS:,} different lengths and epsilons, got more: "
            "let them choose from a few"
        )
