"""An experiment: a spec that was read, checked and filled with its plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from recbias.config.build import Builder
from recbias.config.merge import read_spec
from recbias.config.plugin_spec import DatasetSpec, PluginSpec, Tune
from recbias.config.resolve import Chooser
from recbias.config.settings import plain, settings
from recbias.config.specs import ExperimentFile, ReportSpec, safe_name
from recbias.config.type_text import names_model
from recbias.core.errors import ConfigError, Contradiction, UserError
from recbias.core.measurements.columns import ALL, DATASET, POOLED
from recbias.core.protocols import ReadsModels
from recbias.core.registry import Registry, is_file
from recbias.formats.yaml.source_map import Document, Place, key_path

__all__ = ["DatasetSpec", "Experiment", "PluginSpec", "ReportSpec", "Tune", "load_experiment"]


@dataclass(frozen=True)
class Experiment:
    """What the runner gets.

    Args:
        name: The folder of its results.
        seeds: Each is run by itself.
        datasets: Each is run by itself.
        split: Divides the interactions, or None.
        queries: Says who is asked.
        k: The length of the lists.
        models: What is measured.
        labels: Item labels by stereotype detection models.
        metrics: What is measured of each model.
        tests: How models are compared.
        report: What is written for people to read.
        base: The folder that relative paths are relative to.
        document: The spec as written, for messages.
    """

    name: str
    seeds: tuple[int, ...]
    datasets: tuple[DatasetSpec, ...]
    split: PluginSpec | None
    queries: PluginSpec
    k: int
    models: tuple[PluginSpec, ...]
    labels: tuple[PluginSpec, ...]
    metrics: tuple[PluginSpec, ...]
    tests: tuple[PluginSpec, ...]
    report: ReportSpec
    base: Path
    document: Document = field(repr=False, compare=False)

    def fault(
        self,
        where: Place,
        found: str,
        *,
        remedy: str = "",
        kind: type[ConfigError] = ConfigError,
    ) -> ConfigError:
        """Return the error of a fault at a place of the spec: ``file:line:column: key``."""
        made = self.document.error(where, found)
        return kind(made.message, where=made.where, remedy=remedy)

    def resolved(self) -> dict[str, Any]:
        """Return the whole spec, defaults filled in and paths absolute; it loads again."""
        return self._spec(self._absolute)

    def identity(self, of_file: Callable[[Path], str]) -> dict[str, Any]:
        """Return the whole spec, defaults filled in, for its digest.

        Args:
            of_file: The digest of a file: what a file holds tells specs apart, not where it lies.
        """
        return self._spec(lambda chosen: identified(chosen, of_file))

    def _absolute(self, chosen: PluginSpec) -> tuple[str, dict[str, Any]]:
        name = chosen.name
        if is_file(name):
            file, _, attribute = name.rpartition(":")
            folder = self.document.mark(chosen.where).folder
            name = f"{(folder / file).absolute().as_posix()}:{attribute}"
        return name, plain(chosen.plugin) | chosen.split_settings

    def _spec(self, form: Callable[[PluginSpec], tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        def entry(chosen: PluginSpec) -> dict[str, Any]:
            name, parameters = form(chosen)
            return _entry(chosen, name, parameters)

        datasets = [_with_filters(each, entry) for each in self.datasets]
        one_seed = len(self.seeds) == 1
        return {
            "name": self.name,
            **({"seed": self.seeds[0]} if one_seed else {"seeds": list(self.seeds)}),
            "dataset": datasets[0] if len(datasets) == 1 else datasets,
            "split": entry(self.split) if self.split else None,
            "queries": entry(self.queries),
            "k": self.k,
            "models": [entry(each) for each in self.models],
            "labels": [entry(each) for each in self.labels],
            "metrics": [entry(each) for each in self.metrics],
            "tests": [entry(each) for each in self.tests],
            "report": plain(self.report),
        }


def identified(chosen: PluginSpec, of_file: Callable[[Path], str]) -> tuple[str, dict[str, Any]]:
    """Return the name and settings of a plug-in with the digest of each file in its place."""
    attribute = chosen.name.rpartition(":")[2]
    name = f"{chosen.source}:{attribute}" if chosen.source else chosen.name
    held = {path: of_file(path) for path in named_files(chosen.plugin)}
    held |= {each: each.name for each in _model_folders(chosen.plugin)}
    return name, plain(chosen.plugin, held) | chosen.split_settings


def named_files(plugin: Any) -> list[Path]:
    """Return the files that the settings of a plug-in name."""
    return _paths(list(vars(plugin).values()))


def _model_folders(plugin: Any) -> list[Path]:
    """Return the folders of models that a plug-in names, where it says itself what they hold."""
    if not isinstance(plugin, ReadsModels):
        return []
    known = settings(type(plugin)).values()
    names = [getattr(plugin, each.field.name) for each in known if names_model(each.hint)]
    return [Path(each) for each in names if Path(each).is_absolute()]


def _paths(values: Sequence[Any]) -> list[Path]:
    found = [each for each in values if isinstance(each, Path)]
    nested = [each for each in values if isinstance(each, (tuple, list))]
    nested += [list(vars(each).values()) for each in values if is_dataclass(each)]
    return found + [path for each in nested for path in _paths(each)]


def load_experiment(
    source: Path | Mapping[str, Any],
    *,
    registries: Mapping[str, Registry],
    overrides: Sequence[str] = (),
    check_reference: Callable[[str], object] = str,
) -> Experiment:
    """Return the experiment of a spec, with every plug-in built.

    Args:
        source: The experiment file, or its content.
        registries: The plug-ins: ``datasets``, ``filters``, ``splits``, ``queries``, ``models``,
            ``detectors``, ``metrics`` and ``tests``.
        overrides: Each ``models.1.neighbors=40``, the value being YAML.
        check_reference: Raises where a run cannot stand beside the published figures of a name.

    Raises:
        Faults: Everything that is wrong with it, at once, in the order of the file.
    """
    document = read_spec(source, overrides)
    made = _Assembly(document, registries).experiment()
    _validate_reference(made, check_reference)
    document.refuse()
    return made


def _validate_reference(experiment: Experiment, check_reference: Callable[[str], object]) -> None:
    reference = experiment.report.reference if experiment.report else None
    try:
        if reference is not None:
            check_reference(reference)
    except UserError as error:
        experiment.document.carry(("report", "reference"), error)


class _Assembly:
    """The sections of one spec, each read by itself so that all faults are found at once."""

    def __init__(self, document: Document, registries: Mapping[str, Registry]) -> None:
        self.document = document
        given = {key: value for key, value in document.data.items() if value is not None}
        defaults = {name: each.default for name, each in settings(ExperimentFile).items()}
        self.given = given
        self.values = defaults | Builder(document, "experiment").values(ExperimentFile, given, ())
        self.chooser = Chooser(document, registries, self.values["k"])

    def experiment(self) -> Experiment:
        """Return the experiment; it is of no account where the document has faults."""
        values = self.values
        return Experiment(
            name=self.name(),
            seeds=self.seeds(),
            datasets=self.datasets(),
            split=self.one("splits", "split"),
            queries=self.one("queries", "queries"),  # type: ignore[arg-type]  # None is a fault
            k=values["k"],
            models=self.several("models", "models"),
            labels=self.several("detectors", "labels"),
            metrics=self.several("metrics", "metrics"),
            tests=self.several("tests", "tests"),
            report=values["report"],
            base=self.document.base,
            document=self.document,
        )

    def name(self) -> str:
        """Return the name, which is that of a folder."""
        try:
            return "" if self.values["name"] is None else safe_name(self.values["name"])
        except UserError as error:
            self.document.carry(("name",), error)
            return ""

    def seeds(self) -> tuple[int, ...]:
        """Return the seeds, of which there may be one."""
        several: tuple[int, ...] | None = self.values["seeds"]
        if several is None:
            return (self.values["seed"],)
        if "seed" in self.given:
            self.clash(("seeds",), "seed is given too", "keep one of seed and seeds")
        if len(set(several)) < len(several):
            self.clash(("seeds",), "a seed is written twice", "give each seed once")
        return several

    def datasets(self) -> tuple[DatasetSpec, ...]:
        """Return the datasets, of which there may be one."""
        raw = self.given.get("dataset")
        if raw is None:
            return ()
        if raw == []:
            self.document.blame(("dataset",), "is an empty list", remedy="name a dataset")
        pairs: list[tuple[Any, Place]] = [(raw, ("dataset",))]
        if isinstance(raw, list):
            pairs = [(each, ("dataset", at)) for at, each in enumerate(raw)]
        made = [self.chooser.dataset(each, place) for each, place in pairs]
        found = tuple(each for each in made if each is not None)
        self.taken(
            [each.source for each in found],
            {ALL: "the mean over datasets", POOLED: "all datasets together"},
        )
        self.twice([(each.source, each.label) for each in found])
        return found

    def one(self, kind: str, key: str) -> PluginSpec | None:
        """Return the plug-in of a section that holds one."""
        raw = self.values[key]
        usual = settings(ExperimentFile)[key].default or ""
        return None if raw is None else self.chooser.choose(kind, raw, (key,), usual)

    def several(self, kind: str, key: str) -> tuple[PluginSpec, ...]:
        """Return the plug-ins of a section that holds a list."""
        found = self.chooser.several(kind, self.values[key] or [], (key,))
        if kind == "metrics":
            self.twice([(each, _cut(each)) for each in found])
        elif kind != "tests":
            if kind == "models":
                self.taken(found, {DATASET: "what is measured of a dataset alone"})
            self.twice([(each, each.label) for each in found])
        return found

    def taken(self, entries: Sequence[PluginSpec], reserved: Mapping[str, str]) -> None:
        """Record each label that stands for something else in the tables of a run."""
        for entry in entries:
            use = reserved.get(entry.label.casefold().strip())
            if use is not None:
                found = f"{entry.label!r} stands for {use} in the tables of a run"
                self.clash((*entry.where, "label"), found, "choose another label")

    def twice(self, named: Sequence[tuple[PluginSpec, str]]) -> None:
        """Record each name that an earlier entry has."""
        first: dict[str, PluginSpec] = {}
        for each, name in named:
            if name in first:
                found = f"{name} is also {key_path(first[name].where)}"
                self.clash(each.where, found, "give one of them a label of its own")
            first.setdefault(name, each)

    def clash(self, place: Place, found: str, remedy: str) -> None:
        """Record that two settings cannot both hold."""
        self.document.blame(place, found, remedy=remedy, kind=Contradiction)


def _cut(metric: PluginSpec) -> str:
    k = metric.parameters.get("k")
    return metric.label if k is None else f"{metric.label}@{k}"


def _entry(chosen: PluginSpec, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a spec that chooses the same again."""
    if chosen.kind == "detectors":
        return {"name": chosen.label, "detector": name, **parameters}
    own = chosen.label == chosen.name or "label" in parameters
    label = {} if own else {"label": chosen.label}
    if chosen.tune is None:
        return {"name": name, **label, **parameters}
    searched = {each.parameter for each in chosen.tune.space}
    fixed = {key: value for key, value in parameters.items() if key not in searched}
    return {"name": name, **label, **fixed, "tune": chosen.tune.written}


def _with_filters(
    dataset: DatasetSpec, entry: Callable[[PluginSpec], dict[str, Any]]
) -> dict[str, Any]:
    return entry(dataset.source) | {"filters": [entry(each) for each in dataset.filters]}
