"""The Laplace baseline: probabilities against exact integration, ties, the grid, and the edges of the quadrature."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from support import Scripted, assert_law, precise, seeded

import rankdp
from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.noisy_ranks import NoisyRanks, RankLaplace, _shuffle_ties
from rankdp.theory.permutations import all_permutations, moves, neighbour_places


def integrate(terms, b, start):
    """The antiderivative of sum c x^p e^(n x/b) that is zero at ``start``, None for minus infinity."""
    primitive = {}
    for (p, n), c in terms.items():
        if n == 0:
            primitive[p + 1, 0] = primitive.get((p + 1, 0), 0) + c / (p + 1)
            continue
        factor = c * b / n  # by parts, downwards in p
        for power in range(p, -1, -1):
            primitive[power, n] = primitive.get((power, n), 0) + factor
            factor *= -power * b / n
    at_start = evaluate(primitive, b, start) if start is not None else Decimal(0)
    primitive[0, 0] = primitive.get((0, 0), 0) - at_start
    return primitive


def evaluate(terms, b, x):
    return sum(c * (Decimal(x) ** p if p else 1) * (n * Decimal(x) / b).exp() for (p, n), c in terms.items())


def exact_probability(s, b):
    """P(X_s[0] < X_s[1] < …), X_i Laplace around i with scale b, symbolically on each stretch, in 80 digits."""
    with localcontext(precise()):
        b = Decimal(b.numerator) / Decimal(b.denominator)
        m = len(s)
        stretches = [(None, 0), *itertools.pairwise(range(m)), (m - 1, None)]
        functions = [{(0, 0): Decimal(1)} for _ in stretches]  # H_0 = 1
        for item in s:
            total, following = Decimal(0), []
            for (start, stop), previous in zip(stretches, functions, strict=True):
                rises = stop is not None and stop <= item
                sign = 1 if rises else -1
                factor = (-sign * Decimal(item) / b).exp() / (2 * b)
                product = {(p, n + sign): c * factor for (p, n), c in previous.items()}
                primitive = integrate(product, b, start)
                primitive[0, 0] = primitive.get((0, 0), Decimal(0)) + total
                following.append(primitive)
                if stop is not None:
                    total = evaluate(primitive, b, stop)
            functions = following
        # at +infinity only the constant is left: every other term falls
        assert all(n < 0 for (p, n), c in functions[-1].items() if (p, n) != (0, 0) and abs(c) > Decimal("1e-60"))
        return functions[-1][0, 0]


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(4), Fraction(97)])
@pytest.mark.parametrize("items", [2, 3, 4])
def test_log_prob_against_exact_integration(items, epsilon):
    mechanism = RankLaplace(items, epsilon)
    outputs = all_permutations(items)
    exact = [exact_probability(s, mechanism.scale) for s in outputs.tolist()]
    assert abs(sum(map(Fraction, exact)) - 1) < Fraction(1, 10**40)
    stated = mechanism.log_prob(outputs, np.arange(items))
    np.testing.assert_allclose(stated, [float(p.ln()) for p in exact], rtol=1e-11, atol=1e-11)


def test_log_prob_of_six_items_against_exact_integration():
    mechanism = RankLaplace(6, 3)
    for s in [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (2, 0, 5, 1, 4, 3)]:
        exact = exact_probability(s, mechanism.scale)
        assert mechanism.log_prob(s, np.arange(6))[0] == pytest.approx(float(exact.ln()), abs=1e-11)


@pytest.mark.parametrize("stretches", [1, 2, 3, 49, 98, 103, 107, 161, 187, 196])
def test_probabilities_are_whole_however_the_ranks_are_cut(stretches):
    """1/(1/49) is not 49 in floating point: a stretch too many once made these sum to 1.31."""
    mechanism = RankLaplace(2, Fraction(2 * stretches) - Fraction(1, 2))
    assert math.fsum(np.exp(mechanism.log_prob([[0, 1], [1, 0]], [0, 1]))) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(mechanism.position_matrix().sum(axis=1), 1, rtol=1e-12)
    assert mechanism.position_matrix()[0, 0] == pytest.approx(mechanism.keep_probability(0, 1), abs=1e-12)


@pytest.mark.parametrize("items", [10, 25])
def test_position_matrix_of_longer_rankings(items, request):
    mechanism = RankLaplace(items, 4)
    matrix = mechanism.position_matrix()
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-10)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-10)
    out = mechanism.sample(np.tile(np.arange(items), (20_000, 1)), seeded(request))
    for a in (0, items // 2):
        assert_law(np.argsort(out, axis=1)[:, a], matrix[a])


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4), Fraction(20)])
@pytest.mark.parametrize("items", [5])
def test_the_input_is_the_most_likely_output_and_its_reverse_the_least(items, epsilon):
    logs = RankLaplace(items, epsilon).log_prob(all_permutations(items), np.arange(items))
    assert np.argmax(logs) == 0
    assert np.argmin(logs) == len(logs) - 1


@pytest.mark.parametrize("epsilon", ["1e-12", "1", "1000", "1e30"])
@pytest.mark.parametrize("items", [2, 40, 41])
def test_local_epsilon_is_finite_and_within_the_l1_bound(items, epsilon):
    mechanism = RankLaplace(items, epsilon)
    farthest = max(
        sum(abs(a - b) for a, b in enumerate(order))
        for order in (range(items - 1, -1, -1), np.roll(range(items), items // 2))
    )
    assert farthest == items**2 // 2
    assert 0 < mechanism.local_epsilon() <= Fraction(farthest) / mechanism.scale


def test_slack_of_the_baseline():
    """0.57 eps for three items, as its docstring says."""
    mechanism = RankLaplace(3, 1)
    logs = mechanism.log_prob(all_permutations(3), np.arange(3))
    assert (logs[:, None] - logs[neighbour_places(3)]).max() == pytest.approx(0.57, abs=0.005)


def test_noise_is_on_a_grid_of_integers_with_exactly_the_scale(monkeypatch):
    """2(m-1)/eps in rational arithmetic, times the steps: what discrete_laplace is asked for."""
    from rankdp.mechanisms.rankings import noisy_ranks

    asked = []

    def record(scale, count, bits):
        asked.append(scale)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(noisy_ranks, "discrete_laplace", record)
    for epsilon in ("0.1", "1/3", "1e-9", "1e-12"):
        RankLaplace(4, epsilon).sample([[0, 1, 2, 3]])
        assert isinstance(asked[-1], Fraction)
        steps = asked[-1] / (6 / Fraction(epsilon))
        assert steps.denominator == 1
        assert steps == 1 << 24 or asked[-1] > 1 << 54
        assert asked[-1] <= 1 << 56


@pytest.mark.slow
def test_ties_are_broken_by_fair_draws(request):
    bits = seeded(request)
    counts = {}
    for _ in range(6000):
        places, values = np.array([4, 0, 1, 2, 3]), np.array([-1, 5, 5, 5, 9])
        _shuffle_ties(places, values, bits)
        assert places[0] == 4
        assert places[4] == 3
        counts[tuple(places[1:4].tolist())] = counts.get(tuple(places[1:4].tolist()), 0) + 1
    cells = [index for index, key in enumerate(itertools.permutations(range(3))) for _ in range(counts[key])]
    assert_law(np.array(cells), np.full(6, 1 / 6))


def test_a_tie_never_follows_the_input(monkeypatch):
    """All noise equal and ranks one step apart undone: every order is equally likely, not the input's."""
    from rankdp.mechanisms.rankings import noisy_ranks

    monkeypatch.setattr(
        noisy_ranks, "discrete_laplace", lambda scale, count, bits: -np.tile(np.arange(3) << 24, count // 3)
    )
    mechanism = RankLaplace(3, 1)
    out = mechanism.sample(np.tile(np.arange(3), (6000, 1)), rankdp.SeededBits(1))
    assert_law(out @ np.array([9, 3, 1]), np.bincount([5, 7, 11, 15, 19, 21], minlength=22) / 6)
    top = (1 << 64) - 1
    assert mechanism.sample([[0, 1, 2]], Scripted([0, 0, top, top])).shape == (1, 3)


def test_what_cannot_be_computed_is_refused():
    mechanism = RankLaplace(3, 10**6)
    for call in (lambda: mechanism.log_prob([0, 1, 2], [0, 1, 2]), mechanism.position_matrix):
        with pytest.raises(
            Unsupported, match="probabilities of the laplace mechanism are computed for a scale of at least"
        ):
            call()
    assert mechanism.keep_probability(0, 1) == 1


@pytest.mark.parametrize("kind", [RankLaplace, NoisyRanks])
@pytest.mark.parametrize("items", [2, 3, 5, 9])
def test_the_scale_covers_every_neighbour(kind, items):
    """Exactly, in integers: the l1 distance of neighbouring ranks, less common shifts, over the scale."""
    mechanism, identity = kind(items, 1), np.arange(items)
    farthest = max(
        min(int(np.abs(np.argsort(move) - identity - shift).sum()) for shift in range(-1, 2)) for move in moves(items)
    )
    assert farthest / mechanism.scale <= mechanism.guarantee.epsilon
