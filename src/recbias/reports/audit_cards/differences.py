"""The differences between two audit cards, each with its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from recbias.reports.audit_cards.card import Card
from recbias.reports.views.definitions import format_title

RELATIVE_TOLERANCE = 1e-9
"""The relative difference below which two numbers are the same: that of another machine."""

_KEYS = {
    "queries": ("dataset", "unit"),
    "groups": ("dataset", "group"),
    "definitions": ("metric",),
    "estimates": ("metric", "model", "group", "target", "dataset", "seed", "fold"),
    "comparisons": (
        *("metric", "a", "b", "model", "group", "target", "dataset", "seed", "fold"),
        *("test", "between", "correction", "family", "alpha"),
    ),
    "checks": ("metric", "model", "group", "target", "dataset", "line"),
}
"""The fields that identify an entry of a list."""

Entry: TypeAlias = Mapping[str, Any]


class Difference(NamedTuple):
    """A value that differs: where it is, what is stated there, and what was computed again."""

    location: str
    stated: str
    recomputed: str


def compare_cards(card: Card, run: Card) -> list[Difference]:
    """Return what differs between a card and that of a run: figures, definitions, settings.

    Numbers are the same within ``RELATIVE_TOLERANCE``. Files, digest and signature are not
    compared.
    """
    skipped = {"files", "digest", "signature"}
    sides = (card.model_dump(exclude=skipped), run.model_dump(exclude=skipped))
    return [
        difference
        for name in sides[0]
        for difference in (
            _compare_lists(name, sides[0][name], sides[1][name])
            if name in _KEYS
            else _compare_values(name, sides[0][name], sides[1][name])
        )
    ]


def _compare_lists(name: str, card: list[Entry], run: list[Entry]) -> Iterator[Difference]:
    entries = [_index_entries(name, side) for side in (card, run)]
    for key in {**entries[0], **entries[1]}:
        location = f"{name}: {' '.join(str(part) for part in key if part != '')}"
        a, b = (side.get(key) for side in entries)
        if a is None or b is None:
            yield Difference(
                location, *("absent" if side is None else "present" for side in (a, b))
            )
        else:
            yield from _compare_values(location, a, b)


def _index_entries(name: str, entries: list[Entry]) -> dict[tuple[Any, ...], Entry]:
    """Return entries by their key; one that is there twice has a number as well."""
    indexed: dict[tuple[Any, ...], Entry] = {}
    for entry in entries:
        key = tuple(entry[field] for field in _KEYS[name])
        indexed[key if key not in indexed else (*key, f"({len(indexed)})")] = entry
    return indexed


def _compare_values(location: str, a: Any, b: Any) -> Iterator[Difference]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in {**a, **b}:
            inner = f"{location}: {name}"
            yield from _compare_values(inner, a.get(name, "absent"), b.get(name, "absent"))
    elif not is_same(a, b):
        yield Difference(location, format_value(a), format_value(b))


def compare_frames(
    name: str,
    keys: Sequence[str],
    columns: Sequence[str],
    stored: pd.DataFrame,
    computed: pd.DataFrame,
) -> list[Difference]:
    """Return the cells of a table that differ from one with the same rows.

    Args:
        name: The name of the table.
        keys: The columns that identify a row.
        columns: The columns that are compared.
        stored: The table as it is.
        computed: The table computed again.
    """
    differences = []
    for a, b in zip(stored.to_dict("records"), computed.to_dict("records"), strict=True):
        for column in columns:
            if not is_same(a[column], b[column]):
                parts = {str(key): a[key] for key in keys}
                k = parts.pop("k")
                parts["metric"] = format_title(str(parts["metric"]), _to_float(k))
                location = " ".join(str(part) for part in parts.values() if str(part))
                values = (format_value(a[column]), format_value(b[column]))
                differences.append(Difference(f"{name}: {location}: {column}", *values))
    return differences


def _to_float(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are the same, numbers within ``RELATIVE_TOLERANCE``.

    Lists and mappings are the same if their entries are.

    >>> is_same(0.1 + 0.2, 0.3), is_same(0.3, 0.31), is_same(None, None), is_same(None, 0.0)
    (True, False, True, False)
    >>> is_same([{"value": 0.1 + 0.2}], [{"value": 0.3}]), is_same([0.3], [0.3, 0.3])
    (True, False)
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(is_same, a, b))
    numbers = [value for value in (a, b) if isinstance(value, (int, float))]
    if len(numbers) == 2 and not any(isinstance(value, bool) for value in numbers):
        if any(map(math.isnan, numbers)):
            return all(map(math.isnan, numbers))
        return math.isclose(*numbers, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-15)
    return bool(a == b)


def format_value(value: Any) -> str:
    """Return a value as text: a number in full, ``undefined`` for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "undefined"
    return repr(value) if isinstance(value, float) else str(value)
