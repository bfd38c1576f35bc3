"""Cleaning ballots by a stated rule: skipped ranks, overvotes, repeated candidates, write-ins, excluded candidates.

Machines write words where a voter marked nobody, marked several candidates or wrote in a name. These words are
recognised by their usual spellings (capitals, spaces and punctuation do not matter) and by words that the caller adds;
they name no candidate. Then each ballot is read from its first rank to its last:

| found at a rank | done |
|---|---|
| nobody (blank, ``skipped``, ``undervote``, …) | ``skipped``: "next" passes over it, "exhaust" ends the ballot |
| nobody twice in a row | ``skipped``: "two" ends the ballot |
| ``overvote`` | ``overvote``: "exhaust" ends the ballot, "skip" passes over it |
| a candidate who was listed above | ``repeated``: "next" passes over it, "exhaust" ends the ballot |
| a write-in (``UWI``, ``write-in``, …) | ``write_ins``: "together" one candidate, "keep" as it is spelled, "drop" |
| an excluded candidate | passed over |

The defaults are what most jurisdictions in the United States do. How a ballot is cleaned follows from that ballot and
the rule alone, never from another ballot: one row still moves every count by one ballot at most. A ballot with
nothing left stays a ballot that ranks nobody, because the number of ballots is public under ``protect="ballot"``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rankdp.checks import one_of
from rankdp.errors import InputError, Setting
from rankdp.types import Flags, Ints, Longs

SKIPPED, OVERVOTED, DROPPED = -1, -2, -3
"""Codes, besides the indices of candidates, for what is at a rank."""
WRITE_INS = "Write-ins"
"""The candidate that all write-ins are counted for together."""

_MARK = r"(?:votes?|ballots?|ranks?|rankings?|choices?|selections?|preferences?|marks?|candidates?)"
_NOTHING = (
    r"skip(?:ped)?|blanks?|empty|exhaust(?:ed)?|abstain(?:ed)?|abstentions?|inactive|missing|void(?:ed)?|invalid|"
    r"spoil(?:ed|t)|rejected|residual|null|nil"
)
_DONE = r"(?:voted?|mark(?:ed)?|rank(?:ed)?|used?|select(?:ed)?|answer(?:ed)?|counted|valid)"
_NOBODY = re.compile(
    rf"(?:left|all|is|{_MARK})?(?:{_NOTHING}){_MARK}?|no(?:valid|more|further)?(?:{_MARK}|answers?|responses?)|"
    rf"(?:voter)?(?:did|was)?(?:not|nt|un|non)(?:valid)?{_DONE}{_MARK}?|none|nobody|noone|under|.*undervot.*"
)
_OVERVOTE = re.compile(rf".*overvot.*|over(?:ranked)?|(?:multiple|double|toomany|ambiguous){_MARK}")
_WRITE_IN = re.compile(
    r"uwis?|undeclared|scatter(?:ed|ing)|(?:undeclared|uncertified|unqualified|unregistered|unresolved|unadjudicated|"
    r"unofficial|unassigned|unnamed|unlisted|uncounted|invalid|rejected|blank|qualified|certified|registered|declared|"
    r"other|all|allother|any|misc|miscellaneous|total|scattered|scattering)?"
    r"writeins?(?:candidates?|names?|votes?|images?|others?|notlisted|invalid|rejected|unresolved)?[0-9]*"
)
_NAMED_WRITE_IN = re.compile(r"write[\s_-]*in\s*[-:(].*", re.IGNORECASE)
_SUSPECT = re.compile(
    r"skip|blank|exhaust|write.?in|no.?vote|spoil|invalid|void\b|none of|residual|did not|over.?/|"
    r"^(?:-?[0.]+|-[0-9]+|n\.?a\.?|nota|nul|ov|uv|ow|s?wi|w[/-]i|others?|multiple|ambiguous|duplicate|pass|nothing|"
    r"unclear|illegible|unassigned)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The rule by which ballots are cleaned.

    Parameters
    ----------
    skipped
        At a rank with nobody: "next" goes on to the next rank, "exhaust" ends the ballot, "two" ends it at the second
        such rank in a row.
    overvote
        At an overvote: "exhaust" ends the ballot, "skip" goes on.
    repeated
        At a candidate who is ranked again: "next" goes on, "exhaust" ends the ballot.
    write_ins
        "together" counts all write-ins as one candidate, "keep" leaves each as it is spelled, "drop" passes over them.
    exclude
        Candidates who are taken off every ballot, by name.
    skipped_words, overvote_words, write_in_words
        More spellings, besides the usual ones.
    """

    skipped: Literal["next", "two", "exhaust"] = "next"
    overvote: Literal["exhaust", "skip"] = "exhaust"
    repeated: Literal["next", "exhaust"] = "next"
    write_ins: Literal["together", "keep", "drop"] = "together"
    exclude: tuple[str, ...] = ()
    skipped_words: tuple[str, ...] = ()
    overvote_words: tuple[str, ...] = ()
    write_in_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("skipped", self.skipped, ("next", "two", "exhaust"))
        one_of("overvote", self.overvote, ("exhaust", "skip"))
        one_of("repeated", self.repeated, ("next", "exhaust"))
        one_of("write_ins", self.write_ins, ("together", "keep", "drop"))
        for name in ("exclude", "skipped_words", "overvote_words", "write_in_words"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(word, str) and word.strip() for word in given):
                raise InputError(Setting(name), f" must be a list of texts that are not blank, got {given!r}")
            object.__setattr__(self, name, tuple(word.strip() for word in given))

    def kind(self, name: str) -> Literal["skipped", "overvote", "write-in"] | None:
        """What a name in a cell, a header or a list stands for, if it is no candidate's."""
        word = _plain(name)
        if (not word and not name.strip(" -_.–—?*")) or name.strip(" #.").casefold() in ("n/a", "n.a"):
            return "skipped"
        if "|" in name:
            return "overvote"  # several names in a cell, as tabulators write them
        for kind, usual, more in (
            ("overvote", _OVERVOTE.fullmatch(word), self.overvote_words),
            ("skipped", _NOBODY.fullmatch(word), self.skipped_words),
            ("write-in", _WRITE_IN.fullmatch(word) or _NAMED_WRITE_IN.fullmatch(name.strip()), self.write_in_words),
        ):
            if usual or any(_same(name, one) for one in more):
                return kind  # type: ignore[return-value]
        return None

    def check_list(self, items: Iterable[str]) -> None:
        """Refuse a public list of candidates that has a word for nobody, or lacks an excluded candidate."""
        names = [str(item) for item in items]
        for name in names:
            if (kind := self.kind(name)) in ("skipped", "overvote"):
                rank = "a skipped rank" if kind == "skipped" else "an overvote"
                raise InputError(Setting("items"), f" lists {name!r}, which stands for {rank} and is no candidate")
        self.check_excluded(names)

    def check_excluded(self, names: Sequence[str]) -> None:
        """Refuse excluded names that no candidate has."""
        for name in self.exclude:
            if name not in names:
                shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
                raise InputError(Setting("exclude"), f" must name candidates, got {name!r}; they are {shown}")

    @property
    def sentence(self) -> str:
        """The rule, for the reader of a result."""
        said = [
            {
                "next": "skipped ranks are passed over",
                "two": "a skipped rank is passed over and two in a row end the ballot",
                "exhaust": "skipped ranks end the ballot",
            }[self.skipped],
            f"overvotes {'end the ballot' if self.overvote == 'exhaust' else 'are passed over'}",
            "a candidate ranked again counts once"
            if self.repeated == "next"
            else "a repeated candidate ends the ballot",
            {
                "together": "write-ins count together as one candidate",
                "keep": "write-ins count as they are spelled",
                "drop": "write-ins are passed over",
            }[self.write_ins],
        ]
        off = f"; taken off every ballot: {', '.join(self.exclude)}" if self.exclude else ""
        return f"How ballots were cleaned: {', '.join(said[:-1])}, and {said[-1]}{off}."


