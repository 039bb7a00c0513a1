"""Figures and tests of two sets of which each entity has one value: EAA, or a cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.entity_sets import Pair
from recbias.numerics.directions import NOTHING
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
        samples: The mean of each set on every bootstrap sample, ``float64[b]`` each, where more
            than the entities is drawn again; None for a bootstrap of the entities.
        df: Degrees of freedom of their spread, where they are few; NaN where it is normal.
    """

    sets: Pair
    values: tuple[FloatArray, FloatArray]
    samples: tuple[FloatArray, FloatArray] | None = None
    df: float = math.nan

    def mean_figures(self, evidence: Evidence, prefix: str = "") -> list[Measurement]:
        """Return the mean of each set, with the value of every entity and a bootstrap interval."""
        found = zip(self.sets, self.values, self.resampled(evidence), strict=True)
        return [
            with_interval(each.mean_of(own, target=prefix + each.name), samples, self.df)
            for each, own, samples in found
        ]

    def sum_figures(self, evidence: Evidence) -> tuple[Measurement, Measurement]:
        """Return the sum of each set, with a bootstrap interval."""
        means = self.resampled(evidence)
        first, second = (
            with_interval(
                Measurement(
                    value=float(own.sum()), n=len(each), undefined=each.left_out, target=each.name
                ),
                len(each) * samples,
            )
            for each, own, samples in zip(self.sets, self.values, means, strict=True)
        )
        return first, second

    def difference(self, evidence: Evidence) -> Measurement:
        """Return the mean of the first set minus that of the second, with a bootstrap interval."""
        first, second = self.values
        means = self.resampled(evidence)
        figure = Measurement(
            value=float(first.mean() - second.mean()),
            n=first.size + second.size,
            undefined=sum(each.left_out for each in self.sets),
        )
        return with_interval(figure, means[0] - means[1], self.df)

    def test(
        self, between: str, names: tuple[str, str], permutations: int, evidence: Evidence
    ) -> Contrast:
        """Return the permutation test of which entity is in which set.

        Args:
            between: What the sets are: ``targets`` or ``groups``.
            names: What the two sides are called.
            permutations: How many relabellings are drawn where there are more.
            evidence: Where chance comes from.
        """
        first, second = self.values
        rng = evidence.rng().spawn(1)[0]
        mean_a, mean_b = float(first.mean()), float(second.mean())
        return Contrast(
            between=between,
            a=names[0],
            b=names[1],
            test="permutation",
            n=first.size + second.size,
            mean_a=mean_a,
            mean_b=mean_b,
            difference=mean_a - mean_b,
            statistic=mean_a - mean_b,
            p=permute_membership(first, second, n_permutations=permutations, rng=rng),
            effect_size=effect_size(first, second),
        )

    def resampled(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        """Return the mean of each set on every bootstrap sample of it, ``float64[b]`` each."""
        if self.samples is not None:
            return self.samples
        rng = resampling(evidence)
        first, second = (resample_means(own, evidence.n_bootstrap, rng) for own in self.values)
        return first, second


def resampling(evidence: Evidence) -> np.random.Generator:
    """Return the generator of the bootstrap, which is not that of the permutations."""
    return evidence.rng().spawn(2)[1]


def effect_size(first: FloatArray, second: FloatArray) -> float:
    """Return the difference of the means in units of the spread of both sets together.

        ( m(E) - m(P) ) / s,    s the sample standard deviation (n - 1) over E and P

    >>> round(effect_size(np.array([2.0, 4.0]), np.array([1.0, 1.0])), 4)  # 2 / sqrt(2)
    1.4142

    Args:
        first: Values of E, ``float64[n]``: cosines, or differences of cosines.
        second: Values of P, ``float64[m]``.

    Returns:
        NaN where all values are the same.

    Source:
        Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora
        contain human-like biases", Science 2017.
    """
    spread = float(np.concatenate([first, second]).std(ddof=1))
    return float(first.mean() - second.mean()) / spread if spread > NOTHING else float("nan")


def with_interval(
    figure: Measurement, replicates: FloatArray, df: float = math.nan
) -> Measurement:
    """Return a figure with its bootstrap samples and the interval that they give.

    Args:
        figure: The figure.
        replicates: Its bootstrap samples, ``float64[b]``.
        df: Degrees of freedom of their spread, for Student's t; NaN for the normal interval.
    """
    if math.isnan(df):
        low, high = normal_interval(figure.value, replicates)
    else:
        low, high = bootstrap_t_interval(figure.value, replicates, int(df))
    return replace(figure, replicates=replicates, df=df, ci_low=float(low), ci_high=float(high))


def told_of(test: Contrast, figure: Measurement, sides: tuple[float, float]) -> Contrast:
    """Return a test as one of a figure: its difference and interval, and the figures of a and b.

    Args:
        test: The test.
        figure: The figure, which is what the test tests or moves with it.
        sides: What belongs to ``a`` and to ``b``; their difference is the figure.
    """
    return replace(
        test,
        mean_a=sides[0],
        mean_b=sides[1],
        difference=figure.value,
        statistic=figure.value,
        ci_low=figure.ci_low,
        ci_high=figure.ci_high,
    )
