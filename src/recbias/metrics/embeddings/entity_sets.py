"""The two groups and two target sets of a spec, and their vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import (
    BrokenContract,
    MissingEvidence,
    NothingLeft,
    UnknownColumn,
)
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import REMEDIES, Evidence
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.metrics.embeddings.entity_pairs import Entity, EntityPair, GroupPair, TargetPair
from recbias.numerics.directions import normalize_rows

UNITS: dict[Entity, str] = {"users": "user", "items": "item"}
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
        unit_values = np.full(self.has_vector.size, np.nan)
        unit_values[self.has_vector] = values
        scores = UnitScores(self.unit, self.ids, unit_values)
        return Measurement.from_units(scores, group=group, target=target)


SetPair: TypeAlias = tuple[EntitySet, EntitySet]


def select_members(evidence: Evidence, pair: EntityPair) -> tuple[AnyArray, AnyArray]:
    """Return the codes of the two sets, ascending.

    Raises:
        MissingEvidence: There is no such table.
        UnknownColumn: The table has no such column.
        NothingLeft: Fewer than two members have a value.
    """
    evidence.need(pair.of)
    table: Attributes = vars(evidence)[pair.of]
    try:
        membership = table.membership(pair.attribute)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=pair.setting, remedy=error.remedy) from error
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


def select_sets(evidence: Evidence, pair: EntityPair) -> SetPair:
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
        entities = EntitySet(
            name=name,
            unit=UNITS[pair.of],
            ids=ids[codes],
            has_vector=usable,
            codes=codes[usable],
            vectors=rows,
            directions=normalize_rows(rows),
            choosing=choosing_rows[usable],
        )
        sets.append(entities)
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


def get_vectors(evidence: Evidence, of: Entity) -> AnyArray:
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


def _get_choosing_vectors(evidence: Evidence, pair: EntityPair) -> AnyArray | None:
    if evidence.choosing_embeddings is None or not isinstance(pair, GroupPair):
        return None
    return get_vectors(replace(evidence, embeddings=evidence.choosing_embeddings), pair.of)


def _has_direction(rows: FloatArray) -> BoolArray:
    """Return which rows are finite and not 0."""
    return np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))


def _refuse_small(sizes: AnyArray, pair: EntityPair, condition: str) -> None:
    for size, value in zip(sizes.tolist(), pair.values, strict=True):
        if size < MIN_SIZE:
            name = f"{pair.attribute}={value}"
            message = f"{size} of the {pair.of} has {name}{condition}"
            remedy = f"a set needs {MIN_SIZE} or more"
            raise NothingLeft(message, where=pair.setting, remedy=remedy)
