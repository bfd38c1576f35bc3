"""What made a table of synthetic rankings, and what is promised about it, as its release states both.

Everything that is computed from privatized rankings alone carries their guarantee (post-processing), so a function
that reads such a file reads PATH.release.json through `Origin.beside`. What the caller says about the file must
agree with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from rankdp.data.atomic import SIDECAR, read_sidecar
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Provenance, Release

_OWN = "each voter's own"


@dataclass(frozen=True, slots=True)
class Origin:
    """How synthetic rankings were made.

    Parameters
    ----------
    asked_for
        The mechanism that was asked for, perhaps "auto".
    choices
        The mechanism and the exact epsilon that rankings of (items, epsilon) went through.
    epsilon
        The one epsilon of all rankings; None where every voter had their own.
    epsilon_column
        The column of the file that holds each voter's own epsilon.
    where
        The name of what states all this, for messages.
    """

    asked_for: str
    choices: Mapping[tuple[int, float], tuple[str, Fraction]]
    epsilon: Fraction | None
    epsilon_column: str | None
    where: str

    @classmethod
    def stated(cls, parameters: Any, where: str = "the release") -> Origin:
        """The origin that the parameters of a release state.

        Parameters
        ----------
        parameters
            ``release.provenance.parameters``, or the same from a file.
        where
            The name of the release, for messages.
        """
        try:
            choices = {}
            for choice in parameters["choices"]:
                exact = positive(str(choice["epsilon"]))
                choices[int(choice["items"]), float(exact)] = str(choice["mechanism"]), exact
            common = str(parameters["epsilon"])
            column = parameters.get("epsilon_column") or "epsilon"  # version 0.1 did not state it
            return cls(
                str(parameters.get("asked_for", "")),
                choices,
                None if common == _OWN else positive(common),
                str(column) if common == _OWN else None,
                where,
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{where} does not say which mechanism made its rankings") from None

    @classmethod
    def beside(cls, path: str | os.PathLike[str]) -> tuple[Origin, Release[None]] | None:
        """What PATH.release.json states: the origin of the rankings and their promise; None without such a file.

        Parameters
        ----------
        path
            The file of synthetic rankings.
        """
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

    def choose(self, length: int, epsilon: Fraction) -> RankingMechanism:
        """The mechanism that a voter's ranking went through.

        Parameters
        ----------
        length
            How many items the ranking lists.
        epsilon
            The voter's epsilon.
        """
        if (length, float(epsilon)) not in self.choices:
            raise InputError(f"{self.where} names no mechanism for {length} items at epsilon {float(epsilon):g}")
        name, exact = self.choices[length, float(epsilon)]
        return cast(RankingMechanism, build(name, length, exact))

    def check(self, mechanism: str | None, epsilon: Real | None, epsilon_column: str | None) -> None:
        """Refuse what the caller says about the rankings where the release says otherwise.

        Parameters
        ----------
        mechanism, epsilon, epsilon_column
            What the caller says; None for nothing.
        """
        names = sorted({name for name, _ in self.choices.values()})
        if mechanism is not None and mechanism != self.asked_for and [mechanism] != names:
            raise InputError(f"{self.where} says that {' and '.join(names)} made the rankings, got {mechanism!r}")
        said = _OWN if self.epsilon is None else str(self.epsilon)
        if epsilon is not None and positive(epsilon) != self.epsilon:
            raise InputError(f"{self.where} says that the epsilon is {said}, got {epsilon}")
        if epsilon_column is not None and epsilon_column != self.epsilon_column:
            raise InputError(
                f"{self.where} says that the epsilon is {said}"
                + (f", in column {self.epsilon_column!r}" if self.epsilon is None else "")
                + f", got epsilon_column {epsilon_column!r}"
            )
