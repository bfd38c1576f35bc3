"""From counted votes to draws of the truth: which noisy counts are released, and what they say.

| method | design | released |
|---|---|---|
| wins | any | half-wins |
| copeland | any | the leads of all pairs |
| bradley-terry | public | half-wins |
| bradley-terry | hidden, few items | the table of ordered pairs |
| bradley-terry | hidden, many items | degrees, differences, and residuals at the strengths that these two give |
| | | or, where degrees show that it pays: degrees and the table |
| bradley-terry | hidden and matched, or another link | scores by objective perturbation, without intervals |

*Table or residuals.* The table assumes nothing about who met whom. It is taken wherever the expected error of a score
is at most 1.25 times that of residuals. With d comparisons per item the residual of an item has a sampling variance of
d/4; the table adds the noise of n - 1 pairs to it, residuals that of one number. Where the number of comparisons is
secret, d counts as 0 at first; if the table does not pay then, degrees are released, and d is their mean from there on.
All of these are public numbers.

*Shares of epsilon* (of rho where delta > 0): a tenth for degrees, a quarter for differences, the rest for residuals.
Each look may depend on what was released before (adaptive composition).

*The ridge of objective perturbation* is the one whose Hessian costs at most a tenth of epsilon, and at least that of
the prior. Noise and ridge then both grow like c/epsilon, so that the noise in a score has a standard deviation of at
most about 1.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.counts import PairCounts, components
from rankdp.inference.boards import Look, by_table, by_wins, centred, mode, strengths
from rankdp.inference.degrees import hidden_design
from rankdp.inference.draws import COUNT, Draws, opposite
from rankdp.inference.normal import PRIOR
from rankdp.mechanisms.votes.noisy_counts import (
    NoisyCounts,
    NoisyDegrees,
    NoisyDifferences,
    NoisyLeads,
    NoisyResiduals,
    NoisyTable,
    NoisyWins,
)
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.report.results import listed
from rankdp.types import Flags, Floats, Longs

PAIRINGS = ("unknown", "random", "matched")
DENSE_UP_TO = 1500
"""The most items whose precision matrix of strengths can be factorized."""
DEGREES, FIRST = Fraction(1, 10), Fraction(1, 4)
"""The shares of degrees and of differences, the first look."""
_TABLE_ERROR = 1.25  # the error of the table that is accepted, over that of residuals, because it assumes nothing
_HESSIAN = 0.1  # the share of epsilon that the ridge of objective perturbation costs
_NOISE_DEVIATIONS = 3.0  # a released number of comparisons up to this many deviations of noise may truly be 0
_NAMED = 4  # items in a warning
_FEWEST, _MOST_LEADS = 100, 10**7
_SEED = 1  # of the noise in the draws: public, so that a page can be reproduced

_ASSUMES = (
    "Who was compared with whom is secret: this leaderboard assumes that who met whom depended neither on strength nor "
    "on groups."
)
_RANDOM = "Who was compared with whom is secret: it was stated that pairs were drawn at random."
_MATCHED = (
    "No intervals: who was compared with whom is secret, and items of similar strength met more often. Noisy scores of "
    "such matches cannot show how far apart the items are."
)
_LINK = "No intervals: they are known for the logistic link only."
_MANY = f"No intervals: there are more than {DENSE_UP_TO:,} items."

Releasing = Callable[[NoisyCounts], Floats]
"""Releases noisy counts, in comparisons."""


@dataclass(frozen=True, slots=True)
class Public:
    """What is public: the items, the number of comparisons and the design (None where secret)."""

    items: tuple[str, ...]
    comparisons: float | None
    design: PairCounts | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What may be published: draws of the true scores, or scores alone where no interval can be given."""

    scores: Floats
    draws: Draws | None
    parameters: dict[str, Any]
    warnings: list[str] = field(default_factory=list)
    table: Floats | None = None
    """The released wins of the row's item over the column's, if the table was released."""
    perhaps_idle: Flags | None = None
    """Where the design is secret: items that may never have been compared, by their released number of comparisons."""

    @classmethod
    def of(cls, draws: Draws, parameters: dict[str, Any], warnings: list[str] | None = None) -> Estimate:
        """The estimate from draws."""
        return cls(draws.estimate, draws, parameters, warnings or [])


