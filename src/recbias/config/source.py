"""The text of an experiment: its file, the files that it extends, overrides and its sweep.

A packaged spec has a name: ``quickstart``, ``papers/lmrec/users``. An override sets one value by
its path: ``models.1.neighbors=40``. A sweep is a mapping of settings to lists, of which every
combination is run: each variant of a model or dataset is an entry of its own, with a label such as
``ItemKNN(neighbors=20)``.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from recbias.config.settings import as_plain
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.text import find_nearest, normalize_name, suggest
from recbias.formats.yaml import (
    Document,
    KeyPath,
    Mark,
    format_key_path,
    is_file,
    read_file,
    read_text,
    suggest_file,
)

STARTS = ("quickstart", "audit", "prompts", "vectors", "multiverse")
"""The specs for a start, which are listed first."""

_FOLDERS = {"papers/aab": "papers/aab/ml-1m-gender"}
"""The spec that the name of a folder stands for, where the folder holds several."""

_FOLDER = Path(__file__).parents[1] / "configs"


def list_specs() -> dict[str, Path]:
    """Return the packaged specs by name, those for a start first."""
    specs = {
        path.relative_to(_FOLDER).with_suffix("").as_posix(): path
        for path in sorted(_FOLDER.rglob("*.yaml"))
        if not is_file(path.parent.with_suffix(".yaml"))  # a file that a spec reads
    }
    first = {name: specs.pop(name) for name in STARTS if name in specs}
    return first | specs


def resolve_spec(name: str) -> str:
    """Return the packaged name that a name stands for: ``papers/aab`` for one in it.

    A folder of several specs has a name only if ``_FOLDERS`` names one of them.

    >>> resolve_spec("Quickstart"), resolve_spec("papers/aab")
    ('quickstart', 'papers/aab/ml-1m-gender')

    Raises:
        UnknownName: No packaged spec has the name, or a folder of several has it.
    """
    specs, wanted = list_specs(), normalize_name(name)
    spellings = {normalize_name(spelling): spelling for spelling in specs}
    if wanted in spellings:
        return spellings[wanted]
    inside = [spelling for key, spelling in spellings.items() if key.startswith(f"{wanted}/")]
    if len(inside) == 1:
        return inside[0]
    if wanted in _FOLDERS:
        return _FOLDERS[wanted]
    if inside:
        raise UnknownName(f"{name} is several specs", remedy=f"name one of {', '.join(inside)}")
    message = f"no file and no packaged spec is called {name!r}"
    raise UnknownName(message, remedy=suggest(name, specs))


def find_spec(source: Path) -> Path:
    """Return the file of a spec that is named by its file or by its packaged name; a file wins.

    The file ``quickstart.yaml`` in the current folder, which ``recbias init`` writes, is found as
    ``quickstart`` too.

    Raises:
        UnknownName: There is no such file and no packaged spec.
    """
    if source.suffix or source.is_absolute() or is_file(source) or source == Path():
        return source  # whoever reads the file says what is wrong with it
    if is_file(written := source.with_name(f"{source.name}.yaml")):
        return written
    name = resolve_spec(source.as_posix())
    return written if is_file(written := Path(f"{name}.yaml")) else list_specs()[name]


def list_spec_files(name: str) -> dict[Path, Path]:
    """Return the file of a packaged spec and those that it reads, by their paths in a new folder.

    Args:
        name: A name of ``list_specs``.
    """
    path = list_specs()[name]
    folder = _FOLDER.resolve()
    read = {file.resolve() for file in _list_read_files(path)}
    return {Path(f"{name}.yaml"): path} | {
        file.relative_to(folder): file for file in sorted(read) if file.is_relative_to(folder)
    }


def summarize_spec(path: Path) -> str:
    """Return the first sentence of the comment at the top of a spec.

    >>> summarize_spec(list_specs()["audit"])
    'Audit lists of your own; nothing is trained.'
    """
    lines = takewhile(lambda line: line.startswith("#"), path.read_text("utf-8").splitlines())
    text = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<=[.?])(?<!al\.)\s", text, maxsplit=1)[0]


def _list_read_files(path: Path) -> Iterator[Path]:
    """Yield the files that a spec names, and those of the specs that it extends."""
    data = read_file(path).data
    yield from filter(is_file, (path.parent / text for text in _list_texts(data)))
    if "extends" in data:
        yield from _list_read_files(_find_extended(path.parent, data["extends"]))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)


SWEEP = "sweep"
"""The key of settings to vary; its keys are paths of settings."""

_ASSIGNMENT = re.compile(r"((?:[^=()]|\([^()]*\))*)=(.*)", re.DOTALL)
"""Matches the path, an equals sign that is not in the parentheses of a label, and the value."""

_PARENTHESES = re.compile(r"(\([^()]*\))")

_ALTERNATIVES = {"seed": "seeds", "seeds": "seed"}
"""Keys of which a spec has one, with the other."""

_OVERRIDE_RANK = 1 << 20
"""The rank of the first override, so that its faults are listed after those of files."""


def read_spec(source: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Document:
    """Return a spec merged with the files (or packaged specs) that it extends and with overrides.

    Mappings are merged key by key; lists and scalars replace the value of the extended file, and
    so does another plug-in, since it does not have the settings of the first.
    Relative paths are relative to the file in which they are written.

    Raises:
        Faults: The spec cannot be read.
    """
    try:
        if isinstance(source, Mapping):
            document = _extend(read_mapping(source), ())
        else:
            document = _extend(read_file(source), (source.resolve(),))
    except Faults:
        raise
    except UserError as error:
        raise Faults([error]) from error
    for number, text in enumerate(overrides):
        _apply_override(document, text, number)
    return document


def read_mapping(source: Mapping[str, Any]) -> Document:
    """Return a copy of a spec from Python as a document without marks.

    Raises:
        WrongType: It holds a value that YAML cannot represent.
    """
    plain = as_plain(source)
    try:
        return Document(json.loads(json.dumps(plain, allow_nan=False)))
    except (TypeError, ValueError) as error:
        place, remedy = (
            format_key_path(_locate_fault(plain)),
            "give text, numbers, lists, mappings",
        )
        raise WrongType(
            f"cannot be written in YAML: {error}", where=place, remedy=remedy
        ) from error


def _locate_fault(value: Any) -> KeyPath:
    """Return the place inside a value at which JSON cannot represent it."""
    items = value if isinstance(value, dict) else {}
    items = dict(enumerate(value)) if isinstance(value, list) else items
    for key, item in items.items():
        try:
            json.dumps(item, allow_nan=False)
        except (TypeError, ValueError):
            return (key, *_locate_fault(item))
    return ()


def _extend(document: Document, chain: tuple[Path, ...]) -> Document:
    """Return a document merged over the file that it extends; ``chain`` led here."""
    if "extends" not in document.data:
        return document
    name, place = document.data.pop("extends"), ("extends",)
    if not isinstance(name, str):
        message, remedy = "must be one file or packaged spec", "write extends: other.yaml"
        raise document.error(place, message, kind=WrongType, remedy=remedy)
    try:
        path = _find_extended(document.base, name)
    except UserError as error:
        kind, remedy = type(error), error.remedy
        raise document.error(place, error.message, kind=kind, remedy=remedy) from error
    target = path.resolve()
    if target in chain:
        cycle = " -> ".join(file.name for file in (*chain[chain.index(target) :], target))
        message, remedy = f"these files extend each other: {cycle}", "extend another file"
        raise document.error(place, message, kind=Contradiction, remedy=remedy)
    base = _extend(read_file(path, len(chain) + 1), (*chain, target))
    for replaced in _merge_data(base.data, document.data, ()):
        base.forget(replaced)
    return Document(
        base.data,
        base.keys | document.keys,
        base.values | document.values,
        document.base,
        [*base.faults, *document.faults],
    )


def _find_extended(folder: Path, name: str) -> Path:
    """Return the file that a spec in a folder extends, which may be a packaged one; files win."""
    path = folder / name
    for file in (path, path.with_name(f"{path.name}.yaml")):
        if name and is_file(file):
            return file
    if path.suffix or path.is_absolute() or not name:
        raise MissingFile(f"no file {name!r}", remedy=suggest_file(path))
    return list_specs()[resolve_spec(name)]


def _merge_data(
    base: dict[str, Any], over: dict[str, Any], location: KeyPath
) -> Iterator[KeyPath]:
    """Merge a mapping into another one, and yield the places of the values that are replaced.

    A value that names another plug-in than the base replaces it.
    """
    for key, value in over.items():
        entries: list[Any] = [base.get(key), value]
        are_mappings = all(isinstance(entry, dict) for entry in entries)
        named = [entry for entry in entries if are_mappings and "name" in entry]
        place = (*location, key)
        if are_mappings and len({normalize_name(str(entry["name"])) for entry in named}) < 2:
            yield from _merge_data(base[key], value, place)
        else:
            base[key] = value
            yield place


def _apply_override(document: Document, text: str, number: int = 0) -> None:
    """Apply an override such as ``models.1.neighbors=40``; faults are recorded in the document."""
    source = text if text.startswith("--") else f"--set {text}"
    mark = Mark(source, rank=_OVERRIDE_RANK + number, folder=document.base, lined=False)
    try:
        match = _ASSIGNMENT.match(text.removeprefix("--"))
        path, value_text = match.groups() if match else ("", "")
        if not path.strip():
            raise WrongType("is not KEY=VALUE", remedy="write --set models.1.neighbors=40")
        steps, value = split_path(path), read_text(value_text, mark)
        other = _ALTERNATIVES.get(".".join(steps), "")
        is_replaced = value.data is not None and other in document.data
        if is_replaced and document.mark((other,)).rank < _OVERRIDE_RANK:
            del document.data[other]
            document.forget((other,))
        place_value(document, steps, value, mark)
    except UserError as error:
        fault = type(error)(error.message, where=mark.file, remedy=error.remedy)
        document.faults.append((mark, fault))


def split_path(path: str) -> list[str]:
    """Return the steps of the path of a setting; a path inside ``sweep`` is one step.

    What is in parentheses, as in a label, is not divided.

    >>> split_path("models[1].neighbors"), split_path("sweep.models.1.neighbors")
    (['models', '1', 'neighbors'], ['sweep', 'models.1.neighbors'])
    >>> split_path("models.EASE(l2=0.5).l2")
    ['models', 'EASE(l2=0.5)', 'l2']
    """
    parts = [
        part if part.startswith("(") else re.sub(r"\[(\d+)\]", r".\1", part).replace(".", "\n")
        for part in _PARENTHESES.split(path.strip())
    ]
    steps = "".join(parts).split("\n")
    return steps if steps[0] != SWEEP or len(steps) < 2 else [SWEEP, ".".join(steps[1:])]


def place_value(document: Document, steps: Sequence[str], value: Document, mark: Mark) -> None:
    """Set one value of a document, with its marks; ``mark`` is that of its key.

    Raises:
        UserError: The steps do not lead to a setting, or to several.
    """
    container: Any = document.data
    location: KeyPath = ()
    while True:
        key, steps = take_step(container, steps, location)
        location = (*location, key)
        if not steps:
            break
        container[key] = _open_container(document, container, key, location, mark)
        container = container[key]
    container[key] = value.data
    document.faults += value.faults
    document.forget(location)
    document.keys |= {(*location, *inner): key_mark for inner, key_mark in value.keys.items()}
    document.values |= {(*location, *inner): mark for inner, mark in value.values.items()}
    document.keys[location] = mark
    document.values.setdefault(location, mark)


def _open_container(
    document: Document, container: Any, key: str | int, location: KeyPath, mark: Mark
) -> Any:
    """Return the list or mapping at a key; a missing value or a name becomes a mapping."""
    value = container.get(key) if isinstance(container, dict) else container[key]
    if value is None:
        document.keys.setdefault(location, mark)
        document.values.setdefault(location, mark)
        value = {}
    elif isinstance(value, str):
        document.values[*location, "name"] = document.mark(location)
        value = {"name": value}
    elif not isinstance(value, (dict, list)):
        path = document.format_path(location)
        message, remedy = f"{path} is {value!r}, which has no settings", f"set {path} itself"
        raise UnknownKey(message, remedy=remedy)
    return value


def take_step(
    container: Any, steps: Sequence[str], location: KeyPath
) -> tuple[str | int, Sequence[str]]:
    """Return the key that the first steps name, and the others; an error for a missing entry.

    A label may have dots, so that it is several steps of a path: the longest one counts.

    >>> take_step([{"name": "EASE", "label": "v1.2"}], ["v1", "2", "l2"], ("models",))
    (0, ['l2'])
    """
    if not isinstance(container, list):
        return steps[0], steps[1:]
    labels = {normalize_name(label) for entry in container if (label := _get_label(entry))}
    lengths = [
        n for n in range(1, len(steps) + 1) if normalize_name(".".join(steps[:n])) in labels
    ]
    n = max(lengths, default=1)
    return _find_entry(container, ".".join(steps[:n]), location), steps[n:]


def _find_entry(entries: Sequence[Any], step: str, location: KeyPath) -> int:
    """Return the position of an entry of a list that a path names by its position or its label."""
    last, name, shown = len(entries) - 1, ".".join(map(str, location)), format_key_path(location)
    if re.fullmatch("[0-9]{1,9}", step) and int(step) <= last:
        return int(step)
    labels = [_get_label(entry) for entry in entries]
    matches = [
        at for at, label in enumerate(labels) if normalize_name(label) == normalize_name(step)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        message = f"{step!r} is the label of {len(matches)} entries of {shown}"
        remedy = f"write {' or '.join(f'{name}.{at}' for at in matches)}"
        raise Contradiction(message, remedy=remedy)
    remedy = f"it has {name}.0" + (f" to {name}.{last}" if last else "")
    if nearest := find_nearest(step.partition("(")[0], filter(None, labels), limit=1):
        remedy = f"did you mean {nearest[0]}?"
    remedy = remedy if entries else "it is empty"
    raise UnknownKey(f"{shown} is a list without {step!r}", remedy=remedy)


def _get_label(entry: Any) -> str:
    """Return the label of an entry, else its name, else blank."""
    values = [entry.get(key) for key in ("label", "name")] if isinstance(entry, dict) else [entry]
    return next((value for value in values if isinstance(value, str) and value), "")


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
        place: The place of the setting in the document without the sweep.
        is_listed: Whether its entry is one of a list.
        where: The place of the values.
    """

    place: KeyPath
    is_listed: bool
    values: Sequence[Any]
    where: KeyPath

    @property
    def entry(self) -> KeyPath:
        """The place of the entry; the first step of a seed or of a single dataset."""
        return self.place[: 1 + self.is_listed]

    @property
    def steps(self) -> KeyPath:
        """The path of the setting inside its entry; empty for the entry itself."""
        return self.place[len(self.entry) :]


