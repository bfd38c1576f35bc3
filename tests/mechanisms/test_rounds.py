"""Noisy votes: the scale of the noise, and one budget for all rounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rankdp.data.ballots import SHARES
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.ballots.rounds import NoisyNumber, NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.zcdp import rho_of
from rankdp.publish.ballot_rules import borda_noise, margin_noise, number_share

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("unit", "k", "rounds", "moved"), [("voter", 1, 11, 1), ("ballot", 1, 11, 2), ("ballot", 3, 1, 6)]
)
def test_the_noise_pays_for_every_round(unit, k, rounds, moved):
    epsilon = Fraction(1, 2)
    votes = NoisyVotes(12, BallotProtection(unit), epsilon, k=k, rounds=rounds)
    assert sum(moved * SHARES / votes.scale(number) for number in range(rounds)) == epsilon
    assert votes.guarantee == Guarantee(BallotProtection(unit).protects, epsilon, local=False)
    gaussian = NoisyVotes(12, BallotProtection(unit), epsilon, DELTA, k=k, rounds=rounds)
    rho = rho_of(epsilon, DELTA)
    assert gaussian.guarantee.rho == float(rho)
    spent = sum(moved * SHARES**2 / (2 * gaussian.scale(number) ** 2) for number in range(rounds))
    assert rho * Fraction(999, 1000) < spent <= rho


def test_the_split_over_rounds_makes_the_mean_error_of_a_tally_small():
    votes = NoisyVotes(12, BallotProtection("voter"), 1, rounds=11)
    standing = range(12, 1, -1)
    mean = sum(many * votes.scale(number) / SHARES for number, many in enumerate(standing)) / sum(standing)
    assert float(mean) == pytest.approx(
        sum(many**0.5 for many in standing) ** 2 / sum(standing), rel=1e-3
    )  # 10.4; even: 11


@pytest.mark.parametrize("delta", [0, DELTA])
def test_the_stated_variance_is_that_of_the_draws(delta):
    votes = NoisyVotes(5, BallotProtection("voter"), 1, delta, rounds=4)
    draws = votes.sample(np.full(40_000, 7 * SHARES), SeededBits(1)) / SHARES - 7
    assert abs(draws.mean()) < 5 * np.sqrt(votes.noise_variance() / len(draws))
    assert draws.var() == pytest.approx(votes.noise_variance(), rel=0.05)


@pytest.mark.parametrize("make", [borda_noise, margin_noise])
def test_the_number_of_ballots_and_the_points_share_one_budget(make):
    voter, epsilon = BallotProtection("voter"), Fraction(1, 2)
    share = number_share(voter)
    beside = make(5, voter, epsilon, Fraction(0))
    spent = beside.share if make is borda_noise else beside.spent
    assert spent + share == 1
    assert number_share(BallotProtection("ballot")) == 0
    number = NoisyNumber(voter, epsilon, share=share)
    assert 1 / number.scale == share * epsilon  # one ballot moves the number by 1: its loss is 1/scale
    assert number.guarantee == beside.guarantee
    draws = number.noise(40_000, SeededBits(1))
    ratio = np.mean(draws == 0) / np.mean(np.abs(draws) == 40) * 2
    assert np.log(ratio) == pytest.approx(40 * float(share * epsilon), abs=0.25)
    gaussian = NoisyNumber(voter, epsilon, DELTA, share)
    assert 1 / (2 * gaussian.scale**2) <= share * rho_of(epsilon, DELTA)


def test_a_delta_of_1_is_refused():
    with pytest.raises(InputError, match="delta must be at least 0 and below 1, got 1"):
        NoisyVotes(5, BallotProtection("voter"), 1, 1)
