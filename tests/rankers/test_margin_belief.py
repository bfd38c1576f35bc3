"""What is believed about margins: against the joint normal law of everything, and which pairs are asked for."""

import numpy as np
import pytest
from support import generator

from rankdp.rankers.margin_belief import SPREAD_OF_CYCLES, SPREAD_OF_SCORES, MarginBelief

M, N, V = 4, 100.0, 900.0
PAIRS = np.triu_indices(M, 1)


def joint(scores, heard):
    """Mean and covariance of the margins by conditioning one large normal law on what was released."""
    differences = np.zeros((6, M))
    differences[np.arange(6), PAIRS[0]], differences[np.arange(6), PAIRS[1]] = 1 / M, -1 / M
    design = np.hstack([differences, np.eye(6)])  # margins from scores and cycles
    prior = np.diag([(SPREAD_OF_SCORES * N * M) ** 2 / 2] * M + [(SPREAD_OF_CYCLES * N) ** 2] * 6)
    seen = np.vstack([np.eye(M, M + 6), *(design[[pair]] for pair, _, _ in heard)])
    noise = np.diag([V] * M + [variance for _, _, variance in heard])
    values = np.concatenate([scores, [margin for _, margin, _ in heard]])
    gain = prior @ seen.T @ np.linalg.inv(seen @ prior @ seen.T + noise)
    return design @ gain @ values, design @ (prior - gain @ seen @ prior) @ design.T


def test_the_belief_is_that_of_the_joint_law(request):
    scores = np.array([40.0, 10.0, -15.0, -35.0])
    heard = [(0, 3.0, 50.0), (3, -8.0, 50.0), (0, 12.0, 20.0)]
    belief = MarginBelief(scores + 7, V, N)  # a shift says nothing
    for pairs in ([0, 1], [2]):
        asked = [heard[number] for number in pairs]
        index = np.array([pair for pair, _, _ in asked])
        belief.hear(PAIRS[0][index], PAIRS[1][index], np.array([z for _, z, _ in asked]), asked[0][2])
    mean, covariance = joint(scores, heard)
    expected, variances = belief.margins()
    assert expected[PAIRS] == pytest.approx(mean)
    assert (expected == -expected.T).all()
    assert variances[PAIRS] == pytest.approx(np.diag(covariance))
    drawn = belief.draws(20_000, generator(request))[:, *PAIRS]
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.3)
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=0.05 * covariance.max())


def test_close_pairs_are_asked_for_and_more_where_that_costs_nothing():
    belief = MarginBelief(np.array([300.0, 290.0, 0.0, -590.0]), 25.0, 1000.0)
    first, second = belief.pairs_to_ask(lambda pairs: 1e4 * pairs**2, 10)
    assert (first.tolist(), second.tolist()) == ([0], [1])
    assert len(belief.pairs_to_ask(lambda pairs: 1e-9, 10)[0]) == 6
    assert len(belief.pairs_to_ask(lambda pairs: 1e-9, 4)[0]) == 4
    belief.hear(first, second, np.array([-80.0]), 1.0)
    again = belief.pairs_to_ask(lambda pairs: 1e4 * pairs**2, 10)
    assert (0, 1) not in zip(*map(np.ndarray.tolist, again), strict=True)
    assert belief.margins()[0][0, 1] < -70
