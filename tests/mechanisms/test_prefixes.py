"""Noisy prefixes, lengths and margins: the loss by trying all ballots, audits, and mutants that they catch."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from tests.support import seeded

from rankdp.audit import audit_samples
from rankdp.data.ballots import Ballots
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.prefixes import NoisyPrefixes, possible
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.rankers.ballot_model import LEVELS

UNITS = ("ballot", "voter")


def every_ballot(m):
    """All strict ballots, complete or not, padded with -1."""
    prefixes = [order for length in range(1, m + 1) for order in permutations(range(m), length)]
    return np.array([[*order, *[-1] * (m - len(order))] for order in prefixes], dtype=np.int32)


def moves(mechanism, unit):
    """For each part what neighbours' counts can differ by, one row a pair of neighbours."""
    ballots = every_ballot(mechanism.candidates)
    single = [mechanism.count(ballots[[row]], np.ones(1, np.int64)) for row in range(len(ballots))]
    added = {part: np.array([counts[part].ravel() for counts in single]) for part in single[0]}
    if unit == "voter":
        return added
    return {part: (rows[:, None] - rows[None]).reshape(-1, rows.shape[1]) for part, rows in added.items()}


def worst_loss(mechanism, unit):
    """The largest sum over parts of |change|/scale: the log-ratio that Laplace noise reaches, exactly."""
    changes = moves(mechanism, unit)
    distances = {part: np.abs(change).sum(axis=1) for part, change in changes.items()}
    rows = zip(*(distances[part].tolist() for part in mechanism.shares), strict=True)
    return max(
        sum(distance / mechanism.scale(part) for part, distance in zip(mechanism.shares, row, strict=True))
        for row in set(rows)
    )


class FreeLevel(NoisyPrefixes):
    """The third level is drawn and not paid for: the other parts share the whole budget."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        paid = 1 - self.shares["third"]
        self.shares = {part: share if part == "third" else share / paid for part, share in self.shares.items()}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_loss_is_epsilon_for_the_worst_neighbours_and_for_none_more(m, unit):
    mechanism = NoisyPrefixes(m, BallotProtection(unit), "0.7")
    assert sum(mechanism.shares.values()) == 1
    assert worst_loss(mechanism, unit) == Fraction(7, 10)
    removal = NoisyPrefixes(m, BallotProtection("voter"), "0.7")  # replacement taken for removal
    assert (worst_loss(removal, unit) > Fraction(7, 10)) == (unit == "ballot")
    if m > 2:
        assert worst_loss(FreeLevel(m, BallotProtection(unit), "0.7"), unit) > Fraction(7, 10)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_gaussian_noise_keeps_the_rho(m, unit):
    mechanism = NoisyPrefixes(m, BallotProtection(unit), 1, "1e-6")
    changes = moves(mechanism, unit)
    worst = sum((change**2).sum(axis=1) / (2 * float(mechanism.scale(part)) ** 2) for part, change in changes.items())
    assert 0.9999 * float(mechanism.rho) < worst.max() <= float(mechanism.rho)
    assert mechanism.guarantee.rho == float(mechanism.rho)


@pytest.mark.parametrize("unit", UNITS)
def test_small_electorates_by_enumeration(unit):
    """All elections of two candidates and up to three ballots: the law's own log-ratio, over every output near them."""
    mechanism = NoisyPrefixes(2, BallotProtection(unit), 1)
    ballots = every_ballot(2)
    reach = np.arange(-12, 13)

    def election(rows):
        counts = mechanism.count(ballots[list(rows)], np.ones(len(rows), np.int64))
        return [(int(value), mechanism.scale(part)) for part in counts for value in counts[part].ravel()]

    def loss(first, second):
        """Coordinates are independent: the worst output is the worst value of each."""
        return sum(
            max(abs(abs(int(value) - b) - abs(int(value) - a)) / scale for value in reach)
            for (a, scale), (b, _) in zip(election(first), election(second), strict=True)
        )

    worst = Fraction(0)
    for others in range(3):
        for kept in combinations_with_replacement(range(len(ballots)), others):
            for row in range(len(ballots)):
                changed = [(*kept, other) for other in range(len(ballots))] if unit == "ballot" else [kept]
                for neighbour in changed:
                    if neighbour:
                        worst = max(worst, loss((*kept, row), neighbour))
    assert worst == 1


