from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from recbias.core.errors import BrokenContract
from recbias.testing.declared import check_dataclass, refuse


@dataclass(frozen=True, kw_only=True)
class Good:
    """A plug-in."""

    neighbors: int = 5


@dataclass
class Thawed:
    """A plug-in that can be changed."""


@dataclass(frozen=True)
class Listy:
    """A plug-in with a list."""

    tags: list[str] = field(default_factory=list)


class Plain:
    """No dataclass."""

    needs = ()


def test_a_frozen_dataclass_passes() -> None:
    check_dataclass(Good(), ("needs",), "Good")


@pytest.mark.parametrize(
    ("plugin", "found"),
    [
        (Plain(), "is not a dataclass"),
        (Thawed(), "no frozen dataclass of plain fields"),
        (Listy(), "no frozen dataclass of plain fields"),
    ],
    ids=type,
)
def test_others_are_refused(plugin: object, found: str) -> None:
    with pytest.raises(BrokenContract, match=found):
        check_dataclass(plugin, ("needs",), "it")


def test_what_is_not_declared_is_named() -> None:
    with pytest.raises(BrokenContract, match="Good does not declare provides"):
        check_dataclass(Good(), ("needs", "provides"), "Good")


def test_refuse_raises_only_where_something_is_wrong() -> None:
    refuse(False, "it", "is wrong")
    refuse([], "it", "is wrong")
    with pytest.raises(BrokenContract, match="it is wrong"):
        refuse(True, "it", "is wrong")
