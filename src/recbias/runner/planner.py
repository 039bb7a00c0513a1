"""From an experiment to a plan: its data contexts, the stages of each model, and their devices."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from recbias.config.experiment import (
    DatasetSpec,
    Experiment,
    PluginSpec,
    identify_plugin,
    list_input_files,
)
from recbias.config.specs import Reranked
from recbias.core.errors import BrokenContract, Faults, MissingFile, UserError
from recbias.core.files import compute_digest
from recbias.core.machine import pause_collection
from recbias.core.measures import DATASET
from recbias.core.packages import list_libraries
from recbias.core.plugins import (
    OUTPUTS,
    ChecksFiles,
    Device,
    ReadsModels,
    Restores,
    SelectedModel,
    UsesDevice,
    evaluates_texts,
    omit_device_numbers,
)
from recbias.formats.yaml import KeyPath
from recbias.runner.address import address_values, assign_address
from recbias.runner.boundary import blame_plugin
from recbias.runner.checks import (
    collect_fault,
    find_learner,
    raise_faults,
    validate_experiment,
)
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.plan import (
    DataContext,
    Keys,
    ModelPlan,
    Plan,
    RunOptions,
    Stage,
    count_query_folds,
    find_named_model,
    list_missing_outputs,
    may_lack_files,
)
from recbias.runner.stages import (
    AnswerQueries,
    ComputeMetric,
    FitModel,
    LabelItems,
    LoadDataset,
    RerankLists,
    SelectQueries,
    SplitDataset,
    TakeAnswers,
    TakeQueries,
)
from recbias.runner.store import Fingerprints
from recbias.runner.tuning import (
    AnswerValidationQueries,
    RunTrial,
    SelectBestTrial,
    TunedWork,
    UseBestSettings,
    can_prune,
    count_combinations,
    find_perplexity_limit,
    is_exhaustive,
)

_SMOKE_TEST_TRIALS = 2
"""The largest number of trials in a smoke test."""

_NO_MODEL = PluginSpec("models", DATASET, DATASET, None, {}, ())
"""The model of the plan for metrics of a dataset alone."""


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
    faults: list[UserError] = []
    with collect_fault(faults):
        validate_experiment(experiment)
    with collect_fault(faults):
        _digest_input_files(experiment, options, fingerprints)
    with collect_fault(faults):
        choose_devices(experiment)
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
    planner = StagePlanner(choose_devices(experiment), fingerprints, options, files)
    split_folds = int(experiment.split.plugin.folds) if experiment.split else 1
    n_folds = max(split_folds, count_query_folds(experiment))
    contexts = tuple(
        planner.plan_context(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(n_folds)
    )
    model_plans = tuple(each for context in contexts for each in planner.plan_models(context))
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
        source = dataset.source
        try:
            with blame_plugin(f"files() of {source.name}"):
                paths = [Path(path) for path in source.plugin.files(options.data_folder)]
            digests[dataset.label] = fingerprints.of_files(paths)
        except UserError as error:
            fault = experiment.fault(source.where, str(error), remedy=error.remedy)
            if may_lack_files(source.plugin) and isinstance(error, MissingFile):
                skipped[dataset.label] = fault
            else:
                faults.append(fault)
    if faults or (skipped and not digests):
        raise Faults([*faults, *skipped.values()])
    if not skipped:
        return digests, ()
    counts = f"{len(skipped)} of {len(experiment.datasets)} datasets skipped"
    return digests, (f"{counts}, as their files are absent: {', '.join(skipped)}",)


# ---- devices ----


def choose_devices(experiment: Experiment) -> Experiment:
    """Return an experiment whose plug-ins name the devices and precisions that they use here.

    Raises:
        Faults: This machine does not have a device.
    """
    faults: list[UserError] = []

    def choose(specs: Sequence[PluginSpec]) -> tuple[PluginSpec, ...]:
        chosen = []
        for spec in specs:
            with collect_fault(faults):
                chosen.append(_choose_device(spec, experiment))
        return tuple(chosen)

    datasets = [replace(each, filters=choose(each.filters)) for each in experiment.datasets]
    models, labels = choose(experiment.models), choose(experiment.labels)
    raise_faults(faults)
    return replace(experiment, datasets=tuple(datasets), models=models, labels=labels)


def has_device(spec: PluginSpec, experiment: Experiment) -> bool:
    """Return whether this machine has the device of a plug-in."""
    try:
        _choose_device(spec, experiment)
    except UserError:
        return False
    return True


def _choose_device(spec: PluginSpec, experiment: Experiment) -> PluginSpec:
    if spec.reranked is not None:
        base = _choose_device(spec.reranked.base, experiment)
        model = replace(spec.plugin.base, model=base.plugin)
        reranked = replace(spec.reranked, base=base)
        return replace(spec, plugin=replace(spec.plugin, base=model), reranked=reranked)
    try:
        with blame_plugin(f"choose_device() of {spec.label}"):
            return replace(spec, plugin=_set_devices(spec.plugin, experiment.device))
    except UserError as error:
        entry: Any = experiment.document.data
        for step in spec.where:
            entry = entry[step]
        key = _find_key(entry, "device")
        where = (*spec.where, *key) if key else ("device",)  # its own, or that of the spec
        raise experiment.fault(
            where, error.message, remedy=error.remedy, kind=type(error)
        ) from error


def _find_key(entry: Any, setting: str) -> KeyPath:
    """Return the path of the first setting of a name in an entry, at any depth; else empty."""
    if not isinstance(entry, Mapping):
        return ()
    if setting in entry:
        return (setting,)
    paths = ((key, *path) for key in entry if (path := _find_key(entry[key], setting)))
    return next(paths, ())


def _list_parts(plugin: Any) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a plug-in that may compute on a device."""
    for name, value in vars(plugin).items() if is_dataclass(plugin) else ():
        if isinstance(value, SelectedModel) or _uses_device(value):
            yield name, value


