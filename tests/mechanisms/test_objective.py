"""Objective perturbation: its calibration, the density of the ideal mechanism, the closed gap, draws and mutants."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, assert_law, generator, seeded

from rankdp.data.counts import STEPS, PairCounts
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.votes import objective
from rankdp.mechanisms.votes.objective import ObjectivePerturbation, rounded_laplace
from rankdp.mechanisms.votes.protection import Protection
from rankdp.rankers.links import LINKS
from rankdp_papers.cai.ridges import objective as ranked

ONE = Protection("comparison")
links = pytest.mark.parametrize("link", list(LINKS))


def counts_of(data, items):
    left, right, halves = zip(*data, strict=True) if data else ((), (), ())
    return PairCounts.from_pairs(left, right, halves, items=items)


# -- the noise ---------------------------------------------------------------------------------------------------


def rounded_law(scale, reach):
    """P(k) = F(k + 1/2) - F(k - 1/2) of the Laplace law, for |k| <= reach."""
    law = stats.laplace(scale=float(scale))
    upper = np.array([law.sf(k - 0.5) - law.sf(k + 0.5) for k in range(1, reach + 1)])
    return np.concatenate([upper[::-1], [1 - 2 * law.sf(0.5)], upper])


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 3), Fraction(20)], ids=str)
def test_rounded_laplace_has_the_law_of_rounded_laplace_noise(scale, request):
    reach = math.ceil(40 * scale) + 2
    assert_law(rounded_laplace(scale, 100_000, seeded(request)) + reach, rounded_law(scale, reach))


def test_rounded_laplace_of_a_large_scale(request):
    """On the grid that is used: the distribution function as a whole."""
    drawn = rounded_laplace(Fraction(4 << 32), 100_000, seeded(request))
    assert stats.kstest(drawn / (4 << 32), stats.laplace().cdf).pvalue > LEVEL
    assert_law(drawn % 64, np.full(64, 1 / 64))


def test_the_chi_squared_tells_rounded_from_discrete_laplace(request):
    """They are different laws: at scale 1 zero has probability 0.39 and 0.46."""
    from rankdp.privacy.noise import discrete_laplace

    with pytest.raises(AssertionError, match="p = "):
        assert_law(discrete_laplace(1, 100_000, seeded(request)) + 42, rounded_law(1, 42))


# -- calibration -------------------------------------------------------------------------------------------------


@links
@pytest.mark.parametrize("moved", [1, 5])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "8"])
def test_tight_calibration_spends_epsilon_exactly(link, moved, epsilon):
    """4 kappa_1 k/b + k log(1 + 2 kappa_2/gamma) + 2 eps_2 = eps, rounded to the safe side."""
    one = LINKS[link]
    for ridge in (30 * moved, 300):
        mechanism = ObjectivePerturbation(3, 10, Protection("voter", moved), epsilon, ridge, link=link)
        assert mechanism.gap_epsilon == Fraction(epsilon) / 500
        determinant = moved * math.log1p(2 * one.kappa_2 / ridge)
        spent = 4 * one.kappa_1 * moved / float(mechanism.scale) + determinant + 2 * float(mechanism.gap_epsilon)
        assert spent == pytest.approx(float(epsilon), rel=1e-11)
        # in rationals: what is left for the gradient is at most eps - 2 eps_2 less the determinant, itself rounded up
        gradient = 4 * Fraction(one.kappa_1) * moved / mechanism.scale
        assert gradient + Fraction(determinant) <= mechanism.epsilon - 2 * mechanism.gap_epsilon


@links
@pytest.mark.parametrize("bound", [1, 5])
def test_weights_pay_for_the_concave_logarithm(link, bound):
    """However a voter's weight is spread over comparisons, the determinant costs at most 2 kappa_2 c/gamma."""
    one, ridge = LINKS[link], 30 * bound
    mechanism = ObjectivePerturbation(3, 10, Protection.of("voter", bound), 1, ridge, link=link)
    paid = mechanism.epsilon - 2 * mechanism.gap_epsilon - 4 * Fraction(one.kappa_1) * bound / mechanism.scale
    assert paid == 2 * Fraction(one.kappa_2) * bound / ridge
    for comparisons in (bound, bound + 1, 2 * bound, 100 * bound, 10**6):
        spent = comparisons * math.log1p(2 * one.kappa_2 * bound / comparisons / ridge)
        assert spent <= float(paid)
    assert spent > 0.999 * float(paid)
    assert spent > bound * math.log1p(2 * one.kappa_2 / ridge)  # what whole comparisons would cost


