"""From an experiment to its stages, each with its address; nothing is worked out here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import Chosen, ChosenDataset, Experiment, identified
from recbias.core.columns import DATASET
from recbias.core.digests import digest
from recbias.core.errors import Faults, UserError
from recbias.core.protocols import ChecksFiles, Restores
from recbias.runner.agreement import OUTPUTS, check, cutoff, needs
from recbias.runner.fingerprints import Fingerprints
from recbias.runner.search import WithBest, search_stage, trial_stages
from recbias.runner.splitting import SplitFigures
from recbias.runner.stage import Keys, Stage, address
from recbias.runner.trials import RunTrial
from recbias.runner.work import (
    AnswerQueries,
    AskQueries,
    DivideDataset,
    FitModel,
    LabelItems,
    LoadDataset,
    MeasureAnswers,
)

NO_MODEL = Chosen("models", DATASET, DATASET, None, {}, ())
"""Has the chain of what is measured of a dataset by itself."""


def of_models(metric: Chosen) -> bool:
    """Return whether a metric measures what models give, and not a dataset by itself."""
    return bool(needs(metric) & OUTPUTS)


@dataclass(frozen=True)
class Options:
    """What the command line adds to an experiment.

    Args:
        data: The folder of datasets.
        limit: Ask only the first so many queries.
    """

    data: Path
    limit: int | None = None


@dataclass(frozen=True)
class World:
    """One fold of one dataset under one seed: what every model on it shares.

    Args:
        dataset: Reads and filters.
        split: Divides.
        queries: Says who is asked.
        labels: Labels its items, one stage a detector.
    """

    dataset: Stage
    split: Stage
    queries: Stage
    labels: tuple[Stage, ...] = ()

    @property
    def keys(self) -> Keys:
        """The dataset's label, the seed and the fold."""
        return self.queries.keys


@dataclass(frozen=True)
class Chain:
    """One model in one world: the stages that no other model shares.

    What is measured of a dataset alone (how far two detectors agree) has a chain of its own,
    under the name ``(dataset)`` and without an answer.

    Args:
        world: What it stands on.
        model: The model.
        fit: Training, None where what is learned cannot be stored.
        answer: Lists and vectors; None where nothing is asked.
        metrics: What is measured, in the order of the spec.
        measures: One stage a metric.
        trials: What is tried before the training, where settings are searched for.
        search: Chooses of the trials; None where nothing is searched for.
    """

    world: World
    model: Chosen
    fit: Stage | None
    answer: Stage | None
    metrics: tuple[Chosen, ...]
    measures: tuple[Stage, ...]
    trials: tuple[Stage, ...] = ()
    search: Stage | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order."""
        first = [each for each in (self.search, self.fit, self.answer) if each is not None]
        return (*self.trials, *first, *self.measuring)

    @property
    def measuring(self) -> tuple[Stage, ...]:
        """The stages that measure, each once: what is split by a label before its parts."""
        wholes = (each for part in self.measures for each in part.inputs if each.kind == "measure")
        return tuple({each.digest: each for each in (*wholes, *self.measures)}.values())


@dataclass(frozen=True)
class Plan:
    """All stages of a run.

    Args:
        experiment: What was asked for.
        options: What the command line added.
        worlds: One for each dataset, seed and fold, in this order.
        chains: One for each world and model, in this order.
        files: Digest of each input file of each dataset, by label.
        spec_digest: The hash of the resolved spec.
    """

    experiment: Experiment
    options: Options
    worlds: tuple[World, ...]
    chains: tuple[Chain, ...]
    files: Mapping[str, Mapping[str, str]]
    spec_digest: str

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage once, inputs before what needs them."""
        shared = [
            stage
            for each in self.worlds
            for stage in (each.dataset, *each.labels, each.split, each.queries)
        ]
        own = [stage for chain in self.chains for stage in chain.stages]
        return tuple({stage.digest: stage for stage in [*shared, *own]}.values())


