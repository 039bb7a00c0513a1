"""Writes the reports of a run folder; every file is replaced atomically."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from recbias.core.errors import UnknownName, Unwritable
from recbias.core.files import digest_file, has_file
from recbias.core.text import suggest
from recbias.formats.manifest import Manifest
from recbias.reports.card import (
    FORMS,
    build_card,
    render_card_files,
    render_form,
    render_hub_card,
)
from recbias.reports.gallery import IMAGES, convert_svg, load_gallery
from recbias.reports.published import compare_published, list_remarks, resolve_name
from recbias.reports.render import Content, render_html, render_json, render_latex, render_markdown
from recbias.reports.run import RunTables, name_groups, read_run
from recbias.reports.svg import FileNames
from recbias.reports.verdict import render_junit
from recbias.reports.wording import strip_folders

FORMATS = ("csv", "json", "md", "html", "latex", "card", "card_hub", *FORMS, *IMAGES)
"""The formats of reports; the CSV files are written by the run itself."""

_FORMATS_WITH_PLOTS = frozenset({"md", "html", "latex", *IMAGES})


def write_reports(  # noqa: PLR0913  the settings of a report, each by name
    folder: Path,
    *,
    formats: Sequence[str],
    reference: str | Sequence[str] | None = None,
    tolerance: float = 0.01,
    address: str | None = None,
    store_plots: Callable[[Callable[[Path], dict[str, Any]]], Mapping[str, Any]] | None = None,
    measure_cost: Callable[[], Mapping[str, float]] | None = None,
) -> list[Path]:
    """Write the reports of a run into its folder and return the paths of the files.

    Args:
        folder: The run folder.
        formats: Any of ``csv`` (written by the run), ``json``, ``md``, ``html``, ``latex``,
            ``card`` (the audit card), its forms ``card_hub``, ``card_ll144`` and
            ``card_eu``, and ``pdf`` and ``png`` (of figures).
        reference: A published table to compare with, or several, by default those of the spec with
            its tolerance; ``reference.csv`` is written too.
        tolerance: The largest difference from a published value that counts as within.
        address: The digest of what the run and these reports depend on, for the manifest.
        store_plots: Returns what the function that it gets returns for the same run, now or
            earlier.
        measure_cost: What the run has taken so far; it is called when the plots are drawn, the
            longest part of reports, and stands in them and in the manifest.

    Raises:
        MissingRun: The folder does not hold a run.
        UnknownName: There is no such format or published table.
        MixedRuns: The published table has no values that a run could have.
        Unwritable: A file cannot be written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        message = f"no report format is called {unknown[0]!r}"
        raise UnknownName(message, remedy=suggest(unknown[0], FORMATS))
    run = read_run(folder)
    content = _load_content(run, reference, tolerance)
    named = replace(content, run=name_groups(content.run))
    if store_plots is not None and _FORMATS_WITH_PLOTS & {*formats}:
        plots = store_plots(lambda _: named.gallery.dump())
        vars(named).setdefault("gallery", load_gallery(plots))
    if measure_cost is not None:
        cost = measure_cost()
        run = replace(run, manifest={**run.manifest, **cost})
        for each in (content.run, named.run):
            vars(each)["manifest"].update(cost)
    files = [*_render_files(content, named, formats)]
    paths = [_write_file(folder, name, text) for name, text in files]
    _record_digests(run, paths, None if "card" in formats else address)
    return paths


def _record_digests(run: RunTables, paths: Sequence[Path], address: str | None) -> None:
    """Record the digests of the reports in the manifest; ``card.json`` has its own."""
    written = {
        path.relative_to(run.folder).as_posix(): digest_file(path)
        for path in paths
        if path.name != "card.json"
    }
    content = {**run.manifest, "address": address}
    if written or "reports" in run.manifest:
        content["reports"] = {**run.manifest.get("reports", {}), **written}
    if address is None:
        del content["address"]
    if content != run.manifest:
        _write_file(run.folder, "manifest.json", Manifest.model_validate(content).render())


