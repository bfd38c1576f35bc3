"""Results of runoffs, counted in draws of the tallies (``election_draws``).

Only the rounds that took place are released: the tallies after another elimination are unknown. So the draws give a
lower bound of the probability that the winners are right: the share of draws that decide every round the same way. The
order of successive eliminations does not matter if the candidates have fewer votes together than anyone else has alone
(and no quota is in reach): whoever goes out first, the others follow. A draw counts if its rounds can be cut into such
runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankdp.inference.draws import Draws
from rankdp.mechanisms.ballots.rounds import NoisyVotes
from rankdp.privacy.bits import SeededBits
from rankdp.publish.election_draws import SEED, Number, draw_count, finished, half_width, started, with_number
from rankdp.publish.election_result import CountedRound, Election
from rankdp.rankers.runoff import Round, Runoff
from rankdp.types import Flags, Floats


def by_rounds(
    items: Sequence[str],
    counted: Runoff,
    noise: NoisyVotes | None,
    rule: str,
    level: float,
    method: str,
    cast: int | None,
) -> Election:
    """The result of a runoff. A score is a candidate's last tally; two candidates are compared where both last counted.

    Parameters
    ----------
    items, counted
        The candidates and the count as released.
    noise
        The mechanism that released its tallies; None for an exact count.
    rule
        "irv" or "stv".
    level
        As in ``by_scores``.
    method
        How surpluses are transferred, or when an instant runoff ends.
    cast
        How many ballots there are, where that is public.
    """
    m, order = len(items), list(counted.order)
    place = {item: row for row, item in enumerate(order)}
    scores, rounds, truths, before = np.zeros(m), list[CountedRound](), list[Floats](), np.zeros(m + 1)
    draws = draw_count(m * len(counted.rounds)) // 2
    for number, held in enumerate(counted.rounds):
        stated = np.append(held.tallies, held.exhausted) / counted.unit
        errors = np.zeros((1, m + 1))
        if noise is not None:
            drawn = noise.noise((m + 1) * draws, SeededBits(SEED + number), number)
            errors = drawn.reshape(draws, m + 1) / counted.unit
        truths.append(np.concatenate([stated - errors, stated + errors]))
        standing = np.flatnonzero(held.standing).tolist()
        scores[[place[item] for item in standing]] = stated[standing]
        moved = (truths[-1] - stated) - ((truths[-2] - before) if number else 0)
        gains = {items[item]: float(stated[item] - before[item]) for item in standing} if number else {}
        rounds.append(
            CountedRound(
                {items[item]: float(stated[item]) for item in standing},
                float(stated[m]),
                tuple(items[item] for item in held.elected),
                None if held.eliminated is None else items[held.eliminated],
                {items[item]: float(value) for item, value in held.transfers.items()},
                half_width((truths[-1] - stated)[:, m], level),
                gains,
                half_width(moved[:, m], level) if number else 0.0,
            )
        )
        before = stated
    cast_draws = truths[0].sum(axis=1) if cast is None else np.full(len(truths[0]), float(cast))
    valid = cast_draws - np.maximum(truths[0][:, m], 0) if cast is not None else truths[0][:, :m].sum(axis=1)
    quotas = None if counted.quota is None else np.maximum(np.floor(valid / (counted.seats + 1)) + 1, 1)
    result = replace(
        started(rule, [items[item] for item in order], counted.seats, level, "votes"),
        winners_probability=float(_same_seats(counted, truths, quotas).mean()),
        at_least=noise is not None,
        rounds=tuple(rounds),
        quota=counted.quota,
        method=method,
    )
    if quotas is not None:
        low, high = Draws(quotas[:, None]).interval(level)
        result = replace(result, quota_low=min(low[0], result.quota), quota_high=max(high[0], result.quota))
    result = with_number(result, cast_draws, None if cast is None else Number(cast))
    lasts = np.stack([truths[_last(counted, item)][:, item] for item in order], axis=1)
    return finished(result, scores, Draws(lasts), Draws(_ahead(counted, truths)[:, order]))


def _last(counted: Runoff, item: int) -> int:
    """The last round that counted a candidate."""
    return max(number for number, held in enumerate(counted.rounds) if held.standing[item])


def _ahead(counted: Runoff, truths: Sequence[Floats]) -> Floats:
    """In each draw, how many a candidate is ahead of, in the last round that counted both."""
    m = len(counted.order)
    last = [_last(counted, item) for item in range(m)]
    beaten = np.zeros((len(truths[0]), m))
    for one in range(m):
        for other in range(one + 1, m):
            held = truths[min(last[one], last[other])]
            ahead = held[:, one] > held[:, other]
            beaten[:, one] += ahead
            beaten[:, other] += ~ahead
    return beaten


def _same_seats(counted: Runoff, truths: Sequence[Floats], quotas: Floats | None) -> Flags:
    """The draws that decide all rounds as the released tallies did, up to the order inside runs of eliminations."""
    rounds = counted.rounds
    reached: list[Flags] = [np.zeros(len(truths[0]), np.bool_) for _ in range(len(rounds) + 1)]
    reached[0][:] = True
    surpluses: dict[int, Floats] = {}
    for number, held in enumerate(rounds):
        if quotas is not None:
            surpluses |= {item: truths[number][:, item] - quotas for item in held.elected}
        reached[number + 1] |= reached[number] & _decided_alike(held, truths[number], quotas, surpluses)
        for item in held.transfers:
            surpluses.pop(item, None)
        out: list[int] = []
        for last in range(number, len(rounds)):
            leaving = rounds[last].eliminated
            if leaving is None or rounds[last].elected:
                break
            out.append(leaving)
            if len(out) > 1:
                reached[last + 1] |= reached[number] & _out_together(held, truths[number], out, quotas)
    return reached[-1]


def _decided_alike(held: Round, truths: Floats, quotas: Floats | None, surpluses: dict[int, Floats]) -> Flags:
    """The draws that elect, eliminate and transfer in this round as the released tallies did."""
    standing = np.flatnonzero(held.standing)
    alike = np.ones(len(truths), np.bool_)
    if quotas is not None:
        alike &= ((truths[:, standing] >= quotas[:, None]) == np.isin(standing, held.elected)).all(axis=1)
    elif held.elected:
        alike &= 2 * truths[:, held.elected[0]] > np.maximum(truths[:, standing], 0).sum(axis=1)
    if held.eliminated is not None:
        others = [item for item in standing if item != held.eliminated and item not in held.elected]
        alike &= truths[:, held.eliminated] < truths[:, others].min(axis=1)
    if len(held.transfers) == 1 and len(surpluses) > 1:  # the largest of several surpluses
        (item,) = held.transfers
        rest = [over for other, over in surpluses.items() if other != item]
        alike &= surpluses[item] >= np.max(rest, axis=0)
    return alike


def _out_together(held: Round, truths: Floats, out: Sequence[int], quotas: Floats | None) -> Flags:
    """The draws in which these have fewer votes together than any other candidate, and nobody reaches the quota."""
    others = [item for item in np.flatnonzero(held.standing) if item not in out]
    together = np.maximum(truths[:, list(out)], 0).sum(axis=1)
    alike: Flags = together < truths[:, others].min(axis=1)
    return alike if quotas is None else alike & (truths[:, others].max(axis=1) + together < quotas)
