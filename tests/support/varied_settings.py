"""Plug-ins with one setting varied at a time, to find the settings that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from recbias.config.entries import Resolver
from recbias.config.settings import (
    Setting,
    as_plain,
    get_item_type,
    is_input_file,
    is_valid,
    list_choices,
    list_members,
    read_settings,
    strip_annotations,
)
from recbias.config.source import read_mapping
from recbias.core.context import collect_warnings
from recbias.core.errors import UserError
from recbias.core.plugins import EXECUTION
from recbias.registry import REGISTRIES

NUMBERS = (0, 1, 2, 3, 0.1, 0.25, 0.5, 0.75, 0.9, 5, 20, 100, 1000, -1)
TEXTS = (
    *("genres", "price", "flag", "title", "studio", "colour", "name", "template", "pair", "other"),
    *("a", "b", "c", "white", "black", "0", "1", "2", "colour == 'white'", "price > 2"),
)
"""Columns and values of the worlds, and conditions on them."""


@dataclass
class World:
    """A plug-in with its settings, and what it does with some data.

    Args:
        run: Returns the result of the plug-in.
        base: The settings that are not varied, besides the defaults.
        values: Values of settings that cannot be derived from their types: files and mappings.
        company: Settings that are needed beside a value of another one.
    """

    kind: str
    name: str
    run: Callable[[Any], Any]
    base: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    company: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def find_idle(self) -> set[str]:
        """Return the settings that change neither the result nor a message."""
        cls = REGISTRIES[self.kind].load(self.name)
        return {".".join(path) for path in self._find_idle(cls, dict(self.base), ())}

    def _find_idle(
        self, cls: type, given: Mapping[str, Any], path: tuple[str, ...]
    ) -> Iterator[tuple[str, ...]]:
        for name, setting in read_settings(cls).items():
            nested, place = _find_dataclass(setting.hint), (*path, name)
            if EXECUTION in getattr(setting.hint, "__metadata__", ()):
                continue
            if nested is not None and isinstance(given.get(name), Mapping):
                yield from self._find_idle(nested, given[name], place)
            elif self._is_idle(place, setting, read_settings(cls), given):
                yield place

    def _is_idle(
        self,
        place: tuple[str, ...],
        setting: Setting,
        settings: Mapping[str, Setting],
        given: Mapping[str, Any],
    ) -> bool:
        base = self.base
        for mark in setting.only_with:
            if not mark.is_met(given.get(mark.setting, _get_default(settings[mark.setting]))):
                base = self._satisfy(
                    (*place[:-1], mark.setting), settings[mark.setting], mark.values
                )
        before, is_silent = self._report(base), False
        assert before.result is not None, (self.name, base, before.messages)
        default = given.get(setting.name, _get_default(setting))
        for value in self._list_values(place, setting.hint, default):
            after = self._report(_put(base, place, value))
            if after.result is not None and after.result != before.result:
                return False
            is_silent |= after.messages == before.messages
        return is_silent

    def _satisfy(
        self, place: tuple[str, ...], setting: Setting, values: Sequence[Any]
    ) -> Mapping[str, Any]:
        """Return settings in which another one has a value that switches a setting on."""
        choices = [*values] or self._list_values(place, setting.hint, _get_default(setting))
        if get_item_type(setting.hint) is not None:
            choices = [[choice] for choice in choices] + [choices]
        bases = [
            {**_put(self.base, place, choice), **self.company.get(str(choice), {})}
            for choice in choices
        ]
        return next(base for base in bases if self._report(base).result is not None)

    def _list_values(self, place: tuple[str, ...], hint: Any, default: Any) -> list[Any]:
        values = [*self.values.get(".".join(place), ())] or [*_list_values(hint, default)]
        return [value for value in values if value != default]

    def _report(self, settings: Mapping[str, Any]) -> _Report:
        """Return the result of a plug-in with some settings, None if it is refused."""
        document = read_mapping({"name": "x"})
        key = "detector" if self.kind == "detectors" else "name"
        entry = {key: self.name, **deepcopy(dict(settings))}
        spec = Resolver(document, REGISTRIES, 4, None).resolve(self.kind, entry, (self.kind,))
        if document.faults or spec is None:
            return _Report(None, [str(error) for _, error in document.faults])
        with collect_warnings() as messages:
            try:
                return _Report(describe(self.run(spec.plugin)), messages)
            except UserError as error:
                return _Report(None, [str(error)])


class _Report(NamedTuple):
    result: Any
    messages: list[str]


def describe(value: Any) -> Any:
    """Return plain data that is equal for equal results only."""
    if issparse(value) or isinstance(value, pd.DataFrame):
        return value.to_csv() if isinstance(value, pd.DataFrame) else describe(value.toarray())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return str(value.dtype), value.shape, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return [describe(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return [(key, describe(item)) for key, item in value.items()]
    is_list = isinstance(value, (list, tuple, np.ndarray))
    return [describe(item) for item in value] if is_list else repr(value)


def _get_default(setting: Setting) -> Any:
    return as_plain(setting.default)


def _find_dataclass(hint: Any) -> type | None:
    """Return the dataclass in a type."""
    plain = map(strip_annotations, list_members(hint))
    return next((each for each in plain if is_dataclass(each) and isinstance(each, type)), None)


def _put(base: Mapping[str, Any], place: Sequence[str], value: Any) -> dict[str, Any]:
    """Return settings with another value at a place."""
    first, *rest = place
    return {**base, first: _put(base.get(first, {}), rest, value) if rest else value}


def _list_values(hint: Any, default: Any) -> Iterator[Any]:
    """Yield values of a type, as in a spec."""
    for member in list_members(hint):
        values = [*_list_member_values(member, default)]
        yield from (value for value in values if is_valid(member, value))


def _list_member_values(hint: Any, default: Any) -> Iterator[Any]:
    plain, item = strip_annotations(hint), get_item_type(hint)
    if choices := list_choices(hint):
        yield from choices
    elif plain is bool:
        yield from (True, False)
    elif plain in {int, float}:
        yield from (default * 2, default / 2) if isinstance(default, (int, float)) else ()
        yield from (int(each) if plain is int else float(each) for each in NUMBERS)
    elif plain is str:
        yield from TEXTS
    elif item is not None and not is_input_file(item):
        items = [*_list_values(item, None)]
        yield from ([each] for each in items)
        yield from (items[:2], items[2:4])
