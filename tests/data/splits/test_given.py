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

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset, Interactions, Split, Vocabulary
from recbias.core.errors import Leakage, NothingLeft, UnknownColumn, UnknownIdentifier
from recbias.data.splits import GivenSplit
from support.worlds.small_worlds import make_interactions

TRAIN = "user_id,item_id,rating\nu0,i1,4\nu1,i0,2\n"
TEST = "user_id,item_id\nu0,i0\n"


def write_files(folder: Path, **files: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(text, encoding="utf-8")
    return paths


def split_dataset(splitter: GivenSplit, dataset: Dataset | None = None) -> Split:
    world = dataset or Dataset(make_interactions([], n_users=2, n_items=3))
    return splitter.split(world, 0, np.random.default_rng(0))


def list_pairs(part: Interactions | None) -> list[tuple[str, str]]:
    assert part is not None
    users, items = part.user_ids.ids[part.users], part.item_ids.ids[part.items]
    return list(zip(users.tolist(), items.tolist(), strict=True))


def test_the_parts_are_those_of_the_files(tmp_path: Path) -> None:
    splitter = GivenSplit(**write_files(tmp_path, train=TRAIN, test=TEST))
    split = split_dataset(splitter)
    assert list_pairs(split.train) == [("u0", "i1"), ("u1", "i0")]
    assert list_pairs(split.test) == [("u0", "i0")]
    assert split.validation is None
    assert split.train.values.tolist() == [4.0, 2.0]
    assert split.test is not None
    assert split.test.values.tolist() == [1.0]
    assert splitter.gives() == {"train", "test"}
    assert splitter.folds == 1


def test_columns_are_renamed_where_a_file_has_them(tmp_path: Path) -> None:
    files = write_files(tmp_path, train=TRAIN.replace("user_id", "customer"), test=TEST)
    with pytest.raises(UnknownColumn, match="no column 'user_id'") as caught:
        split_dataset(GivenSplit(**files))
    assert "columns: {customer: user_id}" in caught.value.remedy
    split = split_dataset(GivenSplit(**files, columns={"customer": "user_id"}))
    assert list_pairs(split.train) == [("u0", "i1"), ("u1", "i0")]
    with pytest.raises(UnknownColumn, match="no table has a column 'custmer'") as caught:
        split_dataset(GivenSplit(**files, columns={"custmer": "user_id"}))
    assert caught.value.where == "columns"
    assert "customer" in caught.value.remedy


def test_a_validation_file_is_a_validation_part(tmp_path: Path) -> None:
    validation = "user_id,item_id\nu1,i2\n"
    splitter = GivenSplit(**write_files(tmp_path, train=TRAIN, test=TEST, validation=validation))
    assert list_pairs(split_dataset(splitter).validation) == [("u1", "i2")]
    assert splitter.gives() == {"train", "test", "validation"}


def test_new_identifiers_are_added_in_natural_order(tmp_path: Path) -> None:
    texts = {"train": "user_id,item_id\n10,7\n9,007\n", "test": "user_id,item_id\n10,b\n"}
    ids = Vocabulary.of(["2", "7", "9"])
    world = Dataset(replace(make_interactions([]), user_ids=ids, item_ids=ids))
    with collect_warnings():  # 007 is written 7
        split = split_dataset(GivenSplit(**write_files(tmp_path, **texts)), world)
    assert split.train.user_ids.ids.tolist() == ["2", "7", "9", "10"]
    assert split.train.item_ids.ids.tolist() == ["007", "2", "7", "9", "b"]
    assert list_pairs(split.train) == [("10", "7"), ("9", "007")]
    assert split.test is not None
    assert split.test.user_ids is split.train.user_ids


def test_compressed_and_parquet_files_are_read_with_times(tmp_path: Path) -> None:
    train, test = tmp_path / "train.tsv.gz", tmp_path / "test.parquet"
    train.write_bytes(gzip.compress(b"timestamp\titem_id\tuser_id\n60\ti1\tu0\n"))
    table = {"user_id": ["u0"], "item_id": ["i,0\n"], "rating": [3.5]}
    parquet.write_table(pa.table(table), test)
    split = split_dataset(GivenSplit(train=train, test=test))
    assert split.train.times is not None
    assert split.train.times.tolist() == [60]
    assert list_pairs(split.test) == [("u0", "i,0\n")]
    assert split.test is not None
    assert split.test.values.tolist() == [3.5]
    assert split.test.times is None


def test_tables_of_the_dataset_align_with_the_new_vocabulary(tmp_path: Path) -> None:
    interactions = make_interactions([], n_users=1, n_items=1)
    users = Attributes(interactions.user_ids, pd.DataFrame({"age": [9.0]}), "user")
    split = split_dataset(
        GivenSplit(**write_files(tmp_path, train=TRAIN, test=TEST)), Dataset(interactions, users)
    )
    aligned = users.align(split.train.user_ids)
    np.testing.assert_array_equal(aligned.frame["age"], [9.0, np.nan])


def test_a_pair_in_two_files_is_refused_with_its_identifiers(tmp_path: Path) -> None:
    validation = "user_id,item_id\nu0,i0\n" + "".join(f"u9,i{item}\n" for item in range(5))
    texts = {
        "train": TRAIN + "u9,i0,1\nu9,i1,1\nu9,i2,1\nu9,i3,1\n",
        "test": TEST,
        "validation": validation,
    }
    with pytest.raises(Leakage) as caught:
        split_dataset(GivenSplit(**write_files(tmp_path, **texts)))
    assert caught.value.message == (
        "4 (user, item) pairs stand in train.csv and validation.csv: "
        "('u9', 'i0'), ('u9', 'i1'), ('u9', 'i2'), ...; "
        "1 (user, item) pairs stand in test.csv and validation.csv: ('u0', 'i0')"
    )
    assert "remove them" in caught.value.remedy


def write_judgements(folder: Path, text: str, name: str = "test.qrels") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_relevance_judgements_may_be_the_test_part(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "u0 0 i0 2\nu0 0 i2 1\nu1 0 i1 0\n")
    with collect_warnings():
        split = split_dataset(GivenSplit(train=paths["train"], test=qrels))
        strict = split_dataset(GivenSplit(train=paths["train"], test=qrels, least_grade=2))
    assert list_pairs(split.test) == [("u0", "i0"), ("u0", "i2")]
    assert list_pairs(strict.test) == [("u0", "i0")]


@pytest.mark.parametrize("name", ["test.csv", "test.tsv", "test.inter", "test.qrels"])
def test_least_grade_selects_test_rows_by_their_rating_in_every_layout(
    tmp_path: Path, name: str
) -> None:
    """``u1`` has no relevant item and is excluded; the training part keeps its rating of 1."""
    heads = {"test.csv": "user_id,item_id,rating\n"}
    heads["test.inter"] = "user_id:token\titem_id:token\trating:float\n"
    rows = [("u0", "i1", "5"), ("u0", "i2", "3.5"), ("u1", "i0", "1")]
    if name == "test.qrels":
        rows = [(user, f"0\t{item}", rating) for user, item, rating in rows]
    separator = "," if name == "test.csv" else "\t"
    text = heads.get(name, "") + "".join(f"{separator.join(row)}\n" for row in rows)
    train = write_files(tmp_path, train="user_id,item_id,rating\nu0,i0,1\nu1,i1,5\n")["train"]
    test = write_judgements(tmp_path, text, name)
    for least_grade, relevant in [(4.0, ["i1"]), (3.5, ["i1", "i2"])]:
        with collect_warnings() as warnings:
            split = split_dataset(GivenSplit(train=train, test=test, least_grade=least_grade))
        assert list_pairs(split.test) == [("u0", item) for item in relevant]
        assert warnings[-1].startswith(f"{name}: 1 of 2 queries have no item of grade")
        assert len(split.train) == 2
    with pytest.raises(NothingLeft, match="no item of grade 6 or more"), collect_warnings():
        split_dataset(GivenSplit(train=train, test=test, least_grade=6.0))


def test_relevance_judgements_may_be_json(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, '{"u0": {"i0": 1}}', "test.json")
    assert list_pairs(split_dataset(GivenSplit(train=paths["train"], test=qrels)).test) == [
        ("u0", "i0")
    ]


def test_queries_without_training_rows_have_a_warning(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "u0 0 i0 1\nu7 0 i0 1\nu8 0 i0 1\n")
    with collect_warnings() as warnings:
        split = split_dataset(GivenSplit(train=paths["train"], test=qrels))
    assert warnings == ["test.qrels: 2 of 3 queries have no row in the training file: 'u7', 'u8'"]
    assert list_pairs(split.test) == [("u0", "i0"), ("u7", "i0"), ("u8", "i0")]


def test_judgements_of_only_unknown_users_are_refused(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "U-0 0 I-0 1\nU-1 0 I-0 1\n")
    with pytest.raises(UnknownIdentifier, match="none of the 2 users") as caught:
        split_dataset(GivenSplit(train=paths["train"], test=qrels))
    assert caught.value.where == str(qrels)
    assert caught.value.remedy.endswith("did you mean u0?")


@pytest.mark.parametrize("train", [TRAIN, "user_id,item_id\nnobody,nothing\n"])
def test_all_users_may_be_new_if_their_items_are_known_or_one_user_stands_for_training(
    tmp_path: Path, train: str
) -> None:
    paths = write_files(tmp_path, train=train, test="user_id,item_id\nnew,i0\n")
    with collect_warnings() as warnings:
        split = split_dataset(GivenSplit(**paths), Dataset(make_interactions([])))
    assert warnings == ["test.csv: 1 of 1 queries have no row in the training file: 'new'"]
    assert list_pairs(split.test) == [("new", "i0")]


def test_judgements_may_be_of_users_of_the_dataset_without_training_rows(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train="user_id,item_id\nu0,i1\n")
    qrels = write_judgements(tmp_path, "u1 0 i0 1\n")
    with collect_warnings():
        split = split_dataset(GivenSplit(train=paths["train"], test=qrels))
    assert list_pairs(split.test) == [("u1", "i0")]


def test_judgements_without_a_relevant_item_are_refused(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    with collect_warnings(), pytest.raises(NothingLeft, match="no item of grade 1 or more"):
        split_dataset(
            GivenSplit(train=paths["train"], test=write_judgements(tmp_path, "u0 0 i0 0\n"))
        )


def test_splits_of_elliot_and_recbole_are_read(tmp_path: Path) -> None:
    train, test = tmp_path / "train.tsv", tmp_path / "ml.test.inter"
    train.write_text("1\t7\t5.0\t60\n", encoding="utf-8")
    test.write_text("user_id:token\titem_id:token\n1\t8\n", encoding="utf-8")
    with collect_warnings() as notes:
        split = split_dataset(GivenSplit(train=train, test=test), Dataset(make_interactions([])))
    assert len(notes) == 1
    assert list_pairs(split.train) == [("1", "7")]
    assert list_pairs(split.test) == [("1", "8")]
