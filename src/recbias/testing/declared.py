"""What every plug-in says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass

from recbias.core.errors import BrokenContract


def refuse(wrong: object, who: str, what: str) -> None:
    """Raise BrokenContract, ``who`` and ``what``, where something is wrong."""
    if wrong:
        raise BrokenContract(f"{who} {what}")


def check_dataclass(plugin: object, declared: Sequence[str], who: str) -> None:
    """Refuse what is no frozen, documented dataclass with the class variables of its kind."""
    refuse(not is_dataclass(plugin), who, "is not a dataclass")
    try:
        hash(plugin)
    except TypeError as error:
        raise BrokenContract(f"{who} is no frozen dataclass of plain fields") from error
    refuse(not type(plugin).__doc__, who, "has no docstring")
    for name in declared:
        refuse(not hasattr(plugin, name), who, f"does not declare {name}")
