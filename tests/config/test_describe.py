from __future__ import annotations

from dataclasses import dataclass

from recbias.config.describe import Parameter, json_schema, parameters, summary
from support import fake_plugins


def test_the_settings_of_a_plugin_in_words() -> None:
    assert parameters(fake_plugins.ItemKNN)[:3] == [
        Parameter(
            name="neighbors",
            type="a whole number",
            default="50",
            range="above 0",
            doc="How many neighbours an item has.",
            needed=False,
        ),
        Parameter(
            name="similarity",
            type="one of cosine, jaccard, dice",
            default="cosine",
            range="",
            doc="How like two items are.",
            needed=False,
        ),
        Parameter(
            name="shrink",
            type="a number",
            default="0.0",
            range="at least 0",
            doc="Pulls the similarity of rare items down.",
            needed=False,
        ),
    ]


def test_a_setting_that_is_needed_has_no_default() -> None:
    (path,) = parameters(fake_plugins.Lists)
    assert (path.type, path.default, path.needed) == ("a file", "", True)
    (from_,) = parameters(fake_plugins.Names)
    assert from_.name == "from"
    assert parameters(fake_plugins.MostPop) == []


def test_a_class_without_a_docstring_has_settings_all_the_same() -> None:
    @dataclass
    class Bare:
        size: int = 3

    assert [(each.name, each.doc) for each in parameters(Bare)] == [("size", "")]


def test_the_schema_and_the_summary_are_at_hand_here() -> None:
    assert json_schema({})["$defs"] == {}
    assert summary(fake_plugins.ItemKNN) == "Recommend items like the user's."
