"""Cai's figures and errata: experiments against closed forms, enumeration and the library's own numbers."""

import importlib
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rankdp.data.counts import PairCounts
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.rankers.bradley_terry import fit
from rankdp.rankers.links import LOGISTIC
from rankdp_papers import cai
from rankdp_papers.cai import (
    algorithms,
    corrections,
    drawn_votes,
    misprints,
    private_rates,
    ridge_constant,
    rounding_attack,
    students,
)
from rankdp_papers.experiment import Cell
from rankdp_papers.specification import load

pytestmark = pytest.mark.slow

NAMES = sorted(path.stem for path in Path(cai.__file__).parent.glob("*.toml"))
SMALL = {"items": 24, "p": 0.5, "epsilon": 1}


def value(rows, **where):
    """The one row with these columns."""
    found = [row for row in rows if all(row[name] == wanted for name, wanted in where.items())]
    assert len(found) == 1, f"{len(found)} rows with {where}"
    return found[0]["value"]


def listed(one):
    return one if isinstance(one, list) else [one]


# -- the specifications ------------------------------------------------------------------------------------------


def test_every_figure_of_the_paper_is_there():
    assert {f"figure{number}" for number in range(1, 8)} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_specification_runs_and_has_what_its_figure_and_claims_name(name, data_directory, monkeypatch):
    monkeypatch.setenv("RANKDP_DATA", str(data_directory))
    plain = tomllib.loads((Path(cai.__file__).parent / f"{name}.toml").read_text("utf-8"))
    specification = load(f"cai/{name}")
    module, function = specification.experiment.split(".")
    experiment = getattr(importlib.import_module(f"rankdp_papers.cai.{module}"), function)
    rows = []
    for cell in {cell.values.get("case"): cell for cell in reversed(specification.cells("quick"))}.values():
        small = {name: min(number, 24) if name == "items" else number for name, number in cell.values.items()}
        rows += experiment(replace(cell, values=small, repetitions=3))
    assert all(set(row) == set(rows[0]) for row in rows)
    assert all(math.isfinite(row["value"]) and math.isfinite(row["error"]) and row["error"] >= 0 for row in rows)
    grid = specification.quick.grid
    known = {column: set(values) for column, values in grid.items()} | {
        column: {row[column] for row in rows} for column in rows[0] if column not in ("value", "error")
    }
    asked = dict(plain.get("figure", {}).get("only", {}))
    for column in ("x", "lines", "panels", "rows"):
        if column in plain.get("figure", {}):
            assert plain["figure"][column] in known
    for claim in plain["claims"]:
        assert {"text", "by", "where", "check"} <= set(claim)
        for column, wanted in claim.get("select", {}).items():
            asked.setdefault(column, [])
            asked[column] = listed(asked[column]) + listed(wanted)
        if claim["check"] == "above":
            assert {claim["first"], claim["second"]} <= known[claim["column"]]
    full = specification.full.grid
    for column, wanted in asked.items():
        assert set(listed(wanted)) <= known[column] | set(full.get(column, ())), f"{column}: {wanted}"


def test_a_cell_gives_the_same_rows_again_and_others_with_another_seed():
    cell = Cell(SMALL, 3, seed=5)
    assert drawn_votes.errors(cell) == drawn_votes.errors(cell)
    assert drawn_votes.errors(cell) != drawn_votes.errors(replace(cell, seed=6))


def test_votes_are_shared_by_epsilons_and_nested_in_p():
    half = drawn_votes.poll(Cell(SMALL, 1, 5), 0)
    assert half.counts == drawn_votes.poll(Cell({**SMALL, "epsilon": 4}, 1, 5), 0).counts
    whole = drawn_votes.poll(Cell({**SMALL, "p": 1}, 1, 5), 0).counts.dense()
    kept = half.counts.dense() + half.counts.dense().T > 0
    assert 0 < kept.sum() < kept.size - len(kept)
    assert (half.counts.dense()[kept] == whole[kept]).all()


# -- the simulation ----------------------------------------------------------------------------------------------


def test_strengths_have_the_top_quarter_first_and_are_centred():
    drawn = algorithms.strengths(400, np.random.default_rng(0))
    assert drawn.sum() == pytest.approx(0, abs=1e-10)
    powers = np.exp(drawn - drawn[0])
    assert powers[:100] == pytest.approx(1)
    assert 0.2 <= powers[100:].min() < 0.22
    assert 0.68 < powers[100:].max() <= 0.7


