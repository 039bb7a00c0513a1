"""Tables of sentences: their columns, and what training may see of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Dataset, Interactions, Sentences, Split, Vocabulary
from recbias.core.errors import BrokenContract
from recbias.runner.codecs import load_dataset, save_dataset
from recbias.runner.stages import make_training_data

FRAME = pd.DataFrame(
    {
        "id": ["a", "b1", "b2", "c1", "c2"],
        "part": ["train", "validation", "validation", "test", "test"],
        "pair_id": [None, "b", "b", "c", "c"],
        "group": ["old", "old", "young", "old", "young"],
        "text": ["He is 80.", "An old man.", "A young man.", "Old age.", "Young age."],
        "category": ["age"] * 5,
    }
)


def _build_dataset() -> Dataset:
    empty = np.empty(0, dtype=np.int32)
    none = Vocabulary.of([])
    rows = Interactions(empty, empty, np.empty(0, dtype=np.float32), None, none, none)
    return Dataset(rows, sentences=Sentences(FRAME))


def test_training_never_sees_test_sentences() -> None:
    dataset = _build_dataset()
    data = make_training_data(dataset, Split(dataset.interactions, None))
    assert data.sentences is not None
    assert data.sentences.frame["id"].tolist() == ["a", "b1", "b2"]


def test_a_stored_table_comes_back_as_it_was(tmp_path: Path) -> None:
    save_dataset(_build_dataset(), tmp_path)
    loaded = load_dataset(tmp_path).sentences
    assert loaded is not None
    pd.testing.assert_frame_equal(loaded.frame, FRAME)
    assert loaded.labels.columns.tolist() == ["category"]
    assert loaded.take_part("train").texts.tolist() == ["He is 80."]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="group"), "no column group"),
        (FRAME.assign(id="a"), "two sentences have the id 'a'"),
        (FRAME.assign(part="dev"), "of the part 'dev'"),
    ],
)
def test_a_wrong_table_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(BrokenContract, match=message):
        Sentences(frame)
