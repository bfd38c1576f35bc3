"""The tables behind the pages: one CSV file per figure, with every number in full, and ``runs.json``.

Pages and pictures are made from these files alone, so judging or drawing differently needs no new run. A row has a cell
for each column of its table; an empty cell means that this row does not have the column. Numbers are written so that
reading gives back the same number, whole numbers without a point.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankdp.data.atomic import make_directory, write_whole
from rankdp.errors import InputError
from rankdp_papers.experiment import Row
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import load, names

_RUNS = "runs.json"


def file_name(name: str) -> str:
    """The file of a figure: xu-figure2.csv."""
    return f"{name.replace('/', '-')}.csv"


def keep(done: Sequence[Reproduced], directory: Path) -> None:
    """Write the tables of these results, and which size each was run at; tables of other figures stay."""
    make_directory(directory)
    runs = _json(directory / _RUNS)
    for one in done:
        if one.missing is None:
            write_whole(directory / file_name(one.specification.name), to_csv(one.rows).encode())
            runs[one.specification.name] = {"size": one.size, "core_seconds": round(one.seconds)}
    listed = {name: runs[name] for name in [*names(), *runs] if name in runs}
    write_whole(directory / _RUNS, (json.dumps(listed, indent=1) + "\n").encode())


def kept(directory: Path) -> list[Reproduced]:
    """Every figure of the package whose table is there, in order."""
    runs, found = _json(directory / _RUNS), list[Reproduced]()
    for name in names():
        if name in runs:
            rows = from_csv((directory / file_name(name)).read_text(encoding="utf-8"))
            found.append(Reproduced(load(name), runs[name]["size"], rows, runs[name]["core_seconds"]))
    return found


def to_csv(rows: Sequence[Row]) -> str:
    """The text of a table."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(row.get(column, "")) for column in columns] for row in rows)
    return text.getvalue()


def from_csv(text: str) -> list[Row]:
    """The rows of a table."""
    columns, *lines = csv.reader(io.StringIO(text))
    return [{name: _value(cell) for name, cell in zip(columns, line, strict=True) if cell != ""} for line in lines]


def _json(path: Path) -> dict[str, dict[str, Any]]:
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def _text(value: Any) -> str:
    if isinstance(value, str) and value and not isinstance(_value(value), str):
        raise InputError(f"a table must not have a text that reads as a number, got {value!r}")
    return repr(value) if isinstance(value, float) else str(value)


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell
