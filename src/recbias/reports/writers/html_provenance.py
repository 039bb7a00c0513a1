"""How a run was made, as HTML: stages, libraries, files, the experiment file, tracebacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from recbias.reports.markup import Safe, clean, join, one_line, tag, without_folders
from recbias.reports.views.findings import Fact, made
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import duration
from recbias.reports.views.run_tables import RunTables
from recbias.reports.writers.html_parts import facts, html_table


def making(run: RunTables) -> Iterator[Safe]:
    """Yield the parts of the section: figures of the run, and what is folded below them."""
    yield facts(made(run))
    folded = {
        "Stages": _stages(run),
        "Libraries": facts(Fact(*each) for each in _libraries(run)),
        "Data files": html_table(_data_files(run)),
        "Experiment file": tag("pre", clean(without_folders(run.spec_text)), tabindex=0),
        "Tests": tag("pre", clean(json.dumps(run.manifest.get("tests", []), indent=1))),
        "Tracebacks": join(*map(_traceback, run.manifest.get("failures", []))),
    }
    for title, inside in folded.items():
        if inside:
            yield tag("details", tag("summary", title), inside)


def _libraries(run: RunTables) -> list[tuple[str, str]]:
    found = run.manifest.get("libraries") or {}
    return [(str(name), str(version)) for name, version in found.items()]


def _stages(run: RunTables) -> Safe:
    columns = [Column("stage"), Column("kind"), Column("time", numeric=True)]
    columns += [Column("peak memory", numeric=True), Column("stored before")]
    rows = [
        (
            Cell(str(each.get("stage"))),
            Cell(str(each.get("kind"))),
            Cell(duration(each.get("seconds") or 0.0), each.get("seconds") or 0.0),
            Cell(f"{each.get('peak_memory_mb') or 0:,.0f} MB", each.get("peak_memory_mb") or 0.0),
            Cell("yes" if each.get("reused") else "no"),
        )
        for each in run.manifest.get("stages", [])
    ]
    return html_table(Table("Stages", tuple(columns), tuple(rows)), tall=True)


def _data_files(run: RunTables) -> Table:
    listed = (
        (each.get("label"), each.get("files") or {}) for each in run.manifest.get("datasets", [])
    )
    rows = chain.from_iterable(
        ((Cell(str(label)), Cell(str(name)), Cell(str(digest))) for name, digest in found.items())
        for label, found in listed
    )
    return Table("Data files", (Column("dataset"), Column("file"), Column("SHA-256")), tuple(rows))


def _traceback(failure: dict[str, object]) -> Safe:
    said = failure.get("traceback")
    return join(tag("p", one_line(failure.get("stage"))), tag("pre", said)) if said else Safe("")
