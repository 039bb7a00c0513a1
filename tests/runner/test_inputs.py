from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import recbias
from recbias import testing
from recbias.core.errors import BrokenContract, WrongType
from recbias.core.registry import Registry
from recbias.formats.tables import TableColumns, read_file
from recbias.metrics.accuracy import HitRate
from recbias.models.knn import ItemKNN
from recbias.registry import REGISTRIES
from recbias.runner import address
from recbias.runner.address import digest_sources
from recbias.runner.python_inputs import replace_python_inputs
from support.specs import make_small_spec


def replace_inputs(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    return replace_python_inputs(spec, folder, REGISTRIES)


def test_an_object_may_have_a_label(tmp_path: Path) -> None:
    spec = {"models": [{"name": ItemKNN(neighbors=7), "label": "mine"}]}
    (model,) = replace_inputs(spec, tmp_path)["models"]
    assert (model["name"], model["neighbors"], model["label"]) == ("ItemKNN", 7, "mine")


@pytest.mark.parametrize(
    ("entry", "message", "remedy"),
    [
        (ItemKNN, "found the class ItemKNN", r"ItemKNN\(\.\.\.\)"),
        (pd.DataFrame({"query_id": ["a"]}), "found a DataFrame", '"name": "lists"'),
        (pl.DataFrame({"query_id": ["a"]}), "found a DataFrame", '"name": "lists"'),
        (3, "found a int", "write it like"),
    ],
)
def test_an_entry_that_is_no_plugin_is_refused(
    tmp_path: Path, entry: object, message: str, remedy: str
) -> None:
    with pytest.raises(WrongType, match=rf"^models\[0\]: .*{message}") as caught:
        replace_inputs({"models": [entry]}, tmp_path)
    assert re.search(remedy, caught.value.remedy)


def test_arrays_are_numbers_and_in_settings_they_are_lists(tmp_path: Path) -> None:
    spec = {"seeds": np.array([1, 2]), "metrics": [{"name": "R-RIPA", "direction": np.ones(3)}]}
    replaced = replace_inputs(spec, tmp_path)
    assert replaced["seeds"] == [1, 2]
    np.testing.assert_array_equal(np.load(replaced["metrics"][0]["direction"]), np.ones(3))
    with pytest.raises(WrongType, match=r"^models\[0\]\.users: an array of type object"):
        replace_inputs({"models": [{"users": np.ones((2, 2)).astype(object)}]}, tmp_path)


FRAME = pl.DataFrame({"user_id": ["a", "b"], "kind": pl.Series(["x", "y"], dtype=pl.Categorical)})


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.lazy(),
        FRAME.to_arrow(),
        FRAME.to_arrow().to_reader(),
        FRAME.to_pandas().set_index(pd.Index([7, 9])),
    ],
    ids=["polars", "lazy polars", "arrow", "arrow stream", "pandas"],
)
def test_a_frame_of_any_library_is_a_file(tmp_path: Path, frame: Any) -> None:
    replaced = replace_inputs({"dataset": {"users": frame}}, tmp_path)
    table = read_file(Path(replaced["dataset"]["users"]), TableColumns(needed={}, others=True))
    assert table.cells.to_pydict() == {"user_id": ["a", "b"], "kind": ["x", "y"]}


def test_a_column_of_polars_is_a_file_of_identifiers(tmp_path: Path) -> None:
    spec = {"models": [{"name": "vectors", "user_ids": pl.Series(["a", "b"])}]}
    (model,) = replace_inputs(spec, tmp_path)["models"]
    assert Path(model["user_ids"]).read_text() == "a\nb\n"


