"""Rank: a table of comparisons in, a published leaderboard out, with every vote protected.

| method | protect | what is released under the guarantee | what follows from it, for free |
|---|---|---|---|
| wins | any | noisy half-wins (``mechanisms.votes.noisy_counts``) | ranks by wins |
| copeland | any | noisy leads of all pairs (``mechanisms.votes.noisy_counts``) | ranks by majorities won |
| bradley-terry | outcome | noisy half-wins; the design is public | scores by maximum likelihood with a ridge |
| bradley-terry | comparison, voter | differences, or scores, and facts of the design (``secret_designs``) | scores |

    check what is asked -> count the votes -> charge the ledger -> draw -> board

Everything that is refused is refused in the first two steps, where nothing is charged yet; ``vote_scores`` draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rankdp.checks import one_of
from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts
from rankdp.data.covariates import covariates_of
from rankdp.errors import InputError, Setting, Unsupported
from rankdp.mechanisms.votes.noisy_counts import NoisyLeads, NoisyWins
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.bits import Bits
from rankdp.privacy.exact import Real, positive
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, paid
from rankdp.privacy.release import Release, released
from rankdp.privacy.zcdp import rho_of
from rankdp.publish import leaderboard, vote_scores
from rankdp.publish.covariate_scores import CovariateVotes
from rankdp.publish.leaderboard import Leaderboard
from rankdp.publish.limits import check_noise, check_ridge, checked_delta, checked_epsilon
from rankdp.publish.score_errors import SPREAD
from rankdp.publish.secret_designs import DESIGNS, SecretDesign
from rankdp.publish.vote_scores import Drawn, Public, count_cost
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
    ridge: float | None = None,
    link: str = "logistic",
    design: str = "chance",
    level: float = 0.95,
    covariates: str | Sequence[str] | None = None,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
    deliver: Callable[[Release[Leaderboard], Callable[[], None]], None] | None = None,
    **reading: Any,
) -> Release[Leaderboard]:
    """A private leaderboard of the compared items.

    Parameters
    ----------
    votes
        ``Comparisons``, or a path or table that ``Comparisons.of`` opens with the options in ``reading``.
    epsilon
        How much the leaderboard may give away about one ``protect``: smaller is more private. Exact: 0.1 is a tenth.
    protect
        What is protected: "comparison" (one comparison, replaced by any other), "outcome" (who won one comparison; who
        was compared with whom is public) or "voter" (all comparisons of one voter). There is no default.
    method
        "bradley-terry" for log-strengths, "wins" for wins, or "copeland" for how many others an item beats more often
        than it loses to them.
    max_per_voter
        With ``protect="voter"`` the number of comparisons of each voter that count fully: a voter with more has less
        weight on each, so that a voter never counts for more than this. If not given, 3% of epsilon goes into how much
        voters vote, and the bound of least expected error is taken, at most 1,024; the leaderboard says which. Votes
        that are bounded already are refused for other units.
    top
        Also say which items are in the top so many, and how surely.
    scale
        Of Bradley-Terry scores: "log-strength", or "elo" for 1000 + 400/ln 10 times that.
    delta
        Above 0, wins get Gaussian instead of Laplace noise, for (epsilon, delta)-differential privacy.
    ridge
        The weight that pulls Bradley-Terry scores to the middle; chosen from public numbers where it is not given. At
        least a millionth of max(1, c/epsilon) and at most a million times that, c being ``max_per_voter`` or 1.
    link
        How a difference of scores becomes a chance to win: "logistic", "secant" or "best-of-three".
    design
        What is known of who was compared with whom, where that is secret: "chance" (pairs were drawn without regard to
        strength, some items perhaps more often than others), "even" (every pair was equally likely) or "any" (nothing
        is known; strong ones may have met strong ones). Scores rest on it, privacy does not.
    level
        The confidence of the intervals, between 0 and 1.
    covariates
        Covariates of the comparisons, whose effect is taken out of the scores, with their public bounds:
        "length_a-length_b:500,position", or a list of such words. They are public, so they need ``protect="outcome"``.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    deliver
        Called with the release, and with a function to call before its first byte leaves the process, while the charge
        is still held: what fails before that gives the charge back (``rankdp.privacy.ledger.spending``).
    **reading
        How to open ``votes``: ``items`` (the public list of items) or ``items_from_data=True`` must be among them; see
        ``Comparisons.read``.

    Returns
    -------
    Release[Leaderboard]
        The leaderboard with its guarantee and provenance.
    """
    asked = {"top": top, "scale": scale, "design": design, "level": level}
    request = BoardRequest.of(epsilon, protect, method, max_per_voter, delta, ridge, link, **asked)
    counted = request.counted(Comparisons.of(votes, **reading), covariates)
    return paid(counted, ledger, bits, deliver)


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """What a leaderboard is asked to be, checked; all of it is public. The words are those of ``rank``."""

    epsilon: Fraction
    protection: Protection
    method: str
    delta: Fraction
    ridge: float | None
    link: Link
    top: int | None = None
    scale: str = "log-strength"
    design: str = "chance"
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
        ridge: float | None = None,
        link: str = "logistic",
        **asked: Any,
    ) -> BoardRequest:
        """Check the words of ``rank``, before any vote is read."""
        chooses = protect == "voter" and max_per_voter is None
        protection = Protection.of(protect, 1 if chooses else max_per_voter)
        exact, loss = checked_epsilon(epsilon), checked_delta(delta)
        pull = None if ridge is None else float(positive(ridge, "ridge"))
        request = cls(exact, protection, method, loss, pull, known_link(link), chooses_bound=chooses, **asked)
        request._check_words()
        request._check_numbers()
        return request

    def _check_numbers(self) -> None:
        """Refuse numbers that the arithmetic after the charge could not take (``publish.limits``)."""
        check_noise(self.protection.moved, self.epsilon)
        if self.ridge is not None:
            check_ridge(self.ridge, self.protection.moved, self.epsilon)

    def _check_words(self) -> None:
        """Refuse names that are not known, or do not go together."""
        one_of("method", self.method, METHODS)
        one_of("design", self.design, DESIGNS)
        if self.scale not in SCALES or (self.scale == "elo" and self.method != "bradley-terry"):
            raise InputError(
                Setting("scale"),
                f" must be log-strength, or elo with bradley-terry, got {self.scale!r} with {self.method}",
            )
        if self.method != "bradley-terry" and (self.ridge is not None or self.link is not LOGISTIC):
            raise InputError(
                Setting("ridge"),
                " and ",
                Setting("link"),
                " go with ",
                Setting("method", "bradley-terry"),
                " only, got ",
                Setting("method", self.method),
            )

    def secret_design(self, epsilon: Fraction) -> SecretDesign:
        """How scores are had where the design is secret, for what of epsilon is left for them."""
        return SecretDesign(self.protection, epsilon, self.delta, self.design, self.ridge, self.link)

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
                " are public, so they go with ",
                Setting("protect", "outcome"),
                " only, got ",
                Setting("protect", self.protection.unit),
            )
        if self.method != "bradley-terry" or self.delta or self.link is not LOGISTIC:
            raise Unsupported(Setting("covariates"), " go with the logistic Bradley-Terry model and delta 0 only")
        return CovariateVotes.of(
            _prepared(votes, self.protection),
            wanted,
            self.protection,
            self.epsilon,
            ridge=self.ridge,
            top=self.top,
            scale=self.scale,
            level=self.level,
        )

    def count(self, votes: Comparisons) -> CountedVotes:
        """Count the votes; all that is refused because of them is refused here, where nothing is charged yet."""
        if self.chooses_bound and votes.per_voter is not None:
            return replace(self, protection=replace(self.protection, moved=votes.per_voter), chooses_bound=False).count(
                votes
            )
        prepared = _prepared(votes, self.protection)
        request = replace(self, protection=replace(self.protection, drops=prepared.drops))
        warnings = _item_warnings(prepared, self.protection)
        if not self.chooses_bound:
            request._check_items(len(prepared.items))
            return CountedVotes(request, prepared.count(), warnings)
        bounds = request._possible_bounds(len(prepared.items))
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
        """Refuse what cannot be had for so many items, before anything is counted or charged."""
        self._check_numbers()  # again, for a category's part of epsilon
        leaderboard.check_request(items, self.level, self.top)
        if self.method == "copeland" and items > leaderboard.DENSE_UP_TO:
            raise Unsupported(
                f"majorities are counted for all pairs of at most {leaderboard.DENSE_UP_TO:,} items: use ",
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
        chosen = self.epsilon * SHARE if self.chooses_bound else 0
        self.secret_design(self.epsilon - chosen - count_cost(self.protection, self.epsilon)).check(items)

    def scores(self, votes: PairCounts, public: Public, epsilon: Fraction, bits: Bits) -> Drawn:
        """The scores under noise that is worth ``epsilon``, by the method's mechanism."""
        if self.method == "bradley-terry" and not self.protection.design_public:
            return self.secret_design(epsilon).draw(votes, public, bits)
        if self.method == "copeland":
            return vote_scores.by_majorities(votes, public, NoisyLeads(self.protection, epsilon, self.delta), bits)
        noisy = NoisyWins(self.protection, epsilon, self.delta)
        if self.method == "wins":
            return vote_scores.by_wins(votes.half_wins, public, noisy, bits)
        return vote_scores.from_wins(public, noisy, votes.half_wins, self.ridge, self.link, bits)


