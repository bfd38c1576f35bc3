"""Two towers: they learn, stop early, repeat themselves, and predict without PyTorch once they are fitted."""

from __future__ import annotations

import numpy as np
import pytest
from support import generator

pytest.importorskip("torch", reason="two towers need PyTorch")
pytest.importorskip("sklearn", reason="learning needs scikit-learn")

import torch

from rankdp import SeededBits
from rankdp.errors import InputError
from rankdp.learn import TwoTowerRanker, load
from rankdp.learn.labels import labels_of
from rankdp.learn.losses import LOSSES
from rankdp.learn.towers import _Fit, _tower
from rankdp.mechanisms.registry import mechanism

pytestmark = pytest.mark.slow


def people(draw, n=300, m=5):
    users, items = draw.normal(size=(n, 3)), draw.normal(size=(m, 2))
    scores = 2 * (users @ draw.normal(size=(3, 2)) + 0.5) @ items.T
    return users, items, np.argsort(-scores, axis=1).astype(np.int32)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns(loss, request):
    users, items, orders = people(generator(request))
    model = TwoTowerRanker(loss, random_state=0, max_epochs=25).fit(users[:200], items, orders[:200])
    assert model.score(users[200:], orders[200:]) > 0.8
    assert model.predict(users, items[:2]).shape == (300, 2)


def test_debiased_labels_teach_towers_too(request):
    users, items, orders = people(generator(request), n=1200)
    noisy = mechanism("reinsertion", 5, 3).sample(orders, SeededBits(1))
    model = TwoTowerRanker(random_state=0, max_epochs=20)
    model.fit(users[:1000], items, noisy[:1000], mechanism="reinsertion", epsilon=3)
    assert model.score(users[1000:], orders[1000:]) > 0.85


def test_the_gradient_through_the_towers_is_that_of_a_plain_loop(request):
    users, items, orders = people(generator(request), n=6)
    towers = [_tower(torch, 3, 4), _tower(torch, 2, 4)]
    scores = towers[0](torch.from_numpy(users)) @ towers[1](torch.from_numpy(items)).T
    sorted_scores = torch.gather(scores, 1, torch.from_numpy(orders.astype(np.int64)))
    gaps = sorted_scores[:, :, None] - sorted_scores[:, None, :]
    first, second = np.triu_indices(5, 1)
    torch.nn.functional.softplus(-gaps[:, first, second]).mean().backward()
    plain = [one.grad.clone() for tower in towers for one in tower.parameters()]

    class Still:
        """An optimiser that does nothing."""

        def zero_grad(self):
            for tower in towers:
                tower.zero_grad()

        def step(self):
            pass

    from rankdp import Rankings

    labels = labels_of(Rankings.from_orders(orders))
    fit = _Fit(torch, towers, items, TwoTowerRanker(), None)
    fit._step(Still(), (users, labels), np.arange(6), "logistic")
    for ours, theirs in zip(fit.parameters, plain, strict=True):
        torch.testing.assert_close(ours.grad, theirs)


def test_early_stopping_keeps_the_best_epoch(request):
    draw = generator(request)
    users, items, _ = people(draw, n=40)
    orders = draw.permuted(np.tile(np.arange(5, dtype=np.int32), (40, 1)), axis=1)  # nothing to learn
    model = TwoTowerRanker(random_state=0, patience=3, learning_rate=0.05, validation_fraction=0.5)
    history = model.fit(users, items, orders).history_
    assert history.stopped == "no better validation loss in 3 epochs"
    assert history.best_epoch == int(np.argmin(history.validation_loss)) == len(history) - 4


def test_the_same_seed_gives_the_same_towers_and_leaves_torch_alone(request):
    users, items, orders = people(generator(request), n=60)

    def fitted(seed):
        return TwoTowerRanker(random_state=seed, max_epochs=3).fit(users, items, orders).predict(users)

    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(fitted(1), fitted(1))
    assert (fitted(1) != fitted(2)).any()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_saved_model_comes_back_unchanged(tmp_path, request):
    users, items, orders = people(generator(request), n=60)
    model = TwoTowerRanker(random_state=3, max_epochs=3, hidden=4).fit(users, items, orders)
    model.save(tmp_path / "towers.npz")
    back = load(tmp_path / "towers.npz")
    np.testing.assert_array_equal(back.predict(users), model.predict(users))
    assert back.get_params() == model.get_params()


def test_refused_settings():
    for settings, said in (
        ({"hidden": 0}, "hidden"),
        ({"batch_size": 0.5}, "batch_size"),
        ({"learning_rate": -1}, "learning_rate"),
    ):
        with pytest.raises(InputError, match=said):
            TwoTowerRanker(**settings).fit(np.ones((5, 1)), np.array([[0, 1]] * 5))
