"""The report: one page that loads nothing, or Markdown pages with pictures, from the same parts.

A section shows the paper's figure first, as the paper draws it, then what we see and the claims of the paper with their
verdicts; then our own lines and statements. Settings are folded away, long tables are linked.
"""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankdp.data.atomic import write_whole
from rankdp.report.document import page, paragraph
from rankdp.report.results import Table
from rankdp.version import __version__
from rankdp_papers import coverage
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import PAPERS, Claim, TablePlan
from rankdp_papers.tables import file_name, keep, kept, to_csv
from rankdp_papers.verdicts import Verdict, select

_TITLE = "The papers, reproduced"
_MARKS = {"holds": "✔ holds", "does not hold": "✘ does not hold", "undecided": "? undecided"}
_HEADS = ["claim of the paper", "verdict", "number"]
_LONGEST = 12  # rows of a table on a page; longer ones are linked
_LISTED = 5  # values of a grid
_VERDICTS = (
    "One rule judges every claim. A claim holds when the numbers are inside it by two standard errors at every point, "
    "does not hold when they are outside by two standard errors at some point, and is undecided otherwise. With "
    "several points the second limit is widened (Bonferroni), so that chance alone breaks a true claim as rarely as "
    "with one. A trend holds when its two ends differ by two standard errors and no two points contradict it. The "
    "number next to a verdict is the least favourable one, ± its standard error; a number without an error is exact. "
    "Where a verdict needs a limit that the paper does not give (small, matches, large enough, to within), the limit "
    "is a yardstick of ours: a failure there is not an error of the paper. Our own statements are not counted."
)
_LISTS = (
    ("Claims of the papers that do not hold", "claim", "does not hold"),
    ("Misprints: formulas that fail as printed", "misprint", "does not hold"),
    ("Qualitative words that fail by our yardsticks", "yardstick", "does not hold"),
    ("Undecided claims", "claim", "undecided"),
    ("Qualitative words that are undecided", "yardstick", "undecided"),
)
"""Title, kind and verdict of the lists in the summary."""

Block = tuple[str, Any]
"""The content of a page: ("title", text), ("heading", text), ("text", ...), ("warning", ...), ("folded", ...),
("table", (heads, rows)), ("picture", (result, "figure" or "ours"))."""


def to_html(done: Sequence[Reproduced]) -> str:
    """All figures, with the claims that fail in front."""
    blocks = _summary(done)
    for paper, title in PAPERS.items():
        sections = [block for result in done if result.specification.paper == paper for block in _section(result)]
        blocks += [("title", title), *sections] if sections else []
    footer = [f"rankdp {__version__}: rankdp reproduce"]
    return page(_TITLE, *(_html(*block) for block in blocks), footer=footer)


def write_markdown(done: Sequence[Reproduced], directory: Path) -> None:
    """Keep these tables in DIRECTORY/tables and write all pages from the tables there.

    Figures that were not run now come from the tables of earlier runs, which may be of another size; each says which.
    """
    keep(done, directory / "tables")
    ran = {one.specification.name: one for one in done if one.missing is None}
    every = {one.specification.name: one for one in kept(directory / "tables")} | ran
    for name, text in pages(list(every.values())).items():
        write_whole(directory / name, text.encode())
    for result in every.values():
        for name in result.plans:
            write_whole(directory / _picture_name(result, name), result.pictures[f"{name}.png"])


