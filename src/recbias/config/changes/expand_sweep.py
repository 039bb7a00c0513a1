"""Replace the sweep of a spec by the models, datasets and seeds that it stands for."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recbias.config.changes.overrides import SWEEP, place_value
from recbias.config.changes.sweep_settings import read_sweep
from recbias.config.changes.swept_values import SEED, Change, SweptValue, Target, is_grid
from recbias.config.labels import flatten_settings, format_value, select_differing
from recbias.config.specs import DEFAULT_SEED
from recbias.core.errors import UnknownName, UserError
from recbias.core.registry import Registry, is_file
from recbias.core.suggestions import normalize_name
from recbias.formats.yaml.source_map import Document, KeyPath

Found = TypeVar("Found")

_KINDS = {"models": "models", "dataset": "datasets"}


def expand_sweep(document: Document, registries: Mapping[str, Registry]) -> dict[str, list[str]]:
    """Replace the sweep of a document by entries with labels such as ``ItemKNN(neighbors=20)``.

    Faults are recorded in the document, at the values of the sweep.

    Returns:
        What the sweep made: the labels of ``models`` and ``datasets``, and the ``seeds``.
    """
    sweep, made = read_sweep(document), dict[str, list[str]]()
    for key, kind in _KINDS.items():
        changes = {target.at: own for target, own in sweep.items() if target.key == key}
        if changes:
            expander = _EntryExpander(document, key, registries[kind])
            expander.expand(changes)
            made[kind] = [label for labels in expander.labels.values() for label in labels]
            if kind == "models":
                _widen_checks(document, expander.labels, expander.unchanged)
    if seeds := sweep.get(Target(SEED)):
        made["seeds"] = _expand_seeds(document, seeds)
    document.data.pop(SWEEP, None)
    return made


def _expand_seeds(document: Document, changes: Sequence[Change]) -> list[str]:
    position, seed = ("seeds",), document.data.pop(SEED, DEFAULT_SEED)
    document.data["seeds"] = [change[0].value if change else seed for change in changes]
    document.values[position] = document.keys[position] = document.mark((SWEEP,))
    document.origins[position] = (SWEEP,)
    for at, change in enumerate(changes):
        for value in change:
            document.values[*position, at] = document.mark(value.written)
            document.origins[*position, at] = value.written
    return [str(seed) for seed in document.data["seeds"]]


def _widen_checks(
    document: Document, labels: Mapping[str, Sequence[str]], unchanged: Collection[str]
) -> None:
    """Let the checks of a model that the sweep varies mean each of its variants.

    They still mean a model of the same label that the sweep does not vary.
    """
    variants = {
        normalize_name(label): [*own, *([label] if label in unchanged else [])]
        for label, own in labels.items()
    }
    checks = document.data.get("checks")
    for check in checks if isinstance(checks, list) else ():
        names = check.get("models") if isinstance(check, dict) else None
        if isinstance(names, list):
            check["models"] = [
                label
                for name in names
                for label in variants.get(normalize_name(str(name)), [name])
            ]


@dataclass
class _EntryExpander:
    """Replaces the entries of a list by one for each change.

    Args:
        labels: The labels of the variants of the entries that have any, by their own label.
        unchanged: The labels of the other entries.
    """

    document: Document
    key: str
    registry: Registry
    labels: dict[str, list[str]] = field(default_factory=dict)
    unchanged: set[str] = field(default_factory=set)

    def expand(self, changes: Mapping[int, Sequence[Change]]) -> None:
        """Replace the entries; ``changes`` are those of the entries that have any."""
        data = self.document.data
        entries: list[tuple[Any, KeyPath]] = [(data.get(self.key), (self.key,))]
        if isinstance(data.get(self.key), list):
            entries = [(entry, (self.key, at)) for at, entry in enumerate(data[self.key])]
        parts = [self.take_out(entry, origin) for entry, origin in entries]
        own_settings = self.select_own_settings([part.data[self.key] for part in parts], changes)
        data[self.key] = []
        for at, part in enumerate(parts):
            variants = [self.change(part, change) for change in changes.get(at, [()])]
            if at in changes:
                self.name_variants(part, variants, changes[at], own_settings[at])
            else:
                self.unchanged.add(self.get_label(part.data[self.key]))
            for variant in variants:
                position = (self.key, len(data[self.key]))
                data[self.key].append(variant.data[self.key])
                _move(variant, (self.key,), self.document, position)

    def take_out(self, entry: Any, origin: KeyPath) -> Document:
        """Remove the marks of an entry, and return it as a document with one key."""
        part = Document({self.key: entry}, base=self.document.base)
        part.origins[self.key,] = origin
        _move(self.document, origin, part, (self.key,))
        for marks in (self.document.keys, self.document.values):
            for path in [path for path in marks if path[: len(origin)] == origin]:
                if len(path) > 1:
                    del marks[path]
        return part

    def change(self, part: Document, change: Change) -> Document:
        """Return a copy of an entry with a change; a fault is recorded at the swept value."""
        copied = copy.deepcopy(part)
        for value in change:
            steps = [self.key, *map(str, value.steps)]
            where = value.written[:-1] if is_grid(value) else value.written
            written = Document(copy.deepcopy(value.value))
            _move(self.document, value.written, written, ())
            try:
                place_value(copied, steps, written, self.document.mark(where, key=True))
            except UserError as error:
                self.document.add_error(value.written, error)
            copied.origins[self.key, *value.steps] = value.written
        return copied

    def select_own_settings(
        self, entries: Sequence[Any], changes: Mapping[int, Sequence[Change]]
    ) -> list[dict[str, Any]]:
        """Return the settings in which entries of one plug-in differ without the sweep."""
        own: list[dict[str, Any]] = [{} for _ in entries]
        groups: dict[str, list[int]] = {}
        for at, entry in enumerate(entries):
            if not (isinstance(entry, dict) and "label" in entry):
                groups.setdefault(self.get_label(entry), []).append(at)
        for members in groups.values():
            written = [_read_written(entries[at], changes.get(at, ())) for at in members]
            for at, settings in zip(members, select_differing(written), strict=True):
                own[at] = settings
        return own

    def name_variants(
        self,
        part: Document,
        variants: Sequence[Document],
        changes: Sequence[Change],
        own_settings: Mapping[str, Any],
    ) -> None:
        """Give each variant a label with its settings, unless the sweep sets its name or label."""
        own = [f"{name}={format_value(value)}" for name, value in own_settings.items()]
        names: list[str] = []
        for variant, change in zip(variants, changes, strict=True):
            entry = variant.data[self.key]
            name = self.get_label(entry)
            steps = {value.steps for value in change}
            displayed = [v for v in change if v.steps not in {(), ("name",)}]
            if name and displayed and ("label",) not in steps:
                swept = [_show(value, part.data[self.key]) for value in displayed]
                settings = ", ".join([*own, *swept])
                name = entry["label"] = _make_unique(f"{name}({settings})", names)
            names.append(name)
        self.labels.setdefault(self.get_label(part.data[self.key]), []).extend(names)

    def get_label(self, entry: Any) -> str:
        """Return the label that an entry has in the reports, blank if it has a fault."""
        written = entry if isinstance(entry, dict) else {"name": entry}
        name = written.get("label", written.get("name"))
        if not isinstance(name, str) or "label" in written:
            return name if isinstance(name, str) else ""
        try:
            return name.rpartition(":")[2] if is_file(name) else self.registry.resolve_name(name)
        except UnknownName:
            return name


def _read_written(entry: Any, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the settings of an entry by path, without those that the sweep sets."""
    settings = entry if isinstance(entry, dict) else {}
    swept = {".".join(map(str, value.steps)) for change in changes for value in change}
    return {
        path: value
        for path, value in flatten_settings(settings)
        if path not in {*swept, "name", "rerank"}
    }


