"""Rank: a table of comparisons in, a published leaderboard out, with every vote protected.

| method | protect | what is released under the guarantee | what follows from it at no cost |
|---|---|---|---|
| wins | any | noisy half-wins (``mechanisms.votes.noisy_counts``) | ranks by wins |
| copeland | any | noisy leads of all pairs (``mechanisms.votes.noisy_counts``) | ranks by majorities won |
| bradley-terry | outcome | noisy half-wins; the design is public | log-strengths |
| bradley-terry | comparison, voter | a noisy table of pairs, or residuals (``board_estimators``) | log-strengths |

    check what is asked -> count the votes -> charge the ledger -> draw -> board

Everything that is refused is refused in the first two steps, where nothing is charged yet. ``board_estimators`` adds
the noise and makes draws of the true scores; the board is counted in these draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankdp.checks import one_of
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts
from rankdp.data.covariates import covariates_of
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.inference.normal import PRIOR
from rankdp.mechanisms.votes.noisy_counts import NoisyLeads, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits, seeded
from rankdp.privacy.exact import Real
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.release import Release, released
from rankdp.privacy.zcdp import rho_of
from rankdp.publish import board_estimators, leaderboard
from rankdp.publish.board_estimators import DENSE_UP_TO, PAIRINGS, Estimate, HiddenDesign, Public
from rankdp.publish.covariate_scores import CovariateVotes
from rankdp.publish.leaderboard import ITEMS_FROM_VOTES, Leaderboard
from rankdp.publish.limits import check_noise, checked_delta, checked_epsilon, checked_prior
from rankdp.publish.voter_bound import BOUNDS, SHARE, UnboundedVotes
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.rankers.links import link as known_link

METHODS = ("bradley-terry", "wins", "copeland")
SCALES = ("log-strength", "elo")


def rank(
    votes: Comparisons | Any,
    epsilon: Real,
    *,
    protect: str,
    method: str = "bradley-terry",
    max_per_voter: int | None = None,
    top: int | None = None,
    scale: str = "log-strength",
    delta: Real = 0,
    prior: float = PRIOR,
    link: str = "logistic",
    pairing: str = "unknown",
    level: float = 0.95,
    covariates: str | Sequence[str] | None = None,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    seed: int | None = None,
    deliver: Callable[[Release[Leaderboard], Callable[[], None]], None] | None = None,
    **reading: Any,
) -> Release[Leaderboard]:
    """A private leaderboard of the compared items.

    Parameters
    ----------
    votes
        ``Comparisons``, or a path or table that ``Comparisons.of`` opens with the options in ``reading``.
    epsilon
        How much the leaderboard may reveal about one unit of ``protect``: smaller is more private. 0.1 is read as 1/10.
    protect
        What is protected: "comparison" (one comparison, replaced by any other), "outcome" (who won one comparison; who
        was compared with whom is public) or "voter" (all comparisons of one voter). There is no default.
    method
        "bradley-terry" for log-strengths, "wins" for wins (which Cai, Chakraborty and Wang call Copeland), or
        "copeland" for how many others an item beats more often than it loses to them.
    max_per_voter
        With ``protect="voter"`` the number of comparisons of each voter that count fully: a voter with more has less
        weight on each, so that a voter never counts for more than this. If not given, 3% of epsilon buys a noisy
        histogram of how many comparisons voters have, and the bound with the least expected error is used, at most
        1,024; the leaderboard states it. Votes that are bounded already are refused for other units.
    top
        Also report which items are in the top k, with their probabilities.
    scale
        For Bradley-Terry scores: "log-strength", or "elo" (1000 + 400/ln 10 times the log-strength).
    delta
        Above 0, wins get Gaussian instead of Laplace noise, for (epsilon, delta)-differential privacy.
    prior
        The standard deviation of log-strengths in the prior of Bradley-Terry scores, from 0.01 to 10. With 2 an item
        one deviation above the average wins 88% of its comparisons with an average one.
    link
        How a difference of scores becomes a chance to win: "logistic", "secant" or "best-of-three". Only the logistic
        link has intervals.
    pairing
        How pairs were chosen: "unknown", "random" (you state that every pair was drawn at random; the spread of
        strengths is then learned, which lowers the error), or "matched" (items of similar strength met more often; if
        who met whom is secret and there are many items, scores have no intervals). Scores depend on it, privacy does
        not.
    level
        The confidence of the intervals, between 0 and 1.
    covariates
        Covariates of the comparisons, whose effect is taken out of the scores, with their public bounds:
        "length_a-length_b:500,position", or a list of such strings. They are public, so they need
        ``protect="outcome"``.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    seed
        For a rehearsal without a guarantee: short for ``bits=SeededBits(seed)``.
    deliver
        Called with the release and a function, while the charge is still held. Call the function before the first byte
        leaves the process: a failure before that gives the charge back (``rankdp.privacy.ledger.spending``).
    **reading
        How to open ``votes``: ``items`` (the public list of items) or ``items_from_data=True`` must be among them; see
        ``Comparisons.read``.

    Returns
    -------
    Release[Leaderboard]
        The leaderboard with its guarantee and provenance.
    """
    bits = seeded(bits, seed)
    asked = {"top": top, "scale": scale, "pairing": pairing, "level": level}
    request = BoardRequest.of(epsilon, protect, method, max_per_voter, delta, prior, link, **asked)
    counted = request.counted(Comparisons.of(votes, **reading), covariates)
    return paid(counted, ledger, bits, deliver)


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """A checked request for a leaderboard; all of it is public. Parameters as in ``rank``."""

    epsilon: Fraction
    protection: Protection
    method: str
    delta: Fraction
    prior: float
    link: Link
    top: int | None = None
    scale: str = "log-strength"
    pairing: str = "unknown"
    level: float = 0.95
    chooses_bound: bool = False
    """Whether the bound per voter is chosen when the noise is drawn."""

    @classmethod
    def of(
        cls,
        epsilon: Real,
        protect: str,
        method: str = "bradley-terry",
        max_per_voter: int | None = None,
        delta: Real = 0,
        prior: float = PRIOR,
        link: str = "logistic",
        **asked: Any,
    ) -> BoardRequest:
        """Check the parameters of ``rank`` before any vote is read."""
        chooses = protect == "voter" and max_per_voter is None
        protection = Protection.of(protect, 1 if chooses else max_per_voter)
        exact, loss = checked_epsilon(epsilon), checked_delta(delta)
        deviation = checked_prior(prior)
        request = cls(exact, protection, method, loss, deviation, known_link(link), chooses_bound=chooses, **asked)
        request._check_choices()
        request._check_numbers()
        return request

    def _check_numbers(self) -> None:
        """Refuse numbers that the arithmetic after the charge could not take (``publish.limits``)."""
        check_noise(self.protection.moved, self.epsilon)

    def _check_choices(self) -> None:
        """Refuse unknown names, and choices that exclude each other."""
        one_of("method", self.method, METHODS)
        one_of("pairing", self.pairing, PAIRINGS)
        if self.scale not in SCALES or (self.scale == "elo" and self.method != "bradley-terry"):
            raise InputError(
                Setting("scale"),
                f" must be log-strength, or elo with bradley-terry, got {self.scale!r} with {self.method}",
            )
        if self.method != "bradley-terry" and (
            self.prior != PRIOR or self.link is not LOGISTIC or self.pairing != "unknown"
        ):
            raise InputError(
                Setting("prior"),
                ", ",
                Setting("link"),
                " and ",
                Setting("pairing"),
                " need ",
                Setting("method", "bradley-terry"),
                ", got ",
                Setting("method", self.method),
            )

    def hidden_design(self, epsilon: Fraction) -> HiddenDesign:
        """How scores are released where the design is hidden, with this epsilon."""
        return HiddenDesign(self.protection, epsilon, self.delta, self.pairing, self._prior, self.link)

    @property
    def _prior(self) -> float | None:
        """The prior's deviation; None where it is integrated, because pairs were drawn at random."""
        return None if self.pairing == "random" else self.prior

    def counted(
        self, votes: Comparisons, covariates: str | Sequence[str] | None = None
    ) -> CountedVotes | CovariateVotes:
        """The votes counted, or read one by one where they have covariates.

        Parameters
        ----------
        votes
            The votes.
        covariates
            As in ``rank``.
        """
        if covariates is None:
            return self.count(votes)
        wanted = covariates_of(covariates)
        if not self.protection.design_public:
            raise Unsupported(
                Setting("covariates"),
                " are public, so they need ",
                Setting("protect", "outcome"),
                ", got ",
                Setting("protect", self.protection.unit),
            )
        if self.method != "bradley-terry" or self.delta or self.link is not LOGISTIC or self.pairing == "random":
            raise Unsupported(
                Setting("covariates"),
                " need the logistic Bradley-Terry model, delta 0 and a fixed prior, not ",
                Setting("pairing", "random"),
            )
        return CovariateVotes.of(
            prepared(votes, self.protection),
            wanted,
            self.protection,
            self.epsilon,
            prior=self.prior,
            top=self.top,
            scale=self.scale,
            level=self.level,
        )

    def count(self, votes: Comparisons) -> CountedVotes:
        """Count the votes. Whatever is refused because of them is refused here, before anything is charged."""
        if self.chooses_bound and votes.per_voter is not None:
            return replace(self, protection=replace(self.protection, moved=votes.per_voter), chooses_bound=False).count(
                votes
            )
        ready = prepared(votes, self.protection)
        request = replace(self, protection=replace(self.protection, drops=ready.drops))
        warnings = _item_warnings(ready, self.protection)
        if not self.chooses_bound:
            request._check_items(len(ready.items))
            return CountedVotes(request, ready.count(), warnings)
        bounds = request._possible_bounds(len(ready.items))
        counts = votes.count_for(bounds)
        return CountedVotes(request, UnboundedVotes(counts, votes.load_counts()), warnings)

    def _possible_bounds(self, items: int) -> list[int]:
        """The bounds per voter that may be chosen: those with which a leaderboard can be made."""
        possible, refusal = [], None
        for bound in BOUNDS:
            try:
                replace(self, protection=replace(self.protection, moved=bound))._check_items(items)
                possible.append(bound)
            except InputError as problem:
                refusal = refusal or problem
        if refusal and not possible:
            raise refusal
        return possible

    def _check_items(self, items: int) -> None:
        """Refuse what is not possible for this many items, before anything is counted or charged."""
        self._check_numbers()  # again, for a category's part of epsilon
        leaderboard.check_request(items, self.level, self.top)
        if self.method == "copeland" and items > DENSE_UP_TO:
            raise Unsupported(
                f"majorities are counted for all pairs of at most {DENSE_UP_TO:,} items: use ",
                Setting("method", "wins"),
                f", got {items:,} items",
            )
        if self.method != "bradley-terry":
            return
        if self.protection.design_public:
            if self.link is not LOGISTIC:
                raise Unsupported(
                    "wins are sufficient for the logistic link only: protect comparisons instead, got ",
                    Setting("link", self.link.name),
                )
            return
        hidden = self.hidden_design(self.epsilon * (1 - SHARE) if self.chooses_bound else self.epsilon)
        if hidden.kind(items) != "objective":  # nor is it with more comparisons
            return
        if self.delta:
            raise Unsupported(
                "objective perturbation has no Gaussian noise: use ",
                Setting("delta", 0),
                f" for links other than the logistic one, for more than {DENSE_UP_TO:,} items, and for ",
                Setting("pairing", "matched"),
                " with a hidden design",
            )
        hidden.objective(items).check()

    def scores(self, votes: PairCounts, public: Public, epsilon: Fraction, bits: Bits) -> Estimate:
        """The scores, drawn with ``epsilon`` by the method's mechanism."""
        if self.method == "bradley-terry" and not self.protection.design_public:
            return self.hidden_design(epsilon).draw(votes, public, bits)
        if self.method == "copeland":
            return board_estimators.by_majorities(votes, public, NoisyLeads(self.protection, epsilon, self.delta), bits)
        noisy = NoisyWins(self.protection, epsilon, self.delta)
        if self.method == "wins":
            return board_estimators.by_own_wins(noisy.counted(votes), public, noisy, bits)
        return board_estimators.from_wins(public, noisy, noisy.counted(votes), self._prior, bits)


