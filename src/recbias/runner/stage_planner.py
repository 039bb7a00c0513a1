"""What planners of stages share: the identity of a plug-in in addresses, and its files.

The devices on which the models of an experiment compute on this machine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

from recbias.config.experiment import (
    DatasetSpec,
    Experiment,
    PluginSpec,
    identify_plugin,
    list_input_files,
)
from recbias.config.settings import read_settings
from recbias.core.errors import BrokenContract, UserError
from recbias.core.files import compute_digest
from recbias.core.packages import list_libraries
from recbias.core.plugins import (
    ChecksFiles,
    Device,
    ReadsModels,
    ReordersCandidates,
    SelectedModel,
    UsesDevice,
    evaluates_texts,
    omit_device_numbers,
)
from recbias.core.registry import Registry
from recbias.formats.yaml import KeyPath
from recbias.runner.address import address_values, assign_address
from recbias.runner.boundary import blame_plugin
from recbias.runner.contracts import find_contract_faults, raise_faults
from recbias.runner.stage import Stage
from recbias.runner.store import Fingerprints


def identify(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return the name and settings that distinguish a plug-in, with the digests of its files."""
    _, parameters = identify_plugin(spec, fingerprints.of)
    name = spec.name.rpartition(":")[2]  # of ./file.py:Name, whose source is in the address
    identity: dict[str, object] = {"name": name, "parameters": omit_device_numbers(parameters)}
    if isinstance(spec.plugin, ReadsModels):
        paths = spec.plugin.model_files()
        identity["files"] = [[path.name, fingerprints.of(path)] for path in paths]
    return identity


def identify_values(spec: PluginSpec, fingerprints: Fingerprints) -> str:
    """Return the digest of what distinguishes the values that a detector gives to a text."""
    if not evaluates_texts(spec.plugin):
        return ""
    identity = identify(spec, fingerprints)
    parameters = {
        key: value
        for key, value in omit_device_numbers(identify_plugin(spec, fingerprints.of)[1]).items()
        if key.rstrip("_") not in spec.plugin.after_evaluation
    }
    libraries = list_libraries(spec.plugin)
    return address_values(spec.plugin, identity | {"parameters": parameters}, libraries)


def identify_learner(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what distinguishes the learned state of a model: not what it applies afterwards."""
    identity = identify(spec, fingerprints)
    if not hasattr(spec.plugin, "after_fit"):
        return identity
    parameters = omit_device_numbers(identify_plugin(spec, fingerprints.of)[1])
    learned = parameters.keys() - spec.plugin.after_fit
    return identity | {
        "parameters": {key: parameters[key] for key in parameters if key in learned}
    }


def find_learner(spec: PluginSpec) -> PluginSpec:
    """Return the model that is trained: of a model that reorders candidates, the other one."""
    if not isinstance(spec.plugin, ReordersCandidates):
        return spec
    name, model = spec.plugin.candidates.name, spec.plugin.candidates.model
    parameters = spec.parameters["candidates"]
    settings = {key: value for key, value in parameters.items() if key != "name"}
    learner = PluginSpec(spec.kind, name, name, model, settings, spec.where)
    return find_learner(learner)


@dataclass(frozen=True)
class StagePlanner:
    """Places stages at their addresses."""

    experiment: Experiment
    fingerprints: Fingerprints
    _known: dict[tuple[object, ...], tuple[tuple[PluginSpec, ...], Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def identify(self, spec: PluginSpec) -> dict[str, object]:
        """Return the identity of a plug-in in addresses."""
        identity: dict[str, object] = self.recall(
            "identify", spec, make=lambda: identify(spec, self.fingerprints)
        )
        return identity

    def recall(self, purpose: str, *specs: PluginSpec, make: Callable[[], Any]) -> Any:
        """Return what is made once of some plug-ins: a metric is planned for every model.

        The plug-ins are kept, as their identities, by which they are found, would be used again.
        """
        key = (purpose, *map(id, specs))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = specs, make()
        return known[1]

    def list_files(self, *specs: PluginSpec) -> dict[Path, str]:
        """Return the files that plug-ins read, with the digests that ``identify`` has of them."""
        files: dict[Path, str] = self.recall(
            "files", *specs, make=lambda: self._digest_files(*specs)
        )
        return files

    def _digest_files(self, *specs: PluginSpec) -> dict[Path, str]:
        files: dict[Path, str] = {}
        for plugin in (spec.plugin for spec in specs):
            model_files = plugin.model_files() if isinstance(plugin, ReadsModels) else ()
            files |= self.fingerprints.of_files([*list_input_files(plugin), *model_files])
        return files

    def place(
        self,
        stage: Stage,
        *specs: PluginSpec,
        identity: Mapping[str, object],
        libraries: tuple[str, ...] = (),
    ) -> Stage:
        """Return a stage at its address, with the files that its plug-ins read."""
        changes: dict[str, Any] = {"subject": type(stage.work).__name__, **self.describe(*specs)}
        stage = replace(stage, files={**stage.files, **self.list_files(*specs)}, **changes)
        return assign_address(stage, identity, libraries=libraries)

    def describe(self, *specs: PluginSpec) -> dict[str, str]:
        """Return the subject and the digest of the settings of a stage with some plug-ins."""
        if not specs:
            return {}
        described: dict[str, str] = self.recall(
            "describe", *specs, make=lambda: _describe([self.identify(spec) for spec in specs])
        )
        return described


def _describe(identities: Sequence[Mapping[str, object]]) -> dict[str, str]:
    return {"subject": str(identities[0]["name"]), "settings": compute_digest(identities)}


def validate_plugins(experiment: Experiment) -> None:
    """Refuse plug-ins that lack members of their protocol, or whose code raises an exception.

    Raises:
        Faults: There is one or more.
    """
    raise_faults(
        experiment.fault(spec.where, error.message, remedy=error.remedy, kind=BrokenContract)
        for spec in list_plugins(experiment)
        for error in find_contract_faults(spec)
    )


def list_plugins(experiment: Experiment) -> Iterator[PluginSpec]:
    """Yield every plug-in of an experiment, also the metrics of its searches."""
    for dataset in experiment.datasets:
        yield from (dataset.source, *dataset.filters)
    if experiment.split is not None:
        yield experiment.split
    if experiment.queries is not None:  # of a spec with errors
        yield experiment.queries
    for model in experiment.models:
        yield model if model.reranked is None else model.reranked.reranker
        learner = find_learner(model)
        if learner is not model:
            yield learner
        if model.tune is not None:
            yield model.tune.metric
    yield from (*experiment.labels, *experiment.metrics, *experiment.tests)


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