def pages(every: Sequence[Reproduced]) -> dict[str, str]:
    """The Markdown of the index, each paper's page and the coverage table, and the list of claims, by file name."""
    written = {}
    for paper, title in PAPERS.items():
        of_paper = [one for one in every if one.specification.paper == paper]
        if of_paper:
            counted: list[Block] = [("text", f"{_counts(of_paper)} How claims are judged: [the papers](index.md).")]
            blocks = [*counted, *(block for one in of_paper for block in _section(one))]
            written[f"{paper}.md"] = "\n\n".join([f"# {title}", *(_markdown(*block) for block in blocks)]) + "\n"
    contents = "```{toctree}\n:maxdepth: 1\n\n" + "\n".join([*map(_stem, written), "coverage"]) + "\n```"
    summary = _summary(every)
    blocks = [*summary[:2], ("text", _INDEX), ("text", contents), *summary[2:]]
    written["index.md"] = "\n\n".join([f"# {_TITLE}", *(_markdown(*block) for block in blocks)]) + "\n"
    claims = [{"figure": one.specification.name, **claim} for one in every for claim in one.to_dict()["claims"]]
    written["coverage.md"] = coverage.page(every)
    listed = [{name: _rounded(value) for name, value in claim.items()} for claim in claims]
    return {**written, "tables/claims.csv": to_csv(listed)}


def _rounded(value: Any) -> Any:
    """Six digits: the last ones of a sum depend on the machine."""
    return "" if value is None else float(f"{value:.6g}") if isinstance(value, float) else value


def _stem(name: str) -> str:
    return name.partition(".")[0]


def _section(result: Reproduced) -> Iterable[Block]:
    """One figure, table or erratum."""
    specification = result.specification
    yield "heading", specification.title
    yield "text", f"`{specification.name}`: {specification.source}."
    if result.missing:
        yield "warning", f"Left out: {result.missing}."
        return
    if "figure" in result.plans:
        yield "picture", (result, "figure")
    elif 0 < len(result.rows) <= _LONGEST:
        yield "table", _rows(result)
    if specification.table is not None and result.rows:
        yield "table", _pivot(specification.table, result)
    if result.seen:
        yield "text", result.seen
    for by in ("paper", "rankdp"):
        if by == "rankdp" and "ours" in result.plans:
            yield "picture", (result, "ours")
        rows = [_claim_row(verdict) for verdict in result.verdicts if verdict.claim.by == by]
        if rows and by == "paper":
            yield "table", (_HEADS, rows)
        elif rows:
            yield (
                "table",
                (["statement of ours", "verdict"], [_our_row(one) for one in result.verdicts if one.claim.by == by]),
            )
    settings = " ".join(specification.setting.split())
    table = f" Table: [all numbers](tables/{file_name(specification.name)})." if result.rows else ""
    yield "folded", f"{settings} {_sizes(result)}{table}"


def _sizes(result: Reproduced) -> str:
    """The grid and the repetitions of this run."""
    run = getattr(result.specification, result.size)
    sizes = {**{name.replace("_", " "): [value] for name, value in run.settings.items()}, **run.grid}
    points = [f"{name} {_points(values)}" for name, values in sizes.items()]
    often = f"{run.repetitions:,} repetitions" if run.repetitions > 1 else "nothing is repeated"
    full = run == result.specification.full  # which some quick runs are
    return "; ".join([f"Run at the {'full' if full else 'quick'} size: {often}", *points]) + "."


def _points(values: Sequence[object]) -> str:
    """A short list in full, a long one by its ends."""
    if len(values) <= _LISTED:
        return ", ".join(map(_point, values))
    return f"{_point(values[0])} to {_point(values[-1])} ({len(values)} values)"


