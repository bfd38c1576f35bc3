"""The sampler of the page: the same rankings as Python's for the same words, the exact law, and mutants that fail."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from rankdp.audit import audit_exact
from rankdp.mechanisms import mechanism
from rankdp.mechanisms.rankings.reinsertion import Reinsertion
from rankdp.mechanisms.rankings.tier_tables import Acceptance
from rankdp.mechanisms.rankings.tiers import Tiers
from rankdp.privacy.bits import Bits
from rankdp.privacy.cut_tables import LAST, CutTable, Weights, integer_weights
from rankdp.theory.permutations import neighbour_places
from rankdp_web import browser_tables as page

NODE = shutil.which("node")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NODE is None, reason="node is not installed")]
STATIC = Path(page.__file__).with_name("static")
LONG = pytest.mark.long


def draw(tables, epsilon, count, *, seed=None, pool=(), tally=False, module=STATIC / "sampler.js", protect="position"):
    """What the sampler draws for the ranking 0, 1, …: rankings, or how often each came."""
    asked = {"module": module.as_uri(), "tables": tables, "ranking": list(range(tables["items"])), "count": count}
    asked |= {"epsilon": str(epsilon), "protect": protect}
    asked |= {"pool": [str(word) for word in pool], "tally": tally} | ({} if seed is None else {"seed": str(seed)})
    command = [NODE, str(Path(__file__).with_name("draw.mjs"))]
    run = subprocess.run(command, input=json.dumps(asked), capture_output=True, check=True, text=True)
    return json.loads(run.stdout)


class Stream(Bits):
    """The words of ``streamed`` in draw.mjs."""

    def __init__(self, seed, pool):
        self.state, self.pool = seed % 2**64, np.array(pool, dtype=np.uint64)

    def words(self, count):
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        word = np.uint64(self.state) + steps
        self.state = int(word[-1]) if count else self.state
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        if len(self.pool):
            special = word % np.uint64(8) == 0
            word[special] = self.pool[(word[special] >> np.uint64(8)) % np.uint64(len(self.pool))]
        return word

    def spawn(self):
        raise NotImplementedError


def special_words(tables):
    """Every cut point, the words beside it, and both ends: what an off-by-one would get wrong."""
    shapes = tables.get("shapes", [])
    laws = [tables.get(name) for name in ("outputs", "taken", "offsets")]
    laws += [law for shape in shapes for law in shape["left"]]
    cuts = [int(cut) for law in laws if law for cut in law["cuts"]]
    cuts += [int(cut) for shape in shapes for cut in shape["accept"]["sure"]]
    near = {word for cut in cuts for word in range(cut - 1, cut + 3) if 0 <= word <= LAST}
    return sorted(near | {0, LAST})


def words_of_a_ball(made):
    """The same for the cut points that Python has and the page has not."""
    cuts = {int(cut) for table in [made._mixture.cuts, *made._cuts.values()] for cut in np.unique(table)[:60]}
    return sorted({word for cut in cuts for word in range(cut - 1, cut + 3) if 0 <= word <= LAST} | {0, LAST})


def words_of_lists(made):
    cuts = {int(cut) for table in (made._mixture, *made._tables) for cut in table.cuts}
    return sorted({word for cut in cuts for word in range(cut - 1, cut + 3) if 0 <= word <= LAST} | {0, LAST})


def same(name, items, epsilon, count, module=STATIC / "sampler.js"):
    made = mechanism(name, items, epsilon)
    tables = page.browser_tables(made)
    row = np.arange(items, dtype=np.int32)[None]
    balls = {"ball": words_of_a_ball, "top": words_of_lists}
    for pool in ((), balls[tables["sampler"]](made) if tables["sampler"] in balls else special_words(tables)):
        drawn = draw(tables, made.epsilon, count // 2, seed=7, pool=pool, module=module)
        expected = [made.sample_with_offsets(row, Stream(7 + (i << 32), pool)) for i in range(count // 2)]
        if drawn != [[*orders[0, : made.lists].tolist(), int(offsets[0])] for orders, offsets in expected]:
            return False
    return True


CASES = [
    *[("optimal", items, "1/2") for items in (3, 5)],
    *[("reinsertion", items, epsilon) for items, epsilon in ((2, 1), (4, 2), (5, "0.1"), (6, 1), (17, 2), (100, 3))],
    *[("tiers", items, epsilon) for items, epsilon in ((6, 1), (12, 2), (100, 2))],
    ("tiers-3-2-2-1", 8, 1),
    ("tiers-10-90", 100, 1),
    *[("offset-tiers", items, epsilon) for items, epsilon in ((3, 1), (12, 2), (40, 2))],
    *[("kendall-ball", items, epsilon) for items, epsilon in ((2, 1), (5, "7/3"), (17, 4), (60, 2))],
    *[(f"top-ball-{length}", items, epsilon) for length, items, epsilon in ((2, 3, "7/3"), (5, 30, 4), (10, 100, 8))],
]
FEW = [
    ("optimal", 5, "1/2"),
    ("reinsertion", 4, 2),
    ("reinsertion", 17, 2),
    ("tiers", 12, 2),
    ("tiers-3-2-2-1", 8, 1),
    ("offset-tiers", 12, 2),
    ("kendall-ball", 4, "7/3"),
    ("kendall-ball-9", 8, 2),
    ("kendall-ball", 60, 2),
    ("top-ball-1", 4, 2),
    ("top-ball-5-7", 30, 4),
]


@pytest.mark.parametrize(("name", "items", "epsilon"), FEW)
def test_the_same_words_give_the_same_rankings(name, items, epsilon):
    assert same(name, items, epsilon, 120)


@LONG
@pytest.mark.parametrize(("name", "items", "epsilon"), CASES)
def test_a_hundred_thousand_times_the_same(name, items, epsilon):
    assert same(name, items, epsilon, 100_000)


LAWS = [
    ("optimal", 5, 1),
    ("reinsertion", 5, 1),
    ("reinsertion", 6, "3/2"),
    ("tiers-2-1-3", 6, 1),
    ("offset-tiers-3", 6, 1),
    ("kendall-ball-4", 5, 2),
]


def fits(name, items, epsilon, draws, seed=None):
    """The p-value of a chi-squared test of the page's own draws against the exact law."""
    made = mechanism(name, items, epsilon)
    law = np.array([float(low + high) for low, high in made.exact_law(made.bits_for(128))])
    counts = draw(page.browser_tables(made), epsilon, draws, tally=True, seed=seed)
    seen = [counts.get(",".join(map(str, order)), 0) for order in made._permutations.tolist()]
    return chisquare(seen, draws * law / law.sum()).pvalue


