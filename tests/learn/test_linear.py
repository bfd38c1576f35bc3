"""The linear ranker: it finds what was planted, stops early, repeats itself, and comes back from a file unchanged."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from support import generator

from rankdp import Rankings, SeededBits, privatize
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.registry import mechanism

pytest.importorskip("sklearn", reason="learning needs scikit-learn")

from rankdp.learn import LinearPairwiseRanker, load, train_report
from rankdp.learn.labels import labels_of
from rankdp.learn.losses import score_accuracy

pytestmark = pytest.mark.slow


def planted(draw, n=1500, m=6, noise=1.0):
    """Users, items and orders from b . y + x' W y + Gumbel noise, whose pairs are logistic with these parameters."""
    users, items = draw.normal(size=(n, 3)), draw.normal(size=(m, 2))
    common, own = np.array([1.0, -0.5]), np.array([[0.8, 0.0], [0.0, -1.0], [0.3, 0.3]])
    scores = (users @ own + common) @ items.T
    orders = np.argsort(-(scores + noise * draw.gumbel(size=scores.shape)), axis=1).astype(np.int32)
    return users, items, orders, common, own


def test_it_recovers_a_planted_model(request):
    users, items, orders, common, own = planted(generator(request), n=4000)
    model = LinearPairwiseRanker(l2=1e-6).fit(users, items, orders)
    np.testing.assert_allclose(model.coef_, common, atol=0.1)
    np.testing.assert_allclose(model.interaction_, own, atol=0.1)


def test_it_recovers_it_from_synthetic_rankings_only_with_debiasing(request):
    users, items, orders, common, own = planted(generator(request), n=20_000)
    noisy = mechanism("reinsertion", 6, 3).sample(orders, SeededBits(3))
    known = {"mechanism": "reinsertion", "epsilon": 3}
    model = LinearPairwiseRanker(l2=1e-6).fit(users, items, noisy, **known)
    np.testing.assert_allclose(model.coef_, common, atol=0.15)
    np.testing.assert_allclose(model.interaction_, own, atol=0.15)
    naive = LinearPairwiseRanker(l2=1e-6, debias=False).fit(users, items, noisy, **known)
    assert abs(naive.coef_ - common).max() > 0.2  # shrunk towards nothing
    true, estimate = model.score(users, orders), model.score(users, noisy, **known)
    assert estimate == pytest.approx(true, abs=0.01)
    assert naive.score(users, noisy) < true - 0.05


@pytest.mark.parametrize("loss", ["logistic", "exponential", "psi"])
@pytest.mark.parametrize("interaction", [True, False])
def test_every_loss_learns(loss, interaction, request):
    users, items, orders, *_ = planted(generator(request), n=400, noise=0.3)
    model = LinearPairwiseRanker(loss, interaction=interaction, l2=1e-4, max_epochs=60).fit(users, items, orders)
    assert model.score(users, orders) > (0.85 if interaction else 0.6)
    if not interaction:
        assert len({tuple(order) for order in model.rank(users).orders.tolist()}) == 1


def test_score_is_twice_11(request):
    users, items, orders, *_ = planted(generator(request), n=50)
    model = LinearPairwiseRanker().fit(users, items, orders)
    ranks = np.argsort(orders, axis=1) + 1
    scores = model.predict(users)
    above = ranks[:, :, None] < ranks[:, None, :]
    assert model.score(users, orders) == pytest.approx((scores[:, :, None] > scores[:, None, :])[above].mean())
    assert model.rank(users).orders[0, 0] == model.predict(users)[0].argmax()


