"""Bradley-Terry scores where who was compared with whom is secret: which mechanism, and with what idea of the design.

| ``design`` | what the publisher says of it | what is released |
|---|---|---|
| chance | pairs were drawn without regard to strength, some items more often | degrees, then one of the two below |
| even | every pair was equally likely | degrees with more noise, then one of the two below |
| any | nothing: strong items may have met strong ones | degrees, objective perturbation, comparisons by gap |

*Differences* (``mechanisms.votes.noisy_counts``) have less noise; *objective perturbation* suits every design. Where
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

*Two words are tested*, both by released numbers, so that whatever follows from them is private too.

- *even*: noisy degrees, at 2%. Where their variance is far above what noise and chance give them, the design is taken
  for chance, and degrees are released again with what is left of a tenth.
- *without regard to strength*: a rough look at the differences, at a share x, gives scores; then one noisy number is
  released, at a share c of 1 (even), 2 or 5%: how many comparisons were between the closer half of the pairs. By
  chance it is near half. If so, the differences are shown with all that is left, the rough look costing nothing beside
  (``noisy_counts``). If it is far above, strong items met strong ones, differences would understate how far apart items
  are, and objective perturbation gets what is left. c and x are the least of a few shares for which pairs drawn with
  weight exp(-2 gap) would stand out, by public numbers. Where no shares do that, or objective perturbation is not
  possible, the number is released after the differences, and the leaderboard warns. In every case the intervals know
  the number, and hold as close a design for possible as it allows.

What is spent, as shares of epsilon, is at most 1 in each case:

| case | degrees | look | check | differences | objective | gaps |
|---|---|---|---|---|---|---|
| differences | a | free | c | 1 - a - c | | |
| strong met strong | a | x | c | | the rest | 1/25 |
| objective from the start | a | | | | the rest | 1/25, if a design was not said to be even |

a is 1/10 for chance, 1/20 for any, 1/50 for even. The case is chosen by what was released before, so the epsilon of a
release is that of its case (adaptive composition).

*Errors.* With b_ij = tanh((t_i - t_j)/2), the equation of item i is off by its outcomes (variance sum_j N_ij (1 -
b_ij^2)), by the privacy noise, and because the true design is another than the expected one: by sum_j N_ij (b_ij -
b_i)^2 for whom it met, b_i the mean of its b_ij; by a tenth of N_ij b_ij for each pair, as no design is exactly what is
supposed; and by how often it met anyone, for which designs are drawn (``possible_designs``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.noisy_counts import NoisyCounts, NoisyDegrees, NoisyDifferences, NoisyPairs, NoisyTotal
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.publish import leaderboard
from rankdp.publish.possible_designs import (
    Degrees,
    Gaps,
    design_variance,
    possible_strengths,
)
from rankdp.publish.score_errors import DRAWS, SPREAD, plausible_strengths
from rankdp.publish.vote_scores import Drawn, Public, choose_ridge, objective
from rankdp.rankers.expected_design import (
    CLOSENESS,
    buckets_of_gaps,
    design_of_degrees,
    fit_differences,
    likely_degrees,
)
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.types import Floats, Longs

DESIGNS = ("chance", "even", "any")
_SECRET = "Who was compared with whom is secret:"
_SUPPOSED = {
    "chance": "pairs were drawn without regard to strength",
    "even": "every pair was equally likely, as was said",
    "any": "one number says how much equals were preferred, and log-strengths are spread about as on [-1, 1]",
}
_DEGREES = {"chance": Fraction(1, 10), "any": Fraction(1, 20), "even": Fraction(1, 50)}
_GAPS = Fraction(1, 25)
_CHECKS = {"chance": (Fraction(1, 50), Fraction(1, 20)), "even": (Fraction(1, 100),), "any": (Fraction(1, 50),)}
_LOOKS = tuple(Fraction(share, 20) for share in (1, 2, 3, 4, 6, 8, 10))
_BUCKETS = 6
_HELD = {"any": 1.0, "chance": 3.5, "even": 4.0}  # how firmly nobody is held to be preferred
_CHANCE = {"even": 0.13, "chance": 0.06}  # u
_CLEARLY = {"even": 1.0, "chance": 0.95}  # how much less than objective perturbation differences must err
_MISFIT = 0.1
_SURE, _FOUND = 2.5, 7.0  # standard deviations: to act on a number, and that it is to have where it should
_SLACK = 0.02
_FEW_ITEMS = 15  # in few items, a poor order of scores may hide the excess
_CONTRADICTED, _UNEVEN_BY = 4.0, 0.1
_SIGNAL, _EXCESS = 0.084, 0.3  # pairs of weight exp(-2 gap): a difference over its degree, the closer half beyond half
_MATCHED = (
    "Items of about the same strength seem to have met more often than chance explains: scores may lie closer together "
    "than the items do. Choose the design 'any' for such votes."
)
_SWITCHED = (
    "Items of about the same strength met more often than chance explains: scores are from objective perturbation, "
    "with what was left of epsilon. Choose the design 'any' for such votes: it has less noise."
)
_UNEVEN = (
    "Some items were compared far more often than others, against what was said: the design was taken for 'chance', "
    "and a tenth of epsilon went into how often."
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
        variance = self._differences(items, self.looks(items, comparisons)[1]).count_variance / 4
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
        fits = self.link is LOGISTIC and items <= leaderboard.DENSE_UP_TO
        return fits and self.design != "any"

    def _allows_objective(self, items: int) -> bool:
        """Whether objective perturbation can: not for Gaussian noise or a ridge that is too small."""
        if self.delta:
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
        noise = self._differences(items, self.looks(items, public.comparisons)[1]).count_variance / 4
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
        """What the degrees get: nothing where the items are too many to use them."""
        return Fraction(0) if items > leaderboard.DENSE_UP_TO else _DEGREES[self.design]

    def _differences(self, items: int, check: Fraction) -> NoisyDifferences:
        return NoisyDifferences(self.protection, self.epsilon, self.delta, 1 - self._share(items) - check)

    def _objective(self, items: int, comparisons: int, looks: Fraction = Fraction(0)) -> ObjectivePerturbation:
        """Objective perturbation with what is left, where looks for strong ones meeting have found them."""
        left = 1 - self._share(items) - looks - (_GAPS if self._by_gap(items, looks) else 0)
        return objective(items, comparisons, self.protection, self.epsilon * left, self.ridge, self.link)

    def _by_gap(self, items: int, looks: Fraction) -> bool:
        """Whether objective perturbation's intervals are to know comparisons by gap."""
        return items <= leaderboard.DENSE_UP_TO and (self.design != "even" or looks > 0)

    def looks(self, items: int, comparisons: int) -> tuple[Fraction, Fraction]:
        """The share x of a rough look at differences, 0 if none would find out strong ones meeting, and the check's.

        Parameters
        ----------
        items, comparisons
            How many there are, as far as it is public.
        """
        degree = 2 * comparisons / items
        signal = (_SIGNAL * degree) ** 2
        for check in _CHECKS[self.design] if self._allows_objective(items) else ():
            number = NoisyTotal(self.protection, self.epsilon, self.delta, check).count_variance
            for share in _LOOKS:
                noise = NoisyDifferences(self.protection, self.epsilon, self.delta, share).count_variance
                order = signal / (signal + degree + noise)  # how far rough scores have the order of the true ones
                excess = _EXCESS * comparisons * order - _SLACK * comparisons / 2
                enough = share == _LOOKS[-1] or order > 1 - math.sqrt(items) / _FEW_ITEMS
                if enough and excess > _FOUND * math.sqrt(comparisons / 4 + number):
                    return share, check
        return Fraction(0), _CHECKS[self.design][-1]

    def draw(self, counts: PairCounts, public: Public, bits: Bits) -> Drawn:
        """The scores; what is drawn for them costs epsilon (and delta) in all."""
        items = len(public.items)
        share, taken, warnings = self._share(items), self, []
        degrees = Degrees(np.full(items, max(public.degree, 1e-3)), None)
        if share:
            noisy = self._noisy_degrees(share)
            released = noisy.released(noisy.counted(counts), bits)
            if self.design != "even":
                degrees = _shrunk(released, noisy.count_variance, public)
            elif _uneven(released, noisy.count_variance, public.degree):
                taken, warnings = replace(self, design="chance"), [_UNEVEN]
                noisy = self._noisy_degrees(_DEGREES["chance"] - share)
                degrees = _shrunk(noisy.released(noisy.counted(counts), bits), noisy.count_variance, public)
        drawn = taken._drawn(counts, public, degrees, bits)
        drawn.warnings.extend(warnings)
        drawn.parameters["design"] = taken.design
        return drawn

    def _drawn(self, counts: PairCounts, public: Public, degrees: Degrees, bits: Bits) -> Drawn:
        """The scores, once degrees are released."""
        if self.mechanism(public, degrees) == "objective":
            return self._from_objective(counts, public, degrees, Fraction(0), bits)
        look, check = self.looks(len(public.items), public.comparisons)
        noisy, expected = self._differences(len(public.items), check), design_of_degrees(degrees.means)
        secret = noisy.sample(noisy.counted(counts), bits)
        variance, released = noisy.count_variance / 4, secret / self.protection.steps
        if look:
            rough = NoisyDifferences(self.protection, self.epsilon, self.delta, look)
            shown = noisy.rougher(secret, look, bits).astype(np.float64)
            seen = fit_differences(expected, shown, self._ridges(degrees, rough.count_variance / 4))
            gaps = self._check(counts, expected, seen, check, bits)
            if _close(gaps, expected):
                found = self._strengths(rough, shown, seen, public, degrees, gaps, _held("any"), bits)[1]
                drawn = self._from_objective(counts, public, degrees, look + check, bits, found)
                drawn.warnings.append(_SWITCHED)
                return drawn
        ridge = self._ridges(degrees, variance)
        scores = fit_differences(expected, released, ridge)
        if not look:
            gaps = self._check(counts, expected, scores, check, bits)
        warnings = [f"{_SECRET} scores and intervals suppose that {_SUPPOSED[self.design]}."]
        if not look and _close(gaps, expected):
            warnings.append(_MATCHED)
        truths = self._strengths(noisy, released, scores, public, degrees, gaps, _held(self.design), bits)[0]
        gaussian = {} if noisy.rho is None else {"rho": float(noisy.rho)}
        parameters = {"ridge": float(np.median(ridge)), "noise_variance": variance, **gaussian}
        return Drawn(scores, scores[:, None] - truths, {"mechanism": "differences", **parameters}, warnings)

    def _strengths(
        self,
        noisy: NoisyDifferences,
        released: Floats,
        scores: Floats,
        public: Public,
        degrees: Degrees,
        gaps: Gaps,
        before: Floats,
        bits: Bits,
    ) -> tuple[Floats, Floats]:
        """What differences say of the strengths and of closeness, as ``possible_strengths``."""
        expected, misfit = design_of_degrees(degrees.means), 0.0 if self.design == "even" else _MISFIT
        chance = np.sqrt(public.sampling * design_variance(expected, scores, misfit))
        noise = noisy.likely_noise(len(scores) * DRAWS, bits.spawn()).reshape(len(scores), -1)
        noise = (noise + chance[:, None] * np.random.default_rng(1).standard_normal(noise.shape)) / 2
        luck = public.sampling
        return possible_strengths(scores, 0.0, noise, degrees, gaps, before, differences=released, luck=luck)

    def _noisy_degrees(self, share: Fraction) -> NoisyDegrees:
        return NoisyDegrees(self.protection, self.epsilon, self.delta, share)

    def parts(
        self, counts: PairCounts, comparisons: int, switched: bool = False
    ) -> tuple[list[tuple[NoisyCounts, Longs]], ObjectivePerturbation | None]:
        """All that is released, with the secret counts of each part: what audits draw from.

        The check is here of the first pair and buckets are single pairs: which they are, released scores decide.

        Parameters
        ----------
        counts
            The secret counts.
        comparisons
            A public idea of how many comparisons there are.
        switched
            Whether a rough look has found strong ones meeting; else differences are taken.
        """
        items, pairs = len(counts.items), NoisyPairs.counted(counts)
        look, check = self.looks(items, comparisons)
        look = look or _LOOKS[-1]
        degrees = self._noisy_degrees(self._share(items))
        share = look if switched else 1 - degrees.share - check
        differences = NoisyDifferences(self.protection, self.epsilon, self.delta, share)
        number = NoisyTotal(self.protection, self.epsilon, self.delta, check)
        found: list[tuple[NoisyCounts, Longs]] = [
            (degrees, degrees.counted(counts)),
            (differences, differences.counted(counts)),
            (number, pairs[:1]),
        ]
        if not switched:
            return found, None
        found.append((NoisyPairs(self.protection, self.epsilon, self.delta, _GAPS), pairs))
        return found, self._objective(items, comparisons, look + check)

    def _gaps(self, counts: PairCounts, degrees: Degrees, scores: Floats, share: Fraction, bits: Bits) -> Gaps:
        """How many comparisons there are in each of a few buckets of gaps of scores."""
        bucket = buckets_of_gaps(design_of_degrees(degrees.means), scores, _BUCKETS)
        pairs = NoisyPairs(self.protection, self.epsilon, self.delta, share)
        found = pairs.released(np.bincount(bucket, pairs.counted(counts), _BUCKETS).astype(np.int64), bits)
        return Gaps(bucket, found, pairs.count_variance)

    def _check(self, counts: PairCounts, expected: Floats, scores: Floats, share: Fraction, bits: Bits) -> Gaps:
        """How many comparisons were between the closer half of the pairs: a noisy number."""
        bucket = buckets_of_gaps(expected, scores, 2)
        check = NoisyTotal(self.protection, self.epsilon, self.delta, share)
        close = NoisyPairs.counted(counts)[bucket == 0].sum(keepdims=True)
        return Gaps(bucket, check.released(close, bits), check.count_variance)

    def _from_objective(
        self,
        counts: PairCounts,
        public: Public,
        degrees: Degrees,
        looks: Fraction,
        bits: Bits,
        before: Floats | None = None,
    ) -> Drawn:
        """The scores by objective perturbation; after looks, with the closeness that they found."""
        items, design = len(public.items), "any" if looks else self.design
        chosen = self._objective(items, public.comparisons, looks)
        gamma, link = float(chosen.ridge), chosen.link
        scores = chosen.sample(counts, bits)
        scores = scores - scores.mean()
        noise = np.random.default_rng(1).laplace(0, float(chosen.scale), (items, DRAWS))
        if items > leaderboard.DENSE_UP_TO:
            even = [np.full(items, public.degree * float(link.slope(np.zeros(1))[0]) ** 2)] * 100
            truths = plausible_strengths(scores, [gamma * scores] * len(even), even, noise)
        else:
            gaps = self._gaps(counts, degrees, scores, _GAPS, bits) if self._by_gap(items, looks) else None
            before = _held(design) if before is None else before
            truths, _ = possible_strengths(scores, gamma, noise, degrees, gaps, before, link=link)
        parameters = {
            "mechanism": "objective",
            "ridge": gamma,
            "noise_variance": chosen.noise_variance,
            "link": link.name,
        }
        supposed = f"{_SECRET} the intervals suppose that {_SUPPOSED[design]}."
        return Drawn(scores, scores[:, None] - truths, parameters, [supposed])


