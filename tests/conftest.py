"""Shared fixtures: where the real data sets are, when they are there."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

from rankdp.privacy import bits

# The same examples in every run: a test that passes stays passed. A first call may compile a kernel, and times prove
# nothing on a busy machine.
settings.register_profile(
    "rankdp",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("rankdp")

pa.set_cpu_count(4)  # as users have it; Arrow takes one thread from OMP_NUM_THREADS=1, which hides races

if os.environ.get("RANKDP_DATA"):
    os.environ["RANKDP_DATA"] = str(Path(os.environ["RANKDP_DATA"]).absolute())  # tests change the directory


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, so that its fixtures are made once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def repeated_urandom(name: str) -> Callable[[int], bytes]:
    """The same bytes in every run.

    A forked process asks the operating system, as everywhere else: it must not repeat the noise of its parent.
    """
    process, numbers = os.getpid(), itertools.count()

    def urandom(count: int) -> bytes:
        if os.getpid() != process:
            return os.urandom(count)
        return hashlib.shake_256(f"{name} {next(numbers)}".encode()).digest(count)

    return urandom


@contextlib.contextmanager
def repeated(noise: str, others: str) -> Iterator[None]:
    """Let the keys of ``SecureBits`` follow from one name, and what the module ``secrets`` draws from another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "os", SimpleNamespace(getpid=os.getpid, urandom=repeated_urandom(noise)))
        patch.setattr(random, "_urandom", repeated_urandom(others))
        yield


@pytest.fixture(autouse=True)
def repeated_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let all noise follow from the test's name, so that no test fails by chance."""
    with repeated(request.node.name, f"{request.path.name} {request.node.name}"):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """The same for what several tests share: it must not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"
    with repeated(name, name):
        return (yield)


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory of public data sets: $RANKDP_DATA, or ../shared/data beside the repository."""
    default = Path(__file__).parents[2] / "shared" / "data"
    directory = Path(os.environ.get("RANKDP_DATA") or default)
    if not directory.is_dir():
        pytest.skip("no data sets here: set RANKDP_DATA to their directory")
    return directory
