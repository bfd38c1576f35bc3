"""Boards by category: one leaderboard for each value of a column (a language, a kind of task), under one guarantee.

Board k is drawn from the rows of category k, by ``rank`` with its own epsilon_k (and delta_k) and independent
noise. The list of categories is public: the caller gives it, or accepts that the votes reveal it. The *category of a
row* is part of the row, and as secret as the row.

Proof. Let two tables be neighbours, and T_k the rows of category k. A board whose T_k are equal loses nothing; the
losses of the others add up, as their noise is independent. What can differ depends on the unit of protection:

- *outcome*: categories are public, like the items of a comparison. One T_k differs, by one outcome.
- *comparison*: a row is replaced by any other, of any category. Inside one category one T_k differs, by one row. Else
  T_a loses a row and T_b gains one: to board a the row was replaced by one that is left out, to board b the other way
  round. Every board is protected against that (``mechanisms.votes.protection``: ``drops``), and keeps the number of its
  comparisons secret. So at most two boards differ.
- *voter*: a voter may be in every category. Each T_k differs by the rows of one voter, weighed for its board; all
  boards may differ.

So with t = 1, 2 or the number of categories the release is (epsilon, delta)-DP with epsilon the sum of the t largest
epsilon_k, and delta the sum of the t largest delta_k; rho of zCDP adds up in the same way. Given epsilon and weights
w_k, board k gets epsilon_k = epsilon w_k / (the sum of the t largest w): with equal weights all of it under *outcome*,
half of it under *comparison*, however many categories there are, and an equal part under *voter*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rankdp.data.cells import check_items, natural
from rankdp.data.comparisons import Comparisons
from rankdp.data.vote_columns import is_blank
from rankdp.errors import InputError, Setting
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, seeded
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.release import Release, released
from rankdp.publish.covariate_scores import CovariateVotes
from rankdp.publish.leaderboard import CATEGORIES_FROM_VOTES, CATEGORIES_PUBLIC, Leaderboard
from rankdp.publish.rank import BoardRequest, CountedVotes
from rankdp.report.notebook import Displayable
from rankdp.report.plots import intervals_figure
from rankdp.report.results import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ASKED = ("method", "max_per_voter", "top", "scale", "delta", "prior", "link", "pairing", "level")

Categories = Iterable[Any] | Mapping[Any, Real] | None


@dataclass(frozen=True, slots=True, repr=False)
class Boards(Displayable):
    """A leaderboard for each category.

    Parameters
    ----------
    by
        The column of the categories.
    boards
        The leaderboard of each category.
    epsilons
        The epsilon of each board.
    """

    by: str
    boards: Mapping[str, Leaderboard]
    epsilons: Mapping[str, Fraction]

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per item and category."""
        return [{"category": name, **record} for name, board in self.boards.items() for record in board.rows()]

    def results(self) -> ResultTable:
        """The items of all categories, one category after the other."""
        tables = {name: board.results() for name, board in self.boards.items()}
        rows = [replace(row, name=f"{row.name} ({name})") for name, table in tables.items() for row in table.rows]
        return replace(next(iter(tables.values())), rows=rows)

    def headline(self) -> str:
        """Who leads in each category."""
        return " ".join(f"{name}: {board.headline()}" for name, board in self.boards.items())

    def plot(self, title: str = "") -> Figure:
        """The boards one above the other, drawn by matplotlib.

        Parameters
        ----------
        title
            The heading above them.
        """
        figure = intervals_figure([(name, board.results()) for name, board in self.boards.items()])
        figure.suptitle(title)
        return figure


def rank_by(
    votes: Comparisons | Any,
    epsilon: Real,
    *,
    by: str,
    protect: str,
    categories: Categories = None,
    categories_from_data: bool = False,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
    **options: Any,
) -> Release[Boards]:
    """A private leaderboard for each category of the votes, all of them under one guarantee.

    Parameters
    ----------
    votes, epsilon, protect, ledger, bits
        As in ``rank``; epsilon is for all boards together, and the ledger is charged once. With ``protect="voter"``
        ``max_per_voter`` comparisons of a voter count fully in each category. With ``protect="outcome"`` the
        categories of comparisons are public.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    by
        The column with each row's category.
    categories
        The public list of categories; a mapping gives each a weight, and epsilon is divided in proportion to the
        weights. Rows of other categories are refused, or left out with ``on_problem="drop"``.
    categories_from_data
        Take the categories from the votes instead, which makes public which ones occur.
    **options
        The other options of ``rank``.

    Returns
    -------
    Release[Boards]
        The leaderboards with their guarantee and provenance.
    """
    bits = seeded(bits, seed)
    asked = {name: options.pop(name) for name in _ASKED if name in options}
    covariates = options.pop("covariates", None)
    request = BoardRequest.of(epsilon, protect, **asked)
    opened = Comparisons.of(votes, **options)
    counted = CountedBoards.of(request, opened, by, categories, categories_from_data, covariates)
    return paid(counted, ledger, bits)


