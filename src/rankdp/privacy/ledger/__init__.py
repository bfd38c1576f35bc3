"""The ledger: a budget kept in a file, charged before anything is released."""

from rankdp.privacy.ledger.charges import BudgetExceeded as BudgetExceeded
from rankdp.privacy.ledger.charges import Charge as Charge
from rankdp.privacy.ledger.charges import Ledger as Ledger
from rankdp.privacy.ledger.charges import LedgerBroken as LedgerBroken
from rankdp.privacy.ledger.charges import paid as paid
from rankdp.privacy.ledger.charges import spending as spending
from rankdp.privacy.ledger.charges import verify_file as verify_file
