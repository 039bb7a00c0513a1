"""The direction of a sensitive attribute in the embedding space of a model, and its tests.

Directions are estimated from two groups, also by a linear support vector classifier, on bootstrap
samples and permutations of the groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le, Len

from recbias.core.context import collect_warnings, report_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.errors import BrokenContract, MissingFile
from recbias.core.evidence import Evidence
from recbias.core.files import has_file
from recbias.core.measures import Bounds, Contrast, Direction, Measurement
from recbias.core.plugins import InputFile, OnlyWith
from recbias.formats.vectors import read_numbers
from recbias.metrics.embeddings.sets import (
    MIN_SIZE,
    ZERO_TOLERANCE,
    ChoosingMetric,
    GroupMetric,
    SetPair,
    centroid_difference,
    fit_pair_component,
    is_component_tied,
    measure_sets,
    normalize_rows,
    normalize_vector,
    orient_direction,
    sample_cosines,
    sample_direction,
    select_sets,
)
from recbias.statistics.bootstrap import resample_mean_rows
from recbias.statistics.groups import compare_ranks, compute_moments, welch_contrasts
from recbias.statistics.permutation import permute_sets

_TOLERANCE = 1e-9
"""Converged when the length of a step, relative to the weights, is at most this."""

_MIN_RELATIVE_RIDGE = 1e-10
"""A ridge below this share of the curvature is lost to rounding in the normal equations."""


def minimize_squared_hinge(
    rows: AnyArray, signs: AnyArray, cost: float, *, max_steps: int = 200
) -> tuple[FloatArray, bool]:
    """Return the weights that minimise the squared hinge loss, and whether they converged.

        minimise  |w|²/2 + C Σ_i max(0, 1 - y_i w · x_i)²

    The objective is piecewise quadratic: the pieces differ in the rows that have a positive loss.
    Each Newton step minimises the current quadratic and is followed by an exact line search. With
    more dimensions than rows the problem is solved in the span of the rows. The weights,
    ``float64[d]``, are 0 if the sum of all y_i x_i is 0.

    Args:
        rows: x, ``(n, d)``; a constant column is an intercept, which |w|² penalises too.
        signs: y, 1 or -1, ``[n]``.
        cost: C.
        max_steps: Maximum number of Newton steps.

    Source:
        Keerthi and DeCoste, "A modified finite Newton method for fast solution of large scale
        linear SVMs", JMLR 6, 2005, sections 2 and 3.

    >>> rows, signs = np.array([[1.0], [-1.0]]), np.array([1, -1])
    >>> weights, is_minimum = minimize_squared_hinge(rows, signs, 1.0)
    >>> round(float(weights[0]), 12), is_minimum  # w - 4 (1 - w) = 0
    (0.8, True)
    """
    signed = np.asarray(rows, dtype=np.float64) * np.asarray(signs, dtype=np.float64)[:, None]
    scale = np.abs(signed).max(initial=0.0)
    if np.abs(signed.mean(axis=0)).max(initial=0.0) <= ZERO_TOLERANCE * scale:
        return np.zeros(signed.shape[1]), True
    signed /= scale
    ridge = 1.0 / scale / scale / (2.0 * cost)
    if signed.shape[0] >= signed.shape[1]:
        weights, is_minimum = _descend(signed, ridge, max_steps)
    else:
        basis, coordinates = np.linalg.qr(signed.T)
        inner, is_minimum = _descend(coordinates.T, ridge, max_steps)
        weights = basis @ inner
    return np.asarray(weights / scale), is_minimum


def _descend(signed: FloatArray, ridge: float, max_steps: int) -> tuple[FloatArray, bool]:
    """Minimise ``ridge |v|²/2 + Σ_i max(0, 1 - v · s_i)²/2`` over the rows ``s_i``."""
    weights, slack = np.zeros(signed.shape[1]), np.ones(len(signed))
    for _ in range(max_steps):
        step = _newton_step(signed, slack, weights, ridge)
        if np.linalg.norm(step) <= _TOLERANCE * np.linalg.norm(weights):
            return weights, True
        slope, curvature = ridge * float(weights @ step), ridge * float(step @ step)
        weights = weights + _search_line(slack, signed @ step, slope, curvature) * step
        slack = 1.0 - signed @ weights
    return weights, False


def _newton_step(
    signed: FloatArray, slack: FloatArray, weights: FloatArray, ridge: float
) -> FloatArray:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    active: BoolArray = slack > 0
    rows = signed[active]
    d = weights.size
    curvature = rows.T @ rows
    if ridge > _MIN_RELATIVE_RIDGE * float(np.trace(curvature)):
        curvature[np.diag_indices(d)] += ridge
        try:
            factor = cho_factor(curvature, check_finite=False)
        except LinAlgError:
            pass
        else:
            negative_gradient = rows.T @ slack[active] - ridge * weights
            return np.asarray(cho_solve(factor, negative_gradient, check_finite=False))
    # least squares on stacked rows: the normal equations would lose the ridge to rounding
    root = np.sqrt(ridge)
    stacked = np.concatenate([rows, root * np.eye(d)])
    targets = np.concatenate([slack[active], -root * weights])
    return np.asarray(lstsq(stacked, targets, check_finite=False)[0])


def _search_line(slack: FloatArray, change: FloatArray, slope: float, curvature: float) -> float:
    """Return the t >= 0 of least ``slope t + curvature t²/2 + Σ max(0, slack - t change)²/2``."""
    active = slack > 0
    crossing = np.flatnonzero(np.where(active, change > 0, change < 0))
    stops = slack[crossing] / change[crossing]
    order = np.argsort(stops, kind="stable")
    crossing, stops = crossing[order], stops[order]
    signs = np.where(active[crossing], -1.0, 1.0)
    slope_at_0 = slope - float(change[active] @ slack[active])
    curvature_at_0 = curvature + float(change[active] @ change[active])
    starts = np.append(0.0, stops)
    slope_steps = np.cumsum(signs * change[crossing] * slack[crossing])
    slopes = np.append(slope_at_0, slope_at_0 - slope_steps)
    curvature_steps = np.cumsum(signs * change[crossing] ** 2)
    curvatures = np.append(curvature_at_0, curvature_at_0 + curvature_steps)
    reaches_0 = slopes[:-1] + curvatures[:-1] * stops >= 0
    piece = int(np.argmax(reaches_0)) if reaches_0.any() else stops.size
    length = -slopes[piece] / max(curvatures[piece], curvature)
    return float(np.clip(length, starts[piece], np.append(stops, np.inf)[piece]))


_TEST_SHARE = 0.2
"""The share of each group in the test set."""

_COST = 1.0
"""The weight C of a misclassified member."""

MAX_STEPS = 200
"""Maximum number of solver steps; ten are usual."""


_Members: TypeAlias = tuple[AnyArray, AnyArray]
"""The positions of some members of A and of B."""


class Hyperplane(NamedTuple):
    """A hyperplane: a vector on its positive side is classified as A.

    Args:
        weights: Its normal vector, ``float64[d]``.
        intercept: Added to the product of a vector with the normal.
    """

    weights: FloatArray
    intercept: float

    def predict_a(self, vectors: AnyArray) -> BoolArray:
        """Return which vectors are classified as A, ``bool[n]``."""
        return np.asarray(vectors @ self.weights + self.intercept > 0)


class TrainedClassifier(NamedTuple):
    """A classifier of two groups, and its training and test members.

    Args:
        separator: The classifier.
        train: The members that it was trained on.
        test: The members that it is tested on.
    """

    separator: Hyperplane
    train: _Members
    test: _Members


def train_classifier(
    a: AnyArray,
    b: AnyArray,
    *,
    rng: np.random.Generator,
    sample: int | None = None,
    top_n: int | None = None,
    choosing: tuple[AnyArray, AnyArray] | None = None,
) -> TrainedClassifier:
    """Train a classifier of two groups on four fifths of each.

    Args:
        a: Vectors of A, ``(n_a, d)``, two or more.
        b: Vectors of B, ``(n_b, d)``, two or more.
        rng: The random generator; the same generator gives the same test members.
        sample: Maximum number of members per group.
        top_n: Train on this number of training members per group, those most aligned with the
            centroid difference.
        choosing: The vectors by which these are chosen, ``(n_a, d')`` and ``(n_b, d')``, if not by
            their own.
    """
    (train_a, train_b), test = split_members((len(a), len(b)), sample, rng)
    if top_n is not None:
        choosing_a, choosing_b = choosing or (a, b)
        aligned_a, aligned_b = select_most_aligned(choosing_a[train_a], choosing_b[train_b], top_n)
        train_a, train_b = train_a[aligned_a], train_b[aligned_b]
    return TrainedClassifier(fit_svc(a[train_a], b[train_b]), (train_a, train_b), test)


def split_members(
    sizes: tuple[int, int], sample: int | None, rng: np.random.Generator
) -> tuple[_Members, _Members]:
    """Split each of two groups at random: four fifths for training, a fifth for testing.

    At most ``sample`` members per group are used. The same generator gives the same test members
    for every classifier.

    >>> train, test = split_members((5, 10), None, np.random.default_rng(0))
    >>> [codes.size for codes in (*train, *test)]
    [4, 8, 1, 2]
    """
    samples = [rng.permutation(size)[:sample] for size in sizes]
    n_test = [min(max(round(_TEST_SHARE * codes.size), 1), codes.size - 1) for codes in samples]
    (a, b), (test_a, test_b) = samples, n_test
    return (a[test_a:], b[test_b:]), (a[:test_a], b[:test_b])


def fit_svc(a: AnyArray, b: AnyArray, *, cost: float = _COST) -> Hyperplane:
    """Fit a linear support vector classifier to the vectors of A and of B, ``(n, d)`` each.

        minimise  |w|²/2 + w_0²/2 + C Σ_i max(0, 1 - y_i (w · x_i + w_0))²,    C = 1

    y is 1 for A and -1 for B; the vectors are not standardised. This is the primal form of
    LIBLINEAR's L2-loss classifier (scikit-learn's ``LinearSVC``); a warning reports that the
    minimum was not reached.

    Source:
        Fan, Chang, Hsieh, Wang and Lin, "LIBLINEAR: a library for large linear classification",
        JMLR 2008, section 2.
    """
    vectors = np.concatenate([a, b])
    rows = np.column_stack([vectors, np.ones(len(vectors))])
    signs = np.repeat([1.0, -1.0], [len(a), len(b)])
    weights, is_minimum = minimize_squared_hinge(rows, signs, cost, max_steps=MAX_STEPS)
    if not is_minimum:
        warn(f"the support vector classifier has not converged after {MAX_STEPS:,} steps")
    return Hyperplane(weights[:-1], float(weights[-1]))


def select_most_aligned(a: AnyArray, b: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the positions of the ``n`` members of A and of B most aligned with their group.

    These are the members of A with the largest and of B with the smallest cosine with the centroid
    difference; ties are resolved by position. All members of a smaller group are returned.
    """
    directions = normalize_rows(a), normalize_rows(b)
    axis = np.nan_to_num(orient_direction(centroid_difference(a, b), *directions))
    aligned_a = np.argsort(-(directions[0] @ axis), kind="stable")[:n]
    return aligned_a, np.argsort(directions[1] @ axis, kind="stable")[:n]


