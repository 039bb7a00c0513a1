"""From an experiment to a plan: its data contexts, and the stages of each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.core.digests import compute_digest
from recbias.core.errors import Faults, UserError
from recbias.runner.boundary import blame_plugin
from recbias.runner.planning.compatibility import validate_experiment
from recbias.runner.planning.identity import fingerprint_input_files, identify
from recbias.runner.planning.model_stages import ModelPlanner
from recbias.runner.planning.plan import DataContext, Options, Plan
from recbias.runner.stage import Keys, Stage, assign_address
from recbias.runner.stages.shared import LabelItems, LoadDataset, SelectQueries, SplitDataset
from recbias.runner.storage.fingerprints import Fingerprints


def make_plan(experiment: Experiment, options: Options, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Parts of the experiment contradict each other, or an input file is missing.
    """
    validate_experiment(experiment)
    files = _digest_input_files(experiment, options, fingerprints)
    planner = _DataPlanner(experiment, options, fingerprints, files)
    n_folds = int(experiment.split.plugin.folds) if experiment.split else 1
    contexts = tuple(
        planner.plan_context(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(n_folds)
    )
    model_planner = ModelPlanner(experiment, fingerprints, smoke_test=options.limit is not None)
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
            continue
        digests[dataset.label] = fingerprints.of_files(paths)
    if faults:
        raise Faults(faults)
    return digests


@dataclass(frozen=True)
class _DataPlanner:
    """Plans the stages that models share."""

    experiment: Experiment
    options: Options
    fingerprints: Fingerprints
    files: Mapping[str, Mapping[Path, str]]

    def plan_context(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        load = self._plan_dataset(dataset, seed)
        split = self._plan_split(load, seed, fold)
        labels = tuple(self._plan_label(load, detector) for detector in self.experiment.labels)
        return DataContext(load, split, self._plan_queries(load, split), labels)

    def _identify(self, spec: PluginSpec) -> dict[str, object]:
        return identify(spec, self.fingerprints)

    def _list_files(self, spec: PluginSpec) -> dict[Path, str]:
        return fingerprint_input_files(spec, self.fingerprints)

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        files = dict(self.files[dataset.label])
        for spec in (dataset.source, *dataset.filters):
            files |= self._list_files(spec)
        return assign_address(
            Stage(
                "dataset",
                f"load {dataset.label}",
                "",
                LoadDataset(dataset.source.plugin, filters, self.options.data, seed),
                (),
                Keys(dataset.label, seed),
                files=files,
            ),
            identity={
                "source": self._identify(dataset.source),
                "files": _key_by_name(self.files[dataset.label]),
                "filters": [self._identify(spec) for spec in dataset.filters],
                "seed": seed,
            },
        )

    def _plan_label(self, load: Stage, detector: PluginSpec) -> Stage:
        seed, label = load.keys.seed or 0, detector.label
        return assign_address(
            Stage(
                "label",
                f"label {load.keys.dataset} by {label}",
                "",
                LabelItems(detector.plugin, label, seed),
                (load,),
                load.keys,
                files=self._list_files(detector),
            ),
            identity={"detector": self._identify(detector), "label": label, "seed": seed},
            libraries=detector.plugin.libraries,
        )

    def _plan_split(self, load: Stage, seed: int, fold: int) -> Stage:
        spec = self.experiment.split
        return assign_address(
            Stage(
                "split",
                f"split {load.keys.dataset}",
                "",
                SplitDataset(spec.plugin if spec else None, fold, seed),
                (load,),
                replace(load.keys, fold=fold + 1),
                files=self._list_files(spec) if spec else {},
            ),
            identity={"split": self._identify(spec) if spec else None, "seed": seed, "fold": fold},
        )

    def _plan_queries(self, load: Stage, split: Stage) -> Stage:
        source, seed, limit = self.experiment.queries, split.keys.seed or 0, self.options.limit
        needed = any("lists" in model.plugin.provides for model in self.experiment.models)
        return assign_address(
            Stage(
                "queries",
                f"ask {split.keys.dataset}",
                "",
                SelectQueries(source.plugin, seed, limit, needed),
                (load, split),
                split.keys,
                files=self._list_files(source),
            ),
            identity={
                "queries": self._identify(source),
                "seed": seed,
                "limit": limit,
                "needed": needed,
            },
        )
