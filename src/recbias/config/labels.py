"""The labels of plug-ins that an experiment file does not name otherwise.

A label states the settings in which entries of one plug-in differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, MutableMapping, Sequence
from dataclasses import is_dataclass, replace
from itertools import chain
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
        if grouping.gap not in {None, "groups"}:
            shown_settings["gap"] = grouping.gap
            shown_settings |= {"min_group": grouping.min_group} if grouping.min_group else {}
    return measures.format_metric(shorten_name(name), shown_settings)


def _summarize_mapping(value: Any, hint: Hint) -> Any:
    """Return a setting for the label of a metric; of a mapping, only the changed values."""
    plain = strip_annotations(hint)
    classes: list[Any] = [part for part in (plain, *get_args(plain)) if is_dataclass(part)]
    if not isinstance(value, Mapping) or not classes:
        return value
    settings = read_settings(classes[0])
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
    differing = _find_differing(specs, [spec.name for spec in specs], omitted)
    labelled, owners = list(specs), dict[str, str]()
    for at, spec in enumerate(specs):
        settings = {**differing.get(at, {}), **(written[at] if written else {})}
        if settings:
            label = _make_unique(f"{spec.label}({_format(settings)})", settings, owners)
            labelled[at] = replace(spec, label=label, base_label=spec.label)
    return labelled


def distinguish_metrics(specs: Sequence[PluginSpec]) -> list[PluginSpec]:
    """Return metrics of which those with equal labels and cutoffs also state what differs.

    These are the settings that do not change the value, which labels of metrics omit otherwise.
    """
    labelled, owners = list(specs), dict[str, str]()
    same = [(spec.label, spec.cutoff) for spec in specs]
    for at, settings in _find_differing(specs, same).items():
        if settings:
            label = _add_settings(specs[at].label, _format(settings))
            labelled[at] = replace(specs[at], label=_make_unique(label, settings, owners))
    return labelled


def _find_differing(
    specs: Sequence[PluginSpec], identities: Sequence[Hashable], omitted: Collection[str] = ()
) -> dict[int, dict[str, Any]]:
    """Return the settings in which entries of one identity differ, by the position of the entry.

    These are all settings by path, what a search optimizes, and how a metric is grouped; entries
    with a label of their own have none.
    """
    groups: dict[Hashable, dict[int, dict[str, Any]]] = defaultdict(dict)
    for at, (spec, identity) in enumerate(zip(specs, identities, strict=True)):
        if not spec.is_labelled:
            tune = {} if spec.tune is None else {"tune": spec.tune.written}
            settings = dict(flatten_settings({**spec.parameters, **tune}))
            groups[identity][at] = settings | spec.split_settings
    differing = {}
    for members in groups.values():
        names = dict.fromkeys(chain(*members.values()))
        told = [
            name
            for name in names
            if len({repr(settings.get(name, ...)) for settings in members.values()}) > 1
        ]
        for at, settings in members.items():
            shown = [name for name in told if name in settings and name not in omitted]
            differing[at] = {name: settings[name] for name in shown}
    return differing


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
