"""``recbias list``, ``show``, ``init``, ``new`` and ``schema``: what there is, and beginnings.

The pages of docs/plugins have the content of ``show``.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from recbias.cli.output import Answer, Part, command
from recbias.config.settings import Parameter, list_parameters
from recbias.config.source import list_spec_files, list_specs, resolve_spec, summarize_spec
from recbias.core.docstrings import (
    EXAMPLE,
    read_docstring,
    read_section,
    read_summary,
    split_sections,
)
from recbias.core.errors import Contradiction, OutOfRange, PluginError, UnknownName, Unwritable
from recbias.core.files import has_file
from recbias.core.packages import find_extras, list_libraries
from recbias.core.registry import is_file
from recbias.core.text import normalize_name, suggest
from recbias.registry import LISTINGS, REGISTRIES
from recbias.reports.published import list_published, load_published, read_source, resolve_name
from recbias.reports.views import DIRECTION_LABELS
from recbias.reports.wording import Cell, pick, tabulate

_WIDTH = 99
"""The maximum line width of ``recbias show``."""

# ---- the commands ----


@command
def list_(
    kind: Annotated[str | None, typer.Argument()] = None,
) -> Answer:
    """List everything of a KIND; without one, the kinds.

    Args:
        kind: datasets, filters, splits, queries, models, detectors, metrics, tests, templates,
            prompts, mitigations, terms, references or specs
    """
    chosen = KINDS if kind is None else (_find_kind(kind),)
    document = {
        name: [*map(partial(_describe_entry, name), list_entries(name))] for name in chosen
    }
    if kind is None:
        counts = {"kind": lambda row: row[0], "entries": lambda row: Cell(str(len(row[1])), 0)}
        grid = tabulate("", document.items(), counts)
        return Answer({"kinds": document}, [grid, "next: recbias list KIND"])
    ((name, entries),) = document.items()
    columns = pick("name") | {"description": lambda row: row["summary"]}
    if name == "references":
        columns["spec, or why there is none"] = lambda row: (
            ", ".join(row["specs"]) or row["reason"]
        )
    else:
        columns["extra"] = lambda row: row["extra"] or ""
    notes = ["Extra: in the clone, pip install '.[EXTRA]'."] * any(row["extra"] for row in entries)
    return Answer({"kinds": document}, [tabulate("", entries, columns, notes).without_blanks()])


def _describe_entry(kind: str, entry: tuple[str, str]) -> dict[str, Any]:
    """Return an entry: name, summary, and the extra that installs its packages.

    A published table has the specs that are compared with it, or the reason why none is, too.
    """
    name, summary = entry
    described: dict[str, Any] = {"name": name, "summary": summary, "extra": None}
    if kind in REGISTRIES:
        try:
            described["extra"] = _name_extras(REGISTRIES[kind].load(name)) or None
        except PluginError:
            return described
    if kind == "references":
        table = read_source(name)
        described |= {"specs": [*table.specs], "reason": table.reason or None}
    return described


@command
def show(
    name: str,
    prompts: bool = False,
) -> Iterator[Part]:
    """Show a plug-in, a prompt, a spec or a published table.

    Args:
        name: A plug-in, template set, prompt, mitigation, list of terms, packaged spec or
            reference.
        prompts: Print the prompts of a set of templates as CSV.
    """
    if not prompts:
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
        yield describe(name, min(width, _WIDTH))
    elif sys.stdout.isatty():
        yield _render_prompts(name).removesuffix("\n")
    else:  # for other programs, unchanged
        sys.stdout.write(_render_prompts(name))


# ---- files to begin with ----


@command
def init(
    name: Annotated[str | None, typer.Argument()] = None,
) -> Iterator[Part]:
    """Write a packaged spec and its tables into this folder, or list all.

    A file that exists is never overwritten.

    Args:
        name: quickstart, audit, prompts, logs, probe, papers/...
    """
    from recbias.runner.store import report_unwritable

    if name is None:
        columns = {"name": lambda row: row[0], "description": lambda row: summarize_spec(row[1])}
        yield tabulate("", list_specs().items(), columns)
        yield "next: recbias init NAME"
        return
    spec = resolve_spec(name.removesuffix(".yaml"))
    files = list_spec_files(spec)
    with report_unwritable(Path()):
        missing = [target for target in files if not target.exists()]
        for target in files.keys() - {*missing}:
            if not target.is_file() or target.read_bytes() != files[target].read_bytes():
                remedy = "move it away, or run recbias init in another folder"
                raise Unwritable("exists, with other content", where=str(target), remedy=remedy)
        for target in missing:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                stream.write(files[target].read_bytes())
    for target in files:
        yield f"wrote {target}" if target in missing else f"unchanged {target}: it was here"
    yield f"next: recbias {'probe' if spec == 'probe' else 'run'} {spec}"


_NEW_PLUGINS = Path(__file__).parent / "new_plugins"
"""The folder of the texts that ``recbias new`` starts from."""

_NEW_KINDS = ("metric", "model", "detector", "dataset")


@command
def new(
    kind: str,
    name: str,
) -> Iterator[str]:
    """Write a plug-in of one's own with its test into this folder.

    Args:
        kind: metric, model, detector or dataset.
        name: The name of the class, as in MyMetric.
    """
    from recbias.runner.store import report_unwritable

    if kind not in _NEW_KINDS:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, _NEW_KINDS))
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        remedy = "write it like MyMetric: a capital, then letters and digits"
        raise OutOfRange(f"{name!r} cannot be the name of a class", remedy=remedy)
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if module in sys.stdlib_module_names:
        remedy = f"choose another name, such as My{name}"
        raise OutOfRange(f"{module}.py would hide a module of Python", remedy=remedy)
    sources = {f"{module}.py": f"{kind}.py.txt", f"test_{module}.py": f"{kind}_test.py.txt"}
    for file in sources:
        if Path(file).exists():
            remedy = "choose another name, or move the file away"
            raise Contradiction(f"{file} exists already", remedy=remedy)
    with report_unwritable(Path()):
        for file, source in sources.items():
            text = (_NEW_PLUGINS / source).read_text(encoding="utf-8")
            Path(file).write_text(text.format(Name=name, module=module), encoding="utf-8")
    yield f"wrote {module}.py and test_{module}.py"
    yield f"test it with python -m unittest test_{module}.py"
    yield f"name it in a spec as ./{module}.py:{name}"


@command
def schema() -> Iterator[str]:
    """Print the JSON Schema of experiment files, for editors."""
    from recbias.config.schema import build_json_schema

    yield json.dumps(build_json_schema(REGISTRIES), indent=1)


# ---- entries by kind ----


@dataclass(frozen=True)
class _Kind:
    """How the entries of a kind are listed and shown; ``resolve`` finds the one of a spelling."""

    list_names: Callable[[], Iterable[str]]
    summarize: Callable[[str], str]
    describe: Callable[[str, int], str]
    resolve: Callable[[str], str] | None = None

    def find(self, name: str) -> Iterator[str]:
        """Yield the entries with a name."""
        if self.resolve is None:
            found = [
                each for each in self.list_names() if normalize_name(each) == normalize_name(name)
            ]
            yield from found
            return
        try:
            yield self.resolve(name)
        except UnknownName:
            return


def _make_plugins(kind: str) -> _Kind:
    registry = REGISTRIES[kind]

    def describe(name: str, width: int) -> str:
        return _render_page(read_page(kind, name), width)

    return _Kind(registry.names, partial(_summarize, kind), describe, registry.resolve_name)


def _summarize(kind: str, name: str) -> str:
    try:
        return read_summary(REGISTRIES[kind].load(name))
    except PluginError as error:
        return f"({error.message}; {error.remedy})"


@cache
def _load_listing(kind: str) -> Mapping[str, Any]:
    """Return the packaged prompts, mitigations, terms or sets of templates by name."""
    if kind == "templates":
        source: Any = REGISTRIES["queries"].load("templates")
        return source.packaged()  # type: ignore[no-any-return]
    return LISTINGS.load(kind)()  # type: ignore[no-any-return]  # a function of the listing


def _make_listing(kind: str) -> _Kind:
    def summarize(name: str) -> str:
        entry = _load_listing(kind)[name]
        return f"{entry.about} ({entry.source})"

    def describe(name: str, width: int) -> str:
        entry = _load_listing(kind)[name]
        heading = f"{entry.name} ({kind if kind == 'terms' else kind.removesuffix('s')})"
        about, source = (
            _indent(text, "", width) for text in (entry.about, f"Source: {entry.source}")
        )
        return "\n\n".join([heading, about, textwrap.indent(entry.content, "    "), source])

    return _Kind(partial(_load_listing, kind), summarize, describe)


def _describe_templates(name: str, width: int) -> str:
    """Describe a set of templates: its kinds, slots, words, labels and example sentences."""
    templates = _load_listing("templates")[name]
    total = sum(len(kind) for kind in templates.kinds)
    sections = [f"{name} (templates)", _indent(f"{templates.about} {total:,} prompts.", "", width)]
    for kind in templates.kinds:
        title = f"{kind.name}: {len(kind.sentences)} sentences, {len(kind):,} prompts"
        lines = [_indent(line, "    ", width) for line in _describe_template_kind(kind)]
        sections.append("\n".join([title, *lines]))
    sections.append(_indent(f"Source: {templates.source}", "", width))
    return "\n\n".join(sections)


def _describe_template_kind(kind: Any) -> Iterator[str]:
    for slot, word_list in kind.words.items():
        yield f"[{slot}]: {len(word_list.words)} words ({', '.join(word_list.words[:6])}, ...)"
    for column, (slot, label) in kind.labels.items():
        counts = Counter(value for value in kind.words[slot].labels[label] if value)
        yield f"{column}: {', '.join(f'{value} ({count})' for value, count in counts.items())}"
    examples = (kind.sentences[0], kind.sentences[len(kind.sentences) // 2], kind.sentences[-1])
    yield from (f'"{sentence}"' for sentence in dict.fromkeys(examples))


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
    rows = [line.rstrip() for line in textwrap.indent(table, "    ").splitlines()]
    text = "\n\n".join(_indent(line, "", width) for line in lines)
    return "\n\n".join([f"{name} (reference)", text, "\n".join(rows)])


_ENTRIES: Mapping[str, _Kind] = {
    **{kind: _make_plugins(kind) for kind in REGISTRIES},
    "templates": _Kind(
        partial(_load_listing, "templates"),
        lambda name: str(_load_listing("templates")[name].about),
        _describe_templates,
    ),
    **{kind: _make_listing(kind) for kind in LISTINGS.table},
    "specs": _Kind(
        list_specs, lambda name: summarize_spec(list_specs()[name]), _describe_spec, resolve_spec
    ),
    "references": _Kind(
        list_published, lambda name: read_source(name).title, _describe_table, resolve_name
    ),
}
KINDS = (
    *("datasets", "filters", "splits", "queries", "models", "detectors", "metrics", "tests"),
    *("templates", "prompts", "mitigations", "terms", "references", "specs"),
)
"""The kinds that ``recbias list`` accepts; re-rankers are among the mitigations."""


def _find_kind(kind: str) -> str:
    """Return the name of a kind, without regard to case; UnknownName if there is none."""
    name = {normalize_name(name): name for name in KINDS}.get(normalize_name(kind))
    if name is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, KINDS))
    return name


def list_entries(kind: str) -> list[tuple[str, str]]:
    """Return the name and the first sentence of everything of a kind; UnknownName if none is."""
    name = _find_kind(kind)
    kinds = ["rerankers", name] if name == "mitigations" else [name]
    return [
        (entry, _ENTRIES[each].summarize(entry))
        for each in kinds
        for entry in _ENTRIES[each].list_names()
    ]


def describe(name: str, width: int = _WIDTH) -> str:
    """Describe the plug-ins and everything packaged that have a name.

    Args:
        name: The name, without regard to case, ``-`` and ``_``.
        width: The maximum line width, except for formulas.

    Raises:
        UnknownName: Nothing has the name.
    """
    if is_file(name):
        return _render_page(read_page(_find_kind_of_file(name), name), width)
    texts = [
        kind.describe(found, width) for kind in _ENTRIES.values() for found in kind.find(name)
    ]
    if not texts:
        names = [entry for kind in _ENTRIES.values() for entry in kind.list_names()]
        remedy = REGISTRIES["metrics"].describe_mentions(name) or suggest(name, names)
        raise UnknownName(f"nothing is called {name!r}", remedy=remedy)
    return "\n\n\n".join(texts)


def _find_kind_of_file(name: str) -> str:
    from recbias.runner.checks import find_kinds, validate_class

    cls = REGISTRIES["metrics"].load(name)
    kinds = find_kinds(cls)
    if not kinds:
        remedy = "recbias new metric MyMetric writes a class with the methods of a metric"
        raise UnknownName(f"{name} has the methods of no kind of plug-in", remedy=remedy)
    validate_class(cls, name, kinds[0])
    return kinds[0]


def _render_prompts(name: str) -> str:
    """Return every prompt of a packaged set, or of a template file, as CSV."""
    packaged = [*_load_listing("templates")]
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


# ---- the page of a plug-in ----


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
        facts={title: text for title, text in _list_facts(cls) if text},
        errors=sections.get("Raises", ""),
        example=sections.get(EXAMPLE, ""),
        source=sections.get("Source", ""),
    )


def _list_facts(cls: type) -> Iterator[tuple[str, str]]:
    labels: dict[str, str] = {str(key): text for key, text in DIRECTION_LABELS.items()}
    yield "Direction", labels.get(str(getattr(cls, "direction", "")), "")
    yield "Range", read_section(cls, "Range")
    for title, name in {"Needs": "needs", "Provides": "provides"}.items():
        value = getattr(cls, name, None)
        if isinstance(value, (frozenset, str)):
            yield title, value if isinstance(value, str) else ", ".join(sorted(value))
    if extras := _name_extras(cls):
        yield "Extra", f"{extras}; in the clone: pip install '.[{extras}]'"


def _name_extras(cls: type) -> str:
    """Return the extras of recbias that install what a plug-in needs: ``torch,tune``."""
    return ",".join(find_extras(list_libraries(cls)))


def _render_page(page: Page, width: int) -> str:
    sections = [f"{page.name} ({page.kind})", _reflow(page.body, width)]
    if page.parameters:
        rows = [line for row in page.parameters for line in _render_parameter(row, width)]
        sections.append("\n".join(["Parameters:", *rows]))
    if page.facts:
        facts = [_indent(f"{name}: {text}", "", width) for name, text in page.facts.items()]
        sections.append("\n".join(facts))
    if page.errors:
        errors = [f"{name}: {text}" for name, text in split_entries(page.errors)]
        sections.append(
            "\n".join(["Errors:", *(_indent(error, "    ", width) for error in errors)])
        )
    if page.source:
        sections.append(_indent(f"Source: {page.source}", "", width))
    return "\n\n".join(sections)


def _render_parameter(row: Parameter, width: int) -> Iterator[str]:
    limits = f", {row.range}" if row.range else ""
    default = "required" if row.needed else f"{row.default or '(empty)'} by default"
    yield _indent(f"{row.name}: {row.type}{limits}; {default}", "    ", width)
    if row.doc:
        doc, margin = row.doc.replace("``", "`"), " " * 8
        yield textwrap.fill(doc, width, initial_indent=margin, subsequent_indent=margin)


def _indent(text: str, margin: str, width: int) -> str:
    """Wrap a text with a margin; its further lines are indented by four more characters."""
    text = " ".join(text.split()).replace("``", "`")
    return textwrap.fill(text, width, initial_indent=margin, subsequent_indent=margin + "    ")


def _reflow(text: str, width: int) -> str:
    r"""Wrap text to a width; formulas, which are indented by four, are not wrapped.

    >>> print(_reflow("One two\nthree ``four``.\n\n    a = b\n\n- **five**\n  six", 12))
    One two
    three
    `four`.
    <BLANKLINE>
        a = b
    <BLANKLINE>
    - five six
    """
    return "\n\n".join(_reflow_block(block, width) for block in split_blocks(text))


def _reflow_block(text: str, width: int) -> str:
    if text.startswith("    "):
        return text
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("``", "`")
    if not text.startswith("- "):
        return textwrap.fill(" ".join(text.split()), width, break_long_words=False)
    items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", text)]
    return "\n".join(textwrap.fill(item, width, subsequent_indent="  ") for item in items)


def split_blocks(text: str) -> list[str]:
    """Split a text at blank lines into paragraphs, formulas and lists."""
    return re.split(r"\n(?:[ ]*\n)+", text)


def split_entries(text: str) -> list[tuple[str, str]]:
    r"""Split a section into its ``name: text`` entries, each on one line.

    >>> split_entries("MissingFile: The file\n    is missing.\nLeakage: A pair twice.")
    [('MissingFile', 'The file is missing.'), ('Leakage', 'A pair twice.')]
    """
    lines = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", text) if entry.strip()]
    entries = [line.partition(":") for line in lines]
    return [(name, description.strip()) for name, _, description in entries]
