"""`rankdp audit`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from rankdp.cli.options import MECHANISM_OR_AUTO, choice, option, seeded
from rankdp.cli.terminal import reporting

if TYPE_CHECKING:
    from rankdp.mechanisms.registry import Protect
    from rankdp.privacy.bits import Bits
    from rankdp.report.document import Report


@click.command()
@click.argument("mechanism", metavar="[MECHANISM]", type=MECHANISM_OR_AUTO, required=False)
@option("--items", "Number of ranked items.", type=int, required=True)
@option("--epsilon -e", "The claimed epsilon, to be tested.", "NUMBER", required=True)
@choice(
    "--protect",
    ["position", "ranking"],
    help="What MECHANISM's epsilon protects: one item's position, or the whole ranking.",
)
@option("--exact", "Only the exact audit, which enumerates all outputs and neighbours (up to 6 items).", is_flag=True)
@option("--draws", "Total draws of the statistical audit.", default=100000)
@option("--level confidence", "Confidence of the lower bound on epsilon.", default=0.99)
@option(
    "--command", "Audit a program instead: its command line, with {in} and {out} where the file names go.", "COMMAND"
)
@option("--timeout", "Seconds for each run of --command.", default=60.0)
@seeded("Draw with this seed, so that the audit can be repeated.")
@reporting
def audit(
    mechanism: str | None,
    items: int,
    epsilon: str,
    protect: Protect,
    exact: bool,
    draws: int,
    confidence: float,
    command: str | None,
    timeout: float,
    bits: Bits | None,
) -> Report:
    """Test whether a mechanism or program keeps its epsilon.

    Tries to prove that MECHANISM, or the program given by --command, is less private than claimed. The exit code is 0
    when no violation is found and 1 when there is one.
    """
    from rankdp.audit import AuditReport, audit_command, audit_mechanism
    from rankdp.mechanisms.registry import mechanism as build

    if (mechanism is None) == (command is None):
        raise click.UsageError("Give either MECHANISM or --command.")
    if exact and command is not None:
        raise click.UsageError("--exact is for MECHANISM, not for --command.")
    if protect == "ranking" and command is not None:
        raise click.UsageError("--protect ranking is for MECHANISM, not for --command.")
    if command is not None:
        audited = audit_command(
            shlex.split(command),
            items=items,
            draws=draws,
            claimed_epsilon=epsilon,
            confidence=confidence,
            timeout=timeout,
        )
        report = AuditReport(audited.subject, audited.claimed, (audited,))
    else:
        report = audit_mechanism(
            build(mechanism or "auto", items, epsilon, protect=protect),
            claimed_epsilon=epsilon,
            protect=protect,
            exact=True if exact else None,
            draws=0 if exact else draws,
            confidence=confidence,
            bits=bits,
        )
    return report.report()