def _load_content(
    run: RunTables, reference: str | Sequence[str] | None, tolerance: float
) -> Content:
    run = replace(run, manifest=cast("dict[str, Any]", strip_folders(dict(run.manifest))))
    if reference is None:
        settings = run.spec.get("report") or {}
        reference, tolerance = settings.get("reference"), settings.get("tolerance", tolerance)
    if reference is None:
        return Content(run)
    names = [*map(resolve_name, [reference] if isinstance(reference, str) else reference)]
    tables = [compare_published(run, name, tolerance=tolerance) for name in names]
    filled = [table for table in tables if len(table)] or tables[:1]
    comparison = pd.concat(filled, ignore_index=True)
    return Content(run, comparison, {name: list_remarks(run, name) for name in names})


def _render_files(
    content: Content, named: Content, formats: Sequence[str]
) -> Iterator[tuple[str, str | bytes]]:
    """Yield the name and the content of each file; ``named`` has the names of coded groups."""
    run = content.run
    if content.reference is not None:
        yield "reference.csv", content.reference.to_csv(index=False, lineterminator="\n")
    if run.manifest.get("checks") and not has_file(run.folder / "checks.xml"):
        yield "checks.xml", render_junit(named.run)
    if _FORMATS_WITH_PLOTS & {*formats}:
        yield from _render_figures(named, sorted({*IMAGES} & {*formats}))
    for name, render in _RENDERERS.items():
        if name in formats:
            yield from render(content, named)


def _render_form(name: str, content: Content, named: Content) -> Iterator[tuple[str, str | bytes]]:
    yield from render_form(name, FORMS[name](named.run), build_card(content.run), content)


def _render_figures(content: Content, images: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
    for figure in content.list_figures():
        yield f"figures/{figure.name}.svg", figure.svg
        for image in images:
            yield f"figures/{figure.name}.{image}", convert_svg(figure.svg, image)


_LABEL = re.compile(r"(?<=\\label\{tab:)[^}]*")


def _render_latex_tables(content: Content) -> Iterator[tuple[str, str]]:
    names, labels, published = FileNames(), FileNames(), content.published
    tables = {"summary": content.summary, "checks": content.checks, "parts": content.fold_table}
    for name, table in published.items():
        suffix = f"-{name.replace('/', '-')}" if len(published) > 1 else ""
        tables[f"reference{suffix}"] = table
    tables |= {names.free(table.title): table for table in content.group_tables}
    for name, shown in tables.items():
        if shown is not None:
            text = render_latex(shown)
            yield f"tables/{name}.tex", _LABEL.sub(lambda found: labels.free(found[0]), text)


_RENDERERS: Mapping[str, Callable[[Content, Content], Iterable[tuple[str, str | bytes]]]] = {
    "json": lambda content, _: [("report.json", render_json(content.run, content.reference))],
    "md": lambda _, named: [("report.md", render_markdown(named))],
    "html": lambda _, named: [("report.html", render_html(named))],
    "latex": lambda _, named: _render_latex_tables(named),
    "card": lambda content, _: render_card_files(build_card(content.run), content),
    "card_hub": lambda content, _: [
        ("hub/README.md", render_hub_card(build_card(content.run), content))
    ],
    **{name: partial(_render_form, name) for name in FORMS},
}
"""From a run, with codes and with the names of coded groups, to the files of a format."""


def _write_file(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a temporary file beside the file of a run folder and rename it."""
    path = folder / name
    if isinstance(content, str):
        content = content.encode("utf-8", errors="backslashreplace")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    if path.parent != folder and path.parent.is_symlink():
        message = "it is a link to another folder, and reports are written to the run folder only"
        raise Unwritable(message, where=str(path.parent), remedy="remove the link")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:
            stream.write(content)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        message = f"{path.name} cannot be written: {error.strerror or error}"
        remedy = "free some space, or give a folder that you may write to"
        raise Unwritable(message, where=str(path.parent), remedy=remedy) from error
    return path
