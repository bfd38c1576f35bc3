"""The report: one page that loads nothing, or Markdown pages with pictures, from the same parts."""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rankdp.data.atomic import make_directory, write_whole
from rankdp.report.document import page, paragraph
from rankdp.report.results import Table
from rankdp.version import __version__
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import PAPERS, Claim, TablePlan, names
from rankdp_papers.verdicts import Verdict, select

_TITLE = "The papers, reproduced"
_MARKS = {"holds": "✔ holds", "does not hold": "✘ does not hold", "undecided": "? undecided"}
_AUTHORS = {"paper": "the paper", "rankdp": "rankdp"}
_ALL = "All claims"
_HEADS = ["figure", "claim", "by", "verdict", "number"]
_VERDICTS = (
    "A claim does not hold when the numbers contradict it beyond their errors, holds when they support it by two "
    "standard errors even where they are least in favour, and is undecided otherwise. Beside each verdict stands the "
    "number that is least in favour, ± its standard error; a number without one is exact. What the papers say in words "
    "such as small or matches is judged by a yardstick of ours: a failure there is no error of a paper. Our own "
    "statements are regression tests; they stand beside the figures and are not counted."
)
_LISTS = (
    ("Claims of the papers that do not hold", "the paper", "does not hold"),
    ("Misprints: formulas that fail as they are printed", "the paper, as printed", "does not hold"),
    ("Qualitative words that fail by our yardsticks", "the paper, our yardstick", "does not hold"),
    ("Undecided", "the paper", "undecided"),
    ("Qualitative words that are undecided", "the paper, our yardstick", "undecided"),
)
"""Title, author and verdict of the lists in the summary."""


Block = tuple[str, Any]
"""What stands on a page: ("title", text), ("heading", text), ("text", ...), ("warning", ...), ("table", (heads, rows)),
("picture", result)."""


def to_html(done: Sequence[Reproduced]) -> str:
    """All figures, the table of claims and a paragraph for each."""
    claims = _claims(done)
    blocks = [*_summary(claims, len({result.specification.name for result in done}))]
    for paper, title in PAPERS.items():
        sections = [block for result in done if result.specification.paper == paper for block in _section(result)]
        blocks += [("title", title), *sections] if sections else []
    blocks += [("title", _ALL), ("table", (_HEADS, claims))]
    footer = [f"rankdp {__version__}: rankdp reproduce"]
    return page(_TITLE, *(_html(*block) for block in blocks), footer=footer)


def write_markdown(done: Sequence[Reproduced], directory: Path) -> None:
    """Put the sections of these results into a report for the documentation: an index of claims, and a page a paper.

    Sections of other runs stay as they are, so that a report can be of several sizes; each says which.
    """
    make_directory(directory)
    written = {result.specification.name: result for result in done}
    order = [*dict.fromkeys([*names(), *written])]
    sections = {name: "\n\n".join(_markdown(*block) for block in _section(one)) for name, one in written.items()}
    found: list[str] = []
    for paper, title in PAPERS.items():
        page_of = directory / f"{paper}.md"
        all_of = {**_sections(page_of), **{name: text for name, text in sections.items() if name.startswith(paper)}}
        texts = [all_of[name] for name in order if name in all_of]
        if texts:
            found.append(paper)
            write_whole(page_of, "\n\n".join([f"# {title}", *texts, ""]).rstrip().encode() + b"\n")
    kept = [row for row in _rows_of(directory / "index.md") if row[0] in order and row[0] not in written]
    claims = sorted([*kept, *_claims(done)], key=lambda row: order.index(row[0]))
    summary, verdicts, *failing = _summary(claims, len({row[0] for row in claims}))
    toctree = "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(found) + "\n```"
    blocks = [summary, verdicts, ("text", _INDEX), ("text", toctree), *failing, ("title", _ALL)]
    blocks.append(("table", (_HEADS, claims)))
    index = [f"# {_TITLE}", *(_markdown(*block) for block in blocks)]
    write_whole(directory / "index.md", ("\n\n".join(index) + "\n").encode())
    for result in done:
        if "png" in result.pictures:
            write_whole(directory / _picture_name(result), result.pictures["png"])


def _sections(path: Path) -> dict[str, str]:
    """The sections of a page that is there already, by name."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = [part.strip() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]]
    return {part.split("`", 2)[1]: part for part in parts}


def _rows_of(index: Path) -> list[list[str]]:
    """The claims of a report that is there already: the table at the end of its index."""
    text = index.read_text(encoding="utf-8") if index.exists() else ""
    lines = text.partition(f"## {_ALL}\n\n")[2].splitlines()[2:]
    return [[cell.replace("\\|", "|") for cell in line[2:-2].split(" | ")] for line in lines]


def _section(result: Reproduced) -> Iterable[Block]:
    """One figure, table or erratum."""
    specification = result.specification
    yield "heading", specification.title
    yield "text", f"`{specification.name}`: {specification.source}."
    yield "text", " ".join(specification.setting.split())
    yield "text", _sizes(result)
    if result.missing:
        yield "warning", f"Left out: {result.missing}."
        return
    yield ("picture", result) if result.pictures else ("table", _rows(result))
    if specification.table is not None:
        yield "table", _pivot(specification.table, result)
    yield "table", (_HEADS[1:], [row[1:] for row in _claims([result])])
    yield "text", result.seen


