"""Cells of a table: item names, voters' ids and numbers, each rule told in one sentence that names the row.

Columns of items arrive dictionary-encoded (or are encoded here), so that text is looked at once per *distinct* value
and the work per cell is an integer look-up. Without a list of items given by the caller, the items are those
that occur. Their order must not depend on any ranking (in order of first appearance it would *be* the
first voter's ranking), so new items are added in natural order of their names: `Course 2` before `Course 10`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import Any, Literal

import numpy as np

from rankdp.checks import is_whole, one_of
from rankdp.errors import InputError, RankdpError, Setting
from rankdp.lazy import LazyModule
from rankdp.types import Floats, Ints, Longs

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")

Where = Callable[[int], str]
"""Names the place of a row (counted from 0) in its source: `row 7`, or `votes.csv, line 8`."""

WhereIn = Callable[[int, int], str]
"""The same for a row of one of several files, which are numbered."""

Batch = tuple[int, int, Any]
"""(which file, the number of its first row in that file, an Arrow record batch)"""

ITEMS_KEY = b"rankdp.items"
"""Where a table of ours carries its list of items, in its metadata."""
FOUND_KEY = b"rankdp.items_from_data"
"""Set as well where that list was found in the rows and not given."""

Kind = Literal["text", "whole", "number", "other", "nested"]
"""What a column holds; "other" are bytes, dates and the like, "nested" lists and structures."""

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-"})
"""The spellings of a missing item. A file uses one; a name listed in `items=` is an item all the same."""

SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
"""What is trimmed around a cell, by every reader and on every engine: the white space of
Unicode, whose last character is U+3000."""
_BREAK = re.compile(r"[\r\n\x00\x0b\x0c\x85\u2028\u2029]")
_DIGITS = re.compile(r"(\d+)")
_MOST_DIGITS = 4000  # Python refuses to read a longer number


def row_number(row: int) -> str:
    """Rows are counted from 1, as a person counts them."""
    return f"row {row + 1}"


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def in_a_sentence(what: str, *libraries: str) -> Iterator[None]:
    """Turn what Arrow, DuckDB or one of `libraries` raises about the table called `what` into one sentence."""
    try:
        yield
    except (RankdpError, MemoryError):
        raise
    except Exception as error:
        modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        known = {"pyarrow", "duckdb", "_duckdb", *libraries} & modules
        if not known and not isinstance(error, (OSError, UnicodeDecodeError)):
            raise
        raise InputError(f"{what}: the table could not be read ({first_line(error)})") from None


def arrow_table(frame: Any) -> Any:
    """Anything that speaks the Arrow C stream protocol as a PyArrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if not hasattr(frame, "__arrow_c_stream__"):
        kinds = "pandas, Polars, DuckDB, PyArrow"
        raise InputError(f"frame must be an Arrow-compatible table ({kinds}), got {type(frame).__name__}")
    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"frame: Arrow cannot hold it ({first_line(error)})") from None


def declared_items(schema: Any) -> list[str] | None:
    """The list of items that a table of ours carries in its metadata."""
    text = (schema.metadata or {}).get(ITEMS_KEY)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def items_metadata(items: Sequence[str], from_data: bool) -> dict[bytes, bytes]:
    """What ``declared_items`` reads, and whether the list was found in the rows."""
    listed = {ITEMS_KEY: json.dumps(items, ensure_ascii=False).encode()}
    return {**listed, FOUND_KEY: b"true"} if from_data else listed


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key that puts `Course 2` before `Course 10`."""
    parts = filter(None, _DIGITS.split(name))
    # isdecimal, not isdigit: int() must accept what is taken for a number
    return tuple(
        (0, int(part), part) if part.isdecimal() and len(part) <= _MOST_DIGITS else (1, 0, part) for part in parts
    )


def check_items(items: Iterable[Any]) -> tuple[str, ...]:
    """The item names as a tuple: at least one, none blank, none twice, none that breaks a line."""
    if isinstance(items, str):
        raise InputError(f"items must be a list of names, got the single text {items!r}")
    names: dict[str, None] = {}
    for position, item in enumerate(items):
        if not isinstance(item, str) and not is_whole(item):
            raise InputError(f"an item must be a text or a whole number, got {item!r}")
        name = item if isinstance(item, str) else str(int(item))
        check_item(name, partial("items[{}]".format, position))
        if name in names:
            raise InputError(f"items must be different, got {name!r} twice")
        names[name] = None
    if not names:
        raise InputError("items must name at least one item, got an empty list")
    return tuple(names)


def check_item(name: str, what: Callable[[], str]) -> None:
    """One item name: not blank, no space at either end, no line break; `what` is called only to build the message."""
    if not name.strip():
        raise InputError(f"{what()} is blank; an item needs a name")
    if name != name.strip() or _BREAK.search(name):
        raise InputError(f"{what()} is {name!r}; an item's name has no space at its ends and no line break")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what()} is {name!r}, which is not valid Unicode text") from None


def check_epsilons(epsilons: Any, rows: int, where: Where = row_number) -> Floats:
    """Each voter's own epsilon: one finite number above 0 per row."""
    values = _one_each("epsilons", "numbers", epsilons, rows)
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{where(row)}: epsilon must be a finite number above 0, got {float(values[row])!r}")
    return values


