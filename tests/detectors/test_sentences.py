from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import MalformedLine, UnknownColumn, UnknownIdentifier
from recbias.core.plugins import evaluates_texts
from recbias.detectors.groups import Sentences
from support.worlds.evidence_worlds import make_vocabulary

ITEMS = Attributes(make_vocabulary("i", 4), pd.DataFrame(index=range(4)))

# i0: 0.5 + 0.6 - 0.3 = 0.8; i1: 0.8 with -0.3: 0.5 / 0.7 = 0.714; i2: 0.7 exactly; i3: none
SCORES = "item_id,score\ni0,0.5\ni1,0.8\ni2,0.7\ni0,0.6\ni1,-0.3\n"


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def label(path: Path, **settings: Any) -> tuple[dict[str, list[float]], list[str]]:
    """Return the columns of the detector and its warnings."""
    with collect_warnings() as messages:
        columns = Sentences(path=path, **settings).label(ITEMS, np.random.default_rng(0))
    return {kind: values.round(6).tolist() for kind, values in columns.items()}, messages


def labels(path: Path, **settings: Any) -> dict[str, list[float]]:
    return label(path, **settings)[0]


def test_sentences_are_combined_by_hand(tmp_path: Path) -> None:
    columns, messages = label(write(tmp_path, SCORES))
    assert columns == {"stereotype": [1, 1, 0, 0], "stereotype_score": [0.8, 0.714286, 0.7, 0.0]}
    assert messages == ["scores.csv: 1 of 4 items have no sentence on stereotype: labelled 0"]


def test_a_score_at_the_threshold_is_labelled_unless_strict(tmp_path: Path) -> None:
    path = write(tmp_path, SCORES)
    assert labels(path, strict=False)["stereotype"] == [1, 1, 1, 0]
    assert labels(path, threshold=0.75)["stereotype"] == [1, 0, 0, 0]
    # 0.5 and 0.5 combine to 0.75, up to rounding
    even = write(tmp_path, "item_id,score\ni0,0.5\ni0,0.5\n")
    assert labels(even, threshold=0.75)["stereotype"][0] == 0
    assert labels(even, threshold=0.75, strict=False)["stereotype"][0] == 1


def test_negative_scores_lower_the_certainty_and_the_grade_is_at_least_0(tmp_path: Path) -> None:
    path = write(tmp_path, "item_id,score\ni0,-0.4\ni1,1\ni1,-1\ni2,1\ni2,-0.9\n")
    assert labels(path) == {"stereotype": [0, 0, 1, 0], "stereotype_score": [0, 0, 1, 0]}


def test_kinds_are_labelled_separately(tmp_path: Path) -> None:
    text = "kind,item_id,score,text\nrace,i0,0.9,\ngender,i1,0.9,x\ngender,i0,0.2,\n"
    path = write(tmp_path, text)
    assert Sentences(path=path).kinds == ("gender", "race")
    columns = labels(path)
    assert columns["gender"] == [0, 1, 0, 0]
    assert columns["race"] == [1, 0, 0, 0]
    assert list(columns) == ["gender", "gender_score", "race", "race_score"]
    assert Sentences(path=write(tmp_path, SCORES), kind="gender").kinds == ("gender",)


def test_a_detector_is_classified_without_reading_its_kinds(tmp_path: Path) -> None:
    assert not evaluates_texts(Sentences(path=write(tmp_path, "id\ni0\n")))


@pytest.mark.parametrize(
    ("text", "name", "error", "message"),
    [
        ("item_id,scores\ni0,1\n", "s.csv", UnknownColumn, "s.csv:1: there is no column 'score'"),
        (SCORES + "i3,high\n", "s.csv", MalformedLine, "s.csv:7: score is not a number .* 'high'"),
        (SCORES + "\ni3,1.5\n", "s.csv", MalformedLine, "s.csv:8: score .* -1 to 1: '1.5'"),
        ("item_id,score,kind\ni0,1,\n", "s.csv", MalformedLine, "s.csv:2: kind is empty"),
        (
            "item_id,score,score\ni0,1,0\n",
            "s.csv",
            MalformedLine,
            "s.csv:1: two columns are called 'score'",
        ),
        ("no gzip", "s.txt", MalformedLine, "the cells are separated by blanks"),
        ("item_id,score\nother,1\n", "s.csv", UnknownIdentifier, "none of the 1 items"),
        ("item_id,score\n", "s.csv", MalformedLine, "s.csv: the file has no rows"),
    ],
)
def test_malformed_files_are_rejected(
    tmp_path: Path, text: str, name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        labels(write(tmp_path, text, name))
