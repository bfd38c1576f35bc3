"""``reproduce``: from names to tables, pictures and verdicts in a directory.

OUTPUT/xu/figure2.parquet .csv .png .svg    the tidy table and its picture
OUTPUT/claims.csv                           every claim and what became of it
OUTPUT/report.html                          all of it on one page that loads nothing
OUTPUT/cache/                               finished cells (see ``runner``)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from rankdp.data.atomic import make_directory, write_whole
from rankdp_papers.documents import to_html
from rankdp_papers.pictures import draw, image
from rankdp_papers.results import Reproduced
from rankdp_papers.runner import Progress, Result, run
from rankdp_papers.specification import Size, find
from rankdp_papers.verdicts import judge


def reproduce(
    wanted: Sequence[str] = (),
    output: str | Path = "reproduction",
    *,
    size: Size = "quick",
    jobs: int | None = None,
    progress: Progress = lambda done, total, name: None,
    finished: Callable[[Reproduced], None] = lambda one: None,
) -> list[Reproduced]:
    """Run these papers, figures or files (all for none) and write everything to ``output``, page and claims last."""
    specifications, home = find(wanted), Path(output)
    done: dict[str, Reproduced] = {}
    for result in run(specifications, size, home / "cache", jobs, progress):
        one = _reproduced(result)
        _write(one, home)
        done[one.specification.name] = one
        finished(one)
    ordered = [done[one.name] for one in specifications]
    write_whole(home / "claims.csv", _claims_csv(ordered).encode())
    write_whole(home / "report.html", to_html(ordered, size).encode())
    return ordered


def _reproduced(result: Result) -> Reproduced:
    one = result.specification
    if result.missing:
        return Reproduced(one, [], result.seconds, result.missing, [], {})
    pictures = {}
    if one.figure is not None:
        figure = draw(one.figure, result.rows)
        pictures = {kind: image(figure, kind) for kind in ("png", "svg")}
    verdicts = [judge(claim, result.rows) for claim in one.claims]
    return Reproduced(one, result.rows, result.seconds, None, verdicts, pictures)


def _write(one: Reproduced, home: Path) -> None:
    if one.missing:
        return
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    target = home / one.specification.name
    make_directory(target.parent)
    table = pa.Table.from_pylist(list(one.rows))
    for ending, writer in ((".parquet", parquet.write_table), (".csv", arrow_csv.write_csv)):
        content = io.BytesIO()
        writer(table, content)
        write_whole(target.with_suffix(ending), content.getvalue())
    for kind, picture in one.pictures.items():
        write_whole(target.with_suffix(f".{kind}"), picture)


def _claims_csv(done: Sequence[Reproduced]) -> str:
    text = io.StringIO()
    plain = [{"figure": one.specification.name, **claim} for one in done for claim in one.to_dict()["claims"]]
    heads = ["figure", "text", "by", "where", "verdict", "what", "number", "standard_error", "mean", "at"]
    writer = csv.DictWriter(text, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return text.getvalue()
