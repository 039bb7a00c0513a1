from __future__ import annotations

from recbias.config.specs import DatasetSpec, PluginSpec, Range


def test_plugin_spec_has_neither_source_nor_search_by_default() -> None:
    spec = PluginSpec("models", "MostPop", "MostPop", None, {}, ("models", 0))
    assert (spec.source, spec.tune) == ("", None)
    assert spec == PluginSpec("models", "MostPop", "MostPop", None, {}, ("models", 0))
    assert DatasetSpec(spec, (), "x").filters == ()


def test_range_has_bounds_and_scale() -> None:
    interval = Range("alpha", 0.001, 1, log=True, integer=False)
    assert (interval.low, interval.high, interval.log, interval.integer) == (0.001, 1, True, False)
