"""Validation of plug-ins against the protocol of their kind, before anything else calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.settings import as_plain, describe_value, read_settings
from recbias.core.digests import compute_digest
from recbias.core.errors import BrokenContract, Faults, UserError
from recbias.core.measurements.scores import Direction, Unit
from recbias.core.models.rerankers import Reranker
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
from recbias.core.queries.queries import AsksInFolds
from recbias.core.registry import locate_code
from recbias.runner.boundary import blame_plugin
from recbias.runner.planning.plugin_declarations import find_declaration_faults
from recbias.runner.planning.stage_planner import find_learner
from recbias.statistics.corrections import PairedTest

PROTOCOLS: Mapping[str, type] = {
    "datasets": DatasetSource,
    "filters": Filter,
    "splits": Splitter,
    "queries": QuerySource,
    "models": Recommender,
    "rerankers": Reranker,
    "detectors": Detector,
    "metrics": Metric,
    "tests": PairedTest,
}
"""The protocol of each kind of plug-in."""


_SET: TypeAdapter[Any] = TypeAdapter(frozenset[str] | set[str])
_LIST: TypeAdapter[Any] = TypeAdapter(frozenset[str] | set[str] | tuple[str, ...] | list[str])

MEMBER_TYPES: Mapping[str, tuple[TypeAdapter[Any], str]] = {
    "folds": (TypeAdapter(int), "a whole number"),
    "candidates": (TypeAdapter(int), "a whole number"),
    "dial": (TypeAdapter(str), "the name of a setting, or blank"),
    "provides": (_SET, "a frozenset of text"),
    "needs": (_LIST, "a frozenset of text"),
    "libraries": (_LIST, "a tuple of text"),
    "direction": (TypeAdapter(Direction), f"one of {', '.join(get_args(Direction))}"),
    "unit": (TypeAdapter(Unit), f"one of {', '.join(filter(None, get_args(Unit)))} or blank"),
    "gives": (_SET, "a frozenset of text"),
    "needs_now": (_SET, "a frozenset of text"),
}
"""The type of an attribute of a plug-in, or of a method's result, also in words."""


def has_member_type(name: str, value: object) -> bool:
    """Return whether a member of a plug-in has the type in ``MEMBER_TYPES``, if it is there."""
    try:
        if name in MEMBER_TYPES:
            MEMBER_TYPES[name][0].validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def raise_faults(faults: Iterable[UserError]) -> None:
    """Raise faults at once, those with the same message once.

    Raises:
        Faults: There is one or more.
    """
    if distinct := list({str(fault): fault for fault in faults}.values()):
        raise Faults(distinct)


def validate_plugins(experiment: Experiment) -> None:
    """Refuse plug-ins that lack members of their protocol, or whose code raises an exception.

    Raises:
        Faults: There is one or more.
    """
    raise_faults(
        experiment.fault(spec.where, error.message, remedy=error.remedy, kind=BrokenContract)
        for spec in list_plugins(experiment)
        for error in _find_contract_faults(spec)
    )


def validate_class(cls: type, name: str, kind: str) -> None:
    """Refuse a class as ``validate_plugins`` does, before a spec gives its settings.

    What a class computes from settings that have no default is not known here, so of such a class
    only the methods are checked.

    Raises:
        Faults: There is one fault or more.
        BrokenContract: The class is not a dataclass, or cannot be made with its defaults.
    """
    settings = read_settings(cls)
    is_open = any(setting.needed for setting in settings.values())
    with blame_plugin(f"{name} with its defaults"):
        plugin = object.__new__(cls) if is_open else cls()
    parameters = {key: as_plain(setting.default) for key, setting in settings.items()}
    spec = PluginSpec(kind, name, name, plugin, parameters, ())
    raise_faults(_find_method_faults(spec) if is_open else _find_contract_faults(spec))


def _find_contract_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield what a plug-in lacks of its protocol, or what fails, at the place of its class."""
    faults = [*_find_method_faults(spec), *_find_member_faults(spec)]
    for fault in faults or find_declaration_faults(spec):
        place = locate_code(type(spec.plugin))
        is_placed = not place or fault.message.startswith(place.rpartition(":")[0])
        message = fault.message if is_placed else f"{place}: {fault.message}"
        yield BrokenContract(message, remedy=fault.remedy)


def _find_method_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield the methods of its protocol that a plug-in lacks or that take other arguments."""
    for name, promised in list_promised_methods(PROTOCOLS[spec.kind]).items():
        arguments = list(inspect.signature(promised).parameters)[1:]
        call = f"{name}({', '.join(arguments)})"
        method = inspect.getattr_static(spec.plugin, name, None)
        if method is None:
            message = f"{spec.name} has no method {call}"
            yield BrokenContract(message, remedy=f"give its class the method: {_write_head(call)}")
            continue
        try:
            inspect.signature(getattr(spec.plugin, name)).bind(*arguments)
        except TypeError as error:
            place = f"{place}: " if (place := locate_code(method)) else ""
            message = f"{place}{name} of {spec.name} cannot be called as {call}: {error}"
            yield BrokenContract(message, remedy=f"write it as {_write_head(call)}")
        except (AttributeError, ValueError):  # a member that fails is reported with the members
            continue


def _write_head(call: str) -> str:
    """Return the first line of a method: ``def fit(self, data, rng)``."""
    return f"def {call.replace('(', '(self, ', 1).replace(', )', ')')}"


def list_promised_methods(protocol: type) -> dict[str, Callable[..., Any]]:
    """Return the methods of a protocol by name."""
    functions = {
        name: value for name, value in vars(protocol).items() if inspect.isfunction(value)
    }
    return {name: value for name, value in functions.items() if not name.startswith("_")}


def find_kinds(cls: type) -> list[str]:
    """Return the kinds of plug-in whose methods a class has: ``metrics``."""
    return [
        kind
        for kind, protocol in PROTOCOLS.items()
        if all(hasattr(cls, name) for name in list_promised_methods(protocol))
    ]


def _find_member_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
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
    if spec.kind == "queries" and isinstance(spec.plugin, AsksInFolds):
        yield from _check_member("folds", spec, lambda: spec.plugin.folds)
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
    if not has_member_type(name, value):
        type_name = MEMBER_TYPES[name][1]
        message = f"{name} of {spec.name} must be {type_name}, found {describe_value(value)}"
        yield BrokenContract(message, remedy=_suggest_member(name))


def _suggest_member(name: str) -> str:
    type_name = MEMBER_TYPES[name][1] if name in MEMBER_TYPES else "see its protocol"
    return f"give its class {name}: {type_name}"


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
