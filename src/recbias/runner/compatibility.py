"""Whether the datasets, models and metrics of an experiment fit together, before any work."""

from __future__ import annotations

from collections.abc import Iterator

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile, Grouping
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingEvidence,
    MissingExtra,
    UnknownName,
    UserError,
)
from recbias.core.evidence import REMEDIES
from recbias.core.grouping import parse_uncertain_label
from recbias.core.packages import describe_missing, list_libraries, list_missing, suggest_install
from recbias.core.plugins import OUTPUTS, ReordersCandidates, is_changed
from recbias.core.text import suggest
from recbias.formats.yaml import KeyPath
from recbias.runner.contracts import find_contract_faults, raise_faults
from recbias.runner.plan import count_query_folds, find_chooser, list_missing_outputs
from recbias.runner.tuning import find_perplexity_limit

_TEXT_OUTPUTS = frozenset({"sentence_scores", "responses"})
"""Outputs that a search can measure on the validation sentences of a dataset."""


def validate_experiment(experiment: Experiment) -> None:
    """Raise every contradiction between the parts of an experiment."""
    raise_faults(
        experiment.fault(spec.where, error.message, remedy=error.remedy, kind=BrokenContract)
        for spec in list_plugins(experiment)
        for error in find_contract_faults(spec)
    )
    checks = [_check_packages]
    if is_whole(experiment, "dataset", "split", "queries"):
        checks += [_check_folds, _check_split, _check_filters, _check_data, _check_conditions]
        checks += [_check_searches, _check_metrics, _check_tests]
    raise_faults(fault for check in checks for fault in check(experiment))


def is_whole(experiment: Experiment, *keys: str) -> bool:
    """Return whether the parts of a spec under these keys were read without an error."""
    faulty = experiment.document.list_faulty_keys()
    return faulty <= _KEYS and faulty.isdisjoint({*keys, "sweep"})


_KEYS = frozenset(read_settings(ExperimentFile))
"""The keys of a spec; an error elsewhere, such as a misspelt key, may belong to any part."""


def _list_evidence(experiment: Experiment, dataset: DatasetSpec) -> frozenset[str]:
    evidence = frozenset(dataset.source.plugin.gives())
    evidence |= experiment.split.plugin.gives() if experiment.split else frozenset()
    evidence |= {"odds"} if hasattr(dataset.source.plugin, "compute_odds") else frozenset()
    evidence |= {"log"} if hasattr(dataset.source.plugin, "open_log") else frozenset()
    return evidence | {"times"}  # whether interactions have times shows in the data: ChecksData


def _check_packages(experiment: Experiment) -> Iterator[UserError]:
    """Yield a fault for each command that installs packages, with the plug-ins it is for."""
    users = [
        (spec.where, spec.name, list_libraries(spec.plugin)) for spec in list_plugins(experiment)
    ]
    searches = [model for model in experiment.models if model.tune]
    users += [((*model.where, "tune"), "a search", ("optuna",)) for model in searches]
    absent: dict[str, list[tuple[KeyPath, str, list[str]]]] = {}
    for key_path, name, libraries in users:
        if missing := list_missing(libraries):
            absent.setdefault(suggest_install(missing), []).append((key_path, name, missing))
    for rows in absent.values():
        names = dict.fromkeys(name for _, name, _ in rows)
        packages = dict.fromkeys(package for _, _, missing in rows for package in missing)
        message, remedy = describe_missing(tuple(names), sorted(packages))
        yield experiment.fault(rows[0][0], message, remedy=remedy, kind=MissingExtra)


def _check_folds(experiment: Experiment) -> Iterator[UserError]:
    folds = experiment.split.plugin.folds if experiment.split else 1
    if folds > 1 and (samples := count_query_folds(experiment)) > 1:
        message = f"the split has {folds} folds, and the queries are {samples} samples"
        key_path, remedy = (
            (*experiment.queries.where, "folds"),
            "remove the folds of one of the two",
        )
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)


def _check_split(experiment: Experiment) -> Iterator[UserError]:
    split = experiment.split
    if split is None or "train" in split.plugin.gives():
        return
    for dataset in experiment.datasets:
        if "train" not in dataset.source.plugin.gives():
            message = f"{split.name} has nothing to split: {dataset.label} has no interactions"
            remedy = "name an interactions file in the dataset, or remove the split"
            yield experiment.fault(split.where, message, remedy=remedy, kind=Contradiction)


