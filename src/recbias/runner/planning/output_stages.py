"""The stages of a model in one data context without its metrics: search, fit, answer, re-rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recbias.config.experiment import PluginSpec
from recbias.config.plugin_spec import Reranked
from recbias.core.errors import BrokenContract
from recbias.core.packages import list_libraries
from recbias.core.protocols import ChecksFiles, Restores
from recbias.runner.planning.devices import list_devices
from recbias.runner.planning.plan import DataContext, ModelPlan
from recbias.runner.planning.stage_planner import StagePlanner, find_learner, identify_learner
from recbias.runner.stage import Keys, Stage
from recbias.runner.stages.model import AnswerQueries, FitModel, TakeAnswers
from recbias.runner.stages.rerank import RerankLists
from recbias.runner.tuning.rerank_trial import AnswerValidationQueries, RunRerankTrial
from recbias.runner.tuning.run_trial import RunTrial, ScoreBaseline, find_perplexity_limit
from recbias.runner.tuning.search import TunedWork, UseBestSettings, plan_search, plan_trials
from recbias.runner.tuning.search_space import is_exhaustive

SMOKE_TEST_TRIALS = 2
"""The largest number of trials in a smoke test."""


@dataclass(frozen=True)
class OutputPlanner(StagePlanner):
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
                    join_stages(search, context.dataset, context.split),
                    keys,
                ),
                learner,
                identity | {"model": identify_learner(learner, self.fingerprints)},
            )
        answer = self._place_model(
            Stage(
                "answer",
                f"ask {model.label}",
                "",
                _tune(AnswerQueries(model.plugin, model.name, k, seed, fold, dataset), model),
                join_stages(search, context.dataset, context.split, context.asked, fit),
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
        candidates = replace(base.asking, title=f"ask {reranked.base.label} for {n} candidates")
        validation = self._plan_validation(context, model, base, n)
        searched = replace(reranker, label=model.label, tune=model.tune)
        trials, search = self._plan_search(context, searched, keys, validation)
        labels = context.labels if "items" in reranker.plugin.needs else ()
        shared = (context.dataset, context.split, context.asked)
        rerank = _tune(RerankLists(reranker.plugin, self.experiment.k), model)
        read = join_stages(search, *shared, candidates, *labels)
        answer = self.place(
            Stage("answer", f"re-rank {model.label}", "", rerank, read, keys, self.locate(model)),
            reranker,
            identity={"reranker": self.identify(reranker), "k": self.experiment.k},
            libraries=tuple(reranker.plugin.libraries),
        )
        planned = ModelPlan(
            *(context, model, base.fit, answer, (), (), trials, search),
            candidates=join_stages(validation, candidates),
        )
        return self._take_sample(planned)

    def _plan_validation(
        self, context: DataContext, model: PluginSpec, base: ModelPlan, n: int
    ) -> Stage | None:
        """Return the stage that asks a model for the candidates of the users with validation rows.

        None without a search of the re-ranker.
        """
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
                f"ask {asked.label} for {n} candidates of the validation users",
                "",
                _tune(ask, asked),
                join_stages(base.search, context.dataset, context.split, base.fit),
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
        """Return the trials of a hyperparameter search, and the stage that selects the best.

        Those of a re-ranker read the candidates that it re-ranks. Before the trials is their
        baseline, if they are compared with one.
        """
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
            join_stages(context.dataset, context.split, candidates, *labels, *baseline),
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


def join_stages(*stages: Stage | None) -> tuple[Stage, ...]:
    """Return the stages that are there."""
    return tuple(filter(None, stages))


def _tune(work: TunedWork, model: PluginSpec) -> TunedWork | UseBestSettings:
    """Return the work of a stage, with the settings of the best trial if there is a search."""
    return work if model.tune is None else UseBestSettings(work, model.tune.space)
