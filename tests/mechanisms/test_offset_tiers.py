"""Offset tiers: privacy of the offset and the order together, the law of a tier by enumeration, mean ranks undone."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from preflibtools.instances import OrdinalInstance
from scipy import stats
from support import LEVEL, SLACK, assert_law, decimal_exp, seeded

import rankdp
from rankdp.data.files import open_rankings
from rankdp.errors import InputError
from rankdp.mechanisms.rankings.offset_tiers import OffsetTiers
from rankdp.privacy.bits import SeededBits
from rankdp.theory.estimators import rank_estimator
from rankdp.theory.permutations import all_permutations, neighbour_places, places

CASES = [(3, 2, "1"), (4, 1, "0.5"), (4, 2, "1"), (4, 3, "2"), (5, 2, "0.25"), (5, 3, "1")]
cases = pytest.mark.parametrize(("items", "width", "epsilon"), CASES)


def worst(law, items):
    """The largest ratio of the bounds of two neighbours."""
    pairs = zip(law, neighbour_places(items).tolist(), strict=True)
    return max(high / law[other][0] for (_, high), others in pairs for other in others)


@pytest.mark.slow
@cases
def test_every_offset_is_private_and_the_worst_one_uses_all_of_epsilon(items, width, epsilon):
    mechanism = OffsetTiers(items, Fraction(epsilon), [width])
    ceiling = Fraction(decimal_exp(Fraction(epsilon), 160))
    ratios = [worst(law, items) for law in mechanism.exact_laws(512)]
    assert max(ratios) <= ceiling * (1 + SLACK)
    assert max(ratios) >= ceiling * (1 - Fraction(1, 10**25))
    twice = OffsetTiers(items, 2 * Fraction(epsilon), [width])
    assert max(worst(law, items) for law in twice.exact_laws(512)) > ceiling


@cases
def test_divisions_cover_the_ranking_with_cuts_at_every_place(items, width, epsilon):
    mechanism = OffsetTiers(items, epsilon, [width])
    cuts = [set(np.cumsum(sizes)[:-1].tolist()) for sizes in mechanism.divisions]
    assert all(sum(sizes) == items and max(sizes) <= width for sizes in mechanism.divisions)
    assert sorted(cut for part in cuts for cut in part) == list(range(1, items))


def plain_sum(word, weight):
    """The sum of weight^|S| over all sets of letters that never fall."""
    chosen = (part for size in range(len(word) + 1) for part in itertools.combinations(word, size))
    return sum(weight ** len(part) for part in chosen if list(part) == sorted(part))


@cases
def test_law_of_a_tier_equals_enumeration(items, width, epsilon):
    mechanism = OffsetTiers(items, epsilon, [width])
    weight, found = float(mechanism.weight), mechanism.cell_law()
    for offset, sizes in enumerate(mechanism.divisions):
        letters = [tier for tier, size in enumerate(sizes) for _ in range(size)]
        words = sorted(set(itertools.permutations(letters)))
        sums = np.array([plain_sum(word, weight) for word in words])
        share = sums / sums.sum() / mechanism.offsets
        first = mechanism.cells[offset, 0]
        for tier in range(len(sizes)):
            np.testing.assert_allclose(found[:, first + tier], share @ (np.array(words) == tier), atol=1e-12)
    assert mechanism.cells.max() + 1 == found.shape[1]


@pytest.mark.slow
@cases
def test_rows_given_their_offset_follow_their_law(items, width, epsilon, request):
    mechanism = OffsetTiers(items, epsilon, [width])
    given = np.tile(np.arange(items), (30_000, 1))
    drawn, offsets = mechanism.sample_with_offsets(given, seeded(request))
    assert_law(offsets, [1 / mechanism.offsets] * mechanism.offsets) if mechanism.offsets > 1 else None
    for offset in range(mechanism.offsets):
        mine = drawn[offsets == offset]
        law = np.exp(mechanism.at(offset).log_prob(all_permutations(items), np.arange(items)))
        assert_law(places(mine), law)
        stated = mechanism.log_prob(mine, np.arange(items), offset)
        np.testing.assert_allclose(stated, np.log(law[places(mine)]), rtol=1e-12)
    assert np.array_equal(
        mechanism.sample(given, SeededBits(5)), mechanism.sample_with_offsets(given, SeededBits(5))[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "epsilon", "most"), [(40, 1, 1.27), (40, 2, 0.27), (40, 4, 0.036), (12, 2, 0.25), (100, 4, 0.036)]
)
def test_variance_of_unbiased_mean_ranks(items, epsilon, most):
    found = rank_estimator(rankdp.mechanism("offset-tiers", items, epsilon))
    assert found.mean_variance <= most * items**2
    assert found.bias < 1e-4  # of a rank


def test_long_rankings_have_few_offsets_and_hardly_any_bias():
    mechanism = rankdp.mechanism("offset-tiers", 150, 1)
    assert mechanism.offsets <= 64 < mechanism.width
    found = rank_estimator(mechanism)
    assert found.bias < 0.01
    assert found.mean_variance < 1.27 * 150**2


@pytest.mark.slow
@pytest.mark.parametrize(("items", "epsilon"), [(20, 2), (40, 1)])
def test_long_draws_follow_the_public_numbers(items, epsilon, request):
    mechanism, rows = rankdp.mechanism("offset-tiers", items, epsilon), 4000
    out, offsets = mechanism.sample_with_offsets(np.tile(np.arange(items), (rows, 1)), seeded(request))
    standing, law = np.argsort(out, axis=1), mechanism.cell_law()
    for a in (0, items // 3, items - 1):
        assert_law(mechanism.cells[offsets, standing[:, a]], law[a, :-1])
    for i, j in ((0, 1), (2, items - 1)):
        hits = int((standing[:, i] < standing[:, j]).sum())
        assert stats.binomtest(hits, rows, mechanism.keep_probability(i, j)).pvalue > LEVEL
    upper = np.triu_indices(items, 1)
    share = (standing[:, upper[0]] < standing[:, upper[1]]).mean(axis=1)
    assert abs(share.mean() - mechanism.expected_concordance()) < 4.5 * share.std() / math.sqrt(rows)
    inside = (out[:, :3] < 3).mean(axis=1)
    assert abs(inside.mean() - mechanism.top_overlap(3)) < 4.5 * inside.std() / math.sqrt(rows) + 1e-9


@pytest.fixture(scope="module")
def poll():
    orders = np.argsort(np.arange(15) + np.random.default_rng(3).normal(0, 4, (3000, 15)), axis=1)
    names = [f"item {number}" for number in range(15)]
    return rankdp.Rankings.from_orders(orders, names, [f"voter {number}" for number in range(3000)])


def test_mean_ranks_are_undone_without_bias(poll, request):
    release = rankdp.privatize(poll, 2, mechanism="offset-tiers", bits=seeded(request))
    found = rankdp.aggregate(release).mean_ranks
    errors = (found.values - poll.ranks().mean(axis=0)) / found.standard_errors
    assert np.abs(errors).max() < 4.5
    assert found.bias.max() < 1e-3
    # with other offsets than those that were drawn it is all wrong
    offsets = (release.value.offsets + 1) % rankdp.mechanism("offset-tiers", 15, 2).offsets
    moved = release.value.with_orders(release.value.orders.copy(), offsets)
    shifted = rankdp.aggregate(moved, "offset-tiers", 2).mean_ranks
    assert np.abs((shifted.values - poll.ranks().mean(axis=0)) / shifted.standard_errors).max() > 4.5


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_carry_the_offset(poll, ending, tmp_path):
    source, target = tmp_path / "poll.csv", tmp_path / f"out.{ending}"
    poll[:500].write(source)
    release = rankdp.privatize_file(source, target, 2, bits=SeededBits(4))
    assert release.provenance.mechanism == "offset-tiers"  # the best for both
    table = rankdp.Rankings.read(target, items=poll.items, offset_column="offset")
    assert table.offsets.max() < rankdp.mechanism("offset-tiers", 15, 2).offsets
    found = rankdp.aggregate_file(target, items=poll.items).mean_ranks
    same = rankdp.aggregate(table, "offset-tiers", 2).mean_ranks
    np.testing.assert_allclose(found.values, same.values, rtol=1e-12)
    assert rankdp.Rankings.from_frame(table, poll.items, offset_column="offset") == table


def test_a_long_table_carries_the_offset_too(poll, tmp_path):
    table = rankdp.privatize(poll[:50], 2, mechanism="offset-tiers").value
    table.write(tmp_path / "long.csv", layout="long")
    assert rankdp.Rankings.read(tmp_path / "long.csv", poll.items, offset_column="offset") == table


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soc", "soi"])
def test_a_preflib_file_carries_the_offset(kind, poll, tmp_path, request):
    poll[:400].write(tmp_path / "poll.csv")
    path = tmp_path / f"out.{kind}"
    release = rankdp.privatize_file(tmp_path / "poll.csv", path, 2, bits=seeded(request))
    assert "offset-tiers" in release.provenance.mechanism
    table = rankdp.Rankings.read(path, offset_column="offset")
    (chosen,) = rankdp.aggregate_file(path).mechanisms
    assert set(table.offsets.tolist()) == set(range(chosen.offsets))
    np.testing.assert_allclose(
        rankdp.aggregate_file(path).mean_ranks.values,
        rankdp.aggregate(table, chosen.name, 2).mean_ranks.values,
        rtol=1e-12,
    )
    assert rankdp.Rankings.read(path).offsets is None
    theirs = OrdinalInstance(str(path))
    assert (theirs.num_voters, theirs.num_alternatives) == (400, 15)
    assert sum(theirs.multiplicity.values()) == 400


def test_equal_orders_in_a_preflib_file_keep_their_offsets(tmp_path):
    rows = [[0, 1, 2]] * 5 + [[2, 1, 0]]
    table = rankdp.Rankings.from_orders(rows, ["a", "b", "c"], offsets=[3, 0, 3, 1, 0, 7])
    table.write(tmp_path / "few.soc")
    text = (tmp_path / "few.soc").read_text()
    assert "# RANKDP OFFSETS: 0 0 1 3 3,7\n5: 1,2,3\n1: 3,2,1\n" in text
    with open_rankings(tmp_path / "few.soc", offset_column="offset", batch_rows=4) as reader:
        again = rankdp.Rankings.concatenate(list(reader))
    assert again == rankdp.Rankings.from_orders(rows, ["a", "b", "c"], offsets=[0, 0, 1, 3, 3, 7])
    assert OrdinalInstance(str(tmp_path / "few.soc")).multiplicity == {((1,), (2,), (3,)): 5, ((3,), (2,), (1,)): 1}
    for wrong, why in (("0 0 1 3,7", "an offset for each voter of each order"), ("0 0 1 3 x,7", "got 'x'")):
        (tmp_path / "bad.soc").write_text(text.replace("0 0 1 3 3,7", wrong))
        with pytest.raises(InputError, match=why):
            rankdp.Rankings.read(tmp_path / "bad.soc", offset_column="offset")
    (tmp_path / "bad.soc").write_text(text.replace("3 3,7", f"3 3,{2**40}"))
    with pytest.raises(InputError, match="row 6: offset must be a whole number from 0 on"):
        rankdp.Rankings.read(tmp_path / "bad.soc", offset_column="offset")


def test_rankings_without_their_offsets_are_refused(poll):
    table = rankdp.privatize(poll[:50], 2, mechanism="offset-tiers").value
    bare = rankdp.Rankings.from_orders(table.orders, table.items)
    with pytest.raises(InputError, match="mechanism come with public offsets, and these have none"):
        rankdp.aggregate(bare, "offset-tiers", 2)
    strange = table.with_orders(table.orders.copy(), np.full(50, 99))
    with pytest.raises(InputError, match=r"for 15 items must be a whole number from 0 to .*, got 99"):
        rankdp.aggregate(strange, "offset-tiers", 2)
    with pytest.raises(InputError, match="row 2: offset must be a whole number from 0 on, got -1"):
        table.with_orders(table.orders.copy(), [0, -1, *[0] * 48])


def test_everyone_has_an_epsilon_of_their_own(poll, request):
    table = rankdp.Rankings.from_orders(poll.orders, poll.items, epsilons=np.tile([1.0, 4.0], 1500))
    release = rankdp.privatize(table, mechanism="offset-tiers", bits=seeded(request))
    found = rankdp.aggregate(release)
    errors = (found.mean_ranks.values - poll.ranks().mean(axis=0)) / found.mean_ranks.standard_errors
    assert np.abs(errors).max() < 4.5 + found.mean_ranks.bias.max() / found.mean_ranks.standard_errors.min()


def test_answers_are_kept_with_their_offset(poll, tmp_path):
    store = rankdp.AnswerStore(tmp_path / "answers")
    first = rankdp.privatize(poll[:40], 2, mechanism="offset-tiers", answers=store).value
    again = rankdp.privatize(poll[:60], 2, mechanism="offset-tiers", answers=store).value
    assert np.array_equal(first.offsets, again.offsets[:40])
    assert np.array_equal(first.orders, again.orders[:40])


def test_the_width_is_part_of_the_name():
    chosen = rankdp.mechanism("offset-tiers", 20, 2, tiers=[6])
    assert chosen.name == "offset-tiers-6"
    assert rankdp.mechanism("offset-tiers-6", 20, 2).divisions == chosen.divisions
    assert chosen.divisions[:2] == [(6, 6, 6, 2), (1, 6, 6, 6, 1)]
    for wrong in ([6, 14], [0], [20], [2.5], []):
        with pytest.raises(InputError, match="tiers of offset-tiers must be one whole number, their width, from 1"):
            rankdp.mechanism("offset-tiers", 20, 2, tiers=wrong)
