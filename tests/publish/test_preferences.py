"""Private preference labels: the exact law, the promise, files, raw rows, mutants, and models that undo the swaps."""

import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import rankdp
from rankdp.attack import position_attack
from rankdp.audit import audit_exact
from rankdp.cli import cli
from rankdp.errors import BudgetExceeded, InputError
from rankdp.learn import LinearRewardModel
from rankdp.mechanisms.votes.labels import SwappedLabels
from rankdp.privacy.bits import SeededBits
from rankdp.privacy.cut_tables import Weights
from rankdp.privacy.exact import exp_bounds
from rankdp.privacy.guarantee import OUTCOME
from rankdp.publish import preferences


def pairs(rows=200, **more):
    numbers = range(rows)
    return pa.table(
        {
            "prompt": [f"p{row}" for row in numbers],
            "chosen": [f"good {row}" for row in numbers],
            "rejected": [f"bad {row}" for row in numbers],
            "score_chosen": [9.5] * rows,
            **more,
        }
    )


def worst_ratio(mechanism, bits=300):
    """The largest ratio of the probabilities of one released label under the two true ones, rounded outwards."""
    law = mechanism.exact_law(bits)
    return max(Fraction(law.high[0], law.low[1]), Fraction(law.high[1], law.low[0]))


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "2", "7"])
def test_the_law_that_is_drawn_from_keeps_the_promise_exactly(epsilon):
    mechanism = SwappedLabels(epsilon)
    low, _ = exp_bounds(mechanism.epsilon, 300)
    assert worst_ratio(mechanism) <= Fraction(1 << 300, low) * (1 + Fraction(1, 1 << 200))
    assert mechanism.flip_probability == pytest.approx(1 / (1 + math.exp(Fraction(epsilon))))
    swapped = mechanism.swapped(40_000, SeededBits(3)).mean()
    f = mechanism.flip_probability
    assert abs(swapped - f) < 5 * math.sqrt(f * (1 - f) / 40_000)


class HalfTheNoise(SwappedLabels):
    def exact_law(self, bits):
        low, high = exp_bounds(2 * self.epsilon, bits)
        return Weights([1 << bits, low], [1 << bits, high])


def test_half_the_noise_is_caught():
    low, _ = exp_bounds(Fraction(1), 300)
    assert worst_ratio(HalfTheNoise(1)) > Fraction(1 << 300, low) * 2
    assert HalfTheNoise(1).swapped(20_000, SeededBits(1)).mean() < 0.2 < SwappedLabels(1).flip_probability


@pytest.mark.parametrize("epsilon", ["1/100", "2", "40", "900"])
def test_the_exact_audit_encloses_epsilon(epsilon):
    found = audit_exact(SwappedLabels(epsilon), bits=SeededBits(4))
    assert found.holds, found.explain()
    assert found.epsilon_low <= Fraction(epsilon) <= found.epsilon_high < Fraction(epsilon) + Fraction(1, 10**100)


def test_the_exact_audit_catches_half_the_noise():
    found = audit_exact(HalfTheNoise("1/2"), bits=SeededBits(4))
    assert not found.law_holds
    assert found.epsilon_low == pytest.approx(1)
    assert audit_exact(SwappedLabels("1/2"), claimed_epsilon="0.49", draws=0).holds is False


@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_an_attacker_is_as_sure_of_a_label_as_it_is_often_kept(epsilon):
    """A label is a ranking of two answers."""
    sure = position_attack(rankdp.mechanism("auto", 2, epsilon), 1).posterior[0]
    assert sure == pytest.approx(1 - SwappedLabels(epsilon).flip_probability)


