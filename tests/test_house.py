"""The house rules: a light import, locks that pin everything and name no place, documents that agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rankdp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKS = ["run", "dev", "torch"]

# In pieces, so that this file passes its own test.
HOSTS = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.", "debian" + ".org", "crates" + ".io"]
MACHINE_PATH = re.compile(r"(?<![\w.~}])/(?:root|home|opt|work|tmp|Users|mnt|var)/|[A-Z]:\\Users\\|file:/{2}")


def python(code: str) -> str:
    """What a fresh interpreter prints after running ``code``."""
    return subprocess.check_output([sys.executable, "-c", code], encoding="utf-8")


def pins(lock: str) -> dict[str, str]:
    """The packages of one lock file and their versions."""
    text = (ROOT / "locks" / f"{lock}.txt").read_text("utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize(("module", "needed"), [("rankdp", set()), ("rankdp.cli", {"click"})])
def test_a_light_import(module, needed):
    code = f"import sys; before = set(sys.modules); import {module}; print(*sys.modules.keys() - before)"
    loaded = python(code).split()
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"rankdp"} | needed
    assert module != "rankdp" or {name for name in loaded if name.startswith("rankdp")} == {"rankdp", "rankdp.lazy"}


def test_arrow_is_loaded_by_the_first_table():
    code = """
import sys, rankdp
poll = rankdp.Rankings.from_orders([["tea", "water"], ["water", "tea"]])
rankdp.privatize(poll, 1, seed=1)
print("pyarrow" in sys.modules)
poll.to_arrow()
print("pyarrow" in sys.modules)
"""
    assert python(code).split()[-2:] == ["False", "True"]


def test_what_windows_lacks_is_not_needed(tmp_path):
    """A stand-in for Windows: the functions of ``os`` that it does not have are gone."""
    (tmp_path / "poll.csv").write_text("rank_1,rank_2\ntea,coffee\ncoffee,tea\n")
    code = f"""
import os
for name in ("fork", "register_at_fork", "sysconf", "getrusage", "sched_getaffinity"):
    vars(os).pop(name, None)
import rankdp
release = rankdp.privatize(rankdp.Rankings.read({str(tmp_path / "poll.csv")!r}), 2)
rankdp.Ledger.create({str(tmp_path / "budget.db")!r}, "poll", "position", 1).close()
print(len(release.value))
"""
    assert python(code).split()[-1] == "2"


@pytest.mark.slow
def test_importing_the_modules_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # empty, so that nothing compiled comes from a cache
    code = """
import importlib, pkgutil
import numba
from numba.core import event
import rankdp, rankdp_papers, rankdp_web
with event.install_recorder("numba:compile") as recorder:
    for package in (rankdp, rankdp_papers, rankdp_web):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith((".__main__", "kernels")):  # kernels are loaded by the first call
                importlib.import_module(module.name)
print(len(recorder.buffer))
"""
    assert python(code).split()[-1] == "0"


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_place(lock):
    text = read(f"locks/{lock}.txt")
    assert not re.search(r"://|index|find-links|trusted-host| @ |(?:^|\s)[/~]", text, re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_is_hashed(lock):
    text = re.sub(r"^\s*#.*\n?|\s*\\\n", "", read(f"locks/{lock}.txt"), flags=re.MULTILINE)
    assert text
    for line in text.splitlines():
        assert re.fullmatch(r"[\w.-]+==\S+(?: ; [^-]+)?(?:\s+--hash=sha256:[0-9a-f]{64})+", line), line


@pytest.mark.parametrize(("lock", "extras"), [("run", ["plots"]), ("dev", sorted(EXTRAS.keys() - {"learn"}))])
def test_lock_serves_what_the_project_asks_for(lock, extras):
    locked = pins(lock)
    for line in [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]:
        asked = Requirement(line)
        assert locked[canonicalize_name(asked.name)] in asked.specifier, f"{line}: run make lock"
    assert "setuptools" in locked


def test_both_locks_have_the_same_versions():
    assert pins("run").items() <= pins("dev").items()


def test_versions_agree():
    assert rankdp.__version__ == PROJECT["version"]
    assert f"version: {PROJECT['version']}\n" in read("CITATION.cff")


def test_changelog_has_a_section_for_this_version():
    assert re.search(rf"^## \[?{re.escape(PROJECT['version'])}\b", read("CHANGELOG.md"), re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_commands_in_the_documents_exist(document):
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", read(document), re.MULTILINE))
    assert named <= targets
    if document == "README.md":
        assert {"demo", "test"} <= named


def test_the_architecture_names_what_exists():
    text = read("docs/architecture.md")
    dotted = {
        name.replace(".", "/") for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", text) if name != "pyproject.toml"
    }
    for name in dotted | set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text)):
        path = ROOT / "src" / "rankdp" / name
        assert any(place.exists() for place in (path, path.with_suffix(".py"), path.parent.with_suffix(".py"))), name


@pytest.mark.slow
def test_no_file_names_a_registry_or_a_machine():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        path = ROOT / name
        if not path.is_file() or b"\0" in (content := path.read_bytes()):
            continue
        text = content.decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            assert not any(host in line for host in HOSTS), f"{name}:{number} names a package registry"
            assert not MACHINE_PATH.search(line), f"{name}:{number} names a path of one machine"
