"""Read the hyperparameter search of a model: its metric, trials and search space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.build import Builder
from recbias.config.declarations.hints import list_members, strip_annotations
from recbias.config.declarations.type_text import describe_value
from recbias.config.plugin_spec import Choice, Dimension, PluginSpec, Range, Tune
from recbias.config.settings import Setting, as_plain, read_settings
from recbias.config.specs import TuneSpec
from recbias.core.errors import (
    ConfigError,
    Contradiction,
    OutOfRange,
    UnknownKey,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.suggestions import suggest
from recbias.formats.yaml.source_map import KeyPath
from recbias.formats.yaml.tree import read_file

KINDS = ("log", "float", "int", "choice")
"""The kinds of search interval."""

ResolveMetric: TypeAlias = Callable[[str, Any, KeyPath], PluginSpec | None]
"""Resolves the entry of a plug-in: kind, entry and location."""

MOST_CHOICES = 1_000
"""The maximum number of choices, since each is validated and compared with the others."""

_REMEDY = "write {log: [0.001, 1]}, {float: [0, 1]}, {int: [5, 1000]} or {choice: [a, b]}"


@cache
def load_packaged_spaces() -> Mapping[str, Mapping[str, Any]]:
    """Return the search spaces that come with the package: by collection, then by model."""
    return read_file(Path(__file__).with_name("spaces.yaml")).data


def get_packaged_space(name: str, model: str) -> dict[str, Any]:
    """Return the search space of a model in a packaged collection (``thesis``), as in a spec.

    Raises:
        UnknownName: There is no such collection, or it has no space for the model.
    """
    collections = load_packaged_spaces()
    if name not in collections:
        message = f"no search space is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, collections))
    if model not in collections[name]:
        models = ", ".join(collections[name])
        remedy = (
            f"it covers {models}; for {model} write the space: {{setting: {{log: [0.001, 1]}}}}"
        )
        raise UnknownName(f"the search space {name!r} does not cover {model}", remedy=remedy)
    return dict(collections[name][model])


def read_searched(
    builder: Builder,
    cls: type,
    raw: Mapping[str, Any],
    tune: Any,
    location: KeyPath,
    resolve: ResolveMetric,
) -> tuple[Any, Tune | None]:
    """Return the plug-in of ``raw``, None if it has a fault, and the search in ``tune``.

    Where the search has faults, those of settings that it lacks are not recorded.
    """
    if tune is None:
        return builder.build(cls, raw, location), None
    n_before, faults = len(builder.document.faults), builder.document.faults
    search = read_tune(builder, cls, raw, tune, location, resolve)
    if (n_faults := len(faults)) == n_before:
        return build_base(builder, cls, raw, location, search), search
    plugin = builder.build(cls, raw, location)
    space = tune.get("space") if isinstance(tune, dict) else None
    for name in space.keys() - raw.keys() if isinstance(space, dict) else ():
        where = builder.document.error((*location, name), "").where
        need = f"{builder.owner} needs {name}"
        faults[n_faults:] = [
            each
            for each in faults[n_faults:]
            if each[1].where != where and each[1].message != need
        ]
    return plugin, search


def read_tune(
    builder: Builder,
    cls: type,
    raw: Mapping[str, Any],
    tune: Any,
    location: KeyPath,
    resolve: ResolveMetric,
) -> Tune | None:
    """Return the search in the value ``tune`` of a model's entry, which has the settings ``raw``.

    Faults are recorded in the document of ``builder``, which validates the values of the model.
    """
    document, tune_location = builder.document, (*location, "tune")
    if not isinstance(tune, dict):
        message = f"must be a mapping, found {describe_value(tune)}"
        remedy = "write tune: {metric: nDCG@10, trials: 20, space: {...}}"
        document.add_fault(tune_location, message, remedy=remedy, kind=WrongType)
        return None
    if isinstance(tune.get("space"), str):
        try:
            packaged_space = get_packaged_space(tune["space"], builder.owner)
        except UserError as error:
            document.add_error((*tune_location, "space"), error)
            return None
        free = {name: value for name, value in packaged_space.items() if name not in raw}
        tune = tune | {"space": free}
    values = Builder(document, "tune").validate_all(TuneSpec, tune, tune_location)
    intervals = values.get("space", {})
    space = read_space(builder, cls, intervals, (*tune_location, "space")) if intervals else ()
    for name in [name for name in intervals if name in raw]:
        message = f"is searched and also set, at {document.format_path((*location, name))}"
        where, remedy = (*tune_location, "space", name), "remove one of the two"
        document.add_fault(where, message, remedy=remedy, kind=Contradiction, key=True)
    if "metric" not in values:
        return None
    metric = resolve("metrics", values["metric"], (*tune_location, "metric"))
    if metric is None or "space" not in values:
        return None
    spec = TuneSpec(**values)
    others = (spec.objective, spec.max_perplexity_increase)
    return Tune(metric, spec.trials, space, as_plain(spec), spec.pruning, spec.parallel, *others)


def build_base(
    builder: Builder, cls: type, raw: Mapping[str, Any], location: KeyPath, tune: Tune | None
) -> Any:
    """Build the plug-in whose settings ``raw`` a search leaves; return None if there is a fault.

    What is searched has its default, and where these fit no plug-in, the first value of its
    interval or choices. Each trial replaces it.
    """
    faults = builder.document.faults
    n_faults, plugin = len(faults), builder.build(cls, raw, location)
    if plugin is not None or tune is None or not tune.space:
        return plugin
    del faults[n_faults:]
    firsts = {
        each.parameter: each.values[0] if isinstance(each, Choice) else each.low
        for each in tune.space
    }
    return builder.build(cls, {**firsts, **raw}, location)


def read_space(
    builder: Builder, cls: type, raw: Mapping[str, Any], location: KeyPath
) -> tuple[Dimension, ...]:
    """Return the dimensions of the search space ``raw``, by setting of ``cls``.

    Faults are recorded in the document of ``builder``, which validates the values.
    """
    settings = read_settings(cls)
    builder.refuse_unknown_keys(settings, raw, location)
    dimensions = [
        _DimensionReader(builder, settings[name]).read(interval, (*location, name))
        for name, interval in raw.items()
        if name in settings
    ]
    return tuple(dimension for dimension in dimensions if dimension is not None)


@dataclass(frozen=True)
class _DimensionReader:
    builder: Builder
    setting: Setting

    def read(self, raw: Any, location: KeyPath) -> Dimension | None:
        if not isinstance(raw, dict) or len(raw) != 1:
            message = f"must be one search interval, found {describe_value(raw)}"
            self.add_fault(location, message, _REMEDY)
            return None
        ((kind, values),) = raw.items()
        location = (*location, kind)
        if kind not in KINDS:
            self.add_fault(location, "not a kind of interval", suggest(kind, KINDS), UnknownKey)
            return None
        n_faults = len(self.builder.document.faults)
        if kind == "choice":
            dimension: Dimension | None = self.read_choice(values, location)
        else:
            dimension = self.read_range(kind, values, location)
        return dimension if len(self.builder.document.faults) == n_faults else None

    def read_choice(self, values: Any, location: KeyPath) -> Choice | None:
        if not isinstance(values, list) or not values:
            message = f"must be a list of values, found {describe_value(values)}"
            self.add_fault(location, message, "write {choice: [a, b]}")
            return None
        if len(values) > MOST_CHOICES:
            message = f"must be at most {MOST_CHOICES:,} values, found {len(values):,}"
            self.add_fault(location, message, "name fewer, or write {int: [a, b]}", OutOfRange)
            return None
        parsed_values = [
            self.builder.validate(self.setting, value, (*location, index))
            for index, value in enumerate(values)
        ]
        return Choice(self.setting.name, tuple(values), tuple(parsed_values))

    def read_range(self, kind: str, bounds: Any, location: KeyPath) -> Range | None:
        if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(_is_number, bounds)):
            message = f"must be the lower and the upper bound, found {describe_value(bounds)}"
            self.add_fault(location, message, f"write {{{kind}: [a, b]}}")
            return None
        low, high = bounds
        if not low < high:
            remedy = f"write the lower bound first, then a higher one: {{{kind}: [a, b]}}"
            self.add_fault(location, f"{low} is not below {high}", remedy, OutOfRange)
            return None
        if kind == "log" and low <= 0:
            remedy = "use a lower bound above 0"
            self.add_fault(location, f"{low} has no logarithm", remedy, OutOfRange)
            return None
        types = {strip_annotations(member) for member in list_members(self.setting.hint)}
        is_integer = kind == "int" or (int in types and float not in types)
        if kind == "float" and is_integer:
            message = f"{self.setting.name} is a whole number"
            self.add_fault(location, message, f"write {{int: [{low}, {high}]}}")
            return None
        for index, bound in enumerate(bounds):
            if is_integer and not isinstance(bound, int):
                self.add_fault((*location, index), f"must be a whole number, found {bound}", "")
            else:
                self.builder.validate(self.setting, bound, (*location, index))
        return Range(self.setting.name, low, high, kind == "log", is_integer)

    def add_fault(
        self, location: KeyPath, message: str, remedy: str, kind: type[ConfigError] = WrongType
    ) -> None:
        document, is_key = self.builder.document, kind is UnknownKey
        document.add_fault(location, message, remedy=remedy, kind=kind, key=is_key)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
