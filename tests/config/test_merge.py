from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.config.load_experiment import load_experiment
from recbias.config.source import read_mapping, read_spec
from recbias.core.errors import Faults, WrongType
from recbias.formats.yaml import Document
from recbias.registry import REGISTRIES


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> Path:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
    return Path(name)


def read_with_overrides(text: str, *overrides: str) -> Document:
    return read_spec(write("spec.yaml", text), overrides)


def collect_faults(document: Document) -> list[str]:
    with pytest.raises(Faults) as caught:
        document.refuse()
    return caught.value.lines()


def test_mappings_are_merged_and_lists_and_scalars_replaced() -> None:
    write("base.yaml", "k: 5\nmodels: [A, B]\ndataset: {name: x, side: [a, b]}\nreport: {t: 1}\n")
    spec = write("spec.yaml", "extends: base.yaml\nmodels: [C]\ndataset: {side: [c]}\nreport: 3\n")
    assert read_spec(spec).data == {
        "k": 5,
        "models": ["C"],
        "dataset": {"name": "x", "side": ["c"]},
        "report": 3,
    }


def test_marks_have_the_file_and_folder_of_their_value() -> None:
    write(
        "sub/base.yaml",
        "dataset: {name: x, path: u.csv, label: z}\nmodels: [{name: A, size: 1}, B, C]\n",
    )
    document = read_spec(
        write("spec.yaml", "extends: sub/base.yaml\nmodels: [A]\ndataset: {name: x, label: y}\n")
    )
    assert str(document.mark(("dataset", "path"))) == "sub/base.yaml:1:26"
    assert document.mark(("dataset", "path")).folder == Path("sub")
    assert str(document.mark(("dataset", "label"))) == "spec.yaml:3:27"
    assert str(document.mark(("models", 0, "size"))) == "spec.yaml:2:10"
    assert str(document.mark(("models", 2))) == "spec.yaml:2:9"
    assert str(document.mark(())) == "spec.yaml:1:1"


def test_another_plugin_replaces_that_of_the_extended_file() -> None:
    write("base.yaml", "split: {name: leave_one_out, which: random}\nk: 5\n")
    spec = write("spec.yaml", "extends: base.yaml\nsplit: {name: random, test: 0.2}\n")
    assert read_spec(spec).data["split"] == {"name": "random", "test": 0.2}
    spec = write("spec.yaml", "extends: base.yaml\nsplit: {name: Leave-One-Out, test: 2}\n")
    assert read_spec(spec).data["split"] == {
        "name": "Leave-One-Out",
        "which": "random",
        "test": 2,
    }


def test_extended_file_may_extend_a_file_relative_to_itself() -> None:
    write("sub/one.yaml", "extends: ../two.yaml\nb: 1\nc: 1\n")
    write("two.yaml", "a: 2\nb: 2\nc: 2\n")
    assert read_spec(write("spec.yaml", "extends: sub/one.yaml\nc: 0\n")).data == {
        "a": 2,
        "b": 1,
        "c": 0,
    }


def test_duplicates_in_an_extended_file_are_listed_after_those_of_the_spec() -> None:
    write("base.yaml", "a: 1\na: 2\n")
    document = read_spec(write("spec.yaml", "b: 1\nb: 2\nextends: base.yaml\n"))
    assert collect_faults(document)[::2] == [
        "error: spec.yaml:2:1: b: is written twice, first in line 1",
        "error: base.yaml:2:1: a: is written twice, first in line 1",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "extends: bse.yaml\n",
            [
                "error: spec.yaml:1:10: extends: no file 'bse.yaml'",
                "help: did you mean base.yaml?",
            ],
        ),
        (
            "extends: [base.yaml]\n",
            [
                "error: spec.yaml:1:10: extends: must be the path of one file",
                "help: write extends: other.yaml",
            ],
        ),
        (
            "extends: cycle.yaml\n",
            [
                (
                    "error: cycle.yaml:1:10: extends: these files extend each other: "
                    "spec.yaml -> cycle.yaml -> spec.yaml"
                ),
                "help: extend another file",
            ],
        ),
        (
            "extends: spec.yaml\n",
            [
                (
                    "error: spec.yaml:1:10: extends: these files extend each other: "
                    "spec.yaml -> spec.yaml"
                ),
                "help: extend another file",
            ],
        ),
    ],
)
def test_invalid_extends_is_reported(text: str, lines: list[str]) -> None:
    write("base.yaml", "a: 1\n")
    write("cycle.yaml", "extends: spec.yaml\n")
    with pytest.raises(Faults) as caught:
        read_spec(write("spec.yaml", text))
    assert caught.value.lines() == lines


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, ""])
def test_extends_without_a_file_is_reported(name: str) -> None:
    with pytest.raises(Faults, match="no file"):
        read_spec({"extends": name})


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("k=3", {"k": 3}),
        ("k=1e-3", {"k": 0.001}),
        ("k=", {"k": None}),
        ("name=a=b", {"name": "a=b"}),
        ("new=[1, {a: 2}]", {"new": [1, {"a": 2}]}),
        ("report.t=2", {"report": {"s": 1, "t": 2}}),
        ("queries.where=age < 18", {"queries": {"where": "age < 18"}}),
        ("models.1.size=4", {"models": ["A", {"name": "B", "size": 4}, {"name": "C", "n": 1}]}),
        ("models[2].n=4", {"models": ["A", "B", {"name": "C", "n": 4}]}),
        ("models.0=D", {"models": ["D", "B", {"name": "C", "n": 1}]}),
        ("dataset.side=[x]", {"dataset": {"name": "ml", "side": ["x"]}}),
    ],
)
def test_override_sets_one_value(override: str, expected: dict[str, Any]) -> None:
    text = "k: 1\nmodels: [A, B, {name: C, n: 1}]\nreport: {s: 1, t: 1}\ndataset: ml\n"
    before = read_spec(write("spec.yaml", text)).data
    document = read_with_overrides(text, override)
    document.refuse()
    assert document.data == before | expected


