"""Counting votes: what each row says, what each voter weighs, how often each pair met; as expressions of Narwhals.

The expressions are written once. DuckDB runs them on files and frames in this process, and DuckDB or Spark on tables
that live there (``queries.asked``). All numbers are integers, so every engine finds the same ones.

**Weighing.** With a bound c, a voter with k comparisons has the weight w = min(1, c/k) on each of them, in whole steps
of 1/``STEPS``, rounded down: w STEPS = min(STEPS, floor(c STEPS / k)). So

- a voter's weights add up to at most c, whatever k is: k floor(c STEPS / k) <= c STEPS;
- a weight depends on the voter's own rows and on no other voter's;
- ids are trimmed first, and a row without a voter is never counted, so nobody has two loads.

Let two tables differ in one voter. What the voter adds to a vector of counts is a sum of vectors x_i, one for each
comparison, with weights that add up to at most c. In every norm it is at most c times the largest norm of a single x_i,
and its largest entry at most c times theirs. These are the bounds of c comparisons, so all sensitivities of
``mechanisms.votes.noisy_counts`` hold with k = c, times ``STEPS``.

**No overflow.** A row stands for at most 10^9 comparisons (``MOST_WEIGHT``), and a table for at most 2^52 / ``STEPS``
where voters are weighed, else 2^52: more is refused, by a sum of doubles that cannot overflow, before a count is used.
So half-wins in steps add up to at most 2^53, which ``PairCounts`` and the division of every engine hold exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankdp.data.cells import MISSING
from rankdp.data.counts import LOADS, STEPS, PairCounts
from rankdp.data.covariates import Covariate, VoteRows, read_covariates
from rankdp.data.queries import ROW, Asked, asked, place
from rankdp.data.tables import Table, check_rows
from rankdp.data.vote_columns import (
    FIRST,
    LEFT_OUT,
    MARKED,
    MOST_WEIGHT,
    NO_OUTCOME,
    SECOND,
    STRANGE_OUTCOME,
    TIE,
    UNMARKED,
    WHOLE,
    BadRows,
    Diagnostics,
    Problem,
    VoteRules,
    refusal,
)
from rankdp.errors import InputError
from rankdp.types import Longs

MOST_COMPARISONS = 1 << 52


def count(
    votes: VoteRules, bounds: Sequence[int | None], allowance: Mapping[str, tuple[int, int]] | None = None
) -> tuple[list[PairCounts], Diagnostics]:
    """Half-wins of every pair, in steps where voters are weighed, for each of several bounds (None: unweighed).

    An allowance replaces the one bound. It says how many comparisons a voter has and how many steps each of them
    counts. A voter who has more of them by now, or is not named, counts for nothing.
    """
    with asked(votes.table, votes.used) as table:
        rows = _judged(table, votes)
        if allowance is not None:
            schema = pa.schema([("rd_named", pa.string()), ("rd_known", pa.int64()), ("rd_steps", pa.int64())])
            numbers = zip(*allowance.values(), strict=True) if allowance else ((), ())
            columns = [pa.array(part, kind) for part, kind in zip((allowance, *numbers), schema.types, strict=True)]
            small = table.moved(pa.Table.from_arrays(columns, schema=schema))
            rows = rows.join(small, left_on="rd_voter", right_on="rd_named", how="left")
        sums = {f"rd_sum{at}": _weighed(bound) if allowance is None else _within() for at, bound in enumerate(bounds)}
        weighed = rows.with_columns(rd_size=nw.col("rd_amount").cast(nw.Float64), **sums)
        totals = [nw.col(name).sum() for name in ("rd_size", *sums)]
        grouped = weighed.group_by("rd_problem", "rd_left", "rd_right", "rd_outcome")
        found = table.run(grouped.agg(*totals, rd_rows=nw.len()))
        facts = _facts(table, rows, votes, found)
    steps = 1 if list(bounds) == [None] else STEPS
    most = MOST_COMPARISONS // steps
    if (total := float(pc.sum(found["rd_size"]).as_py() or 0)) > most:
        raise InputError(f"{votes.table.what}: at most {most:,} comparisons are counted, got {total:,.0f}")
    good = found.filter(pc.equal(found["rd_problem"], 0))
    left, right, outcome = _integers(good, "rd_left", "rd_right", "rd_outcome")
    ahead = np.array([2, 0, 1])[outcome]  # FIRST, SECOND, TIE
    counts = [
        PairCounts.from_pairs(left, right, ahead * sums, (2 - ahead) * sums, items=votes.items, steps=steps)
        for sums in _integers(good, *sums)
    ]
    return counts, facts


def load_counts(votes: VoteRules) -> Longs:
    """How many voters have a load of 1, 2 to 3, 4 to 7, …; the last of ``LOADS`` cells has no end.

    Rows that break a rule count for nothing.
    """
    with asked(votes.table, votes.used) as table:
        cell = _first_of([(nw.col("rd_load") >= 1 << power, power) for power in range(LOADS - 1, 0, -1)], 0)
        cells = _loads(table, votes).with_columns(rd_cell=cell).group_by("rd_cell").agg(rd_voters=nw.len())
        found = table.run(cells)
    counts = np.zeros(LOADS, np.int64)
    cell, voters = _integers(found, "rd_cell", "rd_voters")
    counts[cell] = voters
    return counts


def voter_loads(votes: VoteRules) -> dict[str, int]:
    """How many comparisons each voter has."""
    with asked(votes.table, votes.used) as table:
        found = table.run(_loads(table, votes))
    (loads,) = _integers(found, "rd_load")
    return dict(zip(found["rd_voter"].to_pylist(), loads.tolist(), strict=True))


def texts_in(table: Table, columns: Sequence[str]) -> set[str | None]:
    """Every text that occurs in these columns, None for an empty cell."""
    with asked(table, columns) as votes:
        return set[str | None]().union(*(votes.distinct(column) for column in columns))


def vote_rows(votes: VoteRules, covariates: Sequence[Covariate]) -> VoteRows:
    """The comparisons one by one, with their covariates."""
    what, kinds = votes.table.what, votes.table.kinds
    if votes.columns.outcome is None and any(not covariate.columns(kinds) for covariate in covariates):
        raise InputError(f"{what}: winner and loser do not say who stood on the left, so there is no position")
    more = {name for covariate in covariates for name in covariate.columns(kinds)}
    if secret := sorted(more & set(votes.used)):
        raise InputError(f"{what}: the column {secret[0]!r} says who met whom and who won: it is no covariate")
    kept = ["rd_left", "rd_right", "rd_outcome", "rd_amount"]
    with asked(votes.table, [*votes.used, *sorted(more)]) as table:
        rows = _judged(table, votes)
        _facts(table, rows, votes, table.run(rows.group_by("rd_problem").agg(rd_rows=nw.len())))
        order = [ROW] if table.has_rows else []
        found = table.run(rows.filter(nw.col("rd_problem") == 0).select(*kept, *order, *sorted(more)))
    if not len(found):
        raise InputError(f"{what}: there are no comparisons")
    found = found.sort_by(ROW) if order else found
    left, right, outcome, amounts = _integers(found, *kept)
    (batch,) = found.combine_chunks().to_batches()
    return VoteRows.of(left, right, outcome, amounts, read_covariates(batch, covariates, what))


# -- what rows say -----------------------------------------------------------------------------------------------


def _judged(table: Asked, votes: VoteRules) -> Any:
    """Every row with its first problem (0 if none), items and outcome as numbers, comparisons, and its voter's load.

    A row with a problem has neither items nor outcome, and stands for no comparison.
    """
    columns = votes.columns
    outcome, amount = _outcome(votes), amount_of(columns.weight, MOST_WEIGHT)
    rows = _numbered(table, votes).with_columns(rd_outcome=outcome, rd_amount=amount)
    left, right, outcome, amount = (nw.col(f"rd_{name}") for name in ("left", "right", "outcome", "amount"))
    missing = [nw.col(name).is_null() | (number < 0) for name, number in ((columns.left, left), (columns.right, right))]
    voter = columns.voter if votes.per_voter is not None else None
    cases = [
        (outcome == STRANGE_OUTCOME, Problem.UNKNOWN_OUTCOME),
        (amount < 0, Problem.BAD_WEIGHT),
        *([] if voter is None else [(_one_of(nw.col(voter), sorted(MISSING)), Problem.MISSING_VOTER)]),
        (missing[0] | missing[1], Problem.MISSING_ITEM),
        (left.is_null() | right.is_null(), Problem.UNKNOWN_ITEM),
        (outcome == NO_OUTCOME, Problem.MISSING_OUTCOME),
        (left == right, Problem.SELF_COMPARISON),
        (outcome == LEFT_OUT, Problem.BOTH_BAD),
    ]
    if votes.category is not None:
        here = (nw.col(str(columns.category)) == votes.category).fill_null(value=False)
        cases.insert(0, (~here, Problem.ANOTHER_CATEGORY))
    rows = rows.with_columns(rd_problem=_first_of(cases, Problem.NONE))
    good = nw.col("rd_problem") == 0
    sound: dict[str, Any] = {"rd_amount": nw.when(good).then(amount).otherwise(nw.lit(0, nw.Int64))}
    sound |= {f"rd_{name}": nw.when(good).then(nw.col(f"rd_{name}")) for name in ("left", "right", "outcome")}
    if voter is None:
        return rows.with_columns(**sound)
    rows = rows.with_columns(rd_voter=nw.col(voter), **sound)
    load = nw.col("rd_amount").sum()
    if isinstance(rows, nw.DataFrame):
        # on Arrow, `over` takes a column out of a join by threads, whose rows may come in another order
        return rows.join(rows.group_by("rd_voter").agg(rd_load=load), on="rd_voter", how="left")
    return rows.with_columns(rd_load=load.over("rd_voter"))


def _loads(table: Asked, votes: VoteRules) -> Any:
    """How many comparisons each voter has, a row for each who has any."""
    good = _judged(table, votes).filter(nw.col("rd_amount") > 0)
    return good.group_by("rd_voter").agg(rd_load=nw.col("rd_amount").sum())


def _numbered(table: Asked, rules: VoteRules) -> Any:
    """The rows with their items as numbers, -1 for a blank; an item that is not listed has none."""
    rows, blank = table.frame, sorted(MISSING - set(rules.items))
    numbers = [*range(len(rules.items)), *[-1] * len(blank)]
    for side, column in (("left", rules.columns.left), ("right", rules.columns.right)):
        said = {f"rd_{side}_name": pa.array([*rules.items, *blank]), f"rd_{side}": pa.array(numbers, pa.int64())}
        rows = rows.join(table.moved(pa.table(said)), left_on=column, right_on=f"rd_{side}_name", how="left")
    return rows


def _outcome(rules: VoteRules) -> Any:
    """What the outcome of a row means."""
    columns = rules.columns
    if columns.marks:
        small = [nw.col(name).str.to_lowercase() for name in columns.marks]
        yes = [_one_of(text, MARKED, null=False) for text in small]
        no = [_one_of(text, [*UNMARKED, *map(str.lower, sorted(MISSING))]) for text in small]
        cases = []
        for at, meaning in enumerate((FIRST, SECOND, TIE, NO_OUTCOME)):
            one, two, three = (yes[place] if place == at else no[place] for place in range(3))
            cases.append((one & two & three, meaning))
        return _first_of(cases, STRANGE_OUTCOME)
    if columns.outcome is None:
        return nw.lit(FIRST, nw.Int64)
    said, cases = nw.col(columns.outcome), []
    if columns.style.named:
        cases += [(said == nw.col(columns.left), FIRST), (said == nw.col(columns.right), SECOND)]
    lowered = said.str.to_lowercase()
    for meaning in sorted(set(rules.words.values())):
        spellings = [word for word, means in rules.words.items() if means == meaning]
        cases.append((_one_of(lowered, spellings, null=False), meaning))
    return _first_of([*cases, (_one_of(said, sorted(MISSING)), NO_OUTCOME)], STRANGE_OUTCOME)


def amount_of(column: str | None, most: int) -> Any:
    """How many equal rows a row stands for: 1 without a column, -1 where it is not a whole number from 0 to most."""
    if column is None:
        return nw.lit(1, nw.Int64)
    text = nw.col(column)
    number = nw.when(text.str.contains(WHOLE)).then(text).cast(nw.Float64)
    whole = (number <= most) & (number == number.floor())
    return nw.when(whole).then(number.cast(nw.Int64)).otherwise(nw.lit(-1, nw.Int64))


def _weighed(bound: int | None) -> Any:
    """What a row counts for, in steps if voters are weighed."""
    amount = nw.col("rd_amount")
    if bound is None:
        return amount
    most = min(bound, MOST_COMPARISONS // STEPS)  # as many as a table may hold
    share = nw.lit(most * STEPS, nw.Int64) // nw.col("rd_load")
    return amount * nw.when(nw.col("rd_load") > most).then(share).otherwise(nw.lit(STEPS, nw.Int64))


def _within() -> Any:
    """The weight of a row where it is stated how many comparisons of each voter count, and how many steps each."""
    named = nw.col("rd_load") <= nw.col("rd_known")
    return nw.col("rd_amount") * nw.when(named).then(nw.col("rd_steps")).otherwise(nw.lit(0, nw.Int64))


def _one_of(text: Any, words: Sequence[str], null: bool = True) -> Any:
    """Whether a text is one of these, or ``null`` where there is none; word by word, since lists take engines long."""
    found = text.is_null() if null else ~text.is_null()
    same = text == words[0]
    for word in words[1:]:
        same = same | (text == word)
    return found | same if null else found & same


def _first_of(cases: Sequence[tuple[Any, int]], otherwise: int) -> Any:
    """The value of the first condition that holds."""
    value = nw.lit(int(otherwise), nw.Int64)
    for holds, meaning in reversed(cases):
        value = nw.when(holds).then(nw.lit(int(meaning), nw.Int64)).otherwise(value)
    return value


# -- results -----------------------------------------------------------------------------------------------------


def _facts(table: Asked, rows: Any, votes: VoteRules, found: Any) -> Diagnostics:
    """What was seen; rows that are to be refused (all kinds at once) and a table that lacks rows are refused."""
    seen = np.zeros(len(Problem), np.int64)
    np.add.at(seen, *_integers(found, "rd_problem", "rd_rows"))
    bad = []
    for problem in votes.refused:
        if seen[problem]:
            cells = table.example(rows.filter(nw.col("rd_problem") == int(problem)), votes.used)
            row = cells.pop(ROW, None)
            bad.append((row or 0, BadRows(problem, int(seen[problem]), cells, place(votes.table, row))))
    if bad:
        raise refusal(votes, [rows for _, rows in sorted(bad, key=itemgetter(0))])
    check_rows(votes.table.what, votes.table.rows, int(seen.sum()))
    dropped = {str(problem): int(seen[problem]) for problem in Problem if problem and seen[problem]}
    return Diagnostics(int(seen.sum()), dropped)


def _integers(found: Any, *columns: str) -> Iterator[Longs]:
    """Columns of a result as whole numbers."""
    for name in columns:
        yield found[name].cast(pa.int64()).to_numpy()
