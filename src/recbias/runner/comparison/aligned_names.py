"""Automatic names of runs that differ although the entries of their specs do not.

The name of an entry states the settings in which it differs from the others of its spec, so that
an edit of one entry may change the name of another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from recbias.core.digests import to_canonical_json
from recbias.core.registry import is_file
from recbias.runner.comparison.run_comparison import RunFrames

_SECTIONS = {"dataset": "datasets", "model": "models", "metric": "metrics"}
"""The columns of the tables with names, and where the manifest has the settings of each."""

_TABLES = ("metrics", "per_unit", "replicates")


@dataclass(frozen=True)
class Renaming:
    """An entry with one name in the run ``a`` and another one in the run ``b``.

    Args:
        column: What it is: ``dataset``, ``model`` or ``metric``.
    """

    a: str
    b: str
    column: str
    name_a: str
    name_b: str


def align_names(runs: Sequence[RunFrames]) -> tuple[list[RunFrames], list[Renaming]]:
    """Return runs in which entries with equal settings have equal names, and what was renamed.

    An entry of a later run gets the name that an earlier run has for it, if neither run has the
    name of the other, both names are automatic, and no other entry of the two that is without a
    counterpart has the same plug-in and settings.
    """
    aligned: list[RunFrames] = []
    renamings: list[Renaming] = []
    for run in runs:
        changed = run
        for earlier in aligned:
            names = {column: _match(earlier, changed, column) for column in _SECTIONS}
            renamings += [
                Renaming(earlier.label, run.label, column, new, old)
                for column, pairs in names.items()
                for old, new in pairs.items()
            ]
            changed = _rename(changed, names) if any(names.values()) else changed
        aligned.append(changed)
    return aligned, renamings


def _match(a: RunFrames, b: RunFrames, column: str) -> dict[str, str]:
    """Return the names of a by those of b, for entries of which only the name differs."""
    names_a, names_b = dict(_list_entries(a, column)), dict(_list_entries(b, column))
    pairs = []
    for own, other in ((names_a, names_b), (names_b, names_a)):
        found = defaultdict(list)
        for name in own.keys() - other.keys():
            found[own[name]].append(name)
        pairs.append(found)
    return {
        pairs[1][settings][0]: names[0]
        for settings, names in pairs[0].items()
        if len(names) == len(pairs[1].get(settings, ())) == 1
    }


def _list_entries(run: RunFrames, column: str) -> Iterator[tuple[str, str]]:
    """Yield each automatic name of a run with its plug-in and settings."""
    searches = {str(row.get("model")): row.get("tune") for row in run.manifest.get("searches", [])}
    for row in run.manifest.get(_SECTIONS[column], []):
        name, label = str(row.get("name") or ""), str(row[_get_key(column)])
        name = name.rpartition(":")[2] if is_file(name) else name
        settings = dict(row.get("parameters") or {})
        if column == "metric":
            settings.pop("k", None)
        filters = [(each.get("name"), each.get("parameters")) for each in row.get("filters") or ()]
        details = (row.get("searched"), searches.get(label) if column == "model" else None)
        if name and (label == name or label.startswith((f"{name}(", f"{name} + "))):
            yield label, to_canonical_json([name, settings, filters, *details])
        else:
            yield label, f"the label {label}"


def _get_key(column: str) -> str:
    return "metric" if column == "metric" else "label"


def _rename(run: RunFrames, names: Mapping[str, Mapping[str, str]]) -> RunFrames:
    manifest = dict(run.manifest)
    for section in ("addresses", "searches"):
        manifest[section] = _rename_records(manifest.get(section, ()), names)
    for column, section in _SECTIONS.items():
        of_section = {_get_key(column): names[column]}
        manifest[section] = _rename_records(manifest.get(section, ()), of_section)
    tables: dict[str, Any] = {name: _rename_rows(vars(run)[name], names) for name in _TABLES}
    return replace(run, **tables, manifest=manifest)


def _rename_records(
    rows: Iterable[Mapping[str, Any]], names: Mapping[str, Mapping[str, str]]
) -> list[dict[str, Any]]:
    return [
        {
            **row,
            **{key: pairs.get(str(row.get(key)), row.get(key)) for key, pairs in names.items()},
        }
        for row in rows
    ]


def _rename_rows(
    table: pd.DataFrame | None, names: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame | None:
    if table is None:
        return None
    columns = {name: pairs for name, pairs in names.items() if pairs and name in table}
    return table.assign(
        **{name: table[name].astype(object).replace(pairs) for name, pairs in columns.items()}
    )
