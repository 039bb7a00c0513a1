"""The comparisons of models: their tests, and what re-ranking costs.

The rows of ``significance.csv``, of all models on the same units and within each model, and of
``tradeoffs.csv``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.entries import shorten_name
from recbias.config.experiment import PluginSpec
from recbias.core.context import warn
from recbias.core.dataset import AnyArray, FloatArray, Vocabulary
from recbias.core.measures import (
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    PAIR_COLUMNS,
    SIGNIFICANCE,
    TRADEOFFS,
    UNBOUNDED,
    Bounds,
    Contrast,
    Direction,
    format_metric,
)
from recbias.core.plugins import ActsAfterTests
from recbias.runner.boundary import attempt, call_for, make_fault
from recbias.runner.manifest import describe_failure
from recbias.runner.results import Measurements, ModelMeasurement, gather
from recbias.runner.stages import derive_bootstrap_seed
from recbias.statistics.bootstrap import ROUNDING, resample_sums
from recbias.statistics.compare import ModelContrasts, SystemEstimates, compare, correct_contrasts
from recbias.statistics.intervals import (
    compute_sample_interval,
    estimate_ratio,
    estimate_resampled_ratio,
    t_interval,
)
from recbias.statistics.paired import PairedTest


def _collect_contrasts(measurements: Sequence[ModelMeasurement]) -> list[ModelContrasts]:
    """Return the tests within each model and metric, each once."""
    families: dict[tuple[Any, ...], list[tuple[str, str, Contrast]]] = defaultdict(list)
    by_groups = {key for row in measurements for key in _identify_pairs(row, "groups").values()}
    first_labels: dict[tuple[Any, ...], str] = {}
    for row in measurements:
        if first_labels.setdefault(_identify_tests(row), row.metric.label) != row.metric.label:
            continue
        pairs = _identify_pairs(row, "difference")
        repeated = {contrast for contrast, key in pairs.items() if key in by_groups}
        family = (*row.fit_keys.values(), row.metric.label, row.metric.cutoff)
        families[family] += [each for each in _label_contrasts(row) if each[-1] not in repeated]
    names = (*FIT_COLUMNS, "metric", "k")
    return [
        ModelContrasts(dict(zip(names, keys, strict=True)), contrasts)
        for keys, contrasts in families.items()
    ]


def _identify_pairs(row: ModelMeasurement, gap: str) -> dict[Contrast, tuple[Any, ...]]:
    """Return the tests of a metric by group with keys that its groups and its gap share."""
    grouping = row.metric.grouping
    if grouping is None or grouping.gap != gap:
        return {}
    metric_keys = (row.metric.name, repr(row.metric.parameters), row.measurement.target)
    shared = (*row.fit_keys.values(), *metric_keys, grouping.by)
    return {
        test: (*shared, test.test, frozenset((test.a, test.b)))
        for test in row.measurement.contrasts
    }


def _identify_tests(row: ModelMeasurement) -> tuple[Any, ...]:
    """Return a key that metrics share if they differ in settings ``after_tests`` only."""
    metric, keys = row.metric, tuple(row.fit_keys.values())
    if not isinstance(metric.plugin, ActsAfterTests):
        return (*keys, metric.label)
    ignored = metric.plugin.after_tests
    settings = {name: value for name, value in metric.parameters.items() if name not in ignored}
    return (*keys, metric.name, repr(settings), row.measurement.group, row.measurement.target)


def _label_contrasts(row: ModelMeasurement) -> Iterator[tuple[str, str, Contrast]]:
    group, target = row.measurement.group, row.measurement.target
    for contrast in row.measurement.contrasts:
        is_of_group = contrast.between != "groups" or all(
            side.startswith(f"{group}&") for side in (contrast.a, contrast.b)
        )
        of_targets = contrast.between == "targets"
        yield group if is_of_group else "", "" if of_targets else target, contrast


_TEST_COLUMNS = ("a", "b", *PAIR_COLUMNS)
"""The columns that a test returns."""


@dataclass(frozen=True)
class _CheckedTest:
    """A test that raises BrokenContract if the columns of ``plugin`` are not what they must be."""

    plugin: PairedTest

    def __getattr__(self, name: str) -> Any:
        """Return a setting of the test."""
        return getattr(self.plugin, name)

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the columns of the test, one value for each pair of rows."""
        returned: Mapping[str, Any] = call_for(Mapping, self.plugin.pairs, values, rng)  # type: ignore[type-abstract]
        n = len(values) * (len(values) - 1) // 2
        remedy = "return compute_pair_moments(values).columns(self.alpha), and the other columns"
        columns = {"test": [""] * n, **returned}
        if missing := [name for name in _TEST_COLUMNS if name not in columns]:
            message = f"returns no column {', '.join(missing)}"
            raise make_fault(self.plugin.pairs, message, remedy)
        checked = {name: np.asarray(columns[name]) for name in (*_TEST_COLUMNS, "test")}
        for name, column in checked.items():
            kinds, what = ("OU", "name") if name == "test" else ("fiub", "number")
            if column.shape != (n,) or column.dtype.kind not in kinds:
                form = f"{column.dtype}{[*column.shape]}"
                message = f"returns {name} as {form}, not a {what} for each of {n:,} pairs"
                raise make_fault(self.plugin.pairs, message, remedy)
        return checked


