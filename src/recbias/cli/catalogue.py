"""What ``recbias list`` and ``recbias show`` print, also as pages of docs/plugins."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbias.config.settings import Parameter, list_parameters
from recbias.config.source import list_specs, resolve_spec, summarize_spec
from recbias.core.docstrings import (
    EXAMPLE,
    read_docstring,
    read_section,
    read_summary,
    split_sections,
)
from recbias.core.errors import PluginError, UnknownName
from recbias.core.files import has_file
from recbias.core.packages import find_extras, list_libraries
from recbias.core.registry import is_file
from recbias.core.text import normalize_name, suggest
from recbias.registry import LISTINGS, REGISTRIES
from recbias.reports.published import list_published, load_published, read_source, resolve_name
from recbias.reports.views import DIRECTION_LABELS

_INDENT = "    "


def describe_packaged(name: str, width: int) -> Iterator[str]:
    """Yield the pages of the spec and of the published table that have a name."""
    for describe, resolve in ((_describe_spec, resolve_spec), (_describe_table, resolve_name)):
        try:
            found = resolve(name)
        except UnknownName:
            continue
        yield describe(found, width)


def describe_use(name: str) -> str:
    """Return which packaged specs are compared with a published table, or why none is.

    >>> describe_use("aab/1")
    'papers/aab/with-and-without-gender'
    """
    table = read_source(name)
    return ", ".join(table.specs) or table.reason


def _describe_spec(name: str, width: int) -> str:
    """Return the content of a spec below the commands that use it."""
    commands = f"Run it with recbias run {name}; recbias init {name} writes it into this folder."
    content = list_specs()[name].read_text("utf-8").rstrip()
    return "\n\n".join([f"{name} (spec)", textwrap.fill(commands, width), content])


def _describe_table(name: str, width: int) -> str:
    """Return the source, the remarks and the values of a published table."""
    source, values = read_source(name), load_published(name).drop(columns="note", errors="ignore")
    values = values.loc[:, values.notna().any() & (values.astype(str) != "").any()]
    shared = [column for column in values if len({*values[column].astype(str)}) == 1]
    use = f"Compare a run with it: recbias compare RUN --reference {name}"
    lines = [
        source.title + ".",
        *source.remarks,
        *(f"{column}: {values[column].iloc[0]}" for column in shared),
        use if source.comparable else "Its values are not those of a run, so none is compared.",
        f"Source: {source.citation}",
    ]
    table = values.drop(columns=shared).to_string(
        index=False, na_rep="", float_format="{:.6g}".format
    )
    rows = [line.rstrip() for line in textwrap.indent(table, _INDENT).splitlines()]
    text = "\n\n".join(textwrap.fill(line, width, subsequent_indent=_INDENT) for line in lines)
    return "\n\n".join([f"{name} (reference)", text, "\n".join(rows)])


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
    if extras := _describe_extras(cls):
        yield "Extra", extras


def _describe_extras(cls: type) -> str:
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


KINDS = (
    *("datasets", "filters", "splits", "queries", "models", "detectors", "metrics", "tests"),
    *("templates", "prompts", "mitigations", "terms", "references", "specs"),
)
"""The kinds that ``recbias list`` accepts."""

WIDTH = 99
"""The maximum line width of ``recbias show``."""


def find_kind(kind: str) -> str:
    """Return the name of a kind, without regard to case.

    Raises:
        UnknownName: There is no such kind.
    """
    name = {normalize_name(name): name for name in KINDS}.get(normalize_name(kind))
    if name is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, KINDS))
    return name


def list_entries(kind: str) -> list[tuple[str, str]]:
    """Return the name and the first sentence of everything of a kind; UnknownName if none is."""
    kind_name = find_kind(kind)
    if kind_name == "references":
        return [(name, read_source(name).title) for name in list_published()]
    if kind_name == "specs":
        return [(name, summarize_spec(path)) for name, path in list_specs().items()]
    if kind_name == "templates":
        return [(name, templates.about) for name, templates in _load_template_sets().items()]
    if kind_name in LISTINGS.table:
        entries = load_packaged(kind_name).items()
        rows = [(name, f"{entry.about} ({entry.source})") for name, entry in entries]
        names = REGISTRIES["rerankers"].names() if kind_name == "mitigations" else []
        return [*((name, _summarize("rerankers", name)) for name in names), *rows]
    return [(name, _summarize(kind_name, name)) for name in REGISTRIES[kind_name].names()]


def find_extra(kind: str, name: str) -> str:
    """Return the extra that installs what a plug-in needs; blank if it needs none, or is absent.

    >>> find_extra("models", "MultiVAE"), find_extra("models", "EASE"), find_extra("prompts", "x")
    ('recbias[torch]', '', '')
    """
    try:
        registry = REGISTRIES.get(normalize_name(kind))
        return _describe_extras(registry.load(name)) if registry else ""
    except PluginError:
        return ""


def describe(name: str, width: int = WIDTH) -> str:
    """Describe the plug-ins and everything packaged that have a name.

    Args:
        name: The name, without regard to case, ``-`` and ``_``.
        width: The maximum line width, except for formulas.

    Raises:
        UnknownName: Nothing has the name.
    """
    template_sets = _load_template_sets()
    texts = [_render_page(read_page(kind, plugin), width) for kind, plugin in _find(name)]
    texts += [
        _describe_template_set(set_name, templates, width)
        for set_name, templates in template_sets.items()
        if normalize_name(set_name) == normalize_name(name)
    ]
    listings = {kind: load_packaged(kind) for kind in LISTINGS.table}
    texts += [
        _describe_packaged(kind, entry, width)
        for kind, entries in listings.items()
        for entry_name, entry in entries.items()
        if normalize_name(entry_name) == normalize_name(name)
    ]
    texts += [] if is_file(name) else describe_packaged(name, width)
    if not texts:
        names = [plugin for registry in REGISTRIES.values() for plugin in registry.names()]
        listed = [entry_name for entries in listings.values() for entry_name in entries]
        remedy = suggest(name, [*names, *template_sets, *listed, *list_specs(), *list_published()])
        if mentions := _list_mentions(name):
            remedy = f"these metrics have the word in their description: {', '.join(mentions)}"
        raise UnknownName(f"nothing is called {name!r}", remedy=remedy)
    return "\n\n\n".join(texts)


def _list_mentions(word: str) -> list[str]:
    """Return the metrics whose documentation has a word: self_information for ``novelty``."""
    metrics = REGISTRIES["metrics"]
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return [name for name in metrics.names() if pattern.search(read_docstring(metrics.load(name)))]


def _find(name: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the registered name of each plug-in with a name."""
    if is_file(name):
        from recbias.runner.checks import find_kinds, validate_class

        cls = REGISTRIES["metrics"].load(name)
        kinds = find_kinds(cls)
        if not kinds:
            remedy = "recbias new metric MyMetric writes a class with the methods of a metric"
            raise UnknownName(f"{name} has the methods of no kind of plug-in", remedy=remedy)
        validate_class(cls, name, kinds[0])
        yield kinds[0], name
        return
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