def test_the_ways_to_call_fit_are_one(request):
    users, items, orders, *_ = planted(generator(request), n=60)
    rankings = Rankings.from_orders(orders, [f"item {i}" for i in range(6)])
    expected = LinearPairwiseRanker().fit(users, items, orders).predict(users)
    for model in (
        LinearPairwiseRanker().fit(users, orders, items=items),
        LinearPairwiseRanker().fit(users=users, items=items, rankings=rankings),
        LinearPairwiseRanker().fit(users, items, rankings),
    ):
        np.testing.assert_array_equal(model.predict(users), expected)
    assert model.rank(users).items == rankings.items
    other = Rankings.from_orders([["item 3", "item 1"]])
    assert model.score(users[:1], other) in (0.0, 1.0)
    release = privatize(rankings, 2, mechanism="kendall", bits=SeededBits(1))
    np.testing.assert_array_equal(
        LinearPairwiseRanker().fit(users, items, release).coef_,
        LinearPairwiseRanker().fit(users, items, release.value, mechanism="kendall", epsilon=2).coef_,
    )


def test_new_items_are_scored_by_their_features(request):
    users, items, orders, *_ = planted(generator(request), n=60)
    model = LinearPairwiseRanker().fit(users, items, orders)
    np.testing.assert_allclose(model.predict(users, items[::-1]), model.predict(users)[:, ::-1])
    assert model.rank(users, items[:3]).items == ("0", "1", "2")
    without = LinearPairwiseRanker().fit(users, orders)
    assert without.predict(users).shape == (60, 6)
    with pytest.raises(InputError, match="without features of items"):
        without.predict(users, items)


def test_partial_rankings_teach_the_pairs_they_list(request):
    users, items, orders, *_ = planted(generator(request), n=3000)
    orders[::2, 3:] = -1
    orders[::5, 1:] = -1
    model = LinearPairwiseRanker(l2=1e-6).fit(users, items, orders)
    np.testing.assert_allclose(model.coef_, [1.0, -0.5], atol=0.15)


def test_early_stopping_keeps_the_best_epoch(request):
    draw = generator(request)
    users, items, orders, *_ = planted(draw, n=60, m=5, noise=3.0)
    wide = np.hstack([users, draw.normal(size=(60, 40))])  # enough to overfit with
    model = LinearPairwiseRanker(l2=1e-9, early_stopping=True, validation_fraction=0.4, patience=3, random_state=0)
    history = model.fit(wide, items, orders).history_
    assert history.stopped == "no better validation loss in 3 epochs"
    assert history.best_epoch == int(np.argmin(history.validation_loss)) == len(history) - 4
    assert history.train_loss[-1] < history.train_loss[0]
    longer = LinearPairwiseRanker(l2=1e-9).fit(wide, items, orders).history_
    assert longer.validation_loss == []
    assert longer.train_loss[-1] < history.train_loss[history.best_epoch]


def test_the_same_seed_gives_the_same_model(request):
    users, items, orders, *_ = planted(generator(request), n=80)

    def fitted(seed):
        return LinearPairwiseRanker(early_stopping=True, random_state=seed).fit(users, items, orders).coef_

    np.testing.assert_array_equal(fitted(1), fitted(1))
    assert (fitted(1) != fitted(2)).any()


@pytest.mark.parametrize("described", [True, False])
def test_a_saved_model_comes_back_unchanged(tmp_path, described, request):
    users, items, orders, *_ = planted(generator(request), n=60)
    names = [f"item {i}" for i in range(6)]
    model = LinearPairwiseRanker("logistic", l2=0.5, early_stopping=True, random_state=4)
    model.fit(users, Rankings.from_orders(orders, names), items=items if described else None)
    model.save(tmp_path / "model.npz")
    back = LinearPairwiseRanker.load(tmp_path / "model.npz")
    assert type(load(tmp_path / "model.npz")) is LinearPairwiseRanker
    np.testing.assert_array_equal(back.predict(users), model.predict(users))
    assert back.get_params() == model.get_params()
    assert back.rank(users) == model.rank(users)
    assert back.history_ == model.history_
    assert back.n_features_in_ == 3
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:  # nothing in it can run
        assert json.loads(file["about"].tobytes())["format"] == "rankdp model 1"


