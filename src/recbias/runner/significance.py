"""The tests within a model: of groups, or of sets of items.

The rows of ``significance.csv``: all models compared on the same units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.entries import shorten_name
from recbias.config.experiment import PluginSpec
from recbias.core.context import warn
from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import UnalignedScores
from recbias.core.measures import (
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    PAIR_COLUMNS,
    SIGNIFICANCE,
    UNBOUNDED,
    Bounds,
    Contrast,
    Measurement,
)
from recbias.core.plugins import ActsAfterTests
from recbias.runner.boundary import attempt, call_for, make_fault
from recbias.runner.manifest import describe_failure
from recbias.runner.results import (
    ModelMeasurement,
    average_defined,
    average_replicates,
    find_df,
    gather,
    list_varying,
    pool_units,
    share_units,
)
from recbias.statistics.compare import ModelContrasts, SystemEstimates, compare, correct_contrasts
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
    measurements: Sequence[ModelMeasurement],
    tests: Sequence[PluginSpec],
    seed: int,
    groups: Sequence[ModelMeasurement] = (),
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Return all comparisons by all tests, and the contrasts within models.

    A test that fails is left out; the second value are the failures, as in the manifest.
    ``groups`` have the contrasts of groups over all seeds and folds.

    Raises:
        UnalignedScores: Two models were measured on different units.
    """
    measurements = [row for row in measurements if not row.missing]
    estimates = collect_estimates(measurements)
    contrasts = _collect_contrasts([*measurements, *groups])
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
    _limit_differences(table, {row.metric.label: row.bounds for row in measurements})
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


def collect_estimates(measurements: Sequence[ModelMeasurement]) -> list[SystemEstimates]:
    """Return the values of all models on each quantity: in each fold, and over several folds.

    Raises:
        UnalignedScores: Two models were measured on different units.
    """
    singles = [row for row in measurements if not row.is_pooled]
    by_fold = gather(singles, lambda row: (row.place, *row.metric_keys.values()))
    estimates = [_build_estimates(_gather_models(rows)) for rows in by_fold.values()]
    varying = list_varying(measurements)
    pooled = {row.identity: row for row in measurements if row.is_pooled}
    quantities = gather(singles, lambda row: (row.dataset, *row.metric_keys.values()))
    for rows in quantities.values() if varying else ():
        models = _gather_models(rows)
        n_folds = max(map(len, models.values()))
        complete = {name: folds for name, folds in models.items() if len(folds) == n_folds}
        if rows[0].identity in pooled:
            complete = {name: [pooled[folds[0].identity]] for name, folds in complete.items()}
        estimates.append(_build_estimates(complete, **varying))
    return estimates


def _gather_models(rows: Sequence[ModelMeasurement]) -> dict[str, list[ModelMeasurement]]:
    return gather(rows, lambda row: row.model)


def _build_estimates(
    models: Mapping[str, Sequence[ModelMeasurement]], **varying: str
) -> SystemEstimates:
    """Return the values of models on one quantity, each in one fold and seed or in several."""
    row = next(iter(models.values()))[0]
    place = dict(zip(("dataset", "seed", "fold"), row.place, strict=True))
    systems = [[_select_compared(fold) for fold in folds] for folds in models.values()]
    if not all(map(share_units, zip(*systems, strict=False))):
        message = f"{row.metric.label} was measured on different units for {', '.join(models)}"
        raise UnalignedScores(message, remedy="measure all models on one split")
    measurements = [measurement for folds in systems for measurement in folds]
    replicates = _stack([average_replicates(folds) for folds in systems])
    units = [pool_units(folds) for folds in systems]
    return SystemEstimates(
        systems=tuple(models),
        values=_stack([of_model and of_model.values for of_model in units]),
        points=np.array([average_defined([fold.value for fold in folds]) for folds in systems]),
        replicates=replicates,
        keys={**place, **varying, **row.metric_keys},
        n=max(each.n for each in measurements) if replicates is not None else None,
        df=find_df(measurements),
        ids=units[0] and units[0].ids,
        parts=_stack_parts([folds[0] for folds in systems]) if len(systems[0]) == 1 else None,
    )


def _stack_parts(gaps: Sequence[Measurement]) -> FloatArray | None:
    """Return the means of the groups of each gap, and their samples.

    None if the groups of the gaps differ, or one has no value, also on a sample of the queries.
    """
    names = gaps[0].parts.keys()
    if not names or any(gap.parts.keys() != names or gap.replicates is not None for gap in gaps):
        return None
    parts = np.stack([np.stack([gap.parts[name] for name in names]) for gap in gaps])
    return None if np.isnan(parts).any() else parts


def _select_compared(row: ModelMeasurement) -> Measurement:
    """Return a measurement with the values of the units that models are compared by."""
    if (units := row.measurement.units) is None:
        return row.measurement
    values = units.compared if row.compared is None else row.compared
    return replace(row.measurement, units=replace(units, values=values))


def _stack(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    arrays = [row for row in rows if row is not None]
    return np.stack(arrays) if len(arrays) == len(rows) else None
