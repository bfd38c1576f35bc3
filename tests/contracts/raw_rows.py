"""Tables with awkward cells, in every format and on every engine, for the contract of raw rows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from support import workbook

NAMES = ("plain", 'a"b', '"quoted"', "it's", "'", "x, y", "tab\there", "nb\u00a0sp", "007", "7", "0.5", "#x", "🦊", "é")
"""Names that formats write with care: quotes, separators, numbers that are texts, marks of comments, other scripts."""
VOTERS = ("ann", "a'nn", 'an"n', "1152921504606846976", "1152921504606846977", "0.5", "7", "007", "#1", "a, b", "1e3")
PADDING = ("", " ", "\u00a0", "\u2003", "\t ")
COMMENTS = ("", "fine", "'t is", 'say "so"', '"', "# no", "a,b;c", "two\nlines", "null", "\\", "it's\tnot")

Row = tuple[str, ...]
Source = tuple[Any, dict[str, Any]]
"""What is opened, and the options to open it with."""


def padded(cell: str) -> st.SearchStrategy[str]:
    """The cell with spaces around it that mean nothing."""
    return st.tuples(st.sampled_from(PADDING), st.sampled_from(PADDING)).map(lambda pad: pad[0] + cell + pad[1])


def comments() -> st.SearchStrategy[str]:
    """What people write into a column that nobody reads."""
    return st.sampled_from(COMMENTS)


# -- writers -----------------------------------------------------------------------------------------------------


def _text(path: Path, header: Row, rows: Sequence[Row], mark: str, **dialect: Any) -> Source:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=mark, lineterminator="\n", **dialect).writerows([header, *rows])
    return path, {}


def _csv(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return _text(folder / "table.csv", header, rows, ",")


def _csv_all_quoted(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return _text(folder / "quoted.csv", header, rows, ",", quoting=csv.QUOTE_ALL)


def _tsv(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return _text(folder / "table.tsv", header, rows, "\t")


def _json_cell(cell: str) -> str:
    """A number where it looks like one, as programs that dump tables write them."""
    return cell if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE]\d+)?", cell) else json.dumps(cell)


def _objects(header: Row, rows: Sequence[Row]) -> list[str]:
    """Objects; a blank cell is null."""
    said = []
    for row in rows:
        cells = zip(header, (_json_cell(cell) if cell else "null" for cell in row), strict=True)
        said.append("{" + ", ".join(f"{json.dumps(key)}: {cell}" for key, cell in cells) + "}")
    return said


def _json_lines(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    path = folder / "table.jsonl"
    path.write_text("\n".join(_objects(header, rows)) + "\n", encoding="utf-8")
    return path, {}


def _json_array(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    path = folder / "table.json"
    path.write_text("[" + ",\n".join(_objects(header, rows)) + "]", encoding="utf-8")
    return path, {}


def arrow(header: Row, rows: Sequence[Row]) -> Any:
    """An Arrow table of texts."""
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(header)})


def _parquet(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    path = folder / "table.parquet"
    pq.write_table(arrow(header, rows), path, row_group_size=2)
    return path, {}


def _duckdb_file(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    import duckdb

    path = folder / "table.duckdb"
    path.unlink(missing_ok=True)
    table = arrow(header, rows)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE held AS SELECT * FROM given")
    return path, {"table": "held"}


def _pandas(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return arrow(header, rows).to_pandas(), {}


def _polars(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    import polars

    return polars.from_arrow(arrow(header, rows)), {}


def _relation(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    import duckdb

    return duckdb.connect().from_arrow(arrow(header, rows)), {}


def _polars_lazy(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return _polars(folder, header, rows)[0].lazy(), {}


def _gb18030(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    path, _ = _csv(folder, header, rows)
    path.write_bytes(path.read_bytes().decode().encode("gb18030"))
    return path, {"encoding": "gb18030"}


def _excel(folder: Path, header: Row, rows: Sequence[Row]) -> Source:
    return workbook(folder / "table.xlsx", held=[header, *rows]), {"sheet": "held"}


FILES = {
    "csv": _csv,
    "csv, gb18030": _gb18030,
    "excel": _excel,
    "csv, all quoted": _csv_all_quoted,
    "tsv": _tsv,
    "json lines": _json_lines,
    "json array": _json_array,
    "parquet": _parquet,
}
FRAMES = {"arrow": lambda _, header, rows: (arrow(header, rows), {}), "pandas": _pandas, "polars": _polars}
ENGINES = {
    "duckdb file": _duckdb_file,
    "duckdb relation": _relation,
    "polars, lazy": _polars_lazy,
}


def place(name: str, rows: Sequence[Row], number: int) -> str:
    """Where a refusal must say that a row (counted from 0) stands."""
    if name.startswith(("csv", "tsv")):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows[:number])
        return f"line {text.getvalue().count(chr(10)) + 2}"
    if name == "json lines":
        return f"line {number + 1}"
    if name == "excel":  # the number that Excel shows, the header being row 1
        return f"row {number + 2}"
    return f"object {number + 1}" if name == "json array" else f"row {number + 1}"
