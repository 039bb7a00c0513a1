"""What a run could have seen: the smallest difference that each comparison finds, and its units.

Names crossed with templates have a number of both.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.errors import MissingEvidence, OutOfRange
from recbias.core.measures import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.reports.run import read_run, to_records
from recbias.reports.views import replace_groups
from recbias.runs.tables import Run, find_run
from recbias.statistics.bootstrap import NAME as BOOTSTRAP
from recbias.statistics.decomposition import CrossedDesign, estimate_components
from recbias.statistics.intervals import (
    MAX_UNITS,
    UNTESTABLE,
    ErrorBySize,
    ErrorOfMean,
    compute_detectable_difference,
    derive_error,
    find_least_p,
    find_sample_size,
    measure_crossed_error,
    measure_group_error,
    scale_error,
)
from recbias.statistics.uncertain import TEST as UNCERTAIN

_BEYOND = 1e15
"""A number of units that stands for any number."""

_LEAST_OF_GROUPS = 4.0
"""The least number of units of two groups that have a variance each."""


@dataclass(frozen=True, eq=False)
class _UnitDesign:
    """The units of a comparison."""

    unit: str
    n: int
    measure_error: ErrorBySize
    smallest: float = 2.0
    shares: tuple[float, float] | None = None
    given: str = ""
    obstacle: str = ""

    def detect(self, alpha: float, power: float) -> dict[str, Any]:
        """Return the smallest difference that the run could have seen, with a remark."""
        if self.n < self.smallest:
            return {"remark": f"fewer than {self.smallest:,.0f} units"}
        error, df = self.measure_error(np.array(float(self.n)))
        if error == 0:
            return {"remark": f"undefined: no variance among the {self.n:,} {self.unit}s"}
        if np.isnan(error):
            return {"remark": "no interval"}
        detectable = compute_detectable_difference(error, df, alpha=alpha, power=power)
        return {"detectable": float(detectable)}

    def count_needed(self, difference: float, alpha: float, power: float) -> dict[str, Any]:
        """Return how many units a difference needs, of both groups and of each; with a remark."""
        if self.obstacle:
            return {"remark": self.obstacle}
        (needed,) = find_sample_size(
            self.measure_error, difference, smallest=[self.smallest], alpha=alpha, power=power
        )
        if math.isinf(needed):
            return {"remark": self._explain_unreachable(difference, alpha, power)}
        shares = self.shares or ()
        groups = [math.ceil(needed * share - 1e-9) for share in shares]
        sizes = dict(zip(("needed_a", "needed_b"), groups, strict=False))
        return {"needed": float(sum(groups) or needed), **sizes}

    def _explain_unreachable(self, difference: float, alpha: float, power: float) -> str:
        error, df = self.measure_error(np.array(_BEYOND))
        limit = compute_detectable_difference(error, df, alpha=alpha, power=power)
        if self.given and limit > difference:
            return f"no number of {self.unit}s suffices with {self.given}: at best {limit:.4g}"
        return f"more than {MAX_UNITS:,}"


def _scale_interval(row: Mapping[str, Any], unit: str) -> _UnitDesign:
    """Return the design of one sample of units, from the interval of a comparison."""
    (error, df), n = derive_error(row), float(row["n"])
    if math.isnan(n):
        fixed, obstacle = (np.asarray(error), np.asarray(df)), "the number of units is not known"
        return _UnitDesign(unit, 0, lambda _: fixed, smallest=0.0, obstacle=obstacle)
    if row["between"] == "models" and row["test"] != BOOTSTRAP and n > 1 and row["difference"]:
        error = 0.0 if math.isnan(row["ci_low"]) else error
    lost = n - df if math.isfinite(df) else 0.0
    measure_error = scale_error(np.asarray(error), np.asarray(df), np.asarray(n))
    return _UnitDesign(unit, int(n), measure_error, smallest=max(2.0, math.ceil(lost) + 1.0))


def _keep_shares(row: Mapping[str, Any], unit: str) -> _UnitDesign:
    """Return the design of groups of which only the interval of their difference is known."""
    (error, df), n = derive_error(row), float(row["n"])
    count = 0 if math.isnan(n) else int(n)

    def measure_error(m: FloatArray) -> ErrorOfMean:
        return np.asarray(error * np.sqrt(n / m)), np.asarray(df * m / n)

    smallest = math.ceil(n / df) if df > 0 else math.inf
    return _UnitDesign(unit, count, measure_error, smallest=max(_LEAST_OF_GROUPS, smallest))


def _compare_groups(
    row: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], unit: str
) -> _UnitDesign | None:
    """Return the design of two groups of other units, from their rows of ``metrics.csv``."""
    sizes, std = ([float(group[name]) for group in groups] for name in ("n", "std"))
    if len(groups) != 2 or np.isnan(std).any() or sum(sizes) != row["n"]:
        return None
    n = sum(sizes)
    shares = (sizes[0] / n, sizes[1] / n)
    measure_error = measure_group_error(np.square(std), np.array(shares))
    return _UnitDesign(unit, int(n), measure_error, math.ceil(2.0 / min(shares)), shares)


_NEUTRAL = "neutral"
"""The word of a prompt without a word in its id, which is no name."""


def cross_prompts(ids: Iterable[object], differences: FloatArray) -> list[_UnitDesign]:
    """Return the designs of names and of templates, if every name is in every template once.

    Both are samples: the variance of the mean difference is that of ``measure_crossed_error``,
    with the components of the differences. The id of a prompt is ``template:name``.
    """
    parts = pd.Series([str(name) for name in ids], dtype="str").str.partition(":")
    named = ((parts[2] != "") & (parts[2] != _NEUTRAL)).to_numpy()
    templates, template_names = pd.factorize(parts[0][named])
    names, words = pd.factorize(parts[2][named])
    if min(words.size, template_names.size) < 2:
        return []
    labels = np.zeros(words.size, dtype=np.intp)
    crossed = CrossedDesign.from_values(differences[named], names, templates, labels)
    if crossed.n.shape != (words.size, template_names.size) or not (crossed.n == 1).all():
        return []
    components = estimate_components(crossed)[0, 1:]
    n_names, n_templates = crossed.n.shape

    def measure_names(n: FloatArray) -> ErrorOfMean:
        return measure_crossed_error(components, n, n_templates)

    def measure_templates(n: FloatArray) -> ErrorOfMean:
        return measure_crossed_error(components, n_names, n)

    return [
        _UnitDesign("name", n_names, measure_names, given=f"{n_templates:,} templates"),
        _UnitDesign("template", n_templates, measure_templates, given=f"{n_names:,} names"),
    ]


@dataclass(frozen=True, eq=False)
class PowerTables:
    """The tables of a run that its power is computed from.

    Args:
        per_unit: ``per_unit.parquet``, or None if no metric has units.
    """

    metrics: pd.DataFrame
    significance: pd.DataFrame
    per_unit: pd.DataFrame | None
    manifest: Mapping[str, Any]

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of the manifest by their label."""
        return {entry["metric"]: entry for entry in self.manifest.get("metrics", [])}

    @cached_property
    def groups(self) -> Mapping[tuple[Any, ...], Mapping[str, Mapping[str, Any]]]:
        """The rows of ``metrics.csv`` by model, place, metric, cutoff and target, by group."""
        rows: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = defaultdict(dict)
        for row in to_records(self.metrics):
            rows[_make_key(row)][row["group"]] = row
        return rows

    @cached_property
    def units(self) -> Mapping[str, str]:
        """The unit of each metric that has one."""
        if self.per_unit is None:
            return {}
        pairs = self.per_unit[["metric", "unit"]].drop_duplicates().astype(str)
        return dict(pairs.itertuples(index=False, name=None))

    def name_unit(self, row: Mapping[str, Any]) -> str:
        """Return what a comparison counts: ``user``, ``sentence pair``, ..."""
        asked = {entry.get("unit", "unit") for entry in self.manifest.get("queries", [])}
        default = str(asked.pop()) if len(asked) == 1 else "unit"
        default = "name or template" if default == "prompt" else default
        declared = self.definitions.get(row["metric"], {}).get("unit", "")
        unit = self.units.get(row["metric"], default if declared in {"", "query"} else declared)
        if row["between"] == "groups" and unit == "item":
            return default  # the groups are of users, whatever the values of the metric are of
        is_of_sentences = (unit, row["test"]) == ("sentence_pair", "welch_t")
        return "sentence" if is_of_sentences else unit.replace("_", " ")

    def select_prompts(self, row: Mapping[str, Any]) -> list[pd.Series]:
        """Return the values of both models of a comparison by prompt; empty for other units."""
        if self.per_unit is None or self.units.get(row["metric"]) != "prompt":
            return []
        chosen = np.ones(len(self.per_unit), dtype=bool)
        for name in ("dataset", "seed", "fold", *METRIC_KEY_COLUMNS):
            chosen &= (self.per_unit[name].astype(str) == str(row[name])).to_numpy()
        rows = self.per_unit[chosen]
        models = [rows[rows["model"].astype(str) == row[side]] for side in ("a", "b")]
        return [frame.set_index("unit_id")["value"] for frame in models]


