"""The probability that sorting noisy i.i.d. scores gets the order wrong, expanded in sigma (Theorem 3.6).

P_e = c1 sigma + c2 sigma^2 + c3 sigma^3 + ... With the law's integrals (see ``score_laws``: I_k, q', q'', D) and the
noise's moments (see ``noise_constants``), the alpha_k of the theorem are

* alpha_1(0) = (n)_2 I2 E[V+]; alpha_1'(0) = (n)_2 (q' - (n-2) I3) / 2, the same for every noise of variance one;
  alpha_1''(0)/2 = (n)_2 (q'' - (n-2) D + (n-2)(n-3) I4) E[V+^3] / 6;
* alpha_2(0) = (n)_3 I3 E[V1+ V2+] + (n)_4 I2^2 E[V1+ V3+] / 2;
  alpha_2'(0) = (n)_3 (D - 2(n-3) I4) E[V1+^2 V2+]/2 + (n)_4 (I2 q' - (n-4) I2 I3 - I4) E[V1+^2 V3+]/2;
* alpha_3(0) = (n)_4 I4 E[V1+ V2+ V3+] + (n)_5 I2 I3 E[V1+ V2+ V4+] + (n)_6 I2^3 E[V1+ V3+ V5+] / 6,

and c1 = alpha_1, c2 = alpha_1' - alpha_2, c3 = alpha_1''/2 - alpha_2' + alpha_3 at 0.
"""

from __future__ import annotations

import math

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.constants import order_constants
from rankdp.theory.noises.contract import ScoreNoise
from rankdp.theory.score_laws import ScoreLaw


def first_order(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    """c1 of (19) and (26): ``n(n-1) ||f||^2 E|V| / 2``."""
    check_items(n)
    return law.spacing_density(n) * noise.mean_difference / 2


def second_order(n: int, law: ScoreLaw, noise: ScoreNoise | None = None) -> tuple[float, float]:
    """(c1, c2) of Corollary 3.7, for normal noise unless another is given."""
    from rankdp.theory.noises.families import Gaussian

    first, second = taylor_coefficients(n, noise if noise is not None else Gaussian(), law, orders=2)
    return first, second


def taylor_coefficients(n: int, noise: ScoreNoise, law: ScoreLaw, orders: int = 3) -> tuple[float, ...]:
    """(c1, ..., c_orders) of Theorem 3.6 (its P_e^(i) / i!), orders up to 3; see the module for the formulas.

    Refuses laws whose integrals diverge (a density with a pole, or for order 3 with an unbounded slope).
    """
    check_items(n)
    if orders not in (1, 2, 3):
        raise InputError(f"orders must be 1, 2 or 3, got {orders!r}")
    coefficients = (first_order(n, noise, law), *(part(n, noise, law) for part in (_second, _third)[: orders - 1]))
    if not all(math.isfinite(c) for c in coefficients):
        raise Unsupported(f"the law's density is too rough for an expansion to order {orders}: {coefficients}")
    return coefficients


def pair_term(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    """alpha_2(0) of the module: two neighbouring pairs change order at once."""
    constants = order_constants(noise)
    return law.neighbour_density(n) * constants.pair + law.far_density(n) * constants.far


def check_items(n: int) -> int:
    """The number of scores: a whole number of at least 2."""
    if isinstance(n, bool) or n != int(n) or n < 2:
        raise InputError(f"n must be a whole number of at least 2, got {n!r}")
    return int(n)


def _falling(n: int, k: int) -> float:
    return float(math.perm(n, k)) if k <= n else 0.0


def _second(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    return law.spacing_slope(n) / 2 - pair_term(n, noise, law)


def _third(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    c = order_constants(noise)
    i2, i3, i4 = (law.power_integral(k) for k in (2, 3, 4))
    curvature = law.correlation_curvature - (n - 2) * law.triple_slope + (n - 2) * (n - 3) * i4
    one = _falling(n, 2) * curvature * c.cube / 6
    near = _falling(n, 3) * (law.triple_slope - 2 * (n - 3) * i4) * c.square_pair / 2
    far = _falling(n, 4) * (i2 * law.correlation_slope - (n - 4) * i2 * i3 - i4) * c.square_far / 2
    three = (
        _falling(n, 4) * i4 * c.chain + _falling(n, 5) * i2 * i3 * c.pair_single + _falling(n, 6) * i2**3 * c.triple / 6
    )
    return one - near - far + three
