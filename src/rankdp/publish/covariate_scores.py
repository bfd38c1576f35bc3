"""Leaderboards with covariates: strengths that are free of length, style or position.

Where comparisons are secret as a whole, ``mechanisms.votes.covariate_objective`` does it.

Where only outcomes are secret there is less noise. Released are the noisy differences of the items and one vector for
all covariates (``mechanisms.votes.noisy_covariates``); strengths and effects follow from them and from the public
comparisons (``rankers.covariate_fit``). Epsilon is divided between the two by public numbers: with m items of
information h_t (a quarter of an item's comparisons) and noise A at epsilon 1, and d covariates of information h_b and
noise B, the sum of the errors m A/(h_t (1-q))^2 + d B/(h_b q)^2 is least for q/(1-q) = (d B h_t^2/(m A h_b^2))^(1/3).

Errors. With M the slopes of the equations at the released point, R the ridges, s the sampling noise of the sums and w
the privacy noise, released - true = (M + 2R)^-1 (s + w - 2R true) or M^+ (s + w - 2R released), which is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.data.comparisons import Comparisons
from rankdp.data.covariates import Covariate, VoteRows
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.covariate_objective import CovariateObjective
from rankdp.mechanisms.votes.noisy_counts import NoisyDifferences
from rankdp.mechanisms.votes.noisy_covariates import STEPS, NoisyCovariates
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.release import Release, released
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Effect, Leaderboard
from rankdp.publish.score_errors import DRAWS, SPREAD, design_count, information_of, largest_part, plausible_strengths
from rankdp.publish.vote_scores import choose_ridge
from rankdp.rankers.covariate_fit import CovariateRows, fit_covariates
from rankdp.rankers.links import LOGISTIC
from rankdp.rankers.proven_rows import GRID_BITS, SecretRows
from rankdp.types import Floats

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
        if protection.unit == "voter" or (protection.unit == "comparison" and votes.drops):
            raise Unsupported(
                Setting("covariates"),
                " go with ",
                Setting("protect", "outcome"),
                " (they are public), or with ",
                Setting("protect", "comparison"),
                " where no row is left out",
            )
        if epsilon < _LEAST_EPSILON:
            raise InputError(Setting("epsilon"), f" must be at least 1e-6 with covariates, got {epsilon}")
        leaderboard.check_request(len(votes.items), asked["level"], asked["top"])
        if len(votes.items) > leaderboard.DENSE_UP_TO:
            raise Unsupported(f"with covariates there can be at most {leaderboard.DENSE_UP_TO} items")
        read = cls(votes.items, votes.rows(covariates), covariates, protection, epsilon, **asked)
        if not protection.design_public:
            read.objective.check()
        return read

    @property
    def objective(self) -> CovariateObjective:
        """The mechanism for secret comparisons, by public numbers: how many they are is public."""
        return CovariateObjective(len(self.items), len(self.covariates), int(self.rows.weights.sum()), self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the leaderboard will promise."""
        return Guarantee(self.protection.protects, self.epsilon, local=False)

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; the caller has charged ``guarantee``."""
        board, parameters = self._public(bits) if self.protection.design_public else self._secret(bits)
        facts = {
            "protect": self.protection.unit,
            "epsilon": str(self.epsilon),
            "items": len(self.items),
            "covariates": {covariate.name: covariate.bound for covariate in self.covariates},
            **parameters,
        }
        value = board.as_elo() if self.scale == "elo" else board
        return released(value, self.guarantee, "bradley-terry with covariates", facts, bits)

    def _public(self, bits: Bits) -> tuple[Leaderboard, dict[str, Any]]:
        """From noisy differences and V; everything but the outcomes is public."""
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
        said = f"Scores are those at equal {names}; these are taken as public in every comparison, and not protected."
        board = self._board(theta, found, errors, said, SPREAD)
        return board, {"covariates_share": str(share), "noise_variance": noisy.count_variance / 4}

    def _secret(self, bits: Bits) -> tuple[Leaderboard, dict[str, Any]]:
        """By objective perturbation, with errors as if items and covariates had nothing to do with each other."""
        rows, n, total = self.rows, len(self.items), int(self.rows.weights.sum())
        steps = np.rint(rows.covariates * (1 << GRID_BITS)).astype(np.int64)
        secret = SecretRows(
            n, rows.first, rows.second, rows.weights + rows.outcomes, rows.weights - rows.outcomes, steps
        )
        chosen = self.objective
        point, moments = chosen.sample(secret, bits)
        theta, found = point[:n] - point[:n].mean(), point[n:]
        ridges, scales = ([float(value) for value in pair] for pair in chosen.chosen)
        random = np.random.default_rng(1)
        gaps, groups = theta[:, None] - theta, design_count(n)
        even = information_of(np.full((n, n), 2 * total / (n * (n - 1))), LOGISTIC.slope(gaps) * LOGISTIC.slope(-gaps))
        noise = random.laplace(0, scales[0], (n, DRAWS))
        truths = plausible_strengths(theta, [ridges[0] * theta] * groups, [even] * groups, noise)
        styled = math.sqrt(float(found**2 @ np.maximum(moments, 0)) / total)  # how far covariates move the log-odds
        gaps = (theta[:, None] - theta)[..., None] + styled * np.linspace(-2, 2, 9)
        known = moments * float((LOGISTIC.slope(gaps) * LOGISTIC.slope(-gaps)).mean())
        known = np.where(known > 0, known, np.nan)[:, None]
        size = (len(found), DRAWS)
        unsure = np.sqrt(known) * random.standard_normal(size) + random.laplace(0, scales[1], size)
        unsure = (unsure - ridges[1] * found[:, None]) / known
        errors = np.vstack([theta[:, None] - truths, np.nan_to_num(unsure, nan=np.inf)])
        names = ", ".join(covariate.name for covariate in self.covariates)
        said = (
            f"Scores are those at equal {names}. Comparisons are secret: the intervals suppose that all pairs met "
            "equally often, and that the covariates have nothing to do with the items."
        )
        return self._board(theta, found, errors, said, None), {"ridges": ridges, "scales": scales}

    def _board(self, theta: Floats, found: Floats, errors: Floats, said: str, spread: float | None) -> Leaderboard:
        n = len(self.items)
        board = leaderboard.build(
            self.items,
            theta,
            errors[:n],
            level=self.level,
            score_name="score",
            top=self.top,
            warnings=[said],
            spread=spread,
        )
        return replace(board, effects=self._effects(found, errors[n:]))

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