def expand_sweep(document: Document) -> dict[KeyPath, dict[str, Any]]:
    """Replace the entries that the sweep of a document varies by one for each combination.

    Faults are recorded in the document, at the values of the sweep; a sweep with faults changes
    nothing.

    Returns:
        The places of the new entries and seeds, with the settings that their labels state.
    """
    n_faults = len(document.faults)
    settings = [*_read_sweep(document, document.data.get(SWEEP))]
    _refuse_many_or_overlapping(document, settings)
    made: dict[KeyPath, dict[str, Any]] = {}
    for key in (*_LISTS, _SEED) if len(document.faults) == n_faults else ():
        own = [setting for setting in settings if setting.place[0] == key]
        if own and key == _SEED:
            made |= _expand_seeds(document, own[0])
        elif own:
            made |= _expand_entries(document, key, own)
    document.data.pop(SWEEP, None)
    return made


def _read_sweep(document: Document, raw: Any) -> Iterator[_Swept]:
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
            place = _find_swept(document.data, split_path(path))
            is_set_again = not document.mark(place).lined and place in document.values
            if is_set_again:
                message = f"{format_key_path(place)} is also set by --set"
                remedy = f"leave one out, or write --set '{SWEEP}.{path}=[20, 50]'"
                raise Contradiction(message, remedy=remedy)
            yield _Swept(place, isinstance(document.data.get(str(place[0])), list), values, where)
        except UserError as error:
            remedy, kind = error.remedy, type(error)
            document.add_fault(where, error.message, remedy=remedy, kind=kind, key=True)


