"""From an experiment to a plan: its data contexts, and the stages of each model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import DatasetSpec, Experiment
from recbias.core.digests import compute_digest
from recbias.core.errors import Faults, MissingFile, UserError
from recbias.core.machine.memory import pause_collection
from recbias.core.packages import list_libraries
from recbias.runner.boundary import blame_plugin
from recbias.runner.options import RunOptions
from recbias.runner.planning.compatibility import validate_experiment
from recbias.runner.planning.devices import choose_devices
from recbias.runner.planning.model_stages import ModelPlanner
from recbias.runner.planning.plan import (
    DataContext,
    Plan,
    count_query_folds,
    may_lack_files,
)
from recbias.runner.planning.stage_planner import StagePlanner, identify_values
from recbias.runner.stage import Keys, Stage
from recbias.runner.stages.labels import LabelItems
from recbias.runner.stages.shared import LoadDataset, SelectQueries, SplitDataset, TakeQueries
from recbias.runner.storage.fingerprints import Fingerprints


def make_plan(experiment: Experiment, options: RunOptions, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Parts of the experiment contradict each other, or an input file is missing.
    """
    check_experiment(experiment, options, fingerprints)
    with pause_collection():
        return plan_stages(experiment, options, fingerprints)


def check_experiment(
    experiment: Experiment, options: RunOptions, fingerprints: Fingerprints
) -> None:
    """Raise what is wrong with an experiment before its stages are planned, all at once.

    Of a spec with errors, only the parts without them are checked.

    Raises:
        Faults: As for ``make_plan``.
    """
    checks: tuple[Callable[[], object], ...] = (
        lambda: validate_experiment(experiment),
        lambda: _digest_input_files(experiment, options, fingerprints),
        lambda: choose_devices(experiment),
    )
    faults: list[UserError] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            faults.append(error)
    if faults:
        raise Faults(faults)


def plan_stages(experiment: Experiment, options: RunOptions, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment that has been checked.

    Raises:
        Faults: An input file is missing, or this machine does not have a device.
    """
    files, skipped = _digest_input_files(experiment, options, fingerprints)
    read = tuple(dataset for dataset in experiment.datasets if dataset.label in files)
    experiment = replace(experiment, datasets=read)
    placed = choose_devices(experiment)
    planner = _DataPlanner(placed, fingerprints, options, files)
    split_folds = int(experiment.split.plugin.folds) if experiment.split else 1
    n_folds = max(split_folds, count_query_folds(experiment))
    contexts = tuple(
        planner.plan_context(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(n_folds)
    )
    model_planner = ModelPlanner(placed, fingerprints, is_smoke_test=options.limit is not None)
    model_plans = tuple(
        model_plan for context in contexts for model_plan in model_planner.plan_models(context)
    )
    spec_digest = compute_digest(experiment.identity(fingerprints.of))
    digests = {label: _key_by_name(paths) for label, paths in files.items()}
    return Plan(experiment, options, contexts, model_plans, digests, spec_digest, skipped)


def _key_by_name(digests: Mapping[Path, str]) -> dict[str, str]:
    """Return digests by the names of files, or by their paths in a folder if a name repeats."""
    if len({path.name for path in digests}) == len(digests):
        return {path.name: digest for path, digest in digests.items()}
    folder = os.path.commonpath([path.absolute().parent for path in digests])
    return {path.absolute().relative_to(folder).as_posix(): digests[path] for path in digests}


def _digest_input_files(
    experiment: Experiment, options: RunOptions, fingerprints: Fingerprints
) -> tuple[dict[str, dict[Path, str]], tuple[str, ...]]:
    """Return the digest of each input file of each dataset, by label, and what is skipped.

    A dataset with the setting ``missing: skip`` is skipped if none of its files is there; the last
    one is not.
    """
    digests: dict[str, dict[Path, str]] = {}
    faults: list[UserError] = []
    skipped: dict[str, UserError] = {}
    for dataset in experiment.datasets:
        try:
            with blame_plugin(f"files() of {dataset.source.name}"):
                paths = [Path(path) for path in dataset.source.plugin.files(options.data)]
        except UserError as error:
            fault = experiment.fault(dataset.source.where, str(error), remedy=error.remedy)
            if may_lack_files(dataset.source.plugin) and isinstance(error, MissingFile):
                skipped[dataset.label] = fault
            else:
                faults.append(fault)
        else:
            digests[dataset.label] = fingerprints.of_files(paths)
    if faults or (skipped and not digests):
        raise Faults([*faults, *skipped.values()])
    if not skipped:
        return digests, ()
    names = ", ".join(skipped)
    n_datasets = len(experiment.datasets)
    message = (
        f"{len(skipped)} of {n_datasets} datasets skipped, as their files are absent: {names}"
    )
    return digests, (message,)


@dataclass(frozen=True)
class _DataPlanner(StagePlanner):
    options: RunOptions
    files: Mapping[str, Mapping[Path, str]]

    def plan_context(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        load = self._plan_dataset(dataset, seed)
        labels = self._plan_labels(load, seed)
        n = count_query_folds(self.experiment)
        if n == 1:
            split = self._plan_split(load, seed, fold, replace(load.keys, fold=fold + 1))
            return DataContext(load, split, self._plan_queries(load, split, seed), labels)
        split = self._plan_split(load, seed, 0, load.keys)
        sampled = self._plan_queries(load, split, seed, n)
        take, keys = TakeQueries(fold, n), replace(load.keys, fold=fold + 1)
        title = f"take sample {fold + 1} of {keys.dataset}"
        stage = Stage("queries", title, "", take, (sampled,), keys)
        queries = self.place(stage, identity={"fold": fold, "folds": n})
        return DataContext(load, split, queries, labels, sampled)

    def _plan_dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        filters = tuple(spec.plugin for spec in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data_folder, seed)
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
                    LabelItems(
                        spec.plugin, spec.label, seed, identify_values(spec, self.fingerprints)
                    ),
                    (load,),
                    load.keys,
                ),
                spec,
                identity={"detector": self.identify(spec), "label": spec.label, "seed": seed},
                libraries=list_libraries(spec.plugin),
            )
            for spec in self.experiment.labels
        )

    def _plan_split(self, load: Stage, seed: int, fold: int, keys: Keys) -> Stage:
        spec, title = self.experiment.split, f"split {load.keys.dataset}"
        divide = SplitDataset(spec.plugin if spec else None, fold, seed)
        return self.place(
            Stage("split", title, "", divide, (load,), keys),
            *filter(None, [spec]),
            identity={"split": self.identify(spec) if spec else None, "seed": seed, "fold": fold},
        )

    def _plan_queries(self, load: Stage, split: Stage, seed: int, folds: int = 1) -> Stage:
        """Return the stage that selects the queries of all folds."""
        source, limit, title = self.experiment.queries, self.options.limit, load.keys.dataset
        needed = any("lists" in model.plugin.provides for model in self.experiment.models)
        select = SelectQueries(source.plugin, seed, limit, needed, folds, source.name)
        identity = {"seed": seed, "limit": limit, "needed": needed}
        return self.place(
            Stage("queries", f"ask {title}", "", select, (load, split), split.keys),
            source,
            identity={"queries": self.identify(source), **identity},
        )
