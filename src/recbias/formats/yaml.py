"""YAML as plain Python that knows its lines, and the errors found there.

Scalars are those of YAML 1.2: only ``true`` and ``false`` are truth values (``yes``, ``no``,
``on`` and ``off`` are text), ``1e-5`` is a number, ``010`` is ten, and dates are text. There is no
NaN. Tags of types, merge keys and repeated keys are rejected.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import yaml

from recbias.core.errors import (
    BadYaml,
    ConfigError,
    DuplicateKey,
    Faults,
    MalformedLine,
    MissingFile,
    UserError,
)
from recbias.core.files import has_file
from recbias.core.text import find_nearest, suggest

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead to a value: ``("models", 1, "neighbors")``."""

MAX_BYTES = 1 << 20
"""The longest experiment file: naming a data file by mistake fails at once."""

MAX_TEXT_BYTES = 1 << 22
"""The longest file of templates or words."""

_MAX_VALUES = 100_000
"""The largest number of values of a file, with aliases resolved."""

_MAX_DEPTH = 100
"""The largest depth of mappings and lists inside each other; libyaml itself has no limit."""


class Mark(NamedTuple):
    """A position in the user's input.

    Args:
        file: The file as the user named it, or the text of an override. Blank for a Python dict.
        line: The line, from 1; 0 if the source has no lines.
        column: The column, from 1.
        rank: The order of the source: 0 for the experiment file, higher for those read later.
        folder: The folder that relative paths are relative to.
        lined: Whether the source has lines; an override is shown as a whole.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    rank: int = 0
    folder: Path = Path()
    lined: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def at(self, line: int, column: int) -> Mark:
        """Return the mark of a line and column, both from 0, of the same source."""
        return self._replace(line=line + 1, column=column + 1) if self.lined else self

    @property
    def order(self) -> tuple[int, int, int]:
        """The sort key of errors."""
        return (self.rank, self.line, self.column)


def format_key_path(path: KeyPath) -> str:
    """Return a key path as text.

    >>> format_key_path(("models", 1, "neighbors"))
    'models[1].neighbors'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


