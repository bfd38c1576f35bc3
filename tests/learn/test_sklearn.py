"""scikit-learn's own checks, and its tools around a ranker.

The checks feed classes or numbers as y, where a ranker wants rankings; ``Checked`` turns each label into a ranking that
depends on it and leaves everything else to the ranker. None of the checks that scikit-learn has for an estimator of its
kind (neither classifier nor regressor) had to be left out.
"""

from __future__ import annotations

import numpy as np
import pytest
from support import generator

pytest.importorskip("sklearn", reason="learning needs scikit-learn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankdp.learn import LinearPairwiseRanker, TwoTowerRanker

pytestmark = pytest.mark.slow


class Checked(LinearPairwiseRanker):
    """Labels as rankings of three items: the label says which comes first."""

    def fit(self, X, y=None):
        return super().fit(X, None if y is None else as_orders(y))

    def score(self, X, y=None):
        return super().score(X, as_orders(y))


def as_orders(y):
    labels = np.asarray(y)
    if labels.dtype.kind not in "biuf":
        labels = np.unique(labels, return_inverse=True)[1]
    first = np.nan_to_num(labels.reshape(len(labels), -1)[:, 0]).astype(int) % 3
    return ((first[:, None] + np.arange(3)) % 3).astype(np.int32)


@parametrize_with_checks([Checked(max_epochs=20), Checked(interaction=False)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def people(draw, n=90):
    users = draw.normal(size=(n, 2))
    scores = users @ draw.normal(size=(2, 4)) + draw.gumbel(size=(n, 4))
    return users, np.argsort(-scores, axis=1).astype(np.int32)


def test_search_cross_validation_and_pipelines(request):
    users, orders = people(generator(request))
    search = GridSearchCV(LinearPairwiseRanker(), {"l2": [1e-4, 10.0]}, cv=3).fit(users, orders)
    assert search.best_score_ > 0.6
    assert cross_val_score(LinearPairwiseRanker(), users, orders, cv=3).mean() > 0.6
    pipeline = make_pipeline(StandardScaler(), LinearPairwiseRanker()).fit(users, orders)
    assert pipeline.score(users, orders) > 0.6
    own = np.full(len(users), 3.0)
    search.fit(users, orders, mechanism="kendall", epsilon=own)  # each fold gets its users' epsilons


@pytest.mark.parametrize("kind", [LinearPairwiseRanker, TwoTowerRanker])
def test_parameters_and_clones(kind):
    model = kind("psi", l2=0.25)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(l2=2.0).l2 == 2.0
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


def test_frames_keep_their_names(request):
    pandas = pytest.importorskip("pandas")
    users, orders = people(generator(request))
    frame = pandas.DataFrame(users, columns=["age", "income"])
    model = LinearPairwiseRanker().fit(frame, orders)
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["age", "income"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "height"}))
