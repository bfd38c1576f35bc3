"""One report behind every command: records for CSV, facts for JSON, a page for HTML, a figure for pictures.

A result is described once, as a `Report`, and written in the format of the file's ending. Every format states the
guarantee: in the JSON, in a box of the page, below the picture, and for a CSV in PATH.release.json. All of them mark a
rehearsal as one.

A page starts with the result: a headline, then a table with one row per item (`rankdp.report.results`). How sure the
result is, what is promised and how it was computed are folded below. The page is self-contained HTML that loads nothing
and works in an iframe; CSV, JSON and a picture can be saved from it. `Report.fragment` is the same for a page that has
the stylesheets (`page/style.css` and `page/report.css`) already.

A spreadsheet runs text cells that begin like a formula. In a CSV such a cell gets an apostrophe in front, and so does a
cell that begins with an apostrophe: removing the first apostrophe gives the text back. Numbers stay numbers.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import html
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankdp.data.atomic import NewFile, known_ending
from rankdp.errors import Unsupported
from rankdp.report.plots import need_matplotlib, picture
from rankdp.report.results import ResultTable, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankdp.privacy.release import Release

PICTURES = (".png", ".svg", ".pdf")
PAGE_FILES = Path(__file__).parent / "page"
"""The stylesheets of all pages, and the script that sorts and filters tables."""
FORMATS = (".csv", ".json", ".html", *PICTURES)
SURE, PROMISED, COMPUTED = "How sure is this?", "What is promised", "How it was computed"
_LONG = 12  # rows of a table that a page with several of them shows at once
_PHONE = 5.2  # inches
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A result for readers, to be written in any of the formats.

    Parameters
    ----------
    title
        The heading.
    records
        One plain record per line of the CSV.
    columns
        The keys of the records in the CSV; by default those in the first record.
    facts
        Makes the content of the JSON; fractions become text, and numbers that are not finite become null.
    headline
        The result in one or two plain sentences; it is also the alternative text of table and picture.
    results
        One row per item, with ranks, estimates and intervals.
    tables
        Other tables for the page and the terminal; the page folds tables with a title.
    words
        Paragraphs below the table of a page, and below a picture.
    warnings
        Sentences that must not be missed: one note below the headline.
    command
        A line for a terminal, with which to go on.
    limits
        What the promise leaves out in addition to its own limits; shown with them.
    sure, computed
        Paragraphs that the page folds under "How sure is this?" and "How it was computed".
    figure
        Draws the picture; None where there is nothing to draw.
    failed
        Whether a command that reports this ends with exit code 1.
    release
        The release that was reported: every format states its guarantee and provenance.
    parts
        Reports that become sections of this one: their headlines, warnings and tables, on the page and the terminal.
    """

    title: str
    records: Sequence[Mapping[str, Any]]
    facts: Callable[[], Mapping[str, Any]]
    columns: Sequence[str] = ()
    headline: str = ""
    results: ResultTable | None = None
    tables: Sequence[Table] = ()
    words: Sequence[str] = ()
    warnings: Sequence[str] = ()
    command: str = ""
    limits: Sequence[str] = ()
    sure: Sequence[str] = ()
    computed: Sequence[str] = ()
    figure: Callable[[], Figure] | None = None
    failed: bool = False
    release: Release[Any] | None = None
    parts: Sequence[Report] = ()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the report in the format of the ending, all or nothing.

        Parameters
        ----------
        path
            A file that ends with .csv, .json, .html, .png, .svg or .pdf. A CSV of a release also gets
            PATH.release.json.
        """
        self.write_all([path])

    def write_all(self, paths: Iterable[str | PathLike[str]], leaves: Callable[[], None] = lambda: None) -> None:
        """Write several files; none appears in its place before all of them are on disk.

        Parameters
        ----------
        paths
            The files, as in ``write``.
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
        """The records, one per line, safe to open in a spreadsheet."""
        columns = list(self.columns or self.records[0])
        rows = [[_cell(record[name]) for name in columns] for record in self.records]
        returns = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
        text = io.StringIO(newline="")  # only quoting everything quotes a carriage return before Python 3.13
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
        writer.writerow(columns)
        writer.writerows(rows)
        return text.getvalue()

    def html(self) -> str:
        """A complete page that loads nothing."""
        return page(self.title, *self._sections(), self._saved())

    def fragment(self, downloads: Mapping[str, str] | None = None) -> str:
        """The report as an element of another page that has the stylesheets.

        Parameters
        ----------
        downloads
            The address of each link by its text; by default the page contains the files.
        """
        saved = self._saved() if downloads is None else _links(downloads)
        return f"<div class=report>{''.join([*self._sections(), saved])}</div>"

    def notebook(self) -> str:
        """The report as an element that brings its own style."""
        style = (PAGE_FILES / "report.css").read_text("utf-8")  # nested, so that it changes nothing else
        inside = f"<div class='report notebook'>{''.join(self._sections())}</div>"
        return f"<style>.rankdp {{\n{style}}}</style><div class=rankdp>{inside}</div>"

    def shown_tables(self) -> list[Table]:
        """Every table, the results first."""
        return [*([self.results.table()] if self.results else []), *self.tables]

    def _sections(self) -> list[str]:
        """All but the heading and the downloads; the warning of a rehearsal comes first."""
        links = (f"<a href='#part-{at}'>{html.escape(part.title)}</a>" for at, part in enumerate(self.parts, 1))
        return [
            _rehearsed(self.release),
            *self._result(),
            f"<nav aria-label=Sections><p>{' · '.join(links)}</p></nav>" if self.parts else "",
            *(
                f"<section id=part-{at}><h2>{html.escape(part.title)}</h2>"
                f"{''.join([*part._result(part=True), *part._folded()])}</section>"
                for at, part in enumerate(self.parts, 1)
            ),
            *self._folded(),
        ]

    def _result(self, part: bool = False) -> list[str]:
        """What is visible at once; a long table of one part among others is folded."""
        table = self.results.html(self.headline or self.title) if self.results else ""
        if part and self.results and len(self.results.rows) > _LONG:
            table = _fold(f"All {len(self.results.rows):,} {self.results.subject}s", table)
        return [
            paragraph(self.headline, "headline") if self.headline else "",
            paragraph(" ".join(self.warnings), "note") if self.warnings else "",
            table,
            *(table.html() for table in self.tables if not table.title),
            *map(paragraph, self.words),
            f"<pre>{html.escape(self.command)}</pre>" if self.command else "",
            self._drawn() if self.results is None else "",
        ]

    def _folded(self) -> list[str]:
        """What is visible after a click."""
        tables = [(table.title, dataclasses.replace(table, title="").html()) for table in self.tables if table.title]
        promised = []
        if self.release and self.release.guarantee:  # a page without a promise says so at the top
            origin = self.release.provenance
            made = f"Made by rankdp {origin.version} ({origin.mechanism}) on {origin.when[:10]}."
            promised = [*self.promised(), made]
        texts = [(SURE, self.sure), (PROMISED, promised), (COMPUTED, self.computed)]
        folded = [*tables, *((title, "".join(map(paragraph, words))) for title, words in texts if words)]
        return [_fold(title, inside) for title, inside in folded]

    def promised(self) -> list[str]:
        """The guarantee and what it leaves out, or that there is none."""
        if self.release is None:
            return []
        return [self.release.explain(), *(self.limits if self.release.guarantee else ())]

    def _saved(self) -> str:
        """Links to the records, the facts and the picture inside the page."""
        if not self.records:
            return ""
        files = {"CSV": ("text/csv", self.csv().encode()), "JSON": ("application/json", self.json().encode())}
        with suppress(Unsupported):  # no figure, or no matplotlib
            files["PNG"] = ("image/png", self.picture())
        return _links(
            {
                name: f"data:{kind};base64,{base64.b64encode(content).decode()}"
                for name, (kind, content) in files.items()
            },
            "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split()) or "report",
        )

    def picture(self, kind: str = "png") -> bytes:
        """The figure with the headline, the words, the warnings and the guarantee below it.

        Parameters
        ----------
        kind
            "png", "svg" or "pdf".
        """
        if self.figure is None:
            raise Unsupported(f"{self.title}: there is nothing to draw; choose .csv, .json or .html")
        promised = " ".join(self.promised())
        of_parts = [f"{part.title}: {words}" for part in self.parts for words in part.warnings]
        below = [*filter(None, [self.headline]), *self.words, *self.warnings, *of_parts, *filter(None, [promised])]
        return picture(self.figure(), kind, below, self.headline or self.title)

    def _drawn(self) -> str:
        """The figure as SVG, or why there is none; parts draw their own."""
        if self.figure is None or self.parts:
            return ""
        try:
            figure = self.figure()
            if len(figure.axes) == 1:  # as wide as a phone, so that its words can be read there
                figure.set_size_inches(_PHONE, 0.65 * _PHONE)
            drawn = picture(figure, "svg").decode()
        except Unsupported as refusal:
            return paragraph(f"No picture: {refusal}.")
        label = html.escape(self.headline or self.title, quote=True)
        return f'<div class=drawn role=img aria-label="{label}">{drawn[drawn.index("<svg") :]}</div>'


