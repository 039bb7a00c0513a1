from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Gt

from recbias.config.settings import (
    accepts_model_name,
    as_yaml_name,
    descend,
    get_annotations,
    get_item_type,
    is_input_file,
    is_list,
    is_mapping,
    list_choices,
    list_members,
    restrict_to_value,
    select_member,
    strip_annotations,
)
from recbias.core.protocols import InputFile, ModelName


def test_annotations_are_separated_from_the_type() -> None:
    positive = Gt(0)
    assert strip_annotations(Annotated[int, positive]) is int
    assert strip_annotations(int) is int
    assert get_annotations(Annotated[int, positive]) == (positive,)
    assert get_annotations(int) == ()


def test_unions_have_members_and_literals_have_choices() -> None:
    assert list_members(int | str) == (int, str)
    assert list_choices(Literal["a"] | int) == ("a",)


@pytest.mark.parametrize(
    ("hint", "item_type"),
    [(tuple[int, ...], int), (list[str], str), (tuple[int, int], None), (int, None)],
)
def test_item_type_is_that_of_a_list_of_one_type(hint: Any, item_type: Any) -> None:
    assert get_item_type(hint) is item_type


def test_input_files_and_model_names_are_recognized_by_their_annotations() -> None:
    assert is_input_file(InputFile)
    assert not is_input_file(Path)
    assert accepts_model_name(ModelName | None)
    assert not accepts_model_name(str)


def test_lists_and_mappings_are_recognized_by_their_origin() -> None:
    assert is_list(tuple[int, ...])
    assert is_mapping(dict[str, int])
    assert not is_list(dict[str, int])


def test_member_of_a_union_fits_the_form_of_the_value() -> None:
    hint = int | list[int] | dict[str, int]
    assert select_member(hint, [1]) == list[int]
    assert select_member(hint, {"a": 1}) == dict[str, int]
    assert select_member(hint, 1) == hint


def test_descend_follows_keys_and_indexes() -> None:
    assert descend(dict[str, list[int]], {"a": [5]}, ("a", 0)) == (int, 5)
    assert descend(tuple[int, str], [1, "x"], (1,)) == (str, "x")


def test_restrict_to_value_excludes_the_members_of_unions() -> None:
    assert restrict_to_value({"a": [5]}, ("a", "list[int]", 0, "int")) == ("a", 0)


def test_trailing_underscore_of_a_field_is_not_part_of_the_key() -> None:
    assert as_yaml_name("from_") == "from"
