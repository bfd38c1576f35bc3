"""Leaderboards with covariates: strengths corrected for length, style or position.

Pairs and covariates are public; only outcomes are secret. Two noisy sums are released: the differences of the items and
one vector for all covariates (``mechanisms.votes.noisy_covariates``). Strengths and effects are computed from these and
from the public rows (``rankers.covariate_rows``). Public numbers divide epsilon between the two: with m items of
information h_t (a quarter of an item's comparisons) and noise A at epsilon 1, and d covariates of information h_b and
noise B, the sum of the errors m A/(h_t (1-q))^2 + d B/(h_b q)^2 is least for q/(1-q) = (d B h_t^2/(m A h_b^2))^(1/3).

The posterior is that of ``inference.normal``: strengths and effects at their bounds have the prior N(0, 2^2), the sums
have the covariance of outcomes and of the noise, and draws are from the normal law around the mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.comparisons import Comparisons
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.inference.boards import centred
from rankdp.inference.draws import Draws
from rankdp.inference.normal import normal_draws, posterior
from rankdp.mechanisms.votes.noisy_counts import NoisyDifferences
from rankdp.mechanisms.votes.noisy_covariates import STEPS, NoisyCovariates
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import MOST_NUMBERS
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Release, released
from rankdp.publish import leaderboard
from rankdp.publish.board_estimators import DENSE_UP_TO
from rankdp.publish.leaderboard import Effect, Leaderboard
from rankdp.rankers.covariate_rows import CovariateRows
from rankdp.types import Floats

_LEAST_EPSILON = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CovariateVotes:
    """The secret outcomes and the public rows. Parameters as in ``rank``."""

    items: tuple[str, ...]
    rows: VoteRows
    covariates: tuple[Covariate, ...]
    protection: Protection
    epsilon: Fraction
    prior: float
    top: int | None
    scale: str
    level: float

    what = "rank by bradley-terry with covariates"

    @classmethod
    def of(
        cls,
        votes: Comparisons,
        covariates: tuple[Covariate, ...],
        protection: Protection,
        epsilon: Fraction,
        **asked: Any,
    ) -> CovariateVotes:
        """Read the votes. Every refusal happens here, before anything is charged."""
        if len(covariates) > MOST_NUMBERS:
            raise InputError(
                Setting("covariates"), f" must be at most {MOST_NUMBERS} in number, got {len(covariates):,}"
            )
        if epsilon < _LEAST_EPSILON:
            raise InputError(Setting("epsilon"), f" must be at least 1e-6 with covariates, got {epsilon}")
        leaderboard.check_request(len(votes.items), asked["level"], asked["top"])
        if len(votes.items) > DENSE_UP_TO:
            raise Unsupported(f"with covariates there can be at most {DENSE_UP_TO} items")
        read = cls(votes.items, votes.rows(covariates), covariates, protection, epsilon, **asked)
        if not read.rows.weights.sum():  # dropping a row depends on public cells only, never on its outcome
            raise InputError(Setting("covariates"), " need at least one comparison, and every row was dropped")
        NoisyCovariates(read.rows.covariates, read.rows.weights, read._share() * epsilon).check()
        return read

    @property
    def guarantee(self) -> Guarantee:
        """What the leaderboard will promise."""
        return Guarantee(self.protection.protects, self.epsilon, local=False)

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; the caller has charged ``guarantee``."""
        board, parameters = self._board(bits)
        facts = {
            "protect": self.protection.unit,
            "epsilon": str(self.epsilon),
            "items": len(self.items),
            "covariates": {covariate.name: covariate.bound for covariate in self.covariates},
            **parameters,
        }
        value = board.as_elo() if self.scale == "elo" else board
        return released(value, self.guarantee, "bradley-terry with covariates", facts, bits)

    def _board(self, bits: Bits) -> tuple[Leaderboard, dict[str, Any]]:
        """The leaderboard from noisy differences and V, and the released parameters."""
        rows, n = self.rows, len(self.items)
        share = self._share()
        noisy = NoisyDifferences(self.protection, self.epsilon, share=1 - share)
        effects = NoisyCovariates(rows.covariates, rows.weights, share * self.epsilon)
        instruments = effects.instruments()
        differences = np.bincount(rows.first, rows.outcomes, n) - np.bincount(rows.second, rows.outcomes, n)
        target = np.concatenate(
            [noisy.sample(differences.astype(np.int64), bits), effects.sample(instruments, rows.outcomes, bits)]
        )
        public = CovariateRows(n, rows.first, rows.second, rows.weights, rows.covariates, instruments / STEPS)
        noise = np.full(len(target), noisy.count_variance)
        noise[n:] = effects.noise_variance
        prior = np.full(len(target), self.prior)
        theta, _, precision = posterior(lambda point: _linear(public, target, noise, point), prior)
        drawn = normal_draws(theta, precision, prior)
        degrees = np.bincount(rows.first, rows.weights, n) + np.bincount(rows.second, rows.weights, n)
        strengths = centred(drawn[:, :n], np.asarray(degrees, np.float64))
        names = ", ".join(covariate.name for covariate in self.covariates)
        board = leaderboard.build(
            self.items,
            Draws(strengths),
            level=self.level,
            score_name="score",
            top=self.top,
            warnings=[f"Scores compare items at equal {names}. These covariates are public: they are not protected."],
        )
        parameters = {"covariates_share": str(share), "noise_variance": noisy.count_variance / 4}
        return replace(board, effects=self._effects(Draws(drawn[:, n:]))), parameters

    def _share(self) -> Fraction:
        """q, from public numbers, in 64ths."""
        rows, d, n = self.rows, len(self.covariates), len(self.items)
        whole = NoisyCovariates(rows.covariates, rows.weights, Fraction(1))
        strength = rows.weights @ (rows.covariates * whole.instruments()) / STEPS / 4
        effects = whole.noise_variance * float((1 / np.maximum(strength, 1e-9) ** 2).mean())
        degree = 2 * float(rows.weights.sum()) / n
        scores = NoisyDifferences(self.protection, 1).count_variance / (degree / 4) ** 2
        ratio = (d * effects / (n * scores)) ** (1 / 3)
        return Fraction(min(max(round(64 * ratio / (1 + ratio)), 4), 60), 64)

    def _effects(self, draws: Draws) -> tuple[Effect, ...]:
        low, high = draws.interval(self.level)
        values = zip(self.covariates, draws.estimate.tolist(), low.tolist(), high.tolist(), strict=True)
        return tuple(Effect(covariate.name, covariate.bound, *numbers) for covariate, *numbers in values)


def _linear(public: CovariateRows, target: Floats, noise: Floats, point: Floats) -> tuple[Floats, Floats, Floats]:
    """The sums minus their expectation, the expectation's slope, and the covariance of the sums."""
    expected = np.tanh(public.gaps(point) / 2)
    variance = 1 - expected * expected
    residuals = target - public.sums(np.asarray(public.weights * expected))
    sampling = replace(public, covariates=public.instruments).slopes(public.weights * variance)
    slope = public.slopes(public.weights * variance / 2)
    return residuals, slope, (sampling + sampling.T) / 2 + np.diag(noise)
