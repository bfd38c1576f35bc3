"""A draft in the studio: all settings of one release, and the call that makes it.

One draft is one release: because of its name, pressing twice, going back and reloading spend nothing more. All of it
is public or for the curator's own machine; nothing in it is computed from the rows. ``call`` is the one place that
decides which function is called with what; the release and its script are both made from it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.rankings.tiers import read_name
from rankdp.mechanisms.registry import Protect, mechanism
from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.mechanisms.votes.protection import Protection
from rankdp.planning.score_plans import ScoreVector
from rankdp.privacy.exact import positive
from rankdp.privacy.guarantee import Guarantee
from rankdp_web.studio_kinds import KINDS, Kind, protects


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The settings chosen so far; empty where nothing was chosen."""

    id: str = field(default_factory=lambda: secrets.token_hex(6))
    path: str = ""
    """The file; empty where there are no data yet."""
    kind: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    """The public names."""
    items_confirmed: bool = False
    """Whether a person has seen the list of names and confirmed that it may be public."""
    on_problem: str = "refuse"
    ties: str = "refuse"
    listed_items_public: bool = False
    length: int = 0
    """How many items most people listed, where which ones they listed is public; 0 where they ranked all."""
    repeated_voters: bool = False
    keep_voters: bool = False
    outside: str = "refuse"
    bounds: tuple[str, str] = ("0", "1")
    protect: str = ""
    max_per_voter: int = 10
    number: int | None = None
    """How many rows, if that is public, or a public estimate."""
    goal: str = ""
    target: float | None = None
    top: int = 10
    option: str = ""
    epsilon: str = ""
    title: str = ""
    dataset: str = ""
    convert: bool = False
    seed: int = 1

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Draft:
        """What ``to_dict`` wrote; what this version does not know is left out."""
        known = {one.name for one in fields(cls)}
        read: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
        }
        return cls(**{name: value for name, value in read.items() if name in known})

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @property
    def seen(self) -> str:
        """A hash of all settings: what was on the page when a button was pressed is what is done, or nothing is."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:32]

    @property
    def what(self) -> Kind:
        """The kind of the data."""
        return KINDS[self.kind]

    @property
    def unconfirmed(self) -> bool:
        """Whether the names were found in a file and are not confirmed. For scores the promise says they are public."""
        return bool(self.path) and self.kind != "scores" and not self.items_confirmed

    @property
    def heading(self) -> str:
        """The title of the result."""
        return self.title or self.what.heading

    @property
    def ranked(self) -> int:
        """How many items a ranking, a ballot or a leaderboard puts in order."""
        return (self.listed_items_public and self.kind == "rankings" and self.length) or len(self.items)

    @property
    def protects(self) -> str:
        """What is protected, in the words of guarantees and budgets."""
        return protects(self.kind, self.protect, self.max_per_voter)

    @property
    def number_public(self) -> bool:
        """Whether how many rows there are is public under what is protected; damaged rows that are left out hide it."""
        if self.kind == "comparisons":
            bound = self.max_per_voter if self.protect == "voter" else None
            return replace(Protection.of(self.protect, bound), drops=self.on_problem == "drop").count_public
        return self.kind != "ballots" or BallotProtection(self.protect).count_public

    @property
    def promised_unit(self) -> Protect:
        """What a private ranking protects: one position, or all of it."""
        return "ranking" if self.protect == "ranking" else "position"

    @property
    def promise(self) -> Guarantee:
        """What the release will promise."""
        exact = positive(self.epsilon or "1")
        if self.kind == "rankings":
            made = mechanism(self.option or "auto", self.ranked, exact, protect=self.promised_unit)
            promised: Guarantee = made.guarantee
            if self.promised_unit == "ranking":
                promised = replace(promised.to_local_dp(), epsilon=exact)
            return replace(promised, listed_items_public=self.listed_items_public)
        if self.kind == "scores":
            return score_mechanism(self.option or "laplace", bounds=self.bounds, epsilon=exact, p=self.shape).guarantee
        return Guarantee(self.protects, exact, local=False)

    @property
    def call(self) -> tuple[str, dict[str, Any]]:
        """The function of ``rankdp`` that makes the release, and its settings except the file, epsilon and ledger."""
        columns = {"columns": dict(self.columns)} if self.columns else {}
        if self.kind == "comparisons":
            bound = {"max_per_voter": self.max_per_voter} if self.protect == "voter" else {}
            dropping = {"on_problem": "drop"} if self.on_problem == "drop" else {}
            settings = {"protect": self.protect, **bound, "method": self.option}
            return "rank", {**settings, "items": self.items, **columns, **dropping}
        if self.kind == "ballots":
            return "elect", {"rule": self.option, "protect": self.protect, "items": self.items, **columns}
        if self.kind == "rankings":
            name, tiers = read_name(self.option)
            chosen = {"mechanism": name, **({} if tiers is None else {"tiers": list(tiers)})}
            flags = {
                name: True
                for name, wanted in (
                    ("listed_items_public", self.listed_items_public),
                    ("repeated_voters", self.repeated_voters),
                    ("drop_voters", not self.keep_voters),
                    ("shuffle", not self.keep_voters),
                )
                if wanted
            }
            ties = {} if self.ties == "refuse" else {"ties": self.ties}
            whole = {"protect": "ranking"} if self.promised_unit == "ranking" else {}
            return "privatize_file", {**whole, **chosen, "items": self.items, **columns, **ties, **flags}
        named = {f"{role}_column": self.columns[role] for role in ("item", "score") if role in self.columns}
        clipped = {"outside": "clip"} if self.outside == "clip" else {}
        shape = {"p": repr(self.shape)} if self.shape is not None else {}
        return "privatize_scores_file", {"bounds": self.bounds, "noise": self.option, **shape, **clipped, **named}

    @property
    def shape(self) -> float | None:
        """The best p of generalised normal noise at this epsilon, which public numbers say; None for other noises."""
        if self.option != "generalized-normal":
            return None
        planned = self.vector.detail(self.option, float(positive(self.epsilon)))
        return float(planned.get("p", 1))  # which is Laplace noise

    @property
    def vector(self) -> ScoreVector:
        """The scores as the planner sees them."""
        return ScoreVector(max(2, len(self.items)), self.numeric_bounds)

    @property
    def numeric_bounds(self) -> tuple[float, float]:
        """The bounds of scores as numbers, or a sentence."""
        try:
            low, high = (float(Fraction(end)) for end in self.bounds)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise InputError(f"bounds must be two numbers, got {' and '.join(map(repr, self.bounds))}") from None
        if not low < high:
            raise InputError(f"bounds must be two numbers, the first below the second, got {low:g} and {high:g}")
        return low, high
