"""The score attack (Cai, Section 2.2) on released strengths: was this comparison in the data?

For a comparison of i with j, won or not, and reference strengths t that the attacker knows, the attack's statistic is

    A = <M - t, (y - F) F' / (F (1 - F)) (e_i - e_j)>,    F = F(t_i - t_j),

how far the released strengths M lean towards that comparison; for the logistic link (M_i - M_j - t_i + t_j)(y - F).
Its mean is 0 for a comparison that is not in the data. Calling "in" whatever exceeds a threshold has a true-positive
rate of at most e^eps times the false-positive rate (plus delta), so its advantage over guessing is at most
(e^eps - 1)/(e^eps + 1) (+ delta) for a release that protects one comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from rankdp.checks import one_of, whole
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.exact import Real, positive
from rankdp.progress import tell
from rankdp.publish.rank import METHODS, rank
from rankdp.rankers.bradley_terry import fit
from rankdp.report.document import Report
from rankdp.report.plots import SERIES, drawing
from rankdp.types import Floats, Longs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_attack(released: ArrayLike, reference: ArrayLike, winners: ArrayLike, losers: ArrayLike) -> Floats:
    """The statistic A of each comparison; high values speak for its being in the data.

    Parameters
    ----------
    released
        The released log-strengths M, one for each item.
    reference
        The log-strengths t that the attacker takes for the truth.
    winners, losers
        The two items of each comparison, as indices into the strengths.
    """
    truth = np.asarray(reference, dtype=np.float64)
    lean = np.asarray(released, dtype=np.float64) - truth
    won, lost = np.asarray(winners), np.asarray(losers)
    surprise = 1 / (1 + np.exp(truth[won] - truth[lost]))  # 1 - F: the winner's own outcome is y = 1
    return np.asarray((lean[won] - lean[lost]) * surprise)


@dataclass(frozen=True, slots=True)
class Membership:
    """The attack's record over comparisons that were in the data and others that were not."""

    inside: Floats
    outside: Floats
    epsilon: float | None

    @property
    def curve(self) -> tuple[Floats, Floats]:
        """False- and true-positive rates over all thresholds, from (0, 0) to (1, 1)."""
        values = np.concatenate([self.inside, self.outside])
        member = np.concatenate([np.ones(len(self.inside)), np.zeros(len(self.outside))])
        order = np.argsort(-values, kind="stable")
        last = np.append(np.diff(values[order]) != 0, True)  # equal values are called together
        true, false = np.cumsum(member[order])[last], np.cumsum(1 - member[order])[last]
        return np.append(0.0, false / len(self.outside)), np.append(0.0, true / len(self.inside))

    @property
    def area(self) -> float:
        """The area under the curve: 1/2 is guessing."""
        false, true = self.curve
        return float(np.trapezoid(true, false))

    @property
    def advantage(self) -> float:
        """The largest difference of the two rates: 0 is guessing, 1 is certainty."""
        false, true = self.curve
        return float(np.max(true - false))

    @property
    def advantage_error(self) -> float:
        """What the advantage of a useless attack would reach by chance, one time in twenty (Smirnov's distance)."""
        return 1.36 * math.sqrt(1 / len(self.inside) + 1 / len(self.outside))

    @property
    def advantage_bound(self) -> float:
        """(e^eps - 1)/(e^eps + 1); 1 without protection."""
        return 1.0 if self.epsilon is None else math.tanh(self.epsilon / 2)

    def explain(self) -> str:
        """What the attack achieved, in words."""
        allowed = (
            "The plain fit promises nothing"
            if self.epsilon is None
            else f"Epsilon {self.epsilon:g} allows at most {self.advantage_bound:.0%}"
        )
        return (
            f"Over {len(self.inside):,} leaderboards the attack tells votes in the data from others with an advantage "
            f"of {self.advantage:.0%} over guessing (a useless attack would reach {self.advantage_error:.0%} by chance "
            f"one time in twenty). {allowed}."
        )

    def report(self) -> Report:
        """The curve and a sentence."""
        false, true = (rates.tolist() for rates in self.curve)
        return Report(
            title="Was this vote in the data?",
            records=[{"outside_called_inside": x, "inside_found": y} for x, y in zip(false, true, strict=True)],
            facts=lambda: {
                "area": self.area,
                "advantage": self.advantage,
                "bound": self.advantage_bound,
                "chance": self.advantage_error,
            },
            headline=self.explain(),
            figure=drawing(self.draw),
        )

    def draw(self, axes: Axes) -> None:
        """The curve, and the region that epsilon allows."""
        false, true = self.curve
        axes.plot(false, true, color=SERIES[0], label=f"the attack (area {self.area:.2f})")
        axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", label="guessing")
        if self.epsilon is not None:
            x = np.linspace(0, 1, 200)
            most = np.minimum(math.exp(self.epsilon) * x, 1 - math.exp(-self.epsilon) * (1 - x))
            axes.plot(x, most, color=SERIES[1], linestyle="--", label=f"what epsilon {self.epsilon:g} allows")
        axes.set(
            xlabel="votes outside the data called inside",
            ylabel="votes inside found",
            title="Was this vote in the data?",
            aspect="equal",
        )
        axes.legend(frameon=False, loc="lower right")


