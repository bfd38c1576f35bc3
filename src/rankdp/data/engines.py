"""Counting and bounding as Ibis expressions: one description, run by whatever engine holds the votes.

DuckDB inside the process by default, Spark by connection, and any other Ibis backend that has MD5 and window
functions. The same rules as in `counting`, row for row; what bounding keeps of a voter is the engine's own choice, with
the same properties (see `comparisons`). What comes back is one row per pair and outcome.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankdp.data.counts import PairCounts, pairs_of
from rankdp.data.sources import Frame, ParquetFiles, Table, check_rows, find_files
from rankdp.data.spark import is_spark
from rankdp.data.tables import MISSING, SPACES, Kind, in_a_sentence
from rankdp.data.vote_columns import (
    ELSEWHERE,
    FIRST,
    MARKED,
    NO_OUTCOME,
    PROBLEMS,
    SECOND,
    STRANGE_OUTCOME,
    TIE,
    UNMARKED,
    WHOLE,
    Diagnostics,
    VoteRules,
    content,
)
from rankdp.data.voter_loads import OVERLOAD, VoterLoads
from rankdp.errors import InputError, Setting, Unsupported

_LIBRARIES = ("ibis", "pyspark", "py4j", "sqlglot")


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


class Opened:
    """What is read from files, frames and tables of engines: a class with `read` and `_on`."""

    __slots__ = ()
    _called: ClassVar[str]
    read: Callable[..., Self]
    _on: Callable[..., Self]

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Open whatever holds the rows.

        Parameters
        ----------
        source
            What is open already (returned as it is), a path (`read`), an Ibis table, a Spark DataFrame or a connection
            (`from_table`), or a frame (`from_frame`).
        **options
            The options of the method that is called.
        """
        if isinstance(source, cls):
            if options:
                raise InputError(f"these {cls._called} are open already: {', '.join(options)} cannot be given again")
            return source
        if isinstance(source, (str, os.PathLike)):
            return cls.read(source, **options)
        held = type(source).__module__.partition(".")[0] == "ibis" or is_spark(source)
        return (cls.from_table if held or "table" in options else cls.from_frame)(source, **options)

    @classmethod
    def from_frame(cls, frame: Any, *, engine: Any = "auto", **reading: Any) -> Self:
        """Open a table in memory.

        Parameters
        ----------
        frame
            A pandas, Polars or PyArrow table, a DuckDB relation or any other Arrow-compatible frame.
        engine, **reading
            As for `read`.
        """
        return cls._on(Frame(frame) if engine in ("auto", "process") else _frame_on(frame, engine), **reading)

    @classmethod
    def from_table(cls, source: Any, table: str | None = None, **reading: Any) -> Self:
        """Open a table of a database, whose rows are counted there.

        Parameters
        ----------
        source
            An Ibis table expression, a Spark DataFrame, or an Ibis or DuckDB connection.
        table
            The name of the table, where `source` is a connection.
        **reading
            As for `read`.
        """
        return cls._on(open_table(source, table), **reading)


def held_file(path: str, table: str | None, engine: Any) -> Table | OnEngine:
    """What holds a file, or the files of a pattern: this process, or an engine if one is asked for or owns the file."""
    if path.endswith((".duckdb", ".ddb")) or table is not None:
        return _duckdb_file(path, table)
    return find_files(path) if engine in ("auto", "process") else _files_on(path, engine)


def _files_on(pattern: str, engine: Any) -> OnEngine:
    """Parquet files, read by an engine, or text files, read here and handed to it."""
    backend = _backend(engine)
    held = find_files(pattern)
    paths = [str(Path(path).resolve()) for path in held.paths]
    if isinstance(held, ParquetFiles):
        return OnEngine(_read_many(backend.read_parquet, paths, pattern), pattern, backend, held.rows)
    # no engine's own reader of text files keeps a row from changing how others are read
    names = list(held.kinds)
    with in_a_sentence(pattern):
        batches = [batch for stream in held.streams(names, plain=names) for _, _, batch in stream]
    table = pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in names]))
    return OnEngine(_ibis().memtable(table), pattern, backend, len(table))


def _read_many(read: Callable[[str], Any], paths: Sequence[str], what: str) -> Any:
    with in_a_sentence(what, *_LIBRARIES):
        first, *rest = (read(path) for path in paths)
    return first.union(*(table.select(first.columns) for table in rest)) if rest else first


