"""Attack: what an attacker learns from a release."""

from rankdp.attack.inference import infer, position_attack, success_curve, success_probability
from rankdp.attack.membership import membership_experiment, score_attack
from rankdp.attack.rigging import least_accounts, rigging
from rankdp.attack.signature import signature_attack

__all__ = [
    "infer",
    "least_accounts",
    "membership_experiment",
    "position_attack",
    "rigging",
    "score_attack",
    "signature_attack",
    "success_curve",
    "success_probability",
]
