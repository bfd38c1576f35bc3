"""How releases add up: exact by default, Rényi where it is tighter, and never below what a filter allows."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdp.errors import InputError
from rankdp.privacy.composition import Account, Cost, Terms, conversion, divergence, together
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import BudgetExceeded, Ledger
from rankdp.privacy.zcdp import rho_of

pytestmark = pytest.mark.slow

UNIT = "one comparison"
DELTA = Fraction(1, 10**6)


def pure(epsilon, **more):
    return Guarantee(UNIT, Fraction(epsilon), local=False, **more)


def gaussian(epsilon, delta=DELTA):
    return pure(epsilon, delta=delta, rho=float(rho_of(Fraction(epsilon), delta)))


def filled(account, guarantee):
    """How many such releases fit, and the account after them."""
    count = 0
    while True:
        after, _ = account.charged(guarantee, None)
        if not after.standing().holds:
            return count, account
        account, count = after, count + 1


def new(epsilon, delta=DELTA, accounting="auto"):
    terms = Terms.of(Fraction(epsilon), delta, accounting)
    return Account.opened(terms)


def test_many_gaussian_releases_are_counted_by_renyi(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "poll", UNIT, 3, DELTA)
    release = gaussian("0.5")
    entries = [ledger.spend(release) for _ in range(24)]  # basic has a delta for one only, and an epsilon for six
    with pytest.raises(BudgetExceeded, match="counted by Rényi of order") as refusal:
        ledger.spend(release)
    assert entries[-1].counted_by[0].startswith("Rényi of order ")
    ledger.spend(gaussian(refusal.value.fits))
    ledger.verify()
    # not far from what a list that is fixed beforehand may have
    fixed, _ = together([gaussian("0.5")] * len(entries), DELTA)
    assert Fraction(5, 2) < fixed.epsilon < 3


def test_one_release_that_takes_the_whole_budget_fits():
    for epsilon in ("0.1", "1", "8"):
        after, _ = new(epsilon).charged(gaussian(epsilon), None)
        assert after.standing() == type(after.standing())(Fraction(epsilon), DELTA, "basic", True)
        assert after.mode == "basic"


def test_pure_releases_before_the_first_delta_cost_their_whole_epsilon_at_every_order():
    account, cost = new(5).charged(pure("0.01"), None)
    assert cost.renyi == (Fraction("0.01"),) * 4
    account, _ = account.charged(gaussian("0.5"), None)
    assert account.mode == "split"
    _, cost = account.charged(pure("0.01"), None)
    assert all(value < Fraction("0.01") for value in cost.renyi)


def test_a_pure_release_beside_a_gaussian_one_adds_up():
    account, _ = new(2).charged(pure(1), None)
    account, _ = account.charged(gaussian(1), None)
    assert (account.mode, account.standing().epsilon, account.standing().holds) == ("basic", 2, True)


def test_renyi_from_the_start_pays_for_many_pure_releases():
    assert filled(new(3), pure("0.05"))[0] == 60
    count, account = filled(new(3, accounting="renyi"), pure("0.05"))
    assert count > 90
    assert account.standing().method.startswith("Rényi")
    assert filled(new(3, accounting="basic"), pure("0.05"))[0] == 60


def test_a_release_without_a_curve_leaves_basic_composition_alone():
    account, _ = new(3, accounting="renyi").charged(pure("0.5", delta=DELTA / 4), None)
    assert account.total().unbounded == (1, 1, 1, 1)
    assert account.standing().method == "basic"
    after, _ = account.charged(pure("0.5", delta=DELTA / 2), None)
    assert not after.standing().holds  # half of delta is basic's


def test_no_filter_holds_with_more_than_its_share():
    """Whatever filter admits, its own conversion at its own share of delta is within the budget, and shares add up."""
    terms = new(3).terms
    assert terms.delta / 2 + len(terms.orders) * terms.share == terms.delta
    count, account = filled(new(3), gaussian("0.25"))
    rho = count * gaussian("0.25").rho
    order = int(account.standing().method.split()[-1])
    exact = order * rho + mpmath.log(1 - mpmath.mpf(1) / order) - mpmath.log(order * float(terms.share)) / (order - 1)
    assert exact <= account.standing().epsilon <= 3
    assert float(account.standing().epsilon) - exact < 1e-6


@pytest.mark.parametrize("order", [1.5, 2, 5, 10, 33, 64])
def test_divergences_are_bounds(order):
    # pure: the worst case is randomised response
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(5)):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator))
        worst = mpmath.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
        assert worst <= mpmath.mpf(float(divergence(pure(epsilon), order))) * (1 + mpmath.mpf(10) ** -12)
    # Gaussian noise: a rho exactly; a curve known at some orders is bounded between them
    assert 0 <= divergence(gaussian(1), order) - Fraction(order) * Fraction(gaussian(1).rho) <= Fraction(1, 2**40)
    points = tuple((a, 0.02 * a) for a in (1.5, 4.0, 64.0))
    known = divergence(pure(1, delta=DELTA, renyi=points), order)
    assert 0.02 * order - 1e-12 <= known <= 0.02 * min(a for a, _ in points if a >= order) + 1e-9
    assert divergence(pure(1, delta=DELTA, renyi=points), 65) is None


def test_the_conversion_rounds_up():
    for order, delta in (
        (2, DELTA),
        (17, Fraction(1, 10**50)),
        (200, Fraction(1, 10)),
        (3, Fraction(9, 10)),
        (3, Fraction(4, 27)),
    ):
        d = mpmath.mpf(delta.numerator) / delta.denominator
        exact = mpmath.log(1 - mpmath.mpf(1) / order) - mpmath.log(d * order) / (order - 1)
        assert 0 <= mpmath.mpf(float(conversion(order, delta))) - exact < 1e-10


@given(
    st.sampled_from(["auto", "basic", "renyi"]),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 200), st.sampled_from([None, ("r", "a"), ("r", "b")])), max_size=15
    ),
)
def test_any_mixture_holds_by_the_filter_that_is_named(accounting, requests):
    account = new(2, accounting=accounting)
    for kind, size, place in requests:
        epsilon = Fraction(size, 200)
        guarantee = (
            pure(epsilon),
            pure(epsilon, delta=DELTA / 10),
            pure(epsilon, delta=DELTA, rho=float(epsilon) ** 2 / 60),
            pure(epsilon, delta=DELTA, renyi=((2.0, float(epsilon) / 20), (64.0, float(epsilon)))),
        )[kind]
        after, cost = account.charged(guarantee, place)
        assert after.plus(cost, place, -1).total().epsilon == account.total().epsilon
        if not after.standing().holds:
            continue
        account = after
        standing, total = account.standing(), account.total()
        assert standing.epsilon <= 2
        if standing.method == "basic":
            assert standing.epsilon == total.epsilon
            assert total.delta <= (DELTA / 2 if account.mode == "split" else DELTA)
        else:
            place_ = account.terms.orders.index(int(standing.method.split()[-1]))
            assert total.unbounded[place_] == 0
        assert Account.from_dict(account.terms, account.to_dict()) == account


def test_costs_survive_json():
    cost = Cost(Fraction(1, 3), Fraction(0), (Fraction(1, 7), None))
    assert Cost.from_dict(cost.to_dict()) == cost


def test_a_fixed_list_may_take_the_best_bound():
    assert together([pure(1), pure(2)], Fraction(0)) == (pure(1).compose(pure(2)), "basic")
    guarantee, method = together([gaussian("0.1")] * 50, DELTA)
    assert method.startswith("Rényi")
    rho = 50 * gaussian("0.1").rho
    assert float(rho_of(guarantee.epsilon, DELTA)) == pytest.approx(rho, rel=0.01)
    with pytest.raises(InputError, match="delta must be at least"):
        together([pure(1, delta=Fraction(1, 10))] * 2, DELTA)
    with pytest.raises(InputError, match="at least one"):
        together([], DELTA)


def test_a_list_of_pure_releases_costs_at_least_what_is_optimal():
    """Kairouz, Oh, Viswanath: the exact delta of 200 randomised responses at the epsilon that is promised for them."""
    guarantee, method = together([pure("0.1")] * 200, DELTA)
    assert method.startswith("Rényi")
    assert guarantee.epsilon < 10  # where adding up gives 20
    assert _optimal_composition(0.1, 200, float(guarantee.epsilon)) <= float(DELTA)


def _optimal_composition(epsilon, times, total):
    p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
    terms = (
        mpmath.binomial(times, k)
        * max(0, p ** (times - k) * (1 - p) ** k - mpmath.exp(total) * (1 - p) ** (times - k) * p**k)
        for k in range(times + 1)
    )
    return mpmath.fsum(terms)
