"""An experiment: a validated spec with its plug-ins.

Load an experiment: read its spec, validate every section and build every plug-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.checks import Check, CheckResolver, CheckSpec
from recbias.config.entries import AUDITED, Resolver
from recbias.config.settings import Builder, accepts_model_name, as_plain, read_settings
from recbias.config.source import expand_sweep, read_spec
from recbias.config.specs import (
    ClaimSpec,
    DatasetSpec,
    ExperimentFile,
    PluginSpec,
    ReportSpec,
    Tune,
    find_claimed,
    validate_name,
)
from recbias.core.errors import ConfigError, Contradiction, UnknownName, UserError
from recbias.core.measures import ALL, DATASET, POOLED
from recbias.core.packages import CONVERTER, TRACKERS, require_packages
from recbias.core.plugins import Device, ReadsModels, SelectedModel
from recbias.core.registry import Registry, is_file
from recbias.core.text import normalize_name, suggest
from recbias.formats.text_files import name_hub_file
from recbias.formats.yaml import Document, KeyPath

__all__ = ["DatasetSpec", "Experiment", "PluginSpec", "ReportSpec", "Tune"]

_NameAndSettings: TypeAlias = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """A validated spec.

    Args:
        name: The folder of its results.
        seeds: The seeds; the experiment is repeated for each.
        datasets: The datasets; the experiment is repeated for each.
        base: The folder that relative paths are relative to.
        document: The spec as written, for messages.
        sweep: The labels of the ``models`` and ``datasets``, and the ``seeds``, that a sweep made.
        device: The device of the models that name none themselves.
        claim: What a multiverse examines, if the spec has a claim.
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
    device: Device = "auto"
    checks: tuple[Check, ...] = ()
    claim: ClaimSpec | None = None
    track: tuple[str, ...] = ()
    sweep: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False)

    def fault(
        self,
        location: KeyPath,
        message: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
    ) -> UserError:
        """Return the error of a fault at a location of the spec: ``file:line:column: key``."""
        return self.document.error(location, message, remedy=remedy, kind=kind)

    def as_spec(self) -> dict[str, Any]:
        """Return the complete spec with defaults and absolute paths; it can be loaded again."""
        return self._render(self._resolve_paths)

    def identity(self, digest_file: Callable[[Path], str]) -> dict[str, Any]:
        """Return the complete spec with defaults and digests of files, to compute its digest."""
        return self._render(lambda spec: identify_plugin(spec, digest_file))

    def _resolve_paths(self, spec: PluginSpec) -> _NameAndSettings:
        name = spec.name
        if is_file(name):
            file, _, attribute = name.rpartition(":")
            folder = self.document.mark(spec.where).folder
            name = f"{(folder / file).absolute().as_posix()}:{attribute}"
        files = list_input_files(spec.plugin)
        addresses = {path: address for path in files if (address := name_hub_file(path))}
        return name, self._omit_device(as_plain(spec.plugin, addresses)) | spec.split_settings

    def _omit_device(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return settings without the device of the spec, which another one may replace."""
        return {
            key: self._omit_device(value) if isinstance(value, dict) else value
            for key, value in settings.items()
            if (key, value) != ("device", self.device)
        }

    def _render(self, identify: Callable[[PluginSpec], _NameAndSettings]) -> dict[str, Any]:
        def render(specs: Sequence[PluginSpec]) -> list[dict[str, Any]]:
            return [
                _render_entry(spec, *identify(spec))
                | ({"rerank": render(spec.rerankers)} if spec.rerankers else {})
                for spec in specs
                if spec.reranked is None  # it is in the entry of its model
            ]

        datasets = [
            render([dataset.source])[0] | {"filters": render(dataset.filters)}
            for dataset in self.datasets
        ]
        seeds = list(self.seeds)
        spec = {
            "name": self.name,
            **({"seed": seeds[0]} if len(seeds) == 1 else {"seeds": seeds}),
            "dataset": datasets[0] if len(datasets) == 1 else datasets,
            "split": render([self.split])[0] if self.split else None,
            "queries": render([self.queries])[0],
            "device": self.device,
            "k": self.k,
            **{key: render(vars(self)[key]) for key in ("models", "labels", "metrics", "tests")},
            "checks": [check.spec.as_written() for check in self.checks],
            "claim": as_plain(self.claim),
            "report": as_plain(self.report),
            "track": [*self.track],
        }
        omitted = [key for key in ("checks", "claim", "track") if not spec[key]]
        return {key: value for key, value in spec.items() if key not in omitted}


def identify_plugin(spec: PluginSpec, digest_file: Callable[[Path], str]) -> _NameAndSettings:
    """Return the name and settings of a plug-in, with what its files are instead of their paths.

    A file is its name and the digest of its bytes, as names decide how files are read: a suffix
    selects a layout. A plug-in that reads the name of the folder too has ``reads_folder_names``.
    """
    attribute = spec.name.rpartition(":")[2]
    name = f"{spec.source}:{attribute}" if spec.source else spec.name
    n_names = 2 if getattr(spec.plugin, "reads_folder_names", False) else 1
    digests = {
        path: f"{digest_file(path)}:{'/'.join(path.absolute().parts[-n_names:])}"
        for path in list_input_files(spec.plugin)
    }
    digests |= _digest_nested_files(spec.plugin, digest_file)
    if isinstance(spec.plugin, ReadsModels):  # it reports the content of its model folders itself
        settings = read_settings(type(spec.plugin)).values()
        keys = [setting.field.name for setting in settings if accepts_model_name(setting.hint)]
        names = [getattr(spec.plugin, key) for key in keys]
        folders = [Path(name) for name in names if name is not None]
        digests |= {folder: folder.name for folder in folders if folder.is_absolute()}
    return name, as_plain(spec.plugin, digests) | spec.split_settings


def _digest_nested_files(plugin: Any, digest_file: Callable[[Path], str]) -> dict[Path, str]:
    """Return the digests of the plug-in files of models that are settings of a plug-in."""
    settings = vars(plugin).values() if is_dataclass(plugin) else ()
    names = [value.name for value in settings if isinstance(value, SelectedModel)]
    splits = [name.rpartition(":") for name in names if is_file(name)]
    return {
        Path(f"{file}:{attribute}"): f"{digest_file(Path(file))}:{attribute}"
        for file, _, attribute in splits
    }


def list_input_files(*values: Any) -> list[Path]:
    """Return the files in the settings of plug-ins, at any depth."""
    nested = [value for value in values if isinstance(value, (tuple, list, set, frozenset))]
    nested += [list(value.values()) for value in values if isinstance(value, Mapping)]
    nested += [list(vars(value).values()) for value in values if is_dataclass(value)]
    paths = [value for value in values if isinstance(value, Path)]
    return paths + [path for items in nested for path in list_input_files(*items)]


def _render_entry(spec: PluginSpec, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a spec that selects the same plug-in."""
    if spec.kind == "detectors":
        return {"name": spec.label, "detector": name, **parameters}
    is_default = spec.label == spec.name or "label" in parameters
    label: dict[str, Any] = {} if is_default else {"label": spec.label}
    if spec.baseline is not None:
        label["baseline"] = spec.baseline
    if spec.tune is None:
        return {"name": name, **label, **parameters}
    searched = {dimension.parameter for dimension in spec.tune.space}
    fixed = {key: value for key, value in parameters.items() if key not in searched}
    return {"name": name, **label, **fixed, "tune": spec.tune.written}


_RESERVED_DATASETS = {ALL: "the mean over datasets", POOLED: "all datasets together"}
_RESERVED_MODELS = {DATASET: "metrics of the dataset alone"}


def load_experiment(
    source: Path | Mapping[str, Any],
    *,
    registries: Mapping[str, Registry],
    overrides: Sequence[str] = (),
    check_reference: Callable[[str], object] = str,
    check_rest: Callable[[Experiment], object] = bool,
) -> Experiment:
    """Load the experiment of a spec and build every plug-in.

    Args:
        source: The experiment file, or its content.
        registries: The plug-ins: ``datasets``, ``filters``, ``splits``, ``queries``, ``models``,
            ``detectors``, ``metrics`` and ``tests``.
        overrides: Settings such as ``models.1.neighbors=40``; the value is YAML.
        check_reference: Raises if a run cannot be compared with the published results of a name.
        check_rest: Raises the faults of a spec that has others already, by what could be read of
            it; they are added.

    Raises:
        Faults: All faults of the spec, in the order of the file.
    """
    document = read_spec(source, overrides)
    return load_document(document, registries, check_reference, check_rest)


def load_document(
    document: Document,
    registries: Mapping[str, Registry],
    check_reference: Callable[[str], object] = str,
    check_rest: Callable[[Experiment], object] = bool,
) -> Experiment:
    """Load the experiment of a spec that has been read; see ``load_experiment``."""
    experiment = _Loader(document, registries, expand_sweep(document)).load()
    report = experiment.report or ReportSpec()
    for name in report.references:
        with document.recording(("report", "reference")):
            check_reference(name)
    for tracker in experiment.track:
        with document.recording(("track",)):
            require_packages(tracker, TRACKERS[tracker])
    if {"pdf", "png"} & {*report.formats}:
        with document.recording(("report", "formats")):
            require_packages("a figure as PDF or PNG", CONVERTER)
    if document.faults:
        document.add_raised(lambda: check_rest(experiment))
    document.refuse()
    return experiment


class _Loader:
    """Loads each section of a spec by itself, so that all faults are reported at once."""

    def __init__(
        self,
        document: Document,
        registries: Mapping[str, Registry],
        swept: Mapping[KeyPath, Mapping[str, Any]],
    ) -> None:
        self.document, self.swept = document, swept
        self.raw = {key: value for key, value in document.data.items() if value is not None}
        builder = Builder(document, "experiment")
        defaults = {name: each.default for name, each in read_settings(ExperimentFile).items()}
        self.values = defaults | builder.read_fields(ExperimentFile, self.raw, ())
        device = self.values["device"] if "device" in self.raw else None
        k = self.values["k"]
        self.resolver = Resolver(document, registries, k, device, swept=swept)

    def load(self) -> Experiment:
        """Return the experiment, incomplete if the document has faults."""
        labels = self.load_list("detectors", "labels")
        names = [each.label for each in labels if each.label.endswith(AUDITED)]
        audited = frozenset(name.removesuffix(AUDITED) for name in names)
        self.resolver = replace(self.resolver, audited=audited)
        models, metrics = self.load_list("models", "models"), self.load_list("metrics", "metrics")
        values, seeds = self.values, self.load_seeds()
        if values["claim"] is not None:
            self.check_claim(values["claim"], metrics, models)
        resolver = CheckResolver(
            document=self.document,
            metrics=metrics,
            models=models,
            k=values["k"],
            variants=self.list_variants(models),
        )
        builder, checks = Builder(self.document, "experiment.checks"), list[Check | None]()
        for at, raw in enumerate(values["checks"] or ()):
            check = builder.build(CheckSpec, raw, ("checks", at))
            checks.append(check and resolver.resolve(check, ("checks", at)))
        name, datasets = values["name"] or "", self.load_datasets()
        if name:
            with self.document.recording(("name",)):
                validate_name(name)
        return Experiment(
            name=name,
            seeds=seeds,
            datasets=datasets,
            split=self.load_one("splits", "split"),
            queries=self.load_one("queries", "queries", "users"),  # type: ignore[arg-type]  # a fault
            k=values["k"],
            device=values["device"],
            models=models,
            labels=labels,
            metrics=metrics,
            tests=self.load_list("tests", "tests"),
            checks=tuple(check for check in checks if check is not None),
            claim=values["claim"],
            report=values["report"],
            track=(track,) if isinstance(track := values["track"], str) else track or (),
            base=self.document.base,
            document=self.document,
            sweep=self.list_swept(seeds, datasets, models),
        )

    def list_swept(
        self, seeds: Sequence[int], datasets: Sequence[DatasetSpec], models: Sequence[PluginSpec]
    ) -> dict[str, list[str]]:
        """Return the labels of models and datasets, and the seeds, that the sweep made."""
        sources = [dataset.source for dataset in datasets]
        made = {
            "models": [spec.label for spec in models if spec.where in self.swept],
            "datasets": [spec.label for spec in sources if spec.where in self.swept],
            "seeds": [str(seed) for at, seed in enumerate(seeds) if ("seeds", at) in self.swept],
        }
        return {kind: labels for kind, labels in made.items() if labels}

    def list_variants(self, models: Sequence[PluginSpec]) -> dict[str, list[str]]:
        """Return the labels of the variants of each model that the sweep varies, by its own."""
        own = [spec for spec in models if spec.reranked is None]
        return {
            normalize_name(swept.base_label): [
                spec.label for spec in own if swept.base_label in {spec.base_label, spec.label}
            ]
            for swept in models
            if swept.where in self.swept and swept.base_label
        }

    def check_claim(
        self, claim: ClaimSpec, metrics: Sequence[PluginSpec], models: Sequence[PluginSpec]
    ) -> None:
        """Record each model that the spec lacks, and a metric that the run does not measure."""
        if {"models", "metrics"} & self.document.list_faulty_keys():
            return
        labels = [model.label for model in models]
        known = set(map(normalize_name, labels))
        for key, name in (("model", claim.model), ("against", claim.against)):
            if name is not None and normalize_name(name) not in known:
                message, remedy = f"no model of the spec is called {name!r}", suggest(name, labels)
                self.add_fault(("claim", key), message, remedy, UnknownName)
        is_measured = find_claimed(metrics, claim.metric, self.values["k"]) is not None
        if not is_measured and not self.raw.get("multiverse"):
            name = claim.metric if isinstance(claim.metric, str) else claim.metric.get("name")
            nearest = suggest(str(name), [metric.name for metric in metrics])
            message = f"{name} is not among the metrics of the spec"
            remedy = f"{nearest} (or add it to metrics)"
            self.add_fault(("claim", "metric"), message, remedy, UnknownName)

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
        if raw == []:
            self.document.add_fault(("dataset",), "is an empty list", remedy="name a dataset")
        entries: list[tuple[Any, KeyPath]] = [] if raw is None else [(raw, ("dataset",))]
        if isinstance(raw, list):
            entries = [(entry, ("dataset", index)) for index, entry in enumerate(raw)]
        datasets = self.resolver.resolve_datasets(entries)
        sources = [dataset.source for dataset in datasets]
        self.refuse_labels(sources, [dataset.label for dataset in datasets], _RESERVED_DATASETS)
        return datasets

    def load_one(self, kind: str, key: str, default_name: str = "") -> PluginSpec | None:
        raw = self.values[key]
        return None if raw is None else self.resolver.resolve(kind, raw, (key,), default_name)

    def load_list(self, kind: str, key: str) -> tuple[PluginSpec, ...]:
        specs = self.resolver.resolve_list(kind, self.values[key] or [], (key,))
        named = list(specs)
        if kind == "tests":  # they may differ in their correction alone, which has its own column
            named = [spec for spec in specs if spec.is_labelled]
        names = [spec.label for spec in named]
        if kind == "metrics":
            names = [f"{spec.label}@{k}" if (k := spec.cutoff) else spec.label for spec in named]
        self.refuse_labels(named, names, _RESERVED_MODELS if kind == "models" else {})
        return specs

    def refuse_labels(
        self, specs: Sequence[PluginSpec], names: Sequence[str], reserved: Mapping[str, str]
    ) -> None:
        """Record each label that a run's tables give another meaning, or that two specs have."""
        earlier: dict[str, PluginSpec] = {}
        for spec, name in zip(specs, names, strict=True):
            if meaning := reserved.get(spec.label.casefold().strip()):
                message = f"{spec.label!r} means {meaning} in the tables of a run"
                self.add_fault((*spec.where, "label"), message, "choose another label")
            if name in earlier:
                message = f"{name} is also {self.document.format_path(earlier[name].where)}"
                remedy = "give one of the two another label"
                if spec.rerankers or earlier[name].rerankers:
                    remedy += "; a model with rerank is evaluated by itself too"
                self.add_fault(spec.where, message, remedy)
            earlier.setdefault(name, spec)

    def add_fault(
        self,
        location: KeyPath,
        message: str,
        remedy: str,
        kind: type[ConfigError] = Contradiction,
    ) -> None:
        self.document.add_fault(location, message, remedy=remedy, kind=kind)
