"""What a run could have seen, and how many units a difference needs: ``recbias power``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.errors import MissingEvidence, OutOfRange
from recbias.core.measurements.columns import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.core.measurements.ranges import read_bounds
from recbias.runner.power.power_designs import (
    UnitDesign,
    compare_groups,
    keep_shares,
    scale_interval,
)
from recbias.runner.power.power_of_prompts import (
    count_templates,
    cross_prompts,
    select_shares,
    split_label_gap,
)
from recbias.runner.power.power_tables import PowerTables, make_key
from recbias.statistics.interval_errors import UNTESTABLE, find_least_p
from recbias.statistics.uncertain.group_means import TEST as UNCERTAIN

KEY_COLUMNS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS, "test", "between", "a", "b")
"""The columns of ``significance.csv`` that identify a comparison."""

POWER_COLUMNS = (
    *KEY_COLUMNS,
    *("unit", "given", "n", "difference", "alpha", "correction", "detectable"),
    *("needed", "needed_a", "needed_b", "remark"),
)
"""The columns of ``compute_power_rows``."""

_DISTANCES = frozenset({"difference", "std", "ugf", "mad"})
"""Gaps that are distances between means."""

OF_SHARES = frozenset({"welch_t", "overlap_t"})
"""Tests of two groups, whose degrees of freedom grow in proportion to the number of units."""


@dataclass(frozen=True, kw_only=True)
class PowerQuestion:
    """What is asked of a run.

    Args:
        difference: The difference to find, or None to ask for the detectable one only.
        power: The probability of a significant result.
        alpha: The level before correction; by default that of the run.

    Raises:
        OutOfRange: A difference not above 0, a level outside 0 and 1, or a power that is not
            between the level and 1.
    """

    difference: float | None = None
    power: float = 0.8
    alpha: float | None = None

    def __post_init__(self) -> None:
        """Refuse what has no answer."""
        level = 0.05 if self.alpha is None else self.alpha
        if self.difference is not None and not 0 < self.difference < math.inf:
            _refuse("--difference", "above 0", self.difference)
        if not 1e-12 <= level < 1:
            _refuse("--alpha", "above 0 and below 1", level)
        if not level < self.power < 1:
            _refuse("--power", "above alpha and below 1", self.power)


def _refuse(option: str, bounds: str, value: float) -> None:
    remedy = {"--power": "give --power 0.8", "--alpha": "give --alpha 0.05"}
    message = f"must be a number {bounds}, not {value:g}"
    raise OutOfRange(message, where=option, remedy=remedy.get(option, "give --difference 0.01"))


def compute_power_rows(run: PowerTables, question: PowerQuestion) -> pd.DataFrame:
    """Return what each comparison of a run could have found, and the units that it needs.

    The standard error of a comparison is that of its interval; two groups of other units are
    scaled by their variances and shares, or by their interval if those are not in the tables (sets
    of sentences, groups that share units, groups known as probabilities);
    names crossed with templates have two rows, one with the templates of the run and one with its
    names. The level of a test is divided by the size of its
    family (for Holm and Benjamini-Hochberg this is an upper bound of the number of units).
    Comparisons over folds and seeds replace those of each fold and seed. ``UNTESTABLE`` have no
    row.

    Returns:
        ``POWER_COLUMNS``: ``detectable`` is the smallest difference that the run finds with the
        power, ``needed`` the number of units, and ``needed_a`` and ``needed_b`` those of each
        group. A number that does not exist is NaN, with a remark.

    Raises:
        MissingEvidence: The run compares nothing.
    """
    comparisons = _select_comparisons(run.significance)
    if comparisons.empty:
        message = "the run compares neither models nor groups"
        remedy = "add `tests: [paired_t]` or a metric with `by:` to the spec, and run it again"
        raise MissingEvidence(message, remedy=remedy)
    rows = [
        _answer(run, row, design, question)
        for row in comparisons.to_dict("records")
        for design in _find_designs(run, {str(name): value for name, value in row.items()})
    ]
    return pd.DataFrame(rows, columns=list(POWER_COLUMNS))


def _select_comparisons(significance: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons, without those of single folds if there are some over all folds.

    Of the tests within models, only those of metrics by group are made over all folds.
    """
    significance = significance[~significance["test"].isin(UNTESTABLE)]
    averaged = (significance[["seed", "fold"]].astype(str) == ALL).any(axis=1)
    between_models = significance["between"] == "models"
    metrics = significance["metric"].where(~between_models, "")
    has_average = averaged.groupby([between_models, metrics]).transform("any")
    return significance[averaged | ~has_average]


