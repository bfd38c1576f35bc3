"""Write a bill of materials (CycloneDX 1.6, JSON) for a lock file: every package, its version and its hashes.

python locks/sbom.py locks/run.txt > sbom.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill(lock: Path) -> dict[str, Any]:
    """The components of a hashed lock file, in its order."""
    text = lock.read_text("utf-8")
    found = list(_PINNED.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    components = []
    for match, end in zip(found, ends, strict=True):
        name, version = match.groups()
        hashes = [{"alg": "SHA-256", "content": digest} for digest in _HASH.findall(text, match.start(), end)]
        purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
        components.append(
            {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "hashes": hashes}
        )
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}


if __name__ == "__main__":
    print(json.dumps(bill(Path(sys.argv[1])), indent=1))
