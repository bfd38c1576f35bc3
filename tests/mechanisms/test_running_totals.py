"""Running totals: their noise is enough for every neighbouring stream, no more than needed, and small enough."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rankdp.audit import audit_samples
from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.running_totals import SHARES, RunningTotals, counted, laplace_deviation
from rankdp.privacy.bits import SeededBits

ONE, TWO = Protection.of("voter", 1), Protection.of("voter", 2)
ITEMS = 3
SAID = [(a, b, 2) for a in range(ITEMS) for b in range(ITEMS) if a != b] + [(0, 1, 1), (1, 2, 1)]


def stream(votes, steps):
    """x_1, ..., x_T of (step, (winner, loser, half-wins of the winner))."""
    added = []
    for step in range(1, steps + 1):
        said = [vote for when, vote in votes if when == step]
        columns = zip(*said, strict=True) if said else ([], [], [])
        added.append(counted(PairCounts.from_pairs(*columns, items=ITEMS)))
    return added


def scales(law, items=ITEMS):
    return np.array([law.scale("count"), *(law.scale(kind) for kind in ("differences", "degrees") * items)])


class Silent(RunningTotals):
    """The same steps without noise."""

    def noise(self, items, bits):
        return np.zeros(1 + 2 * items, dtype=np.int64)


def true_nodes(law, added):
    silent, nodes = Silent(law.protection, law.epsilon, law.steps, law.block), []
    block = silent.noise(ITEMS, None)
    for number, x in enumerate(added, 1):
        node, block = silent.step(number, x, block, None)
        nodes.append(node)
    return nodes


def loss(law, first, second):
    """The worst log-ratio of two sequences of nodes under the noise of the law, exactly."""
    return sum(
        (
            abs(int(a - b)) / scale
            for x, y in zip(first, second, strict=True)
            for a, b, scale in zip(x, y, scales(law), strict=True)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(("block", "steps"), [(1, 3), (2, 4), (3, 6)])
def test_the_loss_over_all_neighbouring_streams_is_epsilon_and_is_reached(block, steps):
    law = RunningTotals(ONE, Fraction(7, 5), steps, block)
    others = [(1, (0, 1, 2)), (2, (1, 2, 2))]
    one_vote = [[]] + [[(step, vote)] for step in range(1, steps + 1) for vote in SAID]
    nodes = [true_nodes(law, stream([*others, *votes], steps)) for votes in one_vote]
    worst = max(loss(law, a, b) for a, b in itertools.combinations(nodes, 2))
    assert worst == law.epsilon


def test_two_votes_of_a_voter_in_any_steps_stay_within_epsilon():
    law = RunningTotals(TWO, Fraction(1), 4, 2)
    random = np.random.default_rng(3)
    for _ in range(300):
        sides = [
            [(int(random.integers(1, 5)), SAID[random.integers(len(SAID))]) for _ in range(random.integers(3))]
            for _ in "ab"
        ]
        assert loss(law, *(true_nodes(law, stream(side, 4)) for side in sides)) <= law.epsilon


def test_a_copy_of_the_state_taken_once_adds_nothing_to_the_loss():
    """What a thief at rest after step t sees: nodes of single steps, the open sum, and what a block gained since."""
    law = RunningTotals(ONE, Fraction(1), 6, 3)

    def view(added, taken):
        seen, block = [], np.zeros(1 + 2 * ITEMS, dtype=np.int64)
        for number, x in enumerate(added, 1):
            block = block + x
            if not law.closes(number):
                seen.append(x)
            if number == taken or law.closes(number):
                seen.append(block)  # the copy has the noise that the sum began with, what came since has fresh noise
                block = np.zeros_like(block)
        return seen

    votes = [[]] + [[(step, vote)] for step in range(1, 7) for vote in SAID[:3]]
    for taken in range(1, 7):
        views = [view(stream(side, 6), taken) for side in votes]
        assert max(loss(law, a, b) for a, b in itertools.combinations(views, 2)) == law.epsilon


def test_steps_add_noise_of_the_stated_scales_and_blocks_twice():
    law, bits = RunningTotals(ONE, Fraction(2), 40, 4), SeededBits(5)
    items = 4000
    x = np.arange(1 + 2 * items)
    block, nodes = law.noise(items, bits), []
    for number in range(1, 5):
        node, block = law.step(number, x, block, bits)
        nodes.append(node)
    for node, factor, draws in ((nodes[0], 1, 1), (nodes[3], 4, 2), (block, 0, 1)):
        left = node - factor * x
        for kind, part in (("differences", left[1::2]), ("degrees", left[2::2])):
            assert part.std() == pytest.approx(laplace_deviation(law.scale(kind)) * draws**0.5, rel=0.06)
            assert abs(part.mean()) < 5 * part.std() / items**0.5


def test_nodes_add_up_to_the_total_and_their_draws_are_counted():
    for law in (RunningTotals(ONE, Fraction(1), 30), RunningTotals(ONE, Fraction(1), 30, 7)):
        covered = {step: range(step - law.block + 1, step + 1) if law.closes(step) else [step] for step in range(1, 31)}
        for step in range(1, 31):
            assert sorted(s for node in law.nodes(step) for s in covered[node]) == list(range(1, step + 1))
            assert law.draws(step) == sum(2 if law.closes(node) else 1 for node in law.nodes(step))
        assert law.mean_deviation() == pytest.approx(
            np.mean([law.draws(step) ** 0.5 for step in range(1, 31)]) * laplace_deviation(law.scale("differences"))
        )


@pytest.mark.parametrize(("boards", "bar"), [(52, 8), (1000, 25)])
def test_noise_on_differences_against_a_budget_split_among_the_boards(boards, bar):
    for c in (1, 10):
        protection = Protection.of("voter", c)
        split = laplace_deviation(4 * c * boards / Fraction(1))
        assert RunningTotals.of(protection, 1, boards).mean_deviation() <= split / bar
        unlimited = replace(RunningTotals.of(protection, 1, None), steps=boards)
        assert unlimited.mean_deviation() <= split / bar


def test_shares_and_refusals():
    assert sum(SHARES.values()) == 1
    with pytest.raises(InputError, match="steps must be an integer from 1 to"):
        RunningTotals.of(ONE, 1, 0)
    with pytest.raises(InputError, match="epsilon is too small"):
        RunningTotals.of(ONE, "1e-15", 52)
    with pytest.raises(InputError, match="epsilon must be a finite number above 0"):
        RunningTotals.of(ONE, 0, 52)


class HalfScale(RunningTotals):
    """A factor of 2 forgotten in the sensitivity."""

    def scale(self, kind):
        return super().scale(kind) / 2


@pytest.mark.parametrize(
    ("kind", "block", "caught"), [(RunningTotals, 1, False), (RunningTotals, 2, False), (HalfScale, 1, True)]
)
def test_the_statistical_audit_passes_the_law_and_catches_half_its_noise(kind, block, caught):
    law, bits = kind(Protection.of("voter", 20), Fraction(2), 4, block), SeededBits(11)
    before, after = [(1, (0, 1, 2))] * 20, [(1, (1, 0, 2))] * 20

    def sampler(votes, count):
        """Differences of the two items, of many streams drawn at once as one stream with as many times the items."""
        sums, columns = law.noise(ITEMS * count, bits), []
        for number, x in enumerate(stream(votes, 4), 1):
            node, sums = law.step(number, np.concatenate([x[:1], np.tile(x[1:], count)]), sums, bits)
            columns.append(node[1:].reshape(count, -1)[:, [0, 2]])
        return np.concatenate(columns[:block], axis=1).astype(np.float64)

    audit = audit_samples(
        sampler, [(before, after)], draws=20_000, claimed_epsilon=law.epsilon, name="totals", describe=str
    )
    assert audit.holds is not caught
