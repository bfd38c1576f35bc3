"""What the tests of the web pages need: a PostgreSQL server of our own, a server of surveys, a browser, axe-core."""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from local_postgres import new_database, postgres_server
from studio_support import make_files, studio_client

from rankdp_web.survey_app import server_config
from rankdp_web.survey_database import Survey, SurveyDatabase
from rankdp_web.surveys import create_survey

AXE = "axe-core@4.14.0"
AXE_SHA512 = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
CHROMIUM_ARGS = ["--no-sandbox", "--host-resolver-rules=MAP survey.test 127.0.0.1"]  # a name that is not localhost
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of our own PostgreSQL server, without the name of a database."""
    try:
        server = postgres_server()
    except LookupError as reason:
        pytest.skip(str(reason))
    with server as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a survey may live: a file, or a fresh database of the server."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.db")
    return new_database(request.getfixturevalue("postgres"))


@contextlib.contextmanager
def served(database: SurveyDatabase, **options: Any) -> Iterator[str]:
    """A server of surveys on a free port of this machine, and its address."""
    server = uvicorn.Server(server_config(database, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield f"{'https' if 'certificate' in options else 'http'}://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
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
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Opens an address in a fresh profile; what the page reports as an error fails the test, unless it is expected."""

    @contextlib.contextmanager
    def opened(address, expected=(), **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        context.set_default_timeout(60_000)
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(address)
        try:
            yield page
            assert [words for words in problems if not words.startswith(expected)] == []
        finally:
            context.close()

    return opened


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
            try:
                packed = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=True)
            except subprocess.SubprocessError:
                pytest.skip("npm cannot fetch axe-core here")
            archive = Path(place, packed.stdout.split()[-1])
            assert base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() == AXE_SHA512
            with tarfile.open(archive) as files:
                script.write_bytes(files.extractfile("package/axe.min.js").read())
    return script.read_text("utf-8")


def make_certificate(place, extensions=()) -> tuple[str, str]:
    """A certificate that nobody signed, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    for extension in extensions:
        made = made.add_extension(extension, critical=False)
    pem = serialization.Encoding.PEM
    hidden = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = [place / f"{part}.pem" for part in ("certificate", "key")]
    for file, content in zip(files, (made.sign(key, hashes.SHA256()).public_bytes(pem), hidden), strict=True):
        file.write_bytes(content)
    return str(files[0]), str(files[1])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[str, str]:
    """A certificate for this machine and its key."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def desk(tmp_path):
    """A directory with a file of each kind that the studio opens."""
    make_files(tmp_path)
    return tmp_path


@pytest.fixture
def client(desk):
    """A visitor of the studio at this desk."""
    return studio_client(desk)
