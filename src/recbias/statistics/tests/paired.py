"""Paired tests with a known null distribution: Student's t and Wilcoxon's signed ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.corrections import Alpha, Correction, Family, check_family
from recbias.statistics.effect_sizes import cohens_dz, rank_biserial
from recbias.statistics.tests.pair_moments import differences, pair_moments
from recbias.statistics.tests.signed_ranks import signed_ranks, two_sided


@dataclass(frozen=True, kw_only=True)
class PairedT:
    """Student's paired t-test: is the mean difference of two models more than chance over units?

        t = mean(d) / (sd(d) / √n),    d = a - b unit by unit,    n - 1 degrees of freedom

    ``sd`` is the sample standard deviation (n - 1). The p-value is two-sided. ``effect_size`` is
    Cohen's d_z = mean(d) / sd(d).

    A unit that one of two models does not define is left out of their comparison. Below two units
    there is no p-value. Where every difference is 0 there is no t and no effect size, and p is 1:
    nothing speaks against equal means, and the other paired tests say 1 there too. Where every
    difference is the same other number, t and d_z are infinite and p is 0.

    Args:
        alpha: The level: a comparison is significant where its corrected p is at most this.
        correction: How the p-values of a family are corrected.
        family: Which comparisons are corrected together: all pairs of models on one metric, every
            comparison in the run, or a number of your own to multiply p by.

    Raises:
        Contradiction: A number as the family of ``holm`` or ``bh``.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> found = PairedT().pairs(values, np.random.default_rng(0))
    >>> found["statistic"].round(4).tolist(), found["p"].round(4).tolist()
    ([3.4641], [0.0742])

    Source:
        Student, "The probable error of a mean", Biometrika 1908.
    """

    alpha: Alpha = 0.05
    correction: Correction = "bonferroni"
    family: Family = "metric"

    def __post_init__(self) -> None:
        """Refuse a family that the correction cannot have."""
        check_family(self.correction, self.family)

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the comparison of every two rows of ``values``, ``float64[s, u]``."""
        del rng  # there is no chance in it
        from scipy.special import stdtr

        moments = pair_moments(values)
        df = np.where(moments.n > 1, moments.n - 1.0, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = moments.difference / (moments.std / np.sqrt(moments.n))
        same = (moments.difference == 0) & (moments.std == 0)
        return {
            **moments.columns(self.alpha),
            "statistic": t,
            "df": df,
            "p": np.where(same, 1.0, 2.0 * stdtr(df, -np.abs(t))),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }


@dataclass(frozen=True, kw_only=True)
class Wilcoxon:
    """Wilcoxon's signed-rank test: do the differences of two models lie to one side of zero?

        W⁺ = Σ rank(|d|) over d > 0,    W⁻ the same over d < 0,    W = min(W⁺, W⁻)

    Differences d = a - b of 0 are dropped before ranking (Wilcoxon's own rule); equal sizes share
    their mean rank. The two-sided p-value is exact for up to 50 differences without ties, else
    from the normal approximation with the correction for ties and without one for continuity:
    what ``scipy.stats.wilcoxon`` gives for ``zero_method="wilcox"`` with ``method="exact"``, else
    ``"asymptotic"``. ``statistic`` is W; ``effect_size`` is the rank-biserial correlation
    (W⁺ - W⁻) / (W⁺ + W⁻). The interval is the t interval of the mean difference.

    A unit that one of two models does not define is left out of their comparison; ``n`` counts the
    units with it. Below two units there is no p-value. Where every difference is 0 there is no W,
    and p is 1.

    Args:
        alpha: The level: a comparison is significant where its corrected p is at most this.
        correction: How the p-values of a family are corrected.
        family: Which comparisons are corrected together: all pairs of models on one metric, every
            comparison in the run, or a number of your own to multiply p by.

    Raises:
        Contradiction: A number as the family of ``holm`` or ``bh``.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> found = Wilcoxon().pairs(values, np.random.default_rng(0))
    >>> found["statistic"].tolist(), found["p"].tolist(), found["effect_size"].tolist()
    ([0.0], [0.25], [1.0])

    Source:
        Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1945.
    """

    alpha: Alpha = 0.05
    correction: Correction = "bonferroni"
    family: Family = "metric"

    def __post_init__(self) -> None:
        """Refuse a family that the correction cannot have."""
        check_family(self.correction, self.family)

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the comparison of every two rows of ``values``, ``float64[s, u]``."""
        del rng  # there is no chance in it
        moments = pair_moments(values)
        n_pairs = moments.a.size
        up, down, p = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
        for block, gaps in differences(values, moments.a, moments.b):
            ranks = signed_ranks(gaps)
            up[block], down[block], p[block] = ranks.up, ranks.down, two_sided(ranks)
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(up + down > 0, np.minimum(up, down), np.nan),
            "df": np.full(n_pairs, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": rank_biserial(up, down),
        }
