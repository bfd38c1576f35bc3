"""Privatizing scores: arrays and mappings, files and sidecars, what is refused, and what a release may not tell."""

from __future__ import annotations

import csv
import json
import math
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import seeded

from rankdp.errors import InputError
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.guarantee import ONE_SCORE, Guarantee
from rankdp.publish.scores import privatize_scores, privatize_scores_file

pytestmark = pytest.mark.slow

ASKED = {
    "laplace": {"epsilon": 2},
    "gaussian": {"epsilon": 1, "delta": "1e-5"},
    "generalized-normal": {"epsilon": 2, "p": "0.5"},
    "staircase": {"epsilon": 2},
    "joint-staircase": {"epsilon": 2},
    "ball": {"delta": "0.05"},
}
noises = pytest.mark.parametrize("noise", ASKED)


@noises
def test_an_array_comes_back_as_an_array_with_its_guarantee(noise):
    release = privatize_scores(np.linspace(0, 5, 7), bounds=(0, 5), noise=noise, **ASKED[noise])
    assert release.value.shape == (7,)
    assert release.value.dtype == np.float64
    assert release.guarantee.protects == ONE_SCORE
    assert not release.guarantee.local
    assert release.provenance.mechanism == noise
    assert release.provenance.parameters["bounds"] == [0, 5]
    steps = release.value / release.provenance.parameters["step"]
    assert steps == pytest.approx(np.rint(steps), abs=1e-3)
    assert Guarantee.from_dict(json.loads(json.dumps(release.to_dict()["guarantee"]))) == release.guarantee


@noises
def test_a_mapping_keeps_its_order(noise):
    scores = {"zoe": 0.1, "adam": 0.9, "mia": 0.5}
    release = privatize_scores(scores, bounds=(0, 1), noise=noise, **ASKED[noise])
    assert list(release.value) == ["zoe", "adam", "mia"]
    assert all(isinstance(value, float) for value in release.value.values())


@noises
def test_the_noise_is_centred_on_the_scores(noise, request):
    scores = np.repeat([0.2, 0.7], 20_000)
    release = privatize_scores(scores, bounds=(0, 1), noise=noise, bits=seeded(request), **ASKED[noise])
    allowed = 5 * release.provenance.parameters["standard_deviation"] / math.sqrt(20_000)
    assert release.value[:20_000].mean() == pytest.approx(0.2, abs=allowed)
    assert release.value[20_000:].mean() == pytest.approx(0.7, abs=allowed)


def test_a_rehearsal_repeats_and_promises_nothing():
    first, second = (privatize_scores([1, 2], 1, bounds=(0, 3), bits=SeededBits(4)) for _ in range(2))
    assert (first.value == second.value).all()
    assert first.guarantee is None
    assert "REHEARSAL" in first.explain()


def test_provenance_holds_nothing_of_the_scores():
    """Two secret vectors of the same length: the same parameters, whatever is in them."""
    one, other = (
        privatize_scores(scores, 1, bounds=(0, 9), outside="clip").provenance.parameters
        for scores in ([1, 2, 3], [9, 9, 100])
    )
    assert one == other


def test_clipping_and_clamping():
    big = {"epsilon": 10**6, "bounds": (0, 1)}
    assert privatize_scores([-5, 0.5, 7], outside="clip", **big).value == pytest.approx([0, 0.5, 1], abs=1e-3)
    noisy = privatize_scores(np.full(1000, 0.5), 0.1, bounds=(0, 1)).value
    assert noisy.min() < 0
    assert noisy.max() > 1
    clamped = privatize_scores(np.full(1000, 0.5), 0.1, bounds=(0, 1), clamp_output=True).value
    assert clamped.min() == 0
    assert clamped.max() == 1


@pytest.mark.parametrize(
    "scores",
    [[1, 2.5], (1, 2), np.array([1, 2], dtype=np.int8), [Fraction(1, 2), Decimal("0.25")], np.float32([1, 2])],
    ids=str,
)
def test_rows_of_numbers_of_many_kinds(scores):
    assert len(privatize_scores(scores, 1, bounds=(0, 3)).value) == 2


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([0.5, math.nan], "score 2 must be a finite number, got nan"),
        ([-math.inf], "score 1 must be a finite number, got -inf"),
        ({"ann": 0.5, "bob": math.nan}, "the score of 'bob' must be a finite number, got nan"),
        ([0.5, "0.7"], "score 2 must be a finite number, got '0.7'"),
        ([0.5, None], "score 2 must be a finite number, got None"),
        ([True, False], "score 1 must be a finite number, got True"),
        ([1j], "score 1 must be a finite number, got 1j"),
        ([10**400], "score 1 must be a finite number, got 1000"),
        ([], "scores must hold at least one number, got none"),
        ({}, "scores must hold at least one number, got none"),
        ([[0.5]], "scores must be one flat sequence of numbers, got a table or nested values"),
        ([[0.5], [0.1, 0.2]], "scores must be one flat sequence of numbers, got a table or nested values"),
        ("0.5", "scores must be numbers or a mapping of names to numbers, got str"),
        (0.5, "scores must be numbers or a mapping of names to numbers, got float"),
        (iter([0.5]), "scores must be numbers or a mapping of names to numbers, got list_iterator"),
        ([0.5, 1.5], "score 2 must lie within the bounds 0 to 1, got 1.5; outside='clip' moves"),
        ({"ann": -1}, "the score of 'ann' must lie within the bounds 0 to 1, got -1; outside='clip' moves"),
    ],
)
def test_bad_scores_are_refused_in_one_sentence(scores, sentence):
    with pytest.raises(InputError) as refusal:
        privatize_scores(scores, 1, bounds=(0, 1))
    assert str(refusal.value).startswith(sentence)


