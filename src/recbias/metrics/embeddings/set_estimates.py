"""Estimates and tests of two sets of which each entity has one value: EAA, or a cosine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.entity_sets import EntitySet, SetPair
from recbias.numerics.directions import ZERO_TOLERANCE
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.bootstrap.set_bootstrap import resample_means
from recbias.statistics.intervals import normal_interval
from recbias.statistics.permutation.set_permutation import permute_membership


@dataclass(frozen=True, eq=False)
class SetValues:
    """One value for each entity of two sets.

    Args:
        sets: The two sets.
        values: The values of their entities, ``float64[n]`` and ``float64[m]``.
        samples: The mean of each set on every bootstrap sample, ``float64[b]`` each, if more than
            the entities is resampled; None to resample the entities.
        df: Degrees of freedom of the bootstrap standard error; NaN for the normal distribution.
    """

    sets: SetPair
    values: tuple[FloatArray, FloatArray]
    samples: tuple[FloatArray, FloatArray] | None = None
    df: float = math.nan

    def measure_means(self, evidence: Evidence, prefix: str = "") -> list[Measurement]:
        """Return the mean of each set, with the values of the entities and an interval."""
        rows = zip(self.sets, self.values, self.resample(evidence), strict=True)
        return [
            add_interval(group.measure_mean(values, target=prefix + group.name), samples, self.df)
            for group, values, samples in rows
        ]

    def measure_sums(self, evidence: Evidence) -> tuple[Measurement, Measurement]:
        """Return the sum of each set, with a bootstrap interval."""
        rows = zip(self.sets, self.values, self.resample(evidence), strict=True)
        e, p = (
            add_interval(
                measure_sets(float(values.sum()), [group], target=group.name), len(group) * samples
            )
            for group, values, samples in rows
        )
        return e, p

    def measure_difference(self, evidence: Evidence) -> Measurement:
        """Return the mean of the first set minus that of the second, with an interval."""
        a, b = self.values
        means = self.resample(evidence)
        estimate = measure_sets(float(a.mean() - b.mean()), self.sets)
        return add_interval(estimate, means[0] - means[1], self.df)

    def test(self, between: str, permutations: int, evidence: Evidence) -> Contrast:
        """Return the permutation test of the membership of the entities."""
        a, b = self.values
        rng = evidence.rng().spawn(1)[0]
        mean_a, mean_b = float(a.mean()), float(b.mean())
        return Contrast(
            between=between,
            a=self.sets[0].name,
            b=self.sets[1].name,
            test="permutation",
            n=a.size + b.size,
            mean_a=mean_a,
            mean_b=mean_b,
            difference=mean_a - mean_b,
            statistic=mean_a - mean_b,
            p=permute_membership(a, b, n_permutations=permutations, rng=rng),
            effect_size=compute_effect_size(a, b),
        )

    def resample(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        """Return the mean of each set on every bootstrap sample of it, ``float64[b]`` each."""
        if self.samples is not None:
            return self.samples
        rng = make_bootstrap_generator(evidence)
        a, b = (resample_means(values, evidence.n_bootstrap, rng) for values in self.values)
        return a, b


def make_bootstrap_generator(evidence: Evidence) -> np.random.Generator:
    """Return the generator of the bootstrap, which differs from that of the permutations."""
    return evidence.rng().spawn(2)[1]


def compute_effect_size(e: FloatArray, p: FloatArray) -> float:
    """Return the difference of the means in units of the standard deviation of both sets.

        ( m(E) - m(P) ) / s,    s the sample standard deviation (n - 1) over E and P

    >>> round(compute_effect_size(np.array([2.0, 4.0]), np.array([1.0, 1.0])), 4)  # 2 / sqrt(2)
    1.4142

    Args:
        e: Values of E, ``float64[n]``: cosines, or differences of cosines.
        p: Values of P, ``float64[m]``.

    Returns:
        NaN if all values are equal.

    Source:
        Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora
        contain human-like biases", Science 2017.
    """
    deviation = float(np.concatenate([e, p]).std(ddof=1))
    return float(e.mean() - p.mean()) / deviation if deviation > ZERO_TOLERANCE else math.nan


def add_interval(
    estimate: Measurement, replicates: FloatArray, df: float = math.nan
) -> Measurement:
    """Return an estimate with its bootstrap replicates and the interval that they give.

    It is normal if ``df`` is NaN, otherwise Student's t.
    """
    if math.isnan(df):
        low, high = normal_interval(estimate.value, replicates)
    else:
        low, high = bootstrap_t_interval(estimate.value, replicates, int(df))
    return replace(estimate, replicates=replicates, df=df, ci_low=float(low), ci_high=float(high))


def attach_estimate(test: Contrast, estimate: Measurement) -> Contrast:
    """Return a test with the difference and interval of an estimate, which is its statistic."""
    return replace(
        test,
        difference=estimate.value,
        statistic=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
    )


def measure_sets(value: float, sets: Sequence[EntitySet], **fields: Any) -> Measurement:
    """Return an estimate of some sets together; if it is NaN, all members are undefined."""
    n = 0 if math.isnan(value) else sum(map(len, sets))
    undefined = sum(entities.has_vector.size for entities in sets) - n
    return Measurement(value=value, n=n, undefined=undefined, **fields)
