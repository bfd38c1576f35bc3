"""Preferences: a table of preferred and rejected answers in, the same table with private labels out.

A row says which of two answers was preferred. This *label* is secret; the prompt, both answers and who rated them are
treated as public and stay as they are. Two layouts are read:

    prompt, chosen, rejected                       a swap exchanges the two answers
    prompt, response_a, response_b, label          a swap writes the other of the two labels

Each label goes through randomised response (``mechanisms.votes.labels``). With ``max_per_voter=k`` epsilon is for all
labels of one rater together: each label has epsilon/k, and only the first k rows of a rater are kept. Which rows these
are depends on the raters' ids and the order of the table alone, so a changed label changes one row.

All other columns are left out unless they are named in ``keep``: a score of the chosen answer gives the label away. So
would the dictionaries of Arrow and Parquet, which list the chosen answers before the rejected ones even if rows are
swapped later. So both answers are written as plain values, in the order of the rows.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.checks import whole
from rankdp.data.atomic import NewFile, known_ending
from rankdp.data.cells import decoded, id_text
from rankdp.data.tables import EngineTable, open_table
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.labels import SwappedLabels
from rankdp.privacy.bits import Bits, SecureBits, seeded
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Release, released
from rankdp.types import Flags, Longs

FORMATS = (".csv", ".jsonl", ".parquet")
_PROMPTS = ("prompt", "question", "instruction", "input")
_PAIRS = (("chosen", "rejected"), ("preferred", "rejected"))
_SIDES = (("response_a", "response_b"), ("answer_a", "answer_b"), ("completion_a", "completion_b"))
_LABELS = ("label", "preference", "preferred", "winner")
_VOTERS = ("voter", "rater", "annotator", "worker", "user")


@dataclass(frozen=True, slots=True)
class _Preferences:
    """A table that was read and checked."""

    table: Any
    """An Arrow table of the columns that are published."""
    sides: tuple[str, str] | None
    """The columns that a swap exchanges; None where it changes a label."""
    label: str | None
    labels: tuple[str, str]
    left_out: tuple[str, ...]
    dropped: int

    def swapped(self, swap: Flags) -> Any:
        """The table with some labels swapped."""
        import pyarrow as pa

        table, rows = self.table, np.arange(len(swap))
        if self.sides is not None:
            one, other = (table.column(name).combine_chunks() for name in self.sides)
            both = pa.concat_arrays([one, other])
            for name, first in zip(self.sides, (0, 1), strict=True):
                taken = both.take(pa.array(rows + len(rows) * (swap ^ (first == 1))))
                table = table.set_column(table.schema.get_field_index(name), name, taken)
            return table
        assert self.label is not None
        partner = {self.labels[0]: self.labels[1], self.labels[1]: self.labels[0]}
        texts = [_text(value) for value in table.column(self.label).to_pylist()]
        kept = [partner[text] if change else text for text, change in zip(texts, swap.tolist(), strict=True)]
        return table.set_column(table.schema.get_field_index(self.label), self.label, pa.array(kept, pa.string()))


def privatize_preferences(
    preferences: Any,
    epsilon: Real | None = None,
    *,
    max_per_voter: int | None = None,
    voter_column: str | None = None,
    labels: tuple[str, str] = ("a", "b"),
    keep: Sequence[str] = (),
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
) -> Release[Any]:
    """Private labels for a table of preferences, for training a reward model or by direct preference optimisation.

    Parameters
    ----------
    preferences
        A frame, a Hugging Face ``Dataset``, or a path: columns prompt, chosen, rejected, or prompt, response_a,
        response_b, label.
    epsilon
        The privacy of one label or, with ``max_per_voter``, of all labels of one rater together.
    max_per_voter
        How many rows of one rater are used: the first ones. Without it each label is protected by itself.
    voter_column
        The column of the raters' ids, where it is not called voter, rater, annotator, worker or user.
    labels
        The two values of the label column, for the first and the second answer; capitals count as small letters.
    keep
        Other columns to publish as they are; all columns not named are left out.
    ledger
        A budget that is charged before anything is drawn.
    bits
        Where the noise comes from.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.

    Returns
    -------
    Release
        An Arrow table. ``release.provenance.parameters["flip_probability"]`` is what training needs.
    """
    job, bits = _job(epsilon, max_per_voter), seeded(bits, seed) or SecureBits()
    read = _read(preferences, max_per_voter, voter_column, labels, keep)
    with spending(ledger, _guarantee(job, max_per_voter), "preferences", bits) as charge:
        release = _released(job, read, read.swapped(job.swapped(len(read.table), bits)), max_per_voter, bits)
        charge.commit(release.provenance)
    return release


def privatize_preferences_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    epsilon: Real | None = None,
    *,
    max_per_voter: int | None = None,
    voter_column: str | None = None,
    labels: tuple[str, str] = ("a", "b"),
    keep: Sequence[str] = (),
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
) -> Release[Path]:
    """Privatize a file of preferences (CSV, JSON Lines, Parquet, Excel) into another (CSV, JSON Lines, Parquet).

    The guarantee and the flip probability go to TARGET.release.json. A failure leaves nothing behind.

    Parameters
    ----------
    source
        The file to read.
    target
        The file to write, in the format of its ending.
    epsilon, max_per_voter, voter_column, labels, keep, ledger, bits, seed
        As in ``privatize_preferences``.

    Returns
    -------
    Release[Path]
        The target with its guarantee.
    """
    ending = known_ending(target, FORMATS)
    job, bits = _job(epsilon, max_per_voter), seeded(bits, seed) or SecureBits()
    read = _read(os.fspath(source), max_per_voter, voter_column, labels, keep)
    if ending == ".csv":
        _refuse_lists(read.table.schema, target)
    promise = _guarantee(job, max_per_voter)
    with NewFile(target, source=source) as file, spending(ledger, promise, f"preferences {target}", bits) as charge:
        content = _encoded(read.swapped(job.swapped(len(read.table), bits)), ending)
        release = _released(job, read, Path(target), max_per_voter, bits)
        charge.leaves()
        file.write(content)
        file.promise(release.to_dict())
        file.keep()
        charge.commit(release.provenance)
    return release


def _job(epsilon: Real | None, max_per_voter: int | None) -> SwappedLabels:
    if epsilon is None:
        raise InputError(Setting("epsilon"), " must be given")
    most = 1 if max_per_voter is None else whole("max_per_voter", max_per_voter, 1)
    return SwappedLabels(positive(epsilon) / most)


def _guarantee(job: SwappedLabels, max_per_voter: int | None) -> Guarantee:
    return job.guarantee.for_rows_of_a_voter(max_per_voter or 1)


def _released(job: SwappedLabels, read: _Preferences, value: Any, most: int | None, bits: Bits) -> Release[Any]:
    facts = {
        "preferences": len(read.table),
        "epsilon": str(job.epsilon * (most or 1)),
        "label_epsilon": str(job.epsilon),
        "flip_probability": job.flip_probability,
        "max_per_voter": most,
        "rows_dropped": read.dropped,
        "columns_left_out": list(read.left_out),
    }
    return released(value, _guarantee(job, most), job.name, facts, bits)


def _read(
    source: Any, most: int | None, voter_column: str | None, labels: Sequence[str], keep: Sequence[str]
) -> _Preferences:
    """Open, recognise and check a table."""
    import pyarrow as pa

    table = open_table(source)
    if isinstance(table, EngineTable):
        raise Unsupported(f"{table.what}: preferences are read from files and frames; collect the table first")
    names = list(table.kinds)
    folded = _known_columns(names, table.what, () if voter_column else _VOTERS)
    sides = next(((folded[a], folded[b]) for a, b in _PAIRS if a in folded and b in folded), None)
    label = None
    if sides is None:
        both = next(((folded[a], folded[b]) for a, b in _SIDES if a in folded and b in folded), None)
        label = next((folded[name] for name in _LABELS if name in folded), None)
        if both is None or label is None:
            raise InputError(
                f"{table.what}: columns must be prompt, chosen, rejected or prompt, response_a, response_b, label, got "
                + ", ".join(names)
            )
        used = [*both, label]
    else:
        used = list(sides)
    voter = voter_column or next((folded[name] for name in _VOTERS if name in folded), None)
    for name in (*([voter_column] if voter_column else []), *keep):
        if name not in names:
            raise InputError(f"{table.what}: there is no column {name!r}, got {', '.join(names)}")
    if voter in used:
        raise InputError(f"{table.what}: {voter!r} belongs to the pairs and cannot name the raters")
    if most is not None and voter is None:
        raise InputError(Setting("max_per_voter"), " needs a column of raters; name it with ", Setting("voter_column"))
    prompts = [folded[name] for name in _PROMPTS if name in folded]
    wanted = [name for name in names if name in {*prompts, *used, *keep} or name == voter]
    batches = [(file, start, _plain(batch, table.what)) for file, start, batch in table.batches(wanted)]
    if not sum(batch.num_rows for _, _, batch in batches):
        raise InputError(f"{table.what}: there are no rows")
    values = _two(labels)
    for file, start, batch in batches:
        for name in used:
            missing = np.flatnonzero(batch.column(name).is_null().to_numpy(zero_copy_only=False))
            if missing.size:
                raise InputError(f"{table.where(file, start + int(missing[0]))}: {name!r} must not be missing")
        if label is not None:
            for row, value in enumerate(batch.column(label).to_pylist()):
                if _text(value) not in values:
                    shown = (
                        f"{table.where(file, start + row)}: {label!r} must be {values[0]} or {values[1]}, got {value!r}"
                    )
                    raise InputError(f"{shown}; ", Setting("labels"), " names the two values")
    whole_table = pa.Table.from_batches([batch for _, _, batch in batches]).replace_schema_metadata()
    if sides is not None and whole_table.schema.field(sides[0]).type != whole_table.schema.field(sides[1]).type:
        raise InputError(f"{table.what}: the columns {sides[0]} and {sides[1]} must have the same type")
    kept = np.arange(len(whole_table)) if most is None else _first(whole_table.column(voter).to_pylist(), most)
    left_out = tuple(name for name in names if name not in wanted)
    chosen = whole_table.take(pa.array(kept)) if len(kept) < len(whole_table) else whole_table
    return _Preferences(chosen, sides, label, values, left_out, len(whole_table) - len(kept))


def _known_columns(names: Sequence[str], what: str, voters: Sequence[str]) -> dict[str, str]:
    """The columns by their usual names in small letters; two columns of one name are refused."""
    usual = {name for known in (*_PAIRS, *_SIDES, _PROMPTS, _LABELS, voters) for name in known}
    found: dict[str, str] = {}
    for name in names:
        folded = name.strip().lower()
        if folded in usual and found.setdefault(folded, name) != name:
            raise InputError(f"{what}: {found[folded]!r} and {name!r} are both called {folded}; rename one of them")
    return found


def _plain(batch: Any, what: str) -> Any:
    """The batch without dictionaries and views; those inside lists and structures are refused."""
    import pyarrow as pa

    columns = [decoded(column) for column in batch.columns]
    for name, column in zip(batch.schema.names, columns, strict=True):
        if any(word in str(column.type) for word in ("dictionary<", "_view", "run_end")):
            raise InputError(f"{what}: the column {name!r} must hold plain values, got {column.type}")
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _refuse_lists(schema: Any, target: str | os.PathLike[str]) -> None:
    """Refuse to write lists and structures as CSV."""
    import pyarrow as pa

    if nested := next((field.name for field in schema if pa.types.is_nested(field.type)), None):
        raise InputError(
            f"{os.fspath(target)}: the column {nested!r} holds lists or structures, which CSV cannot: use .jsonl or "
            ".parquet"
        )


def _two(labels: Sequence[str]) -> tuple[str, str]:
    texts = [_text(value) for value in labels]
    if len(texts) != 2 or len(set(texts)) != 2 or "" in texts:
        raise InputError(Setting("labels"), f" must be two different values, got {', '.join(map(str, labels))}")
    return texts[0], texts[1]


def _text(value: Any) -> str:
    return str(value).strip().lower()


def _first(voters: list[Any], most: int) -> Longs:
    """The first rows of each rater up to the limit, in the order of the table; ids are compared as trimmed texts."""
    seen: dict[str, int] = {}
    kept = []
    for row, voter in enumerate(voters):
        who = id_text(voter)
        if voter is None or not who:
            raise InputError(
                f"row {row + 1} has no rater: ids must not be blank with ", Setting("max_per_voter"), f", got {voter!r}"
            )
        seen[who] = seen.get(who, 0) + 1
        if seen[who] <= most:
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def _encoded(table: Any, ending: str) -> bytes:
    sink = io.BytesIO()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    elif ending == ".csv":
        import pyarrow.csv as pc

        pc.write_csv(table, sink)
    else:
        for row in table.to_pylist():
            sink.write((json.dumps(row, ensure_ascii=False, default=str) + "\n").encode())
    return sink.getvalue()
