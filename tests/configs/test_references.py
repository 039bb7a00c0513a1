"""Every published table is joined to a packaged spec, or says why it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recbias.config.source import list_specs, read_spec
from recbias.reports.published import list_published, read_source, resolve_name
from support.commands import invoke_recbias


def list_references(path: Path) -> set[str]:
    """Return the published tables that a spec names, its own or those of what it extends."""
    report = read_spec(path).data.get("report") or {}
    names = report.get("reference") or []
    return {resolve_name(name) for name in ([names] if isinstance(names, str) else names)}


@pytest.mark.parametrize("name", list_published())
def test_every_table_has_specs_or_one_reason(name: str) -> None:
    table = read_source(name)
    assert bool(table.specs) != bool(table.reason)
    if table.reason:
        assert table.reason.endswith(".")
        assert 30 < len(table.reason) < 200
    if table.specs:
        assert table.comparable
    for spec in table.specs:
        assert name in list_references(list_specs()[spec]), f"{spec} does not name {name}"


def test_every_spec_that_names_a_table_is_listed_with_it() -> None:
    named = {(spec, name) for spec, path in list_specs().items() for name in list_references(path)}
    listed = {(spec, name) for name in list_published() for spec in read_source(name).specs}
    assert named == listed


def test_the_list_of_references_has_the_spec_or_the_reason(tmp_path: Path) -> None:
    text = invoke_recbias("list", "references", folder=tmp_path).out
    lines = {line.split()[0]: line for line in text.splitlines() if "/" in line}
    assert set(lines) == set(list_published())
    assert lines["children/a4"].endswith("papers/children/a4-side")
    assert lines["chbias/2"].endswith("which no model or metric changes.")
    rows = json.loads(invoke_recbias("list", "references", "--json", folder=tmp_path).out)
    by_name = {row["name"]: row for row in rows["kinds"]["references"]}
    assert by_name["children/a4"]["specs"] == [
        *("papers/children/a1-search", "papers/children/a4-side"),
    ]
    assert by_name["children/a4"]["reason"] is None
    assert by_name["chbias/2"]["specs"] == []
    assert by_name["chbias/2"]["reason"].startswith("It counts the keywords")
