"""Noisy wins: the exact log-ratio over all neighbours of tiny data sets, the sampler's law, Gaussian noise, mutants."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import LEVEL, assert_law, seeded
from test_units import flipped, half_wins, replaced, voters

from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection

EPSILONS = [Fraction(1, 3), Fraction(1), Fraction(5, 2)]
UNITS = {
    "comparison": (Protection("comparison"), [(2, replaced(2, 1)), (3, replaced(3, 2))]),
    "outcome": (Protection("outcome"), [(2, flipped(2, 3)), (3, flipped(3, 2))]),
    "voter, c=1": (Protection("voter", 1), [(2, voters(2, 1)), (3, voters(3, 1))]),
    "voter, c=2": (Protection("voter", 2), [(2, voters(2, 2)), (3, voters(3, 2))]),
}
units = pytest.mark.parametrize("unit", list(UNITS))


class HalfNoise(NoisyWins):
    @property
    def scale(self):
        return super().scale / 2


class SmallSensitivity(NoisyWins):
    """2 half-wins where there are 4."""

    @property
    def scale(self):
        return self.l1 / 2 / self.epsilon


class HalfSigma(NoisyWins):
    @property
    def sigma(self):
        return super().sigma / 2


def worst_log_ratio(mechanism, neighbours, items):
    """max over neighbours h, g and outputs y of log P(y|h)/P(y|g) = sum (|y-g| - |y-h|)/scale, as an exact rational.

    Each term is monotone between and constant beyond h and g: its extremes are inside the box around them.
    """
    counted = {data: tuple(half_wins(data, items).tolist()) for data in set(itertools.chain.from_iterable(neighbours))}
    worst = 0
    for one, other in {(counted[one], counted[other]) for one, other in neighbours}:
        reach = [range(min(a, b) - 1, max(a, b) + 2) for a, b in zip(one, other, strict=True)]
        gain = sum(
            max(abs(y - b) - abs(y - a) for y in line) for line, a, b in zip(reach, one, other, strict=True)
        )  # the coordinates are independent
        worst = max(worst, gain)
    return Fraction(worst) / mechanism.scale


@units
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_worst_log_ratio_is_exactly_epsilon(unit, epsilon):
    protection, cases = UNITS[unit]
    for items, neighbours in cases:
        mechanism = NoisyWins(protection, epsilon)
        assert worst_log_ratio(mechanism, neighbours, items) == epsilon == mechanism.guarantee.epsilon


@units
@pytest.mark.parametrize("mutant", [HalfNoise, SmallSensitivity])
def test_the_exact_audit_catches_mutants(unit, mutant):
    protection, cases = UNITS[unit]
    for items, neighbours in cases:
        mechanism = mutant(protection, 1)
        assert worst_log_ratio(mechanism, neighbours, items) > mechanism.guarantee.epsilon


def test_the_exact_audit_catches_a_voter_without_bounding():
    """Noise for one comparison of each voter, and a voter with two."""
    assert worst_log_ratio(NoisyWins(Protection("voter", 1), 1), voters(3, 2), 3) > 1


def laplace_law(scale, reach):
    ratio = math.exp(-1 / scale)
    return [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-reach, reach + 1)]


@pytest.mark.slow
@units
def test_the_sampler_draws_the_audited_law(unit, request):
    """Chi-squared of what is released around the wins against the law with the scale that the audit used."""
    mechanism = NoisyWins(UNITS[unit][0], 1)
    wins, reach = np.array([3, 0, 9]), int(40 * mechanism.scale)
    bits = seeded(request)
    drawn = np.stack([mechanism.sample(wins, bits) for _ in range(4000)]) - wins
    for column in drawn.T:
        assert_law(column + reach, laplace_law(mechanism.scale, reach))
    # independence of the coordinates, by signs
    assert_law((drawn[:, 0] > 0) * 2 + (drawn[:, 1] > 0), _sign_law(mechanism.scale))


def _sign_law(scale):
    up = math.exp(-1 / scale) / (1 + math.exp(-1 / scale))
    return [(1 - up) ** 2, up * (1 - up), up * (1 - up), up**2]


def test_the_chi_squared_catches_half_the_noise(request):
    honest, mutant = NoisyWins(Protection("outcome"), 1), HalfNoise(Protection("outcome"), 1)
    reach = int(40 * honest.scale)
    with pytest.raises(AssertionError, match="p = "):
        assert_law(mutant.noise(4000, seeded(request)) + reach, laplace_law(honest.scale, reach))


@units
def test_guarantee_and_noise_variance(unit, request):
    protection = UNITS[unit][0]
    for delta in (0, Fraction(1, 10**6)):
        mechanism = NoisyWins(protection, "0.7", delta)
        guarantee = mechanism.guarantee
        assert (guarantee.epsilon, guarantee.delta, guarantee.local) == (Fraction(7, 10), delta, False)
        assert guarantee.protects == protection.protects
        assert (guarantee.rho is None) == (delta == 0)
        drawn = mechanism.noise(40_000, seeded(request)) / 2
        kurtosis = 6 if delta == 0 else 3  # of the Laplace and of the normal law
        deviation = mechanism.noise_variance * math.sqrt((kurtosis - 1) / len(drawn))
        assert np.square(drawn).mean() == pytest.approx(mechanism.noise_variance, abs=4.5 * deviation)


# -- Gaussian noise ----------------------------------------------------------------------------------------------


def gaussian(sigma, reach):
    """The integers up to ``reach`` from 0 and their log-probabilities; what is beyond 12 sigma is below 1e-31."""
    support = np.arange(-reach, reach + 1)
    log = -(support**2) / (2 * sigma**2)
    return support, log - np.log(np.exp(log).sum())


def renyi(sigma, shift, order):
    """The Rényi divergence of discrete Gaussians at two integers, by summation around where its mass lies."""
    support, log = gaussian(sigma, math.ceil(12 * sigma + order * abs(shift)))
    moved = log - (shift**2 - 2 * support * shift) / (2 * sigma**2)  # log P(k - shift), by its formula
    terms = order * log + (1 - order) * moved
    return (terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1)


def true_delta(sigma, shift, epsilon, coordinates):
    """sum over outputs of max(0, P - e^eps Q), neighbours being apart by ``shift`` in one or two coordinates.

    The log-ratio is (shift^2 coordinates - 2 shift k)/(2 sigma^2), k the noise or the sum of two.
    """
    support, log = gaussian(sigma, math.ceil(12 * sigma) + abs(shift))
    law = np.exp(log)
    if coordinates == 2:
        law, support = np.convolve(law, law), np.arange(2 * support[0], 2 * support[-1] + 1)
    losses = (shift**2 * coordinates - 2 * shift * support) / (2 * sigma**2)
    return float((law * -np.expm1(np.minimum(epsilon - losses, 0))).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    "protection", [Protection("outcome"), Protection("voter", 1), Protection("voter", 20)], ids=str
)
@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_gaussian_noise_keeps_its_promise(protection, epsilon):
    delta = Fraction(1, 10**5)
    mechanism = NoisyWins(protection, epsilon, delta)
    assert mechanism.l2_squared / (2 * mechanism.sigma**2) <= mechanism.rho  # in rationals
    assert mechanism.l2_squared / (2 * mechanism.sigma**2) > mechanism.rho * Fraction(99999, 100000)
    sigma, shift = float(mechanism.sigma), 2 * protection.moved
    for order in (1.01, 1.5, 2, 5, 30):
        divergence = 2 * renyi(sigma, shift, order)  # two coordinates
        assert divergence <= order * float(mechanism.rho) * (1 + 1e-9)
        assert divergence > order * float(mechanism.rho) * 0.99
    assert true_delta(sigma, shift, float(mechanism.epsilon), 2) <= delta
    mutant = HalfSigma(protection, epsilon, delta)
    assert true_delta(float(mutant.sigma), shift, float(mutant.epsilon), 2) > delta


def test_the_largest_change_has_the_largest_divergence():
    """Of all neighbours, not only of the farthest: every change stays within rho."""
    mechanism = NoisyWins(Protection("voter", 2), 1, Fraction(1, 10**5))
    counted = {data: half_wins(data, 3) for data in set(itertools.chain.from_iterable(voters(3, 2)))}
    said = np.stack(list(counted.values()))
    changes = np.unique((said[:, None] - said).reshape(-1, 3), axis=0).tolist()
    each = {shift: renyi(float(mechanism.sigma), shift, 3) for shift in range(-4, 5)}
    assert max(sum(each[shift] for shift in change) for change in changes) <= 3 * float(mechanism.rho) * (1 + 1e-9)


def test_the_oracle_agrees_with_the_summation():
    """dp-accounting, privacy loss distribution of a discrete Gaussian with sigma 5 and sensitivity 2."""
    for epsilon, delta in [(0.1, 0.11944434598), (0.5, 0.025653686829), (1, 0.0013184355287), (2, 5.2015159017e-08)]:
        assert true_delta(5.0, 2, epsilon, 1) == pytest.approx(delta, rel=1e-9)


def test_the_gaussian_sampler_draws_the_audited_law(request):
    mechanism = NoisyWins(Protection("voter", 3), 1, Fraction(1, 10**4))
    drawn = mechanism.noise(20_000, seeded(request))
    support, log = gaussian(float(mechanism.sigma), math.ceil(12 * mechanism.sigma))
    assert_law(drawn - support[0], np.exp(log))
    halved = HalfSigma(Protection("voter", 3), 1, Fraction(1, 10**4)).noise(20_000, seeded(request))
    with pytest.raises(AssertionError, match="p = "):
        assert_law(halved - support[0], np.exp(log))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [False, True])
def test_statistical_audit(mutant, request):
    """A lower confidence bound of the log-ratio of the best threshold, found on other draws."""
    from scipy import stats

    mechanism = (HalfNoise if mutant else NoisyWins)(Protection("comparison"), 1)
    bits, draws = seeded(request), 60_000
    one, other = (
        mechanism.noise(2 * draws, bits).reshape(draws, 2) + half_wins(data, 2) for data in (((0, 1, 2),), ((0, 1, 0),))
    )
    one, other = one[:, 0] - one[:, 1], other[:, 0] - other[:, 1]
    half = draws // 2

    def share(sample, threshold):
        return (sample[:half] >= threshold).mean()

    candidates = [t for t in range(-40, 41) if share(other, t) * half > 200]
    best = max(candidates, key=lambda t: share(one, t) / share(other, t))
    hits = [int((sample[half:] >= best).sum()) for sample in (one, other)]
    low = stats.beta.ppf(LEVEL / 2, hits[0], half - hits[0] + 1)
    high = stats.beta.ppf(1 - LEVEL / 2, hits[1] + 1, half - hits[1])
    assert (math.log(low / high) > 1) == mutant


@pytest.mark.parametrize(
    ("epsilon", "delta", "sentence"),
    [
        (0, 0, "epsilon must be a finite number above 0, got 0"),
        ("nan", 0, "epsilon must be a finite number above 0, got nan"),
        (1, 1, "delta must be at least 0 and below 1, got 1"),
        (1, -0.5, "delta must be at least 0 and below 1, got -0.5"),
        (1, "x", "delta must be a finite number, got x"),
    ],
)
def test_refusals(epsilon, delta, sentence):
    with pytest.raises(InputError) as refusal:
        NoisyWins(Protection("outcome"), epsilon, delta)
    assert str(refusal.value).startswith(sentence)
