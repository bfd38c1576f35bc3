"""Audits of every method of ``rank`` for every unit of protection, through its mechanism and from end to end."""

import itertools

import numpy as np
import pytest
from support import seeded

from rankdp.audit import audit_board
from rankdp.audit.boards import ITEMS, board_draws, neighbouring_votes
from rankdp.data.comparisons import Comparisons
from rankdp.errors import InputError
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.objective import ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import SeededBits
from rankdp.publish.rank import METHODS

pytestmark = pytest.mark.slow

UNITS = {"comparison": None, "outcome": None, "voter": 2}
methods = pytest.mark.parametrize("method", METHODS)
units = pytest.mark.parametrize("protect", list(UNITS))


def uses_wins(method, protect):
    return method == "wins" or protect == "outcome"


@methods
@units
def test_every_method_survives(method, protect, request):
    found = audit_board(method, protect, 1, max_per_voter=UNITS[protect], draws=30_000, bits=seeded(request))
    assert found.holds, found.explain()
    if uses_wins(method, protect):
        assert found.epsilon_low > 0.6
    assert found.subject.startswith(f"{method} protecting one ")


@pytest.mark.parametrize(
    ("method", "protect", "draws"),
    [
        ("wins", "outcome", 1000),
        *(
            pytest.param(method, protect, 4000 if uses_wins(method, protect) else 800, marks=pytest.mark.long)
            for method, protect in itertools.product(METHODS, UNITS)
        ),
    ],
)
def test_every_method_survives_from_end_to_end(method, protect, draws, request):
    found = audit_board(
        method, protect, 4, max_per_voter=UNITS[protect], draws=draws, bits=seeded(request), through="rank"
    )
    assert found.holds, found.explain()
    if method == "wins":
        assert found.epsilon_low > 1


@units
def test_objective_perturbation_survives(protect, request):
    asked = {"max_per_voter": UNITS[protect], "draws": 1500, "bits": seeded(request), "pairing": "matched"}
    assert audit_board("bradley-terry", protect, 8, **asked).holds


def test_gaussian_wins_with_a_delta(request):
    options = {"max_per_voter": 2, "delta": "0.01", "bits": seeded(request)}
    assert audit_board("wins", "voter", 1, **options).holds


@pytest.mark.parametrize(("times", "draws"), [(1000, 800), pytest.param(8, 6000, marks=pytest.mark.long)])
def test_objective_perturbation_with_little_noise_is_caught(times, draws, request):
    """Its bound is not tight on small tables: a mutant must be eight times too quiet, or far more for few draws."""

    class Quiet(ObjectivePerturbation):
        @property
        def scale(self):
            return super().scale / times

    bits = seeded(request)

    def release(kind):
        mechanism = kind(3, 7, Protection("comparison"), 2, 4)

        def sampler(table, count):
            counts = Comparisons.of(table, items=ITEMS).count()
            return np.array([mechanism.sample(counts, bits) for _ in range(count)])

        return sampler

    for kind, holds in ((ObjectivePerturbation, True), (Quiet, False)):
        assert audit_board("bradley-terry", "comparison", 2, draws=draws, release=release(kind)).holds is holds


def test_neighbouring_tables_differ_in_one_unit():
    for protection in (Protection("comparison"), Protection("outcome"), Protection.of("voter", 3)):
        for one, other in neighbouring_votes(protection):
            rows = [[row for row in table.to_pylist() if row["voter"] != "the one"] for table in (one, other)]
            assert rows[0] == rows[1]
            assert len({len(table) for table in (one, other)}) == 1 or protection.unit == "voter"
    protection = Protection.of("voter", 2)
    one, other = neighbouring_votes(protection)[0]
    wins = [Comparisons.of(table, items=ITEMS).bound(2).count().half_wins for table in (one, other)]
    assert np.abs(wins[0] - wins[1]).sum() == NoisyWins(protection, 1).l1 * protection.steps


@pytest.mark.parametrize("pairing", ["unknown", "residuals"])
@pytest.mark.parametrize("protect", ["comparison", "voter"])
def test_hidden_designs_survive(protect, pairing, request):
    """The table of pairs, and degrees with two looks at the votes."""
    asked = {"max_per_voter": UNITS[protect], "pairing": pairing, "draws": 30_000, "bits": seeded(request)}
    found = audit_board("bradley-terry", protect, 1, **asked)
    assert found.holds, found.explain()
    assert found.epsilon_low > 0.3
    assert not audit_board("bradley-terry", protect, "0.2", **asked, release=_louder(protect, pairing)).holds


def _louder(protect, pairing):
    """What is released at five times the epsilon that is claimed."""
    return board_draws("bradley-terry", Protection.of(protect, UNITS[protect]), 1, 0, SeededBits(1), pairing)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("borda", "outcome", 1), "method must be one of bradley-terry, wins, copeland, got 'borda'"),
        (("wins", "nobody", 1), "protect must be one of"),
        (("wins", "outcome", 0), "epsilon must be a finite number above 0"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(InputError, match=words):
        audit_board(*arguments)
    with pytest.raises(InputError, match="through must be one of mechanism, rank, got 'air'"):
        audit_board("wins", "outcome", 1, through="air")