def test_overrides_apply_in_order() -> None:
    document = read_with_overrides(
        "models: [A]\n", "models=[B, C]", "models.1.size=3", "models.1.size=4"
    )
    assert document.data == {"models": ["B", {"name": "C", "size": 4}]}


def test_marks_of_overridden_values_name_the_override() -> None:
    document = read_with_overrides(
        "models: [{name: A, n: {a: 1}}]\n", "models.0.n={b: [2]}", "k.l=3"
    )
    assert str(document.mark(("models", 0, "n", "b", 0))) == "--set models.0.n={b: [2]}"
    assert str(document.mark(("models", 0, "n"), key=True)) == "--set models.0.n={b: [2]}"
    assert str(document.mark(("models", 0, "name"))) == "spec.yaml:1:17"
    assert str(document.mark(("k",), key=True)) == "--set k.l=3"
    assert ("models", 0, "n", "a") not in document.values


@pytest.mark.parametrize(
    ("override", "message", "remedy"),
    [
        ("k", "is not KEY=VALUE", "write --set models.1.neighbors=40"),
        ("=3", "is not KEY=VALUE", "write --set models.1.neighbors=40"),
        ("models.2=X", "models is a list without '2'", "it has models.0 to models.1"),
        ("models.CC.n=1", "models is a list without 'CC'", "it has models.0 to models.1"),
        ("none.0=1", "none is a list without '0'", "it is empty"),
        (f"models.{'9' * 5000}=1", f"models is a list without '{'9' * 5000}'", None),
        ("k.a=1", "k is 1, which has no settings", "set k itself"),
        (
            "k=[1",
            "expected ',' or ']' (while parsing a flow sequence)",
            "close every bracket and quote, and put text with other signs in quotes",
        ),
        ("k=!!python/none x", "the tag !!python/none is not allowed", "write a plain value"),
    ],
)
def test_invalid_override_is_reported(override: str, message: str, remedy: str | None) -> None:
    document = read_with_overrides("k: 1\nmodels: [A, B]\nnone: []\n", override)
    ((_, error),) = document.faults
    assert (error.where, error.message) == (f"--set {override}", message)
    assert remedy is None or error.remedy == remedy
    assert document.data == {"k": 1, "models": ["A", "B"], "none": []}


def test_mapping_from_python_has_the_types_of_yaml() -> None:
    spec = {"a": (1, np.float64(2.5)), "b": Path("x/y"), 3: np.arange(2), "c": {"d": None}}
    document = read_mapping(spec)  # type: ignore[arg-type]  # an integer key
    assert document.data == {"a": [1, 2.5], "b": "x/y", "3": [0, 1], "c": {"d": None}}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x"])
def test_value_without_a_yaml_form_is_rejected(value: object) -> None:
    with pytest.raises(WrongType) as caught:
        read_mapping({"models": [{"n": value}]})
    assert caught.value.where == "models[0].n"


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("models.1.neighbors=10,20", "sweep: {models.1.neighbors: [10, 20]}"),
        ("models.1.neighbors=[10, 20]", "sweep: {models.1.neighbors: [10, 20]}"),
        ("models.1.similarity=cosine,dice", "sweep: {models.1.similarity: [cosine, dice]}"),
        ("seed=1,2,3", "sweep: {seed: [1, 2, 3]}"),
    ],
)
def test_several_values_for_one_setting_point_to_a_sweep(override: str, remedy: str) -> None:
    spec = write("spec.yaml", "name: a\ndataset: demo\nmodels: [MostPop, ItemKNN]\n")
    with pytest.raises(Faults) as caught:
        load_experiment(spec, registries=REGISTRIES, overrides=[override])
    error, remedy_line = caught.value.lines()
    assert error.startswith(f"error: --set {override}: ")
    assert remedy_line == f"help: one value at a time; several values: {remedy}"


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("models.1.neighbors=10,x", "the default is 100"),
        ("models.1.neighbors=10,-1", "the default is 100"),
        ("models.1.neighbors=2020-01-01,2020-01-02", "the default is 100"),
        ("models.1.similarity=cosine,dics", "did you mean cosine?"),
        ("models=MostPop,EASE", "write it as a list: [MostPop,EASE]"),
        ("k=5,10", "the default is 10"),
    ],
)
def test_other_values_do_not_point_to_a_sweep(override: str, remedy: str) -> None:
    spec = write("spec.yaml", "name: a\ndataset: demo\nmodels: [MostPop, ItemKNN]\n")
    with pytest.raises(Faults) as caught:
        load_experiment(spec, registries=REGISTRIES, overrides=[override])
    assert caught.value.lines()[1] == f"help: {remedy}"
