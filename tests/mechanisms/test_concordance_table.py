"""The numbers that choosing rests on: how much of the order each mechanism keeps, and where one overtakes another."""

from fractions import Fraction

import pytest

import rankdp

# items, epsilon, best possible, Ulam, reinsertion, Kendall, Laplace on ranks: share of pairs kept in order
TABLE = [
    (5, 1, 0.632, 0.625, 0.604, 0.602, 0.562),
    (5, 4, 0.943, 0.943, 0.937, 0.825, 0.713),
    (6, 2, 0.748, 0.741, 0.728, 0.677, 0.611),
    (6, 4, 0.933, 0.933, 0.929, 0.803, 0.701),
    (10, 1, None, 0.588, 0.586, 0.576, None),
    (10, 4, None, 0.902, 0.901, 0.758, None),
    (50, 4, None, None, 0.770, 0.706, None),
    (100, 2, None, None, 0.577, 0.611, None),
    (100, 6, None, None, 0.890, 0.765, None),
]
NAMES = ["optimal", "ulam", "reinsertion", "kendall", "laplace"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"m={row[0]} eps={row[1]}")
def test_share_of_concordant_pairs_kept(row):
    items, epsilon, *expected = row
    kept = [
        None if value is None else round(rankdp.mechanism(name, items, epsilon).expected_concordance(), 3)
        for name, value in zip(NAMES, expected, strict=True)
    ]
    assert kept == expected


def lead(items, epsilon):
    """What reinsertion keeps beyond Kendall."""
    kept = [rankdp.mechanism(name, items, epsilon).expected_concordance() for name in ("reinsertion", "kendall")]
    return kept[0] - kept[1]


@pytest.mark.parametrize(("items", "about"), [(5, 1), (50, 2.5), (100, 4), (300, 5.5), (1000, 7)])
def test_where_reinsertion_overtakes_kendall(items, about):
    assert lead(items, Fraction(str(about)) - Fraction(1, 4)) < 0 < lead(items, Fraction(str(about)) + Fraction(1, 4))


@pytest.mark.parametrize("items", [6, 10, 15, 20])
def test_for_up_to_twenty_items_reinsertion_leads_from_eps_of_one_on(items):
    assert all(lead(items, epsilon) > 0 for epsilon in (1, 2, 4, 8))
    assert lead(items, Fraction(1, 5)) < 0
