"""What chance does to a direction: its groups drawn again, and dealt out again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import collect_warnings, report_progress
from recbias.metrics.embeddings.bias_direction import Named, find_direction, work_out
from recbias.metrics.embeddings.entity_sets import Pair
from recbias.metrics.embeddings.set_estimates import resampling
from recbias.numerics.directions import NOTHING, oriented, unit, unit_rows
from recbias.statistics.bootstrap.set_bootstrap import resample_mean_rows
from recbias.statistics.permutation.set_permutation import permute_sums


@dataclass(frozen=True, eq=False)
class Finder:
    """How a direction is found from two groups, and found again from others of their sizes.

    Args:
        choice: Which direction.
        groups: A and B.
        evidence: Where chance comes from.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.
        refits: On how many relabellings a direction other than ``centroid`` is found again.
    """

    choice: Named | Path
    groups: Pair
    evidence: Evidence
    top_n: int
    sample: int | None
    refits: int

    @property
    def fixed(self) -> bool:
        """Whether the direction does not come from the groups."""
        return isinstance(self.choice, Path) or self.choice == "random"

    def find(self) -> FloatArray:
        """Return the direction of the groups, turned to A, ``float64[d]``; NaN where none is."""
        return find_direction(
            self.choice, self.groups, self.evidence, top_n=self.top_n, sample=self.sample
        )

    def drawn_again(self, axis: FloatArray, rng: np.random.Generator) -> Directions:
        """Return the direction on each bootstrap sample of the groups.

        Args:
            axis: The direction of the groups: that of every sample if it does not come from them.
            rng: Where chance comes from.

        Returns:
            As many as the evidence wants samples; of ``svc``, ``csvc`` and the ``pca`` at most a
            third of ``refits``. Each is turned to A of its sample.
        """
        n_samples = self.evidence.n_bootstrap
        if self.fixed:
            return Directions(np.tile(axis, (n_samples, 1)))
        if self.choice == "centroid":
            a, b = (self._mean_vectors(place, n_samples, rng) for place in (0, 1))
            found, ahead = np.split(a - b, 2, axis=1)
            signs = np.where((found * ahead).sum(axis=1) < 0, -1.0, 1.0)
            return Directions(signs[:, None] * unit_rows(found), excess(found))
        with _one_thread():
            axes = [self._of_sample(rng) for _ in range(min(self.refits // 3, n_samples))]
        return Directions(np.stack(axes))

    def _mean_vectors(self, place: int, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """Return the mean vector and mean unit vector of samples of a group, side by side."""
        group = self.groups[place]
        both = np.concatenate([group.vectors, group.directions], axis=1)
        return resample_mean_rows(both, n_samples, rng)

    def _of_sample(self, rng: np.random.Generator) -> FloatArray:
        drawn = [rng.integers(len(each), size=len(each) - 1) for each in self.groups]
        pairs = list(zip(self.groups, drawn, strict=True))
        found = self._work_out(*(each.vectors[some] for each, some in pairs))
        return oriented(found, *(each.directions[some] for each, some in pairs))

    def _work_out(self, a: FloatArray, b: FloatArray) -> FloatArray:
        with collect_warnings():  # what is wrong was said of the groups themselves
            return work_out(
                self.choice,  # type: ignore[arg-type]  # a file is not found again
                a,
                b,
                rng=self.evidence.rng(),
                top_n=self.top_n,
                sample=self.sample,
            )

    def p_value(self, towards: FloatArray, draws: int, rng: np.random.Generator) -> float:
        """Return how often the direction of groups dealt out again lies as much along a vector.

            p = #{ |cos(towards, ψ')| ≥ |cos(towards, ψ)| } / #{relabellings}

        ψ' is found again from the members of A and B dealt out into groups of the same sizes.

        Args:
            towards: The vector, ``float64[d]``.
            draws: How many relabellings ``centroid`` is found on; the others on ``refits``.
            rng: Where chance comes from.

        Returns:
            1 for ``random``, which is the same for every relabelling; NaN for a file, of which
            nobody knows what it was found from.
        """
        if self.fixed:
            return math.nan if isinstance(self.choice, Path) else 1.0
        a, b = (each.vectors for each in self.groups)
        if self.choice == "centroid":
            return permute_sums(a, b, _along(unit(towards)), n_permutations=draws, rng=rng)
        with _one_thread():
            return self._refitted_p_value(unit(towards), rng)

    def _refitted_p_value(self, towards: FloatArray, rng: np.random.Generator) -> float:
        pool = np.concatenate([each.vectors for each in self.groups])
        n, along = len(self.groups[0]), _along(towards)
        observed = float(along(self._work_out(pool[:n], pool[n:])[None, :])[0])
        hits = 0
        for done in range(1, self.refits + 1):
            dealt = pool[rng.permutation(len(pool))]
            found = float(along(self._work_out(dealt[:n], dealt[n:])[None, :])[0])
            hits += found >= observed - NOTHING
            report_progress("directions of groups dealt out again", done, self.refits)
        return (hits + 1) / (self.refits + 1)


def _one_thread() -> AbstractContextManager[object]:
    """Return what keeps small matrices on one thread: more of them wait for each other."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