@dataclass(frozen=True, slots=True)
class CountedBoards:
    """The secret counts of every category, and the request."""

    by: str
    protection: Protection
    parts: Mapping[str, CountedVotes | CovariateVotes]
    from_data: bool

    @classmethod
    def of(
        cls,
        request: BoardRequest,
        votes: Comparisons,
        by: str,
        categories: Categories = None,
        categories_from_data: bool = False,
        covariates: Any = None,
    ) -> CountedBoards:
        """Count the votes of every category; all that is refused is refused here.

        Parameters
        ----------
        request
            The request for each board, with the epsilon of all of them.
        votes
            The votes.
        by, categories, categories_from_data, covariates
            As in ``rank_by``.
        """
        if (categories is None) == (not categories_from_data):
            raise InputError(
                Setting("categories"),
                " must list the public categories, or ",
                Setting("categories_from_data", True),
                " must allow publishing the ones that occur; got " + ("neither" if categories is None else "both"),
            )
        weights = _weights(votes, by, categories)
        parts = {}
        for name, share in split(weights, request.protection.unit).items():
            own = replace(request, epsilon=request.epsilon * share, delta=request.delta * share)
            parts[name] = own.counted(votes.within(by, name), covariates)
        return cls(by, request.protection, parts, categories_from_data)

    @property
    def what(self) -> str:
        """The release in a few words, for the ledger."""
        return f"{next(iter(self.parts.values())).what}, {len(self.parts)} categories"

    @property
    def guarantee(self) -> Guarantee:
        """What all leaderboards together will promise."""
        promised = [part.guarantee for part in self.parts.values()]
        unit = self.protection.unit
        rhos = [guarantee.rho for guarantee in promised if guarantee.rho is not None]
        return Guarantee(
            self.protection.protects,
            combined_loss([guarantee.epsilon for guarantee in promised], unit),
            combined_loss([guarantee.delta for guarantee in promised], unit),
            local=False,
            rho=math.nextafter(float(combined_loss([Fraction(rho) for rho in rhos], unit)), math.inf) if rhos else None,
        )

    def draw(self, bits: Bits) -> Release[Boards]:
        """Add the noise; the caller has charged ``guarantee``."""
        drawn = {name: part.draw(bits) for name, part in self.parts.items()}
        boards = {name: self._warned(release.value) for name, release in drawn.items()}
        epsilons = {name: part.guarantee.epsilon for name, part in self.parts.items()}
        parameters = {
            "by": self.by,
            "categories": {name: dict(release.provenance.parameters) for name, release in drawn.items()},
        }
        mechanism = f"{next(iter(drawn.values())).provenance.mechanism} by category"
        return released(Boards(self.by, boards, epsilons), self.guarantee, mechanism, parameters, bits)

    def _warned(self, board: Leaderboard) -> Leaderboard:
        """The board, with a warning about what the guarantee does not cover."""
        notes = []
        if self.protection.design_public:
            notes = [CATEGORIES_PUBLIC]
        elif self.from_data:
            notes = [CATEGORIES_FROM_VOTES]
        return replace(board, warnings=(*board.warnings, *notes))


def combined_loss(losses: list[Fraction], unit: str) -> Fraction:
    """The privacy loss of all boards: the sum of the largest ones, as many as one change can reach (see the module).

    Parameters
    ----------
    losses
        The loss of each board.
    unit
        The unit of protection.
    """
    reached = {"outcome": 1, "comparison": 2, "voter": len(losses)}[unit]
    return sum(sorted(losses, reverse=True)[:reached], Fraction(0))


def split(weights: Mapping[str, Fraction], unit: str) -> dict[str, Fraction]:
    """Each category's share of epsilon, in proportion to its weight, so that exactly all of epsilon is used.

    Parameters
    ----------
    weights
        The weight of each category, above 0.
    unit
        The unit of protection.
    """
    whole = combined_loss(list(weights.values()), unit)
    return {name: weight / whole for name, weight in weights.items()}


def _weights(votes: Comparisons, by: str, categories: Categories) -> dict[str, Fraction]:
    """The categories with their weights, 1 each by default; rows of others are refused or skipped."""
    found = votes.categories(by)
    given = sorted((name for name in found if name is not None and not is_blank(name)), key=natural)
    if categories is not None:
        given = list(categories)
    if isinstance(categories, str) or not given:
        raise InputError(Setting("categories"), f" must list at least one category, got {categories!r}")
    names = check_items(given)
    if votes.on_problem == "refuse" and (others := found - set(names)):
        other = min(others, key=str)
        given_names = f"one of the {len(names)} categories" if len(names) > 1 else "the category"
        problem = f"{other!r} is not {given_names} given" if other else "a cell is blank"
        raise InputError(
            f"{votes.table.what}: in the column {by!r} {problem} (",
            Setting("on_problem", "drop"),
            " leaves such rows out)",
        )
    weights = categories if isinstance(categories, Mapping) else {}
    return {
        name: positive(weights.get(key, 1), f"the weight of the category {name!r}")
        for key, name in zip(given, names, strict=True)
    }
