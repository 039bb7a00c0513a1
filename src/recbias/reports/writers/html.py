"""``report.html``: a page that loads nothing from elsewhere, for screens and for print."""

from __future__ import annotations

import base64
import hashlib
import json

from recbias.core.input_files import has_file
from recbias.reports.markup import Safe, strip_folders, to_line
from recbias.reports.plots.drawing.svg import read_style_sheet
from recbias.reports.views.facts import (
    build_files_table,
    build_stages_table,
    list_libraries,
)
from recbias.reports.writers.content import Content
from recbias.reports.writers.downloads import make_download
from recbias.reports.writers.jinja_environments import read_resource, render

LONG_TABLE = 12
"""A table with more rows than this scrolls within its box, except the summary."""

LONGEST_PAIRS = 1000
"""The number of comparisons on the page, those with the largest effects."""

_FILES = ("metrics.csv", "significance.csv", "spec.yaml", "manifest.json", "per_unit.parquet")
"""The files that a page links to."""

TITLE = "recbias: measure how biased a recommender is"
URL = "https://github.com/recbias/recbias"
"""The title and the address of the software, as in CITATION.cff."""

_SECTIONS = {
    "results": "Results",
    "replies": "Replies of language models",
    "plots": "Plots",
    "significance": "Significance",
    "searches": "Hyperparameter search",
    "definitions": "Definitions",
    "models": "Models",
    "glossary": "Glossary",
    "files": "Spec, files and citation",
    "provenance": "Provenance",
}


def render_html(content: Content) -> str:
    """Return the page."""
    manifest = content.run.manifest
    script = read_resource("page.js")
    spec = str(strip_folders(content.run.spec_text))
    optional = ("replies", content.replies), ("significance", content.families)
    omitted = {name: not entries for name, entries in (*optional, ("searches", content.searches))}
    return render(
        "report.html.jinja",
        content=content,
        searches=content.searches,
        title=to_line(manifest.get("name", "Report")),
        byline=_build_byline(content),
        sections={name: title for name, title in _SECTIONS.items() if not omitted.get(name)},
        long=LONG_TABLE,
        longest=LONGEST_PAIRS,
        policy=_build_policy(script),
        citation=_build_citation(content),
        bibtex=_build_bibtex(content),
        files_beside=[name for name in _FILES if has_file(content.run.folder / name)],
        style=Safe(read_resource("page.css")),
        plot_style=Safe(read_style_sheet()),
        script=Safe(script),
        execution=content.execution,
        stages=build_stages_table(content.run),
        libraries=list_libraries(content.run),
        files=build_files_table(content.run),
        spec_text=spec,
        spec_download=make_download("YAML", "Spec", "spec.yaml", spec),
        tests=json.dumps(manifest.get("tests", []), indent=1),
        tracebacks=[
            (failure.get("stage"), failure["traceback"])
            for failure in manifest.get("failures", [])
            if failure.get("traceback")
        ],
    )


def _build_policy(script: str) -> Safe:
    """Return the content security policy: no requests, and no script but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Safe(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _build_citation(content: Content) -> str:
    manifest = content.run.manifest
    version, digest = manifest.get("recbias", ""), str(manifest.get("spec_digest", ""))[:16]
    started = str(manifest.get("started", ""))[:19]
    return f"recbias {version}, run of {started} UTC, spec digest {digest}."


def _build_bibtex(content: Content) -> str:
    manifest = content.run.manifest
    fields = {
        "title": TITLE,
        "author": "{The recbias authors}",
        "year": str(manifest.get("started", ""))[:4],
        "version": str(manifest.get("recbias", "")),
        "url": URL,
        "note": _build_citation(content).partition(", ")[2].rstrip("."),
    }
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items() if text]
    return "\n".join(["@software{recbias,", *lines, "}"])


def _build_byline(content: Content) -> str:
    facts = dict(content.execution)
    started = facts.get("Started", "")[:16].replace("T", " ")
    duration = f"took {facts['Duration']}" if "Duration" in facts else ""
    version = f"recbias {facts['recbias']}" if "recbias" in facts else ""
    return " · ".join(filter(None, [started, duration, version]))
