"""From an experiment to a plan: its data contexts, and the stages of each model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
    ReadsModels,
    Restores,
    evaluates_texts,
    omit_device_numbers,
)
from recbias.runner.address import address_values, assign_address
from recbias.runner.boundary import blame_plugin
from recbias.runner.compatibility import find_learner, validate_experiment
from recbias.runner.devices import choose_devices, list_devices
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.options import RunOptions
from recbias.runner.plan import (
    DataContext,
    ModelPlan,
    Plan,
    count_query_folds,
    find_chooser,
    list_missing_outputs,
    may_lack_files,
)
from recbias.runner.stage import Keys, Stage
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
    RunRerankTrial,
    RunTrial,
    TunedWork,
    UseBestSettings,
    find_perplexity_limit,
    is_exhaustive,
    plan_search,
    plan_trials,
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
    checks: tuple[Callable[[], object], ...] = (
        lambda: validate_experiment(experiment),
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
    counts = f"{len(skipped)} of {len(experiment.datasets)} datasets skipped"
    return digests, (f"{counts}, as their files are absent: {', '.join(skipped)}",)


# ---- identities of plug-ins in addresses ----


def identify(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return the name and settings that distinguish a plug-in, with the digests of its files."""
    _, parameters = identify_plugin(spec, fingerprints.of)
    name = spec.name.rpartition(":")[2]  # of ./file.py:Name, whose source is in the address
    identity: dict[str, object] = {"name": name, "parameters": omit_device_numbers(parameters)}
    if isinstance(spec.plugin, ReadsModels):
        paths = spec.plugin.model_files()
        identity["files"] = [[path.name, fingerprints.of(path)] for path in paths]
    return identity


