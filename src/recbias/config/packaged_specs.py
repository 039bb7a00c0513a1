"""The specs of the package by name: ``quickstart``, ``papers/lmrec/users``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from recbias.core.errors import UnknownName
from recbias.core.suggestions import normalize_name, suggest
from recbias.formats.yaml import is_file, read_file

STARTS = ("quickstart", "audit", "prompts", "vectors")
"""The specs for a start, which are listed first."""

FOLDERS = {"papers/aab": "papers/aab/ml-1m-gender"}
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

    A folder of several specs has a name only if ``FOLDERS`` names one of them.

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
    if wanted in FOLDERS:
        return FOLDERS[wanted]
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
    for text in _list_texts(data):
        if is_file(file := path.parent / text):
            yield file
    if "extends" in data:
        yield from _list_read_files(path.parent / data["extends"])


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)
