"""Noisy prefixes, lengths and margins: the loss by trying all ballots, audits, and mutants that they catch."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from tests.support import seeded

from rankdp.audit import audit_samples
from rankdp.data.ballots import Ballots
from rankdp.errors import InputError
from rankdp.mechanisms.ballots.margins import NoisyMargins
from rankdp.mechanisms.ballots.prefixes import NoisyPrefixes, possible
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.rankers.ballot_model import LEVELS

UNITS = ("ballot", "voter")


def every_ballot(m):
    """All strict ballots, complete or not."""
    names = [str(item) for item in range(m)]
    orders = [order for length in range(1, m + 1) for order in permutations(names, length)]
    return [Ballots.from_orders([order], items=names) for order in orders]


def moves(mechanism, unit):
    """For each part what neighbours' counts can differ by, one row a pair of neighbours."""
    single = [mechanism.count(ballot) for ballot in every_ballot(mechanism.candidates)]
    added = {part: np.array([counts[part] for counts in single]) for part in single[0]}
    if unit == "voter":
        return added
    return {part: (rows[:, None] - rows[None]).reshape(-1, *rows.shape[1:]) for part, rows in added.items()}


def cyclic(margins):
    """The integers that ``NoisyMargins`` puts noise on beside the scores, of the pairs above the diagonal."""
    scores, (first, second) = margins.sum(axis=2), np.triu_indices(margins.shape[1], 1)
    return margins.shape[1] * margins[:, first, second] - (scores[:, first] - scores[:, second])


def losses(mechanism, unit):
    """For each pair of neighbours the log-ratio that the noise reaches, exactly: distances over scales.

    The norm of scores is that of the permutohedron: the largest sum of k entries over k (m - k).
    """
    m, changes = mechanism.candidates, moves(mechanism, unit)
    total = [Fraction(0)] * len(changes["first"])
    for part, change in changes.items():
        if part != "margins":
            distances = np.abs(change).reshape(len(change), -1).sum(axis=1)
            total = [sofar + int(l1) / mechanism.scale(part) for sofar, l1 in zip(total, distances, strict=True)]
    sums = np.cumsum(-np.sort(-changes["margins"].sum(axis=2), axis=1), axis=1)[:, :-1]
    scores, cycles = mechanism.margins.scores, np.abs(cyclic(changes["margins"])).sum(axis=1)
    norms = [max(Fraction(int(top), k * (m - k)) for k, top in enumerate(row, 1)) for row in sums]
    return [
        sofar + norm * scores.rate * scores.grid + (int(l1) / mechanism.margins.scale if m > 2 else 0)
        for sofar, norm, l1 in zip(total, norms, cycles, strict=True)
    ]


