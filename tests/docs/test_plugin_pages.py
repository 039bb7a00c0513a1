from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from recbias import api

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pages", DOCS / "make_plugin_pages.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(script: ModuleType) -> dict[str, str]:
    texts: dict[str, str] = script.render_pages()
    return texts


def test_stored_pages_are_up_to_date(script: ModuleType, pages: dict[str, str]) -> None:
    folder = DOCS / "plugins"
    stored = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    assert stored == set(pages), "run `make pages`"
    texts = {f"plugins/{name}": text for name, text in pages.items()} | script.render_others()
    stale = [name for name, text in texts.items() if (DOCS / name).read_text("utf-8") != text]
    assert stale == [], "run `make pages`"


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (
            "P@k = Σ_{i in L} n_i",
            "<i>P</i>@<i>k</i> = Σ<sub><i>i</i> ∈ <i>L</i></sub> <i>n</i><sub><i>i</i></sub>",
        ),
        ("γ^(r - 1) < |E*|", "γ<sup>(<i>r</i> - 1)</sup> &lt; &#124;<i>E</i>&#42;&#124;"),
    ],
)
def test_formulas_are_set_with_subscripts(script: ModuleType, formula: str, shown: str) -> None:
    page = script._format_prose(f"A value.\n\n    {formula}\n\nx_i is `x_i` of i.")
    assert f'<div class="formula">{shown}</div>' in page
    assert "x<sub>i</sub> is `x_i` of i." in page


def test_every_plugin_is_in_the_sidebar_once(script: ModuleType, pages: dict[str, str]) -> None:
    found = re.findall(r'"(plugins/\S+\.md)"', script.render_navigation())
    assert sorted(found) == sorted(f"plugins/{name}" for name in pages)


REQUIRED = {
    ("path", "users", "items", "user_ids", "item_ids", "train", "test"): "table.csv",
    ("k", "n", "at_least"): "2",
    ("label", "attribute", "from", "a", "b"): "price",
    ("paths",): "[table.csv]",
    ("labels",): "[price, stereotype]",
    ("groups",): "{attribute: gender, a: F, b: M}",
    ("targets",): "{attribute: genres, e: Romance, p: Action}",
    ("llm",): "{model: small}",
    ("candidates",): "ItemKNN",
    ("model",): "small",
    ("protected",): "Drama",
    ("ratings",): "table.csv",
    ("columns",): "[gender]",
}


ONE_OF = {
    "sentence_tables": "test: table.csv",
    "embedding_average": "vectors: vectors.txt",
    "greedy_matching": "vectors: vectors.txt",
}
"""A setting for plug-ins that need one of several, none of which is required."""


OTHER_KEYS = {
    "dataset": "dataset: demo",
    "split": "split: {name: random, test: 0.2}",
    "queries": "queries: users",
    "models": "models: [MostPop]",
    "labels": "labels: []",
    "metrics": "metrics: [nDCG]",
    "tests": "tests: [paired_t]",
}


def test_spec_snippet_of_each_page_is_valid(pages: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("user_id,item_id,query_id,rank\na,b,a,1\n")
    (tmp_path / "vectors.txt").write_text("a 1\n")
    for name, text in pages.items():
        if name == "index.md":
            continue
        snippet = text.partition("```yaml\n")[2].partition("```")[0]
        for settings, value in REQUIRED.items():
            for setting in settings:
                snippet = snippet.replace(f" {setting}: ...", f" {setting}: {value}")
        for plugin, setting in ONE_OF.items():
            snippet = snippet.replace(f"name: {plugin},", f"name: {plugin}, {setting},")
        assert "..." not in snippet, name
        key = snippet.partition(":")[0]
        other_lines = [line for name, line in OTHER_KEYS.items() if name != key]
        spec = tmp_path / "spec.yaml"
        spec.write_text("\n".join(["name: pasted", snippet, *other_lines]))
        experiment = api.read_experiment(spec)
        assert experiment.name == "pasted", name


PAGE = Path(__file__).parents[2] / "docs" / "plugins-of-your-own.md"


def read_blocks_plugin_tutorial(language: str) -> list[str]:
    return re.findall(
        rf"```{language}[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A folder with the files of the page, and purchases to read."""
    *plugins, test = read_blocks_plugin_tutorial("python")
    (tmp_path / "my_plugins.py").write_text("\n\n".join(plugins), encoding="utf-8")
    (tmp_path / "test_my_plugins.py").write_text(test, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(read_blocks_plugin_tutorial("yaml")[0], encoding="utf-8")
    rows = pd.DataFrame({"customer": np.repeat(np.arange(40), 12)})
    rows["product"] = [product for _ in range(40) for product in rng.permutation(30)[:12]]
    rows["year"] = 1980 + rows["product"]
    rows.to_csv(tmp_path / "purchases.csv", index=False)
    return tmp_path


def test_the_plugins_of_the_tutorial_meet_their_contracts(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_spec_of_the_tutorial_runs(folder: Path) -> None:
    run = api.run(folder / "spec.yaml", out=folder / "results")
    metrics = {name.partition("(")[0] for name in run.metrics["metric"]}
    assert {name.rpartition(":")[2] for name in metrics} == {"nDCG", "RecentShare", "HIT_BAD"}
    assert run.metrics["value"].notna().all()
    assert run.significance["test"].str.contains("SignTest").any()


def test_the_facade_has_every_name_that_it_lists() -> None:
    from recbias import plugin

    assert [name for name in plugin.__all__ if not hasattr(plugin, name)] == []
    assert sorted(plugin.__all__) == plugin.__all__
