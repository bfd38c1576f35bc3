"""What the statistical and exact tests share: seeds from names, chi-squared, high precision, audits and mutants."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

import numpy as np
import pytest
from scipy import stats

from rankdp.cli import main, options
from rankdp.data import atomic
from rankdp.mechanisms import RankingMechanism, registry
from rankdp.privacy.bits import Bits, SeededBits
from rankdp.theory.permutations import all_permutations, neighbour_places

#: the one significance level of every statistical test; the seeds are fixed, so a test that passes stays passed
LEVEL = 1e-4
#: the same where a peer draws, who takes no seed
UNSEEDED = 1e-9
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


def assert_same_law(first: np.ndarray, second: np.ndarray, cells: int = 40, level: float = LEVEL) -> None:
    """Two samples of integers from one law: two-sample chi-squared over quantile cells of both."""
    together = np.concatenate([first, second])
    edges = np.unique(np.quantile(together, np.linspace(0, 1, cells + 1)[1:-1], method="lower"))
    table = np.stack([np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 1
    p_value = stats.chi2_contingency(table).pvalue
    assert p_value > level, f"p = {p_value:.3g}"


def precise(digits: int = 80) -> Context:
    """A decimal context far more precise than anything it is compared with."""
    return Context(prec=digits, Emax=10**9, Emin=-(10**9))


def decimal_exp(x: Fraction, digits: int = 80) -> Decimal:
    """exp(x), to ``digits`` digits but a few."""
    with localcontext(precise(digits)):
        return (Decimal(x.numerator) / Decimal(x.denominator)).exp()


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


# -- the command line --------------------------------------------------------------------------------------------


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`rankdp` with these arguments, in this process: starting Python takes longer than most commands."""
    out, err, terminated = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM)
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["rankdp", *arguments]),
        mock.patch.dict(os.environ, COLUMNS="110"),  # as in a pipe; runners of tests set others
        mock.patch.object(options, "_opened", []),  # what earlier commands in this process opened and wrote
        mock.patch.object(options, "_copies", []),
        mock.patch.object(atomic, "KEPT", []),
        pytest.raises(SystemExit) as left,
    ):
        main()
    signal.signal(signal.SIGTERM, terminated)
    return subprocess.CompletedProcess(arguments, int(str(left.value.code)), out.getvalue(), err.getvalue())


# -- a mechanism of one's own -------------------------------------------------------------------------------------


def skeleton() -> type[RankingMechanism]:
    """The class of the skeleton in CONTRIBUTING.md, as somebody would copy it; it is not registered."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    copied: dict[str, Any] = {"__name__": "copied"}
    exec(code.replace("@register\n", ""), copied)
    (kind,) = [
        value
        for value in copied.values()
        if isinstance(value, type) and issubclass(value, RankingMechanism) and value.__module__ == "copied"
    ]
    return kind


@contextmanager
def registered(kind: type[RankingMechanism]) -> Iterator[type[RankingMechanism]]:
    """A mechanism that is known for a while."""
    registry.register(kind)
    try:
        yield kind
    finally:
        del registry._registered[kind.name]
        for cached in (registry._build, registry._protecting, registry._best, registry._listing):
            cached.cache_clear()


# -- audits ------------------------------------------------------------------------------------------------------


def sampled_weights(mechanism: RankingMechanism) -> list[tuple[Fraction, Fraction]] | None:
    """Enclosures of the weights of all outputs, from the very tables that the sampler reads, if it has them."""
    law = mechanism.exact_law(mechanism.bits_for(PRECISION))
    return None if law is None else [(Fraction(low), Fraction(high)) for low, high in law]


def exact_audit(mechanism: RankingMechanism) -> None:
    """Fail unless the law that the sampler draws from keeps what ``mechanism.guarantee`` promises to neighbours.

    Without tables to read, the stated log-probabilities must keep it.
    """
    promised = mechanism.guarantee.epsilon
    weights = sampled_weights(mechanism)
    if weights is None:
        logs = mechanism.log_prob(all_permutations(mechanism.items), np.arange(mechanism.items))
        assert (logs[:, None] - logs[neighbour_places(mechanism.items)]).max() <= promised + 1e-9
        return
    assert len(weights) == math.factorial(mechanism.items)
    ceiling = Fraction(decimal_exp(promised, 160)) * (1 + SLACK)
    for (_, high), others in zip(weights, neighbour_places(mechanism.items).tolist(), strict=True):
        least = min(weights[other][0] for other in others)
        assert high <= ceiling * least, "two neighbours differ by more than e^epsilon"


def half_noise(mechanism: RankingMechanism) -> RankingMechanism:
    """The same mechanism with half the noise that still claims the old guarantee: every audit must catch it."""
    cls = type(mechanism)
    mutant = type("Mutant", (cls,), {"guarantee": property(lambda self: mechanism.guarantee)})
    return mutant(mechanism.items, 2 * mechanism.epsilon)


def workbook(path: Path, **sheets: Sequence[Sequence[str | float]]) -> Path:
    """Write an Excel workbook, texts and numbers as they are."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    doc = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    pack = "http://schemas.openxmlformats.org/package/2006/relationships"

    def cell(said: str | float) -> str:
        if isinstance(said, str):
            return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(said)}</t></is></c>'
        return f"<c><v>{said}</v></c>"

    with zipfile.ZipFile(path, "w") as packed:
        link = f'<Relationship Id="r" Type="{doc}/officeDocument" Target="xl/workbook.xml"/>'
        packed.writestr("_rels/.rels", f'<Relationships xmlns="{pack}">{link}</Relationships>')
        tabs = "".join(f'<sheet name="{escape(name)}" sheetId="1" r:id="{name}"/>' for name in sheets)
        book = f'<workbook xmlns="{main}" xmlns:r="{doc}"><sheets>{tabs}</sheets></workbook>'
        packed.writestr("xl/workbook.xml", book)
        links = "".join(f'<Relationship Id="{one}" Type="{doc}/worksheet" Target="{one}.xml"/>' for one in sheets)
        packed.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{pack}">{links}</Relationships>')
        for name, rows in sheets.items():
            lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            sheet = f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
            packed.writestr(f"xl/{name}.xml", sheet)
    return path
