"""One call of privatize: the mechanism of each row, the rows of each voter, and the guarantee.

Rows may come in batches and in any order. The guarantee is the weakest one of all rows, for all rows of a voter
together.

Each voter may have their own epsilon. Proof: the epsilons are public, and rows are drawn independently of each other,
each by the mechanism for its epsilon. So moving one item of voter v's ranking changes the probability of a release by
a factor of at most exp(eps_v); so does any other change of it where whole rankings are protected. Rows of the same
length and epsilon share a mechanism and its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.cells import id_text
from rankdp.data.frames import OFFSET
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.mechanisms.rankings.tiers import Tiered
from rankdp.mechanisms.rankings.top_ball import completed
from rankdp.mechanisms.registry import MECHANISMS, Protect, Purpose, check_choice, may_have_offsets, releases_lists
from rankdp.mechanisms.registry import mechanism as build
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import positive
from rankdp.privacy.guarantee import ITEM_POSITION, WHOLE_RANKING, Guarantee
from rankdp.privacy.release import Release, released
from rankdp.types import Ints, Longs

_ROWS_NAMED = 5

Group = tuple[NDArray[np.intp] | slice, RankingMechanism]


def drawn_orders(orders: Ints, groups: list[Group], bits: Bits, workers: int = 1) -> tuple[Ints, Ints]:
    """The synthetic orders and their offsets; each group of rows goes through its mechanism."""
    if len(groups) == 1 and isinstance(groups[0][0], slice) and orders.shape[1] == groups[0][1].items:
        return groups[0][1].sample_with_offsets(orders, bits, workers)
    drawn, offsets = orders.copy(), np.zeros(len(orders), dtype=np.int32)
    for rows, chosen in groups:
        part = chosen.sample_with_offsets(orders[rows, : chosen.items], bits, workers)
        drawn[rows, : chosen.items], offsets[rows] = part
    return drawn, offsets


@dataclass(frozen=True, slots=True)
class PrivatizeRequest:
    """What was asked for; the fields are parameters of ``privatize``."""

    epsilon: Fraction | None
    protect: Protect
    mechanism: str
    purpose: Purpose
    top: int | None
    as_tiers: bool
    listed_items_public: bool
    repeated_voters: bool

    def __post_init__(self) -> None:
        check_choice(self.mechanism, self.purpose, self.top, self.protect)

    @property
    def lists(self) -> int | None:
        """The length of the lists that are released instead of rankings; None for rankings."""
        return self.top if releases_lists(self.purpose, self.top, self.protect) else None


class PrivatizeJob:
    """One call: the request, and what is known of its rows so far."""

    def __init__(self, request: PrivatizeRequest, bits: Bits | None) -> None:
        self.request, self.epsilon = request, request.epsilon
        self.bits = bits or SecureBits()
        self.mechanisms: dict[tuple[int, Fraction], RankingMechanism] = {}
        self._partial, self._items, self._rows_per_voter = False, 0, 1
        self._voter_keys: list[Longs] = []
        self._item_names: tuple[str, ...] = ()
        self._admitting = Lock()

    def look(self, batch: Rankings) -> list[Group]:
        """Record rows that are drawn later, and return the mechanisms for them."""
        self.count(batch)
        return self._groups(batch)

    def privatized(self, batch: Rankings, bits: Bits) -> Rankings:
        """The synthetic rows of a fresh batch."""
        return self.draw(batch, self._groups(batch), bits)

    def draw(self, batch: Rankings, groups: list[Group], bits: Bits, workers: int = 1) -> Rankings:
        """The synthetic batch. It is not checked again: tests check that every mechanism permutes its rows."""
        if self.request.lists is not None:
            rankings = completed(batch.orders[:, : self.request.lists], len(batch.items))
            drawn = drawn_orders(rankings, groups, bits, workers)[0][:, : self.request.lists]
            return Rankings._of(np.ascontiguousarray(drawn), batch.items, batch._voters, batch.epsilons)
        drawn, offsets = drawn_orders(batch.orders, groups, bits, workers)
        if self.request.as_tiers:
            return self.tied(batch, drawn, offsets, groups)
        public = offsets if self.with_offsets(batch.orders.shape[1]) else None
        return Rankings._of(drawn, batch.items, batch._voters, batch.epsilons, public)

    def tied(self, batch: Rankings, drawn: Ints, offsets: Ints, groups: list[Group]) -> Rankings:
        """The tier lists of drawn rows: ties show the offset, and the items of a tier are sorted by index."""
        tied = np.zeros(drawn.shape, dtype=np.bool_)
        listed = drawn.copy()
        for rows, chosen in groups:
            assert chosen.ties is not None
            ties = chosen.ties[offsets[rows] if chosen.has_offsets else np.zeros(len(offsets[rows]), dtype=np.int64)]
            keys = np.cumsum(~ties, axis=1) * len(batch.items) + drawn[rows, : chosen.items]
            tied[rows, : chosen.items] = ties
            listed[rows, : chosen.items] = np.sort(keys, axis=1) % len(batch.items)
        return Rankings._of(listed, batch.items, batch._voters, batch.epsilons, None, tied)

    def with_offsets(self, width: int) -> bool:
        """Whether rows are released with offsets: the same for all batches of a table of this width.

        One mechanism for all rows decides. Where lengths or epsilons differ, later rows may have offsets that the first
        ones do not have.
        """
        if self.request.as_tiers or self.request.lists is not None:
            return False
        if self.epsilon is not None and not self.request.listed_items_public:
            return any(chosen.has_offsets for chosen in self.mechanisms.values())
        return may_have_offsets(self.request.mechanism, width, self.request.purpose, self.request.protect)

    def _groups(self, batch: Rankings) -> list[Group]:
        """Which rows go through which mechanism, after checking the rules for the whole table.

        Rows share a mechanism when they share a length of at least two (one listed item has no order to protect) and
        an epsilon. Batches may come in any order: whether their lists of items agree does not depend on it.
        """
        if batch.tied is not None:
            raise InputError(
                Setting("ties"), " must be broken before rankings are privatized: they are orders without ties"
            )
        if self.epsilon is None and batch.epsilons is None:
            raise InputError("epsilon must be given: the rankings carry no epsilon")
        complete, items = batch.complete, len(batch.items)
        with self._admitting:
            if self.request.lists is not None:
                self._check_lists(batch)
                self._item_names = batch.items
            elif not complete or self._items not in (0, items):
                if not self.request.listed_items_public:
                    raise InputError(
                        "some rankings list only some of the items: their order can be protected, but which items they "
                        "list cannot; state that this is public with ",
                        Setting("listed_items_public", True),
                        ", or release lists whose items are protected too with ",
                        Setting("protect", "ranking"),
                        " and ",
                        Setting("top"),
                    )
                self._partial = True
            self._items = items
            if self.epsilon is not None and (complete or self.request.lists is not None):
                return [(slice(None), self._mechanism(items, self.epsilon))] if items > 1 else []
            own = np.zeros(len(batch)) if batch.epsilons is None or self.epsilon is not None else batch.epsilons
            lengths = batch.lengths if self.request.lists is None else np.full(len(batch), items)
            kinds, kind = np.unique(np.stack([lengths, own]), axis=1, return_inverse=True)
            return [
                (np.flatnonzero(kind == number), self._mechanism(int(length), self.epsilon or positive(value)))
                for number, (length, value) in enumerate(kinds.T.tolist())
                if length > 1
            ]

    def _check_lists(self, batch: Rankings) -> None:
        """Refuse lists that are too short, and item names taken from the lists, which are secret."""
        shortest = int(batch.lengths.min(initial=len(batch.items)))
        if shortest < (self.request.lists or 0):
            raise InputError(
                Setting("top", self.request.lists),
                f" needs {self.request.lists} items or more in every ranking, got one that lists {shortest}",
            )
        if (batch.items_from_data and not batch.complete) or self._items not in (0, len(batch.items)):
            raise InputError(
                Setting("items"),
                " must name all items that could be listed: names taken from the lists would become public",
            )
        self._items = len(batch.items)

    def _mechanism(self, length: int, epsilon: Fraction) -> RankingMechanism:
        if (length, epsilon) not in self.mechanisms:
            asked = self.request
            chosen = build(
                asked.mechanism, length, epsilon, purpose=asked.purpose, top=asked.top, protect=asked.protect
            )
            if asked.as_tiers and chosen.ties is None:
                able = ", ".join(name for name, kind in MECHANISMS.items() if issubclass(kind, Tiered))
                raise InputError(
                    Setting("as_tiers", True), f" needs a mechanism with tiers ({able}), got {chosen.name}; name one"
                )
            self.mechanisms[length, epsilon] = chosen
        return self.mechanisms[length, epsilon]

    def count(self, batch: Rankings) -> None:
        """Record the voters of a batch: whole numbers as they are, other ids as 64-bit hashes of their text.

        Python keys its hashes at random in each process. Two of 10^7 different ids share one with probability 3e-6,
        and then count as one voter: the table is refused, or gets a weaker guarantee than it could.
        """
        ids = batch.voters
        if ids is None:
            return
        if ids.dtype.kind in "iu":
            keys = ids.astype(np.int64)
        else:
            keys = np.fromiter(map(hash, map(id_text, ids.tolist())), np.int64, len(ids))
        self._voter_keys.append(keys)

    def check_voters(self, voter_of: Callable[[int], Any]) -> None:
        """Find the largest number of rows of one voter; more than one is refused unless repeated voters are allowed."""
        if not self._voter_keys:
            return
        keys = np.concatenate(self._voter_keys)
        keys.sort(kind="stable")  # fast for ids that are sorted already
        if not (keys[1:] == keys[:-1]).any():
            return
        begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        counts = np.diff(np.append(begins, len(keys)))
        rows = np.flatnonzero(np.concatenate(self._voter_keys) == keys[begins[counts.argmax()]]).tolist()
        named = ", ".join(str(row + 1) for row in rows[:_ROWS_NAMED])
        more = f" and {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
        self.admit_rows(len(rows), lambda: voter_of(rows[0]), f" ({named}{more}, counted from 1)")

    def admit_rows(self, most: int, voter: Callable[[], Any], which: str = "") -> None:
        """Guarantee for this many rows of one voter; more than one is refused unless repeated voters are allowed.

        ``voter`` and ``which`` name that voter and the rows in the refusal.
        """
        self._rows_per_voter = most
        if most > 1 and not self.request.repeated_voters:
            raise InputError(
                f"voter {str(voter())!r} has {most:,} rows{which}, and each of them would be released: "
                "keep one row per voter, or use ",
                Setting("repeated_voters", True),
                ", which states and charges epsilon for all rows of a voter together",
            )

    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees of all rows looked at so far, for all rows of a voter together."""
        if not self.mechanisms:
            raise InputError("no ranking lists two items or more: there is no order to protect")
        largest = max(epsilon for _, epsilon in self.mechanisms)
        if self.request.protect == "ranking":
            weakest = Guarantee(WHOLE_RANKING, largest)
        else:
            local = max(chosen.local_epsilon() for chosen in self.mechanisms.values())
            weakest = Guarantee(ITEM_POSITION, largest, whole_ranking_epsilon=local)
        weakest = replace(
            weakest,
            personal=self.epsilon is None,
            listed_items_public=self._partial,
        )
        return weakest.for_rows_of_a_voter(self._rows_per_voter)

    def release(self, value: Any, width: int, **facts: Any) -> Release[Any]:
        """The value with the weakest of all rows' guarantees, or marked as a rehearsal."""
        if self.with_offsets(width):
            facts["offset_column"] = OFFSET
        asked, used = self.request, {type(chosen).name for chosen in self.mechanisms.values()}
        parameters = {
            "asked_for": asked.mechanism,
            "protect": asked.protect,
            "purpose": asked.purpose,
            **({"top": asked.top} if asked.top else {}),
            **({"as_tiers": True} if asked.as_tiers else {}),
            **({"lists": {"length": asked.lists, "items": list(self._item_names)}} if asked.lists else {}),
            "epsilon": "each voter's own" if self.epsilon is None else str(self.epsilon),
            "choices": [
                {"mechanism": chosen.name, **chosen.parameters, **self._ranking_epsilon(epsilon)}
                for (_, epsilon), chosen in sorted(self.mechanisms.items())
            ],
            **facts,
        }
        mechanism = " + ".join(name for name in MECHANISMS if name in used)
        return released(value, self.guarantee(), mechanism, parameters, self.bits)

    def _ranking_epsilon(self, epsilon: Fraction) -> dict[str, str]:
        """The epsilon of a whole ranking, if that is protected; a mechanism's own epsilon is for a position."""
        return {"ranking_epsilon": str(epsilon)} if self.request.protect == "ranking" else {}