def test_weighed_comparisons_give_the_minimiser_of_their_own_objective(request):
    """s times the counts, the ridge and the noise: without noise to speak of, the scores of whole comparisons."""
    data = [(0, 1, 2)] * 40 + [(1, 2, 2)] * 30 + [(0, 2, 0)] * 20
    whole = counts_of(data, 3)
    halves = STEPS * whole.half_wins_first, STEPS * whole.half_wins_second
    weighed = PairCounts.from_pairs(whole.first, whole.second, *halves, items=3, steps=STEPS)
    scores = [
        ObjectivePerturbation(3, 90, unit, 10**6, 5).sample(counts, seeded(request))
        for unit, counts in ((Protection("voter"), whole), (Protection.of("voter", 1), weighed))
    ]
    assert np.abs(scores[0] - scores[1]).max() < 1e-3 < np.abs(scores[0]).max()


@links
def test_paper_calibration(link):
    one = LINKS[link]
    eps = Fraction(249, 250)  # what is left of 1
    least = 4 * Fraction(one.kappa_2) * 2 / eps
    two = Protection("voter", 2)
    paper = ObjectivePerturbation(3, 10, two, 1, least, link=link, calibration="paper")
    assert paper.scale == 8 * Fraction(one.kappa_1) * 2 / eps
    tight = ObjectivePerturbation(3, 10, two, 1, least, link=link)
    assert tight.scale < paper.scale
    # the paper's suffices: at its own ridge the proof's epsilon is within eps
    assert 4 * one.kappa_1 * 2 / paper.scale + 2 * math.log1p(2 * one.kappa_2 / least) <= eps
    with pytest.raises(InputError, match="with the paper's calibration, got"):
        _ = ObjectivePerturbation(3, 10, two, 1, least * Fraction(999, 1000), link=link, calibration="paper").scale


def test_a_ridge_that_spends_all_of_epsilon_is_refused():
    spends_all = 2 * 0.25 / math.expm1(1 - 1 / 250)
    assert ObjectivePerturbation(3, 10, ONE, 1, spends_all * 1.001).scale > 4000
    with pytest.raises(InputError, match="ridge is too small for epsilon 1: the Hessian alone would spend"):
        _ = ObjectivePerturbation(3, 10, ONE, 1, spends_all * 0.9999).scale


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"calibration": "loose"}, InputError, "calibration must be one of tight, paper, got 'loose'"),
        ({"ridge": 0}, InputError, "ridge must be a finite number above 0, got 0"),
        ({"ridge": math.nan}, InputError, "ridge must be a finite number above 0, got nan"),
        ({"epsilon": -1}, InputError, "epsilon must be a finite number above 0, got -1"),
        ({"link": "cloglog"}, InputError, "link must be one of logistic, secant, best-of-three, got 'cloglog'"),
        ({"link": "probit"}, Unsupported, "no guarantee is known for the probit link: F'/(F (1 - F)) grows like |x|"),
    ],
)
def test_refusals(changes, error, sentence):
    arguments = {"items": 3, "comparisons": 10, "protection": ONE, "epsilon": 1, "ridge": 5, **changes}
    with pytest.raises(error) as refusal:
        ObjectivePerturbation(**arguments)
    assert str(refusal.value).startswith(sentence)


def test_guarantee():
    guarantee = ObjectivePerturbation(3, 10, Protection("voter", 4), "0.3", 50).guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.local) == (Fraction(3, 10), 0, False)
    assert guarantee.protects == "one voter"


# -- the density of the ideal mechanism --------------------------------------------------------------------------


def log_density(points, data, scale, ridge, link):
    """log of the density of the ideal minimiser, up to a constant: Laplace at w = -gradient, times the determinant."""
    count, items = points.shape
    gradient = ridge * points
    hessian = np.broadcast_to(ridge * np.eye(items), (count, items, items)).copy()
    for i, j, halves in data:
        gap = points[:, i] - points[:, j]
        pull = halves / 2 * link.slope(gap) - (1 - halves / 2) * link.slope(-gap)
        bend = halves / 2 * link.curvature(gap) + (1 - halves / 2) * link.curvature(-gap)
        gradient[:, i] += pull
        gradient[:, j] -= pull
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            hessian[:, a, b] += sign * bend
    return -np.abs(gradient).sum(axis=1) / scale + np.linalg.slogdet(hessian)[1]