_DirectionName: TypeAlias = Literal["centroid", "svc", "csvc", "pca", "pca_centred", "random"]
DirectionChoice: TypeAlias = _DirectionName | InputFile
TopN: TypeAlias = Annotated[int, Gt(0)]
Sample: TypeAlias = Annotated[int, Ge(2)] | None

COMPONENTS = ("pca", "pca_centred")
"""The directions that are components of the differences of pairs."""


def find_direction(
    choice: _DirectionName | Path,
    groups: SetPair,
    evidence: Evidence,
    *,
    top_n: int = 200,
    sample: int | None = None,
) -> FloatArray:
    """Return the unit vector ``float64[d]`` from group B to group A by a method or a file.

    - ``centroid``: the mean vector of A minus that of B;
    - ``svc``: the weights of a linear support vector classifier of A and B;
    - ``csvc``: the same, trained on the members most aligned with ``centroid``;
    - ``pca``: the first principal component of the differences of all pairs of A and B (the
      paper samples 1,000 of them);
    - ``pca_centred``: the same after subtracting the mean difference;
    - ``random``: a random direction, as a control;
    - a ``.npy`` file of one vector.

    The same evidence gives the same direction to every metric. Every entry is NaN, with a warning,
    if the groups have no direction, for example because all vectors are equal.

    Raises:
        BrokenContract: The vector of the file has another size.
    """
    a, b = (group.vectors for group in groups)
    if isinstance(choice, Path):
        vector, d = read_direction(choice), a.shape[1]
        if vector.size != d:
            message = f"a vector of {vector.size} dimensions, but those of the model have {d}"
            remedy = "use a vector of the embedding space of the model"
            raise BrokenContract(message, where=str(choice), remedy=remedy)
    else:
        choosing = groups[0].choosing, groups[1].choosing
        vector = _estimate_direction(
            choice, (a, b), rng=evidence.rng(), top_n=top_n, sample=sample, choosing=choosing
        )
    direction = orient_direction(vector, *(group.directions for group in groups))
    if np.isnan(direction).any():
        names = " and ".join(group.name for group in groups)
        name = name_direction(choice)
        warn(f"{evidence.metric}: the vectors of {names} have no {name} direction")
    return direction


