"""The plan of a run: its stages, by dataset, seed and fold, and by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.protocols import OUTPUTS
from recbias.runner.stage import Keys, Stage


@dataclass(frozen=True)
class Options:
    """What the command line adds to an experiment.

    Args:
        limit: Evaluate only this many queries, in a smoke test.
    """

    data: Path
    limit: int | None = None


@dataclass(frozen=True)
class DataContext:
    """One fold of one dataset under one seed: the stages that all its models share."""

    dataset: Stage
    split: Stage
    queries: Stage
    labels: tuple[Stage, ...] = ()

    @property
    def keys(self) -> Keys:
        """The dataset's label, the seed and the fold."""
        return self.queries.keys


@dataclass(frozen=True)
class ModelPlan:
    """The stages of one model in one data context.

    Metrics of a dataset alone, such as the agreement of two detectors, have a plan of their own
    under the name ``(dataset)``, without an answer.

    Args:
        fit: Training, None if the learned state cannot be stored.
        answer: The model's output for the queries, None for a dataset alone.
    """

    data_context: DataContext
    model: PluginSpec
    fit: Stage | None
    answer: Stage | None
    metrics: tuple[PluginSpec, ...]
    measures: tuple[Stage, ...]
    trials: tuple[Stage, ...] = ()
    search: Stage | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order."""
        model_stages = (self.search, self.fit, self.answer)
        return (*self.trials, *filter(None, model_stages), *self.measuring)

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


def list_missing_outputs(metric: PluginSpec, model: PluginSpec) -> list[str]:
    """Return the outputs that a metric needs and a model does not provide."""
    return sorted((metric.needs & OUTPUTS) - model.plugin.provides)


@dataclass(frozen=True)
class Plan:
    """All stages of a run.

    Args:
        data_contexts: One for each dataset, seed and fold, in this order.
        model_plans: One for each data context and model, in this order.
        files: The digest of each input file of each dataset, by label.
        spec_digest: The digest of the resolved spec.
    """

    experiment: Experiment
    options: Options
    data_contexts: tuple[DataContext, ...]
    model_plans: tuple[ModelPlan, ...]
    files: Mapping[str, Mapping[str, str]]
    spec_digest: str

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage once, after the stages that it depends on."""
        stages: list[Stage] = []
        for context in self.data_contexts:
            stages += [context.dataset, *context.labels, context.split, context.queries]
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
