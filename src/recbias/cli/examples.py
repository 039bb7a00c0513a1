"""``recbias examples``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from recbias.cli.output import AsJson, Out, RunName, open_document, print_line, report_errors
from recbias.core.context import collect_warnings
from recbias.reports.run import to_records
from recbias.reports.views import format_title
from recbias.runs.examples import examples as select_examples

_MOST_ITEMS = 10
"""The number of items of a history or of missed items that are printed."""


def examples(
    run: RunName,
    metric: Annotated[
        str | None, typer.Option(help="The metric, such as nDCG; by default the first.")
    ] = None,
    group: Annotated[str, typer.Option(help="Only units with these labels: gender=F.")] = "",
    worst: Annotated[int, typer.Option(min=1, help="The number of units.")] = 10,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model; the first one selects. Repeatable. By default the best two."),
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Print the units with the worst values, and their lists."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        with collect_warnings() as warnings:
            table = select_examples(
                run, metric=metric, group=group, worst=worst, models=model or (), out=out
            )
        for warning in warnings:
            print_line(f"warning: {warning}", to_stderr=True)
        rows = to_records(table)
        if as_json:
            document["rows"] = rows
            return
        for unit in dict.fromkeys(row["unit_id"] for row in rows):
            for line in _describe([row for row in rows if row["unit_id"] == unit]):
                print_line(line, longest=None)


def _describe(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines about one unit."""
    first = rows[0]
    labels = f" ({first['labels'].replace('&', ', ')})" if first["labels"] else ""
    yield f"{first['unit']} {first['unit_id']}{labels}"
    if first["text"]:
        yield f"  text: {first['text']}"
    if first["history"]:
        yield f"  history: {_join(first['history'])}"
    for row in rows:
        metric = format_title(row["metric"], float(row["k"]) if row["k"] else None)
        listed = f": {'; '.join(row['list'])}" if row["list"] else ""
        metric = " ".join(filter(None, [metric, row["group"], row["target"]]))
        yield f"  {row['model']}, {metric} {row['value']:.4f}{listed}"
        if row["missed"]:
            yield f"    missed: {_join(row['missed'])}"


def _join(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST_ITEMS:,} more" if len(items) > _MOST_ITEMS else ""
    return "; ".join(items[:_MOST_ITEMS]) + more
