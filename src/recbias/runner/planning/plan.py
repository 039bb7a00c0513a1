"""The plan of a run: its stages, by dataset, seed and fold, and by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.models.member_choice import BorrowsEmbeddings, ChoosesMembers
from recbias.core.protocols import OUTPUTS
from recbias.core.queries.queries import AsksInFolds
from recbias.runner.options import RunOptions
from recbias.runner.planning.plugin_declarations import list_undocumented
from recbias.runner.stage import Keys, Stage


@dataclass(frozen=True)
class DataContext:
    """One fold of one dataset under one seed: the stages that all its models share.

    Args:
        sampled: The queries of all folds, if the folds are samples of queries; else None.
    """

    dataset: Stage
    split: Stage
    queries: Stage
    labels: tuple[Stage, ...] = ()
    sampled: Stage | None = None

    @property
    def keys(self) -> Keys:
        """The dataset's label, the seed and the fold."""
        return self.queries.keys

    @property
    def asked(self) -> Stage:
        """The queries that models are run on: those of all folds, if the folds are samples."""
        return self.sampled or self.queries

    @property
    def training_keys(self) -> Keys:
        """The keys of training: without a fold if the folds are samples of queries."""
        return self.split.keys

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order."""
        queries = (self.sampled, self.queries) if self.sampled else (self.queries,)
        return (self.dataset, *self.labels, self.split, *queries)


@dataclass(frozen=True)
class ModelPlan:
    """The stages of one model in one data context.

    Metrics of a dataset alone, such as the agreement of two detectors, have a plan of their own
    under the name ``(dataset)``, without an answer.

    Args:
        fit: Training, None if the learned state cannot be stored.
        answer: The model's output for the queries, None for a dataset alone.
        shared_answer: The output for the queries of all folds, from which ``answer`` is taken, if
            the folds are samples of queries; else None.
        trials: The trials of a search, after the baseline that these are compared with, if any.
        candidates: The stages that ask for the lists to re-rank, for the users with validation
            rows and for the queries; empty for a model by itself.
        rounds: The plans of the rounds of feedback after the first, which is this plan.
    """

    data_context: DataContext
    model: PluginSpec
    fit: Stage | None
    answer: Stage | None
    metrics: tuple[PluginSpec, ...]
    measures: tuple[Stage, ...]
    trials: tuple[Stage, ...] = ()
    search: Stage | None = None
    shared_answer: Stage | None = None
    candidates: tuple[Stage, ...] = ()
    rounds: tuple[ModelPlan, ...] = ()

    @property
    def asking(self) -> Stage | None:
        """The stage that runs queries on the model."""
        return self.shared_answer or self.answer

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order, those of later rounds last."""
        later = [
            stage for plan in self.rounds for stage in (plan.data_context.split, *plan.stages)
        ]
        return (*self.own_stages, *later)

    @property
    def own_stages(self) -> tuple[Stage, ...]:
        """The stages of its first round, in order."""
        fit = filter(None, (self.fit,))
        answers = filter(None, (self.shared_answer, self.answer))
        search = (*self.trials, *filter(None, (self.search,)))
        if self.candidates:  # the model is trained before a re-ranker is searched
            return (*fit, *self.candidates, *search, *answers, *self.measuring)
        return (*search, *fit, *answers, *self.measuring)

    @property
    def choices(self) -> tuple[Stage, ...]:
        """The answers of other models by which metrics choose members."""
        answers = [
            stage
            for measure in self.measures
            for stage in measure.inputs
            if stage.kind == "answer" and stage != self.answer
        ]
        return tuple({stage.digest: stage for stage in answers}.values())

    @property
    def measuring(self) -> tuple[Stage, ...]:
        """The stages that measure, each once: a metric before its values by group."""
        ungrouped = [
            stage
            for measure in self.measures
            for stage in measure.inputs
            if stage.kind == "measure"
        ]
        return tuple({stage.digest: stage for stage in (*ungrouped, *self.measures)}.values())


def may_lack_files(source: object) -> bool:
    """Return whether absent files of a dataset are skipped: ``missing: skip``."""
    return getattr(source, "missing", "error") == "skip"


def count_query_folds(experiment: Experiment) -> int:
    """Return into how many disjoint samples the queries are divided, 1 for a single one."""
    source = experiment.queries.plugin
    return source.folds if isinstance(source, AsksInFolds) else 1


def list_missing_outputs(metric: PluginSpec, model: PluginSpec) -> list[str]:
    """Return the outputs that a metric needs and a model does not provide."""
    return sorted((metric.needs & OUTPUTS) - model.plugin.provides)


def find_chooser(metric: PluginSpec) -> str | None:
    """Return the label of the other model whose embeddings a metric uses, or None."""
    plugin = metric.plugin
    if isinstance(plugin, BorrowsEmbeddings):
        return plugin.embeddings_of
    return plugin.chosen_in if isinstance(plugin, ChoosesMembers) else None


@dataclass(frozen=True)
class Plan:
    """All stages of a run.

    Args:
        data_contexts: One for each dataset, seed and fold, in this order.
        model_plans: One for each data context and model, in this order.
        files: The digest of each input file of each dataset, by label.
        spec_digest: The digest of the resolved spec.
        skipped: A warning about the datasets of the spec that are skipped, if there are any.
    """

    experiment: Experiment
    options: RunOptions
    data_contexts: tuple[DataContext, ...]
    model_plans: tuple[ModelPlan, ...]
    files: Mapping[str, Mapping[str, str]]
    spec_digest: str
    skipped: tuple[str, ...] = ()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage once, after the stages that it depends on."""
        stages: list[Stage] = []
        for context in self.data_contexts:
            stages += context.stages
        for model_plan in self.model_plans:
            stages += model_plan.stages
        return tuple({stage.digest: stage for stage in stages}.values())

    @property
    def undefined(self) -> tuple[tuple[PluginSpec, PluginSpec, str], ...]:
        """Each metric and model without its evidence, with the missing outputs."""
        return tuple(
            (metric, model, ", ".join(missing))
            for metric in self.experiment.metrics
            for model in self.experiment.models
            if (missing := list_missing_outputs(metric, model))
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is worth knowing before the run: skipped datasets, metrics without a formula."""
        return (*self.skipped, *list_undocumented(self.experiment))
