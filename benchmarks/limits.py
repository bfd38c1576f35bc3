"""How near any aggregate can come to the better of counting and undoing completely, in every population.

For a rule d that sees all released rankings (and knows the mechanism), R(d, P) is its expected squared error for the
mean ranks of n voters drawn from the population P, and B(P) the smaller of the errors of counting and of the unbiased
estimate. For weights w of populations P_1..P_K

    max over P of R(d, P) / B(P)  >=  sum over k of w_k R(d, P_k) / B(P_k)  >=  G E trace Var(mean ranks | release),

G = sum of w_k / B_k, where the release comes from P_k with probability w_k / (B_k G): the posterior mean has the least
such sum. B is summed over all orders, the posterior too; only the release is drawn, so that the last number is the
limit up to the stated standard error. No normal law is assumed, and no rule left out.

The populations are P(x) proportional to exp(b <v, ranks of x>) for random directions v. How far apart their mean ranks
lie and what they weigh is the least favourable choice if noise were normal, by fictitious play of the game that
``rankdp.theory.shrinkage`` chooses its factor by. Other populations and weights would give another limit, lower or
higher, which would hold as well.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

import rankdp
from benchmarks.report import Table
from rankdp.mechanisms.rankings.contract import RankingMechanism
from rankdp.theory.estimators import rank_estimator
from rankdp.theory.permutations import all_permutations
from rankdp.theory.shrinkage import rank_family

Floats = NDArray[np.float64]
_SETTINGS = ((3, 0.5, 1000), (3, 1, 100), (3, 1, 1000), (3, 2, 1000), (4, 1, 1000), (5, 1, 1000))
_DRAWS = 4000  # half as many for five items
_SPACING = 0.2  # times the dimensions: between directions, in standard deviations of the unbiased estimate


def table() -> Table:
    return Table(("items", "epsilon", "voters", "mechanism", "populations", "at least"), [_row(*s) for s in _SETTINGS])


def _row(items: int, epsilon: float, voters: int) -> tuple[str, ...]:
    made = rankdp.mechanism("auto", items, str(epsilon))
    random = np.random.default_rng(0)
    populations, weights = _populations(made, voters, random)
    least, error = _limit(made, voters, populations, weights, random, _DRAWS if items < 5 else _DRAWS // 2)
    cells = (f"{items}", f"{epsilon:g}", f"{voters:,}", made.name, f"{len(populations):,}")
    return (*cells, f"{least:.3f} ± {error:.3f}")


def _limit(
    made: RankingMechanism,
    voters: int,
    populations: Floats,
    weights: Floats,
    random: np.random.Generator,
    draws: int,
) -> tuple[float, float]:
    """The root of the number above, and its standard error."""
    orders = all_permutations(made.items)
    place = {tuple(order): index for index, order in enumerate(orders.tolist())}
    moved = np.array([[place[tuple(x[s])] for s in orders] for x in orders])
    law = np.zeros((len(orders), len(orders)))  # from true orders to released ones
    np.put_along_axis(law, moved, np.exp(made.log_prob(orders, orders[0]))[None], axis=1)
    landed = np.argsort(orders, axis=1)
    ranks = landed - (made.items - 1) / 2
    better = np.full(len(populations), np.inf)
    for scores in (ranks, rank_estimator(made).values[landed] - (made.items + 1) / 2):
        mean = law @ scores
        squares = law @ (scores**2).sum(axis=1) - 2 * (mean * ranks).sum(axis=1) + (ranks[0] ** 2).sum()
        bias = ((populations @ (mean - ranks)) ** 2).sum(axis=1)
        better = np.minimum(better, bias + (populations @ squares - bias) / voters)
    released = populations @ law
    chances = weights / better
    # of a voter whose row is known, in each population: the mean ranks, and their variance
    told = [(populations * column) @ law / released for column in ranks.T]
    variance = (ranks[0] ** 2).sum() - sum(column**2 for column in told)
    logs, drawn = np.log(released), []
    for k in random.choice(len(chances), draws, p=chances / chances.sum()):
        shares = random.multinomial(voters, released[k] / released[k].sum()) / voters
        posterior = chances * np.exp((score := voters * (logs @ shares)) - score.max())
        posterior /= posterior.sum()
        means = np.stack([column @ shares for column in told])
        apart = ((means - (means @ posterior)[:, None]) ** 2).sum(axis=0)
        drawn.append(float(posterior @ (apart + variance @ shares / voters)))
    root = math.sqrt(chances.sum() * np.mean(drawn))
    return root, root / 2 * float(np.std(drawn) / np.mean(drawn)) / math.sqrt(draws)


def _populations(made: RankingMechanism, voters: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Shares of all orders, and the weight of each such population."""
    ranks = np.argsort(all_permutations(made.items), axis=1) - (made.items - 1) / 2
    family, free = rank_family((made,), (1.0,)), made.items - 1
    lengths, played = _least_favourable(free, voters, family.slope, family.price)
    unit = math.sqrt((made.items + 1) * made.items / 12 * (1 / family.slope**2 - 1) / voters)
    area = 2 * math.pi ** (free / 2) / math.gamma(free / 2)
    populations, weights = [], []
    for length, weight in zip(lengths, played, strict=True):
        if weight > 1e-3:
            many = max(24, math.ceil(area * (length / _SPACING / free) ** (free - 1)))
            populations.append(_tilted(ranks, length * unit, random.standard_normal((many, made.items))))
            weights.append(np.full(many, weight / many))
    found = np.concatenate(weights)
    return np.concatenate(populations), found / found.sum()


