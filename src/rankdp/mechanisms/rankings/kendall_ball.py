"""The Kendall ball: the most accurate synthetic ranking when the *whole* ranking is protected.

Law: P(s) proportional to e^eps if inv(s) <= t and to 1 otherwise; inv(s) is the number of discordant pairs.

Proof of eps: two outputs, or two inputs, differ by a factor of at most e^eps, whatever the rankings are. That is local
DP for the whole ranking, and eps-ranking DP for one item's position as a special case. A ranking inside the ball and
one move that leads out of it attain it, so neither promise is better than eps.

Why nothing keeps more pairs at this promise: average any eps-LDP mechanism over all relabellings of the items. That
changes neither eps nor the mean expected distance, and makes the law a function f of the relative order alone, with
max f <= e^eps min f. Under this constraint the sum of f(s) inv(s) is smallest when f is e^eps times larger on the
smallest distances: a ball. Its radius t is public; ``best_radius`` minimises the expected distance.

Drawing: the law is a mixture. With weight m! it is any ranking, with weight (e^eps - 1)|B| one that is uniform in the
ball B. Both insert the items from worst to best: with r inversions left, item n-1 of n overtakes v others with
probability C_(n-1)(r - v)/C_n(r), where C_n(r) counts rankings of n items with at most r inversions
(``theory.kendall_balls``). The product telescopes to 1/|B|. All of it is integer arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import EnclosedLaw, Orders, RankingMechanism
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import LAST, WORD, CutTable, Weights
from rankdp.privacy.exact import Real, exp_bounds
from rankdp.theory import kendall_balls as theory
from rankdp.theory.pair_laws import PairLaw
from rankdp.theory.permutations import places
from rankdp.types import Floats, Longs, Words

_RANKS_UP_TO = 30  # items for which laws of positions are computed to choose a radius: 0.2 s, and seconds for 60
_ROWS = 1 << 12  # at a time, so that the gathered cut points stay in cache


class KendallBall(RankingMechanism):
    """Uniform in a ball around the true ranking, or with some probability anywhere.

    Parameters
    ----------
    items
        How many items a ranking has.
    epsilon
        The privacy of the whole ranking.
    radius
        The most discordant pairs inside the ball; by default the radius that keeps most pairs in order.
    """

    name: str = "kendall-ball"
    colour: ClassVar[str] = "#44AA99"
    most_items: ClassVar[int | None] = 60
    position_law_up_to: ClassVar[int | None] = 60
    pair_law_up_to: ClassVar[int] = 14
    # the radius changes in steps with epsilon, and the probability of the exact order jumps with it
    planned_up_to: ClassVar[Mapping[str, int]] = MappingProxyType({"exact": 1, "overlap": _RANKS_UP_TO})
    numbered: ClassVar[bool] = True

    def __init__(self, items: int, epsilon: Real, radius: int | None = None) -> None:
        super().__init__(items, epsilon)
        self.radius = best_radius(items, float(self.epsilon)) if radius is None else whole("radius", radius, 0)
        if self.radius >= math.comb(self.items, 2):
            raise InputError(
                f"radius must be below {math.comb(self.items, 2)}, the largest distance between two rankings of "
                f"{self.items} items, got {self.radius}"
            )
        self.name = f"{type(self).name}-{self.radius}"

    @classmethod
    def with_numbers(cls, items: int, epsilon: Real, numbers: tuple[int, ...]) -> KendallBall:
        """With this radius."""
        if len(numbers) != 1:
            raise InputError(f"one number, the radius, follows the name of the {cls.name} mechanism, got {numbers}")
        return cls(items, epsilon, numbers[0])

    @classmethod
    def for_purpose(cls, items: int, epsilon: Real, purpose: str) -> KendallBall:
        """With the radius for mean ranks to aggregate up to 30 items, and elsewhere the one that keeps most pairs."""
        ball = cls(items, epsilon)
        if purpose != "aggregate" or items > _RANKS_UP_TO:
            return ball
        return cls(items, epsilon, radius_for_mean_ranks(items, float(ball.epsilon)))

    @property
    def parameters(self) -> dict[str, Any]:
        """With the radius."""
        return {**super().parameters, "radius": self.radius}

    def local_epsilon(self) -> Fraction:
        """Epsilon, exactly: it is the whole ranking that is protected."""
        return self.epsilon

    # -- drawing -------------------------------------------------------------------------------------------------

    @cached_property
    def _mixture(self) -> CutTable:
        """0: any ranking; 1: one in the ball."""
        sizes = theory.counts_up_to(self.items)
        return ball_mixture(sizes[-1], sizes[self.radius], self.epsilon)

    def _lefts(self, size: int) -> list[int]:
        """The inversions that can be left for this many items: what the ball allows, and last all of them."""
        most = math.comb(size, 2)
        return [*range(min(self.radius + 1, most)), most]

    @staticmethod
    def _ways(size: int, left: int) -> list[int]:
        """In how many rankings of ``size`` items with at most ``left`` inversions the last overtakes 0, 1, … others."""
        return insertion_ways(size, left)

    @cached_property
    def _cuts(self) -> dict[int, Words]:
        """By size: a row for each of ``_lefts``, with floor(2^64 F) for all cells but the last."""
        tables = {}
        for size in range(2, self.items + 1):
            rows = []
            for left in self._lefts(size):
                *ways, last = self._ways(size, left)
                total = sum(ways) + last
                rows.append([min((until << WORD) // total, LAST) for until in itertools.accumulate(ways)])
            tables[size] = np.array(rows, dtype=np.uint64)
        return tables

    def _draw(self, orders: Orders, out: Orders, bits: Bits) -> None:
        from rankdp.mechanisms.rankings import sampling_kernels as kernels

        kernel = kernels.insert_short if self.items <= 16 else kernels.insert_long
        for start in range(0, len(orders), _ROWS):
            rows = slice(start, start + _ROWS)
            inside = self._mixture.sample(len(orders[rows]), bits)
            kernel(orders[rows], self._overtaken(inside, bits), out[rows])

    def _overtaken(self, inside: Longs, bits: Bits) -> Orders:
        """By row and item from the second on: how many others it overtakes; ``inside`` is 1 for rows in the ball."""
        behind = np.empty((len(inside), self.items - 1), dtype=np.int32)
        left = np.where(inside == 1, self.radius, math.comb(self.items, 2))
        for size in range(self.items, 1, -1):
            cuts = self._cuts[size]
            words = bits.words(len(inside))
            row = np.minimum(left, len(cuts) - 1)
            drawn = (cuts[row] < words[:, None]).sum(axis=1)
            reached = cuts[row, np.minimum(drawn, size - 2)]  # the first cut point that is not below the word
            for tied in np.flatnonzero(reached == words):
                drawn[tied] = settled(int(words[tied]), self._ways(size, self._lefts(size)[row[tied]]), bits)
            behind[:, size - 2] = drawn
            left = left - drawn
        return behind

    def exact_law(self, bits: int) -> EnclosedLaw:
        """From the mixture's weights and the ways behind the cut points, along the path of every relative order."""
        from rankdp.mechanisms.rankings.sampling_kernels import insert_short

        m = self.items
        mixture = self._mixture.weights(bits)
        cells = np.array(list(itertools.product(*[range(size) for size in range(2, m + 1)])), dtype=np.int32)
        out = np.empty((len(cells), m), dtype=np.int32)
        insert_short(np.tile(np.arange(m, dtype=np.int32), (len(cells), 1)), cells, out)
        law: list[tuple[Fraction | int, Fraction | int]] = [(0, 0)] * len(cells)
        for place, path in zip(places(out).tolist(), cells.tolist(), strict=True):
            anywhere, inside = self._path(path, math.comb(m, 2)), self._path(path, self.radius)
            law[place] = (
                mixture.low[0] * anywhere + mixture.low[1] * inside,
                mixture.high[0] * anywhere + mixture.high[1] * inside,
            )
        return law

    def _path(self, behind: list[int], left: int) -> Fraction:
        """The probability that the insertions overtake this many others each, starting from this many inversions."""
        chance = Fraction(1)
        for size in range(self.items, 1, -1):
            lefts = self._lefts(size)
            ways = self._ways(size, lefts[min(left, len(lefts) - 1)])
            chance *= Fraction(ways[behind[size - 2]], sum(ways))
            if not chance:
                return chance
            left -= behind[size - 2]
        return chance

    # -- what can be said before any data are seen ---------------------------------------------------------------

    @cached_property
    def _inside(self) -> float:
        """The weight of the part that is uniform in the ball."""
        share = theory.ball_shares(self.items)[self.radius]
        return float(inside_weight(share, float(self.epsilon)))

    def _log_prob(self, relative: Orders) -> Floats:
        from rankdp.mechanisms.rankings.sampling_kernels import count_inversions

        outside = self.log_prob_of_no_change() - float(self.epsilon)
        return np.where(count_inversions(relative) <= self.radius, self.log_prob_of_no_change(), outside)

    def log_prob_of_no_change(self) -> float:
        """-log((|B| + (m! - |B|) e^-eps))."""
        sizes = theory.counts_up_to(self.items)
        others = (sizes[-1] - sizes[self.radius]) / sizes[self.radius]
        return -math.log(sizes[self.radius]) - math.log1p(others * math.exp(-float(self.epsilon)))

    def _keep(self, i: int, j: int) -> float:
        inside = theory.keep_probability(self.items, self.radius, j - i)
        return self._inside * inside + (1 - self._inside) / 2

    def expected_concordance(self) -> float:
        """From the mean number of inversions in the ball, and one half elsewhere."""
        kept = 1 - theory.mean_inversions(self.items)[self.radius] / math.comb(self.items, 2)
        return float(self._inside * kept + (1 - self._inside) / 2)

    def position_matrix(self) -> Floats:
        """By following an item while others join."""
        ball = theory.landing_counts(self.items, self.radius)[..., -1] / theory.counts_up_to(self.items)[self.radius]
        return np.asarray(self._inside * ball + (1 - self._inside) / self.items)

    def _pair_law(self) -> PairLaw:
        """By following two items while others join."""
        ball, anywhere = theory.pair_law(self.items, self.radius), (1 - self._inside) / (self.items * (self.items - 1))
        return PairLaw(self._inside * ball.same + anywhere, self._inside * ball.crossed + anywhere)


