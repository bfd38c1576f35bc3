"""Publish rankings without publishing the people behind them.

    privatize               a synthetic ranking for every true one; aggregate estimates their averages
    rank, rank_by           a leaderboard from comparisons, or one for each category; LiveBoard publishes it repeatedly
    elect                   the result of an election; synthetic_ballots makes a table of ballots instead
    privatize_scores        noisy scores
    privatize_preferences   private labels of preference pairs
    plan                    which epsilon an accuracy needs, before any data are seen
    Ledger                  a privacy budget in a file, charged before every release

Data go one way: a file or table is checked once (Rankings, Comparisons, Ballots), a mechanism adds noise, and the
result is a Release: a value, its guarantee and its provenance.

    >>> import rankdp
    >>> poll = rankdp.Rankings.from_orders([["tea", "coffee", "water"], ["coffee", "tea", "water"]])
    >>> release = rankdp.privatize(poll, epsilon=2)
    >>> release.value.orders.shape
    (2, 3)
    >>> release.guarantee.epsilon
    Fraction(2, 1)

``release.explain()`` says in plain words what is promised. Names are loaded when they are first used, so importing
rankdp is quick.
"""

from __future__ import annotations

from rankdp.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
