"""`-` for a file: standard input is kept in a private directory while it is read, and standard output gets whole files.

What comes in may be read several times, so it is stored; its first bytes say its format. What goes out is copied when
all of it is there, so that a failure leaves nothing half-written in a pipe.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

DASH = Path("-")


def standard_input(context: click.Context, _: click.Parameter, path: Any) -> Any:
    """The callback of an argument that is a file to read: `-` is where standard input is kept for the command."""
    if path is None or Path(path) != DASH:
        return path
    return type(path)(context.with_resource(_kept_input()))


@contextmanager
def _kept_input() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rankdp-") as place:
        kept = Path(place) / "stdin"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield kept.rename(kept.with_name(f"stdin{_ending(kept)}"))


@contextmanager
def standard_output(path: Path) -> Iterator[Path]:
    """A file to write: this one, or a CSV file that is copied to standard output if it is `-`."""
    if path != DASH:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rankdp-") as place:
        target = Path(place) / "stdout.csv"
        yield target
        with target.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _ending(path: Path) -> str:
    """The ending that a file should have, from its first bytes."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if head.startswith(b"PAR1"):
        return ".parquet"
    for magic, packed in ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"BZh", ".bz2")):
        if head.startswith(magic):
            return f"{_unpacked_ending(path, packed)}{packed}"
    return _text_ending(head)


def _unpacked_ending(path: Path, packed: str) -> str:
    from rankdp.data.formats.texts import opened

    linked = path.with_name(f"packed{packed}")
    linked.symlink_to(path)
    try:
        with opened(str(linked)) as file:
            return _text_ending(file.read(1 << 12))
    except OSError:
        return ".csv"  # whoever reads it says that it is damaged


def _text_ending(head: bytes) -> str:
    if head.lstrip()[:1] in (b"{", b"["):
        return ".jsonl"
    if kind := re.search(rb"^#\s*DATA TYPE:\s*(so[ci]|to[ci])", head, re.MULTILINE):
        return f".{kind[1].decode()}"
    return ".blt" if re.match(rb"\s*\d+ +\d+\s", head) else ".csv"