def test_a_swap_exchanges_the_answers_and_nothing_else():
    table = pairs(4000)
    release = rankdp.privatize_preferences(table, 1)
    assert release.value.column_names == ["prompt", "chosen", "rejected"]  # a score would give the label away
    assert release.provenance.parameters["columns_left_out"] == ["score_chosen"]
    swapped = np.array([text.startswith("bad") for text in release.value["chosen"].to_pylist()])
    for row, (chosen, rejected) in enumerate(
        zip(release.value["chosen"].to_pylist(), release.value["rejected"].to_pylist(), strict=True)
    ):
        assert {chosen, rejected} == {f"good {row}", f"bad {row}"}
    f = release.provenance.parameters["flip_probability"]
    assert f == pytest.approx(1 / (1 + math.e))
    assert abs(swapped.mean() - f) < 5 * math.sqrt(f * (1 - f) / 4000)
    assert (release.guarantee.protects, release.guarantee.epsilon, release.guarantee.local) == (OUTCOME, 1, True)


def test_one_label_that_changes_changes_one_row(tmp_path):
    """The raw-row check, on every format: same noise, a row turned round."""
    for ending, write in (("jsonl", None), ("parquet", pq.write_table)):
        outputs = []
        for turned in (False, True):
            table = pairs(50).to_pylist()
            if turned:
                table[7]["chosen"], table[7]["rejected"] = table[7]["rejected"], table[7]["chosen"]
            source, target = tmp_path / f"in{turned}.{ending}", tmp_path / f"out{turned}.{ending}"
            if write:
                write(pa.Table.from_pylist(table), source)
            else:
                source.write_text("".join(json.dumps(row) + "\n" for row in table))
            release = rankdp.privatize_preferences_file(source, target, 2, seed=9)
            read = pq.read_table(target).to_pylist() if write else [*map(json.loads, target.read_text().splitlines())]
            outputs.append((read, release.provenance.parameters))
        assert outputs[0][1] == outputs[1][1]
        assert [row for row, (a, b) in enumerate(zip(outputs[0][0], outputs[1][0], strict=True)) if a != b] == [7]


def dictionary_order(column):
    """The texts that a column's dictionaries list, in their order."""
    return [text for chunk in column.chunks for text in chunk.dictionary.to_pylist()]


@pytest.mark.parametrize("ending", ["csv", "parquet", "frame"])
def test_how_texts_are_kept_says_nothing_about_labels(tmp_path, ending):
    table = pairs(200).select(["prompt", "chosen", "rejected"])
    source = table
    if ending == "csv":
        pc.write_csv(table, source := tmp_path / "in.csv")
    elif ending == "parquet":
        pq.write_table(table, source := tmp_path / "in.parquet")
    else:
        both = pa.array([*table["chosen"].to_pylist(), *table["rejected"].to_pylist()]).dictionary_encode()
        source = table.set_column(1, "chosen", both[:200]).set_column(2, "rejected", both[200:])
        source = source.replace_schema_metadata({"notes": "the good ones are better"})
    release = rankdp.privatize_preferences(source, 1)
    assert [release.value.schema.field(name).type for name in ("chosen", "rejected")] == [pa.string()] * 2
    assert not release.value.schema.metadata
    target = tmp_path / "out.parquet"
    rankdp.privatize_preferences_file(source, target, 1) if ending != "frame" else pq.write_table(release.value, target)
    for name in ("chosen", "rejected"):  # in Parquet a dictionary lists what the rows say, in their order
        column = pq.ParquetFile(target, read_dictionary=[name]).read()[name]
        assert dictionary_order(column) == column.to_pylist()
    kind = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    nested = pa.array([[text] for text in table["chosen"].to_pylist()], kind)
    messages = pa.table({"chosen": nested, "rejected": nested})
    with pytest.raises(InputError, match="the column 'chosen' must hold plain values"):
        rankdp.privatize_preferences(messages, 1)


def messages(texts):
    roles = pa.array(["assistant"] * len(texts))
    one = pa.StructArray.from_arrays([roles, texts.combine_chunks()], ["role", "content"])
    return pa.ListArray.from_arrays(range(len(texts) + 1), one)


