"""Shared fixtures: where the real data sets are, when they are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A first call may compile a kernel, and times prove nothing on a busy machine.
settings.register_profile("rankdp", deadline=None)
settings.load_profile("rankdp")

# Whole parts that `make check` leaves to `make test`, so that it stays under a minute: what stands on the mechanisms,
# and the long tests of the theory of scores.
_LEFT_TO_TEST = {
    *("aggregation", "attack", "audit", "learn", "papers", "planning"),
    *(
        "test_pair_laws.py",
        "test_scores.py",
        "test_budget_reports.py",
        "test_score_guarantees.py",
        "test_powers.py",
        "test_kemeny.py",
    ),
    *("test_ledger.py", "test_ledger_answers.py", "test_ledger_composition.py", "test_answers_kept.py"),
    *("test_noises.py", "test_recovery.py", "test_score_laws.py", "test_tradeoffs.py", "test_risks.py"),
    *("test_scoring.py", "test_score_files.py", "test_ledger_crashes.py", "test_noise_sums.py"),
    *("test_vote_pages.py", "test_parquet_reading.py"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those parts as slow."""
    for item in items:
        if _LEFT_TO_TEST.intersection(item.path.parts):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory of public data sets: $RANKDP_DATA, or ../shared/data beside the repository."""
    default = Path(__file__).parents[2] / "shared" / "data"
    directory = Path(os.environ.get("RANKDP_DATA") or default)
    if not directory.is_dir():
        pytest.skip("no data sets here: set RANKDP_DATA to their directory")
    return directory