def name_direction(choice: _DirectionName | Path) -> str:
    """Return the name of a direction in results: the name of a file without its folder."""
    return choice.name if isinstance(choice, Path) else choice


def read_direction(path: Path) -> FloatArray:
    """Return the vector of a ``.npy`` file, ``float64[d]``.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a ``.npy`` file of one vector of real numbers.
        BrokenContract: The vector contains NaN or infinity, or is 0.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    remedy = "write it with numpy.save(path, vector)"
    vector = read_numbers(path, 1, "one vector of numbers", remedy)
    numbers = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(numbers).all() or not numbers.any():
        message = "the vector contains NaN or infinity, or is 0, so it has no direction"
        raise BrokenContract(message, where=str(path), remedy=remedy)
    return numbers


def check_directions(choices: Iterable[_DirectionName | Path]) -> None:
    """Validate the files of directions, before there are vectors."""
    for choice in choices:
        if isinstance(choice, Path):
            read_direction(choice)


def _estimate_direction(
    choice: _DirectionName,
    groups: tuple[FloatArray, FloatArray],
    *,
    rng: np.random.Generator,
    top_n: int = 200,
    sample: int | None = None,
    choosing: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Estimate the direction of two groups: ``float64[d]`` of any length and sign, 0 for none.

    The groups are ``float64 (n, d)`` and ``(m, d)``; the settings are those of ``find_direction``.
    ``choosing`` are the vectors by which ``csvc`` chooses members, by default those of the groups.
    """
    a, b = groups
    if choice == "centroid":
        return centroid_difference(a, b)
    if choice == "random":
        return sample_direction(a.shape[1], rng)
    if choice in {"pca", "pca_centred"}:
        return fit_pair_component(a, b, centred=choice == "pca_centred")
    n_training = top_n if choice == "csvc" else None
    classifier = train_classifier(
        a, b, rng=rng, sample=sample, top_n=n_training, choosing=choosing
    )
    return classifier.separator.weights


