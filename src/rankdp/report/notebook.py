"""Results that show themselves: as a table in a notebook, as a frame of whatever library is installed, as a plot."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from rankdp.data.cells import as_frame
from rankdp.report.document import Table
from rankdp.report.plots import Intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 200  # rows of a table in a notebook


class Shown:
    """What has rows shows them."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """One plain record a row."""

    def to_frame(self, kind: str | None = None) -> Any:
        """The rows as a frame.

        Parameters
        ----------
        kind
            "pandas", "polars" or "arrow"; the first of them that is installed, if not given.
        """
        import pyarrow as pa

        return as_frame(pa.Table.from_pylist(self.rows()), kind)

    def plot(self, title: str = "") -> Figure:
        """The scores with their intervals, drawn by matplotlib.

        Parameters
        ----------
        title
            What stands above the plot.
        """
        return self.intervals().figure(title)

    @abstractmethod
    def intervals(self) -> Intervals:
        """What ``plot`` shows."""

    def _repr_html_(self) -> str:
        rows = self.rows()
        heads = list(rows[0]) if rows else []
        texts = sum(isinstance(value, str) for value in rows[0].values()) if rows else 0
        cells = [[_text(row[name]) for name in heads] for row in rows[:_SHOWN]]
        more = f"<p>and {len(rows) - _SHOWN:,} more rows</p>" if len(rows) > _SHOWN else ""
        return Table([name.replace("_", " ") for name in heads], cells, texts=texts).html() + more


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
