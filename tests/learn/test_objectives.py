"""Losses, labels and their sums: gradients, convexity, unbiasedness by enumeration, and mutants that fail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support import generator

from rankdp import Rankings, SeededBits, privatize
from rankdp.errors import InputError, Unsupported
from rankdp.learn.labels import Labels, labels_of
from rankdp.learn.linear import LinearPairwiseRanker, Objective
from rankdp.learn.losses import LOSSES, STEEPEST, score_accuracy, score_pass
from rankdp.mechanisms.registry import mechanism
from rankdp.theory.permutations import all_permutations

pytestmark = pytest.mark.slow

MECHANISMS = ["kendall", "ulam", "reinsertion", "optimal"]
NAMES = [str(place) for place in range(6)]


def table(orders, m=None):
    return Rankings.from_orders(np.asarray(orders, dtype=np.int32), NAMES[: m or np.shape(orders)[1]])


def value(loss, d):
    """v(d), by its definition."""
    if loss == "logistic":
        return np.logaddexp(0, -d)
    if loss == "psi":
        return min(1, max(0, 1 - d))
    return np.exp(-d) if d > -STEEPEST else np.exp(STEEPEST) * (1 - d - STEEPEST)


def by_hand(scores, labels, loss):
    """The definition: the weighted sum of y v(d) + (1 - y) v(-d) over each user's pairs."""
    total = 0.0
    for u in range(len(labels)):
        group = labels.groups[u]
        for b1, b2 in itertools.combinations(range(labels.lengths[group]), 2):
            gap = scores[u, labels.orders[u, b1]] - scores[u, labels.orders[u, b2]]
            y = labels.tables[group, b1, b2]
            total += labels.weights[group] * (y * value(loss, gap) + (1 - y) * value(loss, -gap))
    return total


def mixed(draw, n=12, m=5):
    """Partial rankings of several lengths, with users' own epsilons."""
    orders = draw.permuted(np.tile(np.arange(m, dtype=np.int32), (n, 1)), axis=1)
    for u, length in enumerate(draw.integers(1, m + 1, n)):
        orders[u, length:] = -1
    orders[0] = np.arange(m)
    return Rankings.from_orders(orders, NAMES[:m]), draw.choice([1.0, 3.0], n)


def slopes(function, at, step=1e-6):
    found = np.empty_like(at)
    for place in np.ndindex(at.shape):
        move = np.zeros_like(at)
        move[place] = step
        found[place] = (function(at + move) - function(at - move)) / (2 * step)
    return found


def test_an_unknown_loss_is_refused():
    with pytest.raises(InputError, match="loss must be one of logistic, exponential, psi, got 'hinge'"):
        LinearPairwiseRanker("hinge").fit([[1.0]], [[0, 1]])


@pytest.mark.parametrize("name", [None, "reinsertion", "kendall"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1.0, 40.0, 1000.0])
def test_the_kernels_agree_with_the_definition(loss, name, scale, request):
    draw = generator(request)
    rankings, own = mixed(draw)
    labels = labels_of(rankings, name, None if name is None else own)
    scores = scale * draw.normal(size=(len(labels), 5))
    found, gradient = score_pass(scores, labels, loss)
    assert found == pytest.approx(by_hand(scores, labels, loss), rel=1e-9, abs=1e-9 * scale)
    if scale == 1.0:
        numeric = slopes(lambda at: by_hand(at, labels, loss), scores)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("interaction", [True, False])
def test_gradients_of_the_objectives_against_finite_differences(loss, interaction, request):
    draw = generator(request)
    rankings, own = mixed(draw)
    labels = labels_of(rankings, "reinsertion", own)
    users, items = draw.normal(size=(len(labels), 2 if interaction else 0)), draw.normal(size=(5, 3))
    objective = Objective(labels, users, items)
    at = draw.normal(size=objective.size)
    numeric = slopes(lambda point: objective.value_and_gradient(point, loss)[0], at)
    np.testing.assert_allclose(objective.value_and_gradient(at, loss)[1], numeric, rtol=1e-5, atol=1e-6)
    scores = (users @ at[3:].reshape(-1, 3) + at[:3]) @ items.T
    assert objective.spread(at) == pytest.approx(np.ptp(scores, axis=1).max())