def _find_swept(data: Mapping[str, Any], path: Sequence[str]) -> KeyPath:
    """Return the place of a setting that a sweep varies, in the document without the sweep."""
    key, steps = path[0], path[1:]
    if key == _SEED and not steps:
        if data.get("seeds") is not None:
            raise Contradiction("seeds is set too", remedy="keep one of sweep and seeds")
        return (_SEED,)
    if key in _ONE_VALUE:
        raise Contradiction("has one value in a run", remedy=_ONE_A_RUN)
    if key not in _LISTS:
        remedy = suggest(key, [*_LISTS, _SEED])
        raise UnknownKey("is not a setting of a model, a dataset or the seed", remedy=remedy)
    value: Any = data.get(key)
    place: list[str | int] = [key]
    if key == "models" and not isinstance(value, list):
        message, remedy = f"{key} is not a list in the spec", "list the models under models"
        raise UnknownKey(message, remedy=remedy)
    if isinstance(value, list) and not steps:
        raise UnknownKey("is not one entry", remedy=f"name one by its position: {key}.0")
    while steps:
        step, steps = take_step(value, steps, tuple(place))
        place.append(step)
        value = _enter(value, step)
    return tuple(place)


def _enter(entry: Any, step: str | int) -> Any:
    """Return what an entry of a list or mapping has at a step; None if there is nothing."""
    if isinstance(step, int):
        return entry[step]
    return entry.get(step) if isinstance(entry, dict) else None


