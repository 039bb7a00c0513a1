"""Metrics by group of queries: ``by:`` in a spec."""

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
from recbias.runner.stages.model import derive_bootstrap_seed
from recbias.statistics.group_gaps import compute_gap, summarize_groups


@dataclass(frozen=True)
class GroupMeasurements:
    """Group the stored values of a metric, so that the metric is computed once for all groups."""

    name: str
    grouping: Grouping

    def __call__(
        self, queries: Queries, measurements: Sequence[Measurement]
    ) -> tuple[Measurement, ...]:
        """Return the values of the groups, or their gap."""
        groups = form_groups(queries, self.grouping.by)
        if self.grouping.gap == "groups":
            _warn_of_missing_labels(groups, self.name)
        return tuple(
            grouped
            for measurement in measurements
            for grouped in self._group(measurement, groups, queries)
        )

    def _group(
        self, measurement: Measurement, groups: Groups, queries: Queries
    ) -> Iterator[Measurement]:
        units = measurement.units
        if units is None or not np.array_equal(units.ids, queries.ids.ids):
            message = f"{self.name} has no value for each query, so it cannot be grouped"
            raise BrokenContract(message, remedy="remove `by`")
        gap = self.grouping.gap
        if gap in {"difference", "ratio", "std"}:
            rng = np.random.default_rng(derive_bootstrap_seed(queries))
            yield compute_gap(measurement, groups, gap, rng=rng)
        else:
            yield from summarize_groups(measurement, groups)


def form_groups(queries: Queries, by: str) -> Groups:
    """Return the groups of queries that a metric is reported for.

    Raises:
        NothingLeft: All queries are in one group; see also ``group_by``.
    """
    groups = group_by(queries.labels, by)
    if len(groups.names) < 2:
        message = f"all queries with the label {by!r} are in one group, {groups.names[0]}"
        raise NothingLeft(message, remedy="group by a label with at least two values")
    return groups


def _warn_of_missing_labels(groups: Groups, metric: str) -> None:
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} queries have no label {groups.by!r}")
    singles = [name for name, n in zip(groups.names, groups.counts, strict=True) if n == 1]
    if singles:
        subject = f"{singles[0]} has"
        if len(singles) > 1:
            subject = f"{len(singles):,} groups, such as {singles[0]}, have"
        warn(f"{metric}: {subject} only one query, so there is no interval and no test")
