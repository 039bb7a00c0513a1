"""Validation of plug-ins against the protocol of their kind, before anything else calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.digests import compute_digest
from recbias.core.errors import BrokenContract, Faults
from recbias.core.measurements.scores import Direction
from recbias.core.protocols import (
    DatasetSource,
    Detector,
    Filter,
    Metric,
    NeedsByParameters,
    QuerySource,
    ReadsModels,
    Recommender,
    Splitter,
)
from recbias.runner.boundary import blame_plugin
from recbias.statistics.corrections import PairedTest

PROTOCOLS: Mapping[str, type] = {
    "datasets": DatasetSource,
    "filters": Filter,
    "splits": Splitter,
    "queries": QuerySource,
    "models": Recommender,
    "detectors": Detector,
    "metrics": Metric,
    "tests": PairedTest,
}
"""The protocol of each kind of plug-in."""


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_direction(value: object) -> bool:
    return isinstance(value, str) and value in get_args(Direction)


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, (frozenset, set, tuple, list)) and all(map(_is_text, value))


def _is_set_of_text(value: object) -> bool:
    return isinstance(value, (frozenset, set)) and all(map(_is_text, value))


TYPE_CHECKS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "folds": (_is_integer, "a whole number"),
    "provides": (_is_set_of_text, "a frozenset of text"),
    "needs": (_is_list_of_text, "a frozenset of text"),
    "libraries": (_is_list_of_text, "a tuple of text"),
    "direction": (_is_direction, f"one of {', '.join(get_args(Direction))}"),
    "unit": (_is_text, "text"),
    "gives": (_is_set_of_text, "a frozenset of text"),
    "needs_now": (_is_set_of_text, "a frozenset of text"),
}
"""The type check of an attribute of a plug-in, or of a method's result, and the type in words."""


def validate_plugins(experiment: Experiment) -> None:
    """Refuse plug-ins that lack members of their protocol, or whose code raises an exception.

    Raises:
        Faults: There is one or more.
    """
    faults = [
        _locate(error, spec, experiment)
        for spec in _list_plugins(experiment)
        for error in _find_contract_faults(spec)
    ]
    if faults:
        raise Faults(list({str(fault): fault for fault in faults}.values()))


def _find_contract_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield the members of its protocol that a plug-in lacks, or that fail or are mistyped."""
    for name in list_promised_members(PROTOCOLS[spec.kind]):
        if inspect.getattr_static(spec.plugin, name, _ABSENT) is _ABSENT:
            message = f"{spec.name} has no {name}, which every plug-in of its kind has"
            yield BrokenContract(message, remedy=_suggest_member(name))
        else:
            yield from _check_member(name, spec, partial(getattr, spec.plugin, name))
    yield from _check_member("settings", spec, lambda: compute_digest(spec.parameters))
    if spec.kind in {"datasets", "splits"}:
        yield from _check_member("gives", spec, lambda: spec.plugin.gives())  # noqa: PLW0108  it may lack it
    if isinstance(spec.plugin, NeedsByParameters):
        yield from _check_member("needs_now", spec, spec.plugin.needs_now)
    if isinstance(spec.plugin, ReadsModels):
        yield from _check_member("model_files", spec, lambda: [*spec.plugin.model_files()])


_ABSENT = object()


def list_promised_members(protocol: type) -> list[str]:
    """Return the names of the attributes and properties of a protocol, without its methods."""
    properties = [name for name, value in vars(protocol).items() if isinstance(value, property)]
    return [*inspect.get_annotations(protocol), *properties]


def _check_member(name: str, spec: PluginSpec, get: Callable[[], Any]) -> Iterator[BrokenContract]:
    """Yield why a member of a plug-in is of no use: it raises an exception or has a wrong type."""
    try:
        with blame_plugin(f"{name} of {spec.name}"):
            value = get()
    except BrokenContract as error:
        yield error
        return
    is_valid, type_name = TYPE_CHECKS.get(name, (None, ""))
    if is_valid is not None and not is_valid(value):
        message = f"{name} of {spec.name} must be {type_name}, found {type(value).__name__}"
        yield BrokenContract(message, remedy=_suggest_member(name))


def _suggest_member(name: str) -> str:
    type_name = TYPE_CHECKS[name][1] if name in TYPE_CHECKS else "see its protocol"
    return f"give its class {name}: {type_name}"


def _list_plugins(experiment: Experiment) -> Iterator[PluginSpec]:
    """Yield every plug-in of an experiment."""
    for dataset in experiment.datasets:
        yield from (dataset.source, *dataset.filters)
    if experiment.split is not None:
        yield experiment.split
    yield experiment.queries
    for model in experiment.models:
        yield model
        if model.tune is not None:
            yield model.tune.metric
    yield from (*experiment.labels, *experiment.metrics, *experiment.tests)


def _locate(error: BrokenContract, spec: PluginSpec, experiment: Experiment) -> BrokenContract:
    where = experiment.fault(spec.where, "").where
    return BrokenContract(error.message, where=where, remedy=error.remedy)
