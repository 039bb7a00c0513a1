"""The page of a plug-in: its docstring and settings, for the terminal and docs/plugins."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recbias.config.settings import Parameter, list_parameters
from recbias.core.docstrings import (
    EXAMPLE,
    read_docstring,
    read_section,
    read_summary,
    split_sections,
)
from recbias.core.packages import find_extras, list_libraries
from recbias.registry import REGISTRIES
from recbias.reports.views.definitions import DIRECTION_LABELS


@dataclass(frozen=True)
class Page:
    """The page of one plug-in.

    Args:
        name: Its name in a spec.
        kind: Its kind: ``metric``.
        summary: One sentence.
        body: The whole description: paragraphs, formulas (indented by four) and lists.
        parameters: Its settings.
        facts: Direction, range, needs and the like, by name.
        errors: The errors it raises, each with its cause.
        example: A few lines of Python that run, or blank.
        source: The paper, or blank.
    """

    name: str
    kind: str
    summary: str
    body: str
    parameters: tuple[Parameter, ...]
    facts: Mapping[str, str]
    errors: str
    example: str
    source: str


def read_page(kind: str, name: str) -> Page:
    """Return the page of a plug-in by the key of its registry and its registered name."""
    cls = REGISTRIES[kind].load(name)
    sections = split_sections(read_docstring(cls))
    return Page(
        name=name,
        kind=REGISTRIES[kind].kind,
        summary=read_summary(cls),
        body=sections.get("", ""),
        parameters=tuple(list_parameters(cls)),
        facts=dict(_list_facts(cls)),
        errors=sections.get("Raises", ""),
        example=sections.get(EXAMPLE, ""),
        source=sections.get("Source", ""),
    )


def _list_facts(cls: type) -> Iterator[tuple[str, str]]:
    labels: dict[str, str] = {str(key): text for key, text in DIRECTION_LABELS.items()}
    label = labels.get(str(getattr(cls, "direction", "")))
    if label:
        yield "Direction", label
    if value_range := read_section(cls, "Range"):
        yield "Range", value_range
    for title, name in {"Needs": "needs", "Provides": "provides"}.items():
        value = getattr(cls, name, None)
        if isinstance(value, (frozenset, str)) and value:
            yield title, value if isinstance(value, str) else ", ".join(sorted(value))
    if extras := describe_extras(cls):
        yield "Extra", extras
    if hasattr(cls, "desiderata"):
        for criterion in cls().desiderata():
            title = f"Desideratum {criterion.number} ({criterion.name})"
            yield title, "yes" if criterion.met else "no"


def describe_extras(cls: type) -> str:
    """Return the extras of recbias that install what a plug-in needs: ``recbias[torch]``."""
    extras = find_extras(list_libraries(cls))
    return f"recbias[{','.join(extras)}]" if extras else ""


def reflow(text: str, width: int) -> str:
    r"""Wrap text to a width; formulas, which are indented by four, are not wrapped.

    >>> print(reflow("One two\nthree ``four``.\n\n    a = b\n\n- **five**\n  six", 12))
    One two
    three
    `four`.
    <BLANKLINE>
        a = b
    <BLANKLINE>
    - five six
    """
    return "\n\n".join(_reflow_block(block, width) for block in split_blocks(text))


def split_blocks(text: str) -> list[str]:
    """Split a text at blank lines into paragraphs, formulas and lists."""
    return re.split(r"\n(?:[ ]*\n)+", text)


def _reflow_block(text: str, width: int) -> str:
    if text.startswith("    "):
        return text
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("``", "`")
    if not text.startswith("- "):
        return textwrap.fill(" ".join(text.split()), width, break_long_words=False)
    items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", text)]
    return "\n".join(textwrap.fill(item, width, subsequent_indent="  ") for item in items)


def split_entries(text: str) -> list[tuple[str, str]]:
    r"""Split a section into its ``name: text`` entries, each on one line.

    >>> split_entries("MissingFile: The file\n    is missing.\nLeakage: A pair twice.")
    [('MissingFile', 'The file is missing.'), ('Leakage', 'A pair twice.')]
    """
    lines = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", text) if entry.strip()]
    entries = [line.partition(":") for line in lines]
    return [(name, description.strip()) for name, _, description in entries]


def describe_default(row: Parameter) -> str:
    """Describe the default of a parameter."""
    return "required" if row.needed else f"{row.default or '(empty)'} by default"
