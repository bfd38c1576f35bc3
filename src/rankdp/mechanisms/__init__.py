"""The mechanisms: the only code that sees secrets and draws noise."""

from rankdp.mechanisms.base import RankingMechanism
from rankdp.mechanisms.personal import Personal
from rankdp.mechanisms.registry import MECHANISMS, candidates, mechanism, why

__all__ = ["MECHANISMS", "Personal", "RankingMechanism", "candidates", "mechanism", "why"]
