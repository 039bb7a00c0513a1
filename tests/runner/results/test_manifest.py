from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.runner.results.manifest import labels_together
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_small_spec(), out=tmp_path_factory.mktemp("out"))


def test_the_manifest_says_what_the_run_was_made_of(run: recbias.Run) -> None:
    told = run.manifest
    assert told["name"] == "small"
    assert told["seeds"] == [42]
    assert told["datasets"][0]["counts"]["users"] == 60
    assert told["queries"][0]["asked"] == 60
    assert [each["label"] for each in told["models"]] == ["MostPop", "ItemKNN"]
    assert told["libraries"]["numpy"]
    assert told["seconds"] > 0
    assert told["peak_memory_mb"] > 50


def test_every_metric_is_defined(run: recbias.Run) -> None:
    for each in run.manifest["metrics"]:
        assert each["formula"]
        assert each["direction"] == "higher"
        assert each["source"]
        assert each["summary"]


def test_every_stage_is_recorded(run: recbias.Run) -> None:
    kinds = [each["kind"] for each in run.manifest["stages"]]
    assert kinds.count("dataset") == 1
    assert kinds.count("fit") == 2
    assert kinds.count("measure") == 4
    assert all(len(each["digest"]) == 64 for each in run.manifest["stages"])


def test_no_secret_of_the_environment_is_written(
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

    def refuse(word: str) -> None:
        raise ValueError(word)

    json.loads(text, parse_constant=refuse)


def test_labels_that_queries_carry_together_are_said() -> None:
    # race and gender of names, both genders of couples; of a place neither
    frame = pd.DataFrame(
        {
            "race": ["white", "black", None, None],
            "gender": ["F", None, None, None],
            "first": [None, None, "F", None],
            "place": [None, None, None, "bank"],
        }
    )
    found = labels_together(frame)
    assert found == {"race": ["gender"], "gender": ["race"], "first": [], "place": []}