def ball_mixture(everything: int, ball: int, epsilon: Fraction) -> CutTable:
    """0 with weight ``everything``, 1 with weight (e^eps - 1) ``ball``: both are numbers of rankings."""

    def weights(bits: int) -> Weights:
        scale = bits + (everything // ball).bit_length() + 8
        low, high = exp_bounds(epsilon, scale)  # around 2^scale e^-eps
        one = 1 << scale
        return Weights([everything * low, ball * (one - high)], [everything * high, ball * (one - low)])

    return CutTable(weights)


def insertion_ways(size: int, left: int) -> list[int]:
    """In how many rankings of ``size`` items with at most ``left`` inversions the last overtakes 0, 1, … others."""
    shorter = theory.counts_up_to(size - 1)
    return [shorter[min(left - v, len(shorter) - 1)] if v <= left else 0 for v in range(size)]


def settled(word: int, ways: list[int], bits: Bits) -> int:
    """The cell of a uniform number whose first 64 digits, ``word``, equal a cut point: more digits settle it."""
    sums, total = list(itertools.accumulate(ways)), sum(ways)
    digits, length = word, WORD
    while True:
        low = next(cell for cell, until in enumerate(sums) if until << length > digits * total)
        high = next(cell for cell, until in enumerate(sums) if until << length >= (digits + 1) * total)
        if low == high:
            return low
        digits, length = digits << WORD | int(bits.words(1)[0]), length + WORD


def inside_weight(share: Floats, epsilon: float) -> Floats:
    """(e^eps - 1)|B| / ((e^eps - 1)|B| + m!) for balls that hold this share of all rankings."""
    shrunk = -math.expm1(-epsilon)
    return np.asarray(shrunk * share / (shrunk * share + math.exp(-epsilon)))


def best_radius(items: int, epsilon: float) -> int:
    """The radius that keeps most pairs in order."""
    shares, inversions = theory.ball_shares(items)[:-1], theory.mean_inversions(items)[:-1]
    return int(np.argmax(inside_weight(shares, epsilon) * (math.comb(items, 2) / 2 - inversions)))


def radius_for_mean_ranks(items: int, epsilon: float) -> int:
    """The radius whose debiased mean ranks have the smallest variance.

    With M the position matrix, x solves M x = ranks, and one answer has variance E[x(landed)^2 | a] - a^2, averaged
    over a.
    """
    most = math.comb(items, 2)
    balls = theory.landing_counts(items, most - 1) / np.array(theory.counts_up_to(items)[:-1], dtype=np.float64)
    inside = inside_weight(theory.ball_shares(items)[:-1], epsilon)
    laws = (inside * balls + (1 - inside) / items).transpose(2, 0, 1)
    ranks = np.arange(items) - (items - 1) / 2
    values = np.linalg.pinv(laws) @ ranks
    undone = np.abs(laws @ values[..., None] - ranks[:, None]).max(axis=(1, 2)) < 1e-6
    variances = np.einsum("tab,tb->t", laws, values**2) / items - (ranks**2).mean()
    return int(np.argmin(np.where(undone, variances, np.inf)))
