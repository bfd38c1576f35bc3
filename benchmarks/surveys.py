"""A survey under load: many answers, a steady stream of them beside somebody who watches the results, and its memory.

A server of its own runs in a process of its own; answers come over HTTP on connections that stay open, as from a
reverse proxy. The stream is an open loop: answer i is due at i/200 s, and its time counts from when it was due, so a
server that stops for a while is charged for all who wait meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.report import Table, digits, rate, verdict
from rankdp_web.survey_database import Survey, SurveyDatabase
from rankdp_web.surveys import create_survey, new_ticket

_ITEMS, _ANSWERS, _RATE, _SECONDS = 10, 100_000, 200, 60
_FIRST, _CONNECTIONS = 10_000, 32
_PORT = 8765
_LATENCY, _GROWTH = 0.2, 1.5


def table() -> Table:
    from tests.web.local_postgres import new_database, postgres_server

    with tempfile.TemporaryDirectory() as directory:
        rows = _rows("SQLite", str(Path(directory, "survey.db")))
    try:
        with postgres_server() as server:
            rows += _rows("PostgreSQL", new_database(server))
    except LookupError as reason:
        rows.append((f"PostgreSQL: {reason}", "", "", ""))
    return Table(("what", "measured", "target", "met"), rows)


def _rows(name: str, address: str) -> list[tuple[str, ...]]:
    database = SurveyDatabase(address, create=True)
    survey = create_survey(database, "Load", [f"item {number}" for number in range(_ITEMS)], 1, mechanism="reinsertion")
    secret = database.find(survey.id)[1]  # type: ignore[index]
    with _server(address) as process:
        began = time.perf_counter()
        asyncio.run(_send(survey, secret, _FIRST))
        fast, early = _FIRST / (time.perf_counter() - began), _memory(process)
        _fill(database, survey, _ANSWERS - _FIRST - _RATE * _SECONDS)
        took, seen = asyncio.run(_send(survey, secret, _RATE * _SECONDS, _RATE))
        late = _memory(process)
    stored = database.count(survey.id)
    database.close()
    worst = float(np.quantile(took, 0.99))
    return [
        (f"{name}: answers stored of those sent", f"{stored:,}", f"{_ANSWERS:,}", verdict(stored == _ANSWERS)),
        (f"{name}: as fast as it goes", rate(fast), rate(_RATE), verdict(fast >= _RATE)),
        (
            f"{name}: 99% at {_RATE} a second",
            f"{1000 * worst:.0f} ms",
            "200 ms",
            verdict(worst < _LATENCY),
        ),
        (f"{name}: half of them", f"{1000 * float(np.median(took)):.0f} ms", "", ""),
        (f"{name}: results asked for meanwhile", f"{seen}", "", ""),
        (
            f"{name}: memory at the start and the end",
            f"{early / 1e6:.0f} and {late / 1e6:.0f} MB",
            f"{digits(_GROWTH)} x",
            verdict(late < _GROWTH * early),
        ),
    ]


def _fill(database: SurveyDatabase, survey: Survey, answers: int) -> None:
    """Store answers past the server, for time's sake."""
    for start in range(0, answers, 1000):
        numbers = range(start, min(answers, start + 1000))
        database.store(survey, [(f"fill {number}", bytes(random.sample(range(_ITEMS), _ITEMS))) for number in numbers])


@contextmanager
def _server(address: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "rankdp", "survey", "serve", address, "--port", str(_PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        asyncio.run(_ready())
        yield process
    finally:
        process.terminate()
        process.wait()


async def _ready() -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", _PORT)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise TimeoutError("the server did not start")


async def _send(survey: Survey, secret: bytes, answers: int, per_second: float = 0) -> tuple[list[float], int]:
    """Send answers; the seconds that each took from when it was due, and how often the results were read meanwhile."""
    took: list[float] = []
    numbers = iter(range(answers))
    began = time.perf_counter()

    async def respond() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", _PORT)
        for number in numbers:
            due = began + number / per_second if per_second else time.perf_counter()
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            ranking = random.sample(range(_ITEMS), _ITEMS)
            body = json.dumps({"token": new_ticket(secret), "ranking": ranking})
            status = await _ask(reader, writer, "POST", f"/s/{survey.id}/answers", body)
            if status != 201:
                raise RuntimeError(f"an answer got {status}")
            took.append(time.perf_counter() - due)
        writer.close()

    async def watch(done: asyncio.Event) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", _PORT)
        seen = 0
        while not done.is_set():
            await _ask(reader, writer, "GET", f"/s/{survey.id}/results/part", "")
            seen += 1
            await asyncio.sleep(3)
        writer.close()
        return seen

    done = asyncio.Event()
    watching = asyncio.create_task(watch(done))
    await asyncio.gather(*(respond() for _ in range(_CONNECTIONS)))
    done.set()
    return took, await watching


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: str) -> int:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write((head + body).encode())
    answered = await reader.readuntil(b"\r\n\r\n")
    length = int(answered.lower().partition(b"content-length:")[2].split()[0])
    await reader.readexactly(length)
    return int(answered.split()[1])


def _memory(process: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return 1024.0 * int(status.partition("VmRSS:")[2].split()[0])
