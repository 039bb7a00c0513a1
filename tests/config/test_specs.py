from __future__ import annotations

import pytest

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
