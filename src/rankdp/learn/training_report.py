"""How a training went, for readers.

Where labels are debiased, losses and accuracies are unbiased estimates of those on the true rankings, which nobody has
seen; they are noisier for it, and an accuracy may leave [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rankdp.learn.estimator import History, PairwiseRanker
from rankdp.report.document import Report, Table
from rankdp.report.plots import SERIES, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankdp.privacy.release import Release

_KINDS = {"loss": "mean loss per pair", "accuracy": "share of pairs in order"}
_USERS = ("train", "validation")


def train_report(model: PairwiseRanker, notes: Sequence[str] = (), release: Release[Any] | None = None) -> Report:
    """The report of a fitted model: its learning curves, the numbers of the epoch that was kept, and its settings.

    Parameters
    ----------
    model
        A model after ``fit``.
    notes
        Sentences about the data, for the reader.
    release
        What is promised about the rankings that the model was fitted to.
    """
    model._check_fitted()
    name, settings, history = type(model).__name__, dict(model.get_params()), model.history_
    curves = {f"{users}_{kind}": getattr(history, f"{users}_{kind}") for kind in _KINDS for users in _USERS}
    known = {curve: values for curve, values in curves.items() if values}
    at = history.best_epoch
    numbers = [
        [
            f"{words}, epoch {at}",
            *(f"{curves[f'{users}_{kind}'][at]:.4f}" if curves[f"{users}_{kind}"] else "–" for users in _USERS),
        ]
        for kind, words in _KINDS.items()
    ]
    return Report(
        title=f"Training of a {name}",
        records=[
            {"epoch": epoch, **{curve: values[epoch] for curve, values in known.items()}}
            for epoch in range(len(history))
        ],
        facts=lambda: {"model": name, "settings": settings, "curves": asdict(history), "notes": list(notes)},
        tables=[
            Table(["", "train users", "validation users"], numbers),
            Table(["setting", "value"], [[setting, str(value)] for setting, value in settings.items()]),
        ],
        words=notes,
        footer=[f"{len(history)} epochs; training ended: {history.stopped}."],
        figure=lambda: _curves(history, f"{name}, {settings.get('loss')} loss"),
        release=release,
    )


def _curves(history: History, title: str) -> Figure:
    """Loss and accuracy by epoch, of training and validation users."""
    figure, panels = new_figure(2, 10, 3.8)
    for panel, (kind, words) in zip(panels, _KINDS.items(), strict=True):
        for colour, users in zip(SERIES, _USERS, strict=False):
            if curve := getattr(history, f"{users}_{kind}"):
                start = int(kind == "accuracy" and curve[0] == 0 and len(curve) > 1)  # before it all items tie
                panel.plot(range(start, len(curve)), curve[start:], color=colour, label=f"{users} users")
        panel.axvline(history.best_epoch, color="0.7", linewidth=0.8, linestyle=":", label="kept")
        panel.set(xlabel="epoch", ylabel=words)
        panel.legend(frameon=False)
    figure.suptitle(title)
    return figure
