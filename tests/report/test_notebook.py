"""Results show themselves in notebooks, as frames and as plots."""

import html

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankdp import Rankings, SeededBits, aggregate, elect, plan, privatize, rank
from rankdp.errors import InputError, Unsupported

VOTES = pa.table({"winner": ["<b>tea</b>", "coffee", "tea"] * 5, "loser": ["coffee", "tea", "coffee"] * 5})
BALLOTS = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]] * 40)


def _results():
    board = rank(VOTES, 2, protect="outcome", items=("<b>tea</b>", "coffee", "tea")).value
    election = elect(BALLOTS, 2, rule="borda", protect="ballot").value
    return [board, election, aggregate(privatize(BALLOTS, 4))]


@pytest.mark.parametrize("number", range(3))
def test_frames_tables_and_plots(number):
    result = _results()[number]
    assert len(result.rows()) == 3
    frames = {kind: result.to_frame(kind) for kind in ("pandas", "polars", "arrow")}
    assert isinstance(frames["pandas"], pd.DataFrame)
    assert isinstance(frames["polars"], pl.DataFrame)
    assert isinstance(result.to_frame(), pd.DataFrame)
    assert frames["polars"].to_dicts() == frames["arrow"].to_pylist() == result.rows()
    shown = result._repr_html_()
    assert shown.count("<tr>") == 4
    assert "<b>" not in shown
    assert html.escape(result.headline()) in shown
    assert "<script" not in shown
    assert result.plot("A title").axes[0].get_title() == "A title"
    assert repr(result).splitlines()[0] == result.headline()
    assert len(repr(result).splitlines()) == 5
    with pytest.raises(InputError, match="kind must be one of pandas, polars, arrow"):
        result.to_frame("excel")


def test_a_winner_alone_has_nothing_to_draw():
    result = elect(BALLOTS, 2, rule="plurality", protect="ballot", announce="winners").value
    with pytest.raises(Unsupported, match="nothing to draw"):
        result.plot()


def test_a_release_shows_its_value_and_its_promise():
    release = rank(VOTES, 2, protect="outcome", items=("<b>tea</b>", "coffee", "tea"))
    assert repr(release).startswith(release.value.headline())
    assert repr(release).endswith("epsilon 2 for one comparison's outcome")
    assert html.escape(release.explain()) in release._repr_html_()
    rehearsal = rank(VOTES, 2, protect="outcome", items=("<b>tea</b>", "coffee", "tea"), seed=7)
    assert "REHEARSAL, NOT PRIVATE" in repr(rehearsal)
    assert rehearsal._repr_html_().startswith("<p>REHEARSAL, NOT PRIVATE")
    again = rank(VOTES, 2, protect="outcome", items=("<b>tea</b>", "coffee", "tea"), bits=SeededBits(7))
    assert again.value.rows() == rehearsal.value.rows()
    with pytest.raises(InputError, match="give bits or seed, not both"):
        rank(VOTES, 2, protect="outcome", bits=SeededBits(7), seed=7)


@pytest.mark.parametrize("verb", [privatize, elect])
def test_every_verb_takes_a_seed(verb):
    options = {"rule": "borda"} if verb is elect else {}
    assert verb(BALLOTS, 2, seed=3, **options).provenance.seed == 3


def test_a_plan_shows_its_sentence_and_options():
    made = plan("ranking", items=6, epsilon=4)
    assert repr(made).startswith(made.explain())
    assert made.recommended.name in repr(made)
    assert html.escape(made.explain()) in made._repr_html_()


def test_rankings():
    assert BALLOTS.to_frame("arrow").num_rows == 120
    assert list(BALLOTS.to_frame().columns) == ["rank_1", "rank_2", "rank_3"]
    shown = Rankings.from_orders([["<i>", "b"]])._repr_html_()
    assert "&lt;i&gt; &gt; b" in shown
    assert "<i>" not in shown