def check_offsets(offsets: Any, rows: int, where: Where = row_number) -> Ints:
    """The public offset of each row: a whole number from 0 on."""
    values = _one_each("offsets", "whole numbers", offsets, rows)
    wrong = ~((values >= 0) & (values < 2**31) & (values == np.floor(values)))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{where(row)}: offset must be a whole number from 0 on, got {values[row]:g}")
    return values.astype(np.int32)


def _one_each(name: str, what: str, given: Any, rows: int) -> Floats:
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {what}, one for each row") from None
    if values.shape != (rows,):
        raise InputError(f"{name} must hold one number for each of the {rows} rows, got shape {values.shape}")
    return values


def check_voters(voters: Any, rows: int) -> Any:
    """Voters' ids, one for each row, none blank, texts without the spaces around them.

    Returns a read-only NumPy array, or the Arrow array that they came in; None stays None.
    """
    if voters is None:
        return None
    if type(voters).__module__.partition(".")[0] == "pyarrow":
        ids, count = arrow_ids(voters), len(voters)
    else:
        values = [voter.strip() if isinstance(voter, str) else voter for voter in voters]
        count = len(values)
        for row, voter in enumerate(values):
            if voter is None or (isinstance(voter, float) and voter != voter) or voter == "":
                raise _blank_id(row_number(row))
        fits = all(is_whole(voter) and -(2**63) <= int(voter) < 2**63 for voter in values)
        ids = np.fromiter(values, np.int64 if fits and count else object, count)
        ids.flags.writeable = False
    if count != rows:
        raise InputError(f"voters must hold one id for each of the {rows} rows, got {count}")
    return ids


