"""Three small cells of ``python -m benchmarks coverage``: votes drawn anew, intervals and ranks that hold the truth."""

import pytest
from benchmarks.coverage import Cell, measured, synthetic

CELLS = [
    Cell("even", 8, 2_000, "comparison", None, "1"),
    Cell("popular", 25, 5_000, "comparison", None, "1"),
    Cell("late", 25, 50_000, "voter", 10, "4"),
]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.design)
def test_intervals_hold_their_level(cell):
    found = measured(cell, lambda random: synthetic(random, cell.design, cell.items, cell.comparisons), 15)
    assert 0.90 - 3 * found.error <= found.covered <= 0.99 + 3 * found.error
    assert found.ranks > 0.88


def test_half_the_intervals_would_be_noticed(monkeypatch):
    """The check can fail: intervals of half the length hold far less."""
    from rankdp.inference.draws import Draws

    real = Draws.interval

    def half(self, level):
        low, high = real(self, level)
        return self.estimate + (low - self.estimate) / 2, self.estimate + (high - self.estimate) / 2

    monkeypatch.setattr(Draws, "interval", half)
    with pytest.raises(AssertionError):
        test_intervals_hold_their_level(CELLS[0])