@dataclass(frozen=True, slots=True)
class CountedVotes:
    """The secret counts, for several bounds per voter if one must be chosen, and the request."""

    request: BoardRequest
    votes: PairCounts | UnboundedVotes
    warnings: list[str]

    @property
    def what(self) -> str:
        """The release in a few words, for the ledger."""
        return f"rank by {self.request.method}"

    @property
    def guarantee(self) -> Guarantee:
        """What the leaderboard will promise."""
        asked, rho = self.request, None
        if asked.delta:  # zCDP: rho of the Gaussian noise, plus eps^2/2 for the part without delta
            weighing = asked.epsilon * SHARE if asked.chooses_bound else Fraction(0)
            gaussian = rho_of(asked.epsilon - weighing, asked.delta)
            rho = math.nextafter(float(gaussian + weighing**2 / 2), math.inf)
        return Guarantee(asked.protection.protects, asked.epsilon, asked.delta, local=False, rho=rho)

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; the caller has charged ``guarantee``."""
        asked, votes, epsilon, board = self.request, self.votes, self.request.epsilon, self
        if isinstance(votes, UnboundedVotes):
            bounded = votes.bounded(asked.protection, epsilon, asked.delta, bits)
            asked, votes = replace(asked, protection=bounded.protection), bounded.counts
            epsilon = epsilon * (1 - SHARE)
            board = replace(self, warnings=[*self.warnings, bounded.description])
        protection = asked.protection
        public = Public(
            votes.items,
            int(votes.halves.sum()) / (2 * votes.steps) if protection.count_public else None,
            votes if protection.design_public else None,
        )
        drawn = asked.scores(votes, public, epsilon, bits)
        parameters = {
            "protect": protection.unit,
            "max_per_voter": protection.moved if protection.unit == "voter" else None,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "items": len(public.items),
            **({"pairing": asked.pairing} if asked.method == "bradley-terry" else {}),
            **drawn.parameters,
        }
        return released(board._board(public, drawn), self.guarantee, asked.method, parameters, bits)

    def _board(self, public: Public, drawn: Estimate) -> Leaderboard:
        """The leaderboard, from released and public numbers only."""
        asked: Any = {
            "level": self.request.level,
            "score_name": {"bradley-terry": "score", "wins": "wins", "copeland": "majorities"}[self.request.method],
            "top": self.request.top,
            "warnings": [*self.warnings, *board_estimators.design_warnings(public), *drawn.warnings],
        }
        if drawn.draws is None:
            board = leaderboard.without_intervals(public.items, drawn.scores, **asked)
        else:
            board = leaderboard.build(public.items, drawn.draws, **asked)
        if drawn.table is not None:
            order = [public.items.index(item) for item in board.items]
            board = replace(board, table=drawn.table[np.ix_(order, order)])
        return board.as_elo() if self.request.scale == "elo" else board


def prepared(votes: Comparisons, protection: Protection) -> Comparisons:
    """The votes as this unit of protection must count them; refused where no guarantee would hold.

    A weight depends on how many comparisons a voter has. One replaced comparison can go from one voter to another and
    change the weights of all comparisons of both, so a bounded table is for ``protect="voter"`` only. There the smaller
    of c and ``max_per_voter`` applies.
    """
    if protection.unit == "voter":
        return votes.bound(protection.moved)
    if votes.per_voter is not None:
        raise InputError(
            f"votes are bounded to {votes.per_voter} per voter, by weights that depend on all rows of a voter, so that "
            "one changed comparison can move several: use ",
            Setting("protect", "voter"),
            ", got ",
            Setting("protect", protection.unit),
        )
    if not protection.design_public:
        return votes
    if votes.drops_both_bad:
        raise InputError(
            Setting("both_bad", "drop"),
            " makes public which votes were both bad, which ",
            Setting("protect", "outcome"),
            " counts as secret: use ",
            Setting("both_bad", "tie"),
            ", ",
            Setting("protect", "comparison"),
            " or ",
            Setting("protect", "voter"),
        )
    return votes.requiring_outcomes()


def _item_warnings(votes: Comparisons, protection: Protection) -> list[str]:
    """A warning if the list of items comes from secret votes: the guarantee does not cover it."""
    if not votes.items_from_data or protection.design_public:
        return []
    return [ITEMS_FROM_VOTES]
