"""Synthetic ballots: a table that counts like the true ballots, with every ballot protected.

    check -> count prefixes, lengths and margins -> charge the ledger -> noise -> model -> table

The noise is ``mechanisms.ballots.prefixes``; the table follows from the noisy counts alone
(``rankers.ballot_model``). No row stands for a voter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankdp.data.ballots import Ballots
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.ballots.prefixes import NoisyPrefixes
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Release, released
from rankdp.rankers.ballot_model import MOST_BALLOTS, synthetic_table
from rankdp.types import Floats


def synthetic_ballots(
    ballots: Ballots | Any,
    epsilon: Real,
    *,
    protect: str = "ballot",
    delta: Real = 0,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    **reading: Any,
) -> Release[Rankings]:
    """A table of ballots that may be published: it counts like the true ones, and no row of it is a voter's.

    Parameters
    ----------
    ballots
        ``Ballots``, or whatever ``Ballots.of`` opens with the options in ``reading``; strict orders, complete or not.
    epsilon
        How much the table may give away about one ballot: smaller is more private. Exact: 0.1 is a tenth.
    protect
        "ballot" (one ballot, replaced by any other; how many there are is public) or "voter" (one ballot, cast or not;
        the table then has a noisy number of rows).
    delta
        Above 0, counts get Gaussian instead of Laplace noise, for (epsilon, delta)-differential privacy.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    **reading
        How to open ``ballots``; see ``Ballots.read``.

    Returns
    -------
    Release[Rankings]
        The table, in order of its ballots, with its guarantee and provenance.
    """
    protection = BallotProtection(protect)
    table = Ballots.of(ballots, **reading)
    if table.tied.any():
        raise Unsupported("synthetic ballots are strict orders, and some of these have ties: break them first")
    if table.count > MOST_BALLOTS:
        raise InputError(f"a table of synthetic ballots has at most {MOST_BALLOTS:,} rows, got {table.count:,} ballots")
    noisy = NoisyPrefixes(len(table.items), protection, epsilon, delta)
    counts = noisy.count(table)
    bits = bits or SecureBits()

    def uniform(count: int) -> Floats:
        return np.asarray(bits.words(count) * 2.0**-64)

    with spending(ledger, noisy.guarantee, "synthetic ballots", bits) as charge:
        seen = noisy.sample(counts, bits)
        total = table.count if protection.count_public else None
        orders, cast = synthetic_table(seen, noisy.noise_variances, total, uniform)
        parameters = {
            "protect": protect,
            "epsilon": str(noisy.epsilon),
            "delta": str(noisy.delta),
            "candidates_from_ballots": table.items_from_data,
            **noisy.parameters,
        }
        rows = Rankings.from_orders(np.repeat(orders, cast, axis=0), table.items)
        release = released(rows, noisy.guarantee, "synthetic ballots", parameters, bits)
        charge.commit(release.provenance)
    return release