@pytest.mark.parametrize(("name", "items", "epsilon"), LAWS)
def test_draws_follow_the_exact_law(name, items, epsilon):
    assert fits(name, items, epsilon, 10_000, seed=1) > 1e-6


@LONG
@pytest.mark.parametrize(("name", "items", "epsilon"), LAWS)
def test_a_million_draws_follow_the_exact_law(name, items, epsilon):
    assert fits(name, items, epsilon, 1_000_000) > 1e-6


# -- the exact audit of what is sent ---------------------------------------------------------------------------------


class SentLaw:
    """A law as the page got it: its weights, after checking that they decide like its cuts."""

    def __init__(self, law):
        if "weights" in law:
            values = [int(weight) for weight in law["weights"]]
        else:
            ratios = [(int(top), int(bottom)) for top, bottom in law.get("ratios", ())]
            if "poisson" in law:
                top, bottom = map(int, law["poisson"])
                ratios = [(top, bottom * (k + 1)) for k in range(law["size"])]
            values = [1]
            for k in range(len(ratios)):
                values = [value * ratios[k][1] for value in values] + [values[-1] * ratios[k][0]]
        total, first = sum(values), law["first"]
        for cell, cut in enumerate(map(int, law["cuts"]), first):
            exact = sum(values[: cell + 1]) << 64
            assert cut * total <= exact <= (cut + 1) * total or cut == LAST, "a cut is not that of the weights"
        self.weights = lambda bits: Weights(values, values)