def _uses_device(plugin: object) -> TypeGuard[UsesDevice]:
    """Return whether a plug-in has the method; a check of the protocol takes long."""
    return hasattr(plugin, "choose_device")


def _set_devices(plugin: Any, default: Device) -> Any:
    """Return a copy of a plug-in with the device and precision of each of its parts."""
    changes: dict[str, Any] = {}
    for name, part in _list_parts(plugin):
        is_model = isinstance(part, SelectedModel)
        placed = _set_devices(part.model if is_model else part, default)
        changes[name] = replace(part, model=placed) if is_model else placed
    if _uses_device(plugin):
        changes |= plugin.choose_device(default)
    if not changes:
        return plugin
    plugin = copy.copy(plugin)
    for name, value in changes.items():
        object.__setattr__(plugin, name, value)  # its settings are valid, and it may be frozen
    return plugin


def _list_placements(plugin: Any) -> Iterator[tuple[str, str]]:
    """Yield the device and the precision of each part of a plug-in; blank if it is a server's."""
    for _, part in _list_parts(plugin):
        yield from _list_placements(part.model if isinstance(part, SelectedModel) else part)
    if _uses_device(plugin):
        device = plugin.choose_device("auto").get("device", "auto")
        is_here = device != "auto"
        yield (device, getattr(plugin, "precision", "float32")) if is_here else ("", "")


def describe_devices(plugin: Any) -> dict[str, Any]:
    """Return the device and the precision of a model whose devices are chosen, for the manifest.

    A model without a choice computes on the CPU, in the precision of its library. The device of a
    model on a server, or of lists that another tool made, is not known.
    """
    placements = [*_list_placements(plugin)]
    if not placements:
        device = getattr(plugin, "device", "cpu")
        is_known = device != "auto" and not isinstance(plugin, ChecksFiles)
        return {"device": device if is_known else None, "precision": None}
    devices, precisions = (
        ", ".join(sorted({*names} - {""})) for names in zip(*placements, strict=True)
    )
    return {"device": devices or None, "precision": precisions or None}


# ---- identities of plug-ins in addresses ----


def identify(
    spec: PluginSpec, fingerprints: Fingerprints, omitted: Sequence[str] = ()
) -> dict[str, object]:
    """Return the name and settings that distinguish a plug-in, with the digests of its files."""
    _, parameters = identify_plugin(spec, fingerprints.of)
    name = spec.name.rpartition(":")[2]  # of ./file.py:Name, whose source is in the address
    kept = {key: value for key, value in parameters.items() if key not in omitted}
    identity: dict[str, object] = {"name": name, "parameters": omit_device_numbers(kept)}
    if isinstance(spec.plugin, ReadsModels):
        paths = spec.plugin.model_files()
        identity["files"] = [[path.name, fingerprints.of(path)] for path in paths]
    return identity


