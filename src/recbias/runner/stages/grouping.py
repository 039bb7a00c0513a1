"""A metric of each query split by what is known of the queries: ``by:`` in a spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.config.plugin_spec import Grouping
from recbias.core.errors import BrokenContract, NothingLeft
from recbias.core.measurements.scores import Measurement
from recbias.core.queries.groups import Groups, group_by
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.runner.stages.model import bootstrap_seed
from recbias.statistics.group_gaps import compute_gap, summarize_groups

FEWEST = 2
"""A split into fewer groups says nothing."""


@dataclass(frozen=True)
class SplitFigures:
    """Split what a metric measured, so that it is measured once for all its groups and gaps.

    Args:
        name: The metric's name.
        grouping: The label, and what is said of its groups.
    """

    name: str
    grouping: Grouping

    def __call__(
        self, queries: Queries, figures: Sequence[Measurement]
    ) -> tuple[Measurement, ...]:
        """Return the figures of the groups, or of how they differ."""
        groups = groups_of(queries, self.grouping.by)
        if self.grouping.gap == "groups":
            _warn(groups, self.name)
        return tuple(part for each in figures for part in self._parts(each, groups, queries))

    def _parts(
        self, figure: Measurement, groups: Groups, queries: Queries
    ) -> Iterator[Measurement]:
        if figure.units is None or not np.array_equal(figure.units.ids, queries.ids.ids):
            found = f"{self.name} has no value for each query, so it has no groups"
            raise BrokenContract(found, remedy="leave by out")
        kind = self.grouping.gap
        if kind in {"difference", "ratio", "std"}:
            rng = np.random.default_rng(bootstrap_seed(queries))
            yield compute_gap(figure, groups, kind, rng=rng)
        else:
            yield from summarize_groups(figure, groups)


def groups_of(queries: Queries, by: str) -> Groups:
    """Return the groups that a metric is split into.

    Raises:
        NothingLeft: All queries are in one group; see also ``group_by``.
    """
    groups = group_by(queries.labels, by)
    if len(groups.names) < FEWEST:
        found = f"all queries with the label {by!r} are in one group, {groups.names[0]}"
        raise NothingLeft(found, remedy="split by a label that queries differ in")
    return groups


def _warn(groups: Groups, metric: str) -> None:
    """Say how many queries are in no group, and which groups hold a single one."""
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} queries have no label {groups.by!r}")
    alone = [name for name, n in zip(groups.names, groups.counts, strict=True) if n == 1]
    if alone:
        said = f"{alone[0]} and {len(alone) - 1:,} other groups hold" if alone[1:] else alone[0]
        verb = "" if alone[1:] else " holds"
        warn(f"{metric}: {said}{verb} one query, which gives no interval and no test")
