from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.docstrings import read_docstring, read_formula, read_summary
from recbias.core.errors import WrongType
from recbias.core.measures import format_metric, parse_metric
from recbias.core.text import find_nearest
from recbias.registry import REGISTRIES


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("neighbours", ["neighbors"]),
        ("NEIGHBORS", ["neighbors"]),
        ("simlarity", ["similarity"]),
        ("zzz", []),
        ("", []),
    ],
)
def test_the_nearest_names_are_found(name: str, expected: list[str]) -> None:
    assert find_nearest(name, ["neighbors", "similarity", "shrink"]) == expected


BRIEF = '''
class Brief:
    """The share of things.

        share = x / y
        x = 1
    """

class Heir(Brief):
    size = "no docstring"

class Prose:
    """The share of things.

    It says x = y.
    """
'''


def test_a_formula_may_be_all_that_follows_the_summary(tmp_path: Path) -> None:
    (tmp_path / "brief.py").write_text(BRIEF, encoding="utf-8")
    brief, heir, prose = (
        REGISTRIES["metrics"].load(f"./brief.py:{name}", base=tmp_path)
        for name in ("Brief", "Heir", "Prose")
    )
    assert read_formula(brief) == "share = x / y\nx = 1"
    assert read_docstring(brief).startswith("The share of things.\n\n    share = x / y")
    assert read_summary(heir) == "The share of things."
    assert read_formula(prose) == ""


def test_a_docstring_without_source_is_read_as_it_is() -> None:
    dynamic = type("Dynamic", (), {"__doc__": "The share.\n\n    x = y"})
    assert (read_summary(dynamic), read_formula(dynamic)) == ("The share.", "")
