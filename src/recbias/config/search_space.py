"""What a search may draw: ``{log: [0.001, 1]}``, checked against the settings of the plug-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recbias.config.build import Builder
from recbias.config.plugin_spec import Choice, Dimension, Range
from recbias.config.settings import Setting, settings
from recbias.config.type_text import bare, members, shown
from recbias.core.errors import ConfigError, OutOfRange, UnknownKey, WrongType
from recbias.core.suggestions import suggest
from recbias.formats.yaml.source_map import Place

KINDS = ("log", "float", "int", "choice")
"""How a setting may be drawn."""

MOST_CHOICES = 1_000
"""So many values may be named: each is checked, and compared with the others."""

_REMEDY = "write {log: [0.001, 1]}, {float: [0, 1]}, {int: [5, 1000]} or {choice: [a, b]}"


def read_space(
    builder: Builder, cls: type, raw: Mapping[str, Any], place: Place
) -> tuple[Dimension, ...]:
    """Return what is searched; faults go to the builder's document.

    Args:
        builder: Checks single values for the plug-in.
        cls: The plug-in's class.
        raw: What stands under ``space``, by setting.
        place: Where that is.
    """
    known = settings(cls)
    found: list[Dimension | None] = []
    for name, drawn in raw.items():
        here = (*place, name)
        if name in known:
            found.append(_Reader(builder, known[name]).dimension(drawn, here))
        else:
            text, remedy = f"not a setting of {builder.owner}", suggest(name, known)
            builder.document.blame(here, text, remedy=remedy, kind=UnknownKey, key=True)
    return tuple(each for each in found if each is not None)


@dataclass(frozen=True)
class _Reader:
    builder: Builder
    setting: Setting

    def dimension(self, raw: Any, place: Place) -> Dimension | None:
        if not isinstance(raw, dict) or len(raw) != 1:
            self.fault(place, f"must say how it is drawn, found {shown(raw)}", _REMEDY)
            return None
        ((kind, values),) = raw.items()
        here = (*place, kind)
        if kind not in KINDS:
            remedy = suggest(kind, KINDS)
            self.fault(here, "not a way to draw a setting", remedy, UnknownKey)
            return None
        before = len(self.builder.document.faults)
        made = self.choice(values, here) if kind == "choice" else self.range(kind, values, here)
        return made if len(self.builder.document.faults) == before else None

    def choice(self, values: Any, place: Place) -> Choice | None:
        if not isinstance(values, list) or not values:
            found = f"must be a list of values, found {shown(values)}"
            self.fault(place, found, "write {choice: [a, b]}")
            return None
        if len(values) > MOST_CHOICES:
            found = f"must be at most {MOST_CHOICES:,} values, found {len(values):,}"
            self.fault(place, found, "name fewer, or write {int: [a, b]}", OutOfRange)
            return None
        check, setting = self.builder.value, self.setting
        built = [check(setting, each, (*place, at)) for at, each in enumerate(values)]
        return Choice(setting.name, tuple(values), tuple(built))

    def range(self, kind: str, bounds: Any, place: Place) -> Range | None:
        if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(_is_number, bounds)):
            found = f"must be the least and the greatest value, found {shown(bounds)}"
            self.fault(place, found, f"write {{{kind}: [a, b]}}")
            return None
        low, high = bounds
        if not low < high:
            self.fault(place, f"{low} is not below {high}", "", OutOfRange)
            return None
        if kind == "log" and low <= 0:
            self.fault(place, f"{low} has no logarithm", "begin above 0", OutOfRange)
            return None
        whole = kind == "int" or self.takes_whole_numbers_only()
        if kind == "float" and whole:
            found = f"{self.setting.name} is a whole number"
            self.fault(place, found, f"write {{int: [{low}, {high}]}}")
            return None
        return self.checked(Range(self.setting.name, low, high, kind == "log", whole), place)

    def checked(self, made: Range, place: Place) -> Range:
        for at, each in enumerate((made.low, made.high)):
            if made.whole and not isinstance(each, int):
                self.fault((*place, at), f"must be a whole number, found {each}", "")
            else:
                self.builder.value(self.setting, each, (*place, at))
        return made

    def takes_whole_numbers_only(self) -> bool:
        kinds = {bare(each) for each in members(self.setting.hint)}
        return int in kinds and float not in kinds

    def fault(
        self, place: Place, found: str, remedy: str, kind: type[ConfigError] = WrongType
    ) -> None:
        is_key = kind is UnknownKey
        self.builder.document.blame(place, found, remedy=remedy, kind=kind, key=is_key)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
