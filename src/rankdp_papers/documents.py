"""The report: one page that loads nothing, or Markdown pages with pictures, from the same parts."""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rankdp.data.atomic import make_directory, write_whole
from rankdp.report import page as pages
from rankdp.version import __version__
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import PAPERS, Size

_TITLE = "The papers, reproduced"
_MARKS = {"holds": "✔ holds", "does not hold": "✘ does not hold", "undecided": "? undecided"}
_AUTHORS = {"paper": "the paper", "rankdp": "rankdp"}
_HEADS = ["figure", "claim", "by", "verdict", "number"]
_LONGEST_TABLE = 60
_VERDICTS = (
    "A claim does not hold when the numbers contradict it beyond their errors, holds when they support it and nothing "
    "contradicts, and is undecided when the errors are too large to tell. Beside each verdict stands the number that "
    "is least in favour, ± its standard error; a number without one is exact."
)


def to_html(done: Sequence[Reproduced], size: Size) -> str:
    """All figures, the table of claims and a paragraph for each."""
    sections = [*map(pages.paragraph, (_summary(done, size), _VERDICTS))]
    if failing := _failing(done):
        sections += ["<h2>What does not hold, or is undecided</h2>", pages.table(_HEADS, failing, texts=5)]
    for paper, members in _by_paper(done):
        sections.append(f"<h2>{html.escape(PAPERS[paper])}</h2>")
        for one in members:
            sections.extend(_section(one))
    sections += ["<h2>All claims</h2>", pages.table(_HEADS, _claims(done), texts=5)]
    return pages.page(_TITLE, *sections, footer=[f"rankdp {__version__}: rankdp reproduce"])


def _section(one: Reproduced) -> Iterable[str]:
    spec = one.specification
    yield f"<h3>{html.escape(spec.title)}</h3>"
    yield pages.paragraph(f"{spec.name} · {spec.source}")
    yield pages.paragraph(_one_line(spec.setting))
    if one.missing:
        yield pages.paragraph(f"Left out: {one.missing}.", "warning")
        return
    if "svg" in one.pictures:
        coded = base64.b64encode(one.pictures["svg"]).decode()
        yield f'<img alt="{html.escape(spec.title, quote=True)}" src="data:image/svg+xml;base64,{coded}">'
    else:
        yield pages.table(*_rows(one), texts=0)
    yield pages.table(_HEADS[1:], (row[1:] for row in _claims([one])), texts=4)
    yield pages.paragraph(_one_line(spec.seen))


def write_markdown(done: Sequence[Reproduced], size: Size, directory: Path) -> None:
    """An index with the table of claims and a page a paper, for the documentation."""
    make_directory(directory)
    text = [f"# {_TITLE}", _summary(done, size), _VERDICTS, _INDEX]
    text.append("```{toctree}\n:maxdepth: 1\n\n" + "\n".join(paper for paper, _ in _by_paper(done)) + "\n```")
    if failing := _failing(done):
        text += ["## What does not hold, or is undecided", _markdown_table(_HEADS, failing)]
    text += ["## All claims", _markdown_table(_HEADS, _claims(done))]
    write_whole(directory / "index.md", ("\n\n".join(text) + "\n").encode())
    for paper, members in _by_paper(done):
        parts = [f"# {PAPERS[paper]}"]
        for one in members:
            parts.extend(_markdown_section(one))
            if "png" in one.pictures:
                write_whole(directory / _picture_name(one), one.pictures["png"])
        write_whole(directory / f"{paper}.md", ("\n\n".join(parts) + "\n").encode())


def _markdown_section(one: Reproduced) -> Iterable[str]:
    spec = one.specification
    yield f"## {spec.title}"
    yield f"`{spec.name}`: {spec.source}."
    yield _one_line(spec.setting)
    if one.missing:
        yield f"Left out: {one.missing}."
        return
    if "png" in one.pictures:
        yield f"![{spec.title}]({_picture_name(one)})"
    else:
        yield _markdown_table(*_rows(one))
    yield _markdown_table(_HEADS[1:], [row[1:] for row in _claims([one])])
    yield _one_line(spec.seen)


def _picture_name(one: Reproduced) -> str:
    return f"{one.specification.name.replace('/', '-')}.png"


def _summary(done: Sequence[Reproduced], size: Size) -> str:
    """How much was run, and what became of the papers' claims and of ours."""
    shown = [one for one in done if not one.missing]
    seconds = sum(one.seconds for one in done)
    grid = "at the papers' own sizes" if size == "full" else "on the quick grid"
    sentences = [f"Figures, tables and errata {grid}: {len(shown)}, in {seconds / 60:.1f} minutes of one core."]
    for by, whose in (("paper", "The papers'"), ("rankdp", "Our own")):
        answers = Counter(verdict.answer for one in shown for verdict in one.verdicts if verdict.claim.by == by)
        if answers:
            sentences.append(
                f"{whose} claims: {answers['holds']} hold, {answers['does not hold']} do not, "
                f"{answers['undecided']} are undecided."
            )
    if len(shown) < len(done):
        sentences.append(f"Left out: {len(done) - len(shown)}; each says why.")
    return " ".join(sentences)


def _claims(done: Iterable[Reproduced]) -> list[list[str]]:
    return [
        [
            one.specification.name,
            f"{verdict.claim.text} ({verdict.claim.where})" if verdict.claim.where else verdict.claim.text,
            _AUTHORS[verdict.claim.by],
            _MARKS[verdict.answer],
            verdict.explain(),
        ]
        for one in done
        for verdict in one.verdicts
    ]


def _failing(done: Iterable[Reproduced]) -> list[list[str]]:
    return [row for row in _claims(done) if row[3] != _MARKS["holds"]]


def _rows(one: Reproduced) -> tuple[list[str], list[list[str]]]:
    """The table itself, where there is no picture of it."""
    exact = not any(row["error"] for row in one.rows)
    heads = [name for name in one.rows[0] if not (exact and name == "error")]
    cells = [[_cell(row[name]) for name in heads] for row in one.rows[:_LONGEST_TABLE]]
    return ["standard error" if name == "error" else name for name in heads], cells


def _cell(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _by_paper(done: Sequence[Reproduced]) -> list[tuple[str, list[Reproduced]]]:
    groups = [(paper, [one for one in done if one.specification.paper == paper]) for paper in PAPERS]
    return [(paper, members) for paper, members in groups if members]


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_INDEX = """Run it yourself: `rankdp reproduce` (the quick grid), `rankdp reproduce --full` (the papers' own sizes),
`rankdp reproduce xu/figure2` (one of them). Tables come as Parquet and CSV, figures as PNG and SVG, and everything on
one page, `report.html`. Finished parts are kept: a run that was interrupted goes on where it stopped.

On two cores the quick grid takes between 6 and 8 minutes. The papers' own sizes take 26 minutes without `xu/figure7`
and give the same verdicts. `xu/figure7` was not run whole at its own size: by what a part of it took, it takes about an
hour.

The data sets of Xu's Figure 8 and Cai's Figures 4 to 7 are looked for in the directory that `RANKDP_DATA` names
([formats](../formats.md) says where to get them), and Xu's Figure 7 needs `rankdp[learn]`; without them these figures
say so, and the rest runs."""
