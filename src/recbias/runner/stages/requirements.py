"""What a plug-in needs with its settings."""

from __future__ import annotations

from recbias.config.experiment import PluginSpec
from recbias.core.protocols import NeedsByParameters


def list_needs(spec: PluginSpec) -> frozenset[str]:
    """Return the evidence that a metric or model needs with its settings."""
    plugin = spec.plugin
    if isinstance(plugin, NeedsByParameters):
        return plugin.needs_now()
    return frozenset(plugin.needs)


def get_cutoff(metric: PluginSpec) -> int | None:
    """Return the cutoff k of a metric, or None if it has none."""
    k = metric.parameters.get("k")
    return int(k) if k is not None else None