def test_chunks_and_threads_change_nothing(monkeypatch, request):
    draw = generator(request)
    labels = labels_of(table(draw.permuted(np.tile(np.arange(4), (500, 1)), axis=1)))
    users, items, at = draw.normal(size=(500, 2)), draw.normal(size=(4, 3)), draw.normal(size=9)
    whole = Objective(labels, users, items).value_and_gradient(at, "logistic")
    monkeypatch.setattr("rankdp.learn.linear._CELLS", 200)
    parts = Objective(labels, users, items)
    assert len(parts.chunks) == 10
    assert parts.value_and_gradient(at, "logistic")[0] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(parts.value_and_gradient(at, "logistic")[1], whole[1], rtol=1e-10)


# -- debiasing -----------------------------------------------------------------------------------------------------


def expectation(name, m, epsilon, loss, scores, true, spoil=None, *, debias=True):
    """E over the mechanism of the loss of one user's synthetic ranking, over all m! of them; and the true one."""
    built, outputs = mechanism(name, m, epsilon), all_permutations(m)
    labels = labels_of(table(outputs), name, epsilon, debias=debias, pairs=loss != "logistic")
    if spoil:
        labels = spoil(labels)
    law = np.exp(built.log_prob(outputs, true[None]))
    each = [score_pass(scores, labels.rows(np.array([row])), loss)[0] for row in range(len(outputs))]
    truth = score_pass(scores, labels_of(table(true[None])), loss)[0]
    return float(law @ each), truth


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_debiased_loss_has_the_mean_of_the_true_one(loss, name, m, request):
    draw = generator(request)
    for true in (np.arange(m), draw.permutation(m)):
        found, truth = expectation(name, m, 1.5, loss, draw.normal(size=(1, m)), true)
        assert found == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_mutants_fail_the_same_enumeration(loss):
    scores, true = np.array([[0.9, -0.4, 0.3, -0.8]]), np.arange(4)

    def other_epsilon(labels):
        wrong = labels_of(table(labels.orders), "kendall", 3.0, pairs=loss != "logistic")
        return Labels(labels.orders, labels.groups, labels.lengths, labels.weights, wrong.wins, wrong.tables)

    def turned(labels):
        tables = 1 - labels.tables
        return Labels(labels.orders, labels.groups, labels.lengths, labels.weights, labels.wins[:, ::-1].copy(), tables)

    for spoil, debias in ((other_epsilon, True), (turned, True), (None, False)):
        found, truth = expectation("kendall", 4, 1.5, loss, scores, true, spoil, debias=debias)
        assert abs(found - truth) > 1e-2


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_debiased_accuracy_is_unbiased_too(name):
    m, scores, true = 4, np.array([[0.3, 1.0, -1.0, 0.1]]), np.array([1, 2, 0, 3])
    built, outputs = mechanism(name, m, 1.5), all_permutations(m)
    labels = labels_of(table(outputs), name, 1.5)
    each = [score_accuracy(scores, labels.rows(np.array([row]))) for row in range(len(outputs))]
    law = np.exp(built.log_prob(outputs, true[None]))
    assert law @ each == pytest.approx(score_accuracy(scores, labels_of(table(true[None]))), abs=1e-8)


@pytest.mark.parametrize("name", MECHANISMS)
def test_unbiased_wins_are_sums_of_unbiased_pairs(name):
    orders = table(np.arange(5)[None])
    ranks, pairs = (labels_of(orders, name, 2, pairs=known).wins for known in (False, True))
    np.testing.assert_allclose(ranks, pairs, atol=1e-7)
    assert ranks.sum() == pytest.approx(10)


def test_the_debiased_logistic_loss_is_convex_and_the_others_are_not(request):
    draw = generator(request)
    orders = mechanism("kendall", 5, 1).sample(np.tile(np.arange(5), (4, 1)), SeededBits(1))
    labels = labels_of(table(orders), "kendall", 1)
    assert labels.tables.max() > 1
    assert labels.tables.min() < 0
    users, items = draw.normal(size=(4, 2)), draw.normal(size=(5, 3))

    def sags(loss):
        """How far the middle of a chord lies above it, at worst."""
        objective = Objective(labels, users, items)
        worst = -np.inf
        for _ in range(200):
            ends = draw.normal(size=(2, 9)) * 2
            values = [objective.value_and_gradient(point, loss)[0] for point in (*ends, ends.mean(axis=0))]
            worst = max(worst, values[2] - (values[0] + values[1]) / 2)
        return worst

    assert sags("logistic") <= 1e-9
    assert sags("exponential") > 1e-3
    assert sags("psi") > 1e-3