@dataclass
class Document:
    """A YAML file as plain Python, with the mark of every key and value, and its errors so far.

    Args:
        data: The top mapping.
        keys: The marks of keys, by key path.
        values: The marks of values, by key path; that of the whole document is at ``()``.
        base: The folder that relative paths are relative to.
        faults: The errors, each with its mark.
        origins: Where the user wrote the values that a sweep has moved, by their key path.
    """

    data: dict[str, Any]
    keys: dict[KeyPath, Mark] = field(default_factory=dict)
    values: dict[KeyPath, Mark] = field(default_factory=dict)
    base: Path = Path()
    faults: list[tuple[Mark, UserError]] = field(default_factory=list)
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)

    def mark(self, path: KeyPath, *, key: bool = False) -> Mark:
        """Return the mark of a value or of its key; that of the enclosing value if it has none."""
        if key and path in self.keys:
            return self.keys[path]
        for end in range(len(path), -1, -1):
            if path[:end] in self.values:
                return self.values[path[:end]]
        return Mark(folder=self.base)

    def forget(self, path: KeyPath) -> None:
        """Remove the marks of a value and of what is inside it."""
        for marks in (self.keys, self.values):
            for inner in [inner for inner in marks if inner[: len(path)] == path]:
                del marks[inner]

    def format_path(self, path: KeyPath, *, key: bool = False) -> str:
        """Return the key path under which the user wrote a value, or its key, as text."""
        origin = path
        for end in range(len(path), 0, -1):
            if path[:end] in self.origins:
                origin = (*self.origins[path[:end]], *path[end:])
                break
        is_moved_key = key and path in self.origins and isinstance(origin[-1], int)
        return format_key_path(origin[:-1] if is_moved_key else origin)

    def error(
        self,
        path: KeyPath,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> UserError:
        """Return the error of a value, or of its key: ``file:line:column: key: found``."""
        parts = [str(self.mark(path, key=key)), self.format_path(path, key=key)]
        return kind(found, where=": ".join(filter(None, parts)), remedy=remedy)

    def add_fault(
        self,
        path: KeyPath,
        found: str,
        *,
        remedy: str = "",
        kind: type[UserError] = ConfigError,
        key: bool = False,
    ) -> None:
        """Record the error of a value; the arguments are those of ``error``."""
        error = self.error(path, found, remedy=remedy, kind=kind, key=key)
        self.faults.append((self.mark(path, key=key), error))

    def add_error(self, path: KeyPath, error: UserError) -> None:
        """Record an error that was raised elsewhere as one of the value that caused it."""
        for fault in error.faults if isinstance(error, Faults) else [error]:
            self.add_fault(path, fault.message, remedy=fault.remedy, kind=type(fault))

    @contextmanager
    def recording(self, path: KeyPath) -> Iterator[None]:
        """Record an error of the user's input in the block as one of the value at a path."""
        try:
            yield
        except UserError as error:
            self.add_error(path, error)

    def add_raised(self, check: Callable[[], object]) -> None:
        """Record what a check raises, after what was found before; its errors have places."""
        try:
            check()
        except UserError as error:
            messages = {str(fault) for _, fault in self.faults}
            last = max((mark for mark, _ in self.faults), key=lambda mark: mark.order)
            faults = Faults([error]).faults
            self.faults += [(last, fault) for fault in faults if str(fault) not in messages]

    def list_faulty_keys(self) -> set[str]:
        """Return the top keys in which errors were found, as far as they belong to one."""
        places = [error.where.rpartition(": ")[2] for _, error in self.faults]
        return {re.split(r"[.\[]", place, maxsplit=1)[0] for place in places}

    def refuse(self) -> None:
        """Raise Faults with all recorded errors, in the order of their marks, if there are any."""
        if self.faults:
            ordered = sorted(self.faults, key=lambda fault: fault[0].order)
            raise Faults([error for _, error in ordered])


def read_file(path: Path, rank: int = 0) -> Document:
    """Return the document in a file, which has a ``rank`` among all sources; see ``Mark``.

    Raises:
        MissingFile: The file does not exist.
        BadYaml: The file is not YAML, or not one plain mapping.
    """
    start = Mark(str(path), rank=rank, folder=path.parent)
    document = read_text(_read_source(path, start, MAX_BYTES), start)
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
    document = Document({}, base=start.folder)
    try:
        node = _compose(text, start)
        builder = _Builder(document, start, scalars_as_text)
        data: Any = None if node is None else builder.build(node, ())
    except RecursionError as error:
        raise BadYaml("is nested too deeply", where=start.file) from error
    document.data = data
    return document


def dump(data: dict[str, Any]) -> str:
    """Return the YAML text of an experiment file, which reads back as the same data.

    >>> print(dump({"name": "1e5", "k": 10}).strip())
    name: '1e5'
    k: 10
    """
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=99))


def suggest_file(path: Path) -> str:
    """Return the remedy for a missing file: a file with a similar name in the same folder."""
    if os.path.isdir(path):  # noqa: PTH112  see is_file
        return "it is a folder: name a file in it"
    try:
        nearest = find_nearest(path.name, os.listdir(path.parent), limit=1)  # noqa: PTH208
    except (OSError, ValueError):
        return f"there is no folder {path.parent}"
    return f"did you mean {nearest[0]}?" if nearest else f"recbias looked at {path.absolute()}"


def is_file(path: Path) -> bool:
    """Return whether a path is a file; False for an impossible path."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises on names that are too long


def _read_source(path: Path, start: Mark, max_bytes: int) -> str:
    """Return the text of a file of at most ``max_bytes``, whose mark is ``start``."""
    if not os.path.isdir(path):  # noqa: PTH112
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
        location = str(_mark_end(before, start))
        raise BadYaml(message, where=location, remedy="save the file as UTF-8") from error


# ---- scalars ----

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)",
        list("-+.0123456789"),
    ),
}
"""The types of plain scalars other than text: a pattern, and the possible first characters."""

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is 7 times faster


class _Loader(_BaseLoader):  # type: ignore[misc]  # chosen at run time
    """PyYAML's reader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's
    depth = 0

    def descend_resolver(self, _parent: yaml.Node | None, _index: object) -> None:
        """Enter a key or value."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise RecursionError

    def ascend_resolver(self) -> None:
        """Leave a key or value."""
        self.depth -= 1


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also quotes text that YAML 1.2 would read as a number."""


