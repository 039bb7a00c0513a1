"""The stages of one model in one data context: search, fit, answer, measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from recbias.config.experiment import PluginSpec
from recbias.core.measurements.columns import DATASET
from recbias.core.packages import list_libraries
from recbias.core.protocols import OUTPUTS
from recbias.runner.planning.output_stages import OutputPlanner, join_stages
from recbias.runner.planning.plan import (
    DataContext,
    ModelPlan,
    find_chooser,
    list_missing_outputs,
)
from recbias.runner.planning.round_stages import get_world, plan_rounds
from recbias.runner.planning.stage_planner import StageFacts
from recbias.runner.source_digest import digest_sources
from recbias.runner.stage import Keys, Stage
from recbias.runner.stages.grouping import GroupMeasurements
from recbias.runner.stages.model import ComputeMetric

NO_MODEL = PluginSpec("models", DATASET, DATASET, None, {}, ())
"""The model of the plan for metrics of a dataset alone."""


def measures_models(metric: PluginSpec) -> bool:
    """Return whether a metric measures the output of models, and not a dataset alone."""
    return bool(metric.needs & OUTPUTS)


@dataclass(frozen=True)
class _Measure:
    """What the stages of a metric in one data context share.

    These two are kept, as their identities, by which this is found, would be used again.

    Args:
        location: The entry of the metric in the spec.
        before: Their inputs before the answer of the model.
        after: Those after it.
    """

    data_context: DataContext
    metric: PluginSpec
    location: str
    work: ComputeMetric
    facts: StageFacts
    before: tuple[Stage, ...]
    after: tuple[Stage, ...]


@dataclass(frozen=True)
class ModelPlanner(OutputPlanner):
    """Plans the stages of each model, with those that measure it."""

    _measures: dict[tuple[object, ...], _Measure] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def plan_models(self, context: DataContext) -> Iterator[ModelPlan]:
        """Yield the plan of each model, then that of the metrics of the dataset alone, if any."""
        feedback = self.experiment.feedback
        for model in self.experiment.models:
            planned = self._plan_model(context, model)
            if feedback is not None:
                rounds = plan_rounds(planned, feedback, self._plan_model, self.place)
                planned = replace(planned, rounds=tuple(rounds))
            yield planned
        metrics = [metric for metric in self.experiment.metrics if not measures_models(metric)]
        if metrics:
            keys = replace(context.keys, model=DATASET)
            measures = tuple(self._plan_metric(context, None, metric, keys) for metric in metrics)
            yield ModelPlan(context, NO_MODEL, None, None, tuple(metrics), measures)

    def _plan_model(self, context: DataContext, model: PluginSpec) -> ModelPlan:
        planned = self.plan_outputs(context, model, self.experiment.k)
        keys = replace(context.training_keys, model=model.label, fold=context.keys.fold)
        metrics = tuple(
            metric
            for metric in self.experiment.metrics
            if measures_models(metric) and not list_missing_outputs(metric, model)
        )
        measures = tuple(
            self._plan_metric(context, planned.answer, metric, keys) for metric in metrics
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

    def _gather_measure(
        self, context: DataContext, metric: PluginSpec, keys: Keys, *, has_answer: bool
    ) -> _Measure:
        """Return what the stages of a data context that measure by a metric have in common."""
        choice = self._plan_choice(context, metric)
        world = get_world(context) if "odds" in metric.needs else None
        compute = ComputeMetric(metric.plugin, metric.name, has_answer, choice is not None, world)
        seed, fold = keys.seed or 0, keys.fold or 0
        facts: StageFacts = self.recall(
            f"facts {seed} {fold} {world is not None}",
            metric,
            make=lambda: self.gather_facts(
                metric,
                identity={"metric": self.identify(metric), "seed": seed, "fold": fold},
                libraries=list_libraries(metric.plugin),
                code="" if world is not None else digest_sources(compute),
            ),
        )
        labels = context.labels if "items" in metric.needs else ()
        before = (context.dataset, context.split, context.queries)
        after = join_stages(choice, *labels)
        return _Measure(context, metric, self.locate(metric), compute, facts, before, after)

    def _plan_metric(
        self, context: DataContext, answer: Stage | None, metric: PluginSpec, keys: Keys
    ) -> Stage:
        """Return the stage that measures; values by group come from a stage without groups."""
        title = f"measure {metric.label} of {keys.model}"
        if metric.grouping is not None:
            ungrouped = self._plan_metric(context, answer, metric.ungrouped, keys)
            inputs = (context.queries, ungrouped)
            group = GroupMeasurements(metric.name, metric.grouping, metric.plugin.direction)
            stage = Stage("measure", title, "", group, inputs, keys, self.locate(metric))
            return self.place(stage, identity={"split": metric.split_settings})
        has_answer = answer is not None
        key = id(context), id(metric), keys.seed, keys.fold, has_answer
        measure = self._measures.get(key)
        if measure is None:
            measure = self._gather_measure(context, metric, keys, has_answer=has_answer)
            self._measures[key] = measure
        read = (*measure.before, *((answer,) if answer else ()), *measure.after)
        return measure.facts.measure(title, measure.work, read, keys, measure.location)
