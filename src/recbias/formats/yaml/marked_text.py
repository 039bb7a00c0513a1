"""YAML and JSON as plain trees of text, lists and mappings that know their place in the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import BadYaml, MalformedLine, MissingFile
from recbias.core.input_files import has_file, opened_input
from recbias.core.suggestions import suggest

MOST_BYTES = 1 << 22
"""No file of templates or words is longer."""

Value: TypeAlias = "str | tuple[Marked, ...] | dict[str, Marked]"


@dataclass(frozen=True)
class Marked:
    """A value of a file.

    Args:
        value: Text as written (numbers and truth values too), a list, or a mapping.
        where: ``file:line``, or the file where it has no lines to tell.
    """

    value: Value
    where: str

    def text(self, what: str) -> str:
        """Return the text; ``what`` names it in the error.

        Raises:
            MalformedLine: It is a list, a mapping or blank.
        """
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fault(f"{what} must be text")
        return self.value

    def entries(self, what: str) -> tuple[Marked, ...]:
        """Return the entries of a list.

        Raises:
            MalformedLine: It is no list.
        """
        if not isinstance(self.value, tuple):
            raise self.fault(f"{what} must be a list")
        return self.value

    def mapping(self, what: str, known: Iterable[str] | None = None) -> dict[str, Marked]:
        """Return a mapping.

        Args:
            what: Its name in errors.
            known: The keys that it may have; None for any.

        Raises:
            MalformedLine: It is no mapping, or has another key.
        """
        if not isinstance(self.value, dict):
            raise self.fault(f"{what} must be a mapping")
        if known is not None:
            for key in [each for each in self.value if each not in set(known)]:
                remedy = suggest(key, known)
                raise self.value[key].fault(f"{what} has no key {key!r}", remedy=remedy)
        return self.value

    def fault(self, found: str, *, remedy: str = "") -> MalformedLine:
        """Return the error that something is wrong here."""
        return MalformedLine(found, where=self.where, remedy=remedy)


def read_marked(path: Path) -> Marked:
    """Return the tree of a ``.json`` file, and of any other as YAML.

    Every scalar is text as it is written: a name such as ``No`` stays one.

    Raises:
        MissingFile: It cannot be read.
        BadYaml: It is not YAML, or a key is written twice.
        MalformedLine: It is not JSON, or too long to be a file of words.
    """
    text = _text(path)
    if path.suffix.lower() == ".json":
        return _of_json(text, path)
    return _of_yaml(text, path)


def _text(path: Path) -> str:
    if not has_file(path):
        raise MissingFile("no such file", where=str(path), remedy="paths are relative to the spec")
    with opened_input(path) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        found = f"is longer than {MOST_BYTES:,} bytes, which no file of templates or words is"
        raise MalformedLine(found, where=str(path), remedy="name the file of the templates")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        found = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        raise MalformedLine(found, where=f"{path}:{line}", remedy="save it as UTF-8") from error


def _of_json(text: str, path: Path) -> Marked:
    try:
        return _plain(json.loads(text), str(path))
    except json.JSONDecodeError as error:
        found = f"is not JSON: {error.msg}"
        raise MalformedLine(found, where=f"{path}:{error.lineno}") from error
    except RecursionError as error:
        raise MalformedLine("is nested too deeply", where=str(path)) from error


def _plain(value: Any, where: str) -> Marked:
    if isinstance(value, dict):
        return Marked({key: _plain(each, where) for key, each in value.items()}, where)
    if isinstance(value, list):
        return Marked(tuple(_plain(each, where) for each in value), where)
    if isinstance(value, str):
        return Marked(value, where)
    return Marked("" if value is None else json.dumps(value), where)


def _of_yaml(text: str, path: Path) -> Marked:
    import yaml

    try:
        node = yaml.compose(text, yaml.SafeLoader)
        if node is None:
            raise BadYaml("the file is empty", where=str(path))
        return _of_node(node, str(path))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise BadYaml(error.problem or "is not YAML", where=where) from error
    except yaml.YAMLError as error:
        found = str(error).partition("\n")[0]
        raise BadYaml(f"is not YAML: {found}", where=str(path)) from error
    except RecursionError as error:
        raise BadYaml("is nested too deeply", where=str(path)) from error


def _of_node(node: Any, file: str) -> Marked:
    import yaml

    where = f"{file}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.ScalarNode):
        is_null = node.tag.endswith(":null")
        return Marked("" if is_null else node.value, where)
    if isinstance(node, yaml.SequenceNode):
        return Marked(tuple(_of_node(each, file) for each in node.value), where)
    return Marked(dict(_pairs(node, file)), where)


def _pairs(node: Any, file: str) -> Iterator[tuple[str, Marked]]:
    seen: set[str] = set()
    for key, value in node.value:
        name = key.value if isinstance(key.value, str) else ""
        where = f"{file}:{key.start_mark.line + 1}"
        if not name or name in seen:
            found = f"the key {name!r} is written twice" if name else "a key must be text"
            raise BadYaml(found, where=where)
        seen.add(name)
        yield name, Marked(_of_node(value, file).value, where)
