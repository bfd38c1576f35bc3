"""Noise on a tree: what neighbouring streams cost by enumeration, nodes that add up, the law of the noise, a mutant."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support import seeded

from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyTable
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.running_counts import RunningCounts

COMPARISON, OUTCOME = Protection.of("comparison", None), Protection.of("outcome", None)
NONE = Fraction(0)


class Silent:
    """Bits for mechanisms whose noise is taken away."""


def loss(law, before, after, scale=None):
    """The exact log-ratio of the most telling outputs: the sum over nodes of the l1 change over the scale."""
    width = len(before[0])
    moved, sums = 0, [np.zeros((law.levels, width), np.int64) for _ in range(2)]
    for number, both in enumerate(zip(before, after, strict=True), 1):
        level = law.level(number)
        sums = [held + added for held, added in zip(sums, both, strict=True)]
        moved += int(np.abs(sums[0][level] - sums[1][level]).sum())
        for held in sums:
            held[: level + 1] = 0
    return moved / (scale or law.counts.scale)


def half_wins(vote):
    """Of the ordered pairs (0, 1) and (1, 0), or of two items: the same numbers."""
    return np.array({"first": (2, 0), "second": (0, 2), "tie": (1, 1), None: (0, 0)}[vote], np.int64)


@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_no_replaced_comparison_costs_more_than_epsilon(steps):
    """One leaves at any step and another comes at any step, for every base; half the noise would cost more."""
    epsilon = Fraction(3, 2)
    for base in range(2, steps + 2):
        law = RunningCounts(COMPARISON, epsilon, NONE, steps, base)
        worst = NONE
        for a, b, kind in itertools.product(range(steps), range(steps), ("first", "tie")):
            before, after = ([half_wins(None)] * steps for _ in range(2))
            before[a], after[b] = half_wins(kind), half_wins("second")
            worst = max(worst, loss(law, before, after))
        assert epsilon / 2 < worst <= epsilon  # so that half the noise costs more than epsilon


def test_some_stream_costs_all_of_epsilon_and_half_the_noise_fails():
    law = RunningCounts(COMPARISON, Fraction(1), NONE, 9, 8)
    before, after = ([half_wins(None)] * 9 for _ in range(2))
    before[0], after[0] = half_wins("first"), half_wins("second")
    assert loss(law, before, after) == 1
    assert loss(law, before, after, law.counts.scale / 2) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "delta"), [(1, NONE), (7, NONE), (52, NONE), (52, Fraction(1, 10**6)), (200, NONE)])
def test_nodes_add_up_and_are_as_many_as_digits(steps, delta, monkeypatch):
    law = RunningCounts.of(COMPARISON, 1, delta, steps)
    monkeypatch.setattr(NoisyTable, "sample", lambda _, counts, bits: counts)
    added = np.random.default_rng(steps).integers(0, 9, (steps, 6))
    nodes, sums = [], np.zeros((law.levels, 6), np.int64)
    for number in range(1, steps + 1):
        node, sums = law.step(number, added[number - 1], sums, Silent())
        nodes.append(node)
        held = law.nodes(number)
        assert (sum(nodes[node - 1] for node in held) == added[:number].sum(axis=0)).all()
        assert len(held) == sum(law._digits(number))
    others = [RunningCounts(COMPARISON, law.epsilon, delta, steps, base) for base in range(2, steps + 2)]
    assert law.mean_variance == min(other.mean_variance for other in others)


def test_a_year_of_weeks():
    """Variances of a total, mean over the year, against one release: what the documents state."""
    pure, gaussian = (RunningCounts.of(COMPARISON, 1, delta, 52) for delta in (NONE, Fraction(1, 10**6)))
    assert (pure.base, pure.levels, round(pure.mean_variance, 1)) == (8, 2, 25.2)
    assert (gaussian.base, gaussian.levels, round(gaussian.mean_variance, 1)) == (4, 3, 12.3)
    binary = RunningCounts(COMPARISON, Fraction(1), NONE, 52, 2)
    assert binary.mean_variance / pure.mean_variance == pytest.approx(3.9, abs=0.05)


@pytest.mark.parametrize("protection", [COMPARISON, OUTCOME, Protection.of("voter", 3)], ids=lambda held: held.unit)
def test_the_noise_of_nodes_has_its_variance(protection, request):
    """And fails for half the noise."""
    law, bits = RunningCounts.of(protection, 1, NONE, 52), seeded(request)
    nodes = np.array([
        law.step(number, np.zeros(12, np.int64), np.zeros((law.levels, 12), np.int64), bits)[0]
        for number in range(1, 53)
        for _ in range(10)
    ])  # fmt: skip
    expected = (law.counts.noise_deviation) ** 2
    error = expected * np.sqrt(5 / nodes.size)  # a Laplace variable has kurtosis 6
    assert abs(nodes.var() - expected) < 4 * error
    assert abs((nodes / 2).var() - expected) > 4 * error
    assert law.counts.scale == 4 * protection.moved * protection.steps * law.levels


def test_refusals():
    with pytest.raises(InputError, match="boards must be an integer from 1 to"):
        RunningCounts.of(COMPARISON, 1, NONE, 0)
