"""Rank: a table of comparisons in, a published leaderboard out, with every vote protected.

| method | protect | what is released under the guarantee | what follows from it, for free |
|---|---|---|---|
| copeland | any | noisy half-wins (``mechanisms.wins``) | ranks by wins |
| bradley-terry | outcome | noisy half-wins; the design is public | scores by maximum likelihood with a ridge |
| bradley-terry | comparison, voter | scores (``mechanisms.objective``) | |

The ridge is chosen from public numbers only. With d comparisons an item on average, Fisher information per item h =
d/4, privacy noise of variance v on an item's wins and true scores spread with variance 1/3 (uniform on [-1, 1], the
paper's parameter space), a ridge g leaves a mean squared error of about

    (h + v + g^2/3) / (h + g)^2,

and the g that minimises it is taken. (h is that of the logistic link; in general d F'^2/(F (1 - F)) at 0.) Where
the number of comparisons is itself private (voters, or rows that are left out): a noisy count, at 5% of epsilon, stands
in for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdp.data.comparisons import Comparisons
from rankdp.data.counts import PairCounts, components
from rankdp.errors import InputError, Unsupported
from rankdp.mechanisms.votes.objective import CALIBRATIONS, ObjectivePerturbation
from rankdp.mechanisms.votes.protection import Protection
from rankdp.mechanisms.votes.wins import NoisyWins
from rankdp.privacy.bits import Bits, SecureBits
from rankdp.privacy.exact import Real, positive, rational
from rankdp.privacy.guarantee import Guarantee
from rankdp.privacy.ledger import Ledger, spending
from rankdp.privacy.noise import discrete_laplace
from rankdp.privacy.release import Provenance, Release
from rankdp.publish import leaderboard
from rankdp.publish.leaderboard import Leaderboard
from rankdp.rankers.bradley_terry import fit_wins
from rankdp.rankers.links import LOGISTIC, Link
from rankdp.rankers.links import link as known_link

METHODS = ("bradley-terry", "copeland")
SCALES = ("log-strength", "elo")
_COUNT_SHARE = Fraction(1, 20)
_SPREAD = 1 / 3
_LARGEST_EPSILON = 10**6
_LEAST_DEGREE = 1e-3  # so that no comparisons at all still have a ridge


@dataclass(frozen=True, slots=True)
class _Public:
    """What may be known beside the release: the items, and the design or at least its size."""

    items: tuple[str, ...]
    comparisons: int
    design: PairCounts | None = None

    @property
    def degree(self) -> float:
        """Comparisons of an item, on average."""
        return 2 * self.comparisons / len(self.items)


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
    calibration: str = "tight",
    level: float = 0.95,
    ledger: Ledger | None = None,
    bits: Bits | None = None,
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
        "bradley-terry" for log-strengths, or "copeland" for wins.
    max_per_voter
        With ``protect="voter"`` the largest number of comparisons that are used of each voter; which, a hash of the
        voter's own rows decides. Votes that are bounded already are refused for other units.
    top
        Also say which items are in the top so many, and how surely.
    scale
        Of Bradley-Terry scores: "log-strength", or "elo" for 1000 + 400/ln 10 times that.
    delta
        Above 0, wins get Gaussian instead of Laplace noise, for (epsilon, delta)-differential privacy.
    ridge
        The weight that pulls Bradley-Terry scores to the middle; chosen from public numbers where it is not given.
    link
        How a difference of scores becomes a chance to win: "logistic", "secant" or "best-of-three".
    calibration
        The constants of objective perturbation: "tight", ours, or "paper", those of Cai et al.
    level
        The confidence of the intervals, between 0 and 1.
    ledger
        The budget to charge, before anything is drawn.
    bits
        Where the noise comes from; with ``SeededBits(seed)`` the result is a rehearsal without a guarantee.
    **reading
        How to open ``votes``: ``items`` (the public list of items) or ``items_from_data=True`` must be among them; see
        ``Comparisons.read``.

    Returns
    -------
    Release[Leaderboard]
        The leaderboard with its guarantee and provenance.
    """
    request = BoardRequest.of(
        epsilon,
        protect=protect,
        method=method,
        max_per_voter=max_per_voter,
        top=top,
        scale=scale,
        delta=delta,
        ridge=ridge,
        link=link,
        calibration=calibration,
        level=level,
    )
    counted = request.count(Comparisons.of(votes, **reading))
    bits = bits or SecureBits()
    with spending(ledger, counted.guarantee, counted.what, bits) as charge:
        release = counted.draw(bits)
        charge.commit(release.provenance)
    return release


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """What a leaderboard is asked to be, checked; all of it is public. The words are those of ``rank``."""

    epsilon: Fraction
    protection: Protection
    method: str
    top: int | None
    scale: str
    delta: Fraction
    ridge: float | None
    link: Link
    calibration: str
    level: float

    @classmethod
    def of(
        cls,
        epsilon: Real,
        *,
        protect: str,
        method: str,
        max_per_voter: int | None,
        top: int | None,
        scale: str,
        delta: Real,
        ridge: float | None,
        link: str,
        calibration: str,
        level: float,
    ) -> BoardRequest:
        """Check the words of ``rank``, before any vote is read."""
        _check_words(method, scale, calibration, ridge, link)
        protection, exact, loss = Protection.of(protect, max_per_voter), positive(epsilon), rational(delta, "delta")
        if exact > _LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be at most {_LARGEST_EPSILON:,}, far beyond any protection, got {epsilon!s}"
            )
        if not 0 <= loss < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {delta!s}")
        chosen = None if ridge is None else float(positive(ridge, "ridge"))
        return cls(exact, protection, method, top, scale, loss, chosen, known_link(link), calibration, level)

    def count(self, votes: Comparisons) -> CountedVotes:
        """Count the votes; all that is refused because of them is refused here, where nothing is charged yet."""
        prepared = _prepared(votes, self.protection)
        request = replace(self, protection=replace(self.protection, drops=prepared.drops))
        if self.method == "bradley-terry":
            _check_model(request, len(prepared.items))
        leaderboard.check_request(len(prepared.items), self.level, self.top)
        warnings = _item_warnings(prepared, self.protection)
        if self.method == "copeland" and not self.protection.design_public:
            return CountedVotes(request, prepared.items, prepared.half_wins(), None, warnings)
        counts = prepared.count()
        return CountedVotes(request, prepared.items, counts.half_wins, counts, warnings)


