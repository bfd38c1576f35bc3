"""Permute-and-flip and top sets: laws, epsilon and zCDP over all neighbours of small electorates, regret."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, seeded

from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.selection import PermuteAndFlip, TopSet

BALLOT, VOTER = BallotProtection("ballot"), BallotProtection("voter")
units = pytest.mark.parametrize("protection", [BALLOT, VOTER], ids=lambda protection: protection.unit)
ITEMS = 3


def electorates(most):
    """Votes for three items by up to ``most`` ballots."""
    return [np.array(votes) for votes in itertools.product(range(most + 1), repeat=ITEMS) if sum(votes) <= most]


def neighbours(protection, most=5):
    """Plurality counts that are neighbours."""
    for one, other in itertools.product(electorates(most), repeat=2):
        change = other - one
        if protection is VOTER and sorted(change) in ([0, 0, 1], [-1, 0, 0]):
            yield one, other
        if protection is BALLOT and sorted(change) == [-1, 0, 1]:
            yield one, other


def set_law(mechanism, scores):
    """By the definition of the loss, over all sets."""
    losses = []
    for held in itertools.combinations(range(len(scores)), mechanism.k):
        outside = np.delete(scores, held)
        losses.append(max(0, outside.max() - scores[list(held)].min()) if len(outside) else 0)
    weights = np.exp(-float(mechanism.epsilon) / (2 * mechanism.spread) * np.array(losses))
    return weights / weights.sum()


def law_of(mechanism, scores):
    return mechanism.probabilities(scores) if isinstance(mechanism, PermuteAndFlip) else set_law(mechanism, scores)


def worst_log_ratio(mechanism, protection):
    return max(np.log(law_of(mechanism, one) / law_of(mechanism, other)).max() for one, other in neighbours(protection))


def realised_rho(mechanism, protection):
    """The largest Rényi divergence over its order, of all neighbours and many orders."""
    worst = 0.0
    for one, other in neighbours(protection):
        first, second = law_of(mechanism, one), law_of(mechanism, other)
        for order in (1.0001, 1.1, 1.5, 2, 4, 16, 64):
            divergence = math.log((first**order * second ** (1 - order)).sum()) / (order - 1)
            worst = max(worst, divergence / order)
    return worst


def mechanisms(protection, epsilon, spread=None):
    spread = spread or protection.moved
    return [
        PermuteAndFlip(protection, spread, epsilon),
        *(TopSet(protection, spread, epsilon, k) for k in range(1, ITEMS + 1)),
    ]


@pytest.mark.slow
@units
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(2)], ids=str)
def test_epsilon_over_all_neighbouring_elections(protection, epsilon):
    realised = [worst_log_ratio(mechanism, protection) for mechanism in mechanisms(protection, epsilon)]
    assert max(realised) <= epsilon + 1e-9
    assert realised[0] > 0.8 * epsilon
    assert worst_log_ratio(mechanisms(protection, 2 * epsilon)[0], protection) > epsilon + 1e-9  # half the noise
    taken_for_removal = PermuteAndFlip(VOTER, VOTER.moved, epsilon)
    assert (worst_log_ratio(taken_for_removal, protection) > epsilon + 1e-9) == (protection is BALLOT)


@pytest.mark.parametrize(("epsilon", "holds"), [("0.2", True), ("0.4", False)])
def test_half_the_noise_of_a_set_is_caught(epsilon, holds):
    """One ballot that votes for three; votes for one candidate would hide the factor."""
    one, other = np.array([1, 0, 1, 0, 0, 1]), np.array([1, 0, 2, 0, 1, 2])
    law = TopSet(VOTER, 1, epsilon, 3)
    worst = np.abs(np.log(set_law(law, one) / set_law(law, other))).max()
    assert (worst <= 0.2) == holds


@pytest.mark.slow
@units
@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_zcdp_over_all_neighbouring_elections(protection, epsilon):
    """Permute-and-flip has eps^2/2 : the exponential mechanism's eps^2/8 is a false claim."""
    for mechanism in mechanisms(protection, epsilon):
        assert realised_rho(mechanism, protection) <= mechanism.rho
        assert mechanism.guarantee.rho >= mechanism.rho
    flip, top = PermuteAndFlip(protection, protection.moved, epsilon), TopSet(protection, 1, epsilon, 1)
    assert flip.rho == flip.epsilon**2 / 2
    assert top.rho == top.epsilon**2 / 8
    assert realised_rho(flip, protection) > 1.5 * float(flip.epsilon**2) / 8