def _tilted(ranks: Floats, length: float, directions: Floats) -> Floats:
    """Populations whose mean ranks lie so far in each direction, by bisection."""
    directions = directions - directions.mean(axis=1, keepdims=True)
    along = directions / np.linalg.norm(directions, axis=1, keepdims=True) @ ranks.T
    low, high = np.zeros(len(along)), np.full(len(along), 50.0)
    for _ in range(40):
        middle = (low + high) / 2
        shares = np.exp(middle[:, None] * (along - along.max(axis=1, keepdims=True)))
        shares /= shares.sum(axis=1, keepdims=True)
        short = (shares * along).sum(axis=1) < length
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return shares


def _least_favourable(free: int, voters: int, slope: float, price: float) -> tuple[Floats, Floats]:
    """Lengths of the truth, in standard deviations of the unbiased estimate, and their weights."""
    crossing = math.sqrt(free * (price - slope**2)) / (1 - slope)
    top = min(math.sqrt(free * voters * slope**2 / (1 - slope**2)), 4 * crossing + 6)
    rho = np.concatenate([[1e-3], np.linspace(0.1, top, 120)])[:, None]
    u = np.linspace(1e-2, top + 6 + math.sqrt(free), 600)
    bessel = np.maximum(ive(free / 2 - 1, rho * u), 1e-300)
    law = bessel * np.exp(free / 2 * np.log(u) - (u - rho) ** 2 / 2)
    law /= law.sum(axis=1, keepdims=True)
    along = rho * ive(free / 2, rho * u) / bessel
    better = np.minimum((1 - slope) ** 2 * rho**2 + slope**2 * free, price * free)
    weights = best = np.full(len(rho), 1 / len(rho))
    most = 0.0
    for played in range(2000):
        kept = weights @ (law * along / better) / np.maximum(weights @ (law / better), 1e-300)
        ratios = ((law * (kept**2 - 2 * along * kept)).sum(axis=1) + rho[:, 0] ** 2) / better[:, 0]
        if weights @ ratios > most:
            most, best = weights @ ratios, weights
        weights = weights * np.exp(1.5 / math.sqrt(1 + played / 10) * np.clip(ratios - weights @ ratios, -3, 3))
        weights = weights / weights.sum()
    return rho[:, 0], best
