"""Where things stand in a spec, and the faults found there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import ConfigError, Faults, UserError

Place: TypeAlias = tuple[str | int, ...]
"""A path of keys and list positions: ``("models", 1, "neighbors")``."""


@dataclass(frozen=True)
class Mark:
    """A position in what the user wrote.

    Args:
        file: The file as the user named it, or the text of an override. Blank for a Python dict.
        line: From 1; 0 where there are no lines.
        column: From 1.
        rank: Which source it is in: 0 for the spec, higher for those that are read after it.
        folder: What relative paths written there are relative to.
        lined: Whether it has lines; an override is shown as a whole.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    rank: int = 0
    folder: Path = Path()
    lined: bool = True

    def __str__(self) -> str:
        """Return ``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def at(self, line: int, column: int) -> Mark:
        """Return the mark of a line and column, both from 0, of the same source."""
        return replace(self, line=line + 1, column=column + 1) if self.lined else self

    @property
    def order(self) -> tuple[int, int, int]:
        """What faults are sorted by."""
        return (self.rank, self.line, self.column)


def key_path(place: Place) -> str:
    """Return a place as it is shown.

    >>> key_path(("models", 1, "neighbors"))
    'models[1].neighbors'
    """
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return shown.removeprefix(".")


@dataclass
class Document:
    """A spec as plain Python, with the mark of every key and value, and its faults so far.

    Args:
        data: The top mapping.
        keys: Marks of keys, by place.
        values: Marks of values, by place; the whole document is at ``()``.
        base: The folder that relative paths are relative to.
        faults: What is wrong, each with its mark.
    """

    data: dict[str, Any]
    keys: dict[Place, Mark] = field(default_factory=dict)
    values: dict[Place, Mark] = field(default_factory=dict)
    base: Path = Path()
    faults: list[tuple[Mark, UserError]] = field(default_factory=list)

    def mark(self, place: Place, *, key: bool = False) -> Mark:
        """Return the mark of a value, or of its key; of what it stands in where it has none."""
        if key and place in self.keys:
            return self.keys[place]
        for end in range(len(place), -1, -1):
            if place[:end] in self.values:
                return self.values[place[:end]]
        return Mark(folder=self.base)

    def error(
        self,
        place: Place,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> UserError:
        """Return the error of a fault at a place: ``file:line:column: key: found``."""
        parts = [str(self.mark(place, key=key)), key_path(place)]
        return kind(found, where=": ".join(filter(None, parts)), remedy=remedy)

    def blame(
        self,
        place: Place,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> None:
        """Record a fault at a place."""
        error = self.error(place, found, remedy=remedy, kind=kind, key=key)
        self.faults.append((self.mark(place, key=key), error))

    def carry(self, place: Place, error: UserError) -> None:
        """Record an error that was raised below, at the place in the spec that led there."""
        if isinstance(error, Faults):
            for each in error.faults:
                self.carry(place, each)
        else:
            self.blame(place, error.message, remedy=error.remedy, kind=type(error))

    def refuse(self) -> None:
        """Raise all faults at once, in the order of their places; nothing where there is none.

        Raises:
            Faults: There is one or more.
        """
        if self.faults:
            ordered = sorted(self.faults, key=lambda each: each[0].order)
            raise Faults([error for _, error in ordered])
