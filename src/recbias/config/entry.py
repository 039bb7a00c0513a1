"""Read one entry of a spec: its name, label, grouping and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge

from recbias.config.build import Builder
from recbias.config.declarations.hints import Hint
from recbias.config.declarations.type_text import describe_hint, describe_value
from recbias.config.labels import create_label, shorten_name
from recbias.config.plugin_spec import GAPS, Grouping, PluginSpec
from recbias.config.rerankers import RerankerReader
from recbias.config.search_space import ResolveMetric, read_searched
from recbias.config.settings import as_plain, is_valid, read_settings
from recbias.config.specs import SECTIONS
from recbias.core.errors import (
    Contradiction,
    MissingExtra,
    MissingFile,
    OutOfRange,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.measurements import metric_names
from recbias.core.packages import describe_missing, list_libraries, list_missing
from recbias.core.queries.groups import validate_grouping
from recbias.core.registry import Registry, digest_source, is_file
from recbias.core.suggestions import suggest
from recbias.formats.yaml.source_map import Document, KeyPath

GROUPING_REMEDIES = {
    "min_group": "give the least number of queries of a group that is compared: min_group: 20",
    "reference_group": "name the group that the others are compared with: reference_group: M",
}
"""The remedies of keys that stand beside ``by``."""

Registries: TypeAlias = Mapping[str, Registry]
"""The plug-ins by kind."""


@dataclass(frozen=True)
class EntryReader:
    """Reads one entry; faults are recorded in the document."""

    document: Document
    registries: Registries
    k: int
    device: str | None
    resolve: ResolveMetric
    kind: str
    location: KeyPath
    name_location: KeyPath

    def read(self, written_name: str, entry: dict[str, Any], label: Any) -> PluginSpec | None:
        """Return the plug-in of an entry, or None if it has a fault.

        Keys that are not settings are removed; ``label`` is that of a detector, else None.
        """
        loaded = self._load(written_name)
        if loaded is None:
            return None
        name, cls, name_settings = loaded
        n_faults = len(self.document.faults)
        self._move_grouping(cls, entry, name_settings)
        label = self._read_label(cls, entry, label)
        tune = self._pop_key(cls, entry, "tune") if self.kind in {"models", "rerankers"} else None
        rerank = self._pop_key(cls, entry, "rerank") if self.kind == "models" else None
        grouping = self._read_grouping(cls, entry) if self.kind == "metrics" else None
        raw = self._merge_settings(cls, entry, name_settings)
        entry_keys = _list_entry_keys(self.kind, is_grouped=grouping is not None)
        builder = Builder(
            self.document, shorten_name(name), resolve_entry=self.resolve, entry_keys=entry_keys
        )
        plugin, search = read_searched(builder, cls, raw, tune, self.location, self.resolve)
        if len(self.document.faults) > n_faults:  # else they are checked with those of the others
            self._report_missing_packages(shorten_name(name), cls)
        if plugin is None:
            return None
        parameters = as_plain(plugin, builder.path_texts)
        return PluginSpec(
            self.kind,
            name,
            label or create_label(self.kind, plugin, name, parameters, grouping),
            plugin,
            parameters,
            self.location,
            digest_source(name, base=self._folder),
            search,
            grouping,
            () if rerank is None else self._read_rerankers(plugin, rerank),
            is_labelled=bool(label),
        )

    def _report_missing_packages(self, name: str, cls: type) -> None:
        if missing := list_missing(list_libraries(cls)):
            message, remedy = describe_missing([name], missing)
            self.document.add_fault(self.location, message, remedy=remedy, kind=MissingExtra)

    @property
    def _folder(self) -> Path:
        return self.document.mark(self.name_location).folder

    def _load(self, name: str) -> tuple[str, type, dict[str, Any]] | None:
        """Return the name, the class, and the settings in the name: ``k`` of ``nDCG@10``."""
        registry, settings = self.registries[self.kind], dict[str, Any]()
        try:
            if self.kind == "metrics" and not is_file(name):
                name, settings = metric_names.parse_metric(name)
            settings = {**settings, **registry.read_member(name)}
            return registry.resolve_name(name), registry.load(name, base=self._folder), settings
        except UnknownName as error:
            error.remedy = find_other_kind(name, self.kind, self.registries) or error.remedy
            self.document.add_error(self.name_location, error)
        except MissingFile as error:
            self.document.add_error(
                self.name_location, MissingFile(str(error), remedy=error.remedy)
            )
        except UserError as error:
            self.document.add_error(self.name_location, error)
        return None

    def _read_rerankers(self, model: Any, raw: Any) -> tuple[PluginSpec, ...]:
        if "lists" not in getattr(model, "provides", {"lists"}):
            remedy = "remove rerank, or choose a model that recommends lists, such as EASE"
            self._blame("rerank", "the model recommends no lists", remedy, Contradiction)
            return ()
        reader = RerankerReader(self.document, self.registries["rerankers"], self.resolve, self.k)
        return reader.read(raw, (*self.location, "rerank"))

    def _move_grouping(
        self, cls: type, entry: dict[str, Any], name_settings: dict[str, Any]
    ) -> None:
        """Move the keys that group a metric from its name to its entry: ``nDCG(by=gender)``."""
        keys = {"by", "gap", *GROUPING_REMEDIES} - read_settings(cls).keys()
        for key in sorted(keys & name_settings.keys()):
            value = name_settings.pop(key)
            if entry.setdefault(key, value) is not value:
                self._blame_repetition(key)

    def _pop_key(self, cls: type, entry: dict[str, Any], key: str) -> Any:
        return None if key in read_settings(cls) else entry.pop(key, None)

    def _read_grouping(self, cls: type, entry: dict[str, Any]) -> Grouping | None:
        by = self._pop_key(cls, entry, "by")
        if by is None:
            for key in ("gap", *GROUPING_REMEDIES):
                if self._pop_key(cls, entry, key) is not None:
                    self._blame(key, f"{key} needs by", "add by: gender", Contradiction)
            return None
        gap = self._pop_key(cls, entry, "gap")
        min_group = self._read_key(cls, entry, "min_group", Annotated[int, Ge(1)])
        reference = self._read_key(cls, entry, "reference_group", str | int | float)
        if not isinstance(by, str):
            remedy = "name one or more labels of the queries: by: gender&race"
            self._blame("by", f"must be text, found {describe_value(by)}", remedy)
            return None
        try:
            validate_grouping(by)
        except UserError as error:
            self.document.add_error((*self.location, "by"), error)
        if gap is not None and gap not in GAPS:
            message = f"must be one of {', '.join(GAPS)}, found {describe_value(gap)}"
            remedy = f"{suggest(str(gap), GAPS)} (without the key: the first four)"
            self._blame("gap", message, remedy, OutOfRange)
            return None
        return Grouping(by, gap or "", min_group or 0, "" if reference is None else str(reference))

    def _read_key(self, cls: type, entry: dict[str, Any], key: str, hint: Hint) -> Any:
        """Return a key of the grouping, None if it is absent or does not have its type."""
        value = self._pop_key(cls, entry, key)
        if value is None or is_valid(hint, value):
            return value
        message = f"must be {describe_hint(hint)}, found {describe_value(value)}"
        self._blame(key, message, GROUPING_REMEDIES[key])
        return None

    def _read_label(self, cls: type, entry: dict[str, Any], label: Any) -> str:
        label = label if label is not None else self._pop_key(cls, entry, "label")
        if label is None or (isinstance(label, str) and label and label.isprintable()):
            return label or ""
        key = "name" if self.kind == "detectors" else "label"
        self._blame(
            key, f"must be text on one line, found {describe_value(label)}", "put it in quotes"
        )
        return ""

    def _merge_settings(
        self, cls: type, entry: dict[str, Any], name_settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of the entry, those in its name, the default cutoff and device."""
        for key in name_settings.keys() & entry.keys():
            self._blame_repetition(key)
        raw = entry | dict(name_settings)
        if self.device is not None and "device" in read_settings(cls):
            raw.setdefault("device", self.device)
        cutoff = read_settings(cls).get("k")
        has_open_cutoff = cutoff is not None and not cutoff.needed and cutoff.default is None
        if self.kind == "metrics" and has_open_cutoff and raw.get("k") is None:
            raw["k"] = self.k
        return raw

    def _blame_repetition(self, key: str) -> None:
        message = f"{key} is given both in the name and as a setting"
        self._blame(key, message, "give it once", Contradiction)

    def _blame(
        self, key: str, message: str, remedy: str, kind: type[UserError] = WrongType
    ) -> None:
        self.document.add_fault((*self.location, key), message, remedy=remedy, kind=kind)


def find_other_kind(name: str, kind: str, registries: Registries) -> str:
    """Return the help line for a name that is a plug-in of another kind, else blank."""
    for other_kind, registry in registries.items():
        if other_kind != kind and (spelling := registry.find_spelling(name)):
            section = ".".join(SECTIONS[other_kind])
            return f"{spelling} is a {registry.kind}: move it to {section}"
    return ""


def _list_entry_keys(kind: str, *, is_grouped: bool) -> tuple[str, ...]:
    """Return the keys of an entry that are not settings of its plug-in."""
    beside_by = ("gap", *GROUPING_REMEDIES) if is_grouped else ()
    own_keys = {
        "models": ("tune", "rerank"),
        "rerankers": ("tune",),
        "metrics": ("by", *beside_by),
        "detectors": ("detector",),
    }
    return ("name" if kind == "detectors" else "label", *own_keys.get(kind, ()))
