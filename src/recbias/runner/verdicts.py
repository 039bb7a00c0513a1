"""What a run says about the checks and the claim of its spec."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.checks import Check
from recbias.config.entries import format_value
from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.specs import ClaimSpec, find_claimed
from recbias.core import measures
from recbias.core.dataset import AnyArray, FloatArray, Queries
from recbias.core.errors import (
    Contradiction,
    MissingEvidence,
    NothingLeft,
    StageError,
    UnknownName,
    UserError,
)
from recbias.core.grouping import group_by
from recbias.core.measures import UnitScores
from recbias.core.text import normalize_name, suggest
from recbias.formats.manifest import Claim
from recbias.runner.execute import Executor
from recbias.runner.plan import ModelPlan, Plan, Stage
from recbias.runner.results import Measurements, identify_groups
from recbias.statistics.compare import ESTIMATE_KEYS, SystemEstimates, compare_two
from recbias.statistics.groups import average_units
from recbias.statistics.multiverse import Contrasts, estimate
from recbias.statistics.paired import adjust

# ---- checks ----

Verdict: TypeAlias = Literal["pass", "fail", "undecided"]
"""The result of a check."""

Interval: TypeAlias = tuple[float, float]
"""The lower and the upper end; NaN if a value has no interval."""


def decide(value: float, interval: Interval, limits: Interval) -> Verdict:
    """Return the verdict on a value with its 95% interval.

        pass       if the interval lies within the limits:  L ≤ low and high ≤ U
        fail       if it lies outside:                       high < L or low > U
        undecided  if it contains a limit, or the value is undefined

    A value without an interval (NaN) is decided by itself: low = high = value. For the difference
    from a baseline and the limit -margin this is the test of non-inferiority at level 2.5%.

    >>> limits = (-math.inf, 0.05)
    >>> decide(0.03, (0.01, 0.05), limits), decide(0.03, (0.01, 0.06), limits)
    ('pass', 'undecided')
    >>> decide(0.08, (0.06, 0.1), limits), decide(0.06, (math.nan, math.nan), limits)
    ('fail', 'fail')

    Source:
        Piaggio et al., "Reporting of noninferiority and equivalence randomized trials", JAMA 2012.
    """
    if math.isnan(value):
        return "undecided"
    low, high = (value, value) if any(map(math.isnan, interval)) else interval
    if limits[0] <= low and high <= limits[1]:
        return "pass"
    return "fail" if high < limits[0] or low > limits[1] else "undecided"


CheckRow: TypeAlias = dict[str, Any]
"""A value with its limit and verdict, as in ``report.json``."""


def judge_checks(experiment: Experiment, measured: Measurements) -> list[CheckRow]:
    """Return the rows of the checks of a spec for the manifest, which has null for NaN."""
    if not experiment.checks:
        return []
    rows = evaluate_checks(experiment.checks, measured)
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def evaluate_checks(checks: Sequence[Check], measured: Measurements) -> list[CheckRow]:
    """Return the verdict of each check on each of its models, groups and targets.

    With several seeds or folds the mean over them is checked, with several datasets each of them.
    A model without a value has one row, whose value is NaN and which is undecided, also on a
    dataset where its stage failed; then ``basis`` is ``failure``. A value without an interval of
    one of the ``groups`` with a single unit, or of a gap with one, is undecided too, and ``basis``
    is ``single``. ``value`` is the difference from the baseline if the check has one, with its
    paired interval.
    """
    metrics = measured.table
    for name in ("seed", "fold"):
        if (metrics[name] == measures.ALL).any():
            metrics = metrics[metrics[name] == measures.ALL]
    metrics = metrics[
        ~metrics["dataset"].isin([measures.ALL, measures.POOLED])
        & (metrics["group"] != measures.SERVED)
    ]
    estimates = {_make_key(each.keys): each for each in measured.estimates}
    judge = _Judge(metrics, estimates, measured)
    return [row for check in checks for row in judge.evaluate(check)]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Decides checks by the values of a run.

    Args:
        metrics: The rows of ``metrics.csv`` that are checked.
        estimates: The values of all models by ``ESTIMATE_KEYS``.
    """

    metrics: pd.DataFrame
    estimates: Mapping[tuple[str, ...], SystemEstimates]
    measured: Measurements

    def evaluate(self, check: Check) -> Iterator[CheckRow]:
        """Yield the verdicts of a check."""
        metric, singles = check.metric, self._find_singles(check.metric)
        k = self.metrics["k"]
        has_cutoff = k.isna() if metric.cutoff is None else k == metric.cutoff
        metrics = self.metrics[(self.metrics["metric"] == metric.label) & has_cutoff]
        title = (metric.label, metric.cutoff)
        stopped = [keys[:2] for keys in self.measured.failed if keys[2:] == title]
        is_of_dataset = {*metrics["model"], *(model for _, model in stopped)} == {measures.DATASET}
        for model in (measures.DATASET,) if is_of_dataset else check.models:
            rows = metrics[metrics["model"] == model].to_dict("records")
            undefined: dict[Any, Any] = {"model": model, "metric": metric.label}
            lacking = {dataset: None for dataset, name in stopped if name == model}
            measured = {row["dataset"] for row in rows}
            rows += [undefined | {"dataset": name} for name in lacking if name not in measured]
            for row in rows or [undefined]:
                value, interval = self._measure(check, row, metrics)
                sides = {(row.get("dataset"), name) for name in (model, check.baseline)}
                basis = "value" if any(map(math.isnan, interval)) else "interval"
                if math.isnan(value):
                    basis = "undefined" if sides.isdisjoint(stopped) else "failure"
                elif basis == "value" and any(
                    row["group"] in {"", group} and sides >= {side} and row["target"] == target
                    for side, group, target in singles
                ):
                    basis = "single"
                yield _build_row(check, row, value, interval, basis)

    def _find_singles(self, metric: PluginSpec) -> set[tuple[tuple[str, str], str, str]]:
        """Return dataset, model, group and target of the groups of a metric with a single unit."""
        if metric.grouping is None or metric.grouping.min_group > 1:
            return set()
        return {
            ((row.dataset, row.model), row.measurement.group, row.measurement.target)
            for row in self.measured.groups
            if row.measurement.n == 1 and identify_groups(row.metric) == identify_groups(metric)
        }

    def _measure(
        self, check: Check, row: Mapping[Any, Any], metrics: pd.DataFrame
    ) -> tuple[float, Interval]:
        """Return the value of a row, or its difference from the baseline, with the interval."""
        undefined = math.nan, math.nan
        if "value" not in row:
            return math.nan, undefined
        if check.baseline is None:
            return float(row["value"]), (float(row["ci_low"]), float(row["ci_high"]))
        estimate, pair = self.estimates.get(_make_key(row)), (row["model"], check.baseline)
        if estimate is not None and estimate.comparable and {*pair} <= {*estimate.systems}:
            test = compare_two(estimate, *pair)
            low, high = self.measured.bounds[row["metric"]]
            most = max(high - low, abs(test["difference"]))  # as in significance.csv
            return test["difference"], (max(test["ci_low"], -most), min(test["ci_high"], most))
        others = metrics[metrics["model"] == check.baseline].to_dict("records")
        same = [other["value"] for other in others if _make_key(other) == _make_key(row)]
        return float(row["value"]) - float(same[0] if same else math.nan), undefined


