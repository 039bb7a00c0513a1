"""What a plug-in says of itself, in parts: for ``recbias show`` and the pages of docs/plugins."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recbias.config.describe import Parameter, parameters, summary
from recbias.config.docstrings import section
from recbias.registry import REGISTRIES
from recbias.reports.views.definitions import WORDS

_SECTIONS = re.compile(r"(Args|Raises|Range|Source|Returns|Attributes):")
_EXAMPLE = "Example"


@dataclass(frozen=True)
class Page:
    """One plug-in.

    Args:
        name: As it is written in a spec.
        kind: What it is: ``metric``.
        summary: One sentence.
        body: The whole description: paragraphs, formulas (indented by four) and lists.
        parameters: Its settings.
        facts: Direction, range, needs and the like: what it is called, and what it says.
        errors: What is wrong when it fails: the error's name, and when.
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


def page(kind: str, name: str) -> Page:
    """Return what a plug-in says of itself.

    Args:
        kind: A key of the registries: ``metrics``.
        name: Its name, in the registry's spelling.
    """
    cls = REGISTRIES[kind].load(name)
    said = sections(cls)
    return Page(
        name=name,
        kind=REGISTRIES[kind].kind,
        summary=summary(cls),
        body=said.get("", ""),
        parameters=tuple(parameters(cls)),
        facts=dict(_facts(cls)),
        errors=said.get("Raises", ""),
        example=said.get(_EXAMPLE, ""),
        source=said.get("Source", ""),
    )


def sections(cls: type) -> dict[str, str]:
    """Return a docstring by its sections; what stands in none is under the empty name.

    >>> sorted(sections(Page))
    ['', 'Args']
    """
    found: dict[str, list[str]] = {}
    here = ""
    for line in (inspect.getdoc(cls) or "").splitlines():
        title = _SECTIONS.fullmatch(line)
        if title:
            here = title[1]
        else:
            here = _section_of(line, here)
            found.setdefault(here, []).append(line)
    return {name: textwrap.dedent("\n".join(lines)).strip("\n") for name, lines in found.items()}


def _section_of(line: str, before: str) -> str:
    """Return where a line without a title belongs, after one that belonged to ``before``."""
    if line.startswith(">>>"):
        return _EXAMPLE
    if before == _EXAMPLE:
        return before if line else ""
    return before if not line or line.startswith(" ") else ""


def _facts(cls: type) -> Iterator[tuple[str, str]]:
    known = vars(cls)
    if known.get("direction") in WORDS:
        yield "Direction", WORDS[known["direction"]]
    if value_range := section(cls, "Range"):
        yield "Range", value_range
    for word, name in {"Needs": "needs", "Provides": "provides"}.items():
        value = known.get(name)
        if isinstance(value, (frozenset, str)) and value:
            yield word, value if isinstance(value, str) else ", ".join(sorted(value))
    if "desiderata" in known:
        for each in cls().desiderata():
            yield f"Desideratum {each.number} ({each.name})", "yes" if each.met else "no"


def reflowed(text: str, width: int) -> str:
    r"""Return text in lines of at most ``width``; formulas, indented by four, stay as they are.

    >>> print(reflowed("One two\nthree ``four``.\n\n    a = b\n\n- **five**\n  six", 12))
    One two
    three
    `four`.
    <BLANKLINE>
        a = b
    <BLANKLINE>
    - five six
    """
    return "\n\n".join(_block(each, width) for each in blocks(text))


def blocks(text: str) -> list[str]:
    """Return the paragraphs, formulas and lists of a text, without the blank lines between."""
    return re.split(r"\n(?:[ ]*\n)+", text)


def _block(text: str, width: int) -> str:
    if text.startswith("    "):
        return text
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("``", "`")
    if not text.startswith("- "):
        return textwrap.fill(" ".join(text.split()), width, break_long_words=False)
    items = re.split(r"\n(?=- )", text)
    return "\n".join(
        textwrap.fill(" ".join(each.split()), width, subsequent_indent="  ") for each in items
    )


def entries(text: str) -> list[tuple[str, str]]:
    r"""Return the ``name: what`` entries of a section, each on one line.

    >>> entries("MissingFile: It is\n    not there.\nLeakage: A pair twice.")
    [('MissingFile', 'It is not there.'), ('Leakage', 'A pair twice.')]
    """
    lines = [" ".join(each.split()) for each in re.split(r"\n(?=\S)", text) if each.strip()]
    return [(name, what.strip()) for name, _, what in (line.partition(":") for line in lines)]


def default(row: Parameter) -> str:
    """Return the default of a parameter as ``recbias show`` says it."""
    return "must be given" if row.needed else f"{row.default or '(empty)'} by default"