def by_own_wins(half_wins: Longs, public: Public, noisy: NoisyWins, bits: Bits) -> Estimate:
    """Noisy wins. The truth is the number of wins in these votes."""
    released = noisy.released(half_wins, bits) / 2
    again = noisy.likely_noise(len(released) * COUNT // 2, SeededBits(_SEED)).reshape(-1, len(released)) / 2
    uneven = "Who was compared with whom is secret: an item may have more wins only because it was compared more often."
    draws = Draws(released + opposite(again))
    return Estimate(released, draws, noisy.parameters, [uneven] if public.design is None else [])


def by_majorities(counts: PairCounts, public: Public, noisy: NoisyLeads, bits: Bits) -> Estimate:
    """Copeland's rule on noisy leads: how many others an item beats more often than it loses to them, ties as halves.

    The truth is that number in these votes. Draws subtract fresh noise from the released leads. Where the design is
    public, pairs that never met do not count.
    """
    items, pairs = len(public.items), np.triu_indices(len(public.items), 1)
    leads, design = noisy.released(noisy.counted(counts), bits), public.design
    if design is not None:
        met = np.zeros((items, items), np.bool_)
        met[design.first, design.second] = True
        known = met[pairs]
        leads, pairs = leads[known], (pairs[0][known], pairs[1][known])

    def won(lead: Floats) -> Floats:
        halves = np.sign(lead) + 1
        return (np.bincount(pairs[0], halves, items) + np.bincount(pairs[1], 2 - halves, items)) / 2

    again, many = SeededBits(_SEED), max(_FEWEST, min(COUNT, _MOST_LEADS // max(len(leads), 1)))
    draws = Draws(np.array([won(leads - noisy.likely_noise(len(leads), again)) for _ in range(many)]))
    uneven = "Who was compared with whom is secret: a pair that never met is decided by noise alone."
    return Estimate.of(draws, noisy.parameters, [uneven] if design is None else [])


def from_wins(public: Public, noisy: NoisyWins, half_wins: Longs, prior: float | None, bits: Bits) -> Estimate:
    """Bradley-Terry strengths from noisy wins and the public design."""
    assert public.design is not None
    design, items = public.design, len(public.items)
    released = noisy.sample(half_wins, bits)
    warnings = _extremes(public.items, released, design.half_wins + design.half_losses)
    if items > DENSE_UP_TO:
        scores = fit_wins(design, released, ridge=1 / (prior or PRIOR) ** 2).theta
        return Estimate(
            centred(scores, np.asarray(design.degree, np.float64)), None, noisy.parameters, [*warnings, _MANY]
        )
    met = np.zeros((items, items))
    met[design.first, design.second] = design.comparisons
    draws = by_wins(released / 2, met + met.T, noisy.noise_variance, prior)
    return Estimate.of(draws, noisy.parameters, warnings)


@dataclass(frozen=True, slots=True)
class HiddenDesign:
    """How Bradley-Terry scores are released where the design is hidden: all public. Parameters as in ``rank``."""

    protection: Protection
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    pairing: str = "unknown"
    prior: float | None = PRIOR
    link: Link = LOGISTIC

    def kind(self, items: int, comparisons: float | None = None) -> str:
        """What is released: "table", "residuals" or "objective".

        Parameters
        ----------
        items
            How many there are.
        comparisons
            How many there are, None where that is secret.
        """
        if self.link is not LOGISTIC or items > DENSE_UP_TO:
            return "objective"
        if self.table_pays(items - 1, 2 * (comparisons or 0) / items, self.table()):
            return "table"
        return "objective" if self.pairing == "matched" else "residuals"

    def table_pays(self, others: int, degree: float, table: NoisyTable) -> bool:
        """Whether the table's expected error is small enough, compared with that of residuals.

        Parameters
        ----------
        others
            How many others an item may meet.
        degree
            How many comparisons an item has on average.
        table
            The table as it would be released.
        """
        by_table = degree / 4 + others * table.noise_variance / 2
        return by_table <= _TABLE_ERROR**2 * (degree / 4 + self.residuals(np.zeros(2)).noise_variance)

    def table(self, share: Fraction = Fraction(1)) -> NoisyTable:
        """The table of ordered pairs, with this share of epsilon."""
        return NoisyTable(self.protection, self.epsilon, self.delta, share)

    def degrees(self) -> NoisyDegrees:
        """Degrees, with their share."""
        return NoisyDegrees(self.protection, self.epsilon, self.delta, DEGREES)

    def differences(self) -> NoisyDifferences:
        """The first look, with its share."""
        return NoisyDifferences(self.protection, self.epsilon, self.delta, FIRST)

    def residuals(self, strengths: Floats) -> NoisyResiduals:
        """The second look, at the strengths of the first, with what is left."""
        return NoisyResiduals(strengths, self.protection, self.epsilon, self.delta, 1 - DEGREES - FIRST)

    def residual_parts(self, strengths: Floats) -> list[NoisyCounts]:
        """All that is released for residuals, given the strengths of the first look."""
        return [self.degrees(), self.differences(), self.residuals(strengths)]

    def objective(self, items: int, comparisons: float | None = None) -> ObjectivePerturbation:
        """Objective perturbation with all of epsilon. Parameters as in ``kind``."""
        steepest = 2 * self.link.kappa_2 * self.protection.moved / (float(self.epsilon) * _HESSIAN)
        ridge = max(steepest, 1 / (self.prior or PRIOR) ** 2)
        size = items if comparisons is None else max(round(comparisons), 1)
        return ObjectivePerturbation(items, size, self.protection, self.epsilon, ridge, link=self.link)

    def draw(self, counts: PairCounts, public: Public, bits: Bits) -> Estimate:
        """Draw the scores, which costs epsilon (and delta) in total."""
        items = len(public.items)
        kind = self.kind(items, public.comparisons)
        if kind == "objective":
            return self._from_objective(counts, public, bits)
        found = self.estimate(
            kind, items, public.comparisons, lambda noisy: noisy.released(noisy.counted(counts), bits)
        )
        assert found.perhaps_idle is not None
        names = _first_names([item for item, idle in zip(public.items, found.perhaps_idle, strict=True) if idle])
        doubts = [f"Perhaps never compared (noise hides it), so do not trust their places: {names}."] if names else []
        return replace(found, warnings=[*found.warnings, *doubts])

    def _from_objective(self, counts: PairCounts, public: Public, bits: Bits) -> Estimate:
        mechanism = self.objective(len(public.items), public.comparisons)
        scores = mechanism.sample(counts, bits)
        why = _LINK if self.link is not LOGISTIC else _MATCHED if self.pairing == "matched" else _MANY
        parameters = {"mechanism": "objective", "link": self.link.name, "ridge": float(mechanism.ridge)}
        return Estimate(scores - scores.mean(), None, parameters, [why])

    def estimate(
        self, kind: str, items: int, comparisons: float | None, release: Releasing, pairs: int | None = None
    ) -> Estimate:
        """The estimate from released counts.

        Parameters
        ----------
        kind
            "table" or "residuals".
        items, comparisons
            As in ``kind``.
        release
            Releases noisy counts; called for one mechanism after the other.
        pairs
            For plans, where a few items represent many: how many others each item meets; all of them if not given.
        """
        others = pairs or items - 1
        if kind == "table":
            return self._from_table(self.table(), items, others, release)
        degrees, differences, table = self.degrees(), self.differences(), self.table(1 - DEGREES)
        met = release(degrees)
        if comparisons is None and self.table_pays(others, max(float(met.mean()), 0.0), table):
            return self._from_table(table, items, others, release)
        design = hidden_design(
            met,
            degrees.noise_variance,
            gaussian=degrees.rho is not None,
            total=None if comparisons is None else 2 * comparisons,
        )
        first = Look(release(differences) / 2, np.full((items, items), 0.5), differences.count_variance / 4)
        residuals = self.residuals(mode([first], design, self.prior))
        second = Look(release(residuals), residuals.weights, residuals.noise_variance)
        draws = strengths(lambda _: [first, second], design, self.prior)
        assumption = _RANDOM if self.pairing == "random" else _ASSUMES
        estimate = Estimate.of(draws, {"mechanism": "residuals", **residuals.parameters}, [assumption])
        return replace(estimate, perhaps_idle=met <= _NOISE_DEVIATIONS * math.sqrt(degrees.noise_variance))

    def _from_table(self, noisy: NoisyTable, items: int, others: int, release: Releasing) -> Estimate:
        table = np.zeros((items, items))
        table[~np.eye(items, dtype=np.bool_)] = release(noisy) / 2
        draws = by_table(table, noisy.noise_variance * others / (items - 1), self.prior)
        noise = math.sqrt(2 * (items - 1) * noisy.noise_variance)
        idle = (table + table.T).sum(axis=1) <= _NOISE_DEVIATIONS * noise
        return Estimate(draws.estimate, draws, {"mechanism": "table", **noisy.parameters}, [], table, idle)


def design_warnings(public: Public) -> list[str]:
    """What the public design makes doubtful."""
    if public.design is None:
        return []
    warnings = []
    idle = _first_names([item for item, degree in zip(public.items, public.design.degree, strict=True) if degree == 0])
    if idle:
        warnings.append(f"Never compared: {idle}.")
    parts = len(np.unique(components(public.design)))
    if parts > 1:
        warnings.append(
            f"The comparisons fall into {parts} parts with nothing between them; "
            "how scores of different parts compare depends on the prior alone."
        )
    return warnings


def _first_names(names: list[str]) -> str:
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return listed([*names[:_NAMED], *more], "and")


def _extremes(items: tuple[str, ...], half_wins: Longs, halves: Longs) -> list[str]:
    """Items whose released wins reach an end of what their comparisons allow."""
    extreme = ((half_wins >= halves) | (half_wins <= 0)) & (halves > 0)
    named = _first_names([items[index] for index in np.flatnonzero(extreme)])
    return [f"Won or lost almost every comparison, so the score is mostly the prior: {named}."] if named else []
