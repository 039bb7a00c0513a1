"""YAML and JSON files of text (templates, words) whose values know their line in the file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import BadYaml, MalformedLine, MissingFile
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.formats.json_files import parse_json
from recbias.formats.yaml.source_map import Document, KeyPath, Mark
from recbias.formats.yaml.tree import read_source, read_text, suggest_file

MAX_BYTES = 1 << 22
"""The longest file of templates or words."""

Value: TypeAlias = "str | tuple[MarkedValue, ...] | dict[str, MarkedValue]"


@dataclass(frozen=True)
class MarkedValue:
    """A value of a file; the methods name it ``what`` in their errors.

    Args:
        value: Text as written (also for numbers and truth values), a list, or a mapping.
        where: ``file:line``; only the file for JSON.
    """

    value: Value
    where: str

    def text(self, what: str) -> str:
        """Return the text.

        Raises:
            MalformedLine: The value is a list, a mapping or blank.
        """
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fault(f"{what} must be text")
        return self.value

    def entries(self, what: str) -> tuple[MarkedValue, ...]:
        """Return the entries of a list.

        Raises:
            MalformedLine: The value is not a list.
        """
        if not isinstance(self.value, tuple):
            raise self.fault(f"{what} must be a list")
        return self.value

    def mapping(self, what: str, known: Iterable[str] | None = None) -> dict[str, MarkedValue]:
        """Return a mapping whose keys are ``known``; None for any keys.

        Raises:
            MalformedLine: The value is not a mapping, or has an invalid key.
        """
        if not isinstance(self.value, dict):
            raise self.fault(f"{what} must be a mapping")
        for key, value in self.value.items():
            if known is not None and key not in set(known):
                remedy = suggest(key, known)
                raise value.fault(f"{what} has no key {key!r}", remedy=remedy)
        return self.value

    def fault(self, found: str, *, remedy: str = "") -> MalformedLine:
        """Return an error with the place of the value."""
        return MalformedLine(found, where=self.where, remedy=remedy)


def read_marked(path: Path) -> MarkedValue:
    """Return the content of a ``.json`` file, and of any other as YAML.

    Every scalar is text as written: a name such as ``No`` stays text.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        BadYaml: The file is not YAML, is too long or is not UTF-8.
        MalformedLine: The file is not JSON, or is nested too deeply.
        Faults: A key is written twice.
    """
    if not has_file(path):
        raise MissingFile("no such file", where=str(path), remedy=suggest_file(path))
    start = Mark(str(path), folder=path.parent)
    text = read_source(path, start, MAX_BYTES)
    if path.suffix.lower() == ".json":
        document = Document(parse_json(text, path), values={(): start})
    else:
        document = read_text(text, start, scalars_as_text=True)
        if document.data is None:
            raise BadYaml("the file is empty", where=str(path))
        document.refuse()
    try:
        return _mark_value(document.data, document, ())
    except RecursionError as error:
        raise MalformedLine("is nested too deeply", where=str(path)) from error


def _mark_value(value: Any, document: Document, path: KeyPath) -> MarkedValue:
    """Return a value with the line of its key, or of itself in a list."""
    mark = document.mark(path, key=True)
    location = f"{mark.file}:{mark.line}" if mark.line else mark.file
    if isinstance(value, dict):
        mapping = {key: _mark_value(child, document, (*path, key)) for key, child in value.items()}
        return MarkedValue(mapping, location)
    if isinstance(value, list):
        children = enumerate(value)
        entries = [_mark_value(child, document, (*path, index)) for index, child in children]
        return MarkedValue(tuple(entries), location)
    if isinstance(value, str):
        return MarkedValue(value, location)
    return MarkedValue("" if value is None else json.dumps(value), location)
