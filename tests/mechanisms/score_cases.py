"""What the tests of score noises share: mechanisms on [0, 1], an example of each, a mutant with half the noise."""

from fractions import Fraction

from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.mechanisms.scores.grid_noises import GeneralizedNormalScores
from rankdp.privacy.powers import PowerLaw

DRAWS = 60_000
EXAMPLES = {
    "laplace": {"epsilon": 1},
    "gaussian": {"epsilon": 1, "delta": "1e-3"},
    "generalized-normal": {"epsilon": 1, "p": "0.5"},
    "staircase": {"epsilon": 1},
    "joint-staircase": {"epsilon": 1, "count": 3},
    "ball": {"delta": "0.1", "count": DRAWS},
}


def built(noise, steps=None, **asked):
    return score_mechanism(noise, bounds=(0, 1), steps=steps, **asked)


class DoubleRate(GeneralizedNormalScores):
    law = property(lambda self: PowerLaw(self.p, 2 * self.epsilon, Fraction(self.grid.steps)))
