"""BLT, the ballot files of Hill, Wichmann and Woodall that counting programs for single transferable votes share.

    4 2             candidates and seats
    -2              candidate 2 has withdrawn (such lines are optional, and may hold several numbers)
    3 1 3 4 0       3 ballots that rank candidates 1, 3 and 4
    2 4 1=2 0       a tie; - stands for a place that was left out
    0               the ballots end
    "Ann" "Bob" "Cid" "Dan"
    "Title"

A ballot ends with 0 on the line where it begins, commas count as spaces, and # begins a comment. Names are in quotes,
or one per line as councils publish them: without quotes, with quotes inside quotes, with commas behind, or with a party
in quotes of its own ("Ann" "Labour" becomes Ann (Labour)). Candidates of one name are kept apart by their numbers.
Withdrawn candidates are taken off every ballot; a place that was left out has the index -1. `BltFile.notes` says what
was done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rankdp.data.cells import check_item
from rankdp.data.formats.texts import lines_of
from rankdp.data.orders import Groups
from rankdp.errors import InputError

_TOKEN = re.compile(r"[^\s,]+")
_QUOTED = re.compile(r'"([^"]*)"')
_NUMBERED = re.compile(r"\s*#\s*ALTERNATIVE NAME \d+:")  # PrefLib's way to name a candidate
_QUOTED_LINE = re.compile(r'(?:"[^"]*"[\s,]+)*"[^"]*"[\s,]*')
_WITH_PARTY = re.compile(r'([^"]+)"[\s,]*"([^"]+)')
_BALLOT = re.compile(r"(?:[0-9][0-9\s,=-]*[\s,])?0[\s,]*")
_MOST_CANDIDATES = 10_000


class BltFile:
    """A BLT file, checked: its `title`, `names` of the candidates left in, and `orders` as (line, count, groups)."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.notes: list[str] = []
        self._lines = lines_of(path, content)
        self._tokens = self._numbers()
        count = self._number("the number of candidates", 1, _MOST_CANDIDATES)
        seats = self._number("the number of seats")
        self.notes.append(seats_note(seats))
        withdrawn: set[int] = set()
        ballots: list[tuple[int, int, Groups]] = []
        token = self._next("a ballot")
        while token[1].startswith("-") and not ballots:
            withdrawn.add(self._candidate(token[0], token[1][1:], count))
            token = self._next("a ballot")
        while token[1] != "0":
            ballots.append(self._ballot(*token, count))
            token = self._next("a ballot, or 0 after the last one,")
        names = self._names(count)
        for number in withdrawn:
            self.notes.append(f"{names[number - 1]!r} has withdrawn and is taken off every ballot")
        standing = [number for number in range(1, count + 1) if number not in withdrawn]
        place = {number: at for at, number in enumerate(standing)}
        self.names = {number: names[number - 1] for number in standing}
        kept = (
            (line, many, [[place.get(one, one) for one in group if one in place or one < 0] for group in groups])
            for line, many, groups in ballots
        )
        self.orders = [(line, many, [group for group in groups if group]) for line, many, groups in kept if many]
        if not any(groups for _, _, groups in self.orders):
            raise InputError(f"{path}: no ballot ranks a candidate")

    def problem(self, line: int, sentence: str) -> InputError:
        """A refusal that names the line."""
        return InputError(f"{self.path}, line {line}: {sentence}")

    def refuse_repeated(self) -> None:
        """Refuse a ballot that lists a candidate twice."""
        for line, _, groups in self.orders:
            listed = [one for group in groups for one in group if one >= 0]
            if len(set(listed)) < len(listed):
                raise self.problem(line, "a candidate is listed twice; a ranking lists each item once")

    def _next(self, what: str) -> tuple[int, str]:
        token = next(self._tokens, None)
        if token is None:
            raise InputError(f"{self.path}: the file ends where {what} should be")
        return token

    def _number(self, what: str, least: int = 0, most: int = 10**18) -> int:
        line, token = self._next(what)
        if not re.fullmatch(r"[0-9]{1,18}", token) or not least <= int(token) <= most:
            raise self.problem(line, f"{what} must be a whole number from {least:,} to {most:,}, got {token[:60]!r}")
        return int(token)

    def _candidate(self, line: int, token: str, count: int) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", token) or not 1 <= int(token) <= count:
            raise self.problem(line, f"a candidate must be a number from 1 to {count}, got {token[:60]!r}")
        return int(token)

    def _ballot(self, line: int, token: str, count: int) -> tuple[int, int, Groups]:
        if token.startswith("("):
            raise self.problem(line, "ballots that begin with a name in brackets are not read")
        if not re.fullmatch(r"[0-9]{1,18}", token):
            rule = "a ballot must begin with how often it was cast, and 0 ends the ballots"
            raise self.problem(line, f"{rule}; got {token[:60]!r}")
        groups: Groups = []
        while True:
            at, said = self._next("the 0 that ends a ballot")
            if at != line:  # the next ballot's line
                raise self.problem(line, "a ballot must end with 0 on its own line")
            if said == "0":
                return line, int(token), groups
            ones = [] if said == "-" else said.split("=")
            groups.append([-1] if said == "-" else [self._candidate(at, one, count) for one in ones])

    def _numbers(self) -> Iterator[tuple[int, str]]:
        """The tokens with their lines; `_names` reads the lines that are left after the closing 0."""
        for number, line in self._lines:
            for token in _TOKEN.findall(line.partition("#")[0]):
                yield number, token

    def _names(self, count: int) -> list[str]:
        """The candidates' names, which follow the ballots; `title` is what follows them."""
        below = [(number, _NUMBERED.sub("", line).strip()) for number, line in self._lines]
        lines = [(number, line) for number, line in below if line and not line.startswith("#")]
        for at, text in lines:
            if _BALLOT.fullmatch(text):
                raise self.problem(at, "there is a ballot after the 0 that ends the ballots")
        found = self._sharing(lines, count) or [(number, _unquoted(line)) for number, line in lines]
        if len(found) < count:
            raise InputError(f"{self.path}: the file ends where the name of candidate {len(found) + 1} should be")
        for place, (line, name) in enumerate(found[:count], 1):
            if not name:
                raise self.problem(line, f"the name of candidate {place} is blank")
            check_item(name, lambda line=line: f"{self.path}, line {line}: the candidate's name")  # type: ignore[misc]
        self.title = found[count][1] if len(found) > count else ""
        names, notes = kept_apart([name for _, name in found[:count]])
        self.notes += notes
        return names

    def _sharing(self, lines: Sequence[tuple[int, str]], count: int) -> list[tuple[int, str]]:
        """The names, and what follows, of a file in which names share lines; nothing if each has a line of its own.

        Two texts in quotes are a name and a party if every candidate's line has two.
        """
        held = [_QUOTED.findall(line) if _QUOTED_LINE.fullmatch(line) else [] for _, line in lines]
        most = max(map(len, held), default=0)
        if most < 2 or (len(lines) >= count and all(len(texts) == 2 for texts in held[:count])):
            return []
        for (number, line), texts in zip(lines, held, strict=True):
            if not texts:
                raise self.problem(number, f"where names share a line, all must be in quotes, got {line[:60]!r}")
        if most == 2 and len(lines) >= count and sum(map(len, held)) > count + 1:
            number = next(number for (number, _), texts in zip(lines, held, strict=True) if len(texts) == 2)
            raise self.problem(number, "two texts in quotes are a name and a party only if every candidate has both")
        return [(number, text.strip()) for (number, _), texts in zip(lines, held, strict=True) for text in texts]


def kept_apart(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Candidates of one name with their numbers behind it, and notes that say so."""
    shared = [name for name, times in Counter(names).items() if times > 1]
    notes = [f"several candidates are called {name!r}: their numbers keep them apart" for name in shared]
    return [f"{name} ({place})" if name in shared else name for place, name in enumerate(names, 1)], notes


def seats_note(seats: int) -> str:
    """How many are elected, for the eyes of whoever holds the file."""
    return f"the file is of an election of {seats} seat{'s' * (seats != 1)}"


def _unquoted(line: str) -> str:
    """A line without commas behind it and quotes around it (quotes inside are written twice); a party in brackets."""
    text = line.strip().rstrip(",").strip()
    while len(text) > 1 and text.startswith('"') and text.endswith('"'):
        text = text[1:-1].replace('""', '"').strip()
    party = _WITH_PARTY.fullmatch(text)
    return f"{party[1].strip()} ({party[2].strip()})" if party else text
