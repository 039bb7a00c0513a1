from __future__ import annotations

from pathlib import Path

import pytest

from recbias.config.source import find_entry, split_path
from recbias.config.sweep import find_target
from recbias.config.source import read_spec
from recbias.core.errors import Contradiction, Faults, UnknownKey
from recbias.formats.yaml import Document

MODELS = "models: [MostPop, {name: ItemKNN, label: wide}, ItemKNN, {name: BPR-MF}]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, *overrides: str) -> Document:
    Path("spec.yaml").write_text(text, encoding="utf-8")
    return read_spec(Path("spec.yaml"), overrides)


def test_entry_is_named_by_its_label_or_position() -> None:
    document = read(MODELS, "models.wide.neighbors=5", "models.bpr_mf.epochs=2", "models[0].a=1")
    assert document.data["models"] == [
        {"name": "MostPop", "a": 1},
        {"name": "ItemKNN", "label": "wide", "neighbors": 5},
        "ItemKNN",
        {"name": "BPR-MF", "epochs": 2},
    ]


def test_label_of_two_entries_is_refused_with_their_positions() -> None:
    with pytest.raises(Contradiction) as caught:
        find_entry(["A", {"name": "a"}, "B"], "A", ("models",))
    assert caught.value.message == "'A' is the label of 2 entries of models"
    assert caught.value.remedy == "write models.0 or models.1"
    document = read("models: [A, B, A]\n", "models.A.n=1")
    with pytest.raises(Faults, match=r"--set models\.A\.n=1: 'A' is the label of 2"):
        document.refuse()


def test_unknown_label_has_the_nearest_one_as_remedy() -> None:
    with pytest.raises(UnknownKey, match="models is a list without 'ItemKNM'") as caught:
        find_entry(["MostPop", {"name": "ItemKNN"}, 3], "ItemKNM", ("models",))
    assert caught.value.remedy == "did you mean ItemKNN?"


def test_path_inside_a_sweep_is_one_step() -> None:
    assert split_path("sweep") == ["sweep"]
    assert split_path("sweep.seed") == ["sweep", "seed"]
    assert split_path("sweep[0].models[1].n") == ["sweep", "0", "models.1.n"]
    document = read(MODELS, "sweep.models.1.neighbors=[1, 2]", "sweep.seed=[3]")
    assert document.data["sweep"] == {"models.1.neighbors": [1, 2], "seed": [3]}


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
    document = read(text, override)
    document.refuse()
    assert document.data == expected
    assert {*document.keys, *document.values} >= {(key,) for key in expected}
    removed = {"seed", "seeds"} - {*expected}
    assert not any(place[:1] == (key,) for key in removed for place in document.values)


def test_seed_and_seeds_are_not_both_overridden() -> None:
    document = read("seed: 7\n", "seeds=[1]", "seed=3")
    assert document.data == {"seeds": [1], "seed": 3}  # which the experiment refuses


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
    document = read(text, f"models.{path}.llm.model='x=(1.5)'")
    document.refuse()
    assert document.data["models"][1]["llm"] == {"model": "x=(1.5)"}
    document = read(text + f"sweep: {{'models.{path}.neighbors': [1, 2]}}\n")
    target, steps = find_target(document, *split_first(f"models.{path}.neighbors"))
    assert (target.at, steps) == (1, ("neighbors",))


def split_first(path: str) -> tuple[str, list[str]]:
    key, *steps = split_path(path)
    return key, steps


def test_a_name_that_is_made_later_has_the_positions_as_remedy() -> None:
    entries = ["ItemKNN", "A", {"name": "ItemKNN", "neighbors": 5}]
    with pytest.raises(UnknownKey, match=r"'ItemKNN\(neighbors=5\)' is no label of") as caught:
        find_entry(entries, "ItemKNN(neighbors=5)", ("models",))
    assert caught.value.remedy.startswith("write models.0 or models.2: ")