def identify_learner(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what distinguishes the learned state of a model: not what it applies afterwards."""
    return _identify_without(spec, fingerprints, getattr(spec.plugin, "after_fit", ()))


def _identify_values(spec: PluginSpec, fingerprints: Fingerprints) -> str:
    """Return the digest of what distinguishes the values that a detector gives to a text."""
    if not evaluates_texts(spec.plugin):
        return ""
    later = [f"{name}{end}" for name in spec.plugin.after_evaluation for end in ("", "_")]
    identity = _identify_without(spec, fingerprints, later)
    return address_values(spec.plugin, identity, list_libraries(spec.plugin))


def _identify_without(
    spec: PluginSpec, fingerprints: Fingerprints, omitted: Sequence[str]
) -> dict[str, object]:
    identity: dict[str, Any] = identify(spec, fingerprints)
    parameters = identity["parameters"]
    kept = {key: parameters[key] for key in parameters if key not in omitted}
    return identity | {"parameters": kept}


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
    _known: dict[tuple[object, ...], tuple[tuple[PluginSpec, ...], Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def place(  # noqa: PLR0913  the fields of a stage
        self,
        kind: str,
        title: str,
        work: Callable[..., Any],
        inputs: Sequence[Stage | None],
        keys: Keys,
        *specs: PluginSpec,
        identity: Mapping[str, object],
        at: PluginSpec | None = None,
        files: Mapping[Path, str] | None = None,
    ) -> Stage:
        """Return a stage at its address.

        Args:
            kind: Its fields, like the next four; inputs that are None are left out.
            title: See ``Stage``.
            work: See ``Stage``.
            inputs: See ``Stage``.
            keys: See ``Stage``.
            specs: Its plug-ins, first the one that it is named for; the address has their
                settings, files and libraries.
            identity: What the address has besides.
            at: The entry of the spec that requests it.
            files: What it reads besides the files of the plug-ins.
        """
        stage = self.draft(kind, title, work, inputs, keys, *specs, at=at, files=files)
        plugins = [self._identify(spec, learner=kind == "fit") for spec in specs]
        libraries = [
            name
            for spec in specs
            for name in self._recall("libraries", spec, make=lambda: list_libraries(spec.plugin))  # noqa: B023
        ]
        return assign_address(
            stage, {**identity, "plugins": plugins}, libraries=tuple(dict.fromkeys(libraries))
        )

    def draft(  # noqa: PLR0913  see place
        self,
        kind: str,
        title: str,
        work: Callable[..., Any],
        inputs: Sequence[Stage | None],
        keys: Keys,
        *specs: PluginSpec,
        at: PluginSpec | None = None,
        files: Mapping[Path, str] | None = None,
    ) -> Stage:
        """Return a stage without an address; the arguments are those of ``place``."""
        named = self._recall("named", *specs, make=lambda: self._name(specs)) if specs else {}
        read = self._recall("files", *specs, make=lambda: self._digest_files(specs))
        return Stage(
            *(kind, title, "", work, tuple(filter(None, inputs)), keys),
            spec_location="" if at is None else self._locate(at),
            files={**(files or {}), **read},
            **{"subject": type(work).__name__, **named},
        )

    def _name(self, specs: Sequence[PluginSpec]) -> dict[str, Any]:
        """Return the subject of a stage with some plug-ins, their settings and devices."""
        identities = [self._identify(spec) for spec in specs]
        is_model = specs[0].kind == "models"
        return {
            "subject": str(identities[0]["name"]),
            "settings": compute_digest(identities),
            "devices": list_devices(specs[0].plugin) if is_model else (),
        }

    def _identify(self, spec: PluginSpec, *, learner: bool = False) -> dict[str, object]:
        make = identify_learner if learner else identify
        identity: dict[str, object] = self._recall(
            make.__name__, spec, make=lambda: make(spec, self.fingerprints)
        )
        return identity

    def _locate(self, spec: PluginSpec) -> str:
        """Return the entry of a plug-in in the spec: ``FILE:LINE:COLUMN: models[0]``."""
        location: str = self._recall(
            "location", spec, make=lambda: self.experiment.fault(spec.where, "").where
        )
        return location

    def _recall(self, purpose: str, *specs: PluginSpec, make: Callable[[], Any]) -> Any:
        """Return what is made once of some plug-ins: a metric is planned for every model.

        The plug-ins are kept, as their identities, by which they are found, would be used again.
        """
        key = (purpose, *map(id, specs))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = specs, make()
        return known[1]

    def _digest_files(self, specs: Sequence[PluginSpec]) -> dict[Path, str]:
        """Return the files that plug-ins read, with the digests that identities have of them."""
        files: dict[Path, str] = {}
        for plugin in (spec.plugin for spec in specs):
            model_files = plugin.model_files() if isinstance(plugin, ReadsModels) else ()
            files |= self.fingerprints.of_files([*list_input_files(plugin), *model_files])
        return files

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
        identity = {"fold": fold, "folds": n}
        queries = self.place("queries", title, take, [sampled], keys, identity=identity)
        return DataContext(load, split, queries, labels, sampled)

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data_folder, seed)
        files, specs = self.files[dataset.label], (dataset.source, *dataset.filters)
        title, keys = f"load {dataset.label}", Keys(dataset.label, seed)
        identity = {"files": _key_by_name(files), "seed": seed}
        return self.place("dataset", title, work, [], keys, *specs, identity=identity, files=files)

    def _plan_labels(self, load: Stage, spec: PluginSpec, seed: int) -> Stage:
        values = _identify_values(spec, self.fingerprints)
        work = LabelItems(spec.plugin, spec.label, seed, values)
        title = f"label {load.keys.dataset} by {spec.label}"
        identity = {"label": spec.label, "seed": seed}
        return self.place("label", title, work, [load], load.keys, spec, identity=identity)

    def _plan_split(
        self, load: Stage, dataset: DatasetSpec, seed: int, fold: int, keys: Keys
    ) -> Stage:
        """Return the stage that splits; it applies the filters for the training part only."""
        spec, parts = (
            self.experiment.split,
            [getattr(x.plugin, "part", "all") for x in dataset.filters],
        )
        filters = dataset.filters if "train" in parts else ()
        plugins = tuple(each.plugin for each in filters)
        divide = SplitDataset(spec.plugin if spec else None, fold, seed, plugins)
        title, specs = f"split {dataset.label}", (*([spec] if spec else []), *filters)
        identity = {"seed": seed, "fold": fold, "is_split": spec is not None}
        return self.place("split", title, divide, [load], keys, *specs, identity=identity)

    def _plan_queries(self, load: Stage, split: Stage, seed: int, folds: int = 1) -> Stage:
        """Return the stage that selects the queries of all folds."""
        source, limit = self.experiment.queries, self.options.limit
        needed = any("lists" in model.plugin.provides for model in self.experiment.models)
        select = SelectQueries(source.plugin, seed, limit, needed, folds, source.name)
        title, read = f"select queries of {load.keys.dataset}", [load, split]
        identity = {"seed": seed, "limit": limit, "needed": needed}
        return self.place("queries", title, select, read, split.keys, source, identity=identity)

    # ---- of a model ----

    def plan_models(self, context: DataContext) -> Iterator[ModelPlan]:
        """Yield the plan of each model, then that of the metrics of the dataset alone, if any."""
        of_models = [each for each in self.experiment.metrics if measures_models(each)]
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
        dataset = keys.dataset if several else ""
        seed, fold = _get_training_fold(keys)
        identity = {"seed": seed, "fold": fold, "dataset": dataset}
        fit, learner = None, model if model.tune else find_learner(model)
        if isinstance(learner.plugin, Restores):
            title = f"fit {learner.label}"
            train = _tune(FitModel(learner.plugin, learner.name, seed, fold, dataset), model)
            read = [search, context.dataset, context.split]
            fit = self.place("fit", title, train, read, keys, learner, identity=identity, at=model)
        ask = _tune(AnswerQueries(model.plugin, model.name, k, seed, fold, dataset), model)
        title, identity = f"recommend {model.label}", identity | {"k": k}
        read = [search, context.dataset, context.split, context.asked, fit]
        answer = self.place("answer", title, ask, read, keys, model, identity=identity, at=model)
        planned = ModelPlan(context, model, fit, answer, trials=trials, search=search)
        return self._take_sample(planned)

    def _take_sample(self, planned: ModelPlan) -> ModelPlan:
        """Return a plan whose answer is that for the queries of the fold."""
        context, model, shared = planned.data_context, planned.model, planned.answer
        if context.sampled is None or shared is None:
            return planned
        keys = replace(shared.keys, fold=context.keys.fold)
        title = f"take sample {keys.fold} of {model.label}"
        inputs = [context.sampled, shared, context.queries]
        answer = self.place("answer", title, TakeAnswers(), inputs, keys, identity={})
        return replace(planned, answer=answer, shared_answer=shared)

    def _plan_reranked(
        self, context: DataContext, model: PluginSpec, reranked: Reranked
    ) -> ModelPlan:
        """Return the plan of a model whose lists are re-ranked: the other one is trained once."""
        keys = replace(context.training_keys, model=model.label)
        reranker, n = reranked.reranker, int(reranked.reranker.plugin.candidates)
        base = self.plan_outputs(context, reranked.base, n)
        if base.asking is None:
            raise BrokenContract(f"{reranked.base.label} has no answer to re-rank")
        candidates = replace(base.asking, title=f"recommend {reranked.base.label}, {n} candidates")
        validation = self._plan_validation(context, model, base, n)
        searched = replace(reranker, label=model.label, tune=model.tune)
        trials, search = self._plan_search(context, searched, keys, validation)
        labels = context.labels if "items" in reranker.plugin.needs else ()
        rerank = _tune(RerankLists(reranker.plugin, self.experiment.k), model)
        title, identity = f"re-rank {model.label}", {"k": self.experiment.k}
        read = [search, context.dataset, context.split, context.asked, candidates, *labels]
        answer = self.place(
            "answer", title, rerank, read, keys, reranker, identity=identity, at=model
        )
        asked = tuple(filter(None, [validation, candidates]))
        planned = ModelPlan(
            *(context, model, base.fit, answer), trials=trials, search=search, candidates=asked
        )
        return self._take_sample(planned)

    def _plan_validation(
        self, context: DataContext, model: PluginSpec, base: ModelPlan, n: int
    ) -> Stage | None:
        """Return the stage that asks for the candidates of users with validation rows."""
        if model.tune is None:
            return None
        keys = replace(context.training_keys, model=model.label)
        asked, (seed, fold) = base.model, _get_training_fold(keys)
        ask = AnswerQueries(
            *(asked.plugin, asked.name, n, seed, fold, keys.dataset),
            split_part="validation",
            outputs=frozenset({"lists"}),
        )
        title = f"recommend {asked.label}, {n} candidates of the validation users"
        work = AnswerValidationQueries(_tune(ask, asked), model.tune.metric)
        identity = {"k": n, "seed": seed, "fold": fold}
        read = [base.search, context.dataset, context.split, base.fit]
        return self.place("answer", title, work, read, keys, asked, identity=identity, at=asked)

    def _plan_search(
        self,
        context: DataContext,
        model: PluginSpec,
        keys: Keys,
        candidates: Stage | None = None,
    ) -> tuple[tuple[Stage, ...], Stage | None]:
        """Return the trials of a hyperparameter search, and the stage that selects the best."""
        if model.tune is None:
            return (), None
        (seed, fold), tune = _get_training_fold(keys), model.tune
        if self.options.limit is not None:
            tune = replace(tune, trials=min(tune.trials, _SMOKE_TEST_TRIALS))
        k = tune.metric.cutoff or self.experiment.k
        limit = find_perplexity_limit(tune, model.plugin)
        identity = {
            "model": self._identify(model),
            "metric": self._identify(tune.metric) | tune.metric.split_settings,
            "space": tune.written["space"],
            "objective": tune.objective,
            "limit": limit,
            "k": k,
            "seed": seed,
            "fold": fold,
        }
        needs = tune.metric.needs | frozenset(model.plugin.needs if candidates else ())
        labels = context.labels if "items" in needs else ()
        # A smoke test runs the first trials of the full search.
        exhaustive, n_labels = is_exhaustive(model.tune), len(labels)
        run_trial = RunRerankTrial if candidates else RunTrial
        work = run_trial(model.plugin, model.name, tune, k, seed, fold, 1, n_labels, exhaustive)
        baseline = () if limit is None else (self._plan_baseline(context, model, keys, work),)
        read = [context.dataset, context.split, candidates, *labels, *baseline]
        first = self.draft("trial", "", work, read, keys, model, tune.metric, at=model)
        trials = plan_trials(first, work, identity)
        return (*baseline, *trials), plan_search(trials, work)

    def _plan_baseline(
        self, context: DataContext, model: PluginSpec, keys: Keys, work: RunTrial
    ) -> Stage:
        """Return the stage that scores the validation sentences before any training."""
        answer = work.answer_baseline(model.plugin)
        pretrained = replace(model, plugin=answer.model)
        score = AnswerValidationQueries(answer, work.tune.metric)
        title, read = f"score {model.label} without training", [context.dataset, context.split]
        identity = {"seed": work.seed, "fold": work.fold, "outputs": sorted(answer.outputs)}
        return self.place(
            "baseline", title, score, read, keys, pretrained, identity=identity, at=model
        )

    # ---- of a metric ----

    def plan_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        """Return the stage that measures; values by group come from a stage without groups."""
        title = f"measure {metric.label} of {keys.model}"
        if metric.grouping is not None:
            ungrouped = self.plan_metric(context, answer, metric.ungrouped, keys)
            group = GroupMeasurements(metric.name, metric.grouping, metric.plugin.direction)
            grouped, split = [context.queries, ungrouped], {"split": metric.split_settings}
            return self.place("measure", title, group, grouped, keys, identity=split, at=metric)
        choice = self._plan_choice(context, metric)
        source = getattr(context.dataset.work, "source", None)
        compute = ComputeMetric(
            *(metric.plugin, metric.name, answer is not None, choice is not None),
            source if metric.needs & {"odds", "log"} else None,
        )
        labels = context.labels if "items" in metric.needs else ()
        read = [context.dataset, context.split, context.queries, answer, choice, *labels]
        identity = {"seed": keys.seed or 0, "fold": keys.fold or 0}
        return self.place(
            "measure", title, compute, read, keys, metric, identity=identity, at=metric
        )

    def _plan_choice(self, context: DataContext, metric: PluginSpec) -> Stage | None:
        """Return the answer of the model in which a metric chooses members, if it names one."""
        label = self._recall("chooser", metric, make=lambda: find_chooser(metric))
        models = [model for model in self.experiment.models if model.label == label]
        k = self.experiment.k
        return self.plan_outputs(context, models[0], k).answer if models else None


def measures_models(metric: PluginSpec) -> bool:
    """Return whether a metric measures the output of models, and not a dataset alone."""
    return bool(metric.needs & OUTPUTS)


def _get_training_fold(keys: Keys) -> tuple[int, int]:
    """Return the seed and the fold of the split, 1 if the folds are samples of queries."""
    return keys.seed or 0, keys.fold or 1


def _tune(work: TunedWork, model: PluginSpec) -> TunedWork | UseBestSettings:
    """Return the work of a stage, with the settings of the best trial if there is a search."""
    return work if model.tune is None else UseBestSettings(work, model.tune.space)
