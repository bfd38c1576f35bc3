"""Cube noise follows its law exactly, and the law costs what it says."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.cube_noise import cube_variance, discrete_cube


def law(scale, dimensions, reach):
    weights = {
        point: math.exp(-max(map(abs, point)) / scale)
        for point in itertools.product(range(-reach, reach + 1), repeat=dimensions)
    }
    total = sum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


@pytest.mark.parametrize(
    ("scale", "dimensions", "reach"), [(Fraction(1, 2), 2, 8), (Fraction(1), 1, 20), (Fraction(2, 3), 3, 9)]
)
def test_draws_follow_the_law(scale, dimensions, reach):
    bits, draws = SeededBits(3), 1500
    seen = {}
    for _ in range(draws):
        point = tuple(discrete_cube(scale, dimensions, bits).tolist())
        seen[point] = seen.get(point, 0) + 1
    expected = {point: draws * chance for point, chance in law(float(scale), dimensions, reach).items()}
    common = [point for point, number in expected.items() if number >= 8]
    rest = draws - sum(seen.get(point, 0) for point in common), draws - sum(expected[point] for point in common)
    chi = sum((seen.get(point, 0) - expected[point]) ** 2 / expected[point] for point in common)
    chi += (rest[0] - rest[1]) ** 2 / max(rest[1], 1)
    assert chi < len(common) + 5 * math.sqrt(2 * len(common))


def test_a_coordinate_has_the_stated_variance():
    bits, scale = SeededBits(4), Fraction(1000)
    drawn = np.array([discrete_cube(scale, 20, bits) for _ in range(200)])
    assert drawn.var() == pytest.approx(cube_variance(1000.0, 20), rel=0.15)


def test_refusals():
    with pytest.raises(InputError, match="scale must be a finite number above 0"):
        discrete_cube(0, 2, SeededBits(1))
    with pytest.raises(InputError, match="dimensions must be an integer of at least 1"):
        discrete_cube(1, 0, SeededBits(1))
