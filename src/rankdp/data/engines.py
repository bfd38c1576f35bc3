"""Counting and bounding as Ibis expressions: one description, run by whatever engine holds the votes.

DuckDB inside the process by default, Spark by connection, and any other Ibis backend that has MD5 and window
functions. The same rules as in `counting`, row for row, and the same choice of a voter's comparisons (see
`comparisons`), so that the results are equal. What comes back is one row per pair and outcome; it is put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdp.data.comparisons import (
    BLANKS,
    BOTH_BAD,
    FIRST,
    LEFT_OUT,
    NO_OUTCOME,
    PROBLEMS,
    SECOND,
    STRANGE_OUTCOME,
    TIE,
    WHOLE,
    Comparisons,
    Diagnostics,
    Kind,
    LongArray,
    VoteColumns,
    diagnose,
    item_keys,
    refusal,
    refused,
    weight_limit,
)
from rankdp.errors import InputError, Unsupported

if TYPE_CHECKING:
    from rankdp.data.counts import PairCounts


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise Unsupported(
            "counting on an engine needs Ibis, which is not installed: install 'rankdp[engines]', "
            "or read files and frames in process"
        ) from None
    return ibis


def _backend(engine: Any) -> Any:
    """An Ibis backend: DuckDB in this process by name, or the connection given."""
    ibis = _ibis()
    if isinstance(engine, str):
        if engine != "duckdb":
            raise InputError(f"engine must be 'auto', 'process', 'duckdb' or an Ibis backend, got {engine!r}")
        try:
            return ibis.duckdb.connect()
        except ImportError:
            raise Unsupported(
                "engine 'duckdb' needs DuckDB, which is not installed: install 'rankdp[engines]'"
            ) from None
    if not hasattr(engine, "to_pyarrow"):
        raise InputError(f"engine must be 'auto', 'process', 'duckdb' or an Ibis backend, got {type(engine).__name__}")
    return engine


def files_on(pattern: str, engine: Any) -> OnEngine:
    """CSV or Parquet files, read by an engine; every cell of a CSV file as text."""
    from rankdp.data.vote_tables import ParquetFiles, find_files

    backend = _backend(engine)
    held = find_files(pattern)
    paths = [str(Path(path).resolve()) for path in held.paths]
    if isinstance(held, ParquetFiles):
        return OnEngine(_read_many(backend.read_parquet, paths), pattern, backend)
    options = {
        "duckdb": {"all_varchar": True, "delim": held.separator, "header": True},
        "pyspark": {"header": True, "inferSchema": False, "sep": held.separator},
    }.get(backend.name, {})
    return OnEngine(_read_many(lambda path: backend.read_csv(path, **options), paths), pattern, backend)


def _read_many(read: Callable[[str], Any], paths: Sequence[str]) -> Any:
    first, *rest = (read(path) for path in paths)
    return first.union(*(table.select(first.columns) for table in rest)) if rest else first


def frame_on(frame: Any, engine: Any) -> OnEngine:
    """A frame in memory, handed to an engine."""
    import pyarrow as pa

    from rankdp.data.vote_tables import Frame

    backend = _backend(engine)
    table = Frame(frame).whole()
    # engines take plain texts, and columns of nothing but blanks have no type that all of them know
    plain = [pa.field(field.name, _plain(field.type)) for field in table.schema]
    return OnEngine(_ibis().memtable(table.cast(pa.schema(plain))), "frame", backend)


def _plain(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if kind in (pa.null(), pa.large_string(), pa.string_view()) else kind


def duckdb_file(path: str, table: str | None) -> OnEngine:
    """A table of a DuckDB file, opened for reading only."""
    ibis = _ibis()
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        backend = ibis.duckdb.connect(path, read_only=True)
    except ImportError:
        raise Unsupported(f"{path}: reading it needs DuckDB, which is not installed") from None
    except Exception as error:
        raise InputError(f"{path}: DuckDB cannot open it ({str(error).splitlines()[0]})") from None
    return OnEngine(_table(backend, table, path), f"{path}, {table}", backend)


def open_table(source: Any, table: str | None) -> OnEngine:
    """An Ibis table expression, or a table of an Ibis or DuckDB connection."""
    ibis = _ibis()
    if isinstance(source, ibis.expr.types.Table):
        if table is not None:
            raise InputError(f"table names a table of a connection; got {table!r} beside a table expression")
        return OnEngine(source, "table", source.get_backend())
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        source = ibis.duckdb.from_connection(source)
    if not hasattr(source, "to_pyarrow"):
        raise InputError(
            f"source must be an Ibis table, or an Ibis or DuckDB connection with table=, got {type(source).__name__}"
        )
    return OnEngine(_table(source, table, source.name), f"{source.name}, {table}", source)


def _table(backend: Any, table: str | None, what: str) -> Any:
    if table is None:
        raise InputError(f"{what}: table must name the table that holds the votes, got None")
    try:
        return backend.table(table)
    except _ibis().common.exceptions.TableNotFound:
        raise InputError(f"{what}: there is no table called {table!r}") from None


def _kind(dtype: Any) -> Kind:
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric() or dtype.is_boolean():
        return "number"
    return "text" if dtype.is_string() or dtype.is_uuid() or dtype.is_null() else "other"


def cell_text(column: Any) -> Any:
    """What a cell says, as `comparisons.text_of` reads it: no spaces around, whole numbers without a point."""
    ibis = _ibis()
    dtype = column.type()
    if not dtype.is_floating() and not dtype.is_decimal():
        return column.cast("string").strip()
    number = column.cast("float64")
    number = ibis.ifelse(number.isnan(), ibis.null("float64"), number)
    whole = _whole(number, -(2.0**63), 2.0**63 - 1024)
    return ibis.ifelse(whole.isnull(), number.cast("string"), whole.cast("string"))


def _whole(number: Any, least: float, most: float) -> Any:
    """A float64 as a whole number from `least` to `most`, else null: engines stop at a NaN in a cast."""
    ibis = _ibis()
    inside = ((number >= least) & (number <= most) & ~number.isnan()).fill_null(False)
    safe = ibis.ifelse(inside, number, 0.5)
    whole = safe == safe.floor()
    return ibis.ifelse(whole, ibis.ifelse(whole, safe, 0.0).cast("int64"), ibis.null("int64"))


def _blank(text: Any, items: Sequence[str] = ()) -> Any:
    return text.isnull() | text.isin([blank for blank in BLANKS if blank not in items])


class OnEngine:
    """Votes that an Ibis backend holds."""

    def __init__(self, table: Any, what: str, backend: Any) -> None:
        self.table, self.what, self._backend = table, what, backend
        self.kinds: Mapping[str, Kind] = {name: _kind(dtype) for name, dtype in table.schema().items()}

    def _run(self, expression: Any) -> Any:
        return self._backend.to_pyarrow(expression)

    def names(self, columns: VoteColumns) -> set[str]:
        """Every item that occurs."""
        parts = [self.table.select(name=cell_text(self.table[name])) for name in (columns.left, columns.right)]
        found = self._run(parts[0].union(parts[1]).distinct())["name"].to_pylist()
        return {name for name in found if name is not None}

    def rows(self, votes: Comparisons) -> Any:
        """Every row as left, right (numbers and keys), outcome, weight, voter and problem, beside its own cells."""
        ibis, columns, items = _ibis(), votes.columns, votes.items
        cells = {name: self.table[name] for name in self._used(votes)}
        left, right = cell_text(self.table[columns.left]), cell_text(self.table[columns.right])
        parts = {"rd_left_name": left, "rd_right_name": right, "rd_outcome": _outcome(self.table, votes, left, right)}
        if columns.weight is None:
            parts["rd_weight"] = ibis.literal(1, "int64")
        else:
            parts["rd_weight"] = _weight(self.table[columns.weight], weight_limit(votes))
        if votes.per_voter is not None:
            parts["rd_voter"] = _voter(self.table[columns.voter])
        rows = self.table.select(**cells, **parts)
        for side in ("left", "right"):
            public = ibis.memtable(_items_table(items, side))
            rows = rows.left_join(public, rows[f"rd_{side}_name"] == public[f"rd_{side}_item"])
        return rows.mutate(rd_problem=_problem(rows, votes))

    def _used(self, votes: Comparisons) -> list[str]:
        columns = votes.columns
        voter = columns.voter if votes.per_voter is not None else None
        names = (columns.left, columns.right, columns.outcome, columns.weight, voter)
        return [name for name in names if name is not None]

    def pairs(self, votes: Comparisons) -> Any:
        """One row per pair, outcome and problem: how many rows, and the sum of their weights. An Ibis expression."""
        rows = self.rows(votes)
        return rows.group_by(
            problem=rows.rd_problem,
            left=_ok(rows, rows.rd_left),
            right=_ok(rows, rows.rd_right),
            outcome=_ok(rows, rows.rd_outcome),
        ).aggregate(rows=rows.count(), amount=_total(rows, votes))

    def wins(self, votes: Comparisons) -> Any:
        """One row per item and problem: half-wins, and how many rows name the item on the left. An Ibis expression."""
        ibis, rows = _ibis(), self.rows(votes)
        sides = []
        for side, won in (("left", FIRST), ("right", SECOND)):
            halves = ibis.cases((rows.rd_outcome == won, 2), (rows.rd_outcome == TIE, 1), else_=0)
            counted = rows.count() if side == "left" else ibis.literal(0, "int64")
            sides.append(
                rows.group_by(problem=rows.rd_problem, item=_ok(rows, rows[f"rd_{side}"])).aggregate(
                    halves=_ok(rows, halves * rows.rd_weight).sum().cast("int64"), rows=counted
                )
            )
        return sides[0].union(sides[1])

    def problems(self, votes: Comparisons) -> Any:
        """One row per problem: how many rows have it. An Ibis expression."""
        rows = self.rows(votes)
        return rows.group_by(problem=rows.rd_problem).aggregate(rows=rows.count())

    def bounded(self, votes: Comparisons) -> Any:
        """One row per pair and outcome, by key, of the comparisons that are kept: how many. An Ibis expression."""
        ibis = _ibis()
        rows = self.rows(votes).filter(lambda rows: rows.rd_problem == 0)
        won = ibis.cases(
            (rows.rd_outcome == FIRST, rows.rd_left_key + ">" + rows.rd_right_key),
            (rows.rd_outcome == SECOND, rows.rd_right_key + ">" + rows.rd_left_key),
            (rows.rd_left_key < rows.rd_right_key, rows.rd_left_key + "=" + rows.rd_right_key),
            else_=rows.rd_right_key + "=" + rows.rd_left_key,
        )
        said = rows.group_by(voter=rows.rd_voter, pair=won).aggregate(times=_total(rows, votes))
        said = said.filter(said.times > 0)
        single = said.select("voter", "pair", occurrence=ibis.range(1, said.times + 1).unnest())
        text = single.voter + "|" + single.pair + "|" + single.occurrence.cast("string")
        ordered = single.mutate(digest=text.hexdigest("md5"))
        place = ibis.row_number().over(group_by=ordered.voter, order_by=ordered.digest)
        placed = ordered.mutate(place=place)
        kept = placed.filter(placed.place < votes.per_voter)
        return kept.group_by("pair").aggregate(amount=kept.count())

    def count(self, votes: Comparisons) -> tuple[PairCounts, Diagnostics]:
        """The counts of all pairs."""
        if votes.per_voter is not None:
            facts = self._facts(votes, self._run(self.problems(votes)))
            return _from_keys(votes, self._run(self.bounded(votes))), facts
        result = self._run(self.pairs(votes))
        facts = self._facts(votes, result)
        good = _columns(result, "left", "right", "outcome", "amount", where=("problem", 0))
        return _assemble(votes, *good), facts

    def half_wins(self, votes: Comparisons) -> tuple[LongArray, Diagnostics]:
        """Each item's half-wins."""
        if votes.per_voter is not None:
            counts, facts = self.count(votes)
            return counts.half_wins, facts
        result = self._run(self.wins(votes))
        facts = self._facts(votes, result)
        wins = np.zeros(len(votes.items), np.int64)
        np.add.at(wins, *_columns(result, "item", "halves", where=("problem", 0)))
        return wins, facts

    def _facts(self, votes: Comparisons, result: Any) -> Diagnostics:
        """Refuse if a row is to be refused, with its cells as an example; else the counts of problems."""
        problems = np.zeros(len(PROBLEMS), np.int64)
        np.add.at(problems, *_columns(result, "problem", "rows"))
        rows = int(problems.sum())
        problems[0] = 0
        for problem in refused(votes):
            if problems[problem]:
                found = self.rows(votes)
                found = found.filter(found.rd_problem == problem).select(self._used(votes)).limit(1)
                raise refusal(votes, problem, self._run(found).to_pylist()[0], self.what)
        return diagnose(problems.tolist(), rows)


