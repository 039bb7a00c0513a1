"""The content of a report, from what it was made, and its rendering in each format.

The templates beside this module hold the text of pages. A page loads nothing from elsewhere;
undefined values are null in JSON.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pandas as pd

from recbias.core.files import has_file
from recbias.core.measures import Direction
from recbias.formats.manifest import Manifest
from recbias.reports import svg, tables, views, wording
from recbias.reports.conclusions import collect_conclusions, split_conclusions
from recbias.reports.examples import collect_examples
from recbias.reports.gallery import Figure, draw_first_picture, draw_gallery, draw_narrow_groups
from recbias.reports.published import build_reference_table
from recbias.reports.run import RunTables, read_trials, to_records
from recbias.reports.svg import Plot
from recbias.reports.verdict import build_verdict
from recbias.reports.wording import Cell, Safe, Table, format_count, format_setting, to_line

if TYPE_CHECKING:
    from jinja2 import Environment

# ---- facts ----

_BEFORE = "interactions_before_"


class Fact(NamedTuple):
    """A fact about a run, and what it is about."""

    name: str
    text: str


def describe_data(run: RunTables) -> list[Fact]:
    """Return the data and settings of the run: datasets, queries, split, k and seeds."""
    manifest, spec = run.manifest, run.spec
    datasets, queries = manifest.get("datasets", []), manifest.get("queries", [])
    facts = [fact for dataset in datasets for fact in _describe_dataset(dataset)]
    for asked in queries:
        of = f" of {asked['dataset']}" * (len(queries) > 1)
        facts.append(Fact("Queries", _describe_queries(asked, datasets, of)))
    seeds, limit = manifest.get("seeds") or [], manifest.get("limit")
    return facts + _list_facts(
        {
            "Smoke test": limit and f"the first {format_count(limit, 'query')} only (--limit)",
            "Split": format_setting(spec.get("split") or ""),
            "List length k": spec.get("k"),
            "Seeds" if len(seeds) > 1 else "Seed": ", ".join(map(str, seeds)),
        }
    )


def _list_facts(texts: Mapping[str, object]) -> list[Fact]:
    return [Fact(name, str(text)) for name, text in texts.items() if text]


def _describe_dataset(dataset: Mapping[str, Any]) -> list[Fact]:
    """Return the size of a dataset and its filters."""
    label, counts = str(dataset.get("label")), dataset.get("counts", {})
    sizes = ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in counts.items()
        if number and not name.startswith((_BEFORE, "_"))
    )
    before = [number for name, number in counts.items() if name.startswith(_BEFORE)]
    filters = [
        {"name": each["name"], **(each["parameters"] or {})} for each in dataset.get("filters", [])
    ]
    return _list_facts(
        {
            "Dataset": f"{label}: {sizes}" if sizes else label,
            "Before filtering": before and f"{before[0]:,} interactions",
            "Filters": format_setting(filters),
        }
    )


def _describe_queries(
    asked: Mapping[str, Any], datasets: Sequence[Mapping[str, Any]], of: str
) -> str:
    """Return the number of queries, the total and the conditions."""
    number, unit = asked["asked"], asked["unit"]
    conditions = {k: v for k, v in (asked.get("parameters") or {}).items() if v}
    folds, path = conditions.pop("folds", 1), conditions.pop("path", None)
    if conditions.get("clean") == {"trim": False, "case": "keep"}:
        del conditions["clean"]
    conditions = ({"from": path} if path else {}) | conditions
    counts = [each.get("counts", {}) for each in datasets if each["label"] == asked["dataset"]]
    total = counts[0].get(f"{unit}s", 0) if counts else 0
    samples = f"{folds} disjoint samples of " if folds != 1 else ""
    text = f"{samples}{format_count(number, unit)}" + f" (of {total:,})" * (total > number)
    return f"{text}{of}" + f" ({format_setting(conditions)})" * bool(conditions)


def count_asked(run: RunTables) -> str:
    """Return how many users, prompts or sentences are asked: ``600 users``; blank if unknown."""
    counts: dict[str, int] = {}
    for queries in run.manifest.get("queries", []):
        asked = queries["asked"] * (queries.get("parameters") or {}).get("folds", 1)
        counts[queries["unit"]] = max(counts.get(queries["unit"], 0), asked)
    return ", ".join(format_count(n, unit) for unit, n in counts.items() if n)


def describe_execution(run: RunTables) -> list[Fact]:
    """Return how the run was executed: version, time, memory and platform."""
    manifest = run.manifest
    seconds, memory = manifest.get("seconds"), manifest.get("peak_memory_mb")
    names = ("spec_digest", "commit", "python", "platform")
    return _list_facts(
        {
            "recbias": manifest.get("recbias"),
            "Started": manifest.get("started"),
            "Duration": "" if seconds is None else wording.format_duration(seconds),
            "Peak memory": "" if memory is None else f"{memory:,.0f} MB",
            "Devices": _describe_devices(manifest),
            **{name.replace("_", " ").capitalize(): manifest.get(name) for name in names},
        }
    )


def _describe_devices(manifest: Mapping[str, Any]) -> str:
    """Return each device and precision with the models that compute so; one alone without them.

    >>> models = [{"label": "BPR-MF", "device": "cuda", "precision": "float32"}]
    >>> _describe_devices({"models": models, "gpus": {"cuda": "NVIDIA H200"}})
    'cuda (NVIDIA H200), float32'
    """
    labels: dict[str, list[str]] = {}
    gpus = manifest.get("gpus") or {}
    for model in [model for model in manifest.get("models", []) if "device" in model]:
        device = model.get("device") or ""
        name = f"{device} ({gpus[device]})" if device in gpus else device
        text = ", ".join(filter(None, [name, model.get("precision")]))
        labels.setdefault(text or "not known", []).append(str(model.get("label")))
    if len(labels) == 1:
        return next(iter(labels))
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in labels.items())


# ---- content ----

T = TypeVar("T")


def _build_by(build: Callable[[RunTables], T]) -> cached_property[T]:
    """Return a property that is built from the run at its first use."""
    return cached_property(lambda content: build(content.run))


@dataclass(frozen=True, eq=False)
class Content:
    """A run and the content of its reports: tables, facts, sentences and plots.

    Args:
        run: The run.
        reference: The comparison with published tables, or None.
        remarks: Reasons why published and measured values differ, and what is not compared, for
            each published table.
    """

    run: RunTables
    reference: pd.DataFrame | None = None
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    failures = _build_by(wording.list_failures)
    warnings = _build_by(wording.list_warnings)
    conclusions = _build_by(split_conclusions)
    verdict = _build_by(build_verdict)
    data = _build_by(describe_data)
    execution = _build_by(describe_execution)
    definitions = _build_by(views.group_definitions)
    checks = _build_by(tables.build_check_table)
    summary = _build_by(tables.build_summary)
    tradeoffs = _build_by(tables.build_tradeoff_table)
    group_tables = _build_by(tables.build_group_tables)
    fold_table = _build_by(tables.build_fold_table)
    agreement_tables = _build_by(tables.build_agreement_tables)
    replies = _build_by(tables.build_reply_tables)
    pairs = _build_by(tables.tabulate_comparisons)
    models = _build_by(tables.build_models_table)
    gallery = _build_by(draw_gallery)
    narrow_groups = _build_by(draw_narrow_groups)
    families = _build_by(views.collect_comparisons)
    searches = _build_by(tables.tabulate_searches)

    @cached_property
    def published(self) -> dict[str, Table]:
        """The comparison with each published table, by the name of that table."""
        if self.reference is None:
            return {}
        rows = self.reference
        return {
            name: build_reference_table(name, rows[rows["table"] == name], texts)
            for name, texts in self.remarks.items()
        }

    def _draw_first_picture(self) -> Plot | None:
        subject = self.verdict.subject
        return draw_first_picture(self.run, subject, name="answer", reference=self.reference)

    @cached_property
    def first_picture(self) -> Plot | None:
        """The chart that answers what the verdict is about."""
        return self._draw_first_picture()

    @cached_property
    def narrow_picture(self) -> Plot | None:
        """The same chart for the screen of a phone."""
        with svg.narrow():
            return self._draw_first_picture()

    @cached_property
    def examples(self) -> tuple[str, list[list[dict[str, Any]]]]:
        """What the examples are the worst of, and the examples."""
        settings = self.run.spec.get("report") or {}
        return collect_examples(self.run) if settings.get("examples", True) else ("", [])

    @property
    def tables(self) -> list[Table]:
        """All tables of results in order."""
        found = [
            *([self.summary] if self.summary.rows else []),
            *(self.tradeoffs, self.checks, *self.group_tables, *self.published.values()),
            *(*self.agreement_tables, self.fold_table, self.searches),
        ]
        return [table for table in found if table is not None]

    @property
    def result_tables(self) -> list[Table]:
        """The tables of results without those that have a section of their own."""
        elsewhere = [*self.group_tables, self.checks, self.fold_table, self.searches]
        return [table for table in self.tables if not any(table is each for each in elsewhere)]

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The plots of the results."""
        return self.gallery.plots

    def list_figures(self) -> Iterator[Figure]:
        """Yield the figures of a run: the first picture of its page, then the others."""
        first = [self.first_picture] if self.first_picture else []
        for plot in (*first, *self.plots):
            yield Figure(plot.name, plot.title, plot.caption, str(plot.document()))

    @cached_property
    def methods(self) -> list[str]:
        """The tests and corrections, each with the significant comparisons of its metrics."""
        several = len({family.place[0] for family in self.families}) > 1
        outcomes: dict[str, list[str]] = {}
        for family in self.families:
            name = f"{family.heading}, {family.place[0]}" if several else family.heading
            found = f"{family.significant:,} of {family.n_tested:,}"
            outcome = f"{name} {found if family.n_tested else 'undefined'}"
            method = f"Between {family.between}: {views.describe_methods([family])}"
            outcomes.setdefault(method, []).append(outcome)
        return [f"{method}. Significant: {'; '.join(each)}." for method, each in outcomes.items()]

    @property
    def counts(self) -> dict[str, str]:
        """What the sections of a page hold, in a few words."""
        n_tested = sum(family.n_tested for family in self.families)
        significant = sum(family.significant for family in self.families)
        names, baselines = views.list_models(self.run), views.list_baselines(self.run)
        n_baselines = len(baselines & {*names})
        models = format_count(len(names) - n_baselines, "model")
        models += f" and {format_count(n_baselines, 'baseline')}" * bool(n_baselines)
        metrics = format_count(len(views.collect_definitions(self.run)), "metric")
        comparisons = format_count(n_tested, "comparison")
        return {
            "results": f"{models}, {metrics}{self.summary.title.removeprefix('Results')}",
            "significance": f"{significant:,} of {comparisons} significant",
        }

    @property
    def byline(self) -> str:
        """When the run started, how long it took, and how many users or prompts it asked."""
        facts = dict(self.execution)
        parts = [
            facts.get("Started", "")[:16].replace("T", " "),
            f"took {facts['Duration']}" if "Duration" in facts else "",
            count_asked(self.run),
            f"recbias {facts['recbias']}" if "recbias" in facts else "",
        ]
        return " · ".join(filter(None, parts))