def test_own_epsilons_are_weighed_by_precision_or_not_at_all():
    orders = table(np.tile(np.arange(5), (4, 1)))
    labels = labels_of(orders, "kendall", [1, 1, 4, 4])
    weights = labels.weights[labels.groups]
    assert weights[2] > 3 * weights[0]
    assert weights.sum() == pytest.approx(4)
    np.testing.assert_array_equal(labels_of(orders, "kendall", [1, 1, 4, 4], combine="users").weights, 1)


def test_a_release_knows_its_own(request):
    rankings = table(np.tile(np.arange(4), (6, 1)))
    release = privatize(rankings, 2, mechanism="reinsertion", bits=SeededBits(1))
    known = labels_of(release.value, "reinsertion", 2)
    for labels in (labels_of(release), labels_of(release.value, release.provenance.parameters)):
        np.testing.assert_array_equal(labels.wins, known.wins)
    own = Rankings.from_orders(rankings.orders, NAMES[:4], epsilons=[1, 1, 1, 2, 2, 2])
    np.testing.assert_allclose(
        labels_of(privatize(own, mechanism="kendall", bits=SeededBits(1))).wins,
        labels_of(own, "kendall").wins,
    )


def test_long_kendall_rankings_need_the_logistic_loss():
    orders = Rankings.from_orders(np.arange(60, dtype=np.int32)[None], list(map(str, range(60))))
    labels = labels_of(orders, "kendall", 4, pairs=False)
    assert labels.tables is None
    assert np.isnan(score_accuracy(np.zeros((1, 60)), labels))
    with pytest.raises(Unsupported):
        labels_of(orders, "kendall", 4)
    with pytest.raises(Unsupported, match="use logistic"):
        score_pass(np.zeros((1, 60)), labels, "psi")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mechanism": "kendal", "epsilon": 1}, "mechanism must be"),
        ({"mechanism": "kendall"}, "epsilon must be given"),
        ({"epsilon": 1}, "mechanism must be given"),
        ({"mechanism": "kendall", "epsilon": [1, 2]}, "one number for each of the 1 rows"),
        ({"mechanism": "kendall", "epsilon": 0}, "above 0"),
        ({"mechanism": {}, "epsilon": None}, "does not say which mechanism"),
        ({"mechanism": {}, "epsilon": 2}, "give none"),
        ({"combine": "all"}, "combine must be"),
    ],
)
def test_refused_labels(arguments, said):
    with pytest.raises(InputError, match=said):
        labels_of(table([[0, 1, 2]]), **arguments)


def test_without_a_pair_there_is_nothing_to_learn():
    with pytest.raises(InputError, match="two items or more"):
        labels_of(table([[0], [1]], m=2))


@pytest.mark.parametrize(("users", "most", "alone"), [(None, 1e-5, 0.5), (50.0, 2.0, 0.2)])
def test_rows_with_public_offsets_are_undone_together(users, most, alone):
    """No offset alone tells the rank of an item; over all of them the mean of w is how many it truly beats."""
    built = mechanism("offset-tiers-4", 12, 1)
    rows = np.tile(np.arange(12, dtype=np.int32), (built.offsets, 1))
    poll = Rankings.from_orders(rows, [f"item {i}" for i in range(12)], offsets=np.arange(built.offsets))
    labels = labels_of(poll, "offset-tiers-4", 1, pairs=False, users=users)
    wins = [built.at(offset).position_matrix() @ labels.wins[labels.groups[offset]] for offset in range(4)]
    truth = 11.0 - np.arange(12)
    assert np.abs(np.mean(wins, axis=0) - truth).max() < most
    assert min(np.abs(one - truth).max() for one in wins) > alone
    assert labels.note.startswith("Labels are unbiased" if users is None else "With so few users the labels are pulled")
