"""The tables of ``recbias power``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from recbias.cli.grids import print_rows
from recbias.reports.views.definitions import Definition, format_title
from recbias.reports.views.rounding import count_decimals, format_count, format_value
from recbias.reports.views.run_tables import to_records

MOST_ROWS = 24
"""The maximum number of comparisons that are printed one by one without ``--all``."""

_NUMERIC = ("n", "observed", "detectable", "needed")
_SHARED = ("dataset", "seed", "fold", "unit")


def show_comparisons(
    table: pd.DataFrame,
    definitions: Mapping[str, Definition],
    *,
    name: str,
    notes: Sequence[str],
) -> None:
    """Print one row for each comparison, with the constant columns in the title."""
    rows, places = to_records(table), _count_places(table)
    kinds = table.groupby(["metric", "between", "model"])["test"].nunique()
    tests = ["test"] if (kinds > 1).any() else []
    keys = [*_list_varying(table), "metric", "model", *tests, "a", "b", "given"]
    print_rows(
        (*keys, "n", "observed", "detectable", "needed", "remark"),
        [
            [
                *(
                    _name_metric(row, definitions) if key == "metric" else str(row[key])
                    for key in keys
                ),
                *_render_numbers(row, places[row["metric"]]),
            ]
            for row in rows
        ],
        title=f"{name}: {format_count(len(rows), 'row')}{_describe_constants(table)}",
        numeric=_NUMERIC,
        notes=notes,
        optional=("observed",),
    )


def show_ranges(
    table: pd.DataFrame,
    definitions: Mapping[str, Definition],
    *,
    name: str,
    notes: Sequence[str],
) -> None:
    """Print one row for each metric, for its comparisons of models and for those of groups."""
    keys = [*_list_varying(table), "metric", "k", "between", "given"]
    places = _count_places(table)
    rows = [
        _render_range(rows, definitions, keys, places[str(rows["metric"].iloc[0])])
        for _, rows in table.groupby(keys, sort=False, dropna=False)
    ]
    columns = ["comparisons" if key == "between" else key for key in keys if key != "k"]
    print_rows(
        (*columns, "n", "detectable", "needed", "remark"),
        rows,
        title=f"{name}: {len(table):,} comparisons by metric{_describe_constants(table)}",
        numeric=_NUMERIC,
        notes=("Ranges: of the comparisons. Needed: for all of them. --all prints each.", *notes),
    )


def _render_range(
    table: pd.DataFrame, definitions: Mapping[str, Definition], keys: Sequence[str], places: int
) -> list[str]:
    rows = to_records(table)
    heading = definitions[format_title(rows[0]["metric"], rows[0]["k"])].heading
    n_missing = int(table["detectable"].isna().sum())
    unknown = int((table["remark"] != "").sum()) - n_missing
    remarks = [
        *[f"{n_missing:,} undefined"] * (n_missing > 0),
        *[f"{unknown:,} without a number"] * (unknown > 0),
    ]
    texts = {**rows[0], "metric": heading, "between": f"{len(rows):,} of {rows[0]['between']}"}
    return [
        *(str(texts[key]) for key in keys if key != "k"),
        _format_range(table["n"], lambda n: f"{n:,.0f}"),
        _format_range(table["detectable"], lambda value: format_value(value, places)),
        "" if table["needed"].isna().all() else f"{table['needed'].max():,.0f}",
        ", ".join(remarks),
    ]


def _format_range(values: pd.Series, render: Callable[[float], str]) -> str:
    """Return the smallest and the largest value, or one of them if they are the same text."""
    known = values.dropna()
    if known.empty:
        return ""
    return " to ".join(dict.fromkeys(render(float(end)) for end in (known.min(), known.max())))


def _name_metric(row: Mapping[str, Any], definitions: Mapping[str, Definition]) -> str:
    metric = definitions[format_title(row["metric"], row["k"])]
    return metric.describe_value(row["group"], row["target"])


def _list_varying(table: pd.DataFrame) -> list[str]:
    return [key for key in _SHARED if len({*table[key].astype(str)}) > 1]


def _describe_constants(table: pd.DataFrame) -> str:
    """Return what all rows share: `` (dataset demo, seed 42, fold 1, unit user)``."""
    varying = _list_varying(table)
    constants = [f"{key} {table[key].iloc[0]}" for key in _SHARED if key not in varying]
    return f" ({', '.join(constants)})" if constants else ""


def sort_by_interest(table: pd.DataFrame, definitions: Mapping[str, Definition]) -> pd.DataFrame:
    """Return the comparisons of models over all queries first, then those within a model."""

    def rank(row: Mapping[str, Any]) -> int:
        if row["between"] != "models":
            return 1
        is_gap = bool(definitions[format_title(row["metric"], row["k"])].gap)
        return 2 if is_gap or row["group"] else 0

    ranks = pd.Series([*map(rank, to_records(table))], table.index, dtype="int64")
    return table.loc[ranks.sort_values(kind="stable").index]


def _count_places(table: pd.DataFrame) -> dict[str, int]:
    """Return the number of decimals for each metric."""
    columns = table.groupby("metric")[["difference", "detectable"]]
    return {str(metric): count_decimals(rows.to_numpy().ravel()) for metric, rows in columns}


def _render_numbers(row: Mapping[str, Any], places: int) -> list[str]:
    return [
        f"{row['n']:,}",
        format_value(row["difference"], places),
        "" if math.isnan(row["detectable"]) else format_value(row["detectable"], places),
        _format_needed(row),
        row["remark"],
    ]


def _format_needed(row: Mapping[str, Any]) -> str:
    if math.isnan(row["needed"]):
        return ""
    total = f"{row['needed']:,.0f}"
    if math.isnan(row["needed_a"]):
        return total
    return f"{total} ({row['needed_a']:,.0f} + {row['needed_b']:,.0f})"


def explain_power(table: pd.DataFrame, difference: float | None, power: float) -> list[str]:
    """Return what the columns of the tables mean."""
    share = f"{power:.0%} of such runs"
    notes = [
        f"Detectable: the smallest true difference that a test of this run finds in {share}.",
        *(_explain_level(str(name), rows) for name, rows in table.groupby("correction")),
    ]
    if difference is not None:
        text = f"Needed: the number of units that finds a true difference of {difference:g}"
        notes.append(f"{text} in {share}; for groups, of both (a + b) in the shares of the run.")
    if (table["given"] != "").any():
        notes.append("Given: what stays as in this run while the other number changes.")
    return notes


def _explain_level(correction: str, rows: pd.DataFrame) -> str:
    levels = ", ".join(f"{level:.2g}" for level in sorted({*rows["alpha"]}))
    if correction == "none":
        return f"Level of a single test: {levels}, not corrected."
    bound = "" if correction == "bonferroni" else f", which is a bound for {correction}"
    return f"Level of a single test: {levels} (alpha divided by the family size{bound})."
