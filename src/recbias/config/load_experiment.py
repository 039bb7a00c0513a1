"""Load an experiment: read its spec, validate every section and build every plug-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recbias.config.build import Builder
from recbias.config.changes.expand_sweep import expand_sweep
from recbias.config.checks import resolve_checks
from recbias.config.experiment import Experiment
from recbias.config.merge import read_spec
from recbias.config.plugin_spec import DatasetSpec, PluginSpec
from recbias.config.resolve import Resolver
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile, validate_name
from recbias.core.errors import Contradiction, UserError
from recbias.core.measurements.columns import ALL, DATASET, POOLED
from recbias.core.registry import Registry
from recbias.formats.yaml.source_map import Document, KeyPath

_RESERVED_DATASETS = {ALL: "the mean over datasets", POOLED: "all datasets together"}
_RESERVED_MODELS = {DATASET: "metrics of the dataset alone"}


def load_experiment(
    source: Path | Mapping[str, Any],
    *,
    registries: Mapping[str, Registry],
    overrides: Sequence[str] = (),
    check_reference: Callable[[str], object] = str,
) -> Experiment:
    """Load the experiment of a spec and build every plug-in.

    Args:
        source: The experiment file, or its content.
        registries: The plug-ins: ``datasets``, ``filters``, ``splits``, ``queries``, ``models``,
            ``detectors``, ``metrics`` and ``tests``.
        overrides: Settings such as ``models.1.neighbors=40``; the value is YAML.
        check_reference: Raises if a run cannot be compared with the published results of a name.

    Raises:
        Faults: All faults of the spec, in the order of the file.
    """
    document = read_spec(source, overrides)
    sweep = expand_sweep(document, registries)
    experiment = _Loader(document, registries).load(sweep)
    for name in experiment.report.references if experiment.report else ():
        try:
            check_reference(name)
        except UserError as error:
            document.add_error(("report", "reference"), error)
    document.refuse()
    return experiment


class _Loader:
    """Loads each section of a spec by itself, so that all faults are reported at once."""

    def __init__(self, document: Document, registries: Mapping[str, Registry]) -> None:
        self.document = document
        self.raw = {key: value for key, value in document.data.items() if value is not None}
        settings, builder = read_settings(ExperimentFile), Builder(document, "experiment")
        self.defaults = {name: setting.default for name, setting in settings.items()}
        self.values = self.defaults | builder.validate_all(ExperimentFile, self.raw, ())
        self.resolver = Resolver(
            document,
            registries,
            self.values["k"],
            self.values["device"] if "device" in self.raw else None,
        )

    def load(self, sweep: Mapping[str, Sequence[str]]) -> Experiment:
        """Return the experiment, incomplete if the document has faults."""
        n_faults = len(self.document.faults)
        models, metrics = self.load_list("models", "models"), self.load_list("metrics", "metrics")
        are_complete = len(self.document.faults) == n_faults
        checks = self.values["checks"] if are_complete else ()
        return Experiment(
            name=self.load_name(),
            seeds=self.load_seeds(),
            datasets=self.load_datasets(),
            split=self.load_one("splits", "split"),
            queries=self.load_one("queries", "queries"),  # type: ignore[arg-type]  # None is a fault
            k=self.values["k"],
            device=self.values["device"],
            models=models,
            labels=self.load_list("detectors", "labels"),
            metrics=metrics,
            tests=self.load_list("tests", "tests"),
            checks=resolve_checks(self.document, checks or (), metrics, models, self.values["k"]),
            report=self.values["report"],
            base=self.document.base,
            document=self.document,
            sweep=sweep,
        )

    def load_name(self) -> str:
        try:
            return "" if self.values["name"] is None else validate_name(self.values["name"])
        except UserError as error:
            self.document.add_error(("name",), error)
            return ""

    def load_seeds(self) -> tuple[int, ...]:
        seeds: tuple[int, ...] | None = self.values["seeds"]
        if seeds is None:
            return (self.values["seed"],)
        if "seed" in self.raw:
            self.add_fault(("seeds",), "seed is set too", "keep one of seed and seeds")
        if len(set(seeds)) < len(seeds):
            self.add_fault(("seeds",), "has the same seed twice", "list each seed once")
        return seeds

    def load_datasets(self) -> tuple[DatasetSpec, ...]:
        raw = self.raw.get("dataset")
        if raw is None:
            return ()
        if raw == []:
            self.document.add_fault(("dataset",), "is an empty list", remedy="name a dataset")
        entries: list[tuple[Any, KeyPath]] = [(raw, ("dataset",))]
        if isinstance(raw, list):
            entries = [(entry, ("dataset", index)) for index, entry in enumerate(raw)]
        resolved = [self.resolver.resolve_dataset(*entry) for entry in entries]
        datasets = tuple(dataset for dataset in resolved if dataset is not None)
        self.refuse_reserved_labels([dataset.source for dataset in datasets], _RESERVED_DATASETS)
        self.refuse_duplicates([(dataset.source, dataset.label) for dataset in datasets])
        return datasets

    def load_one(self, kind: str, key: str) -> PluginSpec | None:
        raw, default_name = self.values[key], self.defaults[key] or ""
        return None if raw is None else self.resolver.resolve(kind, raw, (key,), default_name)

    def load_list(self, kind: str, key: str) -> tuple[PluginSpec, ...]:
        specs = self.resolver.resolve_list(kind, self.values[key] or [], (key,))
        if kind == "models":
            self.refuse_reserved_labels(specs, _RESERVED_MODELS)
        if kind == "metrics":
            cutoffs = [spec.parameters.get("k") for spec in specs]
            names = [
                spec.label if k is None else f"{spec.label}@{k}"
                for spec, k in zip(specs, cutoffs, strict=True)
            ]
            self.refuse_duplicates([*zip(specs, names, strict=True)])
        elif kind != "tests":
            self.refuse_duplicates([(spec, spec.label) for spec in specs])
        return specs

    def refuse_reserved_labels(
        self, specs: Sequence[PluginSpec], reserved: Mapping[str, str]
    ) -> None:
        """Record each label that has another meaning in the tables of a run."""
        for spec in specs:
            if meaning := reserved.get(spec.label.casefold().strip()):
                message = f"{spec.label!r} means {meaning} in the tables of a run"
                self.add_fault((*spec.where, "label"), message, "choose another label")

    def refuse_duplicates(self, names: Sequence[tuple[PluginSpec, str]]) -> None:
        """Record each name that an earlier entry has."""
        earlier: dict[str, PluginSpec] = {}
        for spec, name in names:
            if name in earlier:
                message = f"{name} is also {self.document.format_path(earlier[name].where)}"
                self.add_fault(spec.where, message, "give one of the two another label")
            earlier.setdefault(name, spec)

    def add_fault(self, location: KeyPath, message: str, remedy: str) -> None:
        self.document.add_fault(location, message, remedy=remedy, kind=Contradiction)