def _total(rows: Any, votes: Comparisons) -> Any:
    """The comparisons of a group of rows. Sums go through float64, exact up to 2^53, since engines differ in what a
    sum of whole numbers is.
    """
    return rows.count() if votes.columns.weight is None else rows.rd_weight.cast("float64").sum().cast("int64")


def _ok(rows: Any, value: Any) -> Any:
    """A value where the row has no problem, else null: so that rows with a problem fall into one group each."""
    return _ibis().ifelse(rows.rd_problem == 0, value, None)


def _items_table(items: Sequence[str], side: str) -> Any:
    import pyarrow as pa

    numbers = pa.array(np.arange(len(items)), pa.int64())
    names = pa.array(items, pa.string())
    return pa.table([names, numbers, pa.array(item_keys(items))], [f"rd_{side}_item", f"rd_{side}", f"rd_{side}_key"])


def _outcome(table: Any, votes: Comparisons, left: Any, right: Any) -> Any:
    ibis, columns = _ibis(), votes.columns
    style = columns.style
    if columns.outcome is None:
        return ibis.literal(FIRST, "int8")
    column = table[columns.outcome]
    if style.numbers and _kind(column.type()) != "text":
        number = column.cast("float64")
        meanings = [(number == value, meaning) for value, meaning in ((1.0, FIRST), (0.0, SECOND), (0.5, TIE))]
        missing = number.isnull() | number.isnan()
        return ibis.cases((missing, NO_OUTCOME), *meanings, else_=STRANGE_OUTCOME)
    text = cell_text(column)
    word = text.lower()
    bad = TIE if votes.both_bad == "tie" else LEFT_OUT
    by_meaning: dict[int, list[str]] = {}
    for spelling, meaning in style.words.items():
        by_meaning.setdefault(bad if meaning == LEFT_OUT else meaning, []).append(spelling)
    cases = [(word.isin(spellings), meaning) for meaning, spellings in by_meaning.items()]
    cases.append((_blank(text, votes.items if style.named else ()), NO_OUTCOME))
    if style.named:
        cases += [((text == left).fill_null(False), FIRST), ((text == right).fill_null(False), SECOND)]
    return ibis.cases(*cases, else_=STRANGE_OUTCOME)


