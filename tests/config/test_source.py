from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.config.source import find_spec, list_spec_files, read_mapping, read_spec, resolve_spec
from recbias.core.errors import UnknownName, WrongType
from recbias.formats.yaml import Document


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


def test_mappings_are_merged_and_lists_and_scalars_replaced() -> None:
    write("base.yaml", "k: 5\nmodels: [A, B]\ndataset: {name: x, side: [a, b]}\nreport: {t: 1}\n")
    spec = write("spec.yaml", "extends: base.yaml\nmodels: [C]\ndataset: {side: [c]}\nreport: 3\n")
    assert read_spec(spec).data == {
        "k": 5,
        "models": ["C"],
        "dataset": {"name": "x", "side": ["c"]},
        "report": 3,
    }


def test_another_plugin_replaces_that_of_the_extended_file() -> None:
    write("base.yaml", "split: {name: leave_one_out, which: random}\nk: 5\n")
    spec = write("spec.yaml", "extends: base.yaml\nsplit: {name: random, test: 0.2}\n")
    assert read_spec(spec).data["split"] == {"name": "random", "test": 0.2}
    spec = write("spec.yaml", "extends: base.yaml\nsplit: {name: Leave-One-Out, test: 2}\n")
    assert read_spec(spec).data["split"] == {"name": "Leave-One-Out", "which": "random", "test": 2}


def test_a_packaged_spec_may_be_extended_and_a_file_of_its_name_wins() -> None:
    spec = write("spec.yaml", "extends: quickstart\nk: 3\n")
    data = read_spec(spec).data
    assert (data["k"], data["name"]) == (3, "quickstart")
    assert read_spec({"extends": "Papers/Children/a3"}).data["name"] == "children-a3"
    write("quickstart.yaml", "name: mine\n")
    assert read_spec(spec).data == {"name": "mine", "k": 3}


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


def test_marks_of_overridden_values_name_the_override() -> None:
    document = read_with_overrides(
        "models: [{name: A, n: {a: 1}}]\n", "models.0.n={b: [2]}", "k.l=3"
    )
    assert str(document.mark(("models", 0, "n", "b", 0))) == "--set models.0.n={b: [2]}"
    assert str(document.mark(("models", 0, "n"), key=True)) == "--set models.0.n={b: [2]}"
    assert str(document.mark(("models", 0, "name"))) == "spec.yaml:1:17"
    assert str(document.mark(("k",), key=True)) == "--set k.l=3"
    assert ("models", 0, "n", "a") not in document.values


def test_mapping_from_python_has_the_types_of_yaml() -> None:
    spec = {"a": (1, np.float64(2.5)), "b": Path("x/y"), 3: np.arange(2), "c": {"d": None}}
    document = read_mapping(spec)  # type: ignore[arg-type]  # an integer key
    assert document.data == {"a": [1, 2.5], "b": "x/y", "3": [0, 1], "c": {"d": None}}


@pytest.mark.parametrize("value", [object(), float("nan"), b"x"])
def test_value_without_a_yaml_form_is_rejected(value: object) -> None:
    with pytest.raises(WrongType) as caught:
        read_mapping({"models": [{"n": value}]})
    assert caught.value.where == "models[0].n"


@pytest.mark.parametrize(
    ("text", "override", "expected"),
    [
        ("seed: 7\n", "seeds=[1, 2]", {"seeds": [1, 2]}),
        ("seeds: [7, 8]\n", "seed=3", {"seed": 3}),
        ("seed: 7\n", "seeds=null", {"seed": 7, "seeds": None}),
        ("seed: 7\n", "seed=3", {"seed": 3}),
    ],
)
def test_seed_and_seeds_replace_each_other(
    text: str, override: str, expected: dict[str, object]
) -> None:
    document = read_with_overrides(text, override)
    document.refuse()
    assert document.data == expected
    assert {*document.keys, *document.values} >= {(key,) for key in expected}
    removed = {"seed", "seeds"} - {*expected}
    assert not any(place[:1] == (key,) for key in removed for place in document.values)


@pytest.mark.parametrize(
    ("label", "path"),
    [
        ("v1.2", "v1.2"),
        ("EASE(l2=0.5)", "EASE(l2=0.5)"),
        ("KNN (k=5, s=[0])", "KNN (k=5, s=[0])"),
        ("EASE + MMR(strength=0.5)", "EASE + MMR(strength=0.5)"),
        ("a.b.c", "A.b.c"),
    ],
)
def test_a_label_may_have_dots_and_settings(label: str, path: str) -> None:
    text = f"models: [A, {{name: ItemKNN, label: '{label}'}}]\n"
    document = read_with_overrides(text, f"models.{path}.llm.model='x=(1.5)'")
    document.refuse()
    assert document.data["models"][1]["llm"] == {"model": "x=(1.5)"}


CONFIGS = Path(__file__).parents[2] / "src" / "recbias" / "configs"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("quickstart", "quickstart.yaml"),
        ("Quick_Start", "quickstart.yaml"),
        ("audit", "audit.yaml"),
        ("papers/aab", "papers/aab/ml-1m-gender.yaml"),
        ("papers/lmrec/users", "papers/lmrec/users.yaml"),
    ],
)
def test_a_packaged_name_is_found(name: str, found: str) -> None:
    assert find_spec(Path(name)) == CONFIGS / found


def test_a_file_wins_over_a_packaged_name() -> None:
    Path("quickstart.yaml").touch()
    assert find_spec(Path("quickstart")) == Path("quickstart.yaml")
    Path("quickstart").touch()
    assert find_spec(Path("quickstart")) == Path("quickstart")
    Path("papers/aab").mkdir(parents=True)
    Path("papers/aab/ml-1m-gender.yaml").touch()
    assert find_spec(Path("papers/aab")) == Path("papers/aab/ml-1m-gender.yaml")


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("quikstart", "no file and no packaged spec", "did you mean quickstart"),
        ("papers/lmrec", "is several specs", "papers/lmrec/atlanta, "),
    ],
)
def test_an_unknown_name_lists_the_nearest(name: str, message: str, remedy: str) -> None:
    with pytest.raises(UnknownName, match=message) as caught:
        resolve_spec(name)
    assert remedy in caught.value.remedy


def test_the_files_of_a_spec_are_those_that_it_reads_and_extends() -> None:
    files = {path.as_posix() for path in list_spec_files("prompts")}
    tables = {"items.csv", "ours.csv", "sentences.yaml", "theirs.csv"}
    assert files == {"prompts.yaml", *(f"prompts/{name}" for name in tables)}
    extended = {path.as_posix() for path in list_spec_files("ml-1m-children")}
    assert extended == {"ml-1m-children.yaml", "ml-1m.yaml"}
