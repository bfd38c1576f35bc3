"""Sequences of public calls on tiny tables in two neighbouring worlds: every hole in a promise is a combination.

After every call, however it ends: every draw that was shown is paid for; a value and its sidecar come from one call; a
refusal changed nothing; both worlds ended alike, with the same public facts.
"""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from worlds import Fault, World

import rankdp
from rankdp.cli import cli
from rankdp.mechanisms import MECHANISMS

ITEMS = ("ale", "beer", "cola", "tea")
UNITS = {
    "comparison": "one comparison",
    "outcome": "one comparison's outcome",
    "voter": "one voter",
}
POSITION = "one item's position in one ranking"
NOISY_WORDS = ("Won or lost almost every comparison", "Perhaps never compared")  # follow from what was released

VOTES = ["ann,ale,beer,left", "ann,ale,cola,left", "ann,beer,cola,right", "bob,cola,tea,left", "bob,ale,tea,tie"]
#: what is replaced in the neighbouring world, and the units for which that makes neighbours
NEIGHBOURS = {
    "outcome": ({0: "ann,ale,beer,right"}, ("comparison", "outcome", "voter")),
    "comparison": ({3: "bob,beer,cola,left"}, ("comparison", "voter")),
    "voter": ({3: "bob,ale,beer,right", 4: "bob,tea,cola,right"}, ("voter",)),
    "dropped": ({3: "bob,cola,cola,left"}, ("comparison", "voter")),
}
POLL = {"ann": (0, 1, 2, 3), "bob": (1, 0, 3, 2), "cyd": (2, 3, 0, 1), "dee": (3, 2, 1, 0)}

epsilons = st.sampled_from([Fraction(1), Fraction(1, 2)])
seeds = st.sampled_from([None, None, None, 7])
faults = st.one_of(st.none(), st.builds(Fault, st.sampled_from(["fail", "kill"]), st.integers(1, 8)))
mechanisms = st.sampled_from(["auto", *sorted(MECHANISMS)])


def poll(people: list[str], orders: dict[str, tuple[int, ...]]) -> str:
    lines = [",".join([person, *(ITEMS[item] for item in orders[person.strip()])]) for person in people]
    return "\n".join(["voter,rank_1,rank_2,rank_3,rank_4", *lines, ""])


def tables(votes: list[str], orders: dict[str, tuple[int, ...]], score: float) -> dict[str, str]:
    """The secret files of a world: three waves of the same poll, votes and scores."""
    people = list(POLL)
    return {
        "first.csv": poll(people[:2], orders),
        "all.csv": poll(people, orders),
        "twice.csv": poll([*people, "ann "], orders),
        "votes.csv": "\n".join(["voter,left,right,winner", *votes, ""]),
        "items.txt": "\n".join(ITEMS),
        "scores.csv": f"item,score\nale,{score}\nbeer,0.5\n",
    }


