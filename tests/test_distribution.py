"""The wheel and the sdist hold all that an installed command needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A directory with both, built from the files that git knows."""
    home = tmp_path_factory.mktemp("dist")
    source = home / "source"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
    build(source, home)
    return home


def build(source: Path, target: Path) -> None:
    """As ``make dist`` does."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    (sdist,) = target.glob("*.tar.gz")
    subprocess.run([sys.executable, ROOT / "locks" / "repack.py", sdist], check=True, env=environment)


def test_sdist_can_be_built_from_again(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/rankdp/py.typed"} <= names
    assert any(name.endswith(".toml") and "rankdp_papers" in name for name in names)
    assert not any(name.startswith("tests") for name in names)  # all of them or none: setuptools takes a few


def test_both_are_built_the_same_twice(built, tmp_path):
    build(built / "source", tmp_path)
    for second in tmp_path.iterdir():
        assert second.read_bytes() == (built / second.name).read_bytes(), second.name
    assert len(list(tmp_path.iterdir())) == 2


def test_metadata_are_accepted_by_an_index(built):
    files = [str(path) for path in built.iterdir() if path.is_file()]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_bill_of_materials_lists_every_locked_package():
    lock = ROOT / "locks" / "run.txt"
    listed = json.loads(subprocess.check_output([sys.executable, ROOT / "locks" / "sbom.py", lock]))["components"]
    pinned = re.findall(r"^([\w.-]+)==", lock.read_text("utf-8"), re.MULTILINE)
    assert [component["name"] for component in listed] == pinned
    assert all(component["hashes"] for component in listed)


@pytest.mark.parametrize(
    "checker", [["mypy", "--strict", "--cache-dir", ".mypy_cache/users"], ["pyright"]], ids=lambda words: words[0]
)
def test_types_are_complete_for_users(checker):
    code = ROOT / "tests" / "typing" / "user_code.py"
    done = subprocess.run([sys.executable, "-m", *checker, str(code)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_installed_command_works(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        assert not [name for name in files.namelist() if name.startswith(("tests/", "docs/", "benchmarks/"))]
        pages = {"static/sampler.js", "templates/survey.html", "texts/en.json"}
        assert {f"rankdp_web/{name}" for name in pages} <= set(files.namelist())
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*")) / "site-packages"
    # the dependencies come from the environment of the tests, the project from its wheel alone
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    outside = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(outside))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    poll = tmp_path / "poll.csv"
    poll.write_text("voter,rank_1,rank_2,rank_3\nann,tea,coffee,juice\nbob,juice,tea,coffee\n")

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, "-m", "rankdp", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.check_output(
        [python, "-c", "import rankdp; print(rankdp.__file__)"], cwd=tmp_path, env=environment, text=True
    )
    assert where.startswith(str(site))
    assert "rankdp" in run("--version")
    run("privatize", "poll.csv", "private.csv", "--epsilon", "2")
    assert (tmp_path / "private.csv").read_text().count("\n") == 3
    assert "jeong/table1" in run("reproduce", "--list")