def test_outcomes_follow_the_model():
    truth = np.array([1.0, 0.0, -1.0])
    wins = sum(drawn_votes.vote(truth, 1, 1, np.random.default_rng(seed)).counts.dense() for seed in range(4000))
    expected = LOGISTIC.cdf(truth[:, None] - truth[None, :])
    off = (wins / 4000 - expected)[~np.eye(3, dtype=bool)]
    assert np.abs(off).max() < 5 * 0.5 / math.sqrt(4000)


def test_with_all_pairs_compared_wins_and_likelihood_find_the_same_top_k():
    rows = drawn_votes.errors(Cell({**SMALL, "p": 1}, 20, 1))
    for method in ("copeland", drawn_votes.WINS_NOT_PRIVATE):
        assert value(rows, method=method, measure="lead") == 0
    below = drawn_votes.errors(Cell({"items": 60, "p": 0.25, "epsilon": 4}, 20, 1))
    assert value(below, method=drawn_votes.WINS_NOT_PRIVATE, measure="lead") < -0.02


def test_equal_scores_are_ranked_by_lot():
    lots = np.array([2, 0, 1, 3])
    assert algorithms.best_first(np.array([1.0, 1.0, 1.0 + 1e-13, 5.0]), lots).tolist() == [3, 1, 2, 0]


def test_errors_of_known_scores():
    counts = PairCounts.from_pairs([0], [1], [2], items=4)
    votes = drawn_votes.Poll(np.array([3.0, 1.0, -1.0, -3.0]), counts, 1, np.arange(4))
    found = votes.relative_errors(np.array([1.0, 3.0, -1.0, -3.0]))
    assert found == pytest.approx({"linf": 2 / 3, "l2": math.sqrt(8 / 20), "overlap": 0})


def test_the_paper_s_algorithm_has_the_paper_s_noise_and_ridge():
    one = algorithms.paper(300, 44_850, 0.5)
    assert float(one.ridge) == pytest.approx(math.sqrt(299 * math.log(300)))
    assert float(one.scale) == pytest.approx(8 / (0.5 * 249 / 250))
    few = algorithms.paper(4, 6, 0.1)  # here Proposition 2.1 asks for more ridge than the rates do
    assert float(few.ridge) == pytest.approx(4 * 0.25 / (0.1 * 249 / 250))
    assert float(few.scale) == pytest.approx(8 / (0.1 * 249 / 250))


# -- the surveys -------------------------------------------------------------------------------------------------


def test_the_surveys_are_read_as_their_publishers_describe_them(data_directory):
    cems, immigration = (students.read(data_directory / name) for name in ("cems", "immigration"))
    assert (len(cems.items), len(cems.halves), (cems.halves == 1).sum()) == (6, 4454, 487)
    assert [(immigration.halves == half).sum() for half in (2, 0, 1)] == [236, 143, 124]
    powers = np.exp(fit(cems.some(1, np.arange(4454))).theta)
    shares = dict(zip(cems.items, powers / powers.sum(), strict=True))
    # with Barcelona:Stockholm the right way round
    told = {
        "London": 0.372,
        "Paris": 0.186,
        "Barcelona": 0.129,
        "St.Gallen": 0.127,
        "Milano": 0.111,
        "Stockholm": 0.075,
    }
    assert {name: round(share, 3) for name, share in shares.items()} == told
    assert students.read(data_directory / "cems").some(0.25, np.arange(4454)).halves.sum() == 2 * round(0.25 * 4454)


def test_sampling_error_of_a_balanced_tie():
    """n items, m answers a pair, all equal: the information is m/4 (n I - J), its inverse has trace 4 (n-1)/(m n)."""
    first, second = np.triu_indices(5, 1)
    counts = PairCounts.from_pairs(first, second, np.full(10, 20), np.full(10, 20), items=5)
    assert students.sampling_error(counts, np.zeros(5)) == pytest.approx(math.sqrt(4 * 4 / (20 * 5)))


def test_distances_shrink_with_endless_epsilon_and_a_student_costs_more_than_an_answer(data_directory, monkeypatch):
    monkeypatch.setenv("RANKDP_DATA", str(data_directory))
    values = {"survey": "immigration", "copy": "corrected", "per_voter": 6, "p": 1}
    near = students.distances(Cell({**values, "epsilon": 100_000}, 3, 1))
    for measure in ("l2", "linf", "hamming"):
        assert value(near, method="bradley-terry + paper", measure=measure) < 1e-3
    without_noise = value(near, method="bradley-terry + paper, no noise", measure="l2 from likelihood")
    assert without_noise > 0.01  # the ridge alone
    assert value(near, method="bradley-terry + paper", measure="l2 from likelihood") == pytest.approx(
        without_noise, abs=1e-3
    )
    rows = students.distances(Cell({**values, "epsilon": 1}, 20, 1))
    for answer, student in (("tight", "voter"), ("paper", "paper, voter")):
        one, whole = (value(rows, method=f"bradley-terry + {unit}", measure="sampling") for unit in (answer, student))
        assert whole > 1.3 * one
    assert NoisyWins(Protection("voter", 6), 1).scale == 6 * NoisyWins(algorithms.COMPARISON, 1).scale


