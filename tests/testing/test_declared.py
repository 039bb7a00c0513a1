from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from recbias.core.errors import BrokenContract
from recbias.testing import check_metric


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
def test_other_classes_are_refused(plugin: Any, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_metric(plugin)
