"""Statements of Jeong, Dytso and Cardone that no figure shows: exact numbers, few simulated.

Appendix B, third case: for t above both scores the difference of the two derivatives is p (t - y_i)^(p-1) - p (t -
y_j)^(p-1). It is printed with a minus sign in front of the first term. Both are at most 0, so the proof holds.

Remark 4.14 says "the smaller p, the better". As a rate in epsilon it is; at a fixed epsilon we look at 50, where noise
is low for p from 0.05 to 0.2: there (35) is the error to within two fifths. Below 0.05 it is no guide.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from rankdp.theory.noises import Gaussian, GeneralizedNormal
from rankdp.theory.recovery import taylor_coefficients
from rankdp_papers.experiment import Cell, Row, exact_row
from rankdp_papers.jeong.sorting_error import LAWS
from rankdp_papers.jeong.tradeoffs import errors

_PAIR = 0.108998  # of Corollary 3.7
_CLOSE = 2e-3  # scores this close count as coinciding, for Proposition 3.14
_NORMS = (1.0, 1.5, 2.0, 4.0)
_LOW_NOISE = 50.0  # epsilon


def statements(cell: Cell) -> list[Row]:
    """Lemma 3.2, Appendix B, Examples 3.8 and 3.9, Corollary 3.11, Propositions 3.14, 4.8 and 4.11, Remark 4.14."""
    exact = [*_derivatives(), *_examples(), *_remainder(), *_privacy(), *_small_powers()]
    return [*_sorted_vectors(cell), *_coincidences(cell), *exact]


def _sorted_vectors(cell: Cell) -> list[Row]:
    """How much nearer to y some permutation of x is than the one that is sorted like y, over random x and y."""
    worst = dict.fromkeys((*_NORMS, 0.5), 0.0)
    random = cell.generator("vectors")
    for items in (2, 3, 4, 5):
        orders = np.array(list(itertools.permutations(range(items))))
        for x, y in np.sort(random.standard_normal((200, 2, items)), axis=2):
            for p in worst:
                norms = (np.abs(y - x[orders]) ** p).sum(axis=1)
                worst[p] = max(worst[p], float(norms[0] - norms.min()))  # the first order is the sorted one
    rows = [("sorted alike, p >= 1", max(worst[p] for p in _NORMS)), ("sorted alike, p = 0.5", worst[0.5])]
    return [exact_row(method, "distance lost by sorting alike", value) for method, value in rows]


def _derivatives() -> list[Row]:
    """f_i' - f_j' above both scores, for y_i = 1, y_j = 0 and p = 2, and what Appendix B prints for it."""
    t, p = 3.0, 2.0
    true = p * (t - 1) ** (p - 1) - p * t ** (p - 1)
    printed = -p * (t - 1) ** (p - 1) - p * t ** (p - 1)
    return [exact_row("third case of Appendix B", "printed less true", printed - true)]


def _examples() -> list[Row]:
    """c1 and c2 of Examples 3.8 and 3.9 over c1 and c2 of Theorem 3.6, minus 1; the largest of four lengths."""
    off = {
        ("Example 3.8", "c1"): 0.0,
        ("Example 3.8", "c2"): 0.0,
        ("Example 3.9", "c1"): 0.0,
        ("Example 3.9", "c2"): 0.0,
    }
    for n in (3, 5, 10, 20):
        pairs, triples, fours = n * (n - 1), n * (n - 1) * (n - 2), n * (n - 1) * (n - 2) * (n - 3)
        printed = {
            "Example 3.8": (
                pairs / math.sqrt(math.pi),
                -n * (n - 1) ** 2 / 2 - _PAIR * triples - fours / (2 * math.pi),
            ),
            "Example 3.9": (
                pairs / (2 * math.sqrt(math.pi)),
                -n * (2 * n * n - 3 * n + 1) / 12 - _PAIR * triples / 3 - fours / (8 * math.pi),
            ),
        }
        for (name, constants), law in zip(printed.items(), ("uniform", "exponential"), strict=True):
            exact = taylor_coefficients(n, Gaussian(), LAWS[law], 2)
            for order, (constant, true) in enumerate(zip(constants, exact, strict=True), 1):
                off[name, f"c{order}"] = max(off[name, f"c{order}"], abs(constant / true - 1))
    return [exact_row(name, f"relative deviation of {what}", value) for (name, what), value in off.items()]


def _remainder() -> list[Row]:
    """P_e less (19) for two scores whose gap has the density 0.6 (1 + sqrt(w)) on (0, 1), with normal noise.

    P(V < -w/sigma) = erfc(w/(2 sigma))/2, and (19) is 0.6 sigma/sqrt(pi). The root adds a term of order sigma^1.5.
    """
    from scipy.integrate import quad
    from scipy.special import erfc

    rows = []
    for sigma in (1e-4, 1e-3, 1e-2):
        error, _ = quad(lambda x, sigma=sigma: 0.3 * erfc(x) * (1 + math.sqrt(2 * sigma * x)) * 2 * sigma, 0, 30)
        row = exact_row("gaps of density 1 + sqrt(w)", "P_e less (19)", error - 0.6 * sigma / math.sqrt(math.pi))
        rows.append({"sigma": sigma, **row})
    return rows


def _coincidences(cell: Cell) -> list[Row]:
    """C_X over n(n-1) |f|^2: how many pairs of ten scores lie within a small distance, by simulation."""
    random, items = cell.generator("coincidences"), 10
    laws = {
        "uniform": (random.uniform(size=(cell.repetitions, items)), 1.0),
        "exponential": (random.exponential(size=(cell.repetitions, items)), 0.5),
        "normal": (random.standard_normal((cell.repetitions, items)), 1 / (2 * math.sqrt(math.pi))),
    }
    rows = []
    for name, (scores, square) in laws.items():
        ordered = np.sort(scores, axis=1)
        close = sum((ordered[:, step:] - ordered[:, :-step] < _CLOSE).sum(axis=1) for step in range(1, items))
        counted = np.asarray(close) / (_CLOSE * items * (items - 1) * square)
        error = float(counted.std(ddof=1) / math.sqrt(cell.repetitions))
        rows.append(exact_row(f"{name} scores", "C_X over Proposition 3.14", counted.mean(), error))
    return rows


def _privacy() -> list[Row]:
    """Rényi epsilons by integration over Propositions 4.8 and 4.11, minus 1; l = 1."""
    from scipy.integrate import quad

    rows, off = [], 0.0
    for alpha, sigma in itertools.product((1.5, 2.0, 10.0), (0.5, 2.0)):
        shift = 1 / sigma

        def integrand(x: float, alpha: float = alpha, shift: float = shift) -> float:
            return math.exp(-alpha * x * x / 2 - (1 - alpha) * (x - shift) ** 2 / 2) / math.sqrt(2 * math.pi)

        middle = (1 - alpha) * shift
        value, _ = quad(integrand, middle - 15, middle + 15, points=[middle], limit=200)
        off = max(off, abs(math.log(value) / (alpha - 1) / (alpha * shift**2 / 2) - 1))
    rows.append(exact_row("Proposition 4.8", "relative deviation of epsilon", off))
    off = 0.0
    for p, sigma in itertools.product((0.3, 0.5, 1.0), (0.5, 2.0)):
        h = math.sqrt(math.gamma(1 / p) / math.gamma(3 / p))
        x = np.concatenate([np.linspace(-9, 10, 200_001), [0.0, 1.0]])
        ratio = np.abs(x - 1) ** p - np.abs(x) ** p  # in units of (sigma h)^p
        off = max(off, abs(float(ratio.max()) / (sigma * h) ** p / (1 / (sigma * h)) ** p - 1))
    rows.append(exact_row("Proposition 4.11", "relative deviation of epsilon", off))
    return rows


def _small_powers() -> list[Row]:
    """(35) and the error itself for 20 uniform scores at epsilon 50."""
    rows = []
    for p in (0.03, 0.05, 0.06, 0.08, 0.1, 0.2, 0.5, 1.0):
        first, error = errors(20, GeneralizedNormal(p), math.inf, _LOW_NOISE)
        rows.append({"p": p, **exact_row("generalized-normal", "(35) at epsilon 50", first)})
        rows.append({"p": p, **exact_row("generalized-normal", "error at epsilon 50", *error)})
    return rows
