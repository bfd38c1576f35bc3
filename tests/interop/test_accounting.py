"""dp_accounting: events and loss distributions promise what the guarantee does, ledgers go out and come in."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest

import rankdp
from rankdp.errors import InputError, Unsupported
from rankdp.interop import accounting
from rankdp.mechanisms.ballots.borda import NoisyBorda
from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger

dpa = pytest.importorskip("dp_accounting")


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(6)])
def test_a_pure_guarantee_is_its_loss_distribution(epsilon):
    """The delta at any epsilon below is that of randomised response, at epsilon itself 0."""
    held = accounting.loss_distribution(Guarantee("one ballot", epsilon, local=False))
    assert held.get_delta_for_epsilon(float(epsilon) + 2e-4) == pytest.approx(0, abs=1e-12)
    half = float(epsilon) / 2
    exact = (math.exp(float(epsilon)) - math.exp(half)) / (1 + math.exp(float(epsilon)))
    assert exact - 1e-12 <= held.get_delta_for_epsilon(half) <= exact + 1e-3


def test_many_releases_count_as_many():
    """Repeated a hundred times: between the exact cost and the Rényi bound, which must not forget the count."""
    guarantee = Guarantee("one ballot", Fraction(1, 10), local=False)
    exact = accounting.loss_distribution(guarantee).self_compose(100).get_epsilon_for_delta(1e-6)
    accountant = dpa.rdp.RdpAccountant()
    accountant.compose(accounting.event(guarantee), 100)
    assert 4 < exact < accountant.get_epsilon(1e-6) < 6


def test_gaussian_noise_is_its_rho():
    guarantee = NoisyBorda(20, BallotProtection("ballot"), 1, "1e-6").guarantee
    made = accounting.event(guarantee)
    assert isinstance(made, dpa.ZCDpEvent)
    assert made.rho == pytest.approx(guarantee.rho)
    assert made.rho >= guarantee.rho
    accountant = dpa.rdp.RdpAccountant()
    accountant.compose(made)
    assert 1 <= accountant.get_epsilon(1e-6) < 1.2
    with pytest.raises(Unsupported, match="no event is known"):
        accounting.event(Guarantee("one ballot", Fraction(1), Fraction(1, 10**6)))


def test_ledgers_go_out_and_come_in(tmp_path):
    ledger = Ledger.create(tmp_path / "one.db", "vote", "ballot", 3, "1e-5")
    for epsilon in (Fraction(1, 2), Fraction(1, 4)):
        ledger.spend(Guarantee("one ballot", epsilon, local=False), "by hand")
    accountant = dpa.rdp.RdpAccountant(neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE)
    accountant.compose(accounting.ledger_event(ledger))
    rho = (0.5**2 + 0.25**2) / 2
    assert accountant.get_epsilon(1e-6) < rho + 2 * math.sqrt(rho * math.log(1e6))
    other = Ledger.create(tmp_path / "two.db", "vote", "ballot", 3, "1e-5")
    entry = accounting.spend(other, accountant, "moved from another ledger", protect="ballot", delta="1e-6")
    assert entry.guarantee.epsilon >= Fraction(accountant.get_epsilon(1e-6))
    with pytest.raises(rankdp.BudgetExceeded):
        accounting.spend(other, accountant, "again", protect="ballot", delta="1e-6")
    with pytest.raises(InputError, match="delta must be"):
        accounting.spend(other, accountant, "again", protect="ballot", delta=0)


def test_an_accountant_for_added_rows_does_not_pay_for_replaced_ones(tmp_path):
    added = dpa.rdp.RdpAccountant(neighboring_relation=dpa.NeighboringRelation.ADD_OR_REMOVE_ONE)
    added.compose(dpa.GaussianDpEvent(4))
    ledger = Ledger.create(tmp_path / "ballots.db", "vote", "ballot", 9, "1e-5")
    with pytest.raises(InputError, match="must be for REPLACE_ONE, because one ballot is replaced, got ADD_OR_REMOVE"):
        accounting.spend(ledger, added, "a mean", protect="ballot", delta="1e-6")
    voters = Ledger.create(tmp_path / "voters.db", "vote", "voter", 9, "1e-5")
    accounting.spend(voters, added, "a mean", protect="voter", delta="1e-6")
    votes = Ledger.create(tmp_path / "votes.db", "vote", "outcome", 9, "1e-5").using(convert=True)
    with pytest.raises(InputError, match="because one comparison's outcome is replaced, got ADD_OR_REMOVE"):
        accounting.spend(votes, added, "a mean", protect="voter", delta="1e-6")


def test_a_partition_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "one.db", "vote", "ballot", 3)
    ledger.spend(Guarantee("one ballot", Fraction(1), local=False), "a ward", partition="wards", part="1")
    with pytest.raises(Unsupported, match="partition"):
        accounting.ledger_event(ledger)


@pytest.mark.slow
def test_neither_library_is_imported_before_it_is_used():
    code = "import sys, rankdp.interop.opendp, rankdp.interop.accounting\n"
    code += "print({'opendp', 'dp_accounting'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
