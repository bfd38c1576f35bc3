"""Excel workbooks (`.xlsx`), by calamine: one sheet is one table, its first row names the columns.

Cells become text without a guess at types: a text as it is, a whole number without a point (Excel keeps 3 as 3.0), any
other number as Python writes it, true and false in small letters, a date in ISO form. A blank row above others is
refused, since it could be a ballot that ranks nobody; blank rows at the end are no rows. A sheet is loaded whole, from
the first cell to the last row and column that any cell names; a workbook that unpacks to more than `LARGEST` bytes, or
has a sheet of more than `MOST_CELLS`, is refused before.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankdp.data.cells import first_line
from rankdp.data.formats.texts import TableFile, blank_above
from rankdp.errors import InputError, Setting
from rankdp.lazy import LazyModule

pa: Any = LazyModule("pyarrow")

LARGEST = 1 << 30
MOST_CELLS = 1 << 25
"""A million rows of 32 columns. One cell at XFD1048576 asks for 2^34."""
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]{0,3})([0-9]{1,7})["']""", re.IGNORECASE)
_BLOCK = 1 << 20


def open_sheet(path: str, sheet: str | None = None) -> ExcelFile:
    """One sheet of a workbook, its columns looked at; a workbook of one sheet needs no name."""
    rows = _rows(path, sheet)
    header = [_text(cell) or "" for cell in next(rows, (0, []))[1]]
    while header and not header[-1]:
        header.pop()
    if not any(header):
        raise InputError(f"{path}, row 1: the header is blank; the first row names the columns")
    return ExcelFile(path, header, sheet)


def _rows(path: str, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    """The number, counted from 1, and the cells of every row of a sheet."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(member.file_size for member in packed.infolist())
            if size > LARGEST:
                raise InputError(
                    f"{path}: the workbook unpacks to {size >> 20:,} MB, at most {LARGEST >> 20:,} are read"
                )
            for name in packed.namelist():
                if (cells := _span(packed, name)) > MOST_CELLS:  # a sheet may have any name
                    raise InputError(f"{path}: a sheet may have at most {MOST_CELLS:,} cells, got {cells:,} in {name}")
        with CalamineWorkbook.from_path(path) as book:
            names = book.sheet_names
            if sheet is None and len(names) != 1:
                raise InputError(f"{path}: ", Setting("sheet"), f" must say which sheet is meant: {', '.join(names)}")
            if sheet is not None and sheet not in names:
                raise InputError(f"{path}: ", Setting("sheet"), f" is {sheet!r}, but the sheets are {', '.join(names)}")
            found = book.get_sheet_by_name(sheet or names[0])
            yield from enumerate(found.to_python(skip_empty_area=False), 1)
    except (CalamineError, zipfile.BadZipFile, UnicodeError) as error:
        raise InputError(f"{path}: this is not a whole Excel workbook ({first_line(error)})") from None


def _span(packed: zipfile.ZipFile, name: str) -> int:
    """How many cells a sheet spans, by the places that its cells and rows name."""
    rows = columns = 1
    with packed.open(name) as file:
        before = b""
        while block := file.read(_BLOCK):
            for letters, number in _PLACE.findall(before + block):
                rows, column = max(rows, int(number)), 0
                for letter in letters.upper():
                    column = 26 * column + letter - 64
                columns = max(columns, column)
            before = block[-64:]
    return rows * columns


def _text(cell: Any) -> str | None:
    """What a cell says; None for nothing."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell == cell // 1 and abs(cell) < 2**53:
        return str(int(cell))
    text = cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
    return text.strip() or None


@dataclass(frozen=True)
class ExcelFile(TableFile):
    """A sheet as a table of texts."""

    sheet: str | None
    """Its name, needed if there are several."""

    def batches(
        self, columns: Sequence[str], plain: Sequence[str] = (), batch_rows: int | None = None
    ) -> Generator[Any, None, None]:
        """The sheet as one record batch of columns of text."""
        cells, at = [row for _, row in self._cells()], [self.names.index(name) for name in columns]
        texts = [pa.array([row[place] for row in cells], pa.string()) for place in at]
        yield pa.RecordBatch.from_arrays(texts, list(columns))

    def _cells(self) -> Iterator[tuple[int, list[str | None]]]:
        """The number and the texts of every row below the header; the last one says something."""
        width, blank = len(self.names), 0
        for number, row in _rows(self.path, self.sheet):
            texts = [_text(cell) for cell in row]
            if number == 1:
                continue
            if not any(texts):
                blank = blank or number
                continue
            if blank:
                raise blank_above(self.path, "row", blank)
            if any(texts[width:]):
                raise InputError(f"{self.path}, row {number}: a cell is in a column that the header does not name")
            yield number, texts[:width] + [None] * (width - len(texts))

    def where(self, row: int) -> str:
        """The place of a row: the file and the number that Excel shows."""
        numbers = (number for number, _ in self._cells())
        return f"{self.path}, row {next((number for at, number in enumerate(numbers) if at == row), row + 2)}"