def _build_row(
    check: Check, row: Mapping[Any, Any], value: float, interval: Interval, basis: str
) -> CheckRow:
    verdict = "undecided" if basis == "single" else decide(value, interval, check.spec.limits)
    keys = {
        name: str(row.get(name, ""))
        for name in (*measures.FIT_COLUMNS, *measures.METRIC_KEY_COLUMNS)
    }
    return {
        **keys,
        "k": check.metric.cutoff,
        "baseline": check.baseline or "",
        "value": value,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "limit": check.spec.limit,
        "verdict": verdict,
        "basis": basis,
        "strict": check.spec.strict,
        "failed": verdict == "fail" or (check.spec.strict and verdict == "undecided"),
    }


def _make_key(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple("" if pd.isna(row[name]) else str(row[name]) for name in ESTIMATE_KEYS)


# ---- the claim ----

ClaimVerdict: TypeAlias = Literal["holds", "not significant", "reversed", "failed"]


def evaluate_claim(plan: Plan, executor: Executor) -> Claim | None:
    """Return the estimate of the claim of a run, and whether it holds; None without a claim."""
    claim = plan.experiment.claim
    if claim is None:
        return None
    row: dict[str, Any] = {"claim": describe_claim(claim), "alpha": claim.alpha}
    values = ClaimValues(executor)
    try:
        found = values.read_claim(plan, claim)
    except (UserError, StageError) as error:
        return Claim(**row, verdict="failed", problem=getattr(error, "message", str(error)))
    estimates = estimate(stack_values([found], len(values.ids), claim))
    (low,), (high,) = estimates.ends
    numbers = {"estimate": estimates.value[0], "ci_low": low, "ci_high": high, "p": estimates.p[0]}
    sign = 1.0 if claim.direction == "higher" else -1.0
    numbers["p"] = adjust_claim(estimates.p[0], values.read_family(plan, claim), claim)
    row["verdict"] = decide_claim(sign * estimates.value[0], numbers["p"], claim.alpha)
    row |= {name: None if math.isnan(each) else float(each) for name, each in numbers.items()}
    return Claim(**row, n=int(estimates.n[0]))


@dataclass(frozen=True, eq=False)
class _Values:
    """What a metric measured of a model: units, by position in the list of ids, and their values.

    ``groups`` are the codes of units that are not queries, such as the names of a race.
    """

    units: AnyArray
    values: FloatArray
    groups: AnyArray | None = None


@dataclass(eq=False)
class ClaimValues:
    """The values by unit and the groups of several plans, over one list of unit ids."""

    executor: Executor
    ids: dict[str, int] = field(default_factory=dict)
    measured: dict[tuple[Any, ...], _Values] = field(default_factory=dict)
    grouped: dict[tuple[Any, ...], tuple[AnyArray, AnyArray]] = field(default_factory=dict)

    def read_claim(self, plan: Plan, claim: ClaimSpec) -> tuple[Any, Any, Any]:
        """Return the units and values of both models, and the units and codes of the groups.

        Raises:
            UserError: A model, group or value is missing.
            StageError: A stage failed.
        """
        first = self.read(plan, claim.model, claim)
        second = None if claim.against is None else self.read(plan, claim.against, claim)
        groups = None if claim.by is None else self.read_groups(plan, claim)
        if groups is not None and len(np.unique(groups[1])) < 2:
            raise NothingLeft(f"one of the groups of {claim.by!r} has no units")
        return first, second, groups

    def read_family(self, plan: Plan, claim: ClaimSpec) -> list[float]:
        """Return the p-values of the same claim about the other models, or pairs of models."""
        if claim.correction == "none":
            return []
        labels = [*dict.fromkeys(each.model.label for each in plan.model_plans)]
        family = (
            [replace(claim, model=label) for label in labels]
            if claim.against is None
            else [replace(claim, model=a, against=b) for a, b in combinations(labels, 2)]
        )
        own, p = _name_models(claim), []
        for other in (each for each in family if _name_models(each) != own):
            contrasts = [self.read_claim(plan, other)]
            p.append(float(estimate(stack_values(contrasts, len(self.ids), other)).p[0]))
        return p

    def read(self, plan: Plan, label: str, claim: ClaimSpec) -> tuple[AnyArray, FloatArray]:
        """Return the units of a model, by position in ``ids``, and the value of each.

        Over seeds and folds it is that of ``average_folds``, within the units of each group.
        """
        parts = [(part.units, part.values) for part in self._read_parts(plan, label, claim)]
        if len(parts) == 1:
            return parts[0]
        units, values = average_units(parts)
        for group in () if claim.by is None else (0, 1):
            members, groups = self.read_groups(plan, claim)
            rows = [np.isin(own, members[groups == group]) for own, _ in parts]
            of_group = [(own[at], x[at]) for (own, x), at in zip(parts, rows, strict=True)]
            own, averaged = average_units(of_group)
            values[np.isin(units, own)] = averaged
        return units, values

    def _read_parts(self, plan: Plan, label: str, claim: ClaimSpec) -> list[_Values]:
        """Return what was measured of a model, in each fold and with each seed."""
        wanted = normalize_name(label)
        model_plans = [
            each for each in plan.model_plans if normalize_name(each.model.label) == wanted
        ]
        if not model_plans:
            labels = [each.model.label for each in plan.model_plans]
            message = f"no model of the spec is called {label!r}"
            raise UnknownName(message, where="claim", remedy=suggest(label, labels))
        return [self._read_stage(plan, each, claim) for each in model_plans]

    def _read_stage(self, plan: Plan, model_plan: ModelPlan, claim: ClaimSpec) -> _Values:
        stage = _find_stage(model_plan, claim.metric, plan.experiment.k)
        key = (stage.digest, claim.target, claim.by, claim.groups)
        if key not in self.measured:
            parts = {
                row.group: row.units
                for row in self.executor.value(stage)
                if row.units is not None and row.target == (claim.target or "")
            }
            names = self._name_groups(plan, claim) if claim.by and "" not in parts else ()
            if "" in parts:
                found = _Values(self._locate(parts[""].ids), parts[""].values)
            elif names and {*names} <= parts.keys():
                found = self._stack_groups({name: parts[name] for name in names})
            else:
                metric, model = describe_option(claim.metric), model_plan.model.label
                of_target = f" for the target {claim.target!r}" if claim.target else ""
                message = f"{metric} of {model} has no values by unit{of_target}"
                raise MissingEvidence(message, remedy="choose a metric with a value for each unit")
            self.measured[key] = found
            self.executor.forget([stage])
        return self.measured[key]

    def _stack_groups(self, sides: Mapping[str, UnitScores]) -> _Values:
        """Return the units of both groups of a metric that groups units of its own."""
        ids = [f"{name}: {each}" for name, units in sides.items() for each in units.ids]
        values = np.concatenate([units.values for units in sides.values()])
        sizes = [len(units.values) for units in sides.values()]
        return _Values(self._locate(ids), values, np.repeat(np.array([1, 0], np.int8), sizes))

    def _name_groups(self, plan: Plan, claim: ClaimSpec) -> tuple[str, ...]:
        queries = self.executor.value(plan.data_contexts[0].queries)
        self.executor.forget(plan.data_contexts[0].stages)
        return code_pair(queries, claim.by or "", claim.groups or ())[1]

    def read_groups(self, plan: Plan, claim: ClaimSpec) -> tuple[AnyArray, AnyArray]:
        """Return the units with a group, and 1 for the first group and 0 for the second."""
        parts = self._read_parts(plan, claim.model, claim)
        if own := [part for part in parts if part.groups is not None]:
            units = np.concatenate([part.units for part in own])
            members = np.concatenate([part.groups for part in own if part.groups is not None])
            _, first = np.unique(units, return_index=True)
            return units[first], members[first]
        queries = tuple(context.queries.digest for context in plan.data_contexts)
        key = (queries, claim.by, claim.groups)
        if key not in self.grouped:
            self.grouped[key] = self._code_groups(plan, claim)
        return self.grouped[key]

    def _code_groups(self, plan: Plan, claim: ClaimSpec) -> tuple[AnyArray, AnyArray]:
        located, codes = [], []
        for context in plan.data_contexts:
            queries = self.executor.value(context.queries)
            self.executor.forget(context.stages)
            members, _ = code_pair(queries, claim.by or "", claim.groups or ())
            rows = np.flatnonzero(members >= 0)
            located.append(self._locate(queries.ids.ids[rows]))
            codes.append(members[rows])
        units, members = np.concatenate(located), np.concatenate(codes)
        _, first = np.unique(units, return_index=True)
        return units[first], members[first]

    def _locate(self, names: Iterable[Any]) -> AnyArray:
        return np.array(
            [self.ids.setdefault(str(name), len(self.ids)) for name in names], np.int64
        )


def _name_models(claim: ClaimSpec) -> set[str]:
    return {normalize_name(label) for label in (claim.model, claim.against) if label}


def adjust_claim(p: float, family: Sequence[float], claim: ClaimSpec) -> float:
    """Return the p-value of a claim, corrected in the family of ``ClaimValues.read_family``."""
    return float(adjust(np.array([p, *family]), claim.correction)[0])


def code_pair(
    queries: Queries, by: str, names: Sequence[str] = ()
) -> tuple[AnyArray, tuple[str, ...]]:
    """Return 1 for queries of the first of two groups, 0 for the second and -1 for others.

    Args:
        queries: The queries with their labels.
        by: A label.
        names: The two groups; without them the label has two.

    Returns:
        The codes, ``int8[q]``, and the names of the groups.

    Raises:
        Contradiction: The label has other than two groups, and none are named.
        UnknownName: There is no such group.
    """
    groups = group_by(queries.labels, by, split_cells=True)
    names = tuple(dict.fromkeys(names)) or groups.names
    if len(names) != 2:
        message = f"{by!r} has {len(groups.names)} groups: {', '.join(groups.names[:8])}"
        raise Contradiction(
            message,
            where="groups",
            remedy="name two of them: groups: [A, B], or --groups A --groups B",
        )
    codes = np.full(len(queries), -1, dtype=np.int8)
    found = [groups.find_code(name) for name in names]
    for code, at in zip((1, 0), found, strict=True):
        codes[groups.find_rows(at)] = code
    return codes, tuple(groups.names[at] for at in found)


def _find_stage(model_plan: ModelPlan, metric: str | Mapping[str, Any], k: int) -> Stage:
    """Return the stage that measures a metric without groups, at ``k`` if it has no cutoff.

    Raises:
        MissingEvidence: The run does not measure it.
    """
    claimed = find_claimed(model_plan.metrics, metric, k)
    if claimed is None:
        message = f"{describe_option(metric)} is not among the metrics"
        raise MissingEvidence(message, where="claim.metric", remedy="add it to metrics")
    stage = model_plan.measures[model_plan.metrics.index(claimed)]
    return stage if claimed.grouping is None else stage.inputs[1]


def stack_values(
    found: Sequence[tuple[Any, Any, Any]], n_units: int, claim: ClaimSpec
) -> Contrasts:
    """Return the values of ``ClaimValues.read_claim`` of several plans as one table."""
    first = np.full((len(found), n_units), np.nan)
    second = None if found[0][1] is None and claim.than is None else first.copy()
    groups = None if found[0][2] is None else np.full(first.shape, -1, dtype=np.int8)
    for at, (own, other, members) in enumerate(found):
        first[at, own[0]] = own[1]
        if second is not None and other is None:
            second[at] = claim.than
        elif second is not None:
            second[at, other[0]] = other[1]
        if groups is not None:
            groups[at, members[0]] = members[1]
    return Contrasts(first, second, groups, absolute=claim.groups is None)


def describe_option(value: Any) -> str:
    """Return an option as text: filters by their names and settings.

    >>> describe_option([{"name": "threshold", "at_least": 4}, "binary"]), describe_option([])
    ('threshold(at_least=4) + binary', 'none')
    """
    if isinstance(value, list) and all(isinstance(item, (dict, str)) for item in value):
        return " + ".join(map(describe_option, value)) or "none"
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        settings = [f"{key}={format_value(item)}" for key, item in value.items() if key != "name"]
        name: str = value["name"]
        return f"{name}({', '.join(settings)})" if settings else name
    return value if isinstance(value, str) else format_value(value)


def decide_claim(value: float, p: float, alpha: float) -> ClaimVerdict:
    """Return the verdict on a value that the claim says is above 0."""
    if math.isnan(value):
        return "failed"
    if value <= 0:
        return "reversed" if value < 0 else "not significant"
    return "holds" if p < alpha else "not significant"


def describe_claim(claim: ClaimSpec) -> str:
    """Return a claim in words.

    >>> describe_claim(ClaimSpec(metric="nDCG", model="A", against="B", direction="higher"))
    'nDCG of A is higher than that of B'
    """
    metric = " ".join(filter(None, (describe_option(claim.metric), claim.target)))
    between = f" between {claim.groups[0]} and {claim.groups[1]}" if claim.groups else ""
    what = f"the gap by {claim.by}{between} in {metric}" if claim.by else metric
    if claim.against is not None:
        than = f"that of {claim.against}"
    else:
        than = "0" if claim.than is None else format_value(claim.than)
    return f"{what} of {claim.model} is {claim.direction} than {than}"
