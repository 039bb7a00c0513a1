from __future__ import annotations

import pyarrow as pa
import pytest

from recbias.formats.timestamps import is_blank, to_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("978300760", 978_300_760),
        ("978300760.9", 978_300_760),
        ("-1", -1),
        ("1970-01-02", 86_400),
        ("1970-01-01 00:01:00", 60),
        ("1970-01-01T00:01:00.75", 60),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59", -1),
    ],
)
def test_numbers_are_seconds_and_text_is_iso_8601(text: str, seconds: int) -> None:
    times, wrong = to_seconds(pa.chunked_array([[text]]))
    assert (times.tolist(), wrong.tolist()) == ([seconds], [False])


@pytest.mark.parametrize("text", ["", "soon", "2019-02-31", "12:30", "1e9", "05/25/2019"])
@pytest.mark.parametrize("other", ["5", "2019-05-25"])
def test_other_text_is_not_a_time(text: str, other: str) -> None:
    _, wrong = to_seconds(pa.chunked_array([[other, text]]))
    assert wrong.tolist() == [False, True]


def test_numbers_and_dates_cannot_be_mixed() -> None:
    _, wrong = to_seconds(pa.chunked_array([["2019-05-25", "5"]]))
    assert wrong.tolist() == [True, False]


def test_numeric_columns_are_rounded_down_to_seconds() -> None:
    times, wrong = to_seconds(pa.chunked_array([[7.9, float("nan"), float("inf")]]))
    assert (times.tolist(), wrong.tolist()) == ([7, 0, 0], [False, True, True])


@pytest.mark.parametrize(
    ("cells", "blank"),
    [(["", ""], True), (["", "1"], False), ([float("nan")], True), ([1.0], False)],
)
def test_a_column_without_times_is_blank(cells: list[str] | list[float], blank: bool) -> None:
    assert is_blank(pa.chunked_array([cells])) is blank
