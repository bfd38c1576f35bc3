"""Designs that depend on the strengths: derivatives, and how likely each closeness is."""

import numpy as np
import pytest
from support import generator

from rankdp.data.counts import PairCounts
from rankdp.privacy.bits import SeededBits
from rankdp.publish.possible_designs import information, pull_slopes
from rankdp.publish.rank import BoardRequest, CountedVotes
from rankdp.rankers.expected_design import CLOSENESS, closeness_by_size, design_of_degrees, kernel_of_gaps
from rankdp.rankers.links import LINKS, LOGISTIC


@pytest.mark.parametrize("closeness", [0.0, 1.5, -1.0])
@pytest.mark.parametrize("link", list(LINKS.values()), ids=list(LINKS))
def test_slopes_are_the_derivative_along_with_the_design(link, closeness, request):
    random = generator(request)
    strengths, base, degrees = random.uniform(-1, 1, 7), random.normal(size=7), random.uniform(50, 200, 7)

    def expected(at):
        design = design_of_degrees(degrees, kernel_of_gaps(at, closeness), 1e-13)
        return pull_slopes(design, at, base, closeness, link)

    steps = 1e-5 * np.eye(7)
    found = [(expected(strengths + step)[0] - expected(strengths - step)[0]) / 2e-5 for step in steps]
    assert np.transpose(found) == pytest.approx(expected(strengths)[1], abs=1e-6)


def test_the_gradient_is_that_of_wins_and_its_slope_the_information(request):
    random = generator(request)
    strengths, base = random.uniform(-1, 1, 6), random.normal(size=6)
    design = design_of_degrees(random.uniform(50, 200, 6))
    found, slope = pull_slopes(design, strengths, base)
    wins = LOGISTIC.cdf(strengths[:, None] - strengths) - LOGISTIC.cdf(base[:, None] - base)
    assert found == pytest.approx((design * wins).sum(axis=1))
    assert slope == pytest.approx(information(design, strengths))
    halves = (design * np.tanh((strengths[:, None] - strengths) / 2)).sum(axis=1) / 2
    assert pull_slopes(design, strengths, np.zeros(6))[0] == pytest.approx(halves)


@pytest.mark.parametrize("degrees", [[100.0, 100.0], [300.0, 100.0, 100.0, 100.0]])
def test_a_design_that_degrees_fix_does_not_follow_the_strengths(degrees):
    strengths = np.linspace(-1, 0.5, len(degrees))
    design = np.zeros((len(degrees), len(degrees)))
    design[0, 1:] = design[1:, 0] = 100
    _, slope = pull_slopes(design, strengths, np.zeros(len(degrees)), 2.0)
    assert slope == pytest.approx(information(design, strengths), abs=1e-6)


def test_small_differences_speak_for_equals_that_met(request):
    """60 items of 400 comparisons each, noise of deviation 40: the likeliest closeness is right, up to a half."""
    random, degrees, noise = generator(request), np.full(60, 400.0), np.full(60, 40.0**2 + 400)
    for closeness in (0.0, 2.0):
        likeliest = []
        for _ in range(40):
            strengths = random.uniform(-1, 1, 60)
            design = design_of_degrees(degrees, kernel_of_gaps(strengths, closeness))
            differences = 2 * pull_slopes(design, strengths, np.zeros(60))[0] + np.sqrt(noise) * random.normal(size=60)
            logs = closeness_by_size(differences, degrees**2, noise, np.array([1 / 3]))
            likeliest.append(CLOSENESS[logs[:, 0].argmax()])
        assert np.median(likeliest) == pytest.approx(closeness, abs=0.5)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("design", ["chance", "even"])
@pytest.mark.parametrize("items", [2, 5])
def test_items_that_always_win_have_intervals_too(items, design, delta):
    """A million votes for the same side of each pair: scores in the hundreds, at which nothing more is to be learnt."""
    first, second = np.triu_indices(items, 1)
    played = np.full(len(first), 10**6)
    counts = PairCounts.from_pairs(first, second, 2 * played, 0 * played, items=items)
    board = CountedVotes(BoardRequest.of("100", "comparison", delta=delta, design=design), counts, []).draw(
        SeededBits(1)
    )
    assert np.isfinite(board.value.low).all()
    assert np.isfinite(board.value.high).all()
    assert [int(item) for item in board.value.items] == list(range(items))
