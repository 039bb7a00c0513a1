"""Validation of what the class of another author declares: settings, evidence, documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.settings import (
    Setting,
    as_plain,
    build_adapter,
    describe_hint,
    describe_value,
    is_open,
    is_selected_model,
    is_valid,
    read_settings,
)
from recbias.core.docstrings import read_formula
from recbias.core.errors import BrokenContract
from recbias.core.outputs.evidence import REMEDIES
from recbias.core.protocols import OUTPUTS
from recbias.core.registry import locate_code
from recbias.core.suggestions import suggest

PARTS = frozenset({"train", "users", "items", "reviews", "sentences"})
"""The parts that a dataset may have."""

NAMES: Mapping[tuple[str, str], frozenset[str]] = {
    ("metrics", "needs"): PARTS | set(REMEDIES),
    ("models", "needs"): PARTS | {"times", "validation"},
    ("models", "provides"): OUTPUTS,
    ("rerankers", "needs"): PARTS,
    ("datasets", "gives"): PARTS,
    ("splits", "gives"): frozenset({"train", "test", "validation"}),
}
"""The names that a member of a kind of plug-in may hold."""


def find_declaration_faults(spec: PluginSpec) -> Iterator[BrokenContract]:
    """Yield what is wrong with the declarations of a plug-in that is not built in."""
    cls: Any = type(spec.plugin)
    if not locate_code(cls):
        return
    if not cls.__dataclass_params__.frozen:
        message = f"{spec.name} is not frozen, so its settings could change during a run"
        remedy = "write @dataclass(frozen=True, kw_only=True) above it"
        yield BrokenContract(message, remedy=remedy)
    for name, setting in read_settings(cls).items():
        yield from _find_setting_faults(spec.name, name, setting)
    for (kind, member), allowed in NAMES.items():
        if kind == spec.kind:
            names = getattr(spec.plugin, member)
            yield from _find_name_faults(
                spec, member, set(names() if callable(names) else names) - allowed, allowed
            )


def _find_name_faults(
    spec: PluginSpec, member: str, unknown: set[str], allowed: frozenset[str]
) -> Iterator[BrokenContract]:
    for name in sorted(unknown):
        message = f"{member} of {spec.name} names {name!r}, which is not one of its values"
        yield BrokenContract(message, remedy=suggest(name, sorted(allowed)))


def _find_setting_faults(plugin: str, name: str, setting: Setting) -> Iterator[BrokenContract]:
    """Yield why no spec could give a setting, or why its default is not valid."""
    if is_selected_model(setting.hint):
        return
    if not _can_be_given(setting.hint):
        message = f"the type of {name} of {plugin} cannot be that of a setting: {setting.hint}"
        remedy = "use numbers, text, lists, mappings, InputFile or dataclasses of these"
        yield BrokenContract(message, remedy=remedy)
        return
    default = as_plain(setting.default)
    if not setting.needed and not is_valid(setting.hint, default):
        message = (
            f"the default of {name} of {plugin} must be {describe_hint(setting.hint)}, "
            f"found {describe_value(default)}"
        )
        yield BrokenContract(message, remedy="correct the default, or the type of the field")


def _can_be_given(hint: Any) -> bool:
    """Return whether a spec can give a setting of a type, and can be checked against it."""
    try:
        build_adapter(hint)
    except (BrokenContract, PydanticUndefinedAnnotation, PydanticUserError):
        return False
    return not is_open(hint)


def list_undocumented(experiment: Experiment) -> tuple[str, ...]:
    """Return a warning for each metric of another author that has no formula for reports."""
    remedy = "write it as an indented block in the docstring"
    return tuple(
        f"{place}: {name} has no formula, so reports show none: {remedy}"
        for name, cls in {
            metric.name: type(metric.plugin) for metric in experiment.metrics
        }.items()
        if (place := locate_code(cls)) and not read_formula(cls)
    )
