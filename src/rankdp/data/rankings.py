"""Rankings: a frozen table of orders, checked once.

Row u of `orders` lists the indices of voter u's items from most to least preferred. An *order* (which item
has each place) and a *ranks* vector (which place each item has, the papers' phi) are inverse
permutations and look alike, and taking one for the other is the classic silent mistake of this field. So
there is no constructor for a bare array: say `from_orders` or `from_ranks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import Any, Literal, Self

import numpy as np

from rankdp.data.adapters import to_pref_voting, to_votekit
from rankdp.data.cells import as_frame, check_epsilons, check_items, check_offsets, check_voters, natural
from rankdp.data.orders import ReadTies, Ties, check_orders, index_array, orders_array, orders_from_ranks
from rankdp.errors import InputError
from rankdp.lazy import LazyModule
from rankdp.types import Flags, Floats, Ints

pa: Any = LazyModule("pyarrow")

FORMATS: dict[str, Callable[..., Any]] = {}
"""How rankings come from tables and files and go there: `read`, `to_arrow`, `write`.

`rankdp.data.files` is above this module and registers its functions here when it is imported, which `rankdp.data` does
first of all. So the class has the methods that people look for, and this module knows no format.
"""


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rankings:
    """A frozen table of rankings: `orders[u]` lists voter u's items from most to least preferred.

    Partial rankings are padded with -1 at the end. Voters may have ids and their own epsilons. Built by
    `from_orders`, `from_ranks`, `from_frame` and `read`; every rule is checked there, and nowhere again.
    """

    orders: Ints
    """n x width item indices (int32, counted from 0), -1 after the last listed item; read-only."""
    items: tuple[str, ...]
    epsilons: Floats | None
    """Each voter's own epsilon, or None."""
    _voters: Any
    offsets: Ints | None
    """The public offset that each synthetic row was released with, or None (see ``offset-tiers``)."""
    tied: Flags | None
    """In a tier list, n x width: whether a place is tied with the one before it; None where nothing is tied."""
    items_from_data: bool
    """Whether the list of items was found in the rows, which makes public which items occur; False if it was given."""

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "an array alone does not say whether it holds orders or ranks: "
            "use Rankings.from_orders, from_ranks, from_frame or read"
        )

    @classmethod
    def _of(
        cls,
        orders: Ints,
        items: tuple[str, ...],
        voters: Any = None,
        epsilons: Floats | None = None,
        offsets: Ints | None = None,
        tied: Flags | None = None,
        items_from_data: bool = False,
    ) -> Self:
        """Assemble parts that are already checked."""
        self = object.__new__(cls)
        for array in (orders, epsilons, offsets, tied):
            if array is not None:
                array.flags.writeable = False
        values = (orders, items, epsilons, voters, offsets, tied, items_from_data)
        for name, value in zip(cls.__slots__, values, strict=True):
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def of(cls, source: Any, **options: Any) -> Self:
        """Rankings from whatever holds them.

        Parameters
        ----------
        source
            Rankings (returned as they are), or whatever `rankdp.data.tables.open_table` opens: a path or several, a
            frame (PyArrow, pandas, Polars, DuckDB or anything with an Arrow stream), also with a column of lists called
            ranking, order or ballot; a Spark DataFrame is brought into memory (``privatize`` and ``aggregate`` leave it
            where it is). Or a profile of another library: VoteKit, pref_voting, PrefLib-Tools.
        **options
            The options of `read`.
        """
        if isinstance(source, cls):
            if options:
                raise InputError(f"these rankings are open already: {', '.join(options)} cannot be given again")
            return source
        known = ("__arrow_c_stream__", "toArrow", "kinds", "collect_schema", "with_format")
        profiles = ("candidates", "alternatives_name")
        files = source if isinstance(source, (list, tuple)) else [source]
        named = all(isinstance(file, (str, PathLike)) for file in files)
        if not named and not any(hasattr(source, name) for name in (*known, *profiles)):
            raise InputError(
                "rankings must be a rankdp.Rankings, a path or a table (PyArrow, pandas, Polars, DuckDB, Spark), "
                f"got {type(source).__name__}"
            )
        return cls.read(source, **options)

    @classmethod
    def from_orders(
        cls,
        orders: Any,
        items: Iterable[Any] | None = None,
        voters: Iterable[Any] | None = None,
        epsilons: Any = None,
        offsets: Any = None,
    ) -> Self:
        """Rankings from lists of items, best first.

        Parameters
        ----------
        orders
            A row per voter: lists of names, which may have different lengths, or an integer array of indices counted
            from 0, padded with -1.
        items
            The names of all items. Without them, names are put in natural order, and indices must use every number from
            0 to their largest (so that indices counted from 1 are noticed) and become the names "0", "1", …. A
            release then warns that the list was taken from the rows.
        voters
            An id for each row; spaces around a text are not part of it, and none is blank.
        epsilons
            Each voter's own epsilon, above 0.
        offsets
            The public offsets that synthetic rankings were released with, whole numbers from 0 on.
        """
        names = None if items is None else check_items(items)
        return cls._checked(*orders_array(orders, names), voters, epsilons, offsets, items is None)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        items: Iterable[Any] | None = None,
        voters: Iterable[Any] | None = None,
        epsilons: Any = None,
        *,
        ties: Ties = "refuse",
    ) -> Self:
        """Rankings from an n x m table of ranks.

        Parameters
        ----------
        ranks
            A row per voter and a column per item: 1 is the most preferred; 0, NaN and None mean that the voter did not
            list the item. The ranks of a row are 1, 2, 3, … without gaps; after k items tied at rank r the next rank is
            r + 1 or r + k.
        items
            The names of the columns; by default a frame's own, else "0", "1", ….
        voters, epsilons
            As in `from_orders`.
        ties
            "refuse" equal ranks, break them as "listed" in `items`, or uniformly at "random".
        """
        return cls._checked(*orders_from_ranks(ranks, items, ties), voters, epsilons)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        items: Iterable[Any] | None = None,
        *,
        ties: ReadTies = "refuse",
        voter_column: str | None = None,
        epsilon_column: str | None = None,
        offset_column: str | None = None,
        columns: Mapping[str, str] | None = None,
        layout: Literal["auto", "ranks"] = "auto",
        **opening: Any,
    ) -> Self:
        """Read a whole file: CSV, JSON Lines, Excel, Parquet, PrefLib or BLT (see `rankdp.data.files`).

        Parameters
        ----------
        path
            A file whose ending says its format, a pattern, or a list of files with the same columns. The columns of a
            table are voter, rank_1, rank_2, … or voter, item, rank, or others that `rankdp.data.columns` recognises.
        items
            The public list of items; then any other item is refused.
        ties
            "refuse" tied items, keep them as "listed", draw their order at "random", or "keep" the ties: a tier list.
        voter_column
            The column of the voters' ids, where it does not have one of the usual names.
        epsilon_column
            The column of each voter's own epsilon; without it no column is taken for one.
        offset_column
            The column of the public offsets of synthetic rankings; without it no column is taken for one.
        columns
            Names to give to columns before they are recognised, such as ``{"rank_1": "Q7"}``.
        layout
            "ranks" if every column but the voter's is an item and holds its rank.
        **opening
            ``table``, ``sheet`` and ``encoding``, as in `rankdp.data.tables.open_table`.
        """
        asked = {"voter_column": voter_column, "epsilon_column": epsilon_column, "offset_column": offset_column}
        asked |= {"layout": layout, **opening}
        rankings: Self = FORMATS["read"](path, items=items, ties=ties, columns=columns, **asked)
        return rankings

    @classmethod
    def from_frame(cls, frame: Any, items: Iterable[Any] | None = None, **reading: Any) -> Self:
        """Rankings from any Arrow-compatible table: pandas, Polars, DuckDB, PyArrow.

        Parameters
        ----------
        frame
            The table, with the columns of the files.
        items, **reading
            As in `read`.
        """
        return cls.read(frame, items, **reading)

    @classmethod
    def concatenate(cls, batches: Iterable[Rankings], *, sort_items: bool = False) -> Self:
        """Put batches together.

        Parameters
        ----------
        batches
            The batches of one reader: each batch's items begin with the items of the batch before.
        sort_items
            Whether to put the items in natural order of their names.
        """
        parts = list(batches)
        if not parts:
            raise InputError("there are no rankings; at least one row is needed")
        items = parts[-1].items
        for part in parts:
            if items[: len(part.items)] != part.items:
                raise InputError("the batches do not share one list of items")
        orders = parts[0].orders if len(parts) == 1 else _stack([part.orders for part in parts])
        if sort_items and (ordered := tuple(sorted(items, key=natural))) != items:
            place = {name: position for position, name in enumerate(ordered)}
            # the last entry stands for the padding: index -1 finds it
            orders = np.array([*(place[name] for name in items), -1], dtype=np.int32)[orders]
            items = ordered
        voters = _joined([part._voters for part in parts])
        epsilons, offsets = _joined([part.epsilons for part in parts]), _joined([part.offsets for part in parts])
        tied = None
        if any(part.tied is not None for part in parts):
            flags = [np.zeros(part.orders.shape, np.bool_) if part.tied is None else part.tied for part in parts]
            tied = flags[0] if len(flags) == 1 else _stack([part.astype(np.int32) for part in flags]) > 0
        found = any(part.items_from_data for part in parts)
        return cls._of(orders, items, voters, epsilons, offsets, tied, found)

    @classmethod
    def _checked(
        cls, orders: Ints, items: tuple[str, ...], voters: Any, epsilons: Any, offsets: Any = None, found: bool = False
    ) -> Self:
        check_orders(orders, items)
        own = None if epsilons is None else check_epsilons(epsilons, len(orders))
        public = None if offsets is None else check_offsets(offsets, len(orders))
        return cls._of(orders, items, check_voters(voters, len(orders)), own, public, None, found)

    def with_orders(self, orders: Ints, offsets: Any = None) -> Self:
        """The same items, voters and epsilons with new orders.

        Parameters
        ----------
        orders
            An array of indices, a row for each ranking; it is checked, taken over and made read-only.
        offsets
            The public offsets that the new orders come with, if any.
        """
        array = index_array(orders)
        if len(array) != len(self):
            raise InputError(f"orders must have one row for each of the {len(self)} rankings, got {len(array)}")
        check_orders(array, self.items)
        public = None if offsets is None else check_offsets(offsets, len(array))
        return self._with(orders=array, offsets=public, tied=None)

    def with_epsilons(self, epsilons: Any) -> Self:
        """The same rankings, each with its own epsilon.

        Parameters
        ----------
        epsilons
            One finite number above 0 for each row.
        """
        return self._with(epsilons=check_epsilons(epsilons, len(self)))

    def without_voters(self) -> Self:
        """The same rankings without their voters' ids."""
        return self._with(voters=None)

    def take(self, rows: Any) -> Self:
        """The rows with these numbers, in this order.

        Parameters
        ----------
        rows
            An array of row numbers, counted from 0.
        """
        return self._rows(rows, self.voters)

    def _rows(self, rows: Any, voters: Any) -> Self:
        parts = {"voters": voters, "epsilons": self.epsilons, "offsets": self.offsets, "tied": self.tied}
        some = {name: None if part is None else part[rows] for name, part in parts.items()}
        return self._with(orders=self.orders[rows], **some)

    def _with(self, **parts: Any) -> Self:
        """The same table with other parts, which are checked already."""
        mine = {name.lstrip("_"): getattr(self, name) for name in self.__slots__}
        return self._of(**(mine | parts))

    @property
    def voters(self) -> Any:
        """The voters' ids, one for each row, as a NumPy array; None when the source has none."""
        if self._voters is None or isinstance(self._voters, np.ndarray):
            return self._voters
        ids = self._voters.to_numpy(zero_copy_only=False)
        ids.flags.writeable = False
        return ids

    @property
    def complete(self) -> bool:
        """True when every row lists every item."""
        m = len(self.items)
        return self.orders.shape[1] >= m and bool((self.orders[:, m - 1] >= 0).all())

    @property
    def lengths(self) -> Ints:
        """How many items each row lists."""
        if self.complete:
            return np.full(len(self), len(self.items), np.int32)
        listed: Ints = (self.orders >= 0).sum(axis=1, dtype=np.int32)
        return listed

    def ranks(self) -> Ints:
        """The papers' phi: n x m, column i holding the rank of item i: 1 for the best, 0 if not listed.

        In a tier list it is the number of the tier.
        """
        width = self.orders.shape[1]
        # one spare column swallows the padding: index -1 points at it
        ranks = np.zeros((len(self), len(self.items) + 1), np.int32)
        places: Ints = np.broadcast_to(np.arange(1, width + 1, dtype=np.int32), self.orders.shape)
        if self.tied is not None:
            places = np.cumsum(~self.tied, axis=1, dtype=np.int32)
        np.put_along_axis(ranks, self.orders.astype(np.intp), places, axis=1)
        listed: Ints = np.ascontiguousarray(ranks[:, :-1])
        return listed

    def to_arrow(self) -> Any:
        """A wide PyArrow table: voter, rank_1, rank_2, …, epsilon when the voters have their own, and offset.

        A tier list is a long one: voter, item, tier.
        """
        return FORMATS["to_arrow"](self)

    def to_frame(self, kind: str | None = None) -> Any:
        """The wide table as a frame.

        Parameters
        ----------
        kind
            "pandas", "polars" or "arrow"; the first of them that is installed, if not given.
        """
        return as_frame(self.to_arrow(), kind)

    def to_votekit(self) -> Any:
        """A VoteKit ``RankProfile``, a ballot for each ranking; VoteKit must be installed."""
        return to_votekit(self.items, self.orders, self.tied, np.ones(len(self), np.int64))

    def to_pref_voting(self) -> Any:
        """A pref_voting ``Profile``, or ``ProfileWithTies`` if there are ties or partial rankings."""
        return to_pref_voting(self.items, self.orders, self.tied, np.ones(len(self), np.int64))

    def _repr_html_(self) -> str:
        """The first rankings, for a notebook."""
        rows = ["<li>" + escape(" > ".join(order)) + "</li>" for order in self[:10]]
        return f"<p>{escape(repr(self))}</p><ul>{''.join(rows)}</ul>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Let any Arrow-compatible library take the table as it is."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def write(self, path: str | PathLike[str], *, layout: Literal["wide", "long"] = "wide") -> None:
        """Write a file (see `rankdp.data.files.open_writer`).

        Parameters
        ----------
        path
            The file; its ending says the format.
        layout
            "wide", a row per ranking, or for CSV also "long", a row per listed item.
        """
        FORMATS["write"](self, path, layout)

    def __len__(self) -> int:
        return len(self.orders)

    def __getitem__(self, rows: slice) -> Self:
        """Some of the rows, as a view: `rankings[:1000]`."""
        if not isinstance(rows, slice):
            raise TypeError(f"rankings are cut by slices such as rankings[:10], got {rows!r}")
        if not len(self.orders[rows]):
            raise InputError(f"no row lies in {rows}; at least one row is needed")
        return self._rows(rows, self._voters)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Each ranking as a tuple of item names, best first."""
        for row in self.orders:
            yield tuple(self.items[item] for item in row if item >= 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        parts = ("orders", "epsilons", "offsets", "tied", "voters")
        return self.items == other.items and all(
            np.array_equal(getattr(self, part), getattr(other, part)) for part in parts
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._voters, self.epsilons, self.offsets, self.tied, self.items_from_data)
        return Rankings._of, (self.orders, self.items, *parts)

    def __repr__(self) -> str:
        shown = ", ".join(self.items[:4]) + (", …" if len(self.items) > 4 else "")
        lengths = self.lengths
        partial = "" if self.complete else f", {lengths.min()} to {lengths.max()} listed"
        parts = (self._voters, self.epsilons, self.offsets, self.tied)
        words = ("voter ids", "own epsilons", "offsets", "in tiers")
        extras = "".join(f", {word}" for word, part in zip(words, parts, strict=True) if part is not None)
        return f"Rankings({len(self):,} of {len(self.items)} items: {shown}{partial}{extras})"


def _stack(parts: Sequence[Ints]) -> Ints:
    """Rows under rows; narrower parts are padded."""
    width = max(part.shape[1] for part in parts)
    narrow = [((0, 0), (0, width - part.shape[1])) for part in parts]
    padded = [
        part if part.shape[1] == width else np.pad(part, cells, constant_values=-1)
        for part, cells in zip(parts, narrow, strict=True)
    ]
    return np.concatenate(padded)


def _joined(parts: Sequence[Any]) -> Any:
    """Ids or numbers of all parts; None where a part has none."""
    if any(part is None for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        joined = np.concatenate(parts)
        joined.flags.writeable = False
        return joined
    chunks = [chunk for part in parts for chunk in getattr(part, "chunks", [part])]
    return pa.chunked_array([pa.array(chunk) if isinstance(chunk, np.ndarray) else chunk for chunk in chunks])