# ---- pages ----

_LONG_TABLE = 12  # a table with more rows than this scrolls within its box, except the summary
_LONGEST_PAIRS = 1000  # the number of comparisons on the page, those with the largest effects
_MOST_ROWS = 60  # of the comparisons in Markdown

# the files that a page links to
_FILES = ("metrics.csv", "significance.csv", "spec.yaml", "manifest.json", "per_unit.parquet")

_MARKS = {"pass": "✓", "fail": "✗", "undecided": "?", "none": ""}
_URL = "https://github.com/recbias/recbias"


def render_html(content: Content) -> str:
    """Return the page."""
    manifest, script = content.run.manifest, read_resource("page.js")
    spec = str(wording.strip_folders(content.run.spec_text))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "report.html.jinja",
        content=content,
        manifest=Manifest.model_validate(manifest),
        group_plots=[plot for plot in content.plots if plot.name.startswith("groups-")],
        other_plots=[plot for plot in content.plots if not plot.name.startswith("groups-")],
        title=to_line(manifest.get("name", "Report")),
        marks=_MARKS,
        long=_LONG_TABLE,
        longest=_LONGEST_PAIRS,
        script_digest=Safe(digest),
        url=_URL,
        files_beside=[name for name in _FILES if has_file(content.run.folder / name)],
        style=Safe(read_resource("page.css")),
        plot_style=Safe(read_resource("plot.css")),
        script=Safe(script),
        spec_text=spec,
        spec_download=_make_download("YAML", "Spec", "spec.yaml", spec),
    )


