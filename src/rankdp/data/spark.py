"""Rankings in a Spark DataFrame, read where its rows are: by its tasks, as batches of ``Rankings``.

Two ways to use them. ``each_task`` brings to the driver what every task makes of its rows, which is small; ``mapped``
is a DataFrame of other rankings. The table itself never comes to the driver. rankdp must be installed on the workers.

A table with one row per voter and item is first grouped by voter, so that one task has all rows of a voter. The task
holds the rows of its partition in memory while it reads them.

A DataFrame is a recipe: every action on ``mapped`` runs it again, with fresh random bits where it draws any. Whoever
draws from secret rows keeps the result in a ``new_directory`` and hands out nothing else.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from rankdp.data.atomic import SIDECAR
from rankdp.data.cells import Known, arrow_ids, decoded, in_a_sentence
from rankdp.data.columns import Columns, recognise
from rankdp.data.frames import OFFSET, arrow_batch, long_rankings, row_batches
from rankdp.data.rankings import Rankings
from rankdp.data.tables import numbered
from rankdp.errors import InputError, RankdpError, Setting
from rankdp.lazy import LazyModule

pa: Any = LazyModule("pyarrow")

_WHAT = "Spark table"

T = TypeVar("T")


def is_spark(source: Any) -> bool:
    """Whether this is a Spark DataFrame."""
    return type(source).__module__.partition(".")[0] == "pyspark" and hasattr(source, "mapInArrow")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn what Spark raises into one sentence; of a task that failed, the last line of its traceback."""
    try:
        with in_a_sentence(what, "py4j"):
            yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyspark":
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        said = lines[-1] if type(error).__name__ == "PythonException" else lines[0]
        raise InputError(f"{what}: Spark stopped ({said})") from None


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True)
class SparkRankings:
    """A Spark DataFrame with a row per ranking, or per voter and item, and what its columns mean."""

    frame: Any
    columns: Columns
    width: int
    """How many places a ranking has at most."""

    @classmethod
    def of(cls, frame: Any, offset_column: str | None = None) -> Self:
        """Recognise the columns, as for frames in memory."""
        public = offset_column if offset_column in frame.columns else None
        columns = recognise(frame.columns, _WHAT, offset_column=public)
        used = frame.select([_quoted(name) for name in columns.used])
        if columns.layout != "long":
            return cls(used, columns, len(columns.ranks))
        from pyspark.sql import functions

        # one task for a voter; ids that differ in spaces only may go to two, which `most_rows` finds
        voter = functions.trim(used[_quoted(str(columns.voter))].cast("string"))
        with _told(_WHAT):
            items = used.select(_quoted(columns.ranks[0])).distinct().count()
        return cls(used.repartition(voter), columns, items)

    def each_task(self, work: Callable[[Iterator[Rankings], Known], T], items: Sequence[str] | None = None) -> list[T]:
        """What ``work`` makes of the batches of each task and of the items that it met; a refusal is raised here."""
        found = self.frame.mapInArrow(partial(_worked, work, self.columns, items), "found binary")
        with _told(_WHAT):
            results = [pickle.loads(row["found"]) for row in found.collect()]
        for result in results:
            if isinstance(result, RankdpError):
                raise result
        return results

    def mapped(self, change: Callable[[Rankings], Rankings], items: Sequence[str], offsets: bool) -> Any:
        """A DataFrame of the rankings that ``change`` makes of each batch, drawn again by every action on it."""
        from pyspark.sql.types import IntegerType, IntegralType, StringType, StructType

        schema, voter = StructType(), self.columns.voter
        if voter is not None:
            kind = self.frame.schema[voter].dataType
            schema.add(voter, kind if isinstance(kind, IntegralType) else StringType())
        for rank in range(self.width):
            schema.add(f"rank_{rank + 1}", StringType())
        if offsets:
            schema.add(OFFSET, IntegerType())
        work = partial(_changed, change, self.columns, items, schema.names, self.width)
        return self.frame.mapInArrow(work, schema)

    def most_rows(self) -> tuple[int, Any]:
        """The largest number of rankings of one voter, counted by Spark, and the voter; (1, None) without ids."""
        if self.columns.voter is None:
            return 1, None
        from pyspark.sql import functions

        if self.columns.layout == "long":
            counted = self.frame.mapInArrow(partial(_voters, self.columns), "voter string")
        else:
            counted = self.frame.select(self.frame[_quoted(self.columns.voter)]).mapInArrow(_ids, "voter string")
        with _told(_WHAT):
            grouped = counted.groupBy("voter").agg(functions.count("*").alias("rows"))
            (most,) = grouped.agg(functions.max(functions.struct("rows", "voter")).alias("most")).first()
        return (1, None) if most is None else (int(most["rows"]), most["voter"])


@contextmanager
def new_directory(frame: Any, target: str) -> Iterator[Directory]:
    """A new directory on a file system that the session of a DataFrame reaches; if anything fails, it is removed."""
    session, sidecar = frame.sparkSession, target.rstrip("/") + SIDECAR
    act = partial(_by_driver if hasattr(session, "_jsparkSession") else _by_task, session)
    with _told(target):
        if act("exists", target) or act("exists", sidecar):
            raise InputError(f"{target}: there is something of this name already; ", Setting("target"), " must be new")
        if not act("make", target):
            raise InputError(f"{target}: the directory could not be made")
    try:
        yield Directory(session, target, sidecar, act)
    except BaseException:
        for made in (target, sidecar):
            act("remove", made)
        raise