def neighbours(items, moved, generator):
    """Pairs of data sets with ``moved`` comparisons replaced, all where they are few, on an empty and a fuller base."""
    every = [(i, j, h) for i, j in itertools.combinations(range(items), 2) for h in (0, 1, 2)]
    sides = list(itertools.combinations_with_replacement(every, moved))
    pairs = list(itertools.product(sides, sides))
    if len(pairs) > 100:
        pairs = [pairs[k] for k in generator.choice(len(pairs), 100, replace=False)]
    bases = [(), tuple(every[k] for k in generator.choice(len(every), 4))]
    return [(base + one, base + other) for base in bases for one, other in pairs]


def worst_density_ratio(mechanism, items, generator, scale=None):
    """The largest log-ratio of densities over neighbours and a grid of points."""
    axis = np.linspace(-8, 8, {2: 101, 3: 23}[items])
    points = np.stack(np.meshgrid(*[axis] * items, indexing="ij"), axis=-1).reshape(-1, items)
    settings = float(mechanism.scale if scale is None else scale), float(mechanism.ridge), mechanism.link
    known = {}
    worst = -math.inf
    for one, other in neighbours(items, mechanism.protection.moved, generator):
        for data in (one, other):
            if data not in known:
                known[data] = log_density(points, data, *settings)
        worst = max(worst, float((known[one] - known[other]).max()))
    return worst


