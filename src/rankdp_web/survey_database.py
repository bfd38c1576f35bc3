"""The database of surveys, on SQLite or PostgreSQL: every answer with a receipt is stored, and none twice.

    surveys      what was asked, and the tables of the noise that browsers draw from
    invitations  the hashes of the tokens that were given out
    pictures     of items
    used         the hashes of the tokens that an answer came with
    inbox        the answers that no result shows yet
    answers      all others: what results are made of

One transaction writes the hash of a token to ``used`` and the answer to ``inbox``: a second answer with the same token
finds it there, after a kill too. Nothing that stays in the database says which of them came together. There is no
time, address or number of a row; primary keys are random. But files and system columns remember more than tables show:
SQLite keeps the rows of a page in the order of their arrival, PostgreSQL the transaction of each row. So with every
``BATCH`` of arrivals one transaction shuffles the inbox under new keys and moves as many answers on as ``leaving``
allows, SQLite's log of transactions is emptied, and closing a survey shuffles all of its answers once more.
The secret in ``surveys`` signs tickets, so only the owner can read a SQLite file (``data.private_files``).
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from rankdp.data.private_files import make_private, tighten
from rankdp.errors import InputError, SystemProblem, system_problem
from rankdp.mechanisms.registry import Protect

BATCH = 32
"""The fewest answers that results may change by."""
_ROWS_AT_ONCE = 1000  # of one INSERT: databases limit the parameters of a statement
_PATIENCE = 30_000  # milliseconds for which SQLite waits for another writer
_random = secrets.SystemRandom()

_schema = sql.MetaData()


def _table(name: str, *columns: sql.Column[Any]) -> sql.Table:
    """A table without row numbers whose rows belong to a survey."""
    key = sql.Column("survey", sql.String(32), primary_key=True)
    return sql.Table(name, _schema, key, *columns, sqlite_with_rowid=False)


_SURVEYS = _table(
    "surveys",
    sql.Column("facts", sql.Text, nullable=False),
    sql.Column("open", sql.Boolean, nullable=False),
    sql.Column("secret", sql.LargeBinary, nullable=False),
)
_INVITATIONS = _table("invitations", sql.Column("token", sql.LargeBinary, primary_key=True))
_PICTURES = _table(
    "pictures",
    sql.Column("name", sql.String(32), primary_key=True),
    sql.Column("content", sql.LargeBinary, nullable=False),
)
_USED = _table("used", sql.Column("token", sql.LargeBinary, primary_key=True))
_INBOX, _ANSWERS = (
    _table(name, sql.Column("id", sql.LargeBinary, primary_key=True), sql.Column("answer", sql.LargeBinary))
    for name in ("inbox", "answers")
)


@dataclass(frozen=True, slots=True)
class Survey:
    """What is asked, and how answers are protected: all of it public.

    Parameters
    ----------
    id
        The name in addresses.
    title, question
        What respondents read first.
    items
        What they rank.
    mechanism
        The name of what adds the noise, with its tiers.
    epsilon
        The privacy of what ``protect`` says, as text.
    invited
        Whether an answer needs an invitation.
    results_key
        The hash of the key that shows the results, empty where everybody may see them.
    day
        When it was opened.
    open
        Whether answers are taken.
    protect
        What is protected: one item's "position", as in surveys that do not say it, or the whole "ranking".
    descriptions, pictures
        A line about every item, and the name of its picture; both may be empty.
    organiser, contact, legal
        Who asks, how to reach them, and what the law wants respondents to read.
    closing
        The last day (UTC) on which answers are taken, such as 2030-12-31; empty for no such day.
    kiosk
        Whether many people answer on one device: the page keeps nothing and starts again after each answer.
    listed
        Whether the start page of the server names it.
    rank_top
        How many items respondents list, the best first; 0 where they rank all of them.
    frames
        The sites whose pages may show the results in a frame, such as https://news.example.
    """

    id: str
    title: str
    question: str
    items: tuple[str, ...]
    mechanism: str
    epsilon: str
    invited: bool
    results_key: str
    day: str
    open: bool = True
    protect: Protect = "position"
    descriptions: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    organiser: str = ""
    contact: str = ""
    legal: str = ""
    closing: str = ""
    kiosk: bool = False
    listed: bool = False
    frames: tuple[str, ...] = ()
    rank_top: int = 0

    @property
    def listed_items(self) -> int:
        """How many items an answer has."""
        return self.rank_top or len(self.items)

    @property
    def due(self) -> bool:
        """Whether the last day has passed."""
        return bool(self.closing) and today() > self.closing


def leaving(waiting: int, *, closing: bool = False) -> int:
    """How many of the answers in the inbox may join the results: the only rule about when results change.

    Results state exact means over the answers that they show. Whoever subtracts two of them (mean times number of
    answers) learns the sum of the answers between, which for one answer is that answer, with its time of arrival. So
    results of an open survey change by a multiple of ``BATCH`` answers, drawn at random from the inbox, and the inbox
    keeps ``BATCH`` to 2 ``BATCH`` - 1 of them, so that closing adds at least ``BATCH`` too. Fewer than ``BATCH``
    answers are never shown: a survey that is closed with fewer has no results.

    Parameters
    ----------
    waiting
        How many answers are in the inbox.
    closing
        Whether the survey takes no more answers.
    """
    if closing:
        return waiting if waiting >= BATCH else 0
    return max(0, waiting // BATCH - 1) * BATCH


def token_hash(token: str) -> bytes:
    """What is stored of an invitation; 128 random bits need no salt."""
    return hashlib.sha256(token.encode()).digest()


class SurveyDatabase:
    """Surveys and their answers.

    Parameters
    ----------
    where
        A file for SQLite, or the address of a PostgreSQL database such as ``postgresql+psycopg://user@host/name``.
    create
        Whether the file and the tables are made where they are not there yet.
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = False) -> None:
        self.name = os.fspath(where)
        address = sql.engine.make_url(self.name) if "://" in self.name else None
        if address is None and not create and not Path(self.name).is_file():
            raise InputError(f"{self.name}: there is no such file; rankdp survey create makes one")
        if address is not None:
            self.name = address.render_as_string(hide_password=True)
            if address.get_backend_name() not in ("postgresql", "sqlite"):
                raise InputError(f"the database must be a file or a postgresql+psycopg:// address, got {self.name}")
        self.engine = sql.create_engine(address or f"sqlite:///{self.name}", pool_pre_ping=address is not None)
        self._sqlite = self.engine.dialect.name == "sqlite"
        file = (self.name if address is None else address.database) if self._sqlite else None
        if file and create:
            try:
                make_private(file)
            except OSError as problem:
                raise system_problem(file, problem, "made") from None
        if self._sqlite:
            sql.event.listen(self.engine, "connect", _prepare_sqlite)
            sql.event.listen(self.engine, "begin", _begin_sqlite)
        with self._problems():
            if not create and not sql.inspect(self.engine).has_table("surveys"):
                raise InputError(f"{self.name}: there are no surveys in it; rankdp survey create makes one")
            _schema.create_all(self.engine)
        if file:
            tighten(file)

    def close(self) -> None:
        """Close all connections; SQLite then folds its log into the file."""
        self.engine.dispose()

    # -- surveys ------------------------------------------------------------------------------------------------

    def add(self, survey: Survey, pictures: Mapping[str, bytes] | None = None) -> None:
        """Open a survey, with the pictures of its items by their names."""
        facts = {name: value for name, value in asdict(survey).items() if name != "open"}
        row = {"survey": survey.id, "facts": json.dumps(facts), "open": True, "secret": secrets.token_bytes(32)}
        with self._writing() as connection:
            connection.execute(_SURVEYS.insert(), row)
            for name, content in (pictures or {}).items():
                connection.execute(_PICTURES.insert(), {"survey": survey.id, "name": name, "content": content})

    def surveys(self) -> list[Survey]:
        """All of them."""
        with self._reading() as connection:
            rows = connection.execute(sql.select(_SURVEYS.c.facts, _SURVEYS.c.open)).all()
        return [_survey(facts, opened) for facts, opened in rows]

    def find(self, survey_id: str) -> tuple[Survey, bytes] | None:
        """The survey of this id and the key that signs its tickets."""
        with self._reading() as connection:
            row = connection.execute(_SURVEYS.select().where(_SURVEYS.c.survey == survey_id)).one_or_none()
        return None if row is None else (_survey(row.facts, row.open), row.secret)

    def picture(self, survey_id: str, name: str) -> bytes | None:
        """A picture of a survey."""
        with self._reading() as connection:
            wanted = sql.select(_PICTURES.c.content).where(_PICTURES.c.survey == survey_id, _PICTURES.c.name == name)
            found: bytes | None = connection.execute(wanted).scalar()
        return found

    def finish(self, survey_id: str) -> None:
        """Take no more answers, show all of them if they are enough, and leave no trace of their order."""
        with self._writing() as connection:
            connection.execute(_SURVEYS.update().where(_SURVEYS.c.survey == survey_id).values(open=False))
            waiting = _taken(connection, _INBOX, survey_id)
            count = leaving(len(waiting), closing=True)
            _insert(connection, _ANSWERS, survey_id, _taken(connection, _ANSWERS, survey_id) + waiting[:count])
            _insert(connection, _INBOX, survey_id, waiting[count:])
        self._clean()

    def delete(self, survey_id: str) -> None:
        """Remove a survey, its invitations and its answers."""
        with self._writing() as connection:
            for table in (_INBOX, _ANSWERS, _USED, _INVITATIONS, _PICTURES, _SURVEYS):
                connection.execute(table.delete().where(table.c.survey == survey_id))
        self._clean()

    def invite(self, survey_id: str, tokens: Sequence[str]) -> None:
        """Store the hashes of new tokens, in the order of the hashes."""
        rows = [{"survey": survey_id, "token": hashed} for hashed in sorted(map(token_hash, tokens))]
        with self._writing() as connection:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                connection.execute(_INVITATIONS.insert(), rows[start : start + _ROWS_AT_ONCE])

    def invitation(self, survey: Survey, token: str) -> str:
        """What an answer with this invitation would become: "fresh", "before", "unknown" or "closed"."""
        with self._reading() as connection:

            def has(table: sql.Table) -> bool:
                found = sql.select(table.c.token).where(table.c.survey == survey.id, table.c.token == token_hash(token))
                return connection.execute(found).first() is not None

            if not has(_INVITATIONS):
                return "unknown"
            if has(_USED):
                return "before"
            opened = sql.select(_SURVEYS.c.open).where(_SURVEYS.c.survey == survey.id)
            return "fresh" if connection.execute(opened).scalar() and not survey.due else "closed"

    # -- answers ------------------------------------------------------------------------------------------------

    def store(self, survey: Survey, arrived: Sequence[tuple[str, bytes]]) -> list[str]:
        """Store answers, each with its token; what became of each: "stored", "before", "unknown" or "closed".

        "before": an answer came with this token earlier, and this one changes nothing. When this returns, all that is
        stored is on disk.
        """
        hashes = [token_hash(token) for token, _ in arrived]
        wanted = sorted(set(hashes))
        ours = {"survey": survey.id}
        with self._writing() as connection:
            # FOR SHARE: who closes the survey waits for us, or we for them
            opened = sql.select(_SURVEYS.c.open).where(_SURVEYS.c.survey == survey.id).with_for_update(read=True)
            if survey.due or not connection.execute(opened).scalar():
                return ["closed"] * len(arrived)
            if survey.invited:
                known = sql.select(_INVITATIONS.c.token).where(_INVITATIONS.c.survey == survey.id)
                known = known.where(_INVITATIONS.c.token.in_(wanted))
                wanted = sorted(connection.execute(known).scalars())
            invited = set(wanted)
            insert = (sqlite if self._sqlite else postgresql).insert(_USED).on_conflict_do_nothing()
            fresh: set[bytes] = set()
            if wanted:
                rows = [{**ours, "token": hashed} for hashed in wanted]
                fresh.update(connection.execute(insert.values(rows).returning(_USED.c.token)).scalars())
            outcomes, accepted = [], []
            for hashed, (_, answer) in zip(hashes, arrived, strict=True):
                if hashed in fresh:
                    fresh.remove(hashed)
                    accepted.append(answer)
                    outcomes.append("stored")
                else:
                    outcomes.append("before" if hashed in invited else "unknown")
            _insert(connection, _INBOX, survey.id, accepted)
            waiting = connection.execute(_count(_INBOX, survey.id)).scalar_one()
        if waiting >= 2 * BATCH or waiting - len(accepted) < BATCH <= waiting:
            self._mix(survey.id)
            self._empty_log()
        return outcomes

    def count(self, survey_id: str, *, shown: bool = False) -> int:
        """How many answers there are, or how many of them results may show."""
        with self._reading() as connection:
            return sum(connection.execute(_count(table, survey_id)).scalar_one() for table in _tables(shown))

    def answers(self, survey_id: str, *, shown: bool = False) -> list[bytes]:
        """All answers, or those that results may show, in the order of their random keys."""
        both = sql.union_all(
            *(sql.select(table).where(table.c.survey == survey_id) for table in _tables(shown))
        ).subquery()
        with self._reading() as connection:
            return list(connection.execute(sql.select(both.c.answer).order_by(both.c.id)).scalars())

    def _mix(self, survey_id: str) -> None:
        """Shuffle the inbox under new keys, and move to ``answers`` what may leave it."""
        with self._writing() as connection:
            # FOR UPDATE: one server at a time, or rows that another one has just put back would be missed
            connection.execute(sql.select(_SURVEYS.c.open).where(_SURVEYS.c.survey == survey_id).with_for_update())
            waiting = _taken(connection, _INBOX, survey_id)
            count = leaving(len(waiting))
            _insert(connection, _ANSWERS, survey_id, waiting[:count])
            _insert(connection, _INBOX, survey_id, waiting[count:])

    def _empty_log(self) -> None:
        """Let SQLite forget which rows were written together; while a reader is active, the next batch does it."""
        if self._sqlite:
            with self._problems(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for pragma in ("busy_timeout=0", "wal_checkpoint(TRUNCATE)", f"busy_timeout={_PATIENCE}"):
                    connection.exec_driver_sql(f"PRAGMA {pragma}")

    def _clean(self) -> None:
        """Let the database forget what is deleted."""
        with self._problems(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM" if self._sqlite else "VACUUM FULL inbox, answers, used, invitations")
        self._empty_log()

    # -- connections --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        with self._problems(), self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sql.Connection]:
        with self._problems(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """The database's own refusals as one sentence."""
        try:
            yield
        except sql.exc.DBAPIError as problem:
            reason = " ".join(str(problem.orig).split()) or type(problem.orig).__name__
            raise SystemProblem(f"{self.name}: the database refused ({reason})") from None


def _survey(facts: str, opened: bool) -> Survey:
    known: Mapping[str, Any] = json.loads(facts)
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
    return Survey(**{**known, **lists, "open": opened})


def _count(table: sql.Table, survey_id: str) -> sql.Select[int]:
    return sql.select(sql.func.count()).select_from(table).where(table.c.survey == survey_id)


def _tables(shown: bool) -> tuple[sql.Table, ...]:
    return (_ANSWERS,) if shown else (_ANSWERS, _INBOX)


def _taken(connection: sql.Connection, table: sql.Table, survey_id: str) -> list[bytes]:
    """Delete the answers of a survey from a table and return them in random order."""
    gone = table.delete().where(table.c.survey == survey_id).returning(table.c.answer)
    found = list(connection.execute(gone).scalars())
    return _random.sample(found, len(found))


def _insert(connection: sql.Connection, table: sql.Table, survey_id: str, answers: Sequence[bytes]) -> None:
    """Insert answers in random order with random keys."""
    shuffled = _random.sample(answers, len(answers))
    rows = [{"survey": survey_id, "id": secrets.token_bytes(16), "answer": answer} for answer in shuffled]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        connection.execute(table.insert(), rows[start : start + _ROWS_AT_ONCE])


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Transactions as we say, receipts that survive a loss of power, deleted rows overwritten."""
    connection.isolation_level = None  # sqlite3 begins no transaction by itself
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", f"busy_timeout={_PATIENCE}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sql.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")


def today() -> str:
    """The day, which is as exactly as anything is dated."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()
