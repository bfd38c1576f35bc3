"""All of a file or nothing of it, and never a value with another value's promise.

A file is written under a temporary name in its target's directory, put on disk, and renamed. A released value has its
guarantee in PATH.release.json, its *sidecar*, and two files cannot be renamed at once. So the order is

    1. the new value is on disk under a temporary name
    2. so is the new sidecar, with the size and SHA-256 of the value
    3. an old sidecar is moved out of the way
    4. the new value takes its name
    5. the new sidecar takes its name

with the directory brought to disk after 3, 4 and 5. Wherever this ends, by an error, a kill or a loss of power, a value
has the sidecar that was made for it, or none: a value without a sidecar promises nothing. An error before 4 brings the
old sidecar back. *Every* file is written like this. A file without a promise, such as a table of true rankings, must
not inherit the sidecar of an older file with its name.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from rankdp.errors import InputError, system_problem

SIDECAR = ".release.json"
KEPT: list[str] = []
"""The files that this process has put in place, for the command line to tell when it is interrupted."""

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


@contextmanager
def writing(path: str, what: str = "file", doing: str = "written") -> Iterator[None]:
    """Tell in one sentence what the system refuses."""
    try:
        yield
    except OSError as problem:
        raise system_problem(path, problem, doing, what) from None


class NewFile:
    """A file being written: content goes to ``temporary``; ``keep`` puts it in place, leaving by an error removes it.

    A symbolic link stays one, and what it points to is replaced. ``source`` is the file, or files, that are being read
    meanwhile and must not be replaced; a ``private`` file is readable by its owner alone.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        private: bool = False,
    ) -> None:
        sources = [source] if isinstance(source, (str, os.PathLike)) else source or ()
        self.path = os.fspath(path)
        self.target = Path(os.path.realpath(self.path))
        self.temporary = _temporary(self.target)
        self._sidecar = Path(self.path + SIDECAR)
        self._new_sidecar = _temporary(self._sidecar)
        self._promise: Mapping[str, Any] | None = None
        self._ended = False
        for place in (self.target, self._sidecar):
            if place.is_dir():
                raise InputError(f"{place}: this is a directory, not a file to write")
            if place.exists() and not place.is_file():
                raise InputError(f"{place}: this is not a regular file")
        if self.target.exists() and any(self.target.samefile(read) for read in sources):
            raise InputError(f"{self.path}: this is the file being read; write to another one")
        with writing(self.path):
            os.close(os.open(self.temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))

    def write(self, content: bytes) -> None:
        """Append to the temporary file."""
        with writing(self.path), self.temporary.open("ab") as file:
            file.write(content)

    def promise(self, facts: Mapping[str, Any]) -> None:
        """Say what the sidecar is to state about this file (``Release.to_dict``)."""
        self._promise = facts

    def keep(self) -> None:
        """Put the file in place with its sidecar, in the order that the module describes."""
        if self._ended:
            return
        aside: list[tuple[Path, Path]] = []
        try:
            with writing(self.path):
                sync(self.temporary)
                if self._promise is not None:
                    self._write_sidecar(self._promise)
                for old in dict.fromkeys([self._sidecar, Path(f"{self.target}{SIDECAR}")]):
                    if old.is_file():
                        aside.append((old, _temporary(old)))
                        old.replace(aside[-1][1])
                sync(self.target.parent)
                self.temporary.replace(self.target)
                KEPT.append(self.path)
                sync(self.target.parent)
                if self._promise is not None:
                    self._new_sidecar.replace(self._sidecar)
                    sync(self._sidecar.parent)
        finally:
            self._clear(aside)

    def keep_first(self) -> None:
        """Put the file in place unless another process was first."""
        try:
            with writing(self.path):
                sync(self.temporary)
                with suppress(FileExistsError):
                    os.link(self.temporary, self.target)
                sync(self.target.parent)
        finally:
            self.drop()

    def drop(self) -> None:
        """Remove what was written; an older file and its sidecar stay as they were."""
        self._clear([])

    def _write_sidecar(self, facts: Mapping[str, Any]) -> None:
        content = json.dumps({**facts, "value": fingerprint(self.temporary)}, indent=2) + "\n"
        with self._new_sidecar.open("x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _clear(self, aside: list[tuple[Path, Path]]) -> None:
        """Bring old sidecars back where the old value is still in place, else remove them, and remove what is left.

        The disk says which it is: the temporary file is gone once it has taken the target's name.
        """
        unchanged = self.temporary.exists()
        self._ended = True
        for old, moved in aside:
            with suppress(OSError):
                if unchanged:
                    moved.replace(old)
                else:
                    moved.unlink()
        for temporary in (self.temporary, self._new_sidecar):
            with suppress(OSError):  # mostly it is not there any more
                temporary.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.keep()
        else:
            self.drop()


def write_whole(path: str | os.PathLike[str], content: bytes, promise: Mapping[str, Any] | None = None) -> None:
    """Write ``content`` to ``path``; on any problem an existing file stays as it was.

    ``promise`` is what the sidecar states (``Release.to_dict``); without it there is no sidecar afterwards.
    """
    with NewFile(path) as file:
        file.write(content)
        if promise is not None:
            file.promise(promise)


def fingerprint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The size and SHA-256 of a file: how a sidecar knows its value."""
    with Path(path).open("rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What PATH.release.json states about the file at ``path``, None where it promises nothing.

    A sidecar that was made for another content than the file has now is refused.
    """
    name = os.fspath(path) + SIDECAR
    try:
        facts = json.loads(Path(name).read_text("utf-8"))
    except FileNotFoundError as problem:
        if not Path(path).exists():
            raise system_problem(os.fspath(path), problem, "read") from None
        return None
    except (OSError, ValueError) as problem:
        raise InputError(f"{name} cannot be read: {problem}") from None
    if not isinstance(facts, dict):
        raise InputError(f"{name} is not the JSON of a release")
    try:
        fits = facts.get("value") in (None, fingerprint(path))  # None: written by version 0.1
    except OSError as problem:
        raise system_problem(os.fspath(path), problem, "read") from None
    if not fits:
        raise InputError(
            f"{name} was made for another content than {os.fspath(path)} has now: take the file as it was released, "
            "or remove the release file, which promises nothing about this one"
        )
    return facts


@contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory to fill under a temporary name; it takes its own when the block ends well.

    Only a missing or an empty directory gives way to it.
    """
    target = Path(path)
    temporary = _temporary(target)
    try:
        with writing(str(target)):
            temporary.mkdir()
            yield temporary
            temporary.replace(target)
            KEPT.append(os.fspath(path))
            sync(target.parent)
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary)


def sync(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk; some systems cannot do it for directories."""
    try:
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # Windows syncs only what it may write
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as problem:
        if problem.errno not in _NO_SYNC or not path.is_dir():
            raise


def make_directory(path: Path) -> None:
    """Make a directory and those above it, where they are not there yet."""
    with writing(str(path), "directory", "made"):
        path.mkdir(parents=True, exist_ok=True)


def known_ending(path: str | os.PathLike[str], formats: Sequence[str]) -> str:
    """The ending of a file that is to be written, one of ``formats``."""
    ending = Path(path).suffix.lower()
    if ending not in formats:
        raise InputError(f"{os.fspath(path)}: the ending must be one of {', '.join(formats)}, got {ending!r}")
    return ending


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
