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

``release.explain()`` says in plain words what is promised. Names are loaded when they are first used, so
importing rankdp is quick and compiles nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankdp.version import __version__

if TYPE_CHECKING:
    from rankdp.aggregation.estimates import Aggregate as Aggregate
    from rankdp.aggregation.estimates import aggregate as aggregate
    from rankdp.aggregation.estimates import aggregate_file as aggregate_file
    from rankdp.aggregation.respondents import required_voters as required_voters
    from rankdp.data.comparisons import Comparisons as Comparisons
    from rankdp.data.rankings import Rankings as Rankings
    from rankdp.errors import BudgetExceeded as BudgetExceeded
    from rankdp.errors import InputError as InputError
    from rankdp.errors import RankdpError as RankdpError
    from rankdp.errors import Unsupported as Unsupported
    from rankdp.mechanisms.registry import candidates as candidates
    from rankdp.mechanisms.registry import mechanism as mechanism
    from rankdp.mechanisms.scores.catalogue import score_mechanism as score_mechanism
    from rankdp.planning.plan import plan as plan
    from rankdp.privacy.answers import AnswerStore as AnswerStore
    from rankdp.privacy.bits import SecureBits as SecureBits
    from rankdp.privacy.bits import SeededBits as SeededBits
    from rankdp.privacy.guarantee import Guarantee as Guarantee
    from rankdp.privacy.ledger import Ledger as Ledger
    from rankdp.privacy.release import Release as Release
    from rankdp.publish.privatize import privatize as privatize
    from rankdp.publish.privatize import privatize_file as privatize_file
    from rankdp.publish.rank import rank as rank
    from rankdp.publish.scores import privatize_scores as privatize_scores
    from rankdp.publish.scores import privatize_scores_file as privatize_scores_file
    from rankdp.report.boards import write_board as write_board
    from rankdp_papers.reproduction import reproduce as reproduce

_WHERE = {
    "Aggregate": "aggregation.estimates",
    "aggregate": "aggregation.estimates",
    "aggregate_file": "aggregation.estimates",
    "required_voters": "aggregation.respondents",
    "Comparisons": "data.comparisons",
    "Rankings": "data.rankings",
    "BudgetExceeded": "errors",
    "InputError": "errors",
    "RankdpError": "errors",
    "Unsupported": "errors",
    "candidates": "mechanisms.registry",
    "mechanism": "mechanisms.registry",
    "score_mechanism": "mechanisms.scores.catalogue",
    "plan": "planning.plan",
    "AnswerStore": "privacy.answers",
    "SecureBits": "privacy.bits",
    "SeededBits": "privacy.bits",
    "Guarantee": "privacy.guarantee",
    "Ledger": "privacy.ledger",
    "Release": "privacy.release",
    "privatize": "publish.privatize",
    "privatize_file": "publish.privatize",
    "rank": "publish.rank",
    "write_board": "report.boards",
    "privatize_scores": "publish.scores",
    "privatize_scores_file": "publish.scores",
}
_ELSEWHERE = {"reproduce": "rankdp_papers.reproduction"}  # packages beside the library, loaded when asked for
_PACKAGES = (
    *("attack", "audit", "data", "errors", "learn", "mechanisms"),
    *("planning", "privacy", "publish", "rankers", "report", "theory"),
)

__all__ = ["__version__", *_WHERE, *_ELSEWHERE]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"rankdp.{_WHERE[name]}"), name)
    elif name in _ELSEWHERE:
        value = getattr(import_module(_ELSEWHERE[name]), name)
    elif name in _PACKAGES:
        value = import_module(f"rankdp.{name}")
    else:
        raise AttributeError(f"module 'rankdp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
