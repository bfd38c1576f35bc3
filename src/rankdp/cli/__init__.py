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
from rankdp.cli.elect import elect
from rankdp.cli.learn import learn, predict
from rankdp.cli.live import live
from rankdp.cli.options import after_failure, forget_ledgers, speaking
from rankdp.cli.plan import plan
from rankdp.cli.preferences import preferences
from rankdp.cli.privatize import privatize
from rankdp.cli.rank import rank
from rankdp.cli.scores import scores
from rankdp.cli.terminal import say, watched
from rankdp.errors import RankdpError
from rankdp.version import __version__


class _Commands(click.Group):
    """The commands of the library and of the other installed packages, loaded when asked for."""

    elsewhere: ClassVar = {
        "reproduce": "rankdp_papers.command",
        "studio": "rankdp_web.studio_command",
        "survey": "rankdp_web.survey_command",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command that can be run here."""
        present = [name for name, module in self.elsewhere.items() if find_spec(module.partition(".")[0])]
        return sorted([*super().list_commands(ctx), *present])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name in self.elsewhere and cmd_name in self.list_commands(ctx):
            return _ready(cast(click.Command, getattr(import_module(self.elsewhere[cmd_name]), cmd_name)))
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)
@click.version_option(__version__, prog_name="rankdp")
def cli() -> None:
    """Publish rankings without publishing the people behind them."""


_SERVING = ("serve", "studio")
"""Commands that run until they are stopped: a progress bar would never end."""


def _ready(command: click.Command) -> click.Command:
    """The command, with its options named in refusals and a progress bar while it works."""
    for inner in getattr(command, "commands", {}).values():
        _ready(inner)
    if command.callback is not None and not isinstance(command, click.Group) and command.name not in _SERVING:
        command.callback = watched(command.callback)
    return speaking(command)


for command in (
    privatize,
    rank,
    live,
    elect,
    scores,
    preferences,
    aggregate,
    learn,
    predict,
    plan,
    budget,
    audit,
    attack,
    demo,
):
    cli.add_command(_ready(command))


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    forget_ledgers()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGINT may be ignored, as in the background of a script
    try:
        if sys.argv[1:2] and not sys.argv[1].startswith(("-", "plan", "budget")):  # these read no tables
            _hide_pandas()
        code = cli.main(prog_name="rankdp", standalone_mode=False) or 0
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.UsageError as problem:
        problem.show()
        code = 2
    except RankdpError as refusal:
        code = _failed(str(refusal), refusal)
    except (KeyboardInterrupt, click.Abort) as stop:
        code = _failed(f"interrupted; {_written()}", stop)
    except BrokenPipeError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _failed("the output was closed before it was written", problem) if after_failure(problem) else 1
    except OSError as problem:
        code = _failed(f"{problem.filename or 'the system'}: {problem.strerror or problem}", problem)
    sys.exit(code)


def _hide_pandas() -> None:
    """Keep PyArrow from loading pandas on its first use, which takes longer than most commands.

    If something needs pandas later, PyArrow looks for it again.
    """
    import pyarrow as pa

    class Hidden:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "pandas":
                raise ImportError(name)

    sys.meta_path.insert(0, Hidden)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(Hidden)


def _failed(words: str, problem: BaseException) -> int:
    """Print in one sentence what went wrong and what is spent of a budget, and return the exit code."""
    say("; ".join([f"rankdp: {words}", *after_failure(problem)]))
    return 1


def _written() -> str:
    from rankdp.data.atomic import KEPT

    return f"written: {', '.join(KEPT)}" if KEPT else "nothing was written"
