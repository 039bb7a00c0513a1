"""Plug-ins as a spec chose them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from recbias.core.measurements.scores import Direction
from recbias.formats.yaml.source_map import Place


@dataclass(frozen=True)
class Range:
    """Numbers that a search draws from.

    Args:
        parameter: The setting that is searched.
        low: The least value.
        high: The greatest value, which is included.
        log: Whether the logarithm is drawn evenly.
        whole: Whether only whole numbers are drawn.
    """

    parameter: str
    low: float
    high: float
    log: bool
    whole: bool


@dataclass(frozen=True)
class Choice:
    """Values that a search draws from.

    Args:
        parameter: The setting that is searched.
        values: What it may be, as in a spec.
        built: The same values as the plug-in takes them.
    """

    parameter: str
    values: tuple[Any, ...]
    built: tuple[Any, ...] = field(default=(), compare=False)


Dimension: TypeAlias = Range | Choice
"""One setting that is searched."""


Pruning: TypeAlias = Literal["median", "none"]
"""When a training is ended because earlier trials were better at the same epoch."""


@dataclass(frozen=True)
class Tune:
    """How the settings of a model are searched for.

    Args:
        metric: What is made best, on the validation part.
        trials: How many settings are tried, at most.
        space: What is searched.
        written: The mapping of the spec, defaults filled in.
        pruning: When a trial is ended before its time.
        parallel: How many trials are drawn at once, from those before them.
    """

    metric: PluginSpec
    trials: int
    space: tuple[Dimension, ...]
    written: dict[str, Any]
    pruning: Pruning = "median"
    parallel: int = 1


Gap: TypeAlias = Literal["groups", "difference", "ratio", "std"]
"""What is said of a metric by group: each group's figure, or one number of how they differ."""

GAPS: tuple[Gap, ...] = get_args(Gap)

_GAP_DIRECTIONS: dict[str, Direction] = {"difference": "lower", "ratio": "higher", "std": "lower"}


@dataclass(frozen=True)
class Grouping:
    """A metric of each query that is split by what is known of the queries.

    Args:
        by: A label, a condition, or a crossing of several: ``gender&age < 25``.
        gap: Which figures are given; blank for all, until the entry is spread.
    """

    by: str
    gap: Gap | Literal[""] = ""


@dataclass(frozen=True)
class PluginSpec:
    """A plug-in as the spec chose it.

    Args:
        kind: The key of its registry: ``models``, ``metrics`` and so on.
        name: Its published name.
        label: What reports call it.
        plugin: The dataclass, filled.
        parameters: All settings in effect, as JSON has them, paths as the user wrote them.
        where: Its place in the spec.
        source: The digest of its file where it is ``./file.py:Name``, else blank.
        tune: The search for its settings, or None.
        grouping: For a metric that is split by a label of the queries.
    """

    kind: str
    name: str
    label: str
    plugin: Any
    parameters: dict[str, Any]
    where: Place
    source: str = ""
    tune: Tune | None = None
    grouping: Grouping | None = None

    @property
    def split_settings(self) -> dict[str, str]:
        """The keys of the entry that split a metric by a label: ``by`` and ``gap``."""
        return {"by": self.grouping.by, "gap": self.grouping.gap} if self.grouping else {}

    @property
    def direction(self) -> Direction:
        """Which way is better: a gap is best when there is none."""
        gap = self.grouping.gap if self.grouping else ""
        if gap in _GAP_DIRECTIONS:
            return _GAP_DIRECTIONS[gap]
        own: Direction = self.plugin.direction
        return own


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset and what is left out of it.

    Args:
        source: The dataset.
        filters: Applied in order.
        label: What reports call it.
    """

    source: PluginSpec
    filters: tuple[PluginSpec, ...]
    label: str