def test_a_class_of_a_script_or_notebook_is_refused(tmp_path: Path) -> None:
    typed = make_dataclass("Typed", [("k", int)], namespace={"__module__": "__main__"})
    with pytest.raises(BrokenContract, match="the class Typed is not in a module"):
        replace_inputs({"metrics": [typed(k=3)]}, tmp_path)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"user_id": ["a", 3]}), pd.DataFrame([[1, 2]], columns=["a", "a"])]
)
def test_a_frame_that_is_no_table_is_refused_with_its_location(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    with pytest.raises(WrongType, match=r"^dataset\.users: the data frame cannot be written"):
        replace_inputs({"dataset": {"users": frame}}, tmp_path)


def test_frames_lists_and_objects_run_like_files_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = testing.make_checkerboard().train
    clicks = pd.DataFrame(
        {"user_id": rows.user_ids.ids[rows.users], "item_id": rows.item_ids.ids[rows.items]}
    )
    users = pd.DataFrame({"user_id": clicks["user_id"].unique()})
    users["colour"] = [["white", "black"][n % 2] for n in range(len(users))]
    lists = clicks.groupby("user_id").head(2).rename(columns={"user_id": "query_id"})
    lists["rank"] = lists.groupby("query_id").cumcount() + 1
    clicks.to_csv(tmp_path / "clicks.csv", index=False)
    users.to_csv(tmp_path / "users.csv", index=False)
    lists.to_csv(tmp_path / "lists.csv", index=False)

    def make_spec(source: Any) -> dict[str, Any]:
        return make_small_spec(
            dataset={
                "name": "tables",
                "interactions": source(clicks, "clicks.csv"),
                "users": source(users, "users.csv"),
            },
            models=[
                {"name": "lists", "path": source(lists, "lists.csv"), "seen": "keep"},
                source(ItemKNN(neighbors=3), {"name": "ItemKNN", "neighbors": 3}),
            ],
            metrics=[source(HitRate(k=3), "HR@3"), {"name": "nDCG", "by": "colour"}],
        )

    frames = recbias.run(make_spec(lambda frame, _: frame), out=tmp_path / "frames")
    monkeypatch.chdir(tmp_path)
    files = recbias.run(make_spec(lambda _, written: written), out=tmp_path / "files")
    columns = ["model", "metric", "k", "group", "value", "n"]
    pd.testing.assert_frame_equal(frames.metrics[columns], files.metrics[columns])


MODEL = '''"""A model."""
from dataclasses import dataclass

from shop.ranking import order

LIMIT = 10
"""How many."""


@dataclass(frozen=True)
class Model:
    """Ranks items."""

    def fit(self):
        from shop.training import loop  # imported when it is needed

        return loop, order, LIMIT
'''

PACKAGE = {
    "shop/__init__.py": "",
    "shop/model.py": MODEL,
    "shop/ranking.py": "from . import sorting\norder = sorting.order\n",
    "shop/sorting.py": "from .constants import (\n    FACTOR as factor,\n)\norder = factor\n",
    "shop/constants.py": "FACTOR = 2\n",
    "shop/training/__init__.py": "",
    "shop/training/loop.py": "EPOCHS = 3\n",
    "shop/unused.py": "EPOCHS = 3\n",
    "shop/words/names.yaml": "names: [a]\n",
    "shop/other/__init__.py": "",
    "shop/other/names.yaml": "names: [a]\n",
}


def clear_caches() -> None:
    for function in vars(address).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def remove_modules(*prefixes: str) -> None:
    for name in [name for name in sys.modules if name.startswith(prefixes)]:
        del sys.modules[name]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Write the package ``shop`` with changes, and return the digest of its model's sources."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def digest(changes: Mapping[str, tuple[str, str]] = {}) -> str:
        for name, text in PACKAGE.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(*changes.get(name, ("", ""))), encoding="utf-8")
        clear_caches()
        remove_modules("shop")  # as in a new process: changes after an import are refused
        return digest_sources(importlib.import_module("shop.model").Model())

    yield digest
    clear_caches()
    remove_modules("shop")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("shop/model.py", "A model.", "One model."),
        ("shop/model.py", "How many.", "How many items."),
        ("shop/model.py", "Ranks items.", 'Ranks items.\n\n    >>> "[("\n    '),
        ("shop/model.py", "# imported when it is needed", "# late"),
        ("shop/model.py", "\n\n\n", "\n\n# A comment of its own.\n\n\n"),
        ("shop/constants.py", "2\n", "2   \n\n"),
        ("shop/unused.py", "3", "4"),
        ("shop/other/names.yaml", "a", "b"),
    ],
    ids=[
        "docstring of a module",
        "string under a constant",
        "docstring with brackets",
        "comment behind code",
        "comment and blank lines",
        "trailing space",
        "module that is not imported",
        "data of a package that is not imported",
    ],
)
def test_a_change_that_cannot_change_results_keeps_the_digest(
    shop: Callable[..., str], name: str, old: str, new: str
) -> None:
    assert shop({name: (old, new)}) == shop()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("shop/model.py", "10", "11"),
        ("shop/constants.py", "2", "3"),
        ("shop/training/loop.py", "3", "4"),
        ("shop/training/__init__.py", "", "import random"),
        ("shop/words/names.yaml", "a", "b"),
    ],
    ids=[
        "constant",
        "constant three imports away",
        "module imported within a function",
        "package of an imported module",
        "data in a folder that is no package",
    ],
)
def test_a_change_that_can_change_results_changes_the_digest(
    shop: Callable[..., str], name: str, old: str, new: str
) -> None:
    assert shop({name: (old, new)}) != shop()


@pytest.mark.parametrize(
    ("changed", "text", "is_same"),
    [
        ("mine.py", "# A comment.\nimport helper\n{}", True),
        ("mine.py", "import helper\nX = 1\n{}", False),
        ("helper.py", "SIZE = 2\n", False),
        ("data.csv", "1,2\n", True),
        ("unused.py", "SIZE = 2\n", True),
    ],
)
def test_a_plugin_file_counts_with_the_modules_beside_it_that_it_imports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
    text: str,
    is_same: bool,
) -> None:
    model = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine:\n    pass\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"mine.py": f"import helper\n{model}", "helper.py": "SIZE = 1\n", "unused.py": ""}
    digests = []
    for contents in (files, {**files, changed: text.format(model)}):
        for name, content in contents.items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        clear_caches()
        cls = Registry("model", {}, "recbias.models").load("mine.py:Mine", base=tmp_path)
        digests.append(digest_sources(cls()))
        remove_modules("_recbias_file_mine", "helper")
    clear_caches()
    assert (digests[0] == digests[1]) == is_same
