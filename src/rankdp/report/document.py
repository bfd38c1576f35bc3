"""One report behind every command: records for CSV, facts for JSON, a page for HTML, a figure for pictures.

A result is described once, as a `Report`, and written in the format that a file's ending says. What is promised stands
with it in every format: in the JSON, in a box of the page, below the picture, and beside a CSV in PATH.release.json.
A rehearsal is called one in all of them.

A page is self-contained HTML that loads nothing, with the stylesheet that all pages share; its tables can be sorted
and filtered, and CSV and JSON be saved from it. A spreadsheet runs text cells that begin like a formula. In a CSV such
a cell gets an apostrophe in front, and so does one that begins with an apostrophe, so that taking one away gives the
text back. Numbers stay numbers.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankdp.data.atomic import NewFile, known_ending
from rankdp.errors import Unsupported
from rankdp.report.plots import need_matplotlib, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankdp.privacy.release import Release

PICTURES = (".png", ".svg", ".pdf")
PAGE_FILES = Path(__file__).parent / "page"
"""The stylesheet of all pages, and what sorts and filters tables."""
FORMATS = (".csv", ".json", ".html", *PICTURES)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: cells are finished texts.

    Parameters
    ----------
    heads
        The name of each column.
    rows
        The cells, row by row.
    texts
        How many of the first columns are set as text; the others are set as numbers.
    title
        What stands above it.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    title: str = ""

    def html(self) -> str:
        """The table as an element of a page."""

        def line(tag: str, cells: Sequence[str]) -> str:
            kinds = [" class=text"] * self.texts + [""] * (len(cells) - self.texts)
            marked = (f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=False))
            return f"<tr>{''.join(marked)}</tr>"

        body = "\n".join(line("td", row) for row in self.rows)
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        table = f"<table>{caption}<thead>{line('th', self.heads)}</thead><tbody>\n{body}\n</tbody></table>"
        return _scrolling(table, self.title or "Table")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A result for readers, to be written in any of the formats.

    Parameters
    ----------
    title
        The heading.
    records
        One plain record a line of the CSV.
    columns
        The keys of the records that the CSV has; those of the first record if not given.
    facts
        Makes the content of the JSON; fractions become text, and numbers that are not finite become null.
    tables
        Tables for the page and the terminal.
    words
        Paragraphs above the picture of a page and below a picture of its own.
    warnings
        Paragraphs that must not be missed.
    footer
        Paragraphs at the foot of a page.
    figure
        Draws the picture; None where there is nothing to draw.
    drawing
        The picture of the page as finished SVG; without it the page shows ``figure`` where matplotlib is installed.
    failed
        Whether a command that reports this ends with exit code 1.
    release
        What stands behind the numbers: its guarantee and provenance are stated in every format.
    parts
        Reports that are sections of this one: their warnings, drawing and tables, on the page and the terminal.
    """

    title: str
    records: Sequence[Mapping[str, Any]]
    facts: Callable[[], Mapping[str, Any]]
    columns: Sequence[str] = ()
    tables: Sequence[Table] = ()
    words: Sequence[str] = ()
    warnings: Sequence[str] = ()
    footer: Sequence[str] = ()
    figure: Callable[[], Figure] | None = None
    drawing: str = ""
    failed: bool = False
    release: Release[Any] | None = None
    parts: Sequence[Report] = ()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the report in the format that the ending says, all or nothing.

        Parameters
        ----------
        path
            A file that ends with .csv, .json, .html, .png, .svg or .pdf. A CSV gets PATH.release.json beside it where a
            release stands behind the report.
        """
        self.write_all([path])

    def write_all(self, paths: Iterable[str | PathLike[str]], leaves: Callable[[], None] = lambda: None) -> None:
        """Write several files, none of which is in place before all of them are on disk.

        Parameters
        ----------
        paths
            The files, as for ``write``.
        leaves
            Called when everything is ready, before the first byte is written (``rankdp.privacy.ledger.spending``).
        """
        targets = [(path, known_ending(path, FORMATS)) for path in paths]
        contents = [self._content(ending) for _, ending in targets]
        with ExitStack() as files:
            opened = [files.enter_context(NewFile(path)) for path, _ in targets]
            leaves()
            for file, content, (_, ending) in zip(opened, contents, targets, strict=True):
                file.write(content)
                if self.release and ending == ".csv":
                    file.promise(self.release.to_dict())

    def _content(self, ending: str) -> bytes:
        if ending in PICTURES:
            return self.picture(ending[1:])
        texts = {".csv": self.csv, ".json": lambda: self.json() + "\n", ".html": self.html}
        return texts[ending]().encode()

    def json(self) -> str:
        """The facts, with the guarantee and provenance of the release."""
        promised = self.release.to_dict() if self.release else {}
        return json.dumps(plain({**self.facts(), **promised}), indent=2, allow_nan=False)

    def csv(self) -> str:
        """The records, one a line, safe to open in a spreadsheet."""
        columns = list(self.columns or self.records[0])
        rows = [[_cell(record[name]) for name in columns] for record in self.records]
        returns = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
        text = io.StringIO(newline="")  # only quoting everything quotes a carriage return before Python 3.13
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
        writer.writerow(columns)
        writer.writerows(rows)
        return text.getvalue()

    def html(self) -> str:
        """A page of its own that loads nothing."""
        links = (f"<a href='#part-{at}'>{html.escape(part.title)}</a>" for at, part in enumerate(self.parts, 1))
        return page(
            self.title,
            *self._sections(),
            f"<nav aria-label=Sections><p>{' · '.join(links)}</p></nav>" if self.parts else "",
            *(
                f"<section id=part-{at}><h2>{html.escape(part.title)}</h2>{''.join(part._sections())}</section>"
                for at, part in enumerate(self.parts, 1)
            ),
            self._downloads(),
            footer=self.footer,
        )

    def _sections(self) -> list[str]:
        """All but the heading, the parts and what can be saved; that nothing is promised comes first."""
        promised, warned = self._promised(), "".join(map(paragraph, self.warnings))
        rehearsed = self.release is not None and self.release.guarantee is None
        return [
            promised if rehearsed else "",
            *(paragraph(words) for words in self.words),
            f"<div class=warning>{warned}</div>" if warned else "",
            _scrolling(self.drawing, f"Picture: {self.title}") if self.drawing else self._drawn(),
            "" if rehearsed else promised,
            *(table.html() for table in self.tables),
        ]

    def _promised(self) -> str:
        """What is promised, in a box; that nothing is, is a warning."""
        if self.release is None:
            return ""
        origin, words = self.release.provenance, paragraph(self.release.explain())
        made = paragraph(f"rankdp {origin.version}, {origin.mechanism}, {origin.when}", "small")
        if self.release.guarantee is None:
            return f"<div class=warning>{words}{made}</div>"
        return f"<section class=promise><h2>What is promised</h2>{words}{made}</section>"

    def _downloads(self) -> str:
        """The records and the facts inside the page, to be saved from it."""
        if not self.records:
            return ""
        name = "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split()) or "report"
        links = []
        for ending, kind, text in (("csv", "text/csv", self.csv()), ("json", "application/json", self.json())):
            coded = base64.b64encode(text.encode()).decode()
            address = f"data:{kind};charset=utf-8;base64,{coded}"
            links.append(f'<a download="{name}.{ending}" href="{address}">{ending.upper()}</a>')
        return f"<p>Download: {' · '.join(links)}</p>"

    def picture(self, kind: str = "png") -> bytes:
        """The figure with the warnings, the words and what is promised below it.

        Parameters
        ----------
        kind
            "png", "svg" or "pdf".
        """
        if self.figure is None:
            raise Unsupported(f"{self.title}: there is nothing to draw; choose .csv, .json or .html")
        promised = [self.release.explain()] if self.release else []
        of_parts = [f"{part.title}: {words}" for part in self.parts for words in part.warnings]
        return picture(self.figure(), kind, [*self.warnings, *of_parts, *self.words, *promised])

    def _drawn(self) -> str:
        """The figure as SVG, or why there is none; parts draw their own."""
        if self.figure is None or self.parts:
            return ""
        try:
            drawn = picture(self.figure(), "svg").decode()
        except Unsupported as refusal:
            return paragraph(f"No picture: {refusal}.")
        return _scrolling(f"<div class=drawn>{drawn[drawn.index('<svg') :]}</div>", f"Picture: {self.title}")


def page(title: str, *sections: str, footer: Iterable[str] = ()) -> str:
    """A page of finished HTML sections; ``title`` and the paragraphs of the footer are plain text."""
    last = "".join(f"<p class=small>{html.escape(words)}</p>" for words in footer)
    style, script = ((PAGE_FILES / name).read_text("utf-8") for name in ("style.css", "tables.js"))
    return _PAGE.format(
        title=html.escape(title),
        style=style,
        body="\n".join(section for section in sections if section),
        footer=f"<footer>{last}</footer>" if last else "",
        script=script,
        hash=base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode(),
    )


def _scrolling(content: str, label: str) -> str:
    """Something that may be wider than a phone, which then scrolls by itself, by keys too."""
    return f'<div class=wide role=region tabindex=0 aria-label="{html.escape(label, quote=True)}">{content}</div>'


def shown_ranks(ranks: Iterable[int]) -> list[str]:
    """Ranks as tables show them: "2=" for a rank that several share."""
    known = list(ranks)
    times = Counter(known)
    return [f"{rank}{'=' * (times[rank] > 1)}" for rank in known]


def rank_span(low: int, high: int) -> str:
    """The interval of a rank: "2 – 5", or "2" alone."""
    return str(low) if low == high else f"{low} – {high}"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text; ``kind`` is "warning" or nothing."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(words)}</p>"


def check_outputs(paths: Iterable[str | PathLike[str]]) -> None:
    """Refuse files that no report could be written to, before any work is done or budget spent.

    Parameters
    ----------
    paths
        The files that are asked for: each must have a known ending and be possible to make; pictures need matplotlib.
    """
    for path in paths:
        if known_ending(path, FORMATS) in PICTURES:
            need_matplotlib()
        NewFile(path).drop()


def _cell(value: Any) -> Any:
    """A number as it is, rounded where it is a float; text that no spreadsheet takes for a formula."""
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value) if isinstance(value, Fraction) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULAS) else text


def plain(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{hash}'">
<title>{title}</title>
<style>
{style}
</style></head><body><main class=report>
<h1>{title}</h1>
{body}
{footer}
</main>
<script type="module">
{script}
</script>
</body></html>
"""
