"""The checks of a spec: limits that the values of a run are compared with."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from annotated_types import Ge, MinLen

from recbias.config.specs import Gap, Grouping, PluginSpec
from recbias.core.errors import Contradiction, OutOfRange, UnknownName, WrongType
from recbias.core.measures import format_metric, parse_metric
from recbias.core.text import normalize_name, suggest
from recbias.formats.yaml import Document, KeyPath

_LIMITS = ("at_least", "at_most", "within", "not_below", "not_above")
"""The keys of a check that set its limit; a check has one of them."""


@dataclass(frozen=True, kw_only=True)
class CheckSpec:
    """A limit on the values of one metric.

    Args:
        metric: A metric of the spec, by its name or label: ``nDCG``, ``nDCG@5``.
        by: The groups of the metric, as in its entry under ``metrics``.
        gap: The gap between the groups, as in its entry; without it each group is checked.
        at_least: The smallest value that passes.
        at_most: The largest value that passes.
        within: The smallest and the largest value that pass.
        not_below: A model; the value may be below that model's by at most ``margin``.
        not_above: A model; the value may be above that model's by at most ``margin``.
        margin: The difference that ``not_below`` and ``not_above`` tolerate.
        models: The labels of the models to check; by default all but the one to compare with and
            the baselines, or these too if there are no others.
        strict: Whether an undecided check fails.
    """

    metric: str
    by: str | None = None
    gap: Gap | None = None
    at_least: float | None = None
    at_most: float | None = None
    within: tuple[float, float] | None = None
    not_below: str | None = None
    not_above: str | None = None
    margin: Annotated[float, Ge(0)] = 0.0
    models: Annotated[tuple[str, ...], MinLen(1)] | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        given = [name for name in _LIMITS if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none"
            message = f"needs one of {', '.join(_LIMITS)}, {found}"
            raise Contradiction(message, remedy="write a check for each limit: at_most: 0.05")
        if self.margin and self.baseline is None:
            remedy = "remove it, or compare with a model: not_below: MostPop"
            message = "margin belongs to not_below and not_above"
            raise Contradiction(message, where="margin", remedy=remedy)
        if self.within is not None and self.within[0] > self.within[1]:
            remedy = "write the smaller value first"
            raise OutOfRange("the first value is the larger", where="within", remedy=remedy)
        if self.gap is not None and self.by is None:
            raise Contradiction("gap needs by", where="gap", remedy="add by: gender")

    @property
    def baseline(self) -> str | None:
        """The model that others are compared with, None for a limit on the value itself."""
        return self.not_below if self.not_below is not None else self.not_above

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value that pass; of the difference from a baseline.

        >>> CheckSpec(metric="nDCG", not_below="MostPop", margin=0.01).limits
        (-0.01, inf)
        """
        low = -self.margin if self.not_below is not None else self.at_least
        high = self.margin if self.not_above is not None else self.at_most
        if self.within is not None:
            low, high = self.within
        return -math.inf if low is None else low, math.inf if high is None else high

    @property
    def limit(self) -> str:
        """The limit in words.

        >>> CheckSpec(metric="nDCG", within=(-0.2, 0.2)).limit
        'between -0.2 and 0.2'
        >>> CheckSpec(metric="nDCG", not_below="MostPop", margin=0.01).limit
        'not below MostPop - 0.01'
        """
        if self.within is not None:
            return f"between {self.within[0]:g} and {self.within[1]:g}"
        name = next(name for name in _LIMITS if getattr(self, name) is not None)
        value, words = getattr(self, name), name.replace("_", " ")
        if self.baseline is None:
            return f"{words} {value:g}"
        sign = "-" if self.not_below is not None else "+"
        return f"{words} {value} {sign} {self.margin:g}" if self.margin else f"{words} {value}"

    def as_written(self) -> dict[str, Any]:
        """Return the entry of the spec, without defaults."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != defaults[name]
        }


@dataclass(frozen=True)
class Check:
    """A check with the metric and the models of the spec that it names.

    Args:
        models: The labels of the models to check.
        baseline: The label of the model they are compared with, or None.
    """

    spec: CheckSpec
    metric: PluginSpec
    models: tuple[str, ...]
    baseline: str | None = None


@dataclass(frozen=True, kw_only=True)
class CheckResolver:
    """Finds the metrics and models of checks; faults are recorded in the document.

    Args:
        labels: The labels of the models.
        baselines: Those of the baselines.
        k: The cutoff of a metric without one.
        variants: The labels of the variants of each model that a sweep varies.
        unread: Names that are no faults, as their entries have faults themselves.
    """

    document: Document
    metrics: Sequence[PluginSpec]
    labels: Sequence[str]
    baselines: Collection[str]
    k: int
    variants: Mapping[str, Sequence[str]]
    unread: Collection[str]

    def resolve_all(self, specs: Sequence[CheckSpec | None]) -> tuple[Check, ...]:
        """Return the checks that have no fault."""
        checks = [
            self.resolve(spec, ("checks", at)) for at, spec in enumerate(specs) if spec is not None
        ]
        return tuple(check for check in checks if check is not None)

    def resolve(self, spec: CheckSpec, where: KeyPath) -> Check | None:
        """Return a check with its metric and models, None if it has no metric."""
        metric, baseline = self.resolve_metric(spec, (*where, "metric")), None
        if spec.baseline is not None:
            key = "not_below" if spec.not_below is not None else "not_above"
            baseline = self.resolve_model(spec.baseline, (*where, key))
            changed: dict[str, Any] = {key: baseline or spec.baseline}
            spec = replace(spec, **changed)
        named: list[str | None] = []
        for at, written in enumerate(spec.models or ()):
            if variants := self.variants.get(normalize_name(written)):
                named += variants
            else:
                named.append(self.resolve_model(written, (*where, "models", at)))
        others = [label for label in self.labels if label != baseline]
        models = named or [label for label in others if label not in self.baselines] or others
        names = tuple(name for name in models if name is not None)
        for at, name in enumerate(named if baseline is not None else ()):
            if name == baseline:
                message = f"{name} is the model that the others are compared with"
                remedy = "remove it: its difference from itself is always 0"
                self.document.add_fault(
                    (*where, "models", at), message, remedy=remedy, kind=Contradiction
                )
        return None if metric is None else Check(spec, metric, names, baseline)

    def resolve_model(self, name: str, where: KeyPath) -> str | None:
        """Return the label of the model that a name means, None if there is none."""
        matches = [label for label in self.labels if normalize_name(label) == normalize_name(name)]
        if name in self.labels or len(matches) == 1:
            return name if name in self.labels else matches[0]
        if normalize_base(name) in self.unread:
            return None
        message = f"no model of the spec is called {name!r}"
        remedy = suggest(name, self.labels) if self.labels else "correct the models of the spec"
        self.document.add_fault(where, message, remedy=remedy, kind=UnknownName)
        return None

    def resolve_metric(self, spec: CheckSpec, where: KeyPath) -> PluginSpec | None:
        """Return the metric of a check, None if there is none or several."""
        matches = _find_metrics(spec, self.metrics)
        if len(matches) > 1:
            matches = [metric for metric in matches if metric.cutoff == self.k] or matches
        if len(matches) == 1:
            return matches[0]
        if not matches and normalize_base(spec.metric) in self.unread:
            return None
        wanted, titles = _format_wanted(spec), [_format_title(metric) for metric in self.metrics]
        message = f"{wanted} is not among the metrics of the spec"
        remedy = (
            f"{suggest(wanted, titles)} (or add it to metrics)" if titles else "add it to metrics"
        )
        if matches:
            message = f"{wanted} is {' and '.join(map(_format_title, matches))}"
            remedy = "name one of them"
        self.document.add_fault(where, message, remedy=remedy, kind=UnknownName)
        return None


def normalize_base(name: str) -> str:
    """Return the name of a metric or model without cutoff and settings: ``ndcg`` of ``nDCG@5``."""
    return normalize_name(re.split(r"[@(]", name, maxsplit=1)[0])


def _find_metrics(spec: CheckSpec, metrics: Iterable[PluginSpec]) -> list[PluginSpec]:
    """Return the metrics that a check means: those with its label, else with its name."""
    by_label = [metric for metric in metrics if _has_label(spec, metric)]
    return by_label or [metric for metric in metrics if _has_name(spec, metric)]


def _has_label(spec: CheckSpec, metric: PluginSpec) -> bool:
    spellings = {normalize_name(text) for text in (metric.label, _format_title(metric))}
    return normalize_name(_format_wanted(spec)) in spellings


def _has_name(spec: CheckSpec, metric: PluginSpec) -> bool:
    """Return whether a metric has the name, the cutoff and the groups of a check."""
    grouping = Grouping(spec.by, spec.gap or "groups") if spec.by is not None else None
    name, k = _parse(spec.metric)
    label = metric.label.removesuffix(")").partition(", gap=")[0]
    names = {normalize_name(text) for text in (metric.name, metric.label, label)}
    has_groups = _simplify(grouping) == _simplify(metric.grouping)
    return normalize_name(name) in names and k in {None, metric.cutoff} and has_groups


def _simplify(grouping: Grouping | None) -> tuple[str, str] | None:
    return None if grouping is None else ("".join(grouping.by.split()), grouping.gap or "groups")


def _parse(text: str) -> tuple[str, Any]:
    try:
        name, settings = parse_metric(text)
    except WrongType:
        return text, None
    return (text, None) if settings.keys() - {"k"} else (name, settings.get("k"))


def _format_wanted(spec: CheckSpec) -> str:
    """Return the metric of a check in the notation of labels."""
    grouping = {"by": spec.by, "gap": spec.gap if spec.gap != "groups" else None}
    shown = {key: value for key, value in grouping.items() if value is not None}
    try:
        name, settings = parse_metric(spec.metric)
    except WrongType:
        return spec.metric
    return format_metric(name, settings | shown)


def _format_title(metric: PluginSpec) -> str:
    return metric.label if metric.cutoff is None else f"{metric.label}@{metric.cutoff}"
