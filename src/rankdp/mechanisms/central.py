"""Noise that a curator adds: the budget of such a mechanism.

A mechanism spends the part ``share`` of the guarantee's epsilon (delta = 0) or of its rho (delta > 0: the largest whose
zCDP is (eps, delta)-DP, ``privacy.zcdp``); the rest is for other numbers in the same release. The guarantee is for all
of them: epsilons add up, and so do rhos.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from rankdp.errors import InputError
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.zcdp import rho_of


class Unit(Protocol):
    """A unit of protection."""

    @property
    def protects(self) -> str:
        """In words, for the guarantee."""


UnitT = TypeVar("UnitT", bound=Unit)


class CentralNoise(Generic[UnitT]):
    """A mechanism with a share of a budget.

    Parameters
    ----------
    protection
        What is protected.
    epsilon
        The guarantee's.
    delta
        0 for pure differential privacy; above 0 for Gaussian noise.
    share
        The part of the guarantee's epsilon, or of its rho, that is spent here.
    """

    def __init__(self, protection: UnitT, epsilon: Real, delta: Real = 0, share: Real = 1) -> None:
        self.protection = protection
        self.epsilon, self.delta = positive(epsilon), rational(delta, "delta")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
        self.rho = rho_of(self.epsilon, self.delta) if self.delta else None
        self.share = positive(share, "share")
        if self.share > 1:
            raise InputError(f"share must be above 0 and at most 1, got {share!s}")

    @property
    def guarantee(self) -> Guarantee:
        """Central eps-DP, or (eps, delta)-DP, for the unit of protection, of everything that shares the budget."""
        rho = None if self.rho is None else float(self.rho)
        return Guarantee(self.protection.protects, self.epsilon, self.delta, local=False, rho=rho)