def _weight(column: Any, most: int) -> Any:
    """A whole number from 0 to `most`, or -1."""
    ibis = _ibis()
    if _kind(column.type()) == "text":
        text = column.cast("string").strip()
        column = ibis.ifelse(text.re_search(WHOLE), text, None)
    return _whole(column.cast("float64"), 0.0, float(most)).fill_null(-1)


def _voter(column: Any) -> Any:
    """The voter's id as text, null if it is blank."""
    ibis = _ibis()
    text = cell_text(column)
    raw = column.cast("string") if column.type().is_string() else text
    return ibis.ifelse(_blank(text), None, raw)


def _problem(rows: Any, votes: Comparisons) -> Any:
    """The number of the first problem of a row, in the order of `comparisons.PROBLEMS`."""
    ibis = _ibis()
    names = rows.rd_left_name, rows.rd_right_name
    cases = [(rows.rd_outcome == STRANGE_OUTCOME, 1), (rows.rd_weight < 0, 2)]
    if votes.per_voter is not None:
        cases.append((rows.rd_voter.isnull(), 3))
    cases += [
        (_blank(names[0], votes.items) | _blank(names[1], votes.items), 4),
        (rows.rd_left.isnull() | rows.rd_right.isnull(), 5),
        (rows.rd_outcome == NO_OUTCOME, 6),
        (rows.rd_left == rows.rd_right, 7),
        (rows.rd_outcome == LEFT_OUT, BOTH_BAD),
    ]
    return ibis.cases(*cases, else_=0)


