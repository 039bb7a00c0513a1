from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recbias.cli.catalogue import KINDS, entries
from recbias.registry import REGISTRIES
from support.commands import inside, recbias


@pytest.mark.parametrize("kind", KINDS)
def test_list_has_a_line_a_name(tmp_path: Path, kind: str) -> None:
    said = inside("list", kind, folder=tmp_path)
    assert (said.code, said.err) == (0, "")
    found = entries(kind)
    if not found:
        assert said.out == f"there are no {kind} in this version\n"
        return
    head, rule, *lines = said.out.splitlines()
    assert head.split() == ["name", "what", "it", "is"]
    assert set(rule) == {"─"}
    assert [line.split(maxsplit=1) for line in lines] == [[name, what] for name, what in found]


@pytest.mark.parametrize(
    ("words", "found", "nearest"),
    [
        (("list", "modles"), "no kind is called 'modles'", "did you mean models"),
        (("show", "MostPopular"), "no plug-in is called 'MostPopular'", "did you mean MostPop"),
        (("show", "zzz"), "no plug-in is called 'zzz'", "the valid names are"),
    ],
)
def test_an_unknown_name_is_the_users_fault(
    tmp_path: Path, words: tuple[str, ...], found: str, nearest: str
) -> None:
    said = recbias(*words, folder=tmp_path)
    assert (said.code, said.out) == (2, "")
    error, help_ = said.err.splitlines()
    assert error == f"error: {found}"
    assert help_.startswith(f"help: {nearest}")


def test_show_is_as_wide_as_the_terminal(tmp_path: Path) -> None:
    said = recbias("show", "itemknn", folder=tmp_path, env={"COLUMNS": "50"})
    assert said.code == 0
    assert said.out.startswith(
        "ItemKNN (model)\n\nRecommend items that are similar to the user's\n"
    )
    assert max(map(len, said.out.splitlines())) <= 50


def test_what_is_listed_is_one_line_a_name_however_narrow(tmp_path: Path) -> None:
    said = recbias("list", "models", folder=tmp_path, env={"COLUMNS": "30"})
    assert len(said.out.splitlines()) == 2 + len(entries("models"))


def every_reference(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for each in node.values():
            yield from every_reference(each)
    elif isinstance(node, list):
        for each in node:
            yield from every_reference(each)


def test_the_schema_is_json_whose_references_lead_somewhere(tmp_path: Path) -> None:
    said = recbias("schema", folder=tmp_path)
    assert (said.code, said.err) == (0, "")
    schema = json.loads(said.out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"name", "dataset", "models", "metrics", "tests"} <= set(schema["properties"])
    for reference in set(every_reference(schema)):
        node: Any = schema
        for step in reference.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
    assert all(f'"{name}"' in said.out for name in REGISTRIES["models"].table)
