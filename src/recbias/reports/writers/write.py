"""A run folder's reports, each file written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from recbias.core.errors import MissingRun, UnknownName, Unwritable
from recbias.core.suggestions import suggest
from recbias.reports.markup import without_folders
from recbias.reports.plots.drawing.faults import DRAWING_FAULTS
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.published_tables.compare_published import compare_with, remarks
from recbias.reports.views.run_tables import RunTables, read_run
from recbias.reports.writers.content import Content
from recbias.reports.writers.html import html_report
from recbias.reports.writers.json_report import json_report
from recbias.reports.writers.latex import latex_table
from recbias.reports.writers.markdown import markdown_report

FORMATS = ("csv", "json", "md", "html", "latex")
"""What a report may be written as; the CSV files are the run's own."""

_WITH_FIGURES = frozenset({"md", "html", "latex"})


def write_reports(
    folder: Path,
    *,
    formats: Sequence[str],
    reference: str | None = None,
    tolerance: float = 0.01,
) -> list[Path]:
    """Write the reports of a run into its folder, and return the files.

    Args:
        folder: The run folder.
        formats: Of ``csv`` (which the run has written), ``json``, ``md``, ``html`` and ``latex``.
        reference: A published table to compare with, which writes ``reference.csv`` too.
        tolerance: The largest difference that counts as within.

    Raises:
        MissingRun: The folder does not hold a run.
        UnknownName: A format or the reference is not known.
        MixedRuns: The reference holds no figures that a run could have.
        Unwritable: A file cannot be written.
    """
    unknown = [each for each in formats if each not in FORMATS]
    if unknown:
        message = f"no report format is called {unknown[0]!r}"
        raise UnknownName(message, remedy=suggest(unknown[0], FORMATS))
    content = _content(read_run(folder), reference, tolerance)
    return [_written(folder / name, each) for name, each in _files(content, set(formats))]


def _content(run: RunTables, reference: str | None, tolerance: float) -> Content:
    manifest = without_folders(dict(run.manifest))
    if not isinstance(manifest, dict):
        raise MissingRun("manifest.json is not a JSON object", where=str(run.folder))
    shown = replace(run, manifest=manifest)
    if reference is None:
        return Content(shown)
    compared = compare_with(shown, reference, tolerance=tolerance)
    return Content(shown, compared, remarks(shown, reference))


def _files(content: Content, formats: set[str]) -> Iterator[tuple[str, str | bytes]]:
    """Yield the name of each file and what is in it."""
    if content.reference is not None:
        yield "reference.csv", content.reference.to_csv(index=False, lineterminator="\n")
    if "json" in formats:
        yield "report.json", json_report(content.run, content.reference)
    if formats & _WITH_FIGURES:
        searched = (figure for each in content.searches for figure in each.figures)
        for figure in (*content.gallery.figures(), *searched):
            yield f"figures/{figure.name}.svg", figure.document()
    if "md" in formats:
        yield "report.md", markdown_report(content)
    if "html" in formats:
        yield "report.html", html_report(content)
    if "latex" in formats:
        yield from _tables(content)
        yield from _printed(content)


def _printed(content: Content) -> Iterator[tuple[str, bytes]]:
    """Yield each picture for print; one that fails is there as SVG only."""
    for picture in content.gallery.pictures():
        try:
            printed = picture.pdf()
        except DRAWING_FAULTS:
            continue
        yield f"figures/{picture.name}.pdf", printed


def _tables(content: Content) -> Iterator[tuple[str, str]]:
    named = {"summary": content.summary, "reference": content.published, "parts": content.parts}
    for name, table in named.items():
        if table is not None:
            yield f"tables/{name}.tex", latex_table(table)
    names = FileNames()
    for table in content.by_part:
        yield f"tables/{names.free(table.title)}.tex", latex_table(table)


def _written(path: Path, content: str | bytes) -> Path:
    """Write a file beside its place and move it there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode("utf-8", errors="backslashreplace")
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        found = f"{path.name} cannot be written: {error.strerror or error}"
        remedy = "free some space, or give a folder that you may write to"
        raise Unwritable(found, where=str(path.parent), remedy=remedy) from error
    return path
