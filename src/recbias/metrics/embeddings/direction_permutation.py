"""The estimation of a direction from two groups, on bootstrap samples and permutations of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import collect_warnings, report_progress, warn
from recbias.metrics.embeddings.bias_direction import (
    COMPONENTS,
    DirectionName,
    compute_differences,
    estimate_direction,
    find_direction,
    fit_component,
    is_tied,
)
from recbias.metrics.embeddings.direction_bootstrap import (
    MIN_AGREEMENT,
    ResampledDirections,
    ResampledSets,
    estimate_agreement,
    estimate_stretch,
)
from recbias.metrics.embeddings.entity_sets import MIN_SIZE, SetPair
from recbias.metrics.embeddings.set_estimates import make_bootstrap_generator
from recbias.numerics.directions import (
    ZERO_TOLERANCE,
    normalize_rows,
    normalize_vector,
    orient_direction,
)
from recbias.statistics.bootstrap.set_bootstrap import resample_mean_rows
from recbias.statistics.permutation.set_permutation import permute_sums

N_HALVINGS = 11
"""How often the groups are divided into halves, to compare the directions of the halves."""


@dataclass(frozen=True, eq=False)
class DirectionEstimator:
    """A method that estimates a direction from two groups, and the groups.

    Args:
        choice: The method, or the path of a file.
        groups: A and B.
        evidence: The source of the random generators.
        top_n: ``csvc``: number of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.
        refits: Number of permutations for a method other than ``centroid``.
        pairs: The table of given pairs, for the components of their differences.
    """

    choice: DirectionName | Path
    groups: SetPair
    evidence: Evidence
    top_n: int
    sample: int | None
    refits: int
    pairs: Path | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the direction does not depend on the groups."""
        return isinstance(self.choice, Path) or self.choice == "random"

    @property
    def has_pairs(self) -> bool:
        """Whether the direction is a component of given pairs."""
        return self.pairs is not None and self.choice in COMPONENTS

    def estimate(self) -> FloatArray:
        """Return the unit vector towards A, ``float64[d]``; NaN if there is no direction."""
        return find_direction(
            self.choice,
            self.groups,
            self.evidence,
            top_n=self.top_n,
            sample=self.sample,
            pairs=self.pairs,
        )

    def resample(self, axis: FloatArray, rng: np.random.Generator) -> ResampledDirections:
        """Estimate the direction on each bootstrap sample of the groups; it is ``axis`` if fixed.

        There are at most a third of ``refits`` samples for ``svc``, ``csvc`` and the ``pca``. Each
        direction points towards A of its sample.
        """
        n_samples = self.evidence.n_bootstrap
        if self.is_fixed:
            return ResampledDirections(np.tile(axis, (n_samples, 1)))
        if self.choice == "centroid":
            a, b = (
                resample_mean_rows(np.hstack([group.vectors, group.directions]), n_samples, rng)
                for group in self.groups
            )
            differences, unit_differences = np.split(a - b, 2, axis=1)
            signs = np.where((differences * unit_differences).sum(axis=1) < 0, -1.0, 1.0)
            axes = signs[:, None] * normalize_rows(differences)
            return ResampledDirections(axes, estimate_stretch(differences))
        directions = []
        if self.has_pairs:
            axes = self._resample_pairs(min(self.refits // 3, n_samples), rng)
            return self._rate(axes, float(np.abs(axes @ axis).mean()))
        with _limit_threads():
            for _ in range(min(self.refits // 3, n_samples)):
                samples = [rng.integers(len(group), size=len(group) - 1) for group in self.groups]
                directions.append(self.refit_members(samples))
        axes = np.stack(directions)
        if self.choice in COMPONENTS:
            return self._rate(axes, float(np.abs(axes @ axis).mean()))
        return self._rate(axes, self._compare_halves(min(N_HALVINGS, n_samples), rng))

    def _rate(self, axes: FloatArray, agreement: float) -> ResampledDirections:
        """Return the directions with their agreement; a warning if it is too small."""
        if not agreement >= MIN_AGREEMENT:
            reason = f"is {agreement:.2f}, below {MIN_AGREEMENT}"
            cause = f"because the agreement of {self.choice} directions of parts of the groups"
            warn(f"{self.evidence.metric}: no interval, {cause} {reason}")
        component = self.choice in COMPONENTS
        chosen, centred = (self.choice == name for name in ("csvc", "pca_centred"))
        tied = component and is_tied(self.choice, self.groups, self.pairs)
        return ResampledDirections(axes, None, agreement, component, chosen, centred, tied)

    def _compare_halves(self, n: int, rng: np.random.Generator) -> float:
        """Return the agreement by ``n`` random divisions of the groups into halves."""
        if min(map(len, self.groups)) < 2 * MIN_SIZE:
            return math.nan
        halves = replace(
            self,
            top_n=max(1, self.top_n // 2),
            sample=self.sample and max(MIN_SIZE, self.sample // 2),
        )
        cosines = []
        with _limit_threads():
            for _ in range(n):
                orders = [rng.permutation(len(group)) for group in self.groups]
                first, second = (
                    halves.refit_members([order[part::2] for order in orders]) for part in (0, 1)
                )
                cosines.append(float(first @ second))
        return estimate_agreement(float(np.mean(cosines)))

    def refit_members(self, members: Sequence[AnyArray]) -> FloatArray:
        """Return the unit vector towards A of some members of each group."""
        pairs = list(zip(self.groups, members, strict=True))
        a, b = (group.vectors[rows] for group, rows in pairs)
        choosing_a, choosing_b = (group.choosing[rows] for group, rows in pairs)
        direction = self._refit((a, b), (choosing_a, choosing_b))
        return orient_direction(direction, *(group.directions[rows] for group, rows in pairs))

    def _resample_pairs(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """Estimate the direction on each bootstrap sample of the given pairs."""
        with collect_warnings():  # the estimate of all pairs has given these warnings
            differences = compute_differences(self.pairs, self.groups)  # type: ignore[arg-type]
        n = len(differences)
        units = [group.directions for group in self.groups]
        samples = (differences[rng.integers(n, size=n)] for _ in range(n_samples))
        axes = [orient_direction(fit_component(sample, self.choice), *units) for sample in samples]
        return np.stack(axes)

    def _refit(
        self, groups: tuple[FloatArray, FloatArray], choosing: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        with collect_warnings():  # the fit to the groups themselves has given these warnings
            return estimate_direction(
                self.choice,  # type: ignore[arg-type]  # a file is fixed
                groups,
                rng=self.evidence.rng(),
                top_n=self.top_n,
                sample=self.sample,
                choosing=choosing,
            )

    def compute_p_value(
        self, towards: FloatArray, permutations: int, rng: np.random.Generator
    ) -> float:
        """Return the p-value of a vector's cosine with the direction under permuted groups.

            p = #{ |cos(towards, ψ')| ≥ |cos(towards, ψ)| } / #{permutations}

        ψ' is estimated from a random division of the members into groups of the same sizes.

        Args:
            towards: The vector, ``float64[d]``.
            permutations: Number of permutations for ``centroid``; other methods use ``refits``.
            rng: The random generator.

        Returns:
            1 for ``random``, which is the same for every permutation; NaN for a file, because the
            groups that it was estimated from are unknown, and for given pairs, because their
            members are not exchangeable.
        """
        if self.has_pairs:
            return math.nan
        if self.is_fixed:
            return math.nan if isinstance(self.choice, Path) else 1.0
        score = partial(_compute_cosines, towards=normalize_vector(towards))
        a, b = (group.vectors for group in self.groups)
        if self.choice == "centroid":
            return permute_sums(a, b, score, n_permutations=permutations, rng=rng)
        choosing_a, choosing_b = (group.choosing for group in self.groups)
        pool, choosing = np.concatenate([a, b]), np.concatenate([choosing_a, choosing_b])
        n, n_extreme = len(a), 0
        with _limit_threads():
            fitted = self._refit((a, b), (choosing_a, choosing_b))
            observed = float(score(fitted[None, :])[0])
            for permutation in range(1, self.refits + 1):
                order = rng.permutation(len(pool))
                parts = (order[:n], order[n:])
                refitted = self._refit(
                    (pool[parts[0]], pool[parts[1]]), (choosing[parts[0]], choosing[parts[1]])
                )
                cosine = float(score(refitted[None, :])[0])
                n_extreme += cosine >= observed - ZERO_TOLERANCE
                report_progress("directions of permuted groups", permutation, self.refits)
        return (n_extreme + 1) / (self.refits + 1)


def resample_sets(
    estimator: DirectionEstimator, axis: FloatArray, targets: SetPair
) -> ResampledSets:
    """Resample users and items; the samples depend only on the sizes of groups and targets."""
    rng = make_bootstrap_generator(estimator.evidence)
    directions = estimator.resample(axis, rng)
    n_samples = len(directions.axes)
    e, p = (resample_mean_rows(target.directions, n_samples, rng) for target in targets)
    return ResampledSets(directions, e, p)


def _limit_threads() -> AbstractContextManager[object]:
    """Return a context with one BLAS thread, which is faster for small matrices."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


def _compute_cosines(rows: FloatArray, towards: FloatArray) -> FloatArray:
    """Return the absolute cosine of each row with a unit vector."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.abs(rows @ towards) / np.where(lengths > 0, lengths, 1.0)