def _make_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    k = None if math.isnan(row["k"]) else row["k"]
    return (*(str(row[name]) for name in FIT_COLUMNS), row["metric"], k, row["target"])


_KEY_COLUMNS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS, "test", "between", "a", "b")
"""The columns of ``significance.csv`` that identify a comparison."""

_POWER_COLUMNS = (
    *_KEY_COLUMNS,
    *("unit", "given", "n", "difference", "alpha", "correction", "detectable"),
    *("needed", "needed_a", "needed_b", "remark"),
)
"""The columns of ``compute_power_rows``."""

_OF_SHARES = frozenset({"welch_t", "newcombe", "overlap_t"})
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
    usual = {"--power": 0.8, "--alpha": 0.05, "--half-width": 0.02}.get(option, 0.01)
    message = f"must be a number {bounds}, not {value:g}"
    raise OutOfRange(message, where=option, remedy=f"give {option} {usual}")


def compute_power_rows(run: PowerTables, question: PowerQuestion) -> pd.DataFrame:
    """Return what each comparison of a run could have found, and the units that it needs.

    The standard error of a comparison is that of its interval; two groups of other units are
    scaled by their variances and shares, or by their interval if those are not in the tables (sets
    of sentences, groups that share units, groups known as probabilities);
    of two models, names crossed with templates have two rows, one with the templates of the run
    and one with its names. The level of a test is divided by the size of its
    family (for Holm and Benjamini-Hochberg this is an upper bound of the number of units).
    Comparisons over folds and seeds replace those of each fold and seed. ``UNTESTABLE`` have no
    row.

    Returns:
        ``_POWER_COLUMNS``: ``detectable`` is the smallest difference that the run finds with the
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
        _answer(row, design, question)
        for row in to_records(comparisons)
        for design in _find_designs(run, row)
    ]
    return pd.DataFrame(rows, columns=list(_POWER_COLUMNS))


def _select_comparisons(significance: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons, without those of single folds if there are some over all folds."""
    significance = significance[~significance["test"].isin(UNTESTABLE)]
    averaged = (significance[["seed", "fold"]].astype(str) == ALL).any(axis=1)
    between_models = significance["between"] == "models"
    metrics = significance["metric"].where(~between_models, "")
    has_average = averaged.groupby([between_models, metrics]).transform("any")
    return significance[averaged | ~has_average]


