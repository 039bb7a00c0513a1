"""What is to be done: the stages of a run, by world and by model; nothing is worked out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec
from recbias.runner.stage import Keys, Stage


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
class DataContext:
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
class ModelPlan:
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

    world: DataContext
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
    worlds: tuple[DataContext, ...]
    chains: tuple[ModelPlan, ...]
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
