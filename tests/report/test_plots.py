"""Figures: the labels of close lines stay apart, and a missing library is a sentence."""

from __future__ import annotations

import builtins
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.demo import _spread
from rankdp.errors import Unsupported
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import SCORE_MECHANISMS
from rankdp.publish.ballot_rules import RULES
from rankdp.publish.rank import METHODS
from rankdp.report.plots import COLOURS, intervals_figure, new_figure, picture
from rankdp.report.results import ResultRow, ResultTable
from rankdp.theory.noises import NOISES


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12).map(sorted))
def test_labels_keep_their_order_and_their_distance(levels: list[float]) -> None:
    heights = _spread(levels, gap=0.5)
    assert len(heights) == len(levels)
    assert all(high - low > 0.5 - 1e-9 for low, high in pairwise(heights))
    assert abs(sum(heights) - sum(levels)) < 1e-6


def test_labels_far_apart_do_not_move() -> None:
    assert _spread([1, 2, 3], gap=0.5) == [1, 2, 3]


def test_every_mechanism_has_its_colour() -> None:
    for together in (MECHANISMS, SCORE_MECHANISMS, METHODS):  # those that meet in one figure
        assert len({COLOURS[name] for name in together}) == len(together)
    assert set(COLOURS) == {*MECHANISMS, *NOISES, *SCORE_MECHANISMS, *METHODS, *RULES}


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(Unsupported, match="pip install"):
        new_figure(1, 4, 3)


def _table(names: list[str]) -> ResultTable:
    rows = [ResultRow(name=name, estimate=0.0, low=-1.0, high=1.0) for name in names]
    return ResultTable(rows=rows, measure="score")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_names_in_any_script_are_drawn_without_a_warning(kind: str, recwarn: pytest.WarningsRecorder) -> None:
    """A character that no font has is a box, and the small print says so; other scripts fall back to other fonts."""
    pytest.importorskip("matplotlib")
    names = ["绿茶", "قهوة", "🍵 tea", "한국", "जल", "price $5 $6", "\U00012f90"]
    figure = intervals_figure([("最好的茶 🍵", _table(names))])
    assert len(picture(figure, kind, ["Never compared: 绿茶."])) > 1000
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    assert "no installed font has" in figure.get_supxlabel().replace("\n", " ")


def test_a_font_that_has_the_character_is_found() -> None:
    pytest.importorskip("matplotlib")
    figure = intervals_figure([("", _table(["\u2a03", "a"]))])  # not in DejaVu Sans
    picture(figure, "svg", ["words"])
    assert "no installed font" not in figure.get_supxlabel()
