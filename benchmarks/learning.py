"""Learning from a million rankings, against the all-pairs loop that people write with PyTorch.

Both fit f(u, i) = b . y_i + x_u' W y_i with the logistic loss to the same rankings, each in a process of its own so
that memory can be told apart. Ours minimises to convergence, in double precision. The loop takes mini-batches with Adam
in PyTorch's own single precision, gathers each user's scores, writes down all pairs, and ends as soon as its loss over
all users is within a thousandth of our minimum (or after ten epochs). "one pass" is the loss and its gradient over all
users once. ``python -m benchmarks.learning accuracy`` prints held-out accuracies by mechanism, epsilon and how far
labels undo the noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import peak_memory
from benchmarks.report import Table, digits, times, verdict

ROWS, _ITEMS, _FEATURES = 1_000_000, 10, 5
_BATCH, _MOST_EPOCHS = 8192, 10
_SECONDS, _BYTES = 60.0, 2e9


def data(rows: int) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(0)
    users, items = draw.normal(size=(rows, _FEATURES)), draw.normal(size=(_ITEMS, _FEATURES))
    scores = users @ draw.normal(size=(_FEATURES, _FEATURES)) @ items.T
    scores += draw.gumbel(size=scores.shape)
    return users, items, np.argsort(-scores, axis=1).astype(np.int32)


def ours(rows: int, _: float) -> dict[str, float]:
    from rankdp import Rankings
    from rankdp.learn import LinearPairwiseRanker
    from rankdp.learn.labels import labels_of
    from rankdp.learn.linear import Objective

    users, items, orders = data(rows)
    model = LinearPairwiseRanker(l2=0.0)
    model.fit(users[:100], items, orders[:100])  # compiles
    before = peak_memory()
    start = time.perf_counter()
    model.fit(users, items, orders)
    seconds = time.perf_counter() - start
    objective = Objective(labels_of(Rankings.from_orders(orders)), users, items)
    at = np.concatenate([model.coef_, model.interaction_], axis=None)
    start = time.perf_counter()
    loss, _ = objective.value_and_gradient(at, "logistic")
    return {
        "pass": time.perf_counter() - start,
        "seconds": seconds,
        "memory": peak_memory(),
        "before": before,
        "loss": loss,
        "epochs": model.n_iter_,
    }


def loop(rows: int, goal: float) -> dict[str, float]:
    import torch

    users, items, orders = data(rows)
    before = peak_memory()
    x, y, order = (
        torch.from_numpy(one) for one in (users.astype(np.float32), items.astype(np.float32), orders.astype(np.int64))
    )
    common = torch.zeros(_FEATURES, requires_grad=True)
    own = torch.zeros(_FEATURES, _FEATURES, requires_grad=True)
    first, second = torch.triu_indices(_ITEMS, _ITEMS, 1)
    adam = torch.optim.Adam([common, own], lr=0.02)

    def mean_loss(chosen: Any) -> Any:
        scores = torch.gather((x[chosen] @ own + common) @ y.T, 1, order[chosen])
        return torch.nn.functional.softplus(scores[:, second] - scores[:, first]).mean()

    def whole() -> float:
        with torch.no_grad():
            parts = [mean_loss(slice(at, at + _BATCH)) * len(x[at : at + _BATCH]) for at in range(0, rows, _BATCH)]
        return float(sum(parts) / rows)

    torch.manual_seed(0)
    spent, one_pass, loss, epochs = 0.0, 0.0, np.inf, 0
    while epochs < _MOST_EPOCHS and loss > goal * 1.001:
        start = time.perf_counter()
        for chosen in torch.randperm(rows).split(_BATCH):
            adam.zero_grad()
            mean_loss(chosen).backward()
            adam.step()
        one_pass = time.perf_counter() - start
        spent, epochs, loss = spent + one_pass, epochs + 1, whole()  # the look at the loss is not counted
    return {
        "pass": one_pass,
        "seconds": spent,
        "memory": peak_memory(),
        "before": before,
        "loss": loss,
        "epochs": epochs,
    }


def _apart(name: str, rows: int, goal: float = 0.0) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.learning", name, str(rows), str(goal)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(said.stdout)
    return found


def table(rows: int = ROWS) -> Table:
    header = ("contender", "fit", "one pass", "epochs", "loss per pair", "peak memory", "ratio", "target", "met")
    mine = _apart("ours", rows)
    contenders = {"rankdp, to convergence": mine}
    if find_spec("torch"):
        contenders["PyTorch loop"] = _apart("loop", rows, mine["loss"])
    lines = []
    for name, one in contenders.items():
        ahead = one is mine
        met = mine["seconds"] < _SECONDS and mine["memory"] < _BYTES
        lines.append(
            (
                name,
                f"{digits(one['seconds'])} s",
                f"{digits(one['pass'])} s",
                f"{one['epochs']:.0f}",
                f"{one['loss']:.5f}",
                f"{one['memory'] / 1e9:.2f} GB",
                "" if ahead else times(one["seconds"] / mine["seconds"]),
                "under 60 s and 2 GB" if ahead else "",
                verdict(met) if ahead else "",
            )
        )
    return Table(header, lines)


def accuracy(repetitions: int = 4) -> Table:
    """Held-out accuracy on true rankings: labels as they stand, unbiased at any price, and as far as it pays."""
    from rankdp.errors import Unsupported
    from rankdp.learn import LinearPairwiseRanker
    from rankdp.privacy.bits import SeededBits
    from rankdp_papers.xu.populations import simulated, sushi
    from rankdp_papers.xu.rivals import built

    def mean_accuracy(repeated: list[Any], which: str, epsilon: float, debias: Any) -> float:
        found = []
        for seed, one in enumerate(repeated):
            synthetic = built(which, len(one.items), epsilon).sample(one.orders, SeededBits(seed))
            ranker = LinearPairwiseRanker(debias=debias, l2=0.01)
            ranker.fit(one.users, synthetic, items=one.items, mechanism=which, epsilon=epsilon)
            found.append(ranker.score(one.test_users, one.test_orders))
        return float(np.mean(found))

    settings = {
        f"simulated, {users:,} users, 6 items": [
            simulated(users, 6, seed, personal=True, noise=1.0) for seed in range(repetitions)
        ]
        for users in (350, 5000)
    }
    directory = os.environ.get("RANKDP_DATA")
    if directory and (Path(directory) / "sushi").is_dir():
        settings["sushi, 3,000 users, 5 items"] = [sushi(directory, seed) for seed in range(repetitions)]
    lines = []
    for name, repeated in settings.items():
        for which in ("kendall", "reinsertion", "ulam", "optimal"):
            for epsilon in (1, 4):
                cells = []
                for debias in (False, "always", True):
                    try:
                        cells.append(f"{mean_accuracy(repeated, which, epsilon, debias):.3f}")
                    except Unsupported:
                        cells.append("–")
                lines.append((name, which, f"{epsilon}", *cells))
    return Table(("setting", "mechanism", "epsilon", "as they stand", "unbiased", "chosen"), lines)


if __name__ == "__main__":
    if sys.argv[1] == "accuracy":
        print(accuracy())
    else:
        print(json.dumps({"ours": ours, "loop": loop}[sys.argv[1]](int(sys.argv[2]), float(sys.argv[3]))))
