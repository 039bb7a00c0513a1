"""The two groups and two target sets of a spec, and their vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingEvidence,
    NothingLeft,
    UnknownColumn,
)
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import REMEDIES, Evidence
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.numerics.directions import normalize_rows

Entity: TypeAlias = Literal["users", "items"]

UNITS: dict[Entity, str] = {"users": "user", "items": "item"}
"""The unit of one of them."""

MIN_SIZE = 2
"""A set needs two members to have a variance."""


@dataclass(frozen=True, kw_only=True)
class GroupPair:
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

    of: Entity = "users"
    attribute: str
    a: str
    b: str
    exclusive: bool = True

    def __post_init__(self) -> None:
        """Refuse two equal groups."""
        _refuse_equal(self.a, self.b, where="b")

    @property
    def selection(self) -> Selection:
        """The two sets to select."""
        return Selection("groups", self.of, self.attribute, (self.a, self.b), self.exclusive)


@dataclass(frozen=True, kw_only=True)
class TargetPair:
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

    of: Entity = "items"
    attribute: str
    e: str
    p: str
    exclusive: bool = True

    def __post_init__(self) -> None:
        """Refuse two equal sets."""
        _refuse_equal(self.e, self.p, where="p")

    @property
    def selection(self) -> Selection:
        """The two sets to select."""
        return Selection("targets", self.of, self.attribute, (self.e, self.p), self.exclusive)


@dataclass(frozen=True)
class Selection:
    """Two sets of users or items by their values of an attribute.

    Args:
        where: The setting that names them, for error messages.
        of: ``users`` or ``items``.
        attribute: The column.
        values: The value of the first set and of the second.
        exclusive: Whether members with both values are excluded.
    """

    where: str
    of: Entity
    attribute: str
    values: tuple[str, str]
    exclusive: bool


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
    """

    name: str
    unit: str
    ids: Ids
    has_vector: BoolArray
    codes: npt.NDArray[np.intp]
    vectors: FloatArray
    directions: FloatArray

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
        """Return the mean of one value per member; undefined for members without a vector.

        Args:
            values: ``float64[n]``.
            group: The group of the estimate.
            target: Its target.
        """
        unit_values = np.full(self.has_vector.size, np.nan)
        unit_values[self.has_vector] = values
        scores = UnitScores(self.unit, self.ids, unit_values)
        return Measurement.from_units(scores, group=group, target=target)


SetPair: TypeAlias = tuple[EntitySet, EntitySet]


def select_members(evidence: Evidence, selection: Selection) -> tuple[AnyArray, AnyArray]:
    """Return the codes of the two sets, ascending.

    Raises:
        MissingEvidence: There is no such table.
        UnknownColumn: The table has no such column.
        NothingLeft: Fewer than two members have a value.
    """
    table = _get_table(evidence, selection.of)
    try:
        membership = table.membership(selection.attribute)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=selection.where, remedy=error.remedy) from error
    for value in selection.values:
        if value not in membership.values:
            message = f"none of the {selection.of} has {selection.attribute}={value}"
            remedy = suggest(value, membership.values)
            raise NothingLeft(message, where=selection.where, remedy=remedy)
    columns = [membership.values.index(value) for value in selection.values]
    is_member: BoolArray = membership.matrix[:, columns].toarray().astype(bool)
    condition = ""
    if selection.exclusive:
        is_member &= ~is_member.all(axis=1, keepdims=True)
        condition = " and not both values"
    _refuse_small(is_member.sum(axis=0), selection, condition)
    return np.flatnonzero(is_member[:, 0]), np.flatnonzero(is_member[:, 1])


def select_sets(evidence: Evidence, selection: Selection) -> SetPair:
    """Return the two sets; a warning counts the members that are excluded without a vector.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two members of a set have a vector.
    """
    evidence.need("embeddings")
    a, b = select_members(evidence, selection)
    ids = _get_table(evidence, selection.of).ids.ids
    vectors = get_vectors(evidence, selection.of)
    names = [f"{selection.attribute}={value}" for value in selection.values]
    unit = UNITS[selection.of]
    pair = _build_set(names[0], unit, a, ids, vectors), _build_set(names[1], unit, b, ids, vectors)
    for group in pair:
        if group.n_excluded:
            total = group.has_vector.size
            subject = f"{group.n_excluded:,} of the {total:,} {selection.of} of {group.name}"
            warn(f"{evidence.metric}: {subject} have no vector, or a vector of 0: excluded")
    sizes = np.array([len(group) for group in pair])
    _refuse_small(sizes, selection, " and a vector that is not 0")
    return pair


def select_groups_and_targets(
    evidence: Evidence, groups: GroupPair, targets: TargetPair
) -> tuple[SetPair, SetPair]:
    """Return the groups and the targets with their vectors.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two members of a set have a vector.
        BrokenContract: The vectors of users and items have different sizes.
    """
    group_sets = select_sets(evidence, groups.selection)
    target_sets = select_sets(evidence, targets.selection)
    group_size, target_size = (pair[0].vectors.shape[1] for pair in (group_sets, target_sets))
    if group_size != target_size:
        sizes = f"{groups.of} have {group_size} dimensions, those of {targets.of} {target_size}"
        remedy = "provide vectors of one embedding space"
        raise BrokenContract(f"{evidence.metric}: the vectors of {sizes}", remedy=remedy)
    return group_sets, target_sets


def get_vectors(evidence: Evidence, of: Entity) -> AnyArray:
    """Return the vectors of all users or items, ``float32 (n, d)``; NaN for a missing vector.

    Raises:
        MissingEvidence: The model has none.
    """
    evidence.need("embeddings")
    vectors = vars(evidence.embeddings)[of]
    if vectors is None:
        message = f"{evidence.metric or 'the metric'} needs vectors of {of}, which the model lacks"
        raise MissingEvidence(message, remedy=REMEDIES["embeddings"])
    return np.asarray(vectors)


def _get_table(evidence: Evidence, of: Entity) -> Attributes:
    evidence.need(of)
    table: Attributes = vars(evidence)[of]
    return table


def _build_set(name: str, unit: str, codes: AnyArray, ids: Ids, vectors: AnyArray) -> EntitySet:
    rows = np.asarray(vectors[codes], dtype=np.float64)
    has_vector = np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))
    rows = rows[has_vector]
    return EntitySet(
        name, unit, ids[codes], has_vector, codes[has_vector], rows, normalize_rows(rows)
    )


def _refuse_equal(a: str, b: str, *, where: str) -> None:
    if a == b:
        message = f"both sets are {a!r}"
        raise Contradiction(message, where=where, remedy="name two different values")


def _refuse_small(sizes: AnyArray, selection: Selection, condition: str) -> None:
    for size, value in zip(sizes.tolist(), selection.values, strict=True):
        if size < MIN_SIZE:
            name = f"{selection.attribute}={value}"
            message = f"{size} of the {selection.of} has {name}{condition}"
            remedy = f"a set needs {MIN_SIZE} or more"
            raise NothingLeft(message, where=selection.where, remedy=remedy)
