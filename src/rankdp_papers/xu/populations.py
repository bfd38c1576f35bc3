"""The paper's two learning experiments (Xu, Sections 6.3 and 6.4), with and without debiasing, at any size.

Simulated: features of users and items uniform on [-3, 3]^4. The paper's preference r_ui = a . x_u + b . y_i gives all
users the *same* ranking, as a . x_u drops out of every comparison (``personal=False``); ``personal=True`` adds
x_u' W y_i, and there may be noise, so that users differ. Sushi: 3,000 users to train and 2,000 to test, five kinds
(tuna, salmon roe, tamago, fatty tuna, cucumber roll) or all ten.

Training rankings go through a mechanism; the accuracy is the share of pairs in order on the *true* rankings of users
who were not trained on. Draws are rehearsals (seeded): nothing here is a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.learn.training_files import ITEM_COLUMNS, USER_COLUMNS, read_features
from rankdp.types import Floats, Ints

SUSHI_FIVE = ("maguro", "ikura", "tamago", "toro", "kappa_maki")
_USER_FEATURES = ("gender", "age_band", "eastwest_childhood", "eastwest_now", "moved")
_ITEM_FEATURES = ("style", "major_group", "oiliness", "frequency_eaten", "price_normalized", "frequency_sold")


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Features and true orders of the users to train on and of those to test on."""

    items: Floats
    users: Floats
    orders: Ints
    test_users: Floats
    test_orders: Ints


def simulated(
    users: int, items: int, seed: int, *, test_users: int = 1000, personal: bool = False, noise: float = 0.0
) -> Setting:
    """Section 6.3; ``noise`` is the scale of a Gumbel variable added to every preference."""
    draw = np.random.default_rng(seed)
    everyone, things = draw.uniform(-3, 3, (users + test_users, 4)), draw.uniform(-3, 3, (items, 4))
    scores = np.broadcast_to(things @ draw.normal(size=4), (users + test_users, items))
    if personal:
        scores = scores + everyone @ draw.normal(size=(4, 4)) @ things.T / 3
    scores = scores + noise * draw.gumbel(size=scores.shape)
    orders = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)
    return Setting(things, everyone[:users], orders[:users], everyone[users:], orders[users:])


def sushi(
    directory: str | Path, seed: int, *, items: tuple[str, ...] | None = SUSHI_FIVE, train: int = 3000
) -> Setting:
    """Section 6.4, from a directory of data sets that holds sushi/ (see its README for the terms)."""
    home = Path(directory) / "sushi"
    if not home.is_dir():
        raise InputError(f"{home}: there is no such directory; RANKDP_DATA names the directory of the data sets")
    people = read_features(home / "users.csv", USER_COLUMNS, None, _USER_FEATURES)
    things = read_features(home / "items_a.csv", ITEM_COLUMNS, None, _ITEM_FEATURES)
    orders = Rankings.read(home / "sushi3a_rankings.csv", items=things.ids).orders
    kept = [things.ids.index(name) for name in items or things.ids]
    place = np.full(len(things.ids), -1, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    fewer = place[orders]
    fewer = np.ascontiguousarray(fewer[fewer >= 0].reshape(len(orders), len(kept)))
    shuffled = np.random.default_rng(seed).permutation(len(orders))
    first, rest = shuffled[:train], shuffled[train:]
    return Setting(things.values[kept], people.values[first], fewer[first], people.values[rest], fewer[rest])
