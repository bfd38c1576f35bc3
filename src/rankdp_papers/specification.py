"""One TOML file, one figure: what is run, how it is drawn, and what the paper claims.

    title, source       what it shows and where it is in the paper
    experiment          module.function inside rankdp_papers.<paper>, from a cell to rows
    seed, data          where randomness starts; the data sets it needs
    setting, seen       what was done, and what we see, with its numbers taken from the table (see ``results.filled``)
    [settings]          constants of every cell
    [quick], [full]     repetitions, grid (a cell for each combination) and perhaps more settings
    [figure]            the paper's picture: x, lines, panels, rows, log, labels (see ``pictures``)
    [ours]              a second picture, with lines that the paper does not have
    [table]             rows, columns, only: values to show with the picture
    [[claims]]          text, by, kind, where, check and what the check takes (see ``Claim`` and ``verdicts``)

Files of the package are found by name (xu/figure2); a file of your own also says ``paper = "xu"``.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from rankdp.checks import one_of, whole
from rankdp.errors import InputError, system_problem
from rankdp_papers.experiment import Cell

PAPERS = {
    "xu": "Ranking Differential Privacy (Xu, Sun and Cheng)",
    "cai": "Optimal Differentially Private Ranking from Pairwise Comparisons (Cai, Chakraborty and Wang)",
    "jeong": "Ranking Recovery under Privacy Considerations (Jeong, Dytso and Cardone)",
}
HOME = Path(__file__).parent
Size = Literal["quick", "full"]
Part = TypeVar("Part")


@dataclass(frozen=True)
class Run:
    """One size of an experiment: how often, and on which points."""

    repetitions: int
    grid: Mapping[str, Sequence[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """Rows that become lines of a panel: ``line`` and ``panel`` are names with columns in braces, "epsilon = {p}"."""

    select: Mapping[str, Any]
    line: str
    panel: str = ""


@dataclass(frozen=True)
class FigurePlan:
    """How rows become a picture: ``only`` keeps rows with these values, ``log`` names x, y or values of ``rows``.

    ``lines``, ``panels`` and ``rows`` name columns. Instead of ``lines`` and ``panels`` there may be ``series``, which
    name each line and panel by what they select. Panels in ``log`` have a logarithmic y axis.

    Axes of one row share their y scale unless ``share_y`` is false; ``diagonal`` draws the line where y is x; ``dodge``
    sets lines that coincide side by side, by moving each a little along x.
    """

    x: str
    lines: str = ""
    panels: str | None = None
    rows: str | None = None
    log: Sequence[str] = ()
    share_y: bool = True
    diagonal: bool = False
    dodge: bool = False
    x_label: str | None = None
    y_label: str | None = None
    y_labels: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)
    series: Sequence[Series] = ()


@dataclass(frozen=True)
class TablePlan:
    """How rows become a table of values: a line and a column for each value of these two, of the rows in ``only``."""

    rows: str
    columns: str
    only: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or of ours, that the table can contradict.

    Ours (``by`` "rankdp") are regression tests. Of the paper's, ``kind`` says what a failure is: of a "claim" that the
    paper makes, of a formula taken as it is printed ("misprint"), or of our own number for a qualitative word
    ("yardstick"), which is no error of the paper.

    A claim that can be read in several ways has ``readings``: more columns to select by, one table per reading. It
    holds, or does not, when every reading says so, and is undecided when they disagree.
    """

    text: str
    by: str
    check: str
    where: str = ""
    kind: str = "claim"
    select: Mapping[str, Any] = field(default_factory=dict)
    readings: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Specification:
    """A figure, a table or an erratum."""

    name: str
    paper: str
    title: str
    source: str
    experiment: str
    setting: str
    seen: str
    quick: Run
    full: Run
    claims: Sequence[Claim]
    figure: FigurePlan | None = None
    ours: FigurePlan | None = None
    table: TablePlan | None = None
    seed: int = 0
    data: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cells(self, size: Size) -> list[Cell]:
        """One for each combination of the grid."""
        run: Run = getattr(self, size)
        fixed = {**self.settings, **run.settings}
        points = itertools.product(*run.grid.values())
        return [
            Cell({**fixed, **dict(zip(run.grid, point, strict=True))}, run.repetitions, self.seed) for point in points
        ]


