"""What ``recbias list`` and ``recbias show`` print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from recbias.cli.pages import Page, describe_default, read_page, reflow, split_entries
from recbias.cli.templates import describe_template_set, indent, load_template_sets
from recbias.config.docstrings import read_summary
from recbias.config.type_text import Parameter
from recbias.core.errors import PluginError, UnknownName
from recbias.core.suggestions import normalize_name, suggest
from recbias.registry import LISTINGS, REGISTRIES
from recbias.reports.published_tables.sources import list_published, read_source

KINDS = (
    *("datasets", "filters", "splits", "queries", "models", "detectors", "metrics", "tests"),
    *("templates", "prompts", "mitigations", "references"),
)
"""The kinds that ``recbias list`` accepts."""

WIDTH = 99
"""The maximum line width of ``recbias show``."""


def list_entries(kind: str) -> list[tuple[str, str]]:
    """Return the name and the first sentence of everything of a kind.

    Raises:
        UnknownName: There is no such kind.
    """
    kind_name = {normalize_name(name): name for name in KINDS}.get(normalize_name(kind))
    if kind_name is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, KINDS))
    if kind_name == "references":
        return [(name, read_source(name).title) for name in list_published()]
    if kind_name == "templates":
        return [(name, templates.about) for name, templates in load_template_sets().items()]
    if kind_name in LISTINGS.table:
        list_packaged: Any = LISTINGS.load(kind_name)
        return list(list_packaged())
    return [(name, _summarize(kind_name, name)) for name in REGISTRIES[kind_name].names()]


def describe(name: str, width: int = WIDTH) -> str:
    """Describe the plug-ins and the packaged set of templates that have a name.

    Args:
        name: The name, without regard to case, ``-`` and ``_``.
        width: The maximum line width, except for formulas.

    Raises:
        UnknownName: Nothing has the name.
    """
    template_sets = load_template_sets()
    texts = [_render_page(read_page(kind, plugin), width) for kind, plugin in _find(name)]
    texts += [
        describe_template_set(set_name, templates, width)
        for set_name, templates in template_sets.items()
        if normalize_name(set_name) == normalize_name(name)
    ]
    if not texts:
        names = [plugin for registry in REGISTRIES.values() for plugin in registry.names()]
        remedy = suggest(name, [*names, *template_sets])
        raise UnknownName(f"no plug-in is called {name!r}", remedy=remedy)
    return "\n\n\n".join(texts)


def _find(name: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the registered name of each plug-in with a name."""
    for kind, registry in REGISTRIES.items():
        try:
            yield kind, registry.resolve_name(name)
        except UnknownName:
            continue


def _summarize(kind: str, name: str) -> str:
    try:
        return read_summary(REGISTRIES[kind].load(name))
    except PluginError as error:
        return f"({error.message}; {error.remedy})"


def _render_page(page: Page, width: int) -> str:
    sections = [f"{page.name} ({page.kind})", reflow(page.body, width)]
    if page.parameters:
        rows = [line for row in page.parameters for line in _render_parameter(row, width)]
        sections.append("\n".join(["Parameters:", *rows]))
    if page.facts:
        facts = [indent(f"{name}: {text}", "", width) for name, text in page.facts.items()]
        sections.append("\n".join(facts))
    if page.errors:
        errors = [f"{name}: {text}" for name, text in split_entries(page.errors)]
        rows = [indent(error.replace("``", "`"), "    ", width) for error in errors]
        sections.append("\n".join(["Errors:", *rows]))
    if page.source:
        source = " ".join(page.source.split()).replace("``", "`")
        sections.append(indent(f"Source: {source}", "", width))
    return "\n\n".join(sections)


def _render_parameter(row: Parameter, width: int) -> Iterator[str]:
    limits = f", {row.range}" if row.range else ""
    yield indent(f"{row.name}: {row.type}{limits}; {describe_default(row)}", "    ", width)
    if row.doc:
        doc, margin = row.doc.replace("``", "`"), " " * 8
        yield textwrap.fill(doc, width, initial_indent=margin, subsequent_indent=margin)
