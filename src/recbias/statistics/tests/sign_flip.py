"""The sign-flip permutation test: the null distribution made from the data's own differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.stage_context import report_progress
from recbias.statistics.corrections import Alpha, Correction, Family, check_family
from recbias.statistics.effect_sizes import cohens_dz
from recbias.statistics.permutation.label_permutation import Draws
from recbias.statistics.tests.pair_moments import differences, pair_moments

BLOCK_SIGNS = 2**22
"""How many signs are held at once."""

ROUNDING = 1e-12
"""Sums closer than this share of the sum of sizes are ties."""


@dataclass(frozen=True, kw_only=True)
class SignFlip:
    """A permutation test: how often does chance alone give so large a mean difference?

        p = #{ |Σ s_u d_u| ≥ |Σ d_u| } / #{signings},    d = a - b unit by unit,  s_u = ±1

    If two models are alike, a unit's difference is as likely to be d as -d. The test flips the
    signs of the differences and counts the signings whose sum is at least as far from 0 as the
    observed one, which is itself a signing. With no more than ``permutations`` signings of the
    units in all (13 units at 10,000), every one is counted and p is exact; otherwise
    ``permutations`` are drawn and p = (hits + 1) / (permutations + 1), never 0. All pairs of one
    figure share their signings. It assumes nothing of the distribution.

    ``statistic`` is the mean difference, ``effect_size`` Cohen's d_z = mean(d) / sd(d), and the
    interval is the t interval of the mean difference. A unit that one of two models does not
    define is left out of their comparison. Below two units there is no p-value. Where every
    difference is 0, p is 1.

    Args:
        permutations: How many signings are drawn; also the most that are counted out.
        alpha: The level: a comparison is significant where its corrected p is at most this.
        correction: How the p-values of a family are corrected.
        family: Which comparisons are corrected together: all pairs of models on one metric, every
            comparison in the run, or a number of your own to multiply p by.

    Raises:
        Contradiction: A number as the family of ``holm`` or ``bh``.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3: 2 of 8
    >>> SignFlip().pairs(values, np.random.default_rng(0))["p"].tolist()
    [0.25]

    Source:
        Fisher, "The Design of Experiments", 1935, section 21; Phipson and Smyth, "Permutation
        p-values should never be zero", 2010.
    """

    permutations: Draws = 10_000
    alpha: Alpha = 0.05
    correction: Correction = "bonferroni"
    family: Family = "metric"

    def __post_init__(self) -> None:
        """Refuse a family that the correction cannot have."""
        check_family(self.correction, self.family)

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the comparison of every two rows of ``values``, ``float64[s, u]``."""
        moments = pair_moments(values)
        p = np.empty(moments.a.size)
        seed = int(rng.integers(2**63))
        for block, gaps in differences(values, moments.a, moments.b):
            p[block] = self._p_values(np.nan_to_num(gaps, copy=False).T, seed)
        return {
            **moments.columns(self.alpha),
            "statistic": moments.difference,
            "df": np.full(p.size, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }

    def _p_values(self, gaps: FloatArray, seed: int) -> FloatArray:
        """Return the p-value of each column of differences, ``float64[u, p]``."""
        n_units = gaps.shape[0]
        n_signings: int = min(1 << n_units, self.permutations)
        exact = n_signings == 1 << n_units
        signings = _all_signs(n_units) if exact else _drawn_signs(n_units, n_signings, seed)
        least = np.abs(gaps.sum(axis=0)) - ROUNDING * np.abs(gaps).sum(axis=0)
        hits, done = np.zeros(gaps.shape[1]), 0
        for signs in signings:
            hits += np.count_nonzero(np.abs(signs @ gaps) >= least, axis=0)
            done += len(signs)
            report_progress("sign-flip permutations", done, n_signings)
        return hits / n_signings if exact else (hits + 1.0) / (n_signings + 1.0)


def _block_size(n_units: int) -> int:
    return max(1, BLOCK_SIGNS // max(n_units, 1))


def _all_signs(n_units: int) -> Iterator[FloatArray]:
    """Yield every signing once, ``float64[block, u]`` of ±1."""
    size = _block_size(n_units)
    for start in range(0, 2**n_units, size):
        numbers = np.arange(start, min(start + size, 2**n_units))
        yield _signs((numbers[:, None] >> np.arange(n_units)) & 1)


def _drawn_signs(n_units: int, n_signings: int, seed: int) -> Iterator[FloatArray]:
    """Yield signings drawn from ``seed`` alone, ``float64[block, u]`` of ±1."""
    rng = np.random.default_rng(seed)
    size = _block_size(n_units)
    for start in range(0, n_signings, size):
        rows = min(size, n_signings - start)
        octets = rng.integers(0, 256, size=(rows, -(-n_units // 8)), dtype=np.uint8)
        yield _signs(np.unpackbits(octets, axis=1, count=n_units))


def _signs(bits: AnyArray) -> FloatArray:
    return np.subtract(1.0, 2.0 * bits, dtype=np.float64)
