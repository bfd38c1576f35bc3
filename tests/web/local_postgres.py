"""A PostgreSQL server of our own: in a temporary directory, on a free port of this machine, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _program(name: str) -> str:
    """A program of PostgreSQL, which Debian keeps out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), None)
    if found is None:
        raise LookupError("PostgreSQL is not installed")
    return found


def _owner() -> str | None:
    """Whom the server runs as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    import pwd  # not on Windows, where there is no root

    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise LookupError("PostgreSQL does not run as root, and there is no user postgres") from None


def postgres_server() -> contextlib.AbstractContextManager[str]:
    """The address of a server, without the name of a database; LookupError where there cannot be one."""
    return _running(_program("initdb"), _program("pg_ctl"), _owner())


@contextlib.contextmanager
def _running(initdb: str, pg_ctl: str, user: str | None) -> Iterator[str]:
    home = Path(tempfile.mkdtemp(prefix="postgres"))
    if user is not None:
        shutil.chown(home, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = home / "data"
    run: dict[str, Any] = {"check": True, "user": user, "cwd": home, "stdout": subprocess.DEVNULL, "timeout": 120}
    try:
        subprocess.run([initdb, "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8"], **run)
        listen = f"-p {port} -c listen_addresses=127.0.0.1 -k {home}"
        subprocess.run([pg_ctl, "-D", data, "-o", listen, "-l", home / "log", "-w", "start"], **run)
        try:
            yield f"postgresql+psycopg://tester@127.0.0.1:{port}/"
        finally:
            subprocess.run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"], **run)
    finally:
        shutil.rmtree(home)


def new_database(server: str) -> str:
    """The address of a fresh database of this server."""
    import psycopg

    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(server.replace("+psycopg", "") + "postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server + name
