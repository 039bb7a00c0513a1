"""Read the settings that a sweep varies: a grid, or a list of settings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recbias.config.changes.overrides import SWEEP, split_path
from recbias.config.changes.swept_values import (
    SEED,
    Change,
    Sweep,
    SweptValue,
    Target,
    find_target,
    is_grid,
    locate,
)
from recbias.core.errors import Contradiction, OutOfRange, UserError, WrongType
from recbias.formats.yaml.source_map import Document, KeyPath, format_key_path

MOST_COMBINATIONS = 1_000
"""The largest number of combinations of a sweep."""

_EXAMPLE = "write sweep: {models.1.neighbors: [20, 50, 100]}, or a list of settings"


def read_sweep(document: Document) -> Sweep:
    """Return the changes that the sweep of a document makes.

    Faults are recorded in the document; a sweep with faults changes nothing.
    """
    raw, reader, n_faults = document.data.get(SWEEP), _SweepReader(document), len(document.faults)
    sweep: Sweep = {}
    if isinstance(raw, dict) and raw:
        sweep = reader.read_grid(raw)
    elif isinstance(raw, list) and raw and all(item and isinstance(item, dict) for item in raw):
        sweep = reader.read_list(raw)
    elif raw is not None:
        message = "must be a mapping of settings to lists, or a list of settings"
        reader.blame((SWEEP,), message if raw else "is empty", _EXAMPLE, WrongType)
    return sweep if len(document.faults) == n_faults else {}


@dataclass(frozen=True)
class _SweepReader:
    document: Document

    def read_grid(self, raw: Mapping[str, Any]) -> Sweep:
        """Return every combination of the values of each target."""
        settings: dict[str, tuple[Target, KeyPath]] = {}
        for path, values in raw.items():
            if not isinstance(values, list) or not values:
                message = "is an empty list" if values == [] else "must be a list of values"
                self.blame((SWEEP, path), message, f"write {path}: [20, 50, 100]", WrongType)
            elif (setting := self.find_setting(path, (SWEEP, path))) is not None:
                settings[path] = setting
        counts: dict[Target, int] = {}
        for path, (target, _) in settings.items():
            counts[target] = counts.get(target, 1) * len(raw[path])
        if not self.has_few_combinations(counts):
            return {}
        lists: dict[Target, list[list[SweptValue]]] = {target: [] for target in counts}
        for path, (target, steps) in settings.items():
            values = [
                SweptValue(target, steps, value, (SWEEP, path, at))
                for at, value in enumerate(raw[path])
            ]
            self.refuse_repeated([(value,) for value in values])
            lists[target].append(values)
        self.refuse_overlaps([values[0] for columns in lists.values() for values in columns])
        return {target: [*itertools.product(*columns)] for target, columns in lists.items()}

    def read_list(self, raw: Sequence[Mapping[str, Any]]) -> Sweep:
        """Return the changes that a list of settings makes."""
        if not self.has_few_combinations({Target("models"): len(raw)}):
            return {}
        items: list[Change] = []
        for at, settings in enumerate(raw):
            places = {path: (SWEEP, at, path) for path in settings}
            found = {path: self.find_setting(path, place) for path, place in places.items()}
            items.append(
                tuple(
                    SweptValue(*setting, settings[path], places[path])
                    for path, setting in found.items()
                    if setting is not None
                )
            )
            self.refuse_overlaps(items[-1])
        self.refuse_repeated(items)
        targets = dict.fromkeys(value.target for item in items for value in item)
        sweep = {
            target: _unify(tuple(v for v in item if v.target == target) for item in items)
            for target in targets
        }
        self.refuse_missing_combinations(items)
        return sweep

    def find_setting(self, path: str, where: KeyPath) -> tuple[Target, KeyPath] | None:
        """Return the target of a path and the steps inside it, None if there is a fault."""
        key, *steps = split_path(path)
        try:
            target, inner = find_target(self.document, key, steps)
            location = locate(self.document, target, inner)
            if not self.document.mark(location).lined and location in self.document.values:
                message = f"{format_key_path(location)} is also set by --set"
                remedy = f"leave one out, or write --set '{SWEEP}.{path}=[20, 50]'"
                raise Contradiction(message, remedy=remedy)
        except UserError as error:
            self.blame(where, error.message, error.remedy, type(error))
            return None
        return target, inner

    def has_few_combinations(self, counts: Mapping[Target, int]) -> bool:
        """Record a fault if a run would have too many combinations of model, dataset and seed."""
        totals = [
            sum(count for target, count in counts.items() if target.key == key)
            for key in {target.key for target in counts}
        ]
        if (n := math.prod(totals)) > MOST_COMBINATIONS:
            shown = f"{n:,}" if n < 10**15 else f"about 10^{round(math.log10(n))}"
            message = f"has {shown} combinations, more than {MOST_COMBINATIONS:,}"
            remedy = "list fewer values, list the settings of interest, or search them with tune"
            self.blame((SWEEP,), message, remedy, OutOfRange)
            return False
        return True

    def refuse_overlaps(self, values: Sequence[SweptValue]) -> None:
        """Record each setting that is another one of the sweep, or inside it."""
        outer: set[tuple[Target, KeyPath]] = set()
        for value in sorted(values, key=lambda value: len(value.steps)):
            for end in range(len(value.steps) + 1):
                if (value.target, value.steps[:end]) in outer:
                    place = locate(self.document, value.target, value.steps[:end])
                    relation = "is" if end == len(value.steps) else "is inside"
                    message = f"{relation} {format_key_path(place)}, which is swept too"
                    where = value.written[:-1] if is_grid(value) else value.written
                    self.blame(where, message, "keep one of the two", Contradiction)
            outer.add((value.target, value.steps))

    def refuse_repeated(self, changes: Sequence[Change]) -> None:
        """Record each change that is in the sweep before."""
        earlier: dict[object, Change] = {}
        for change in changes:
            first = earlier.setdefault(frozenset(v.identity for v in change), change)
            if first is not change:
                where = change[0].written if is_grid(change[0]) else change[0].written[:2]
                message = f"is also {format_key_path(first[0].written[: len(where)])}"
                self.blame(where, message, "list each setting once", Contradiction)

    def refuse_missing_combinations(self, items: Sequence[Change]) -> None:
        """Record a fault if the models, datasets and seeds of a list are not all combined."""
        axes = [
            {frozenset(v.identity for v in item if v.target.key == key) for item in items}
            for key in ("models", "dataset", SEED)
        ]
        n_missing = math.prod(map(len, axes)) - len(items)
        if n_missing > 0:
            message = (
                "a run has every model on every dataset under every seed: "
                f"{n_missing:,} of these combinations are not in the list"
            )
            remedy = "write the sweep as a mapping of lists, or a spec for each setting"
            self.blame((SWEEP,), message, remedy, Contradiction)

    def blame(self, where: KeyPath, message: str, remedy: str, kind: type[UserError]) -> None:
        is_setting = isinstance(where[-1], str)
        self.document.add_fault(where, message, remedy=remedy, kind=kind, key=is_setting)


def _unify(changes: Iterable[Change]) -> list[Change]:
    """Return each change once."""
    unique: dict[object, Change] = {}
    for change in changes:
        unique.setdefault(frozenset(value.identity for value in change), change)
    return list(unique.values())
