"""The result of an election for readers: who won and how surely, the scores, the rounds or the pairs, the promise."""

from __future__ import annotations

from os import PathLike
from typing import Any

from rankdp.privacy.release import Release
from rankdp.publish.election_result import CANDIDATES_FROM_BALLOTS, Election
from rankdp.report.document import Report
from rankdp.report.results import Table

_MOST_PAIRS = 12  # candidates whose margins a page shows as a table
_MARGINS = "A margin is how many more ballots put one candidate above another than the other way round."
_POINTS = "Borda points (one for every candidate ranked lower) do not decide."
_DUELS = "The order is by duels won minus duels lost, then by Borda points (one for every candidate ranked lower)."
_COUNTED = {
    "plurality": "Votes: how many ballots have a candidate in the first place, or among the first few, if those count.",
    "borda": "Borda points: one for every candidate ranked lower on a ballot, a half for every one tied with it or, "
    "like it, not listed.",
    "irv": "Every round counts each ballot for the highest continuing candidate on it; the last one is eliminated. A "
    "ballot that lists no continuing candidate is exhausted. The table has the votes of each candidate's last round. "
    "In brackets: the change since the round before.",
    "stv": "Every round counts each ballot for the highest continuing candidate on it. Whoever reaches the quota "
    "(Droop's: the votes divided by the seats plus one, plus one) is elected, and the surplus over it is passed on: "
    "all their ballots move to the next candidate at a reduced value (Gregory's method, weighted inclusive). If no "
    "surplus is left, the last one is eliminated. A ballot that lists no continuing candidate is exhausted. The "
    "table has the votes of each candidate's last round. In brackets: the change since the round before.",
    "kemeny": f"{_MARGINS} Kemeny's order overrules the fewest of the voters' preferences between two candidates. "
    f"{_POINTS}",
    "copeland": f"{_MARGINS} {_DUELS}",
    "ranked-pairs": f"{_MARGINS} Ranked pairs fixes majorities from the largest down and skips majorities that "
    f"contradict earlier ones. {_POINTS}",
    "schulze": f"{_MARGINS} Schulze's order compares chains of majorities, each as strong as its weakest margin. "
    f"{_POINTS}",
    "condorcet": f"{_MARGINS} A Condorcet winner beats every other candidate. {_DUELS}",
}


_EQUALS = "Candidates who are equal in this keep the order of the list."
_EQUAL_VOTES = "Of equal votes, whoever had fewer in an earlier round goes out, else whoever is listed later."
_METHODS = {
    "scottish": "Surpluses were transferred one at a time, the largest first, and to five decimal places, as in "
    "Scottish councils.",
    "gregory": "All surpluses of a round were transferred together.",
    "majority": "The count ended as soon as one candidate had more than half of the votes.",
    "two": "The count went on until two candidates were left.",
}


def election_report(release: Release[Election], title: str = "Election result") -> Report:
    """The report of a published election.

    Parameters
    ----------
    release
        What ``rankdp.elect`` returned.
    title
        The heading of the page or picture.
    """
    result, records = release.value, release.value.rows()
    if release.provenance.exact:
        title, records = f"{title} (NOT PRIVATE)", [{**record, "NOT PRIVATE": "exact count"} for record in records]
    noisy = "" if release.provenance.exact else " All numbers are counts plus noise: they can be fractions, or below 0."
    return Report(
        title=title,
        records=records,
        facts=lambda: _facts(result),
        headline=result.headline(),
        results=result.results() if result.scores else None,
        tables=_details(result) if result.scores else [_names(result)],
        words=_more(result),
        warnings=[words for words in result.warnings if words != CANDIDATES_FROM_BALLOTS],
        limits=[CANDIDATES_FROM_BALLOTS] if CANDIDATES_FROM_BALLOTS in result.warnings else [],
        sure=_sure(result) if result.scores and not release.provenance.exact else [],
        computed=[
            *([f"{_COUNTED[result.rule]}{noisy} {_METHODS.get(result.method, '')}".strip()] if result.scores else []),
            *([_EQUAL_VOTES if result.rounds else _EQUALS] if release.provenance.exact else []),
            *([result.cleaning] * bool(result.cleaning)),
        ],
        figure=(lambda: result.plot(title)) if result.scores else None,
        release=release,
    )


def write_election(release: Release[Election], path: str | PathLike[str], title: str = "Election result") -> None:
    """Write a published election, with what is promised about it, in the format that the ending says.

    Parameters
    ----------
    release, title
        As in ``election_report``.
    path
        A file that ends with .csv, .json, .html, .png, .svg or .pdf; a CSV gets its guarantee in PATH.release.json.
    """
    election_report(release, title).write(path)