SIDES = ("chosen", "rejected")
FORMS = {
    "plain": lambda table: table,
    "dictionaries": lambda table: pa.table({name: table[name].dictionary_encode() for name in SIDES}),
    "pandas categories": lambda table: table.to_pandas().astype("category"),
    "polars categories": lambda table: pl.from_arrow(table).with_columns(pl.all().cast(pl.Categorical)),
    "views": lambda table: pa.table({name: table[name].cast(pa.string_view()) for name in SIDES}),
    "messages": lambda table: pa.table({name: messages(table[name]) for name in SIDES}),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_of_a_release_follow_from_its_rows(form):
    """Two tables that differ in one label, and draws that undo it: both releases are the same byte by byte."""
    good, bad = (pa.array([f"{word} {row}" for row in range(5)]) for word in ("good", "bad"))
    first = np.arange(5) == 0
    chosen, rejected = (np.where(first, one, two) for one, two in ((bad, good), (good, bad)))
    written = []
    for one, other, swap in ((good, bad, np.zeros(5, bool)), (chosen, rejected, first)):
        table = FORMS[form](pa.table({"chosen": pa.array(one, pa.string()), "rejected": pa.array(other, pa.string())}))
        released = preferences._read(table, None, None, ("a", "b"), ()).swapped(swap)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, released.schema) as out:
            out.write_table(released)
        written.append((stream.getvalue().to_pybytes(), preferences._encoded(released, ".parquet")))
    assert written[0] == written[1]


def test_a_label_column_is_swapped_between_its_two_values():
    table = pa.table(
        {
            "question": ["q"] * 3000,
            "response_a": ["x"] * 3000,
            "response_b": ["y"] * 3000,
            "label": ["A", "b", "a"] * 1000,
        }
    )
    release = rankdp.privatize_preferences(table, 3)
    found = np.array(release.value["label"].to_pylist())
    assert set(found.tolist()) == {"a", "b"}
    f = release.provenance.parameters["flip_probability"]
    assert np.mean(found != np.array(["a", "b", "a"] * 1000)) == pytest.approx(f, abs=5 * math.sqrt(f / 3000))
    with pytest.raises(InputError, match="frame, row 1: 'label' must be 0 or 1, got 'A'; labels names the two values"):
        rankdp.privatize_preferences(table, 3, labels=("0", "1"))


def test_all_labels_of_a_rater_together():
    table = pairs(90, rater=[f" r{row % 9} " for row in range(90)])
    release = rankdp.privatize_preferences(table, 2, max_per_voter=4)
    facts = release.provenance.parameters
    assert (len(release.value), facts["rows_dropped"], facts["label_epsilon"]) == (36, 54, "1/2")
    assert release.value["prompt"].to_pylist() == [f"p{row}" for row in range(36)]
    assert (release.guarantee.epsilon, release.guarantee.rows_per_voter) == (2, 4)
    assert "epsilon is for all of them together" in release.explain()
    assert "protected less" not in release.explain()


