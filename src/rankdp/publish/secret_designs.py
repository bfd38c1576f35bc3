"""Bradley-Terry scores where who was compared with whom is secret: which mechanism, and with what idea of the design.

| ``design`` | what the publisher says of it | what is released |
|---|---|---|
| chance | pairs were drawn without regard to strength, some items more often | degrees, then one of the two below |
| even | every pair was equally likely | one of the two below |
| any | nothing: strong items may have met strong ones | degrees, objective perturbation, comparisons by gap |

*Differences* (``mechanisms.votes.differences``) have less noise; *objective perturbation* suits every design. Where
pairs were drawn by chance the one of less expected error is taken, by public and released numbers: with h = d/4 the
Fisher information of an item that was compared d times, v the variance of the privacy noise on its wins and g the
ridge, that is the sum over items of

    (h + u h + v + g^2/3)/(h + g)^2 + q/3,

where for differences u is what the design's own chance adds to the sampling variance, about E tanh((t_i - t_j)/2)^2 =
0.13 or half of it once degrees are known, and q the squared relative error of the degree; both are 0 for objective
perturbation. As that is right for every design, differences must be better by a twentieth where degrees are not even.

*Degrees* are shrunk towards their mean and make the expected design (``rankers.expected_design``). Objective
perturbation uses it for its intervals only, and after its scores learns how many comparisons each of six sets of pairs
has, from close to far: 4% of the budget, for the intervals too.

*The check.* After differences one more noisy number is released, at 2%: how many comparisons were between the closer
half of the pairs. Where pairs were drawn by chance it is near half; if it is far above, strong items met strong ones,
differences understate how far apart items are, and the leaderboard says so.

*Errors.* With b_ij = tanh((t_i - t_j)/2), the equation of item i is off by its outcomes (variance sum_j N_ij (1 -
b_ij^2)), by the privacy noise, and because the true design is another than the expected one: by sum_j N_ij (b_ij -
b_i)^2 for whom it met, b_i the mean of its b_ij; by a tenth of N_ij b_ij for each pair, as no design is exactly what is
supposed; and by how often it met anyone, for which degrees are drawn from what the noisy ones leave possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.differences import NoisyDegrees, NoisyDifferences, NoisyPairs, NoisyTotal
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.publish import leaderboard
from rankdp.publish.vote_scores import SPREAD, Drawn, Public, choose_ridge, objective, scores_errors
from rankdp.rankers.expected_design import (
    buckets_of_gaps,
    design_of_degrees,
    fit_differences,
    likely_degrees,
    matched_design,
)
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Longs

DESIGNS = ("chance", "even", "any")
_SECRET = "Who was compared with whom is secret:"
_SUPPOSED = {
    "chance": "pairs were drawn without regard to strength",
    "even": "every pair was equally likely, as was said",
    "any": "pairs were drawn without regard to strength",
}
_DEGREES = {"chance": Fraction(1, 10), "any": Fraction(1, 20)}  # shares of what is left for scores
_GAPS, _CHECK = Fraction(1, 25), Fraction(1, 50)
_BUCKETS = 6
_CHANCE = {"even": 0.13, "chance": 0.06}  # u
_CLEARLY = {"even": 1.0, "chance": 0.95}  # how much less than objective perturbation differences must err
_MISFIT = 0.1
_SURE = 3.5  # standard deviations
_SLACK = 0.02
_FARTHEST = 50.0  # the expected degree over a true one, at most
_MATCHED = (
    "Items of about the same strength seem to have met more often than chance explains: scores may lie closer together "
    "than the items do. Choose the design 'any' for such votes."
)


@dataclass(frozen=True, slots=True)
class SecretDesign:
    """How scores are to be had: all of it is public. The words are those of ``rank``."""

    protection: Protection
    epsilon: Fraction
    delta: Fraction
    design: str
    ridge: float | None = None
    link: Link = LOGISTIC
    calibration: str = "tight"

    def expected_noise(self, items: int, comparisons: int) -> tuple[float, float]:
        """The variance of the noise on an item's wins, the design's own chance included, and the ridge.

        Parameters
        ----------
        items, comparisons
            How many there are; the design is taken to turn out even.
        """
        public = Public(tuple(map(str, range(items))), comparisons)
        degrees = Degrees(np.full(items, public.degree), None)
        if self.mechanism(public, degrees) == "objective":
            chosen = self._objective(items, comparisons)
            return chosen.noise_variance, float(chosen.ridge)
        variance = self._differences(items).count_variance / 4
        chance = _CHANCE[self.design] * public.degree / 4
        return variance + chance, float(self._ridges(degrees, variance)[0])

    def check(self, items: int) -> None:
        """Refuse what cannot be released: facts about public numbers, whatever the number of comparisons."""
        if self.allows_differences(items):
            return
        if self.delta:
            raise Unsupported(
                "Gaussian noise does not pay in objective perturbation, and differences need the logistic link, pairs "
                f"drawn by chance and at most {leaderboard.DENSE_UP_TO:,} items: use ",
                Setting("delta", 0),
                ", ",
                Setting("method", "wins"),
                " or ",
                Setting("protect", "outcome"),
            )
        self._objective(items, 1).check()

    def allows_differences(self, items: int) -> bool:
        """Whether differences can give these scores at all."""
        fits = self.link is LOGISTIC and self.calibration == "tight" and items <= leaderboard.DENSE_UP_TO
        return fits and self.design != "any"

    def _allows_objective(self, items: int) -> bool:
        """Whether objective perturbation can: not for weighed votes, Gaussian noise or a ridge that is too small."""
        if self.delta or self.protection.steps > 1:
            return False
        try:
            self._objective(items, 1).check()
        except InputError:
            return False
        return True

    def mechanism(self, public: Public, degrees: Degrees) -> str:
        """Which of "differences" and "objective" is taken, by public and released numbers."""
        items = len(public.items)
        if not self.allows_differences(items):
            return "objective"
        if not self._allows_objective(items):
            return "differences"
        information = degrees.means / 4
        noise = self._differences(items).count_variance / 4
        ridge: Floats | float = self._ridges(degrees, noise)
        error = (information * (1 + _CHANCE[self.design]) + noise + ridge**2 * SPREAD) / (information + ridge) ** 2
        error += SPREAD * degrees.doubt
        rival = self._objective(items, public.comparisons)
        ridge, noise = float(rival.ridge), rival.noise_variance
        other = (information + noise + ridge**2 * SPREAD) / (information + ridge) ** 2
        return "differences" if error.sum() < _CLEARLY[self.design] * other.sum() else "objective"

    def _ridges(self, degrees: Degrees, noise_variance: float) -> Floats:
        """The ridge of each item, of least expected error for what it was compared."""
        if self.ridge is not None:
            return np.full(len(degrees.means), self.ridge)
        return np.array([choose_ridge(degree, noise_variance) for degree in degrees.means.tolist()])

    def _share(self, items: int) -> Fraction:
        """What the degrees get: nothing where they are said to be even, or where the items are too many to use them."""
        unused = self.design == "even" or items > leaderboard.DENSE_UP_TO
        return Fraction(0) if unused else _DEGREES[self.design]

    def _differences(self, items: int) -> NoisyDifferences:
        share = 1 - self._share(items) - _CHECK
        return NoisyDifferences(self.protection, self.epsilon, self.delta, share)

    def _objective(self, items: int, comparisons: int) -> ObjectivePerturbation:
        share = self._share(items)
        epsilon = self.epsilon * (1 - share - (_GAPS if share else 0))
        return objective(items, comparisons, self.protection, epsilon, self.ridge, self.link, self.calibration)

    def draw(self, counts: PairCounts, public: Public, bits: Bits) -> Drawn:
        """The scores; what is drawn for them costs epsilon (and delta) in all."""
        degrees = self._degrees(counts, public, bits)
        mechanism = self.mechanism(public, degrees)
        drawn = (self._from_objective if mechanism == "objective" else self._from_differences)(
            counts, public, degrees, bits
        )
        drawn.parameters.update({"mechanism": mechanism, "design": self.design})
        return drawn

    def _degrees(self, counts: PairCounts, public: Public, bits: Bits) -> Degrees:
        """What the degrees are, as far as a share of the budget says; an even design if it gets none."""
        items = len(public.items)
        share = self._share(items)
        if not share:
            return Degrees(np.full(items, max(public.degree, 1e-3)), None)
        degrees = NoisyDegrees(self.protection, self.epsilon, self.delta, share)
        noisy = degrees.released(degrees.counted(counts), bits)
        grid, chances = likely_degrees(noisy, degrees.count_variance, public.comparisons)
        means = chances @ grid
        scale = max(public.degree, 1e-3) / means.mean()
        return Degrees(means * scale, (grid * scale, chances))

    def difference_parts(self, counts: PairCounts) -> list[tuple[NoisyCounts, Longs]]:
        """All that is released around differences, with the secret counts of each: what audits draw from.

        The last one is the check, here of the first pair: of which pairs it is, the scores decide.
        """
        items = len(counts.items)
        share, differences = self._share(items), self._differences(items)
        degrees = NoisyDegrees(self.protection, self.epsilon, self.delta, share) if share else None
        check = NoisyTotal(self.protection, self.epsilon, self.delta, _CHECK)
        return [
            *([] if degrees is None else [(degrees, degrees.counted(counts))]),
            (differences, differences.counted(counts)),
            (check, NoisyPairs.counted(counts)[:1]),
        ]

    def _matched(self, counts: PairCounts, expected: Floats, scores: Floats, bits: Bits) -> Floats:
        """The expected design, with the number of comparisons that each bucket of gaps seems to have."""
        bucket = buckets_of_gaps(expected, scores, _BUCKETS)
        pairs = NoisyPairs(self.protection, self.epsilon, self.delta, _GAPS)
        found = pairs.released(np.bincount(bucket, pairs.counted(counts), _BUCKETS).astype(np.int64), bits)
        due = np.bincount(bucket, expected[np.triu_indices(len(scores), 1)], _BUCKETS)
        noise = float(pairs.count_variance + due.mean())
        kept = max(0.0, 1 - noise / float(np.square(found - due).mean() + 1e-9))  # small differences are shrunk away
        return matched_design(expected, scores, bucket, np.maximum(due + kept * (found - due), 0.02 * due + 1e-9))

    def _checked(self, counts: PairCounts, expected: Floats, scores: Floats, bits: Bits) -> list[str]:
        """Whether items of about the same strength met too often: a noisy number, and what follows from it."""
        bucket = buckets_of_gaps(expected, scores, 2)
        check = NoisyTotal(self.protection, self.epsilon, self.delta, _CHECK)
        close = NoisyPairs.counted(counts)[bucket == 0].sum(keepdims=True)
        due = float(expected[np.triu_indices(len(scores), 1)][bucket == 0].sum())
        deviation = math.sqrt(due / 2 + check.count_variance)
        found = float(check.released(close, bits)[0])
        return [_MATCHED] if found - due > _SURE * deviation + _SLACK * due else []

    def _from_objective(self, counts: PairCounts, public: Public, degrees: Degrees, bits: Bits) -> Drawn:
        chosen = self._objective(len(public.items), public.comparisons)
        gamma, link = float(chosen.ridge), chosen.link
        scores = chosen.sample(counts, bits)
        scores = scores - scores.mean()
        expected = None
        if len(scores) <= leaderboard.DENSE_UP_TO:
            expected = design_of_degrees(degrees.means)
            if self._share(len(scores)):
                expected = self._matched(counts, expected, scores, bits)
        random = np.random.default_rng(0)

        def noise(count: int) -> Floats:
            privacy = random.laplace(0, float(chosen.scale), count).reshape(len(scores), -1)
            return degrees.doubted(privacy, gamma * scores, random).ravel()

        centres, errors = scores_errors(public, scores, gamma, link, noise, expected)
        parameters = {
            "ridge": gamma,
            "calibration": chosen.calibration,
            "noise_variance": chosen.noise_variance,
            "link": link.name,
        }
        supposed = f"{_SECRET} the intervals suppose that {_SUPPOSED[self.design]}."
        return Drawn(scores, centres, errors, parameters, [supposed])

    def _from_differences(self, counts: PairCounts, public: Public, degrees: Degrees, bits: Bits) -> Drawn:
        noisy = self._differences(len(public.items))
        variance = noisy.count_variance / 4
        released = noisy.released(noisy.counted(counts), bits)
        ridge = self._ridges(degrees, variance)
        expected = design_of_degrees(degrees.means)
        scores = fit_differences(expected, released, ridge)
        warnings = self._checked(counts, expected, scores, bits)
        chance = np.sqrt(public.sampling * design_variance(expected, scores, 0.0 if self.design == "even" else _MISFIT))
        random = np.random.default_rng(1)

        def noise(count: int) -> Floats:
            privacy = noisy.likely_noise(count, bits.spawn()).reshape(len(scores), -1)
            both = privacy + chance[:, None] * random.standard_normal(privacy.shape)
            return degrees.doubted(both / 2, released / 2, random).ravel()

        centres, errors = scores_errors(public, scores, ridge, LOGISTIC, noise, expected)
        gaussian = {} if noisy.rho is None else {"rho": float(noisy.rho)}
        parameters = {"ridge": float(np.median(ridge)), "noise_variance": variance, **gaussian}
        supposed = f"{_SECRET} scores and intervals suppose that {_SUPPOSED[self.design]}."
        return Drawn(scores, centres, errors, parameters, [supposed, *warnings])


@dataclass(frozen=True, slots=True)
class Degrees:
    """The expected degree of each item, and how likely others are: a grid, and a row of chances for each item."""

    means: Floats
    others: tuple[Floats, Floats] | None

    @property
    def doubt(self) -> Floats:
        """The variance of each degree over its square."""
        if self.others is None:
            return np.zeros(len(self.means))
        grid, chances = self.others
        return np.asarray((chances @ grid**2) / self.means**2 - 1)

    def doubted(self, noise: Floats, pull: Floats, random: np.random.Generator) -> Floats:
        """Noise on wins, one row an item, as it looks when degrees may be others than expected.

        With r the expected degree over the true one, an error e of the equation, which was divided by the expected
        degree, is r e; and a pull p of the equation that was taken for p is r p. Sampling noise of r times its variance
        is left to what is drawn later for r = 1, and to an addition here for more.
        """
        if self.others is None:
            ratio = self.means[:, None] / np.maximum(
                self.means[:, None] + np.sqrt(self.means)[:, None] * random.standard_normal(noise.shape),
                self.means[:, None] / _FARTHEST,
            )
        else:
            grid, chances = self.others
            sums = np.cumsum(chances, axis=1)
            drawn = np.array(
                [grid[np.minimum(np.searchsorted(row, random.random(noise.shape[1])), len(grid) - 1)] for row in sums]
            )
            ratio = np.minimum(self.means[:, None] / drawn, _FARTHEST)
        more = np.sqrt(np.maximum(ratio - 1, 0) * self.means[:, None] / 4) * random.standard_normal(noise.shape)
        return np.asarray(ratio * noise - (ratio - 1) * pull[:, None] + more)


def design_variance(expected: Floats, scores: Floats, misfit: float) -> Floats:
    """How much whom an item met adds to the variance of its difference, given how often it met anyone.

    Parameters
    ----------
    expected
        The expected design.
    scores
        The strengths.
    misfit
        By what share of itself a pair's expected number may be wrong.
    """
    bent = np.tanh((scores[:, None] - scores) / 2)
    mean = (expected * bent).sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12)
    met = (expected * (bent - mean[:, None]) ** 2).sum(axis=1)
    return np.asarray(met + np.square(misfit * expected * bent).sum(axis=1))
