"""Condition (A1): the largest F'/(F (1 - F)) on [-B, B], by link.

It is the most that one comparison can move a coordinate of the gradient, so noise in the objective is proportional to
it. For the links of ``rankers.links`` it stays bounded. For the normal distribution function (Thurstone's model) it is
the sum of two hazard rates, phi/Phi + phi/(1 - Phi), and grows like B.
"""

from __future__ import annotations

import numpy as np

from rankdp.errors import Unsupported
from rankdp.rankers.links import LINKS, Link
from rankdp.rankers.links import link as known_link
from rankdp_papers.cai.algorithms import FloatArray
from rankdp_papers.experiment import Cell, Row

_POINTS = 20_001


def influence(cell: Cell) -> list[Row]:
    """For every link the largest influence within the reach B, and whether the library refuses it on the whole line."""
    reach = float(cell["reach"])
    x = np.linspace(-reach, reach, _POINTS)
    largest = {name: float(of_link(one, x).max()) for name, one in LINKS.items()}
    largest["probit"] = float(of_probit(x).max())
    rows = [{"link": name, "measure": "influence", "value": value, "error": 0.0} for name, value in largest.items()]
    return rows + [{"link": name, "measure": "refused", "value": refused(name), "error": 0.0} for name in largest]


def of_link(link: Link, x: FloatArray) -> FloatArray:
    """F'/(F (1 - F)) = -(-log F)'(x)/(1 - F(x)), and 1 - F(x) = F(-x)."""
    return np.asarray(-link.slope(x) / link.cdf(-x))


def of_probit(x: FloatArray) -> FloatArray:
    """phi/(Phi (1 - Phi)) from logarithms, so that no tail is lost."""
    from scipy.special import log_ndtr

    log_density = -(x**2) / 2 - np.log(2 * np.pi) / 2
    return np.asarray(np.exp(log_density - log_ndtr(x) - log_ndtr(-x)))


def refused(name: str) -> float:
    """1 if objective perturbation does not take this link."""
    try:
        known_link(name)
    except Unsupported:
        return 1.0
    return 0.0
