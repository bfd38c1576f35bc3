"""Noisy margins: the two parts, their sensitivities and epsilon by enumeration, the estimate and its variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import generator, seeded

from rankdp.errors import InputError
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.permutohedron import dilation_of
from rankdp.mechanisms.ballots.protection import BallotProtection

BALLOT, VOTER = BallotProtection("ballot"), BallotProtection("voter")
units = pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)


def ballot_margins(m):
    """What one ballot can add to the margins: complete, tied and truncated ones are all given by levels."""
    levels = np.array(list(itertools.product(range(m), repeat=m)))
    return np.unique(np.sign(levels[:, None, :] - levels[:, :, None]), axis=0)


def parts(margins):
    """Borda scores and the cyclic part, times m."""
    scores = margins.sum(axis=-1)
    return scores, margins.shape[-1] * margins - (scores[..., :, None] - scores[..., None, :])


def changes(protection, m):
    ballots = ballot_margins(m)
    if protection is VOTER:
        return ballots
    return np.unique((ballots[:, None] - ballots).reshape(-1, m, m), axis=0)


@units
@pytest.mark.parametrize("m", [2, 3, 4])
def test_sensitivities_of_the_cyclic_part(protection, m):
    scores, cycles = parts(changes(protection, m))
    assert (cycles.sum(axis=2) == 0).all()
    once = cycles[:, *np.triu_indices(m, 1)]
    assert np.abs(once).sum(axis=1).max() == protection.cyclic_l1(m)
    assert (once**2).sum(axis=1).max() == protection.cyclic_l2_squared(m)
    squared = protection.cyclic_l2_squared(m) / m**2 + protection.borda_l2_squared(m) / m
    assert squared == protection.moved**2 * m * (m - 1) / 2  # the parts are orthogonal
    assert (scores**2).sum(axis=1).max() == protection.borda_l2_squared(m)


def worst_log_ratio(mechanism, neighbours):
    """The largest over outputs: that of the scores around 0 plus that of the cyclic part, far out on its side."""
    m, rate = mechanism.items, float(mechanism.scores.rate)
    free = np.array(list(itertools.product(range(-m, m + 1), repeat=m - 1)))
    outputs = np.column_stack([free, -free.sum(axis=1)])

    def log_law(points):
        return np.logaddexp(-rate * dilation_of(points), -rate * dilation_of(-points))

    here, worst = log_law(outputs), 0.0
    first, second = np.triu_indices(m, 1)
    for scores, cycles in zip(*parts(neighbours), strict=True):
        of_scores = (here - log_law(outputs + mechanism.scores.grid * scores)).max()
        worst = max(worst, of_scores + np.abs(cycles[first, second]).sum() / float(mechanism.scale))
    return worst


@units
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)], ids=str)
def test_epsilon_over_all_neighbouring_elections(protection, epsilon):
    neighbours = changes(protection, 3)
    mechanism = NoisyMargins(3, protection, epsilon)
    assert 0.75 * epsilon < worst_log_ratio(mechanism, neighbours) <= epsilon + 1e-9
    taken_for_removal = NoisyMargins(3, VOTER, epsilon)
    assert (worst_log_ratio(taken_for_removal, neighbours) > epsilon + 1e-9) == (protection is BALLOT)


@units
@pytest.mark.parametrize("m", [3, 10, 50])
def test_rho_of_the_two_parts_adds_up(protection, m):
    mechanism = NoisyMargins(m, protection, 1, "1e-6")
    spent = protection.borda_l2_squared(m) * mechanism.scores.grid**2 / (2 * mechanism.scores.sigma**2)
    spent += protection.cyclic_l2_squared(m) / (2 * mechanism.scale**2)
    assert mechanism.scores.rho * Fraction(9999, 10000) < spent <= mechanism.scores.rho
    assert mechanism.guarantee.rho == float(mechanism.scores.rho)


@units
def test_less_noise_than_on_the_pairs_alone(protection):
    for m, gaussian_share, laplace_share in ((10, 0.72, 0.47), (50, 0.53, 0.34)):
        pure, mixed = NoisyMargins(m, protection, 1), NoisyMargins(m, protection, 1, "1e-6")
        pairs = m * (m - 1) / 2  # each moves by at most ``moved``
        assert pure.noise_variance <= laplace_share * 2 * (protection.moved * pairs) ** 2
        alone = protection.moved**2 * pairs / (2 * float(mixed.scores.rho))
        assert mixed.noise_variance <= gaussian_share * alone


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("m", [3, 10])
def test_the_split_is_the_best_one(m, delta):
    def variance(share):
        mechanism = NoisyMargins(m, VOTER, "0.1", delta)
        other = NoisyMargins(m, VOTER, "0.1", delta)
        other.share = share
        other.scores = type(mechanism.scores)(m, VOTER, "0.1", delta, share)
        return other.noise_variance

    best = NoisyMargins(m, VOTER, "0.1", delta).share
    assert variance(best) < min(variance(best * Fraction(4, 5)), variance(best * Fraction(6, 5)))


@pytest.mark.slow
@units
@pytest.mark.parametrize(("m", "epsilon", "delta"), [(3, 1, 0), (9, 1, "1e-6")])
def test_the_estimate_is_unbiased_with_the_stated_variance(protection, m, epsilon, delta, request):
    mechanism = NoisyMargins(m, protection, epsilon, delta)
    ballots = generator(request).permuted(np.tile(np.arange(m), (50, 1)), axis=1)
    margins = np.sign(ballots[:, None, :] - ballots[:, :, None]).sum(axis=0)
    bits = seeded(request)
    drawn = np.stack([mechanism.sample(margins, bits) for _ in range(800)])
    assert (drawn == -drawn.transpose(0, 2, 1)).all()  # to the bit: Copeland's rule and others refuse anything else
    noise = (drawn - margins)[:, *np.triu_indices(m, 1)]
    squares = (noise**2).mean(axis=1)
    assert squares.mean() == pytest.approx(mechanism.noise_variance, abs=4.5 * squares.std() / math.sqrt(len(squares)))
    assert np.abs(noise.mean(axis=0)).max() < 5 * math.sqrt(mechanism.noise_variance / len(noise))
    again = (mechanism.noise(800, bits)[:, *np.triu_indices(m, 1)] ** 2).mean(axis=1)
    assert again.mean() == pytest.approx(mechanism.noise_variance, abs=4.5 * again.std() / math.sqrt(len(again)))
    assert mechanism.parameters["noise_variance"] == mechanism.noise_variance


@pytest.mark.parametrize("margins", [np.ones((3, 3), int), np.zeros((2, 2), int), np.array([0, 1, 2])])
def test_margins_must_be_antisymmetric_and_of_the_right_size(margins, request):
    with pytest.raises(InputError, match="margins must be 3 x 3 numbers with y_ij = -y_ji"):
        NoisyMargins(3, VOTER, 1).sample(margins, seeded(request))
