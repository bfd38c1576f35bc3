"""``learn_files``: tables in, a directory out, whole or not at all; and the paper's two experiments end to end."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import generator

from rankdp import Rankings, SeededBits
from rankdp.errors import InputError
from rankdp.mechanisms import mechanism
from rankdp.publish.privatize import privatize_file

pytest.importorskip("sklearn", reason="learning needs scikit-learn")

from rankdp.learn import LinearPairwiseRanker, TwoTowerRanker, learn_files, load, predict_files
from rankdp.learn.training_files import read_features, train_report
from rankdp_papers.xu.populations import SUSHI_FIVE, simulated, sushi

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path, request):
    """users.csv, items.parquet, rankings.csv with the users in another order, and private.csv with its release."""
    draw = generator(request)
    ids, users, items = [f"u{i}" for i in range(40)], draw.normal(size=(40, 2)), draw.normal(size=(4, 2))
    lines = ["user_id,age,town,income", *(f"{i},{a},x,{b}" for i, (a, b) in zip(ids, users.tolist(), strict=True))]
    (tmp_path / "users.csv").write_text("\n".join(lines) + "\n")
    names = ["tea", "milk", "water", "juice"]
    table = pa.table({"item": names, "sweet": items[:, 0], "warm": items[:, 1]})
    pq.write_table(table, tmp_path / "items.parquet")
    orders = np.argsort(-(users @ items.T), axis=1).astype(np.int32)[::-1][:38]
    Rankings.from_orders(orders, names, voters=ids[::-1][:38]).write(tmp_path / "rankings.csv")
    privatize_file(
        tmp_path / "rankings.csv", tmp_path / "private.csv", 4, mechanism="kendall", bits=SeededBits(1), items=names
    )
    return tmp_path, users, items, orders


def paths(folder, rankings="rankings.csv"):
    return folder / "users.csv", folder / "items.parquet", folder / rankings


def test_predictions_from_files(files):
    """By name, whatever the order of the columns; for the items of the training or for others; bad input in words."""
    folder, users, items, _ = files
    model = learn_files(*paths(folder), folder / "model").model
    expected = predict_files(folder / "model", folder / "users.csv")
    assert list(expected.voters[:2]) == ["u0", "u1"]
    assert np.array_equal(expected.orders, model.rank(users).orders)
    lines = ["income,age,user", *(f"{b},{a},v{i}" for i, (a, b) in enumerate(users.tolist()))]
    (folder / "others.csv").write_text("\n".join(lines) + "\n")
    assert np.array_equal(predict_files(folder / "model", folder / "others.csv").orders, expected.orders)
    pq.write_table(pa.table({"item": ["a", "b"], "warm": items[:2, 1], "sweet": items[:2, 0]}), folder / "new.parquet")
    fresh = predict_files(folder / "model", folder / "users.csv", folder / "new.parquet")
    assert fresh.items == ("a", "b")
    assert np.array_equal(fresh.orders, model.rank(users, items[:2]).orders)
    (folder / "short.csv").write_text("user,age\nu1,3\n")
    with pytest.raises(InputError, match="there is no column 'income'"):
        predict_files(folder / "model", folder / "short.csv")
    with pytest.raises(InputError, match=r"features\.json"):
        predict_files(folder / "nowhere", folder / "users.csv")


def test_a_model_and_a_report_from_files(files):
    folder, users, items, orders = files
    done = learn_files(*paths(folder), folder / "model", l2=1e-4)
    assert sorted(path.name for path in done.target.iterdir()) == [
        "curves.json",
        "features.json",
        "model.npz",
        "report.html",
    ]
    model = load(folder / "model" / "model.npz")
    assert model.items_ == ("tea", "milk", "water", "juice")
    expected = LinearPairwiseRanker(l2=1e-4).fit(users[::-1][:38], items, orders)  # joined by id
    np.testing.assert_allclose(model.predict(users), expected.predict(users), rtol=1e-6)
    assert "town" in done.report.words[1]
    assert "2 users have no ranking" in done.report.words[2]
    assert "count as true" in done.report.words[3]
    assert json.loads((done.target / "curves.json").read_text())["curves"]["train_loss"]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_the_release_file_says_what_made_the_rankings(files):
    folder = files[0]
    stated = learn_files(*paths(folder, "private.csv"), folder / "a").model
    said = learn_files(*paths(folder, "private.csv"), folder / "b", mechanism="kendall", epsilon="4").model
    naive = learn_files(*paths(folder, "private.csv"), folder / "c", debias=False).model
    np.testing.assert_array_equal(stated.coef_, said.coef_)
    assert (stated.coef_ != naive.coef_).any()


def test_labels_are_undone_as_far_as_the_users_are_worth(request):
    """A law that cannot be undone, and one that is nearly singular: unbiased labels are refused or ruin the model."""
    draw = generator(request)
    users, items, weights = draw.normal(size=(600, 2)), draw.normal(size=(6, 3)), draw.normal(size=(2, 3))
    truth = users @ weights @ items.T
    orders = np.argsort(-(truth + draw.gumbel(size=truth.shape)), axis=1).astype(np.int32)
    out = mechanism("optimal", 6, 2).sample(orders, SeededBits(3))
    known = {"mechanism": "optimal", "epsilon": 2}
    chosen, naive = (LinearPairwiseRanker(debias=debias).fit(users, items, out, **known) for debias in (True, False))
    assert chosen.labels_.startswith("With so few users the labels are pulled toward the middle")
    sure = np.argsort(-truth, axis=1).astype(np.int32)
    assert chosen.score(users, sure) > naive.score(users, sure) - 0.01
    loud = LinearPairwiseRanker().fit(users, items, orders, mechanism="ulam", epsilon=8)
    assert loud.labels_.startswith("Labels are unbiased")


def test_impossible_numbers_are_called_noise(files):
    model = learn_files(*paths(files[0], "private.csv"), files[0] / "a").model
    model.history_.train_loss[model.history_.best_epoch] = -0.25
    model.history_.train_accuracy[model.history_.best_epoch] = 1.02
    report = train_report(model)
    assert [row[1] for row in report.tables[0].rows] == ["-0.2500 (noise)", "1.0200 (noise)"]
    assert model.labels_ in report.words


def test_the_report_says_what_is_promised_about_the_rankings(files):
    folder = files[0]
    done = learn_files(*paths(folder, "private.csv"), folder / "a")
    for name in ("report.html", "curves.json"):
        assert "REHEARSAL, NOT PRIVATE" in (done.target / name).read_text()
    release = privatize_file(folder / "rankings.csv", folder / "private.csv", 4, mechanism="kendall")
    done = learn_files(*paths(folder, "private.csv"), folder / "b")
    assert json.loads((done.target / "curves.json").read_text())["guarantee"] == release.guarantee.to_dict()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"mechanism": "ulam", "epsilon": 4}, "says that kendall made the rankings, got 'ulam'"),
        ({"mechanism": "kendall", "epsilon": 3}, "says that the epsilon is 4, got 3"),
        ({"epsilon_column": "eps"}, "says that the epsilon is 4, got epsilon_column='eps'"),
    ],
)
def test_what_contradicts_the_release_is_refused(files, said, sentence):
    folder = files[0]
    with pytest.raises(InputError, match=sentence):
        learn_files(*paths(folder, "private.csv"), folder / "model", **said)
    assert not (folder / "model").exists()


def test_chosen_features_and_rows_without_ids(files):
    folder, _, _, orders = files
    (folder / "few.csv").write_text("id;age;income\n" + "".join(f"{i};{i % 7};{i}\n" for i in range(38)))
    names = ["tea", "milk", "water", "juice"]
    Rankings.from_orders(orders, names).write(folder / "anonymous.csv")
    done = learn_files(
        folder / "few.csv", folder / "items.parquet", folder / "anonymous.csv", folder / "m", user_features=["age"]
    )
    assert done.model.n_features_in_ == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"users": "none.csv"}, "there is no such file"),
        ({"model": "forest"}, "model must be one of linear, two-tower, got 'forest'"),
        ({"depth": 3}, "has no setting depth"),
        ({"user_column": "name"}, "the column of ids is 'name'"),
        ({"user_features": ["town"]}, "'town' must hold numbers"),
        ({"user_features": ["height"]}, "there is no column 'height'"),
        ({"mechanism": "kendall"}, "epsilon must be given"),
        ({"mechanism": "kendall", "epsilon": "-1"}, "above 0"),
        ({"target": "."}, "exists already"),
    ],
)
def test_refusals_leave_nothing_behind(files, change, said):
    folder = files[0]
    before = sorted(folder.iterdir())
    given = dict(zip(("users", "items", "rankings"), paths(folder), strict=True))
    given["target"] = folder / "model"
    for name in ("users", "target"):
        if name in change:
            given[name] = folder / change.pop(name)
    with pytest.raises(InputError, match=said):
        learn_files(**given, **change)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty|read"),
        ("user_id,age\n", "no rows"),
        ("user_id,age\nu1,3\nu1,4\n", "line 3: user_id 'u1' is there twice, first in line 2"),
        ("user_id,age\nu1,\nu2,4\n", "line 2: age is blank"),
        ("user_id,age\nu1,nan\nu2,4\n", "age must be a finite number|age is blank"),
        ("user_id,town\nu1,x\nu2,y\n", "no column of numbers"),
        ("user_id,age,age\nu1,1,2\n", "two columns are called 'age'"),
        ("user_id,age\nu1,1\nu2,4,5\n", "line 3: the line has 3 fields and the header 2"),
        ("user_id,age\nu1,1\nu2,4\n", "there is no user"),
    ],
)
def test_bad_feature_tables(files, text, said):
    folder = files[0]
    (folder / "users.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        learn_files(*paths(folder), folder / "model")


def test_ids_are_texts_and_files_may_be_compressed(tmp_path):
    path = tmp_path / "users.csv.gz"
    path.write_bytes(gzip.compress(b"user_id,age,town\n007,3,x\n7,4,1\n1e3,5,\n"))
    found = read_features(path, ["user_id"])
    assert (found.ids, found.names, found.left_out) == (("007", "7", "1e3"), ("age",), ("town",))
    assert found.values.ravel().tolist() == [3, 4, 5]


# -- the paper's experiments, small --------------------------------------------------------------------------------


def compare(settings, make, mechanisms, epsilons):
    """Mean held-out accuracy by mechanism, epsilon and whether training is debiased; one repetition per setting."""
    found = {}
    for name, epsilon, debias in itertools.product(mechanisms, epsilons, (False, True)):
        accuracies = []
        for seed, one in enumerate(settings):
            synthetic = mechanism(name, len(one.items), epsilon).sample(one.orders, SeededBits(seed))
            ranker = make(debias).fit(one.users, synthetic, items=one.items, mechanism=name, epsilon=epsilon)
            accuracies.append(ranker.score(one.test_users, one.test_orders))
        found[name, epsilon, debias] = np.mean(accuracies)
    return found


def test_the_simulation_runs_from_end_to_end():
    settings = [simulated(150, 5, seed, test_users=200) for seed in range(2)]
    found = compare(settings, lambda debias: LinearPairwiseRanker(debias=debias), ["kendall", "reinsertion"], [4])
    assert len(found) == 4
    assert all(accuracy > 0.8 for accuracy in found.values())
    everyone = settings[0].orders
    assert (everyone == everyone[0]).all()  # the paper's own preferences rank alike for all users


@pytest.mark.long
def test_section_6_3_with_towers_at_reduced_size():
    pytest.importorskip("torch", reason="two towers need PyTorch")
    settings = [simulated(250, 15, seed, test_users=300) for seed in range(2)]

    def make(debias):
        return TwoTowerRanker(debias=debias, random_state=0, validation_fraction=0.4, max_epochs=60)

    accuracy = compare(settings, make, ["kendall", "laplace"], [4])
    assert accuracy["kendall", 4, False] > accuracy["laplace", 4, False]


def test_section_6_4_sushi_at_reduced_size(data_directory: Path):
    if not (data_directory / "sushi").is_dir():
        pytest.skip("no sushi data here: set RANKDP_DATA to the directory that holds sushi/")
    setting = sushi(data_directory, 0)
    assert setting.orders.shape == (3000, len(SUSHI_FIVE))
    assert setting.test_orders.shape == (2000, len(SUSHI_FIVE))

    def make(debias):
        return LinearPairwiseRanker(debias=debias, interaction=False)

    true = make(False).fit(setting.users, setting.items, setting.orders).score(setting.test_users, setting.test_orders)
    assert true > 0.72
    for accuracy in compare([setting], make, ["kendall", "reinsertion"], [1, 4]).values():
        assert accuracy > true - 0.02