@given(
    st.one_of(
        st.none(), st.text(), st.integers(), st.lists(st.one_of(st.text(), st.floats(), st.none(), st.booleans()))
    )
)
@settings(max_examples=200)
def test_whatever_is_given_is_taken_or_refused(scores):
    try:
        release = privatize_scores(scores, 1, bounds=(-1, 1), outside="clip")
    except InputError:
        return
    assert len(release.value) == len(scores)


@given(
    st.one_of(st.none(), st.floats(), st.text(max_size=5), st.integers(-3, 3)),
    st.one_of(st.none(), st.floats(), st.text(max_size=5), st.tuples(st.floats(), st.floats())),
    st.sampled_from([*ASKED, "none"]),
    st.one_of(st.floats(), st.sampled_from([0, "0.1", "x"])),
    st.one_of(st.none(), st.floats(0.05, 70), st.sampled_from(["inf", 0, -1, "x"])),
)
@settings(max_examples=300)
def test_whatever_is_asked_for_is_promised_or_refused(epsilon, bounds, noise, delta, p):
    try:
        release = privatize_scores([0.5], epsilon, bounds=bounds, noise=noise, delta=delta, p=p, outside="clip")
    except InputError:
        return
    assert np.isfinite(release.value).all()
    assert release.guarantee.epsilon > 0 or release.guarantee.delta > 0


def test_bounds_are_never_read_from_the_scores():
    with pytest.raises(InputError, match=r"bounds must be given, two public numbers"):
        privatize_scores([1, 2, 3], 1)


def test_outside_is_one_of_two():
    with pytest.raises(InputError, match="outside must be one of refuse, clip, got 'drop'"):
        privatize_scores([1], 1, bounds=(0, 1), outside="drop")


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text('name,team,score\n"Smith, J.",x,0.5\nMüller,y,1\n=SUM(A1),z,0\n', encoding="utf-8")
    return path


def read(path):
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return [(row["name"], float(row["score"])) for row in csv.DictReader(file)]
    if path.suffix == ".json":
        return [(row["name"], row["score"]) for row in json.loads(path.read_text("utf-8"))]
    table = pq.read_table(path)
    return list(zip(table["name"].to_pylist(), table["score"].to_pylist(), strict=True))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json"])
def test_a_file_goes_to_a_file_with_its_sidecar(source, tmp_path, ending):
    target = tmp_path / f"out{ending}"
    release = privatize_scores_file(source, target, 1000, bounds=(0, 1))
    assert release.value == target
    rows = read(target)
    assert [name for name, _ in rows] == ["Smith, J.", "Müller", "=SUM(A1)"]
    assert [score for _, score in rows] == pytest.approx([0.5, 1, 0], abs=0.1)
    sidecar = json.loads((tmp_path / f"out{ending}.release.json").read_text("utf-8"))
    assert sidecar["guarantee"]["protects"] == ONE_SCORE
    assert sidecar["parameters"]["columns_left_out"] == ["team"]
    assert Guarantee.from_dict(sidecar["guarantee"]) == release.guarantee
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"out{ending}",
        f"out{ending}.release.json",
        "scores.csv",
    ]


def test_parquet_in_with_numbers_for_names(tmp_path):
    table = pa.table({"id": [3, 1, 2], "value": pa.array([1, 2, 3], pa.int32()), "extra": [None, None, None]})
    pq.write_table(table, tmp_path / "in.parquet")
    release = privatize_scores_file(tmp_path / "in.parquet", tmp_path / "out.parquet", 1, bounds=(0, 5))
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.column_names == ["id", "value"]
    assert out["id"].to_pylist() == [3, 1, 2]
    assert release.provenance.parameters["columns_left_out"] == ["extra"]