def _check_filters(experiment: Experiment) -> Iterator[UserError]:
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
                message = f"{each.name} {problem}"
                yield experiment.fault(each.where, message, remedy=remedy, kind=Contradiction)


def _check_data(experiment: Experiment) -> Iterator[UserError]:
    """Yield what models and detectors need and datasets do not have."""
    for dataset in experiment.datasets:
        evidence = _list_evidence(experiment, dataset)
        for model in experiment.models:
            for need in sorted(model.needs - evidence):
                yield _report_missing(experiment, model, need, dataset.label)
    for dataset in experiment.datasets:
        for detector in experiment.labels:
            if "items" not in _list_evidence(experiment, dataset):
                message = f"{detector.label} labels items, which {dataset.label} does not have"
                remedy = _suggest_data("items")
                yield experiment.fault(
                    detector.where, message, remedy=remedy, kind=MissingEvidence
                )


def _check_conditions(experiment: Experiment) -> Iterator[UserError]:
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
                    where = (*model.where, name)
                    yield experiment.fault(where, message, remedy=remedy, kind=Contradiction)


def _check_searches(experiment: Experiment) -> Iterator[UserError]:
    for model in experiment.models:
        if model.tune is None:
            continue
        key_path = (*model.where, "tune")
        is_of_texts = model.tune.metric.needs & _TEXT_OUTPUTS and all(
            "sentences" in dataset.source.plugin.gives() for dataset in experiment.datasets
        )
        has_rows = experiment.split and "validation" in experiment.split.plugin.gives()
        if not has_rows and not is_of_texts:
            message = "a search evaluates on validation rows, but the split has none"
            remedy = _suggest_data("validation")
            yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
        limit = model.tune.max_perplexity_increase
        if limit is not None and find_perplexity_limit(model.tune, model.plugin) is None:
            message = "has no effect: no sentences are scored by a model that is trained further"
            where, remedy = (*key_path, "max_perplexity_increase"), "remove it"
            yield experiment.fault(where, message, remedy=remedy, kind=Contradiction)
        yield from _check_search_metric(experiment, model, model.tune.metric)


def _check_search_metric(
    experiment: Experiment, model: PluginSpec, metric: PluginSpec
) -> Iterator[UserError]:
    if metric.direction == "none":
        message = f"{metric.label} has no better and worse, so a search cannot optimize it"
        remedy = "choose a metric such as nDCG"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)
    if metric.grouping is not None and metric.grouping.gap in {None, "groups"}:
        message = f"{metric.label} has a value for each group, but a search needs a single value"
        remedy = "add gap: difference, or remove by"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)
    for need in list_missing_outputs(metric, model):
        message = f"{metric.name} needs {need}, which {model.label} does not provide"
        remedy = "choose a metric such as nDCG"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=MissingEvidence)
    for dataset in experiment.datasets:
        evidence = _list_evidence(experiment, dataset)
        for need in sorted(metric.needs - OUTPUTS - evidence - {"test"}):
            yield _report_missing(experiment, metric, need, dataset.label)


def _check_metrics(experiment: Experiment) -> Iterator[UserError]:
    has_models = is_whole(experiment, "models")
    for metric in experiment.metrics:
        missing = [list_missing_outputs(metric, model) for model in experiment.models]
        if all(missing) and has_models:
            for need in sorted(set().union(*missing)):
                message = f"{metric.name} needs {need}, which no model of the spec provides"
                remedy = REMEDIES.get(need, f"choose a model that provides {need}")
                yield experiment.fault(metric.where, message, remedy=remedy, kind=MissingEvidence)
        for dataset in experiment.datasets:
            for need in sorted(metric.needs - OUTPUTS - _list_evidence(experiment, dataset)):
                yield _report_missing(experiment, metric, need, "this experiment")
        if has_models:
            yield from _check_chooser(experiment, metric)
        yield from _find_grouping_faults(experiment, metric)
        if (k := metric.cutoff or 0) > experiment.k and "lists" in metric.needs:
            message = f"{metric.name}@{k} needs lists of {k}, but k is {experiment.k}"
            remedy = f"set k: {k}"
            yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)


