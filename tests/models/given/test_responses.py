from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.dataset import TrainingData
from recbias.core.errors import MalformedLine
from recbias.core.evidence import Responses
from recbias.models.given import GivenResponses
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def read_table(folder: Path, text: str, name: str = "replies.csv") -> Responses:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    fitted = GivenResponses(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    return fitted.responses(make_queries(["u0"]))


def test_responses_are_in_the_natural_order_of_their_ids(tmp_path: Path) -> None:
    text = "query_id,response,reference,topic\n10,a cat,a|b,film\n9,,none,\n2,x,,music\n"
    responses = read_table(tmp_path, text)
    assert responses.ids.tolist() == ["2", "9", "10"]
    assert responses.texts.tolist() == ["x", "", "a cat"]
    assert responses.references.tolist() == [None, "none", "a|b"]
    assert responses.labels.to_dict("list") == {"topic": ["music", None, "film"]}


def test_json_lines_without_references(tmp_path: Path) -> None:
    responses = read_table(
        tmp_path, '{"query_id": "q", "response": "你好\\n吗"}\n', "replies.jsonl"
    )
    assert responses.texts.tolist() == ["你好\n吗"]
    assert responses.references.tolist() == [None]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("query_id,response\n1,a\n2,b\n1,c\n", "query '1' already has a response", ":4"),
        ("query_id,response\n,a\n", "query_id is empty", ":2"),
        ("query_id,response\n1,a,b\n", "3 cells, not 2", ":2"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, message: str, line: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        read_table(tmp_path, text)
    assert caught.value.where == f"{tmp_path / 'replies.csv'}{line}"
