"""The sweep of a spec: the models, datasets and seeds that it stands for.

A sweep is a mapping of settings to lists, of which every combination is run. Each variant of a
model or dataset is an entry of its own, with a label such as ``ItemKNN(neighbors=20)``.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recbias.config.source import SWEEP, place_value, split_path, take_step
from recbias.config.specs import DEFAULT_SEED
from recbias.core.errors import Contradiction, OutOfRange, UnknownKey, UserError, WrongType
from recbias.core.text import suggest
from recbias.formats.yaml import Document, KeyPath, format_key_path

_MOST_COMBINATIONS = 1_000
"""The largest number of combinations of a sweep."""

_SEED = "seed"
_LISTS = ("models", "dataset")
_ONE_VALUE = ("checks", "k", "labels", "metrics", "queries", "seeds", "split", "tests")
"""The keys that have one value in a run."""

_ONE_A_RUN = (
    "list several entries, as in metrics: [nDCG@5, nDCG@10], or write a spec for each value and "
    "compare the runs: recbias compare A B"
)


@dataclass(frozen=True)
class _Swept:
    """One setting of an entry of ``models`` or ``dataset``, or the seed, with its values.

    Args:
        steps: The path of the setting inside its entry; empty for the entry itself.
        where: The place of the values.
    """

    key: str
    at: int
    steps: KeyPath
    values: Sequence[Any]
    where: KeyPath


def expand_sweep(document: Document) -> dict[KeyPath, dict[str, Any]]:
    """Replace the entries that the sweep of a document varies by one for each combination.

    Faults are recorded in the document, at the values of the sweep; a sweep with faults changes
    nothing.

    Returns:
        The places of the new entries and seeds, with the settings that their labels state.
    """
    raw, n_faults = document.data.get(SWEEP), len(document.faults)
    settings = [*_read(document, raw)]
    _refuse_many_or_overlapping(document, settings)
    made: dict[KeyPath, dict[str, Any]] = {}
    for key in (*_LISTS, _SEED) if len(document.faults) == n_faults else ():
        own = [setting for setting in settings if setting.key == key]
        if own and key == _SEED:
            made |= _expand_seeds(document, own[0])
        elif own:
            made |= _expand_entries(document, key, own)
    document.data.pop(SWEEP, None)
    return made


# ---- what is varied ----


def _read(document: Document, raw: Any) -> Iterator[_Swept]:
    """Yield the settings of a sweep that have no fault."""
    if not isinstance(raw, dict) or not raw:
        if raw is not None:
            message = "is empty" if raw == {} else "must be a mapping of settings to lists"
            remedy = "write sweep: {models.1.neighbors: [20, 50, 100]}"
            document.add_fault((SWEEP,), message, remedy=remedy, kind=WrongType, key=True)
        return
    for path, values in raw.items():
        where = (SWEEP, path)
        try:
            if not isinstance(values, list) or not values:
                message = "is an empty list" if values == [] else "must be a list of values"
                raise WrongType(message, remedy=f"write {path}: [20, 50, 100]")
            key, at, steps = _find_setting(document, path)
            yield _Swept(key, at, steps, values, where)
        except UserError as error:
            remedy, kind = error.remedy, type(error)
            document.add_fault(where, error.message, remedy=remedy, kind=kind, key=True)


def _find_setting(document: Document, path: str) -> tuple[str, int, KeyPath]:
    """Return the key, the entry and the steps inside it; an error if the path cannot be varied."""
    data, (key, *steps) = document.data, split_path(path)
    at = 0
    inner: KeyPath = ()
    location: KeyPath = (_SEED,)
    if key == _SEED and not steps:
        if data.get("seeds") is not None:
            raise Contradiction("seeds is set too", remedy="keep one of sweep and seeds")
    elif key in _ONE_VALUE:
        raise Contradiction("has one value in a run", remedy=_ONE_A_RUN)
    elif key not in _LISTS:
        remedy = suggest(key, [*_LISTS, _SEED])
        raise UnknownKey("is not a setting of a model, a dataset or the seed", remedy=remedy)
    else:
        at, inner, location = _find_entry(data.get(key), key, steps)
    if not document.mark(location).lined and location in document.values:
        message = f"{format_key_path(location)} is also set by --set"
        remedy = f"leave one out, or write --set '{SWEEP}.{path}=[20, 50]'"
        raise Contradiction(message, remedy=remedy)
    return key, at, inner


def _find_entry(entries: Any, key: str, steps: Sequence[str]) -> tuple[int, KeyPath, KeyPath]:
    """Return the position of an entry, the steps inside it, and both in the document."""
    if key == "dataset" and not isinstance(entries, list):
        inner = _resolve_steps(entries, steps, (key,))
        return 0, inner, (key, *inner)
    if not isinstance(entries, list):
        remedy = "list the models under models"
        raise UnknownKey(f"{key} is not a list in the spec", remedy=remedy)
    if not steps:
        raise UnknownKey("is not one entry", remedy=f"name one by its position: {key}.0")
    entry, rest = take_step(entries, steps, (key,))
    at = int(entry)
    inner = _resolve_steps(entries[at], rest, (key, at))
    return at, inner, (key, at, *inner)


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


def _refuse_many_or_overlapping(document: Document, settings: Sequence[_Swept]) -> None:
    """Record too many combinations, and each setting that is another one or inside it."""
    sizes = dict[str, dict[int, int]]()
    for setting in settings:
        of_key = sizes.setdefault(setting.key, {})
        of_key[setting.at] = of_key.get(setting.at, 1) * len(setting.values)
    n = math.prod(sum(of_key.values()) for of_key in sizes.values())
    if n > _MOST_COMBINATIONS:
        message = f"has {n:,} combinations, more than {_MOST_COMBINATIONS:,}"
        remedy = "list fewer values, list the settings of interest, or search them with tune"
        document.add_fault((SWEEP,), message, remedy=remedy, kind=OutOfRange, key=True)
    places = [(setting.key, setting.at, *setting.steps) for setting in settings]
    for before, after in itertools.permutations(range(len(places)), 2):
        place, other = places[after], places[before]
        if place[: len(other)] == other and (after > before or place != other):
            message = f"is, or is inside, {settings[before].where[-1]}, which is swept too"
            where, remedy = settings[after].where, "keep one of the two"
            document.add_fault(where, message, remedy=remedy, kind=Contradiction, key=True)


# ---- the entries that stand for a sweep ----


def _expand_seeds(document: Document, swept: _Swept) -> dict[KeyPath, dict[str, Any]]:
    document.data.pop(_SEED, DEFAULT_SEED)
    document.data["seeds"] = list(swept.values)
    _copy_marks(document, swept.where, document, ("seeds",))
    document.origins["seeds",] = swept.where
    return {("seeds", at): {} for at in range(len(swept.values))}


def _expand_entries(
    document: Document, key: str, settings: Sequence[_Swept]
) -> dict[KeyPath, dict[str, Any]]:
    """Replace each entry by one for each combination of its values."""
    raw, before = document.data.get(key), copy.copy(document)
    before.keys, before.values = dict(document.keys), dict(document.values)
    before.origins = dict(document.origins)
    entries: dict[KeyPath, Any] = {(key,): raw}
    if isinstance(raw, list):
        entries = {(key, at): entry for at, entry in enumerate(raw)}
    for origin in entries if isinstance(raw, list) else ():
        document.forget(origin)
    document.data[key], made = [], dict[KeyPath, dict[str, Any]]()
    for at, (origin, entry) in enumerate(entries.items()):
        own = [setting for setting in settings if setting.at == at]
        for numbers in itertools.product(*(range(len(setting.values)) for setting in own)):
            place = (key, len(document.data[key]))
            document.data[key].append(copy.deepcopy(entry))
            _copy_marks(before, origin, document, place)
            document.origins[place] = origin
            stated = {}
            for setting, number in zip(own, numbers, strict=True):
                _place(document, place, setting, number)
                if setting.steps not in {(), ("name",), ("label",)}:
                    stated[_name_setting(entry, setting.steps)] = setting.values[number]
            if own:
                is_labelled = any(setting.steps == ("label",) for setting in own)
                made[place] = {} if is_labelled else stated
    return made


def _place(document: Document, place: KeyPath, setting: _Swept, number: int) -> None:
    """Set one of the values of a setting; a fault is recorded at the value."""
    written = (*setting.where, number)
    value = Document(copy.deepcopy(setting.values[number]))
    _copy_marks(document, written, value, ())
    try:
        steps = [*map(str, place), *map(str, setting.steps)]
        place_value(document, steps, value, document.mark(setting.where, key=True))
    except UserError as error:
        document.add_error(written, error)
    document.origins[*place, *setting.steps] = written


def _name_setting(entry: Any, steps: KeyPath) -> str:
    """Return a setting as a label names it: ``neighbors``, ``threshold.at_least`` of a filter."""
    names: list[str] = []
    for step in steps:
        entry = _enter(entry, step)
        name = entry.get("name") if isinstance(entry, Mapping) else entry
        if isinstance(step, int) and isinstance(name, str):
            names[-1:] = [name]
        else:
            names.append(str(step))
    return ".".join(names)


def _copy_marks(source: Document, origin: KeyPath, target: Document, position: KeyPath) -> None:
    """Copy the marks and origins at and below a position of a document to another one."""
    n = len(origin)
    for name in ("keys", "values", "origins"):
        found = vars(source)[name]
        vars(target)[name] |= {
            (*position, *path[n:]): item for path, item in found.items() if path[:n] == origin
        }
