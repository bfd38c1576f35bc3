"""A kernel that is interpreted for small work does what its compiled form does."""

import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from support import generator

from rankdp import jit
from rankdp.data.counts import PairCounts
from rankdp.privacy import noise
from rankdp.rankers import bradley_terry

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
for _path in SOURCES:
    if "@kernel" in _path.read_text("utf-8") and _path.name != "jit.py":
        import_module(".".join(_path.relative_to(Path(__file__).parents[1] / "src").with_suffix("").parts))
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


def accepting(rng):
    """Tables for two tiers of three and two items: cuts that are never hit, and an acceptance by the total kept."""
    cuts = np.array([1 << 62, 1 << 63, (1 << 64) - 1, 1 << 63, (1 << 64) - 1], np.uint64)
    kept = np.zeros((30, 3), np.int64)
    words = rng.integers(1, 1 << 64, 200, dtype=np.uint64)
    accepted = np.full((1, 2, 8), 1 << 63, np.uint64)
    starts, ids, shapes = np.array([0, 3, 5]), np.array([[0, 1]]), np.array([[3, 2]])
    return 0, words, kept, ids, starts, np.array([0, 0]), cuts, shapes, accepted


def dealing(rng):
    kept = np.column_stack([np.zeros(40, np.int64), rng.integers(0, 4, 40), rng.integers(0, 4, 40)])
    return orders(rng, 40, 6), kept, halves(rng, 2000), np.empty((40, 6), np.int32), np.array([[3, 3]])


def labelled(rng):
    rows, length = 12, 6
    groups = np.zeros(rows, np.int32), np.array([length]), np.ones(1)
    return rng.normal(size=(rows, length)), orders(rng, rows, length), *groups


CASES = {
    "_tally_positions": lambda rng: (orders(rng, 40, 5), np.zeros((5, 5), np.int64)),
    "_tally_pairs": lambda rng: (
        orders(rng, 40, 5),
        rng.random((1, 5, 5)),
        np.zeros((5, 5), np.int32),
        np.zeros((5, 5, 3)),
    ),
    "tally_rankings": lambda rng: (orders(rng, 40, 5), np.zeros(25, np.int64)),
    "tile_points": lambda rng: (np.full(50, 3), rng.integers(0, 6, (50, 4)), rng.integers(0, 6, (50, 5))),
    "draw_kept": accepting,
    "deal": dealing,
    "log_kept_sum": lambda rng: (rng.integers(0, 3, (40, 9)).astype(np.int32), 3, 0.4),
    "count_inversions": lambda rng: (orders(rng, 40, 9),),
    "longest_rising_lengths": lambda rng: (orders(rng, 40, 9),),
    "_labelled_pass": lambda rng: (1, *labelled(rng), rng.random((1, 6, 6)), np.zeros((12, 6))),
    "_logistic_pass": lambda rng: (*labelled(rng), rng.random((1, 6)), np.zeros((12, 6))),
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


def test_every_kernel_that_python_calls_states_its_effort_and_has_a_case():
    called = {inner for kernel in jit._Kernel.known.values() for inner in kernel._called().values()}
    entered = {kernel.__wrapped__.__name__ for kernel in jit._Kernel.known.values() if kernel not in called}
    assert entered <= set(INTERPRETED) == set(CASES)


@pytest.mark.slow
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


def test_without_numba_kernels_are_interpreted_with_one_warning(monkeypatch):
    monkeypatch.setattr(jit, "has_numba", lambda: False)
    monkeypatch.setattr(jit, "_warned", [])

    @jit.kernel(effort=1e6)
    def total(values):
        return values.sum()

    with pytest.warns(UserWarning, match=r"Numba is not installed.* this step takes about 40 s") as caught:
        assert [total(np.arange(40)), total(np.arange(40))] == [780, 780]
    assert len(caught) == 1
    assert "compiled" not in vars(total)


@pytest.mark.slow
def test_commands_work_without_numba(tmp_path):
    """A fresh process that cannot import Numba privatizes, ranks, elects and aggregates."""
    for name, text in {
        "poll.csv": "rank_1,rank_2,rank_3\ntea,coffee,juice\njuice,tea,coffee\n",
        "votes.csv": "left,right,winner\ntea,coffee,left\ncoffee,juice,tie\n",
        "ballots.csv": "count,rank_1,rank_2,rank_3\n31,Ann,Cleo,Bob\n27,Bob,Cleo,\n18,Cleo,Ann,Bob\n",
    }.items():
        (tmp_path / name).write_text(text)
    lines = [
        *(
            f"privatize poll.csv {name}.csv --epsilon 2 --mechanism {name}"
            for name in ("kendall", "ulam", "reinsertion")
        ),
        "aggregate kendall.csv",
        "rank votes.csv --epsilon 1 --protect comparison --items tea,coffee,juice",
        "elect ballots.csv --epsilon 1 --rule irv",
        "elect ballots.csv --epsilon 1 --rule borda",
    ]
    script = (
        "import sys\nsys.modules['numba'] = None\nfrom rankdp.cli import cli\n"
        f"for line in {lines!r}:\n    cli.main(line.split(), standalone_mode=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
