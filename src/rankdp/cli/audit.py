"""`rankdp audit`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from rankdp.cli.options import MECHANISM_OR_AUTO
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.report.document import Report


@click.command()
@click.argument("mechanism", metavar="[MECHANISM]", type=MECHANISM_OR_AUTO, required=False)
@click.option("--items", type=int, required=True, help="How many items are ranked.")
@click.option("--epsilon", "-e", metavar="NUMBER", required=True, help="The epsilon that is claimed.")
@click.option("--exact", is_flag=True, help="Only enumerate all outputs and neighbours (up to 6 items).")
@click.option("--draws", type=int, default=100_000, show_default=True, help="Draws in all for the statistical audit.")
@click.option("--level", type=float, default=0.99, show_default=True, help="Confidence of the lower bound.")
@click.option(
    "--command",
    metavar="WORDS",
    help="Audit a program instead: a command line with {in} and {out} for files of rankings.",
)
@click.option("--timeout", type=float, default=60, show_default=True, help="Seconds for each run of --command.")
@click.option("--rehearse", "seed", type=int, metavar="SEED", help="Repeatable draws.")
@reporting
def audit(
    mechanism: str | None,
    items: int,
    epsilon: str,
    exact: bool,
    draws: int,
    level: float,
    command: str | None,
    timeout: float,
    seed: int | None,
) -> Report:
    """Try to prove that MECHANISM, or any program, is less private than claimed.

    Exit code 0 when the claim survives, 1 when it is violated.
    """
    from rankdp.audit import AuditReport, audit_command, audit_mechanism
    from rankdp.mechanisms.registry import mechanism as build
    from rankdp.privacy.bits import SeededBits

    if (mechanism is None) == (command is None):
        raise click.UsageError("Give either MECHANISM or --command.")
    if exact and command is not None:
        raise click.UsageError("--exact goes with MECHANISM, not with --command.")
    if command is not None:
        audited = audit_command(
            shlex.split(command),
            items=items,
            draws=draws,
            claimed_epsilon=epsilon,
            confidence=level,
            timeout=timeout,
        )
        report = AuditReport(audited.subject, audited.claimed, (audited,))
    else:
        report = audit_mechanism(
            build(mechanism or "auto", items, epsilon),
            exact=True if exact else None,
            draws=0 if exact else draws,
            confidence=level,
            bits=None if seed is None else SeededBits(seed),
        )
    return report.report()
