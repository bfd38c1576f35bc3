"""Results that display themselves: in a notebook, at a prompt, as a frame of an installed library, as a plot."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rankdp.data.cells import as_frame
from rankdp.errors import Unsupported
from rankdp.report.document import Report
from rankdp.report.plots import intervals_figure
from rankdp.report.results import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Displayable:
    """A result with rows that displays itself."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """One plain record per row."""

    @abstractmethod
    def results(self) -> ResultTable:
        """The rows for readers; refused where there are only names."""

    @abstractmethod
    def headline(self) -> str:
        """The result in a sentence."""

    def to_frame(self, kind: str | None = None) -> Any:
        """The rows as a frame.

        Parameters
        ----------
        kind
            "pandas", "polars" or "arrow"; by default the first one that is installed.
        """
        import pyarrow as pa

        return as_frame(pa.Table.from_pylist(self.rows()), kind)

    def plot(self, title: str = "") -> Figure:
        """The estimates with their intervals, drawn by matplotlib.

        Parameters
        ----------
        title
            The heading of the plot.
        """
        return intervals_figure([(title, self.results())])

    def _results(self) -> ResultTable | None:
        """The rows, None where there are only names."""
        with suppress(Unsupported):
            return self.results()
        return None

    def __repr__(self) -> str:
        results = self._results()
        return "\n".join([self.headline(), *([results.table().text()] if results else [])])

    def _repr_html_(self) -> str:
        report = Report(
            title=type(self).__name__, records=[], facts=dict, headline=self.headline(), results=self._results()
        )
        return report.notebook()
