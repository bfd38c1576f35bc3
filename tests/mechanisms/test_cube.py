"""Noise in a cube: its law by enumeration, epsilon over all changes, variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, seeded

from rankdp.errors import InputError
from rankdp.privacy.cube_noise import CubeNoise


def cube_of(points):
    """The smallest t with each row in {-t, …, t - 1}^k."""
    return np.maximum(points + 1, -points).max(axis=-1)


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


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("moved", [1, 2])
def test_epsilon_over_all_changes(moved, k):
    """Every change within the cube of side 2 * moved costs at most moved * rate, and some change costs it."""
    rate, outputs = 0.25, points(k, 5)

    def log_law(at):
        return np.logaddexp(-rate * cube_of(at), -rate * cube_of(-at))

    worst = max((log_law(outputs) - log_law(outputs + change)).max() for change in points(k, moved))
    assert 0.9 * moved * rate < worst <= moved * rate + 1e-9


@pytest.mark.parametrize(("k", "rate"), [(1, "1/4"), (12, "1/2"), (200, "1")])
def test_the_variance_is_the_stated_one(k, rate, request):
    noise = CubeNoise(k, rate)
    drawn = noise.sample(3000, seeded(request))
    squares = (drawn.astype(float) ** 2).mean(axis=1)
    assert squares.mean() == pytest.approx(noise.variance, abs=4.5 * squares.std() / math.sqrt(3000))
    assert np.abs(drawn.mean(axis=0)).max() < 5 * math.sqrt(noise.variance / 3000)


def test_refusals():
    with pytest.raises(InputError, match="numbers must be an integer from 1 to 200, got 201"):
        CubeNoise(201, 1)
    with pytest.raises(InputError, match="epsilon is too small for 3 numbers"):
        CubeNoise(3, "1e-17").sample(1, None)