_MIN_AGREEMENT = 0.5
"""The least agreement for which there is an interval: below it, the direction is mostly sampling
error, and the correction is too."""


def estimate_stretch(differences: FloatArray) -> FloatArray:
    """Return how much the sampling error of the group means shortens estimates, per sample.

        |δ_b| / sqrt( |δ_b|² - 2 V ),    V = Σ_j var_b δ_bj

    The squared length of a difference of means is too large by the sum of its variances V, and
    that of its bootstrap sample by V once more. A direction that is mostly noise is nearly
    orthogonal to the true one, so every estimate along it is too small.

    Args:
        differences: The differences of the means on the samples, ``float64 (b, d)``.

    Returns:
        ``float64[b]``, 1 or more; infinite if the difference is all noise.
    """
    if len(differences) < 2:
        return np.ones(len(differences))
    squares = (differences**2).sum(axis=1)
    remaining = squares - 2.0 * float(differences.var(axis=0, ddof=1).sum())
    ratio = squares / np.where(remaining > 0, remaining, np.nan)
    return np.asarray(np.sqrt(np.where(remaining > 0, ratio, np.inf)))


def _estimate_agreement(cosine: float) -> float:
    """Return about the cosine of a direction with the true one, from those of random halves.

        c = √( 2 κ / (1 + κ) )

    κ is the mean cosine of the directions of two halves of the groups. Two vectors with the same
    mean and independent errors of equal size have the expected cosine κ; with errors of half the
    variance, as the direction of both halves together has, 2 κ / (1 + κ) (Spearman and Brown). The
    root is the cosine of one of them with the mean.

    >>> _estimate_agreement(1.0), round(_estimate_agreement(0.5), 4), _estimate_agreement(-0.1)
    (1.0, 0.8165, 0.0)

    Source:
        Spearman, "Correlation calculated from faulty data", British Journal of Psychology 1910.
    """
    return math.sqrt(max(0.0, 2 * cosine / (1 + cosine))) if cosine > -1 else 0.0


