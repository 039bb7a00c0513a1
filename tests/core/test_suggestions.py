from __future__ import annotations

import pytest

from recbias.core.text import find_nearest, normalize_name


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
