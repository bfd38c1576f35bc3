"""The mechanisms: the only code that sees secrets and draws noise."""

from rankdp.mechanisms.rankings.contract import RankingMechanism, TableMechanism
from rankdp.mechanisms.registry import MECHANISMS, candidates, describe, mechanism, register

__all__ = [
    "MECHANISMS",
    "RankingMechanism",
    "TableMechanism",
    "candidates",
    "describe",
    "mechanism",
    "register",
]
