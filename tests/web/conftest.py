"""What the tests of the web pages need: a PostgreSQL server of our own, a server of surveys, a browser, axe-core."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from rankdp.web.survey_app import server_config
from rankdp.web.survey_database import Survey, SurveyDatabase
from rankdp.web.surveys import create_survey

AXE = "axe-core@4.14.0"
AXE_SHA512 = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


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


@contextlib.contextmanager
def served(database: SurveyDatabase) -> Iterator[str]:
    """A server of surveys on a free port of this machine, and its address."""
    server = uvicorn.Server(server_config(database))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


DRINKS = ("Tea", "Coffee", "Water", "Juice")


@pytest.fixture
def database(tmp_path: Path) -> SurveyDatabase:
    """An empty database."""
    return SurveyDatabase(tmp_path / "survey.db", create=True)


@pytest.fixture
def survey(database: SurveyDatabase) -> Survey:
    """A survey that everybody may answer."""
    return create_survey(database, "Drinks", DRINKS, 2, question="What at noon?")


@pytest.fixture
def server(database: SurveyDatabase, survey: Survey) -> Iterator[str]:
    """The address of a server with that survey."""
    with served(database) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium, driven by Playwright."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest) -> str:
    """The script of axe-core, fetched once by npm and checked."""
    script = request.config.cache.mkdir("axe") / f"{AXE}.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, and axe-core comes from there")
        with tempfile.TemporaryDirectory() as place:
            command = [npm, "pack", "--silent", "--ignore-scripts", AXE]
            packed = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
            if packed.returncode:
                pytest.skip("npm cannot fetch axe-core here")
            archive = Path(place, packed.stdout.split()[-1])
            assert base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() == AXE_SHA512
            with tarfile.open(archive) as files:
                script.write_bytes(files.extractfile("package/axe.min.js").read())
    return script.read_text("utf-8")
