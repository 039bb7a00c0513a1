"""Every published table is joined to a packaged spec, or says why it cannot be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.config.experiment import Experiment
from recbias.config.source import list_specs, read_spec
from recbias.core.text import normalize_name
from recbias.reports.published import (
    PublishedTable,
    compare_published,
    list_published,
    read_source,
    resolve_name,
)
from recbias.reports.run import to_records
from support.commands import invoke_recbias
from support.planned_runs import invent_run, list_published_values


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
        *("papers/children/a1-search", "papers/children/a4-side")
    ]
    assert by_name["children/a4"]["reason"] is None
    assert by_name["chbias/2"]["specs"] == []
    assert by_name["chbias/2"]["reason"].startswith("It counts the keywords")


JOINED = [name for name in list_published() if read_source(name).specs]


YOUR_FILES = ("dialogues", "rated", "bias-ratings", "quality-ratings")
"""The files of papers/chbias that are the user's."""


SETTINGS = (
    *("sampled users", "English podcasts", "users per gender", "most biased users", "random male"),
    *("decrease of GEAA", "significance level", "recommended items", "minimum reviews"),
    *("year of data", "number of cities", "batch size", "transformer layers", "attention heads"),
    *("hidden size", "parameters", "pre-training words"),
)
"""The starts of the values in texts that no run measures, or that follow from others."""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The packaged specs, with the files that users bring, which are blank."""
    folder = tmp_path_factory.mktemp("specs") / "configs"
    shutil.copytree(Path(__file__).parents[2] / "configs", folder)
    for name in YOUR_FILES:
        (folder / "papers" / "chbias" / f"{name}.jsonl").touch()
    yield folder
    load_spec.cache_clear()


@cache
def load_spec(path: Path) -> Experiment:
    """Return the experiment of a spec, which is read once."""
    return api.read_experiment(path)


def list_addresses(table: PublishedTable, row: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Return what a published value is called in ``reference.csv``: name, k, value, system."""
    location = (str(row["cutoff"]), float(row["value"]))
    if table.joins:
        joins = [join for join in table.joins if join.applies_to(row)]
        return {(join.format_name(row), *location, "") for join in joins}
    system = table.systems.get(row["system"], row["system"])
    return {(row["metric"], *location, normalize_name(system))}


def is_measurable(row: Mapping[str, Any]) -> bool:
    """Return whether a run of the packaged specs as they are can have the value."""
    return not any(text in row["metric"] for text in SETTINGS)


@pytest.mark.parametrize("name", JOINED)
def test_every_value_is_compared_with_what_the_specs_plan(name: str, specs: Path) -> None:
    table = read_source(name)
    compared = set()
    for spec in table.specs:
        frame = compare_published(invent_run(load_spec(specs / f"{spec}.yaml"), table), name)
        assert not frame.empty, f"{spec} has nothing of {name}"
        assert not frame.duplicated().any()
        for row in to_records(frame):
            system = "" if table.joins else normalize_name(row["system"])
            compared.add((row["metric"], str(row["k"]), row["published"], system))
    values = [row for row in list_published_values(name) if is_measurable(row)]
    assert values
    absent = [row for row in values if not list_addresses(table, row) & compared]
    assert absent == []
