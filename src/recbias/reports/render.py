"""The content of a report, from what it was made, and its rendering as HTML, JSON and Markdown.

The page loads nothing from elsewhere; undefined values are null in JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from recbias.core.files import has_file
from recbias.reports import svg, views, wording
from recbias.reports.conclusions import collect_conclusions, split_conclusions
from recbias.reports.environments import make_download, read_resource, render
from recbias.reports.examples import collect_examples
from recbias.reports.gallery import (
    Figure,
    draw_first_picture,
    draw_gallery,
    draw_narrow_groups,
)
from recbias.reports.group_tables import build_group_tables
from recbias.reports.llm import build_reply_tables, read_trials, tabulate_searches
from recbias.reports.published import build_reference_table
from recbias.reports.run import RunTables, to_records
from recbias.reports.svg import Plot
from recbias.reports.tables import (
    build_agreement_tables,
    build_check_table,
    build_fold_table,
    build_summary,
    tabulate_comparisons,
)
from recbias.reports.verdict import build_verdict
from recbias.reports.wording import Table, format_count, format_setting, tabulate

# ---- facts ----

_BEFORE = "interactions_before_"


class Fact(NamedTuple):
    """A fact about a run, and what it is about."""

    name: str
    text: str


def describe_data(run: RunTables) -> list[Fact]:
    """Return the data and settings of the run: datasets, queries, split, k and seeds."""
    manifest, spec = run.manifest, run.spec
    facts = [fact for dataset in manifest.get("datasets", []) for fact in _describe(dataset, spec)]
    facts += [_describe_queries(queries, run) for queries in manifest.get("queries", [])]
    if limit := manifest.get("limit"):
        queries = format_count(limit, "query")
        facts.append(Fact("Smoke test", f"the first {queries} only (--limit)"))
    if spec.get("split"):
        facts.append(Fact("Split", format_setting(spec["split"])))
    if spec.get("k"):
        facts.append(Fact("List length k", str(spec["k"])))
    if seeds := manifest.get("seeds"):
        facts.append(Fact("Seeds" if len(seeds) > 1 else "Seed", ", ".join(map(str, seeds))))
    return facts


def _describe(dataset: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the size of a dataset and its filters."""
    label, counts = dataset.get("label"), dataset.get("counts") or {}
    sizes = ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in counts.items()
        if number and not name.startswith((_BEFORE, "_"))
    )
    yield Fact("Dataset", f"{label}: {sizes}" if sizes else str(label))
    before = [number for name, number in counts.items() if name.startswith(_BEFORE)]
    if before:
        yield Fact("Before filtering", f"{before[0]:,} interactions")
    if filters := _find_filters(spec, label):
        yield Fact("Filters", format_setting(filters))


def _find_filters(spec: Mapping[str, Any], label: object) -> object:
    value = spec.get("dataset")
    datasets = value if isinstance(value, list) else [value]
    for dataset in datasets:
        if isinstance(dataset, dict) and (len(datasets) == 1 or dataset.get("label") == label):
            return dataset.get("filters")
    return None


def count_asked(run: RunTables) -> str:
    """Return how many users, prompts or sentences are asked: ``600 users``; blank if unknown."""
    counts: dict[str, int] = {}
    for queries in run.manifest.get("queries", []):
        unit = str(queries.get("unit", "query"))
        counts[unit] = max(counts.get(unit, 0), queries.get("asked", 0))
    return ", ".join(format_count(n, unit) for unit, n in counts.items() if n)


def _describe_queries(queries: Mapping[str, Any], run: RunTables) -> Fact:
    """Return the number of queries, the total and the conditions."""
    settings = run.spec.get("queries")
    conditions = dict(settings) if isinstance(settings, dict) else {}
    folds = conditions.pop("folds", 1)
    number, unit = queries.get("asked", 0), queries.get("unit", "query")
    total = _count_queries(run, queries.get("dataset"), unit)
    samples = f"{folds} disjoint samples of " if folds != 1 else ""
    texts = [
        samples + format_count(number, unit),
        f"(of {total:,})" if total > number else "",
        f"of {queries.get('dataset')}" if len(run.manifest["queries"]) > 1 else "",
        format_setting(
            {name: value for name, value in conditions.items() if name != "name" and value}
        ),
    ]
    return Fact("Queries", " ".join(filter(None, texts)))


