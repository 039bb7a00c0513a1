"""Plug-ins as a spec chose them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from recbias.config.places import Place


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
    """

    parameter: str
    values: tuple[Any, ...]


Dimension: TypeAlias = Range | Choice
"""One setting that is searched."""


@dataclass(frozen=True)
class Tune:
    """How the settings of a model are searched for.

    Args:
        metric: What is made best, on the validation part.
        trials: How many settings are tried.
        space: What is searched.
        written: The mapping of the spec, defaults filled in.
    """

    metric: Chosen
    trials: int
    space: tuple[Dimension, ...]
    written: dict[str, Any]


@dataclass(frozen=True)
class Chosen:
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
    """

    kind: str
    name: str
    label: str
    plugin: Any
    parameters: dict[str, Any]
    where: Place
    source: str = ""
    tune: Tune | None = None


@dataclass(frozen=True)
class ChosenDataset:
    """A dataset and what is left out of it.

    Args:
        source: The dataset.
        filters: Applied in order.
        label: What reports call it.
    """

    source: Chosen
    filters: tuple[Chosen, ...]
    label: str
