from __future__ import annotations

import pytest

from recbias.formats.yaml import parse_scalar


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("str", "5", "5"),
        ("int", "0x1F", 31),
        ("int", "-12", -12),
        ("float", "1.", 1.0),
        ("float", "-.inf", float("-inf")),
        ("bool", "FALSE", False),
        ("null", "~", None),
    ],
)
def test_a_scalar_has_the_value_of_its_kind(kind: str, text: str, value: object) -> None:
    assert parse_scalar(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int", "1.5"), ("int", "9" * 500), ("float", "1e999"), ("float", ".nan"), ("bool", "yes")],
)
def test_text_of_another_kind_is_rejected(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"too large|not of its tag"):
        parse_scalar(kind, text)
