"""The plan of a run: its stages, by dataset, seed and fold, and by model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from recbias.config.entries import AUDITED
from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.plugins import OUTPUTS
from recbias.core.registry import locate_code
from recbias.runner.options import RunOptions


@dataclass(frozen=True)
class Keys:
    """The dataset, seed, fold and model that a result belongs to; blank if one does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: ``dataset``, ``split``, ``queries``, ``label``, ``baseline``, ``trial``, ``search``,
            ``fit``, ``answer`` or ``measure``.
        title: What users read: ``fit ItemKNN``.
        work: Called with the results of ``inputs``, in order; returns the result.
        digest: The address of its result; blank until it is placed.
        spec_location: The entry of the spec that requests it, for messages:
            ``FILE:LINE:COLUMN: metrics[0]``.
        files: The input files that it reads, with their digests at planning time.
        devices: The devices that its model computes on; empty if it has no choice.
        subject: The name of its plug-in.
        settings: The digest of the settings of its plug-ins.
    """

    kind: str
    title: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    digest: str = ""
    spec_location: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)
    devices: tuple[str, ...] = field(default=(), compare=False)
    subject: str = field(default="", compare=False)
    settings: str = field(default="", compare=False)


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
    """

    data_context: DataContext
    model: PluginSpec
    fit: Stage | None
    answer: Stage | None
    metrics: tuple[PluginSpec, ...] = ()
    measures: tuple[Stage, ...] = ()
    trials: tuple[Stage, ...] = ()
    search: Stage | None = None
    shared_answer: Stage | None = None
    candidates: tuple[Stage, ...] = ()

    @property
    def asking(self) -> Stage | None:
        """The stage that runs queries on the model."""
        return self.shared_answer or self.answer

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order; each metric before its values by group."""
        search, fit = (*self.trials, self.search), (self.fit,)
        # before a re-ranker is searched, the model is trained
        training = (*fit, *self.candidates, *search) if self.candidates else (*search, *fit)
        ungrouped = [each for stage in self.measures for each in stage.inputs]
        measuring = [each for each in ungrouped if each.kind == "measure"] + [*self.measures]
        stages = (*training, self.shared_answer, self.answer, *measuring)
        return tuple({stage.digest: stage for stage in stages if stage}.values())


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
        stages = [stage for context in self.data_contexts for stage in context.stages]
        stages += [stage for model_plan in self.model_plans for stage in model_plan.stages]
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
        """What is worth knowing before the run: skipped datasets, parts without effect."""
        experiment, device = self.experiment, self.experiment.device
        warnings = [*self.skipped, *_list_idle(experiment)]
        is_used = any(device in stage.devices for stage in self.stages)
        if device not in {"auto", "cpu"} and not is_used:
            warnings.append(f"device {device} has no effect: no model of the spec uses it")
        return tuple(warnings)


def list_missing_outputs(metric: PluginSpec, model: PluginSpec) -> list[str]:
    """Return the outputs that a metric needs and a model does not provide."""
    return sorted((metric.needs & OUTPUTS) - model.plugin.provides)


NAMED_MODELS = {
    "embeddings_of": ("embeddings", "compare items by"),
    "chosen_in": ("embeddings", "choose members by"),
    "against": ("policy", "compare with"),
}
"""The settings by which a metric names another model, with what it reads of it, and why."""


def find_named_model(metric: PluginSpec) -> tuple[str, str | None]:
    """Return the setting by which a metric names another model, and its label, or None."""
    key = next((name for name in NAMED_MODELS if hasattr(metric.plugin, name)), "")
    return key, getattr(metric.plugin, key, None)


def may_lack_files(source: object) -> bool:
    """Return whether absent files of a dataset are skipped: ``missing: skip``."""
    return getattr(source, "missing", "error") == "skip"


def count_query_folds(experiment: Experiment) -> int:
    """Return into how many disjoint samples the queries are divided, 1 for a single one."""
    return int(getattr(experiment.queries.plugin, "folds", 1))


def _list_idle(experiment: Experiment) -> Iterator[str]:
    """Yield a warning for each part of a spec that no result depends on."""
    default = read_settings(ExperimentFile)["k"].default
    has_lists = any("lists" in model.plugin.provides for model in experiment.models)
    if experiment.k != default and not has_lists:
        yield f"k: {experiment.k} has no effect: no model of the spec recommends lists"
    rerankers = [each for model in experiment.models for each in model.rerankers]
    readers = (*experiment.metrics, *rerankers)
    texts = str([reader.parameters for reader in readers])
    are_known = not any(locate_code(type(reader.plugin)) for reader in readers)
    for labels in experiment.labels:
        is_read = f"{labels.label.removesuffix(AUDITED)}." in texts
        if are_known and not is_read:
            yield f"labels {labels.label} have no effect: no metric or re-ranker names them"
