"""PrefLib's counted orders: `.soc .soi` (strict, complete or not) and `.toc .toi` (with ties in braces).

A modern file has a header of `# KEY: value` lines, among them `# ALTERNATIVE NAME 1: …`, and then one line
per distinct order, `count: 1,2,{3,4}`. The counts are checked against the header, and each order becomes
`count` rows. The list of items is the header's, in the header's order. (Older files without such a header are
refused: their numbers cannot be checked. PrefLib's own site and preflibtools give the modern form.) Orders counted 0
times are skipped and control characters in names are replaced; `notes` of the reader say so.

Synthetic rankings that were released with public offsets have them in one more header line, which other readers pass
over: `# RANKDP OFFSETS: 3,0 0 5,1` lists, order by order, the offset of each voter who is counted there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.cells import check_item, check_offsets
from rankdp.data.columns import Columns
from rankdp.data.formats.blt import BltFile
from rankdp.data.formats.texts import lines_of, whole
from rankdp.data.frames import OFFSET, RankingsReader, Reading
from rankdp.data.orders import CountedOrders, Groups, ReadTies, check_orders, refuse_tie, shuffle
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting
from rankdp.progress import tell

_NUMBER = r"[0-9]{1,18}"
_TIED = rf"\{{\s*(?:{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*)?\}}"
_HEADER = re.compile(
    r"#\s*(ALTERNATIVE\s+NAME|NUMBER\s+(?:ALTERNATIVES|VOTERS|UNIQUE\s+ORDERS)|RANKDP\s+OFFSETS)\b([^:]*)(.*)",
    re.IGNORECASE,
)
_ORDER = re.compile(rf"({_NUMBER})\s*:\s*((?:{_TIED}|{_NUMBER})(?:\s*,\s*(?:{_TIED}|{_NUMBER}))*)\s*,?\s*")
_GROUP = re.compile(rf"{_TIED}|{_NUMBER}")
_MOST_VOTERS = 2**31 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class _File:
    """A PrefLib file, parsed and checked against its own header."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.names: dict[int, str] = {}
        self.numbers: dict[str, int] = {}
        self.orders: list[tuple[int, int, Groups]] = []
        """(line, count, groups of indices)"""
        self.offsets: list[list[int]] | None = None
        """By order: the public offset of each of its voters."""
        self._places: dict[int, int] = {}
        self.notes: list[str] = []
        self._uncast = 0
        for number, text in lines_of(path, content):
            if (line := text.strip()).startswith("#"):
                self._header(number, line)
            elif line:
                self._order(number, line)
        self._check_counts()

    def problem(self, line: int, sentence: str) -> InputError:
        return InputError(f"{self.path}, line {line}: {sentence}")

    def _header(self, number: int, line: str) -> None:
        match = _HEADER.fullmatch(line)
        if match is None:
            return
        word, key, value = " ".join(match[1].upper().split()), match[2].strip(), match[3][1:].strip()
        if not match[3] or (key and word != "ALTERNATIVE NAME"):
            raise self.problem(number, f"{word} must be followed by a colon, got {line[:60]!r}")
        if word == "ALTERNATIVE NAME":
            self._name(number, self._whole(number, "the number of an alternative", key), value)
        elif word == "RANKDP OFFSETS":
            texts = [entry.split() for entry in value.split(",")]
            self.offsets = [[self._whole(number, "an offset", text) for text in entry] for entry in texts]
        else:
            self.numbers[word.removeprefix("NUMBER ")] = self._whole(number, word, value)

    def _name(self, number: int, key: int, name: str) -> None:
        clean = " ".join(_CONTROL.sub(" ", name).split()) if _CONTROL.search(name) else name
        if clean != name:
            self.notes.append(f"line {number}: control characters in a name were removed, which leaves {clean!r}")
            name = clean
        check_item(name, lambda: f"{self.path}, line {number}: the alternative's name")
        if key in self.names or name in self.names.values():
            raise self.problem(number, f"alternative {key} ({name!r}) is named twice")
        self._places[key] = len(self.names)
        self.names[key] = name

    def _whole(self, line: int, what: str, text: str) -> int:
        if not re.fullmatch(_NUMBER, text):
            raise self.problem(line, f"{what} must be a whole number of at most 18 digits, got {text[:60]!r}")
        return int(text)

    def _order(self, number: int, line: str) -> None:
        if not self.names:
            raise self.problem(
                number,
                "there is no '# ALTERNATIVE NAME' line before the orders; this may be PrefLib's old format "
                "without a header: fetch the file again from PrefLib, or save it with preflibtools",
            )
        match = _ORDER.fullmatch(line)
        if match is None:
            raise self.problem(number, f"an order must look like '3: 1,2,{{4,5}}', got {line[:60]!r}")
        count = int(match[1])
        groups: Groups = []
        seen: set[int] = set()
        for group in _GROUP.findall(match[2]):
            keys = [int(key) for key in re.findall(_NUMBER, group)]
            for key in keys:
                if key not in self._places:
                    raise self.problem(number, f"{key} is not one of the {len(self.names)} alternatives in the header")
                if key in seen:
                    name = self.names[key]
                    raise self.problem(number, f"{name!r} is listed twice; a ranking lists each item once")
                seen.add(key)
            if keys:
                groups.append([self._places[key] for key in keys])
        if not groups:
            raise self.problem(number, "no item is listed; a ranking lists at least one")
        if count:
            self.orders.append((number, count, groups))
        else:
            self._uncast += 1

    def _check_counts(self) -> None:
        if not self.names:
            raise InputError(f"{self.path}: there is no '# ALTERNATIVE NAME' line; this is not a PrefLib file")
        if not self.orders:
            raise InputError(f"{self.path}: there is a header but no order")
        found = {
            "ALTERNATIVES": len(self.names),
            "VOTERS": sum(count for _, count, _ in self.orders),
            "UNIQUE ORDERS": len(self.orders),
        }
        if self._uncast:
            self.notes.append(f"orders that nobody cast (counted 0 times) are skipped, {self._uncast:,} of them")
        for key, number in found.items():
            uncast = self._uncast if key == "UNIQUE ORDERS" else 0
            if self.numbers.get(key, number) not in (number, number + uncast):
                raise InputError(
                    f"{self.path}: the header says NUMBER {key}: {self.numbers[key]}, but the file has {number}"
                )
        if self.offsets is not None and [len(each) for each in self.offsets] != [count for _, count, _ in self.orders]:
            raise InputError(f"{self.path}: RANKDP OFFSETS must list an offset for each voter of each order")
        if found["VOTERS"] > _MOST_VOTERS:
            raise InputError(f"{self.path}: a file holds at most {_MOST_VOTERS} voters, got {found['VOTERS']}")


