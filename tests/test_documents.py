"""What the documents show is run: every shell and Python block, in the order of reading, and every example.

The blocks of one file share a temporary directory and its Python blocks a namespace. A block is left out only
by a comment on the line before it, ``<!-- not run: reason -->``, or because it calls make, git or pip.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from warm_command import warm_command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SHELL = {"sh", "bash", "shell", "console"}
SECONDS = 300

FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w{}-]*)")
NOT_RUN = re.compile(r"^\s*<!-- not run: (.+) -->\s*$")
CALLS_OUT = re.compile(r"(?:^|[;&|(])\s*(?:python3? -m )?(make|git|pip)\b", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it is written in, and why it is not run, if so."""

    path: Path
    line: int
    language: str
    source: str
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def commands(text: str) -> str:
    """What a console block types: the lines after ``$ `` with their continuations, without the answers."""
    typed, open_line = [], False
    for line in text.splitlines():
        if line.startswith("$ ") or open_line:
            typed.append(line.removeprefix("$ ").removeprefix("> "))
            open_line = line.endswith("\\")
    return "\n".join(typed)


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of one Markdown file that can be run."""
    lines = path.read_text("utf-8").splitlines()
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        start = at + 1
        closing = re.compile(rf"^\s*{opening['fence'][0]}{{{len(opening['fence'])},}}\s*$")
        at = next((n for n in range(start, len(lines)) if closing.match(lines[n])), len(lines)) + 1
        language = opening["language"]
        if language in SHELL or language == "python":
            text = textwrap.dedent("\n".join(lines[start : at - 1]))
            source = commands(text) if language == "console" else text
            opted_out = NOT_RUN.match(lines[start - 2]) if start > 1 else None
            outside = CALLS_OUT.search(source) if language in SHELL else None
            reason = opted_out[1] if opted_out else f"calls {outside[1]}" if outside else None
            yield Block(path, start, language, source, reason)


class Reader:
    """Follows one document: runs its blocks in order, each once, in one directory and one namespace."""

    def __init__(self, path: Path, directory: Path, programs: str) -> None:
        self.todo = [block for block in blocks(path) if block.not_run is None]
        self.directory, self.programs = directory, programs
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.failures: dict[Block, BaseException] = {}

    def read_through(self, block: Block) -> None:
        """Run everything up to ``block`` that has not run yet; raise if ``block`` itself failed."""
        while block in self.todo:
            current = self.todo.pop(0)
            try:
                self.run(current)
            except (Exception, SystemExit) as failure:
                self.failures[current] = failure
        if block in self.failures:
            raise self.failures[block]

    def run(self, block: Block) -> None:
        if block.language in SHELL:
            shell(["bash", "-euo", "pipefail", "-c", block.source], self.directory, self.programs)
            return
        padded = "\n" * block.line + block.source  # so that a traceback names the document's own line
        with contextlib.chdir(self.directory):
            exec(compile(padded, str(block.path), "exec", dont_inherit=True), self.namespace)


def shell(command: list[str], directory: Path, *programs: str) -> None:
    """Run one command as a reader would, with the ``rankdp`` and ``python`` of this interpreter."""
    path = os.pathsep.join([*programs, str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
    )
    print(done.stdout)
    if done.returncode:
        raise AssertionError(f"{command[-1]}\nended with {done.returncode}:\n{done.stdout}")


def block_tests() -> Iterator[Any]:
    for path in DOCUMENTS:
        for block in blocks(path):
            marks = [pytest.mark.xdist_group(path.name)]
            if block.not_run:
                marks.append(pytest.mark.skip(reason=f"not run: {block.not_run}"))
            yield pytest.param(block, id=str(block), marks=marks)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Reader]]:
    with pytest.MonkeyPatch.context() as patch, warm_command(tmp_path_factory.mktemp("programs")) as programs:
        patch.setenv("MPLBACKEND", "Agg")
        yield {path: Reader(path, tmp_path_factory.mktemp(path.stem), programs) for path in DOCUMENTS}


@pytest.mark.parametrize("block", list(block_tests()))
def test_block_runs(block: Block, readers: dict[Path, Reader]) -> None:
    readers[block.path].read_through(block)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    shell([sys.executable, str(script)], tmp_path)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells in one namespace; what stands last in a cell is shown, as a notebook would."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    text = notebook.read_text("utf-8")
    if "TwoTowerRanker" in text:
        pytest.importorskip("torch", reason="two towers need PyTorch")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert not any(cell["outputs"] for cell in cells)
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        shown = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), notebook.name, "exec", dont_inherit=True), namespace)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), notebook.name, "eval", dont_inherit=True), namespace)
            assert value is None or repr(value)
            if hasattr(value, "_repr_html_"):
                value._repr_html_()
