"""Attacks on synthetic rankings: the most likely secret behind N of them, and where one item stood.

The inference attack (Xu, Section 4) sees N synthetic rankings y_1, …, y_N of one secret ranking. The attacker knows the
mechanism and takes the ranking x that makes them most likely,

    argmax over x of sum over i of log P(y_i | x).

For the Kendall mechanism this is Kemeny's ranking of the releases (docs/theory.md). For the others it is searched among
all rankings of up to seven items, where it is exact, and above by moving one item at a time from Kemeny's ranking for
as long as that helps, where it is not known to be.

The position attack asks what one release tells about where *my* item stood. The attacker has a prior over the item's
position and supposes nothing about the other items (all their orders equally likely). Then the release matters only
through the position b where the item landed, and

    posterior(a) = prior(a) M[a, b] / sum over a' of prior(a') M[a', b],    M the mechanism's position matrix.

eps-ranking DP says that no two positions' odds change by more than e^eps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rankdp.checks import whole
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.contract import Orders, RankingMechanism, as_orders
from rankdp.mechanisms.registry import Protect
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.progress import tell
from rankdp.rankers.kemeny import kemeny
from rankdp.report.document import Report
from rankdp.report.plots import COLOURS, SERIES, drawing
from rankdp.report.results import Table
from rankdp.theory import mallows as theory
from rankdp.theory.permutations import all_permutations, moves, places
from rankdp.types import Floats, Longs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT_UP_TO = 7
_TABLE_UP_TO = 6  # items up to which all pairs of rankings fit a table
_ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class Inference:
    """The ranking that the attacker takes for the secret one.

    No other is more likely by more than ``gap`` in log-likelihood: 0 where the search is ``exact``; else from Kemeny's
    bound, or from what the releases would have if each were the most likely output.
    """

    order: Orders
    log_likelihood: float
    exact: bool
    gap: float = 0.0


def infer(releases: ArrayLike, mechanism: RankingMechanism, offsets: ArrayLike | None = None) -> Inference:
    """The most likely secret ranking behind several releases of it.

    Parameters
    ----------
    releases
        A row for each release: an order of the items 0, …, m-1, best first.
    mechanism
        The mechanism that drew all of them, with its epsilon; the attacker knows it.
    offsets
        The public offset of each release, where the mechanism has them.
    """
    orders = as_orders(np.atleast_2d(np.asarray(releases)), mechanism.items, "releases")
    if not len(orders):
        raise InputError("releases must hold at least one ranking, got none")
    if mechanism.has_offsets and (offsets is None or np.shape(offsets) != (len(orders),)):
        raise InputError(
            f"offsets must be given for each of the {len(orders)} releases of the {mechanism.name} mechanism"
        )
    public = np.asarray(offsets) if mechanism.has_offsets else np.zeros(len(orders), dtype=np.int64)
    seen, counts = np.unique(np.column_stack([orders, public]), axis=0, return_counts=True)
    cost = mechanism.disagreement_cost()
    if cost is not None or mechanism.items > EXACT_UP_TO:
        start = kemeny(_preferences(orders))
        if cost is not None:
            gap = 0.0 if start.exact else float(start.gap) * cost
            return Inference(start.order, _likelihood(mechanism, seen, counts, start.order), start.exact, gap)
        return _climb(mechanism, seen, counts, start.order)
    candidates = all_permutations(mechanism.items)
    likelihood = [_likelihood(mechanism, seen, counts, secret) for secret in candidates]
    best = int(np.argmax(likelihood))
    return Inference(candidates[best], likelihood[best], True)


def _likelihood(mechanism: RankingMechanism, seen: Longs, counts: Longs, secret: Orders) -> float:
    """Of releases whose last column is the offset."""
    return float(counts @ mechanism.log_prob(seen[:, :-1], secret, seen[:, -1]))


def _preferences(orders: Orders) -> Longs:
    """How often i is ranked before j."""
    standing = np.argsort(orders, axis=1)
    return np.asarray((standing[:, :, None] < standing[:, None, :]).sum(axis=0))


def _climb(mechanism: RankingMechanism, seen: Longs, counts: Longs, start: Orders) -> Inference:
    """Move one item at a time, always the best move, while it helps."""
    best, value = np.asarray(start, dtype=np.int32), _likelihood(mechanism, seen, counts, start)
    steps = moves(mechanism.items)
    while True:
        values = [_likelihood(mechanism, seen, counts, best[step]) for step in steps]
        if max(values) <= value:
            most = max(mechanism.at(offset).log_prob_of_no_change() for offset in set(seen[:, -1].tolist()))
            return Inference(best, value, False, int(counts.sum()) * most - value)
        best, value = best[steps[int(np.argmax(values))]], max(values)


@dataclass(frozen=True, slots=True)
class Success:
    """How often the attacker found the whole secret, with a Wilson interval."""

    releases: int
    epsilon: float
    probability: float
    low: float
    high: float
    error_bound: float
    """The exact binomial tail behind Theorem 2, for Kendall: the attacker fails at least so often (NaN: unknown)."""
    paper_bound: float
    """Theorem 2 as it is printed, with its unknown constant taken as 1."""


def success_probability(
    mechanism: RankingMechanism, releases: int, repetitions: int = 1000, bits: Bits | None = None, level: float = 0.95
) -> Success:
    """How often the attack finds the secret, over fresh releases of it.

    The secret is 0, 1, …, m-1; by symmetry it does not matter which. Where k secrets are equally likely, a repetition
    counts 1/k if the right one is among them.

    Parameters
    ----------
    mechanism
        What draws the releases; for up to six items, because all rankings are tabulated.
    releases
        How many releases of the secret the attacker sees in each repetition.
    repetitions
        How many independent attacks are simulated.
    bits
        Where the draws come from; ``SeededBits(0)`` if not given, so that the result can be repeated.
    level
        Confidence of the Wilson interval, between 0 and 1.
    """
    m = mechanism.items
    if m > _TABLE_UP_TO:
        raise InputError(f"the attack is repeated for up to {_TABLE_UP_TO} items, got {m}")
    releases, repetitions = whole("releases", releases, 1), whole("repetitions", repetitions, 1)
    relative = _relative_places(m)
    laws = [mechanism.at(offset).log_prob(all_permutations(m), np.arange(m)) for offset in range(mechanism.offsets)]
    table = np.concatenate([law[relative] for law in laws], axis=1)
    bits, hits, done = bits or SeededBits(0), 0.0, 0
    while done < repetitions:
        some = min(repetitions - done, max(1, _ROWS_AT_A_TIME // releases))
        given = np.tile(np.arange(m, dtype=np.int32), (some * releases, 1))
        drawn, offsets = mechanism.sample_with_offsets(given, bits)
        outputs = (places(drawn) + math.factorial(m) * offsets).reshape(some, releases)
        codes = outputs + table.shape[1] * np.arange(some)[:, None]
        counts = np.bincount(codes.ravel(), minlength=some * table.shape[1]).reshape(some, -1)
        likelihood = counts @ table.T
        top = likelihood >= likelihood.max(axis=1, keepdims=True) - 1e-9 * releases
        hits += float((top[:, 0] / top.sum(axis=1)).sum())
        done += some
    low, high = _wilson(hits / repetitions, repetitions, level)
    eps = float(mechanism.epsilon)
    known = mechanism.disagreement_cost() == theory.rate(m, eps)  # the law that Theorem 2 is about
    return Success(
        releases,
        eps,
        hits / repetitions,
        low,
        high,
        theory.reversal_tail(releases, m, eps) if known else math.nan,
        theory.theorem_2_bound(releases, m, eps) if known else math.nan,
    )


def success_curve(
    name: str,
    items: int,
    releases: Sequence[int],
    epsilon: float | str,
    repetitions: int = 1000,
    bits: Bits | None = None,
    protect: Protect = "position",
) -> list[Success]:
    """How often the attack finds the secret, for several numbers of releases.

    Parameters
    ----------
    name
        The mechanism, by its registered name.
    items
        The number m of ranked items, from 2 to 6.
    releases
        The numbers N of releases that the attacker sees.
    epsilon
        A number for every release; or "adaptive" for (m-1)/sqrt(N), or "adaptive-log" for (m-1) log(N)/sqrt(N), as in
        Figures 5 and 6 of Xu.
    repetitions, bits
        As in ``success_probability``, for each N.
    protect
        What epsilon protects: "position" or "ranking".
    """
    curve, bits = [], bits or SeededBits(0)
    for number, count in enumerate(releases):
        tell("attacking", number, len(releases))
        asked = epsilon
        if epsilon in ("adaptive", "adaptive-log"):
            growth = math.log(max(count, 2)) if epsilon == "adaptive-log" else 1.0
            asked = theory.adaptive_epsilon(count, items) * growth
        built = build(name, items, asked, protect=protect)
        curve.append(success_probability(built, count, repetitions, bits.spawn()))
    return curve


def inference_report(curves: Mapping[str, Sequence[Success]], items: int, epsilon: object) -> Report:
    """The report of the inference attack.

    Parameters
    ----------
    curves
        For each mechanism the attacker's success by the number of releases.
    items
        How many items the secret ranking has.
    epsilon
        The epsilon of each release, as it was asked for.
    """
    facts = {name: [dataclasses.asdict(success) for success in curve] for name, curve in curves.items()}
    rows = [
        [
            str(same[0].releases),
            *(f"{success.probability:.1%} ({success.low:.0%} – {success.high:.0%})" for success in same),
        ]
        for same in zip(*curves.values(), strict=True)
    ]
    return Report(
        title=f"How often attackers find a whole ranking of {items} items, epsilon {epsilon} a release",
        records=[{"mechanism": name, **fact} for name, curve in facts.items() for fact in curve],
        facts=lambda: facts,
        tables=[Table(["releases", *curves], rows)],
        headline=(
            f"Each release of a ranking of {items} items costs its epsilon ({epsilon}) again. Publish it once, or keep "
            "the answer and give the same one every time."
        ),
        figure=drawing(lambda axes: _draw_success(curves, axes)),
    )


def _draw_success(curves: Mapping[str, Sequence[Success]], axes: Axes) -> None:
    """The attacker's success against the number of releases, a line with its interval for each mechanism."""
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS.get(name, SERIES[number])
        count = [success.releases for success in curve]
        axes.plot(count, [success.probability for success in curve], "-o", color=colour, markersize=4, label=name)
        low, high = [success.low for success in curve], [success.high for success in curve]
        axes.fill_between(count, low, high, color=colour, alpha=0.2, linewidth=0)
        bounds = [1 - success.error_bound for success in curve]
        if not any(math.isnan(bound) for bound in bounds):
            axes.plot(count, bounds, ":", color=colour, label=f"{name}: at most, by the binomial tail")
    axes.set(
        xlabel="releases of the same ranking",
        ylabel="the attacker finds the whole ranking",
        ylim=(-0.02, 1.02),
        title="Publishing the same ranking again and again",
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(color="0.93")
    axes.legend(frameon=False)


def _wilson(share: float, trials: int, level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / (1 + z**2 / trials)
    return max(0.0, middle - reach), min(1.0, middle + reach)


@lru_cache(maxsize=8)
def _relative_places(items: int) -> Longs:
    """Row x, column y: the lexicographic index of the relative permutation s, y[j] = x[s[j]]."""
    every = all_permutations(items)
    return np.stack([places(inverse[every]) for inverse in np.argsort(every, axis=1)])


@dataclass(frozen=True, slots=True)
class PositionAttack:
    """What the attacker believed before and believes after; positions count from 1."""

    landed: int
    prior: Floats
    posterior: Floats
    epsilon: float

    @property
    def odds_factor(self) -> float:
        """The largest change of the odds between two positions: never above e^epsilon."""
        possible = self.prior > 0
        change = self.posterior[possible] / self.prior[possible]
        return float(change.max() / change.min()) if change.min() > 0 else math.inf

    @property
    def guess(self) -> int:
        """The most likely position."""
        return int(np.argmax(self.posterior)) + 1

    def explain(self) -> str:
        """The picture in words."""
        before, after = self.prior[self.guess - 1], self.posterior[self.guess - 1]
        return (
            f"The synthetic ranking shows the item at position {self.landed}. The best guess is position {self.guess}: "
            f"{after:.0%} likely, {before:.0%} before. The odds between two positions changed by a factor "
            + (f"of at most {self.odds_factor:.3g}" if self.odds_factor < math.inf else "that no number shows")
            + f"; epsilon {self.epsilon:g} allows "
            + (f"{math.exp(self.epsilon):.3g}." if self.epsilon < 14 else f"e^{self.epsilon:g}.")
        )

    def report(self) -> Report:
        """A table, bars and a sentence."""
        beliefs = [*zip(range(1, len(self.prior) + 1), self.prior.tolist(), self.posterior.tolist(), strict=True)]
        rows = [[str(at), f"{before:.1%}", f"{after:.1%}", "█" * round(40 * after)] for at, before, after in beliefs]
        return Report(
            title="Where was the item really ranked?",
            records=[dict(zip(("position", "before", "after"), belief, strict=True)) for belief in beliefs],
            facts=lambda: {name: getattr(self, name) for name in ("prior", "posterior", "landed", "odds_factor")},
            tables=[Table(["position", "before", "after", ""], rows, texts=4)],
            headline=self.explain(),
            figure=drawing(self.draw),
        )

    def draw(self, axes: Axes) -> None:
        """Bars, before and after."""
        positions = np.arange(1, len(self.prior) + 1)
        axes.bar(positions - 0.2, self.prior, 0.4, color="0.75", label="before the release")
        axes.bar(positions + 0.2, self.posterior, 0.4, color=SERIES[0], label="after the release")
        axes.set(
            xlabel="true position of the item",
            ylabel="how likely",
            title=f"The item was shown at position {self.landed} (epsilon {self.epsilon:g})",
        )
        axes.set_xticks(positions if len(positions) <= 20 else positions[:: len(positions) // 10])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.legend(frameon=False)


def position_attack(
    mechanism: RankingMechanism, landed: int, prior: ArrayLike | None = None, offset: int | None = None
) -> PositionAttack:
    """What an attacker believes about an item's true position after seeing one release.

    Parameters
    ----------
    mechanism
        The mechanism that drew the release.
    landed
        The item's position in the release, from 1 for the best.
    prior
        How likely each true position was before, best first: numbers of at least 0 that need not add up to 1; equal if
        not given.
    offset
        The public offset of the release, where the mechanism has them and the attacker uses it.
    """
    m = mechanism.items
    landed = whole("landed", landed, 1, m)
    before = np.full(m, 1 / m) if prior is None else np.asarray(prior, dtype=np.float64)
    if before.shape != (m,) or not np.isfinite(before).all() or (before < 0).any() or before.sum() <= 0:
        raise InputError(f"prior must be {m} numbers of at least 0 that are not all 0, got {prior!r}")
    before = before / before.sum()
    seen = mechanism if offset is None else mechanism.at(offset)
    after = before * seen.position_matrix()[:, landed - 1]
    if after.sum() == 0:
        raise InputError(
            f"prior must leave a position from which the item can be shown at position {landed}, got {prior!r}, "
            f"where epsilon {float(mechanism.epsilon):g} leaves no noise that a number shows"
        )
    return PositionAttack(landed, before, after / after.sum(), float(mechanism.epsilon))