def make_plan(experiment: Experiment, options: Options, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Its parts do not meet, or a file that it needs is not there.
    """
    check(experiment)
    files = _input_files(experiment, options, fingerprints)
    planner = _Planner(experiment, options, fingerprints, files)
    worlds = tuple(
        planner.world(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(_folds(experiment))
    )
    chains = tuple(chain for world in worlds for chain in planner.chains(world))
    spec_digest = digest(experiment.identity(fingerprints.of))
    return Plan(experiment, options, worlds, chains, files, spec_digest)


def identity(chosen: Chosen, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what tells one chosen plug-in from another; where its files lie does not."""
    name, parameters = identified(chosen, fingerprints.of)
    return {"name": name, "version": chosen.plugin.version, "parameters": parameters}


def _folds(experiment: Experiment) -> int:
    return int(experiment.split.plugin.folds) if experiment.split else 1


def _input_files(
    experiment: Experiment, options: Options, fingerprints: Fingerprints
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    faults: list[UserError] = []
    for dataset in experiment.datasets:
        try:
            paths = dataset.source.plugin.files(options.data)
        except UserError as error:
            where = dataset.source.where
            faults.append(experiment.fault(where, str(error), remedy=error.remedy))
            continue
        found[dataset.label] = {path.name: fingerprints.of(path) for path in paths}
    if faults:
        raise Faults(faults)
    return found


@dataclass(frozen=True)
class _Planner:
    experiment: Experiment
    options: Options
    fingerprints: Fingerprints
    files: Mapping[str, Mapping[str, str]]

    def world(self, dataset: ChosenDataset, seed: int, fold: int) -> World:
        loaded = self._dataset(dataset, seed)
        split = self._split(loaded, seed, fold)
        labels = tuple(self._label(loaded, each) for each in self.experiment.labels)
        return World(loaded, split, self._queries(loaded, split), labels)

    def chains(self, world: World) -> Iterator[Chain]:
        """Yield the chain of each model, then that of the dataset alone where it is measured."""
        for model in self.experiment.models:
            yield self.chain(world, model)
        alone = tuple(each for each in self.experiment.metrics if not of_models(each))
        if alone:
            keys = replace(world.keys, model=DATASET)
            measures = tuple(self._measure(world, None, each, keys) for each in alone)
            yield Chain(world, NO_MODEL, None, None, alone, measures)

    def chain(self, world: World, model: Chosen) -> Chain:
        keys = replace(world.keys, model=model.label)
        trials, search = self._searching(world, model, keys)
        fits = isinstance(model.plugin, Restores)
        fit = self._fit(world, model, search, keys) if fits else None
        answer = self._answer(world, model, search, fit, keys)
        metrics = tuple(each for each in self.experiment.metrics if of_models(each))
        measures = tuple(self._measure(world, answer, metric, keys) for metric in metrics)
        return Chain(world, model, fit, answer, metrics, measures, trials, search)

    def _who(self, chosen: Chosen) -> dict[str, object]:
        return identity(chosen, self.fingerprints)

    def _place(self, chosen: Chosen) -> str:
        return self.experiment.fault(chosen.where, "").where

    def _dataset(self, dataset: ChosenDataset, seed: int) -> Stage:
        who = {
            "source": self._who(dataset.source),
            "files": self.files[dataset.label],
            "filters": [self._who(each) for each in dataset.filters],
            "seed": seed,
        }
        filters = tuple(each.plugin for each in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data, seed)
        title = f"load {dataset.label}"
        return Stage(
            "dataset",
            title,
            address("dataset", identity=who),
            work,
            (),
            Keys(dataset.label, seed),
        )

    def _label(self, loaded: Stage, detector: Chosen) -> Stage:
        seed = loaded.keys.seed or 0
        who = {"detector": self._who(detector), "label": detector.label, "seed": seed}
        return Stage(
            "label",
            f"label {loaded.keys.dataset} by {detector.label}",
            address(
                "label",
                identity=who,
                inputs=(loaded,),
                libraries=detector.plugin.libraries,
            ),
            LabelItems(detector.plugin, detector.label, seed),
            (loaded,),
            loaded.keys,
        )

    def _split(self, loaded: Stage, seed: int, fold: int) -> Stage:
        splitter = self.experiment.split
        who = {"split": self._who(splitter) if splitter else None, "seed": seed, "fold": fold}
        work = DivideDataset(splitter.plugin if splitter else None, fold, seed)
        keys = replace(loaded.keys, fold=fold + 1)
        title = f"split {keys.dataset}"
        return Stage(
            "split", title, address("split", identity=who, inputs=(loaded,)), work, (loaded,), keys
        )

    def _queries(self, loaded: Stage, split: Stage) -> Stage:
        source, seed = self.experiment.queries, split.keys.seed or 0
        needed = any("lists" in each.plugin.provides for each in self.experiment.models)
        who = {
            "queries": self._who(source),
            "seed": seed,
            "limit": self.options.limit,
            "needed": needed,
        }
        inputs = (loaded, split)
        return Stage(
            "queries",
            f"ask {split.keys.dataset}",
            address("queries", identity=who, inputs=inputs),
            AskQueries(source.plugin, seed, self.options.limit, needed),
            inputs,
            split.keys,
        )

    def _searching(
        self, world: World, model: Chosen, keys: Keys
    ) -> tuple[tuple[Stage, ...], Stage | None]:
        """Return the trials of a model's settings, and the search that chooses of them."""
        if model.tune is None:
            return (), None
        seed, fold, tune = keys.seed or 0, keys.fold or 0, model.tune
        k = cutoff(tune.metric) or self.experiment.k
        who = {
            "model": self._who(model),
            "metric": self._who(tune.metric),
            "space": tune.written["space"],
            "k": k,
            "seed": seed,
            "fold": fold,
        }
        work = RunTrial(model.plugin, model.name, tune, k, seed, fold)
        made = trial_stages(work, who, (world.dataset, world.split), keys)
        trials = tuple(replace(each, place=self._place(model)) for each in made)
        search = search_stage(trials, tune.metric.direction, keys)
        return trials, replace(search, place=self._place(model))

    def _fit(self, world: World, model: Chosen, search: Stage | None, keys: Keys) -> Stage:
        seed, fold = keys.seed or 0, keys.fold or 0
        inputs = (*_some(search), world.dataset, world.split)
        label = self._label_for(model, world)
        work = FitModel(model.plugin, model.name, seed, fold, label)
        who = {"model": self._who(model), "seed": seed, "fold": fold, "dataset": label}
        return Stage(
            "fit",
            f"fit {model.label}",
            address("fit", identity=who, inputs=inputs, libraries=model.plugin.libraries),
            _tuned(work, model),
            inputs,
            keys,
            self._place(model),
        )

    def _answer(
        self, world: World, model: Chosen, search: Stage | None, fit: Stage | None, keys: Keys
    ) -> Stage:
        seed, fold = keys.seed or 0, keys.fold or 0
        inputs = (*_some(search), world.dataset, world.split, world.queries, *_some(fit))
        k, label = self.experiment.k, self._label_for(model, world)
        work = AnswerQueries(model.plugin, model.name, k, seed, fold, label)
        who = {"model": self._who(model), "k": k, "seed": seed, "fold": fold, "dataset": label}
        return Stage(
            "answer",
            f"ask {model.label}",
            address("answer", identity=who, inputs=inputs, libraries=model.plugin.libraries),
            _tuned(work, model),
            inputs,
            keys,
            self._place(model),
        )

    def _label_for(self, model: Chosen, world: World) -> str:
        """Return the dataset's label where a model reads rows by it; else blank."""
        several = len(self.experiment.datasets) > 1
        return world.keys.dataset if several and isinstance(model.plugin, ChecksFiles) else ""

    def _measure(self, world: World, answer: Stage | None, metric: Chosen, keys: Keys) -> Stage:
        if metric.grouping is not None:
            return self._split_figures(world, answer, metric, keys)
        labels = world.labels if "items" in needs(metric) else ()
        asked = () if answer is None else (answer,)
        inputs = (world.dataset, world.split, world.queries, *asked, *labels)
        who = {"metric": self._who(metric), "seed": keys.seed or 0, "fold": keys.fold or 0}
        return Stage(
            "measure",
            f"measure {metric.label} of {keys.model}",
            address("measure", identity=who, inputs=inputs),
            MeasureAnswers(metric.plugin, metric.name, answer is not None),
            inputs,
            keys,
            self._place(metric),
        )

    def _split_figures(
        self, world: World, answer: Stage | None, metric: Chosen, keys: Keys
    ) -> Stage:
        """Return the stage that splits a metric, which a stage of its own measures."""
        whole = replace(metric, grouping=None, label=metric.name)
        measured = self._measure(world, answer, whole, keys)
        inputs = (world.queries, measured)
        return Stage(
            "measure",
            f"measure {metric.label} of {keys.model}",
            address("measure", identity={"split": metric.split_settings}, inputs=inputs),
            SplitFigures(metric.name, metric.grouping),  # type: ignore[arg-type]  # it has one
            inputs,
            keys,
            self._place(metric),
        )


def _some(stage: Stage | None) -> tuple[Stage, ...]:
    return () if stage is None else (stage,)


def _tuned(work: FitModel | AnswerQueries, model: Chosen) -> FitModel | AnswerQueries | WithBest:
    """Return the work of a stage, with the settings of the search where there is one."""
    return work if model.tune is None else WithBest(work, model.tune.space)
