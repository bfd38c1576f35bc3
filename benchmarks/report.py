"""Tables that read well on a terminal and in Markdown, and the document that holds them."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """Text cells under a header. A last column of ``ok`` and ``missed`` says which targets are met."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        rule = [":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]
        shown = [f" {' | '.join(_aligned(line, widths))} " for line in lines]
        return "\n".join(f"|{line}|" for line in [shown[0], "|".join(rule), *shown[1:]])

    def count(self, word: str) -> int:
        """How many rows end with ``word``."""
        return sum(row[-1] == word for row in self.rows)


def _aligned(line: tuple[str, ...], widths: list[int]) -> list[str]:
    """The first cell to the left, the others to the right."""
    return [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]


def verdict(met: bool) -> str:
    return "ok" if met else "missed"


def rate(per_second: float) -> str:
    """Three significant digits: 12.7 M/s, 513 k/s, 17.4 /s."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if per_second >= size:
            return f"{digits(per_second / size)}{letter}/s"
    return f"{digits(per_second)} /s"


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{digits(ratio)} x"


def machine() -> str:
    """The processor and the versions that the numbers depend on, and nothing else about the machine."""
    versions = ", ".join(f"{name} {version(name.lower())}" for name in ("NumPy", "Numba", "PyArrow"))
    return f"{os.cpu_count()} cores, {_processor()}; Python {platform.python_version()}, {versions}."


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def write(document: Path, results: dict[str, str]) -> None:
    """Put each result between its two marks, ``<!-- begin NAME -->`` and ``<!-- end NAME -->``, where it has them."""
    text = document.read_text("utf-8")
    for name, result in results.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            print(f"{document} has no {begin.strip()} and {end}: it goes without the results of {name}")
            continue
        text = f"{before}{begin}\n{result}\n\n{end}{after}"
    document.write_text(text, "utf-8")
