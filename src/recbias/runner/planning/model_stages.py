"""The stages of one model in one data context: search, fit, answer, measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.measurements.columns import DATASET
from recbias.core.protocols import OUTPUTS, ChecksFiles, Restores
from recbias.runner.planning.identity import fingerprint_input_files, identify, identify_learner
from recbias.runner.planning.plan import DataContext, ModelPlan
from recbias.runner.stage import Keys, Stage, assign_address
from recbias.runner.stages.grouping import GroupMeasurements
from recbias.runner.stages.model import AnswerQueries, ComputeMetric, FitModel
from recbias.runner.stages.requirements import get_cutoff, list_needs
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.tuning.run_trial import RunTrial
from recbias.runner.tuning.search import UseBestSettings, plan_search, plan_trials
from recbias.runner.tuning.search_space import is_exhaustive

SMOKE_TEST_TRIALS = 2
"""The largest number of trials in a smoke test."""

NO_MODEL = PluginSpec("models", DATASET, DATASET, None, {}, ())
"""The model of the plan for metrics of a dataset alone."""


def measures_models(metric: PluginSpec) -> bool:
    """Return whether a metric measures the output of models, and not a dataset alone."""
    return bool(list_needs(metric) & OUTPUTS)


@dataclass(frozen=True)
class ModelPlanner:
    """Plans the stages of each model.

    Args:
        experiment: The experiment.
        fingerprints: The digests of input files.
        smoke_test: Whether searches run a few trials only.
    """

    experiment: Experiment
    fingerprints: Fingerprints
    smoke_test: bool = False

    def plan_models(self, context: DataContext) -> Iterator[ModelPlan]:
        """Yield the plan of each model, then that of the metrics of the dataset alone, if any."""
        for model in self.experiment.models:
            yield self.plan_model(context, model)
        metrics = tuple(
            metric for metric in self.experiment.metrics if not measures_models(metric)
        )
        if metrics:
            keys = replace(context.keys, model=DATASET)
            measures = tuple(self._plan_metric(context, None, metric, keys) for metric in metrics)
            yield ModelPlan(context, NO_MODEL, None, None, metrics, measures)

    def plan_model(self, context: DataContext, model: PluginSpec) -> ModelPlan:
        """Return the plan of a model."""
        keys = replace(context.keys, model=model.label)
        trials, search = self._plan_search(context, model, keys)
        restores = isinstance(model.plugin, Restores)
        fit = self._plan_fit(context, model, search, keys) if restores else None
        answer = self._plan_answer(context, model, search, fit, keys)
        metrics = tuple(metric for metric in self.experiment.metrics if measures_models(metric))
        measures = tuple(self._plan_metric(context, answer, metric, keys) for metric in metrics)
        return ModelPlan(context, model, fit, answer, metrics, measures, trials, search)

    def _identify(self, spec: PluginSpec) -> dict[str, object]:
        return identify(spec, self.fingerprints)

    def _list_files(self, *specs: PluginSpec) -> dict[Path, str]:
        files: dict[Path, str] = {}
        for spec in specs:
            files |= fingerprint_input_files(spec, self.fingerprints)
        return files

    def _locate(self, spec: PluginSpec) -> str:
        """Return the location of a plug-in in the spec."""
        return self.experiment.fault(spec.where, "").where

    def _plan_search(
        self, context: DataContext, model: PluginSpec, keys: Keys
    ) -> tuple[tuple[Stage, ...], Stage | None]:
        """Return the trials of a hyperparameter search, and the stage that selects the best."""
        if model.tune is None:
            return (), None
        seed, fold, tune = keys.seed or 0, keys.fold or 0, model.tune
        if self.smoke_test:
            tune = replace(tune, trials=min(tune.trials, SMOKE_TEST_TRIALS))
        k = get_cutoff(tune.metric) or self.experiment.k
        identity = {
            "model": self._identify(model),
            "metric": self._identify(tune.metric) | tune.metric.split_settings,
            "space": tune.written["space"],
            "k": k,
            "seed": seed,
            "fold": fold,
        }
        labels = context.labels if "items" in list_needs(tune.metric) else ()
        work = RunTrial(
            model.plugin,
            model.name,
            tune,
            k,
            seed,
            fold,
            n_labels=len(labels),
            exhaustive=is_exhaustive(
                model.tune
            ),  # a smoke test runs the first trials of the full search
        )
        stages = plan_trials(work, identity, (context.dataset, context.split, *labels), keys)
        location, files = self._locate(model), self._list_files(model, tune.metric)
        trials = tuple(replace(stage, spec_location=location, files=files) for stage in stages)
        search = plan_search(trials, work, keys)
        return trials, replace(search, spec_location=location)

    def _plan_fit(
        self, context: DataContext, model: PluginSpec, search: Stage | None, keys: Keys
    ) -> Stage:
        seed, fold = keys.seed or 0, keys.fold or 0
        dataset = self._get_dataset_label(model, context)
        return assign_address(
            Stage(
                "fit",
                f"fit {model.label}",
                "",
                _tune(FitModel(model.plugin, model.name, seed, fold, dataset), model),
                (*_as_tuple(search), context.dataset, context.split),
                keys,
                spec_location=self._locate(model),
                files=self._list_files(model),
            ),
            identity={
                "model": identify_learner(model, self.fingerprints),
                "seed": seed,
                "fold": fold,
                "dataset": dataset,
            },
            libraries=model.plugin.libraries,
        )

    def _plan_answer(
        self,
        context: DataContext,
        model: PluginSpec,
        search: Stage | None,
        fit: Stage | None,
        keys: Keys,
    ) -> Stage:
        k, seed, fold = self.experiment.k, keys.seed or 0, keys.fold or 0
        dataset = self._get_dataset_label(model, context)
        shared = (context.dataset, context.split, context.queries)
        return assign_address(
            Stage(
                "answer",
                f"ask {model.label}",
                "",
                _tune(AnswerQueries(model.plugin, model.name, k, seed, fold, dataset), model),
                (*_as_tuple(search), *shared, *_as_tuple(fit)),
                keys,
                spec_location=self._locate(model),
                files=self._list_files(model),
            ),
            identity={
                "model": self._identify(model),
                "k": k,
                "seed": seed,
                "fold": fold,
                "dataset": dataset,
            },
            libraries=model.plugin.libraries,
        )

    def _get_dataset_label(self, model: PluginSpec, context: DataContext) -> str:
        """Return the dataset's label if a model selects rows of a file by it, else blank."""
        several = len(self.experiment.datasets) > 1
        return context.keys.dataset if several and isinstance(model.plugin, ChecksFiles) else ""

    def _plan_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        if metric.grouping is not None:
            return self._plan_grouped_metric(context, answer, metric, keys)
        labels = context.labels if "items" in list_needs(metric) else ()
        shared = (context.dataset, context.split, context.queries)
        return assign_address(
            Stage(
                "measure",
                f"measure {metric.label} of {keys.model}",
                "",
                ComputeMetric(metric.plugin, metric.name, answer is not None),
                (*shared, *_as_tuple(answer), *labels),
                keys,
                spec_location=self._locate(metric),
                files=self._list_files(metric),
            ),
            identity={
                "metric": self._identify(metric),
                "seed": keys.seed or 0,
                "fold": keys.fold or 0,
            },
        )

    def _plan_grouped_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        """Return the stage that groups the values of a metric, which another stage measures."""
        ungrouped = replace(metric, grouping=None, label=metric.name)
        measure = self._plan_metric(context, answer, ungrouped, keys)
        work = GroupMeasurements(metric.name, metric.grouping)  # type: ignore[arg-type]  # it has one
        return assign_address(
            Stage(
                "measure",
                f"measure {metric.label} of {keys.model}",
                "",
                work,
                (context.queries, measure),
                keys,
                spec_location=self._locate(metric),
            ),
            identity={"split": metric.split_settings},
        )


def _as_tuple(stage: Stage | None) -> tuple[Stage, ...]:
    return () if stage is None else (stage,)


def _tune(
    work: FitModel | AnswerQueries, model: PluginSpec
) -> FitModel | AnswerQueries | UseBestSettings:
    """Return the work of a stage, with the settings of the best trial if there is a search."""
    return work if model.tune is None else UseBestSettings(work, model.tune.space)
