"""Leaderboards with covariates: strengths that are free of length, style or position.

Pairs and covariates are public; only outcomes are secret. Two noisy sums are released: the differences of the items and
one vector for all covariates (``mechanisms.votes.noisy_covariates``). Strengths and effects are computed from these and
from the public rows (``rankers.covariate_fit``). Public numbers divide epsilon between the two: with m items of
information h_t (a quarter of an item's comparisons) and noise A at epsilon 1, and d covariates of information h_b and
noise B, the sum of the errors m A/(h_t (1-q))^2 + d B/(h_b q)^2 is least for q/(1-q) = (d B h_t^2/(m A h_b^2))^(1/3).

Errors. With M the slopes of the equations at the released point, R the ridges, s the sampling noise of the sums and w
the privacy noise, released - true = (M + 2R)^-1 (s + w - 2R true) or M^+ (s + w - 2R released), which is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.comparisons import Comparisons
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.noisy_counts import NoisyDifferences
from rankdp.mechanisms.votes.noisy_covariates import STEPS, NoisyCovariates
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.cube_noise import MOST_NUMBERS
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Release, released
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Effect, Leaderboard
from rankdp.publish.score_errors import DRAWS, SPREAD, largest_part
from rankdp.publish.vote_scores import choose_ridge
from rankdp.rankers.covariate_fit import CovariateRows, fit_covariates
from rankdp.types import Floats

_EFFECTS_SPREAD = 1.0  # the variance that effects at their bounds are expected to have
_LEAST_EPSILON = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CovariateVotes:
    """The secret outcomes and the public rows. Parameters as in ``rank``."""

    items: tuple[str, ...]
    rows: VoteRows
    covariates: tuple[Covariate, ...]
    protection: Protection
    epsilon: Fraction
    ridge: float | None
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
        if len(votes.items) > leaderboard.DENSE_UP_TO:
            raise Unsupported(f"with covariates there can be at most {leaderboard.DENSE_UP_TO} items")
        read = cls(votes.items, votes.rows(covariates), covariates, protection, epsilon, **asked)
        if not read.rows.weights.sum():  # which rows are dropped is public: their outcomes do not decide it
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
        ridges = self._ridges(public, noisy, effects)
        theta, found, slopes = fit_covariates(public, target, ridges)
        point = np.concatenate([theta, found])
        random = np.random.default_rng(0)
        privacy = np.vstack([noisy.noise(n * DRAWS, bits.spawn()).reshape(n, DRAWS), effects.simulated(DRAWS, random)])
        errors = _errors(public, point, slopes, ridges, privacy, random)
        names = ", ".join(covariate.name for covariate in self.covariates)
        board = leaderboard.build(
            self.items,
            theta,
            errors[:n],
            level=self.level,
            score_name="score",
            top=self.top,
            warnings=[f"Scores are those at equal {names}. These covariates are treated as public and not protected."],
            spread=SPREAD,
        )
        effects_found = self._effects(found, errors[n:])
        parameters = {"covariates_share": str(share), "noise_variance": noisy.count_variance / 4}
        return replace(board, effects=effects_found), parameters

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

    def _ridges(self, public: CovariateRows, noisy: NoisyDifferences, effects: NoisyCovariates) -> Floats:
        """Those of least expected error, as ``vote_scores.choose_ridge`` has them."""
        degree = 2 * float(public.weights.sum()) / public.items
        scores = self.ridge if self.ridge is not None else choose_ridge(degree, noisy.count_variance / 4)
        strength = np.maximum(public.weights @ (public.instruments * public.covariates) / 4, 1e-9)
        sampling = public.weights @ public.instruments**2 / 4
        pulls = (sampling + effects.noise_variance / 4) / (strength * _EFFECTS_SPREAD)
        return np.concatenate([np.full(public.items, scores), pulls])

    def _effects(self, found: Floats, errors: Floats) -> tuple[Effect, ...]:
        tail = (1 - self.level) / 2
        above, below = np.full((2, len(found)), [[np.inf], [-np.inf]])
        sure = np.isfinite(errors).all(axis=1)
        above[sure], below[sure] = np.quantile(errors[sure], [1 - tail, tail], axis=1)
        low, high = np.minimum(found - above, found), np.maximum(found - below, found)
        values = zip(self.covariates, found.tolist(), low.tolist(), high.tolist(), strict=True)
        return tuple(Effect(covariate.name, covariate.bound, *numbers) for covariate, *numbers in values)


def _errors(
    public: CovariateRows, point: Floats, slopes: Floats, ridges: Floats, privacy: Floats, random: np.random.Generator
) -> Floats:
    """Draws of released - true, in columns."""
    bent = np.tanh(public.gaps(point) / 2)
    chance = replace(public, covariates=public.instruments).slopes(public.weights * (1 - bent * bent))
    values, vectors = np.linalg.eigh((chance + chance.T) / 2)
    sampling = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * random.standard_normal(privacy.shape))
    inverse = np.linalg.pinv(slopes, rcond=1e-12)
    errors = inverse @ (sampling + privacy - 2 * (ridges * point)[:, None])
    errors[: public.items][~largest_part(slopes[: public.items, : public.items])] = np.inf
    return np.asarray(errors)