def _check_chooser(experiment: Experiment, metric: PluginSpec) -> Iterator[UserError]:
    """Yield a fault if a metric uses the embeddings of a model that has none or is not there."""
    label = find_chooser(metric)
    key = "embeddings_of" if hasattr(metric.plugin, "embeddings_of") else "chosen_in"
    key_path = (*metric.where, key)
    if label is None:
        return
    models = {model.label: model for model in experiment.models}
    if label not in models:
        message, remedy = f"no model is labelled {label!r}", suggest(label, models)
        yield experiment.fault(key_path, message, remedy=remedy, kind=UnknownName)
    elif "embeddings" not in models[label].plugin.provides:
        purpose = "compare items" if key == "embeddings_of" else "choose members"
        message = f"{label} has no embeddings to {purpose} by"
        remedy = REMEDIES["embeddings"]
        yield experiment.fault(key_path, message, remedy=remedy, kind=MissingEvidence)


def _check_tests(experiment: Experiment) -> Iterator[UserError]:
    """Yield a fault for each test against a model that is not there."""
    labels = [model.label for model in experiment.models]
    for test in experiment.tests:
        against = test.parameters.get("against")
        if against is not None and against not in labels and is_whole(experiment, "models"):
            message, key_path = f"no model is labelled {against!r}", (*test.where, "against")
            remedy = suggest(against, labels)
            yield experiment.fault(key_path, message, remedy=remedy, kind=UnknownName)


def _suggest_data(need: str) -> str:
    if need == "validation":
        return "add a validation part to the split: validation: 0.1 (leave_one_out: 1)"
    return REMEDIES.get(need, f"choose a dataset that has {need}")


def _report_missing(experiment: Experiment, spec: PluginSpec, need: str, owner: str) -> UserError:
    message, remedy = f"{spec.name} needs {need}, which {owner} does not have", _suggest_data(need)
    return experiment.fault(spec.where, message, remedy=remedy, kind=MissingEvidence)


_UNCERTAIN_GAPS = ("groups", "difference", "ratio", "std", "ugf")
"""The gaps of groups that are known as probabilities."""


def _find_grouping_faults(experiment: Experiment, metric: PluginSpec) -> Iterator[UserError]:
    """Yield the faults of ``by`` and ``gap`` of a metric."""
    if metric.grouping is None:
        return
    if metric.plugin.unit != "query":
        message = f"{metric.name} has no value for each query, so it cannot be grouped"
        key_path, remedy = (*metric.where, "by"), "remove by, or choose a metric such as nDCG"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    if metric.grouping.gap in {"worst", "worst_quarter"} and metric.direction == "none":
        message = f"{metric.name} has no better and worse, so no group is the worst"
        key_path, remedy = (*metric.where, "gap"), "choose gap: difference"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    if parse_uncertain_label(metric.grouping.by) is not None:
        yield from _check_probabilities(experiment, metric, metric.grouping)


def _check_probabilities(
    experiment: Experiment, metric: PluginSpec, grouping: Grouping
) -> Iterator[UserError]:
    """Yield the settings that need the group of each query, where it is a probability."""
    if grouping.gap and grouping.gap not in _UNCERTAIN_GAPS:
        message = f"{grouping.gap} needs the group of each query, and {grouping.by!r} is not known"
        key_path, remedy = (*metric.where, "gap"), f"choose one of {', '.join(_UNCERTAIN_GAPS)}"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    for key in ("min_group", "pairs"):
        if getattr(grouping, key):
            message = f"{key} needs the group of each query, and {grouping.by!r} is not known"
            key_path, remedy = (*metric.where, key), "remove it: every group is compared"
            yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)


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


def find_learner(spec: PluginSpec) -> PluginSpec:
    """Return the model that is trained: of a model that reorders candidates, the other one."""
    if not isinstance(spec.plugin, ReordersCandidates):
        return spec
    name, model = spec.plugin.candidates.name, spec.plugin.candidates.model
    parameters = spec.parameters["candidates"]
    settings = {key: value for key, value in parameters.items() if key != "name"}
    learner = PluginSpec(spec.kind, name, name, model, settings, spec.where)
    return find_learner(learner)
