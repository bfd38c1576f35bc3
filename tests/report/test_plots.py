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
from rankdp.publish.rank import METHODS
from rankdp.report.plots import COLOURS, new_figure
from rankdp.theory.noises import NOISES


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12).map(sorted))
def test_labels_keep_their_order_and_their_distance(levels: list[float]) -> None:
    heights = _spread(levels, gap=0.5)
    assert len(heights) == len(levels)
    assert all(high - low > 0.5 - 1e-9 for low, high in pairwise(heights))
    assert abs(sum(heights) - sum(levels)) < 1e-6


RULES = ("borda", "pairs", "plurality", "irv")


def test_labels_far_apart_do_not_move() -> None:
    assert _spread([1, 2, 3], gap=0.5) == [1, 2, 3]


def test_every_mechanism_has_its_colour() -> None:
    for together in (MECHANISMS, NOISES, METHODS, RULES):  # those that meet in one figure
        assert len({COLOURS[name] for name in together}) == len(together)
    assert set(COLOURS) == {*MECHANISMS, *NOISES, *METHODS, *RULES}


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(Unsupported, match="install rankdp"):
        new_figure(1, 4, 3)
