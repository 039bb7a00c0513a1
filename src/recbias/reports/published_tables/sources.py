"""The published tables that come with the package, and what is known of each."""

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
    """What is known of a published table.

    Args:
        name: ``children/a3``.
        title: What it shows.
        citation: The paper.
        metrics: Published metrics and ours, where the names differ.
        systems: Published systems and ours, where more than the spelling differs.
        detector: Whose labels its figures are of, or blank.
        remarks: What cannot be equal, a sentence each.
        comparable: Whether a run's figures can stand beside it.
        joins: Which of our figures its quantities are, where a model and a metric do not say it.
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


def list_published() -> list[str]:
    """Return the names of the published tables, paper by paper.

    >>> [each for each in list_published() if each.startswith("wok/")]
    ['wok/1', 'wok/2', 'wok/3', 'wok/text']
    """
    return list(_files())


def load_published(name: str) -> pd.DataFrame:
    """Return a published table as it is stored; figures are float64, the rest is text.

    Args:
        name: ``children/a3``; also ``children/A.3``, ``children/table-a-3`` or the file's name.

    Raises:
        UnknownName: No table is called so.
    """
    with _files()[canonical(name)].open("rb") as stream:
        frame = pd.read_csv(stream, dtype="str", keep_default_na=False)
    for column in {"cutoff", "value", "std", "ci95_half_width"} & set(frame.columns):
        if column != "value" or _is_measured(frame):
            frame[column] = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce")
    return frame


def canonical(name: str) -> str:
    """Return the name of a published table in the spelling of ``list_published``.

    >>> canonical("children/tableA_3_performance_ml_all_no_side"), canonical("Children/table-5-1")
    ('children/a3', 'children/5.1')

    Raises:
        UnknownName: No table is called so.
    """
    spellings: dict[str, str] = {}
    for known, file in _files().items():
        paper, _, number = known.partition("/")
        for each in (number, file.name.removesuffix(".csv")):
            spellings[f"{paper}/{_key(each)}"] = known
    paper, _, number = name.partition("/")
    found = spellings.get(f"{normalize_name(paper)}/{_key(number)}")
    if found is None:
        message = f"no published table is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, list_published()))
    return found


def about(name: str) -> PublishedTable:
    """Return what is known of a published table.

    Raises:
        UnknownName: No table is called so.
    """
    known = canonical(name)
    paper, _, number = known.partition("/")
    whole = _sources()["papers"][paper]
    table = whole["tables"][number]
    return PublishedTable(
        name=known,
        title=table["title"],
        citation=whole["citation"],
        metrics={**whole.get("metrics", {}), **table.get("metrics", {})},
        systems=whole.get("systems", {}),
        detector=table.get("detector", ""),
        remarks=(*whole.get("remarks", []), *table.get("remarks", [])),
        comparable=table.get("comparable", whole.get("comparable", True)),
        joins=tuple(
            Join(**{**each, "published": tuple(each["published"])})
            for each in table.get("joins", [])
        ),
    )


def _is_measured(frame: pd.DataFrame) -> bool:
    return {"system", "metric", "cutoff"} <= set(frame.columns)


def _key(number: str) -> str:
    """Return a table's number without ``table``, case and punctuation: ``a3``, ``51``."""
    return re.sub(r"[^a-z0-9]", "", number.casefold()).removeprefix("table")


def _name(paper: str, file: str) -> str:
    """Return ``children/a3`` for the file ``tableA_3_....csv``."""
    match = _NUMBER.match(file)
    if not match:
        return f"{paper}/{file.partition('_')[0]}"
    letter, first, second = match.groups()
    return f"{paper}/{(letter or '').lower()}{first}{f'.{second}' if second else ''}"


def _order(name: str) -> tuple[str, bool, bool, list[int]]:
    paper, _, number = name.partition("/")
    digits = [int(each) for each in re.findall(r"\d+", number)]
    return paper, not digits, number[:1].isalpha(), digits


@cache
def _files() -> dict[str, Traversable]:
    folder = files("recbias.reports.published_tables").joinpath("data")
    found = {
        _name(paper.name, file.name): file
        for paper in folder.iterdir()
        if paper.is_dir()
        for file in paper.iterdir()
        if file.name.endswith(".csv")
    }
    return {name: found[name] for name in sorted(found, key=_order)}


@cache
def _sources() -> dict[str, Any]:
    text = (
        files("recbias.reports.published_tables")
        .joinpath("data", "sources.yaml")
        .read_text("utf-8")
    )
    return read_yaml(text)
