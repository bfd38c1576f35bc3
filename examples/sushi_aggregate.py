"""Win rates of 5,000 privatized sushi rankings, by mechanism and epsilon: counted and debiased.

Reads sushi3a_rankings.csv from RANKDP_DATA/sushi (docs/formats.md says where to get it); without it, the built-in town
poll is used. The draws have a seed: a rehearsal, because measuring an error needs the truth.

    python examples/sushi_aggregate.py figure.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import rankdp
from rankdp.data.synthetic import town_poll
from rankdp.report.plots import COLOURS, new_figure, picture

EPSILONS = (0.5, 1, 2, 4, 8)
MECHANISMS = ("kendall", "ulam", "reinsertion")
TURNS = 5


def true_rankings() -> tuple[rankdp.Rankings, str]:
    """The sushi rankings, or the poll."""
    path = Path(os.environ.get("RANKDP_DATA", "")) / "sushi" / "sushi3a_rankings.csv"
    if path.is_file():
        return rankdp.Rankings.read(path), "5,000 sushi rankings of 10 items"
    return town_poll(5000), "5,000 rankings of a made-up poll"


def win_rates(rankings: rankdp.Rankings) -> np.ndarray:
    """The share that prefers i to j, counted."""
    ranks = rankings.ranks()
    return (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0)


def errors(rankings: rankdp.Rankings, mechanism: str, epsilon: float) -> list[float]:
    """Root mean squared error over all pairs: debiased and naive."""
    truth = win_rates(rankings)
    off = ~np.eye(len(truth), dtype=bool)
    squares = []
    for turn in range(TURNS):
        release = rankdp.privatize(rankings, epsilon, mechanism=mechanism, bits=rankdp.SeededBits(turn))
        rates = rankdp.aggregate(release).win_rates
        squares.append([np.mean((found - truth)[off] ** 2) for found in (rates.values, rates.naive)])
    return [float(error) for error in np.sqrt(np.mean(squares, axis=0))]


def main(target: str) -> None:
    """Print the table and draw the figure."""
    rankings, what = true_rankings()
    figure, (axes,) = new_figure(1, width=8, height=5.4)
    print(f"error of a win rate, in points; {what}")
    for mechanism in MECHANISMS:
        found = [errors(rankings, mechanism, epsilon) for epsilon in EPSILONS]
        for place, (kind, line) in enumerate((("debiased", "-o"), ("naive", ":s"))):
            values = [100 * one[place] for one in found]
            axes.plot(EPSILONS, values, line, color=COLOURS[mechanism], label=f"{mechanism}, {kind}")
            print(f"{mechanism:12} {kind:9}", *(f"{value:8.1f}" for value in values))
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon",
        ylabel="error of a win rate (root mean square, points)",
        title=f"What {what} say together",
    )
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.grid(color="0.93")
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    Path(target).write_bytes(picture(figure, Path(target).suffix[1:]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sushi-aggregate.png")
