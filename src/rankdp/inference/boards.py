"""Strengths of compared items, given noisy sums over their comparisons: one posterior for every leaderboard.

Item i beats item j with probability p_ij = 1/(1 + exp(t_j - t_i)). With W_ij the wins of i over j, N_ij = W_ij + W_ji
and public weights u, a *look* at the votes is

    y_i = sum_j (W_ij u_ij - W_ji u_ji) + noise,    E y_i = sum_j N_ij m_ij,    m_ij = p_ij u_ij - p_ji u_ji.

- *Wins*, where the design is public: u_ij = 1/2, N is public, noise is on each y.
- The *table* of ordered pairs: u_ij = p_ji at the strengths of the fit, where m = 0; N is released with noise, noise is
  on each W.
- *Residuals* at public strengths t0: u_ij = min(1, exp(t0_j - t0_i))/2, N is expected from degrees, noise is on each y.

With q_ij = p_ij p_ji the slope of E y by t is the Laplacian of N_ij q_ij (u_ij + u_ji). Two looks y, y' at the same
votes covary by the Laplacian of N_ij q_ij (u_ij + u_ji)(u'_ij + u'_ji), the luck of outcomes; where who met whom is
hidden, N_ij is Poisson around its expectation, which adds N_ij m_ij m'_ij, and an error of an item's degree moves all
of its N_ij, which adds (E y_i)(E y'_i) times the degree's squared relative error. Residuals have m = 0 where t0 is
right, so there neither matters.

The prior is weak and fixed: t ~ N(0, 2^2), so that an item one deviation above the average wins 88% of its comparisons
with an average one. It is not learned from the votes, because matchmaking ties the design to the strengths. Where
someone states that pairs were drawn at random, the spread is integrated (``exchangeable``). All noise counts as
Gaussian; the posterior is normal (``normal``) but for the skewness of each strength (``marginals``). How well that
holds is measured (``python -m benchmarks coverage``).

Votes say nothing about the level of all strengths. Zero is the strength of the average opponent: each item counts as
often as it was compared. So items that nobody knows much about do not move all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rankdp.inference.degrees import Design, expected_design, likely_degrees
from rankdp.inference.draws import Draws
from rankdp.inference.marginals import skewed
from rankdp.inference.normal import PRIOR, Linear, fitted, posterior
from rankdp.inference.one_thread import one_thread
from rankdp.types import Floats


@dataclass(frozen=True, slots=True)
class Look:
    """What one release says of all items.

    Parameters
    ----------
    values
        y.
    weights
        u, a square table.
    noise
        The variance of the noise on each value, or the covariance of all.
    """

    values: Floats
    weights: Floats
    noise: float | Floats

    def margins(self, wins: Floats) -> Floats:
        """m, where the row's item beats the column's with the probability ``wins``."""
        return np.asarray(wins * self.weights - (1 - wins) * self.weights.T)


Looks = Callable[[Floats], Sequence[Look]]
"""Looks at the votes, given strengths around which they may be taken."""


@one_thread
def strengths(looks: Looks, design: Design, prior: float | None = PRIOR) -> Draws:
    """Draws of the strengths.

    Parameters
    ----------
    looks
        What was released.
    design
        Who met whom.
    prior
        The standard deviation of strengths; None integrates it, for pairs that were drawn at random.
    """
    linear, degrees = _linear(looks, design), design.met.sum(axis=1)
    theta, held, drawn = fitted(linear, len(degrees), prior)
    seen, likely = looks(theta), np.ones((len(degrees), 1)) if design.degrees is None else design.degrees

    def expected(strengths: Floats) -> Floats:
        wins = expit(strengths[:, None] - theta)
        return np.array([(design.met * look.margins(wins)).sum(axis=1) for look in seen])

    _, slope, spread = linear(theta)
    return Draws(centred(skewed(centred(drawn, degrees), theta, held, likely, expected, slope, spread), degrees))


def centred(drawn: Floats, degrees: Floats) -> Floats:
    """Strengths less that of the average opponent.

    Parameters
    ----------
    drawn
        Strengths, one row per draw.
    degrees
        How many comparisons each item has; where nobody was compared, all items count alike.
    """
    weights = degrees if degrees.any() else np.ones_like(degrees)
    return np.asarray(drawn - (drawn @ weights / weights.sum())[..., None])


def mode(looks: Sequence[Look], design: Design, prior: float | None = PRIOR) -> Floats:
    """The strengths of highest posterior density, with a fixed prior. Parameters as in ``strengths``."""
    return posterior(_linear(lambda _: looks, design), np.full(len(design.met), prior or PRIOR))[0]


def _linear(looks: Looks, design: Design) -> Linear:
    """y - E y, the slope of E y, and the covariance of y, look after look."""

    def at(theta: Floats) -> tuple[Floats, Floats, Floats]:
        items, wins, seen = len(theta), expit(theta[:, None] - theta), looks(theta)
        each = [(look.weights + look.weights.T, look.margins(wins)) for look in seen]
        curve = design.met * wins * wins.T
        means = [(design.met * pushed).sum(axis=1) for _, pushed in each]
        off = np.concatenate([look.values - mean for look, mean in zip(seen, means, strict=True)])
        slope = np.concatenate([laplacian(curve * both) for both, _ in each])
        spread = np.empty((len(off), len(off)))
        for a, (both, pushed) in enumerate(each):
            for b, (others, pushed_too) in enumerate(each):
                luck = curve * both * others
                if design.doubt is not None:
                    luck = luck + design.met * pushed * pushed_too
                block = laplacian(luck)
                if design.doubt is not None:
                    block[np.diag_indices(items)] += means[a] * means[b] * design.doubt
                if a == b:
                    noise = seen[a].noise
                    block += noise * np.eye(items) if isinstance(noise, float) else noise
                spread[a * items : (a + 1) * items, b * items : (b + 1) * items] = block
        return off, slope, spread

    return at


def laplacian(weights: Floats) -> Floats:
    """The Laplacian of a graph with these symmetric weights."""
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def by_wins(wins: Floats, met: Floats, noise: float, prior: float | None = PRIOR) -> Draws:
    """Strengths from noisy wins and a public design.

    Parameters
    ----------
    wins
        The wins of each item, with noise.
    met
        How often each pair met.
    noise
        The variance of the noise on each number.
    prior
        As in ``strengths``.
    """
    look = Look(wins - met.sum(axis=1) / 2, np.full(met.shape, 0.5), noise)
    return strengths(lambda _: [look], Design(met), prior)


def by_table(table: Floats, noise: float, prior: float | None = PRIOR) -> Draws:
    """Strengths from a noisy table of ordered pairs.

    Parameters
    ----------
    table
        The wins of the row's item over the column's, with noise.
    noise, prior
        As in ``by_wins``.
    """
    off = 1 - np.eye(len(table))
    both, doubled = (table + table.T) * off, 2 * noise
    likely = likely_degrees(both.sum(axis=1), doubled * (len(table) - 1), gaussian=True)
    degrees = likely.mean(axis=1)
    expected = expected_design(degrees)
    trust = expected**2 / (expected**2 + doubled + 1e-12)  # in a cell, against its row's and column's degrees
    met = np.maximum(expected + trust * (both - expected), 0) * off  # for slopes and luck only

    def looks(theta: Floats) -> list[Look]:
        losing = expit(theta - theta[:, None])
        values = (table * losing * off - (table * losing * off).T).sum(axis=1)
        return [Look(values, losing, laplacian(noise * (losing**2 + losing.T**2) * off))]

    return strengths(looks, Design(met, likely / degrees[:, None]), prior)
