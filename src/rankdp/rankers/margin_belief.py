"""What is believed about all margins after noisy Borda scores and the noisy margins of some pairs.

Margins of n ballots split into scores and cycles (HodgeRank), y_ij = (c_i - c_j)/m + r_ij. Before anything is seen,
the c_i are independent normal numbers of variance (0.4 n m)^2/2, and the r_ij of (0.05 n)^2: public ballots have
between 0.34 and 0.67 instead of 0.4, and between 0.02 and 0.19 instead of 0.05. (A small number does better here than
the mean: it keeps questions to pairs that the scores leave open.) Noise is taken for normal. Then

- scores s = c + e with Var e = v make c normal around k s with variance k v, k = V/(V + v);
- a margin z = y_ij + e with Var e = w says the same as z - (c_i - c_j)/m = r_ij + e about c, and about r_ij, given c,
  that it is near h (z - (c_i - c_j)/m), h = R/(R + w), V and R the variances from before.

*Which pairs to ask for.* A pair believed at d +- t is put in the wrong order at the expected price L(d, t) = t phi(d/t)
- abs(d) Phi(-abs(d)/t), the majority that is then overruled. To ask for it with noise of variance w saves L(d,
t^2/sqrt(t^2 + w)) (the value of sample information: Raiffa and Schlaifer 1961). w grows with the number of pairs asked
for, so pairs are taken in the order of L(d, t), and so many that the sum is largest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankdp.types import Floats, Longs

SPREAD_OF_SCORES, SPREAD_OF_CYCLES = 0.4, 0.05
"""Standard deviations of the two parts of a margin, as shares of the ballots."""


class MarginBelief:
    """A normal belief about the margins of all pairs.

    Parameters
    ----------
    scores
        Noisy Borda scores.
    variance
        Of the noise on each.
    ballots
        How many there are, about.
    cycles
        The standard deviation of the cyclic part of a margin, as a share of the ballots.
    """

    def __init__(self, scores: Floats, variance: float, ballots: float, cycles: float = SPREAD_OF_CYCLES) -> None:
        m = len(scores)
        prior = (SPREAD_OF_SCORES * ballots * m) ** 2 / 2
        self.kept = prior / (prior + variance)
        self.scores, self.variance = self.kept * (scores - scores.mean()), self.kept * variance
        self.cycles = (cycles * ballots) ** 2
        self.weights, self.heard = np.zeros((m, m)), np.zeros((m, m))

    def hear(self, first: Longs, second: Longs, margins: Floats, variance: float) -> None:
        """Take in noisy margins of some pairs.

        Parameters
        ----------
        first, second
            The pairs; none twice.
        margins
            The noisy margins of the first over the second.
        variance
            Of the noise on each.
        """
        for one, other, signed in ((first, second, margins), (second, first, -margins)):
            before = self.weights[one, other]
            self.weights[one, other] = before + 1 / variance
            self.heard[one, other] += (signed - self.heard[one, other]) / (variance * before + 1)

    def _scores(self) -> tuple[Floats, Floats]:
        """Mean and covariance of the scores c."""
        m = len(self.scores)
        seen = self.weights / (1 + self.cycles * self.weights)  # 1/(R + w), 0 for a pair that was not asked for
        precision = np.eye(m) / self.variance + (np.diag(seen.sum(axis=1)) - seen) / m**2
        covariance = np.asarray(np.linalg.inv(precision), np.float64)
        surprise = seen * (self.heard - _differences(self.scores) / m)
        mean: Floats = self.scores + covariance @ surprise.sum(axis=1) / m
        return mean, covariance

    @property
    def _missing(self) -> Floats:
        """1 - h for each pair."""
        return np.asarray(1 / (1 + self.cycles * self.weights))

    def margins(self) -> tuple[Floats, Floats]:
        """The expected margins, and their variances."""
        m, missing = len(self.scores), self._missing
        mean, covariance = self._scores()
        own = np.diag(covariance)
        of_scores = (own[:, None] + own - 2 * covariance) / m**2
        expected = missing * _differences(mean) / m + (1 - missing) * self.heard
        return expected, missing**2 * of_scores + missing * self.cycles

    def pairs_to_ask(self, noise: Callable[[int], float], most: int) -> tuple[Longs, Longs]:
        """The pairs that are worth asking for.

        Parameters
        ----------
        noise
            The variance of the noise on each of so many margins.
        most
            The largest number of pairs.
        """
        first, second = np.triu_indices(len(self.scores), 1)
        margins, variances = (table[first, second] for table in self.margins())
        order = np.argsort(-_price(margins, np.sqrt(variances)), kind="stable")[:most]
        saved = []
        for count in range(1, len(order) + 1):
            asked = order[:count]
            saved.append(_price(margins[asked], variances[asked] / np.sqrt(variances[asked] + noise(count))).sum())
        chosen = np.sort(order[: 1 + int(np.argmax(saved))])
        return first[chosen], second[chosen]

    def draws(self, count: int, random: np.random.Generator) -> Floats:
        """Margins that may be the true ones, count x m x m.

        Parameters
        ----------
        count
            How many draws.
        random
            Where they come from.
        """
        m, missing = len(self.scores), self._missing
        mean, covariance = self._scores()
        scores = random.multivariate_normal(mean, covariance, count, method="cholesky")
        own = np.triu(random.standard_normal((count, m, m)), 1) * np.sqrt(missing * self.cycles)
        drawn: Floats = missing * _differences(scores) / m + (1 - missing) * self.heard + own - own.swapaxes(1, 2)
        return drawn


def _differences(scores: Floats) -> Floats:
    return np.asarray(scores[..., :, None] - scores[..., None, :])


def _price(margins: Floats, deviations: Floats) -> Floats:
    """The majority that is expected to be overruled where margins are believed at so many ballots (see the module)."""
    from scipy.special import ndtr

    away = np.abs(margins) / deviations
    return np.asarray(deviations * np.exp(-(away**2) / 2) / np.sqrt(2 * np.pi) - np.abs(margins) * ndtr(-away))