def render_markdown(content: Content) -> str:
    """Return the report; its plots are files in ``figures/``."""
    title = content.run.manifest.get("name", "Report")
    text = render("report.md.jinja", content=content, title=title, longest=_MOST_ROWS)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


@dataclass(frozen=True, eq=False)
class Section:
    """A table under a title, below a sentence and a plot if there are any."""

    title: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    note: str = ""
    plot: Plot | None = None

    @property
    def grid(self) -> Table:
        """The table as it is shown."""
        return wording.tabulate_frame(self.title, self.table).without_blanks()


def write_sections(
    folder: Path, sentences: Sequence[str], notes: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write ``report.html``, ``report.md`` and the plots into a folder, which is made.

    Args:
        folder: The folder.
        sentences: What the report says; the first one is its title.
        notes: What was left out.
        sections: The sections; those without a row and a plot are left out.
    """
    shown = [each for each in sections if len(each.table) or each.plot]
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for plot in (each.plot for each in shown if each.plot):
        path = folder / "figures" / f"{plot.name}.svg"
        path.write_text(plot.document(), encoding="utf-8")
    for kind in ("md", "html"):
        text = render(
            f"sections.{kind}.jinja",
            answer=sentences[0],
            sentences=sentences[1:],
            notes=notes,
            sections=shown,
            style=Safe(read_resource("page.css")),
            plot_style=Safe(read_resource("plot.css")),
        )
        (folder / f"report.{kind}").write_text(text, encoding="utf-8")


# ---- templates ----

_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$#!])")
_HYPHEN = re.compile(r"(?<![^\s([])-(?=\d)")


def render(name: str, **context: object) -> str:
    """Render a template of this package.

    Text from the context is put on one line and escaped, unless a filter says otherwise.
    """
    return _load_environment(name.split(".")[1]).get_template(name).render(context)


@cache
def _load_environment(kind: str) -> Environment:
    """Return the environment of the templates of a format: ``html``, ``md`` or ``tex``."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    escape = {"html": to_line, "md": escape_markdown, "tex": escape_latex}[kind]
    brackets: dict[str, Any] = {}
    if kind == "tex":  # braces are its own
        brackets = {"block_start_string": "<%", "block_end_string": "%>"}
        brackets |= {"variable_start_string": "<<", "variable_end_string": ">>"}
    environment = Environment(
        loader=FunctionLoader(read_resource),
        autoescape=True,
        finalize=lambda value: escape(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
        **brackets,
    )
    environment.globals |= {
        "direction_labels": views.DIRECTION_LABELS,
        "sort_first": {"higher": "descending", "lower": "ascending"},
    }
    environment.filters |= {
        "dict": dict,
        "downloads": _list_downloads,
        "block": wording.escape,
        "code": _indent_code,
        "counted": format_count,
        "label": _name_label,
        "lines": _break_heading,
        "minus": _typeset_minus,
        "number": lambda text: Safe(_MINUS_SIGN.sub("$-$", escape_latex(text))),
        "setting": format_setting,
        "sort_value": _get_sort_value,
        "zip": partial(zip, strict=False),
    }
    return environment


@cache
def read_resource(name: str) -> str:
    """Return a text file that is packaged beside this module."""
    return files("recbias").joinpath("reports", "templates", name).read_text(encoding="utf-8")


def escape_markdown(text: object) -> Safe:
    r"""Return a text on one line, escaped for Markdown and HTML.

    >>> print(escape_markdown("a|b <i>_x_</i>"))
    a\|b &lt;i&gt;\_x\_&lt;/i&gt;
    """
    line = to_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Safe(_MARKDOWN.sub(r"\\\1", line))


def _break_heading(text: str) -> list[str]:
    """Return the lines of a heading, which do not break within short brackets and ``1 of 4``.

    >>> [[*map(to_line, _break_heading(text))] for text in ("under 18 (n 36)", "2 to 15 (1 of 4)")]
    [['under 18', '(n 36)'], ['2 to 15', '(1 of 4)']]
    """
    joined = _UNBROKEN.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    return textwrap.wrap(joined, _MOST_CHARACTERS, break_long_words=False, break_on_hyphens=False)


def _typeset_minus(text: object) -> str:
    """Return a text with minus signs instead of hyphens before numbers.

    >>> _typeset_minus("-0.5 to -0.1, ml-1m")
    '−0.5 to −0.1, ml-1m'
    """
    return _HYPHEN.sub("\N{MINUS SIGN}", to_line(text))


def _indent_code(text: str) -> Safe:
    """Return an indented block, in which Markdown has no markup."""
    return Safe(textwrap.indent(text, "    ", lambda _: True))


def _get_sort_value(value: float, direction: Direction) -> str:
    return f"{abs(value) if direction == 'zero' else value:.7g}"


# ---- LaTeX, CSV and JSON ----

_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        "∞": r"$\infty$",
    }
)
_MINUS_SIGN = re.compile(r"(?<![\w.)-])-(?=\d)")
_MOST_COLUMNS = 8  # with more columns than this a table is split by families of metrics
_MOST_CHARACTERS = 14  # of a line of a heading
_UNBROKEN = re.compile(r"\([^()]{,20}\)|\d+ of \d+")


