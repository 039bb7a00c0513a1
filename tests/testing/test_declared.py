from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from recbias.core.errors import BrokenContract
from recbias.testing import check_dataclass, refuse


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A plug-in."""

    needs = ()
    neighbors: int = 5


@dataclass
class Mutable:
    """A plug-in that can be changed."""


@dataclass(frozen=True)
class WithList:
    """A plug-in with a list."""

    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Undocumented:
    needs = ()


class Plain:
    """Not a dataclass."""

    needs = ()


def test_a_documented_frozen_dataclass_passes() -> None:
    check_dataclass(Frozen(), ("needs",), "Frozen")


@pytest.mark.parametrize(
    ("plugin", "violation"),
    [
        (Plain(), "is not a dataclass"),
        (Mutable(), "no frozen dataclass of plain fields"),
        (WithList(), "no frozen dataclass of plain fields"),
        (Undocumented(), "has no docstring"),
    ],
    ids=type,
)
def test_other_classes_are_refused(plugin: object, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_dataclass(plugin, ("needs",), "it")


def test_a_missing_attribute_is_named() -> None:
    with pytest.raises(BrokenContract, match="Frozen does not declare provides"):
        check_dataclass(Frozen(), ("needs", "provides"), "Frozen")


def test_refuse_raises_only_for_a_violation() -> None:
    refuse(False, "it", "is wrong")
    refuse([], "it", "is wrong")
    with pytest.raises(BrokenContract, match="it is wrong"):
        refuse(True, "it", "is wrong")
