from __future__ import annotations

import re
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
from recbias.metrics.accuracy import NDCG, HitRate
from recbias.models.knn import ItemKNN
from recbias.registry import REGISTRIES
from recbias.runner.python_inputs import replace_python_inputs
from support.specs import make_small_spec


def replace_inputs(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    return replace_python_inputs(spec, folder, REGISTRIES)


def test_objects_are_entries_of_their_classes(tmp_path: Path) -> None:
    spec = {"models": [ItemKNN(neighbors=7), "MostPop"], "metrics": [NDCG(k=5)]}
    replaced = replace_inputs(spec, tmp_path)
    assert replaced["models"][0]["name"] == "ItemKNN"
    assert replaced["models"][0]["neighbors"] == 7
    assert replaced["models"][1] == "MostPop"
    assert replaced["metrics"] == [{"name": "nDCG", "k": 5}]


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


@pytest.mark.parametrize("wrong", [None, np.nan, 1.0, "a\nb", " a", ""])
def test_an_identifier_that_is_no_line_of_text_is_refused(tmp_path: Path, wrong: object) -> None:
    spec = {"models": [{"name": "vectors", "item_ids": ["x", wrong]}]}
    with pytest.raises(WrongType, match=r"^models\[0\]\.item_ids: the identifier at position 1"):
        replace_inputs(spec, tmp_path)


def test_arrays_are_numbers_and_in_settings_they_are_lists(tmp_path: Path) -> None:
    spec = {"seeds": np.array([1, 2]), "metrics": [{"name": "R-RIPA", "direction": np.ones(3)}]}
    replaced = replace_inputs(spec, tmp_path)
    assert replaced["seeds"] == [1, 2]
    np.testing.assert_array_equal(np.load(replaced["metrics"][0]["direction"]), np.ones(3))
    with pytest.raises(WrongType, match=r"^models\[0\]\.users: an array of type object"):
        replace_inputs({"models": [{"users": np.ones((2, 2)).astype(object)}]}, tmp_path)


def test_frames_of_polars_are_files_too(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": ["a", "b"]})
    replaced = replace_inputs({"dataset": {"users": frame}}, tmp_path)
    assert pd.read_parquet(replaced["dataset"]["users"])["user_id"].tolist() == ["a", "b"]


def test_a_class_of_a_script_or_notebook_is_refused(tmp_path: Path) -> None:
    typed = make_dataclass("Typed", [("k", int)], namespace={"__module__": "__main__"})
    with pytest.raises(BrokenContract, match="the class Typed is not in a module"):
        replace_inputs({"metrics": [typed(k=3)]}, tmp_path)


def test_a_frame_of_mixed_types_is_refused_with_its_location(tmp_path: Path) -> None:
    frame = pd.DataFrame({"user_id": ["a", 3]})
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