USUAL = Cleaning()
"""The rule if no other is given."""


@dataclass(slots=True)
class Cleaner:
    """Applies a rule to ballots, and counts what was cleaned for the eyes of whoever holds them."""

    rule: Cleaning
    listed: tuple[str, ...] = ()
    """The public list of candidates, if there is one."""
    counts: Counter[str] = field(default_factory=Counter)
    excluded: set[str] = field(default_factory=set)
    """The names to exclude that were met."""

    def meaning(self, name: str | None) -> str | int | None:
        """The candidate's name that a cell means, a code for what is none; None for a blank."""
        if name is None:
            return None
        if name not in self.listed:
            kind = self.rule.kind(name)
            if kind in ("skipped", "overvote"):
                return SKIPPED if kind == "skipped" else OVERVOTED
            if kind == "write-in" and self.rule.write_ins != "keep":
                name = self.pile if self.rule.write_ins == "together" else None
        if name in self.rule.exclude:
            self.excluded.add(name)
        return DROPPED if name is None or name in self.rule.exclude else name

    @property
    def pile(self) -> str:
        """The name under which write-ins count together: the one of the list that is a write-in's, or ``WRITE_INS``."""
        found = [name for name in self.listed if self.rule.kind(name) == "write-in"]
        return found[0] if len(found) == 1 else WRITE_INS

    def _asked_for(self, name: str) -> bool:
        """Whether the rule says that this write-in is a candidate."""
        if self.rule.write_ins == "together":
            return name == self.pile
        return self.rule.write_ins == "keep" and self.rule.kind(name) == "write-in"

    def clean(self, codes: Ints, tied: Flags | None, weights: Longs) -> tuple[Ints, Flags | None]:
        """Ballots by the rule, candidates moved up to the first places; ``weights`` say how often each was cast.

        ``codes`` has a row per ballot and a column per rank: a candidate's index, ``SKIPPED``, ``OVERVOTED`` or
        ``DROPPED``. ``tied`` says which places are tied with the place before.
        """
        rule, rows = self.rule, len(codes)
        orders = np.full(codes.shape, -1, np.int32)
        opens = np.ones(codes.shape, np.bool_) if tied is None else ~tied
        group = np.cumsum(opens, axis=1, dtype=np.int32)
        ended = np.zeros(rows, np.bool_)
        found = {kind: np.zeros(rows, np.bool_) for kind in ("skipped", "overvote", "repeated", "dropped")}
        last = np.where(codes != SKIPPED, np.arange(codes.shape[1]), -1).max(axis=1, initial=-1)
        for place in range(codes.shape[1]):
            code = codes[:, place]
            again = (code >= 0) & (orders[:, :place] == code[:, None]).any(axis=1)
            here = {
                "skipped": (code == SKIPPED) & (place < last),
                "overvote": code == OVERVOTED,
                "repeated": again,
                "dropped": code == DROPPED,
            }
            for kind, met in here.items():
                found[kind] |= met & ~ended
                if getattr(rule, kind, "") == "exhaust":
                    ended |= met
            if rule.skipped == "two" and place:
                ended |= here["skipped"] & (codes[:, place - 1] == SKIPPED)
            orders[:, place] = np.where(ended | again | (code < 0), -1, code)
        for kind, met in found.items():
            self.counts[kind] += int(weights[met].sum())
        stays = orders >= 0
        self.counts["blank"] += int(weights[~stays.any(axis=1)].sum())
        front = np.argsort(~stays, axis=1, kind="stable")
        orders = np.take_along_axis(orders, front, axis=1)
        if tied is None:
            return orders, None
        group = np.where(orders >= 0, np.take_along_axis(group, front, axis=1), -1)
        shared = np.zeros(orders.shape, np.bool_)
        shared[:, 1:] = (group[:, 1:] == group[:, :-1]) & (group[:, 1:] >= 0)
        return orders, shared

    def notes(self, what: str, items: Sequence[str]) -> list[str]:
        """What was cleaned, and names that look as if they were no candidates."""
        words = {
            "skipped": "with a skipped rank before another",
            "overvote": "with an overvote",
            "repeated": "with a candidate ranked again",
            "dropped": "with a name that was dropped",
            "blank": "with nobody on it after that",
        }
        said = [
            f"{self.counts[kind]:,} ballot{'s' * (self.counts[kind] != 1)} {told}"
            for kind, told in words.items()
            if self.counts[kind]
        ]
        notes = [f"{what}: for your eyes only, not part of the result: {'; '.join(said)}"] if said else []
        return notes + [
            f"{what}: {name!r} is counted as a candidate, though it looks like a word for a blank or a write-in; if it "
            "is one, say so by --skipped-word, --overvote-word, --write-in-word or --exclude"
            for name in items
            if (_SUSPECT.search(name) or self.rule.kind(name)) and not self._asked_for(name)
        ]


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _same(name: str, word: str) -> bool:
    return name.strip().casefold() == word.strip().casefold()
