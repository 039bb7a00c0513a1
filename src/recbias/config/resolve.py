"""Resolve the entries of a spec to the plug-ins that they select."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from recbias.config.changes.expanded_size import MOST_ENTRIES
from recbias.config.declarations.type_text import describe_value
from recbias.config.entry import EntryReader, Registries
from recbias.config.labels import distinguish_metrics, distinguish_plugins
from recbias.config.plugin_spec import DEFAULT_GAPS, DatasetSpec, PluginSpec
from recbias.config.rerankers import make_reranked
from recbias.core.errors import OutOfRange, UnknownKey, UnknownName, UserError, WrongType
from recbias.core.suggestions import find_nearest
from recbias.formats.yaml.source_map import Document, KeyPath

MOST_LABELS = 100
"""The largest number of labels, which `plan` computes if it can."""


@dataclass(frozen=True)
class Resolver:
    """Resolves entries; faults are recorded in the document.

    Args:
        k: The cutoff of metrics without one.
        device: The device of models without one; None for the default of each model.
    """

    document: Document
    registries: Registries
    k: int
    device: str | None = None

    def resolve_datasets(self, entries: Sequence[tuple[Any, KeyPath]]) -> tuple[DatasetSpec, ...]:
        """Return the datasets that have no fault, with labels that tell them apart."""
        resolved = [self.resolve_dataset(*entry) for entry in entries]
        datasets = [dataset for dataset in resolved if dataset is not None]
        filtered = [
            {each.name: each.parameters for each in dataset.filters} for dataset in datasets
        ]
        sources = [
            replace(dataset.source, parameters=dataset.source.parameters | settings)
            for dataset, settings in zip(datasets, filtered, strict=True)
        ]
        return tuple(
            DatasetSpec(replace(dataset.source, label=spec.label), dataset.filters, spec.label)
            for dataset, spec in zip(datasets, distinguish_plugins(sources), strict=True)
        )

    def resolve_dataset(self, raw: Any, location: KeyPath) -> DatasetSpec | None:
        """Return a dataset with its filters, or None if the dataset has a fault."""
        filters: Any = []
        if isinstance(raw, dict) and "filters" in raw:
            raw = dict(raw)
            filters = raw.pop("filters") or []
        source = self.resolve("datasets", raw, location)
        filter_specs = self.resolve_list("filters", filters, (*location, "filters"))
        return DatasetSpec(source, filter_specs, source.label) if source else None

    def resolve_list(self, kind: str, raw: Any, location: KeyPath) -> tuple[PluginSpec, ...]:
        """Return the plug-ins of a list.

        A metric is there once for each way its groups are reported, and a model once by itself and
        once for each re-ranker.
        """
        if not isinstance(raw, (list, tuple)):
            message = f"must be a list, found {describe_value(raw)}"
            remedy = "write each entry after a dash"
            self.document.add_fault(location, message, remedy=remedy, kind=WrongType)
            return ()
        if self.refuse_length(raw, location):
            return ()
        read = [self.resolve(kind, entry, (*location, at)) for at, entry in enumerate(raw)]
        specs = [spec for spec in read if spec is not None]
        if kind == "models":
            specs = distinguish_plugins(specs)
        elif kind == "tests":
            specs = distinguish_plugins(specs, omitted=("alpha", "correction", "family"))
        variants = [variant for spec in specs for variant in _expand(spec)]
        return tuple(distinguish_metrics(variants) if kind == "metrics" else variants)

    def refuse_length(self, raw: Sequence[Any], location: KeyPath) -> bool:
        """Record a list that is too long, of which no entry is read; return whether it is."""
        most = MOST_LABELS if location == ("labels",) else MOST_ENTRIES
        if len(raw) <= most:
            return False
        message = f"has {len(raw):,} entries, more than {most:,}"
        remedy = "write several specs"
        self.document.add_fault(location, message, remedy=remedy, kind=OutOfRange)
        return True

    def resolve(
        self, kind: str, raw: Any, location: KeyPath, default_name: str = ""
    ) -> PluginSpec | None:
        """Return the plug-in of a name, or of a mapping with one, or None if it has a fault."""
        n_faults = len(self.document.faults)
        try:
            spec = self._read_entry(kind, raw, location, default_name)
        except UserError as error:
            where = (*location, error.where) if error.where else location
            self.document.add_error(where, error)
            return None
        return spec if len(self.document.faults) == n_faults else None

    def _read_entry(
        self, kind: str, raw: Any, location: KeyPath, default_name: str
    ) -> PluginSpec | None:
        name_key = "detector" if kind == "detectors" else "name"
        entry = {name_key: raw} if isinstance(raw, str) else raw
        if not isinstance(entry, dict):
            message = f"must be a name or a mapping, found {describe_value(raw)}"
            raise WrongType(message, remedy="write - Name, or - {name: Name, setting: value}")
        entry = dict(entry)
        if not default_name:
            self._refuse_misspelt_name(kind, name_key, entry, location)
        label = entry.pop("name", None) if kind == "detectors" else None
        name = entry.pop(name_key, default_name or label)
        if not isinstance(name, str) or not name:
            message = "has no name" if name is None else f"{describe_value(name)} is not a name"
            example = next(iter(self.registries[kind].table), "package/Name")
            raise WrongType(message, remedy=f"write {name_key}: {example}")
        name_location = location if isinstance(raw, str) else (*location, name_key)
        reader = EntryReader(
            *(self.document, self.registries, self.k, self.device, self.resolve),
            *(kind, location, name_location),
        )
        return reader.read(name, entry, label)

    def _refuse_misspelt_name(
        self, kind: str, name_key: str, entry: dict[str, Any], location: KeyPath
    ) -> None:
        """Raise if a key was meant to name the plug-in; a detector's label may be its name."""
        if name_key in entry:
            return
        with suppress(UnknownName):
            if isinstance(label := entry.get("name"), str):
                self.registries[kind].resolve_name(label)
                return
        for key in find_nearest(name_key, map(str, entry), limit=1):
            message, remedy = f"not a key of {location[0]}", f"did you mean {name_key}?"
            raise UnknownKey(message, where=key, remedy=remedy)


def _expand(spec: PluginSpec) -> Iterator[PluginSpec]:
    """Yield a plug-in; a metric by group without ``gap`` is yielded once for each default.

    After a model come its versions by re-rankers.
    """
    grouping = spec.grouping
    if grouping is None or grouping.gap:
        yield spec
        yield from (make_reranked(spec, reranker) for reranker in spec.rerankers)
        return
    for gap in DEFAULT_GAPS:
        least = f", min_group={grouping.min_group}" if grouping.min_group else ""
        suffix = "" if gap == "groups" else f", gap={gap}{least}"
        name, closing = (spec.label[:-1], ")") if spec.label.endswith(")") else (spec.label, "")
        label = f"{name}{suffix}{closing}"
        yield replace(spec, grouping=replace(grouping, gap=gap), label=label)
