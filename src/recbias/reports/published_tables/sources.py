"""The published tables that are packaged as data, and their descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pandas as pd

from recbias.core.errors import UnknownName
from recbias.core.suggestions import normalize_name, suggest
from recbias.reports.published_tables.matching import Join
from recbias.reports.views.run_tables import read_yaml

_NUMBER = re.compile(r"^table(?:([A-Z])_)?(\d+)(?:_(\d+))?_")


@dataclass(frozen=True)
class PublishedTable:
    """The description of a published table.

    Args:
        name: ``children/a3``.
        title: What the table shows.
        citation: The paper.
        metrics: Published metrics and ours, where the names differ.
        systems: Published systems and ours, where more than the spelling differs.
        detector: The detector whose labels its values use, or blank.
        remarks: Reasons why values differ, one sentence each.
        comparable: Whether a run can be compared with it.
        joins: The estimates that its quantities are compared with, where a model and a metric do
            not determine them.
        specs: The packaged specs that name it as a reference: ``papers/children/a3``.
        reason: Why no packaged spec does, one sentence; blank if one does.
    """

    name: str
    title: str
    citation: str
    metrics: Mapping[str, str]
    systems: Mapping[str, str]
    detector: str
    remarks: tuple[str, ...]
    comparable: bool
    joins: tuple[Join, ...] = ()
    specs: tuple[str, ...] = ()
    reason: str = ""


def list_published() -> list[str]:
    """Return the names of the published tables, grouped by paper.

    >>> [name for name in list_published() if name.startswith("wok/")]
    ['wok/1', 'wok/2', 'wok/3', 'wok/text']
    """
    return list(_list_files())


def load_published(name: str) -> pd.DataFrame:
    """Load a published table; numeric columns are float64, all others are text.

    Args:
        name: ``children/a3``; also ``children/A.3``, ``children/table-a-3`` or the file's name.

    Raises:
        UnknownName: There is no such table.
    """
    with _list_files()[resolve_name(name)].open("rb") as stream:
        frame = pd.read_csv(stream, dtype="str", keep_default_na=False)
    has_values = {"system", "metric", "cutoff"} <= set(frame.columns)
    for column in {"cutoff", "value", "std", "ci95_half_width"} & set(frame.columns):
        if column != "value" or has_values:
            frame[column] = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce")
    return frame


def resolve_name(name: str) -> str:
    """Return the name of a published table as ``list_published`` spells it.

    >>> resolve_name("children/tableA_3_performance_ml_all_no_side")
    'children/a3'
    >>> resolve_name("Children/table-5-1")
    'children/5.1'

    Raises:
        UnknownName: There is no such table.
    """
    names: dict[str, str] = {}
    for known, file in _list_files().items():
        paper, _, number = known.partition("/")
        for spelling in (number, file.name.removesuffix(".csv")):
            names[f"{paper}/{_normalize_number(spelling)}"] = known
    paper, _, number = name.partition("/")
    key = f"{normalize_name(paper)}/{_normalize_number(number)}"
    if key not in names:
        message = f"no published table is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, list_published()))
    return names[key]


def read_source(name: str) -> PublishedTable:
    """Return the description of a published table.

    Raises:
        UnknownName: There is no such table.
    """
    name = resolve_name(name)
    paper, _, number = name.partition("/")
    source = _read_sources()["papers"][paper]
    table = source["tables"][number]
    return PublishedTable(
        name=name,
        title=table["title"],
        citation=source["citation"],
        metrics={**source.get("metrics", {}), **table.get("metrics", {})},
        systems=source.get("systems", {}),
        detector=table.get("detector", ""),
        remarks=(*source.get("remarks", []), *table.get("remarks", [])),
        comparable=table.get("comparable", source.get("comparable", True)),
        joins=tuple(
            Join(**{**join, "published": tuple(join["published"])})
            for join in table.get("joins", [])
        ),
        specs=tuple(table.get("specs", [])),
        reason=table.get("reason", ""),
    )


def _normalize_number(number: str) -> str:
    """Return a table's number without ``table``, case and punctuation: ``a3``, ``51``."""
    return re.sub(r"[^a-z0-9]", "", number.casefold()).removeprefix("table")


def _build_name(paper: str, file: str) -> str:
    """Return ``children/a3`` for the file ``tableA_3_....csv``."""
    match = _NUMBER.match(file)
    if not match:
        return f"{paper}/{file.partition('_')[0]}"
    letter, number, suffix = match.groups()
    return f"{paper}/{(letter or '').lower()}{number}{f'.{suffix}' if suffix else ''}"


def _rank_name(name: str) -> tuple[str, bool, bool, list[int]]:
    paper, _, number = name.partition("/")
    numbers = [int(digits) for digits in re.findall(r"\d+", number)]
    return paper, not numbers, number[:1].isalpha(), numbers


@cache
def _list_files() -> dict[str, Traversable]:
    folder = files(__package__).joinpath("data")
    tables = {
        _build_name(paper.name, file.name): file
        for paper in folder.iterdir()
        if paper.is_dir()
        for file in paper.iterdir()
        if file.name.endswith(".csv")
    }
    return {name: tables[name] for name in sorted(tables, key=_rank_name)}


@cache
def _read_sources() -> dict[str, Any]:
    return read_yaml(files(__package__).joinpath("data", "sources.yaml").read_text("utf-8"))
