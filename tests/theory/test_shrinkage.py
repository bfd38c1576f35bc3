"""Undoing noise as far as it pays: the formula of the error, the best of all estimates, groups that need each other."""

import numpy as np
import pytest
from support import seeded

from rankdp.errors import Unsupported
from rankdp.mechanisms import mechanism
from rankdp.theory.estimators import pair_estimator, rank_estimator
from rankdp.theory.pair_laws import pairs
from rankdp.theory.shrinkage import agreement, pair_family, rank_family, share_family


def error_of(law, unsigned, target, scores, voters, kappa):
    """The expected squared error by hand, averaged over positions: unanimous voters, or as many of them as agree."""
    mean = law @ scores
    variance = unsigned @ scores**2 - mean**2
    evidence = (1 + kappa * (voters - 1)) / voters
    return float(np.mean(evidence * (mean - target) ** 2 + variance / voters))


@pytest.mark.parametrize(("name", "epsilon"), [("kendall", 1), ("ulam", 2), ("reinsertion", 2), ("optimal", 1)])
@pytest.mark.parametrize("kappa", [0.02, 0.3, 1.0])
def test_no_other_estimate_has_a_smaller_error(name, epsilon, kappa):
    """Against counting, the unbiased estimate, and steps away from the best one in any direction."""
    built, voters = mechanism(name, 5, epsilon), 200
    law = built.pair_law()
    signed, unsigned, target = law.signed(), law.unsigned(), np.full(10, 0.5)
    family = pair_family((built,), (1.0,))
    found = family.choose(voters, kappa)
    scores = found.scores[0][:, 0]
    least = error_of(signed, unsigned, target, scores, voters, kappa)
    assert found.error == pytest.approx(least**0.5, rel=1e-9)
    assert found.bias == pytest.approx(np.abs(signed @ scores - target).max(), abs=1e-12)
    slack = 1.02 * family.price if family.price < 1.25 else 1 + 1e-9
    random = np.random.default_rng(1)
    others = [target, *(scores + 0.1 * random.standard_normal(10) for _ in range(20))]
    assert all(least <= slack * error_of(signed, unsigned, target, other, voters, kappa) for other in others)


def test_the_error_is_that_of_draws(request):
    """Voters who all say the same: the spread of many draws is what was expected of them."""
    built, voters, runs = mechanism("reinsertion", 5, 1), 60, 400
    found = rank_family((built,), (1.0,)).choose(voters)
    orders = built.sample(np.tile(np.arange(5), (voters * runs, 1)), seeded(request))
    landed = np.argsort(orders, axis=1).reshape(runs, voters, 5)
    estimates = found.scores[0][landed, 0].mean(axis=1)
    squared = ((estimates - (np.arange(5) - 2)) ** 2).mean()
    assert squared**0.5 == pytest.approx(found.error, rel=0.08)


def test_many_voters_undo_the_noise_completely():
    built = mechanism("ulam", 5, 2)
    found = pair_family((built,), (1.0,)).choose(1e6, 0.2)
    assert found.unbiased
    first, second = pairs(5)
    np.testing.assert_allclose(found.scores[0][:, 0] + 0.5, pair_estimator(built).values[first, second], atol=1e-10)
    few = pair_family((built,), (1.0,)).choose(20, 0.2)
    assert not few.unbiased
    assert few.error < pair_family((built,), (1.0,)).only_unbiased().error / 20**0.5


def test_closed_forms_are_the_whole_law():
    """Reinsertion: the plane of order and distance, and the line of ranks, hold the best of all functions."""
    built = mechanism("reinsertion", 7, 1)
    plane = pair_family((built,), (1.0,)).choose(50, 0.1)
    law = built.pair_law()
    signed, target = law.signed(), np.full(21, 0.5)
    ridge = 1 / (1 + 0.1 * 49)
    whole = np.linalg.solve(signed.T @ signed + ridge * (np.eye(21) - signed.T @ signed), signed.T @ target)
    np.testing.assert_allclose(plane.scores[0][:, 0], whole, atol=1e-10)
    ranks = rank_family((built,), (1.0,)).only_unbiased()
    np.testing.assert_allclose(ranks.scores[0][:, 0] + 4, rank_estimator(built).values, atol=1e-9)


