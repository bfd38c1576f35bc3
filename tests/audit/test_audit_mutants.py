"""Every mutant is caught by at least one named check, and honest mechanisms by none."""

import pytest
from audit_mutants import MUTANTS, mutant_table, results

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant):
    caught = [name for name in mutant.checks if mutant.catches(name)]
    if mutant.honest:
        assert not caught
    else:
        assert caught


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("half the noise", "exact: law"),
        ("half the noise", "statistical"),
        ("half the noise in the draws alone", "exact: sampler"),
        ("tiers with twice the weight", "exact: law"),
        ("tiers with a size off by one", "exact: law"),
        ("tiers compared by < instead of <=", "exact: sampler"),
        ("Ulam with twice the rate", "exact: law"),
        ("Ulam with tableaux instead of pairs", "exact: law"),
        ("Ulam with its order turned round", "exact: sampler"),
        ("sensitivity 1 instead of 2", "exact: law"),
        ("sensitivity 1 instead of 2", "statistical"),
        ("a seed reused for every row", "independence"),
        ("a seed reused for every call", "independence"),
        ("NumPy floats, epsilon 200", "exact: law"),
        ("scores with NumPy's Laplace noise", "statistical"),
        ("contribution bounding skipped", "statistical"),
        ("bounded comparisons", "statistical"),
        ("unpaid answers", "statistical"),
        ("repeated voters", "statistical"),
        ("centring forgotten in the sensitivity", "exact: law"),
        ("centring forgotten in the sensitivity", "statistical"),
        ("replacement taken for removal", "exact: law"),
        ("replacement taken for removal", "statistical"),
        ("permute-and-flip's zCDP at eps^2/8", "exact: law"),
        ("margins with floats for noise", "statistical"),
    ],
)
def test_the_check_that_must_catch_it(name, check):
    (mutant,) = (one for one in MUTANTS if one.name == name)
    assert mutant.catches(check)


def test_the_table_for_the_documents():
    text = mutant_table([("half", {"exact": True, "statistical": False}), ("seed", {"independence": True})])
    assert text.splitlines() == [
        "| mutant | exact | statistical | independence |",
        "|---|---|---|---|",
        "| half | caught | – |  |",
        "| seed |  |  | caught |",
    ]
    assert len(results(MUTANTS[-2:])) == 2
