"""What survives the noise for n scores drawn from a law, without simulation: fast enough for a planner's root search.

Pairs (score, noisy score) of different items are i.i.d., so an item's fate depends on how the others fall into the four
quadrants around it. The law is used through its distribution function on cells and the noise through its excess
function: the chance that a score uniform in (a, b) plus noise exceeds t is sigma (L((t-b)/sigma) - L((t-a)/sigma)) /
(b-a), exact however sharp the noise is.

The probability that the order is wrong, expanded in sigma (Theorem 3.6):
P_e = c1 sigma + c2 sigma^2 + c3 sigma^3 + ... With the law's integrals (see ``score_laws``: I_k, q', q'', D) and the
noise's moments (see ``OrderConstants``), the alpha_k of the theorem are

* alpha_1(0) = (n)_2 I2 E[V+]; alpha_1'(0) = (n)_2 (q' - (n-2) I3) / 2, the same for every noise of variance one;
  alpha_1''(0)/2 = (n)_2 (q'' - (n-2) D + (n-2)(n-3) I4) E[V+^3] / 6;
* alpha_2(0) = (n)_3 I3 E[V1+ V2+] + (n)_4 I2^2 E[V1+ V3+] / 2;
  alpha_2'(0) = (n)_3 (D - 2(n-3) I4) E[V1+^2 V2+]/2 + (n)_4 (I2 q' - (n-4) I2 I3 - I4) E[V1+^2 V3+]/2;
* alpha_3(0) = (n)_4 I4 E[V1+ V2+ V3+] + (n)_5 I2 I3 E[V1+ V2+ V4+] + (n)_6 I2^3 E[V1+ V3+ V5+] / 6,

and c1 = alpha_1, c2 = alpha_1' - alpha_2, c3 = alpha_1''/2 - alpha_2' + alpha_3 at 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from rankdp.checks import positive, whole
from rankdp.errors import Unsupported
from rankdp.theory.noises.radial import Ball, GeneralizedNormal
from rankdp.theory.noises.score_noise import ScoreNoise, check_independent
from rankdp.theory.quadrature import halved, spread, stieltjes, unit_rule
from rankdp.theory.score_laws import ScoreLaw
from rankdp.types import Floats


def concordance(noise: ScoreNoise, sigma: float, law: ScoreLaw) -> float:
    """The expected share of pairs in the right order: 1 - E[P(V > W/sigma)], W the difference of two scores."""
    positive("sigma", sigma)
    t, _, weights = unit_rule()
    width = _width(law)
    w = width * t
    return float(1 - width * np.sum(weights * noise.difference_survival(w / sigma) * law.difference_density(w)))


def adjacent_flips(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> float:
    """The expected number of items that change order with the next one: sum over i of P(V > W_i/sigma).

    The integral of P(V > w/sigma) against the sum of the spacings' densities (see ``score_laws``). It bounds P_e from
    above, and P_e approaches it as sigma falls.
    """
    positive("sigma", sigma)
    w, spacing = _spacings(whole("n", n, 2), law)
    return float(np.sum(noise.difference_survival(w / sigma) * spacing))


@lru_cache(maxsize=16)
def _spacings(n: int, law: ScoreLaw) -> tuple[Floats, Floats]:
    """Nodes w, and the sum of the spacings' densities there times the weights."""
    t, _, weights = unit_rule()
    w = _width(law) * t
    inner, _, inner_weights = unit_rule(1 / 10)
    high = law.support[1]
    most = law.cdf(high - w) if math.isfinite(high) else np.ones_like(w)
    u = most[:, None] * inner
    x = law.quantile(u)
    free = np.clip(1 - law.cdf(x + w[:, None]) + u, 0, 1) ** (n - 2)
    with np.errstate(invalid="ignore"):  # scipy's densities at infinity
        beyond = np.nan_to_num(law.density(x + w[:, None]), posinf=0.0)
    return w, _width(law) * weights * n * (n - 1) * most * ((free * beyond) @ inner_weights)


