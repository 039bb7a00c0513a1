"""The two groups and two target sets of a spec, their vectors, and estimates of their entities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids, Interactions
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingEvidence,
    NothingLeft,
    at_setting,
)
from recbias.core.evidence import REMEDIES, Evidence
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.core.text import suggest
from recbias.statistics.bootstrap import resample_means
from recbias.statistics.intervals import bootstrap_interval
from recbias.statistics.permutation import permute_sets

DECILES = 10


def compute_audience_deciles(
    train: Interactions, a: AnyArray, b: AnyArray
) -> npt.NDArray[np.int64]:
    """Return the decile of each item by the share of group A among its users of A and B.

        decile = ⌊10 n_A / (n_A + n_B)⌋, and 9 for a share of 1

    A user counts once for an item; ``a`` and ``b`` are the codes of the users of A and of B.

    Returns:
        ``int64[n_items]``: 0 to 9; -1 for an item without users of A or B.
    """
    n_a, n_b = (
        np.bincount(train.binary[codes].indices, minlength=train.n_items).astype(np.int64)
        for codes in (a, b)
    )
    n_users = n_a + n_b
    deciles = np.minimum(DECILES * n_a // np.maximum(n_users, 1), DECILES - 1)
    return np.where(n_users > 0, deciles, -1)


def average_favourites(
    train: Interactions, vectors: AnyArray, users: AnyArray, n: int
) -> tuple[FloatArray, AnyArray]:
    """Return the mean vector of the favourite items of each user.

    The favourites are the ``n`` training items with the largest value (rating, or number of
    interactions if there are no ratings) among those with a vector; ties are resolved by code.

    Args:
        train: The training interactions.
        vectors: Vectors of the items, ``(n_items, d)``; a row of NaN for a missing vector.
        users: Codes of the users.
        n: Maximum number of favourites.

    Returns:
        ``float64 (m, d)``, and the ascending positions in ``users`` of the m users with
        favourites.
    """
    has_vector = np.asarray(np.isfinite(vectors).all(axis=1))
    entries = train.weighted[users].tocoo()
    usable = has_vector[entries.col]
    rows, items, values = entries.row[usable], entries.col[usable], entries.data[usable]
    order = np.lexsort((items, -values, rows))
    rows, items = rows[order], items[order]
    starts = np.searchsorted(rows, rows)  # the first entry of the row
    is_favourite = np.arange(rows.size) - starts < n
    rows, items = rows[is_favourite], items[is_favourite]
    positions, dense, counts = np.unique(rows, return_inverse=True, return_counts=True)
    totals = np.zeros((positions.size, vectors.shape[1]))
    np.add.at(totals, dense, vectors[items])
    return totals / counts[:, None], positions


_Entity: TypeAlias = Literal["users", "items"]


class _EntityPair:
    """Two sets of users or items by their values of an attribute."""

    setting: ClassVar[str]
    """The setting that names them, for error messages."""
    sides: ClassVar[tuple[str, str]]
    """The fields of the two values."""

    of: _Entity
    attribute: str
    exclusive: bool

    def __post_init__(self) -> None:
        """Refuse two equal sets."""
        if self.values[0] == self.values[1]:
            message = f"both sets are {self.values[0]!r}"
            raise Contradiction(message, where=self.sides[1], remedy="name two different values")

    @property
    def values(self) -> tuple[str, str]:
        """The value of the first set and of the second."""
        first, second = self.sides
        return vars(self)[first], vars(self)[second]


@dataclass(frozen=True, kw_only=True)
class GroupPair(_EntityPair):
    """The two groups that define a sensitive attribute.

    Args:
        of: ``users`` or ``items``.
        attribute: A column of their table; a cell ``x|y`` has both values.
        a: The value of group A: positive estimates are towards it.
        b: The value of group B.
        exclusive: Exclude members that have both values; otherwise they are in both groups.

    Raises:
        Contradiction: Both values are the same.
    """

    setting = "groups"
    sides = ("a", "b")

    of: _Entity = "users"
    attribute: str
    a: str
    b: str
    exclusive: bool = True


@dataclass(frozen=True, kw_only=True)
class TargetPair(_EntityPair):
    """The two sets whose association with the groups is measured.

    Args:
        of: ``users`` or ``items``.
        attribute: A column of their table; a cell ``x|y`` has both values.
        e: The value of set E.
        p: The value of set P, which E is compared with.
        exclusive: Exclude members that have both values; otherwise they are in both sets.

    Raises:
        Contradiction: Both values are the same.
    """

    setting = "targets"
    sides = ("e", "p")

    of: _Entity = "items"
    attribute: str
    e: str
    p: str
    exclusive: bool = True


_TIED_LEVEL = 0.01
"""The probability that components of equal variance do not count as tied."""

ZERO_TOLERANCE = 1e-12
"""Length, relative to the vectors it is computed from, up to which a direction counts as 0."""


def normalize_rows(vectors: AnyArray) -> FloatArray:
    """Scale each row to length 1, ``float64 (n, d)``; a row of zeros becomes NaN.

    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [nan, nan]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, np.nan)  # avoids overflow of the squares
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def normalize_vector(direction: AnyArray) -> FloatArray:
    """Scale a vector to length 1, ``float64[d]``; a vector of zeros becomes NaN."""
    return np.asarray(normalize_rows(np.asarray(direction)[None, :])[0])


