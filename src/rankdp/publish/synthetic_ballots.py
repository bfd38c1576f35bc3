"""Synthetic ballots: a table that counts like the true ballots, with every ballot protected.

    check -> count prefixes, lengths and margins -> charge the ledger -> noise -> model -> table

The noise is ``mechanisms.ballots.prefixes``; the table follows from the noisy counts alone
(``rankers.ballot_model``). No row belongs to a voter.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdp.data.atomic import NewFile
from rankdp.data.ballots import Ballots
from rankdp.data.files import format_of, open_writer
from rankdp.data.rankings import Rankings
from rankdp.data.tables import is_paths
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.ballots.prefixes import NoisyPrefixes
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.bits import Bits, SecureBits, seeded
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
    seed: int | None = None,
    **reading: Any,
) -> Release[Rankings]:
    """A table of ballots that may be published: it counts like the true ones, and no row belongs to a voter.

    Parameters
    ----------
    ballots
        ``Ballots``, or whatever ``Ballots.of`` opens with the options in ``reading``; strict orders, complete or not.
    epsilon
        How much the table may reveal about one ballot: smaller is more private. 0.1 is read as 1/10.
    protect
        "ballot" (one ballot, replaced by any other; how many there are is public) or "voter" (one ballot, cast or not).
        The table has a noisy number of rows, because both protect how many ballots rank nobody.
    delta
        Above 0, counts get Gaussian instead of Laplace noise, for (epsilon, delta)-differential privacy.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    **reading
        How to open ``ballots``; see ``Ballots.read``.

    Returns
    -------
    Release[Rankings]
        The table, in order of its ballots, with its guarantee and provenance.
    """
    bits = seeded(bits, seed)
    counted = _CountedTable.of(Ballots.of(ballots, **reading), epsilon, protect, delta)
    bits = bits or SecureBits()
    with spending(ledger, counted.noisy.guarantee, "synthetic ballots", bits) as charge:
        release = counted.draw(bits)
        charge.commit(release.provenance)
    return release


def synthetic_ballots_file(
    ballots: Ballots | Any,
    path: str | os.PathLike[str],
    epsilon: Real,
    *,
    protect: str = "ballot",
    delta: Real = 0,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
    **reading: Any,
) -> Release[Rankings]:
    """Write a table of synthetic ballots, with its guarantee in PATH.release.json.

    Parameters
    ----------
    ballots, epsilon, protect, delta, ledger, bits, seed, **reading
        As in ``synthetic_ballots``.
    path
        A CSV, Parquet or PrefLib ``.soi`` file, other than the files that are read.

    Returns
    -------
    Release[Rankings]
        What was written.
    """
    bits = seeded(bits, seed)
    if format_of(path, written=True) not in ("csv", "parquet", "soi"):
        raise InputError(f"{os.fspath(path)}: synthetic ballots are written to .csv, .parquet or .soi")
    several = ballots if is_paths(ballots) and isinstance(ballots, (list, tuple)) else [ballots]
    read = [one for one in several if isinstance(one, (str, os.PathLike)) and Path(one).is_file()]
    counted = _CountedTable.of(Ballots.of(ballots, **reading), epsilon, protect, delta)
    NewFile(path, source=read).drop()
    bits = bits or SecureBits()
    with spending(ledger, counted.noisy.guarantee, "synthetic ballots", bits) as charge:
        release = counted.draw(bits)
        charge.leaves()
        with open_writer(path, like=release.value) as writer:
            writer.write(release.value)
            writer.promise(release.to_dict())
        charge.commit(release.provenance)
    return release


@dataclass(frozen=True, slots=True)
class _CountedTable:
    """The secret ballots and their mechanism; every refusal happens in ``of``."""

    noisy: NoisyPrefixes
    ballots: Ballots

    @classmethod
    def of(cls, ballots: Ballots, epsilon: Real, protect: str, delta: Real) -> _CountedTable:
        """Refuse ballots that no table can be made of."""
        protection = BallotProtection(protect)
        if ballots.tied.any():
            raise Unsupported("synthetic ballots are strict orders, and some of these have ties: break them first")
        if ballots.count > MOST_BALLOTS:
            raise InputError(
                f"a table of synthetic ballots has at most {MOST_BALLOTS:,} rows, got {ballots.count:,} ballots"
            )
        return cls(NoisyPrefixes(len(ballots.items), protection, epsilon, delta), ballots)

    def draw(self, bits: Bits) -> Release[Rankings]:
        """Add the noise and make the table; the caller has charged the guarantee."""
        noisy, ballots = self.noisy, self.ballots

        def uniform(count: int) -> Floats:
            return np.asarray(bits.words(count) * 2.0**-64)

        seen = noisy.sample(noisy.count(ballots), bits)
        orders, cast = synthetic_table(seen, noisy.noise_variances, uniform)
        parameters = {
            "protect": noisy.protection.unit,
            "epsilon": str(noisy.epsilon),
            "delta": str(noisy.delta),
            "candidates_from_ballots": ballots.items_from_data,
            **noisy.parameters,
        }
        rows = Rankings.from_orders(np.repeat(orders, cast, axis=0), ballots.items)
        return released(rows, noisy.guarantee, "synthetic ballots", parameters, bits)
