"""The faults of metrics by groups of queries, found before any work."""

from __future__ import annotations

from collections.abc import Iterator

from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.plugin_spec import Grouping
from recbias.core.errors import Contradiction, UserError
from recbias.core.queries.uncertain_groups import parse_uncertain_label

UNCERTAIN_GAPS = ("groups", "difference", "ratio", "std", "ugf")
"""The gaps of groups that are known as probabilities."""


def find_grouping_faults(experiment: Experiment, metric: PluginSpec) -> Iterator[UserError]:
    """Yield the faults of ``by`` and ``gap`` of a metric."""
    if metric.grouping is None:
        return
    if metric.plugin.unit != "query":
        message = f"{metric.name} has no value for each query, so it cannot be grouped"
        key_path, remedy = (*metric.where, "by"), "remove by, or choose a metric such as nDCG"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    if metric.grouping.gap in {"worst", "worst_quarter"} and metric.direction == "none":
        message = f"{metric.name} has no better and worse, so no group is the worst"
        key_path, remedy = (*metric.where, "gap"), "choose gap: difference"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    if parse_uncertain_label(metric.grouping.by) is not None:
        yield from _check_probabilities(experiment, metric, metric.grouping)


def _check_probabilities(
    experiment: Experiment, metric: PluginSpec, grouping: Grouping
) -> Iterator[UserError]:
    """Yield the settings that need the group of each query, where it is a probability."""
    if grouping.gap and grouping.gap not in UNCERTAIN_GAPS:
        message = f"{grouping.gap} needs the group of each query, and {grouping.by!r} is not known"
        key_path, remedy = (*metric.where, "gap"), f"choose one of {', '.join(UNCERTAIN_GAPS)}"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
    if grouping.min_group:
        message = f"min_group counts the queries of a group, and {grouping.by!r} is not known"
        key_path, remedy = (*metric.where, "min_group"), "remove it: every group is compared"
        yield experiment.fault(key_path, message, remedy=remedy, kind=Contradiction)
