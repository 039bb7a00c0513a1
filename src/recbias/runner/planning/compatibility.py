"""Validation of an experiment before any work: its datasets, models and metrics fit together."""

from __future__ import annotations

from collections.abc import Iterator

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.core.errors import (
    ConfigError,
    Contradiction,
    Faults,
    MissingEvidence,
    MissingExtra,
    OutOfRange,
    UserError,
)
from recbias.core.outputs.evidence import REMEDIES
from recbias.core.protocols import OUTPUTS
from recbias.runner.planning.plugin_contracts import validate_plugins
from recbias.runner.stages.requirements import get_cutoff, list_needs
from recbias.runner.tuning.optuna_sampler import has_optuna

MOST_STAGES = 500_000
"""The largest plan: planning this many stages takes two minutes and half a gigabyte."""


def validate_experiment(experiment: Experiment) -> None:
    """Raise every contradiction between the parts of an experiment.

    Raises:
        Faults: A plug-in breaks the contract of its kind, a metric needs an output that a model
            does not provide, a model needs data that the dataset does not have, the lists are
            shorter than a metric's cutoff, and so on.
    """
    validate_plugins(experiment)
    faults = [
        *_check_size(experiment),
        *_check_split(experiment),
        *_check_models(experiment),
        *_check_labels(experiment),
        *_check_searches(experiment),
        *_check_metrics(experiment),
    ]
    if faults:
        raise Faults(list({str(fault): fault for fault in faults}.values()))


def _list_evidence(experiment: Experiment, dataset: DatasetSpec) -> frozenset[str]:
    """Return the kinds of evidence that a dataset and the split provide."""
    evidence = frozenset(dataset.source.plugin.gives())
    return evidence | (experiment.split.plugin.gives() if experiment.split else frozenset())


def _check_size(experiment: Experiment) -> Iterator[ConfigError]:
    """Yield a fault if the plan would have too many stages to hold in memory."""
    folds = experiment.split.plugin.folds if experiment.split else 1
    contexts = len(experiment.datasets) * len(experiment.seeds) * folds
    trials = sum(model.tune.trials + 1 for model in experiment.models if model.tune)
    model_stages = len(experiment.models) * (2 + len(experiment.metrics)) + trials
    stages = contexts * (3 + len(experiment.labels) + model_stages)
    if stages > MOST_STAGES:
        message = f"{stages:,} stages are more than {MOST_STAGES:,}"
        remedy = "use fewer seeds, folds, trials, models or metrics, or several specs"
        yield experiment.fault(("models",), message, remedy=remedy, kind=OutOfRange)


def _check_split(experiment: Experiment) -> Iterator[ConfigError]:
    split = experiment.split
    if split is None or "train" in split.plugin.gives():
        return
    for dataset in experiment.datasets:
        if "train" not in dataset.source.plugin.gives():
            message = f"{split.name} has nothing to split: {dataset.label} has no interactions"
            remedy = "name an interactions file in the dataset, or remove the split"
            yield experiment.fault(split.where, message, remedy=remedy, kind=Contradiction)


def _check_models(experiment: Experiment) -> Iterator[UserError]:
    for dataset in experiment.datasets:
        evidence = _list_evidence(experiment, dataset)
        for model in experiment.models:
            for need in sorted(list_needs(model) - evidence):
                yield _report_missing_data(experiment, model, dataset, need)


def _check_labels(experiment: Experiment) -> Iterator[UserError]:
    for dataset in experiment.datasets:
        for detector in experiment.labels:
            if "items" not in _list_evidence(experiment, dataset):
                message = f"{detector.label} labels items, which {dataset.label} does not have"
                remedy = _suggest_data("items")
                yield _report_missing(experiment, detector, message, remedy)