def escape_latex(text: object) -> Safe:
    r"""Return a text on one line, escaped for LaTeX.

    >>> print(escape_latex("50% of $x_1$ & more"))
    50\% of \$x\_1\$ \& more
    >>> print(escape_latex("[v1]"))  # which would be the length of a break before it
    {[}v1]
    """
    return Safe(re.sub(r"^[\[*]", r"{\g<0>}", to_line(text).translate(_SPECIAL)))


def render_latex(table: Table) -> str:
    r"""Return a table environment, or one for each family of metrics if there are many columns.

    It needs ``\usepackage{booktabs}``.
    """
    return render("table.tex.jinja", tables=[*_split_table(table)])


def _name_label(title: str) -> str:
    """Return the label of a table, without the cutoff that its caption states.

    >>> _name_label("Results (@10): accuracy"), _name_label("nDCG@10 by gender")
    ('results-accuracy', 'ndcg-10-by-gender')
    """
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(@\d+\)", "", title).lower()).strip("-")


def _split_table(table: Table) -> Iterator[Table]:
    """Yield tables of at most ``_MOST_COLUMNS``; the columns of a family stay together."""
    n = table.row_headers
    room = max(_MOST_COLUMNS - n, 1)
    families: dict[str, list[int]] = {}
    for at, column in enumerate(table.columns[n:], start=n):
        families.setdefault(column.family, []).append(at)
    if len(table.columns) - n <= room:
        yield table
        return
    packs: list[tuple[str, list[int]]] = []
    for family, columns in families.items():
        if packs and len(packs[-1][1]) + len(columns) <= room:
            packs[-1] = f"{packs[-1][0]}, {family}", [*packs[-1][1], *columns]
        else:
            for start in range(0, len(columns), room):
                later = f", part {start // room + 1}" if start and family else ""
                packs.append((family + later, columns[start : start + room]))
    for number, (name, columns) in enumerate(packs, start=1):
        part = table.select_columns([*range(n), *columns])
        title = f"{table.title}: {name or f'part {number}'}"
        yield wording.state_cutoff_once(replace(part, title=title))


