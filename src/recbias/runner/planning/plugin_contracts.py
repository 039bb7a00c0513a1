"""Whether plug-ins have what their kind promises, asked before anything else is asked of them."""

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
    PairedTest,
    QuerySource,
    ReadsModels,
    Recommender,
    Splitter,
)
from recbias.runner.boundary import blaming

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
"""What the plug-ins of each kind promise."""


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_direction(value: object) -> bool:
    return isinstance(value, str) and value in get_args(Direction)


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, (frozenset, set, tuple, list)) and all(map(_is_text, value))


def _is_set_of_text(value: object) -> bool:
    return isinstance(value, (frozenset, set)) and all(map(_is_text, value))


FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "folds": (_is_whole_number, "a whole number"),
    "provides": (_is_set_of_text, "a frozenset of text"),
    "needs": (_is_list_of_text, "a frozenset of text"),
    "libraries": (_is_list_of_text, "a tuple of text"),
    "direction": (_is_direction, f"one of {', '.join(get_args(Direction))}"),
    "unit": (_is_text, "text"),
    "gives": (_is_set_of_text, "a frozenset of text"),
    "needs_now": (_is_set_of_text, "a frozenset of text"),
}
"""The form of what a plug-in has, or of what a method of it gives, and the form in words."""


def refuse_broken(experiment: Experiment) -> None:
    """Refuse plug-ins that lack what their kind promises, or whose code fails when it is asked.

    Raises:
        Faults: There is one or more.
    """
    faults = [
        _placed(chosen, error, experiment)
        for chosen in _chosen(experiment)
        for error in contract_faults(chosen)
    ]
    if faults:
        raise Faults(list({str(fault): fault for fault in faults}.values()))


def contract_faults(chosen: PluginSpec) -> Iterator[BrokenContract]:
    """Yield what a plug-in lacks of what its kind promises."""
    for name in promised(PROTOCOLS[chosen.kind]):
        if inspect.getattr_static(chosen.plugin, name, _ABSENT) is _ABSENT:
            found = f"{chosen.name} has no {name}, which every plug-in of its kind has"
            yield BrokenContract(found, remedy=_remedy(name))
        else:
            yield from _asked(name, chosen, partial(getattr, chosen.plugin, name))
    yield from _asked("settings", chosen, lambda: compute_digest(chosen.parameters))
    if chosen.kind in {"datasets", "splits"}:
        yield from _asked("gives", chosen, lambda: chosen.plugin.gives())  # noqa: PLW0108  it may lack it
    if isinstance(chosen.plugin, NeedsByParameters):
        yield from _asked("needs_now", chosen, chosen.plugin.needs_now)
    if isinstance(chosen.plugin, ReadsModels):
        yield from _asked("model_files", chosen, lambda: [*chosen.plugin.model_files()])


_ABSENT = object()


def promised(protocol: type) -> list[str]:
    """Return the names of what plug-ins have, their methods not among them."""
    properties = [name for name, value in vars(protocol).items() if isinstance(value, property)]
    return [*inspect.get_annotations(protocol), *properties]


def _asked(name: str, chosen: PluginSpec, ask: Callable[[], Any]) -> Iterator[BrokenContract]:
    """Yield why the answer to what a plug-in is asked is of no use."""
    try:
        with blaming(f"{name} of {chosen.name}"):
            answer = ask()
    except BrokenContract as error:
        yield error
        return
    has_form, form = FORMS.get(name, (None, ""))
    if has_form is not None and not has_form(answer):
        found = f"{name} of {chosen.name} must be {form}, found {type(answer).__name__}"
        yield BrokenContract(found, remedy=_remedy(name))


def _remedy(name: str) -> str:
    form = FORMS[name][1] if name in FORMS else "what its protocol says"
    return f"give its class {name}: {form}"


def _chosen(experiment: Experiment) -> Iterator[PluginSpec]:
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


def _placed(chosen: PluginSpec, error: BrokenContract, experiment: Experiment) -> BrokenContract:
    where = experiment.fault(chosen.where, "").where
    return BrokenContract(error.message, where=where, remedy=error.remedy)
