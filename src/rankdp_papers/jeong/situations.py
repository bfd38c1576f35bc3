"""What the specifications name: noises and laws of scores, and the error of sorting at any amount of noise."""

from __future__ import annotations

from rankdp.theory.noises import ScoreNoise, noise
from rankdp.theory.recovery import order_probability_iid
from rankdp.theory.score_laws import Exponential, ScoreLaw, Uniform
from rankdp_papers.experiment import Cell, Row

LAWS: dict[str, ScoreLaw] = {"uniform": Uniform(0.0, 1.0), "exponential": Exponential(1.0)}
_PARAMETERS = {"generalized-normal": {"p": "p"}, "staircase": {"epsilon": "staircase_epsilon"}}


def noise_of(cell: Cell) -> ScoreNoise:
    """The noise that the cell names; its shape is a setting: ``p``, or the ``staircase_epsilon``."""
    name = cell["noise"]
    return noise(name, **{argument: cell[setting] for argument, setting in _PARAMETERS.get(name, {}).items()})


def integrated_error(n: int, noise: ScoreNoise, sigma: float, law: ScoreLaw) -> float:
    """P_e of (3) without simulation, for any sigma (``recovery.order_probability_iid``)."""
    return 1 - order_probability_iid(n, noise, sigma, law)


def exact_row(method: str, measure: str, value: float) -> Row:
    """A row of a number that was not simulated."""
    return {"method": method, "measure": measure, "value": float(value), "error": 0.0}