def _fold(title: str, inside: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def _rehearsed(release: Release[Any] | None) -> str:
    """The warning that a rehearsal promises nothing."""
    return paragraph(release.explain(), "warning") if release is not None and release.guarantee is None else ""


def _links(addresses: Mapping[str, str], file: str = "") -> str:
    """Links for saving a report; ``file`` is the name for files that the page contains."""
    if not addresses:
        return ""
    saved = {name: f' download="{file}.{name.lower()}"' if file else "" for name in addresses}
    links = (
        f'<a{saved[name]} href="{html.escape(address, quote=True)}">{html.escape(name)}</a>'
        for name, address in addresses.items()
    )
    return f"<p class=downloads>Download: {' · '.join(links)}</p>"


def page(title: str, *sections: str, footer: Iterable[str] = ()) -> str:
    """A page of finished HTML sections; ``title`` and the paragraphs of the footer are plain text."""
    last = "".join(f"<p class=small>{html.escape(words)}</p>" for words in footer)
    read = {name: (PAGE_FILES / name).read_text("utf-8") for name in ("style.css", "report.css", "report.js")}
    style, script = read["style.css"] + read["report.css"], read["report.js"]
    return _PAGE.format(
        title=html.escape(title),
        style=style,
        body="\n".join(section for section in sections if section),
        footer=f"<footer>{last}</footer>" if last else "",
        script=script,
        hash=base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode(),
    )


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text; ``kind`` is a class of the stylesheet."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(words)}</p>"


def check_outputs(paths: Iterable[str | PathLike[str]]) -> None:
    """Refuse files that no report could be written to, before any work is done or budget spent.

    Parameters
    ----------
    paths
        The files: each needs a known ending and a place where it can be written; pictures need matplotlib.
    """
    for path in paths:
        if known_ending(path, FORMATS) in PICTURES:
            need_matplotlib()
        NewFile(path).drop()


def _cell(value: Any) -> Any:
    """A number as it is (floats are rounded), or text that no spreadsheet mistakes for a formula."""
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
