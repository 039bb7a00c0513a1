"""Position bias: how much more often a position is examined than the first one is.

Under the position-based model a shown item is clicked if it is examined, which depends on its
position, and relevant. Clicks at two positions are compared within strata in which the relevance
does not depend on the position: all rows where positions are random, the rows of an item, or those
of a user and item, where variants of a system put it at different positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray

_STEPS = 50


@dataclass(frozen=True, eq=False)
class PositionBias:
    """The examination of each position, relative to the first, with its fit.

    Args:
        shown: The impressions by stratum and position, ``float64[s, k]``.
        clicks: The sum of the rewards, ``float64[s, k]``.
        wins: Weighted clicks at one position against another, ``float64[k, k]``.
        known: The positions that a chain of comparisons connects with the first.
        values: p_k / p_1; NaN where it is not known.
    """

    shown: FloatArray
    clicks: FloatArray
    wins: FloatArray
    known: BoolArray
    values: FloatArray

    def score_users(
        self, strata: AnyArray, positions: AnyArray, rewards: FloatArray, users: AnyArray, n: int
    ) -> FloatArray:
        """Return what the rows of each of ``n`` users add to the score of log p, ``[n, k]``.

        A row of stratum s at position k adds, for each other position j,

            (r - p_k ρ_s) · n_sj / (n_sk + n_sj) · p_j / (p_k + p_j)

        to the score of k and takes it from that of j; ρ_s = Σ r / Σ p is the relevance of the
        stratum, over its impressions.
        """
        values = np.where(self.known, self.values, 0.0)
        expected = self.shown @ values
        relevance = self.clicks @ self.known / np.where(expected > 0, expected, 1.0)
        residuals = np.where(
            self.known[positions], rewards - values[positions] * relevance[strata], 0.0
        )
        scores = np.zeros((values.size, n))
        here = self.shown[strata, positions]
        for other in np.flatnonzero(self.known):
            there = self.shown[strata, other]
            odds = values[other] / (values[positions] + values[other])
            terms = np.where(positions == other, 0.0, residuals * odds * there / (here + there))
            np.add.at(scores, (positions, users), terms)
            scores[other] -= np.bincount(users, terms, n)
        return scores.T

    def find_intervals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the 95% interval of each position, from the scores of the users.

        The interval is that of log p, with the sandwich variance over users and Student's t; NaN
        where fewer than two users have a score.
        """
        from scipy.stats import t

        fitted = np.flatnonzero(self.known)[1:]
        low, high = self.values.copy(), self.values.copy()
        if fitted.size:
            n = int(np.any(scores != 0, axis=1).sum())
            if n < 2:
                low[fitted] = high[fitted] = np.nan
                return low, high
            bread = np.linalg.inv(self._information(fitted))
            influence = scores[:, fitted] @ bread
            errors = np.sqrt((influence**2).sum(axis=0) * n / (n - 1))
            width = np.exp(float(t.ppf(0.975, n - 1)) * errors)
            low[fitted], high[fitted] = self.values[fitted] / width, self.values[fitted] * width
        return low, high

    def _information(self, fitted: AnyArray) -> FloatArray:
        _, information = _differentiate(self.wins, np.where(self.known, self.values, 0.0))
        return np.asarray(information[np.ix_(fitted, fitted)])


def tally_positions(
    strata: AnyArray, positions: AnyArray, rewards: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return the number of rows and the sum of rewards by stratum and position."""
    cells = np.ravel_multi_index((strata, positions), shape)
    size = shape[0] * shape[1]
    counts = np.stack([np.bincount(cells, part, size) for part in (np.ones(cells.size), rewards)])
    shown, clicks = counts.astype(np.float64).reshape(2, *shape)
    return shown, clicks


def fit_position_bias(shown: FloatArray, clicks: FloatArray) -> PositionBias:
    """Return the examination of each position, relative to the first.

        a_kj = Σ_s c_sk n_sj / (n_sk + n_sj),
        p maximises Σ_(k ≠ j) a_kj log( p_k / (p_k + p_j) )

    over all pairs of positions; ``n_sk`` and ``c_sk`` are the impressions and clicks of stratum s
    at position k. ``a_kj : a_jk`` estimates p_k : p_j from the items that were shown at both
    positions, whatever their relevance. With one stratum, p_k / p_1 is the ratio of the
    click-through rates. Undefined where no chain of pairs with clicks on both sides leads to the
    first position.

    Args:
        shown: ``float64[s, k]``.
        clicks: ``float64[s, k]``.

    >>> shown, clicks = np.array([[10.0, 20.0]]), np.array([[5.0, 4.0]])
    >>> fit_position_bias(shown, clicks).values.round(9).tolist()
    [1.0, 0.4]

    Source:
        Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating position bias without
        intrusive interventions", WSDM 2019 (all pairs; the weight of an item is here that of
        Mantel and Haenszel, 1959, which is not 1 but larger with more impressions at both
        positions); with the likelihood of Bradley and Terry, 1952.
    """
    k = shown.shape[1]
    wins = np.zeros((k, k))
    for first in range(k):
        for second in range(first + 1, k):
            here, there = shown[:, first], shown[:, second]
            total = here + there
            total[total == 0] = 1.0
            wins[first, second] = clicks[:, first] @ (there / total)
            wins[second, first] = clicks[:, second] @ (here / total)
    known = np.arange(k) == 0
    linked = (wins > 0) & (wins.T > 0)
    for _ in range(k):
        known |= linked[known].any(axis=0)
    logs = np.zeros(k)
    fitted = np.flatnonzero(known)[1:]
    for _ in range(_STEPS if fitted.size else 0):
        gradient, information = _differentiate(wins, np.where(known, np.exp(logs), 0.0))
        step = np.linalg.solve(information[np.ix_(fitted, fitted)], gradient[fitted])
        logs[fitted] += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-12:
            break
    return PositionBias(shown, clicks, wins, known, np.where(known, np.exp(logs), np.nan))


def _differentiate(wins: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient and the information of log p; a position of value 0 is left out."""
    is_in = (values[:, None] > 0) & (values > 0)
    shares = values[:, None] / np.where(is_in, values[:, None] + values, 1.0)
    both = np.where(is_in, wins + wins.T, 0.0)
    gradient = np.where(is_in, wins, 0.0).sum(axis=1) - (both * shares).sum(axis=1)
    information = -both * shares * shares.T
    np.fill_diagonal(information, 0.0)
    np.fill_diagonal(information, -information.sum(axis=1))
    return gradient, information