for _name, (_pattern, _initials) in _SCALARS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), _initials)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    """Return the node of a text; unusual characters survive only inside quotes."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _parse_scalar(kind: str, text: str) -> Any:
    """Return the value of a scalar; ValueError if it is not of its kind, or too large."""
    if kind == "str":
        return text
    if not re.fullmatch(_SCALARS[kind][0], text):
        raise ValueError(f"{text!r} is not of its tag, !!{kind}")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int" and len(text) < 400:
        return int(text, 8 if "o" in text else 16 if "x" in text else 10)
    number = float(text.replace(".", "", 1) if text.lower().endswith("inf") else text)
    if math.isinf(number) and not text.lower().endswith("inf"):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


# ---- nodes and the errors of syntax ----


@dataclass
class _Builder:
    """Builds plain Python from YAML nodes and records their marks."""

    document: Document
    start: Mark
    scalars_as_text: bool
    n_values: int = 0
    ancestors: list[yaml.Node] = field(default_factory=list)

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return a node as plain Python, and record its mark."""
        self.document.values[path] = self.mark(node)
        self.n_values += 1
        if self.n_values > _MAX_VALUES:
            remedy = "write data into a table; an alias counts as all the values that it names"
            outer = (self.ancestors or [node])[-1]
            raise self.error(outer, f"more than {_MAX_VALUES:,} values", remedy)
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.ScalarNode) and kind in {"str", *_SCALARS}:
            return self.convert_scalar(node, kind)
        if any(ancestor is node for ancestor in self.ancestors):
            raise self.error(node, "an alias occurs inside the value that it names")
        self.ancestors.append(node)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            value: Any = self.convert_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode) and kind == "seq":
            value = [self.build(child, (*path, index)) for index, child in enumerate(node.value)]
        else:
            tag = f"!!{kind}" if kind != node.tag else node.tag
            raise self.error(node, f"the tag {tag} is not allowed", "write a plain value")
        self.ancestors.pop()
        return value

    def convert_mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        """Return a mapping; a repeated key is recorded as an error."""
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, "a key must be text", "put braces in quotes")
            if key_node.value == "<<" and not key_node.style:
                message, remedy = "merge keys (<<) are not read", "use extends: other.yaml"
                raise self.error(key_node, message, remedy)
            key_path, mark = (*path, key_node.value), self.mark(key_node)
            if key_node.value in mapping:
                message = f"is written twice, first in line {self.document.keys[key_path].line}"
                where = f"{mark}: {format_key_path(key_path)}"
                error = DuplicateKey(message, where=where, remedy="keep one of them")
                self.document.faults.append((mark, error))
                continue
            self.document.keys[key_path] = mark
            mapping[key_node.value] = self.build(value_node, key_path)
        return mapping

    def convert_scalar(self, node: yaml.ScalarNode, kind: str) -> Any:
        if self.scalars_as_text:
            return "" if kind == "null" else node.value
        try:
            return _parse_scalar(kind, node.value)
        except ValueError as error:
            raise self.error(node, str(error)) from error

    def mark(self, node: yaml.Node) -> Mark:
        return self.start.at(node.start_mark.line, node.start_mark.column)

    def error(self, node: yaml.Node, message: str, remedy: str = "") -> BadYaml:
        return BadYaml(message, where=str(self.mark(node)), remedy=remedy)


def _compose(text: str, start: Mark) -> yaml.Node | None:
    """Return the nodes of one document, None if it is empty."""
    if unprintable := yaml.reader.Reader.NON_PRINTABLE.search(text):
        where = str(_mark_end(text[: unprintable.start()], start))
        message = f"the character {unprintable.group()!r} is not allowed in YAML"
        raise BadYaml(message, where=where, remedy="remove it")
    try:
        node: yaml.Node | None = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _convert_syntax_error(error, start) from error
    return node


def _mark_end(text: str, start: Mark) -> Mark:
    """Return the mark of the end of a text that begins at ``start``."""
    return start.at(text.count("\n"), len(text) - text.rfind("\n") - 1)