class Sent:
    """The mechanism that a page carries out, for the exact audit: the law of its tables, the draws of its script."""

    def __init__(self, tables, claimed, module=STATIC / "sampler.js"):
        self.tables, self.items, self.claimed, self.module = tables, tables["items"], claimed, module

    @cached_property
    def law(self):
        tables = self.tables
        if tables["sampler"] == "outputs":
            return SentLaw(tables["outputs"]).weights(0).low
        if tables["sampler"] == "reinsertion":
            made = Reinsertion(self.items, 1)
            made.__dict__["_taken"] = SentLaw(tables["taken"])
            return made
        (shape,) = tables["shapes"]
        made = Tiers(self.items, 1, [size for size in shape["sizes"] if size])
        (part,) = made._tables.tables
        part.left = {law["size"]: SentLaw(law) for law in shape["left"]}
        part.accepting = Acceptance(self.items, Fraction(*map(int, shape["accept"]["mean"])))
        sure, unsure = part.accepting.cuts
        assert shape["accept"]["sure"] == [str(word) for word in sure.tolist()]
        assert (unsure - sure <= 1).all()  # which the page leaves open, and decides exactly
        return made

    def exact_law(self, bits):
        return [(weight, weight) for weight in self.law] if isinstance(self.law, list) else self.law.exact_law(bits)

    def sample(self, orders, bits=None):
        drawn = draw(self.tables, self.claimed, len(orders), seed=2, module=self.module)
        relative = np.array(drawn, dtype=np.int32)[:, :-1]
        return np.take_along_axis(np.asarray(orders), relative, axis=1)


@pytest.mark.parametrize(("name", "items", "epsilon"), LAWS[:4])
def test_the_exact_audit_passes_on_the_tables_that_are_sent(name, items, epsilon):
    tables = json.loads(json.dumps(page.browser_tables(mechanism(name, items, epsilon))))
    assert audit_exact(Sent(tables, epsilon), claimed_epsilon=epsilon, draws=1000).holds
    assert not audit_exact(Sent(tables, epsilon), claimed_epsilon=Fraction(epsilon) * Fraction(9, 10), draws=0).holds


@LONG
def test_the_exact_audit_passes_for_every_offset_that_is_sent():
    tables = json.loads(json.dumps(page.browser_tables(mechanism("offset-tiers-3", 6, 1))))
    assert tables["offsets"]["weights"] == ["1"] * len(tables["shapes"])  # uniform, whatever the ranking
    SentLaw(tables["offsets"])
    epsilons = []
    for shape in tables["shapes"]:
        audit = audit_exact(Sent({**tables, "shapes": [shape], "offsets": None}, 1), claimed_epsilon=1, draws=1000)
        assert audit.holds
        epsilons.append(audit.epsilon_high)
    assert max(epsilons) > 0.99  # at the worst offset all of epsilon is used


# -- the promise that the sampler checks ---------------------------------------------------------------------------


def sent(name, items, epsilon):
    return json.loads(json.dumps(page.browser_tables(mechanism(name, items, epsilon))))


def refused(tables, epsilon, protect="position", module=STATIC / "sampler.js"):
    """Whether the sampler refuses to draw, and for no other reason than a broken promise."""
    try:
        draw(tables, epsilon, 1, protect=protect, module=module)
    except subprocess.CalledProcessError as failed:
        if "BrokenPromise" not in failed.stderr:
            raise
        return True
    return False


