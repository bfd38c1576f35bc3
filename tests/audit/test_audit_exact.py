"""Exact audits: laws against log-probabilities, intervals that prove, users' own mechanisms, scores and wins."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from support import decimal_exp, half_noise, seeded

import rankdp
from rankdp.audit import audit_exact
from rankdp.audit.enumeration import log_bounds, sampler_laws, worst_ratio
from rankdp.audit.findings import ceil_float, floor_float, show
from rankdp.audit.noise_laws import chi_squared
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.registry import MECHANISMS
from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.mechanisms.votes.noisy_counts import NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.theory.permutations import all_permutations, places

pytestmark = pytest.mark.slow

TABLED = ["kendall", "ulam", "reinsertion", "optimal"]
EPSILONS = [Fraction(1, 3), Fraction(1), Fraction(4)]
every = pytest.mark.parametrize("name", list(MECHANISMS))
epsilons = pytest.mark.parametrize("epsilon", EPSILONS, ids=str)


@pytest.mark.parametrize("name", TABLED)
@pytest.mark.parametrize("items", [3, 5])
@epsilons
def test_the_law_read_from_the_tables_is_the_stated_one(name, items, epsilon):
    mechanism = rankdp.mechanism(name, items, epsilon)
    for offset, law in enumerate(sampler_laws(mechanism, items)):
        total = sum(low for low, _ in law)
        stated = np.exp(mechanism.log_prob(all_permutations(items), np.arange(items), offset))
        np.testing.assert_allclose([float(low / total) for low, _ in law], stated, rtol=1e-9)
        assert all(low <= high <= low * (1 + Fraction(1, 10**100)) for low, high in law)


@pytest.mark.parametrize("name", ["reinsertion", "ulam"])
def test_rankings_of_six_are_assembled_from_several_tables(name):
    mechanism = rankdp.mechanism(name, 6, 2)
    (law,) = sampler_laws(mechanism, 6)
    total = sum(low for low, _ in law)
    stated = np.exp(mechanism.log_prob(all_permutations(6), np.arange(6)))
    np.testing.assert_allclose([float(low / total) for low, _ in law], stated, rtol=1e-9)


@every
def test_every_mechanism_holds(name, request):
    epsilon = 1
    audit = audit_exact(rankdp.mechanism(name, 4, epsilon), bits=seeded(request))
    assert audit.holds
    assert audit.claimed == epsilon
    assert audit.sampler_p_value > 1e-4
    if name in TABLED:
        assert isinstance(audit.epsilon_low, Fraction)
        assert 0 <= audit.epsilon_high - audit.epsilon_low < Fraction(1, 10**120)
        assert audit.tolerance == 0
    if name in ("kendall", "ulam"):
        assert audit.epsilon_low <= epsilon <= audit.epsilon_high
    assert audit.explain().startswith("Holds")


@pytest.mark.parametrize(("name", "items"), [*itertools.product(MECHANISMS, [5]), ("ulam", 6), ("reinsertion", 6)])
def test_half_the_noise_is_caught(name, items):
    audit = audit_exact(half_noise(rankdp.mechanism(name, items, 1)), draws=0)
    assert not audit.holds
    assert audit.epsilon_low > 1
    assert audit.explain().startswith("VIOLATION")
    assert audit.sampler_p_value is None


@pytest.mark.parametrize("name", TABLED)
def test_a_millionth_too_much_is_caught(name):
    mechanism = rankdp.mechanism(name, 3, 1)
    realised = audit_exact(mechanism, draws=0).epsilon_low
    assert not audit_exact(mechanism, draws=0, claimed_epsilon=realised * (1 - Fraction(1, 10**6))).holds


def test_the_worst_case_is_one():
    audit = audit_exact(rankdp.mechanism("kendall", 3, 1), draws=0)
    words = audit.worst.replace("inputs ", "").replace(" output ", "").replace(" and ", ",").split(",")
    first, second, output = ([int(item) - 1 for item in part.split()] for part in words)
    mechanism = rankdp.mechanism("kendall", 3, 1)
    ratio = mechanism.log_prob(output, first) - mechanism.log_prob(output, second)
    assert ratio[0] == pytest.approx(1)


def test_huge_epsilons_up_to_the_limit():
    assert audit_exact(rankdp.mechanism("kendall", 4, 500), draws=0).epsilon_low == pytest.approx(500)
    with pytest.raises(Unsupported, match="up to 65536 bits"):
        audit_exact(rankdp.mechanism("kendall", 4, 10**6))


# -- somebody else's mechanism -----------------------------------------------------------------------------------


class Response:
    """Randomised response over all rankings, by log-probabilities; a favourite input is treated otherwise."""

    items = 3

    def __init__(self, epsilon, leaks=None, lies=False):
        self.epsilon, self.leaks, self.lies = epsilon, leaks, lies

    def _law(self, order):
        weights = np.ones(6)
        weights[places(np.asarray([order]))[0]] = math.exp(self.epsilon)
        if self.leaks is not None and tuple(order) == self.leaks:
            weights = weights**2
        return weights / weights.sum()

    def log_prob(self, outputs, order):
        return np.log(self._law(order)[places(np.asarray(outputs))])

    def sample(self, orders, bits=None):
        law = self._law(orders[0])
        drawn = np.random.default_rng(1).choice(6, len(orders), p=law**2 / (law**2).sum() if self.lies else law)
        return all_permutations(3)[drawn]


def test_a_users_mechanism_by_its_log_probabilities():
    audit = audit_exact(Response(1), claimed_epsilon=1)
    assert audit.holds
    assert audit.tolerance == 1e-9
    assert float(audit.epsilon_low) == pytest.approx(1)
    assert audit.cases == 6 * 24
    assert "to within 1e-09" in audit.explain()
    assert not audit_exact(Response(1), claimed_epsilon="0.999").holds


def test_every_input_is_tried_where_the_law_may_depend_on_it():
    audit = audit_exact(Response(1, leaks=(2, 0, 1)), claimed_epsilon=1)
    assert not audit.law_holds
    assert "3 1 2" in audit.worst


def test_a_sampler_that_draws_something_else_is_caught():
    audit = audit_exact(Response(1, lies=True), claimed_epsilon=1)
    assert audit.law_holds
    assert not audit.sampler_agrees
    assert not audit.holds
    assert "does not draw the law" in audit.explain()


class Offering(Response):
    def exact_law(self, bits):
        return self.law


@pytest.mark.parametrize(("law", "low", "high"), [((3, 1, 1, 1, 1, 1), 3, 3), ((6, 2, 2, 2, 2, 2), 3, 3)])
def test_exact_law(law, low, high):
    mechanism = Offering(1)
    mechanism.law = [(value, value) for value in law]
    audit = audit_exact(mechanism, claimed_epsilon=1, draws=0)
    assert decimal_exp(audit.epsilon_low) == pytest.approx(decimal_exp(Fraction(0)) * low)
    assert not audit.holds
    assert audit.basis == "the exact law of its sampler"


def test_an_impossible_output_is_an_infinite_epsilon():
    mechanism = Offering(1)
    mechanism.law = [(1, 1), (0, 0), (1, 1), (1, 1), (1, 1), (1, 1)]
    audit = audit_exact(mechanism, claimed_epsilon=1, draws=0)
    assert audit.epsilon_low == math.inf
    assert not audit.holds
    assert "infinite" in audit.explain()
    assert json.loads(json.dumps(audit.to_dict()))["epsilon_low"] is None


def test_what_may_be_impossible_is_not_proved():
    mechanism = Offering(1)
    mechanism.law = [(1, 1), (0, 1), (1, 1), (1, 1), (1, 1), (1, 1)]
    audit = audit_exact(mechanism, claimed_epsilon=1, draws=0)
    assert (audit.epsilon_low, audit.epsilon_high) == (0, math.inf)


@pytest.mark.parametrize("law", [[(1, 1)] * 5, [(2, 1)] * 6, [(-1, 1)] * 6])
def test_exact_law_is_checked(law):
    mechanism = Offering(1)
    mechanism.law = law
    with pytest.raises(InputError, match="exact_law must give a pair 0 <= low <= high"):
        audit_exact(mechanism, claimed_epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mechanism": Response(1)}, "claimed_epsilon must be given"),
        ({"mechanism": Response(1), "claimed_epsilon": 0}, "claimed_epsilon must be a finite number above 0, got 0"),
        ({"mechanism": object(), "claimed_epsilon": 1}, "items must be an integer from 2 to 6, got nothing"),
        ({"mechanism": object(), "claimed_epsilon": 1, "items": 3}, "mechanism must have exact_law, log_prob"),
        ({"mechanism": rankdp.mechanism("kendall", 7, 1)}, "items must be an integer from 2 to 6, got 7"),
        ({"mechanism": rankdp.mechanism("kendall", 3, 1), "draws": -1}, "draws must be an integer of at least 0"),
        ({"mechanism": score_mechanism("laplace", bounds=(0, 1), epsilon=1)}, "steps must be at most 64"),
        ({"mechanism": NoisyWins(Protection("outcome"), 1), "items": 9}, "items must be an integer from 2 to 4, got 9"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(InputError, match=words):
        audit_exact(**arguments)


def test_nothing_exact_is_known_of_these():
    with pytest.raises(Unsupported, match="Gaussian noise on counts"):
        audit_exact(NoisyWins(Protection("outcome"), 1, "1e-6"))
    with pytest.raises(Unsupported, match="drawn in floating point"):
        audit_exact(score_mechanism("ball", bounds=(0, 1), delta=0.1, p=2, count=3, steps=16))


# -- scores and wins ---------------------------------------------------------------------------------------------

PURE = [{"noise": "laplace"}, {"noise": "staircase"}, {"noise": "generalized-normal", "p": "0.5"}]
APPROXIMATE = [
    {"noise": "gaussian", "delta": "1e-5"},
    {"noise": "generalized-normal", "p": 3, "delta": "1e-5"},
]


@pytest.mark.parametrize("options", PURE, ids=lambda options: options["noise"])
def test_scores_are_exactly_epsilon(options, request):
    mechanism = score_mechanism(bounds=(0, 1), steps=16, epsilon=1, **options)
    audit = audit_exact(mechanism, bits=seeded(request))
    assert audit.holds
    assert audit.epsilon_low <= 1 <= audit.epsilon_high + Fraction(1, 10**60)
    looser = score_mechanism(bounds=(0, 1), steps=16, epsilon="1.01", **options)
    assert not audit_exact(looser, claimed_epsilon=1, draws=0).holds


@pytest.mark.parametrize("options", APPROXIMATE, ids=lambda options: options["noise"])
def test_scores_with_a_delta(options, request):
    mechanism = score_mechanism(bounds=(0, 1), steps=16, epsilon=1, **options)
    audit = audit_exact(mechanism, bits=seeded(request))
    assert audit.holds
    assert audit.delta_high - audit.delta_low < Fraction(1, 10**40)
    assert 0.9e-5 < audit.delta_low <= audit.delta_high <= Fraction(1, 10**5)
    assert "realised delta" in audit.explain()
    looser = score_mechanism(bounds=(0, 1), steps=16, epsilon="1.05", **options)
    assert not audit_exact(looser, claimed_epsilon=1, draws=0).holds


def test_a_cube_is_exactly_its_share(request):
    mechanism = score_mechanism("ball", bounds=(0, 1), delta=0.01, p="inf", count=3, steps=16)
    audit = audit_exact(mechanism, bits=seeded(request))
    assert audit.holds
    assert audit.delta_low == audit.delta_high == Fraction(16, 2 * mechanism.reach + 1)


UNITS = [Protection("comparison"), Protection("outcome"), Protection("voter", 1), Protection("voter", 3)]


@pytest.mark.parametrize("protection", UNITS, ids=lambda protection: f"{protection.unit}-{protection.moved}")
def test_noisy_wins_are_exactly_epsilon(protection, request):
    audit = audit_exact(NoisyWins(protection, "0.7"), bits=seeded(request))
    assert audit.epsilon_low == audit.epsilon_high == Fraction(7, 10)
    assert audit.holds


def test_noise_that_is_not_what_the_scale_says_is_caught(request):
    class Quiet(NoisyWins):
        def noise(self, count, bits):
            return super().noise(count, bits) // 2

    audit = audit_exact(Quiet(Protection("outcome"), 1), bits=seeded(request))
    assert audit.law_holds
    assert not audit.holds


# -- the tools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["3/2", "1", "10", "1/1000", "123456789/1000"])
def test_log_bounds(value):
    low, high = log_bounds(Fraction(value))
    assert low <= high
    assert high - low < Fraction(1, 10**160)
    assert Fraction(decimal_exp(low, 150)) * (1 - Fraction(1, 10**140)) <= Fraction(value)
    assert Fraction(value) <= Fraction(decimal_exp(high, 150)) * (1 + Fraction(1, 10**140))


def test_worst_ratio_by_hand():
    law = [(Fraction(4), Fraction(5)), (Fraction(2), Fraction(3))]
    low, high, where = worst_ratio(law, np.array([[1], [0]]))
    assert float(low) == pytest.approx(math.log(4 / 3))
    assert float(high) == pytest.approx(math.log(5 / 2))
    assert where == (0, 1)


def test_chi_squared_pools_rare_cells():
    law = np.array([0.5, 0.4999, 0.0001])
    assert chi_squared(np.array([500, 499, 1]), law) > 0.5
    assert chi_squared(np.array([600, 400, 0]), law) < 1e-6
    assert chi_squared(np.array([600, 400, 1]), np.array([0.6, 0.4, 0.0])) == 0
    assert chi_squared(np.array([3, 1]), np.array([0.5, 0.5])) == 1  # too few to say


def test_floats_are_rounded_outwards():
    third = Fraction(1, 3)
    assert Fraction(floor_float(third)) <= third <= Fraction(ceil_float(third))
    assert floor_float(math.inf) == ceil_float(math.inf) == math.inf
    assert floor_float(Fraction(1, 2)) == ceil_float(Fraction(1, 2)) == 0.5
    assert [show(value) for value in (Fraction(1, 3), math.inf)] == ["0.3333", "infinite"]


def test_to_dict_is_json():
    audit = audit_exact(rankdp.mechanism("kendall", 3, 1), draws=0)
    data = json.loads(json.dumps(audit.to_dict()))
    assert data["holds"]
    assert data["epsilon_low"] <= 1 <= data["epsilon_high"]
    assert 0 <= audit.epsilon_low - Fraction(data["epsilon_low_exact"]) < Fraction(1, 10**29)
    assert 0 <= Fraction(data["epsilon_high_exact"]) - audit.epsilon_high < Fraction(1, 10**29)
