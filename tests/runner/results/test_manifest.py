from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.runner.folder import list_cooccurring_labels
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_small_spec(), out=tmp_path_factory.mktemp("out"))


def test_the_manifest_describes_the_spec_and_the_environment(run: recbias.Run) -> None:
    manifest = run.manifest
    assert manifest["name"] == "small"
    assert manifest["seeds"] == [42]
    assert manifest["datasets"][0]["counts"]["users"] == 60
    assert manifest["queries"][0]["asked"] == 60
    assert [model["label"] for model in manifest["models"]] == ["MostPop", "ItemKNN"]
    assert manifest["libraries"]["numpy"]
    assert manifest["seconds"] > 0
    assert manifest["peak_memory_mb"] > 50


def test_every_metric_has_formula_direction_source_and_summary(run: recbias.Run) -> None:
    for metric in run.manifest["metrics"]:
        assert metric["formula"]
        assert metric["direction"] == "higher"
        assert metric["source"]
        assert metric["summary"]


def test_every_stage_is_recorded(run: recbias.Run) -> None:
    kinds = [stage["kind"] for stage in run.manifest["stages"]]
    assert kinds.count("dataset") == 1
    assert kinds.count("fit") == 2
    assert kinds.count("measure") == 4
    assert all(len(stage["digest"]) == 64 for stage in run.manifest["stages"])


def test_api_keys_of_the_environment_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-must-never-be-written")
    run = recbias.run(
        make_small_spec(report={"formats": ["csv", "json", "md", "html"]}), out=tmp_path
    )
    for path in run.folder.rglob("*"):
        if path.is_file():
            assert b"sk-this-must-never-be-written" not in path.read_bytes(), path


def test_the_manifest_is_valid_json_without_nan(run: recbias.Run) -> None:
    text = (run.folder / "manifest.json").read_text(encoding="utf-8")

    def reject_constant(constant: str) -> None:
        raise ValueError(constant)

    json.loads(text, parse_constant=reject_constant)


def test_labels_are_listed_that_occur_in_the_same_query() -> None:
    # race and gender of names, both genders of couples; none of places
    frame = pd.DataFrame(
        {
            "race": ["white", "black", None, None],
            "gender": ["F", None, None, None],
            "first": [None, None, "F", None],
            "place": [None, None, None, "bank"],
        }
    )
    labels = list_cooccurring_labels(frame)
    assert labels == {"race": ["gender"], "gender": ["race"], "first": [], "place": []}


def test_metrics_without_the_outputs_of_a_model_are_recorded(tmp_path: Path) -> None:
    groups = {"of": "users", "attribute": "gender", "a": "F", "b": "M"}
    targets = {"of": "items", "attribute": "genres", "e": "Romance", "p": "Action"}
    metric = {"name": "R-RIPA", "label": "ripa", "groups": groups, "targets": targets}
    spec = make_small_spec(models=["MostPop", "PureSVD"], metrics=["nDCG", metric])
    run = recbias.run(spec, out=tmp_path)
    assert run.manifest["undefined"] == [
        {"metric": "ripa", "k": None, "model": "MostPop", "missing": "embeddings"}
    ]
    values = run.metrics.query("metric == 'ripa' and target == ''").set_index("model")["value"]
    assert values.notna().to_dict() == {"MostPop": False, "PureSVD": True}
