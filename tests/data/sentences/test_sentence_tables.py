from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, MalformedLine, UnknownColumn
from recbias.data.sentences import SentenceTables
from recbias.testing import check_dataset

RNG = np.random.default_rng(0)
TEST = """\
id,pair_id,group,text,category
1,p,old,"He is 80, she says.",age
2,p,young,"He is 20, she says.",age
3,,old,Nobody has a counterpart.,
"""


def write(folder: Path, text: str = TEST, name: str = "test.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_tables_of_all_formats_hold_the_same(tmp_path: Path) -> None:
    frame = pd.read_csv(write(tmp_path), dtype=str)
    frame.to_parquet(tmp_path / "test.parquet")
    frame.to_csv(tmp_path / "test.tsv.gz", sep="\t", index=False)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in records))
    frames = []
    for name in ("test.csv", "test.parquet", "test.tsv.gz", "test.jsonl"):
        source = SentenceTables(test=tmp_path / name)
        check_dataset(source, data=tmp_path)
        dataset = source.load(tmp_path, RNG)
        assert dataset.sentences is not None
        frames.append(dataset.sentences.frame)
    assert frames[0]["pair_id"].tolist() == ["p", "p", None]
    assert frames[0]["category"].tolist() == ["age", "age", None]
    assert all(frame.equals(frames[0]) for frame in frames)


def test_training_sentences_need_no_group(tmp_path: Path) -> None:
    train = write(tmp_path, 'id,text\n9,To train on.\n8,"He is 80, she says."\n', "train.csv")
    with collect_warnings() as warnings:
        dataset = SentenceTables(train=train, test=write(tmp_path)).load(tmp_path, RNG)
    assert list(warnings) == ["sentence_tables: 1 test sentences are also training sentences"]
    assert dataset.sentences is not None
    assert dataset.sentences.take_part("train").frame["group"].tolist() == [None, None]
    assert dataset.counts["test_in_train"] == 1
    assert dataset.sentences.without_test().frame["id"].tolist() == ["9", "8"]


@pytest.mark.parametrize(
    ("old", "new", "error", "message", "line"),
    [
        ("3,,", "2,,", MalformedLine, "two sentences have the id '2'", 4),
        ("2,p,young", "2,p,old", MalformedLine, "already has a sentence of the group 'old'", 3),
        ("2,p,", "2,q,", MalformedLine, "pair 'p' has a sentence of the group 'old' only", 2),
        ("2,p,young", "2,p,", MalformedLine, "the sentence of pair 'p' has no group", 3),
        ("Nobody has a counterpart.", "", MalformedLine, "an empty text", 4),
        ("Nobody has a counterpart.", " ", MalformedLine, "an empty text", 4),
        ("3,,", ",,", MalformedLine, "an empty id", 4),
        ("group", "side", UnknownColumn, "no column 'group'", 1),
        ("text", "sentence", UnknownColumn, "no column 'text'", 1),
        ("category", "part", Contradiction, "has a column 'part'", None),
    ],
)
def test_faults_are_named(
    tmp_path: Path, old: str, new: str, error: Any, message: str, line: int | None
) -> None:
    path = write(tmp_path, TEST.replace(old, new, 1))
    with pytest.raises(error, match=message) as caught:
        SentenceTables(test=path).load(tmp_path, RNG)
    assert caught.value.where == (f"{path}:{line}" if line else str(path))