def _find_designs(run: PowerTables, row: Mapping[str, Any]) -> Sequence[UnitDesign]:
    unit = run.name_unit(row)
    interval = scale_interval(row, unit)
    if run.units.get(row["metric"]) == "item":
        return [replace(interval, obstacle="users and items vary: no number of either")]
    if row["between"] == "models":
        return _cross_models(run, row) or [interval]
    if row["test"] == UNCERTAIN:
        return [keep_shares(row, unit)]
    rows = {group["group"]: group for group in _list_groups(run, row)}
    sides = [rows[row[side]] for side in ("a", "b") if row[side] in rows]
    grouped = compare_groups(row, sides, unit)
    if grouped is None:
        return [keep_shares(row, unit) if row["test"] in OF_SHARES else interval]
    return (_split_label(run, row) if row["test"] == "permutation" else []) or [grouped]


def _list_groups(run: PowerTables, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        group for group in run.groups.get(make_key(row), []) if group["target"] == row["target"]
    ]


def _cross_models(run: PowerTables, row: Mapping[str, Any]) -> list[UnitDesign]:
    values = run.select_prompts(row)
    if not values or not values[0].index.equals(values[1].index):
        return []
    return cross_prompts(values[0].index, (values[0] - values[1]).to_numpy(np.float64))


def _split_label(run: PowerTables, row: Mapping[str, Any]) -> list[UnitDesign]:
    """Return the designs of names and templates, if the run has the ``variance_split`` too."""
    shared = ("label", "attribute", "k")
    requested = run.definitions.get(row["metric"], {}).get("parameters", {})
    groups = [group for group in _list_groups(run, row) if group["group"] != "neutral"]
    for metric, entry in run.definitions.items():
        parameters = entry.get("parameters", {})
        is_split = entry.get("name") == "variance_split"
        if not is_split or any(parameters.get(name) != requested.get(name) for name in shared):
            continue
        shares = select_shares(run.groups.get(make_key(row, metric), []))
        n_templates = count_templates(run.query_ids, _list_names(run, row)) if shares else 0
        form, sides = str(parameters.get("form", "squares")), (str(row["a"]), str(row["b"]))
        return split_label_gap(groups, sides, shares, form=form, n_templates=n_templates)
    return []


def _list_names(run: PowerTables, row: Mapping[str, Any]) -> Sequence[object]:
    if run.per_unit is None:
        return []
    rows = run.per_unit[(run.per_unit["metric"] == row["metric"])]
    return list(rows.loc[rows["unit"].astype(str) == "name", "unit_id"].unique())


def _answer(
    run: PowerTables, row: Mapping[Any, Any], design: UnitDesign, question: PowerQuestion
) -> dict[str, Any]:
    level = row["alpha"] if question.alpha is None else question.alpha
    alpha = level if row["correction"] == "none" else level / max(row["family_size"], 1.0)
    keys = {name: row[name] for name in KEY_COLUMNS}
    units = {"unit": design.unit, "given": design.given, "n": design.n}
    found = design.detect(alpha, question.power)
    least = find_least_p(str(row["test"]), float(design.n))
    if least > alpha and "remark" not in found:
        found = {"remark": f"no p-value of {design.n:,} {design.unit}s is below {least:.2g}"}
    requested = {"difference": row["difference"], "alpha": alpha}
    requested |= {"correction": row["correction"], "remark": ""}
    answer = {**keys, **units, **requested, **found}
    if question.difference is None or answer["remark"]:
        return answer
    width, bounds = _find_range(run.definitions, str(row["metric"]))
    if question.difference > width:
        return {**answer, "remark": f"the difference is larger than the range {bounds}"}
    return {**answer, **design.count_needed(question.difference, alpha, question.power)}


def _find_range(definitions: Mapping[str, Mapping[str, Any]], metric: str) -> tuple[float, str]:
    """Return the width of the range of a metric, infinite if it is not bounded by numbers.

    The gap between means of a metric is at most as wide as the range of that metric, which is
    known if the run has the metric too.
    """
    definition = definitions.get(metric, {})
    low, high = read_bounds(str(definition.get("values", "")))
    if _get_gap(definition) in _DISTANCES:
        of_means = [
            read_bounds(str(other.get("values", "")))
            for other in definitions.values()
            if other.get("name") == definition.get("name") and _get_gap(other) in {"", "groups"}
        ]
        low, high = min([(low, high), *of_means], key=lambda bounds: bounds[1] - bounds[0])
    return high - low, f"{low:g} to {high:g}"


def _get_gap(definition: Mapping[str, Any]) -> str:
    return str((definition.get("parameters") or {}).get("gap") or "")
