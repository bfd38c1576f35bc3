"""The command line: parse, call one function of the library, print.

Results go to stdout and words to stderr. Exit codes: 0 done, 1 refused (one sentence says why), 2 wrong usage.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import ClassVar, NoReturn, cast

import click

from rankdp.cli.aggregate import aggregate
from rankdp.cli.attack import attack
from rankdp.cli.audit import audit
from rankdp.cli.budget import budget
from rankdp.cli.demo import demo
from rankdp.cli.learn import learn
from rankdp.cli.plan import plan
from rankdp.cli.privatize import privatize
from rankdp.cli.rank import rank
from rankdp.cli.scores import scores
from rankdp.cli.terminal import say
from rankdp.errors import RankdpError
from rankdp.version import __version__


class _Commands(click.Group):
    """The library's commands, and those of packages beside it that are installed: loaded when asked for."""

    elsewhere: ClassVar = {"reproduce": "rankdp_papers.command"}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command that can be run here."""
        present = [name for name, module in self.elsewhere.items() if find_spec(module.partition(".")[0])]
        return sorted([*super().list_commands(ctx), *present])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name in self.elsewhere and cmd_name in self.list_commands(ctx):
            return cast(click.Command, getattr(import_module(self.elsewhere[cmd_name]), cmd_name))
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="rankdp")
def cli() -> None:
    """Publish rankings without publishing the people behind them."""


for command in (privatize, rank, scores, aggregate, learn, plan, budget, audit, attack, demo):
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = cli.main(prog_name="rankdp", standalone_mode=False) or 0
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.UsageError as problem:
        problem.show()
        code = 2
    except RankdpError as refusal:
        say(f"rankdp: {refusal}")
        code = 1
    except (KeyboardInterrupt, click.Abort):
        say("rankdp: interrupted; nothing was written")
        code = 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as problem:
        say(f"rankdp: {problem.filename or 'the system'}: {problem.strerror or problem}")
        code = 1
    sys.exit(code)