@dataclass(frozen=True)
class _Download:
    """A link that saves a file; ``label`` names the format, and ``subject`` what it holds."""

    label: str
    subject: str
    name: str
    address: str


def _list_downloads(table: Table) -> list[_Download]:
    """Return a table as CSV and as LaTeX."""
    stem = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:60] or "table"
    return [
        _make_download("CSV", table.title, f"{stem}.csv", render_csv(table)),
        _make_download("LaTeX", table.title, f"{stem}.tex", render_latex(table)),
    ]


def _make_download(label: str, subject: str, name: str, text: str) -> _Download:
    content = base64.b64encode(text.encode("utf-8", errors="backslashreplace")).decode()
    return _Download(label, subject, name, f"data:text/plain;charset=utf-8;base64,{content}")


def render_csv(table: Table) -> str:
    """Return a table as CSV: numbers unrounded, undefined ones as empty cells, marks left out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.title for column in table.columns)
    writer.writerows(map(_write_cell, row) for row in table.rows)
    return stream.getvalue()


def _write_cell(cell: Cell) -> str:
    """Return the value of a cell; an interval, which is sorted by its lower end, stays text."""
    if math.isnan(cell.value) or " to " in cell.text:
        return "" if cell.text == wording.UNDEFINED else cell.text
    return f"{cell.value:.15g}"


_SCHEMA_VERSION = 1
"""Incremented when a field is removed or changes its meaning."""


def render_json(run: RunTables, reference: pd.DataFrame | None = None) -> str:
    """Return the report as JSON, in which undefined values are null."""
    importances = [] if run.importances is None else to_records(run.importances)
    significance = [
        row | {"significant": views.is_significant(row)} for row in to_records(run.significance)
    ]
    manifest = {key: value for key, value in run.manifest.items() if key != "reports"}
    sections = {
        "schema_version": json.dumps(_SCHEMA_VERSION),
        "verdict": render_value(asdict(build_verdict(run))),
        "conclusions": _render_list(map(asdict, collect_conclusions(run))),
        "metrics": _render_list(to_records(run.metrics)),
        "significance": _render_list(significance),
        "trials": _render_list(read_trials(run)),
        "importances": _render_list(importances),
        "reference": "null" if reference is None else _render_list(to_records(reference)),
        "checks": _render_list(run.manifest.get("checks", [])),
        "definitions": _render_list(map(asdict, views.collect_definitions(run).values())),
        "manifest": render_value(manifest),
    }
    lines = ",\n".join(f"{render_value(name)}: {section}" for name, section in sections.items())
    return f"{{\n{lines}\n}}\n"


def _render_list(rows: Iterable[object]) -> str:
    """Return a list with one line per row."""
    lines = ",\n".join(map(render_value, rows))
    return f"[\n{lines}\n]" if lines else "[]"


def render_value(value: object) -> str:
    """Return a value as JSON on one line, in which undefined numbers are null."""
    return json.dumps(replace_undefined(value), ensure_ascii=False, allow_nan=False)


def replace_undefined(value: Any) -> Any:
    """Return a JSON value in which NaN and infinity are None."""
    if isinstance(value, dict):
        return {str(key): replace_undefined(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(replace_undefined, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
