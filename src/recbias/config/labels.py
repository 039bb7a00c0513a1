"""The labels of plug-ins that an experiment file does not name otherwise.

A label states the settings in which entries of one plug-in differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import is_dataclass, replace
from typing import Any, get_args

from recbias.config.settings import Hint, as_plain, read_settings, render_yaml, strip_annotations
from recbias.config.specs import Grouping, PluginSpec
from recbias.core import measures
from recbias.core.registry import is_file
from recbias.core.text import flatten_settings, make_printable

_LONGEST_VALUE = 60
"""The longest value in a label in characters; the middle of a longer one is left out."""


def create_label(
    kind: str,
    plugin: Any,
    name: str,
    parameters: Mapping[str, Any],
    grouping: Grouping | None,
) -> str:
    """Return the label of an entry without one.

    It is the name, for a metric with the settings that are not the default and change its
    value.
    """
    if kind != "metrics":
        return shorten_name(name)
    cls: type = type(plugin)
    settings = read_settings(cls)
    has_omitted = hasattr(plugin, "omitted_settings")
    omitted = {"k"} | (plugin.omitted_settings() if has_omitted else set())
    shown_settings = {
        key: _summarize_mapping(value, settings[key].hint)
        for key, value in parameters.items()
        if key not in omitted
        and (settings[key].needed or value != as_plain(settings[key].default))
    }
    if grouping is not None:
        shown_settings["by"] = grouping.by
        if grouping.gap not in {"", "groups"}:
            shown_settings["gap"] = grouping.gap
            shown_settings |= {"min_group": grouping.min_group} if grouping.min_group else {}
    return measures.format_metric(shorten_name(name), shown_settings)


def _summarize_mapping(value: Any, hint: Hint) -> Any:
    """Return a setting for the label of a metric; of a mapping, only the changed values."""
    plain = strip_annotations(hint)
    cls = next(
        (
            part
            for part in (plain, *get_args(plain))
            if is_dataclass(part) and isinstance(part, type)
        ),
        None,
    )
    if not isinstance(value, Mapping) or cls is None:
        return value
    settings = read_settings(cls)
    defaults = {name: as_plain(setting.default) for name, setting in settings.items()}
    return "/".join(str(item) for key, item in value.items() if item != defaults.get(key))


def shorten_name(name: str) -> str:
    """Return the class of ``./file.py:Name``; other names are returned unchanged."""
    return name.rpartition(":")[2] if is_file(name) else name


def distinguish_plugins(
    specs: Sequence[PluginSpec],
    written: Sequence[Mapping[str, Any]] = (),
    omitted: Collection[str] = (),
) -> list[PluginSpec]:
    """Return entries with labels that state the settings in which those of one plug-in differ.

    Entries with a label of their own keep it; equal entries keep one name and are refused later.

    Args:
        specs: Entries of models, re-rankers, datasets or tests.
        written: For each of them the settings that its label states in any case, as written.
        omitted: Settings that no label states, as they have columns of their own in the results.
    """
    stated = [dict(settings) for settings in written] or [{} for _ in specs]
    for members in _group(specs, lambda spec: spec.name):
        settings = [_read_settings(specs[at], omitted) for at in members]
        for at, differing in zip(members, select_differing(settings), strict=True):
            stated[at] = {**differing, **stated[at]}
    owners: dict[str, str] = {}
    return [
        spec
        if not settings
        else replace(
            spec,
            label=_make_unique(f"{spec.label}({_format(settings)})", settings, owners),
            base_label=spec.label,
        )
        for spec, settings in zip(specs, stated, strict=True)
    ]


def distinguish_metrics(specs: Sequence[PluginSpec]) -> list[PluginSpec]:
    """Return metrics of which those with equal labels and cutoffs also state what differs.

    These are the settings that do not change the value, which labels of metrics omit otherwise.
    """
    labelled, owners = list(specs), dict[str, str]()
    for members in _group(specs, lambda spec: (spec.label, spec.cutoff)):
        settings = [_read_settings(specs[at]) | specs[at].split_settings for at in members]
        for at, differing in zip(members, select_differing(settings), strict=True):
            if differing:
                label = _add_settings(specs[at].label, _format(differing))
                label = _make_unique(label, differing, owners)
                labelled[at] = replace(specs[at], label=label)
    return labelled


def _group(
    specs: Sequence[PluginSpec], identify: Callable[[PluginSpec], Hashable]
) -> Iterator[Sequence[int]]:
    """Yield the positions of the entries without a label of their own that have one identity."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for at, spec in enumerate(specs):
        if not spec.is_labelled:
            groups[identify(spec)].append(at)
    yield from (members for members in groups.values() if len(members) > 1)


def _read_settings(spec: PluginSpec, omitted: Collection[str] = ()) -> dict[str, Any]:
    """Return all settings by path, and what a search optimizes; ``label`` of a metric too."""
    tune = {} if spec.tune is None else {"tune": spec.tune.written}
    settings = flatten_settings({**spec.parameters, **tune})
    return {name: value for name, value in settings if name not in omitted}


def select_differing(members: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return of each entry the settings that not all entries have with one value."""
    names = dict.fromkeys(name for settings in members for name in settings)
    missing = object()
    differing = [
        name
        for name in names
        if len({repr(settings.get(name, missing)) for settings in members}) > 1
    ]
    return [
        {name: settings[name] for name in differing if name in settings} for settings in members
    ]


def _make_unique(label: str, settings: Mapping[str, Any], owners: MutableMapping[str, str]) -> str:
    """Return a label with a number if it is that of other settings, as of values that are cut.

    >>> owners = {}
    >>> [_make_unique("A(x=1 ... 2)", {"x": value}, owners) for value in ("132", "142", "132")]
    ['A(x=1 ... 2)', 'A(x=1 ... 2) #2', 'A(x=1 ... 2)']
    """
    identity, unique, n = repr(settings), label, 1
    while owners.setdefault(unique, identity) != identity:
        n += 1
        unique = f"{label} #{n}"
    return unique


def _format(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in settings.items())


def format_value(value: Any) -> str:
    """Return a plain value as it stands in a label.

    >>> format_value(["a", 1])
    '[a, 1]'
    """
    return make_printable(render_yaml(value), _LONGEST_VALUE)


def _add_settings(label: str, settings: str) -> str:
    """Return a label of a metric with more settings in its parentheses.

    >>> _add_settings("nDCG(by=gender)", "min_group=5"), _add_settings("EAA", "repeats=3")
    ('nDCG(by=gender, min_group=5)', 'EAA(repeats=3)')
    """
    return f"{label[:-1]}, {settings})" if label.endswith(")") else f"{label}({settings})"
