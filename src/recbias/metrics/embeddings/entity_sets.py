"""Two groups and two target sets of users or items, from a spec to their vectors."""

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
from recbias.numerics.directions import unit_rows

Of: TypeAlias = Literal["users", "items"]

UNITS: dict[Of, str] = {"users": "user", "items": "item"}
"""What one of them is called."""

FEWEST = 2
"""A set of one has no spread, and its mean is its only member."""


@dataclass(frozen=True, kw_only=True)
class GroupPair:
    """The two groups that define a sensitive attribute.

    Args:
        of: Whether they are ``users`` or ``items``.
        attribute: A column of their table; a cell ``x|y`` carries both values.
        a: The value of the group A: figures are positive towards it.
        b: The value of the group B.
        exclusive: Leave out who carries both values; else they are in both groups.

    Raises:
        Contradiction: Both values are the same.
    """

    of: Of = "users"
    attribute: str
    a: str
    b: str
    exclusive: bool = True

    def __post_init__(self) -> None:
        """Refuse a group that is held against itself."""
        _refuse_equal(self.a, self.b, where="b")

    @property
    def wanted(self) -> Wanted:
        """What is looked for."""
        return Wanted("groups", self.of, self.attribute, (self.a, self.b), self.exclusive)


@dataclass(frozen=True, kw_only=True)
class TargetPair:
    """The two sets whose association with the groups is measured.

    Args:
        of: Whether they are ``users`` or ``items``.
        attribute: A column of their table; a cell ``x|y`` carries both values.
        e: The value of the set E.
        p: The value of the set P, which E is held against.
        exclusive: Leave out what carries both values; else it is in both sets.

    Raises:
        Contradiction: Both values are the same.
    """

    of: Of = "items"
    attribute: str
    e: str
    p: str
    exclusive: bool = True

    def __post_init__(self) -> None:
        """Refuse a set that is held against itself."""
        _refuse_equal(self.e, self.p, where="p")

    @property
    def wanted(self) -> Wanted:
        """What is looked for."""
        return Wanted("targets", self.of, self.attribute, (self.e, self.p), self.exclusive)


@dataclass(frozen=True)
class Wanted:
    """Two sets, as a spec says them.

    Args:
        where: The setting that they come from, for messages.
        of: ``users`` or ``items``.
        attribute: The column.
        values: The value of the first set and of the second.
        exclusive: Whether those with both values are left out.
    """

    where: str
    of: Of
    attribute: str
    values: tuple[str, str]
    exclusive: bool


@dataclass(frozen=True, eq=False)
class EntitySet:
    """Users or items that share a value, and their vectors.

    Args:
        name: As the figures name it: ``genres=Romance``.
        unit: What one of them is: ``user`` or ``item``.
        ids: The identifiers of all of them, ``[m]``.
        usable: Who has a vector that is not 0, which has no cosine, ``bool[m]``.
        codes: The codes of those, ascending, ``intp[n]``.
        vectors: Their vectors, ``float64 (n, d)``.
        directions: The vectors scaled to length 1, ``float64 (n, d)``.
    """

    name: str
    unit: str
    ids: Ids
    usable: BoolArray
    codes: npt.NDArray[np.intp]
    vectors: FloatArray
    directions: FloatArray

    def __len__(self) -> int:
        """Return how many have a vector."""
        return int(self.codes.size)

    @property
    def left_out(self) -> int:
        """How many have none."""
        return int(self.usable.size) - len(self)

    def mean_of(self, values: FloatArray, *, group: str = "", target: str = "") -> Measurement:
        """Return the mean of one value for each; undefined for those without a vector.

        Args:
            values: ``float64[n]``.
            group: The group of the figure.
            target: Its target.
        """
        of_all = np.full(self.usable.size, np.nan)
        of_all[self.usable] = values
        scores = UnitScores(self.unit, self.ids, of_all)
        return Measurement.from_units(scores, group=group, target=target)


Pair: TypeAlias = tuple[EntitySet, EntitySet]


