"""What sorting tells of scores that carry independent errors (Jeong): the measures of a plan, without simulation."""

from __future__ import annotations

from rankdp.planning.situation import EXACT, HALF_WIDTH, PAIRS, Measure, Request
from rankdp.theory import recovery
from rankdp.theory.noises.contract import ScoreNoise
from rankdp.theory.score_laws import ScoreLaw


def accuracy(measure: Measure, items: int, noise: ScoreNoise, sigma: float, law: ScoreLaw, request: Request) -> float:
    """The measure for ``items`` independent scores of this law, released with errors of sigma times ``noise``."""
    if measure is HALF_WIDTH:
        return sigma * float(noise.quantile((1 + request.level) / 2))
    if measure is PAIRS:
        return recovery.concordance(noise, sigma, law)
    if measure is EXACT:
        return recovery.order_probability_iid(items, noise, sigma, law)
    return recovery.top_k_overlap_iid(items, request.top, noise, sigma, law)