def top_k_overlap_iid(n: int, k: int, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> float:
    """The expected share of the true top k among the k highest noisy scores.

    Given the score x of the best item left out, the k above it and the n - k - 1 below are i.i.d.; one of the k with
    noisy score t stays if at most k - 1 rivals exceed t, a sum of two binomial counts and one more item.
    """
    whole("n", n, 2)
    whole("k", k, 1, n)
    positive("sigma", sigma)
    check_independent(noise)
    if k == n:
        return 1.0
    levels = np.concatenate([np.geomspace(1e-12, 1e-2, 16), np.linspace(0, 0.5, 11)[1:]])
    v = noise.quantile(np.concatenate([levels, 1 - levels[:-1][::-1]]))
    total = 0.0
    for out in _left_out(n, k, law):
        first = _cut(v, out, noise, sigma)
        mean = (k - 1) * first.top + (n - k - 1) * first.rest + first.own
        variance = (k - 1) * first.top * (1 - first.top) + (n - k - 1) * first.rest * (1 - first.rest) + 0.05
        rising = scipy.special.ndtr((k - 0.5 - mean) / np.sqrt(variance)) - first.top
        cut = _cut(halved(spread(v, rising, 48)), out, noise, sigma)  # thresholds spread where this rises
        total += out.share * (stieltjes(_stays(n, k, cut), -np.diff(cut.top)) + cut.top[-1])
    return float(np.clip(total, 0, 1))


class _Cut(NamedTuple):
    """At each threshold: the chance to exceed it for a score above the cut, below the cut, and at the cut."""

    top: Floats
    rest: Floats
    own: Floats


def _stays(n: int, k: int, cut: _Cut) -> Floats:
    """P(at most k - 1 rivals exceed a threshold) for one of the top k: A of the others of the top k fall below it.

    With C of those below the cut above it, C <= A is asked for if the one at the cut is not among them, else C < A.
    Exact sums over A and C, an Edgeworth series where hundreds move.
    """
    others = n - k - 1
    lost, won = np.clip(1 - cut.top, 0, 1 - 1e-16), np.clip(cut.rest, 0, 1 - 1e-16)
    many = np.minimum((k - 1) * np.log1p(-lost), others * np.log1p(-won)) < -700
    free, tight = np.empty_like(lost), np.empty_like(lost)
    for slack, chance in ((0, free), (-1, tight)):
        chance[many] = _edgeworth(slack, k - 1, lost[many], others, won[many])
    few = ~many
    if few.any():
        leave = float(np.max(lost[few])) * (k - 1)
        most = min(k - 1, int(leave + 12 * math.sqrt(leave) + 20))
        fall, rise = _binomial(k - 1, lost[few], most), _binomial(others, won[few], most)
        level = np.cumsum(rise, axis=1)
        free[few] = np.sum(fall * np.minimum(level, 1), axis=1)
        tight[few] = np.sum(fall * np.minimum(level - rise, 1), axis=1)
    return np.asarray((1 - cut.own) * np.minimum(free, 1) + cut.own * np.minimum(tight, 1))


def _binomial(trials: int, chance: Floats, most: int) -> Floats:
    """[t, a]: P(Bin(trials, chance[t]) = a) for a up to ``most``, each from the one before."""
    a = np.arange(most)
    ratios = np.maximum(trials - a, 0) / (a + 1.0) * (chance / (1 - chance))[:, None]
    return np.cumprod(np.column_stack([np.exp(trials * np.log1p(-chance)), ratios]), axis=1)


def _edgeworth(slack: int, s: int, lost: Floats, others: int, won: Floats) -> Floats:
    """P(C - A <= slack) with A ~ Bin(s, lost), C ~ Bin(others, won), to the third cumulant."""
    leave, join = s * lost, others * won
    variance = np.maximum(leave * (1 - lost) + join * (1 - won), 0.25)
    third = join * (1 - won) * (1 - 2 * won) - leave * (1 - lost) * (1 - 2 * lost)
    z = (slack + 0.5 + leave - join) / np.sqrt(variance)
    slip = third / (6 * variance**1.5) * (z**2 - 1) * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(np.clip(scipy.special.ndtr(z) - slip, 0, 1))


class _Cells(NamedTuple):
    """Edges of cells, and the density of the scores in each."""

    edges: Floats
    height: Floats

    @classmethod
    def of(cls, edges: Floats, law: ScoreLaw) -> _Cells:
        return cls(edges, np.diff(law.cdf(edges)) / np.diff(edges))


class _LeftOut(NamedTuple):
    """A score x of the best item left out, u = P(X > x), its weight, and cells on both sides of it.

    u is Beta(k+1, n-k).
    """

    x: float
    u: float
    share: float
    below: _Cells
    above: _Cells


@lru_cache(maxsize=16)
def _left_out(n: int, k: int, law: ScoreLaw) -> tuple[_LeftOut, ...]:
    nodes, weights = np.polynomial.legendre.leggauss(12)
    base = law.edges(32)
    found = []
    for u, share in zip(scipy.special.betaincinv(k + 1, n - k, (nodes + 1) / 2), weights / 2, strict=True):
        x = float(law.quantile(1 - u))
        below, above = (_Cells.of(_graded(x, side), law) for side in (base[base < x], base[base > x]))
        found.append(_LeftOut(x, float(u), float(share), below, above))
    return tuple(found)


def _cut(v: Floats, out: _LeftOut, noise: ScoreNoise, sigma: float) -> _Cut:
    t = out.x + sigma * v
    below, above = (np.sum(_above(side, t, noise, sigma), axis=0) for side in (out.below, out.above))
    return _Cut(np.clip(above / out.u, 0, 1), np.clip(below / (1 - out.u), 0, 1), noise.survival(v))


def _width(law: ScoreLaw) -> float:
    low, high = law.support
    ends = law.quantile(np.array([1e-13, 1 - 1e-13]))
    return float((high if math.isfinite(high) else ends[1]) - (low if math.isfinite(low) else ends[0]))


def _above(cells: _Cells, t: Floats, noise: ScoreNoise, sigma: float) -> Floats:
    """[i, j]: P(the score is in cell i, the noisy score > t_j)."""
    excess = noise.quick_excess((t - cells.edges[:, None]) / sigma)
    return np.asarray(cells.height[:, None] * sigma * np.diff(excess, axis=0))


def _graded(x: float, others: Floats) -> Floats:
    """Edges from x to the far end of ``others`` on its side, in geometric progression, together with ``others``."""
    far = float(others[np.argmax(np.abs(others - x))])
    return np.unique(np.concatenate([[x], x + (far - x) * np.geomspace(1e-6, 1, 56), others]))


def first_order(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    """c1 of (19) and (26): ``n(n-1) ||f||^2 E|V| / 2``."""
    whole("n", n, 2)
    return law.spacing_density(n) * noise.mean_difference / 2


def taylor_coefficients(n: int, noise: ScoreNoise, law: ScoreLaw, orders: int = 3) -> tuple[float, ...]:
    """(c1, ..., c_orders) of Theorem 3.6 (its P_e^(i) / i!), orders up to 3; see the module for the formulas.

    Refuses laws whose integrals diverge (a density with a pole, or for order 3 with an unbounded slope).
    """
    whole("n", n, 2)
    whole("orders", orders, 1, 3)
    coefficients = (first_order(n, noise, law), *(part(n, noise, law) for part in (_second, _third)[: orders - 1]))
    if not all(math.isfinite(c) for c in coefficients):
        raise Unsupported(f"the law's density is too rough for an expansion to order {orders}")
    return coefficients


def pair_term(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    """alpha_2(0) of the module: two neighbouring pairs change order at once."""
    constants = order_constants(noise)
    return law.neighbour_density(n) * constants.pair + law.far_density(n) * constants.far


def expansion(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> tuple[float, float]:
    """What flips of several neighbours at once add to log P, P = 1 - P_e, in the orders sigma^2 and sigma^3.

    log P = -(the expected number of adjacent flips) + these; infinite where the law is too rough.
    """
    c1, c2, c3 = first_order(n, noise, law), _second(n, noise, law), _third(n, noise, law)
    alone = _curvature(n, noise, law)
    return (pair_term(n, noise, law) - c1**2 / 2) * sigma**2, -(c3 - alone + c1 * c2 + c1**3 / 3) * sigma**3


def _second(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    return law.spacing_slope(n) / 2 - pair_term(n, noise, law)


def _third(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    c = order_constants(noise)
    i2, i3, i4 = (law.power_integral(k) for k in (2, 3, 4))
    n3, n4, n5, n6 = (float(math.perm(n, k)) for k in range(3, 7))
    near = n3 * (law.triple_slope - 2 * (n - 3) * i4) * c.square_pair / 2
    far = n4 * (i2 * law.correlation_slope - (n - 4) * i2 * i3 - i4) * c.square_far / 2
    three = n4 * i4 * c.chain + n5 * i2 * i3 * c.pair_single + n6 * i2**3 * c.triple / 6
    return _curvature(n, noise, law) - near - far + three


def _curvature(n: int, noise: ScoreNoise, law: ScoreLaw) -> float:
    """alpha_1''(0)/2 of the module."""
    curvature = law.correlation_curvature - (n - 2) * law.triple_slope + (n - 2) * (n - 3) * law.power_integral(4)
    return n * (n - 1) * curvature * order_constants(noise).cube / 6


_DEGREES = (1, 2, 2, 3, 3, 3, 3, 3, 3)


class OrderConstants(NamedTuple):
    """The noise's part: E of products of positive parts x+ = max(x, 0) of the differences V_i = N_(i+1) - N_i.

    Neighbours are i, i+1, which share a noise; far is anything further apart. With L(z) = E(N - z)+, M(z) = E(N - z)+^2
    and a noise of variance one, so that E[V+^2] = 1: E[V1+ V2+] = E[L(N) L(-N)], for normal noise (sqrt(3)/2 - pi/6)/pi
    = 0.108998, E[V1+^2 V2+] = E[M(-N) L(N)], and E[V1+ V2+ V3+] likewise, from running integrals. For the uniform ball
    moments of degree k are those of the generalised normal times a number (``Ball.degree_factor``).
    """

    single: float  #: E[V+]
    pair: float  #: E[V1+ V2+]
    far: float  #: E[V1+ V3+]
    cube: float  #: E[V+^3]
    square_pair: float  #: E[V1+^2 V2+]
    square_far: float  #: E[V1+^2 V3+]
    chain: float  #: E[V1+ V2+ V3+]
    pair_single: float  #: E[V1+ V2+ V4+]
    triple: float  #: E[V1+ V3+ V5+]


@lru_cache(maxsize=128)
def order_constants(noise: ScoreNoise) -> OrderConstants:
    """The constants of a noise, to about 1e-8 (1e-6 for a staircase)."""
    if isinstance(noise, Ball) and not noise.independent:
        base = order_constants(GeneralizedNormal(noise.p))
        return OrderConstants(*(value * noise.degree_factor(k) for value, k in zip(base, _DEGREES, strict=True)))
    far = 1.0  # third moments reach as far out
    while far**4 * float(noise.survival(far)) > 1e-14:
        far *= 1.25
    positive = np.geomspace(1e-6, far, 4096)
    edges = np.concatenate([-positive[::-1], [0.0], positive])
    fine, coarse = _moments(noise, edges), _moments(noise, edges[::2])
    pair, cube, square_pair, chain = (float(value) for value in (4 * fine - coarse) / 3)
    single = noise.mean_difference / 2
    return OrderConstants(single, pair, single**2, cube, square_pair, single, chain, pair * single, single**3)


def _moments(noise: ScoreNoise, edges: Floats) -> Floats:
    """(pair, cube, square_pair, chain) on these edges, with an error of the second order in their width."""
    width = np.diff(edges)
    mass = np.where(edges[1:] < 0, np.diff(noise.cdf(edges)), -np.diff(noise.survival(edges)))

    def above(values: Floats) -> Floats:
        """The integral of values from each edge upwards."""
        cells = (values[1:] + values[:-1]) / 2 * width
        return np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])

    def running(values: Floats) -> Floats:
        """E[values; N < edge]."""
        return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * mass)])

    excess = noise.excess(edges)
    square = 2 * above(excess)
    cube = 3 * above(square)
    mirrored = excess[::-1]
    lower, first = running(mirrored), running(edges * mirrored)
    products = (excess * mirrored, cube, square[::-1] * excess, excess * (edges * lower - first))
    return np.array([float(running(product)[-1]) for product in products])