def counted_orders(
    path: str,
    kind: str,
    items: Iterable[Any] | None,
    *,
    refuse_ties: bool = False,
    ballots: bool = False,
    encoding: str | None = None,
) -> CountedOrders:
    """Read a PrefLib or BLT file; as ``ballots`` of BLT also places left out, and candidates ranked again or nobody."""
    content = whole(path, encoding)
    if not content:
        raise InputError(f"{path}: the file is empty")
    file = (BltFile if kind == "blt" else _File)(path, content)
    if not ballots and isinstance(file, BltFile):
        file.refuse_repeated()
        listed = [(line, count, [group for group in groups if group != [-1]]) for line, count, groups in file.orders]
        file.orders = [order for order in listed if order[2]]
    counted = [(count, groups) for _, count, groups in file.orders]
    found = CountedOrders.of(path, tuple(file.names.values()), counted, items, file.notes, getattr(file, "title", ""))
    for (line, _, groups), order, tied in zip(file.orders, found.orders, found.tied, strict=True):
        if tied.any() and (refuse_ties or kind in ("soc", "soi")):
            place = int(tied.argmax())
            pair = [found.known.items[item] for item in order[place - 1 : place + 1]]
            raise refuse_tie(f"{path}, line {line}", pair, place)
        if kind in ("soc", "toc") and sum(map(len, groups)) != len(file.names):
            raise file.problem(line, f"a .{kind} file lists every alternative in every order")
    if isinstance(file, BltFile) or file.offsets is None:
        return found
    flat = [offset for order in file.offsets for offset in order]
    return replace(found, offsets=check_offsets(flat, len(flat)))


def open_preflib(path: str, kind: str, asked: Reading, batch_rows: int) -> RankingsReader:
    """Open a PrefLib file; its distinct orders are kept in memory and repeated batch by batch."""
    for option in ("voter_column", "epsilon_column", "offset_column", "columns"):
        if (value := getattr(asked, option)) is not None and (option, value) != ("offset_column", OFFSET):
            raise InputError(f"{path}: ", Setting(option), f" is {value!r}, but a .{kind} file has no columns")
    counted = counted_orders(path, kind, asked.items, refuse_ties=asked.ties == "refuse")
    width, rows = counted.orders.shape[1], int(counted.counts.sum())
    columns = Columns("wide", tuple(f"rank_{rank + 1}" for rank in range(width)))
    if asked.offset_column is None:
        counted = replace(counted, offsets=None)
    batches = repeated(counted, asked.ties, batch_rows)
    return RankingsReader(path, columns, counted.known, rows, width, batches, notes=counted.notes, paths=(path,))


