"""Whether what the metrics and models need is what the experiment makes: asked before any work."""

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
from recbias.runner.planning.plugin_contracts import refuse_broken
from recbias.runner.stages.requirements import cutoff, needs
from recbias.runner.tuning.optuna_sampler import has_optuna

MOST_STAGES = 500_000
"""So many stages are planned in two minutes and half a gigabyte."""


def check(experiment: Experiment) -> None:
    """Raise every fault of an experiment whose parts do not meet.

    Raises:
        Faults: A plug-in lacks what its kind promises, a metric needs what a model does not
            provide, a model needs data that the dataset does not have, a list is shorter than a
            metric's cutoff, and so on.
    """
    refuse_broken(experiment)
    faults = [
        *_size(experiment),
        *_splits(experiment),
        *_models(experiment),
        *_labels(experiment),
        *_searches(experiment),
        *_metrics(experiment),
    ]
    if faults:
        raise Faults(list({str(each): each for each in faults}.values()))


def evidence_of(experiment: Experiment, dataset: DatasetSpec) -> frozenset[str]:
    """Return the kinds of evidence that the dataset and the split make."""
    given = frozenset(dataset.source.plugin.gives())
    return given | (experiment.split.plugin.gives() if experiment.split else frozenset())


def _size(experiment: Experiment) -> Iterator[ConfigError]:
    """Yield that a plan has more stages than a machine can hold in mind."""
    folds = experiment.split.plugin.folds if experiment.split else 1
    worlds = len(experiment.datasets) * len(experiment.seeds) * folds
    trials = sum(each.tune.trials + 1 for each in experiment.models if each.tune)
    own = len(experiment.models) * (2 + len(experiment.metrics)) + trials
    stages = worlds * (3 + len(experiment.labels) + own)
    if stages > MOST_STAGES:
        found = f"{stages:,} stages are more than {MOST_STAGES:,}"
        remedy = "take fewer seeds, folds, trials, models or metrics, or several specs"
        yield experiment.fault(("models",), found, remedy=remedy, kind=OutOfRange)


def _splits(experiment: Experiment) -> Iterator[ConfigError]:
    split = experiment.split
    if split is None or "train" in split.plugin.gives():
        return
    for dataset in experiment.datasets:
        if "train" not in dataset.source.plugin.gives():
            found = f"{split.name} has nothing to split: {dataset.label} has no interactions"
            help_ = "name an interactions file in the dataset, or leave the split out"
            yield experiment.fault(split.where, found, remedy=help_, kind=Contradiction)


def _models(experiment: Experiment) -> Iterator[UserError]:
    for dataset in experiment.datasets:
        evidence = evidence_of(experiment, dataset)
        for model in experiment.models:
            for need in sorted(needs(model) - evidence):
                found = f"{model.name} needs {need}, which {dataset.label} does not have"
                yield _missing(experiment, model, found, _remedy(need))


def _labels(experiment: Experiment) -> Iterator[UserError]:
    for dataset in experiment.datasets:
        for detector in experiment.labels:
            if "items" not in evidence_of(experiment, dataset):
                found = f"{detector.label} labels items, which {dataset.label} does not have"
                yield _missing(experiment, detector, found, _remedy("items"))


def _searches(experiment: Experiment) -> Iterator[UserError]:
    for model in experiment.models:
        if model.tune is None:
            continue
        if not has_optuna():
            found = "a search needs the package 'optuna', which is not installed"
            fault = experiment.fault((*model.where, "tune"), found)
            remedy = "pip install 'recbias[tune]'"
            yield MissingExtra(fault.message, where=fault.where, remedy=remedy)
        if experiment.split is None or "validation" not in experiment.split.plugin.gives():
            found = "a search is judged on validation rows, and the split makes none"
            where, remedy = (*model.where, "tune"), _remedy("validation")
            yield experiment.fault(where, found, remedy=remedy, kind=Contradiction)
        yield from _judges(experiment, model, model.tune.metric)


def _judges(experiment: Experiment, model: PluginSpec, metric: PluginSpec) -> Iterator[UserError]:
    """Yield why a metric cannot say which settings of a model are best."""
    if metric.direction == "none":
        found = f"{metric.label} has no better and worse, so it cannot be searched by"
        help_ = "choose a metric such as nDCG"
        yield experiment.fault(metric.where, found, remedy=help_, kind=Contradiction)
    if metric.grouping is not None and metric.grouping.gap in {"", "groups"}:
        found = f"{metric.label} has a figure for each group, and a search needs one"
        help_ = "add gap: difference, or leave by out"
        yield experiment.fault(metric.where, found, remedy=help_, kind=Contradiction)
    for need in sorted((needs(metric) & OUTPUTS) - model.plugin.provides):
        found = f"{metric.name} needs {need}, which {model.label} does not provide"
        yield _missing(experiment, metric, found, "choose a metric such as nDCG")
    for dataset in experiment.datasets:
        for need in sorted(needs(metric) - OUTPUTS - evidence_of(experiment, dataset) - {"test"}):
            found = f"{metric.name} needs {need}, which {dataset.label} does not have"
            yield _missing(experiment, metric, found, _remedy(need))


def _metrics(experiment: Experiment) -> Iterator[UserError]:
    for metric in experiment.metrics:
        for model in experiment.models:
            for need in sorted((needs(metric) & OUTPUTS) - model.plugin.provides):
                found = f"{metric.name} needs {need}, which {model.label} does not provide"
                yield _missing(experiment, metric, found, _measurable_on(experiment, need))
        for dataset in experiment.datasets:
            for need in sorted(needs(metric) - OUTPUTS - evidence_of(experiment, dataset)):
                found = f"{metric.name} needs {need}, which this experiment does not have"
                yield _missing(experiment, metric, found, _remedy(need))
        if metric.grouping is not None and metric.plugin.unit != "query":
            found = f"{metric.name} has no value for each query, so it cannot be split by a label"
            where, help_ = (*metric.where, "by"), "leave by out, or split a metric such as nDCG"
            yield experiment.fault(where, found, remedy=help_, kind=Contradiction)
        k = cutoff(metric)
        if k is not None and k > experiment.k and "lists" in needs(metric):
            found = f"{metric.name}@{k} needs lists of {k}, but k is {experiment.k}"
            yield experiment.fault(metric.where, found, remedy=f"set k: {k}", kind=Contradiction)


def _remedy(need: str) -> str:
    if need == "validation":
        return "give the split a validation part: validation: 0.1 (leave_one_out: 1)"
    return REMEDIES.get(need, f"choose a dataset that has {need}")


def _measurable_on(experiment: Experiment, need: str) -> str:
    having = [each.label for each in experiment.models if need in each.plugin.provides]
    if having:
        return f"it can be measured on {', '.join(having)}; give the others a spec of their own"
    return REMEDIES.get(need, f"choose a model that provides {need}")


def _missing(experiment: Experiment, chosen: PluginSpec, found: str, remedy: str) -> UserError:
    fault = experiment.fault(chosen.where, found, remedy=remedy)
    return MissingEvidence(fault.message, where=fault.where, remedy=fault.remedy)