def centroid_difference(a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the mean row of ``a`` minus that of ``b``, ``float64[d]``; 0 if they are equal.

    >>> centroid_difference(np.array([[1.0, 2.0]]), np.array([[0.0, 2.0]])).tolist()
    [1.0, 0.0]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    gap = a.mean(axis=0) - b.mean(axis=0)
    is_zero = np.abs(gap).max(initial=0.0) <= ZERO_TOLERANCE * _max_magnitude(a, b)
    return np.zeros_like(gap) if is_zero else gap


def fit_pair_component(a: AnyArray, b: AnyArray, *, centred: bool) -> FloatArray:
    """Return the first principal component of the differences of all pairs of ``a`` and ``b``.

        (1 / n m) Σ_i Σ_j (a_i - b_j)(a_i - b_j)ᵀ = S_a + S_b + (m_a - m_b)(m_a - m_b)ᵀ

    S are the covariances (divided by n, not n - 1) and m the means, so the pairs are never formed.
    If ``centred``, the mean difference is subtracted first, which leaves S_a + S_b. The component
    has length 1 and arbitrary sign; it is 0 if the differences do not vary.

    >>> component = fit_pair_component(
    ...     np.array([[0.0, 1], [0, 3]]), np.array([[5.0, 1]]), centred=True
    ... )
    >>> np.abs(component).round(6).tolist()  # the differences are (-5, 0) and (-5, 2)
    [0.0, 1.0]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    factors = [a - a.mean(axis=0), b - b.mean(axis=0)]
    if not centred:
        factors.append(centroid_difference(a, b)[None, :])
    moment = sum(factor.T @ factor / len(factor) for factor in factors)
    eigenvalues, axes = np.linalg.eigh(moment)
    varies = eigenvalues[-1] > (ZERO_TOLERANCE * _max_magnitude(a, b)) ** 2
    return np.asarray(axes[:, -1] if varies else 0.0 * axes[:, -1])


def _max_magnitude(a: FloatArray, b: FloatArray) -> float:
    return float(max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)))


def principal_components(rows: AnyArray, n: int) -> FloatArray:
    """Return the unit directions of largest variance, in descending order of variance.

    Rows of lower rank than ``n`` give fewer; the signs are arbitrary. The mean of the rows is
    subtracted first.

    >>> rows = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, 3.0], [-2.0, 3.0]])
    >>> np.abs(principal_components(rows, 1)).round(6).tolist()  # x has the larger variance
    [[1.0, 0.0]]
    """
    shifted = np.asarray(rows, dtype=np.float64)
    shifted = shifted - shifted.mean(axis=0)
    _, sizes, axes = np.linalg.svd(shifted, full_matrices=False)
    scale = max(np.abs(rows).max(initial=0.0), sizes[:1].max(initial=0.0))
    return np.asarray(axes[:n][sizes[:n] > ZERO_TOLERANCE * scale])


def is_component_tied(groups: Sequence[FloatArray], shift: FloatArray | None = None) -> bool:
    """Return whether another principal component may be the first one of all there could be.

        M = Σ_g mean_g(u uᵀ) + s sᵀ,    component j is tied with the first if
        λ_1 - λ_j < √( -8 log α ) δ_j,    δ_j² = Σ_g var_g(u_1 u_j ± s_1 u_j ± s_j u_1) / n_g

    M is the second moment of differences, δ_j the standard error of its entry (1, j), and u_j and
    s_j coordinates along component j. If two eigenvalues of all there could be are equal, the
    squared difference of those of a sample is 4 δ_j² times a chi-squared variable of two degrees
    of freedom, above the limit with probability α = 0.01 / (d - 1), Bonferroni's level; any vector
    in the plane of the two components may then be the first.

    Args:
        groups: The rows u of each group, ``float64 (n, d)``: vectors less the mean of their group,
            or differences of pairs.
        shift: The difference s of the means of two groups, ``float64[d]``, of which the sign is +
            for the first and - for the second; by default 0.

    >>> rows = np.array([[2.0, 1.0], [-2.0, -1.0], [2.0, -1.0], [-2.0, 1.0]])
    >>> is_component_tied([rows])  # λ is 4 and 1, δ is 1: 3 < 6.1
    True
    >>> is_component_tied([np.repeat(rows, 20, axis=0)])  # δ is 1 / √20
    False

    Source:
        Anderson, "Asymptotic theory for principal component analysis", Annals of Mathematical
        Statistics 1963; North, Bell, Cahalan and Moeng, "Sampling errors in the estimation of
        empirical orthogonal functions", Monthly Weather Review 1982.
    """
    mean = np.zeros(groups[0].shape[1]) if shift is None else shift
    moments = sum(rows.T @ rows / len(rows) for rows in groups) + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1], vectors[:, ::-1]
    along = mean @ vectors
    variance = np.zeros(values.size)
    for sign, rows in zip((1.0, -1.0), groups, strict=False):
        parts = rows @ vectors
        products = parts[:, :1] * parts + sign * (along[0] * parts + along * parts[:, :1])
        variance += products.var(axis=0) / len(rows)
    level = _TIED_LEVEL / max(values.size - 1, 1)
    limits = np.sqrt(-8.0 * np.log(level) * variance)
    return bool((values[0] - values < limits)[1:].any())


def sample_direction(d: int, rng: np.random.Generator) -> FloatArray:
    """Sample a direction uniformly from the unit sphere in ``d`` dimensions."""
    return normalize_vector(rng.standard_normal(d))


def sample_cosines(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return the cosines of ``n`` random vectors in ``d`` dimensions with a fixed direction.

    Their distribution does not depend on the direction: only the component along it and the length
    of the orthogonal component are sampled.
    """
    along = rng.standard_normal(n)
    across = rng.chisquare(d - 1, n) if d > 1 else np.zeros(n)
    return np.asarray(along / np.sqrt(along**2 + across))


