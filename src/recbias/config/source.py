"""The text of an experiment: its file, the files that it extends, and overrides.

A packaged spec has a name: ``quickstart``, ``papers/lmrec/users``. An override sets one value by
its path: ``models.1.neighbors=40``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from recbias.config.settings import as_plain
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingFile,
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
