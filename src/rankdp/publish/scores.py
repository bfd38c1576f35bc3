"""Privatize scores: one holder's vector of bounded scores in, a noisy vector out, each score protected.

Neighbouring vectors differ in one score, by anything the bounds allow; how many scores there are, what they are called
and in which order they come is public. Bounds are public numbers that the caller knows beforehand; they are never read
from the scores. A refusal reveals something about a score, so it is for the holder alone; ``outside="clip"`` never
refuses a finite score.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankdp.checks import one_of
from rankdp.data.atomic import NewFile
from rankdp.data.score_files import check_ending, encoded, read_scores, scores_of_frame
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.scores.catalogue import score_mechanism
from rankdp.mechanisms.scores.grid import ScoreMechanism, check_bounds
from rankdp.privacy.bits import Bits, SecureBits, seeded
from rankdp.privacy.exact import Real
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.release import Release, released
from rankdp.types import Floats

Outside = Literal["refuse", "clip"]


def privatize_scores(
    x: Any,
    epsilon: Real | None = None,
    *,
    bounds: tuple[Real, Real] | None = None,
    noise: str = "laplace",
    delta: Real = 0,
    p: Real | None = None,
    gamma: Real | None = None,
    outside: Outside = "refuse",
    clamp_output: bool = False,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
) -> Release[Any]:
    """A noisy copy of a vector of scores, each of them protected.

    Parameters
    ----------
    x
        A sequence of numbers (the result is an array) or a mapping of names to numbers (the result is a dict).
    epsilon
        How much the release may reveal about one score: smaller is more private. Ball noise has no epsilon.
    bounds
        Two public numbers that every score lies between, known beforehand and never read from the scores.
    noise
        "laplace", "gaussian", "generalized-normal", "staircase", "joint-staircase" or "ball"; see
        ``rankdp.mechanisms.scores``.
    delta
        For gaussian noise, generalized-normal noise with p above 1, and ball noise.
    p
        The shape of generalized-normal or ball noise.
    gamma
        The first stair of staircase noise, as a share of the range.
    outside
        What happens to a score outside the bounds: "refuse", or "clip" to move it to the nearest bound.
    clamp_output
        Move noisy scores back into the bounds, which costs no privacy but biases their averages.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    """
    bits = seeded(bits, seed)
    _job(1, epsilon, bounds, noise, delta, p, gamma)  # refuses what has no guarantee before any score is looked at
    one_of("outside", outside, ("refuse", "clip"))
    if hasattr(x, "__arrow_c_stream__") and hasattr(x, "columns"):  # a table; a column alone has no columns
        table = scores_of_frame(x)
        x = dict(zip(table.names, table.scores.tolist(), strict=True))
    names = list(x) if isinstance(x, Mapping) else None
    scores = _numbers(list(x.values()) if isinstance(x, Mapping) else x, names)
    job = _job(len(scores), epsilon, bounds, noise, delta, p, gamma)
    inside, bits = _within(scores, job, outside, names), bits or SecureBits()
    with spending(ledger, job.guarantee, f"{job.name} noise on scores", bits) as charge:
        noisy = _draw(job, inside, clamp_output, bits)
        value = noisy if names is None else dict(zip(names, noisy.tolist(), strict=True))
        facts = {"scores": len(scores), "outside": outside, "clamp_output": clamp_output}
        release: Release[Any] = released(value, job.guarantee, job.name, {**job.parameters, **facts}, bits)
        charge.commit(release.provenance)
    return release


def privatize_scores_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    epsilon: Real | None = None,
    *,
    bounds: tuple[Real, Real] | None = None,
    noise: str = "laplace",
    delta: Real = 0,
    p: Real | None = None,
    gamma: Real | None = None,
    outside: Outside = "refuse",
    clamp_output: bool = False,
    item_column: str | None = None,
    score_column: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
) -> Release[Path]:
    """Privatize a file of names and scores (CSV, Parquet) into another (CSV, Parquet, JSON); rows keep their order.

    The guarantee and provenance go to TARGET.release.json. Nothing is left behind unless the whole run succeeds.

    Parameters
    ----------
    source
        The file to read.
    target
        The file to write. If it cannot be written, nothing is charged.
    epsilon, bounds, noise, delta, p, gamma, outside, clamp_output, ledger, bits
        As in ``privatize_scores``.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    item_column
        The column with the names, where it is not called item, name or id.
    score_column
        The column with the scores, where it is not called score or value.
    sheet, encoding
        The sheet of an Excel workbook with several, and the encoding of a text file that is not UTF-8.
    """
    bits = seeded(bits, seed)
    check_ending(target)
    _job(1, epsilon, bounds, noise, delta, p, gamma)  # refuses what has no guarantee before anything is read
    one_of("outside", outside, ("refuse", "clip"))
    table = read_scores(source, item_column, score_column, sheet=sheet, encoding=encoding)
    job = _job(len(table.scores), epsilon, bounds, noise, delta, p, gamma)
    inside, bits = _within(table.scores, job, outside, table.names), bits or SecureBits()
    facts = {
        "scores": len(table.scores),
        "outside": outside,
        "clamp_output": clamp_output,
        "columns_left_out": list(table.left_out),
    }
    what = f"{job.name} noise on scores, {target}"
    with NewFile(target, source=source) as file, spending(ledger, job.guarantee, what, bits) as charge:
        noisy = _draw(job, inside, clamp_output, bits)
        release = released(Path(target), job.guarantee, job.name, {**job.parameters, **facts}, bits)
        content = encoded(target, table, noisy)
        charge.leaves()
        file.write(content)
        file.promise(release.to_dict())
        file.keep()
        charge.commit(release.provenance)
    return release


def _job(count: int, epsilon: Any, bounds: Any, noise: str, delta: Any, p: Any, gamma: Any) -> ScoreMechanism:
    check_bounds(bounds)
    return score_mechanism(noise, bounds=bounds, epsilon=epsilon, delta=delta, p=p, gamma=gamma, count=count)


def _score_name(row: int, names: Any) -> str:
    return f"score {row + 1}" if names is None else f"the score of {names[row]!r}"


def _numbers(x: Any, names: Any) -> Floats:
    """The scores as floats, each a finite number."""
    if isinstance(x, (str, bytes)) or not (hasattr(x, "__len__") or hasattr(x, "__array__")):
        raise InputError(f"scores must be numbers or a mapping of names to numbers, got {type(x).__name__}")
    try:
        array = np.asarray(x)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError("scores must be one flat sequence of numbers, got a table or nested values")
    if not len(array):
        raise InputError("scores must hold at least one number, got none")
    if array.dtype.kind not in "iuf":
        array = np.array([_number(value, row, names) for row, value in enumerate(x)])
    scores = array.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(scores))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(f"{_score_name(row, names)} must be a finite number, got {scores[row]}")
    return scores


def _number(value: Any, row: int, names: Any) -> float:
    try:
        if isinstance(value, (str, bytes, bool, np.bool_, complex, np.complexfloating)):
            raise TypeError  # noqa: TRY301
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{_score_name(row, names)} must be a finite number, got {value!r}") from None


def _within(scores: Floats, job: ScoreMechanism, outside: str, names: Any) -> Floats:
    """The scores, refused or clipped where they leave the bounds."""
    low, high = float(job.grid.low), float(job.grid.high)
    if outside == "refuse":
        wrong = np.flatnonzero((scores < low) | (scores > high))
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                f"{_score_name(row, names)} must lie within the bounds {low:g} to {high:g}, got {scores[row]:g}; ",
                Setting("outside", "clip"),
                " moves such scores to the nearest bound (this message reveals something about the scores: do not "
                "publish it)",
            )
    return np.clip(scores, low, high)


def _draw(job: ScoreMechanism, scores: Floats, clamp_output: bool, bits: Bits) -> Floats:
    noisy = job.sample(scores, bits)
    return np.clip(noisy, float(job.grid.low), float(job.grid.high)) if clamp_output else noisy
