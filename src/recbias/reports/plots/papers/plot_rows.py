"""The rows of a run that a picture is drawn from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.input_files import has_file
from recbias.core.suggestions import normalize_name
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.drawing.svg import fits_axis
from recbias.reports.views.definitions import Definition, definitions, title_of
from recbias.reports.views.headline import ALL, datasets, headline, models
from recbias.reports.views.rounding import decimals, shown
from recbias.reports.views.run_tables import RunTables, rows_of

FEW_DATASETS = 3
"""With more datasets than this only the figures over all of them are drawn."""

MOST_MODELS = 6
"""Pictures of one model each are drawn of so many; tables have the others."""

_CROSSED = re.compile("&[^&]*=|[<>!]=?|==")
"""A label of several parts, or a condition."""

Row = Mapping[str, Any]

Namer = Callable[[str], str]
"""From what a picture shows to the name of its file."""


def metrics_of(run: RunTables, name: str) -> list[Definition]:
    """Return the metrics of the run whose plug-in has this name."""
    return [
        each
        for each in definitions(run).values()
        if normalize_name(each.name) == normalize_name(name)
    ]


def definitions_where(run: RunTables, parameters: Mapping[str, Any]) -> list[Definition]:
    """Return the metrics of the run that have these parameters."""
    wanted = parameters.items()
    return [each for each in definitions(run).values() if wanted <= dict(each.parameters).items()]


def shown_datasets(run: RunTables) -> list[str]:
    """Return the datasets that have pictures of their own, what is over all of them first."""
    found = datasets(run)
    return [ALL] if ALL in found and len(found) > FEW_DATASETS + 1 else found


def whole_datasets(run: RunTables) -> list[str]:
    """Return the datasets themselves, without what is over all of them."""
    return [each for each in datasets(run) if each != ALL]


def rows_for(run: RunTables, known: Definition, dataset: str) -> list[Row]:
    """Return a metric's rows on one dataset, the mean over seeds and folds where there is one.

    Rows whose figure is undefined or cannot be drawn are left out.
    """
    found = _by_title(run).get((known.title, dataset), [])
    return [row for row in found if fits_axis(row["value"])]


def undrawn(run: RunTables, metrics: Iterable[Definition], dataset: str, **part: str) -> str:
    """Return how many figures of metrics are left out because they cannot be drawn.

    Args:
        run: The run.
        metrics: The metrics.
        dataset: The dataset.
        part: What the rows are of: ``model``, ``group``, ``target``.
    """
    rows = (row for known in metrics for row in _by_title(run).get((known.title, dataset), []))
    own = [row for row in rows if all(row[column] == value for column, value in part.items())]
    return svg.undrawn(
        sum(not math.isnan(row["value"]) for row in own if not fits_axis(row["value"]))
    )


def add_note(picture: Picture, note: str) -> Picture:
    """Return a picture with a sentence more in its caption, blank for none."""
    return replace(picture, caption=f"{picture.caption} {note}") if note else picture


def split_drawable(found: pd.DataFrame, *columns: str) -> tuple[pd.DataFrame, str]:
    """Return the rows whose figures can all be drawn, and what a caption says of the others."""
    fits = (found[list(columns)].abs() <= svg.LARGEST).all(axis=1)
    return found[fits], svg.undrawn(int((~fits).sum()))


def parts_of(run: RunTables, known: Definition, dataset: str, column: str) -> list[str]:
    """Return the groups or targets that a metric's rows are of, of undefined ones too."""
    found = distinct(_by_title(run).get((known.title, dataset), []), column)
    return [each for each in found if each]


@lru_cache(maxsize=2)
def _by_title(run: RunTables) -> Mapping[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(headline(run, run.metrics)):
        found.setdefault((title_of(row["metric"], row["k"]), row["dataset"]), []).append(row)
    return found


def units_of(run: RunTables, known: Definition, dataset: str) -> pd.DataFrame:
    """Return a metric's value for each unit, its mean over seeds and folds.

    Returns:
        ``model``, ``group``, ``target``, ``unit_id`` and ``value``, in the order of the file; no
        rows without ``per_unit.parquet``.
    """
    keys = ["model", "group", "target", "unit_id"]
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*keys, "value"])
    import pyarrow.parquet as pq

    metric = known.title.rpartition("@")[0] or known.title
    wanted = [("metric", "in", [metric, known.title]), ("dataset", "==", dataset)]
    columns = [*keys, "seed", "fold", "metric", "k", "value"]
    found: pd.DataFrame = pq.read_table(path, columns=columns, filters=wanted).to_pandas()
    pairs = found[["metric", "k"]].drop_duplicates().itertuples(index=False)
    ours = [(metric, k) for metric, k in pairs if title_of(metric, k) == known.title]
    here = np.zeros(len(found), dtype=bool)
    for metric, k in ours:
        same = found["k"].isna() if math.isnan(k) else found["k"] == k
        here |= ((found["metric"] == metric) & same).to_numpy()
    found = found[here & found["value"].notna().to_numpy()].astype(dict.fromkeys(keys, object))
    if len(found[["seed", "fold"]].drop_duplicates()) < 2:
        return found[[*keys, "value"]].reset_index(drop=True)
    return found.groupby(keys, sort=False)["value"].mean().reset_index()


def in_order(run: RunTables, present: Iterable[str]) -> list[str]:
    """Return models in the order of the run."""
    found = set(present)
    return [each for each in models(run) if each in found]


def distinct(rows: Iterable[Row], column: str) -> list[str]:
    """Return the values of a column, each once, in the order they come."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def interval(row: Row) -> Interval:
    """Return a row's figure with its interval."""
    return Interval(row["value"], row["ci_low"], row["ci_high"])


def said(figure: Interval) -> str:
    """Return a figure with its interval in words."""
    places = min(decimals(figure.ends()), 3)
    if len(figure.ends()) < 3:
        return shown(figure.value, places)
    ends = f"{shown(figure.low, places)} to {shown(figure.high, places)}"
    return f"{shown(figure.value, places)} (95% interval {ends})"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names in a line, the last after *and*.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ('a, b and c', 'a, b and 1 more')
    """
    kept = list(names[:most])
    if len(names) > most:
        kept.append(f"{len(names) - most} more")
    return " and ".join(filter(None, [", ".join(kept[:-1]), kept[-1]])) if kept else ""


def with_intervals(figures: Iterable[Interval]) -> bool:
    """Return whether any figure has an interval."""
    return any(len(each.ends()) == 3 for each in figures)


def value_of(label: str) -> str:
    """Return the value of a label of one part; crossings and conditions stay as they are.

    >>> value_of("location=office"), value_of("race=black&gender=F"), value_of("age < 18")
    ('office', 'race=black&gender=F', 'age < 18')
    >>> value_of("categories=Coffee & Tea")
    'Coffee & Tea'
    """
    if _CROSSED.search(label):
        return label
    return label.partition("=")[2] or label


def heads(labels: Iterable[str]) -> str:
    """Return what several labels are values of, where it is one thing.

    >>> heads(["race=black", "race=white"]), heads(["age < 18", "not age < 18"])
    ('race', '')
    """
    parts = [each.split("&") if _CROSSED.search(each) else [each] for each in labels]
    found = {"&".join(part.partition("=")[0] for part in each) for each in parts}
    named = all("=" in part for each in parts for part in each)
    return found.pop() if len(found) == 1 and named else ""