PROMISED = [
    ("optimal", 5, 2),
    ("optimal", 4, 200),
    ("reinsertion", 2, 1),
    ("reinsertion", 5, 2),
    ("reinsertion", 100, Fraction(1, 10**90)),
    ("reinsertion", 100, 50),
    ("reinsertion", 20, 5000),
    ("tiers", 12, 2),
    ("tiers-10-90", 100, 1),
    ("offset-tiers", 12, 2),
    ("offset-tiers", 100, 1),
]


@pytest.mark.parametrize(("name", "items", "epsilon"), PROMISED)
def test_the_sampler_draws_for_its_epsilon_and_for_none_below(name, items, epsilon):
    tables = sent(name, items, epsilon)
    assert not refused(tables, epsilon)
    if epsilon <= 4096:  # the largest for which tables are made
        assert refused(tables, epsilon * Fraction(10**6 - 1, 10**6))
    assert refused(tables, Fraction(2, 50) * min(epsilon, 4096))


@pytest.mark.parametrize("name", ["optimal", "reinsertion", "tiers-2-2-1", "offset-tiers-2"])
def test_the_sampler_refuses_tables_of_epsilon_50_on_a_page_of_epsilon_2(name):
    assert refused(sent(name, 5, 50), 2)


def test_the_largest_ratio_is_that_of_an_exact_audit():
    """Outputs with one weight raised until one neighbour breaks the promise, found by Python's enumeration."""
    made = mechanism("reinsertion", 4, 1)
    weights = [int(low) for low, _ in made.exact_law(0)]
    neighbours = neighbour_places(4)
    for cell in (0, 7, 23):
        raised = list(weights)
        raised[cell] = min(weights[other] for other in neighbours[cell] if other != cell) * 3
        worst = max(Fraction(raised[s], raised[other]) for s in range(24) for other in neighbours[s])
        table = CutTable(integer_weights(raised))
        tables = {"sampler": "outputs", "items": 4, "outputs": {**page._cuts(table), "weights": [*map(str, raised)]}}
        near = Fraction(math.log(worst))
        assert refused(tables, near - Fraction(1, 10**9))
        assert not refused(tables, near + Fraction(1, 10**9))


def _swap(tables, other, *path):
    """Tables with the part at ``path`` taken from others."""
    for key in path[:-1]:
        tables, other = tables[key], other[key]
    tables[path[-1]] = other[path[-1]]


FORGERIES = {
    "outputs: the cuts alone": ("reinsertion", 5, ["outputs", "cuts"]),
    "outputs: the exact weights alone": ("reinsertion", 5, ["outputs", "weights"]),
    "taken: the cuts alone": ("reinsertion", 9, ["taken", "cuts"]),
    "taken: the exact ratios alone": ("reinsertion", 9, ["taken", "ratios"]),
    "taken: one ratio": ("reinsertion", 9, ["taken", "ratios", 4]),
    "tiers: one law": ("tiers-3-3-2", 8, ["shapes", 0, "left", 0]),
    "tiers: the cuts of one law": ("tiers-3-3-2", 8, ["shapes", 0, "left", 1, "cuts"]),
    "tiers: the acceptance": ("tiers-3-3-2", 8, ["shapes", 0, "accept", "sure"]),
    "tiers: the mean of the acceptance": ("tiers-3-3-2", 8, ["shapes", 0, "accept", "mean"]),
    "offset tiers: one division": ("offset-tiers-3", 8, ["shapes", 1]),
}


@pytest.mark.parametrize("part", FORGERIES)
def test_tables_with_one_part_of_another_epsilon_are_refused(part):
    name, items, path = FORGERIES[part]
    tables, other = sent(name, items, 2), sent(name, items, 50)
    assert not refused(tables, 2)
    _swap(tables, other, *path)
    assert refused(tables, 2)


