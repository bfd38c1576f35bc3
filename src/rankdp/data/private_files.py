"""Databases that only their owner can read, whatever the umask is.

SQLite creates a file with the mode that the umask leaves, mostly 0644, and gives ``-wal``, ``-shm`` and ``-journal``
the mode of the file they belong to. So the file is made here, empty and with mode 0600, before SQLite opens it.

A file that exists with a wider mode is tightened when it is opened by its owner. People who share a database must
therefore use it as one user: a file opened by another user keeps its mode.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

COMPANIONS = ("-wal", "-shm", "-journal")
_MAKING = threading.Lock()  # closing a file drops the locks that this process holds on it, SQLite's too


def make_private(path: str | os.PathLike[str]) -> None:
    """Make an empty file with mode 0600 unless the path exists; what exists is never opened."""
    with _MAKING, suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def tighten(path: str | os.PathLike[str]) -> None:
    """Take the rights of group and others from a database of this user and from its companions, or from a directory.

    A file of another user, or on a disk that cannot be written, stays as it is.
    """
    main = os.path.realpath(path)
    for file in (Path(main + end) for end in ("", *COMPANIONS)):
        with suppress(OSError):
            found = file.stat()
            if os.name == "posix" and found.st_uid == os.geteuid() and found.st_mode & 0o077:
                file.chmod(stat.S_IMODE(found.st_mode) & 0o700)
