"""Objective perturbation with secret covariates: its constants, its privacy by samples, and a mutant."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rankdp.audit import audit_samples
from rankdp.mechanisms.votes.covariate_objective import CovariateObjective
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.proven_rows import GRID_BITS, SecretRows


def rows(said):
    """Of (winner, loser, z) with items 0 and 1."""
    first = np.zeros(len(said), np.int64)
    wins = np.array([2 if winner == 0 else 0 for winner, _ in said])
    steps = np.array([[round(z * (1 << GRID_BITS))] for _, z in said])
    return SecretRows(2, first, first + 1, wins, 2 - wins, steps)


OTHERS = [(0, 0.5), (1, 0.5), (0, -0.5), (1, -0.5)]


def test_epsilon_is_what_its_parts_add_up_to():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        law = CovariateObjective(10, 3, 1000, epsilon)
        (first, second), (items, covariates) = law.chosen
        noise = 4 / float(items) + 2 * 3 / float(covariates)
        bend = math.log1p((2 / float(first) + 3 / float(second)) / 4)
        spent = noise + bend + 2 * float(law.gap_epsilon) + float(law.moment_epsilon)
        assert spent == pytest.approx(float(epsilon), rel=1e-9)


def test_the_worst_row_moves_gradient_and_determinant_by_what_the_proof_says():
    """Over all pairs of rows on a grid of covariates, at many points, with the ridges of the mechanism."""
    law, random = CovariateObjective(2, 1, 5, Fraction(1)), np.random.default_rng(0)
    ridges = np.repeat([float(ridge) for ridge in law.chosen[0]], [2, 1])
    most = math.log1p((2 / ridges[0] + 1 / ridges[2]) / 4)
    said = [(winner, z) for winner in (0, 1) for z in (-1, 0, 1)]
    tables = [rows([*OTHERS, one]) for one in said]
    for _ in range(50):
        point = random.normal(size=3) * 3
        gradients = [table.gradient(point) for table in tables]
        bends = [np.linalg.slogdet(table.hessian(point, ridges))[1] for table in tables]
        for one in gradients:
            for other in gradients:
                assert np.abs(one - other)[:2].sum() <= 4 + 1e-12
                assert np.abs(one - other)[2] <= 2 + 1e-12
        assert max(bends) - min(bends) <= most + 1e-12


class LessNoise(CovariateObjective):
    """Noise of a part of its scale."""

    part = 2

    def scales(self, ridges, share):
        found = super().scales(ridges, share)
        return found and (found[0] / self.part, found[1] / self.part)


class FarLessNoise(LessNoise):
    """An eighth of the scale, which samples show too."""

    part = 8


def log_density(law, table, point):
    """Of the ideal minimiser, up to a constant: that of the noise which makes it the minimiser, and the determinant."""
    ridges = np.repeat([float(ridge) for ridge in law.chosen[0]], [2, 1])
    scales = np.repeat([float(scale) for scale in law.chosen[1]], [2, 1])
    noise = -(table.gradient(point) + ridges * point)
    return np.linalg.slogdet(table.hessian(point, ridges))[1] - (np.abs(noise) / scales).sum()


@pytest.mark.parametrize(("kind", "caught"), [(CovariateObjective, False), (LessNoise, True)])
def test_densities_of_all_neighbours_differ_by_at_most_epsilon(kind, caught):
    law, random = kind(2, 1, 5, Fraction(2)), np.random.default_rng(1)
    tables = [rows([*OTHERS, (winner, z)]) for winner in (0, 1) for z in (-1, 0, 1)]
    points = [*(random.normal(size=(300, 3)) * 3), *([a, -a, b] for a in (-9, 0, 9) for b in (-40, 40))]
    losses = [
        max(log) - min(log) for log in ([log_density(law, t, np.array(p, float)) for t in tables] for p in points)
    ]
    assert bool(max(losses) > 2) is caught
    assert max(losses) > 1


@pytest.mark.parametrize(("kind", "caught"), [(CovariateObjective, False), (FarLessNoise, True)])
def test_the_statistical_audit_passes_the_law_and_catches_an_eighth_of_its_noise(kind, caught):
    law, bits = kind(2, 1, 5, Fraction(2)), SeededBits(3)

    def sampler(one, count):
        table = rows([*OTHERS, one])
        drawn = np.array([law.sample(table, bits)[0] for _ in range(count)])
        return np.column_stack([drawn[:, 0] - drawn[:, 1], drawn[:, 2]])

    audit = audit_samples(sampler, [((0, 1.0), (1, 1.0))], draws=1200, claimed_epsilon=2, name="rows")
    assert audit.holds is not caught


def test_moments_are_noisy_sums_of_squares():
    law, bits = CovariateObjective(2, 1, 5, Fraction(4)), SeededBits(1)
    table = rows([(0, 1.0)] * 30 + [(1, -0.5)] * 40)
    drawn = np.array([law.moments(table, bits)[0] for _ in range(500)])
    assert drawn.mean() == pytest.approx(40, abs=5 * drawn.std() / 500**0.5)
    assert drawn.std() == pytest.approx(math.sqrt(2) / float(law.moment_epsilon), rel=0.2)
