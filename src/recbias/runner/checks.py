"""What is checked before any model is trained: classes of plug-ins, the spec, and the data.

The classes of other authors must have the methods and members of their kind; those of recbias lack
nothing, which tests check. The parts of a spec must fit together, and its models and metrics the
data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.settings import as_plain, describe_value, read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.context import StageRecord, collect_warnings
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    Faults,
    MissingEvidence,
    MissingExtra,
    UnknownColumn,
    UnknownName,
    UserError,
)
from recbias.core.evidence import REMEDIES, Evidence
from recbias.core.grouping import list_part_columns, parse_uncertain_label, split_crossing
from recbias.core.machine import require_memory
from recbias.core.measures import Direction, Unit
from recbias.core.packages import describe_missing, list_libraries, list_missing, suggest_install
from recbias.core.plugins import (
    NAMES,
    OUTPUTS,
    ChecksData,
    ChecksEarly,
    ChecksFiles,
    DatasetSource,
    Detector,
    Filter,
    Metric,
    QuerySource,
    Recommender,
    ReordersCandidates,
    Reranker,
    Splitter,
    evaluates_texts,
    get_least_memory,
    is_changed,
)
from recbias.core.registry import locate_code
from recbias.core.text import suggest
from recbias.formats.yaml import KeyPath
from recbias.runner.boundary import blame_plugin
from recbias.runner.execute import (
    Executor,
    ModelRunner,
    explain_skipping,
    run_shared_stages,
    to_error,
)
from recbias.runner.grouping import form_groups
from recbias.runner.plan import (
    NAMED_MODELS,
    DataContext,
    ModelPlan,
    Plan,
    Stage,
    count_query_folds,
    find_named_model,
    list_missing_outputs,
    may_lack_files,
)
from recbias.runner.stages import add_labels, build_evidence, make_training_data
from recbias.runner.tuning import find_perplexity_limit
from recbias.statistics.paired import PairedTest


@contextmanager
def collect_fault(faults: list[UserError]) -> Iterator[None]:
    """Add the error of a block to the faults, and go on after it."""
    try:
        yield
    except UserError as error:
        faults.append(error)


def raise_faults(faults: Iterable[UserError]) -> None:
    """Raise faults at once, those with the same message once.

    Raises:
        Faults: There is one or more.
    """
    if distinct := list({str(fault): fault for fault in faults}.values()):
        raise Faults(distinct)


# ---- the classes of other authors ----


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

_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("folds", "candidates"), ((int,), "a whole number")),
    **dict.fromkeys(("provides", "gives", "needs_now"), ((frozenset, set), "a frozenset of text")),
    "needs": ((frozenset, set, tuple, list), "a frozenset of text"),
    "libraries": ((frozenset, set, tuple, list), "a tuple of text"),
    "dial": ((str,), "the name of a setting, or blank"),
}
"""The types of members, also in words."""

_CHOICES = {"direction": get_args(Direction), "unit": get_args(Unit)}
"""The values that a member may have."""


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
    raise_faults(_find_class_faults(spec, methods_only=is_open))


def _find_class_faults(
    spec: PluginSpec, *, methods_only: bool = False
) -> Iterator[BrokenContract]:
    """Yield what a plug-in lacks of its protocol, or what fails, at the place of its class."""
    cls: Any = type(spec.plugin)
    if cls.__module__.startswith("recbias."):
        return
    place, faults = locate_code(cls), [*_find_method_faults(spec)]
    if not methods_only:
        faults += _find_member_faults(spec)
        faults = faults or [*_find_declaration_faults(spec, cls)]
    for message, remedy in faults:
        is_placed = not place or message.startswith(place.rpartition(":")[0])
        yield BrokenContract(message if is_placed else f"{place}: {message}", remedy=remedy)


def _promised(kind: str) -> dict[str, Callable[..., Any]]:
    """Return the methods of the protocol of a kind by name."""
    members = vars(_PROTOCOLS[kind]).items()
    functions = ((name, value) for name, value in members if inspect.isfunction(value))
    return {name: function for name, function in functions if not name.startswith("_")}


def _find_method_faults(spec: PluginSpec) -> Iterator[tuple[str, str]]:
    """Yield the methods of its protocol that a plug-in lacks or that take other arguments."""
    for name, promised in _promised(spec.kind).items():
        arguments = list(inspect.signature(promised).parameters)[1:]
        call = f"{name}({', '.join(arguments)})"
        head = f"def {name}({', '.join(['self', *arguments])})"
        method = inspect.getattr_static(spec.plugin, name, None)
        if method is None:
            yield f"{spec.name} has no method {call}", f"give its class the method: {head}"
            continue
        try:
            inspect.signature(getattr(spec.plugin, name)).bind(*arguments)
        except TypeError as error:
            place = f"{place}: " if (place := locate_code(method)) else ""
            message = f"{place}{name} of {spec.name} cannot be called as {call}: {error}"
            yield message, f"write it as {head}"
        except (AttributeError, ValueError):  # a member that fails is reported with the members
            continue


def _find_member_faults(spec: PluginSpec) -> Iterator[tuple[str, str]]:
    """Yield the members of its protocol that a plug-in lacks, or that fail or are mistyped."""
    protocol = _PROTOCOLS[spec.kind]
    properties = [name for name, value in vars(protocol).items() if isinstance(value, property)]
    promised = {*inspect.get_annotations(protocol), *properties}
    for name in dict.fromkeys((*sorted(promised), *_OPTIONAL)):
        choices = _CHOICES.get(name, ())
        types, words = _TYPES.get(name, ((object,), "see its protocol"))
        words = f"one of {', '.join(filter(None, choices))}" if choices else words
        remedy = f"give its class {name}: {words}"
        if inspect.getattr_static(spec.plugin, name, None) is None:
            if name in promised:
                yield f"{spec.name} has no {name}, which every plug-in of its kind has", remedy
            continue
        try:
            with blame_plugin(f"{name} of {spec.name}"):
                value = _read_member(spec.plugin, name)
        except BrokenContract as error:
            yield error.message, error.remedy
            continue
        if not isinstance(value, types) or (choices and value not in choices):
            found = describe_value(value)
            yield f"{name} of {spec.name} must be {words}, found {found}", remedy


def _read_member(plugin: Any, name: str) -> Any:
    """Return a member, or what a method without arguments returns."""
    value = getattr(plugin, name)
    value = value() if callable(value) else value
    return [*value] if name == "model_files" else value


def _find_declaration_faults(spec: PluginSpec, cls: Any) -> Iterator[tuple[str, str]]:
    """Yield settings that could change, and names that no evidence has."""
    if not cls.__dataclass_params__.frozen:
        message = f"{spec.name} is not frozen, so its settings could change during a run"
        yield message, "write @dataclass(frozen=True, kw_only=True) above it"
    for (kind, member), allowed in NAMES.items():
        if kind == spec.kind:
            for name in sorted(set(_read_member(spec.plugin, member)) - allowed):
                message = f"{member} of {spec.name} names {name!r}, which is not one of its values"
                yield message, suggest(name, sorted(allowed))


# ---- the parts of a spec ----


class _Fault(NamedTuple):
    """What is wrong at a place of the spec, and what to do."""

    where: KeyPath
    message: str
    remedy: str
    kind: type[UserError] = Contradiction


def validate_experiment(experiment: Experiment) -> None:
    """Raise every contradiction between the parts of an experiment."""
    raise_faults(
        experiment.fault(spec.where, error.message, remedy=error.remedy, kind=BrokenContract)
        for spec in _list_plugins(experiment)
        for error in _find_class_faults(spec)
    )
    rules: list[Callable[[Experiment], Iterator[_Fault]]] = [_check_packages]
    if is_whole(experiment, "dataset", "split", "queries"):
        rules += [_check_split, _check_filters, _check_data, _check_conditions]
        rules += [_check_searches, _check_metrics, _check_tests]
    raise_faults(
        experiment.fault(fault.where, fault.message, remedy=fault.remedy, kind=fault.kind)
        for rule in rules
        for fault in rule(experiment)
    )


def is_whole(experiment: Experiment, *keys: str) -> bool:
    """Return whether the parts of a spec under these keys were read without an error."""
    faulty = experiment.document.list_faulty_keys()
    return faulty <= _KEYS and faulty.isdisjoint({*keys, "sweep"})


_KEYS = frozenset(read_settings(ExperimentFile))
"""The keys of a spec; an error elsewhere, such as a misspelt key, may belong to any part."""


def _list_plugins(experiment: Experiment) -> Iterator[PluginSpec]:
    """Yield every plug-in of an experiment, also the metrics of its searches."""
    for dataset in experiment.datasets:
        yield from (dataset.source, *dataset.filters)
    yield from filter(None, (experiment.split, experiment.queries))  # of a spec with errors
    for model in experiment.models:
        yield model if model.reranked is None else model.reranked.reranker
        learner = find_learner(model)
        if learner is not model:
            yield learner
        if model.tune is not None:
            yield model.tune.metric
    yield from (*experiment.labels, *experiment.metrics, *experiment.tests)


def find_learner(spec: PluginSpec) -> PluginSpec:
    """Return the model that is trained: of a model that reorders candidates, the other one."""
    if not isinstance(spec.plugin, ReordersCandidates):
        return spec
    name, model = spec.plugin.candidates.name, spec.plugin.candidates.model
    parameters = spec.parameters["candidates"]
    settings = {key: value for key, value in parameters.items() if key != "name"}
    return find_learner(PluginSpec(spec.kind, name, name, model, settings, spec.where))


def _list_evidence(experiment: Experiment, dataset: DatasetSpec) -> frozenset[str]:
    source = dataset.source.plugin
    evidence = {"times", *source.gives()}  # whether there are times shows in the data: ChecksData
    evidence |= experiment.split.plugin.gives() if experiment.split else frozenset()
    methods = {"compute_odds": "odds", "open_log": "log"}
    return frozenset(evidence | {methods[name] for name in methods if hasattr(source, name)})


def _suggest_data(need: str) -> str:
    if need == "validation":
        return "add a validation part to the split: validation: 0.1 (leave_one_out: 1)"
    return REMEDIES.get(need, f"choose a dataset that has {need}")


def _report_missing(spec: PluginSpec, needs: Iterable[str], owner: str) -> Iterator[_Fault]:
    for need in sorted(needs):
        message = f"{spec.name} needs {need}, which {owner} does not have"
        yield _Fault(spec.where, message, _suggest_data(need), MissingEvidence)


def _check_packages(experiment: Experiment) -> Iterator[_Fault]:
    """Yield a fault for each command that installs packages, with the plug-ins it is for."""
    users = [
        (spec.where, spec.name, list_libraries(spec.plugin)) for spec in _list_plugins(experiment)
    ]
    searches = [model for model in experiment.models if model.tune]
    users += [((*model.where, "tune"), "a search", ("optuna",)) for model in searches]
    absent: dict[str, list[tuple[KeyPath, str, list[str]]]] = {}
    for where, name, libraries in users:
        if missing := list_missing(libraries):
            absent.setdefault(suggest_install(missing), []).append((where, name, missing))
    for rows in absent.values():
        names = dict.fromkeys(name for _, name, _ in rows)
        packages = dict.fromkeys(package for _, _, missing in rows for package in missing)
        message, remedy = describe_missing(tuple(names), sorted(packages))
        yield _Fault(rows[0][0], message, remedy, MissingExtra)


def _check_split(experiment: Experiment) -> Iterator[_Fault]:
    split, samples = experiment.split, count_query_folds(experiment)
    if split and split.plugin.folds > 1 and samples > 1:
        message = (
            f"the split has {split.plugin.folds} folds, and the queries are {samples} samples"
        )
        where, remedy = (*experiment.queries.where, "folds"), "remove the folds of one of the two"
        yield _Fault(where, message, remedy)
    for dataset in experiment.datasets if split and "train" not in split.plugin.gives() else ():
        if split and "train" not in dataset.source.plugin.gives():
            message = f"{split.name} has nothing to split: {dataset.label} has no interactions"
            remedy = "name an interactions file in the dataset, or remove the split"
            yield _Fault(split.where, message, remedy)


def _check_filters(experiment: Experiment) -> Iterator[_Fault]:
    """Yield the filters of interactions that are not there, or that the split does not use."""
    split = experiment.split
    for dataset in experiment.datasets:
        if split and "train" in split.plugin.gives():
            problem = f"has no effect: split {split.name} reads its own interactions"
            remedy = "filter these files, or choose a split of the dataset, such as random"
            if split.name == "given":
                remedy += "; least_grade selects test rows by their rating"
        elif "train" not in dataset.source.plugin.gives():
            problem = f"has nothing to filter: {dataset.label} has no interactions"
            remedy = "name an interactions file in the dataset, or remove the filter"
        else:
            continue
        for each in dataset.filters:
            is_of_train = split and getattr(each.plugin, "part", "all") == "train"
            if not (is_of_train or getattr(each.plugin, "keeps_interactions", False)):
                yield _Fault(each.where, f"{each.name} {problem}", remedy)


def _check_data(experiment: Experiment) -> Iterator[_Fault]:
    """Yield what models and detectors need and datasets do not have."""
    for dataset in experiment.datasets:
        evidence = _list_evidence(experiment, dataset)
        for model in experiment.models:
            yield from _report_missing(model, model.needs - evidence, dataset.label)
        for detector in experiment.labels if "items" not in evidence else ():
            message = f"{detector.label} labels items, which {dataset.label} does not have"
            yield _Fault(detector.where, message, _suggest_data("items"), MissingEvidence)


def _check_conditions(experiment: Experiment) -> Iterator[_Fault]:
    """Yield the settings of models that have no effect without some part of the data."""
    evidence = frozenset[str].intersection(
        *(_list_evidence(experiment, dataset) for dataset in experiment.datasets)
    )
    for model in experiment.models:
        cls: type = type(model.plugin)
        for name, setting in read_settings(cls).items():
            is_set = model.parameters.get(name) and is_changed(model.plugin, setting.field.name)
            for need in setting.only_on if is_set else ():
                if need not in evidence:
                    message = f"has no effect: there is no {need} part"
                    remedy = f"{_suggest_data(need)}; or leave {name} out"
                    yield _Fault((*model.where, name), message, remedy)


def _check_searches(experiment: Experiment) -> Iterator[_Fault]:
    for model in experiment.models:
        if model.tune is None:
            continue
        where, metric = (*model.where, "tune"), model.tune.metric
        is_of_texts = metric.needs & {"sentence_scores", "responses"} and all(
            "sentences" in dataset.source.plugin.gives() for dataset in experiment.datasets
        )
        has_rows = experiment.split and "validation" in experiment.split.plugin.gives()
        if not has_rows and not is_of_texts:
            message = "a search evaluates on validation rows, but the split has none"
            yield _Fault(where, message, _suggest_data("validation"))
        limit = model.tune.max_perplexity_increase
        if limit is not None and find_perplexity_limit(model.tune, model.plugin) is None:
            message = "has no effect: no sentences are scored by a model that is trained further"
            yield _Fault((*where, "max_perplexity_increase"), message, "remove it")
        yield from _check_search_metric(experiment, model, metric)


def _check_search_metric(
    experiment: Experiment, model: PluginSpec, metric: PluginSpec
) -> Iterator[_Fault]:
    other = "choose a metric such as nDCG"
    if metric.direction == "none":
        message = f"{metric.label} has no better and worse, so a search cannot optimize it"
        yield _Fault(metric.where, message, other)
    if metric.grouping is not None and metric.grouping.gap in {None, "groups"}:
        message = f"{metric.label} has a value for each group, but a search needs a single value"
        yield _Fault(metric.where, message, "add gap: difference, or remove by")
    for need in list_missing_outputs(metric, model):
        message = f"{metric.name} needs {need}, which {model.label} does not provide"
        yield _Fault(metric.where, message, other, MissingEvidence)
    for dataset in experiment.datasets:
        needs = metric.needs - OUTPUTS - _list_evidence(experiment, dataset) - {"test"}
        yield from _report_missing(metric, needs, dataset.label)


def _check_metrics(experiment: Experiment) -> Iterator[_Fault]:
    has_models = is_whole(experiment, "models")
    for metric in experiment.metrics:
        missing = [list_missing_outputs(metric, model) for model in experiment.models]
        for need in sorted(set().union(*missing)) if all(missing) and has_models else ():
            message = f"{metric.name} needs {need}, which no model of the spec provides"
            remedy = REMEDIES.get(need, f"choose a model that provides {need}")
            yield _Fault(metric.where, message, remedy, MissingEvidence)
        for dataset in experiment.datasets:
            needs = metric.needs - OUTPUTS - _list_evidence(experiment, dataset)
            yield from _report_missing(metric, needs, "this experiment")
        if has_models:
            yield from _check_named_model(experiment, metric)
        yield from _check_grouping(metric)
        if (k := metric.cutoff or 0) > experiment.k and "lists" in metric.needs:
            message = f"{metric.name}@{k} needs lists of {k}, but k is {experiment.k}"
            yield _Fault(metric.where, message, f"set k: {k}")


def _find_unknown_model(experiment: Experiment, label: object, where: KeyPath) -> Iterator[_Fault]:
    labels = [model.label for model in experiment.models]
    if label is not None and label not in labels:
        message = f"no model is labelled {label!r}"
        yield _Fault(where, message, suggest(str(label), labels), UnknownName)


def _check_named_model(experiment: Experiment, metric: PluginSpec) -> Iterator[_Fault]:
    """Yield a fault if a metric reads what another model lacks, or that model is not there."""
    key, label = find_named_model(metric)
    where = (*metric.where, key)
    yield from _find_unknown_model(experiment, label, where)
    for model in experiment.models:
        kind, purpose = NAMED_MODELS.get(key, ("", ""))
        if model.label == label and kind not in model.plugin.provides:
            message = f"{label} has no {kind} to {purpose}"
            yield _Fault(where, message, REMEDIES[kind], MissingEvidence)


def _check_tests(experiment: Experiment) -> Iterator[_Fault]:
    """Yield a fault for each test against a model that is not there."""
    for test in experiment.tests if is_whole(experiment, "models") else ():
        where = (*test.where, "against")
        yield from _find_unknown_model(experiment, test.parameters.get("against"), where)


_UNCERTAIN_GAPS = ("groups", "difference", "ratio", "std", "ugf")
"""The gaps of groups that are known as probabilities."""


def _check_grouping(metric: PluginSpec) -> Iterator[_Fault]:
    """Yield the faults of ``by`` and ``gap`` of a metric."""
    grouping = metric.grouping
    if grouping is None:
        return
    if metric.plugin.unit != "query":
        message = f"{metric.name} has no value for each query, so it cannot be grouped"
        yield _Fault((*metric.where, "by"), message, "remove by, or choose a metric such as nDCG")
    if grouping.gap in {"worst", "worst_quarter"} and metric.direction == "none":
        message = f"{metric.name} has no better and worse, so no group is the worst"
        yield _Fault((*metric.where, "gap"), message, "choose gap: difference")
    if parse_uncertain_label(grouping.by) is None:
        return
    needed = [] if grouping.gap in {None, *_UNCERTAIN_GAPS} else ["gap"]
    needed += [key for key in ("min_group", "pairs") if getattr(grouping, key)]
    for key in needed:
        name = grouping.gap if key == "gap" else key
        message = f"{name} needs the group of each query, and {grouping.by!r} is not known"
        remedy = "remove it: every group is compared"
        if key == "gap":
            remedy = f"choose one of {', '.join(_UNCERTAIN_GAPS)}"
        yield _Fault((*metric.where, key), message, remedy)


# ---- the data ----


MAX_CHECKED_BYTES = 100 * 2**20
"""The size of a dataset up to which a plan reads it for its checks: MovieLens-1M has 25 MB."""


def add_preflight(run_models: ModelRunner) -> ModelRunner:
    """Return a function that runs what models share, and checks all, before it runs the models."""

    def run_checked(plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        _Preflight(plan, executor).run(plan.data_contexts)
        yield from run_models(plan, executor)

    return run_checked


def check_inputs(plan: Plan, executor: Executor) -> list[str]:
    """Refuse what a run of a plan would refuse for its data, labels, groups and given lists.

    The datasets, splits, queries and labels of one data context per dataset are computed where
    they are not stored, and the files of given lists are read.

    Returns:
        The labels of the datasets that are too large to be read for this, or whose texts a
        language model would have to label.

    Raises:
        Faults: There is one or more.
    """
    preflight = _Preflight(plan, executor)
    contexts = {context.keys.dataset: context for context in reversed(plan.data_contexts)}
    unchecked = [name for name in contexts if preflight.takes_long(contexts[name])]
    checked = [contexts[name] for name in contexts if name not in unchecked]
    preflight.run(checked)
    answers = [
        executor.ensure(model_plan.answer)
        for model_plan in plan.model_plans
        if model_plan.data_context in checked
        and model_plan.answer is not None
        and isinstance(plugin := model_plan.model.plugin, ChecksFiles)
        and getattr(plugin, "provides", None) == {"lists"}
    ]
    failures = [to_error(record) for record in answers if record.failure is not None]
    raise_faults(error for error in failures if isinstance(error, UserError))
    return unchecked


@dataclass(frozen=True)
class _Preflight:
    plan: Plan
    executor: Executor

    def run(self, contexts: Sequence[DataContext]) -> None:
        """Run the stages that models share, and raise the faults in what they give."""
        for context in contexts:
            try:
                run_shared_stages(self.executor, context, self.plan.experiment)
            except UserError as error:
                sources, models = self._check_sources(), [*self._check_model_files()]
                if sources or models:
                    raise_faults([*(sources or [error]), *models])
                raise
        raise_faults(self._find_faults(contexts))

    def _find_faults(self, contexts: Sequence[DataContext]) -> list[UserError]:
        """Return the faults of files, models, metrics, labels and the claim."""
        faults = [*self._check_model_files()]
        for context in contexts:
            model_plans = [each for each in self.plan.model_plans if each.data_context is context]
            faults += self._check_models(context, model_plans)
            faults += self._check_metrics(context, model_plans)
            faults += self._check_labels(context, model_plans)
            faults += self._check_claim(context)
        return faults

    def takes_long(self, context: DataContext) -> bool:
        """Return whether the stages of a dataset that are not stored take too long for a plan."""
        missing = [stage for stage in context.labels if self._is_missing(stage)]
        if any(evaluates_texts(getattr(stage.work, "detector", None)) for stage in missing):
            return True
        n_bytes = sum(path.stat().st_size for path in context.dataset.files)
        return self._is_missing(context.dataset) and n_bytes > MAX_CHECKED_BYTES

    def _is_missing(self, stage: Stage | None) -> bool:
        return stage is not None and not self.executor.is_stored(stage)

    def _catch(
        self, spec: PluginSpec, check: Callable[..., object], *arguments: Any
    ) -> UserError | None:
        """Return the error of a check, which may be code of a plug-in."""
        try:
            with collect_warnings(), blame_plugin(f"a check of {spec.label}"):
                check(*arguments)
        except UserError as error:
            return error
        return None

    def _locate(self, spec: PluginSpec, error: UserError, default: str = "") -> UserError:
        """Return an error at the setting of a plug-in that it names."""
        key = error.where or default
        is_setting = spec.kind == "models" or key in {*spec.parameters, *spec.split_settings}
        where = (*spec.where, *(filter(None, key.split(".")) if is_setting else ()))
        return self.plan.experiment.fault(where, error.message, remedy=error.remedy)

    def _check_sources(self) -> list[UserError]:
        """Return the faults in the files of the datasets, the split and the queries."""
        experiment = self.plan.experiment
        sources = [*(each.source for each in experiment.datasets), experiment.split]
        specs = [spec for spec in [*sources, experiment.queries] if spec is not None]
        return [fault for spec in specs for fault in self._check_files(spec, ())]

    def _check_model_files(self) -> Iterator[UserError]:
        """Yield the faults in the files of the models whose answers are not stored."""
        several = len(self.plan.experiment.datasets) > 1
        for model in self.plan.experiment.models:
            labels = [
                model_plan.data_context.keys.dataset
                for model_plan in self.plan.model_plans
                if model_plan.model.label == model.label and self._is_missing(model_plan.asking)
            ]
            names = tuple(dict.fromkeys(labels)) if several else ("",)
            yield from self._check_files(model, names) if labels else ()

    def _check_files(self, spec: PluginSpec, names: tuple[str, ...]) -> Iterator[UserError]:
        if isinstance(spec.plugin, ChecksFiles):
            error = self._catch(spec, spec.plugin.check_files, names)
            for fault in Faults([error]).faults if error else ():
                yield self._locate_in_file(spec, fault)

    def _locate_in_file(self, model: PluginSpec, error: UserError) -> UserError:
        """Return a fault in a file at the setting that names the file, as the user wrote it."""
        experiment, remedy = self.plan.experiment, explain_skipping(error, model)
        for key, path in vars(model.plugin).items():
            line = error.where.removeprefix(str(path)) if isinstance(path, Path) else error.where
            if line != error.where and line[:1] in {"", ":"}:
                message = f"{model.parameters[key]}{line}: {error.message}"
                return experiment.fault((*model.where, key), message, remedy=remedy)
        return experiment.fault(model.where, str(error), remedy=remedy)

    def _check_models(
        self, context: DataContext, model_plans: Sequence[ModelPlan]
    ) -> Iterator[UserError]:
        """Yield the faults that the data shows in the models whose answers are not stored."""
        for model in (each.model for each in model_plans if self._is_missing(each.asking)):
            if error := self._catch(model, self._check_model, context, model):
                yield self._locate(model, error)

    def _check_model(self, context: DataContext, model: PluginSpec) -> None:
        """Refuse settings that do not fit the data, or matrices that cannot fit into memory."""
        dataset, split = map(self.executor.value, (context.dataset, context.split))
        n_users, n_items = dataset.interactions.n_users, dataset.interactions.n_items
        require_memory(
            get_least_memory(model.plugin, n_users, n_items),
            f"the matrices of {model.name} for {n_items:,} items",
            where="",
            remedy="filter more (k_core, sample_users), or choose another model",
        )
        if isinstance(model.plugin, ChecksData):
            if model.reranked is not None:  # a re-ranker may read the labels of detectors
                dataset = add_labels(dataset, [*map(self.executor.value, context.labels)])
            model.plugin.check_data(make_training_data(dataset, split))

    def _check_metrics(
        self, context: DataContext, model_plans: Sequence[ModelPlan]
    ) -> Iterator[UserError]:
        """Yield the faults that the data shows in the metrics, unless all values are stored."""
        if may_lack_files(getattr(context.dataset.work, "source", None)):
            return

        @cache
        def build() -> Evidence:
            stages = (context.dataset, context.split, context.queries)
            dataset, split, queries = map(self.executor.value, stages)
            labels = [*map(self.executor.value, context.labels)]
            return build_evidence(dataset, split, queries, labels, is_judged=is_judged)

        metrics = self.plan.experiment.metrics
        early = [metric for metric in metrics if isinstance(metric.plugin, ChecksEarly)]
        is_judged = any("test" in metric.needs for metric in early)
        for metric in metrics:
            stages = [
                stage
                for model_plan in model_plans
                for each, stage in zip(model_plan.metrics, model_plan.measures, strict=True)
                if each is metric
            ]
            if not stages or any(map(self._is_missing, stages)):  # none if every model has a fault
                yield from self._check_metric(context, metric, build)

    def _check_metric(
        self, context: DataContext, metric: PluginSpec, build: Callable[[], Evidence]
    ) -> Iterator[UserError]:
        """Yield what its groups of queries, and the metric itself, say of the data."""
        if (grouping := metric.grouping) is not None:
            queries = self.executor.value(context.queries)
            if error := self._catch(metric, form_groups, queries, grouping):
                explained = _explain_item_column(error, grouping.by, build())
                yield self._locate(metric, explained, "by")
        check = metric.plugin.check if isinstance(metric.plugin, ChecksEarly) else None
        if check and (error := self._catch(metric, check, build())):
            yield self._locate(metric, error)

    def _check_labels(
        self, context: DataContext, model_plans: Sequence[ModelPlan]
    ) -> Iterator[UserError]:
        """Yield the first fault of each metric in the labels of the models that know theirs."""
        faults: dict[str, UserError] = {}
        for model_plan in model_plans:
            model = model_plan.model.plugin
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
                check = getattr(metric.plugin, "check_labels", None)
                if check is None or not hasattr(model, "list_labels"):
                    continue
                if metric.needs <= model.provides and self._is_missing(stage):
                    queries = self.executor.value(context.queries)
                    if error := self._catch(metric, lambda: check(model.list_labels(queries))):  # noqa: B023
                        faults.setdefault(metric.label, self._locate(metric, error))
        yield from faults.values()

    def _check_claim(self, context: DataContext) -> Iterator[UserError]:
        """Yield the fault of the groups of a claim."""
        claim, experiment = self.plan.experiment.claim, self.plan.experiment
        if claim is None or claim.by is None:
            return
        from recbias.runner.verdicts import code_pair

        try:
            code_pair(self.executor.value(context.queries), claim.by, claim.groups or ())
        except UserError as error:
            where = ("claim", "groups" if error.where == "groups" and claim.groups else "by")
            yield experiment.fault(where, error.message, remedy=error.remedy, kind=type(error))


def _explain_item_column(error: UserError, by: str, evidence: Evidence) -> UserError:
    """Return the error of a label that no query has; another one if it is a column of items."""
    if not isinstance(error, UnknownColumn) or evidence.items is None:
        return error
    labels = evidence.queries.labels
    names = [name for part in split_crossing(by) for name in list_part_columns(part, labels)]
    columns = [name for name in names if name in set(evidence.items.names) - set(labels.names)]
    if not columns:
        return error
    texts = [name for name in labels.names if labels.column(name).dtype.kind != "f"]
    column, label = columns[0], next(iter(texts), "LABEL")
    message = f"{column!r} is a column of the items; by groups queries, that is users or prompts"
    remedy = (
        f"to compare groups of items, name the column in a metric of items, such as "
        f"{{name: association, label: {label}, attribute: {column}}}; "
        f"to group queries, name one of {', '.join(labels.names) or 'their labels'}"
    )
    return UnknownColumn(message, where=error.where, remedy=remedy)
