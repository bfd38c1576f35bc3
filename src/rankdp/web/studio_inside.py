"""Look inside: what an attacker's odds become, an attack, and an audit, all for the setting that was chosen.

The audit is exact where the setting is small enough. Where it is not, the same mechanism is audited for fewer items or
a coarser grid, and the page says so; leaderboards whose design is secret are audited by their draws. No data are read.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from rankdp.attack.inference import position_attack
from rankdp.attack.membership import membership_experiment
from rankdp.audit.audit_report import AuditReport
from rankdp.audit.boards import audit_board
from rankdp.audit.enumeration import audit_exact
from rankdp.audit.findings import ExactAudit, StatisticalAudit
from rankdp.mechanisms.ballots.cube import ChosenMargins
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.tiers import read_name
from rankdp.mechanisms.registry import mechanism
from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.exact import positive
from rankdp.publish.ballot_rules import borda_noise, margin_noise, vote_noise
from rankdp.report.document import Report, Table
from rankdp.web.studio_work import Work

_BELIEFS = (0.01, 0.1, 0.5, 0.9)
_EXACT_ITEMS, _EXACT_CANDIDATES, _EXACT_PAIRS, _STEPS = 5, 4, 3, 16
_DRAWS, _BOARDS = 20_000, 150
_MOST_POSITIONS = 30


def odds(epsilon: str) -> Table:
    """What an attacker may believe before, and at most and at least after: p e^eps/(1 - p + p e^eps)."""
    factor = math.exp(min(float(positive(epsilon)), 700))

    def after(before: float, times: float) -> str:
        return f"{before * times / (1 - before + before * times):.1%}"

    rows = [[f"{before:.0%}", after(before, 1 / factor), after(before, factor)] for before in _BELIEFS]
    return Table(["sure before", "at least, after", "at most, after"], rows, texts=0, title="An attacker's belief")


def attack(work: Work) -> tuple[Report | None, str]:
    """An attack on the setting, where there is one, and what was simplified."""
    if work.kind == "rankings":
        items = min(work.ranked, _MOST_POSITIONS)
        built = mechanism(_name(work, items), items, work.epsilon)
        assert isinstance(built, RankingMechanism)
        return position_attack(built, 1).report(), _smaller(items, work.ranked, "items")
    if work.kind == "comparisons" and work.protect != "voter":
        items = min(work.ranked, 8)
        found = membership_experiment(
            work.epsilon, items=items, method=work.option, protect=work.protect, repetitions=_BOARDS
        )
        return found.report(), "On simulated leaderboards of 60 comparisons; none of your data are used."
    return None, "Beyond these odds, which hold for every attack, none is simulated for this kind of release."


def audit(work: Work) -> tuple[Report, str]:
    """The audit of the setting, run now, and what was simplified."""
    exact = positive(work.epsilon)
    if work.kind == "rankings":
        items = work.ranked if work.ranked <= _EXACT_ITEMS else _EXACT_ITEMS
        built = mechanism(_name(work, items), items, exact)
        return _report(exact, audit_exact(built)), _smaller(items, work.ranked, "items")
    if work.kind == "scores":
        noise = score_mechanism(work.option, bounds=work.bounds, epsilon=exact, p=work.shape, steps=_STEPS)
        return _report(exact, audit_exact(noise)), f"On a grid of {_STEPS} steps, where every output can be tried."
    if work.kind == "ballots":
        items, unit = min(work.ranked, _EXACT_CANDIDATES), BallotProtection(work.protect)
        public = items, unit, exact, Fraction(0)
        points = [borda_noise(*public)] if work.option in ("borda", "auto") else []
        margins = [margin_noise(*public)] if work.option == "pairs" else []
        chosen = [ChosenMargins(_EXACT_PAIRS, unit, exact)] if work.option == "auto" else []
        votes = [vote_noise(*public, rounds=items - 1 if work.option == "irv" else 1)]
        noises: list[Any] = [*points, *margins, *chosen] or votes
        parts = " Its two parts, each with all of epsilon, which a release divides between them." * bool(chosen)
        return _report(exact, *map(audit_exact, noises)), _smaller(items, work.ranked, "candidates") + parts
    bound = work.max_per_voter if work.protect == "voter" else None
    if work.protect == "outcome" or (work.option == "wins" and work.number_public):
        wins = NoisyWins(Protection.of(work.protect, bound), exact)
        return _report(exact, audit_exact(wins, items=3)), "On every table that one person can change, with 3 items."
    found = audit_board(work.option, work.protect, exact, max_per_voter=bound, draws=_DRAWS)
    return _report(exact, found), f"No exact audit is known here: {_DRAWS:,} draws from neighbouring tables of 3 items."


def _report(claimed: Fraction, *audits: ExactAudit | StatisticalAudit) -> Report:
    return AuditReport(audits[0].subject, claimed, audits).report()


def _name(work: Work, items: int) -> str:
    """The mechanism that is released with, without sizes of tiers that are for another number of items."""
    if items == work.ranked:
        return work.option
    built = mechanism(work.option, work.ranked, work.epsilon)
    assert isinstance(built, RankingMechanism)
    return read_name(built.name)[0]


def _smaller(items: int, asked: int, what: str) -> str:
    return "For exactly this setting." if items == asked else f"For {items} {what}, where every case can be tried."
