"""A value, its interval, its tests and its checks are of one quantity, for every metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from contracts.test_metrics import make_metric
from recbias.config.checks import Check, CheckSpec
from recbias.config.specs import Grouping, PluginSpec
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.docstrings import read_section
from recbias.core.errors import NothingLeft
from recbias.core.evidence import Embeddings, Evidence, RankedLists
from recbias.core.measures import ALL, Measurement, limit_interval, read_bounds
from recbias.core.plugins import HasBounds
from recbias.metrics.base import PerQuery, WholeSet
from recbias.registry import REGISTRIES
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.results import (
    Measurements,
    ModelMeasurement,
    build_metrics_table,
    pool_summaries,
)
from recbias.runner.significance import compare_models
from recbias.runner.verdicts import evaluate_checks
from recbias.statistics.groups import DEFINITIONS
from recbias.statistics.paired import PairedT
from recbias.testing import make_checkerboard, make_random_evidence

SEEDS, MODELS = (1, 2), ("A", "B")
TEMPLATES = 3

BASE = make_random_evidence()
GAPS = ("groups", "difference", "ratio", "std", "ugf", "cross_entropy", "atkinson")


def make_world(seeds: tuple[int, int], model: str, labels: Attributes) -> Evidence:
    """Return skewed training data, lists that prefer popular items, and random test items.

    All but the lists and vectors is the same for all models.
    """
    rng = np.random.default_rng(seeds)
    data = make_checkerboard()
    n_users, n_items = len(data.train.user_ids), len(data.train.item_ids)
    n_active = min(len(labels.ids), n_users - 1)
    kept = rng.random(len(data.train)) < np.linspace(1, 0.2, n_items)[data.train.items]
    train = data.train.take(kept & (data.train.users < n_active))
    counts = train.item_counts()
    users = rng.integers(n_active, size=len(labels.ids)).astype(np.int32)
    seen = train.binary.toarray()[users] > 0
    relevant = (rng.random(seen.shape) < 0.2) & ~seen
    rng = np.random.default_rng([*seeds, ord(model)])
    scores = rng.random(seen.shape) + 0.1 * counts - 99.0 * seen - 99.0 * (counts == 0)
    items = np.argsort(-scores, axis=1)[:, :6].astype(np.int32)
    items[rng.random(len(users)) < 0.1, 2:] = -1
    ranks = np.where(items >= 0, -np.arange(6), np.nan).astype(np.float32)
    vectors = [rng.normal(size=(n, 4)).astype(np.float32) for n in (n_users, n_items)]
    return replace(
        BASE,
        queries=replace(BASE.queries, ids=labels.ids, labels=labels, users=users),
        train=train,
        candidates=counts > 0,
        lists=RankedLists(items, ranks),
        relevant=csr_array(relevant.astype(np.float32)),
        embeddings=Embeddings(*vectors),
        n_bootstrap=60,
    )


def make_labels(n_names: int) -> Attributes:
    names = np.repeat(np.arange(n_names), TEMPLATES)
    columns = {
        "colour": np.array(["white", "black"], dtype=object)[names % 2],
        "name": [f"name {name}" for name in names],
        "template": [f"template {row % TEMPLATES}" for row in range(names.size)],
        "sample": (names == 1).astype(float),
    }
    ids = Vocabulary(np.array([f"query {row}" for row in range(names.size)], dtype=object))
    return Attributes(ids, pd.DataFrame(columns), "query")


def measure_world(
    name: str, n_names: int, seed: int, gaps: Sequence[Any]
) -> list[ModelMeasurement]:
    """Return the values of two models and two seeds, and those by groups, as in a run."""
    labels, metric = make_labels(n_names), make_metric(name)
    worlds = {
        (fit_seed, model): make_world((seed, fit_seed), model, labels)
        for fit_seed, model in product(SEEDS, MODELS)
    }
    measured = {key: metric.measure(replace(world, metric=name)) for key, world in worlds.items()}
    rows = [
        make_row(key, make_spec(name, metric), value)
        for key, values in measured.items()
        for value in values
    ]
    rows += pool_summaries(rows, {"seed": ALL})
    queries = next(iter(worlds.values())).queries
    if any(not np.array_equal(get_ids(row), queries.ids.ids) for row in rows):
        return rows
    for gap in gaps:
        spec = make_spec(name, metric, Grouping(by="colour", gap=gap))
        rows += group(spec, queries, measured)
    return rows


def get_ids(row: ModelMeasurement) -> Any:
    return None if row.measurement.units is None else row.measurement.units.ids


def group(
    spec: PluginSpec, queries: Queries, measured: Mapping[tuple[Any, str], Sequence[Measurement]]
) -> Iterator[ModelMeasurement]:
    """Yield the groups or the gap of each model and seed, and the gap over the seeds."""
    grouping: Any = spec.grouping
    gap, groups = (
        GroupMeasurements(spec.name, way, spec.plugin.direction)
        for way in (grouping, replace(grouping, gap=None))
    )
    for key, values in measured.items():
        for value in gap(queries, values):
            yield make_row(key, spec, value)
    for model in MODELS if grouping.gap != "groups" else ():
        folds = [groups(queries, measured[seed, model]) for seed in SEEDS]
        for target in dict.fromkeys(row.target for row in folds[0]):
            of_target = [row for fold in folds for row in fold if row.target == target]
            yield make_row((ALL, model), spec, gap.pool(of_target, 0))


def make_spec(name: str, metric: Any, grouping: Grouping | None = None) -> PluginSpec:
    label = name if grouping is None else f"{name}(by=colour, gap={grouping.gap})"
    return PluginSpec("metrics", name, label, metric, {}, ("metrics", 0), grouping=grouping)


def make_row(key: tuple[Any, str], spec: PluginSpec, value: Measurement) -> ModelMeasurement:
    """Return a value whose interval is within its range, as a run has it."""
    text = DEFINITIONS[gap].values if (gap := get_gap(spec)) else ""
    if not text and isinstance(spec.plugin, HasBounds):
        bounds = spec.plugin.find_bounds(value)
    else:
        bounds = read_bounds(text or read_section(type(spec.plugin), "Range"))
    seed, model = key
    return ModelMeasurement("d", model, seed, 1, spec, limit_interval(value, bounds), "", bounds)


def get_gap(spec: PluginSpec) -> str:
    gap = (spec.grouping and spec.grouping.gap) or ""
    return "" if gap == "groups" else gap


def list_faults(rows: Sequence[ModelMeasurement]) -> Iterator[str]:
    """Yield the values and differences outside their intervals, and checks that do not follow."""
    table = build_metrics_table(rows)
    for row in table.to_dict("records"):
        if not is_inside(row["value"], row["ci_low"], row["ci_high"]):
            yield f"value {row}"
    test = PluginSpec("tests", "paired_t", "paired_t", PairedT(), {}, ("tests", 0))
    significance, failures = compare_models(Measurements(rows), [test], seed=1)
    yield from (f"failed {failure}" for failure in failures)
    for row in significance.to_dict("records"):
        if not is_inside(row["difference"], row["ci_low"], row["ci_high"]):
            yield f"test {row}"
        means = row["mean_a"] - row["mean_b"]  # of vectors there are none
        if not (math.isnan(means) or math.isclose(means, row["difference"], abs_tol=1e-9)):
            yield f"difference {row}"
    yield from list_faulty_checks(rows, table)


def list_faulty_checks(rows: Sequence[ModelMeasurement], table: pd.DataFrame) -> Iterator[str]:
    """Yield the checks of which the figures are not of one quantity, or not of the verdict.

    The limit of a metric is the upper end of its interval in one model, or 0.
    """
    ends = table[(table["seed"] == ALL) & (table["model"] == "A")].set_index("metric")["ci_high"]
    limits = {label: float(f"{end:.4g}") for label, end in ends.dropna().items()}
    checks = []
    for label, spec in {row.metric.label: row.metric for row in rows}.items():
        check = CheckSpec(metric=label, at_most=limits.get(label, 0.0))
        checks += [Check(check, spec, ("A",), baseline) for baseline in (None, "B")]
    for row in evaluate_checks(checks, Measurements(rows)):
        value, low, high = (float(f"{row[name]:.4g}") for name in ("value", "ci_low", "ci_high"))
        verdicts = list_verdicts(value, low, high, float(row["limit"].removeprefix("at most ")))
        if not is_inside(value, low, high) or row["verdict"] not in verdicts:
            yield f"check {row}"


def list_verdicts(value: float, low: float, high: float, limit: float) -> set[str]:
    """Return the verdicts that printed figures allow: on the limit there are two."""
    if math.isnan(value):
        return {"undecided"}
    low, high = (value, value) if math.isnan(low + high) else (low, high)
    allowed = {"pass": high <= limit, "undecided": low <= limit <= high, "fail": low >= limit}
    return {verdict for verdict, is_allowed in allowed.items() if is_allowed}


def is_inside(value: float, low: float, high: float) -> bool:
    slack = 1e-9 * max(abs(value), abs(low), abs(high))
    return math.isnan(low) or math.isnan(high) or low - slack <= value <= high + slack


def mark(name: str) -> Any:
    """Return a metric, which is slow unless it has an interval of its own."""
    own = getattr(REGISTRIES["metrics"].load(name), "interval", None)
    is_plain = own in {None, PerQuery.interval, WholeSet.interval}
    return pytest.param(name, marks=pytest.mark.slow) if is_plain else name


@pytest.mark.parametrize("name", [mark(name) for name in REGISTRIES["metrics"].names()])
def test_a_few_queries(name: str) -> None:
    with collect_warnings():
        try:
            rows = measure_world(name, 2, 1, ("ratio",))
        except NothingLeft:  # both names are neutral
            rows = measure_world(name, 4, 1, ("ratio",))
        assert [*list_faults(rows)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRIES["metrics"].names())
@pytest.mark.parametrize(("n_names", "seed"), [(4, 2), (5, 3), (30, 4)])
def test_all_gaps(name: str, n_names: int, seed: int) -> None:
    with collect_warnings():
        assert [*list_faults(measure_world(name, n_names, seed, GAPS))] == []