def _count_queries(run: RunTables, label: object, unit: str) -> int:
    """Return the number of a dataset's units, such as users; 0 if the manifest has none."""
    for dataset in run.manifest.get("datasets", []):
        if dataset.get("label") == label:
            return int((dataset.get("counts") or {}).get(f"{unit}s", 0))
    return 0


def describe_execution(run: RunTables) -> list[Fact]:
    """Return how the run was executed: version, time, memory and platform."""
    manifest = run.manifest
    seconds, memory = manifest.get("seconds"), manifest.get("peak_memory_mb")
    texts = {
        "recbias": manifest.get("recbias"),
        "Started": manifest.get("started"),
        "Duration": wording.format_duration(seconds)
        if isinstance(seconds, (int, float))
        else None,
        "Peak memory": f"{memory:,.0f} MB" if isinstance(memory, (int, float)) else None,
        "Devices": _describe_devices(manifest),
        "Spec digest": manifest.get("spec_digest"),
        "Commit": manifest.get("commit"),
        "Python": manifest.get("python"),
        "Platform": manifest.get("platform"),
    }
    return [Fact(name, str(text)) for name, text in texts.items() if text]


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


def build_models_table(run: RunTables) -> Table:
    """Return one row per model with its settings."""
    return tabulate(
        "Models",
        run.manifest.get("models", []),
        {
            "model": lambda model: str(model.get("label")),
            "plug-in": lambda model: str(model.get("name")),
            "parameters": _describe_parameters,
        },
    )


def _describe_parameters(model: Mapping[str, Any]) -> str:
    parameters = format_setting(model.get("parameters") or {})
    tuned = format_setting([name.replace("_", " ") for name in model.get("searched") or []])
    return "; ".join(filter(None, [parameters, f"tuned: {tuned}" if tuned else ""]))


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
    checks = _build_by(build_check_table)
    summary = _build_by(build_summary)
    tradeoffs = _build_by(views.build_tradeoff_table)
    group_tables = _build_by(build_group_tables)
    fold_table = _build_by(build_fold_table)
    agreement_tables = _build_by(build_agreement_tables)
    replies = _build_by(build_reply_tables)
    pairs = _build_by(tabulate_comparisons)
    models = _build_by(build_models_table)
    gallery = _build_by(draw_gallery)
    narrow_groups = _build_by(draw_narrow_groups)
    families = _build_by(views.collect_comparisons)
    searches = _build_by(tabulate_searches)

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
        tables = [
            *([self.summary] if self.summary.rows else []),
            *(self.tradeoffs, self.checks, *self.group_tables, *self.published.values()),
            *(*self.agreement_tables, self.fold_table, self.searches),
        ]
        return [table for table in tables if table is not None]

    @property
    def result_tables(self) -> list[Table]:
        """The tables of results without those that have a place of their own."""
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
            method = f"Between {family.between}: {family.method()}"
            outcomes.setdefault(method, []).append(outcome)
        return [f"{method}. Significant: {'; '.join(each)}." for method, each in outcomes.items()]


_LONG_TABLE = 12  # a table with more rows than this scrolls within its box, except the summary
_LONGEST_PAIRS = 1000  # the number of comparisons on the page, those with the largest effects

# the files that a page links to
_FILES = ("metrics.csv", "significance.csv", "spec.yaml", "manifest.json", "per_unit.parquet")

_PRINTED = ("data", "checks", "results", "groups")  # sections that are on paper, folded or not

_MARKS = {"pass": "✓", "fail": "✗", "undecided": "?", "none": ""}


