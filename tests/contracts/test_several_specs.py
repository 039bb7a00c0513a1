"""``recbias run`` and ``recbias plan`` with several specs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import yaml

from recbias.cli.run import act_on_each
from recbias.core.errors import StageError, UserError
from support.commands import invoke_recbias
from support.specs import make_small_spec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, test in {"a": 0.2, "b": 0.3}.items():
        spec = make_small_spec(name=name, split={"name": "random", "test": test})
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    failing = make_small_spec(name="failing", checks=[{"metric": "HR", "at_most": 0.0}])
    (tmp_path / "failing.yaml").write_text(yaml.safe_dump(failing))
    return tmp_path


def test_specs_run_one_after_the_other_and_the_worst_code_counts(folder: Path) -> None:
    result = invoke_recbias("run", "a.yaml", "failing.yaml", "b.yaml", folder=folder)
    assert result.code == 3, result.err
    assert [line.split("/")[1] for line in result.out.splitlines() if "run folder" in line] == [
        "a",
        "failing",
        "b",
    ]
    compared = invoke_recbias("compare", "a", "b", "failing", folder=folder)
    assert compared.code == 0, compared.err
    heads = [line.split()[:2] for line in compared.out.splitlines()[3:9]]
    runs = ("a", "b", "failing")
    assert heads == [[run, model] for run in runs for model in ("MostPop", "ItemKNN")]
    pair = invoke_recbias("compare", "a", "b", folder=folder)
    assert "Results" not in pair.out


def test_a_fault_of_one_spec_is_found_before_any_work(folder: Path) -> None:
    (folder / "bad.yaml").write_text("name: bad\nmodels: [Nope]\ndataset: demo\nsweep: 3\n")
    result = invoke_recbias("run", "a.yaml", "bad.yaml", "none.yaml", folder=folder)
    assert result.code == 2
    assert [line for line in result.err.splitlines() if line.startswith("error")] == [
        "error: bad.yaml:2:10: models[0]: no model is called 'Nope'",
        (
            "error: bad.yaml:4:1: sweep: "
            "must be a mapping of settings to lists, or a list of settings"
        ),
        "error: none.yaml: no such file",
    ]
    assert not (folder / "results").exists()


def test_plan_shows_each_spec(folder: Path) -> None:
    result = invoke_recbias("plan", "a.yaml", "b.yaml", "--quiet", folder=folder)
    assert result.code == 0, result.err
    assert result.out.count("estimated memory") == 2


def test_one_document_holds_that_of_each_spec(folder: Path) -> None:
    result = invoke_recbias("run", "a.yaml", "failing.yaml", "--json", folder=folder)
    assert result.code == 3, result.err
    document = json.loads(result.out)
    assert [(one["spec"], one["name"], one["exit_code"]) for one in document["specs"]] == [
        ("a.yaml", "a", 0),
        ("failing.yaml", "failing", 3),
    ]
    (folder / "bad.yaml").write_text("name: bad\nmodels: [Nope]\ndataset: demo\n")
    refused = invoke_recbias("run", "a.yaml", "bad.yaml", "--json", folder=folder)
    assert refused.code == 2
    assert [error["file"] for error in json.loads(refused.out)["errors"]] == ["bad.yaml"]


def test_the_error_of_a_spec_is_in_its_part_of_the_document() -> None:
    def act(options: SimpleNamespace) -> None:
        if options.spec == "a":
            raise UserError("the spec is at fault", remedy="mend it")

    document: dict[str, Any] = {}
    with pytest.raises(typer.Exit):
        act_on_each(SimpleNamespace(specs=["a", "b"], on_error="continue"), act, document)
    failed, done = document["specs"]
    assert failed["errors"][0]["message"] == "the spec is at fault"
    assert done == {"spec": "b"}


@pytest.mark.parametrize(
    ("on_error", "code", "tried"), [("continue", 1, "abcd"), ("stop", 2, "ab")]
)
def test_an_error_ends_the_others_only_with_on_error_stop(
    on_error: str, code: int, tried: str
) -> None:
    acted = []

    def act(options: SimpleNamespace) -> None:
        acted.append(options.spec)
        if options.spec == "b":
            raise UserError("the spec is at fault")
        if options.spec == "c":
            raise StageError("a stage failed")

    with pytest.raises(typer.Exit) as caught:
        act_on_each(SimpleNamespace(specs=list("abcd"), on_error=on_error), act, {})
    assert caught.value.exit_code == code
    assert "".join(acted) == tried


def test_an_interruption_ends_all() -> None:
    def act(options: SimpleNamespace) -> None:
        raise KeyboardInterrupt(options.spec)

    with pytest.raises(typer.Exit) as caught:
        act_on_each(SimpleNamespace(specs=["a", "b"], on_error="continue"), act, {})
    assert caught.value.exit_code == 130
