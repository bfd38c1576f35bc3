"""Plans: predictions against simulation on settings no formula was fitted to, the search, the words, the refusals."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from support import generator

import rankdp
from rankdp.errors import InputError
from rankdp.mechanisms import MECHANISMS, mechanism
from rankdp.planning.comparison_plans import ManyComparisons
from rankdp.planning.plan import SITUATIONS, plan, short
from rankdp.planning.plan_report import plan_report
from rankdp.planning.ranking_plans import OneRanking
from rankdp.planning.score_plans import ScoreVector
from rankdp.planning.situation import EXACT, HALF_WIDTH, MEASURES, PAIRS, TOP, Measure, Request, needed_epsilon
from rankdp.privacy.bits import SeededBits
from rankdp.publish.rank import rank

pytestmark = pytest.mark.slow

PUBLIC = {
    "ranking": {"items": 12},
    "comparisons": {"items": 12, "comparisons": 3000, "protect": "outcome"},
    "scores": {"items": 12, "bounds": (0, 1)},
    "election": {"items": 12, "voters": 3000, "rule": "borda"},
}
situations = pytest.mark.parametrize("situation", list(SITUATIONS))


def meets(measure, value, target):
    return value >= target if measure.share else value <= target


def kept_pairs(true, noisy):
    """The share of pairs in order, row by row; ties count half."""
    rows, columns = np.triu_indices(true.shape[1], 1)
    agree = np.sign(true[:, rows] - true[:, columns]) * np.sign(noisy[:, rows] - noisy[:, columns])
    return (1 + agree.mean(axis=1)) / 2


def kept_top(true, noisy, k):
    """The share of the true top k among the noisy, row by row."""
    best, found = (np.argsort(-values, axis=1)[:, :k] for values in (true, noisy))
    return (best[:, :, None] == found[:, None, :]).any(axis=2).mean(axis=1)


def agrees(predicted, simulated, slack=0.0):
    error = simulated.std(ddof=1) / math.sqrt(len(simulated))
    assert abs(simulated.mean() - predicted) < 5 * error + slack, (predicted, simulated.mean(), error)


# -- predictions against simulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kendall", "reinsertion", "ulam", "laplace", "noisy-ranks"])
@pytest.mark.parametrize(("items", "epsilon"), [(6, 1.5), (9, 4.0)])
def test_one_ranking(name, items, epsilon, request):
    situation, asked = OneRanking(items), Request(2)
    orders = np.tile(np.arange(items), (20_000, 1))
    drawn = mechanism(name, items, epsilon).sample(orders, SeededBits(7))
    true, noisy = -orders.astype(float), -np.argsort(drawn, axis=1).astype(float)
    agrees(situation.accuracy(name, PAIRS, epsilon, asked), kept_pairs(true, noisy))
    agrees(situation.accuracy(name, TOP, epsilon, asked), kept_top(true, noisy, 2))
    agrees(situation.accuracy(name, EXACT, epsilon, asked), np.all(drawn == orders, axis=1).astype(float))


@pytest.mark.parametrize("noise", ["laplace", "staircase", "generalized-normal", "gaussian"])
@pytest.mark.parametrize(("items", "epsilon", "law"), [(7, 3.0, "uniform"), (15, 9.0, "normal"), (5, 14.0, "beta")])
def test_scores_through_the_mechanism_itself(noise, items, epsilon, law, request):
    """The released scores are those of ``privatize_scores``; the prediction knows the law and epsilon alone."""
    situation, asked, runs = ScoreVector(items, (0, 1), law, delta=1e-5), Request(2), 3000
    random = generator(request)
    true = np.clip(situation.law.sample((runs, items), random), 0, 1)
    shape = dict(situation.detail(noise, epsilon))
    options = {"p": shape["p"]} if "p" in shape else {}
    released = rankdp.privatize_scores(
        true.ravel(),
        epsilon,
        bounds=(0, 1),
        noise=noise if noise != "generalized-normal" or options else "laplace",
        delta=1e-5 if noise == "gaussian" else 0,
        bits=SeededBits(3),
        **options,
    )
    noisy = released.value.reshape(true.shape)
    agrees(situation.accuracy(noise, PAIRS, epsilon, asked), kept_pairs(true, noisy), slack=0.002)
    agrees(situation.accuracy(noise, TOP, epsilon, asked), kept_top(true, noisy, 2), slack=0.003)
    exact = np.all(np.argsort(true, axis=1) == np.argsort(noisy, axis=1), axis=1)
    agrees(situation.accuracy(noise, EXACT, epsilon, asked), exact.astype(float), slack=0.01)
    inside = np.abs(noisy - true) <= situation.accuracy(noise, HALF_WIDTH, epsilon, asked)
    assert inside.mean() == pytest.approx(0.95, abs=0.01)
    assert (noisy - true).std() == pytest.approx(shape["standard_deviation"], rel=0.1)


@pytest.mark.parametrize(
    ("protect", "method", "epsilon"),
    [("comparison", "bradley-terry", 1.0), ("comparison", "wins", 0.5)],
)
def test_a_leaderboard_from_simulated_votes(protect, method, epsilon, request):
    """Pairs within 2 points, the top within 4, half-widths within an eighth: plans know of no equals that met."""
    items, votes, runs, random = 15, 3000, 40, generator(request)
    situation, asked = ManyComparisons(items, votes, protect), Request(3)
    names = [f"i{place:02}" for place in range(items)]
    pairs, tops, widths = [], [], []
    for run in range(runs):
        true = random.uniform(-1, 1, items)
        left = random.integers(0, items, votes)
        right = (left + random.integers(1, items, votes)) % items
        won = random.random(votes) < 1 / (1 + np.exp(true[right] - true[left]))
        table = {
            "winner": [names[i] for i in np.where(won, left, right)],
            "loser": [names[i] for i in np.where(won, right, left)],
        }
        import pyarrow as pa

        board = rank(pa.table(table), epsilon, protect=protect, method=method, items=names, bits=SeededBits(run)).value
        released = np.empty((1, items))
        released[0, [names.index(item) for item in board.items]] = board.scores
        pairs.append(kept_pairs(true[None], released)[0])
        tops.append(kept_top(true[None], released, 3)[0])
        widths.append(np.mean(board.high - board.low) / 2)
    agrees(situation.accuracy(method, PAIRS, epsilon, asked), np.array(pairs), slack=0.02)
    agrees(situation.accuracy(method, TOP, epsilon, asked), np.array(tops), slack=0.04)
    if method == "bradley-terry":
        assert np.mean(widths) == pytest.approx(situation.accuracy(method, HALF_WIDTH, epsilon, asked), rel=0.125)


# -- the search -------------------------------------------------------------------------------------------------------


@situations
def test_needed_epsilon_is_where_the_accuracy_is_met(situation):
    described, asked = SITUATIONS[situation](**PUBLIC[situation]), Request(3)
    for option in described.options:
        for measure in described.measures:
            target = 0.9 if measure.share else 0.5
            found = needed_epsilon(described, option, measure, target, asked)
            if math.isinf(found):  # not known, or sampling error alone is too large
                tried = [described.accuracy(option, measure, eps, asked) for eps in (1, 30, 1000, 1e6)]
                assert not any(meets(measure, value, target) for value in tried)
                continue
            assert meets(measure, described.accuracy(option, measure, found, asked), target)
            assert not meets(measure, described.accuracy(option, measure, found * 0.995, asked), target)


@situations
def test_accuracy_never_falls_with_epsilon(situation):
    described, asked = SITUATIONS[situation](**PUBLIC[situation]), Request(3)
    for option in described.options:
        for measure in described.measures:
            values = np.array([described.accuracy(option, measure, eps, asked) for eps in np.geomspace(0.05, 200, 9)])
            if not np.isnan(values).any():
                rising = np.diff(values if measure.share else -values)
                assert np.all(rising >= -2e-3 * np.abs(values[1:])), (option, measure.name)


def test_out_of_reach():
    made = plan("comparisons", items=30, comparisons=200, protect="outcome", exact=0.9)
    assert made.epsilon == 5
    assert all(math.isinf(one.epsilon) for one in made.choices)
    assert "no epsilon up to 1,000,000 gives the exact order" in made.explain()
    assert made.to_dict()["choices"][0]["epsilon"] is None


# -- the answer -------------------------------------------------------------------------------------------------------


def test_exact_recovery_is_told_as_it_is():
    """NOTES, Jeong 5: P_e is about 285/eps for 20 uniform scores with Laplace noise."""
    made = plan("scores", items=20, exact=0.95)
    needs = {one.name: one.epsilon for one in made.choices}
    assert needs["laplace"] == pytest.approx(5700, rel=0.05)
    assert needs["staircase"] < 20 < needs["generalized-normal"] < 60
    assert made.recommended.name == "staircase"
    said = made.explain()
    assert "laplace 5," in said
    assert "almost no protection" in said
    assert "consider publishing only the top" in said


@situations
def test_what_an_epsilon_buys(situation):
    made = plan(situation, epsilon=2, **PUBLIC[situation])
    merits = [one.accuracy["pairs"] for one in made.choices]
    assert merits == sorted(merits, reverse=True)
    assert made.recommended.name == made.choices[0].name
    assert {one.name for one in made.choices} == set(made.situation.options) == set(made.curves)
    assert made.target is None
    assert f"At epsilon 2, {made.recommended.name} on " in made.explain()
    read = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert read["recommended"] == made.recommended.name
    assert len(read["curve"]["epsilon"]) == len(read["curve"][made.recommended.name])


def test_slow_options_have_points_instead_of_a_curve():
    made = plan("ranking", items=5, pairs=0.8)
    known = {name: [value for value in curve if not math.isnan(value)] for name, curve in made.curves.items()}
    optimal = next(one for one in made.choices if one.name == "optimal")
    assert len(known["optimal"]) == len({made.epsilon, optimal.epsilon})
    assert min(known["optimal"]) >= 0.8 - 1e-3
    assert all(len(values) == len(made.epsilons) for name, values in known.items() if name != "optimal")


@situations
def test_all_ways_to_ask(situation):
    described = SITUATIONS[situation](**PUBLIC[situation])
    for measure in described.measures:
        if situation == "comparisons" and measure is EXACT:
            continue  # sampling error alone is too large: see test_out_of_reach
        made = plan(situation, **{measure.name: 0.8 if measure.share else 0.4}, **PUBLIC[situation])
        best = made.recommended
        assert best.epsilon == made.epsilon == min(one.epsilon for one in made.choices)
        assert meets(measure, best.accuracy[measure.name], made.target)
        assert short(made.epsilon) in made.explain()


def test_top_decides_what_is_recommended():
    by_pairs, by_top = plan("ranking", items=100, epsilon=2), plan("ranking", items=100, epsilon=2, top=1)
    assert by_pairs.recommended.name == "tiers"
    assert by_top.recommended.name == "tiers-1-99"


def test_what_is_not_known_of_the_recommended_one_is_left_out():
    made = plan("ranking", items=1000, epsilon=2)
    assert made.recommended.name == "tiers"
    assert math.isnan(made.recommended.accuracy["exact"])
    assert made.explain() == "At epsilon 2, tiers on a ranking of 1000 items gives 72.0% of pairs in order."
    said = plan("ranking", items=1000, pairs=0.999).explain()
    assert said.endswith("At epsilon 5 expect 91.6% of pairs in order with tiers.")


def test_a_public_sample_can_stand_for_the_law():
    sample = np.random.default_rng(1).beta(2, 5, 400)
    from scipy import stats

    near = plan("scores", items=10, epsilon=8, law=sample).recommended.accuracy["pairs"]
    exact = plan("scores", items=10, epsilon=8, law=stats.beta(2, 5)).recommended.accuracy["pairs"]
    assert near == pytest.approx(exact, abs=0.01)


def test_short():
    assert [short(value) for value in (5.0, 5697.3, 0.08451, 1.0)] == ["5", "5,700", "0.0845", "1"]
    assert short(math.inf) == "beyond reach"


def test_measures_in_words():
    assert [PAIRS.show(value) for value in (0.5, 0.9999, 1e-5, 0.0, math.nan)] == [
        "50.0%",
        "above 99.9%",
        "below 0.1%",
        "0%",
        "–",
    ]
    assert HALF_WIDTH.show(0.123456) == "±0.123"
    assert isinstance(MEASURES["pairs"], Measure)


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rank",), "situation must be one of ranking, comparisons, scores, election, got 'rank'"),
        (
            ("ranking", {"items": 5}),
            "give epsilon or pairs or exact or overlap or half_width or right_winner or tally or win_rate, got no",
        ),
        (("ranking", {"items": 5, "pairs": 0.8, "exact": 0.5}), "give only one of pairs and exact"),
        (("ranking", {"epsilon": 1}), "a plan for ranking: missing 1 required positional argument: 'items'"),
        (("ranking", {"items": 5, "epsilon": 1, "votes": 3}), "unexpected keyword argument 'votes'"),
        (("ranking", {"items": 1, "epsilon": 1}), "items must be an integer from 2 to 10,000, got 1"),
        (("ranking", {"items": 5, "half_width": 1}), "can be asked for pairs, exact, overlap, got half_width"),
        (("ranking", {"items": 5, "pairs": 1.5}), "pairs must be a share below 1"),
        (("ranking", {"items": 5, "pairs": math.nan}), "pairs must be a finite number above 0, got nan"),
        (("ranking", {"items": 5, "epsilon": -1}), "epsilon must be a finite number above 0, got -1"),
        (("ranking", {"items": 5, "epsilon": 1e9}), "epsilon must be between 0.001 and 1e\\+06 for a plan"),
        (("ranking", {"items": 5, "epsilon": 1, "top": 5}), "top must be an integer from 1 to 4, got 5"),
        (("scores", {"items": 5, "epsilon": 1, "level": 1}), "level must be a number above 0 and below 1, got 1"),
        (("scores", {"items": 5, "epsilon": 1, "bounds": (1, 0)}), "bounds must be two finite numbers"),
        (("scores", {"items": 5, "epsilon": 1, "delta": 2}), "delta must be a finite number of at least 0 and below 1"),
        (("comparisons", {"items": 5, "comparisons": 0, "protect": "outcome", "epsilon": 1}), "comparisons must be"),
        (("comparisons", {"items": 5, "comparisons": 9, "protect": "voter", "epsilon": 1}), "needs max_per_voter"),
    ],
)
def test_refusals(arguments, sentence):
    situation, *rest = arguments
    with pytest.raises(InputError, match=sentence):
        plan(situation, **(rest[0] if rest else {}))


def test_every_ranking_mechanism_takes_part_where_it_can():
    assert {*OneRanking(5).options, "top-ball"} == set(MECHANISMS)  # lists are asked for by name


LIGHT = """
import sys
from rankdp.planning.plan import plan
from rankdp.aggregation.respondents import compare
for accuracy in ({"epsilon": 1}, {"pairs": 0.9}):  # an epsilon is asked for every measure
    for items in (4, 20, 60):
        plan("ranking", items=items, **accuracy)
    plan("scores", items=6, law="normal", **accuracy)
    plan("comparisons", items=6, comparisons=500, protect="comparison", **accuracy)
