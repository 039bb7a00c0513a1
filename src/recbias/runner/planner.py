"""The faults of metrics by groups of queries, found before any work.

Validation of an experiment before any work: its datasets, models and metrics fit together.
From an experiment to a plan: its data contexts, and the stages of each model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile, Grouping
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingEvidence,
    MissingExtra,
    MissingFile,
    OutOfRange,
    UnknownName,
    UserError,
)
from recbias.core.evidence import REMEDIES
from recbias.core.files import compute_digest
from recbias.core.grouping import parse_uncertain_label
from recbias.core.machine import pause_collection
from recbias.core.packages import describe_missing, list_libraries, list_missing, suggest_install
from recbias.core.plugins import OUTPUTS, is_changed
from recbias.core.text import suggest
from recbias.formats.yaml import KeyPath
from recbias.runner.boundary import blame_plugin
from recbias.runner.contracts import raise_faults
from recbias.runner.model_stages import ModelPlanner
from recbias.runner.options import RunOptions
from recbias.runner.plan import (
    DataContext,
    Plan,
    count_query_folds,
    find_chooser,
    list_missing_outputs,
    may_lack_files,
)
from recbias.runner.stage import Keys, Stage
from recbias.runner.stage_planner import (
    StagePlanner,
    choose_devices,
    identify_values,
    list_plugins,
    validate_plugins,
)
from recbias.runner.stages import LabelItems, LoadDataset, SelectQueries, SplitDataset, TakeQueries
from recbias.runner.store import Fingerprints
from recbias.runner.tuning import find_perplexity_limit

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


_TEXT_OUTPUTS = frozenset({"sentence_scores", "responses"})
"""Outputs that a search can measure on the validation sentences of a dataset."""

_MOST_STAGES = 100_000
"""The largest plan: planning this many stages takes some ten seconds."""


def _validate_experiment(experiment: Experiment) -> None:
    """Raise every contradiction between the parts of an experiment."""
    validate_plugins(experiment)
    checks = [_check_packages]
    if is_whole(experiment, "dataset", "split", "queries"):
        raise_faults(_check_size(experiment))  # first: the others compare models with metrics
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


def _check_size(experiment: Experiment) -> Iterator[UserError]:
    """Yield a fault if the plan would have too many stages to hold in memory."""
    folds = experiment.split.plugin.folds if experiment.split else 1
    folds = max(folds, count_query_folds(experiment))
    contexts = len(experiment.datasets) * len(experiment.seeds) * folds
    trials = sum(model.tune.trials + 1 for model in experiment.models if model.tune)
    # A context has a stage for its data, split, queries and each label; a model has two stages,
    # and one for each metric.
    n_models, n_metrics = len(experiment.models), len(experiment.metrics)
    n_shared = 3 + len(experiment.labels) + trials
    n_stages = contexts * (n_shared + n_models * (2 + n_metrics))
    if n_stages > _MOST_STAGES:
        message = f"{n_stages:,} stages are more than {_MOST_STAGES:,}"
        remedy = "use fewer seeds, folds, trials, models or metrics, or several specs"
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
        yield from _find_grouping_faults(experiment, metric)
        yield from experiment.find_short_lists(metric)


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


def make_plan(experiment: Experiment, options: RunOptions, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Parts of the experiment contradict each other, or an input file is missing.
    """
    check_experiment(experiment, options, fingerprints)
    with pause_collection():
        return plan_stages(experiment, options, fingerprints)


def check_experiment(
    experiment: Experiment, options: RunOptions, fingerprints: Fingerprints
) -> None:
    """Raise what is wrong with an experiment before its stages are planned, all at once.

    Of a spec with errors, only the parts without them are checked.

    Raises:
        Faults: As for ``make_plan``.
    """
    checks: tuple[Callable[[], object], ...] = (
        lambda: _validate_experiment(experiment),
        lambda: _digest_input_files(experiment, options, fingerprints),
        lambda: choose_devices(experiment),
    )
    faults: list[UserError] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            faults.append(error)
    if faults:
        raise Faults(faults)


