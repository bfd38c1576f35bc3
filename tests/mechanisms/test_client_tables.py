"""Tables for clients: the rule that they come with, written out in plain Python, and its law, exactly."""

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from support import assert_law, decimal_exp

import rankdp
from rankdp.errors import Unsupported
from rankdp.mechanisms.rankings.client_tables import client_tables
from rankdp.theory.permutations import neighbour_places, places

CASES = [("reinsertion", 4, "1/3"), ("tiers", 5, "2"), ("tiers-1-2-2", 5, "0.01"), ("tiers-2-1", 3, "30")]
cases = pytest.mark.parametrize(("name", "items", "epsilon"), CASES)


def client_draw(tables, ranking, below):
    """The rule of the module, for one ranking; ``below(n)`` is uniform on 0..n-1."""

    def weighted(weights):
        number = below(sum(weights))
        return next(k for k, total in enumerate(itertools.accumulate(weights)) if number < total)

    def shuffled(things):
        return [things.pop(below(len(things))) for _ in range(len(things))]

    which = below(len(tables["shapes"]))
    sizes = tables["shapes"][which]
    while True:
        left = [weighted(tables["left"][size]) for size in sizes]
        if below(tables["whole"]) < tables["accepted"][len(ranking) - sum(left)]:
            break
    out = shuffled(list(ranking))[: sum(left)]
    kept = [item for item in ranking if item not in out]
    answer = []
    for size, free in zip(sizes, left, strict=True):
        tier, kept = kept[: size - free], kept[size - free :]
        tier, out = tier + out[:free], out[free:]
        answer += shuffled(tier)
    return answer, which


def client_law(tables, sizes):
    """The exact weight of every output of one shape, from the whole numbers: all r, all sets that are kept."""
    m = tables["items"]
    drawn = {}
    for left in itertools.product(*(range(size + 1) for size in sizes)):
        d = sum(left)
        weight = math.prod(tables["left"][size][r] for size, r in zip(sizes, left, strict=True))
        share = Fraction(math.prod(map(math.factorial, left)), math.comb(m, d) * math.factorial(d))
        drawn[left] = weight * tables["accepted"][m - d] * share
    tiers = [tier for tier, size in enumerate(sizes) for _ in range(size)]
    law = []
    for output in itertools.permutations(range(m)):
        word = [tiers[output.index(place)] for place in range(m)]
        total = 0
        for inside in itertools.product((False, True), repeat=m):
            letters = list(itertools.compress(word, inside))
            if letters == sorted(letters):
                outside = [letter for letter, kept in zip(word, inside, strict=True) if not kept]
                total += drawn[tuple(outside.count(tier) for tier in range(len(sizes)))]
        law.append(total)
    return law


def worst_ratio(law, items):
    return max(
        Fraction(weight) / law[other]
        for weight, others in zip(law, neighbour_places(items).tolist(), strict=True)
        for other in others
    )


@cases
def test_the_law_of_the_tables_is_private_and_nearly_tight(name, items, epsilon):
    tables, exact = client_tables(rankdp.mechanism(name, items, epsilon)), Fraction(epsilon)
    for sizes in tables["shapes"]:
        worst = worst_ratio(client_law(tables, sizes), items)
        assert worst <= Fraction(decimal_exp(exact, 200))  # with no slack at all
        assert worst >= Fraction(decimal_exp(exact * (1 - Fraction(1, 1 << 60)), 200))


def test_tables_of_twice_the_weight_are_not(monkeypatch):
    monkeypatch.setattr(
        "rankdp.mechanisms.rankings.client_tables.calibrated", lambda *_: 2 * rankdp.mechanism("tiers-2-2", 4, 1).weight
    )
    tables = client_tables(rankdp.mechanism("tiers-2-2", 4, 1))
    assert worst_ratio(client_law(tables, (2, 2)), 4) > Fraction(decimal_exp(Fraction(1), 200))


@cases
def test_a_client_draws_what_the_mechanism_draws(name, items, epsilon, request):
    mechanism, source = rankdp.mechanism(name, items, epsilon), random.Random(request.node.name)
    tables = client_tables(mechanism)
    rows = [client_draw(tables, range(items), source.randrange)[0] for _ in range(4000)]
    outputs = list(itertools.permutations(range(items)))
    law = [math.exp(log) for log in mechanism.log_prob(outputs, [range(items)])]
    assert_law(places(np.array(rows)), law)


def test_weights_have_their_digits_and_survive_json():
    tables = client_tables(rankdp.mechanism("tiers", 60, 4))
    for weights in (*tables["left"].values(), tables["accepted"]):
        assert min(weights).bit_length() >= tables["bits"]
    assert json.loads(json.dumps(tables))["accepted"] == tables["accepted"]
    assert tables["whole"] == max(tables["accepted"])


def test_other_mechanisms_have_no_such_tables():
    for name in ("kendall", "sliding-tiers", "ulam-tiers"):
        with pytest.raises(Unsupported, match=r"clients draw from reinsertion and tiers, not from the .* mechanism"):
            client_tables(rankdp.mechanism(name, 4, 1))
