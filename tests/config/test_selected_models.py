"""A model as the setting of another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.config.experiment import load_experiment
from recbias.config.specs import PluginSpec
from recbias.core.errors import Faults
from recbias.core.files import digest_file
from recbias.core.plugins import SelectedModel
from recbias.models.knn import ItemKNN
from recbias.registry import REGISTRIES

OWN = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Own:
    provides: ClassVar = frozenset({"lists"})
    needs: ClassVar = frozenset({"train"})
    libraries: ClassVar = ()
    depth: int = 3

    def fit(self, data, rng): ...
"""


def make_spec(candidates: Any) -> dict[str, Any]:
    model = {"name": "LMRerank", "candidates": candidates, "llm": {"model": "m"}}
    return {"name": "x", "dataset": "demo", "models": [model], "metrics": ["unmatched"]}


def load_model(candidates: Any) -> PluginSpec:
    return load_experiment(make_spec(candidates), registries=REGISTRIES).models[0]


@pytest.mark.parametrize("written", ["item_knn", {"name": "ItemKNN"}])
def test_the_entry_is_that_of_a_model(written: Any) -> None:
    spec = load_model(written)
    assert spec.plugin.candidates == SelectedModel("ItemKNN", ItemKNN())
    assert spec.parameters["candidates"]["name"] == "ItemKNN"
    assert spec.parameters["candidates"]["neighbors"] == ItemKNN().neighbors


def test_faults_are_located_inside_the_entry() -> None:
    with pytest.raises(Faults) as caught:
        load_model({"name": "ItemKNN", "neighbours": 3, "tune": {}})
    lines = "\n".join(caught.value.lines())
    assert "models[0].candidates.neighbours: not a setting of ItemKNN" in lines
    assert "did you mean neighbors?" in lines
    assert "models[0].candidates.tune: a model inside LMRerank has no tune" in lines


def test_the_file_of_a_plug_in_counts_by_its_content(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, depth in zip(folders, (3, 3, 4), strict=True):
        folder.mkdir()
        (folder / "own.py").write_text(OWN.replace("3", str(depth)), encoding="utf-8")
    experiments = [
        load_experiment(make_spec(f"{folder}/own.py:Own"), registries=REGISTRIES)
        for folder in folders
    ]
    first, same, other = (experiment.identity(digest_file) for experiment in experiments)
    assert first == same
    assert first != other
    name = experiments[0].as_spec()["models"][0]["candidates"]["name"]
    assert name == f"{folders[0]}/own.py:Own"


def test_a_model_that_recommends_no_lists_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("sentence_id,perplexity,group\n1,2.0,a\n", encoding="utf-8")
    with pytest.raises(Faults, match="sentence_scores recommends no lists"):
        load_model({"name": "sentence_scores", "path": str(path)})
