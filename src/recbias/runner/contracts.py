"""The contract of plug-ins of other authors: what their classes must have, before anything runs.

Methods of the protocol of their kind that can be called, members of their type that do not raise,
and names of evidence that exist. Plug-ins of recbias lack nothing: tests check them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from recbias.config.settings import as_plain, describe_value, read_settings
from recbias.config.specs import PluginSpec
from recbias.core.errors import BrokenContract, Faults, UserError
from recbias.core.files import compute_digest
from recbias.core.measures import Direction, Unit
from recbias.core.plugins import (
    NAMES,
    DatasetSource,
    Detector,
    Filter,
    Metric,
    QuerySource,
    Recommender,
    Reranker,
    Splitter,
)
from recbias.core.registry import locate_code
from recbias.core.text import suggest
from recbias.runner.boundary import blame_plugin
from recbias.statistics.paired import PairedTest

_PROTOCOLS: Mapping[str, type] = {
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

_OPTIONAL = ("gives", "folds", "needs_now", "model_files")
"""Members and methods without arguments that are read where a plug-in has them."""

_TYPES: Mapping[str, tuple[tuple[Any, ...], str]] = {
    **dict.fromkeys(("folds", "candidates"), ((int,), "a whole number")),
    **dict.fromkeys(("provides", "gives", "needs_now"), ((frozenset, set), "a frozenset of text")),
    "needs": ((frozenset, set, tuple, list), "a frozenset of text"),
    "libraries": ((frozenset, set, tuple, list), "a tuple of text"),
    "dial": ((str,), "the name of a setting, or blank"),
    "direction": (get_args(Direction), f"one of {', '.join(get_args(Direction))}"),
    "unit": (get_args(Unit), f"one of {', '.join(filter(None, get_args(Unit)))} or blank"),
}
"""The types or the values of members, also in words."""


def raise_faults(faults: Iterable[UserError]) -> None:
    """Raise faults at once, those with the same message once.

    Raises:
        Faults: There is one or more.
    """
    if distinct := list({str(fault): fault for fault in faults}.values()):
        raise Faults(distinct)


def find_kinds(cls: type) -> list[str]:
    """Return the kinds of plug-in whose methods a class has: ``metrics``."""
    return [kind for kind in _PROTOCOLS if all(hasattr(cls, name) for name in _promised(kind))]


def validate_class(cls: type, name: str, kind: str) -> None:
    """Refuse a class that breaks its contract, before a spec gives its settings.

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
    raise_faults(_find_method_faults(spec) if is_open else find_contract_faults(spec))


def find_contract_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield what a plug-in lacks of its protocol, or what fails, at the place of its class."""
    cls: Any = type(spec.plugin)
    if cls.__module__.startswith("recbias."):
        return
    place = locate_code(cls)
    faults = [*_find_method_faults(spec), *_find_member_faults(spec)]
    for fault in faults or _find_declaration_faults(spec, cls):
        is_placed = not place or fault.message.startswith(place.rpartition(":")[0])
        message = fault.message if is_placed else f"{place}: {fault.message}"
        yield BrokenContract(message, remedy=fault.remedy)


def _promised(kind: str) -> dict[str, Callable[..., Any]]:
    """Return the methods of the protocol of a kind by name."""
    members = vars(_PROTOCOLS[kind]).items()
    return {
        name: value
        for name, value in members
        if inspect.isfunction(value) and not name.startswith("_")
    }


def _find_method_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield the methods of its protocol that a plug-in lacks or that take other arguments."""
    for name, promised in _promised(spec.kind).items():
        arguments = list(inspect.signature(promised).parameters)[1:]
        call = f"{name}({', '.join(arguments)})"
        head = f"def {name}({', '.join(['self', *arguments])})"
        method = inspect.getattr_static(spec.plugin, name, None)
        if method is None:
            message = f"{spec.name} has no method {call}"
            yield BrokenContract(message, remedy=f"give its class the method: {head}")
            continue
        try:
            inspect.signature(getattr(spec.plugin, name)).bind(*arguments)
        except TypeError as error:
            place = f"{place}: " if (place := locate_code(method)) else ""
            message = f"{place}{name} of {spec.name} cannot be called as {call}: {error}"
            yield BrokenContract(message, remedy=f"write it as {head}")
        except (AttributeError, ValueError):  # a member that fails is reported with the members
            continue


def _find_member_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield the members of its protocol that a plug-in lacks, or that fail or are mistyped."""
    protocol = _PROTOCOLS[spec.kind]
    properties = [name for name, value in vars(protocol).items() if isinstance(value, property)]
    promised = dict.fromkeys((*inspect.get_annotations(protocol), *properties))
    for name in dict.fromkeys((*promised, *_OPTIONAL)):
        words = _TYPES[name][1] if name in _TYPES else "see its protocol"
        remedy = f"give its class {name}: {words}"
        if inspect.getattr_static(spec.plugin, name, None) is None:
            if name in promised:
                message = f"{spec.name} has no {name}, which every plug-in of its kind has"
                yield BrokenContract(message, remedy=remedy)
            continue
        try:
            with blame_plugin(f"{name} of {spec.name}"):
                value = _read_member(spec.plugin, name)
        except BrokenContract as error:
            yield error
            continue
        if name in _TYPES and not _is_of_type(name, value):
            message = f"{name} of {spec.name} must be {words}, found {describe_value(value)}"
            yield BrokenContract(message, remedy=remedy)
    try:
        with blame_plugin(f"settings of {spec.name}"):
            compute_digest(spec.parameters)
    except BrokenContract as error:
        yield error


def _read_member(plugin: Any, name: str) -> Any:
    """Return a member, or what a method without arguments returns."""
    value = getattr(plugin, name)
    value = value() if callable(value) else value
    return [*value] if name == "model_files" else value


def _is_of_type(name: str, value: Any) -> bool:
    allowed = _TYPES[name][0]
    if isinstance(allowed[0], str):
        return isinstance(value, str) and value in allowed
    is_text = allowed[0] is not frozenset or all(isinstance(each, str) for each in value)
    return type(value) in allowed and is_text


def _find_declaration_faults(spec: PluginSpec, cls: Any) -> Iterator[BrokenContract]:
    """Yield settings that could change, and names that no evidence has."""
    if not cls.__dataclass_params__.frozen:
        message = f"{spec.name} is not frozen, so its settings could change during a run"
        remedy = "write @dataclass(frozen=True, kw_only=True) above it"
        yield BrokenContract(message, remedy=remedy)
    for (kind, member), allowed in NAMES.items():
        if kind == spec.kind:
            for name in sorted(set(_read_member(spec.plugin, member)) - allowed):
                message = f"{member} of {spec.name} names {name!r}, which is not one of its values"
                yield BrokenContract(message, remedy=suggest(name, sorted(allowed)))