def _find_designs(run: PowerTables, row: Mapping[str, Any]) -> Sequence[_UnitDesign]:
    unit = run.name_unit(row)
    interval = _scale_interval(row, unit)
    if run.units.get(row["metric"]) == "item":
        return [replace(interval, obstacle="users and items vary: no number of either")]
    if row["between"] == "models":
        return _cross_models(run, row) or [interval]
    if row["test"] == UNCERTAIN:
        return [_keep_shares(row, unit)]
    rows = run.groups.get(_make_key(row), {})
    sides = [rows[row[side]] for side in ("a", "b") if row[side] in rows]
    grouped = _compare_groups(row, sides, unit)
    if grouped is None:
        return [_keep_shares(row, unit) if row["test"] in _OF_SHARES else interval]
    return [grouped]


def _cross_models(run: PowerTables, row: Mapping[str, Any]) -> list[_UnitDesign]:
    values = run.select_prompts(row)
    if not values or not values[0].index.equals(values[1].index):
        return []
    return cross_prompts(values[0].index, (values[0] - values[1]).to_numpy(np.float64))


def _answer(
    row: Mapping[str, Any], design: _UnitDesign, question: PowerQuestion
) -> dict[str, Any]:
    level = row["alpha"] if question.alpha is None else question.alpha
    alpha = level if row["correction"] == "none" else level / max(row["family_size"], 1.0)
    keys = {name: row[name] for name in _KEY_COLUMNS}
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
    return {**answer, **design.count_needed(question.difference, alpha, question.power)}


