"""Every definition, algorithm, lemma, theorem, remark, figure and data set of the papers: where it is and its verdict.

``coverage.toml`` lists them. Where it gives no verdict, the verdict follows from the claims of the figure that checks
the item, those whose "where" names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rankdp.errors import InputError
from rankdp_papers.results import Reproduced
from rankdp_papers.specification import HOME, PAPERS
from rankdp_papers.verdicts import Verdict


class Item(NamedTuple):
    """One item of a paper."""

    item: str
    what: str
    where: str
    checked_by: str
    verdict: str


def items(paper: str) -> list[Item]:
    """The items of a paper, in the order of the paper."""
    listed = tomllib.loads((HOME / "coverage.toml").read_text(encoding="utf-8"))
    return [Item(*row) for row in listed[paper]]


def verdict_of(item: Item, done: Mapping[str, Reproduced]) -> str:
    """What is listed, or what became of the claims about the item."""
    if item.verdict or item.checked_by not in done:
        return item.verdict or "not run"
    about = [one for one in done[item.checked_by].verdicts if one.claim.by == "paper" and _names(item.item, one)]
    if not about:
        raise InputError(f"coverage: no claim of {item.checked_by} is about {item.item}")
    return "; ".join(dict.fromkeys(_words(one) for one in about))


def page(every: Sequence[Reproduced]) -> str:
    """The Markdown of the coverage table."""
    done = {one.specification.name: one for one in every}
    parts = [
        "# Coverage",
        "What the three papers say, item by item, where it is in rankdp, what checks it, and the verdict.",
    ]
    for paper, title in PAPERS.items():
        lines = [["item", "what", "in rankdp", "checked by", "verdict"], ["---"] * 5]
        for one in items(paper):
            where = (
                ", ".join(f"`{part}`" if "." in part else part for part in one.where.split(", ")) if one.where else ""
            )
            lines.append(
                [one.item, one.what, where, f"`{one.checked_by}`" if one.checked_by else "", verdict_of(one, done)]
            )
        parts += [f"## {title}", "\n".join("| " + " | ".join(line) + " |" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _names(item: str, verdict: Verdict) -> bool:
    """Whether the claim's "where" names the item: "Lemma 2", or one of "Propositions 2.5 and 2.7"."""
    kind, number = item.split(" ", 1)
    where = verdict.claim.where
    exact = re.search(rf"\b{re.escape(kind)} {re.escape(number)}(?![\d.]*\d|\()", where)
    listed = re.search(rf"\b{kind}s [\d.,() and]*?(?<![\d.]){re.escape(number)}(?![\d.]*\d)", where)
    return bool(exact or listed)


def _words(verdict: Verdict) -> str:
    kind = {"misprint": ", as printed", "yardstick": ", by our yardstick"}.get(verdict.claim.kind, "")
    return f"{verdict.answer}{kind}"
