"""The models by name, and saved models of any kind."""

from __future__ import annotations

import os

from rankdp.errors import InputError
from rankdp.learn.estimator import PairwiseRanker, read_saved
from rankdp.learn.linear import LinearPairwiseRanker
from rankdp.learn.towers import TwoTowerRanker

MODELS: dict[str, type[PairwiseRanker]] = {"linear": LinearPairwiseRanker, "two-tower": TwoTowerRanker}


def load(path: str | os.PathLike[str]) -> PairwiseRanker:
    """A saved model, of whichever class it is.

    Parameters
    ----------
    path : path
        A file that a ranker's ``save`` wrote.
    """
    saved = read_saved(path)[0]["class"]
    for kind in MODELS.values():
        if kind.__name__ == saved:
            return kind.load(path)
    raise InputError(f"{os.fspath(path)}: this is a {saved}, which this version of rankdp does not know")