def test_damaged_models_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no model")
    np.savez(tmp_path / "b.npz", about=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(InputError, match="not a whole model"):
            load(tmp_path / name)
    with pytest.raises(InputError, match="there is no such file"):
        load(tmp_path / "none.npz")


@pytest.mark.parametrize("debias", [True, False])
def test_strong_minorities_overrule_weak_majorities_unless_debiased(debias):
    """NOTES, Xu 5: 70% prefer item 0 to item 1. Which of two rankings does held-out synthetic data call the better?"""
    orders = np.array([[0, 1, 2, 3, 4]] * 7 + [[1, 2, 3, 4, 0]] * 3, dtype=np.int32).repeat(20_000, axis=0)
    noisy = Rankings.from_orders(mechanism("kendall", 5, 1).sample(orders, SeededBits(5)))
    labels = labels_of(noisy, "kendall", 1, debias=debias)
    right, wrong = (
        score_accuracy(np.tile(scores, (len(orders), 1)), labels)
        for scores in (np.array([5.0, 4, 3, 2, 1]), np.array([4.0, 5, 3, 2, 1]))
    )
    assert (right > wrong) == debias


def test_the_report_is_plain_data_a_picture_and_a_page(tmp_path, request):
    users, items, orders, *_ = planted(generator(request), n=60)
    model = LinearPairwiseRanker(early_stopping=True, random_state=0).fit(users, items, orders)
    report = train_report(model, ("A note & more.",))
    curves = json.loads(report.json())["curves"]
    assert len(curves["train_loss"]) == len(curves["validation_accuracy"]) == model.n_iter_
    for ending in ("json", "html", "png", "csv"):
        report.write(tmp_path / f"report.{ending}")
    assert json.loads((tmp_path / "report.json").read_text())["model"] == "LinearPairwiseRanker"
    page = (tmp_path / "report.html").read_text()
    assert "A note &amp; more." in page
    assert "<svg" in page
    assert not re.search(r"<(link|iframe|img)", page)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="ending"):
        report.write(tmp_path / "report.txt")


def test_the_debiased_exponential_loss_may_have_no_minimum_and_says_so(request):
    users, items, orders, *_ = planted(generator(request), n=300)
    noisy = mechanism("kendall", 6, 1).sample(orders, SeededBits(3))
    with pytest.raises(Unsupported, match="exponential loss has no minimum"):
        LinearPairwiseRanker("exponential").fit(users, items, noisy, mechanism="kendall", epsilon=1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"l2": -1}, "l2 must be a finite number of at least 0, got -1"),
        ({"l2": 0}, "l2 must be above 0 with debiased labels"),
        ({"patience": 0}, "patience must be an integer of at least 1"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"tolerance": -1}, "tolerance"),
        ({"combine": "both"}, "combine"),
        ({"random_state": "x", "early_stopping": True}, "random_state"),
        ({"early_stopping": True, "validation_fraction": 0.99}, "early stopping needs users"),
    ],
)
def test_refused_settings(settings, said):
    users, orders = np.arange(12.0).reshape(4, 3), np.array([[0, 1, 2]] * 4)
    with pytest.raises(InputError, match=said):
        LinearPairwiseRanker(**settings).fit(users, orders, mechanism="kendall", epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[1.0]], None), "rankings must be given"),
        (([[1.0]], [[1, 2, 3]]), "row 1|index|counted"),  # ranks taken for orders
        (([[1.0]], [[0.5, 1.0]]), "item numbers from 0, best first"),
        (([[1.0], [2.0]], [[0, 1]]), "one row for each of the 2 users, got 1"),
        (([[1.0]], [[1.0], [2.0], [3.0]], [[0, 1]]), None),
        (([[1.0]], [[1.0]], [[0, 1]]), "row 1|items"),
        (([[1.0]], [["a"], ["b"]], [[0, 1]]), "table of numbers"),
        (([[1.0]], [[1.0], [np.nan]], [[0, 1]]), "finite numbers, got nan in row 2"),
        (([[np.nan]], [[0, 1]]), "NaN"),
    ],
)
def test_refused_data(arguments, said):
    if said is None:
        LinearPairwiseRanker().fit(*arguments)  # an item that nobody lists is fine
        return
    with pytest.raises(InputError, match=said):
        LinearPairwiseRanker().fit(*arguments)
