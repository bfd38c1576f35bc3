"""Attack: what an attacker learns from a release."""

from rankdp.attack.inference import infer, position_attack, success_curve, success_probability
from rankdp.attack.membership import membership_experiment, score_attack
from rankdp.attack.signature import signature_attack

__all__ = [
    "infer",
    "membership_experiment",
    "position_attack",
    "score_attack",
    "signature_attack",
    "success_curve",
    "success_probability",
]