@dataclass(frozen=True, eq=False)
class ResampledDirections:
    """A direction on bootstrap samples of the groups.

    Args:
        axes: The unit vectors, ``float64 (b, d)``.
        stretch: The factor of ``estimate_stretch``, ``float64[b]``; None if it is not known.
        agreement: About the cosine of the direction with the one that very many members would
            give; None if the direction does not depend on the groups, or the stretch is known.
        choice: The method; of a component the agreement is the mean absolute cosine with that of
            the groups.
        is_tied: Whether another component may be the first one of all there could be.
    """

    axes: FloatArray
    stretch: FloatArray | None = None
    agreement: float | None = None
    choice: str = ""
    is_tied: bool = False

    def compute_interval(self, estimate: float, means: FloatArray) -> tuple[float, float] | None:
        """Return the 95% interval of an estimate, corrected for the error of the direction.

        With a stretch it is the percentile interval of the stretched samples, otherwise

            x / c ± t(0.975; b - 1) · √( (se / c)² + (x / c - x)² )

        x is the estimate, se its bootstrap standard error, and c the agreement, by which every
        estimate along the direction is too small. The correction counts as an error as well.
        Of a component, another one may be first in the sample, of which the estimate may also be
        larger: the interval is x ± t √( se² + (x / c² - x)² ) if the differences are centred. If
        they are not, it has c³ in place of c². That power has no derivation: with c² the interval
        held 92.8% of simulated samples, with c³ 93.5 to 95.7% of 399 samples that had no part in
        the choice (``studies/calibration/run.py --first 5001``). Where another component may
        be the first, the direction is not known, and the interval has the largest possible width:
        ± (m + t s), m and s the mean and the standard deviation over the samples of the length
        that bounds the estimate. Members that are chosen by
        their cosine with the centroid difference are chosen by its sampling error as well, on
        which the directions of halves then agree too well: the interval is
        x / c ± t √( (se / c)² + (x / c² - x)² ).

        Args:
            estimate: The estimate.
            means: The vector whose component along the direction is the estimate, on each sample,
                ``float64 (b, d)``; its length bounds the estimate.

        Returns:
            None if the direction does not depend on the groups, or there are fewer than two
            samples; NaN if the agreement is below ``_MIN_AGREEMENT``.
        """
        if len(means) < 2:
            return None
        if self.agreement is not None:
            return self._correct_by_agreement(estimate, means, self.agreement)
        if self.stretch is None:
            return None
        bounds = np.linalg.norm(means, axis=1)
        defined = np.isfinite(self.stretch) & ~np.isnan(self.axes).any(axis=1)
        along = (means * np.where(defined[:, None], self.axes, 0.0)).sum(axis=1)
        estimates = np.clip(along * np.where(defined, self.stretch, 1.0), -bounds, bounds)
        low, high = np.where(defined, estimates, -bounds), np.where(defined, estimates, bounds)
        return float(np.quantile(low, 0.025)), float(np.quantile(high, 0.975))

    def add_interval(self, estimate: Measurement, means: FloatArray) -> Measurement:
        """Return an estimate with the interval of ``compute_interval``, or as it is."""
        ends = self.compute_interval(estimate.value, means)
        return replace(estimate, ci_low=ends[0], ci_high=ends[1]) if ends else estimate

    def _correct_by_agreement(
        self, estimate: float, means: FloatArray, agreement: float
    ) -> tuple[float, float]:
        from scipy.special import stdtrit

        if not agreement >= _MIN_AGREEMENT:
            return math.nan, math.nan
        quantile = float(stdtrit(len(means) - 1, 0.975))
        if self.is_tied:
            lengths = np.linalg.norm(means, axis=1)
            limit = float(lengths.mean()) + quantile * float(lengths.std(ddof=1))
            return -limit, limit
        se = float((means * self.axes).sum(axis=1).std(ddof=1))
        factor = 1.0 if self.choice in COMPONENTS else 1.0 / agreement
        power = {"csvc": 2, "pca_centred": 2, "pca": 3}.get(self.choice, 1)
        centre = factor * estimate
        error = math.hypot(factor * se, estimate / agreement**power - estimate)
        half_width = quantile * error
        return centre - half_width, centre + half_width


