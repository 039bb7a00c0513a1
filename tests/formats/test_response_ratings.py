from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine, UnknownColumn, WrongType
from recbias.formats.ratings import (
    ResponseRatings,
    digest_response,
    rating_shares,
    read_ratings,
    write_ratings,
)

RATINGS = np.array([[1.0, 0.0, np.nan], [np.nan, 0.0, np.nan]])
ROW = {"query_id": "1", "response_sha256": "a", "models": ["m"], "rater": "x", "question": "q"}


def make_ratings() -> ResponseRatings:
    digests = np.array([digest_response(text) for text in ("yes", "no", "maybe")], dtype=object)
    models = (("a",), ("a", "b"), ("b",))
    ids = np.array(["q1", "q1", "q2"], dtype=object)
    return ResponseRatings(ids, digests, models, ("first", "second"), RATINGS)


def test_ratings_are_read_as_written(tmp_path: Path) -> None:
    read = read_ratings(write_ratings(tmp_path / "ratings.jsonl", make_ratings(), "biased"))
    assert read.raters == ("first", "second")
    assert len(read) == 2  # nobody rated the third
    assert set(read.models) == {("a",), ("a", "b")}
    expected = [[1, 0, np.nan], [np.nan, 0, np.nan]]
    selected = read.select(["q1", "q1", "q2"], [" yes ", "no", "maybe"])
    assert np.array_equal(selected, expected, equal_nan=True)


def test_ratings_of_another_text_do_not_count() -> None:
    selected = make_ratings().select(["q1", "q2", "q3"], ["yes!", "yes", "yes"])
    assert np.isnan(selected).all()
    assert make_ratings().select([], []).shape == (2, 0)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=3, max_size=3)))
def test_shares_of_all_scores_add_up(rows: list[list[float]]) -> None:
    ratings = np.array(rows).reshape(len(rows), 3)
    shares = np.stack([rating_shares(ratings, score) for score in (0.0, 1.0, 2.0)])
    has_rating = ~np.isnan(ratings).all(axis=0)
    assert np.isnan(shares).any(axis=0).tolist() == (~has_rating).tolist()
    assert shares.sum(axis=0)[has_rating] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{"rating": ""}], "no number"),
        ([{"rating": "inf"}], "no number"),
        ([{"rating": 1}, {"rating": 0}], "'x' already rated this response to '1'"),
        ([{"rating": 1}, {"rating": 0, "rater": "y", "question": "r"}], "the question is 'r'"),
        ([{"rating": 1, "rater": ""}], "an empty rater"),
    ],
)
def test_faulty_rows_are_named(tmp_path: Path, changes: list[Any], message: str) -> None:
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps({**ROW, **change}) + "\n" for change in changes))
    with pytest.raises(MalformedLine, match=message) as caught:
        read_ratings(path)
    assert caught.value.where == f"{path}:{len(changes)}"


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("query_id,rating\n1,1\n")
    with pytest.raises(UnknownColumn, match="response_sha256"):
        read_ratings(tmp_path / "other.csv")
    with pytest.raises(WrongType, match="JSON lines") as caught:
        write_ratings(tmp_path / "ratings.csv", make_ratings(), "biased")
    assert caught.value.remedy == "name it ratings.jsonl"