for law in ("uniform", "exponential", "beta"):
    plan("scores", items=4, law=law, epsilon=1)
plan("comparisons", items=4, comparisons=500, protect="outcome", epsilon=1)
compare(8, 1, 0.1)
print(*sorted({"numba", "scipy.stats", "pandas", "pyarrow", "matplotlib"} & set(sys.modules)))
"""


def test_plans_do_without_what_takes_long_to_load():
    found = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_a_plan_for_a_ranking_says_what_an_aggregate_needs_and_what_auto_takes():
    made = rankdp.plan("ranking", items=6, epsilon=2)
    assert made.recommended.name == "optimal"
    assert made.respondents["optimal"] > 1000 > 10 > made.respondents["ulam"]
    assert made.respondents["tiers"] is None
    told = plan_report(made)
    assert "By default privatize uses ulam, because averages need the fewest respondents with it." in told.words[0]
    assert told.tables[0].heads[-1] == "respondents for one (win rates)"
    assert {row[0]: row[-1] for row in told.tables[0].rows}["ulam"] == "4.66"
    assert "By default" not in plan_report(rankdp.plan("ranking", items=6, epsilon=4)).words[0]
    assert "respondents" not in plan_report(plan("scores", epsilon=1, **PUBLIC["scores"])).records[0]


def test_a_plan_for_a_top_list_has_a_tier_for_it():
    made = rankdp.plan("ranking", items=10, epsilon=2, top=3)
    assert made.recommended.name == "tiers-3-7"
    assert made.recommended.accuracy["overlap"] == mechanism("auto", 10, 2, purpose="top", top=3).top_overlap(3)
    assert "tiers-3-7" not in [choice.name for choice in rankdp.plan("ranking", items=10, epsilon=2).choices]
    whole = rankdp.plan("ranking", items=10, epsilon=4, top=3, protect="ranking")
    assert whole.recommended.name == "top-ball-3"
    assert whole.recommended.accuracy["overlap"] == mechanism("top-ball-3", 10, 4).top_overlap(3) > 0.63


def test_both_promises_side_by_side():
    made = plan("ranking", items=8, epsilon=4, protect="ranking")
    assert made.recommended.name == "kendall-ball"
    assert made.situation.protects == "one whole ranking"
    assert made.respondents["kendall-ball"] == pytest.approx(3.6, abs=0.05)
    _, rows, told = plan("ranking", items=8, epsilon=2).situation.promises(2.0)
    assert [row[0] for row in rows] == ["one position at 2", "whole answer at 2", "whole answer at 4"]
    assert [row[4] for row in rows] == ["4.57", "11.6", "3.58"]
    assert "1,202,605" in rows[0][2]  # e^14
    assert "protect the ranking" in told
    assert plan("ranking", items=61, epsilon=2).situation.promises(2.0)[1] == []
    with pytest.raises(InputError, match="protect must be one of position, ranking"):
        plan("ranking", items=8, epsilon=2, protect="voter")
