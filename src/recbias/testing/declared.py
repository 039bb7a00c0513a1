"""Checks of the declaration of a plug-in, common to all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass

from recbias.core.docstrings import read_summary
from recbias.core.errors import BrokenContract


def refuse(violated: object, name: str, violation: str) -> None:
    """Raise BrokenContract with the name of the plug-in if a rule is violated."""
    if violated:
        raise BrokenContract(f"{name} {violation}")


def check_dataclass(plugin: object, declared: Sequence[str], name: str) -> None:
    """Check that a plug-in is a frozen, documented dataclass with the attributes of its kind."""
    refuse(not is_dataclass(plugin), name, "is not a dataclass")
    try:
        hash(plugin)
    except TypeError as error:
        raise BrokenContract(f"{name} is no frozen dataclass of plain fields") from error
    refuse(not read_summary(type(plugin)), name, "has no docstring")
    for attribute in declared:
        refuse(not hasattr(plugin, attribute), name, f"does not declare {attribute}")
