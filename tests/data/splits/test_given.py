from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import (
    Leakage,
    MalformedLine,
    MissingFile,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
)
from recbias.core.stage_context import collect_warnings
from recbias.data.splits.given import GivenSplit
from support.worlds import rows

TRAIN = "user_id,item_id,rating\nu0,i1,4\nu1,i0,2\n"
TEST = "user_id,item_id\nu0,i0\n"


def written(folder: Path, **files: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(text, encoding="utf-8")
    return paths


def divide(splitter: GivenSplit, dataset: Dataset | None = None) -> Split:
    world = dataset or Dataset(rows([], n_users=2, n_items=3))
    return splitter.split(world, 0, np.random.default_rng(0))


def pairs(part: Interactions | None) -> list[tuple[str, str]]:
    assert part is not None
    users, items = part.user_ids.ids[part.users], part.item_ids.ids[part.items]
    return list(zip(users.tolist(), items.tolist(), strict=True))


def test_the_parts_are_those_of_the_files(tmp_path: Path) -> None:
    splitter = GivenSplit(**written(tmp_path, train=TRAIN, test=TEST))
    split = divide(splitter)
    assert pairs(split.train) == [("u0", "i1"), ("u1", "i0")]
    assert pairs(split.test) == [("u0", "i0")]
    assert split.validation is None
    assert split.train.values.tolist() == [4.0, 2.0]
    assert split.test is not None
    assert split.test.values.tolist() == [1.0]
    assert splitter.gives() == {"train", "test"}
    assert splitter.folds == 1


def test_a_validation_file_makes_a_validation_part(tmp_path: Path) -> None:
    tuned = "user_id,item_id\nu1,i2\n"
    splitter = GivenSplit(**written(tmp_path, train=TRAIN, test=TEST, validation=tuned))
    assert pairs(divide(splitter).validation) == [("u1", "i2")]
    assert splitter.gives() == {"train", "test", "validation"}


def test_known_identifiers_keep_the_vocabulary_of_the_dataset(tmp_path: Path) -> None:
    world = Dataset(rows([(0, 0)], n_users=2, n_items=3))
    split = divide(GivenSplit(**written(tmp_path, train=TRAIN, test=TEST)), world)
    assert split.train.user_ids is world.user_ids
    assert split.train.n_items == 3


def test_new_identifiers_are_added_in_natural_order(tmp_path: Path) -> None:
    texts = {"train": "user_id,item_id\n10,7\n9,007\n", "test": "user_id,item_id\n10,b\n"}
    ids = Vocabulary.of(["2", "11"])
    world = Dataset(replace(rows([]), user_ids=ids, item_ids=ids))
    split = divide(GivenSplit(**written(tmp_path, **texts)), world)
    assert split.train.user_ids.ids.tolist() == ["2", "9", "10", "11"]
    assert split.train.item_ids.ids.tolist() == ["007", "11", "2", "7", "b"]
    assert pairs(split.train) == [("10", "7"), ("9", "007")]
    assert split.test is not None
    assert split.test.user_ids is split.train.user_ids


def test_other_kinds_of_files_are_read_with_times(tmp_path: Path) -> None:
    train, test = tmp_path / "train.tsv.gz", tmp_path / "test.parquet"
    train.write_bytes(gzip.compress(b"timestamp\titem_id\tuser_id\n60\ti1\tu0\n"))
    table = {"user_id": ["u0"], "item_id": ["i,0\n"], "rating": [3.5]}
    parquet.write_table(pa.table(table), test)
    split = divide(GivenSplit(train=train, test=test))
    assert split.train.times is not None
    assert split.train.times.tolist() == [60]
    assert pairs(split.test) == [("u0", "i,0\n")]
    assert split.test is not None
    assert split.test.values.tolist() == [3.5]
    assert split.test.times is None


def test_tables_of_the_dataset_fit_the_new_vocabulary(tmp_path: Path) -> None:
    interactions = rows([], n_users=1, n_items=1)
    users = Attributes(interactions.user_ids, pd.DataFrame({"age": [9.0]}), "user")
    split = divide(
        GivenSplit(**written(tmp_path, train=TRAIN, test=TEST)), Dataset(interactions, users)
    )
    aligned = users.aligned(split.train.user_ids)
    np.testing.assert_array_equal(aligned.frame["age"], [9.0, np.nan])


def test_a_pair_in_two_files_is_refused_by_name(tmp_path: Path) -> None:
    tuned = "user_id,item_id\nu0,i0\n" + "".join(f"u9,i{each}\n" for each in range(5))
    texts = {
        "train": TRAIN + "u9,i0,1\nu9,i1,1\nu9,i2,1\nu9,i3,1\n",
        "test": TEST,
        "validation": tuned,
    }
    with pytest.raises(Leakage) as caught:
        divide(GivenSplit(**written(tmp_path, **texts)))
    assert caught.value.message == (
        "4 (user, item) pairs stand in train.csv and validation.csv: "
        "('u9', 'i0'), ('u9', 'i1'), ('u9', 'i2'), ...; "
        "1 (user, item) pairs stand in test.csv and validation.csv: ('u0', 'i0')"
    )
    assert "take them out" in caught.value.remedy


@pytest.mark.parametrize(
    ("train", "kind", "said"),
    [
        ("user_id,item_id\n", NothingLeft, "train.csv: has no interactions"),
        ("user,item_id\nu0,i0\n", UnknownColumn, "no column 'user_id'"),
        ("user_id,item_id,rating\nu0,i0,good\n", MalformedLine, "train.csv:2"),
        ("user_id,item_id\nu0,i0\nu0\n", MalformedLine, "train.csv:3"),
        ("user_id,item_id\nu0,\n", MalformedLine, "train.csv:2"),
        ("", MalformedLine, "train.csv"),
    ],
)
def test_a_bad_file_is_refused(
    tmp_path: Path, train: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as caught:
        divide(GivenSplit(**written(tmp_path, train=train, test=TEST)))
    assert said in str(caught.value)
    assert "skip" not in caught.value.remedy  # type: ignore[attr-defined]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    paths = written(tmp_path, test=TEST)
    with pytest.raises(MissingFile):
        divide(GivenSplit(train=tmp_path / "no.csv", **paths))


def judged(folder: Path, text: str, name: str = "test.qrels") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_judgements_are_a_test_part(tmp_path: Path) -> None:
    paths = written(tmp_path, train=TRAIN)
    qrels = judged(tmp_path, "u0 0 i0 2\nu0 0 i2 1\nu1 0 i1 0\n")
    split = divide(GivenSplit(train=paths["train"], test=qrels))
    assert pairs(split.test) == [("u0", "i0"), ("u0", "i2")]
    strict = divide(GivenSplit(train=paths["train"], test=qrels, least_grade=2))
    assert pairs(strict.test) == [("u0", "i0")]


def test_judgements_as_json_are_a_test_part(tmp_path: Path) -> None:
    paths = written(tmp_path, train=TRAIN)
    qrels = judged(tmp_path, '{"u0": {"i0": 1}}', "test.json")
    assert pairs(divide(GivenSplit(train=paths["train"], test=qrels)).test) == [("u0", "i0")]


def test_queries_that_the_training_part_lacks_are_counted(tmp_path: Path) -> None:
    paths = written(tmp_path, train=TRAIN)
    qrels = judged(tmp_path, "u0 0 i0 1\nu7 0 i0 1\nu8 0 i0 1\n")
    with collect_warnings() as notes:
        split = divide(GivenSplit(train=paths["train"], test=qrels))
    assert notes == ["test.qrels: 2 of 3 queries have no row in the training file: 'u7', 'u8'"]
    assert pairs(split.test) == [("u0", "i0"), ("u7", "i0"), ("u8", "i0")]


def test_judgements_of_nobody_known_are_refused(tmp_path: Path) -> None:
    paths = written(tmp_path, train=TRAIN)
    qrels = judged(tmp_path, "U-0 0 i0 1\nU-1 0 i0 1\n")
    with pytest.raises(UnknownIdentifier, match="none of its 2 queries is a user") as caught:
        divide(GivenSplit(train=paths["train"], test=qrels))
    assert caught.value.where == str(qrels)
    assert caught.value.remedy == "did you mean u0?"


def test_users_of_the_dataset_may_be_judged_without_training_rows(tmp_path: Path) -> None:
    paths = written(tmp_path, train="user_id,item_id\nx,i1\n")
    qrels = judged(tmp_path, "u1 0 i0 1\n")
    assert pairs(divide(GivenSplit(train=paths["train"], test=qrels)).test) == [("u1", "i0")]


def test_judgements_without_a_relevant_item_are_refused(tmp_path: Path) -> None:
    paths = written(tmp_path, train=TRAIN)
    with pytest.raises(NothingLeft, match="no item of grade 1 or more"):
        divide(GivenSplit(train=paths["train"], test=judged(tmp_path, "u0 0 i0 0\n")))


def test_splits_of_elliot_and_recbole_are_read_as_they_are(tmp_path: Path) -> None:
    train, test = tmp_path / "train.tsv", tmp_path / "ml.test.inter"
    train.write_text("1\t7\t5.0\t60\n", encoding="utf-8")
    test.write_text("user_id:token\titem_id:token\n1\t8\n", encoding="utf-8")
    split = divide(GivenSplit(train=train, test=test))
    assert pairs(split.train) == [("1", "7")]
    assert pairs(split.test) == [("1", "8")]
