"""The same release as a Python script, a notebook and a command line, all from ``Work.call``.

Each draws noise of its own, so each is a release of its own: it charges the ledger once, says so, and does nothing when
its result is there already. Names and paths from outside go in quoted, by ``repr`` and ``shlex``.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from rankdp.web.studio_work import Work

COMMANDS = {"rank": "rank", "elect": "elect", "privatize_file": "privatize", "privatize_scores_file": "scores"}
WRITERS = {"rank": "write_board", "elect": "write_election"}
ITEMS = "items.txt"
_SAID = """The release of rankdp studio as a {form}.

Running it draws noise again, so it is another release: it charges the ledger once and says so.
It does nothing when its result is there already.
"""


def result_name(work: Work) -> str:
    """The file that a script writes, by which it knows that it has run."""
    return "result.json" if work.call[0] in WRITERS else "private.csv" if work.kind == "rankings" else "noisy.csv"


def statements(work: Work, place: Path, ledger: str | None) -> list[str]:
    """The parts of the script: what it needs, and what it does.

    Parameters
    ----------
    work
        What is released.
    place
        The directory of the release, which has the list of items.
    ledger
        The file of the budget, if one is charged.
    """
    verb, settings = work.call
    shown = {name: value for name, value in settings.items() if name != "items"}
    if "items" in settings:
        shown["items"] = place / ITEMS
    arguments = [repr(work.path)]
    if verb not in WRITERS:
        arguments.append("RESULT")
    arguments.append(f"epsilon={work.epsilon!r}")
    arguments += [f"{name}={_python(name, value, verb)}" for name, value in shown.items()]
    opened = []
    if ledger:
        convert = ".using(convert=True)" if work.convert else ""
        opened = [f"ledger = rankdp.Ledger.open({ledger!r}, {work.dataset!r}){convert}"]
        arguments.append("ledger=ledger")
    body = [*opened, f"release = rankdp.{verb}(", *(f"    {argument}," for argument in arguments), ")"]
    if verb in WRITERS:
        body.append(f"rankdp.{WRITERS[verb]}(release, RESULT, {work.heading!r})")
    body.append("print(release.explain())")
    body.append('print(f"Charged once: {ledger.told()}.")' if ledger else 'print("No ledger: nothing was charged.")')
    there = '    print(f"{RESULT} is there already: nothing was drawn and nothing was charged.")'
    needs = ["from pathlib import Path", "", "import rankdp", "", f"RESULT = Path({result_name(work)!r})"]
    does = ["if RESULT.exists():", there, "else:", *(f"    {line}" for line in body)]
    return ["\n".join(needs), "\n".join(does)]


def script(work: Work, place: Path, ledger: str | None) -> str:
    """The release as a Python script."""
    return "\n\n".join([f'"""{_SAID.format(form="script")}"""', *statements(work, place, ledger)]) + "\n"


def notebook(work: Work, place: Path, ledger: str | None) -> str:
    """The release as a Jupyter notebook."""
    code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    said = _SAID.format(form="notebook").strip()
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "said", "metadata": {}, "source": said}]
    sources = enumerate(statements(work, place, ledger))
    cells += [{**code, "id": f"code-{number}", "source": source} for number, source in sources]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def command(work: Work, place: Path, ledger: str | None) -> str:
    """The release as a command line for a shell."""
    verb, settings = work.call
    result = result_name(work)
    words = ["rankdp", COMMANDS[verb], work.path]
    if verb not in WRITERS:
        words.append(result)
    words += ["--epsilon", work.epsilon]
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name == "items":
            words += [option, str(place / ITEMS)]
        elif name == "columns":
            words += [word for pair in value.items() for word in (option, "=".join(pair))]
        elif name == "tiers":
            words += [option, ",".join(map(str, value))]
        elif name == "bounds":
            words += [option, *value]
        else:
            words += [option] if value is True else [option, str(value)]
    charged = ["--ledger", ledger, "--dataset", work.dataset, *["--convert"] * work.convert] if ledger else []
    if verb in WRITERS:
        charged += ["--title", work.heading, "-o", result]
    lines = [
        "# Draws noise again, so it is another release: it charges the ledger once,",
        "# and does nothing when its result is there already.",
        f"test -e {result} || {shlex.join([*words, *charged])}",
    ]
    if ledger:
        lines.append(shlex.join(["rankdp", "budget", "show", ledger, "--dataset", work.dataset]))
    return "\n".join(lines) + "\n"


def _python(name: str, value: Any, verb: str) -> str:
    if name == "items" and verb == "privatize_file":  # which takes names, not a file of them
        return f"Path({str(value)!r}).read_text('utf-8').splitlines()"
    return repr(str(value) if isinstance(value, Path) else value)
