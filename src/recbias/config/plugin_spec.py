"""Plug-ins as a spec selects them, with their settings filled in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from recbias.core.measurements.scores import Direction
from recbias.core.protocols import NeedsByParameters
from recbias.formats.yaml import KeyPath


@dataclass(frozen=True)
class Range:
    """The interval that a search samples a setting from.

    Args:
        low: The lower bound.
        high: The upper bound, inclusive.
        log: Whether values are sampled uniformly on a logarithmic scale.
        integer: Whether only integers are sampled.
    """

    parameter: str
    low: float
    high: float
    log: bool
    integer: bool


@dataclass(frozen=True)
class Choice:
    """The values that a search samples a setting from.

    Args:
        values: The values as in the spec.
        parsed_values: The same values as the plug-in accepts them.
    """

    parameter: str
    values: tuple[Any, ...]
    parsed_values: tuple[Any, ...] = field(default=(), compare=False)


Dimension: TypeAlias = Range | Choice
"""One setting of a search space."""

Pruning: TypeAlias = Literal["median", "none"]
"""When a trial is stopped because earlier trials were better at the same epoch."""

Objective: TypeAlias = Literal["value", "largest_p"]
"""What a trial is judged by: the value of the metric, or the p-value of its test."""


@dataclass(frozen=True)
class Tune:
    """The hyperparameter search of a model.

    Args:
        written: The ``tune`` mapping of the spec with defaults filled in.
        parallel: The number of trials sampled at once, from the results of the trials before.
        objective: What a trial is judged by.
        max_perplexity_increase: The increase of perplexity above which a trial is excluded.
    """

    metric: PluginSpec
    trials: int
    space: tuple[Dimension, ...]
    written: dict[str, Any]
    pruning: Pruning = "median"
    parallel: int = 1
    objective: Objective = "value"
    max_perplexity_increase: float | None = None

    @property
    def direction(self) -> Direction:
        """Whether a higher or lower value of a trial is better."""
        return "higher" if self.objective == "largest_p" else self.metric.direction


Gap: TypeAlias = Literal[
    "groups",
    "difference",
    "ratio",
    "std",
    "ugf",
    "mad",
    "cross_entropy",
    "atkinson",
    "atkinson_within",
    "atkinson_total",
    "worst",
    "worst_quarter",
]
"""How a metric is reported by group: the mean of each group, or one number for their spread."""

GAPS: tuple[Gap, ...] = get_args(Gap)

DEFAULT_GAPS: tuple[Gap, ...] = ("groups", "difference", "ratio", "std")
"""The ways in which a metric with ``by`` and without ``gap`` is reported."""

_GAP_DIRECTIONS: dict[str, Direction] = {
    **dict.fromkeys(("difference", "std", "ugf", "mad", "cross_entropy"), "lower"),
    **dict.fromkeys(("atkinson", "atkinson_within", "atkinson_total"), "lower"),
    "ratio": "higher",
}
"""The directions of the gaps; the worst groups have that of the metric."""


@dataclass(frozen=True)
class Grouping:
    """The grouping of a metric by a label of the queries.

    Args:
        by: A label, a condition, or a combination of them: ``gender&age < 25``.
        gap: How the groups are reported; blank for every way, until the entry is expanded.
        min_group: The least number of values of a group that is compared with others.
        reference_group: The group that each other group is compared with; blank for all pairs.
    """

    by: str
    gap: Gap | Literal[""] = ""
    min_group: int = 0
    reference_group: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of the entry: ``by``, ``gap``, and the others if they are given."""
        given = {name: value for name, value in vars(self).items() if value}
        return {"by": self.by, "gap": self.gap} | given


@dataclass(frozen=True)
class PluginSpec:
    """A plug-in as a spec selects it.

    Args:
        kind: The key of its registry: ``models``, ``metrics`` and so on.
        plugin: The dataclass with its settings.
        parameters: All settings as JSON, with paths as the user wrote them.
        where: Its place in the spec.
        source: The digest of its file for ``./file.py:Name``, else blank.
        rerankers: The re-rankers of a model, each of which makes another entry.
        reranked: Of such an entry, the model whose lists are re-ranked, and the re-ranker.
        is_labelled: Whether the label is written in the spec.
    """

    kind: str
    name: str
    label: str
    plugin: Any
    parameters: dict[str, Any]
    where: KeyPath
    source: str = ""
    tune: Tune | None = None
    grouping: Grouping | None = None
    rerankers: tuple[PluginSpec, ...] = ()
    reranked: Reranked | None = None
    is_labelled: bool = False

    @cached_property
    def needs(self) -> frozenset[str]:
        """The evidence that a metric or model needs with its settings."""
        plugin = self.plugin
        return (
            plugin.needs_now()
            if isinstance(plugin, NeedsByParameters)
            else frozenset(plugin.needs)
        )

    @cached_property
    def ungrouped(self) -> PluginSpec:
        """The metric without its groups, with its name as label."""
        return replace(self, grouping=None, label=self.name)

    @property
    def cutoff(self) -> int | None:
        """The cutoff k of a metric, or None if it has none."""
        k = self.parameters.get("k")
        return k if isinstance(k, int) else None

    @property
    def split_settings(self) -> dict[str, Any]:
        """The keys of the entry that group a metric: ``by``, ``gap``, ..."""
        return self.grouping.settings if self.grouping else {}

    @property
    def direction(self) -> Direction:
        """Whether higher or lower is better; for a gap, a smaller difference is better."""
        gap = self.grouping.gap if self.grouping else ""
        direction: Direction = _GAP_DIRECTIONS.get(gap) or self.plugin.direction
        return direction


@dataclass(frozen=True)
class Reranked:
    """A model, and the re-ranker of its lists."""

    base: PluginSpec
    reranker: PluginSpec


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset and its filters, in the order in which they are applied."""

    source: PluginSpec
    filters: tuple[PluginSpec, ...]
    label: str
