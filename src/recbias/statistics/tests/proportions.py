"""The chi-squared test of two proportions, and the exact test where counts are small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.corrections import CorrectedTest
from recbias.statistics.tests.pair_moments import PairMoments, compute_pair_moments

EXACT = "fisher_exact"
"""The name of the test of the tables with a small expected count."""

LEAST_EXPECTED = 5.0
"""X² follows the chi-squared distribution poorly where an expected count is below this."""


@dataclass(frozen=True, kw_only=True)
class ChiSquared(CorrectedTest):
    """Pearson's chi-squared test that two models have the same share of units with the value 1.

        X² = 2 n (s_a - s_b)² / ((s_a + s_b) (2 - s_a - s_b)),    1 degree of freedom

    n is the number of units that both models define, and s_a, s_b are the shares of 1 among them.
    It is the test of independence of the table (model, value), without continuity correction. It
    treats the values of the two models as independent samples: if both are of the same units, as
    in a run, its p is too large, and ``sign_flip`` is the test of the pairs. It is here to compare
    with papers that use it. The interval is the t interval of the mean difference of the pairs.

    Where an expected count, n (s_a + s_b) / 2 or n (2 - s_a - s_b) / 2, is below 5, p is that of
    Fisher's exact test of the same table (two-sided): the row names the test ``fisher_exact``, has
    no statistic, and is corrected together with the others. No conclusion is drawn from such rows.

    ``effect_size`` is φ = ±√(X² / 2n), with the sign of s_a - s_b. Metrics with other values than
    0 and 1 have no statistic and no p: they are counted in a warning. If both shares are 0, or
    both are 1, X² is undefined and p is 1. With fewer than two units there is no p-value.

    >>> values = np.repeat([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]], 5, axis=1)  # 15, 5 of 20
    >>> columns = ChiSquared().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].tolist(), columns["p"].round(4).tolist()
    ([10.0], [0.0016])
    >>> columns = ChiSquared().pairs(np.array([[1.0, 1.0], [0.0, 0.0]]), np.random.default_rng(0))
    >>> columns["test"].tolist(), columns["p"].round(4).tolist()
    (['fisher_exact'], [0.3333])

    Source:
        Fisher, "On the interpretation of χ² from contingency tables, and the calculation of P",
        Journal of the Royal Statistical Society 1922; Cochran, "Some methods for strengthening the
        common χ² tests", Biometrics 1954, for the limit of 5;
        Pearson, "On the criterion that a given system of deviations from the probable [...] can be
        reasonably supposed to have arisen from random sampling", Philosophical Magazine 1900.
    """

    undefined_where: ClassVar[str] = (
        f"values other than 0 and 1, or {CorrectedTest.undefined_where}"
    )

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
        counts = np.rint(moments.n * np.minimum(total, 2.0 - total))
        is_small = testable & ~is_constant & (counts < 2.0 * LEAST_EXPECTED)
        p = np.where(is_constant, 1.0, chdtrc(1.0, statistic))
        p[is_small] = _compute_exact_p(moments, np.flatnonzero(is_small))
        has_no_statistic = is_constant | is_small
        with np.errstate(invalid="ignore", divide="ignore"):
            phi = np.sign(moments.difference) * np.sqrt(statistic / (2.0 * moments.n))
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(has_no_statistic, np.nan, statistic),
            "df": np.where(testable & ~has_no_statistic, 1.0, np.nan),
            "p": p,
            "effect_size": np.where(is_constant, np.nan, phi),
            "test": np.where(is_small, EXACT, ""),
        }


def _compute_exact_p(moments: PairMoments, pairs: npt.NDArray[np.intp]) -> FloatArray:
    """Return the two-sided p of Fisher's exact test for the given pairs."""
    if not pairs.size:
        return np.empty(0)
    from scipy.stats import fisher_exact

    n = moments.n[pairs]
    ones = np.rint(np.stack([moments.mean_a[pairs] * n, moments.mean_b[pairs] * n], axis=1))
    tables = np.stack([ones, n[:, None] - ones], axis=2).astype(np.int64)
    return np.array([fisher_exact(table).pvalue for table in tables])