def test_named_columns_and_a_ball(tmp_path):
    (tmp_path / "in.tsv").write_text("who\tgrade\nann\t1\nbob\t6\n")
    options = {"item_column": "who", "score_column": "grade", "bounds": (1, 6), "noise": "ball"}
    release = privatize_scores_file(tmp_path / "in.tsv", tmp_path / "out.json", delta="0.1", p=2, **options)
    assert release.guarantee.idealized
    assert release.guarantee.epsilon == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("name,score\n", "there are no rows"),
        ("name,points_of\nann,1\n", "score_column must be given"),
        ("who,score\nann,1\n", "item_column must be given"),
        ("name,score\nann,1\nbob,high\n", "line 3: the score must be a number, got 'high'"),
        ("name,score\nann,1\nbob,\n", "line 3: the score is blank"),
        ("name,score\nann,nan\n", "line 2: the score must be a finite number, got nan"),
        ("name,score\nann,inf\n", "line 2: the score must be a finite number, got inf"),
        ("name,score\n,1\n", "line 2: the name is blank"),
        ("name,score\nann,1\nbob,1\nann,2\n", "line 4: name 'ann' is there twice, first in line 2"),
        ("name,score\nann,1\nbob\n", "line 3: the line has 1 fields and the header 2"),
        ("name,score,score\nann,1,1\n", "two columns are called 'score'"),
        ("name,score\nann,7\n", "the score of 'ann' must lie within the bounds 0 to 1, got 7"),
    ],
)
def test_bad_files_are_one_sentence_and_leave_nothing_behind(tmp_path, text, sentence):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text)
    target.write_text("the old one")
    (tmp_path / "out.csv.release.json").write_text("its sidecar")
    with pytest.raises(InputError) as refusal:
        privatize_scores_file(source, target, 1, bounds=(0, 1))
    assert sentence in str(refusal.value)
    assert target.read_text() == "the old one"
    assert (tmp_path / "out.csv.release.json").read_text() == "its sidecar"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_truncated_parquet_file(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"name": ["a", "b"], "score": [0.1, 0.2]}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="this is not a whole Parquet file"):
        privatize_scores_file(path, tmp_path / "out.csv", 1, bounds=(0, 1))
    assert [one.name for one in tmp_path.iterdir()] == ["in.parquet"]


def test_targets_that_cannot_be_written(source, tmp_path):
    for target, sentence in [
        (source, "this is the file being read"),
        (tmp_path / "out.xlsx", "the ending must be one of .csv, .tsv, .parquet, .pq, .json, got '.xlsx'"),
        (tmp_path / "nowhere" / "out.csv", "the file could not be written"),
    ]:
        with pytest.raises(InputError, match=sentence):
            privatize_scores_file(source, target, 1, bounds=(0, 1))
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(InputError, match="this is a directory"):
        privatize_scores_file(source, tmp_path / "dir.csv", 1, bounds=(0, 1))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dir.csv", "scores.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission(source, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(InputError, match="the file could not be written"):
        privatize_scores_file(source, closed / "out.csv", 1, bounds=(0, 1))


def test_arguments_are_refused_before_anything_is_read(tmp_path):
    for options, sentence in [
        ({"epsilon": 0, "bounds": (0, 1)}, "epsilon must be"),
        ({"epsilon": 1}, "bounds must be given"),
        ({"epsilon": 1, "bounds": (0, 1), "noise": "ball"}, "epsilon must not be given for ball noise"),
        ({"epsilon": 1, "bounds": (0, 1), "outside": "drop"}, "outside must be"),
        ({"bounds": (0, 1), "noise": "ball", "delta": "1e-274"}, "this privacy needs noise of"),
        ({"bounds": (0, 1), "noise": "ball", "delta": "1e-400", "p": 3}, "this privacy needs noise of"),
    ]:
        with pytest.raises(InputError, match=sentence):
            privatize_scores_file(tmp_path / "no such file.csv", tmp_path / "out.csv", **options)
    with pytest.raises(InputError, match="there is no such file"):
        privatize_scores_file(tmp_path / "no such file.csv", tmp_path / "out.csv", 1, bounds=(0, 1))


def test_no_guarantee_stands_beside_data_it_was_not_made_for(source, tmp_path, monkeypatch):
    target = tmp_path / "out.csv"
    privatize_scores_file(source, target, 1, bounds=(0, 1))
    old = target.read_text()

    def fail(self: Path, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        privatize_scores_file(source, target, 5, bounds=(0, 1))
    assert target.read_text() == old
    assert json.loads((tmp_path / "out.csv.release.json").read_text("utf-8"))["guarantee"]["epsilon"] == "1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.release.json", "scores.csv"]


def test_a_long_file_takes_seconds(tmp_path):
    count = 300_000
    rows = "\n".join(f"player {number},{number % 101}" for number in range(count))
    (tmp_path / "in.csv").write_text("item,score\n" + rows + "\n")
    privatize_scores_file(tmp_path / "in.csv", tmp_path / "out.parquet", 1, bounds=(0, 100))
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == count
