"""Ballots in tables: the distinct ones and how often each was cast, counted by expressions where the table is.

A table with a row per ballot is grouped by its columns of ranks. A table with a row per voter and candidate is
grouped by voter, with the ranks of all candidates in a few whole numbers, and then by these. What comes back is one row
per distinct ballot, with the number of the first row that has it; names, repetitions and gaps are checked there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from rankdp.data.ballot_parts import Part, cleaned, orders_of_ranks, refuse_repeated, with_words
from rankdp.data.cells import Coded, Known, Where, encode, in_a_sentence, understand
from rankdp.data.cleaning import SKIPPED, Cleaner
from rankdp.data.columns import Columns, check_names, first_known, listed_names, refuse_nested
from rankdp.data.frames import Reading, rank_table, ranks_of, said_ranks
from rankdp.data.queries import ROW, Asked, asked, place
from rankdp.data.rankings import Rankings
from rankdp.data.tables import Table, check_rows
from rankdp.data.vote_columns import BALLOT_NAMES, MOST_WEIGHT, ROWS_NOT_PEOPLE, WEIGHT_NAMES, is_blank
from rankdp.data.votes import amount_of
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.types import Floats, Longs

_AMOUNT = "rd_ballots"


def table_ballots(
    held: Table, asked: Reading, weight_column: str | None, cleaner: Cleaner
) -> tuple[Part, Known, tuple[str, ...]]:
    """The distinct ballots of a table, cleaned; what is known of the candidates; and notes on how it was read."""
    names, columns = list(held.kinds), dict(asked.columns or {})
    check_names(names, held.what, voter_column=asked.voter_column, weight_column=weight_column)
    free = [name for name in names if name not in (asked.voter_column, *columns.values())]
    weight = weight_column or columns.pop("weight", None) or first_known(free, WEIGHT_NAMES)
    meant = replace(asked, columns=columns).recognise([name for name in names if name != weight], held.what)
    if meant.layout != "long" and meant.voter != asked.voter_column and first_known([meant.voter or ""], BALLOT_NAMES):
        meant = replace(meant, voter=None)
    refuse_nested(held.what, held.kinds, meant.used, "other")
    if meant.layout == "long" and weight is not None:
        raise Unsupported(
            f"{held.what}: the column {weight!r} would give ballots weights, which a table with a row per "
            "voter and candidate does not have: use a row per ballot"
        )
    most = 1 if _names_people(meant.voter, asked.voter_column) else MOST_WEIGHT
    found = not meant.items and held.items_from_data
    known = Known.start(asked.items, meant.items or held.declared_items, found)
    if known.closed and meant.layout == "ranked":
        known = with_words(known.items, meant.items, cleaner)
    with in_a_sentence(held.what):
        if meant.layout == "long":
            part, known = _voters_alike(held, meant, known, cleaner)
        else:
            part = _rows_alike(held, meant, weight, most, known, cleaner)
    unused = [name for name in names if name.strip() and name not in (*meant.used, weight)]
    notes = [f"{held.what}: columns that are not used: {listed_names(unused)}"] if unused else []
    return part, known, (*meant.notes(held.what), *notes)


def _wide_part(batch: Any, columns: Columns, cast: Longs, known: Known, where: Where, cleaner: Cleaner) -> Part:
    """The ballots of a batch with a column per rank, cleaned."""
    cells = [encode(batch.column(name)) for name in columns.ranks]
    listed = known.items if known.closed else ()
    # a candidate's name (a write-in's is that which it counts for), or a code for a word for nobody
    said = [[SKIPPED if is_blank(text, listed) else cleaner.meaning(text) for text in one.values] for one in cells]
    _refuse_pile(cells, said, known, where, cleaner)
    named = [
        Coded(one.codes, [None if isinstance(meant, int) else meant for meant in column], 0)
        for one, column in zip(cells, said, strict=True)
    ]
    codes = np.full((batch.num_rows, len(cells)), SKIPPED, np.int32)
    for rank, (column, names) in enumerate(zip(said, understand(named, known, where), strict=True)):
        meanings = zip(column, names, strict=True)
        table = [meant if isinstance(meant, int) else known.position(name) for meant, name in meanings]
        codes[:, rank] = np.array([*table, SKIPPED], np.int32)[cells[rank].codes]
    orders, _ = cleaner.clean(codes, None, cast)
    return Rankings._of(orders, known.items), cast


def _ranked_part(batch: Any, columns: Columns, cast: Longs, known: Known, where: Where, cleaner: Cleaner) -> Part:
    """The ballots of a batch with a column per candidate that holds the rank, cleaned."""
    said, positions = rank_table(batch, columns, known, where, lambda text: cleaner.rule.kind(text) == "skipped")
    ranks = np.zeros((batch.num_rows, len(known.items)), np.int64)
    ranks[:, positions] = said
    orders, tied = orders_of_ranks(ranks)
    rankings = Rankings._of(orders, known.items, tied=tied, items_from_data=known.from_data)
    return cleaned(rankings, cast, cleaner)


def _refuse_pile(
    cells: Sequence[Coded], said: Sequence[Sequence[Any]], known: Known, where: Where, cleaner: Cleaner
) -> None:
    """Refuse a write-in that is to count for a candidate who is not on the public list."""
    if not known.closed or cleaner.pile in known:
        return
    rows = [
        (int(one.first_rows()[code]), one.values[code])
        for one, column in zip(cells, said, strict=True)
        for code, value in enumerate(column)
        if value == cleaner.pile
    ]
    if rows := sorted(row for row in rows if row[0] >= 0):
        raise InputError(
            f"{where(rows[0][0])}: {rows[0][1]!r} is a write-in, and ",
            Setting("items"),
            f" has no {cleaner.pile!r} to count it for: add that name, or set ",
            Setting("write_ins"),
            " to drop",
        )


def _names_people(voter: str | None, asked: str | None) -> bool:
    """Whether a column names voters, each with one ballot, and not rows (``id``), which may stand for many."""
    return voter is not None and (voter == asked or first_known([voter], ROWS_NOT_PEOPLE) is None)


def _rows_alike(held: Table, columns: Columns, weight: str | None, most: int, known: Known, cleaner: Cleaner) -> Part:
    """The distinct ballots of a table with a row per ballot; a row stands for at most ``most`` of them."""
    used = [name for name in (*columns.ranks, columns.voter, weight) if name is not None]
    with asked(held, used) as ballots:
        amount, rows = nw.col(_AMOUNT), ballots.frame.with_columns(amount_of(weight, MOST_WEIGHT).alias(_AMOUNT))
        facts = {"rd_rows": nw.len(), "rd_least": amount.min(), "rd_most": amount.max()}
        found = ballots.run(rows.group_by(*columns.ranks).agg(amount.sum(), *ballots.first, **facts))
        seen = sum(found["rd_rows"].to_pylist())
        check_rows(held.what, held.rows, seen)
        if not seen:
            raise InputError(f"{held.what}: there are no ballots; at least one is needed")
        if min(found["rd_least"].to_pylist()) < 0:
            cells = ballots.example(rows.filter(amount < 0), [str(weight)])
            rule = f"a weight must be a whole number from 0 to {MOST_WEIGHT:,}"
            raise InputError(f"{place(held, cells.get(ROW))}: {rule}, got {cells[str(weight)]!r}")
        if max(found["rd_most"].to_pylist()) > most:
            cells = ballots.example(rows.filter(amount > most), [_AMOUNT])
            raise InputError(
                f"{place(held, cells.get(ROW))}: the voter has {cells[_AMOUNT]:,} ballots, and an election counts one "
                "ballot of each voter; if the rows are not people, leave out the column of voters"
            )
        if columns.voter is not None:
            _refuse_blank_ids(held, ballots, rows, columns.voter)
            (people,) = ballots.run(rows.select(ids=nw.col(columns.voter).n_unique())).to_pylist()
            refuse_repeated(int(people["ids"]), seen, held.what)
    found, where = _in_order(held, found)
    cast = found[_AMOUNT].cast("int64").to_numpy()
    part = _wide_part if columns.layout == "wide" else _ranked_part
    return part(found, columns, cast, known, where, cleaner)


def _voters_alike(held: Table, columns: Columns, known: Known, cleaner: Cleaner) -> tuple[Part, Known]:
    """The distinct ballots of a table with a row per voter and candidate; equal ranks of a voter are ties."""
    item, rank = columns.ranks
    voter = str(columns.voter)
    with asked(held, [voter, item, rank]) as ballots:
        rows = ballots.frame
        _refuse_blank_ids(held, ballots, rows, voter)
        pairs = ballots.run(rows.group_by(item, rank).agg(nw.len().alias(_AMOUNT), *ballots.first))
        check_rows(held.what, held.rows, sum(pairs[_AMOUNT].to_pylist()))
        pairs, where = _in_order(held, pairs)
        texts, known = _listed_names(pairs[item], known, where, cleaner)
        values, meant = _ranks_said(pairs[rank], columns.ratings, where)
        packed = _Packed(len(texts), len(values))
        spread = rows.join(ballots.moved(meant), left_on=rank, right_on="rd_said", how="left")
        spread = spread.join(ballots.moved(packed.table(texts)), left_on=item, right_on="rd_name", how="left")
        digit = nw.col("rd_code") * nw.col("rd_times")
        cells = {f"rd_part{at}": nw.when(nw.col("rd_part") == at).then(digit) for at in range(packed.parts)}
        facts = {"rd_rows": nw.len(), "rd_items": nw.col(item).n_unique()}
        ranked = [nw.col(name).sum() for name in cells]
        voters = spread.with_columns(**cells).group_by(voter).agg(*ranked, *ballots.first, **facts)
        voters = voters.with_columns(rd_again=nw.col("rd_rows") > nw.col("rd_items"))
        alike = voters.group_by(*cells, "rd_again").agg(nw.len().alias(_AMOUNT), *ballots.first)
        found, where = _in_order(held, ballots.run(alike))
        if any(found["rd_again"].to_pylist()):
            last = [nw.col(ROW).max()] if ballots.has_rows else []
            twice = rows.group_by(voter, item).agg(nw.len().alias(_AMOUNT), *last).filter(nw.col(_AMOUNT) > 1)
            said = ballots.example(twice, [voter, item])
            at = place(held, said.get(ROW))
            raise InputError(f"{at}: voter {said[voter]!r} lists {said[item]!r} more than once")
    codes = packed.codes([found[name].cast("int64").fill_null(0).to_numpy() for name in cells])
    ballot, listed = np.nonzero(codes >= 0)
    ranks = values[codes[ballot, listed]]
    ranks = ranks_of(ranks, ballot) if columns.ratings else ranks
    table = np.zeros((len(codes), len(known.items)), np.int64)
    table[ballot, np.array([known.position(name) for name in texts.values()])[listed]] = ranks
    orders, tied = orders_of_ranks(table)
    rankings = Rankings._of(orders, known.items, tied=tied, items_from_data=known.from_data)
    return cleaned(rankings, found[_AMOUNT].cast("int64").to_numpy(), cleaner), known


class _Packed:
    """Which rank a ballot gives to each item, as digits of a few whole numbers: 0 for none, else 1 + the rank's place.

    An item is one digit, so that the sum over a voter's rows holds them all, if each item is in one row.
    """

    def __init__(self, items: int, ranks: int) -> None:
        self.base = ranks + 1
        self.digits = max(1, 60 // self.base.bit_length())
        self.items, self.parts = items, -(-items // self.digits)

    def table(self, texts: Iterable[str]) -> Any:
        """The part and the digit of each item."""
        parts, places = np.divmod(np.arange(self.items), self.digits)
        return pa.table({"rd_name": list(texts), "rd_part": parts, "rd_times": self.base**places})

    def codes(self, parts: Sequence[Longs]) -> Longs:
        """The places of the ranks, a row for each ballot and a column for each item; -1 for none."""
        digits = [parts[at // self.digits] // self.base ** (at % self.digits) % self.base for at in range(self.items)]
        return np.column_stack(digits) - 1


def _listed_names(column: Any, known: Known, where: Where, cleaner: Cleaner) -> tuple[dict[str, str | None], Known]:
    """What the texts of a column of candidates mean."""
    coded = encode(column)
    if not len(coded.codes):
        raise InputError("there are no ballots; at least one is needed")
    if known.closed:
        known = with_words(known.items, coded.values, cleaner)
    (names,) = understand([coded], known, where)
    blank = [code < 0 or names[code] is None for code in coded.codes]
    if any(blank):
        raise InputError(f"{where(blank.index(True))}: the item is blank")
    # by their texts: tied candidates stay in this order, which must not depend on other voters' rows
    return dict(sorted(zip(coded.values, names, strict=True))), known


def _ranks_said(column: Any, ratings: bool, where: Where) -> tuple[Floats, Any]:
    """The different numbers of a column of ranks or ratings, and a table of the place of each text among them."""
    ranks = said_ranks(column, ratings, where)
    values = np.unique(ranks[~np.isnan(ranks)])
    codes = dict(zip(column.to_pylist(), np.searchsorted(values, ranks).tolist(), strict=True))
    meant = {text: code + 1 for text, code in codes.items() if code < len(values)}
    if not meant:
        raise InputError(f"{where(0)}: no row has a {'rating' if ratings else 'rank'}")
    return values, pa.table({"rd_said": list(meant), "rd_code": list(meant.values())})


def _in_order(held: Table, found: Any) -> tuple[Any, Where]:
    """Groups of rows in the order of their first rows, where rows have numbers, and the places of these."""
    if ROW not in found.column_names:
        return found, lambda _: held.what
    found = found.sort_by(ROW)
    rows = found[ROW].to_pylist()
    return found, lambda row: place(held, rows[row])


def _refuse_blank_ids(held: Table, ballots: Asked, rows: Any, voter: str) -> None:
    blank = rows.filter(nw.col(voter).is_null() | (nw.col(voter) == ""))
    if ballots.run(blank.select(voter).head(1)).num_rows:
        raise InputError(f"{place(held, ballots.example(blank, [voter]).get(ROW))}: the voter id is blank")
