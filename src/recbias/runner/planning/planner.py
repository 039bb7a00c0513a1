"""From an experiment to its worlds and chains of stages, each with its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.core.digests import compute_digest
from recbias.core.errors import Faults, UserError
from recbias.runner.boundary import blaming
from recbias.runner.planning.compatibility import check
from recbias.runner.planning.model_stages import ChainPlanner, identity, input_files
from recbias.runner.planning.plan import DataContext, Options, Plan
from recbias.runner.stage import Keys, Stage, address
from recbias.runner.stages.shared import AskQueries, DivideDataset, LabelItems, LoadDataset
from recbias.runner.storage.fingerprints import Fingerprints


def make_plan(experiment: Experiment, options: Options, fingerprints: Fingerprints) -> Plan:
    """Return the stages of an experiment.

    Raises:
        Faults: Its parts do not meet, or a file that it needs is not there.
    """
    check(experiment)
    files = _input_files(experiment, options, fingerprints)
    planner = _WorldPlanner(experiment, options, fingerprints, files)
    worlds = tuple(
        planner.world(dataset, seed, fold)
        for dataset in experiment.datasets
        for seed in experiment.seeds
        for fold in range(_folds(experiment))
    )
    links = ChainPlanner(experiment, fingerprints, brief=options.limit is not None)
    chains = tuple(chain for world in worlds for chain in links.chains(world))
    spec_digest = compute_digest(experiment.identity(fingerprints.of))
    by_name = {label: _by_name(held) for label, held in files.items()}
    return Plan(experiment, options, worlds, chains, by_name, spec_digest)


def _by_name(files: Mapping[Path, str]) -> dict[str, str]:
    return {path.name: sha for path, sha in files.items()}


def _folds(experiment: Experiment) -> int:
    return int(experiment.split.plugin.folds) if experiment.split else 1


def _input_files(
    experiment: Experiment, options: Options, fingerprints: Fingerprints
) -> dict[str, dict[Path, str]]:
    found: dict[str, dict[Path, str]] = {}
    faults: list[UserError] = []
    for dataset in experiment.datasets:
        try:
            with blaming(f"files() of {dataset.source.name}"):
                paths = [Path(path) for path in dataset.source.plugin.files(options.data)]
        except UserError as error:
            where = dataset.source.where
            faults.append(experiment.fault(where, str(error), remedy=error.remedy))
            continue
        found[dataset.label] = fingerprints.of_files(paths)
    if faults:
        raise Faults(faults)
    return found


@dataclass(frozen=True)
class _WorldPlanner:
    experiment: Experiment
    options: Options
    fingerprints: Fingerprints
    files: Mapping[str, Mapping[Path, str]]

    def world(self, dataset: DatasetSpec, seed: int, fold: int) -> DataContext:
        loaded = self._dataset(dataset, seed)
        split = self._split(loaded, seed, fold)
        labels = tuple(self._label(loaded, each) for each in self.experiment.labels)
        return DataContext(loaded, split, self._queries(loaded, split), labels)

    def _who(self, chosen: PluginSpec) -> dict[str, object]:
        return identity(chosen, self.fingerprints)

    def _files(self, chosen: PluginSpec) -> dict[Path, str]:
        return input_files(chosen, self.fingerprints)

    def _dataset(self, dataset: DatasetSpec, seed: int) -> Stage:
        who = {
            "source": self._who(dataset.source),
            "files": _by_name(self.files[dataset.label]),
            "filters": [self._who(each) for each in dataset.filters],
            "seed": seed,
        }
        files = dict(self.files[dataset.label])
        for chosen in (dataset.source, *dataset.filters):
            files |= self._files(chosen)
        filters = tuple(each.plugin for each in dataset.filters)
        work = LoadDataset(dataset.source.plugin, filters, self.options.data, seed)
        title = f"load {dataset.label}"
        return Stage(
            "dataset",
            title,
            address("dataset", identity=who),
            work,
            (),
            Keys(dataset.label, seed),
            files=files,
        )

    def _label(self, loaded: Stage, detector: PluginSpec) -> Stage:
        seed = loaded.keys.seed or 0
        who = {"detector": self._who(detector), "label": detector.label, "seed": seed}
        return Stage(
            "label",
            f"label {loaded.keys.dataset} by {detector.label}",
            address(
                "label",
                identity=who,
                inputs=(loaded,),
                libraries=detector.plugin.libraries,
            ),
            LabelItems(detector.plugin, detector.label, seed),
            (loaded,),
            loaded.keys,
            files=self._files(detector),
        )

    def _split(self, loaded: Stage, seed: int, fold: int) -> Stage:
        splitter = self.experiment.split
        who = {"split": self._who(splitter) if splitter else None, "seed": seed, "fold": fold}
        work = DivideDataset(splitter.plugin if splitter else None, fold, seed)
        keys = replace(loaded.keys, fold=fold + 1)
        title = f"split {keys.dataset}"
        return Stage(
            "split",
            title,
            address("split", identity=who, inputs=(loaded,)),
            work,
            (loaded,),
            keys,
            files=self._files(splitter) if splitter else {},
        )

    def _queries(self, loaded: Stage, split: Stage) -> Stage:
        source, seed = self.experiment.queries, split.keys.seed or 0
        needed = any("lists" in each.plugin.provides for each in self.experiment.models)
        who = {
            "queries": self._who(source),
            "seed": seed,
            "limit": self.options.limit,
            "needed": needed,
        }
        inputs = (loaded, split)
        return Stage(
            "queries",
            f"ask {split.keys.dataset}",
            address("queries", identity=who, inputs=inputs),
            AskQueries(source.plugin, seed, self.options.limit, needed),
            inputs,
            split.keys,
            files=self._files(source),
        )