def arrow_ids(column: Any, where: Where = row_number) -> Any:
    """A column of ids with no blank in it; texts come without the spaces around them."""
    column = decoded(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        cells = enumerate(column.to_pylist())
        texts = [None if cell is None else _text(cell, partial(where, row)) for row, cell in cells]
        column = pa.array(texts, pa.string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim(column, SPACES)
        blank = pc.fill_null(pc.equal(pc.binary_length(column), 0), True)
    else:
        blank = column.is_null(nan_is_null=True)
    if pc.any(blank).as_py():
        raise _blank_id(where(pc.index(blank, True).as_py()))
    return column


def _blank_id(at: str) -> InputError:
    return InputError(f"{at}: the voter id is blank")


def decoded(column: Any) -> Any:
    """An Arrow column without dictionaries and views, whose cells are the values themselves."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    kind = pa.string() if kind == pa.string_view() else pa.binary() if kind == pa.binary_view() else kind
    if pa.types.is_dictionary(column.type) and kind != column.type.value_type:  # views of Polars: no cast decodes them
        column = column.cast(pa.dictionary(column.type.index_type, kind))
    return column if kind == column.type else column.cast(kind)


def numbers(column: Any, what: str, where: Where) -> Floats:
    """A column of numbers as float64, NaN where blank; text is read exactly as Python reads it."""
    column = decoded(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    try:
        values = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array([_number(cell, what, where, row) for row, cell in enumerate(column.to_pylist())])
    return np.array(values.to_numpy(zero_copy_only=False))


def _number(cell: Any, what: str, where: Where, row: int) -> float:
    if cell is None or (isinstance(cell, str) and cell.strip() in MISSING):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise InputError(f"{where(row)}: {what} must be a number, got {cell!r}") from None


def epsilon_values(column: Any, where: Where) -> Floats:
    """Each voter's epsilon: finite and above 0 in every row."""
    values = numbers(column, "epsilon", where)
    blank = np.flatnonzero(np.isnan(values))
    if blank.size and column[int(blank[0])].as_py() in (None, *MISSING):
        raise InputError(f"{where(int(blank[0]))}: epsilon is blank; every voter needs one")
    return check_epsilons(values, len(values), where)


def offset_values(column: Any, where: Where) -> Ints:
    """The public offset of every row."""
    return check_offsets(numbers(column, "offset", where), len(column), where)


@dataclass(slots=True)
class Known:
    """The items met so far (indices never change) and the one spelling of missing met so far."""

    items: tuple[str, ...]
    closed: bool
    """True when the caller gave the list: then an item outside it is refused."""
    declared: bool
    """True when the list was given by the caller or by the file itself, so that its order is to be kept."""
    from_data: bool = False
    """True when an item was found in the rows, so that the list says something about them."""
    blank: str | None = None
    blank_at: Callable[[], str] = str
    _index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._index = {name: position for position, name in enumerate(self.items)}

    @classmethod
    def start(cls, items: Iterable[str] | None, hint: Sequence[str] | None = None, found: bool = False) -> Known:
        """Begin with the caller's list, else with the list that the file carries, else with nothing.

        ``found`` says that the file's list was found in rows when the file was written.
        """
        if items is not None:
            return cls(check_items(items), closed=True, declared=True)
        return cls(check_items(hint) if hint else (), closed=False, declared=bool(hint), from_data=found)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def position(self, name: str | None) -> int:
        """The index of an item, -1 for missing (and for a value that no row uses)."""
        return -1 if name is None else self._index.get(name, -1)

    def add(self, names: Iterable[str]) -> None:
        """Append new items in the natural order of their names."""
        new = sorted(set(names) - self._index.keys(), key=natural)
        self.from_data |= bool(new)
        self._index |= {name: position for position, name in enumerate(new, len(self.items))}
        self.items += tuple(new)

    def meet_blank(self, spelling: str, at: Callable[[], str]) -> None:
        """Note a missing cell; two spellings of missing in one table are refused, unless the caller lists the items."""
        if self.closed:
            return
        if self.blank is None:
            self.blank, self.blank_at = spelling, at
        elif self.blank != spelling:
            here, there = (repr(blank) if blank else "as a blank" for blank in (spelling, self.blank))
            raise InputError(
                f"{at()}: missing is spelled {here} here and {there} at {self.blank_at()}; "
                "one table spells it one way (or ",
                Setting("items"),
                " names the one that is an item)",
            )


@dataclass(frozen=True, slots=True)
class Coded:
    """One column: a code for each row (-1 for null) and what each code says."""

    codes: Ints
    values: list[Any]
    nulls: int

    def first_rows(self) -> Longs:
        """The first row that holds each code, -1 for a code that no row holds; the last entry is for null."""
        rows = np.full(len(self.values) + 1, -1, np.int64)
        # written from the last row to the first, so that the first one stays
        rows[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return rows


def encode(column: Any) -> Coded:
    """Dictionary-encode an Arrow array, keeping the encoding that it has."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_null(column.type):
        return Coded(np.full(len(column), -1, np.int32), [], len(column))
    if not pa.types.is_dictionary(column.type):
        column = decoded(column).dictionary_encode()
    codes = column.indices
    nulls = codes.null_count
    if codes.type != pa.int32():
        codes = codes.cast(pa.int32())
    if nulls:
        codes = codes.fill_null(-1)
    try:
        values = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        values = column.dictionary.cast(pa.binary()).to_pylist()
    return Coded(codes.to_numpy(zero_copy_only=not nulls), values, nulls)


def name_of(value: Any, known: Known, at: Callable[[], str]) -> str | None:
    """The item that a cell names: text without spaces around it, or a whole number; None if missing."""
    if isinstance(value, bytes):
        value = _text(value, at)
    if value is None or value != value:
        return None
    if not isinstance(value, str) and (not isinstance(value, (int, float)) or isinstance(value, bool) or value % 1):
        raise InputError(f"{at()}: an item must be a text or a whole number, got {value!r}")
    name = str(text_of(value))
    if name in MISSING and name not in known:
        return None
    if name not in known:
        check_item(name, lambda: f"{at()}: the item")
    return name


def _text(value: bytes, at: Callable[[], str]) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InputError(f"{at()}: {value!r} is not valid UTF-8 text") from None


def text_of(value: Any) -> str | None:
    """What a cell says, without spaces around it; whole numbers are written without a point, nothing is None."""
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return value.strip(SPACES)
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if abs(value) < 2**64 and value == int(value) else repr(float(value))


def id_text(voter: Any) -> str:
    """What a voter's id is compared by: text without spaces around it, and a whole number without a point."""
    if isinstance(voter, str):
        return voter.strip()
    if isinstance(voter, bool):
        return str(voter).lower()
    # an id in a column of floats, as frames make of integers with gaps, is the one that it was before
    is_number = isinstance(voter, (Real, Decimal)) and math.isfinite(voter)
    return str(int(voter)) if is_number and voter == int(voter) else str(voter).strip()


def understand(columns: Sequence[Coded], known: Known, where: Where) -> list[list[str | None]]:
    """Name every value of every column, adding the new items that some row uses and noting the blanks."""
    names: list[list[str | None]] = []
    new: list[tuple[int, str]] = []
    blanks: list[tuple[int, str]] = []
    for column in columns:
        strange = [not isinstance(value, str) or value not in known for value in column.values]
        rows = column.first_rows() if any(strange) or column.nulls else np.empty(0, np.int64)
        if column.nulls:
            blanks.append((int(rows[-1]), ""))
        meanings: list[str | None] = []
        for code, value in enumerate(column.values):
            if not strange[code]:
                meanings.append(value)
                continue
            row = int(rows[code])
            # a value that no row uses (a dictionary may hold more than its column) means nothing
            name = name_of(value, known, partial(where, row)) if row >= 0 else None
            meanings.append(name)
            if row >= 0 and name is None:
                blanks.append((row, text_of(value.decode() if isinstance(value, bytes) else value) or ""))
            elif name is not None and name not in known:
                new.append((row, name))
        names.append(meanings)
    for row, spelling in sorted(blanks):
        known.meet_blank(spelling, partial(where, row))
    if new and known.closed:
        row, name = min(new)
        near = next((item for item in known.items if folded(item) == folded(name)), None)
        meant = f"; {near!r} is" if near else ""
        raise InputError(f"{where(row)}: {name!r} is not one of the {len(known.items)} items given{meant}")
    new.sort()
    if new and not known.declared and (two := alike([*known.items, *(name for _, name in new)])):
        row = next(row for row, name in new if name == two[1])
        said = ", ".join(_stands(columns, names, name, where) for name in two)
        raise InputError(
            f"{where(row)}: {two[0]!r} and {two[1]!r} differ in capitals or spaces only, and would be two items: "
            f"{said}; spell them alike, or list both by ",
            Setting("items"),
        )
    known.add(name for _, name in new)
    return names


def folded(name: str) -> str:
    """A name without what people do not mean by it: capitals, spaces, ways to write a letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that differ in capitals or spaces only: one of them is a slip."""
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(folded(name), name)) != name:
            return other, name
    return None


def _stands(columns: Sequence[Coded], names: Sequence[list[str | None]], name: str, where: Where) -> str:
    """The first rows of a batch that list an item."""
    rows: set[int] = set()
    for column, meanings in zip(columns, names, strict=True):
        codes = [code for code, meaning in enumerate(meanings) if meaning == name]
        rows |= set(np.flatnonzero(np.isin(column.codes, codes)).tolist()) if codes else set()
    if not rows:
        return f"{name!r} in rows before"
    shown = ", ".join(where(row).rpartition(", ")[2] for row in sorted(rows)[:3])
    return f"{name!r} in {shown}{', …' * (len(rows) > 3)}"


def as_frame(table: Any, kind: str | None = None) -> Any:
    """An Arrow table as a frame of pandas, Polars or Arrow: the first that is installed, if ``kind`` is not given."""
    installed = [name for name in ("pandas", "polars", "arrow") if name == "arrow" or find_spec(name)]
    name = kind or installed[0]
    one_of("kind", name, installed)
    if name == "pandas":
        return table.to_pandas()
    return table if name == "arrow" else import_module("polars").from_arrow(table)
