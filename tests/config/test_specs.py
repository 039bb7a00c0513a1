from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.specs import validate_name
from recbias.core.errors import OutOfRange


@pytest.mark.parametrize("name", ["a", "children-ml1m", "v1.2_x", "7", "a" * 100])
def test_name_of_letters_digits_and_three_signs_is_valid(name: str) -> None:
    assert validate_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "a/b", "a\\b", "a b", "é", "a\n", "a" * 101, "a:b", "~"]
)
def test_other_names_are_rejected(name: str) -> None:
    with pytest.raises(OutOfRange, match="cannot be the name of a folder"):
        validate_name(name)


@given(st.text(max_size=20))
def test_valid_name_cannot_leave_its_folder(name: str) -> None:
    try:
        valid_name = validate_name(name)
    except OutOfRange:
        return
    assert valid_name.isascii()
    assert not set(valid_name) & set("/\\:\0 ")
    assert not valid_name.startswith(".")
