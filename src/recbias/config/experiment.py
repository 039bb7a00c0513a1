"""An experiment: a validated spec with its plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.checks import Check
from recbias.config.plugin_spec import DatasetSpec, PluginSpec, Tune
from recbias.config.settings import accepts_model_name, as_plain, read_settings
from recbias.config.specs import FeedbackSpec, ReportSpec
from recbias.core.errors import ConfigError, Contradiction, UserError
from recbias.core.models.devices import Device
from recbias.core.models.selected_models import SelectedModel
from recbias.core.protocols import ReadsModels
from recbias.core.registry import is_file
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
        device: Where models compute that do not name a device themselves.
        feedback: The rounds in which models are trained on what users accept, if there are any.
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
    feedback: FeedbackSpec | None = None
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

    def find_short_lists(self, metric: PluginSpec) -> Iterator[UserError]:
        """Yield a fault if the lists are shorter than the cutoff of a metric."""
        k = metric.cutoff
        if k is not None and k > self.k and "lists" in metric.needs:
            message = f"{metric.name}@{k} needs lists of {k}, but k is {self.k}"
            yield self.fault(metric.where, message, remedy=f"set k: {k}", kind=Contradiction)

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
        return name, self._omit_device(as_plain(spec.plugin)) | spec.split_settings

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
        has_one_seed = len(self.seeds) == 1
        return {
            "name": self.name,
            **({"seed": self.seeds[0]} if has_one_seed else {"seeds": list(self.seeds)}),
            "dataset": datasets[0] if len(datasets) == 1 else datasets,
            "split": render([self.split])[0] if self.split else None,
            "queries": render([self.queries])[0],
            "device": self.device,
            "k": self.k,
            **{key: render(vars(self)[key]) for key in ("models", "labels", "metrics", "tests")},
            **(
                {"checks": [check.spec.as_written() for check in self.checks]}
                if self.checks
                else {}
            ),
            **({"feedback": as_plain(self.feedback)} if self.feedback else {}),
            "report": as_plain(self.report),
        }


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
    label = {} if is_default else {"label": spec.label}
    if spec.tune is None:
        return {"name": name, **label, **parameters}
    searched = {dimension.parameter for dimension in spec.tune.space}
    fixed = {key: value for key, value in parameters.items() if key not in searched}
    return {"name": name, **label, **fixed, "tune": spec.tune.written}
