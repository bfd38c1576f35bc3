"""The image: what its files promise, everywhere; built and run where Docker is at hand and RANKDP_DOCKER says so."""

import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from rankdp.cli import cli

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def _all(word):
    return [line.partition(" ")[2] for line in INSTRUCTIONS if line.startswith(f"{word} ")]


def _command_takes(words):
    """A command line of the program, as far as its options go."""
    command, context = cli, None
    while hasattr(command, "get_command"):
        command = command.get_command(context, words.pop(0))
    command.make_context("serve", words)


def test_the_image_is_small_in_rights():
    stages = [number for number, line in enumerate(INSTRUCTIONS) if line.startswith("FROM ")]
    last = INSTRUCTIONS[stages[-1] :]
    assert [line for line in last if line.startswith("USER ")] == ["USER 10001"]  # a number, which every host knows
    assert "useradd --uid 10001" in " ".join(last)
    after = last[last.index("USER 10001") :]
    assert not [line for line in after if line.startswith(("RUN ", "COPY ", "ADD "))]
    assert _all("VOLUME") == ["/data"]
    assert all("--no-cache-dir" in line for line in _all("RUN") if "pip install" in line)
    assert "-c pins.txt '.[web,plots]'" in " ".join(_all("RUN"))
    assert not _all("ADD")
    (health,) = _all("HEALTHCHECK")
    assert "8000" in health
    assert _all("EXPOSE") == ["8000"]


def test_what_is_copied_exists_and_is_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in _all("COPY"):
        if not line.startswith("--from"):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in kept, source


def test_the_commands_are_those_of_the_program():
    (entry,), (command,) = _all("ENTRYPOINT"), _all("CMD")
    assert yaml.safe_load(entry) == ["rankdp"]
    _command_takes(yaml.safe_load(command))
    _command_takes(list(COMPOSE["services"]["survey"]["command"]))


def test_compose_keeps_the_survey_read_only_and_the_database_inside():
    survey, database = COMPOSE["services"]["survey"], COMPOSE["services"]["database"]
    assert survey["read_only"] is True
    assert survey["volumes"] == ["survey:/data"]
    assert survey["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in survey["ports"])
    assert "ports" not in database
    assert "pg_isready" in database["healthcheck"]["test"]
    assert database["environment"]["POSTGRES_PASSWORD"].startswith("${RANKDP_DATABASE_PASSWORD:?")


@pytest.mark.slow
@pytest.mark.skipif(
    not (os.environ.get("RANKDP_DOCKER") and shutil.which("docker")), reason="builds an image; set RANKDP_DOCKER=1"
)
def test_the_image_serves():
    subprocess.run(["docker", "build", "-q", "-t", "rankdp-test", str(ROOT)], check=True)
    run = ["docker", "run", "-d", "--rm", "--read-only", "--tmpfs", "/tmp", "-p", "127.0.0.1::8000", "rankdp-test"]
    name = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    try:
        told = subprocess.run(["docker", "port", name, "8000"], check=True, capture_output=True, text=True).stdout
        for _ in range(60):
            try:
                with urllib.request.urlopen(f"http://{told.strip()}/", timeout=5) as reply:
                    assert reply.status == 200
                return
            except OSError:
                time.sleep(1)
        pytest.fail("the image does not answer")
    finally:
        subprocess.run(["docker", "kill", name], check=False, capture_output=True)