@dataclass(frozen=True, kw_only=True)
class DirectionChecks(ChoosingMetric, GroupMetric):
    """Whether a direction separates two groups better than a random direction does.

        mean_{a in A} cos(a, ψ) - mean_{b in B} cos(b, ψ)

    for each direction ψ, which is estimated from one half of each group and points from B to A; A
    and B are the other halves (or all members, with ``members: all``):

    1. the cosines of A with ψ differ from those of B (the value without a group);
    2. the cosines of A with ψ differ from its cosines with a random direction, likewise for B;
    3. the cosines of A with ψ differ from those of as many random vectors with ψ, likewise for B.

    The values of A and of B are their mean cosines with ψ, with the value of each member, and have
    the tests 2 and 3, against ``random direction`` and ``random vectors``. Random directions and
    vectors are standard normal, scaled to length 1, and sampled ``repeats`` times; the sample with
    the median p is reported (the larger of two medians). Each check is Welch's t-test, and the
    Wilcoxon-Mann-Whitney rank-sum test on the same values, with the rank-biserial correlation as
    its effect size. A direction should pass all three. The paper uses 0.05 / 15 = 0.0033 for 5
    directions and 3 checks; here all Welch tests are corrected together, and all rank-sum tests.

    The paper does not split the groups, so a direction is tested on the members that it was
    estimated from: even with random groups it passes the first check most of the time. That is
    ``members: all``, for comparison with the paper; its intervals and p-values of estimated
    directions are not valid. With halves the first check has an error rate of 5%, but less power
    for a weak direction. Checks 2
    and 3 do not test whether the direction is that of the attribute: if the vectors of all members
    have similar directions, as in most recommenders, nearly every direction passes them, also that
    of random groups.

    Only the tested members are counted. Undefined for one without a vector, or with a
    vector of 0; everything is undefined, with a warning, if the groups have no direction.

    Args:
        directions: One or more of ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``,
            ``random``, or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: number of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.
        members: The members that a direction is tested on: ``halves`` estimates it on one half of
            each group and tests it on the other, ``all`` does both on all members, as in the
            paper.
        repeats: Number of random directions and sets of random vectors.

    Raises:
        BrokenContract: The vector of a file has another size than those of the model.

    Range:
        -2 to 2, -1 to 1 for one group; undefined without a direction or vector.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 4.
    """

    direction: ClassVar[Direction] = "none"

    chosen_in: Annotated[str | None, OnlyWith("directions", "csvc")] = None
    directions: Annotated[tuple[DirectionChoice, ...], Len(1)] = ("centroid",)
    top_n: Annotated[TopN, OnlyWith("directions", "csvc")] = 200
    sample: Annotated[Sample, OnlyWith("directions", "svc", "csvc")] = None
    members: Literal["halves", "all"] = "halves"
    repeats: Annotated[int, Gt(0), Le(100_000)] = 100

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that do not change the value."""
        return frozenset({"repeats"})

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and files before any training."""
        super().check(evidence)
        check_directions(self.directions)

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return -1 and 1 for a group, and -2 and 2 for the difference."""
        return (-1.0, 1.0) if row.group else (-2.0, 2.0)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the difference and the mean cosine of the groups for each direction."""
        groups = select_sets(evidence, self.groups)
        halves = split_in_halves(groups, evidence)
        train, test = halves if self.members == "halves" else (groups, groups)
        measurements: list[Measurement] = []
        for choice in self.directions:
            if all(map(len, train)):
                axis = find_direction(
                    choice, train, evidence, top_n=self.top_n, sample=self.sample
                )
            else:
                reason = "no member in a half of a group has a vector"
                warn(f"{evidence.metric}: no direction, because {reason}")
                axis = np.full(train[0].vectors.shape[1], np.nan)
            measurements += self._measure(name_direction(choice), axis, test, evidence)
        return measurements

    def _measure(
        self, name: str, axis: FloatArray, groups: SetPair, evidence: Evidence
    ) -> Iterator[Measurement]:
        a, b = (group.directions @ axis for group in groups)
        tests = _test_median(a, [b], "groups", (groups[0].name, groups[1].name))
        gap = float(a.mean() - b.mean()) if all(map(len, groups)) else math.nan
        difference = measure_sets(gap, groups, target=name)
        if tests and difference.n:  # with Welch's interval
            low, high = tests[0].ci_low, tests[0].ci_high
            difference = replace(difference, contrasts=tuple(tests), ci_low=low, ci_high=high)
        yield replace(difference, axes={name: axis})
        rng = evidence.rng().spawn(3)[2]
        for group, cosines in zip(groups, (a, b), strict=True):
            axes = normalize_rows(rng.standard_normal((self.repeats, axis.size)))
            samples = (group.directions @ random_axis for random_axis in axes)
            tests = _test_median(cosines, samples, "directions", (name, "random direction"))
            samples = (sample_cosines(cosines.size, axis.size, rng) for _ in axes)
            tests += _test_median(cosines, samples, "groups", (group.name, "random vectors"))
            estimate = group.measure_mean(cosines, group=group.name, target=name)
            yield replace(estimate, contrasts=tuple(tests))


