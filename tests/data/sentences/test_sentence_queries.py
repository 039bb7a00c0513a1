from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import KEYS, Dataset, Sentences
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingEvidence,
    NothingLeft,
    WrongType,
)
from recbias.data.sentences import SentenceQueries, make_dataset
from recbias.runner.codecs import load_queries, save_queries
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)
ROWS = [
    ("a1", "test", "a", "old", "He is 80.", "age"),
    ("b1", "test", "b", "tall", "A tall man.", "height"),
    ("c", "test", None, "old", "Alone.", "age"),
    ("a2", "test", "a", "young", "He is 20.", "age"),
    ("b2", "test", "b", "short", "A short man.", "height"),
    ("v1", "validation", "v", "old", "She is 80.", "age"),
    ("v2", "validation", "v", "young", "She is 20.", "age"),
]


def make_world() -> Dataset:
    return make_dataset(pd.DataFrame(ROWS, columns=[*KEYS, "category"], dtype=object), "small")


def test_the_sentences_of_a_pair_follow_one_another() -> None:
    queries = SentenceQueries().ask(make_world(), RNG)
    assert queries.ids.ids.tolist() == ["a1", "a2", "b1", "b2", "c"]
    assert queries.texts is not None
    assert queries.texts.tolist()[:2] == ["He is 80.", "He is 20."]
    assert queries.labels.frame["pair_id"].tolist() == ["a", "a", "b", "b", None]
    assert queries.labels.frame["group"].tolist() == ["old", "young", "tall", "short", "old"]
    assert (queries.users.tolist(), queries.unit) == ([-1] * 5, "prompt")


def test_other_parts_and_conditions_select_sentences() -> None:
    validation = SentenceQueries(part="validation").ask(make_world(), RNG)
    assert validation.ids.ids.tolist() == ["v1", "v2"]
    tall = SentenceQueries(where="category == 'height'").ask(make_world(), RNG)
    assert tall.ids.ids.tolist() == ["b1", "b2"]


def write_dialogues(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "dialogues.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_dialogues_follow_without_a_group(tmp_path: Path) -> None:
    path = write_dialogues(
        tmp_path,
        {"context": ["Hello", "Who\nis there?"], "reference": "Me.", "topic": "doors"},
        {"context": "One turn", "reference": None},
    )
    queries = SentenceQueries(dialogues=path).ask(make_world(), RNG)
    frame = queries.labels.frame
    assert queries.ids.ids.tolist()[5:] == ["dialogue-1", "dialogue-2"]
    assert frame["context"].tolist()[4:] == [None, "Hello\nWho is there?", "One turn"]
    assert frame["reference"].tolist()[5:] == ["Me.", None]
    assert frame["group"].tolist()[5:] == [None, None]
    assert frame["topic"].tolist()[5:] == ["doors", None]
    (folder := tmp_path / "stored").mkdir()
    save_queries(queries, folder)
    assert load_queries(folder).labels.frame.equals(frame)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"context": []}, MalformedLine, "an empty context"),
        ({"context": "x", "id": "a1"}, MalformedLine, "another query has the id 'a1'"),
        ({"context": "x", "group": "old"}, Contradiction, "dialogues have no group"),
        ({"context": {"turn": 1}}, MalformedLine, "neither text nor a number"),
    ],
)
def test_faulty_dialogues_are_refused(
    tmp_path: Path, record: dict[str, Any], error: Any, message: str
) -> None:
    path = write_dialogues(tmp_path, record)
    with pytest.raises(error, match=message) as caught:
        SentenceQueries(dialogues=path).ask(make_world(), RNG)
    assert str(path) in caught.value.where


def test_no_sentences_are_refused() -> None:
    no_sentences = Dataset(make_interactions([(0, 0)]))
    with pytest.raises(MissingEvidence, match="has no sentences"):
        SentenceQueries().ask(no_sentences, RNG)
    with pytest.raises(NothingLeft, match="no sentences for train") as caught:
        SentenceQueries(part="train").ask(make_world(), RNG)
    assert caught.value.remedy == "the dataset has sentences for test, validation"
    with pytest.raises(NothingLeft, match="none of the 5 sentences"):
        SentenceQueries(where="category == 'colour'").ask(make_world(), RNG)
    with pytest.raises(WrongType):
        SentenceQueries(where="category =")
    with pytest.raises(WrongType):
        SentenceQueries(dialogues=Path("dialogues.xlsx"))


def test_training_data_never_hold_the_test_part() -> None:
    sentences = make_world().sentences
    assert isinstance(sentences, Sentences)
    assert set(sentences.without_test().frame["part"]) == {"validation"}
