"""The two groups and two target sets that a spec names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from recbias.core.errors import Contradiction

Entity: TypeAlias = Literal["users", "items"]


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
