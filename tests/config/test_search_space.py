from __future__ import annotations

from typing import Any

import pytest

from recbias.config.build import Builder
from recbias.config.plugin_spec import Choice, Range
from recbias.config.search_space import read_space
from recbias.formats.yaml.source_map import Document
from support import fake_plugins


def read(raw: dict[str, Any], cls: type = fake_plugins.SLIM) -> tuple[Any, list[list[str]]]:
    builder = Builder(Document({}), cls.__name__)
    space = read_space(builder, cls, raw, ())
    return space, [error.lines() for _, error in builder.document.faults]


def test_what_is_searched_is_read_in_order() -> None:
    raw = {
        "alpha": {"log": [0.001, 1]},
        "l1_ratio": {"float": [0, 1]},
        "neighbors": {"int": [5, 1000]},
    }
    space, faults = read(raw)
    assert faults == []
    assert space == (
        Range("alpha", 0.001, 1, log=True, whole=False),
        Range("l1_ratio", 0, 1, log=False, whole=False),
        Range("neighbors", 5, 1000, log=False, whole=True),
    )


def test_a_logarithm_of_a_whole_number_stays_whole() -> None:
    assert read({"neighbors": {"log": [1, 100]}})[0][0].whole
    assert not read({"alpha": {"log": [1, 100]}})[0][0].whole


def test_values_may_be_listed() -> None:
    raw = {"similarity": {"choice": ["cosine", "dice"]}, "binary": {"choice": [True, False]}}
    space, faults = read(raw, fake_plugins.ItemKNN)
    assert faults == []
    assert space == (Choice("similarity", ("cosine", "dice")), Choice("binary", (True, False)))
    assert [each.built for each in space] == [("cosine", "dice"), (True, False)]


WAYS = "write {log: [0.001, 1]}, {float: [0, 1]}, {int: [5, 1000]} or {choice: [a, b]}"


@pytest.mark.parametrize(
    ("raw", "error", "remedy"),
    [
        ({"alfa": {"log": [1, 2]}}, "alfa: not a setting of SLIM", "did you mean alpha?"),
        ({"alpha": 3}, "alpha: must say how it is drawn, found 3", WAYS),
        ({"alpha": [1, 2]}, "alpha: must say how it is drawn, found a list", WAYS),
        ({"alpha": {}}, "alpha: must say how it is drawn, found an empty mapping", WAYS),
        (
            {"alpha": {"lgo": [1, 2]}},
            "alpha.lgo: not a way to draw a setting",
            "did you mean log?",
        ),
        (
            {"alpha": {"log": 3}},
            "alpha.log: must be the least and the greatest value, found 3",
            "write {log: [a, b]}",
        ),
        (
            {"alpha": {"float": [1, 2, 3]}},
            "alpha.float: must be the least and the greatest value, found a list",
            "write {float: [a, b]}",
        ),
        (
            {"alpha": {"float": [True, 2]}},
            "alpha.float: must be the least and the greatest value, found a list",
            "write {float: [a, b]}",
        ),
        ({"alpha": {"log": [2, 2]}}, "alpha.log: 2 is not below 2", ""),
        ({"l1_ratio": {"log": [0, 1]}}, "l1_ratio.log: 0 has no logarithm", "begin above 0"),
        (
            {"l1_ratio": {"float": [0, 1.5]}},
            "l1_ratio.float[1]: must be a number from 0 to 1, found 1.5",
            "the default is 0.1",
        ),
        (
            {"neighbors": {"int": [0, 5]}},
            ("neighbors.int[0]: must be a whole number above 0 or nothing (null), found 0"),
            "give a whole number above 0 or nothing (null)",
        ),
        (
            {"neighbors": {"float": [1, 5]}},
            "neighbors.float: neighbors is a whole number",
            "write {int: [1, 5]}",
        ),
        (
            {"neighbors": {"log": [1.5, 5]}},
            "neighbors.log[0]: must be a whole number, found 1.5",
            "",
        ),
        (
            {"alpha": {"int": [1, 2.5]}},
            "alpha.int[1]: must be a whole number, found 2.5",
            "",
        ),
        (
            {"alpha": {"choice": []}},
            "alpha.choice: must be a list of values, found an empty list",
            "write {choice: [a, b]}",
        ),
        (
            {"alpha": {"choice": [1, -1]}},
            "alpha.choice[1]: must be a number above 0, found -1",
            "the default is 1.0",
        ),
    ],
)
def test_a_space_that_cannot_be_searched(raw: dict[str, Any], error: str, remedy: str) -> None:
    space, faults = read(raw)
    assert space == ()
    assert faults == [[f"error: {error}", *([f"help: {remedy}"] if remedy else [])]]


def test_a_choice_of_text_that_is_none_of_the_setting() -> None:
    _, faults = read({"similarity": {"choice": ["cosine", "dce"]}}, fake_plugins.ItemKNN)
    assert faults[0][1] == "help: did you mean dice?"
    _, faults = read({"similarity": {"float": [0, 1]}}, fake_plugins.ItemKNN)
    assert len(faults) == 2