def membership_experiment(
    epsilon: Real | None,
    *,
    items: int = 8,
    comparisons: int = 60,
    method: str = "bradley-terry",
    protect: str = "comparison",
    repetitions: int = 200,
    seed: int = 0,
) -> Membership:
    """Attack leaderboards of simulated votes.

    In each repetition strengths are drawn, votes drawn from them and a leaderboard published. One vote of the data and
    one fresh vote are then scored, so that all values are independent.

    Parameters
    ----------
    epsilon
        The epsilon of every leaderboard; None attacks the fit without noise, to show that the attack works.
    items
        How many items are compared.
    comparisons
        How many votes each leaderboard is made from.
    method
        "bradley-terry", "wins" or "copeland", as for ``rankdp.rank``.
    protect
        What the leaderboards protect: "comparison" or "outcome".
    repetitions
        How many leaderboards are attacked.
    seed
        The seed of the votes and of the noise.
    """
    one_of("method", method, METHODS)
    least = {"items": (items, 2), "comparisons": (comparisons, 1), "repetitions": (repetitions, 1), "seed": (seed, 0)}
    for name, (value, smallest) in least.items():
        whole(name, value, smallest)
    random, names = np.random.default_rng(seed), [f"{index:03}" for index in range(items)]
    inside, outside = np.empty(repetitions), np.empty(repetitions)
    for turn in range(repetitions):
        tell("attacking", turn, repetitions)
        truth = random.uniform(-1, 1, items)
        truth -= truth.mean()
        won, lost = _votes(truth, comparisons + 1, random)
        data = won[:-1], lost[:-1]
        if epsilon is None:
            released = _plain(*data, names)
        else:
            table = pa.table({"winner": [names[i] for i in data[0]], "loser": [names[i] for i in data[1]]})
            board = rank(
                Comparisons.of(table, items=names),
                epsilon,
                protect=protect,
                method=method,
                bits=SeededBits(seed * 1_000_003 + turn),
            ).value
            released = np.empty(items)
            released[[names.index(item) for item in board.items]] = board.scores
        inside[turn], outside[turn] = score_attack(released, truth, won[[0, -1]], lost[[0, -1]])
    return Membership(inside, outside, None if epsilon is None else float(positive(epsilon)))


def _votes(truth: Floats, count: int, random: np.random.Generator) -> tuple[Longs, Longs]:
    left = random.integers(0, len(truth), count)
    right = (left + random.integers(1, len(truth), count)) % len(truth)
    first = random.random(count) < 1 / (1 + np.exp(truth[right] - truth[left]))
    return np.where(first, left, right), np.where(first, right, left)


def _plain(won: Longs, lost: Longs, names: list[str]) -> Floats:
    """The fit without noise and with almost no ridge."""
    wins = np.zeros((len(names), len(names)))
    np.add.at(wins, (won, lost), 1)
    strengths = fit(PairCounts.from_dense(wins, names), ridge=0.1).theta
    return np.asarray(strengths - strengths.mean())
