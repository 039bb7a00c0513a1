from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recbias.cli.catalogue import KINDS, list_entries
from recbias.registry import REGISTRIES
from support.commands import invoke_recbias


@pytest.mark.parametrize("kind", KINDS)
def test_list_has_one_line_per_name(tmp_path: Path, kind: str) -> None:
    result = invoke_recbias("list", kind, folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    entries = list_entries(kind)
    if not entries:
        assert result.out == f"this version has no {kind}\n"
        return
    head, rule, *lines = result.out.splitlines()
    assert head.split()[:2] == ["name", "description"]
    assert set(rule) == {"─"}
    assert [tuple(re.split(" {2,}", line)[:2]) for line in lines] == entries


def list_references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from list_references(child)


def test_schema_is_json_and_its_references_have_definitions(tmp_path: Path) -> None:
    result = invoke_recbias("schema", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    schema = json.loads(result.out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"name", "dataset", "models", "metrics", "tests"} <= set(schema["properties"])
    for reference in set(list_references(schema)):
        node: Any = schema
        for step in reference.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
    assert all(f'"{name}"' in result.out for name in REGISTRIES["models"].table)


def test_list_without_a_kind_names_the_kinds(tmp_path: Path) -> None:
    result = invoke_recbias("list", folder=tmp_path)
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[2:-1]] == list(KINDS)
    assert result.out.endswith("\nnext: recbias list KIND\n")


PLUGIN_KINDS = ("metric", "model", "detector", "dataset")


@pytest.fixture(scope="module")
def new_plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a new plug-in of each kind and its test."""
    folder = tmp_path_factory.mktemp("new")
    for kind in PLUGIN_KINDS:
        name = f"My{kind.title()}"
        result = invoke_recbias("new", kind, name, folder=folder)
        assert result.code == 0, result.err
        assert f"./my_{kind}.py:{name}" in result.out
    return folder


def test_new_plugins_pass_their_own_tests_as_written(new_plugins: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider", "."]
    tests = subprocess.run(command, cwd=new_plugins, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stdout
    passed = re.findall(r"^PASSED test_my_(\w+)\.py::", tests.stdout, re.MULTILINE)
    assert sorted(passed) == sorted(2 * PLUGIN_KINDS), tests.stdout


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_a_new_plugin_is_shown(new_plugins: Path, kind: str) -> None:
    name = f"./my_{kind}.py:My{kind.title()}"
    page = invoke_recbias("show", name, folder=new_plugins).out
    assert page.count(f"{name} (") == 1
    assert page.startswith(f"{name} ({kind})")


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (("metrc", "Mine"), "no kind is called 'metrc'", "did you mean metric?"),
        (("metric", "my-metric"), "'my-metric' cannot be the name of a class", "like MyMetric"),
        (("metric", "Mine"), "mine.py exists already", "choose another name"),
        (("metric", "Json"), "json.py would hide a module of Python", "MyJson"),
    ],
)
def test_a_plugin_that_cannot_be_written_is_a_user_error(
    tmp_path: Path, arguments: tuple[str, str], message: str, remedy: str
) -> None:
    (tmp_path / "mine.py").write_text("")
    result = invoke_recbias("new", *arguments, folder=tmp_path)
    assert result.code == 2
    error, help_ = result.err.splitlines()
    assert error == f"error: {message}"
    assert remedy in help_
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
