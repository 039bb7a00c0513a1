"""What evidence a plug-in needs with the parameters it was given."""

from __future__ import annotations

from recbias.config.experiment import PluginSpec
from recbias.core.protocols import NeedsByParameters


def needs(chosen: PluginSpec) -> frozenset[str]:
    """Return what a metric or model needs with the parameters it has."""
    plugin = chosen.plugin
    if isinstance(plugin, NeedsByParameters):
        return plugin.needs_now()
    return frozenset(plugin.needs)


def cutoff(metric: PluginSpec) -> int | None:
    """Return the cutoff of a metric, None where it has none."""
    k = metric.parameters.get("k")
    return int(k) if k is not None else None
