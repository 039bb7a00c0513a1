"""YAML text to nodes with limits; the errors of its syntax with their places and remedies."""

from __future__ import annotations

import re
from typing import Any

import yaml

from recbias.core.errors import BadYaml
from recbias.formats.yaml.limited_loader import TooManyValues
from recbias.formats.yaml.scalars import LOADERS, Loader
from recbias.formats.yaml.source_map import Mark

MAX_VALUES = 100_000
"""The largest number of values of a file, with aliases resolved."""

MAX_SLOW_LENGTH = 100_000
"""The longest text, in characters, that PyYAML's own reader reads: it is slow."""

_HALF_CHARACTER = re.compile(r"[dD][89a-fA-F][0-9a-fA-F]{2}")
"""The code of half a character, as JSON escapes it; libyaml refuses it, PyYAML does not."""

_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)
"""A prefix of tags; libyaml compares each with all before it."""

_FOUND = re.compile(r", but (got|found) .*", re.DOTALL)
_OF_LIBYAML = "did not find expected"
_ALIAS = re.compile(r"\*([^\s,\[\]{}]+)")


def mark_end(text: str, start: Mark) -> Mark:
    """Return the mark of the end of a text that begins at ``start``."""
    return start.at(text.count("\n"), len(text) - text.rfind("\n") - 1)


def compose(text: str, start: Mark) -> yaml.Node | None:
    """Return the nodes of one document, None if it is empty.

    Raises:
        BadYaml: The text is not YAML, is several documents, or has too many values.
        RecursionError: It is nested too deeply.
    """
    if unprintable := yaml.reader.Reader.NON_PRINTABLE.search(text):
        location = str(mark_end(text[: unprintable.start()], start))
        message = f"the character {unprintable.group()!r} is not allowed in YAML"
        raise BadYaml(message, where=location, remedy="remove it")
    if text.startswith(("%", "#")) and (directive := _TAG_DIRECTIVE.search(text)):
        location = str(mark_end(text[: directive.start()], start))
        raise BadYaml("a %TAG line", where=location, remedy="remove it: tags are not read")
    try:
        return _compose_with(LOADERS[-1], text, start)
    except yaml.MarkedYAMLError as error:
        syntax_error = _build_syntax_error(error, text, start)
        if not _is_half_character(error, text):
            raise syntax_error from error
    if len(text) > MAX_SLOW_LENGTH:
        remedy = f"write the character itself, or a file of {MAX_SLOW_LENGTH:,} characters"
        raise BadYaml("half a character", where=syntax_error.where, remedy=remedy)
    try:
        return _compose_with(Loader, text, start)
    except yaml.MarkedYAMLError as error:
        raise _build_syntax_error(error, text, start) from error


def _compose_with(reader: Any, text: str, start: Mark) -> yaml.Node | None:
    loader = reader(text)
    loader.values_left = MAX_VALUES - 1  # beside the document itself
    try:
        node: yaml.Node | None = loader.get_single_node()
    except TooManyValues as error:
        raise refuse_values(error.node, start) from error
    except (ValueError, OverflowError) as error:  # PyYAML's reader converts any code
        remedy = r"write the character itself, not \U and its code"
        mark = loader.get_mark()
        location = str(start.at(mark.line, mark.column))
        raise BadYaml("an escape names no character", where=location, remedy=remedy) from error
    return node


def _is_half_character(error: yaml.MarkedYAMLError, text: str) -> bool:
    """Return whether a reader has stopped at the code of half a character."""
    if error.problem_mark is None or "Unicode character escape" not in str(error.problem):
        return False
    return bool(_HALF_CHARACTER.match(_get_rest(error.problem_mark, text)))


def refuse_values(node: yaml.Node, start: Mark) -> BadYaml:
    """Return the error of a document with too many values, at a mapping, list or value."""
    location = str(start.at(node.start_mark.line, node.start_mark.column))
    remedy = "write data into a table; an alias counts as all the values that it names"
    return BadYaml(f"more than {MAX_VALUES:,} values", where=location, remedy=remedy)


def _build_syntax_error(error: yaml.MarkedYAMLError, text: str, start: Mark) -> BadYaml:
    problem = _FOUND.sub("", error.problem or "is not YAML").replace(_OF_LIBYAML, "expected")
    remedy = "close every bracket and quote, and put text with other signs in quotes"
    if _begins_with_tab(error, text):
        problem, remedy = "a tab where YAML expects spaces", "indent with spaces"
    elif problem == "found undefined alias" and error.problem_mark:
        written = _ALIAS.match(_get_rest(error.problem_mark, text))
        problem = f"{problem} {written.group(1)!r}" if written else problem
    elif error.context == "expected a single document in the stream":
        problem, remedy = "a second document begins here", "keep one document per file"
    elif "mapping values are not allowed" in problem:
        problem = "a colon that YAML does not expect here"
        remedy = "put text that contains ': ' in quotes, and check the indentation"
    elif error.context:
        problem = f"{problem} ({error.context})"
    mark = error.problem_mark or error.context_mark
    if problem.startswith("found unexpected end of stream") and error.context_mark:
        mark = error.context_mark  # where the quote opens
    location = start.at(mark.line, mark.column) if mark else start
    return BadYaml(problem, where=str(location), remedy=remedy)


def _begins_with_tab(error: yaml.MarkedYAMLError, text: str) -> bool:
    """Return whether a tab is where a value was expected."""
    if "found a tab character" in str(error.problem):
        return True
    if error.problem_mark is None or "cannot start any token" not in str(error.problem):
        return False
    return _get_rest(error.problem_mark, text).startswith("\t")


def _get_rest(mark: yaml.Mark, text: str) -> str:
    """Return the rest of the line from a mark on."""
    lines = re.split("\r\n|[\r\n\x85\u2028\u2029]", text, maxsplit=mark.line + 1)
    return lines[mark.line][mark.column :]
