"""What every mechanism must keep, run on all of them: exact enumeration first, then draws, then mutants.

Where a mechanism draws from integer tables the audit reads those tables. Whatever is proved here for neighbours of
the identity holds for all rankings, because the law depends on the relative permutation only (tested as well).
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from support import (
    assert_law,
    decimal_exp,
    exact_audit,
    generator,
    half_noise,
    increasing_counts,
    inversions,
    keeps,
    longest_increasing,
    registered,
    sampled_weights,
    seeded,
    skeleton,
)

import rankdp
from rankdp.errors import InputError
from rankdp.mechanisms import MECHANISMS, RankingMechanism
from rankdp.mechanisms.rankings import contract as base_module
from rankdp.privacy.bits import SecureBits, SeededBits
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.publish.privatize_job import PrivatizeJob
from rankdp.theory.permutations import all_permutations, moves, neighbour_places, places

SKELETON = skeleton()  # what a new mechanism begins as keeps the whole contract
KINDS = {**MECHANISMS, SKELETON.name: SKELETON}
NAMES = [*KINDS, "auto"]
SIZES = [3, 5]
EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(4)]

every = pytest.mark.parametrize("name", NAMES)
own = pytest.mark.parametrize("name", list(KINDS))
sizes = pytest.mark.parametrize("items", SIZES)
epsilons = pytest.mark.parametrize("epsilon", EPSILONS, ids=str)


@pytest.fixture(scope="module", autouse=True)
def with_the_skeleton():
    with registered(SKELETON):
        yield


@cache
def law(name, items, epsilon):
    """The mechanism and P(s) of all relative permutations in lexicographic order."""
    mechanism = rankdp.mechanism(name, items, epsilon)
    return mechanism, mechanism.log_prob(all_permutations(items), np.arange(items))


# -- what it promises --------------------------------------------------------------------------------------------


@every
@sizes
@epsilons
def test_guarantee(name, items, epsilon):
    mechanism, _ = law(name, items, epsilon)
    assert isinstance(mechanism, RankingMechanism)
    guarantee = mechanism.guarantee
    assert (guarantee.protects, guarantee.epsilon, guarantee.delta) == (ITEM_POSITION, epsilon, 0)
    assert guarantee.local
    assert guarantee.whole_ranking_epsilon == mechanism.local_epsilon()
    assert mechanism.parameters["items"] == items
    assert Fraction(mechanism.parameters["epsilon"]) == epsilon


@every
@sizes
@epsilons
def test_log_prob_sums_to_one(name, items, epsilon):
    _, logs = law(name, items, epsilon)
    assert math.fsum(np.exp(logs)) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
@own
@pytest.mark.parametrize(("items", "epsilon"), [(2, "1e-9"), (6, "2"), (6, "700"), (40, "1")])
def test_no_change_is_as_likely_as_log_prob_says(name, items, epsilon):
    items = min(items, KINDS[name].most_items or items)
    mechanism = rankdp.mechanism(name, items, Fraction(epsilon))
    identity = np.arange(items)
    assert mechanism.log_prob_of_no_change() == pytest.approx(mechanism.log_prob(identity, identity)[0], rel=1e-9)


@sizes
def test_a_ranking_has_m_minus_one_squared_neighbour_places(items):
    found = moves(items)
    assert len(found) == (items - 1) ** 2
    taken_out = set()
    for item, place in itertools.product(range(items), repeat=2):
        rest = [other for other in range(items) if other != item]
        taken_out.add((*rest[:place], item, *rest[place:]))
    assert {tuple(move) for move in found.tolist()} == taken_out - {tuple(range(items))}
    inverses = {tuple(np.argsort(move).tolist()) for move in found}  # being neighbours is mutual
    assert inverses == {tuple(move) for move in found.tolist()}


@pytest.mark.slow
@every
@sizes
@epsilons
def test_worst_log_ratio_over_neighbours_exactly(name, items, epsilon):
    """From the integers that the sampler reads, rounded outwards."""
    exact_audit(law(name, items, epsilon)[0])


@every
@sizes
@epsilons
def test_worst_log_ratio_over_neighbours_of_the_stated_log_probabilities(name, items, epsilon):
    """The same in floating point, over every ordered pair of neighbouring rankings and every output."""
    mechanism, logs = law(name, items, epsilon)
    worst = (logs[:, None] - logs[neighbour_places(items)]).max()
    assert worst <= epsilon + 1e-11
    if mechanism.name in ("kendall", "ulam"):
        assert worst == pytest.approx(float(epsilon), abs=1e-11)


@sizes
def test_kendall_is_exactly_eps(items):
    """log P(s) - log P(c s) = (inv(c s) - inv(s)) eps/(m-1): the integer is at most m-1, and m-1 is attained."""
    table = neighbour_places(items)
    counts = np.array([inversions(s) for s in all_permutations(items).tolist()])
    assert (counts[table] - counts[:, None]).max() == items - 1


@sizes
def test_ulam_is_exactly_eps(items):
    """log P(s) - log P(c s) = (L(s) - L(c s)) eps, and a move changes L by at most, and sometimes, 1."""
    table = neighbour_places(items)
    lengths = np.array([longest_increasing(s) for s in all_permutations(items).tolist()])
    assert (lengths[:, None] - lengths[table]).max() == 1


@sizes
@epsilons
def test_reinsertion_table_holds_the_polynomials_of_its_weight(items, epsilon):
    mechanism = rankdp.mechanism("reinsertion", items, epsilon)
    exact = [
        sum(count * mechanism.weight**j for j, count in enumerate(increasing_counts(s)))
        for s in all_permutations(items).tolist()
    ]
    enclosed = sampled_weights(mechanism)
    scale = Fraction(enclosed[0][0]) / exact[0]  # an arbitrary common unit
    assert all(low == high == value * scale for value, (low, high) in zip(exact, enclosed, strict=True))


@sizes
@epsilons
def test_optimal_weights_are_within_eps_as_integers(items, epsilon):
    """N(s) <= e^eps N(c s) with a lower bound of e^eps: no rounding can hide a violation."""
    mechanism = rankdp.mechanism("optimal", items, epsilon)
    weights = mechanism.weights
    below = Fraction(decimal_exp(epsilon, 250)) * (1 - Fraction(1, 10**240))
    assert all(isinstance(weight, int) and weight > 0 for weight in weights)
    for s, others in enumerate(neighbour_places(items).tolist()):
        assert weights[s] <= below * min(weights[other] for other in others)


@every
@sizes
@epsilons
def test_local_epsilon_is_the_worst_over_all_pairs(name, items, epsilon):
    mechanism, logs = law(name, items, epsilon)
    worst = float(logs.max() - logs.min())
    stated = mechanism.local_epsilon()
    assert worst <= float(stated) * (1 + 1e-12) + 1e-12
    assert float(stated) == pytest.approx(worst, rel=1e-6)
    if mechanism.name == "kendall":
        assert stated == epsilon * items / 2
    if mechanism.name == "ulam":
        assert stated == epsilon * (items - 1)


@pytest.mark.slow
@own
@pytest.mark.parametrize("epsilon", ["1e-9", "1e-5", "0.1", "30"])
@sizes
def test_local_epsilon_is_never_understated(name, items, epsilon):
    """Against the enclosed weights, also where the two probabilities agree to many digits."""
    mechanism = rankdp.mechanism(name, items, epsilon)
    stated = Fraction(mechanism.local_epsilon())
    weights = sampled_weights(mechanism)
    if weights is None:
        logs = mechanism.log_prob(all_permutations(items), np.arange(items))
        assert float(stated) >= (logs.max() - logs.min()) * (1 - 1e-12)
        return
    best, worst = max(low for low, _ in weights), min(high for _, high in weights)
    slack = Fraction(1, 10**100) if isinstance(mechanism.local_epsilon(), Fraction) else 0  # exact: equality is reached
    assert Fraction(decimal_exp(stated, 160)) * (1 + slack) >= Fraction(best, worst)


# -- the public numbers ------------------------------------------------------------------------------------------


@pytest.mark.slow
@every
@sizes
@epsilons
def test_public_numbers_equal_enumeration(name, items, epsilon):
    mechanism, logs = law(name, items, epsilon)
    probabilities, outputs = np.exp(logs), all_permutations(items)
    matrix = np.zeros((items, items))
    for b in range(items):
        matrix[:, b] = np.bincount(outputs[:, b], weights=probabilities, minlength=items)
    np.testing.assert_allclose(mechanism.position_matrix(), matrix, atol=1e-10)
    for k in range(1, items + 1):
        np.testing.assert_allclose(mechanism.top_block(k), matrix[:k, :k], atol=1e-10)
        assert mechanism.top_overlap(k) == pytest.approx(matrix[:k, :k].sum() / k, abs=1e-10)
    kept = []
    for i, j in itertools.combinations(range(items), 2):
        kept.append(float(probabilities @ keeps(outputs, i, j)))
        assert mechanism.keep_probability(i, j) == pytest.approx(kept[-1], abs=1e-10)
    assert mechanism.expected_concordance() == pytest.approx(np.mean(kept), abs=1e-10)


@own
def test_public_numbers_cannot_be_spoilt(name):
    mechanism = rankdp.mechanism(name, 4, 1)
    before = mechanism.position_matrix()
    mechanism.position_matrix()[:] = 7
    np.testing.assert_array_equal(mechanism.position_matrix(), before)


@own
@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (-1, 2), (0, 4), (0.0, 1), ("0", 1)])
def test_keep_probability_wants_two_positions(name, pair):
    with pytest.raises(InputError, match="positions must be integers with 0 <= i < j < 4, got"):
        rankdp.mechanism(name, 4, 1).keep_probability(*pair)


# -- what it draws -----------------------------------------------------------------------------------------------


@every
@sizes
@epsilons
@pytest.mark.slow
def test_draws_follow_log_prob(name, items, epsilon, request):
    mechanism, logs = law(name, items, epsilon)
    drawn = mechanism.sample(np.tile(np.arange(items), (50_000, 1)), seeded(request))
    assert_law(places(drawn), np.exp(logs))


@pytest.mark.slow
@own
def test_draws_of_six_items_follow_log_prob(name, request):
    """The first size at which reinsertion leaves its table of outputs."""
    mechanism, logs = law(name, 6, Fraction(2))
    drawn = mechanism.sample(np.tile(np.arange(6), (30_000, 1)), seeded(request))
    assert_law(places(drawn), np.exp(logs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "items"),
    [
        (name, items)
        for name, items in itertools.product(NAMES, [2, 5, 17, 40])
        if name == "auto" or items <= (KINDS[name].most_items or items)
    ],
)
def test_every_row_is_a_permutation_of_its_input(name, items, request):
    rng = generator(request)
    orders = np.array([rng.permutation(items) for _ in range(200)]) * 3 + 5  # labels are none of its business
    given = orders.copy()
    out = rankdp.mechanism(name, items, 1).sample(orders, seeded(request))
    assert out.dtype == np.int32
    assert np.array_equal(np.sort(out, axis=1), np.sort(orders, axis=1))
    assert np.array_equal(orders, given)
    assert not np.array_equal(out, orders)


@every
def test_right_invariance(name, request):
    """Renaming items renames the output and changes nothing else: in probability and draw by draw."""
    rng, items = generator(request), 5
    mechanism = rankdp.mechanism(name, items, 1)
    orders = np.array([rng.permutation(items) for _ in range(300)])
    outputs = np.array([rng.permutation(items) for _ in range(300)])
    names = np.array([40, 10, 30, 0, 20])
    relative = np.argsort(orders, axis=1)[np.arange(300)[:, None], outputs]
    stated = mechanism.log_prob(outputs, orders)
    np.testing.assert_allclose(stated, mechanism.log_prob(names[outputs], names[orders]), rtol=1e-13)
    np.testing.assert_allclose(stated, mechanism.log_prob(relative, np.arange(items)), rtol=1e-13)
    seed = seeded(request).seed
    drawn = mechanism.sample(orders, SeededBits(seed))
    assert np.array_equal(names[drawn], mechanism.sample(names[orders], SeededBits(seed)))
    plain = mechanism.sample(np.tile(np.arange(items), (300, 1)), SeededBits(seed))
    assert np.array_equal(drawn, np.take_along_axis(orders, plain, axis=1))


@pytest.mark.parametrize("name", ["ulam", "reinsertion"])
def test_draws_without_a_table_of_outputs_follow_the_same_law(name, request, monkeypatch):
    mechanism, logs = law(name, 4, Fraction(1))
    monkeypatch.setattr(f"rankdp.mechanisms.rankings.{name}.TABLE_UP_TO", 0)
    assert_law(places(mechanism.sample(np.tile(np.arange(4), (60_000, 1)), seeded(request))), np.exp(logs))


@pytest.mark.parametrize("name", ["ulam", "reinsertion", "optimal"])
def test_a_few_rankings_are_drawn_as_many_are(name, monkeypatch, request):
    mechanism = rankdp.mechanism(name, 5, 1)
    orders = np.array([generator(request).permutation(5) for _ in range(700)])
    few = mechanism.sample(orders, SeededBits(1))
    monkeypatch.setattr(base_module, "FEW_CELLS", 0)
    assert np.array_equal(few, mechanism.sample(orders, SeededBits(1)))


@every
def test_workers_do_not_change_a_rehearsal(name, monkeypatch):
    monkeypatch.setattr(base_module, "_CELLS_PER_CHUNK", 1000)
    mechanism = rankdp.mechanism(name, 5, 1)
    orders = np.tile(np.arange(5), (2345, 1))
    results = [mechanism.sample(orders, SeededBits(3), workers=workers) for workers in (1, 2, 7, None)]
    for result in results[1:]:
        assert np.array_equal(results[0], result)
    assert not np.array_equal(results[0], mechanism.sample(orders, SeededBits(4)))
    parts = results[0].reshape(-1, 5, 5)  # and chunks have bits of their own: no block of rows comes back
    assert len(np.unique(parts[: 200 // 5 * 11].reshape(-1, 25), axis=0)) > 400


@every
def test_chunks_are_drawn_from_the_same_law(name, request, monkeypatch):
    monkeypatch.setattr(base_module, "_CELLS_PER_CHUNK", 3 * 50)
    mechanism, logs = law(name, 3, Fraction(1))
    assert_law(places(mechanism.sample(np.tile(np.arange(3), (6000, 1)), seeded(request))), np.exp(logs))


@every
def test_secure_bits_by_default_never_repeat(name):
    mechanism = rankdp.mechanism(name, 5, 1)
    orders = np.tile(np.arange(5), (500, 1))
    drawn = [mechanism.sample(orders), mechanism.sample(orders), mechanism.sample(orders, SecureBits())]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


@every
def test_no_rows(name):
    mechanism = rankdp.mechanism(name, 4, 1)
    assert mechanism.sample(np.empty((0, 4), dtype=int)).shape == (0, 4)


def own_epsilons(name, chosen, rows, request):
    """Releases of 0, 1, 2 for so many voters, whose epsilons are interleaved."""
    poll = rankdp.Rankings.from_orders(np.tile(np.arange(3), (rows, 1)), ["a", "b", "c"])
    epsilons = [chosen[row % len(chosen)] for row in range(rows)]
    return rankdp.privatize(poll, epsilons, mechanism=name, bits=seeded(request)).value.orders


@pytest.mark.slow
@every
def test_own_epsilons_in_one_call(name, request):
    """Rows of three epsilons, interleaved: each group has the law of its own epsilon, and of no other."""
    chosen = [Fraction(1, 2), Fraction(4), Fraction(2)]
    drawn = own_epsilons(name, chosen, 60_000, request)
    for place, epsilon in enumerate(chosen):
        cells = places(drawn[place::3])
        assert_law(cells, np.exp(law(name, 3, epsilon)[1]))
        with pytest.raises(AssertionError):
            assert_law(cells, np.exp(law(name, 3, chosen[place - 1])[1]))
    few = rankdp.Rankings.from_orders(np.tile(np.arange(3), (3, 1)), ["a", "b", "c"])
    promised = rankdp.privatize(few, chosen, mechanism=name).guarantee
    assert promised.personal
    assert promised.epsilon == 4
    assert promised.whole_ranking_epsilon == max(rankdp.mechanism(name, 3, one).local_epsilon() for one in chosen)


@pytest.mark.slow
@own
def test_half_the_noise_for_some_voters_fails_the_audits(name, request, monkeypatch):
    chosen = [Fraction(1, 2), Fraction(2)]
    weak = half_noise(rankdp.mechanism(name, 3, chosen[1]))
    real = PrivatizeJob._mechanism
    monkeypatch.setattr(
        PrivatizeJob,
        "_mechanism",
        lambda job, length, epsilon: weak if epsilon == chosen[1] else real(job, length, epsilon),
    )
    monkeypatch.setattr(PrivatizeJob, "guarantee", lambda job: Guarantee(ITEM_POSITION, chosen[1]))
    monkeypatch.setattr(PrivatizeJob, "with_offsets", lambda job, width: False)
    cells = places(own_epsilons(name, chosen, 40_000, request))
    assert_law(cells[::2], np.exp(law(name, 3, chosen[0])[1]))
    with pytest.raises(AssertionError):
        assert_law(cells[1::2], np.exp(law(name, 3, chosen[1])[1]))
    exact_audit(rankdp.mechanism(name, 3, chosen[0]))
    with pytest.raises(AssertionError):
        exact_audit(weak)


# -- extremes ----------------------------------------------------------------------------------------------------


@own
@pytest.mark.parametrize("epsilon", ["1e-9", "60", "1e50"])
@pytest.mark.parametrize("items", [2, 4])
def test_tiny_and_huge_epsilons(name, items, epsilon, request):
    mechanism = rankdp.mechanism(name, items, epsilon)
    drawn = mechanism.sample(np.tile(np.arange(items), (5000, 1)), seeded(request))
    concordance = mechanism.expected_concordance()
    if Fraction(epsilon) < 1:
        assert concordance == pytest.approx(0.5, abs=1e-5)
        assert_law(places(drawn), np.full(math.factorial(items), 1 / math.factorial(items)))
    else:
        listed = mechanism.lists or items  # what follows a list comes in random order
        assert concordance == pytest.approx(1 - math.comb(items - listed, 2) / (items * (items - 1)), abs=1e-3)
        assert np.mean(np.all(drawn[:, :listed] == np.arange(listed), axis=1)) > 0.99
    assert mechanism.guarantee.explain()
    assert math.isfinite(mechanism.local_epsilon())


@own
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "much", None, "1e-101", "1e101"])
def test_impossible_epsilons_are_refused(name, epsilon):
    with pytest.raises(InputError, match=r"^epsilon must be"):
        rankdp.mechanism(name, 4, epsilon)


# -- audits that can fail ----------------------------------------------------------------------------------------


@pytest.mark.slow
@own
@sizes
@epsilons
def test_half_the_noise_fails_the_exact_audit(name, items, epsilon):
    mutant = half_noise(rankdp.mechanism(name, items, epsilon))
    assert mutant.guarantee.epsilon == epsilon
    with pytest.raises(AssertionError):
        exact_audit(mutant)


@own
def test_half_the_noise_fails_the_law(name, request):
    """The chi-squared test itself tells a sampler from one with half the noise."""
    mechanism, logs = law(name, 4, Fraction(1))
    drawn = half_noise(mechanism).sample(np.tile(np.arange(4), (30_000, 1)), seeded(request))
    with pytest.raises(AssertionError, match="p = "):
        assert_law(places(drawn), np.exp(logs))
