from __future__ import annotations

from pathlib import Path

import pytest

import recbias
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
