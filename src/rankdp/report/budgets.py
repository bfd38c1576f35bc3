"""A ledger for people: what is spent and what is left, one line a charge, a plot over time, a CSV file.

Everything is computed from the ledger's public entries; nothing here can charge or release anything.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rankdp.data.atomic import write_whole
from rankdp.errors import InputError
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import Budget, Entry
from rankdp.privacy.ledger.refusals import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")
COLUMNS = (
    "number", "when", "dataset", "what", "state", "protects", "epsilon", "delta", "budget", "charged_epsilon",
    "charged_delta", "converted", "counted_by", "spent_epsilon", "partition", "part", "mechanism",
)  # fmt: skip


def budget_table(ledger: Ledger) -> tuple[list[str], list[list[str]]]:
    """One line for each budget of the data set: heads and cells."""
    rows = []
    for budget in ledger.budgets:
        standing, terms = budget.standing, budget.terms
        rows.append(
            [
                budget.protects,
                _pair(terms.epsilon, terms.delta),
                _pair(standing.epsilon, standing.delta),
                shown(budget.remaining, up=False),
                standing.method,
            ]
        )
    return ["protects", "budget", "spent", "remaining epsilon", "counted by"], rows


def history_table(ledger: Ledger) -> tuple[list[str], list[list[str]]]:
    """One line for each charge and budget, oldest first: heads and cells."""
    units = {budget.number: budget.protects for budget in ledger.budgets}
    rows = []
    for entry in ledger.history():
        for place, budget in enumerate(entry.budgets):
            cost, where = entry.charged[place], f" [{entry.part}]" if entry.part else ""
            rows.append(
                [
                    str(entry.number),
                    entry.when[:16].replace("T", " "),
                    entry.what + where,
                    entry.state + (" (counts as spent)" if entry.state == "reserved" else ""),
                    _pair(cost.epsilon, cost.delta) + (" (converted)" if entry.converted[place] else ""),
                    shown(entry.spent[place]),
                    *([units[budget]] if len(units) > 1 else []),
                ]
            )
    heads = ["entry", "when (UTC)", "what", "state", "charged", "spent after it"]
    return heads + (["budget"] if len(units) > 1 else []), rows


def _pair(epsilon: Fraction, delta: Fraction) -> str:
    return shown(epsilon) + (f", delta {shown(delta)}" if delta else "")


def to_dict(ledger: Ledger) -> dict[str, Any]:
    """Everything as plain data, exact numbers as text."""
    return {
        "ledger": ledger.path,
        "dataset": ledger.dataset,
        "budgets": [budget.to_dict() | {"number": budget.number} for budget in ledger.budgets],
        "entries": [entry.to_dict() for entry in ledger.history()],
    }


def export_csv(ledger: Ledger, path: str | os.PathLike[str]) -> int:
    """Write one line for each charge and budget; how many there are. Numbers are exact, as text such as 1/3."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    count = 0
    for entry in ledger.history():
        facts = entry.to_dict()
        mechanism = (entry.release or {}).get("mechanism", "")
        for one in facts["charges"]:
            writer.writerow({name: _cell(value) for name, value in (facts | one | {"mechanism": mechanism}).items()})
            count += 1
    write_whole(path, text.getvalue().encode())
    return count


def _cell(value: Any) -> Any:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse an ending that no plot has."""
    if not os.fspath(path).lower().endswith(PICTURES):
        raise InputError(f"{path}: a plot must end with {', '.join(PICTURES)}")


def spending_plot(ledger: Ledger) -> Figure:
    """What was spent of each budget over time, as a staircase under the line of the budget."""
    from rankdp.report.plots import SERIES, new_figure

    budgets, entries = ledger.budgets, ledger.history()
    figure, axes = new_figure(len(budgets), width=1.5 + 5.5 * len(budgets), height=4)
    from matplotlib import dates  # it is there: new_figure has not refused

    formatter: Any = dates.ConciseDateFormatter
    for place, (one, budget) in enumerate(zip(axes, budgets, strict=True)):
        times, levels = _staircase(entries, budget)
        one.step(times, levels, where="post", color=SERIES[0])
        one.plot(times[1:-1], levels[1:-1], "o", markersize=3, color=SERIES[0])
        one.axhline(float(budget.terms.epsilon), color=SERIES[1], linestyle="--", label="budget")
        one.set(title=budget.protects, ylim=(0, 1.08 * float(budget.terms.epsilon)))
        if place == 0:
            one.set_ylabel("epsilon spent")
        one.xaxis.set_major_formatter(formatter(one.xaxis.get_major_locator()))
        one.legend(frameon=False, loc="lower right")
    figure.suptitle(ledger.dataset.replace("$", r"\$"))
    return figure


def _staircase(entries: list[Entry], budget: Budget) -> tuple[list[datetime.datetime], list[float]]:
    """What was spent after each charge of one budget, and now; cancelled charges leave the last level right."""
    times, levels = [], []
    for entry in entries:
        if budget.number in entry.budgets:
            times.append(datetime.datetime.fromisoformat(entry.when))
            levels.append(float(entry.spent[entry.budgets.index(budget.number)]))
    first = times[0] if times else datetime.datetime.now(datetime.UTC)
    last = max([datetime.datetime.now(datetime.UTC), *times])
    return [first, *times, last], [0.0, *levels, float(budget.standing.epsilon)]


def save_plot(ledger: Ledger, path: str | os.PathLike[str]) -> None:
    """Write the plot in the format that its name says."""
    from rankdp.report.plots import save

    check_ending(path)
    save(spending_plot(ledger), path)