def leaning(mechanism, inputs, bits):
    """A sampler of the likelihood ratio between two elections, which is a function of the released counts."""
    counts = [mechanism.count(orders, np.ones(len(orders), np.int64)) for orders in inputs]

    def sampler(which, draws):
        seen = mechanism.sample({part: np.stack([true] * draws) for part, true in counts[which].items()}, bits)
        told = np.zeros(draws)
        for part in seen:
            nearer = np.abs(seen[part] - counts[1][part]) - np.abs(seen[part] - counts[0][part])
            told += nearer.reshape(draws, -1).sum(axis=1) / float(mechanism.scale(part))
        return np.round(told, 6)

    return sampler


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "unit", "counted_as", "caught"),
    [
        (NoisyPrefixes, "ballot", "ballot", False),
        (NoisyPrefixes, "voter", "voter", False),
        (NoisyPrefixes, "ballot", "voter", True),
        (FreeLevel, "voter", "voter", True),
    ],
)
def test_statistical_audit(kind, unit, counted_as, caught, request):
    epsilon = 3
    mechanism = kind(3, BallotProtection(counted_as), epsilon)
    election = np.array([[0, 1, 2], [1, 0, -1], [2, 1, 0]], dtype=np.int32)
    neighbour = election[1:] if unit == "voter" else np.array([[2, 1, -1], *election[1:].tolist()], dtype=np.int32)
    sampler = leaning(mechanism, (election, neighbour), seeded(request))
    found = audit_samples(sampler, [(0, 1)], draws=200_000, claimed_epsilon=epsilon)
    assert (found.epsilon_low > epsilon) == caught, found


def test_counts_of_a_table():
    """Prefixes are cut where a ballot ends; margins are those of ``Ballots``; noise goes where ballots can be."""
    ballots = Ballots.from_orders([["a", "b", "c", "d"], ["b"], ["c", "a"]], items=list("abcd"), weights=[5, 2, 1])
    mechanism = NoisyPrefixes(4, BallotProtection("ballot"), 1)
    counts = mechanism.count(ballots.orders, ballots.weights)
    assert counts["first"].tolist() == [5, 2, 1, 0, 0]
    assert (counts["second"][0, 1], counts["second"][1, 4], counts["second"][2, 0]) == (5, 2, 1)
    assert (counts["third"][0, 1, 2], counts["third"][1, 4, 4], counts["third"][2, 0, 4]) == (5, 2, 1)
    assert counts["lengths"].tolist() == [0, 2, 1, 0, 5]
    assert counts["margins"].tolist() == ballots.margins()[np.triu_indices(4, 1)].tolist()
    for depth, level in enumerate(LEVELS, 1):
        assert counts[level].sum() == 8
        assert counts[level][~possible(4, depth)].sum() == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_possible_prefixes_are_those_of_ballots(depth):
    cells = {tuple(4 if item < 0 else item for item in ballot[:depth]) for ballot in every_ballot(4).tolist()}
    assert {cell for cell in product(range(5), repeat=depth) if possible(4, depth)[cell]} == cells


@pytest.mark.parametrize("delta", [0, "1e-5"])
def test_the_noise_has_the_variance_that_is_stated(delta, request):
    mechanism = NoisyPrefixes(6, BallotProtection("ballot"), 1, delta)
    empty = mechanism.count(np.array([[0, -1, -1, -1, -1, -1]]), np.zeros(1, np.int64))
    bits = seeded(request)
    draws = [mechanism.sample(empty, bits) for _ in range(300)]
    for part, variance in mechanism.noise_variances.items():
        drawn = np.stack([seen[part] for seen in draws])
        impossible = {level: ~possible(6, depth) for depth, level in enumerate(LEVELS, 1)}
        still = impossible.get(part, np.arange(drawn[0].size) < (part == "lengths"))
        assert (drawn[:, still] == 0).all()
        moved = drawn[:, ~still].astype(float)
        assert (moved**2).mean() == pytest.approx(variance, rel=6 * np.sqrt(5 / moved.size))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, BallotProtection("ballot"), 1), "candidates must be an integer from 2 to 50, got 1"),
        ((51, BallotProtection("ballot"), 1), "candidates must be an integer from 2 to 50, got 51"),
        ((3, BallotProtection("ballot"), 0), "epsilon must be a finite number above 0, got 0"),
        ((3, BallotProtection("ballot"), 1, 1), "delta must be at least 0 and below 1, got 1"),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        NoisyPrefixes(*arguments)
