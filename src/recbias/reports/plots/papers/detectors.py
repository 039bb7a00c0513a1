"""Stereotype exposure by several detectors, beside each other for each model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Interval, describe_lines
from recbias.reports.plots.papers import forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGINS = ("REC-ST", "MRR_BAD", "HIT_BAD")

Exposure = Mapping[str, Mapping[str, Definition]]
"""The metric of each detector, by kind of stereotype."""


def draw_detectors(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each metric of stereotype exposure that has labels of several detectors.

    Raises:
        MissingEvidence: A metric is defined for no detector.
    """
    for plugin in PLUGINS:
        exposure = _group_by_kind(run, plugin)
        if max(map(len, exposure.values()), default=0) < 2:
            continue
        detectors = list(dict.fromkeys(name for kind in exposure.values() for name in kind))
        panels = [
            forest.Panel(kind, lines)
            for kind, metrics in exposure.items()
            if (lines := _build_rows(run, dataset, metrics, detectors))
        ]
        if not panels:
            raise MissingEvidence(f"{plugin} is defined for no detector")
        metrics = [metric for kind in exposure.values() for metric in kind.values()]
        plot = forest.draw_forest(
            forest.Forest(
                panels=tuple(panels),
                series=tuple(detectors),
                axis=plugin,
                note=rows.describe_direction(metrics[0]),
            ),
            name=name_file(f"detectors-{plugin}"),
            title=f"{plugin} by each detector",
            caption=_write_caption(panels, detectors),
        )
        yield rows.add_note(plot, rows.describe_undrawn(run, metrics, dataset))


def _group_by_kind(run: RunTables, plugin: str) -> Exposure:
    """Return the metrics without groups, by kind and by detector: ``ngim.gender`` has both.

    A label without a full stop is a detector by itself, and a grade belongs to its kind. The other
    settings are part of the detector's name.
    """
    exposure: dict[str, dict[str, Definition]] = {}
    for metric in rows.find_metrics(run, plugin):
        if metric.parameters.get("gap") is not None:
            continue
        detector, _, kind = str(metric.parameters.get("label", "")).rpartition(".")
        if not detector:
            detector, kind = kind, ""
        threshold = metric.parameters.get("threshold")
        settings = [
            *(["graded"] if kind.endswith("_score") and threshold is None else []),
            *([f"from {threshold}"] if threshold is not None else []),
        ]
        name = ", ".join([detector, *settings])
        exposure.setdefault(kind.removesuffix("_score"), {}).setdefault(name, metric)
    return exposure


def _build_rows(
    run: RunTables, dataset: str, metrics: Mapping[str, Definition], detectors: list[str]
) -> tuple[forest.Row, ...]:
    """Return a row for each model, with a mark for each detector that has a value."""
    marks: dict[str, list[forest.Mark]] = {}
    for detector, metric in metrics.items():
        for row in rows.list_rows(run, metric, dataset):
            if row["group"] or row["target"]:
                continue
            interval = Interval.of_row(row)
            title = f"{row['model']}, {detector}: {interval.describe()}, n {row['n']:,.0f}"
            mark = forest.Mark(interval, detectors.index(detector), title)
            marks.setdefault(row["model"], []).append(mark)
    return tuple(forest.Row(model, tuple(marks[model])) for model in rows.sort_models(run, marks))


def _write_caption(panels: list[forest.Panel], detectors: list[str]) -> str:
    sentences = [f"The mean over the users, by {rows.join_names(detectors)}."]
    for panel in panels:
        spreads = []
        for row in panel.rows:
            marks = sorted(row.marks, key=lambda mark: mark.interval.value)
            if len(marks) > 1:
                difference = marks[-1].interval.value - marks[0].interval.value
                if difference > 0:
                    spreads.append((difference, row.label, marks[0], marks[-1]))
        if spreads:
            difference, model, low, high = max(spreads, key=lambda spread: spread[0])
            prefix = f"{panel.title}: the" if panel.title else "The"
            names = f"{detectors[high.series]} and {detectors[low.series]}"
            sentences.append(
                f"{prefix} detectors differ most for {model}: {names} by {difference:.3f}."
            )
    intervals = [mark.interval for panel in panels for row in panel.rows for mark in row.marks]
    return " ".join([*sentences, *describe_lines(intervals)])
