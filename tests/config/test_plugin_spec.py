from __future__ import annotations

from recbias.config.plugin_spec import DatasetSpec, PluginSpec, Range


def test_a_chosen_plugin_is_of_no_file_and_not_searched_unless_said() -> None:
    chosen = PluginSpec("models", "MostPop", "MostPop", None, {}, ("models", 0))
    assert (chosen.source, chosen.tune) == ("", None)
    assert chosen == PluginSpec("models", "MostPop", "MostPop", None, {}, ("models", 0))
    assert DatasetSpec(chosen, (), "x").filters == ()


def test_a_range_says_how_it_is_drawn() -> None:
    drawn = Range("alpha", 0.001, 1, log=True, whole=False)
    assert (drawn.low, drawn.high, drawn.log, drawn.whole) == (0.001, 1, True, False)