@dataclass(frozen=True, slots=True)
class CountedVotes:
    """The secret counts, and what is asked of them. ``counts`` are None where each item's half-wins are enough."""

    request: BoardRequest
    items: tuple[str, ...]
    half_wins: NDArray[np.int64]
    counts: PairCounts | None
    warnings: list[str]

    @property
    def what(self) -> str:
        """The release in a few words, for the ledger."""
        return f"rank by {self.request.method}"

    @property
    def guarantee(self) -> Guarantee:
        """What the leaderboard will promise."""
        asked = self.request
        return Guarantee(asked.protection.protects, asked.epsilon, asked.delta, local=False, rho=_rho(asked))

    def draw(self, bits: Bits) -> Release[Leaderboard]:
        """Add the noise; whoever calls this has charged ``guarantee``."""
        asked = self.request
        # every comparison gives two half-wins, whoever won
        public, spent = _size(self.items, int(self.half_wins.sum()) // 2, asked.protection, asked.epsilon, bits)
        if asked.protection.design_public:
            public = replace(public, design=self.counts)
        drawn = self._scores(public, asked.epsilon - spent, bits)
        parameters = {
            "protect": asked.protection.unit,
            "max_per_voter": asked.protection.moved if asked.protection.unit == "voter" else None,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "items": len(public.items),
            **({"noisy_comparisons": public.comparisons} if spent else {}),
            **drawn.parameters,
        }
        provenance = Provenance.now(asked.method, parameters, bits)
        return Release(self._board(public, drawn), None if bits.seed is not None else self.guarantee, provenance)

    def _scores(self, public: _Public, epsilon: Fraction, bits: Bits) -> _Drawn:
        """The scores under noise that is worth ``epsilon``, by the method's mechanism."""
        asked = self.request
        if asked.method == "bradley-terry" and not asked.protection.design_public:
            assert self.counts is not None
            return _from_objective(self.counts, public, asked, epsilon, bits)
        noisy = NoisyWins(asked.protection, epsilon, asked.delta)
        if asked.method == "copeland":
            return _copeland(self.half_wins, public, noisy, bits)
        return _from_wins(public, noisy, self.half_wins, asked.ridge, asked.link, bits)

    def _board(self, public: _Public, drawn: _Drawn) -> Leaderboard:
        """The leaderboard, from released and public numbers only."""
        wins = self.request.method == "copeland"
        board = leaderboard.build(
            public.items,
            drawn.scores,
            drawn.centres,
            drawn.errors,
            level=self.request.level,
            score_name="wins" if wins else "score",
            top=self.request.top,
            spread=_SPREAD * (public.degree / 4) ** 2 + 1 if wins else _SPREAD,
            warnings=[*self.warnings, *_design_warnings(public), *drawn.warnings],
        )
        return board.as_elo() if self.request.scale == "elo" else board


def _prepared(votes: Comparisons, protection: Protection) -> Comparisons:
    """The votes as this unit of protection must count them; refused where no promise would hold.

    Bounding chooses among all rows of a voter, by what they say. One changed outcome can change which *pair* is kept,
    and one replaced comparison can take from one voter and give to another, moving two kept comparisons: so a bounded
    table is for ``protect="voter"`` only. There every bound is right: of c and ``max_per_voter`` the smaller one holds.
    """
    if protection.unit == "voter":
        return votes.bound(protection.moved)
    if votes.per_voter is not None:
        raise InputError(
            f"votes are bounded to {votes.per_voter} per voter, chosen by what the rows say, so that one changed "
            f"comparison can move several: use protect='voter', got protect={protection.unit!r}"
        )
    if not protection.design_public:
        return votes
    if votes.drops_both_bad:
        raise InputError(
            "both_bad='drop' makes public which votes were both bad, which protect='outcome' counts as secret: "
            "use both_bad='tie', protect='comparison' or protect='voter'"
        )
    return votes.requiring_outcomes()


def _check_words(method: str, scale: str, calibration: str, ridge: float | None, link: str) -> None:
    """Refuse names that are not known, or do not go together."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if scale not in SCALES or (scale == "elo" and method == "copeland"):
        raise InputError(f"scale must be log-strength, or elo with bradley-terry, got {scale!r} with {method}")
    if calibration not in CALIBRATIONS:
        raise InputError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {calibration!r}")
    if method == "copeland" and (ridge is not None or link != "logistic"):
        raise InputError("ridge and link go with method='bradley-terry' only, got method='copeland'")


def _check_model(asked: BoardRequest, items: int) -> None:
    """Refuse what Bradley-Terry scores cannot be had with, before anything is counted or charged."""
    protection, link = asked.protection, asked.link
    if protection.design_public:
        if link is not LOGISTIC:
            raise Unsupported(
                f"wins are sufficient for the logistic link only: protect comparisons instead, got link={link.name!r}"
            )
        return
    if asked.delta:
        raise Unsupported(
            "Gaussian noise does not pay in objective perturbation: use delta=0, method='copeland' or protect='outcome'"
        )
    if asked.ridge is not None:  # refused where it is too small, whatever the size of the data
        left = asked.epsilon - count_cost(protection, asked.epsilon)
        objective(items, 1, protection, left, asked.ridge, link, asked.calibration).check()


def _rho(asked: BoardRequest) -> float | None:
    """The zCDP of Gaussian noise on wins and, where there is one, of the noisy count, which is pure: eps^2/2."""
    if not asked.delta:
        return None
    counting = count_cost(asked.protection, asked.epsilon)
    rho = NoisyWins(asked.protection, asked.epsilon - counting, asked.delta).rho
    assert rho is not None
    return math.nextafter(float(rho + counting**2 / 2), math.inf)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Scores that may be published, with what their errors look like."""

    scores: NDArray[np.float64]
    centres: NDArray[np.float64]
    errors: NDArray[np.float64]
    parameters: dict[str, Any]
    warnings: list[str]


def _size(
    items: tuple[str, ...], total: int, protection: Protection, epsilon: Fraction, bits: Bits
) -> tuple[_Public, Fraction]:
    """How many comparisons there are, as far as it is public, and what of epsilon that costs.

    Changing an outcome, or replacing one comparison by another, leaves their number as it is: it is public. Replacing
    a voter, or a comparison by a row that is left out, does not: up to ``protection.moved`` more or fewer are counted,
    and their number is released with discrete Laplace noise of that sensitivity.
    """
    spent = count_cost(protection, epsilon)
    if not spent:
        return _Public(items, total), spent
    noisy = total + int(discrete_laplace(protection.moved / spent, 1, bits)[0])
    return _Public(items, max(noisy, len(items))), spent


def count_cost(protection: Protection, epsilon: Fraction) -> Fraction:
    """What of epsilon goes into knowing how many comparisons there are: nothing where all neighbours have as many."""
    return Fraction(0) if protection.count_public else epsilon * _COUNT_SHARE


def choose_ridge(degree: float, noise_variance: float) -> float:
    """The ridge that minimises the expected squared error of a score, from public numbers (see the module).

    The derivative vanishes where g h/3 = h + v.
    """
    information = max(degree, _LEAST_DEGREE) / 4
    return (information + noise_variance) / (information * _SPREAD)


def _copeland(half_wins: NDArray[np.int64], public: _Public, noisy: NoisyWins, bits: Bits) -> _Drawn:
    """Wins with noise. Their sampling variance is at most that of binomial counts with the same mean."""
    scores = noisy.sample(half_wins, bits) / 2
    trials = public.comparisons if public.design is None else _halves(public.design) / 2
    share = np.clip(scores / np.maximum(trials, 1), 0, 1)
    spread = np.sqrt(np.maximum(trials * share * (1 - share), 1))
    random, draws = np.random.default_rng(0), 4000
    privacy = noisy.noise(len(scores) * draws, bits.spawn()).reshape(len(scores), draws) / 2
    errors = privacy + spread[:, None] * random.standard_normal((len(scores), draws))
    return _Drawn(scores, scores, errors, noisy.parameters, [])


def _from_wins(
    public: _Public,
    noisy: NoisyWins,
    true_half_wins: NDArray[np.int64],
    ridge: float | None,
    link: Link,
    bits: Bits,
) -> _Drawn:
    """Bradley-Terry scores from noisy wins and the public design."""
    assert public.design is not None
    gamma = ridge if ridge is not None else choose_ridge(public.degree, noisy.noise_variance)
    half_wins = noisy.sample(true_half_wins, bits)
    scores = fit_wins(public.design, half_wins, ridge=gamma).theta
    scores = scores - scores.mean()
    centres, errors = _errors(public, scores, gamma, link, lambda count: noisy.noise(count, bits.spawn()) / 2)
    warnings = _unbeaten(public.items, half_wins, _halves(public.design))
    return _Drawn(scores, centres, errors, {"ridge": gamma, **noisy.parameters}, warnings)


def _from_objective(counts: PairCounts, public: _Public, asked: BoardRequest, epsilon: Fraction, bits: Bits) -> _Drawn:
    """Bradley-Terry scores by objective perturbation."""
    link, calibration = asked.link, asked.calibration
    chosen = objective(len(public.items), public.comparisons, asked.protection, epsilon, asked.ridge, link, calibration)
    gamma = float(chosen.ridge)
    scores = chosen.sample(counts, bits)
    scores = scores - scores.mean()
    random = np.random.default_rng(0)
    centres, errors = _errors(public, scores, gamma, link, lambda count: random.laplace(0, float(chosen.scale), count))
    parameters = {
        "ridge": gamma,
        "calibration": calibration,
        "noise_variance": chosen.noise_variance,
        "link": link.name,
    }
    return _Drawn(scores, centres, errors, parameters, [])


def objective(
    items: int,
    comparisons: int,
    protection: Protection,
    epsilon: Fraction,
    ridge: float | None = None,
    link: Link = LOGISTIC,
    calibration: str = "tight",
) -> ObjectivePerturbation:
    """Objective perturbation with this ridge, or with the one of least expected error, from public numbers.

    It is the same minimum as in ``choose_ridge``, but a small ridge also costs noise through the Hessian. With an
    endless ridge that cost is nothing and the minimum as there: the search goes on from where that lies.
    """

    def mechanism(gamma: float) -> ObjectivePerturbation:
        return ObjectivePerturbation(items, comparisons, protection, epsilon, gamma, link=link, calibration=calibration)

    if ridge is not None:
        return mechanism(ridge)
    information = max(2 * comparisons / items, _LEAST_DEGREE) * float(link.slope(np.zeros(1))[0]) ** 2
    least = (information + mechanism(1e100).noise_variance) / (information * _SPREAD)
    ridges = np.geomspace(least, 1e6 * least, 400).tolist()

    def error(place: int) -> float:
        gamma = ridges[place]
        try:
            variance = mechanism(gamma).noise_variance
        except InputError:
            return math.inf  # too small for this epsilon
        return float((information + variance + gamma**2 * _SPREAD) / (information + gamma) ** 2)

    near = min(range(0, len(ridges), 10), key=error)
    best = min(range(max(near - 10, 0), min(near + 10, len(ridges))), key=error)
    return mechanism(ridges[best if error(best) < math.inf else -1])


def _errors(public: _Public, scores: NDArray[np.float64], ridge: float, link: Link, noise: Any) -> Any:
    """Scores freed from the ridge's pull, and draws of their error."""
    items = len(public.items)
    random = np.random.default_rng(0)
    if not leaderboard.use_dense(items):
        met = np.full(items, public.degree) if public.design is None else _halves(public.design) / 2
        information = met * link.slope(np.zeros(1)) ** 2
        errors, inverse = leaderboard.simulated_errors(information, noise, random)
        return scores + ridge * inverse(scores), errors
    first: NDArray[Any]
    second: NDArray[Any]
    if public.design is None:
        first, second = np.triu_indices(items, 1)
        compared = np.full(len(first), public.comparisons / len(first))
    else:
        first, second, compared = public.design.first, public.design.second, public.design.comparisons
    gap = scores[first] - scores[second]
    curved = link.slope(gap) * link.slope(-gap)  # F'^2/(F (1 - F))
    matrix = leaderboard.information(first, second, compared * curved, items)
    errors, inverse = leaderboard.simulated_errors(matrix, noise, random)
    return scores + ridge * inverse(scores), errors


def _halves(design: PairCounts) -> NDArray[np.int64]:
    """Twice the number of comparisons of each item: a fact of the design, whoever won."""
    return design.half_wins + design.half_losses


def _item_warnings(votes: Comparisons, protection: Protection) -> list[str]:
    """That the list of items is outside the promise, where the votes decide it and they are secret."""
    if not votes.items_from_data or protection.design_public:
        return []
    return ["The list of items was taken from the votes: which items occur is not protected."]


def _design_warnings(public: _Public) -> list[str]:
    """What the public design, or its being secret, makes doubtful."""
    if public.design is None:
        return ["Who was compared with whom is secret, so the intervals suppose that all were compared equally often."]
    found = []
    idle = [item for item, degree in zip(public.items, public.design.degree, strict=True) if degree == 0]
    if idle:
        found.append(f"Never compared: {', '.join(idle[:10])}{' …' if len(idle) > 10 else ''}.")
    parts = len(np.unique(components(public.design)))
    if parts > 1:
        found.append(
            f"The comparisons fall into {parts} parts with nothing between them; "
            "scores of different parts do not compare."
        )
    return found


def _unbeaten(items: tuple[str, ...], half_wins: NDArray[np.int64], halves: NDArray[np.int64]) -> list[str]:
    """Items whose released wins reach an end of what their comparisons allow: the ridge alone holds their score."""
    never = [item for item, wins, most in zip(items, half_wins, halves, strict=True) if most and wins >= most]
    always = [item for item, wins, most in zip(items, half_wins, halves, strict=True) if most and wins <= 0]
    found = []
    if never:
        found.append(f"Perhaps never beaten, so their scores rest on the ridge: {', '.join(never[:10])}.")
    if always:
        found.append(f"Perhaps always beaten, so their scores rest on the ridge: {', '.join(always[:10])}.")
    return found
