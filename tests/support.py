"""What the statistical and exact tests share: seeds from names, chi-squared, high precision, audits and mutants."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from rankdp.mechanisms import RankingMechanism
from rankdp.mechanisms.rankings.noisy_ranks import RankLaplace
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.theory.permutations import all_permutations, moves

#: the one significance level of every statistical test; the seeds are fixed, so a test that passes stays passed
LEVEL = 1e-4
#: good bits of every enclosure in an audit, and the slack that a *tight* mechanism is allowed for them
PRECISION = 512
SLACK = Fraction(1, 1 << 400)


def seeded(request: pytest.FixtureRequest) -> SeededBits:
    """Bits whose seed is the test's own name."""
    return SeededBits(zlib.crc32(request.node.name.encode()))


def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """Plain random numbers for inputs, seeded by the test's name."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


class Scripted(Bits):
    """Bits that say what they are told, and count how many words were asked for."""

    seed = 0

    def __init__(self, words: Iterable[int]) -> None:
        self.script = list(words)
        self.used = 0

    def words(self, count: int) -> np.ndarray:
        part = self.script[self.used : self.used + count]
        assert len(part) == count, "the script has run out"
        self.used += count
        return np.array(part, dtype=np.uint64)

    def spawn(self) -> Scripted:
        return self


def assert_law(cells: np.ndarray, probabilities: Sequence[float] | np.ndarray) -> None:
    """``cells`` are draws from 0..k-1 with these probabilities; the rest, if any, is pooled beyond the end."""
    law = np.append(np.asarray(probabilities, dtype=float), 0.0)
    law[-1] = max(0.0, 1 - law.sum())
    cells = np.asarray(cells)
    assert cells.min() >= 0
    observed = np.bincount(np.minimum(cells, len(law) - 1), minlength=len(law)).astype(float)
    expected = law * len(cells)
    assert observed[law == 0].sum() == 0, "an impossible cell was drawn"
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 5:  # join it to the least of the others
            least = int(np.argmin(expected[:-1]))
            observed[least] += observed[-1]
            expected[least] += expected[-1]
            observed, expected = observed[:-1], expected[:-1]
    assert len(expected) > 1, "a chi-squared test of one cell cannot fail"
    p_value = stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue
    assert p_value > LEVEL, f"p = {p_value:.3g}"


def assert_same_law(first: np.ndarray, second: np.ndarray, cells: int = 40) -> None:
    """Two samples of integers from one law: two-sample chi-squared over quantile cells of both."""
    together = np.concatenate([first, second])
    edges = np.unique(np.quantile(together, np.linspace(0, 1, cells + 1)[1:-1], method="lower"))
    table = np.stack([np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 1
    p_value = stats.chi2_contingency(table).pvalue
    assert p_value > LEVEL, f"p = {p_value:.3g}"


def precise(digits: int = 80) -> Context:
    """A decimal context far more precise than anything it is compared with."""
    return Context(prec=digits, Emax=10**9, Emin=-(10**9))


def decimal_exp(x: Fraction, digits: int = 80) -> Decimal:
    """exp(x), to ``digits`` digits but a few."""
    with localcontext(precise(digits)):
        return (Decimal(x.numerator) / Decimal(x.denominator)).exp()


def indices(permutations: np.ndarray) -> np.ndarray:
    """The place of each permutation in lexicographic order."""
    items = permutations.shape[1]
    digits = items ** np.arange(items - 1, -1, -1)
    return np.searchsorted(all_permutations(items) @ digits, permutations @ digits)


def neighbours(items: int) -> np.ndarray:
    """Row s: where c s stands in lexicographic order, for every move c."""
    table = np.stack([move[all_permutations(items)] for move in moves(items)], axis=1)
    return indices(table.reshape(-1, items)).reshape(table.shape[:2])


def inversions(s: Sequence[int]) -> int:
    return sum(a > b for a, b in itertools.combinations(s, 2))


def longest_increasing(s: Sequence[int]) -> int:
    best: list[int] = []
    for j, value in enumerate(s):
        best.append(1 + max((best[i] for i in range(j) if s[i] < value), default=0))
    return max(best)


def increasing_counts(s: Sequence[int]) -> list[int]:
    """How many increasing subsequences of each length, by looking at every subset."""
    m = len(s)
    counts = [0] * (m + 1)
    for size in range(m + 1):
        counts[size] = sum(list(part) == sorted(part) for part in itertools.combinations(s, size))
    return counts


def keeps(permutations: np.ndarray, i: int, j: int) -> np.ndarray:
    """Whether each relative permutation keeps positions i < j in order."""
    places = np.argsort(permutations, axis=1)
    return places[:, i] < places[:, j]


# -- audits ------------------------------------------------------------------------------------------------------


def sampled_weights(mechanism: RankingMechanism) -> list[tuple[int, int]]:
    """Enclosures of the weights of all outputs, from the very tables and kernels that the sampler reads."""
    return _WEIGHTS[mechanism.name](mechanism)


def _from_outputs(mechanism):
    weights = mechanism._outputs._weights(PRECISION)
    assert weights.first == weights.below == weights.above == 0
    assert len(weights.low) == math.factorial(mechanism.items)
    return list(zip(weights.low, weights.high, strict=True))


def _kendall_weights(mechanism):
    from rankdp.mechanisms.rankings.sampling_kernels import insert_short

    m = mechanism.items
    stages = [table._weights(PRECISION) for table in mechanism._stages._tables]
    behind = np.array(list(itertools.product(*[range(t + 1) for t in range(1, m)])), dtype=np.int32)
    orders = np.tile(np.arange(m, dtype=np.int32), (len(behind), 1))
    out = np.empty_like(orders)
    insert_short(orders, behind, out)
    found: dict[int, tuple[int, int]] = {}
    for index, row in zip(indices(out).tolist(), behind.tolist(), strict=True):
        assert index not in found
        found[index] = (
            math.prod(stage.low[k] for stage, k in zip(stages, row, strict=True)),
            math.prod(stage.high[k] for stage, k in zip(stages, row, strict=True)),
        )
    return [found[index] for index in range(math.factorial(m))]


_WEIGHTS = {
    "kendall": _kendall_weights,
    "ulam": _from_outputs,
    "reinsertion": _from_outputs,
    "optimal": _from_outputs,
}


def exact_audit(mechanism: RankingMechanism) -> None:
    """Fail unless the law that the sampler draws from keeps what ``mechanism.guarantee`` promises to neighbours."""
    promised = mechanism.guarantee.epsilon
    if isinstance(mechanism, RankLaplace):  # exact in integers: discrete Laplace noise, then sorting, blind to shifts
        identity = np.arange(mechanism.items)
        farthest = max(
            min(int(np.abs(np.argsort(move) - identity - shift).sum()) for shift in range(-1, 2))
            for move in moves(mechanism.items)
        )
        assert Fraction(farthest) / mechanism.scale <= promised
        logs = mechanism.log_prob(all_permutations(mechanism.items), identity)
        assert (logs[:, None] - logs[neighbours(mechanism.items)]).max() <= promised + 1e-9
        return
    weights = sampled_weights(mechanism)
    ceiling = Fraction(decimal_exp(promised, 160)) * (1 + SLACK)
    for (_, high), others in zip(weights, neighbours(mechanism.items).tolist(), strict=True):
        least = min(weights[other][0] for other in others)
        assert high <= ceiling * least, "two neighbours differ by more than e^epsilon"


def half_noise(mechanism: RankingMechanism) -> RankingMechanism:
    """The same mechanism with half the noise that still claims the old guarantee: every audit must catch it."""
    cls = type(mechanism)
    mutant = type("Mutant", (cls,), {"guarantee": property(lambda self: mechanism.guarantee)})
    return mutant(mechanism.items, 2 * mechanism.epsilon)


def worst_event(mechanism: RankingMechanism) -> tuple[np.ndarray, np.ndarray]:
    """A neighbour of the identity and the outputs whose probability it changes the most."""
    m = mechanism.items
    outputs = all_permutations(m)
    here = mechanism.log_prob(outputs, np.arange(m))
    best = None
    for move in moves(m):
        ratios = here - mechanism.log_prob(outputs, move)
        if best is None or ratios.max() > best[0] + 1e-12:
            best = ratios.max(), move, np.flatnonzero(ratios > ratios.max() - 1e-9)
    return best[1], best[2]


def statistical_audit(mechanism: RankingMechanism, draws: int, bits: Bits) -> float:
    """A lower confidence bound of the log-ratio of the worst event between the identity and its worst neighbour."""
    m = mechanism.items
    neighbour, event = worst_event(mechanism)
    hits = [
        int(np.isin(indices(mechanism.sample(np.tile(order, (draws, 1)), bits)), event).sum())
        for order in (np.arange(m), neighbour)
    ]
    low = stats.beta.ppf(LEVEL / 2, hits[0], draws - hits[0] + 1) if hits[0] else 0.0
    high = stats.beta.ppf(1 - LEVEL / 2, hits[1] + 1, draws - hits[1])
    return math.log(low / high) if low else -math.inf
