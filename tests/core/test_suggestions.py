from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.text import find_nearest, normalize_name, suggest


@pytest.mark.parametrize("text", ["nDCG", "NDCG", "n-dcg", "N_D C-G"])
def test_case_hyphens_underscores_and_spaces_are_ignored(text: str) -> None:
    assert normalize_name(text) == "ndcg"


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


def test_the_most_similar_comes_first_and_the_number_is_limited() -> None:
    names = ["item1", "item22", "item", "itemknn"]
    assert find_nearest("item", names)[0] == "item"
    assert len(find_nearest("item", names)) == 3
    assert len(find_nearest("item", names, limit=1)) == 1


def test_the_help_line_has_the_nearest_names_else_all_valid_ones() -> None:
    assert suggest("sed", ["seed", "seeds", "k"]) == "did you mean seed or seeds?"
    assert suggest("zzz", ["b", "a"]) == "the valid names are a, b"
    assert suggest("zzz", []) == "it takes none"


def test_a_long_list_of_valid_names_is_truncated() -> None:
    names = [f"{letter}{letter}" for letter in "abcdefghijklmno"]
    line = suggest("1234", names)
    assert line == f"the valid names are {', '.join(names[:12])} and 3 more"


@given(st.text(), st.lists(st.text(), max_size=5))
def test_a_valid_name_is_nearest_to_itself(name: str, names: list[str]) -> None:
    assert set(find_nearest(name, names)) <= set(names)
    if normalize_name(name):
        assert normalize_name(find_nearest(name, [*names, name])[0]) == normalize_name(name)
