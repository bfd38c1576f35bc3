"""All of a file or nothing of it: written under a temporary name, put on disk, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rankdp.errors import InputError, system_problem


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` to ``path``; on any problem an existing file stays as it was."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as problem:
        raise system_problem(str(target), problem, "written") from None
    finally:
        with suppress(OSError):  # mostly it is not there any more
            temporary.unlink()


def make_directory(path: Path) -> None:
    """Make a directory and those above it, where they are not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise system_problem(str(path), problem, "made", "directory") from None


def known_ending(path: str | os.PathLike[str], formats: Sequence[str]) -> str:
    """The ending of a file that is to be written, one of ``formats``."""
    ending = Path(path).suffix.lower()
    if ending not in formats:
        raise InputError(f"{os.fspath(path)}: the ending must be one of {', '.join(formats)}, got {ending!r}")
    return ending