def _set(*path):
    def change(tables, value):
        for key in path[:-1]:
            tables = tables[key]
        tables[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("name", "items", "change", "value"),
    [
        ("reinsertion", 5, _set("sampler"), "valueOf"),
        ("reinsertion", 5, _set("items"), 4),
        ("reinsertion", 5, _set("outputs", "weights", 3), "-7"),
        ("reinsertion", 5, _set("outputs", "weights", 3), "0"),
        ("reinsertion", 5, _set("outputs", "first"), 1),
        ("reinsertion", 9, _set("taken", "weights"), ["1"] * 10),
        ("reinsertion", 9, _set("taken", "first"), 2),
        ("tiers-3-3-2", 8, _set("shapes", 0, "sizes"), [3, 3, 3]),
        ("tiers-3-3-2", 8, _set("shapes", 0, "accept", "mode"), 1),
        ("tiers-3-3-2", 8, _set("shapes", 0, "left", 0, "weights"), ["1", "1", "1", "1"]),
        ("tiers-3-3-2", 8, _set("shapes", 0, "left", 0, "cuts", 0), "5"),
        ("offset-tiers-3", 8, _set("offsets", "weights"), ["1"] * 9),
    ],
)
def test_tables_of_another_form_are_refused(name, items, change, value):
    tables = sent(name, items, 2)
    change(tables, value)
    assert refused(tables, 2)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "1e9", "", "2/0", " 2", "2.", ".5", "1.5/2", "1.1.1", "0.0"])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    assert refused(sent("reinsertion", 5, 2), epsilon)


def test_an_epsilon_may_have_decimals():
    tables = sent("reinsertion", 5, "2.05")
    assert not refused(tables, "2.05")
    assert refused(tables, "2.0499")


@pytest.mark.parametrize(
    ("name", "items"),
    [("reinsertion", 5), ("optimal", 4), ("reinsertion", 9), ("tiers-3-3-2", 8), ("offset-tiers-3", 8)],
)
def test_whole_rankings_are_checked_by_the_ratio_of_any_two(name, items):
    made = mechanism(name, items, 2, protect="ranking")
    tables = json.loads(json.dumps(page.browser_tables(made)))
    assert not refused(tables, 2, "ranking")
    assert refused(tables, Fraction(199, 100), "ranking")
    assert refused(sent(name, items, 2), 2, "ranking")  # enough for one position alone


@pytest.mark.parametrize(("items", "radius"), [(1, 0), (61, 3), (5, 10), (5, -1), (5, 1.5), (5, "2"), (5, None)])
def test_balls_that_are_none_are_refused(items, radius):
    assert refused({"sampler": "ball", "items": items, "radius": radius}, 2, "ranking")


def test_an_unknown_promise_is_refused():
    assert refused(sent("kendall-ball", 5, 2), 2, "voter")
    assert not refused(sent("kendall-ball", 5, 2), 2, "position")


@pytest.mark.parametrize(
    ("items", "length", "radius"),
    [
        (1, 1, 0),
        (30, 0, 3),
        (30, 30, 3),
        (1001, 5, 3),
        (100, 61, 3),
        (30, 5, 10),
        (30, 5, -1),
        (30, 5, "7"),
        (30, 1.5, 1),
    ],
)
def test_balls_of_lists_that_are_none_are_refused(items, length, radius):
    assert refused({"sampler": "top", "items": items, "length": length, "radius": radius}, 4, "ranking")
    assert not refused(sent("top-ball-5-7", 30, 4), 4, "ranking")


