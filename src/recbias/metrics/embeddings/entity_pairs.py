"""The two groups and two target sets that a spec names, and given pairs of members."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import Contradiction, NothingLeft, UnknownIdentifier
from recbias.formats.tables import read_text_table

Entity: TypeAlias = Literal["users", "items"]

MIN_PAIRS = 2
"""One pair has no component but its own difference."""


class EntityPair:
    """Two sets of users or items by their values of an attribute."""

    setting: ClassVar[str]
    """The setting that names them, for error messages."""
    sides: ClassVar[tuple[str, str]]
    """The fields of the two values."""

    of: Entity
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
class GroupPair(EntityPair):
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

    of: Entity = "users"
    attribute: str
    a: str
    b: str
    exclusive: bool = True


@dataclass(frozen=True, kw_only=True)
class TargetPair(EntityPair):
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

    of: Entity = "items"
    attribute: str
    e: str
    p: str
    exclusive: bool = True


def find_pairs(path: Path, a: Ids, b: Ids) -> tuple[AnyArray, AnyArray]:
    """Return the positions in ``a`` and in ``b`` of the members of each pair of a table.

    The table has the columns ``a`` and ``b``, the identifiers of a member of each group.

    Raises:
        UnknownIdentifier: An identifier is not in its group.
        NothingLeft: There are fewer than two pairs.
    """
    table = read_text_table(path)
    table.need("a", "b")
    positions = []
    for column, ids in (("a", a), ("b", b)):
        of_id = {identifier: position for position, identifier in enumerate(ids.tolist())}
        member_positions = [of_id.get(identifier, -1) for identifier in table.ids(column).tolist()]
        if -1 in member_positions:
            row = member_positions.index(-1)
            name = str(table.ids(column)[row])
            message = f"{table.place(row)}: {name!r} is not in group {column.upper()}"
            remedy = "write in each row a member of A and a member of B"
            raise UnknownIdentifier(message, where="pairs", remedy=remedy)
        positions.append(np.array(member_positions, dtype=np.intp))
    if len(table) < MIN_PAIRS:
        message = f"{path.name} has {len(table)} pair(s)"
        raise NothingLeft(message, where="pairs", remedy=f"give {MIN_PAIRS} or more")
    return positions[0], positions[1]
