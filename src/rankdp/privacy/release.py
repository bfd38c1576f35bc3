"""A release: a value, its guarantee and its provenance. Nothing else, and above all nothing secret.

A *rehearsal* is the same draw from a seed. Anyone who knows the seed can remove the noise, so it has no guarantee,
and says so wherever it is shown or saved. So does an *exact* value, which has no noise at all.
"""

from __future__ import annotations

import datetime
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rankdp.errors import InputError
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import shown
from rankdp.privacy.guarantee import Guarantee
from rankdp.version import __version__

T = TypeVar("T")

REHEARSAL = (
    "REHEARSAL, NOT PRIVATE: drawn from seed {seed}; anyone who knows the seed can remove the noise. "
    "No guarantee is given."
)

EXACT = "NOT PRIVATE: counted without any noise, only for the holder of the data. No guarantee is given."


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which mechanism made a value, with which public parameters, by which version and when."""

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    version: str = ""
    when: str = ""
    exact: bool = False
    """Whether no noise was added."""

    @classmethod
    def now(cls, mechanism: str, parameters: Mapping[str, Any], bits: Bits | None) -> Provenance:
        """The provenance of a value drawn from ``bits`` at this moment, or of an exact one (None)."""
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        seed = None if bits is None else bits.seed
        return cls(mechanism, dict(parameters), seed, __version__, when, exact=bits is None)


@dataclass(frozen=True, slots=True)
class Release(Generic[T]):
    """What may be published; the functions of this library return it.

    Parameters
    ----------
    value
        The private value: ``Rankings``, a ``Leaderboard``, an ``Election`` or scores.
    guarantee
        What is promised; None for a rehearsal or an exact value, and only then.
    provenance
        Which mechanism made the value, with which public parameters, by which version and when.
    """

    value: T
    guarantee: Guarantee | None
    provenance: Provenance

    def __post_init__(self) -> None:
        if (self.guarantee is None) != (self.rehearsal or self.provenance.exact):
            raise InputError("a release must carry a guarantee and a rehearsal must not, got the opposite")

    @property
    def rehearsal(self) -> bool:
        """Whether the value was drawn from a seed."""
        return self.provenance.seed is not None

    def explain(self) -> str:
        """What is promised, in plain words."""
        if self.guarantee is None:
            return EXACT if self.provenance.exact else REHEARSAL.format(seed=self.provenance.seed)
        return self.guarantee.explain()

    def to_dict(self) -> dict[str, Any]:
        """The sidecar: guarantee and provenance, without the value."""
        source = self.provenance
        return {
            "rankdp": source.version,
            "guarantee": self.guarantee.to_dict() if self.guarantee else None,
            "rehearsal": {"seed": source.seed, "warning": self.explain()} if self.rehearsal else None,
            **({"exact": {"warning": self.explain()}} if source.exact else {}),
            "mechanism": source.mechanism,
            "parameters": dict(source.parameters),
            "when": source.when,
        }

    def __repr__(self) -> str:
        return f"{self.value!r}\n{self._line()}"

    def _repr_html_(self) -> str:
        show = getattr(self.value, "_repr_html_", lambda: f"<pre>{html.escape(repr(self.value))}</pre>")
        words = f"<p>{html.escape(self.explain())}</p>"
        return f"{words}{show()}" if self.guarantee is None else f"{show()}{words}"

    def _line(self) -> str:
        """What is promised, in one line."""
        made_by = self.provenance.mechanism
        if self.guarantee is None:
            what = "NOT PRIVATE" if self.provenance.exact else "REHEARSAL, NOT PRIVATE"
            how = "without noise" if self.provenance.exact else f"with seed {self.provenance.seed}"
            return f"{what}: {made_by} {how}; no guarantee is given"
        delta = f", delta {shown(self.guarantee.delta)}" if self.guarantee.delta else ""
        return f"Release ({made_by}): epsilon {shown(self.guarantee.epsilon)}{delta} for {self.guarantee.protects}"


def released(value: T, guarantee: Guarantee, mechanism: str, parameters: Mapping[str, Any], bits: Bits) -> Release[T]:
    """A value drawn from ``bits`` at this moment: with its guarantee, or marked as a rehearsal."""
    provenance = Provenance.now(mechanism, parameters, bits)
    return Release(value, guarantee if provenance.seed is None else None, provenance)