def names() -> list[str]:
    """Every figure, table and erratum of the package, paper by paper."""
    return [f"{paper}/{path.stem}" for paper in PAPERS for path in sorted((HOME / paper).glob("*.toml"), key=_place)]


def _place(path: Path) -> tuple[int, str]:
    """Tables and figures before trade-offs, lemmas and errata."""
    kinds = ("table", "figure", "tradeoff", "lemmas", "erratum")
    return next((place for place, kind in enumerate(kinds) if path.stem.startswith(kind)), len(kinds)), path.stem


def find(wanted: Sequence[str]) -> list[Specification]:
    """The specifications of these papers, figures or files; all of the package for none."""
    every = names()
    found: dict[str, Specification] = {}
    for one in wanted or PAPERS:
        if one.endswith(".toml"):
            loaded = read(Path(one))
            found[loaded.name] = loaded
            continue
        matching = [name for name in every if name == one or name.split("/")[0] == one]
        if not matching:
            raise InputError(
                f"a name must be one of {', '.join(PAPERS)}, one that `rankdp reproduce --list` shows or a .toml "
                f"file, got {one!r}"
            )
        found.update((name, load(name)) for name in matching)
    return list(found.values())


def load(name: str) -> Specification:
    """The specification of this name."""
    return read(HOME / f"{name}.toml", name)


def read(path: Path, name: str | None = None) -> Specification:
    """The specification in a file."""
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path}: it is not TOML: {problem}") from None
    except OSError as problem:
        raise system_problem(str(path), problem, "read") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: it is not UTF-8 text") from None
    where = name or str(path)
    paper = name.split("/")[0] if name else plain.pop("paper", None)
    try:
        one_of("paper", paper, PAPERS)
        plans: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
            "figure": _figure,
            "ours": _figure,
            "table": partial(_part, TablePlan),
        }
        drawn = {name: plan(plain.pop(name), f"[{name}]") for name, plan in plans.items() if name in plain}
        parts = {
            "name": name or f"{paper}/{path.stem}",
            "paper": paper,
            "claims": tuple(map(_claim, plain.pop("claims", []))),
            **drawn,
            **{size: _run(plain.pop(size, {}), f"[{size}]") for size in ("quick", "full")},
        }
        return _part(Specification, {**plain, **parts}, "the file")
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None


def _run(plain: Mapping[str, Any], where: str) -> Run:
    run = _part(Run, plain, where)
    whole(f"{where} repetitions", run.repetitions, 1)
    for name, points in run.grid.items():
        if not isinstance(points, list) or not points:
            raise InputError(f"{where} grid.{name} must be a list of at least one value, got {points!r}")
    return run


def _figure(plain: Mapping[str, Any], where: str) -> FigurePlan:
    series = tuple(_part(Series, one, f"{where} series") for one in plain.get("series", ()))
    plan = _part(FigurePlan, {**plain, "series": series}, where)
    if bool(plan.lines) == bool(series):
        raise InputError(f"{where} must have either lines or series")
    return plan


def _claim(plain: Mapping[str, Any]) -> Claim:
    known = {part.name for part in fields(Claim)} - {"options"}
    options = {name: value for name, value in plain.items() if name not in known}
    claim = _part(Claim, {**{k: v for k, v in plain.items() if k in known}, "options": options}, "[[claims]]")
    one_of("[[claims]] by", claim.by, ("paper", "rankdp"))
    one_of("[[claims]] kind", claim.kind, ("claim", "misprint", "yardstick"))
    return claim


def _part(kind: type[Part], plain: Mapping[str, Any], where: str) -> Part:
    """The dataclass ``kind`` of these values, if their names are known and complete."""
    known = {part.name: part for part in fields(kind)}  # type: ignore[arg-type]
    needed = [name for name, part in known.items() if part.default is part.default_factory is MISSING]
    for words, names in (
        ("must not have", [name for name in plain if name not in known]),
        ("must have", [name for name in needed if name not in plain]),
    ):
        if names:
            raise InputError(f"{where} {words} {', '.join(names)}")
    return kind(**plain)
