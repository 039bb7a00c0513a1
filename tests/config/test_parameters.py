from __future__ import annotations

from dataclasses import dataclass

from recbias.config.settings import Parameter, list_parameters
from support.models import fake_plugins


def test_parameters_describe_type_default_and_range() -> None:
    assert list_parameters(fake_plugins.ItemKNN)[:3] == [
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


def test_required_setting_has_no_default() -> None:
    (path,) = list_parameters(fake_plugins.Lists)
    assert (path.type, path.default, path.needed) == ("a file", "", True)
    (from_,) = list_parameters(fake_plugins.Names)
    assert from_.name == "from"
    assert list_parameters(fake_plugins.MostPop) == []


def test_class_without_a_docstring_has_parameters() -> None:
    @dataclass
    class Bare:
        size: int = 3

    assert [(row.name, row.doc) for row in list_parameters(Bare)] == [("size", "")]
