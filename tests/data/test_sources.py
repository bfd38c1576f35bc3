"""Damaged and forged tables of votes: counted as they are, or refused in one sentence."""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdp.data import queries
from rankdp.data.comparisons import Comparisons
from rankdp.errors import InputError

ITEMS = [f"item {number}" for number in range(6)]
ROWS = 500


def table(rows=ROWS):
    generator = np.random.default_rng(rows)
    winner = generator.integers(0, len(ITEMS), rows)
    loser = (winner + generator.integers(1, len(ITEMS), rows)) % len(ITEMS)
    names = np.array(ITEMS)
    return pa.table({"winner": names[winner], "loser": names[loser], "voter": generator.integers(0, 50, rows)})


@pytest.fixture
def path(tmp_path):
    pq.write_table(table(), tmp_path / "votes.parquet", row_group_size=200)
    return tmp_path / "votes.parquet"


def counted(path, **options):
    """Pair counts and rows, or the sentence of the refusal."""
    try:
        votes = Comparisons.read(path, items=ITEMS, **options)
        return votes.count(), votes.diagnostics().rows
    except InputError as refusal:
        return str(refusal)


@pytest.mark.slow
@pytest.mark.parametrize("few", [1 << 16, -1])
def test_a_flipped_bit_of_the_footer_loses_no_vote(path, few, monkeypatch):
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    whole, chance = path.read_bytes(), random.Random(few)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    told = 0
    for place in chance.sample(range(8 * footer, 8 * len(whole)), 300 if few > 0 else 25):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        result = counted(path)
        if isinstance(result, str):
            assert "\n" not in result
            told += 1
        else:
            counts, rows = result
            assert (int(counts.halves.sum()), rows) == (2 * ROWS, ROWS)
    assert told > 5


@pytest.mark.slow
def test_any_damage_is_told_or_harmless(path):
    whole, chance = path.read_bytes(), random.Random(1)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            place = chance.randrange(4, len(whole))
            damaged[place] = chance.choice([chance.randrange(256), damaged[place] ^ 1 << chance.randrange(8), 0, 255])
        path.write_bytes(damaged[: chance.choice([len(whole)] * 9 + [chance.randrange(len(whole))])])
        result = counted(path, on_problem="drop")
        assert "\n" not in result if isinstance(result, str) else result[1] == ROWS


def test_forged_numbers_of_rows_are_refused_before_they_take_memory(path, monkeypatch):
    """A row group that announces 2^40 rows: what arrives is counted against it batch by batch."""
    whole = path.read_bytes()
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(group).num_rows for group in range(3)] == [200, 200, 100]
    # zig-zag variable-length integers of the footer: 200 is 0x90 0x03, and the two bytes can hold up to 8191
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    forged = whole[:footer] + whole[footer:].replace(b"\x90\x03", b"\xfe\x7f")
    assert forged != whole
    path.write_bytes(forged)
    assert "damaged" in counted(path)


def test_a_dictionary_with_codes_beyond_its_end_is_refused():
    codes = pa.array([0, 1, 7], pa.int32())
    broken = pa.DictionaryArray.from_arrays(codes, pa.array(["item 0", "item 1"]), safe=False)
    frame = pa.table({"winner": broken, "loser": ["item 2"] * 3})
    with pytest.raises(InputError, match="frame: the table could not be read"):
        Comparisons.of(frame, items=ITEMS).count()


def test_what_an_engine_raises_is_one_sentence():
    with duckdb.connect() as connection:
        broken = connection.sql("select 'item 0' as winner, error('out of order') as loser from range(3)")
        try:
            votes = Comparisons.of(broken, items=ITEMS)
        except InputError as refusal:
            said = str(refusal)
        else:
            with pytest.raises(InputError) as caught:
                votes.count()
            said = str(caught.value)
    assert said.startswith("table: the table could not be read (")
    assert "out of order" in said


def test_a_file_that_goes_away_is_told(path):
    votes = Comparisons.read(path, items=ITEMS)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        votes.count()
    path.unlink()
    with pytest.raises(InputError, match=r"votes\.parquet"):
        votes.count()


def test_an_ending_that_is_not_kept_is_told(tmp_path):
    path = tmp_path / "votes.parquet"
    path.write_text("left,right,winner\na,b,left\n")
    with pytest.raises(InputError, match="not a whole Parquet file"):
        Comparisons.read(path, items=ITEMS)


def test_an_empty_list_of_items_is_refused(tmp_path):
    (tmp_path / "items.csv").write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        Comparisons.of(table(), items=tmp_path / "items.csv")
