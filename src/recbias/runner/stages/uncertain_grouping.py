"""Metrics by groups that are known as probabilities: ``by: probability of p_female``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from recbias.config.plugin_spec import Grouping
from recbias.core.errors import Contradiction, UnknownName
from recbias.core.measurements.scores import Measurement
from recbias.core.queries.queries import Queries
from recbias.core.queries.uncertain_groups import UncertainGroups, read_uncertain_groups
from recbias.core.stage_context import warn
from recbias.statistics.uncertain.group_means import (
    compute_uncertain_gap,
    summarize_uncertain_groups,
)

LOW_INFORMATION = 0.1
"""Below this share of explained variance, intervals are more than three times as wide."""


def form_uncertain_groups(queries: Queries, grouping: Grouping) -> UncertainGroups:
    """Return the probabilities of the groups that a metric is reported for.

    Raises:
        UserError: The probabilities are out of range, do not add up to 1, or tell nothing.
        UnknownName: There is no such reference group.
        Contradiction: ``ugf`` is asked for other than two groups.
    """
    groups = read_uncertain_groups(queries.labels, grouping.by)
    if grouping.gap == "ugf" and len(groups.names) > 2:
        message = f"ugf compares two groups, and {grouping.by!r} has {len(groups.names):,}"
        raise Contradiction(message, where="gap", remedy="choose gap: difference")
    find_reference(groups, grouping)
    return groups


def find_reference(groups: UncertainGroups, grouping: Grouping) -> int:
    """Return the position of the reference group, -1 if there is none."""
    if not grouping.reference_group:
        return -1
    try:
        return groups.find_code(grouping.reference_group)
    except UnknownName as error:
        raise UnknownName(error.message, where="reference_group", remedy=error.remedy) from error


def measure_by_probability(
    measurements: Sequence[Measurement],
    groups: UncertainGroups,
    grouping: Grouping,
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:
    """Return the means of the groups, or their gap, of each target of a metric."""
    reference, kind = find_reference(groups, grouping), grouping.gap
    if kind in {"", "groups"}:
        return tuple(
            group
            for measurement in measurements
            for group in summarize_uncertain_groups(measurement, groups, reference=reference)
        )
    gap: Literal["difference", "ratio", "std"] = "difference"
    if kind in {"ratio", "std"}:
        gap = kind
    return tuple(
        compute_uncertain_gap(measurement, groups, gap, rng=rng) for measurement in measurements
    )


def warn_of_probabilities(groups: UncertainGroups, metric: str) -> None:
    """Warn of queries without a probability, and of probabilities that tell little."""
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} queries have no label {groups.by!r}")
    least = int(groups.information.argmin())
    share = float(groups.information[least])
    if share < LOW_INFORMATION:
        name, factor = groups.names[least], 1.0 / np.sqrt(share)
        tells = f"{name} tells {share:.1%} of the variance of its label"
        if groups.assumption == "probability":
            cost = f"the interval is about {factor:.1f} times as wide as with certain labels"
        else:
            cost = "a difference that does not show in the probability is not seen"
        warn(f"{metric}: {tells}, so {cost}")