@dataclass(frozen=True, slots=True)
class CountedVotes:
    """The secret counts, perhaps for several bounds per voter, and what is asked of them."""

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
        if asked.delta:  # the zCDP of Gaussian noise, and of what is pure beside it: eps^2/2
            counting = count_cost(asked.protection, asked.epsilon)
            weighing = asked.epsilon * SHARE if asked.chooses_bound else Fraction(0)
            gaussian = rho_of(asked.epsilon - counting - weighing, asked.delta)
            rho = math.nextafter(float(gaussian + counting**2 / 2 + weighing**2 / 2), math.inf)
        return Guarantee(asked.protection.protects, asked.epsilon, asked.delta, local=False, rho=rho)

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; the caller has charged ``guarantee``."""
        asked, votes, epsilon, sampling = self.request, self.votes, self.request.epsilon, 1.0
        board = self
        if isinstance(votes, UnboundedVotes):
            bounded = votes.bounded(asked.protection, epsilon, asked.delta, bits)
            asked, votes = replace(asked, protection=bounded.protection), bounded.counts
            epsilon, sampling = epsilon * (1 - SHARE), bounded.sampling
            board = replace(self, warnings=[*self.warnings, bounded.said])
        size = int(votes.halves.sum()) // 2  # every comparison gives two half-wins, whatever its outcome
        exact = bool(asked.delta)  # the guarantee states the rho of what counting leaves
        public, spent = vote_scores.size(votes.items, size, asked.protection, asked.epsilon, bits, gradual=not exact)
        design = votes if asked.protection.design_public else None
        public = replace(public, sampling=sampling, design=design)
        drawn = asked.scores(votes, public, epsilon - spent, bits)
        parameters = {
            "protect": asked.protection.unit,
            "max_per_voter": asked.protection.moved if asked.protection.unit == "voter" else None,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "items": len(public.items),
            **({"noisy_comparisons": public.comparisons} if spent else {}),
            **drawn.parameters,
        }
        return released(board._board(public, drawn), self.guarantee, asked.method, parameters, bits)

    def _board(self, public: Public, drawn: Drawn) -> Leaderboard:
        """The leaderboard, from released and public numbers only."""
        method = self.request.method
        spread = {
            "bradley-terry": None,
            "wins": SPREAD * (public.degree / 4) ** 2 + 1,
            "copeland": (len(public.items) / 4) ** 2,
        }[method]
        board = leaderboard.build(
            public.items,
            drawn.scores,
            drawn.errors,
            level=self.request.level,
            score_name={"bradley-terry": "score", "wins": "wins", "copeland": "majorities"}[method],
            top=self.request.top,
            spread=spread,
            warnings=[*self.warnings, *vote_scores.design_warnings(public), *drawn.warnings],
        )
        return board.as_elo() if self.request.scale == "elo" else board


def _prepared(votes: Comparisons, protection: Protection) -> Comparisons:
    """The votes as this unit of protection must count them; refused where no promise would hold.

    A weight depends on how many comparisons a voter has. One replaced comparison can go from one voter to another and
    change the weights of all comparisons of both, so a bounded table is for ``protect="voter"`` only. There every bound
    is right: of c and ``max_per_voter`` the smaller one holds.
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
    """That the list of items is outside the promise, where the votes decide it and they are secret."""
    if not votes.items_from_data or protection.design_public:
        return []
    return ["The list of items was taken from the votes: which items occur is not protected."]