def _frame_on(frame: Any, engine: Any) -> OnEngine:
    """A frame in memory, handed to an engine."""
    backend = _backend(engine)
    table = Frame(frame).whole()
    # engines take plain texts, and columns of nothing but blanks have no type that all of them know
    plain = [pa.field(field.name, _plain(field.type)) for field in table.schema]
    return OnEngine(_ibis().memtable(table.cast(pa.schema(plain))), "frame", backend, len(table))


def _plain(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if kind in (pa.null(), pa.large_string(), pa.string_view()) else kind


def _duckdb_file(path: str, table: str | None) -> OnEngine:
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
    """An Ibis table expression, a Spark DataFrame, or a table of an Ibis or DuckDB connection."""
    ibis = _ibis()
    if is_spark(source):
        source = _spark_table(source)
    if isinstance(source, ibis.expr.types.Table):
        if table is not None:
            raise InputError(f"table names a table of a connection; got {table!r} beside a table expression")
        return OnEngine(source, "table", source.get_backend())
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        source = ibis.duckdb.from_connection(source)
    if not hasattr(source, "to_pyarrow"):
        raise InputError(
            "source must be an Ibis or Spark table, or an Ibis or DuckDB connection with the name of a table, "
            f"got {type(source).__name__}"
        )
    return OnEngine(_table(source, table, source.name), f"{source.name}, {table}", source)


def _spark_table(frame: Any) -> Any:
    """A Spark DataFrame as an Ibis table, by a view of the session; its settings stay as they were."""
    settings = frame.sparkSession.conf
    before = {name: settings.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")}
    view = f"rankdp_{uuid4().hex}"
    with in_a_sentence("Spark table", *_LIBRARIES):
        backend = _ibis().pyspark.connect(frame.sparkSession)
        for name, value in before.items():
            settings.set(name, value)
        frame.createOrReplaceTempView(view)
        return backend.table(view)


def _table(backend: Any, table: str | None, what: str) -> Any:
    if table is None:
        raise InputError(f"{what}: ", Setting("table"), " must name the table that holds the votes")
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


def trimmed(text: Any) -> Any:
    """A text without the `SPACES` around it."""
    return text.re_replace(f"^[{SPACES}]+|[{SPACES}]+$", "")


def cell_text(column: Any) -> Any:
    """What a cell says, as `vote_columns.text_of` reads it: no spaces around, whole numbers without a point."""
    ibis = _ibis()
    dtype = column.type()
    if not dtype.is_floating() and not dtype.is_decimal():
        return trimmed(column.cast("string"))
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
    return text.isnull() | text.isin(sorted(MISSING - set(items)))


class OnEngine:
    """Votes that an Ibis backend holds."""

    def __init__(self, table: Any, what: str, backend: Any, announced: int | None = None) -> None:
        self.table, self.what, self._backend, self._announced = table, what, backend, announced
        self.kinds: Mapping[str, Kind] = {name: _kind(dtype) for name, dtype in table.schema().items()}

    def run(self, expression: Any) -> Any:
        """The result as an Arrow table; whatever an engine raises becomes one sentence."""
        with in_a_sentence(self.what, *_LIBRARIES):
            return self._backend.to_pyarrow(expression)

    def names(self, columns: Sequence[str]) -> set[str | None]:
        """Every text that occurs in these columns."""
        first, *rest = (self.table.select(name=cell_text(self.table[name])) for name in columns)
        return set(self.run((first.union(*rest) if rest else first).distinct())["name"].to_pylist())

    def rows(self, rules: VoteRules) -> Any:
        """Every row as what it says (`vote_columns.content`), weight, voter and problem, beside its own cells."""
        ibis, columns = _ibis(), rules.columns
        cells = {name: self.table[name] for name in rules.used}
        left, right = cell_text(self.table[columns.left]), cell_text(self.table[columns.right])
        parts = {"rd_left_name": left, "rd_right_name": right, "rd_outcome": _outcome(self.table, rules, left, right)}
        parts["rd_weight"] = weight_cells(self.table, columns.weight, rules.most_weight)
        if rules.per_voter is not None:
            voter = cell_text(self.table[columns.voter])
            parts["rd_voter"] = ibis.ifelse(_blank(voter), None, voter)
        if rules.category is not None:
            parts["rd_here"] = (cell_text(self.table[columns.category]) == rules.category).fill_null(False)
        rows = self.table.select(**cells, **parts)
        for side in ("left", "right"):
            public = ibis.memtable(_items_table(rules.items, side))
            rows = rows.left_join(public, rows[f"rd_{side}_name"] == public[f"rd_{side}_item"])
        left, right = (
            ibis.ifelse(
                _blank(rows[f"rd_{side}_name"], rules.items), -1, rows[f"rd_{side}"].fill_null(len(rules.items))
            )
            for side in ("left", "right")
        )
        rows = rows.mutate(rd_said=content(len(rules.items), left, right, rows.rd_outcome, ibis))
        rows = rows.mutate(rd_problem=_problem(rows, rules))
        return rows.mutate(rd_said=ibis.ifelse(rows.rd_problem == 0, rows.rd_said, None))

    def pairs(self, rules: VoteRules) -> Any:
        """One row per content and problem: how many rows, and how many comparisons. An Ibis expression."""
        rows = self.rows(rules)
        return rows.group_by(problem=rows.rd_problem, said=rows.rd_said).aggregate(
            rows=rows.count(), amount=_total(rows, rules)
        )

    def _said(self, rules: VoteRules) -> Any:
        """One row per voter and content: how many comparisons."""
        rows = self.rows(rules).filter(lambda rows: rows.rd_problem == 0)
        said = rows.group_by(voter=rows.rd_voter, said=rows.rd_said).aggregate(times=_total(rows, rules))
        return said.filter(said.times > 0)

    def bounded(self, rules: VoteRules) -> Any:
        """One row per content of the comparisons that are kept: how many. An Ibis expression."""
        ibis, said = _ibis(), self._said(rules)
        single = said.select("voter", "said", occurrence=ibis.range(1, said.times + 1).unnest())
        parts = [single[name].cast("string") for name in ("voter", "said", "occurrence")]
        hashed = single.mutate(hash=ibis.literal("|").join(parts).hexdigest("md5"))
        placed = hashed.mutate(place=ibis.row_number().over(group_by=hashed.voter, order_by=hashed.hash))
        kept = placed.filter(placed.place < rules.per_voter)
        return kept.group_by("said").aggregate(amount=kept.count())

    def loads(self, rules: VoteRules, spread: bool) -> VoterLoads:
        """The comparisons grouped by their voters' loads, as `InProcess.loads` does."""
        self._facts(rules, self.run(self.pairs(rules)))
        ibis, said, m = _ibis(), self._said(rules), len(rules.items)

        def added(numbers: Any) -> Any:
            return numbers.cast("float64").sum().cast("int64")

        if spread:
            ends = said.said % (m * m) // m, said.said % m
            first, second = (said.select("voter", "times", item=end.cast("int64")) for end in ends)
            both = first.union(second)
            each = both.group_by("voter", "item").aggregate(met=added(both.times))
            met = each.met.cast("float64")
            sums = each.group_by("voter").aggregate(sums=(met * met).sum())
            # as in voter_loads.squared_loads
            safe = ibis.ifelse(sums.sums < 2.0**53, sums.sums, sums.sums * (1 + 2.0**-12))
            loads = sums.select("voter", load=ibis.least(safe, float(OVERLOAD)).cast("int64"))
        else:
            loads = said.group_by("voter").aggregate(load=added(said.times))
        joined = said.join(loads, "voter")
        grouped = joined.group_by("load", "said").aggregate(amount=added(joined.times))
        load, contents, amount = _columns(self.run(grouped), "load", "said", "amount")
        winner, loser, tie = pairs_of(contents, m)
        levels, voters = _columns(self.run(loads.group_by("load").aggregate(voters=loads.count())), "load", "voters")
        return VoterLoads(rules.items, load, winner, loser, (2 - tie) * amount, tie * amount, levels, voters, spread)

    def count(self, rules: VoteRules) -> tuple[PairCounts, Diagnostics]:
        """The counts of all pairs."""
        counted = self.run(self.pairs(rules))
        facts = self._facts(rules, counted)
        if rules.per_voter is None:
            counted = counted.filter(pc.equal(counted["problem"].cast(pa.int64()), 0))
        else:
            counted = self.run(self.bounded(rules))
        return PairCounts._of_contents(rules.items, *_columns(counted, "said", "amount")), facts

    def _facts(self, rules: VoteRules, counted: Any) -> Diagnostics:
        """Refuse if a row is to be refused, with its cells as an example, or if rows are missing; else the problems."""
        problems = np.zeros(len(PROBLEMS), np.int64)
        np.add.at(problems, *_columns(counted, "problem", "rows"))
        for problem in rules.refused:
            if problems[problem]:
                rows = self.rows(rules)
                example = rows.filter(rows.rd_problem == problem).select(rules.used).limit(1)
                raise rules.refusal(problem, self.run(example).to_pylist()[0], self.what)
        rows = int(problems.sum())
        check_rows(self.what, self._announced, rows)
        return Diagnostics.of(problems.tolist(), rows)


def _total(rows: Any, rules: VoteRules) -> Any:
    """The comparisons of a group of rows. Sums go through float64, exact up to 2^53, since engines differ in what a
    sum of whole numbers is.
    """
    return rows.count() if rules.columns.weight is None else rows.rd_weight.cast("float64").sum().cast("int64")


def _items_table(items: Sequence[str], side: str) -> Any:
    numbers = pa.array(np.arange(len(items)), pa.int64())
    return pa.table([pa.array(items, pa.string()), numbers], [f"rd_{side}_item", f"rd_{side}"])


def _outcome(table: Any, rules: VoteRules, left: Any, right: Any) -> Any:
    ibis, columns = _ibis(), rules.columns
    style = columns.style
    if columns.marks:
        texts = [cell_text(table[name]) for name in columns.marks]
        said = [text.lower().isin(MARKED).fill_null(False) for text in texts]
        silent = [_blank(text, ()) | text.lower().isin(UNMARKED).fill_null(False) for text in texts]
        rows = [[said[at] if at == which else silent[at] for at in range(3)] for which in range(4)]
        cases = [
            (a & b & c, meaning) for (a, b, c), meaning in zip(rows, (FIRST, SECOND, TIE, NO_OUTCOME), strict=True)
        ]
        return ibis.cases(*cases, else_=STRANGE_OUTCOME)
    if columns.outcome is None:
        return ibis.literal(FIRST, "int8")
    column = table[columns.outcome]
    if style.numbers and _kind(column.type()) != "text":
        number = column.cast("float64")
        meanings = [(number == value, meaning) for value, meaning in ((1.0, FIRST), (0.0, SECOND), (0.5, TIE))]
        missing = number.isnull() | number.isnan()
        return ibis.cases((missing, NO_OUTCOME), *meanings, else_=STRANGE_OUTCOME)
    text = cell_text(column)
    spellings: dict[int, list[str]] = {}
    for word, meaning in rules.words.items():
        spellings.setdefault(meaning, []).append(word)
    cases = [(text.lower().isin(words), meaning) for meaning, words in spellings.items()]
    cases.append((_blank(text, rules.items if style.named else ()), NO_OUTCOME))
    if style.named:
        cases += [((text == left).fill_null(False), FIRST), ((text == right).fill_null(False), SECOND)]
    return ibis.cases(*cases, else_=STRANGE_OUTCOME)


def _weight(column: Any, most: int) -> Any:
    """A whole number from 0 to `most`, or -1."""
    ibis = _ibis()
    if _kind(column.type()) == "text":
        text = trimmed(column.cast("string"))
        column = ibis.ifelse(text.re_search(WHOLE), text, None)
    return _whole(column.cast("float64"), 0.0, float(most)).fill_null(-1)


def weight_cells(table: Any, column: str | None, most: int) -> Any:
    """Whole weights from 0 to `most`, -1 where a cell holds none; 1 where there is no such column."""
    return _ibis().literal(1, "int64") if column is None else _weight(table[column], most)


def _problem(rows: Any, rules: VoteRules) -> Any:
    """The number of the first problem of a row, in the order of `vote_columns.PROBLEMS`."""
    cases = [] if rules.category is None else [(~rows.rd_here, ELSEWHERE)]
    cases += [(rows.rd_said == -1, 1), (rows.rd_weight < 0, 2)]
    if rules.per_voter is not None:
        cases.append((rows.rd_voter.isnull(), 3))
    return _ibis().cases(*cases, (rows.rd_said < 0, -rows.rd_said), else_=0)


def _columns(result: Any, *names: str) -> Iterator[NDArray[np.int64]]:
    """Columns of a result as whole numbers."""
    for name in names:
        yield result[name].cast(pa.int64()).to_numpy()
