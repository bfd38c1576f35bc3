"""How much of the order of n scores survives noise (Jeong, Section 3): the one place to look for recovery.

Scores X, released as Y = X + sigma N and sorted. For scores drawn from a law: the error probability by expansion
(``first_order``, ``second_order``, ``taylor_coefficients``), by simulation (``error_probability``) and for any sigma
(``order_probability_iid``), and what is reachable where exact recovery is not: pairs (``concordance``,
``expected_kendall_distance``), a top-k (``top_k_overlap_iid``, ``top_k_set_probability_iid``), an order up to errors
(``within_kendall``, ``within_hamming``). For one public vector x: ``order_probability``, ``flip_probabilities``,
``expected_kendall``, ``top_k_probability``, ``top_k_overlap``. And the decoders themselves.
"""

from __future__ import annotations

from rankdp.theory.decoders import (
    DecoderGap,
    Estimate,
    decoder_gap,
    map_decoder,
    order_posterior,
    sort_decoder,
)
from rankdp.theory.error_expansion import first_order, second_order, taylor_coefficients
from rankdp.theory.recovery_fixed import (
    expected_kendall,
    flip_probabilities,
    order_probability,
    top_k_overlap,
    top_k_probability,
)
from rankdp.theory.recovery_iid import (
    adjacent_flips,
    concordance,
    expected_kendall_distance,
    order_probability_iid,
    top_k_overlap_iid,
    top_k_set_probability_iid,
)
from rankdp.theory.recovery_simulation import error_probability, simulated_top_k, within_hamming, within_kendall

__all__ = [
    "DecoderGap",
    "Estimate",
    "adjacent_flips",
    "concordance",
    "decoder_gap",
    "error_probability",
    "expected_kendall",
    "expected_kendall_distance",
    "first_order",
    "flip_probabilities",
    "map_decoder",
    "order_posterior",
    "order_probability",
    "order_probability_iid",
    "second_order",
    "simulated_top_k",
    "sort_decoder",
    "taylor_coefficients",
    "top_k_overlap",
    "top_k_overlap_iid",
    "top_k_probability",
    "top_k_set_probability_iid",
    "within_hamming",
    "within_kendall",
]
