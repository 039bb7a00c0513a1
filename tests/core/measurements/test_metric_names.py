from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import WrongType
from recbias.core.measurements.metric_names import parse, show


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
    assert parse(text) == (name, settings)
    assert [type(each) for each in parse(text)[1].values()] == [
        type(each) for each in settings.values()
    ]


@pytest.mark.parametrize(
    "text", ["", "@5", "nDCG@", "nDCG@@5", "nDCG@-1", "nDCG@x", "nDCG(", "a(b)(c)", "nDCG@1e3"]
)
def test_other_text_is_refused_with_the_notation(text: str) -> None:
    with pytest.raises(WrongType) as caught:
        parse(text)
    assert caught.value.remedy == "write it as nDCG, nDCG@5 or APLT(head=0.8)@10"


@pytest.mark.parametrize("text", ["X(a)", "X(=1)", "X(a=1, b)"])
def test_a_setting_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(WrongType, match="is not a setting"):
        parse(text)


def test_a_cutoff_of_five_thousand_digits_is_refused() -> None:
    with pytest.raises(WrongType):
        parse("nDCG@" + "9" * 5000)
    assert parse(f"X(a={'9' * 5000})")[1] == {"a": "9" * 5000}


names = st.from_regex(r"[A-Za-z][A-Za-z_-]{0,8}", fullmatch=True)
words = names.filter(lambda text: text.casefold() not in {"true", "false"})
values = st.integers(-(10**9), 10**9) | st.booleans() | words
reals = st.floats(-1e9, 1e9).map(float)


@given(
    names, st.dictionaries(names, values | reals, max_size=4), st.none() | st.integers(0, 10**8)
)
def test_what_is_shown_parses_back(name: str, settings: dict[str, object], k: int | None) -> None:
    given_settings = {key: value for key, value in settings.items() if key != "k"}
    if k is not None:
        given_settings["k"] = k
    assert parse(show(name, given_settings)) == (name, given_settings)