def _held(design: str) -> Floats:
    """The logarithm of how likely each closeness is held to be, by what is said of the design."""
    return np.where(CLOSENESS > 0, -_HELD[design], 0.0)


def _close(gaps: Gaps, expected: Floats) -> bool:
    """Whether items of about the same strength met too often."""
    due = float(expected[np.triu_indices(len(expected), 1)][gaps.bucket == 0].sum())
    return float(gaps.found[0]) - due > _SURE * math.sqrt(due / 2 + gaps.variance) + _SLACK * due


def _shrunk(noisy: Floats, variance: float, public: Public) -> Degrees:
    """What noisy degrees say of the true ones."""
    grid, chances = likely_degrees(noisy, variance, public.comparisons)
    means = chances @ grid
    scale = max(public.degree, 1e-3) / means.mean()
    return Degrees(means * scale, (grid * scale, chances))


def _uneven(noisy: Floats, variance: float, degree: float) -> bool:
    """Whether noisy degrees contradict an even design: their variance, beside that of noise and of chance.

    A mean of n squares has a deviation of sqrt((5 v^2 + 4 v d + 2 d^2)/n) for Laplace noise of variance v and chance of
    variance d. Degrees that differ by a tenth of themselves do no harm and are let pass.
    """
    found = float(np.square(noisy - degree).mean()) - variance - degree
    deviation = math.sqrt((5 * variance**2 + 4 * variance * degree + 2 * degree**2) / len(noisy))
    return found > _CONTRADICTED * deviation + (_UNEVEN_BY * degree) ** 2