def members(evidence: Evidence, wanted: Wanted) -> tuple[AnyArray, AnyArray]:
    """Return the codes of the two sets, ascending.

    Raises:
        MissingEvidence: There is no such table.
        UnknownColumn: The table has no such column.
        NothingLeft: A value is carried by fewer than two.
    """
    evidence.need(wanted.of)
    table = _table(evidence, wanted.of)
    try:
        membership = table.membership(wanted.attribute)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=wanted.where, remedy=error.remedy) from error
    for value in wanted.values:
        if value not in membership.values:
            found = f"none of the {wanted.of} has {wanted.attribute}={value}"
            remedy = suggest(value, membership.values)
            raise NothingLeft(found, where=wanted.where, remedy=remedy)
    places = [membership.values.index(value) for value in wanted.values]
    carried: BoolArray = membership.matrix[:, places].toarray().astype(bool)
    if wanted.exclusive:
        carried &= ~carried.all(axis=1, keepdims=True)
    _refuse_small(carried.sum(axis=0), wanted, " and not both values" if wanted.exclusive else "")
    return np.flatnonzero(carried[:, 0]), np.flatnonzero(carried[:, 1])


def with_vectors(evidence: Evidence, wanted: Wanted) -> Pair:
    """Return the two sets with their vectors; who has none is left out and counted in a warning.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two of a set have a vector.
    """
    evidence.need("embeddings")
    codes = members(evidence, wanted)
    table = _table(evidence, wanted.of)
    vectors = vectors_of(evidence, wanted.of)
    names = [f"{wanted.attribute}={value}" for value in wanted.values]
    first, second = (
        _set(name, UNITS[wanted.of], each, table.ids.ids, vectors)
        for name, each in zip(names, codes, strict=True)
    )
    for each in (first, second):
        if each.left_out:
            what = f"{each.left_out:,} of the {each.left_out + len(each):,} {wanted.of} of"
            why = "have no vector, or a vector of 0, and are left out"
            warn(f"{evidence.metric}: {what} {each.name} {why}")
    _refuse_small(np.array([len(first), len(second)]), wanted, " and a vector that is not 0")
    return first, second


def pair_in_one_space(
    evidence: Evidence, groups: GroupPair, targets: TargetPair
) -> tuple[Pair, Pair]:
    """Return the groups and the targets with their vectors.

    Raises:
        MissingEvidence: There are no embeddings, or none of users or of items.
        NothingLeft: Fewer than two of a set have a vector.
        BrokenContract: The vectors of users and of items are not of one length.
    """
    of_groups = with_vectors(evidence, groups.wanted)
    of_targets = with_vectors(evidence, targets.wanted)
    ours, theirs = of_groups[0].vectors.shape[1], of_targets[0].vectors.shape[1]
    if ours != theirs:
        found = f"vectors of {groups.of} have {ours} numbers, those of {targets.of} {theirs}"
        remedy = "give vectors of one space"
        raise BrokenContract(f"{evidence.metric}: {found}", remedy=remedy)
    return of_groups, of_targets


def vectors_of(evidence: Evidence, of: Of) -> AnyArray:
    """Return the vectors of all users or items, ``float32 (n, d)``; NaN where there is none.

    Raises:
        MissingEvidence: The model has none.
    """
    evidence.need("embeddings")
    found = vars(evidence.embeddings)[of]
    if found is None:
        message = f"{evidence.metric or 'the metric'} needs vectors of {of}, which the model lacks"
        raise MissingEvidence(message, remedy=REMEDIES["embeddings"])
    return np.asarray(found)


def _table(evidence: Evidence, of: Of) -> Attributes:
    evidence.need(of)
    table: Attributes = vars(evidence)[of]
    return table


def _set(name: str, unit: str, codes: AnyArray, ids: Ids, vectors: AnyArray) -> EntitySet:
    own = np.asarray(vectors[codes], dtype=np.float64)
    usable = np.asarray(np.isfinite(own).all(axis=1) & own.any(axis=1))
    kept = own[usable]
    return EntitySet(name, unit, ids[codes], usable, codes[usable], kept, unit_rows(kept))


def _refuse_equal(first: str, second: str, *, where: str) -> None:
    if first == second:
        found = f"both sets are {first!r}"
        raise Contradiction(found, where=where, remedy="name two different values")


def _refuse_small(sizes: AnyArray, wanted: Wanted, what: str) -> None:
    for size, value in zip(sizes.tolist(), wanted.values, strict=True):
        if size < FEWEST:
            found = f"{size} of the {wanted.of} has {wanted.attribute}={value}{what}"
            remedy = f"a set needs {FEWEST} or more"
            raise NothingLeft(found, where=wanted.where, remedy=remedy)
