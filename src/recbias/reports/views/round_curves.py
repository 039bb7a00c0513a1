"""The values of metrics over the rounds of a feedback loop."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np

from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.headline import list_models
from recbias.reports.views.run_tables import RunTables, to_records


@dataclass(frozen=True)
class RoundCurve:
    """The values of one model, group and target over rounds: means over seeds and folds.

    Args:
        values: The value by round, in order; NaN is undefined.
    """

    metric: Definition
    model: str
    group: str
    target: str
    values: Mapping[int, float]


def list_round_curves(run: RunTables, dataset: str) -> list[RoundCurve]:
    """Return the curves of a dataset by metric, group, target and model; none without feedback.

    The ratio and the standard deviation of groups are left out where their difference is there.
    """
    if run.rounds is None:
        return []
    table = run.rounds[run.rounds["dataset"] == dataset]
    columns = ["metric", "k", "group", "target", "model", "round"]
    definitions = collect_definitions(run)
    gaps = {row.groups_heading for row in definitions.values() if row.gap == "difference"}
    values: dict[tuple[str, ...], dict[int, list[float]]] = {}
    for row in to_records(table[[*columns, "value"]]):
        title = format_title(row["metric"], row["k"])
        keys = (title, str(row["group"]), str(row["target"]), str(row["model"]))
        values.setdefault(keys, {}).setdefault(int(row["round"]), []).append(row["value"])
    models = {model: at for at, model in enumerate(list_models(run))}
    places = {title: at for at, title in enumerate(definitions)}
    curves = [
        RoundCurve(
            metric=definitions[title],
            model=model,
            group=group,
            target=target,
            values={number: float(np.mean(points)) for number, points in rounds.items()},
        )
        for (title, group, target, model), rounds in values.items()
        if title in definitions and not _is_beside(definitions[title], gaps)
    ]
    return sorted(
        curves,
        key=lambda curve: (
            *(places[curve.metric.title], curve.group, curve.target),
            models.get(curve.model, len(models)),
        ),
    )


def _is_beside(metric: Definition, gaps: Container[str]) -> bool:
    """Return whether a metric is the ratio or spread of groups whose difference is shown."""
    return metric.gap in {"ratio", "std"} and metric.groups_heading in gaps