def _along(towards: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return what gives the cosine of each row with a unit vector, whatever its sign."""

    def cosines(rows: FloatArray) -> FloatArray:
        lengths = np.linalg.norm(rows, axis=1)
        return np.abs(rows @ towards) / np.where(lengths > 0, lengths, 1.0)

    return cosines


def excess(found: FloatArray) -> FloatArray:
    """Return how many times as long as the difference of the groups each sample makes it look.

        |δ_b| / sqrt( |δ_b|² - 2 V ),    V = Σ_j var_b δ_bj

    The squared length of a difference of means is too large by the sum of its variances V, and
    that of a sample of it by V once more; a direction that is mostly chance is nearly at right
    angles to the true one, which makes every figure along it too small.

    Args:
        found: The differences of the means on the samples, ``float64 (b, d)``.

    Returns:
        ``float64[b]``, 1 or more; infinite where chance is all there is.
    """
    if len(found) < 2:
        return np.ones(len(found))
    squares = (found**2).sum(axis=1)
    left = squares - 2.0 * float(found.var(axis=0, ddof=1).sum())
    ratio = squares / np.where(left > 0, left, np.nan)
    return np.asarray(np.sqrt(np.where(left > 0, ratio, np.inf)))


@dataclass(frozen=True, eq=False)
class Directions:
    """A direction on bootstrap samples of the groups.

    Args:
        axes: Of length 1, ``float64 (b, d)``.
        stretch: By how much figures along each are too small, ``float64[b]``, as ``excess`` says;
            None where nobody knows.
    """

    axes: FloatArray
    stretch: FloatArray | None = None

    def interval(self, means: FloatArray) -> tuple[float, float] | None:
        """Return the 95% percentile interval of a figure along the direction, chance taken out.

        Args:
            means: The vector that the figure is along the direction, on each sample,
                ``float64 (b, d)``; its length is the most that the figure can be.

        Returns:
            None where the stretch is not known.
        """
        if self.stretch is None or len(means) < 2:
            return None
        most = np.linalg.norm(means, axis=1)
        known = np.isfinite(self.stretch) & ~np.isnan(self.axes).any(axis=1)
        along = (means * np.where(known[:, None], self.axes, 0.0)).sum(axis=1)
        found = np.clip(along * np.where(known, self.stretch, 1.0), -most, most)
        low, high = np.where(known, found, -most), np.where(known, found, most)
        return float(np.quantile(low, 0.025)), float(np.quantile(high, 0.975))


@dataclass(frozen=True, eq=False)
class Again:
    """Groups and targets drawn again.

    Args:
        directions: The direction on each sample of the groups.
        e: The mean unit vector of E on each sample of it, ``float64 (b, d)``.
        p: That of P.
    """

    directions: Directions
    e: FloatArray
    p: FloatArray

    @property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """The mean cosine of each set with the direction, ``float64[b]`` each."""
        axes = self.directions.axes
        return (self.e * axes).sum(axis=1), (self.p * axes).sum(axis=1)

    def with_intervals(self, figures: Sequence[Measurement]) -> list[Measurement]:
        """Return the differential and the figures of E and P with the interval of each."""
        made = []
        for figure, means in zip(figures, (self.e - self.p, self.e, self.p), strict=True):
            ends = self.directions.interval(means)
            made.append(
                figure if ends is None else replace(figure, ci_low=ends[0], ci_high=ends[1])
            )
        return made


def drawn_again(finder: Finder, axis: FloatArray, targets: Pair) -> Again:
    """Return users and items drawn again; which depends on the sizes of groups and sets only.

    Args:
        finder: How the direction is found.
        axis: The direction as found.
        targets: E and P.
    """
    rng = resampling(finder.evidence)
    directions = finder.drawn_again(axis, rng)
    many = len(directions.axes)
    e, p = (resample_mean_rows(each.directions, many, rng) for each in targets)
    return Again(directions, e, p)