def _list_sections(content: Content) -> dict[str, tuple[str, str]]:
    """Return the title of each section that a page has, and what it holds in a few words."""
    tests = sum(family.n_tested for family in content.families)
    significant = sum(family.significant for family in content.families)
    counts = {
        "model": len(views.list_models(content.run)),
        "metric": len(views.collect_definitions(content.run)),
    }
    sizes = ", ".join(format_count(number, noun) for noun, number in counts.items())
    cutoff = content.summary.title.removeprefix("Results")
    others = [plot for plot in content.plots if not plot.name.startswith("groups-")]
    dataset = "; ".join(fact.text for fact in content.data if fact.name == "Dataset")
    worst = f"the worst {content.examples[0]}; data of single units"
    n_plots = format_count(len(others), "plot") if others else ""
    n_significant = f"{significant:,} of {format_count(tests, 'comparison')} significant"
    sections = {
        "data": (content.data, "Data and settings", dataset),
        "checks": (content.checks, "Checks", ""),
        "results": (True, "Results", f"{sizes}{cutoff}"),
        "groups": (content.group_tables or len(others) < len(content.plots), "Groups", ""),
        "examples": (content.examples[1], "Examples", worst),
        "replies": (content.replies, "Replies of language models", ""),
        "plots": (others or content.gallery.failed, "Plots", n_plots),
        "significance": (content.families, "Significance", n_significant),
        "searches": (content.searches, "Hyperparameter search", ""),
        "definitions": (True, "Definitions", ""),
        "models": (True, "Models", ""),
        "glossary": (True, "Glossary", ""),
        "files": (True, "Spec, files and citation", ""),
        "provenance": (True, "Provenance", ""),
    }
    return {name: (title, hint) for name, (is_there, title, hint) in sections.items() if is_there}


def render_html(content: Content) -> str:
    """Return the page."""
    manifest = content.run.manifest
    script = read_resource("page.js")
    spec = str(wording.strip_folders(content.run.spec_text))
    return render(
        "report.html.jinja",
        content=content,
        title=wording.to_line(manifest.get("name", "Report")),
        byline=_build_byline(content),
        sections=_list_sections(content),
        printed=_PRINTED,
        marks=_MARKS,
        long=_LONG_TABLE,
        longest=_LONGEST_PAIRS,
        policy=_build_policy(script),
        citation=_build_citation(content),
        files_beside=[name for name in _FILES if has_file(content.run.folder / name)],
        style=wording.Safe(read_resource("page.css")),
        plot_style=wording.Safe(read_resource("plot.css")),
        script=wording.Safe(script),
        spec_text=spec,
        spec_download=make_download("YAML", "Spec", "spec.yaml", spec),
        tracebacks=[
            (failure.get("stage"), failure["traceback"])
            for failure in manifest.get("failures", [])
            if failure.get("traceback")
        ],
    )


def _build_policy(script: str) -> wording.Safe:
    """Return the content security policy: no requests, and no script but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return wording.Safe(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _build_citation(content: Content) -> str:
    manifest = content.run.manifest
    version, digest = manifest.get("recbias", ""), str(manifest.get("spec_digest", ""))[:16]
    started = str(manifest.get("started", ""))[:19]
    return f"recbias {version}, run of {started} UTC, spec digest {digest}, {_URL}."


def _build_byline(content: Content) -> str:
    """Return when the run started, how long it took, and how many users or prompts it asked."""
    facts = dict(content.execution)
    asked = count_asked(content.run)
    parts = [
        facts.get("Started", "")[:16].replace("T", " "),
        f"took {facts['Duration']}" if "Duration" in facts else "",
        asked,
        f"recbias {facts['recbias']}" if "recbias" in facts else "",
    ]
    return " · ".join(filter(None, parts))


_URL = "https://github.com/recbias/recbias"

_SCHEMA_VERSION = 1
"""Incremented when a field is removed or changes its meaning."""


def render_json(run: RunTables, reference: pd.DataFrame | None = None) -> str:
    """Return the report as JSON, in which undefined values are null."""
    importances = [] if run.importances is None else to_records(run.importances)
    significance = [
        row | {"significant": views.is_significant(row)} for row in to_records(run.significance)
    ]
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
        "manifest": render_value(_drop_reports(run.manifest)),
    }
    lines = ",\n".join(f"{render_value(name)}: {section}" for name, section in sections.items())
    return f"{{\n{lines}\n}}\n"


def _drop_reports(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest without the digests of reports, which are written after them."""
    return {key: value for key, value in manifest.items() if key != "reports"}


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


_MOST_ROWS = 60  # of the comparisons in Markdown, those with the largest effects


def render_markdown(content: Content) -> str:
    """Return the report; its plots are files in ``figures/``."""
    text = render(
        "report.md.jinja",
        content=content,
        title=content.run.manifest.get("name", "Report"),
        longest=_MOST_ROWS,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
