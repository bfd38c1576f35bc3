"""What public numbers can refuse is refused before the ledger is charged."""

import numpy as np
import pyarrow as pa
import pytest

import rankdp
from rankdp.errors import RankdpError

VOTES = {
    "voter": ["a", "b", "c"],
    "left": ["x", "y", "x"],
    "right": ["y", "z", "z"],
    "winner": ["left"] * 3,
}
ITEMS = ["x", "y", "z"]
UNITS = {
    "outcome": "one comparison's outcome",
    "comparison": "one comparison",
}
MANY = {f"c{number}": [0.1 * number] * 3 for number in range(201)}
PRIORS = (1e-300, 1e-9, 0.0099, 10.1, 1e12, 1e308)


def refused(tmp_path, make, protects):
    """The sentence of the refusal; nothing is spent after it."""
    ledger = rankdp.Ledger.create(tmp_path / "ledger.db", "poll", protects, 10**6, "1/2")
    with pytest.raises(RankdpError) as refusal:
        make(ledger)
    (budget,) = ledger.budgets
    assert budget.standing.epsilon == 0
    assert ledger.history() == []
    assert not getattr(refusal.value, "__notes__", [])
    return str(refusal.value)


def board(tmp_path, epsilon=1, votes=None, **asked):
    protects = UNITS.get(asked["protect"], "one voter")
    table = pa.table(votes or VOTES)
    return refused(tmp_path, lambda ledger: rankdp.rank(table, epsilon, items=ITEMS, ledger=ledger, **asked), protects)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("protect", UNITS)
def test_priors_out_of_proportion(tmp_path, protect, prior):
    assert "prior must lie between 0.01 and 10, got " in board(tmp_path, protect=protect, prior=prior)


@pytest.mark.parametrize("method", ["wins", "bradley-terry", "copeland"])
@pytest.mark.parametrize(("bound", "epsilon"), [(10**17, 1), (2**31 + 1, 1), (2**31, "0.99"), (300, "1e-7")])
def test_bounds_beyond_the_noise_that_can_be_drawn(tmp_path, method, bound, epsilon):
    said = board(tmp_path, epsilon, protect="voter", max_per_voter=bound, method=method)
    assert "max_per_voter must be at most" in said
    assert f"got {bound:,}" in said


@pytest.mark.parametrize("protect", UNITS)
@pytest.mark.parametrize("epsilon", ["1e-15", "4e-10", "1000001"])
def test_epsilons_beyond_the_arithmetic(tmp_path, protect, epsilon):
    assert "epsilon must be at" in board(tmp_path, epsilon, protect=protect)


@pytest.mark.parametrize("delta", [1e-320, "1e-301", "1e-1000"])
def test_deltas_that_doubles_do_not_hold(tmp_path, delta):
    assert "delta must be 0 or at least 1e-300" in board(tmp_path, protect="outcome", delta=delta)
    (tmp_path / "ledger.db").unlink()
    said = refused(
        tmp_path,
        lambda ledger: rankdp.elect([["a", "b"]], 1, items=["a", "b"], rule="borda", delta=delta, ledger=ledger),
        "one ballot",
    )
    assert "delta must be 0 or at least 1e-300" in said


def test_too_many_covariates(tmp_path):
    said = board(tmp_path, votes=VOTES | MANY, protect="outcome", covariates=[f"{name}:1" for name in MANY])
    assert "covariates must be at most 200 in number, got 201" in said


def test_covariates_without_a_row(tmp_path):
    elsewhere = VOTES | {"left": ["p"] * 3, "right": ["q"] * 3, "c": [0.5] * 3}
    said = board(tmp_path, votes=elsewhere, protect="outcome", on_problem="drop", covariates="c:1")
    assert "there are no comparisons" in said


def test_a_category_gets_too_little_of_epsilon(tmp_path):
    table = pa.table(VOTES | {"kind": ["big", "small", "big"]})
    said = refused(
        tmp_path,
        lambda ledger: rankdp.rank_by(
            table, 1, by="kind", protect="comparison", items=ITEMS, categories={"big": 1, "small": 1e-12}, ledger=ledger
        ),
        "one comparison",
    )
    assert "epsilon must be at least" in said


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.01, 10])
@pytest.mark.parametrize("pairing", ["unknown", "random", "matched"])
@pytest.mark.parametrize("epsilon", ["1e-9", 1, 10**6])
@pytest.mark.parametrize(("protect", "bound"), [("outcome", 1), ("comparison", 1), ("voter", 1), ("voter", 2**31)])
def test_what_is_just_allowed_is_released(protect, prior, pairing, epsilon, bound):
    bound = min(bound, int(2**31 * float(epsilon)))
    asked = {"protect": protect, "prior": prior, "pairing": pairing}
    asked |= {"max_per_voter": bound} if protect == "voter" else {}
    for items in (ITEMS, [*ITEMS, *(f"other {k}" for k in range(9))]):
        release = rankdp.rank(pa.table(VOTES), epsilon, items=items, **asked)
        assert sorted(row["item"] for row in release.value.rows()) == sorted(items)
        assert np.isfinite(release.value.scores).all()
