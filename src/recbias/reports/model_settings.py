"""Models of one plug-in with different settings, as a sweep makes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from recbias.reports.views.facts import format_setting
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.wide_tables import build_summary

_FEWEST = 3
"""The fewest values of a number that make a plot."""


@dataclass(frozen=True)
class Variants:
    """Models of one plug-in.

    Args:
        name: The plug-in.
        settings: By model, the settings in which the models differ.
    """

    name: str
    settings: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """The settings in which the models differ."""
        return [*next(iter(self.settings.values()))]

    @property
    def axis(self) -> str:
        """The setting with the most different numbers, blank if none has three."""
        counts = {
            name: len({s[name] for s in self.settings.values() if is_number(s[name])})
            for name in self.names
        }
        most = max(self.names, key=lambda name: counts[name])
        return most if counts[most] >= _FEWEST else ""


def is_number(value: object) -> bool:
    """Return whether a setting is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def render_setting(value: Any) -> str:
    """Return a setting as text.

    >>> render_setting(50.0), render_setting(None), render_setting(True)
    ('50', 'null', 'true')
    """
    is_word = value is None or isinstance(value, bool)
    return json.dumps(value) if is_word else format_setting(value)


@lru_cache(maxsize=2)
def collect_variants(run: RunTables) -> tuple[Variants, ...]:
    """Return the plug-ins with models that differ in a number or a switch."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for model in run.manifest.get("models", []):
        if model.get("baseline"):  # a re-ranked model, whose curves are those of its re-ranker
            continue
        settings = dict(_flatten(model.get("parameters") or {}))
        groups.setdefault(str(model.get("name")), {})[str(model.get("label"))] = settings
    found = (Variants(name, _select_differing(models)) for name, models in groups.items())
    return tuple(group for group in found if _has_numbers(group))


def build_settings_tables(run: RunTables) -> list[Table]:
    """Return the results of the models of each plug-in with a column for each varied setting."""
    summary = build_summary(run)
    titles = [column.title for column in summary.columns]
    if "model" not in titles:
        return []
    return [_build_table(summary, titles.index("model"), group) for group in collect_variants(run)]


def _build_table(summary: Table, at: int, group: Variants) -> Table:
    rows = [row for row in summary.rows if row[at].text in group.settings]
    return replace(
        summary,
        title=f"Results by the settings of {group.name}",
        columns=(
            *summary.columns[:at],
            *(Column(name.replace("_", " ")) for name in group.names),
            *summary.columns[at + 1 :],
        ),
        rows=tuple(
            (
                *row[:at],
                *_build_cells(group.settings[row[at].text]),
                *(replace(cell, mark="") for cell in row[at + 1 :]),
            )
            for row in rows
        ),
        notes=("Bold: the best value of all models of the run.",),
    )


def _build_cells(settings: Mapping[str, Any]) -> Iterator[Cell]:
    for value in settings.values():
        yield Cell(render_setting(value), float(value) if is_number(value) else math.nan)


def _flatten(settings: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting, that of a setting by its path: ``llm.temperature``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value


def _select_differing(models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys(name for settings in models.values() for name in settings)
    differing = [name for name in names if len({repr(s.get(name)) for s in models.values()}) > 1]
    return {
        label: {name: settings.get(name) for name in differing}
        for label, settings in models.items()
    }


def _has_numbers(group: Variants) -> bool:
    values: Sequence[Any] = [value for s in group.settings.values() for value in s.values()]
    return any(isinstance(value, (bool, int, float)) for value in values)
