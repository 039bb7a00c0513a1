"""The words of ``recbias list`` and ``recbias show``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from recbias.cli.pages import Page, default, page, reflowed
from recbias.cli.pages import entries as words_of
from recbias.config.describe import Parameter, summary
from recbias.core.errors import PluginError, UnknownName
from recbias.core.suggestions import did_you_mean, plain
from recbias.plugins import REGISTRIES
from recbias.reports.sources import about, list_published

KINDS = (
    *("datasets", "filters", "splits", "queries", "models", "detectors", "metrics", "tests"),
    *("templates", "prompts", "mitigations", "references"),
)
"""What ``recbias list`` takes."""

WIDTH = 99
"""Characters of a line of ``recbias show`` where the terminal is as wide."""


def entries(kind: str) -> list[tuple[str, str]]:
    """Return name and first sentence of everything of a kind.

    Raises:
        UnknownName: There is no such kind.
    """
    wanted = {plain(each): each for each in KINDS}.get(plain(kind))
    if wanted is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=did_you_mean(kind, KINDS))
    if wanted == "references":
        return [(name, about(name).title) for name in list_published()]
    if wanted not in REGISTRIES:
        return []
    registry = REGISTRIES[wanted]
    return [(name, _sentence(wanted, name)) for name in registry.names()]


def describe(name: str, width: int = WIDTH) -> str:
    """Return what a plug-in is, in words, whatever its kind.

    Args:
        name: What it is called.
        width: The longest line; formulas may be longer.

    Raises:
        UnknownName: Nothing is called so.
    """
    found = list(_found(name))
    if not found:
        names = [each for registry in REGISTRIES.values() for each in registry.names()]
        raise UnknownName(f"no plug-in is called {name!r}", remedy=did_you_mean(name, names))
    return "\n\n\n".join(_text(page(kind, spelling), width) for kind, spelling in found)


def _found(name: str) -> Iterator[tuple[str, str]]:
    for kind, registry in REGISTRIES.items():
        try:
            yield kind, registry.canonical(name)
        except UnknownName:
            continue


def _sentence(kind: str, name: str) -> str:
    try:
        return summary(REGISTRIES[kind].load(name))
    except PluginError as error:
        return f"({error.found}; {error.remedy})"


def _text(page: Page, width: int) -> str:
    parts = [f"{page.name} ({page.kind})", reflowed(page.body, width)]
    if page.parameters:
        rows = [line for row in page.parameters for line in _parameter(row, width)]
        parts.append("\n".join(["Parameters:", *rows]))
    if page.facts:
        facts = [_hanging(f"{name}: {said}", "", width) for name, said in page.facts.items()]
        parts.append("\n".join(facts))
    if page.errors:
        errors = [f"{name}: {when}".replace("``", "`") for name, when in words_of(page.errors)]
        rows = [_hanging(each, "    ", width) for each in errors]
        parts.append("\n".join(["Errors:", *rows]))
    if page.source:
        parts.append(_hanging(f"Source: {' '.join(page.source.split())}", "", width))
    return "\n\n".join(parts)


def _parameter(row: Parameter, width: int) -> Iterator[str]:
    limits = f", {row.range}" if row.range else ""
    yield _hanging(f"{row.name}: {row.type}{limits}; {default(row)}", "    ", width)
    if row.doc:
        doc = row.doc.replace("``", "`")
        yield textwrap.fill(doc, width, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _hanging(text: str, indent: str, width: int) -> str:
    below = indent + "    "
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=below)