def _check_searches(experiment: Experiment) -> Iterator[UserError]:
    for model in experiment.models:
        if model.tune is None:
            continue
        where = (*model.where, "tune")
        if not has_optuna():
            message = "a search needs the package 'optuna', which is not installed"
            location = experiment.fault(where, message)
            remedy = "pip install 'recbias[tune]'"
            yield MissingExtra(location.message, where=location.where, remedy=remedy)
        if experiment.split is None or "validation" not in experiment.split.plugin.gives():
            message = "a search evaluates on validation rows, but the split has none"
            remedy = _suggest_data("validation")
            yield experiment.fault(where, message, remedy=remedy, kind=Contradiction)
        yield from _check_search_metric(experiment, model, model.tune.metric)


def _check_search_metric(
    experiment: Experiment, model: PluginSpec, metric: PluginSpec
) -> Iterator[UserError]:
    """Yield why a search cannot optimize a metric."""
    if metric.direction == "none":
        message = f"{metric.label} has no better and worse, so a search cannot optimize it"
        remedy = "choose a metric such as nDCG"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)
    if metric.grouping is not None and metric.grouping.gap in {"", "groups"}:
        message = f"{metric.label} has a value for each group, but a search needs a single value"
        remedy = "add gap: difference, or remove by"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)
    for need in sorted((list_needs(metric) & OUTPUTS) - model.plugin.provides):
        remedy = "choose a metric such as nDCG"
        yield _report_missing_output(experiment, metric, model, need, remedy)
    for dataset in experiment.datasets:
        evidence = _list_evidence(experiment, dataset)
        for need in sorted(list_needs(metric) - OUTPUTS - evidence - {"test"}):
            yield _report_missing_data(experiment, metric, dataset, need)


def _check_metrics(experiment: Experiment) -> Iterator[UserError]:
    for metric in experiment.metrics:
        for model in experiment.models:
            for need in sorted((list_needs(metric) & OUTPUTS) - model.plugin.provides):
                remedy = _suggest_models(experiment, need)
                yield _report_missing_output(experiment, metric, model, need, remedy)
        for dataset in experiment.datasets:
            for need in sorted(list_needs(metric) - OUTPUTS - _list_evidence(experiment, dataset)):
                message = f"{metric.name} needs {need}, which this experiment does not have"
                remedy = _suggest_data(need)
                yield _report_missing(experiment, metric, message, remedy)
        if metric.grouping is not None and metric.plugin.unit != "query":
            message = f"{metric.name} has no value for each query, so it cannot be grouped"
            where, remedy = (*metric.where, "by"), "remove by, or choose a metric such as nDCG"
            yield experiment.fault(where, message, remedy=remedy, kind=Contradiction)
        k = get_cutoff(metric)
        if k is not None and k > experiment.k and "lists" in list_needs(metric):
            message = f"{metric.name}@{k} needs lists of {k}, but k is {experiment.k}"
            yield experiment.fault(metric.where, message, remedy=f"set k: {k}", kind=Contradiction)


def _suggest_data(need: str) -> str:
    if need == "validation":
        return "add a validation part to the split: validation: 0.1 (leave_one_out: 1)"
    return REMEDIES.get(need, f"choose a dataset that has {need}")


def _suggest_models(experiment: Experiment, need: str) -> str:
    labels = [model.label for model in experiment.models if need in model.plugin.provides]
    if labels:
        return f"it can be measured on {', '.join(labels)}; put the other models in another spec"
    return REMEDIES.get(need, f"choose a model that provides {need}")


def _report_missing_data(
    experiment: Experiment, spec: PluginSpec, dataset: DatasetSpec, need: str
) -> UserError:
    message = f"{spec.name} needs {need}, which {dataset.label} does not have"
    return _report_missing(experiment, spec, message, _suggest_data(need))


def _report_missing_output(
    experiment: Experiment, metric: PluginSpec, model: PluginSpec, need: str, remedy: str
) -> UserError:
    message = f"{metric.name} needs {need}, which {model.label} does not provide"
    return _report_missing(experiment, metric, message, remedy)


def _report_missing(
    experiment: Experiment, spec: PluginSpec, message: str, remedy: str
) -> MissingEvidence:
    fault = experiment.fault(spec.where, message)
    return MissingEvidence(fault.message, where=fault.where, remedy=remedy)