def _more(result: Election) -> list[str]:
    """What the margins or the rounds say in addition to the winners, and what orders the rows where scores do not."""
    said, nobody = [], "no candidate beats every other in the released margins"
    if result.rounds:
        said.append("In the order of the count, with the votes of each candidate's last round.")
    elif result.margins is not None and result.scores:
        said.append("The margins between pairs make the order, not the Borda points.")
    if result.margins is not None and result.rule != "condorcet":
        found = result.condorcet_winner
        beaten = nobody if found is None else f"{found} beats every other candidate in the released margins"
        said.append(f"{beaten[0].upper()}{beaten[1:]}.")
    if result.quota is not None:
        low, high = result.quota_low or result.quota, result.quota_high or result.quota
        span = f" (the exact count's lies between {low:,.0f} and {high:,.0f})" if high > low else ""
        said.append(f"The quota is {result.quota:,} vote{'s' * (result.quota != 1)}{span}.")
    if values := {name: value for one in result.rounds for name, value in one.transfers.items()}:
        told = ", ".join(f"{name} {value:.1%}" for name, value in values.items())
        said.append(f"Surplus passed on, as a share of the votes of the elected candidate: {told}.")
    return [" ".join(said)] if said else []


def _sure(result: Election) -> list[str]:
    """What intervals and ranges of ranks mean."""
    if not result.rounds:
        ranks = "and each range of ranks the exact rank."
    else:
        ranks = (
            "in these rounds. A range of ranks compares two candidates in the last round that counted both; after a "
            "close round the exact count may continue differently."
        )
    return [f"Each interval holds the exact count with a probability of {result.level:.0%}, {ranks}"]


def _facts(result: Election) -> dict[str, Any]:
    pairs = {"candidates": result.items, "margins": result.margins, "half_width": result.margin_half_width}
    return {
        "headline": result.headline(),
        "rule": result.rule,
        "winners": result.winners,
        "winners_probability": result.winners_probability,
        "probability_is_lower_bound": result.at_least,
        "ballots": result.ballots,
        **({} if result.ballots_low is None else {"ballots_interval": [result.ballots_low, result.ballots_high]}),
        "candidates": result.rows(),
        "level": result.level,
        **({} if result.margins is None else {"pairs": pairs, "condorcet_winner": result.condorcet_winner}),
        **({"quota": result.quota, "quota_interval": [result.quota_low, result.quota_high]} if result.quota else {}),
        **({"method": result.method} if result.method else {}),
        **(
            {
                "rounds": [
                    {
                        "tallies": one.tallies,
                        "elected": one.elected,
                        "eliminated": one.eliminated,
                        "transfer_values": one.transfers,
                        "half_width": one.half_width,
                        "exhausted": one.exhausted,
                        "gains": one.gains,
                        "gain_half_width": one.gain_half_width,
                    }
                    for one in result.rounds
                ]
            }
            if result.rounds
            else {}
        ),
        "cleaning": result.cleaning,
        "warnings": result.warnings,
    }


def _names(result: Election) -> Table:
    return Table(["place", "elected"], [[str(place), name] for place, name in enumerate(result.items, 1)], texts=2)


def _details(result: Election) -> list[Table]:
    """The transcript of rounds, or the margins."""
    if result.rounds:
        return _transcript(result)
    if result.margins is None or len(result.items) > _MOST_PAIRS:
        return []
    numbers = [str(place) for place in range(1, len(result.items) + 1)]
    rows = [
        [
            numbers[row],
            name,
            *("" if row == column else _count(value) for column, value in enumerate(result.margins[row])),
        ]
        for row, name in enumerate(result.items)
    ]
    title = "Margins of the row over the column"
    if result.margin_half_width:
        title += f", ± {_count(result.margin_half_width)} each"
    return [Table(["place", "candidate", *numbers], rows, texts=2, title=title)]


def _transcript(result: Election) -> list[Table]:
    """A column for each round; a candidate's last tally says what became of it."""
    rows, exact = [], result.low == result.high
    for name in result.items:
        cells = []
        for one in result.rounds:
            cell = _count(one.tallies[name], exact=exact) if name in one.tallies else ""
            if cell and name in one.gains:
                cell += f" ({_count(one.gains[name], '+', exact)})"
            if name in one.elected:
                cell += " elected"
            elif name == one.eliminated:
                cell += " out"
            cells.append(cell)
        if name in result.winners and not any(name in one.elected for one in result.rounds):
            cells[-1] += " elected"
        rows.append([name, *cells])
    rows.append(["exhausted", *(_count(one.exhausted, exact=exact) for one in result.rounds)])
    heads = ["candidate", *(str(number) for number in range(1, len(result.rounds) + 1))]
    title = "Round by round, in votes"
    if any(one.half_width for one in result.rounds):
        title += f", ± {_span([one.half_width for one in result.rounds])} each"
        if len(result.rounds) > 1:
            title += f" (gains ± {_span([one.gain_half_width for one in result.rounds[1:]])})"
    return [Table(heads, rows, title=title)]


def _span(widths: list[float]) -> str:
    ends = _count(min(widths)), _count(max(widths))
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _count(value: float, sign: str = "", exact: bool = False) -> str:
    """A number of votes: exact ones to five decimals, as Scottish councils count them."""
    if exact:
        return f"{value:{sign},.5f}".rstrip("0").rstrip(".")
    text = f"{value:{sign},.0f}" if abs(value) >= 10 else f"{value + 0.0:{sign},.1f}"
    return text.replace("-0.0", "0.0") if text == "-0.0" else text