def identify_learner(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what distinguishes the learned state of a model: not what it applies afterwards."""
    return identify(spec, fingerprints, getattr(spec.plugin, "after_fit", ()))


def _identify_values(spec: PluginSpec, fingerprints: Fingerprints) -> str:
    """Return the digest of what distinguishes the values that a detector gives to a text."""
    if not evaluates_texts(spec.plugin):
        return ""
    later = [f"{name}{end}" for name in spec.plugin.after_evaluation for end in ("", "_")]
    identity = identify(spec, fingerprints, later)
    return address_values(spec.plugin, identity, list_libraries(spec.plugin))


class _Known(NamedTuple):
    """What stages take from a plug-in, found once: a metric is planned for every model.

    Args:
        spec: The plug-in, which is kept as long as it is found by its id.
        files: The files that it reads, with the digests that its identity has of them.
        location: Its entry in the spec: ``FILE:LINE:COLUMN: models[0]``.
    """

    spec: PluginSpec
    identity: dict[str, object]
    learner: dict[str, object]
    settings: str
    files: Mapping[Path, str]
    libraries: tuple[str, ...]
    devices: frozenset[str]
    location: str


# ---- stages ----


@dataclass(frozen=True)
class StagePlanner:
    """Plans the stages of an experiment, and places them at their addresses.

    Args:
        files: The digest of each input file of each dataset, by label.
    """

    experiment: Experiment
    fingerprints: Fingerprints
    options: RunOptions = field(default_factory=RunOptions)
    files: Mapping[str, Mapping[Path, str]] = field(default_factory=dict)
    _known: dict[int, _Known] = field(default_factory=dict, init=False, repr=False, compare=False)

    def place(
        self,
        stage: Stage,
        *specs: PluginSpec,
        at: PluginSpec | None = None,
        inputs: Sequence[Stage] | None = None,
        libraries: Sequence[str] = (),
        **identity: object,
    ) -> Stage:
        """Return a stage at its address, which has the settings of its work and its plug-ins.

        Args:
            stage: Its kind, title, work, inputs and keys, and what it reads besides the files of
                its plug-ins.
            specs: Its plug-ins, first the one that it is named for; the address has their
                settings, files and libraries.
            at: The entry of the spec that requests it.
            inputs: The inputs that count, if not all of the stage.
            libraries: Packages whose version counts besides those of the plug-ins.
            identity: What the address has besides.
        """
        known = [self._know(spec) for spec in specs]
        identity["plugins"] = [
            each.learner if stage.kind == "fit" else each.identity for each in known
        ]
        identity["work"] = _list_settings(stage.work)
        packages = [name for each in known for name in each.libraries] + [*libraries]
        files = dict(stage.files)
        for each in known:
            files |= each.files
        filled = replace(
            stage,
            spec_location="" if at is None else self._know(at).location,
            files=files,
            devices=tuple(sorted(frozenset().union(*(each.devices for each in known)))),
            subject=str(known[0].identity["name"]) if known else type(stage.work).__name__,
            settings=compute_digest([each.settings for each in known]) if known else "",
        )
        return assign_address(filled, identity, inputs=inputs, libraries=packages)

    def _know(self, spec: PluginSpec) -> _Known:
        """Return what is known of a plug-in."""
        if id(spec) not in self._known:
            plugin, identity = spec.plugin, identify(spec, self.fingerprints)
            model_files = plugin.model_files() if isinstance(plugin, ReadsModels) else ()
            has_device = spec.kind in {"models", "detectors", "filters"}
            devices = {device for device, _ in _list_placements(plugin) if has_device and device}
            self._known[id(spec)] = _Known(
                spec,
                identity,
                learner=identify_learner(spec, self.fingerprints),
                settings=compute_digest(identity),
                files=self.fingerprints.of_files([*list_input_files(plugin), *model_files]),
                libraries=list_libraries(plugin),
                devices=frozenset(devices),
                location=self.experiment.fault(spec.where, "").where,
            )
        return self._known[id(spec)]

    # ---- of a data context ----

    def plan_context(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        """Return the stages that all models of a fold share."""
        load = self._plan_dataset(dataset, seed)
        labels = tuple(self._plan_labels(load, spec, seed) for spec in self.experiment.labels)
        n, keys = count_query_folds(self.experiment), replace(load.keys, fold=fold + 1)
        if n == 1:
            split = self._plan_split(load, dataset, seed, fold, keys)
            return DataContext(load, split, self._plan_queries(load, split, seed), labels)
        split = self._plan_split(load, dataset, seed, 0, load.keys)
        sampled = self._plan_queries(load, split, seed, n)
        title, take = f"take sample {fold + 1} of {keys.dataset}", TakeQueries(fold, n)
        queries = self.place(Stage("queries", title, take, (sampled,), keys))
        return DataContext(load, split, queries, labels, sampled)

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data_folder, seed)
        files, keys = self.files[dataset.label], Keys(dataset.label, seed)
        stage = Stage("dataset", f"load {dataset.label}", work, (), keys, files=files)
        specs = (dataset.source, *dataset.filters)
        return self.place(stage, *specs, files=_key_by_name(files))

    def _plan_labels(self, load: Stage, spec: PluginSpec, seed: int) -> Stage:
        values = _identify_values(spec, self.fingerprints)
        work = LabelItems(spec.plugin, spec.label, seed, values)
        title = f"label {load.keys.dataset} by {spec.label}"
        stage = Stage("label", title, work, (load,), load.keys)
        return self.place(stage, spec)

    def _plan_split(
        self, load: Stage, dataset: DatasetSpec, seed: int, fold: int, keys: Keys
    ) -> Stage:
        """Return the stage that splits; it applies the filters for the training part only."""
        spec = self.experiment.split
        parts = [getattr(each.plugin, "part", "all") for each in dataset.filters]
        filters = dataset.filters if "train" in parts else ()
        plugins = tuple(each.plugin for each in filters)
        divide = SplitDataset(spec.plugin if spec else None, fold, seed, plugins)
        stage = Stage("split", f"split {dataset.label}", divide, (load,), keys)
        specs = (*([spec] if spec else []), *filters)
        return self.place(stage, *specs)

    def _plan_queries(self, load: Stage, split: Stage, seed: int, folds: int = 1) -> Stage:
        """Return the stage that selects the queries of all folds.

        Given embeddings and scores need none, unless the spec has a source of its own.
        """
        source, limit = self.experiment.queries, self.options.limit
        is_default = source.name == "users" and source.plugin == type(source.plugin)()
        has_lists = any("lists" in model.plugin.provides for model in self.experiment.models)
        needed = has_lists or not is_default
        select = SelectQueries(source.plugin, seed, limit, needed, folds)
        title = f"select queries of {load.keys.dataset}"
        stage = Stage("queries", title, select, (load, split), split.keys)
        return self.place(stage, source)

    # ---- of a model ----

    def plan_models(self, context: DataContext) -> Iterator[ModelPlan]:
        """Yield the plan of each model, then that of the metrics of the dataset alone, if any."""
        of_models = [each for each in self.experiment.metrics if each.needs & OUTPUTS]
        for model in self.experiment.models:
            planned = self.plan_outputs(context, model, self.experiment.k)
            metrics = [each for each in of_models if not list_missing_outputs(each, model)]
            yield self._add_metrics(planned, metrics)
        if alone := [each for each in self.experiment.metrics if each not in of_models]:
            yield self._add_metrics(ModelPlan(context, _NO_MODEL, None, None), alone)

    def _add_metrics(self, planned: ModelPlan, metrics: Sequence[PluginSpec]) -> ModelPlan:
        context = planned.data_context
        keys = replace(context.keys, model=planned.model.label)
        measures = [self.plan_metric(context, planned.answer, each, keys) for each in metrics]
        return replace(planned, metrics=tuple(metrics), measures=tuple(measures))

    def plan_outputs(self, context: DataContext, model: PluginSpec, k: int) -> ModelPlan:
        """Return the plan of a model without metrics, with lists of ``k`` items."""
        if model.reranked is not None:
            return self._plan_reranked(context, model, model.reranked)
        keys = replace(context.training_keys, model=model.label)
        trials, search = self._plan_search(context, model, keys)
        # A model that selects rows of a file by the dataset receives the label of the dataset.
        several = len(self.experiment.datasets) > 1 and isinstance(model.plugin, ChecksFiles)
        seed, fold = _get_training_fold(keys)
        data: dict[str, Any] = {"seed": seed, "fold": fold}
        data["dataset"] = keys.dataset if several else ""
        fit, learner = None, model if model.tune else find_learner(model)
        read = (search, context.dataset, context.split)
        if isinstance(learner.plugin, Restores):
            train = _tune(FitModel(learner.plugin, learner.name, **data), model)
            stage = Stage("fit", f"fit {learner.label}", train, _present(*read), keys)
            fit = self.place(stage, learner, at=model)
        ask = _tune(AnswerQueries(model.plugin, model.name, k, **data), model)
        inputs = _present(*read, context.asked, fit)
        stage = Stage("answer", f"recommend {model.label}", ask, inputs, keys)
        answer = self.place(stage, model, at=model)
        planned = ModelPlan(context, model, fit, answer, trials=trials, search=search)
        return self._take_sample(planned)

    def _take_sample(self, planned: ModelPlan) -> ModelPlan:
        """Return a plan whose answer is that for the queries of the fold."""
        context, shared = planned.data_context, planned.answer
        if context.sampled is None or shared is None:
            return planned
        keys = replace(shared.keys, fold=context.keys.fold)
        title = f"take sample {keys.fold} of {planned.model.label}"
        inputs = (context.sampled, shared, context.queries)
        answer = self.place(Stage("answer", title, TakeAnswers(), inputs, keys))
        return replace(planned, answer=answer, shared_answer=shared)

    def _plan_reranked(
        self, context: DataContext, model: PluginSpec, reranked: Reranked
    ) -> ModelPlan:
        """Return the plan of a model whose lists are re-ranked: the other one is trained once."""
        keys = replace(context.training_keys, model=model.label)
        reranker, n = reranked.reranker, int(reranked.reranker.plugin.candidates)
        base, k = self.plan_outputs(context, reranked.base, n), self.experiment.k
        if base.asking is None:
            raise BrokenContract(f"{reranked.base.label} has no answer to re-rank")
        candidates = replace(base.asking, title=f"recommend {reranked.base.label}, {n} candidates")
        validation = self._plan_validation(model, base, n, keys)
        searched = replace(reranker, label=model.label, tune=model.tune)
        trials, search = self._plan_search(context, searched, keys, validation)
        labels = context.labels if "items" in reranker.plugin.needs else ()
        rerank = _tune(RerankLists(reranker.plugin, k), model)
        read = (search, context.dataset, context.split, context.asked, candidates, *labels)
        stage = Stage("answer", f"re-rank {model.label}", rerank, _present(*read), keys)
        answer = self.place(stage, reranker, at=model)
        planned = ModelPlan(
            *(context, model, base.fit, answer),
            trials=trials,
            search=search,
            candidates=_present(validation, candidates),
        )
        return self._take_sample(planned)

    def _plan_validation(
        self, model: PluginSpec, base: ModelPlan, n: int, keys: Keys
    ) -> Stage | None:
        """Return the stage that asks for the candidates of users with validation rows."""
        if model.tune is None:
            return None
        context, asked, (seed, fold) = base.data_context, base.model, _get_training_fold(keys)
        ask = AnswerQueries(
            *(asked.plugin, asked.name, n, seed, fold, keys.dataset),
            split_part="validation",
            outputs=frozenset({"lists"}),
        )
        work = AnswerValidationQueries(_tune(ask, asked), model.tune.metric)
        title = f"recommend {asked.label}, {n} candidates of the validation users"
        read = _present(base.search, context.dataset, context.split, base.fit)
        stage = Stage("answer", title, work, read, keys)
        return self.place(stage, asked, at=asked)

    def _plan_search(
        self,
        context: DataContext,
        model: PluginSpec,
        keys: Keys,
        candidates: Stage | None = None,
    ) -> tuple[tuple[Stage, ...], Stage | None]:
        """Return the trials of a hyperparameter search, and the stage that selects the best.

        Trials form batches of ``parallel``. A trial is sampled from the trials of earlier batches,
        so the trials of one batch can run at the same time with the same result. The address of a
        trial has those of the batch before, and so of all earlier batches.
        """
        if model.tune is None:
            return (), None
        (seed, fold), tune = _get_training_fold(keys), model.tune
        if self.options.limit is not None:
            tune = replace(tune, trials=min(tune.trials, _SMOKE_TEST_TRIALS))
        k = tune.metric.cutoff or self.experiment.k
        limit = find_perplexity_limit(tune, model.plugin)
        identity = {
            "split": tune.metric.split_settings,
            "space": tune.written["space"],
            "objective": tune.objective,
            "limit": limit,
            "pruning": tune.pruning if can_prune(tune) else "none",
        }
        needs = tune.metric.needs | frozenset(model.plugin.needs if candidates else ())
        labels = context.labels if "items" in needs else ()
        # A smoke test runs the first trials of the full search.
        work = RunTrial(
            *(model.plugin, model.name, tune, k, seed, fold),
            reranks=candidates is not None,
            exhaustive=is_exhaustive(model.tune),
        )
        baseline = () if limit is None else (self._plan_baseline(context, model, keys, work),)
        read = _present(context.dataset, context.split, candidates, *labels, *baseline)
        trials: list[Stage] = []
        n_trials = min(tune.trials, count_combinations(tune.space) or tune.trials)
        for number in range(1, n_trials + 1):
            earlier = trials[: (number - 1) // tune.parallel * tune.parallel]
            title, run = f"trial {number} of {keys.model}", replace(work, number=number)
            trial = self.place(
                Stage("trial", title, run, (*read, *earlier), keys),
                *(model, tune.metric),
                at=model,
                inputs=(*read, *earlier[-tune.parallel :]),
                libraries=("optuna",),
                **identity,
            )
            trials.append(trial)
        choose = SelectBestTrial(tune.direction, tune.space, work.derive_seed("importances"))
        search = self.place(
            Stage("search", f"search {keys.model}", choose, tuple(trials), keys),
            at=model,
            inputs=trials[-tune.parallel :],
            libraries=("optuna", "scikit-learn"),
        )
        return (*baseline, *trials), search

    def _plan_baseline(
        self, context: DataContext, model: PluginSpec, keys: Keys, work: RunTrial
    ) -> Stage:
        """Return the stage that scores the validation sentences before any training."""
        answer = work.answer_baseline(model.plugin)
        pretrained = replace(model, plugin=answer.model)
        score = AnswerValidationQueries(answer, work.tune.metric)
        read = (context.dataset, context.split)
        stage = Stage("baseline", f"score {model.label} without training", score, read, keys)
        return self.place(stage, pretrained, at=model)

    # ---- of a metric ----

    def plan_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        """Return the stage that measures; values by group come from a stage without groups."""
        title = f"measure {metric.label} of {keys.model}"
        if metric.grouping is not None:
            ungrouped = self.plan_metric(context, answer, metric.ungrouped, keys)
            group = GroupMeasurements(metric.name, metric.grouping, metric.plugin.direction)
            stage = Stage("measure", title, group, (context.queries, ungrouped), keys)
            return self.place(stage, at=metric, split=metric.split_settings)
        source = getattr(context.dataset.work, "source", None)
        world = source if metric.needs & {"odds", "log"} else None
        compute = ComputeMetric(metric.plugin, metric.name, world)
        other = self._plan_named_model(context, metric)
        labels = context.labels if "items" in metric.needs else ()
        read = _present(*(context.dataset, context.split, context.queries, answer, other), *labels)
        stage = Stage("measure", title, compute, read, keys)
        return self.place(stage, metric, at=metric)

    def _plan_named_model(self, context: DataContext, metric: PluginSpec) -> Stage | None:
        """Return the answer of the other model that a metric reads, if it names one."""
        (_, label), k = find_named_model(metric), self.experiment.k
        models = [model for model in self.experiment.models if model.label == label]
        return self.plan_outputs(context, models[0], k).answer if models else None


def _list_settings(work: Any) -> dict[str, object]:
    """Return the fields of the work of a stage that are no plug-ins: seed, fold, k, ...

    A name may have the path of a file; the plug-ins of the stage have it without.
    """
    settings: dict[str, object] = {}
    for name, value in vars(work).items():
        if callable(value) and is_dataclass(value):  # the work that this one does
            settings[name] = _list_settings(value)
        elif name != "name" and isinstance(value, (int, float, str, frozenset, tuple, type(None))):
            is_plain = not isinstance(value, tuple) or all(isinstance(at, str) for at in value)
            settings |= {name: value} if is_plain else {}
    return settings


def _present(*stages: Stage | None) -> tuple[Stage, ...]:
    """Return those of the stages that there are."""
    return tuple(filter(None, stages))


def _get_training_fold(keys: Keys) -> tuple[int, int]:
    """Return the seed and the fold of the split, 1 if the folds are samples of queries."""
    return keys.seed or 0, keys.fold or 1


def _tune(work: TunedWork, model: PluginSpec) -> TunedWork | UseBestSettings:
    """Return the work of a stage, with the settings of the best trial if there is a search."""
    return work if model.tune is None else UseBestSettings(work, model.tune.space)