def _point(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _html(kind: str, content: Any) -> str:
    if kind in ("title", "heading"):
        level = {"title": "h2", "heading": "h3"}[kind]
        return f"<{level}>{html.escape(content)}</{level}>"
    if kind == "table":
        heads, rows = content
        return Table(heads, rows, texts=len(heads) if {"verdict", "claim"} & set(heads) else 0).html()
    if kind == "picture":
        result, name = content
        coded = base64.b64encode(result.pictures[f"{name}.svg"]).decode()
        return f'<img alt="{html.escape(_alternative(*content), quote=True)}" src="data:image/svg+xml;base64,{coded}">'
    if kind == "folded":
        words, _, _ = content.partition(" Table: [")
        return f"<details><summary>Settings</summary>{paragraph(words)}</details>"
    return paragraph(content.replace("`", ""), "warning" if kind == "warning" else "")


def _markdown(kind: str, content: Any) -> str:
    if kind in ("title", "heading"):
        return f"## {content}"
    if kind == "table":
        lines = [content[0], ["---"] * len(content[0]), *content[1]]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    if kind == "picture":
        return f"![{_alternative(*content)}]({_picture_name(*content)})"
    if kind == "folded":
        return f"<details><summary>Settings</summary>\n\n{content}\n\n</details>"
    return str(content)


def _alternative(result: Reproduced, name: str) -> str:
    """What a picture shows, for readers who cannot see it."""
    return "The same with our own lines" if name == "ours" else result.specification.title


def _picture_name(result: Reproduced, name: str) -> str:
    return f"{result.specification.name.replace('/', '-')}{'-ours' if name == 'ours' else ''}.png"


def _summary(done: Sequence[Reproduced]) -> list[Block]:
    """What became of the papers' claims, by which rule, and what does not hold."""
    blocks: list[Block] = [("text", _counts(done)), ("text", _VERDICTS)]
    for title, kind, answer in _LISTS:
        listed = [
            [one.specification.name, *(row[0], row[2])]
            for one in done
            for verdict in one.verdicts
            if verdict.claim.by == "paper" and (verdict.claim.kind, verdict.answer) == (kind, answer)
            for row in [_claim_row(verdict)]
        ]
        if listed:
            blocks += [("title", title), ("table", (["figure", "claim", "number"], listed))]
    return blocks


def _counts(done: Sequence[Reproduced]) -> str:
    """How many claims hold."""
    found = Counter((v.claim.kind, str(v.answer)) for one in done for v in one.verdicts if v.claim.by == "paper")
    sentences = []
    for kind, what in (("claim", "Claims of the paper"), ("yardstick", "Qualitative words, by our yardsticks")):
        holds, fails, open_ = (found[kind, answer] for answer in _MARKS)
        if holds + fails + open_:
            sentences.append(f"{what}: {holds} hold, {fails} do not hold, {open_} undecided.")
    if misprints := found["misprint", "does not hold"]:
        sentences.append(f"Misprints shown: {misprints}.")
    return " ".join(sentences)


def _claim_row(verdict: Verdict) -> list[str]:
    claim = verdict.claim
    text = f"{claim.text} ({claim.where})" if claim.where else claim.text
    return [text + _kind(claim), _MARKS[verdict.answer], replace(verdict, mean=None).explain()]


def _our_row(verdict: Verdict) -> list[str]:
    """A statement of ours; its number only where it does not hold (all numbers are in claims.csv)."""
    mark = _MARKS[verdict.answer]
    return [verdict.claim.text, mark if verdict.answer == "holds" else f"{mark}: {verdict.explain()}"]


def _kind(claim: Claim) -> str:
    """Of a paper's words and formulas: what a failure would be."""
    if claim.by != "paper":
        return ""
    return {"misprint": " [as printed]", "yardstick": " [our yardstick]"}.get(claim.kind, "")


def _pivot(plan: TablePlan, result: Reproduced) -> tuple[list[str], list[list[str]]]:
    """The values of one column against another."""
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
ours where a paper gives none), `rankdp reproduce xu/figure2` (one figure). Tables are written as Parquet and CSV,
figures as PNG and SVG, and everything on one page, `report.html`. Finished parts are kept: an interrupted run continues
where it stopped. In the pictures, bands are two standard errors, and lines that would coincide are moved apart.
All claims with their verdicts: [claims.csv](tables/claims.csv). Every definition, lemma, theorem, remark, figure and
data set of the papers, and where it is checked: [coverage](coverage.md).

Xu's Figure 8 and Cai's Figures 4 to 7 need data sets in the directory that `RANKDP_DATA` names
([formats](../formats.md) says where to get them), and Xu's Figure 7 needs `rankdp[learn]`. Without them these figures
are skipped with a message."""