def _refuse_many_or_overlapping(document: Document, settings: Sequence[_Swept]) -> None:
    """Record too many combinations, and each setting that is another one or inside it."""
    sizes: dict[str | int, dict[KeyPath, int]] = {}
    for setting in settings:
        of_key = sizes.setdefault(setting.place[0], {})
        of_key[setting.entry] = of_key.get(setting.entry, 1) * len(setting.values)
    n = math.prod(sum(of_key.values()) for of_key in sizes.values())
    if n > _MOST_COMBINATIONS:
        message = f"has {n:,} combinations, more than {_MOST_COMBINATIONS:,}"
        remedy = "list fewer values, list the settings of interest, or search them with tune"
        document.add_fault((SWEEP,), message, remedy=remedy, kind=OutOfRange, key=True)
    for (at, setting), (before, other) in itertools.permutations(enumerate(settings), 2):
        is_inside = setting.place[: len(other.place)] == other.place
        if is_inside and (at > before or setting.place != other.place):
            message = f"is, or is inside, {other.where[-1]}, which is swept too"
            where, remedy = setting.where, "keep one of the two"
            document.add_fault(where, message, remedy=remedy, kind=Contradiction, key=True)


def _expand_seeds(document: Document, swept: _Swept) -> dict[KeyPath, dict[str, Any]]:
    document.data.pop(_SEED, None)
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
        for origin in entries:
            document.forget(origin)
    document.data[key], made = [], dict[KeyPath, dict[str, Any]]()
    for origin, entry in entries.items():
        own = [setting for setting in settings if setting.entry == origin]
        for values in itertools.product(*(enumerate(setting.values) for setting in own)):
            place = (key, len(document.data[key]))
            document.data[key].append(copy.deepcopy(entry))
            _copy_marks(before, origin, document, place)
            document.origins[place], stated = origin, {}
            for setting, (number, value) in zip(own, values, strict=True):
                _place_swept(document, place, setting, number)
                if setting.steps not in {(), ("name",), ("label",)}:
                    stated[_name_setting(entry, setting.steps)] = value
            if own:
                is_labelled = any(setting.steps == ("label",) for setting in own)
                made[place] = {} if is_labelled else stated
    return made


def _place_swept(document: Document, place: KeyPath, setting: _Swept, number: int) -> None:
    """Set one of the values of a setting; a fault is recorded at the value."""
    written = (*setting.where, number)
    value = Document(copy.deepcopy(setting.values[number]))
    _copy_marks(document, written, value, ())
    with document.recording(written):
        steps = [*map(str, place), *map(str, setting.steps)]
        place_value(document, steps, value, document.mark(setting.where, key=True))
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
