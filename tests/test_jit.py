"""A kernel that is interpreted for small work does what its compiled form does."""

import math
from importlib import import_module

import numpy as np
import pytest
from support import generator

from rankdp import jit
from rankdp.data.counts import PairCounts
from rankdp.privacy import noise
from rankdp.rankers import bradley_terry

for _name in ("mechanisms.rankings.sampling_kernels", "rankers.newton_kernels", "theory.rank_noise"):
    import_module(f"rankdp.{_name}")
INTERPRETED = {
    kernel.__wrapped__.__name__: kernel for kernel in jit._Kernel.known.values() if kernel._effort != math.inf
}


def halves(rng, count):
    return rng.integers(0, 1 << 32, count, dtype=np.uint32)


def orders(rng, rows, items):
    return np.array([rng.permutation(items) for _ in range(rows)], np.int32)


def insertion(rng):
    items = 12
    behind = np.stack([rng.integers(0, t + 1, 50) for t in range(1, items)], axis=1).astype(np.int32)
    return orders(rng, 50, items), behind, np.empty((50, items), np.int32)


def graph(rng, spread=1.0):
    first, second = np.triu_indices(7, 1)
    counts = PairCounts.from_pairs(first, second, *(rng.integers(1, 9, len(first)) for _ in range(2)), items=7)
    return bradley_terry.pair_starts(counts), counts.second, counts.comparisons.astype(float), rng.normal(0, spread, 7)


def stages(rng):
    cuts = np.concatenate([np.sort(rng.integers(1, 1 << 63, size, dtype=np.uint64)) for size in (2, 3, 4)])
    cuts[[1, 4, 8]] = np.uint64((1 << 64) - 1)
    starts, sizes = np.array([0, 2, 5]), np.array([2, 3, 4])
    guides = np.concatenate([noise.guide(cuts[at : at + size]) for at, size in zip(starts, sizes, strict=True)])
    words = rng.integers(0, 1 << 64, 400, dtype=np.uint64)
    return words, np.empty(300, np.int32), 0, 99, 2, starts, sizes, cuts, guides


def reinsertion(rng):
    return orders(rng, 60, 9), rng.integers(0, 10, 60), halves(rng, 4000), np.empty((60, 9), np.int32)


def shapes(rng):
    shape = np.tile(np.array([4, 2, 1, 0, 0, 0, 0], np.int32), (40, 1))
    return orders(rng, 40, 7), shape, halves(rng, 9000), np.empty((40, 7), np.int32)


def gradients(rng):
    starts, second, comparisons, right = graph(rng)
    diagonal = np.full(7, 1.0) + comparisons.sum()
    return starts, second, comparisons, diagonal, 1.0, right, 1e-10, 100


CASES = {
    "insert_short": insertion,
    "insert_long": insertion,
    "permute": lambda rng: (orders(rng, 9, 4), orders(rng, 5, 4), rng.integers(0, 5, 9), np.empty((9, 4), np.int32)),
    "reinsert": reinsertion,
    "permutations_of_shapes": shapes,
    "look_up_stages": stages,
    "expected_wins": lambda rng: (*graph(rng), np.empty(len(graph(rng)[1]))),
    "careful_wins": lambda rng: graph(rng, 900.0),
    "conjugate_gradients": gradients,
    "landed": lambda rng: (np.sort(rng.uniform(-1, 7, 9)), rng.random(9), 8, 1.5, 1e-300, 40.0),
}


def test_every_interpreted_kernel_has_a_case():
    assert set(CASES) == set(INTERPRETED)


@pytest.mark.parametrize("name", CASES)
def test_interpreted_and_compiled_agree(name, request):
    kernel, given = INTERPRETED[name], CASES[name](generator(request))
    results = []
    for way in (kernel.plain, kernel.compiled):
        arguments = [np.copy(argument) if isinstance(argument, np.ndarray) else argument for argument in given]
        with np.errstate(all="ignore"):
            returned = way(*arguments)
        results.append([*arguments, *(returned if isinstance(returned, tuple) else [returned])])
    for plain, compiled in zip(*results, strict=True):
        if np.asarray(plain).dtype.kind == "f":
            np.testing.assert_allclose(plain, compiled, rtol=1e-12, atol=1e-12)
        else:
            assert np.array_equal(plain, compiled)
        assert plain is None or np.asarray(plain).dtype.kind == np.asarray(compiled).dtype.kind


def test_a_kernel_is_compiled_when_it_has_been_interpreted_long_enough(monkeypatch):
    @jit.kernel(effort=1)
    def total(values):
        found = 0
        for value in values:
            found += value
        return found

    monkeypatch.setattr(jit, "PATIENCE", 100)
    assert [total(np.arange(40)), total(np.arange(40))] == [780, 780]
    assert "compiled" not in vars(total)
    assert total(np.arange(40)) == 780
    assert "compiled" in vars(total)


def test_the_effort_may_be_a_function_of_the_arguments(monkeypatch):
    @jit.kernel(effort=lambda values, times: len(values) * times)
    def total(values, times):
        return values.sum() * times

    monkeypatch.setattr(jit, "PATIENCE", 100)
    assert total(np.arange(4), 25) == 150
    assert "compiled" not in vars(total)
    assert total(np.arange(4), 1) == 6
    assert "compiled" in vars(total)


def test_kernels_that_others_call_are_compiled_for_one_kind_of_cursor(request):
    """A bare 0 is a kind of its own to Numba, so that what is called with it first is compiled twice."""
    import numba

    INTERPRETED["permutations_of_shapes"].compiled(*shapes(generator(request)))
    from rankdp.mechanisms.rankings import sampling_kernels

    for inner in (sampling_kernels._random_tableau, sampling_kernels._uniform):
        dispatcher = getattr(inner, "compiled", inner)
        literal = [kind for kinds in dispatcher.signatures for kind in kinds if isinstance(kind, numba.types.Literal)]
        assert not literal
