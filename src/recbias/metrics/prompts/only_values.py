"""The attribute values that a metric is restricted to: a list of names, or a packaged list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, TypeAlias

from annotated_types import MinLen

from recbias.core.errors import UnknownColumn
from recbias.core.suggestions import find_nearest, suggest

Only: TypeAlias = Literal["nightlife"] | Annotated[tuple[str, ...], MinLen(1)] | None
"""Attribute values, or the name of a packaged list of them."""


@cache
def load_packaged_values(name: str) -> tuple[str, ...]:
    """Return the attribute values of a packaged list, such as ``nightlife``."""
    text = files("recbias.metrics.prompts").joinpath("packaged", f"{name}.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def match_values(
    only: str | tuple[str, ...], attribute: str, values: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Return the indices of the values named by ``only``, and the names without a value.

    Upper and lower case are equal.

    Raises:
        UnknownColumn: No value is named; ``where`` is ``only``.
    """
    names = load_packaged_values(only) if isinstance(only, str) else only
    folded = {name.casefold() for name in names}
    matches = [index for index, value in enumerate(values) if value.casefold() in folded]
    if not matches:
        nearest = dict.fromkeys(
            value for name in names for value in find_nearest(name, values, limit=1)
        )
        remedy = f"did you mean {' or '.join(list(nearest)[:3])}?"
        remedy = remedy if nearest else suggest(" ".join(names), values)
        message = f"no item has any {attribute} listed in only"
        raise UnknownColumn(message, where="only", remedy=remedy)
    known = {values[index].casefold() for index in matches}
    return matches, [name for name in names if name.casefold() not in known]
