"""Noise in a cube: its law by enumeration, epsilon over all changes, variance; margins of chosen pairs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, seeded

from rankdp.errors import InputError
from rankdp.mechanisms.ballots.cube import ChosenMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.cube_noise import CubeNoise, cube_of

BALLOT, VOTER = BallotProtection("ballot"), BallotProtection("voter")
units = pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)


def points(k, reach):
    return np.array(list(itertools.product(range(-reach, reach + 1), repeat=k)))


def law(k, rate, reach):
    """By the definition: a dilation, a uniform point of its cube, a sign."""
    found = dict.fromkeys(map(tuple, points(k, reach).tolist()), 0.0)
    weights = [t**k * math.exp(-rate * t) for t in range(1, reach + 1)]
    for t, weight in enumerate(weights, 1):
        for point in itertools.product(range(-t, t), repeat=k):
            for sign in (1, -1):
                found[tuple(sign * value for value in point)] += weight / sum(weights) / (2 * t) ** k / 2
    return found


@pytest.mark.parametrize(("k", "rate"), [(1, 1.5), (2, 2.0), (3, 3.0)])
def test_the_law_is_that_of_the_least_cubes_and_is_drawn(k, rate, request):
    reach = 14 if k < 3 else 9
    expected = law(k, rate, reach)
    outputs = np.array(list(expected))
    stated = np.exp(-rate * cube_of(outputs)) + np.exp(-rate * cube_of(-outputs))
    inside = np.abs(outputs).max(axis=1) <= reach // 2  # farther out the largest cubes are missing
    ratios = stated[inside] / np.array(list(expected.values()))[inside]
    assert ratios == pytest.approx(ratios[0], rel=1e-3)
    drawn = CubeNoise(k, Fraction(rate)).sample(20_000, seeded(request))
    near = 2
    drawn = drawn[np.abs(drawn).max(axis=1) <= near]
    chances = [chance for point, chance in expected.items() if max(map(abs, point)) <= near]
    base = (2 * near + 1) ** np.arange(k)[::-1]
    assert_law((drawn + near) @ base, np.array(chances) / sum(chances))


@units
@pytest.mark.parametrize("k", [1, 2, 3])
def test_epsilon_over_all_changes(protection, k):
    """Every change that one ballot can make, and half the noise is caught."""
    mechanism = ChosenMargins(k, protection, "1/2")
    outputs = points(k, 5)

    def worst(rate):
        def log_law(at):
            return np.logaddexp(-rate * cube_of(at), -rate * cube_of(-at))

        moved = points(k, protection.moved) * mechanism.grid
        return max((log_law(outputs) - log_law(outputs + change)).max() for change in moved)

    assert 0.49 < worst(float(mechanism.rate)) <= 0.5 + 1e-9
    assert worst(2 * float(mechanism.rate)) > 0.9


@units
@pytest.mark.parametrize(("k", "epsilon", "delta"), [(1, 1, 0), (12, 3, 0), (200, 1, 0), (5, 100, 0), (7, 1, "1e-6")])
def test_the_margins_are_unbiased_with_the_stated_variance(protection, k, epsilon, delta, request):
    mechanism = ChosenMargins(k, protection, epsilon, delta, Fraction(1, 2))
    margins = np.arange(k) - k // 2
    noise = mechanism.samples(margins, 3000, seeded(request)) - margins
    assert ((noise * mechanism.grid) % 1 == 0).all()
    squares = (noise**2).mean(axis=1)
    assert squares.mean() == pytest.approx(mechanism.noise_variance, abs=4.5 * squares.std() / math.sqrt(3000))
    assert np.abs(noise.mean(axis=0)).max() < 5 * math.sqrt(mechanism.noise_variance / 3000)
    if not delta:
        about = (k + 1) * (k + 2) / 3 * (2 * protection.moved / epsilon) ** 2
        assert mechanism.noise_variance == pytest.approx(about, rel=0.05)
    else:
        spent = protection.moved**2 * k * mechanism.grid**2 / (2 * mechanism.sigma**2)
        assert mechanism.rho / 2 * Fraction(999, 1000) < spent <= mechanism.rho / 2


def test_refusals():
    with pytest.raises(InputError, match="pairs must be an integer from 1 to 200, got 201"):
        ChosenMargins(201, VOTER, 1)
    with pytest.raises(InputError, match="epsilon is too small for 3 numbers"):
        ChosenMargins(3, VOTER, "1e-17").noise(1, None)
