"""Learn from privatized rankings who prefers what: personalised ranking with debiased labels.

    LinearPairwiseRanker    scores that are linear in the features of users and items (scikit-learn)
    TwoTowerRanker          two small neural networks and a dot product (PyTorch)
    LinearRewardModel       rewards from private preference pairs; preference_loss and dpo_loss for PyTorch

The first two take ``fit(users, items, rankings, mechanism=, epsilon=)``. What they see has been privatized, so what
they learn costs no privacy beyond it; the *features* of users and items are taken as they are, and nothing protects
them here.
"""

from __future__ import annotations

from rankdp.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
