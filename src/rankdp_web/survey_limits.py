"""What bounds abuse of a survey that everybody may answer, without knowing anybody.

Every answer needs a ticket, and a network address gets a limited number of tickets a minute: a token
bucket. Addresses are held in memory alone, as keyed hashes that end with the process, at most ``MOST_ADDRESSES`` of
them; the one that was seen longest ago is forgotten first. An IPv6 address counts by its first 64 bits, which is what
a household gets. Whoever has many addresses gets many tickets: where that matters, invitations are the answer.

A pulse counts what a survey got in each of the last ``SLOTS`` times five minutes, for the organiser's eyes: answers,
and pages that were refused. It is in memory alone too.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import Counter, OrderedDict, defaultdict

TICKETS_PER_MINUTE = 60
"""For a school class behind one address."""
MOST_ADDRESSES = 10_000
SLOTS, _SLOT_SECONDS = 24, 300


class TicketLimit:
    """Which addresses may have another ticket.

    Parameters
    ----------
    per_minute
        How many tickets an address gets a minute, and at once.
    """

    def __init__(self, per_minute: int = TICKETS_PER_MINUTE) -> None:
        self.per_minute = per_minute
        self._key = secrets.token_bytes(16)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Whether this address may have a ticket now; it is taken if so."""
        key, now = self._hashed(address), self._now()
        left, since = self._buckets.pop(key, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        may = left >= 1
        self._buckets[key] = (left - may, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return may

    _now = staticmethod(time.monotonic)

    def _hashed(self, address: str) -> bytes:
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            network = address.encode()
        else:
            known = getattr(known, "ipv4_mapped", None) or known
            network = known.packed[:8] if known.version == 6 else known.packed
        return hashlib.blake2b(network, key=self._key, digest_size=16).digest()


class Pulse:
    """How many answers and refusals each survey had lately."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def beat(self, survey_id: str, what: str) -> None:
        """Count one "answer" or "refusal"."""
        counts, now = self._counts[survey_id, what], self._now()
        counts[now] += 1
        for slot in [slot for slot in counts if slot <= now - SLOTS]:
            del counts[slot]

    def counts(self, survey_id: str, what: str) -> list[int]:
        """By slot of five minutes, the oldest first."""
        counts, now = self._counts.get((survey_id, what), Counter()), self._now()
        return [counts[slot] for slot in range(now - SLOTS + 1, now + 1)]

    def forget(self, survey_id: str) -> None:
        """The survey is deleted."""
        for key in [key for key in self._counts if key[0] == survey_id]:
            del self._counts[key]

    @staticmethod
    def _now() -> int:
        return int(time.monotonic() // _SLOT_SECONDS)
