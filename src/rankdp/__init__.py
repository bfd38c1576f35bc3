"""rankdp publishes rankings without publishing the people behind them.

The idea on one page. Data go one way:

    files, tables -> Rankings -> mechanism -> Release
                     (validated   (sees the    (value, guarantee,
                      once)        secret,      provenance)
                                   draws noise)

    >>> import rankdp
    >>> poll = rankdp.Rankings.from_orders([["tea", "coffee", "water"], ["coffee", "tea", "water"]])
    >>> release = rankdp.privatize(poll, epsilon=2)
    >>> release.value.orders.shape
    (2, 3)
    >>> release.guarantee.epsilon
    Fraction(2, 1)

``release.explain()`` says in plain words what is promised. The names are listed in ``__init__.pyi`` and
loaded when they are first used, so importing rankdp is quick and compiles nothing.
"""

from __future__ import annotations

from rankdp.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
