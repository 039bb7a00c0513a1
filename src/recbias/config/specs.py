"""The frame of an experiment file: its keys, apart from what the plug-ins add."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from recbias.config.plugin_spec import Pruning
from recbias.core.errors import OutOfRange

Entry: TypeAlias = Any
"""A plug-in: a bare name, or a mapping with ``name``, ``label`` and settings."""

Seed: TypeAlias = Annotated[int, Ge(0), Le(2**63 - 1)]
"""A seed."""

Format: TypeAlias = Literal["csv", "json", "md", "html", "latex"]
"""A format of the report."""

DEFAULT_SEED = 42
"""The seed of a spec that names none."""

_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,100}")
_TAKEN = {"store", "latest"}


@dataclass(frozen=True, kw_only=True)
class ReportSpec:
    """What is written for people to read.

    Args:
        formats: The formats to write.
        reference: Published figures to stand beside the measured ones: ``children/a3``.
        tolerance: How far a figure may be from a published one to agree with it.
    """

    formats: tuple[Format, ...] = ("csv", "json", "md", "html", "latex")
    reference: str | None = None
    tolerance: Annotated[float, Ge(0)] = 0.01


@dataclass(frozen=True, kw_only=True)
class TuneSpec:
    """How the settings of a model are searched for, judged on the validation part.

    Args:
        metric: The metric that is made best.
        trials: How many settings are tried, at most 2,000. Where ``space`` has no more
            combinations than that, each is tried once, and no further trials are made.
        space: What is searched, by setting: ``{log: [a, b]}``, ``{float: [a, b]}``,
            ``{int: [a, b]}`` or ``{choice: [...]}``; or the name of a packaged space: ``thesis``.
        pruning: ``median`` ends a training that is behind half of the earlier trials at the same
            epoch, ``none`` lets all of them finish.
        parallel: How many trials are drawn at once, from those before them, so that as many
            workers can run them.
    """

    metric: Entry
    trials: Annotated[int, Gt(0), Le(2_000)] = 20
    pruning: Pruning = "median"
    parallel: Annotated[int, Gt(0)] = 1
    space: Annotated[dict[str, Any], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """An experiment file.

    Args:
        name: The folder of its results: letters, digits, ``.``, ``_`` and ``-``.
        seed: What all chance is drawn from.
        seeds: Several seeds instead of one, at most 1,000; each is run by itself.
        dataset: A dataset with its filters, or a list of datasets.
        split: How interactions are divided into train, validation and test.
        queries: Who or what is asked.
        k: The length of the lists, at most 10,000.
        models: What is measured.
        labels: Item labels by stereotype detection models.
        metrics: What is measured of each model.
        tests: How models are compared.
        report: What is written for people to read.
    """

    name: str
    seed: Seed = DEFAULT_SEED
    seeds: Annotated[tuple[Seed, ...], MinLen(1), MaxLen(1_000)] | None = None
    dataset: Entry
    split: Entry = None
    queries: Entry = "users"
    k: Annotated[int, Gt(0), Le(10_000)] = 10
    models: Annotated[tuple[Entry, ...], MinLen(1)]
    labels: tuple[Entry, ...] = ()
    metrics: tuple[Entry, ...] = ()
    tests: tuple[Entry, ...] = ()
    report: ReportSpec = ReportSpec()


SECTIONS: Mapping[str, tuple[str, ...]] = {
    "datasets": ("dataset",),
    "filters": ("dataset", "filters"),
    "splits": ("split",),
    "queries": ("queries",),
    "models": ("models",),
    "detectors": ("labels",),
    "metrics": ("metrics",),
    "tests": ("tests",),
}
"""Where the plug-ins of each kind stand in an experiment file."""


def safe_name(name: str) -> str:
    """Return an experiment's name.

    Raises:
        OutOfRange: It cannot be the name of a folder of results.
    """
    if not _NAME.fullmatch(name):
        found = f"{name!r} cannot be the name of a folder"
        raise OutOfRange(found, remedy="use letters, digits, '.', '_' and '-', not '.' first")
    if name.casefold() in _TAKEN:
        raise OutOfRange(f"{name!r} is the name of a folder of recbias", remedy="choose another")
    return name
