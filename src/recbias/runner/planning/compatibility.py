"""Validation of an experiment before any work: its datasets, models and metrics fit together."""

from __future__ import annotations

from collections.abc import Iterator

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.dataset.odds import KnowsOdds
from recbias.core.errors import (
    Contradiction,
    MissingEvidence,
    MissingExtra,
    OutOfRange,
    UnknownName,
    UserError,
)
from recbias.core.models.member_choice import BorrowsEmbeddings
from recbias.core.outputs.evidence import REMEDIES
from recbias.core.packages import (
    describe_missing,
    list_libraries,
    list_missing,
    suggest_install,
)
from recbias.core.protocols import OUTPUTS
from recbias.core.suggestions import suggest
from recbias.formats.yaml import KeyPath
from recbias.runner.planning.grouping_faults import find_grouping_faults
from recbias.runner.planning.plan import count_query_folds, find_chooser, list_missing_outputs
from recbias.runner.planning.plugin_contracts import list_plugins, raise_faults, validate_plugins
from recbias.runner.planning.round_stages import find_feedback_faults

TEXT_OUTPUTS = frozenset({"sentence_scores", "responses"})
"""Outputs that a search can measure on the validation sentences of a dataset."""

MOST_STAGES = 100_000
"""The largest plan: planning this many stages takes some ten seconds."""


def validate_experiment(experiment: Experiment) -> None:
    """Raise every contradiction between the parts of an experiment.

    Of a spec with errors, only the parts without them are compared.

    Raises:
        Faults: A plug-in breaks the contract of its kind, a metric needs an output that no model
            provides, a model needs data that the dataset does not have, the lists are
            shorter than a metric's cutoff, and so on.
    """
    validate_plugins(experiment)
    checks = [_check_packages]
    if is_whole(experiment, "dataset", "split", "queries"):
        raise_faults(_check_size(experiment))  # first: the others compare models with metrics
        checks += [_check_folds, _check_split, _check_data]
        checks += [_check_searches, _check_metrics, find_feedback_faults]
    raise_faults(fault for check in checks for fault in check(experiment))


def is_whole(experiment: Experiment, *keys: str) -> bool:
    """Return whether the parts of a spec under these keys were read without an error."""
    faulty = experiment.document.list_faulty_keys()
    return faulty <= KEYS and faulty.isdisjoint({*keys, "sweep"})


KEYS = frozenset(read_settings(ExperimentFile))
"""The keys of a spec; an error elsewhere, such as a misspelt key, may belong to any part."""


def _list_evidence(experiment: Experiment, dataset: DatasetSpec) -> frozenset[str]:
    evidence = frozenset(dataset.source.plugin.gives())
    evidence |= experiment.split.plugin.gives() if experiment.split else frozenset()
    evidence |= {"odds"} if isinstance(dataset.source.plugin, KnowsOdds) else frozenset()
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


def _check_size(experiment: Experiment) -> Iterator[UserError]:
    """Yield a fault if the plan would have too many stages to hold in memory."""
    folds = experiment.split.plugin.folds if experiment.split else 1
    folds = max(folds, count_query_folds(experiment))
    contexts = len(experiment.datasets) * len(experiment.seeds) * folds
    trials = sum(model.tune.trials + 1 for model in experiment.models if model.tune)
    rounds = experiment.feedback.rounds if experiment.feedback else 1
    # A context has a stage for its data, split, queries and each label; a model has two stages,
    # and one for each metric, in each round.
    n_models, n_metrics = len(experiment.models), len(experiment.metrics)
    n_shared = 3 + len(experiment.labels) + trials
    n_stages = contexts * (n_shared + n_models * (2 + n_metrics) * rounds)
    if n_stages > MOST_STAGES:
        message = f"{n_stages:,} stages are more than {MOST_STAGES:,}"
        remedy = "use fewer seeds, folds, trials, rounds, models or metrics, or several specs"
        yield experiment.fault(("models",), message, remedy=remedy, kind=OutOfRange)


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


def _check_searches(experiment: Experiment) -> Iterator[UserError]:
    for model in experiment.models:
        if model.tune is None:
            continue
        key_path = (*model.where, "tune")
        is_of_texts = bool(model.tune.metric.needs & TEXT_OUTPUTS)
        has_rows = experiment.split and "validation" in experiment.split.plugin.gives()
        if not has_rows and not (is_of_texts and _all_have_sentences(experiment)):
            message = "a search evaluates on validation rows, but the split has none"
            remedy = _suggest_data("validation")
            yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
        yield from _check_search_metric(experiment, model, model.tune.metric)


def _all_have_sentences(experiment: Experiment) -> bool:
    return all("sentences" in dataset.source.plugin.gives() for dataset in experiment.datasets)


def _check_search_metric(
    experiment: Experiment, model: PluginSpec, metric: PluginSpec
) -> Iterator[UserError]:
    if metric.direction == "none":
        message = f"{metric.label} has no better and worse, so a search cannot optimize it"
        remedy = "choose a metric such as nDCG"
        yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)
    if metric.grouping is not None and metric.grouping.gap in {"", "groups"}:
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
        yield from find_grouping_faults(experiment, metric)
        yield from experiment.find_short_lists(metric)


def _check_chooser(experiment: Experiment, metric: PluginSpec) -> Iterator[UserError]:
    """Yield a fault if a metric uses the embeddings of a model that has none or is not there."""
    label = find_chooser(metric)
    key = "embeddings_of" if isinstance(metric.plugin, BorrowsEmbeddings) else "chosen_in"
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


def _suggest_data(need: str) -> str:
    if need == "validation":
        return "add a validation part to the split: validation: 0.1 (leave_one_out: 1)"
    return REMEDIES.get(need, f"choose a dataset that has {need}")


def _report_missing(experiment: Experiment, spec: PluginSpec, need: str, owner: str) -> UserError:
    message, remedy = f"{spec.name} needs {need}, which {owner} does not have", _suggest_data(need)
    return experiment.fault(spec.where, message, remedy=remedy, kind=MissingEvidence)