@pytest.mark.slow
@links
@pytest.mark.parametrize(("items", "moved"), [(2, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("ridge", ["1/2", "20"])
def test_the_ideal_density_changes_by_at_most_eps_1(link, items, moved, ridge, request):
    ridge = Fraction(ridge) * moved * 4
    mechanism = ObjectivePerturbation(items, 4 + moved, Protection("voter", moved), 2, ridge, link=link)
    allowed = float(mechanism.epsilon - 2 * mechanism.gap_epsilon)
    worst = worst_density_ratio(mechanism, items, generator(request))
    assert worst <= allowed * (1 + 1e-9)
    if ridge >= 40 * moved:  # the determinant is next to nothing: half of eps_1 with 2 items, most of it with 3
        assert worst > allowed * (0.75 if items == 3 and link == "logistic" else 0.4)


@pytest.mark.slow
@links
def test_the_density_audit_catches_half_the_noise(link, request):
    mechanism = ObjectivePerturbation(3, 5, ONE, 2, 80, link=link)
    worst = worst_density_ratio(mechanism, 3, generator(request), scale=mechanism.scale / 2)
    assert worst > float(mechanism.epsilon)


def test_the_density_audit_sees_the_determinant(request):
    """With endless noise only the determinant is left: nearly log(1 + 2 kappa_2/gamma), and never more."""
    mechanism = ObjectivePerturbation(3, 1, ONE, 1, 1)
    alone = worst_density_ratio(mechanism, 3, generator(request), scale=Fraction(10**12))
    assert 0.9 * math.log1p(2 * 0.25) < alone <= math.log1p(2 * 0.25) + 1e-9


# -- the gap between the ideal and what is computed --------------------------------------------------------------


def solve_exactly(counts, linear, ridge, link, start):
    """Newton's method in extended precision, to the last digit of double precision and beyond."""
    theta = start.astype(np.longdouble)
    items = len(theta)
    for _ in range(6):
        gradient = ridge * theta + linear
        hessian = ridge * np.eye(items)
        for i, j, ahead, behind in zip(
            counts.first, counts.second, counts.half_wins_first / 2, counts.half_wins_second / 2, strict=True
        ):
            gap = theta[i] - theta[j]
            up, down = np.exp(gap) / (1 + np.exp(gap)), 1 / (1 + np.exp(gap))  # of the logistic link
            pull = behind * up - ahead * down
            gradient[i] += pull
            gradient[j] -= pull
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                hessian[a, b] += float(sign * (ahead + behind) * up * down)
        theta = theta - np.linalg.solve(hessian, gradient.astype(np.float64))
    return theta


def distance_bound(mechanism):
    """D, from its definition."""
    step = float(mechanism.noise_step)
    return (mechanism.tolerance + step * math.sqrt(mechanism.items) / 2) / float(mechanism.ridge)


@pytest.mark.parametrize(
    ("items", "comparisons", "epsilon", "ridge"), [(2, 3, 1, 2), (6, 40, "0.1", 9), (12, 4000, 4, 1)]
)
def test_the_solution_is_within_the_distance_bound(items, comparisons, epsilon, ridge, monkeypatch, request):
    random, bits = generator(request), seeded(request)
    seen = {}

    def watched(counts, gradient_norm, **options):
        solved = real(counts, gradient_norm, **options)
        seen.update(options, solved=np.array(solved, dtype=np.float64))
        return solved

    real = objective.fit_within
    monkeypatch.setattr(objective, "fit_within", watched)
    for _ in range(5):
        left = random.integers(0, items, comparisons)
        right = (left + random.integers(1, items, comparisons)) % items
        counts = PairCounts.from_pairs(left, right, random.integers(0, 3, comparisons), items=items)
        mechanism = ObjectivePerturbation(items, comparisons, ONE, epsilon, ridge)
        released = mechanism.sample(counts, bits)
        step = float(mechanism.noise_step)
        assert (seen["linear"] / step == np.rint(seen["linear"] / step)).all()
        unrounded = seen["linear"].astype(np.longdouble) + random.choice([-0.5, 0.5], items) * step
        ideal = solve_exactly(counts, unrounded, float(mechanism.ridge), mechanism.link, seen["solved"])
        apart = np.sqrt(np.square(seen["solved"] - ideal).sum())
        assert 0 < apart <= distance_bound(mechanism)
        # and what is released is that solution with the small output noise
        tail = float(mechanism.output_scale * objective._SCORE_STEP) * 40
        assert np.abs(released - seen["solved"]).max() <= tail


def test_the_distance_bound_is_attained_without_comparisons():
    """With no data the Hessian is the ridge: a gradient of norm T at theta is a distance of exactly T/gamma."""
    mechanism = ObjectivePerturbation(4, 0, ONE, 1, 3)
    assert distance_bound(mechanism) * 3 == pytest.approx(mechanism.tolerance + 2.0**-32, rel=1e-12)


@pytest.mark.parametrize("items", [2, 7, 300])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
def test_the_output_noise_hides_any_two_points_within_the_bound(items, epsilon, request):
    """In steps of h, with points in the worst position: the l1 distance never exceeds output_scale times eps_2."""
    random = generator(request)
    mechanism = ObjectivePerturbation(items, 1000, ONE, epsilon, 60)
    allowed = mechanism.output_scale * mechanism.gap_epsilon
    bound, step = distance_bound(mechanism), float(objective._SCORE_STEP)
    nearest = 0
    for _ in range(50):
        point = random.uniform(-2, 2, items)
        other = point + bound / math.sqrt(items) * random.choice([-1, 1], items)  # every coordinate by the same
        apart = int(np.abs(np.rint(point / step) - np.rint(other / step)).sum())
        assert apart <= allowed
        nearest = max(nearest, apart)
    assert nearest > float(allowed) * 0.9  # the bound is not idle


def test_epsilon_is_split_without_a_rest():
    mechanism = ObjectivePerturbation(5, 100, ONE, "1/3", 9)
    determinant = Fraction(math.log1p(float(Fraction(1, 2) / 9)))
    first = 4 / mechanism.scale + determinant
    assert first + 2 * mechanism.gap_epsilon <= Fraction(1, 3)
    assert float(first + 2 * mechanism.gap_epsilon) == pytest.approx(1 / 3, rel=1e-11)


@pytest.mark.parametrize("scale", [1, 4096, 10**8])
def test_noise_of_any_scale_is_a_float_without_rounding(scale, request):
    """Draws are multiples of the step below 2^53, so that turning them into floats moves nothing."""
    mechanism = ObjectivePerturbation(3, 10, Protection("voter", scale), 4, 10 * scale)
    steps = rounded_laplace(mechanism.scale / mechanism.noise_step, 10_000, seeded(request))
    assert np.abs(steps).max() < 2**53
    assert mechanism.scale / mechanism.noise_step < 2**43  # 2^53 is beyond 1000 scales, e^-1000


@pytest.mark.parametrize(("moved", "epsilon"), [(1, "1e-4"), (10**6, "0.01"), (50, 3)])
def test_the_solver_proves_its_tolerance_however_large_the_noise(moved, epsilon, request):
    """A failure would depend on the data, so it must not happen."""
    bits = seeded(request)
    counts = counts_of([(0, 1, 2), (1, 2, 1), (0, 3, 0)] * 20, 5)
    mechanism = ObjectivePerturbation(
        5, 60, Protection("voter", moved), epsilon, Fraction(moved * 4) / Fraction(epsilon)
    )
    for _ in range(30):
        assert np.isfinite(mechanism.sample(counts, bits)).all()


def heavy_table(kind, items, comparisons):
    """Every pair meets equally often: even, nine to one, one item that always wins, or two halves that never meet."""
    first, second = np.triu_indices(items, 1)
    if kind == "disconnected" and items > 3:
        together = (first < items // 2) == (second < items // 2)
        first, second = first[together], second[together]
    halves = 2 * max(comparisons // len(first), 1)
    share = {"lopsided": 0.9, "separated": np.where(first == 0, 1.0, 0.5)}.get(kind, 0.5)
    ahead = np.broadcast_to(np.rint(halves * np.asarray(share)), len(first)).astype(np.int64)
    return PairCounts.from_pairs(first, second, ahead, halves - ahead, items=items)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["balanced", "lopsided", "separated", "disconnected"])
def test_whether_scores_are_released_does_not_depend_on_the_votes(kind, request):
    """A small ridge lets the noise move all scores by 10^5, which leaves doubles few digits behind the point."""
    bits, comparisons = seeded(request), 10**9
    for items, times in ((2, 20), (10, 5), (60, 1)):
        counts = heavy_table(kind, items, comparisons)
        for epsilon, ridge in ((5, "0.0035"), ("0.01", 60), (1, "0.6"), (100, "0.0001")):
            mechanism = ObjectivePerturbation(items, comparisons, ONE, epsilon, ridge)
            for _ in range(times if ridge == "0.0035" else 1):
                assert np.isfinite(mechanism.sample(counts, bits)).all()


@links
def test_more_comparisons_than_were_announced_are_solved_too(link, request):
    """Where voters are protected their number is noisy, and may be far too small."""
    mechanism = ObjectivePerturbation(3, 1, Protection("voter", 2), 8, "0.1", link=link)
    counts = PairCounts.from_pairs([0, 0, 1], [1, 2, 2], [2**50, 2**51, 3], [2**50, 0, 2**50], items=3)
    assert np.isfinite(mechanism.sample(counts, seeded(request))).all()


@pytest.mark.parametrize(("items", "epsilon"), [(5, "0.1"), (10, 1), (100, 4), (1000, 1)])
@pytest.mark.parametrize("comparisons", [10**3, 10**6, 10**9])
def test_the_output_noise_is_small_beside_the_statistical_error(items, epsilon, comparisons):
    mechanism = ranked(items, comparisons, ONE, Fraction(epsilon))
    information = comparisons / items / 2
    error = math.sqrt(information + mechanism.noise_variance) / (information + float(mechanism.ridge))
    assert float(mechanism.output_scale * objective._SCORE_STEP) < 0.2 * error


@pytest.mark.parametrize("comparisons", [1, 10**12])
def test_what_rounding_needs_too_much_noise_for_is_refused_whatever_the_data(comparisons, request):
    mechanism = ObjectivePerturbation(50, comparisons, ONE, 100, "1e-20")
    for refused in (mechanism.check, lambda: mechanism.sample(counts_of([], 50), seeded(request))):
        with pytest.raises(InputError, match="ridge is too small for epsilon 100 and 50 items"):
            refused()


def test_a_ridge_that_is_no_double_is_rounded_up():
    assert 0 < ObjectivePerturbation(3, 10, ONE, 1, "16/3").ridge - Fraction(16, 3) < Fraction(1, 2**50)


# -- attacks -----------------------------------------------------------------------------------------------------

WITH_1, WITH_2 = ((0, 1, 2),), ((0, 2, 2),)  # whom item 0 has beaten


def grid_attack(released, mechanism):
    """Which of the two data sets puts the noise, -gradient, nearer to the noise's grid."""

    def off_grid(data):
        ((winner, loser, _),) = data
        gradient = float(mechanism.ridge) * released
        pull = 1 / (1 + math.exp(released[winner] - released[loser]))
        gradient[winner] -= pull
        gradient[loser] += pull
        steps = gradient / float(mechanism.noise_step)
        return np.abs(steps - np.rint(steps)).max()

    return WITH_1 if off_grid(WITH_1) < off_grid(WITH_2) else WITH_2


def attack_hits(mechanism, draws, bits):
    data = [WITH_1, WITH_2] * (draws // 2)
    return sum(grid_attack(mechanism.sample(counts_of(one, 3), bits), mechanism) == one for one in data)


@pytest.mark.slow
def test_the_output_noise_is_needed(monkeypatch, request):
    """Without it the last digits of well-solved scores give the data away, whatever the noise in the objective."""
    real = objective.fit_within
    monkeypatch.setattr(objective, "fit_within", lambda counts, norm, **options: real(counts, 1e-14, **options))
    mechanism, draws = ObjectivePerturbation(3, 1, ONE, "0.1", 10), 400
    hits = attack_hits(mechanism, draws, seeded(request))
    allowed = math.exp(0.1) / (1 + math.exp(0.1))
    assert stats.binomtest(hits, draws, allowed, alternative="greater").pvalue > LEVEL
    monkeypatch.setattr(objective, "discrete_laplace", lambda scale, count, bits: np.zeros(count, dtype=np.int64))
    hits = attack_hits(mechanism, draws, seeded(request))
    assert stats.binomtest(hits, draws, allowed, alternative="greater").pvalue < LEVEL
    assert hits > 0.95 * draws


class ThirdNoise(ObjectivePerturbation):
    @property
    def scale(self):
        return super().scale / 3


def draws_of(kind, data, items, ridge, bits, copies=500, times=40):
    """Many draws of the scores of one small data set: disjoint copies of it share an objective without touching."""
    mechanism = kind(items * copies, len(data) * copies, ONE, 1, ridge)
    left, right, halves = (np.tile(column, (copies, 1)) for column in np.array(data).T)
    offsets = items * np.arange(copies)[:, None]
    rows = (left + offsets).ravel(), (right + offsets).ravel(), halves.ravel()
    counts = PairCounts.from_pairs(*rows, items=items * copies)
    return np.concatenate([mechanism.sample(counts, bits).reshape(copies, items) for _ in range(times)])


def log_ratio_bounds(hits, draws):
    """A lower confidence bound of the log-ratio of two shares."""
    low = stats.beta.ppf(LEVEL / 2, hits[0], draws - hits[0] + 1) if hits[0] else 0.0
    high = stats.beta.ppf(1 - LEVEL / 2, hits[1] + 1, draws - hits[1])
    return math.log(low / high) if low else -math.inf


@pytest.mark.slow
def test_statistical_audit_on_neighbouring_data(request):
    """The best of many thresholds on the scores of two items, chosen on half of the draws and judged on the others."""
    items, one, other = 3, ((0, 1, 2), (1, 2, 2)), ((0, 1, 0), (1, 2, 2))
    bits, found = seeded(request), {}
    for kind in (ObjectivePerturbation, ThirdNoise):
        samples = [draws_of(kind, data, items, 40, bits) for data in (one, other)]
        values = [np.minimum(sample[:, 0], -sample[:, 1]) for sample in samples]
        values += [sample[:, 0] - sample[:, 1] for sample in samples]
        half = len(samples[0]) // 2
        best = (-math.inf, 0, 0.0)
        for which in (0, 2):
            for cut in np.quantile(values[which][:half], np.linspace(0.02, 0.98, 49)):
                bound = log_ratio_bounds([int((value[:half] > cut).sum()) for value in values[which : which + 2]], half)
                best = max(best, (bound, which, float(cut)))
        _, which, cut = best
        found[kind] = log_ratio_bounds([int((value[half:] > cut).sum()) for value in values[which : which + 2]], half)
    assert 0.2 < found[ObjectivePerturbation] <= 1
    assert found[ThirdNoise] > 1
