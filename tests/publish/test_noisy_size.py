"""The number of comparisons, where it is secret: rough where that is enough, else fine, and never more than is said.

At epsilon 100 with one comparison a voter the rough number has discrete Laplace noise of epsilon 2, the fine one of
epsilon 5, and 60 comparisons are just enough for the rough one: small numbers, whose law can be written down.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import generator

from rankdp.mechanisms.votes.noisy_counts import NoisyTotal
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.publish.vote_scores import count_cost, size

ITEMS = ("a", "b", "c")
EPSILON = Fraction(100)
VOTER = Protection("voter", 1)
REACH = np.arange(-40, 41)


def laplace(epsilon):
    """The chances of discrete Laplace noise at REACH."""
    return np.exp(-epsilon * np.abs(REACH)) * math.tanh(epsilon / 2)


def law(total, rough=2.0, fine=5.0):
    """The chance of each (share in percent, number) that ``size`` may say, by the definition of the rough number."""
    kept = math.sinh(rough / 2) ** 2 / math.sinh(fine / 2) ** 2
    deviation = math.sqrt(NoisyTotal(VOTER, EPSILON, share=Fraction(1, 50)).count_variance)
    fine_law, added = laplace(fine), kept * (REACH == 0) + (1 - kept) * laplace(rough)
    chances = {}
    for noise, chance in zip(REACH.tolist(), fine_law, strict=True):
        for more, also in zip(REACH.tolist(), added, strict=True):
            enough = deviation <= 0.01 * (total + noise + more)
            said = (2, total + noise + more) if enough else (5, total + noise)
            chances[said] = chances.get(said, 0) + chance * also
    return chances


def loss(total, **noise):
    """The largest log-ratio between this table and one with a comparison more, less what the case may cost."""
    one, other = law(total, **noise), law(total + 1, **noise)
    likely = [said for said in one if min(one[said], other.get(said, 0)) > 1e-9]
    return max(abs(math.log(one[said] / other[said])) - said[0] for said in likely)


@pytest.mark.parametrize("total", range(56, 66))
def test_each_case_costs_its_share(total):
    assert loss(total) <= 1e-6


@pytest.mark.parametrize("halved", [{"rough": 4.0}, {"rough": 4.0, "fine": 10.0}])
def test_half_the_noise_is_caught(halved):
    assert max(loss(total, **halved) for total in range(56, 66)) > 1


def test_draws_follow_the_law(request):
    random, draws = generator(request), 4_000
    bits = SeededBits(int(random.integers(2**40)))
    found = [size(ITEMS, 60, VOTER, EPSILON, bits) for _ in range(draws)]
    said = [(int(spent), public.comparisons) for public, spent in found]
    expected = {case: draws * chance for case, chance in law(60).items() if draws * chance >= 5}
    counted = [said.count(case) for case in expected]
    rest = [draws - sum(counted)], [draws - sum(expected.values())]
    statistic = sum((c - e) ** 2 / e for c, e in zip([*counted, *rest[0]], [*expected.values(), *rest[1]], strict=True))
    assert stats.chi2.sf(statistic, len(expected)) > 1e-4


@pytest.mark.parametrize(
    ("total", "gradual", "share"), [(100, True, "1/20"), (10**6, True, "1/50"), (10**6, False, "1/20")]
)
def test_many_comparisons_cost_less(total, gradual, share):
    protection = Protection("voter", 10)
    public, spent = size(ITEMS, total, protection, Fraction(1), SeededBits(1), gradual=gradual)
    assert spent == Fraction(share)
    assert public.comparisons == pytest.approx(total, abs=10 / float(spent) * 8)
    assert count_cost(protection, Fraction(1)) == Fraction(1, 20)
    if gradual:
        assert count_cost(protection, Fraction(1), total) == spent


def test_a_public_number_costs_nothing():
    public, spent = size(ITEMS, 77, Protection.of("comparison", None), Fraction(1), SeededBits(1))
    assert (public.comparisons, spent) == (77, 0)