@pytest.mark.slow
@pytest.mark.parametrize("scores", [(5, 3, 3, 0), (0, 900, 1, 2)], ids=str)
def test_the_samplers_draw_their_laws(scores, request):
    scores, bits = np.array(scores), seeded(request)
    flip = PermuteAndFlip(VOTER, 1, "0.4")
    assert flip.probabilities(scores).sum() == pytest.approx(1)
    if len(scores) > 1 and scores.max() < 100:
        assert_law([flip.sample(scores, bits) for _ in range(5000)], flip.probabilities(scores))
    else:
        assert {flip.sample(scores, bits) for _ in range(100)} == {1}
    top = TopSet(VOTER, 1, "0.8", 2)
    cells = {sequence: cell for cell, sequence in enumerate(itertools.combinations(range(len(scores)), 2))}
    drawn = [cells[tuple(top.sample(scores, bits).tolist())] for _ in range(2000)]
    assert_law(drawn, set_law(top, scores))


@pytest.mark.slow
def test_a_set_of_five(request):
    """Many sets between the ends: the counts of sets are those of the definition."""
    scores, top = np.array([9, 7, 7, 4, 2, 1, 0, 0]), TopSet(VOTER, 2, 1, 5)
    cells = {held: cell for cell, held in enumerate(itertools.combinations(range(8), 5))}
    bits = seeded(request)
    assert_law([cells[tuple(top.sample(scores, bits).tolist())] for _ in range(500)], set_law(top, scores))


def test_borda_scores_of_all_ballots():
    """Replace any ballot by any other: no probability of a set changes by more than e^eps."""
    orders = list(itertools.permutations(range(4)))
    points = {order: 3 - 2 * np.argsort(order) for order in orders}
    top, others = TopSet(BALLOT, 4 * 3, 1, 2), points[0, 1, 2, 3] + points[1, 0, 3, 2]
    laws = np.log([set_law(top, others + points[order]) for order in orders])
    assert (laws[:, None] - laws[None]).max() <= 1 + 1e-9


def test_permute_and_flip_is_the_integral_of_its_definition(request):
    """All orders of the items, flip by flip."""
    scores, flip = np.array([4, 2, 2, 1]), PermuteAndFlip(VOTER, 1, 1)
    taken = np.exp(scores - scores.max())
    law = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1 / math.factorial(4)
        for item in order:
            law[item] += left * taken[item]
            left *= 1 - taken[item]
    assert flip.probabilities(scores) == pytest.approx(law)


def test_regret_at_plurality():
    """100 ballots, first places that fall like 1/rank over 10 items, epsilon 0.2, voters protected."""
    scores = np.round(100 / np.arange(1, 11) / sum(1 / np.arange(1, 11))).astype(int)
    assert scores.sum() == 100
    gaps = scores.max() - scores
    flip = PermuteAndFlip(VOTER, VOTER.moved, "0.2").probabilities(scores) @ gaps
    exponential = np.exp(-0.2 * gaps) / np.exp(-0.2 * gaps).sum() @ gaps
    assert flip <= 0.6 * exponential


def test_500_items(request):
    scores = np.arange(500)[::-1] * 1000
    bits = seeded(request)
    assert PermuteAndFlip(BALLOT, 2, 1).sample(scores, bits) == 0
    assert TopSet(BALLOT, 2, 1, 20).sample(scores, bits).tolist() == list(range(20))


def test_refusals(request):
    with pytest.raises(InputError, match="k must be an integer from 1 to 2, got 3"):
        TopSet(BALLOT, 2, 1, 3).sample(np.array([1, 2]), seeded(request))
    with pytest.raises(InputError, match="epsilon must be a finite number above 0"):
        PermuteAndFlip(BALLOT, 2, 0)
    with pytest.raises(InputError, match="spread must be an integer of at least 1, got 0"):
        PermuteAndFlip(BALLOT, 0, 1)
