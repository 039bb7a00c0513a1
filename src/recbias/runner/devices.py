"""The devices on which the models of an experiment compute on this machine."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.core.errors import UserError
from recbias.core.plugins import ChecksFiles, Device, SelectedModel, UsesDevice
from recbias.core.registry import Registry
from recbias.formats.yaml import KeyPath
from recbias.runner.boundary import blame_plugin
from recbias.runner.contracts import raise_faults

_PLAIN = frozenset({bool, int, float, str, tuple, type(None)})
"""Types of settings that are no part with a device: a check of a protocol takes long."""


def choose_devices(experiment: Experiment) -> Experiment:
    """Return an experiment whose plug-ins name the devices and precisions that they use here.

    Raises:
        Faults: This machine does not have a device.
    """
    faults: list[UserError] = []

    def choose(specs: Sequence[PluginSpec]) -> tuple[PluginSpec, ...]:
        return tuple(_choose(spec, experiment, faults) for spec in specs)

    datasets = tuple(
        DatasetSpec(dataset.source, choose(dataset.filters), dataset.label)
        for dataset in experiment.datasets
    )
    chosen = replace(
        experiment,
        datasets=datasets,
        models=choose(experiment.models),
        labels=choose(experiment.labels),
    )
    raise_faults(faults)
    return chosen


def has_device(spec: PluginSpec, experiment: Experiment) -> bool:
    """Return whether this machine has the device of a plug-in."""
    faults: list[UserError] = []
    _choose(spec, experiment, faults)
    return not faults


def _choose(spec: PluginSpec, experiment: Experiment, faults: list[UserError]) -> PluginSpec:
    if spec.reranked is not None:
        base = _choose(spec.reranked.base, experiment, faults)
        reranked = replace(spec.reranked, base=base)
        model = replace(spec.plugin.base, model=base.plugin)
        return replace(spec, plugin=replace(spec.plugin, base=model), reranked=reranked)
    try:
        with blame_plugin(f"choose_device() of {spec.label}"):
            return replace(spec, plugin=_set_devices(spec.plugin, experiment.device))
    except UserError as error:
        where = _find_device_key(experiment.document.data, spec.where)
        fault = experiment.fault(where, error.message, remedy=error.remedy, kind=type(error))
        if str(fault) not in map(str, faults):  # several models may have the device of the spec
            faults.append(fault)
        return spec


def _set_devices(plugin: Any, default: Device) -> Any:
    """Return a copy of a plug-in with the device and precision of each of its parts."""
    changes: dict[str, Any] = {}
    for name, value in vars(plugin).items() if is_dataclass(plugin) else ():
        if type(value) in _PLAIN:
            continue
        if isinstance(value, SelectedModel):
            changes[name] = replace(value, model=_set_devices(value.model, default))
        elif isinstance(value, UsesDevice):
            changes[name] = _set_devices(value, default)
    if isinstance(plugin, UsesDevice):
        changes |= plugin.choose_device(default)
    if not changes:
        return plugin
    plugin = copy.copy(plugin)
    for name, value in changes.items():
        object.__setattr__(plugin, name, value)  # its settings are valid, and it may be frozen
    return plugin


def _find_device_key(data: Any, where: KeyPath) -> KeyPath:
    """Return the location of the device of an entry: its own, or that of the spec."""
    entry = data
    for step in where:
        entry = entry[step]
    return (*where, *key) if (key := _find_key(entry, "device")) else ("device",)


def _find_key(entry: Any, setting: str) -> KeyPath:
    """Return the path of the first setting of a name in an entry, at any depth; else empty."""
    if not isinstance(entry, Mapping):
        return ()
    if setting in entry:
        return (setting,)
    paths = ((key, *path) for key in entry if (path := _find_key(entry[key], setting)))
    return next(paths, ())


def list_devices(plugin: Any) -> tuple[str, ...]:
    """Return the devices of a plug-in whose devices are chosen."""
    return tuple(sorted({device for device, _ in _list_placements(plugin) if device}))


def describe_devices(plugin: Any) -> dict[str, Any]:
    """Return the device and the precision of a model whose devices are chosen, for the manifest.

    A model without a choice computes on the CPU, in the precision of its library. The device of a
    model on a server, or of lists that another tool made, is not known.
    """
    placements = [*_list_placements(plugin)]
    if not placements:
        device = getattr(plugin, "device", "cpu")
        is_known = device != "auto" and not isinstance(plugin, ChecksFiles)
        return {"device": device if is_known else None, "precision": None}
    devices, precisions = (
        ", ".join(sorted({*names} - {""})) for names in zip(*placements, strict=True)
    )
    return {"device": devices or None, "precision": precisions or None}


def warn_about_device(experiment: Experiment, models: Registry) -> tuple[str, ...]:
    """Return a warning if a spec names a GPU that nothing in it uses; all may use the CPU.

    Args:
        experiment: The spec, with the device that its models have by default.
        models: The models of the package, from which the warning names those with a device.
    """
    filters = [spec for dataset in experiment.datasets for spec in dataset.filters]
    specs = (*filters, *experiment.models, *experiment.labels)
    if experiment.device in {"auto", "cpu"}:
        return ()
    placed = [_set_devices(spec.plugin, experiment.device) for spec in specs]
    if any(device == experiment.device for each in placed for device, _ in _list_placements(each)):
        return ()
    names = [name for name in models if "device" in read_settings(models.load(name))]
    message = (
        f"device {experiment.device} has no effect: no model of the spec uses it; models that "
        f"would are {', '.join(names)}, and language models in the process"
    )
    return (message,)


def _list_placements(plugin: Any) -> Iterator[tuple[str, str]]:
    """Yield the device and the precision of each part of a plug-in; blank if it is a server's."""
    for value in vars(plugin).values() if is_dataclass(plugin) else ():
        if type(value) in _PLAIN:
            continue
        part = value.model if isinstance(value, SelectedModel) else value
        if part is not value or isinstance(part, UsesDevice):
            yield from _list_placements(part)
    if isinstance(plugin, UsesDevice):
        device = plugin.choose_device("auto").get("device", "auto")
        is_here = device != "auto"
        yield (device, getattr(plugin, "precision", "float32")) if is_here else ("", "")
