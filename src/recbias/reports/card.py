"""The audit card of a run: ``card.json``, which ``recbias verify`` reads, and its pages.

What was audited, on whom, by which definitions, what was found and what limits it: the rows of
``report.json`` for the means, with the digests of the run's files, and a digest of its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from recbias.core.errors import DataError, MalformedLine, MissingFile
from recbias.core.files import compute_digest, digest_file, has_file, open_input
from recbias.core.measures import VALUE_COLUMNS
from recbias.formats.json_files import parse_json
from recbias.formats.manifest import Manifest
from recbias.reports import views, wording
from recbias.reports.regulated import Form
from recbias.reports.render import (
    Content,
    Fact,
    read_resource,
    render,
    render_value,
    replace_undefined,
)
from recbias.reports.run import RunTables, to_records
from recbias.reports.tables import describe_missing_outputs
from recbias.reports.wording import (
    Table,
    format_count,
    interval_cell,
    number_cell,
    pick,
    tabulate,
)
from recbias.statistics.intervals import detect_difference

_POWER = 0.8  # the power of the smallest detectable differences

# with more estimates or comparisons, those of a target are in the files of the run only
_MOST_ROWS = 5_000

_MOST_LINES = 40  # estimates and comparisons on the pages; all are in ``card.json``

_REMEDY = "give a card.json that `recbias report RUN --format card` wrote"

_TIMED = "trials.csv"  # a table that holds durations, which differ between runs of equal results

_PLACE = ("dataset", "model", "seed", "fold", "group", "target")
_COMPARISON = (
    *("test", "between", "a", "b", "n", "difference", "ci_low", "ci_high", "p", "p_adjusted"),
    *("correction", "family", "family_size", "alpha", "effect_size"),
)
_CHECK = ("baseline", "value", "ci_low", "ci_high", "limit", "verdict", "failed")
_SUBJECT = (
    *("name", "spec_digest", "recbias", "commit", "python", "libraries", "seeds", "limit"),
    *("datasets", "split", "models", "tests"),
)

_COVERED = (
    "Intervals and tests cover the sampling of units such as users, not the choice of the "
    "dataset, the split, the settings and the measures."
)
_N = "n: the units, such as users, that have a value; undefined: those that have none."


class Card(BaseModel):
    """The content of ``card.json``.

    Args:
        files: The SHA-256 digests of the files of the run.
        digest: The SHA-256 digest of the canonical JSON of all other fields.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    kind: Literal["recbias audit card"] = "recbias audit card"
    schema_version: Literal[1] = 1
    audited: dict[str, Any]
    queries: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    definitions: list[dict[str, Any]]
    estimates: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    limits: dict[str, Any]
    files: dict[str, str]
    digest: str = ""


def build_card(run: RunTables) -> Card:
    """Return the audit card of a run with its digest.

    The digest shows that the card was not changed by accident: whoever changes it can compute it
    again. The card has no time, duration or path, so that equal results give equal cards. The
    estimates are the means over seeds and folds where there are several.
    """
    manifest = Manifest.model_validate(run.manifest)
    estimates, left_out = _limit(views.select_headline(run, views.collect_estimates(run)))
    comparisons, omitted = _limit(views.select_headline(run, run.significance))
    rows = [
        row
        | {"significant": views.is_significant(row), "detectable": detect_difference(row, _POWER)}
        for row in to_records(comparisons)
    ]
    texts = ("name", "direction", "summary", "formula", "unit", "source")
    content = {
        "audited": manifest.model_dump(
            include={*_SUBJECT},
            exclude={"models": {"__all__": {"baseline", "is_baseline"}}},
        ),
        "queries": [
            queries.model_dump(include={"dataset", "asked", "unit", "parameters"})
            for queries in manifest.queries
        ],
        "groups": _list_groups(estimates),
        "definitions": [
            {"metric": title, "range": metric.values, "parameters": dict(metric.parameters)}
            | {name: getattr(metric, name) for name in texts}
            for title, metric in views.collect_definitions(run).items()
        ],
        "estimates": _select(to_records(estimates), VALUE_COLUMNS),
        "comparisons": _select(rows, (*_COMPARISON, "significant", "detectable")),
        "checks": _select(run.manifest.get("checks", []), _CHECK, ("seed", "fold")),
        "limits": {
            "undefined": _count_undefined(estimates),
            "missing_outputs": describe_missing_outputs(run),
            "warnings": wording.list_warnings(run),
            "failures": wording.list_failures(run),
            "omitted_estimates": left_out,
            "omitted_comparisons": omitted,
        },
        "files": digest_files(run.folder, manifest.files),
    }
    card = Card.model_validate(replace_undefined(wording.strip_folders(content)))
    return card.model_copy(update={"digest": compute_card_digest(card)})


