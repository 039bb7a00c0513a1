"""The sweep of a spec: the models, datasets and seeds that it stands for.

A sweep is a mapping of settings to lists, of which every combination is run, or a list of
settings. Each variant of a model or dataset is an entry of its own, with a label such as
``ItemKNN(neighbors=20)``.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from recbias.config.labels import format_value, select_differing
from recbias.config.source import SWEEP, place_value, split_path, take_step
from recbias.config.specs import DEFAULT_SEED
from recbias.core.errors import (
    Contradiction,
    OutOfRange,
    UnknownKey,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.files import to_canonical_json
from recbias.core.registry import Registry, is_file
from recbias.core.text import flatten_settings, normalize_name, suggest
from recbias.formats.yaml import Document, KeyPath, format_key_path

_MOST_COMBINATIONS = 1_000
"""The largest number of combinations of a sweep."""

_SEED = "seed"

_KINDS = {"models": "models", "dataset": "datasets"}
_ONE_A_RUN = "write a spec for each value and compare the runs: recbias compare A B"
_REMEDIES = {
    "checks": "write a check for each limit under checks",
    "k": "set k to the largest, and give each metric its cutoff under metrics: nDCG@5, nDCG@10",
    "labels": "list the detector once for each setting under labels, each with its own name",
    "metrics": "list the metric once for each setting under metrics",
    "queries": _ONE_A_RUN,
    "seeds": "write sweep: {seed: [1, 2, 3]}",
    "split": _ONE_A_RUN,
    "tests": "list the test once for each setting under tests",
}
"""What to do instead of varying a key that has one value in a run."""


def expand_sweep(document: Document, registries: Mapping[str, Registry]) -> dict[str, list[str]]:
    """Replace the sweep of a document by entries with labels such as ``ItemKNN(neighbors=20)``.

    Faults are recorded in the document, at the values of the sweep; a sweep with faults changes
    nothing.

    Returns:
        What the sweep made: the labels of ``models`` and ``datasets``, and the ``seeds``.
    """
    sweep, made = _SweepReader(document).read(), dict[str, list[str]]()
    for key, kind in _KINDS.items():
        changes = {target.at: own for target, own in sweep.items() if target.key == key}
        if changes:
            expander = _EntryExpander(document, key, registries[kind])
            expander.expand(changes)
            made[kind] = [label for labels in expander.labels.values() for label in labels]
            if kind == "models":
                _widen_checks(document, expander.labels, expander.unchanged)
    if seeds := sweep.get(_Target(_SEED)):
        made["seeds"] = _expand_seeds(document, seeds)
    document.data.pop(SWEEP, None)
    return made


# ---- what is varied ----


@dataclass(frozen=True)
class _Target:
    """An entry of ``models`` or ``dataset`` by its position, or the seed."""

    key: str
    at: int = 0


@dataclass(frozen=True)
class _SweptValue:
    """One value of one setting.

    Args:
        steps: The path of the setting inside its target; empty for the target itself.
        written: Where the sweep has the value.
    """

    target: _Target
    steps: KeyPath
    value: Any
    written: KeyPath

    @property
    def where(self) -> KeyPath:
        """The place of a list of values, or of a setting in a list of settings."""
        return self.written[:-1] if isinstance(self.written[-1], int) else self.written


_Change: TypeAlias = tuple[_SweptValue, ...]
"""Values of one target that stand together; an empty change keeps the target as it is."""


def _identify(change: Iterable[_SweptValue]) -> frozenset[tuple[object, ...]]:
    """Return what equal changes share: 1 and 1.0 are equal, 1 and true are not."""
    return frozenset(
        (
            each.target,
            each.steps,
            to_canonical_json(
                int(each.value)
                if isinstance(each.value, float) and each.value.is_integer()
                else each.value
            ),
        )
        for each in change
    )


@dataclass(frozen=True)
class _SweepReader:
    document: Document

    def read(self) -> Mapping[_Target, Sequence[_Change]]:
        """Return the changes that the sweep makes of each target; none if it has a fault."""
        raw, n_faults = self.document.data.get(SWEEP), len(self.document.faults)
        sweep: Mapping[_Target, Sequence[_Change]] = {}
        if isinstance(raw, dict) and raw:
            sweep = self.read_grid(raw)
        elif (
            isinstance(raw, list) and raw and all(item and isinstance(item, dict) for item in raw)
        ):
            sweep = self.read_list(raw)
        elif raw is not None:
            message = "must be a mapping of settings to lists, or a list of settings"
            remedy = "write sweep: {models.1.neighbors: [20, 50, 100]}, or a list of settings"
            self.blame((SWEEP,), message if raw else "is empty", remedy, WrongType)
        return sweep if len(self.document.faults) == n_faults else {}

    def read_grid(self, raw: Mapping[str, Any]) -> Mapping[_Target, Sequence[_Change]]:
        """Return every combination of the values of each target."""
        columns: dict[_Target, list[list[_SweptValue]]] = {}
        for path, values in raw.items():
            where = (SWEEP, path)
            if not isinstance(values, list) or not values:
                message = "is an empty list" if values == [] else "must be a list of values"
                self.blame(where, message, f"write {path}: [20, 50, 100]", WrongType)
            elif (setting := self.find_setting(path, where)) is not None:
                column = [
                    _SweptValue(*setting, value, (*where, at)) for at, value in enumerate(values)
                ]
                columns.setdefault(setting[0], []).append(column)
        counts = {target: math.prod(map(len, own)) for target, own in columns.items()}
        if self.has_too_many(counts):
            return {}
        lists = [column for own in columns.values() for column in own]
        for column in lists:
            self.refuse_repeated([(value,) for value in column])
        self.refuse_overlaps([column[0] for column in lists])
        return {target: [*itertools.product(*own)] for target, own in columns.items()}

    def read_list(self, raw: Sequence[Mapping[str, Any]]) -> Mapping[_Target, Sequence[_Change]]:
        """Return the changes that a list of settings makes."""
        if self.has_too_many({_Target("models"): len(raw)}):
            return {}
        items: list[_Change] = []
        for at, settings in enumerate(raw):
            places = {path: (SWEEP, at, path) for path in settings}
            found = {path: self.find_setting(path, place) for path, place in places.items()}
            items.append(
                tuple(
                    _SweptValue(*setting, settings[path], places[path])
                    for path, setting in found.items()
                    if setting is not None
                )
            )
            self.refuse_overlaps(items[-1])
        self.refuse_repeated([item for item in items if item])
        targets = {value.target for item in items for value in item}
        sweep = {
            target: _unify(tuple(v for v in item if v.target == target) for item in items)
            for target in targets
        }
        self.refuse_missing_combinations(items)
        return sweep

    def find_setting(self, path: str, where: KeyPath) -> tuple[_Target, KeyPath] | None:
        """Return the target of a path and the steps inside it, None if there is a fault."""
        key, *steps = split_path(path)
        try:
            target, inner = self.find_target(key, steps)
            location = self.locate(target, inner)
            if not self.document.mark(location).lined and location in self.document.values:
                message = f"{format_key_path(location)} is also set by --set"
                remedy = f"leave one out, or write --set '{SWEEP}.{path}=[20, 50]'"
                raise Contradiction(message, remedy=remedy)
        except UserError as error:
            self.blame(where, error.message, error.remedy, type(error))
            return None
        return target, inner

    def find_target(self, key: str, steps: Sequence[str]) -> tuple[_Target, KeyPath]:
        """Return the target of a path and the steps inside it; an error if none can be varied."""
        data = self.document.data
        if key == _SEED and not steps:
            if data.get("seeds") is not None:
                raise Contradiction("seeds is set too", remedy="keep one of sweep and seeds")
            return _Target(_SEED), ()
        if key in _REMEDIES:
            raise Contradiction("has one value in a run", remedy=_REMEDIES[key])
        if key not in _KINDS:
            remedy = suggest(key, [*_KINDS, _SEED])
            raise UnknownKey("is not a setting of a model, a dataset or the seed", remedy=remedy)
        entries = data.get(key)
        if key == "dataset" and not isinstance(entries, list):
            return _Target(key), _resolve_steps(entries, steps, (key,))
        if not isinstance(entries, list):
            remedy = "list the models under models"
            raise UnknownKey(f"{key} is not a list in the spec", remedy=remedy)
        if not steps:
            remedy = f"name one by its position: {key}.0"
            raise UnknownKey("is not one entry", remedy=remedy)
        entry, rest = take_step(entries, steps, (key,))
        at = int(entry)
        return _Target(key, at), _resolve_steps(entries[at], rest, (key, at))

    def locate(self, target: _Target, steps: KeyPath) -> KeyPath:
        """Return the place of a setting in the document."""
        has_list = isinstance(self.document.data.get(target.key), list)
        return (target.key, *((target.at,) if has_list else ()), *steps)

    def has_too_many(self, counts: Mapping[_Target, int]) -> bool:
        """Return whether there are too many combinations of model, dataset and seed, a fault."""
        n = math.prod(
            sum(count for target, count in counts.items() if target.key == key)
            for key in {target.key for target in counts}
        )
        if n > _MOST_COMBINATIONS:
            message = f"has {n:,} combinations, more than {_MOST_COMBINATIONS:,}"
            remedy = "list fewer values, list the settings of interest, or search them with tune"
            self.blame((SWEEP,), message, remedy, OutOfRange)
        return n > _MOST_COMBINATIONS

    def refuse_overlaps(self, values: Sequence[_SweptValue]) -> None:
        """Record each setting that is another one of the sweep, or inside it."""
        outer: set[tuple[_Target, KeyPath]] = set()
        for value in sorted(values, key=lambda value: len(value.steps)):
            for end in range(len(value.steps) + 1):
                if (value.target, value.steps[:end]) in outer:
                    place = self.locate(value.target, value.steps[:end])
                    relation = "is" if end == len(value.steps) else "is inside"
                    message = f"{relation} {format_key_path(place)}, which is swept too"
                    self.blame(value.where, message, "keep one of the two", Contradiction)
            outer.add((value.target, value.steps))

    def refuse_repeated(self, changes: Sequence[_Change]) -> None:
        """Record each change that is in the sweep before."""
        earlier: dict[object, _Change] = {}
        for change in changes:
            first = earlier.setdefault(_identify(change), change)
            if first is not change:
                written = change[0].written
                where = written if isinstance(written[-1], int) else written[:2]
                message = f"is also {format_key_path(first[0].written[: len(where)])}"
                self.blame(where, message, "list each setting once", Contradiction)

    def refuse_missing_combinations(self, items: Sequence[_Change]) -> None:
        """Record a fault if the models, datasets and seeds of a list are not all combined."""
        n = math.prod(
            len({_identify(v for v in item if v.target.key == key) for item in items})
            for key in (*_KINDS, _SEED)
        )
        if n > len(items):
            message = (
                "a run has every model on every dataset under every seed: "
                f"{n - len(items):,} of these combinations are not in the list"
            )
            remedy = "write the sweep as a mapping of lists, or a spec for each setting"
            self.blame((SWEEP,), message, remedy, Contradiction)

    def blame(self, where: KeyPath, message: str, remedy: str, kind: type[UserError]) -> None:
        is_setting = isinstance(where[-1], str)
        self.document.add_fault(where, message, remedy=remedy, kind=kind, key=is_setting)


def _resolve_steps(entry: Any, steps: Sequence[str], location: KeyPath) -> KeyPath:
    """Return the steps of a setting inside an entry, by position where they enter a list."""
    resolved: list[str | int] = []
    while steps:
        step, steps = take_step(entry, steps, (*location, *resolved))
        resolved.append(step)
        entry = _enter(entry, step)
    return tuple(resolved)


def _enter(entry: Any, step: str | int) -> Any:
    """Return what an entry of a list or mapping has at a step; None if there is nothing."""
    if isinstance(step, int):
        return entry[step]
    return entry.get(step) if isinstance(entry, dict) else None


def _unify(changes: Iterable[_Change]) -> list[_Change]:
    """Return each change once."""
    unique: dict[object, _Change] = {}
    for change in changes:
        unique.setdefault(_identify(change), change)
    return list(unique.values())


# ---- the entries that stand for a sweep ----


def _expand_seeds(document: Document, changes: Sequence[_Change]) -> list[str]:
    position, seed = ("seeds",), document.data.pop(_SEED, DEFAULT_SEED)
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
    """Let the checks of a model that the sweep varies mean each of its variants."""
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

    def expand(self, changes: Mapping[int, Sequence[_Change]]) -> None:
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
                _copy_marks(variant, (self.key,), self.document, position)

    def take_out(self, entry: Any, origin: KeyPath) -> Document:
        """Remove the marks of an entry, and return it as a document with one key."""
        part = Document({self.key: entry}, base=self.document.base)
        part.origins[self.key,] = origin
        _copy_marks(self.document, origin, part, (self.key,))
        if len(origin) > 1:
            self.document.forget(origin)
        return part

    def change(self, part: Document, change: _Change) -> Document:
        """Return a copy of an entry with a change; a fault is recorded at the swept value."""
        copied = copy.deepcopy(part)
        for value in change:
            steps = [self.key, *map(str, value.steps)]
            written = Document(copy.deepcopy(value.value))
            _copy_marks(self.document, value.written, written, ())
            try:
                place_value(copied, steps, written, self.document.mark(value.where, key=True))
            except UserError as error:
                self.document.add_error(value.written, error)
            copied.origins[self.key, *value.steps] = value.written
        return copied

    def select_own_settings(
        self, entries: Sequence[Any], changes: Mapping[int, Sequence[_Change]]
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
        changes: Sequence[_Change],
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


def _read_written(entry: Any, changes: Sequence[_Change]) -> dict[str, Any]:
    """Return the settings of an entry by path, without those that the sweep sets."""
    settings = entry if isinstance(entry, dict) else {}
    swept = {".".join(map(str, value.steps)) for change in changes for value in change}
    return {
        path: value
        for path, value in flatten_settings(settings)
        if path not in {*swept, "name", "rerank"}
    }


def _show(value: _SweptValue, entry: Any) -> str:
    """Return a setting in a label: ``neighbors=20``, ``threshold.at_least=4``."""
    names: list[str] = []
    for step in value.steps:
        entry = _enter(entry, step)
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(step, int) and isinstance(name, str):
            names[-1:] = [name]
        else:
            names.append(str(step))
    return f"{'.'.join(names)}={format_value(value.value)}"


def _make_unique(label: str, labels: Sequence[str]) -> str:
    """Return a label that others do not have, as those of long values may be equal."""
    numbered = (f"{label} #{n}" if n > 1 else label for n in itertools.count(1))
    return next(each for each in numbered if each not in labels)


def _copy_marks(source: Document, origin: KeyPath, target: Document, position: KeyPath) -> None:
    """Copy the marks and origins at and below a position of a document to another one."""
    n = len(origin)
    for name in ("keys", "values", "origins"):
        found = vars(source)[name]
        vars(target)[name] |= {
            (*position, *path[n:]): item for path, item in found.items() if path[:n] == origin
        }
