"""YAML to plain Python with marks; tags, merge keys and repeated keys are rejected."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from recbias.core.errors import BadYaml, DuplicateKey, MissingFile
from recbias.core.input_files import has_file
from recbias.core.suggestions import find_nearest
from recbias.formats.yaml.compose import MAX_VALUES, compose, mark_end, refuse_values
from recbias.formats.yaml.scalars import SCALARS, TAG, Dumper, parse_scalar
from recbias.formats.yaml.source_map import MOST_FAULTS, Document, KeyPath, Mark

MAX_BYTES = 1 << 20
"""The longest experiment file: naming a data file by mistake fails at once."""


def dump(data: dict[str, Any]) -> str:
    """Return the YAML text of an experiment file, which reads back as the same data.

    >>> print(dump({"name": "1e5", "k": 10}).strip())
    name: '1e5'
    k: 10
    """
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=99))


def read_file(path: Path, rank: int = 0) -> Document:
    """Return the document in a file, which has a ``rank`` among all sources; see ``Mark``.

    Raises:
        MissingFile: The file does not exist.
        BadYaml: The file is not YAML, or not one plain mapping.
    """
    start = Mark(str(path), rank=rank, folder=path.parent)
    document = read_text(read_source(path, start, MAX_BYTES), start)
    if document.data is None:
        raise BadYaml("the file is empty", where=str(path), remedy="see configs/ for examples")
    if not isinstance(document.data, dict):
        message, location = "must be a mapping of keys to values", str(document.values[()])
        raise BadYaml(message, where=location, remedy="write key: value")
    return document


def read_text(text: str, start: Mark, *, scalars_as_text: bool = False) -> Document:
    """Return one YAML document of any type.

    Args:
        text: The document.
        start: The mark of its source; lines and columns are added.
        scalars_as_text: Whether to return every scalar as written, and null as "".

    Raises:
        BadYaml: The text is not YAML, has a tag, or is several documents.
    """
    try:
        node = compose(text, start)
        builder = _Builder(start, scalars_as_text)
        data: Any = None if node is None else builder.build(node, ())
    except RecursionError as error:
        raise BadYaml("is nested too deeply", where=start.file) from error
    builder.document.data = data
    return builder.document


def read_source(path: Path, start: Mark, max_bytes: int) -> str:
    """Return the text of a file of at most ``max_bytes``, whose mark is ``start``.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        BadYaml: The file is too long or is not UTF-8.
    """
    if not is_folder(path):
        has_file(path)  # refuses a pipe, which might never end
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = "cannot be read" if is_file(path) else "no such file"
        remedy = f"{error}" if is_file(path) else suggest_file(path)
        raise MissingFile(reason, where=str(path), remedy=remedy) from error
    if len(content) > max_bytes:
        message = f"is longer than {max_bytes:,} bytes"
        raise BadYaml(message, where=str(path), remedy="name a YAML file, not a data file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        message = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        location = str(mark_end(before, start))
        raise BadYaml(message, where=location, remedy="save the file as UTF-8") from error


def suggest_file(path: Path) -> str:
    """Return the remedy for a missing file: a file with a similar name in the same folder."""
    if is_folder(path):
        return "it is a folder: name a file in it"
    if not is_folder(path.parent):
        return f"there is no folder {path.parent}"
    try:
        names = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        names = []
    nearest = find_nearest(path.name, names, limit=1)
    return f"did you mean {nearest[0]}?" if nearest else f"it is looked for at {path.absolute()}"


def is_file(path: Path) -> bool:
    """Return whether a path is a file; False for an impossible path."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises on names that are too long


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; False for an impossible path."""
    return os.path.isdir(path)  # noqa: PTH112  likewise


@dataclass
class _Builder:
    """Builds plain Python from YAML nodes and records their marks."""

    start: Mark
    scalars_as_text: bool
    document: Document = field(init=False)
    n_values: int = 0
    ancestors: list[yaml.Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = Document({}, base=self.start.folder)

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return a node as plain Python, and record its mark."""
        self.document.values[path] = self.mark(node)
        self.n_values += 1
        if self.n_values > MAX_VALUES:
            raise refuse_values(node, self.start)
        if isinstance(node, yaml.ScalarNode):
            return self.convert(node, path)
        if any(ancestor is node for ancestor in self.ancestors):
            raise self.error(node, "an alias occurs inside the value that it names")
        self.ancestors.append(node)
        value = self.convert(node, path)
        self.ancestors.pop()
        return value

    def convert(self, node: yaml.Node, path: KeyPath) -> Any:
        kind = node.tag.removeprefix(TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self.convert_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.build(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and kind in {"str", *SCALARS}:
            return self.convert_scalar(node, kind)
        tag = f"!!{kind}" if kind != node.tag else node.tag
        raise self.error(node, f"the tag {tag} is not allowed", "write a plain value")

    def convert_mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        """Return a mapping; a repeated key is recorded as an error."""
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, mark = self.convert_key(key_node), self.mark(key_node)
            key_path = (*path, key)
            if key in mapping:
                message = f"is written twice, first in line {self.document.keys[key_path].line}"
                repeat = Document({}, values={key_path: mark})
                repeat.add_fault(key_path, message, kind=DuplicateKey, remedy="keep one of them")
                self.document.faults += repeat.faults
                if len(self.document.faults) >= MOST_FAULTS:
                    self.document.refuse()
                continue
            self.document.keys[key_path] = mark
            mapping[key] = self.build(value_node, key_path)
        return mapping

    def convert_key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "a key must be text", "put braces in quotes")
        if node.value == "<<" and not node.style:
            raise self.error(node, "merge keys (<<) are not read", "use extends: other.yaml")
        return self.read_characters(node)

    def read_characters(self, node: yaml.ScalarNode) -> str:
        """Return the text of a scalar: JSON escapes an emoji as two halves, which are joined."""
        text: str = node.value
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            message = f"{node.value[:60]!r} is half a character"
            raise self.error(node, message, "write the whole character") from error

    def convert_scalar(self, node: yaml.ScalarNode, kind: str) -> Any:
        text = self.read_characters(node)
        if self.scalars_as_text:
            return "" if kind == "null" else text
        try:
            return parse_scalar(kind, text)
        except ValueError as error:
            raise self.error(node, str(error)) from error

    def mark(self, node: yaml.Node) -> Mark:
        return self.start.at(node.start_mark.line, node.start_mark.column)

    def error(self, node: yaml.Node, message: str, remedy: str = "") -> BadYaml:
        return BadYaml(message, where=str(self.mark(node)), remedy=remedy)