def _limit(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the rows, and how many are left out: if they are many, those of a target."""
    limited = rows[rows["target"].fillna("") == ""] if len(rows) > _MOST_ROWS else rows
    return limited, len(rows) - len(limited)


def _select(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], without: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return some fields of the rows of a table, with the title of the metric."""
    keys = [name for name in (*_PLACE, *names) if name not in without]
    return [
        {"metric": views.format_title(row["metric"], row["k"])}
        | {name: row[name] for name in keys}
        for row in rows
    ]


def _list_groups(estimates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each group of queries with the largest number of its units, undefined ones too."""
    rows = estimates[estimates["group"] != ""]
    units = (rows["n"].fillna(0) + rows["undefined"].fillna(0)).astype(int)
    sizes = rows.assign(n=units).groupby(["dataset", "group"], sort=False)["n"].max()
    return to_records(sizes.reset_index())


def _count_undefined(estimates: pd.DataFrame) -> dict[str, float]:
    """Return the number of undefined values of each metric that has some."""
    titles = [*map(views.format_title, estimates["metric"], estimates["k"])]
    counts = estimates["undefined"].groupby(titles, sort=False).sum()
    return {str(title): float(count) for title, count in counts.items() if count > 0}


def digest_files(folder: Path, tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 digests of the spec and of the tables of a run that are in its folder."""
    names = sorted({"spec.yaml", "groups.csv", *tables} - {_TIMED})
    digests = {name: digest_inside(folder, name) for name in names}
    return {name: digest for name, digest in digests.items() if digest != "absent"}


def digest_inside(folder: Path, name: str) -> str:
    """Return the SHA-256 digest of a file of a folder, ``absent`` if there is none."""
    path = folder / name
    is_inside = has_file(path) and path.resolve().is_relative_to(folder.resolve())
    return digest_file(path) if is_inside else "absent"


def compute_card_digest(card: Card) -> str:
    """Return the digest that a card must have."""
    return compute_digest(card.model_dump(exclude={"digest"}))


def read_card(path: Path) -> Card:
    """Read a card, which may come from anybody.

    Raises:
        MissingFile: The file cannot be read.
        MalformedLine: It is not JSON.
        DataError: Its content is not that of a card; the place is that of the first fault.
    """
    try:
        with open_input(path) as stream:
            content = parse_json(stream.read().decode(), path)
        return Card.model_validate(content)
    except (MissingFile, MalformedLine) as error:
        error.remedy = _REMEDY
        raise
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8: it is no card", where=str(path), remedy=_REMEDY) from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the file"
        message = f"is not that of a card: {fault['msg']}"
        raise DataError(message, where=f"{path}: {place}", remedy=_REMEDY) from error


def render_card_files(card: Card, content: Content) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file of the card of a run."""
    parts = [f"{json.dumps(name)}: {_render_part(part)}" for name, part in card]
    yield "card.json", "{\n" + ",\n".join(parts) + "\n}\n"
    tables = [
        content.models,
        content.checks,
        _shorten(_tabulate_estimates(card)),
        _shorten(replace(content.pairs, notes=(*content.pairs.notes, *content.methods))),
        _tabulate_definitions(content),
    ]
    yield from _render_pages("card", card, content, tables, _list_limits(card))


def render_form(name: str, form: Form, card: Card, content: Content) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each page of a form of the card."""
    tables = [*form.tables, _tabulate_definitions(content)]
    yield from _render_pages(name, card, content, tables, form.missing, form.title)


def _render_pages(
    name: str,
    card: Card,
    content: Content,
    tables: Sequence[Table | None],
    limits: Sequence[str],
    title: str = "",
) -> Iterator[tuple[str, str]]:
    for kind in ("md", "html"):
        text = render(
            f"card.{kind}.jinja",
            title=title or "Audit card",
            limits_title="What the run cannot fill in, and limits" if title else "Limits",
            card=card,
            style=wording.Safe(read_resource("page.css")),
            facts=[*content.data, *_list_provenance(card)],
            conclusions=[entry for entries in content.conclusions for entry in entries],
            tables=[table for table in tables if table is not None and table.rows],
            limits=[*limits, *(_list_limits(card) if title else [])],
        )
        yield f"{name}.{kind}", re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def render_hub_card(card: Card, content: Content) -> str:
    """Return the ``README.md`` of the card for the Hugging Face hub.

    Its front matter is a ``model-index``: for each model and dataset the defined values, with the
    interval and the number of units in ``args``. The text is that of ``card.md``.

    Source:
        https://huggingface.co/docs/hub/model-cards (the metadata ``model-index``).
    """
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in card.estimates:
        if row["value"] is None:
            continue
        parts = [str(row[name]) for name in ("group", "target") if row[name]]
        title = ", ".join([row["metric"], *parts])
        names = ("ci_low", "ci_high", "n", "seed", "fold")
        kept = {name: row[name] for name in names if row.get(name) is not None}
        metric = {
            "type": re.split(r"[(@]", row["metric"])[0],
            "name": title,
            "value": row["value"],
        }
        of_model = results.setdefault(str(row["model"]), {})
        of_model.setdefault(str(row["dataset"]), []).append(metric | {"args": kept})
    task = {"type": "recommendation", "name": "Recommendation"}
    index = [
        {
            "name": model,
            "results": [
                {"task": task, "dataset": {"type": name, "name": name}, "metrics": metrics}
                for name, metrics in datasets.items()
            ],
        }
        for model, datasets in results.items()
    ]
    front = {"tags": ["recommender-systems", "recbias"], "model-index": index}
    text = json.dumps(front, indent=1).replace("<", "\\u003c")  # JSON is YAML
    return f"---\n{text}\n---\n\n{dict(render_card_files(card, content))['card.md']}"


def _render_part(part: Any) -> str:
    """Return a part as JSON, with one line for each row."""
    is_table = isinstance(part, list) and part
    return "[\n" + ",\n".join(map(render_value, part)) + "\n]" if is_table else render_value(part)


def _list_provenance(card: Card) -> list[Fact]:
    """Return the versions, and the digests of the spec and of the data."""
    audited = card.audited
    versions = [f"{name} {text}" for name, text in (audited["libraries"] or {}).items() if text]
    files = [
        f"{name} {sha}" for data in audited["datasets"] for name, sha in data["files"].items()
    ]
    facts = {
        "recbias": f"{audited['recbias']}, commit {audited['commit'] or 'not known'}",
        "Versions": ", ".join([f"Python {audited['python']}", *versions]),
        "Digest of the spec": str(audited["spec_digest"]),
        "SHA-256 of the data": ", ".join(files),
    }
    return [Fact(name, text) for name, text in facts.items() if text]


def _list_limits(card: Card) -> list[str]:
    """Return what restricts the conclusions, one sentence each; always what intervals cover."""
    limits = card.limits
    undefined = ", ".join(f"{title} {n:,.0f}" for title, n in limits["undefined"].items())
    counts = (
        (limits["omitted_estimates"], "estimate", "metrics.csv"),
        (limits["omitted_comparisons"], "comparison", "significance.csv"),
    )
    return [
        *(*limits["failures"], *limits["missing_outputs"], *limits["warnings"]),
        *([f"Undefined values, excluded from the means: {undefined}."] if undefined else []),
        *(
            f"{format_count(n, noun)} of a target: only in {name}."
            for n, noun, name in counts
            if n
        ),
        _COVERED,
    ]


def _tabulate_estimates(card: Card) -> Table:
    """Return the estimates, those over all queries before those of groups and targets."""
    rows = []
    for row in sorted(card.estimates, key=lambda row: (bool(row["target"]), bool(row["group"]))):
        numbers = {name: math.nan if row[name] is None else row[name] for name in VALUE_COLUMNS}
        places = wording.count_decimals(numbers[name] for name in ("value", "ci_low", "ci_high"))
        rows.append({**row, **numbers, "places": places})
    return tabulate(
        "Estimates",
        rows,
        {
            "metric": lambda row: wording.make_heading(row["metric"]),
            **pick(*(name for name in _PLACE if len({row[name] for row in rows}) > 1)),
            "value": lambda row: number_cell(row["value"], row["places"]),
            "95% interval": lambda row: interval_cell(
                row["ci_low"], row["ci_high"], row["places"], "none"
            ),
            "n": lambda row: number_cell(row["n"], 0),
            "undefined": lambda row: number_cell(row["undefined"], 0),
        },
        [_N],
    )


def _tabulate_definitions(content: Content) -> Table:
    """Return one row for each definition, with the metrics that share it."""
    return tabulate(
        "Definitions",
        content.definitions,
        {
            "metric": lambda metrics: ", ".join(metric.heading for metric in metrics),
            "definition": lambda metrics: metrics[0].summary,
            "formula": lambda metrics: metrics[0].formula,
            "direction": lambda metrics: ", ".join(
                dict.fromkeys(views.DIRECTION_LABELS[metric.direction] for metric in metrics)
            ),
            "range": lambda metrics: metrics[0].values,
            "source": lambda metrics: metrics[0].source,
        },
    )


def _shorten(table: Table) -> Table:
    """Return a table of the first rows, and a note on the others."""
    if len(table.rows) <= _MOST_LINES:
        return table
    more = f"{format_count(len(table.rows) - _MOST_LINES, 'more row')} in card.json."
    return replace(table, rows=table.rows[:_MOST_LINES], notes=(more, *table.notes))
