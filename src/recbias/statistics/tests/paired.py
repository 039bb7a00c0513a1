"""Paired tests with a known null distribution: Student's t and Wilcoxon's signed ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.corrections import CorrectedTest
from recbias.statistics.effect_sizes import cohens_dz, rank_biserial
from recbias.statistics.tests.pair_moments import compute_pair_moments, iterate_differences
from recbias.statistics.tests.signed_ranks import compute_p_values, rank_differences


@dataclass(frozen=True, kw_only=True)
class PairedT(CorrectedTest):
    """Student's paired t-test of the mean difference between two models.

        t = mean(d) / (sd(d) / √n),    d = a - b for each unit,    n - 1 degrees of freedom

    ``sd`` is the sample standard deviation (n - 1). The p-value is two-sided. ``effect_size`` is
    Cohen's d_z = mean(d) / sd(d).

    Units that one of the two models does not define are excluded from their comparison. With fewer
    than two units there is no p-value. If all differences are 0, t and the effect size are
    undefined and p is 1, as in the other paired tests. If all differences are equal and not 0, the
    standard error is 0 although that of other units need not be: t, d_z, the interval and p are
    undefined. ``sign_flip`` and ``wilcoxon`` have a p then.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> columns = PairedT().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].round(4).tolist(), columns["p"].round(4).tolist()
    ([3.4641], [0.0742])

    Source:
        Student, "The probable error of a mean", Biometrika 1908.
    """

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        from scipy.special import stdtr

        moments = compute_pair_moments(values)
        df = np.where(moments.n > 1, moments.n - 1.0, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = moments.difference / (moments.std / np.sqrt(moments.n))
        t = np.where(moments.lacks_spread, np.nan, t)
        identical = (moments.difference == 0) & (moments.std == 0)
        return {
            **moments.columns(self.alpha),
            "statistic": t,
            "df": df,
            "p": np.where(identical, 1.0, 2.0 * stdtr(df, -np.abs(t))),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }


@dataclass(frozen=True, kw_only=True)
class Wilcoxon(CorrectedTest):
    """Wilcoxon's signed-rank test of the differences between two models.

        W⁺ = Σ rank(|d|) over d > 0,    W⁻ the same over d < 0,    W = min(W⁺, W⁻)

    Differences d = a - b of 0 are dropped before ranking (Wilcoxon's rule); ties receive their
    mean rank. The two-sided p-value is exact for up to 50 differences without ties, else
    from the normal approximation with tie correction and without continuity correction,
    as in ``scipy.stats.wilcoxon`` with ``zero_method="wilcox"`` with ``method="exact"``, else
    ``"asymptotic"``. ``statistic`` is W; ``effect_size`` is the rank-biserial correlation
    (W⁺ - W⁻) / (W⁺ + W⁻). The interval is the t interval of the mean difference.

    Units that one of the two models does not define are excluded from their comparison; ``n``
    counts the others. With fewer than two units there is no p-value. If all differences are 0, W
    is undefined and p is 1.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> columns = Wilcoxon().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].tolist(), columns["p"].tolist(), columns["effect_size"].tolist()
    ([0.0], [0.25], [1.0])

    Source:
        Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1945.
    """

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        moments = compute_pair_moments(values)
        n_pairs = moments.a.size
        up, down, p = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
        for block, differences in iterate_differences(values, moments.a, moments.b):
            ranks = rank_differences(differences)
            up[block], down[block], p[block] = ranks.up, ranks.down, compute_p_values(ranks)
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(up + down > 0, np.minimum(up, down), np.nan),
            "df": np.full(n_pairs, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": rank_biserial(up, down),
        }
