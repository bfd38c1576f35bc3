"""The numbers that choosing rests on: how much of the order each mechanism keeps, and where one overtakes another."""

from fractions import Fraction
from pathlib import Path

import pytest

import rankdp
from rankdp.mechanisms.registry import respondents_for_one

# share of pairs kept in order: items, epsilon, then a column for each of NAMES
TABLE = [
    (5, 1, 0.632, 0.625, 0.613, 0.607, 0.596, 0.602, 0.562),
    (5, 4, 0.943, 0.943, 0.937, 0.937, 0.794, 0.825, 0.713),
    (6, 2, 0.748, 0.741, 0.733, 0.728, 0.673, 0.677, 0.611),
    (6, 4, 0.933, 0.933, 0.929, 0.929, 0.786, 0.803, 0.701),
    (10, 1, None, 0.588, 0.600, 0.586, 0.588, 0.576, None),
    (10, 4, None, 0.902, 0.901, 0.901, 0.770, 0.758, None),
    (50, 4, None, None, 0.875, 0.770, 0.750, 0.706, None),
    (100, 2, None, None, 0.720, 0.577, 0.650, 0.611, None),
    (100, 6, None, None, 0.950, 0.890, 0.808, 0.765, None),
]
NAMES = ["optimal", "ulam", "tiers", "reinsertion", "noisy-ranks", "kendall", "laplace"]

EPSILONS = (0.5, 1, 2, 4, 8)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"m={row[0]} eps={row[1]}")
def test_share_of_concordant_pairs_kept(row):
    items, epsilon, *expected = row
    kept = [
        None if value is None else round(rankdp.mechanism(name, items, epsilon).expected_concordance(), 3)
        for name, value in zip(NAMES, expected, strict=True)
    ]
    assert kept == expected


@pytest.mark.slow
@pytest.mark.parametrize("items", [5, 10, 20, 50, pytest.param(100, marks=pytest.mark.long)])
def test_what_auto_takes_is_on_the_page(items):
    best = [rankdp.mechanism("auto", items, epsilon) for epsilon in EPSILONS]
    cells = [f"{one.name} {one.expected_concordance():.3f}, {respondents_for_one(one):.3g}" for one in best]
    page = Path(__file__).parents[2] / "docs" / "mechanisms.md"
    assert f"| {items} | {' | '.join(cells)} |" in page.read_text(encoding="utf-8")


def lead(items, epsilon):
    """What reinsertion keeps beyond Kendall."""
    kept = [rankdp.mechanism(name, items, epsilon).expected_concordance() for name in ("reinsertion", "kendall")]
    return kept[0] - kept[1]


@pytest.mark.parametrize(("items", "about"), [(50, 2.5), (100, 4), (300, 5.5), (1000, 7)])
def test_where_reinsertion_overtakes_kendall(items, about):
    assert lead(items, Fraction(str(about)) - Fraction(1, 4)) < 0 < lead(items, Fraction(str(about)) + Fraction(1, 4))


@pytest.mark.parametrize("items", [6, 10, 15, 20])
def test_for_up_to_twenty_items_reinsertion_leads_from_eps_of_one_on(items):
    assert all(lead(items, epsilon) > 0 for epsilon in (1, 2, 4, 8))
    assert lead(items, Fraction(1, 5)) < 0
