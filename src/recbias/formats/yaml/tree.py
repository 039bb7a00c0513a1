"""YAML to plain Python with marks: tags, merge keys and keys written twice are refused."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from recbias.core.errors import BadYaml, DuplicateKey, MissingFile
from recbias.core.suggestions import find_nearest
from recbias.formats.yaml.scalars import SCALARS, TAG, Dumper, Loader, scalar
from recbias.formats.yaml.source_map import Document, Mark, Place

MOST_BYTES = 1 << 20
"""No experiment file is longer; whoever names a data file by mistake is told so at once."""

MOST_VALUES = 100_000
"""What aliases may unfold to."""


def dump(data: dict[str, Any]) -> str:
    """Return the YAML text of a spec, which reads back as the same spec.

    >>> print(dump({"name": "1e5", "k": 10}).strip())
    name: '1e5'
    k: 10
    """
    text: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=99)
    return text


def read_file(path: Path, rank: int = 0) -> Document:
    """Read one file.

    Raises:
        MissingFile: It is not there.
        BadYaml: It is not YAML, or not one plain mapping.
    """
    start = Mark(str(path), rank=rank, folder=path.parent)
    text = _decoded(_bytes(path), start)
    document = read_text(text, start)
    if document.data is None:
        raise BadYaml("the file is empty", where=str(path), remedy="see configs/ for examples")
    if not isinstance(document.data, dict):
        where = str(document.values[()])
        raise BadYaml(
            "must be a mapping of keys to values", where=where, remedy="write key: value"
        )
    return document


def read_text(text: str, start: Mark) -> Document:
    """Read one YAML document of any type; its marks are like ``start``, with line and column.

    Raises:
        BadYaml: It is not YAML, holds a tag, or is several documents.
    """
    try:
        node = _composed(text, start)
        reader = _Reader(start)
        if node is not None:
            reader.document.data = reader.value(node, ())
    except RecursionError as error:
        raise BadYaml("is nested too deeply to be a spec", where=start.file) from error
    if node is None:
        reader.document.data = None  # type: ignore[assignment]  # of any type until checked
    return reader.document


def similar_file(path: Path) -> str:
    """Return the help line for a file that is not there: a file of a like name beside it."""
    if is_folder(path):
        return "it is a folder: name a file in it"
    if not is_folder(path.parent):
        return f"there is no folder {path.parent}"
    try:
        beside = [each.name for each in path.parent.iterdir()]
    except OSError:
        beside = []
    close = find_nearest(path.name, beside, most=1)
    return f"did you mean {close[0]}?" if close else f"it is looked for at {path.absolute()}"


def is_file(path: Path) -> bool:
    """Return whether a file is there; a path that no file can have is none."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises on names that are too long


def is_folder(path: Path) -> bool:
    """Return whether a folder is there; a path that no folder can have is none."""
    return os.path.isdir(path)  # noqa: PTH112  likewise


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = "cannot be read" if is_file(path) else "no such file"
        remedy = f"{error}" if is_file(path) else similar_file(path)
        raise MissingFile(reason, where=str(path), remedy=remedy) from error
    if len(content) > MOST_BYTES:
        found = f"is longer than {MOST_BYTES:,} bytes, which no experiment file is"
        raise BadYaml(found, where=str(path), remedy="name the YAML file of the experiment")
    return content


def _decoded(content: bytes, start: Mark) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        found = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        where = str(_after(before, start))
        raise BadYaml(found, where=where, remedy="save the file as UTF-8") from error


def _after(before: str, start: Mark) -> Mark:
    return start.at(before.count("\n"), len(before) - before.rfind("\n") - 1)


def _composed(text: str, start: Mark) -> yaml.Node | None:
    try:
        loader = Loader(text)
        return loader.get_single_node()
    except yaml.reader.ReaderError as error:
        where = str(_after(text[: error.position], start))
        found = f"the character {chr(error.character)!r} may not stand in YAML"
        raise BadYaml(found, where=where, remedy="remove it") from error
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, start) from error


def _syntax_error(error: yaml.MarkedYAMLError, start: Mark) -> BadYaml:
    problem = error.problem or "is not YAML"
    remedy = "close every bracket and quote, and put text with other signs in quotes"
    if "'\\t'" in problem:
        problem, remedy = "a tab, where YAML wants spaces", "indent with spaces"
    elif error.context == "expected a single document in the stream":
        problem, remedy = "a second document begins here", "keep one document in a file"
    elif "mapping values are not allowed" in problem:
        problem = "a colon that YAML does not expect here"
        remedy = "put text that holds ': ' in quotes, and look at the indentation"
    elif error.context:
        problem = f"{problem} ({error.context})"
    at = error.problem_mark or error.context_mark
    where = start.at(at.line, at.column) if at else start
    return BadYaml(problem, where=str(where), remedy=remedy)


@dataclass
class _Reader:
    start: Mark
    document: Document = field(init=False)
    count: int = 0
    above: list[yaml.Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = Document({}, base=self.start.folder)

    def value(self, node: yaml.Node, place: Place) -> Any:
        """Return a node as plain Python, and note its mark."""
        self.document.values[place] = self.mark(node)
        self.count += 1
        if self.count > MOST_VALUES:
            raise self.refusal(node, f"aliases unfold to more than {MOST_VALUES:,} values")
        if any(each is node for each in self.above):
            raise self.refusal(node, "an alias stands inside what it names")
        self.above.append(node)
        made = self.plain(node, place)
        self.above.pop()
        return made

    def plain(self, node: yaml.Node, place: Place) -> Any:
        """Return a scalar, list or mapping."""
        kind = node.tag.removeprefix(TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.value(each, (*place, at)) for at, each in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and kind in {"str", *SCALARS}:
            return self.scalar(node, kind)
        tag = f"!!{kind}" if kind != node.tag else node.tag
        raise self.refusal(node, f"the tag {tag} is not allowed", "write a plain value")

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        """Return a mapping; a key that is written twice is a fault."""
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, mark = self.key(key_node), self.mark(key_node)
            inner = (*place, key)
            if key in made:
                first = self.document.keys[inner]
                found = f"is written twice, first in line {first.line}"
                self.twice(inner, mark, found)
                continue
            self.document.keys[inner] = mark
            made[key] = self.value(value_node, inner)
        return made

    def twice(self, place: Place, mark: Mark, found: str) -> None:
        """Record a second key of the same name."""
        error = Document({}, values={place: mark}).error(
            place, found, kind=DuplicateKey, remedy="keep one of them"
        )
        self.document.faults.append((mark, error))

    def key(self, node: yaml.Node) -> str:
        """Return a key as it is written."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.refusal(node, "a key must be text", "put braces in quotes")
        if node.value == "<<" and node.style is None:
            raise self.refusal(node, "merge keys (<<) are not read", "use extends: other.yaml")
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, kind: str) -> Any:
        """Return a scalar of the core schema."""
        text = str(node.value)
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise self.refusal(node, f"{text!r} is half a character", "write the whole of it")
        try:
            return scalar(kind, text)
        except ValueError as error:
            raise self.refusal(node, str(error)) from error

    def mark(self, node: yaml.Node) -> Mark:
        """Return the mark of a node."""
        return self.start.at(node.start_mark.line, node.start_mark.column)

    def refusal(self, node: yaml.Node, found: str, remedy: str = "") -> BadYaml:
        """Return the error of a node that is no plain value."""
        return BadYaml(found, where=str(self.mark(node)), remedy=remedy)
