"""The checks of a spec: limits that the values of a run are compared with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from annotated_types import Ge, MinLen

from recbias.config.settings import as_plain
from recbias.config.specs import Gap, PluginSpec, read_metric_name
from recbias.core.errors import Contradiction, OutOfRange, UnknownName
from recbias.core.measures import format_metric
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
        models: The labels of the models to check; by default all models except the
            one compared with and the baselines; if only baselines are left, these.
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
            found = " and ".join(given) or "none"
            message = f"needs one of {', '.join(_LIMITS)}, found {found}"
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
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: as_plain(value) for name, value in vars(self).items() if value != defaults[name]
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
        k: The cutoff of a metric without one.
        variants: The labels of the variants of each model that a sweep varies.
    """

    document: Document
    metrics: Sequence[PluginSpec]
    models: Sequence[PluginSpec]
    k: int
    variants: Mapping[str, Sequence[str]]

    def resolve(self, spec: CheckSpec, where: KeyPath) -> Check | None:
        """Return a check with its metric and models, None if it has no metric."""
        metric, baseline = self._find_metric(spec, (*where, "metric")), None
        if spec.baseline is not None:
            key = "not_below" if spec.not_below is not None else "not_above"
            baseline = self._find_model(spec.baseline, (*where, key))
            changed: dict[str, Any] = {key: baseline or spec.baseline}
            spec = replace(spec, **changed)
        named: list[str | None] = []
        for at, written in enumerate(spec.models or ()):
            place, variants = (*where, "models", at), self.variants.get(normalize_name(written))
            found = [*variants] if variants else [self._find_model(written, place)]
            named += found
            if baseline is not None and baseline in found:
                message = f"{baseline} is the model that the others are compared with"
                remedy = "remove it: its difference from itself is always 0"
                self.document.add_fault(place, message, remedy=remedy, kind=Contradiction)
        others = [model for model in self.models if model.label != baseline]
        judged = [model.label for model in others if not model.is_baseline]
        labels = named or judged or [model.label for model in others]
        names = tuple(label for label in labels if label is not None)
        return None if metric is None else Check(spec, metric, names, baseline)

    def _find_model(self, name: str, where: KeyPath) -> str | None:
        """Return the label of the model that a name means, None if there is none."""
        labels = [model.label for model in self.models]
        matches = [label for label in labels if normalize_name(label) == normalize_name(name)]
        if name in labels or len(matches) == 1:
            return name if name in labels else matches[0]
        if labels and not self._may_be_faulty("models", name):
            message = f"no model of the spec is called {name!r}"
            self.document.add_fault(where, message, remedy=suggest(name, labels), kind=UnknownName)
        return None

    def _may_be_faulty(self, section: str, name: str) -> bool:
        """Return whether a name stands in a section of which entries could not be read."""
        words = re.findall(r"[\w.@-]+", str(self.document.data.get(section)))
        is_written = normalize_name(name) in map(normalize_name, words)
        return is_written and section in self.document.list_faulty_keys()

    def _find_metric(self, spec: CheckSpec, where: KeyPath) -> PluginSpec | None:
        """Return the metric of a check, None if there is none or several.

        It is one with its label, else one with its name, cutoff and groups; at ``k`` of several.
        """
        name, settings = read_metric_name(spec.metric)
        gap = spec.gap if spec.gap != "groups" else None
        groups = {key: value for key, value in (("by", spec.by), ("gap", gap)) if value}
        wanted, k = format_metric(name, settings | groups), settings.get("k")
        if settings.keys() - {"k"}:
            name, k = spec.metric, None  # a label
        same = [
            metric
            for metric in self.metrics
            if normalize_name(wanted) in map(normalize_name, (metric.label, _get_title(metric)))
        ] or [
            metric
            for metric in self.metrics
            if normalize_name(name) in map(normalize_name, _list_names(metric))
            and k in {None, metric.cutoff}
            and _get_groups(spec.by, spec.gap) == _get_groups(**metric.split_settings)
        ]
        if len(same) > 1:
            same = [metric for metric in same if metric.cutoff == self.k] or same
        titles, remedy = [*map(_get_title, self.metrics)], "name one of them"
        if len(same) == 1:
            return same[0]
        if same or (titles and not self._may_be_faulty("metrics", name)):
            message = f"{wanted} is {' and '.join(map(_get_title, same))}"
            if not same:
                message = f"{wanted} is not among the metrics of the spec"
                remedy = f"{suggest(wanted, titles)} (or add it to metrics)"
            self.document.add_fault(where, message, remedy=remedy, kind=UnknownName)
        return None


def _get_title(metric: PluginSpec) -> str:
    return metric.label if metric.cutoff is None else f"{metric.label}@{metric.cutoff}"


def _list_names(metric: PluginSpec) -> list[str]:
    """Return the name of a metric, its label, and the label without its gap."""
    base = metric.label.removesuffix(")").partition(", gap=")[0]
    return [metric.name, metric.label, base]


def _get_groups(by: str | None = None, gap: str | None = None, **_others: Any) -> tuple[str, str]:
    """Return what tells the groups of metrics apart."""
    return "".join((by or "").split()), (by and gap) or "groups"