def plan_stages(experiment: Experiment, options: RunOptions, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment that has been checked.

    Raises:
        Faults: An input file is missing, or this machine does not have a device.
    """
    files, skipped = _digest_input_files(experiment, options, fingerprints)
    read = tuple(dataset for dataset in experiment.datasets if dataset.label in files)
    experiment = replace(experiment, datasets=read)
    placed = choose_devices(experiment)
    planner = _DataPlanner(placed, fingerprints, options, files)
    split_folds = int(experiment.split.plugin.folds) if experiment.split else 1
    n_folds = max(split_folds, count_query_folds(experiment))
    contexts = tuple(
        planner.plan_context(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(n_folds)
    )
    model_planner = ModelPlanner(placed, fingerprints, is_smoke_test=options.limit is not None)
    model_plans = tuple(
        model_plan for context in contexts for model_plan in model_planner.plan_models(context)
    )
    spec_digest = compute_digest(experiment.identity(fingerprints.of))
    digests = {label: _key_by_name(paths) for label, paths in files.items()}
    return Plan(experiment, options, contexts, model_plans, digests, spec_digest, skipped)


def _key_by_name(digests: Mapping[Path, str]) -> dict[str, str]:
    """Return digests by the names of files, or by their paths in a folder if a name repeats."""
    if len({path.name for path in digests}) == len(digests):
        return {path.name: digest for path, digest in digests.items()}
    folder = os.path.commonpath([path.absolute().parent for path in digests])
    return {path.absolute().relative_to(folder).as_posix(): digests[path] for path in digests}


def _digest_input_files(
    experiment: Experiment, options: RunOptions, fingerprints: Fingerprints
) -> tuple[dict[str, dict[Path, str]], tuple[str, ...]]:
    """Return the digest of each input file of each dataset, by label, and what is skipped."""
    digests: dict[str, dict[Path, str]] = {}
    faults: list[UserError] = []
    skipped: dict[str, UserError] = {}
    for dataset in experiment.datasets:
        try:
            with blame_plugin(f"files() of {dataset.source.name}"):
                paths = [Path(path) for path in dataset.source.plugin.files(options.data_folder)]
        except UserError as error:
            fault = experiment.fault(dataset.source.where, str(error), remedy=error.remedy)
            if may_lack_files(dataset.source.plugin) and isinstance(error, MissingFile):
                skipped[dataset.label] = fault
            else:
                faults.append(fault)
        else:
            digests[dataset.label] = fingerprints.of_files(paths)
    if faults or (skipped and not digests):
        raise Faults([*faults, *skipped.values()])
    if not skipped:
        return digests, ()
    names = ", ".join(skipped)
    n_datasets = len(experiment.datasets)
    message = (
        f"{len(skipped)} of {n_datasets} datasets skipped, as their files are absent: {names}"
    )
    return digests, (message,)


@dataclass(frozen=True)
class _DataPlanner(StagePlanner):
    options: RunOptions
    files: Mapping[str, Mapping[Path, str]]

    def plan_context(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        load = self._plan_dataset(dataset, seed)
        labels = self._plan_labels(load, seed)
        n = count_query_folds(self.experiment)
        if n == 1:
            split = self._plan_split(load, seed, fold, replace(load.keys, fold=fold + 1))
            return DataContext(load, split, self._plan_queries(load, split, seed), labels)
        split = self._plan_split(load, seed, 0, load.keys)
        sampled = self._plan_queries(load, split, seed, n)
        take, keys = TakeQueries(fold, n), replace(load.keys, fold=fold + 1)
        title = f"take sample {fold + 1} of {keys.dataset}"
        stage = Stage("queries", title, "", take, (sampled,), keys)
        queries = self.place(stage, identity={"fold": fold, "folds": n})
        return DataContext(load, split, queries, labels, sampled)

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data_folder, seed)
        files, keys = self.files[dataset.label], Keys(dataset.label, seed)
        return self.place(
            Stage("dataset", f"load {dataset.label}", "", work, (), keys, files=files),
            dataset.source,
            *dataset.filters,
            identity={
                "source": self.identify(dataset.source),
                "files": _key_by_name(files),
                "filters": [self.identify(spec) for spec in dataset.filters],
                "seed": seed,
            },
        )

    def _plan_labels(self, load: Stage, seed: int) -> tuple[Stage, ...]:
        dataset = load.keys.dataset
        return tuple(
            self.place(
                Stage(
                    "label",
                    f"label {dataset} by {spec.label}",
                    "",
                    LabelItems(
                        spec.plugin, spec.label, seed, identify_values(spec, self.fingerprints)
                    ),
                    (load,),
                    load.keys,
                ),
                spec,
                identity={"detector": self.identify(spec), "label": spec.label, "seed": seed},
                libraries=list_libraries(spec.plugin),
            )
            for spec in self.experiment.labels
        )

    def _plan_split(self, load: Stage, seed: int, fold: int, keys: Keys) -> Stage:
        spec, title = self.experiment.split, f"split {load.keys.dataset}"
        filters = self._list_training_filters(load.keys.dataset)
        plugins = tuple(each.plugin for each in filters)
        divide = SplitDataset(spec.plugin if spec else None, fold, seed, plugins)
        identity: dict[str, Any] = {"seed": seed, "fold": fold}
        identity["split"] = self.identify(spec) if spec else None
        if filters:
            identity["filters"] = [self.identify(each) for each in filters]
        return self.place(
            Stage("split", title, "", divide, (load,), keys),
            *filter(None, [spec]),
            *filters,
            identity=identity,
        )

    def _list_training_filters(self, label: str) -> tuple[PluginSpec, ...]:
        """Return the filters of a dataset if one of them is for the training part only."""
        filters = next(x.filters for x in self.experiment.datasets if x.label == label)
        is_split = any(getattr(each.plugin, "part", "all") == "train" for each in filters)
        return filters if is_split else ()

    def _plan_queries(self, load: Stage, split: Stage, seed: int, folds: int = 1) -> Stage:
        """Return the stage that selects the queries of all folds."""
        source, limit, title = self.experiment.queries, self.options.limit, load.keys.dataset
        needed = any("lists" in model.plugin.provides for model in self.experiment.models)
        select = SelectQueries(source.plugin, seed, limit, needed, folds, source.name)
        identity = {"seed": seed, "limit": limit, "needed": needed}
        return self.place(
            Stage("queries", f"select queries of {title}", "", select, (load, split), split.keys),
            source,
            identity={"queries": self.identify(source), **identity},
        )