def load_packaged(kind: str) -> Mapping[str, Any]:
    """Return the packaged prompts, mitigations or terms by name."""
    return LISTINGS.load(kind)()  # type: ignore[no-any-return]  # a function of the listing


def _describe_packaged(kind: str, entry: Any, width: int) -> str:
    content = textwrap.indent(entry.content, "    ")
    heading = f"{entry.name} ({kind if kind == 'terms' else kind.removesuffix('s')})"
    source = indent(f"Source: {entry.source}", "", width)
    return "\n\n".join([heading, indent(entry.about, "", width), content, source])


def _load_template_sets() -> Mapping[str, Any]:
    """Return the packaged sets of templates by name."""
    source: Any = REGISTRIES["queries"].load("templates")
    return source.packaged()  # type: ignore[no-any-return]


def render_prompts_csv(name: str) -> str:
    """Render every prompt of a set as CSV: ``query_id``, ``text`` and its labels.

    Args:
        name: A packaged set, or a template file.

    Raises:
        UnknownName: The name is neither of the two.
        UserError: The file is not a template file.
    """
    packaged = list(_load_template_sets())
    if name not in packaged and not has_file(Path(name)):
        message = f"{name!r} is neither {', '.join(packaged)} nor a template file"
        raise UnknownName(message, remedy=suggest(name, packaged))
    source: Any = REGISTRIES["queries"].load("templates")
    queries = source(templates=name if name in packaged else Path(name)).ask(None, None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = {name: column.tolist() for name, column in queries.labels.frame.items()}
    writer.writerow(["query_id", "text", *labels])
    writer.writerows(zip(queries.ids.ids, queries.texts, *labels.values(), strict=True))
    return text.getvalue()


def _describe_template_set(name: str, templates: Any, width: int) -> str:
    """Describe a set of templates: its kinds, slots, words, labels and example sentences."""
    total = sum(len(kind) for kind in templates.kinds)
    sections = [f"{name} (templates)", indent(f"{templates.about} {total:,} prompts.", "", width)]
    for kind in templates.kinds:
        title = f"{kind.name}: {len(kind.sentences)} sentences, {len(kind):,} prompts"
        lines = [indent(line, "    ", width) for line in _describe_kind(kind)]
        sections.append("\n".join([title, *lines]))
    sections.append(indent(f"Source: {templates.source}", "", width))
    return "\n\n".join(sections)


def _describe_kind(kind: Any) -> Iterator[str]:
    for slot, word_list in kind.words.items():
        yield f"[{slot}]: {len(word_list.words)} words ({', '.join(word_list.words[:6])}, ...)"
    for column, (slot, label) in kind.labels.items():
        counts = Counter(value for value in kind.words[slot].labels[label] if value)
        yield f"{column}: {', '.join(f'{value} ({count})' for value, count in counts.items())}"
    examples = (kind.sentences[0], kind.sentences[len(kind.sentences) // 2], kind.sentences[-1])
    yield from (f'"{sentence}"' for sentence in dict.fromkeys(examples))


def indent(text: str, margin: str, width: int) -> str:
    """Wrap a text with a margin; its further lines are indented by four more characters."""
    return textwrap.fill(text, width, initial_indent=margin, subsequent_indent=margin + "    ")


def describe_kinds(kinds: Sequence[str]) -> dict[str, Any]:
    """Return the entries of each kind: name, summary, and the extra that installs its packages.

    A published table has the specs that are compared with it, or the reason why none is, too.
    """
    return {
        kind: [
            {
                "name": name,
                "summary": summary,
                "extra": find_extra(kind, name) or None,
                **(_list_specs_of(name) if kind == "references" else {}),
            }
            for name, summary in list_entries(kind)
        ]
        for kind in kinds
    }


def _list_specs_of(name: str) -> dict[str, Any]:
    table = read_source(name)
    return {"specs": [*table.specs], "reason": table.reason or None}