class Combinations(RuleBasedStateMachine):
    """The same calls in two worlds."""

    @initialize(neighbour=st.sampled_from(sorted(NEIGHBOURS)))
    def begin(self, neighbour: str) -> None:
        """Two worlds that differ in one person's data."""
        changed, self.units = NEIGHBOURS[neighbour]
        self.drop = neighbour == "dropped"
        self.home = Path(tempfile.mkdtemp(prefix="rankdp-worlds-"))
        other = [changed.get(row, line) for row, line in enumerate(VOTES)]
        self.worlds = [
            World(self.home / "here", tables(VOTES, POLL, 0.25)),
            World(self.home / "there", tables(other, POLL | {"bob": (1, 3, 0, 2)}, 0.75)),
        ]

    def teardown(self) -> None:
        """Remove the worlds."""
        if hasattr(self, "home"):
            for world in self.worlds:
                for ledger in world.ledgers.values():
                    ledger.close()
            shutil.rmtree(self.home)

    def both(self, call: Any, fault: Fault | None = None) -> None:
        """The same call in both worlds must end alike."""
        here, there = (world.attempt(call, fault and Fault(fault.kind, fault.at)) for world in self.worlds)
        assert here == there

    @rule(name=st.sampled_from(["a", "b"]))
    def ledger_for_positions(self, name: str) -> None:
        """One of two ledgers about the same people."""
        self._ledger(name, POSITION)

    @rule(data=st.data())
    def ledger_for_votes(self, data: st.DataObject) -> None:
        """A ledger for a unit in which the worlds are neighbours."""
        unit = data.draw(st.sampled_from(self.units))
        self._ledger(unit, UNITS[unit])

    def _ledger(self, name: str, protects: str) -> None:
        if name not in self.worlds[0].ledgers:
            for world in self.worlds:
                world.ledgers[name] = rankdp.Ledger.create(world.root / f"{name}.db", "people", protects, epsilon=2)

    @rule(
        table=st.sampled_from(["first.csv", "all.csv", "twice.csv"]),
        epsilon=epsilons,
        mechanism=mechanisms,
        purpose=st.sampled_from(["order", "aggregate"]),
        ledger=st.sampled_from([None, "a", "a", "b"]),
        file_name=st.sampled_from([None, "rankings.csv", "rankings.parquet", "missing/rankings.csv"]),
        answers=st.booleans(),
        wave=st.sampled_from(["", "", "second"]),
        seed=seeds,
        fault=faults,
    )
    def privatize(
        self,
        table: str,
        epsilon: Fraction,
        mechanism: str,
        purpose: str,
        ledger: str | None,
        file_name: str | None,
        answers: bool,
        wave: str,
        seed: int | None,
        fault: Fault | None,
    ) -> None:
        """Synthetic rankings, in memory or in a file."""
        self.asked = {"epsilon": epsilon, "mechanism": mechanism, "purpose": purpose, "answers": answers}
        self.asked |= {"wave": wave, "seed": seed}
        self._privatize(table, ledger, file_name, fault, **self.asked)

    @precondition(lambda self: hasattr(self, "asked"))
    @rule(
        table=st.sampled_from(["first.csv", "all.csv"]),
        ledger=st.sampled_from([None, "a", "b"]),
        file_name=st.sampled_from([None, None, "rankings.csv"]),
        fault=faults,
    )
    def privatize_again(self, table: str, ledger: str | None, file_name: str | None, fault: Fault | None) -> None:
        """The last question once more, of other people or under another ledger."""
        self._privatize(table, ledger, file_name, fault, **self.asked)

    def _privatize(
        self,
        table: str,
        ledger: str | None,
        file_name: str | None,
        fault: Fault | None,
        *,
        epsilon: Fraction,
        mechanism: str,
        purpose: str,
        answers: bool,
        wave: str,
        seed: int | None,
    ) -> None:
        if ledger not in self.worlds[0].ledgers:
            ledger = None

        def call(world: World) -> dict[str, Any]:
            source, out = world.root / table, None if file_name is None else world.out / file_name
            options: dict[str, Any] = {
                "mechanism": mechanism,
                "purpose": purpose,
                "ledger": world.ledgers[ledger] if ledger else None,
                "bits": None if seed is None else rankdp.SeededBits(seed),
            }
            if answers:
                options |= {"answers": rankdp.AnswerStore(world.answers), "wave": wave}
            with world.drawn_for(source) as drawn:
                try:
                    if out is None:
                        release: Any = rankdp.privatize(rankdp.Rankings.read(source), epsilon, **options)
                    else:
                        release = rankdp.privatize_file(source, out, epsilon, **options)
                except BaseException:
                    if out is not None and world.written(out) and seed is None:
                        self._show(world, ledger, source, drawn, epsilon, None)
                    raise
                finally:
                    if answers:
                        options["answers"].close()
            question = (epsilon, release.provenance.mechanism, wave) if answers else None
            if seed is None:
                self._show(world, ledger, source, drawn, epsilon, question)
            return facts(release)

        self.both(call, fault)

    @staticmethod
    def _show(world: World, ledger: str | None, source: Path, drawn: Any, epsilon: Fraction, question: Any) -> None:
        shown = {}
        for person in {line.split(",")[0].strip() for line in source.read_text().splitlines()[1:]}:
            new = [world.fresh() for _ in range(drawn[person])]
            if question is not None:
                key = (person, *question)
                if new or key not in world.stored:
                    world.stored[key] = new[0] if new else world.fresh()
                new = [*new[1:], world.stored[key]]
            shown[person] = [(number, epsilon) for number in new]
        world.show(ledger, shown)

    @rule()
    def save_answers(self) -> None:
        """A backup of the answers."""
        for world in self.worlds:
            world.save_answers()

    @rule()
    def restore_answers(self) -> None:
        """Yesterday's answers in place of today's."""
        for world in self.worlds:
            world.restore_answers()

    @rule(
        data=st.data(),
        epsilon=epsilons,
        method=st.sampled_from(["bradley-terry", "wins", "copeland"]),
        bound=st.sampled_from([None, None, 1, 2]),
        charged=st.booleans(),
        file_name=st.sampled_from([None, "board.csv", "board.csv", "board.json", "missing/board.csv"]),
        seed=seeds,
        fault=faults,
    )
    def rank(
        self,
        data: st.DataObject,
        epsilon: Fraction,
        method: str,
        bound: int | None,
        charged: bool,
        file_name: str | None,
        seed: int | None,
        fault: Fault | None,
    ) -> None:
        """A leaderboard from votes in memory, perhaps bounded; perhaps written to a file."""
        unit = data.draw(st.sampled_from(self.units))
        charged = charged and unit in self.worlds[0].ledgers
        boards: dict[World, Any] = {}

        def call(world: World) -> dict[str, Any]:
            votes = rankdp.Comparisons.read(
                world.root / "votes.csv", items=ITEMS, on_problem="drop" if self.drop else "refuse"
            )
            release = rankdp.rank(
                votes if bound is None else votes.bound(bound),
                epsilon,
                protect=unit,
                method=method,
                max_per_voter=2 if unit == "voter" else None,
                ledger=world.ledgers[unit] if charged else None,
                bits=None if seed is None else rankdp.SeededBits(seed),
            )
            if seed is None:
                world.show(unit if charged else None, {"the votes": [(world.fresh(), epsilon)]})
            boards[world] = release
            board = release.value
            return facts(release) | {
                "items": sorted(board.items),
                "warnings": [said for said in board.warnings if not said.startswith(NOISY_WORDS)],
            }

        def write(world: World) -> dict[str, Any]:
            rankdp.write_board(boards[world], world.out / file_name)
            return {}

        self.both(call)
        if boards and file_name is not None:
            self.both(write, fault)

    @rule(
        data=st.data(),
        epsilon=epsilons,
        charged=st.booleans(),
        file_name=st.sampled_from(["board.csv", "board.json", "board.html", "missing/board.csv"]),
        seed=seeds,
        fault=faults,
    )
    def rank_command(
        self,
        data: st.DataObject,
        epsilon: Fraction,
        charged: bool,
        file_name: str,
        seed: int | None,
        fault: Fault | None,
    ) -> None:
        """``rankdp rank``."""
        unit = data.draw(st.sampled_from(self.units))
        charged = charged and unit in self.worlds[0].ledgers

        def call(world: World) -> dict[str, Any]:
            out = world.out / file_name
            words = ["rank", str(world.root / "votes.csv"), "--items", str(world.root / "items.txt")]
            words += ["--epsilon", str(epsilon), "--protect", unit, "-o", str(out)]
            words += ["--max-per-voter", "2"] if unit == "voter" else []
            words += ["--on-problem", "drop"] if self.drop else []
            words += ["--ledger", str(world.root / f"{unit}.db")] if charged else []
            words += [] if seed is None else ["--rehearse", str(seed)]
            try:
                cli.main(words, prog_name="rankdp", standalone_mode=False)
            finally:
                if world.written(out) and seed is None:
                    world.show(unit if charged else None, {"the votes": [(world.fresh(), epsilon)]})
            return {}

        self.both(call, fault)

    @rule(
        epsilon=epsilons,
        noise=st.sampled_from(["laplace", "staircase"]),
        file_name=st.sampled_from(["scores.csv", "scores.json", "missing/scores.csv"]),
        seed=seeds,
        charged=st.booleans(),
        fault=faults,
    )
    def scores(
        self, epsilon: Fraction, noise: str, file_name: str, seed: int | None, charged: bool, fault: Fault | None
    ) -> None:
        """Noisy scores in a file."""
        if charged:
            self._ledger("scores", "one score")

        def call(world: World) -> dict[str, Any]:
            out = world.out / file_name
            try:
                release = rankdp.privatize_scores_file(
                    world.root / "scores.csv",
                    out,
                    epsilon,
                    bounds=(0, 1),
                    noise=noise,
                    ledger=world.ledgers["scores"] if charged else None,
                    bits=None if seed is None else rankdp.SeededBits(seed),
                )
            finally:
                if world.written(out) and seed is None:
                    world.show("scores" if charged else None, {"the scores": [(world.fresh(), epsilon)]})
            return facts(release)

        self.both(call, fault)

    @precondition(lambda self: hasattr(self, "worlds"))
    @rule(name=st.sampled_from(["a", "b", "scores", *UNITS]))
    def close(self, name: str) -> None:
        """Ledgers are opened again in other processes."""
        for world in self.worlds:
            if name in world.ledgers:
                world.ledgers[name].close()


def facts(release: Any) -> dict[str, Any]:
    """What a release says of itself that must not depend on the secret."""
    told = release.to_dict()
    del told["when"]
    return told


@pytest.mark.slow
def test_combinations():
    run_state_machine_as_test(
        Combinations,
        settings=settings(max_examples=15, stateful_step_count=12, suppress_health_check=list(HealthCheck)),
    )


@pytest.mark.long
def test_more_combinations():
    run_state_machine_as_test(
        Combinations,
        settings=settings(
            max_examples=800, stateful_step_count=20, derandomize=False, suppress_health_check=list(HealthCheck)
        ),
    )
