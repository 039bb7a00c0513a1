"""The stages of one model in one data context: search, fit, answer, re-rank, measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from recbias.config.experiment import PluginSpec
from recbias.config.specs import Reranked
from recbias.core.errors import (
    BrokenContract,
)
from recbias.core.measures import DATASET
from recbias.core.packages import list_libraries
from recbias.core.plugins import OUTPUTS, ChecksFiles, Restores
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.plan import DataContext, ModelPlan, find_chooser, list_missing_outputs
from recbias.runner.stage import Keys, Stage
from recbias.runner.stage_planner import (
    StagePlanner,
    find_learner,
    identify_learner,
    list_devices,
)
from recbias.runner.stages import AnswerQueries, ComputeMetric, FitModel, RerankLists, TakeAnswers
from recbias.runner.tuning import (
    AnswerValidationQueries,
    RunRerankTrial,
    RunTrial,
    ScoreBaseline,
    TunedWork,
    UseBestSettings,
    find_perplexity_limit,
    is_exhaustive,
    plan_search,
    plan_trials,
)

SMOKE_TEST_TRIALS = 2
"""The largest number of trials in a smoke test."""


@dataclass(frozen=True)
class _OutputPlanner(StagePlanner):
    """Plans the stages of a model; a smoke test runs a few trials of a search only."""

    is_smoke_test: bool = False

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
            fit = self._place_model(
                Stage(
                    "fit",
                    f"fit {learner.label}",
                    "",
                    _tune(FitModel(learner.plugin, learner.name, seed, fold, dataset), model),
                    _join_stages(search, context.dataset, context.split),
                    keys,
                ),
                learner,
                identity | {"model": identify_learner(learner, self.fingerprints)},
            )
        answer = self._place_model(
            Stage(
                "answer",
                f"recommend {model.label}",
                "",
                _tune(AnswerQueries(model.plugin, model.name, k, seed, fold, dataset), model),
                _join_stages(search, context.dataset, context.split, context.asked, fit),
                keys,
            ),
            model,
            identity | {"model": self.identify(model), "k": k},
        )
        planned = ModelPlan(context, model, fit, answer, (), (), trials, search)
        return self._take_sample(planned)

    def _take_sample(self, planned: ModelPlan) -> ModelPlan:
        """Return a plan whose answer is that for the queries of the fold."""
        context, model, shared = planned.data_context, planned.model, planned.answer
        if context.sampled is None or shared is None:
            return planned
        keys = replace(shared.keys, fold=context.keys.fold)
        title = f"take sample {keys.fold} of {model.label}"
        inputs = (context.sampled, shared, context.queries)
        answer = self.place(Stage("answer", title, "", TakeAnswers(), inputs, keys), identity={})
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
        shared = (context.dataset, context.split, context.asked)
        rerank = _tune(RerankLists(reranker.plugin, self.experiment.k), model)
        read = _join_stages(search, *shared, candidates, *labels)
        answer = self.place(
            Stage("answer", f"re-rank {model.label}", "", rerank, read, keys, self.locate(model)),
            reranker,
            identity={"reranker": self.identify(reranker), "k": self.experiment.k},
            libraries=tuple(reranker.plugin.libraries),
        )
        planned = ModelPlan(
            *(context, model, base.fit, answer, (), (), trials, search),
            candidates=_join_stages(validation, candidates),
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
        ask = AnswerValidationQueries(
            *(asked.plugin, asked.name, n, seed, fold, model.tune.metric, keys.dataset)
        )
        return self._place_model(
            Stage(
                "answer",
                f"recommend {asked.label}, {n} candidates of the validation users",
                "",
                _tune(ask, asked),
                _join_stages(base.search, context.dataset, context.split, base.fit),
                keys,
            ),
            asked,
            {"model": self.identify(asked), "k": n, "seed": seed, "fold": fold},
        )

    def _place_model(
        self, stage: Stage, model: PluginSpec, identity: Mapping[str, object]
    ) -> Stage:
        location, devices = self.locate(model), list_devices(model.plugin)
        stage = replace(stage, spec_location=location, devices=devices)
        return self.place(stage, model, identity=identity, libraries=list_libraries(model.plugin))

    def locate(self, spec: PluginSpec) -> str:
        """Return the entry of a plug-in in the spec: ``FILE:LINE:COLUMN: models[0]``."""
        location: str = self.recall(
            "location", spec, make=lambda: self.experiment.fault(spec.where, "").where
        )
        return location

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
        if self.is_smoke_test:
            tune = replace(tune, trials=min(tune.trials, SMOKE_TEST_TRIALS))
        k, limit = (
            tune.metric.cutoff or self.experiment.k,
            find_perplexity_limit(tune, model.plugin),
        )
        identity = {
            "model": self.identify(model),
            "metric": self.identify(tune.metric) | tune.metric.split_settings,
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
        files = self.list_files(model, tune.metric)
        baseline = () if limit is None else (self._plan_baseline(context, model, keys, work),)
        first = Stage(
            "trial",
            "",
            "",
            work,
            _join_stages(context.dataset, context.split, candidates, *labels, *baseline),
            keys,
            self.locate(model),
            files,
            list_devices(model.plugin),
            **self.describe(model),
        )
        trials = plan_trials(first, work, identity)
        return (*baseline, *trials), plan_search(trials, work)

    def _plan_baseline(
        self, context: DataContext, model: PluginSpec, keys: Keys, work: RunTrial
    ) -> Stage:
        """Return the stage that scores the validation sentences before any training."""
        answer = work.answer_baseline(model.plugin)
        pretrained = replace(model, plugin=answer.model)
        stage = Stage(
            "baseline",
            f"score {model.label} without training",
            "",
            ScoreBaseline(answer, work.tune.metric),
            (context.dataset, context.split),
            keys,
        )
        identity = {"seed": work.seed, "fold": work.fold, "outputs": sorted(answer.outputs)}
        return self._place_model(
            stage, pretrained, identity | {"model": self.identify(pretrained)}
        )


def _get_training_fold(keys: Keys) -> tuple[int, int]:
    """Return the seed and the fold of the split, 1 if the folds are samples of queries."""
    return keys.seed or 0, keys.fold or 1


def _join_stages(*stages: Stage | None) -> tuple[Stage, ...]:
    """Return the stages that are there."""
    return tuple(filter(None, stages))


def _tune(work: TunedWork, model: PluginSpec) -> TunedWork | UseBestSettings:
    """Return the work of a stage, with the settings of the best trial if there is a search."""
    return work if model.tune is None else UseBestSettings(work, model.tune.space)


_NO_MODEL = PluginSpec("models", DATASET, DATASET, None, {}, ())
"""The model of the plan for metrics of a dataset alone."""


def measures_models(metric: PluginSpec) -> bool:
    """Return whether a metric measures the output of models, and not a dataset alone."""
    return bool(metric.needs & OUTPUTS)


@dataclass(frozen=True)
class ModelPlanner(_OutputPlanner):
    """Plans the stages of each model, with those that measure it."""

    def plan_models(self, context: DataContext) -> Iterator[ModelPlan]:
        """Yield the plan of each model, then that of the metrics of the dataset alone, if any."""
        for model in self.experiment.models:
            yield self._plan_model(context, model)
        metrics = [metric for metric in self.experiment.metrics if not measures_models(metric)]
        if metrics:
            keys = replace(context.keys, model=DATASET)
            measures = tuple(self.plan_metric(context, None, metric, keys) for metric in metrics)
            yield ModelPlan(context, _NO_MODEL, None, None, tuple(metrics), measures)

    def _plan_model(self, context: DataContext, model: PluginSpec) -> ModelPlan:
        planned = self.plan_outputs(context, model, self.experiment.k)
        keys = replace(context.training_keys, model=model.label, fold=context.keys.fold)
        metrics = tuple(
            metric
            for metric in self.experiment.metrics
            if measures_models(metric) and not list_missing_outputs(metric, model)
        )
        measures = tuple(
            self.plan_metric(context, planned.answer, metric, keys) for metric in metrics
        )
        return replace(planned, metrics=metrics, measures=measures)

    def _plan_choice(self, context: DataContext, metric: PluginSpec) -> Stage | None:
        """Return the answer of the model in which a metric chooses members, if it names one."""
        label = self.recall("chooser", metric, make=lambda: find_chooser(metric))
        if label is None:
            return None
        models = [model for model in self.experiment.models if model.label == label]
        k = self.experiment.k
        return self.plan_outputs(context, models[0], k).answer if models else None

    def plan_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        """Return the stage that measures; values by group come from a stage without groups."""
        title = f"measure {metric.label} of {keys.model}"
        if metric.grouping is not None:
            ungrouped = self.plan_metric(context, answer, metric.ungrouped, keys)
            group = GroupMeasurements(metric.name, metric.grouping, metric.plugin.direction)
            read = (context.queries, ungrouped)
            stage = Stage("measure", title, "", group, read, keys, self.locate(metric))
            return self.place(stage, identity={"split": metric.split_settings})
        choice = self._plan_choice(context, metric)
        source = getattr(context.dataset.work, "source", None)
        world = source if metric.needs & {"odds", "log"} else None
        compute = ComputeMetric(
            metric.plugin, metric.name, answer is not None, choice is not None, world
        )
        labels = context.labels if "items" in metric.needs else ()
        shared = (context.dataset, context.split, context.queries)
        inputs = _join_stages(*shared, answer, choice, *labels)
        return self.place(
            Stage("measure", title, "", compute, inputs, keys, self.locate(metric)),
            metric,
            identity={
                "metric": self.identify(metric),
                "seed": keys.seed or 0,
                "fold": keys.fold or 0,
            },
            libraries=self.recall("libraries", metric, make=lambda: list_libraries(metric.plugin)),
        )
