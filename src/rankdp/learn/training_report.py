"""How a training went: the curves as plain data, a picture, and a page that loads nothing.

Where labels are debiased, losses and accuracies are unbiased estimates of those on the true rankings, which nobody has
seen; they are noisier for it, and an accuracy may leave [0, 1].
"""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import dataclass
from os import PathLike
from typing import Any

from rankdp.data.atomic import known_ending, write_whole
from rankdp.errors import Unsupported
from rankdp.learn.estimator import PairwiseRanker
from rankdp.learn.training import History
from rankdp.report import page as pages
from rankdp.report.plots import SERIES, new_figure

_FORMATS = (".png", ".html", ".json")


@dataclass(frozen=True, slots=True)
class TrainReport:
    """The curves of one training and the facts about it."""

    model: str
    facts: dict[str, Any]
    history: History
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a number that is not known is None."""
        curves = {
            name: [None if isinstance(one, float) and math.isnan(one) else one for one in value]
            if isinstance(value, list)
            else value
            for name, value in self.history.to_dict().items()
        }
        return {"model": self.model, "settings": self.facts, "curves": curves, "notes": list(self.notes)}

    def to_png(self) -> bytes:
        """Loss and accuracy by epoch, of training and validation users."""
        figure, axes = new_figure(2, 10, 3.8)
        one = self.history
        for place, (axis, kind) in enumerate(zip(axes, ("loss", "accuracy"), strict=True)):
            for colour, users in zip(SERIES, ("train", "validation"), strict=False):
                if curve := getattr(one, f"{users}_{kind}"):
                    start = int(kind == "accuracy" and curve[0] == 0 and len(curve) > 1)  # before it all items tie
                    axis.plot(range(start, len(curve)), curve[start:], color=colour, label=f"{users} users")
            axis.axvline(one.best_epoch, color="0.7", linewidth=0.8, linestyle=":", label="kept")
            axis.set(xlabel="epoch", ylabel=("mean loss per pair", "share of pairs in order")[place])
            axis.legend(frameon=False)
        figure.suptitle(f"{self.model}, {self.facts.get('loss')} loss")
        sink = io.BytesIO()
        figure.savefig(sink, format="png", dpi=150)
        return sink.getvalue()

    def to_html(self) -> str:
        """A page with the picture, if there is matplotlib, the last numbers and the settings."""
        try:
            shown = base64.b64encode(self.to_png()).decode()
            picture = f'<img style="max-width:100%" alt="learning curves" src="data:image/png;base64,{shown}">'
        except Unsupported as refusal:
            picture = pages.paragraph(f"No picture: {refusal}.")
        return pages.page(
            f"Training of a {self.model}",
            *(pages.paragraph(words) for words in self.notes),
            picture,
            pages.table(["", "train users", "validation users"], self._numbers()),
            pages.table(["setting", "value"], [[name, str(value)] for name, value in self.facts.items()]),
            footer=[f"{len(self.history)} epochs; training ended: {self.history.stopped}."],
        )

    def _numbers(self) -> list[list[str]]:
        one, at = self.history, self.history.best_epoch
        rows = []
        for kind, words in (("loss", "mean loss per pair"), ("accuracy", "share of pairs in order")):
            curves = (getattr(one, f"{users}_{kind}") for users in ("train", "validation"))
            rows.append([f"{words}, epoch {at}", *(f"{curve[at]:.4f}" if curve else "–" for curve in curves)])
        return rows

    def write(self, path: str | PathLike[str]) -> None:
        """Write .png, .html or .json, all or nothing."""
        write_whole(path, self._content(check_ending(path)))

    def _content(self, ending: str) -> bytes:
        if ending == ".png":
            return self.to_png()
        return self.to_html().encode() if ending == ".html" else (json.dumps(self.to_dict(), indent=2) + "\n").encode()


def check_ending(path: str | PathLike[str]) -> str:
    """The ending of a report's file."""
    return known_ending(path, _FORMATS)


def train_report(model: PairwiseRanker, notes: tuple[str, ...] = ()) -> TrainReport:
    """The report of a fitted model."""
    model._check_fitted()
    return TrainReport(type(model).__name__, dict(model.get_params()), model.history_, notes)
