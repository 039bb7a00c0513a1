from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.data.sentences import RedditBias
from recbias.testing import check_dataset

RNG = np.random.default_rng(0)


def write_pair(folder: Path, group: str, part: str, texts: list[str]) -> Path:
    path = folder / f"reddit_comments_religion1_{group}_biased_{part}_reduced.csv"
    rows = "".join(f'{row},"{text}",1.5\n' for row, text in enumerate(texts))
    path.write_text(f"id,comments_processed,perplexity\n{rows}")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "redditbias" / "data" / "religion1"
    folder.mkdir(parents=True)
    for part in ("valid", "test"):
        write_pair(folder, "jews", part, [f"{part}, one", "two"])
        write_pair(folder, "christians", part, [f"{part}, uno", "two"])
    return folder


def test_rows_of_both_files_are_pairs(folder: Path, tmp_path: Path) -> None:
    source = RedditBias(dimension="religion1")
    check_dataset(source, data=tmp_path)
    with collect_warnings() as warnings:
        dataset = source.load(tmp_path, RNG)
    assert len(list(warnings)) == 2
    assert dataset.sentences is not None
    test = dataset.sentences.take_part("test").frame
    assert test["text"].tolist() == ["test, one", "test, uno", "two", "two"]
    assert test["group"].tolist() == ["jews", "christians"] * 2
    assert test["category"].unique().tolist() == ["religion1"]
    assert dataset.counts["identical_test_pairs"] == 1
    assert dataset.counts["train"] == 0


def test_own_training_sentences_are_read(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("to train on\ntwo\n")
    source = RedditBias(dimension="religion1", train=path)
    assert source.files(tmp_path)[0] == path
    with collect_warnings():
        dataset = source.load(tmp_path, RNG)
    assert dataset.sentences is not None
    train = dataset.sentences.take_part("train").frame
    assert train["text"].tolist() == ["to train on", "two"]
    assert dataset.counts["test_in_train"] == 2
