"""The guarantee beside the data: TARGET.release.json, never next to data it was not made for."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any, Self

from rankdp.errors import system_problem
from rankdp.privacy.release import Release

SIDECAR = ".release.json"


class Sidecar:
    """The release's JSON file, written out before the data file takes its name and named after it.

    The old sidecar is removed in between, so that at no moment a guarantee stands beside data it was not made for.
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self._target = Path(os.fspath(target) + SIDECAR)
        self._temporary = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}.tmp")

    def __enter__(self) -> Self:
        return self

    def write(self, release: Release[Any]) -> None:
        """Put the release's facts on disk under a temporary name."""
        try:
            with self._temporary.open("w", encoding="utf-8") as file:
                json.dump(release.to_dict(), file, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            self._target.unlink(missing_ok=True)
        except OSError as problem:
            raise system_problem(str(self._target), problem, "written") from None

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._temporary.replace(self._target)
        else:
            self._temporary.unlink(missing_ok=True)
