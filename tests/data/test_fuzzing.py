"""Damaged and forged files: a small fixed run of `make fuzz`, and that the tool sees what it is there to see."""

from __future__ import annotations

import pytest
from fuzzing import __main__ as fuzzing
from fuzzing import forging, judging


@pytest.mark.slow
def test_damaged_files_are_refused_or_read_as_others_read_them(tmp_path):
    result = fuzzing.run(seed=2, first=0, files=400, seconds=600, keep=tmp_path)
    assert not result.findings
    assert sum(result.counts.values()) == 400
    assert min(result.counts["accepted"], result.counts["refused"]) > 80


@pytest.mark.slow
def test_whole_files_are_accepted(tmp_path):
    for number, case in enumerate(forging.originals()):
        path = tmp_path / f"{number}.{case.ending}"
        path.write_bytes(case.data)
        assert judging.judge(case, path) == "accepted"


def test_a_seed_and_a_number_are_always_the_same_file():
    assert [forging.case(3, number) for number in range(50)] == [forging.case(3, number) for number in range(50)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crash", "hang", "traceback"])
def test_what_goes_wrong_is_noticed_and_the_rest_goes_on(tmp_path, monkeypatch, kind):
    class Impatient(fuzzing._Lines):
        """After the file that hangs is announced nothing ever comes; anything else may take its time."""

        last = ""

        def next(self, seconds):
            self.last = super().next(0.2 if (kind, self.last) == ("hang", "at 3") else 600)
            return self.last

    monkeypatch.setattr(fuzzing, "_Lines", Impatient)
    result = fuzzing.run(seed=4, first=0, files=6, seconds=600, keep=tmp_path, plant=f"{kind}@3")
    (finding,) = result.findings
    assert {"crash": "crash (exit code -11)", "hang": "hang (exit code -9)", "traceback": "ValueError"}[kind] in finding
    assert sum(result.counts.values()) == 6
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet", "soc"])
def test_a_miscount_is_noticed(tmp_path, monkeypatch, ending):
    case = next(case for case in forging.originals() if (case.holds, case.ending) == ("rankings", ending))
    path = tmp_path / f"v.{ending}"
    path.write_bytes(case.data)
    real = judging._read_rankings

    def loses_a_row(where):
        rankings, reader = real(where)
        return rankings[1:], reader

    monkeypatch.setattr(judging, "_read_rankings", loses_a_row)
    with pytest.raises(judging.Miscount):
        judging.judge(case, path)


def test_a_miscount_of_votes_is_noticed(tmp_path, monkeypatch):
    case = next(case for case in forging.originals() if case.holds == "votes")
    path = tmp_path / "v.parquet"
    path.write_bytes(case.data)
    votes, wins = judging._read_votes(path)
    monkeypatch.setattr(judging, "_read_votes", lambda _: (votes, {**wins, votes.items[0]: 0}))
    with pytest.raises(judging.Miscount):
        judging.judge(case, path)
