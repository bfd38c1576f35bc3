"""The same release as a Python script, from ``Draft.call``.

Running the script draws new noise, so it is another release: it charges the ledger once, says so, and does nothing
when its result exists already. Names and paths from outside are quoted by ``repr``.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rankdp_web.studio_draft import Draft

WRITERS = {"rank": "write_board", "elect": "write_election"}
_COMMANDS = {"rank": "rank", "elect": "elect", "privatize_file": "privatize", "privatize_scores_file": "scores"}
ITEMS = "items.txt"
_HEAD = '''"""The release of rankdp studio as a script.

Running it draws new noise, so it is another release: it charges the ledger once and says so.
It does nothing when its result exists already.
"""

from pathlib import Path

import rankdp
'''


def result_name(draft: Draft) -> str:
    """The file that the script writes, by which it knows that it has run."""
    return "result.json" if draft.call[0] in WRITERS else "private.csv" if draft.kind == "rankings" else "noisy.csv"


def script(draft: Draft, place: Path, ledger: str | None) -> str:
    """The script.

    Parameters
    ----------
    draft
        What is released.
    place
        The directory of the release, which has the list of items.
    ledger
        The file of the budget, if one is charged.
    """
    verb, settings = draft.call
    shown = {name: value for name, value in settings.items() if name != "items"}
    if "items" in settings:
        shown["items"] = place / ITEMS
    arguments = [repr(draft.path)]
    if verb not in WRITERS:
        arguments.append("RESULT")
    arguments.append(f"epsilon={draft.epsilon!r}")
    arguments += [f"{name}={_python(name, value, verb)}" for name, value in shown.items()]
    opened = []
    if ledger:
        convert = ".using(convert=True)" if draft.convert else ""
        opened = [f"ledger = rankdp.Ledger.open({ledger!r}, {draft.dataset!r}){convert}"]
        arguments.append("ledger=ledger")
    body = [*opened, f"release = rankdp.{verb}(", *(f"    {argument}," for argument in arguments), ")"]
    if verb in WRITERS:
        body.append(f"rankdp.{WRITERS[verb]}(release, RESULT, {draft.heading!r})")
    body.append("print(release.explain())")
    body.append('print(f"Charged once: {ledger.told()}.")' if ledger else 'print("No ledger: nothing was charged.")')
    done = '    print(f"{RESULT} exists already: nothing was drawn and nothing was charged.")'
    lines = [_HEAD, f"RESULT = Path({result_name(draft)!r})", "", "if RESULT.exists():", done, "else:"]
    return "\n".join([*lines, *(f"    {line}" for line in body)]) + "\n"


def command(draft: Draft, place: Path, ledger: str | None) -> str:
    """The same as a line for a terminal, with the parameters as in ``script``."""
    verb, settings = draft.call
    words = ["rankdp", _COMMANDS[verb], draft.path]
    if verb not in WRITERS:
        words.append(result_name(draft))
    words += ["--epsilon", draft.epsilon]
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name == "items":
            words += [option, str(place / ITEMS)]
        elif name == "columns":
            words += [part for role, column in value.items() for part in (option, f"{role}={column}")]
        elif name == "bounds":
            words += [option, *value]
        elif name == "tiers":
            words += [option, ",".join(map(str, value))]
        else:
            words += [option] if value is True else [option, str(value)]
    if ledger:
        words += ["--ledger", ledger, "--dataset", draft.dataset, *(["--convert"] if draft.convert else [])]
    if verb in WRITERS:
        words += ["--title", draft.heading, "--output", "result.html"]
    return shlex.join(words)


def _python(name: str, value: Any, verb: str) -> str:
    if name == "items" and verb == "privatize_file":  # which takes names, not a file of them
        return f"Path({str(value)!r}).read_text('utf-8').splitlines()"
    return repr(str(value) if isinstance(value, Path) else value)
