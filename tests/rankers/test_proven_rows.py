"""The gradient of rows with covariates is proven, in doubles and in fixed point, for ordinary and extreme tables."""

from fractions import Fraction

import numpy as np
import pytest

from rankdp.rankers import proven_rows
from rankdp.rankers.proven_rows import GRID_BITS, SecretRows, fit_rows_within, proven_norm

mpmath = pytest.importorskip("mpmath")


def table(seed, n=40, items=4, covariates=2, weight=3):
    random = np.random.default_rng(seed)
    first = random.integers(items, size=n)
    halves = random.integers(0, 2 * weight, (2, n)) + 1
    steps = random.integers(-(1 << GRID_BITS), (1 << GRID_BITS) + 1, (n, covariates))
    return SecretRows(items, first, (first + 1) % items, *halves, steps)


def exact_norm(rows, point, ridges, linear):
    """The norm of the gradient with 60 digits."""
    with mpmath.workdps(60):
        values = [mpmath.mpf(value.numerator) / value.denominator for value in point]
        gradient = [mpmath.mpf(r) * v + mpmath.mpf(s) for r, v, s in zip(ridges, values, linear, strict=True)]
        n = rows.items
        for i, j, ahead, behind, steps in zip(
            *(getattr(rows, name).tolist() for name in ("first", "second", "ahead", "behind", "steps")), strict=True
        ):
            z = [mpmath.mpf(step) / (1 << GRID_BITS) for step in steps]
            gap = values[i] - values[j] + sum(a * b for a, b in zip(z, values[n:], strict=True))
            down = 1 / (1 + mpmath.exp(gap))
            pull = (behind * (1 - down) - ahead * down) / 2
            gradient[i] += pull
            gradient[j] -= pull
            for k, share in enumerate(z, n):
                gradient[k] += pull * share
        return float(mpmath.sqrt(sum(g * g for g in gradient)))


@pytest.mark.parametrize("seed", range(0, 6, 2))
@pytest.mark.parametrize("ridge", [1e-2, 3.0])
def test_the_bound_holds_and_is_reached(seed, ridge):
    rows, random = table(seed, weight=10**seed), np.random.default_rng(seed)
    ridges, linear = np.full(6, ridge), random.laplace(0, 10, 6)
    point = fit_rows_within(rows, 1e-7, ridges, linear)
    norm = exact_norm(rows, point, ridges, linear)
    assert norm <= 1e-7
    assert norm <= proven_norm(rows, np.array([float(value) for value in point]), ridges, linear) or seed > 4


@pytest.mark.parametrize("seed", range(3))
def test_fixed_point_ends_from_anywhere_and_proves_what_doubles_cannot(seed, monkeypatch):
    rows, random = table(seed, n=12), np.random.default_rng(seed)
    ridges, linear = 10 ** random.uniform(-2, 1, 6), random.laplace(0, 30, 6)
    monkeypatch.setattr(proven_rows, "_newton", lambda *_: np.full(6, [np.nan, 50.0, -300.0][seed]))
    point = fit_rows_within(rows, 1e-20, ridges, linear)
    assert all(isinstance(value, Fraction) for value in point)
    assert exact_norm(rows, point, ridges, linear) <= 1e-20


def test_one_sided_tables_of_many_comparisons():
    """Items that never lose, a covariate that decides everything: the minimum is far out and flat."""
    many = 10**9
    rows = SecretRows(
        2,
        np.zeros(2, np.int64),
        np.ones(2, np.int64),
        np.array([2 * many, 2 * many]),
        np.zeros(2, np.int64),
        np.array([[1 << GRID_BITS], [0]]),
    )
    point = fit_rows_within(rows, 1e-7 + 1e-11 * 3 * 2 * many, np.full(3, 0.5), np.zeros(3))
    assert exact_norm(rows, point, np.full(3, 0.5), np.zeros(3)) <= 0.061