def repeated(counted: CountedOrders, ties: ReadTies, batch_rows: int) -> Iterator[Rankings]:
    """Every order as often as it was cast, in batches; ties that are to be refused have been."""
    ends, items = np.cumsum(counted.counts), counted.known.items
    with_ties, kept = counted.tied.any(axis=1), ties == "keep" and counted.tied.any()
    for first in range(0, int(ends[-1]), batch_rows):
        which = np.searchsorted(ends, np.arange(first, min(first + batch_rows, int(ends[-1]))), side="right")
        batch = counted.orders[which]
        for row in np.flatnonzero(np.take(with_ties, which)).tolist() if ties == "random" else ():
            order = batch[row][batch[row] >= 0]
            groups = np.split(order, np.flatnonzero(~counted.tied[which[row]][: len(order)])[1:])
            batch[row, : len(order)] = [item for group in groups for item in shuffle(group.tolist())]
        check_orders(batch, items)
        offsets = None if counted.offsets is None else counted.offsets[first : first + batch_rows]
        tied = counted.tied[which] if kept else None
        yield Rankings._of(batch, items, None, None, offsets, tied, counted.known.from_data)
        tell("reading", first + len(batch), int(ends[-1]))


class PreflibSink:
    """Counts equal orders and writes them, the most frequent first, when the last batch is in."""

    def __init__(self, temporary: str, name: str, kind: str) -> None:
        self._temporary, self._name, self._kind = temporary, name, kind
        self._counts: Counter[tuple[tuple[int, ...], ...]] = Counter()
        self._offsets: defaultdict[tuple[tuple[int, ...], ...], list[int]] = defaultdict(list)

    def write(self, rankings: Rankings) -> None:
        """Count one batch."""
        if self._kind in ("soc", "toc") and not rankings.complete:
            raise InputError(
                f"{self._name}: a .{self._kind} file holds complete rankings only; use the ending .{self._kind[0]}oi"
            )
        tied = np.zeros(rankings.orders.shape, np.bool_) if rankings.tied is None else rankings.tied
        offsets = np.zeros(len(rankings), np.int32) if rankings.offsets is None else rankings.offsets
        keys = np.column_stack([2 * rankings.orders + tied, offsets])
        distinct, counts = np.unique(keys, axis=0, return_counts=True)
        for (*order, offset), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            groups: Groups = []
            for item in order:
                if item >= 0 and item & 1:
                    groups[-1].append(item >> 1)
                elif item >= 0:
                    groups.append([item >> 1])
            key = tuple(map(tuple, groups))
            self._counts[key] += count
            if rankings.offsets is not None:
                self._offsets[key] += [offset] * count

    def finish(self, items: Sequence[str], from_data: bool) -> None:
        """Write the header and the counted orders."""
        lines = [
            f"# FILE NAME: {self._name}",
            f"# TITLE: {Path(self._name).stem}",
            "# DESCRIPTION: ",
            f"# DATA TYPE: {self._kind}",
            *("# MODIFICATION TYPE: synthetic", "# RELATES TO: ", "# RELATED FILES: "),
            *("# PUBLICATION DATE: ", "# MODIFICATION DATE: "),
            f"# NUMBER ALTERNATIVES: {len(items)}",
            f"# NUMBER VOTERS: {sum(self._counts.values())}",
            f"# NUMBER UNIQUE ORDERS: {len(self._counts)}",
            *(f"# ALTERNATIVE NAME {number}: {name}" for number, name in enumerate(items, 1)),
        ]
        ordered = sorted(self._counts.items(), key=lambda entry: (-entry[1], entry[0]))
        if self._offsets:
            each = (" ".join(map(str, sorted(self._offsets[order]))) for order, _ in ordered)
            lines.append(f"# RANKDP OFFSETS: {','.join(each)}")
        for order, count in ordered:
            texts = [",".join(str(item + 1) for item in group) for group in order]
            groups = [text if len(group) == 1 else f"{{{text}}}" for text, group in zip(texts, order, strict=True)]
            lines.append(f"{count}: {','.join(groups)}")
        Path(self._temporary).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def abandon(self) -> None:
        """Nothing is open."""