def _show(value: SweptValue, entry: Any) -> str:
    """Return a setting in a label: ``neighbors=20``, ``threshold.at_least=4``."""
    names: list[str] = []
    for step in value.steps:
        entry = entry[step] if isinstance(step, int) else _get(entry, step)
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(step, int) and isinstance(name, str):
            names[-1:] = [name]
        else:
            names.append(str(step))
    return f"{'.'.join(names)}={format_value(value.value)}"


def _get(entry: Any, step: str) -> Any:
    return entry.get(step) if isinstance(entry, dict) else None


def _make_unique(label: str, labels: Sequence[str]) -> str:
    """Return a label that others do not have, as those of long values may be equal."""
    n = 1
    while label in labels:
        n += 1
        label = f"{label.removesuffix(f' #{n - 1}')} #{n}"
    return label


def _move(source: Document, origin: KeyPath, target: Document, position: KeyPath) -> None:
    """Copy the marks and origins at and below a position of a document to another one."""
    target.keys |= _replace_start(source.keys, origin, position)
    target.values |= _replace_start(source.values, origin, position)
    target.origins |= _replace_start(source.origins, origin, position)


def _replace_start(
    found: Mapping[KeyPath, Found], origin: KeyPath, position: KeyPath
) -> dict[KeyPath, Found]:
    n = len(origin)
    return {(*position, *path[n:]): item for path, item in found.items() if path[:n] == origin}
