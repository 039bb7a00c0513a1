"""The main results of a run as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recbias.reports.markup import to_line
from recbias.reports.views.comparisons import (
    Comparisons,
    collect_comparisons,
    describe_methods,
    find_wins,
)
from recbias.reports.views.definitions import (
    Definition,
    collect_definitions,
    select_accuracy_metric,
    select_popularity_metric,
)
from recbias.reports.views.grid import Table
from recbias.reports.views.rounding import format_count
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.wide_tables import build_summary

_EXTREMES = {"higher": "the highest", "lower": "the lowest", "zero": "the nearest to 0"}


def summarize_findings(run: RunTables) -> list[str]:
    """Return sentences on the best models and on the number of significant comparisons."""
    summary = build_summary(run)
    comparisons = collect_comparisons(run)
    sentences = [_describe_best(summary, metric, comparisons) for metric in _select_metrics(run)]
    return [*filter(None, sentences), *_count_significant(comparisons)]


def _select_metrics(run: RunTables) -> list[Definition]:
    """Return the metrics to name the best model by; only metrics with a direction have one."""
    definitions = collect_definitions(run).values()
    metrics = [select_accuracy_metric(definitions), select_popularity_metric(definitions)]
    directed = [metric for metric in definitions if metric.direction != "none"]
    return [metric for metric in metrics if metric in directed] if any(metrics) else directed[:1]


def _count_significant(comparisons: Sequence[Comparisons]) -> Iterator[str]:
    """Yield a sentence for each kind of sides: models, then what is compared within a model."""
    kinds: dict[str, list[Comparisons]] = {}
    for group in comparisons:
        kinds.setdefault(group.between, []).append(group)
    for between, groups in kinds.items():
        significant = sum(group.significant for group in groups)
        total = format_count(sum(len(group.rows) for group in groups), "comparison")
        yield (
            f"{significant:,} of {total} between {between} {'is' if significant == 1 else 'are'} "
            f"significant ({describe_methods(groups)})."
        )


def _describe_best(table: Table, metric: Definition, comparisons: Sequence[Comparisons]) -> str:
    """Return who is best in the first dataset of the summary; blank where nobody is."""
    titles = [column.title for column in table.columns]
    if metric.title not in titles:
        return ""
    column, name_column = titles.index(metric.title), titles.index("model")
    rows = [row for row in table.rows if row[:name_column] == table.rows[0][:name_column]]
    winners = [row for row in rows if row[column].best]
    if not winners or len(rows) < 2:
        return ""
    names = [row[name_column].text for row in winners]
    cell = winners[0][column]
    dataset = rows[0][0].text if name_column else ""
    tested = [
        group
        for group in comparisons
        if group.title == metric.title and dataset in {"", group.place[0]}
    ]
    interval = f" (95% interval {cell.interval})" if cell.interval else ""
    return (
        f"{' and '.join(map(to_line, names))} {'have' if len(names) > 1 else 'has'} the best "
        f"{metric.title}{f' on {to_line(dataset)}' if dataset else ''}, "
        f"{_EXTREMES[metric.direction]} of {format_count(len(rows), 'model')}: {cell.text}"
        f"{interval}{_describe_margin(names, tested)}."
    )


def _describe_margin(names: Sequence[str], comparisons: Sequence[Comparisons]) -> str:
    """Return how many models the single best one is significantly better than."""
    tested = [group for group in comparisons if group.compares_models and not group.part]
    if not tested or len(names) > 1:
        return ""
    wins = find_wins(tested[0])
    rivals = len(wins) - 1
    if names[0] not in wins or rivals < 1:
        return ""
    count = len(wins[names[0]])
    if count == rivals:
        return ", significantly better than every other model"
    return f", significantly better than {count} of the other {rivals}"
