"""Staircase noise on the l1 norm: its law by enumeration, its draws, and a mutant with half the noise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from score_cases import built

from rankdp.audit.enumeration import audit_exact
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.scores.joint_staircase import JointStaircaseScores, _accepted, ball_points
from rankdp.privacy.bits import SeededBits

STEPS = 3


def vectors(count: int, reach: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(-reach, reach + 1), repeat=count))


class HalfNoise(JointStaircaseScores):
    """Stairs of half the width."""

    def level(self, j: int) -> int:
        return 2 * abs(j) // self.grid.steps


@pytest.mark.parametrize(("n", "radius"), [(1, 4), (2, 5), (3, 4), (4, 2), (3, 0)])
def test_points_of_a_ball(n: int, radius: int):
    assert ball_points(n, radius) == sum(sum(map(abs, one)) <= radius for one in vectors(n, radius))


@pytest.mark.parametrize(("kind", "holds"), [(JointStaircaseScores, True), (HalfNoise, False)])
@pytest.mark.parametrize("gamma", [None, 0, "1/3", 1])
def test_epsilon_by_enumeration_of_all_vectors_and_all_neighbours(kind, holds: bool, gamma):
    """Every vector in a box, every shift of every coordinate by up to K, in exact rationals."""
    mechanism = kind(*_parts(built("joint-staircase", STEPS, epsilon="1.5", count=2, gamma=gamma)))
    worst = Fraction(0)
    for one in vectors(2, 9):
        here = mechanism.exponent(sum(map(abs, one)), 64)[0]
        for place, shift in itertools.product(range(2), range(-STEPS, STEPS + 1)):
            other = [value + shift * (at == place) for at, value in enumerate(one)]
            worst = max(worst, mechanism.exponent(sum(map(abs, other)), 64)[0] - here)
    assert worst == Fraction("1.5") if holds else worst > Fraction("1.5")


def _parts(mechanism: JointStaircaseScores):
    return mechanism.grid, mechanism.asked


@pytest.mark.parametrize("count", [1, 2, 3])
def test_probabilities_add_up(count: int):
    mechanism = built("joint-staircase", STEPS, epsilon=2, count=count)
    every = np.array(vectors(count, 27 if count == 3 else 60))
    chances = np.exp(mechanism.log_prob(every))
    assert chances.sum() == pytest.approx(1, abs=1e-6)


def test_the_stated_deviation():
    fine = built("joint-staircase", 64, epsilon=2, count=2)
    box = np.array(vectors(2, 64 * 7))
    variance = np.exp(fine.log_prob(box)) @ box[:, 0] ** 2
    assert math.sqrt(variance) == pytest.approx(fine.deviation, rel=0.02)


def test_one_score_is_the_staircase():
    joint, plain = (built(name, 12, epsilon=1, **count) for name, count in NOISES)
    assert joint.first == plain.first
    j = np.arange(-40, 41)
    assert joint.log_prob(j[:, None]) == pytest.approx(plain.log_prob(j))


NOISES = [("joint-staircase", {"count": 1}), ("staircase", {})]


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [None, 1])
def test_draws_follow_the_law(gamma):
    mechanism = built("joint-staircase", STEPS, epsilon=2, count=2, gamma=gamma)
    bits, draws = SeededBits(3), 1_500
    found = Counter(tuple(mechanism.noise(2, bits).tolist()) for _ in range(draws))
    near = vectors(2, 2)
    due = draws * np.exp(mechanism.log_prob(near))
    seen = np.array([found[one] for one in near])
    rest = np.array([draws - seen.sum(), draws - due.sum()])
    assert stats.chisquare([*seen, rest[0]], [*due, rest[1]]).pvalue > 1e-3


def test_the_exact_audit_accepts_it_and_refuses_half_the_noise():
    mechanism = built("joint-staircase", 8, epsilon=1, count=4)
    found = audit_exact(mechanism, draws=20_000, bits=SeededBits(5))
    assert found.holds
    assert found.sampler_p_value > 1e-3
    assert not audit_exact(HalfNoise(*_parts(mechanism)), draws=0).holds


def test_it_has_less_noise_than_laplace_and_trials_are_as_stated():
    for count, epsilon in ((2, 4), (5, 4), (20, 4)):
        joint = built("joint-staircase", epsilon=epsilon, count=count)
        assert joint.standard_deviation < built("laplace", epsilon=epsilon).standard_deviation
    mechanism = built("joint-staircase", 1 << 12, epsilon=4, count=2)
    trials, bits = 2_000, SeededBits(1)
    steps, first = mechanism.grid.steps, mechanism.first
    noise = np.random.default_rng(2).laplace(scale=steps / 4, size=(trials, 2))
    norms = np.abs(np.rint(noise)).sum(axis=1)
    level = norms // steps + (norms % steps >= first)
    share = np.exp(-4 * (level - norms / steps + first / steps)).mean()
    assert share == pytest.approx(_accepted(4.0, 2, first / steps), rel=0.15)
    assert mechanism.noise(2, bits).shape == (2,)


def test_refusals():
    with pytest.raises(InputError, match="count must be an integer of at least 1"):
        built("joint-staircase", epsilon=1)
    with pytest.raises(InputError, match="epsilon must be smaller for joint-staircase noise on 2 scores"):
        built("joint-staircase", epsilon=40, count=2)
    mechanism = built("joint-staircase", epsilon=1, count=2)
    with pytest.raises(InputError, match="count must be 2, the number of scores"):
        mechanism.noise(3, SeededBits(1))
    with pytest.raises(Unsupported, match="independent noise"):
        mechanism.planned(1, 0)