BALL_MUTANTS = {  # of rankings, or of lists: what is replaced, and whether the check of the promise sees it
    ("rankings", "twice the level"): ("[radius] * (power - one)]", "[radius] * (power * 2n - one)]", True),
    ("rankings", "a radius off by one"): ("=== 1 ? radius : Infinity", "=== 1 ? radius + 1 : Infinity", False),
    ("rankings", "counts of another length"): ("upTo(k) - upTo(k - size)", "upTo(k) - upTo(k - size - 1)", False),
    ("rankings", "an inversion that is not counted"): ("left -= overtaken[size - 1]", "left -= 0", False),
    ("rankings", "an inversion too few"): ("v > left ? 0n", "v >= left ? 0n", False),
    ("lists", "twice the level"): ("within * (power - one)] }", "within * (power * 2n - one)] }", True),
    ("lists", "items that come back"): ("(j % 2 ? -1n : 1n)", "(j % 2 ? 0n : 1n)", True),
    ("lists", "a radius off by one"): ("z - h <= radius ?", "z - h <= radius + 1 ?", False),
    ("lists", "moved items in place"): ("if (source.some((place, i) => place === target[i])) continue;", "", False),
    ("lists", "a shuffle that is not uniform"): (
        "place + below(list.length - place, words)",
        "below(list.length, words)",
        False,
    ),
}


@pytest.mark.parametrize(("what", "fault"), BALL_MUTANTS)
def test_mutants_of_the_balls_are_caught(what, fault, tmp_path):
    text = (STATIC / "sampler.js").read_text("utf-8")
    right, wrong, breaks_the_promise = BALL_MUTANTS[what, fault]
    assert text.count(right) == 1
    mutant = tmp_path / "sampler.mjs"
    mutant.write_text(text.replace(right, wrong), "utf-8")
    tables, epsilon, drawn = {
        "rankings": (sent("kendall-ball", 8, 2), 2, ("kendall-ball-9", 8)),
        "lists": (sent("top-ball-5-7", 30, 4), 4, ("top-ball-3-3", 7)),
    }[what]
    if breaks_the_promise:
        assert refused(tables, epsilon, "ranking", mutant)
    else:
        assert not same(*drawn, 2, 300, mutant)


# -- mutants of the script -------------------------------------------------------------------------------------------

MUTANTS = {
    "a cut that is off by one": ("word <= cut", "word < cut"),
    "an open case that is guessed": ("word === cuts[cell] ?", "word === -1n ?"),
    "the wrong side of an open case": ("(digits + 1n) * total <= sum * scale", "(digits + 1n) * total >= sum * scale"),
    "a modulo bias": (
        "if (product % HALF >= HALF % bound) return Math.floor(product / HALF)",
        "return (product / bound) % bound",
    ),
    "a half that is kept": ("product % HALF >= HALF % bound", "product % HALF >= 0"),
    "Math.random": (
        "crypto.getRandomValues(some)",
        "some.forEach((_, i) => (some[i] = BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n))",
    ),
    "one item too few": ("taken, 1, words)", "{ ...taken, first: taken.first - 1 }, 1, words)"),
    "a place of a tier that is never given": ("uniform(halves, tier.length + 1)", "uniform(halves, tier.length)"),
    "a promise that is not checked": ("need(top * scale <= power * bottom", "need(true || bottom"),
    "proposals that are all accepted": ("if (word > BigInt(sure[kept]) + 1n) return false", "return true"),
}


@pytest.mark.parametrize("fault", MUTANTS)
def test_mutants_of_the_script_are_caught(fault, tmp_path):
    text = (STATIC / "sampler.js").read_text("utf-8")
    right, wrong = MUTANTS[fault]
    assert text.count(right) == 1
    mutant = tmp_path / "sampler.mjs"
    mutant.write_text(text.replace(right, wrong), "utf-8")
    if fault == "a promise that is not checked":
        assert len(draw(sent("reinsertion", 5, 50), 2, 1, module=mutant)) == 1  # which tests above refuse
    elif fault == "Math.random":  # it looks random enough; draw.mjs lets it throw
        tables = page.browser_tables(mechanism("reinsertion", 5, 1))
        with pytest.raises(subprocess.CalledProcessError) as failed:
            draw(tables, 1, 1, module=mutant)
        assert "only WebCrypto is random" in failed.value.stderr
    else:
        cases = [("reinsertion", 6, 1), ("tiers-3-2-2-1", 8, 1)]
        assert not all(same(*case, 120, mutant) for case in cases)
