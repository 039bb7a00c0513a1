from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, UnknownIdentifier
from recbias.core.stage_context import collect_warnings
from recbias.detectors.sentences import Sentences, read_scores
from support.evidence_worlds import words

NAN = math.nan
ITEMS = Attributes(words("i", 4), pd.DataFrame(index=range(4)))

# i0: 0.5 + 0.6 - 0.3 = 0.8; i1: 0.8 with -0.3: 0.5 / 0.7 = 0.714; i2: 0.7 exactly; i3: none
SCORES = "item_id,score\ni0,0.5\ni1,0.8\ni2,0.7\ni0,0.6\ni1,-0.3\n"


def written(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def labels(path: Path, **settings: Any) -> dict[str, list[float]]:
    found = Sentences(path=path, **settings).label(ITEMS, np.random.default_rng(0))
    return {kind: values.round(6).tolist() for kind, values in found.items()}


def test_sentences_are_combined_by_hand(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        found = labels(written(tmp_path, SCORES))
    assert found == {
        "stereotype": [1, 1, 0, 0],
        "stereotype_score": [0.8, 0.714286, 0.7, 0.0],
    }
    assert notes == ["scores.csv: 1 of 4 items have no sentence on stereotype: labelled 0"]


def test_the_threshold_itself_counts_where_it_is_not_strict(tmp_path: Path) -> None:
    path = written(tmp_path, SCORES)
    assert labels(path, strict=False)["stereotype"] == [1, 1, 1, 0]
    assert labels(path, threshold=0.75)["stereotype"] == [1, 0, 0, 0]
    # 0.5 and 0.5 make 0.75, with rounding on the way
    even = written(tmp_path, "item_id,score\ni0,0.5\ni0,0.5\n")
    assert labels(even, threshold=0.75)["stereotype"][0] == 0
    assert labels(even, threshold=0.75, strict=False)["stereotype"][0] == 1


def test_items_without_a_sentence_can_be_left_without_a_label(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        found = labels(written(tmp_path, SCORES), missing="undefined", kind="gender")
    assert found["gender"] == pytest.approx([1, 1, 0, NAN], nan_ok=True)
    assert found["gender_score"][3] == pytest.approx(NAN, nan_ok=True)
    assert notes[0].endswith("no sentence on gender: left without a label")


def test_an_item_without_a_sentence_is_0_whatever_the_threshold(tmp_path: Path) -> None:
    found = labels(written(tmp_path, "item_id,score\ni0,0.1\n"), threshold=-0.5)
    assert found["stereotype"] == [1, 0, 0, 0]


def test_what_speaks_against_lowers_the_score_but_its_grade_is_0(tmp_path: Path) -> None:
    found = labels(written(tmp_path, "item_id,score\ni0,-0.4\ni1,1\ni1,-1\ni2,1\ni2,-0.9\n"))
    assert found == {"stereotype": [0, 0, 1, 0], "stereotype_score": [0, 0, 1, 0]}


def test_kinds_are_labelled_by_themselves(tmp_path: Path) -> None:
    text = "kind,item_id,score,text\nrace,i0,0.9,\ngender,i1,0.9,x\ngender,i0,0.2,\n"
    path = written(tmp_path, text)
    assert Sentences(path=path).kinds == ("gender", "race")
    found = labels(path)
    assert found["gender"] == [0, 1, 0, 0]
    assert found["race"] == [1, 0, 0, 0]
    assert list(found) == ["gender", "gender_score", "race", "race_score"]
    assert Sentences(path=written(tmp_path, SCORES), kind="gender").kinds == ("gender",)


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path, rng: np.random.Generator) -> None:
    head, *rows = SCORES.split()
    shuffled = "\n".join([head, *rng.permutation(rows)])
    assert labels(written(tmp_path, shuffled, "b.csv")) == labels(written(tmp_path, SCORES))


def test_rows_of_other_items_are_left_out_and_said(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        found = labels(written(tmp_path, SCORES + "new,0.9\n"))
    assert found == labels(written(tmp_path, SCORES))
    assert notes[0] == "scores.csv: 1 rows are of items that the dataset lacks"


def test_every_kind_of_table_is_read(tmp_path: Path) -> None:
    expected = read_scores(written(tmp_path, SCORES), "x")
    others = [
        written(tmp_path, SCORES, "s.csv.gz"),
        written(tmp_path, SCORES.replace(",", "\t"), "s.tsv"),
        written(tmp_path, "\ufeff" + SCORES, "bom.csv"),
        tmp_path / "s.parquet",
    ]
    expected.drop(columns="kind").to_parquet(others[-1])
    for path in others:
        pd.testing.assert_frame_equal(read_scores(path, "x"), expected)


@pytest.mark.parametrize(
    ("text", "name", "error", "said"),
    [
        ("item_id,scores\ni0,1\n", "s.csv", UnknownColumn, "s.csv: there is no column 'score'"),
        ("item,score\ni0,1\n", "s.csv", UnknownColumn, "there is no column 'item_id'"),
        (SCORES + "i3,high\n", "s.csv", MalformedLine, "s.csv:7: score is not a number .* 'high'"),
        (SCORES + "\ni3,1.5\n", "s.csv", MalformedLine, "s.csv:8: score .* -1 to 1: '1.5'"),
        ('item_id,score\n"i\n0",1\ni0,x\n', "s.csv", MalformedLine, "s.csv:4: score"),
        ("item_id,score\ni0\n", "s.csv", MalformedLine, "s.csv:2: score .*: ''"),
        ("item_id,score\ni0,nan\n", "s.tsv.gz", UnknownColumn, "no column 'item_id'"),
        ("item_id,score\n,1\n", "s.csv", MalformedLine, "s.csv:2: item_id is empty"),
        ("item_id,score,kind\ni0,1,\n", "s.csv", MalformedLine, "s.csv:2: kind is empty"),
        ("item_id,score\ni0,1,2,3\n", "s.csv", MalformedLine, "s.csv: is not a table"),
        ("item_id,score\ni0,1\ni0,1,2\n", "s.csv", MalformedLine, "s.csv: is not a table"),
        (
            "item_id,score,score\ni0,1,0\n",
            "s.csv",
            MalformedLine,
            "s.csv:1: two columns are called 'score'",
        ),
        ("", "s.csv", MalformedLine, "s.csv: is not a table"),
        ("no parquet", "s.parquet", MalformedLine, "s.parquet: is not a table"),
        ("no gzip", "s.txt", MalformedLine, "s.txt: is not a kind of table"),
        ("item_id,score\nother,1\n", "s.csv", UnknownIdentifier, "none of the items of s.csv"),
        ("item_id,score\n", "s.csv", UnknownIdentifier, "none of the items of s.csv"),
    ],
)
def test_bad_files_are_errors(
    tmp_path: Path, text: str, name: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        labels(written(tmp_path, text, name))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"absent\.csv"):
        labels(tmp_path / "absent.csv")


def test_a_parquet_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pd.DataFrame({"item_id": ["i0", "i1"], "score": [0.5, NAN]}).to_parquet(path)
    with pytest.raises(MalformedLine, match=r"s.parquet: row 2: score"):
        labels(path)
