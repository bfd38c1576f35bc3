"""The public data sets load, with the numbers that their descriptions give."""

from __future__ import annotations

import numpy as np
import pytest

from rankdp.data import Rankings
from rankdp.data.files import open_rankings
from rankdp.errors import InputError

SIZES = {
    "sushi/sushi3a_rankings.csv": (5000, 10, 10),
    "sushi/sushi3a_rankings_itemids.csv": (5000, 10, 10),
    "sushi/sushi3b_rankings.csv": (5000, 10, 100),
    "carconf/rankings.csv": (435, 6, 6),
    "nascar2002/rankings.csv": (36, 43, 87),
    "preflib_agh_courses/agh_2003.csv": (146, 9, 9),
    "preflib_agh_courses/agh_2004.csv": (153, 7, 7),
    "preflib_debian/debian_logo.csv": (143, 8, 8),
    "preflib_irish2002/dublin_north_2002.csv": (43_942, 12, 12),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(data_directory, tmp_path, name):
    path = data_directory / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    rankings = Rankings.read(path)
    rows, width, items = SIZES[name]
    assert rankings.orders.shape == (rows, width)
    assert len(rankings.items) == items
    assert rankings.voters.tolist() == [str(number) for number in range(1, rows + 1)]
    rankings.write(tmp_path / "copy.parquet")
    assert Rankings.read(tmp_path / "copy.parquet") == rankings


def read(directory, name):
    path = directory / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return Rankings.read(path)


def test_sushi(data_directory):
    rankings = read(data_directory, "sushi/sushi3a_rankings.csv")
    assert rankings.complete
    assert len(np.unique(rankings.orders, axis=0)) == 4926
    tops = dict(zip(*np.unique([row[0] for row in rankings], return_counts=True), strict=True))
    want = {"toro": 1713, "uni": 747, "anago": 550, "ikura": 545, "ebi": 458}
    want |= {"maguro": 404, "ika": 228, "tamago": 206, "tekka_maki": 113, "kappa_maki": 36}
    assert tops == want
    mean = dict(zip(rankings.items, rankings.ranks().mean(axis=0).round(2).tolist(), strict=True))
    assert mean["toro"] == min(mean.values()) == 3.11
    assert mean["kappa_maki"] == max(mean.values()) == 8.01


def test_partial_rankings(data_directory):
    cars = read(data_directory, "carconf/rankings.csv")
    assert round(float(cars.lengths.mean()), 2) == 5.51
    assert round(float((cars.lengths == 6).mean()), 3) == 0.761
    irish = read(data_directory, "preflib_irish2002/dublin_north_2002.csv")
    assert round(float(irish.lengths.mean()), 2) == 4.98
    assert round(float((irish.lengths == 12).mean()), 3) == 0.083
    logo = read(data_directory, "preflib_debian/debian_logo.csv")
    assert round(float((logo.lengths == 8).mean()), 3) == 0.266


def test_debian(data_directory):
    paths = sorted((data_directory / "preflib_debian").glob("debian_*_leader.csv"))
    if not paths:
        pytest.skip("the Debian votes are not here")
    for path in paths:
        rankings = Rankings.read(path)
        assert 403 <= len(rankings) <= 504
        assert 4 <= len(rankings.items) <= 9
        assert any(name.lower() == "none of the above" for name in rankings.items)


def test_courses_are_complete_and_in_natural_order(data_directory):
    rankings = read(data_directory, "preflib_agh_courses/agh_2003.csv")
    assert rankings.complete
    assert rankings.items == tuple(f"Course {k}" for k in range(1, 10))


def test_scores_of_people_are_ratings(data_directory):
    """Equal scores are ties, which are refused for rankings unless the caller says how to break them."""
    path = data_directory / "sushi/sushi3b_scores_long.csv"
    if not path.exists():
        pytest.skip("the sushi scores are not here")
    with pytest.raises(InputError, match="'ika' and 'nattou' are tied at rank 1"):
        open_rankings(path)
