"""Risks of a ranking function: what a learner minimises, what it is judged by, and how fast it should get there.

A function f gives user u's item i the score f_ui, and a *higher score means more preferred*. The paper's (2) and (4)
reward the opposite and its (11) this; one orientation is used here everywhere. With n users, m items and
"i above j" for "user u prefers i to j", Xu, Section 5, then reads

    (2)  R_n(f)  = 1/(n m(m-1)) sum over u, i, j of 1{i above j} 1{f_ui <= f_uj}
    (3)  an f is optimal if f_ui > f_uj whenever eta_uij > 1/2, with eta_uij = P(i above j)
    (4)  R_nv(f) = 1/(n m(m-1)) sum over u, i, j of 1{i above j} v(f_ui - f_uj)
    (5)  the same as (4) with the synthetic rankings.

Each pair is counted once and divided by m(m-1), so the worst R_n is 1/2 and guessing gets 1/4; the share of pairs in
order, ``pairwise_accuracy``, is 1 - 2 R_n and twice the paper's (11). For a partial ranking the pairs are those among
its listed items, and the number of all pairs of all users takes the place of n m(m-1)/2.

(5) is *not* an unbiased version of (4): Theorem 1(1) and Lemma 6 fail for a random ranking (docs/theory.md). With h of
``rankdp.mechanisms.rankings.estimators``, E h(b_i, b_j) = 1{i above j} over the mechanism, the sum

    sum over pairs of h(b_i, b_j) v(f_ui - f_uj) + (1 - h(b_i, b_j)) v(f_uj - f_ui)

has the mean that (4) has on the true rankings, whatever f and v are: ``debiased_surrogate_risk``.

Corollary 1's rate is (Psi_u = (e^(eps_u/(m-1)) + 1) / (e^(eps_u/(m-1)) - 1) = coth(eps_u / (2(m-1))))

    E[Psi] E[Psi^gamma]^(alpha/(gamma+2)) (p log(n/p) / n)^(alpha (gamma+1)/(gamma+2))

for p parameters, without its unknown constant. It rests on Lemma 7, whose proof uses the bounds of Theorem 1(2) (with
e^eps as the upper end where Theorem 1 has e^((2m-3)eps/(m-1)); only the lower end is needed) and so holds for
fixed rankings, not for random ones; and on E[Psi_u X_u] <= E[Psi_u] E[X_u], which needs users who choose their epsilon
without regard to what they prefer. It is given as the paper's claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdp.errors import InputError
from rankdp.theory.kendall import preference_bounds

Floats = NDArray[np.float64]
Loss = Callable[[Floats], Floats]


def ranking_risk(scores: ArrayLike, ranks: ArrayLike) -> float:
    """(2): the share of m(m-1) that f gets wrong, ties included; ``ranks`` holds 1 for the best and 0 for unlisted."""
    above, gaps = _compared(scores, ranks)
    return float((gaps[above] <= 0).sum() / (2 * above.sum()))


def pairwise_accuracy(scores: ArrayLike, ranks: ArrayLike) -> float:
    """The share of pairs that f puts in the order of ``ranks``: twice (11), so that 1 is perfect; ties are errors."""
    return 1 - 2 * ranking_risk(scores, ranks)


def surrogate_risk(scores: ArrayLike, ranks: ArrayLike, loss: Loss) -> float:
    """(4) with true ranks, (5) with synthetic ones; ``loss`` is v."""
    above, gaps = _compared(scores, ranks)
    return float(loss(gaps[above]).sum() / (2 * above.sum()))


def debiased_surrogate_risk(scores: ArrayLike, ranks: ArrayLike, loss: Loss, values: ArrayLike) -> float:
    """(4) for the true rankings, estimated without bias from complete synthetic ``ranks``.

    ``values[b1, b2]`` is h, the unbiased estimate of "the first is preferred" at synthetic positions b1 and b2.
    """
    above, gaps = _compared(scores, ranks)
    places, h = np.asarray(ranks) - 1, np.asarray(values, dtype=float)
    if (places < 0).any():
        raise InputError("ranks must be complete for debiased risks: every item needs a rank of at least 1")
    labels = h[places[:, :, None], places[:, None, :]]
    losses = labels * loss(gaps) + (1 - labels) * loss(-gaps)
    return float(losses[above].sum() / (2 * above.sum()))


def preferences(ranks: ArrayLike, probabilities: ArrayLike) -> Floats:
    """eta[i, j] = P(i above j) for a ranking drawn from the rows of ``ranks`` with these probabilities; 1/2 for i=j."""
    table, weights = np.asarray(ranks), np.asarray(probabilities, dtype=float)
    if table.ndim != 2 or weights.shape != (len(table),) or (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
        raise InputError(
            f"probabilities must be one number of at least 0 for each of the {len(table)} rankings, adding up to 1"
        )
    above = (table[:, :, None] < table[:, None, :]).astype(float)
    eta: Floats = np.einsum("k,kij->ij", weights, above)
    np.fill_diagonal(eta, 0.5)
    return eta


def expected_risk(scores: ArrayLike, eta: ArrayLike) -> float:
    """R(f), the mean of (2) over the rankings' law: n x m scores and n x m x m (or one m x m) preferences.

    A tied pair is charged in full, as in the paper.
    """
    gaps, chances = _expected(scores, eta)
    return float(_of_pairs(chances * (gaps <= 0) + (1 - chances) * (gaps >= 0)))


def least_risk(eta: ArrayLike) -> float:
    """R*: what the better order of each pair gets wrong (Lemma 5).

    No f has it where the preferences of a user go round in a circle: there it is a lower bound only.
    """
    chances = np.asarray(eta, dtype=float)
    return float(_of_pairs(np.minimum(chances, 1 - chances).reshape(-1, *chances.shape[-2:])))


def excess_risk(scores: ArrayLike, eta: ArrayLike) -> float:
    """R(f) - R*."""
    _, chances = _expected(scores, eta)
    return expected_risk(scores, chances) - least_risk(chances)


def is_optimal(scores: ArrayLike, eta: ArrayLike) -> bool:
    """(3): every pair with a more likely order is scored in that order (the paper also asks ties where there is none).

    Free pairs (eta = 1/2) may be scored either way at the same risk, but not tied: a tie is charged in full.
    """
    gaps, chances = _expected(scores, eta)
    return bool((gaps * (2 * chances - 1) > 0)[chances != 0.5].all())


def psi(items: int, epsilon: ArrayLike) -> Floats:
    """Psi_u = coth(eps_u / (2(m-1))): how much less of a preference a synthetic ranking shows, at worst."""
    own = np.asarray(epsilon, dtype=float)
    if items < 2:
        raise InputError(f"items must be an integer of at least 2, got {items!r}")
    if not (np.isfinite(own) & (own > 0)).all():
        raise InputError("epsilon must be finite and above 0 for every user")
    return np.asarray(1 / np.tanh(own / (2 * (items - 1))))


def excess_risk_factors(items: int, epsilon: float) -> tuple[float, float]:
    """(7): the paper's least and largest ratio of the synthetic excess risk to the true one.

    They hold where each user's ranking is fixed. For random rankings the ratio can fall below the least, and the
    synthetic optimum can differ from the true one (docs/theory.md): the tests hold an example.
    """
    return preference_bounds(items, epsilon)


def low_noise_bound(beta: float, items: int, epsilon: float, gamma: float, constant: float = 1.0) -> float:
    """Lemma 7: ``P(|2 eta~ - 1| <= beta) <= C Psi^gamma beta^gamma``, if ``P(|2 eta - 1| <= beta) <= C beta^gamma``.

    For random rankings it is a claim, not a bound (see above).
    """
    return float(min(1.0, constant * float(psi(items, epsilon)) ** gamma * beta**gamma))


def excess_risk_rate(
    users: int, parameters: int, items: int, epsilon: ArrayLike, *, alpha: float = 1.0, gamma: float = 1.0
) -> float:
    """Corollary 1's rate, without its constant; ``epsilon`` is one number or each user's own.

    alpha is 1 for the psi-loss and 1/2 for the logistic and the exponential one; gamma is the exponent of the low-noise
    assumption, infinity where every user's order is certain.
    """
    _check_sizes(users, parameters)
    if not 0 < alpha <= 1 or not gamma > 0:
        raise InputError(f"alpha must lie in (0, 1] and gamma must be above 0, got {alpha!r} and {gamma!r}")
    values = psi(items, epsilon)
    complexity = parameters * math.log(users / parameters) / users
    if math.isinf(gamma):  # E[Psi^gamma]^(1/(gamma+2)) tends to the largest Psi
        return float(values.mean() * values.max() ** alpha * complexity**alpha)
    largest = float(values.max())  # taken out of the power, which would overflow
    spread = float(np.mean((values / largest) ** gamma))
    moment = largest ** (alpha * gamma / (gamma + 2)) * spread ** (alpha / (gamma + 2))
    return float(values.mean() * moment * complexity ** (alpha * (gamma + 1) / (gamma + 2)))


def smallest_epsilon(users: int, parameters: int, items: int, zeta: float = 0.1) -> float:
    """The order of the smallest common epsilon at which Corollary 1 still promises consistency.

    m sqrt(p log^(1+zeta)(n/p) / n), for any zeta above 0.
    """
    _check_sizes(users, parameters)
    if not zeta > 0:
        raise InputError(f"zeta must be above 0, got {zeta!r}")
    return items * math.sqrt(parameters * math.log(users / parameters) ** (1 + zeta) / users)


def _check_sizes(users: int, parameters: int) -> None:
    if not 1 <= parameters < users:
        raise InputError(f"parameters must be from 1 to below the number of users, got {parameters} for {users} users")


def _compared(scores: ArrayLike, ranks: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
    """above[u, i, j]: user u lists both and prefers i; gaps[u, i, j] = f_ui - f_uj."""
    f, phi = np.asarray(scores, dtype=float), np.asarray(ranks)
    if f.ndim != 2 or f.shape != phi.shape:
        raise InputError(f"scores and ranks must be n x m tables of one shape, got {f.shape} and {phi.shape}")
    listed = phi > 0
    above = (phi[:, :, None] < phi[:, None, :]) & listed[:, :, None] & listed[:, None, :]
    if not above.any():
        raise InputError("ranks must list two items or more in some row: there is no pair to compare")
    return above, f[:, :, None] - f[:, None, :]


def _expected(scores: ArrayLike, eta: ArrayLike) -> tuple[Floats, Floats]:
    f, chances = np.asarray(scores, dtype=float), np.asarray(eta, dtype=float)
    if f.ndim != 2 or chances.shape[-2:] != (f.shape[1],) * 2 or chances.ndim not in (2, 3):
        raise InputError(f"eta must be m x m or n x m x m for n x m scores, got {chances.shape} for {f.shape}")
    return f[:, :, None] - f[:, None, :], np.broadcast_to(chances, (*f.shape, f.shape[1]))


def _of_pairs(table: Floats) -> float:
    """The sum over pairs i < j, divided by m(m-1), averaged over users."""
    m = table.shape[-1]
    first, second = np.triu_indices(m, 1)
    return float(table[:, first, second].sum(axis=1).mean() / (m * (m - 1)))
