"""Audits: try to prove that a mechanism is less private than it claims.

    >>> import rankdp
    >>> from rankdp.audit import audit_exact
    >>> audit_exact(rankdp.mechanism("kendall", 4, 1)).holds
    True

``audit_exact`` enumerates, ``audit_samples`` bounds epsilon from the outputs of any sampler, ``audit_command`` does so
for a program, ``audit_board`` for leaderboards, ``audit_election`` for ballots, ``audit_independence`` asks whether
noise comes back, and ``audit_mechanism`` puts all that fits a ranking mechanism into one report.
"""

from rankdp.audit.audit_report import AuditReport, audit_mechanism, write_audit
from rankdp.audit.boards import audit_board
from rankdp.audit.commands import CommandSampler, audit_command
from rankdp.audit.electorates import audit_election
from rankdp.audit.enumeration import audit_exact
from rankdp.audit.findings import EventBound, ExactAudit, IndependenceAudit, StatisticalAudit
from rankdp.audit.independence import audit_independence
from rankdp.audit.statistical import (
    audit_samples,
    epsilon_bound,
    equation_8,
    ranking_neighbours,
    ranking_sampler,
)

__all__ = [
    "AuditReport",
    "CommandSampler",
    "EventBound",
    "ExactAudit",
    "IndependenceAudit",
    "StatisticalAudit",
    "audit_board",
    "audit_command",
    "audit_election",
    "audit_exact",
    "audit_independence",
    "audit_mechanism",
    "audit_samples",
    "epsilon_bound",
    "equation_8",
    "ranking_neighbours",
    "ranking_sampler",
    "write_audit",
]
