"""A file as its curator sees it: what it is, how its columns were recognised, and what is odd about it.

Everything here is computed from the secret rows without any noise. It is for the curator's eyes only: the page marks
it, nothing of it goes into a release, and no other page shows it. A refusal is shown in the reader's own words.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankdp.data.ballot_files import ballot_format
from rankdp.data.ballots import Ballots
from rankdp.data.columns import listed_names, recognise, recognise_scores, renamed, vote_style
from rankdp.data.comparisons import Comparisons
from rankdp.data.files import COUNTED, open_rankings
from rankdp.data.formats.texts import COMPRESSED, bare_suffix
from rankdp.data.rankings import Rankings
from rankdp.data.score_files import read_scores
from rankdp.data.tables import find_files
from rankdp.data.vote_columns import WEIGHT_NAMES
from rankdp.data.votes import count
from rankdp.errors import InputError, RankdpError

NOT_PRIVATE = "NOT PRIVATE: counted from the rows without noise, for your eyes only. Do not publish it."
ENDINGS = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson", ".json", ".zip", *(f".{kind}" for kind in COUNTED))
_MANY = 7
"""2 to the power of this: votes of one voter that are odd."""
_FAR = 4
_SHOWN = 5
_IDS_LOOKED_AT = 50


@dataclass(slots=True)
class FileSummary:
    """What a file turned out to be; ``kinds`` is empty where no reader takes it, and ``refusal`` says why."""

    path: str
    kinds: tuple[str, ...] = ()
    recognised: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    refusal: str = ""
    items: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    """By kind, how many ballots, comparisons, rankings or scores there are."""
    columns: tuple[str, ...] = ()
    length: int = 0
    """How many items most rankings list."""
    span: tuple[float, float] = (0.0, 0.0)
    """The lowest and the highest score."""
    damaged: str = ""
    """How many rows are damaged and would be skipped, in words."""
    asks: set[str] = field(default_factory=set)
    """Which settings the rows call for: ties, partial, repeated, drop, outcomes, voters."""


def look(path: str, columns: Mapping[str, str] | None = None) -> FileSummary:
    """Open a file and say what it is."""
    found = FileSummary(path)
    asked = dict(columns or {}) or None
    readers: dict[str, Callable[[FileSummary, dict[str, str] | None], None]] = {
        "ballots": _ballots,
        "rankings": _rankings,
        "comparisons": _comparisons,
        "scores": _scores,
    }
    refused = {}
    try:
        if not Path(path).is_file():
            raise InputError(f"{path}: there is no such file")
        for kind in _suited(found, asked):
            try:
                readers[kind](found, asked)
                found.kinds += (kind,)
            except RankdpError as refusal:
                refused[kind] = str(refusal)
    except RankdpError as refusal:
        found.refusal = str(refusal)
        return found
    if found.kinds:
        found.odd += [f"As {kind} it would be refused: {words}." for kind, words in refused.items()]
    else:
        found.refusal = next(iter(refused.values()))
    return found


def _suited(found: FileSummary, asked: dict[str, str] | None) -> tuple[str, ...]:
    """The kinds whose columns a file has, or one sentence that says which it would need."""
    if bare_suffix(found.path).removeprefix(".") in COUNTED:
        return "ballots", "rankings"
    if ballot_format(found.path) is not None:
        return ("ballots",)
    table = find_files(found.path)
    found.columns = tuple(table.kinds)
    names = tuple(renamed(found.columns, found.path, asked))
    if vote_style(names):
        return ("comparisons",)
    try:
        recognise([name for name in names if name.lower() not in WEIGHT_NAMES], found.path)
    except InputError:
        pass
    else:
        weighted = any(name.lower() in WEIGHT_NAMES for name in names)
        return ("ballots",) if weighted else ("ballots", "rankings")
    try:
        recognise_scores(names, found.path)
    except InputError:
        raise InputError(
            f"{found.path}: the columns are {listed_names(found.columns)}. Ballots and rankings have rank_1, rank_2, … "
            "(or voter, item, rank); comparisons have left, right, winner (or winner, loser); scores have item, score. "
            "Say below which column is which"
        ) from None
    return ("scores",)


def _ballots(found: FileSummary, asked: dict[str, str] | None) -> None:
    table = Ballots.read(found.path, columns=asked)
    found.items, found.rows["ballots"] = table.items, table.count
    listed = (table.orders >= 0).sum(axis=1)
    short = int(table.weights[listed < len(table.items)].sum())
    tied = int(table.weights[table.tied.any(axis=1)].sum())
    alone = int((table.weights == 1).sum())
    found.facts |= {"Candidates": f"{len(table.items):,}", "Ballots": f"{table.count:,}"}
    found.facts |= {"Different ballots": f"{len(table.orders):,}", "Only one of their kind": f"{alone:,}"}
    found.odd += table.notes
    if short:
        found.odd.append(f"{short:,} of {table.count:,} ballots do not rank everyone; candidates left out come last.")
    if tied:
        found.odd.append(f"{tied:,} ballots have ties.")
    found.recognised.append("Each row lists choices, the first one first.")


def _rankings(found: FileSummary, asked: dict[str, str] | None) -> None:
    with open_rankings(found.path, ties="keep", columns=asked) as reader:
        table = Rankings.concatenate(reader, sort_items=not reader.declared_items)
        notes, voter, ignored = reader.notes, reader.columns.voter, reader.columns.ignored
        layout = {"wide": "a row for each ranking", "long": "a row for each listed item"}.get(
            reader.columns.layout, "a column of ranks for each item"
        )
    found.items, found.rows["rankings"] = table.items, len(table)
    if "ballots" not in found.kinds:
        found.facts |= {"Items": f"{len(table.items):,}", "Rankings": f"{len(table):,}"}
    found.recognised.append(
        f"There is {layout}"
        + (f"; {voter!r} is the voter" if voter else "; no column names the voter")
        + (f"; not read: {listed_names(ignored)}" if ignored else "")
        + "."
    )
    found.odd += [note for note in notes if note not in found.odd]
    if table.tied is not None and table.tied.any():
        found.asks.add("ties")
        if "ballots" not in found.kinds:
            found.odd.append(f"{int(table.tied.any(axis=1).sum()):,} rankings have ties.")
    if not table.complete:
        found.asks.add("partial")
        found.length = max(2, int(np.bincount(table.lengths).argmax()))
        if "ballots" not in found.kinds:
            found.odd.append(f"{int((table.lengths < len(table.items)).sum()):,} rankings do not list every item.")
    if table.voters is not None:
        found.asks.add("voters")
        ids = [str(one) for one in table.voters]
        _addresses(found, ids)
        name, most = Counter(ids).most_common(1)[0]
        if most > 1:
            found.asks.add("repeated")
            several = sum(count > 1 for count in Counter(ids).values())
            found.odd.append(f"Voters with several rows: {several:,}; {name!r} has {most:,}.")


def _addresses(found: FileSummary, ids: Sequence[str]) -> None:
    some = ids[:_IDS_LOOKED_AT]
    if sum("@" in one for one in some) * 2 > len(some):
        found.odd.append("The voters' ids look like e-mail addresses.")


def _comparisons(found: FileSummary, asked: dict[str, str] | None) -> None:
    votes = Comparisons.read(found.path, items_from_data=True, columns=asked, on_problem="drop")
    (counts,), said = count(votes, [None])  # once: a large file takes seconds
    found.items, found.rows["comparisons"] = votes.items, int(counts.half_wins.sum()) // 2
    found.recognised.append(votes.recognised.partition(": ")[2])
    found.facts |= {"Items": f"{len(votes.items):,}", "Comparisons": f"{found.rows['comparisons']:,}"}
    if dropped := {reason: count for reason, count in said.dropped.items() if reason != "both bad"}:
        found.asks |= {"drop", *(["outcomes"] if "missing outcome" in dropped else [])}
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in dropped.items())
        found.damaged = f"the damaged rows ({sum(dropped.values()):,} of {said.rows:,})"
        found.odd.append(f"{sum(dropped.values()):,} of {said.rows:,} rows are damaged: {reasons}.")
    if votes.columns.voter is not None:
        found.asks.add("voters")
        loads = votes.load_counts()
        people, many = int(loads.sum()), int(loads[_MANY:].sum())
        found.facts["Voters"] = f"{people:,}"
        if many:
            found.odd.append(
                f"{many:,} voter{'s' * (many > 1)} of {people:,} gave {1 << _MANY} comparisons or more: "
                "protect everything a person said, so that nobody counts for too much."
            )
    never = [name for name, times in zip(votes.items, counts.half_wins.tolist(), strict=True) if not times]
    if never:
        found.odd.append(f"Never won: {_listed(never)}.")


def _scores(found: FileSummary, asked: dict[str, str] | None) -> None:
    named = {f"{role}_column": column for role, column in (asked or {}).items()}
    table = read_scores(found.path, named.get("item_column"), named.get("score_column"))
    found.items, found.rows["scores"] = tuple(str(name) for name in table.names), len(table.scores)
    found.recognised.append(
        f"{table.item_column!r} is the name and {table.score_column!r} the score"
        + (f"; not read: {listed_names(table.left_out)}" if table.left_out else "")
        + "."
    )
    low, high = found.span = float(table.scores.min()), float(table.scores.max())
    found.facts |= {"Scores": f"{len(table.scores):,}", "Lowest": f"{low:g}", "Highest": f"{high:g}"}
    spread = float(np.std(table.scores))
    away = np.abs(table.scores - np.mean(table.scores)) > _FAR * spread
    far = [name for name, alone in zip(found.items, away.tolist(), strict=True) if alone]
    if far:
        found.odd.append(f"Far from all others: {_listed(far)}.")
    if tied := sum(times for times in Counter(table.scores.tolist()).values() if times > 1):
        found.odd.append(f"{tied:,} scores are tied with another.")


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _is_text(name: str) -> bool:
    """Whether a page can show a name: some systems have names that are not text."""
    return name.encode("utf-8", "replace").decode() == name


def choices(directory: str) -> tuple[list[str], list[str]]:
    """The directories and the files of a directory that could be opened, by name; hidden ones are left out."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name.casefold())
    except OSError as problem:
        raise InputError(f"{directory}: the directory could not be read ({os.strerror(problem.errno or 0)})") from None
    shown = [entry for entry in entries if not entry.name.startswith(".") and _is_text(entry.name)]
    known = tuple(f"{ending}{packed}" for ending in ENDINGS for packed in ("", *COMPRESSED))
    return (
        [entry.name for entry in shown if entry.is_dir()],
        [entry.name for entry in shown if entry.is_file() and entry.name.lower().endswith(known)],
    )