def test_a_ledger_pays_before_anything_is_drawn(tmp_path):
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "pairs", OUTCOME, 3)
    rankdp.privatize_preferences(pairs(), 2, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        rankdp.privatize_preferences(pairs(), 2, ledger=ledger)


def test_messages_are_not_written_as_csv_and_cost_nothing(tmp_path):
    texts = pa.chunked_array([["good", "bad"]])
    pq.write_table(pa.table({name: messages(texts) for name in SIDES}), tmp_path / "pairs.parquet")
    ledger = rankdp.Ledger.create(tmp_path / "budget.db", "pairs", OUTCOME, 3)
    with pytest.raises(InputError, match=r"out\.csv: the column 'chosen' holds lists or structures, which CSV cannot"):
        preferences.privatize_preferences_file(tmp_path / "pairs.parquet", tmp_path / "out.csv", 1, ledger=ledger)
    assert ledger.budgets[0].standing.epsilon == 0
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == []


def test_the_command(tmp_path):
    source, target = tmp_path / "pairs.jsonl", tmp_path / "private.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in pairs(30).to_pylist()))
    run = CliRunner().invoke(cli, ["preferences", str(source), str(target), "--epsilon", "2"])
    assert run.exit_code == 0, run.output
    assert "wrote" in run.output
    assert "swapped with probability 0.1192" in " ".join(run.output.split())
    sidecar = json.loads((tmp_path / "private.jsonl.release.json").read_text())
    assert sidecar["parameters"]["flip_probability"] == pytest.approx(0.1192, abs=1e-4)
    assert len(target.read_text().splitlines()) == 30


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (pairs(), {}, "epsilon must be given"),
        (pairs(), {"epsilon": 0}, "epsilon must be"),
        (pairs(), {"epsilon": 1, "max_per_voter": 2}, "max_per_voter needs a column of raters"),
        (pairs(), {"epsilon": 1, "keep": ["nothing"]}, "there is no column 'nothing'"),
        (pairs().drop(["rejected"]), {"epsilon": 1}, "columns must be prompt, chosen, rejected or"),
        (pairs(0), {"epsilon": 1}, "there are no rows"),
        (pairs(2).set_column(1, "chosen", pa.array(["x", None])), {"epsilon": 1}, "row 2: 'chosen' must not be"),
        (pairs(), {"epsilon": 1, "max_per_voter": 1, "voter_column": "chosen"}, "'chosen' belongs to the pairs"),
        (pairs(), {"epsilon": 1, "labels": ("a", "A")}, "labels must be two different values"),
        (pairs(2, Chosen=["x", "y"]), {"epsilon": 1}, "'chosen' and 'Chosen' are both called chosen; rename"),
        (pairs(2, rater=["x", "y"], Rater=["y", "x"]), {"epsilon": 1}, "'rater' and 'Rater' are both called rater"),
    ],
)
def test_what_is_refused(table, options, words):
    with pytest.raises(InputError, match=words):
        rankdp.privatize_preferences(table, **options)


def test_a_named_column_of_raters_is_not_ambiguous():
    table = pairs(2, rater=["x", "y"], Rater=["y", "x"])
    release = rankdp.privatize_preferences(table, 1, max_per_voter=1, voter_column="Rater", seed=1)
    assert release.value.column_names == ["prompt", "chosen", "rejected", "Rater"]


# -- learning --------------------------------------------------------------------------------------------------------


def simulated(rows, epsilon, seed=1, width=5):
    """Features of answers as labelled privately, and the true weights, of norm 1."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=width)
    weights /= np.linalg.norm(weights)
    one, other = rng.normal(size=(2, rows, width))
    first = rng.random(rows) < 1 / (1 + np.exp(-(one - other) @ weights))
    mechanism = SwappedLabels(epsilon)
    first ^= mechanism.swapped(rows, SeededBits(seed))
    return (
        np.where(first[:, None], one, other),
        np.where(first[:, None], other, one),
        weights,
        mechanism.flip_probability,
    )


def test_the_debiased_reward_model_finds_the_weights_and_the_naive_one_does_not():
    chosen, rejected, weights, flip = simulated(40_000, 1)
    found = LinearRewardModel(flip).fit(chosen, rejected)
    naive = LinearRewardModel(0).fit(chosen, rejected)
    assert np.linalg.norm(found.coef_ - weights) < 0.1
    assert np.linalg.norm(naive.coef_ - weights) > 0.4
    assert found.predict(chosen).shape == (40_000,)
    with pytest.raises(InputError, match="flip must be at least 0 and below"):
        LinearRewardModel(0.5)


def test_the_loss_has_the_mean_of_the_true_label():
    torch = pytest.importorskip("torch")
    from rankdp.learn import dpo_loss, preference_loss

    difference, flip = torch.tensor([-2.0, 0.3, 5.0], dtype=torch.float64), 0.27
    mean = (1 - flip) * preference_loss(difference, flip) + flip * preference_loss(-difference, flip)
    true = torch.nn.functional.softplus(-difference)
    assert torch.allclose(mean, true)
    by_formula = ((1 - flip) * true - flip * torch.nn.functional.softplus(difference)) / (1 - 2 * flip)
    assert torch.allclose(preference_loss(difference, flip), by_formula)
    zero = torch.zeros(3, dtype=torch.float64)
    assert torch.allclose(dpo_loss(difference, zero, zero, zero, flip, beta=0.5), preference_loss(difference / 2, flip))