def test_groups_that_cannot_be_undone_alone_are_undone_together():
    """Tiers forget what happens inside a tier; voters with different cuts tell it all the same."""
    cuts = [mechanism(f"tiers-{cut}-{6 - cut}", 6, 3) for cut in range(1, 6)]
    for built in cuts:
        with pytest.raises(Unsupported, match="no function of synthetic positions has the right mean"):
            rank_family((built,), (1.0,)).only_unbiased()
    shares = (0.3, 0.2, 0.2, 0.2, 0.1)
    found = rank_family(tuple(cuts), shares).only_unbiased()
    together = sum(
        share * weight * built.position_matrix() @ scores[:, 0]
        for share, weight, built, scores in zip(shares, found.weights, cuts, found.scores, strict=True)
    )
    np.testing.assert_allclose(together, np.arange(6) - 2.5, atol=1e-5)
    for built, scores in zip(cuts, found.scores, strict=True):  # the order inside a tier is noise and is not used
        edge = built.sizes[0]
        assert np.ptp(scores[:edge]) < 1e-9
        assert np.ptp(scores[edge:]) < 1e-9


def test_information_of_groups_adds_up():
    """Half the voters at epsilon 4 tell nearly as much beside the other half at epsilon 1/2 as they tell alone."""
    loud, quiet = mechanism("kendall", 5, 4), mechanism("kendall", 5, "1/2")
    both = pair_family((loud, quiet), (0.5, 0.5)).only_unbiased()
    alone = pair_family((loud,), (1.0,)).only_unbiased()
    assert alone.error < both.error < 2**0.5 * alone.error
    assert both.weights[0] > 1.9
    assert both.weights @ [0.5, 0.5] == pytest.approx(1)


def test_shares_of_positions():
    built = mechanism("kendall", 4, 3)
    found = share_family((built,), (1.0,)).only_unbiased()
    np.testing.assert_allclose(built.position_matrix() @ (found.scores[0] + 0.25), np.eye(4), atol=1e-9)


@pytest.mark.parametrize("items", [3, 10])
def test_agreement_is_told_by_how_far_ranks_lie_apart(items):
    """Voters who all agree, and voters who order at random, through a noise that keeps half of a difference."""
    random = np.random.default_rng(2)
    unit = (np.arange(items) - (items - 1) / 2) / np.sqrt((items**2 - 1) / 12)
    voters = 4000
    lazy = np.argsort(random.random((voters, items)), axis=1)
    for share, low, high in ((0.0, 0.0, 0.01), (0.5, 0.5, 1.0)):
        truth = np.where(random.random((voters, 1)) < share, np.arange(items), lazy)
        means = unit[truth].mean(axis=0)
        told = agreement(float(voters * (means**2).sum()), items, voters, max(share, 0.5))
        assert low <= told <= high


@pytest.mark.parametrize(
    ("items", "slope", "voters", "bound"),
    [(3, 0.6, 300, 1.1), (5, 0.27, 2000, 1.08), (10, 0.1, 2000, 1.04), (40, 0.3, 500, 1.04)],
)
@pytest.mark.parametrize("kappa", [0.0, 0.01, 0.03, 0.1, 0.5])
def test_the_choice_follows_the_better_of_counting_and_undoing(items, slope, voters, bound, kappa):
    """Normal noise on the line of ranks: the root of the mean squared error is as near to the better one as can be."""
    random, runs = np.random.default_rng(7), 4000
    noise, evidence = 1 / slope**2 - 1, 1 + kappa * (voters - 1)
    truth = random.standard_normal((runs, items - 1))
    truth *= np.sqrt((items - 1) * evidence / voters) / np.linalg.norm(truth, axis=1, keepdims=True)
    found = truth + np.sqrt(noise / voters) * random.standard_normal(truth.shape)
    squares = voters * slope**2 * (found**2).sum(axis=1) * items / (items - 1)
    told = 1 + (voters - 1) * np.array([agreement(square, items, voters, slope) for square in squares.tolist()])
    chosen = (told / (told + noise))[:, None] * found
    counted, undone, best = (np.sqrt(((each - truth) ** 2).mean()) for each in (slope * found, found, chosen))
    assert best <= bound * min(counted, undone)
