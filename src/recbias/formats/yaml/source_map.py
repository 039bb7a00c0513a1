"""The positions of keys and values in an experiment file, and the errors found there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from recbias.core.errors import ConfigError, Faults, UserError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead to a value: ``("models", 1, "neighbors")``."""


MOST_FAULTS = 1_000
"""The number of errors of a document after which no more are looked for."""


class TooManyFaults(Exception):
    """A document has ``MOST_FAULTS`` errors; ``Document.refuse`` raises them."""


class Mark(NamedTuple):
    """A position in the user's input.

    Args:
        file: The file as the user named it, or the text of an override. Blank for a Python dict.
        line: The line, from 1; 0 if the source has no lines.
        column: The column, from 1.
        rank: The order of the source: 0 for the experiment file, higher for those read later.
        folder: The folder that relative paths are relative to.
        lined: Whether the source has lines; an override is shown as a whole.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    rank: int = 0
    folder: Path = Path()
    lined: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def at(self, line: int, column: int) -> Mark:
        """Return the mark of a line and column, both from 0, of the same source."""
        if not self.lined:
            return self
        return Mark(self.file, line + 1, column + 1, self.rank, self.folder)

    @property
    def order(self) -> tuple[int, int, int]:
        """The sort key of errors."""
        return (self.rank, self.line, self.column)


def format_key_path(path: KeyPath) -> str:
    """Return a key path as text.

    >>> format_key_path(("models", 1, "neighbors"))
    'models[1].neighbors'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


@dataclass
class Document:
    """A YAML file as plain Python, with the mark of every key and value, and its errors so far.

    Args:
        data: The top mapping.
        keys: The marks of keys, by key path.
        values: The marks of values, by key path; that of the whole document is at ``()``.
        base: The folder that relative paths are relative to.
        faults: The errors, each with its mark.
        origins: Where the user wrote the values that a sweep has moved, by their key path.
    """

    data: dict[str, Any]
    keys: dict[KeyPath, Mark] = field(default_factory=dict)
    values: dict[KeyPath, Mark] = field(default_factory=dict)
    base: Path = Path()
    faults: list[tuple[Mark, UserError]] = field(default_factory=list)
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)

    def mark(self, path: KeyPath, *, key: bool = False) -> Mark:
        """Return the mark of a value or of its key; that of the enclosing value if it has none."""
        if key and path in self.keys:
            return self.keys[path]
        for end in range(len(path), -1, -1):
            if path[:end] in self.values:
                return self.values[path[:end]]
        return Mark(folder=self.base)

    def format_path(self, path: KeyPath, *, key: bool = False) -> str:
        """Return the key path under which the user wrote a value, or its key, as text."""
        origin = path
        for end in range(len(path), 0, -1):
            if path[:end] in self.origins:
                origin = (*self.origins[path[:end]], *path[end:])
                break
        is_moved_key = key and path in self.origins and isinstance(origin[-1], int)
        return format_key_path(origin[:-1] if is_moved_key else origin)

    def error(
        self,
        path: KeyPath,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> UserError:
        """Return the error of a value, or of its key: ``file:line:column: key: found``."""
        parts = [str(self.mark(path, key=key)), self.format_path(path, key=key)]
        return kind(found, where=": ".join(filter(None, parts)), remedy=remedy)

    def add_fault(
        self,
        path: KeyPath,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> None:
        """Record the error of a value; the arguments are those of ``error``."""
        error = self.error(path, found, remedy=remedy, kind=kind, key=key)
        self.faults.append((self.mark(path, key=key), error))
        if len(self.faults) >= MOST_FAULTS:
            raise TooManyFaults

    def add_error(self, path: KeyPath, error: UserError) -> None:
        """Record an error that was raised elsewhere as one of the value that caused it."""
        if isinstance(error, Faults):
            for fault in error.faults:
                self.add_error(path, fault)
        else:
            self.add_fault(path, error.message, remedy=error.remedy, kind=type(error))

    def add_raised(self, check: Callable[[], object]) -> None:
        """Record what a check raises, after what was found before; its errors have places."""
        try:
            check()
        except UserError as error:
            messages = {str(fault) for _, fault in self.faults}
            last = max((mark for mark, _ in self.faults), key=lambda mark: mark.order)
            faults = Faults([error]).faults
            self.faults += [(last, fault) for fault in faults if str(fault) not in messages]

    def list_faulty_keys(self) -> set[str]:
        """Return the top keys in which errors were found, as far as they belong to one."""
        places = [error.where.rpartition(": ")[2] for _, error in self.faults]
        return {re.split(r"[.\[]", place, maxsplit=1)[0] for place in places}

    def refuse(self) -> None:
        """Raise Faults with all recorded errors, in the order of their marks, if there are any."""
        if not self.faults:
            return
        ordered = sorted(self.faults, key=lambda fault: fault[0].order)
        errors = [error for _, error in ordered]
        if len(errors) >= MOST_FAULTS:
            message = f"has {MOST_FAULTS:,} errors; what follows was not checked"
            remedy = "correct these first"
            errors.append(ConfigError(message, where=ordered[0][0].file, remedy=remedy))
        raise Faults(errors)
