"""Self-contained HTML pages for people: one look for every report; they load nothing."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def page(title: str, *sections: str, footer: Iterable[str] = ()) -> str:
    """A page of finished HTML sections; ``title`` and the paragraphs of the footer are plain text."""
    last = "".join(f"<p>{html.escape(words)}</p>" for words in footer)
    body = "\n".join(sections)
    return _PAGE.format(title=html.escape(title), body=body, footer=f"<footer>{last}</footer>" if last else "")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1, title: str = "") -> str:
    """A table of plain texts; the first ``texts`` columns are set as text, the others as numbers."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = (
            f"<{tag}{' class=text' if place < texts else ''}>{html.escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f"<tr>{''.join(marked)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead>{line('th', heads)}</thead><tbody>\n{body}\n</tbody></table>"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text; ``kind`` is "warning" or nothing."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(words)}</p>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }}
table {{ border-collapse: collapse; width: 100%; margin: 1.5rem 0; }}
th, td {{ text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #e3e6ea; }}
th {{ border-bottom: 2px solid #1b1f24; }}
caption {{ text-align: left; font-weight: bold; padding: .3rem .6rem; }}
th, td {{ white-space: nowrap; }}
th.text, td.text {{ text-align: left; white-space: normal; overflow-wrap: break-word; }}
svg {{ width: 100%; height: auto; }} img {{ max-width: 100%; }}
.grid {{ stroke: #e3e6ea; }} .bar {{ stroke: #56B4E9; stroke-width: 5; }} circle {{ fill: #0072B2; }}
.other {{ fill: none; stroke: #D55E00; stroke-width: 1.5; }}
.name {{ text-anchor: end; font-size: 13px; }} .tick {{ text-anchor: middle; font-size: 12px; fill: #57606a; }}
.warning {{ background: #fff8e1; padding: .5rem .8rem; border-left: 4px solid #E69F00; }}
footer {{ color: #57606a; border-top: 1px solid #e3e6ea; padding-top: 1rem; }}
</style></head><body>
<h1>{title}</h1>
{body}
{footer}
</body></html>
"""
