"""The report: one page that loads nothing, or Markdown pages with pictures, from the same parts."""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rankdp.data.atomic import make_directory, write_whole
from rankdp.report.document import Table, page, paragraph
from rankdp.version import __version__
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import PAPERS, Claim, Size, TablePlan
from rankdp_papers.verdicts import Verdict, select

_TITLE = "The papers, reproduced"
_MARKS = {"holds": "✔ holds", "does not hold": "✘ does not hold", "undecided": "? undecided"}
_AUTHORS = {"paper": "the paper", "rankdp": "rankdp"}
_HEADS = ["figure", "claim", "by", "verdict", "number"]
_VERDICTS = (
    "A claim does not hold when the numbers contradict it beyond their errors, holds when they support it by two "
    "standard errors even where they are least in favour, and is undecided otherwise. Beside each verdict stands the "
    "number that is least in favour, ± its standard error; a number without one is exact. What the papers say in words "
    "such as small or matches is judged by a yardstick of ours: a failure there is no error of a paper. Our own "
    "statements are regression tests; they stand beside the figures and are not counted."
)
_LISTS = (
    ("Claims of the papers that do not hold", "claim", ("does not hold",)),
    ("Misprints: formulas that fail as they are printed", "misprint", ("does not hold",)),
    ("Qualitative words that fail by our yardsticks", "yardstick", ("does not hold",)),
    ("Undecided", None, ("undecided",)),
)
"""Title, kind of claim (any for None) and verdicts of the lists in the summary."""


Block = tuple[str, Any]
"""What stands on a page: ("title", text), ("heading", text), ("text", ...), ("warning", ...), ("table", (heads, rows)),
("picture", result)."""


def to_html(done: Sequence[Reproduced], size: Size) -> str:
    """All figures, the table of claims and a paragraph for each."""
    blocks = [*_summary(done, size)]
    for paper, members in _by_paper(done):
        blocks += [("title", PAPERS[paper]), *(block for result in members for block in _section(result, size))]
    blocks += [("title", "All claims"), ("table", (_HEADS, _claims(done)))]
    footer = [f"rankdp {__version__}: rankdp reproduce"]
    return page(_TITLE, *(_html(*block) for block in blocks), footer=footer)


def write_markdown(done: Sequence[Reproduced], size: Size, directory: Path) -> None:
    """An index with the table of claims and a page a paper, for the documentation."""
    make_directory(directory)
    toctree = "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(paper for paper, _ in _by_paper(done)) + "\n```"
    summary, verdicts, *failing = _summary(done, size)
    claims = [("title", "All claims"), ("table", (_HEADS, _claims(done)))]
    index = [summary, verdicts, ("text", _INDEX), ("text", toctree), *failing, *claims]
    _write_page(directory / "index.md", _TITLE, index)
    for paper, members in _by_paper(done):
        _write_page(
            directory / f"{paper}.md", PAPERS[paper], (block for one in members for block in _section(one, size))
        )
        for result in members:
            if "png" in result.pictures:
                write_whole(directory / _picture_name(result), result.pictures["png"])


def _write_page(path: Path, title: str, blocks: Iterable[Block]) -> None:
    text = [f"# {title}", *(_markdown(*block) for block in blocks)]
    write_whole(path, ("\n\n".join(text) + "\n").encode())


def _section(result: Reproduced, size: Size) -> Iterable[Block]:
    """One figure, table or erratum."""
    specification = result.specification
    yield "heading", specification.title
    yield "text", f"`{specification.name}`: {specification.source}."
    yield "text", " ".join(specification.setting.split())
    yield "text", _sizes(result, size)
    if result.missing:
        yield "warning", f"Left out: {result.missing}."
        return
    yield ("picture", result) if result.pictures else ("table", _rows(result))
    if specification.table is not None:
        yield "table", _pivot(specification.table, result)
    yield "table", (_HEADS[1:], [row[1:] for row in _claims([result])])
    yield "text", result.seen


def _sizes(result: Reproduced, size: Size) -> str:
    """The grid and the repetitions of this very run, and how numbers were found where there are several ways."""
    run = getattr(result.specification, size)
    points = [f"{name} {', '.join(map(_point, values))}" for name, values in run.grid.items()]
    often = f"{run.repetitions:,} repetitions" if run.repetitions > 1 else "nothing is repeated"
    words = "; ".join([f"Run here: {often}", *points])
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


def _summary(done: Sequence[Reproduced], size: Size) -> list[Block]:
    """How much was run, what became of the papers' claims, and what does not hold."""
    shown = [result for result in done if not result.missing]
    seconds = sum(result.seconds for result in done)
    grid = "at the papers' own sizes" if size == "full" else "on the quick grid"
    sentences = [f"Figures, tables and errata {grid}: {len(shown)}, in {seconds / 60:.1f} minutes of one core."]
    found = Counter((verdict.claim.kind, verdict.answer) for _, verdict in _papers_claims(done))
    kinds = (("claim", "The papers' claims"), ("yardstick", "Qualitative words, by our yardsticks"))
    for kind, what in kinds:
        holds, fails, open_ = (found[kind, answer] for answer in ("holds", "does not hold", "undecided"))
        if holds + fails + open_:
            sentences.append(f"{what}: {holds} hold, {fails} do not, {open_} are undecided.")
    if misprints := found["misprint", "does not hold"]:
        sentences.append(f"Misprints shown: {misprints}.")
    if len(shown) < len(done):
        sentences.append(f"Left out: {len(done) - len(shown)}; each says why.")
    blocks: list[Block] = [("text", " ".join(sentences)), ("text", _VERDICTS)]
    for title, wanted, answers in _LISTS:
        listed = [
            _claim_row(name, verdict)
            for name, verdict in _papers_claims(done)
            if verdict.answer in answers and wanted in (verdict.claim.kind, None)
        ]
        if listed:
            blocks += [("title", title), ("table", (_HEADS, listed))]
    return blocks


def _papers_claims(done: Iterable[Reproduced]) -> Iterator[tuple[str, Verdict]]:
    """The name of a figure and a verdict, for every statement that a paper makes."""
    return (
        (result.specification.name, verdict)
        for result in done
        for verdict in result.verdicts
        if verdict.claim.by == "paper"
    )


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


def _by_paper(done: Sequence[Reproduced]) -> list[tuple[str, list[Reproduced]]]:
    groups = [(paper, [one for one in done if one.specification.paper == paper]) for paper in PAPERS]
    return [(paper, members) for paper, members in groups if members]


_INDEX = """Run it yourself: `rankdp reproduce` (the quick grid), `rankdp reproduce --full` (the papers' own sizes),
`rankdp reproduce xu/figure2` (one of them). Tables come as Parquet and CSV, figures as PNG and SVG, and everything on
one page, `report.html`. Finished parts are kept: an interrupted run continues where it stopped.

The data sets of Xu's Figure 8 and Cai's Figures 4 to 7 are looked for in the directory that `RANKDP_DATA` names
([formats](../formats.md) says where to get them), and Xu's Figure 7 needs `rankdp[learn]`; without them these figures
say so, and the rest runs."""
