"""``reproduce``: from names to tables, pictures and verdicts in a directory.

OUTPUT/xu/figure2.parquet .csv .png .svg    the tidy table and the paper's picture of it
OUTPUT/xu/figure2-ours.png .svg             a second picture, with lines that the paper does not have
OUTPUT/claims.csv                           every claim and what became of it
OUTPUT/report.html                          all of it on one page that loads nothing
OUTPUT/cache/                               finished cells (see ``runner``)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

from rankdp.data.atomic import make_directory, write_whole
from rankdp_papers.documents import to_html
from rankdp_papers.results import Reproduced
from rankdp_papers.runner import Progress, expected_seconds, run
from rankdp_papers.specification import Size, find


def reproduce(
    wanted: Sequence[str] = (),
    output: str | Path = "reproduction",
    *,
    size: Size = "quick",
    jobs: int | None = None,
    progress: Progress = lambda done, total: None,
    expected: Callable[[float], None] = lambda seconds: None,
    finished: Callable[[Reproduced], None] = lambda result: None,
) -> list[Reproduced]:
    """Run the papers' experiments and write tables, pictures and verdicts, the page and the claims last.

    Parameters
    ----------
    wanted
        Papers (``"xu"``), figures (``"xu/figure2"``) or TOML files; everything for none.
    output
        The directory to write to.
    size
        ``"quick"``, or ``"full"`` for the papers' own sizes.
    jobs
        Processes at a time; all cores for None.
    progress
        Called with the number of cells done and of all cells.
    expected
        Called once, before anything is run, with the seconds that it will take.
    finished
        Called with each figure, table or erratum as it is done.

    Returns
    -------
    list of Reproduced
        One for each specification, in order.
    """
    home, done = Path(output), []
    specifications = find(wanted)
    expected(expected_seconds(specifications, size, home / "cache", jobs))
    for result in run(specifications, size, home / "cache", jobs, progress):
        _write(result, home)
        done.append(result)
        finished(result)
    claims = [{"figure": result.specification.name, **claim} for result in done for claim in result.to_dict()["claims"]]
    _write_table(claims, home / "claims.csv")
    write_whole(home / "report.html", to_html(done).encode())
    return done


def _write(result: Reproduced, home: Path) -> None:
    if result.missing:
        return
    target = home / result.specification.name
    make_directory(target.parent)
    for ending in (".parquet", ".csv"):
        _write_table(result.rows, target.with_suffix(ending))
    for name, picture in result.pictures.items():
        write_whole(target.with_name(target.name + name.removeprefix("figure").replace("ours.", "-ours.")), picture)


def _write_table(rows: Sequence[dict[str, object]], target: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    columns = dict.fromkeys(column for row in rows for column in row)
    table = pa.Table.from_pylist([{column: row.get(column) for column in columns} for row in rows])
    content = io.BytesIO()
    (parquet.write_table if target.suffix == ".parquet" else csv.write_csv)(table, content)
    write_whole(target, content.getvalue())
