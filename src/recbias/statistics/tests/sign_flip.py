"""The sign-flip permutation test of paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.stage_context import report_progress
from recbias.statistics.corrections import CorrectedTest
from recbias.statistics.effect_sizes import cohens_dz
from recbias.statistics.permutation.label_permutation import Permutations
from recbias.statistics.tests.pair_moments import compute_pair_moments, iterate_differences

BLOCK_SIZE = 2**22
"""Signs held in memory at once."""

ROUNDING = 1e-12
"""Sums that differ by less than this share of the absolute differences are ties."""


@dataclass(frozen=True, kw_only=True)
class SignFlip(CorrectedTest):
    """The sign-flip permutation test of the mean difference between two models.

        p = #{ |Σ s_u d_u| ≥ |Σ d_u| } / #{signings},    d = a - b for each unit,  s_u = ±1

    If two models are equivalent, a unit's difference is equally likely to be d or -d. The test
    flips the signs of the differences and counts the signings whose sum is at least as far from 0
    as the observed sum, which is itself a signing. If there are at most ``permutations`` signings
    (13 units at 10,000), all are enumerated and p is exact; otherwise ``permutations`` signings
    are sampled and p = (hits + 1) / (permutations + 1), never 0. All pairs of one metric share
    their signings. The test makes no assumption about the distribution.

    ``statistic`` is the mean difference, ``effect_size`` Cohen's d_z = mean(d) / sd(d), and the
    interval is the t interval of the mean difference. Units that one of the two models does not
    define are excluded from their comparison. With fewer than two units there is no p-value. If
    all differences are 0, p is 1.

    Args:
        permutations: The number of sampled signings, and the largest number that is enumerated.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3: 2 of 8
    >>> SignFlip().pairs(values, np.random.default_rng(0))["p"].tolist()
    [0.25]

    Source:
        Fisher, "The Design of Experiments", 1935, section 21; Phipson and Smyth, "Permutation
        p-values should never be zero", 2010.
    """

    permutations: Permutations = 10_000

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``."""
        moments = compute_pair_moments(values)
        p = np.empty(moments.a.size)
        seed = int(rng.integers(2**63))
        for block, differences in iterate_differences(values, moments.a, moments.b):
            p[block] = self._compute_p_values(np.nan_to_num(differences, copy=False).T, seed)
        return {
            **moments.columns(self.alpha),
            "statistic": moments.difference,
            "df": np.full(p.size, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }

    def _compute_p_values(self, differences: FloatArray, seed: int) -> FloatArray:
        n_units = differences.shape[0]
        n_signings: int = min(1 << n_units, self.permutations)
        exact = n_signings == 1 << n_units
        signings = _iterate_signs(n_units, n_signings, None if exact else seed)
        threshold = np.abs(differences.sum(axis=0))
        threshold -= ROUNDING * np.abs(differences).sum(axis=0)
        hits, completed = np.zeros(differences.shape[1]), 0
        for signs in signings:
            hits += np.count_nonzero(np.abs(signs @ differences) >= threshold, axis=0)
            completed += len(signs)
            report_progress("sign-flip permutations", completed, n_signings)
        return hits / n_signings if exact else (hits + 1.0) / (n_signings + 1.0)


def _iterate_signs(n_units: int, n_signings: int, seed: int | None) -> Iterator[FloatArray]:
    """Yield every signing once, or as many sampled from ``seed``, ``float64[block, u]`` of ±1."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK_SIZE // max(n_units, 1))
    for start in range(0, n_signings, size):
        numbers = np.arange(start, min(start + size, n_signings))
        if seed is None:
            bits: AnyArray = (numbers[:, None] >> np.arange(n_units)) & 1
        else:
            octets = rng.integers(0, 256, size=(numbers.size, -(-n_units // 8)), dtype=np.uint8)
            bits = np.unpackbits(octets, axis=1, count=n_units)
        yield np.subtract(1.0, 2.0 * bits, dtype=np.float64)
