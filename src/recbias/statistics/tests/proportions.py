"""The chi-squared test of two proportions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.corrections import CorrectedTest
from recbias.statistics.tests.pair_moments import compute_pair_moments


@dataclass(frozen=True, kw_only=True)
class ChiSquared(CorrectedTest):
    """Pearson's chi-squared test that two models have the same share of units with the value 1.

        X² = 2 n (s_a - s_b)² / ((s_a + s_b) (2 - s_a - s_b)),    1 degree of freedom

    n is the number of units that both models define, and s_a, s_b are the shares of 1 among them.
    It is the test of independence of the table (model, value), without continuity correction. It
    treats the values of the two models as independent samples: if both are of the same units, as
    in a run, its p is too large, and ``sign_flip`` is the test of the pairs. It is here to compare
    with papers that use it. The interval is the t interval of the mean difference of the pairs.

    ``effect_size`` is φ = ±√(X² / 2n), with the sign of s_a - s_b. Metrics with other values than
    0 and 1 have no statistic and no p. If both shares are 0, or both are 1, X² is undefined and p
    is 1. With fewer than two units there is no p-value.

    >>> values = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])  # 3 and 1 of 4
    >>> columns = ChiSquared().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].tolist(), columns["p"].round(4).tolist()
    ([2.0], [0.1573])

    Source:
        Pearson, "On the criterion that a given system of deviations from the probable [...] can be
        reasonably supposed to have arisen from random sampling", Philosophical Magazine 1900.
    """

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        from scipy.special import chdtrc

        moments = compute_pair_moments(values)
        is_share = np.isin(values[~np.isnan(values)], (0.0, 1.0)).all()
        testable = (moments.n > 1) & is_share
        total = moments.mean_a + moments.mean_b
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = 2.0 * moments.n * moments.difference**2 / (total * (2.0 - total))
        statistic = np.where(testable, squared, np.nan)
        is_constant = testable & ((total <= 0.0) | (total >= 2.0))
        p = np.where(is_constant, 1.0, chdtrc(1.0, statistic))
        with np.errstate(invalid="ignore", divide="ignore"):
            phi = np.sign(moments.difference) * np.sqrt(statistic / (2.0 * moments.n))
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(is_constant, np.nan, statistic),
            "df": np.where(testable, 1.0, np.nan),
            "p": p,
            "effect_size": np.where(is_constant, np.nan, phi),
        }