# -- errata ------------------------------------------------------------------------------------------------------


def test_the_density_has_the_same_total_for_every_data_set():
    """Else the ratio of what log_density gives would not be that of two densities."""
    axis = np.linspace(-18, 18, 181)
    totals = [
        sum(math.exp(misprints.log_density(np.array([x, y]), wins, 2.0, 1.5)) for x in axis for y in axis[::2])
        for wins in (((0, 1, 1),), ((1, 0, 2),))
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-2)


@pytest.mark.parametrize("scale", [0.1, 2.0, 40.0])
def test_four_items_reach_the_first_term_of_the_proof_and_never_more_than_all_of_it(scale):
    for ridge in (2.0, 41.0):
        worst = misprints.worst_ratio(scale, ridge)
        assert worst == pytest.approx(4 / scale, rel=1e-5)
        assert worst <= misprints.proof(scale, ridge)


def test_theorem_2_1_breaks_its_promise_and_the_others_keep_it():
    rows = misprints.spent(Cell({"epsilon": 1, "ridge": 41}))
    theorem, paper, tight = (f"bradley-terry + {name}" for name in ("theorem 2.1", "paper", "tight"))
    assert value(rows, method=theorem, measure="found") == pytest.approx(64, rel=1e-6)
    assert value(rows, method=paper, measure="found") == pytest.approx(0.5, rel=1e-6)
    assert 0.98 < value(rows, method=tight, measure="found") < value(rows, method=tight, measure="proof")
    assert value(rows, method=tight, measure="proof") == pytest.approx(249 / 250)


def test_one_kappa_for_both_purposes_inflates_the_ridge_226_fold():
    privacy, both = corrections.curvatures(LOGISTIC)
    assert privacy == 0.25
    assert both == pytest.approx((1 + math.exp(-4)) ** 2 / math.exp(-4))
    assert 226 < both / privacy < 227
    cell = Cell({"items": 24, "p": 1, "epsilon": 0.5}, 5, 1)
    rows = corrections.one_constant(cell)
    assert value(rows, method="for all of (2.4)", measure="l2") > 0.9  # shrunk to next to nothing


def test_corrections_lower_the_error():
    rows = corrections.worth(Cell(SMALL, 10, 1))
    outcome, least, paper = (
        value(rows, method=method, measure="l2")
        for method in (corrections.OUTCOME, "the least noise, our ridge", "the paper's noise, c0 = 1")
    )
    assert outcome < least < paper


def test_the_best_constant_is_public_and_follows_the_noise():
    """More noise asks for a larger ridge; the choice depends on sizes and epsilon alone."""
    small, large, none = (ridge_constant.best_constant(40, 780, epsilon) for epsilon in (0.5, 20, None))
    assert small > large >= none
    assert ridge_constant.best_constant(40, 780, 0.5) == small
    counts = ridge_constant.pilot_votes(np.zeros(5), 23, np.random.default_rng(0))
    assert sorted(counts.comparisons.tolist()) == [2] * 7 + [3] * 3


def test_the_papers_error_depends_on_its_constant_and_ours_does_not():
    rows = corrections.sensitivity(Cell({"items": 24, "p": 1, "epsilon": 0.5}, 4, 1))
    assert {row["c0"] for row in rows} == set(ridge_constant.CONSTANTS)
    assert value(rows, method="bradley-terry + paper", c0=0.1) > 2 * value(rows, method="bradley-terry + paper", c0=4.0)
    assert value(rows, method="bradley-terry + tight", c0=0.1) == value(rows, method="bradley-terry + tight", c0=4.0)


def test_errors_are_divided_by_the_printed_rates():
    """The error itself from Algorithm 1 on the same votes with the same noise, and the rates by hand."""
    cell = Cell({"items": 24, "p": 1, "epsilon": 0.9, "c0": 1}, 3, 1)
    rows, size, errors = private_rates.over_the_rates(cell), (24, 276), []
    mechanism = algorithms.paper(*size, 0.9, math.sqrt(23 * math.log(24)))
    for repetition in range(3):
        votes = drawn_votes.poll(cell, repetition)
        noisy = algorithms.perturbed(mechanism, votes.counts, cell.bits("noise", 24, 1.0, 0.9, 1.0, repetition))
        errors.append(np.abs(noisy - votes.truth).max())
    rate = math.sqrt(math.log(24) / 24) + math.log(24) / (24 * 0.9)
    assert value(rows, measure="linf over (2.7)") == pytest.approx(np.mean(errors) / rate)
    assert value(rows, measure="squared l2 over (2.5)") > 0


