"""The stages of one model in one world: search, fit, ask, measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec, identify_plugin, list_input_files
from recbias.core.measurements.columns import DATASET
from recbias.core.protocols import OUTPUTS, ActsAfterFit, ChecksFiles, ReadsModels, Restores
from recbias.runner.planning.plan import DataContext, ModelPlan
from recbias.runner.stage import Keys, Stage, address
from recbias.runner.stages.grouping import SplitFigures
from recbias.runner.stages.model import AnswerQueries, FitModel, MeasureAnswers
from recbias.runner.stages.requirements import cutoff, needs
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.tuning.optuna_sampler import covers
from recbias.runner.tuning.run_trial import RunTrial
from recbias.runner.tuning.search import WithBest, search_stage, trial_stages

BRIEF = 2
"""The trials of a search, at most, in a try that asks only some of the queries."""

NO_MODEL = PluginSpec("models", DATASET, DATASET, None, {}, ())
"""Has the chain of what is measured of a dataset by itself."""


def of_models(metric: PluginSpec) -> bool:
    """Return whether a metric measures what models give, and not a dataset by itself."""
    return bool(needs(metric) & OUTPUTS)


def identity(chosen: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what tells one chosen plug-in from another; where its files lie does not."""
    name, parameters = identify_plugin(chosen, fingerprints.of)
    who: dict[str, object] = {"name": name, "parameters": parameters}
    if isinstance(chosen.plugin, ReadsModels):
        who["files"] = [[each.name, fingerprints.of(each)] for each in chosen.plugin.model_files()]
    return who


def input_files(chosen: PluginSpec, fingerprints: Fingerprints) -> dict[Path, str]:
    """Return the files that a plug-in reads, with the digests that ``identity`` has of them."""
    reads = chosen.plugin.model_files() if isinstance(chosen.plugin, ReadsModels) else ()
    return fingerprints.of_files([*list_input_files(chosen.plugin), *reads])


def learner(chosen: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what tells what one model learns from what another does."""
    who = identity(chosen, fingerprints)
    if not isinstance(chosen.plugin, ActsAfterFit):
        return who
    written = identify_plugin(chosen, fingerprints.of)[1]
    left = {key: each for key, each in written.items() if key not in chosen.plugin.after_fit}
    return who | {"parameters": left}


@dataclass(frozen=True)
class ChainPlanner:
    """Makes the stages of each model.

    Args:
        experiment: What was asked for.
        fingerprints: Digests of input files.
        brief: Whether it is a try, in which searches are short.
    """

    experiment: Experiment
    fingerprints: Fingerprints
    brief: bool = False

    def chains(self, world: DataContext) -> Iterator[ModelPlan]:
        """Yield the chain of each model, then that of the dataset alone where it is measured."""
        for model in self.experiment.models:
            yield self.chain(world, model)
        alone = tuple(each for each in self.experiment.metrics if not of_models(each))
        if alone:
            keys = replace(world.keys, model=DATASET)
            measures = tuple(self._measure(world, None, each, keys) for each in alone)
            yield ModelPlan(world, NO_MODEL, None, None, alone, measures)

    def chain(self, world: DataContext, model: PluginSpec) -> ModelPlan:
        """Return the chain of a model."""
        keys = replace(world.keys, model=model.label)
        trials, search = self._searching(world, model, keys)
        fits = isinstance(model.plugin, Restores)
        fit = self._fit(world, model, search, keys) if fits else None
        answer = self._answer(world, model, search, fit, keys)
        metrics = tuple(each for each in self.experiment.metrics if of_models(each))
        measures = tuple(self._measure(world, answer, metric, keys) for metric in metrics)
        return ModelPlan(world, model, fit, answer, metrics, measures, trials, search)

    def _who(self, chosen: PluginSpec) -> dict[str, object]:
        return identity(chosen, self.fingerprints)

    def _files(self, *chosen: PluginSpec) -> dict[Path, str]:
        return {
            path: sha
            for plugin in chosen
            for path, sha in input_files(plugin, self.fingerprints).items()
        }

    def _place(self, chosen: PluginSpec) -> str:
        return self.experiment.fault(chosen.where, "").where

    def _searching(
        self, world: DataContext, model: PluginSpec, keys: Keys
    ) -> tuple[tuple[Stage, ...], Stage | None]:
        """Return the trials of a model's settings, and the search that chooses of them."""
        if model.tune is None:
            return (), None
        seed, fold, tune = keys.seed or 0, keys.fold or 0, model.tune
        if self.brief:
            tune = replace(tune, trials=min(tune.trials, BRIEF))
        k = cutoff(tune.metric) or self.experiment.k
        who = {
            "model": self._who(model),
            "metric": self._who(tune.metric) | tune.metric.split_settings,
            "space": tune.written["space"],
            "k": k,
            "seed": seed,
            "fold": fold,
        }
        labels = world.labels if "items" in needs(tune.metric) else ()
        work = RunTrial(
            model.plugin,
            model.name,
            tune,
            k,
            seed,
            fold,
            labels=len(labels),
            covering=covers(model.tune),  # a try begins as the whole search does
        )
        made = trial_stages(work, who, (world.dataset, world.split, *labels), keys)
        files = self._files(model, tune.metric)
        trials = tuple(replace(each, place=self._place(model), files=files) for each in made)
        search = search_stage(trials, work, keys)
        return trials, replace(search, place=self._place(model))

    def _fit(
        self, world: DataContext, model: PluginSpec, search: Stage | None, keys: Keys
    ) -> Stage:
        seed, fold = keys.seed or 0, keys.fold or 0
        inputs = (*_some(search), world.dataset, world.split)
        label = self._label_for(model, world)
        work = FitModel(model.plugin, model.name, seed, fold, label)
        model_ = learner(model, self.fingerprints)
        who = {"model": model_, "seed": seed, "fold": fold, "dataset": label}
        return Stage(
            "fit",
            f"fit {model.label}",
            address("fit", identity=who, inputs=inputs, libraries=model.plugin.libraries),
            _tuned(work, model),
            inputs,
            keys,
            self._place(model),
            self._files(model),
        )

    def _answer(
        self,
        world: DataContext,
        model: PluginSpec,
        search: Stage | None,
        fit: Stage | None,
        keys: Keys,
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
            self._files(model),
        )

    def _label_for(self, model: PluginSpec, world: DataContext) -> str:
        """Return the dataset's label where a model reads rows by it; else blank."""
        several = len(self.experiment.datasets) > 1
        return world.keys.dataset if several and isinstance(model.plugin, ChecksFiles) else ""

    def _measure(
        self, world: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
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
            self._files(metric),
        )

    def _split_figures(
        self, world: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
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


def _tuned(
    work: FitModel | AnswerQueries, model: PluginSpec
) -> FitModel | AnswerQueries | WithBest:
    """Return the work of a stage, with the settings of the search where there is one."""
    return work if model.tune is None else WithBest(work, model.tune.space)