def split_in_halves(groups: SetPair, evidence: Evidence) -> tuple[SetPair, SetPair]:
    """Split each group at random into a half to estimate a direction and a half to test it.

    The halves depend only on the members, with or without a vector, so all models have the same.
    """
    rng = evidence.rng().spawn(4)[3]
    in_half = []
    for group in groups:
        n = group.has_vector.size
        in_half.append(rng.permutation(n) < n // 2)
    (a, b), (in_a, in_b) = groups, in_half
    return (a.take(in_a), b.take(in_b)), (a.take(~in_a), b.take(~in_b))


def _test_median(
    values: FloatArray,
    samples: Sequence[FloatArray] | Iterator[FloatArray],
    between: str,
    names: tuple[str, str],
) -> list[Contrast]:
    """Return both tests of values, ``float64[n]``, against the sample with the median p-value."""
    tests = []
    for sample in samples:
        codes = np.repeat([0, 1], [values.size, sample.size])
        moments = compute_moments(np.concatenate([values, sample]), codes, 2)
        tests.append((welch_contrasts(names, moments, between=between)[0], sample))
    if all(math.isnan(test.p) for test, _ in tests):
        return []
    tests.sort(key=lambda row: row[0].p)
    welch, sample = tests[len(tests) // 2]
    return [welch, compare_ranks(names, values, sample, between=between)]


_N_HALVINGS = 11
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
    """

    choice: _DirectionName | Path
    groups: SetPair
    evidence: Evidence
    top_n: int
    sample: int | None
    refits: int

    @property
    def is_fixed(self) -> bool:
        """Whether the direction does not depend on the groups."""
        return isinstance(self.choice, Path) or self.choice == "random"

    def estimate(self) -> FloatArray:
        """Return the unit vector towards A, ``float64[d]``; NaN if there is no direction."""
        return find_direction(
            self.choice, self.groups, self.evidence, top_n=self.top_n, sample=self.sample
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
        with _limit_threads():
            for _ in range(min(self.refits // 3, n_samples)):
                samples = [rng.integers(len(group), size=len(group) - 1) for group in self.groups]
                directions.append(self.refit_members(samples))
        axes = np.stack(directions)
        if self.choice in COMPONENTS:
            return self._rate(axes, float(np.abs(axes @ axis).mean()))
        return self._rate(axes, self._compare_halves(min(_N_HALVINGS, n_samples), rng))

    def _rate(self, axes: FloatArray, agreement: float) -> ResampledDirections:
        """Return the directions with their agreement; a warning if it is too small."""
        if not agreement >= _MIN_AGREEMENT:
            reason = f"is {agreement:.2f}, below {_MIN_AGREEMENT}"
            cause = f"because the agreement of {self.choice} directions of parts of the groups"
            warn(f"{self.evidence.metric}: no interval, {cause} {reason}")
        is_tied = False
        if self.choice in COMPONENTS:
            means = [group.vectors.mean(axis=0) for group in self.groups]
            rows = [group.vectors - mean for group, mean in zip(self.groups, means, strict=True)]
            shift = None if self.choice == "pca_centred" else means[0] - means[1]
            is_tied = is_component_tied(rows, shift)
        return ResampledDirections(axes, None, agreement, str(self.choice), is_tied)

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
        return _estimate_agreement(float(np.mean(cosines)))

    def refit_members(self, members: Sequence[AnyArray]) -> FloatArray:
        """Return the unit vector towards A of some members of each group."""
        pairs = list(zip(self.groups, members, strict=True))
        a, b = (group.vectors[rows] for group, rows in pairs)
        choosing_a, choosing_b = (group.choosing[rows] for group, rows in pairs)
        direction = self._refit((a, b), (choosing_a, choosing_b))
        return orient_direction(direction, *(group.directions[rows] for group, rows in pairs))

    def _refit(
        self, groups: tuple[FloatArray, FloatArray], choosing: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        with collect_warnings():  # the fit to the groups themselves has given these warnings
            return _estimate_direction(
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
            groups that it was estimated from are unknown.
        """
        if self.is_fixed:
            return math.nan if isinstance(self.choice, Path) else 1.0
        score = partial(_compute_cosines, towards=normalize_vector(towards))
        a, b = (group.vectors for group in self.groups)
        if self.choice == "centroid":
            return permute_sets(
                a,
                b,
                lambda first, second: score(first - second)[..., None],
                n_permutations=permutations,
                rng=rng,
            )
        choosing_a, choosing_b = (group.choosing for group in self.groups)
        pool, choosing = np.concatenate([a, b]), np.concatenate([choosing_a, choosing_b])
        n, n_extreme = len(a), 0
        with _limit_threads():
            fitted = self._refit((a, b), (choosing_a, choosing_b))
            observed = float(score(fitted))
            for permutation in range(1, self.refits + 1):
                order = rng.permutation(len(pool))
                parts = (order[:n], order[n:])
                refitted = self._refit(
                    (pool[parts[0]], pool[parts[1]]), (choosing[parts[0]], choosing[parts[1]])
                )
                cosine = float(score(refitted))
                n_extreme += cosine >= observed - ZERO_TOLERANCE
                report_progress("directions of permuted groups", permutation, self.refits)
        return (n_extreme + 1) / (self.refits + 1)


def _limit_threads() -> AbstractContextManager[object]:
    """Return a context with one BLAS thread, which is faster for small matrices."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


def _compute_cosines(rows: FloatArray, towards: FloatArray) -> FloatArray:
    """Return the absolute cosine of each row with a unit vector."""
    lengths = np.linalg.norm(rows, axis=-1)
    return np.abs(rows @ towards) / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True, kw_only=True)
class DirectionSimilarity(ChoosingMetric, GroupMetric):
    """The cosine of every two estimated directions of one attribute.

        cos(ψ, ψ') = ψ · ψ' / (|ψ| |ψ'|)

    Each direction points from group B to group A. The target names the two directions:
    ``svc vs centroid``; ``csvc`` is estimated once for each ``top_n``, and named ``csvc 200``.
    Undefined, with a warning, if the groups have no such direction. There is no interval.

    Args:
        directions: Two or more of ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``,
            ``random``, or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: numbers of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.

    Raises:
        BrokenContract: The vector of a file has another size than those of the model.

    Range:
        -1 to 1; undefined without a direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, table 2.
    """

    direction: ClassVar[Direction] = "none"

    chosen_in: Annotated[str | None, OnlyWith("directions", "csvc")] = None
    directions: Annotated[tuple[DirectionChoice, ...], Len(2)] = (
        *("centroid", "svc", "csvc", "pca", "pca_centred"),
    )
    top_n: Annotated[tuple[TopN, ...], Len(1), OnlyWith("directions", "csvc")] = (200,)
    sample: Annotated[Sample, OnlyWith("directions", "svc", "csvc")] = None

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and files before any training."""
        super().check(evidence)
        check_directions(self.directions)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the cosine of every two directions."""
        groups = select_sets(evidence, self.groups)
        return [
            measure_sets(
                float(np.clip(axis_a @ axis_b, -1.0, 1.0)),
                groups,
                target=f"{name_a} vs {name_b}",
                axes={name_a: axis_a, name_b: axis_b},
            )
            for (name_a, axis_a), (name_b, axis_b) in combinations(
                self._estimate(groups, evidence), 2
            )
        ]

    def _estimate(self, groups: SetPair, evidence: Evidence) -> Iterator[tuple[str, FloatArray]]:
        for choice in self.directions:
            for top_n in self.top_n if choice == "csvc" else self.top_n[:1]:
                axis = find_direction(choice, groups, evidence, top_n=top_n, sample=self.sample)
                yield f"csvc {top_n}" if choice == "csvc" else name_direction(choice), axis