def test_no_table_separates_all_items_by_the_unit():
    """The sum for three items: (3-1) (sqrt(log 3/3) + log 3/(3 eps))."""
    (row,) = private_rates.separations(Cell({"items": 3, "epsilon": 1}))
    assert row["value"] == pytest.approx(2 * (math.sqrt(math.log(3) / 3) + math.log(3) / 3))


def test_the_other_copy_of_the_survey_turns_one_pair_round():
    names = ("London", "Barcelona", "Stockholm")
    one = students.Answers(names, np.array([0, 1, 2, 1]), np.array([1, 2, 1, 0]), np.array([2, 2, 1, 0]))
    assert one.reversed("Barcelona", "Stockholm").halves.tolist() == [2, 0, 1, 0]


def test_printed_generator_ties_three_quarters_of_the_items():
    drawn = misprints.as_printed(100, np.random.default_rng(0))
    assert (drawn == drawn.max()).sum() == 76
    lots = [np.random.default_rng(seed).permutation(100) for seed in range(2000)]
    found = [(algorithms.best_first(drawn, one)[:25] < 25).mean() for one in lots]
    exact = value(misprints.overlap(Cell({"items": 100, "p": 1, "generator": "printed"}, 2, 1)), method=misprints.TRUTH)
    assert exact == 25 / 76
    assert np.mean(found) == pytest.approx(exact, abs=5 * 0.09 / math.sqrt(2000))


def test_probit_influence_grows_and_the_library_refuses_it():
    at = misprints.of_probit(np.array([0.0, 30.0]))
    assert at[0] == pytest.approx(4 / math.sqrt(2 * math.pi))
    assert at[1] == pytest.approx(30 + 1 / 30, abs=1e-3)  # the hazard rate of the normal law, x + 1/x - …
    assert misprints.of_link(LOGISTIC, np.linspace(-20, 20, 101)) == pytest.approx(1)
    rows = misprints.influence(Cell({"reach": 4}))
    refused = {row["link"] for row in rows if row["measure"] == "refused" and row["value"]}
    assert refused == {"probit"}


def test_single_precision_noise_gives_the_secret_away_and_the_library_does_not():
    rows = rounding_attack.leak(Cell({"items": 8, "epsilon": 1}, 60, 3))
    assert value(rows, method=rounding_attack.NAIVE, measure="digits") == 1
    assert 0.25 < value(rows, method=rounding_attack.OURS, measure="digits") < 0.75  # four standard errors
    assert rows[0]["limit"] == pytest.approx(math.e / (1 + math.e))


def test_the_attacked_tables_are_neighbours_and_undoing_the_fit_gives_the_noise_back():
    mechanism = algorithms.tight(6, 15, 1)
    case = rounding_attack._Case.drawn(np.random.default_rng(1), 6, mechanism)
    one, other = (counts.dense() for counts in case.neighbours)
    assert np.abs(one - other).sum() == 2
    assert one[0, 1] == other[2, 3] == 1
    assert one[2, 3] == one[3, 2] == other[0, 1] == other[1, 0] == 0
    noise = np.linspace(-9, 9, 6)
    scores = fit(case.neighbours[0], ridge=float(mechanism.ridge), linear=noise, tolerance=1e-12).theta
    assert case._noise(case.neighbours[0], scores) == pytest.approx(noise, abs=1e-10)


def test_extra_noise_is_that_of_the_mechanism():
    """Releases of the same noisy minimiser spread by as much as the closed form says."""
    mechanism = algorithms.tight(6, 15, 1)
    steps = math.sqrt(2) * float(mechanism.output_scale) * 2.0**-44
    assert rounding_attack.extra_noise(mechanism) == pytest.approx(steps * math.sqrt(15 / 6 / 2), rel=1e-3)
    counts = rounding_attack._Case.drawn(np.random.default_rng(1), 6, mechanism).neighbours[0]
    released = mechanism.sample(counts, SeededBits(4)) / 2.0**-44
    assert (released == np.rint(released)).all()


@pytest.mark.parametrize(
    "text",
    ["", "item_1,item_2\na,b\n", "item_1,item_2,outcome\na,b,won\n", "item_1,item_2,outcome\na,b,2\n", None],
)
def test_a_survey_that_is_not_one_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "comparisons.csv").write_text(text)
    with pytest.raises(InputError, match=r"comparisons.csv must have the columns item_1, item_2 and outcome"):
        students.read(tmp_path)
