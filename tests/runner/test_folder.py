from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.core.errors import Unwritable
from recbias.runner import folder as folder_module
from recbias.runner.folder import check_latest, new_run_folder
from recbias.runner.plan import Plan
from support.specs import make_small_spec


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return api.plan(make_small_spec(), out=tmp_path)[0]


def test_a_run_folder_appears_when_it_is_published(tmp_path: Path, plan: Plan) -> None:
    with new_run_folder(tmp_path, plan) as folder:
        (folder.temporary / "metrics.csv").write_text("x")
        assert not list((tmp_path / "small").glob("[!.]*"))
        published = folder.publish()
    assert [path.name for path in published.iterdir()] == ["metrics.csv"]
    assert (tmp_path / "small" / "latest").resolve() == published.resolve()
    assert published.name.endswith(plan.spec_digest[:8])


def test_a_file_at_the_path_of_the_folder_is_refused(tmp_path: Path, plan: Plan) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("a file")
    with pytest.raises(Unwritable, match="Not a directory"), new_run_folder(blocked, plan):
        pass


@pytest.mark.parametrize("name", ["small", "small/latest"])
def test_what_lies_in_the_place_of_results_is_refused_before_any_work(
    tmp_path: Path, plan: Plan, name: str
) -> None:
    if name == "small":
        (tmp_path / name).write_bytes(b"")
    else:
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(Unwritable, match="recbias writes") as caught:
        check_latest(tmp_path, plan)
    assert caught.value.where == str(tmp_path / name)


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


FILES = ("lists.parquet", "per_unit.parquet", "metrics.csv")


@pytest.mark.parametrize(
    ("changes", "options", "reused"),
    [
        ({"report": {"formats": ["csv", "md"]}}, {}, set(FILES)),
        ({"tests": ["wilcoxon"]}, {}, {"lists.parquet", "per_unit.parquet"}),
        ({"metrics": ["nDCG", "HR", "MRR"]}, {}, {"lists.parquet"}),
        ({"models": ["MostPop", "Random"]}, {}, set()),
        ({"report": {"formats": ["csv", "md"]}}, {"fresh": True}, set()),
    ],
)
def test_files_that_nothing_changes_are_those_of_an_earlier_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    options: dict[str, Any],
    reused: set[str],
) -> None:
    checks = [{"metric": "nDCG", "at_least": 0.9}]
    first = recbias.run(make_small_spec(checks=checks), out=tmp_path)
    written: list[str] = []
    for name in ("write_tables", "write_units", "write_answers"):
        write = getattr(folder_module, name)

        def record(*args: Any, _name: str = name, _write: Any = write, **kwargs: Any) -> None:
            written.append(_name)
            _write(*args, **kwargs)

        monkeypatch.setattr(folder_module, name, record)
    second = recbias.run(make_small_spec(checks=checks, **changes), out=tmp_path, **options)
    assert second.folder != first.folder
    makers = {"lists.parquet": "answers", "per_unit.parquet": "units", "metrics.csv": "tables"}
    assert {f"write_{makers[name]}" for name in FILES if name not in reused} == {*written}
    for name in reused:
        ours, theirs = second.folder / name, first.folder / name
        assert ours.read_bytes() == theirs.read_bytes()
        assert ours.samefile(theirs) is (name != "metrics.csv"), "tables may be edited"
    if "metrics.csv" in reused:
        assert second.manifest["checks"] == first.manifest["checks"] != []
        assert second.manifest["datasets"] == first.manifest["datasets"]


def test_a_damaged_file_in_the_store_is_made_again(tmp_path: Path) -> None:
    first = recbias.run(make_small_spec(), out=tmp_path)
    content = (first.folder / "lists.parquet").read_bytes()
    (first.folder / "lists.parquet").write_bytes(b"damaged")  # the stored file is the same one
    second = recbias.run(make_small_spec(report={"formats": ["md"]}), out=tmp_path)
    assert (second.folder / "lists.parquet").read_bytes() == content
    assert list((second.folder / "figures").glob("*.svg"))


def test_the_files_of_a_run_with_a_failed_stage_are_not_stored(tmp_path: Path) -> None:
    broken = {"name": "ItemKNN", "label": "broken", "neighbors": 10}
    spec = make_small_spec(models=["MostPop", broken])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recbias.models.knn.ItemKNN.fit", lambda *_: 1 / 0)
        assert len(recbias.run(spec, out=tmp_path, on_error="continue").failures)
    second = recbias.run(spec, out=tmp_path)
    assert set(second.metrics["model"]) == {"MostPop", "broken"}