def compute_cosine_tail(cosine: float, d: int) -> float:
    """Return the probability of at least this absolute cosine with a vector in ``d`` dimensions.

    >>> round(compute_cosine_tail(0.5, 2), 4)  # within 60 degrees of a line: 120 of 180 degrees
    0.6667
    """
    from scipy.special import betainc

    squared_sine = max(0.0, 1.0 - cosine**2) if cosine == cosine else np.nan  # noqa: PLR0124
    return float(betainc((d - 1) / 2, 0.5, squared_sine)) if d > 1 else 1.0


def orient_direction(direction: AnyArray, a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the direction, reversed if the mean cosine of ``a`` with it is below that of ``b``.

    The rows of ``a`` and ``b`` have length 1, and so has the result; NaN if the direction is 0.

    >>> a, b = np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])
    >>> orient_direction(np.array([-2.0, 0.0]), a, b).tolist()
    [1.0, 0.0]
    """
    axis = normalize_vector(direction)
    gap = float(axis @ (a.mean(axis=0) - b.mean(axis=0)))
    return np.asarray(-axis + 0.0 if gap < 0 else axis)


_UNITS: dict[_Entity, str] = {"users": "user", "items": "item"}
"""The unit of one of them."""

MIN_SIZE = 2
"""A set needs two members to have a variance."""


@dataclass(frozen=True, eq=False)
class EntitySet:
    """Users or items that share a value, and their vectors.

    Args:
        name: Its name in results: ``genres=Romance``.
        unit: ``user`` or ``item``.
        ids: The identifiers of all m members.
        has_vector: Which members have a vector that is not 0, ``bool[m]``.
        codes: The codes of these n members, ascending, ``intp[n]``.
        vectors: Their vectors, ``float64 (n, d)``.
        directions: The vectors scaled to length 1, ``float64 (n, d)``.
        choosing: The vectors by which members are chosen, ``float64 (n, d')``: those of another
            model if the metric names one, else ``vectors``.
    """

    name: str
    unit: str
    ids: Ids
    has_vector: BoolArray
    codes: npt.NDArray[np.intp]
    vectors: FloatArray
    directions: FloatArray
    choosing: FloatArray

    def __len__(self) -> int:
        """Return the number of members with a vector."""
        return int(self.codes.size)

    @property
    def n_excluded(self) -> int:
        """The number of members without a vector."""
        return int(self.has_vector.size) - len(self)

    def measure_mean(
        self, values: FloatArray, *, group: str = "", target: str = ""
    ) -> Measurement:
        """Return the mean of ``float64[n]``; undefined for members without a vector."""
        return Measurement.from_units(self.score(values), group=group, target=target)

    def score(self, values: FloatArray, rows: AnyArray | slice = slice(None)) -> UnitScores:
        """Return the values of all or some of the n members; the others are undefined."""
        return spread_scores(self.unit, self.ids, np.flatnonzero(self.has_vector)[rows], values)

    def take(self, members: BoolArray) -> EntitySet:
        """Return some of the m members, ``bool[m]``."""
        names = ("codes", "vectors", "directions", "choosing")
        parts: dict[str, Any] = {
            name: getattr(self, name)[members[self.has_vector]] for name in names
        }
        return replace(self, ids=self.ids[members], has_vector=self.has_vector[members], **parts)


def spread_scores(unit: str, ids: Ids, rows: AnyArray, values: FloatArray) -> UnitScores:
    """Return the values of some rows of ``ids``; the others are undefined."""
    unit_values = np.full(ids.size, np.nan)
    unit_values[rows] = values
    return UnitScores(unit, ids, unit_values)


SetPair: TypeAlias = tuple[EntitySet, EntitySet]


def select_members(evidence: Evidence, pair: _EntityPair) -> tuple[AnyArray, AnyArray]:
    """Return the codes of the two sets, ascending.

    Raises:
        MissingEvidence: There is no such table.
        UnknownColumn: The table has no such column.
        NothingLeft: Fewer than two members have a value.
    """
    evidence.need(pair.of)
    table: Attributes = vars(evidence)[pair.of]
    with at_setting(pair.setting):
        membership = table.membership(pair.attribute)
    for value in pair.values:
        if value not in membership.values:
            message = f"none of the {pair.of} has {pair.attribute}={value}"
            remedy = suggest(value, membership.values)
            raise NothingLeft(message, where=pair.setting, remedy=remedy)
    columns = [membership.values.index(value) for value in pair.values]
    is_member: BoolArray = membership.matrix[:, columns].toarray().astype(bool)
    condition = ""
    if pair.exclusive:
        is_member &= ~is_member.all(axis=1, keepdims=True)
        condition = " and not both values"
    _refuse_small(is_member.sum(axis=0), pair, condition)
    return np.flatnonzero(is_member[:, 0]), np.flatnonzero(is_member[:, 1])


def select_sets(evidence: Evidence, pair: _EntityPair) -> SetPair:
    """Return the two sets; a warning counts the members that are excluded without a vector.

    Members of groups need one in the model that chooses members too.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two members of a set have a vector.
    """
    evidence.need("embeddings")
    members = select_members(evidence, pair)
    ids, vectors = vars(evidence)[pair.of].ids.ids, get_vectors(evidence, pair.of)
    choosing = _get_choosing_vectors(evidence, pair)
    sets = []
    for value, codes in zip(pair.values, members, strict=True):
        rows = np.asarray(vectors[codes], dtype=np.float64)
        choosing_rows = rows if choosing is None else np.asarray(choosing[codes], np.float64)
        usable = _has_direction(rows) & _has_direction(choosing_rows)
        name, rows = f"{pair.attribute}={value}", rows[usable]
        kept = (codes[usable], rows, normalize_rows(rows), choosing_rows[usable])
        sets.append(EntitySet(name, _UNITS[pair.of], ids[codes], usable, *kept))
        if n_excluded := sets[-1].n_excluded:
            subject = f"{n_excluded:,} of the {usable.size:,} {pair.of} of {name}"
            warn(f"{evidence.metric}: {subject} have no vector, or a vector of 0: excluded")
    _refuse_small(np.array([len(group) for group in sets]), pair, " and a vector that is not 0")
    return sets[0], sets[1]


def select_groups_and_targets(
    evidence: Evidence, groups: GroupPair, targets: TargetPair
) -> tuple[SetPair, SetPair]:
    """Return the groups and the targets with their vectors.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two members of a set have a vector.
        BrokenContract: The vectors of users and items have different sizes.
    """
    group_sets = select_sets(evidence, groups)
    target_sets = select_sets(evidence, targets)
    group_size, target_size = (pair[0].vectors.shape[1] for pair in (group_sets, target_sets))
    if group_size != target_size:
        sizes = f"{groups.of} have {group_size} dimensions, those of {targets.of} {target_size}"
        remedy = "provide vectors of one embedding space"
        raise BrokenContract(f"{evidence.metric}: the vectors of {sizes}", remedy=remedy)
    return group_sets, target_sets


def get_vectors(evidence: Evidence, of: _Entity) -> AnyArray:
    """Return the vectors of all users or items, ``(n, d)``; NaN for a missing vector.

    Raises:
        MissingEvidence: The model has none.
    """
    evidence.need("embeddings")
    vectors = vars(evidence.embeddings)[of]
    if vectors is None:
        message = f"{evidence.metric or 'the metric'} needs vectors of {of}, which the model lacks"
        raise MissingEvidence(message, remedy=REMEDIES["embeddings"])
    return np.asarray(vectors)


def _get_choosing_vectors(evidence: Evidence, pair: _EntityPair) -> AnyArray | None:
    if evidence.choosing_embeddings is None or not isinstance(pair, GroupPair):
        return None
    return get_vectors(replace(evidence, embeddings=evidence.choosing_embeddings), pair.of)


def _has_direction(rows: FloatArray) -> BoolArray:
    """Return which rows are finite and not 0."""
    return np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))


def _refuse_small(sizes: AnyArray, pair: _EntityPair, condition: str) -> None:
    for size, value in zip(sizes.tolist(), pair.values, strict=True):
        if size < MIN_SIZE:
            name = f"{pair.attribute}={value}"
            message = f"{size} of the {pair.of} has {name}{condition}"
            remedy = f"a set needs {MIN_SIZE} or more"
            raise NothingLeft(message, where=pair.setting, remedy=remedy)


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
        sums = [
            add_interval(
                measure_sets(float(values.sum()), [group], target=group.name), len(group) * samples
            )
            for group, values, samples in rows
        ]
        return sums[0], sums[1]

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
        p = permute_sets(a[:, None], b[:, None], np.subtract, n_permutations=permutations, rng=rng)
        others = {"test": "permutation", "n": a.size + b.size, "p": p}
        names, effect = [entities.name for entities in self.sets], compute_effect_size(a, b)
        return Contrast.of_means(
            between, names, [a.mean(), b.mean()], **others, effect_size=effect
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
    low, high = bootstrap_interval(estimate.value, replicates, df)
    return replace(estimate, replicates=replicates, df=df, ci_low=float(low), ci_high=float(high))


def attach_estimate(test: Contrast, estimate: Measurement) -> Contrast:
    """Return a test with the difference and interval of an estimate, which is its statistic."""
    value, low, high = estimate.value, estimate.ci_low, estimate.ci_high
    return replace(test, difference=value, statistic=value, ci_low=low, ci_high=high)


def measure_sets(value: float, sets: Sequence[EntitySet], **fields: Any) -> Measurement:
    """Return an estimate of some sets together; if it is NaN, all members are undefined."""
    n = 0 if math.isnan(value) else sum(map(len, sets))
    undefined = sum(entities.has_vector.size for entities in sets) - n
    return Measurement(value=value, n=n, undefined=undefined, **fields)


@dataclass(frozen=True, kw_only=True)
class GroupMetric(InheritsSections):
    """A metric of the vectors of two groups.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The table has no such attribute.
        NothingLeft: Fewer than two members of a set have the value and a vector.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    unit: ClassVar[str] = ""

    groups: GroupPair

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of})

    def check(self, evidence: Evidence) -> None:
        """Validate the settings before any training."""
        select_members(evidence, self.groups)


@dataclass(frozen=True, kw_only=True)
class ChoosingMetric(InheritsSections):
    """A metric that uses the members of two groups that are most aligned with their group.

    Args:
        chosen_in: The label of the model in whose embedding space the most aligned members are
            chosen, so that several models use the same ones; by default each model its own.

    Raises:
        UnknownName: No model has this label.
    """

    chosen_in: str | None = None


@dataclass(frozen=True, kw_only=True)
class TargetMetric(GroupMetric):
    """A metric of the vectors of two groups and two target sets.

    Args:
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
    """

    targets: TargetPair

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return super().needs_now() | {self.targets.of}

    def check(self, evidence: Evidence) -> None:
        """Validate the settings before any training."""
        super().check(evidence)
        select_members(evidence, self.targets)