def _by_driver(session: Any, action: str, place: str, content: bytes = b"") -> bool:
    """Act on a file by the Hadoop of a session in this process, which has the credentials of its file systems."""
    path = session._jvm.org.apache.hadoop.fs.Path(place)
    files = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    if action == "write":
        stream = files.create(path)
        stream.write(bytearray(content))
        stream.close()
        return True
    acts = {"exists": (files.exists, ()), "make": (files.mkdirs, ()), "remove": (files.delete, (True,))}
    act, more = acts[action]
    return bool(act(path, *more))


def _by_task(session: Any, action: str, place: str, content: bytes = b"") -> bool:
    """The same by a task of one row, where the session is in another process: Spark Connect's client sees no disk."""
    task = session.range(1, numPartitions=1).mapInArrow(partial(_act, action, place, content), "done boolean")
    return all(row["done"] for row in task.collect())


def _act(action: str, place: str, content: bytes, arrow: Iterable[Any]) -> Iterator[Any]:
    """What a task does with a file or directory."""
    from pyarrow.fs import FileSystem, FileType, LocalFileSystem

    for batch in arrow:
        if not batch.num_rows:
            continue
        files, path = FileSystem.from_uri(place) if ":" in place else (LocalFileSystem(), place)
        kind = files.get_file_info(path).type
        if action == "make":
            files.create_dir(path)
        elif action == "write":
            with files.open_output_stream(path) as stream:
                stream.write(content)
        elif action == "remove" and kind != FileType.NotFound:
            (files.delete_dir if kind == FileType.Directory else files.delete_file)(path)
        yield pa.RecordBatch.from_pydict({"done": [action != "exists" or kind != FileType.NotFound]})


@dataclass(frozen=True, slots=True)
class Directory:
    """A new directory of Parquet files, with its sidecar."""

    session: Any
    target: str
    sidecar: str
    act: Callable[..., bool]
    """Acts on files where the session is."""

    def keep(self, frame: Any) -> Any:
        """The rows of a DataFrame, computed once and for all: what is returned reads the files written here.

        If a task runs twice (a retry, speculation), Spark commits one attempt and removes the files of the other.
        Neither ``persist`` nor a local checkpoint would do: the first computes lost rows again, and the second may
        keep the rows of both attempts.
        """
        with _told(self.target):
            frame.write.mode("append").parquet(self.target)
            return self.session.read.schema(frame.schema).parquet(self.target)

    def promise(self, facts: Mapping[str, Any]) -> None:
        """Write TARGET.release.json."""
        with _told(self.target):
            self.act("write", self.sidecar, json.dumps(facts, indent=2).encode())


def _batches(arrow: Iterable[Any], columns: Columns, known: Known) -> Iterator[Rankings]:
    """The rankings of one task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    said = f"{_WHAT}, partition {number}, row {{}}"

    def where(_: int, row: int) -> str:
        return said.format(row + 1)

    if columns.layout != "long":
        return row_batches(numbered(arrow), columns, known, _WHAT, where, "refuse")
    held = [batch for batch in arrow if batch.num_rows]
    return iter([long_rankings(numbered(iter(held)), columns, known, _WHAT, where, "refuse")] if held else [])


def _worked(
    work: Callable[[Iterator[Rankings], Known], Any], columns: Columns, items: Any, arrow: Iterator[Any]
) -> Iterator[Any]:
    known = Known.start(items, columns.items)
    try:
        found = work(_batches(arrow, columns, known), known)
    except RankdpError as refusal:  # returned, since Spark would try a task that raises again
        found = refusal
    yield pa.RecordBatch.from_pydict({"found": pa.array([pickle.dumps(found)], pa.binary())})


def _changed(
    change: Callable[[Rankings], Rankings],
    columns: Columns,
    items: Any,
    names: Sequence[str],
    width: int,
    arrow: Iterator[Any],
) -> Iterator[Any]:
    for batch in _batches(arrow, columns, Known.start(items)):
        cells = [decoded(column) for column in arrow_batch(change(batch), width).columns]
        plain = [cell if pa.types.is_integer(cell.type) else cell.cast(pa.string()) for cell in cells]
        yield pa.RecordBatch.from_arrays(plain, list(names))


def _voters(columns: Columns, arrow: Iterator[Any]) -> Iterator[Any]:
    """The voter of every ranking of a long table, as they are compared."""
    for batch in _batches(arrow, columns, Known.start(None)):
        yield pa.RecordBatch.from_arrays([decoded(batch._voters).cast(pa.string())], ["voter"])


def _ids(arrow: Iterator[Any]) -> Iterator[Any]:
    """The voters' ids as texts, as they are compared."""
    for batch in arrow:
        yield pa.RecordBatch.from_arrays([arrow_ids(batch.column(0)).cast(pa.string())], ["voter"])
