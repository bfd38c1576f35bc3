"""A ledger for people: what is spent and what is left, one line per charge, a plot over time, a CSV file.

Everything is computed from the ledger's public entries; nothing here can charge or release anything.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rankdp.privacy.exact import shown
from rankdp.privacy.ledger import Ledger
from rankdp.privacy.ledger.entries import Budget, Entry
from rankdp.report.document import Report
from rankdp.report.plots import SERIES, new_figure, unformatted
from rankdp.report.results import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "number", "when", "dataset", "what", "state", "protects", "epsilon", "delta", "budget", "charged_epsilon",
    "charged_delta", "converted", "counted_by", "spent_epsilon", "partition", "part", "mechanism",
)  # fmt: skip


def budget_report(ledger: Ledger) -> Report:
    """The report of one data set's budgets and charges."""
    return Report(
        title=f"Budget of {ledger.dataset}",
        records=list(_records(ledger)),
        columns=COLUMNS,
        facts=lambda: {
            "ledger": ledger.path,
            "dataset": ledger.dataset,
            "budgets": [budget.to_dict() | {"number": budget.number} for budget in ledger.budgets],
            "entries": [entry.to_dict() for entry in ledger.history()],
        },
        headline=_headline(ledger),
        tables=[budget_table(ledger), *([history_table(ledger)] if ledger.history() else [])],
        figure=lambda: spending_plot(ledger),
    )


def _headline(ledger: Ledger) -> str:
    left = "Epsilon {} of {} is left for {}."
    return " ".join(
        left.format(shown(budget.remaining, up=False), shown(budget.terms.epsilon), budget.protects)
        for budget in ledger.budgets
    )


def budget_table(ledger: Ledger) -> Table:
    """One line for each budget of the data set."""
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
    return Table(["protects", "budget", "spent", "remaining epsilon", "counted by"], rows)


def history_table(ledger: Ledger) -> Table:
    """One line for each charge and budget, oldest first."""
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
    return Table(heads + (["budget"] if len(units) > 1 else []), rows, texts=4, title="Charges")


def _pair(epsilon: Fraction, delta: Fraction) -> str:
    return shown(epsilon) + (f", delta {shown(delta)}" if delta else "")


def _records(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """One for each charge and budget; numbers are exact, as text such as 1/3."""
    for entry in ledger.history():
        facts = entry.to_dict()
        mechanism = (entry.release or {}).get("mechanism", "")
        for charge in facts["charges"]:
            yield facts | charge | {"mechanism": mechanism}


def spending_plot(ledger: Ledger) -> Figure:
    """What was spent of each budget over time, as a staircase under the line of the budget."""
    budgets, entries = ledger.budgets, ledger.history()
    figure, axes = new_figure(len(budgets), width=1.5 + 5.5 * len(budgets), height=4)
    from matplotlib import dates  # installed, or new_figure would have refused

    formatter: Any = dates.ConciseDateFormatter
    for panel, budget in zip(axes, budgets, strict=True):
        times, levels = _staircase(entries, budget)
        panel.step(times, levels, where="post", color=SERIES[0])
        panel.plot(times[1:-1], levels[1:-1], "o", markersize=3, color=SERIES[0])
        panel.axhline(float(budget.terms.epsilon), color=SERIES[1], linestyle="--", label="budget")
        panel.set(title=unformatted(budget.protects), ylim=(0, 1.08 * float(budget.terms.epsilon)))
        panel.xaxis.set_major_formatter(formatter(panel.xaxis.get_major_locator()))
        panel.legend(frameon=False, loc="lower right")
    axes[0].set_ylabel("epsilon spent")
    figure.suptitle(unformatted(f"Budget of {ledger.dataset}"))
    return figure


def _staircase(entries: list[Entry], budget: Budget) -> tuple[list[datetime.datetime], list[float]]:
    """What was spent after each charge of one budget, and what is spent now, without cancelled charges."""
    times, levels = [], []
    for entry in entries:
        if budget.number in entry.budgets:
            times.append(datetime.datetime.fromisoformat(entry.when))
            levels.append(float(entry.spent[entry.budgets.index(budget.number)]))
    last = max([datetime.datetime.now(datetime.UTC), *times])
    first = min([last - datetime.timedelta(hours=1), *times])  # an axis that clock times fit on
    return [first, *times, last], [0.0, *levels, float(budget.standing.epsilon)]
