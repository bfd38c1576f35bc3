"""Learn from privatized rankings who prefers what: personalised ranking with labels that undo the noise.

    LinearPairwiseRanker    scores that are linear in the features of users and items (scikit-learn)
    TwoTowerRanker          two small neural networks and a dot product (PyTorch)

Both take ``fit(users, items, rankings, mechanism=, epsilon=)``. What they see has been privatized, so what they learn
costs no privacy beyond it; the *features* of users and items are taken as they are, and nothing protects them here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankdp.learn.linear import LinearPairwiseRanker as LinearPairwiseRanker
    from rankdp.learn.models import load as load
    from rankdp.learn.towers import TwoTowerRanker as TwoTowerRanker
    from rankdp.learn.training_files import learn_files as learn_files
    from rankdp.learn.training_report import train_report as train_report

_WHERE = {
    "LinearPairwiseRanker": "linear",
    "TwoTowerRanker": "towers",
    "learn_files": "training_files",
    "load": "models",
    "train_report": "training_report",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'rankdp.learn' has no attribute {name!r}")
    value = getattr(import_module(f"rankdp.learn.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
