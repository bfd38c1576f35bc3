"""Debiased scores: the formula of their error, the best of all estimates, groups that need each other."""

import numpy as np
import pytest
from support import seeded

from rankdp.errors import Unsupported
from rankdp.mechanisms import mechanism
from rankdp.theory.debiasing import pair_family, rank_family, share_family
from rankdp.theory.estimators import pair_estimator, rank_estimator
from rankdp.theory.pair_laws import pairs


def error_of(law, unsigned, target, scores, voters):
    """The expected squared error by hand, averaged over positions, of unanimous voters."""
    mean = law @ scores
    variance = unsigned @ scores**2 - mean**2
    return float(np.mean((mean - target) ** 2 + variance / voters))


@pytest.mark.parametrize(("name", "epsilon"), [("kendall", 1), ("ulam", 2), ("reinsertion", 2), ("optimal", 1)])
@pytest.mark.parametrize("voters", [5, 40, 200])
def test_no_other_estimate_has_a_smaller_error(name, epsilon, voters):
    """Against counting, the unbiased estimate, and steps away from the best one in any direction."""
    built = mechanism(name, 5, epsilon)
    law = built.pair_law()
    signed, unsigned, target = law.signed(), law.unsigned(), np.full(10, 0.5)
    family = pair_family((built,), (1.0,))
    found = family.pulled(voters)
    scores = found.scores[0][:, 0]
    least = error_of(signed, unsigned, target, scores, voters)
    assert found.error == pytest.approx(least**0.5, rel=1e-9)
    assert found.bias == pytest.approx(np.abs(signed @ scores - target).max(), abs=1e-12)
    slack = 1.02 * family.price if family.price < 1.25 else 1 + 1e-9
    random = np.random.default_rng(1)
    others = [target, *(scores + 0.1 * random.standard_normal(10) for _ in range(20))]
    assert all(least <= slack * error_of(signed, unsigned, target, other, voters) for other in others)


def test_the_error_is_that_of_draws(request):
    """Voters who all say the same: the spread of many draws is what was expected of them."""
    built, voters, runs = mechanism("reinsertion", 5, 1), 60, 400
    found = rank_family((built,), (1.0,)).pulled(voters)
    orders = built.sample(np.tile(np.arange(5), (voters * runs, 1)), seeded(request))
    landed = np.argsort(orders, axis=1).reshape(runs, voters, 5)
    estimates = found.scores[0][landed, 0].mean(axis=1)
    squared = ((estimates - (np.arange(5) - 2)) ** 2).mean()
    assert squared**0.5 == pytest.approx(found.error, rel=0.08)


def test_debiased_scores_are_unbiased_where_that_is_possible():
    built = mechanism("ulam", 5, 2)
    found = pair_family((built,), (1.0,)).debiased(1e6)
    assert found.unbiased
    first, second = pairs(5)
    np.testing.assert_allclose(found.scores[0][:, 0] + 0.5, pair_estimator(built).values[first, second], atol=1e-10)
    assert pair_family((built,), (1.0,)).pulled(1e6).unbiased
    few = pair_family((built,), (1.0,)).pulled(5)
    assert not few.unbiased
    assert few.error < pair_family((built,), (1.0,)).only_unbiased().error / 5**0.5


def test_closed_forms_are_the_whole_law():
    """Reinsertion: the plane of order and distance, and the line of ranks, hold the best of all functions."""
    built = mechanism("reinsertion", 7, 1)
    plane = pair_family((built,), (1.0,)).pulled(6)
    law = built.pair_law()
    signed, target = law.signed(), np.full(21, 0.5)
    ridge = 1 / 6
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
