"""Leaderboards with covariates: strengths that are free of length, style or position, where only outcomes are secret.

Released are the noisy differences of the items and a vector for all covariates (``mechanisms.votes.noisy_covariates``);
strengths and effects follow from them and from the public comparisons (``rankers.covariate_fit``). Epsilon is divided
between the two by public numbers: with m items of information h_t (a quarter of an item's comparisons) and noise A at
epsilon 1, and d covariates of information h_b and noise B, the sum of the errors m A/(h_t (1-q))^2 + d B/(h_b q)^2 is
least for q/(1-q) = (d B h_t^2 / (m A h_b^2))^(1/3).

Errors. With M the slopes of the equations at the released point, R the ridges, s the sampling noise of the sums and w
the privacy noise, released - true = (M + 2R)^-1 (s + w - 2R true): released + 2 M^+ R released is free of the ridges'
pull and errs by M^+ (s + w), which is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.comparisons import Comparisons
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.differences import NoisyDifferences
from rankdp.mechanisms.votes.noisy_covariates import STEPS, NoisyCovariates
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Release, released
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Effect, Leaderboard
from rankdp.publish.vote_scores import choose_ridge
from rankdp.rankers.covariate_fit import PublicRows, fit_covariates
from rankdp.types import Floats

_DRAWS = 4000
_EFFECTS_SPREAD = 1.0  # the variance that effects at their bounds are expected to have
_LEAST_EPSILON = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CovariateVotes:
    """The secret outcomes, the public rows, and what is asked of them; the words are those of ``rank``."""

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
        """Read the votes; all that is refused is refused here."""
        if not protection.design_public:
            raise Unsupported(
                Setting("covariates"), " must be public, and then only outcomes can be protected: use ",
                Setting("protect", "outcome"), ", got ", Setting("protect", protection.unit),
            )  # fmt: skip
        if epsilon < _LEAST_EPSILON:
            raise InputError(Setting("epsilon"), f" must be at least 1e-6 with covariates, got {epsilon}")
        leaderboard.check_request(len(votes.items), asked["level"], asked["top"])
        if len(votes.items) > leaderboard.DENSE_UP_TO:
            raise Unsupported(f"with covariates there can be at most {leaderboard.DENSE_UP_TO} items")
        return cls(votes.items, votes.rows(covariates), covariates, protection, epsilon, **asked)

    @property
    def guarantee(self) -> Guarantee:
        """What the leaderboard will promise."""
        return Guarantee(self.protection.protects, self.epsilon, local=False)

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; the caller has charged ``guarantee``."""
        rows, n = self.rows, len(self.items)
        share = self._share()
        noisy = NoisyDifferences(self.protection, self.epsilon, share=1 - share)
        effects = NoisyCovariates(rows.covariates, rows.weights, share * self.epsilon)
        instruments = effects.instruments()
        differences = np.bincount(rows.first, rows.outcomes, n) - np.bincount(rows.second, rows.outcomes, n)
        target = np.concatenate(
            [noisy.sample(differences.astype(np.int64), bits), effects.sample(instruments, rows.outcomes, bits)]
        )
        public = PublicRows(n, rows.first, rows.second, rows.weights, rows.covariates, instruments / STEPS)
        ridges = self._ridges(public, noisy, effects)
        theta, found, slopes = fit_covariates(public, target, ridges)
        point = np.concatenate([theta, found])
        random = np.random.default_rng(0)
        privacy = np.vstack(
            [noisy.noise(n * _DRAWS, bits.spawn()).reshape(n, _DRAWS), effects.simulated(_DRAWS, random)]
        )
        centres, errors = _errors(public, point, slopes, ridges, privacy, random)
        board = leaderboard.build(
            self.items,
            theta,
            centres[:n],
            errors[:n],
            level=self.level,
            score_name="score",
            top=self.top,
            warnings=[self._said()],
        )
        board = replace(board, effects=self._effects(found, centres[n:], errors[n:]))
        parameters = {
            "protect": self.protection.unit,
            "epsilon": str(self.epsilon),
            "items": n,
            "covariates": {covariate.name: covariate.bound for covariate in self.covariates},
            "covariates_share": str(share),
            "noise_variance": noisy.count_variance / 4,
        }
        value = board.as_elo() if self.scale == "elo" else board
        return released(value, self.guarantee, "bradley-terry with covariates", parameters, bits)

    def _said(self) -> str:
        names = ", ".join(covariate.name for covariate in self.covariates)
        return f"Scores are those at equal {names}; these are taken as public in every comparison, and not protected."

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

    def _ridges(self, public: PublicRows, noisy: NoisyDifferences, effects: NoisyCovariates) -> Floats:
        """Those of least expected error, as ``vote_scores.choose_ridge`` has them."""
        degree = 2 * float(public.weights.sum()) / public.items
        scores = self.ridge if self.ridge is not None else choose_ridge(degree, noisy.count_variance / 4)
        strength = np.maximum(public.weights @ (public.instruments * public.covariates) / 4, 1e-9)
        sampling = public.weights @ public.instruments**2 / 4
        pulls = (sampling + effects.noise_variance / 4) / (strength * _EFFECTS_SPREAD)
        return np.concatenate([np.full(public.items, scores), pulls])

    def _effects(self, found: Floats, centres: Floats, errors: Floats) -> tuple[Effect, ...]:
        tail = (1 - self.level) / 2
        above, below = np.quantile(errors, [1 - tail, tail], axis=1)
        low, high = np.minimum(centres - above, found), np.maximum(centres - below, found)
        values = zip(self.covariates, found.tolist(), low.tolist(), high.tolist(), strict=True)
        return tuple(Effect(covariate.name, covariate.bound, *numbers) for covariate, *numbers in values)


def _errors(
    public: PublicRows, point: Floats, slopes: Floats, ridges: Floats, privacy: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """The released point freed from the ridges' pull, and draws of its errors in columns."""
    bent = np.tanh(public.gaps(point[: public.items], point[public.items :]) / 2)
    chance = replace(public, covariates=public.instruments).slopes(public.weights * (1 - bent * bent))
    values, vectors = np.linalg.eigh((chance + chance.T) / 2)
    sampling = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * random.standard_normal(privacy.shape))
    inverse = np.linalg.pinv(slopes, rcond=1e-12)
    errors = inverse @ (sampling + privacy)
    errors[: public.items][~leaderboard.largest_part(slopes[: public.items, : public.items])] = np.inf
    return point + inverse @ (2 * ridges * point), errors
