from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from recbias import api
from recbias.registry import REGISTRIES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pages", DOCS / "make_plugin_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(script: ModuleType) -> dict[str, str]:
    made: dict[str, str] = script.pages()
    return made


def test_the_pages_are_what_the_script_writes_now(pages: dict[str, str]) -> None:
    folder = DOCS / "plugins"
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.md")}
    assert set(there) == set(pages), "run `make docs`"
    stale = [name for name, text in pages.items() if there[name].read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_there_is_one_page_a_plug_in(pages: dict[str, str]) -> None:
    assert len(pages) == 1 + sum(len(registry.table) for registry in REGISTRIES.values())


def test_every_link_leads_to_a_page(pages: dict[str, str]) -> None:
    links = re.findall(r"\]\(([^)]+)\)", pages["index.md"])
    assert sorted(links) == sorted(set(pages) - {"index.md"})
    assert all("(../index.md)" in text for name, text in pages.items() if name != "index.md")


def test_writing_takes_out_what_is_gone(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: dict[str, str]
) -> None:
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    gone = tmp_path / "models" / "Gone.md"
    gone.parent.mkdir()
    gone.write_text("# Gone\n")
    script.write()
    assert not gone.exists()
    assert (
        (tmp_path / "models" / "implicit-ALS.md").read_text("utf-8").startswith("# implicit/ALS")
    )


def test_rows_of_tables_have_as_many_cells_as_their_heads(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(cells) <= 1, name
        assert cells <= {3, 6}, name


GIVEN = {
    ("path", "users", "items", "user_ids", "item_ids", "train", "test"): "here.csv",
    ("k", "n", "at_least"): "2",
    ("label", "attribute", "from", "a", "b"): "price",
    ("paths",): "[here.csv]",
    ("labels",): "[price, stereotype]",
    ("groups",): "{attribute: gender, a: F, b: M}",
    ("targets",): "{attribute: genres, e: Romance, p: Action}",
}
REST = {
    "dataset": "dataset: demo",
    "split": "split: {name: random, test: 0.2}",
    "queries": "queries: users",
    "models": "models: [MostPop]",
    "labels": "labels: []",
    "metrics": "metrics: [nDCG]",
    "tests": "tests: [paired_t]",
}


def test_what_a_page_has_for_a_spec_can_be_pasted_into_one(
    pages: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "here.csv").write_text("user_id,item_id,query_id,rank\na,b,a,1\n")
    for name, text in pages.items():
        if name == "index.md":
            continue
        snippet = text.partition("```yaml\n")[2].partition("```")[0]
        for settings, value in GIVEN.items():
            for each in settings:
                snippet = snippet.replace(f" {each}: ...", f" {each}: {value}")
        assert "..." not in snippet, name
        key = snippet.partition(":")[0]
        rest = [line for other, line in REST.items() if other != key]
        spec = tmp_path / "spec.yaml"
        spec.write_text("\n".join(["name: pasted", snippet, *rest]))
        experiment = api.read_experiment(spec)
        assert experiment.name == "pasted", name