def _sizes(result: Reproduced) -> str:
    """The grid and the repetitions of this very run, and how numbers were found where there are several ways."""
    run = getattr(result.specification, result.size)
    sizes = {**{name.replace("_", " "): [value] for name, value in run.settings.items()}, **run.grid}
    points = [f"{name} {', '.join(map(_point, values))}" for name, values in sizes.items()]
    often = f"{run.repetitions:,} repetitions" if run.repetitions > 1 else "nothing is repeated"
    full = run == result.specification.full  # which some quick runs are
    words = "; ".join([f"Run here, at the {'full' if full else 'quick'} size: {often}", *points])
    ways = Counter(row["by"] for row in result.rows if row["method"] == "integrated") if _named(result) else {}
    if ways:
        words += ". Integrated by " + ", ".join(f"{way} ({count} numbers)" for way, count in sorted(ways.items()))
    return f"{words}."


def _named(result: Reproduced) -> bool:
    return bool(result.rows) and "by" in result.rows[0]


def _point(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _html(kind: str, content: Any) -> str:
    if kind in ("title", "heading"):
        level = {"title": "h2", "heading": "h3"}[kind]
        return f"<{level}>{html.escape(content)}</{level}>"
    if kind == "table":
        heads, rows = content
        return Table(heads, rows, texts=len(heads) if heads[-1] == _HEADS[-1] else 0).html()
    if kind == "picture":
        coded = base64.b64encode(content.pictures["svg"]).decode()
        title = html.escape(content.specification.title, quote=True)
        return f'<img alt="{title}" src="data:image/svg+xml;base64,{coded}">'
    return paragraph(content.replace("`", ""), "warning" if kind == "warning" else "")


def _markdown(kind: str, content: Any) -> str:
    if kind in ("title", "heading"):
        return f"## {content}"
    if kind == "table":
        lines = [content[0], ["---"] * len(content[0]), *content[1]]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    if kind == "picture":
        return f"![{content.specification.title}]({_picture_name(content)})"
    return str(content)


def _picture_name(result: Reproduced) -> str:
    return f"{result.specification.name.replace('/', '-')}.png"


def _summary(claims: Sequence[Sequence[str]], figures: int) -> list[Block]:
    """How much was run, what became of the papers' claims, and what does not hold."""
    found = Counter((by, verdict) for _, _, by, verdict, _ in claims)
    sentences = [f"Figures, tables and errata: {figures}; each says the sizes and repetitions that it was run with."]
    for by, what in (
        ("the paper", "The papers' claims"),
        ("the paper, our yardstick", "Qualitative words, by our yardsticks"),
    ):
        holds, fails, open_ = (found[by, mark] for mark in _MARKS.values())
        if holds + fails + open_:
            sentences.append(f"{what}: {holds} hold, {fails} do not, {open_} are undecided.")
    if misprints := found["the paper, as printed", _MARKS["does not hold"]]:
        sentences.append(f"Misprints shown: {misprints}.")
    blocks: list[Block] = [("text", " ".join(sentences)), ("text", _VERDICTS)]
    for title, by, answer in _LISTS:
        if listed := [row for row in claims if (row[2], row[3]) == (by, _MARKS[answer])]:
            blocks += [("title", title), ("table", (_HEADS, listed))]
    return blocks


def _claims(done: Iterable[Reproduced]) -> list[list[str]]:
    return [_claim_row(result.specification.name, verdict) for result in done for verdict in result.verdicts]


def _claim_row(name: str, verdict: Verdict) -> list[str]:
    claim = verdict.claim
    text = f"{claim.text} ({claim.where})" if claim.where else claim.text
    return [name, text, _author(claim), _MARKS[verdict.answer], verdict.explain()]


def _author(claim: Claim) -> str:
    """Who says so; of a paper's words and formulas, what a failure would be."""
    kind = {"misprint": ", as printed", "yardstick": ", our yardstick"}.get(claim.kind, "")
    return _AUTHORS[claim.by] + kind


def _pivot(plan: TablePlan, result: Reproduced) -> tuple[list[str], list[list[str]]]:
    """The values of one column against those of another."""
    chosen = select(result.rows, plan.only)
    found = {(row[plan.rows], row[plan.columns]): _cell(row["value"]) for row in chosen}
    across = list(dict.fromkeys(column for _, column in found))
    lines = [
        [_cell(line), *(found.get((line, column), "") for column in across)]
        for line in dict.fromkeys(a for a, _ in found)
    ]
    return [plan.rows, *map(_cell, across)], lines


def _rows(one: Reproduced) -> tuple[list[str], list[list[str]]]:
    """The table itself, where there is no picture of it."""
    exact = not any(row["error"] for row in one.rows)
    heads = [name for name in one.rows[0] if not (exact and name == "error")]
    cells = [[_cell(row[name]) for name in heads] for row in one.rows]
    return ["standard error" if name == "error" else name for name in heads], cells


def _cell(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


_INDEX = """Run it yourself: `rankdp reproduce` (the quick grid), `rankdp reproduce --full` (the papers' own sizes, or
ours where a paper does not state them), `rankdp reproduce xu/figure2` (one of them). Tables come as Parquet and CSV,
figures as PNG and SVG, and everything on one page, `report.html`. Finished parts are kept: an interrupted run continues
where it stopped. Bands are two standard errors; lines that would coincide are set a little apart along x.

The data sets of Xu's Figure 8 and Cai's Figures 4 to 7 are looked for in the directory that `RANKDP_DATA` names
([formats](../formats.md) says where to get them), and Xu's Figure 7 needs `rankdp[learn]`; without them these figures
say so, and the rest runs."""