class FreeLevel(NoisyPrefixes):
    """First preferences are drawn and not paid for: the other parts share the whole budget."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        paid = 1 - self.shares["first"]
        self.shares = {part: share if part == "first" else share / paid for part, share in self.shares.items()}
        self.margins = NoisyMargins(*arguments, spent=self.shares["margins"])


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_loss_is_epsilon_for_the_worst_neighbours_and_for_none_more(m, unit):
    mechanism = NoisyPrefixes(m, BallotProtection(unit), "0.7")
    assert sum(mechanism.shares.values()) == 1
    assert max(losses(mechanism, unit)) == Fraction(7, 10)
    removal = NoisyPrefixes(m, BallotProtection("voter"), "0.7")  # replacement taken for removal
    assert (max(losses(removal, unit)) > Fraction(7, 10)) == (unit == "ballot")
    assert max(losses(FreeLevel(m, BallotProtection(unit), "0.7", 0), unit)) > Fraction(7, 10)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_gaussian_noise_keeps_the_rho(m, unit):
    mechanism = NoisyPrefixes(m, BallotProtection(unit), 1, "1e-6")
    changes = moves(mechanism, unit)
    scores, margins = mechanism.margins.scores, changes.pop("margins")
    spent = (margins.sum(axis=2) ** 2).sum(axis=1) * scores.grid**2 / (2 * float(scores.sigma) ** 2)
    if m > 2:
        spent = spent + (cyclic(margins) ** 2).sum(axis=1) / (2 * float(mechanism.margins.scale) ** 2)
    for part, change in changes.items():
        spent = spent + (change**2).reshape(len(change), -1).sum(axis=1) / (2 * float(mechanism.scale(part)) ** 2)
    worst = spent
    assert 0.9999 * float(mechanism.rho) < worst.max() <= float(mechanism.rho)
    assert mechanism.guarantee.rho == float(mechanism.rho)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_small_electorates_by_enumeration(unit):
    """All elections of two candidates and up to three ballots: the log-ratio over every output near them."""
    mechanism = NoisyPrefixes(2, BallotProtection(unit), 1)
    scales = {part: mechanism.scale(part) for part in ("first", "second", "lengths")}
    # two candidates have one margin, and K-norm noise on its scores, one the other's negative, is Laplace noise
    scales["margins"] = 2 / (mechanism.margins.scores.rate * mechanism.margins.scores.grid)
    ballots = every_ballot(2)

    def election(rows):
        counts = [mechanism.count(ballots[row]) for row in rows]
        return {part: sum(count[part].ravel() for count in counts) for part in scales}

    def loss(first, second):
        """Coordinates are independent: the worst output is the worst value of each."""
        return sum(
            max(abs(abs(value - int(b)) - abs(value - int(a))) / scales[part] for value in range(-8, 9))
            for part in scales
            for a, b in zip(election(first)[part], election(second)[part], strict=True)
        )

    worst = Fraction(0)
    for others in range(1, 3):
        for kept in combinations_with_replacement(range(len(ballots)), others):
            for row in range(len(ballots)):
                changed = [(*kept, other) for other in range(len(ballots))] if unit == "ballot" else [kept]
                worst = max([worst, *(loss((*kept, row), neighbour) for neighbour in changed)])
    assert worst == 1


def leaning(mechanism, elections, bits):
    """A sampler of how much the released counts lean to the first of two elections of two candidates."""
    counts = [mechanism.count(election) for election in elections]
    scores = mechanism.margins.scores
    scales = {part: float(mechanism.scale(part)) for part in ("first", "second", "lengths")}
    scales["margins"] = 2 / float(scores.rate * scores.grid)  # of two entries, each the other's negative

    def sampler(which, draws):
        told = np.zeros(draws)
        for part, scale in scales.items():
            noise = mechanism.margins.noise(draws, bits) if part == "margins" else mechanism.noise(part, draws, bits)
            seen = counts[which][part] + noise
            nearer = np.abs(seen - counts[1][part]) - np.abs(seen - counts[0][part])
            told += nearer.reshape(draws, -1).sum(axis=1) / scale
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
    mechanism = kind(2, BallotProtection(counted_as), epsilon, 0)
    election = Ballots.from_orders([["a", "b"], ["b"], ["b", "a"]], items=["a", "b"])
    others = [["b"], ["b", "a"]] if unit == "voter" else [["b"], ["b"], ["b", "a"]]
    neighbour = Ballots.from_orders(others, items=["a", "b"])
    sampler = leaning(mechanism, (election, neighbour), seeded(request))
    found = audit_samples(sampler, [(0, 1)], draws=200_000, claimed_epsilon=epsilon)
    assert (found.epsilon_low > epsilon) == caught, found


def test_counts_of_a_table():
    """Prefixes are cut where a ballot ends; margins are those of ``Ballots``; noise goes where ballots can be."""
    ballots = Ballots.from_orders([["a", "b", "c", "d"], ["b"], ["c", "a"]], items=list("abcd"), weights=[5, 2, 1])
    mechanism = NoisyPrefixes(4, BallotProtection("ballot"), 1)
    counts = mechanism.count(ballots)
    assert counts["first"].tolist() == [5, 2, 1, 0, 0]
    assert (counts["second"][0, 1], counts["second"][1, 4], counts["second"][2, 0]) == (5, 2, 1)
    assert (counts["third"][0, 1, 2], counts["third"][1, 4, 4], counts["third"][2, 0, 4]) == (5, 2, 1)
    assert counts["lengths"].tolist() == [0, 2, 1, 0, 5]
    assert counts["margins"].tolist() == ballots.margins().tolist()
    for depth, level in enumerate(LEVELS, 1):
        assert counts[level].sum() == 8
        assert counts[level][~possible(4, depth)].sum() == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_possible_prefixes_are_those_of_ballots(depth):
    orders = [ballot.orders[0, :depth].tolist() for ballot in every_ballot(4)]
    cells = {tuple(4 if item < 0 else item for item in order) for order in orders}
    assert {cell for cell in product(range(5), repeat=depth) if possible(4, depth)[cell]} == cells


@pytest.mark.parametrize("delta", [0, "1e-5"])
def test_the_noise_has_the_variance_that_is_stated(delta, request):
    mechanism = NoisyPrefixes(6, BallotProtection("ballot"), 1, delta)
    bits = seeded(request)
    still = {level: ~possible(6, depth) for depth, level in enumerate(LEVELS, 1)} | {"lengths": np.arange(7) == 0}
    for part, none in still.items():
        drawn = mechanism.noise(part, 300, bits).astype(float)
        assert (drawn[:, none] == 0).all()
        moved = drawn[:, ~none]
        assert (moved**2).mean() == pytest.approx(mechanism.noise_variances[part], rel=6 * np.sqrt(5 / moved.size))
    margins = NoisyMargins(6, BallotProtection("ballot"), 1, delta, mechanism.shares["margins"])
    assert mechanism.noise_variances["margins"] == margins.noise_variance


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
