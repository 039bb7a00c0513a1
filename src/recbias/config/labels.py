"""The labels of plug-ins that an experiment file does not name otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from recbias.config.declarations.hints import Hint, strip_annotations
from recbias.config.plugin_spec import Grouping
from recbias.config.settings import as_plain, read_settings
from recbias.core.measurements import metric_names
from recbias.core.registry import is_file


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
    has_omitted = isinstance(plugin, metric_names.OmitsSettings)
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
    return metric_names.format_metric(shorten_name(name), shown_settings)


def _summarize_mapping(value: Any, hint: Hint) -> Any:
    """Return a setting for the label of a metric; of a mapping, only the changed values."""
    if not isinstance(value, Mapping) or not is_dataclass(strip_annotations(hint)):
        return value
    settings = read_settings(strip_annotations(hint))
    defaults = {name: as_plain(setting.default) for name, setting in settings.items()}
    return "/".join(str(item) for key, item in value.items() if item != defaults.get(key))


def shorten_name(name: str) -> str:
    """Return the class of ``./file.py:Name``; other names are returned unchanged."""
    return name.rpartition(":")[2] if is_file(name) else name
