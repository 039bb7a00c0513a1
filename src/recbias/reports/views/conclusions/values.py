"""What is said about the metrics that no test compares: values, intervals, undefined values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from recbias.core.measurements.columns import DATASET
from recbias.reports.markup import to_line
from recbias.reports.views.comparisons import Row
from recbias.reports.views.conclusions.phrases import Answer, count_units
from recbias.reports.views.conclusions.questions import Question, find_worst_groups
from recbias.reports.views.conclusions.units import name_unit
from recbias.reports.views.definitions import (
    DIRECTION_LABELS,
    Definition,
    collect_definitions,
    flag_best,
    format_title,
)
from recbias.reports.views.headings import name_group
from recbias.reports.views.headline import (
    collect_estimates,
    list_single_datasets,
    select_headline,
)
from recbias.reports.views.rounding import (
    count_decimals,
    format_interval,
    format_value,
)
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.statistics.group_gaps import MAX_PAIRS

_EXTREMES = {"higher": "the highest", "lower": "the lowest", "zero": "the nearest to 0"}
_NO_TEST = "No test compares the models."
_NO_TEST_BELOW = "No test compares the models, here and in the conclusions below."


def describe_values(
    run: RunTables, questions: Sequence[Question]
) -> Iterator[tuple[str, str, Answer]]:
    """Yield metric, dataset and an answer for the metrics that no test compares as a whole.

    That no test compares the models is said once, of all of them.
    """
    described = [*_describe_each(run, questions)]
    untested = [at for at, (*_, answer) in enumerate(described) if answer.detail == _NO_TEST]
    for at, (title, dataset, answer) in enumerate(described):
        detail = answer.detail
        if len(untested) > 1 and at in untested:
            detail = _NO_TEST_BELOW if at == untested[0] else ""
        yield title, dataset, answer._replace(detail=detail)


def _describe_each(
    run: RunTables, questions: Sequence[Question]
) -> Iterator[tuple[str, str, Answer]]:
    several = len(list_single_datasets(run)) > 1
    compared = {(item.metric.title, item.dataset) for item in questions}
    definitions = collect_definitions(run)
    rows_by_metric: dict[tuple[str, str], list[Row]] = {}
    for row in to_records(select_headline(run, collect_estimates(run))):
        title = format_title(row["metric"], row["k"])
        dataset = row["dataset"] if several else ""
        if row["model"] != DATASET and not row["target"] and (title, dataset) not in compared:
            rows_by_metric.setdefault((title, dataset), []).append(row)
    for (title, dataset), rows in rows_by_metric.items():
        metric = definitions[title]
        overall = [row for row in rows if not row["group"]]
        unit = name_unit(run, metric)
        if metric.gap in {"ratio", "std"} or _describes_gap(metric, compared, dataset):
            continue
        answer = _describe(metric, overall, unit) or _describe_groups(metric, rows, unit)
        if answer:
            where = f" on {to_line(dataset)}" if dataset else ""
            sentence = f"{to_line(metric.heading)}{where}: {answer.sentence}"
            yield title, dataset, answer._replace(sentence=sentence)


def _describes_gap(metric: Definition, compared: set[tuple[str, str]], dataset: str) -> bool:
    """Return whether the groups of this gap are compared by tests."""
    if not metric.gap:
        return False
    groups = metric.title.replace(f", gap={metric.gap}", "")
    return (groups, dataset) in compared


def _describe(metric: Definition, rows: Sequence[Row], unit: str) -> Answer | None:
    defined = [row for row in rows if not math.isnan(row["value"])]
    names = [to_line(row["model"]) for row in rows if math.isnan(row["value"])]
    undefined = f"undefined for {', '.join(names)}" if names else ""
    if not defined:
        return Answer(f"{undefined}.", "") if names else None
    if len(defined) == 1:
        answer = _describe_single(metric, defined[0], unit)
    else:
        answer = _describe_several(metric, defined)
    ending = f"; {undefined}." if undefined else "."
    return answer._replace(sentence=f"{answer.sentence}{ending}")


def _describe_single(metric: Definition, row: Row, unit: str) -> Answer:
    """Return a value with its interval; where 0 is neutral, also where the interval lies."""
    places = count_decimals([row["value"]])
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    bounds = f"95% interval {interval}" if interval else "no interval"
    verdict = _compare_with_zero(row) if metric.direction == "zero" or metric.gap else ""
    value = format_value(row["value"], places)
    direction = DIRECTION_LABELS[metric.direction].capitalize()
    n = "" if math.isnan(row["n"]) else count_units(row["n"], unit)
    missing = f"undefined for {row['undefined']:,.0f}" if row["undefined"] > 0 else ""
    counts = ", ".join(filter(None, [n, missing]))
    return Answer(
        f"{to_line(row['model'])} has {value} ({bounds}){verdict}",
        f"{direction}: {counts}." if counts else f"{direction}.",
    )


def _compare_with_zero(row: Row) -> str:
    if math.isnan(row["ci_low"]) or math.isnan(row["ci_high"]):
        return ""
    if row["ci_low"] <= 0 <= row["ci_high"]:
        return ", an interval that includes 0"
    return f", an interval {'above' if row['ci_low'] > 0 else 'below'} 0"


def _describe_several(metric: Definition, rows: Sequence[Row]) -> Answer:
    """Return the best and the worst value, with the remark that no test compares them."""
    places = count_decimals(row["value"] for row in rows)
    texts = [f"{to_line(row['model'])} {format_value(row['value'], places)}" for row in rows]
    if len(rows) <= 3:
        text = ", ".join(texts)
    else:
        order = sorted(range(len(rows)), key=lambda at: float(rows[at]["value"]))
        text = f"from {texts[order[0]]} to {texts[order[-1]]}, {len(rows):,} models"
    flags = flag_best([row["value"] for row in rows], metric.direction)
    best = [to_line(row["model"]) for row, flag in zip(rows, flags, strict=True) if flag]
    nearest = metric.direction == "zero" and len(best) == 1
    remark = f" ({best[0]} {_EXTREMES['zero']})" if nearest else ""
    return Answer(f"{text}{remark}", _NO_TEST)


def _describe_groups(metric: Definition, rows: Sequence[Row], unit: str) -> Answer | None:
    """Return the worst-off group of the only model, where no test compares the groups."""
    by_model: Mapping[str, list[Row]] = {}
    for row in rows:
        by_model = {**by_model, row["model"]: [*by_model.get(row["model"], []), row]}
    worst = {
        model: found
        for model, groups in by_model.items()
        if len(found := find_worst_groups(groups, metric)) == 1
    }
    if not worst:
        return None
    places = count_decimals(found[0]["value"] for found in worst.values())
    by = str(metric.parameters.get("by", ""))
    texts = [
        f"{to_line(name_group(found[0]['group'], by))} for {to_line(model)} "
        f"({format_value(found[0]['value'], places)}, {count_units(found[0]['n'], unit)})"
        for model, found in worst.items()
    ]
    more = f" and {len(texts) - 3} more models" if len(texts) > 3 else ""
    return Answer(
        f"worst off is {', '.join(texts[:3])}{more}.", _explain_no_pairs(metric, by_model)
    )


def _explain_no_pairs(metric: Definition, by_model: Mapping[str, Sequence[Row]]) -> str:
    """Return that no test compares the groups, and why if they have too many pairs."""
    least = int(metric.parameters.get("min_group") or 0)
    pairs = max(math.comb(sum(row["n"] >= least for row in rows), 2) for rows in by_model.values())
    if pairs <= MAX_PAIRS or metric.parameters.get("reference_group"):
        return "No test compares the groups."
    return (
        f"No test compares the groups in pairs: {pairs:,} pairs are more than {MAX_PAIRS:,}. Set "
        "min_group or reference_group, or group by conditions."
    )
