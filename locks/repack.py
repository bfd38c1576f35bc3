"""Write an sdist again with nothing of the machine that built it: files in order of name, one time, no owner.

SOURCE_DATE_EPOCH=1700000000 python locks/repack.py dist/*.tar.gz

Setuptools takes SOURCE_DATE_EPOCH for wheels only.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def repack(path: Path, seconds: int) -> None:
    """Replace the archive by one whose bytes follow from the names and contents of its files."""
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, seconds
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=seconds))


if __name__ == "__main__":
    repack(Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"]))
