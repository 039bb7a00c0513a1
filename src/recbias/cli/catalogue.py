"""The words of ``recbias list`` and ``recbias show``."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from recbias.cli.pages import Page, default, page, reflowed
from recbias.cli.pages import entries as words_of
from recbias.config.describe import Parameter, summary
from recbias.core.errors import PluginError, UnknownName
from recbias.core.suggestions import normalize_name, suggest
from recbias.registry import REGISTRIES
from recbias.reports.published_tables.sources import about, list_published

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
    wanted = {normalize_name(each): each for each in KINDS}.get(normalize_name(kind))
    if wanted is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, KINDS))
    if wanted == "references":
        return [(name, about(name).title) for name in list_published()]
    if wanted == "templates":
        return [(name, each.about) for name, each in _template_sets().items()]
    if wanted not in REGISTRIES:
        return []
    registry = REGISTRIES[wanted]
    return [(name, _sentence(wanted, name)) for name in registry.names()]


def describe(name: str, width: int = WIDTH) -> str:
    """Return what a plug-in or a packaged set of templates is, in words.

    Args:
        name: What it is called.
        width: The longest line; formulas may be longer.

    Raises:
        UnknownName: Nothing is called so.
    """
    sets = _template_sets()
    texts = [_text(page(kind, spelling), width) for kind, spelling in _found(name)]
    texts += [
        _about_set(each, sets[each], width)
        for each in sets
        if normalize_name(each) == normalize_name(name)
    ]
    if not texts:
        names = [each for registry in REGISTRIES.values() for each in registry.names()]
        remedy = suggest(name, [*names, *sets])
        raise UnknownName(f"no plug-in is called {name!r}", remedy=remedy)
    return "\n\n\n".join(texts)


def _found(name: str) -> Iterator[tuple[str, str]]:
    for kind, registry in REGISTRIES.items():
        try:
            yield kind, registry.canonical(name)
        except UnknownName:
            continue


def _template_sets() -> Mapping[str, Any]:
    """Return the packaged sets of templates, by name."""
    source: Any = REGISTRIES["queries"].load("templates")
    found: Mapping[str, Any] = source.packaged()
    return found


def _about_set(name: str, templates: Any, width: int) -> str:
    """Return what a packaged set of templates holds: kinds, slots, words, labels and examples."""
    total = sum(len(kind) for kind in templates.kinds)
    parts = [f"{name} (templates)", _hanging(f"{templates.about} {total:,} prompts.", "", width)]
    for kind in templates.kinds:
        head = f"{kind.name}: {len(kind.sentences)} sentences, {len(kind):,} prompts"
        parts.append("\n".join([head, *(_hanging(each, "    ", width) for each in _kind(kind))]))
    parts.append(_hanging(f"Source: {templates.source}", "", width))
    return "\n\n".join(parts)


def _kind(kind: Any) -> Iterator[str]:
    for slot, listed in kind.words.items():
        yield f"[{slot}]: {len(listed.words)} words ({', '.join(listed.words[:6])}, ...)"
    for column, (slot, label) in kind.labels.items():
        counts = Counter(each for each in kind.words[slot].labels[label] if each)
        yield f"{column}: {', '.join(f'{value} ({n})' for value, n in counts.items())}"
    shown = (kind.sentences[0], kind.sentences[len(kind.sentences) // 2], kind.sentences[-1])
    yield from (f'"{each}"' for each in dict.fromkeys(shown))


def _sentence(kind: str, name: str) -> str:
    try:
        return summary(REGISTRIES[kind].load(name))
    except PluginError as error:
        return f"({error.message}; {error.remedy})"


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
        said = " ".join(page.source.split()).replace("``", "`")
        parts.append(_hanging(f"Source: {said}", "", width))
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
