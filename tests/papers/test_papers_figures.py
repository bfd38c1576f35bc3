"""Pictures: what is in the table is in the picture, and one mechanism has one colour."""

from __future__ import annotations

import pytest

from rankdp.errors import InputError
from rankdp.report.plots import COLOURS
from rankdp_papers.pictures import draw, image, line_styles, mathematics
from rankdp_papers.specification import FigurePlan

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

ROWS = [
    {"epsilon": eps, "items": items, "method": method, "measure": measure, "value": eps * items, "error": error}
    for eps in (1.0, 2.0, 3.0)
    for items in (5, 10)
    for method, error in (("kendall", 0.1), ("kendall + debiased", 0.0), ("not private", 0.0))
    for measure in ("loss", "share")
]


def test_one_panel_for_each_value_and_one_line_for_each_method():
    plan = FigurePlan("epsilon", "method", "items", "measure", y_labels={"loss": "the loss"}, names={"5": "five items"})
    axes = draw(plan, ROWS).axes
    assert len(axes) == 4
    assert [one.get_title() for one in axes[:2]] == ["five items", "items = 10"]
    assert [axes[0].get_ylabel(), axes[2].get_ylabel()] == ["the loss", "share"]
    assert [line.get_label() for line in axes[0].lines] == ["kendall", "kendall + debiased", "not private"]
    assert list(axes[1].lines[0].get_ydata()) == [10.0, 20.0, 30.0]


def test_the_band_is_two_standard_errors():
    plan = FigurePlan("epsilon", "method", only={"items": 5, "measure": "loss"})
    (axes,) = draw(plan, ROWS).axes
    (band,) = axes.collections  # exact lines have none
    edges = band.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((5 - 0.2, 15 + 0.2))


def test_logarithmic_axes_keep_the_band_above_zero():
    rows = [{"n": n, "method": "kendall", "value": 1.0 / n, "error": 1.0} for n in (1, 10)]
    (axes,) = draw(FigurePlan("n", "method", log=["x", "y"]), rows).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.collections[0].get_paths()[0].vertices[:, 1].min() > 0


def test_the_diagonal_and_whole_numbers():
    rows = [{"n": n, "method": "kendall", "value": float(n), "error": 0.0} for n in (2, 3, 4)]
    (plain,) = draw(FigurePlan("n", "method"), rows).axes
    (axes,) = draw(FigurePlan("n", "method", diagonal=True), rows).axes
    assert len(axes.lines) == len(plain.lines) + 1
    assert all(tick == round(tick) for tick in axes.get_xticks())


def test_colours_say_the_mechanism_and_dashes_the_variant():
    styles = line_styles(["kendall", "kendall + debiased", "laplace", "laplace + not private", "0.5", "1.0"])
    assert styles["kendall"]["color"] == styles["kendall + debiased"]["color"] == COLOURS["kendall"]
    assert styles["laplace"]["color"] == COLOURS["laplace"]
    assert styles["kendall"]["linestyle"] != styles["kendall + debiased"]["linestyle"]
    assert styles["laplace + not private"]["color"] not in COLOURS.values()
    assert styles["0.5"]["color"] != styles["1.0"]["color"]


def test_the_same_numbers_make_the_same_bytes():
    plan = FigurePlan("epsilon", "method", only={"items": 5, "measure": "loss"})
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        first, second = (image(draw(plan, ROWS), kind) for _ in range(2))
        assert first == second
        assert first.startswith(start)


def test_an_unknown_column_is_refused():
    with pytest.raises(InputError, match=r"\[figure\]: there is no column 'size'"):
        draw(FigurePlan("size", "method"), ROWS)


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("P_e", "$P_e$"),
        ("Laplace, scale 2(m-1)/epsilon (Xu)", r"Laplace, scale $2(m-1)/\varepsilon$ (Xu)"),
        ("relative l2 error", r"relative $\ell_2$ error"),
        (r"already $\varepsilon$, epsilon", r"already $\varepsilon$, epsilon"),
    ],
)
def test_symbols_are_set_as_mathematics(words: str, label: str):
    assert mathematics(words) == label


def test_an_estimator_looks_the_same_in_every_figure():
    alone = line_styles(["bradley-terry + tight", "kendall + debiased"])
    among = line_styles(["copeland", "bradley-terry + paper", "kendall", "bradley-terry + tight", "kendall + debiased"])
    assert all(among[name] == style for name, style in alone.items())


def test_lines_that_coincide_stand_side_by_side_and_numbers_have_their_column_s_name():
    rows = [{"n": n, "epsilon": eps, "value": 1.0, "error": 0.0} for n in (10, 20, 40) for eps in (1, 2)]
    for log in ((), ("x",)):
        (axes,) = draw(FigurePlan("n", "epsilon", dodge=True, log=log), rows).axes
        first, second = (list(line.get_xdata()) for line in axes.lines)
        assert all(a < n < b < 1.1 * n for a, n, b in zip(first, (10, 20, 40), second, strict=True))
        assert [line.get_label() for line in axes.lines] == ["epsilon = 1", "epsilon = 2"]


def test_axes_that_share_a_scale_have_ticks_for_all_of_it():
    rows = [
        {"n": n, "case": case, "method": "kendall", "value": value, "error": 0.0}
        for case, values in (("wide", (1e-9, 1.0)), ("narrow", (0.5, 1.0)))
        for n, value in enumerate(values)
    ]
    figure = draw(FigurePlan("n", "method", "case", log=["y"]), rows)
    figure.canvas.draw()
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert "$10^{-8}$" in labels
    assert "1" in labels


def test_an_estimator_at_several_sizes_keeps_its_colour():
    names = [f"copeland + n = {n}" for n in (128, 256)]
    styles = line_styles(["copeland", *names])
    assert len({styles[name]["color"] for name in styles}) == 1
    assert styles[names[0]]["linestyle"] != styles[names[1]]["linestyle"]