_USUAL = {
    "cannot start any token": (
        "a tab or another character that cannot stand here",
        "indent with spaces, and put text with other signs in quotes",
    ),
    "mapping values are not allowed": (
        "a colon that YAML does not expect here",
        "put text that contains ': ' in quotes, and check the indentation",
    ),
    "a single document": ("a second document begins here", "keep one document per file"),
}
"""The usual slips, by a part of what PyYAML says of them: what is wrong, and what to do."""


def _convert_syntax_error(error: yaml.MarkedYAMLError, start: Mark) -> BadYaml:
    problem = " ".join(filter(None, [error.problem, error.context and f"({error.context})"]))
    problem = problem.replace("did not find expected", "expected")
    remedy = "close every bracket and quote, and put text with other signs in quotes"
    slips = [slip for part, slip in _USUAL.items() if part in problem]
    mark = error.problem_mark or error.context_mark
    if "unexpected end of stream" in problem and error.context_mark:
        mark = error.context_mark  # where the quote opens
    where = str(start.at(mark.line, mark.column) if mark else start)
    problem, remedy = slips[0] if slips else (problem or "is not YAML", remedy)
    return BadYaml(problem, where=where, remedy=remedy)


# ---- files of text ----

_Value: TypeAlias = "str | tuple[MarkedValue, ...] | dict[str, MarkedValue]"


@dataclass(frozen=True)
class MarkedValue:
    """A value of a file of templates or words; the methods name it ``what`` in their errors.

    Args:
        value: Text as written (also for numbers and truth values), a list, or a mapping.
        where: ``file:line``; only the file for JSON.
    """

    value: _Value
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

    def mapping(
        self,
        what: str,
        known: Iterable[str] | None = None,
        needed: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, MarkedValue]:
        """Return a mapping whose keys are ``known``; None for any keys.

        Args:
            what: What the mapping is.
            known: The keys.
            needed: The keys that it must have, each with what to write for it.

        Raises:
            MalformedLine: The value is not a mapping, or has an invalid key.
        """
        if not isinstance(self.value, dict):
            raise self.fault(f"{what} must be a mapping")
        for key, value in self.value.items():
            if known is not None and key not in set(known):
                remedy = suggest(key, known)
                raise value.fault(f"{what} has no key {key!r}", remedy=remedy)
        for key, example in needed.items():
            if key not in self.value:
                raise self.fault(f"{what} has no {key}", remedy=f"write {example}")
        return self.value

    def texts(self, *keys: str) -> list[str]:
        """Return the text at each key of a mapping; blank where it is absent or null.

        Raises:
            MalformedLine: One is a list or a mapping.
        """
        top = self.mapping("the file")
        return [top[key].text(key) if key in top and top[key].value else "" for key in keys]

    def choose(self, key: str, *options: str) -> str:
        """Return the text at a key of a mapping: one of some options, by default the first.

        Raises:
            MalformedLine: It is none of them.
        """
        (text,) = self.texts(key)
        chosen = text.lower() or options[0]
        if chosen not in options:
            message = f"{key} is {text!r}"
            remedy = f"write {' or '.join(options)}"
            raise self.mapping("the file")[key].fault(message, remedy=remedy)
        return chosen

    def fault(self, found: str, *, remedy: str = "") -> MalformedLine:
        """Return an error with the place of the value."""
        return MalformedLine(found, where=self.where, remedy=remedy)


def read_marked(path: Path) -> MarkedValue:
    """Return the content of a ``.json`` file, and of any other as YAML.

    Every scalar is text as written: a name such as ``No`` stays text.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        BadYaml: The file is not YAML, is too long or is not UTF-8.
        MalformedLine: The file is not JSON.
        Faults: A key is written twice.
    """
    if not has_file(path):
        raise MissingFile("no such file", where=str(path), remedy=suggest_file(path))
    start = Mark(str(path), folder=path.parent)
    text = _read_source(path, start, MAX_TEXT_BYTES)
    if path.suffix.lower() == ".json":
        from recbias.formats.json_files import parse_json

        return _mark_value(parse_json(text, path), Document({}, values={(): start}), ())
    document = read_text(text, start, scalars_as_text=True)
    if document.data is None:
        raise BadYaml("the file is empty", where=str(path))
    document.refuse()
    return _mark_value(document.data, document, ())


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
