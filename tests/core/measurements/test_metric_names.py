from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import WrongType
from recbias.core.measures import format_metric, parse_metric


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("nDCG", "nDCG", {}),
        ("nDCG@5", "nDCG", {"k": 5}),
        (" R-Precision @ 20 ", "R-Precision", {"k": 20}),
        ("APLT(head=0.8)", "APLT", {"head": 0.8}),
        ("APLT(head=0.8)@10", "APLT", {"head": 0.8, "k": 10}),
        (
            "HIT_BAD(label=ngim.gender, strict=true)",
            "HIT_BAD",
            {"label": "ngim.gender", "strict": True},
        ),
        (
            "X(a=1, b=-2, c=1e-3, d=.5, e=3.)",
            "X",
            {"a": 1, "b": -2, "c": 0.001, "d": 0.5, "e": 3.0},
        ),
        (
            "X(a=nan, b=inf, c=1_0, d=, e=²)",
            "X",
            {"a": "nan", "b": "inf", "c": "1_0", "d": "", "e": "²"},
        ),
        ("X()", "X", {}),
        ("package/Name@3", "package/Name", {"k": 3}),
        ("popularity lift", "popularity lift", {}),
    ],
)
def test_notation_is_parsed(text: str, name: str, settings: dict[str, object]) -> None:
    assert parse_metric(text) == (name, settings)
    assert list(map(type, parse_metric(text)[1].values())) == list(map(type, settings.values()))


@pytest.mark.parametrize(
    "text", ["", "@5", "nDCG@", "nDCG@@5", "nDCG@-1", "nDCG@x", "nDCG(", "a(b)(c)", "nDCG@1e3"]
)
def test_other_text_is_an_error_that_shows_the_notation(text: str) -> None:
    with pytest.raises(WrongType) as caught:
        parse_metric(text)
    assert caught.value.remedy == "write it as nDCG, nDCG@5 or APLT(head=0.8)@10"


NAMES = st.from_regex(r"[A-Za-z][A-Za-z_-]{0,8}", fullmatch=True)
WORDS = NAMES.filter(lambda text: text.casefold() not in {"true", "false"})
VALUES = st.integers(-(10**9), 10**9) | st.booleans() | WORDS
REALS = st.floats(-1e9, 1e9).map(float)


@given(
    NAMES, st.dictionaries(NAMES, VALUES | REALS, max_size=4), st.none() | st.integers(0, 10**8)
)
def test_parsing_inverts_formatting(name: str, settings: dict[str, object], k: int | None) -> None:
    settings.pop("k", None)
    if k is not None:
        settings["k"] = k
    assert parse_metric(format_metric(name, settings)) == (name, settings)
