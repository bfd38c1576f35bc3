"""The units of protection: their sensitivities by trying every pair of neighbours, and through the counting itself."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from support import generator

from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import STEPS, PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import PROTECT, Protection


def comparisons(items):
    """Every comparison of two of the items: (left, right, half-wins of the left)."""
    return [(i, j, halves) for i, j in itertools.combinations(range(items), 2) for halves in (0, 1, 2)]


def half_wins(data, items):
    left, right, halves = zip(*data, strict=True) if data else ((), (), ())
    return PairCounts.from_pairs(left, right, halves, items=items).half_wins


def farthest(neighbours, items):
    """The largest l1 and squared l2 distance of half-wins over pairs of data sets."""
    counted = {}
    for data in itertools.chain.from_iterable(neighbours):
        if data not in counted:
            counted[data] = half_wins(data, items)
    changes = np.array([counted[one] - counted[other] for one, other in neighbours])
    return int(np.abs(changes).sum(axis=1).max()), int(np.square(changes).sum(axis=1).max())


def replaced(items, size):
    """Data sets of ``size`` comparisons that differ in the last one."""
    every = comparisons(items)
    return [
        ((*rest, one), (*rest, other))
        for rest in itertools.combinations_with_replacement(every, size - 1)
        for one in every
        for other in every
    ]


def flipped(items, size):
    """Data sets that differ in the outcome of the last comparison, ties among the outcomes."""
    return [(one, other) for one, other in replaced(items, size) if one[-1][:2] == other[-1][:2]]


def voters(items, most):
    """All that one voter can say in at most ``most`` comparisons, against all else that one can."""
    every = comparisons(items)
    said = [said for k in range(most + 1) for said in itertools.combinations_with_replacement(every, k)]
    return list(itertools.product(said, said))


@pytest.mark.parametrize(("items", "size"), [(2, 1), (2, 3), (3, 1), (3, 2), (4, 2)])
def test_one_comparison_and_one_outcome_by_brute_force(items, size):
    for unit, neighbours in (("comparison", replaced(items, size)), ("outcome", flipped(items, size))):
        protection = Protection.of(unit, None)
        assert farthest(neighbours, items) == (4, 8)
        assert (NoisyWins(protection, 1).l1, NoisyWins(protection, 1).l2_squared) == (4, 8)


@pytest.mark.parametrize(("items", "most"), [(2, 1), (2, 4), (3, 1), (3, 2), (4, 2), (3, 3)])
def test_a_voter_by_brute_force(items, most):
    protection = Protection.of("voter", most)
    assert farthest(voters(items, most), items) == (4 * most, 8 * most**2)
    assert (NoisyWins(protection, 1).l1, NoisyWins(protection, 1).l2_squared) == (4 * most, 8 * most**2)


def voter_distance(generator, most, bound):
    """The largest l1 distance between tables that differ in one voter's (up to 12) votes, counted for real."""
    items = ["a", "b", "c"]

    def votes(size):
        one, other = generator.permuted(np.tile(np.arange(3), (size, 1)), axis=1)[:, :2].T
        return [(items[i], items[j]) for i, j in zip(one, other, strict=True)]

    others = votes(20)
    largest = 0
    for _ in range(40):
        counted = []
        for mine in (votes(12), [("a", "b")] * 12 if generator.random() < 0.5 else [("b", "c")] * 12):
            table = pa.table(
                {
                    "winner": [winner for winner, _ in others + mine],
                    "loser": [loser for _, loser in others + mine],
                    "voter": [f"other {row // 2}" for row in range(20)] + ["me"] * 12,
                }
            )
            read = Comparisons.of(table, items=items)
            counted.append((read.bound(most) if bound else read).count().half_wins)
        largest = max(largest, int(np.abs(counted[0] - counted[1]).sum()))
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3])
def test_bounding_keeps_a_voter_within_the_sensitivity(most, request):
    found = voter_distance(generator(request), most, bound=True)
    assert 0 < found <= NoisyWins(Protection.of("voter", most), 1).l1 * STEPS


@pytest.mark.slow
def test_without_bounding_a_voter_exceeds_the_sensitivity(request):
    """The audit above can fail: skipping the bounding is caught."""
    assert voter_distance(generator(request), 1, bound=False) > NoisyWins(Protection.of("voter", 1), 1).l1


@pytest.mark.parametrize("unit", PROTECT)
def test_words(unit):
    protection = Protection.of(unit, 7 if unit == "voter" else None)
    assert protection.design_public == (unit == "outcome")
    assert (protection.protects == "one voter") == (unit == "voter")
    assert protection.steps == (STEPS if unit == "voter" else 1)


@pytest.mark.parametrize(
    ("protect", "most", "sentence"),
    [
        ("vote", None, "protect must be one of comparison, outcome, voter, got 'vote'"),
        (None, None, "protect must be one of comparison, outcome, voter, got nothing"),
        ("outcome", 3, "max_per_voter needs protect='voter', got protect='outcome'"),
        (
            "voter",
            None,
            "protecting voters needs max_per_voter, the number of comparisons of each voter that count fully",
        ),
        ("voter", 0, "max_per_voter must be an integer of at least 1, got 0"),
        ("voter", True, "max_per_voter must be an integer of at least 1, got True"),
        ("voter", 2.0, "max_per_voter must be an integer of at least 1, got 2.0"),
    ],
)
def test_refusals(protect, most, sentence):
    with pytest.raises(InputError) as refusal:
        Protection.of(protect, most)
    assert str(refusal.value) == sentence