def _columns(result: Any, *names: str, where: tuple[str, int] | None = None) -> Iterator[LongArray]:
    """Columns of a result as whole numbers, of all rows or of those where a column has a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if where is not None:
        result = result.filter(pc.equal(result[where[0]].cast(pa.int64()), where[1]))
    for name in names:
        yield result[name].cast(pa.int64()).to_numpy()


def _assemble(
    votes: Comparisons, left: LongArray, right: LongArray, outcome: LongArray, amount: LongArray
) -> PairCounts:
    from rankdp.data.counts import PairCounts

    ahead = np.choose(outcome, (2, 0, 1)) * amount
    return PairCounts.from_pairs(left, right, ahead, 2 * amount - ahead, items=votes.items)


def _from_keys(votes: Comparisons, result: Any) -> PairCounts:
    """Pair counts from pairs written by key."""
    number = {key: place for place, key in enumerate(item_keys(votes.items))}
    digits = len(next(iter(number)))
    pairs = result["pair"].to_pylist()
    left = np.array([number[pair[:digits]] for pair in pairs], np.int64)
    right = np.array([number[pair[digits + 1 :]] for pair in pairs], np.int64)
    outcome = np.array([TIE if pair[digits] == "=" else FIRST for pair in pairs], np.int64)
    return _assemble(votes, left, right, outcome, *_columns(result, "amount"))