def power(
    run: Run | Path | str,
    difference: float | None = None,
    *,
    power: float = 0.8,
    alpha: float | None = None,
    out: Path | str = "results",
) -> pd.DataFrame:
    """Return the smallest difference that each comparison could have found, and the units needed.

    Args:
        run: A run, its folder, or the name of an experiment, for its latest run.
        difference: A difference in the unit of the metric; without one no units are counted.
        power: The probability with which it is to be found.
        alpha: The level before correction, by default that of the run.
        out: The folder of results in which a name is looked up.

    Returns:
        One row for each comparison, with the columns ``_POWER_COLUMNS``: ``detectable`` is the
        smallest difference of this run, ``needed`` the number of units for ``difference``.

    Raises:
        UserError: The run does not exist or compares nothing, or a number is out of range.

    Example:
        recbias.power(recbias.load("quickstart"), difference=0.01)[["a", "b", "needed"]]
    """
    question = PowerQuestion(difference=difference, power=power, alpha=alpha)
    tables = read_run(run.folder if isinstance(run, Run) else find_run(run, out))
    metrics = replace_groups(tables.metrics, tables.groups)
    frames = (metrics, tables.significance, tables.per_unit, tables.manifest)
    return compute_power_rows(PowerTables(*frames), question)


_MEASURE = re.compile(r"measure (.+) of (.+)")


def count_labels(
    run: Run | Path | str, half_width: float, *, out: Path | str = "results"
) -> pd.DataFrame:
    """Return how many human labels each corrected value needs for an interval of ± a half width.

        z² (V_users + V_labels (1/n' - 1/N) / (1/n - 1/N)) = h²

    V_users and V_labels are the parts of the variance in the run, n the audited and N all items
    that the value depends on. The users of the run stay.

    Args:
        run: A run, its folder, or the name of an experiment, for its latest run.
        half_width: h, in the unit of the metric.
        out: The folder of results in which a name is looked up.

    Returns:
        One row for each corrected value or gap of two groups: ``needed`` is n', NaN with a
        ``remark`` where the users alone make the interval wider.

    Raises:
        OutOfRange: The half width is not above 0.
        MissingEvidence: The run has no corrected values, which a sample of 50 labels gives.
    """
    if not half_width > 0:
        _refuse("--half-width", "above 0", half_width)
    manifest = read_run(run.folder if isinstance(run, Run) else find_run(run, out)).manifest
    rows = [row for stage in manifest["stages"] if (row := _count_labels(stage, half_width))]
    if not rows:
        message = "the run has no values that human labels correct, which give the variance"
        remedy = "label 50 items and run it again: labels: [{name: ..., audited: labels.csv}]"
        raise MissingEvidence(message, remedy=remedy)
    return pd.DataFrame(rows)


def _count_labels(stage: Mapping[str, Any], half_width: float) -> dict[str, Any]:
    facts = stage.get("facts") or {}
    match = _MEASURE.fullmatch(str(stage["stage"]))
    if match is None or "correction.labels" not in facts:
        return {}
    items, n, users, labels = (
        float(facts[f"correction.{name}"]) for name in ("items", "audited", "users", "labels")
    )
    z = 1.959963984540054
    allowed, known = (half_width / z) ** 2 - users, 1.0 / n - 1.0 / items
    keys = {name: stage[name] for name in ("dataset", "model", "seed", "fold")}
    row = {**keys, "metric": match[1], "items": int(items), "audited": int(n)}
    row |= {"half_width": z * math.sqrt(users + labels), "needed": math.nan, "remark": ""}
    if allowed <= 0:
        row["remark"] = f"the users alone give {z * math.sqrt(users):.2g}"
    elif known > 0 and labels > 0:
        row["needed"] = math.ceil(1.0 / (allowed * known / labels + 1.0 / items) - 1e-9)
    return row