def compare_models(
    measured: Measurements, tests: Sequence[PluginSpec], seed: int
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Return all comparisons by all tests, and the contrasts within models.

    A test that fails is left out; the second value are the failures, as in the manifest.

    Raises:
        UnalignedScores: Two models were measured on different units.
    """
    measurements, estimates = measured.defined, measured.estimates
    contrasts = _collect_contrasts([*measurements, *measured.groups])
    tables, failures = [], []
    _warn_of_ratios(measurements, tests)
    for test in tests:
        test_models = partial(
            compare,
            estimates,
            _CheckedTest(test.plugin),
            name=test.name,
            label=shorten_name(test.label),
            seed=seed,
            model_contrasts=contrasts,
        )
        table, failure = attempt(test_models)
        if failure is None:
            tables.append(table)
            _warn_of_undefined(table, test)
            _warn_of_few_permutations(table, test)
        else:
            failures.append(describe_failure(f"compare the models by {test.label}", failure))
    if tables and not failures and not any(map(len, tables)):
        names = ", ".join(shorten_name(test.label) for test in tests)
        warn(f"{names}: nothing to compare; a test needs two models or two groups")
    tables = [table for table in tables or [correct_contrasts(contrasts)] if len(table)]
    if not tables:
        return SIGNIFICANCE.build(), failures
    table = pd.concat(tables, ignore_index=True).drop_duplicates(ignore_index=True)
    _limit_differences(table, measured.bounds)
    _warn_of_no_spread(table)
    return table, failures


def _limit_differences(table: pd.DataFrame, bounds: Mapping[str, Bounds]) -> None:
    """Let the intervals of differences end where two values of the metric differ most."""
    ends = np.array([bounds.get(name, UNBOUNDED) for name in table["metric"]]).reshape(-1, 2)
    is_effect = table["between"] == "prompts"  # the difference is the value
    most = np.where(is_effect, np.abs(ends).max(axis=1), ends[:, 1] - ends[:, 0])
    most = np.maximum(most, table["difference"].abs().fillna(math.inf))
    for end in ("ci_low", "ci_high"):
        table[end] = table[end].clip(-most, most)


def _warn_of_ratios(measurements: Sequence[ModelMeasurement], tests: Sequence[PluginSpec]) -> None:
    """Warn of a test of ranks of values whose mean, but not whose median, is a ratio."""
    units = ((row.metric.name, row.measurement.units) for row in measurements)
    ratios = dict.fromkeys(name for name, of_row in units if of_row and of_row.totals is not None)
    if ratios and any(test.name == "wilcoxon" for test in tests):
        reason = "are ratios of totals, which a test of ranks does not compare; choose paired_t"
        warn(f"wilcoxon: {', '.join(ratios)} {reason}")


def _warn_of_no_spread(table: pd.DataFrame) -> None:
    """Count the comparisons within models whose sides differ, but have no spread to test."""
    keys = ["model", "dataset", "seed", "fold", *METRIC_KEY_COLUMNS, "test", "a", "b"]
    within = table[~table["between"].astype(str).str.startswith("model")].drop_duplicates(keys)
    rows = within[within["p"].isna() & (within["difference"].abs() > 0)]
    if len(rows):
        names = ", ".join(dict.fromkeys(rows["metric"] + " by " + rows["test"]))
        counts = f"{len(rows):,} of {len(within):,} comparisons within models have no p-value"
        reason = "a side has fewer than two values, or only equal ones"
        warn(f"{counts} ({names}): the sides differ, and no test is possible, as {reason}")


def _warn_of_undefined(table: pd.DataFrame, test: PluginSpec) -> None:
    """Count the comparisons of models that a test leaves without a p-value, and say why."""
    of_models = table[table["between"] == "models"]
    undefined = of_models[of_models["p"].isna()]
    if len(undefined):
        metrics = ", ".join(dict.fromkeys(undefined["metric"]))
        reason = getattr(test.plugin, "undefined_where", "undefined by the test")
        counts = f"{len(undefined):,} of {len(of_models):,} comparisons of models have no p-value"
        warn(f"{test.label}: {counts} ({metrics}) and are not counted in the correction: {reason}")


def _warn_of_few_permutations(table: pd.DataFrame, test: PluginSpec) -> None:
    """Warn if sampled permutations cannot give a p-value that is significant when corrected."""
    n, level = getattr(test.plugin, "permutations", None), test.plugin
    rows = table[(table["between"] == "models") & (table["test"] == shorten_name(test.label))]
    if not isinstance(n, int):
        return
    rows = rows[rows["n"].astype(float) > np.log2(n)]  # of fewer units all are enumerated
    if rows.empty:
        return
    is_multiplied = level.correction in {"bonferroni", "holm"}
    size = int(rows["family_size"].max()) if is_multiplied else 1
    if size > level.alpha * (n + 1):
        message = f"{n:,} permutations give no p-value below {1 / (n + 1):.2g}"
        reason = f"nothing is significant in a family of {size:,} at alpha {level.alpha:g}"
        remedy = f"set permutations: {max(10_000, math.ceil(10 * size / level.alpha))}"
        warn(f"{test.label}: {message}, so {reason}; {remedy}")


# ---- what re-ranking costs ----


@dataclass(frozen=True, eq=False)
class VersionDifference:
    """The value of a model minus that of its re-ranked version, in one metric.

    Args:
        estimates: Those of all models.
        rows: The rows of the model and of the version.
        signs: What both values are multiplied by before they are subtracted.
    """

    estimates: SystemEstimates
    rows: tuple[int, int]
    signs: tuple[float, float] = (1.0, 1.0)

    @property
    def point(self) -> float:
        """The difference of the estimates."""
        return float(self._subtract(self.estimates.points))

    @property
    def scale(self) -> float:
        """The larger of the absolute estimates, NaN if none is defined."""
        return float(np.fmax.reduce(np.abs(self.estimates.points[list(self.rows)])))

    @property
    def values(self) -> FloatArray | None:
        """The difference by unit, ``float64[u]``; None without units."""
        values = self.estimates.values
        return None if values is None else self._subtract(values)

    @property
    def replicates(self) -> FloatArray | None:
        """The difference by bootstrap sample, ``float64[b]``; None without samples."""
        replicates = self.estimates.replicates
        return None if replicates is None else self._subtract(replicates)

    def _subtract(self, values: FloatArray) -> FloatArray:
        before, after = (values[row] for row in self.rows)
        return np.asarray(self.signs[0] * before - self.signs[1] * after)


def average_shared_units(pairs: Sequence[tuple[SystemEstimates, int]]) -> list[float]:
    """Return the value of each system, over the units for which all of them are defined.

    They are the estimates if one has no units, or other units.
    """
    rows = [None if table.values is None else table.values[row] for table, row in pairs]
    values = [row for row in rows if row is not None]
    if len(values) < len(rows) or len({row.size for row in values}) > 1:
        return [float(table.points[row]) for table, row in pairs]
    shared = ~np.isnan(values).any(axis=0)
    return [float(row[shared].mean()) if shared.any() else math.nan for row in values]


def measure_price(
    lost: VersionDifference, removed: VersionDifference, *, shares_samples: bool
) -> dict[str, float]:
    """Return what is lost and removed and the price, with intervals, as ``tradeoffs.csv`` has it.

    Args:
        lost: The difference in accuracy, by unit.
        removed: The difference in bias.
        shares_samples: Whether the bootstrap samples of the bias are of all queries
            (``WholeSet``), so that the accuracy can be resampled with them.
    """
    lost_values, removed_values, samples = lost.values, removed.values, removed.replicates
    if lost_values is None:
        return _measure_points(lost.point, removed.point, removed.scale)
    if removed_values is not None and lost_values.size == removed_values.size:
        return _measure_units(lost_values, removed_values, removed.scale)
    columns = _measure_points(lost.point, removed.point, removed.scale)
    columns |= _name_ends("accuracy_lost", _find_t_ends(lost_values))
    if samples is None:
        return columns
    df = removed.estimates.df
    ends = compute_sample_interval(removed.point, samples, df=df)
    columns |= _name_ends("bias_removed", ends)
    if not shares_samples or math.isnan(columns["price"]):
        return columns
    joint = resample_mean(lost, removed.estimates.n or 0, samples.size)
    if joint is None:
        return columns
    both = np.stack([joint, samples])
    price = estimate_resampled_ratio(lost.point, removed.point, both, df=df)
    return columns | _name_ends("price", price[1:])


def _measure_units(lost: FloatArray, removed: FloatArray, scale: float) -> dict[str, float]:
    defined = ~np.isnan(lost) & ~np.isnan(removed)
    lost, removed = lost[defined], removed[defined]
    means = [float(values.mean()) if values.size else math.nan for values in (lost, removed)]
    columns = _measure_points(means[0], means[1], scale) | {"n": int(defined.sum())}
    columns |= _name_ends("accuracy_lost", _find_t_ends(lost))
    columns |= _name_ends("bias_removed", _find_t_ends(removed))
    if not math.isnan(columns["price"]):
        columns |= _name_ends("price", estimate_ratio(lost, removed)[1:])
    return columns


def _measure_points(lost: float, removed: float, scale: float) -> dict[str, float]:
    """Return what is lost and removed, and the price, undefined unless bias is removed."""
    price = lost / removed if removed > ROUNDING * scale else math.nan
    return {"accuracy_lost": lost, "bias_removed": removed, "price": price}


def _find_t_ends(values: FloatArray) -> tuple[Any, Any]:
    values = values[~np.isnan(values)]
    if values.size < 2:
        return math.nan, math.nan
    return t_interval(values.mean(), values.std(ddof=1), values.size)


def _name_ends(name: str, ends: Sequence[Any]) -> dict[str, float]:
    return {f"{name}_low": float(ends[0]), f"{name}_high": float(ends[1])}


def resample_mean(lost: VersionDifference, n_rows: int, n_samples: int) -> FloatArray | None:
    """Return the mean difference on the bootstrap samples of metrics of the whole set of lists.

    They sample all queries, or those with a defined value; None if ``n_rows`` is the number of
    neither, or if the queries are not known.
    """
    from scipy.sparse import csr_array

    values, ids = lost.values, lost.estimates.ids
    if values is None or ids is None:
        return None
    is_defined = ~np.isnan(values)
    if n_rows not in {values.size, int(is_defined.sum())} or not is_defined.any():
        return None
    columns = np.stack([np.where(is_defined, values, 0.0), is_defined], axis=1)
    rows = csr_array(columns if n_rows == values.size else columns[is_defined])
    seed = derive_bootstrap_seed(Vocabulary(np.array(ids, dtype=object)))
    sums = np.concatenate([*resample_sums(rows, n_samples, seed)])
    undefined = np.full(n_samples, np.nan)
    return np.asarray(np.divide(sums[:, 0], sums[:, 1], out=undefined, where=sums[:, 1] > 0))


def write_tradeoffs(
    folder: Path,
    models: Sequence[PluginSpec],
    metrics: Sequence[PluginSpec],
    measured: Measurements,
) -> None:
    """Write ``tradeoffs.csv`` if a model of the run is re-ranked.

    It has a row for each re-ranked model, metric of accuracy and metric of bias.
    """
    reranked = [model for model in models if model.reranked]
    if not reranked:
        return
    by_label = {(metric.label, metric.cutoff): metric for metric in metrics}
    rows: list[dict[str, Any]] = []
    names = ("dataset", "seed", "fold")
    places = gather(measured.estimates, lambda each: tuple(each.keys[name] for name in names))
    for of_place in places.values():
        overall = [
            (each, by_label[_identify(each)]) for each in of_place if not each.keys["group"]
        ]
        accuracies = [each for each, metric in overall if _is_accuracy(metric)]
        biases = [
            (each, metric)
            for each, metric in overall
            if not _is_accuracy(metric) and metric.direction != "none"
        ]
        for model, accuracy, bias in product(reranked, accuracies, biases):
            rows += _compare_version(model, accuracy, *bias)
    TRADEOFFS.write(folder, rows)


def _is_accuracy(metric: PluginSpec) -> bool:
    """Return whether a metric is of accuracy, and not of a group of queries."""
    is_of_hits = metric.needs == {"lists", "test"} and metric.direction == "higher"
    return is_of_hits and metric.grouping is None


def _identify(estimate: SystemEstimates) -> tuple[Any, Any]:
    return estimate.keys["metric"], estimate.keys["k"]


def _format_title(estimate: SystemEstimates) -> str:
    metric, k = _identify(estimate)
    return format_metric(str(metric), {"k": k})


def _compare_version(
    model: PluginSpec, accuracy: SystemEstimates, bias: SystemEstimates, metric: PluginSpec
) -> Iterator[dict[str, Any]]:
    """Yield the row of a re-ranked model, if both metrics are there for it and its model."""
    reranked: Any = model.reranked
    base, reranker = reranked.base, reranked.reranker
    labels = (base.label, model.label)
    if not {*labels} <= {*accuracy.systems} & {*bias.systems}:
        return
    at, bias_at = (
        (estimates.systems.index(labels[0]), estimates.systems.index(labels[1]))
        for estimates in (accuracy, bias)
    )
    systems = [(accuracy, row) for row in at] + [(bias, row) for row in bias_at]
    accuracy_before, accuracy_after, before, after = average_shared_units(systems)
    lost = VersionDifference(accuracy, at)
    removed = VersionDifference(bias, bias_at, _orient(before, after, metric.direction))
    dial = getattr(reranker.plugin, "dial", "")
    value = reranker.parameters.get(dial) if model.tune is None else None
    yield {
        **{name: bias.keys[name] for name in ("dataset", "seed", "fold", "target")},
        "model": model.label,
        "baseline": base.label,
        "reranker": reranker.name,
        "setting": dial,
        "strength": math.nan if value is None else value,
        "accuracy": _format_title(accuracy),
        "bias": _format_title(bias),
        "accuracy_before": accuracy_before,
        "accuracy_after": accuracy_after,
        "bias_before": before,
        "bias_after": after,
        **measure_price(lost, removed, shares_samples=metric.grouping is None),
    }


def _orient(before: float, after: float, direction: Direction) -> tuple[float, float]:
    """Return the signs of the values before and after that make less bias a smaller value."""
    if direction == "zero":
        return math.copysign(1.0, before), math.copysign(1.0, after)
    return (-1.0, -1.0) if direction == "higher" else (1.0, 1.0)
