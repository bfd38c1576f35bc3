"""A PostgreSQL server of our own on a free port, for all tests of a run."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _program(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database, without its name."""
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed")
    user = None
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    home = Path(tempfile.mkdtemp(prefix="postgres"))
    if user is not None:
        shutil.chown(home, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = home / "data"
    run = {"check": True, "user": user, "cwd": home, "stdout": subprocess.DEVNULL, "timeout": 120}
    subprocess.run([initdb, "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8"], **run)
    listen = f"-p {port} -c listen_addresses=127.0.0.1 -k {home}"
    subprocess.run([pg_ctl, "-D", data, "-o", listen, "-l", home / "log", "-w", "start"], **run)
    try:
        yield f"postgresql+psycopg://tester@127.0.0.1:{port}/"
    finally:
        subprocess.run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"], **run)
        shutil.rmtree(home)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a survey may live: a file, or a fresh database of the server."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.db")
    import psycopg

    server = request.getfixturevalue("postgres")
    name = f"test_{abs(hash(str(tmp_path)))}"
    with psycopg.connect(server.replace("+psycopg", "") + "postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server + name
