"""From an experiment to a plan: its data contexts, and the stages of each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import DatasetSpec, Experiment
from recbias.core.digests import compute_digest
from recbias.core.errors import Faults, UserError
from recbias.runner.boundary import blame_plugin
from recbias.runner.planning.compatibility import validate_experiment
from recbias.runner.planning.model_stages import ModelPlanner
from recbias.runner.planning.plan import DataContext, Options, Plan
from recbias.runner.planning.stage_planner import StagePlanner
from recbias.runner.stage import Keys, Stage
from recbias.runner.stages.shared import LabelItems, LoadDataset, SelectQueries, SplitDataset
from recbias.runner.storage.fingerprints import Fingerprints


def make_plan(experiment: Experiment, options: Options, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Parts of the experiment contradict each other, or an input file is missing.
    """
    validate_experiment(experiment)
    files = _digest_input_files(experiment, options, fingerprints)
    planner = _DataPlanner(experiment, fingerprints, options, files)
    n_folds = int(experiment.split.plugin.folds) if experiment.split else 1
    contexts = tuple(
        planner.plan_context(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(n_folds)
    )
    model_planner = ModelPlanner(experiment, fingerprints, is_smoke_test=options.limit is not None)
    model_plans = tuple(
        model_plan for context in contexts for model_plan in model_planner.plan_models(context)
    )
    spec_digest = compute_digest(experiment.identity(fingerprints.of))
    digests = {label: _key_by_name(paths) for label, paths in files.items()}
    return Plan(experiment, options, contexts, model_plans, digests, spec_digest)


def _key_by_name(digests: Mapping[Path, str]) -> dict[str, str]:
    return {path.name: digest for path, digest in digests.items()}


def _digest_input_files(
    experiment: Experiment, options: Options, fingerprints: Fingerprints
) -> dict[str, dict[Path, str]]:
    """Return the digest of each input file of each dataset, by label."""
    digests: dict[str, dict[Path, str]] = {}
    faults: list[UserError] = []
    for dataset in experiment.datasets:
        try:
            with blame_plugin(f"files() of {dataset.source.name}"):
                paths = [Path(path) for path in dataset.source.plugin.files(options.data)]
        except UserError as error:
            where = dataset.source.where
            faults.append(experiment.fault(where, str(error), remedy=error.remedy))
        else:
            digests[dataset.label] = fingerprints.of_files(paths)
    if faults:
        raise Faults(faults)
    return digests


@dataclass(frozen=True)
class _DataPlanner(StagePlanner):
    options: Options
    files: Mapping[str, Mapping[Path, str]]

    def plan_context(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        load = self._plan_dataset(dataset, seed)
        return DataContext(
            load, *self._plan_split(load, seed, fold), self._plan_labels(load, seed)
        )

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data, seed)
        files, keys = self.files[dataset.label], Keys(dataset.label, seed)
        return self.place(
            Stage("dataset", f"load {dataset.label}", "", work, (), keys, files=files),
            dataset.source,
            *dataset.filters,
            identity={
                "source": self.identify(dataset.source),
                "files": _key_by_name(files),
                "filters": [self.identify(spec) for spec in dataset.filters],
                "seed": seed,
            },
        )

    def _plan_labels(self, load: Stage, seed: int) -> tuple[Stage, ...]:
        dataset = load.keys.dataset
        return tuple(
            self.place(
                Stage(
                    "label",
                    f"label {dataset} by {spec.label}",
                    "",
                    LabelItems(spec.plugin, spec.label, seed),
                    (load,),
                    load.keys,
                ),
                spec,
                identity={"detector": self.identify(spec), "label": spec.label, "seed": seed},
                libraries=spec.plugin.libraries,
            )
            for spec in self.experiment.labels
        )

    def _plan_split(self, load: Stage, seed: int, fold: int) -> tuple[Stage, Stage]:
        """Return the stages of the split and of the queries."""
        spec, source, limit = self.experiment.split, self.experiment.queries, self.options.limit
        dataset, keys = load.keys.dataset, replace(load.keys, fold=fold + 1)
        divide = SplitDataset(spec.plugin if spec else None, fold, seed)
        split = self.place(
            Stage("split", f"split {dataset}", "", divide, (load,), keys),
            *filter(None, [spec]),
            identity={"split": self.identify(spec) if spec else None, "seed": seed, "fold": fold},
        )
        needed = any("lists" in model.plugin.provides for model in self.experiment.models)
        select = SelectQueries(source.plugin, seed, limit, needed)
        identity = {"seed": seed, "limit": limit, "needed": needed}
        queries = self.place(
            Stage("queries", f"ask {dataset}", "", select, (load, split), keys),
            source,
            identity={"queries": self.identify(source), **identity},
        )
        return split, queries
